"""`ascend.row_wise` on tiles: elementwise work, and reductions along rows before and after it.

What is gone about how:

- *Without reductions, and with no operand that is broadcast*: the elements of all rows are one sequence; a core takes
  its share of it in long chunks.
- *Short rows*: many in one tile (`row_batches`).
- *Rows that fit in one tile*: one straight line a row. What is loaded or computed for one reduction is there for the
  next and for the result, and what does not change from row to row is loaded once a core.
- *Parts set side by side*: a run of columns after another, each as above.
- *Longer rows*: a pass over the chunks of the row for every reduction that depends on another's result, one for the
  rest.
- *Long rows, few of them*: several cores share a row, each with a part of its columns (`row_units`).

Dimensions between the rows and the columns make more rows of each: all of them are dealt out to the cores alike, and
where one lies follows from its number.

A pair of values is computed in the same passes and stored from the same tiles.

A sum adds the elements whose columns are equal mod 1024 in the order of columns, one lane each, then the lanes by a
fixed tree: its bits do not depend on the length of a chunk. Shorter rows take the next power of two of lanes; long ones
are reduced in units.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith

from jascend.backends.ascend.targets import Target
from jascend.dialect import TILE

from ..builder import Stage, tile_type, up
from . import bodies, row_batches, row_units
from .access import (
    CONCATENATION, Access, accesses, base_of, compares, has_columns, in_order, positions_in, shifted, start_of,
    starts_of_parts,
)  # fmt: skip
from .lowering import lowering
from .ops import Ops
from .producers import width_of
from .reductions import Reduction, is_reduction, reduction_of
from .row_chunks import slice_of
from .rows import each_round, each_row
from .site import Candidate, Site

SUMMARY = "Elementwise work and reductions along rows, one row after another."
CANDIDATES = tuple(
    Candidate(tile, load_ahead=ahead) for tile in (16384, 8192, 4096, 2048, 1024) for ahead in (True, False)
)  # fmt: skip

_SUMMED = 1024  # lanes of a sum
_DEALT = 1024  # elements that are dealt out together, where cores do not get whole rows
_LANES = 64  # a tile's length is a multiple of
_KEPT_BYTES = 48 << 10  # of what every row needs and is loaded once
_COMBINE = {"add": arith.addf, "max": arith.maximumf, "min": arith.minimumf}
_NEUTRAL = {"add": -0.0, "max": float("-inf"), "min": float("inf")}


def refusal(op: ir.OpView, target: Target) -> str | None:
    """Why no kernel is generated for an op; None if one is."""
    shape = ir.RankedTensorType(op.x.type)
    if any(shape.is_dynamic_dim(dim) for dim in range(1, shape.rank)):
        return "is generated for fixed sizes but for the leading dimension"
    return None


@lowering("ascend.row_wise", summary=SUMMARY, refusal=refusal, candidates=CANDIDATES)
def lower(op: ir.OpView, site: Site) -> None:
    """Builds the kernel body: all rows of this core."""
    RowWise([Written(op.x, site.outputs["out"])], site).build()


@lowering("ascend.row_wise_pair", summary=SUMMARY, refusal=refusal, candidates=CANDIDATES)
def lower_pair(op: ir.OpView, site: Site) -> None:
    """The same for two values."""
    RowWise([Written(op.x, site.outputs["out"]), Written(op.other, site.outputs["other_out"])], site).build()


def labels_of(value: ir.Value, inside: Callable[[ir.Operation], bool] = lambda _: True) -> Access:
    """What the dimensions of a kernel's result are called: the rows, then those that are looped over, then the columns.
    There are no columns where each element comes from a reduction. `inside` says which ops are the kernel's."""
    shape = ir.RankedTensorType(value.type).shape
    looped = ("row", *(None if dim == 1 else f"dim{i}" for i, dim in enumerate(shape[1:], start=1)))
    last = max(i for i, label in enumerate(looped) if label is not None)
    if last == 0:
        return looped
    labels = (*looped[:last], "col", *looped[last + 1 :])
    if not isinstance(value.owner, ir.Block) and value.owner.name == CONCATENATION:
        return labels
    along = [piece for piece in pieces(value, labels, inside) if has_columns(piece[1])]
    reduced = any(is_reduction(v.owner) for v, _ in along if not isinstance(v.owner, ir.Block))
    plain = any(isinstance(v.owner, ir.Block) or not inside(v.owner) for v, _ in along)
    return looped if reduced and not plain else labels


def pieces(
    value: ir.Value, access: Access, inside: Callable[[ir.Operation], bool] = lambda _: True
) -> Iterator[tuple[ir.Value, Access]]:
    """All values that a piece is computed from, with the pieces of them, each after those it needs; not what goes into
    a reduction whose results are not one a row: such a one is there before."""

    def needs(piece: tuple[ir.Value, Access]) -> Sequence[tuple[ir.Value, Access]]:
        owner = piece[0].owner
        if isinstance(owner, ir.Block) or not inside(owner) or (is_reduction(owner) and has_columns(piece[1])):
            return ()
        return sources(owner, piece[1])

    return in_order((value, access), needs)


def sources(op: ir.Operation, access: Access) -> list[tuple[ir.Value, Access]]:
    """The pieces of an op's inputs that a piece of its result is computed from."""
    if is_reduction(op):
        return [(op.operands[0], (*access, "col"))]
    return accesses(op, access)


def segments(value: ir.Value, labels: Access) -> list[tuple[Access, int]]:
    """The runs of columns that each come from the same operands of all concatenations: what they are called, and how
    long they are. One where nothing is concatenated."""
    column = labels.index("col")
    length = ir.RankedTensorType(value.type).shape[column]
    bounds = sorted({0, *_bounds(value, labels, length), length})
    return [
        ((*labels[:column], shifted("col", start), *labels[column + 1 :]), end - start)
        for start, end in zip(bounds, bounds[1:])
    ]


def _bounds(value: ir.Value, access: Access, length: int) -> Iterator[int]:
    """Where a concatenation goes on to its next operand, within a run of so many columns of a value."""

    def needs(piece: tuple[ir.Value, Access]) -> Sequence[tuple[ir.Value, Access]]:
        owner = piece[0].owner
        ends = (
            isinstance(owner, ir.Block)
            or is_reduction(owner)
            or owner.name == CONCATENATION
            or not has_columns(piece[1])
        )
        return () if ends else sources(owner, piece[1])

    for each, its_access in in_order((value, access), needs):
        if isinstance(each.owner, ir.Block) or each.owner.name != CONCATENATION or not has_columns(its_access):
            continue
        start = start_of(its_access[-1])
        for operand, first in zip(each.owner.operands, starts_of_parts(each.owner)):
            last = first + ir.RankedTensorType(operand.type).shape[-1]
            begin, end = max(start, first), min(start + length, last)
            if begin < end:
                yield from (begin - start, end - start)
                inner = _bounds(operand, (*its_access[:-1], shifted("col", begin - first)), end - begin)
                yield from (begin - start + bound for bound in inner)


@dataclass(frozen=True)
class _Step:
    """A reduction of the row at hand, and how many others have to come before it."""

    value: ir.Value
    access: Access
    reduction: Reduction
    level: int

    @property
    def word(self) -> str:
        return {"add": "row_sum", "max": "row_maximum", "min": "row_minimum"}[self.reduction.kind]


@dataclass(frozen=True)
class Written:
    """A value that a kernel computes, and the memory that it goes to."""

    value: ir.Value
    memory: ir.Value


class RowWise:
    """Builds the rows of one kernel, of values that have the same shape and the same labels."""

    def __init__(self, written: Sequence[Written], site: Site):
        self.b, self.t, self.site, self.producers = site.b, Ops(site.b), site, site.producers
        self.written, first = written, written[0]
        self.active: ir.Value | None = None  # whether this core's group has a row, where cores go along that have none
        self.labels = labels_of(first.value)
        self.type = ir.RankedTensorType(first.value.type)
        self.shape = self.type.shape
        along = "col" in self.labels
        self.segments = segments(first.value, self.labels) if along else [(self.labels, 1)]
        found = (piece for labels, _ in self.segments for each in written for piece in pieces(each.value, labels))
        self.pieces = list(dict.fromkeys(found))
        self.steps = _steps(self.pieces)
        if any(map(compares, {value for value, access in self.pieces if not has_columns(access)})):
            self.producers.row_lanes = 64  # for all alike
        site.deal_out(first.memory)

    @property
    def inner(self) -> dict[str, int]:
        """The dimensions between rows and columns, and how many positions each has."""
        return {label: size for label, size in zip(self.labels, self.shape) if label and label.startswith("dim")}

    @property
    def positions(self) -> int | None:
        """How many rows there are, those of all positions of the inner dimensions; None where only a launch knows."""
        return None if self.type.is_dynamic_dim(0) else self.shape[0] * math.prod(self.inner.values())

    def share(self, number: ir.Value, per: int, name: str, parts: int = 1) -> ir.Value:
        """What this core, or a group of `parts`, has of `number` times `per`."""
        if per > 1:
            number = self.b.op(arith.muli, number, self.b.index(per), name=name)
        results = [self.b.index_type] * 4
        return self.b.build(TILE.classes["BlockRows"], number, results=results, parts=parts if parts > 1 else None)

    def build(self) -> None:
        b, t = self.b, self.t
        if not self.steps and self.is_flat():
            self.flat()
            return
        short = row_batches.length_of_rows(self) if self.is_one_run else None
        if short is not None:
            row_batches.build(self, self.share(self.site.rows, math.prod(self.inner.values()), "all_rows"), short)
            return
        lengths = {step.reduction.length for step in self.steps}
        if "col" in self.labels:
            lengths.update(length for _, length in self.segments)
        longest = max(lengths, default=1)
        self.length, self.run = longest, self.columns_of_a_core(lengths)
        parts = -(-longest // self.run)
        share = self.share(self.site.rows, math.prod(self.inner.values()), "all_rows", parts)
        self.begin, self.end = t.zero, None
        if parts > 1:
            self.begin = b.op(arith.muli, share.part, b.index(self.run), name="own_columns")
            self.end = t.smaller(t.plus(self.begin, b.index(self.run)), b.index(longest), "own_columns_end")
        self.resident = len(lengths) == 1 and self.run <= self.site.tile
        multiple = _SUMMED if self.run > _SUMMED else _LANES
        self.tile = up(self.run, multiple) if self.run <= self.site.tile else self.site.tile
        self.tile = max(self.tile, min(_power_of_two(self.run), _SUMMED))
        self.producers.tile = self.tile
        self.ramp = None
        if any(self.pad(step.reduction.length) is not None for step in self.steps):
            self.ramp = t.ramp(self.tile, b.f32_type, "ramp")
        self.in_units = [step for step in self.steps if step.reduction.length >= row_units.SHORTEST]
        if self.in_units:
            lengths_in_units = [step.reduction.length for step in self.in_units]
            self.units = row_units.Units(t, lengths_in_units, math.prod(self.inner.values()))
        shared = f" of {parts} cores, each {self.run}" if parts > 1 else ""
        where = ", in one tile" if self.resident else f" in chunks of {self.tile}"
        self.site.remarks.append(f"rows of {longest}{shared}{where}")
        if self.resident:
            self.keep_loaded(longest)
        if parts > 1:
            self.is_first = b.cmpi("eq", share.part, t.zero, "is_first_part")
            each_round(t, self.site, share, self.shared_row)
        else:
            each_row(t, share, self.row)

    def columns_of_a_core(self, lengths: set[int]) -> int:
        """How many columns of a row one core has: all, or those of its part,
        where there are too few rows for all cores."""
        longest, rows = max(lengths, default=1), self.shape[0]
        plain = self.steps and len(lengths) == 1 and self.is_one_run and not self.inner
        if not plain or self.type.is_dynamic_dim(0) or not rows:
            return longest
        return row_units.columns_of_a_part(rows, longest, self.site.target.vector_cores)

    # -- one sequence -------------------------------------------------------------------------------------------

    @property
    def is_one_run(self) -> bool:
        """Whether nothing is set side by side."""
        return len(self.segments) == 1

    def is_flat(self) -> bool:
        """Whether every operand lies in memory as the result does, or is one value."""
        whole = [label for label in self.labels if label is not None]
        if not self.is_one_run:
            return False
        if len(whole) > 1 and any(not isinstance(v.owner, ir.Block) and positions_in(v.owner) for v, _ in self.pieces):
            return False
        found = [(value, access) for value, access in self.pieces if isinstance(value.owner, ir.Block)]
        return all(
            not any(access)
            or ([a for a in access if a is not None] == whole
                and self.row_shape(value) == self.row_shape(self.written[0].value))
            for value, access in found
        )  # fmt: skip

    def row_shape(self, value: ir.Value) -> list[int]:
        return [size for size in ir.RankedTensorType(value.type).shape[1:] if size != 1]

    def flat(self) -> None:
        b, t = self.b, self.t
        width = math.prod(self.shape[1:])
        innermost = max(i for i, label in enumerate(self.labels) if label is not None)
        access = tuple("col" if i == innermost else None for i in range(len(self.labels)))
        self.tile = self.site.tile // 2
        self.producers.tile = self.tile
        self.site.remarks.append(f"all elements as one sequence, in chunks of {self.tile}")
        few_rows = self.type.is_dynamic_dim(0) or self.shape[0] < self.site.target.vector_cores
        unit = _DEALT if few_rows and width > _DEALT else width
        if unit == width:
            share = self.share(self.site.rows, 1, "")
        else:
            all_of_them = b.op(arith.muli, self.site.rows, b.index(width), name="elements")
            units = b.op(arith.divsi, t.plus(all_of_them, b.index(unit - 1)), b.index(unit), name="units")
            share = self.share(units, 1, "")
        first, last = (b.op(arith.muli, end, b.index(unit), name=name) if unit > 1 else end
                       for end, name in ((share.first, "first_element"), (share.last, "last_element")))  # fmt: skip
        if width % unit:
            last = t.smaller(last, all_of_them, "last_element")
        self.producers.enter_row(t.zero, [])
        self.chunks(first, last, access, 0.0, "This core's elements.")

    # -- rows ---------------------------------------------------------------------------------------------------

    def keep_loaded(self, length: int) -> None:
        """Loads what every row needs, once."""
        left = _KEPT_BYTES
        for value, access in self.pieces:
            if not isinstance(value.owner, ir.Block) or set(map(base_of, access)) - {None} != {"col"}:
                continue
            element = ir.RankedTensorType(value.type).element_type
            left -= self.tile * max(4, width_of(element))
            if left >= 0:
                tile = self.producers.piece(value, access, self.begin, self.count(length), self.pad(length))
                self.producers.known[value, access] = tile

    def row(self, row: ir.Value) -> list[ir.Value]:
        """One row, by its number among those of all positions:
        counted along the inner dimensions, the last one first."""
        b, producers = self.b, self.producers
        producers.enter_position(row, self.labels, self.shape)
        for label, size in reversed(self.inner.items()):
            producers.outer[label] = b.op(arith.remsi, row, b.index(size), name=f"position_{label}")
            row = b.op(arith.divsi, row, b.index(size), name="row")
        self.one(row)
        return []

    def shared_row(self, row: ir.Value, turn: ir.Value, active: ir.Value) -> None:
        """This core's part of a row; without one, it writes nothing, and meets the others."""
        self.active = active
        self.row(row)

    def only_if(self, condition: ir.Value | None, write: Callable[[], None]) -> None:
        if condition is None:
            write()
        else:
            self.b.if_(condition, [], lambda: write() or [])

    def extent(self, length: int) -> tuple[ir.Value, ir.Value]:
        """This core's columns of a row, from one on to another."""
        return self.begin, self.b.index(length, "row_length") if self.end is None else self.end

    def count(self, length: int) -> ir.Value:
        """How many they are."""
        return self.b.index(length, "row_length") if self.end is None else self.t.minus(self.end, self.begin, "count")

    def one(self, row: ir.Value) -> None:
        """One row, or one run of columns of it."""
        producers = self.producers
        for step in self.steps:
            producers.known.pop((step.value, step.access), None)
        producers.enter_row(row, [])
        if self.in_units:
            self.units.enter_row(producers.place)
        done: dict = {}
        for level in range(1, max((step.level for step in self.steps), default=0) + 1):
            for length in dict.fromkeys(step.reduction.length for step in self.steps if step.level == level):
                steps = [s for s in self.steps if s.level == level and s.reduction.length == length]
                self.reduce(steps, length, done)
        if "col" not in self.labels:
            self.store_scalar()
            return
        for labels, length in self.segments:
            if self.resident:
                producers.prepare([(each.value, labels) for each in self.written])
                self.store_all(labels, self.begin, self.count(length), self.pad(length), done)
            else:
                self.chunks(*self.extent(length), labels, self.pad(length), "The result.")

    def reduce(self, steps: list[_Step], length: int, done: dict) -> None:
        """Reductions that do not depend on each other, in one pass."""
        b, t, producers = self.b, self.t, self.producers
        if length >= row_units.SHORTEST:
            self.reduce_units(steps, length, done)
            return
        lanes = min(_power_of_two(length), _SUMMED)
        pieces_of = [(step.reduction.source, (*step.access, "col")) for step in steps]
        producers.prepare(pieces_of)
        if length <= self.tile and self.resident:
            count = b.index(length, "row_length")
            partial = [
                self.folded(step, producers.piece(*piece, t.zero, count, self.pad(length), done), count, length, lanes)
                for step, piece in zip(steps, pieces_of)
            ]
        else:
            starts = [(f"{s.word}s", t.filled(_NEUTRAL[s.reduction.kind], lanes)) for s in steps]
            size, end = b.index(self.tile, "chunk"), b.index(length, "row_length")

            def chunk(column, *carried):
                count = size if length % self.tile == 0 else t.smaller(t.minus(end, column), size, "count")
                memo: dict = {}
                tiles = [producers.piece(*piece, column, count, self.pad(length), memo) for piece in pieces_of]
                return [
                    self.folded(step, tile, count, length, lanes, before)
                    for step, tile, before in zip(steps, tiles, carried)
                ]

            partial = b.for_(
                t.zero, end, size, starts, chunk, induction="column", about=Stage("AlongRow", "Along the row.")
            )
        for step, tile in zip(steps, partial):
            self.know(step, t.reduce(step.reduction.kind, tile, lanes, step.word))

    def know(self, step: _Step, whole: ir.Value) -> None:
        """What a reduction gives, a tile of one lane, for those that need it."""
        b, n = self.b, self.producers.row_lanes
        element = ir.RankedTensorType(step.value.type).element_type
        row_tile = b.build(
            TILE.classes["Broadcast"], whole, results=[tile_type(n, b.f32_type)], width=n, name=step.word
        )
        self.producers.known[step.value, step.access] = bodies.rounded(b, row_tile.value, element, step.word)

    def reduce_units(self, steps: list[_Step], length: int, done: dict) -> None:
        """The same of long rows; the cores that share one meet when all units are there."""
        b, t, producers = self.b, self.t, self.producers
        pieces_of = [(step.reduction.source, (*step.access, "col")) for step in steps]
        producers.prepare(pieces_of)

        def give(column: ir.Value, count: ir.Value, memo: dict) -> list[ir.Value]:
            for step, piece in zip(steps, pieces_of):
                x = self.masked(step, producers.piece(*piece, column, count, self.pad(length), memo), count, length)
                which = self.in_units.index(step)
                self.only_if(
                    self.active, lambda: self.units.give(which, step.reduction.kind, x, column, count, step.word)
                )
            return []

        if self.resident:
            give(self.begin, self.count(length), done)
        else:
            (first, last), size = self.extent(length), b.index(self.tile, "chunk")
            left = lambda column: size if self.pad(length) is None else t.smaller(t.minus(last, column), size, "count")
            b.for_(first, last, size, [], lambda at: give(at, left(at), {}), induction="column", about="Along the row.")
        if self.end is not None:
            b.build(TILE.classes["SyncAll"])
        for step in steps:
            kind = step.reduction.kind
            self.know(step, self.units.take(self.in_units.index(step), kind, _NEUTRAL[kind], step.word))

    def masked(self, step: _Step, x: ir.Value, count: ir.Value, length: int) -> ir.Value:
        """A chunk with nothing to reduce behind the end of the row."""
        if self.pad(length) is None:
            return x
        inside = self.b.cmpf("OLT", self.ramp, self.b.splat(self.t.f32_of(count), self.tile), "inside")
        return self.t.where(inside, x, _NEUTRAL[step.reduction.kind], "masked")

    def folded(self, step: _Step, x: ir.Value, count: ir.Value, length: int, lanes: int, before=None) -> ir.Value:
        """`lanes` partial results of a chunk, after those `before`."""
        b, kind = self.b, step.reduction.kind
        x = self.masked(step, x, count, length)
        for start in range(0, self.tile, lanes):
            part = slice_of(b, x, start, lanes) if self.tile > lanes else x
            before = part if before is None else b.op(_COMBINE[kind], before, part, name=f"{step.word}s")
        return before

    def pad(self, length: int) -> float | None:
        """What fills a tile behind the end of a row; None where the tiles of a row end with it."""
        ends = length if self.end is None else math.gcd(length, self.run)
        return 0.0 if ends % self.tile else None

    # -- results ------------------------------------------------------------------------------------------------

    def chunks(self, first: ir.Value, last: ir.Value, access: Access, pad: float | None, about: str) -> None:
        """Computes and stores the columns from one on to another."""
        b, t, producers = self.b, self.t, self.producers
        producers.prepare([(each.value, access) for each in self.written])
        size = b.index(self.tile, "chunk")

        def body(column):
            count = size if pad is None else t.smaller(t.minus(last, column), size, "count")
            self.store_all(access, column, count, pad, {})
            return []

        b.for_(first, last, size, [], body, induction="column", about=about)

    def store_all(self, access: Access, column: ir.Value, count: ir.Value, pad: float | None, done: dict) -> None:
        """Computes a piece of every value and stores it."""
        for each in self.written:
            tile = self.producers.piece(each.value, access, column, count, pad, done)
            self.only_if(self.active, lambda: self.store(each, tile, access, column, count))

    def store(self, written: Written, tile: ir.Value, access: Access, column: ir.Value | None, count: ir.Value) -> None:
        offset = self.producers.offset(self.type, access, column, "out_offset")
        self.b.build(TILE.classes["Store"], self.narrow(tile, written), written.memory, offset, count, once=True)

    def store_scalar(self) -> None:
        """What is one a row; of cores that share the row, the first one writes it."""
        writes = None if self.active is None else self.b.op(arith.andi, self.active, self.is_first, name="writes")
        for each in self.written:
            tile = self.producers.row_tile(each.value, self.labels)
            self.only_if(writes, lambda: self.store(each, tile, self.labels, None, self.t.one))

    def narrow(self, tile: ir.Value, written: Written) -> ir.Value:
        """A tile in the result's dtype, of booleans in bytes. What was rounded last is there in that dtype already."""
        element = ir.RankedTensorType(written.value.type).element_type
        if str(element) == "i1":
            return bodies.byte_of_mask(self.b, tile)
        if ir.RankedTensorType(tile.type).element_type == element:
            return tile
        owner = tile.owner
        if not isinstance(owner, ir.Block) and owner.name == "arith.extf":
            narrow = owner.operands[0]
            if ir.RankedTensorType(narrow.type).element_type == element:
                return narrow
        lanes = ir.RankedTensorType(tile.type).get_dim_size(0)
        return self.b.op(arith.truncf, tile_type(lanes, element), tile, name="out")


def _steps(found: list[tuple[ir.Value, Access]]) -> list[_Step]:
    """The reductions among the pieces of a kernel."""
    levels: dict[tuple[ir.Value, Access], int] = {}
    steps = []
    for piece in found:
        owner = piece[0].owner
        if isinstance(owner, ir.Block):
            levels[piece] = 0
            continue
        below = max((levels[source] for source in sources(owner, piece[1])), default=0)
        levels[piece] = below + 1 if is_reduction(owner) else below
        if is_reduction(owner):
            steps.append(_Step(*piece, reduction_of(owner), levels[piece]))
    return steps


def _power_of_two(number: int) -> int:
    """The least power of two that is not smaller, and 8 at least: a block."""
    return max(8, 1 << (number - 1).bit_length())
