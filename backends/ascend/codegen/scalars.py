"""Scalar arithmetic as C++ expressions.

Every scalar value of a kernel becomes an expression over variables. Named values, values used more than once and values
with an effect behind them become variables of their own; the rest is folded into the expression that uses it.
"""

from __future__ import annotations

import ctypes
import math
import re
import struct
from typing import NamedTuple

from mlir import ir
from mlir.dialects import arith

from jascend.dialect.elements import type_name

# Binding strength of C++ operators, for parentheses: higher binds tighter.
_ATOM, _UNARY, _MUL, _ADD, _SHIFT, _COMPARE, _EQUAL, _AND, _XOR, _OR, _LAND, _LOR, _TERNARY = range(13, 0, -1)


ADDITIVE = _ADD


class Expr(NamedTuple):
    """A C++ expression, how tightly it binds, and the variables it reads."""

    text: str
    strength: int = _ATOM
    reads: frozenset[str] = frozenset()

    def inside(self, strength: int) -> str:
        """The text as an operand of an operator of that strength. Mixed bit operators keep their parentheses."""
        return self.text if self.strength > strength else f"({self.text})"


_CTYPES = {"f32": "float", "i32": "int32_t", "index": "int64_t", "i1": "bool"}


def variable(name: str) -> Expr:
    return Expr(name, _ATOM, frozenset((name,)))


def ctype(type_: ir.Type) -> str:
    """The C++ type of a scalar. Indices are 64-bit: rows times columns can exceed 32 bits."""
    return _CTYPES[type_name(type_)]


def constant(value: float | int | bool, dtype: str) -> Expr:
    if isinstance(value, float):
        return _float_constant(value, dtype)
    if dtype == "i1":
        return Expr("true" if value else "false")
    if dtype == "i32" and value == -(2**31):  # without its sign, the number is no 32-bit one
        return Expr("static_cast<int32_t>(0x80000000)")
    text = f"0x{value:X}" if value >= 0xFFFF and value & (value + 1) == 0 or value == 0x7F800000 else str(value)
    return Expr(text, _UNARY if value < 0 else _ATOM)


def _float_constant(value: float, dtype: str) -> Expr:
    if dtype in ("bf16", "f16"):
        return Expr(f"static_cast<uint16_t>(0x{half_bits(value, dtype):04X})")
    if math.isinf(value) or math.isnan(value):
        bits = struct.unpack("<I", struct.pack("<f", value))[0]
        return Expr(f"FloatOfBits(static_cast<int32_t>(0x{bits:08X}))")
    shortest = _shortest_float(value)
    return Expr(f"{shortest}f", _UNARY if value < 0 else _ATOM)


def half_bits(value: float, dtype: str) -> int:
    """The bits of a 16-bit float that holds `value` exactly."""
    if dtype == "f16":
        return struct.unpack("<H", struct.pack("<e", value))[0]
    return struct.unpack("<I", struct.pack("<f", value))[0] >> 16


def _shortest_float(value: float) -> str:
    """The shortest decimal that reads back as the same float32."""
    for digits in range(1, 10):
        text = f"{value:.{digits}g}"
        if ctypes.c_float(float(text)).value == value:  # rounds what is too large to infinity
            return text if any(c in text for c in ".e") else f"{text}.0"
    return repr(value)


_INFIX = {
    "arith.addi": ("+", _ADD), "arith.subi": ("-", _ADD), "arith.muli": ("*", _MUL),
    "arith.divsi": ("/", _MUL), "arith.remsi": ("%", _MUL),
    "arith.addf": ("+", _ADD), "arith.subf": ("-", _ADD), "arith.mulf": ("*", _MUL), "arith.divf": ("/", _MUL),
    "arith.shrsi": (">>", _SHIFT), "arith.andi": ("&", _AND), "arith.ori": ("|", _OR), "arith.xori": ("^", _XOR),
}  # fmt: skip
_LOGICAL = {"arith.andi": ("&&", _LAND), "arith.ori": ("||", _LOR), "arith.xori": ("!=", _EQUAL)}
_CMPI = {"eq": "==", "ne": "!=", "slt": "<", "sle": "<=", "sgt": ">", "sge": ">="}
_CMPF = {"OEQ": "==", "OLT": "<", "OLE": "<=", "OGT": ">", "OGE": ">=", "UNE": "!="}


class UnknownScalar(Exception):
    """An op that has no C++ expression here."""


def expression(op: ir.Operation, operands: list[Expr]) -> Expr:
    """The C++ expression of a scalar op; raises `UnknownScalar` for one it does not know."""
    reads = frozenset().union(*(operand.reads for operand in operands))
    name = op.name
    if name == "arith.constant":
        return constant(op.attributes["value"].value, type_name(op.results[0].type))
    if name in _INFIX:
        is_logical = name in _LOGICAL and type_name(op.results[0].type) == "i1"
        if is_logical and name == "arith.xori" and operands[1].text == "true":
            return Expr(f"!{operands[0].inside(_UNARY)}", _UNARY, reads)
        symbol, strength = (_LOGICAL if is_logical else _INFIX)[name]
        return _infix(symbol, strength, operands, reads)
    if name == "arith.shli":
        value, amount = operands
        return Expr(
            f"static_cast<int32_t>(static_cast<uint32_t>({value.text}) << {amount.inside(_SHIFT)})", _ATOM, reads
        )
    if name == "arith.cmpi":
        predicate = arith.CmpIPredicate(op.attributes["predicate"].value).name
        if predicate in _CMPI:
            return _infix(_CMPI[predicate], _EQUAL if predicate in ("eq", "ne") else _COMPARE, operands, reads)
    if name == "arith.cmpf":
        predicate = arith.CmpFPredicate(op.attributes["predicate"].value).name
        if predicate in _CMPF:
            return _infix(_CMPF[predicate], _EQUAL if predicate in ("OEQ", "UNE") else _COMPARE, operands, reads)
    if name == "arith.select":
        condition, a, b = (operand.inside(_TERNARY) for operand in operands)
        return Expr(f"{condition} ? {a} : {b}", _TERNARY, reads)
    if name == "arith.minsi":
        a, b = operands
        return Expr(f"Smaller({a.text}, {b.text})", _ATOM, reads)
    if name == "arith.negf":
        return Expr(f"-{operands[0].inside(_UNARY)}", _UNARY, reads)
    if name == "arith.bitcast":
        helper = "FloatOfBits" if type_name(op.results[0].type) == "f32" else "BitsOfFloat"
        return Expr(f"{helper}({operands[0].text})", _ATOM, reads)
    if name in ("arith.fptosi", "arith.sitofp", "arith.index_cast"):
        text = operands[0].text
        if name == "arith.index_cast" and ctype(op.results[0].type) == "int32_t":
            text = re.sub(r"^static_cast<int64_t>\((\w+)\)$", r"\1", text)  # one cast does for two
        return Expr(f"static_cast<{ctype(op.results[0].type)}>({text})", _ATOM, reads)
    raise UnknownScalar(name)


def _infix(symbol: str, strength: int, operands: list[Expr], reads: frozenset[str]) -> Expr:
    a, b = operands
    # The left operand of the same strength needs no parentheses where the operator is left-associative; for floats the
    # order is part of the value, and C++ groups to the left as well.
    left = a.text if a.strength >= strength and strength in (_ADD, _MUL) else a.inside(strength)
    if strength in (_AND, _OR, _XOR, _SHIFT, _LAND, _LOR):  # mixing these without parentheses reads badly
        left, right = a.inside(_UNARY - 1), b.inside(_UNARY - 1)
        return Expr(f"{left} {symbol} {right}", strength, reads)
    return Expr(f"{left} {symbol} {b.inside(strength)}", strength, reads)
