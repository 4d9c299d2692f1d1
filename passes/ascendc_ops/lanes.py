"""Lanes that move to places known beforehand: broadcasts, slices, groups picked and spread."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mlir import ir

from jascend.dialect.ascendc import element_bytes_of
from jascend.dialect.elements import type_name

from . import carried
from .lowering import Lowering, element_of, length_of, lowers

_BLOCK = 32  # bytes
_REPEAT = 256  # bytes
_MOST = 255  # repeats of an instruction, and blocks between two of them
_BRCB = 8  # elements that Brcb takes a repeat

_FOLDING = frozenset(
    "arith.addf arith.subf arith.mulf arith.divf arith.maximumf arith.minimumf arith.addi arith.subi arith.muli "
    "arith.maxsi arith.minsi".split()
)

lowers("tensor.extract_slice")(carried.extract_slice)
lowers("tensor.insert_slice")(carried.insert_slice)


# -- broadcasts -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Piece:
    """What one strided instruction covers of rows that lie one after the other: in elements, strides in blocks."""

    start: int
    row: int
    mask: int
    repeat: int
    step: int  # from one repeat to the next
    row_step: int  # rows from one repeat to the next


def _pieces(rows: int, width: int, bytes_: int) -> Iterator[_Piece]:
    """Covers rows with few instructions: down a column of up to 256 bytes at a time, or along one row after the other."""
    lanes, block = _REPEAT // bytes_, _BLOCK // bytes_
    columns = -(-width // lanes)
    if width // block <= _MOST and columns * -(-rows // _MOST) <= rows * (1 + (width % lanes > 0)):
        for row in range(0, rows, _MOST):
            for column in range(0, width, lanes):
                mask, repeat = min(lanes, width - column), min(_MOST, rows - row)
                yield _Piece(row * width + column, row, mask, repeat, width // block, 1)
        return
    for row in range(rows):
        for column in range(0, width, lanes * _MOST):
            whole = min(_MOST, (width - column) // lanes)
            if whole:
                yield _Piece(row * width + column, row, lanes, whole, _REPEAT // _BLOCK, 0)
            rest = width - column - whole * lanes
            if 0 < rest < lanes:
                yield _Piece(row * width + column + whole * lanes, row, rest, 1, _REPEAT // _BLOCK, 0)


def _folds(user: ir.Operation, position: int) -> bool:
    """Whether an op can read a broadcast block by block. The other operand must be a tile of its own."""
    user = user.operation
    if user.name not in _FOLDING:
        return False
    other = user.operands[1 - position].owner
    return isinstance(other, ir.Block) or other.name not in ("tensor.splat", "arith.constant")


@lowers("tile.broadcast")
def broadcast(low: Lowering, op: ir.Operation) -> None:
    view = op.opview
    value, x = view.value, low.of(view.x)
    count, bytes_ = length_of(view.x), element_bytes_of(x)
    block = _BLOCK // bytes_
    # A tile that a loop hands over has its place already, and no use any more.
    whole = value in low.buffers or any(not _folds(use.owner, use.operand_number) for use in value.uses)
    eights = -(-count // _BRCB) * _BRCB
    if eights == count and whole and view.width == block:
        blocks = low.result(op)
    else:
        blocks = low.buffer(eights * block, element_of(x), "each_block")
    x = _filled_up(low, x, eights)
    for i in range(0, eights, _BRCB * _MOST):
        n = min(_BRCB * _MOST, eights - i)
        low.emit("Brcb", low.view(blocks, i * block, n * block), low.view(x, i, n), repeat=n // _BRCB)
    if eights != count:
        blocks = low.view(blocks, 0, count * block)
        if whole and view.width == block:
            low.buffers[value] = blocks
    low.blocks[value] = blocks
    if not whole or view.width == block:
        return
    dst = low.result(op)
    for piece in _pieces(count, view.width, bytes_):
        low.emit(
            "CopyStrided", _part(low, dst, piece, block), _blocks(low, blocks, piece, block),
            mask=piece.mask, repeat=piece.repeat, strides=(1, 0, piece.step, piece.row_step),
        )  # fmt: skip


def _filled_up(low: Lowering, x: ir.Value, count: int) -> ir.Value:
    """A tile of so many elements that begins with those of `x`."""
    if count == length_of(x):
        return x
    element = element_of(x)
    filled = low.buffer(count, element, "filled_up")
    zero = low.b.constant(element, 0)
    low.emit("Duplicate", filled, zero)
    start = low.view(filled, 0, length_of(x))
    if type_name(element) == "bf16":
        low.refuse(x.owner, "a broadcast of bf16 takes a multiple of 8 elements")
    low.emit("Adds", start, x, zero)
    return filled


@lowers("tile.repeat")
def repeat(low: Lowering, op: ir.Operation) -> None:
    """A copy, then what is there behind itself."""
    x, value, group = low.of(op.operands[0]), low.result(op), op.opview.group
    done, length = length_of(x), length_of(value)
    if group != done:
        _repeat_groups(low, value, x, group)
        return
    low.emit("Copy", low.view(value, 0, done), x)
    while done < length:
        step = min(done, length - done)
        low.emit("Copy", low.view(value, done, step), low.view(value, 0, step))
        done += step


def _repeat_groups(low: Lowering, dst: ir.Value, x: ir.Value, group: int) -> None:
    """Every group several times: one block by copies that read it again and again, others by a copy for each time."""
    bytes_ = element_bytes_of(x)
    lanes, block = _REPEAT // bytes_, _BLOCK // bytes_
    groups, times = length_of(x) // group, length_of(dst) // length_of(x)
    if group != block or times > _MOST:
        for i in range(times):
            start = low.view(dst, i * group, length_of(dst) - i * group)
            _copy_groups(low, start, x, groups, group, 0, (times - 1) * group)
        return
    for first in range(0, groups, _MOST):
        repeat = min(_MOST, groups - first)
        for column in range(0, times * block, lanes):
            mask = min(lanes, times * block - column)
            low.emit(
                "CopyStrided",
                low.view(dst, first * times * block + column, (repeat - 1) * times * block + mask),
                low.view(x, first * block, repeat * block),
                mask=mask, repeat=repeat, strides=(1, 0, times, 1),
            )  # fmt: skip


def strided(low: Lowering, op: ir.Operation, api: str) -> bool:
    """Writes arithmetic with a broadcast operand in the form with strides; False where there is none."""
    a, b = op.operands
    broadcasts = [v in low.blocks and _folds(op, i) for i, v in enumerate((a, b))]
    if not any(broadcasts):
        return False
    source = a if broadcasts[0] else b
    width = source.owner.opview.width
    dst = low.result(op)
    bytes_ = element_bytes_of(dst)
    block = _BLOCK // bytes_
    rows = length_of(dst) // width
    if not all(broadcasts) and _goes_down(rows, width // block):
        _down_columns(low, op, api, dst, rows, width // block, block)
        return True
    for piece in _pieces(rows, width, bytes_):
        sources = [
            _blocks(low, low.blocks[v], piece, block) if folded else _part(low, low.of(v), piece, block)
            for v, folded in zip((a, b), broadcasts)
        ]
        within = [0 if folded else 1 for folded in broadcasts]
        between = [piece.row_step if folded else piece.step for folded in broadcasts]
        low.emit(
            f"{api}Strided", _part(low, dst, piece, block), *sources,
            mask=piece.mask, repeat=piece.repeat, strides=(1, *within, piece.step, *between),
        )  # fmt: skip
    return True


_EIGHT = 8  # blocks of a repeat


def _goes_down(rows: int, wide: int) -> bool:
    """Whether rows of a few blocks are better taken eight at a time, a column of blocks after the other."""
    start = 24  # cycles until an instruction's first repeat
    fits = rows % _EIGHT == 0 and rows // _EIGHT <= _MOST and _EIGHT * wide <= _MOST
    return fits and wide * (start + rows // _EIGHT) < start + rows * -(-wide // _EIGHT)


def _down_columns(low: Lowering, op: ir.Operation, api: str, dst: ir.Value, rows: int, wide: int, block: int) -> None:
    repeat = rows // _EIGHT
    folded = [v in low.blocks and _folds(op, i) for i, v in enumerate(op.operands)]
    for column in range(wide):
        hull = ((rows - 1) * wide + 1) * block
        sources = [
            low.blocks[v] if by_row else low.view(low.of(v), column * block, hull) for v, by_row in zip(op.operands, folded)
        ]
        within = [1 if by_row else wide for by_row in folded]
        low.emit(
            f"{api}Strided", low.view(dst, column * block, hull), *sources, mask=_EIGHT * block, repeat=repeat,
            strides=(wide, *within, _EIGHT * wide, *(_EIGHT * step for step in within)),
        )  # fmt: skip


def _part(low: Lowering, buffer: ir.Value, piece: _Piece, block: int) -> ir.Value:
    return low.view(buffer, piece.start, (piece.repeat - 1) * piece.step * block + piece.mask)


def _blocks(low: Lowering, blocks: ir.Value, piece: _Piece, block: int) -> ir.Value:
    return low.view(blocks, piece.row * block, (piece.repeat - 1) * piece.row_step * block + block)


# -- groups -----------------------------------------------------------------------------------------------------------


@lowers("tile.take")
def take(low: Lowering, op: ir.Operation) -> None:
    """Whole blocks by a copy with gaps; other lanes by a constant pattern, or one with as many bits a word as it takes."""
    view = op.opview
    x = low.of(view.x)
    bytes_, groups = element_bytes_of(x), length_of(view.x) // view.group
    if all(n * bytes_ % _BLOCK == 0 for n in (view.group, view.start, view.count)):
        start = low.view(x, view.start, length_of(x) - view.start)
        _copy_groups(low, low.result(op), start, groups, view.count, view.group - view.count, 0)
    elif view.count == 1 and view.group in (2, 4):
        low.emit("GatherPattern", low.result(op), x, pattern=view.start + (1 if view.group == 2 else 3))
    else:
        _take_by_bits(low, op, x)


def _take_by_bits(low: Lowering, op: ir.Operation, x: ir.Value) -> None:
    view, length = op.opview, length_of(x)
    if 32 % view.group or length % 32:
        low.refuse(
            op, f"{view.count} lanes from {view.start} on of every {view.group} are no pattern that fits a word of 32 lanes"
        )
    bits = ((1 << view.count) - 1) << view.start
    word = sum(bits << at for at in range(0, 32, view.group))
    words = _pattern(low, op, length // 32, word)
    packed = low.buffer(length, element_of(x), "taken")
    pattern = low.view(words, 0, length // 8, ir.IntegerType.get_unsigned(8))
    low.emit("GatherMask", packed, x, pattern, results=[low.b.index_type])
    low.buffers[view.value] = low.view(packed, 0, length_of(view.value))


def _pattern(low: Lowering, op: ir.Operation, count: int, word: int) -> ir.Value:
    """So many times the same word, written before the loops around."""
    around = op
    while around.parent.name != "func.func":
        around = around.parent
    made, low.made = low.made, []
    with ir.InsertionPoint(around):
        words = low.buffer(count, low.b.i32_type, "pattern")
        low.emit("Duplicate", words, low.b.i32(word - (word >> 31 << 32)))
    low.made = made
    return words


@lowers("tile.spread")
def spread(low: Lowering, op: ir.Operation) -> None:
    view = op.opview
    dst, element = low.result(op), element_of(view.x)
    if view.width > view.group:
        low.emit("Duplicate", dst, low.b.constant(element, view.fill))
    groups = length_of(view.x) // view.group
    _copy_groups(low, dst, low.of(view.x), groups, view.group, 0, view.width - view.group)


def _copy_groups(low: Lowering, dst, src, groups: int, length: int, src_gap: int, dst_gap: int) -> None:
    most = 4095  # pieces of one copy
    for i in range(0, groups, most):
        repeat = min(most, groups - i)
        to, of = (
            low.view(buffer, i * (length + gap), repeat * length + (repeat - 1) * gap)
            for buffer, gap in ((dst, dst_gap), (src, src_gap))
        )
        low.emit("CopyBlocks", to, of, repeat=repeat, length=length, src_gap=src_gap, dst_gap=dst_gap)
