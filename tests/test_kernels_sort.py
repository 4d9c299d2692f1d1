"""The generated kernels of `jascend.sort`, run on the twin with the checker on, against the fallback."""

import jax
import ml_dtypes
import numpy as np
import pytest

import jascend as ja


def check(x, descending, target="ascend910b"):
    program = ja.compile(lambda x: ja.sort(x, descending=descending), x, target=target)
    values, indices = map(np.asarray, program(x))
    expected, positions = map(np.asarray, jax.jit(lambda x: ja.sort(x, descending=descending))(x))
    np.testing.assert_array_equal(indices, positions)
    np.testing.assert_array_equal(values.astype(np.float32), expected.astype(np.float32))


def rows(batch, length, dtype=np.float32):
    """Numbers with zeros of either sign, infinities and NaN among them."""
    x = np.random.default_rng(length).normal(0, 3, (batch, length))
    for start, value in enumerate((np.nan, -np.inf, np.inf, -0.0, 0.0)):
        x[:, start::13] = value
    return x.astype(dtype)


@pytest.mark.parametrize("descending", [False, True])
def test_rows_of_one_list(descending):
    check(rows(3, 100), descending)


def test_a_row_of_more_than_a_chunk():
    check(rows(1, 2100), True)


@pytest.mark.long
@pytest.mark.parametrize("descending", [False, True])
def test_long_rows(descending):
    check(rows(2, 9001), descending)


@pytest.mark.long
@pytest.mark.parametrize("target", ["ascend910b", "ascend950"])
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_16_bit_rows_with_many_ties(dtype, target):
    check(rows(2, 3000, dtype), True, target)
    check(np.random.default_rng(0).integers(-2, 3, (1, 20000)).astype(dtype), False, target)
