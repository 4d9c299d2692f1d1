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
from .threshold_lists import Listed, Measure, ThresholdLists

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

    def __init__(self, t: Ops, keys: Keys, cores: Alone, vocabulary: int, searches_both: bool):
        self.t, self.b, self.keys, self.cores, self.vocabulary = t, t.b, keys, cores, vocabulary
        self.searches_both = searches_both
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
        reference = None if p is None else self.reference(sample)
        floor = None
        if k is not None:
            floor = self.kth(row, k, self.top_k(part, sample, k))
        if p is None:
            return floor, self.b.f32(0.0)
        self.mass(part, reference, floor)
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
                at_most = t.compare("OLE", chunk.x, stretch.high, "is_at_most")
                above = t.inverted(at_most, "is_above")  # NaN as well
                hits = t.where(above, t.filled(1.0, length_of(chunk.x), "ones"), 0.0, "hits")
                counts = b.op(arith.addf, counts, t.folded(arith.addf, hits, 64), name="counts")
                within = self._is_within(chunk, stretch, at_most)
                return [counts, self.lists.append(chunk, within, memory, offset, number)]

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
            facts = self.cores.facts(0)
            above = self.cores.total(above, facts, 0)
            need = b.op(arith.sitofp, b.f32_type, k, name="wanted_count")
            single = b.cmpf("OEQ", low, high, "one_value")
            listed = self.cores.all_lists(_TOP_K, number, facts, 1, single)
            reached = b.op(arith.addf, above, t.f32_of(listed.number, "listed"), name="reached")
            inside = t.both(b.cmpf("OLT", above, need), b.cmpf("OGE", reached, need), "is_inside")

            def everything():
                number, _ = self._collect_all(row, b.f32(NEG_INF, "lowest"), listed.offset)
                return [number, b.f32(0.0), b.f32(NEG_INF), b.f32(float("inf"))]

            number, above, low, high = b.if_(
                inside, ["number", "above", "low", "high"], lambda: [listed.number, above, low, high], everything,
                types=[b.index_type, *[b.f32_type] * 3],
            )  # fmt: skip

            def in_list():
                spare = self.cores.places[_SPARE], self.cores.places[_OTHER]
                measure = self._measure(False, b.f32(0.0, "minus_reference"))
                value, above_it = self.lists.smallest(
                    Listed(listed.offset, number), spare, need, above, (low, high), (upper, middle), measure
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

    def _is_within(self, chunk: Chunk, stretch: Stretch, at_most: ir.Value) -> ir.Value:
        t = self.t
        return t.both(t.compare("OGE", chunk.x, stretch.low, "reaches"), at_most, "is_within")

    # -- the mass -----------------------------------------------------------------------------------------------

    def reference(self, sample: ir.Value) -> ir.Value:
        """That of the weights exp(x - reference). The sample's maximum is near enough to all others, if the sum stays
        finite."""
        b = self.b
        maximum = Bounds(self.t, sample, self.vocabulary).maximum()
        is_finite = self.t.both(b.cmpf("OGT", maximum, b.f32(NEG_INF)), b.cmpf("OLT", maximum, b.f32(float("inf"))))
        return b.select(is_finite, maximum, b.f32(0.0), "reference")

    def mass(self, part: RowChunks, reference: ir.Value, floor: ir.Value | None) -> None:
        """Weighs what top-k keeps."""
        about = Stage("SumWeights", "Weights, summed in units of 1024.")
        self._weigh(part, reference, "UGE", floor, _ALL, about)  # unordered: NaN shows

    def _weigh(
        self, source: RowChunks, reference: ir.Value, predicate: str, bound: ir.Value, which: int, about: str
    ) -> None:
        t = self.t
        measure = self._weights(reference)

        def body(chunk: Chunk):
            x = chunk.x
            if bound is not None:
                x = t.where(t.compare(predicate, x, bound, "survives"), x, NEG_INF, "survivors")
            sums = t.reduce("add", measure.weights(x), UNIT, "unit_sums")
            self.cores.give_sums(sums, which, chunk.column, chunk.count)
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
            measure = self._weights(reference)
            stretch = Bounds(t, sample, self.vocabulary).of_mass(measure.weights, target, floor, self._lowest(floor))
            memory, offset = self.cores.own_list(_TOP_P)
            at_most = lambda chunk: t.compare("OLE", chunk.x, stretch.high, "is_at_most")
            within = lambda chunk: self._is_within(chunk, stretch, at_most(chunk))
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
        self.cores.give([found[-1], t.f32_of(found[-2], "listed")], 1)
        return [reference, total, *found]

    def nucleus(self, row: Stretches, floor: ir.Value | None, p: ir.Value, found: list[ir.Value]) -> list[ir.Value]:
        """The smallest value that stays, and how many of the elements equal to it go that are in this part or in front
        of it (f32)."""
        b = self.b
        reference, total, *stretch, number, maximum = found
        rest, active, keeps_all = self._wanted(p, total)

        def find():
            facts = self.cores.facts(1)

            def underflow():
                largest = self.cores.largest(maximum, facts, 0)
                bound = b.op(arith.addf, largest, b.f32(_UNDERFLOW), name="underflow")
                least = self._or_none(floor)
                return [b.select(b.cmpf("OGT", bound, least), bound, least, "cut"), b.f32(0.0)]

            search = lambda: self._search(row, floor, rest, reference, total, Stretch(*stretch), number, facts)
            return b.if_(keeps_all, ["cut", "removed"], underflow, search, types=[b.f32_type] * 2)

        return b.if_(
            active, ["cut", "removed"], find, lambda: [self._or_none(floor), b.f32(0.0)], types=[b.f32_type] * 2,
            about=Stage("FindNucleus", "The nucleus."),
        )  # fmt: skip

    def _wanted(self, p: ir.Value, total: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value]:
        """1 - p; whether top-p is on; whether it keeps all that weighs anything."""
        b = self.b
        rest = b.op(arith.subf, b.f32(1.0), p, name="one_minus_p")
        active = self.t.both(b.cmpf("OGT", total, b.f32(0.0)), b.cmpf("OGE", rest, b.f32(0.0)), "top_p_enabled")
        return rest, active, b.cmpf("OEQ", rest, b.f32(0.0), "keeps_all")

    def _weights(self, reference: ir.Value) -> Measure:
        shift = self.b.op(arith.negf, reference, name="minus_reference")
        return self._measure(True, shift)

    def _measure(self, weighs: bool, shift: ir.Value) -> Measure:
        return Measure(self.t, weighs, shift, self.t.truth(weighs, "weighs") if self.searches_both else None)

    def _or_none(self, floor: ir.Value | None) -> ir.Value:
        return self.b.f32(NEG_INF) if floor is None else floor

    def _lowest(self, floor: ir.Value | None) -> ir.Value:
        b = self.b
        lowest = b.f32(_LOWEST)
        return lowest if floor is None else b.select(b.cmpf("OGT", floor, lowest), floor, lowest, "lowest")

    def _search(self, row, floor, rest, reference, total, stretch: Stretch, number, facts) -> list[ir.Value]:
        t, b, lists = self.t, self.b, self.lists
        target = b.op(arith.mulf, rest, total, name="target")
        need = b.op(arith.subf, total, target, name="needed")
        # Something is always needed: the largest element stays.
        need = b.select(b.cmpf("OGT", need, b.f32(_LEAST)), need, b.f32(_LEAST), "needed")
        measure = self._weights(reference)
        single = b.cmpf("OEQ", stretch.low, stretch.high, "one_value")
        leaves_out = b.cmpf("OLT", stretch.high, b.f32(float("inf")), "leaves_some_out")
        (above,) = b.if_(
            leaves_out,
            ["above"],
            lambda: [self.cores.all_sums(_ABOVE, "above")],
            lambda: [b.f32(0.0)],
            types=[b.f32_type],
        )
        before = self.cores.in_front(facts, 1)
        listed = self.cores.all_lists(_TOP_P, number, facts, 1, single)
        spare = self.cores.places[_SPARE], self.cores.places[_OTHER]

        def in_list(number, above, ends, single):
            low, _ = ends
            pivots = stretch.upper, stretch.middle
            copies = lambda: [low, above, t.f32_of(number, "copies")]
            search = lambda: lists.smallest(Listed(listed.offset, number), spare, need, above, ends, pivots, measure)
            smallest, above, equal = b.if_(
                single, ["smallest", "above", "equal"], copies, search, types=[b.f32_type] * 3
            )
            return smallest, above, equal, self._each(measure, smallest)

        def misled(tries, *_):
            return b.cmpi("sgt", tries, t.zero)

        def attempt(tries, number, before, above, low, *_):
            is_first = b.cmpi("sgt", tries, t.one, "is_first")

            def everything():
                lowest = self._lowest(floor)
                number, before = self._collect_all(row, lowest, listed.offset, True)
                return [number, before, b.f32(0.0), lowest]

            number, before, above, low = b.if_(
                t.opposite(is_first), ["number", "before", "above", "low"], everything,
                lambda: [number, before, above, low], types=[b.index_type, b.index_type, b.f32_type, b.f32_type],
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

    def _each(self, measure: Measure, value: ir.Value) -> ir.Value:
        return self.t.extract(measure.weights(self.b.splat(value, 8, "smallest")), self.t.zero, "weight")

    def _collect_all(
        self, row: Stretches, lowest: ir.Value, offset: ir.Value, counts: bool = False
    ) -> tuple[ir.Value, ir.Value | None]:
        """The sample misled: all elements of the row that reach a bound, and NaN, as a list. How many they are, and, if
        that `counts`, how many are in front of this part."""
        t, b, memory = self.t, self.b, self.lists.memory
        reaches = lambda chunk: t.compare("UGE", chunk.x, lowest, "reaches")
        about = Stage("ListStretch", "What reaches a bound in a stretch of the row, behind what the list has.")
        if self.cores.is_alone or not (counts or self.searches_both):
            return self.lists.collect(row(t.zero, self.length), reaches, memory, offset, about), t.zero

        def add(side, start, end, number, *before):
            more = self.lists.collect(row(start, end), reaches, memory, t.plus(offset, number), about)
            number = t.plus(number, more, "number")
            is_first = lambda: b.cmpi("eq", side, t.zero)
            return [end, self.length, number, *(b.select(is_first(), number, old, "before") for old in before)]

        # In front of this part, then from its start on.
        carried = [("start", t.zero), ("end", self.cores.start), ("number", t.zero)] + [("before", t.zero)] * counts
        _, _, number, *before = b.for_(t.zero, b.index(2), t.one, carried, add, induction="side")
        return number, before[0] if counts else None

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
