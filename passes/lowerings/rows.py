"""The rows of a kernel: one core has a row to itself, or a group of cores shares it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlir import ir
from mlir.dialects import arith

from .ops import Ops
from .site import Site

MAX_ROW = 1 << 20  # elements


def length_refusal(x: ir.Value) -> str | None:
    """Why no kernel is generated for rows of such a length; None if one is."""
    rows = ir.RankedTensorType(x.type)
    if rows.is_dynamic_dim(1) or not 0 < rows.get_dim_size(1) <= MAX_ROW:
        return f"is generated for a fixed row length of 1 to {MAX_ROW}"
    return None


def each_row(t: Ops, share, body: Callable[[ir.Value], Sequence[ir.Value]]) -> None:
    """Every row of a core's `share` (`tile.block_rows`)."""
    t.b.for_(share.first, share.last, t.one, [], body, induction="row", about="The rows of this core.")


def each_round(t: Ops, site: Site, share, body: Callable[[ir.Value, ir.Value, ir.Value], None]) -> None:
    """Every row of the `share` of a core's group, with `tile.sync_all` in the body: `body(row, turn, active)`. `turn`
    is 0 in one round and 1 in the next. A core without a row in the last round goes along, `active` is false for it."""
    b = t.b

    def one_round(number):
        row = t.plus(share.first, number, "own_row")
        active = b.cmpi("slt", row, share.last, "has_row")
        last = b.op(arith.subi, site.rows, t.one)
        body(t.smaller(row, last, "row"), b.op(arith.andi, number, t.one, name="turn"), active)
        return []

    b.for_(
        t.zero, share.rounds, t.one, [], one_round, induction="round",
        about="The rows of this core's group. A core without a row goes along: all meet in every round.",
    )  # fmt: skip
