"""Sorts of JAX in a graph: by `ascend.sort`, with JAX's order."""

import jax.numpy as jnp
import numpy as np
import pytest
from graphs import beside_jax, on_tiles
from jax import lax

import jascend as ja

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 40)).astype(np.float32)
X[:, ::7], X[:, 1::9], X[:, 2::11], X[0, 3], X[1, 4] = 0.0, -0.0, np.nan, np.inf, -np.inf
WIDE = RNG.integers(-(1 << 31), 1 << 31, (3, 40)).astype(np.int32)
FEW = RNG.integers(0, 4, (3, 40)).astype(np.int32)
CUBE = RNG.normal(size=(3, 5, 4)).astype(np.float32)
CASES = {
    "floats": (lambda x: (jnp.sort(x), jnp.argsort(x), -jnp.sort(-x), jnp.argsort(x, descending=True)), X),
    "integers": (lambda x, e: (jnp.sort(x), jnp.argsort(x), jnp.argsort(e), jnp.sort(e > 2)), WIDE, FEW),
    "without_sign": (lambda x: jnp.sort(lax.bitcast_convert_type(x, jnp.uint32)).astype(jnp.int32), WIDE),
    "several_keys": (lambda x, k, e: (lax.sort((e, x, k), num_keys=2), lax.sort_key_val(k, x), jnp.lexsort((x, e))), X, WIDE, FEW),
    "other_axes": (lambda y, k: (jnp.sort(y, 1), jnp.argsort(y, 0), jnp.sort(k.reshape(-1)), jnp.median(y, 1)), CUBE, WIDE),
    "largest": (lambda x, k, y: (lax.top_k(x, 7), lax.top_k(k, 5), lax.top_k(y, 2)), np.nan_to_num(X) + 3, WIDE, CUBE),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_values(name):
    function, *arguments = CASES[name]
    results = on_tiles(ja.compile(function, *arguments), *arguments)
    for actual, expected in beside_jax(results, function, *arguments):
        np.testing.assert_array_equal(actual, expected)
        if actual.dtype == np.float32:
            numbers = ~np.isnan(actual)
            np.testing.assert_array_equal(np.signbit(actual)[numbers], np.signbit(expected)[numbers])


def test_a_sort_alone_is_one_kernel():
    assert [kernel.name for kernel in ja.compile(lambda x: jnp.sort(x), X).kernels] == ["jascend_lambda_sort"]


def test_equal_elements_of_top_k_keep_their_order():
    x = np.tile(np.array([[0.0, -0.0, 1.0, 1.0]], np.float32), (1, 16))
    values, places = on_tiles(ja.compile(lambda x: lax.top_k(x, 40), x), x)
    expected = np.argsort(-x, axis=-1, kind="stable")[:, :40]
    np.testing.assert_array_equal(places, expected)
    np.testing.assert_array_equal(np.signbit(values), np.signbit(np.take_along_axis(x, expected, 1)))


def test_what_is_refused():
    with pytest.raises(ja.errors.Unsupported, match="'sort': a sort of int16; kernels sort floats, and integers"):
        ja.compile(lambda x: jnp.sort(x), FEW.astype(np.int16))
