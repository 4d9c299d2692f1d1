"""Routing of tokens to experts: the rows of tokens, once for each of their experts, in the order of the experts.

The operator is `moe_init_routing`. The code sorts the ids of all pairs, stably, and takes the token of each; on the way
it may count the pairs of each expert. `argsort` orders any numbers, and the operator leaves out ids that are no expert:
so the code is only raised where the ids come from a choice among the experts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from jascend.ops.moe_init_routing import moe_init_routing

from .bounds import bounds
from .filters import Refused
from .gating import one_hot_of
from .graph import Node, Raise, number
from .rows import from_start, positions, ranks

_MOST_EXPERTS = 10240


@dataclass(frozen=True)
class Routed:
    """A routing that code writes out: `nodes` are its rows, its index and its counts."""

    nodes: tuple[Node, ...]
    x: Node
    ids: Node
    slots: int
    experts: int
    row_idx_type: int

    def run(self, value: Callable[[Node], Any], scale: Any = None, **attributes: Any) -> Any:
        """The operator's results."""
        ids = value(self.ids).reshape(self.x.shape[0], self.slots)
        return moe_init_routing(
            value(self.x), ids, scale, expert_num=self.experts, row_idx_type=self.row_idx_type, **attributes
        )

    def others(self, result: Any) -> list[Any]:
        """What nodes other than the rows are."""
        _, pairs, *counts = self.nodes
        index = result.expanded_row_idx.astype(pairs.dtype)
        return [index, *(result.expert_tokens.astype(count.dtype) for count in counts)]


def raise_routing(node: Node) -> Raise | None:
    """Rows taken in the order of the experts of their pairs."""
    routed = routing_of(node)
    if routed is None:
        return None

    def build(value: Callable[[Node], Any]) -> list[Any]:
        result = routed.run(value)
        return [result.expanded_x, *routed.others(result)]

    text = f"tokens in the order of {routed.experts} experts, as moe_init_routing"
    return Raise(routed.nodes, (routed.x, routed.ids), build, text)


def routing_of(node: Node) -> Routed | None:
    taken = _rows_taken(node)
    if taken is None:
        return None
    x, pairs, slots = taken
    order = positions(pairs)
    if order is None or order.descending or not order.whole or order.key.rank != 1 or order.key.dtype != np.int32:
        return None
    flat = order.key
    if flat.length != x.shape[0] * slots or 0 in x.shape:
        return None
    if not order.low_first:
        raise Refused("it does not keep pairs of one expert in order")
    low, high = bounds(flat)
    if low < 0 or high >= _MOST_EXPERTS:
        raise Refused("its ids may be no experts: argsort orders them too, and the operator leaves them out")
    experts = int(high) + 1
    counts, experts = _counts(flat, experts)
    inverse = [user for user in pairs.users if user.op == "sort" and user.output == 1 and ranks(user) == order]
    ids = flat.inputs[0] if flat.op == "reshape" and flat.inputs[0].shape == (x.shape[0], slots) else flat
    return Routed((node, *(inverse[:1] or [pairs]), *counts), x, ids, slots, experts, 0 if inverse else 1)


def _rows_taken(node: Node) -> tuple[Node, Node, int] | None:
    """(x, pairs, slots) of `x[pairs // slots]` or `repeat(x, slots, axis=0)[pairs]`."""
    if node.op != "gather" or node.inputs[0].rank != 2:
        return None
    rows, indices = node.inputs
    dims = node.params["dimension_numbers"]
    first = tuple(dims.start_index_map) == tuple(dims.collapsed_slice_dims) == (0,) and not dims.operand_batching_dims
    whole = tuple(node.params["slice_sizes"]) == (1, rows.length) and tuple(dims.offset_dims) == (1,)
    if not first or not whole or indices.rank != 2:
        return None
    if indices.op not in ("reshape", "broadcast_in_dim") or indices.inputs[0].rank != 1:
        return None
    index = _without_wrap(indices.inputs[0])
    match rows:
        case Node("reshape", (Node("broadcast_in_dim", (x,)) as repeated,)) if repeated.rank == 3:
            if repeated.params["broadcast_dimensions"] == (0, 2):
                return x, index, repeated.shape[1]
    divided = _divided(index)
    return (rows, *divided) if divided else (rows, index, 1)


def _without_wrap(node: Node) -> Node:
    """An index of which it is known that it does not count from the end."""
    match node:
        case Node("select_n", (Node("lt", (a, zero)), b, Node("add", (c, _)))) if a is b is c and number(zero) == 0:
            divided = _divided(b)
            if positions(divided[0] if divided else b) is not None:
                return b
    return from_start(node)


def _divided(node: Node) -> tuple[Node, int] | None:
    """(i, n) of `i // n`, where i is not negative."""
    match node:
        case Node("select_n", (_, Node("div", (i, n)) as quotient, Node("sub", (again, one)))) if again is quotient:
            return (i, int(number(n))) if number(one) == 1 and number(n) is not None and number(n) > 0 else None
        case Node("div", (i, n)) if number(n) is not None and number(n) > 0 and node.dtype.kind == "i":
            return i, int(number(n))
    return None


def _counts(flat: Node, experts: int) -> tuple[list[Node], int]:
    """The nodes that count the pairs of each expert, and the number of experts, which they may tell."""
    stack, seen, found = [flat], {flat}, []
    while stack:
        for user in stack.pop().users:
            if user in seen:
                continue
            seen.add(user)
            if user.op in ("max", "lt", "add", "select_n", "broadcast_in_dim", "eq", "convert_element_type", "reshape"):
                stack.append(user)
            elif _counts_of(user, flat):
                found.append(user)
    found = [node for node in found if node.length >= experts]
    if found:
        experts = found[0].length
    return [node for node in found if node.length == experts], experts


def _counts_of(node: Node, flat: Node) -> bool:
    match node:
        case Node("scatter-add" | "scatter_add", (base, indices, ones)) if node.rank == 1:
            return number(base) == 0 and number(ones) == 1 and ones.shape == flat.shape and _clipped(indices) is flat
        case Node("reduce_sum", (hot,)) if hot.rank == 2 and tuple(node.params["axes"]) == (0,):
            return one_hot_of(hot) is flat
    return False


def _clipped(node: Node) -> Node:
    """The index behind `bincount`'s clipping at 0, which changes no id."""
    while True:
        match node:
            case Node("reshape" | "broadcast_in_dim", (x,)) if node.shape == (*x.shape, 1):
                node = x
            case Node("select_n", (Node("lt", (a, zero)), b, _)) if a is b and number(zero) == 0:
                node = b
            case Node("max", (x, y)) if number(x) == 0:
                node = y
            case Node("max", (x, y)) if number(y) == 0:
                node = x
            case _:
                return node
