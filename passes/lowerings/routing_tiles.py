"""Ops of the tile level in short, as the kernels of routing use them."""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith

from jascend.dialect import TILE

from ..builder import Builder, tile_type
from .row_chunks import length_of, slice_of


class Tiles:
    """Builds ops with one result at the insertion point of `b`. `cls` is the op's class, `length` the result's."""

    def __init__(self, b: Builder):
        self.b = b

    def make(self, cls: str, *operands, length: int, name: str, element: ir.Type | None = None, **attributes):
        """An op whose result has by default the elements of its first operand."""
        element = element or ir.ShapedType(operands[0].type).element_type
        op = self.b.build(TILE.classes[cls], *operands, results=[tile_type(length, element)], name=name, **attributes)
        return op.operation.results[0]

    def iota(self, length: int, element: ir.Type, name: str) -> ir.Value:
        return self.make("Iota", length=length, element=element, name=name)

    def repeat(self, x: ir.Value, times: int, name: str) -> ir.Value:
        return x if times == 1 else self.make("Repeat", x, length=times * length_of(x), name=name, group=length_of(x))

    def load(self, memory: ir.Value, offset, count, length: int, name: str, pad: float | None = None) -> ir.Value:
        """`count` elements of global memory."""
        element = ir.MemRefType(memory.type).element_type
        return self.make("Load", memory, offset, count, length=length, element=element, name=name, pad=pad)

    def store(self, value: ir.Value, memory: ir.Value, offset, count) -> None:
        self.b.build(TILE.classes["Store"], value, memory, offset, count)

    def gather(self, x: ir.Value, indices: ir.Value, name: str) -> ir.Value:
        return self.make("Gather", x, indices, length=length_of(indices), name=name)

    def compress(
        self, x: ir.Value, mask: ir.Value, name: str, readable: bool | None = None
    ) -> tuple[ir.Value, ir.Value]:
        """The elements under the mask, packed, and how many they are."""
        types = [x.type, self.b.index_type]
        op = self.b.build(TILE.classes["Compress"], x, mask, results=types, name=name, readable=readable)
        return op.value, op.kept

    def sort(self, scores: ir.Value, indices: ir.Value, run: int, name: str) -> ir.Value:
        """Lists of pairs."""
        return self.make("Sort", scores, indices, length=2 * length_of(scores), name=name, run=run)

    def indices_of(self, pairs: ir.Value, name: str) -> ir.Value:
        """The indices of a list of pairs."""
        count = length_of(pairs) // 2
        types = [tile_type(count, self.b.f32_type), tile_type(count, self.b.i32_type)]
        return self.b.build(TILE.classes["Unpack"], pairs, results=types, name=name).operation.results[1]

    def extract(self, x: ir.Value, position: ir.Value, name: str) -> ir.Value:
        """One integer, as an index."""
        element = ir.ShapedType(x.type).element_type
        scalar = self.b.build(TILE.classes["Extract"], x, position, results=[element], name=name).scalar
        return self.b.op(arith.index_cast, self.b.index_type, scalar, name=name)

    def to_f32(self, x: ir.Value, name: str) -> ir.Value:
        return self.b.op(arith.sitofp, tile_type(length_of(x), self.b.f32_type), x, name=name)

    def to_i32(self, x: ir.Value, name: str) -> ir.Value:
        return self.b.op(arith.fptosi, tile_type(length_of(x), self.b.i32_type), x, name=name)

    def head(self, x: ir.Value, length: int) -> ir.Value:
        """The first lanes."""
        return slice_of(self.b, x, 0, length)

    def splat(self, value: float | int | ir.Value, like: ir.Value, name: str | None = None) -> ir.Value:
        """A tile of as many lanes as `like`, of its elements, with one value."""
        shape = ir.RankedTensorType(like.type)
        if not isinstance(value, ir.Value):
            value = self.b.f32(value) if isinstance(shape.element_type, ir.F32Type) else self.b.i32(value)
        return self.b.splat(value, shape.get_dim_size(0), name)

    def i32_of(self, value: ir.Value, name: str | None = None) -> ir.Value:
        """An index as a 32-bit integer."""
        return self.b.op(arith.index_cast, self.b.i32_type, value, name=name)

    def f32_of(self, value: ir.Value, name: str | None = None) -> ir.Value:
        """An index as a float32."""
        return self.b.op(arith.sitofp, self.b.f32_type, self.i32_of(value), name=name)
