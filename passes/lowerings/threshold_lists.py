"""Lists of elements in global memory, and the search for a threshold in one.

The value that is looked for is the smallest one above which a list has less than is needed: elements, or weight. While
the list is longer than one tile, a pivot splits it: the side without the value is dropped; what is above is remembered
as one number. What is left then stays in the unified buffer, for a bisection on order-preserving keys.

Sums of weights run over tiles of the list, so that their bits follow from the list and the pivots alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith

from ..builder import Stage
from .candidates import count_of
from .keys import Keys
from .ops import Ops
from .row_chunks import Chunk, ListChunks, RowChunks, length_of

LIST_TILE = 4096  # elements of a list in one go: fixed by the numerics

Weight = Callable[[ir.Value], ir.Value]


@dataclass(frozen=True)
class Listed:
    """Elements in global memory: where they start, how many they are (index)."""

    offset: ir.Value
    number: ir.Value


class ThresholdLists:
    """Builds passes over lists in `memory`, for one kernel."""

    def __init__(self, t: Ops, keys: Keys, memory: ir.Value):
        self.t, self.b, self.keys, self.memory = t, t.b, keys, memory

    def chunks(self, listed: Listed) -> ListChunks:
        return ListChunks(self.b, self.memory, listed.offset, listed.number, LIST_TILE)

    def collect(
        self,
        source: RowChunks | ListChunks,
        belongs: Callable[[Chunk], ir.Value],
        memory: ir.Value,
        offset: ir.Value,
        about: str,
    ) -> ir.Value:
        """Packs the elements under the mask into a list, in order; how many they are."""
        collect = lambda chunk, number: [self.append(chunk, belongs(chunk), memory, offset, number)]
        return source.each([("number", self.t.zero)], collect, about)[0]

    def append(self, chunk: Chunk, mask: ir.Value, memory: ir.Value, offset: ir.Value, number: ir.Value) -> ir.Value:
        """Packs the elements of a chunk behind `number` others; how many they are then."""
        t, b = self.t, self.b

        def store():
            t.store(packed, memory, t.plus(offset, number), kept)
            return []

        with b.part(Stage("AppendToList", "Packs the elements under a mask, behind those that a list has.")):
            packed, kept = t.compress(chunk.x if chunk.raw is None else chunk.raw, mask, "packed")
            # Where -inf is packed, so are the lanes behind the last element.
            kept = t.smaller(kept, chunk.count, "kept")
            b.if_(b.cmpi("sgt", kept, t.zero), [], store)
        return t.plus(number, kept, "number")

    def measure(self, listed: Listed, bound: ir.Value | None, weight: Weight | None, about: str) -> ir.Value:
        """How much of a list is above a bound (f32): elements, or weight."""
        t, b = self.t, self.b

        def body(chunk: Chunk, total):
            x = chunk.x
            measured = t.filled(1.0, length_of(x), "ones") if weight is None else weight(x)
            if bound is not None:
                measured = t.where(t.compare("UGT", x, bound, "above_bound"), measured, 0.0, "hits")
            return [b.op(arith.addf, total, t.reduced("add", measured, "chunk_total"), name="amount")]

        return self.chunks(listed).each([("amount", b.f32(0.0))], body, about)[0]

    def copies(self, listed: Listed, value: ir.Value, about: str) -> ir.Value:
        """How many elements of a list equal a value (f32)."""
        return count_of(self.t, self.chunks(listed), "OEQ", value, about=about)

    def smallest(
        self, listed: Listed, spare: tuple[ir.Value, ir.Value], need: ir.Value, above: ir.Value,
        ends: tuple[ir.Value, ir.Value], pivots: tuple[ir.Value, ir.Value], weight: Weight | None,
    ) -> list[ir.Value]:  # fmt: skip
        """The smallest value above which there is less than `need`; how much there is above it; if that is weight, how
        many elements of the list equal it (f32).

        Args:
          spare: where shorter lists go.
          above: how much there is above the whole list, less than `need`.
          ends: the value is not below the first one, and nothing in the list is above the second but NaN.
          pivots: the values that a list that is too long is split at first, where they are inside: one that the value
            is hardly above, then one near it.
        """
        t, b, keys = self.t, self.b, self.keys
        low = b.op(arith.subi, keys.of(ends[0], "bound"), b.i32(1), name="below_all")
        high = keys.of(ends[1], "top")
        first, second = (keys.of(pivot, "pivot") for pivot in pivots)
        carried = [
            ("list", listed.offset), ("other", spare[0]), ("then", spare[1]), ("number", listed.number), ("above",
            above),
            ("low_key", low), ("high_key", high), ("pivot_key", first), ("next_pivot", second),
        ]  # fmt: skip

        def too_long(offset, other, then, number, above, low, high, pivot, following):
            wide = b.cmpi("sgt", high, b.op(arith.addi, low, b.i32(1)))
            return t.both(b.cmpi("sgt", number, b.index(LIST_TILE)), wide, "too_long")

        def narrow(offset, other, then, number, above, low, high, pivot, following):
            is_inside = t.both(b.cmpi("sgt", pivot, low), b.cmpi("slt", pivot, high))
            pivot = b.select(is_inside, pivot, keys.middle(low, high), "pivot")
            value = keys.value(pivot, "pivot_value")
            length = number
            number, more = self._lower_side(Listed(offset, length), value, other, weight)
            beyond = b.op(arith.addf, above, more, name="beyond")
            is_lower = b.cmpf("OLT", beyond, need, "is_lower")

            def upper_side():
                mask = lambda chunk: t.compare("UGT", chunk.x, value, "is_above")
                about = Stage("PackUpperSide", "But it is on the other side.")
                return [self.collect(self.chunks(Listed(offset, length)), mask, self.memory, other, about)]

            (number,) = b.if_(is_lower, ["number"], lambda: [number], upper_side, types=[b.index_type])
            low, high = b.select(is_lower, low, pivot, "low_key"), b.select(is_lower, pivot, high, "high_key")
            return [other, then, other, number, b.select(is_lower, beyond, above, "above"), low, high, following, low]

        offset, _, _, number, above, low, high, _, _ = b.while_(
            carried,
            too_long,
            narrow,
            about=Stage(
                "NarrowList", "A list longer than one tile: split at a pivot, the side that has the value is kept."
            ),
        )
        return self._in_tile(Listed(offset, number), need, above, low, high, weight)

    def _lower_side(self, listed: Listed, pivot: ir.Value, offset: ir.Value, weight: Weight | None) -> list[ir.Value]:
        """Packs what is not above a pivot into another list; how many they are, and how much is above."""
        t, b = self.t, self.b

        def body(chunk: Chunk, number, beyond):
            above = t.compare("UGT", chunk.x, pivot, "is_above")
            hits = t.where(above, self._measured(chunk.x, weight), 0.0, "hits")
            beyond = b.op(arith.addf, beyond, t.reduced("add", hits, "chunk_hits"), name="beyond")
            mask = t.compare("OLE", chunk.x, pivot, "is_at_most")
            return [self.append(chunk, mask, self.memory, offset, number), beyond]

        carried = [("number", t.zero), ("beyond", b.f32(0.0))]
        return self.chunks(listed).each(
            carried, body, Stage("SplitAtPivot", "How much is above the pivot, and what is not.")
        )

    def _measured(self, x: ir.Value, weight: Weight | None) -> ir.Value:
        return self.t.filled(1.0, length_of(x), "ones") if weight is None else weight(x)

    def _in_tile(
        self, listed: Listed, need: ir.Value, above: ir.Value, low, high, weight: Weight | None
    ) -> list[ir.Value]:
        """The same in a list of one tile, or one all of whose elements have the key `high`."""
        t, b, keys = self.t, self.b, self.keys
        x = self.chunks(listed).at(t.zero).x
        measured = self._measured(x, weight)

        def above_of(bound):
            hits = t.where(t.compare("UGT", x, bound, "above_bound"), measured, 0.0, "hits")
            return b.op(arith.addf, above, t.reduced("add", hits, "beyond"), name="beyond")

        # Nothing is above the largest; but NaN is.
        largest = keys.of(t.reduced("max", x, "largest"), "largest")
        nearer = t.both(b.cmpi("sgt", largest, low), b.cmpi("slt", largest, high))
        high = b.select(nearer, largest, high, "high_key")
        enough = lambda middle: b.cmpf("OGE", above_of(keys.value(middle, "bound")), need, "enough_above")
        _, key = keys.bisect(
            low,
            high,
            enough,
            ("low_key", "high_key"),
            Stage("FindThreshold", "The smallest value above which is too little."),
        )
        value = keys.value(key, "found")

        names = ["above"] if weight is None else ["above", "equal"]

        def in_list():
            more = self.measure(listed, value, weight, Stage("MeasureAbove", "How much is above it."))
            found = [b.op(arith.addf, above, more, name="above")]
            return (
                found
                if weight is None
                else [*found, self.copies(listed, value, Stage("CountEqual", "How many elements equal it."))]
            )

        def in_tile():
            found = [above_of(value)]
            return found if weight is None else [*found, t.count(t.compare("OEQ", x, value, "equals"), "equal")]

        is_long = b.cmpi("sgt", listed.number, b.index(LIST_TILE), "is_long")
        return [value, *b.if_(is_long, names, in_list, in_tile, types=[b.f32_type] * len(names))]
