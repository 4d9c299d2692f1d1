"""Ops of the tile level by short names, for lowerings that take many rows at a time."""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith, tensor

from jascend.dialect import TILE

from ..builder import Builder, tile_type


class Tiles:
    """What changes nothing builds nothing: a group taken whole, a repetition once."""

    b: Builder

    def tile(self, cls: str, *operands, length: int, name: str, element: ir.Type | None = None, **attributes) -> ir.Value:
        """An op of the tile level with one result, by default of the first operand's elements."""
        element = element or ir.ShapedType(operands[0].type).element_type
        op = self.b.build(TILE.classes[cls], *operands, results=[tile_type(length, element)], name=name, **attributes)
        return op.operation.results[0]

    def whole(self, x: ir.Value, name: str) -> ir.Value:
        """The integers that positive numbers begin with."""
        return self.b.op(arith.fptosi, tile_type(self.length(x), self.b.i32_type), x, name=name)

    def length(self, tile: ir.Value) -> int:
        return ir.RankedTensorType(tile.type).get_dim_size(0)

    def iota(self, length: int, element: ir.Type, name: str) -> ir.Value:
        return self.tile("Iota", length=length, element=element, name=name)

    def take(self, x: ir.Value, group: int, start: int, count: int, name: str) -> ir.Value:
        if count == group:
            return x
        return self.tile("Take", x, length=self.length(x) // group * count, name=name, group=group, start=start, count=count)

    def start(self, x: ir.Value, count: int) -> ir.Value:
        """The first so many elements."""
        if count == self.length(x):
            return x
        return tensor.extract_slice(tile_type(count, ir.ShapedType(x.type).element_type), x, [], [], [], [0], [count], [1])

    def spread(self, x: ir.Value, group: int, to: int, fill: float, name: str) -> ir.Value:
        if to == group:
            return x
        return self.tile("Spread", x, length=self.length(x) // group * to, name=name, group=group, width=to, fill=fill)

    def repeat(self, x: ir.Value, times: int, name: str) -> ir.Value:
        n = self.length(x)
        return x if times == 1 else self.tile("Repeat", x, length=n * times, name=name, group=n)

    def broadcast(self, x: ir.Value, width: int, name: str) -> ir.Value:
        return self.tile("Broadcast", x, length=self.length(x) * width, name=name, width=width)
