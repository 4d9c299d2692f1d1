"""Conversions to narrow formats."""

from __future__ import annotations

from mlir import ir

from jascend.backends.ascend.instructions import instructions
from jascend.dialect.elements import element_name

from .lowering import Lowering, length_of, lowers

_EIGHT_BITS = {"f8E4M3FN": "CAST_RINT", "f8E5M2": "CAST_RINT", "ui8": "CAST_ROUND"}
_LIMITS = {"i8": (-128.0, 127.0), "i4": (-8.0, 7.0)}


@lowers("tile.quantize")
def quantize(low: Lowering, op: ir.Operation) -> None:
    form = element_name(op.results[0])
    x = low.of(op.operands[0])
    if form in _LIMITS:
        _integers(low, low.result(op), x, *_LIMITS[form])
    elif form == "f8E8M0FNU":
        _exponents(low, low.result(op), x)
    elif form == "f4E2M1FN":
        _four_bits(low, low.result(op), x)
    elif ("f32", form) not in instructions(low.target).casts:
        low.refuse(op, f"{low.target.name} has no conversion from f32 to {'HiFloat8' if form == 'ui8' else form}")
    else:
        low.emit("Cast", low.result(op), x, round_mode=_EIGHT_BITS[form])


def _integers(low: Lowering, result: ir.Value, x: ir.Value, least: float, most: float) -> None:
    """By way of half, rounded to odd: what is left there decides the second rounding as the whole number would. The
    second cast saturates; on 950 a mode of the core may turn that off, so values are held in range first."""
    count = length_of(x)
    if low.target.npu_arch == 3510:
        held = low.buffer(count, low.b.f32_type, "held")
        low.emit("Maxs", held, x, low.b.f32(least))
        low.emit("Mins", held, held, low.b.f32(most))
        x = held
    halves = low.buffer(count, ir.F16Type.get(), "halves")
    low.emit("Cast", halves, x, round_mode="CAST_ODD")
    low.emit("Cast", result, halves, round_mode="CAST_RINT")


def _exponents(low: Lowering, result: ir.Value, x: ir.Value) -> None:
    """The exponent's bits as bytes: by a conversion of integers, or as whole numbers by way of float and half."""
    b, count = low.b, length_of(x)
    exponents = low.buffer(count, b.i32_type, "exponents")
    low.emit("ShiftLeft", exponents, low.view(x, 0, count, b.i32_type), b.i32(1))
    low.emit("ShiftRight", exponents, exponents, b.i32(24), logical=True)
    codes = low.view(result, 0, count, ir.IntegerType.get_unsigned(8))
    if ("i32", "ui8") in instructions(low.target).casts:
        low.emit("Cast", codes, exponents, round_mode="CAST_NONE")
        return
    numbers, halves = low.buffer(count, b.f32_type, "numbers"), low.buffer(count, ir.F16Type.get(), "halves")
    low.emit("Cast", numbers, exponents, round_mode="CAST_RINT")
    low.emit("Cast", halves, numbers, round_mode="CAST_RINT")
    low.emit("Cast", codes, halves, round_mode="CAST_RINT")


def _four_bits(low: Lowering, result: ir.Value, x: ir.Value) -> None:
    """From bfloat16, where the product has that conversion. float32 becomes bfloat16 rounded to odd before: a last bit
    says that something was cut off, so that the second rounding is that of the whole number."""
    b, count = low.b, length_of(x)
    is_wide = element_name(x) == "f32"
    if ("bf16", "f4E2M1FN") not in instructions(low.target).casts:
        if not is_wide:
            wide = low.buffer(count, b.f32_type, "numbers")
            low.emit("Cast", wide, x, round_mode="CAST_NONE")
            x = wide
        _four_bits_by_arithmetic(low, result, x)
        return
    if is_wide:
        bits = low.view(x, 0, count, b.i32_type)
        odd = low.buffer(count, b.i32_type, "odd")
        low.emit("ShiftLeft", odd, bits, b.i32(16))
        low.emit("ShiftRight", odd, odd, b.i32(16), logical=True)
        low.emit("Mins", odd, odd, b.i32(1))
        low.emit("ShiftLeft", odd, odd, b.i32(16))
        low.emit("BitwiseOr", odd, bits, odd)
        x = low.buffer(count, ir.BF16Type.get(), "odd_numbers")
        low.emit("Cast", x, low.view(odd, 0, count, b.f32_type), round_mode="CAST_TRUNC")
    low.emit("Cast", result, x, round_mode="CAST_RINT")


def _four_bits_by_arithmetic(low: Lowering, result: ir.Value, x: ir.Value) -> None:
    """The code of a magnitude m is the least of round(2 m), round(m) + 2, round(m / 2) + 4 and 7, each of which is
    right in its range and too large outside of it."""
    b, count = low.b, length_of(x)
    magnitudes, codes, coarser = (low.buffer(count, b.f32_type, hint) for hint in ("magnitudes", "codes", "coarser"))
    low.emit("Abs", magnitudes, x)
    low.emit("Muls", codes, magnitudes, b.f32(2.0))
    low.emit("Cast", codes, codes, round_mode="CAST_RINT")
    for factor, offset in ((1.0, 2.0), (0.5, 4.0)):
        low.emit("Muls", coarser, magnitudes, b.f32(factor))
        low.emit("Cast", coarser, coarser, round_mode="CAST_RINT")
        low.emit("Adds", coarser, coarser, b.f32(offset))
        low.emit("Min", codes, codes, coarser)
    low.emit("Mins", codes, codes, b.f32(7.0))
    # The sign is the fourth bit.
    signs = low.buffer(count, b.i32_type, "signs")
    low.emit("ShiftRight", signs, low.view(x, 0, count, b.i32_type), b.i32(31), logical=True)
    low.emit("ShiftLeft", signs, signs, b.i32(3))
    low.emit("Cast", coarser, signs, round_mode="CAST_RINT")
    low.emit("Add", codes, codes, coarser)
    # Two codes make a byte, the first in its lower half.
    even, odd = (low.buffer(count // 2, b.f32_type, hint) for hint in ("even_codes", "odd_codes"))
    low.emit("GatherPattern", even, codes, pattern=1)
    low.emit("GatherPattern", odd, codes, pattern=2)
    low.emit("Muls", odd, odd, b.f32(16.0))
    low.emit("Add", even, even, odd)
    halves = low.buffer(count // 2, ir.F16Type.get(), "halves")
    low.emit("Cast", halves, even, round_mode="CAST_RINT")
    low.emit("Cast", low.view(result, 0, count // 2, ir.IntegerType.get_unsigned(8)), halves, round_mode="CAST_RINT")
