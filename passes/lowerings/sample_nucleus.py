"""The nucleus of a row that only top-p cuts: its elements in descending order, as far as they reach p.

The row is cut into bands of values, at fixed ranks of a sorted sample. A band begins with the number and the mass of
what is above it, and goes on in batches (`descending.py`). So bands are independent of each other, and cores that share
a row share its bands; one that begins beyond p is not looked at. The bits of a sum follow from the row and its length
alone, whoever adds it up.
p is reached in a band only if the next one begins beyond it: the mass that it begins with and the running sum up to
there are rounded differently, and a row must end in one place.

In a long row neighbouring bands are a window, whose elements one pass packs into a list (`packed_row.py`): passes for
these bands go over that. The first window ends where the sample says that the nucleus does, in all likelihood; a wide
nucleus takes several. Where only an index is asked for, what cannot have it is passed over (`sample_race.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith

from ..builder import Stage
from .descending import Descending
from .ops import Ops
from .packed_row import PackedChunks, PackedRow
from .row_chunks import NEG_INF, Chunk, RowChunks, length_of, slice_of
from .sample_probabilities import Mass, Probabilities
from .sample_race import Race
from .sample_results import Choice, Results

_PIECE = 1024  # elements of one running sum
_GROUPS = 64  # of the sample's elements, at least, of which bands are whole numbers
_LISTED = 3072  # of a list, to measure at a time
_MANY_LISTS = 1 << 16  # elements of a row of which a wide nucleus is worth several lists, one after the other
_REST = 0.85  # of the mass that p leaves out: so much is taken to be below the bands that hold the nucleus
_SLACK = 1.5  # elements of a window, to their mean, with which the list is full
# More than what rounding parts the running sum of a row of 2^20 elements and the mass above an edge by: at most 2048
# batches and 1024 pieces more of the one, 256 chunks of the other, and the depth of trees, of 2^-24 each.
_ROUNDING = 2.0**-12


@dataclass(frozen=True)
class Survivors:
    """What is known of a row's survivors; None is what nobody asks. Numbers are f32, but `chosen` is i32.

    Attributes:
      best, chosen: the greatest score, and the index it is at.
      best_band: the band of that one.
      last_band: the last band with survivors.
      last, place: value and position of the last survivor.
      number: how many survivors there are down to there.
    """

    best: ir.Value
    chosen: ir.Value
    best_band: ir.Value | None = None
    last_band: ir.Value | None = None
    last: ir.Value | None = None
    place: ir.Value | None = None
    number: ir.Value | None = None

    @staticmethod
    def names(results: Results, parts: int) -> list[str]:
        """What is asked of a row of so many parts."""
        of_last = ["last", "place"] * results.op.is_need_logits + ["number"] * results.op.is_need_sample_result
        of_parts = ["best_band"] + ["last_band"] * bool(of_last)
        return ["best", "chosen", *(of_parts if parts > 1 else ()), *of_last]

    def parts(self) -> list[ir.Value]:
        return [value for value in vars(self).values() if value is not None]


@dataclass(frozen=True)
class Above:
    """How many elements reach an edge (index), -1 if that is not known; and what they weigh (f32)."""

    number: ir.Value
    weight: ir.Value

    NAMES = ("number", "weight")

    def parts(self) -> list[ir.Value]:
        return [self.number, self.weight]


@dataclass(frozen=True)
class Band:
    """A band of values.

    Attributes:
      number: which one (index).
      high, low: the values it goes down from and to (f32).
      above, below: what is above it, and that with it.
      is_last: whether none is behind it (i1).
    """

    number: ir.Value
    high: ir.Value
    low: ir.Value
    above: Above
    below: Above
    is_last: ir.Value


@dataclass(frozen=True)
class Window:
    """Neighbouring bands.

    Attributes:
      first, end: the first of them, and the one behind the last (index).
      above, below: what is above them, and that with them.
      above_own, below_own: what is above this part's first one, and that with it, if there is a list.
      is_listed: whether a list has all their elements (i1).
      listed: the list.
      all_inside: whether the nucleus goes on behind them (i1).
    """

    first: ir.Value
    end: ir.Value
    above: Above
    below: Above
    above_own: Above
    below_own: Above
    is_listed: ir.Value
    listed: PackedChunks
    all_inside: ir.Value


@dataclass(frozen=True)
class Sampled:
    """A row with what is known of it beforehand.

    Attributes:
      row: its number and what it asks for; its `p`, `m`, `use_m` and `first_only` count.
      chunks, wide: it, and in longer chunks with NaN behind it.
      sample: elements of it in descending order.
      mass: what it weighs.
      bound: the least probability that min-p leaves (f32); None without min-p.
    """

    row: object
    chunks: RowChunks
    wide: RowChunks
    sample: ir.Value
    mass: Mass
    bound: ir.Value | None


class Nucleus:
    """Builds the search in the rows of one kernel. `ramp` is a float32 ramp of a chunk's length."""

    def __init__(
        self, t: Ops, descending: Descending, probabilities: Probabilities, results: Results, ramp: ir.Value, parts: int
    ):
        self.t, self.b, self.ramp, self.parts = t, t.b, ramp, parts
        self.asked = Survivors.names(results, parts)
        self.descending, self.probabilities, self.results = descending, probabilities, results
        self.packed = self.race = None
        if descending.lists:
            self.packed = PackedRow(t, ramp, descending.collector.lane, descending.vocabulary)
            # Bands of a window. A single one of the fewest bands is large enough for the list to have room for it.
            self.widest = max(1, int(self.packed.capacity * descending.bands / (_SLACK * descending.vocabulary)))
            self.race = Race(t, probabilities, results) if results.is_index_alone else None
            self.ahead = 0.9 * descending.bands / descending.vocabulary  # bands for an element, rather too few

    def of_row(self, row, chunks: RowChunks, wide: RowChunks) -> Survivors:
        """The survivors of a row that one core has to itself."""
        t = self.t
        sample = self.descending.sample(chunks)
        mass = self.probabilities.mass(lambda: t.extract(sample, t.zero, "near"))
        return self.survivors(row, chunks, wide, sample, mass, t.zero)

    def survivors(
        self, row, chunks: RowChunks, wide: RowChunks, sample: ir.Value, mass: Mass, part: ir.Value
    ) -> Survivors:
        """The survivors in this part's bands: each `parts`-th of a window, from the one of this number on."""
        t, b, parts = self.t, self.b, self.parts
        of_row = Sampled(
            row, chunks, wide, sample, mass, None if row.m is None else self.probabilities.least(row.m, mass)
        )
        bands = b.index(self.descending.bands)
        nothing = {"best": NEG_INF, "best_band": 0.0, "last_band": -1.0, "last": NEG_INF}
        nothing |= {"place": float(self.descending.vocabulary), "number": 0.0}
        nothing = [b.i32(0) if name == "chosen" else b.f32(nothing[name]) for name in self.asked]
        if self.packed is None:
            _, *found = self._bands(of_row, None, part, parts, self._found(nothing))
            return self._found(found)
        likely = self._likely_bands(of_row)

        def goes_on(going, first, *_):
            return t.both(b.cmpi("ne", going, t.zero), b.cmpi("slt", first, bands))

        def one_window(_, first, number, weight, *found):
            window = self._window(of_row, first, Above(number, weight), likely, part, parts)
            going, *found = self._bands(of_row, window, part, parts, self._found(found))
            going = b.select(window.all_inside, going, t.zero, "going")
            return [going, window.end, *window.below.parts(), *found]

        carried = [("going", t.one), ("first_band", t.zero), ("number_above", t.zero), ("weight_above", b.f32(0.0))]
        carried += zip(self.asked, nothing)
        _, _, _, _, *found = b.while_(
            carried, goes_on, one_window, about=Stage("SearchWindows", "The row, a window of bands at a time.")
        )
        return self._found(found)

    def _found(self, values: Sequence[ir.Value]) -> Survivors:
        return Survivors(**dict(zip(self.asked, values, strict=True)))

    # -- windows ------------------------------------------------------------------------------------------------

    def _likely_bands(self, of_row: Sampled) -> ir.Value:
        """How many bands hold the nucleus in all likelihood (index)."""
        t, b, descending, mass, sample = self.t, self.b, self.descending, of_row.mass, of_row.sample
        weights = self.probabilities.weights(sample, mass.reference) if self.probabilities.is_logits else sample
        groups = max(_GROUPS, descending.bands)
        sums = t.running_sums(
            t.reduce("add", weights, descending.sampled // groups, "group_masses"), "mass_down_to_group"
        )
        share = b.f32(_REST * descending.sampled / descending.vocabulary)
        rest = b.op(
            arith.mulf, b.op(arith.mulf, b.op(arith.subf, b.f32(1.0), of_row.row.p), mass.total), share, name="rest"
        )
        enough = b.op(arith.subf, t.extract(sums, b.index(groups - 1), "sample_mass"), rest, name="enough")
        last = t.find_first(t.compare("OGE", sums, enough, "is_enough"), "last_group")
        last = t.unit_of(last, groups // descending.bands)
        return t.smaller(t.plus(last, t.one), b.index(descending.bands), "likely_bands")

    def _window(
        self, of_row: Sampled, first: ir.Value, above: Above, likely: ir.Value, part: ir.Value, parts: int
    ) -> Window:
        """The window that begins with a band, its elements packed into the list if it has room for them. Bits do not
        depend on whether it has more than the sample says: what is said of a band or an edge comes from the list or
        from the row, as the row has it."""
        t, b, descending = self.t, self.b, self.descending
        bands = b.index(descending.bands)
        widest = t.smaller(t.plus(first, b.index(self.widest)), bands)
        ends_here = t.both(b.cmpi("sgt", likely, first), b.cmpi("sle", likely, widest))
        end = b.select(ends_here, likely, widest if descending.vocabulary >= _MANY_LISTS else bands, "end_band")
        high, low = descending.edge(of_row.sample, first), descending.edge_behind(of_row.sample, end)
        # NaN is no number that reaches an edge, and what is behind a list is -inf.
        lists = t.both(
            b.cmpf("OGT", low, b.f32(NEG_INF)), t.opposite(self.probabilities.may_have_nans(of_row.mass)), "lists"
        )
        of_edge = [b.index_type, b.f32_type]
        own = [f"{name}_{side}" for side in ("above_own", "below_own") for name in Above.NAMES]

        def pack():
            number, has_all = self.packed.pack(
                of_row.wide, low, high, Stage("ListWindow", "The elements of these bands.")
            )
            listed = PackedChunks(self.packed, number, _LISTED)
            own = t.plus(first, part, "own_band")
            edges = [descending.edge(of_row.sample, own)] if parts > 1 else []
            edges += [descending.edge_behind(of_row.sample, t.plus(own, t.one, "next_band")), low]
            *of_own, below = (self._added(above, more) for more in self._above(listed, edges, of_row))
            of_own = [above, *of_own] if parts == 1 else of_own
            return [number, b.select(has_all, t.one, t.zero), *of_own[0].parts(), *of_own[1].parts(), below.weight]

        is_empty = b.cmpf("OGE", low, high, "is_empty")
        unknown = [*self._unknown().parts(), *self._unknown().parts()]
        nothing = lambda: [t.zero, b.select(t.both(lists, is_empty), t.one, t.zero), *unknown, above.weight]
        number, is_listed, *own, weight = b.if_(
            t.both(lists, t.opposite(is_empty)), ["listed", "is_listed", *own, "weight_below"], pack, nothing,
            types=[b.index_type, b.index_type, *of_edge, *of_edge, b.f32_type],
            about=Stage("ListOfWindow", "A list of a window."),
        )  # fmt: skip
        is_listed = b.cmpi("ne", is_listed, t.zero, "is_listed")
        in_row = lambda: self._above(of_row.chunks, [low], of_row)[0].parts()
        everything = lambda: [b.index(descending.vocabulary), b.f32(0.0)]  # what it weighs nobody asks
        otherwise = lambda: b.if_(b.cmpi("eq", end, bands), Above.NAMES, everything, in_row, types=of_edge)
        known = lambda: [t.plus(above.number, number), weight]
        below = Above(*b.if_(is_listed, Above.NAMES, known, otherwise, types=of_edge))
        # Of a row with NaN no sum reaches p.
        all_inside = t.opposite(self._reaches_p(below, of_row), "all_inside")
        listed = PackedChunks(self.packed, number, _LISTED)
        return Window(first, end, above, below, Above(*own[:2]), Above(*own[2:]), is_listed, listed, all_inside)

    def _above_edge(self, window: Window | None, of_row: Sampled, edge: ir.Value, about: str) -> Above:
        """What reaches an edge of a band, from the window's list or the row."""
        b = self.b
        of_chunks = lambda chunks: self._above(chunks, [edge], of_row)[0]
        if window is None:
            return of_chunks(of_row.chunks)
        return Above(*b.if_(
            window.is_listed, Above.NAMES, lambda: self._added(window.above, of_chunks(window.listed)).parts(),
            lambda: of_chunks(of_row.chunks).parts(), types=[b.index_type, b.f32_type], about=about,
        ))  # fmt: skip

    def _above(self, chunks, edges: Sequence[ir.Value], of_row: Sampled) -> list[Above]:
        """What of a row or a list reaches each of some edges; NaN does."""
        t, b = self.t, self.b
        lanes = chunks.chunk
        ones = t.filled(1.0, lanes, "ones")

        def body(chunk: Chunk, *so_far):
            is_logits = self.probabilities.is_logits
            weights = self.probabilities.weights(chunk.x, of_row.mass.reference) if is_logits else chunk.x
            added = []
            for edge, numbers, masses in zip(edges, so_far[::2], so_far[1::2]):
                reaches = t.compare("UGE", chunk.x, edge, "reaches")
                reaching = t.where(reaches, ones, 0.0, "reaching_ones"), t.where(reaches, weights, 0.0, "reaching")
                added.append(b.op(arith.addf, numbers, reaching[0], name="numbers"))
                added.append(b.op(arith.addf, masses, reaching[1], name="masses"))
            return added

        carried = [(name, t.filled(0.0, lanes, name)) for name in ("numbers", "masses")] * len(edges)
        sums = chunks.each(carried, body, Stage("SumAbove", "What is above."))
        sums = [t.reduced("add", each, "sum_above") for each in sums]
        return [Above(t.index_of(number, "number"), weight) for number, weight in zip(sums[::2], sums[1::2])]

    def _unknown(self) -> Above:
        return Above(self.b.index(-1), self.b.f32(0.0))

    def _added(self, above: Above, more: Above) -> Above:
        weight = self.b.op(arith.addf, above.weight, more.weight, name="weight")
        return Above(self.t.plus(above.number, more.number, "number"), weight)

    def _share(self, above: Above, of_row: Sampled) -> ir.Value:
        """Of the mass of the row."""
        is_logits = self.probabilities.is_logits
        return self.b.op(arith.divf, above.weight, of_row.mass.total, name="share") if is_logits else above.weight

    def _reaches_p(self, above: Above, of_row: Sampled) -> ir.Value:
        return self.b.cmpf("OGE", self._share(above, of_row), of_row.row.p, "reaches_p")

    # -- bands --------------------------------------------------------------------------------------------------

    def _bands(
        self, of_row: Sampled, window: Window | None, part: ir.Value, parts: int, found: Survivors
    ) -> list[ir.Value]:
        """Whether later bands matter (index), and what is known after this part's bands of a window, or of all."""
        t, b = self.t, self.b
        first, end, above, own = t.zero, b.index(self.descending.bands), Above(t.zero, b.f32(0.0)), self._unknown()
        if window is not None:
            first, end, above, own = window.first, window.end, window.above, window.above_own
        edge = lambda band: self.descending.edge(of_row.sample, band)
        below_band = lambda band: self.descending.edge_behind(of_row.sample, t.plus(band, t.one, "next_band"))
        edge_types = [b.index_type, b.f32_type]
        own_first = t.plus(first, part)

        def goes_on(going, band, *_):
            return t.both(b.cmpi("ne", going, t.zero), b.cmpi("slt", band, end))

        def above_band(band, high, known):
            about = Stage("MeasureAboveBand", "How much is above the band.")
            measured = lambda: self._above_edge(window, of_row, edge(band) if high is None else high, about).parts()
            is_first, is_known = b.cmpi("eq", band, first, "is_first"), b.cmpi("sge", known.number, t.zero)
            known = lambda known=known: b.if_(is_known, Above.NAMES, known.parts, measured, types=edge_types)
            return Above(*b.if_(is_first, Above.NAMES, above.parts, known, types=edge_types))

        def one_band(_, band, number, weight, *found):
            found = self._found(found)
            high = edge(band) if self.race is None else None  # it may be another band's in the end
            start = above_band(band, high, Above(number, weight))
            below, rival = self._unknown(), None
            if self.race is not None:
                band, start, rival = self._next_rival(of_row, window, band, start, parts, found)
                below = self._below(of_row, window, own_first, band, rival, found)
            is_last = b.cmpi("eq", band, b.index(self.descending.bands - 1), "is_last_band")
            this = Band(band, edge(band) if high is None else high, below_band(band), start, below, is_last)
            going, *after = self._band(of_row, window, this, rival, found)
            following = t.plus(band, b.index(parts), "band")
            if self.race is not None:
                following = b.select(b.cmpi("sge", rival, window.below.number), end, following, "band")
            known = below if parts == 1 else self._unknown()
            return [going, following, *known.parts(), *after]

        carried = [("going", t.one), ("band", own_first), *zip(("number_above", "weight_above"), own.parts())]
        carried += zip(self.asked, found.parts())
        going, _, _, _, *found = b.while_(
            carried, goes_on, one_band, about=Stage("SearchBands", "Bands of values, from the greatest down.")
        )
        return [going, *found]

    def _below(
        self, of_row: Sampled, window: Window, own: ir.Value, band: ir.Value, rival: ir.Value, found: Survivors
    ) -> Above:
        """What is above a band's lower edge, where some rank may have the best score. In a row that is not worth a pass
        as long as there is none."""
        t, b = self.t, self.b
        low = self.descending.edge_behind(of_row.sample, t.plus(band, t.one, "next_band"))
        measured = lambda: self._above_edge(
            window, of_row, low, Stage("MeasureLowerEdge", "How much is above its lower edge.")
        ).parts()
        is_measured = t.either(window.is_listed, b.cmpf("OGT", found.best, b.f32(NEG_INF)))
        is_measured = t.both(is_measured, b.cmpi("slt", rival, window.below.number), "is_measured")
        is_own = t.both(b.cmpi("eq", band, own), window.is_listed, "is_own")
        types = [b.index_type, b.f32_type]
        known = lambda: b.if_(is_own, Above.NAMES, window.below_own.parts, measured, types=types)
        return Above(*b.if_(is_measured, Above.NAMES, known, self._unknown().parts, types=types))

    def _next_rival(
        self, of_row: Sampled, window: Window, band: ir.Value, above: Above, parts: int, found: Survivors
    ) -> tuple[ir.Value, Above, ir.Value]:
        """The next band to look at, what is above it, and the first rank from there on that may have a better score
        than the best, the window's end if none may. That is this band, or a later one of this part's if that rank is
        far beyond."""
        t, b = self.t, self.b
        edge = lambda band: self.descending.edge(of_row.sample, band)
        names, types = ["band", *Above.NAMES, "rival"], [b.index_type, b.index_type, b.f32_type, b.index_type]

        def rival_from(band, above):
            return self.race.first_rival(above.number, window.below.number, edge(band), of_row.mass, found.best)

        def searched():
            rival = rival_from(band, above)
            here = lambda: [band, *above.parts(), rival]
            # In somewhat fewer bands as many elements are expected.
            expected = b.op(
                arith.mulf, t.f32_of(t.minus(rival, above.number)), b.f32(self.ahead / parts), name="bands_ahead"
            )
            steps = t.index_of(expected, "steps")
            later = t.plus(band, self.t.times(steps, parts), "later_band")

            def skipped():
                about = Stage("MeasureLaterBand", "How much is above a later band.")
                after = self._above_edge(window, of_row, self.descending.edge_behind(of_row.sample, later), about)
                there = lambda: [later, *after.parts(), rival_from(later, after)]
                return b.if_(b.cmpi("sle", after.number, rival, "is_before"), names, there, here, types=types)

            is_there = t.both(b.cmpi("slt", rival, window.below.number), b.cmpi("slt", later, window.end))
            return b.if_(t.both(is_there, b.cmpi("sgt", steps, t.zero), "skips"), names, skipped, here, types=types)

        has_best = b.cmpf("OGT", found.best, b.f32(NEG_INF), "has_best")
        about = Stage("FindFirstRank", "The first rank that may have the best score.")
        none = lambda: [band, *above.parts(), above.number]
        band, number, weight, rival = b.if_(has_best, names, searched, none, types=types, about=about)
        return band, Above(number, weight), rival

    def _band(
        self, of_row: Sampled, window: Window | None, band: Band, rival: ir.Value | None, found: Survivors
    ) -> list[ir.Value]:
        """Whether later bands matter (index), and what is known after this one."""
        t, b = self.t, self.b
        names, types = ["going", *self.asked], [b.index_type, *(part.type for part in found.parts())]
        some = t.opposite(b.cmpf("OGE", band.low, band.high), "has_elements")
        if self.race is not None:
            is_known = b.cmpi("sge", band.below.number, t.zero)
            is_beyond = t.either(is_known, b.cmpi("sge", rival, window.below.number))
            is_beyond = t.both(is_beyond, b.cmpi("sge", rival, band.below.number), "rival_is_beyond")
            some = t.both(some, t.opposite(is_beyond), "has_rival")
        share = self._share(band.above, of_row)
        ends = t.both(some, b.cmpf("OGE", share, of_row.row.p, "reaches_p"), "ends")
        going = b.select(ends, t.zero, t.one, "going")
        looked_at = lambda: self._look_at(of_row, window, band, share, found)
        return b.if_(t.both(some, t.opposite(ends)), names, looked_at, lambda: [going, *found.parts()], types=types)

    def _look_at(
        self, of_row: Sampled, window: Window | None, band: Band, share: ir.Value, found: Survivors
    ) -> list[ir.Value]:
        t, b = self.t, self.b
        names = ["going", "rank", "before", *self.asked]
        types = [b.index_type, b.index_type, b.f32_type, *(part.type for part in found.parts())]
        inside = None
        if self.race is not None:
            is_known = b.cmpi("sge", band.below.number, t.zero)
            inside = t.both(is_known, t.opposite(self._reaches_p(band.below, of_row)), "is_inside")

        def batch(values, indices, count, rank, before, *found):
            some = (values, indices, count, rank, before, self._found(found), band)
            pieces = lambda: self._batch(of_row, window, *some)
            return (
                pieces()
                if inside is None
                else b.if_(inside, names, lambda: self._all(of_row, *some), pieces, types=types)
            )

        is_top = b.cmpi("eq", band.number, t.zero, "is_top")
        nans = t.both(is_top, self.probabilities.may_have_nans(of_row.mass), "has_nans")
        carried = [("rank", band.above.number), ("before", share), *zip(self.asked, found.parts())]
        packed = None if window is None else (window.is_listed, window.listed)
        going, _, _, *after = self.descending.each(
            of_row.chunks, of_row.sample, band.high, band.low, carried, batch, of_row.wide, nans, packed
        )
        return [going, *after]

    # -- batches ------------------------------------------------------------------------------------------------

    def _batch(
        self, of_row: Sampled, window: Window | None, values, indices, count, rank, before, found: Survivors, band: Band
    ) -> list[ir.Value]:
        t, b = self.t, self.b

        def goes_on(going, start, *_):
            return t.both(b.cmpi("ne", going, t.zero), b.cmpi("slt", start, count))

        def piece(_, start, rank, before, *found):
            some = t.smaller(t.minus(count, start), b.index(_PIECE), "some")
            part = [slice_of(b, x, start, _PIECE) for x in (values, indices)]
            going, *state = self._piece(of_row, window, *part, some, rank, before, self._found(found), band)
            return [going, t.plus(start, b.index(_PIECE), "start"), *state]

        carried = [("going", t.one), ("start", t.zero), ("rank", rank), ("before", before)]
        carried += zip(self.asked, found.parts())
        going, _, *state = b.while_(carried, goes_on, piece, about=Stage("AddUp", "Running sums, by 1024 elements."))
        return [going, *state]

    def _piece(
        self, of_row: Sampled, window: Window | None, values, indices, count, rank, before, found: Survivors, band: Band
    ) -> list[ir.Value]:
        """The next elements in descending order: whether to go on (index), the rank after them, the sum up to there,
        and what is known by now."""
        t, b = self.t, self.b
        probability = self._inside(self.probabilities.of(values, of_row.mass), count)
        sums = t.running_sums(probability, "running_sums")
        sums = b.op(arith.addf, sums, b.splat(before, _PIECE), name="sums")
        reached = t.find_first(t.compare("OGE", sums, of_row.row.p, "reaches_p"), "crossing")
        before = t.extract(sums, b.index(_PIECE - 1), "before")
        reached = self._confirmed(of_row, window, reached, count, before, band)
        going = b.cmpi("sge", reached, count, "short_of_p")
        kept = t.smaller(count, t.plus(reached, t.one), "kept")
        going, end, *after = self._keep(of_row, values, indices, probability, going, kept, count, rank, found, band)
        return [going, end, before, *after]

    def _all(
        self, of_row: Sampled, values, indices, count, rank, before, found: Survivors, band: Band
    ) -> list[ir.Value]:
        """The same for all of a batch inside the nucleus."""
        probability = self._inside(self.probabilities.of(values, of_row.mass), count)
        all_of_it = self.t.truth(True)
        going, end, *after = self._keep(
            of_row, values, indices, probability, all_of_it, count, count, rank, found, band
        )
        return [going, end, before, *after]

    def _inside(self, probability: ir.Value, count: ir.Value) -> ir.Value:
        t = self.t
        inside = t.compare("OLT", slice_of(self.b, self.ramp, 0, length_of(probability)), t.f32_of(count), "inside")
        return t.where(inside, probability, 0.0, "probability")

    def _keep(
        self, of_row: Sampled, values, indices, probability, going, kept, count, rank, found: Survivors, band: Band
    ) -> list[ir.Value]:
        """What min-p leaves of the first `kept` elements of `count`: whether to go on (index), the rank after them, and
        what is known by then."""
        t, b, row = self.t, self.b, of_row.row
        if of_row.bound is not None:
            below = t.find_first(t.compare("OLT", probability, of_row.bound, "is_below"), "first_below")
            least = b.select(b.cmpi("eq", rank, t.zero), t.one, t.zero)
            below = b.select(row.use_m, t.larger(below, least), count)
            below = b.select(row.first_only, least, below, "kept_by_min_p")
            going = t.both(going, b.cmpi("sge", below, count), "goes_on")
            kept = t.smaller(kept, below, "kept")
        end = t.plus(rank, kept, "rank")

        def take():
            choice = self.results.take(probability, indices, kept, rank, Choice(found.best, found.chosen))
            known = {"best": choice.best, "chosen": choice.index, "number": t.f32_of(end)}
            if found.best_band is not None:
                better = b.cmpf("OGT", choice.best, found.best, "is_better")
                known["last_band"] = t.f32_of(band.number, "number_of_band")
                known["best_band"] = b.select(better, known["last_band"], found.best_band, "best_band")
            if found.last is not None:
                final = t.minus(kept, t.one, "final")
                known["last"] = t.extract(values, final, "last")
                place = t.extract(indices, final, "last_index")
                known["place"] = b.op(arith.sitofp, b.f32_type, place, name="place")
            return [known[name] for name in self.asked]

        types = [part.type for part in found.parts()]
        after = b.if_(b.cmpi("sgt", kept, t.zero), self.asked, take, found.parts, types=types)
        return [b.select(going, t.one, t.zero), end, *after]

    def _confirmed(self, of_row: Sampled, window: Window | None, reached, count, end, band: Band) -> ir.Value:
        """The position at which running sums reach p; one behind them if the next band begins short of p. `end` is the
        last
        sum: where it exceeds p by more than rounding, the next band does."""
        t, b, p = self.t, self.b, of_row.row.p
        crosses = t.both(b.cmpi("slt", reached, count), t.opposite(band.is_last), "crosses")
        margin = b.op(arith.addf, p, b.f32(_ROUNDING), name="p_and_rounding")
        is_close = t.both(crosses, b.cmpf("OLT", end, margin), "is_close")

        def compared():
            below = self._above_edge(window, of_row, band.low, Stage("MeasureNextBand", "What is above the next band."))
            return [b.select(self._reaches_p(below, of_row), reached, b.index(_PIECE))]

        about = Stage("ConfirmEnd", "Close to the end of the nucleus: is it in this band?")
        return b.if_(is_close, ["crossing"], compared, lambda: [reached], types=[b.index_type], about=about)[0]
