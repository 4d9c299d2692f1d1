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

@dataclass(frozen=True)
class Measure:
    """What is added up of elements: exp(x + shift), or 1 for each where they are counted.

    Attributes:
      weighs: whether it is the weights.
      shift: minus the reference of the weights (f32).
      told: the same as `weighs` as a value, if the kernel measures otherwise elsewhere: its text has one search for
        both.
    """

    t: Ops
    weighs: bool
    shift: ir.Value
    told: ir.Value | None

    def of(self, x: ir.Value) -> ir.Value:
        b = self.t.b
        counted = lambda: [self.t.filled(1.0, length_of(x), "ones")]
        weighed = lambda: [self.weights(x)]
        if self.told is None:
            return (weighed if self.weighs else counted)()[0]
        return b.if_(self.told, ["measured"], weighed, counted, types=[x.type])[0]

    def weights(self, x: ir.Value) -> ir.Value:
        b = self.t.b
        return b.exp(b.op(arith.addf, x, self.t.splat(self.shift, x), name="shifted"), "weights")


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

    def measured_above(self, listed: Listed, bound: ir.Value, measure: Measure, about: str) -> ir.Value:
        """How much of a list is above a bound (f32)."""
        t, b = self.t, self.b

        def body(chunk: Chunk, total):
            above = t.compare("UGT", chunk.x, bound, "above_bound")
            hits = t.where(above, measure.of(chunk.x), 0.0, "hits")
            return [b.op(arith.addf, total, t.reduced("add", hits, "chunk_total"), name="amount")]

        return self.chunks(listed).each([("amount", b.f32(0.0))], body, about)[0]

    def copies(self, listed: Listed, value: ir.Value, about: str) -> ir.Value:
        """How many elements of a list equal a value (f32)."""
        return count_of(self.t, self.chunks(listed), "OEQ", value, about=about)

    def smallest(
        self, listed: Listed, spare: tuple[ir.Value, ir.Value], need: ir.Value, above: ir.Value,
        ends: tuple[ir.Value, ir.Value], pivots: tuple[ir.Value, ir.Value], measure: Measure,
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
            number, more = self._lower_side(Listed(offset, length), value, other, measure)
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
        return self._in_tile(Listed(offset, number), need, above, low, high, measure)

    def _lower_side(self, listed: Listed, pivot: ir.Value, offset: ir.Value, measure: Measure) -> list[ir.Value]:
        """Packs what is not above a pivot into another list; how many they are, and how much is above."""
        t, b = self.t, self.b

        def body(chunk: Chunk, number, beyond):
            at_most = t.compare("OLE", chunk.x, pivot, "is_at_most")
            hits = t.where(t.inverted(at_most, "is_above"), measure.of(chunk.x), 0.0, "hits")
            beyond = b.op(arith.addf, beyond, t.reduced("add", hits, "chunk_hits"), name="beyond")
            return [self.append(chunk, at_most, self.memory, offset, number), beyond]

        carried = [("number", t.zero), ("beyond", b.f32(0.0))]
        return self.chunks(listed).each(
            carried, body, Stage("SplitAtPivot", "How much is above the pivot, and what is not.")
        )

    def _in_tile(
        self, listed: Listed, need: ir.Value, above: ir.Value, low, high, measure: Measure
    ) -> list[ir.Value]:
        """The same in a list of one tile, or one all of whose elements have the key `high`."""
        t, b, keys = self.t, self.b, self.keys
        with b.stage(Stage("SearchTile", "In what is left, which is one tile, or all of one value.")):
            x = self.chunks(listed).at(t.zero).x
            measured = measure.of(x)

            def above_of(bound):
                hits = t.where(t.compare("UGT", x, bound, "above_bound"), measured, 0.0, "hits")
                return b.op(arith.addf, above, t.reduced("add", hits, "beyond"), name="beyond")

            # Nothing is above the largest; but NaN is.
            largest = keys.of(t.reduced("max", x, "largest"), "largest")
            nearer = t.both(b.cmpi("sgt", largest, low), b.cmpi("slt", largest, high))
            high = b.select(nearer, largest, high, "high_key")
            enough = lambda middle: b.cmpf("OGE", above_of(keys.value(middle, "bound")), need, "enough_above")
            about = Stage("FindThreshold", "The smallest value above which is too little.")
            _, key = keys.bisect(low, high, enough, ("low_key", "high_key"), about)
            value = keys.value(key, "found")
            is_long = b.cmpi("sgt", listed.number, b.index(LIST_TILE), "is_long")

            def above_in_list():
                more = self.measured_above(listed, value, measure, Stage("MeasureAbove", "How much is above it."))
                return [b.op(arith.addf, above, more, name="above")]

            in_tile = lambda: [above_of(value)]
            (all_above,) = b.if_(is_long, ["above"], above_in_list, in_tile, types=[b.f32_type])
        if not measure.weighs:
            return [value, all_above]
        copies = lambda: [self.copies(listed, value, Stage("CountEqual", "How many elements equal it."))]
        equal = lambda: [t.count(t.compare("OEQ", x, value, "equals"), "equal")]
        is_long = b.cmpi("sgt", listed.number, b.index(LIST_TILE), "is_long")
        return [value, all_above, *b.if_(is_long, ["equal"], copies, equal, types=[b.f32_type])]
