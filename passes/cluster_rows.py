"""Gives what is computed between operators, and is needed in memory, a kernel of its own: `ascend.row_wise`.

Elementwise work that only feeds an operator is computed inside that operator's kernel, where its data is anyway. What is
left needs a place in memory: what the program returns, what a library call takes, and rows that an operator takes but can
only be computed from whole rows, as a softmax. Each such value becomes the operand of an `ascend.row_wise`, and what uses
it reads its result.

Tensors that are set side by side along their rows become a part of the work around them, where there is some: a kernel then
computes one part of its rows after another.

What a library call takes of a tensor in memory, a weight of many that are stacked, is in memory itself where its elements are
neighbours: it stays a slice, which moves nothing.

A value that has to be there before the rows that use it, because it is computed along another axis than theirs or is one
for all of them, is a cluster of its own too.

Before:

    %s = linalg.generic {... arith.addf ...} ins(%x, %r) ...
    %0 = "ascend.library_call"(%s, %w) {callee = "aclnnMatmul"} ...

After:

    %s = linalg.generic {... arith.addf ...} ins(%x, %r) ...
    %1 = "ascend.row_wise"(%s) : (tensor<8x64xf32>) -> tensor<8x64xf32>
    %0 = "ascend.library_call"(%1, %w) {callee = "aclnnMatmul"} ...
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from jascend.dialect import ASCEND
from jascend.dialect.ascendc import element_bits
from mlir import ir
from mlir.dialects import tensor

from .diagnostics import PassFailure, emit_error
from .lower_to_tile import KERNEL, LAUNCH, taken_from_memory
from .lowerings.producers import CONCATENATION, SLICE, VIEWS, base_of, has_columns, positions_in, unsupported_reason
from .lowerings.reductions import is_reduction, reduction_of
from .lowerings.row_wise import Access, labels_of, sources
from .registry import register_pass

LIBRARY_CALL = "ascend.library_call"
_BLOCK_BYTES = 32
_WRITTEN = ("f32", "f16", "bf16", "i32", "i8", "i1")


@register_pass("cluster-rows")
@dataclass(frozen=True)
class ClusterRows:
    def run(self, module: ir.Operation, remarks) -> None:
        failed = False
        for function in module.regions[0].blocks[0].operations:
            op = function.operation
            if op.name != "func.func" or KERNEL in op.attributes or not len(op.regions[0].blocks):
                continue
            _join_concatenations(op.regions[0].blocks[0])
            for value in _needed(op.regions[0].blocks[0]):
                failed |= not _in_memory(value)
        if failed:
            raise PassFailure


def _join_concatenations(block: ir.Block) -> None:
    """Makes concatenations of rows part of the work before or after them, where there is some: else a library does it."""
    for op in [view.operation for view in block.operations if _concatenates_rows(view.operation)]:
        around = [value.owner for value in op.operands] + [use.owner.operation for use in op.results[0].uses]
        if any(isinstance(other, ir.Operation | ir.OpView) and _is_work(other.operation) for other in around):
            with ir.InsertionPoint(op), op.location:
                joined = tensor.ConcatOp(op.results[0].type, op.attributes["dims"][0], list(op.operands))
            op.results[0].replace_all_uses_with(joined.result)
            op.erase()


def _concatenates_rows(op: ir.Operation) -> bool:
    if op.name != LIBRARY_CALL or op.attributes["callee"].value != "aclnnCat":
        return False
    (dim,) = op.attributes["dims"]
    return 0 < dim == ir.RankedTensorType(op.results[0].type).rank - 1


def _is_work(op: ir.Operation) -> bool:
    return op.name in ("linalg.generic", SLICE, CONCATENATION)


def computed(op: ir.Operation) -> bool:
    """Whether kernels of rows compute an op."""
    if is_reduction(op):
        return not isinstance(reduction_of(op), str)
    return unsupported_reason(op) is None and not is_plain_view(op)


def produced(op: ir.Operation) -> bool:
    """Whether an op is elementwise work that an operator's kernel computes where it takes the result: that of a batch of rows
    lies there in ways of its own, which slices and positions would have to follow."""
    return op.name not in (SLICE, CONCATENATION) and not positions_in(op) and not is_reduction(op) and computed(op)


def is_plain_view(op: ir.Operation) -> bool:
    """A reshape of something that is in memory anyway."""
    return op.name in VIEWS and _in_memory_anyway(op.operands[0])


def is_plain_part(op: ir.Operation) -> bool:
    """A slice of neighbouring elements of something that is in memory anyway, from a block of 32 bytes on."""
    if op.name != SLICE or unsupported_reason(op) is not None or not _in_memory_anyway(op.operands[0]):
        return False
    whole, part = (ir.RankedTensorType(value.type) for value in (op.operands[0], op.results[0]))
    if not whole.has_static_shape:
        return False
    last = max((dim for dim in range(whole.rank) if whole.shape[dim] != part.shape[dim]), default=0)
    starts = op.attributes["static_offsets"]
    first = sum(start * math.prod(whole.shape[dim + 1 :]) for dim, start in enumerate(starts))
    bits = {"i1": 8}.get(str(whole.element_type)) or element_bits(whole.element_type)
    return math.prod(part.shape[:last]) == 1 and first * bits % (8 * _BLOCK_BYTES) == 0


def _in_memory_anyway(value: ir.Value) -> bool:
    owner = value.owner
    return isinstance(owner, ir.Block) or owner.name.startswith(("ascend.", "func.")) or is_plain_view(owner)


def _needed(block: ir.Block) -> list[ir.Value]:
    """The values that have to be in memory, each after those it is computed from."""
    found: list[ir.Value] = []

    def need(value: ir.Value, part_serves: bool = False) -> None:
        while not isinstance(value.owner, ir.Block) and value.owner.name in VIEWS:
            value = value.owner.operands[0]  # a reshape of what is in memory moves nothing
        if part_serves and not isinstance(value.owner, ir.Block) and is_plain_part(value.owner):
            return
        if isinstance(value.owner, ir.Block) or not computed(value.owner) or value in found:
            return
        for other in _before(value, labels_of(value, computed), value):
            need(other)
        found.append(value)

    for view in block.operations:
        op = view.operation
        if op.name in ("func.return", LIBRARY_CALL) or LAUNCH in op.attributes:
            for operand in op.operands:
                need(operand, part_serves=op.name == LIBRARY_CALL)
        elif op.name in ASCEND.by_name:
            for operand in op.operands:
                outside = [operand] if taken_from_memory(view, operand) else _outside(operand)
                for value in outside:
                    need(value)
    return found


def _before(
    value: ir.Value, access: Access, root: ir.Value, seen: set | None = None, reduced: bool = False
) -> Iterator[ir.Value]:
    """What cannot be computed along with the rows of `root`, of what a piece of it is computed from; `reduced`: a reduction
    goes over the piece."""
    seen = set() if seen is None else seen
    if (value, access, reduced) in seen or isinstance(value.owner, ir.Block):
        return
    seen.add((value, access, reduced))
    owner = value.owner
    if not computed(owner):
        yield value
    elif is_reduction(owner) and value != root and (has_columns(access) or not any(access)):
        yield value
    elif owner.name == CONCATENATION and base_of(access[-1]) is not None:
        if reduced or base_of(access[-1]) != "col":
            yield value
            return
        for operand in owner.operands:
            yield from _before(operand, (*access[:-1], "col"), root, seen)
    else:
        for operand, operand_access in sources(owner, access):
            yield from _before(operand, operand_access, root, seen, reduced or is_reduction(owner))


def _outside(value: ir.Value) -> Iterator[ir.Value]:
    """What an operator's kernel cannot compute, of what an operand is computed from."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        return
    if not produced(owner):
        yield value
        return
    for operand in owner.operands:
        yield from _outside(operand)


def _in_memory(value: ir.Value) -> bool:
    """Puts a value into memory; whether that is possible."""
    owner, shape = value.owner, ir.RankedTensorType(value.type)
    if str(shape.element_type) not in _WRITTEN:
        emit_error(owner, f"kernels write floats, int32, int8 and booleans to memory, not {shape.element_type}")
        return False
    users = [(use.owner, use.operand_number) for use in value.uses]
    with ir.InsertionPoint.after(owner), owner.location:
        if shape.rank:
            result = ASCEND.classes["RowWise"].build(value, results=[shape]).out
        else:
            one = ir.RankedTensorType.get([1], shape.element_type)
            expanded = tensor.expand_shape(one, value, [], [], [1])
            result = ASCEND.classes["RowWise"].build(expanded, results=[one]).out
            result = tensor.collapse_shape(shape, result, [])
    for user, number in users:
        user.operands[number] = result
    return True
