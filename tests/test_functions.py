"""Functions without an instruction, in generated kernels, against double precision."""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from graphs import on_tiles

import jascend as ja

RNG = np.random.default_rng(0)
SPECIAL = np.array([0, -0.0, np.inf, -np.inf, np.nan, 1e-30, -1e-30, 0.5, -0.625, 88, 1], np.float32)
X = np.concatenate([SPECIAL, RNG.normal(size=500), RNG.uniform(-20, 20, 500), 10 ** RNG.uniform(-9, 0, 500)]).astype(np.float32)
# The function, its value in double precision, its arguments, and how far it may be off: in all, and of the value.
FUNCTIONS = {
    "tanh": (jnp.tanh, np.tanh, X, 0, 3e-7),
    "expm1": (jnp.expm1, np.expm1, X, 0, 7e-7),
    "log1p": (jnp.log1p, np.log1p, np.abs(X), 0, 7e-7),
    "sin": (jnp.sin, np.sin, X, 2e-7, 0),
    "cos": (jnp.cos, np.cos, X, 2e-7, 0),
    "tan": (jnp.tan, np.tan, np.concatenate([SPECIAL, RNG.uniform(-1.4, 1.4, 500)]).astype(np.float32), 0, 7e-7),
    "sin_of_positions": (jnp.sin, np.sin, RNG.uniform(0, 4e5, 2000).astype(np.float32), 2e-7, 0),
    "cos_of_positions": (jnp.cos, np.cos, RNG.uniform(0, 4e5, 2000).astype(np.float32), 2e-7, 0),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values(name):
    function, exact, x, absolute, relative = FUNCTIONS[name]
    (actual,) = on_tiles(ja.compile(lambda x: function(x), x[None]), x[None])
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(actual[0], exact(x.astype(np.float64)).astype(np.float32), relative, absolute)


def test_powers():
    """Of all pairs of special values, and of others to as many units in the last place as the exponent has."""
    special = np.array([0, -0.0, 1, -1, 2, -2, 3, 0.5, -0.5, 2.5, np.inf, -np.inf, np.nan], np.float32)
    x, y = (table.reshape(1, -1).astype(np.float32) for table in np.meshgrid(special, special))
    program = ja.compile(lambda x, y: x**y, x, y)
    (actual,) = on_tiles(program, x, y)
    with np.errstate(all="ignore"):
        expected = np.power(x, y)
    np.testing.assert_allclose(actual, expected, rtol=1e-6)
    signs = np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(actual)[~signs], np.signbit(expected)[~signs])
    x, y = (RNG.uniform(0.01, 9, 3000).astype(np.float32)[None], RNG.uniform(-9, 9, 3000).astype(np.float32)[None])
    (actual,) = on_tiles(ja.compile(lambda x, y: x**y, x, y), x, y)
    wide = x.astype(np.float64) ** y
    assert (np.abs(actual / wide - 1) / 2**-23 < np.abs(y * np.log(x)) + 2).all()


def test_zeros_keep_their_signs():
    x = np.tile(np.array([[0.0, -0.0]], np.float32), (1, 32))

    def functions(x):
        odd = jnp.sin, jnp.tan, jnp.tanh, jnp.sinh, jnp.expm1, jnp.log1p, jnp.sign, jnp.sqrt
        return [function(x) for function in (*odd, jnp.floor, jnp.ceil, jnp.trunc, jnp.rint, jax.nn.gelu, jax.nn.silu)]

    for actual in on_tiles(ja.compile(functions, x), x):
        np.testing.assert_array_equal(actual, x)
        np.testing.assert_array_equal(np.signbit(actual), np.signbit(x))


def test_sines_stay_sines_far_out():
    """No more than half a turn is left, whatever has been lost of it."""
    x = np.array([[1e7, -3e9, 3e38, np.inf]], np.float32)
    (actual,) = on_tiles(ja.compile(lambda x: jnp.sin(x), x), x)
    assert (np.abs(actual[0, :3]) <= 1.0001).all()


def test_on_the_twin():
    """The text of the kernel gives what its tiles give; exponentials and logarithms are those of other libraries."""

    def all_of_them(x):
        return jnp.tanh(x) + jnp.sin(x) + jnp.cos(x) + jnp.expm1(x) + jnp.log1p(jnp.abs(x)) + jnp.sign(x) + jnp.abs(x) ** 0.3

    program = ja.compile(all_of_them, X[None])
    (tiles,) = on_tiles(program, X[None])
    np.testing.assert_allclose(program(X[None]), tiles, rtol=2e-6, atol=5e-7)


def test_rounded_once():
    """Of a narrow dtype the function is computed in float32."""
    x = X[None, 5:].astype(ml_dtypes.bfloat16)
    (actual,) = on_tiles(ja.compile(lambda x: jnp.tanh(x), x), x)
    np.testing.assert_array_equal(actual, np.tanh(x.astype(np.float64)).astype(np.float32).astype(x.dtype))


def test_activations():
    x = RNG.normal(0, 4, (3, 500)).astype(np.float32)
    for function in (jax.nn.gelu, jax.nn.softplus, jax.nn.mish, jax.nn.silu, jnp.sign, lambda x: 30 * jnp.tanh(x / 30)):
        (actual,) = on_tiles(ja.compile(lambda x, function=function: function(x), x), x)
        np.testing.assert_allclose(actual, jax.jit(function)(x), rtol=2e-6, atol=1e-6)


def test_comparisons_of_any_kind():
    """Also those that hardware does not make: of masks, and with what is no number."""
    x, y = X[None], X[None, ::-1].copy()

    def compared(x, y):
        return [m * 1.0 for m in (jnp.isnan(x), ~jnp.isnan(x), (x > 0) == (y > 0), (x > 0) != (y > 0), jnp.sign(-x))]

    program = ja.compile(compared, x, y)
    for actual, expected in zip(on_tiles(program, x, y), jax.jit(compared)(x, y), strict=True):
        np.testing.assert_array_equal(actual, expected)
