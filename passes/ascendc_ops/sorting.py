"""Ops that move lanes by what they hold."""

from __future__ import annotations

from mlir import ir

from .lowering import Lowering, lowers


@lowers("tile.compress")
def compress(low: Lowering, op: ir.Operation) -> None:
    x, mask = op.operands
    packed = low.emit("GatherMask", low.result(op), low.of(x), low.of(mask), results=[low.b.index_type])
    op.results[1].replace_all_uses_with(packed.kept)
