"""Gives every buffer its address in the unified buffer.

A buffer is live from its `ascendc.local_tensor` to its last use; a use inside a loop that does not contain the buffer
keeps it live to the end of that loop, because the next iteration reads it again. Buffers whose lives do not overlap may
share addresses. Larger buffers are placed first, each where a buffer of the same name and type already is if it can be
(the text then has one declaration for both), else at the lowest 32-byte aligned address that is free throughout its
life. The placed buffers move to the start of the kernel: they are static, and the emitted text declares them there.

Before:

    %x = "ascendc.local_tensor"() {name_hint = "x"} : () -> memref<4096xf32, "ub">

After:

    %x = "ascendc.local_tensor"() {name_hint = "x", offset = 16384 : i64} : () -> memref<4096xf32, "ub">

When the buffers do not fit, the error lists those that are live where the need is greatest, with their bytes, and the
budget: the target's unified buffer less what the API keeps.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from jascend.backends.ascend.targets import TARGETS
from jascend.dialect.ascendc import buffer_bytes

from .diagnostics import PassFailure, emit_error
from .lower_to_tile import KERNEL
from .registry import option, register_pass

_ALIGNMENT = 32  # bytes


@register_pass("allocate-ub")
@dataclass(frozen=True)
class AllocateUb:
    target: str = option("ascend910b", "the product whose unified buffer is shared out")
    capacity: int = option(0, "bytes to share out; 0: what the target has")

    def run(self, module: ir.Operation, remarks) -> None:
        if self.target not in TARGETS:
            emit_error(module, f"option 'target' of allocate-ub must be one of {', '.join(TARGETS)}, got '{self.target}'")
            raise PassFailure
        capacity = self.capacity or TARGETS[self.target].ub_usable_bytes
        fits = True
        for kernel in module.regions[0].blocks[0].operations:
            if KERNEL in kernel.operation.attributes:
                fits &= _allocate(kernel.operation, capacity, remarks)
        if not fits:
            raise PassFailure


@dataclass
class _Buffer:
    op: ir.Operation
    name: str
    size: int  # bytes, a multiple of the alignment
    first: int  # positions in program order, inclusive
    last: int
    offset: int = -1

    def lives_with(self, other: _Buffer) -> bool:
        return self.first <= other.last and other.first <= self.last


def _allocate(kernel: ir.Operation, capacity: int, remarks) -> bool:
    buffers = _buffers(kernel)
    placed: list[_Buffer] = []
    for buffer in sorted(buffers, key=lambda b: (-b.size, b.first)):
        buffer.offset = _lowest_gap(buffer, placed)
        placed.append(buffer)
    used = max((b.offset + b.size for b in buffers), default=0)
    if used > capacity:
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


def _buffers(kernel: ir.Operation) -> list[_Buffer]:
    """The buffers of a kernel with their lives, in program order."""
    positions: dict[int, int] = {}  # of an op: its own
    ends: dict[int, int] = {}  # of an op: that of the last op inside it
    ops: list[ir.Operation] = []

    def number(block: ir.Block) -> None:
        for view in block.operations:
            op = view.operation
            positions[hash(op)] = len(positions)
            if op.name == "ascendc.local_tensor":
                ops.append(op)
            for region in op.regions:
                for inner in region.blocks:
                    number(inner)
            ends[hash(op)] = len(positions) - 1

    number(kernel.regions[0].blocks[0])
    buffers = []
    for op in ops:
        first = positions[hash(op)]
        last = first
        for use in op.results[0].uses:
            user = _ancestor_beside(use.owner.operation, op)
            is_loop = user.name in ("scf.for", "scf.while")
            last = max(last, ends[hash(user)] if is_loop else positions[hash(use.owner.operation)])
        size = -(-buffer_bytes(op.results[0]) // _ALIGNMENT) * _ALIGNMENT
        buffers.append(_Buffer(op, op.attributes["name_hint"].value, size, first, last))
    return buffers


def _ancestor_beside(user: ir.Operation, op: ir.Operation) -> ir.Operation:
    """The outermost loop around `user` that does not contain `op`; `user` itself where there is none."""
    outer = {hash(parent) for parent in _parents(op)}
    found = user
    for parent in _parents(user):
        if hash(parent) in outer:
            break
        if parent.name in ("scf.for", "scf.while"):
            found = parent
    return found


def _parents(op: ir.Operation):
    parent = op.parent
    while parent is not None:
        yield parent.operation
        parent = parent.operation.parent


def _lowest_gap(buffer: _Buffer, placed: list[_Buffer]) -> int:
    """An offset at which `buffer` meets no placed buffer that lives with it: that of its namesake, or the lowest."""
    neighbours = sorted((p for p in placed if p.lives_with(buffer)), key=lambda p: p.offset)
    for namesake in placed:
        if namesake.name == buffer.name and namesake.op.results[0].type == buffer.op.results[0].type:
            start, end = namesake.offset, namesake.offset + buffer.size
            if all(n.offset + n.size <= start or end <= n.offset for n in neighbours):
                return start
    offset = 0
    for other in neighbours:
        if other.offset - offset >= buffer.size:
            break
        offset = max(offset, other.offset + other.size)
    return offset


def _report(kernel: ir.Operation, buffers: list[_Buffer], used: int, capacity: int) -> None:
    """The error names the buffers that are live together where the most bytes are."""
    crowd = max(([b for b in buffers if b.lives_with(at)] for at in buffers), key=lambda c: sum(b.size for b in c))
    crowd.sort(key=lambda b: -b.size)
    emit_error(
        kernel,
        f"the buffers of this kernel need {used} bytes of unified buffer, the budget is {capacity}",
        notes=[(b.op, f"'{b.name}' takes {b.size} bytes and is live here") for b in crowd],
    )
