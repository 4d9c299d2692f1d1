"""Single ops on tiles, as lowerings write them: each builds one op, or the two or three that always go together."""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith

from jascend.dialect import TILE

from ..builder import Builder, tile_type
from .row_chunks import length_of


class Ops:
    """Builds ops at the insertion point, with `b`."""

    def __init__(self, b: Builder):
        self.b = b
        self.zero, self.one = b.index(0), b.index(1)

    # -- scalars ------------------------------------------------------------------------------------------------

    def truth(self, value: bool) -> ir.Value:
        return arith.constant(ir.IntegerType.get_signless(1), value, loc=self.b.loc())

    def both(self, a: ir.Value, b: ir.Value, name: str | None = None) -> ir.Value:
        return self.b.op(arith.andi, a, b, name=name)

    def either(self, a: ir.Value, b: ir.Value, name: str | None = None) -> ir.Value:
        return self.b.op(arith.ori, a, b, name=name)

    def opposite(self, a: ir.Value, name: str | None = None) -> ir.Value:
        return self.b.op(arith.xori, a, self.truth(True), name=name)

    def f32_of(self, number: ir.Value, name: str | None = None) -> ir.Value:
        """An index as f32."""
        b = self.b
        return b.op(arith.sitofp, b.f32_type, b.op(arith.index_cast, b.i32_type, number), name=name)

    def i32_of(self, number: ir.Value, name: str | None = None) -> ir.Value:
        return self.b.op(arith.index_cast, self.b.i32_type, number, name=name)

    def index_of(self, number: ir.Value, name: str | None = None) -> ir.Value:
        """An i32 or f32 as an index."""
        b = self.b
        if isinstance(number.type, ir.F32Type):
            number = b.op(arith.fptosi, b.i32_type, number)
        return b.op(arith.index_cast, b.index_type, number, name=name)

    def smaller(self, a: ir.Value, b: ir.Value, name: str | None = None) -> ir.Value:
        return self.b.op(arith.minsi, a, b, name=name)

    def larger(self, a: ir.Value, b: ir.Value, name: str | None = None) -> ir.Value:
        return self.b.select(self.b.cmpi("sgt", a, b), a, b, name)

    def plus(self, a: ir.Value, b: ir.Value, name: str | None = None) -> ir.Value:
        return self.b.op(arith.addi, a, b, name=name)

    def minus(self, a: ir.Value, b: ir.Value, name: str | None = None) -> ir.Value:
        return self.b.op(arith.subi, a, b, name=name)

    # -- tiles --------------------------------------------------------------------------------------------------

    def filled(self, value: float, length: int, name: str | None = None) -> ir.Value:
        return self.b.splat(self.b.f32(value), length, name)

    def ramp(self, length: int, element: ir.Type, name: str) -> ir.Value:
        return self.b.build(TILE.classes["Iota"], results=[tile_type(length, element)], name=name).value

    def compare(self, predicate: str, x: ir.Value, scalar: ir.Value, name: str) -> ir.Value:
        """A mask: a tile against a scalar."""
        return self.b.cmpf(predicate, x, self.b.splat(scalar, length_of(x)), name)

    def where(self, mask: ir.Value, x: ir.Value, otherwise: float, name: str) -> ir.Value:
        return self.b.select(mask, x, self.filled(otherwise, length_of(x)), name)

    def extract(self, x: ir.Value, position: ir.Value, name: str) -> ir.Value:
        element = ir.RankedTensorType(x.type).element_type
        return self.b.build(TILE.classes["Extract"], x, position, results=[element], name=name).scalar

    def reduced(self, kind: str, x: ir.Value, name: str) -> ir.Value:
        """The one result of a reduction of a whole tile, on the scalar unit."""
        return self.extract(self.reduce(kind, x, length_of(x), name), self.zero, name)

    def reduce(self, kind: str, x: ir.Value, group: int, name: str) -> ir.Value:
        result = tile_type(length_of(x) // group, self.b.f32_type)
        return self.b.build(TILE.classes["Reduce"], x, results=[result], kind=kind, group=group, name=name).value

    def find_first(self, mask: ir.Value, name: str) -> ir.Value:
        return self.b.build(TILE.classes["FindFirst"], mask, results=[self.b.index_type], name=name).position

    def running_sums(self, x: ir.Value, name: str) -> ir.Value:
        return self.b.build(TILE.classes["Cumsum"], x, results=[x.type], group=length_of(x), name=name).value

    def compress(self, x: ir.Value, mask: ir.Value, name: str) -> tuple[ir.Value, ir.Value]:
        op = self.b.build(TILE.classes["Compress"], x, mask, results=[x.type, self.b.index_type], name=name)
        return op.value, op.kept

    def gather(self, x: ir.Value, indices: ir.Value, name: str) -> ir.Value:
        result = tile_type(length_of(indices), ir.RankedTensorType(x.type).element_type)
        return self.b.build(TILE.classes["Gather"], x, indices, results=[result], name=name).value

    def sorted(self, scores: ir.Value, indices: ir.Value, name: str) -> ir.Value:
        """One list of all pairs."""
        pairs = tile_type(2 * length_of(scores), self.b.f32_type)
        return self.b.build(TILE.classes["Sort"], scores, indices, results=[pairs], run=length_of(scores), name=name).pairs

    def unpacked(self, pairs: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Scores and indices of a list."""
        b, lanes = self.b, length_of(pairs) // 2
        types = [tile_type(lanes, b.f32_type), tile_type(lanes, b.i32_type)]
        op = b.build(TILE.classes["Unpack"], pairs, results=types, name="values")
        return op.values, op.indices

    def store_index(self, index: ir.Value, memory: ir.Value, place: ir.Value) -> None:
        """One i32 that is not negative, to memory of i32 or i64."""
        b = self.b
        tile = b.splat(index, 8, "index")
        if str(ir.MemRefType(memory.type).element_type) == "i64":
            lane = self.ramp(8, b.i32_type, "index_lane")
            beyond = b.op(arith.minsi, lane, b.splat(b.i32(1), 8), name="is_upper")
            first = b.op(arith.subi, b.splat(b.i32(1), 8, "one"), beyond, name="is_first")
            tile = b.op(arith.muli, first, tile, name="index_words")
        self.store(tile, memory, place, self.one)

    def store(self, x: ir.Value, memory: ir.Value, offset: ir.Value, count: ir.Value) -> None:
        self.b.build(TILE.classes["Store"], x, memory, offset, count)
