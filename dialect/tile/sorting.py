"""Ops that move lanes by what they hold: sorted lists, compaction, gathers.

A sorted list is a tile of pairs: each takes two float32 lanes, its score and then the bits of its index.
"""

from __future__ import annotations

from ..definition import Attribute, Op, Operand, Result, VerifyError
from ..elements import element_name
from .common import element_of, length_of

MAX_LIST = 4095  # pairs of one list that a merge can take
RUNS = tuple(sorted({32 * 4**j * m for j in range(4) for m in (1, 2, 3)} | {8192}))  # what `sort` makes

_WIDE = ("f32", "i32")
_NARROW = ("f16", "bf16", "i16")


def _elements(op, allowed: tuple[str, ...], *names: str) -> None:
    for name in names:
        if element_name(getattr(op, name)) not in allowed:
            raise VerifyError(
                f"'{name}' must have elements {' or '.join(allowed)}, got {element_of(getattr(op, name))}"
            )


def _lanes(op, name: str, lanes: int, why: str) -> None:
    if length_of(getattr(op, name)) != lanes:
        raise VerifyError(f"'{name}' must have {lanes} elements, {why}, got {length_of(getattr(op, name))}")


def _verify_sort(op) -> None:
    count, run = length_of(op.scores), op.run
    _elements(op, ("f32",), "scores", "pairs")
    _elements(op, ("i32",), "indices")
    _lanes(op, "indices", count, "one a score")
    _lanes(op, "pairs", 2 * count, "two a score")
    if run not in RUNS:
        raise VerifyError(f"'run' must be one of {', '.join(map(str, RUNS))}, got {run}")
    if count % run:
        raise VerifyError(f"'run' must divide the {count} elements of 'scores', got {run}")


def _verify_merge(op) -> None:
    _elements(op, ("f32",), "pairs")
    count, run, ways = length_of(op.pairs), op.run, op.ways
    if op.value.type != op.pairs.type:
        raise VerifyError(f"'value' must be {op.pairs.type}, got {op.value.type}")
    if not 2 <= ways <= 4:
        raise VerifyError(f"'ways' must be 2 to 4, got {ways}")
    if run < 1 or run > MAX_LIST or run % 4:
        raise VerifyError(f"'run' must be a multiple of 4 up to {MAX_LIST}, got {run}")
    if count % (2 * run * ways):
        raise VerifyError(f"the {count} lanes of 'pairs' are no multiple of {ways} runs of {run} pairs")


def _verify_merge_lists(op) -> None:
    if op.fourth is not None and op.third is None:
        raise VerifyError("'fourth' without 'third'")
    lists = [name for name in ("first", "second", "third", "fourth") if getattr(op, name) is not None]
    _elements(op, ("f32",), *lists, "value")
    for name in lists:
        lanes = length_of(getattr(op, name))
        if lanes % 8 or lanes > 2 * MAX_LIST:
            raise VerifyError(f"'{name}' must have a multiple of 4 pairs up to {MAX_LIST}, got {lanes} lanes")
    _lanes(op, "value", sum(length_of(getattr(op, name)) for name in lists), "those of all lists")


def _verify_unpack(op) -> None:
    _elements(op, ("f32",), "pairs", "values")
    _elements(op, ("i32",), "indices")
    if length_of(op.pairs) % 2:
        raise VerifyError(f"'pairs' must have an even number of lanes, got {length_of(op.pairs)}")
    for name in ("values", "indices"):
        _lanes(op, name, length_of(op.pairs) // 2, "one a pair")


def _verify_compress(op) -> None:
    if length_of(op.x) != length_of(op.mask):
        raise VerifyError(f"'x' has {length_of(op.x)} elements, 'mask' {length_of(op.mask)}")
    if element_name(op.mask) != "i1":
        raise VerifyError(f"'mask' must have elements i1, got {element_of(op.mask)}")
    _elements(op, _WIDE + _NARROW, "x")
    if op.value.type != op.x.type:
        raise VerifyError(f"'value' must be {op.x.type}, got {op.value.type}")


def _verify_gather(op) -> None:
    _elements(op, _WIDE + _NARROW, "x")
    _elements(op, ("i32",), "indices")
    _elements(op, (element_name(op.x),), "value")
    _lanes(op, "value", length_of(op.indices), "one an index")


def _verify_scatter(op) -> None:
    _elements(op, _WIDE + _NARROW, "x")
    _elements(op, ("i32",), "indices")
    _elements(op, (element_name(op.x),), "into")
    _lanes(op, "indices", length_of(op.x), "one an element of 'x'")
    if op.value.type != op.into.type:
        raise VerifyError(f"'value' must be {op.into.type}, got {op.value.type}")


def _verify_find_first(op) -> None:
    length_of(op.mask)
    _elements(op, ("i1",), "mask")


SORTING = (
    Op(
        "sort",
        "Sorts every `run` neighbouring scores, with their indices, into descending order.",
        operands=(Operand("scores", "tensor", "N x f32"), Operand("indices", "tensor", "N x i32")),
        attributes=(
            Attribute("run", "integer", f"pairs of one list, of which N is a multiple: {', '.join(map(str, RUNS))}"),
        ),
        results=(Result("pairs", "tensor", "2N x f32: each score, then the bits of its index"),),
        description=(
            "Stable: of equal scores the one in the lower position comes first. NaN comes before every number. On 910B "
            "half a cycle a pair for runs of 32, and as much again for each merge of up to four lists: 2k cycles for a "
            "run of 1024, 10k for one of 4096."
        ),
        verify=_verify_sort,
    ),
    Op(
        "merge",
        "Merges every `ways` neighbouring lists of `run` pairs into one.",
        operands=(Operand("pairs", "tensor", "2N x f32; each list in descending order"),),
        attributes=(
            Attribute("run", "integer", f"pairs of one list: a multiple of 4, at most {MAX_LIST}"),
            Attribute("ways", "integer", "lists that become one: 2 to 4"),
        ),
        results=(Result("value", "tensor", "2N x f32: lists of `run * ways` pairs"),),
        description="Stable: of equal scores the one in the earlier list comes first. On 910B half a cycle a pair.",
        verify=_verify_merge,
    ),
    Op(
        "merge_lists",
        "Merges two to four lists, which may differ in length, into one.",
        operands=(
            Operand("first", "tensor", "pairs, f32, in descending order"),
            Operand("second", "tensor", "the same"),
            Operand("third", "tensor", "the same", optional=True),
            Operand("fourth", "tensor", "the same", optional=True),
        ),
        results=(Result("value", "tensor", "f32, as many lanes as all lists have"),),
        description=(
            f"Stable, as `tile.merge`. Lists have a multiple of 4 pairs, at most {MAX_LIST}. They are merged from "
            "where they are, so a running list costs no copy but that of what is kept."
        ),
        verify=_verify_merge_lists,
    ),
    Op(
        "unpack",
        "Takes pairs apart.",
        operands=(Operand("pairs", "tensor", "2N x f32"),),
        results=(Result("values", "tensor", "N x f32"), Result("indices", "tensor", "N x i32")),
        description="What nothing uses costs nothing.",
        verify=_verify_unpack,
    ),
    Op(
        "compress",
        "Packs the elements under the mask to the front, in order; the rest is unspecified.",
        operands=(Operand("x", "tensor", "N elements of 16 or 32 bits"), Operand("mask", "tensor", "N x i1")),
        attributes=(Attribute("readable", "bool", "the rest is read too: something is written to it", optional=True),),
        results=(Result("value", "tensor", "N elements"), Result("kept", "index", "how many were packed")),
        verify=_verify_compress,
    ),
    Op(
        "gather",
        "Element `i` of the result is element `indices[i]` of `x`.",
        operands=(
            Operand("x", "tensor", "M elements of 16 or 32 bits"),
            Operand("indices", "tensor", "N x i32, each from 0 to M - 1, those of lanes that nothing reads too"),
        ),
        results=(Result("value", "tensor", "N elements"),),
        verify=_verify_gather,
    ),
    Op(
        "scatter",
        "`into`, but that element `indices[i]` is element `i` of `x`.",
        operands=(
            Operand("x", "tensor", "N elements of 16 or 32 bits"),
            Operand("indices", "tensor", "N x i32, each from 0 to M - 1, those of lanes that nothing reads too"),
            Operand("into", "tensor", "M elements"),
        ),
        results=(Result("value", "tensor", "M elements"),),
        description=(
            "Where several lanes name one element it is unspecified. The 950 family has the instruction; on the others "
            "the lowering refuses."
        ),
        verify=_verify_scatter,
    ),
    Op(
        "find_first",
        "The first lane under the mask, or N where there is none.",
        operands=(Operand("mask", "tensor", "N x i1"),),
        results=(Result("position", "index", ""),),
        verify=_verify_find_first,
    ),
)
