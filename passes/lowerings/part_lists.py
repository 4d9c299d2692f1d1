"""The lists of the largest elements of a row, of which each core that shares the row has one: as one list of all."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir
from mlir.dialects import arith

from ..builder import Stage, up
from .candidates import LISTED, Largest
from .meeting import FACTS, Meeting
from .ops import Ops
from .row_chunks import NEG_INF, length_of

_PAIRS = 2 * LISTED  # lanes of a list


def merged_lists(t: Ops, pairs: ir.Value) -> ir.Value:
    """The list of a row, from those of its parts."""
    lists = length_of(pairs) // _PAIRS
    while lists > 1:
        ways = min(lists, 4)
        pairs = t.make("Merge", pairs, length=length_of(pairs), name="merged", run=LISTED, ways=ways)
        pairs = t.take(pairs, ways * _PAIRS, 0, _PAIRS, "heads")
        lists //= ways
    return pairs


class OwnList:
    """The list of a row that one core has to itself."""

    def __init__(self, t: Ops, largest: Largest):
        self.t, self.largest = t, largest

    def merged(self) -> ir.Value:
        return self.largest.pairs

    def reaching(self, kth: ir.Value) -> tuple[ir.Value, ir.Value]:
        t = self.t
        values, _ = t.unpacked(self.largest.pairs)
        listed = t.count(t.compare("OGE", values, kth, "reach"), "reach")
        return self.largest.nans, t.b.op(arith.addf, listed, self.largest.missing, name="number")

    def own_share(self, cut: ir.Value, removed: ir.Value) -> ir.Value:
        return removed


class ListExchange:
    """The lists of all parts of a row, through global memory."""

    def __init__(self, t: Ops, parts: int, part: ir.Value, slots: int):
        self.t, self.parts, self.part = t, parts, part
        self.meeting = Meeting(t, part, _PAIRS, slots)

    def give(self, largest: Largest, turn: ir.Value) -> None:
        self.meeting.give_list(largest.pairs, turn)
        self.meeting.give_facts([largest.kth, largest.missing, largest.nans, self.t.b.f32(0.0)], turn)

    def take(self, turn: ir.Value) -> PartLists:
        facts = self.meeting.take_facts(self.parts, turn, self.parts * FACTS)
        return PartLists(self.t, self.parts, self.part, self.take_pairs(turn), facts)

    def take_pairs(self, turn: ir.Value) -> ir.Value:
        """The lists of all parts, one behind the other."""
        lists = self.parts if self.parts <= 4 else up(self.parts, 4)
        return self.meeting.take_lists(0, self.parts * _PAIRS, turn, lists * _PAIRS, "lists", NEG_INF)


class PartLists:
    """The lists of all parts of a row."""

    def __init__(self, t: Ops, parts: int, part: ir.Value, pairs: ir.Value, facts: ir.Value):
        self.t, self.b, self.parts, self.part, self.pairs, self.facts = t, t.b, parts, part, pairs, facts
        self.values, _ = t.unpacked(pairs)

    def merged(self) -> ir.Value:
        return merged_lists(self.t, self.pairs)

    def reaching(self, kth: ir.Value) -> tuple[ir.Value, ir.Value]:
        """How many NaN the row has, and how many elements that reach its k-th largest."""
        t, b = self.t, self.b
        listed = t.count(t.compare("OGE", self.values, kth, "reach"), "reach")

        def add(i, nans, number):
            part_kth, missing, part_nans = self._facts(i)
            more = b.select(b.cmpf("OEQ", part_kth, kth), missing, b.f32(0.0), "more")
            return [b.op(arith.addf, nans, part_nans, name="nans"), b.op(arith.addf, number, more, name="number")]

        carried = [("nans", b.f32(0.0)), ("number", listed)]
        return tuple(b.for_(b.index(0), b.index(self.parts), b.index(1), carried, add, induction="other"))

    def own_share(self, cut: ir.Value, removed: ir.Value) -> ir.Value:
        """How many of the removed elements are behind the parts in front of this one."""
        t, b = self.t, self.b

        def behind():
            ones = t.where(
                t.compare("OEQ", self.values, cut, "equal"), t.filled(1.0, length_of(self.values)), 0.0, "equal_ones"
            )
            counts = t.reduce("add", ones, LISTED, "equal_counts")

            def subtract(i, left):
                listed = t.extract(counts, i, "listed")
                part_kth, missing, _ = self._facts(i)
                more = b.select(b.cmpf("OEQ", part_kth, cut), missing, b.f32(0.0), "more")
                return [b.op(arith.subf, left, b.op(arith.addf, listed, more), name="left")]

            return b.for_(b.index(0), self.part, b.index(1), [("left", removed)], subtract, induction="other")

        return b.if_(
            b.cmpf("OGT", removed, b.f32(0.0)), ["own_removed"], behind, lambda: [removed], types=[b.f32_type],
            about=Stage("CountOwnTies", "Ties go by position: the parts in front of this one lose theirs first."),
        )[0]  # fmt: skip

    def _facts(self, part: ir.Value) -> Sequence[ir.Value]:
        """The k-th largest of a part, how many equal to it its list lacks, and how many NaN there are."""
        t, b = self.t, self.b
        cell = t.times(part, FACTS, "cell")
        names = "part_kth", "unlisted", "part_nans"
        return [t.extract(self.facts, t.plus(cell, b.index(i)), name) for i, name in enumerate(names)]
