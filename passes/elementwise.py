"""Elementwise work on tensors, as ops that kernels compute where they load."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlir import ir
from mlir.dialects import arith, linalg, tensor

from .lowerings.access import VIEWS


def elementwise(
    like: ir.Value, operands: Sequence[tuple[ir.Value, Sequence[int]]], body: Callable[..., ir.Value]
) -> ir.Value:
    """A value of the type of `like`, each element computed by `body` from an element of every operand.

        scaled = elementwise(logits, [(logits, (0, 1)), (penalty, (0,))], arith.mulf)

    Args:
      like: a ranked tensor; its leading dimension may be dynamic.
      operands: values, each with the dimensions of the result that its own dimensions are.
      body: `body(*elements)` builds scalar ops of `arith` and `math` and returns the element."""
    kind = ir.RankedTensorType(like.type)
    maps = [
        ir.AffineMap.get(kind.rank, 0, [ir.AffineDimExpr.get(dim) for dim in dims])
        for dims in (*(dims for _, dims in operands), range(kind.rank))
    ]
    values = [value for value, _ in operands]
    generic = linalg.GenericOp([kind], values, [_empty(like)], maps, [linalg.IteratorType.parallel] * kind.rank)
    elements = [ir.ShapedType(value.type).element_type for value in values]
    block = generic.regions[0].blocks.append(*elements, kind.element_type)
    with ir.InsertionPoint(block):
        linalg.YieldOp([body(*list(block.arguments)[:-1])])
    return generic.results[0]


def _empty(like: ir.Value) -> ir.Value:
    kind = ir.RankedTensorType(like.type)
    index = ir.IndexType.get()
    sizes = [
        tensor.dim(like, arith.constant(index, i)) if kind.is_dynamic_dim(i) else kind.get_dim_size(i)
        for i in range(kind.rank)
    ]
    return tensor.empty(sizes, kind.element_type)


def number_of(value: ir.Value) -> float | int | None:
    """The one number that all elements of a value are, where it is a constant, spread."""
    op = value.owner
    if isinstance(op, ir.Block):
        return None
    if op.name == "arith.constant":
        constant = op.attributes["value"]
        splat = isinstance(constant, ir.DenseElementsAttr) and constant.is_splat
        return constant.get_splat_value().value if splat else getattr(constant, "value", None)
    if op.name in (*VIEWS, "linalg.fill"):
        return number_of(op.operands[0])
    if op.name == "linalg.generic" and len(op.operands) == 2:
        block = op.regions[0].blocks[0]
        passed_on = block.operations[0].operation
        if passed_on.name == "linalg.yield" and passed_on.operands[0] == block.arguments[0]:
            return number_of(op.operands[0])
    return None
