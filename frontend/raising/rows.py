"""What values say of rows: softmax, orders, values listed in an order and put back.

A row is a last axis; leading axes are a batch. Every function here looks at one node and at what it is made of, and
returns what the node is, or None.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from .graph import Node, number


@dataclass(frozen=True)
class Order:
    """An order of the positions of rows, by the values of `key`. `low_first`: of equal values, the one at the lower
    position comes first. `length`: how many positions are listed."""

    key: Node
    descending: bool
    low_first: bool
    length: int

    def reversed(self) -> Order:
        return replace(self, descending=not self.descending, low_first=not self.low_first)

    @property
    def whole(self) -> bool:
        return self.length == self.key.length


# -- one value a row ------------------------------------------------------------------------------------------------


def spread(node: Node) -> Node:
    """The value that a node repeats along rows: views and broadcasts that keep the batch are seen through."""
    while node.op in ("broadcast_in_dim", "reshape", "squeeze", "expand_dims") and _keepslead(node):
        node = node.inputs[0]
    return node


def _keepslead(node: Node) -> bool:
    inner, outer = lead(node.inputs[0].shape), node.shape
    if node.op == "broadcast_in_dim" and node.params["broadcast_dimensions"][: len(inner)] != tuple(range(len(inner))):
        return False
    return inner == outer[: len(inner)] and (node.op == "broadcast_in_dim" or lead(outer) == inner)


def lead(shape: tuple[int, ...]) -> tuple[int, ...]:
    while shape and shape[-1] == 1:
        shape = shape[:-1]
    return shape


def reduced(node: Node, op: str) -> Node | None:
    """What `op` reduces along rows into this value, one a row."""
    match spread(node):
        case Node(found, (x,)) as base if found == op and tuple(base.params["axes"]) == (x.rank - 1,):
            return x
    return None


def along_rows(node: Node, parameter: str) -> bool:
    return node.params[parameter] == node.rank - 1


# -- elementwise ----------------------------------------------------------------------------------------------------


def either(node: Node, op: str) -> Iterator[tuple[Node, Node]]:
    """The operands of a commutative operation, in both orders."""
    if node.op == op:
        a, b = node.inputs
        yield a, b
        yield b, a


def softmax_of(node: Node) -> Node | None:
    match node:
        case Node("div", (Node("exp", (shifted,)) as exp, total)) if _summed(total) is exp:
            return _shifted(shifted)
    return None


def _summed(node: Node) -> Node | None:
    """What is summed along rows, be it in float32 on the way."""
    found = reduced(node, "reduce_sum")
    if found is None and spread(node).op == "convert_element_type":
        found = reduced(spread(node).inputs[0], "reduce_sum")
        return found.inputs[0] if found is not None and found.op == "convert_element_type" else None
    return found


def _shifted(node: Node) -> Node | None:
    """x of `x - max(x)`."""
    match node:
        case Node("sub", (x, top)) if reduced(top, "reduce_max") is x:
            return x
    return None


def log_softmax_of(node: Node) -> Node | None:
    """x of `log_softmax(x)` or `log(softmax(x))`: x but for a constant a row."""
    match node:
        case Node("log", (probabilities,)):
            return softmax_of(probabilities)
        case Node("sub", (shifted, log_total)):
            match spread(log_total):
                case Node("log", (total,)):
                    match reduced(total, "reduce_sum"):
                        case Node("exp", (exponent,)) if exponent is shifted:
                            return _shifted(shifted)
    return None


def is_iota(node: Node) -> bool:
    """Whether each element is its position in the row."""
    match node:
        case Node("iota"):
            return along_rows(node, "dimension")
        case Node("broadcast_in_dim", (x,)) if x.rank and node.length == x.length:
            return node.params["broadcast_dimensions"][-1] == node.rank - 1 and is_iota(x)
        case Node("reshape", (x,)) if x.rank and node.length == x.length:
            return is_iota(x)
        case Node("convert_element_type", (x,)):
            return is_iota(x)
        case Node("constant"):
            return counts(node, node.rank - 1)
    return False


# -- orders ---------------------------------------------------------------------------------------------------------


def positions(node: Node) -> Order | None:
    """The order whose positions a node lists."""
    found = _listing(node)
    return found[1] if found and found[0] is None else None


def listed(node: Node) -> tuple[Node, Order] | None:
    """(x, order) where a node lists the elements of x in an order."""
    found = _listing(node)
    return found if found and found[0] is not None else None


def _listing(node: Node) -> tuple[Node | None, Order] | None:
    """(x, order); x is None for the positions themselves."""
    match node:
        case Node("sort", inputs) if along_rows(node, "dimension") and node.params["num_keys"] == 1:
            return _sorted(node, inputs)
        case Node("ascend.sort", (x,)):
            return (None if node.output else x), Order(x, node.params["descending"], True, x.length)
        case Node("top_k", (x,)) if node.params.get("axis", x.rank - 1) == x.rank - 1:
            order = Order(x, True, True, node.length)
            return (x if node.output == 0 else None), order
        case Node("rev", (x,)) if node.params["dimensions"] == (node.rank - 1,):
            found = _listing(x)
            return (found[0], found[1].reversed()) if found and found[1].whole else None
        case Node("neg", (x,)):
            match listed(x):
                case (Node("neg", (y,)), order):
                    return y, order
        case Node("slice", (x,)) if _is_prefix(node):
            found = _listing(x)
            return (found[0], replace(found[1], length=node.length)) if found else None
        case Node("convert_element_type", (x,)) if x.dtype.kind in "iu" and node.dtype.kind in "iu":
            order = positions(x)
            return (None, order) if order else None
    taken = take_along(node)
    if taken:
        order = positions(taken[1])
        if order and order.key.shape == taken[0].shape:
            return taken[0], order
    return None


def _sorted(node: Node, inputs: tuple[Node, ...]) -> tuple[Node | None, Order] | None:
    key, payload = inputs[0], inputs[node.output]
    if node.output and not node.params["is_stable"]:
        return None
    order = Order(key, False, True, key.length)
    match key, payload:
        case Node("rev", (x,)), Node("rev", (y,)) if _whole_rows(key) and _whole_rows(payload):
            key, payload, order = x, y, replace(order, key=x, low_first=False)
    match key:
        case Node("neg", (x,)) if payload is not key:
            order = replace(order, key=x, descending=True)
        case Node("neg", (x,)):
            return key, replace(order, key=x, descending=True)
    return (None if is_iota(payload) else payload), order


def _whole_rows(node: Node) -> bool:
    return node.params["dimensions"] == (node.rank - 1,)


def _is_prefix(node: Node) -> bool:
    x, (start, limit) = node.inputs[0], (node.params["start_indices"], node.params["limit_indices"])
    strides = node.params["strides"] or (1,) * node.rank
    whole = start[:-1] == (0,) * (node.rank - 1) and limit[:-1] == x.shape[:-1]
    return whole and start[-1] == 0 and set(strides) == {1}


def ranks(node: Node) -> Order | None:
    """The order in which a node says each position's place."""
    match node:
        case Node("sort", (key, payload)) if node.output == 1 and along_rows(node, "dimension") and is_iota(payload):
            order = positions(key)
            return order if order and order.whole else None
    return None


def restored(node: Node) -> tuple[Node, Order] | None:
    """(v, order) where v lists the elements of a node in an order: the node is v put back in place."""
    match node:
        case Node("sort", (key, *_)) if node.output and along_rows(node, "dimension") and node.params["num_keys"] == 1:
            order = positions(key)
            return (node.inputs[node.output], order) if order and order.whole else None
    taken = take_along(node)
    if taken:
        order = ranks(taken[1])
        return (taken[0], order) if order else None
    put = put_along(node)
    if put:
        _, index, values = put
        order = positions(index)
        return (values, order) if order and order.whole and values.shape == node.shape else None
    return None


# -- taking and putting ---------------------------------------------------------------------------------------------


def take_along(node: Node) -> tuple[Node, Node] | None:
    """(x, index) of `take_along_axis(x, index, -1)`, however it is written."""
    if node.op != "gather":
        return None
    x, indices = node.inputs
    dims = node.params["dimension_numbers"]
    if node.params["slice_sizes"] != (1,) * x.rank or dims.offset_dims:
        return None
    batching = (dims.operand_batching_dims, dims.start_indices_batching_dims)
    index = _row_index(batching, dims.collapsed_slice_dims, dims.start_index_map, x, indices)
    return (x, index) if index is not None else None


def put_along(node: Node) -> tuple[Node, Node, Node] | None:
    """(x, index, values) of `put_along_axis(x, index, values, -1)`, however it is written."""
    if node.op != "scatter":
        return None
    x, indices, values = node.inputs
    dims = node.params["dimension_numbers"]
    if dims.update_window_dims:
        return None
    batching = (dims.operand_batching_dims, dims.scatter_indices_batching_dims)
    index = _row_index(batching, dims.inserted_window_dims, dims.scatter_dims_to_operand_dims, x, indices)
    return (x, index, values) if index is not None and index.shape == values.shape else None


def _row_index(batching, collapsed, index_map, x: Node, indices: Node) -> Node | None:
    """The index along rows, where all other axes are indexed by themselves."""
    last = x.rank - 1
    index = None
    if all(tuple(axes) == tuple(range(last)) for axes in batching) and tuple(index_map) == tuple(collapsed) == (last,):
        index = _index(indices)
    elif not batching[0] and tuple(index_map) == tuple(collapsed) == tuple(range(x.rank)):
        if indices.op == "concatenate" and len(indices.inputs) == x.rank:
            *before, along = indices.inputs
            if all(_counts_axis(part, axis) for axis, part in enumerate(before)):
                index = _index(along)
    return index if index is not None and index.shape[:last] == x.shape[:last] else None


def _index(node: Node) -> Node | None:
    """An index as the user wrote it, without the unit axis that JAX adds."""
    if node.op in ("reshape", "broadcast_in_dim") and node.inputs[0].shape == node.shape[:-1] and node.length == 1:
        return from_start(node.inputs[0])
    return None


def from_start(node: Node) -> Node:
    """An index without the `where(i < 0, i + n, i)` that JAX adds, where i lists positions and cannot be negative."""
    match node:
        case Node("select_n", (Node("lt", (a, zero)), b, Node("add", (c, _)))) if a is b is c and number(zero) == 0:
            return b if _is_natural(b) else node
    return node


def _is_natural(node: Node) -> bool:
    match node:
        case Node("iota" | "argmax" | "argmin"):
            return True
        case Node("constant"):
            return any(counts(node, axis) for axis in range(node.rank))
        case Node("broadcast_in_dim" | "reshape" | "squeeze" | "slice" | "convert_element_type" | "rev", (x,)):
            return _is_natural(x)
    return positions(node) is not None or ranks(node) is not None


def _counts_axis(node: Node, axis: int) -> bool:
    """Whether each element is its own index along an axis."""
    node = from_start(node)
    match node:
        case Node("broadcast_in_dim", (x,)):
            inner = [i for i, dim in enumerate(node.params["broadcast_dimensions"]) if dim == axis]
            return bool(inner) and _counts_axis(x, inner[0])
        case Node("reshape", (x,)) if lead(x.shape) == lead(node.shape):
            return _counts_axis(x, axis)
        case Node("iota"):
            return node.params["dimension"] == axis
        case Node("constant"):
            return counts(node, axis)
    return False


def counts(node: Node, axis: int) -> bool:
    """Whether a constant is `arange` along an axis."""
    if not 0 <= axis < node.rank or node.dtype.kind not in "iu":
        return False
    shape = [size if i == axis else 1 for i, size in enumerate(node.shape)]
    return bool((np.asarray(node.constant) == np.arange(node.shape[axis]).reshape(shape)).all())


def set_at(node: Node) -> tuple[Node, int, Node] | None:
    """(x, first, values) of `x.at[..., first].set(values)` and `x.at[..., first:...].set(values)`."""
    match node:
        case Node("scatter", (x, indices, values)) if indices.shape == (1,):
            dims = node.params["dimension_numbers"]
            first = number(indices)
            window = x.rank - len(dims.inserted_window_dims)
            if first is not None and tuple(dims.scatter_dims_to_operand_dims) == (x.rank - 1,):
                if tuple(dims.update_window_dims) == tuple(range(window)) and not dims.operand_batching_dims:
                    return x, int(first), values
    return None


def element(node: Node) -> tuple[Node, int | Node] | None:
    """(x, place) of `x[..., place]`: a number, or one index a row."""
    node = spread(node)
    match node:
        case Node("slice", (x,)) if node.rank == x.rank and node.length == 1:
            start = node.params["start_indices"]
            return (x, start[-1]) if node.shape[:-1] == x.shape[:-1] else None
    taken = take_along(node)
    if taken is None or (node.rank == taken[0].rank and node.length != 1):
        return None
    place = number(taken[1])
    return taken[0], taken[1] if place is None else int(place)
