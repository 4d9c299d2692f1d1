"""Reductions, and one element to the scalar unit."""

from __future__ import annotations

from mlir import ir

from ..definition import Attribute, Op, Operand, Result, VerifyError
from .common import DST, MAX_REPEATS, SRC, buffer_length, element_of, in_space, takes


def _verify_block_reduce(op) -> None:
    in_space(op, dst="ub", src="ub")
    takes(op, "dst", "src")
    if not 1 <= op.repeat <= MAX_REPEATS:
        raise VerifyError(f"'repeat' must be 1 to {MAX_REPEATS}, got {op.repeat}")
    if op.repeat * 64 > buffer_length(op.src) or op.repeat * 8 > buffer_length(op.dst):
        raise VerifyError(
            f"{op.repeat} repeats read {op.repeat * 64} and write {op.repeat * 8} elements; "
            f"'src' has {buffer_length(op.src)}, 'dst' {buffer_length(op.dst)}"
        )


def _verify_whole_reduce(op) -> None:
    in_space(op, dst="ub", src="ub")
    takes(op, "dst", "src")
    if not 1 <= op.repeat <= MAX_REPEATS:
        raise VerifyError(f"'repeat' must be 1 to {MAX_REPEATS}, got {op.repeat}")
    if not 1 <= op.mask <= 64:
        raise VerifyError(f"'mask' must be 1 to 64 elements, got {op.mask}")
    read = (op.repeat - 1) * op.src_rep_stride * 8 + op.mask
    if read > buffer_length(op.src) or op.repeat > buffer_length(op.dst):
        raise VerifyError(
            f"{op.repeat} repeats read {read} and write {op.repeat} elements; "
            f"'src' has {buffer_length(op.src)}, 'dst' {buffer_length(op.dst)}"
        )


def _verify_get_value(op) -> None:
    in_space(op, src="ub")
    if op.scalar.type != ir.MemRefType(op.src.type).element_type:
        raise VerifyError(f"an element of 'src' is {element_of(op.src)}, got {op.scalar.type}")


REDUCE = (
    *(
        Op(
            f"block_reduce_{kind}",
            f"`BlockReduce{kind.capitalize()}(dst, src, repeat, 64, 1, 1, 8)`: one result per 32-byte block.",
            operands=(DST, SRC),
            attributes=(Attribute("repeat", "integer", "256-byte repeats, at most 255"),),
            verify=_verify_block_reduce,
            side_effects=True,
            pipe="V",
        )
        for kind in ("sum", "max", "min")
    ),
    *(
        Op(
            f"whole_reduce_{kind}",
            f"`WholeReduce{kind.capitalize()}(dst, src, mask, repeat, 1, 1, src_rep_stride)`: one result per repeat.",
            operands=(DST, SRC),
            attributes=(
                Attribute("mask", "integer", "elements per repeat, at most 64"),
                Attribute("repeat", "integer", "at most 255"),
                Attribute("src_rep_stride", "integer", "32-byte blocks from one repeat to the next"),
            ),
            verify=_verify_whole_reduce,
            side_effects=True,
            pipe="V",
        )
        for kind in ("sum", "max", "min")
    ),
    Op(
        "get_value",
        "`src.GetValue(position)`: one element, to the scalar unit.",
        operands=(SRC, Operand("position", "index", "")),
        results=(Result("scalar", "any", "element type of `src`"),),
        verify=_verify_get_value,
        side_effects=True,
        pipe="S",
    ),
)
