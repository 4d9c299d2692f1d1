"""The nucleus of a row that only top-p cuts: its elements in descending order, as far as they reach p.

The row is cut into bands of values, at fixed ranks of a sorted sample. A band begins with the number and the mass of what is
above it, from one pass over the row, and goes on in batches (`descending.py`). So bands are independent of each other, and
cores that share a row share its bands; one that begins beyond p is not looked at. The bits of a sum follow from the row and
its length alone, whoever adds it up. p is reached in a band only if the next one begins beyond it: the mass that it begins with
and the running sum up to there are rounded differently, and a row must end in one place.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith

from .descending import Descending
from .ops import Ops
from .row_chunks import NEG_INF, Chunk, RowChunks, slice_of
from .sample_probabilities import Probabilities
from .sample_results import Choice, Results

_PIECE = 1024  # elements of one running sum
# More than what rounding parts the running sum of a row of 2^20 elements and the mass above an edge by: at most 2048 batches and
# 1024 pieces more of the one, 256 chunks of the other, and the depth of trees, of 2^-24 each.
_ROUNDING = 2.0**-12


@dataclass(frozen=True)
class Survivors:
    """What is known of a row's survivors. Numbers are f32, but `chosen` is i32.

    Attributes:
      best, chosen: the greatest score, and the index it is at.
      best_band: the band of that one.
      last_band: the last band with survivors.
      last, place: value and position of the last survivor.
      number: how many survivors there are down to there.
    """

    best: ir.Value
    chosen: ir.Value
    best_band: ir.Value
    last_band: ir.Value
    last: ir.Value
    place: ir.Value
    number: ir.Value

    NAMES = ("best", "chosen", "best_band", "last_band", "last", "place", "number")

    def parts(self) -> list[ir.Value]:
        return [getattr(self, name) for name in self.NAMES]


@dataclass(frozen=True)
class Band:
    """A band of values: its number (f32), the value it goes down to (f32), and whether it is the last one (i1)."""

    number: ir.Value
    low: ir.Value
    is_last: ir.Value


class Nucleus:
    """Builds the search in the rows of one kernel. `ramp` is a float32 ramp of a chunk's length."""

    def __init__(self, t: Ops, descending: Descending, probabilities: Probabilities, results: Results, ramp: ir.Value):
        self.t, self.b, self.ramp = t, t.b, ramp
        self.descending, self.probabilities, self.results = descending, probabilities, results

    def survivors(self, row, chunks: RowChunks, wide: RowChunks, part: ir.Value, parts: int) -> Survivors:
        """The survivors in the bands `part`, `part + parts`, ... of a row; its `p`, `m`, `use_m` and `first_only`
        count. `wide` are longer chunks of the same row, with NaN behind it."""
        t, b = self.t, self.b
        maximum, mass = self.probabilities.mass()
        of_row = (maximum, mass, self.probabilities.least(row.m, maximum, mass))
        sample = self.descending.sample(chunks)

        def goes_on(going, band, *_):
            return t.both(b.cmpi("ne", going, t.zero), b.cmpi("slt", band, b.index(self.descending.bands)))

        def one_band(_, band, *found):
            going, *found = self._band(row, chunks, wide, sample, band, of_row, Survivors(*found))
            return [going, t.plus(band, b.index(parts), "band"), *found]

        vocabulary = b.f32(float(self.descending.vocabulary))
        nothing = [b.f32(NEG_INF), b.i32(0), b.f32(0.0), b.f32(-1.0), b.f32(NEG_INF), vocabulary, b.f32(0.0)]
        carried = [("going", t.one), ("band", part), *zip(Survivors.NAMES, nothing)]
        _, _, *found = b.while_(carried, goes_on, one_band, about="Bands of values, from the greatest down.")
        return Survivors(*found)

    def _band(self, row, chunks: RowChunks, wide: RowChunks, sample, band, of_row, found: Survivors) -> list[ir.Value]:
        """Whether later bands matter (index), and what is known after this one."""
        t, b = self.t, self.b
        high, low = self.descending.edge(sample, band), self.descending.edge(sample, t.plus(band, t.one))
        some = t.opposite(b.cmpf("OGE", low, high), "has_elements")
        is_first = b.cmpi("eq", band, t.zero, "is_first")
        rank, before = b.if_(
            is_first, ["rank", "before"], lambda: [t.zero, b.f32(0.0)], lambda: self._above(chunks, high, of_row),
            types=[b.index_type, b.f32_type], about="How much is above the band.",
        )  # fmt: skip
        beyond = b.cmpf("OGE", before, row.p, "is_beyond")
        this = Band(t.f32_of(band), low, b.cmpi("eq", band, b.index(self.descending.bands - 1), "is_last_band"))

        def batch(values, indices, count, rank, before, *found):
            return self._batch(row, chunks, values, indices, count, rank, before, Survivors(*found), this, of_row)

        nans = t.both(is_first, self.probabilities.may_have_nans(*of_row[:2]), "has_nans")

        def within():
            carried = [("rank", rank), ("before", before), *zip(Survivors.NAMES, found.parts())]
            going, _, _, *after = self.descending.each(chunks, sample, high, low, carried, batch, wide, nans)
            return [going, *after]

        types = [b.index_type, *(part.type for part in found.parts())]

        def not_beyond():
            return b.if_(some, ["going", *Survivors.NAMES], within, lambda: [t.one, *found.parts()], types=types)

        return b.if_(beyond, ["going", *Survivors.NAMES], lambda: [t.zero, *found.parts()], not_beyond, types=types)

    def _above(self, chunks: RowChunks, edge: ir.Value, of_row) -> list[ir.Value]:
        """The number (index) and the mass of what reaches an edge; NaN does."""
        t, b = self.t, self.b
        lanes = chunks.chunk
        ones = t.filled(1.0, lanes, "ones")

        def body(chunk: Chunk, numbers, masses):
            reaches = t.compare("UGE", chunk.x, edge, "reaches")
            masses = b.op(arith.addf, masses, self._reaching(chunk, reaches, of_row), name="masses")
            return [b.op(arith.addf, numbers, t.where(reaches, ones, 0.0, "reaching_ones"), name="numbers"), masses]

        carried = [(name, t.filled(0.0, lanes, name)) for name in ("numbers", "masses")]
        numbers, masses = chunks.each(carried, body, "What is above, by position mod 4096.")
        return [t.index_of(t.reduced("add", numbers, "number_above"), "rank"), self._share(masses, of_row)]

    def _mass_above(self, chunks: RowChunks, edge: ir.Value, of_row) -> ir.Value:
        """The mass alone, the same bits."""
        t, b = self.t, self.b

        def body(chunk: Chunk, masses):
            reaches = t.compare("UGE", chunk.x, edge, "reaches")
            return [b.op(arith.addf, masses, self._reaching(chunk, reaches, of_row), name="masses")]

        (masses,) = chunks.each([("masses", t.filled(0.0, chunks.chunk, "masses"))], body, "The mass above.")
        return self._share(masses, of_row)

    def _reaching(self, chunk: Chunk, reaches: ir.Value, of_row) -> ir.Value:
        weights = self.probabilities.weights(chunk.x, of_row[0]) if self.probabilities.is_logits else chunk.x
        return self.t.where(reaches, weights, 0.0, "reaching")

    def _share(self, masses: ir.Value, of_row) -> ir.Value:
        """Of the mass of the row."""
        mass = self.t.reduced("add", masses, "mass_above")
        return self.b.op(arith.divf, mass, of_row[1], name="before") if self.probabilities.is_logits else mass

    def _batch(
        self, row, chunks: RowChunks, values, indices, count, rank, before, found: Survivors, band: Band, of_row
    ) -> list[ir.Value]:
        t, b = self.t, self.b

        def goes_on(going, start, *_):
            return t.both(b.cmpi("ne", going, t.zero), b.cmpi("slt", start, count))

        def piece(_, start, rank, before, *found):
            some = t.smaller(t.minus(count, start), b.index(_PIECE), "some")
            part = [slice_of(b, x, start, _PIECE) for x in (values, indices)]
            going, *state = self._piece(row, chunks, *part, some, rank, before, Survivors(*found), band, of_row)
            return [going, t.plus(start, b.index(_PIECE), "start"), *state]

        carried = [("going", t.one), ("start", t.zero), ("rank", rank), ("before", before)]
        carried += zip(Survivors.NAMES, found.parts())
        going, _, *state = b.while_(carried, goes_on, piece, about="Running sums, by 1024 elements.")
        return [going, *state]

    def _piece(
        self, row, chunks: RowChunks, values, indices, count, rank, before, found: Survivors, band: Band, of_row
    ) -> list[ir.Value]:
        """The next elements in descending order: whether to go on (index), the rank after them, the sum up to there, and
        what is known by now."""
        t, b = self.t, self.b
        maximum, mass, bound = of_row
        probability = self.probabilities.of(values, maximum, mass)
        inside = t.compare("OLT", slice_of(b, self.ramp, 0, _PIECE), t.f32_of(count), "inside")
        probability = t.where(inside, probability, 0.0, "probability")
        sums = t.running_sums(probability, "running_sums")
        sums = b.op(arith.addf, sums, b.splat(before, _PIECE), name="sums")
        reached = t.find_first(t.compare("OGE", sums, row.p, "reaches_p"), "crossing")
        before = t.extract(sums, b.index(_PIECE - 1), "before")
        reached = self._confirmed(row, chunks, reached, count, before, band, of_row)
        going = b.cmpi("sge", reached, count, "short_of_p")
        kept = t.smaller(count, t.plus(reached, t.one), "kept")
        if bound is not None:
            below = t.find_first(t.compare("OLT", probability, bound, "is_below"), "first_below")
            least = b.select(b.cmpi("eq", rank, t.zero), t.one, t.zero)
            below = b.select(row.use_m, t.larger(below, least), count)
            below = b.select(row.first_only, least, below, "kept_by_min_p")
            going = t.both(going, b.cmpi("sge", below, count), "goes_on")
            kept = t.smaller(kept, below, "kept")
        end = t.plus(rank, kept, "rank")

        def take():
            choice = self.results.take(probability, indices, kept, rank, Choice(found.best, found.chosen))
            better = b.cmpf("OGT", choice.best, found.best, "is_better")
            of_best = b.select(better, band.number, found.best_band, "best_band")
            final = t.minus(kept, t.one)
            place = b.op(arith.sitofp, b.f32_type, t.extract(indices, final, "last_index"), name="place")
            return [*choice.parts(), of_best, band.number, t.extract(values, final, "last"), place, t.f32_of(end)]

        types = [part.type for part in found.parts()]
        after = b.if_(b.cmpi("sgt", kept, t.zero), Survivors.NAMES, take, found.parts, types=types)
        return [b.select(going, t.one, t.zero), end, before, *after]

    def _confirmed(self, row, chunks: RowChunks, reached, count, end, band: Band, of_row) -> ir.Value:
        """The position at which running sums reach p; one behind them if the next band begins short of p. `end` is the last
        sum: where it exceeds p by more than rounding, the next band does."""
        t, b = self.t, self.b
        crosses = t.both(b.cmpi("slt", reached, count), t.opposite(band.is_last), "crosses")
        margin = b.op(arith.addf, row.p, b.f32(_ROUNDING), name="p_and_rounding")
        is_close = t.both(crosses, b.cmpf("OLT", end, margin), "is_close")

        def compared():
            mass = self._mass_above(chunks, band.low, of_row)
            return [b.select(b.cmpf("OGE", mass, row.p), reached, b.index(_PIECE))]

        about = "Close to the end of the nucleus: is it in this band?"
        return b.if_(is_close, ["crossing"], compared, lambda: [reached], types=[b.index_type], about=about)[0]
