"""Which bands of a nucleus cannot have the best score, so that nobody needs to know their elements.

The score at rank r is p_r / (|q_r| + eps), and q is indexed by rank: of a band with the ranks first <= r < last and elements below
`high`, two counts and a pass over its part of q give

    bound = p(high) / min(|q_r| + eps for first <= r < last),

above which no score in the band is. Where the bound is at most the best score of lower ranks, the band has no winner: of equal
scores the one of lower rank wins. Whether all of the band is in the nucleus does not matter to that.

It also holds for the numbers as they are rounded. A quotient rounds monotonically in both of its operands, so the rounded bound is
above the rounded scores if p(high) is above all rounded probabilities of the band; for the exponential, which need not be monotonic
in its last bits, p(high) is taken by `_MARGIN` greater. A divisor that is not above 0, or NaN, and a bound below 0 or NaN (of negative
probabilities, a row with NaN) prove nothing.

How much that saves: the best of n ranks whose probabilities are about equal is as likely to be any of them, so that after c ranks a
band of n more has the best score with probability n / (c + n), and less where probabilities fall.
"""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith

from .ops import Ops
from .row_chunks import Chunk
from .sample_probabilities import Mass, Probabilities
from .sample_results import Results

_MARGIN = 2.0**-10


class Race:
    """Builds the decision for one kernel's rows."""

    def __init__(self, t: Ops, probabilities: Probabilities, results: Results):
        self.t, self.b, self.probabilities, self.results = t, t.b, probabilities, results

    def ranks(self, chunks, high: ir.Value, low: ir.Value) -> list[ir.Value]:
        """How many elements of a row or a list reach each of two values."""
        t, b, lanes = self.t, self.b, chunks.chunk
        ones = t.filled(1.0, lanes, "ones")

        def body(chunk: Chunk, first, last):
            return [
                b.op(arith.addf, numbers, t.where(t.compare("OGE", chunk.x, edge, "reaches"), ones, 0.0, "reaching_ones"), name=name)
                for numbers, edge, name in ((first, high, "first"), (last, low, "last"))
            ]

        carried = [(name, t.filled(0.0, lanes, name)) for name in ("first", "last")]
        first, last = chunks.each(carried, body, "How many reach either end of the band.")
        return [t.index_of(t.reduced("add", numbers, name), f"{name}_rank") for numbers, name in ((first, "first"), (last, "last"))]

    def can_win(self, first: ir.Value, last: ir.Value, high: ir.Value, mass: Mass, best: ir.Value) -> ir.Value:
        """Whether one of the ranks first <= r < last, of elements below `high`, can have a score above the best one (index)."""
        t, b = self.t, self.b
        least = self.results.least_divisor(first, last)
        edge = self.probabilities.of(b.splat(high, 8, "edge"), mass)
        most = b.op(arith.mulf, edge, t.filled(1 + _MARGIN, 8), name="most_probable")
        bound = t.extract(b.op(arith.divf, most, b.splat(least, 8), name="bound"), t.zero, "bound")
        is_proof = t.both(b.cmpf("OGT", least, b.f32(0.0)), b.cmpf("OGE", bound, b.f32(0.0)))
        return b.select(t.both(is_proof, b.cmpf("OLE", bound, best)), t.zero, t.one, "can_win")
