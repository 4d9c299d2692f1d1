"""Kernels that take parts of rows and set parts side by side: one launch, whatever is sliced and joined."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from graphs import beside_jax, on_tiles

import jascend as ja

F32 = np.float32


def normal(*shape, dtype=F32):
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(dtype)


def check(function, *arguments, kernels=1, twin=False, calls=0):
    program = ja.compile(function, *arguments)
    assert (len(program.kernels), len(program.library_calls)) == (kernels, calls)
    results = program(*arguments) if twin else on_tiles(program, *arguments)
    for a, e in beside_jax(results, function, *arguments):
        np.testing.assert_allclose(np.asarray(a, np.float64), np.asarray(e, np.float64), rtol=2e-6, atol=2e-6)
    return program


def rope(x, positions, theta=10000.0):
    frequencies = theta ** (-jnp.arange(0, x.shape[-1], 2, dtype=jnp.float32) / x.shape[-1])
    angles = positions[:, None].astype(jnp.float32) * frequencies
    cos, sin = jnp.cos(angles)[:, None], jnp.sin(angles)[:, None]
    first, second = jnp.split(x.astype(jnp.float32), 2, -1)
    return jnp.concatenate([first * cos - second * sin, second * cos + first * sin], -1).astype(x.dtype)


def test_rotary_embedding():
    check(rope, normal(3, 4, 64), np.array([0, 70, 9000], np.int32), twin=True)


def test_gated_activation():
    def gated(x):
        gate, up = jnp.split(x, 2, -1)
        return jax.nn.silu(gate) * up

    check(gated, normal(3, 200))
    check(gated, normal(2, 40000))  # in chunks


@pytest.mark.parametrize("start", [0, 1, 7])
def test_parts_of_rows(start):
    check(lambda x: x[:, start : start + 9] * x[:, -9:], normal(5, 40))
    check(lambda x: x[:, start : start + 9] * 2, normal(5, 40))
    check(lambda x: x[:, start : start + 1] * 2 + x[:, 2:3], normal(5, 40))
    check(lambda x: 2 * x[start:, :], normal(8, 40))
    check(lambda x: x[start:, 3:6] + x[start, 30], normal(8, 40))
    check(lambda x: x - x[:, start : start + 1], normal(5, 40))
    check(lambda x, w: x * w[start : start + 40], normal(3, 40), normal(60))
    check(lambda x: jnp.sum(x[:, start : start + 20], -1, keepdims=True) * x[:, :33], normal(5, 40))
    check(lambda x: x[:, 1, start:] * x[:, 0, : 40 - start], normal(2, 3, 40))


BYTES = np.random.default_rng(0).integers(-9, 9, (3, 70, 4)).astype(np.int8)
APART = {
    "pairs": (lambda x: (lambda p: (p[..., 0] * p[..., 1], (p[..., 1] * 2).sum(-1)))(x.reshape(4, 64, 2)), normal(4, 128), 2, 0),
    "of_four": (lambda x: (x[:, 5:40, 1] * 2, x[:, :, 2].astype(F32).max(-1)), normal(3, 70, 4, dtype=jnp.bfloat16), 2, 0),
    "in_two_steps": (lambda x: x.reshape(3, 70, 2, 2)[:, :, 1, 0] + 1, normal(3, 70, 4), 1, 0),
    "bytes": (lambda x: (x[:, :, 1].astype(jnp.int32) + 1, x[:, :, 3].astype(F32) * 2), BYTES, 1, 0),
    "truths": (lambda x: jnp.where(x[:, :, 2], F32(1), F32(0.5)), BYTES > 0, 1, 0),
    "of_seven": (lambda x: x[:, :, 3] * 2, normal(3, 6, 7), 1, 1),  # by a library: no pattern has every seventh
    "one_each": (lambda x: (x[:, 2:3, 1] + 1, x.reshape(3, 42)[:, 5] * 2), normal(3, 6, 7), 2, 0),
    "turned": (lambda x: jnp.exp(x)[:, 5][None] * jnp.ones((3, 1)), normal(4, 128), 2, 0),
}  # fmt: skip


@pytest.mark.parametrize("name", APART)
def test_columns_with_others_between_them(name):
    function, x, kernels, calls = APART[name]
    check(function, x, kernels=kernels, calls=calls, twin=name == "of_four")


def test_pairs_are_set_side_by_side_by_a_transposition():
    """A kernel would write them one after the other."""

    def rotated(x, cos, sin):
        first, second = jnp.moveaxis(x.reshape(2, 8, 32, 2), -1, 0)
        return jnp.stack([first * cos - second * sin, first * sin + second * cos], -1).reshape(x.shape)

    check(rotated, normal(2, 8, 64), normal(8, 32), normal(8, 32), kernels=1, calls=3)


def test_parts_side_by_side():
    x, y = normal(4, 24), normal(4, 40)
    check(lambda x, y: 2 * jnp.concatenate([x, -y, x * x, y + 1], 1), x, y)
    check(lambda x, y: jnp.concatenate([y, x], 1)[:, 30:50] + x[:, :20], x, y)
    check(lambda x, y: jnp.concatenate([x, jnp.sum(y, 1, keepdims=True)], 1) / 2, x, y)
    check(lambda x, y: jnp.pad(x + 1, ((0, 0), (3, 13))) * y, x, y)
    check(lambda x: jax.lax.pad(x * 2, F32(7), ((0, 0, 0), (-1, 3, 0))), x)
    check(lambda x: jnp.roll(x * 2, 5, -1), y)


def test_a_norm_of_what_is_set_side_by_side():
    """Its row has to be there before it is summed."""
    check(lambda x, y: jax.nn.softmax(jnp.concatenate([x + 1, y], 1)), normal(4, 24), normal(4, 40), kernels=2)


def test_positions():
    (b,) = jax.export.symbolic_shape("b")

    def numbered(x):
        return x + jax.lax.broadcasted_iota(jnp.int32, x.shape, 0) + 100 * jax.lax.broadcasted_iota(jnp.int32, x.shape, 1)

    program = ja.compile(numbered, jax.ShapeDtypeStruct((b, 70), jnp.int32))
    assert not program.constants
    for rows in (1, 5, 130):
        x = np.ones((rows, 70), np.int32)
        (actual,) = on_tiles(program, x)
        np.testing.assert_array_equal(actual, 1 + np.arange(rows)[:, None] + 100 * np.arange(70))


def test_what_an_operator_takes():
    """A kernel of its own: an operator's rows lie in ways of their own."""

    def filtered(x, k):
        return ja.apply_top_k_top_p(x[:, 8:] * 2, k=k)

    check(filtered, normal(3, 300), np.array([1, 5, 9], np.int32), kernels=2)


def test_a_kernel_that_reads_certain_rows_serves_one_number_of_them():
    program = check(lambda x: x * x[3], normal(5, 16))
    assert not program.kernels[0].signature.any_rows
    assert check(lambda x: x[:, :8] * x[:, 8:], normal(5, 16)).kernels[0].signature.any_rows
