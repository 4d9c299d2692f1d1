"""Dynamic quantization around a routing: rows divided by a 127th of their largest magnitude, rounded to int8.

The operator is `moe_init_routing` with `quant_mode` 1. The code quantizes the rows that a routing gives; or it
quantizes the tokens, and routes these codes and their scales. Both are the same, since every copy of a token has the
token's codes.

Codes have the same bits as the operator's only if they are computed in float32, by a division by `max|x| / 127` and
rounding to even. Where the code divides rows of zeros by something else than 0, their codes are 0 all the same, but not
that scale. Scales that are subnormal aside: the operator takes them for 0, and XLA for CPUs does, or not, as it
divides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jax import lax

from jascend.ops.moe_init_routing import moe_init_routing

from .filters import Refused
from .gating import vector_of
from .graph import Node, Raise, number
from .routing import routing_of
from .rows import either, reduced, spread

_ROUTING = "ascend.moe_init_routing"
_LARGEST = 127
_VIEWS = ("broadcast_in_dim", "reshape", "squeeze", "expand_dims")
_TEXT = "rows routed with dynamic quantization, as moe_init_routing"


@dataclass(frozen=True)
class _Quantized:
    """Codes of the rows of `x`, times `smooth` where it is there. `scale` is what rows are divided by, before anything
    is put in the place of zeros; `guarded` with that. `reason`: why the operator gives something else, or None."""

    x: Node
    smooth: Node | None
    scale: Node
    guarded: Node
    division: Node
    reason: str | None

    @property
    def factors(self) -> tuple[Node, ...]:
        return () if self.smooth is None else (self.smooth,)


def raise_quantization(node: Node) -> Raise | None:
    """A routing whose rows are quantized, after it or before."""
    if node.op == "convert_element_type":
        return _of_routed(node)
    return _routed(node) if node.op == _ROUTING else None


def _of_routed(codes: Node) -> Raise | None:
    """Codes of the rows that a routing gives, be it the operator or written out."""
    found = _quantized(codes)
    if found is None or found.x.output:
        return None
    by_code = routing_of(found.x) if found.x.op == "gather" else None
    if by_code is None and found.x.op != _ROUTING:
        return None
    _check(found, {} if by_code else found.x.params)
    if found.guarded is not found.scale and not _only_divides(found):
        raise Refused("it has another scale for rows of zeros than the operator, which has 0")
    others = by_code.nodes[1:] if by_code else found.x.call.values[1:]
    inputs = (by_code.x, by_code.ids) if by_code else found.x.inputs[:2]

    def build(value: Callable[[Node], Any]) -> list[Any]:
        if by_code:
            result = by_code.run(value, _scale_operand(found, value), quant_mode=1)
            rest = by_code.others(result)
        else:
            result = _route(value, found.x, inputs[0], found)
            rest = _given(result)
        return [result.expanded_x, result.expanded_scale.reshape(found.scale.shape), *rest]

    return Raise((codes, found.scale, *others), (*inputs, *found.factors), build, _TEXT)


def _routed(node: Node) -> Raise | None:
    """Codes of tokens that are routed, and their scales with them."""
    found = _quantized(node.inputs[0])
    if found is None or found.x.rank != 2:
        return None
    _check(found, node.params, has_scale=True)
    has_scale = node.params["has_scale"]
    if has_scale and spread(node.inputs[2]) is not spread(found.scale):
        if spread(node.inputs[2]) is spread(found.guarded):
            raise Refused("it has another scale for rows of zeros than the operator, which has 0")
        raise Refused("the scales that it routes are not those that it divides by")

    def build(value: Callable[[Node], Any]) -> list[Any]:
        result = _route(value, node, found.x, found)
        return [result.expanded_x, *_given(result), *([result.expanded_scale] if has_scale else [])]

    return Raise(node.call.values, (found.x, node.inputs[1], *found.factors), build, _TEXT)


def _check(found: _Quantized, routing: Mapping[str, Any], has_scale: bool = False) -> None:
    if found.reason is not None:
        raise Refused(found.reason)
    if routing.get("quant_mode", -1) != -1:
        raise Refused("its routing quantizes already")
    if routing.get("has_scale") and not has_scale:
        raise Refused("its routing has scales already")


def _scale_operand(found: _Quantized, value: Callable[[Node], Any]) -> Any:
    return None if found.smooth is None else value(found.smooth).reshape(1, found.smooth.length)


def _route(value: Callable[[Node], Any], routing: Node, x: Node, found: _Quantized) -> Any:
    attributes = {k: v for k, v in routing.params.items() if k not in ("has_scale", "has_offset")} | {"quant_mode": 1}
    return moe_init_routing(value(x), value(routing.inputs[1]), _scale_operand(found, value), **attributes)


def _given(result: Any) -> list[Any]:
    """The index, and the counts where there are any."""
    return [result.expanded_row_idx, *([] if result.expert_tokens is None else [result.expert_tokens])]


def _only_divides(found: _Quantized) -> bool:
    """Whether nothing else uses what stands in the place of scales of 0."""
    waiting = [found.guarded]
    while waiting:
        node = waiting.pop()
        if node.returned:
            return False
        for user in node.users:
            if user.op in _VIEWS:
                waiting.append(user)
            elif user is not found.division:
                return False
    return True


# -- quantization -----------------------------------------------------------------------------------------------------


def _quantized(codes: Node) -> _Quantized | None:
    if codes.op != "convert_element_type" or codes.dtype != np.int8 or codes.inputs[0].dtype.kind in "iub":
        return None
    quotient, reason = _rounded(codes.inputs[0])
    for v, divisor in [quotient.inputs] if quotient.op == "div" else either(quotient, "mul"):
        found = _scale(divisor)
        if quotient.op == "mul":
            found = _reciprocal(divisor)
        if found is None:
            continue
        largest, scale, guarded, why = found
        match reduced(_widened(spread(largest)), "reduce_max"):
            case Node("abs", (u,)) if u is v or _widened(u) is _widened(v):
                reason = reason or why
            case _:
                continue
        if v.dtype != np.float32 or scale.dtype != np.float32:
            reason = reason or f"it divides in {v.dtype}, the operator in float32"
        x, smooth = _smoothed(v)
        return _Quantized(x, smooth, scale, guarded, quotient, reason)
    return None


def _rounded(node: Node) -> tuple[Node, str | None]:
    """What is rounded and held within the codes; and how that is not the operator's way."""
    node = _unclipped(node)
    match node:
        case Node("round", (x,)):
            even = node.params["rounding_method"] == lax.RoundingMethod.TO_NEAREST_EVEN
            return _unclipped(x), None if even else "it rounds halves away from zero, the operator to even"
    return node, "it does not round, and a cast cuts off"


def _unclipped(node: Node) -> Node:
    match node:
        case Node("clamp", (low, x, high)) if number(low) in (-_LARGEST, -_LARGEST - 1) and number(high) == _LARGEST:
            return _unclipped(x)
    for op, limits in (("min", (_LARGEST,)), ("max", (-_LARGEST, -_LARGEST - 1))):
        for x, limit in either(node, op):
            if number(limit) in limits:
                return _unclipped(x)
    return node


def _scale(node: Node) -> tuple[Node, Node, Node, str | None] | None:
    """(max|x|, scale, scale with zeros replaced, reason) of a divisor."""
    guarded = spread(node)
    scale, why = _unguarded(guarded)
    match scale:
        case Node("div", (largest, whole)) if number(whole) == _LARGEST:
            inner, reason = _unguarded(spread(largest))
            if inner is spread(largest):
                return largest, scale, guarded, why
            return inner, scale, guarded, (
                reason or "it has another scale for rows of zeros than the operator, which has 0"
            )
        case Node("mul"):
            for largest, factor in either(scale, "mul"):
                if number(factor) is not None and abs(float(number(factor)) * _LARGEST - 1) < 1e-3:
                    return largest, scale, guarded, "its scale is a product with 1 / 127, the operator divides by 127"
    return None


def _reciprocal(node: Node) -> tuple[Node, Node, Node, str | None] | None:
    """The same for a factor that is one over a scale."""
    why = "it multiplies by the reciprocal of a scale, the operator divides"
    match spread(node):
        case Node("div", (one, scale)) if number(one) == 1:
            found = _scale(scale)
            return found and (*found[:3], why)
        case Node("div", (whole, largest)) as factor if number(whole) == _LARGEST:
            return _unguarded(spread(largest))[0], factor, factor, why
    return None


def _unguarded(node: Node) -> tuple[Node, str | None]:
    """s of `where(s == 0, number, s)` and its like; and why it matters what stands there."""
    match node:
        case Node("select_n", (Node("eq" | "le", (a, zero)), s, other)) if number(zero) == 0 and number(other):
            return (s, None) if _same_row(a, s) else (node, None)
        case Node("select_n", (Node("gt" | "ne", (a, zero)), other, s)) if number(zero) == 0 and number(other):
            return (s, None) if _same_row(a, s) else (node, None)
    for s, least in either(node, "max"):
        if number(least) is not None and number(least) > 0:
            return s, (
                f"its scales, or what they are made of, are at least {number(least):g}, "
                "those of the operator as they are"
            )
    return node, None


def _same_row(a: Node, s: Node) -> bool:
    """Whether `a` is 0 where `s` is: the same, or its numerator."""
    a, s = spread(a), spread(s)
    return a is s or (s.op == "div" and spread(s.inputs[0]) is a)


def _widened(node: Node) -> Node:
    """A value before it was made wider."""
    while node.op == "convert_element_type" and node.inputs[0].dtype in (np.float32, "bfloat16", np.float16):
        if node.dtype.itemsize < node.inputs[0].dtype.itemsize:
            break
        node = node.inputs[0]
    return node


def _smoothed(v: Node) -> tuple[Node, Node | None]:
    """(x, factors) where every row of x is multiplied by the same ones."""
    for x, factor in either(v, "mul"):
        smooth = vector_of(factor)
        if smooth is not None and smooth.dtype == np.float32 and number(smooth) is None:
            return _widened(x), smooth
    return _widened(v), None
