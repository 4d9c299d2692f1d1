"""`ascend.apply_top_k_top_p` on tiles: thresholds on a row's values, without a sort of the row.

What is chosen when (docs/kernels.md has the figures):

- *Short rows*, of at most 1024 elements: sorted whole, in one list.
- *k of at most 128*, a row's own choice at run time: candidates by a bound (`candidates.py`), a sorted list of 128, the
  nucleus inside the list. Where there are fewer rows than half the cores, each row is split over several: every core
  writes its list to global memory, all meet once, and every core merges the lists of its row and writes its own part.
- *Any other row*: a search for the thresholds over the row (`filter_search.py`), by one core.

The result of a row does not depend on the choice of the split: sums run over the merged list, which has all that top-k
kept and nothing else, or over the row; which of the two follows from the row and its k. Ties of the k-th value beyond the
list's length make the search decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith

from jascend.backends.ascend.targets import Target
from jascend.dialect import TILE

from ..builder import tile_type
from .candidates import LISTED, MAX_CHUNKS, Candidates, Largest, count_of, unpacked
from .filter_list import ListNucleus
from .filter_search import MAX_VOCABULARY, SEARCHED, UNIT, ThresholdSearch
from .keys import Keys
from .row_chunks import NEG_INF, Chunk, RowChunks, length_of, slice_of
from .site import Candidate, Site

SUMMARY = (
    "Keeps the k largest elements of a row and, among them, the nucleus of mass p; -inf elsewhere. Both filters are "
    "thresholds on the row's values."
)
SHORT_ROW = 1024
CANDIDATES = (
    Candidate(8192), Candidate(8192, load_ahead=False), Candidate(4096), Candidate(4096, load_ahead=False),
    Candidate(2048, load_ahead=False), Candidate(1024, load_ahead=False),
)  # fmt: skip

FILL: dict[str, int] = {}

_MAX_PARTS = 16  # lists that two merges of four make one
_MIN_PART = 2048  # elements: below, the lists cost more than the row
_RESIDENT_BYTES = 64 << 10
_SORTED_LANES = (256, 512, 1024)  # masks of them fill whole 32-byte blocks
_STATS = 8  # lanes: what a core says about its list
_PAIRS = 2 * LISTED  # lanes of a list


def refusal(op: ir.OpView, target: Target) -> str | None:
    """Why no kernel is generated for an op; None if one is."""
    logits = ir.RankedTensorType(op.logits.type)
    if logits.is_dynamic_dim(1) or not 0 < logits.get_dim_size(1) <= MAX_VOCABULARY:
        return f"is generated for a fixed row length of 1 to {MAX_VOCABULARY}"
    return None


def lower(op: ir.OpView, site: Site) -> None:
    """Builds the kernel body of one filter: all rows of this core."""
    plan = plan_of(op, site)
    site.remarks.append(plan.why)
    Filter(op, site, plan).build()


@dataclass(frozen=True)
class Plan:
    """How a row is gone about.

    Attributes:
      chunk: elements in one go, of a part.
      written: elements in one go where the result is written.
      parts: cores that share a row.
      part: elements of the row for one of them, at most.
      resident: whether a part stays in the unified buffer from the first pass to the last.
      listed: whether rows with a small k are decided in a list of candidates.
      short: whether the row is one list.
      why: a sentence for `explain`.
    """

    chunk: int
    written: int = 0
    parts: int = 1
    part: int = 0
    resident: bool = False
    listed: bool = False
    short: bool = False
    why: str = ""


def plan_of(op: ir.OpView, site: Site) -> Plan:
    logits = ir.RankedTensorType(op.logits.type)
    vocabulary = logits.get_dim_size(1)
    if vocabulary <= SHORT_ROW:
        lanes = next(lanes for lanes in _SORTED_LANES if lanes >= vocabulary)
        return Plan(lanes, lanes, part=vocabulary, short=True, why=f"rows of {vocabulary} are sorted whole, in one list of {lanes}")
    widest = min(site.tile, _blocks(vocabulary, UNIT))
    written = min(widest, SEARCHED // 2)
    if op.k is None:
        return Plan(written, written, part=vocabulary, why=f"rows of {vocabulary} in chunks of {SEARCHED}, searched for the threshold of top-p")
    parts = _parts(logits, site)
    part = _blocks(-(-vocabulary // parts), UNIT)
    chunks = -(-part // widest)
    listed = chunks <= MAX_CHUNKS
    chunk = _blocks(-(-part // chunks), UNIT // 2)
    resident = parts > 1 and site.producers.is_load(op.logits) and chunks * chunk * _width(logits) <= _RESIDENT_BYTES
    if resident:
        written = chunk
    return Plan(
        chunk, written, parts, part, resident, listed,
        why=f"rows of {vocabulary} over {parts} cores each, in chunks of {chunk}; k up to {LISTED} in a list of candidates, "
        "others searched for the threshold",
    )  # fmt: skip


def _parts(logits: ir.RankedTensorType, site: Site) -> int:
    """As many cores a row as there are for it, if there are two at least, each with enough to do."""
    vocabulary = logits.get_dim_size(1)
    if site.parts is not None:
        return site.parts
    if logits.is_dynamic_dim(0) or logits.get_dim_size(0) == 0:
        return 1
    cores = site.target.vector_cores // logits.get_dim_size(0)
    most = min(cores, _MAX_PARTS, -(-vocabulary // _MIN_PART))
    if most < 2:
        return 1
    # The same length with fewer parts: no part is empty.
    return -(-vocabulary // _blocks(-(-vocabulary // most), UNIT))


def _blocks(length: int, block: int) -> int:
    return -(-length // block) * block


def _width(logits: ir.RankedTensorType) -> int:
    return 4 if str(logits.element_type) == "f32" else 2


class Filter:
    """Builds the rows of one kernel."""

    RESULT = "out"

    def __init__(self, op, site: Site, plan: Plan):
        self.op, self.producers, self.out, self.b = op, site.producers, site.outputs[self.RESULT], site.b
        self.plan = plan
        logits = ir.RankedTensorType(op.logits.type)
        self.vocabulary, self.dtype = logits.get_dim_size(1), logits.element_type
        self.keys = Keys(self.b, self.dtype)
        self.producers.tile = plan.chunk
        site.deal_out(self.out)
        self.rows = site.rows

    # -- the kernel ---------------------------------------------------------------------------------------------

    def build(self) -> None:
        b, plan = self.b, self.plan
        share = b.build(TILE.classes["BlockRows"], self.rows, results=[b.index_type] * 4, parts=plan.parts)
        self.zero, self.one = b.index(0), b.index(1)
        self.length = b.index(self.vocabulary, "row_length")
        self.neg_infs = b.splat(self._number(NEG_INF), plan.written, "neg_infs")
        lanes = plan.written
        if not plan.short and not self.producers.is_load(self.op.logits):
            lanes = SEARCHED
        self.ramp = b.build(TILE.classes["Iota"], results=[tile_type(lanes, b.f32_type)], name="ramp").value
        self.candidates = Candidates(b, self.keys) if plan.listed else None
        lanes = plan.chunk if plan.short else LISTED
        self.searcher = None
        if not plan.short:
            element = self.dtype if self.producers.is_load(self.op.logits) else b.f32_type
            self.searcher = ThresholdSearch(b, self.keys, element, self.vocabulary, self.op.k is not None)
        self.list = ListNucleus(b, lanes) if self.op.p is not None and (plan.listed or plan.short) else None
        if plan.parts == 1:
            b.for_(
                share.first, share.last, self.one, [], self.row, induction="row", about="The rows of this core.",
            )  # fmt: skip
            return
        self.exchange = _Exchange(b, plan, share.part)
        self.part = share.part

        def one_round(number):
            row = b.op(arith.addi, share.first, number, name="own_row")
            active = b.cmpi("slt", row, share.last, "has_row")
            last = b.op(arith.subi, self.rows, self.one)
            self.split_row(b.op(arith.minsi, row, last, name="row"), number, active)
            return []

        b.for_(
            self.zero, share.rounds, self.one, [], one_round, induction="round",
            about="The rows of this core's group. A core without a row goes along: all meet in every round.",
        )  # fmt: skip

    def enter(self, row: ir.Value) -> tuple[ir.Value | None, ir.Value | None]:
        """Starts a row; its k and p."""
        b, op = self.b, self.op
        self.producers.tile = self.plan.chunk
        self.producers.enter_row(row, [(op.logits, ("row", "col"))])
        self.row_offset = b.op(arith.muli, row, self.length, name="row_offset")
        k = self.producers.row_scalar(op.k, ("row",), "row_k") if op.k is not None else None
        p = self.producers.row_scalar(op.p, ("row",), "row_p") if op.p is not None else None
        return k, p

    def whole_row(self, chunk: int) -> RowChunks:
        return self.chunks(self.zero, self.length, chunk, self.vocabulary)

    def chunks(self, start: ir.Value, end: ir.Value, chunk: int, length: int, resident: bool = False) -> RowChunks:
        ramp = slice_of(self.b, self.ramp, 0, chunk) if chunk <= length_of(self.ramp) else None
        return RowChunks(
            self.b, self.producers, self.op.logits, start, end, chunk=chunk, length=length, ramp=ramp, resident=resident
        )

    # -- one row ------------------------------------------------------------------------------------------------

    def row(self, row: ir.Value) -> list[ir.Value]:
        """A row that this core has to itself."""
        b, plan = self.b, self.plan
        k, p = self.enter(row)
        if plan.short:
            self.short_row(self.whole_row(plan.chunk), k, p)
            return []
        written = self.whole_row(plan.written)
        if not plan.listed:
            self.write(written, *self.search(k, p))
            return []
        small = self.is_small(k)

        def in_list():
            largest = self.candidates.largest(self.whole_row(plan.chunk), b.op(arith.index_cast, b.index_type, k))
            return self.decide(k, p, _Alone(b, largest))

        decided, cut, removed = b.if_(
            small, ["decided", "cut", "removed"], in_list, self.undecided, types=self.decision_types(),
            about="A small k: the largest elements of the row.",
        )  # fmt: skip
        cut, removed = b.if_(
            decided, ["cut", "removed"], lambda: [cut, removed], lambda: list(self.search(k, p)), types=[b.f32_type] * 2,
            about="Any other: thresholds of the whole row.",
        )  # fmt: skip
        self.write(written, cut, removed)
        return []

    def split_row(self, row: ir.Value, number: ir.Value, active: ir.Value) -> None:
        """This core's part of a row."""
        b, plan = self.b, self.plan
        k, p = self.enter(row)
        start = b.op(arith.muli, self.part, b.index(plan.part), name="part_start")
        end = b.op(arith.minsi, b.op(arith.addi, start, b.index(plan.part)), self.length, name="part_end")
        chunks = self.chunks(start, end, plan.chunk, plan.part, plan.resident)
        small = self.is_small(k)

        def local():
            largest = self.candidates.largest(chunks, b.op(arith.index_cast, b.index_type, k))
            self.exchange.give(largest, number)
            return []

        b.if_(small, [], local, about="A small k: the largest elements of this part, for all cores of the group.")
        b.build(TILE.classes["SyncAll"])
        decided, cut, removed = b.if_(
            small, ["decided", "cut", "removed"], lambda: self.decide(k, p, self.exchange.take(number)), self.undecided,
            types=self.decision_types(), about="The largest elements of the row, from all parts.",
        )  # fmt: skip

        def write_part():
            self.write(chunks if plan.resident else self.chunks(start, end, plan.written, plan.part), cut, removed)
            return []

        b.if_(b.op(arith.andi, active, decided), [], write_part)
        first = b.op(arith.andi, active, b.cmpi("eq", self.part, self.zero), name="is_first")
        others = b.op(arith.andi, first, b.op(arith.xori, decided, self.truth(True)), name="searches")

        def search_and_write():
            self.write(self.whole_row(plan.written), *self.search(k, p))
            return []

        b.if_(others, [], search_and_write, about="Any other row: the first core of the group searches it for its thresholds.")

    def truth(self, value: bool) -> ir.Value:
        return arith.constant(ir.IntegerType.get_signless(1), value, loc=self.b.loc())

    def is_small(self, k: ir.Value) -> ir.Value:
        b = self.b
        most = min(LISTED, self.vocabulary - 1)
        return b.op(arith.andi, b.cmpi("sge", k, b.i32(1)), b.cmpi("sle", k, b.i32(most)), name="small_k")

    def decision_types(self) -> list[ir.Type]:
        return [ir.IntegerType.get_signless(1), self.b.f32_type, self.b.f32_type]

    def undecided(self) -> list[ir.Value]:
        b = self.b
        return [self.truth(False), b.f32(NEG_INF), b.f32(0.0)]

    def search(self, k: ir.Value | None, p: ir.Value | None) -> tuple[ir.Value, ir.Value]:
        return self.searcher.thresholds(self.whole_row(SEARCHED), k, p)

    # -- decisions in a list ------------------------------------------------------------------------------------

    def decide(self, k: ir.Value, p: ir.Value | None, lists: _Alone | _Lists) -> list[ir.Value]:
        """Whether the lists decide the row; the smallest value that stays; and how many of the elements equal to it go
        that are in this core's part, or in front of it (f32)."""
        b = self.b
        position = b.op(arith.index_cast, b.index_type, b.op(arith.subi, k, b.i32(1)), name="k_minus_one")
        values = unpacked(b, lists.merged())[0]
        kth = b.build(TILE.classes["Extract"], values, position, results=[b.f32_type], name="row_kth").scalar
        nans, number = lists.reaching(kth)
        few = b.cmpf("OLE", number, b.f32(LISTED), "few")
        # The k-th largest is NaN: top-k is off, and so is top-p.
        wanted = b.op(arith.sitofp, b.f32_type, k, name="wanted")
        off = b.cmpf("OGE", nans, wanted, "kth_is_nan")

        def within():
            if p is None:
                return [kth, b.f32(0.0)]
            cut, removed = self.list.decide(values, number, kth, p)
            return [cut, lists.own_share(cut, removed)]

        usual = b.op(arith.andi, few, b.op(arith.xori, off, self.truth(True)), name="is_usual")
        cut, removed = b.if_(
            usual, ["cut", "removed"], within, lambda: [b.f32(NEG_INF), b.f32(0.0)], types=[b.f32_type] * 2
        )
        return [b.op(arith.ori, few, off, name="decided"), cut, removed]

    def short_row(self, chunks: RowChunks, k: ir.Value | None, p: ir.Value | None) -> None:
        b, lanes = self.b, self.plan.chunk

        def body(chunk: Chunk):
            x = chunk.x
            ranked = b.select(b.cmpf("OEQ", x, x, "is_number"), x, b.splat(b.f32(float("inf")), lanes), "ranked")
            order = self.list.order if self.list else b.build(TILE.classes["Iota"], results=[tile_type(lanes, b.i32_type)]).value
            pairs = tile_type(2 * lanes, b.f32_type)
            pairs = b.build(TILE.classes["Sort"], ranked, order, results=[pairs], run=lanes, name="sorted").pairs
            values = unpacked(b, pairs)[0]
            cut, removed = self.short_thresholds(x, values, k, p)
            self.write_chunk(chunk, cut, removed)
            return []

        chunks.each([], body, "The row.")

    def short_thresholds(self, x, values, k, p) -> tuple[ir.Value, ir.Value]:
        b, lanes = self.b, self.plan.chunk
        kth, number = b.f32(NEG_INF), b.f32(lanes)
        if k is not None:
            nans = count_of(b, b.cmpf("UNE", x, x, "is_nan"), None, "nans")
            wanted = b.op(arith.sitofp, b.f32_type, k, name="wanted")
            enabled = b.op(arith.andi, b.cmpi("sge", k, b.i32(1)), b.cmpi("slt", k, b.i32(self.vocabulary)))
            enabled = b.op(arith.andi, enabled, b.cmpf("OLT", nans, wanted), name="top_k_enabled")
            place = b.select(enabled, b.op(arith.subi, k, b.i32(1)), b.i32(lanes - 1))
            position = b.op(arith.index_cast, b.index_type, place, name="k_minus_one")
            listed = b.build(TILE.classes["Extract"], values, position, results=[b.f32_type], name="listed_kth").scalar
            kth = b.select(enabled, listed, kth, "kth")
            number = count_of(b, b.cmpf("OGE", values, b.splat(kth, lanes), "reach"), None, "number")
        if p is None:
            return kth, b.f32(0.0)
        return self.list.decide(values, number, kth, p)

    # -- the result ---------------------------------------------------------------------------------------------

    def write(self, chunks: RowChunks, cut: ir.Value, removed: ir.Value) -> None:
        """Writes the stretch without what is below `cut`, nor the first `removed` elements equal to it."""
        carried = [] if self.op.p is None else [("ties_left", removed)]
        chunks.each(carried, lambda chunk, *left: self.write_chunk(chunk, cut, *left), "The filtered row.")

    # -- one chunk ----------------------------------------------------------------------------------------------

    def write_chunk(self, chunk: Chunk, cut: ir.Value, ties_left: ir.Value | None = None) -> list[ir.Value]:
        """Writes a chunk; how many ties are left to remove after that."""
        b = self.b
        reaches = lambda: self.against("UGE", chunk.x, cut, "stays")  # unordered, so that NaN stays
        if self.op.p is None or ties_left is None:
            self.store(chunk, reaches())
            return []
        mask = tile_type(length_of(chunk.x), ir.IntegerType.get_signless(1))
        stays, left = b.if_(
            b.cmpf("OGT", ties_left, b.f32(0.0), "has_ties"), ["stays", "ties_left"],
            lambda: self.without_ties(chunk, cut, ties_left), lambda: [reaches(), ties_left], types=[mask, b.f32_type],
        )  # fmt: skip
        self.store(chunk, stays)
        return [left]

    def without_ties(self, chunk: Chunk, cut: ir.Value, ties_left: ir.Value) -> list[ir.Value]:
        """Which elements of a chunk stay if the first `ties_left` elements equal to `cut` go; and how many are left to
        remove after that."""
        b, x, lanes = self.b, chunk.x, length_of(chunk.x)
        equal = self.against("OEQ", x, cut, "equal")
        values = x if chunk.raw is None else chunk.raw
        found = b.build(TILE.classes["Compress"], values, equal, results=[values.type, b.index_type], name="equal_values")
        here = b.op(arith.sitofp, b.f32_type, b.op(arith.index_cast, b.i32_type, found.kept), name="equal_here")

        def exceeding():
            return self.against("UGT", x, cut, "exceeds")

        def behind_the_last():
            ramp = slice_of(b, self.ramp, 0, lanes)
            places = b.build(TILE.classes["Compress"], ramp, equal, results=[ramp.type, b.index_type], name="equal_places")
            number = b.op(arith.fptosi, b.i32_type, b.op(arith.subf, ties_left, b.f32(1.0)))
            last = b.op(arith.index_cast, b.index_type, number, name="last")
            last = b.build(TILE.classes["Extract"], places.value, last, results=[b.f32_type], name="last_removed").scalar
            after = self.against("OGT", ramp, last, "after_last")
            return b.op(arith.ori, b.op(arith.andi, equal, after, name="stays"), exceeding(), name="stays")

        (stays,) = b.if_(
            b.cmpf("OLE", here, ties_left, "all_go"), ["stays"], lambda: [exceeding()], lambda: [behind_the_last()],
            types=[equal.type],
        )  # fmt: skip
        left = b.op(arith.subf, ties_left, here, name="left_after")
        return [stays, b.select(b.cmpf("OGT", left, b.f32(0.0)), left, b.f32(0.0), "ties_left")]

    def store(self, chunk: Chunk, stays: ir.Value) -> None:
        """Writes a chunk, -inf where the mask is not set."""
        b, lanes = self.b, length_of(chunk.x)
        source = chunk.x if chunk.raw is None else chunk.raw
        if source.type != tile_type(lanes, self.dtype):
            source = b.op(arith.truncf, tile_type(lanes, self.dtype), source, name="result")
        kept = b.select(stays, source, slice_of(b, self.neg_infs, 0, lanes), "kept")
        offset = b.op(arith.addi, self.row_offset, chunk.column, name="out_offset")
        b.build(TILE.classes["Store"], kept, self.out, offset, chunk.count, once=True)  # each chunk goes one way only

    def against(self, predicate: str, x: ir.Value, threshold: ir.Value, name: str) -> ir.Value:
        """The mask of a chunk against a scalar."""
        return self.b.cmpf(predicate, x, self.b.splat(threshold, length_of(x)), name)

    def _number(self, value: float) -> ir.Value:
        return arith.constant(self.dtype, ir.FloatAttr.get(self.dtype, value), loc=self.b.loc())


# -- lists of the parts of a row ------------------------------------------------------------------------------------------


class _Alone:
    """The list of a row that one core has to itself."""

    def __init__(self, b, largest: Largest):
        self.b, self.largest = b, largest

    def merged(self) -> ir.Value:
        return self.largest.pairs

    def reaching(self, kth: ir.Value) -> tuple[ir.Value, ir.Value]:
        b = self.b
        values = unpacked(b, self.largest.pairs)[0]
        listed = count_of(b, b.cmpf("OGE", values, b.splat(kth, LISTED), "reach"), None, "reach")
        return self.largest.nans, b.op(arith.addf, listed, self.largest.missing, name="number")

    def own_share(self, cut: ir.Value, removed: ir.Value) -> ir.Value:
        return removed


class _Exchange:
    """Lists in global memory. Two sets take turns, so that a core that is a round ahead overwrites nothing that is read."""

    def __init__(self, b, plan: Plan, part: ir.Value):
        self.b, self.plan, self.part = b, plan, part
        self.lists = self._workspace("lists", 2 * _PAIRS)
        self.stats = self._workspace("list_stats", 2 * _STATS)
        op = b.build(TILE.classes["Core"], results=[b.index_type] * 2)
        self.core, self.cores = op.operation.results
        self.first = b.op(arith.subi, self.core, part, name="first_core")
        self.lane = b.build(TILE.classes["Iota"], results=[tile_type(64, b.f32_type)], name="stats_lane").value

    def _workspace(self, name: str, elements: int) -> ir.Value:
        memory = ir.MemRefType.get(
            [ir.ShapedType.get_dynamic_size(), elements], self.b.f32_type, memory_space=ir.StringAttr.get("gm")
        )
        build = TILE.classes["Workspace"].build
        return build(results=[memory], elements=elements, per="core", name=name, loc=self.b.loc(name)).memory

    def _offset(self, core: ir.Value, number: ir.Value, elements: int) -> ir.Value:
        b = self.b
        turn = b.op(arith.andi, number, b.index(1), name="turn")
        cell = b.op(arith.addi, b.op(arith.muli, turn, self.cores), core, name="cell")
        return b.op(arith.muli, cell, b.index(elements))

    def give(self, largest: Largest, number: ir.Value) -> None:
        b = self.b
        b.build(TILE.classes["Store"], largest.pairs, self.lists, self._offset(self.core, number, _PAIRS), b.index(_PAIRS))
        stats = b.splat(largest.nans, 64)
        for lane, scalar in ((2, largest.missing), (1, largest.kth)):
            below = b.cmpf("OLT", self.lane, b.splat(b.f32(lane), 64), "lane_below")
            stats = b.select(below, b.splat(scalar, 64), stats, "stats")
        b.build(TILE.classes["Store"], stats, self.stats, self._offset(self.core, number, _STATS), b.index(_STATS))

    def take(self, number: ir.Value) -> _Lists:
        b, parts = self.b, self.plan.parts
        lists = parts if parts <= 4 else _blocks(parts, 4)
        pairs = b.build(
            TILE.classes["Load"], self.lists, self._offset(self.first, number, _PAIRS), b.index(parts * _PAIRS),
            results=[tile_type(lists * _PAIRS, b.f32_type)], pad=ir.FloatAttr.get(b.f32_type, NEG_INF), name="lists",
        ).value  # fmt: skip
        stats = b.build(
            TILE.classes["Load"], self.stats, self._offset(self.first, number, _STATS), b.index(parts * _STATS),
            results=[tile_type(parts * _STATS, b.f32_type)], name="list_stats",
        ).value  # fmt: skip
        return _Lists(b, self.plan, self.part, pairs, stats)


class _Lists:
    """The lists of all parts of a row."""

    def __init__(self, b, plan: Plan, part: ir.Value, pairs: ir.Value, stats: ir.Value):
        self.b, self.plan, self.part, self.pairs, self.stats = b, plan, part, pairs, stats
        self.count = ir.RankedTensorType(pairs.type).get_dim_size(0) // _PAIRS
        self.values = unpacked(b, pairs)[0]

    def merged(self) -> ir.Value:
        """The list of the whole row."""
        pairs, lists = self.pairs, self.count
        while lists > 1:
            ways = min(lists, 4)
            pairs = self._merge(pairs, ways)
            lists //= ways
            pairs = self._heads(pairs, ways, lists)
        return pairs

    def _merge(self, pairs: ir.Value, ways: int) -> ir.Value:
        return self.b.build(TILE.classes["Merge"], pairs, results=[pairs.type], run=LISTED, ways=ways, name="merged").value

    def _heads(self, pairs: ir.Value, ways: int, lists: int) -> ir.Value:
        """The first `LISTED` of every list."""
        result = tile_type(lists * _PAIRS, self.b.f32_type)
        return self.b.build(
            TILE.classes["Take"], pairs, results=[result], group=ways * _PAIRS, start=0, count=_PAIRS, name="heads"
        ).value

    def reaching(self, kth: ir.Value) -> tuple[ir.Value, ir.Value]:
        """How many NaN the row has, and how many elements that reach its k-th largest."""
        b = self.b
        listed = count_of(b, b.cmpf("OGE", self.values, b.splat(kth, self.count * LISTED), "reach"), None, "reach")

        def add(i, nans, number):
            part_kth, missing, part_nans = self._stats(i)
            more = b.select(b.cmpf("OEQ", part_kth, kth), missing, b.f32(0.0), "more")
            return [b.op(arith.addf, nans, part_nans, name="nans"), b.op(arith.addf, number, more, name="number")]

        return tuple(
            b.for_(
                b.index(0), b.index(self.plan.parts), b.index(1), [("nans", b.f32(0.0)), ("number", listed)], add, induction="other"
            )
        )

    def own_share(self, cut: ir.Value, removed: ir.Value) -> ir.Value:
        """How many of the removed elements are behind the parts in front of this one."""
        b = self.b

        def behind():
            lanes = self.count * LISTED
            equal = b.cmpf("OEQ", self.values, b.splat(cut, lanes), "equal")
            ones = b.select(equal, b.splat(b.f32(1.0), lanes), b.splat(b.f32(0.0), lanes), "equal_ones")
            counts = b.build(
                TILE.classes["Reduce"], ones, results=[tile_type(self.count, b.f32_type)], kind="add", group=LISTED, name="equal_counts"
            ).value

            def subtract(i, left):
                listed = b.build(TILE.classes["Extract"], counts, i, results=[b.f32_type], name="listed").scalar
                part_kth, missing, _ = self._stats(i)
                more = b.select(b.cmpf("OEQ", part_kth, cut), missing, b.f32(0.0), "more")
                return [b.op(arith.subf, left, b.op(arith.addf, listed, more), name="left")]

            return b.for_(b.index(0), self.part, b.index(1), [("left", removed)], subtract, induction="other")

        return b.if_(
            b.cmpf("OGT", removed, b.f32(0.0)), ["own_removed"], behind, lambda: [removed], types=[b.f32_type],
            about="Ties go by position: the parts in front of this one lose theirs first.",
        )[0]  # fmt: skip

    def _stats(self, part: ir.Value) -> Sequence[ir.Value]:
        """The k-th largest of a part, how many equal to it its list lacks, and how many NaN there are."""
        b = self.b
        base = b.op(arith.muli, part, b.index(_STATS))
        places = (base, *(b.op(arith.addi, base, b.index(i)) for i in (1, 2)))
        return [b.build(TILE.classes["Extract"], self.stats, place, results=[b.f32_type]).scalar for place in places]
