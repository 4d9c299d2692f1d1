"""The generated kernels of `jascend.sort`, run on the twin with the checker on, against the fallback."""

import itertools

import jax
import ml_dtypes
import numpy as np
import pytest

import jascend as ja

FLOATS = {"float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}


def check(x, descending, target="ascend910b"):
    """Positions, and values bit for bit but for the payload of NaN."""
    program = ja.compile(lambda x: ja.sort(x, descending=descending), x, target=target)
    values, indices = map(np.asarray, program(x))
    expected, positions = map(np.asarray, jax.jit(lambda x: ja.sort(x, descending=descending))(x))
    np.testing.assert_array_equal(indices, positions)
    np.testing.assert_array_equal(values.astype(np.float32), expected.astype(np.float32))
    numbers = ~np.isnan(expected.astype(np.float32))
    np.testing.assert_array_equal(np.signbit(values)[numbers], np.signbit(expected)[numbers])


def rows(batch, length, dtype=np.float32):
    """Numbers with zeros of either sign, infinities and NaN among them; a row of copies of few numbers last. Subnormal
    numbers are not among them: vector units may take them for zero."""
    x = np.random.default_rng(length).normal(0, 3, (batch, length))
    for start, value in enumerate((np.nan, -np.inf, np.inf, -0.0, 0.0, float(ml_dtypes.finfo(dtype).smallest_normal))):
        x[:, start::13] = value
    x[-1] = np.random.default_rng(length).choice([-0.0, 0.0, 2.0, -2.0], length)
    return x.astype(dtype)


def some(cases, every):
    """All cases, those but every so many of them left to `make test-long`: each is a kernel of its own to build."""
    return [pytest.param(*case, marks=() if i % every == 0 else pytest.mark.long) for i, case in enumerate(cases)]


@pytest.mark.parametrize(("length", "dtype", "descending", "target"), some(
    itertools.product((1, 31, 32, 33, 100), FLOATS, (False, True), ("ascend910b", "ascend950")), 11
))  # fmt: skip
def test_rows_of_one_list(length, dtype, descending, target):
    check(rows(3, length, FLOATS[dtype]), descending, target)


@pytest.mark.parametrize(("length", "dtype", "descending", "target"), [
    (2100, "float32", True, "ascend910b"),
    *(pytest.param(*case, marks=pytest.mark.long) for case in (
        (4097, "float32", False, "ascend910b"), (4097, "float16", True, "ascend950"), (4097, "bfloat16", True, "ascend910b"),
        (9001, "float32", False, "ascend910b"), (9001, "float32", True, "ascend950"),
        (3000, "float16", True, "ascend910b"), (3000, "bfloat16", True, "ascend950"),
        (20000, "bfloat16", False, "ascend950"), (20000, "float16", False, "ascend910b"),
    )),
])  # fmt: skip
def test_longer_rows(length, dtype, descending, target):
    check(rows(2, length, FLOATS[dtype]), descending, target)


@pytest.mark.long
@pytest.mark.parametrize(("kind", "dtype", "descending"), [
    ("numbers", "float32", False), ("numbers", "bfloat16", True), ("copies", "float32", True), ("NaN", "float16", False),
])  # fmt: skip
def test_the_longest_rows(kind, dtype, descending):
    length = 1 << 20
    x = rows(2, length, FLOATS[dtype])
    check(x[:1] if kind == "numbers" else x[1:] if kind == "copies" else np.full_like(x[:1], np.nan), descending)


@pytest.mark.parametrize("descending", [False, pytest.param(True, marks=pytest.mark.long)])
def test_a_row_does_not_depend_on_its_batch(descending):
    """Alone, and among more rows than there are cores."""
    x = rows(50, 40, np.float32)
    order = lambda x: ja.sort(x, descending=descending)
    together = [np.asarray(result) for result in ja.compile(order, x)(x)]
    for row in (0, 30, 49):
        for alone, all_rows in zip(ja.compile(order, x[row : row + 1])(x[row : row + 1]), together):
            np.testing.assert_array_equal(np.asarray(alone)[0], all_rows[row])
