"""How the ops with masks and strides are printed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlir import ir

from .calls import prints

if TYPE_CHECKING:
    from .kernel import Emitter


@prints("add_strided", "sub_strided", "mul_strided", "div_strided", "max_strided", "min_strided")
def binary(out: Emitter, op: ir.Operation) -> None:
    view = op.opview
    api = op.name.partition(".")[2].removesuffix("_strided").capitalize()
    dst, src0, src1 = map(out.text, op.operands)
    strides = ", ".join(map(str, view.strides))
    out.put(f"{api}({dst}, {src0}, {src1}, {view.mask}, {view.repeat}, BinaryRepeatParams{{{strides}}});")


@prints("copy_strided")
def copy(out: Emitter, op: ir.Operation) -> None:
    view = op.opview
    dst, src = map(out.text, op.operands)
    strides = ", ".join(map(str, view.strides))
    out.put(f"Copy({dst}, {src}, {view.mask}, {view.repeat}, CopyRepeatParams{{{strides}}});")


@prints("brcb")
def brcb(out: Emitter, op: ir.Operation) -> None:
    dst, src = map(out.text, op.operands)
    out.put(f"Brcb({dst}, {src}, {op.opview.repeat}, BrcbRepeatParams{{1, 8}});")


@prints("block_sum_first")
def block_sum_first(out: Emitter, op: ir.Operation) -> None:
    dst, src = map(out.text, op.operands)
    out.put(f"SumFirst({dst}, {src}, {op.opview.lanes}, {op.opview.repeat});")


@prints("add_lane")
def add_lane(out: Emitter, op: ir.Operation) -> None:
    dst, src0, src1 = map(out.text, op.operands)
    out.put(f"AddLane({dst}, {src0}, {src1}, {op.opview.lane}, {op.opview.repeat});")
