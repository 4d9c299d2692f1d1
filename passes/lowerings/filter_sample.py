"""`ascend.filter_sample` on tiles: the filter's thresholds, then one choice among what they leave.

Where k is at most 128, all is decided in the list of the row's first elements, with their positions (`leading.py`), for
which the row is read once; of q, the survivors' elements are loaded for it, several at once. Cores that share a row
each list their part's, and the first of them merges the lists. The nucleus within the list is the filter's. The list is
sure to have some copies of the k-th element beside those that k asks for. If there are more, the choice takes a pass
over the row, with the thresholds that the list gives.

For any other k the thresholds are searched for as by `apply_top_k_top_p`, by as many cores; the row that they leave is
never written. The choice takes a pass for the row's maximum and one for the scores, which loads q only beside chunks
with survivors.
Cores that share a row meet once more: the first of them takes the best of their choices.

A score comes from the same operations either way. The sum of the weights would divide all scores alike, so it is not
computed.

With a key in the place of q, numbers are drawn for survivors only (`threefry.py`): for those in the list, or for
survivors of the whole row as they are collected, hundreds at a time, since twenty rounds take as long for a few numbers
as for many.

Without a filter all elements are survivors: see `drawn_rows.py`.

What was filtered out is never chosen, whatever its q; neither is what was -inf before. Where the maximum is infinite or
NaN, all probabilities are NaN, and the first element is chosen.
"""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith

from jascend.backends.ascend.targets import Target

from ..builder import Stage, up
from . import apply_top_k_top_p
from .apply_top_k_top_p import Filter, plan_of
from .candidates import LISTED, count_of, maximum_of
from .drawn_rows import DrawnRows
from .leading import NOWHERE, SMALL, Leading
from .lowering import lowering
from .ops import GREATEST
from .part_lists import merged_lists
from .row_chunks import NEG_INF, Chunk, OneChunk, RowChunks, length_of, slice_of, with_slice
from .rows import MAX_ROW
from .site import Candidate, Site
from .threefry import Draws, key_of

SUMMARY = "Samples an index from every row, of what is left of it by top-k and top-p where there are any."
# Operands are computed where they are loaded: to load ahead is worth more than long chunks.
CANDIDATES = (
    Candidate(8192), Candidate(4096), Candidate(2048),
    *(candidate for candidate in apply_top_k_top_p.CANDIDATES if not candidate.load_ahead),
)  # fmt: skip

_Q = ("row", "col")
_LANES = 64  # of a tile that is reduced
_BLOCK = 8  # elements of 32 bytes
_MAXIMUM, _BEST = 2, 3  # sets of facts
_AT_ONCE = 8  # elements of q that are loaded without one waiting for another
_COPIES = 16  # of the k-th element that the list has room for
_DRAWN = 512  # numbers at a time


def refusal(op: ir.OpView, target: Target) -> str | None:
    """Why no kernel is generated for an op; None if one is."""
    return apply_top_k_top_p.refusal(op, target)


@lowering("ascend.filter_sample", summary=SUMMARY, refusal=refusal, candidates=CANDIDATES)
def lower(op: ir.OpView, site: Site) -> None:
    """Builds the kernel body: all rows of this core."""
    if op.p is None and op.k is None:
        DrawnRows(op, site).build()
        return
    plan = plan_of(op, site)
    site.remarks.append(plan.why)
    _FilterSample(op, site, plan).build()


class _FilterSample(Filter):
    """The filter, but that what it would write is a choice."""

    RESULT = "index"
    SLOTS = 4

    def enter(self, row: ir.Value) -> tuple[ir.Value | None, ir.Value | None]:
        self.row_number = row
        k, p = super().enter(row)
        if self.draws is None:
            self.producers.prepare([(self.op.q, _Q)])
        else:
            self.draws.enter_row(key_of(self.t, self.producers, self.op.key), row)
        return k, p

    @property
    def lists_leading(self) -> bool:
        return self.op.k is not None and not self.plan.short

    def ramp_lanes(self) -> int:
        of_part = self.plan.chunk if self.plan.parts > 1 else 0  # whose choice is made chunk by chunk
        return max(super().ramp_lanes(), of_part, SMALL.gathered if self.lists_leading else 0)

    def prepare(self) -> None:
        self.draws = None if self.op.key is None else Draws(self.t, self.op, self.vocabulary)
        if self.lists_leading:
            lane = self.t.ramp(self.plan.chunk, ir.IntegerType.get_signless(16), "lane")
            self.leading = Leading(self.t, self.keys, self.ramp, lane, SMALL)

    def row(self, row: ir.Value) -> list[ir.Value]:
        """A row that this core has to itself."""
        if not self.lists_leading:
            return super().row(row)
        k, p = self.enter(row)
        in_list = lambda: [self._by_list(self._leading(self.whole_row(self.plan.chunk), k), k, p)]

        def otherwise():
            cut, removed = self.searcher.thresholds(self.stretch, k, p)
            return [self._choice(self.whole_row(self.plan.written), cut, removed)]

        (chosen,) = self.b.if_(
            self.is_small(k), ["chosen"], in_list, otherwise, types=[self.b.i32_type],
            about=Stage(
                "ChooseFromList", "A small k: the first elements of the row. Any other: thresholds of the whole row, then a choice.", "ChooseBySearch"
            ),
        )  # fmt: skip
        self.t.store_index(chosen, self.out, row)
        return []

    def split_row(self, row: ir.Value, turn: ir.Value, active: ir.Value) -> None:
        if not self.lists_leading:
            super().split_row(row, turn, active)
            return
        t, b, meeting = self.t, self.b, self.exchange.meeting
        k, p = self.enter(row)
        part, small = self.own_part(turn), self.is_small(k)

        def give():
            meeting.give_list(self._leading(part, k), turn)
            meeting.give_facts([b.f32(0.0)], turn)

        sample, kth = self.split_top_k(part, k, small, give)

        def choose():
            pairs = merged_lists(t, self.exchange.take_pairs(turn))
            t.store_index(self._by_list(pairs, k, p), self.out, row)
            return []

        is_first = t.both(active, b.cmpi("eq", self.part, t.zero), "is_first")
        b.if_(
            t.both(small, is_first),
            [],
            choose,
            about=Stage("ChooseFromLists", "A small k: the first elements of the row, from all parts."),
        )

        def search():
            searches = t.opposite(small, "searches")
            if p is None:
                cut, removed = self.where(searches, ["cut", "removed"], lambda: [kth(), b.f32(0.0)])
            else:
                cut, removed = self.split_nucleus(part, p, sample, kth, searches, [b.f32(0.0)] * 2)
            self.finish_part(part, active, cut, removed, searches)
            return []

        b.if_(
            self.any_searches(turn),
            [],
            search,
            about=Stage("SearchRow", "All cores go along where a row of this round is searched."),
        )

    # -- in the list of the first elements ----------------------------------------------------------------------

    def _listed(self, k: ir.Value) -> ir.Value:
        """How many elements the list is sure to have (index): those that top-k keeps, and some that equal the k-th."""
        t, b = self.t, self.b
        return t.smaller(t.plus(t.index_of(k), b.index(_COPIES)), b.index(LISTED), "listed")

    def _leading(self, chunks: RowChunks, k: ir.Value) -> ir.Value:
        return self.leading.pairs(chunks, self._listed(k), finite=True)

    def _by_list(self, pairs: ir.Value, k: ir.Value, p: ir.Value | None) -> ir.Value:
        """The index chosen, by the row's first elements and their positions."""
        t, b = self.t, self.b
        values, places = t.unpacked(pairs)
        listed = self._listed(k)
        maximum, last = t.extract(values, t.zero, "maximum"), t.extract(values, t.minus(listed, t.one), "last")
        kth = t.extract(values, t.index_of(b.op(arith.subi, k, b.i32(1)), "k_minus_one"), "row_kth")

        def choose():
            goes_on = t.both(b.cmpf("OGE", last, kth), b.cmpf("OGT", kth, b.f32(NEG_INF)), "may_go_on")
            (number,) = b.if_(
                goes_on, ["number"], lambda: [count_of(t, self.whole_row(self.plan.chunk), "UGE", kth)],
                lambda: [t.count(t.compare("OGE", values, kth, "reach"), "number")], types=[b.f32_type],
            )  # fmt: skip
            cut, removed = (kth, b.f32(0.0)) if p is None else self.list.decide(values, number, kth, p)
            few = t.either(t.opposite(goes_on), b.cmpf("OLE", number, t.f32_of(listed)), "few")
            (chosen,) = b.if_(
                few, ["chosen"],
                lambda: [self._choose_listed(values, places, maximum, cut, removed)],
                lambda: [self._best(self.whole_row(self.plan.written), cut, removed, maximum)[1]], types=[b.i32_type],
                about=Stage(
                    "KeepAll", "All that top-k keeps is in the list, or there are more copies of the k-th.", "KeepCopies"
                ),
            )  # fmt: skip
            return [chosen]

        return b.if_(self._is_finite(maximum), ["chosen"], choose, lambda: [b.i32(0)], types=[b.i32_type])[0]

    def _choose_listed(self, values, places, maximum, cut, removed) -> ir.Value:
        t, b = self.t, self.b
        cut = self._finite(cut)
        equal = t.compare("OEQ", values, cut, "equal")
        start = b.op(arith.addf, t.f32_of(t.find_first(equal, "first_equal")), removed, name="first_kept")
        after = t.compare("OGE", slice_of(b, self.ramp, 0, LISTED), start, "after_removed")
        stays = t.either(t.both(equal, after), t.compare("OGT", values, cut, "exceeds"), "stays")
        reach = t.index_of(t.count(t.compare("OGE", values, cut, "reaches"), "survivors"), "survivors")
        scores = self._scores(values, maximum, stays, self._q_of(places, reach))
        greatest = t.reduced("max", scores, "greatest")
        is_greatest = t.both(stays, t.compare("OEQ", scores, greatest, "is_greatest"), "is_chosen")
        first = t.reduced("min", t.where(is_greatest, t.to_f32(places, "positions"), NOWHERE, "candidates"), "first")
        return b.op(arith.fptosi, b.i32_type, first, name="chosen")

    def _q_of(self, places: ir.Value, number: ir.Value) -> ir.Value:
        """The elements of q at the first `number` of some places, several loaded at once; or drawn."""
        t, b = self.t, self.b
        if self.draws is not None:
            return self.draws.numbers(places)
        self.producers.tile = _AT_ONCE * _BLOCK
        self.producers.prepare([(self.op.q, _Q)])
        last = t.minus(number, t.one, "last_survivor")

        def some(first, blocks):
            # The last one again where there are no more: a load of nothing would take as long.
            ranks = [t.smaller(t.plus(first, b.index(i)), last, "rank") for i in range(_AT_ONCE)]
            columns = [t.index_at(places, rank, "place") for rank in ranks]
            with self.producers.scattered(slice_of(b, places, first, _AT_ONCE), columns):
                q = self.producers.piece(self.op.q, _Q, columns[0], t.one, 1.0)
            return [with_slice(b, blocks, q, self.t.times(first, _BLOCK, "block"), "q_blocks")]

        carried = [("q_blocks", t.filled(1.0, LISTED * _BLOCK, "q_blocks"))]
        size = b.index(_AT_ONCE)
        (blocks,) = b.for_(
            t.zero, number, size, carried, some, induction="first", about=Stage("LoadQ", "q of the survivors.")
        )
        return t.take(blocks, _BLOCK, 0, 1, "q")

    # -- in the whole row ---------------------------------------------------------------------------------------

    def write_chunk(self, chunk: Chunk, cut: ir.Value, ties_left: ir.Value | None = None) -> list[ir.Value]:
        self.write(OneChunk(self.b, chunk), cut, ties_left)
        return []

    def write(self, chunks: RowChunks | OneChunk, cut: ir.Value, removed: ir.Value) -> None:
        """Chooses among what is above `cut`, and equal to it but for the first `removed` elements."""
        self.t.store_index(self._choice(chunks, cut, removed), self.out, self.row_number)

    def announce(self, part: RowChunks) -> None:
        self.searcher.cores.give([maximum_of(self.t, part)], _MAXIMUM)

    def finish_part(
        self, part: RowChunks, active: ir.Value, cut: ir.Value, removed: ir.Value, searches: ir.Value | None = None
    ) -> None:
        """Chooses of this part of a row, if it `searches`, then of all parts."""
        t, b, cores = self.t, self.b, self.searcher.cores

        def choose_here():
            maximum = cores.largest(None, cores.facts(_MAXIMUM), 0)
            best, chosen = self._best(part, cut, removed, maximum)
            is_finite = self._is_finite(maximum)
            chosen = b.select(is_finite, chosen, b.i32(0), "chosen")
            best = b.select(is_finite, best, b.f32(0.0), "best")
            cores.give([best, b.op(arith.sitofp, b.f32_type, chosen, name="place")], _BEST)
            return []

        self.where(searches, [], choose_here)
        self.meet()

        def choose():
            _, place = cores.first_largest(_BEST)
            t.store_index(b.op(arith.fptosi, b.i32_type, place, name="chosen"), self.out, self.row_number)
            return []

        is_first = t.both(active, b.cmpi("eq", self.part, t.zero), "is_first")
        is_first = is_first if searches is None else t.both(is_first, searches)
        b.if_(is_first, [], choose, about=Stage("ChooseBest", "The best of all parts."))

    def _choice(self, chunks: RowChunks | OneChunk, cut: ir.Value, removed: ir.Value) -> ir.Value:
        """The index chosen of a whole row (i32): the first one where there are no probabilities."""
        maximum = maximum_of(self.t, chunks)
        _, chosen = self._best(chunks, cut, removed, maximum)
        return self.b.select(self._is_finite(maximum), chosen, self.b.i32(0), "chosen")

    def _is_finite(self, maximum: ir.Value) -> ir.Value:
        b = self.b
        is_less = b.cmpf("OLT", maximum, b.f32(float("inf")))
        return self.t.both(is_less, b.cmpf("OGT", maximum, b.f32(NEG_INF)), "is_finite")

    def _finite(self, cut: ir.Value) -> ir.Value:
        """A cut that -inf does not reach: what is -inf has no probability."""
        return self.b.select(self.b.cmpf("OGT", cut, self.b.f32(NEG_INF)), cut, self.b.f32(-GREATEST), "cut")

    def _best(self, chunks: RowChunks, cut: ir.Value, removed: ir.Value, maximum: ir.Value) -> list[ir.Value]:
        """The greatest score of a stretch, and its place (i32); -inf and 0 if nothing stays."""
        b = self.b
        cut = self._finite(cut)
        place = b.f32(-1.0)
        if self.op.p is not None:
            (place,) = b.if_(
                b.cmpf("OGT", removed, b.f32(0.0), "has_ties"), ["last_removed"],
                lambda: [self._last_removed(chunks, cut, removed)], lambda: [b.f32(-1.0)], types=[b.f32_type],
            )  # fmt: skip
        if self.draws is not None and not self.plan.short:
            return self._best_drawn(chunks, cut, place, maximum)
        carried = [("best", b.f32(NEG_INF)), ("chosen", b.i32(0))]

        def body(chunk: Chunk, best, chosen):
            return self._choose(chunk, cut, place, maximum, best, chosen)

        return chunks.each(carried, body, Stage("FindGreatestScore", "The greatest score."))

    def _last_removed(self, chunks: RowChunks | OneChunk, cut: ir.Value, removed: ir.Value) -> ir.Value:
        """The position of the last element that goes although it equals `cut` (f32)."""
        t, b = self.t, self.b

        def body(chunk: Chunk, left, place):
            ramp = slice_of(b, self.ramp, 0, length_of(chunk.x))
            positions, kept = t.compress(ramp, t.compare("OEQ", chunk.x, cut, "equals"), "equal_positions")
            here = t.f32_of(kept, "equal_here")
            ends = t.both(b.cmpf("OGT", left, b.f32(0.0)), b.cmpf("OGE", here, left), "ends_here")

            def position():
                last = t.index_of(b.op(arith.subf, left, b.f32(1.0)))
                return [t.in_row(t.extract(positions, last, "place"), chunk.column, "position")]

            (place,) = b.if_(ends, ["last_removed"], position, lambda: [place], types=[b.f32_type])
            return [b.op(arith.subf, left, here, name="ties_left"), place]

        carried = [("ties_left", removed), ("last_removed", b.f32(-1.0))]
        left, place = chunks.each(carried, body, Stage("FindLastTie", "The last one of the ties that go."))
        return b.select(b.cmpf("OGT", left, b.f32(0.0)), b.f32(MAX_ROW), place, "last_removed")  # all go

    def _stays(self, chunk: Chunk, cut: ir.Value, place: ir.Value) -> ir.Value:
        t, lanes = self.t, length_of(chunk.x)
        stays = t.compare("UGE", chunk.x, cut, "reaches")
        ramp = slice_of(self.b, self.ramp, 0, lanes)
        if self.op.p is not None:
            here = t.from_column(place, chunk.column, "last_here")
            stays = t.both(stays, t.compare("OGT", ramp, here, "is_after"))
            stays = t.either(stays, t.compare("UGT", chunk.x, cut, "exceeds"))
        return t.both(stays, t.compare("OLT", ramp, t.f32_of(chunk.count), "inside"), "stays")

    def _choose(self, chunk: Chunk, cut, place, maximum, best, chosen) -> list[ir.Value]:
        t, b, lanes = self.t, self.b, length_of(chunk.x)
        stays = self._stays(chunk, cut, place)
        highest = self._greatest(t.where(stays, t.filled(1.0, lanes, "ones"), 0.0, "survivors"), "any")
        scored = b.cmpf("OGT", highest, b.f32(0.0), "has_survivors")

        def compare():
            scores = self._scores(chunk.x, maximum, stays, self._q_beside(chunk))
            position = lambda first: t.i32_of(t.plus(chunk.column, first), "chosen")
            return self._better(scores, position, best, chosen)

        return b.if_(
            scored, ["best", "chosen"], compare, lambda: [best, chosen], types=[b.f32_type, b.i32_type],
        )  # fmt: skip

    def _better(self, scores: ir.Value, position, best: ir.Value, chosen: ir.Value) -> list[ir.Value]:
        """The greater of the best score and those of a tile, and its place: `position(lane)` in the tile."""
        t, b = self.t, self.b
        greatest = self._greatest(scores, "greatest")

        def improve():
            first = t.find_first(t.compare("OEQ", scores, greatest, "is_greatest"), "first")
            return [greatest, position(first)]

        types = [b.f32_type, b.i32_type]
        return b.if_(b.cmpf("OGT", greatest, best), ["best", "chosen"], improve, lambda: [best, chosen], types=types)

    def _q_beside(self, chunk: Chunk) -> ir.Value:
        """q at the places of a chunk."""
        t, lanes = self.t, length_of(chunk.x)
        if self.draws is not None:
            return self.draws.numbers(
                t.to_i32(t.in_row(slice_of(self.b, self.ramp, 0, lanes), chunk.column, "places"), "places")
            )
        self.producers.tile = lanes
        self.producers.prepare([(self.op.q, _Q)])
        return self.producers.piece(self.op.q, _Q, chunk.column, chunk.count, 1.0)

    def _best_drawn(self, chunks: RowChunks, cut: ir.Value, place: ir.Value, maximum: ir.Value) -> list[ir.Value]:
        """As `_best`, where numbers are drawn for lists of survivors, each as soon as it is full, the last one at the
        end."""
        t, b, lanes = self.t, self.b, chunks.chunk
        ramp, size, alone = slice_of(b, self.ramp, 0, lanes), b.index(_DRAWN), chunks.is_one or None

        def body(chunk: Chunk, packed, packed_lanes, values, places, used, best, chosen):
            stays = self._stays(chunk, cut, place)
            packed, kept = t.compress(chunk.x, stays, "packed", readable=alone)
            packed_lanes, _ = t.compress(ramp, stays, "packed_lanes", readable=alone)
            inside = t.compare("OLT", ramp, t.f32_of(kept, "kept_number"), "inside")
            these = t.where(inside, t.in_row(packed_lanes, chunk.column, "these_places"), NOWHERE, "these_places")
            values, places = with_slice(b, values, packed, used, "values"), with_slice(b, places, these, used, "places")
            blocks = b.op(arith.andi, t.plus(kept, b.index(7)), b.index(-8), name="lanes")
            used = t.plus(used, blocks, "used")
            is_last = b.cmpi("sge", t.plus(chunk.column, chunk.count), chunks.end, "is_last")
            draw = t.either(b.cmpi("sge", used, size), is_last, "is_drawn_now")

            def one(first, best, chosen):
                x, where = slice_of(b, values, first, _DRAWN), slice_of(b, places, first, _DRAWN)
                real = t.compare("OLT", where, b.f32(NOWHERE), "is_element")
                scores = self._scores(x, maximum, real, self.draws.numbers(t.to_i32(where, "drawn_places")))
                position = lambda lane: b.op(arith.fptosi, b.i32_type, t.extract(where, lane, "place"), name="chosen")
                return self._better(scores, position, best, chosen)

            def drawn():
                carried = [("best", best), ("chosen", chosen)]
                return [
                    t.zero,
                    *b.for_(
                        t.zero,
                        used,
                        size,
                        carried,
                        one,
                        induction="first",
                        about=Stage("DrawNumbers", "Numbers of survivors."),
                    ),
                ]

            types = [b.index_type, b.f32_type, b.i32_type]
            result = b.if_(draw, ["used", "best", "chosen"], drawn, lambda: [used, best, chosen], types=types)
            return [packed, packed_lanes, values, places, *result]

        capacity = _DRAWN + up(lanes, _DRAWN)
        carried = [
            # What is packed goes from chunk to chunk, so that the lanes behind it hold something.
            ("packed", t.filled(0.0, lanes, "packed")), ("packed_lanes", t.filled(0.0, lanes, "packed_lanes")),
            ("values", t.filled(NEG_INF, capacity, "values")), ("places", t.filled(NOWHERE, capacity, "places")),
            ("used", t.zero), ("best", b.f32(NEG_INF)), ("chosen", b.i32(0)),
        ]  # fmt: skip
        return list(
            chunks.each(
                carried, body, Stage("FindGreatestDrawn", "The greatest score, among numbers drawn for survivors.")
            )
        )[-2:]

    def _greatest(self, x: ir.Value, name: str) -> ir.Value:
        """The maximum of a tile of any length."""
        lanes = length_of(x)
        return self.t.reduced("max", self.t.folded(arith.maximumf, x, lanes & -lanes), name)

    def _divisor(self, q: ir.Value) -> ir.Value:
        b = self.b
        return q if self.op.eps == 0 else b.op(arith.addf, q, b.splat(b.f32(self.op.eps), length_of(q)), name="divisor")

    def _scores(self, x: ir.Value, maximum: ir.Value, stays: ir.Value, q: ir.Value) -> ir.Value:
        """Weights over q, NaN as the greatest; -inf for what does not stay."""
        t, b = self.t, self.b
        shift = b.splat(b.op(arith.negf, maximum, name="minus_maximum"), length_of(x))
        weights = b.exp(b.op(arith.addf, x, shift, name="shifted"), "weights")
        scores = t.nan_above_inf(b.op(arith.divf, weights, self._divisor(q), name="scores"), "scores")
        return t.where(stays, scores, NEG_INF, "scores")
