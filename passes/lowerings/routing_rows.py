"""Copies rows to the places that their pairs were given: each row is read once, and written once for each of its pairs.

Of a block of pairs only those with a place are kept, in their order, and with them where the pairs of each group of
neighbouring tokens start. Groups without such a pair are not read. A group's rows are loaded while those of the one before
are written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith

from ..builder import Builder
from .routing_shape import Shape, up
from .row_chunks import slice_of
from .tiles import Tiles

_BLOCK = 32  # bytes
BYTES = {"f32": 4, "i32": 4, "f16": 2, "bf16": 2, "i8": 1, "ui8": 1, "f8E4M3FN": 1, "f8E5M2": 1, "f8E8M0FNU": 1}


@dataclass(frozen=True)
class Rows:
    """Rows that are copied as they are.

    Attributes:
      source, target: global memory.
      length: elements of a row.
      columns: how many of them are copied at a time.
    """

    source: ir.Value
    target: ir.Value
    length: int
    columns: int

    @property
    def element(self) -> ir.Type:
        return ir.MemRefType(self.source.type).element_type

    @property
    def pitch(self) -> int:
        """Elements from one row to the next in the unified buffer."""
        return up(self.columns, _BLOCK // BYTES[str(self.element)])


@dataclass(frozen=True)
class Kept:
    """The pairs of a block that have a place, in their order.

    Attributes:
      place: of each of them.
      lane: in the block.
      start: which is the first one of each group of tokens; one entry more than there are groups.
      group: the number of each such group.
      groups: how many there are.
      token: of each pair, counted from the first one of the block; None where a group is one token.
    """

    place: ir.Value
    lane: ir.Value
    start: ir.Value
    group: ir.Value
    groups: ir.Value
    token: ir.Value | None


class PairRows:
    """Builds the copies. The insertion point at construction is that of the tiles it needs throughout.

    Rows of `batch` tokens are loaded at a time. Those of pairs whose place is `limit` or more are not written; 0 is no limit."""

    def __init__(self, b: Builder, shape: Shape, lane: ir.Value, batch: int, limit: int):
        self.b, self.t, self.shape, self.lane, self.batch, self.limit = b, Tiles(b), shape, lane, batch, limit
        t = self.t
        number = t.to_f32(lane, "lane_number")
        # Half a lane keeps the quotient away from whole numbers.
        half = b.op(arith.addf, number, t.splat(0.5, number), name="lane_number_and_half")

        def share(lanes: int, name: str) -> ir.Value:
            return t.to_i32(b.op(arith.mulf, half, t.splat(1 / lanes, half), name=name), name)

        self.token = share(shape.slots, "token_of_lane")
        self.group = self.token if batch == 1 else share(shape.slots * batch, "group_of_lane")
        self.number = number
        before = b.op(arith.subi, lane, t.splat(1, lane), name="lane_before")
        # The first lane is compared with the last one, which is never a pair.
        first = b.cmpi("eq", lane, t.splat(0, lane), "is_first_lane")
        self.before = b.select(first, t.splat(shape.lanes - 1, lane), before, "lane_before")

    def kept(self, place: ir.Value, mask: ir.Value) -> Kept:
        b, t = self.b, self.t
        places, count = t.compress(place, mask, "kept_places")
        lanes, _ = t.compress(self.lane, mask, "kept_lanes")
        group, _ = t.compress(self.group, mask, "kept_groups")
        # Behind the last pair there is another group.
        is_pair = b.cmpf("OLT", self.number, b.splat(t.f32_of(count, "kept"), self.shape.lanes), "is_kept")
        group = b.select(is_pair, group, t.splat(self.shape.lanes, group, "no_group"), "kept_groups")
        before = t.gather(group, self.before, "groups_before")
        starts = b.cmpi("ne", group, before, "starts_group")
        start, entries = t.compress(self.lane, starts, "starts")
        groups, _ = t.compress(group, starts, "groups")
        last = b.op(arith.subi, entries, b.index(1), name="group_count")
        token = None
        if self.batch > 1:
            token, _ = t.compress(self.token, mask, "kept_tokens")
        return Kept(places, lanes, start, groups, last, token)

    def write(
        self, kept: Kept, first_token: ir.Value, sources: Sequence[Rows], *, column: ir.Value | None = None,
        made: Callable | None = None, also: Callable | None = None,
    ) -> None:  # fmt: skip
        """Writes the rows of all kept pairs, or the columns from `column` on.

        `made(tiles)` makes of the rows that were loaded what is to be written, pairs of a tile and the `Rows` whose target it
        goes to; without it they go as they are. `also(i, place)` is called for every pair."""
        b, t = self.b, self.t
        zero, one = b.index(0), b.index(1)

        def load(group, valid):
            """The rows of a group, of tokens from its first one on; of nothing where `valid` does not hold."""
            local = b.op(arith.muli, group, b.index(self.batch), name="token") if self.batch > 1 else group
            token = b.op(arith.addi, first_token, local, name="token")
            rows = None
            if self.batch > 1:
                left = b.op(arith.subi, b.index(self.shape.tokens), token, name="tokens_left")
                rows = b.op(arith.minsi, left, b.index(self.batch), name="tokens_here")
            return [self.load(row, token, rows, column, valid) for row in sources]

        def of_group(number, *tiles):
            following = b.op(arith.addi, number, one, name="next_group")
            more = b.cmpi("slt", following, kept.groups, "more")
            at = b.select(more, following, number, "group_ahead")
            ahead = load(t.extract(kept.group, at, "group"), more)
            group = t.extract(kept.group, number, "group") if self.batch > 1 else None
            outputs = made(tiles) if made else list(zip(tiles, sources))
            first = t.extract(kept.start, number, "first_pair")
            end = t.extract(kept.start, following, "end_pair")
            b.for_(
                first, end, one, [], lambda pair: self.of_pair(pair, kept, group, outputs, column, also),
                induction="pair", about="One copy for each of their pairs.",
            )  # fmt: skip
            return ahead

        def groups():
            tiles = load(t.extract(kept.group, zero, "group"), None)
            b.for_(
                zero, kept.groups, one, [("rows", tile) for tile in tiles], of_group,
                induction="number", about="The tokens that have a place, some at a time.",
            )  # fmt: skip
            return []

        b.if_(b.cmpi("sgt", kept.groups, zero, "any"), [], groups)

    def load(self, rows: Rows, token, count, column, valid) -> ir.Value:
        b, t = self.b, self.t
        offset = b.op(arith.muli, token, b.index(rows.length), name="source")

        def if_valid(number):
            return number if valid is None else b.select(valid, number, b.index(0), "count")

        if column is not None:
            offset = b.op(arith.addi, offset, column, name="source")
        if count is None:
            return t.load(rows.source, offset, if_valid(self.columns(rows, column)), rows.pitch, "row")
        return t.make(
            "LoadRows", rows.source, offset, if_valid(count), length=self.batch * rows.pitch,
            element=rows.element, name="rows", row_length=rows.columns, gm_pitch=rows.length, pitch=rows.pitch,
        )  # fmt: skip

    def columns(self, rows: Rows, column: ir.Value | None) -> ir.Value:
        if column is None:
            return self.b.index(rows.columns)
        left = self.b.op(arith.subi, self.b.index(rows.length), column, name="columns_left")
        return self.b.op(arith.minsi, left, self.b.index(rows.columns), name="columns_here")

    def of_pair(self, pair, kept: Kept, group, outputs, column, also) -> list[ir.Value]:
        b, t = self.b, self.t
        place = t.extract(kept.place, pair, "place")

        def copy():
            row = None
            if self.batch > 1:
                first = b.op(arith.muli, group, b.index(self.batch))
                row = b.op(arith.subi, t.extract(kept.token, pair, "token"), first, name="row_of_group")
            for tile, rows in outputs:
                offset = b.op(arith.muli, place, b.index(rows.length), name="target")
                if column is not None:
                    offset = b.op(arith.addi, offset, column, name="target")
                if row is not None:
                    tile = slice_of(b, tile, b.op(arith.muli, row, b.index(rows.pitch)), rows.pitch, "row")
                t.store(tile, rows.target, offset, self.columns(rows, column))
            return []

        if self.limit and outputs:
            b.if_(b.cmpi("slt", place, b.index(self.limit), "is_row"), [], copy)
        else:
            copy()
        if also is not None:
            also(pair, place)
        return []
