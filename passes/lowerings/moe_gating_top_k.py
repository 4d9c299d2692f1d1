"""`ascend.moe_gating_top_k` on tiles: many rows in every instruction, no choice on the scalar unit.

A batch of rows lies flat in a tile, every row (with groups, every group) filled up to a multiple of 32 lanes. What is
elementwise takes all rows in one instruction. Then

- every 32 lanes become a sorted list of (score, lane); of each list the first k pairs are kept, and merges of four
  lists at a time, all rows in one instruction, leave one list a group;
- groups: the first pairs of the lists give the groups' scores. Few groups are compared each with each, many are sorted;
  the lists of groups that are not among the best get scores of -inf;
- merges go on until there is one list a row. Its lanes say where the scores without bias are gathered from.

Order is by score, then by lane, because sorts and merges are stable and lanes rise with the experts. A score that is
NaN ranks as -inf. With groups, what ranks as -inf holds the least finite number instead, so that an expert of a group
that stays comes before all of a group that goes.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from mlir import ir
from mlir.dialects import arith, tensor

from jascend.backends.ascend.targets import Target
from jascend.dialect import TILE, rules

from ..builder import comment, tile_type, up
from ..diagnostics import emit_error
from .batch_producers import BatchProducers
from .gating_scores import LOWEST, NEG_INF, SOFTMAX, Scores
from .lowering import lowering
from .ops import Ops
from .producers import Unsupported
from .row_chunks import length_of
from .site import Candidate, Site

SUMMARY = (
    "Scores of all experts, the k best of each row and their weights. Many rows lie side by side in the unified "
    "buffer, and every instruction takes all of them."
)
FROM_MEMORY = ("input_ids", "tid2eid", "additional_token_mask")
CANDIDATES = (
    *(Candidate(lanes) for lanes in (8192, 7168, 6144, 5120, 4096, 3072, 2048, 1024)),
    Candidate(1024, load_ahead=False),
)  # lanes of a batch

_RUN = 32  # lanes that one repeat of the sorting instruction orders
_DYNAMIC = ir.ShapedType.get_dynamic_size()
_LANES = 64  # float32 lanes of one repeat
_REPEATS = 255
_BLOCK = 8  # float32 lanes of 32 bytes
_RANKED = 8  # groups at most that are compared each with each
_TWO = 0x40000000  # the bits of 2.0
_TABLE = 4096  # ids of the longest table that stays in the unified buffer


def refusal(op: ir.OpView, target: Target) -> str | None:
    """Why no kernel is generated for an op; None if one is."""
    return None


@lowering("ascend.moe_gating_top_k", summary=SUMMARY, refusal=refusal, candidates=CANDIDATES, from_memory=FROM_MEMORY)
def lower(op: ir.OpView, site: Site) -> None:
    """Builds the kernel body: all rows of this core."""
    Gating(op, op.x, site).build()


def about(value: ir.Value, text: str) -> None:
    """Starts a stage of the emitted text with the op of a value."""
    comment(value.owner, text)


def _power_of_two(number: int) -> int:
    return 1 << (number - 1).bit_length()


@dataclass(frozen=True)
class _Shape:
    """How rows lie in a tile.

    Attributes:
      experts: of a row.
      parts: groups that compete; 1 without groups.
      size, pitch: experts of a part, and the lanes that it takes.
      rows: of a batch.
      k: experts to choose.
      top: lanes of what is chosen of a row, a power of two.
      kept: pairs of a list that can matter.
    """

    experts: int
    parts: int
    size: int
    pitch: int
    rows: int
    k: int
    top: int
    kept: int

    @property
    def row(self) -> int:
        """Lanes of a row."""
        return self.parts * self.pitch

    @property
    def lanes(self) -> int:
        """Lanes of a batch."""
        return self.rows * self.row

    @property
    def run(self) -> int:
        """Pairs of a part's list, once it has only one."""
        lists, run = self.pitch // _RUN, _RUN
        while lists > 1:
            lists, run = -(-lists // 4), 4 * min(run, self.kept)
        return min(run, self.kept)

    @property
    def groups(self) -> int:
        """Lanes of a row's groups, to be sorted."""
        return up(self.parts, _RUN if self.rows > 1 else _LANES)

    @property
    def has_padding(self) -> bool:
        return self.size != self.pitch


class Gating:
    """Builds it for an op with the attributes of a gating and, but for the logits `x`, its operands. `share` is how
    many rows fall to a core, the same as to others by default; `lanes` how many of a batch there are at most."""

    def __init__(self, op, x: ir.Value, site: Site, *, share: int | None = None, lanes: int | None = None):
        self.op, self.x, self.site, self.b = op, x, site, site.b
        self.share, self.most_lanes = share, lanes or site.tile
        self.dtype = ir.RankedTensorType(x.type).element_type
        self.hashed = op.tid2eid is not None
        self.masked = op.additional_token_mask is not None and not self.hashed
        self.shape = s = self.choose(ir.RankedTensorType(x.type))
        self.producers = BatchProducers(site.producers, s.parts, s.size, s.pitch)
        site.remarks.append(
            f"{s.rows} rows at a time, each of {s.parts} x {s.pitch} lanes" if s.parts > 1 else
            f"{s.rows} rows at a time, each of {s.row} lanes"
        )  # fmt: skip

    def choose(self, x: ir.RankedTensorType) -> _Shape:
        """The layout: as many rows as the unified buffer takes, of what falls to a core in equal batches."""
        op, site = self.op, self.site
        experts, k = x.get_dim_size(1), op.k
        grouped = not self.hashed and rules.selects_groups(experts, op.k_group, op.group_count)
        parts = op.group_count if grouped else 1
        pitch = up(experts // parts, _RUN)
        lanes = parts * pitch
        # Tiles that are compared fill whole repeats: rows are even, or one of an even number of lists.
        least = 1 if lanes % _LANES == 0 else 2
        most = max(least, min(self.most_lanes, _REPEATS * _RUN) // lanes // 2 * 2)
        rows = most
        if not x.is_dynamic_dim(0):
            share = self.share or -(-x.get_dim_size(0) // site.target.vector_cores)
            batches = -(-share // most)
            rows = least if share == least else min(most, up(-(-share // batches), 2))
        narrow = str(self.dtype) != "f32"
        aligned = next(top for top in (8, 16, 32, 64) if rows * top % _LANES == 0 and top >= (16 if narrow else 8))
        top = max(_power_of_two(k), aligned)
        # Lists are cut at 32 bytes, and those of groups compared in whole repeats.
        kept = max(up(k, 4), top // 4)
        kept = up(kept, _LANES // gcd(_LANES, 2 * rows * parts)) if grouped else kept
        return _Shape(experts, parts, experts // parts, pitch, rows, k, top, kept)

    # -- the kernel ---------------------------------------------------------------------------------------------

    def build(self) -> None:
        b = self.b
        self.site.deal_out(self.site.outputs["y"])
        share = b.build(TILE.classes["BlockRows"], self.site.rows, results=[b.index_type] * 4)
        self.constants()
        b.for_(
            share.operation.results[0], share.operation.results[1], self.batch_rows, [],
            lambda row: self.batch(row, share.operation.results[1]),
            induction="row", about="The rows of this core, a batch at a time.",
        )  # fmt: skip

    def constants(self) -> None:
        """Tiles that do not change from batch to batch."""
        b, s, op = self.b, self.shape, self.op
        self.t, self.batch_rows = Ops(b), b.index(s.rows, "batch_rows")
        self.neg_inf, self.lowest = b.f32(NEG_INF), b.f32(NEG_INF if s.parts == 1 else LOWEST)
        numbers = self.t.ramp(s.rows, b.i32_type, "row_numbers")
        starts = b.op(arith.muli, numbers, b.splat(b.i32(s.row), s.rows), name="starts")
        self.row_starts = self.t.broadcast(starts, s.top, "row_starts")
        self.is_chosen = None
        if s.k < s.top and op.norm_type != SOFTMAX:
            places = self.t.repeat(self.t.ramp(s.top, b.f32_type, "place"), s.rows, "places")
            self.is_chosen = b.cmpf("OLT", places, b.splat(b.f32(s.k), s.rows * s.top), "is_chosen")
        if self.hashed:
            self.load_table()
            return
        self.lanes = self.t.ramp(s.lanes, b.i32_type, "lanes")
        if s.parts > 1:
            # The bits of numbers, which arithmetic leaves alone.
            self.lanes = b.op(arith.addi, self.lanes, b.splat(b.i32(_TWO), s.lanes), name="lanes")
            self.group_constants()
        self.producers.early = self.batch_rows.owner  # beside the work before
        self.bias = self.other_bias = None
        if op.bias is not None or s.has_padding or self.masked:
            self.bias = self.per_expert(op.bias, "bias")
        if self.masked:
            self.other_bias = self.per_expert(op.additional_bias, "additional_bias")
        self.producers.early = None

    def load_table(self) -> None:
        """The table of hash routing, where it is small enough to stay."""
        b, s, table = self.b, self.shape, self.op.tid2eid
        self.table_rows = ir.RankedTensorType(table.type).get_dim_size(0)
        self.table = None
        if self.table_rows * s.k > _TABLE:
            return
        count = self.table_rows * s.k
        self.table = self.load_integers(table, self.t.zero, b.index(count), up(count, _LANES), "table")
        self.places = self.t.repeat(self.t.ramp(s.top, b.i32_type, "place"), s.rows, "places")

    def group_constants(self) -> None:
        b, s = self.b, self.shape
        if s.parts > _RANKED:
            self.group_lanes = self.t.repeat(self.t.ramp(s.groups, b.i32_type, "group"), s.rows, "group_lanes")
            self.group_numbers = b.op(
                arith.sitofp, tile_type(s.rows * s.groups, b.f32_type), self.group_lanes, name="group_numbers"
            )
            return
        # Lane 8 g + j compares group g with group j: j is less than g where 9 g is more than the lane.
        n = _RANKED * _RANKED
        lane = self.t.ramp(n, b.f32_type, "lane")
        group = self.t.to_i32(b.op(arith.mulf, lane, b.splat(b.f32(1 / _RANKED), n), name="group"), "group")
        group = b.op(arith.sitofp, tile_type(n, b.f32_type), group, name="group")
        nine = b.op(arith.mulf, group, b.splat(b.f32(_RANKED + 1), n), name="nine_groups")
        ahead = self.t.repeat(b.op(arith.subf, nine, lane, name="ahead"), s.rows, "ahead_of_rows")
        self.is_earlier = b.cmpf("OGT", ahead, b.splat(b.f32(0.0), s.rows * n), "is_earlier")

    def per_expert(self, value: ir.Value | None, name: str) -> ir.Value:
        """A bias for every row of a batch: none is 0, NaN and -inf are what ranks last, padding is -inf."""
        b, s = self.b, self.shape
        times = s.rows if s.row % _LANES else 1  # whole repeats are compared
        length = times * s.row
        if value is None:
            row = b.splat(b.f32(0.0), length)
        else:
            row = self.producers.batch(value, ("col",), self.t.zero, b.index(1), 1, NEG_INF)
            row = self.t.repeat(row, times, f"{name}_rows")
            lowest = b.splat(self.lowest, length)
            row = b.select(b.cmpf("OGE", row, lowest, f"{name}_ranks"), row, lowest, f"clean_{name}")
        row = self.without_padding(row, f"{name}_of_experts")
        return self.t.repeat(row, s.lanes // length, f"{name}_rows")

    def without_padding(self, x: ir.Value, name: str) -> ir.Value:
        """-inf in the lanes that are no experts."""
        b, s, n = self.b, self.shape, length_of(x)
        if not s.has_padding:
            return x
        place = self.t.repeat(self.t.ramp(s.pitch, b.f32_type, "place"), n // s.pitch, "places")
        is_expert = b.cmpf("OLT", place, b.splat(b.f32(s.size), n), "is_expert")
        return b.select(is_expert, x, b.splat(self.neg_inf, n), name)

    def batch(self, row: ir.Value, end: ir.Value) -> list[ir.Value]:
        s = self.shape
        rows = self.batch_rows
        if s.rows > 1:
            rows = self.t.smaller(self.t.minus(end, row, "rows_left"), rows, "rows")
        self.store(*self.gated(row, rows), row, rows)
        return []

    def gated(self, row: ir.Value, rows: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value]:
        """The scores of `rows` rows from `row` on; the weights and the experts, in `top` lanes a row."""
        b, s, op = self.b, self.shape, self.op
        x = self.logits(row, rows)
        scores, is_number = Scores(b, s.row).of(op.norm_type, x)
        if self.hashed:
            ids, lanes, counts = self.looked_up(row, rows)
            weights = self.weights(scores, lanes, counts)
        else:
            chosen = self.chosen(self.keys(scores, is_number, row, rows))
            ids = self.experts(chosen)
            weights = self.weights(scores, chosen, self.is_chosen)
        if str(self.dtype) != "f32":
            weights = b.op(arith.truncf, tile_type(s.rows * s.top, self.dtype), weights, name="y")
        return scores, weights, ids

    def store(self, scores: ir.Value, weights: ir.Value, ids: ir.Value, row: ir.Value, rows: ir.Value) -> None:
        """Writes what something needs of these."""
        s = self.shape
        if self.op.out_flag:
            self.write_scores(scores, row, rows)
        for name, value in (("y", weights), ("expert_idx", ids)):
            if name in self.site.outputs:
                self.store_rows(value, self.site.outputs[name], row, rows, s.k, s.k, s.top)

    # -- scores -------------------------------------------------------------------------------------------------

    def logits(self, row: ir.Value, rows: ir.Value) -> ir.Value:
        """-inf in padding."""
        x, producers = self.x, self.producers
        if producers.is_load(x):
            return producers.batch(x, ("row", "col"), row, rows, self.shape.rows, NEG_INF)
        return self.without_padding(producers.batch(x, ("row", "col"), row, rows, self.shape.rows, 0.0), "logits")

    def write_scores(self, scores: ir.Value, row: ir.Value, rows: ir.Value) -> None:
        b, s = self.b, self.shape
        parts = self.t.times(rows, s.parts, "parts")
        if self.op.norm_type != SOFTMAX:
            is_number = b.cmpf("OEQ", scores, scores, "is_number")
            scores = b.select(is_number, scores, b.splat(b.f32(0.0), s.lanes), "out")
        self.store_rows(scores, self.site.outputs["out"], row, parts, s.experts, s.size, s.pitch)

    # -- the choice ---------------------------------------------------------------------------------------------

    def keys(self, scores: ir.Value, is_number: ir.Value | None, row: ir.Value, rows: ir.Value) -> ir.Value:
        """What experts are ordered by: biased scores, -inf in padding, the least that ranks for NaN."""
        b, s = self.b, self.shape
        biased = scores
        if self.bias is not None:
            bias = self.bias
            if self.masked:
                bias = b.select(self.token_mask(row, rows), self.other_bias, bias, "bias_of_token")
            biased = b.op(arith.addf, scores, bias, name="biased")
            about(biased, "What experts are ordered by: biased scores, without NaN.")
        if is_number is None:
            is_number = b.cmpf("OEQ", biased, biased, "is_number")
        return b.select(is_number, biased, b.splat(self.lowest, s.lanes), "keys")

    def token_mask(self, row: ir.Value, rows: ir.Value) -> ir.Value:
        """The lanes of tokens that take the other bias."""
        b, s = self.b, self.shape
        n = up(s.rows, 32)
        flags = self.load(self.op.additional_token_mask, row, rows, n, ir.IntegerType.get_signless(8), "flags")
        flags = b.op(arith.sitofp, tile_type(n, ir.F16Type.get()), flags, name="flags")
        flags = self.t.head(b.op(arith.extf, tile_type(n, b.f32_type), flags, name="flags"), s.rows)
        flags = self.t.broadcast(flags, s.row, "flags_of_rows")
        return b.cmpf("OGT", flags, b.splat(b.f32(0.0), s.lanes), "takes_other")

    def chosen(self, keys: ir.Value) -> ir.Value:
        """The lanes of the experts that are chosen, best first: `top` for every row, the first k of which count."""
        s = self.shape
        pairs = self.t.sorted(keys, self.lanes, "pairs", _RUN)
        about(pairs, "Lists of 32, sorted; of each what can be among the best.")
        lists = s.pitch // _RUN
        pairs, run = self.merged(pairs, lists, _RUN)
        if s.parts > 1:
            pairs, run = self.shortened(pairs, run)
            pairs = self.without_groups(pairs, run)
            pairs, run = self.merged(pairs, s.parts, run)
        pairs = self.t.take(pairs, 2 * run, 0, 2 * s.top, "best")
        n = s.rows * s.top
        _, indices = self.t.unpacked(pairs, "chosen")
        about(indices, "The k best of every row.")
        if s.parts > 1:
            indices = self.b.op(arith.addi, indices, self.b.splat(self.b.i32(-_TWO), n), name="chosen")
        if s.top == s.k:
            return indices
        # Behind the k that count there may be filling.
        return self.b.op(arith.maxsi, indices, self.b.splat(self.b.i32(0), n), name="chosen")

    def merged(self, pairs: ir.Value, lists: int, run: int) -> tuple[ir.Value, int]:
        """Every so many lists become one: four at a time, of each what can matter; and the length of the result."""
        while lists > 1:
            pairs, run = self.shortened(pairs, run)
            full = up(lists, 4)
            pairs = self.t.spread(pairs, lists * 2 * run, full * 2 * run, NEG_INF, "lists")
            pairs = self.t.make("Merge", pairs, length=length_of(pairs), name="merged", run=run, ways=4)
            lists, run = full // 4, 4 * run
        return pairs, run

    def shortened(self, pairs: ir.Value, run: int) -> tuple[ir.Value, int]:
        keep = min(run, self.shape.kept)
        return self.t.take(pairs, 2 * run, 0, 2 * keep, "heads"), keep

    def without_groups(self, pairs: ir.Value, run: int) -> ir.Value:
        """The lists, one a group, with scores of -inf in groups that are not among the best.

        What lanes are capped at, +inf or -inf, leaves the indices of groups that stay as they are:
        they are bits of numbers.
        """
        b, s = self.b, self.shape
        scores = self.group_scores(pairs, run)
        caps = self.caps_by_rank(scores) if s.parts <= _RANKED else self.caps_by_order(scores)
        whole = length_of(caps) // s.rows
        caps = self.t.broadcast(caps, 2 * run, "caps")
        caps = self.t.take(caps, whole * 2 * run, 0, s.parts * 2 * run, "caps")
        return b.op(arith.minimumf, pairs, caps, name="left")

    def group_scores(self, pairs: ir.Value, run: int) -> ir.Value:
        """The score of every group, a multiple of 8 a row; what ranks last where there is no group."""
        b, s = self.b, self.shape
        heads = self.t.take(pairs, 2 * run, 0, 8, "group_heads")
        heads = self.t.spread(heads, 8 * s.parts, 8 * up(s.parts, 8), NEG_INF, "group_heads")
        scores = self.t.take(heads, 8, 0, 1, "group_scores")
        about(scores, "The groups that stay: by their largest score, or the sum of the two largest.")
        if self.op.group_select_mode == 1:
            scores = b.op(arith.addf, scores, self.t.take(heads, 8, 2, 1, "second_scores"), name="group_scores")
        # One expert that ranks last is as good as two.
        return b.op(arith.maximumf, scores, b.splat(self.lowest, length_of(scores)), name="group_scores")

    def caps_by_rank(self, scores: ir.Value) -> ir.Value:
        """+inf for groups with fewer better ones than stay, -inf for others.
        Of equal groups the earlier is the better."""
        b, s = self.b, self.shape
        n = s.rows * _RANKED * _RANKED
        mine = self.t.broadcast(scores, _RANKED, "mine")
        others = self.t.make("Repeat", scores, length=n, name="others", group=_RANKED)
        better = b.cmpf("OGT", others, mine, "better")
        equal = b.op(arith.andi, b.cmpf("OEQ", others, mine, "equal"), self.is_earlier, name="equal")
        better = b.op(arith.ori, better, equal, name="better")
        better = b.select(better, b.splat(b.f32(1.0), n, "ones"), b.splat(b.f32(0.0), n), "better_ones")
        rank = self.t.reduce("add", better, _RANKED, "rank")
        above = b.op(arith.addf, rank, b.splat(b.f32(0.5 - self.op.k_group), length_of(rank)), name="above")
        return b.op(arith.mulf, above, b.splat(self.neg_inf, length_of(rank)), name="caps")

    def caps_by_order(self, scores: ir.Value) -> ir.Value:
        """The same for many groups: sorted, the last one that stays is a threshold."""
        b, s = self.b, self.shape
        n, last = s.rows * s.groups, 2 * (self.op.k_group - 1)
        scores = self.t.spread(scores, up(s.parts, 8), s.groups, NEG_INF, "group_scores")
        order = self.t.sorted(scores, self.group_lanes, "group_order", s.groups)
        # The half repeat of lanes where the last of them stands, then its score and its number.
        order = self.t.take(order, 2 * s.groups, last // _RUN * _RUN, _RUN, "last_groups")
        least = self.t.broadcast(self.t.take(order, _RUN, last % _RUN, 1, "last_score"), s.groups, "last_scores")
        number = self.t.take(order, _RUN, last % _RUN + 1, 1, "last_bits")
        number = b.op(arith.bitcast, tile_type(s.rows, b.i32_type), number, name="last_number")
        number = b.op(arith.sitofp, tile_type(s.rows, b.f32_type), number, name="last_number")
        number = self.t.broadcast(number, s.groups, "last_numbers")
        stay, go = b.splat(b.f32(-NEG_INF), n, "stay"), b.splat(self.neg_inf, n)
        caps = b.select(b.cmpf("OLE", self.group_numbers, number, "not_after"), stay, go, "caps")
        caps = b.select(b.cmpf("OEQ", scores, least, "equal"), caps, go, "caps")
        caps = b.select(b.cmpf("OLE", scores, least, "not_better"), caps, stay, "caps")
        return self.t.take(caps, s.groups, 0, up(s.parts, 8), "caps")

    def experts(self, chosen: ir.Value) -> ir.Value:
        """The experts that lanes stand for."""
        b, s = self.b, self.shape
        n = s.rows * s.top
        expert = b.op(arith.subi, chosen, self.row_starts, name="experts")
        if s.parts == 1 or not s.has_padding:
            return expert
        # Less the padding of the groups before. Half a lane keeps the quotient away from whole numbers.
        place = b.op(arith.sitofp, tile_type(n, b.f32_type), expert, name="place")
        place = b.op(arith.addf, place, b.splat(b.f32(0.5), n), name="place")
        group = self.t.to_i32(b.op(arith.mulf, place, b.splat(b.f32(1 / s.pitch), n), name="group"), "whole_groups")
        skipped = b.op(arith.muli, group, b.splat(b.i32(s.pitch - s.size), n), name="skipped")
        return b.op(arith.subi, expert, skipped, name="experts")

    # -- hash routing -------------------------------------------------------------------------------------------

    def looked_up(self, row: ir.Value, rows: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value]:
        """Of every token: the experts that the table gives, -1 where it has none; their lanes; and the mask of those
        that are experts."""
        b, s, op = self.b, self.shape, self.op
        n = s.rows * s.top
        tokens = self.load_integers(op.input_ids, row, rows, s.rows, "token_ids")
        inside = self.clamped(tokens, self.table_rows, "table_rows")
        if self.table is None:
            ids = self.rows_of_table(inside, rows)
        else:
            first = b.op(arith.muli, inside, b.splat(b.i32(op.k), s.rows), name="first")
            at = b.op(arith.addi, self.t.broadcast(first, s.top, "first_lanes"), self.places, name="table_lanes")
            at = b.op(arith.minsi, at, b.splat(b.i32(self.table_rows * op.k - 1), n), name="table_lanes")
            ids = self.t.gather(self.table, at, "ids")
        known = b.cmpi(
            "eq", self.t.broadcast(tokens, s.top, "tokens"), self.t.broadcast(inside, s.top, "table_row"), "known"
        )
        ids = b.select(known, ids, b.splat(b.i32(-1), n), "ids")
        experts = self.clamped(ids, s.experts, "experts")
        counts = b.cmpi("eq", ids, experts, "counts")
        if self.is_chosen is not None:
            counts = b.op(arith.andi, counts, self.is_chosen, name="counts")
        lanes = b.op(arith.addi, experts, self.row_starts, name="chosen")
        return ids, lanes, counts

    def clamped(self, x: ir.Value, size: int, name: str) -> ir.Value:
        """Integers from 0 to `size` - 1, the nearest."""
        b, n = self.b, length_of(x)
        x = b.op(arith.maxsi, x, b.splat(b.i32(0), n), name=name)
        return b.op(arith.minsi, x, b.splat(b.i32(size - 1), n), name=name)

    def rows_of_table(self, table_rows: ir.Value, rows: ir.Value) -> ir.Value:
        """Rows of a table that is too large for the unified buffer, a copy each."""
        b, s, op = self.b, self.shape, self.op
        width = up(s.k, 8)
        k = b.index(s.k)

        def copy(i, ids):
            number = self.t.extract(table_rows, i, "table_row")
            number = b.op(arith.index_cast, b.index_type, number)
            row = self.load_integers(op.tid2eid, number, k, width, "ids_of_token", row_elements=s.k)
            place = self.t.times(i, s.top, "place")
            return [tensor.insert_slice(row, ids, [place], [], [], [_DYNAMIC], [width], [1], loc=b.loc("ids"))]

        ids = b.splat(b.i32(0), s.rows * s.top, "ids")
        (ids,) = b.for_(
            self.t.zero, rows, b.index(1), [("ids", ids)], copy, induction="token", about="The experts of every token."
        )
        return ids

    def load_integers(self, value, row, count, most: int, name: str, row_elements: int = 1) -> ir.Value:
        """Integers as int32; those of 64 bits that do not fit become the nearest that do."""
        b, wanted, most = self.b, most, up(most, 8)
        if str(ir.ShapedType(value.type).element_type) == "i32":
            return self.t.head(self.load(value, row, count, most, b.i32_type, name, row_elements), wanted)
        words = self.load(value, row, count, 2 * most, b.i32_type, f"{name}_words", row_elements)
        low, high = self.t.take(words, 2, 0, 1, f"{name}_low"), self.t.take(words, 2, 1, 1, f"{name}_high")
        places = b.splat(b.i32(31), most)
        # The upper word is the sign of the lower one, or the number is the largest or the least.
        sign = b.op(arith.shrsi, low, places, name="sign")
        rest = b.op(arith.subi, high, sign, name="rest")
        rest = b.op(arith.ori, rest, b.op(arith.muli, rest, b.splat(b.i32(-1), most), name="opposite"), name="rest")
        too_large = b.op(arith.shrsi, rest, places, name="too_large")
        fits = b.op(arith.xori, too_large, b.splat(b.i32(-1), most), name="fits")
        limit = b.op(arith.shrsi, high, places, name="limit")
        limit = b.op(arith.xori, limit, b.splat(b.i32(0x7FFFFFFF), most, "largest"), name="limit")
        low = b.op(arith.andi, low, fits, name="low")
        return self.t.head(b.op(arith.ori, low, b.op(arith.andi, limit, too_large, name="limit"), name=name), wanted)

    # -- weights ------------------------------------------------------------------------------------------------

    def weights(self, scores: ir.Value, lanes: ir.Value, counts: ir.Value | None) -> ir.Value:
        """The weights of the chosen: their scores, 0 for NaN and where `counts` is not set, divided by their sum."""
        b, s, op = self.b, self.shape, self.op
        n = s.rows * s.top
        weights = self.t.gather(scores, lanes, "weights")
        about(weights, "The weights: the scores without bias.")
        if op.norm_type != SOFTMAX:
            is_number = b.cmpf("OEQ", weights, weights, "is_number")
            counts = is_number if counts is None else b.op(arith.andi, is_number, counts, name="counts")
        if counts is not None:
            weights = b.select(counts, weights, b.splat(b.f32(0.0), n), "weights")
        if op.norm_type != SOFTMAX:
            total = self.sum_of_row(weights)
            about(total, "Divided by their sum.")
            total = b.op(arith.addf, total, b.splat(b.f32(op.eps), s.rows), name="sum")
            weights = b.op(arith.divf, weights, self.t.broadcast(total, s.top, "sums"), name="weights")
        if op.routed_scaling_factor != 1.0:
            weights = b.op(arith.mulf, weights, b.splat(b.f32(op.routed_scaling_factor), n), name="weights")
        return weights

    def sum_of_row(self, weights: ir.Value) -> ir.Value:
        """Of `top` lanes, by a tree of neighbours. Behind k lanes there are zeros, so that one block can be enough."""
        s = self.shape
        if s.k > _BLOCK or s.top == _BLOCK:
            return self.t.reduce("add", weights, s.top, "sum")
        blocks = s.top // _BLOCK
        sums = self.t.reduce("add", weights, _BLOCK, "block_sums")
        return self.t.head(sums, 1) if s.rows == 1 else self.t.take(sums, blocks, 0, 1, "sum")

    # -- memory -------------------------------------------------------------------------------------------------

    def load(self, value, row, count, length: int, element: ir.Type, name: str, row_elements: int = 1) -> ir.Value:
        """`count` elements from a row on; 0 in the other lanes."""
        offset = self.t.times(row, row_elements, f"{name}_offset")
        if not self.producers.is_load(value):
            emit_error(
                self.op, f"'{self.op.operation.name}' takes ids and masks from memory: kernels do not compute them"
            )
            raise Unsupported
        while not isinstance(value.owner, ir.Block):  # a view
            value = value.owner.operands[0]
        memory = self.producers.buffers[value.arg_number]
        return self.t.make("Load", memory, offset, count, length=length, element=element, name=name, pad=0.0)

    def store_rows(self, value, memory, row, rows, row_elements: int, length: int, pitch: int) -> None:
        """The first `length` of every `pitch` lanes, to where `row` is, in rows of so many elements."""
        offset = self.t.times(row, row_elements, "offset")
        self.b.build(
            TILE.classes["StoreRows"], value, memory, offset, rows, row_length=length, gm_pitch=length, pitch=pitch
        )
