"""The first elements of a stretch of a row in descending order, equal ones by position, without a sort of the stretch.

1. *A bound* that at least as many elements reach as are asked for. Of a long stretch a sample tells one that so many
   reach in all likelihood. Otherwise the stretch is folded to G maxima, each over the positions that are equal mod G:
   at least as many elements reach the maximum of that rank.
2. *A list.* One compare and two compressions a chunk leave the elements that reach the bound, and their positions.
3. *A sort* of the list, which is stable, as the list is in order of position.

So a long stretch is read once. Where the sample misled, because too few reach its bound or too many for the list, the
stretch is folded after all, and the list gets what is above the value of the last element asked for, found by bisection
over counts where the maxima do not tell it, and then copies of that value, the first ones first.

Positions are float32 on the way, exact below 2^24. Lanes that hold no element have the position `NOWHERE`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from mlir import ir
from mlir.dialects import arith

from jascend.dialect.tile.sorting import RUNS

from ..builder import Stage, tile_type
from .candidates import bound_of, kth_largest, ranked_maximum
from .keys import Keys
from .ops import GREATEST, Ops
from .row_chunks import NEG_INF, Chunk, RowChunks, length_of, slice_of, with_slice

NOWHERE = float(1 << 24)
SAMPLED = 8192  # elements of a sample, at most
_SHARE = 16  # of the elements are in a shorter one
_LEAST_SAMPLE = 2048
_RUNS, _LEAST_RUN = 64, 64  # of neighbours
_LIST = 1024  # elements of a list, three or four of which one merge makes one


@dataclass(frozen=True)
class Size:
    """How long the lists of a search are.

    Attributes:
      listed: elements of the result, and the most that can be asked for.
      usual: how many are asked for where the bound of a sample fits best.
      maxima, sampled: G, of a stretch and of a sample.
      head: elements that one chunk can contribute.
      gathered: elements of the list, with the lanes that are lost between chunks.
      ordered: elements of the list before it is sorted; few of them are sorted in less time than all.
    """

    listed: int
    usual: int
    maxima: int
    sampled: int
    head: int
    gathered: int
    ordered: tuple[int, ...]

    def of_chunks(self, chunks: int) -> Size:
        """The same where so many chunks contribute: no longer list is sorted than they can fill."""
        most = chunks * self.head
        longer = [lanes for lanes in self.ordered if lanes >= most] or [self.ordered[-1]]
        return replace(self, ordered=(*(lanes for lanes in self.ordered if lanes < longer[0]), longer[0]))


SMALL = Size(128, 48, 256, 256, 512, 2048, (512, 2048))
LARGE = Size(1024, 512, 2048, 1024, 1024, 4608, (2048, 4096))


def _sampled(length: int) -> int:
    """Elements of the sample of a stretch."""
    return min(max(1 << (length // _SHARE).bit_length() - 1, _LEAST_SAMPLE), SAMPLED)


class List:
    """Elements with their positions, in order of position, as they are collected.

    Attributes:
      values, places: tiles; a chunk's elements start on whole blocks of 8 lanes.
      used: lanes in use.
      number: elements.
      lost: whether some did not fit (index, 0 or 1).
    """

    NAMES = ("values", "places", "used", "number", "lost")

    def __init__(self, values: ir.Value, places: ir.Value, used: ir.Value, number: ir.Value, lost: ir.Value):
        self.values, self.places, self.used, self.number, self.lost = values, places, used, number, lost

    def parts(self) -> list[ir.Value]:
        return [self.values, self.places, self.used, self.number, self.lost]

    def types(self) -> list[ir.Type]:
        return [part.type for part in self.parts()]


class Collector:
    """Collects elements of a stretch under a mask.

    `ramp` is a float32 ramp as long as a list before it is sorted, `lane` an int16 ramp of a chunk's length."""

    def __init__(self, t: Ops, ramp: ir.Value, lane: ir.Value, size: Size):
        self.t, self.b, self.ramp, self.lane, self.size = t, t.b, ramp, lane, size

    def empty(self) -> List:
        t, lanes = self.t, self.size.gathered + self.size.head  # what is added to a full list is not part of it
        return List(t.filled(NEG_INF, lanes, "values"), t.filled(NOWHERE, lanes, "places"), t.zero, t.zero, t.zero)

    def emptied(self, used: List) -> List:
        """An empty list in the place of one that is not needed any more."""
        empty = self.empty()
        values, places = (
            with_slice(self.b, used.values, empty.values, 0),
            with_slice(self.b, used.places, empty.places, 0),
        )
        return List(values, places, empty.used, empty.number, empty.lost)

    def collect(self, chunks, mask_of, into: List, about: str) -> List:
        """Appends the elements under `mask_of(chunk)` of a row or of a list."""

        def body(chunk: Chunk, _, __, *parts):
            return self._append(chunk, mask_of(chunk), List(*parts), chunks.is_one or None)

        return List(*chunks.each([*self.blanks(chunks), *zip(List.NAMES, into.parts())], body, about)[2:])

    def blanks(self, chunks) -> list[tuple[str, ir.Value]]:
        """What the first chunk's packed elements replace. What is packed goes from chunk to chunk, so that the lanes
        behind it hold something."""
        b, f32 = self.b, self.b.f32_type
        types = (
            (f32, f32) if chunks.has_places else (chunks.dtype if chunks.is_load else f32, self.lane.type.element_type)
        )
        return [
            (name, b.splat(b.constant(element, 0), chunks.chunk, name))
            for name, element in zip(("packed", "packed_lanes"), types)
        ]

    def packed(self, chunk: Chunk, mask: ir.Value, alone: bool | None) -> tuple[ir.Value, ir.Value, ir.Value]:
        """The elements of a chunk under a mask and their lanes, or places, as the next chunk wants them; how many they
        are."""
        source = chunk.x if chunk.raw is None else chunk.raw
        lanes = slice_of(self.b, self.lane, 0, length_of(source)) if chunk.places is None else chunk.places
        packed, kept = self.t.compress(source, mask, "packed", readable=alone)
        packed_lanes, _ = self.t.compress(lanes, mask, "packed_lanes", readable=alone)
        return packed, packed_lanes, kept

    def converted(
        self, chunk: Chunk, packed: ir.Value, packed_lanes: ir.Value, start, length: int
    ) -> tuple[ir.Value, ir.Value]:
        """`length` of these from `start` on, in float32, with their positions."""
        t, b = self.t, self.b
        values, places = slice_of(b, packed, start, length), slice_of(b, packed_lanes, start, length)
        if packed.type != chunk.x.type:
            values = b.op(arith.extf, tile_type(length, b.f32_type), values, name="head")
        if chunk.places is None:
            places = t.in_row(t.to_f32(places, "head_lanes"), chunk.column, "head_places")
        return values, places

    def _append(self, chunk: Chunk, mask: ir.Value, into: List, alone: bool | None) -> list[ir.Value]:
        t, b, size = self.t, self.b, self.size
        packed, packed_lanes, kept = self.packed(chunk, mask, alone)
        most = min(size.head, length_of(packed))
        head, places = self.converted(chunk, packed, packed_lanes, 0, most)
        inside = t.compare("OLT", slice_of(b, self.ramp, 0, most), t.f32_of(kept, "kept_number"), "inside")
        places = t.where(inside, places, NOWHERE, "head_places")
        end = t.plus(into.used, kept)
        fits = t.both(b.cmpi("sle", kept, b.index(most)), b.cmpi("sle", end, b.index(size.gathered)), "fits")
        blocks = b.op(arith.andi, t.plus(t.smaller(kept, b.index(most)), b.index(7)), b.index(-8), name="lanes")
        return [
            packed,
            packed_lanes,
            with_slice(b, into.values, head, into.used, "values"),
            with_slice(b, into.places, places, into.used, "places"),
            t.smaller(t.plus(into.used, blocks), b.index(size.gathered), "used"),
            t.plus(into.number, kept, "number"),
            b.select(fits, into.lost, t.one, "lost"),
        ]

    def closed_up(self, values: ir.Value, places: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value]:
        """The elements without lanes between them, the first of them if they are more than can be sorted; -inf behind.

        Returns: values, places, and how many there are."""
        t, b, lanes = self.t, self.b, self.size.gathered
        values, places = (slice_of(b, x, 0, lanes) for x in (values, places))
        real = t.compare("OLT", places, b.f32(NOWHERE), "is_element")
        values, number = t.compress(values, real, "values", readable=True)
        places, _ = t.compress(places, real, "places", readable=True)
        most = self.size.ordered[-1]
        inside = t.compare("OLT", slice_of(b, self.ramp, 0, most), t.f32_of(number, "element_number"), "is_inside")
        return t.where(inside, slice_of(b, values, 0, most), NEG_INF, "values"), slice_of(b, places, 0, most), number

    def sorted(self, values: ir.Value, places: ir.Value) -> ir.Value:
        """The first elements of a list in order, as a list of `listed` pairs with positions."""
        t, b, size = self.t, self.b, self.size
        values, places, number = self.closed_up(values, places)

        def of_first(lanes):
            some = [slice_of(b, x, 0, lanes) for x in (values, places)]
            lists = 1 if lanes in RUNS else lanes // _LIST
            pairs = t.sorted(some[0], t.to_i32(some[1], "positions"), "sorted", run=lanes // lists)
            if lists > 1:
                pairs = t.make("Merge", pairs, length=2 * lanes, name="merged", run=_LIST, ways=lists)
            if lanes < size.listed:
                pairs = with_slice(b, t.filled(NEG_INF, 2 * size.listed), pairs, 0, "leading")
            return [slice_of(b, pairs, 0, 2 * size.listed, "leading")]

        def by_number(few, *more):
            if not more:
                return of_first(few)
            are_few = b.cmpi("sle", number, b.index(few), "are_few")
            result = tile_type(2 * size.listed, b.f32_type)
            return b.if_(are_few, ["leading"], lambda: of_first(few), lambda: by_number(*more), types=[result])

        return by_number(*size.ordered)[0]


class Leading:
    """Builds the search of one kernel. `ramp` and `lane` are those of a `Collector`."""

    def __init__(self, t: Ops, keys: Keys, ramp: ir.Value, lane: ir.Value, size: Size):
        self.t, self.b, self.keys, self.ramp, self.lane, self.size = t, t.b, keys, ramp, lane, size

    def pairs(self, chunks: RowChunks, number: ir.Value, finite: bool = False) -> ir.Value:
        """The first `number` elements (index, at least 1) as pairs with their positions, `size.listed` of them; what is
        behind the first `number` is unspecified. With `finite` nobody asks where -inf stands: behind the elements above
        it, should they be few, come -inf at any positions, and a long stretch is read once all the same."""
        t, b = self.t, self.b
        # A list is filled by one pass over the stretch, or by two: one for what is above the last value, one for its
        # copies.
        size = self.size.of_chunks(2 * -(-chunks.length // chunks.chunk))
        self.collector = Collector(t, self.ramp, self.lane, size)
        # A bound that is certain takes a pass more, which costs more than a sample where the row is computed.
        is_sampled = chunks.length >= (2 * SAMPLED if chunks.is_load else 4 * _LEAST_SAMPLE)
        bound = self._likely(chunks, number) if is_sampled else self._certain(chunks, number)
        if finite:
            is_open = b.cmpf("OEQ", bound, b.f32(NEG_INF), "is_open")
            bound = b.select(is_open, b.f32(-GREATEST), bound, "bound")
        found = self._collect(
            chunks, "UGE", bound, self.collector.empty(), Stage("CollectReaching", "The elements that reach the bound.")
        )
        fails = t.either(
            b.cmpi("ne", found.lost, t.zero), b.cmpi("sgt", found.number, b.index(size.ordered[-1])), "fails"
        )
        if is_sampled:
            too_few = b.cmpi("slt", found.number, number, "too_few")
            too_few = t.both(too_few, t.opposite(is_open)) if finite else too_few
            fails = t.either(fails, too_few, "fails")

        def otherwise():
            exactly = self._exactly(chunks, number, self._certain(chunks, number) if is_sampled else bound, found)
            return [exactly.values, exactly.places]

        about = Stage(
            "CollectExactly", "Too many for the list, or too few: those above the last one's value, and copies of it."
        )
        values, places = b.if_(
            fails, ["values", "places"], otherwise, lambda: [found.values, found.places],
            types=[found.values.type, found.places.type], about=about,
        )  # fmt: skip
        return self.collector.sorted(values, places)

    def _collect(self, chunks: RowChunks, predicate: str, bound: ir.Value, into: List, about: str) -> List:
        reach = lambda chunk: self.t.compare(predicate, chunk.x, bound, "reaches")
        return self.collector.collect(chunks, reach, into, about)

    def _certain(self, chunks: RowChunks, number: ir.Value) -> ir.Value:
        """A number that at least so many elements reach."""
        return bound_of(self.t, chunks, self.t.minus(number, self.t.one), self.size.maxima)

    def _likely(self, chunks: RowChunks, number: ir.Value) -> ir.Value:
        """The same in all likelihood. Where the sample has every d-th element, it has n / d of the first n, give or
        take the square root of that: the rank is four times as much behind it, by a tangent to n / d + 4 sqrt(n / d) +
        3."""
        t, b, size = self.t, self.b, self.size
        with self.b.stage(
            Stage("BoundBySample", "A number that enough elements reach in all likelihood, from a sample.")
        ):
            sampled = _sampled(chunks.length)
            share = sampled / chunks.length
            root = math.sqrt(size.usual * share)
            steep = b.op(arith.mulf, t.f32_of(number), b.f32(share * (1 + 2 / root)))
            rank = t.index_of(b.op(arith.addf, steep, b.f32(3 + 2 * root)), "rank")
            rank = t.smaller(rank, b.index(size.sampled - 1), "rank")
            run = max(sampled // _RUNS, _LEAST_RUN)
            sample = chunks.sample(sampled // run, run)
            return ranked_maximum(t, t.folded(arith.maximumf, sample, size.sampled), rank)

    def _exactly(self, chunks: RowChunks, number: ir.Value, bound: ir.Value, found: List) -> List:
        """What is above the value of the last element asked for, then copies of it; at least so many reach the
        bound."""
        t, b = self.t, self.b
        above = self._collect(
            chunks,
            "UGT",
            bound,
            self.collector.emptied(found),
            Stage("CollectAboveBound", "The elements above the bound."),
        )

        def bisected():
            last = kth_largest(t, self.keys, chunks, t.f32_of(number, "wanted"))
            return [
                last,
                *self._collect(
                    chunks,
                    "UGT",
                    last,
                    self.collector.emptied(above),
                    Stage("CollectAboveLast", "The elements above the last."),
                ).parts(),
            ]

        last, *parts = b.if_(
            b.cmpi("ne", above.lost, t.zero), ["last", *List.NAMES], bisected, lambda: [bound, *above.parts()],
            types=[b.f32_type, *above.types()],
        )  # fmt: skip
        return self._collect(
            chunks, "OEQ", last, List(*parts), Stage("CollectCopies", "Copies of the last, the first ones first.")
        )
