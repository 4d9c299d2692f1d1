"""`ascend.sort` on tiles.

- *Rows that fit one list* are sorted whole.
- *Longer rows* in batches (`descending.py`): values between two, collected in one pass over the row and sorted in the
  unified buffer. Bands of values are independent of each other, so where there are fewer rows than cores, a row's bands
  are dealt out to several; each begins with the number of elements in front of it. Nothing is merged through global
  memory.

Ascending order is the descending order of the negated values, which keeps equal values in order of position as well.
NaN is greatest, and goes first or last by a pass of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlir import ir
from mlir.dialects import arith

from jascend.backends.ascend.targets import Target
from jascend.dialect import TILE

from ..builder import Stage, tile_type
from .descending import ALL, Descending
from .keys import Keys
from .lowering import lowering
from .ops import Ops
from .row_chunks import NEG_INF, Chunk, RowChunks, length_of, slice_of
from .rows import length_refusal
from .site import Candidate, Site

SUMMARY = "Sorts every row, stable, with the position each value came from."
CANDIDATES = (Candidate(4096), Candidate(4096, load_ahead=False))

_MAX_PARTS = 16
_LISTS = (64, 128, 256, 384, 512, 1024, 2048, 4096)


def refusal(op: ir.OpView, target: Target) -> str | None:
    """Why no kernel is generated for an op; None if one is."""
    x = ir.RankedTensorType(op.x.type)
    if x.rank != 2:
        return f"is generated for rows of a matrix, not for rank {x.rank}"
    return length_refusal(op.x)


@lowering("ascend.sort", summary=SUMMARY, refusal=refusal, candidates=CANDIDATES)
def lower(op: ir.OpView, site: Site) -> None:
    """Builds the kernel body: all rows of this core."""
    _Sort(op, site).build()


class _Sort:
    def __init__(self, op, site: Site):
        self.op, self.site, self.producers, self.b = op, site, site.producers, site.b
        x = ir.RankedTensorType(op.x.type)
        self.length, self.dtype, self.descends = x.get_dim_size(1), x.element_type, op.descending
        self.is_short = self.length <= _LISTS[-1]
        self.chunk = next((lanes for lanes in _LISTS if lanes >= self.length), ALL.length)
        self.producers.tile = self.chunk
        site.deal_out(site.outputs["values"])
        self.rows = None if x.is_dynamic_dim(0) else x.get_dim_size(0)

    def _parts(self, bands: int) -> int:
        """How many cores share a row, each with a band at least."""
        if self.site.parts is not None or not self.rows:
            return self.site.parts or 1
        return max(1, min(_MAX_PARTS, bands, self.site.target.vector_cores // self.rows))

    def build(self) -> None:
        b = self.b
        self.t = Ops(b)
        self.parts = 1
        self.ramp = self.t.ramp(self.chunk, b.f32_type, "ramp")
        if self.is_short:
            self.order = self.t.ramp(self.chunk, b.i32_type, "order")
        else:
            lane = self.t.ramp(self.chunk, ir.IntegerType.get_signless(16), "lane")
            self.descending = Descending(self.t, Keys(b, self.dtype), self.ramp, lane, self.length)
            self.parts = self._parts(self.descending.bands)
        share = b.build(TILE.classes["BlockRows"], self.site.rows, results=[b.index_type] * 4, parts=self.parts)
        self.part = share.part
        b.for_(share.first, share.last, self.t.one, [], self.row, induction="row", about="The rows of this core.")

    def row(self, row: ir.Value) -> list[ir.Value]:
        t, b = self.t, self.b
        self.producers.enter_row(row, [(self.op.x, ("row", "col"))])
        self.row_offset = b.op(arith.muli, row, b.index(self.length), name="row_offset")
        rows = RowChunks(
            b,
            self.producers,
            self.op.x,
            t.zero,
            b.index(self.length),
            chunk=self.chunk,
            length=self.length,
            ramp=self.ramp,
        )
        chunks = _Ordered(t, rows, self.ramp, self.descends)
        if self.is_short:
            self.short_row(chunks)
        else:
            self.long_row(chunks)
        return []

    def short_row(self, chunks: _Ordered) -> None:
        t, b = self.t, self.b
        x = chunks.at(t.zero, b.index(self.length)).x
        values, indices = t.unpacked(t.sorted(x, self.order, "sorted"))
        if not self.descends:
            ones = t.where(b.cmpf("UNE", x, x, "is_nan"), t.filled(1.0, self.chunk, "ones"), 0.0, "nan_ones")
            nans = t.reduced("add", ones, "nans")
            values, indices = b.if_(
                b.cmpf("OGT", nans, b.f32(0.0)), ["values", "indices"], lambda: self.rotated(values, indices, nans),
                lambda: [values, indices], types=[values.type, indices.type],
                about=Stage("MoveNan", "NaN goes from the front to the end."),
            )  # fmt: skip
        self.write(values, indices, t.zero, b.index(self.length))

    def rotated(self, values: ir.Value, indices: ir.Value, by: ir.Value) -> list[ir.Value]:
        """The row with its first elements at the end."""
        t, b, lanes = self.t, self.b, self.chunk
        source = b.op(arith.addf, self.ramp, b.splat(by, lanes), name="source")
        wrapped = b.op(arith.subf, source, t.filled(self.length, lanes), name="wrapped")
        source = b.select(t.compare("OLT", source, b.f32(self.length), "is_inside"), source, wrapped, "source")
        source = t.to_i32(source, "source_lane")
        return [t.gather(values, source, "values"), t.gather(indices, source, "indices")]

    # -- long rows ----------------------------------------------------------------------------------------------

    def long_row(self, chunks: _Ordered) -> None:
        t, b = self.t, self.b
        sample = self.descending.sample(chunks)
        nans = self.count(chunks, "UNE", None)
        start = nans if self.descends else t.zero
        at = t.zero if self.descends else t.minus(b.index(self.length), nans, "numbers")

        def copy_nans():
            self.copy_nans(chunks, at)
            return []

        def one_band(band):
            high, low = self.descending.edge(sample, band), self.descending.edge_behind(sample, t.plus(band, t.one))
            is_first = b.cmpi("eq", band, t.zero, "is_first")
            (rank,) = b.if_(
                is_first, ["rank"], lambda: [start],
                lambda: [t.plus(start, self.count(chunks, "OGE", high), "rank")], types=[b.index_type],
            )  # fmt: skip

            def batch(values, indices, number, rank):
                self.write(values, indices, rank, number)
                return [t.one, t.plus(rank, number, "rank")]

            def within():
                self.descending.each(chunks, sample, high, low, [("rank", rank)], batch)
                return []

            b.if_(t.opposite(b.cmpf("OGE", low, high), "has_elements"), [], within)
            with_nan = t.both(is_first, b.cmpi("sgt", nans, t.zero))
            b.if_(with_nan, [], copy_nans, about=Stage("CopyNan", "NaN, in order of position."))
            return []

        if self.parts == self.descending.bands:
            with b.stage(Stage("SortBand", "A band of values: this core's part.")):
                one_band(self.part)
            return
        bands, parts = b.index(self.descending.bands), b.index(self.parts)
        b.for_(
            self.part,
            bands,
            parts,
            [],
            one_band,
            induction="band",
            about=Stage("SortBands", "Bands of values, from the greatest down."),
        )

    def count(self, chunks: _Ordered, predicate: str, bound: ir.Value | None) -> ir.Value:
        """How many elements compare so with a number, or with themselves (index)."""
        t, b = self.t, self.b
        ones = t.filled(1.0, self.chunk, "ones")

        def body(chunk: Chunk, numbers):
            hits = (
                b.cmpf(predicate, chunk.x, chunk.x, "hits")
                if bound is None
                else t.compare(predicate, chunk.x, bound, "hits")
            )
            return [b.op(arith.addf, numbers, t.where(hits, ones, 0.0, "hit_ones"), name="numbers")]

        (numbers,) = chunks.each([("numbers", t.filled(0.0, self.chunk, "numbers"))], body, "A count.")
        return t.index_of(t.reduced("add", numbers, "number"), "number")

    def copy_nans(self, chunks: _Ordered, at: ir.Value) -> None:
        t, b = self.t, self.b

        def body(chunk: Chunk, packed, places, at):
            nan = b.cmpf("UNE", chunk.x, chunk.x, "is_nan")
            packed, number = t.compress(chunk.x, nan, "packed")
            places, _ = t.compress(self.ramp, nan, "packed_places")

            indices = t.to_i32(t.in_row(places, chunk.column, "positions"), "indices")
            self.write(packed, indices, at, number)
            return [packed, places, t.plus(at, number, "at")]

        # What is packed goes from chunk to chunk, so that the lanes behind it hold something.
        carried = [(name, t.filled(0.0, self.chunk, name)) for name in ("packed", "packed_places")]
        chunks.each([*carried, ("at", at)], body, "NaN.")

    # -- the result ---------------------------------------------------------------------------------------------

    def write(self, values: ir.Value, indices: ir.Value, rank: ir.Value, number: ir.Value) -> None:
        t, b, lanes = self.t, self.b, length_of(values)
        if not self.descends:
            values = b.op(arith.negf, values, name="values")
        if str(self.dtype) != "f32":
            values = b.op(arith.truncf, tile_type(lanes, self.dtype), values, name="narrow")
        offset = t.plus(self.row_offset, rank, "out_offset")
        t.store(values, self.site.outputs["values"], offset, number, once=True)
        t.store(indices, self.site.outputs["indices"], offset, number, once=True)


class _Ordered:
    """A row's chunks with values whose descending order is asked for. Lanes beyond the row hold -inf."""

    has_places = False

    def __init__(self, t: Ops, rows: RowChunks, ramp: ir.Value, descends: bool):
        self.t, self.rows, self.ramp, self.descends = t, rows, ramp, descends
        self.chunk, self.dtype, self.is_one = rows.chunk, rows.dtype, rows.is_one
        self.padding = NEG_INF
        self.is_load = descends and rows.is_load

    def each(
        self, carried: Sequence[tuple[str, ir.Value]], body: Callable[..., Sequence[ir.Value]], about: str
    ) -> list[ir.Value]:
        return self.rows.each(carried, lambda chunk, *state: body(self._ordered(chunk), *state), about)

    def at(self, column: ir.Value, count: ir.Value) -> Chunk:
        return self._ordered(self.rows.at(column, count))

    def sample(self, rows: int, length: int) -> ir.Value:
        sample = self.rows.sample(rows, length)
        return sample if self.descends else self.t.b.op(arith.negf, sample, name="negated")

    def _ordered(self, chunk: Chunk) -> Chunk:
        if self.descends:
            return chunk
        t, b = self.t, self.t.b
        x = b.op(arith.negf, chunk.x, name="negated")
        if not self.rows.is_whole:
            ramp = slice_of(b, self.ramp, 0, length_of(x))
            x = t.where(t.compare("OLT", ramp, t.f32_of(chunk.count), "inside"), x, NEG_INF, "negated")
        return Chunk(x, None, chunk.column, chunk.count)
