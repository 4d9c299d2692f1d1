"""Routers of mixtures of experts: scores of a row, the ids of the largest, and their weights.

The operator is `moe_gating_top_k`. Scores are a softmax, a sigmoid or the square root of a softplus; a bias, and a
mask of groups, change who is chosen, and never the weights. Of equal scores the lower id is chosen, as `top_k` does.
Weights of a softmax stay as they are; the others the operator divides by their sum, and so must the code.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from jascend.ops.moe_gating_top_k import moe_gating_top_k

from .filters import Refused, low_first
from .graph import Node, Raise, number
from .rows import either, listed, positions, put_along, reduced, softmax_of, spread, take_along

SOFTMAX, SIGMOID, SQRT_SOFTPLUS = 0, 1, 2
_NAMES = {SOFTMAX: "softmax", SIGMOID: "sigmoid", SQRT_SOFTPLUS: "square root of softplus"}
_LARGEST_SUM, _TWO_LARGEST = 0, 1
_MOST_EXPERTS = 2048


@dataclass(frozen=True)
class _Scores:
    """What experts are chosen by: `normalized` is the node of the scores without bias."""

    x: Node
    norm_type: int
    normalized: Node
    bias: Node | None = None
    groups: dict[str, int] | None = None


def raise_gating(node: Node) -> Raise | None:
    """The ids of the k largest scores, and the weights that are made of them."""
    order = positions(node) if node.op in ("top_k", "slice") and node.rank > 1 else None
    if order is None or not order.descending:
        return None
    scores = _scores(order.key)
    if scores is None or 0 in node.shape:
        return None
    if not low_first(order):
        raise Refused("of equal scores it chooses the higher id, the operator the lower one")
    if scores.x.dtype != np.float32:
        raise Refused(f"its scores are computed in {scores.x.dtype}, those of the operator in float32")
    if scores.x.length > _MOST_EXPERTS:
        raise Refused(f"there are {scores.x.length} experts, and the operator takes {_MOST_EXPERTS}")
    weights = list(_weights(node, scores))
    nodes, options = [node], {}
    if weights:
        final, options = _normalized(weights, scores.norm_type)
        nodes += final
    inputs = (scores.x,) if scores.bias is None else (scores.x, scores.bias)
    return Raise(tuple(nodes), inputs, _build(scores, order.length, len(nodes) - 1, options), _text(scores))


def _text(scores: _Scores) -> str:
    parts = [_NAMES[scores.norm_type]]
    parts += ["bias"] * (scores.bias is not None) + ["groups"] * (scores.groups is not None)
    return f"top-k of {', '.join(parts)}, as moe_gating_top_k"


def _build(scores: _Scores, k: int, weights: int, options: dict[str, float]) -> Callable:
    lead, experts = scores.x.shape[:-1], scores.x.length

    def build(value: Callable[[Node], Any]) -> list[Any]:
        bias = None if scores.bias is None else value(scores.bias).reshape(experts)
        x = value(scores.x).reshape(-1, experts)
        result = moe_gating_top_k(x, k, bias=bias, norm_type=scores.norm_type, **(scores.groups or {}), **options)
        y, ids = (array.reshape(*lead, k) for array in (result.y, result.expert_idx))
        return [ids] + [y] * weights

    return build


# -- scores ---------------------------------------------------------------------------------------------------------


def _scores(node: Node) -> _Scores | None:
    """The scores by which a node's experts are chosen: normalized, with bias, with groups left out."""
    grouped = _without_groups(node)
    if grouped is not None:
        inner, groups = grouped
        scores = _scores(inner)
        return None if scores is None or scores.groups else _Scores(**{**vars(scores), "groups": groups})
    for normalized, bias in either(node, "add"):
        found, vector = _normalization(normalized), vector_of(bias)
        if found and vector is not None:
            return _Scores(*found, normalized, vector)
    found = _normalization(node)
    return _Scores(*found, node) if found else None


def _normalization(node: Node) -> tuple[Node, int] | None:
    x = softmax_of(node)
    if x is not None:
        return x, SOFTMAX
    match node:
        case Node("logistic", (x,)):
            return x, SIGMOID
        case Node("div", (one, Node("add", terms))) if number(one) == 1:  # 1 / (1 + exp(-x))
            match sorted(terms, key=lambda term: term.op != "exp"):
                case [Node("exp", (Node("neg", (x,)),)), plus] if number(plus) == 1:
                    return x, SIGMOID
        case Node("sqrt", (Node("select_n", (_, softplus, _)),)):
            x = _softplus(softplus)
            return None if x is None else (x, SQRT_SOFTPLUS)
    return None


def _softplus(node: Node) -> Node | None:
    """x of `max(x, 0) + log1p(exp(-|x|))`."""
    match node:
        case Node("add", (Node("max", (x, zero)), Node("log1p", (Node("exp", (Node("neg", (Node("abs", (d,)),)),)),)))):
            match d:
                case Node("sub", (y, other)) if y is x and number(zero) == number(other) == 0:
                    return x
    return None


def vector_of(node: Node) -> Node | None:
    """b where all rows are the same vector b."""
    while node.op in ("broadcast_in_dim", "reshape") and node.rank > 1:
        inner = node.inputs[0]
        if not inner.rank or inner.length != node.length or (
            node.op == "broadcast_in_dim" and node.params["broadcast_dimensions"][-1] != node.rank - 1
        ):  # fmt: skip
            return None
        node = inner
    return node if math.prod(node.shape[:-1]) == 1 and node.rank else None


# -- groups ---------------------------------------------------------------------------------------------------------


def _without_groups(node: Node) -> tuple[Node, dict[str, int]] | None:
    """(scores, attributes) where a node is scores of which whole groups have been set to -inf."""
    if node.op == "reshape" and node.inputs[0].rank == node.rank + 1:
        node = node.inputs[0]
    if node.op != "select_n" or len(node.inputs) != 3:
        return None
    mask, *cases = node.inputs
    for value, fill, kept in ((cases[0], cases[1], False), (cases[1], cases[0], True)):
        if number(fill) is None:
            continue
        found = _groups(_flat_mask(mask, kept), value)
        if found is None:
            continue
        if number(fill) != -math.inf:
            raise Refused(f"scores of other groups become {number(fill):g}, and of the operator -inf")
        return found
    return None


def _flat_mask(mask: Node, kept: bool) -> Node | None:
    """The value per group (true, or not 0, for groups that are kept) that a mask repeats for its experts."""
    while True:
        match mask:
            case Node("not", (inner,)):
                mask, kept = inner, not kept
            case Node("gt" | "ne", (inner, zero)) if kept and number(zero) == 0:
                mask = inner
            case Node("eq", (inner, zero)) if not kept and number(zero) == 0:
                mask, kept = inner, True
            case Node("convert_element_type", (inner,)):
                mask = inner
            case Node("reshape", (Node("broadcast_in_dim", _) as inner,)) if inner.rank == mask.rank + 1:
                mask = inner  # repeat(groups, S, axis=-1)
            case Node("broadcast_in_dim" | "reshape", _) if spread(mask) is not mask:
                mask = spread(mask)
            case _:
                return mask if kept else None


def _groups(mask: Node | None, value: Node) -> tuple[Node, dict[str, int]] | None:
    if mask is None:
        return None
    ids = _chosen(mask)
    order = positions(ids) if ids is not None else None
    if order is None or not order.descending or not low_first(order):
        return None
    found = _group_scores(order.key)
    if found is None:
        return None
    grouped, mode = found
    flat = grouped.inputs[0] if grouped.op == "reshape" and grouped.inputs[0].rank == grouped.rank - 1 else None
    if flat is None or value not in (flat, grouped) or grouped.shape[-2] != order.key.length:
        return None
    return flat, {"group_count": order.key.length, "k_group": order.length, "group_select_mode": mode}


def _chosen(mask: Node) -> Node | None:
    """The indices that a mask is true for: `one_hot(indices).sum(-2)`, or put there."""
    put = put_along(mask)
    if put is not None and number(put[0]) == 0 and number(put[2]) == 1:
        return put[1]
    match mask:
        case Node("reduce_sum" | "reduce_max" | "reduce_or", (hot,)) if tuple(mask.params["axes"]) == (hot.rank - 2,):
            return one_hot_of(hot)
    return None


def one_hot_of(node: Node) -> Node | None:
    """i of `one_hot(i, n)`."""
    if node.op == "convert_element_type":
        node = node.inputs[0]
    for index, places in either(node, "eq"):
        if places.op == "broadcast_in_dim" and places.params["broadcast_dimensions"][-1:] == (node.rank - 1,):
            places = places.inputs[0]
        is_iota = places.op == "iota" and places.params["dimension"] == places.rank - 1 and places.length == node.length
        base = spread(index)
        if is_iota and base.shape == node.shape[:-1]:
            return base
    return None


def _group_scores(node: Node) -> tuple[Node, int] | None:
    """(grouped scores, group_select_mode)."""
    top = reduced(node, "reduce_max")
    if top is not None:
        return top, _LARGEST_SUM
    top = reduced(node, "reduce_sum")
    found = listed(top) if top is not None else None
    if found and found[1].descending and found[1].length == 2 and found[1].key is found[0] and found[0].length > 2:
        return found[0], _TWO_LARGEST
    return None


# -- weights --------------------------------------------------------------------------------------------------------


def _weights(ids: Node, scores: _Scores) -> Iterator[Node]:
    """The scores of the chosen, without bias."""
    if ids.op == "top_k" and ids.inputs[0] is scores.normalized:
        yield ids.sibling(0)
    for user in _users(ids):
        taken = take_along(user)
        if taken and taken[0] is scores.normalized and taken[1] is ids:
            yield user


_OF_INDICES = ("lt", "add", "select_n", "reshape", "broadcast_in_dim", "concatenate")


def _users(ids: Node) -> set[Node]:
    """Operations that index with ids, behind what JAX does to indices."""
    found, stack = set(), [ids]
    while stack:
        for user in stack.pop().users:
            if user.op == "gather":
                found.add(user)
            elif user.op in _OF_INDICES and user not in found:
                found.add(user)
                stack.append(user)
    return {user for user in found if user.op == "gather"}


def _normalized(weights: list[Node], norm_type: int) -> tuple[list[Node], dict[str, float]]:
    """The nodes that are the operator's weights, and its eps and scale."""
    if norm_type == SOFTMAX:
        return weights, {}
    divided = {}
    for weight in weights:
        for user in weight.users:
            eps = _sum_plus(user.inputs[1], weight) if user.op == "div" and user.inputs[0] is weight else None
            if eps is not None:
                divided[user] = eps
        others = [user for user in weight.users if user not in divided and user.op not in ("reduce_sum", "div")]
        if weight.returned or others:
            raise Refused(f"it uses weights of a {_NAMES[norm_type]} that are not divided by their sum")
    if not divided and any(weight.users for weight in weights):
        raise Refused(
            f"it does not divide weights of a {_NAMES[norm_type]} by their sum, plus a number, as the operator does"
        )
    if not divided:
        return [], {}
    node, eps = next(iter(divided.items()))
    if len(divided) > 1:
        return [each for each, other in divided.items() if other == eps], {"eps": eps}
    factors = {number(y) for user in node.users for x, y in either(user, "mul") if x is node}
    only_scaled = not node.returned and all(user.op == "mul" for user in node.users)
    if len(factors) == 1 and None not in factors and only_scaled:
        return list(node.users), {"eps": eps, "routed_scaling_factor": float(factors.pop())}
    return [node], {"eps": eps}


def _sum_plus(node: Node, weight: Node) -> float | None:
    """eps of `sum(weight) + eps`."""
    node = spread(node)
    if reduced(node, "reduce_sum") is weight:
        return 0.0
    for total, eps in either(node, "add"):
        if reduced(total, "reduce_sum") is weight and number(eps) is not None:
            return float(number(eps))
    return None
