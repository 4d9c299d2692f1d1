"""Ops that move lanes by what they hold."""

from __future__ import annotations

from ..definition import Attribute, Op, Operand, Result, VerifyError
from .common import (
    DST,
    MAX_REPEATS,
    SRC,
    SRC0,
    SRC1,
    buffer_length,
    element_bytes_of,
    element_of,
    elements_of,
    in_space,
    mask_fits,
    same_elements,
    same_lengths,
    takes,
)

MAX_LIST = 4095  # pairs of one list of MrgSort
_PARTS = {1: 2, 2: 2, 3: 4, 4: 4, 5: 4, 6: 4}  # what a constant pattern keeps: one element of so many


def _repeats(count: int) -> None:
    if not 1 <= count <= MAX_REPEATS:
        raise VerifyError(f"1 to {MAX_REPEATS} repeats are possible, got {count}")


def _verify_sort32(op) -> None:
    in_space(op, dst="ub", scores="ub", indices="ub")
    takes(op, "dst", "scores")
    elements_of(op, ("i32",), "indices")
    count = same_lengths(op, "scores", "indices")
    if count % 32 or buffer_length(op.dst) != 2 * count:
        raise VerifyError(
            f"32 scores a repeat give 64 lanes of pairs, got {count} scores and {buffer_length(op.dst)} lanes"
        )
    _repeats(count // 32)


def _verify_mrg_sort(op) -> None:
    in_space(op, dst="ub", src="ub")
    takes(op, "dst", "src")
    if not 2 <= op.ways <= 4:
        raise VerifyError(f"'ways' must be 2 to 4, got {op.ways}")
    if not 1 <= op.run <= MAX_LIST:
        raise VerifyError(f"'run' must be 1 to {MAX_LIST} pairs, got {op.run}")
    _repeats(op.repeat)
    if op.repeat > 1 and op.ways != 4:
        raise VerifyError(f"only merges of 4 lists repeat, got {op.repeat} repeats of {op.ways}")
    lanes = 2 * op.run * op.ways * op.repeat
    length = same_lengths(op, "dst", "src")
    if length != lanes:
        raise VerifyError(f"{op.repeat} times {op.ways} lists of {op.run} pairs are {lanes} lanes, got {length}")


def _verify_mrg_sort_lists(op) -> None:
    names = [name for name in ("src0", "src1", "src2", "src3") if getattr(op, name) is not None]
    if op.src3 is not None and op.src2 is None:
        raise VerifyError("'src3' without 'src2'")
    in_space(op, dst="ub", **dict.fromkeys(names, "ub"))
    takes(op, "dst", *names)
    for name in names:
        pairs, odd = divmod(buffer_length(getattr(op, name)), 2)
        if odd or not 1 <= pairs <= MAX_LIST:
            raise VerifyError(f"'{name}' must have 1 to {MAX_LIST} pairs, got {buffer_length(getattr(op, name))} lanes")
    lanes = sum(buffer_length(getattr(op, name)) for name in names)
    if buffer_length(op.dst) != lanes:
        raise VerifyError(f"'dst' must have {lanes} lanes, those of all lists, got {buffer_length(op.dst)}")


def _verify_gather_mask(op) -> None:
    in_space(op, dst="ub", src="ub", pattern="ub")
    takes(op, "dst")
    same_elements(op, "src")
    same_lengths(op, "dst", "src")
    mask_fits(op.pattern, op.src)


def _verify_gather_pattern(op) -> None:
    in_space(op, dst="ub", src="ub")
    takes(op, "dst", "src")
    if element_bytes_of(op.dst) != element_bytes_of(op.src):
        raise VerifyError(f"'dst' has elements {element_of(op.dst)}, 'src' has {element_of(op.src)}")
    if op.pattern not in _PARTS:
        raise VerifyError(f"'pattern' must be 1 to 6, got {op.pattern}")
    parts = _PARTS[op.pattern]
    if buffer_length(op.src) != parts * buffer_length(op.dst):
        raise VerifyError(
            f"pattern {op.pattern} keeps one element of {parts}, got {buffer_length(op.dst)} of {buffer_length(op.src)}"
        )


def _verify_moved(op) -> None:
    in_space(op, dst="ub", src="ub", offsets="ub")
    takes(op, "dst")
    same_elements(op, "src")
    elements_of(op, ("i32",), "offsets")


def _verify_gather(op) -> None:
    _verify_moved(op)
    same_lengths(op, "dst", "offsets")


def _verify_scatter(op) -> None:
    _verify_moved(op)
    same_lengths(op, "src", "offsets")


_OFFSETS = Operand("offsets", "memref", "i32, in bytes", role="in")

SORTING = (
    Op(
        "sort32",
        "`Sort32(dst, scores, indices, repeat)`: every 32 scores with their indices, in descending order, as pairs.",
        operands=(
            DST,
            Operand("scores", "memref", "read", role="in"),
            Operand("indices", "memref", "i32, read", role="in"),
        ),
        description="16 cycles a repeat.",
        verify=_verify_sort32,
        side_effects=True,
        pipe="V",
    ),
    Op(
        "mrg_sort",
        "`MrgSort(dst, {src, src[2 * run], ...}, {lengths, false, valid, repeat})`: neighbouring lists become one.",
        operands=(DST, SRC),
        attributes=(
            Attribute("run", "integer", f"pairs of one list, at most {MAX_LIST}"),
            Attribute("ways", "integer", "lists: 2 to 4"),
            Attribute("repeat", "integer", f"at most {MAX_REPEATS}; 1 where there are fewer than 4 lists"),
        ),
        description="A cycle for every 2 pairs.",
        verify=_verify_mrg_sort,
        side_effects=True,
        pipe="V",
    ),
    Op(
        "mrg_sort_lists",
        "`MrgSort(dst, {src0, src1, ...}, {lengths, false, valid, 1})`: lists from anywhere become one.",
        operands=(
            DST,
            SRC0,
            SRC1,
            Operand("src2", "memref", "read", optional=True, role="in"),
            Operand("src3", "memref", "read", optional=True, role="in"),
        ),
        description="A cycle for every 2 pairs.",
        verify=_verify_mrg_sort_lists,
        side_effects=True,
        pipe="V",
    ),
    Op(
        "gather_mask",
        "`GatherMask(dst, src, pattern, true, count, {1, 1, 8, 8}, kept)`: packs the elements under the set bits.",
        operands=(DST, SRC, Operand("pattern", "memref", "ui8, one bit an element", role="in")),
        results=(Result("kept", "index", "elements packed"),),
        verify=_verify_gather_mask,
        side_effects=True,
        pipe="V",
        in_place=("src",),
    ),
    Op(
        "gather_pattern",
        "`GatherMask(dst, src, pattern, true, count, {1, 1, 8, 8}, kept)`: one element of 2 or of 4, by a constant "
        "pattern.",
        operands=(DST, SRC),
        attributes=(Attribute("pattern", "integer", "1, 2: even, odd elements; 3 to 6: the first to fourth of four"),),
        description="`dst` may have other elements of the same width: the bits are taken.",
        verify=_verify_gather_pattern,
        side_effects=True,
        pipe="V",
    ),
    Op(
        "gather",
        "`Gather(dst, src, offsets, 0, count)`: element `i` from byte `offsets[i]` of `src`.",
        operands=(DST, SRC, _OFFSETS),
        description="On 910B 13 cycles for every 64 elements.",
        verify=_verify_gather,
        side_effects=True,
        pipe="V",
    ),
    Op(
        "scatter",
        "`Scatter(dst, src, offsets, 0, count)`: element `i` to byte `offsets[i]` of `dst`. The 950 family's.",
        operands=(Operand("dst", "memref", "written in places", role="inout"), SRC, _OFFSETS),
        verify=_verify_scatter,
        side_effects=True,
        pipe="V",
    ),
)
