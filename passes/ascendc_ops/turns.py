"""Tiles that are loaded an iteration ahead: a loop carries the tile that its last iteration loaded. The same for tiles that
are made an iteration ahead, by any other op with the attribute `ascend.ahead`.

Such a tile has one buffer of two halves that take turns. The loop carries a slot instead of the tile, 0 or 1: this
iteration's tile is in the half `slot`, the next one's goes to the half `1 - slot`.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from mlir import ir
from mlir.dialects import arith, scf

if TYPE_CHECKING:
    from .lowering import Lowering

AHEAD = "ascend.ahead"
_LOADS = ("tile.load", "tile.load_rows")


def loaded_ahead(loop: ir.Operation) -> list[int]:
    """Which of the values that a loop carries are tiles that a load makes: one before the loop, one in its body."""
    if loop.name != "scf.for":
        return []
    block = loop.regions[0].blocks[0]
    yielded = block.operations[-1].operation.operands
    initial = list(loop.operands)[3:]
    return [
        i
        for i, (first, following) in enumerate(zip(initial, yielded))
        if isinstance(first.type, ir.RankedTensorType)
        and _is_made_to_be_carried(first) and _is_made_to_be_carried(following)
        and following.owner.parent == loop and next(iter(loop.results[i].uses), None) is None
    ]  # fmt: skip


def _is_made_to_be_carried(value: ir.Value) -> bool:
    owner = value.owner
    return not isinstance(owner, ir.Block) and _is_only_carried(owner.operation, value)


def _is_only_carried(owner: ir.Operation, value: ir.Value) -> bool:
    """Whether a value is made for nothing but being carried, by a load or by an op that says so."""
    if owner.name not in _LOADS and AHEAD not in owner.attributes:
        return False
    return len(list(islice(value.uses, 2))) == 1


def is_loaded_ahead(op: ir.Operation, value: ir.Value) -> bool:
    """Whether a tile that an op makes is the first one of those that a loop loads ahead."""
    if not _is_only_carried(op, value):
        return False
    use = next(iter(value.uses))
    return use.operand_number - 3 in loaded_ahead(use.owner.operation)


def take_turns(low: Lowering, loop: ir.Operation, positions: list[int]) -> ir.Operation:
    """A loop that carries one slot in place of the tiles at `positions`; the old one is left without a body."""
    old = loop.regions[0].blocks[0]
    first, last, step, *initial = loop.operands
    kept = [i for i in range(len(initial)) if i not in positions]
    b = low.b
    b.location = loop.location
    zero, one = b.index(0), b.index(1)
    new = scf.ForOp(first, last, step, [*(initial[i] for i in kept), zero], loc=loop.location)
    for name in loop.attributes:
        new.operation.attributes[name] = loop.attributes[name]
    induction, *carried, slot = new.body.arguments
    slot.set_location(b.loc("slot"))
    for argument, source in zip([induction, *carried], [old.arguments[0], *(old.arguments[i + 1] for i in kept)]):
        argument.set_location(source.location)
        source.replace_all_uses_with(argument)
    ops = [op.operation for op in old.operations]
    yielded = list(ops[-1].operands)
    ops.pop().erase()
    with ir.InsertionPoint(new.body):
        other = b.op(arith.subi, one, slot, name="other_slot")
        for i in positions:
            halves, length = low.halves.pop(initial[i]), ir.RankedTensorType(initial[i].type).get_dim_size(0)
            low.buffers[old.arguments[i + 1]] = _half(low, halves, slot, length)
            low.buffers[yielded[i]] = _half(low, halves, other, length)
    for op in ops:
        new.body.append(op)
    with ir.InsertionPoint(new.body):
        scf.yield_([*(yielded[i] for i in kept), other], loc=loop.location)
    for i, result in zip(kept, new.operation.results):
        loop.results[i].replace_all_uses_with(result)
        loop.operands[i + 3] = zero  # what is left of the old loop reads nothing
    return new.operation


def _half(low: Lowering, halves: ir.Value, slot: ir.Value, length: int) -> ir.Value:
    return low.view(halves, low.b.op(arith.muli, slot, low.b.index(length)), length)
