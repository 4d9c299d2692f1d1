"""Global memory, and tiles that come from it and go there."""

from __future__ import annotations

from ..definition import Attribute, Op, Operand, Result
from .common import length_of, same_element


def _verify_load(op) -> None:
    length_of(op.value)
    same_element(op.source, "source", op.value, "value")


def _verify_store(op) -> None:
    length_of(op.value)
    same_element(op.target, "target", op.value, "value")


MEMORY = (
    Op(
        "load",
        "Global memory to UB: `count` elements from `offset` on.",
        operands=(
            Operand("source", "memref", "in memory space \"gm\""),
            Operand("offset", "index", "in elements, from the start of `source`"),
            Operand("count", "index", "valid elements; at most the tile's length"),
        ),
        attributes=(
            Attribute("pad", "float", "what lanes from `count` on hold; absent: they are unspecified", optional=True),
        ),
        results=(Result("value", "tensor", "the tile"),),
        verify=_verify_load,
    ),
    Op(
        "store",
        "UB to global memory: the first `count` elements, to `offset` on.",
        operands=(
            Operand("value", "tensor", "the tile"),
            Operand("target", "memref", "in memory space \"gm\""),
            Operand("offset", "index", "in elements, from the start of `target`"),
            Operand("count", "index", "elements written"),
        ),
        side_effects=True,
        verify=_verify_store,
    ),
)
