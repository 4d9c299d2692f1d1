"""`ascend.random_key` on tiles: Threefry (`threefry.py`) of one counter a key."""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith

from jascend.dialect import TILE

from .lowering import lowering
from .ops import Ops
from .rows import each_row
from .site import Candidate, Site
from .threefry import Threefry, key_of

SUMMARY = "Makes keys for random numbers of keys and counters, as jax.random splits them."
CANDIDATES = (Candidate(),)

_LANES = 8  # one block


@lowering("ascend.random_key", summary=SUMMARY, candidates=CANDIDATES)
def lower(op: ir.OpView, site: Site) -> None:
    """Builds the kernel body: all keys of this core."""
    t, b, producers, out = Ops(site.b), site.b, site.producers, site.outputs["child"]
    site.deal_out(out)
    share = b.build(TILE.classes["BlockRows"], site.rows, results=[b.index_type] * 4)
    cipher = Threefry(t)

    def row(number: ir.Value) -> list[ir.Value]:
        producers.enter_row(number, [])
        count = producers.row_scalar(op.count, ("row",), "count")
        cipher.enter_key(key_of(t, producers, op.key))
        words = cipher.of_low(b.splat(count, _LANES, "counter"))
        first = b.op(arith.muli, number, b.index(2), name="first_word")
        for i, word in enumerate(words):
            t.store(word, out, t.plus(first, b.index(i)), t.one, once=True)
        return []

    each_row(t, share, row)
