"""Penalties, biases and masks in front of a filter: computed where its kernel loads, with the bits that XLA gives."""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import jascend as ja

rng = np.random.default_rng(0)


def arguments(rows, vocabulary):
    return (
        rng.normal(0, 3, (rows, vocabulary)).astype(ml_dtypes.bfloat16), rng.random((rows, vocabulary)) < 0.3,
        rng.random(vocabulary) < 0.9, rng.integers(0, 3, (rows, vocabulary)).astype(np.int32),
        np.resize(np.array([1.0, 2.0, 0.5], np.float32), rows), np.arange(rows) % 2 == 0,
        np.resize(np.array([5, 500, 0], np.int32), rows),
    )  # fmt: skip


def masked(logits, seen, allowed, counts, penalty, flag, k):
    x = logits.astype(jnp.float32)
    return ja.apply_top_k_top_p(jnp.where(allowed & ~seen | flag[:, None], x, x - 3), None, k)


def all_at_once(logits, seen, allowed, counts, penalty, flag, k):
    """`x` and `seen` are used several times; what is computed for a chunk does not fit the unified buffer at once."""
    x = logits.astype(jnp.float32)
    x = jnp.where(seen, jnp.where(x > 0, x / penalty[:, None], x * penalty[:, None]), x)
    x = x - 0.5 * counts.astype(jnp.float32) - 0.25 * (counts > 0)
    x = jnp.where(allowed & ~seen | flag[:, None], x, x - 3)
    return ja.apply_top_k_top_p(x / jnp.where(penalty == 1, 4.0, penalty)[:, None], None, k)


@pytest.mark.parametrize(
    ("function", "rows", "vocabulary"),
    [(masked, 2, 1500), pytest.param(all_at_once, 3, 20011, marks=pytest.mark.long)],
)
def test_same_bits_in_one_launch(function, rows, vocabulary):
    values = arguments(rows, vocabulary)
    program = ja.compile(function, *values)
    assert len(program.kernels) == 1
    assert (np.asarray(program(*values)) == np.asarray(jax.jit(function)(*values))).all()


def test_what_comes_from_other_columns_is_not_computed_inside():
    def shifted(logits, k):
        return ja.apply_top_k_top_p(jnp.roll(logits, 1, axis=-1), None, k)

    values = np.random.default_rng(1).normal(size=(2, 1500)).astype(np.float32), np.full(2, 3, np.int32)
    program = ja.compile(shifted, *values)
    assert [kernel.name for kernel in program.kernels] == ["jascend_shifted_row_wise", "jascend_shifted_apply_top_k_top_p"]
    np.testing.assert_array_equal(program(*values), jax.jit(shifted)(*values))
