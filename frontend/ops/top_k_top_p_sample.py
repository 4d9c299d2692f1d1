"""`jascend.top_k_top_p_sample`: top-k, top-p and min-p, and a sample from what is left, in one operator."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import export, lax
from jax.extend.core import Primitive
from jax.interpreters import batching
from jax.sharding import PartitionSpec

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

#: The largest k of top-k.
MAX_K = 1024
#: Where all rows of a batch have no more survivors than one of these, only that many are sorted.
LISTS = (1024, 8192)


class TopKTopPSample(NamedTuple):
    """What `top_k_top_p_sample` returns; None where a call does not ask for it.

    Attributes:
        logits_select_idx: [B] integer, the chosen index of every row.
        logits_top_kp_select: [B, V] float32, the logits that survive, in place; the default elsewhere.
        logits_idx: [B, V] integer, the indices of the survivors in their order; -1 behind them.
        logits_sort_masked: [B, V] float32, the probabilities of the survivors in their order; 0 behind them.
    """

    logits_select_idx: jax.Array | None
    logits_top_kp_select: jax.Array | None
    logits_idx: jax.Array | None
    logits_sort_masked: jax.Array | None


export.register_namedtuple_serialization(TopKTopPSample, serialized_name="jascend.TopKTopPSample")


def top_k_top_p_sample(
    logits,
    top_k,
    top_p,
    q=None,
    min_ps=None,
    *,
    eps=1e-8,
    is_need_logits=False,
    top_k_guess=32,
    ks_max=1024,
    input_is_logits=True,
    is_need_sample_result=False,
    target=None,
):
    """Samples an index from every row, or returns the filtered distribution.

    The definition is that of aclnnTopKTopPSampleV2. For every row, in float32, each stage on what the one before left:

    1. *Top-k*, with 1 <= k <= min(V, K), where K is `ks_max` rounded up to a multiple of 8, at most 1024: exactly the k
       largest logits, of equal ones those of lower index. Any other k turns the stage off.
    2. *Probabilities*: softmax over what top-k left; the values themselves if not `input_is_logits`.
    3. *Top-p*, with 0 < p < 1: in descending order, equal values by increasing index, up to and including the first
       one whose running sum is at least p; all, if none is. No renormalization. With p <= 0 only the first one stays,
       with probability 1 (its own if not `input_is_logits`). p >= 1 or NaN turns the stage off.
    4. *Min-p*, with 0 < m < 1: what has at least m times the probability of the most probable one. With m >= 1 only
       the first of the largest stays. m <= 0 or NaN turns the stage off.

    The survivors are in descending order, equal values by increasing index, if top-k or top-p is on or m >= 1; else in
    order of index. What is chosen is, first one of equal ones, the survivor of largest probability; with `q`, that of
    largest `probability / (|q| + eps)`, where the survivor at position j takes `q[b, j]`: position, not index.

    Where CANN's sources differ among themselves: the element that reaches p stays; a sum equal to p has reached it;
    K is rounded up; `top_k_guess` never changes a result; `q` enters by its absolute value; -inf ranks last. What is
    subnormal in float32 equals 0, as XLA and the kernels compute; a logit that stays is an exact copy all the same.
    What CANN leaves undefined: a row whose softmax is NaN (+inf or NaN in it, or -inf only) keeps all its candidates
    in stages 3 and 4 (p <= 0 and m >= 1 still leave one), a NaN ranks as the largest, and the first NaN is chosen;
    where no value reaches the threshold of min-p (negative ones do not), the first of the largest stays. So every
    chosen index is in [0, V).

    These are not the ties of `apply_top_k_top_p`, which keeps all copies of the k-th value and, of equal values,
    removes the lower index first. A running sum within rounding (1e-5) of p may fall either way, but always the same
    way: a row's result does not depend on the batch around it, nor on `jit` or `vmap`.

    Args:
        logits: [B, V] float32, float16 or bfloat16, V at most 2^20.
        top_k: [B] int32, or an integer for all rows.
        top_p: [B] of the dtype of `logits`, or a number for all rows.
        q: [B, V] float32, usually drawn from Exp(1), or None to choose the most probable.
        min_ps: [B] of the dtype of `logits`, or a number for all rows; None turns min-p off.
        eps: added to `|q|` in float32.
        is_need_logits: return `logits_top_kp_select`. Its default is -inf, or 0 if not `input_is_logits`.
        top_k_guess: for kernels: how many candidates to try for top-p without top-k; 0 or less tries none.
        ks_max: the largest k for which top-k runs, at least 1.
        input_is_logits: whether `logits` are logits, or probabilities already.
        is_need_sample_result: return the distribution (`logits_idx`, `logits_sort_masked`), without `q`, instead of an
            index.
        target: an Ascend product whose limits apply, or None for what any of them accepts.

    Returns:
        `TopKTopPSample`. Integers are int64 with `jax_enable_x64`, else int32.

    Raises:
        jascend.errors.Unsupported: `target` is not a product that has the operator.
        jascend.errors.ParamNullptr: `logits`, `top_k` or `top_p` is None.
        jascend.errors.ParamInvalid: an argument has the wrong dtype or size, `logits` is empty, or a keyword is traced
            or has the wrong type.
        jascend.errors.TilingError: an argument has the wrong rank, V is too large, or `q` comes with
            `is_need_sample_result`.
    """
    op = "top_k_top_p_sample"
    static = dict(
        eps=arguments.static_float(op, "eps", eps),
        is_need_logits=arguments.static_bool(op, "is_need_logits", is_need_logits),
        top_k_guess=arguments.static_int(op, "top_k_guess", top_k_guess),
        ks_max=arguments.static_int(op, "ks_max", ks_max),
        input_is_logits=arguments.static_bool(op, "input_is_logits", input_is_logits),
        is_need_sample_result=arguments.static_bool(op, "is_need_sample_result", is_need_sample_result),
        target=target,
    )
    logits = arguments.array(op, "logits", logits)
    top_k = arguments.row_parameter(op, "top_k", top_k)
    top_p = arguments.row_parameter(op, "top_p", top_p)
    q = arguments.array(op, "q", q)
    min_ps = arguments.row_parameter(op, "min_ps", min_ps)
    rows = arguments.shaped(logits)
    _rule(
        rows,
        arguments.parameter_shaped(top_k, rows, "int32"),
        arguments.parameter_shaped(top_p, rows, rows and rows.dtype),
        arguments.shaped(q),
        arguments.parameter_shaped(min_ps, rows, rows and rows.dtype),
        **static,
    )
    batch, dtype = rows.shape[0], rows.dtype
    operands = (
        logits,
        arguments.parameter_operand(top_k, batch, "int32"),
        arguments.parameter_operand(top_p, batch, dtype),
        q,
        arguments.parameter_operand(min_ps, batch, dtype),
    )
    results = top_k_top_p_sample_p.bind(
        *(x for x in operands if x is not None), has_q=q is not None, has_min_ps=min_ps is not None, **static
    )
    results = iter(results)
    return TopKTopPSample(*(next(results) if asked else None for asked in _asked(**static)))


def _asked(*, is_need_logits, is_need_sample_result, **_):
    """Which of the four results a call asks for."""
    return not is_need_sample_result, is_need_logits, is_need_sample_result, is_need_sample_result


def _index_dtype():
    return jax.dtypes.canonicalize_dtype(np.int64)


def _rule(*operands, ks_max, is_need_logits, is_need_sample_result, target, **_):
    return rules.top_k_top_p_sample(
        *operands,
        ks_max=ks_max,
        is_need_logits=is_need_logits,
        is_need_sample_result=is_need_sample_result,
        index_dtype=_index_dtype().name,
        target=target,
    )


def _abstract_eval(logits, top_k, top_p, *others, has_q, has_min_ps, **static):
    q, min_ps = optional(others, has_q, has_min_ps)
    results = _rule(
        without_leading(logits, 2),
        without_leading(top_k, 1),
        without_leading(top_p, 1),
        None if q is None else without_leading(q, 2),
        None if min_ps is None else without_leading(min_ps, 1),
        **static,
    )
    logits = logits.update(weak_type=False, manual_axis_type=varying(logits, top_k, top_p, *others))
    return [_rows_like(logits, len(result.shape), result.dtype) for result in results if result is not None]


def _rows_like(logits, rank, dtype):
    """The aval of a result: the axes of `logits`, sharded like them, without the vocabulary if `rank` is 1."""
    axes = len(logits.shape) - 2 + rank
    sharding = logits.sharding.update(spec=PartitionSpec(*logits.sharding.spec[:axes]))
    return logits.update(shape=logits.shape[:axes], dtype=jnp.dtype(dtype), sharding=sharding)


class _Rows(NamedTuple):
    """Rows of whole blocks, [..., L], and their first maximum, [..., 1]."""

    keys: jax.Array
    index: jax.Array
    value: jax.Array
    maximum: jax.Array
    first: jax.Array


def _fallback(logits, top_k, top_p, *others, has_q, has_min_ps, **static):
    q, min_ps = optional(others, has_q, has_min_ps)
    size, dtype, is_logits = logits.shape[-1], logits.dtype, static["input_is_logits"]
    rows = _rows(logits)
    top_p = bits.keys_of(bits.bits_of(top_p), dtype)
    min_ps = jnp.zeros_like(top_k) if min_ps is None else bits.keys_of(bits.bits_of(min_ps), dtype)

    kept, use_k = _top_k(rows, top_k, size, static["ks_max"], dtype)
    probability = _softmax(rows, kept) if is_logits else rows.value
    kept = _top_p(rows, kept, probability, top_p, dtype)
    if is_logits:
        probability = jnp.where(_wide(top_p <= 0) & (rows.index == rows.first), 1.0, probability)
    if has_min_ps:
        kept = _min_p(rows, kept, probability, min_ps, dtype)
    in_order = use_k | (top_p < _key_of_one(dtype)) | _at_least_one(min_ps, dtype)

    results = []
    probabilities = probability[..., :size]
    if has_q or static["is_need_sample_result"]:
        survivors = _survivors(rows, kept, in_order, size)
        alive = survivors >= 0
        masked = jnp.where(alive, positions.take(probabilities, jnp.maximum(survivors, 0)), 0.0)
    if not static["is_need_sample_result"]:
        if has_q:
            scores = bits.bits_of(masked / (jnp.abs(q) + np.float32(static["eps"])))
            scores = jnp.where(alive, bits.keys_of(scores, jnp.float32), bits.PADDING_KEY)
            choice = positions.take(survivors, _first_maximum(scores)[..., None])[..., 0]
        else:
            scores = jnp.where(kept, bits.keys_of(bits.bits_of(probability), jnp.float32), bits.PADDING_KEY)
            # In descending order the first survivor is the most probable one; in order of index, equal ones may differ.
            choice = _first_maximum(scores[..., :size])
            choice = jnp.where(in_order, rows.first[..., 0], choice)
        results.append(choice.astype(_index_dtype()))
    if static["is_need_logits"]:
        default = np.float32(-np.inf if is_logits else 0)
        results.append(jnp.where(kept[..., :size], _as_stored(logits), default))
    if static["is_need_sample_result"]:
        results += [survivors.astype(_index_dtype()), masked]
    return results


def _rows(logits):
    dtype = logits.dtype
    keys = blocks.pad(bits.keys_of(bits.bits_of(logits), dtype), bits.PADDING_KEY)
    index = positions.index(keys)
    top = _wide(blocks.maximum(keys))
    first = jnp.min(jnp.where(keys == top, index, np.int32(2**31 - 1)), axis=-1, keepdims=True)
    return _Rows(keys, index, bits.float32_of_keys(keys, dtype), bits.float32_of_keys(top, dtype), first)


def _top_k(rows, k, size, ks_max, dtype):
    """What top-k keeps: exactly k, of equal values those of lower index; and in which rows it is on."""
    most = jnp.minimum(size, min(-(-ks_max // 8) * 8, MAX_K)).astype(jnp.int32)
    on = (k >= 1) & (k <= most)
    lowest = jnp.full_like(k, -bits.nan_key(dtype))  # below the key of every value, above padding
    search = lambda: threshold.kth_largest(rows.keys, jnp.where(on, k, 0), dtype)
    floor = jnp.where(on, lax.cond(jnp.any(on), search, lambda: lowest), lowest)
    above, at = rows.keys > _wide(floor), rows.keys == _wide(floor)
    return above | _leading(rows, at, k - blocks.count(above)), on


def _softmax(rows, kept):
    below = rows.maximum - rows.value  # NaN in an undefined row, which it makes undefined as a whole
    weights = jnp.where(kept, jnp.where(jnp.isnan(below), below, elementary.exp_negative(below)), 0.0)
    return weights / _wide(blocks.total(weights))


def _top_p(rows, kept, probability, p, dtype):
    """What top-p keeps of `kept`.

    The elements above some key weigh less than p; with those at the key, they weigh at least p. Among the latter, which
    are equally probable, enough of lowest index are taken to reach p.
    """
    mass = jnp.where(kept, probability, 0.0)
    total = blocks.total(mass)
    on = (p > 0) & (p < _key_of_one(dtype)) & ~jnp.isnan(total)
    target = bits.float32_of_keys(p, dtype)
    # `mass_threshold` looks from below for a weight that exceeds a limit: from above for one that reaches p.
    short_of = lax.bitcast_convert_type(lax.bitcast_convert_type(target, jnp.int32) - 1, jnp.float32)
    everything = jnp.full_like(p, bits.nan_key(dtype))
    short_of = jnp.where(on, short_of, np.nan)
    heaviest = -blocks.maximum(rows.keys)
    search = lambda: -threshold.mass_threshold(-rows.keys, mass, short_of, everything, heaviest, dtype)
    boundary = jnp.where(on, lax.cond(jnp.any(on), search, lambda: -everything), -everything)

    above, at = rows.keys > _wide(boundary), kept & (rows.keys == _wide(boundary))
    missing = target - blocks.total(jnp.where(above, mass, 0.0))
    each = blocks.maximum(jnp.where(at, mass, 0.0))
    number = _least_multiple(each, missing, blocks.count(at))
    kept &= above | _leading(rows, at, number)
    return jnp.where(_wide(p <= 0), rows.index == rows.first, kept)


def _least_multiple(each, least, most):
    """The least i from 1 to `most` with `i * each >= least`, or `most` if there is none."""
    reaches = lambda i: i.astype(jnp.float32) * each >= least
    return threshold.bisect(reaches, jnp.ones_like(most), jnp.maximum(most, 1))


def _min_p(rows, kept, probability, m, dtype):
    """What min-p keeps of `kept`; the first of the largest always."""
    is_first = rows.index == rows.first
    most = jnp.max(jnp.where(is_first, probability, -np.inf), axis=-1)
    bound = most * bits.float32_of_keys(m, dtype)
    undefined = jnp.any(is_first & jnp.isnan(probability), axis=-1)  # a maximum may lose a NaN
    off = (m <= 0) | (m == bits.nan_key(dtype)) | undefined
    reaches = (_wide(off) | (probability >= _wide(bound))) & ~_wide(_at_least_one(m, dtype))
    return kept & (reaches | is_first)


def _survivors(rows, kept, in_order, size):
    """int32 [..., V]: the indices of the survivors in their order, -1 behind them."""
    lead = kept.shape[:-1]
    number = blocks.count(kept)
    whole = ~in_order & (number == size)  # the order is that of the row, and all of it
    order = jnp.where(kept, jnp.where(_wide(in_order), -rows.keys, 0), np.int32(2**31 - 1))
    place = lax.broadcasted_iota(jnp.int32, (*lead, size), len(lead))

    def sort_all():
        return lax.sort((order[..., :size], place), dimension=-1, is_stable=True, num_keys=1)[1]

    def sort_some(most):
        index = jnp.minimum(positions.nth_true(kept, place[..., :most]), size - 1)
        keys = jnp.where(place[..., :most] < number[..., None], positions.take(order, index), np.int32(2**31 - 1))
        _, index = lax.sort((keys, index), dimension=-1, is_stable=True, num_keys=1)
        index = jnp.pad(index, [(0, 0)] * len(lead) + [(0, size - most)])
        return jnp.where(whole[..., None], place, index)

    lists = [most for most in LISTS if isinstance(size, int) and 2 * most < size]
    longest = jnp.max(jnp.where(whole, 0, number), initial=0)
    which = sum((longest > most).astype(jnp.int32) for most in lists)
    branches = [*(functools.partial(sort_some, most) for most in lists), sort_all]
    index = lax.switch(which, branches) if lists else sort_all()
    return jnp.where(place < number[..., None], index, -1)


def _leading(rows, mask, number):
    """The first `number` true elements of every row's mask."""
    enough = lambda last: blocks.count(mask & (rows.index <= _wide(last))) >= number
    nowhere, everywhere = jnp.full_like(number, -1), jnp.full_like(number, rows.index.shape[-1] - 1)
    return mask & (rows.index <= _wide(threshold.bisect(enough, nowhere, everywhere)))


def _first_maximum(keys):
    """[..., V] -> [...]: the index of the greatest key, the lowest one of equal ones."""
    index = lax.broadcasted_iota(jnp.int32, keys.shape, keys.ndim - 1)
    top = jnp.max(keys, axis=-1, keepdims=True)
    return jnp.min(jnp.where(keys == top, index, np.int32(2**31 - 1)), axis=-1)


def _as_stored(logits):
    """The logits as float32, exactly: subnormals and the sign of zero included."""
    if logits.dtype == jnp.float32:
        return logits
    stored = bits.bits_of(logits)
    if logits.dtype == jnp.bfloat16:
        return bits.from_bits(stored << 16, jnp.float32)
    value = bits.float32_of_keys(bits.keys_of(stored, logits.dtype), logits.dtype)
    return jnp.where(stored == 0x8000, -0.0, value)


def _wide(x):
    """[...] -> [..., 1], to stand beside rows."""
    return x[..., None]


def _key_of_one(dtype):
    return np.asarray(1, dtype).view(f"int{8 * jnp.dtype(dtype).itemsize}").astype(np.int32)


def _at_least_one(keys, dtype):
    return (keys >= _key_of_one(dtype)) & (keys != bits.nan_key(dtype))


def _ascend(*, has_q, has_min_ps, target, **attributes):
    if target is not None:
        attributes["target"] = target
    attributes["resultSegmentSizes"] = tuple(map(int, _asked(**attributes)))
    return attributes, [1, 1, 1, int(has_q), int(has_min_ps)]


top_k_top_p_sample_p = Primitive("top_k_top_p_sample")
top_k_top_p_sample_p.multiple_results = True
top_k_top_p_sample_p.def_impl(eager(top_k_top_p_sample_p))
top_k_top_p_sample_p.def_abstract_eval(_abstract_eval)
not_differentiable(top_k_top_p_sample_p)
batching.primitive_batchers[top_k_top_p_sample_p] = leading_dimensions(top_k_top_p_sample_p)
register_fallback(top_k_top_p_sample_p, _fallback)
register_ascend_lowering(top_k_top_p_sample_p, _ascend)
