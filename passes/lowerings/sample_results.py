"""What the sampler makes of survivors: an index, or their probabilities and indices, and the logits that survive."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, math


from ..builder import Stage
from .ops import Ops
from .row_chunks import NEG_INF, Chunk, RowChunks, length_of, slice_of
from .site import Site

WORDS = 256  # indices that become 64-bit integers in one go


@dataclass(frozen=True)
class Choice:
    """The survivor of the greatest score so far (f32), and its index (i32)."""

    best: ir.Value
    index: ir.Value

    NAMES = ("best", "chosen")

    def parts(self) -> list[ir.Value]:
        return [self.best, self.index]


class Results:
    """Writes the results of the rows of one kernel, every element once. The insertion point at construction is the
    kernel's start.

    `ramp` is a float32 ramp at least as long as every tile that comes here."""

    def __init__(self, op, site: Site, t: Ops, ramp: ir.Value, vocabulary: int):
        self.op, self.t, self.b, self.ramp, self.vocabulary = op, t, t.b, ramp, vocabulary
        self.producers, self.outputs, self.lanes = site.producers, site.outputs, length_of(ramp)
        # Nothing but an index is asked for, and a score decides.
        self.is_index_alone = op.q is not None and not op.is_need_logits and not op.is_need_sample_result
        self.is_writer: ir.Value | None = None  # whether this core writes the results that a row has once
        listed = self.outputs.get("logits_idx")
        self.is_wide = listed is not None and str(ir.MemRefType(listed.type).element_type) == "i64"
        if self.is_wide:
            self._prepare_words()

    def _prepare_words(self) -> None:
        """Which lane of a tile of indices each word of as many 64-bit integers takes, and 0 for the upper ones."""
        t, b = self.t, self.b
        ramp = t.ramp(2 * WORDS, b.i32_type, "word")
        ones = b.splat(b.i32(1), 2 * WORDS, "word_ones")
        self.lane_of_word = b.op(arith.shrsi, ramp, ones, name="lane_of_word")
        self.is_lower = b.op(arith.subi, ones, b.op(arith.andi, ramp, ones, name="is_upper"), name="is_lower")

    # -- choice -------------------------------------------------------------------------------------------------

    def nothing_chosen(self) -> Choice:
        return Choice(self.b.f32(NEG_INF), self.b.i32(0))

    def take(
        self, probability: ir.Value, indices: ir.Value, number: ir.Value, rank: ir.Value, so_far: Choice
    ) -> Choice:
        """The first `number` lanes are survivors, from `rank` on in their order: writes them, or compares their scores
        with the best so far; the first one of equal scores wins. `number` is at least 1."""
        if self.op.is_need_sample_result:
            self._once(lambda: self._write(probability, indices, number, rank))
            return so_far
        t, b, lanes = self.t, self.b, length_of(probability)
        with self.b.stage(Stage("ScoreSurvivors", "The greatest score among these.")):
            scores = probability
            if self.op.q is not None:
                scores = b.op(arith.divf, probability, self.divisors(rank, number, lanes), name="scores")
            scores = t.nan_above_inf(scores, "scores")
            inside = t.compare("OLT", slice_of(b, self.ramp, 0, lanes), t.f32_of(number), "is_survivor")
            scores = t.where(inside, scores, NEG_INF, "scores")
            best = t.reduced("max", scores, "greatest")

            def improve():
                first = t.find_first(t.compare("OEQ", scores, best, "is_greatest"), "first")
                return [best, t.extract(indices, first, "chosen")]

        better = b.cmpf("OGT", best, so_far.best, "is_better")
        return Choice(*b.if_(better, Choice.NAMES, improve, so_far.parts, types=[b.f32_type, b.i32_type]))

    def divisors(self, rank: ir.Value, number: ir.Value, lanes: int) -> ir.Value:
        """What probabilities are divided by, from a rank on."""
        b, access = self.b, ("row", "col")
        self.producers.tile = lanes
        self.producers.prepare([(self.op.q, access)])
        size = b.op(math.absf, self.producers.piece(self.op.q, access, rank, number, 1.0), name="size")
        return b.op(arith.addf, size, b.splat(b.f32(self.op.eps), lanes), name="divisor")

    def choose(self, index: ir.Value, row: ir.Value) -> None:
        """The chosen index of a row (i32)."""
        self._once(lambda: self.t.store_index(index, self.outputs["logits_select_idx"], row))

    def _once(self, write: Callable[[], None]) -> None:
        """What one core alone writes."""
        if self.is_writer is None:
            write()
            return

        def writes():
            write()
            return []

        self.b.if_(self.is_writer, [], writes)

    # -- distribution -------------------------------------------------------------------------------------------

    def _write(self, probability: ir.Value, indices: ir.Value, number: ir.Value, rank: ir.Value) -> None:
        t, b = self.t, self.b
        offset = t.plus(self.row_offset, rank, "out_offset")
        t.store(probability, self.outputs["logits_sort_masked"], offset, number, once=True)
        memory = self.outputs["logits_idx"]
        if not self.is_wide:
            t.store(indices, memory, offset, number, once=True)
            return

        lanes = min(WORDS, length_of(indices))

        def some(start):
            words = t.gather(slice_of(b, indices, start, lanes), slice_of(b, self.lane_of_word, 0, 2 * lanes), "words")
            words = b.op(arith.muli, words, slice_of(b, self.is_lower, 0, 2 * lanes), name="words")
            count = t.smaller(t.minus(number, start), b.index(lanes))
            t.store(words, memory, t.plus(offset, start), count, once=True)
            return []

        b.for_(
            t.zero,
            number,
            b.index(lanes),
            [],
            some,
            induction="start",
            about=Stage("WriteWideIndices", "64-bit integers."),
        )

    def fill_up(self, number: ir.Value) -> None:
        """Zeros behind the probabilities of `number` survivors."""
        if not self.op.is_need_sample_result:
            return
        t, b, lanes = self.t, self.b, length_of(self.ramp)
        length = b.index(self.vocabulary)

        def some(start):
            zeros = t.filled(0.0, lanes, "zeros")
            count = t.smaller(t.minus(length, start), b.index(lanes))
            t.store(zeros, self.outputs["logits_sort_masked"], t.plus(self.row_offset, start), count, once=True)
            return []

        about = Stage("ClearRest", "No probability behind the survivors.")
        self._once(lambda: b.for_(number, length, b.index(lanes), [], some, induction="start", about=about))

    # -- logits in place ----------------------------------------------------------------------------------------

    def enter_row(self, row: ir.Value) -> None:
        self.row_offset = self.b.op(arith.muli, row, self.b.index(self.vocabulary), name="row_offset")

    def write_logits(self, chunk: Chunk, kept: ir.Value | None) -> None:
        """The logits of a chunk, under a mask if there is one."""
        default = NEG_INF if self.op.input_is_logits else 0.0
        masked = chunk.x if kept is None else self.t.where(kept, chunk.x, default, "masked_logits")
        offset = self.t.plus(self.row_offset, chunk.column, "masked_offset")
        self.t.store(masked, self.outputs["logits_top_kp_select"], offset, chunk.count, once=True)

    def write_leading_logits(self, chunks: RowChunks, last: ir.Value, place: ir.Value) -> None:
        """The logits down to a value in descending order, of elements equal to it those up to a position (f32)."""
        t, b = self.t, self.b
        is_number = b.cmpf("OEQ", last, last, "is_number")
        bound = b.select(is_number, last, b.f32(float("inf")), "bound")
        # Above a number all stay. Above +inf there is NaN: where the last one is NaN, those before it stay, and no
        # number.
        everywhere = b.f32(float(self.vocabulary))
        above_until = b.select(is_number, everywhere, place, "above_until")
        equal_until = b.select(is_number, place, b.f32(-1.0), "equal_until")

        def body(chunk: Chunk):
            def stays(predicate, until, name):
                here = t.from_column(until, chunk.column, f"{name}_here")
                early = t.compare("OLE", self.ramp, here, "early")
                return t.both(t.compare(predicate, chunk.x, bound, name), early, f"{name}_stays")

            kept = t.either(stays("UGT", above_until, "exceeds"), stays("OEQ", equal_until, "equals"), "stays")
            self.write_logits(chunk, kept)
            return []

        chunks.each([], body, Stage("WriteSurvivors", "The logits of survivors, in place."))
