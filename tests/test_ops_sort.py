"""`jascend.sort` against NumPy's stable argsort."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import vectors

import jascend as ja

SPECIAL = [-np.inf, -3, -1, -1e-40, -0.0, 0.0, 1e-40, 1, 3, np.inf, np.nan, -np.nan]


def reference(x, descending):
    """Stable, NaN greatest whatever its sign; zeros equal, and what is subnormal in float32 is one of them."""
    values = np.asarray(x, np.float32)
    nan = np.isnan(values)
    rank = np.where(nan | (np.abs(values) < np.finfo(np.float32).tiny), 0, values)
    keys = (-rank, ~nan) if descending else (rank, nan)
    indices = np.lexsort(keys, axis=-1)
    return np.take_along_axis(np.asarray(x), indices, -1), indices.astype(np.int32)


def check(x, descending=False):
    values, indices = ja.sort(x, descending=descending)
    expected_values, expected_indices = reference(x, descending)
    assert indices.dtype == jnp.int32 and values.dtype == x.dtype
    np.testing.assert_array_equal(indices, expected_indices)
    width = np.uint32 if x.dtype == np.float32 else np.uint16
    np.testing.assert_array_equal(np.asarray(values).view(width), expected_values.view(width))


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", vectors.DTYPES.values())
def test_equals_a_stable_sort_with_nan_last(dtype, descending):
    random = np.random.default_rng(0)
    check(random.choice(SPECIAL, (5, 257)).astype(dtype), descending)
    check(random.normal(size=(5, 257)).astype(dtype), descending)


@pytest.mark.parametrize("shape", [(7,), (2, 3, 4), (3, 1)])
def test_any_rank(shape):
    check(np.random.default_rng(1).integers(-2, 3, shape).astype(np.float32))
    check(np.random.default_rng(1).integers(-2, 3, shape).astype(np.float32), descending=True)


@pytest.mark.parametrize("shape", [(0,), (0, 4), (3, 0)])
def test_empty(shape):
    values, indices = ja.sort(np.zeros(shape, np.float16))
    assert values.shape == indices.shape == shape
    assert values.dtype == np.float16 and indices.dtype == np.int32


def test_jit_vmap_and_eager_agree():
    x = np.random.default_rng(2).integers(-3, 4, (4, 3, 20)).astype(np.float32)
    expected = reference(x, False)
    for run in (ja.sort, jax.jit(ja.sort), jax.vmap(ja.sort), jax.vmap(jax.vmap(ja.sort))):
        for got, want in zip(run(x), expected):
            np.testing.assert_array_equal(got, want)
    for got, want in zip(jax.vmap(ja.sort, in_axes=2)(np.moveaxis(x, 1, 2)), expected):
        np.testing.assert_array_equal(got, np.moveaxis(want, 1, 0))


def test_vmap_leaves_one_operation():
    jaxpr = jax.make_jaxpr(jax.vmap(lambda x: ja.sort(x, descending=True)))(np.zeros((2, 3, 4), np.float32))
    assert [equation.primitive.name for equation in jaxpr.eqns] == ["sort"]
    assert jaxpr.eqns[0].params == {"descending": True}
