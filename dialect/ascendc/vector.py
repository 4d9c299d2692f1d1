"""Elementwise ops, fills and ramps."""

from __future__ import annotations

from mlir import ir

from ..definition import Attribute, Op, Operand, VerifyError
from .common import (
    DST,
    FLOATS,
    INTS,
    REPEAT,
    SRC,
    SRC0,
    SRC1,
    element_bytes,
    element_of,
    elements_of,
    elementwise,
    in_space,
    mask_fits,
    same_lengths,
)

_FIVE = ("CAST_RINT", "CAST_FLOOR", "CAST_CEIL", "CAST_ROUND", "CAST_TRUNC")
_CASTS = {
    ("bf16", "f32"): ("CAST_NONE",),
    ("f16", "f32"): ("CAST_NONE",),
    ("f32", "bf16"): _FIVE,
    ("f32", "f16"): ("CAST_NONE", *_FIVE, "CAST_ODD"),
    ("f32", "f32"): _FIVE,
    ("i32", "f32"): ("CAST_NONE", *_FIVE),
    ("f32", "i32"): _FIVE,
    ("i16", "f32"): ("CAST_NONE",),
    ("f32", "i16"): _FIVE,
    **{("f16", narrow): ("CAST_NONE", *_FIVE) for narrow in ("i8", "ui8", "i4")},
    **{(narrow, "f16"): ("CAST_NONE",) for narrow in ("i8", "ui8", "i4")},
    # The 950 family's; the codes of HiFloat8 are ui8.
    ("f32", "f8E4M3FN"): ("CAST_RINT",),
    ("f32", "f8E5M2"): ("CAST_RINT",),
    ("f32", "ui8"): ("CAST_ROUND",),
}

_MODE = Attribute("mode", "string", "`CMPMODE`", values=("LT", "GT", "EQ", "LE", "GE", "NE"))


def _verify_cast(op) -> None:
    in_space(op, dst="ub", src="ub")
    same_lengths(op, "dst", "src")
    pair = (element_of(op.src), element_of(op.dst))
    if pair not in _CASTS:
        raise VerifyError(f"no cast from {pair[0]} to {pair[1]}")
    if op.round_mode not in _CASTS[pair]:
        raise VerifyError(f"a cast from {pair[0]} to {pair[1]} takes {', '.join(_CASTS[pair])}, got {op.round_mode}")


def _verify_duplicate(op) -> None:
    in_space(op, dst="ub")
    elements_of(op, ("f32", "i32", "bf16", "f16", "i16"), "dst")
    if op.scalar.type != ir.MemRefType(op.dst.type).element_type:
        raise VerifyError(f"'scalar' must be {element_of(op.dst)}, got {op.scalar.type}")


def _verify_create_vec_index(op) -> None:
    in_space(op, dst="ub")
    elements_of(op, ("f32", "i32"), "dst")


def _compared(op, *sources: str) -> None:
    in_space(op, dst="ub", **{name: "ub" for name in sources})
    elements_of(op, (*FLOATS, "i32"), *sources)
    length = same_lengths(op, *sources)
    source = getattr(op, sources[0])
    if length * element_bytes(ir.MemRefType(source.type).element_type) % REPEAT:
        raise VerifyError(f"a comparison covers a multiple of {REPEAT} bytes, got {length} elements {element_of(source)}")
    mask_fits(op.dst, source)


def _verify_compare(op) -> None:
    _compared(op, "src0", "src1")


def _verify_compare_scalar(op) -> None:
    _compared(op, "src0")


def _verify_shift(op) -> None:
    elementwise("src", allowed=INTS)(op)
    if op.scalar.type != ir.MemRefType(op.src.type).element_type:
        raise VerifyError(f"'scalar' must be {element_of(op.src)}, got {op.scalar.type}")


def _verify_select(op) -> None:
    elementwise("src0", "src1", allowed=(*FLOATS, "bf16", *INTS))(op)
    mask_fits(op.mask, op.dst)


def _verify_select_scalar(op) -> None:
    elementwise("src0")(op)
    mask_fits(op.mask, op.dst)


def unary(name: str, api: str) -> Op:
    return Op(
        name, f"`{api}(dst, src, count)`.", operands=(DST, SRC),
        verify=elementwise("src"), side_effects=True, pipe="V", in_place=("src",),
    )  # fmt: skip


def binary(name: str, api: str, allowed: tuple[str, ...] = FLOATS) -> Op:
    return Op(
        name, f"`{api}(dst, src0, src1, count)`.", operands=(DST, SRC0, SRC1),
        verify=elementwise("src0", "src1", allowed=allowed), side_effects=True, pipe="V", in_place=("src0", "src1"),
    )  # fmt: skip


def with_scalar(name: str, api: str) -> Op:
    return Op(
        name, f"`{api}(dst, src, scalar, count)`.", operands=(DST, SRC, Operand("scalar", "any", "element type of `src`")),
        verify=elementwise("src", allowed=FLOATS + INTS), side_effects=True, pipe="V", in_place=("src",),
    )  # fmt: skip


VECTOR = (
    Op(
        "duplicate",
        "`Duplicate(dst, scalar, count)`.",
        operands=(DST, Operand("scalar", "any", "element type of `dst`")),
        verify=_verify_duplicate,
        side_effects=True,
        pipe="V",
    ),
    Op(
        "create_vec_index",
        "`CreateVecIndex(dst, 0, count)`: the ramp 0, 1, 2, ...",
        operands=(DST,),
        verify=_verify_create_vec_index,
        side_effects=True,
        pipe="V",
    ),
    Op(
        "cast",
        "`Cast(dst, src, round_mode, count)`.",
        operands=(DST, SRC),
        attributes=(Attribute("round_mode", "string", "`RoundMode`"),),
        verify=_verify_cast,
        side_effects=True,
        pipe="V",
    ),
    binary("add", "Add", FLOATS + INTS),
    binary("sub", "Sub", FLOATS + INTS),
    binary("mul", "Mul", FLOATS + INTS),
    binary("div", "Div"),
    binary("max", "Max", FLOATS + INTS),
    binary("min", "Min", FLOATS + INTS),
    with_scalar("adds", "Adds"),
    with_scalar("muls", "Muls"),
    with_scalar("maxs", "Maxs"),
    with_scalar("mins", "Mins"),
    *(
        Op(
            f"shift_{way}",
            f"`Shift{way.capitalize()}(dst, src, scalar, count)`.",
            operands=(DST, SRC, Operand("scalar", "any", "element type of `src`")),
            attributes=(Attribute("logical", "bool", "zeros come in from the left, as for unsigned types", True),),
            verify=_verify_shift,
            side_effects=True,
            pipe="V",
            in_place=("src",),
        )
        for way in ("left", "right")
    ),
    unary("exp", "Exp"),
    unary("ln", "Ln"),
    unary("sqrt", "Sqrt"),
    unary("abs", "Abs"),
    Op(
        "compare",
        "`Compare(dst, src0, src1, mode, count)`: one bit an element, lowest bit first.",
        operands=(DST, SRC0, SRC1),
        attributes=(_MODE,),
        verify=_verify_compare,
        side_effects=True,
        pipe="V",
    ),
    Op(
        "compare_scalar",
        "`CompareScalar(dst, src0, scalar, mode, count)`: one bit an element, lowest bit first.",
        operands=(DST, SRC0, Operand("scalar", "any", "element type of `src0`")),
        attributes=(_MODE,),
        verify=_verify_compare_scalar,
        side_effects=True,
        pipe="V",
    ),
    *(
        Op(
            f"bitwise_{name}",
            f"`{name.capitalize()}(dst, {', '.join(operand.name for operand in sources)}, count)`, on 16-bit units of masks "
            "or integers.",
            operands=(DST, *sources),
            verify=elementwise(*(operand.name for operand in sources), allowed=("ui8", *INTS)),
            side_effects=True,
            pipe="V",
            in_place=tuple(operand.name for operand in sources),
        )
        for name, sources in (("and", (SRC0, SRC1)), ("or", (SRC0, SRC1)), ("not", (SRC,)))
    ),
    Op(
        "select",
        "`Select(dst, mask, src0, src1, VSEL_TENSOR_TENSOR_MODE, count)`: a set bit takes `src0`.",
        operands=(DST, Operand("mask", "memref", "read", role="in"), SRC0, SRC1),
        verify=_verify_select,
        side_effects=True,
        pipe="V",
    ),
    Op(
        "select_scalar",
        "`Select(dst, mask, src0, scalar, VSEL_TENSOR_SCALAR_MODE, count)`: a set bit takes `src0`.",
        operands=(DST, Operand("mask", "memref", "read", role="in"), SRC0, Operand("scalar", "any", "")),
        verify=_verify_select_scalar,
        side_effects=True,
        pipe="V",
    ),
)
