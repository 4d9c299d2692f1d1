"""Which ranks of a nucleus may have the best score, so that nobody needs to know the elements at the others.

The score at rank r is p_r / (|q_r| + eps), and q is indexed by rank: of ranks whose elements are below a value, those
with

    p(value) / (|q_r| + eps) <= best

have no score above the best one of lower ranks, and of equal scores the one of lower rank wins. So a pass over q alone
finds the first rank that may. Whether its element is in the nucleus does not matter to that.

It also holds for the numbers as they are rounded. A quotient rounds monotonically in both of its operands, so the
rounded bound is above the rounded score if p(value) is above all rounded probabilities below the value; for the
exponential, which need not be monotonic in its last bits, p(value) is taken by `_MARGIN` greater. A bound below 0 or
NaN (of negative probabilities, of q) proves nothing.

How much that saves: the best of n ranks whose probabilities are about equal is as likely to be any of them, so that
after c ranks n more have the best score with probability n / (c + n), and less where probabilities fall.
"""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith

from ..builder import Stage
from .ops import Ops
from .sample_probabilities import Mass, Probabilities
from .sample_results import Results

_MARGIN = 2.0**-10
_NO_RANK = float(1 << 24)


class Race:
    """Builds the decision for one kernel's rows."""

    def __init__(self, t: Ops, probabilities: Probabilities, results: Results):
        self.t, self.b, self.probabilities, self.results = t, t.b, probabilities, results

    def first_rival(self, first: ir.Value, last: ir.Value, high: ir.Value, mass: Mass, best: ir.Value) -> ir.Value:
        """The first of the ranks first <= r < last, of elements below `high`, that may have a score above the best one
        (index); `last` if none may."""
        t, b, lanes = self.t, self.b, self.results.lanes
        edge = self.probabilities.of(b.splat(high, 8, "edge"), mass)
        most = t.extract(b.op(arith.mulf, edge, t.filled(1 + _MARGIN, 8)), t.zero, "most_probable")

        def some(rank, rivals):
            count = t.smaller(t.minus(last, rank), b.index(lanes), "count")
            bounds = b.op(arith.divf, b.splat(most, lanes), self.results.divisors(rank, count, lanes), name="bounds")
            may = t.compare("UGT", bounds, best, "exceeds")  # unordered: neither has NaN lost
            if not (self.probabilities.is_logits and self.results.op.eps >= 0):
                may = t.either(may, t.compare("OLT", bounds, b.f32(0.0), "is_negative"))
            ranks = b.op(arith.addf, self.results.ramp, b.splat(t.f32_of(rank), lanes), name="ranks")
            ranks = t.where(may, ranks, _NO_RANK, "rivals")
            return [b.op(arith.minimumf, rivals, ranks, name="rivals")]

        carried = [("rivals", t.filled(_NO_RANK, lanes, "rivals"))]
        about = Stage("RaceRanks", "Ranks that may have the best score.")
        (rivals,) = b.for_(first, last, b.index(lanes), carried, some, induction="rank", about=about)
        return t.smaller(t.index_of(t.reduced("min", rivals, "first")), last, "rival")
