"""Gathers, scatters, slices and updates along any dimensions, against JAX; calls of the libraries on the host."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from graphs import beside_jax, on_tiles

import jascend as ja

RNG = np.random.default_rng(0)


def normal(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def places(size, *shape, distinct=False):
    """Positions from -size on; `distinct`: no two of a row."""
    if distinct:
        rows = [RNG.permutation(size)[: shape[-1]] for _ in range(int(np.prod(shape[:-1])))]
        return np.array(rows, np.int32).reshape(shape)
    return RNG.integers(-size, size, shape).astype(np.int32)


ROWS = np.arange(3)[:, None]
X = normal(3, 5, 4, 6)
CASES = {
    "elements": (lambda x, r, c: (x[r, c], x[2, 3], x[r][:, c]), normal(9, 8), places(9, 5), places(8, 5)),
    "chosen": (lambda x, t: x[jnp.arange(3), t], normal(3, 40), places(40, 3)),
    "around": (lambda x, a, b: (x[ROWS, :, a, b], x[:, :, a[0], b[1]], x[:, a[:, :2]]), X, places(4, 3, 7), places(6, 3, 7)),
    "filled": (lambda x, i: x.at[i, i].get(mode="fill", fill_value=7), normal(4, 5), np.array([3, 4, -1, -4, -5, 9], np.int32)),
    "pages": (lambda x, t: x[t].reshape(3, 8, 2, 8), normal(16, 4, 2, 8), places(16, 3, 2)),
    "window": (lambda x, s: jax.lax.dynamic_slice(x, (s[0], s[1], 0, s[2]), (2, 3, 4, 2)), X, np.array([9, -7, 3], np.int32)),
    "windows": (
        lambda x, s: jax.vmap(lambda x, s: jax.lax.dynamic_slice(x, (s, 1, 0), (2, 2, 6)))(x, s), X, np.array([0, 9, 2], np.int32),
    ),
    "updates": (
        lambda x, u, s: jax.vmap(lambda x, u, s: jax.lax.dynamic_update_slice(x, u, (s, 1, 0)))(x, u, s),
        X, normal(3, 2, 2, 3), np.array([-3, 9, 2], np.int32),
    ),
    "slots": (
        lambda x, k, s: x.at[jnp.arange(3), s].set(k), normal(3, 32, 2, 8), normal(3, 2, 8), np.array([5, 32, -1], np.int32),
    ),
    "pages_written": (
        lambda x, k, p, s: x.at[p, s].set(k, mode="promise_in_bounds"),
        normal(16, 4, 2, 8), normal(3, 2, 8), places(16, 1, 3, distinct=True)[0], places(4, 3),
    ),
    "set_around": (lambda x, b, y: x.at[ROWS, :, :, b].set(y), X, places(6, 3, 4, distinct=True), normal(3, 4, 5, 4)),
    "one": (lambda x, i: (x.at[i].set(1.0), x.at[:, 3].set(0.0)), normal(9, 8), np.array([12], np.int32)),
    "flags": (
        lambda x, i, b: (jnp.zeros((3, 9), bool).at[ROWS, i].set(x > 0), b.at[i[0]].set(1), b.at[i].get(mode="fill"), (x > 0).at[i].get()),
        normal(3, 4), np.array([[0, 8, 3, 9], [1, 1, 2, 2], [-9, 4, 12, 5]], np.int32), np.arange(6, dtype=np.int8),
    ),
    "none_inside": (lambda x, i: x.at[i].set(1.0), normal(9, 8), np.array([12, 9, -10], np.int32)),
    "added": (lambda x, i, y: (x.at[i].add(y), x.at[:, i, 2].add(1.0)), normal(9, 9, 4), np.array([1, 1, 12, -9], np.int32),
              normal(4, 9, 4)),
    "whole": (lambda x, y: (x.at[:].set(y), x.at[...].add(y)), normal(4, 5), normal(4, 5)),
    "counts": (lambda ids: jnp.zeros((3, 20), jnp.int32).at[ROWS, ids].add(1), places(20, 3, 9)),
    "segments": (lambda y, i: jax.ops.segment_sum(y, i, 6), normal(5, 8), places(6, 5)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_values(name):
    function, *arguments = CASES[name]
    results = on_tiles(ja.compile(function, *arguments), *arguments)
    for actual, expected in beside_jax(results, function, *arguments):
        np.testing.assert_allclose(actual, expected, rtol=1e-6)


def test_updates_out_of_bounds_change_nothing_twice():
    """What repeats another update writes the same, -0 included: the tensor is as it was but for what was inside."""
    x, y = np.full((6, 4), -0.0, np.float32), normal(5, 4)
    index = np.array([7, 2, -9, 5, 6], np.int32)
    (actual,) = on_tiles(ja.compile(lambda x, i, y: x.at[i].set(y), x, index, y), x, index, y)
    expected = x.copy()
    expected[[2, 5]] = y[[1, 3]]
    np.testing.assert_array_equal(actual.view(np.int32), expected.view(np.int32))


def test_any_batch():
    (batch,) = jax.export.symbolic_shape("b")
    specs = jax.ShapeDtypeStruct((batch, 40), np.float32), jax.ShapeDtypeStruct((batch,), np.int32)
    chosen = lambda x, t: jnp.take_along_axis(x, t[:, None], 1)[:, 0]
    program = ja.compile(chosen, *specs)
    for rows in (1, 7):
        x, t = normal(rows, 40), np.abs(places(40, rows)) % 40
        (actual,) = on_tiles(program, x, t)
        np.testing.assert_array_equal(actual, x[np.arange(rows), t])


def test_what_is_refused():
    with pytest.raises(ja.errors.Unsupported, match="positions in dimensions .0, 1. of .70000, 70000.; kernels count them with int32"):
        ja.compile(lambda x, i: x[i, i], jax.ShapeDtypeStruct((70000, 70000), np.float32), jax.ShapeDtypeStruct((3,), np.int32))


def test_rows_of_a_cache_are_written_as_rows():
    """A window that is all of a dimension is no list of elements."""

    def step(cache, new, at):
        return jax.vmap(lambda cache, new, at: jax.lax.dynamic_update_slice(cache, new, (at, 0, 0)))(cache, new, at)

    program = ja.compile(step, normal(3, 32, 2, 8), normal(3, 1, 2, 8), np.zeros(3, np.int32))
    (call,) = program.library_calls
    assert [x.shape for x in call.operand_types] == [(96, 2, 8), (3,), (3, 2, 8)]
