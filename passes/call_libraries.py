"""Hands reductions that no kernel of ours computes to CANN's libraries: over other axes than the last, and of integers.

A kernel has a row at a time; sums over rows, or over an axis between rows and columns, would bring the rows together.

Before:

    %0 = linalg.generic {... iterator_types = ["reduction", "parallel"]} ins(%x : tensor<8x64xf32>) ... { arith.addf }

After:

    %0 = "ascend.library_call"(%x) {callee = "aclnnReduceSum", dims = array<i32: 0>, ...} :
      (tensor<8x64xf32>) -> tensor<64xf32>
"""

from __future__ import annotations

from dataclasses import dataclass

from jascend.dialect import ASCEND
from mlir import ir

from .lowerings.reductions import combining, is_reduction, reduction_of, start_of
from .registry import register_pass

_LEAST, _MOST = -(1 << 31), (1 << 31) - 1
# The operator of the libraries, and what a reduction by it starts from.
_CALLEES = {
    "arith.addf": ("aclnnReduceSum", 0), "arith.maximumf": ("aclnnAmax", float("-inf")),
    "arith.minimumf": ("aclnnAmin", float("inf")), "arith.addi": ("aclnnReduceSum", 0),
    "arith.maxsi": ("aclnnAmax", _LEAST), "arith.minsi": ("aclnnAmin", _MOST),
    "arith.mulf": ("aclnnProdDim", 1), "arith.muli": ("aclnnProdDim", 1),
}  # fmt: skip
_ELEMENTS = ("f32", "f16", "bf16", "i32")


@register_pass("call-libraries")
@dataclass(frozen=True)
class CallLibraries:
    def run(self, module: ir.Operation, remarks) -> None:
        for function in module.regions[0].blocks[0].operations:
            for region in function.operation.regions:
                for block in region.blocks:
                    for op in [view.operation for view in block.operations]:
                        if is_reduction(op) and isinstance(reduction_of(op), str):
                            _call(op)


def _call(op: ir.Operation) -> None:
    found = combining(op)
    if found is None or found.name not in _CALLEES:
        return
    callee, neutral = _CALLEES[found.name]
    source, result = op.operands[0], op.results[0]
    shape = ir.RankedTensorType(source.type)
    taken, given = (_positions(attribute.value) for attribute in op.attributes["indexing_maps"])
    reduces = ["reduction" in str(kind) for kind in op.attributes["iterator_types"]]
    if None in (taken, given) or sorted(taken) != list(range(len(reduces))):
        return
    reduced = [dim for dim, position in enumerate(taken) if reduces[position]]
    in_order = given == [position for position in taken if not reduces[position]]
    if not in_order or str(shape.element_type) not in _ELEMENTS or start_of(op.operands[1]) != neutral:
        return
    one_by_one = callee == "aclnnProdDim"
    if one_by_one and str(shape.element_type) == "bf16":
        return
    with ir.InsertionPoint(op), op.location:
        for dims in [[dim] for dim in reversed(reduced)] if one_by_one else [reduced]:
            kept = [size for dim, size in enumerate(ir.RankedTensorType(source.type).shape) if dim not in dims]
            results = [ir.RankedTensorType.get(kept, shape.element_type)]
            source = ASCEND.classes["LibraryCall"].build(
                source, None, None, results=results, callee=callee, dims=tuple(dims), transposed=None, dtype=None
            ).out  # fmt: skip
    result.replace_all_uses_with(source)
    op.erase()


def _positions(affine: ir.AffineMap) -> list[int] | None:
    """The iterations that the dimensions of an operand go along with; None where that is not all there is to it."""
    if not all(isinstance(expression, ir.AffineDimExpr) for expression in affine.results):
        return None
    return [ir.AffineDimExpr(expression).position for expression in affine.results]
