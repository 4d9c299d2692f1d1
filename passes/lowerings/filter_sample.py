"""`ascend.filter_sample` on tiles: the filter's thresholds, then one choice among what they leave.

The thresholds are those of `apply_top_k_top_p`, found as there, by as many cores; the row that they leave is never written.
The choice takes a pass for the row's maximum and one for the scores, which loads q only beside chunks with survivors. The
sum of the weights would divide all scores alike, so it is not computed. Cores that share a row meet once more: the first
of them takes the best of their choices.
"""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith

from jascend.backends.ascend.targets import Target

from . import apply_top_k_top_p
from .apply_top_k_top_p import Filter, plan_of
from .candidates import maximum_of
from .filter_search import MAX_VOCABULARY
from .lowering import lowering
from .row_chunks import NEG_INF, Chunk, OneChunk, RowChunks, length_of, slice_of
from .site import Site

SUMMARY = "Keeps the k largest of a row and, among them, the nucleus of mass p, and samples an index from what is left."
CANDIDATES = apply_top_k_top_p.CANDIDATES

_Q = ("row", "col")
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

    def write_chunk(self, chunk: Chunk, cut: ir.Value, ties_left: ir.Value | None = None) -> list[ir.Value]:
        self.write(OneChunk(self.b, chunk), cut, ties_left)
        return []

    def write(self, chunks: RowChunks | OneChunk, cut: ir.Value, removed: ir.Value) -> None:
        """Chooses among what is above `cut`, and equal to it but for the first `removed` elements."""
        _, chosen = self._best(chunks, cut, removed, maximum_of(self.t, chunks))
        self.t.store_index(chosen, self.out, self.row_number)

    def announce(self, part: RowChunks) -> None:
        self.maximum = maximum_of(self.t, part)
        self.searcher.cores.give([self.maximum], _MAXIMUM)

    def finish_part(self, part: RowChunks, active: ir.Value, cut: ir.Value, removed: ir.Value) -> None:
        t, b, cores = self.t, self.b, self.searcher.cores
        best, chosen = self._best(part, cut, removed, cores.largest(self.maximum, _MAXIMUM, 0))
        cores.give([best, b.op(arith.sitofp, b.f32_type, chosen, name="place")], _BEST)
        self.meet()

        def choose():
            _, place = cores.first_largest(_BEST)
            self.t.store_index(b.op(arith.fptosi, b.i32_type, place, name="chosen"), self.out, self.row_number)
            return []

        b.if_(t.both(active, b.cmpi("eq", self.part, t.zero), "is_first"), [], choose, about="The best of all parts.")

    def _best(self, chunks: RowChunks, cut: ir.Value, removed: ir.Value, maximum: ir.Value) -> list[ir.Value]:
        """The greatest score of a stretch, and its place (i32)."""
        b = self.b
        place = b.f32(-1.0)
        if self.op.p is not None:
            (place,) = b.if_(
                b.cmpf("OGT", removed, b.f32(0.0), "has_ties"), ["last_removed"],
                lambda: [self._last_removed(chunks, cut, removed)], lambda: [b.f32(-1.0)], types=[b.f32_type],
            )  # fmt: skip
        carried = [("best", b.f32(NEG_INF)), ("chosen", b.i32(0))]

        def body(chunk: Chunk, best, chosen):
            return self._choose(chunk, cut, place, maximum, best, chosen)

        return chunks.each(carried, body, "The greatest score of a survivor.")

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
        return b.select(b.cmpf("OGT", left, b.f32(0.0)), b.f32(MAX_VOCABULARY), place, "last_removed")  # all go

    def _choose(self, chunk: Chunk, cut, place, maximum, best, chosen) -> list[ir.Value]:
        t, b, lanes = self.t, self.b, length_of(chunk.x)
        stays = t.compare("UGE", chunk.x, cut, "reaches")
        ramp = slice_of(b, self.ramp, 0, lanes)
        if self.op.p is not None:
            here = t.from_column(place, chunk.column, "last_here")
            stays = t.both(stays, t.compare("OGT", ramp, here, "is_after"))
            stays = t.either(stays, t.compare("UGT", chunk.x, cut, "exceeds"))
        stays = t.both(stays, t.compare("OLT", ramp, t.f32_of(chunk.count), "inside"), "stays")
        highest = t.reduced("max", t.where(stays, t.filled(1.0, lanes, "ones"), 0.0, "survivors"), "any")

        def compare():
            shift = b.splat(b.op(arith.negf, maximum, name="minus_maximum"), lanes)
            weights = b.exp(b.op(arith.addf, chunk.x, shift, name="shifted"), "weights")
            self.producers.tile = lanes
            self.producers.prepare([(self.op.q, _Q)])
            q = self.producers.piece(self.op.q, _Q, chunk.column, chunk.count, 1.0)
            divisor = q if self.op.eps == 0 else b.op(arith.addf, q, b.splat(b.f32(self.op.eps), lanes), name="divisor")
            scores = b.op(arith.divf, weights, divisor, name="scores")
            scores = t.where(b.cmpf("OEQ", scores, scores, "is_number"), scores, float("inf"), "scores")
            scores = t.where(stays, scores, NEG_INF, "scores")
            greatest = t.reduced("max", scores, "greatest")

            def improve():
                first = t.find_first(t.compare("OEQ", scores, greatest, "is_greatest"), "first")
                return [greatest, t.i32_of(t.plus(chunk.column, first), "chosen")]

            types = [b.f32_type, b.i32_type]
            return b.if_(b.cmpf("OGT", greatest, best), ["best", "chosen"], improve, lambda: [best, chosen], types=types)

        return b.if_(
            b.cmpf("OGT", highest, b.f32(0.0), "has_survivors"), ["best", "chosen"], compare, lambda: [best, chosen],
            types=[b.f32_type, b.i32_type],
        )  # fmt: skip
