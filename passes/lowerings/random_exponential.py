"""`ascend.random_exponential` on tiles: Threefry over the places of each row (`threefry.py`), chunk by chunk.

Where there are fewer rows than cores, several share a row: chunks are dealt out to them, and nobody waits for anybody.
It is bound by the vector unit, at some 340 cycles for 64 numbers: who needs few of them draws them where they are
needed.
"""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith

from jascend.backends.ascend.targets import Target
from jascend.dialect import TILE

from ..builder import Stage, up
from .lowering import lowering
from .ops import Ops
from .rows import each_row, length_refusal
from .site import Candidate, Site
from .threefry import Draws, key_of

SUMMARY = "Draws exponential numbers, the same as jax.random with the same key."
CANDIDATES = (Candidate(4096), Candidate(2048), Candidate(1024))

_LANES = 64
_MOST_PARTS = 16


def refusal(op: ir.OpView, target: Target) -> str | None:
    """Why no kernel is generated for an op; None if one is."""
    return length_refusal(op.q)


@lowering("ascend.random_exponential", summary=SUMMARY, refusal=refusal, candidates=CANDIDATES)
def lower(op: ir.OpView, site: Site) -> None:
    """Builds the kernel body: all rows of this core."""
    t, b, producers = Ops(site.b), site.b, site.producers
    shape = ir.RankedTensorType(op.q.type)
    length = shape.get_dim_size(1)
    chunk = min(site.tile, up(length, _LANES))
    parts = min(_parts(shape, site), -(-length // chunk))
    site.deal_out(site.outputs["q"])
    share = b.build(TILE.classes["BlockRows"], site.rows, results=[b.index_type] * 4, parts=parts)
    ramp = t.ramp(chunk, b.i32_type, "lane")
    draws = Draws(t, op, length)

    def row(number: ir.Value) -> list[ir.Value]:
        producers.enter_row(number, [])
        draws.enter_row(key_of(t, producers, op.key), number)
        offset = t.times(number, length, "row_offset")

        def one(column):
            places = b.op(arith.addi, ramp, t.splat(t.i32_of(column), ramp), name="places")
            count = t.smaller(t.minus(b.index(length), column, "left"), b.index(chunk), "count")
            t.store(draws.numbers(places), site.outputs["q"], t.plus(offset, column, "out_offset"), count, once=True)
            return []

        first = t.zero if parts == 1 else t.times(share.part, chunk, "first_column")
        b.for_(
            first, b.index(length), b.index(parts * chunk), [], one, induction="column",
            about=Stage("DrawRow", "The row, chunk by chunk."),
        )  # fmt: skip
        return []

    each_row(t, share, row)


def _parts(shape: ir.RankedTensorType, site: Site) -> int:
    """How many cores are to share a row."""
    if site.parts is not None or shape.is_dynamic_dim(0) or shape.get_dim_size(0) == 0:
        return site.parts or 1
    return max(1, min(_MOST_PARTS, site.target.vector_cores // shape.get_dim_size(0)))
