"""Ops that move lanes by what they hold."""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith

from jascend.backends.ascend.instructions import instructions
from jascend.dialect.elements import type_name

from . import carried
from .lowering import Lowering, element_of, length_of, lowers
from .vector import write_ramp

_SORTED = 32  # scores that one repeat of Sort32 puts in order
_MOST = 255 * _SORTED  # scores of one call


@lowers("tile.sort")
def sort(low: Lowering, op: ir.Operation) -> None:
    """Lists of 32, then merges of four lists as long as they go, then one of two or three; from buffer to buffer."""
    view = op.opview
    count, lists, stages = length_of(view.scores), view.run // _SORTED, []
    while lists % 4 == 0:
        stages.append(4)
        lists //= 4
    stages += [lists] * (lists > 1)
    result = low.result(op)
    other = low.buffer(2 * count, low.b.f32_type, "merged") if stages else result
    current, following = (result, other) if len(stages) % 2 == 0 else (other, result)
    scores, indices = low.of(view.scores), low.of(view.indices)
    for start in range(0, count, _MOST):
        n = min(_MOST, count - start)
        parts = (low.view(scores, start, n), low.view(indices, start, n))
        low.emit("Sort32", low.view(current, 2 * start, 2 * n), *parts)
    run = _SORTED
    for ways in stages:
        _merge(low, following, current, run, ways)
        current, following, run = following, current, run * ways


@lowers("tile.merge")
def merge(low: Lowering, op: ir.Operation) -> None:
    view = op.opview
    _merge(low, low.result(op), low.of(view.pairs), view.run, view.ways)


def _merge(low: Lowering, dst: ir.Value, src: ir.Value, run: int, ways: int) -> None:
    """Only merges of four lists repeat in one call."""
    lanes = 2 * run * ways
    count = length_of(src) // lanes
    if ways == 4 or count == 1:
        low.emit("MrgSort", dst, src, run=run, ways=ways, repeat=count)
        return
    for i in range(count):
        to, of = (low.view(buffer, i * lanes, lanes) for buffer in (dst, src))
        low.emit("MrgSort", to, of, run=run, ways=ways, repeat=1)


@lowers("tile.merge_lists")
def merge_lists(low: Lowering, op: ir.Operation) -> None:
    lists = [low.of(operand) for operand in op.operands]
    low.emit("MrgSortLists", low.result(op), *lists, *[None] * (4 - len(lists)))


@lowers("tile.unpack")
def unpack(low: Lowering, op: ir.Operation) -> None:
    """Even lanes are scores, odd ones indices."""
    pairs = low.of(op.operands[0])
    for number, (pattern, hint) in enumerate(((1, "scores"), (2, "indices"))):
        if any(True for _ in op.results[number].uses):
            low.emit("GatherPattern", low.result(op, hint, number), pairs, pattern=pattern)


@lowers("tile.compress")
def compress(low: Lowering, op: ir.Operation) -> None:
    x, mask = op.operands
    result = low.result(op)
    if op.opview.readable:
        element = element_of(result)
        low.emit("Duplicate", result, low.b.constant(element, 0))
    packed = low.emit("GatherMask", result, low.of(x), low.of(mask), results=[low.b.index_type])
    op.results[1].replace_all_uses_with(packed.kept)


def _byte_offsets(low: Lowering, indices: ir.Value, element: ir.Type) -> ir.Value:
    offsets = low.buffer(length_of(indices), low.b.i32_type, "offsets")
    width = {"f32": 2, "i32": 2}.get(type_name(element), 1)  # log2 of the bytes
    low.emit("ShiftLeft", offsets, low.of(indices), low.b.i32(width))
    return offsets


@lowers("tile.gather")
def gather(low: Lowering, op: ir.Operation) -> None:
    x, indices = op.operands
    low.emit("Gather", low.result(op), low.of(x), _byte_offsets(low, indices, element_of(x)))


@lowers("tile.scatter")
def scatter(low: Lowering, op: ir.Operation) -> None:
    if "scatter" not in instructions(low.target):
        low.refuse(op, f"'tile.scatter' needs the instruction Scatter, which {low.target.name} does not have")
    x, indices, into = op.operands
    value = carried.updated(low, op, into)
    low.emit("Scatter", value, low.of(x), _byte_offsets(low, indices, element_of(x)))


def _ramp(low: Lowering, op: ir.Operation, count: int) -> ir.Value:
    """The buffer of a ramp in int32: one that is there at `op`, or a new one."""
    around = op
    while around.name != "func.func":
        if (around.block, count) in low.ramps:
            return low.ramps[around.block, count]
        around = around.parent.operation
    ramp = low.buffer(count, low.b.i32_type, "ramp")
    write_ramp(low, ramp)
    return ramp


@lowers("tile.find_first")
def find_first(low: Lowering, op: ir.Operation) -> None:
    """The ramp under the mask, packed: its first lane, where N was before."""
    mask = op.operands[0]
    count = length_of(mask)
    index = [low.b.index_type]
    found = low.buffer(count, low.b.i32_type, "found")
    low.emit("Duplicate", low.view(found, 0, min(count, 8)), low.b.i32(count))
    low.emit("GatherMask", found, _ramp(low, op, count), low.of(mask), results=index)
    first = low.emit("GetValue", found, low.b.index(0), results=[low.b.i32_type])
    op.results[0].replace_all_uses_with(low.b.op(arith.index_cast, low.b.index_type, first.scalar))
