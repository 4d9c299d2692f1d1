"""Elements of a row between two values, with their positions, in global memory: where they are few, passes over them
are short.

They lie one behind the other in order of position, so what is collected from them is in the order in which it would be
collected from the row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith

from jascend.dialect import TILE

from ..builder import Stage
from .leading import NOWHERE, Collector, Size
from .ops import Ops
from .row_chunks import NEG_INF, Chunk, RowChunks

_PIECE = 1024  # elements to write at a time
_MOST = 1 << 16  # elements of a list
_SHARE = 6  # of the row: of a larger share, passes over the row are no longer


class PackedRow:
    """Builds the list of one kernel's rows; the insertion point at construction is the kernel's start. `ramp` and
    `lane` are those of a `Collector`."""

    def __init__(self, t: Ops, ramp: ir.Value, lane: ir.Value, vocabulary: int):
        self.t, self.b = t, t.b
        self.capacity = min(vocabulary // _SHARE & -8, _MOST)
        size = Size(listed=0, usual=0, maxima=0, sampled=0, head=_PIECE, gathered=_PIECE, ordered=(_PIECE,))
        self.collector = Collector(t, ramp, lane, size)
        self.values = t.workspace("packed_values", self.capacity + 8, t.b.f32_type, "core")
        self.places = t.workspace("packed_places", self.capacity + 8, t.b.f32_type, "core")
        core = t.b.build(TILE.classes["Core"], results=[t.b.index_type] * 2).operation.results[0]
        self.start = t.b.op(arith.muli, core, t.b.index(self.capacity + 8), name="own_list")

    def pack(self, chunks: RowChunks, low: ir.Value, high: ir.Value, about: str) -> tuple[ir.Value, ir.Value]:
        """Packs the numbers from `low` on that are below `high`, or all of those if it is NaN: how many they are, and
        whether the list has them all (i1)."""
        t, b = self.t, self.b
        piece = b.index(_PIECE)
        has_end = b.cmpf("OEQ", high, high, "has_end")

        def body(chunk: Chunk, _, __, number, lost):
            mask = t.compare("OGE", chunk.x, low, "reaches")
            below = lambda: [t.both(mask, t.compare("ULT", chunk.x, high, "is_below"), "is_between")]
            (mask,) = b.if_(has_end, ["is_packed"], below, lambda: [mask], types=[mask.type])
            packed, packed_lanes, kept = self.collector.packed(chunk, mask, chunks.is_one or None)
            end = t.plus(number, kept, "number")
            fits = b.cmpi("sle", end, b.index(self.capacity), "fits")

            kept = b.select(fits, kept, t.zero, "kept")

            def store(start, count):
                values, places = self.collector.converted(chunk, packed, packed_lanes, start, _PIECE)
                at = t.plus(self.start, t.plus(number, start), "list_offset")
                t.store(values, self.values, at, count)
                t.store(places, self.places, at, count)
                return []

            # Always, and at least one: so that nothing waits for the copies here. The next chunk overwrites what is too
            # much.
            store(t.zero, t.larger(t.smaller(kept, piece), t.one, "count"))
            rest = lambda start: store(start, t.smaller(t.minus(kept, start), piece, "rest"))
            loop = lambda: b.for_(piece, kept, piece, [], rest, induction="start") or []
            b.if_(b.cmpi("sgt", kept, piece), [], loop, about=Stage("StoreRest", "What is more than usual."))
            return [packed, packed_lanes, t.plus(number, kept, "number"), b.select(fits, lost, t.one, "lost")]

        carried = [*self.collector.blanks(chunks), ("number", t.zero), ("lost", t.zero)]
        _, _, number, lost = chunks.each(carried, body, about)
        return number, b.cmpi("eq", lost, t.zero, "has_all")


@dataclass(frozen=True)
class PackedChunks:
    """The first `number` elements of a list, in chunks with positions; -inf and `NOWHERE` behind them."""

    packed: PackedRow
    number: ir.Value
    chunk: int

    is_one = False
    has_places = True

    def where(self, wanted: ir.Value, chunk: int) -> PackedChunks:
        """The list, or nothing of it (i1), in chunks of another length."""
        t = self.packed.t
        return PackedChunks(self.packed, t.b.select(wanted, self.number, t.zero, "listed"), chunk)

    def each(
        self, carried: Sequence[tuple[str, ir.Value]], body: Callable[..., Sequence[ir.Value]], about: str
    ) -> list[ir.Value]:
        """As of a row."""
        t, b, packed = self.packed.t, self.packed.b, self.packed
        size = b.index(self.chunk, "chunk")

        def one(place, *values):
            count = t.smaller(t.minus(self.number, place), size, "count")
            at = t.plus(packed.start, place, "list_offset")
            x = t.load(packed.values, at, count, self.chunk, "x", NEG_INF)
            places = t.load(packed.places, at, count, self.chunk, "places", NOWHERE)
            return body(Chunk(x, None, place, count, places), *values)

        return b.for_(t.zero, self.number, size, carried, one, induction="place", about=about)
