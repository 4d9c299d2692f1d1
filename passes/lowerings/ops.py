"""Single ops on tiles, as lowerings write them: each builds one op, or the two or three that always go together."""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith

from jascend.dialect import TILE
from jascend.dialect.ascendc import constant_index

from ..builder import Builder, Stage, name_of, tile_type
from .row_chunks import length_of, slice_of

GREATEST = 3.4028234663852886e38  # finite number of float32


_REDUCTIONS = {
    "add": Stage("AddLanes", "The sum of a tile."), "max": Stage("LargestLane", "The largest element of a tile."),
    "min": Stage("SmallestLane", "The smallest element of a tile."),
}  # fmt: skip


def _has_no_name(value: ir.Value, number: int | None) -> bool:
    """Whether a value is a mere number. One with a name is a constant of the text, which says more there."""
    return number is not None and name_of(value) is None


class Ops:
    """Builds ops at the insertion point, with `b`. What changes nothing builds nothing: a repetition once, a group
    whole."""

    def __init__(self, b: Builder):
        self.b = b
        self.zero, self.one = b.index(0), b.index(1)

    def make(
        self, cls: str, *operands, length: int, name: str, element: ir.Type | None = None, **attributes
    ) -> ir.Value:
        """An op of the tile level whose (first) result is a tile, by default of the first operand's elements."""
        element = element or ir.ShapedType(operands[0].type).element_type
        op = self.b.build(TILE.classes[cls], *operands, results=[tile_type(length, element)], name=name, **attributes)
        return op.operation.results[0]

    # -- scalars ------------------------------------------------------------------------------------------------

    def truth(self, value: bool, name: str | None = None) -> ir.Value:
        return self.b.constant(ir.IntegerType.get_signless(1), value, name)

    def both(self, a: ir.Value, b: ir.Value, name: str | None = None) -> ir.Value:
        return self.b.op(arith.andi, a, b, name=name)

    def either(self, a: ir.Value, b: ir.Value, name: str | None = None) -> ir.Value:
        if isinstance(b.type, ir.IntegerType) and constant_index(b) is False:
            return a
        return self.b.op(arith.ori, a, b, name=name)

    def opposite(self, a: ir.Value, name: str | None = None) -> ir.Value:
        return self.b.op(arith.xori, a, self.truth(True), name=name)

    def f32_of(self, number: ir.Value, name: str | None = None) -> ir.Value:
        """An index as f32."""
        known = constant_index(number)
        if known is not None:
            return self.b.f32(known)
        return self.b.op(arith.sitofp, self.b.f32_type, self.i32_of(number), name=name)

    def i32_of(self, number: ir.Value, name: str | None = None) -> ir.Value:
        """An index as i32."""
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
        x, y = constant_index(a), constant_index(b)
        if _has_no_name(a, x) and _has_no_name(b, y):
            return self.b.constant(a.type, x + y)
        return b if x == 0 else a if y == 0 else self.b.op(arith.addi, a, b, name=name)

    def from_column(self, place: ir.Value, column: ir.Value, name: str) -> ir.Value:
        """A position (f32), counted from a column (index) on."""
        if constant_index(column) == 0:
            return place
        return self.b.op(arith.subf, place, self.f32_of(column), name=name)

    def in_row(self, places: ir.Value, column: ir.Value, name: str) -> ir.Value:
        """Positions (f32, one or a tile) in a chunk that starts at a column (index), counted from the row's start
        on."""
        if constant_index(column) == 0:
            return places
        start = self.f32_of(column)
        is_tile = isinstance(places.type, ir.RankedTensorType)
        return self.b.op(arith.addf, places, self.splat(start, places) if is_tile else start, name=name)

    def unit_of(self, column: ir.Value, size: int) -> ir.Value:
        """Which unit of a power of two of elements a column is in."""
        known = constant_index(column)
        if known is not None:
            return self.b.index(known // size)
        return self.b.op(arith.shrsi, column, self.b.index(size.bit_length() - 1), name="unit")

    def minus(self, a: ir.Value, b: ir.Value, name: str | None = None) -> ir.Value:
        x, y = constant_index(a), constant_index(b)
        if _has_no_name(a, x) and _has_no_name(b, y):
            return self.b.constant(a.type, x - y)
        return a if y == 0 else self.b.op(arith.subi, a, b, name=name)

    def times(self, a: ir.Value, factor: int, name: str | None = None) -> ir.Value:
        """An index, so many times."""
        number = constant_index(a)
        if _has_no_name(a, number):
            return self.b.index(number * factor)
        return a if factor == 1 else self.b.op(arith.muli, a, self.b.index(factor), name=name)

    # -- tiles --------------------------------------------------------------------------------------------------

    def filled(self, value: float, length: int, name: str | None = None) -> ir.Value:
        return self.b.splat(self.b.f32(value), length, name)

    def splat(self, value: float | int | ir.Value, like: ir.Value, name: str | None = None) -> ir.Value:
        """A tile of as many lanes as `like`, of its elements, with one value."""
        if not isinstance(value, ir.Value):
            is_float = isinstance(ir.ShapedType(like.type).element_type, ir.F32Type)
            value = self.b.f32(value) if is_float else self.b.i32(value)
        return self.b.splat(value, length_of(like), name)

    def ramp(self, length: int, element: ir.Type, name: str | None = None) -> ir.Value:
        return self.b.build(TILE.classes["Iota"], results=[tile_type(length, element)], name=name).value

    def to_f32(self, x: ir.Value, name: str) -> ir.Value:
        """Integers as f32."""
        return self.b.op(arith.sitofp, tile_type(length_of(x), self.b.f32_type), x, name=name)

    def to_i32(self, x: ir.Value, name: str) -> ir.Value:
        """The integers that numbers begin with."""
        return self.b.op(arith.fptosi, tile_type(length_of(x), self.b.i32_type), x, name=name)

    def compare(self, predicate: str, x: ir.Value, scalar: ir.Value, name: str) -> ir.Value:
        """A mask: a tile against a scalar."""
        return self.b.cmpf(predicate, x, self.b.splat(scalar, length_of(x)), name)

    def inverted(self, mask: ir.Value, name: str) -> ir.Value:
        return self.b.op(arith.xori, mask, self.b.splat(self.truth(True), length_of(mask)), name=name)

    def where(self, mask: ir.Value, x: ir.Value, otherwise: float, name: str) -> ir.Value:
        return self.b.select(mask, x, self.filled(otherwise, length_of(x)), name)

    def nan_above_inf(self, x: ir.Value, name: str) -> ir.Value:
        """+inf where there is NaN, and the greatest finite number where there is +inf: NaN ranks above it."""
        finite = self.b.op(arith.minimumf, x, self.splat(GREATEST, x), name=name)
        return self.where(self.b.cmpf("OEQ", x, x, "is_number"), finite, float("inf"), name)

    def extract(self, x: ir.Value, position: ir.Value, name: str) -> ir.Value:
        element = ir.RankedTensorType(x.type).element_type
        return self.b.build(TILE.classes["Extract"], x, position, results=[element], name=name).scalar

    def index_at(self, x: ir.Value, position: ir.Value, name: str) -> ir.Value:
        """One integer of a tile, as an index."""
        return self.index_of(self.extract(x, position, name), name)

    # -- reductions ---------------------------------------------------------------------------------------------

    def reduced(self, kind: str, x: ir.Value, name: str) -> ir.Value:
        """The one result of a reduction of a whole tile, on the scalar unit."""
        with self.b.part(_REDUCTIONS[kind]):
            return self._reduced(kind, x, name)

    def _reduced(self, kind: str, x: ir.Value, name: str) -> ir.Value:
        return self.extract(self.reduce(kind, x, length_of(x), name), self.zero, name)

    def reduce(self, kind: str, x: ir.Value, group: int, name: str) -> ir.Value:
        return self.make("Reduce", x, length=length_of(x) // group, name=name, kind=kind, group=group)

    def folded(self, function, x: ir.Value, width: int) -> ir.Value:
        """`width` lanes: `function` over the lanes of a tile that are equal mod `width`."""
        b, rows, left = self.b, length_of(x) // width, []
        while rows > 1:
            half = rows // 2
            if rows % 2:
                left.append(slice_of(b, x, (rows - 1) * width, width))
            low, high = slice_of(b, x, 0, half * width), slice_of(b, x, half * width, half * width)
            x, rows = b.op(function, low, high, name="folded"), half
        for other in left:
            x = b.op(function, x, other, name="folded")
        return x

    def count(self, mask: ir.Value, name: str, ones: ir.Value | None = None) -> ir.Value:
        """How many lanes are under a mask (f32); `ones`, if there is a tile of them."""
        lanes = length_of(mask)
        with self.b.part(Stage("CountLanes", "How many lanes are under a mask.")):
            ones = self.filled(1.0, lanes, "ones") if ones is None else ones
            hits = self.where(mask, ones, 0.0, f"{name}_ones")
            return self._reduced("add", self.folded(arith.addf, hits, lanes & -lanes), name)

    def find_first(self, mask: ir.Value, name: str) -> ir.Value:
        return self.b.build(TILE.classes["FindFirst"], mask, results=[self.b.index_type], name=name).position

    def running_sums(self, x: ir.Value, name: str) -> ir.Value:
        return self.make("Cumsum", x, length=length_of(x), name=name, group=length_of(x))

    # -- lanes that move ----------------------------------------------------------------------------------------

    def head(self, x: ir.Value, length: int) -> ir.Value:
        """The first lanes."""
        return slice_of(self.b, x, 0, length)

    def take(self, x: ir.Value, group: int, start: int, count: int, name: str) -> ir.Value:
        if count == group:
            return x
        return self.make(
            "Take", x, length=length_of(x) // group * count, name=name, group=group, start=start, count=count
        )

    def spread(self, x: ir.Value, group: int, to: int, fill: float, name: str) -> ir.Value:
        if to == group:
            return x
        return self.make("Spread", x, length=length_of(x) // group * to, name=name, group=group, width=to, fill=fill)

    def repeat(self, x: ir.Value, times: int, name: str) -> ir.Value:
        n = length_of(x)
        return x if times == 1 else self.make("Repeat", x, length=n * times, name=name, group=n)

    def broadcast(self, x: ir.Value, width: int, name: str) -> ir.Value:
        return self.make("Broadcast", x, length=length_of(x) * width, name=name, width=width)

    def compress(
        self, x: ir.Value, mask: ir.Value, name: str, readable: bool | None = None
    ) -> tuple[ir.Value, ir.Value]:
        """The elements under the mask, packed, and how many they are."""
        types = [x.type, self.b.index_type]
        op = self.b.build(TILE.classes["Compress"], x, mask, results=types, name=name, readable=readable)
        return op.value, op.kept

    def gather(self, x: ir.Value, indices: ir.Value, name: str) -> ir.Value:
        return self.make("Gather", x, indices, length=length_of(indices), name=name)

    def sorted(self, scores: ir.Value, indices: ir.Value, name: str, run: int | None = None) -> ir.Value:
        """One list of all pairs, or lists of `run` pairs."""
        lanes = length_of(scores)
        return self.make("Sort", scores, indices, length=2 * lanes, name=name, run=run or lanes)

    def unpacked(self, pairs: ir.Value, name: str = "values") -> tuple[ir.Value, ir.Value]:
        """Scores and indices of a list."""
        b, lanes = self.b, length_of(pairs) // 2
        types = [tile_type(lanes, b.f32_type), tile_type(lanes, b.i32_type)]
        op = b.build(TILE.classes["Unpack"], pairs, results=types, name=name)
        return op.values, op.indices

    # -- global memory ------------------------------------------------------------------------------------------

    def load(self, memory: ir.Value, offset, count, length: int, name: str, pad: float | None = None) -> ir.Value:
        """`count` elements of global memory, in a tile of `length`."""
        element = ir.MemRefType(memory.type).element_type
        return self.make("Load", memory, offset, count, length=length, element=element, name=name, pad=pad)

    def store(self, x: ir.Value, memory: ir.Value, offset: ir.Value, count: ir.Value, once: bool | None = None) -> None:
        """The first `count` elements; `once` if no other store writes one of those."""
        self.b.build(TILE.classes["Store"], x, memory, offset, count, once=once)

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

    def workspace(self, name: str, elements: int, element: ir.Type, per: str) -> ir.Value:
        """Scratch in global memory: so many elements a core, a row, or a launch."""
        shape = [elements] if per == "launch" else [ir.ShapedType.get_dynamic_size(), elements]
        memory = ir.MemRefType.get(shape, element, memory_space=ir.StringAttr.get("gm"))
        build = TILE.classes["Workspace"].build
        return build(results=[memory], elements=elements, per=per, name=name, loc=self.b.loc(name)).memory
