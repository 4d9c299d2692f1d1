"""`jascend.moe_init_routing`: token rows in the order of their experts, quantized on the way."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import export, lax
from jax.extend.core import Primitive
from jax.interpreters import batching

from jascend.dialect import rules
from jascend.numerics import bits, quantize, ranks
from jascend.numerics.quantize_formats import E4M3FN, E5M2
from jascend.ops import _arguments as arguments
from jascend.ops._primitive import eager, leading_dimensions, not_differentiable, register_fallback
from jascend.platform import register_ascend_lowering


class MoeRouting(NamedTuple):
    """What `moe_init_routing` returns; None where a call does not have it.

    Attributes:
        expanded_x: [rows, H], or [expert_num, expert_capacity, H] with `drop_pad_mode` 1.
        expanded_row_idx: [N * K] int32.
        expert_tokens: [experts], or [expert_num, 2] with `expert_tokens_num_type` 2; integer.
        expanded_scale: [rows, ...], a scale or the scales of every row.
    """

    expanded_x: jax.Array
    expanded_row_idx: jax.Array
    expert_tokens: jax.Array | None
    expanded_scale: jax.Array | None


export.register_namedtuple_serialization(MoeRouting, serialized_name="jascend.MoeRouting")


def moe_init_routing(
    x,
    expert_idx,
    scale=None,
    offset=None,
    *,
    expert_num,
    active_num=-1,
    expert_capacity=-1,
    drop_pad_mode=0,
    expert_tokens_num_type=1,
    expert_tokens_num_flag=True,
    quant_mode=-1,
    active_expert_range=None,
    row_idx_type=0,
    target=None,
):
    """Copies every token once for each expert it goes to, so that the copies for one expert are adjacent.

    The definition is that of aclnnMoeInitRoutingV3. A pair p = token * K + slot is valid if its expert is in the active
    range; all other ids, -1 among them, mean "no expert". Valid pairs are ordered by expert, then by p: p_0, p_1, ...

    1. *Rows.* `expanded_x[i]` is `x[p_i // K]`, quantized as `quant_mode` says; with `active_num` > 0 there are at most
       that many rows. With `drop_pad_mode` 1 every expert has `expert_capacity` rows instead: its first pairs in order;
       what does not fit is dropped, and what is left over is 0.
    2. *Row index.* `row_idx_type` 0: at p, the row of pair p, or -1 if it has none. 1: at i, p_i. `active_num` does not
       change it. With `drop_pad_mode` 1: at p, `expert * expert_capacity + rank`, or -1 if it was dropped.
    3. *Counts* of the valid pairs of each active expert, before anything is dropped. `expert_tokens_num_type` 1: the
       counts; 0: their running sum; 2: pairs (expert, count) of the experts that have any, ascending.
    4. *Scales.* What `quant_mode` computes, or with -1 the given scales, copied like the rows.

    | quant_mode | x | given scale | expanded_x | expanded_scale |
    |---|---|---|---|---|
    | -1: none | any below | float32 [N]; with FP8 or FP4 x also E8M0 [N, ceil(H/64), 2] | as x | as given |
    | 0: static INT8 | f16, bf16, f32 | float32 [1], and offset [1] | int8 | |
    | 1: dynamic INT8 | f16, bf16, f32 | smooth: float32 [experts, H] or [1, H], or None | int8 | float32 [rows] |
    | 2, 3: MXFP8 | f16, bf16 | | float8_e5m2, float8_e4m3fn | E8M0 [rows, ceil(H/32) made even] |
    | 4, 5: FP8, groups of 128 | f16, bf16 | | float8_e5m2, float8_e4m3fn | float32 [rows, ceil(H/128)] |
    | 6: HiFloat8 | f16, bf16 | | uint8 | |
    | 7: HiFloat8 | f16, bf16 | float32 [1] | uint8 | |
    | 8: HiFloat8, by token | f16, bf16 | | uint8 | float32 [rows] |
    | 9: MXFP4 | f16, bf16 | | float4_e2m1fn | E8M0 [rows, ceil(H/64), 2] |
    | 11, 12: FP8, blocks of 128 | f16, bf16 | | float8_e5m2, float8_e4m3fn | float32 [rows, ceil(H/256), 2] |
    | 13: dynamic INT4 | f32, bf16 | smooth: float32 [1, H], or None | int4 | float32 [rows] |
    | 14, 15 | as 4, 5, the maximum of a group raised to 1e-4 | | | |
    | 16, 17 | as 2, 3, the maximum of a block raised to 1e-4 | | | |

    E8M0 is float8_e8m0fnu. HiFloat8 is uint8 bit patterns, in x too (quant_mode -1, which takes no scale then). 4-bit
    arrays have their logical shape; H must be even for them.

    Where CANN's sources differ among themselves: -1 never counts as an expert; static quantization multiplies and adds
    in float32, rounds to even and saturates; dynamic INT8 and INT4 divide and round as IEEE says; all-zero rows and
    groups have scale 0 and codes 0, and so do rows whose scale would be subnormal; smooth scales are indexed by expert
    and apply before the maximum is taken; FP8 saturates; scales of unfilled rows are 0; H = 0 routes as usual; INT8 x
    cannot be quantized; a scale for a mode that takes none is refused, an offset is ignored.
    What CANN leaves unspecified: rows, scales and counts behind the last one are 0 (E8M0: the code 0), indices -1.

    Args:
        x: [N, H]; dtypes as above, with quant_mode -1 float16, bfloat16, float32, int8, float8_e4m3fn, float8_e5m2,
            float4_e2m1fn, uint8.
        expert_idx: [N, K] int32.
        scale, offset: as above.
        expert_num: E, 1 to 10240; at most 5120 with `expert_tokens_num_type` 2.
        active_num: most rows, or -1 or 0 for all. On ascend950 it does not limit anything.
        expert_capacity: 1 to N, with `drop_pad_mode` 1.
        drop_pad_mode: 0 or 1. 1 needs all experts active, quant_mode -1, 0 or 1 (ascend950: -1), `row_idx_type` 0 and
            `expert_tokens_num_type` 1.
        expert_tokens_num_type: 0, 1 or 2.
        expert_tokens_num_flag: whether to return counts. ascend950 always does.
        quant_mode: -1 to 9 or 11 to 17; on A2 and A3 -1, 0 and 1.
        active_expert_range: (first, end), the experts first <= e < end; None or empty for all.
        row_idx_type: 0 or 1.
        target: an Ascend product whose limits apply, or None for what any of them accepts.

    Returns:
        `MoeRouting`. Counts are int64 with `jax_enable_x64`, else int32.

    Raises:
        jascend.errors.Unsupported: `target` is not a product that has the operator.
        jascend.errors.ParamNullptr: `x` or `expert_idx` is None.
        jascend.errors.ParamInvalid: an argument has the wrong dtype, or a keyword is traced or has the wrong type.
        jascend.errors.TilingError: everything else: values of keywords, ranks, sizes, a missing scale or offset.
    """
    op = "moe_init_routing"
    integers = dict(
        expert_num=expert_num,
        active_num=active_num,
        expert_capacity=expert_capacity,
        drop_pad_mode=drop_pad_mode,
        expert_tokens_num_type=expert_tokens_num_type,
        quant_mode=quant_mode,
        row_idx_type=row_idx_type,
    )
    static = dict(
        {name: arguments.static_int(op, name, value) for name, value in integers.items()},
        expert_tokens_num_flag=arguments.static_bool(op, "expert_tokens_num_flag", expert_tokens_num_flag),
        active_expert_range=_static_range(op, active_expert_range),
        target=target,
    )
    x = arguments.array(op, "x", x)
    expert_idx = arguments.array(op, "expert_idx", expert_idx)
    scale = arguments.array(op, "scale", scale)
    offset = arguments.array(op, "offset", offset)
    _rule(*map(arguments.shaped, (x, expert_idx, scale, offset)), **static)

    static["active_expert_range"] = static["active_expert_range"] or (0, static["expert_num"])
    offset = offset if static["quant_mode"] == 0 else None
    results = moe_init_routing_p.bind(
        *(operand for operand in (x, expert_idx, scale, offset) if operand is not None),
        has_scale=scale is not None,
        has_offset=offset is not None,
        **static,
    )
    results = iter(results)
    return MoeRouting(*(next(results) if has else None for has in _present(has_scale=scale is not None, **static)))


def _static_range(op, value):
    name = "active_expert_range"
    if value is None:
        return ()
    if not isinstance(value, (tuple, list, np.ndarray)):
        value = [value]  # which the checks below refuse: by its type, or as too short
    return tuple(arguments.static_int(op, name, bound) for bound in value)


def _present(*, has_scale, quant_mode, expert_tokens_num_flag, **_):
    """Which of the four results a call has."""
    with_scale = has_scale if quant_mode == -1 else rules.QUANTIZATIONS[quant_mode].scale is not None
    return True, True, expert_tokens_num_flag, with_scale


def _index_dtype():
    return jax.dtypes.canonicalize_dtype(np.int64)


def _rule(x, expert_idx, scale, offset, **static):
    return rules.moe_init_routing(
        x, expert_idx, scale, offset, index_dtype=_index_dtype().name, smaller=jax.core.min_dim, **static
    )


def _abstract_eval(x, expert_idx, *optional, has_scale, has_offset, **static):
    lead = expert_idx.shape[:-2]
    scale, offset = _split(optional, has_scale, has_offset)
    inside = lambda aval: None if aval is None else rules.Shaped(aval.shape[len(lead) :], aval.dtype.name)
    return [
        x.update(shape=(*lead, *result.shape), dtype=jnp.dtype(result.dtype), weak_type=False)
        for result in _rule(*map(inside, (x, expert_idx, scale, offset)), **static)
        if result is not None
    ]


def _split(optional, has_scale, has_offset):
    """The optional operands, None where absent."""
    optional = iter(optional)
    return next(optional) if has_scale else None, next(optional) if has_offset else None


class _Order(NamedTuple):
    """The valid pairs in their order.

    Attributes:
        group: [..., L] the expert of each pair, counted from the first active one; past the last one if invalid.
        pairs: [..., L] pairs by group, then by number; invalid ones come last.
        counts: [..., experts] pairs of each group.
        ends: [..., experts] where each group ends in `pairs`.
    """

    group: jax.Array
    pairs: jax.Array
    counts: jax.Array
    ends: jax.Array

    @property
    def starts(self):
        return self.ends - self.counts

    @property
    def available(self):
        """[..., 1]: how many valid pairs there are."""
        return self.ends[..., -1:]


def _fallback(x, expert_idx, *optional, has_scale, has_offset, **static):
    scale, offset = _split(optional, has_scale, has_offset)
    lead, (tokens, slots) = expert_idx.shape[:-2], expert_idx.shape[-2:]
    inside = lambda value: None if value is None else rules.Shaped(value.shape[len(lead) :], value.dtype.name)
    types = _rule(*map(inside, (x, expert_idx, scale, offset)), **static)
    rows_type, _, counts_type, scales_type = types
    if 0 in (tokens, slots):  # nothing is routed
        return [jnp.zeros((*lead, *t.shape), t.dtype) for t in types if t is not None]

    order = _order(expert_idx.reshape(*lead, tokens * slots), static["active_expert_range"])
    dropless = not static["drop_pad_mode"]
    capacity = static["expert_capacity"]
    sources = _rows(order, rows_type.shape[0]) if dropless else _padded_rows(order, capacity)
    row_index = _row_index(order, static["row_idx_type"]) if dropless else _padded_row_index(order, capacity)
    token = jnp.where(sources < 0, tokens, sources // slots)

    if static["quant_mode"] == 1 and has_scale:
        # The scales depend on the expert, so each copy is quantized for itself.
        group = _take(order.group, jnp.maximum(sources, 0))
        smooth = _gather(scale, jnp.where(scale.shape[-2] == 1, 0, group))
        rows, scales = quantize.dynamic_int8(_gather(x, token), smooth)
    else:
        rows, scales = _quantized(x, scale, offset, static["quant_mode"])
        rows = _gather(rows, token)
        scales = None if scales is None else _gather(scales, token)

    results = [_from_bytes(rows, rows_type.dtype).reshape(*lead, *rows_type.shape), row_index]
    if counts_type is not None:
        first = static["active_expert_range"][0]
        counts = _counts(order, static["expert_tokens_num_type"], first, static["expert_num"])
        results.append(counts.astype(counts_type.dtype))
    if scales_type is not None:
        results.append(_from_bytes(scales, scales_type.dtype))
    return results


def _order(expert, active):
    first, end = active
    group = jnp.where((expert >= first) & (expert < end), expert - first, end - first)
    counts = ranks.histogram(group, end - first)
    ends = jnp.cumsum(counts, axis=-1, dtype=jnp.int32)
    return _Order(group, ranks.stable_order(group, end - first + 1), counts, ends)


def _rows(order, rows):
    """[..., rows]: the pair of each row, -1 behind the last one."""
    pairs = order.pairs[..., :rows]
    return jnp.where(_iota(pairs) < order.available, pairs, -1)


def _padded_rows(order, capacity):
    """[..., experts * capacity]: the pair of each row, -1 where an expert has no more."""
    *lead, experts = order.counts.shape
    rank = lax.broadcasted_iota(jnp.int32, (*lead, experts, capacity), len(lead) + 1)
    place = jnp.minimum(order.starts[..., None] + rank, order.pairs.shape[-1] - 1)
    pairs = _take(order.pairs, place.reshape(*lead, experts * capacity))
    return jnp.where((rank < order.counts[..., None]).reshape(pairs.shape), pairs, -1)


def _row_index(order, row_idx_type):
    if row_idx_type == 1:
        return jnp.where(_iota(order.pairs) < order.available, order.pairs, -1)
    return jnp.where(order.group < order.counts.shape[-1], ranks.inverse(order.pairs), -1)


def _padded_row_index(order, capacity):
    experts = order.counts.shape[-1]
    rank = ranks.inverse(order.pairs) - _take(order.starts, jnp.minimum(order.group, experts - 1))
    return jnp.where((order.group < experts) & (rank < capacity), order.group * capacity + rank, -1)


def _counts(order, kind, first, experts):
    if kind != 2:
        return order.ends if kind == 0 else order.counts
    groups = order.counts.shape[-1]
    # The experts with pairs come first when the others get the number behind the last one.
    some = order.counts > 0
    expert = lax.sort(jnp.where(some, _iota(order.counts), groups), dimension=-1)
    count = jnp.where(expert < groups, _take(order.counts, jnp.minimum(expert, groups - 1)), 0)
    expert = jnp.where(expert < groups, expert + first, 0)
    pairs = jnp.stack([expert, count], axis=-1)
    return lax.pad(pairs, np.int32(0), [(0, 0, 0)] * (pairs.ndim - 2) + [(0, experts - groups, 0), (0, 0, 0)])


def _quantized(x, scale, offset, mode):
    """[..., N, H] -> codes and scales of every token; each of them is quantized once, however many copies it gets."""
    match mode:
        case -1:
            return x, scale
        case 0:
            return quantize.static_int8(x, scale, offset), None
        case 1:
            return quantize.dynamic_int8(x)
        case 2 | 3 | 16 | 17:
            return quantize.mx_float8(x, E5M2 if mode in (2, 16) else E4M3FN, floor=mode >= 16)
        case 4 | 5 | 14 | 15:
            return quantize.group_float8(x, E5M2 if mode in (4, 14) else E4M3FN, floor=mode >= 14)
        case 6:
            return quantize.hifloat8_cast(x), None
        case 7:
            return quantize.hifloat8_static(x, scale), None
        case 8:
            return quantize.hifloat8_dynamic(x)
        case 9:
            return quantize.mx_float4(x)
        case 11 | 12:
            return quantize.block_float8(x, E5M2 if mode == 11 else E4M3FN)
        case 13:
            return quantize.dynamic_int4(x, scale)


def _gather(rows, index):
    """[..., N, *], int32 [..., M] -> [..., M, *], bit for bit; 0 where the index is N."""
    dtype = rows.dtype
    take = lambda rows, index: jnp.take(rows, index, axis=0, mode="fill", fill_value=0)
    for _ in index.shape[:-1]:
        take = jax.vmap(take)
    return _from_bytes(take(_to_bytes(rows), index), dtype)


def _to_bytes(x):
    """Unsigned integers of the same width or, for 4 bits, one byte an element."""
    if x.dtype == jnp.float4_e2m1fn:
        return bits.bytes_of_nibbles(x)
    return lax.bitcast_convert_type(x, f"uint{8 * x.dtype.itemsize}")


def _from_bytes(x, dtype):
    dtype = jnp.dtype(dtype)
    if x.dtype == dtype:
        return x
    if dtype == jnp.int4:
        return x.astype(dtype)
    if dtype == jnp.float4_e2m1fn:
        return bits.nibbles_of_bytes(x, dtype)
    return lax.bitcast_convert_type(x, dtype)


def _take(x, index):
    return jnp.take_along_axis(x, index, axis=-1, mode="promise_in_bounds")


def _iota(x):
    return lax.broadcasted_iota(jnp.int32, x.shape, x.ndim - 1)


def _ascend(*, has_scale, has_offset, target, **static):
    attributes = dict(static, resultSegmentSizes=tuple(map(int, _present(has_scale=has_scale, **static))))
    return attributes if target is None else dict(attributes, target=target), [1, 1, int(has_scale), int(has_offset)]


moe_init_routing_p = Primitive("moe_init_routing")
moe_init_routing_p.multiple_results = True
moe_init_routing_p.def_impl(eager(moe_init_routing_p))
moe_init_routing_p.def_abstract_eval(_abstract_eval)
not_differentiable(moe_init_routing_p)
batching.primitive_batchers[moe_init_routing_p] = leading_dimensions(moe_init_routing_p)
register_fallback(moe_init_routing_p, _fallback)
# Routings of a batch do not fold into one, since each has an order of its own: the operation has leading dimensions.
register_ascend_lowering(moe_init_routing_p, _ascend, rank=None)
