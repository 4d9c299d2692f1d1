"""What the cores that share a row tell each other, through global memory.

Every core has cells of its own, two sets that take turns: a core that is a round ahead overwrites nothing that is still
read. The cells of the cores of a group lie one after the other.
"""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith

from jascend.dialect import TILE

from ..builder import tile_type
from .leading import LARGE, Size
from .ops import Ops
from .row_chunks import NEG_INF, length_of, slice_of
from .sample_nucleus import Survivors

_FACTS = 8  # lanes of a cell of numbers
_LIST = 2 * LARGE.listed  # lanes of a cell of pairs


class Exchange:
    """Builds it for one kernel, at its start; `part` is this core's."""

    def __init__(self, t: Ops, part: ir.Value, parts: int):
        self.t, self.b, self.parts = t, t.b, parts
        self.lists, self.facts = self._workspace("lists", _LIST), self._workspace("facts", _FACTS)
        self.core, self.cores = self.b.build(TILE.classes["Core"], results=[self.b.index_type] * 2).operation.results
        self.first = t.minus(self.core, part, "first_core")
        self.lane = t.ramp(64, self.b.f32_type, "fact_lane")

    def _workspace(self, name: str, elements: int) -> ir.Value:
        elements *= 2
        shape = [ir.ShapedType.get_dynamic_size(), elements]
        memory = ir.MemRefType.get(shape, self.b.f32_type, memory_space=ir.StringAttr.get("gm"))
        build = TILE.classes["Workspace"].build
        return build(results=[memory], elements=elements, per="core", name=name, loc=self.b.loc(name)).memory

    def _offset(self, core: ir.Value, turn: ir.Value, elements: int) -> ir.Value:
        t, b = self.t, self.b
        cell = t.plus(b.op(arith.muli, b.op(arith.andi, turn, t.one, name="turn"), self.cores), core, "cell")
        return b.op(arith.muli, cell, b.index(elements))

    # -- lists --------------------------------------------------------------------------------------------------

    def give_list(self, pairs: ir.Value, turn: ir.Value) -> None:
        self.t.store(pairs, self.lists, self._offset(self.core, turn, _LIST), self.b.index(length_of(pairs)))

    def take_list(self, size: Size, turn: ir.Value) -> ir.Value:
        """The first elements of the row, from the lists of all parts, in order of the parts."""
        b, lanes = self.b, 2 * size.listed
        merged = None
        part = 0
        while part < self.parts:
            taken = min(self.parts - part, 4 if merged is None else 3)
            lists = [self._list(part + i, lanes, turn) for i in range(taken)]
            lists = lists if merged is None else [merged, *lists]
            part += taken
            if len(lists) == 1:
                return lists[0]
            result = tile_type(len(lists) * lanes, b.f32_type)
            lists += [None] * (4 - len(lists))
            merged = b.build(TILE.classes["MergeLists"], *lists, results=[result], name="merged").value
            merged = slice_of(b, merged, 0, lanes, "leading")
        return merged

    def _list(self, part: int, lanes: int, turn: ir.Value) -> ir.Value:
        b = self.b
        offset = self._offset(self.t.plus(self.first, b.index(part)), turn, _LIST)
        return b.build(
            TILE.classes["Load"], self.lists, offset, b.index(lanes), results=[tile_type(lanes, b.f32_type)], name="list"
        ).value

    # -- survivors ----------------------------------------------------------------------------------------------

    def give(self, found: Survivors, turn: ir.Value) -> None:
        t, b = self.t, self.b
        numbers = found.parts()
        numbers[1] = b.op(arith.sitofp, b.f32_type, numbers[1], name="chosen_number")
        facts = b.splat(numbers[-1], 64, "facts")
        for lane in range(len(numbers) - 1, 0, -1):
            below = t.compare("OLT", self.lane, b.f32(lane), "lane_below")
            facts = b.select(below, b.splat(numbers[lane - 1], 64), facts, "facts")
        t.store(facts, self.facts, self._offset(self.core, turn, _FACTS), b.index(_FACTS))

    def take(self, turn: ir.Value) -> Survivors:
        """What all parts know together: the best of the lowest rank, and the last of the last band."""
        t, b = self.t, self.b
        cells = tile_type(64 * _FACTS, b.f32_type)
        facts = b.build(
            TILE.classes["Load"], self.facts, self._offset(self.first, turn, _FACTS), b.index(self.parts * _FACTS),
            results=[cells], pad=ir.FloatAttr.get(b.f32_type, NEG_INF), name="facts",
        ).value  # fmt: skip
        column = {
            name: b.build(
                TILE.classes["Take"], facts, results=[tile_type(64, b.f32_type)], group=_FACTS, start=i, count=1, name=name
            ).value
            for i, name in enumerate(Survivors.NAMES)
        }
        best = t.reduced("max", column["best"], "best")
        is_best = t.compare("OEQ", column["best"], best, "is_best")
        bands = t.where(is_best, column["best_band"], float(1 << 24), "bands_of_best")
        best_band = t.reduced("min", bands, "best_band")
        winner = t.find_first(t.compare("OEQ", bands, best_band, "is_winner"), "winner")
        chosen = b.op(arith.fptosi, b.i32_type, t.extract(column["chosen"], winner, "chosen_number"), name="chosen")
        last_band = t.reduced("max", column["last_band"], "last_band")
        final = t.find_first(t.compare("OEQ", column["last_band"], last_band, "is_last"), "final")
        last, place, number = (t.extract(column[name], final, name) for name in ("last", "place", "number"))
        return Survivors(best, chosen, best_band, last_band, last, place, number)
