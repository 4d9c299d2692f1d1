"""`ascend.moe_init_routing` on tiles: counts by expert, one meeting of all cores, then every row is read once.

`routing_order` finds the place of each pair of token and expert, `routing_rows` copies the rows there, and
`routing_quantize` and `routing_groups` make codes of them on the way. What is left is here: the index of places, the
counts, rows of zeros where an expert has fewer pairs than rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from mlir import ir
from mlir.dialects import arith

from jascend.backends.ascend.targets import Target
from jascend.dialect import TILE
from jascend.dialect.ascendc import element_bits

from ..builder import Stage, comment, up
from .lowering import lowering
from .routing_groups import GROUPINGS, Scaled, group_pitch, groups_of
from .routing_order import Block, Order
from .routing_quantize import SCALE_LANES, Dynamic, Static, pitch_of
from .routing_rows import PairRows, Rows, whole_blocks
from .routing_shape import Shape, ways_of
from .row_chunks import length_of, slice_of, with_slice
from .site import Candidate, Site

SUMMARY = (
    "Copies every token once for each of its experts, ordered by expert. Cores order their own pairs of token and "
    "expert, tell each other how many they have of each expert, and copy the rows of their own tokens."
)
FROM_MEMORY = ("x", "expert_idx", "scale", "offset")
FILL = {"expanded_row_idx": -1}
CANDIDATES = tuple(
    Candidate(tile, lanes, load_ahead)
    for load_ahead in (True, False)
    for tile, lanes in ((32768, 2048), (32768, 512), (24576, 1024), (16384, 1024), (4096, 512))
)  # bytes of the rows at hand, and lanes of a block of pairs

_NO_QUANTIZATION = -1
_DYNAMIC = (1, 8, 13)  # with a scale that depends on the row
_INVERSE = 13  # with a multiplication where others divide
_LARGEST = {0: None, 1: 127.0, 6: None, 7: 32768.0, 8: 32768.0, 13: 7.0}  # what rows are scaled to, or held within
_MOST_SLOTS = 2047  # of a token: a block of pairs holds whole tokens
_ZEROS = 8192  # bytes that are zeroed at a time
_PAIRS = 4  # whose codes are made at once, where they depend on the expert
_PART = 4096  # lanes of a part of a row that is quantized in parts
_MOST_ROWS = 64  # that are read at once
_MANY = 2048  # bytes of rows that are worth a copy of their own


def refusal(op: ir.OpView, target: Target) -> str | None:
    """Why no kernel is generated for an op; None if one is."""
    slots = ir.RankedTensorType(op.expert_idx.type).shape[-1]
    return refusal_of(op, (op.x, op.expert_idx, op.scale, op.offset), slots, target)


def refusal_of(op: ir.OpView, operands: Sequence[ir.Value | None], slots: int, target: Target) -> str | None:
    """The same for an op with the attributes of a routing, of these operands and so many experts a token."""
    present = [value for value in operands if value is not None]
    if ir.RankedTensorType(op.x.type).rank != 2:
        return "is generated for one routing, not for a batch of them"
    if any(not isinstance(value.owner, ir.Block) for value in present):
        return "takes its operands from memory: its kernel does not compute them"
    if slots > _MOST_SLOTS:
        return f"is generated for at most {_MOST_SLOTS} experts a token"
    return None


@lowering(
    "ascend.moe_init_routing", summary=SUMMARY, refusal=refusal, fill=FILL, candidates=CANDIDATES,
    from_memory=FROM_MEMORY,
)  # fmt: skip
def lower(op: ir.OpView, site: Site) -> None:
    """Builds the kernel body: the order of all pairs, and the rows of this core's tokens."""
    site.deal_out(site.producers.buffers[op.expert_idx.arg_number])
    slots = ir.RankedTensorType(op.expert_idx.type).get_dim_size(1)
    build(Routing, op, site, ways_of(op, slots, site))


def build(routing: type[Routing], op: ir.OpView, site: Site, ways: Sequence[Shape]) -> None:
    """The one way of a known number of tokens; of any number, the way of few of them, and that of more."""
    b, rows = site.b, site.rows
    share = b.build(TILE.classes["BlockRows"], rows, results=[b.index_type] * 4)
    *few, s = ways
    most = None
    if s.tokens is None:
        most = site.bound_of_rows(op.x.type)
        site.serve_any_rows(most)
    tokens = s.tokens if s.tokens is not None else "any number of" if most is None else f"up to {most}"
    how = "every core orders all pairs" if s.alone else f"cores order {s.lanes} pairs at a time, and meet once"
    up_to = "".join(f", but of up to {way.share} tokens every core orders all pairs" for way in few)
    site.remarks.append(f"{tokens} x {s.slots} pairs, {s.experts} experts: {how}{up_to}")
    if s.is_empty:
        return

    def build_way(way: Shape) -> list[ir.Value]:
        routing(op, site, way, share).build()
        return []

    if not few:
        build_way(s)
        return
    is_few = b.cmpi("sle", rows, b.index(few[0].share), "is_few")
    b.if_(
        is_few, [], lambda: build_way(few[0]), lambda: build_way(s), about="Few tokens: no core waits for the others."
    )


class Routing:
    """One way to build it, for tokens whose number is that of the shape; `share` are those of each core."""

    def __init__(self, op, site: Site, shape: Shape, share):
        self.op, self.site, self.b, self.shape = op, site, site.b, shape
        self.x = self.memory(op.x)
        self.tokens = (share.operation.results[0], share.operation.results[1])
        self.count = site.rows if shape.tokens is None else self.b.index(shape.tokens)

    def build(self) -> None:
        self.enter()
        self.plan_rows()
        if self.shape.alone:
            pairs = self.t.times(self.count, self.shape.slots, "pairs")
            self.alone(self.ids(self.zero, pairs))
        else:
            self.together()

    def ids(self, first: ir.Value, count: ir.Value) -> ir.Value:
        """The experts of `count` pairs from `first` on; -1 behind them."""
        return self.t.load(self.memory(self.op.expert_idx), first, count, self.shape.lanes, "ids", pad=-1.0)

    # -- the kernel ---------------------------------------------------------------------------------------------------

    def enter(self) -> None:
        """Makes what is needed throughout."""
        self.zero, self.one = self.b.index(0), self.b.index(1)
        self.order = Order(self.b, self.shape)
        self.t = self.order.t

    def padding(self, pitch: int) -> float | None:
        """What fills up rows of x; and the place of rows, where there may be fewer than are read at once."""
        return None if pitch == self.shape.size and self.shape.tokens is not None else 0.0

    @property
    def scattered(self) -> bool:
        """Whether the index holds the pair of each row, not the row of each pair."""
        return self.op.row_idx_type == 1

    @property
    def blocks_have_rows(self) -> bool:
        """Whether every block is known to have a pair whose row is written."""
        return False

    def plan_rows(self) -> None:
        """What is read for a row, what is made of it, and what is written."""
        s, op = self.shape, self.op
        self.sources: list[Rows] = []
        self.targets: list[Rows] = []
        self.made, self.in_parts, self.batch, self.pairs = None, False, 1, 0
        if op.quant_mode == _NO_QUANTIZATION:
            self.plan_copies()
        elif s.size and op.quant_mode in GROUPINGS:
            self.plan_groups()
        elif s.size:
            self.plan_quantization()
        self.pair_rows = None
        if self.sources or self.scattered:
            limit = s.limit if self.scattered else 0
            self.pair_rows = PairRows(
                self.b, s, self.order.lane, self.count, batch=self.batch, limit=limit, pairs=self.pairs,
                never_empty=self.blocks_have_rows,
            )  # fmt: skip
        self.zeros = [self.zero_tile(rows) for rows in self.targets] if s.capacity else []

    def memory(self, value: ir.Value) -> ir.Value:
        return self.site.producers.buffers[value.arg_number]

    def plan_copies(self) -> None:
        """Rows go as they are, and the scales that are given with them."""
        op, outputs = self.op, self.site.outputs
        copies = [(self.x, outputs["expanded_x"], self.shape.size)]
        if op.scale is not None:
            length = 1
            for size in ir.RankedTensorType(op.scale.type).shape[1:]:
                length *= size
            copies.append((self.memory(op.scale), outputs["expanded_scale"], length))
        for source, target, length in copies:
            if length:
                element = ir.MemRefType(source.type).element_type
                columns = min(length, self.site.candidate.tile * 8 // element_bits(element))
                pitch = whole_blocks(columns, element)
                self.sources.append(Rows(source, length, columns, pitch))
                self.targets.append(Rows(target, length, columns, pitch))
        # A copy of several rows has no elements of 4 bits.
        if all(element_bits(rows.element) >= 8 for rows in self.sources):
            self.batch = self.at_once(_MANY // max((rows.bytes for rows in self.sources), default=_MANY))

    def at_once(self, rows: int) -> int:
        """So many rows are read at once, but not more than there are in a block of pairs."""
        s = self.shape
        return max(1, min(_MOST_ROWS, s.block if s.tokens is None else s.tokens, s.block, rows))

    def plan_groups(self) -> None:
        """Rows are scaled group by group, so that their parts are rows of their own."""
        b, op, outputs, size = self.b, self.op, self.site.outputs, self.shape.size
        grouping = GROUPINGS[op.quant_mode]
        most = self.site.candidate.tile // 4
        self.batch = self.at_once(most // group_pitch(grouping, size, 2))
        pitch = min(group_pitch(grouping, size, self.batch), most // 1024 * 1024)
        x, codes, scales = self.x, outputs["expanded_x"], outputs["expanded_scale"]
        given = 1  # scales of a row
        for extent in ir.MemRefType(scales.type).shape[1:]:
            given *= extent
        columns = min(size, pitch)
        whole = columns == size
        scale_pitch = pitch // grouping.size
        self.sources.append(Rows(x, size, columns, pitch, self.padding(pitch)))
        self.targets.append(Rows(codes, size, columns, pitch))
        self.targets.append(Rows(scales, given, given if whole else scale_pitch, scale_pitch))
        elements = (ir.MemRefType(memory.type).element_type for memory in (x, codes, scales))
        self.made = groups_of(b, op.quant_mode, *elements, self.batch, pitch, -(-size // grouping.size))

    def plan_quantization(self) -> None:
        b, op, outputs, size = self.b, self.op, self.site.outputs, self.shape.size
        most = self.site.candidate.tile // 2
        code, largest = ir.MemRefType(outputs["expanded_x"].type).element_type, _LARGEST[op.quant_mode]
        pitch = pitch_of(size, code)
        self.in_parts = pitch > most
        if self.in_parts:
            pitch = min(most, _PART)
        columns = min(size, pitch)
        pad = self.padding(pitch)
        self.sources.append(Rows(self.x, size, columns, pitch, pad))
        self.targets.append(Rows(outputs["expanded_x"], size, columns, pitch))
        by_expert = op.scale is not None and ir.RankedTensorType(op.scale.type).get_dim_size(0) > 1
        rows = 1 if self.in_parts else self.site.candidate.tile // 4 // pitch
        if by_expert:
            # As many as a token has active ones, if experts are alike.
            active = -(-self.shape.slots * self.shape.experts // self.shape.all_experts)
            self.pairs = max(1, min(rows, active, _PAIRS))
        else:
            self.batch = self.at_once(rows)
        if op.quant_mode not in _DYNAMIC:
            scale, offset = (None if value is None else self.memory(value) for value in (op.scale, op.offset))
            self.made = Static(b, code, scale=scale, offset=offset, most=largest)
            return
        self.targets.append(Rows(outputs["expanded_scale"], 1, 1, SCALE_LANES))
        smooth = None
        if op.scale is not None:
            rows = Rows(self.memory(op.scale), size, columns, pitch, pad, "expert" if by_expert else "all")
            if by_expert or self.in_parts:
                self.sources.append(rows)
            else:
                row = self.t.load(rows.memory, self.zero, b.index(size), pitch, "smooth", pad=pad)
                smooth = self.t.repeat(row, self.batch, "smooth_rows")
        self.made = Dynamic(
            b, code, largest, self.pairs or self.batch, pitch, smooth=smooth, by_expert=by_expert,
            inverse=op.quant_mode == _INVERSE,
        )  # fmt: skip

    def writes_for_all(self, name: str) -> ir.Value:
        """Whether this is the core that writes what is the same for all: the last one with tokens; where there may be
        none at all, the first one."""
        b = self.b
        if self.shape.tokens is None:
            core = b.build(TILE.classes["Core"], results=[b.index_type] * 2).operation.results[0]
            return b.cmpi("eq", core, b.index(0), name)
        is_last = b.cmpi("eq", self.tokens[1], self.count, "is_last")
        return b.op(arith.andi, is_last, b.cmpi("slt", *self.tokens, "has_tokens"), name=name)

    # -- every core for itself ----------------------------------------------------------------------------------------

    def alone(self, ids: ir.Value) -> None:
        b, s, order = self.b, self.shape, self.order
        block = order.block(self.zero, ids)
        comment(block.expert.owner, "The experts of all pairs, and their order.")
        in_order = order.sorted(block)
        places = order.places(in_order)
        writes = self.writes_for_all("writes_counts")
        ranks = b.splat(b.i32(0), s.lanes) if s.capacity else None

        if s.capacity:
            def rank(step, ranks):
                smaller = order.smaller(in_order, step)
                starts = order.looked_up(smaller, block, step, ranks, "starts")
                self.zero_rows(step, order.increase(smaller, "expert_counts"))
                return [starts]

            (starts,) = order.each_step([("starts", ranks)], rank, "The experts, some at a time.")
            place, has_place = self.padded(block, b.op(arith.subi, places, starts, name="ranks"))
        else:
            place, has_place = places, self.is_valid(block)

        def results_of_all():
            if self.counted:
                def count(step, *offset):
                    start = order.smaller(in_order, step)
                    return self.write_counts(step, start, order.increase(start, "expert_counts"), *offset)

                order.each_step(self.carried_by_counts(), count, "The counts.")
            if not self.scattered:
                pairs = self.t.times(self.count, s.slots, "pairs")
                self.write_index(place, has_place, self.zero, pairs)
            return []

        b.if_(
            writes, [], results_of_all, about=Stage("WriteCounts", "What is the same for all cores is written by one.")
        )
        # The pairs of this core's tokens.
        if self.pair_rows is None:
            return
        lane = self.pair_rows.number
        for predicate, token in (("OGE", self.tokens[0]), ("OLT", self.tokens[1])):
            pair = self.t.times(token, s.slots, "own_pair")
            mine = b.cmpf(predicate, lane, b.splat(self.t.f32_of(pair), s.lanes), "is_mine")
            has_place = b.op(arith.andi, has_place, mine, name="is_mine")
        self.copy(block, place, has_place, self.zero)

    # -- all cores together -------------------------------------------------------------------------------------------

    def together(self) -> None:
        b, s, order, t = self.b, self.shape, self.order, self.t
        order.enter()
        ranks = order.of_pairs("ranks", b.i32_type)

        def rank(first, count, total):
            block_ranks, total = order.ranks(order.block(first, self.ids(first, count)), total)
            t.store(block_ranks, ranks, first, count)
            return [total]

        about = "Ranks of this core's pairs, and counts by expert."
        (total,) = order.each_block(self.tokens, [("counts", order.no_counts())], rank, about)
        order.meet(total)
        self.find_bases()

        def one(first, count):
            block = order.block(first, self.ids(first, count))
            self.put(block, t.load(ranks, first, count, s.lanes, "ranks", pad=0.0), count)
            return []

        order.each_block(self.tokens, [], one, "The rows of this core's tokens.")

    def find_bases(self) -> None:
        """What ranks among the pairs of this core add up with, by expert; and what the counts of all say."""
        b, s, order, t = self.b, self.shape, self.order, self.t
        writes = b.cmpi("eq", order.core, self.zero, "writes_counts")
        self.own = None
        if s.steps > 1:
            self.own = t.workspace("bases", s.row, b.i32_type, "core")
            self.start_of_own = t.times(order.core, s.row, "own_bases")

        def step(number, *offset):
            bases = order.bases(number)
            base = bases.rank_base if s.capacity else bases.base
            if self.own is not None:
                at = b.op(arith.addi, self.start_of_own, order.lane_of(number))
                t.store(base, self.own, at, b.index(s.step))
            if s.capacity:
                self.zero_rows(number, bases.count)
            following = list(offset)
            if self.counted:
                def write():
                    return self.write_counts(number, bases.start, bases.count, *offset)

                names = [name for name, _ in self.carried_by_counts()]
                following = b.if_(
                    writes, names, write, (lambda: list(offset)) if offset else None,
                    types=[value.type for value in offset],
                    about=Stage("WriteCounts", "The first core writes the counts."),
                )  # fmt: skip
            self.base = base
            return following

        order.each_step(self.carried_by_counts() if self.counted else [], step, "Where the pairs of each expert start.")

    def put(self, block: Block, rank: ir.Value, count: ir.Value) -> None:
        """Writes the rows of a block of `count` pairs with these ranks, and where the rows of all pairs are."""
        b, s, order, t = self.b, self.shape, self.order, self.t
        if self.own is None:
            found = order.looked_up(self.base, block, self.zero, None, "bases")
        else:
            def look(number, found):
                at = b.op(arith.addi, self.start_of_own, order.lane_of(number))
                base = t.load(self.own, at, b.index(s.step), s.step, "base")
                return [order.looked_up(base, block, number, found, "bases")]

            nothing = b.splat(b.i32(0), s.lanes, "bases")
            (found,) = order.each_step([("bases", nothing)], look, "The experts, some at a time.")
        place = b.op(arith.addi, rank, found, name="places")
        has_place = self.is_valid(block)
        if s.capacity:
            place, has_place = self.padded(block, place)
        if not self.scattered:
            self.write_index(place, has_place, block.first, count)
        if self.pair_rows is not None:
            self.copy(block, place, has_place, b.op(arith.divsi, block.first, b.index(s.slots), name="first_token"))

    # -- places -------------------------------------------------------------------------------------------------------

    def is_valid(self, block: Block) -> ir.Value:
        return self.b.cmpf("OLT", block.expert, self.t.splat(float(self.shape.experts), block.expert), "has_expert")

    def is_below(self, value: ir.Value, limit: int, name: str) -> ir.Value:
        """Whether integers that are not negative are below a limit."""
        b, t = self.b, self.t
        least = b.op(arith.minsi, value, t.splat(limit - 1, value), name="at_most")
        return b.cmpi("eq", least, value, name)

    def padded(self, block: Block, rank: ir.Value) -> tuple[ir.Value, ir.Value]:
        """The places of pairs by their rank, where every expert has as many rows; and which pairs have one."""
        b, t, s = self.b, self.t, self.shape
        has_place = b.op(arith.andi, self.is_valid(block), self.is_below(rank, s.capacity, "fits"), name="has_place")
        expert = t.to_i32(block.expert, "expert_number")
        first = b.op(arith.muli, expert, t.splat(s.capacity, expert), name="first_row")
        return b.op(arith.addi, first, rank, name="places"), has_place

    def write_index(self, place: ir.Value, has_place: ir.Value, first: ir.Value, count: ir.Value) -> None:
        """The row of each pair."""
        b, t = self.b, self.t
        index = b.select(has_place, place, t.splat(-1, place, "none"), "row_idx")
        t.store(index, self.site.outputs["expanded_row_idx"], first, count)

    def copy(self, block: Block, place: ir.Value, has_place: ir.Value, first_token: ir.Value) -> None:
        """The rows of a block, and where the index holds pairs, these."""
        b, t, s, pairs = self.b, self.t, self.shape, self.pair_rows
        if s.limit and not self.scattered:
            has_place = b.op(arith.andi, has_place, self.is_below(place, s.limit, "is_row"), name="has_row")
        kept = pairs.kept(place, block.expert, has_place)
        also = None
        if self.scattered:
            number = b.op(arith.addi, kept.lane, b.splat(t.i32_of(block.first), s.lanes), name="pairs")
            blocks = t.make("Broadcast", number, length=8 * s.lanes, name="pair_blocks", width=8)

            def also(pair, place):
                one = slice_of(b, blocks, self.t.times(pair, 8), 8, "pair_block")
                t.store(one, self.site.outputs["expanded_row_idx"], place, self.one)

        if self.made is not None and (self.in_parts or self.sources[0].parts == 1):
            make = pairs.make_in_parts if self.in_parts else pairs.make
            make(kept, first_token, self.sources, self.made, self.targets, also=also)
            return
        whole = [i for i, rows in enumerate(self.sources) if rows.parts == 1]
        if whole or also is not None:
            sources, targets = ([rows[i] for i in whole] for rows in (self.sources, self.targets))
            pairs.copy(kept, first_token, sources, targets, also=also)
        if self.made is not None:
            def make(part):
                made = partial(self.made, part=part) if isinstance(self.made, Scaled) else self.made
                pairs.make(kept, first_token, self.sources, made, self.targets, part=part)

            self.each_part(self.sources[0], make)
            return
        for i, (source, target) in enumerate(zip(self.sources, self.targets)):
            if i not in whole:
                self.each_part(source, partial(pairs.copy, kept, first_token, [source], [target]))

    def each_part(self, rows: Rows, body: Callable[..., None]) -> None:
        """`body(part=...)` for the parts of rows that are too long for the unified buffer."""
        b = self.b
        b.for_(
            self.zero, b.index(rows.parts), self.one, [], lambda part: body(part=part) or [],
            induction="part", about=Stage("MoveInParts", "Rows that are too long for the unified buffer, in parts."),
        )  # fmt: skip

    # -- counts -------------------------------------------------------------------------------------------------------

    @property
    def counted(self) -> bool:
        return self.op.expert_tokens_num_flag

    def carried_by_counts(self) -> list[tuple[str, ir.Value]]:
        """What one step of the experts hands to the next: how many experts with pairs there were."""
        return [("listed", self.zero)] if self.op.expert_tokens_num_type == 2 else []

    def write_counts(self, step, start, count, *listed) -> list[ir.Value]:
        """The counts of the experts of a step."""
        b = self.b
        if self.op.expert_tokens_num_type == 2:
            return self.write_pairs(step, count, *listed)
        value = count
        if self.op.expert_tokens_num_type == 0:
            value = b.op(arith.addi, start, count, name="running_counts")
        first = self.order.lane_of(step)
        self.store_counts(value, first, self.of_step(first))
        return []

    def of_step(self, first: ir.Value) -> ir.Value:
        """How many active experts a step has."""
        b, s = self.b, self.shape
        if s.steps == 1:
            return b.index(s.experts)
        left = b.op(arith.subi, b.index(s.experts), first, name="experts_left")
        return b.op(arith.minsi, left, b.index(s.step), name="experts_here")

    def write_pairs(self, step, count, listed) -> list[ir.Value]:
        """Pairs (expert, count) of the experts that have any; behind them, zeros."""
        b, t, s, order = self.b, self.t, self.shape, self.order
        first = order.lane_of(step)
        here = self.of_step(first)
        number = t.to_f32(order.entry, "entry_number")
        some = b.cmpf("OGT", t.to_f32(count, "count"), t.splat(0.5, number), "has_pairs")
        inside = b.cmpf("OLT", number, b.splat(t.f32_of(here), s.width), "is_expert")
        some = b.op(arith.andi, some, inside, name="is_listed")
        by = b.op(arith.addi, t.i32_of(first), b.i32(s.first))
        expert = b.op(arith.addi, order.entry, b.splat(by, s.width), name="experts")
        experts, kept = t.compress(expert, some, "listed_experts", readable=True)
        counts, _ = t.compress(count, some, "listed_counts", readable=True)
        both = b.splat(b.i32(0), 2 * s.width, "both")
        both = with_slice(b, with_slice(b, both, experts, 0, "both"), counts, s.width, "both")
        # Lane i of the result is lane i // 2 of the one or the other.
        lane = t.ramp(2 * s.width, b.i32_type, "pair_lanes")
        half = b.op(arith.shrsi, lane, t.splat(1, lane), name="half")
        odd = b.op(arith.subi, lane, b.op(arith.shli, half, t.splat(1, half), name="even"), name="odd")
        source = b.op(arith.addi, half, b.op(arith.muli, odd, t.splat(s.width, odd), name="in_counts"), name="source")
        pairs = t.gather(both, source, "pairs")
        end = b.splat(t.f32_of(kept, "listed_here"), 2 * s.width)
        is_pair = b.cmpf("OLT", t.to_f32(half, "pair_number"), end, "is_pair")
        pairs = b.select(is_pair, pairs, t.splat(0, pairs, "nothing"), "pairs")
        offset = t.times(listed, 2, "first_listed")
        left = t.minus(b.index(s.all_experts), listed, "room")
        room = b.op(arith.minsi, left, b.index(s.width), name="rows_here")
        self.store_counts(pairs, offset, t.times(room, 2, "lanes_here"))
        return [b.op(arith.addi, listed, kept, name="listed")]

    def store_counts(self, value: ir.Value, offset: ir.Value, count: ir.Value) -> None:
        memory = self.site.outputs["expert_tokens"]
        if str(ir.MemRefType(memory.type).element_type) == "i64":
            value = self.words_of(value)
        self.t.store(value, memory, offset, count)

    def words_of(self, value: ir.Value) -> ir.Value:
        """Integers that are not negative as 64-bit ones: each, then a zero."""
        b, t = self.b, self.t
        length = length_of(value)
        lane = t.ramp(2 * length, b.i32_type, "word_lanes")
        half = b.op(arith.shrsi, lane, t.splat(1, lane), name="half")
        twice = b.op(arith.shli, half, t.splat(1, half), name="even")
        words = t.gather(value, half, "words")
        return b.select(b.cmpi("eq", lane, twice, "is_low"), words, t.splat(0, words, "high"), "words")

    # -- padding ------------------------------------------------------------------------------------------------------

    def zero_tile(self, rows: Rows) -> tuple[ir.Value, ir.Value, int]:
        """Zeros for rows that no pair has; where they go; elements of such a row."""
        b, element = self.b, rows.element
        lanes = up(min(rows.length * self.shape.capacity, _ZEROS * 8 // element_bits(element)), 64)
        return b.splat(b.constant(element, 0), lanes, "zeros"), rows.memory, rows.length

    def zero_rows(self, step: ir.Value, count: ir.Value) -> None:
        """Zeros in the rows that an expert has more than pairs; the experts of a step are shared among the cores."""
        b, s = self.b, self.shape
        first = self.order.lane_of(step)
        share = b.build(TILE.classes["BlockRows"], self.of_step(first), results=[b.index_type] * 4)
        capacity = b.index(s.capacity, "capacity")

        def of_expert(entry):
            pairs = self.t.index_at(count, entry, "pairs")
            used = b.op(arith.minsi, pairs, capacity, name="used_rows")
            expert = self.t.plus(first, entry, "expert")
            row = b.op(arith.addi, b.op(arith.muli, expert, capacity), used, name="first_unused")
            unused = b.op(arith.subi, capacity, used, name="unused_rows")
            for zeros, memory, length in self.zeros:
                start = self.t.times(row, length, "unused_start")
                size = self.t.times(unused, length, "unused_size")
                lanes = b.index(length_of(zeros))

                def piece(at, zeros=zeros, memory=memory, start=start, size=size, lanes=lanes):
                    here = b.op(arith.minsi, b.op(arith.subi, size, at, name="left"), lanes, name="here")
                    self.t.store(zeros, memory, b.op(arith.addi, start, at), here)
                    return []

                b.for_(self.zero, size, lanes, [], piece, induction="at")
            return []

        b.for_(
            share.operation.results[0], share.operation.results[1], self.one, [], of_expert,
            induction="entry", about=Stage("ClearRows", "Zeros in the rows that no pair has."),
        )  # fmt: skip
