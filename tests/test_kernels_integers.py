"""Integers and booleans in kernels, on the twin: exact, as JAX has them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from graphs import beside_jax, on_tiles

import jascend as ja

LEAST, MOST = -(1 << 31), (1 << 31) - 1
DIVIDENDS = np.array([MOST, LEAST, 7, -7, 0, 10**9 + 7, -5, 12345678, 1 << 24, -(1 << 24) - 1], np.int32)
DIVISORS = np.array([1, 3, -2, 5, 384, LEAST, MOST, (1 << 24) + 1, -(1 << 24), -1, 1 << 30], np.int32)


def divisions(x, y):
    return jax.lax.div(x, y), jax.lax.rem(x, y), x // 10, x % -3


def bits(x, y):
    words = x.astype(jnp.uint32)
    return x & y, x | 3, x ^ y, ~x, x << 5, x >> 7, jax.lax.shift_right_logical(x, jnp.int32(9)), words < y.astype(jnp.uint32)


def shifts(x, y):
    """By amounts of their own; by 32 bits and more nothing but the sign is left."""
    amount = jnp.arange(x.size, dtype=jnp.int32).reshape(x.shape) % 35
    return x << amount, x >> amount, jax.lax.shift_right_logical(x, amount), jnp.int32(1) << (y & 31)


def narrow(x, y):
    byte = x.astype(jnp.int8)
    return byte, byte.astype(jnp.int32) + 1, (x > y).astype(jnp.int8), jnp.sign(x), jnp.abs(y), jnp.clip(x, -5, 9)


def booleans(x, y):
    above = x > y
    return above, ~above, jnp.where(above, x > 0, y > 0), (above & (y != 7)).astype(jnp.int32), jnp.logical_xor(above, x > 0)


def arguments():
    """All pairs; 0 only as a dividend."""
    x, y = (table.reshape(10, 11).astype(np.int32) for table in np.meshgrid(DIVIDENDS, DIVISORS, indexing="ij"))
    return x, y


@pytest.mark.parametrize("function", [divisions, bits, shifts, narrow, booleans])
def test_all_pairs(function):
    program = ja.compile(function, *arguments())
    for actual, expected in beside_jax(on_tiles(program, *arguments()), function, *arguments()):
        np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("target", ["ascend910b", pytest.param("ascend950", marks=pytest.mark.long)])
def test_on_the_twin(target):
    """One kernel with a division, shifts, and bits; one that writes booleans, of which a row is no whole block."""

    def function(x, y):
        return (x // y) ^ (x % 10 << 3), x // y > y >> 2

    program = ja.compile(function, *arguments(), target=target)
    for actual, expected in beside_jax(program(*arguments()), function, *arguments()):
        np.testing.assert_array_equal(actual, expected)


def test_division_by_zero_is_that_of_jax():
    x = DIVIDENDS[None]
    function = lambda x, y: (jax.lax.div(x, y), jax.lax.rem(x, y))
    for actual, expected in beside_jax(on_tiles(ja.compile(function, x, x * 0), x, x * 0), function, x, x * 0):
        np.testing.assert_array_equal(actual, expected)


def test_values_of_a_row_that_are_compared():
    """What is one value a row is computed on as many lanes as a comparison covers, also where a function compares inside."""
    x = np.random.default_rng(0).normal(size=(3, 40)).astype(np.float32)

    def function(x):
        total = x.sum(-1, keepdims=True)
        return x * jnp.tanh(total), x + jnp.argmax(x, -1)[:, None] // 3, total[:, 0] > 0, x.max(-1) > 2

    for actual, expected in beside_jax(ja.compile(function, x)(x), function, x):
        np.testing.assert_allclose(actual, expected, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("length", [20, 64, 77, 2000])
def test_rows_of_booleans(length):
    """Short rows, many at a time, of whole blocks of bytes and not; a row in a tile."""
    x = np.random.default_rng(length).normal(size=(9, length)).astype(np.float32)
    function = lambda x: x > x.max(-1, keepdims=True) / 2
    program = ja.compile(function, x)
    np.testing.assert_array_equal(program(x) if length == 77 else on_tiles(program, x)[0], jax.jit(function)(x))
