"""What the parts of a sampled row found: lists that become one, and survivors of which the best and the last count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mlir import ir
from mlir.dialects import arith

from jascend.dialect import TILE

from ..builder import tile_type
from .leading import LARGE, Size
from .meeting import FACTS, Meeting
from .ops import Ops
from .row_chunks import NEG_INF, slice_of
from .sample_nucleus import Survivors


_SEARCH, _FOUND = range(2)  # facts


class Exchange:
    """Builds it for one kernel, at its start; `part` is this core's, `cores` the most that a launch has."""

    def __init__(self, t: Ops, part: ir.Value, parts: int, cores: int):
        self.t, self.b, self.parts, self.cores = t, t.b, parts, cores
        self.meeting = Meeting(t, part, 2 * LARGE.listed, slots=2)

    # -- rounds -------------------------------------------------------------------------------------------------

    def announce(self, searches: ir.Value, turn: ir.Value) -> None:
        """Whether this core's row has a nucleus to search for (i1)."""
        b = self.b
        self.meeting.give_facts([b.select(searches, b.f32(1.0), b.f32(0.0), "searches")], turn, _SEARCH)

    def any_searches(self, turn: ir.Value) -> ir.Value:
        """Whether any row of the round has (i1)."""
        b = self.b
        return b.cmpf("OGT", self.meeting.largest_fact(0, self.cores, turn), b.f32(0.0), "any_searches")

    # -- lists --------------------------------------------------------------------------------------------------

    def give_list(self, pairs: ir.Value, turn: ir.Value) -> None:
        self.meeting.give_list(pairs, turn)

    def take_list(self, size: Size, turn: ir.Value) -> ir.Value:
        """The first elements of the row, from the lists of all parts, in order of the parts."""
        b, lanes = self.b, 2 * size.listed
        merged = None
        part = 0
        while part < self.parts:
            taken = min(self.parts - part, 4 if merged is None else 3)
            lists = [self.meeting.take_lists(part + i, lanes, turn, lanes, "list") for i in range(taken)]
            lists = lists if merged is None else [merged, *lists]
            part += taken
            if len(lists) == 1:
                return lists[0]
            result = tile_type(len(lists) * lanes, b.f32_type)
            lists += [None] * (4 - len(lists))
            merged = b.build(TILE.classes["MergeLists"], *lists, results=[result], name="merged").value
            merged = slice_of(b, merged, 0, lanes, "leading")
        return merged

    # -- survivors ----------------------------------------------------------------------------------------------

    def give(self, found: Survivors, turn: ir.Value) -> None:
        b = self.b
        chosen = b.op(arith.sitofp, b.f32_type, found.chosen, name="chosen_number")
        self.meeting.give_facts(replace(found, chosen=chosen).parts(), turn, _FOUND)

    def take(self, turn: ir.Value, asked: Sequence[str]) -> Survivors:
        """What all parts know together of what is `asked`: the best of the lowest rank, and the last of the last
        band."""
        t, b = self.t, self.b
        facts = self.meeting.take_facts(self.parts, turn, 64 * FACTS, NEG_INF, _FOUND)
        column = {name: t.take(facts, FACTS, i, 1, name) for i, name in enumerate(asked)}
        best = t.reduced("max", column["best"], "best")
        is_best = t.compare("OEQ", column["best"], best, "is_best")
        bands = t.where(is_best, column["best_band"], float(1 << 24), "bands_of_best")
        best_band = t.reduced("min", bands, "best_band")
        winner = t.find_first(t.compare("OEQ", bands, best_band, "is_winner"), "winner")
        chosen = b.op(arith.fptosi, b.i32_type, t.extract(column["chosen"], winner, "chosen_number"), name="chosen")
        if "last_band" not in asked:
            return Survivors(best, chosen, best_band)
        last_band = t.reduced("max", column["last_band"], "last_band")
        final = t.find_first(t.compare("OEQ", column["last_band"], last_band, "is_last"), "final")
        of_last = [name for name in asked if name in ("last", "place", "number")]
        known = {name: t.extract(column[name], final, name) for name in of_last}
        return Survivors(best, chosen, best_band, last_band, **known)
