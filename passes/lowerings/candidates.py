"""The largest elements of a stretch of a row, without a sort of the stretch.

1. *A bound.* The stretch is folded to G maxima, each over the positions that are equal mod G. At least k elements reach
   the k-th largest of these maxima: each of the k greatest maxima is one.
2. *Candidates.* One compare and one compress a chunk leave the elements that reach the bound, about
   `-G ln(1 - k / G)` of them where the large ones lie at random: 56 for k = 50 and G = 256. They gather in a short list.
3. *A sorted list* of them holds the k largest.

Where too many reach the bound for the list, the k-th largest is found exactly, by bisection over counts, and the list
gets those above it, then copies of it as far as they fit.

NaN ranks with +inf: the list holds +inf in its place, and says how many there are. Nothing here decides between equal
elements: they are listed in the order of their positions, and `missing` counts the copies of the k-th that are not listed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith

from jascend.dialect import TILE

from ..builder import Builder, tile_type
from .keys import Keys
from .row_chunks import NEG_INF, Chunk, RowChunks, length_of, slice_of, with_slice

LISTED = 128  # elements of the sorted list, and the greatest k
MAXIMA = 256  # G
_HEAD = 256  # candidates that one chunk can contribute
_GATHERED = 512  # candidates of the whole stretch
_FULL = 1 << 20  # more than that: some did not fit
MAX_CHUNKS = 1 + (_HEAD - LISTED) // 7  # a chunk's candidates start on 32 bytes: up to 7 lanes are lost to each


@dataclass(frozen=True)
class Largest:
    """The largest elements of a stretch.

    Attributes:
      pairs: the `LISTED` largest, in descending order, each with the bits of its position in the row if these were asked
        for (else of some integer); -inf where there are not as many.
      kth: the k-th largest.
      missing: how many elements equal to `kth` the list lacks (f32).
      nans: how many NaN there are (f32), exact below `k`.
    """

    pairs: ir.Value
    kth: ir.Value
    missing: ir.Value
    nans: ir.Value


class Candidates:
    """Builds the search of one kernel. The insertion point at construction is that of the tiles it needs throughout."""

    def __init__(self, b: Builder, keys: Keys, positions: bool = False):
        self.b, self.keys, self.positions = b, keys, positions
        self.order = self._ramp(_GATHERED, b.i32_type, "order")
        self.ramp = self._ramp(_HEAD, b.f32_type, "head_ramp")
        self.ones = b.splat(b.f32(1.0), _GATHERED, "ones")

    def largest(self, chunks: RowChunks, k: ir.Value) -> Largest:
        """The largest elements of a stretch; `k` (index) is at least 1 and at most `LISTED`."""
        b = self.b
        last = b.op(arith.subi, k, b.index(1), name="k_minus_one")
        bound = self.bound(chunks, last)
        lists = self._empty()
        *lists, used = self._collect(chunks, "UGE", bound, lists, b.index(0), "The elements that reach the bound.")
        overflows = b.cmpi("sge", used, b.index(_FULL), "too_many")
        about = "Too many for the list: the k-th largest exactly, those above it, and copies of it."
        *lists, beyond = b.if_(
            overflows, [*self._names(), "beyond"],
            lambda: self._exactly(chunks, k), lambda: [*lists, b.f32(0.0)],
            types=[*(x.type for x in lists), b.f32_type], about=about,
        )  # fmt: skip
        return self._sorted(lists, last, beyond)

    def bound(self, chunks: RowChunks, last: ir.Value) -> ir.Value:
        """A number that more than `last` elements reach."""
        b = self.b
        maxima = chunks.each(
            [("maxima", b.splat(b.f32(NEG_INF), MAXIMA))],
            lambda chunk, maxima: [b.op(arith.maximumf, maxima, folded(b, arith.maximumf, chunk.x, MAXIMA), name="maxima")],
            "Maxima over the positions that are equal mod 256.",
        )[0]
        pairs = self._sort(maxima, slice_of(b, self.order, 0, MAXIMA))
        values = self._unpacked(pairs)[0]
        return self._extract(values, last, "bound")

    # -- the list of candidates ---------------------------------------------------------------------------------

    def _names(self) -> list[str]:
        return ["candidates", "places"][: 1 + self.positions]

    def _empty(self) -> list[ir.Value]:
        b = self.b
        lanes = _GATHERED + _HEAD  # what a chunk adds at the end of a full list is not part of it
        empty = [b.splat(b.f32(NEG_INF), lanes)]
        return [*empty, b.splat(b.i32(0), lanes)] if self.positions else empty

    def _collect(self, chunks: RowChunks, predicate: str, bound, lists, used, about: str) -> list[ir.Value]:
        """Appends the elements of the stretch that compare so with the bound; how many lanes are then in use, `_FULL` or
        more if some did not fit."""
        b = self.b

        def body(chunk: Chunk, *state):
            *lists, used = state
            mask = b.cmpf(predicate, chunk.x, b.splat(bound, chunks.chunk), "reaches")
            heads, kept = self._heads(chunk, mask)
            at = b.op(arith.minsi, used, b.index(_GATHERED), name="at")
            lists = [with_slice(b, x, head, at, name) for x, head, name in zip(lists, heads, self._names())]
            rounded = b.op(arith.andi, b.op(arith.addi, kept, b.index(7)), b.index(-8), name="lanes")
            fits = b.op(arith.andi, b.cmpi("sle", kept, b.index(_HEAD)), b.cmpi("sle", used, b.index(_GATHERED - _HEAD)))
            fits = b.op(arith.ori, fits, b.cmpi("eq", kept, b.index(0)), name="fits")
            more = b.select(fits, rounded, b.index(_FULL))
            return [*lists, b.op(arith.addi, used, more, name="used")]

        carried = [*zip(self._names(), lists), ("used", used)]
        return chunks.each(carried, body, about)

    def _heads(self, chunk: Chunk, mask: ir.Value) -> tuple[list[ir.Value], ir.Value]:
        """The first elements of a chunk under a mask, with -inf behind them, and their positions; and how many are."""
        b = self.b
        source = chunk.x if chunk.raw is None else chunk.raw
        packed = b.build(TILE.classes["Compress"], source, mask, results=[source.type, b.index_type], name="packed")
        head = slice_of(b, packed.value, 0, _HEAD, "head")
        if head.type != self.ramp.type:
            head = b.op(arith.extf, self.ramp.type, head, name="head_x")
        kept = b.op(arith.sitofp, b.f32_type, b.op(arith.index_cast, b.i32_type, packed.kept), name="kept")
        inside = b.cmpf("OLT", self.ramp, b.splat(kept, _HEAD), "inside")
        heads = [b.select(inside, head, b.splat(b.f32(NEG_INF), _HEAD), "head_or_empty")]
        if self.positions:
            ramp = self._ramp(length_of(mask), b.i32_type, "ramp")
            places = b.build(TILE.classes["Compress"], ramp, mask, results=[ramp.type, b.index_type], name="packed_places")
            column = b.splat(b.op(arith.index_cast, b.i32_type, chunk.column), _HEAD)
            heads.append(b.op(arith.addi, slice_of(b, places.value, 0, _HEAD), column, name="places"))
        return heads, packed.kept

    # -- many candidates ----------------------------------------------------------------------------------------

    def _exactly(self, chunks: RowChunks, k: ir.Value) -> list[ir.Value]:
        """The lists of what is above the k-th largest, then of copies of it; and how many copies did not fit."""
        b, keys = self.b, self.keys
        wanted = b.op(arith.sitofp, b.f32_type, b.op(arith.index_cast, b.i32_type, k), name="wanted")

        def enough(middle):
            return b.cmpf("OGE", self._count(chunks, "UGE", keys.value(middle, "threshold")), wanted, "enough")

        above_all = b.op(arith.addi, keys.constant(float("inf")), b.i32(1))
        low, _ = keys.bisect(keys.constant(NEG_INF), above_all, enough, ("low_key", "high_key"), "The k-th largest, by its key.")
        kth = keys.value(low, "kth")
        *lists, used = self._collect(chunks, "UGT", kth, self._empty(), b.index(0), "The elements above the k-th.")
        *lists, _ = self._collect(chunks, "OEQ", kth, lists, used, "Copies of the k-th.")
        listed = self._total(b.cmpf("UGE", slice_of(b, lists[0], 0, _GATHERED), b.splat(kth, _GATHERED), "listed"), "listed")
        reaching = self._count(chunks, "UGE", kth)
        return [*lists, b.op(arith.subf, reaching, listed, name="beyond")]

    def _count(self, chunks: RowChunks, predicate: str, bound: ir.Value) -> ir.Value:
        """How many elements of the stretch compare so with a number (f32)."""
        b = self.b

        def body(chunk: Chunk, total):
            mask = b.cmpf(predicate, chunk.x, b.splat(bound, chunks.chunk), "hits")
            return [b.op(arith.addf, total, self._total(mask, "chunk_hits"), name="hits")]

        return chunks.each([("hits", b.f32(0.0))], body, "How many elements reach the threshold.")[0]

    # -- the sorted list ----------------------------------------------------------------------------------------

    def _sorted(self, lists: list[ir.Value], last: ir.Value, beyond: ir.Value) -> Largest:
        b = self.b
        values = slice_of(b, lists[0], 0, _GATHERED)
        nans = self._total(b.cmpf("UNE", values, values, "is_nan"), "nans")
        is_number = b.cmpf("OEQ", values, values, "is_number")
        values = b.select(is_number, values, b.splat(b.f32(float("inf")), _GATHERED), "ranked")
        places = slice_of(b, lists[1], 0, _GATHERED) if self.positions else self.order
        pairs = self._sort(values, places)
        ranked = self._unpacked(pairs)[0]
        kth = self._extract(ranked, last, "kth")
        reach = b.select(b.cmpf("OGE", ranked, b.splat(kth, _GATHERED), "reach"), self.ones, b.splat(b.f32(0.0), _GATHERED))
        runs = _GATHERED // LISTED
        counts = b.build(
            TILE.classes["Reduce"], reach, results=[tile_type(runs, b.f32_type)], kind="add", group=LISTED, name="reach_counts"
        ).value
        missing = beyond
        for run in range(1, runs):
            missing = b.op(arith.addf, missing, self._extract(counts, b.index(run), "unlisted"), name="missing")
        return Largest(slice_of(b, pairs, 0, 2 * LISTED, "largest"), kth, missing, nans)

    # -- single ops ---------------------------------------------------------------------------------------------

    def _ramp(self, length: int, element: ir.Type, name: str) -> ir.Value:
        return self.b.build(TILE.classes["Iota"], results=[tile_type(length, element)], name=name).value

    def _sort(self, scores: ir.Value, indices: ir.Value) -> ir.Value:
        lanes = length_of(scores)
        pairs = tile_type(2 * lanes, self.b.f32_type)
        return self.b.build(TILE.classes["Sort"], scores, indices, results=[pairs], run=lanes, name="sorted").pairs

    def _unpacked(self, pairs: ir.Value) -> tuple[ir.Value, ir.Value]:
        return unpacked(self.b, pairs)

    def _total(self, mask: ir.Value, name: str) -> ir.Value:
        lanes = length_of(mask)
        short = lanes <= _GATHERED
        return count_of(self.b, mask, slice_of(self.b, self.ones, 0, lanes) if short else None, name)

    def _extract(self, tile: ir.Value, position: ir.Value, name: str) -> ir.Value:
        element = ir.RankedTensorType(tile.type).element_type
        return self.b.build(TILE.classes["Extract"], tile, position, results=[element], name=name).scalar


def unpacked(b: Builder, pairs: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Scores and indices of a sorted list."""
    lanes = length_of(pairs) // 2
    types = [tile_type(lanes, b.f32_type), tile_type(lanes, b.i32_type)]
    op = b.build(TILE.classes["Unpack"], pairs, results=types, name="values")
    return op.values, op.indices


def folded(b: Builder, function, x: ir.Value, width: int) -> ir.Value:
    """`width` lanes: `function` over the lanes of a tile that are equal mod `width`."""
    rows, left = length_of(x) // width, []
    while rows > 1:
        half = rows // 2
        if rows % 2:
            left.append(slice_of(b, x, (rows - 1) * width, width))
        low, high = slice_of(b, x, 0, half * width), slice_of(b, x, half * width, half * width)
        x, rows = b.op(function, low, high, name="folded"), half
    for other in left:
        x = b.op(function, x, other, name="folded")
    return x


def count_of(b: Builder, mask: ir.Value, ones: ir.Value | None, name: str) -> ir.Value:
    """How many lanes are under a mask (f32); `ones`, if there is a tile of them."""
    lanes = length_of(mask)
    ones = b.splat(b.f32(1.0), lanes, "ones") if ones is None else ones
    hits = b.select(mask, ones, b.splat(b.f32(0.0), lanes), f"{name}_ones")
    power = lanes & -lanes
    hits = folded(b, arith.addf, hits, power)
    total = b.build(TILE.classes["Reduce"], hits, results=[tile_type(1, b.f32_type)], kind="add", group=power, name=name)
    return b.build(TILE.classes["Extract"], total.value, b.index(0), results=[b.f32_type], name=name).scalar
