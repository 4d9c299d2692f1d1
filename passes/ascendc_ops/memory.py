"""Global memory to and from the unified buffer."""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith

from jascend.dialect.ascendc import buffer_bytes, constant_index, element_bytes_of
from jascend.dialect.elements import element_name, type_name
from jascend.dialect.tile.memory import COPIED_AS

from ..bounds import is_at_least, most
from ..builder import PART_END, load_stage, mark_part, name_of
from .lowering import Lowering, element_of, length_of, lowers

_BLOCK = 32  # bytes


@lowers("tile.load")
def load(low: Lowering, op: ir.Operation) -> None:
    view = op.opview
    length, element = length_of(view.value), element_of(view.value)
    dst = low.result(op)
    offset, count = _in_lanes(low, view, view.source)
    full = is_at_least(count, length, at=view.operation)
    pad = view.pad
    short = None
    if pad is not None and not full and buffer_bytes(dst) > _BLOCK:
        short = _fill_if_short(low, dst, count, length, element, pad)
    padding = None if full or pad is None else ir.FloatAttr.get(low.b.f32_type, pad)
    copy = low.emit("CopyIn", dst, view.source, offset, count, pad=padding)
    if short is not None and PART_END not in op.attributes:
        mark_part(short.owner, copy.operation, load_stage(name_of(view.value)))


def _in_lanes(low: Lowering, view, memory: ir.Value) -> list[ir.Value]:
    """Offset and count of a copy, in lanes of its tile."""
    _, lanes = COPIED_AS.get(element_name(memory), ("", 1))
    return [_times(low, view.offset, lanes), _times(low, view.count, lanes)]


def _times(low: Lowering, number: ir.Value, factor: int, name: str | None = None) -> ir.Value:
    constant = constant_index(number)
    if constant is not None:
        return low.b.index(constant * factor)
    return number if factor == 1 else low.b.op(arith.muli, number, low.b.index(factor), name=name)


def _fill_if_short(low: Lowering, dst: ir.Value, count: ir.Value, length: int, element: ir.Type, pad: float) -> ir.Value | None:
    """Fills a tile that a copy may not fill; returns the condition, if it is one."""

    def fill():
        _fill(low, dst, element, pad)
        return []

    bound = most(count)
    if bound is not None and bound < length:
        fill()
        return None
    short = low.b.cmpi("slt", count, low.b.index(length))
    low.b.if_(short, [], fill, about="Padding, for the lanes that the copy leaves alone.")
    return short


def _fill(low: Lowering, dst: ir.Value, element: ir.Type, pad: float) -> None:
    if type_name(element) == "i8":  # bytes are filled four at a time
        dst, element = low.view(dst, 0, buffer_bytes(dst) // 4, low.b.i32_type), low.b.i32_type
        pad = int.from_bytes(bytes([int(pad) & 0xFF]) * 4, "little", signed=True)
    low.emit("Duplicate", dst, low.b.constant(element, pad))


@lowers("tile.store")
def store(low: Lowering, op: ir.Operation) -> None:
    view = op.opview
    low.emit("CopyOut", view.target, low.of(view.value), *_in_lanes(low, view, view.target), once=view.once)


@lowers("tile.load_rows")
def load_rows(low: Lowering, op: ir.Operation) -> None:
    """One burst where the rows lie without gaps on both sides; else one copy of many pieces."""
    view = op.opview
    length, element = length_of(view.value), element_of(view.value)
    dst = low.result(op)
    rows, pad = length // view.pitch, view.pad
    width = element_bytes_of(dst)
    if view.row_length == view.pitch == view.gm_pitch:
        count = _times(low, view.rows, view.pitch, "count")
        if pad is not None and not is_at_least(view.rows, rows, at=view.operation):
            _fill_if_short(low, dst, view.rows, rows, element, pad)
        low.emit("CopyIn", dst, view.source, view.offset, count)
        return
    filled_blocks = -(-view.row_length * width // _BLOCK) * _BLOCK < view.pitch * width
    if pad is not None and filled_blocks:
        _fill(low, dst, element, pad)
    elif pad is not None and not is_at_least(view.rows, rows, at=view.operation):
        _fill_if_short(low, dst, view.rows, rows, element, pad)
    padding = None if pad is None or view.row_length * width % _BLOCK == 0 else ir.FloatAttr.get(low.b.f32_type, pad)
    low.emit("CopyInRows", dst, view.source, view.offset, view.rows, **_layout(view), pad=padding)


@lowers("tile.store_rows")
def store_rows(low: Lowering, op: ir.Operation) -> None:
    view = op.opview
    if view.row_length == view.pitch == view.gm_pitch:
        count = _times(low, view.rows, view.pitch, "count")
        low.emit("CopyOut", view.target, low.of(view.value), view.offset, count, once=view.once)
        return
    low.emit("CopyOutRows", view.target, low.of(view.value), view.offset, view.rows, **_layout(view), once=view.once)


def _layout(view) -> dict[str, int]:
    return {"row_length": view.row_length, "gm_pitch": view.gm_pitch, "pitch": view.pitch}
