"""Gives every buffer its address in the unified buffer.

A buffer is live from its first use to its last; a use inside a loop that does not contain the buffer's `local_tensor`
keeps it live all through that loop, because another iteration may read it. Uses of its views are its uses. Buffers
whose lives do not overlap may share addresses; so may, exactly, the result of an elementwise instruction and an operand
that it is the last to read. Larger buffers are placed first, each where a buffer of the same name and type already is
if it can be (the text then has one declaration for both), or such an operand, else at the lowest 32-byte aligned
address that is free throughout its life. The placed buffers move to the start of the kernel: they are static, and the
emitted text declares them there.

Where there is room, two things make the kernel faster. A buffer that a copy fills or empties shares its address with
nothing in the same loop, so that the copy of the next iteration need not wait for the vector unit to be done with
another buffer. And operands that one instruction reads meet in no bank group: on 910B those are the address bits [8:5],
a repeat covers 8 of the 16, and two that meet are read one after the other (1.7 times the cycles in the public
bank-conflict sample). So buffers start at multiples of 256 bytes, and two that are read together 256 bytes apart,
modulo 512, which an address that one of them could share may not be. What is written then lies in exactly the groups of
the one or the other, where the hardware lets it wait for a repeat; in some of them it would conflict as well. Both are
given up, in this order reversed and the first of them for outer loops first; where that is not enough, buffers of one
size are placed in another order, those that live longest first, which leaves fewer gaps. Only then is the kernel
refused.

Before:

    %x = "ascendc.local_tensor"() {name_hint = "x"} : () -> memref<4096xf32, "ub">

After:

    %x = "ascendc.local_tensor"() {name_hint = "x", offset = 16384 : i64} : () -> memref<4096xf32, "ub">

When the buffers do not fit, the error lists those that are live where the need is greatest, with their bytes, and the
budget: the target's unified buffer less what the API keeps.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from itertools import accumulate, product
from operator import attrgetter

from mlir import ir

from jascend.backends.ascend.targets import TARGETS
from jascend.dialect import ASCENDC
from jascend.dialect.definition import Op, Operand

from .accesses import VIEW, Sizes, may_coincide
from .diagnostics import PassFailure, emit_error
from .lower_to_tile import KERNEL
from .registry import option, register_pass

_ALIGNMENT = 32  # bytes
_ROW = 512  # bytes: one block of each bank group
_REPEAT = 256  # bytes that a repeat reads of each operand
_LOOPS = ("scf.for", "scf.while")
_ISOLATED = ("all", "innermost", "none")  # the loops through which what a copy fills or empties may live, best first
_BY_OFFSET = attrgetter("offset")


@register_pass("allocate-ub", touches=("ascendc.local_tensor",))
@dataclass(frozen=True)
class AllocateUb:
    target: str = option("ascend910b", "the product whose unified buffer is shared out")
    capacity: int = option(0, "bytes to share out; 0: what the target has")

    def run(self, module: ir.Operation, remarks) -> None:
        if self.target not in TARGETS:
            allowed = ", ".join(TARGETS)
            emit_error(module, f"option 'target' of allocate-ub must be one of {allowed}, got '{self.target}'")
            raise PassFailure
        capacity = self.capacity or TARGETS[self.target].ub_usable_bytes
        fits = True
        for kernel in module.regions[0].blocks[0].operations:
            if KERNEL in kernel.operation.attributes:
                fits &= _allocate(kernel.operation, capacity, remarks)
        if not fits:
            raise PassFailure


@dataclass(eq=False, slots=True)
class _Buffer:
    op: ir.Operation
    name: str
    type: ir.Type
    bytes: int  # buffers of one size may end differently
    size: int  # bytes, rounded up to a multiple of the alignment
    first: int  # positions in program order, inclusive
    last: int
    is_used: bool = False
    loop: tuple[int, int] | None = None  # the ends of the loop that it is made in, if a copy fills or empties it
    innermost: bool = False  # no other loop is inside that one
    beside: set[_Buffer] = field(default_factory=set)  # those that the same instructions read
    exactly: set[_Buffer] = field(default_factory=set)  # may have the same address although their lives touch
    offset: int = -1

    def life(self, isolated: str) -> tuple[int, int]:
        return self.loop if self.is_alone(isolated) else (self.first, self.last)

    def is_alone(self, isolated: str) -> bool:
        """Whether it lives through its loop: copies do in all loops, in the innermost ones, or in none."""
        return self.loop is not None and (isolated == "all" or isolated == "innermost" and self.innermost)


def _allocate(kernel: ir.Operation, capacity: int, remarks) -> bool:
    buffers = _buffers(kernel)
    together = cache(lambda isolated: _together(buffers, isolated))
    fitting = [isolated for isolated in _ISOLATED if _least(buffers, isolated) <= capacity]
    for by_life, isolated, skewed in product((False, True), fitting, (True, False)):
        used = _place(buffers, together(isolated), isolated, skewed, by_life)
        if used <= capacity:
            break
    else:
        used = _place(buffers, together("none"), "none", skewed=False, by_life=True)
        _report(kernel, buffers, used, capacity)
        return False
    entry = kernel.regions[0].blocks[0]
    anchor = entry.operations[0]
    i64 = ir.IntegerType.get_signless(64, context=kernel.context)
    for buffer in buffers:
        buffer.op.attributes["offset"] = ir.IntegerAttr.get(i64, buffer.offset)
        if anchor.operation != buffer.op:
            buffer.op.move_before(anchor)
        else:
            anchor = entry.operations[1]
    remarks.add(kernel, "analysis", f"{len(buffers)} buffers in {used} of {capacity} bytes of unified buffer")
    return True


# -- lives ------------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class _Loop:
    start: int  # positions in program order, inclusive
    end: int = -1
    innermost: bool = True  # no other loop is inside


@dataclass(eq=False, slots=True)
class _Use:
    """An operand of an instruction that is a buffer or a view of one."""

    op: ir.Operation
    definition: Op
    position: int
    loops: tuple[_Loop, ...]  # around the instruction, the outermost first
    operand: Operand
    buffer: _Buffer
    whole: bool  # not a view


def _buffers(kernel: ir.Operation) -> list[_Buffer]:
    """The buffers of a kernel with their lives, in program order."""
    return _Lives(kernel).buffers


class _Lives:
    def __init__(self, kernel: ir.Operation):
        self.buffers: list[_Buffer] = []
        # what a buffer or a view is of, and whether it is the buffer
        self.of: dict[ir.Value, tuple[_Buffer, bool]] = {}
        self.around: dict[_Buffer, tuple[_Loop, ...]] = {}
        self.uses: list[list[_Use]] = []  # an instruction each
        self.sizes = Sizes()
        self.position = -1
        self.walk(kernel.regions[0].blocks[0], ())
        for use in (use for uses in self.uses for use in uses):
            self.extend(use)
        for uses in self.uses:
            self.relate(uses)

    def walk(self, block: ir.Block, loops: tuple[_Loop, ...]) -> None:
        for view in block.operations:
            op = view.operation
            name = op.name
            self.position += 1
            if name.startswith("arith."):
                continue
            definition = ASCENDC.by_name.get(name)
            if name == "ascendc.local_tensor":
                self.declare(op, loops)
            elif name == VIEW:
                self.of[op.results[0]] = self.of[op.operands[0]][0], False
            elif definition is not None:
                given = ((operand, self.of.get(value)) for operand, value in definition.given(op))
                self.uses.append(
                    [_Use(op, definition, self.position, loops, x, *of) for x, of in given if of is not None]
                )
            elif name in _LOOPS:
                if loops:
                    loops[-1].innermost = False
                loop = _Loop(self.position)
                self.walk_regions(op, (*loops, loop))
                loop.end = self.position
            elif len(op.regions):
                self.walk_regions(op, loops)

    def declare(self, op: ir.Operation, loops: tuple[_Loop, ...]) -> None:
        result = op.results[0]
        type_ = result.type
        size, _ = self.sizes[type_]
        rounded = -(-size // _ALIGNMENT) * _ALIGNMENT
        name = op.attributes["name_hint"].value
        buffer = _Buffer(op, name, type_, size, rounded, self.position, self.position)
        self.buffers.append(buffer)
        self.of[result] = buffer, True
        self.around[buffer] = loops

    def walk_regions(self, op: ir.Operation, loops: tuple[_Loop, ...]) -> None:
        for region in op.regions:
            for block in region.blocks:
                self.walk(block, loops)

    def extend(self, use: _Use) -> None:
        buffer, around = use.buffer, self.around[use.buffer]
        outermost = use.loops[len(around)] if len(use.loops) > len(around) else None
        first, last = (outermost.start, outermost.end) if outermost else (use.position, use.position)
        buffer.first = min(buffer.first, first) if buffer.is_used else first
        buffer.last = max(buffer.last, last)
        buffer.is_used = True
        if around and use.definition.pipe in ("MTE2", "MTE3"):
            buffer.loop = around[-1].start, around[-1].end
            buffer.innermost = around[-1].innermost

    def relate(self, uses: list[_Use]) -> None:
        """Notes what the operands of an instruction are to each other."""
        read = {use.buffer for use in uses if use.operand.role == "in" and use.buffer.size >= _REPEAT}
        for buffer in read if len(read) > 1 else ():
            buffer.beside |= read - {buffer}
        first = uses[0] if uses else None
        if first is None or first.operand is not first.definition.operands[0] or not first.whole:
            return
        result, position = first.buffer, first.position
        if result.first != position:
            return
        for use in uses:
            buffer = use.buffer
            if buffer is result or not use.whole or buffer.bytes != result.bytes or buffer.last != position:
                continue
            if all(may_coincide(other.op, other.operand.name) for other in uses if other.buffer is buffer):
                buffer.exactly.add(result)
                result.exactly.add(buffer)


# -- addresses --------------------------------------------------------------------------------------------------------


def _least(buffers: list[_Buffer], isolated: str) -> int:
    """Bytes that no placement can do with less than: the most that are live at one time. What an instruction may write
    over one of its operands counts for nothing there."""
    steps: dict[int, int] = {}  # by which the bytes in use change, by position
    for buffer in buffers:
        first, last = buffer.life(isolated)
        first += bool(buffer.exactly) and not buffer.is_alone(isolated)
        if first <= last:
            steps[first] = steps.get(first, 0) + buffer.size
            steps[last + 1] = steps.get(last + 1, 0) - buffer.size
    return max(accumulate((steps[position] for position in sorted(steps)), initial=0))


def _place(
    buffers: list[_Buffer], together: dict[_Buffer, list[_Buffer]], isolated: str, skewed: bool, by_life: bool
) -> int:
    """Gives all buffers addresses, of those of one size first to the ones that are made first, or that live longest;
    returns how many bytes they take."""
    for buffer in buffers:
        buffer.offset = -1
    namesakes: dict[tuple[str, ir.Type], dict[int, None]] = {}  # their offsets, each once: there are few
    for buffer in sorted(buffers, key=lambda b: (-b.size, (b.first - b.last) * by_life, b.first)):
        neighbours = sorted([other for other in together[buffer] if other.offset >= 0], key=_BY_OFFSET)
        alike = namesakes.setdefault((buffer.name, buffer.type), {})
        buffer.offset = _offset(buffer, alike, neighbours, isolated, skewed)
        alike[buffer.offset] = None
    return max((b.offset + b.size for b in buffers), default=0)


def _together(buffers: list[_Buffer], isolated: str) -> dict[_Buffer, list[_Buffer]]:
    """For each buffer those that live with it, in a sweep over the kernel: of very many buffers few live at a time."""
    found: dict[_Buffer, list[_Buffer]] = {buffer: [] for buffer in buffers}
    alive: list[tuple[int, _Buffer]] = []  # with the ends of their lives
    lives = sorted(((*buffer.life(isolated), buffer) for buffer in buffers), key=lambda life: life[0])
    for first, last, buffer in lives:
        alive = [(end, other) for end, other in alive if end >= first]
        for _, other in alive:
            found[other].append(buffer)
            found[buffer].append(other)
        alive.append((last, buffer))
    return found


def _offset(buffer: _Buffer, namesakes: Iterable[int], neighbours: list[_Buffer], isolated: str, skewed: bool) -> int:
    """An address at which a buffer meets none of its neighbours, those that live with it, by address: one of its
    namesakes', that of an operand which it may replace, or the lowest."""
    size = buffer.size

    def is_free(start: int) -> bool:
        end = start + size
        for n in neighbours:
            if n.offset >= end:
                return True
            if start < n.offset + n.size and not (n in exact and n.offset == start):
                return False
        return True

    exact = {n for n in buffer.exactly if not (n.is_alone(isolated) or buffer.is_alone(isolated))}
    exact_first = sorted((n for n in exact if n.offset >= 0), key=lambda n: n.first)
    groups = {p.offset % _ROW for p in buffer.beside if p.offset >= 0}
    skewed = skewed and size >= _REPEAT
    for offset in (*namesakes, *(n.offset for n in exact_first)):
        if (not skewed or _is_apart(offset, groups)) and is_free(offset):
            return offset
    offset = 0
    for other in neighbours:
        start = _skewed(offset, groups) if skewed else offset
        if start + size <= other.offset:
            return start
        offset = max(offset, other.offset + other.size)
    return _skewed(offset, groups) if skewed else offset


def _skewed(offset: int, taken: set[int]) -> int:
    """The next address from an offset on at which a repeat starts, in other bank groups than those if there are any."""
    start = -(-offset // _REPEAT) * _REPEAT
    return start if _is_apart(start, taken) else start + _REPEAT


def _is_apart(offset: int, taken: set[int]) -> bool:
    """Whether a repeat that starts there is in other bank groups than those, or cannot be."""
    return offset % _ROW not in taken or (offset + _REPEAT) % _ROW in taken


def _report(kernel: ir.Operation, buffers: list[_Buffer], used: int, capacity: int) -> None:
    """The error names the buffers that are live together where the most bytes are; of two that may have the same
    address one."""
    start = {b: b.first + bool(b.exactly) for b in buffers}
    crowds = ([b for b in buffers if start[b] <= start[at] <= b.last] for at in buffers)
    crowd = max(crowds, key=lambda crowd: sum(b.size for b in crowd))
    crowd.sort(key=lambda b: -b.size)
    emit_error(
        kernel,
        f"the buffers of this kernel need {used} bytes of unified buffer, the budget is {capacity}",
        notes=[(b.op, f"'{b.name}' takes {b.size} bytes and is live here") for b in crowd],
    )
