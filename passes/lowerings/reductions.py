"""Which reductions kernels compute: of floats, along the last axis, to a sum, a maximum or a minimum.

Legalization leaves each as a `linalg.generic` whose last iterator reduces, with one combining operation in its body.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from .producers import constant_of, inputs

_KINDS = {"arith.addf": "add", "arith.maximumf": "max", "arith.minimumf": "min"}
_PLUMBING = ("tensor.from_elements", "tensor.extract", "linalg.yield")  # how scalars come and go, before canonicalization
_NEUTRAL = {"add": 0.0, "max": float("-inf"), "min": float("inf")}


@dataclass(frozen=True)
class Reduction:
    """One reduction: its kind, "add", "max" or "min"; what it reduces; and of how many elements each result is made."""

    kind: str
    source: ir.Value
    length: int


def is_reduction(op: ir.Operation) -> bool:
    return op.name == "linalg.generic" and any("reduction" in str(kind) for kind in op.attributes["iterator_types"])


def reduction_of(op: ir.Operation) -> Reduction | str:
    """The reduction that an op is, or why no kernel computes it."""
    combining = [view.operation for view in op.regions[0].blocks[0].operations if view.operation.name not in _PLUMBING]
    if len(inputs(op)) != 1 or len(op.results) != 1 or len(combining) != 1:
        return "a reduction with more to it than one sum, maximum or minimum"
    source, init = op.operands[0], op.operands[1]
    maps = [attribute.value for attribute in op.attributes["indexing_maps"]]
    if any(not isinstance(expression, ir.AffineDimExpr) for expression in maps[0].results):
        return "a reduction over a window"
    if maps[0] != ir.AffineMap.get_identity(maps[0].n_dims) or [str(kind).count("reduction") for kind in op.attributes["iterator_types"]] != [0] * (maps[0].n_dims - 1) + [1]:
        return "a reduction over other than the last axis"
    kind = _KINDS.get(combining[0].name)
    if kind is None:
        return f"a reduction by '{combining[0].name}'; kernels have sums, maxima and minima of floats"
    start = constant_of(init.owner) if not isinstance(init.owner, ir.Block) and init.owner.name == "arith.constant" else None
    if start is None and not isinstance(init.owner, ir.Block) and init.owner.name == "linalg.fill":
        filled = init.owner.operands[0].owner
        start = constant_of(filled) if not isinstance(filled, ir.Block) and filled.name == "arith.constant" else None
    if start != _NEUTRAL[kind]:
        return f"a reduction that does not start from {_NEUTRAL[kind]}"
    shape = ir.RankedTensorType(source.type)
    if shape.is_dynamic_dim(shape.rank - 1) or shape.get_dim_size(shape.rank - 1) == 0:
        return "a reduction of an axis of no fixed size, or of none"
    return Reduction(kind, source, shape.get_dim_size(shape.rank - 1))
