"""Loops and branches in a graph: fixed numbers of steps are unrolled, what the data decides is refused with the line."""

import jax.numpy as jnp
import numpy as np
import pytest
from graphs import beside_jax, on_tiles
from jax import lax

import jascend as ja

RNG = np.random.default_rng(0)
X, WEIGHTS, BIASES = (RNG.normal(size=shape).astype(np.float32) for shape in ((4, 16), (3, 16, 16), (3, 16)))


def layers(x, weights, biases):
    def layer(x, own):
        weight, bias = own
        x = jnp.tanh(x @ weight) + bias
        return x, x.sum(-1)

    return lax.scan(layer, x, (weights, biases)), lax.scan(layer, x, (weights, biases), reverse=True)


def steps(x, weights, biases):
    return lax.fori_loop(0, 3, lambda i, x: jnp.tanh(x @ weights[i]) + biases[i] * i, x)


@pytest.mark.parametrize("function", [layers, steps])
def test_fixed_numbers_of_steps(function):
    arguments = X, WEIGHTS, BIASES
    results = on_tiles(ja.compile(function, *arguments), *arguments)
    for actual, expected in beside_jax(results, function, *arguments):
        np.testing.assert_allclose(actual, expected, rtol=2e-5, atol=2e-5)


def test_stacked_weights_stay_where_they_are():
    """A layer's part of them is no copy; of one that starts inside a block of 32 bytes it is."""
    calls = lambda x, weights: [x @ weights[i] for i in range(3)]
    assert not ja.compile(calls, X, WEIGHTS).kernels
    assert len(ja.compile(calls, X[:, :3], WEIGHTS[:, :3, :3]).kernels) == 2


def test_branches_are_all_computed():
    """And a number chooses between them; one that is out of bounds is the first or the last branch's."""

    def function(x, step):
        two = lax.cond(step == 0, lambda x: (x * 2, x.sum(-1)), lambda x: (-x, x.max(-1)), x)
        three = [lax.switch(step + i, [jnp.exp, jnp.negative, jnp.tanh], x) for i in (-3, 0, 1, 9)]
        return two, three, jnp.where(step > 0, x, 0), jnp.select([step == 0, x > 0], [x, x + 1], x * 3)

    for step in (0, 1):
        arguments = X, jnp.asarray(step, jnp.int32)
        results = on_tiles(ja.compile(function, *arguments), *arguments)
        for actual, expected in beside_jax(results, function, *arguments):
            np.testing.assert_allclose(actual, expected, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: lax.while_loop(lambda x: x.max() > 1, lambda x: x / 2, x), "'while': a loop whose number of steps only the data"),
        (lambda x: lax.fori_loop(0, 65, lambda _, x: x / 2, x), "'scan': a loop of 65 steps; loops of 1 to 64 are unrolled"),
    ],
)
def test_what_is_refused(function, message):
    with pytest.raises(ja.errors.Unsupported, match=message) as caught:
        ja.compile(function, X)
    assert "test_loops.py:" in str(caught.value)
