"""Gives every buffer its address in the unified buffer.

A buffer is live from its first use to its last; a use inside a loop that does not contain the buffer's `local_tensor`
keeps it live all through that loop, because another iteration may read it. Uses of its views are its uses. Buffers
whose lives do not overlap may share addresses; so may, exactly, the result of an elementwise instruction and an operand
that it is the last to read. Larger buffers are placed first, each where a buffer of the same name and type already is
if it can be (the text then has one declaration for both), else at the lowest 32-byte aligned address that is free
throughout its life. The placed buffers move to the start of the kernel: they are static, and the emitted text declares
them there.

Where there is room, two things make the kernel faster. A buffer that a copy fills or empties shares its address with
nothing in the same loop, so that the copy of the next iteration need not wait for the vector unit to be done with
another buffer. And operands that one instruction reads meet in no bank group: on 910B those are the address bits [8:5],
a repeat covers 8 of the 16, and two that meet are read one after the other (1.7 times the cycles in the public
bank-conflict sample). So buffers start at multiples of 256 bytes, and two that are read together 256 bytes apart, modulo
512. What is written then lies in exactly the groups of the one or the other, where the hardware lets it wait for a
repeat; in some of them it would conflict as well. Both are given up, in this order reversed and the first of them for outer
loops first, before the kernel is refused.

Before:

    %x = "ascendc.local_tensor"() {name_hint = "x"} : () -> memref<4096xf32, "ub">

After:

    %x = "ascendc.local_tensor"() {name_hint = "x", offset = 16384 : i64} : () -> memref<4096xf32, "ub">

When the buffers do not fit, the error lists those that are live where the need is greatest, with their bytes, and the
budget: the target's unified buffer less what the API keeps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from mlir import ir

from jascend.backends.ascend.targets import TARGETS
from jascend.dialect import ASCENDC
from jascend.dialect.ascendc import buffer_bytes

from .accesses import VIEW, may_coincide
from .diagnostics import PassFailure, emit_error
from .lower_to_tile import KERNEL
from .registry import option, register_pass

_ALIGNMENT = 32  # bytes
_ROW = 512  # bytes: one block of each bank group
_REPEAT = 256  # bytes that a repeat reads of each operand
_LOOPS = ("scf.for", "scf.while")


@register_pass("allocate-ub")
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


@dataclass(eq=False)
class _Buffer:
    op: ir.Operation
    name: str
    size: int  # bytes, a multiple of the alignment
    first: int = -1  # positions in program order, inclusive
    last: int = -1
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

    def lives_with(self, other: _Buffer, isolated: str = "none") -> bool:
        first, last = self.life(isolated)
        other_first, other_last = other.life(isolated)
        return first <= other_last and other_first <= last


def _allocate(kernel: ir.Operation, capacity: int, remarks) -> bool:
    buffers = _buffers(kernel)
    for isolated, skewed in (("all", True), ("all", False), ("innermost", True), ("innermost", False), ("none", False)):
        used = _place(buffers, isolated, skewed)
        if used <= capacity:
            break
    else:
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


def _buffers(kernel: ir.Operation) -> list[_Buffer]:
    """The buffers of a kernel with their lives, in program order."""
    return _Lives(kernel).buffers


class _Lives:
    def __init__(self, kernel: ir.Operation):
        self.positions: dict[ir.Operation, int] = {}
        self.loops: list[int] = []  # positions of all loops
        self.ends: dict[ir.Operation, int] = {}  # of an op: the position of the last op inside it
        ops: list[ir.Operation] = []
        self.number(kernel.regions[0].blocks[0], ops)
        self.of: dict[ir.Operation, _Buffer] = {}
        for op in ops:
            size = -(-buffer_bytes(op.results[0]) // _ALIGNMENT) * _ALIGNMENT
            self.of[op] = _Buffer(op, op.attributes["name_hint"].value, size)
        self.buffers = list(self.of.values())
        operands: dict[ir.Operation, dict[int, _Buffer]] = {}
        for buffer in self.buffers:
            for user, index in _uses(buffer.op.results[0]):
                self.extend(buffer, user)
                operands.setdefault(user, {})[index] = buffer
            if buffer.first < 0:
                buffer.first = buffer.last = self.positions[buffer.op]
        for user, used in operands.items():
            self.relate(user, used)

    def number(self, block: ir.Block, buffers: list[ir.Operation]) -> None:
        for view in block.operations:
            op = view.operation
            if op.name in _LOOPS:
                self.loops.append(len(self.positions))
            self.positions[op] = len(self.positions)
            if op.name == "ascendc.local_tensor":
                buffers.append(op)
            for region in op.regions:
                for inner in region.blocks:
                    self.number(inner, buffers)
            self.ends[op] = len(self.positions) - 1

    def extend(self, buffer: _Buffer, user: ir.Operation) -> None:
        around = list(_parents(buffer.op))
        inside = [p for p in _parents(user) if p not in around and p.name in _LOOPS]
        outermost = inside[-1] if inside else None
        first = self.positions[outermost or user]
        last = self.ends[outermost or user]
        buffer.first = first if buffer.first < 0 else min(buffer.first, first)
        buffer.last = max(buffer.last, last)
        definition = ASCENDC.by_name.get(user.name)
        loop = next((p for p in around if p.name in _LOOPS), None)
        if loop is not None and definition is not None and definition.pipe in ("MTE2", "MTE3"):
            start, end = buffer.loop = self.positions[loop], self.ends[loop]
            buffer.innermost = not any(start < other <= end for other in self.loops)

    def relate(self, user: ir.Operation, used: dict[int, _Buffer]) -> None:
        """Notes what the operands of an instruction are to each other."""
        definition = ASCENDC.by_name[user.name]
        read = {b for i, b in used.items() if definition.operands[i].role == "in" and b.size >= _REPEAT}
        for buffer in read:
            buffer.beside |= read - {buffer}
        result = used.get(0)
        if result is None or user.operands[0] != result.op.results[0]:
            return
        position = self.positions[user]
        apart = {b for i, b in used.items() if not may_coincide(user, definition.operands[i].name)}
        for index, buffer in used.items():
            whole = buffer is not result and user.operands[index] == buffer.op.results[0] and buffer.size == result.size
            if whole and buffer not in apart and buffer.last == position == result.first:
                buffer.exactly.add(result)
                result.exactly.add(buffer)


def _uses(value: ir.Value) -> Iterator[tuple[ir.Operation, int]]:
    """The ops that use a buffer or a view of it, with the operand's number."""
    for use in value.uses:
        user = use.owner.operation
        if user.name == VIEW:
            yield from _uses(user.results[0])
        else:
            yield user, use.operand_number


def _parents(op: ir.Operation) -> Iterator[ir.Operation]:
    parent = op.parent
    while parent is not None:
        yield parent.operation
        parent = parent.operation.parent


# -- addresses --------------------------------------------------------------------------------------------------------


def _place(buffers: list[_Buffer], isolated: str, skewed: bool) -> int:
    """Gives all buffers addresses; returns how many bytes they take."""
    placed: list[_Buffer] = []
    for buffer in buffers:
        buffer.offset = -1
    for buffer in sorted(buffers, key=lambda b: (-b.size, b.first)):
        neighbours = sorted((p for p in placed if p.lives_with(buffer, isolated)), key=lambda p: p.offset)
        buffer.offset = _offset(buffer, placed, neighbours, isolated, skewed)
        placed.append(buffer)
    return max((b.offset + b.size for b in buffers), default=0)


def _offset(buffer: _Buffer, placed: list[_Buffer], neighbours: list[_Buffer], isolated: str, skewed: bool) -> int:
    """An address at which a buffer meets no placed one that lives with it: that of its namesake, that of an operand
    which it may replace, or the lowest."""

    def is_free(start: int) -> bool:
        return all(
            n.offset + n.size <= start or start + buffer.size <= n.offset or (n in exact and n.offset == start)
            for n in neighbours
        )

    exact = {n for n in buffer.exactly if not (n.is_alone(isolated) or buffer.is_alone(isolated))}
    for namesake in placed:
        if namesake.name == buffer.name and namesake.op.results[0].type == buffer.op.results[0].type:
            if is_free(namesake.offset):
                return namesake.offset
    for other in placed:
        if other in exact and is_free(other.offset):
            return other.offset
    groups = {p.offset % _ROW for p in buffer.beside if p.offset >= 0}
    offset = 0
    for other in (*neighbours, None):
        start = _skewed(offset, groups) if skewed and buffer.size >= _REPEAT else offset
        if other is None or start + buffer.size <= other.offset:
            return start
        offset = max(offset, other.offset + other.size)
    raise AssertionError("there is room behind the last neighbour")


def _skewed(offset: int, taken: set[int]) -> int:
    """The next address from an offset on at which a repeat starts, in other bank groups than those if there are any."""
    start = -(-offset // _REPEAT) * _REPEAT
    return start if start % _ROW not in taken or (start + _REPEAT) % _ROW in taken else start + _REPEAT


def _report(kernel: ir.Operation, buffers: list[_Buffer], used: int, capacity: int) -> None:
    """The error names the buffers that are live together where the most bytes are."""
    crowds = ([b for b in buffers if b.first <= at.first <= b.last] for at in buffers)
    crowd = max(crowds, key=lambda crowd: sum(b.size for b in crowd))
    crowd.sort(key=lambda b: -b.size)
    emit_error(
        kernel,
        f"the buffers of this kernel need {used} bytes of unified buffer, the budget is {capacity}",
        notes=[(b.op, f"'{b.name}' takes {b.size} bytes and is live here") for b in crowd],
    )
