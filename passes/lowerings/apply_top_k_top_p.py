"""`ascend.apply_top_k_top_p` on tiles: thresholds on a row's values, without a sort of the row.

What is chosen when (docs/kernels.md has the figures):

- *Short rows*, of at most 1024 elements: sorted whole, in one list.
- *k of at most 128*, a row's own choice at run time: candidates by a bound (`candidates.py`), a sorted list of 128, the
  nucleus inside the list. Where there are fewer rows than half the cores, each row is split over several: every core
  writes its list to global memory, all meet once, and every core merges the lists of its row and writes its own part.
- *Any other row*: a search for the thresholds over the row (`filter_search.py`), by one core.

The result of a row does not depend on the choice of the split: sums run over the merged list, which has all that top-k
kept and nothing else, or over the row; which of the two follows from the row and its k. Ties of the k-th value beyond
the list's length make the search decide.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith

from jascend.backends.ascend.targets import Target
from jascend.dialect import TILE

from ..builder import Stage, tile_type, up
from .candidates import LISTED, Candidates
from .filter_bounds import SAMPLE
from .filter_list import ListNucleus
from .filter_search import GIVEN, NUCLEUS, STRETCH, ThresholdSearch
from .keys import Keys
from .lowering import lowering
from .ops import Ops
from .part_lists import ListExchange, OwnList, PartLists
from .row_chunks import NEG_INF, Chunk, RowChunks, length_of, slice_of
from .row_cores import UNIT, Alone, Group
from .rows import each_round, each_row, length_refusal
from .site import Candidate, Site

SUMMARY = (
    "Keeps the k largest elements of a row and, among them, the nucleus of mass p; -inf elsewhere. Both filters are "
    "thresholds on the row's values."
)
SHORT_ROW = 1024
CANDIDATES = (
    Candidate(8192), Candidate(8192, load_ahead=False), Candidate(4096), Candidate(4096, load_ahead=False),
    Candidate(2048, load_ahead=False), Candidate(1024, load_ahead=False),
    *(Candidate(1024, load_ahead=False, piece=lanes) for lanes in (2048, 1024, 512)),
)  # fmt: skip

_RESIDENT_BYTES = 64 << 10
_WRITTEN = 6144  # elements in one go where the result is written
_CHUNK_COST = 512  # elements that a chunk costs as much as
_SORTED_LANES = (256, 512, 1024)  # masks of them fill whole 32-byte blocks
_SEARCHES = 3  # which of a core's facts says that its row is searched


def refusal(op: ir.OpView, target: Target) -> str | None:
    """Why no kernel is generated for an op; None if one is."""
    return length_refusal(op.logits)


@lowering("ascend.apply_top_k_top_p", summary=SUMMARY, refusal=refusal, candidates=CANDIDATES)
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
      short: whether the row is one list.
      why: a sentence for `explain`.
    """

    chunk: int
    written: int
    parts: int = 1
    part: int = 0
    resident: bool = False
    short: bool = False
    why: str = ""

    @property
    def chunks(self) -> int:
        """How many there are in a part."""
        return -(-self.part // self.chunk)


def plan_of(op: ir.OpView, site: Site) -> Plan:
    logits = ir.RankedTensorType(op.logits.type)
    vocabulary = logits.get_dim_size(1)
    if vocabulary <= SHORT_ROW:
        lanes = next(lanes for lanes in _SORTED_LANES if lanes >= vocabulary)
        why = f"rows of {vocabulary} are sorted whole, in one list of {lanes}"
        return Plan(lanes, lanes, part=vocabulary, short=True, why=why)
    parts = site.parts_of_row(logits)
    part = up(-(-vocabulary // parts), UNIT)
    chunk = _chunk(part, max(site.tile, UNIT))
    lanes = up(part, chunk)
    is_load = site.producers.is_load(op.logits)
    resident = parts > 1 and is_load and site.candidate.load_ahead and lanes * _width(logits) <= _RESIDENT_BYTES
    ways = [f"k up to {LISTED} in a list of candidates"] * (op.k is not None)
    ways += ["any other k searched for" if op.k is not None else "the threshold of top-p searched for"]
    shared = f" over {parts} cores each" * (parts > 1)
    why = f"rows of {vocabulary}{shared}, in chunks of {chunk}; {', '.join(ways)}"
    return Plan(chunk, chunk if resident else min(chunk, _WRITTEN), parts, part, resident, why=why)


def _chunk(part: int, widest: int) -> int:
    """Whole units, at most `widest` elements, of which few are beyond the part."""
    fewest = -(-part // widest)
    sizes = [up(-(-part // number), UNIT) for number in range(fewest, fewest + 3)]
    return min(sizes, key=lambda size: -(-part // size) * (size + _CHUNK_COST))


def _width(logits: ir.RankedTensorType) -> int:
    return 4 if str(logits.element_type) == "f32" else 2


class Filter:
    """Builds the rows of one kernel."""

    RESULT = "out"
    SLOTS = 2  # sets of facts that cores of a row tell each other

    def __init__(self, op, site: Site, plan: Plan):
        self.op, self.producers, self.out, self.b = op, site.producers, site.outputs[self.RESULT], site.b
        self.plan = plan
        logits = ir.RankedTensorType(op.logits.type)
        self.vocabulary, self.dtype = logits.get_dim_size(1), logits.element_type
        self.keys = Keys(self.b, self.dtype)
        self.producers.tile = plan.chunk
        self.site = site
        site.deal_out(self.out)

    # -- the kernel ---------------------------------------------------------------------------------------------

    def build(self) -> None:
        b, plan = self.b, self.plan
        share = b.build(TILE.classes["BlockRows"], self.site.rows, results=[b.index_type] * 4, parts=plan.parts)
        self.t = t = Ops(b)
        self.length = b.index(self.vocabulary, "row_length")
        self.neg_infs = b.splat(self._number(NEG_INF), plan.written, "neg_infs")
        self.ramp = t.ramp(self.ramp_lanes(), b.f32_type, "ramp")
        has_candidates = self.op.k is not None and not plan.short and not self.lists_leading
        self.candidates = Candidates(t, self.keys, plan.chunks) if has_candidates else None
        self.part = share.part
        self.exchange = ListExchange(t, plan.parts, share.part, self.SLOTS) if plan.parts > 1 else None
        self.searcher = None if plan.short else self._searcher()
        self.list = None
        if self.op.p is not None and (plan.short or self.op.k is not None):
            self.list = ListNucleus(t, plan.chunk if plan.short else LISTED)
        self.prepare()
        if plan.parts == 1:
            each_row(t, share, self.row)
        else:
            each_round(t, self.site, share, self.split_row)

    def ramp_lanes(self) -> int:
        """How long a ramp rows need."""
        plan = self.plan
        return plan.written if self.producers.is_load(self.op.logits) else max(plan.written, plan.chunk)

    @property
    def lists_leading(self) -> bool:
        """Whether a small k has a list of the first elements with their positions, and not of candidates."""
        return False

    def prepare(self) -> None:
        """Makes what rows need besides."""

    def _searcher(self) -> ThresholdSearch:
        t, plan = self.t, self.plan
        element = self.dtype if self.producers.is_load(self.op.logits) else self.b.f32_type
        if plan.parts == 1:
            cores = Alone(t, self.vocabulary, element)
        else:
            cores = Group(t, self.vocabulary, element, self.exchange.meeting, plan.parts, self.part, plan.part)
        has_both = self.op.k is not None and self.op.p is not None
        return ThresholdSearch(t, self.keys, cores, self.vocabulary, has_both)

    def enter(self, row: ir.Value) -> tuple[ir.Value | None, ir.Value | None]:
        """Starts a row; its k and p."""
        b, op = self.b, self.op
        self.producers.tile = self.plan.chunk
        self.producers.enter_row(row, [(op.logits, ("row", "col"))], (op.k, op.p))
        self.row_offset = b.op(arith.muli, row, self.length, name="row_offset")
        k = self.producers.row_scalar(op.k, ("row",), "row_k") if op.k is not None else None
        p = self.producers.row_scalar(op.p, ("row",), "row_p") if op.p is not None else None
        return k, p

    def whole_row(self, chunk: int) -> RowChunks:
        return self.chunks(self.t.zero, self.length, chunk, self.vocabulary)

    def stretch(self, start: ir.Value, end: ir.Value) -> RowChunks:
        """Any of the row."""
        return self.chunks(start, end, self.plan.chunk, self.vocabulary)

    def chunks(self, start: ir.Value, end: ir.Value, chunk: int, length: int, resident: bool = False) -> RowChunks:
        ramp = slice_of(self.b, self.ramp, 0, chunk) if chunk <= length_of(self.ramp) else None
        return RowChunks(
            self.b, self.producers, self.op.logits, start, end, chunk=chunk, length=length, ramp=ramp, resident=resident
        )

    # -- one row ------------------------------------------------------------------------------------------------

    def row(self, row: ir.Value) -> list[ir.Value]:
        """A row that this core has to itself."""
        plan = self.plan
        k, p = self.enter(row)
        if plan.short:
            self.short_row(self.whole_row(plan.chunk), k, p)
            return []
        cut, removed = self.decision(k, p)
        self.write(self.whole_row(plan.written), cut, removed)
        return []

    def decision(self, k: ir.Value | None, p: ir.Value | None) -> Sequence[ir.Value]:
        """The smallest value that stays, and how many of the elements equal to it go (f32)."""
        b = self.b
        search = lambda: list(self.searcher.thresholds(self.stretch, k, p))
        if k is None:
            return search()

        def in_list():
            largest = self.candidates.largest(self.whole_row(self.plan.chunk), self.t.index_of(k, "wanted"))
            return self.decide(k, p, OwnList(self.t, largest))

        return b.if_(
            self.is_small(k), ["cut", "removed"], in_list, search, types=[b.f32_type] * 2,
            about=Stage(
                "DecideByList", "A small k: the largest elements of the row. Any other: thresholds of the whole row.", "DecideBySearch"
            ),
        )  # fmt: skip

    def split_row(self, row: ir.Value, turn: ir.Value, active: ir.Value) -> None:
        """This core's part of a row."""
        k, p = self.enter(row)
        chunks = self.own_part(turn)
        cut, removed = self.split_decision(chunks, k, p, turn)
        self.finish_part(chunks, active, cut, removed)

    def own_part(self, turn: ir.Value) -> RowChunks:
        """This core's part of the row at hand."""
        b, plan = self.b, self.plan
        start = self.t.times(self.part, plan.part, "part_start")
        end = b.op(arith.minsi, b.op(arith.addi, start, b.index(plan.part)), self.length, name="part_end")
        self.searcher.cores.start, self.searcher.cores.turn = start, turn
        return self.chunks(start, end, plan.chunk, plan.part, plan.resident)

    def announce(self, part: RowChunks) -> None:
        """What the other cores need besides of a row that is searched, before all meet for the first time."""

    def finish_part(self, part: RowChunks, active: ir.Value, cut: ir.Value, removed: ir.Value) -> None:
        """Writes this part of a row, if this core has one."""

        def write_part():
            plan = self.plan
            chunks = part if plan.resident else self.chunks(part.start, part.end, plan.written, plan.part)
            self.write(chunks, cut, removed)
            return []

        self.b.if_(active, [], write_part)

    def split_decision(self, part: RowChunks, k, p, turn: ir.Value) -> Sequence[ir.Value]:
        """The smallest value that stays, and how many of the elements equal to it go that are in this part or in front
        of it."""
        b = self.b
        if k is None:
            self.announce(part)
            return self.split_nucleus(part, p, self.searcher.sample(self.stretch))
        small = self.is_small(k)
        give = lambda: self.exchange.give(self.candidates.largest(part, self.t.index_of(k, "wanted")), turn)
        sample, kth = self.split_top_k(part, k, small, give)
        otherwise = lambda: [kth() if p is None else b.f32(NEG_INF), b.f32(0.0)]
        decided = b.if_(
            small, ["cut", "removed"], lambda: self.decide(k, p, self.exchange.take(turn)), otherwise,
            types=[b.f32_type] * 2,
            about=Stage("JoinPartLists", "The largest elements of the row, from all parts."),
        )  # fmt: skip
        if p is None:
            return decided
        search = lambda: self.split_nucleus(part, p, sample, kth, self.t.opposite(small, "searches"), decided)
        return b.if_(
            self.any_searches(turn), ["cut", "removed"], search, lambda: list(decided), types=[b.f32_type] * 2,
            about=Stage("SearchRow", "All cores go along where a row of this round is searched."),
        )  # fmt: skip

    def split_top_k(self, part: RowChunks, k, small: ir.Value, give: Callable[[], None]):
        """What this core finds of its part, up to the meeting: for a small k it `give`s what it lists, with facts of
        which none is above 0. Returns the sample, and what finds the k-th largest element of a row that is searched."""
        b, search, ends = self.b, self.searcher, STRETCH[:-GIVEN]

        def largest():
            give()
            return [*search.nothing(ends), self.t.filled(0.0, SAMPLE, "sample")]

        def between():
            self.announce(part)
            sample = search.sample(self.stretch)
            return [*search.top_k(part, sample, k, b.f32(0.0), b.f32(1.0))[:-GIVEN], sample]

        *found, sample = b.if_(
            small, [*ends, "sample"], largest, between, types=[*search.typed(ends), tile_type(SAMPLE, b.f32_type)],
            about=Stage(
                "ListOfPart", "A small k: the largest elements of this part, for all cores of the group.", "SampleRow"
            ),
        )  # fmt: skip
        self.meet()
        return sample, lambda: search.kth(self.stretch, k, [*found, *search.nothing(STRETCH[-GIVEN:])])

    def any_searches(self, turn: ir.Value) -> ir.Value:
        """Whether any row of a round is searched."""
        most = self.exchange.meeting.largest_fact(_SEARCHES, self.site.target.vector_cores, turn)
        return self.b.cmpf("OGT", most, self.b.f32(0.0), "any_searches")

    def split_nucleus(
        self, part: RowChunks, p, sample: ir.Value, kth: Callable[[], ir.Value] | None = None,
        searches: ir.Value | None = None, decided=None,
    ) -> list[ir.Value]:  # fmt: skip
        """The same by search; where a row does not `search`, it is what is `decided`."""
        search = self.searcher

        def weigh():
            floor, reference = kth() if kth else None, search.reference(sample)
            search.mass(part, reference, floor)
            return [floor, reference] if kth else [reference]

        where = functools.partial(self.where, searches)
        about = Stage("WeighPart", "What this part of a row weighs, relative to the maximum of the sample.")
        *floor, reference = where(["floor", "reference"] if kth else ["reference"], weigh, about=about)
        floor = floor[0] if kth else None
        self.meet()
        between = lambda: search.top_p(part, self.stretch, sample, floor, p, reference)[:-GIVEN]
        found = where(
            NUCLEUS[:-GIVEN], between, about=Stage("ListNucleus", "The mass of the row, and where its nucleus can end.")
        )
        self.meet()
        found = [*found, *search.nothing(NUCLEUS[-GIVEN:])]
        about = Stage("FindCut", "Where the nucleus ends, by the lists of all parts.")
        return where(["cut", "removed"], lambda: search.nucleus(self.stretch, floor, p, found), decided, about=about)

    def where(
        self, searches: ir.Value | None, names: list[str], then, otherwise: Sequence[ir.Value] | None = None,
        about: str | None = None,
    ) -> list[ir.Value]:  # fmt: skip
        """What a row that `searches` does; all do if that is None."""
        if searches is None:
            return list(then())
        nothing = lambda: self.searcher.nothing(names) if otherwise is None else list(otherwise)
        types = self.searcher.typed(names)
        return self.b.if_(searches, names, then, nothing if names else None, types=types, about=about)

    def meet(self) -> None:
        self.b.build(TILE.classes["SyncAll"])

    def is_small(self, k: ir.Value) -> ir.Value:
        b = self.b
        most = min(LISTED, self.vocabulary - 1)
        return b.op(arith.andi, b.cmpi("sge", k, b.i32(1)), b.cmpi("sle", k, b.i32(most)), name="small_k")

    # -- decisions in a list ------------------------------------------------------------------------------------

    def decide(self, k: ir.Value, p: ir.Value | None, lists: OwnList | PartLists) -> list[ir.Value]:
        """The smallest value that stays, by the lists; and how many of the elements equal to it go that are in this
        core's part, or in front of it (f32)."""
        b = self.b
        position = b.op(arith.index_cast, b.index_type, b.op(arith.subi, k, b.i32(1)), name="k_minus_one")
        values, _ = self.t.unpacked(lists.merged())
        kth = self.t.extract(values, position, "row_kth")
        nans, number = lists.reaching(kth)
        # The k-th largest is NaN: top-k is off, and so is top-p.
        wanted = b.op(arith.sitofp, b.f32_type, k, name="wanted")
        off = b.cmpf("OGE", nans, wanted, "kth_is_nan")

        def within():
            if p is None:
                return [kth, b.f32(0.0)]
            cut, removed = self.list.decide(values, number, kth, p)
            return [cut, lists.own_share(cut, removed)]

        everything = lambda: [b.f32(NEG_INF), b.f32(0.0)]
        return b.if_(off, ["cut", "removed"], everything, within, types=[b.f32_type] * 2)

    def short_row(self, chunks: RowChunks, k: ir.Value | None, p: ir.Value | None) -> None:
        t, b, lanes = self.t, self.b, self.plan.chunk

        def body(chunk: Chunk):
            x = chunk.x
            ranked = t.where(b.cmpf("OEQ", x, x, "is_number"), x, float("inf"), "ranked")
            order = self.list.order if self.list else t.ramp(lanes, b.i32_type)
            values, _ = t.unpacked(t.sorted(ranked, order, "sorted"))
            cut, removed = self.short_thresholds(x, values, k, p)
            self.write_chunk(chunk, cut, removed)
            return []

        chunks.each([], body, "The row.")

    def short_thresholds(self, x, values, k, p) -> tuple[ir.Value, ir.Value]:
        t, b, lanes = self.t, self.b, self.plan.chunk
        kth, number = b.f32(NEG_INF), b.f32(lanes)
        if k is not None:
            nans = t.count(b.cmpf("UNE", x, x, "is_nan"), "nans")
            wanted = b.op(arith.sitofp, b.f32_type, k, name="wanted")
            enabled = b.op(arith.andi, b.cmpi("sge", k, b.i32(1)), b.cmpi("slt", k, b.i32(self.vocabulary)))
            enabled = b.op(arith.andi, enabled, b.cmpf("OLT", nans, wanted), name="top_k_enabled")
            place = b.select(enabled, b.op(arith.subi, k, b.i32(1)), b.i32(lanes - 1))
            position = b.op(arith.index_cast, b.index_type, place, name="k_minus_one")
            listed = t.extract(values, position, "listed_kth")
            kth = b.select(enabled, listed, kth, "kth")
            number = t.count(t.compare("OGE", values, kth, "reach"), "number")
        if p is None:
            return kth, b.f32(0.0)
        return self.list.decide(values, number, kth, p)

    # -- the result ---------------------------------------------------------------------------------------------

    def write(self, chunks: RowChunks, cut: ir.Value, removed: ir.Value) -> None:
        """Writes the stretch without what is below `cut`, nor the first `removed` elements equal to it."""
        carried = [] if self.op.p is None else [("ties_left", removed)]
        write = lambda chunk, *left: self.write_chunk(chunk, cut, *left, alone=chunks.is_one)
        chunks.each(carried, write, Stage("WriteFiltered", "The filtered row."))

    # -- one chunk ----------------------------------------------------------------------------------------------

    def write_chunk(
        self, chunk: Chunk, cut: ir.Value, ties_left: ir.Value | None = None, alone: bool = False
    ) -> list[ir.Value]:
        """Writes a chunk; how many ties are left to remove after that, unless it is the only one."""
        b = self.b
        reaches = lambda: self.t.compare("UGE", chunk.x, cut, "stays")  # unordered, so that NaN stays
        if self.op.p is None or ties_left is None:
            self.store(chunk, reaches())
            return []
        mask = tile_type(length_of(chunk.x), ir.IntegerType.get_signless(1))
        has_ties = b.cmpf("OGT", ties_left, b.f32(0.0), "has_ties")
        if self.plan.short:  # all of the row: one that equals `cut` stays
            equal = lambda: self.t.compare("OEQ", chunk.x, cut, "equal")
            (stays,) = b.if_(
                has_ties, ["stays"], lambda: [self.behind_ties(chunk, equal(), cut, ties_left)], lambda: [reaches()],
                types=[mask],
            )  # fmt: skip
            self.store(chunk, stays)
            return []
        if alone:
            some_go = lambda: self.without_ties(chunk, cut, ties_left)[:1]
            (stays,) = b.if_(has_ties, ["stays"], some_go, lambda: [reaches()], types=[mask])
            self.store(chunk, stays)
            return []

        def go_here():
            stays, here = self.without_ties(chunk, cut, ties_left)
            left = b.op(arith.subf, ties_left, here, name="left_after")
            return [stays, b.select(b.cmpf("OGT", left, b.f32(0.0)), left, b.f32(0.0), "ties_left")]

        stays, left = b.if_(
            has_ties, ["stays", "ties_left"], go_here, lambda: [reaches(), ties_left], types=[mask, b.f32_type]
        )  # fmt: skip
        self.store(chunk, stays)
        return [left]

    def without_ties(self, chunk: Chunk, cut: ir.Value, ties_left: ir.Value) -> list[ir.Value]:
        """Which elements of a chunk stay if the first `ties_left` elements equal to `cut` go; and how many those are
        that equal it (f32)."""
        t, b, x = self.t, self.b, chunk.x
        equal = t.compare("OEQ", x, cut, "equal")
        _, number = t.compress(x if chunk.raw is None else chunk.raw, equal, "equal_values")
        here = t.f32_of(number, "equal_here")
        (stays,) = b.if_(
            b.cmpf("OLE", here, ties_left, "all_go"), ["stays"], lambda: [t.compare("UGT", x, cut, "exceeds")],
            lambda: [self.behind_ties(chunk, equal, cut, ties_left)], types=[equal.type],
        )  # fmt: skip
        return [stays, here]

    def behind_ties(self, chunk: Chunk, equal: ir.Value, cut: ir.Value, ties: ir.Value) -> ir.Value:
        """Which elements of a chunk stay if the first `ties` of those that are `equal` to `cut` go; there are more."""
        t, b, x = self.t, self.b, chunk.x
        ramp = t.head(self.ramp, length_of(x))
        places, _ = t.compress(ramp, equal, "equal_places")
        last = t.index_of(b.op(arith.subf, ties, b.f32(1.0)), "last")
        after = t.compare("OGT", ramp, t.extract(places, last, "last_removed"), "after_last")
        return t.either(t.both(equal, after, "stays"), t.compare("UGT", x, cut, "exceeds"), "stays")

    def store(self, chunk: Chunk, stays: ir.Value) -> None:
        """Writes a chunk, -inf where the mask is not set."""
        b, lanes = self.b, length_of(chunk.x)
        source = chunk.x if chunk.raw is None else chunk.raw
        if source.type != tile_type(lanes, self.dtype):
            source = b.op(arith.truncf, tile_type(lanes, self.dtype), source, name="result")
        kept = b.select(stays, source, slice_of(b, self.neg_infs, 0, lanes), "kept")
        offset = self.t.plus(self.row_offset, chunk.column, "out_offset")
        b.build(TILE.classes["Store"], kept, self.out, offset, chunk.count, once=True)  # each chunk goes one way only

    def _number(self, value: float) -> ir.Value:
        return self.b.constant(self.dtype, value)
