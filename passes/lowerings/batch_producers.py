"""Elementwise producers of a kernel's operands, for many rows at a time.

The counterpart of `Producers` for kernels in which a batch of rows lies in one tile: every row, or every one of the
equal parts that it is divided into, takes `pitch` lanes. A piece is the value of all lanes of the batch. What changes
along a row only is loaded once and repeated; what changes from row to row only is loaded as one element a row and
broadcast; what does neither is a splat or one element, broadcast.
"""

from __future__ import annotations

from contextlib import nullcontext

from mlir import ir
from mlir.dialects import arith, tensor

from jascend.dialect import TILE

from ..builder import tile_type
from .access import Access
from .producers import Producers

_BLOCK = 32  # bytes


class BatchProducers(Producers):
    """Computes values of one kernel function on batches of rows of `parts` times `size` elements."""

    def __init__(self, producers: Producers, parts: int, size: int, pitch: int):
        super().__init__(producers.b, producers.buffers, parts * pitch)
        self.parts, self.size, self.pitch = parts, size, pitch
        self.most = 1  # rows of the batch
        self.rows: ir.Value | None = None  # of them that there are
        self.early: ir.Operation | None = None  # loads that do not depend on the row stand before it

    def batch(self, value, access: Access, row: ir.Value, rows: ir.Value, most: int, pad: float) -> ir.Value:
        """The lanes of `rows` rows from `row` on, of `most` that the tile has room for, as float32 or int32. `pad`
        fills the lanes that no element is loaded to."""
        self.row, self.rows, self.most = row, rows, most
        return self._compute(value, access, None, None, pad, {})

    # -- the walk, where it differs -----------------------------------------------------------------------------

    def _length(self, column) -> int:
        return self.most * self.tile

    def _load(self, argument: ir.Value, access: Access, column, count, pad: float) -> ir.Value:
        by_row, by_column = "row" in access, "col" in access
        name = self._name(argument)
        if by_column:
            first, rows, most = (self.row, self.rows, self.most) if by_row else (self.b.index(0), self.b.index(1), 1)
            with ir.InsertionPoint(self.early) if self.early and not by_row else nullcontext():
                loaded = self._load_rows(argument, first, rows, most, pad, name)
            loaded = self._widen(loaded, name)
            return loaded if by_row or self.most == 1 else self._repeated(loaded, name)
        first, rows, most = (self.row, self.rows, self.most) if by_row else (self.b.index(0), self.b.index(1), 1)
        return self._spread_out(self._widen(self._load_elements(argument, first, rows, most, name), name), most, name)

    def _load_rows(self, argument: ir.Value, first, rows, most: int, pad: float, name: str) -> ir.Value:
        b = self.b
        element = ir.ShapedType(argument.type).element_type
        return b.build(
            TILE.classes["LoadRows"], self.buffers[argument.arg_number],
            self._times(first, self.parts * self.size, f"{name}_offset"), self._times(rows, self.parts,
            f"{name}_parts"),
            results=[tile_type(most * self.tile, element)], row_length=self.size, gm_pitch=self.size, pitch=self.pitch,
            pad=ir.FloatAttr.get(b.f32_type, pad), name=name,
        ).value  # fmt: skip

    def _load_elements(self, argument: ir.Value, first, count, most: int, name: str) -> ir.Value:
        b = self.b
        element = ir.ShapedType(argument.type).element_type
        block = _BLOCK // (4 if str(element) in ("f32", "i32") else 2)
        return b.build(
            TILE.classes["Load"], self.buffers[argument.arg_number], first, count,
            results=[tile_type(-(-most // block) * block, element)], pad=ir.FloatAttr.get(b.f32_type, 0.0), name=name,
        ).value  # fmt: skip

    def _times(self, number: ir.Value, factor: int, name: str) -> ir.Value:
        owner = number.owner
        if not isinstance(owner, ir.Block) and owner.name == "arith.constant":
            return self.b.index(owner.attributes["value"].value * factor)
        return number if factor == 1 else self.b.op(arith.muli, number, self.b.index(factor), name=name)

    def _repeated(self, row: ir.Value, name: str) -> ir.Value:
        element = ir.ShapedType(row.type).element_type
        rows = [tile_type(self._length(None), element)]
        return self.b.build(TILE.classes["Repeat"], row, results=rows, group=self.tile, name=f"{name}_rows").value

    def _spread_out(self, elements: ir.Value, count: int, name: str) -> ir.Value:
        """Each of the first `count` elements over its share of the lanes."""
        b = self.b
        element = ir.ShapedType(elements.type).element_type
        start = tensor.extract_slice(
            tile_type(count, element), elements, [], [], [], [0], [count], [1], loc=b.loc(name)
        )
        lanes = self._length(None)
        return b.build(
            TILE.classes["Broadcast"],
            start,
            results=[tile_type(lanes, element)],
            width=lanes // count,
            name=f"{name}_rows",
        ).value

    def _outer(self, value: ir.Value, column) -> ir.Value:
        return self.b.splat(self._scalar_constant(value.owner), self._length(None))
