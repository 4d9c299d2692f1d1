"""A row in descending order, equal elements by position, batch after batch, without a sort of the row.

A batch has the elements from one value down to another: collected in one pass over the row (`leading.Collector`),
sorted in the unified buffer. Where the values to cut at lie is told by a sorted sample of the row, so a batch has about
as many elements as it is meant to have. If they are too many after all, it is halved until they fit. Many copies of one
value need no sort: they come chunk by chunk, as they are; so does NaN, which ranks above all numbers and compares with
none.

So what the first few batches do not hold costs nothing, and no part of the row goes through global memory.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith

from ..builder import Stage, tile_type
from .keys import Keys
from .leading import Collector, Size
from .ops import Ops
from .packed_row import PackedChunks
from .row_chunks import NEG_INF, RowChunks, slice_of

_MEANT_OF_CHUNK = 700  # elements of a batch in one chunk, at most: it can contribute more, but not all of them
_RUN = 16  # neighbours in the sample
_LONG = 1 << 18  # elements of a row for which the larger sample pays
_LIST_CHUNK = 2048  # elements of a list, to collect from at a time
_LEAST_BANDS = 8  # bands of a row for which it pays to pack its elements into lists


@dataclass(frozen=True)
class Batches:
    """How the elements of a row are dealt out.

    Attributes:
      length: elements of a batch, at most.
      meant: as many are expected, at most.
      ordered: numbers of elements that are sorted, the least that has room for a batch.
      band, bands: elements of a band, at least, and how many bands there are, at most.
      has_lists: batches may come from lists, so that many bands cost little.
    """

    length: int
    meant: int
    ordered: tuple[int, ...]
    band: int
    bands: int
    has_lists: bool = False


ALL = Batches(length=4096, meant=3000, ordered=(3072, 4096), band=2048, bands=32)
LISTED = dataclasses.replace(ALL, bands=64, has_lists=True)
# Where the first elements may be all that anybody wants, there are fewer in a batch.
FIRST = Batches(length=3072, meant=2100, ordered=(1536, 2048, 3072), band=1536, bands=128, has_lists=True)


class Descending:
    """Builds the batches of one kernel's rows. `ramp` is a float32 ramp at least as long as a batch, `lane` an int16
    ramp of the longest chunk's length."""

    def __init__(self, t: Ops, keys: Keys, ramp: ir.Value, lane: ir.Value, vocabulary: int, batches: Batches = ALL):
        """Rows are cut into `bands` parts of about the same length."""
        self.t, self.b, self.keys, self.vocabulary, self.batch = t, t.b, keys, vocabulary, batches.length
        self.ramp = slice_of(t.b, ramp, 0, self.batch)
        self.sampled = 1024 if vocabulary <= _LONG else 2048
        self.bands = batches.bands
        while self.bands > 1 and 4 * vocabulary < 3 * self.bands * batches.band:
            self.bands //= 2
        meant = min(batches.meant, _MEANT_OF_CHUNK * -(-vocabulary // ALL.length))
        self.step = max(1, self.sampled // (self.bands * -(-vocabulary // (self.bands * meant))))
        self.lists = batches.has_lists and self.bands >= _LEAST_BANDS
        size = Size(
            listed=self.batch, usual=0, maxima=0, sampled=0, head=1024, gathered=self.batch, ordered=batches.ordered
        )  # fmt: skip
        # What the chunks of a short row can contribute is never more than a shorter sort takes.
        size = size if self.lists else size.of_chunks(-(-vocabulary // self.batch))
        self.collector = Collector(t, ramp, lane, size)

    def each(
        self,
        chunks: RowChunks,
        sample: ir.Value,
        high: ir.Value,
        end: ir.Value,
        carried: Sequence[tuple[str, ir.Value]],
        body: Callable[..., Sequence[ir.Value]],
        wide: RowChunks | None = None,
        nans: ir.Value | None = None,
        packed: tuple[ir.Value, PackedChunks] | None = None,
    ) -> list[ir.Value]:
        """The numbers below `high`, or all if it is NaN, down to `end`. `body(values, indices, number, *carried)` gets
        a batch, of at least one element, and returns whether to go on (index, 1 or 0), then what it hands to the next
        one. Chunks are as long as a batch; `wide` are longer ones of the same row, to collect from. `nans` (i1): NaN
        come before all that; none without it. `packed`: whether a list has all elements down to `end` (i1), and the
        list, to collect from.

        Returns: whether the last batch said so, and what it handed over."""
        t, b = self.t, self.b
        names = [name for name, _ in carried]
        types = [value.type for _, value in carried]
        length = b.index(self.vocabulary)

        def goes_on(going, more, *_):
            return t.both(b.cmpi("ne", going, t.zero), b.cmpi("ne", more, t.zero))

        def batch(_, __, low, high, column, *state):
            in_run = b.cmpi("slt", column, length, "in_run")
            tile = tile_type(self.batch, b.f32_type)
            indices_type = tile_type(self.batch, b.i32_type)
            values, indices, number, lost = b.if_(
                t.opposite(in_run), ["values", "indices", "number", "lost"], lambda: self._gather(wide or chunks,
                packed, low, high),
                lambda: self._run(chunks, low, column), types=[tile, indices_type, b.index_type, b.index_type],
                about=Stage(
                    "CollectBand", "The elements from `high` down to `low`, or copies of one value, in the next chunk.",
                    "CollectRun",
                ),
            )  # fmt: skip
            fits = b.cmpi("eq", lost, t.zero, "fits")
            going, *state = b.if_(
                t.both(fits, b.cmpi("sgt", number, t.zero)), ["going", *names], lambda: list(body(values, indices,
                number, *state)),
                lambda: [t.one, *state], types=[b.index_type, *types],
            )  # fmt: skip
            low, high, column, more = self._next(sample, low, high, end, column, in_run, fits)
            return [going, more, low, high, column, *state]

        low, column = self._below(sample, high, end), length
        if nans is not None:
            low, column = b.select(nans, b.f32(float("nan")), low, "low"), b.select(nans, t.zero, length, "column")
        start = [("going", t.one), ("more", t.one), ("low", low), ("high", high), ("column", column)]
        going, _, _, _, _, *state = b.while_(
            [*start, *carried], goes_on, batch, about=Stage("SortInBatches", "Batches in descending order.")
        )
        return [going, *state]

    def sample(self, chunks: RowChunks) -> ir.Value:
        """Elements of the row, in descending order."""
        t, b = self.t, self.b
        sample = chunks.sample(self.sampled // _RUN, _RUN)
        # NaN, which is below any bound, would hold up the search for the next one.
        sample = t.where(b.cmpf("OEQ", sample, sample, "is_number"), sample, float("inf"), "sample")
        anything = b.op(arith.bitcast, tile_type(self.sampled, b.i32_type), sample)
        return t.unpacked(t.sorted(sample, anything, "sorted_sample"))[0]

    def edge(self, sample: ir.Value, band: ir.Value) -> ir.Value:
        """The value that a band begins below: NaN for the first one, which has no bound; -inf behind the last one."""
        t, b = self.t, self.b
        is_first = b.cmpi("eq", band, t.zero, "is_first_band")
        edge = self.edge_behind(sample, b.select(is_first, t.one, band, "edge_band"))
        return b.select(is_first, b.f32(float("nan")), edge, "edge")

    def edge_behind(self, sample: ir.Value, band: ir.Value) -> ir.Value:
        """The same of a band that is not the first one."""
        t, b = self.t, self.b
        place = t.minus(t.times(band, self.sampled // self.bands), t.one, "edge_rank")
        is_inside = b.cmpi("slt", band, b.index(self.bands), "is_inside")
        edge = t.extract(sample, b.select(is_inside, place, t.zero), "edge")
        edge = b.select(b.cmpf("OEQ", edge, edge), edge, b.f32(float("inf")))
        return b.select(is_inside, edge, b.f32(NEG_INF), "edge")

    def _below(self, sample: ir.Value, high: ir.Value, end: ir.Value) -> ir.Value:
        """A value that a batch's number of elements lie between and `high`; `end` if there are not as many."""
        t, b = self.t, self.b
        first = t.find_first(t.compare("ULT", sample, high, "is_below"), "first_below")
        place = t.plus(first, b.index(self.step - 1), "place")
        inside = b.cmpi("slt", place, b.index(self.sampled), "inside")
        low = t.extract(sample, b.select(inside, place, t.zero), "low")
        return b.select(t.both(inside, b.cmpf("OGT", low, end)), low, end, "low")

    def _middle(self, sample: ir.Value, low: ir.Value, high: ir.Value) -> ir.Value:
        """The element of the sample in the middle of those between; if there is none, one that is not between."""
        t, b = self.t, self.b
        first, last = (
            t.find_first(t.compare(predicate, sample, edge, "is_below"), "place")
            for predicate, edge in (("ULT", high), ("OLE", low))
        )
        place = b.op(arith.shrsi, t.plus(first, last), t.one, name="middle_place")
        return t.extract(sample, t.smaller(place, b.index(self.sampled - 1)), "middle")

    def _run(self, chunks: RowChunks, value: ir.Value, column: ir.Value) -> list[ir.Value]:
        t, b = self.t, self.b
        if self.vocabulary < chunks.chunk:
            start, number = column, t.minus(b.index(self.vocabulary), column, "count")
            x, inside = chunks.at(start, number).x, t.compare("OLT", self.ramp, t.f32_of(number), "inside")
        else:  # the last chunk is as long as the others, and begins with elements of the one before
            start = t.smaller(column, b.index(self.vocabulary - chunks.chunk), "start")
            number, whole = t.minus(column, start, "known"), b.index(chunks.chunk)
            x, inside = chunks.at(start, whole).x, t.compare("OGE", self.ramp, t.f32_of(number), "inside")
        (equal,) = b.if_(
            b.cmpf("OEQ", value, value, "is_number"), ["equals"], lambda: [t.compare("OEQ", x, value, "equals")],
            lambda: [b.cmpf("UNE", x, x, "is_nan")], types=[inside.type],
        )  # fmt: skip
        equal = t.both(equal, inside, "is_copy")
        # The lanes behind the last copy hold something. Zeros of either sign are copies of each other.
        values, places = (t.filled(0.0, chunks.chunk, name) for name in ("packed_values", "packed_places"))

        def packed():
            return [t.compress(x, equal, "packed_values")[0], *t.compress(self.ramp, equal, "packed_places")]

        values, places, number = b.if_(
            b.cmpi("sge", number, t.zero), ["packed_values", "packed_places", "number"], packed,
            lambda: [values, places, t.zero], types=[values.type, places.type, b.index_type],
        )  # fmt: skip
        places = b.op(arith.addf, places, b.splat(t.f32_of(start), chunks.chunk), name="places")
        indices = t.to_i32(places, "indices")
        return [values, indices, number, t.zero]

    def _gather(self, chunks: RowChunks, packed, low: ir.Value, high: ir.Value) -> list[ir.Value]:
        t = self.t

        def belongs(chunk):
            # Unordered: there is no bound above the first batch.
            below = t.compare("ULT", chunk.x, high, "below_high")
            if chunk.places is None and self.vocabulary % chunks.chunk and not math.isnan(chunks.padding):
                below = t.both(below, t.compare("OLT", self.ramp, t.f32_of(chunk.count), "inside"))
            return t.both(t.compare("OGE", chunk.x, low, "reaches_low"), below, "belongs")

        found = self.collector.empty()
        if packed is not None:
            is_packed, listed = packed
            listed, chunks = listed.where(is_packed, _LIST_CHUNK), chunks.unless(is_packed)
            found = self.collector.collect(
                listed, belongs, found, Stage("CollectFromList", "The elements of the batch, where a list has them.")
            )
        found = self.collector.collect(chunks, belongs, found, Stage("CollectBatch", "The elements of the batch."))
        values, indices = t.unpacked(self.collector.sorted(found.values, found.places))
        return [values, indices, found.number, found.lost]

    def _next(self, sample, low, high, end, column, in_run, fits) -> list[ir.Value]:
        """Where the following batch lies, and whether there is one (index)."""
        t, b, keys = self.t, self.b, self.keys
        length = b.index(self.vocabulary)
        after = t.plus(column, b.index(self.batch), "after")
        stays_in_run = t.both(in_run, b.cmpi("slt", after, length), "stays_in_run")
        done = t.both(fits, t.opposite(stays_in_run), "is_done")

        def onward():
            is_last = b.cmpf("OEQ", low, end, "is_last")
            following = lambda: [self._below(sample, low, end), t.one]
            below, more = b.if_(
                is_last, ["low", "more"], lambda: [low, t.zero], following, types=[b.f32_type, b.index_type]
            )
            return [below, low, length, more]

        def again():
            """The rest of a run, or half of what was too much, by the sample or else by keys; of one value only, a
            run."""
            number = b.cmpf("OEQ", high, high, "is_number")
            top = b.op(arith.addi, keys.constant(float("inf")), b.i32(1))
            top = b.select(number, keys.of(b.select(number, high, b.f32(0.0)), "high"), top, "high_key")
            bottom = keys.of(low, "low")
            single = b.cmpi("sge", b.op(arith.addi, bottom, b.i32(1)), top, "is_single")
            starts = b.select(single, t.zero, length)
            # Below the least number there is only -inf.
            above_all = b.op(arith.addi, bottom, b.i32(1))
            half = b.select(b.cmpf("OEQ", low, b.f32(NEG_INF)), above_all, keys.middle(bottom, top), "half_key")
            sampled = self._middle(sample, low, high)
            is_between = t.both(b.cmpf("OGT", sampled, low), t.opposite(b.cmpf("OGE", sampled, high)), "is_between")
            half = b.select(is_between, sampled, keys.value(half, "half"))
            half = b.select(t.either(single, in_run), low, half, "low")
            return [half, high, b.select(in_run, after, starts, "column"), t.one]

        types = [b.f32_type, b.f32_type, b.index_type, b.index_type]
        return b.if_(done, ["low", "high", "column", "more"], onward, again, types=types)
