"""What the cores that share a row tell each other of its units, which are neighbouring elements, through global memory.

It lies in the order of the row, as if one core had found it all. `tile.sync_all` has to stand between what is given and
what is taken, and before the next row's.
"""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith

from ..builder import up
from .meeting import Meeting
from .ops import Ops

_FACTS = 2  # numbers that are told of a unit, at most


class UnitFacts:
    """Builds it for one kernel, at its start; a row has `units` of them."""

    def __init__(self, t: Ops, meeting: Meeting, units: int):
        self.t, self.b, self.units, self.pitch = t, t.b, units, up(units, 8)
        self.facts = t.workspace("unit_facts", _FACTS * self.pitch, t.b.f32_type, "core")
        self.first = t.b.op(arith.muli, meeting.first, t.b.index(_FACTS * self.pitch), name="facts_of_row")

    def give(self, which: int, facts: ir.Value, unit: ir.Value, number: ir.Value) -> None:
        """One number of each of `number` units from `unit` on."""
        self.t.store(facts, self.facts, self.t.plus(self._place(which), unit), number)

    def take(self, which: int, lanes: int, pad: float) -> ir.Value:
        """That of all units."""
        return self.t.load(self.facts, self._place(which), self.b.index(self.units), lanes, "facts_of_units", pad)

    def _place(self, which: int) -> ir.Value:
        return self.t.plus(self.first, self.b.index(which * self.pitch))
