"""Bounds of values, as far as the operations that make them tell."""

from __future__ import annotations

import functools
import math

import numpy as np

from .graph import Node, number
from .rows import spread

Interval = tuple[float, float]

_ALL = (-math.inf, math.inf)
_BY_NATURE = {"logistic": (0.0, 1.0), "abs": (0.0, math.inf), "exp": (0.0, math.inf), "exp2": (0.0, math.inf)}
_ONE = 0x3F800000  # the bits of 1.0: with random bits for a mantissa, a number from 1 to 2
_MONOTONE = {"log": (0.0, math.log), "log1p": (-1.0, math.log1p)}  # and from where on they are numbers


def bounds(node: Node, depth: int = 32) -> Interval:
    """(least, greatest) that an element can be, NaN aside; `depth`: how far to look back."""
    constant = number(node)
    if constant is not None:
        return (float(constant),) * 2
    found = _bounds(spread(node), functools.partial(bounds, depth=depth - 1)) if depth else _ALL
    if any(map(math.isnan, found)):
        return _ALL
    if node.dtype.kind in "iu":
        least, greatest = np.iinfo(node.dtype).min, np.iinfo(node.dtype).max
        return found if least <= found[0] and found[1] <= greatest else (least, greatest)  # it may wrap around
    return found


def _bounds(node: Node, of) -> Interval:
    match node:
        case Node(op, _) if op in _BY_NATURE:
            return _BY_NATURE[op]
        case Node("bitcast_convert_type", (Node("or", (Node("shift_right_logical", (_, nine)), one)),)):
            return (1.0, 2.0) if number(nine) == 9 and number(one) == _ONE and node.dtype == np.float32 else _ALL
        case Node("max" | "min" as op, (a, b)):
            extreme = max if op == "max" else min
            return tuple(map(extreme, of(a), of(b)))
        case Node("clamp", (low, x, high)):
            (low, _), (_, high), found = of(low), of(high), of(x)
            return min(max(found[0], low), high), max(min(found[1], high), low)
        case Node("select_n", (_, *cases)):
            found = [of(x) for x in cases]
            return min(low for low, _ in found), max(high for _, high in found)
        case Node("neg", (x,)):
            low, high = of(x)
            return -high, -low
        case Node("add", (a, b)):
            return of(a)[0] + of(b)[0], of(a)[1] + of(b)[1]
        case Node("sub", (a, b)):
            return of(a)[0] - of(b)[1], of(a)[1] - of(b)[0]
        case Node("mul", (a, b)) if number(a) is not None or number(b) is not None:
            (low, high), factor = (of(b), number(a)) if number(a) is not None else (of(a), number(b))
            return tuple(sorted((low * float(factor), high * float(factor))))
        case Node("log" | "log1p" as op, (x,)):
            least, function = _MONOTONE[op]
            return tuple(-math.inf if end <= least else end if end == math.inf else function(end) for end in of(x))
        case Node("slice" | "gather" | "rev" | "reshape" | "broadcast_in_dim", (x, *_)):
            return of(x)
        case Node("convert_element_type", (x,)) if x.dtype != bool:
            low, high = of(x)
            rounds = node.dtype.kind in "iu" and math.inf not in (-low, high)
            return (math.floor(low), math.ceil(high)) if rounds else (low, high)
        case Node("iota"):
            return 0, node.shape[node.params["dimension"]] - 1
        case Node("argmax" | "argmin", (x,)):
            return 0, x.shape[node.params["axes"][0]] - 1
        case Node("top_k" | "ascend.moe_gating_top_k", (x, *_)) if node.output == 1:
            return 0, x.length - 1
    return _ALL
