"""The nucleus of the filter inside a sorted list of all that top-k kept.

The list is in descending order. Its weights, from the small end on, are added up; an element goes as long as the running
sum up to and including it is at most `(1 - p) * total`, the largest never. Equal elements are next to each other in the
list, whichever of them stands for which position: how many of them go is all that the list decides.

Sums run over the list and nothing else, by a fixed tree, so their bits do not depend on how the list came about.
"""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith

from jascend.dialect import TILE

from ..builder import Builder, tile_type
from .candidates import count_of
from .row_chunks import NEG_INF

_EXPONENT = 0x7F800000


class ListNucleus:
    """Decides within lists of `lanes` values. The insertion point at construction is that of the tiles it needs throughout."""

    def __init__(self, b: Builder, lanes: int):
        self.b, self.lanes = b, lanes
        self.ramp = b.build(TILE.classes["Iota"], results=[tile_type(lanes, b.f32_type)], name="rank").value
        self.order = b.build(TILE.classes["Iota"], results=[tile_type(lanes, b.i32_type)], name="rank_number").value
        ends = b.splat(b.i32(lanes - 1), lanes)
        self.reverse = b.op(arith.subi, ends, self.order, name="reverse")
        self.ones = b.splat(b.f32(1.0), lanes, "list_ones")

    def decide(self, values: ir.Value, number: ir.Value, floor: ir.Value, p: ir.Value) -> tuple[ir.Value, ir.Value]:
        """The smallest value that stays, and how many of the elements equal to it go (f32).

        Args:
          values: in descending order.
          number: how many elements top-k keeps (f32); those of them that the list lacks equal `floor`.
          floor: the k-th largest element, or -inf.
        """
        b = self.b
        largest = self._extract(values, b.index(0), "maximum")
        rest = b.op(arith.subf, b.f32(1.0), p, name="one_minus_p")
        exponent = b.op(arith.andi, b.bits_of_float(largest), b.i32(_EXPONENT))
        finite = b.cmpi("ne", exponent, b.i32(_EXPONENT))
        active = b.op(arith.andi, finite, b.cmpf("OGE", rest, b.f32(0.0)), name="top_p_enabled")
        return tuple(
            b.if_(
                active, ["cut", "removed"], lambda: self._nucleus(values, number, floor, largest, rest),
                lambda: [floor, b.f32(0.0)], types=[b.f32_type] * 2, about="Top-p, within the list.",
            )
        )  # fmt: skip

    def _nucleus(self, values, number, floor, largest, rest) -> list[ir.Value]:
        b, lanes = self.b, self.lanes
        listed = b.cmpf("OLT", self.ramp, b.splat(number, lanes), "listed")
        values = b.op(arith.maximumf, values, b.splat(floor, lanes), name="survivors")
        values = b.select(listed, values, b.splat(b.f32(NEG_INF), lanes), "survivors")
        shift = b.op(arith.negf, largest, name="minus_maximum")
        weights = b.exp(b.op(arith.addf, values, b.splat(shift, lanes), name="shifted"), "weights")
        ascending = b.build(TILE.classes["Gather"], weights, self.reverse, results=[weights.type], name="ascending").value
        sums = b.build(TILE.classes["Cumsum"], ascending, results=[ascending.type], group=lanes, name="running_sums").value
        total = self._extract(sums, b.index(lanes - 1), "total")
        target = b.op(arith.mulf, rest, total, name="target")
        exceeds = b.cmpf("OGT", sums, b.splat(target, lanes), "exceeds")
        first = b.build(TILE.classes["FindFirst"], exceeds, results=[b.index_type], name="first_kept").position
        # Where the sums stay below the target, the largest element is left.
        found = b.cmpi("slt", first, b.index(lanes))
        last = b.select(found, b.op(arith.subi, b.index(lanes - 1), first), b.index(0), "last_kept")
        smallest = self._extract(values, last, "smallest")
        reach = count_of(b, b.cmpf("OGE", values, b.splat(smallest, lanes), "reach"), self.ones, "reach")
        kept = b.op(arith.addi, b.op(arith.index_cast, b.i32_type, last), b.i32(1))
        removed = b.op(arith.subf, reach, b.op(arith.sitofp, b.f32_type, kept), name="removed")
        return [smallest, removed]

    def _extract(self, tile: ir.Value, position: ir.Value, name: str) -> ir.Value:
        return self.b.build(TILE.classes["Extract"], tile, position, results=[self.b.f32_type], name=name).scalar
