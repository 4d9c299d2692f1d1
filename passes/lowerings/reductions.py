"""Which reductions kernels compute: of floats, along the last axis, to a sum, a maximum or a minimum.

Legalization leaves each as a `linalg.generic` whose last iterator reduces, with one combining operation in its body.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from .access import constant_of, inputs

_KINDS = {"arith.addf": "add", "arith.maximumf": "max", "arith.minimumf": "min"}
# how scalars come and go, before canonicalization
_PLUMBING = ("tensor.from_elements", "tensor.extract", "linalg.yield")
_NEUTRAL = {"add": 0.0, "max": float("-inf"), "min": float("inf")}


@dataclass(frozen=True)
class Reduction:
    """One reduction: its kind, "add", "max" or "min"; what it reduces; and of how many elements each result is made."""

    kind: str
    source: ir.Value
    length: int


def start_of(init: ir.Value) -> float | None:
    """The one value that all results of a reduction start from; None where that is not known."""
    owner = init.owner
    if isinstance(owner, ir.Block):
        return None
    if owner.name == "linalg.fill":
        return start_of(owner.operands[0])
    return constant_of(owner) if owner.name == "arith.constant" else None


def is_reduction(op: ir.Operation) -> bool:
    return op.name == "linalg.generic" and any("reduction" in str(kind) for kind in op.attributes["iterator_types"])


def combining(op: ir.Operation) -> ir.Operation | None:
    """The one operation that a reduction combines two elements by; None where there is more to it."""
    found = [view.operation for view in op.regions[0].blocks[0].operations if view.operation.name not in _PLUMBING]
    return found[0] if len(inputs(op)) == len(op.results) == len(found) == 1 else None


def reduction_of(op: ir.Operation) -> Reduction | str:
    """The reduction that an op is, or why no kernel computes it."""
    operation = combining(op)
    if operation is None:
        return "a reduction with more to it than one sum, maximum or minimum"
    source, init = op.operands[0], op.operands[1]
    maps = [attribute.value for attribute in op.attributes["indexing_maps"]]
    if any(not isinstance(expression, ir.AffineDimExpr) for expression in maps[0].results):
        return "a reduction over a window"
    dims = maps[0].n_dims
    reduces = ["reduction" in str(kind) for kind in op.attributes["iterator_types"]]
    if maps[0] != ir.AffineMap.get_identity(dims) or reduces != [False] * (dims - 1) + [True]:
        return "a reduction over other than the last axis"
    kind = _KINDS.get(operation.name)
    if kind is None:
        return f"a reduction by '{operation.name}'; kernels have sums, maxima and minima of floats"
    if start_of(init) != _NEUTRAL[kind]:
        return f"a reduction that does not start from {_NEUTRAL[kind]}"
    shape = ir.RankedTensorType(source.type)
    if shape.is_dynamic_dim(shape.rank - 1) or shape.get_dim_size(shape.rank - 1) == 0:
        return "a reduction of an axis of no fixed size, or of none"
    return Reduction(kind, source, shape.get_dim_size(shape.rank - 1))
