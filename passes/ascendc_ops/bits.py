"""Elementwise ops on bits: of masks, of integers, and the same bits as another type."""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith

from jascend.backends.ascend.instructions import instructions
from jascend.dialect.elements import element_name

from .lowering import Lowering, element_of, length_of, lowers
from .vector import SHIFTS, all_ones

_PREDICATES = {"eq": "EQ", "ne": "NE", "slt": "LT", "sle": "LE", "sgt": "GT", "sge": "GE"}


@lowers("arith.andi", "arith.ori")
def and_or(low: Lowering, op: ir.Operation) -> None:
    name = {"arith.andi": "BitwiseAnd", "arith.ori": "BitwiseOr"}[op.name]
    low.emit(name, low.result(op), *map(low.of, op.operands))


@lowers("arith.xori")
def exclusive_or(low: Lowering, op: ir.Operation) -> None:
    """What is in one and not in both, as there is no Xor on 910B; against all ones it is Not. What is in both is in either, so
    that a subtraction of integers takes it away, without a borrow."""
    a, b = op.operands
    if all_ones(a):
        a, b = b, a
    if all_ones(b):
        low.emit("BitwiseNot", low.result(op), low.of(a))
        return
    a, b, result = low.of(a), low.of(b), low.result(op)
    both, either = (low.buffer(length_of(result), element_of(result), hint) for hint in ("both", "either"))
    low.emit("BitwiseAnd", both, a, b)
    low.emit("BitwiseOr", either, a, b)
    if element_name(result) in ("i32", "i16"):
        low.emit("Sub", result, either, both)
        return
    low.emit("BitwiseNot", both, both)
    low.emit("BitwiseAnd", result, either, both)


@lowers(*SHIFTS)
def shift(low: Lowering, op: ir.Operation) -> None:
    x, amount = op.operands
    if amount not in low.splats:
        low.refuse(op, f"'{op.name}' on tiles takes one amount for all elements: the Ascend C API shifts by a scalar")
    name = "ShiftLeft" if op.name == "arith.shli" else "ShiftRight"
    logical = True if op.name == "arith.shrui" else None
    low.emit(name, low.result(op), low.of(x), low.splats[amount], logical=logical)


@lowers("arith.bitcast")
def bitcast(low: Lowering, op: ir.Operation) -> None:
    """The same buffer, read another way."""
    result = op.results[0]
    low.buffers[result] = low.view(low.of(op.operands[0]), 0, length_of(result), element_of(result))


@lowers("arith.cmpi")
def compare(low: Lowering, op: ir.Operation) -> None:
    a, b = op.operands
    predicate = arith.CmpIPredicate(op.attributes["predicate"].value).name
    mode, inverted = _PREDICATES.get(predicate), False
    if mode is None or element_name(a) != "i32":
        low.refuse(op, f"comparison '{predicate}' of {element_of(a)} tiles has no counterpart in the Ascend C API")
    modes = instructions(low.target).comparisons["i32"]
    if mode not in modes:
        if mode != "NE":
            low.refuse(
                op,
                f"{low.target.name} compares i32 tiles for equality only, not '{predicate}'; values within 2^24 can be "
                "compared as f32, after 'arith.sitofp'",
            )
        mode, inverted = "EQ", True
    dst = low.result(op)
    raw = low.buffer(length_of(dst), element_of(dst), "opposite") if inverted else dst
    if b in low.splats:
        low.emit("CompareScalar", raw, low.of(a), low.splats[b], mode=mode)
    else:
        low.emit("Compare", raw, low.of(a), low.of(b), mode=mode)
    if inverted:
        low.emit("BitwiseNot", dst, raw)
