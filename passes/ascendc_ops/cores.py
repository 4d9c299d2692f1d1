"""What one core has to do with the others: its share of the rows."""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith

from jascend.dialect import ASCENDC

from .lowering import Lowering, lowers


@lowers("tile.block_rows")
def block_rows(low: Lowering, op: ir.Operation) -> None:
    """Rows are dealt out evenly; the first cores take one of the rest each."""
    b = low.b
    index = [b.index_type]
    core = b.build(ASCENDC.classes["BlockIdx"], results=index, name="core").value
    share = b.build(ASCENDC.classes["Tiling"], results=index, field="rows_per_core", name="rows_per_core").value
    rest = b.build(ASCENDC.classes["Tiling"], results=index, field="extra_rows", name="extra_rows").value
    before = b.op(arith.minsi, core, rest)
    first = b.op(arith.addi, b.op(arith.muli, core, share), before, name="first_row")
    extra = b.select(b.cmpi("slt", core, rest), b.index(1), b.index(0))
    last = b.op(arith.addi, b.op(arith.addi, first, share), extra, name="end_row")
    op.results[0].replace_all_uses_with(first)
    op.results[1].replace_all_uses_with(last)
