"""Where each pair of token and expert goes: the order of all pairs by expert, found by all cores together.

A core orders its own pairs, a block at a time, by a sort of (expert, pair), and counts how many of them have a smaller
expert than e, for every e: one more list, of an entry for every e, merged in before the pairs of the same expert, has
entry e behind that many pairs. A second sort brings the places back into the order of the pairs.

Tables of these counts, one a core, meet in the workspace. Their sum over all cores is where the pairs of an expert
start, and their differences from one expert to the next, over the cores before, are how many of these pairs come
earlier.

Few pairs are ordered by every core for itself, without a meeting.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith

from jascend.dialect import TILE

from ..builder import Builder, Stage, comment, up
from .routing_shape import Shape
from .row_chunks import slice_of, with_slice
from .ops import Ops


@dataclass(frozen=True)
class Block:
    """Pairs in their order, a lane each.

    Attributes:
      first: the number of the first one.
      expert: counted from the first active one; as many as there are for pairs without one (f32).
    """

    first: ir.Value
    expert: ir.Value


@dataclass(frozen=True)
class Bases:
    """By expert, one lane each, of one step of the experts.

    Attributes:
      start: where the pairs of an expert start, over all cores.
      count: how many they are.
      base: what the rank of a pair among those of this core adds up to its place with.
      rank_base: or its rank among all pairs of its expert.
    """

    start: ir.Value
    count: ir.Value
    base: ir.Value
    rank_base: ir.Value


class Order:
    """Builds the order of one routing. The insertion point at construction is that of the tiles it needs throughout."""

    def __init__(self, b: Builder, shape: Shape):
        self.b, self.t, self.shape = b, Ops(b), shape
        s, t = shape, self.t
        self.lanes = t.ramp(s.lanes + s.width, b.i32_type, "lanes")
        self.lane = t.head(self.lanes, s.lanes)
        self.entry = t.head(self.lanes, s.width)
        numbers = t.ramp(s.width, b.f32_type, "entry_numbers")
        self.entry_keys = b.op(arith.negf, numbers, name="entry_keys")
        # The entry of the following expert; the last lane has none.
        following = b.op(arith.addi, self.entry, t.splat(1, self.entry), name="following")
        self.following = b.op(arith.minsi, following, t.splat(s.width - 1, following), name="following")

    # -- one block of pairs -------------------------------------------------------------------------------------------

    def block(self, first: ir.Value, ids: ir.Value) -> Block:
        """Pairs from `first` on, with these experts. What has no active one, or is no pair and has -1, has the number
        behind the last."""
        b, t, s = self.b, self.t, self.shape
        expert = t.to_f32(ids, "expert")
        inside = b.op(
            arith.andi,
            b.cmpf("OGE", expert, t.splat(float(s.first), expert), "not_below"),
            b.cmpf("OLT", expert, t.splat(float(s.first + s.experts), expert), "not_above"),
            name="is_active",
        )
        if s.first:
            expert = b.op(arith.subf, expert, t.splat(float(s.first), expert), name="active_expert")
        return Block(first, b.select(inside, expert, t.splat(float(s.experts), expert), "expert"))

    def sorted(self, block: Block) -> ir.Value:
        """The pairs by expert, then by number, as a list."""
        key = self.b.op(arith.negf, block.expert, name="key")
        return self.t.sorted(key, self.lane, "in_order", self.shape.lanes)

    def places(self, in_order: ir.Value) -> ir.Value:
        """For each pair of a block, its place in the list."""
        b, t = self.b, self.t
        lane = t.to_f32(t.unpacked(in_order, "sorted_lanes")[1], "sorted_lane")
        back = t.sorted(b.op(arith.negf, lane, name="lane_key"), self.lane, "in_turn", self.shape.lanes)
        return t.unpacked(back, "places")[1]

    def smaller(self, in_order: ir.Value, step: ir.Value) -> ir.Value:
        """For each expert of a step, how many pairs of the list have a smaller one."""
        b, t, s = self.b, self.t, self.shape
        keys = self.entry_keys
        if s.steps > 1:
            keys = b.op(arith.subf, keys, b.splat(self.first_of(step), s.width), name="entry_keys")
        entries = t.sorted(keys, t.splat(s.lanes, self.entry, "no_pair"), "entries", 32)
        lanes = 2 * (s.width + s.lanes)
        merged = t.make("MergeLists", entries, in_order, None, None, length=lanes, name="with_entries")
        which = t.to_f32(t.unpacked(merged, "merged_lanes")[1], "merged_lane")
        is_entry = b.cmpf("OGE", which, t.splat(float(s.lanes), which), "is_entry")
        found, _ = t.compress(self.lanes, is_entry, "entry_places")
        return b.op(arith.subi, t.head(found, s.width), self.entry, name="smaller")

    # -- tables, by expert --------------------------------------------------------------------------------------------

    def first_of(self, step: ir.Value) -> ir.Value:
        """The first expert of a step, as a float32."""
        return self.t.f32_of(self.lane_of(step), "first_expert")

    def lane_of(self, step: ir.Value) -> ir.Value:
        """Where the tables of a step start, in those of all experts."""
        return self.t.times(step, self.shape.step, "first_lane")

    def increase(self, table: ir.Value, name: str) -> ir.Value:
        """From each expert to the next one."""
        return self.b.op(arith.subi, self.t.gather(table, self.following, "of_following"), table, name=name)

    def looked_up(self, table: ir.Value, block: Block, step: ir.Value, before: ir.Value | None, name: str) -> ir.Value:
        """The entry of each pair's expert; `before` where that is not among those of the step."""
        b, t, s = self.b, self.t, self.shape
        if s.steps == 1:
            return t.gather(table, t.to_i32(block.expert, "expert_lane"), name)
        expert = b.op(arith.subf, block.expert, b.splat(self.first_of(step), s.lanes), name="expert_of_step")
        clipped = b.op(arith.maximumf, expert, t.splat(0.0, expert), name="clipped")
        clipped = b.op(arith.minimumf, clipped, t.splat(float(s.step - 1), expert), name="clipped")
        found = t.gather(table, t.to_i32(clipped, "expert_lane"), name)
        return b.select(b.cmpf("OEQ", clipped, expert, "is_of_step"), found, before, name)

    def each_step(self, carried, body: Callable[..., list[ir.Value]], about: str) -> list[ir.Value]:
        """`body(step, *carried)` for all steps of the experts."""
        b, s = self.b, self.shape
        if s.steps == 1:
            return body(b.index(0), *(value for _, value in carried))
        return b.for_(b.index(0), b.index(s.steps), b.index(1), carried, body, induction="step", about=about)

    # -- all cores ----------------------------------------------------------------------------------------------------

    def enter(self) -> None:
        """Makes the memory where cores meet."""
        b, t = self.b, self.t
        self.table = t.workspace("counts", self.shape.row, b.i32_type, "core")
        self.core, self.cores = b.build(TILE.classes["Core"], results=[b.index_type] * 2).operation.results

    def of_pairs(self, name: str, element: ir.Type) -> ir.Value:
        """Scratch with one element for each pair."""
        s = self.shape
        if s.tokens is None:
            return self.t.workspace(name, up(s.slots, 8), element, "row")
        return self.t.workspace(name, up(s.pairs, 8), element, "launch")

    def no_counts(self) -> ir.Value:
        return self.b.splat(self.b.i32(0), self.shape.row, "counts")

    def ranks(self, block: Block, total: ir.Value) -> tuple[ir.Value, ir.Value]:
        """How many pairs of this core before each of a block have the same expert; and the counts by expert, `total`
        before, with this block."""
        b, t, s = self.b, self.t, self.shape
        in_order = self.sorted(block)
        places = self.places(in_order)

        def step(number, total, rank):
            at = self.lane_of(number)
            seen = total if s.steps == 1 else slice_of(b, total, at, s.width, "seen")
            smaller = self.smaller(in_order, number)
            earlier = self.increase(seen, "earlier")
            found = self.looked_up(b.op(arith.subi, earlier, smaller, name="to_rank"), block, number, rank, "rank")
            total_here = b.op(arith.addi, seen, smaller, name="counts")
            if s.steps == 1:
                return [total_here, found]
            return [with_slice(b, total, t.head(total_here, s.step), at, "counts"), found]

        carried = [("counts", total), ("rank", b.splat(b.i32(0), s.lanes) if s.steps > 1 else places)]
        total, rank = self.each_step(carried, step, "The experts, some at a time.")
        return b.op(arith.addi, places, rank, name="ranks"), total

    def meet(self, total: ir.Value) -> None:
        """Tells the other cores the counts of this one, and waits for theirs."""
        b, s = self.b, self.shape
        start = self.t.times(self.core, s.row, "own_counts")
        self.t.store(total, self.table, start, b.index(s.row))
        comment(b.build(TILE.classes["SyncAll"]), "All cores have counted.")

    def each_block(self, tokens, carried, body: Callable[..., list[ir.Value]], about: str) -> list[ir.Value]:
        """`body(first, count, *carried)` for all blocks of pairs of a range of tokens."""
        b, s = self.b, self.shape
        block, slots = b.index(s.block, "block_tokens"), b.index(s.slots, "slots")

        def one(token, *values):
            left = b.op(arith.subi, tokens[1], token, name="tokens_left")
            count = b.op(arith.muli, b.op(arith.minsi, left, block, name="tokens_here"), slots, name="pairs_here")
            return body(b.op(arith.muli, token, slots, name="first_pair"), count, *values)

        return b.for_(*tokens, block, carried, one, induction="token", about=about, runs=s.least >= s.cores)

    def bases(self, step: ir.Value) -> Bases:
        """What all tables together say, for the experts of one step."""
        b, t, s = self.b, self.t, self.shape
        tables = t.make(
            "LoadRows", self.table, self.lane_of(step), self.cores, length=s.cores * s.width, element=b.i32_type,
            name="tables", row_length=s.width, gm_pitch=s.row, pitch=s.width,
        )  # fmt: skip

        def add(number, total):
            row = slice_of(b, tables, self.t.times(number, s.width), s.width, "counts_of_core")
            return [b.op(arith.addi, total, row, name="total")]

        zeros = b.splat(b.i32(0), s.width, "before")
        zero, one = b.index(0), b.index(1)
        (before,) = b.for_(
            zero, self.core, one, [("before", zeros)], add, induction="other",
            about=Stage("AddCountsBefore", "Counts of the cores before."),
        )  # fmt: skip
        (start,) = b.for_(
            self.core, self.cores, one, [("total", before)], add, induction="other",
            about=Stage("AddAllCounts", "Those of all cores."),
        )  # fmt: skip
        rank_base = self.increase(before, "of_cores_before")
        base = b.op(arith.addi, start, rank_base, name="base")
        return Bases(start, self.increase(start, "expert_counts"), base, rank_base)
