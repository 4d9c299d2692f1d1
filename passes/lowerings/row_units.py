"""Reductions of long rows, in units of 1024 columns: one core has a row to itself, or several share it.

Each unit is reduced by a fixed tree, and what the units give lies in global memory, in the order of the row. When all
of it is there (cores that share a row meet), every one of them reduces it by one tree. So the bits do not depend on how
a row is split, or on how long the chunks are that a core goes in.
"""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith

from ..builder import up
from .ops import Ops

UNIT = 1024  # columns
# columns of a row that is reduced so: of a shorter one a core has done a pass before others could be met
SHORTEST = 24 << 10
_LEAST_PART = 4096  # columns


def columns_of_a_part(rows: int, length: int, cores: int) -> int:
    """How many columns of so many rows each core of a group is to have; all of them where no other core is free."""
    parts = min(cores // max(rows, 1), -(-length // _LEAST_PART))
    return length if parts < 2 or length < SHORTEST else up(-(-length // parts), UNIT)


class Units:
    """What the units of a row give, for some reductions of rows of so many columns;
    `inner` rows are one of the launch's."""

    def __init__(self, t: Ops, lengths: list[int], inner: int):
        self.t, self.b, self.counts = t, t.b, [-(-length // UNIT) for length in lengths]
        self.places = [sum(up(count, 8) for count in self.counts[:i]) for i in range(len(lengths))]
        self.of_row = sum(up(count, 8) for count in self.counts)
        self.memory = t.workspace("unit_results", inner * self.of_row, self.b.f32_type, "row")

    def enter_row(self, row: ir.Value) -> None:
        self.row = self.b.op(arith.muli, row, self.b.index(self.of_row), name="units_of_row")

    def give(self, which: int, kind: str, x: ir.Value, column: ir.Value, count: ir.Value, word: str) -> None:
        """The units of `count` columns from `column` on; lanes of `x` behind them change nothing."""
        t, b = self.t, self.b
        units = t.reduce(kind, x, UNIT, f"unit_{word}")
        first = b.op(arith.divsi, column, b.index(UNIT), name="first_unit")
        number = b.op(arith.divsi, t.plus(count, b.index(UNIT - 1)), b.index(UNIT), name="unit_count")
        t.store(units, self.memory, t.plus(self._place(which), first), number)

    def take(self, which: int, kind: str, neutral: float, word: str) -> ir.Value:
        """The result of the row, a tile of one lane."""
        count = self.counts[which]
        lanes = max(64, 1 << (count - 1).bit_length())
        units = self.t.load(self.memory, self._place(which), self.b.index(count), lanes, "units", neutral)
        return self.t.reduce(kind, units, lanes, word)

    def _place(self, which: int) -> ir.Value:
        return self.t.plus(self.row, self.b.index(self.places[which])) if self.places[which] else self.row
