"""Copies rows to the places that their pairs were given: each row is read once, and written once for each of its pairs.

Of a block of pairs only those with a place are kept, in their order, and with them where the pairs of each group of
neighbouring tokens start. Groups without such a pair are not read. A group's rows are loaded while those of the one
before are written; where something is made of them, they are loaded while that is made of the rows before, and written
after that. What depends on the expert too is made for every pair: of some pairs of a token at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith

from jascend.dialect.ascendc import bytes_of, element_bits

from ..ascendc_ops.turns import AHEAD
from ..builder import Builder, Stage, up
from .routing_shape import Shape
from .row_chunks import slice_of
from .ops import Ops

_BLOCK = 256  # bits


@dataclass(frozen=True)
class Rows:
    """Rows in global memory, to be read or written.

    Attributes:
      memory: where they are.
      length: elements of a row.
      columns: how many of them are moved at a time, of a last part of a row perhaps fewer.
      pitch: elements from one row to the next in the unified buffer.
      pad: what fills up the pitch of rows that are read; None leaves it open.
      by: "token" or "expert", of which there is a row for each; or "all", which have only one.
    """

    memory: ir.Value
    length: int
    columns: int
    pitch: int
    pad: float | None = None
    by: str = "token"

    @property
    def bytes(self) -> int:
        """Of one row, in the unified buffer."""
        return bytes_of(self.pitch, self.element)

    @property
    def parts(self) -> int:
        return -(-self.length // self.columns)

    @property
    def element(self) -> ir.Type:
        return ir.MemRefType(self.memory.type).element_type


def whole_blocks(columns: int, element: ir.Type) -> int:
    """A pitch for rows of so many elements."""
    return up(columns, _BLOCK // element_bits(element))


@dataclass(frozen=True)
class Kept:
    """The pairs of a block that have a place, in their order.

    Attributes:
      place: of each of them.
      lane: in the block.
      count: how many they are.
      units: how many groups of tokens they are from; or, where rows are made for every pair, of pairs of a token.
      group: the number of each such group; None where a block is one.
      start: which pair is the first one of each group, one entry more than there are groups; None where a block is one.
      token: of each pair, counted from the first one of the block; None where a group has only one.
      expert: of each pair; None where nothing depends on it.
    """

    place: ir.Value
    lane: ir.Value
    count: ir.Value
    units: ir.Value
    group: ir.Value | None
    start: ir.Value | None
    token: ir.Value | None
    expert: ir.Value | None


class PairRows:
    """Builds the copies, of so many `tokens`. The insertion point at construction is that of the tiles it needs
    throughout.

    Rows of `batch` tokens are read at a time; or with `pairs` that of one token, for at most so many of its pairs. Rows
    of pairs whose place is `limit` or more are not written; 0 is no limit. `never_empty`: every block has pairs to
    write."""

    def __init__(
        self, b: Builder, shape: Shape, lane: ir.Value, tokens: ir.Value, *, batch: int, limit: int, pairs: int,
        never_empty: bool,
    ):  # fmt: skip
        self.b, self.t, self.shape, self.lane = b, Ops(b), shape, lane
        self.batch, self.limit, self.pairs, self.never_empty = batch, limit, pairs, never_empty
        self.groups = -(-shape.slots // pairs) if pairs else 1  # of a token
        self.is_one = not pairs and batch >= min(shape.tokens or shape.block, shape.block)  # a block is one unit
        t = self.t
        # Where any number of tokens is served, there may be fewer than are read at once.
        self.read_at_once = (
            b.index(batch) if shape.tokens is not None else t.smaller(tokens, b.index(batch), "read_at_once")
        )
        self.last_read = t.minus(tokens, self.read_at_once, "last_read")
        self.number = t.to_f32(lane, "lane_number")
        # Half a lane keeps the quotient away from whole numbers.
        half = b.op(arith.addf, self.number, t.splat(0.5, self.number), name="lane_number_and_half")

        def share(of: ir.Value, lanes: int, name: str) -> ir.Value:
            return t.to_i32(b.op(arith.mulf, of, t.splat(1 / lanes, of), name=name), name)

        self.token = share(half, shape.slots, "token_of_lane")
        if self.is_one:
            return
        if self.groups == 1:
            self.group = self.token if batch == 1 else share(half, shape.slots * batch, "group_of_lane")
        elif shape.slots % pairs == 0:
            self.group = share(half, pairs, "group_of_lane")
        else:
            first = b.op(arith.muli, self.token, t.splat(shape.slots, lane), name="first_lane")
            slot = b.op(arith.subf, half, t.to_f32(first, "first_lane"), name="slot_and_half")
            group = b.op(arith.muli, self.token, t.splat(self.groups, lane), name="first_group")
            self.group = b.op(arith.addi, group, share(slot, pairs, "group_of_token"), name="group_of_lane")
        before = b.op(arith.addi, lane, t.splat(-1, lane), name="lane_before")
        # The first lane is compared with the last one, which is never a pair.
        first = b.cmpi("eq", lane, t.splat(0, lane), "is_first_lane")
        self.before = b.select(first, t.splat(shape.lanes - 1, lane), before, "lane_before")

    def kept(self, place: ir.Value, expert: ir.Value, mask: ir.Value) -> Kept:
        """The pairs under the mask; `expert` is as in `Block`."""
        b, t = self.b, self.t
        places, count = t.compress(place, mask, "kept_places")
        lanes, _ = t.compress(self.lane, mask, "kept_lanes", readable=True)
        token = t.compress(self.token, mask, "kept_tokens")[0] if self.batch > 1 else None
        experts = t.compress(t.to_i32(expert, "expert_number"), mask, "kept_experts")[0] if self.pairs else None
        if self.is_one:
            units = t.smaller(count, b.index(1), "units")
            return Kept(places, lanes, count, units, None, None, token, experts)
        group, _ = t.compress(self.group, mask, "kept_groups", readable=True)
        # Behind the last pair there is another group.
        is_pair = b.cmpf("OLT", self.number, b.splat(t.f32_of(count, "kept"), self.shape.lanes), "is_kept")
        group = b.select(is_pair, group, t.splat(self.shape.lanes, group, "no_group"), "kept_groups")
        before = t.gather(group, self.before, "groups_before")
        starts = b.cmpi("ne", group, before, "starts_group")
        start, entries = t.compress(self.lane, starts, "starts")
        groups, _ = t.compress(group, starts, "groups")
        units = b.op(arith.subi, entries, b.index(1), name="units")
        return Kept(places, lanes, count, units, groups, start, token, experts)

    # -- all units of a block -----------------------------------------------------------------------------------------

    def copy(
        self, kept: Kept, first_token: ir.Value, sources: Sequence[Rows], targets: Sequence[Rows], *,
        part: ir.Value | None = None, also: Callable | None = None,
    ) -> None:  # fmt: skip
        """Writes the rows of all kept pairs as they are, or the part of them with that number. `also(i, place)` is
        called for every pair."""
        b = self.b

        def of_unit(number, *tiles):
            following = b.op(arith.addi, number, b.index(1), name="next_unit")
            more = b.cmpi("slt", following, kept.units, "more")
            at = b.select(more, following, number, "unit_ahead")
            ahead = [self.read(rows, kept, at, first_token, part, more) for rows in sources]
            self.write(kept, number, first_token, list(zip(tiles, targets)), part, also)
            return ahead

        def units():
            tiles = [self.read(rows, kept, b.index(0), first_token, part, None) for rows in sources]
            if self.is_one:
                self.write(kept, b.index(0), first_token, list(zip(tiles, targets)), part, also)
            else:
                self.each_unit(kept, tiles, of_unit)
            return []

        self.if_any(kept, units)

    def if_any(self, kept: Kept, units: Callable) -> None:
        if self.never_empty:
            units()
        else:
            self.b.if_(self.b.cmpi("sgt", kept.units, self.b.index(0), "any"), [], units)

    def make(
        self, kept: Kept, first_token: ir.Value, sources: Sequence[Rows], made: Callable, targets: Sequence[Rows], *,
        part: ir.Value | None = None, also: Callable | None = None,
    ) -> None:  # fmt: skip
        """Writes what `made(*tiles)` makes of the rows: tiles, for as many targets; or of the part of them with that
        number. Of rows that depend on the expert there is a tile for each pair of a unit."""
        b = self.b
        last = b.op(arith.subi, kept.units, b.index(1), name="last")

        def read(unit):
            return self.read_all(sources, kept, b.op(arith.minsi, unit, last, name="number_ahead"), first_token, part)

        def ahead(tiles):
            """What is written in the next iteration."""
            outputs = made(*tiles)
            for tile in outputs:
                tile.owner.attributes[AHEAD] = ir.UnitAttr.get()
            return outputs

        def of_unit(number, *carried):
            tiles, outputs = carried[: -len(targets)], carried[-len(targets) :]
            following = read(b.op(arith.addi, number, b.index(2), name="unit_after_next"))
            next_outputs = ahead(tiles)
            self.write(kept, number, first_token, list(zip(outputs, targets)), part, also)
            return [*following, *next_outputs]

        def units():
            if self.is_one:
                tiles = [self.read(rows, kept, b.index(0), first_token, part, None) for rows in sources]
                self.write(kept, b.index(0), first_token, list(zip(made(*tiles), targets)), part, also)
                return []
            outputs = ahead(read(b.index(0)))
            self.each_unit(kept, [*read(b.index(1)), *outputs], of_unit)
            return []

        self.if_any(kept, units)

    def make_in_parts(
        self, kept: Kept, first_token: ir.Value, sources: Sequence[Rows], made, targets: Sequence[Rows], *,
        also: Callable | None = None,
    ) -> None:  # fmt: skip
        """The same for rows that are too long for the unified buffer, of one token or pair at a time: read twice where
        a scale depends on all of the row."""
        b = self.b
        zero, one, parts = b.index(0), b.index(1), b.index(targets[0].parts)

        def of_unit(number):
            def values(part):
                return made.value(*self.read_all(sources, kept, number, first_token, part))

            scales, divisor = [], None
            if len(targets) > 1:

                def peak(part, largest):
                    return [b.op(arith.maximumf, largest, made.magnitudes(values(part)), name="largest")]

                nothing = b.splat(b.f32(0.0), targets[0].columns, "largest")
                (largest,) = b.for_(
                    zero, parts, one, [("largest", nothing)], peak, induction="part",
                    about=Stage("FindPeak", "The largest magnitude."),
                )  # fmt: skip
                scales, divisor = made.scale(largest)
                scales = [(scales, targets[1])]

            def codes(part):
                tile = made.codes(values(part), divisor)
                self.write(kept, number, first_token, [(tile, targets[0])], part, None)
                return []

            b.for_(zero, parts, one, [], codes, induction="part", about=Stage("WriteCodes", "The codes."))
            if scales or also is not None:
                self.write(kept, number, first_token, scales, None, also)
            return []

        self.each_unit(kept, [], of_unit)

    def each_unit(self, kept: Kept, tiles: Sequence[ir.Value], body: Callable) -> None:
        which = "pairs of each token" if self.pairs else "tokens that have a place"
        about = f"The {which}, some at a time."
        self.b.for_(
            self.b.index(0), kept.units, self.b.index(1), [("rows", tile) for tile in tiles], body,
            induction="number", about=about,
        )  # fmt: skip

    # -- one unit -----------------------------------------------------------------------------------------------------

    def read_all(self, sources: Sequence[Rows], kept: Kept, unit, first_token, part) -> list[ir.Value]:
        """The rows of a unit; of those that depend on the expert, one for each pair."""
        b, t, tiles = self.b, self.t, []
        for rows in sources:
            if rows.by != "expert":
                tiles.append(self.read(rows, kept, unit, first_token, part, None))
                continue
            first = t.index_at(kept.start, unit, "first_pair")
            last = b.op(arith.subi, kept.count, b.index(1), name="last_pair")
            for i in range(self.pairs):
                pair = b.op(arith.minsi, b.op(arith.addi, first, b.index(i)), last, name="pair_ahead")
                start = self.start_of(rows, t.index_at(kept.expert, pair, "expert"), part, "source")
                tiles.append(t.load(rows.memory, start, self.columns(rows, part), rows.pitch, "row", pad=rows.pad))
        return tiles

    def read(self, rows: Rows, kept: Kept, unit, first_token, part, valid) -> ir.Value:
        """The rows of a unit, of tokens from its first one on; of nothing where `valid` is given and does not hold."""
        b, t = self.b, self.t

        def if_valid(number):
            return number if valid is None else b.select(valid, number, b.index(0), "count")

        if rows.by == "all":
            row = b.index(0)
        else:
            row = b.index(0) if self.is_one else t.index_at(kept.group, unit, "unit")
            if self.groups > 1:
                row = b.op(arith.divsi, row, b.index(self.groups), name="token_of_block")
            row = self.first_of(row, first_token) if self.batch > 1 else t.plus(first_token, row, "token")
        offset = self.start_of(rows, row, part, "source")
        if self.batch == 1:
            return t.load(rows.memory, offset, if_valid(self.columns(rows, part)), rows.pitch, "row", pad=rows.pad)
        return t.make(
            "LoadRows", rows.memory, offset, if_valid(self.read_at_once), length=self.batch * rows.pitch,
            element=rows.element, name="rows", row_length=rows.columns, gm_pitch=rows.length, pitch=rows.pitch,
            pad=rows.pad,
        )  # fmt: skip

    def first_of(self, group: ir.Value, first_token: ir.Value) -> ir.Value:
        """The first token whose row is read for a group: such that as many follow."""
        b = self.b
        first = self.t.plus(first_token, self.t.times(group, self.batch), "token")
        return b.op(arith.minsi, first, self.last_read, name="first_read")

    def start_of(self, rows: Rows, row: ir.Value, part: ir.Value | None, name: str) -> ir.Value:
        """Where a row, or a part of it, starts in global memory."""
        start = self.t.times(row, rows.length, name)
        return start if part is None else self.t.plus(start, self.column(rows, part), name)

    def column(self, rows: Rows, part: ir.Value) -> ir.Value:
        return self.t.times(part, rows.columns, "column")

    def columns(self, rows: Rows, part: ir.Value | None) -> ir.Value:
        """How many elements of a row are moved."""
        b = self.b
        if part is None:
            return b.index(rows.columns)
        left = b.op(arith.subi, b.index(rows.length), self.column(rows, part), name="columns_left")
        return b.op(arith.minsi, left, b.index(rows.columns), name="columns_here")

    def write(self, kept: Kept, number, first_token, outputs: Sequence, part, also) -> None:
        """Writes tiles, of a row for each token or pair of the unit, for all pairs of it."""
        b, t = self.b, self.t
        first, end = b.index(0), kept.count
        if not self.is_one:
            first = t.index_at(kept.start, number, "first_pair")
            end = t.index_at(kept.start, b.op(arith.addi, number, b.index(1), name="next_unit"), "end_pair")
        start = first if self.pairs > 1 else None
        if self.batch > 1:
            group = b.index(0) if self.is_one else t.index_at(kept.group, number, "group")
            start = self.first_of(group, first_token)
            start = t.minus(start, first_token, "first_of_block")
        b.for_(
            first, end, b.index(1), [], lambda pair: self.write_pair(kept, pair, start, outputs, part, also),
            induction="pair", about=Stage("WritePairs", "Once for each of their pairs."),
        )  # fmt: skip

    def write_pair(self, kept: Kept, pair, start, outputs, part, also) -> list[ir.Value]:
        b, t = self.b, self.t
        place = t.index_at(kept.place, pair, "place")

        def copy():
            row = None
            if start is not None:
                at = pair if self.pairs else t.index_at(kept.token, pair, "token")
                row = b.op(arith.subi, at, start, name="row_of_unit")
            for tile, rows in outputs:
                offset = self.start_of(rows, place, part, "target")
                if row is not None:
                    tile = slice_of(b, tile, self.t.times(row, rows.pitch), rows.pitch, "row")
                t.store(tile, rows.memory, offset, self.columns(rows, part))
            return []

        if self.limit and outputs:
            b.if_(b.cmpi("slt", place, b.index(self.limit), "is_row"), [], copy)
        else:
            copy()
        if also is not None:
            also(pair, place)
        return []
