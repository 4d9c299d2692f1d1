"""`ascend.filter_sample` on tiles: the filter's thresholds, then one choice among what they leave.

The thresholds are those of `apply_top_k_top_p`, found as there, by as many cores; the row that they leave is never written.
The choice takes a pass for the row's maximum and one for the scores, which loads q only beside chunks with survivors. The
sum of the weights would divide all scores alike, so it is not computed. Cores that share a row meet once more: the first
of them takes the best of their choices.

Where a core has a row to itself and k is at most 128, all is decided in the list of the row's first elements, with their
positions (`leading.py`), for which the row is read once; of q, the survivors' elements are loaded for it. A score comes from the
same operations either way, and the nucleus within the list is the filter's. Rows with NaN or infinity, and with more elements
that equal the k-th than the list holds, go the other way.

What was filtered out is never chosen, whatever its q; neither is what was -inf before. Where the maximum is infinite or NaN,
all probabilities are NaN, and the first element is chosen.
"""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith

from jascend.backends.ascend.targets import Target

from . import apply_top_k_top_p
from .apply_top_k_top_p import Filter, plan_of
from .candidates import LISTED, count_of, maximum_of
from .leading import NOWHERE, SMALL, Leading
from .lowering import lowering
from .ops import GREATEST
from .row_chunks import NEG_INF, Chunk, OneChunk, RowChunks, length_of, slice_of, with_slice
from .rows import MAX_ROW
from .site import Site

SUMMARY = "Keeps the k largest of a row and, among them, the nucleus of mass p, and samples an index from what is left."
CANDIDATES = apply_top_k_top_p.CANDIDATES

_Q = ("row", "col")
_LANES = 64  # of a tile that is reduced
_BLOCK = 8  # elements of 32 bytes
_MAXIMUM, _BEST = 2, 3  # sets of facts


def refusal(op: ir.OpView, target: Target) -> str | None:
    """Why no kernel is generated for an op; None if one is."""
    return apply_top_k_top_p.refusal(op, target)


@lowering("ascend.filter_sample", summary=SUMMARY, refusal=refusal, candidates=CANDIDATES)
def lower(op: ir.OpView, site: Site) -> None:
    """Builds the kernel body: all rows of this core."""
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
        self.producers.prepare([(self.op.q, _Q)])
        return k, p

    def ramp_lanes(self) -> int:
        return max(super().ramp_lanes(), SMALL.gathered) if self.lists_leading else super().ramp_lanes()

    @property
    def lists_leading(self) -> bool:
        """Whether there is a list of a row's first elements."""
        return self.op.k is not None and not self.plan.short and self.plan.parts == 1

    def prepare(self) -> None:
        self.leading = None
        if self.lists_leading:
            lane = self.t.ramp(self.plan.chunk, ir.IntegerType.get_signless(16), "lane")
            self.leading = Leading(self.t, self.keys, self.ramp, lane, SMALL)

    def row(self, row: ir.Value) -> list[ir.Value]:
        """A row that this core has to itself."""
        b = self.b
        if self.plan.short:
            return super().row(row)
        k, p = self.enter(row)
        if self.leading is None:
            cut, removed = self.decision(k, p)
            self.write(self.whole_row(self.plan.written), cut, removed)
            return []
        types = [ir.IntegerType.get_signless(1), b.i32_type]
        decided, chosen = b.if_(
            self.is_small(k), ["decided", "chosen"], lambda: self._in_list(k, p), lambda: [self.t.truth(False), b.i32(0)],
            types=types, about="A small k: the first elements of the row.",
        )  # fmt: skip

        def otherwise():
            cut, removed = self.decision(k, p)
            return [self._choice(self.whole_row(self.plan.written), cut, removed)]

        about = "Any other: thresholds of the whole row, then a choice among what they leave."
        (chosen,) = b.if_(decided, ["chosen"], lambda: [chosen], otherwise, types=[b.i32_type], about=about)
        self.t.store_index(chosen, self.out, row)
        return []

    # -- in the list of the first elements ----------------------------------------------------------------------

    def _in_list(self, k: ir.Value, p: ir.Value | None) -> list[ir.Value]:
        """Whether the list decides the row, and the index chosen."""
        t, b = self.t, self.b
        chunks = self.whole_row(self.plan.chunk)
        values, places = t.unpacked(self.leading.pairs(chunks, b.index(LISTED)))
        maximum, last = t.extract(values, t.zero, "maximum"), t.extract(values, b.index(LISTED - 1), "last")
        kth = t.extract(values, t.index_of(b.op(arith.subi, k, b.i32(1)), "k_minus_one"), "row_kth")
        (number,) = b.if_(
            b.cmpf("OGE", last, kth, "may_go_on"), ["number"], lambda: [count_of(t, chunks, "UGE", kth)],
            lambda: [t.count(t.compare("OGE", values, kth, "reach"), "number")], types=[b.f32_type],
        )  # fmt: skip
        decided = t.both(self._is_finite(maximum), b.cmpf("OLE", number, b.f32(LISTED), "few"), "decided")
        choose = lambda: [self._choose_listed(values, places, number, maximum, kth, p)]
        about = "All that top-k keeps is in the list."
        (chosen,) = b.if_(decided, ["chosen"], choose, lambda: [b.i32(0)], types=[b.i32_type], about=about)
        return [decided, chosen]

    def _choose_listed(self, values, places, number, maximum, kth, p) -> ir.Value:
        t, b = self.t, self.b
        cut, removed = (kth, b.f32(0.0)) if p is None else self.list.decide(values, number, kth, p)
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
        """The elements of q at the first `number` of some places, each loaded to a block of its own."""
        t, b = self.t, self.b
        self.producers.tile = _BLOCK
        self.producers.prepare([(self.op.q, _Q)])

        def one(i, blocks):
            q = self.producers.piece(self.op.q, _Q, t.index_at(places, i, "place"), t.one, 1.0)
            return [with_slice(b, blocks, q, b.op(arith.muli, i, b.index(_BLOCK), name="block"), "q_blocks")]

        carried = [("q_blocks", t.filled(1.0, LISTED * _BLOCK, "q_blocks"))]
        (blocks,) = b.for_(t.zero, number, t.one, carried, one, induction="rank", about="q of the survivors.")
        return t.take(blocks, _BLOCK, 0, 1, "q")

    # -- in the whole row ---------------------------------------------------------------------------------------

    def write_chunk(self, chunk: Chunk, cut: ir.Value, ties_left: ir.Value | None = None) -> list[ir.Value]:
        self.write(OneChunk(self.b, chunk), cut, ties_left)
        return []

    def write(self, chunks: RowChunks | OneChunk, cut: ir.Value, removed: ir.Value) -> None:
        """Chooses among what is above `cut`, and equal to it but for the first `removed` elements."""
        self.t.store_index(self._choice(chunks, cut, removed), self.out, self.row_number)

    def announce(self, part: RowChunks) -> None:
        self.maximum = maximum_of(self.t, part)
        self.searcher.cores.give([self.maximum], _MAXIMUM)

    def finish_part(self, part: RowChunks, active: ir.Value, cut: ir.Value, removed: ir.Value) -> None:
        t, b, cores = self.t, self.b, self.searcher.cores
        maximum = cores.largest(self.maximum, _MAXIMUM, 0)
        best, chosen = self._best(part, cut, removed, maximum)
        cores.give([best, b.op(arith.sitofp, b.f32_type, chosen, name="place")], _BEST)
        self.meet()

        def choose():
            _, place = cores.first_largest(_BEST)
            chosen = self._of_row(b.op(arith.fptosi, b.i32_type, place, name="place"), maximum)
            self.t.store_index(chosen, self.out, self.row_number)
            return []

        b.if_(t.both(active, b.cmpi("eq", self.part, t.zero), "is_first"), [], choose, about="The best of all parts.")

    def _choice(self, chunks: RowChunks | OneChunk, cut: ir.Value, removed: ir.Value) -> ir.Value:
        """The index chosen of a whole row (i32)."""
        maximum = maximum_of(self.t, chunks)
        _, chosen = self._best(chunks, cut, removed, maximum)
        return self._of_row(chosen, maximum)

    def _of_row(self, chosen: ir.Value, maximum: ir.Value) -> ir.Value:
        """What is chosen; the first element of a row without probabilities."""
        b = self.b
        return b.select(self._is_finite(maximum), chosen, b.i32(0), "chosen")

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
        carried = [("best", b.f32(NEG_INF)), ("chosen", b.i32(0))]

        def body(chunk: Chunk, best, chosen):
            return self._choose(chunk, cut, place, maximum, best, chosen)

        return chunks.each(carried, body, "The greatest score.")

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
        left, place = chunks.each(carried, body, "The last one of the ties that go.")
        return b.select(b.cmpf("OGT", left, b.f32(0.0)), b.f32(MAX_ROW), place, "last_removed")  # all go

    def _choose(self, chunk: Chunk, cut, place, maximum, best, chosen) -> list[ir.Value]:
        t, b, lanes = self.t, self.b, length_of(chunk.x)
        stays = t.compare("UGE", chunk.x, cut, "reaches")
        ramp = slice_of(b, self.ramp, 0, lanes)
        if self.op.p is not None:
            here = t.from_column(place, chunk.column, "last_here")
            stays = t.both(stays, t.compare("OGT", ramp, here, "is_after"))
            stays = t.either(stays, t.compare("UGT", chunk.x, cut, "exceeds"))
        stays = t.both(stays, t.compare("OLT", ramp, t.f32_of(chunk.count), "inside"), "stays")
        highest = self._greatest(t.where(stays, t.filled(1.0, lanes, "ones"), 0.0, "survivors"), "any")
        scored = b.cmpf("OGT", highest, b.f32(0.0), "has_survivors")

        def compare():
            self.producers.tile = lanes
            self.producers.prepare([(self.op.q, _Q)])
            q = self.producers.piece(self.op.q, _Q, chunk.column, chunk.count, 1.0)
            scores = self._scores(chunk.x, maximum, stays, q)
            greatest = self._greatest(scores, "greatest")

            def improve():
                first = t.find_first(t.compare("OEQ", scores, greatest, "is_greatest"), "first")
                return [greatest, t.i32_of(t.plus(chunk.column, first), "chosen")]

            types = [b.f32_type, b.i32_type]
            return b.if_(b.cmpf("OGT", greatest, best), ["best", "chosen"], improve, lambda: [best, chosen], types=types)

        return b.if_(
            scored, ["best", "chosen"], compare, lambda: [best, chosen], types=[b.f32_type, b.i32_type],
        )  # fmt: skip

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
