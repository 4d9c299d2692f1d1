"""Where an operator's kernel is built: what every lowering to tiles gets, and what it leaves behind for the launch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mlir import ir
from mlir.dialects import memref

from jascend.backends.ascend.targets import Target

from ..builder import Builder, up
from .producers import Producers

ROWS_OF = "ascend.rows_of"  # number of the argument whose leading dimension is dealt out to the cores
# Of an operator that is not row by row, but whose kernel serves any number of rows: how many at most; 0: no bound.
ANY_ROWS = "ascend.any_rows"

PART_UNIT = 1024  # elements that the length of a row's part is a multiple of: sums have blocks of as many
_MAX_PARTS = 16  # lists that two merges of four make one
_MIN_PART = 2048  # elements: below, what the parts tell each other costs more than the row


@dataclass(frozen=True)
class Candidate:
    """How large a lowering makes its tiles. A lowering lists candidates in its order of preference (`CANDIDATES`); the
    compiler takes the first one whose buffers fit.

    Attributes:
      tile: elements of a row to handle at a time, where a lowering goes in chunks.
      batch: rows to handle at a time, where a lowering takes several.
      load_ahead: whether `pipeline-loads` may give the kernel's loads a second buffer each.
      piece: elements of a computed operand in one go, where a chunk's worth is too much; None: a chunk.
    """

    tile: int = 4096
    batch: int = 1
    load_ahead: bool = True
    piece: int | None = None


CANDIDATES = (
    Candidate(4096), Candidate(2048), Candidate(4096, load_ahead=False), Candidate(2048, load_ahead=False),
    Candidate(1024, load_ahead=False),
)  # fmt: skip


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
      candidate: the sizes that are tried; `tile` is its own or that of the pass option.
      parts: how many cores are to share a row; None: as the lowering sees fit.
      any_rows: the number that stands for any number of rows; 0: all are as they are.
      most_rows: how many they are at most; 0: no bound.
      remarks: sentences on what was decided and why, for `explain`.
    """

    b: Builder
    producers: Producers
    outputs: Mapping[str, ir.Value]
    target: Target
    tile: int
    candidate: Candidate = Candidate()
    parts: int | None = None
    any_rows: int = 0
    most_rows: int = 0
    rows: ir.Value | None = None
    remarks: list[str] = field(default_factory=list)

    def deal_out(self, memory: ir.Value) -> None:
        """Makes the leading dimension of an argument the rows that the launch deals out."""
        kernel = memory.owner.owner
        i64 = ir.IntegerType.get_signless(64)
        kernel.attributes[ROWS_OF] = ir.IntegerAttr.get(i64, memory.arg_number)
        self.rows = self.b.op(memref.dim, memory, self.b.index(0), name="rows")

    def known_rows(self, tensor: ir.Type) -> int | None:
        """How many rows a tensor has; None where any number has to be served."""
        tensor = ir.RankedTensorType(tensor)
        if tensor.is_dynamic_dim(0):
            return None
        size = tensor.get_dim_size(0)
        return None if self.any_rows and size and size % self.any_rows == 0 else size

    def bound_of_rows(self, tensor: ir.Type) -> int | None:
        """How many rows a tensor has at most, where any number has to be served; None: no bound."""
        tensor = ir.RankedTensorType(tensor)
        times = 1 if tensor.is_dynamic_dim(0) else tensor.get_dim_size(0) // self.any_rows
        return times * self.most_rows or None

    def serve_any_rows(self, most: int | None) -> None:
        """Says so of the kernel, for an operator that is not row by row."""
        i64 = ir.IntegerType.get_signless(64)
        self.rows.owner.operands[0].owner.owner.attributes[ANY_ROWS] = ir.IntegerAttr.get(i64, most or 0)

    def parts_of_row(self, matrix: ir.RankedTensorType) -> int:
        """How many cores are to share a row of a matrix."""
        return parts_of_row(matrix, self.target.vector_cores, self.parts)


def parts_of_row(matrix: ir.RankedTensorType, cores: int, parts: int | None = None) -> int:
    """How many of a product's cores are to share a row of a matrix, `parts` at most: as many as there are for it, if
    there are two at least, each with enough to do."""
    rows, length = matrix.shape
    if parts is not None:
        cores = parts
    elif matrix.is_dynamic_dim(0) or rows == 0:
        return 1
    else:
        cores = cores // rows
    most = min(cores, _MAX_PARTS, -(-length // _MIN_PART))
    if most < 2:
        return 1
    # The same length with fewer parts: no part is empty.
    return -(-length // up(-(-length // most), PART_UNIT))
