"""Between which numbers an index lies, as far as scalar arithmetic shows.

A loop's induction variable lies between its bounds. What a `while` loop carries is known, in its body, to keep the
condition. Where an index is chosen by a condition, the condition holds for one choice: facts are conditions that hold.
So do, at an operation, those of the branches that it is in. A loop can be a fact as well: that it is in its first
iteration.
"""

from __future__ import annotations

from typing import NamedTuple

from mlir import ir
from mlir.dialects import arith

from jascend.dialect.ascendc import constant_index

from .accesses import is_same

_SLT, _SGT = int(arith.CmpIPredicate.slt), int(arith.CmpIPredicate.sgt)


class Facts(NamedTuple):
    """Conditions that hold, loops that are in their first iteration, and the pairs of which the conditions say that the
    first is less."""

    conditions: frozenset[ir.Value] = frozenset()
    first: frozenset[ir.Operation] = frozenset()
    less: tuple[tuple[ir.Value, ir.Value], ...] = ()

    def also(self, *conditions: ir.Value) -> Facts:
        """These facts, where some conditions hold too."""
        compared = (pair for condition in conditions if (pair := _less(condition)) is not None)
        return Facts(self.conditions.union(conditions), self.first, (*self.less, *compared))

    def at_first(self, loop: ir.Operation) -> Facts:
        """These facts, in the first iteration of a loop."""
        return Facts(self.conditions, self.first | {loop}, self.less)


NOTHING = Facts()


def least(value: ir.Value) -> int | None:
    """A number that the value is at least; None if none is known."""
    return _bound(value, NOTHING, False)


def most(value: ir.Value) -> int | None:
    """A number that the value is at most; None if none is known."""
    return _bound(value, NOTHING, True)


def is_at_least(value: ir.Value, number: int, at: ir.Operation | None = None) -> bool:
    """Whether value >= number is known; at an operation, where what its branches compared holds."""
    bound = constant_index(value)
    if bound is None:
        bound = _bound(value, facts_at(at) if at is not None else NOTHING, False)
    return bound is not None and bound >= number


def is_less(a: ir.Value, b: ir.Value) -> bool:
    """Whether a < b is known."""
    return _is_less(a, b, NOTHING)


def _is_less(a: ir.Value, b: ir.Value, facts: Facts) -> bool:
    if any(is_same(less, a) and is_same(more, b) for less, more in facts.less):
        return True
    most_of_a = _bound(a, facts, True)
    least_of_b = None if most_of_a is None else _bound(b, facts, False)
    return least_of_b is not None and most_of_a < least_of_b


def runs(loop: ir.Operation) -> bool:
    """Whether a loop, `for` or `while`, is known to run at least once."""
    if loop.name == "scf.for":
        return _is_less(loop.operands[0], loop.operands[1], facts_at(loop))
    condition, facts = _last(loop.regions[0].blocks[0]), NOTHING.at_first(loop)
    return condition.name == "scf.condition" and all(_holds(fact, facts) for fact in conjuncts(condition.operands[0]))


def turns(loop: ir.Operation) -> bool:
    """Whether a loop, `for` or `while`, may run more than once."""
    if loop.name == "scf.for":
        first, last, step = list(loop.operands)[:3]
        return not _reaches(least(first), least(step), most(last))
    before, body = (region.blocks[0] for region in loop.regions)
    condition, end = _last(before), _last(body)
    for fact in conjuncts(condition.operands[0]) if condition.name == "scf.condition" else ():
        compared = _less(fact)
        if compared is None or compared[0].owner != before:
            continue
        carried, bound = compared
        if _reaches(least(end.operands[carried.arg_number]), 0, most(bound)):
            return False
    return True


def _reaches(first: int | None, step: int | None, last: int | None) -> bool:
    return None not in (first, step, last) and first + step >= last


def is_refuted(condition: ir.Value, facts: Facts) -> bool:
    """Whether facts rule out that a condition, or one of those that it is the conjunction of, holds."""
    parts = conjuncts(condition)
    false = [value for fact in facts.conditions for value in falsehoods(fact)]
    return any(
        part in false or any(_holds(value, facts) for value in falsehoods(part)) or _is_less_refuted(part, facts)
        for part in parts
    )


def _is_less_refuted(condition: ir.Value, facts: Facts) -> bool:
    compared = _less(condition)
    if compared is None:
        return False
    least_of_a = _bound(compared[0], facts, False)
    most_of_b = None if least_of_a is None else _bound(compared[1], facts, True)
    return most_of_b is not None and least_of_a >= most_of_b


def facts_at(op: ir.Operation) -> Facts:
    """The conditions of the branches around an operation."""
    facts, block = [], op.block
    while (owner := block.owner.operation).name != "func.func":
        if owner.name == "scf.if" and block == owner.regions[0].blocks[0]:
            facts += conjuncts(owner.operands[0])
        block = owner.block
    return NOTHING.also(*facts)


def _last(block: ir.Block) -> ir.Operation:
    return block.operations[-1].operation


def _bound(value: ir.Value, facts: Facts, upper: bool) -> int | None:
    op = value.owner
    if isinstance(op, ir.Block):
        computed = _of_argument(value, op, facts, upper)
    elif (name := op.name) == "arith.constant":
        return op.attributes["value"].value
    else:
        computed = _of_result(op, name, facts, upper)
    found = [_asserted(pair, value, upper) for pair in facts.less]
    known = [bound for bound in (*found, computed) if bound is not None]
    return (min if upper else max)(known, default=None)


def _of_result(op: ir.Operation, name: str, facts: Facts, upper: bool) -> int | None:
    """The bound that follows from what a value is computed from."""
    if name == "arith.select":
        return _of_choice(op, facts, upper)
    if name == "ascendc.block_idx":
        return None if upper else 0
    if name in ("arith.remsi", "arith.divsi"):
        return _of_division(op, facts, upper)
    if name not in ("arith.addi", "arith.subi", "arith.minsi", "arith.maxsi"):
        return None
    operands = op.operands
    a = _bound(operands[0], facts, upper)
    either = name == ("arith.minsi" if upper else "arith.maxsi")  # one bound is enough
    if a is None and not either:
        return None
    b = _bound(operands[1], facts, upper != (name == "arith.subi"))
    if either:
        known = [bound for bound in (a, b) if bound is not None]
        return (min if upper else max)(known, default=None)
    if b is None:
        return None
    return {"arith.addi": a + b, "arith.subi": a - b, "arith.minsi": min(a, b), "arith.maxsi": max(a, b)}[name]


def _of_division(op: ir.Operation, facts: Facts, upper: bool) -> int | None:
    """Of a number that is not negative by a constant, or what is left."""
    divisor = constant_index(op.operands[1])
    if divisor is None or divisor < 1:
        return None
    low = _bound(op.operands[0], facts, False)
    if low is None or low < 0:
        return None
    bound = _bound(op.operands[0], facts, upper)
    if op.name == "arith.divsi":
        return bound if bound is None else bound // divisor
    if not upper:
        return 0
    return divisor - 1 if bound is None else min(bound, divisor - 1)


def _of_argument(value: ir.Value, block: ir.Block, facts: Facts, upper: bool) -> int | None:
    loop = block.owner.operation
    if loop in facts.first and block == loop.regions[0].blocks[0]:
        first = value.arg_number
        if loop.name == "scf.for":
            first = 0 if value.arg_number == 0 else 2 + value.arg_number
        return _bound(loop.operands[first], facts, upper)
    if loop in facts.first and loop.name == "scf.while":
        return _bound(_last(loop.regions[0].blocks[0]).operands[1 + value.arg_number], facts, upper)
    if loop.name == "scf.for" and value.arg_number == 0:
        bound = _bound(loop.operands[int(upper)], NOTHING, upper)
        return bound if bound is None or not upper else bound - 1
    if loop.name != "scf.while" or block != loop.regions[1].blocks[0]:
        return None
    before = loop.regions[0].blocks[0]
    condition = _last(before)
    if condition.name != "scf.condition":
        return None
    carried = condition.operands[1 + value.arg_number]
    found = [_asserted(pair, carried, upper) for pair in NOTHING.also(*conjuncts(condition.operands[0])).less]
    if carried.owner == before and not upper and _only_grows(loop, carried.arg_number, value):
        found.append(least(loop.operands[carried.arg_number]))
    known = [bound for bound in found if bound is not None]
    return (min if upper else max)(known, default=None)


def _only_grows(loop: ir.Operation, number: int, value: ir.Value) -> bool:
    """Whether what a `while` loop carries on is a value of its body and something that is not negative."""
    following = _last(loop.regions[1].blocks[0]).operands[number].owner
    if isinstance(following, ir.Block) or following.name != "arith.addi" or following.operands[0] != value:
        return False
    added = constant_index(following.operands[1])
    return added is not None and added >= 0


def conjuncts(condition: ir.Value) -> list[ir.Value]:
    """What holds where a condition does."""
    owner = condition.owner
    if isinstance(owner, ir.Block) or owner.name != "arith.andi":
        return [condition]
    return [fact for operand in owner.operands for fact in conjuncts(operand)]


def falsehoods(fact: ir.Value) -> list[ir.Value]:
    """What does not hold where a fact does that is the opposite of a condition."""
    owner = fact.owner
    if isinstance(owner, ir.Block) or owner.name != "arith.xori" or constant_index(owner.operands[1]) is not True:
        return []
    found, pending = [], [owner.operands[0]]
    while pending:
        value = pending.pop()
        found.append(value)
        if not isinstance(value.owner, ir.Block) and value.owner.name == "arith.ori":
            pending += value.owner.operands
    return found


def _asserted(less: tuple[ir.Value, ir.Value], value: ir.Value, upper: bool) -> int | None:
    """The bound that a comparison with another value, where it holds, gives."""
    a, b = less
    if upper and a == value:
        bound = _bound(b, NOTHING, True)
        return bound if bound is None else bound - 1
    if not upper and b == value:
        bound = _bound(a, NOTHING, False)
        return bound if bound is None else bound + 1
    return None


def _less(condition: ir.Value) -> tuple[ir.Value, ir.Value] | None:
    """a and b where a condition is `a < b`."""
    owner = condition.owner
    if isinstance(owner, ir.Block) or owner.name != "arith.cmpi":
        return None
    predicate, (a, b) = owner.attributes["predicate"].value, owner.operands
    return {_SLT: (a, b), _SGT: (b, a)}.get(predicate)


def _of_choice(op: ir.Operation, facts: Facts, upper: bool) -> int | None:
    condition, a, b = op.operands
    if _holds(condition, facts):
        return _bound(a, facts, upper)
    first = _bound(a, facts.also(condition), upper)
    second = None if first is None else _bound(b, facts, upper)
    if second is None:
        return None
    return max(first, second) if upper else min(first, second)


def _holds(condition: ir.Value, facts: Facts) -> bool:
    if condition in facts.conditions:
        return True
    compared = _less(condition)
    return compared is not None and _is_less(*compared, facts)
