"""Orders dependent work on different pipes, with the fewest flags and barriers.

The pipes of a core run asynchronously: each in order, none waiting for another unless told. Two instructions that touch
the same bytes, one of them writing, must be ordered. Between pipes that takes an event, set right after the first and
waited for right before the second; within the vector pipe (not on 950, whose vector instructions wait for each other),
or within a copy pipe, a barrier before the second. The
scalar unit issues everything and blocks on its reads and waits, so what it has read or waited for is ordered before all
that it issues later.

The pass walks the kernel with what is known at each point (`pipe_order`). Where it meets a conflict that is not
ordered, it adds the synchronisation and goes on from there; if a loop has gone round by then, it walks that loop anew.
At the end every one is taken away on trial, and stays away if no conflict appears before the walk is back to what it
knew. What a branch or a loop of zero trips may have skipped is never taken as done; what the conditions of branches
rule out is not taken as having run (`exclusions`).

A flag is set and waited for in one block, the innermost that contains both instructions, so each set has exactly one
wait; a barrier stands before the later instruction, outside the loops that do not contain the earlier one. When the
conflict is carried by a loop, the wait goes to the end of the loop's body; if the pipe that waits has something to do
before the later instruction in the next iteration, the wait stands before that instruction instead, and the flag is
primed: set once before the loop and waited for once after it. There are 6 ids a direction. Where they do not suffice
two that are open become one, set where the later one was and waited for where the earlier one was; a barrier for all
pipes stands in where there are no two.

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

Global memory counts as a whole, an argument or a workspace each. Two stores to it by different ops are ordered by a
barrier, unless one has the attribute `once`: it writes elements that no other store writes. One store in a loop is
taken to write each element once. `SyncAll` is a barrier for all pipes: what a core wrote before it is there for every
core after.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, islice, pairwise

from mlir import ir

from jascend.backends.ascend.targets import TARGETS
from jascend.dialect import ASCENDC
from jascend.dialect.ascendc import EVENT_IDS, PIPES

from .diagnostics import PassFailure, emit_error
from .lower_to_tile import KERNEL
from .pipe_order import Barrier, Block, Control, Flag, Instruction, Item, Pair, Program, State, Unordered
from .registry import option, register_pass

_SCALAR = PIPES.index("S")
_MAX_ADDED = 100_000  # a conflict that what is added does not resolve would add for ever


@register_pass("insert-sync", touches=("ascendc.set_flag", "ascendc.wait_flag", "ascendc.pipe_barrier"))
@dataclass(frozen=True)
class InsertSync:
    target: str = option("ascend910b", "the product whose pipes are ordered")

    def run(self, module: ir.Operation, remarks) -> None:
        if self.target not in TARGETS:
            emit_error(
                module, f"option 'target' of insert-sync must be one of {', '.join(TARGETS)}, got '{self.target}'"
            )
            raise PassFailure
        in_order = ("V",) if TARGETS[self.target].vector_waits else ()
        for kernel in module.regions[0].blocks[0].operations:
            if KERNEL not in kernel.operation.attributes:
                continue
            program = _Synchroniser(kernel.operation, in_order)
            program.synchronise()
            with module.location:
                program.write()
            flags, barriers = program.counts()
            remarks.add(kernel.operation, "analysis", f"{flags} flags and {barriers} barriers")
            program.release()


class _Trial(dict):
    """States that a trial has found; where it has not been, those from before it."""

    def __init__(self, before: dict[Item | Block, State]):
        self.earlier = before

    def __missing__(self, item: Item | Block) -> State:
        return self.earlier[item]

    def get(self, item: Item | Block, default: State) -> State:
        return self[item] if item in self else self.earlier.get(item, default)


class _Resume(Exception):
    """Synchronisation was added: the walk goes on from an item, with the state that it was met with."""

    def __init__(self, item: Item):
        self.item = item


class _Synchroniser(Program):
    def __init__(self, kernel: ir.Operation, in_order: tuple[str, ...]):
        super().__init__(kernel, in_order)
        self.adding = False
        self.added = 0
        self.rounds: dict[Control, int] = {}  # how many times a loop has been walked, from its entry
        self.known: dict[Control, dict] = {}  # what walks of a control-flow op have found, by the state before it

    def synchronise(self) -> None:
        self.adding = True
        self.walk(self.body, 0)
        self.adding = False
        self._drop_redundant()
        self._number_events()

    def syncs(self) -> list[Item]:
        """Every barrier that was added and every set of a pair, in program order."""
        return [
            item
            for item in self.items()
            if item.op is None and (isinstance(item, Barrier) or isinstance(item, Flag) and item is item.pair.set)
        ]

    # -- adding -------------------------------------------------------------------------------------------------

    def walk(self, block: Block, state: State, index: int = 0) -> State:
        if not self.adding:
            return super().walk(block, state, index)
        if block.owner is not None and block is block.owner.blocks[0]:
            self.rounds[block.owner] += 1
        while True:
            try:
                return super().walk(block, state, index)
            except Unordered as conflict:
                resume = self._order(conflict)
            except _Resume as request:
                resume = request.item
            if resume.block is not block:
                raise _Resume(resume)
            index, state = block.items.index(resume), self.before[resume]

    def _control(self, control: Control, state: State) -> State:
        if not self.adding:
            return super()._control(control, state)
        primed = [self.missing(pair, pair.first_set) for pair in control.primed]
        entry = (state, *primed, *[self.before[item] for item in control.excluded_since])
        found = self.known.get(control, {}).get(entry)
        if found is not None:
            after, primed, onward = found
            self.primed |= primed
            self.before |= onward
            return after
        self.rounds[control] = 0
        self._forget(control)
        after = super()._control(control, state)
        self.rounds[control] = 0
        onward = {item: self.before[item] for item in (control.onward,) if item is not None}
        self.known.setdefault(control, {})[entry] = after, {pair: self.primed[pair] for pair in control.primed}, onward
        return after

    def _forget(self, control: Control) -> None:
        """Forgets what walks have found at a loop's head: what has been added since may have ordered it."""
        for item in (control.blocks[0].items[0], control.turn):
            self.before.pop(item, None)
        for pair in control.primed:
            self.primed.pop(pair, None)

    def _order(self, conflict: Unordered) -> Item:
        """Adds what orders some of the earlier instructions before the later one; returns where to go on."""
        self.added += 1
        assert self.added < _MAX_ADDED, "what insert-sync adds does not resolve the conflict"
        earlier, loop = self._choose(conflict)
        later = conflict.later
        first, second = _beside(earlier, later) if loop is None else _inside(loop, earlier, later)
        if earlier.pipe == later.pipe:
            place = _out_of_loops(later, second)
            resume = self._insert(Barrier(None, pipe=PIPES[later.pipe]), place.block, place)
        else:
            resume = self._add_flag(first, second, later.pipe, earlier.pipe, carried=loop is not None)
        return self._outermost_repeated(resume) or resume

    def _choose(self, conflict: Unordered) -> tuple[Instruction, Control | None]:
        """One of the earlier instructions, the latest of its pipe, which stands for those before it too; and the loop
        from whose last iteration it comes, if it takes turns there."""
        later, n = conflict.later, self.count
        bits = next(found for mask in self.of_pipe if (found := conflict.earlier & mask))
        now, aged = bits & ((1 << n) - 1), (bits >> n | bits >> 2 * n) & ((1 << n) - 1)
        for loop in self.turning_loops:
            if not loop.low <= later.low < loop.high:
                now |= aged & loop.turning
            now |= aged & loop.leading
        forward = now & ((1 << later.low) - 1)
        chosen = forward or now
        if chosen:
            return self.instructions[chosen.bit_length() - 1], None
        earlier = self.instructions[aged.bit_length() - 1]
        return earlier, next(loop for loop in self.turning_loops if loop.turning >> earlier.low & 1)

    def _add_flag(self, first: Item, second: Item, target: int, source: int, carried: bool) -> Item:
        """Sets a flag behind `first` and waits before `second`, or where the two are iterations apart at the body's
        end. If that would hold up what comes before `second` in the next iteration, the flag is primed instead."""
        block = first.block
        pair = Pair(source, target)
        follows = block.items.index(first) >= block.items.index(second)
        if not carried and not follows:
            pair.set = self._insert(Flag(None, pair=pair, behind=True), block, _behind(first))
            pair.wait = self._insert(Flag(None, pair=pair, is_wait=True), block, second)
            return pair.wait
        pair.set = self._insert(Flag(None, pair=pair, behind=True), block, _behind(first))
        loop = block.owner
        held_up = self.since(0, block.low, second.low) & (-1 if target == _SCALAR else self.of_pipe[target])
        if not (follows and held_up and loop is not None and loop.is_loop):
            end = block.items[-1] if _has_terminator(block) else None
            pair.wait = self._insert(Flag(None, pair=pair, is_wait=True), block, end)
            return pair.set
        pair.loop = loop
        pair.wait = self._insert(Flag(None, pair=pair, is_wait=True), block, second)
        pair.first_set = self._insert(Flag(None, pair=pair), loop.block, loop)
        pair.last_wait = self._insert(Flag(None, pair=pair, is_wait=True, behind=True), loop.block, _behind(loop))
        loop.primed.append(pair)
        return pair.first_set

    def _insert(self, item: Item, block: Block, place: Item | None) -> Item:
        """Puts a synchronisation before `place`, or at the block's end."""
        item.block = block
        item.low = item.high = block.high if place is None else place.low
        block.items.insert(len(block.items) if place is None else block.items.index(place), item)
        if place in self.before:
            self.before[item] = self.before[place]
        while block.owner is not None:
            self.known.pop(block.owner, None)
            block = block.owner.block
        return item

    def _outermost_repeated(self, item: Item) -> Control | None:
        """The outermost loop around an item that has gone round: its head holds what the new synchronisation orders."""
        found = None
        block = item.block
        while block.owner is not None:
            if block.owner.is_loop and self.rounds.get(block.owner, 0) > 1:
                found = block.owner
            block = block.owner.block
        return found

    # -- taking away --------------------------------------------------------------------------------------------

    def _drop_redundant(self) -> None:
        self.before.clear()
        self.primed.clear()
        self.walk(self.body, 0)
        for sync in self.syncs():
            self._drop_if_redundant(sync)

    def _drop_if_redundant(self, sync: Item) -> None:
        if self._is_needed_at_once(sync.pair.wait if isinstance(sync, Flag) else sync):
            return
        group = sync.pair.flags() if isinstance(sync, Flag) else [sync]
        places = sorted(((item.block.items.index(item), item) for item in group), key=lambda place: place[0])
        loop = sync.pair.loop if isinstance(sync, Flag) else None
        last = group[0] if loop is None else None
        index = last and last.block.items.index(last) - (last is not sync)
        for _, item in reversed(places):
            item.block.items.remove(item)
        if loop is not None:
            loop.primed.remove(sync.pair)
        before, primed = self.before, self.primed.copy()
        self.before = _Trial(before)
        try:
            if last is None:
                self.walk(self.body, 0)
            else:
                self._settle(last.block, index, self.before[last])
        except Unordered:
            self.before, self.primed = before, primed
            for index, item in places:
                item.block.items.insert(index, item)
            if loop is not None:
                loop.primed.append(sync.pair)
        else:
            before.update(self.before)
            self.before = before

    def _is_needed_at_once(self, sync: Item) -> bool:
        """Whether the next instruction behind a barrier or a wait conflicts with what it orders, as most do."""
        items, state = sync.block.items, self.before[sync]
        for item in islice(items, items.index(sync) + 1, None):
            if type(item) is Instruction:
                return bool(state & item.conflicts)
            if not (type(item) is Barrier or type(item) is Flag and item.is_wait):
                break
            state = self.step(item, state)
        return False

    def _settle(self, block: Block, index: int, state: State) -> None:
        """Walks on from an item with a larger state than before, until it makes no difference. Raises `Unordered`."""
        grown = False  # whether more is known of an item that is looked at again further on
        while True:
            for item in block.items[index:]:
                if not grown and _covers(self.before[item], state):
                    return
                if type(item) is Instruction and not state & item.conflicts:  # as most are
                    self.before[item] = state
                    state |= item.leaves
                    continue
                known = self._looked_at_again(item)
                self.before[item] = state
                state = self.step(item, state)
                grown |= not all(map(_covers, known, self._looked_at_again(item)))
            if not grown and _covers(self.before[block], state):
                return
            self.before[block] = state
            owner = block.owner
            if owner is None:
                return
            # From here on the whole of what is around counts: both branches, or all iterations.
            known = self._looked_at_again(owner)
            state = self._control(owner, self.before[owner])
            grown = not all(map(_covers, known, self._looked_at_again(owner)))
            block, index = owner.block, owner.block.items.index(owner) + 1

    def _looked_at_again(self, item: Item) -> list[State]:
        """What is known at an item for others further on in its block, or for the next iteration: where branches are
        decided, at a set for its wait, and behind branches by which a loop goes round."""
        found = [self.before[item]] if item in self.excluding else []
        if type(item) is Flag and not item.is_wait:
            found.append(self.missing(item.pair, item))
        elif type(item) is Control and item.onward is not None:
            found.append(self.before[item.onward])
        return found

    # -- event ids ----------------------------------------------------------------------------------------------

    def _number_events(self) -> None:
        """Gives each pair an id that no pair of its direction has between the same set and wait. Where the ids are used
        up pairs become one, which makes others redundant."""
        short = False
        while (pair := self._without_id()) is not None:
            self._do_without(pair)
            short = True
        if short:
            self._drop_redundant()
            self._without_id()

    def _without_id(self) -> Pair | None:
        """Gives ids; returns the first pair that gets none."""
        positions = self._positions()
        open_until: dict[tuple[int, int, int], int] = {}
        for pair in self._pairs(positions):
            start, end = _span(pair, positions)
            free = [i for i in EVENT_IDS if open_until.get((*pair.direction, i), -1) < start]
            if not free:
                return pair
            pair.event_id = free[0]
            open_until[(*pair.direction, free[0])] = end
        return None

    def _do_without(self, pair: Pair) -> None:
        """Makes one of two pairs that are open where this one is set first: set no earlier and waited for no later than
        either. Where there are no two, a barrier for all pipes stands in for each wait of this one."""
        positions = self._positions()
        start, _ = _span(pair, positions)
        open_pairs = [
            p for p in self._pairs(positions) if p.direction == pair.direction and _is_open(p, start, positions)
        ]
        couples = [(a, b) for a, b in combinations(open_pairs, 2) if a.loop is b.loop and a.set.block is b.set.block]
        if not couples:
            self._remove(pair)
            for wait in (pair.wait, pair.last_wait) if pair.loop is not None else (pair.wait,):
                self._insert(Barrier(None, pipe="ALL", behind=wait.behind), wait.block, self._next(wait, positions))
            return

        def held_up(couple: tuple[Pair, Pair]) -> int:
            a, b = couple
            return abs(positions[a.set] - positions[b.set]) + abs(positions[a.wait] - positions[b.wait])

        one, other = min(couples, key=held_up)
        self._remove(other)
        if positions[other.set] > positions[one.set]:
            self._move(one.set, positions, other.set)
        if positions[other.wait] < positions[one.wait]:
            self._move(one.wait, positions, other.wait)

    def _remove(self, pair: Pair) -> None:
        for flag in pair.flags():
            flag.block.items.remove(flag)
        if pair.loop is not None:
            pair.loop.primed.remove(pair)

    def _move(self, flag: Flag, positions: dict[Item, int], place: Flag) -> None:
        """Puts a flag where another one was."""
        flag.block.items.remove(flag)
        self._insert(flag, place.block, self._next(place, positions))

    def _next(self, removed: Item, positions: dict[Item, int]) -> Item | None:
        """The item of the block that follows where one was."""
        return next((item for item in removed.block.items if positions[item] > positions[removed]), None)

    def _positions(self) -> dict[Item, int]:
        return {item: i for i, item in enumerate(self.items())}

    def _pairs(self, positions: dict[Item, int]) -> list[Pair]:
        """All pairs, in the order in which they are set first."""
        pairs = [sync.pair for sync in self.syncs() if isinstance(sync, Flag)]
        return sorted(pairs, key=lambda pair: _span(pair, positions))

    # -- writing the IR -----------------------------------------------------------------------------------------

    def write(self) -> None:
        """Creates the ops of the synchronisation that was added."""
        for block in self.blocks.values():
            for above, item in pairwise(block.items):
                if item.op is None and item.behind and above.op is not None:
                    item.op = _build(item, ir.InsertionPoint.after(above.op))
            for below, item in pairwise(reversed(block.items)):
                if item.op is None:
                    item.op = _build(item, ir.InsertionPoint(below.op))

    def counts(self) -> tuple[int, int]:
        """How many flags and how many barriers."""
        items = self.items()
        flags = sum(isinstance(item, Flag) and item is item.pair.set for item in items)
        return flags, sum(isinstance(item, Barrier) and item.op.name == "ascendc.pipe_barrier" for item in items)


def _build(item: Barrier | Flag, place: ir.InsertionPoint) -> ir.Operation:
    if isinstance(item, Barrier):
        return ASCENDC.classes["PipeBarrier"].build(pipe=item.pipe, ip=place).operation
    event = f"{PIPES[item.pair.source]}_{PIPES[item.pair.target]}"
    cls = ASCENDC.classes["WaitFlag" if item.is_wait else "SetFlag"]
    return cls.build(event=event, event_id=item.pair.event_id, ip=place).operation


def _span(pair: Pair, positions: dict[Item, int]) -> tuple[int, int]:
    """Where a pair is first set, and last waited for."""
    return positions[pair.first_set or pair.set], positions[pair.last_wait or pair.wait]


def _is_open(pair: Pair, position: int, positions: dict[Item, int]) -> bool:
    start, end = _span(pair, positions)
    return start <= position <= end


def _covers(known: State, state: State) -> bool:
    return state | known == known


def _beside(a: Item, b: Item) -> tuple[Item, Item]:
    """The items of the innermost common block that are, or contain, `a` and `b`."""
    if a.block is b.block:
        return a, b
    above_b = {item.block: item for item in _path(b)}
    return next((item, above_b[item.block]) for item in _path(a) if item.block in above_b)


def _inside(loop: Control, *items: Item) -> tuple[Item, ...]:
    """The items of a loop's body that are, or contain, the given ones."""
    return tuple(next(above for above in _path(item) if above.block.owner is loop) for item in items)


def _path(item: Item) -> list[Item]:
    path = [item]
    while path[-1].block.owner is not None:
        path.append(path[-1].block.owner)
    return path


def _out_of_loops(item: Item, outermost: Item) -> Item:
    """The outermost loop around an item, up to `outermost`; the item itself where there is none."""
    place = item
    for above in _path(item):
        if isinstance(above, Control) and above.is_loop:
            place = above
        if above is outermost:
            return place
    raise AssertionError("the outermost item is around the item")


def _behind(item: Item) -> Item | None:
    """The next item of the block."""
    index = item.block.items.index(item) + 1
    return item.block.items[index] if index < len(item.block.items) else None


def _has_terminator(block: Block) -> bool:
    last = block.items[-1]
    return last.op is not None and last.op.name in ("scf.yield", "scf.condition", "func.return")
