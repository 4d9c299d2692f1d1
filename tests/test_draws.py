"""Random numbers that belong to no sampler: drawn as elementwise work, the bits those of JAX."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from graphs import beside_jax, on_tiles

import jascend as ja

KEY = jax.random.key(2**40 + 5)


def test_numbers_are_those_of_jax():
    def function(x, key, keys):
        first, second = jax.random.split(key)
        bits = jax.lax.bitcast_convert_type(jax.random.bits(second, (7,)), jnp.int32)
        noise = jax.vmap(lambda key: jax.random.uniform(key, (5,)))(keys)
        return x + jax.random.uniform(first, x.shape), bits, x * jax.random.bernoulli(key, 0.3, x.shape), noise

    arguments = jnp.ones((3, 40)), KEY, jax.random.split(KEY, 4)
    program = ja.compile(function, *arguments)
    for actual, expected in beside_jax(on_tiles(program, *arguments), function, *arguments):
        np.testing.assert_array_equal(actual, expected)


def test_on_the_twin():
    arguments = jnp.arange(40.0), KEY
    function = lambda x, key: x + jax.random.uniform(key, x.shape, minval=-1)
    program = ja.compile(function, *arguments)
    np.testing.assert_array_equal(program(*arguments), jax.jit(function)(*arguments))


@pytest.mark.parametrize(
    ("function", "key", "message"),
    [
        (lambda key: jax.random.uniform(key, (4,), jnp.bfloat16), KEY, "'random_bits': random numbers of 16 bits"),
        (lambda key: jax.random.uniform(key, (4,)), jax.random.key(0, impl="rbg"), "'random_bits': random bits of key<rbg>"),
    ],
)
def test_what_is_refused(function, key, message):
    with pytest.raises(ja.errors.Unsupported, match=message):
        ja.compile(function, key)
