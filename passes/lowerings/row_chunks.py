"""A stretch of a row, chunk by chunk: what the passes of a lowering over its row share.

A stretch that fits is loaded in one burst and stays in the unified buffer; its chunks are then slices of one tile. Any
other is loaded chunk by chunk in every pass, with the producers of the row computed where the chunk is loaded.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, tensor

from jascend.dialect import TILE
from jascend.dialect.ascendc import constant_index

from ..builder import Builder, Stage, tile_type
from .producers import Producers

NEG_INF = float("-inf")
_ACCESS = ("row", "col")


@dataclass(frozen=True)
class Chunk:
    """Neighbouring elements of a row.

    Attributes:
      x: them in float32; lanes from `count` on hold the padding, -inf by default.
      raw: them in the row's dtype, if they lie in global memory as they are; else None.
      column: where in the row they start.
      count: how many they are.
      places: where in the row each is (float32), if they are no neighbours.
    """

    x: ir.Value
    raw: ir.Value | None
    column: ir.Value
    count: ir.Value
    places: ir.Value | None = None


class RowChunks:
    """The columns `start` to `end` of the row at hand, `chunk` at a time.

    `length` is the most that `end - start`, at least 1, can be. `ramp` is a float32 ramp of a chunk's length, for
    stretches that are no plain loads and may end within a chunk. A `resident` stretch is loaded at once, at the
    insertion point, and stays in the unified buffer. Lanes beyond it hold `padding`."""

    has_places = False

    def __init__(
        self,
        b: Builder,
        producers: Producers,
        logits: ir.Value,
        start: ir.Value,
        end: ir.Value,
        *,
        chunk: int,
        length: int,
        ramp: ir.Value | None = None,
        resident: bool = False,
        padding: float = NEG_INF,
    ):
        self.padding = padding
        self.b, self.producers, self.logits, self.ramp = b, producers, logits, ramp
        self.start, self.end, self.chunk, self.length = start, end, chunk, length
        self.dtype = ir.RankedTensorType(logits.type).element_type
        self.vocabulary = ir.RankedTensorType(logits.type).get_dim_size(1)
        self.is_load = producers.is_load(logits)
        self.is_whole = length % chunk == 0 and constant_index(end) == length and constant_index(start) == 0
        self.is_one = length <= chunk
        self.tile = self.count = None
        if resident:
            lanes = -(-length // chunk) * chunk
            producers.tile = lanes
            self.count = self._length()
            self.tile = producers.raw_piece(logits, _ACCESS, start, self.count, padding)

    def each(
        self, carried: Sequence[tuple[str, ir.Value]], body: Callable[..., Sequence[ir.Value]], about: str
    ) -> list[ir.Value]:
        """A pass over the stretch. `body(chunk, *carried)` returns what it hands to the next chunk. A stretch that is
        one chunk needs no loop."""
        b = self.b
        size = b.index(self.chunk, "chunk")
        self._prepare(self.chunk)
        if self.is_one:
            with b.stage(about):
                count = self.count or self._length()
                return list(body(self._chunk(self.start, count), *(value for _, value in carried)))

        def one(column, *values):
            if self.is_whole:
                count = size
            else:
                count = b.op(arith.minsi, b.op(arith.subi, self.end, column, name="left"), size, name="count")
            return body(self._chunk(column, count), *values)

        return b.for_(self.start, self.end, size, carried, one, induction="column", about=about)

    def unless(self, empty: ir.Value) -> RowChunks:
        """The same stretch, or nothing of it (i1)."""
        stretch = copy.copy(self)
        stretch.end = self.b.select(empty, self.start, self.end, "end")
        return stretch

    def sample(self, rows: int, length: int) -> ir.Value:
        """`rows` runs of `length` elements each, evenly spread over a stretch (float32); one that is cut short at the
        row's end reaches into what is before it."""
        b, producers, start = self.b, self.producers, self.start
        producers.tile = rows * length
        producers.prepare([(self.logits, _ACCESS)])
        if self.length < self.vocabulary:
            start = b.op(arith.minsi, start, b.index(self.vocabulary - self.length), name="sample_start")
        with producers.strided(rows, length, self.length // rows):
            return producers.piece(self.logits, _ACCESS, start, None, 0.0)

    def at(self, column: ir.Value, count: ir.Value) -> Chunk:
        """One chunk, outside a pass."""
        self._prepare(self.chunk)
        return self._chunk(column, count)

    def _chunk(self, column: ir.Value, count: ir.Value) -> Chunk:
        b, producers = self.b, self.producers
        if self.is_load:
            raw = self._raw(column, count)
            x = raw if str(self.dtype) == "f32" else b.op(arith.extf, tile_type(self.chunk, b.f32_type), raw, name="x")
            return Chunk(x, raw, column, count)
        if producers.piece_lanes and producers.piece_lanes < self.chunk:
            x = self._in_pieces(column, count, producers.piece_lanes)
        else:
            x = producers.piece(self.logits, _ACCESS, column, count, 0.0)
        if not self.is_whole:
            valid = b.op(arith.sitofp, b.f32_type, b.op(arith.index_cast, b.i32_type, count), name="valid")
            inside = b.cmpf("OLT", self.ramp, b.splat(valid, self.chunk), "inside")
            x = b.select(inside, x, b.splat(b.f32(self.padding), self.chunk), "x")
        return Chunk(x, None, column, count)

    def _in_pieces(self, column: ir.Value, count: ir.Value, lanes: int) -> ir.Value:
        """A chunk whose producers would need too much of the unified buffer at once."""
        b = self.b
        size = b.index(lanes, "piece")

        def one(start, chunk):
            left = b.op(arith.minsi, b.op(arith.subi, count, start, name="left"), size, name="piece_count")
            place = b.op(arith.addi, column, start, name="piece_column")
            return [with_slice(b, chunk, self.producers.piece(self.logits, _ACCESS, place, left, 0.0), start, "x")]

        blank = b.splat(b.f32(0.0), self.chunk, "x")
        return b.for_(
            b.index(0),
            count,
            size,
            [("x", blank)],
            one,
            induction="start",
            about=Stage("ComputeInPieces", "The chunk, piece by piece."),
        )[0]

    def _prepare(self, tile: int) -> None:
        """Makes what pieces of `tile` elements need, or shorter ones where a chunk is computed in pieces."""
        most = self.producers.piece_lanes
        self.producers.tile = tile if self.is_load or not most else min(tile, most)
        self.producers.prepare([(self.logits, _ACCESS)])

    def _length(self) -> ir.Value:
        """How many elements the stretch has."""
        start, end = constant_index(self.start), constant_index(self.end)
        if start is None or end is None:
            return self.b.op(arith.subi, self.end, self.start, name="part_length")
        return self.b.index(end - start)

    def _raw(self, column: ir.Value, count: ir.Value) -> ir.Value:
        b = self.b
        if self.tile is None:
            return self.producers.raw_piece(self.logits, _ACCESS, column, count, self.padding)
        if self.is_one:
            return self.tile
        offset = b.op(arith.subi, column, self.start, name="offset")
        return slice_of(b, self.tile, offset, self.chunk, "logits_chunk")


class OneChunk:
    """A stretch that is one chunk, and loaded."""

    def __init__(self, b: Builder, only: Chunk):
        self.b, self.only, self.chunk = b, only, length_of(only.x)

    def each(
        self, carried: Sequence[tuple[str, ir.Value]], body: Callable[..., Sequence[ir.Value]], about: str
    ) -> list[ir.Value]:
        """As of a row."""
        with self.b.stage(about):
            return list(body(self.only, *(value for _, value in carried)))


class ListChunks:
    """The first `number` elements of a list in global memory, which starts at `offset` and has `dtype`, in chunks."""

    def __init__(self, b: Builder, memory: ir.Value, offset: ir.Value, number: ir.Value, chunk: int):
        self.b, self.memory, self.offset, self.number, self.chunk = b, memory, offset, number, chunk
        self.dtype = ir.MemRefType(memory.type).element_type

    def each(
        self, carried: Sequence[tuple[str, ir.Value]], body: Callable[..., Sequence[ir.Value]], about: str
    ) -> list[ir.Value]:
        """As of a row; a chunk's column is its place in the list."""
        b = self.b
        size = b.index(self.chunk, "chunk")
        return b.for_(
            b.index(0), self.number, size, carried, lambda place, *values: body(self.at(place), *values),
            induction="place", about=about,
        )  # fmt: skip

    def at(self, place: ir.Value) -> Chunk:
        """The chunk that starts at a place."""
        b = self.b
        first = constant_index(place) == 0
        left = self.number if first else b.op(arith.subi, self.number, place, name="left")
        offset = self.offset if first else b.op(arith.addi, self.offset, place, name="list_offset")
        count = b.op(arith.minsi, left, b.index(self.chunk), name="count")
        raw = b.build(
            TILE.classes["Load"], self.memory, offset, count,
            results=[tile_type(self.chunk, self.dtype)], pad=ir.FloatAttr.get(b.f32_type, NEG_INF), name="listed_raw",
        ).value  # fmt: skip
        is_wide = str(self.dtype) == "f32"
        x = raw if is_wide else b.op(arith.extf, tile_type(self.chunk, b.f32_type), raw, name="listed")
        return Chunk(x, raw, place, count)


def length_of(tile: ir.Value) -> int:
    return ir.RankedTensorType(tile.type).get_dim_size(0)


def slice_of(b: Builder, tile: ir.Value, offset: int | ir.Value, length: int, name: str | None = None) -> ir.Value:
    """`length` lanes of a tile from `offset` on."""
    offset = _known(offset)
    if isinstance(offset, int) and offset == 0 and length == length_of(tile):
        return tile
    return tensor.extract_slice(
        tile_type(length, ir.RankedTensorType(tile.type).element_type), tile, *_run(offset, length), loc=b.loc(name)
    )


def with_slice(b: Builder, tile: ir.Value, part: ir.Value, offset: int | ir.Value, name: str | None = None) -> ir.Value:
    """A tile with the lanes from `offset` on replaced by `part`."""
    offset = _known(offset)
    length = length_of(part)
    return tensor.insert_slice(part, tile, *_run(offset, length), loc=b.loc(name))


def _known(offset: int | ir.Value) -> int | ir.Value:
    """An offset as a number if it is known."""
    number = offset if isinstance(offset, int) else constant_index(offset)
    return offset if number is None else number


def _run(offset: int | ir.Value, length: int) -> tuple:
    """Operands of an upstream slice: dynamic offsets, sizes and strides, then the static ones."""
    if isinstance(offset, int):
        return [], [], [], [offset], [length], [1]
    return [offset], [], [], [ir.ShapedType.get_dynamic_stride_or_offset()], [length], [1]
