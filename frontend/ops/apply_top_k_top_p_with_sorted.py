"""`jascend.apply_top_k_top_p_with_sorted`: the top-k and top-p filter on rows that are sorted already."""

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import batching

from jascend.dialect import rules
from jascend.numerics import bits, blocks
from jascend.ops import _arguments as arguments
from jascend.ops._primitive import (
    eager,
    leading_dimensions,
    not_differentiable,
    optional,
    register_fallback,
    varying,
    without_leading,
)
from jascend.ops.apply_top_k_top_p import nucleus, top_k_floor
from jascend.platform import register_ascend_lowering


def apply_top_k_top_p_with_sorted(sorted_value, sorted_indices, p=None, k=None, logits=None, *, target=None):
    """The filter of `apply_top_k_top_p`, on rows sorted ascending by `jascend.sort`, back in vocabulary order.

    The definition is that of the CANN graph operator ApplyTopKTopPWithSorted. That the rows are sorted, and that each
    row of indices is a permutation, is the caller's contract: it is not checked, and without it the result is
    unspecified. Equal values are removed in the order in which they stand in `sorted_value`; with a stable sort the
    result is bit for bit that of `apply_top_k_top_p(logits, p, k)`.

    Results go to `out[b, sorted_indices[b, j]]`; CANN's documents print the inverse, its kernels do this.

    Args:
        sorted_value: [B, V] float32, float16 or bfloat16, ascending, NaN last.
        sorted_indices: [B, V] int32, the position each value had.
        p: [B] of the dtype of `sorted_value`, or a number for all rows; None turns top-p off.
        k: [B] int32, or an integer for all rows; None turns top-k off. One of `p` and `k` is required.
        logits: [B, V], the rows before sorting. Lets faster kernels be used; does not change the result.
        target: an Ascend product whose limits apply, or None for what any of them accepts.

    Returns:
        [B, V], dtype of `sorted_value`; kept values are exact copies, the others -inf.

    Raises:
        jascend.errors.Unsupported: `target` is not a product that has the operator.
        jascend.errors.ParamNullptr: `sorted_value` or `sorted_indices` is None.
        jascend.errors.ParamInvalid: an argument has the wrong dtype.
        jascend.errors.TilingError: an argument has the wrong rank or size, or `p` and `k` are both None.
    """
    op = "apply_top_k_top_p_with_sorted"
    sorted_value = arguments.array(op, "sorted_value", sorted_value)
    sorted_indices = arguments.array(op, "sorted_indices", sorted_indices)
    p = arguments.row_parameter(op, "p", p)
    k = arguments.row_parameter(op, "k", k)
    logits = arguments.array(op, "logits", logits)
    rows = arguments.shaped(sorted_value)
    rules.apply_top_k_top_p_with_sorted(
        rows,
        arguments.shaped(sorted_indices),
        arguments.parameter_shaped(p, rows, rows and rows.dtype),
        arguments.parameter_shaped(k, rows, "int32"),
        arguments.shaped(logits),
        target=target,
    )
    p = arguments.parameter_operand(p, rows.shape[0], rows.dtype)
    k = arguments.parameter_operand(k, rows.shape[0], "int32")
    return apply_top_k_top_p_with_sorted_p.bind(
        *(x for x in (sorted_value, sorted_indices, p, k, logits) if x is not None),
        has_p=p is not None,
        has_k=k is not None,
        has_logits=logits is not None,
        target=target,
    )


def _abstract_eval(sorted_value, sorted_indices, *others, has_p, has_k, has_logits, target):
    p, k, logits = optional(others, has_p, has_k, has_logits)
    rules.apply_top_k_top_p_with_sorted(
        without_leading(sorted_value, 2),
        without_leading(sorted_indices, 2),
        None if p is None else without_leading(p, 1),
        None if k is None else without_leading(k, 1),
        None if logits is None else without_leading(logits, 2),
        target=target,
    )
    axes = varying(sorted_value, sorted_indices, *others)
    return sorted_value.update(weak_type=False, manual_axis_type=axes)


def _fallback(sorted_value, sorted_indices, *others, has_p, has_k, has_logits, target):
    p, k, _ = optional(others, has_p, has_k, has_logits)
    size, dtype = sorted_value.shape[-1], sorted_value.dtype
    if 0 in sorted_value.shape:
        return sorted_value
    position = _inverse(sorted_indices)
    stored = bits.bits_of(sorted_value)
    sorted_keys = bits.keys_of(stored, dtype)
    # Back in vocabulary order, sums run over the same blocks as without a sort, and give the same bits.
    keys = jnp.take_along_axis(sorted_keys, position, axis=-1)
    keys = blocks.pad(keys, bits.PADDING_KEY)

    floor = jnp.full(sorted_value.shape[:-1], -bits.nan_key(dtype))
    if k is not None:
        kth = jnp.take_along_axis(sorted_keys, (size - jnp.clip(k, 1, size))[..., None], axis=-1)[..., 0]
        floor = top_k_floor(kth, k, size, dtype)
    boundary, removed = floor, 0
    if p is not None:
        boundary, removed = nucleus(keys, floor, p, dtype)
        boundary = jnp.maximum(boundary, floor)
    # What is removed is a prefix of the sorted row.
    smaller = jnp.sum(sorted_keys < boundary[..., None], axis=-1, dtype=jnp.int32)
    stored = jnp.take_along_axis(stored, position, axis=-1)
    kept = position >= (smaller + removed)[..., None]
    return bits.from_bits(jnp.where(kept, stored, bits.negative_infinity_bits(dtype)), dtype)


def _inverse(permutation):
    """[..., V] -> [..., V]: where each index stands in the permutation."""
    size = permutation.shape[-1]

    def row(indices):
        places = jnp.arange(size, dtype=jnp.int32)
        return jnp.zeros(size, jnp.int32).at[indices].set(places, mode="drop", unique_indices=True)

    for _ in permutation.shape[:-1]:
        row = jax.vmap(row)
    return row(permutation)


def _ascend(*, has_p, has_k, has_logits, target):
    return {} if target is None else {"target": target}, [1, 1, int(has_p), int(has_k), int(has_logits)]


apply_top_k_top_p_with_sorted_p = Primitive("apply_top_k_top_p_with_sorted")
apply_top_k_top_p_with_sorted_p.def_impl(eager(apply_top_k_top_p_with_sorted_p))
apply_top_k_top_p_with_sorted_p.def_abstract_eval(_abstract_eval)
not_differentiable(apply_top_k_top_p_with_sorted_p)
batching.primitive_batchers[apply_top_k_top_p_with_sorted_p] = leading_dimensions(apply_top_k_top_p_with_sorted_p)
register_fallback(apply_top_k_top_p_with_sorted_p, _fallback)
register_ascend_lowering(apply_top_k_top_p_with_sorted_p, _ascend)
