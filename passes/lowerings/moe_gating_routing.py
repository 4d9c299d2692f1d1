"""`ascend.moe_gating_routing` on tiles: each core chooses the experts of its tokens, and orders and copies them.

The experts that a core has chosen stay in its unified buffer: it counts and orders its pairs there, tells the others
how many it has of each expert, and after the one meeting writes its tokens' rows. Only a core with more tokens than one
block of pairs takes in keeps experts and ranks of its blocks in the workspace meanwhile. A few tokens are gated by
every core for all, which then order all pairs without a meeting.

Gating is `moe_gating_top_k`, routing `moe_init_routing`, with their arithmetic and their order.
"""

from __future__ import annotations

from dataclasses import replace

from mlir import ir
from mlir.dialects import arith

from jascend.backends.ascend.targets import Target

from ..builder import Stage, comment, up
from .lowering import lowering
from .moe_gating_top_k import Gating
from .moe_init_routing import CANDIDATES as ROUTING_CANDIDATES
from .moe_init_routing import FILL, Routing, build, refusal_of
from .ops import Ops
from .routing_order import Block
from .routing_shape import Shape, ways_of
from .row_chunks import length_of, with_slice
from .site import Site

__all__ = ["CANDIDATES", "FILL", "FROM_MEMORY", "SUMMARY", "lower", "refusal"]

SUMMARY = (
    "Chooses the experts of every token, and copies it once for each of them, ordered by expert. Cores choose for "
    "their own tokens, order these pairs of token and expert, tell each other how many they have of each expert, and "
    "copy the rows of their own tokens."
)
FROM_MEMORY = ("x", "scale", "offset", "input_ids", "tid2eid", "additional_token_mask")
CANDIDATES = ROUTING_CANDIDATES

_ALONE = 16  # tokens that every core gates for itself, rather than meet the others
_BLOCK = 8  # lanes of 32 bytes


def refusal(op: ir.OpView, target: Target) -> str | None:
    """Why no kernel is generated for an op; None if one is."""
    return refusal_of(op, (op.x, op.scale, op.offset), op.k, target)


@lowering(
    "ascend.moe_gating_routing", summary=SUMMARY, refusal=refusal, fill=FILL, candidates=CANDIDATES,
    from_memory=FROM_MEMORY,
)  # fmt: skip
def lower(op: ir.OpView, site: Site) -> None:
    """Builds the kernel body."""
    site.deal_out(site.producers.buffers[op.x.arg_number])
    build(_GatingRouting, op, site, ways_of(op, op.k, site, most_alone=_ALONE))


class _GatingRouting(Routing):
    """A routing whose experts are chosen in place."""

    def __init__(self, op, site: Site, shape: Shape, share):
        super().__init__(op, site, shape, share)
        s = shape
        self.most = s.share if s.alone else s.block  # tokens that are gated at once
        self.gating = Gating(op, op.logits, site, share=min(s.share, self.most), lanes=site.candidate.tile // 4)
        if s.share <= self.gating.shape.rows < self.most:  # a block is one batch
            self.most = self.gating.shape.rows
            self.shape = replace(s, block=self.most)
        self.of_gating = op.location.locations[-1] if op.location.is_a_fused() else op.location  # see fuse-moe
        self.pitch = up(s.slots, _BLOCK)  # lanes of a token's experts, until they are all there

    @property
    def blocks_have_rows(self) -> bool:
        """A core has blocks where it has tokens, and these have experts: all do, if none is left out;
        a table may name any."""
        s = self.shape
        some_left_out = s.experts < s.all_experts or s.capacity or s.limit or self.op.tid2eid is not None
        return not s.alone and not some_left_out

    # -- the kernel ---------------------------------------------------------------------------------------------------

    def build(self) -> None:
        if self.shape.alone:
            self.all_tokens()
        else:
            self.own_tokens()

    def all_tokens(self) -> None:
        """Every core gates all tokens; one writes what comes of that."""
        self.t = Ops(self.b)
        self.make_constants()
        ids = self.chosen(self.b.index(0), self.count, self.writes_for_all("writes_chosen"))
        self.enter()
        self.plan_rows()
        self.alone(ids)

    def own_tokens(self) -> None:
        """Every core gates its own tokens. What is known of them waits in the workspace if it has more than one
        block."""
        self.enter()
        self.make_constants()
        b, t, s, order = self.b, self.t, self.shape, self.order
        order.enter()
        first, end = self.tokens
        tokens = b.index(s.block, "block_tokens")
        several = b.cmpi("sgt", b.op(arith.subi, end, first, name="own_tokens"), tokens, "several_blocks")
        experts, ranks = order.of_pairs("experts", b.f32_type), order.of_pairs("ranks", b.i32_type)

        def rank(token, total, *_):
            last = b.op(arith.minsi, b.op(arith.addi, token, tokens), end, name="last_token")
            block, rank, total = self.ordered(token, last, total)

            def keep():
                count = self.pairs_between(token, last)
                t.store(block.expert, experts, block.first, count)
                t.store(rank, ranks, block.first, count)
                return []

            b.if_(several, [], keep, about=Stage("PutAside", "Before the next block, this one is put aside."))
            return [total, block.expert, rank]

        nothing = [
            ("expert", t.filled(float(s.experts), s.lanes, "expert")),
            ("ranks", b.splat(b.i32(0), s.lanes, "ranks")),
        ]
        total, expert, rank = b.for_(
            first, end, tokens, [("counts", order.no_counts()), *nothing], rank,
            induction="token", about="The experts of this core's tokens, their ranks, and counts by expert.",
        )  # fmt: skip
        self.meet(total)

        def put(token):
            last = b.op(arith.minsi, b.op(arith.addi, token, tokens), end, name="last_token")
            pair, count = self.t.times(token, s.slots, "first_pair"), self.pairs_between(token, last)

            def put_aside():
                return [
                    t.load(experts, pair, count, s.lanes, "expert", pad=float(s.experts)),
                    t.load(ranks, pair, count, s.lanes, "ranks", pad=0.0),
                ]

            found = b.if_(
                several, ["expert", "ranks"], put_aside, lambda: [expert, rank],
                types=[expert.type, rank.type], about=Stage("TakeBack", "What was put aside; the only block is there."),
            )  # fmt: skip
            self.put(Block(pair, found[0]), found[1], count)
            return []

        b.for_(first, end, tokens, [], put, induction="token", about="The rows of this core's tokens.")

    def meet(self, total: ir.Value) -> None:
        self.order.meet(total)
        self.plan_rows()
        self.find_bases()

    def pairs_between(self, first: ir.Value, end: ir.Value) -> ir.Value:
        tokens = self.t.minus(end, first, "tokens_here")
        return self.t.times(tokens, self.shape.slots, "pairs_here")

    def ordered(self, first: ir.Value, end: ir.Value, total: ir.Value) -> tuple[Block, ir.Value, ir.Value]:
        """The block of these tokens, its ranks, and the counts with it."""
        ids = self.chosen(first, end)
        block = self.order.block(self.t.times(first, self.shape.slots, "first_pair"), ids)
        comment(block.expert.owner, "The pairs of these tokens in the order of their experts.")
        ranks, total = self.order.ranks(block, total)
        return block, ranks, total

    # -- gating -------------------------------------------------------------------------------------------------------

    def make_constants(self) -> None:
        b, t, s = self.b, self.t, self.shape
        self.gating.constants()
        lanes = t.ramp(s.lanes, b.f32_type, "pair_lanes")
        self.pair_lanes = lanes
        self.places = None
        if self.pitch == s.slots:
            return
        # Where each pair's expert is, while every token has whole blocks. Half a lane keeps quotients from whole
        # numbers.
        half = b.op(arith.addf, lanes, t.splat(0.5, lanes), name="lane_and_half")
        token = t.to_i32(b.op(arith.mulf, half, t.splat(1 / s.slots, half), name="token"), "token")
        skipped = b.op(arith.muli, token, t.splat(self.pitch - s.slots, token), name="skipped")
        place = b.op(arith.addi, t.to_i32(lanes, "lane"), skipped, name="places_of_pairs")
        self.places = b.op(arith.minsi, place, t.splat(self.wide_lanes - 1, place), name="places_of_pairs")

    @property
    def wide_lanes(self) -> int:
        """Of the experts of all tokens that are gated at once, in whole batches and blocks of lanes."""
        return max(self.shape.lanes, up(up(self.most, self.gating.shape.rows) * self.pitch, 64))

    def chosen(self, first: ir.Value, end: ir.Value, writes: ir.Value | None = None) -> ir.Value:
        """The experts of tokens `first` to `end` by pair; -1 behind them. What else gating gives is written, by cores
        for which `writes` holds if it is given."""
        b, t, s, gating = self.b, self.t, self.shape, self.gating
        g = gating.shape

        def batch(row, place, wide):
            rows = self.t.smaller(self.t.minus(end, row, "rows_left"), gating.batch_rows, "rows")
            with b.at(self.of_gating):
                scores, weights, ids = gating.gated(row, rows)
                if writes is None:
                    gating.store(scores, weights, ids, row, rows)
                else:
                    b.if_(writes, [], lambda: gating.store(scores, weights, ids, row, rows) or [])
            ids = t.take(ids, g.top, 0, self.pitch, "ids_of_tokens")
            return [with_slice(b, wide, ids, place, "ids")]

        def one_of_many(row, wide):
            place = b.op(
                arith.muli, b.op(arith.subi, row, first, name="row_of_block"), b.index(self.pitch), name="place"
            )
            return batch(row, place, wide)

        wide = b.splat(b.i32(-1), self.wide_lanes, "ids")
        if self.most <= g.rows:
            (wide,) = batch(first, b.index(0), wide)
        else:
            (wide,) = b.for_(
                first, end, gating.batch_rows, [("ids", wide)], one_of_many, induction="row",
                about="Tokens, a batch at a time.",
            )  # fmt: skip
        ids = t.head(wide, s.lanes) if self.places is None else t.gather(wide, self.places, "ids_of_pairs")
        if self.places is None and g.rows == 1:  # there are no ids but those of tokens
            return ids
        count = t.f32_of(self.pairs_between(first, end))
        is_pair = b.cmpf("OLT", self.pair_lanes, b.splat(count, length_of(ids)), "is_pair")
        return b.select(is_pair, ids, t.splat(-1, ids, "none"), "ids_of_pairs")
