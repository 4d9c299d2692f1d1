"""Kernels of row-wise work to break on purpose: elementwise, reductions, slices, many short rows in one instruction."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import mutations
import numpy as np
from mutation_subjects import BF16, BOTH, normal, subject


def norm(x, weight):
    wide = x.astype(jnp.float32)
    return (wide * jax.lax.rsqrt(jnp.mean(wide * wide, -1, keepdims=True) + 1e-6) * weight).astype(x.dtype)


def layer_norm(x, weight, bias):
    mean, variance = jnp.mean(x, -1, keepdims=True), jnp.var(x, -1, keepdims=True)
    return (x - mean) / jnp.sqrt(variance + 1e-5) * weight + bias


def softmax(x, allowed):
    return jax.nn.softmax(4 * x, -1, where=allowed)


def quantized(x):
    scale = jnp.max(jnp.abs(x), -1, keepdims=True) / 127
    return jnp.round(x / scale).astype(jnp.int8)


def rope(x, positions):
    frequencies = 10000.0 ** (-jnp.arange(0, x.shape[-1], 2, dtype=jnp.float32) / x.shape[-1])
    angles = positions[:, None].astype(jnp.float32) * frequencies
    cos, sin = jnp.cos(angles)[:, None], jnp.sin(angles)[:, None]
    first, second = jnp.split(x.astype(jnp.float32), 2, -1)
    return jnp.concatenate([first * cos - second * sin, second * cos + first * sin], -1).astype(x.dtype)


def gated(x):
    gate, up = jnp.split(x, 2, -1)
    return jax.nn.silu(gate) * up


def selected(x, row, column, mask, flags):
    y = jnp.where(mask, x * column[:, None], -row)
    return jnp.where(flags[:, None], jax.nn.silu(y), jnp.minimum(y, 0.5))


@subject(targets=BOTH)
def norm_of_rows(target):
    call = {"x": normal(9, 2000, dtype=BF16), "weight": normal(2000)}
    return mutations.of_program(norm, call, cores=(1, 3, 9), target=target)


@subject(targets=BOTH)
def norms_of_short_rows(target):
    """Many in one instruction, and a last batch of fewer; on many cores the only one."""
    call = {"x": normal(700, 72, dtype=BF16), "weight": normal(72)}
    return mutations.of_program(norm, call, cores=(1, 3, 30), target=target)


@subject
def layer_norm_of_rows(target):
    call = {"x": normal(7, 1100), "weight": normal(1100), "bias": normal(1100)}
    return mutations.of_program(layer_norm, call, cores=(1, 3, 7), target=target)


@subject
def softmax_of_short_rows(target):
    call = {"x": normal(300, 128), "allowed": normal(300, 128) > -1}
    return mutations.of_program(softmax, call, cores=(1, 3, 30), target=target)


@subject(targets=BOTH)
def softmax_of_long_rows(target):
    """What counts is the last element, or one of the first; or all are large."""
    call = {"x": normal(5, 20001), "allowed": normal(5, 20001) > -1}
    columns = [-1, -1, 0, 700, 16390]
    call["x"][range(5), columns], call["allowed"][range(5), columns] = 9, True
    call["x"][3:] -= 20
    call["x"][-1] += 30000
    return mutations.of_program(softmax, call, cores=(1, 3), target=target)


@subject(targets=BOTH)
def softmax_of_shared_rows(target):
    """By several cores, each of which has a part of a row."""
    call = {"x": normal(2, 60001), "allowed": normal(2, 60001) > -1}
    call["x"][:, -1], call["allowed"][:, -1] = 9, True  # the last counts
    return mutations.of_program(softmax, call, cores=(1, 40), target=target)


@subject
def layer_norm_of_shared_rows(target):
    call = {"x": normal(1, 50001), "weight": normal(50001), "bias": normal(50001)}
    return mutations.of_program(layer_norm, call, cores=(1, 40), target=target)


@subject
def codes_of_short_rows(target):
    return mutations.of_program(quantized, {"x": normal(300, 96)}, cores=(1, 3, 30), target=target)


@subject
def rotary_embedding(target):
    call = {"x": normal(9, 4, 64), "positions": np.arange(9, dtype=np.int32) * 900}
    return mutations.of_program(rope, call, cores=(1, 3), target=target)


@subject
def gated_activation(target):
    return mutations.of_program(gated, {"x": normal(3, 40000)}, cores=(1, 2), target=target)


@subject
def elementwise(target):
    call = {
        "x": normal(60, 700), "row": normal(700), "column": normal(60), "mask": normal(60, 700) > 0.3,
        "flags": np.arange(60) % 2 == 0,
    }  # fmt: skip
    return mutations.of_program(selected, call, cores=(1, 3, 60), target=target)
