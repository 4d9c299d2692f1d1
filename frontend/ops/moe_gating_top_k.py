"""`jascend.moe_gating_top_k`: the router of a mixture of experts, from logits to expert ids and weights."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import export, lax
from jax.extend.core import Primitive
from jax.interpreters import batching

from jascend.dialect import rules
from jascend.dialect.errors import Unsupported
from jascend.numerics import bits, blocks, elementary
from jascend.ops import _arguments as arguments
from jascend.ops._primitive import eager, not_differentiable, register_fallback, without_leading
from jascend.platform import register_ascend_lowering

#: How many experts are looked at to replace one that was taken.
_BLOCK = 32


class MoeGating(NamedTuple):
    """What `moe_gating_top_k` returns.

    Attributes:
        y: [..., k] of the dtype of `x`, the weights.
        expert_idx: [..., k] int32, the ids.
        out: [..., E] float32, the scores of all experts; None without `out_flag`.
    """

    y: jax.Array
    expert_idx: jax.Array
    out: jax.Array | None


export.register_namedtuple_serialization(MoeGating, serialized_name="jascend.MoeGating")


def moe_gating_top_k(
    x,
    k,
    *,
    bias=None,
    input_ids=None,
    tid2eid=None,
    additional_bias=None,
    additional_token_mask=None,
    k_group=1,
    group_count=1,
    routed_scaling_factor=1.0,
    eps=1e-20,
    group_select_mode=0,
    renorm=0,
    norm_type=0,
    out_flag=False,
    target=None,
):
    """Chooses k experts for every token, and their weights.

    The definition is that of CANN's MoeGatingTopKHash (`npu_moe_gating_top_k`). For every row, in float32:

    1. *Scores.* `norm_type` 0 is the softmax, 1 the sigmoid, 2 the square root of softplus, `sqrt(log(1 + exp(x)))`.
    2. *Selection.* Experts are ordered by score plus bias, equal ones by increasing id; the first k are chosen. Where
       `additional_token_mask` is set, `additional_bias` takes the place of `bias`.
    3. *Groups*, if `k_group < group_count < E`: experts are divided into `group_count` ranges, and only the `k_group`
       best compete, equal ones by increasing number. A group counts as its largest biased score (`group_select_mode`
       0) or the sum of its two largest (1).
    4. *Hash routing*, instead of 2 and 3, with `input_ids` and `tid2eid`: ids are `tid2eid[input_ids]`, as stored.
    5. *Weights.* The scores of the chosen, without bias; for `norm_type` 1 and 2, divided by (their sum + `eps`); times
       `routed_scaling_factor`.

    Where CANN's sources differ among themselves: `norm_type` 2 is the square root of softplus; a softmax is not
    normalized again, and sums are over the k chosen; `additional_bias` replaces `bias` and does not add to it, has no
    effect without a mask, and a mask without it is refused; hash routing ignores biases and refuses groups;
    ids may be int32 or int64; k over 64 is refused for ascend950 alone, `norm_type` 2 with groups for the other
    targets alone; with one expert a group there are no groups; `renorm` 1 is refused; and there is no `out` without
    `out_flag`.

    What CANN leaves undefined: a NaN logit scores 0, leaves the scores of others alone, and ranks as -inf, as does
    a score that its bias makes NaN; experts of dropped groups are never chosen. In a softmax, +inf
    logits share the probability, and a row of -inf scores 0. A token id outside the table gives ids of -1, and an id
    outside [0, E) weight 0.

    A row's result is the same bits whatever the batch around it, under `jit` or not; equal logits have equal scores.

    Args:
        x: [T, E] or [b, s, E] float32, float16 or bfloat16, at most 2048 experts.
        k: experts a token, from 1 to `k_group * (E / group_count)`.
        bias: [E] of the dtype of `x`.
        input_ids: [T] or `x.shape[:-1]`, int32 or int64, in [0, n).
        tid2eid: [n, k] int32 or int64, in [0, E); with `input_ids`.
        additional_bias: [E] of the dtype of `x`.
        additional_token_mask: [T] or `x.shape[:-1]`, bool.
        k_group: groups to keep, at most `group_count`.
        group_count: number of groups; divides E.
        routed_scaling_factor: factor of all weights.
        eps: added to the sum of weights, in float32.
        group_select_mode: 0 or 1; 1 needs two experts a group.
        renorm: 0.
        norm_type: 0, 1 or 2.
        out_flag: return `out`.
        target: an Ascend product whose limits apply, or None for what any of them accepts.

    Returns:
        `MoeGating`.

    Raises:
        jascend.errors.Unsupported: `target` is not a product that has the operator.
        jascend.errors.ParamNullptr: `x` is None.
        jascend.errors.ParamInvalid: `x` is empty, an argument has the wrong dtype, or a keyword is traced or has the
            wrong type.
        jascend.errors.TilingError: an argument has the wrong rank, size or value, or needs another one.
    """
    op = "moe_gating_top_k"
    static = dict(
        k=arguments.static_int(op, "k", k),
        k_group=arguments.static_int(op, "k_group", k_group),
        group_count=arguments.static_int(op, "group_count", group_count),
        routed_scaling_factor=arguments.static_float(op, "routed_scaling_factor", routed_scaling_factor),
        eps=arguments.static_float(op, "eps", eps),
        group_select_mode=arguments.static_int(op, "group_select_mode", group_select_mode),
        renorm=arguments.static_int(op, "renorm", renorm),
        norm_type=arguments.static_int(op, "norm_type", norm_type),
        out_flag=arguments.static_bool(op, "out_flag", out_flag),
        target=target,
    )
    x = arguments.array(op, "x", x)
    operands = dict(
        x=_flat(x, x, 2),
        bias=arguments.array(op, "bias", bias),
        input_ids=_flat(arguments.array(op, "input_ids", input_ids), x, 1),
        tid2eid=arguments.array(op, "tid2eid", tid2eid),
        additional_bias=arguments.array(op, "additional_bias", additional_bias),
        additional_token_mask=_flat(arguments.array(op, "additional_token_mask", additional_token_mask), x, 1),
    )
    _rule({name: arguments.shaped(value) for name, value in operands.items()}, **static)

    if input_ids is not None:
        operands.update(bias=None, additional_bias=None, additional_token_mask=None)
    elif additional_token_mask is None:
        operands.update(additional_bias=None)
    names = tuple(name for name, value in operands.items() if value is not None)
    results = moe_gating_top_k_p.bind(*(operands[name] for name in names), names=names, **static)
    y, expert_idx, *out = (jnp.reshape(result, (*x.shape[:-1], result.shape[-1])) for result in results)
    return MoeGating(y, expert_idx, *(out or [None]))


def _flat(value, x, rank):
    """`value`, with the two leading axes of a three-dimensional `x` made one."""
    if value is None or x is None or x.ndim != 3 or value.ndim != rank + 1 or value.shape[:2] != x.shape[:2]:
        return value
    return jnp.reshape(value, (x.shape[0] * x.shape[1], *value.shape[2:]))


# An operand is per token, or the same for all tokens. The latter have the leading batch dimensions of `x`, or none.
_RANKS = {"x": 2, "bias": 1, "input_ids": 1, "tid2eid": 2, "additional_bias": 1, "additional_token_mask": 1}
_SHARED = ("bias", "tid2eid", "additional_bias")


def _rule(operands, *, routed_scaling_factor, eps, **attributes):
    return rules.moe_gating_top_k(**operands, **attributes)


def _abstract_eval(x, *others, names, **static):
    operands = dict(zip(names, (x, *others)))
    results = _rule({name: without_leading(aval, _RANKS[name]) for name, aval in operands.items()}, **static)
    lead = x.shape[:-2]
    return [
        x.update(shape=(*lead, *result.shape), dtype=jnp.dtype(result.dtype), weak_type=False)
        for result in results
        if result is not None
    ]


def _batch(operands, axes, *, names, **static):
    """Gives every operand the new leading dimension, but for shared ones that have no leading dimension at all."""
    size = next(x.shape[axis] for x, axis in zip(operands, axes) if axis is not None)

    def lead(x, axis):
        return jnp.broadcast_to(x, (size, *x.shape)) if axis is None else jnp.moveaxis(x, axis, 0)

    x = lead(operands[0], axes[0])
    others = []
    for name, value, axis in zip(names[1:], operands[1:], axes[1:]):
        if axis is not None or name not in _SHARED or value.ndim > _RANKS[name]:
            value = lead(value, axis)
            own = value.shape[value.ndim - _RANKS[name] :]
            # A shared one may not have had the leading dimensions that the others have.
            value = value.reshape(size, *[1] * (x.ndim - 3), *own) if value.ndim == 1 + len(own) else value
            value = jnp.broadcast_to(value, (*x.shape[:-2], *own))
        others.append(value)
    results = moe_gating_top_k_p.bind(x, *others, names=names, **static)
    return results, [0] * len(results)


def _fallback(x, *others, names, k, norm_type, eps, routed_scaling_factor, out_flag, **static):
    operands = dict(zip(names, (x, *others)))
    keys = bits.keys_of(bits.bits_of(x), x.dtype)
    nan = keys == bits.nan_key(x.dtype)
    logits = bits.float32_of_keys(jnp.where(nan, -bits.infinity_key(x.dtype), keys), x.dtype)
    scores = (_softmax, _sigmoid, _sqrt_softplus)[norm_type](logits)

    if "tid2eid" in operands:
        ids = _look_up(operands["tid2eid"], operands["input_ids"])
    else:
        keys = _selection_keys(scores, nan, **{name: operands[name] for name in names if name != "x"})
        ids = _largest(_drop_groups(keys, static["k_group"], static["group_count"], static["group_select_mode"]), k)

    weights = jnp.take_along_axis(scores, jnp.clip(ids, 0, scores.shape[-1] - 1), axis=-1, mode="promise_in_bounds")
    weights = jnp.where((ids >= 0) & (ids < scores.shape[-1]), weights, 0)
    if norm_type != 0:
        weights /= (_sum(weights) + np.float32(eps))[..., None]
    y = (weights * np.float32(routed_scaling_factor)).astype(x.dtype)
    return [y, ids, scores] if out_flag else [y, ids]


def _softmax(x):
    maximum = jnp.max(x, axis=-1, keepdims=True)
    below = jnp.where(x == maximum, 0, maximum - x)  # 0 also where both are infinite
    weights = jnp.where(jnp.isneginf(x), 0, elementary.exp_negative(below))
    return weights / jnp.maximum(_sum(weights), 1)[..., None]  # less than 1 only if all are 0


def _sigmoid(x):
    exp = elementary.exp_negative(jnp.abs(x))
    return jnp.where(x < 0, exp, 1) / (1 + exp)


def _sqrt_softplus(x):
    return jnp.sqrt(jnp.maximum(x, 0) + elementary.log1p(elementary.exp_negative(jnp.abs(x))))


def _sum(x):
    """The sum of a row, in an order that does not depend on the batch."""
    return blocks.total(blocks.pad(x, 0))


def _look_up(table, rows):
    """[n, k], [T] -> [T, k], the ids of every token; -1 where it is outside the table."""
    size = table.shape[-2]
    inside = (rows >= 0) & (rows < size)
    rows = jnp.clip(rows, 0, size - 1)
    if table.ndim == 2:
        ids = jnp.take(table, rows, axis=0, mode="clip")
    else:
        ids = jnp.take_along_axis(table, rows[..., None], axis=-2, mode="promise_in_bounds")
    ids = jnp.where(inside[..., None], ids, -1)
    return jnp.clip(ids, -(2**31), 2**31 - 1).astype(jnp.int32)  # a 64-bit id that is out of range stays so


def _selection_keys(scores, nan, bias=None, additional_bias=None, additional_token_mask=None):
    """Integers that order like the biased scores, NaN like -inf."""
    biased = scores if bias is None else scores + _per_expert(bias)
    if additional_token_mask is not None:
        other = scores + _per_expert(additional_bias)
        biased = jnp.where(additional_token_mask[..., None], other, biased)
    return jnp.where(nan, -bits.infinity_key(jnp.float32), _keys(biased))


def _per_expert(bias):
    """[..., E] -> float32 [..., 1, E]."""
    return bits.float32_of_keys(bits.keys_of(bits.bits_of(bias), bias.dtype), bias.dtype)[..., None, :]


def _keys(x):
    keys = bits.keys_of(bits.bits_of(x), jnp.float32)
    return jnp.where(keys == bits.nan_key(jnp.float32), -bits.infinity_key(jnp.float32), keys)


def _drop_groups(keys, k_group, group_count, group_select_mode):
    """`keys`, with those of all but the best groups made less than any other."""
    experts = keys.shape[-1]
    if not rules.selects_groups(experts, k_group, group_count):
        return keys
    grouped = keys.reshape(*keys.shape[:-1], group_count, experts // group_count)
    group = jnp.max(grouped, axis=-1)
    if group_select_mode == 1:
        below = jnp.max(jnp.where(grouped < group[..., None], grouped, bits.PADDING_KEY), axis=-1)
        several = jnp.sum(grouped == group[..., None], axis=-1, dtype=jnp.int32) > 1
        second = jnp.where(several, group, below)
        group = _keys(bits.float32_of_keys(group, jnp.float32) + bits.float32_of_keys(second, jnp.float32))
    mine, other = group[..., :, None], group[..., None, :]
    number, other_number = (lax.broadcasted_iota(jnp.int32, (group_count, group_count), axis) for axis in (0, 1))
    better = (other > mine) | ((other == mine) & (other_number < number))
    kept = jnp.sum(better, axis=-1, dtype=jnp.int32) < k_group
    return jnp.where(kept[..., None], grouped, bits.PADDING_KEY).reshape(keys.shape)


def _largest(keys, k):
    """int32 [..., k]: where the k largest keys are, the largest first, equal ones by increasing position.

    A row is cut into short blocks. The best that is left of each is known, so that each of the k costs one look at
    these and one at the block it is taken from, where only what comes after it in the order is left.
    """
    *lead, size = keys.shape
    count = -(-size // _BLOCK)
    padding = [*[(0, 0, 0)] * len(lead), (0, count * _BLOCK - size, 0)]
    keys = lax.pad(keys, bits.PADDING_KEY, padding).reshape(*lead, count, _BLOCK)
    best, place = _first_maximum(keys)

    def take(i, state):
        best, place, taken = state
        largest, block = _first_maximum(best)
        at = jnp.take_along_axis(place, block, axis=-1, mode="promise_in_bounds")
        inside = jnp.take_along_axis(keys, block[..., None], axis=-2, mode="promise_in_bounds")[..., 0, :]
        left = (inside < largest) | ((inside == largest) & (_positions(inside) > at))
        next_best, next_place = _first_maximum(jnp.where(left, inside, bits.PADDING_KEY))
        here = _positions(best) == block
        taken = lax.dynamic_update_slice_in_dim(taken, block * np.int32(_BLOCK) + at, i, axis=-1)
        return jnp.where(here, next_best, best), jnp.where(here, next_place, place), taken

    state = best[..., 0], place[..., 0], jnp.zeros((*lead, k), jnp.int32)
    return lax.fori_loop(0, k, take, state)[2]


def _first_maximum(x):
    """The maximum of the last axis and its first position, both [..., 1]."""
    maximum = jnp.max(x, axis=-1, keepdims=True)
    position = jnp.where(x == maximum, _positions(x), np.int32(2**31 - 1))
    return maximum, jnp.min(position, axis=-1, keepdims=True)


def _positions(x):
    return lax.broadcasted_iota(jnp.int32, x.shape, x.ndim - 1)


def _ascend(*, names, target, **static):
    attributes = dict(static, resultSegmentSizes=(1, 1, int(static["out_flag"])))
    segments = [int(name in names) for name in _RANKS]
    return attributes if target is None else dict(attributes, target=target), segments


def _without_leading_dimensions(x, *others, names, **static):
    """The same with one batch dimension less, or none.

    The tokens of all entries of a batch are the tokens of one operation, unless every entry has tables of its own: then
    there is an operation for each.
    """
    operands = dict(zip(names, (x, *others)))
    bind = functools.partial(moe_gating_top_k_p.bind, names=names, **static)
    own = [name for name in names if name in _SHARED and operands[name].ndim > _RANKS[name]]
    if not own:
        *lead, tokens, _ = x.shape
        rows = tokens
        for size in lead:
            rows = rows * size
        flat = (
            value if name in _SHARED else jnp.reshape(value, (rows, *x.shape[len(lead) + 1 : len(lead) + _RANKS[name]]))
            for name, value in operands.items()
        )
        return [jnp.reshape(result, (*lead, tokens, result.shape[-1])) for result in bind(*flat)]
    if not isinstance(x.shape[0], int):
        raise Unsupported(
            "moe_gating_top_k", own[0], f"of its own for every entry of a batch of unknown size ({x.shape[0]})"
        )
    shared = [name for name in names if name in _SHARED and name not in own]
    entries = [bind(*(v if name in shared else v[i] for name, v in operands.items())) for i in range(x.shape[0])]
    return [jnp.stack(results) for results in zip(*entries)]


moe_gating_top_k_p = Primitive("moe_gating_top_k")
moe_gating_top_k_p.multiple_results = True
moe_gating_top_k_p.def_impl(eager(moe_gating_top_k_p))
moe_gating_top_k_p.def_abstract_eval(_abstract_eval)
not_differentiable(moe_gating_top_k_p)
batching.primitive_batchers[moe_gating_top_k_p] = _batch
register_fallback(moe_gating_top_k_p, _fallback)
register_ascend_lowering(moe_gating_top_k_p, _ascend, fold=_without_leading_dimensions)
