"""Which instructions cannot have run where a branch of a kernel is taken, as its conditions show; used by `pipe_order`.

- *Not in the first iteration.* A loop that fills one half of a buffer while it reads the other pads the half where a
  tail comes, which in the first iteration may be known to be none; a `while` loop tries something else in its second
  round. Where that branch is taken the loop has turned, and nothing outside of it has run since.
- *One or the other.* Two branches, one behind the other, may stand under conditions of which one rules the other out.
  Where the later one is taken, nothing in the earlier one has run since what decides between them was computed.
- *The loop goes on.* A branch that yields a constant which a `while` loop's condition refutes ends the loop: no
  iteration follows on what that branch did.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from mlir import ir
from mlir.dialects import arith

from jascend.dialect.ascendc import constant_index

from .bounds import NOTHING, conjuncts, facts_at, falsehoods, is_refuted

_NE = int(arith.CmpIPredicate.ne)
_SCALAR_OPS = (
    "arith.addi", "arith.subi", "arith.minsi", "arith.maxsi", "arith.cmpi", "arith.andi", "arith.xori", "arith.select",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Branch:
    """The first block of an `scf.if`, and the numbers of the instructions in it."""

    op: ir.Operation
    low: int
    high: int
    sources: Sources

    @cached_property
    def condition(self) -> ir.Value:
        return self.op.operands[0]

    @cached_property
    def computed_from(self) -> frozenset[ir.Value]:
        """What the condition follows from by scalar arithmetic, and all on the way."""
        return self.sources.of(self.condition)


class Sources:
    """What the scalars of a kernel are computed from.
    Each is looked at once, for all conditions that follow from it."""

    def __init__(self):
        self._known: dict[ir.Value, frozenset[ir.Value]] = {}
        self.blocks: dict[ir.Value, ir.Block] = {}  # of those that are arguments of a block
        self.conditions: dict[ir.Value, ir.Value] = {}  # of those that are chosen by one

    def of(self, value: ir.Value) -> frozenset[ir.Value]:
        """What a value follows from by scalar arithmetic, and all on the way."""
        found = self._known.get(value)
        if found is None:
            owner, operands = value.owner, ()
            if isinstance(owner, ir.Block):
                self.blocks[value] = owner
            elif (name := owner.name) in _SCALAR_OPS:
                operands = list(owner.operands)
                if name == "arith.select":
                    self.conditions[value] = operands[0]
            found = self._known[value] = frozenset((value,)).union(*map(self.of, operands))
        return found


def loops_that_turned(branch: Branch) -> Iterator[ir.Operation]:
    """The loops around a branch whose first iteration does not take it."""
    blocks = [branch.sources.blocks[value] for value in branch.computed_from & branch.sources.blocks.keys()]
    loops = {block.owner.operation for block in blocks if block.owner.operation.name in ("scf.for", "scf.while")}
    facts = facts_at(branch.op) if loops else NOTHING
    return (loop for loop in loops if is_refuted(branch.condition, facts.at_first(loop)))


def excluding_pairs(branches: list[Branch]) -> Iterator[tuple[Branch, Branch, ir.Operation]]:
    """Pairs of branches, the later one first, and what computes the condition that rules the earlier one out."""
    deciding: dict[ir.Value, dict[Branch, None]] = {}
    for branch in branches:
        for value in branch.computed_from:
            deciding.setdefault(branch.sources.conditions.get(value, value), {})[branch] = None
    refuted: dict[tuple[ir.Value, ir.Value], bool] = {}  # a condition, by a fact: many branches have the same
    for later in branches:
        for fact in conjuncts(later.condition):
            for decided in (fact, *falsehoods(fact)):
                for earlier in deciding.get(decided, ()):
                    if earlier.high > later.low or isinstance(decided.owner, ir.Block):
                        continue
                    both = earlier.condition, fact
                    if both not in refuted:
                        refuted[both] = is_refuted(earlier.condition, NOTHING.also(fact))
                    if refuted[both]:
                        yield later, earlier, decided.owner


def ending_values(loop: ir.Operation) -> Iterator[tuple[ir.Value, int]]:
    """What the body of a `while` loop yields, and the number that ends the loop if it is that."""
    before, body = (region.blocks[0] for region in loop.regions)
    condition, end = before.operations[-1].operation, body.operations[-1].operation
    for fact in conjuncts(condition.operands[0]):
        op = fact.owner
        if isinstance(op, ir.Block) or op.name != "arith.cmpi" or op.attributes["predicate"].value != _NE:
            continue
        carried, number = op.operands[0], constant_index(op.operands[1])
        if carried.owner == before and number is not None:
            yield end.operands[carried.arg_number], number
