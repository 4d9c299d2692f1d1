"""`ascend.apply_top_k_top_p` on tiles: threshold refinement, without a sort.

A row is read in chunks, several times. Both filters are thresholds on the row's values, found by bisection:

- top-k: the largest value `t` with at least k elements `>= t`. Counts are sums of ones, exact in float32 below 2^24.
- top-p: among the survivors of top-k, the smallest value `v` whose ascending mass `sum(exp(x - max), x <= v)` exceeds
  `(1 - p) * total`. The mass is summed in blocks of 1024 consecutive positions, each by a fixed tree, the block sums in
  order: the same bits whatever the chunk, the batch or the number of cores.

The bisection runs on order-preserving integer keys of the float32 values, at the granularity of the row's dtype: at most
16 rounds for bfloat16, 19 for float16, 32 for float32. Among elements equal to `v` the lower positions go first; how many
follows from the mass below `v`. The last pass removes exactly those, counting equal elements from chunk to chunk.

Special rows follow the operator's definition. NaN ranks above everything: it counts among the k largest, survives, and
switches top-p off, as an infinite maximum does. Padding lanes hold -inf, which no evaluated threshold counts.
"""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith

from jascend.backends.ascend.targets import Target
from jascend.dialect import TILE

from ..builder import f32_bits, tile_type
from .site import Site

SUM_BLOCK = 1024  # elements: the unit of probability sums, fixed by the numerics and not by the mapping
SUMMARY = (
    "Keeps the k largest elements of a row and, among them, the nucleus of mass p; -inf elsewhere. Both filters are "
    "thresholds, found by bisection over the row, which is read in chunks."
)
MAX_VOCABULARY = 1 << 24  # counts are float32 sums of ones

_NEG_INF = float("-inf")
_KEY_OF_NEG_INF = f32_bits(_NEG_INF) ^ 0x7FFFFFFF
_EXPONENT = 0x7F800000
_SHIFT = {"f32": 0, "bf16": 16, "f16": 13}  # low float32 bits that are zero in every value of the dtype


FILL: dict[str, int] = {}


def refusal(op: ir.OpView, target: Target) -> str | None:
    """Why no kernel is generated for an op; None if one is."""
    logits = ir.RankedTensorType(op.logits.type)
    if logits.is_dynamic_dim(1) or not 0 < logits.get_dim_size(1) <= MAX_VOCABULARY:
        return f"is generated for a fixed row length of 1 to {MAX_VOCABULARY}"
    return None


def lower(op: ir.OpView, site: Site) -> None:
    """Builds the kernel body of one filter: all rows of this core."""
    _Filter(op, site).build()


class _Filter:
    def __init__(self, op, site: Site):
        self.op, self.producers, self.out, self.b = op, site.producers, site.outputs["out"], site.b
        logits = ir.RankedTensorType(op.logits.type)
        self.vocabulary = logits.get_dim_size(1)
        self.tile = min(site.tile, -(-self.vocabulary // 1024) * 1024)
        self.producers.tile = self.tile
        self.dtype = logits.element_type
        self.shift = _SHIFT[str(self.dtype)]
        self.has_tail = self.vocabulary % self.tile != 0
        site.deal_out(self.out)
        self.rows = site.rows
        site.remarks.append(f"rows of {self.vocabulary} in chunks of {self.tile}, threshold refinement")

    # -- the kernel ---------------------------------------------------------------------------------------------

    def build(self) -> None:
        b = self.b
        share = b.build(TILE.classes["BlockRows"], self.rows, results=[b.index_type] * 4)
        self.zero, self.one = b.index(0), b.index(1)
        self.chunk, self.length = b.index(self.tile, "tile"), b.index(self.vocabulary, "row_length")
        self.neg_inf = b.f32(_NEG_INF)
        self.neg_infs = b.splat(self.neg_inf, self.tile)
        self.ones = b.splat(b.f32(1.0), self.tile, "ones")
        self.zeros = b.splat(b.f32(0.0), self.tile)
        needs_ramp = self.op.p is not None or (self.has_tail and not self.producers.is_load(self.op.logits))
        self.ramp = None
        if needs_ramp:
            ramp = b.build(TILE.classes["Iota"], results=[tile_type(self.tile, b.f32_type)], name="ramp")
            self.ramp = ramp.value
        b.for_(
            share.operation.results[0], share.operation.results[1], self.one, [], self.row,
            induction="row", about="The rows of this core.",
        )  # fmt: skip

    def row(self, row: ir.Value) -> list[ir.Value]:
        b, op = self.b, self.op
        self.producers.enter_row(row, [(op.logits, ("row", "col"))])
        self.row_offset = b.op(arith.muli, row, self.length, name="row_offset")
        k = self.producers.row_scalar(op.k, ("row",), "row_k") if op.k is not None else None
        p = self.producers.row_scalar(op.p, ("row",), "row_p") if op.p is not None else None

        maximum, nans = self.statistics()
        cut_key, cut = self.top_k(k, maximum, nans) if k is not None else self.no_top_k()
        removed_ties = b.f32(0.0)
        if p is not None:
            cut, removed_ties = self.top_p(p, maximum, nans, cut_key, cut)
        self.write(cut, removed_ties if p is not None else None)
        return []

    # -- passes over the row ------------------------------------------------------------------------------------

    def chunks(self, carried, body, about: str) -> list[ir.Value]:
        """A pass over the row. `body(x, column, count, *carried)` sees each chunk as float32, padded with -inf."""
        b = self.b

        def one_chunk(column, *values):
            if self.has_tail:
                left = b.op(arith.subi, self.length, column, name="left")
                count = b.op(arith.minsi, left, self.chunk, name="count")
            else:
                count = self.chunk
            return body(self.values(column, count), column, count, *values)

        return b.for_(self.zero, self.length, self.chunk, carried, one_chunk, induction="column", about=about)

    def values(self, column: ir.Value, count: ir.Value) -> ir.Value:
        b = self.b
        logits = self.op.logits
        if self.producers.is_load(logits):
            return self.producers.piece(logits, ("row", "col"), column, count, _NEG_INF)
        x = self.producers.piece(logits, ("row", "col"), column, count, 0.0)
        if not self.has_tail:
            return x
        valid = b.op(arith.sitofp, b.f32_type, b.op(arith.index_cast, b.i32_type, count), name="valid")
        inside = b.cmpf("OLT", self.ramp, b.splat(valid, self.tile), "inside")
        return b.select(inside, x, self.neg_infs, "x")

    def against(self, predicate: str, x: ir.Value, threshold: ir.Value, name: str) -> ir.Value:
        """The mask of a tile against a scalar."""
        return self.b.cmpf(predicate, x, self.b.splat(threshold, self.tile), name)

    def statistics(self) -> tuple[ir.Value, ir.Value]:
        """The row's maximum, NaN apart, and how many NaN it holds (as f32)."""
        b = self.b

        def body(x, column, count, maximum, nans):
            ordered = b.select(b.cmpf("OEQ", x, x, "is_number"), x, self.neg_infs, "numbers")
            largest = self.reduced("max", ordered, self.tile, "chunk_max")[0]
            strange = b.select(b.cmpf("UNE", x, x, "is_nan"), self.ones, self.zeros, "nan_ones")
            strange_count = self.reduced("add", strange, self.tile, "chunk_nans")[0]
            return [
                b.select(b.cmpf("OGT", largest, maximum), largest, maximum, "maximum"),
                b.op(arith.addf, nans, strange_count, name="nans"),
            ]

        carried = [("maximum", self.neg_inf), ("nans", b.f32(0.0))]
        maximum, nans = self.chunks(carried, body, "The maximum of the row, and its NaN.")
        return maximum, nans

    def count_at_least(self, threshold: ir.Value) -> ir.Value:
        b = self.b

        def body(x, column, count, total):
            hits = b.select(self.against("OGE", x, threshold, "at_least"), self.ones, self.zeros, "hit_ones")
            return [b.op(arith.addf, total, self.reduced("add", hits, self.tile, "chunk_hits")[0], name="hits")]

        return self.chunks([("hits", b.f32(0.0))], body, "How many elements reach the threshold.")[0]

    def mass(self, predicate: str, bound: ir.Value, survivors_from: ir.Value | None, maximum: ir.Value, about: str):
        """Sum of exp(x - maximum) over the survivors on the given side of `bound`."""
        b = self.b
        shift = b.op(arith.negf, maximum, name="minus_maximum")

        def body(x, column, count, total):
            if survivors_from is not None:
                x = b.select(self.against("OGE", x, survivors_from, "survives"), x, self.neg_infs, "survivors")
            e = b.exp(b.op(arith.addf, x, b.splat(shift, self.tile), name="shifted"), "weights")
            if bound is not None:
                e = b.select(self.against(predicate, x, bound, "below"), e, self.zeros, "weights_below")
            for block in self.reduced("add", e, SUM_BLOCK, "block_mass"):
                total = b.op(arith.addf, total, block)
            return [total]

        return self.chunks([("mass", b.f32(0.0))], body, about)[0]

    def reduced(self, kind: str, x: ir.Value, group: int, name: str) -> list[ir.Value]:
        """Group results of a tile, on the scalar unit."""
        b = self.b
        groups = self.tile // group
        value = b.build(
            TILE.classes["Reduce"], x, results=[tile_type(groups, b.f32_type)], kind=kind, group=group, name=name
        ).value
        extract = TILE.classes["Extract"]
        return [b.build(extract, value, b.index(i), results=[b.f32_type]).scalar for i in range(groups)]

    # -- keys ---------------------------------------------------------------------------------------------------

    def key_of(self, value: ir.Value, name: str) -> ir.Value:
        """The order-preserving integer key of a float32 scalar, at the dtype's granularity."""
        b = self.b
        bits = b.bits_of_float(value, f"{name}_bits")
        negative = b.cmpi("slt", bits, b.i32(0))
        key = b.select(negative, b.op(arith.xori, bits, b.i32(0x7FFFFFFF)), bits)
        return b.op(arith.shrsi, key, b.i32(self.shift)) if self.shift else key

    def value_of(self, key: ir.Value, name: str) -> ir.Value:
        """The float32 scalar of a key."""
        b = self.b
        if self.shift:
            shifted = b.op(arith.shli, key, b.i32(self.shift), name=f"{name}_key")
            key = b.op(arith.ori, shifted, b.i32((1 << self.shift) - 1))
            negative_bits = b.op(arith.xori, key, b.i32(0x7FFFFFFF))
            bits = b.select(b.cmpi("slt", shifted, b.i32(0)), negative_bits, shifted, f"{name}_bits")
        else:
            negative_bits = b.op(arith.xori, key, b.i32(0x7FFFFFFF))
            bits = b.select(b.cmpi("slt", key, b.i32(0)), negative_bits, key, f"{name}_bits")
        return b.float_of_bits(bits, name)

    def bisect(self, low, high, raise_low, names: tuple[str, str], about: str) -> tuple[ir.Value, ir.Value]:
        """Halves [low, high) until the keys are neighbours. `raise_low(middle)` says which end moves."""
        b = self.b

        def wide(low, high):
            return b.cmpi("sgt", high, b.op(arith.addi, low, b.i32(1)))

        def halve(low, high):
            # (low + high) / 2 without overflow.
            common = b.op(arith.andi, low, high)
            half = b.op(arith.shrsi, b.op(arith.xori, low, high), b.i32(1))
            middle = b.op(arith.addi, common, half, name="middle")
            up = raise_low(middle)
            return [b.select(up, middle, low, names[0]), b.select(up, high, middle, names[1])]

        low, high = b.while_([(names[0], low), (names[1], high)], wide, halve, about=about)
        return low, high

    # -- the two filters ----------------------------------------------------------------------------------------

    def no_top_k(self) -> tuple[ir.Value, ir.Value]:
        return self.b.i32(_KEY_OF_NEG_INF >> self.shift), self.neg_inf

    def top_k(self, k: ir.Value, maximum: ir.Value, nans: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Key and value of the k-th largest element; those of -inf where top-k is off."""
        b = self.b
        wanted = b.op(
            arith.subi, k, b.op(arith.fptosi, b.i32_type, nans), name="wanted"
        )  # NaN ranks above every number
        enabled = b.op(
            arith.andi,
            b.cmpi("slt", k, b.i32(self.vocabulary)),
            b.cmpi("sgt", wanted, b.i32(0)),
            name="top_k_enabled",
        )
        wanted_count = b.op(arith.sitofp, b.f32_type, wanted, name="wanted_count")
        low = b.i32(_KEY_OF_NEG_INF >> self.shift)
        above_all = b.op(arith.addi, self.key_of(maximum, "maximum"), b.i32(1))
        high = b.select(enabled, above_all, b.i32((_KEY_OF_NEG_INF >> self.shift) + 1))

        def enough(middle):
            return b.cmpf("OGE", self.count_at_least(self.value_of(middle, "threshold")), wanted_count, "enough")

        key, _ = self.bisect(
            low, high, enough, ("top_k_low", "top_k_high"),
            "Top-k: the largest value that at least k elements reach.",
        )  # fmt: skip
        return key, self.value_of(key, "kth_value")

    def top_p(self, p, maximum, nans, cut_key, cut) -> tuple[ir.Value, ir.Value]:
        """The nucleus: its smallest value, and how many elements equal to that value go."""
        b = self.b
        survivors_from = cut if self.op.k is not None else None
        threshold = b.op(arith.subf, b.f32(1.0), p, name="one_minus_p")
        exponent = b.op(arith.andi, b.bits_of_float(maximum), b.i32(_EXPONENT))
        finite = b.cmpi("ne", exponent, b.i32(_EXPONENT))
        no_nan = b.cmpf("OEQ", nans, b.f32(0.0))
        some = b.cmpf("OGE", threshold, b.f32(0.0))
        active = b.op(arith.andi, b.op(arith.andi, finite, no_nan), some, name="top_p_enabled")

        def nucleus():
            total = self.mass("", None, survivors_from, maximum, "The mass of the survivors of top-k.")
            target = b.op(arith.mulf, threshold, total, name="target")

            def too_little(middle):
                bound = self.value_of(middle, "bound")
                below = self.mass("OLE", bound, survivors_from, maximum, "The mass up to the bound.")
                return b.cmpf("OLE", below, target, "too_little")

            below_all = b.op(arith.subi, cut_key, b.i32(1))
            _, key = self.bisect(
                below_all, self.key_of(maximum, "maximum"), too_little, ("top_p_low", "top_p_high"),
                "Top-p: the smallest value up to which the mass exceeds the target.",
            )  # fmt: skip
            smallest = self.value_of(key, "smallest")
            return [smallest, self.ties(smallest, survivors_from, maximum, target)]

        return tuple(
            b.if_(active, ["cut", "removed_ties"], nucleus, lambda: [cut, b.f32(0.0)], types=[b.f32_type] * 2)
        )

    def ties(self, smallest, survivors_from, maximum, target) -> ir.Value:
        """How many of the elements equal to the smallest kept value go (as f32): all but one at the most."""
        b = self.b
        below = self.mass("OLT", smallest, survivors_from, maximum, "The mass below the smallest value.")

        def body(x, column, count, total):
            hits = b.select(self.against("OEQ", x, smallest, "equal"), self.ones, self.zeros, "equal_ones")
            return [b.op(arith.addf, total, self.reduced("add", hits, self.tile, "chunk_equal")[0], name="equal_count")]

        equal = self.chunks([("equal_count", b.f32(0.0))], body, "How many elements equal the smallest value.")[0]
        shifted = b.op(arith.subf, smallest, maximum)
        weight_tile = b.exp(b.splat(shifted, 8, "smallest_shifted"), "smallest_weight")
        weight = b.build(TILE.classes["Extract"], weight_tile, self.zero, results=[b.f32_type], name="weight").scalar
        quotient = b.op(arith.divf, b.op(arith.subf, target, below), weight, name="quotient")
        all_but_one = b.op(arith.subf, equal, b.f32(1.0), name="all_but_one")
        capped = b.select(b.cmpf("OLT", quotient, all_but_one), quotient, all_but_one, "removed")
        whole = b.op(arith.sitofp, b.f32_type, b.op(arith.fptosi, b.i32_type, capped), name="whole")
        return b.select(b.cmpf("OGT", whole, b.f32(0.0)), whole, b.f32(0.0), "removed_ties")

    # -- the result ---------------------------------------------------------------------------------------------

    def write(self, cut: ir.Value, removed_ties: ir.Value | None) -> None:
        b = self.b

        def body(x, column, count, *left):
            # Unordered comparisons keep NaN.
            kept = b.select(self.against("UGE", x, cut, "reaches"), x, self.neg_infs, "kept")
            if removed_ties is not None:
                kept, left = self.without_ties(x, kept, cut, *left)
            result = kept
            if self.shift:
                result = b.op(arith.truncf, tile_type(self.tile, self.dtype), kept, name="result")
            offset = b.op(arith.addi, self.row_offset, column, name="out_offset")
            b.build(TILE.classes["Store"], result, self.out, offset, count)
            return list(left)

        carried = [] if removed_ties is None else [("ties_left", removed_ties)]
        self.chunks(carried, body, "The filtered row.")

    def without_ties(self, x, kept, cut, ties_left) -> tuple[ir.Value, list[ir.Value]]:
        """`kept` without the first `ties_left` elements equal to `cut`; and how many are left to remove after that."""
        b = self.b
        equal = self.against("OEQ", x, cut, "equal")
        positions = b.build(
            TILE.classes["Compress"], self.ramp, equal, results=[self.ramp.type, b.index_type], name="equal_positions"
        )
        here = b.op(arith.sitofp, b.f32_type, b.op(arith.index_cast, b.i32_type, positions.kept), name="equal_here")
        none = b.cmpf("OLE", ties_left, b.f32(0.0), "none_left")
        every = b.cmpf("OLE", here, ties_left)

        def last_removed():
            number = b.op(arith.fptosi, b.i32_type, b.op(arith.subf, ties_left, b.f32(1.0)))
            position = b.op(arith.index_cast, b.index_type, number)
            extract = TILE.classes["Extract"]
            return [b.build(extract, positions.value, position, results=[b.f32_type], name="position").scalar]

        whole_chunk = b.select(none, b.f32(-1.0), b.f32(float(self.tile)), "whole_chunk")
        (last,) = b.if_(
            b.op(arith.ori, none, every), ["last_removed"], lambda: [whole_chunk], last_removed, types=[b.f32_type]
        )
        above = b.select(self.against("UGT", x, cut, "exceeds"), x, self.neg_infs, "above")
        after = b.cmpf("OGT", self.ramp, b.splat(last, self.tile), "after_last")
        result = b.select(after, kept, above, "kept_after_ties")
        left = b.op(arith.subf, ties_left, here, name="left_after")
        still = b.select(b.cmpf("OGT", left, b.f32(0.0)), left, b.f32(0.0), "ties_left")
        return result, [still]
