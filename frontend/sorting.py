"""Sorts of JAX as those of `ascend.sort`, which has the same order: stable, -0.0 equal to 0.0, NaN last.

One key is sorted at a time, the last one first, which keeps the order of those before where keys are equal. Integers
are two keys, their lower and their upper half. `top_k` is what a descending sort begins with: of equal elements the
first ones, as its documentation says, also of zeros with different signs, which XLA's own takes apart.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax import lax

from jascend.libraries import NoLibraryOperator, register
from jascend.ops.sort import sort_p

_FLOATS = (jnp.float32, jnp.float16, jnp.bfloat16)
_NARROW = (jnp.bool_, jnp.int8, jnp.uint8)


def _parts(key: jax.Array) -> list[jax.Array]:
    """Floats that are in order as a key is, the one that decides last."""
    if key.dtype in _FLOATS:
        return [key]
    if key.dtype in _NARROW:
        return [key.astype(jnp.float32)]
    if key.dtype not in (jnp.int32, jnp.uint32):
        raise NoLibraryOperator(f"a sort of {key.dtype}; kernels sort floats, and integers of up to 32 bits")
    words = lax.bitcast_convert_type(key, jnp.int32)
    shift = lax.shift_right_arithmetic if key.dtype == jnp.int32 else lax.shift_right_logical
    upper = shift(words, jnp.full_like(words, 16))
    return [(words & 0xFFFF).astype(jnp.float32), upper.astype(jnp.float32)]


def _taken(x: jax.Array, order: jax.Array) -> jax.Array:
    return jnp.take_along_axis(x, order, axis=-1, mode="promise_in_bounds")


def _ordered(keys: Sequence[jax.Array], descending: bool = False) -> tuple[jax.Array, jax.Array]:
    """The decisive part of the first key in order, and where each element comes from; along the last axis."""
    values = order = None
    for part in [part for key in reversed(keys) for part in _parts(key)]:
        values, found = sort_p.bind(part if order is None else _taken(part, order), descending=descending)
        order = found if order is None else _taken(order, found)
    return values, order


def _sort(*operands, dimension: int, num_keys: int, **_):
    rows = [_rows(x, dimension) for x in operands]
    values, order = _ordered(rows[:num_keys])

    results = [values if i == 0 and x.dtype in _FLOATS else _taken(x, order) for i, x in enumerate(rows)]
    return [_unrolled(result, x.shape, dimension) for result, x in zip(results, operands)]


def _rows(x: jax.Array, dimension: int) -> jax.Array:
    """The lines along a dimension as rows of a matrix."""
    return jnp.moveaxis(x, dimension, -1).reshape(-1, x.shape[dimension])


def _unrolled(rows: jax.Array, shape: Sequence[int], dimension: int) -> jax.Array:
    """The other way round, with as many elements a line as there are in a row."""
    others = [size for dim, size in enumerate(shape) if dim != dimension]
    return jnp.moveaxis(rows.reshape(*others, rows.shape[1]), -1, dimension)


def _top_k(x, *, k, axis=-1, **_):
    axis = axis % x.ndim
    rows = _rows(x, axis)
    values, order = _ordered([rows], descending=True)
    order = lax.slice_in_dim(order, 0, k, axis=1)
    values = lax.slice_in_dim(values, 0, k, axis=1) if x.dtype in _FLOATS else _taken(rows, order)
    return [_unrolled(each, x.shape, axis) for each in (values, order)]


register(lax.sort_p, _sort, multiple_results=True)
register(lax.top_k_p, _top_k, multiple_results=True)
