"""The vector unit: reductions, ramps; and one element to the scalar unit."""

from __future__ import annotations

from ..definition import Attribute, Op, Operand, Result, VerifyError
from ..elements import element_name
from .common import element_of, length_of, same_element


def _verify_reduce(op) -> None:
    length, group = length_of(op.x), op.group
    if group < 1 or length % group:
        raise VerifyError(f"'group' must divide the {length} elements of 'x', got {group}")
    if length_of(op.value) != length // group:
        raise VerifyError(
            f"{length} elements in groups of {group} give {length // group} results, got {length_of(op.value)}"
        )
    same_element(op.x, "x", op.value, "value")


def _verify_extract(op) -> None:
    length_of(op.x)
    if op.scalar.type != element_of(op.x):
        raise VerifyError(f"an element of {op.x.type} is a {element_of(op.x)}, got {op.scalar.type}")


def _verify_iota(op) -> None:
    length = length_of(op.value)
    element = element_name(op.value)
    if element not in ("f32", "i32", "i16"):
        raise VerifyError(f"a ramp has elements f32, i32 or i16, got {element}")
    if element == "i16" and length > 1 << 15:
        raise VerifyError(f"a ramp of i16 has at most {1 << 15} elements, got {length}")


VECTOR = (
    Op(
        "reduce",
        "Reduces every `group` consecutive elements to one, by a fixed tree.",
        operands=(Operand("x", "tensor", "N elements, f32"),),
        attributes=(
            Attribute("kind", "string", "the reduction", values=("add", "max", "min")),
            Attribute("group", "integer", "elements per result; divides N"),
        ),
        results=(Result("value", "tensor", "N / group elements"),),
        description=(
            "The tree depends on `group` only, so a sum has the same bits wherever its group lies. Groups of 1024 "
            "are the blocks that probability sums are made of."
        ),
        verify=_verify_reduce,
    ),
    Op(
        "extract",
        "One element, to the scalar unit.",
        operands=(Operand("x", "tensor", "the tile"), Operand("position", "index", "")),
        results=(Result("scalar", "any", "element type of `x`"),),
        verify=_verify_extract,
    ),
    Op(
        "iota",
        "The ramp 0, 1, 2, ...",
        results=(Result("value", "tensor", "f32 (exact below 2^24), i32, or i16 (at most 32768 elements)"),),
        verify=_verify_iota,
    ),
)
