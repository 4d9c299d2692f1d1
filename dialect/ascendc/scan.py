"""Ops whose mask picks the same lanes of every 32-byte block: what prefix sums are made of."""

from __future__ import annotations

from ..definition import Attribute, Op, Operand, VerifyError
from .common import DST, MAX_REPEATS, SRC, SRC0, SRC1, buffer_length, in_space, same_lengths, takes

_LANES = 8  # float32 elements of a block
_REPEAT = 64  # of a repeat


def _verify_repeat(op, count: int) -> None:
    if count != op.repeat * _REPEAT or not 1 <= op.repeat <= MAX_REPEATS:
        raise VerifyError(f"{count} elements are no 1 to {MAX_REPEATS} repeats of {_REPEAT}, 'repeat' is {op.repeat}")


def _verify_block_sum_first(op) -> None:
    in_space(op, dst="ub", src="ub")
    takes(op, "dst", "src")
    _verify_repeat(op, buffer_length(op.src))
    sums = buffer_length(op.src) // _LANES
    if buffer_length(op.dst) != sums:
        raise VerifyError(f"a block gives one sum: 'dst' must have {sums} elements, got {buffer_length(op.dst)}")
    if not 1 <= op.lanes <= _LANES:
        raise VerifyError(f"'lanes' must be 1 to {_LANES}, got {op.lanes}")


def _verify_add_lane(op) -> None:
    in_space(op, dst="ub", src0="ub", src1="ub")
    takes(op, "dst", "src0", "src1")
    _verify_repeat(op, same_lengths(op, "dst", "src0", "src1"))
    if not 0 <= op.lane < _LANES:
        raise VerifyError(f"'lane' must be 0 to {_LANES - 1}, got {op.lane}")


_ALL = Attribute("repeat", "integer", f"256-byte repeats, at most {MAX_REPEATS}")

SCAN = (
    Op(
        "block_sum_first",
        "`BlockReduceSum(dst, src, repeat, mask, 1, 1, 8)`: of every 32-byte block the sum of its first `lanes` "
        "elements.",
        operands=(DST, SRC),
        attributes=(Attribute("lanes", "integer", "1 to 8"), _ALL),
        verify=_verify_block_sum_first,
        side_effects=True,
        pipe="V",
    ),
    Op(
        "add_lane",
        "`Add(dst, src0, src1, mask, repeat, {1, 1, 1, 8, 8, 8})` on element `lane` of every 32-byte block.",
        operands=(Operand("dst", "memref", "written in places", role="out"), SRC0, SRC1),
        attributes=(Attribute("lane", "integer", "0 to 7"), _ALL),
        verify=_verify_add_lane,
        side_effects=True,
        pipe="V",
    ),
)
