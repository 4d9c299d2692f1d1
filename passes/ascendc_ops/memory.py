"""Global memory to and from the unified buffer."""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith

from .lowering import Lowering, constant_index, element_of, length_of, lowers

_BLOCK = 32  # bytes


@lowers("tile.load")
def load(low: Lowering, op: ir.Operation) -> None:
    view = op.opview
    length, element = length_of(view.value), element_of(view.value)
    width = 2 if str(element) in ("bf16", "f16") else 4
    dst = low.result(op)
    full = constant_index(view.count) == length
    pad = view.pad
    if pad is not None and not full and length * width > _BLOCK:
        _fill_if_short(low, dst, view.count, length, element, pad)
    padding = None if full or pad is None else ir.FloatAttr.get(low.b.f32_type, pad)
    low.emit("CopyIn", dst, view.source, view.offset, view.count, pad=padding)


def _fill_if_short(low: Lowering, dst: ir.Value, count: ir.Value, length: int, element: ir.Type, pad: float) -> None:
    short = low.b.cmpi("slt", count, low.b.index(length))
    attribute = (
        ir.FloatAttr.get(element, pad) if isinstance(element, ir.FloatType) else ir.IntegerAttr.get(element, int(pad))
    )

    def fill():
        low.emit("Duplicate", dst, arith.constant(element, attribute, loc=low.b.loc()))
        return []

    low.b.if_(short, [], fill, about="Padding, for the lanes that the copy leaves alone.")


@lowers("tile.store")
def store(low: Lowering, op: ir.Operation) -> None:
    view = op.opview
    low.emit("CopyOut", view.target, low.of(view.value), view.offset, view.count)
