"""Tiles that a loop carries or a branch yields, and slices: which buffer they live in, and when a copy is needed.

A carried tile has one buffer for the whole loop: that of its first value where nothing reads that value later, else a new
one with a copy of it. What an iteration yields is written straight into it where that is safe: by an op that stands in the
loop's body itself, after the last one that reads what the buffer held. An elementwise op may be that last one. Otherwise
the yielded tile has a buffer of its own, which is copied at the end of the iteration. A branch is the same with one trip;
a value from outside that one side yields is updated in place if nothing reads it afterwards.

A slice is a view of its source. A slice is inserted in place where nothing reads the old value later, and its producer
writes it there directly under the same conditions; else the old value is copied first.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from mlir import ir
from mlir.dialects import scf

from ..accesses import root_of
from ..builder import COMMENT, PART_END, RUNS, STAGE, STAGE_END, name_of

if TYPE_CHECKING:
    from .lowering import Lowering

_VIEWS = ("tensor.extract_slice", "arith.bitcast")
_ELSEWHERE = ("scf.for", "scf.while", "scf.if", "tensor.insert_slice", "tile.scatter", *_VIEWS)  # make no buffer of their own
# One instruction each, lane by lane: they may write what they read.
_IN_PLACE = frozenset(
    "arith.addf arith.subf arith.mulf arith.divf arith.maximumf arith.minimumf arith.addi arith.subi arith.muli "
    "arith.maxsi arith.minsi arith.andi arith.ori arith.shli arith.shrsi arith.shrui arith.negf math.exp math.log math.sqrt "
    "math.absf".split()
)


def is_tile(value: ir.Value) -> bool:
    return isinstance(value.type, ir.RankedTensorType)


# -- who reads what, when ---------------------------------------------------------------------------------------------


def _readers(value: ir.Value) -> Iterator[ir.Operation]:
    """The ops that read a tile's lanes, through slices and bit casts too."""
    for use in value.uses:
        op = use.owner.operation
        yield op
        if op.name in _VIEWS:
            yield from _readers(op.results[0])


def _ancestors(op: ir.Operation) -> list[ir.Operation]:
    found = [op]
    while (parent := op.parent) is not None:
        op = parent.operation
        found.append(op)
    return found


def _happens_before(a: ir.Operation, b: ir.Operation) -> bool:
    """Whether `a` runs before `b` or not in the same pass through the code around both."""
    around = {x.block: x for x in _ancestors(b) if x.parent is not None}
    for x in _ancestors(a):
        if x.parent is not None and x.block in around:
            y = around[x.block]
            return x.is_before_in_block(y) if x != y else x.name == "scf.if"
    return False


def _home(low: Lowering, value: ir.Value) -> ir.Block:
    """The block whose run makes the value."""
    return low.bodies[value] if isinstance(value.owner, ir.Block) else value.owner.operation.block


def _may_overwrite(low: Lowering, value: ir.Value, op: ir.Operation, apart_from: tuple[ir.Operation, ...] = ()) -> bool:
    """Whether the buffer of a tile may hold something else from `op` on. `op` itself may read it."""
    home, at = _home(low, value), op
    while at.block != home:  # a loop between would read it again
        at = at.parent.operation
        if at.name != "scf.if":
            return False
    others = (r for r in _readers(value) if r != op and r not in apart_from)
    return all(_happens_before(reader, op) for reader in others)


def _own_buffer(low: Lowering, value: ir.Value) -> ir.Value | None:
    """The buffer of a tile, where it is not a part of another one's."""
    buffer = low.buffers.get(value)
    return buffer if buffer is not None and buffer.owner.name == "ascendc.local_tensor" else None


def _reads_elsewhere(low: Lowering, op: ir.Operation, value: ir.Value) -> bool:
    """Whether an op reads lanes of a tile in another way than lane by lane from the same place."""
    if op.name not in _IN_PLACE:
        return op in set(_readers(value))
    through_views = {r for use in value.uses if use.owner.name in _VIEWS for r in _readers(use.owner.results[0])}
    return op in through_views


# -- control flow -----------------------------------------------------------------------------------------------------


def lower(low: Lowering, op: ir.Operation) -> None:
    """Lowers a control-flow op with all that is in it. One that has tiles among its results is left without a body, for
    the caller to erase; another one, with scalars only, stands before it."""
    if not any(map(is_tile, op.results)):
        for region in op.regions:
            for block in region.blocks:
                low.ops([view.operation for view in block.operations])
        return
    {"scf.for": _for, "scf.while": _while, "scf.if": _if}[op.name](low, op)


def _scalars(values) -> list[ir.Value]:
    return [value for value in values if not is_tile(value)]


def _move(old: ir.Block, new: ir.Block) -> list[ir.Operation]:
    """Moves a body over; returns its ops. The last one is its old terminator, which holds on to the tiles; the new one
    has the scalars."""
    scalars = iter(new.arguments)
    for argument in old.arguments:
        if not is_tile(argument):
            replacement = next(scalars)
            replacement.set_location(argument.location)
            argument.replace_all_uses_with(replacement)
    ops = [view.operation for view in old.operations]
    end = ops[-1]
    with ir.InsertionPoint(new):
        following = ir.Operation.create(end.name, operands=_scalars(end.operands), loc=end.location)
    for op in ops:
        op.move_before(following)
    return ops


def _replace_results(old: ir.Operation, new: ir.Operation) -> None:
    for name in old.attributes:
        if name in (COMMENT, STAGE, STAGE_END, PART_END, RUNS):
            new.attributes[name] = old.attributes[name]
    for before, after in zip(_scalars(old.results), new.results, strict=True):
        before.replace_all_uses_with(after)


def _carried_buffers(low: Lowering, op: ir.Operation, initial: list[ir.Value], names: list[ir.Value]) -> list[ir.Value]:
    """The buffer of each carried tile, with its first value."""
    buffers: list[ir.Value] = []
    for value, named in zip(initial, names):
        own = _own_buffer(low, value)
        if own is None or own in buffers or initial.count(value) > 1 or not _may_overwrite(low, value, op):
            own = low.like(value, name_of(named) or name_of(value) or "carried")
            low.emit("Copy", own, low.of(value))
        elif name_of(named):
            own.owner.attributes["name_hint"] = ir.StringAttr.get(name_of(named))
        buffers.append(own)
    return buffers


def _for(low: Lowering, op: ir.Operation) -> None:
    low.b.location = op.location
    first, last, step, *initial = op.operands
    old = op.regions[0].blocks[0]
    arguments = [a for a in old.arguments if is_tile(a)]
    buffers = _carried_buffers(low, op, [v for v in initial if is_tile(v)], arguments)
    new = scf.ForOp(first, last, step, _scalars(initial), loc=op.location)
    ops = _move(old, new.body)
    low.buffers.update(zip(arguments, buffers))
    low.bodies.update(dict.fromkeys(arguments, new.body))
    low.buffers.update(zip((r for r in op.results if is_tile(r)), buffers))
    _replace_results(op, new.operation)
    _body(low, new.body, ops, list(zip(buffers, arguments)))


def _while(low: Lowering, op: ir.Operation) -> None:
    low.b.location = op.location
    before, after = (region.blocks[0] for region in op.regions)
    condition = before.operations[-1].operation
    if list(condition.operands)[1:] != list(before.arguments):
        low.refuse(op, "a while loop that carries tiles passes on what it carries, as it is")
    arguments = [a for a in after.arguments if is_tile(a)]
    buffers = _carried_buffers(low, op, [v for v in op.operands if is_tile(v)], arguments)
    types = [v.type for v in _scalars(op.operands)]
    new = scf.WhileOp(types, _scalars(op.operands), loc=op.location)
    blocks = [ir.Block.create_at_start(region, types, [op.location] * len(types)) for region in new.operation.regions]
    *decides, condition = _move(before, blocks[0])
    condition.erase()
    ops = _move(after, blocks[1])
    low.buffers.update(zip(arguments, buffers))
    low.bodies.update(dict.fromkeys(arguments, blocks[1]))
    low.buffers.update(zip((r for r in op.results if is_tile(r)), buffers))
    _replace_results(op, new.operation)
    low.ops(decides)
    _body(low, blocks[1], ops, list(zip(buffers, arguments)))


def _if(low: Lowering, op: ir.Operation) -> None:
    low.b.location = op.location
    blocks = [region.blocks[0] for region in op.regions]
    names = (op.location.name_str if op.location.is_a_name() else "").split(",")
    names += [""] * (len(op.results) - len(names))
    kept = ",".join(name for name, result in zip(names, op.results) if not is_tile(result))
    targets: list[tuple[ir.Value, ir.Value | None]] = []
    for i, result in enumerate(op.results):
        if is_tile(result):
            if result in low.buffers:  # that of the branch around it
                targets.append((low.buffers[result], None))
                continue
            targets.append(_target_of_branch(low, op, i, names[i], [buffer for buffer, _ in targets]))
            low.buffers[result] = targets[-1][0]
    types = [r.type for r in _scalars(op.results)]
    has_else = bool(types) or any(len(block.operations) > 1 or _changes(block, op, low, targets) for block in blocks[1:])
    new = scf.IfOp(op.operands[0], types, has_else=has_else, loc=low.b.loc(kept or None))
    _replace_results(op, new.operation)
    if len(blocks) > 1 and not has_else:  # what it yields is where it belongs
        blocks.pop().operations[0].operation.erase()
    bodies = [region.blocks[0] for region in new.operation.regions if len(region.blocks)]
    moved = [_move(old, body) for old, body in zip(blocks, bodies)]
    for body, ops in zip(bodies, moved):
        _body(low, body, ops, targets)


def _changes(block: ir.Block, op: ir.Operation, low: Lowering, targets: list) -> bool:
    """Whether what a branch without ops yields is not in its place yet."""
    yielded = [v for v in block.operations[-1].operands if is_tile(v)]
    return any(low.buffers.get(value) != buffer for value, (buffer, _) in zip(yielded, targets))


def _target_of_branch(low: Lowering, op: ir.Operation, i: int, name: str, taken: list[ir.Value]):
    """The buffer of a tile that branches yield, and the tile that is in it before: one from outside, or none."""
    for region in op.regions:
        block = region.blocks[0]
        value = block.operations[-1].operands[i]
        own = _own_buffer(low, value)
        if own is None or own in taken:
            continue
        inside = tuple(reader for reader in _readers(value) if op in _ancestors(reader))
        if _may_overwrite(low, value, op, apart_from=inside):
            return own, value
    return low.like(op.results[i], name or "chosen"), None


def _body(
    low: Lowering, block: ir.Block, moved: list[ir.Operation], targets: list[tuple[ir.Value, ir.Value | None]]
) -> None:
    """Lowers a body that has been moved and yields a tile for each target: a buffer, and what is in it before."""
    *ops, end = moved
    yielded = [value for value in end.operands if is_tile(value)]
    for value, (buffer, before) in zip(yielded, targets):
        producer = value.owner
        if isinstance(producer, ir.Block) or value in low.buffers or producer.operation.block != block:
            continue
        producer = producer.operation
        if producer.name in _ELSEWHERE and (before is not None or not _is_made_in(producer, value)):
            continue
        if before is not None and (not _may_overwrite(low, before, producer) or _reads_elsewhere(low, producer, before)):
            continue
        low.buffers[value] = buffer

    def finish() -> None:
        low.b.location = end.location
        with ir.InsertionPoint(end):
            # Not those from before: a loop that loads ahead has been rewritten.
            tiles = [value for value in end.operands if is_tile(value)]
            copies = [(low.of(value), buffer) for value, (buffer, _) in zip(tiles, targets)]
            copies = [(source, buffer) for source, buffer in copies if source != buffer]
            overwritten = [buffer for _, buffer in copies]
            for n, (source, buffer) in enumerate(copies):
                if root_of(source) in overwritten[:n]:  # kept aside before the first copy
                    copies[n] = (low.copy_of(source), buffer)
            # Copies to the side come first: they stand before all others.
            for source, buffer in copies:
                low.emit("Copy", buffer, source)
        end.erase()

    low.ops(ops, finish)


def _is_made_in(op: ir.Operation, value: ir.Value) -> bool:
    """Whether a tile that a branch is for, and that is for nothing but to be yielded again, is made by both sides: it may
    have the buffer of the branch around it."""
    if op.name != "scf.if" or len(list(value.uses)) > 1:
        return False
    number = list(op.results).index(value)
    ends = (region.blocks[0].operations[-1] for region in op.regions)
    made = [end.operands[number].owner for end in ends]
    return all(not isinstance(owner, ir.Block) and op in _ancestors(owner.operation) for owner in made)


# -- slices -----------------------------------------------------------------------------------------------------------


def offset_of(low: Lowering, op: ir.Operation) -> int | ir.Value:
    """Where a slice starts."""
    static = op.attributes["static_offsets"][0]
    return op.operands[len(op.operands) - 1] if static == ir.ShapedType.get_dynamic_stride_or_offset() else static


def extract_slice(low: Lowering, op: ir.Operation) -> None:
    count = ir.RankedTensorType(op.results[0].type).get_dim_size(0)
    low.buffers[op.results[0]] = low.view(low.of(op.operands[0]), offset_of(low, op), count)


def updated(low: Lowering, op: ir.Operation, into: ir.Value) -> ir.Value:
    """The buffer of an op's result, with what is in `into`: in place where nothing reads that later."""
    own = _own_buffer(low, into)
    if own is None or not _may_overwrite(low, into, op):
        own = low.like(into, name_of(op.results[0]) or name_of(into) or "updated")
        low.emit("Copy", own, low.of(into))
    low.buffers[op.results[0]] = own
    return own


def insert_slice(low: Lowering, op: ir.Operation) -> None:
    part, into = op.operands[0], op.operands[1]
    own = updated(low, op, into)
    if part in low.inserted:
        return
    length = ir.RankedTensorType(part.type).get_dim_size(0)
    low.emit("Copy", low.view(own, offset_of(low, op), length), low.of(part))


def place_in_slice(low: Lowering, producer: ir.Operation, value: ir.Value) -> ir.Value | None:
    """Where the producer of a tile can write it: at its place in the tile that it will be inserted into."""
    use = next(iter(value.uses), None)
    if use is None:
        return None
    op = use.owner.operation
    if op.name != "tensor.insert_slice" or use.operand_number != 0 or op.block != producer.block:
        return None
    if producer.name in _ELSEWHERE or len(list(islice(value.uses, 2))) != 1:
        return None
    into, offset = op.operands[1], offset_of(low, op)
    own = _own_buffer(low, into)
    if own is None or not isinstance(offset, int) or not _may_overwrite(low, into, producer, apart_from=(op,)):
        return None
    if not _may_overwrite(low, into, op) or producer in set(_readers(into)):
        return None
    low.inserted.add(value)
    return low.view(own, offset, ir.RankedTensorType(value.type).get_dim_size(0))
