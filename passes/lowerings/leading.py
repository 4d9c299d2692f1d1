"""The first elements of a stretch of a row in descending order, equal ones by position, without a sort of the stretch.

1. *A bound.* The stretch is folded to G maxima, each over the positions that are equal mod G. At least as many elements
   as asked for reach the maximum of that rank.
2. *A list.* One compare and two compressions a chunk leave the elements that reach the bound, and their positions: about
   `-G ln(1 - n / G)` for n asked for, where the large ones lie at random.
3. *A sort* of the list, which is stable, as the list is in order of position.

Where too many reach the bound, the list gets what is above the value of the last element asked for, found by bisection over
counts if it is not the bound itself, and then copies of that value, the first ones first.

Positions are float32 on the way, exact below 2^24. Lanes that hold no element have -inf and the position `NOWHERE`.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith

from ..builder import tile_type
from .candidates import bound_of, count_of, kth_largest
from .keys import Keys
from .ops import Ops
from .row_chunks import NEG_INF, Chunk, RowChunks, slice_of, with_slice

NOWHERE = float(1 << 24)


@dataclass(frozen=True)
class Size:
    """How long the lists of a search are.

    Attributes:
      listed: elements of the result, and the most that can be asked for.
      maxima: G.
      head: elements that one chunk can contribute.
      gathered: elements of the list before it is sorted.
    """

    listed: int
    maxima: int
    head: int
    gathered: int


SMALL = Size(128, 256, 256, 1024)
LARGE = Size(1024, 2048, 1024, 4096)


class List:
    """Elements with their positions, in order of position, as they are collected.

    Attributes:
      values, places: tiles; a chunk's elements start on whole blocks of 8 lanes.
      used: lanes in use.
      lost: whether some did not fit (index, 0 or 1).
    """

    NAMES = ("values", "places", "used", "lost")

    def __init__(self, values: ir.Value, places: ir.Value, used: ir.Value, lost: ir.Value):
        self.values, self.places, self.used, self.lost = values, places, used, lost

    def parts(self) -> list[ir.Value]:
        return [self.values, self.places, self.used, self.lost]

    def types(self) -> list[ir.Type]:
        return [part.type for part in self.parts()]


class Collector:
    """Collects elements of a stretch under a mask. `ramp` is a float32 ramp of a chunk's length."""

    def __init__(self, t: Ops, ramp: ir.Value, size: Size):
        self.t, self.b, self.ramp, self.size = t, t.b, ramp, size

    def empty(self) -> List:
        t, lanes = self.t, self.size.gathered + self.size.head  # what is added to a full list is not part of it
        return List(t.filled(NEG_INF, lanes, "values"), t.filled(NOWHERE, lanes, "places"), t.zero, t.zero)

    def collect(self, chunks: RowChunks, mask_of, into: List, about: str) -> List:
        """Appends the elements under `mask_of(chunk)`."""
        t, b, lanes = self.t, self.b, chunks.chunk
        dtype = chunks.dtype if chunks.is_load else b.f32_type
        # What is packed goes from chunk to chunk, so that the lanes behind it hold something.
        blank = b.splat(arith.constant(dtype, 0.0, loc=b.loc()), lanes, "packed")
        packed = [("packed", blank), ("packed_places", t.filled(0.0, lanes, "packed_places"))]

        def body(chunk: Chunk, _, __, *parts):
            return self._append(chunk, mask_of(chunk), List(*parts))

        return List(*chunks.each([*packed, *zip(List.NAMES, into.parts())], body, about)[2:])

    def _append(self, chunk: Chunk, mask: ir.Value, into: List) -> list[ir.Value]:
        t, b, size = self.t, self.b, self.size
        source = chunk.x if chunk.raw is None else chunk.raw
        packed, kept = t.compress(source, mask, "packed")
        packed_places, _ = t.compress(self.ramp, mask, "packed_places")
        head = slice_of(b, packed, 0, size.head)
        if source.type != chunk.x.type:
            head = b.op(arith.extf, tile_type(size.head, b.f32_type), head, name="head")
        column = t.f32_of(chunk.column, "column_number")
        places = b.op(arith.addf, slice_of(b, packed_places, 0, size.head), b.splat(column, size.head), name="head_places")
        inside = t.compare("OLT", slice_of(b, self.ramp, 0, size.head), t.f32_of(kept, "kept_number"), "inside")
        head = t.where(inside, head, NEG_INF, "head")
        places = t.where(inside, places, NOWHERE, "head_places")
        end = t.plus(into.used, kept)
        fits = t.both(b.cmpi("sle", kept, b.index(size.head)), b.cmpi("sle", end, b.index(size.gathered)), "fits")
        lanes = b.op(arith.andi, t.plus(t.smaller(kept, b.index(size.head)), b.index(7)), b.index(-8), name="lanes")
        return [
            packed,
            packed_places,
            with_slice(b, into.values, head, into.used, "values"),
            with_slice(b, into.places, places, into.used, "places"),
            t.smaller(t.plus(into.used, lanes), b.index(size.gathered), "used"),
            b.select(fits, into.lost, t.one, "lost"),
        ]

    def sorted(self, collected: List, has_infinite: ir.Value) -> ir.Value:
        """The elements in order, as a list of pairs with positions; `has_infinite` says whether -inf may be asked for."""
        t, b, lanes = self.t, self.b, self.size.gathered
        values, places = (slice_of(b, x, 0, lanes) for x in (collected.values, collected.places))

        def close_up():
            bits = b.op(arith.bitcast, tile_type(lanes, b.i32_type), values)
            by_place, bits = t.unpacked(t.sorted(b.op(arith.negf, places, name="minus_places"), bits, "by_place"))
            closed = b.op(arith.bitcast, tile_type(lanes, b.f32_type), bits, name="values")
            return [closed, b.op(arith.negf, by_place, name="places")]

        values, places = b.if_(
            has_infinite, ["values", "places"], close_up, lambda: [values, places], types=[values.type, places.type],
            about="-inf counts: lanes without an element go behind all others.",
        )  # fmt: skip
        return t.sorted(values, t.to_i32(places, "positions"), "sorted")


class Leading:
    """Builds the search of one kernel."""

    def __init__(self, t: Ops, keys: Keys, ramp: ir.Value, size: Size):
        self.t, self.b, self.keys, self.size = t, t.b, keys, size
        self.collector = Collector(t, ramp, size)

    def pairs(self, chunks: RowChunks, number: ir.Value) -> ir.Value:
        """The first `number` elements (index, at least 1) as pairs with their positions, `size.listed` of them; what is
        behind the first `number` is unspecified."""
        t, b = self.t, self.b
        bound = bound_of(t, chunks, t.minus(number, t.one), self.size.maxima)
        reach = lambda predicate, value: lambda chunk: t.compare(predicate, chunk.x, value, "reaches")
        found = self.collector.collect(chunks, reach("UGE", bound), self.collector.empty(), "The elements that reach the bound.")

        def otherwise():
            last = self._last(chunks, number, bound)
            above = self.collector.collect(chunks, reach("UGT", last), self.collector.empty(), "The elements above the last.")
            copies = self.collector.collect(chunks, reach("OEQ", last), above, "Copies of the last, the first ones first.")
            return [*copies.parts(), last]

        *parts, last = b.if_(
            b.cmpi("ne", found.lost, t.zero), [*List.NAMES, "last"], otherwise, lambda: [*found.parts(), bound],
            types=[*found.types(), b.f32_type], about="Too many: those above the last one's value, and copies of it.",
        )  # fmt: skip
        has_infinite = b.cmpf("OEQ", last, b.f32(NEG_INF), "has_infinite")
        pairs = self.collector.sorted(List(*parts), has_infinite)
        return slice_of(b, pairs, 0, 2 * self.size.listed, "leading")

    def _last(self, chunks: RowChunks, number: ir.Value, bound: ir.Value) -> ir.Value:
        """The value of the last element asked for, which is at least `bound`."""
        t, b = self.t, self.b
        wanted = t.f32_of(number, "wanted")
        is_bound = b.cmpf("OLT", count_of(t, chunks, "UGT", bound), wanted, "is_bound")
        search = lambda: [kth_largest(t, self.keys, chunks, wanted)]
        return b.if_(is_bound, ["last"], lambda: [bound], search, types=[b.f32_type])[0]
