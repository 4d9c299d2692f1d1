"""Hands a matrix that is transposed before a product to the library as it lies.

The libraries take tensors with any strides, so that a transposition of the last two dimensions costs nothing where the
product is the one that uses it.

Before:

    %t = "ascend.library_call"(%w) {callee = "aclnnPermute", dims = array<i32: 1, 0>, ...} :
      (tensor<6x8xf32>) -> tensor<8x6xf32>
    %0 = "ascend.library_call"(%x, %t) {callee = "aclnnMatmul", ...} :
      (tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>

After:

    %0 = "ascend.library_call"(%x, %w) {callee = "aclnnMatmul", transposed = array<i32: 0, 1>, ...} : ...
"""

from __future__ import annotations

from mlir import ir

from jascend.dialect import ASCEND
from jascend.dialect.libraries import LIBRARY

from .rewriting import rewrite


@rewrite("ascend.library_call", pass_name="fold-transposes")
def pass_as_it_lies(op, rewriter):
    """A product of a transposed matrix takes the matrix, and is told."""
    operands = list(op.operation.operands)
    flags = list(op.transposed or (0,) * len(operands))
    for i in LIBRARY[op.callee].matrices:
        source = _swapped(operands[i])
        if source is not None:
            operands[i], flags[i] = source, 1 - flags[i]
    if operands == list(op.operation.operands):
        return True
    with ir.InsertionPoint(op.operation), op.location:
        call = ASCEND.classes["LibraryCall"].build(
            *operands, *[None] * (3 - len(operands)), results=[op.out.type], callee=op.callee, dims=op.dims,
            transposed=tuple(flags) if any(flags) else None, dtype=op.dtype,
        )  # fmt: skip
    rewriter.replace_op(op, [call.out])
    return None


def _swapped(value: ir.Value) -> ir.Value | None:
    """What a value is, with its last two dimensions swapped; None if it is no such thing."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "ascend.library_call" or owner.opview.callee != "aclnnPermute":
        return None
    rank = ir.RankedTensorType(value.type).rank
    swapped = (*range(rank - 2), rank - 1, rank - 2)
    return owner.operands[0] if rank >= 2 and tuple(owner.opview.dims) == swapped else None
