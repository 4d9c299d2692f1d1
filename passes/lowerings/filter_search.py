"""The two thresholds of the filter by search, for any k and p, by one core or by all that share the row.

Both are the smallest value `v` of the row above which there is too little: the elements `> v` count fewer than k, or
weigh less than what the nucleus needs.

1. *Top-k*: a sample of the row says between which two values `v` lies (`filter_bounds.py`). One pass counts the
   elements above and packs those between into a list, in which `v` is then searched (`threshold_lists.py`).
2. *The mass* of what top-k keeps: one pass, in units of 1024 positions of the row.
3. *Top-p*: the same as in 1 with weights instead of counts. Where few elements are above the stretch, they are in the
   list too; else their mass comes from a pass in units.

Cores that share a row do each pass over their own parts and meet after it (`row_cores.py`): the first stage ends in
one meeting and the other two in one each; every core then searches the same list. Where the sample misled, every core
goes over the whole row by itself.

Every decision follows from the row alone: the sample from its length, units and lists from its order. So the bits of
a result do not depend on the batch, on the number of cores or on how long the row's chunks are.

Where p is 1, only what the exponential makes 0 goes. NaN ranks above everything: it counts among the k largest,
survives, and switches top-p off, as an infinite maximum does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlir import ir
from mlir.dialects import arith

from ..builder import Stage
from .candidates import maximum_of
from .filter_bounds import Bounds, Stretch, sorted_sample
from .keys import Keys
from .ops import Ops
from .row_chunks import NEG_INF, Chunk, RowChunks, length_of
from .row_cores import OWN, UNIT, Alone
from .threshold_lists import Listed, ThresholdLists, Weight

_LEAST = 1.0e-30  # weight
_LOWEST = -3.4028234e38  # of what weighs anything
_UNDERFLOW = -87.33654  # the exponential of less is 0
_TOP_K, _TOP_P, _SPARE, _OTHER = range(4)  # lists
_ALL, _ABOVE = range(2)  # unit sums

_ENDS = ["low", "high", "upper", "middle"]
STRETCH = [*_ENDS, "number", "above"]  # what `top_k` returns
NUCLEUS = ["reference", "total", *_ENDS, "number", "maximum"]  # what `top_p` returns
GIVEN = 2  # the last ones of both: a group has those of all its cores from the meeting

Stretches = Callable[[ir.Value, ir.Value], RowChunks]


class ThresholdSearch:
    """The search in the rows of one kernel.

    The methods are the stages; what the cores of a row share is given at the end of each and taken at the start of the
    next. They return scalars only, so that a meeting can lie between them; `named` and `typed` tell which. `part` is
    what this core has of the row, `row(start, end)` any stretch of it."""

    def __init__(self, t: Ops, keys: Keys, cores: Alone, vocabulary: int):
        self.t, self.b, self.keys, self.cores, self.vocabulary = t, t.b, keys, cores, vocabulary
        self.lists = ThresholdLists(t, keys, cores.memory)
        self.length = t.b.index(vocabulary)

    def typed(self, names: Sequence[str]) -> list[ir.Type]:
        return [self.b.index_type if name == "number" else self.b.f32_type for name in names]

    def nothing(self, names: Sequence[str]) -> list[ir.Value]:
        return [self.t.zero if name == "number" else self.b.f32(0.0) for name in names]

    def thresholds(self, row: Stretches, k: ir.Value | None, p: ir.Value | None) -> tuple[ir.Value, ir.Value]:
        """All stages, for a row that one core has to itself: the smallest value that stays, and how many of the
        elements equal to it go (f32)."""
        part, sample = row(self.t.zero, self.length), self.sample(row)
        floor = None
        if k is not None:
            floor = self.kth(row, k, self.top_k(part, sample, k))
        if p is None:
            return floor, self.b.f32(0.0)
        reference = self.mass(part, sample, floor)
        return tuple(self.nucleus(row, floor, p, self.top_p(part, row, sample, floor, p, reference)))

    def sample(self, row: Stretches) -> ir.Value:
        return sorted_sample(self.t, row(self.t.zero, self.length))

    # -- top-k --------------------------------------------------------------------------------------------------

    def top_k(self, part: RowChunks, sample: ir.Value, k: ir.Value, *facts: ir.Value) -> list[ir.Value]:
        """The stretch that the k-th largest element lies in; how many of this part's elements are listed, and how many
        are above. `facts` go along with what is given."""
        t, b = self.t, self.b
        nothing = [b.f32(NEG_INF)] * 4 + [t.zero, b.f32(0.0)]

        def find():
            stretch = Bounds(t, sample, self.vocabulary).of_rank(k)
            memory, offset = self.cores.own_list(_TOP_K)

            def body(chunk: Chunk, counts, number):
                above = t.compare("UGT", chunk.x, stretch.high, "is_above")  # unordered: so is NaN
                hits = t.where(above, t.filled(1.0, length_of(chunk.x), "ones"), 0.0, "hits")
                counts = b.op(arith.addf, counts, t.folded(arith.addf, hits, 64), name="counts")
                return [counts, self.lists.append(chunk, self._is_within(chunk, stretch), memory, offset, number)]

            carried = [("counts", t.filled(0.0, 64, "counts")), ("number", t.zero)]
            about = Stage("ListNearKth", "The elements that the k-th largest can be; how many are above them.")
            counts, number = part.each(carried, body, about)
            return [*stretch.parts(), number, t.reduced("add", counts, "above")]

        found = b.if_(
            self._is_on(k),
            STRETCH,
            find,
            lambda: nothing,
            types=self.typed(STRETCH),
            about=Stage("BracketKth", "Top-k."),
        )
        self.cores.give([found[-1], t.f32_of(found[-2], "listed"), *facts], 0)
        return found

    def kth(self, row: Stretches, k: ir.Value, found: list[ir.Value]) -> ir.Value:
        """The k-th largest element, -inf where top-k is off."""
        t, b = self.t, self.b

        def search():
            *stretch, number, above = found
            low, high, upper, middle = stretch
            above = self.cores.total(above, 0, 0)
            need = b.op(arith.sitofp, b.f32_type, k, name="wanted_count")
            single = b.cmpf("OEQ", low, high, "one_value")
            listed, _ = self.cores.all_lists(_TOP_K, number, 0, 1, single)
            reached = b.op(arith.addf, above, t.f32_of(listed.number, "listed"), name="reached")
            inside = t.both(b.cmpf("OLT", above, need), b.cmpf("OGE", reached, need), "is_inside")

            def everything():
                about = Stage("ListAll", "The sample misled: all elements.")
                is_any = lambda chunk: t.compare("UGE", chunk.x, b.f32(NEG_INF), "is_any")
                number = self.lists.collect(row(t.zero, self.length), is_any, self.lists.memory, listed.offset, about)
                return [number, b.f32(0.0), b.f32(NEG_INF), b.f32(float("inf"))]

            number, above, low, high = b.if_(
                inside, ["number", "above", "low", "high"], lambda: [listed.number, above, low, high], everything,
                types=[b.index_type, *[b.f32_type] * 3],
            )  # fmt: skip

            def in_list():
                spare = self.cores.places[_SPARE], self.cores.places[_OTHER]
                pivots = upper, middle
                value, above_it = self.lists.smallest(
                    Listed(listed.offset, number), spare, need, above, (low, high), pivots, None
                )
                # More NaN than k: the k-th largest is one of them.
                return [b.select(b.cmpf("OLT", above_it, need), value, b.f32(NEG_INF), "kth")]

            is_low = t.both(inside, single)
            return b.if_(is_low, ["kth"], lambda: [low], in_list, types=[b.f32_type])

        nothing = lambda: [b.f32(NEG_INF)]
        return b.if_(
            self._is_on(k),
            ["floor"],
            search,
            nothing,
            types=[b.f32_type],
            about=Stage("FindKthInLists", "The k-th largest."),
        )[0]

    def _is_on(self, k: ir.Value) -> ir.Value:
        b = self.b
        return self.t.both(b.cmpi("sge", k, b.i32(1)), b.cmpi("slt", k, b.i32(self.vocabulary)), "top_k_enabled")

    def _is_within(self, chunk: Chunk, stretch: Stretch) -> ir.Value:
        t = self.t
        at_most = t.compare("OLE", chunk.x, stretch.high, "is_at_most")
        return t.both(t.compare("OGE", chunk.x, stretch.low, "reaches"), at_most, "is_within")

    # -- the mass -----------------------------------------------------------------------------------------------

    def mass(self, part: RowChunks, sample: ir.Value, floor: ir.Value | None) -> ir.Value:
        """Weighs what top-k keeps; the reference of the weights exp(x - reference). The sample's maximum is near enough
        to all others, if the sum stays finite."""
        b = self.b
        maximum = Bounds(self.t, sample, self.vocabulary).maximum()
        is_finite = self.t.both(b.cmpf("OGT", maximum, b.f32(NEG_INF)), b.cmpf("OLT", maximum, b.f32(float("inf"))))
        reference = b.select(is_finite, maximum, b.f32(0.0), "reference")
        self._weigh(
            part, reference, "UGE", floor, _ALL, Stage("SumWeights", "Weights, summed in units of 1024.")
        )  # unordered: NaN shows
        return reference

    def _weigh(
        self, source: RowChunks, reference: ir.Value, predicate: str, bound: ir.Value, which: int, about: str
    ) -> None:
        t, b = self.t, self.b
        shift = b.op(arith.negf, reference, name="minus_reference")

        def body(chunk: Chunk):
            x = chunk.x
            if bound is not None:
                x = t.where(t.compare(predicate, x, bound, "survives"), x, NEG_INF, "survivors")
            weights = b.exp(b.op(arith.addf, x, t.splat(shift, x), name="shifted"), "weights")
            self.cores.give_sums(t.reduce("add", weights, UNIT, "unit_sums"), which, chunk.column, chunk.count)
            return []

        source.each([], body, about)

    # -- top-p --------------------------------------------------------------------------------------------------

    def top_p(
        self,
        part: RowChunks,
        row: Stretches,
        sample: ir.Value,
        floor: ir.Value | None,
        p: ir.Value,
        reference: ir.Value,
    ) -> list[ir.Value]:
        """The mass and its reference; the stretch that the smallest element of the nucleus lies in, and how many of
        this part's elements are listed. Where p is 1, the last one is the part's maximum."""
        t, b = self.t, self.b
        usable = lambda total: t.both(
            b.cmpf("OGT", total, b.f32(0.0)), b.cmpf("OLT", total, b.f32(float("inf"))), "usable"
        )
        total = self.cores.all_sums(_ALL, "total")

        def again():
            whole = row(t.zero, self.length)
            maximum = maximum_of(t, whole)
            self._weigh(
                whole,
                maximum,
                "UGE",
                floor,
                OWN,
                Stage("SumWeightsAgain", "The mass once more, with the row's own maximum."),
            )
            return [maximum, self.cores.all_sums(OWN, "total")]

        reference, total = b.if_(
            usable(total), ["reference", "total"], lambda: [reference, total], again, types=[b.f32_type] * 2
        )
        # With NaN or an infinity in the row, or nothing but -inf, there is no mass.
        total = b.select(usable(total), total, b.f32(0.0), "total")
        nothing = [b.f32(NEG_INF)] * 4 + [t.zero, b.f32(NEG_INF)]
        types = self.typed(NUCLEUS[2:])
        rest, active, keeps_all = self._wanted(p, total)

        def maximum():
            return [*nothing[:-1], maximum_of(t, part)]

        def find():
            target = b.op(arith.mulf, rest, total, name="target")
            weight = self._weight(reference)
            stretch = Bounds(t, sample, self.vocabulary).of_mass(weight, target, floor, self._lowest(floor))
            memory, offset = self.cores.own_list(_TOP_P)
            within = lambda chunk: self._is_within(chunk, stretch)
            number = self.lists.collect(
                part, within, memory, offset, Stage("ListNearEnd", "The elements that the nucleus can end at.")
            )

            def weigh_above():
                self._weigh(
                    part,
                    reference,
                    "OGT",
                    stretch.high,
                    _ABOVE,
                    Stage("SumWeightsAbove", "The mass above them, in units of 1024."),
                )
                return []

            b.if_(b.cmpf("OLT", stretch.high, b.f32(float("inf")), "leaves_some_out"), [], weigh_above)
            return [*stretch.parts(), number, b.f32(NEG_INF)]

        found = b.if_(
            t.both(active, t.opposite(keeps_all)), NUCLEUS[2:], find,
            lambda: b.if_(active, NUCLEUS[2:], maximum, lambda: nothing, types=types), types=types,
            about=Stage("BracketNucleus", "Top-p."),
        )  # fmt: skip
        self.cores.give([t.f32_of(found[-2], "listed"), found[-1]], 1)
        return [reference, total, *found]

    def nucleus(self, row: Stretches, floor: ir.Value | None, p: ir.Value, found: list[ir.Value]) -> list[ir.Value]:
        """The smallest value that stays, and how many of the elements equal to it go that are in this part or in front
        of it (f32)."""
        b = self.b
        reference, total, *stretch, number, maximum = found
        rest, active, keeps_all = self._wanted(p, total)

        def underflow():
            bound = b.op(arith.addf, self.cores.largest(maximum, 1, 1), b.f32(_UNDERFLOW), name="underflow")
            least = self._or_none(floor)
            return [b.select(b.cmpf("OGT", bound, least), bound, least, "cut"), b.f32(0.0)]

        def search():
            return self._search(row, floor, rest, reference, total, Stretch(*stretch), number)

        return b.if_(
            active, ["cut", "removed"],
            lambda: b.if_(keeps_all, ["cut", "removed"], underflow, search, types=[b.f32_type] * 2),
            lambda: [self._or_none(floor), b.f32(0.0)], types=[b.f32_type] * 2,
            about=Stage("FindNucleus", "The nucleus."),
        )  # fmt: skip

    def _wanted(self, p: ir.Value, total: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value]:
        """1 - p; whether top-p is on; whether it keeps all that weighs anything."""
        b = self.b
        rest = b.op(arith.subf, b.f32(1.0), p, name="one_minus_p")
        active = self.t.both(b.cmpf("OGT", total, b.f32(0.0)), b.cmpf("OGE", rest, b.f32(0.0)), "top_p_enabled")
        return rest, active, b.cmpf("OEQ", rest, b.f32(0.0), "keeps_all")

    def _weight(self, reference: ir.Value) -> Weight:
        b = self.b
        shift = b.op(arith.negf, reference, name="minus_reference")
        return lambda x: b.exp(b.op(arith.addf, x, self.t.splat(shift, x), name="shifted"), "weights")

    def _or_none(self, floor: ir.Value | None) -> ir.Value:
        return self.b.f32(NEG_INF) if floor is None else floor

    def _lowest(self, floor: ir.Value | None) -> ir.Value:
        b = self.b
        lowest = b.f32(_LOWEST)
        return lowest if floor is None else b.select(b.cmpf("OGT", floor, lowest), floor, lowest, "lowest")

    def _search(self, row, floor, rest, reference, total, stretch: Stretch, number) -> list[ir.Value]:
        t, b, lists = self.t, self.b, self.lists
        target = b.op(arith.mulf, rest, total, name="target")
        need = b.op(arith.subf, total, target, name="needed")
        # Something is always needed: the largest element stays.
        need = b.select(b.cmpf("OGT", need, b.f32(_LEAST)), need, b.f32(_LEAST), "needed")
        weight = self._weight(reference)
        single = b.cmpf("OEQ", stretch.low, stretch.high, "one_value")
        leaves_out = b.cmpf("OLT", stretch.high, b.f32(float("inf")), "leaves_some_out")
        (above,) = b.if_(
            leaves_out,
            ["above"],
            lambda: [self.cores.all_sums(_ABOVE, "above")],
            lambda: [b.f32(0.0)],
            types=[b.f32_type],
        )
        listed, before = self.cores.all_lists(_TOP_P, number, 1, 0, single)
        spare = self.cores.places[_SPARE], self.cores.places[_OTHER]

        def in_list(number, above, ends, single):
            low, _ = ends
            pivots = stretch.upper, stretch.middle
            copies = lambda: [low, above, t.f32_of(number, "copies")]
            search = lambda: lists.smallest(Listed(listed.offset, number), spare, need, above, ends, pivots, weight)
            smallest, above, equal = b.if_(
                single, ["smallest", "above", "equal"], copies, search, types=[b.f32_type] * 3
            )
            return smallest, above, equal, self._each(weight, smallest)

        def misled(tries, *_):
            return b.cmpi("sgt", tries, t.zero)

        def attempt(tries, number, before, above, low, *_):
            is_first = b.cmpi("eq", tries, b.index(2), "is_first")

            def everything():
                lowest = self._lowest(floor)
                number, before = self._collect_all(row, lowest, listed.offset)
                return [number, before, b.f32(0.0), lowest]

            number, before, above, low = b.if_(
                is_first, ["number", "before", "above", "low"], lambda: [number, before, above, low], everything,
                types=[b.index_type, b.index_type, b.f32_type, b.f32_type],
            )  # fmt: skip
            high = b.select(is_first, stretch.high, b.f32(float("inf")), "high")
            smallest, beyond, equal, each = in_list(number, above, (low, high), t.both(single, is_first))
            # At the lower end there may be too little in all.
            reached = b.op(arith.addf, beyond, b.op(arith.mulf, equal, each), name="reached")
            is_inside = t.either(b.cmpf("OGT", smallest, low), b.cmpf("OGE", reached, need))
            is_inside = t.both(b.cmpf("OLT", above, need), is_inside, "is_inside")
            again = b.select(t.either(is_inside, t.opposite(is_first)), t.zero, t.one, "tries")
            return [again, number, before, above, low, smallest, beyond, equal, each]

        none = b.f32(0.0)
        carried = [
            ("tries", b.index(2)), ("number", listed.number), ("before", before), ("above", above), ("low",
            stretch.low),
            ("smallest", none), ("beyond", none), ("equal", none), ("each", none),
        ]  # fmt: skip
        _, number, before, _, _, smallest, beyond, equal, each = b.while_(
            carried,
            misled,
            attempt,
            about=Stage(
                "FindEndInLists", "In the list; in one of all elements that weigh anything, if the sample misled."
            ),
        )

        def in_front():
            copies = lambda: [
                lists.copies(
                    Listed(listed.offset, before), smallest, Stage("CountTiesInFront", "Those in front of this part.")
                )
            ]
            return b.if_(single, ["in_front"], lambda: [t.f32_of(before)], copies, types=[b.f32_type])[0]

        return self._cut(smallest, need, beyond, equal, in_front, each)

    def _each(self, weight: Weight, value: ir.Value) -> ir.Value:
        return self.t.extract(weight(self.b.splat(value, 8)), self.t.zero, "weight")

    def _collect_all(self, row: Stretches, lowest: ir.Value, offset: ir.Value) -> tuple[ir.Value, ir.Value]:
        """The elements of the row that reach a bound, as a list; and how many are in front of this part."""
        t, memory = self.t, self.lists.memory
        weighs = lambda chunk: t.compare("OGE", chunk.x, lowest, "weighs")
        about = Stage("ListWeighing", "All elements that weigh anything.")
        if self.cores.is_alone:
            return self.lists.collect(row(t.zero, self.length), weighs, memory, offset, about), t.zero
        start = self.cores.start
        before = self.lists.collect(row(t.zero, start), weighs, memory, offset, about)
        rest = self.lists.collect(
            row(start, self.length),
            weighs,
            memory,
            t.plus(offset, before),
            Stage("ListWeighingFromPart", "And from this part on."),
        )
        return t.plus(before, rest, "number"), before

    def _cut(self, smallest, need, above, equal, in_front, each) -> list[ir.Value]:
        """The cut and how many of the elements equal to it go, less those in front of this part: as many of them stay
        as are needed, at least one."""
        b = self.b
        quotient = b.op(arith.divf, b.op(arith.subf, need, above), each, name="quotient")
        quotient = b.select(b.cmpf("OLT", quotient, equal), quotient, equal, "quotient")
        whole = b.op(arith.sitofp, b.f32_type, b.op(arith.fptosi, b.i32_type, quotient), name="whole")
        more = b.op(arith.addf, whole, b.f32(1.0))
        stay = b.select(b.cmpf("OLT", whole, quotient), more, whole, "stay")
        stay = b.select(b.cmpf("OGT", stay, b.f32(1.0)), stay, b.f32(1.0), "stay")
        removed = b.op(arith.subf, equal, stay, name="removed")
        if self.cores.is_alone:
            return [smallest, removed]
        behind = lambda: [b.op(arith.subf, removed, in_front(), name="own_removed")]
        has_ties = b.cmpf("OGT", removed, b.f32(0.0), "has_ties")
        (removed,) = b.if_(has_ties, ["own_removed"], behind, lambda: [removed], types=[b.f32_type])
        return [smallest, removed]
