"""The cores that search one row: each has a part of it, and all get what the others found.

Between what is given and what is taken the cores of a group meet (`tile.sync_all`). A core that has the row to itself
meets
nobody: what it takes is what it gave. Either way

- *counts* are added up, exactly;
- *unit sums* of the row, one for each 1024 of its positions, lie in global memory in the order of the row and are added
  up by one tree;
- *lists* of the parts are put one behind the other, in the order of the row.

So what is taken has the same bits for any split.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir
from mlir.dialects import arith

from jascend.dialect import TILE

from ..builder import Stage, up
from .meeting import FACTS, Meeting
from .ops import Ops
from .threshold_lists import LIST_TILE, Listed

UNIT = 1024  # elements of one sum of weights: fixed by the numerics and not by the mapping

LISTS, SUMS = 4, 3  # lists and arrays of unit sums that a row has at a time
OWN = 2  # the sums that a core makes of the whole row, for itself


class Alone:
    """A row that one core has to itself. The insertion point at construction is the kernel's start."""

    is_alone = True

    def __init__(self, t: Ops, vocabulary: int, element: ir.Type):
        self.t, self.b = t, t.b
        self.units = -(-vocabulary // UNIT)
        self.capacity = up(vocabulary, 64)
        self.memory = t.workspace("lists_of_row", LISTS * self.capacity, element, "core")
        self.core = self.b.build(TILE.classes["Core"], results=[self.b.index_type] * 2).operation.results[0]
        base = t.times(self.core, LISTS * self.capacity, "own_lists")
        self.places = [t.plus(base, self.b.index(i * self.capacity), f"list_{i + 1}") for i in range(LISTS)]
        self.sums = t.workspace("unit_sums", SUMS * up(self.units, 8), self.b.f32_type, "core")
        self.sums_core = self.core

    # -- what this core finds -----------------------------------------------------------------------------------

    def own_list(self, which: int) -> tuple[ir.Value, ir.Value]:
        """Where the elements of this core's part go: memory and offset."""
        return self.memory, self.places[which]

    def give(self, facts: Sequence[ir.Value], slot: int) -> None:
        """At most `FACTS` numbers (f32)."""

    def give_sums(self, sums: ir.Value, which: int, column: ir.Value, count: ir.Value) -> None:
        """The unit sums of `count` elements of the row from `column` on."""
        t, b = self.t, self.b
        shift = b.index(UNIT.bit_length() - 1)
        unit = b.op(arith.shrsi, column, shift, name="unit")
        units = b.op(arith.shrsi, t.plus(count, b.index(UNIT - 1)), shift, name="units")
        t.store(sums, self.sums, t.plus(self._sums_of(which), unit), units)

    # -- what all of them found ---------------------------------------------------------------------------------

    def facts(self, slot: int) -> ir.Value | None:
        """What all cores gave in a slot."""

    def total(self, own: ir.Value, facts: ir.Value | None, fact: int) -> ir.Value:
        return own

    def largest(self, own: ir.Value, facts: ir.Value | None, fact: int) -> ir.Value:
        """NaN if there is one."""
        return own

    def all_sums(self, which: int, name: str) -> ir.Value:
        """The sum of the row's unit sums."""
        t, b = self.t, self.b
        lanes = max(64, 1 << (self.units - 1).bit_length())
        sums = t.load(self.sums, self._sums_of(which), b.index(self.units), lanes, "sums", 0.0)
        return t.reduced("add", sums, name)

    def all_lists(self, which: int, number: ir.Value, facts: ir.Value | None, fact: int, skip: ir.Value) -> Listed:
        """The elements of all parts, none with `skip`; one of the facts is how many a part has."""
        return Listed(self.places[which], number)

    def in_front(self, facts: ir.Value | None, fact: int) -> ir.Value:
        """How many of them are in front of this core's part (index)."""
        return self.t.zero

    def _sums_of(self, which: int) -> ir.Value:
        t, b = self.t, self.b
        lanes = up(self.units, 8)
        core = self.core if which == OWN else self.sums_core
        base = t.times(core, SUMS * lanes, "row_sums")
        return t.plus(base, b.index(which * lanes)) if which else base


class Group(Alone):
    """A row that `parts` cores share, each with at most `length` elements. `turn` is 0 for one row and 1 for the next,
    `start` is where this core's part begins."""

    is_alone = False

    def __init__(
        self, t: Ops, vocabulary: int, element: ir.Type, meeting: Meeting, parts: int, part: ir.Value, length: int
    ):
        super().__init__(t, vocabulary, element)
        self.meeting, self.parts, self.part, self.length = meeting, parts, part, up(length, 64)
        self.sums_core = meeting.first
        # The first list has two places that take turns: what is behind it need not be a meeting.
        self.given = t.workspace("lists_of_parts", 3 * self.length, element, "core")
        self.turn = self.start = t.zero

    def own_list(self, which: int) -> tuple[ir.Value, ir.Value]:
        return self.given, self._given(self.meeting.core, which)

    def _given(self, core: ir.Value, which: int) -> ir.Value:
        t, b = self.t, self.b
        place = self.turn if which == 0 else b.index(1 + which)
        place = t.plus(t.times(core, 3), place, "cell")
        return t.times(place, self.length, "part_list")

    def give(self, facts: Sequence[ir.Value], slot: int) -> None:
        self.meeting.give_facts(facts, self.turn, slot)

    def facts(self, slot: int) -> ir.Value:
        return self.meeting.take_facts(self.parts, self.turn, self.parts * FACTS, slot=slot)

    def total(self, own: ir.Value, facts: ir.Value, fact: int) -> ir.Value:
        add = lambda total, more: self.b.op(arith.addf, total, more, name="total")
        return self._fold(facts, fact, add, "total")

    def largest(self, own: ir.Value, facts: ir.Value, fact: int) -> ir.Value:
        b = self.b

        def larger(largest, other):
            is_larger = self.t.either(b.cmpf("OGT", other, largest), b.cmpf("UNE", other, other))
            return b.select(is_larger, other, largest, "largest")

        return self._fold(facts, fact, larger, "largest")

    def first_largest(self, slot: int) -> tuple[ir.Value, ir.Value]:
        """The largest of a first fact, and the second fact beside it, of the first part that has it."""
        t, b = self.t, self.b
        facts = self.facts(slot)

        def better(part, largest, beside):
            other = self._fact(facts, part, 0)
            is_larger = b.cmpf("OGT", other, largest, "is_larger")
            return [
                b.select(is_larger, other, largest, "largest"),
                b.select(is_larger, self._fact(facts, part, 1), beside, "beside"),
            ]

        first = [("largest", t.extract(facts, t.zero, "largest")), ("beside", t.extract(facts, t.one, "beside"))]
        return tuple(b.for_(t.one, b.index(self.parts), t.one, first, better, induction="other"))

    def _fold(self, facts: ir.Value, fact: int, function, name: str) -> ir.Value:
        t, b = self.t, self.b
        first = t.extract(facts, b.index(fact), name)
        step = lambda part, so_far: [function(so_far, self._fact(facts, part, fact))]
        return b.for_(t.one, b.index(self.parts), t.one, [(name, first)], step, induction="other")[0]

    def _fact(self, facts: ir.Value, part: ir.Value, fact: int) -> ir.Value:
        t, b = self.t, self.b
        return t.extract(facts, t.plus(t.times(part, FACTS), b.index(fact)), "fact")

    def all_lists(self, which: int, number: ir.Value, facts: ir.Value, fact: int, skip: ir.Value) -> Listed:
        t, b = self.t, self.b
        own, lanes = self.places[which], min(LIST_TILE, self.length)
        needed = t.opposite(skip, "needed")

        def append(part, total):
            here = t.index_of(self._fact(facts, part, fact), "here")
            source = self._given(t.plus(self.meeting.first, part), which)

            def copy(place, count):
                piece = t.load(self.given, t.plus(source, place), count, lanes, "piece")
                t.store(piece, self.memory, t.plus(own, t.plus(total, place)), count)
                return []

            def copy_list():
                left = lambda place: t.smaller(t.minus(here, place), b.index(lanes), "count")
                b.for_(t.zero, here, b.index(lanes), [], lambda at: copy(at, left(at)), induction="place")
                return []

            if self.length <= lanes:
                some = t.both(needed, b.cmpi("sgt", here, t.zero, "any"), "any")
                b.if_(some, [], lambda: copy(t.zero, here))
            else:
                b.if_(needed, [], copy_list)
            return [t.plus(total, here, "number")]

        about = Stage("JoinLists", "The lists of all parts, one behind the other.")
        (number,) = b.for_(
            t.zero, b.index(self.parts), t.one, [("number", t.zero)], append, induction="other", about=about
        )
        return Listed(own, number)

    def in_front(self, facts: ir.Value, fact: int) -> ir.Value:
        t = self.t
        add = lambda part, before: [t.plus(before, t.index_of(self._fact(facts, part, fact), "here"), "before")]
        return t.b.for_(t.zero, self.part, t.one, [("before", t.zero)], add, induction="other")[0]
