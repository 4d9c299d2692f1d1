"""`jascend.apply_top_k_top_p`: the top-k and top-p (nucleus) filter of LLM decoding."""

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import Primitive
from jax.interpreters import batching

from jascend.dialect import rules
from jascend.numerics import bits, blocks, elementary, positions, threshold
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
from jascend.platform import register_ascend_lowering


#: Where top-k leaves at most this many elements of a row, top-p looks at those alone.
SHORT_LIST = 1024


def apply_top_k_top_p(logits, p=None, k=None, *, target=None):
    """Sets every logit outside a row's top-k and top-p sets to -inf, and leaves the others as they are.

    For every row, with the definition of aclnnApplyTopKTopP:

    1. *Top-k.* With 1 <= k < V, a logit is removed iff it is less than the k-th largest one. All copies of the k-th
       value stay, so more than k can. Any other k turns top-k off for that row.
    2. *Top-p.* Probabilities are the float32 softmax over what top-k kept. In ascending order, equal values by
       increasing index, a logit is removed iff the running sum up to and including it is at most `1 - p`. The last one
       in that order is never removed.

    Where CANN's sources differ among themselves: +inf or NaN in a row, or a NaN p, turns top-p off; a NaN k-th value
    turns top-k off; p > 1 removes nothing by top-p and p < 0 all but the last; p = 1 still removes probabilities that
    underflow to 0. `p` with a batch of 0 must have shape [0].

    A running sum within rounding of `1 - p` (1e-5) may fall either way, but always the same way: a row's result does
    not depend on the batch around it, nor on `jit` or `vmap`.

    Args:
        logits: [B, V] float32, float16 or bfloat16.
        p: [B] of the dtype of `logits`, or a number for all rows; None turns top-p off.
        k: [B] int32, or an integer for all rows; None turns top-k off. One of `p` and `k` is required.
        target: an Ascend product whose limits apply, or None for what any of them accepts.

    Returns:
        [B, V], dtype of `logits`; kept values are exact copies.

    Raises:
        jascend.errors.Unsupported: `target` is not a product that has the operator.
        jascend.errors.ParamNullptr: `logits`, or both `p` and `k`, are None.
        jascend.errors.ParamInvalid: an argument has the wrong dtype, rank or size.
        jascend.errors.TilingError: rows too long for int32 indices.
    """
    op = "apply_top_k_top_p"
    logits = arguments.array(op, "logits", logits)
    p = arguments.row_parameter(op, "p", p)
    k = arguments.row_parameter(op, "k", k)
    rows = arguments.shaped(logits)
    rules.apply_top_k_top_p(
        rows,
        arguments.parameter_shaped(p, rows, rows and rows.dtype),
        arguments.parameter_shaped(k, rows, "int32"),
        target=target,
    )
    p = arguments.parameter_operand(p, rows.shape[0], rows.dtype)
    k = arguments.parameter_operand(k, rows.shape[0], "int32")
    operands = [x for x in (logits, p, k) if x is not None]
    return apply_top_k_top_p_p.bind(*operands, has_p=p is not None, has_k=k is not None, target=target)


def _abstract_eval(logits, *parameters, has_p, has_k, target):
    p, k = optional(parameters, has_p, has_k)
    rules.apply_top_k_top_p(
        without_leading(logits, 2),
        None if p is None else without_leading(p, 1),
        None if k is None else without_leading(k, 1),
        target=target,
    )
    return logits.update(weak_type=False, manual_axis_type=varying(logits, *parameters))


def _fallback(logits, *parameters, has_p, has_k, target):
    p, k = optional(parameters, has_p, has_k)
    size, dtype = logits.shape[-1], logits.dtype
    if 0 in logits.shape or size == 1:
        return logits
    stored = bits.bits_of(logits)
    keys = blocks.pad(bits.keys_of(stored, dtype), bits.PADDING_KEY)

    floor = jnp.full(logits.shape[:-1], -bits.nan_key(dtype))
    if k is not None:
        kth = threshold.kth_largest(keys, jnp.where((k >= 1) & (k < size), k, 0), dtype)
        floor = top_k_floor(kth, k, size, dtype)
    kept = keys >= floor[..., None]
    if p is not None:
        boundary, removed = (_nucleus_among if k is None else nucleus)(keys, floor, p, dtype)
        last = _last_removed(keys, boundary, removed)
        at_boundary = keys == boundary[..., None]
        kept &= (keys > boundary[..., None]) | (at_boundary & (positions.index(keys) > last[..., None]))
    kept = lax.slice_in_dim(kept, 0, size, axis=-1)
    return bits.from_bits(jnp.where(kept, stored, bits.negative_infinity_bits(dtype)), dtype)


def top_k_floor(kth, k, size, dtype):
    """The least key that top-k keeps: the k-th largest, or a key below all others where top-k is off."""
    lowest = -bits.nan_key(dtype)
    return jnp.where((k >= 1) & (k < size) & (kth != bits.nan_key(dtype)), kth, lowest)


def nucleus(keys, floor, p, dtype):
    """Where top-p cuts every row.

    Args:
        keys: int32 [..., L], in vocabulary order.
        floor: int32 [...]: smaller keys were removed by top-k.
        p: [...] of `dtype`.
        dtype: of the logits.

    Returns:
        boundary: int32 [...]: smaller keys are removed, greater ones kept.
        removed: int32 [...]: how many of the elements equal to the boundary are removed, those that come first.

    Which elements the sums run over, those that top-k kept or the whole row, depends on the row alone, so that its
    result does not depend on the others.
    """
    *lead, length = keys.shape
    whole_row = lambda: _nucleus_among(keys, floor, p, dtype)
    if isinstance(length, int) and length < 4 * SHORT_LIST:
        return whole_row()
    survives = keys >= floor[..., None]
    number = blocks.count(survives)
    place = lax.broadcasted_iota(jnp.int32, (*lead, SHORT_LIST), len(lead))
    listed = positions.take(keys, positions.nth_true(survives, place))
    listed = jnp.where(place < number[..., None], listed, bits.PADDING_KEY)
    among_listed = _nucleus_among(listed, floor, p, dtype)
    is_short = number <= SHORT_LIST
    among_all = lax.cond(jnp.all(is_short), lambda: among_listed, whole_row)
    return tuple(jnp.where(is_short, a, b) for a, b in zip(among_listed, among_all))


def _nucleus_among(keys, floor, p, dtype):
    """`nucleus`, with sums over the given keys."""
    top = blocks.maximum(keys)
    maximum = bits.float32_of_keys(top, dtype)
    weight = lambda keys, maximum: elementary.exp_negative(maximum - bits.float32_of_keys(keys, dtype))
    finite = jnp.abs(top) < bits.infinity_key(dtype)
    candidate = finite[..., None] & (keys >= floor[..., None])
    weights = jnp.where(candidate, weight(keys, maximum[..., None]), 0.0)

    cut = 1.0 - bits.float32_of_keys(bits.keys_of(bits.bits_of(p), dtype), dtype)
    active = finite & ~jnp.isnan(cut)
    limit = jnp.where(active, cut * blocks.total(weights), np.nan)
    boundary = threshold.mass_threshold(keys, weights, limit, top, top, dtype)
    boundary = jnp.where(active, boundary, -bits.nan_key(dtype))

    ties = blocks.count(keys == boundary[..., None])
    below = blocks.total(jnp.where(keys < boundary[..., None], weights, 0.0))
    removed = _ties_within(limit, below, weight(boundary, maximum), jnp.where(boundary == top, ties - 1, ties))
    return boundary, jnp.where(active, removed, 0)


def _ties_within(limit, below, each, most):
    """The greatest i up to `most` with `below + i * each <= limit`, or 0 if there is none."""
    next_exceeds = lambda i: below + elementary.rounded((i + 1).astype(jnp.float32) * each) > limit
    return threshold.bisect(next_exceeds, jnp.zeros_like(most), most)


def _last_removed(keys, boundary, number):
    """The position in every row of the `number`-th element that equals the boundary, or -1."""
    before_all = jnp.full_like(number, -1)

    def search():
        index = positions.index(keys)
        enough = lambda last: blocks.count((keys == boundary[..., None]) & (index <= last[..., None])) >= number
        return threshold.bisect(enough, before_all, jnp.full_like(number, keys.shape[-1] - 1))

    return lax.cond(jnp.any(number > 0), search, lambda: before_all)


def _ascend(*, has_p, has_k, target):
    return {} if target is None else {"target": target}, [1, int(has_p), int(has_k)]


apply_top_k_top_p_p = Primitive("apply_top_k_top_p")
apply_top_k_top_p_p.def_impl(eager(apply_top_k_top_p_p))
apply_top_k_top_p_p.def_abstract_eval(_abstract_eval)
not_differentiable(apply_top_k_top_p_p)
batching.primitive_batchers[apply_top_k_top_p_p] = leading_dimensions(apply_top_k_top_p_p)
register_fallback(apply_top_k_top_p_p, _fallback)
register_ascend_lowering(apply_top_k_top_p_p, _ascend)
