"""Prefix sums.

Lanes cannot be moved by less than a 32-byte block but by Gather, which costs 13 cycles for every 64 elements. So within
blocks of 8 the sums of the first 1, 2, ... 8 lanes are block reductions under a mask, each a short list with one element
a block; the last of them, the totals, spread over blocks, are summed over the blocks in log steps, which move whole
blocks; and each list is spread and added under a mask for its lane.

On 910B that is 3 cycles for every 64 elements and lane of a block, 24 in all, and one for each log step, of which groups
of 1024 have 7, with some 600 for what waits for what is before it: in the model 1.1k cycles for 1024 elements, 2.9k for
4096. Steps by Gather for the lanes would take 45 cycles for every 64 elements, and buffers for their offsets.
"""

from __future__ import annotations

from mlir import ir

from .lowering import Lowering, length_of, lowers

_BLOCK = 8  # float32 elements of a 32-byte block
_REPEAT = 64  # of a repeat
_MOST = 255  # repeats, and blocks of a stride


@lowers("tile.cumsum")
def cumsum(low: Lowering, op: ir.Operation) -> None:
    x, group = low.of(op.operands[0]), op.opview.group
    count, f32 = length_of(x), low.b.f32_type
    repeat, blocks = count // _REPEAT, count // _BLOCK
    if repeat > _MOST:
        low.refuse(op, f"'tile.cumsum' takes up to {_MOST * _REPEAT} elements, got {count}")
    sums = low.buffer(count, f32, "block_sums")
    inside = [low.view(sums, lane * blocks, blocks) for lane in range(_BLOCK)]
    for lane, first in enumerate(inside):
        low.emit("BlockSumFirst", first, x, lanes=lane + 1, repeat=repeat)
    before = _before(low, inside[-1], count, group)
    result = low.result(op)
    spread = [low.buffer(count, f32, "spread"), low.buffer(count, f32, "spread_too")]
    low.emit("Brcb", spread[0], inside[0], repeat=repeat)
    for lane in range(_BLOCK):
        if lane + 1 < _BLOCK:  # ahead of the addition, so that the two wait for the same barrier
            low.emit("Brcb", spread[(lane + 1) % 2], inside[lane + 1], repeat=repeat)
        low.emit("AddLane", result, spread[lane % 2], before, lane=lane, repeat=repeat)


def _before(low: Lowering, totals: ir.Value, count: int, group: int) -> ir.Value:
    """For each block, in all its lanes, the sum of the blocks before it in its group."""
    groups, blocks = count // group, group // _BLOCK
    shifted = low.buffer(count + _BLOCK, low.b.f32_type, "before")
    low.emit("Brcb", low.view(shifted, _BLOCK, count), totals, repeat=count // _REPEAT)
    current = low.view(shifted, 0, count)
    _clear_first(low, current, groups, blocks)
    if blocks == 1:
        return current
    following = low.buffer(count, low.b.f32_type, "before_too")
    step = 1
    while step < blocks:
        # The blocks below half the step are there already, since the step before the last.
        _each_group(low, "Copy", (following, current), (step // 2, step // 2), step - step // 2, groups, blocks)
        _each_group(low, "Add", (following, current, current), (step, step, 0), blocks - step, groups, blocks)
        current, following, step = following, current, 2 * step
    return current


def _clear_first(low: Lowering, buffer: ir.Value, groups: int, blocks: int) -> None:
    zero = low.b.f32(0.0)
    if groups == 1 or blocks > _MOST:
        for g in range(groups):
            low.emit("Duplicate", low.view(buffer, g * blocks * _BLOCK, _BLOCK), zero)
        return
    zeros = low.buffer(_BLOCK, low.b.f32_type, "zeros")
    low.emit("Duplicate", zeros, zero)
    for g in range(0, groups, _MOST):
        n = min(_MOST, groups - g)
        first = low.view(buffer, g * blocks * _BLOCK, ((n - 1) * blocks + 1) * _BLOCK)
        low.emit("CopyStrided", first, zeros, mask=_BLOCK, repeat=n, strides=(1, 1, blocks, 0))


def _each_group(
    low: Lowering, name: str, buffers: tuple[ir.Value, ...], starts: tuple[int, ...], n: int, groups: int, blocks: int
) -> None:
    """`name` on `n` blocks of every group, which start at `starts` in the buffers: a call a group, or a call for 8 blocks
    of all groups, whichever are fewer."""
    if groups <= -(-n // 8) or blocks > _MOST:
        for g in range(groups):
            parts = (low.view(b, (g * blocks + s) * _BLOCK, n * _BLOCK) for b, s in zip(buffers, starts))
            low.emit(name, *parts)
        return
    strides = (1,) * len(buffers) + (blocks,) * len(buffers)
    for g in range(0, groups, _MOST):
        repeat = min(_MOST, groups - g)
        for i in range(0, n, 8):
            taken = min(8, n - i)
            lanes = ((repeat - 1) * blocks + taken) * _BLOCK
            parts = (low.view(b, (g * blocks + s + i) * _BLOCK, lanes) for b, s in zip(buffers, starts))
            low.emit(f"{name}Strided", *parts, mask=taken * _BLOCK, repeat=repeat, strides=strides)
