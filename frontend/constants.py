"""What of a function depends on none of its arguments:
computed by JAX once, when it is compiled, and bound to the program.

A program's graph holds no data: weights that a function captures, tables, ramps and masks that it computes from sizes
become further arguments of it, which every call passes along. What is one number throughout stays in the graph, where
it costs nothing.

Before:

    def rope(x, positions):
        frequencies = 10000.0 ** (-jnp.arange(0, 64, 2) / 64)
        angles = positions[:, None] * frequencies

After:

    def rope(x, positions, frequencies):
        angles = positions[:, None] * frequencies
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jascend.raising.graph import Graph, HasEffects, Node

_MOST_BYTES = 1 << 28  # of one value that is computed


class Bound(NamedTuple):
    """`function(arguments, constants)` of flat lists gives the outputs; `constants` are the arrays for it."""

    function: Callable[[Sequence[Any], Sequence[Any]], list[Any]]
    constants: tuple[np.ndarray, ...]


def bind_constants(closed_jaxpr: Any, rows: int | None = None) -> Bound | None:
    """Takes the data out of a computation; None where there is none. `rows` stands for a symbolic number of rows: what
    has a dimension of it is not known."""
    try:
        graph = Graph(closed_jaxpr)
    except HasEffects:
        return None
    live = graph.live()
    known: set[Node] = set()
    for node in graph.nodes:
        if node.op != "argument" and all(x in known for x in node.inputs) and _can_be_known(node, rows):
            known.add(node)
    wanted = list(dict.fromkeys(_frontier(graph, known, live)))
    if not wanted:
        return None
    values = [np.asarray(x) for x in jax.jit(functools.partial(_computed, graph, wanted))()]
    numbers = {node: value.flat[0] for node, value in zip(wanted, values) if _is_one_number(value)}
    kept = [node for node in wanted if node not in numbers]

    def function(arguments: Sequence[Any], constants: Sequence[Any]) -> list[Any]:
        arrays = dict(zip((*graph.arguments, *kept), (*arguments, *constants)))
        arrays |= {node: jnp.full(node.shape, number, node.dtype) for node, number in numbers.items()}
        graph.compute(graph.outputs, arrays)
        return [arrays[node] for node in graph.outputs]

    return Bound(function, tuple(value for node, value in zip(wanted, values) if node not in numbers))


def _has_rows(node: Node, rows: int | None) -> bool:
    return rows is not None and any(dim and dim % rows == 0 for dim in node.shape)


def _can_be_known(node: Node, rows: int | None) -> bool:
    if jax.dtypes.issubdtype(node.dtype, jax.dtypes.extended) or _has_rows(node, rows):
        return False
    if node.call is not None and any(_has_rows(value, rows) for value in node.call.values):
        return False
    return node.op == "constant" or np.prod(node.shape) * np.dtype(node.dtype).itemsize <= _MOST_BYTES


def _frontier(graph: Graph, known: set[Node], live: set[Node]) -> Iterator[Node]:
    """The known values that others take, or that are returned; of a broadcast, what is broadcast."""

    def sources(node: Node) -> Iterator[Node]:
        while node.op == "broadcast_in_dim" and not _stays(node):
            node = node.inputs[0]
        if not _stays(node) and np.prod(node.shape):
            yield node

    for node in graph.nodes:
        if node in known and node.returned:
            yield from sources(node)
        if node in live and node not in known:
            for operand in node.inputs:
                if operand in known and not (node.op == "sort" and operand.op == "iota"):  # no data
                    yield from sources(operand)


def _stays(node: Node) -> bool:
    """Whether a value is one number, which the graph tells."""
    if node.op == "constant":
        return node.number is not None and _is_one_number(np.asarray(node.constant, node.dtype))
    return node.number is not None and all(map(_stays, node.inputs))


def _computed(graph: Graph, wanted: Sequence[Node]) -> list[Any]:
    arrays: dict[Node, Any] = {}
    graph.compute(wanted, arrays)
    return [arrays[node] for node in wanted]


def _is_one_number(value: np.ndarray) -> bool:
    """Whether all elements have the same bits."""
    elements = np.ascontiguousarray(value).reshape(-1, 1).view(np.uint8)
    return bool((elements == elements[0]).all())
