"""The nucleus of a row that only top-p cuts: its elements in descending order, as far as they reach p.

The row is cut into bands of values, at fixed ranks of a sorted sample. A band begins with the number and the mass of what is
above it, from one pass over the row, and goes on in batches (`descending.py`). So bands are independent of each other, and
cores that share a row share its bands; one that begins beyond p is not looked at. The bits of a sum follow from the row and
its length alone, whoever adds it up. p is reached in a band only if the next one begins beyond it: the mass that it begins with
and the running sum up to there are rounded differently, and a row must end in one place.

In a long row the sample also tells which bands hold the nucleus in all likelihood. Where their elements are few, one pass packs
them into a list (`packed_row.py`), and the passes for these bands go over that. What is beyond them is found in the row. Where
only an index is asked for, a band that cannot have it is passed over (`sample_race.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith

from .descending import Descending
from .ops import Ops
from .packed_row import PackedChunks, PackedRow
from .row_chunks import NEG_INF, Chunk, RowChunks, length_of, slice_of
from .sample_probabilities import Mass, Probabilities
from .sample_race import Race
from .sample_results import Choice, Results

_PIECE = 1024  # elements of one running sum
_GROUPS = 64  # of the sample's elements, of which bands are whole numbers
_LISTED = 4096  # of a list, to measure at a time
_REST = 0.85  # of the mass that p leaves out: so much is taken to be below the bands that hold the nucleus
_SLACK = 1.25  # elements of a band, to the mean, with which a list is expected to be full
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
    """A band of values: its number (index), the value it goes down to (f32), and whether it is the last one (i1)."""

    number: ir.Value
    low: ir.Value
    is_last: ir.Value


@dataclass(frozen=True)
class OfRow:
    """The mass of a row, and the least probability that min-p leaves (f32), if the operator has min-p."""

    mass: Mass
    bound: ir.Value | None


@dataclass(frozen=True)
class Ahead:
    """What is known of a row beforehand.

    Attributes:
      bands: how many of them hold the nucleus in all likelihood (index).
      is_listed: whether all their elements are in a list (i1).
      listed: the list.
      ends_in_first: whether it has been found that the nucleus ends in the first band (i1).
      most: how many bands hold the nucleus for certain (index).
    """

    bands: ir.Value
    is_listed: ir.Value
    listed: PackedChunks
    ends_in_first: ir.Value
    most: ir.Value


class Nucleus:
    """Builds the search in the rows of one kernel. `ramp` is a float32 ramp of a chunk's length."""

    def __init__(self, t: Ops, descending: Descending, probabilities: Probabilities, results: Results, ramp: ir.Value):
        self.t, self.b, self.ramp = t, t.b, ramp
        self.descending, self.probabilities, self.results = descending, probabilities, results
        self.packed = self.race = None
        if descending.lists:
            self.packed = PackedRow(t, ramp, descending.collector.lane, descending.vocabulary)
            self.race = Race(t, probabilities, results) if results.is_index_alone else None

    def survivors(self, row, chunks: RowChunks, wide: RowChunks, part: ir.Value, parts: int) -> Survivors:
        """The survivors in the bands `part`, `part + parts`, ... of a row; its `p`, `m`, `use_m` and `first_only`
        count. `wide` are longer chunks of the same row, with NaN behind it."""
        t, b = self.t, self.b
        sample = self.descending.sample(chunks)
        mass = self.probabilities.mass(lambda: t.extract(sample, t.zero, "near"))
        of_row = OfRow(mass, None if row.m is None else self.probabilities.least(row.m, mass))
        ahead = self._ahead(row.p, of_row, sample, wide) if self.packed else None
        most = b.index(self.descending.bands) if ahead is None else ahead.most

        def goes_on(going, band, *_):
            return t.both(b.cmpi("ne", going, t.zero), b.cmpi("slt", band, most))

        def one_band(_, band, *found):
            going, *found = self._band(row, chunks, wide, ahead, sample, band, of_row, Survivors(*found))
            return [going, t.plus(band, b.index(parts), "band"), *found]

        vocabulary = b.f32(float(self.descending.vocabulary))
        nothing = [b.f32(NEG_INF), b.i32(0), b.f32(0.0), b.f32(-1.0), b.f32(NEG_INF), vocabulary, b.f32(0.0)]
        carried = [("going", t.one), ("band", part), *zip(Survivors.NAMES, nothing)]
        _, _, *found = b.while_(carried, goes_on, one_band, about="Bands of values, from the greatest down.")
        return Survivors(*found)

    def _ahead(self, p: ir.Value, of_row, sample: ir.Value, wide: RowChunks) -> Ahead:
        """Where the nucleus ends in all likelihood. Bits do not depend on whether that is so: what is said of a band or an edge
        comes from the list or from the row, as its number says."""
        t, b, descending = self.t, self.b, self.descending
        mass = of_row.mass
        weights = self.probabilities.weights(sample, mass.reference) if self.probabilities.is_logits else sample
        sums = t.running_sums(t.reduce("add", weights, descending.sampled // _GROUPS, "group_masses"), "mass_down_to_group")
        share = b.f32(_REST * descending.sampled / descending.vocabulary)
        rest = b.op(arith.mulf, b.op(arith.mulf, b.op(arith.subf, b.f32(1.0), p), mass.total), share, name="rest")
        enough = b.op(arith.subf, t.extract(sums, b.index(_GROUPS - 1), "sample_mass"), rest, name="enough")
        last = t.find_first(t.compare("OGE", sums, enough, "is_enough"), "last_group")
        last = t.unit_of(last, _GROUPS // descending.bands)
        bands = t.smaller(t.plus(last, t.one), b.index(descending.bands), "bands_of_nucleus")
        edge = descending.edge(sample, bands)
        few = int(self.packed.capacity * descending.bands / (_SLACK * descending.vocabulary))
        lists = t.both(b.cmpi("sle", bands, b.index(few)), b.cmpf("OGT", edge, b.f32(NEG_INF)))
        # NaN is no number that reaches an edge.
        lists = t.both(lists, t.opposite(self.probabilities.may_have_nans(mass)), "is_to_be_listed")

        def pack():
            number, has_all = self.packed.pack(wide, edge, "The elements of these bands.")
            last = t.larger(t.minus(bands, t.one), t.one, "last_band")
            edges = [descending.edge(sample, band) for band in (t.one, last)]
            masses = self._masses_above(PackedChunks(self.packed, number, _LISTED), [*edges, edge], of_row)
            first, before_last, all_of_it = (b.cmpf("OGE", mass, p) for mass in masses)
            most = b.select(before_last, last, b.select(all_of_it, bands, all_bands))
            flags = (b.select(flag, t.one, t.zero) for flag in (has_all, first))
            return [number, *flags, b.select(has_all, most, all_bands)]

        all_bands = b.index(descending.bands)
        number, is_listed, is_first, most = b.if_(
            lists, ["listed", "is_listed", "is_in_first", "most_bands"], pack, lambda: [t.zero, t.zero, t.zero, all_bands],
            types=[b.index_type] * 4, about="The bands that hold the nucleus in all likelihood.",
        )  # fmt: skip
        listed = PackedChunks(self.packed, number, _LISTED)
        return Ahead(bands, b.cmpi("ne", is_listed, t.zero), listed, b.cmpi("ne", is_first, t.zero), most)

    def _of(self, edge: ir.Value, ahead: Ahead | None, chunks: RowChunks, build, names, about: str | None = None) -> list[ir.Value]:
        """`build(chunks)`, whose results are numbers, of the elements that reach the edge in front of a band: of the list where
        they are in it, else of the row."""
        if ahead is None:
            return build(chunks)
        b = self.b
        types = [self.b.index_type if name.endswith("rank") else b.f32_type for name in names]
        is_listed = self.t.both(ahead.is_listed, b.cmpi("sle", edge, ahead.bands), "is_in_list")
        return b.if_(is_listed, names, lambda: build(ahead.listed), lambda: build(chunks), types=types, about=about)

    def _band(
        self, row, chunks: RowChunks, wide: RowChunks, ahead: Ahead | None, sample, band, of_row, found: Survivors
    ) -> list[ir.Value]:
        """Whether later bands matter (index), and what is known after this one."""
        t, b = self.t, self.b
        following = t.plus(band, t.one)
        high, low = self.descending.edge(sample, band), self.descending.edge(sample, following)
        some = t.opposite(b.cmpf("OGE", low, high), "has_elements")
        types = [b.index_type, *(part.type for part in found.parts())]

        def looked_at():
            return self._look_at(row, chunks, wide, ahead, sample, band, (high, low, some), of_row, found)

        if self.race is None:
            return looked_at()

        def can_win(first, last):
            return self.race.can_win(first, last, high, of_row.mass, found.best)

        def rest_can_win():
            return [can_win(t.index_of(found.number), ahead.listed.number)]

        def band_can_win():
            count = lambda source: self.race.ranks(source, high, low)
            ranks = self._of(following, ahead, chunks, count, ("first_rank", "last_rank"), "Its ranks.")
            return [can_win(*ranks)]

        def can_one_win():
            is_all_listed = t.both(ahead.is_listed, b.cmpi("sle", ahead.most, ahead.bands), "is_all_listed")
            (rest,) = b.if_(
                is_all_listed, ["rest_can_win"], rest_can_win, lambda: [t.one], types=[b.index_type],
                about="Can this band or a later one have the best score?",
            )  # fmt: skip
            (this,) = b.if_(
                b.cmpi("ne", rest, t.zero), ["can_win"], band_can_win, lambda: [t.zero], types=[b.index_type], about="Can this one?"
            )
            return [rest, this]

        has_rival = t.both(t.both(some, b.cmpi("slt", band, ahead.bands)), b.cmpf("OGT", found.best, b.f32(NEG_INF)), "has_rival")
        going, can_win_here = b.if_(
            has_rival, ["going", "can_win"], can_one_win, lambda: [t.one, t.one], types=[b.index_type] * 2
        )
        passed_over = lambda: [going, *found.parts()]
        return b.if_(b.cmpi("ne", can_win_here, t.zero), ["going", *Survivors.NAMES], looked_at, passed_over, types=types)

    def _look_at(
        self, row, chunks: RowChunks, wide: RowChunks, ahead: Ahead | None, sample, band, edges, of_row, found: Survivors
    ) -> list[ir.Value]:
        t, b = self.t, self.b
        high, low, some = edges
        is_first = b.cmpi("eq", band, t.zero, "is_first")

        def above():
            return self._of(band, ahead, chunks, lambda source: self._above(source, high, of_row), ("rank", "before"))

        rank, before = b.if_(
            is_first, ["rank", "before"], lambda: [t.zero, b.f32(0.0)], above, types=[b.index_type, b.f32_type],
            about="How much is above the band.",
        )  # fmt: skip
        beyond = b.cmpf("OGE", before, row.p, "is_beyond")
        this = Band(band, low, b.cmpi("eq", band, b.index(self.descending.bands - 1), "is_last_band"))
        nans = t.both(is_first, self.probabilities.may_have_nans(of_row.mass), "has_nans")
        types = [b.index_type, *(part.type for part in found.parts())]
        packed = None
        if ahead is not None:
            packed = t.both(ahead.is_listed, b.cmpi("slt", band, ahead.bands), "is_listed_band"), ahead.listed

        def within():
            names, batch_types = ["going", "rank", "before", *Survivors.NAMES], [types[0], rank.type, before.type, *types[1:]]
            inside = None if self.race is None else self._is_inside(row, ahead, packed, is_first, low, of_row)

            def batch(values, indices, count, rank, before, *found):
                some = (values, indices, count, rank, before, Survivors(*found), this, of_row)
                pieces = lambda: self._batch(row, chunks, ahead, *some)
                return pieces() if inside is None else b.if_(inside, names, lambda: self._all(row, *some), pieces, types=batch_types)

            carried = [("rank", rank), ("before", before), *zip(Survivors.NAMES, found.parts())]
            going, _, _, *after = self.descending.each(chunks, sample, high, low, carried, batch, wide, nans, packed)
            return [going, *after]

        def not_beyond():
            return b.if_(some, ["going", *Survivors.NAMES], within, lambda: [t.one, *found.parts()], types=types)

        return b.if_(beyond, ["going", *Survivors.NAMES], lambda: [t.zero, *found.parts()], not_beyond, types=types)

    def _is_inside(self, row, ahead: Ahead, packed, is_first: ir.Value, low: ir.Value, of_row) -> ir.Value:
        """Whether all of a band in a list is in the nucleus, as the next one begins short of p (i1). In the row, that would take
        more than the running sums that it spares."""
        t, b = self.t, self.b
        is_listed, listed = packed

        def measured():
            (mass,) = self._masses_above(listed, [low], of_row)
            return [b.select(b.cmpf("OLT", mass, row.p), t.one, t.zero)]

        def known():
            first = lambda: [b.select(ahead.ends_in_first, t.zero, t.one)]
            return b.if_(is_first, ["is_inside"], first, measured, types=[b.index_type])

        (inside,) = b.if_(is_listed, ["is_inside"], known, lambda: [t.zero], types=[b.index_type], about="Is all of it inside?")
        return b.cmpi("ne", inside, t.zero)

    def _above(self, chunks, edge: ir.Value, of_row) -> list[ir.Value]:
        """The number (index) and the mass of what reaches an edge; NaN does."""
        t, b = self.t, self.b
        lanes = chunks.chunk
        ones = t.filled(1.0, lanes, "ones")

        def body(chunk: Chunk, numbers, masses):
            reaches = t.compare("UGE", chunk.x, edge, "reaches")
            weights = t.where(reaches, self._weights(chunk, of_row), 0.0, "reaching")
            numbers = b.op(arith.addf, numbers, t.where(reaches, ones, 0.0, "reaching_ones"), name="numbers")
            return [numbers, b.op(arith.addf, masses, weights, name="masses")]

        carried = [(name, t.filled(0.0, lanes, name)) for name in ("numbers", "masses")]
        numbers, masses = chunks.each(carried, body, "What is above.")
        return [t.index_of(t.reduced("add", numbers, "number_above"), "rank"), self._share(masses, of_row)]

    def _masses_above(self, chunks, edges: Sequence[ir.Value], of_row) -> list[ir.Value]:
        """The masses alone, the same bits."""
        t = self.t

        def body(chunk: Chunk, *masses):
            weights = self._weights(chunk, of_row)
            return [self._added(chunk, weights, edge, so_far) for edge, so_far in zip(edges, masses)]

        carried = [("masses", t.filled(0.0, chunks.chunk, "masses")) for _ in edges]
        return [self._share(masses, of_row) for masses in chunks.each(carried, body, "The mass above.")]

    def _added(self, chunk: Chunk, weights: ir.Value, edge: ir.Value, so_far: ir.Value) -> ir.Value:
        reaching = self.t.where(self.t.compare("UGE", chunk.x, edge, "reaches"), weights, 0.0, "reaching")
        return self.b.op(arith.addf, so_far, reaching, name="masses")

    def _weights(self, chunk: Chunk, of_row) -> ir.Value:
        return self.probabilities.weights(chunk.x, of_row.mass.reference) if self.probabilities.is_logits else chunk.x

    def _share(self, masses: ir.Value, of_row) -> ir.Value:
        """Of the mass of the row."""
        mass = self.t.reduced("add", masses, "mass_above")
        return self.b.op(arith.divf, mass, of_row.mass.total, name="before") if self.probabilities.is_logits else mass

    def _batch(
        self, row, chunks: RowChunks, ahead, values, indices, count, rank, before, found: Survivors, band: Band, of_row
    ) -> list[ir.Value]:
        t, b = self.t, self.b

        def goes_on(going, start, *_):
            return t.both(b.cmpi("ne", going, t.zero), b.cmpi("slt", start, count))

        def piece(_, start, rank, before, *found):
            some = t.smaller(t.minus(count, start), b.index(_PIECE), "some")
            part = [slice_of(b, x, start, _PIECE) for x in (values, indices)]
            going, *state = self._piece(row, chunks, ahead, *part, some, rank, before, Survivors(*found), band, of_row)
            return [going, t.plus(start, b.index(_PIECE), "start"), *state]

        carried = [("going", t.one), ("start", t.zero), ("rank", rank), ("before", before)]
        carried += zip(Survivors.NAMES, found.parts())
        going, _, *state = b.while_(carried, goes_on, piece, about="Running sums, by 1024 elements.")
        return [going, *state]

    def _piece(
        self, row, chunks: RowChunks, ahead, values, indices, count, rank, before, found: Survivors, band: Band, of_row
    ) -> list[ir.Value]:
        """The next elements in descending order: whether to go on (index), the rank after them, the sum up to there, and
        what is known by now."""
        t, b = self.t, self.b
        probability = self.probabilities.of(values, of_row.mass)
        inside = t.compare("OLT", slice_of(b, self.ramp, 0, _PIECE), t.f32_of(count), "inside")
        probability = t.where(inside, probability, 0.0, "probability")
        sums = t.running_sums(probability, "running_sums")
        sums = b.op(arith.addf, sums, b.splat(before, _PIECE), name="sums")
        reached = t.find_first(t.compare("OGE", sums, row.p, "reaches_p"), "crossing")
        before = t.extract(sums, b.index(_PIECE - 1), "before")
        reached = self._confirmed(row, chunks, ahead, reached, count, before, band, of_row)
        going = b.cmpi("sge", reached, count, "short_of_p")
        kept = t.smaller(count, t.plus(reached, t.one), "kept")
        going, end, *after = self._keep(row, values, indices, probability, going, kept, count, rank, found, band, of_row.bound)
        return [going, end, before, *after]

    def _all(self, row, values, indices, count, rank, before, found: Survivors, band: Band, of_row) -> list[ir.Value]:
        """The same for all of a batch inside the nucleus."""
        t = self.t
        probability = self.probabilities.of(values, of_row.mass)
        inside = t.compare("OLT", slice_of(self.b, self.ramp, 0, length_of(values)), t.f32_of(count), "inside")
        probability = t.where(inside, probability, 0.0, "probability")
        going, end, *after = self._keep(
            row, values, indices, probability, t.truth(True), count, count, rank, found, band, of_row.bound
        )
        return [going, end, before, *after]

    def _keep(
        self, row, values, indices, probability, going, kept, count, rank, found: Survivors, band: Band, bound
    ) -> list[ir.Value]:
        """What min-p leaves of the first `kept` elements of `count`: whether to go on (index), the rank after them, and what is
        known by then."""
        t, b = self.t, self.b
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
            number_of_band = t.f32_of(band.number)
            of_best = b.select(better, number_of_band, found.best_band, "best_band")
            final = t.minus(kept, t.one)
            place = b.op(arith.sitofp, b.f32_type, t.extract(indices, final, "last_index"), name="place")
            return [*choice.parts(), of_best, number_of_band, t.extract(values, final, "last"), place, t.f32_of(end)]

        types = [part.type for part in found.parts()]
        after = b.if_(b.cmpi("sgt", kept, t.zero), Survivors.NAMES, take, found.parts, types=types)
        return [b.select(going, t.one, t.zero), end, *after]

    def _confirmed(self, row, chunks: RowChunks, ahead, reached, count, end, band: Band, of_row) -> ir.Value:
        """The position at which running sums reach p; one behind them if the next band begins short of p. `end` is the last
        sum: where it exceeds p by more than rounding, the next band does."""
        t, b = self.t, self.b
        crosses = t.both(b.cmpi("slt", reached, count), t.opposite(band.is_last), "crosses")
        margin = b.op(arith.addf, row.p, b.f32(_ROUNDING), name="p_and_rounding")
        is_close = t.both(crosses, b.cmpf("OLT", end, margin), "is_close")

        def compared():
            edge, measure = t.plus(band.number, t.one), lambda source: self._masses_above(source, [band.low], of_row)
            (mass,) = self._of(edge, ahead, chunks, measure, ("mass_above",))
            return [b.select(b.cmpf("OGE", mass, row.p), reached, b.index(_PIECE))]

        about = "Close to the end of the nucleus: is it in this band?"
        return b.if_(is_close, ["crossing"], compared, lambda: [reached], types=[b.index_type], about=about)[0]
