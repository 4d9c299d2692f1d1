"""What the cores that share a row tell each other, through global memory.

Every core has a cell for its list of pairs and one or more for a few facts, in two sets that take turns: a core that is
a round ahead overwrites nothing that is still read. The cells of the cores of a group lie one after the other.
`tile.sync_all` has to stand between what is given and what is taken.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir
from mlir.dialects import arith

from jascend.dialect import TILE

from ..builder import Stage, up
from .ops import Ops
from .row_chunks import length_of

FACTS = 8  # lanes of a cell of facts
_LANES = 64  # of a tile that holds them


class Meeting:
    """Builds it for one kernel, at its start; `part` is this core's, `pairs` the lanes of a cell of pairs, `slots` the
    number of cells of facts."""

    def __init__(self, t: Ops, part: ir.Value, pairs: int, slots: int = 1):
        self.t, self.b, self.pairs, self.slots = t, t.b, pairs, slots
        self.lists = t.workspace("lists", 2 * pairs, self.b.f32_type, "core") if pairs else None
        self.facts = t.workspace("facts", 2 * slots * FACTS, self.b.f32_type, "core")
        self.core, self.cores = self.b.build(TILE.classes["Core"], results=[self.b.index_type] * 2).operation.results
        self.first = t.minus(self.core, part, "first_core")
        self.lane = t.ramp(_LANES, self.b.f32_type, "fact_lane")

    def give_list(self, pairs: ir.Value, turn: ir.Value) -> None:
        self.t.store(pairs, self.lists, self._cell(self.core, turn, self.pairs), self.b.index(length_of(pairs)))

    def take_lists(
        self, part: int, lanes: int, turn: ir.Value, length: int, name: str, pad: float | None = None
    ) -> ir.Value:
        """`lanes` lanes from the list of a part on, in a tile of `length`."""
        core = self.t.plus(self.first, self.b.index(part)) if part else self.first
        offset = self._cell(core, turn, self.pairs)
        return self.t.load(self.lists, offset, self.b.index(lanes), length, name, pad)

    def give_facts(self, facts: Sequence[ir.Value], turn: ir.Value, slot: int = 0) -> None:
        """At most `FACTS` numbers (f32)."""
        t, b = self.t, self.b
        with b.part(Stage("PackFacts", "A few numbers, in a lane each.")):
            tile = b.splat(facts[-1], _LANES, "facts")
            for lane in range(len(facts) - 1, 0, -1):
                below = t.compare("OLT", self.lane, b.f32(lane), "lane_below")
                tile = b.select(below, b.splat(facts[lane - 1], _LANES, "fact"), tile, "facts")
        t.store(tile, self.facts, self._facts_of(self.core, turn, slot), b.index(FACTS))

    def take_facts(self, parts: int, turn: ir.Value, length: int, pad: float | None = None, slot: int = 0) -> ir.Value:
        """The facts of the first parts, `FACTS` lanes each."""
        offset = self._facts_of(self.first, turn, slot)
        return self.t.load(self.facts, offset, self.b.index(parts * FACTS), length, "facts", pad)

    def largest_fact(self, which: int, most_cores: int, turn: ir.Value) -> ir.Value:
        """The largest of one fact, among all cores of the launch (f32); it is not below 0."""
        t = self.t
        lanes = up(most_cores * FACTS, _LANES)
        count = t.times(self.cores, FACTS, "fact_lanes")
        facts = t.load(self.facts, self._facts_of(t.zero, turn, 0), count, lanes, "all_facts", 0.0)
        return t.reduced("max", t.take(facts, FACTS, which, 1, "one_fact"), "largest_fact")

    def _facts_of(self, core: ir.Value, turn: ir.Value, slot: int) -> ir.Value:
        t, b = self.t, self.b
        turn = t.plus(t.times(turn, self.slots), b.index(slot), "set")
        return self._cell(core, turn, FACTS)

    def _cell(self, core: ir.Value, number: ir.Value, elements: int) -> ir.Value:
        t, b = self.t, self.b
        cell = t.plus(b.op(arith.muli, number, self.cores), core, "cell")
        return t.times(cell, elements)
