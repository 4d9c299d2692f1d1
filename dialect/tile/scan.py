"""Prefix sums, and narrow formats."""

from __future__ import annotations

from ..definition import Attribute, Op, Operand, Result, VerifyError
from ..elements import element_name
from .common import element_of, length_of

BLOCK = 8  # float32 elements of 32 bytes
REPEAT = 64  # of 256 bytes
NARROW = ("i8", "i4", "f8E4M3FN", "f8E5M2", "f8E8M0FNU", "f4E2M1FN", "ui8")


def _verify_cumsum(op) -> None:
    length, group = length_of(op.x), op.group
    if element_name(op.x) != "f32":
        raise VerifyError(f"'x' must have elements f32, got {element_of(op.x)}")
    if op.value.type != op.x.type:
        raise VerifyError(f"'value' must be {op.x.type}, got {op.value.type}")
    if length % REPEAT:
        raise VerifyError(f"'x' must have a multiple of {REPEAT} elements, got {length}")
    if group < BLOCK or group % BLOCK or length % group:
        raise VerifyError(
            f"'group' must be a multiple of {BLOCK} that divides the {length} elements of 'x', got {group}"
        )


def _verify_quantize(op) -> None:
    length = length_of(op.x)
    if element_name(op.value) not in NARROW:
        raise VerifyError(f"'value' must have elements {' or '.join(NARROW)}, got {element_of(op.value)}")
    wide = ("f32", "bf16") if element_name(op.value) == "f4E2M1FN" else ("f32",)
    if element_name(op.x) not in wide:
        raise VerifyError(f"'x' must have elements {' or '.join(wide)}, got {element_of(op.x)}")
    if length_of(op.value) != length:
        raise VerifyError(f"'value' must have {length} elements, got {length_of(op.value)}")


SCAN = (
    Op(
        "cumsum",
        "Inclusive sums from the start of each `group` consecutive elements on.",
        operands=(Operand("x", "tensor", "N elements, f32; N is a multiple of 64"),),
        attributes=(Attribute("group", "integer", "a multiple of 8; divides N"),),
        results=(Result("value", "tensor", "N elements"),),
        description=(
            "The tree depends on `group` only: within blocks of 8 that of a reduction, over the blocks in log steps. "
            "So neighbours may be off by a rounding error each, and the sums of what is not negative may fall by one; "
            "whole numbers up to 2^24 are exact. On 910B about 1100 cycles for 1024 elements and 2900 for 4096 in "
            "groups of 1024."
        ),
        verify=_verify_cumsum,
    ),
    Op(
        "quantize",
        "The nearest numbers of a narrow format.",
        operands=(Operand("x", "tensor", "N x f32, or N x bf16 for f4E2M1FN"),),
        results=(
            Result(
                "value", "tensor", "N x i8, i4, f8E4M3FN, f8E5M2, f8E8M0FNU, f4E2M1FN, or ui8 for the codes of HiFloat8"
            ),
        ),
        description=(
            "Ties to even, those of HiFloat8 away from zero. What is too large becomes the largest number, in HiFloat8 "
            "from 40960 on infinity. NaN becomes 0 in the integers and NaN where there is one; in f4E2M1FN its code "
            "and that of the element it shares a byte with, are unspecified. f8E8M0FNU is the exponent of the "
            "magnitude, what is below 2^-126 the least one. f8E4M3FN, f8E5M2 and HiFloat8 are the 950 family's."
        ),
        verify=_verify_quantize,
    ),
)
