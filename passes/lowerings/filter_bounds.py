"""Where a row's thresholds lie, by a sorted sample of the row.

1024 elements, evenly spread over the row, tell a stretch of values in which a threshold lies but for bad luck, and a
value near it. Whether it does lie there is for the search to check; where the sample says nothing, an end is open.

The sample follows from the row and its length, so all cores of a row have the same bounds.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, math

from ..builder import Stage, tile_type
from .ops import Ops
from .row_chunks import NEG_INF, RowChunks

_RUNS, _RUN = 64, 16
SAMPLE = _RUNS * _RUN
_SIGMAS = 3.0
_UNSEEN = 5.0  # elements that a sample without any may have missed
_MANY = 64  # elements of the sample above a stretch: from here on it pays to leave them out of the list


@dataclass(frozen=True)
class Stretch:
    """Numbers that a threshold lies between.

    Attributes:
      low: the least, -inf where nothing is known.
      high: the greatest, inf where nothing is known.
      upper, middle: where to split the stretch, should it be long.
    """

    low: ir.Value
    high: ir.Value
    upper: ir.Value
    middle: ir.Value

    def parts(self) -> list[ir.Value]:
        return [self.low, self.high, self.upper, self.middle]


def sorted_sample(t: Ops, row: RowChunks) -> ir.Value:
    """A sample of a row, in ascending order."""
    b = t.b
    negated = b.op(arith.negf, row.sample(_RUNS, _RUN), name="negated_sample")
    # What goes along in the sort does not matter.
    anything = b.op(arith.bitcast, tile_type(SAMPLE, b.i32_type), negated)
    ranked, _ = t.unpacked(t.sorted(negated, anything, "sorted_sample"))
    return b.op(arith.negf, ranked, name="sample")


class Bounds:
    """What a sorted sample says about a row of `vocabulary` elements."""

    def __init__(self, t: Ops, sample: ir.Value, vocabulary: int):
        self.t, self.b, self.values, self.vocabulary = t, t.b, sample, vocabulary

    def maximum(self) -> ir.Value:
        return self.t.extract(self.values, self.b.index(SAMPLE - 1), "sample_maximum")

    def of_rank(self, k: ir.Value) -> Stretch:
        """Of the k-th largest element, for a `k` from 1 to the row's length."""
        t, b = self.t, self.b
        share = b.op(arith.mulf, b.op(arith.sitofp, b.f32_type, k), b.f32(1 / self.vocabulary), name="share")
        rank = b.op(arith.mulf, share, b.f32(SAMPLE), name="rank")
        variance = b.op(arith.mulf, rank, b.op(arith.subf, b.f32(1.0), share), name="variance")
        deviation = t.extract(math.sqrt(b.splat(variance, 8), loc=b.loc("deviations")), t.zero, "deviation")
        distance = b.op(arith.addf, b.op(arith.mulf, deviation, b.f32(_SIGMAS)), b.f32(1.0), name="distance")

        def at(rank, otherwise: float, name: str):
            exists = t.both(b.cmpf("OGE", rank, b.f32(0.0)), b.cmpf("OLT", rank, b.f32(SAMPLE)), f"has_{name}")
            place = t.minus(b.index(SAMPLE - 1), t.index_of(b.select(exists, rank, b.f32(0.0))))
            value = t.extract(self.values, place, name)
            exists = t.both(exists, b.cmpf("OEQ", value, value))
            return b.select(exists, value, b.f32(otherwise), name)

        low = at(b.op(arith.addf, rank, distance, name="low_rank"), NEG_INF, "low")
        high = at(b.op(arith.subf, rank, distance, name="high_rank"), float("inf"), "high")
        middle = at(rank, NEG_INF, "middle")
        return Stretch(low, high, middle, middle)

    def of_mass(self, weight, target: ir.Value, floor: ir.Value | None, lowest: ir.Value) -> Stretch:
        """Of the smallest element that stays if `target` is the weight of those that go, of the elements from `floor`
        on, if there is one.
        The stretch begins at `lowest` at least."""
        t, b = self.t, self.b
        with self.b.stage(Stage("SumSample", "Running sums of what the sample weighs, and of its squares.")):
            weights = weight(self.values)
            if floor is not None:
                weights = t.where(t.compare("OGE", self.values, floor, "survives"), weights, 0.0, "sample_weights")
            sums = t.running_sums(weights, "sample_sums")
            squares = t.running_sums(b.op(arith.mulf, weights, weights, name="sample_squares"), "sums_of_squares")
        spread = b.op(arith.mulf, math.sqrt(squares, loc=b.loc("deviations")), t.splat(_SIGMAS, squares), name="spread")
        share = b.op(arith.mulf, target, b.f32(SAMPLE / self.vocabulary), name="sample_target")
        # As many elements as may have been missed weigh no more each than the one above them.
        unseen = b.op(arith.mulf, weights, t.splat(_UNSEEN, weights), name="unseen")
        most = b.op(arith.addf, b.op(arith.addf, sums, spread, name="upper_sums"), unseen, name="most")
        least = b.op(arith.subf, b.op(arith.subf, sums, weights, name="sums_before"), spread, name="least")
        too_much = t.find_first(t.compare("OGT", most, share, "may_exceed"), "first_too_much")
        enough = t.find_first(t.compare("OGT", least, share, "exceeds"), "first_enough")
        likely = t.find_first(t.compare("OGT", sums, share, "is_likely"), "first_likely")
        below = b.select(b.cmpi("sgt", too_much, t.zero), t.minus(too_much, t.one), t.zero)
        low = b.select(b.cmpi("sgt", too_much, t.zero), t.extract(self.values, below, "low"), b.f32(NEG_INF))
        low = b.select(b.cmpf("OGT", low, lowest), low, lowest, "low")
        exists = b.cmpi("slt", enough, b.index(SAMPLE), "has_upper")
        upper = t.extract(self.values, b.select(exists, enough, t.zero), "upper")
        upper = b.select(exists, upper, b.f32(float("inf")), "upper")
        pays = b.cmpi("sle", enough, b.index(SAMPLE - _MANY), "leaves_many_out")
        high = b.select(pays, upper, b.f32(float("inf")), "high")
        middle = t.extract(self.values, t.smaller(likely, b.index(SAMPLE - 1)), "middle")
        return Stretch(low, high, upper, middle)
