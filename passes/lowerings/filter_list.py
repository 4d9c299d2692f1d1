"""The nucleus of the filter inside a sorted list of all that top-k kept.

The list is in descending order. Its weights, from the small end on, are added up; an element goes as long as the
running sum up to and including it is at most `(1 - p) * total`, the largest never. Equal elements are next to each
other in the list, whichever of them stands for which position: how many of them go is all that the list decides.

Copies of the smallest value may be too many for the list. They are the first that would go, so their number is enough.

Sums run over the list and nothing else, by a fixed tree, so their bits do not depend on how the list came about.
"""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith

from ..builder import Stage
from .ops import Ops
from .row_chunks import NEG_INF

_EXPONENT = 0x7F800000


class ListNucleus:
    """Decides within lists of `lanes` values. The insertion point at construction is that of the tiles it needs
    throughout."""

    def __init__(self, t: Ops, lanes: int):
        self.t, self.b, self.lanes = t, t.b, lanes
        self.ramp = t.ramp(lanes, t.b.f32_type, "rank")
        self.order = t.ramp(lanes, t.b.i32_type, "rank_number")
        self.reverse = t.b.op(arith.subi, t.splat(lanes - 1, self.order), self.order, name="reverse")
        self.ones = t.filled(1.0, lanes, "list_ones")

    def decide(self, values: ir.Value, number: ir.Value, floor: ir.Value, p: ir.Value) -> tuple[ir.Value, ir.Value]:
        """The smallest value that stays, and how many of the elements equal to it go (f32).

        Args:
          values: in descending order.
          number: how many elements top-k keeps (f32); those of them that the list lacks equal `floor`, and so does its
            last one if there are any.
          floor: the k-th largest element, or -inf.
        """
        b = self.b
        largest = self.t.extract(values, b.index(0), "maximum")
        rest = b.op(arith.subf, b.f32(1.0), p, name="one_minus_p")
        exponent = b.op(arith.andi, b.bits_of_float(largest), b.i32(_EXPONENT))
        finite = b.cmpi("ne", exponent, b.i32(_EXPONENT))
        active = b.op(arith.andi, finite, b.cmpf("OGE", rest, b.f32(0.0)), name="top_p_enabled")
        return tuple(
            b.if_(
                active, ["cut", "removed"], lambda: self._nucleus(values, number, floor, largest, rest),
                lambda: [floor, b.f32(0.0)], types=[b.f32_type] * 2,
                about=Stage("FindTopPInList", "Top-p, within the list."),
            )
        )  # fmt: skip

    def _nucleus(self, values, number, floor, largest, rest) -> list[ir.Value]:
        t, b, lanes = self.t, self.b, self.lanes
        with self.b.stage(Stage("WeighList", "What the elements of the list weigh, summed from the smallest on.")):
            listed = t.compare("OLT", self.ramp, number, "listed")
            values = b.op(arith.maximumf, values, b.splat(floor, lanes), name="survivors")
            values = t.where(listed, values, NEG_INF, "survivors")
            shift = b.op(arith.negf, largest, name="minus_maximum")
            weights = b.exp(b.op(arith.addf, values, b.splat(shift, lanes), name="shifted"), "weights")
            sums = t.running_sums(t.gather(weights, self.reverse, "ascending"), "running_sums")
        beyond = b.op(arith.subf, number, b.f32(lanes), name="beyond")
        beyond = b.select(b.cmpf("OGT", beyond, b.f32(0.0)), beyond, b.f32(0.0), "unlisted")
        each = t.extract(sums, b.index(0), "smallest_weight")
        mass = b.op(arith.mulf, beyond, each, name="unlisted_mass")
        total = b.op(arith.addf, t.extract(sums, b.index(lanes - 1), "listed_mass"), mass, name="total")
        target = b.op(arith.mulf, rest, total, name="target")

        def among_the_unlisted():
            whole = b.op(arith.fptosi, b.i32_type, b.op(arith.divf, target, each, name="quotient"))
            return [floor, b.op(arith.sitofp, b.f32_type, whole, name="removed")]

        def within_the_list():
            left = b.op(arith.subf, target, mass, name="left")
            first = t.find_first(t.compare("OGT", sums, left, "exceeds"), "first_kept")
            # Where the sums stay below the target, the largest element is left.
            found = b.cmpi("slt", first, b.index(lanes))
            last = b.select(found, b.op(arith.subi, b.index(lanes - 1), first), b.index(0), "last_kept")
            smallest = t.extract(values, last, "smallest")
            reach = t.count(t.compare("OGE", values, smallest, "reach"), "reach", self.ones)
            copies = b.select(b.cmpf("OEQ", smallest, floor), beyond, b.f32(0.0), "copies")
            reach = b.op(arith.addf, reach, copies, name="all_reach")
            kept = b.op(arith.addi, b.op(arith.index_cast, b.i32_type, last), b.i32(1))
            removed = b.op(arith.subf, reach, b.op(arith.sitofp, b.f32_type, kept), name="removed")
            return [smallest, removed]

        return b.if_(
            b.cmpf("OGT", mass, target, "ends_among_unlisted"), ["cut", "removed"], among_the_unlisted, within_the_list,
            types=[b.f32_type] * 2,
        )  # fmt: skip
