"""The two thresholds of the filter by search, for any k and p, by one core.

Both are the smallest value `v` of the row above which there is too little: the elements `> v` count fewer than k, or
weigh less than what the nucleus needs. The search goes from the large end:

1. *A bound.* 1024 elements, evenly spread over the row, give a value that `v` is hardly below.
2. *A list.* One pass over the row packs the elements that reach the bound into global memory, in order. If it turns out
   that `v` is below the bound after all, the pass is made again without one.
3. *Narrowing.* While the list is longer than one tile, a pivot splits it: the side without `v` is dropped; what is above
   is remembered as one number.
4. *Bisection* over what is left, which stays in the unified buffer, on order-preserving keys.

The mass of the row, which top-p refers to, comes from one pass, in units of 1024 elements. Every decision follows from the
row alone: the sample from its length, units and lists from its order. So the bits of a result do not depend on the batch, on
the number of cores or on how long the row's chunks are.

Where p is 1, only what the exponential makes 0 goes. NaN ranks above everything: it counts among the k largest, survives,
and switches top-p off, as an infinite maximum does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, math

from jascend.dialect import TILE

from ..builder import up
from .candidates import count_of
from .keys import Keys
from .ops import Ops
from .row_chunks import NEG_INF, Chunk, ListChunks, RowChunks, length_of, with_slice

UNIT = 1024  # elements: of one sum of weights, fixed by the numerics and not by the mapping
SEARCHED = 8192  # elements of the row in one go
LIST_TILE = 8192  # elements of a list in one go: fixed by the numerics too
MAX_VOCABULARY = 1 << 20

_RUNS, _RUN = 64, 16  # of the sample
_SAMPLE = _RUNS * _RUN
_LEAST = 1.0e-30  # weight
_UNDERFLOW = -87.33654  # the exponential of less is 0
_REACH = 32.0  # how far below the maximum the bound of top-p is looked for
_STEPS = 8  # halvings of that distance
_SIGMAS = 3.0
_BAND = 1.0  # above the bound, where a list that is too long is split first

Weight = Callable[[ir.Value], ir.Value]


@dataclass(frozen=True)
class _List:
    """Elements in global memory: where they start, how many they are (index)."""

    offset: ir.Value
    number: ir.Value


class ThresholdSearch:
    """The search in the rows of one kernel. The insertion point at construction is the kernel's start; `chunk` elements
    of a row are handled at a time."""

    def __init__(self, t: Ops, keys: Keys, element: ir.Type, vocabulary: int, has_k: bool):
        self.t, self.b, self.keys, self.vocabulary = t, t.b, keys, vocabulary
        b = t.b
        self.is_long = vocabulary > LIST_TILE
        self.capacity = up(vocabulary, 64)
        self.memory = t.workspace("lists_of_row", 3 * self.capacity, element, "core")
        core = b.build(TILE.classes["Core"], results=[b.index_type] * 2).operation.results[0]
        base = b.op(arith.muli, core, b.index(3 * self.capacity), name="own_lists")
        self.places = [b.op(arith.addi, base, b.index(i * self.capacity)) for i in range(3)]
        self.order = None
        if has_k and self.is_long:
            self.order = t.ramp(_SAMPLE, b.i32_type, "sample_order")

    def thresholds(self, row: RowChunks, k: ir.Value | None, p: ir.Value | None) -> tuple[ir.Value, ir.Value]:
        """The smallest value that stays, and how many of the elements equal to it go (f32)."""
        b = self.b
        sample = row.sample(_RUNS, _RUN) if self.is_long else None
        source, floor = row, None
        if k is not None:
            source, floor = self._top_k(row, sample, k)
        if p is None:
            return floor, b.f32(0.0)
        return self._top_p(source, sample, p, floor)

    # -- top-k --------------------------------------------------------------------------------------------------

    def _top_k(self, row: RowChunks, sample: ir.Value | None, k: ir.Value) -> tuple[ListChunks, ir.Value]:
        """A list that has all that top-k keeps, and the k-th largest element, -inf where top-k is off."""
        b = self.b
        enabled = b.op(arith.andi, b.cmpi("sge", k, b.i32(1)), b.cmpi("slt", k, b.i32(self.vocabulary)), name="top_k_enabled")
        wanted = b.op(arith.index_cast, b.index_type, b.select(enabled, k, b.i32(self.vocabulary)), name="wanted")
        low, lower, pivots = self._bracket(sample, k, enabled)

        def too_few(used, low, lower, number):
            return b.cmpi("slt", number, wanted, "too_few")

        def collect(used, low, lower, number):
            about = "The elements that reach the bound."
            return [low, lower, b.f32(NEG_INF), self._collect(row, "UGE", low, self.places[0], about)]

        bound, _, _, number = b.while_(
            [("bound", low), ("next_bound", low), ("then", lower), ("number", b.index(0))], too_few, collect,
            about="All elements that the k-th largest can be; with a lower bound, should the sample's be too high.",
        )  # fmt: skip
        survivors = _List(self.places[0], number)

        def kth():
            need = b.op(arith.sitofp, b.f32_type, k, name="wanted_count")
            spare = self.places[1], self.places[2]
            key, above, _ = self._smallest(survivors, spare, need, bound, pivots, None)
            value = self.keys.value(key, "kth")
            # More NaN than k: the k-th largest is one of them.
            return [b.select(b.cmpf("OLT", above, need), value, b.f32(NEG_INF), "floor")]

        (floor,) = b.if_(enabled, ["floor"], kth, lambda: [b.f32(NEG_INF)], types=[b.f32_type], about="Top-k.")
        return self._chunks(survivors), floor

    def _bracket(self, sample: ir.Value | None, k: ir.Value, enabled: ir.Value):
        """By its rank in the sample: a value that the k-th largest is hardly below, one that it is still less below, one
        that it is hardly above, and one near it."""
        b, off = self.b, (self.b.f32(NEG_INF), self.b.f32(float("inf")))
        if sample is None:
            return off[0], off[0], (off[1], off[0])
        ranked, _ = self.t.unpacked(self.t.sorted(sample, self.order, "sorted_sample"), "ranked_sample")
        rank = b.op(arith.mulf, b.op(arith.sitofp, b.f32_type, k), b.f32(_SAMPLE / self.vocabulary), name="rank")
        root = math.sqrt(b.splat(b.select(enabled, rank, b.f32(0.0)), 8), loc=b.loc("root"))
        root = self.t.extract(root, b.index(0), "deviation")

        def at(deviations: float, name: str):
            distance = b.op(arith.addf, b.op(arith.mulf, root, b.f32(deviations)), b.f32(1.0 if deviations > 0 else -1.0))
            place = b.op(arith.addf, rank, distance, name=f"{name}_rank")
            exists = b.op(arith.andi, b.cmpf("OGE", place, b.f32(0.0)), b.cmpf("OLT", place, b.f32(_SAMPLE - 1)))
            exists = b.op(arith.andi, enabled, exists, name=f"has_{name}")
            place = b.op(arith.index_cast, b.index_type, b.op(arith.fptosi, b.i32_type, place))
            value = self.t.extract(ranked, b.select(exists, place, b.index(0)), name)
            return b.select(exists, value, off[deviations < 0], name)

        return at(_SIGMAS, "bound"), at(2 * _SIGMAS, "lower_bound"), (at(-_SIGMAS, "upper_pivot"), at(0.0, "middle_pivot"))

    # -- top-p --------------------------------------------------------------------------------------------------

    def _top_p(self, source, sample, p: ir.Value, floor: ir.Value | None) -> tuple[ir.Value, ir.Value]:
        """The nucleus: its smallest value, and how many of the elements equal to it go."""
        b = self.b
        rest = b.op(arith.subf, b.f32(1.0), p, name="one_minus_p")
        reference, total = self._mass(source, sample, floor)
        cut_off = b.f32(NEG_INF) if floor is None else floor
        # With NaN or an infinity in the row, or nothing but -inf, there is no mass.
        active = b.op(arith.andi, b.cmpf("OGT", total, b.f32(0.0)), b.cmpf("OGE", rest, b.f32(0.0)), name="top_p_enabled")

        def underflow():
            bound = b.op(arith.addf, self._maximum(source), b.f32(_UNDERFLOW), name="underflow")
            return [b.select(b.cmpf("OGT", bound, cut_off), bound, cut_off, "cut"), b.f32(0.0)]

        def nucleus():
            zero_target = b.cmpf("OEQ", rest, b.f32(0.0), "keeps_all")
            return b.if_(
                zero_target, ["cut", "removed"], underflow,
                lambda: self._nucleus(source, sample, reference, total, rest, cut_off), types=[b.f32_type] * 2,
            )  # fmt: skip

        return tuple(
            b.if_(active, ["cut", "removed"], nucleus, lambda: [cut_off, b.f32(0.0)], types=[b.f32_type] * 2, about="Top-p.")
        )

    def _mass(self, source, sample: ir.Value | None, floor: ir.Value | None) -> tuple[ir.Value, ir.Value]:
        """A reference, and the sum of the weights exp(x - reference) of the survivors of top-k. The sample's maximum is
        near enough to all others, if the sum stays finite; else it is the row's."""
        b = self.b
        usable = lambda total: b.op(
            arith.andi, b.cmpf("OGT", total, b.f32(0.0)), b.cmpf("OLT", total, b.f32(float("inf"))), name="usable"
        )

        def go_on(tries, reference, total):
            fails = self.t.opposite(usable(total))
            return b.op(arith.andi, fails, b.cmpi("slt", tries, b.index(2)), name="go_on")

        def weigh(tries, reference, total):
            is_first = b.cmpi("eq", tries, b.index(0))
            (reference,) = b.if_(
                is_first, ["reference"], lambda: [reference], lambda: [self._maximum(source)], types=[b.f32_type]
            )
            return [b.op(arith.addi, tries, b.index(1)), reference, self._total(source, reference, floor)]

        nearby = b.f32(NEG_INF) if sample is None else self.t.reduced("max", sample, "sample_maximum")
        carried = [("tries", b.index(1 if sample is None else 0)), ("reference", nearby), ("total", b.f32(0.0))]
        _, reference, total = b.while_(carried, go_on, weigh, about="The mass of the row; once more with its own maximum if need be.")
        return reference, b.select(usable(total), total, b.f32(0.0), "total")

    def _total(self, source, reference: ir.Value, floor: ir.Value | None) -> ir.Value:
        b = self.b
        units = max(64, 1 << (-(-self.vocabulary // UNIT) - 1).bit_length())
        shift = b.op(arith.negf, reference, name="minus_reference")

        def body(chunk: Chunk, sums):
            x, lanes = chunk.x, length_of(chunk.x)
            if floor is not None:
                # Unordered: NaN stays, and shows in the sum.
                x = self.t.where(self.t.compare("UGE", x, floor, "survives"), x, NEG_INF, "survivors")
            weights = b.exp(b.op(arith.addf, x, b.splat(shift, lanes), name="shifted"), "weights")
            mass = self.t.reduce("add", weights, UNIT, "unit_sums")
            unit = b.op(arith.shrsi, chunk.column, b.index(UNIT.bit_length() - 1), name="unit")
            return [with_slice(b, sums, mass, unit, "sums")]

        (sums,) = source.each([("sums", b.splat(b.f32(0.0), units))], body, "Weights, summed in units of 1024.")
        return self.t.reduced("add", sums, "total")

    def _maximum(self, source) -> ir.Value:
        b = self.b

        def body(chunk: Chunk, maximum):
            largest = self.t.reduced("max", chunk.x, "chunk_maximum")
            return [b.select(b.cmpf("OGT", largest, maximum), largest, maximum, "maximum")]

        return source.each([("maximum", b.f32(NEG_INF))], body, "The maximum.")[0]

    def _nucleus(self, source, sample, reference, total, rest, floor) -> list[ir.Value]:
        b, keys = self.b, self.keys
        target = b.op(arith.mulf, rest, total, name="target")
        need = b.op(arith.subf, total, target, name="needed")
        # Something is always needed: the largest element stays.
        need = b.select(b.cmpf("OGT", need, b.f32(_LEAST)), need, b.f32(_LEAST), "needed")
        shift = b.op(arith.negf, reference, name="minus_reference")

        def weight(x):
            return b.exp(b.op(arith.addf, x, b.splat(shift, length_of(x)), name="shifted"), "weights")

        bound = floor if sample is None else self._lower_bound(sample, weight, reference, target, floor)

        def too_light(used, bound, number, mass):
            # Without a bound it cannot be: these are all that weigh.
            tried = b.cmpi("sgt", number, b.index(0))
            all_in = b.op(arith.andi, tried, b.cmpf("OLE", used, floor))
            return b.op(arith.andi, b.cmpf("OLT", mass, need), self.t.opposite(all_in), name="too_light")

        def collect(used, bound, number, mass):
            number = self._collect(source, "OGE", bound, self.places[1], "The elements that reach the bound.")
            mass = self._measure(_List(self.places[1], number), None, weight, "Their mass.")
            return [bound, floor, number, mass]

        bound, _, number, _ = b.while_(
            [("bound", bound), ("next_bound", bound), ("number", b.index(0)), ("mass", b.f32(NEG_INF))], too_light, collect,
            about="All elements that the nucleus can have; without a bound, should the sample's be too high.",
        )  # fmt: skip
        pivots = b.op(arith.addf, bound, b.f32(_BAND), name="pivot"), b.op(arith.addf, bound, b.f32(_BAND / 2), name="pivot")
        candidates = _List(self.places[1], number)
        spare = self.places[2], self.places[1]
        key, above, listed = self._smallest(candidates, spare, need, bound, pivots, weight)
        smallest = keys.value(key, "smallest")
        return [smallest, self._removed(smallest, need, above, listed, weight)]

    def _lower_bound(self, sample, weight: Weight, reference, target, floor) -> ir.Value:
        """A value that the smallest of the nucleus is hardly below: the mass below it, by the sample, stays under the target
        with some standard deviations to spare."""
        b = self.b
        survives = self.t.compare("OGE", sample, floor, "survives")
        weights = self.t.where(survives, weight(sample), 0.0, "sample_weights")
        squares = b.op(arith.mulf, weights, weights, name="sample_squares")
        share = b.op(arith.mulf, target, b.f32(_SAMPLE / self.vocabulary), name="sample_target")
        low = b.op(arith.subf, reference, b.f32(_REACH), name="lowest")

        def halve(_, low, step):
            middle = b.op(arith.addf, low, step, name="middle")
            below = self.t.compare("OLT", sample, middle, "below")
            mass = self.t.reduced("add", self.t.where(below, weights, 0.0, "weights_below"), "mass_below")
            spread = self.t.reduced("add", self.t.where(below, squares, 0.0, "squares_below"), "squares")
            left = b.op(arith.subf, share, mass, name="to_spare")
            enough = b.cmpf(
                "OGE", b.op(arith.mulf, left, left), b.op(arith.mulf, spread, b.f32(_SIGMAS * _SIGMAS)), "enough"
            )
            fits = b.op(arith.andi, b.cmpf("OGE", left, b.f32(0.0)), enough, name="fits")
            return [b.select(fits, middle, low, "low"), b.op(arith.mulf, step, b.f32(0.5), name="step")]

        low, _ = b.for_(
            b.index(0), b.index(_STEPS), b.index(1), [("low", low), ("step", b.f32(_REACH / 2))], halve,
            induction="round", about="A bound by the sample: its mass below must stay under the target.",
        )  # fmt: skip
        return b.select(b.cmpf("OGT", low, floor), low, floor, "bound")

    def _removed(self, smallest, need, above, listed: _List, weight: Weight) -> ir.Value:
        """How many of the elements equal to the smallest value go: as many of them stay as are needed, at least one."""
        b = self.b
        equal = count_of(self.t, self._chunks(listed), "OEQ", smallest, about="How many elements equal it.")
        each = self.t.extract(weight(b.splat(smallest, 8)), b.index(0), "weight")
        quotient = b.op(arith.divf, b.op(arith.subf, need, above), each, name="quotient")
        quotient = b.select(b.cmpf("OLT", quotient, equal), quotient, equal, "quotient")
        whole = b.op(arith.sitofp, b.f32_type, b.op(arith.fptosi, b.i32_type, quotient), name="whole")
        more = b.op(arith.addf, whole, b.f32(1.0))
        stay = b.select(b.cmpf("OLT", whole, quotient), more, whole, "stay")
        stay = b.select(b.cmpf("OGT", stay, b.f32(1.0)), stay, b.f32(1.0), "stay")
        return b.op(arith.subf, equal, stay, name="removed")

    # -- the search in a list -----------------------------------------------------------------------------------

    def _smallest(self, listed: _List, spare: tuple, need, bound, pivots: tuple, weight: Weight | None):
        """The key of the smallest value above which the list has less than `need`: elements, or weight.

        Args:
          spare: where shorter lists go; `listed` stays as it is unless it is one of them.
          bound: the value is not below it.
          pivots: the values that a list that is too long is split at first, where they are inside.

        Returns: the key; how much is above; and a list with all elements that have this key.
        """
        b, keys = self.b, self.keys

        def inside(key, low, high):
            is_inside = b.op(arith.andi, b.cmpi("sgt", key, low), b.cmpi("slt", key, high))
            return b.select(is_inside, key, keys.middle(low, high), "pivot")

        def too_long(offset, other, then, number, above, low, high, pivot, following):
            wide = b.cmpi("sgt", high, b.op(arith.addi, low, b.i32(1)))
            return b.op(arith.andi, b.cmpi("sgt", number, b.index(LIST_TILE)), wide, name="too_long")

        def narrow(offset, other, then, number, above, low, high, pivot, following):
            pivot = inside(pivot, low, high)
            bound = keys.value(pivot, "pivot_value")
            beyond = self._measure(_List(offset, number), bound, weight, "How much is above the pivot.")
            beyond = b.op(arith.addf, above, beyond, name="beyond")
            upper = b.cmpf("OLT", beyond, need, "is_at_most_pivot")
            source = self._chunks(_List(offset, number))

            def keep(predicate):
                return lambda: [self._collect(source, predicate, bound, other, "The side that has it.")]

            (number,) = b.if_(upper, ["number"], keep("OLE"), keep("UGT"), types=[b.index_type])
            low, high = b.select(upper, low, pivot, "low_key"), b.select(upper, pivot, high, "high_key")
            return [other, then, other, number, b.select(upper, beyond, above, "above"), low, high, following, low]

        first, second = (keys.of(pivot, "pivot") for pivot in pivots)
        other, then = spare
        low = b.op(arith.subi, keys.of(bound, "bound"), b.i32(1), name="below_all")
        carried = [
            ("list", listed.offset), ("other", other), ("then", then), ("number", listed.number), ("above", b.f32(0.0)),
            ("low_key", low), ("high_key", keys.constant(float("inf"))), ("pivot_key", first), ("next_pivot", second),
        ]  # fmt: skip
        offset, _, _, number, above, low, high, _, _ = b.while_(
            carried, too_long, narrow, about="A list longer than one tile: split at a pivot, the side that has the value is kept."
        )
        left = _List(offset, number)
        x = self._chunks(left).at(b.index(0)).x
        measured = b.splat(b.f32(1.0), LIST_TILE, "ones") if weight is None else weight(x)

        def enough_above(middle):
            bound = keys.value(middle, "bound")
            hits = self.t.where(self.t.compare("UGT", x, bound, "above_bound"), measured, 0.0, "hits")
            beyond = b.op(arith.addf, above, self.t.reduced("add", hits, "beyond"), name="beyond")
            return b.cmpf("OGE", beyond, need, "enough_above")

        # Nothing is above the largest; but NaN is.
        largest = keys.of(self.t.reduced("max", x, "largest"), "largest")
        nearer = b.op(arith.andi, b.cmpi("sgt", largest, low), b.cmpi("slt", largest, high))
        high = b.select(nearer, largest, high, "high_key")
        _, key = keys.bisect(low, high, enough_above, ("low_key", "high_key"), "The smallest value above which is too little.")
        value = keys.value(key, "found")
        above = b.op(arith.addf, above, self._measure(left, value, weight, "How much is above it."), name="above")
        return key, above, left

    # -- passes -------------------------------------------------------------------------------------------------

    def _chunks(self, listed: _List) -> ListChunks:
        return ListChunks(self.b, self.memory, listed.offset, listed.number, LIST_TILE)

    def _collect(self, source, predicate: str, bound: ir.Value, offset: ir.Value, about: str) -> ir.Value:
        """Packs what compares so with a bound into a list; how long that gets."""
        b = self.b

        def body(chunk: Chunk, number):
            mask = self.t.compare(predicate, chunk.x, bound, "reaches")
            packed, kept = self.t.compress(chunk.x if chunk.raw is None else chunk.raw, mask, "packed")
            # Where -inf is packed, so are the lanes behind the last element.
            kept = self.t.smaller(kept, chunk.count, "kept")

            def store():
                self.t.store(packed, self.memory, self.t.plus(offset, number), kept)
                return []

            b.if_(b.cmpi("sgt", kept, b.index(0)), [], store)
            return [b.op(arith.addi, number, kept, name="number")]

        return source.each([("number", b.index(0))], body, about)[0]

    def _measure(self, listed: _List, bound: ir.Value | None, weight: Weight | None, about: str) -> ir.Value:
        """How much of a list is above a bound (f32): elements, or weight."""
        b = self.b

        def body(chunk: Chunk, total):
            x = chunk.x
            measured = self.t.filled(1.0, length_of(x), "ones") if weight is None else weight(x)
            if bound is not None:
                measured = self.t.where(self.t.compare("UGT", x, bound, "above_bound"), measured, 0.0, "hits")
            return [b.op(arith.addf, total, self.t.reduced("add", measured, "chunk_total"), name="amount")]

        return self._chunks(listed).each([("amount", b.f32(0.0))], body, about)[0]
