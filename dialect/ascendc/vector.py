"""Elementwise ops, fills and ramps."""

from __future__ import annotations

from jascend.backends.ascend.instructions import ANY
from mlir import ir

from ..definition import Attribute, Op, Operand, VerifyError
from .common import (
    DST,
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
    takes,
)

_MODE = Attribute("mode", "string", "`CMPMODE`", values=("LT", "GT", "EQ", "LE", "GE", "NE"))


def _scalar_is_of(op, buffer: ir.Value) -> None:
    if op.scalar.type != ir.MemRefType(buffer.type).element_type:
        raise VerifyError(f"'scalar' must be {element_of(buffer)}, got {op.scalar.type}")


def _verify_cast(op) -> None:
    in_space(op, dst="ub", src="ub")
    same_lengths(op, "dst", "src")
    pair = (element_of(op.src), element_of(op.dst))
    if pair not in ANY.casts:
        raise VerifyError(f"no cast from {pair[0]} to {pair[1]}")
    if op.round_mode not in ANY.casts[pair]:
        raise VerifyError(f"a cast from {pair[0]} to {pair[1]} takes {', '.join(ANY.casts[pair])}, got {op.round_mode}")


def _verify_duplicate(op) -> None:
    in_space(op, dst="ub")
    takes(op, "dst")
    _scalar_is_of(op, op.dst)


def _verify_create_vec_index(op) -> None:
    in_space(op, dst="ub")
    takes(op, "dst")


def _compared(op, *sources: str) -> None:
    in_space(op, dst="ub", **{name: "ub" for name in sources})
    elements_of(op, tuple(ANY.comparisons), *sources)
    length = same_lengths(op, *sources)
    source = getattr(op, sources[0])
    if length * element_bytes(ir.MemRefType(source.type).element_type) % REPEAT:
        raise VerifyError(
            f"a comparison covers a multiple of {REPEAT} bytes, got {length} elements {element_of(source)}"
        )
    mask_fits(op.dst, source)


def _verify_compare(op) -> None:
    _compared(op, "src0", "src1")


def _verify_compare_scalar(op) -> None:
    _compared(op, "src0")
    _scalar_is_of(op, op.src0)


def _verify_with_scalar(op) -> None:
    elementwise("src")(op)
    _scalar_is_of(op, op.src)


def _verify_select(op) -> None:
    elementwise("src0", "src1")(op)
    mask_fits(op.mask, op.dst)


def _verify_select_scalar(op) -> None:
    elementwise("src0")(op)
    mask_fits(op.mask, op.dst)
    _scalar_is_of(op, op.src0)


def unary(name: str, api: str) -> Op:
    return Op(
        name, f"`{api}(dst, src, count)`.", operands=(DST, SRC),
        verify=elementwise("src"), side_effects=True, pipe="V", in_place=("src",),
    )  # fmt: skip


def binary(name: str, api: str) -> Op:
    return Op(
        name, f"`{api}(dst, src0, src1, count)`.", operands=(DST, SRC0, SRC1),
        verify=elementwise("src0", "src1"), side_effects=True, pipe="V", in_place=("src0", "src1"),
    )  # fmt: skip


def with_scalar(name: str, api: str) -> Op:
    return Op(
        name, f"`{api}(dst, src, scalar, count)`.",
        operands=(DST, SRC, Operand("scalar", "any", "element type of `src`")),
        verify=_verify_with_scalar, side_effects=True, pipe="V", in_place=("src",),
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
        in_place=("src",),
    ),
    binary("add", "Add"),
    binary("sub", "Sub"),
    binary("mul", "Mul"),
    binary("div", "Div"),
    binary("max", "Max"),
    binary("min", "Min"),
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
            verify=_verify_with_scalar,
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
            f"`{name.capitalize()}(dst, {', '.join(operand.name for operand in sources)}, count)`, on 16-bit units of "
            "masks or integers.",
            operands=(DST, *sources),
            verify=elementwise(*(operand.name for operand in sources)),
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
        in_place=("src0", "src1"),
    ),
    Op(
        "select_scalar",
        "`Select(dst, mask, src0, scalar, VSEL_TENSOR_SCALAR_MODE, count)`: a set bit takes `src0`.",
        operands=(
            DST,
            Operand("mask", "memref", "read", role="in"),
            SRC0,
            Operand("scalar", "any", "element type of `src0`"),
        ),
        verify=_verify_select_scalar,
        side_effects=True,
        pipe="V",
        in_place=("src0",),
    ),
)
