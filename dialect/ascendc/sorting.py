"""Ops that move lanes by what they hold."""

from __future__ import annotations

from ..definition import Op, Operand, Result
from .common import DST, SRC, elements_of, in_space, mask_fits, same_lengths


def _verify_gather_mask(op) -> None:
    in_space(op, dst="ub", src="ub", pattern="ub")
    elements_of(op, ("f32", "i32"), "dst", "src")
    same_lengths(op, "dst", "src")
    mask_fits(op.pattern, op.src)


SORTING = (
    Op(
        "gather_mask",
        "`GatherMask(dst, src, pattern, true, count, {1, 1, 8, 8}, kept)`: packs the elements under the set bits.",
        operands=(DST, SRC, Operand("pattern", "memref", "ui8, one bit an element", role="in")),
        results=(Result("kept", "index", "elements packed"),),
        verify=_verify_gather_mask,
        side_effects=True,
        pipe="V",
    ),
)
