"""`ascend.top_k_top_p_sample` on tiles: no sort of the row unless the nucleus is one.

What a row needs follows from its own k, p and m, at run time:

- *Rows of at most 1024 elements* are sorted whole, in one list.
- *A list* where top-k is on or one element stays: the k first elements in descending order (`leading.py`), of 128 or of
  1024 elements; top-p, min-p, the scores and the choice inside it.
- *Batches* where only top-p cuts: the row in descending order, piece by piece (`sample_batches.py`), until p is reached.
- *The row as it is* where nothing sorts: chunk by chunk, in order of index.

Ties go to the lower index everywhere. Sums are those of the list, or of the row in blocks of 1024 positions.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith

from jascend.backends.ascend.targets import Target
from jascend.dialect import TILE

from ..builder import tile_type
from .descending import Descending
from .keys import Keys
from .leading import LARGE, SMALL, Leading
from .ops import Ops
from .row_chunks import NEG_INF, Chunk, RowChunks, length_of, slice_of, with_slice
from .sample_results import Choice, Results
from .site import Candidate, Site

SUMMARY = "Top-k, top-p and min-p of every row, and an index sampled from what is left, or the distribution."
FILL = {"logits_idx": -1}
CANDIDATES = (Candidate(4096), Candidate(4096, load_ahead=False))

MAX_VOCABULARY = 1 << 20
SHORT_ROW = 1024
MAX_K = 1024
_SORTED_LANES = (64, 128, 256, 384, 512, 1024)
_PIECE = 1024  # elements of the running sums of a nucleus
_RESULTS = (*Choice.NAMES, "last", "place")
_UNIT = 1024  # elements of one sum of weights
_MASS_CHUNK = 8 * _UNIT
_LOWEST = -3.0e38  # stands for the maximum of a unit that has none


def refusal(op: ir.OpView, target: Target) -> str | None:
    """Why no kernel is generated for an op; None if one is."""
    logits = ir.RankedTensorType(op.logits.type)
    if logits.is_dynamic_dim(1) or not 0 < logits.get_dim_size(1) <= MAX_VOCABULARY:
        return f"is generated for a fixed row length of 1 to {MAX_VOCABULARY}"
    return None


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
        if self.is_short:
            self.chunk = next(lanes for lanes in _SORTED_LANES if lanes >= self.vocabulary)
        self.producers.tile = self.chunk
        site.deal_out(next(iter(site.outputs.values())))

    # -- the kernel ---------------------------------------------------------------------------------------------

    def build(self) -> None:
        b = self.b
        share = b.build(TILE.classes["BlockRows"], self.site.rows, results=[b.index_type] * 4)
        self.t = Ops(b)
        self.keys = Keys(b, self.dtype)
        self.length = b.index(self.vocabulary, "row_length")
        self.ramp = self.t.ramp(self.chunk, b.f32_type, "ramp")
        self.results = Results(self.op, self.site, self.t, self.ramp, self.vocabulary)
        b.for_(share.first, share.last, self.t.one, [], self.one_row, induction="row", about="The rows of this core.")

    def chunks(self, chunk: int) -> RowChunks:
        ramp = slice_of(self.b, self.ramp, 0, chunk) if chunk <= length_of(self.ramp) else None
        return RowChunks(
            self.b, self.producers, self.op.logits, self.t.zero, self.length, chunk=chunk, length=self.vocabulary, ramp=ramp
        )

    def one_row(self, number: ir.Value) -> list[ir.Value]:
        t, b = self.t, self.b
        row = self.enter(number)
        in_order = t.either(t.either(row.use_k, row.one), t.either(row.use_p, row.first_only), "in_order")
        if self.is_short:
            chosen, last, place = b.if_(
                in_order, ["chosen", "last", "place"], lambda: self.short_row(row), lambda: self.as_it_is(row),
                types=self.choice_types(), about="The row in descending order, or as it is.",
            )  # fmt: skip
        else:
            chosen, last, place = self.long_row(row, in_order)
        if not self.op.is_need_sample_result:
            self.results.choose(chosen, row.row)
        if self.op.is_need_logits:

            def write():
                self.results.write_leading_logits(self.chunks(self.chunk), last, place)
                return []

            b.if_(in_order, [], write)
        return []

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
        return Row(number, p, m, use_k, one, use_p, use_m, first_only, listed)

    # -- rows that are one list ---------------------------------------------------------------------------------

    def short_row(self, row: Row) -> list[ir.Value]:
        t, b = self.t, self.b
        own = t.either(row.use_k, t.either(row.one, row.first_only))
        number = b.select(own, row.number, self.length, "listed")
        # The first element alone keeps the probability that it has in the row.
        of_list = t.either(row.use_k, row.one)
        weighed = b.select(of_list, row.number, self.length, "weighed")
        order = t.ramp(self.chunk, b.i32_type, "order")
        x = self.whole(self.chunks(self.chunk)).x
        values, indices = t.unpacked(t.sorted(x, order, "sorted"))
        return self.decide(row, values, indices, number, weighed, None)

    def whole(self, chunks: RowChunks) -> Chunk:
        """A row of one chunk."""
        return chunks.at(self.t.zero, self.length)

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
        probability = values
        if op.input_is_logits:
            weights = self.weights(values, first)
            if weighed is not None:
                counted = t.compare("OLT", rank, t.f32_of(weighed), "is_weighed")
                mass = t.reduced("add", t.where(counted, weights, 0.0, "counted_weights"), "mass")
            probability = b.op(arith.divf, weights, b.splat(mass, lanes), name="probability")
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

    def weights(self, values: ir.Value, maximum: ir.Value) -> ir.Value:
        b = self.b
        shift = b.op(arith.negf, maximum, name="minus_maximum")
        return b.exp(b.op(arith.addf, values, b.splat(shift, length_of(values)), name="shifted"), "weights")

    def cut(self, row: Row, probability: ir.Value, number: ir.Value) -> ir.Value:
        """How many survive top-p and min-p, of `number` elements with descending probabilities."""
        t, b = self.t, self.b

        def nucleus():
            sums = t.running_sums(probability, "running_sums")
            reached = t.find_first(t.compare("OGE", sums, row.p, "reaches_p"), "crossing")
            return [t.smaller(number, t.plus(reached, t.one), "number")]

        (number,) = b.if_(row.use_p, ["number"], nucleus, lambda: [number], types=[b.index_type], about="Top-p.")
        if row.m is not None:

            def relative():
                bound = b.op(arith.mulf, t.extract(probability, t.zero, "most"), row.m, name="bound")
                below = t.find_first(t.compare("OLT", probability, bound, "is_below"), "first_below")
                return [t.smaller(number, t.larger(below, t.one), "number")]

            (number,) = b.if_(row.use_m, ["number"], relative, lambda: [number], types=[b.index_type], about="Min-p.")
        alone = t.either(row.one, row.first_only, "alone")
        return b.select(alone, t.one, number, "survivors")

    # -- rows as they are ---------------------------------------------------------------------------------------

    def as_it_is(self, row: Row) -> list[ir.Value]:
        """A row in which nothing sorts: survivors in order of index."""
        t, b = self.t, self.b
        maximum, mass = self.mass()
        bound = self.relative_bound(row, maximum, mass)
        if bound is None:
            return self.all_of_it(maximum, mass)
        cuts = t.both(row.use_m, b.cmpf("OEQ", bound, bound), "cuts")
        return b.if_(
            cuts, ["chosen", "last", "place"], lambda: self.what_reaches(bound, maximum, mass),
            lambda: self.all_of_it(maximum, mass), types=self.choice_types(),
        )  # fmt: skip

    def relative_bound(self, row: Row, maximum: ir.Value, mass: ir.Value) -> ir.Value | None:
        """The least probability that min-p leaves."""
        t, b = self.t, self.b
        if row.m is None:
            return None
        most = maximum
        if self.op.input_is_logits:
            most = t.extract(b.op(arith.divf, t.filled(1.0, 8, "one"), b.splat(mass, 8), name="most"), t.zero, "most")
        return b.op(arith.mulf, most, row.m, name="bound")

    def all_of_it(self, maximum: ir.Value, mass: ir.Value) -> list[ir.Value]:
        t, b = self.t, self.b

        def body(chunk: Chunk, best, chosen):
            probability = self.probability(chunk.x, maximum, mass)
            if self.op.is_need_logits:
                self.results.write_logits(chunk, None)
            indices = self.indices(self.ramp, chunk.column)
            return self.results.take(probability, indices, chunk.count, chunk.column, Choice(best, chosen)).parts()

        carried = list(zip(Choice.NAMES, self.results.nothing_chosen().parts()))
        _, chosen = self.chunks(self.chunk).each(carried, body, "All elements, in order of index.")
        return [chosen, b.f32(0.0), b.f32(0.0)]

    def what_reaches(self, bound: ir.Value, maximum: ir.Value, mass: ir.Value) -> list[ir.Value]:
        """What min-p leaves, packed."""
        t, b = self.t, self.b

        def body(chunk: Chunk, _, __, rank, best, chosen):
            probability = self.probability(chunk.x, maximum, mass)
            inside = t.compare("OLT", self.ramp, t.f32_of(chunk.count), "inside")
            stays = t.both(t.compare("OGE", probability, bound, "reaches"), inside, "stays")
            if self.op.is_need_logits:
                self.results.write_logits(chunk, stays)
            packed, number = t.compress(probability, stays, "packed")
            packed_places, _ = t.compress(self.ramp, stays, "packed_places")

            def take():
                indices = self.indices(packed_places, chunk.column)
                return self.results.take(packed, indices, number, rank, Choice(best, chosen)).parts()

            some = b.cmpi("sgt", number, t.zero)
            best, chosen = b.if_(some, Choice.NAMES, take, lambda: [best, chosen], types=[b.f32_type, b.i32_type])
            return [packed, packed_places, t.plus(rank, number, "rank"), best, chosen]

        # What is packed goes from chunk to chunk, so that the lanes behind it hold something.
        carried = [(name, t.filled(0.0, self.chunk, name)) for name in ("packed", "packed_places")]
        carried += [("rank", t.zero), *zip(Choice.NAMES, self.results.nothing_chosen().parts())]
        _, _, rank, _, chosen = self.chunks(self.chunk).each(carried, body, "What min-p leaves, in order of index.")
        self.results.fill_up(rank)
        return [chosen, b.f32(0.0), b.f32(0.0)]

    def probability(self, x: ir.Value, maximum: ir.Value, mass: ir.Value) -> ir.Value:
        if not self.op.input_is_logits:
            return x
        return self.b.op(arith.divf, self.weights(x, maximum), self.b.splat(mass, length_of(x)), name="probability")

    def indices(self, places: ir.Value, column: ir.Value) -> ir.Value:
        """Positions in the row of places in a chunk."""
        t, b = self.t, self.b
        places = b.op(arith.addf, places, b.splat(t.f32_of(column), length_of(places)), name="positions")
        return b.op(arith.fptosi, tile_type(length_of(places), b.i32_type), places, name="indices")

    # -- the mass of a row --------------------------------------------------------------------------------------

    def mass(self) -> tuple[ir.Value, ir.Value]:
        """The maximum of a row, and the sum of its weights; of probabilities the maximum only."""
        t, b = self.t, self.b
        if self.is_short:
            x = self.whole(self.chunks(self.chunk)).x
            maximum = t.reduced("max", x, "maximum")
            if not self.op.input_is_logits:
                return maximum, b.f32(1.0)
            return maximum, t.reduced("add", self.weights(x, maximum), "mass")
        chunks = self.chunks(_MASS_CHUNK)
        units = max(64, 1 << (-(-self.vocabulary // _UNIT) - 1).bit_length())
        unit_type = tile_type(_MASS_CHUNK // _UNIT, b.f32_type)

        def highest_of(chunk: Chunk) -> tuple[ir.Value, ir.Value]:
            unit = b.op(arith.shrsi, chunk.column, b.index(_UNIT.bit_length() - 1), name="unit")
            return t.reduce("max", chunk.x, _UNIT, "unit_maxima"), unit

        if not self.op.input_is_logits:

            def maxima_of(chunk: Chunk, maxima):
                highest, unit = highest_of(chunk)
                return [with_slice(b, maxima, highest, unit, "maxima")]

            (maxima,) = chunks.each([("maxima", t.filled(NEG_INF, units))], maxima_of, "The largest probability.")
            return t.reduced("max", maxima, "maximum"), b.f32(1.0)

        def body(chunk: Chunk, maxima, sums):
            highest, unit = highest_of(chunk)
            highest = b.op(arith.maximumf, highest, t.filled(_LOWEST, length_of(highest)), name="unit_maxima")
            shift = b.op(arith.negf, highest, name="shift")
            shift = b.build(TILE.classes["Broadcast"], shift, results=[chunk.x.type], width=_UNIT, name="shifts").value
            weights = b.exp(b.op(arith.addf, chunk.x, shift, name="shifted"), "weights")
            mass = t.reduce("add", weights, _UNIT, "unit_sums")
            return [with_slice(b, maxima, highest, unit, "maxima"), with_slice(b, sums, mass, unit, "sums")]

        carried = [("maxima", t.filled(_LOWEST, units)), ("sums", t.filled(0.0, units))]
        maxima, sums = chunks.each(carried, body, "Weights in blocks of 1024, each relative to its own maximum.")
        maximum = t.reduced("max", maxima, "maximum")
        scales = self.weights(maxima, maximum)
        return maximum, t.reduced("add", b.op(arith.mulf, sums, scales, name="scaled_sums"), "mass")

    # -- long rows ----------------------------------------------------------------------------------------------

    def long_row(self, row: Row, in_order: ir.Value) -> list[ir.Value]:
        t, b = self.t, self.b
        chunks = self.chunks(self.chunk)

        def in_list(size):
            def build():
                pairs = Leading(t, self.keys, self.ramp, size).pairs(chunks, row.number)
                values, indices = t.unpacked(pairs)
                return self.decide(row, values, indices, row.number, row.number, None)

            return build

        is_small = b.cmpi("sle", row.number, b.index(SMALL.listed), "is_small")
        names, types = ["chosen", "last", "place"], self.choice_types()
        listed = lambda: b.if_(is_small, names, in_list(SMALL), in_list(LARGE), types=types, about="The first elements of the row.")
        if self.first_suffices:
            return b.if_(in_order, names, in_list(SMALL), lambda: self.as_it_is(row), types=types)
        is_listed = t.either(row.use_k, t.either(row.one, row.first_only), "is_listed")
        other = lambda: b.if_(
            in_order, names, lambda: self.nucleus(row, chunks), lambda: self.as_it_is(row), types=types,
            about="The nucleus of the whole row, or the row as it is.",
        )  # fmt: skip
        return b.if_(is_listed, names, listed, other, types=types, about="A list, or all of the row.")

    # -- a nucleus of the whole row -----------------------------------------------------------------------------

    def nucleus(self, row: Row, chunks: RowChunks) -> list[ir.Value]:
        """A row that top-p cuts, and top-k does not."""
        t, b = self.t, self.b
        maximum, mass = self.mass()
        bound = self.relative_bound(row, maximum, mass)
        # A row without a mass keeps everything.
        undefined = b.cmpf("UNE", mass, mass, "is_undefined")
        batches = Descending(t, self.keys, self.ramp, self.vocabulary)

        def batch(values, indices, number, rank, before, *results):
            def goes_on(going, start, *_):
                return t.both(b.cmpi("ne", going, t.zero), b.cmpi("slt", start, number))

            def piece(_, start, rank, before, *results):
                some = t.smaller(t.minus(number, start), b.index(_PIECE), "some")
                part = [slice_of(b, x, start, _PIECE) for x in (values, indices)]
                going, *state = self.piece(row, *part, some, rank, before, results, (maximum, mass, bound))
                return [going, t.plus(start, b.index(_PIECE), "start"), *state]

            names = ["rank", "before", *_RESULTS]
            carried = [("going", t.one), ("start", t.zero), *zip(names, [rank, before, *results])]
            going, _, *state = b.while_(carried, goes_on, piece, about="Running sums, by 1024 elements.")
            return [going, *state]

        carried = [("rank", t.zero), ("before", b.f32(0.0))]
        carried += zip(_RESULTS, [*self.results.nothing_chosen().parts(), b.f32(NEG_INF), b.f32(float(self.vocabulary))])
        rank, _, _, chosen, last, place = batches.each(chunks, carried, batch)
        self.results.fill_up(rank)
        return [
            chosen, b.select(undefined, b.f32(NEG_INF), last, "last"),
            b.select(undefined, b.f32(float(self.vocabulary)), place, "place"),
        ]  # fmt: skip

    def piece(self, row: Row, values, indices, number, rank, before, results, of_row) -> list[ir.Value]:
        """The next elements in descending order: whether to go on, the rank after them, the sum up to there, and the
        results so far."""
        t, b = self.t, self.b
        maximum, mass, bound = of_row
        probability = self.probability(values, maximum, mass)
        inside = t.compare("OLT", slice_of(b, self.ramp, 0, _PIECE), t.f32_of(number), "inside")
        probability = t.where(inside, probability, 0.0, "probability")
        sums = t.running_sums(probability, "running_sums")
        sums = b.op(arith.addf, sums, b.splat(before, _PIECE), name="sums")
        reached = t.find_first(t.compare("OGE", sums, row.p, "reaches_p"), "crossing")
        going = b.cmpi("sge", reached, number, "short_of_p")
        kept = t.smaller(number, t.plus(reached, t.one), "kept")
        if row.m is not None:
            below = t.find_first(t.compare("OLT", probability, bound, "is_below"), "first_below")
            least = b.select(b.cmpi("eq", rank, t.zero), t.one, t.zero)
            below = b.select(row.use_m, t.larger(below, least), number, "kept_by_min_p")
            going = t.both(going, b.cmpi("sge", below, number), "goes_on")
            kept = t.smaller(kept, below, "kept")

        def take():
            choice = self.results.take(probability, indices, kept, rank, Choice(*results[:2]))
            end = t.minus(kept, t.one)
            place = b.op(arith.sitofp, b.f32_type, t.extract(indices, end, "last_index"), name="place")
            return [*choice.parts(), t.extract(values, end, "last"), place]

        types = [b.f32_type, b.i32_type, b.f32_type, b.f32_type]
        results = b.if_(b.cmpi("sgt", kept, t.zero), _RESULTS, take, lambda: list(results), types=types)
        before = t.extract(sums, b.index(_PIECE - 1), "before")
        return [b.select(going, t.one, t.zero), t.plus(rank, kept, "rank"), before, *results]
