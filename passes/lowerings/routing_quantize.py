"""What routing makes of rows on the way: codes of 8 or 4 bits, and a scale for every row where it depends on the row.

Rows lie `pitch` lanes apart in a tile, zeros behind each. Scales are maxima, which no order of evaluation changes; what
follows is rounded as IEEE says, so that a row's codes do not depend on the rows beside it. A row whose scale is 0, or
would be subnormal, has codes of 0.
"""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith, math, tensor

from jascend.dialect.ascendc import element_bits

from ..builder import Builder, comment, tile_type, up
from .row_chunks import length_of, slice_of, with_slice
from .ops import Ops

_REDUCED = 4096  # lanes of a row that one reduction takes
SCALE_LANES = 8  # lanes of a scale, one block
_COMPARED = 64  # lanes that are compared at once
_HUGE = 1e38  # what divides a row to zeros


def pitch_of(size: int, code: ir.Type) -> int:
    """Lanes of a row, such that a reduction takes it, and that its codes fill whole blocks."""
    if size <= 64:
        return up(size, 256 // element_bits(code))
    if size <= 512:
        return up(size, 64)
    return up(size, 512 * _halvings(size))


def _halvings(size: int) -> int:
    """By how much a row is folded onto itself before it is reduced."""
    parts = 1
    while size > _REDUCED * parts:
        parts *= 2
    return parts


class Static:
    """Codes of x, of x * scale or of x * scale + offset, with the same two for all;
    held within `most` where it is there."""

    def __init__(
        self, b: Builder, code: ir.Type, *, scale: ir.Value | None = None, offset: ir.Value | None = None,
        most: float | None = None,
    ):  # fmt: skip
        self.b, self.t, self.code, self.most = b, Ops(b), code, most
        self.scale = None if scale is None else self.number(scale, "scale")
        self.offset = None if offset is None else self.number(offset, "offset")

    def number(self, memory: ir.Value, name: str) -> ir.Value:
        b = self.b
        tile = self.t.load(memory, b.index(0), b.index(1), SCALE_LANES, f"{name}_block")
        return self.t.extract(tile, self.t.zero, name)

    def __call__(self, x: ir.Value) -> list[ir.Value]:
        return [self.codes(self.value(x), None)]

    def value(self, x: ir.Value) -> ir.Value:
        b, t, value = self.b, self.t, _as_f32(self.b, x)
        if self.scale is not None:
            value = b.op(arith.mulf, value, t.splat(self.scale, value), name="scaled")
        if self.offset is not None:
            value = b.op(arith.addf, value, t.splat(self.offset, value), name="shifted")
        if self.most is not None:
            value = b.op(arith.maximumf, value, t.splat(-self.most, value), name="held")
            value = b.op(arith.minimumf, value, t.splat(self.most, value), name="held")
        return value

    def codes(self, value: ir.Value, divisor: None) -> ir.Value:
        return self.t.make("Quantize", value, length=length_of(value), element=self.code, name="codes")


class Dynamic:
    """A row, times another one where there is one, over its scale: its largest magnitude over `most`; and that scale.
    With `inverse` both quotients are products with the inverse instead.

    Codes are made of `rows` rows at a time. They are multiplied by those in the tile `smooth`; or, with `by_expert`, it
    is one row, and behind it come as many as it is multiplied with, a tile each. The insertion point at construction is
    that of the tiles it needs throughout."""

    def __init__(
        self, b: Builder, code: ir.Type, most: float, rows: int, pitch: int, *, smooth: ir.Value | None = None,
        by_expert: bool = False, inverse: bool = False,
    ):  # fmt: skip
        self.b, self.t, self.code, self.rows, self.pitch = b, Ops(b), code, rows, pitch
        self.smooth, self.by_expert, self.inverse = smooth, by_expert, inverse
        self.lanes = up(rows, _COMPARED)
        self.most = most
        self.divisors = b.splat(b.f32(most), self.lanes, "largest_codes")

    def __call__(self, *tiles: ir.Value) -> list[ir.Value]:
        value = self.value(*tiles)
        scales, by = self.scale(self.magnitudes(value))
        return [self.codes(value, by), scales]

    def value(self, *tiles: ir.Value) -> ir.Value:
        """The rows as they are to be quantized."""
        b = self.b
        x = _as_f32(b, tiles[0])
        if not self.by_expert or self.rows == 1:
            smooth = self.smooth if len(tiles) == 1 else tiles[1]
            return x if smooth is None else b.op(arith.mulf, x, smooth, name="smoothed")
        value = tensor.empty([self.rows * self.pitch], b.f32_type, loc=b.loc("smoothed"))
        for i, smooth in enumerate(tiles[1:]):
            product = b.op(arith.mulf, x, smooth, name="product")
            value = with_slice(b, value, product, i * self.pitch, "smoothed")
        return value

    def magnitudes(self, value: ir.Value) -> ir.Value:
        magnitudes = self.b.op(math.absf, value, name="magnitudes")
        comment(magnitudes.owner, "The largest magnitude of each row, and the scale that it gives.")
        return magnitudes

    def scale(self, magnitudes: ir.Value) -> tuple[ir.Value, ir.Value]:
        """The scale of every row, a block each, and zeros; and what to divide or multiply the row by, a lane each."""
        b, t, rows = self.b, self.t, self.rows
        scale = self.of_largest(self.largest(magnitudes), "scale")
        scales = t.broadcast(t.head(scale, up(rows, SCALE_LANES)), SCALE_LANES, "scales")
        is_scale = b.cmpf("OGT", scale, t.splat(0.0, scale), "is_scale")
        if not self.inverse:
            return scales, t.head(b.select(is_scale, scale, t.splat(_HUGE, scale), "divisor"), rows)
        inverse = b.op(arith.divf, t.splat(1.0, scale), scale, name="inverse")
        return scales, t.head(b.select(is_scale, inverse, t.splat(0.0, scale), "factor"), rows)

    def of_largest(self, largest: ir.Value, name: str) -> ir.Value:
        if self.inverse:
            return self.b.op(arith.mulf, largest, self.t.splat(1 / self.most, largest), name=name)
        return self.b.op(arith.divf, largest, self.divisors, name=name)

    def largest(self, magnitudes: ir.Value) -> ir.Value:
        """The largest of each row; 0 in other lanes."""
        b, lanes = self.b, self.pitch
        for _ in range(_halvings(self.pitch).bit_length() - 1):
            lanes //= 2
            halves = (slice_of(b, magnitudes, 0, lanes), slice_of(b, magnitudes, lanes, lanes))
            magnitudes = b.op(arith.maximumf, *halves, name="larger")
        nothing = b.splat(b.f32(0.0), self.lanes, "largest")
        largest = self.t.make("Reduce", magnitudes, length=self.rows, name="largest", kind="max", group=lanes)
        return largest if self.rows == self.lanes else with_slice(b, nothing, largest, 0, "largest")

    def codes(self, value: ir.Value, by: ir.Value) -> ir.Value:
        each = self.t.make("Broadcast", by, length=length_of(value), name="divisor_rows", width=self.pitch)
        quotients = self.b.op(arith.mulf if self.inverse else arith.divf, value, each, name="quotients")
        comment(quotients.owner, "The codes.")
        return self.t.make("Quantize", quotients, length=length_of(value), element=self.code, name="codes")


def _as_f32(b: Builder, x: ir.Value) -> ir.Value:
    if str(ir.ShapedType(x.type).element_type) == "f32":
        return x
    return b.op(arith.extf, tile_type(length_of(x), b.f32_type), x, name="values")
