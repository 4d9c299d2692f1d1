"""`ascend.filter_sample` without a filter, with a key: an index drawn from all of a row, which is read once.

The index with the greatest p / q, where q are exponential numbers, is that with the greatest x - log(q), whatever the
row's maximum and mass are: `-log(q)` is Gumbel noise, and this is what `jax.random.categorical` compares. Numbers are
drawn beside each chunk of the row, at some 340 cycles for 64 of them, and never stored; so where there are fewer rows
than cores, several share a row, and the first of them takes the best of their choices.

An element's score follows from its value and its place alone: not from chunks, or from who shares the row.
"""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith, math

from jascend.dialect import TILE

from ..builder import Stage, up
from .meeting import FACTS, Meeting
from .ops import Ops
from .row_chunks import NEG_INF, Chunk, RowChunks, length_of
from .rows import each_round, each_row
from .site import PART_UNIT, Site
from .threefry import Draws, key_of

_LANES = 64
_INF = float("inf")
_FOUND = ("best", "chosen", "highest")  # a score, the place that has it, and the row's maximum, +inf where there is NaN


class DrawnRows:
    """Builds the rows of one kernel."""

    def __init__(self, op, site: Site):
        self.op, self.site, self.producers, self.b = op, site, site.producers, site.b
        logits = ir.RankedTensorType(op.logits.type)
        self.vocabulary = logits.get_dim_size(1)
        self.parts = site.parts_of_row(logits)
        self.part_length = up(-(-self.vocabulary // self.parts), PART_UNIT) if self.parts > 1 else self.vocabulary
        self.chunk = min(site.tile, up(self.part_length, _LANES))
        self.out = site.outputs["index"]
        site.deal_out(self.out)
        shared = f" over {self.parts} cores each" * (self.parts > 1)
        site.remarks.append(f"rows of {self.vocabulary}{shared}, in chunks of {self.chunk}; a number for every element")

    def build(self) -> None:
        b = self.b
        share = b.build(TILE.classes["BlockRows"], self.site.rows, results=[b.index_type] * 4, parts=self.parts)
        self.t = t = Ops(b)
        self.length = b.index(self.vocabulary, "row_length")
        self.ramp = t.ramp(self.chunk, b.f32_type, "ramp")
        self.lane = t.ramp(self.chunk, b.i32_type, "lane")
        self.draws = Draws(t, self.op, self.vocabulary)
        if self.parts == 1:
            each_row(t, share, self.row)
            return
        self.part = share.part
        self.meeting = Meeting(t, share.part, 0)
        each_round(t, self.site, share, self.split_row)

    # -- rows ---------------------------------------------------------------------------------------------------

    def row(self, row: ir.Value) -> list[ir.Value]:
        """A row that this core has to itself."""
        self.enter(row)
        _, chosen, highest = self.race(self.t.zero, self.length)
        self.write(chosen, highest, row)
        return []

    def split_row(self, row: ir.Value, turn: ir.Value, active: ir.Value) -> None:
        """This core's part of a row; the first core of the group decides."""
        t, b = self.t, self.b
        self.enter(row)
        start = t.times(self.part, self.part_length, "part_start")
        end = t.smaller(t.plus(start, b.index(self.part_length)), self.length, "part_end")
        nothing = lambda: [b.f32(NEG_INF), b.i32(0), b.f32(NEG_INF)]
        types = [b.f32_type, b.i32_type, b.f32_type]
        best, chosen, highest = b.if_(active, list(_FOUND), lambda: self.race(start, end), nothing, types=types)
        self.meeting.give_facts([best, b.op(arith.sitofp, b.f32_type, chosen, name="place"), highest], turn)
        b.build(TILE.classes["SyncAll"])

        def decide():
            _, place, highest = self.best_of_parts(turn)
            self.write(b.op(arith.fptosi, b.i32_type, place, name="chosen"), highest, row)
            return []

        is_first = t.both(active, b.cmpi("eq", self.part, t.zero), "is_first")
        b.if_(is_first, [], decide, about=Stage("ChooseBest", "The best of all parts."))

    def enter(self, row: ir.Value) -> None:
        self.producers.tile = self.chunk
        self.producers.enter_row(row, [(self.op.logits, ("row", "col"))])
        self.draws.enter_row(key_of(self.t, self.producers, self.op.key), row)
        self.producers.tile = self.chunk

    def write(self, chosen: ir.Value, highest: ir.Value, row: ir.Value) -> None:
        """The index of a row; the first one where there are no probabilities."""
        t, b = self.t, self.b
        is_finite = t.both(b.cmpf("OLT", highest, b.f32(_INF)), b.cmpf("OGT", highest, b.f32(NEG_INF)), "is_finite")
        t.store_index(b.select(is_finite, chosen, b.i32(0), "chosen"), self.out, row)

    # -- the race -----------------------------------------------------------------------------------------------

    def race(self, start: ir.Value, end: ir.Value) -> list[ir.Value]:
        """What is `_FOUND` in a stretch: f32, i32, f32."""
        t, b = self.t, self.b
        chunks = RowChunks(
            b, self.producers, self.op.logits, start, end, chunk=self.chunk, length=self.part_length, ramp=self.ramp
        )

        def body(chunk: Chunk, best, chosen, maxima):
            x = chunk.x
            number_or_inf = t.where(b.cmpf("OEQ", x, x, "is_number"), x, _INF, "x_or_inf")
            maxima = b.op(arith.maximumf, maxima, t.folded(arith.maximumf, number_or_inf, _LANES), name="maxima")
            scores = t.where(t.compare("OGT", x, b.f32(NEG_INF), "is_possible"), self.scores(chunk), NEG_INF, "scores")
            greatest = t.reduced("max", t.folded(arith.maximumf, scores, _LANES), "greatest")

            def improve():
                first = t.find_first(t.compare("OEQ", scores, greatest, "is_greatest"), "first")
                return [greatest, t.i32_of(t.plus(chunk.column, first), "chosen")]

            is_better = b.cmpf("OGT", greatest, best, "is_better")
            types = [b.f32_type, b.i32_type]
            return [*b.if_(is_better, ["best", "chosen"], improve, lambda: [best, chosen], types=types), maxima]

        carried = [("best", b.f32(NEG_INF)), ("chosen", b.i32(0)), ("maxima", t.filled(NEG_INF, _LANES, "maxima"))]
        best, chosen, maxima = chunks.each(
            carried, body, Stage("FindGreatestScore", "The greatest score, with a number drawn for every element.")
        )
        return [best, chosen, t.reduced("max", maxima, "highest")]

    def scores(self, chunk: Chunk) -> ir.Value:
        t, b = self.t, self.b
        places = b.op(arith.addi, self.lane, t.splat(t.i32_of(chunk.column), self.lane), name="places")
        q = self.draws.numbers(places)
        if self.op.eps:
            q = b.op(arith.addf, q, b.splat(b.f32(self.op.eps), length_of(q)), name="divisor")
        noise = b.op(arith.negf, b.op(math.log, q, name="log"), name="noise")
        return b.op(arith.addf, chunk.x, noise, name="scores")

    def best_of_parts(self, turn: ir.Value) -> list[ir.Value]:
        """What is `_FOUND` in the whole row, the place in float32; of equal scores the first."""
        t, b = self.t, self.b
        facts = self.meeting.take_facts(self.parts, turn, up(self.parts * FACTS, _LANES), 0.0)

        def fact(part: ir.Value, which: int) -> ir.Value:
            return t.extract(facts, t.plus(self.t.times(part, FACTS), b.index(which)), _FOUND[which])

        def better(part, best, chosen, highest):
            other = [fact(part, which) for which in range(len(_FOUND))]
            is_better = b.cmpf("OGT", other[0], best, "is_better")
            is_higher = b.cmpf("OGT", other[2], highest, "is_higher")
            return [
                b.select(is_better, other[0], best, "best"), b.select(is_better, other[1], chosen, "chosen"),
                b.select(is_higher, other[2], highest, "highest"),
            ]  # fmt: skip

        first = [(name, t.extract(facts, b.index(i), name)) for i, name in enumerate(_FOUND)]
        return list(b.for_(t.one, b.index(self.parts), t.one, first, better, induction="other"))
