"""`ascend.apply_top_k_top_p_with_sorted` on tiles: what stays is the end of the sorted row, put back in order.

1. *Where the end begins.* Top-k: the k-th element from the end, and the copies of it in front of it. Top-p: weights of
   what top-k keeps, summed in units of 1024 places of the sorted row; running sums over the units, then within the one
   that they exceed the target in.
2. *Vocabulary order*, for a stretch of the result at a time, without a scatter of single elements:
   - *A short end* stays in the unified buffer; the few of its elements that belong to the stretch are set one by one.
   - *Any other*: one pass over the row packs the elements that belong to the stretch, with their positions, into a list
     in global memory. They are as many as the stretch has positions, for the positions of a row are a permutation; a
     sort by position puts them in order.

The stretches are dealt out to the cores that share a row; each finds the end by itself, so they need not meet, and the
bits of a result do not depend on how many they are. What it takes follows from the row and its k and p alone.
"""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith

from jascend.backends.ascend.targets import Target
from jascend.dialect import TILE

from ..builder import Stage, tile_type, up
from .lowering import lowering
from .ops import Ops
from .row_chunks import NEG_INF
from .rows import each_row, length_refusal
from .site import Candidate, Site

SUMMARY = "Keeps the end of every sorted row that top-k and top-p leave, in vocabulary order; -inf elsewhere."
CANDIDATES = (
    Candidate(4096),
    Candidate(4096, load_ahead=False),
    Candidate(2048, load_ahead=False),
    Candidate(1024, load_ahead=False),
)


_UNIT = 1024  # places of one sum of weights: fixed by the numerics
_SHORT = 256  # elements of an end that are set one by one
_STRETCHES = (64, 128, 256, 512, 1024, 2048, 4096)  # lengths of lists that are sorted
_MAX_CORES = 48
_EXPONENT = 0x7F800000
_AT = ("row", "col")


def refusal(op: ir.OpView, target: Target) -> str | None:
    """Why no kernel is generated for an op; None if one is."""
    return length_refusal(op.sorted_value)


@lowering("ascend.apply_top_k_top_p_with_sorted", summary=SUMMARY, refusal=refusal, candidates=CANDIDATES)
def lower(op: ir.OpView, site: Site) -> None:
    """Builds the kernel body: all rows of this core."""
    _SortedFilter(op, site).build()


class _SortedFilter:
    def __init__(self, op, site: Site):
        self.op, self.site, self.producers, self.b, self.out = op, site, site.producers, site.b, site.outputs["out"]
        x = ir.RankedTensorType(op.sorted_value.type)
        self.vocabulary, self.dtype = x.get_dim_size(1), x.element_type
        self.chunk = next((n for n in _STRETCHES if n >= self.vocabulary), max(_UNIT, min(site.tile, _STRETCHES[-1])))
        self.stretches = -(-self.vocabulary // self.chunk)
        self.units = -(-self.vocabulary // _UNIT)
        site.deal_out(self.out)
        self.parts = self._parts(x)

    def _parts(self, x: ir.RankedTensorType) -> int:
        if x.is_dynamic_dim(0) or x.get_dim_size(0) == 0:
            return min(self.site.parts or 1, self.stretches)
        cores = self.site.parts or self.site.target.vector_cores // x.get_dim_size(0)
        return max(1, min(cores, self.stretches, _MAX_CORES))

    def build(self) -> None:
        b = self.b
        share = b.build(TILE.classes["BlockRows"], self.site.rows, results=[b.index_type] * 4, parts=self.parts)
        self.t = t = Ops(b)
        self.part, self.length = share.part, b.index(self.vocabulary, "row_length")
        self.ramp = t.ramp(max(self.chunk, _UNIT), b.f32_type, "ramp")
        capacity = up(self.chunk, 64)
        core = b.build(TILE.classes["Core"], results=[b.index_type] * 2).operation.results[0]
        self.packed_values = t.workspace("packed_values", capacity, b.f32_type, "core")
        self.packed_places = t.workspace("packed_places", capacity, b.f32_type, "core")
        self.own = t.times(core, capacity, "own_list")
        sites = (
            f"stretches of {self.chunk} positions over {self.parts} cores a row" if self.parts > 1 else "one core a row"
        )
        self.site.remarks.append(
            f"rows of {self.vocabulary}, {sites}; an end of at most {_SHORT} elements is set one by one"
        )
        each_row(t, share, self.row)

    # -- the sorted row -----------------------------------------------------------------------------------------

    def values(self, column: ir.Value, count: ir.Value, lanes: int, pad: float = NEG_INF) -> ir.Value:
        """A piece of the sorted row (f32); lanes from `count` on hold `pad`."""
        t = self.t
        x = self._piece(self.op.sorted_value, column, count, lanes)
        inside = t.compare("OLT", t.head(self.ramp, lanes), t.f32_of(count), "inside")
        return t.where(inside, x, pad, "sorted_piece")

    def places(self, column: ir.Value, count: ir.Value, lanes: int) -> ir.Value:
        """The positions that a piece of the sorted row belongs to (f32); -1 in lanes from `count` on."""
        t = self.t
        places = t.to_f32(self._piece(self.op.sorted_indices, column, count, lanes), "places")
        inside = t.compare("OLT", t.head(self.ramp, lanes), t.f32_of(count), "inside")
        return t.where(inside, places, -1.0, "places")

    def _piece(self, operand: ir.Value, column: ir.Value, count: ir.Value, lanes: int) -> ir.Value:
        self.producers.tile = lanes
        self.producers.prepare([(operand, _AT)])
        return self.producers.piece(operand, _AT, column, count, 0)

    def left(self, column: ir.Value, lanes: int) -> ir.Value:
        return self.t.smaller(self.t.minus(self.length, column), self.b.index(lanes), "count")

    def at(self, place: ir.Value, name: str) -> ir.Value:
        """One value of the sorted row."""
        return self.t.extract(self.values(place, self.t.one, 64), self.t.zero, name)

    # -- one row ------------------------------------------------------------------------------------------------

    def row(self, row: ir.Value) -> list[ir.Value]:
        t, b, op = self.t, self.b, self.op
        self.producers.tile = self.chunk
        self.producers.enter_row(row, [(op.sorted_value, _AT), (op.sorted_indices, _AT)])
        self.row_offset = b.op(arith.muli, row, self.length, name="row_offset")
        first = t.zero
        if op.k is not None:
            first = self.first_of_top_k(self.producers.row_scalar(op.k, ("row",), "row_k"))
        if op.p is not None:
            first = self.first_of_top_p(self.producers.row_scalar(op.p, ("row",), "row_p"), first)
        kept = t.minus(self.length, first, "kept")

        def short():
            self.write_short_end(first, kept)
            return []

        def long():
            self.write_long_end(first)
            return []

        b.if_(
            b.cmpi("sle", kept, b.index(_SHORT)),
            [],
            short,
            long,
            about=Stage("ScatterShortEnd", "Back in vocabulary order.", "ScatterLongEnd"),
        )
        return []

    def first_of_top_k(self, k: ir.Value) -> ir.Value:
        """Where what top-k keeps begins."""
        t, b = self.t, self.b
        enabled = t.both(b.cmpi("sge", k, b.i32(1)), b.cmpi("slt", k, b.i32(self.vocabulary)), "top_k_enabled")

        def find():
            place = t.minus(self.length, t.index_of(k), "kth_place")
            kth = self.at(place, "kth")

            # Whatever is in front of the k-th and is not less, equals it, or is NaN as it is.
            def go_on(first, going):
                return b.cmpi("ne", going, t.zero)

            def step_back(first, going):
                start = t.larger(t.minus(first, b.index(_UNIT)), t.zero, "start")
                count = t.minus(first, start, "count")
                x = self.values(start, count, _UNIT, float("nan"))
                smaller = t.index_of(t.count(t.compare("OLT", x, kth, "is_smaller"), "smaller"))
                going = b.select(b.cmpi("eq", smaller, t.zero), start, t.zero, "going")
                return [t.plus(start, smaller, "first"), going]

            carried = [("first", place), ("going", place)]
            return b.while_(
                carried, go_on, step_back, about=Stage("KeepCopiesOfKth", "Copies of the k-th in front of it stay.")
            )[:1]

        return b.if_(
            enabled, ["first"], find, lambda: [t.zero], types=[b.index_type], about=Stage("FindTopK", "Top-k.")
        )[0]

    def first_of_top_p(self, p: ir.Value, first: ir.Value) -> ir.Value:
        """Where what top-p keeps of the elements from `first` on begins."""
        t, b = self.t, self.b
        last = t.minus(self.length, t.one, "last")
        maximum = self.at(last, "maximum")
        rest = b.op(arith.subf, b.f32(1.0), p, name="one_minus_p")
        exponent = b.op(arith.andi, b.bits_of_float(maximum), b.i32(_EXPONENT))
        finite = b.cmpi("ne", exponent, b.i32(_EXPONENT))
        active = t.both(finite, b.cmpf("OGE", rest, b.f32(0.0)), "top_p_enabled")
        shift = b.op(arith.negf, maximum, name="minus_maximum")
        lanes = max(64, up(self.units, 64))

        def weights(column):
            count = self.left(column, _UNIT)
            x = self.values(column, count, _UNIT)
            here = t.f32_of(t.minus(first, column), "first_here")
            x = t.where(t.compare("OGE", t.head(self.ramp, _UNIT), here, "survives"), x, NEG_INF, "survivors")
            return b.exp(b.op(arith.addf, x, t.splat(shift, x), name="shifted"), "weights")

        def find():
            start = t.zero if self.units == 1 else b.op(arith.andi, first, b.index(-_UNIT), name="first_unit")
            ramp = t.ramp(lanes, b.f32_type, "unit_ramp")

            def add(column, sums):
                unit = t.f32_of(b.op(arith.shrsi, column, b.index(_UNIT.bit_length() - 1)), "unit")
                total = t.reduced("add", weights(column), "unit_sum")
                is_unit = t.compare("OEQ", ramp, unit, "is_unit")
                return [b.select(is_unit, t.splat(total, sums), sums, "sums")]

            carried = [("sums", t.filled(0.0, lanes, "sums"))]
            about = Stage("SumWeights", "Weights, summed in units of 1024 places.")
            (sums,) = b.for_(start, self.length, b.index(_UNIT), carried, add, induction="column", about=about)
            running = t.running_sums(sums, "running_sums")
            total = t.extract(running, b.index(lanes - 1), "total")
            target = b.op(arith.mulf, rest, total, name="target")
            unit = t.find_first(t.compare("OGT", running, target, "exceeds"), "unit")
            found = b.cmpi("slt", unit, b.index(self.units), "is_found")

            def within():
                column = self.t.times(unit, _UNIT, "column")
                before = b.op(
                    arith.subf, t.extract(running, unit, "up_to_unit"), t.extract(sums, unit, "of_unit"), name="before"
                )
                left = b.op(arith.subf, target, before, name="left")
                within_unit = t.running_sums(weights(column), "sums_within")
                place = t.find_first(t.compare("OGT", within_unit, left, "exceeds"), "place")
                return [t.smaller(t.plus(column, place), last, "first")]

            return b.if_(found, ["first"], within, lambda: [last], types=[b.index_type])

        return b.if_(active, ["first"], find, lambda: [first], types=[b.index_type], about=Stage("FindTopP", "Top-p."))[
            0
        ]

    # -- the result ---------------------------------------------------------------------------------------------

    def each_stretch(self, body, about: str) -> None:
        """`body(start, count)` for the stretches of this core."""
        b = self.b

        def one(number):
            start = self.t.times(number, self.chunk, "start")
            body(start, self.left(start, self.chunk))
            return []

        b.for_(self.part, b.index(self.stretches), b.index(self.parts), [], one, induction="stretch", about=about)

    def write_short_end(self, first: ir.Value, kept: ir.Value) -> None:
        t, b = self.t, self.b
        lanes = min(_SHORT, self.chunk) if self.vocabulary <= self.chunk else _SHORT
        values, places = self.values(first, kept, lanes), self.places(first, kept, lanes)
        ramp = t.head(self.ramp, self.chunk)

        def stretch(start, count):
            begin, end = t.f32_of(start, "begin"), t.f32_of(t.plus(start, count), "end")
            inside = t.both(
                t.compare("OGE", places, begin, "is_behind"), t.compare("OLT", places, end, "is_before"), "belongs"
            )
            own_values, number = t.compress(values, inside, "own_values")
            own_places, _ = t.compress(places, inside, "own_places")

            def put(i, result):
                place = b.op(arith.subf, t.extract(own_places, i, "place"), begin, name="lane")
                value = t.splat(t.extract(own_values, i, "value"), result)
                return [b.select(t.compare("OEQ", ramp, place, "is_place"), value, result, "stretch")]

            carried = [("stretch", t.filled(NEG_INF, self.chunk, "stretch"))]
            (result,) = b.for_(
                t.zero,
                number,
                t.one,
                carried,
                put,
                induction="i",
                about=Stage("PutElements", "The few elements that stay here."),
            )
            self.store(result, start, count)

        self.each_stretch(stretch, "A short end: stretches of the result, from the unified buffer.")

    def write_long_end(self, first: ir.Value) -> None:
        t, b = self.t, self.b
        chunk = self.chunk

        def stretch(start, count):
            begin, end = t.f32_of(start, "begin"), t.f32_of(t.plus(start, count), "end")

            def pack(column, number):
                here = self.left(column, chunk)
                x = self.values(column, here, chunk)
                kept_from = t.f32_of(t.minus(first, column), "kept_from")
                x = t.where(t.compare("OGE", t.head(self.ramp, chunk), kept_from, "stays"), x, NEG_INF, "kept_values")
                places = self.places(column, here, chunk)
                inside = t.both(
                    t.compare("OGE", places, begin, "is_behind"), t.compare("OLT", places, end, "is_before"), "belongs"
                )
                values, found = t.compress(x, inside, "found_values")
                positions, _ = t.compress(places, inside, "found_places")
                fits = t.smaller(found, t.minus(count, number), "found")

                def store():
                    at = t.plus(self.own, number)
                    t.store(values, self.packed_values, at, fits)
                    t.store(positions, self.packed_places, at, fits)
                    return []

                b.if_(b.cmpi("sgt", fits, t.zero), [], store)
                return [t.plus(number, fits, "number")]

            about = Stage("PackElements", "The elements of the row that belong here.")
            b.for_(t.zero, self.length, b.index(chunk), [("number", t.zero)], pack, induction="column", about=about)
            values = t.load(self.packed_values, self.own, count, chunk, "values", NEG_INF)
            places = t.load(self.packed_places, self.own, count, chunk, "positions", float(1 << 24))
            bits = b.op(arith.bitcast, tile_type(chunk, b.i32_type), values)
            order = b.op(arith.negf, places, name="order")
            _, ordered = t.unpacked(t.sorted(order, bits, "by_position"))
            self.store(b.op(arith.bitcast, tile_type(chunk, b.f32_type), ordered, name="result"), start, count)

        self.each_stretch(
            stretch, "A long end: stretches of the result, each packed from the whole row and sorted by position."
        )

    def store(self, result: ir.Value, start: ir.Value, count: ir.Value) -> None:
        t, b = self.t, self.b
        if str(self.dtype) != "f32":
            result = b.op(arith.truncf, tile_type(self.chunk, self.dtype), result, name="narrow")
        t.store(result, self.out, t.plus(self.row_offset, start, "out_offset"), count)
