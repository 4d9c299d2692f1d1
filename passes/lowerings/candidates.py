"""The largest elements of a stretch of a row, without a sort of the stretch.

1. *A bound.* The stretch is folded to G maxima, each over the positions that are equal mod G. At least k elements reach
   the k-th largest of these maxima: each of the k greatest maxima is one.
2. *Candidates.* One compare and one compress a chunk leave the elements that reach the bound, about
   `-G ln(1 - k / G)` of them where the large ones lie at random: 56 for k = 50 and G = 256. They gather in a short
   list.
3. *A sorted list* of them holds the k largest.

Where too many reach the bound for the list, the k-th largest is found exactly, by bisection over counts, and the list
gets those above it, then copies of it as far as they fit.

NaN ranks with +inf: the list holds +inf in its place, and says how many there are. Nothing here decides between equal
elements: `missing` counts the copies of the k-th that are not listed.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith

from ..builder import Stage, tile_type
from .keys import Keys
from .ops import Ops
from .row_chunks import NEG_INF, Chunk, ListChunks, OneChunk, RowChunks, length_of, slice_of, with_slice

LISTED = 128  # elements of the sorted list, and the greatest k
MAXIMA = 256  # G
_HEAD = 256  # candidates that one chunk can contribute
_LANES = 64  # of the maxima of a stretch
_FULL = 1 << 20  # more than that: some did not fit
_GATHERED = (512, 1536)  # candidates of the whole stretch


def _gathered(chunks: int) -> int:
    """A chunk's candidates start on 32 bytes, so up to 7 lanes are lost to each; what is above the k-th must fit."""
    return next(lanes for lanes in _GATHERED if LISTED + 7 * (chunks - 1) <= lanes - _HEAD)


@dataclass(frozen=True)
class Largest:
    """The largest elements of a stretch.

    Attributes:
      pairs: the `LISTED` largest, in descending order, each with some integer; -inf where there are not as many.
      kth: the k-th largest.
      missing: how many elements equal to `kth` the list lacks (f32).
      nans: how many NaN there are (f32), exact below `k`.
    """

    pairs: ir.Value
    kth: ir.Value
    missing: ir.Value
    nans: ir.Value


class Candidates:
    """Builds the search of one kernel, in stretches of at most `chunks` chunks. The insertion point at construction is
    that of the tiles it needs throughout."""

    def __init__(self, t: Ops, keys: Keys, chunks: int):
        self.t, self.b, self.keys, self.lanes = t, t.b, keys, _gathered(chunks)
        self.order = t.ramp(self.lanes, self.b.i32_type, "order")
        self.ramp = t.ramp(_HEAD, self.b.f32_type, "head_ramp")
        self.ones = t.filled(1.0, self.lanes, "ones")

    def largest(self, chunks: RowChunks, k: ir.Value) -> Largest:
        """The largest elements of a stretch; `k` (index) is at least 1 and at most `LISTED`."""
        t, b = self.t, self.b
        last = b.op(arith.subi, k, b.index(1), name="k_minus_one")
        bound = bound_of(t, chunks, last, MAXIMA)
        gathered, used = self._collect(
            chunks, "UGE", bound, self._empty(), b.index(0), Stage("ListReaching", "The elements that reach the bound.")
        )
        overflows = b.cmpi("sge", used, b.index(_FULL), "too_many")
        about = Stage(
            "ListExactly", "Too many for the list: the k-th largest exactly, those above it, and copies of it."
        )
        gathered, beyond = b.if_(
            overflows, ["candidates", "beyond"], lambda: self._exactly(chunks, k), lambda: [gathered, b.f32(0.0)],
            types=[gathered.type, b.f32_type], about=about,
        )  # fmt: skip
        return self._sorted(gathered, last, beyond)

    # -- the list of candidates ---------------------------------------------------------------------------------

    def _empty(self) -> ir.Value:
        # What a chunk adds at the end of a full list is not part of it.
        return self.t.filled(NEG_INF, self.lanes + _HEAD)

    def _collect(
        self, chunks: RowChunks, predicate: str, bound, gathered, used, about: str, number: ir.Value | None = None
    ) -> list[ir.Value]:
        """Appends the elements of the stretch that compare so with the bound; how many lanes are then in use, `_FULL`
        or more if some did not fit; and, with a `number` of others, how many elements there are with them."""
        t, b = self.t, self.b

        def body(chunk: Chunk, gathered, used, *number):
            head, kept = self._head(chunk, t.compare(predicate, chunk.x, bound, "reaches"))
            at = b.op(arith.minsi, used, b.index(self.lanes), name="at")
            gathered = with_slice(b, gathered, head, at, "candidates")
            rounded = b.op(arith.andi, b.op(arith.addi, kept, b.index(7)), b.index(-8), name="lanes")
            fits = t.both(b.cmpi("sle", kept, b.index(_HEAD)), b.cmpi("sle", used, b.index(self.lanes - _HEAD)))
            fits = t.either(fits, b.cmpi("eq", kept, b.index(0)), "fits")
            more = b.select(fits, rounded, b.index(_FULL))
            return [gathered, t.plus(used, more, "used"), *(t.plus(so_far, kept, "number") for so_far in number)]

        carried = [("candidates", gathered), ("used", used)] + ([("number", number)] if number is not None else [])
        return chunks.each(carried, body, about)

    def _head(self, chunk: Chunk, mask: ir.Value) -> tuple[ir.Value, ir.Value]:
        """The first elements of a chunk under a mask, with -inf behind them; and how many are."""
        t, b = self.t, self.b
        packed, number = t.compress(chunk.x if chunk.raw is None else chunk.raw, mask, "packed")
        head = slice_of(b, packed, 0, _HEAD, "head")
        if head.type != self.ramp.type:
            head = b.op(arith.extf, self.ramp.type, head, name="head_x")
        inside = t.compare("OLT", self.ramp, t.f32_of(number, "kept"), "inside")
        return t.where(inside, head, NEG_INF, "head_or_empty"), number

    # -- many candidates ----------------------------------------------------------------------------------------

    def _exactly(self, chunks: RowChunks, k: ir.Value) -> list[ir.Value]:
        """The list of what is above the k-th largest, then of copies of it; and how many copies did not fit."""
        t, b = self.t, self.b
        kth = kth_largest(t, self.keys, chunks, t.f32_of(k, "wanted"), self.ones)
        gathered, used, above = self._collect(
            chunks, "UGT", kth, self._empty(), t.zero, Stage("ListAboveKth", "The elements above the k-th."), t.zero
        )
        about = Stage("ListCopiesOfKth", "Copies of the k-th.")
        gathered, _, number = self._collect(chunks, "OEQ", kth, gathered, used, about, above)
        listed = t.count(t.compare("UGE", slice_of(b, gathered, 0, self.lanes), kth, "listed"), "listed", self.ones)
        return [gathered, b.op(arith.subf, t.f32_of(number, "reaching"), listed, name="beyond")]

    # -- the sorted list ----------------------------------------------------------------------------------------

    def _sorted(self, gathered: ir.Value, last: ir.Value, beyond: ir.Value) -> Largest:
        t, b = self.t, self.b
        values = slice_of(b, gathered, 0, self.lanes)
        nans = t.count(b.cmpf("UNE", values, values, "is_nan"), "nans", self.ones)
        values = t.where(b.cmpf("OEQ", values, values, "is_number"), values, float("inf"), "ranked")
        pairs = t.sorted(values, self.order, "sorted")
        ranked, _ = t.unpacked(pairs)
        kth = t.extract(ranked, last, "kth")
        reach = t.where(t.compare("OGE", ranked, kth, "reach"), self.ones, 0.0, "reaching_ones")
        counts = t.reduce("add", reach, LISTED, "reach_counts")
        missing = beyond
        for run in range(1, self.lanes // LISTED):
            missing = b.op(arith.addf, missing, t.extract(counts, b.index(run), "unlisted"), name="missing")
        return Largest(slice_of(b, pairs, 0, 2 * LISTED, "largest"), kth, missing, nans)


# -- what the search of the sampler has too
# -------------------------------------------------------------------------------


def bound_of(t: Ops, chunks: RowChunks, last: ir.Value, maxima: int) -> ir.Value:
    """A number that more than `last` elements of a stretch reach: of the maxima over the positions that are equal mod
    `maxima`, that of this rank."""
    b = t.b

    def fold(chunk: Chunk, found: ir.Value) -> list[ir.Value]:
        lanes = length_of(chunk.x)
        rest = lanes % maxima
        whole = slice_of(b, chunk.x, 0, lanes - rest)
        found = b.op(arith.maximumf, found, t.folded(arith.maximumf, whole, maxima), name="maxima")
        if not rest:
            return [found]
        first = slice_of(b, found, 0, rest)
        first = b.op(arith.maximumf, first, slice_of(b, chunk.x, lanes - rest, rest), name="first_maxima")
        return [with_slice(b, found, first, 0, "maxima")]

    about = Stage("FoldMaxima", f"Maxima over the positions that are equal mod {maxima}.")
    (found,) = chunks.each([("maxima", t.filled(NEG_INF, maxima))], fold, about)
    return ranked_maximum(t, found, last)


def ranked_maximum(t: Ops, maxima: ir.Value, rank: ir.Value) -> ir.Value:
    """The maximum of this rank."""
    # What goes along with the maxima in the sort does not matter.
    anything = t.b.op(arith.bitcast, tile_type(length_of(maxima), t.b.i32_type), maxima)
    ranked, _ = t.unpacked(t.sorted(maxima, anything, "sorted_maxima"))
    return t.extract(ranked, rank, "bound")


def kth_largest(t: Ops, keys: Keys, chunks: RowChunks, wanted: ir.Value, ones: ir.Value | None = None) -> ir.Value:
    """The largest value that at least `wanted` (f32) elements of a stretch reach, by bisection."""
    b = t.b

    def enough(middle):
        return b.cmpf("OGE", count_of(t, chunks, "UGE", keys.value(middle, "threshold"), ones), wanted, "enough")

    above_all = b.op(arith.addi, keys.constant(float("inf")), b.i32(1))
    names = ("low_key", "high_key")
    low, _ = keys.bisect(
        keys.constant(NEG_INF), above_all, enough, names, Stage("FindKth", "The k-th largest, by its key."), apart=True
    )
    return keys.value(low, "kth")


def maximum_of(t: Ops, chunks: RowChunks | OneChunk) -> ir.Value:
    """The maximum of a stretch without NaN."""
    b = t.b
    lanes = min(_LANES, chunks.chunk)
    fold = lambda chunk, maxima: [b.op(arith.maximumf, maxima, t.folded(arith.maximumf, chunk.x, lanes), name="maxima")]
    (maxima,) = chunks.each([("maxima", t.filled(NEG_INF, lanes))], fold, Stage("FindMaximum", "The maximum."))
    return t.reduced("max", maxima, "maximum")


def count_of(
    t: Ops,
    chunks: RowChunks | ListChunks,
    predicate: str,
    bound: ir.Value,
    ones: ir.Value | None = None,
    about: str = Stage("CountReaching", "How many elements reach the threshold."),
) -> ir.Value:
    """How many elements of a stretch compare so with a number (f32); `ones`, if there is a tile of them."""
    b = t.b

    def body(chunk: Chunk, total):
        lanes = length_of(chunk.x)
        some = None if ones is None or lanes > length_of(ones) else slice_of(b, ones, 0, lanes)
        number = t.count(t.compare(predicate, chunk.x, bound, "hits"), "chunk_hits", some)
        return [b.op(arith.addf, total, number, name="hits")]

    return chunks.each([("hits", b.f32(0.0))], body, about)[0]
