"""`ascend.top_k_top_p_sample` on tiles: no sort of the row unless the nucleus is one.

What a row needs follows from its own k, p and m, at run time:

- *Rows of at most 1024 elements* are sorted whole, in one list.
- *A list* where top-k is on or one element stays: the k first elements in descending order (`leading.py`), of 128 or of
  1024 elements; top-p, min-p, the scores and the choice inside it.
- *Batches* where only top-p cuts: the row in descending order, piece by piece (`sample_nucleus.py`), until p is
  reached.
- *The row as it is* where nothing sorts: chunk by chunk, in order of index.

Ties go to the lower index everywhere. Sums are those of the list, or of the row in units of 512 positions.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith

from jascend.backends.ascend.targets import Target
from jascend.dialect import TILE

from ..builder import Stage, up
from .descending import FIRST, LISTED, Descending
from .keys import Keys
from .leading import LARGE, SMALL, Leading, Size
from .lowering import lowering
from .ops import Ops
from .row_chunks import NEG_INF, Chunk, RowChunks, length_of, slice_of
from .rows import each_round, each_row, length_refusal
from .sample_exchange import Exchange
from .sample_nucleus import Nucleus, Survivors
from .sample_probabilities import MASS_CHUNK, Mass, Probabilities
from .sample_results import Choice, Results
from .site import PART_UNIT, Candidate, Site

SUMMARY = "Top-k, top-p and min-p of every row, and an index sampled from what is left, or the distribution."
FILL = {"logits_idx": -1}
CANDIDATES = (Candidate(4096), Candidate(4096, load_ahead=False))
_LISTED_BYTES = 16 << 10  # of a chunk in the search for the first elements
_RESIDENT = 2  # as many chunks stay in the unified buffer

SHORT_ROW = 1024
MAX_K = 1024
_SORTED_LANES = (64, 128, 256, 384, 512, 1024)
_CHOICE = ("chosen", "last", "place")


def refusal(op: ir.OpView, target: Target) -> str | None:
    """Why no kernel is generated for an op; None if one is."""
    return length_refusal(op.logits)


@lowering("ascend.top_k_top_p_sample", summary=SUMMARY, refusal=refusal, fill=FILL, candidates=CANDIDATES)
def lower(op: ir.OpView, site: Site) -> None:
    """Builds the kernel body of one sampler: all rows of this core."""
    _Sampler(op, site).build()


@dataclass(frozen=True)
class Row:
    """What a row asks for; all but `p` and `m` are i1 but `number` (index).

    Attributes:
      row: its number.
      p, m: of top-p and min-p; `m` is None without min-p.
      use_k: top-k is on.
      one: p <= 0: the first element stays, with probability 1.
      use_p: 0 < p < 1.
      use_m: 0 < m < 1.
      first_only: m >= 1.
      in_order: survivors are in descending order.
      is_listed: all of them are in a list.
      number: how many elements the list must have.
    """

    row: ir.Value
    p: ir.Value
    m: ir.Value | None
    use_k: ir.Value
    one: ir.Value
    use_p: ir.Value
    use_m: ir.Value
    first_only: ir.Value
    in_order: ir.Value
    is_listed: ir.Value
    number: ir.Value


class _Sampler:
    def __init__(self, op, site: Site):
        self.op, self.site, self.producers, self.b = op, site, site.producers, site.b
        logits = ir.RankedTensorType(op.logits.type)
        self.vocabulary, self.dtype = logits.get_dim_size(1), logits.element_type
        self.is_short = self.vocabulary <= SHORT_ROW
        # The first element in descending order is the most probable one: the others matter to nobody.
        self.first_suffices = op.q is None and not op.is_need_logits and not op.is_need_sample_result
        self.chunk = site.tile
        self.parts = 1 if self.is_short else site.parts_of_row(logits)
        if self.is_short:
            self.chunk = next(lanes for lanes in _SORTED_LANES if lanes >= self.vocabulary)
        self.part_length = up(-(-self.vocabulary // self.parts), PART_UNIT)
        self.is_load = site.producers.is_load(op.logits)
        self.widest = _LISTED_BYTES // (4 if str(self.dtype) == "f32" else 2) if self.is_load else self.chunk
        self.listed_chunk = min(self.widest, self.part_length)
        self.producers.tile = self.chunk
        site.deal_out(next(iter(site.outputs.values())))

    # -- the kernel ---------------------------------------------------------------------------------------------

    def build(self) -> None:
        b, parts = self.b, self.parts
        share = b.build(TILE.classes["BlockRows"], self.site.rows, results=[b.index_type] * 4, parts=parts)
        self.t = Ops(b)
        self.keys = Keys(b, self.dtype)
        self.length = b.index(self.vocabulary, "row_length")
        self.ramp = self.t.ramp(self.chunk, b.f32_type, "ramp")
        self.results = Results(self.op, self.site, self.t, self.ramp, self.vocabulary)
        self.probabilities = Probabilities(
            self.t,
            self.chunks,
            self.chunk,
            self.vocabulary,
            self.is_short,
            self.op.input_is_logits,
            self.op.min_ps is not None,
        )
        if not self.is_short:
            self.lane = self.t.ramp(max(self.chunk, self.widest), ir.IntegerType.get_signless(16), "lane")
            batches = FIRST if self.results.is_index_alone else LISTED
            descending = Descending(self.t, self.keys, self.ramp, self.lane, self.vocabulary, batches)
            self.nucleus = Nucleus(self.t, descending, self.probabilities, self.results, self.ramp, parts)
        if parts == 1:
            each_row(self.t, share, self.one_row)
            return
        self.exchange = Exchange(self.t, share.part, parts, self.site.target.vector_cores)
        self.unit_facts = self.probabilities.unit_facts(self.exchange.meeting)
        self.part = share.part
        each_round(self.t, self.site, share, self.split_row)

    def chunks(self, chunk: int) -> RowChunks:
        """The row at hand."""
        return self.stretch(self.t.zero, self.length, self.vocabulary, chunk)

    def stretch(self, start: ir.Value, end: ir.Value, length: int, chunk: int) -> RowChunks:
        return RowChunks(
            self.b, self.producers, self.op.logits, start, end, chunk=chunk, length=length, ramp=self.ramp_of(chunk)
        )

    def batch_chunks(self) -> RowChunks:
        """The row in chunks as long as a batch of the nucleus."""
        return self.chunks(self.nucleus.descending.batch)

    def wide_chunks(self) -> RowChunks:
        """The row in chunks to collect from."""
        chunk = max(self.chunk, self.widest)
        return RowChunks(
            self.b, self.producers, self.op.logits, self.t.zero, self.length, chunk=chunk, length=self.vocabulary,
            ramp=self.ramp_of(chunk), padding=float("nan"),
        )  # fmt: skip

    def ramp_of(self, chunk: int) -> ir.Value | None:
        """By which chunks are padded; those that are read as they are need none."""
        if chunk <= length_of(self.ramp):
            return slice_of(self.b, self.ramp, 0, chunk)
        return None if self.is_load else self.t.ramp(chunk, self.b.f32_type, "long_ramp")

    def one_row(self, number: ir.Value) -> list[ir.Value]:
        b = self.b
        row = self.enter(number)

        def in_order():
            chosen, last, place = self.short_row(row) if self.is_short else self.long_row(row)
            self.write_logits(self.chunks(self.chunk), last, place)
            return [chosen]

        (chosen,) = b.if_(
            row.in_order, ["chosen"], in_order, lambda: self.as_it_is(row), types=[b.i32_type],
            about=Stage("SampleSorted", "The row in descending order, or as it is.", "SampleInOrder"),
        )  # fmt: skip
        self.write_choice(row, chosen)
        return []

    def write_choice(self, row: Row, chosen: ir.Value) -> None:
        if not self.op.is_need_sample_result:
            self.results.choose(chosen, row.row)

    def write_logits(self, chunks: RowChunks, last: ir.Value, place: ir.Value) -> None:
        """Writes the logits of survivors in a stretch of a row in descending order."""
        if self.op.is_need_logits:
            self.results.write_leading_logits(chunks, last, place)

    def choice_types(self) -> list[ir.Type]:
        return [self.b.i32_type, self.b.f32_type, self.b.f32_type]

    def enter(self, number: ir.Value) -> Row:
        """Starts a row: what it asks for."""
        t, b, op = self.t, self.b, self.op
        self.producers.tile = self.chunk
        pieces = [(op.logits, ("row", "col"))] + ([(op.q, ("row", "col"))] if op.q is not None else [])
        self.producers.enter_row(number, pieces)
        self.results.enter_row(number)
        k = self.producers.row_scalar(op.top_k, ("row",), "row_k")
        p = self.producers.row_scalar(op.top_p, ("row",), "row_p")
        most = min(self.vocabulary, -(-op.ks_max // 8) * 8, MAX_K)
        use_k = t.both(b.cmpi("sge", k, b.i32(1)), b.cmpi("sle", k, b.i32(most)), "use_k")
        one = b.cmpf("OLE", p, b.f32(0.0), "one")
        use_p = t.both(b.cmpf("OGT", p, b.f32(0.0)), b.cmpf("OLT", p, b.f32(1.0)), "use_p")
        m, use_m, first_only = None, t.truth(False), t.truth(False)
        if op.min_ps is not None:
            m = self.producers.row_scalar(op.min_ps, ("row",), "row_m")
            use_m = t.both(b.cmpf("OGT", m, b.f32(0.0)), b.cmpf("OLT", m, b.f32(1.0)), "use_m")
            first_only = b.cmpf("OGE", m, b.f32(1.0), "first_only")
        listed = t.one
        if not self.first_suffices:
            listed = b.select(t.both(use_k, t.opposite(one)), t.index_of(k), t.one, "number")
        is_listed = t.either(use_k, one, "is_listed")
        in_order = t.either(t.either(is_listed, first_only), use_p, "in_order")
        if self.is_short or not op.is_need_sample_result:
            # Elsewhere the first one's probability takes the mass of the row.
            is_listed = t.either(is_listed, first_only, "is_listed")
        return Row(
            number,
            p,
            m,
            use_k,
            one,
            use_p,
            use_m,
            first_only,
            in_order,
            in_order if self.first_suffices else is_listed,
            listed,
        )

    # -- rows that are one list ---------------------------------------------------------------------------------

    def short_row(self, row: Row) -> list[ir.Value]:
        t, b = self.t, self.b
        number = b.select(row.is_listed, row.number, self.length, "listed")
        # The first element alone keeps the probability that it has in the row.
        of_list = t.either(row.use_k, row.one)
        weighed = b.select(of_list, row.number, self.length, "weighed")
        order = t.ramp(self.chunk, b.i32_type, "order")
        x = self.probabilities.whole().x
        values, indices = t.unpacked(t.sorted(x, order, "sorted"))
        return self.decide(row, values, indices, number, weighed, None)

    # -- decisions in a list ------------------------------------------------------------------------------------

    def decide(self, row: Row, values, indices, number, weighed, mass) -> list[ir.Value]:
        """Top-p, min-p and the choice among the first `number` elements of a list in descending order.

        Args:
          weighed: how many of the list's elements the probabilities refer to; None: `mass` is the sum of weights.

        Returns: the chosen index, and the value and position (f32) of the last survivor.
        """
        t, b, op, lanes = self.t, self.b, self.op, length_of(values)
        if self.first_suffices:
            return [t.extract(indices, t.zero, "first_index"), b.f32(0.0), b.f32(0.0)]
        rank = slice_of(b, self.ramp, 0, lanes)
        first = t.extract(values, t.zero, "first_value")
        inside = t.compare("OLT", rank, t.f32_of(number), "is_listed")
        with self.b.stage(Stage("WeighList", "Probabilities of the elements of the list.")):
            probability = values
            if op.input_is_logits:
                weights = self.probabilities.weights(values, first)
                if weighed is not None:
                    counted = t.compare("OLT", rank, t.f32_of(weighed), "is_weighed")
                    mass = t.reduced("add", t.where(counted, weights, 0.0, "counted_weights"), "mass")
                probability = b.op(arith.divf, weights, b.splat(mass, lanes), name="probability")
                # p <= 0 gives the first one the probability 1, also where its weight is NaN.
                alone = b.select(row.one, b.f32(1.0), b.f32(0.0), "alone")
                probability = t.where(t.compare("OGE", rank, alone, "has_weight"), probability, 1.0, "probability")
            probability = t.where(inside, probability, 0.0, "probability")
        number = self.cut(row, probability, number)
        chosen = Choice(b.f32(NEG_INF), t.extract(indices, t.zero, "first_index"))
        if op.q is not None or op.is_need_sample_result:
            chosen = self.results.take(probability, indices, number, t.zero, chosen)
        self.results.fill_up(number)
        last = t.minus(number, t.one, "last_rank")
        if not op.is_need_logits:
            return [chosen.index, b.f32(0.0), b.f32(0.0)]
        place = b.op(arith.sitofp, b.f32_type, t.extract(indices, last, "last_index"), name="place")
        return [chosen.index, t.extract(values, last, "last"), place]

    def cut(self, row: Row, probability: ir.Value, number: ir.Value) -> ir.Value:
        """How many survive top-p and min-p, of `number` elements with descending probabilities."""
        t, b = self.t, self.b

        def nucleus():
            sums = t.running_sums(probability, "running_sums")
            reached = t.find_first(t.compare("OGE", sums, row.p, "reaches_p"), "crossing")
            return [t.smaller(number, t.plus(reached, t.one), "number")]

        (number,) = b.if_(
            row.use_p, ["number"], nucleus, lambda: [number], types=[b.index_type], about=Stage("CutAtTopP", "Top-p.")
        )
        if row.m is not None:

            def relative():
                bound = b.op(arith.mulf, t.extract(probability, t.zero, "most"), row.m, name="bound")
                below = t.find_first(t.compare("OLT", probability, bound, "is_below"), "first_below")
                return [t.smaller(number, t.larger(below, t.one), "number")]

            (number,) = b.if_(
                row.use_m,
                ["number"],
                relative,
                lambda: [number],
                types=[b.index_type],
                about=Stage("CutAtMinP", "Min-p."),
            )
        alone = t.either(row.one, row.first_only, "alone")
        return b.select(alone, t.one, number, "survivors")

    # -- rows as they are ---------------------------------------------------------------------------------------

    def as_it_is(self, row: Row) -> list[ir.Value]:
        """A row in which nothing sorts: survivors in order of index. Returns the chosen index."""
        t, b = self.t, self.b
        mass = self.probabilities.mass()
        if row.m is None:
            return self.all_of_it(mass)
        bound = self.probabilities.least(row.m, mass)
        cuts = t.both(row.use_m, b.cmpf("OEQ", bound, bound), "cuts")
        return b.if_(
            cuts, ["chosen"], lambda: self.what_reaches(bound, mass),
            lambda: self.all_of_it(mass), types=[b.i32_type],
        )  # fmt: skip

    def all_of_it(self, mass: Mass) -> list[ir.Value]:

        def body(chunk: Chunk, best, chosen):
            probability = self.probabilities.of(chunk.x, mass)
            if self.op.is_need_logits:
                self.results.write_logits(chunk, None)
            indices = self.indices(self.ramp, chunk.column)
            return self.results.take(probability, indices, chunk.count, chunk.column, Choice(best, chosen)).parts()

        carried = list(zip(Choice.NAMES, self.results.nothing_chosen().parts()))
        _, chosen = self.chunks(self.chunk).each(
            carried, body, Stage("TakeInOrder", "All elements, in order of index.")
        )
        return [chosen]

    def what_reaches(self, bound: ir.Value, mass: Mass) -> list[ir.Value]:
        """What min-p leaves, packed."""
        t, b, chunks = self.t, self.b, self.chunks(self.chunk)
        alone = chunks.is_one or None

        def body(chunk: Chunk, _, __, rank, best, chosen):
            probability = self.probabilities.of(chunk.x, mass)
            inside = t.compare("OLT", self.ramp, t.f32_of(chunk.count), "inside")
            stays = t.both(t.compare("OGE", probability, bound, "reaches"), inside, "stays")
            if self.op.is_need_logits:
                self.results.write_logits(chunk, stays)
            packed, number = t.compress(probability, stays, "packed", readable=alone)
            packed_places, _ = t.compress(self.ramp, stays, "packed_places", readable=alone)

            def take():
                indices = self.indices(packed_places, chunk.column)
                return self.results.take(packed, indices, number, rank, Choice(best, chosen)).parts()

            some = b.cmpi("sgt", number, t.zero)
            best, chosen = b.if_(some, Choice.NAMES, take, lambda: [best, chosen], types=[b.f32_type, b.i32_type])
            return [packed, packed_places, t.plus(rank, number, "rank"), best, chosen]

        # What is packed goes from chunk to chunk, so that the lanes behind it hold something.
        carried = [(name, t.filled(0.0, self.chunk, name)) for name in ("packed", "packed_places")]
        carried += [("rank", t.zero), *zip(Choice.NAMES, self.results.nothing_chosen().parts())]
        _, _, rank, _, chosen = chunks.each(
            carried, body, Stage("TakeMinPInOrder", "What min-p leaves, in order of index.")
        )
        self.results.fill_up(rank)
        return [chosen]

    def indices(self, places: ir.Value, column: ir.Value) -> ir.Value:
        """Positions in the row of places in a chunk."""
        return self.t.to_i32(self.t.in_row(places, column, "positions"), "indices")

    # -- long rows ----------------------------------------------------------------------------------------------

    def long_row(self, row: Row) -> list[ir.Value]:
        t, b = self.t, self.b

        def listed():
            return self.by_size(row, lambda size: self.decide_pairs(row, self.leading(size, t.zero, self.length, row)))

        if self.first_suffices:
            return listed()

        def from_nucleus():
            return self.decided(self.nucleus.of_row(row, self.batch_chunks(), self.wide_chunks()))

        about = Stage("SampleList", "A list, or the nucleus of the whole row.", "SampleNucleus")
        return b.if_(row.is_listed, _CHOICE, listed, from_nucleus, types=self.choice_types(), about=about)

    def decided(self, found: Survivors) -> list[ir.Value]:
        """The choice of a row whose survivors are known."""
        nobody_asks = self.b.f32(0.0)
        if found.number is not None:
            self.results.fill_up(self.t.index_of(found.number))
        last, place = (nobody_asks if value is None else value for value in (found.last, found.place))
        return [found.chosen, last, place]

    def by_size(self, row: Row, build) -> list[ir.Value]:
        """A short list where it is long enough."""
        b = self.b
        if self.first_suffices:
            return build(SMALL)
        is_small = b.cmpi("sle", row.number, b.index(SMALL.listed), "is_small")
        about = Stage("DecideShortList", "The first elements of the row.", "DecideLongList")
        return b.if_(
            is_small, _CHOICE, lambda: build(SMALL), lambda: build(LARGE), types=self.choice_types(), about=about
        )

    def leading(self, size: Size, start: ir.Value, end: ir.Value, row: Row) -> ir.Value:
        """The first elements of this core's stretch of the row."""
        chunk, length = self.listed_chunk, min(self.part_length, self.vocabulary)
        chunks = RowChunks(
            self.b, self.producers, self.op.logits, start, end, chunk=chunk, length=length, ramp=self.ramp_of(chunk),
            resident=self.is_load and length <= _RESIDENT * chunk,
        )  # fmt: skip
        return Leading(self.t, self.keys, self.ramp, self.lane, size).pairs(chunks, row.number)

    def decide_pairs(self, row: Row, pairs: ir.Value) -> list[ir.Value]:
        return self.decide(row, *self.t.unpacked(pairs), row.number, row.number, None)

    # -- rows that cores share ----------------------------------------------------------------------------------

    def split_row(self, row_number: ir.Value, turn: ir.Value, active: ir.Value) -> None:
        """This core's part of a row: its list, or its bands; what all parts found; and its stretch of the logits."""
        t, b = self.t, self.b
        row = self.enter(row_number)
        length = b.index(self.part_length)
        start = b.op(arith.muli, self.part, length, name="part_start")
        end = t.smaller(t.plus(start, length), self.length, "part_end")
        chunks = self.stretch(start, end, self.part_length, self.chunk)
        is_first = b.cmpi("eq", self.part, t.zero, "is_first")
        searches = t.both(t.both(active, row.in_order), t.opposite(row.is_listed), "searches")

        def give_list():
            def build(size):
                self.exchange.give_list(self.leading(size, start, end, row), turn)
                return self.no_choice()

            self.by_size(row, build)
            return []

        def whole():
            (chosen,) = self.as_it_is(row)
            self.write_choice(row, chosen)
            return []

        self.results.is_writer = None
        b.if_(
            t.both(active, row.is_listed),
            [],
            give_list,
            about=Stage("FirstOfPart", "The first elements of this part, for all cores of the group."),
        )
        sample = None if self.first_suffices else self.give_mass(searches, start, end, turn)
        as_is = t.both(t.both(active, is_first), t.opposite(row.in_order), "is_as_it_is")
        b.if_(as_is, [], whole, about=Stage("SampleInOrder", "The row as it is, by one core."))
        b.build(TILE.classes["SyncAll"])

        self.results.is_writer = is_first
        takes_part = active if self.op.is_need_logits else t.both(active, is_first)

        def listed():
            return self.by_size(row, lambda size: self.decide_pairs(row, self.exchange.take_list(size, turn)))

        found = b.if_(
            t.both(takes_part, row.is_listed),
            _CHOICE,
            listed,
            self.no_choice,
            types=self.choice_types(),
            about=Stage("SampleLists", "What all parts found."),
        )
        if sample is not None:
            found = b.if_(
                self.exchange.any_searches(turn), _CHOICE,
                lambda: self.split_nucleus(row, sample, turn, searches, t.both(takes_part, searches), found),
                lambda: list(found),
                types=self.choice_types(),
                about=Stage(
                    "SearchNucleus", "All cores go along where a row of this round is searched for its nucleus."
                ),
            )  # fmt: skip

        def write():
            chosen, last, place = found
            self.write_choice(row, chosen)
            self.write_logits(chunks, last, place)
            return []

        b.if_(t.both(takes_part, row.in_order), [], write)

    def give_mass(self, searches: ir.Value, start: ir.Value, end: ir.Value, turn: ir.Value) -> ir.Value:
        """What this core's part of a row weighs, for all cores of the group, if the nucleus is searched for. Returns
        the sample."""
        t, b = self.t, self.b
        descending = self.nucleus.descending
        self.exchange.announce(searches, turn)

        def weigh():
            sample = descending.sample(self.batch_chunks())
            part = self.stretch(start, end, self.part_length, MASS_CHUNK)
            self.probabilities.give_mass(part, t.extract(sample, t.zero, "near"), self.unit_facts)
            return [sample]

        blank = t.filled(0.0, descending.sampled, "sample")
        about = Stage("WeighPart", "What this part weighs, for all cores of the group.")
        return b.if_(searches, ["sample"], weigh, lambda: [blank], types=[blank.type], about=about)[0]

    def split_nucleus(
        self, row: Row, sample: ir.Value, turn: ir.Value, searches: ir.Value, takes: ir.Value, otherwise: list[ir.Value]
    ) -> list[ir.Value]:
        """The nucleus in the bands of this part; what all parts found, where this core `takes` that (i1)."""
        t, b = self.t, self.b

        def give():
            mass = self.probabilities.shared_mass(t.extract(sample, t.zero, "near"), self.unit_facts)
            chunks = self.batch_chunks(), self.wide_chunks()
            self.exchange.give(self.nucleus.survivors(row, *chunks, sample, mass, self.part), turn)
            return []

        def take():
            return self.decided(self.exchange.take(turn, self.nucleus.asked))

        is_writer, self.results.is_writer = self.results.is_writer, None
        b.if_(searches, [], give, about=Stage("SearchPart", "The nucleus in the bands of this part."))
        b.build(TILE.classes["SyncAll"])
        self.results.is_writer = is_writer
        return b.if_(takes, _CHOICE, take, lambda: list(otherwise), types=self.choice_types())

    def no_choice(self) -> list[ir.Value]:
        b = self.b
        return [b.i32(0), b.f32(0.0), b.f32(0.0)]
