"""Ops that move lanes by what they hold."""

from __future__ import annotations

from ..definition import Op, Operand, Result, VerifyError
from .common import element_of, length_of


def _verify_compress(op) -> None:
    if length_of(op.x) != length_of(op.mask):
        raise VerifyError(f"'x' has {length_of(op.x)} elements, 'mask' {length_of(op.mask)}")
    if str(element_of(op.mask)) != "i1":
        raise VerifyError(f"'mask' must have elements i1, got {element_of(op.mask)}")
    if op.value.type != op.x.type:
        raise VerifyError(f"'value' must be {op.x.type}, got {op.value.type}")


SORTING = (
    Op(
        "compress",
        "Packs the elements under the mask to the front, in order; the rest is unspecified.",
        operands=(Operand("x", "tensor", "N elements"), Operand("mask", "tensor", "N x i1")),
        results=(Result("value", "tensor", "N elements"), Result("kept", "index", "how many were packed")),
        verify=_verify_compress,
    ),
)
