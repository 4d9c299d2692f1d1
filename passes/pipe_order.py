"""Which instructions of a kernel are ordered: a walk with bit sets, used by `insert-sync`.

Instructions are numbered in program order. At every point the walk knows, for each pipe, the set of instructions that
may have run and that the pipe is not certain to find finished (`State`: one integer, which has a field of bits for each
pipe, because a walk goes round loops often and every step is then one operation). An instruction that
conflicts with one in its pipe's set is unordered. A barrier empties the set of its own pipe's instructions. A flag
carries what its source pipe knew: all the source has been given before, and all that the source itself had waited for.
What the scalar unit has waited for is known to every pipe from then on, because the scalar unit issues to all of them.

Branches join by union: what one side may have skipped is not taken as done. Loops are walked until their entry state no
longer grows, with the state before the loop in it, so a loop of zero trips is covered; a copy ahead of the loop that is
of nothing then is not in it. Where a branch is taken, some of what may have run before cannot have (`exclusions`): such
instructions count only if they did before a certain point. A `while` loop goes round only by the branches that do not
end it: at its head counts what is known behind those.

An instruction on a buffer whose halves take turns (see `accesses`) has three bits: it ran in this iteration of the
loop, in the one before, or earlier; the back edge moves them on.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice

from mlir import ir

from jascend.dialect import ASCENDC
from jascend.dialect.ascendc import PIPES, constant_index

from .accesses import Access, Accesses, copies_nothing_at_last, copies_nothing_without
from .bounds import runs, turns
from .builder import RUNS
from .conflicts import Conflicts
from .diagnostics import PassFailure, emit_error
from .exclusions import Branch, Sources, ending_values, excluding_pairs, loops_that_turned

State = int  # a field of three bits an instruction for each pipe, in the order of PIPES
_SCALAR = PIPES.index("S")
_LOOPS = ("scf.for", "scf.while")
_TERMINATORS = ("scf.yield", "scf.condition", "func.return")


@dataclass(eq=False, slots=True)
class Item:
    """Something in a block. `low` and `high` bound the numbers of the instructions in it."""

    op: ir.Operation | None
    low: int = 0
    high: int = 0
    block: Block | None = None


@dataclass(eq=False, slots=True)
class Instruction(Item):
    pipe: int = 0
    accesses: list[Access] = field(default_factory=list)
    conflicts: int = 0  # in the field of its pipe
    leaves: State = 0  # what it adds to each pipe's set


@dataclass(eq=False)
class Control(Item):
    is_loop: bool = False
    blocks: list[Block] = field(default_factory=list)  # of a `while` loop first that of its condition
    turning: State = 0  # instructions on buffers whose halves take turns in this loop
    leading: State = 0  # instructions before the loop on one half of such a buffer
    ended: State = 0  # copies into such a buffer that are of nothing in the last iteration
    skipped: State = 0  # leading copies that are of nothing where the loop has no iteration
    primed: list[Pair] = field(default_factory=list)  # flags that are set before the loop
    turn: Item | None = None  # where a loop goes back, if it matters what is known there
    excluded: list[tuple[State, Item]] = field(default_factory=list)  # all but those that have not run since an item
    excluded_since: list[Item] = field(default_factory=list)  # such items outside, for branches inside
    onward: Item | None = None  # of branches some of which end a loop: what is known behind the others

    @cached_property
    def runs(self) -> bool:
        """Whether the loop is known to run at least once."""
        return RUNS in self.op.attributes or runs(self.op)

    @cached_property
    def turns(self) -> bool:
        """Whether the loop may run more than once."""
        return turns(self.op)


@dataclass(eq=False, slots=True)
class Barrier(Item):
    pipe: str = ""  # or "ALL"
    behind: bool = False  # right behind the item above, not right before the one below: scalar ops may be between


@dataclass(eq=False, slots=True)
class Flag(Item):
    pair: Pair | None = None
    is_wait: bool = False
    behind: bool = False  # as of a barrier


@dataclass(eq=False)
class Pair:
    """A flag: a set and its wait in one block. A primed one is waited for in the next iteration of `loop`: it is also
    set before the loop and waited for after it."""

    source: int
    target: int
    set: Flag | None = None
    wait: Flag | None = None
    loop: Control | None = None
    first_set: Flag | None = None
    last_wait: Flag | None = None
    event_id: int = -1

    @property
    def direction(self) -> tuple[int, int]:
        return self.source, self.target

    def flags(self) -> list[Flag]:
        return [flag for flag in (self.first_set, self.wait, self.set, self.last_wait) if flag is not None]


@dataclass(eq=False)
class Block:
    items: list[Item]
    owner: Control | None = None
    low: int = 0
    high: int = 0
    ends: bool = False  # whether a loop around does not go round from here
    deciding: list[Control] = field(default_factory=list)  # branches in it some of which end a loop around


class Unordered(Exception):
    """Instructions (bits) that nothing orders before one that conflicts with them."""

    def __init__(self, earlier: int, later: Instruction):
        self.earlier, self.later = earlier, later


class Program:
    """A kernel as nested blocks of instructions, and the walk over it."""

    def __init__(self, kernel: ir.Operation, in_order: tuple[str, ...] = ()):
        """`in_order` are pipes whose instructions wait for those before them by themselves."""
        self.kernel = kernel
        self.in_order = {_SCALAR, *map(PIPES.index, in_order)}
        self.instructions: list[Instruction] = []
        self.before: dict[Item | Block, State] = {}  # the state that an item was met with, and that at a block's end
        self.primed: dict[Pair, int] = {}  # what a primed flag stands for, at the head of its loop
        self.controls: dict[ir.Operation, Control] = {}
        self.blocks: dict[ir.Block, Block] = {}
        self.accesses = Accesses()
        self.points: dict[ir.Operation, Item] = {}  # scalar ops before which it matters what is known
        self.excluding: set[Item] = set()  # what decides that branches exclude each other
        self.body = self._block(kernel.regions[0].blocks[0], None)
        self.count = len(self.instructions)
        self._number_bits()

    # -- reading the IR -----------------------------------------------------------------------------------------

    def _block(self, block: ir.Block, owner: Control | None) -> Block:
        result = self.blocks[block] = Block([], owner, low=len(self.instructions))
        for view in block.operations:
            name = view.operation.name
            item = None if name.startswith("arith.") else self._item(view, name)
            if item is not None:
                item.block = result
                result.items.append(item)
        result.high = len(self.instructions)
        return result

    def _item(self, view: ir.OpView, name: str) -> Item | None:
        """What the walk has to know of an op; of scalars nothing."""
        op, low = view.operation, len(self.instructions)
        if name in _TERMINATORS:
            return Item(op, low, low)
        if not name.startswith("ascendc."):
            regions = op.regions
            if not len(regions) or not any(len(region.blocks) for region in regions):
                return None
            control = Control(op, low, is_loop=name in _LOOPS)
            self.controls[op] = control
            control.blocks = [self._block(region.blocks[0], control) for region in regions if len(region.blocks)]
            control.high = len(self.instructions)
            if name == "scf.while" and control.blocks[0].high > low:
                emit_error(op, "a while loop's condition must be scalar arithmetic, this one has instructions")
                raise PassFailure
            return control
        if name in ("ascendc.set_flag", "ascendc.wait_flag", "ascendc.pipe_barrier"):
            emit_error(op, "insert-sync runs on kernels without synchronisation, this one has some already")
            raise PassFailure
        if name == "ascendc.sync_all":
            return Barrier(op, low, low, pipe="ALL")
        pipe = ASCENDC.by_name[name].pipe
        if pipe is None:
            return None
        instruction = Instruction(op, low, low + 1, pipe=PIPES.index(pipe), accesses=self.accesses.of(view))
        self.instructions.append(instruction)
        return instruction

    def _point(self, op: ir.Operation) -> Item:
        """An item in the place of a scalar op."""
        if op not in self.points:
            block = self.blocks[op.block]
            index, following = next((i, x) for i, x in enumerate(block.items) if op.is_before_in_block(x.op))
            self.points[op] = Item(op, following.low, following.low, block)
            block.items.insert(index, self.points[op])
        return self.points[op]

    def _number_bits(self) -> None:
        n = self.count
        self.width = 3 * n
        self.field = (1 << self.width) - 1
        self.everything = self.spread(self.field)
        self.of_pipe = [0] * len(PIPES)
        for instruction in self.instructions:
            bit = 1 << instruction.low
            self.of_pipe[instruction.pipe] |= bit | bit << n | bit << 2 * n
            # What the scalar unit reads is complete before anything later is issued; what it writes, only to itself.
            if instruction.pipe != _SCALAR:
                instruction.leaves = self.spread(bit)
            elif any(access.writes for access in instruction.accesses):
                instruction.leaves = self.spread(bit) ^ self.at(bit, _SCALAR)
        self.of_others = [self.field ^ bits for bits in self.of_pipe]
        self.kept = {
            pipe: self.everything ^ self.at(bits, i) for i, (pipe, bits) in enumerate(zip(PIPES, self.of_pipe))
        }
        self.kept["ALL"] = 0
        self._keep_innermost_turns()
        for instruction in self.instructions:
            for access in instruction.accesses:
                if access.turn:
                    bit = self.spread(1 << instruction.low)
                    loop = self.controls[access.turn.loop]
                    loop.turning |= bit
                    if copies_nothing_at_last(instruction.op, loop.op):
                        loop.ended |= bit
        self._find_leading()
        self.turning_loops = [control for control in self.controls.values() if control.turning]
        Conflicts(self.instructions)
        for instruction in self.instructions:
            ordered = self.of_pipe[instruction.pipe] if instruction.pipe in self.in_order else 0
            instruction.conflicts = self.at(instruction.conflicts & ~ordered, instruction.pipe)
        self._find_excluded()
        for op, control in self.controls.items():
            if op.name == "scf.while":
                self._find_endings(control.blocks[1], list(ending_values(op)))

    def _keep_innermost_turns(self) -> None:
        """An instruction takes turns in one loop at the most, the innermost around it that has turns: its three bits
        tell the iterations of no more than one loop apart. In all others it may touch either half."""
        turning = [i for i in self.instructions if any(access.turn for access in i.accesses)]
        loops = {access.turn.loop for i in turning for access in i.accesses if access.turn}
        for instruction in turning:
            block = instruction.block
            while block.owner is not None and block.owner.op not in loops:
                block = block.owner.block
            for k, access in enumerate(instruction.accesses):
                if access.turn and (block.owner is None or access.turn.loop != block.owner.op):
                    start, end = access.span
                    instruction.accesses[k] = access._replace(start=start, end=end, turn=None, pieces=())

    def _find_leading(self) -> None:
        """Finds what fills the halves before the loop in which they take turns: to the loop it is as if the iteration
        before the first one had done it."""
        turns = {a.root: a.turn for i in self.instructions for a in i.accesses if a.turn}
        for instruction in self.instructions:
            if any(access.turn for access in instruction.accesses):
                continue
            for k, access in enumerate(instruction.accesses):
                turn = turns.get(access.root)
                if turn is None:
                    continue
                loop = self.controls[turn.loop]
                half = access.start // turn.bytes
                if access.end > (half + 1) * turn.bytes or loop.low <= instruction.low < loop.high:
                    continue
                shift = half * turn.bytes
                as_before = turn._replace(half=1 if half == turn.first else 0)
                start, end = access.start - shift, access.end - shift
                instruction.accesses[k] = access._replace(start=start, end=end, turn=as_before)
                bit = self.spread(1 << instruction.low)
                loop.leading |= bit
                if instruction.low < loop.low and copies_nothing_without(instruction.op, loop.op):
                    loop.skipped |= bit
                break

    def _find_excluded(self) -> None:
        """Finds what cannot have run where a branch is taken. The bits of what takes turns move, with the loop that it
        takes turns in: they are told as well where that loop has not run either, and left alone elsewhere."""
        n = self.count
        sources = Sources()
        branches = [
            Branch(op, control.blocks[0].low, control.blocks[0].high, sources)
            for op, control in self.controls.items()
            if not control.is_loop
        ]
        for branch in branches:
            for op in loops_that_turned(branch):
                loop = self.controls[op]
                loop.turn = loop.turn or Item(None, loop.high, loop.high, loop.blocks[-1])
                inside = (1 << loop.high) - (1 << loop.low)
                outside = self.field ^ (inside | inside << n | inside << 2 * n)
                self._exclude(self.controls[branch.op], outside, loop.turn)
        turning = 0
        for loop in self.turning_loops:
            turning |= loop.turning | loop.leading
        for later, earlier, op in excluding_pairs(branches):
            ran = (1 << earlier.high) - (1 << earlier.low)
            bits = ran & ~turning
            for loop in self.turning_loops:
                if earlier.low <= loop.low and loop.high <= earlier.high:
                    moving = ran & (loop.turning | loop.leading)
                    bits |= moving | moving << n | moving << 2 * n
            since = self.controls.get(op) or self._point(op.operation)
            self._exclude(self.controls[later.op], bits, since)
            self.excluding.add(since)

    def _exclude(self, branch: Control, bits: int, since: Item) -> None:
        branch.excluded.append((self.everything ^ self.spread(bits), since))
        control = branch
        while control is not None and since.block not in control.blocks:
            control.excluded_since.append(since)
            control = control.block.owner

    def _find_endings(self, block: Block, ending: list[tuple[ir.Value, int]]) -> bool:
        """Whether a loop may end with a block's end, because one of some values is the number given with it. Finds the
        branches in the block that decide so."""
        deciding: dict[Control, list[tuple[int, int]]] = {}
        for value, number in ending:
            block.ends |= constant_index(value) == number
            branch = self.controls.get(value.owner)
            if branch is not None and not branch.is_loop and branch.block is block:
                deciding.setdefault(branch, []).append((value.result_number, number))
        for branch, results in deciding.items():
            found = False
            for inner, region in zip(branch.blocks, branch.op.regions):
                yielded = region.blocks[0].operations[-1].operands
                found |= self._find_endings(inner, [(yielded[i], number) for i, number in results])
            if found:
                branch.onward = Item(None, branch.high, branch.high, block)
                block.deciding.append(branch)
        return block.ends or bool(block.deciding)

    # -- bits ---------------------------------------------------------------------------------------------------

    def at(self, bits: int, pipe: int) -> State:
        """Bits in the field of a pipe."""
        return bits << self.width * pipe

    def spread(self, bits: int) -> State:
        """Bits in the fields of all pipes."""
        state = 0
        for pipe in range(len(PIPES)):
            state |= bits << self.width * pipe
        return state

    def seen(self, state: State, pipe: int) -> int:
        """The set of a pipe."""
        return state >> self.width * pipe & self.field

    # -- the walk -----------------------------------------------------------------------------------------------

    def step(self, item: Item, state: State) -> State:
        """The state after an item. Raises `Unordered`."""
        kind = type(item)
        if kind is Barrier:
            return state & self.kept[item.pipe]
        if kind is Flag:
            return self._wait(item, state) if item.is_wait else state
        if kind is Control:
            return self._control(item, state)
        if kind is Instruction:
            if state & item.conflicts:
                raise Unordered(self.seen(state & item.conflicts, item.pipe), item)
            return state | item.leaves
        return state

    def walk(self, block: Block, state: State, index: int = 0) -> State:
        """The state behind a block, of that before one of its items. Raises `Unordered`."""
        before = self.before
        for item in islice(block.items, index, None):
            before[item] = state
            kind = type(item)
            if kind is Instruction and not state & item.conflicts:  # as most are
                state |= item.leaves
            elif kind is not Item:
                state = self.step(item, state)
        before[block] = state
        return state

    def _wait(self, wait: Flag, state: State) -> State:
        pair = wait.pair
        if pair.loop is None:
            left = self.since(self.missing(pair, pair.set), pair.set.low, wait.low)
        elif wait is pair.wait:
            left = self.since(self.primed[pair], wait.block.low, wait.low)
        else:
            left = self.turned(pair.loop, self.primed[pair], leave=True)
        if pair.target == _SCALAR:
            return state & self.spread(left)
        return state & (self.everything ^ self.at(self.field ^ left, pair.target))

    def missing(self, pair: Pair, flag: Flag) -> int:
        """What a flag that is set there does not stand for."""
        return self.before[flag] >> self.width * pair.source & self.of_others[pair.source]

    def since(self, bits: int, low: int, high: int) -> int:
        """Bits that were there at one number, and those of the instructions from there up to another."""
        return bits if low == high else self.aged(bits | self.between(low, high), low, high)

    def between(self, low: int, high: int) -> int:
        return (1 << high) - (1 << low) if high > low else 0

    def aged(self, bits: int, low: int, high: int) -> int:
        """Bits, also where the loops between two numbers may have moved them."""
        for loop in self.turning_loops:
            if low <= loop.low and loop.high <= high:
                moved = (bits | bits >> self.count) & (loop.turning | loop.leading)
                bits |= moved << self.count | moved << 2 * self.count
        return bits

    def _control(self, control: Control, state: State) -> State:
        if not control.is_loop:
            taken = self._without_excluded(control, state)
            after = [self.walk(block, x) for block, x in zip(control.blocks, (taken, state))]
            if control.onward is not None:
                self.before[control.onward] = self._onward(control.blocks[0]) | self._onward(control.blocks[1])
            return after[0] | (after[1] if len(after) > 1 else state)
        state = self.entered(control, state)
        not_run = state & ~(control.skipped << self.count)
        # Where an earlier walk has found something at the head, with no more before the loop, it is there again.
        state |= self.before.get(control.blocks[0].items[0], 0)
        for pair in control.primed:
            bits = self.since(self.missing(pair, pair.first_set), pair.first_set.low, control.low)
            self.primed[pair] = self.entered(control, bits)
        if control.turn is not None:
            self.before.setdefault(control.turn, 0)
        while True:  # the head's state only grows, so this ends
            left = self.walk(control.blocks[0], state) if len(control.blocks) > 1 else state
            again = self.turned(control, self.walk(control.blocks[-1], left))
            onward = self.turned(control, self._onward(control.blocks[-1])) if control.blocks[-1].deciding else again
            head = state | onward
            carried = {pair: self.primed[pair] | self.carried(control, pair) for pair in control.primed}
            if not control.turns:
                self.primed |= carried
                break
            is_known = control.turn is None or self.before[control.turn] == again
            if is_known and head == state and all(self.primed[pair] == bits for pair, bits in carried.items()):
                break
            state = head
            self.primed |= carried
            if control.turn is not None:
                self.before[control.turn] = again
        return self._left(control, again if control.runs else not_run | again)

    def _left(self, control: Control, state: State) -> State:
        """The state behind a loop, of the one at its end."""
        return self.turned(control, state & ~(control.ended << self.count), leave=True)

    def _onward(self, block: Block) -> State:
        """The state at a block's end, where a loop goes round from there."""
        if block.ends:
            return 0
        state = self.before[block]
        for branch in block.deciding:
            ran = self.spread(self.between(branch.high, block.high))
            state &= self.aged(self.before[branch.onward] | ran, branch.high, block.high)
        return state

    def _without_excluded(self, branch: Control, state: State) -> State:
        """What a branch is met with, where it is taken."""
        for others, since in branch.excluded:
            state &= self.before[since] | others
        return state

    def carried(self, loop: Control, pair: Pair) -> int:
        """What the set in a loop's body does not stand for, at the end of the body."""
        return self.turned(loop, self.since(self.missing(pair, pair.set), pair.set.low, pair.set.block.high))

    def entered(self, loop: Control, bits: int) -> int:
        """Bits on the way into a loop: what it did when it ran before counts as long ago."""
        if not loop.turning:
            return bits
        return self._moved(loop.leading, self._moved(loop.turning, self._moved(loop.turning, bits)))

    def turned(self, loop: Control, bits: int, leave: bool = False) -> int:
        """Moves the bits of what takes turns in a loop on by an iteration; on the way out, to the last of the three."""
        if not loop.turning:
            return bits
        bits = self._moved(loop.turning | loop.leading, bits)
        return self._moved(loop.turning | loop.leading, bits) if leave else bits

    def _moved(self, mask: int, bits: int) -> int:
        n = self.count
        now, last, older = bits & mask, bits >> n & mask, bits >> 2 * n & mask
        return bits ^ (now | last << n | older << 2 * n) | now << n | (last | older) << 2 * n

    # -- finding one's way --------------------------------------------------------------------------------------

    def items(self) -> list[Item]:
        """All items, in program order."""
        found: list[Item] = []
        _add_items(self.body, found)
        return found

    def release(self) -> None:
        """Takes apart what refers to each other when it has served, which would be left to a collection else."""
        for item in self.items():
            if type(item) is Flag:
                item.pair = None
            elif type(item) is Control:
                item.turn = item.onward = None
                item.primed.clear()
        for block in self.blocks.values():
            block.items, block.owner = [], None


def _add_items(block: Block, found: list[Item]) -> None:
    for item in block.items:
        found.append(item)
        if type(item) is Control:
            for inner in item.blocks:
                _add_items(inner, found)
