"""Orders dependent work on different pipes, with the fewest flags and barriers.

The pipes of a core run asynchronously: each in order, none waiting for another unless told. Two instructions that touch
the same bytes, one of them writing, must be ordered. Between pipes that takes an event, set right after the first and
waited for right before the second; within the vector pipe, or within a copy pipe, a barrier before the second. The
scalar unit issues everything and blocks on its reads and waits, so what it has read or waited for is ordered before all
that it issues later.

The pass walks the kernel with a model of what is known: for every instruction that has run, the pipes that are certain to
see it finished. Events carry that knowledge along, so transitive order counts. Branches keep what both sides know, loops
are walked until nothing changes, with the entry state joined in: what a branch or a loop of zero trips may have skipped is
never taken as done. Where the walk meets a conflict that is not ordered, it adds the synchronisation and starts again. At
the end every one is taken away on trial and stays away if no conflict appears.

A flag is set and waited for in one block, the innermost that contains both instructions, so each set has exactly one
wait. When the conflict is carried by a loop, the wait goes to the end of the loop's body.

Before:

    "ascendc.copy_in"(%x, %gm, %offset, %count) : ...
    "ascendc.exp"(%y, %x) : ...
    "ascendc.copy_out"(%out, %y, %offset, %count) : ...

After:

    "ascendc.copy_in"(%x, %gm, %offset, %count) : ...
    "ascendc.set_flag"() {event = "MTE2_V", event_id = 0 : i64} : () -> ()
    "ascendc.wait_flag"() {event = "MTE2_V", event_id = 0 : i64} : () -> ()
    "ascendc.exp"(%y, %x) : ...
    "ascendc.set_flag"() {event = "V_MTE3", event_id = 0 : i64} : () -> ()
    "ascendc.wait_flag"() {event = "V_MTE3", event_id = 0 : i64} : () -> ()
    "ascendc.copy_out"(%out, %y, %offset, %count) : ...

Writes to global memory by one pipe are not ordered among each other: a kernel stores every element once.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mlir import ir

from jascend.dialect import ASCENDC
from jascend.dialect.ascendc import EVENT_IDS, PIPES, buffer_bytes

from .diagnostics import PassFailure, emit_error
from .lower_to_tile import KERNEL
from .registry import register_pass

_ALL = frozenset(PIPES)


@register_pass("insert-sync")
@dataclass(frozen=True)
class InsertSync:
    def run(self, module: ir.Operation, remarks) -> None:
        for kernel in module.regions[0].blocks[0].operations:
            if KERNEL not in kernel.operation.attributes:
                continue
            program = Program(kernel.operation)
            program.synchronise()
            with module.location:
                program.write()
            flags, barriers = program.counts()
            remarks.add(kernel.operation, "analysis", f"{flags} flags and {barriers} barriers")


# -- the program ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Range:
    """Bytes an instruction touches: of the unified buffer, or all of a global buffer."""

    space: str  # "ub", or the argument of the kernel
    start: int
    end: int
    writes: bool

    def conflicts(self, other: _Range, same_pipe: bool) -> bool:
        if self.space != other.space or not (self.writes or other.writes):
            return False
        if self.space != "ub" and same_pipe:
            return False
        return self.start < other.end and other.start < self.end


@dataclass(eq=False)
class Item:
    """Something in a block: an instruction, a synchronisation or a control-flow op."""

    op: ir.Operation | None
    block: Block | None = None


@dataclass(eq=False)
class Instruction(Item):
    pipe: str = ""
    ranges: tuple[_Range, ...] = ()
    conflicts: set[Instruction] = field(default_factory=set)


@dataclass(eq=False)
class Control(Item):
    blocks: list[Block] = field(default_factory=list)


@dataclass(eq=False)
class Barrier(Item):
    pipe: str = ""


@dataclass(eq=False)
class Flag(Item):
    """A set or a wait. The two of a pair share `pair`."""

    source: str = ""
    target: str = ""
    is_wait: bool = False
    pair: list[Flag] = field(default_factory=list)
    event_id: int = -1


@dataclass(eq=False)
class Block:
    items: list[Item]
    owner: Control | None = None

    def insert(self, index: int, item: Item) -> None:
        item.block = self
        self.items.insert(index, item)


@dataclass
class _Knowledge:
    """What is certain at a point: for each instruction that may have run, which pipes see it finished; and for each
    flag that is set, the instructions whose completion it stands for."""

    seen_by: dict[Instruction, frozenset[str]]
    flags: dict[int, frozenset[Instruction]]

    def copy(self) -> _Knowledge:
        return _Knowledge(dict(self.seen_by), dict(self.flags))

    def join(self, other: _Knowledge) -> _Knowledge:
        seen = dict(self.seen_by)
        for instruction, pipes in other.seen_by.items():
            seen[instruction] = pipes & seen[instruction] if instruction in seen else pipes
        flags = {key: self.flags[key] & other.flags[key] for key in self.flags.keys() & other.flags.keys()}
        return _Knowledge(seen, flags)


class _Conflict(Exception):
    """Two instructions that nothing orders."""

    def __init__(self, before: Instruction, after: Instruction):
        self.before, self.after = before, after


class Program:
    """A kernel as blocks of instructions, and the synchronisation it needs."""

    def __init__(self, kernel: ir.Operation):
        self.kernel = kernel
        self.order: dict[Instruction, int] = {}
        self.body = self._block(kernel.regions[0].blocks[0], None)
        self._find_conflicts()

    # -- reading the IR -----------------------------------------------------------------------------------------

    def _block(self, block: ir.Block, owner: Control | None) -> Block:
        result = Block([], owner)
        for view in block.operations:
            op = view.operation
            item = self._item(op)
            item.block = result
            result.items.append(item)
        return result

    def _item(self, op: ir.Operation) -> Item:
        if any(len(region.blocks) for region in op.regions):
            control = Control(op)
            control.blocks = [self._block(region.blocks[0], control) for region in op.regions if len(region.blocks)]
            return control
        definition = ASCENDC.by_name.get(op.name)
        if op.name in ("ascendc.set_flag", "ascendc.wait_flag", "ascendc.pipe_barrier"):
            emit_error(op, "insert-sync runs on kernels without synchronisation, this one has some already")
            raise PassFailure
        if definition is None or definition.pipe is None:
            return Item(op)
        instruction = Instruction(op, pipe=definition.pipe, ranges=_ranges(op, definition))
        self.order[instruction] = len(self.order)
        return instruction

    def _find_conflicts(self) -> None:
        instructions = list(self.order)
        for i, a in enumerate(instructions):
            for b in instructions[i:]:
                if any(x.conflicts(y, a.pipe == b.pipe) for x in a.ranges for y in b.ranges):
                    a.conflicts.add(b)
                    b.conflicts.add(a)

    # -- the walk -----------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Raises `_Conflict` for the first conflict that nothing orders."""
        self._walk(self.body, _Knowledge({}, {}))

    def _walk(self, block: Block, known: _Knowledge) -> _Knowledge:
        for item in block.items:
            if isinstance(item, Instruction):
                self._run(item, known)
            elif isinstance(item, Barrier):
                for instruction, pipes in known.seen_by.items():
                    if item.pipe == "ALL":
                        known.seen_by[instruction] = _ALL
                    elif instruction.pipe == item.pipe:
                        known.seen_by[instruction] = pipes | {item.pipe}
            elif isinstance(item, Flag):
                self._flag(item, known)
            elif isinstance(item, Control):
                known = self._control(item, known)
        return known

    def _run(self, instruction: Instruction, known: _Knowledge) -> None:
        unordered = [
            other for other in instruction.conflicts if instruction.pipe not in known.seen_by.get(other, _ALL)
        ]
        if unordered:
            # The latest of one pipe stands for the earlier ones too.
            raise _Conflict(max(unordered, key=lambda other: (other.pipe, self.order[other])), instruction)
        known.seen_by[instruction] = _ALL if instruction.pipe == "S" else frozenset()
        for key, instructions in known.flags.items():
            known.flags[key] = instructions - {instruction}

    def _flag(self, flag: Flag, known: _Knowledge) -> None:
        key = id(flag.pair)
        if not flag.is_wait:
            known.flags[key] = frozenset(
                instruction
                for instruction, pipes in known.seen_by.items()
                if instruction.pipe == flag.source or flag.source in pipes
            )
            return
        # What the scalar unit has waited for is before all that it issues from then on, on any pipe.
        sees = _ALL if flag.target == "S" else {flag.target}
        for instruction in known.flags.pop(key, ()):
            known.seen_by[instruction] |= sees

    def _control(self, control: Control, known: _Knowledge) -> _Knowledge:
        name = control.op.name
        if name == "scf.if":
            after = [self._walk(block, known.copy()) for block in control.blocks]
            if len(after) == 1:
                after.append(known)
            return after[0].join(after[1])
        entry = known
        while True:  # knowledge only shrinks from round to round, so this ends
            if name == "scf.while":
                left = self._walk(control.blocks[0], entry.copy())
                again = self._walk(control.blocks[1], left.copy())
            else:
                left = entry
                again = self._walk(control.blocks[0], entry.copy())
            joined = entry.join(again)
            if joined == entry:
                return left
            entry = joined

    # -- adding synchronisation ---------------------------------------------------------------------------------

    def synchronise(self) -> None:
        while True:
            try:
                self.check()
            except _Conflict as conflict:
                self._order(conflict.before, conflict.after)
            else:
                break
        self._drop_redundant()
        self._number_events()

    def _order(self, before: Instruction, after: Instruction) -> None:
        if before.pipe == after.pipe:
            barrier = Barrier(None, pipe=after.pipe)
            after.block.insert(after.block.items.index(after), barrier)
            return
        first, second = _beside(before, after)
        block = first.block
        pair: list[Flag] = []
        set_ = Flag(None, source=before.pipe, target=after.pipe, pair=pair)
        wait = Flag(None, source=before.pipe, target=after.pipe, is_wait=True, pair=pair)
        pair += [set_, wait]
        carried = block.items.index(first) >= block.items.index(second)
        end = len(block.items) - 1 if _has_terminator(block) else len(block.items)
        block.insert(end if carried else block.items.index(second), wait)
        block.insert(block.items.index(first) + 1, set_)

    def _drop_redundant(self) -> None:
        for sync in self._syncs():
            group = sync.pair if isinstance(sync, Flag) else [sync]
            places = [(item.block, item.block.items.index(item), item) for item in group]
            for block, _, item in places:
                block.items.remove(item)
            try:
                self.check()
            except _Conflict:
                for block, index, item in places:
                    block.items.insert(index, item)

    def _syncs(self) -> list[Item]:
        """Every barrier and every set, in program order."""
        found: list[Item] = []

        def visit(block: Block) -> None:
            for item in block.items:
                if isinstance(item, Barrier) or (isinstance(item, Flag) and not item.is_wait):
                    found.append(item)
                elif isinstance(item, Control):
                    for inner in item.blocks:
                        visit(inner)

        visit(self.body)
        return found

    def _number_events(self) -> None:
        """Gives each pair an id that no pair of its direction has between the same set and wait; a barrier for all pipes
        replaces a pair when the ids are used up."""
        positions: dict[int, int] = {}

        def number(block: Block) -> None:
            for item in block.items:
                positions[id(item)] = len(positions)
                if isinstance(item, Control):
                    for inner in item.blocks:
                        number(inner)

        number(self.body)
        open_until: dict[tuple[str, str, int], int] = {}
        for sync in self._syncs():
            if not isinstance(sync, Flag):
                continue
            set_, wait = sync.pair
            start, end = positions[id(set_)], positions[id(wait)]
            free = [i for i in EVENT_IDS if open_until.get((set_.source, set_.target, i), -1) < start]
            if not free:
                set_.block.items.remove(set_)
                wait.block.insert(wait.block.items.index(wait), Barrier(None, pipe="ALL"))
                wait.block.items.remove(wait)
                continue
            set_.event_id = wait.event_id = free[0]
            open_until[(set_.source, set_.target, free[0])] = end

    # -- writing the IR -----------------------------------------------------------------------------------------

    def write(self) -> None:
        """Creates the ops of the synchronisation that was added."""
        set_flag, wait_flag, barrier = (ASCENDC.classes[n] for n in ("SetFlag", "WaitFlag", "PipeBarrier"))

        def visit(block: Block) -> None:
            following: Item | None = None
            for item in reversed(block.items):
                if isinstance(item, Control):
                    for inner in item.blocks:
                        visit(inner)
                if item.op is None:
                    with ir.InsertionPoint(following.op):
                        if isinstance(item, Barrier):
                            item.op = barrier.build(pipe=item.pipe).operation
                        else:
                            cls = wait_flag if item.is_wait else set_flag
                            event = f"{item.source}_{item.target}"
                            item.op = cls.build(event=event, event_id=item.event_id).operation
                following = item

        visit(self.body)

    def counts(self) -> tuple[int, int]:
        syncs = self._syncs()
        flags = sum(isinstance(sync, Flag) for sync in syncs)
        return flags, len(syncs) - flags


def _ranges(op: ir.Operation, definition) -> tuple[_Range, ...]:
    ranges = []
    for operand, value in zip(definition.operands, op.operands):
        if not operand.role:
            continue
        writes = operand.role in ("out", "inout")
        if isinstance(value.owner, ir.Block):
            ranges.append(_Range(f"argument {value.arg_number}", 0, 1, writes))
            continue
        offset = value.owner.attributes["offset"] if "offset" in value.owner.attributes else None
        if offset is None:
            emit_error(value.owner, "insert-sync needs buffers with addresses: run allocate-ub first")
            raise PassFailure
        ranges.append(_Range("ub", offset.value, offset.value + buffer_bytes(value), writes))
    return tuple(ranges)


def _beside(a: Item, b: Item) -> tuple[Item, Item]:
    """The items of the innermost common block that are, or contain, `a` and `b`."""
    above_a = _path(a)
    above_b = _path(b)
    for item_a in above_a:
        for item_b in above_b:
            if item_a.block is item_b.block:
                return item_a, item_b
    raise AssertionError("two instructions of one kernel share its body")


def _path(item: Item) -> list[Item]:
    path = [item]
    while path[-1].block.owner is not None:
        path.append(path[-1].block.owner)
    return path


def _has_terminator(block: Block) -> bool:
    last = block.items[-1]
    return last.op is not None and last.op.name in ("scf.yield", "scf.condition", "func.return")
