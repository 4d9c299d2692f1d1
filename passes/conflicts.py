"""Which instructions of a kernel touch the same bytes, one of them writing; used by `pipe_order`.

Instructions are bits in the order of the kernel, three for each of n: at i for one of the same iteration of a loop
whose halves take turns, at n + i of the iteration before, at 2 n + i of earlier ones (see `pipe_order`).
"""

from __future__ import annotations

from collections import defaultdict
from itertools import product
from typing import TYPE_CHECKING

from mlir import ir

from .accesses import Access
from .diagnostics import PassFailure, emit_error

if TYPE_CHECKING:
    from .pipe_order import Instruction

_Use = tuple["Instruction", Access]


class Conflicts:
    """Fills in what each instruction conflicts with."""

    def __init__(self, instructions: list[Instruction]):
        self.count = len(instructions)
        ranges: dict[tuple[int, int], list[_Use]] = defaultdict(list)
        outside: dict[ir.Value, list[_Use]] = defaultdict(list)
        turning: dict[tuple[ir.Operation, ir.Value], list[_Use]] = defaultdict(list)
        for instruction in instructions:
            for access in instruction.accesses:
                use = instruction, access
                if access.in_global_memory:
                    outside[access.root].append(use)
                    continue
                if access.address is None:
                    emit_error(access.root.owner, "insert-sync needs buffers with addresses: run allocate-ub first")
                    raise PassFailure
                for start, end in access.ranges:
                    ranges[access.address + start, access.address + end].append(use)
                if access.turn:
                    turning[access.turn.loop, access.root].append(use)
        self.within(ranges)
        for uses in outside.values():
            self.outside(uses)
        for uses in turning.values():
            self.take_turns(uses)

    def add(self, instruction: Instruction, bits: int) -> None:
        instruction.conflicts |= bits | bits << self.count | bits << 2 * self.count

    def within(self, ranges: dict[tuple[int, int], list[_Use]]) -> None:
        """In the unified buffer. The addresses at which ranges begin and end cut it into stretches; a bit set for each
        holds who reads and who writes there."""
        edges = sorted({edge for both in ranges for edge in both})
        at = {edge: i for i, edge in enumerate(edges)}
        touching, writing = [0] * len(edges), [0] * len(edges)
        for (start, end), uses in ranges.items():
            touch = write = 0
            for instruction, access in uses:
                touch |= 1 << instruction.low
                write |= access.writes << instruction.low
            for i in range(at[start], at[end]):
                touching[i] |= touch
                writing[i] |= write
        for (start, end), uses in ranges.items():
            touch = write = 0
            for i in range(at[start], at[end]):
                touch |= touching[i]
                write |= writing[i]
            for instruction, access in uses:
                self.add(instruction, touch if access.writes else write)

    def outside(self, uses: list[_Use]) -> None:
        """In one global memory, which counts as a whole. Copies to it are not ordered among themselves if they are one
        op in a loop, or marked: they write each element once."""
        touching, writing, once = defaultdict(int), defaultdict(int), 0
        for instruction, access in uses:
            bit = 1 << instruction.low
            touching[instruction.pipe] |= bit
            if access.writes:
                writing[instruction.pipe] |= bit
                once |= bit if getattr(instruction.op.opview, "once", None) else 0
        for instruction, access in uses:
            bit = 1 << instruction.low
            for pipe, bits in (touching if access.writes else writing).items():
                if pipe == instruction.pipe:
                    bits = 0 if once & bit else bits & ~(once | bit)
                self.add(instruction, bits)

    def take_turns(self, uses: list[_Use]) -> None:
        """Takes conflicts back where all that two instructions share is a buffer, in different halves of it: in one
        iteration where their turns are opposite, from one iteration to the next where they are the same."""
        loop, root = uses[0][1].turn.loop, uses[0][1].root
        among = dict.fromkeys(instruction for instruction, _ in uses)
        for one, other in product(among, among):
            if not one.conflicts >> 2 * self.count + other.low & 1:  # nothing to take back
                continue
            shared = [(x, y) for x in one.accesses for y in other.accesses if self.is_shared(x, y)]
            if not all(x.turn and x.turn.loop == loop and x.root == root for both in shared for x in both):
                continue
            are_same = {x.turn.half == y.turn.half for x, y in shared}
            if len(are_same) == 1:
                one.conflicts &= ~(1 << other.low + (self.count if True in are_same else 0))

    def is_shared(self, a: Access, b: Access) -> bool:
        if not (a.writes or b.writes):
            return False
        if a.in_global_memory or b.in_global_memory:
            return a.root == b.root
        (a_start, a_end), (b_start, b_end) = a.span, b.span
        return a.address + a_start < b.address + b_end and b.address + b_start < a.address + a_end
