"""Stretches of a kernel's ops that can be functions (`outline-stages`): where they begin and end, which are alike."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from mlir import ir

from jascend.dialect.ascendc import constant_index

from .accesses import VIEW
from .builder import COMMENT, PART, PART_END, STAGE, STAGE_END

MARKS = (STAGE, STAGE_END, PART, PART_END)
BUFFER, CONSTANT = "ascendc.local_tensor", "arith.constant"
_SILENT = (BUFFER, CONSTANT, VIEW, "scf.yield", "scf.condition")
_BARRIER = "ascendc.pipe_barrier"
_SET, _WAIT = "ascendc.set_flag", "ascendc.wait_flag"
_PROLOGUE = (_SET, _WAIT, "ascendc.copy_in", "ascendc.copy_in_rows", _BARRIER, VIEW)


class Node:
    """An op, with what is in its blocks; `size` is how many lines of text it takes, `shape` what it has in common with
    ops like it. The IR's own handles do not serve as keys: their hash is of what an op holds, which outlining
    changes."""

    __slots__ = ("op", "name", "blocks", "size", "shape")

    def __init__(self, op: ir.Operation):
        self.op, self.name, self.blocks = op, op.name, []
        if len(op.regions):
            blocks = (block for region in op.regions for block in region.blocks)
            self.blocks = [[Node(view.operation) for view in block.operations] for block in blocks]
        self.measure()
        self.shape = hash((self.name, *map(shapes_of, self.blocks)))

    def measure(self) -> None:
        self.size = (self.name not in _SILENT) + len(self.blocks) + sum(map(lines_of, self.blocks))


def shapes_of(nodes: list[Node]) -> tuple[int, ...]:
    return tuple(node.shape for node in nodes if node.name not in (_BARRIER, CONSTANT))


def lines_of(nodes: list[Node]) -> int:
    return sum(node.size for node in nodes)


def parts_of(nodes: list[Node]) -> Iterator[tuple[str, list[Node]]]:
    """The parts among the ops of a block, with their names."""
    found = None
    for node in nodes:
        if PART in node.op.attributes:
            found = node.op.attributes[PART].value, []
        if found is not None:
            found[1].append(node)
            if PART_END in node.op.attributes:
                yield found
                found = None


def shape_of(part: tuple[str, list[Node]]) -> int:
    return hash((part[0], shapes_of(part[1])))


@dataclass
class Stretch:
    """Ops in a row, of one block: what they read from around them, and which of their values are read there."""

    ops: list[ir.Operation]
    given: list[ir.Value] = field(default_factory=list)
    places: list[tuple[ir.Operation, int, int]] = field(default_factory=list)  # op, operand, which of what it is given
    uses: list[tuple[ir.Operation, int, ir.Value]] = field(default_factory=list)  # of all other values from around it
    copied: list[ir.Value] = field(default_factory=list)  # buffers and constants from around it that it has itself
    views: list[ir.Value] = field(default_factory=list)
    results: dict[ir.Value, list[ir.OpOperand]] = field(default_factory=dict)  # with their uses outside
    key: tuple = ()


def with_prologue(nodes: list[Node], node: Node) -> list[Node]:
    """A loop with what loads its first chunk, and with the flags that are set before it for its first turn and waited
    for after its last one. Scalars that only these read come along, others stay in front of them."""
    start = end = nodes.index(node)
    waited = 0
    while nodes[end + 1].name == _WAIT:
        end, waited = end + 1, waited + 1
    stretch = nodes[start : end + 1]
    for before in reversed(nodes[:start]):
        if before.name in _PROLOGUE or PART_END in before.op.attributes:
            stretch.insert(0, before)
        elif _is_scalar(before.op):
            inside = {each.op for each in stretch}
            users = (top_of(use.owner.operation, node.op) for result in before.op.results for use in result.uses)
            if all(user in inside for user in users):
                stretch.insert(0, before)
        elif before.name != CONSTANT:
            break
    return _balanced(stretch, node)


def without_views(chosen: list[Node]) -> list[Node]:
    """Moves parts of buffers that are around the ops to before them: they are what these are given."""
    moved = [node for node in chosen if node.name == VIEW and constant_index(node.op.operands[1]) is not None]
    if not moved:
        return chosen
    first = next(node.op for node in chosen if node not in moved and node.name != CONSTANT)
    for node in moved:
        with ir.InsertionPoint(first):
            node.op.operands[1] = node.op.operands[1].owner.clone().results[0]
        node.op.move_before(first)
    return [node for node in chosen if node not in moved]


def _balanced(stretch: list[Node], node: Node) -> list[Node]:
    """The part of a stretch around a loop whose flags are set and waited for in it."""
    start, end, loop = 0, len(stretch), stretch.index(node)
    pending: dict[tuple[str, int], list[int]] = {}
    for i, each in enumerate(stretch):
        if each.name not in (_SET, _WAIT):
            continue
        flag = pending.setdefault((each.op.attributes["event"].value, each.op.attributes["event_id"].value), [])
        if each.name == _SET:
            flag.append(i)
        elif flag:
            flag.pop()
        elif i < loop:
            start = i + 1
        else:
            end = i
            break
    start = max([start, *(i + 1 for places in pending.values() for i in places)])
    while stretch[start].name == _BARRIER:
        start += 1
    return stretch[start:end]


def _is_scalar(op: ir.Operation) -> bool:
    return op.name.startswith("arith.") and op.name != CONSTANT


def describe(stretch: Stretch, is_alone: bool) -> None:
    """Fills in what a stretch is given, its results, and its key. Every use of a constant from around it is given on
    its own: stretches may differ in constants. One that is known to be alone, unlike any others, has its buffers and
    constants itself. Of a buffer that it sees in several parts, which constants tell, it is given the whole."""
    numbers: dict[ir.Value, int] = {}
    following = itertools.count()
    key: list = []
    inside = set(stretch.ops)
    first = stretch.ops[0]
    parts: dict[ir.Value, list[ir.Value]] = {}
    is_part = PART_END in stretch.ops[-1].attributes
    constants: set[ir.Value] = set()
    around: set[ir.Value] = set()

    def use(op: ir.Operation, place: int, value: ir.Value) -> int:
        found = number(op, place, value)
        if value in around:
            stretch.uses.append((op, place, value))
        return found

    def number(op: ir.Operation, place: int, value: ir.Value) -> int:
        found = numbers.get(value)
        if found is not None:
            return found
        owner = value.owner
        if value in constants:
            key.append(owner.attributes["value"])
        elif is_alone and not isinstance(owner, ir.Block) and owner.name in (BUFFER, CONSTANT):
            around.add(value)
            stretch.copied.append(value)
        elif not isinstance(owner, ir.Block) and owner.name == CONSTANT:
            stretch.places.append((op, place, len(stretch.given)))
            stretch.given.append(value)
            key.append(value.type)
            return next(following)
        elif (whole := _whole(value)) is not None and (not is_part or len(parts[whole]) > 1):
            key.append((number(op, place, whole), owner.operands[1].owner.attributes["value"], value.type))
            around.add(value)
            stretch.views.append(value)
        else:
            around.add(value)
            stretch.given.append(value)
            key.append(value.type)
        numbers[value] = next(following)
        return numbers[value]

    def look(op: ir.Operation) -> None:
        for operand in op.operands:
            whole = _whole(operand)
            if whole is not None and operand not in (seen := parts.setdefault(whole, [])):
                seen.append(operand)

    def visit(op: ir.Operation, top: bool) -> None:
        if op.name == _BARRIER:
            return
        if op.name == CONSTANT:
            constants.add(op.results[0])
            return
        key.append(op.name)
        for name in op.attributes if not is_alone else ():
            if name not in (COMMENT, *MARKS) or name == COMMENT and not top:
                key.append((name, op.attributes[name]))
        key.append(tuple(use(op, place, operand) for place, operand in enumerate(op.operands)))
        for region in op.regions:
            for block in region.blocks:
                key.append("{")
                for argument in block.arguments:
                    numbers[argument] = next(following)
                for view in block.operations:
                    visit(view.operation, False)
                key.append("}")
        for result in op.results:
            numbers[result] = next(following)
            key.append(result.type)

    if is_part:
        for op in stretch.ops:
            look(op)
    for op in stretch.ops:
        visit(op, True)
        for result in op.results if op.name != CONSTANT else ():
            outside = [use for use in result.uses if top_of(use.owner.operation, first) not in inside]
            if outside:
                stretch.results[result] = outside
                key.append(("result", numbers[result]))
    stretch.key = (object(),) if is_alone else tuple(key)


def add_barriers(ours: list[ir.Operation], theirs: list[ir.Operation]) -> None:
    """Adds to ops the barriers that others, which are like them, have and they have not."""
    place = 0
    ours, theirs = ([op for op in ops if op.name != CONSTANT] for ops in (ours, theirs))
    for other in theirs:
        while ours[place].name == _BARRIER and other.name != _BARRIER:
            place += 1
        if other.name == _BARRIER and ours[place].name != _BARRIER:
            with ir.InsertionPoint(ours[place]):
                other.clone()
        else:
            place += 1


def _whole(value: ir.Value) -> ir.Value | None:
    """The buffer that a value is a part of, from a constant place on."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != VIEW or constant_index(owner.operands[1]) is None:
        return None
    return owner.operands[0]


def all_ops(ops: Sequence[ir.Operation]) -> Iterator[ir.Operation]:
    for op in ops:
        yield op
        for region in op.regions:
            for block in region.blocks:
                yield from all_ops([view.operation for view in block.operations])


def top_of(op: ir.Operation, beside: ir.Operation) -> ir.Operation | None:
    """The op in the block of `beside` that an op is in, or is."""
    block = beside.block
    while op is not None and op.block != block:
        op = op.parent.operation if op.parent is not None and op.parent.name != "builtin.module" else None
    return op
