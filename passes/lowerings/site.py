"""Where an operator's kernel is built: what every lowering to tiles gets, and what it leaves behind for the launch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mlir import ir
from mlir.dialects import memref

from jascend.backends.ascend.targets import Target

from ..builder import Builder
from .producers import Producers

ROWS_OF = "ascend.rows_of"  # number of the argument whose leading dimension is dealt out to the cores


@dataclass
class Site:
    """One kernel under construction; the insertion point is in its body.

    Attributes:
      b: builds at the operator's location.
      producers: computes pieces of the operator's operands.
      outputs: the global memory of each result that the operator has, by the result's name.
      target: the product the kernel is for.
      rows: how many rows there are, known at launch only; they are dealt out to the cores.
      tile: elements of a row to handle at a time, where a lowering goes in chunks.
      remarks: sentences on what was decided and why, for `explain`.
    """

    b: Builder
    producers: Producers
    outputs: Mapping[str, ir.Value]
    target: Target
    tile: int
    rows: ir.Value | None = None
    remarks: list[str] = field(default_factory=list)

    def deal_out(self, memory: ir.Value) -> None:
        """Makes the leading dimension of an argument the rows that the launch deals out."""
        kernel = memory.owner.owner
        i64 = ir.IntegerType.get_signless(64)
        kernel.attributes[ROWS_OF] = ir.IntegerAttr.get(i64, memory.arg_number)
        self.rows = self.b.op(memref.dim, memory, self.b.index(0), name="rows")
