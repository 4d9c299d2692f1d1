"""Codes of rows in groups of neighbouring elements, each group over a scale of its own: MX formats, and FP8 by groups.

Groups do not depend on each other, so that rows may be cut into parts. Rows lie `pitch` lanes apart, zeros behind each.
The largest magnitude of a group is a maximum, which no order of evaluation changes. What follows is on the bits of it,
for a power of two, or rounded as IEEE says.

Vector units may take subnormal numbers for zero, and a group of nothing but such numbers is none of zeros. Subnormal
bfloat16 numbers therefore never meet arithmetic: their bits are taken as whole numbers. Those of float16 are normal in
float32.
"""

from __future__ import annotations

from typing import NamedTuple

from mlir import ir
from mlir.dialects import arith, math

from ..builder import Builder, comment, f32_bits, tile_type, up
from .ops import Ops
from .row_chunks import length_of

_FIELD = 23  # the bit that the exponent of float32 starts at
_EXPONENT = 0xFF << _FIELD
_SIGN = -(1 << 31)
_HUGE = f32_bits(1e38)  # what divides a group to zeros
_SUBNORMAL = 128.0  # where the bits of normal bfloat16 numbers start
_FLOOR = f32_bits(1e-4)
_FLOOR_OF_BLOCKS = 0x38D2 << 16  # the same, rounded to bfloat16


class Grouping(NamedTuple):
    """How a mode finds the scale of a group.

    Attributes:
      size: elements of a group.
      largest: the largest code; or, of powers of two, the exponent of it.
      rule: "up", a power of two that the group fits; "down", one that it may exceed; "exact", a quotient.
      upper: whether only the upper 16 bits of the largest magnitude count.
      floor: bits of the least that the largest magnitude is taken for.
    """

    size: int
    largest: float
    rule: str = "up"
    upper: bool = False
    floor: int = 0


#: By quantization mode.
GROUPINGS = {
    2: Grouping(32, 15, upper=True),
    3: Grouping(32, 8, upper=True),
    4: Grouping(128, 15),
    5: Grouping(128, 8),
    9: Grouping(32, 2, "down"),
    11: Grouping(128, 57344.0, "exact"),
    12: Grouping(128, 448.0, "exact"),
    14: Grouping(128, 15, floor=_FLOOR),
    15: Grouping(128, 8, floor=_FLOOR),
    16: Grouping(32, 15, upper=True, floor=_FLOOR_OF_BLOCKS),
    17: Grouping(32, 8, upper=True, floor=_FLOOR_OF_BLOCKS),
}


def group_pitch(grouping: Grouping, size: int, rows: int) -> int:
    """Lanes of a row, such that the scales of each of several rows fill whole blocks, and that a reduction takes it."""
    return up(size, 256 if rows == 1 and grouping.size == 32 else 1024)


class _Groups:
    """Rows of one tile, `rows` of them and `pitch` lanes each. The insertion point at construction is that of the tiles
    that are needed throughout."""

    def __init__(self, b: Builder, grouping: Grouping, rows: int, pitch: int):
        self.b, self.t, self.grouping, self.lanes = b, Ops(b), grouping, rows * pitch
        self.count = self.lanes // grouping.size

    def largest(self, magnitudes: ir.Value) -> ir.Value:
        """The largest of each group."""
        b, t = self.b, self.t
        if self.grouping.size != 32:
            return t.reduce("max", magnitudes, self.grouping.size, "largest")
        # Four blocks of 32 bytes on top of each other, then the lanes of one.
        a, c, d, e = (t.take(magnitudes, 32, 8 * i, 8, "block_of_group") for i in range(4))
        halves = (b.op(arith.maximumf, *pair, name="larger") for pair in ((a, c), (d, e)))
        return t.reduce("max", b.op(arith.maximumf, *halves, name="larger"), 8, "largest")

    def each(self, x: ir.Value, name: str) -> ir.Value:
        """One number a group, for all elements of it."""
        return self.t.make("Broadcast", x, length=self.lanes, name=name, width=self.grouping.size)

    def bits(self, x: ir.Value, name: str) -> ir.Value:
        return arith.bitcast(tile_type(length_of(x), self.b.i32_type), x, loc=self.b.loc(name))

    def number(self, bits: ir.Value, name: str) -> ir.Value:
        return arith.bitcast(tile_type(length_of(bits), self.b.f32_type), bits, loc=self.b.loc(name))

    def i32(self, function, x: ir.Value, scalar: int, name: str) -> ir.Value:
        return self.b.op(function, x, self.t.splat(scalar, x), name=name)

    def without_sign(self, x: ir.Value, some: ir.Value) -> ir.Value:
        """Zeros of groups of zeros lose their sign; what is in other groups keeps its own. `some` is 0 or 1 a group."""
        b = self.b
        zero = self.number(self.i32(arith.shli, some, 31, "zero_bits"), "zero")  # -0 changes nothing
        return b.op(arith.addf, x, self.each(zero, "zero_of_group"), name="values")


class Divided(_Groups):
    """A group over its scale: its largest magnitude over the largest code."""

    def __init__(self, b: Builder, grouping: Grouping, code: ir.Type, rows: int, pitch: int):
        super().__init__(b, grouping, rows, pitch)
        self.code = code
        self.limits = b.splat(b.f32(grouping.largest), self.count, "largest_codes")

    def __call__(self, x: ir.Value) -> list[ir.Value]:
        b = self.b
        value = _as_f32(b, x)
        comment(value.owner, "The largest magnitude of each group.")
        largest = self.largest(b.op(math.absf, value, name="magnitudes"))
        scales = b.op(arith.divf, largest, self.limits, name="scales")
        comment(scales.owner, "The scales: that over the largest code. Where there is none, a large divisor.")
        scale = self.bits(b.op(arith.divf, largest, self.limits, name="scale"), "scale_bits")
        some = self.i32(arith.minsi, scale, 1, "is_scale")
        huge = self.i32(arith.addi, self.i32(arith.muli, some, -_HUGE, "not_huge"), _HUGE, "huge_if_none")
        divisor = self.number(b.op(arith.maxsi, scale, huge, name="divisor_bits"), "divisor")
        quotient = b.op(arith.divf, value, self.each(divisor, "divisor_of_group"), name="quotients")
        comment(quotient.owner, "The codes.")
        quotient = self.without_sign(quotient, some)
        return [self.t.make("Quantize", quotient, length=self.lanes, element=self.code, name="codes"), scales]


class Scaled(_Groups):
    """A group over a power of two, which is also kept as a float32 or as its exponent.

    `groups` are those of a row that there are; `x`, `code` and `scale` are elements."""

    def __init__(
        self, b: Builder, grouping: Grouping, x: ir.Type, code: ir.Type, scale: ir.Type, rows: int, pitch: int,
        groups: int,
    ):  # fmt: skip
        super().__init__(b, grouping, rows, pitch)
        self.rows, self.groups, self.code, self.scale = rows, groups, code, scale
        self.is_bf16 = str(x) == "bf16"
        self.exponent = b.splat(b.i32(_EXPONENT), self.count, "exponent_bits")
        if self.is_bf16:
            i16 = ir.IntegerType.get_signless(16)
            magnitude = b.constant(i16, 0x7FFF)
            self.magnitude = b.splat(magnitude, self.lanes, "magnitude_bits")
            self.sign = b.splat(b.i32(_SIGN), self.lanes, "sign_bit")
        # Codes of E8M0 are filled up to an even number with a group that is not there.
        self.has_floors = bool(grouping.floor) and groups % 2 == 1 and str(scale) != "f32"
        if self.has_floors:
            self.lane = self.t.repeat(self.t.ramp(self.count // rows, b.i32_type, "group_of_row"), rows, "group_of_row")

    def __call__(self, x: ir.Value, part: ir.Value | None = None) -> list[ir.Value]:
        """The codes and scales of the rows, or of the part of one with that number."""
        b, t, grouping = self.b, self.t, self.grouping
        value = _as_f32(b, x)
        comment(value.owner, "The largest magnitude of each group.")
        numbers = self.bits_as_numbers(x) if self.is_bf16 else None
        bits = self.largest_bits(value, numbers)
        if grouping.floor:
            floor = self.floors(part) if self.has_floors else t.splat(grouping.floor, bits)
            bits = b.op(arith.maxsi, bits, floor, name="floored_bits")
        power = self.power(bits)
        scale, some = self.number(power, "scale"), None
        if not grouping.floor or self.has_floors or str(self.scale) == "f32":
            some = self.i32(arith.minsi, bits, 1, "is_some")
            scale = b.op(arith.mulf, scale, t.to_f32(some, "one_if_some"), name="scales")
        if str(self.scale) != "f32":
            scale = t.make("Quantize", scale, length=self.count, element=self.scale, name="scales")
        values = self.scaled(value, numbers, power)
        if grouping.rule == "up" and not grouping.floor:
            values = self.without_sign(values, some)
        if str(self.code) == "f4E2M1FN" and self.is_bf16:  # exactly
            values = b.op(arith.truncf, tile_type(self.lanes, ir.BF16Type.get()), values, name="values")
        return [t.make("Quantize", values, length=self.lanes, element=self.code, name="codes"), scale]

    def bits_as_numbers(self, x: ir.Value) -> ir.Value:
        """The bits of bfloat16 magnitudes as whole numbers, which are in the same order."""
        b = self.b
        bits = arith.bitcast(self.magnitude.type, x, loc=b.loc("row_bits"))
        return self.t.to_f32(b.op(arith.andi, bits, self.magnitude, name="magnitudes"), "magnitude_numbers")

    def largest_bits(self, value: ir.Value, numbers: ir.Value | None) -> ir.Value:
        """The bits of the largest magnitude of each group, as float32."""
        if numbers is not None:
            return self.i32(arith.shli, self.t.to_i32(self.largest(numbers), "largest_upper"), 16, "largest_bits")
        bits = self.bits(self.largest(self.b.op(math.absf, value, name="magnitudes")), "largest_bits")
        if not self.grouping.upper:
            return bits
        return self.i32(arith.shli, self.i32(arith.shrsi, bits, 16, "largest_upper"), 16, "largest_bits")

    def floors(self, part: ir.Value | None) -> ir.Value:
        """The floor of each group, 0 of groups that are not there."""
        b, t = self.b, self.t
        groups = b.i32(self.groups)
        if part is not None:
            before = b.op(arith.muli, t.i32_of(part), b.i32(self.count))
            groups = b.op(arith.subi, groups, before, name="groups_left")
        left = self.i32(arith.muli, self.lane, -1, "groups_after")
        left = b.op(arith.addi, left, b.splat(groups, self.count), name="groups_after")
        left = self.i32(arith.minsi, self.i32(arith.maxsi, left, 0, "groups_after"), 1, "is_group")
        return self.i32(arith.muli, left, self.grouping.floor, "floors")

    def power(self, bits: ir.Value) -> ir.Value:
        """The bits of the power of two."""
        grouping, least = self.grouping, 0
        if grouping.rule == "up":
            bits, least = self.i32(arith.addi, bits, 0x1FFFFF, "carried"), 1
            comment(bits.owner, "The power of two of each group. A mantissa above 0x600000 carries into the exponent.")
        field = self.b.op(arith.andi, bits, self.exponent, name="exponent")
        if grouping.rule == "down":
            comment(field.owner, "The power of two of each group.")
        field = self.i32(arith.addi, field, -(int(grouping.largest) << _FIELD), "exponent")
        return self.i32(arith.maxsi, field, least << _FIELD, "power_bits")

    def scaled(self, value: ir.Value, numbers: ir.Value | None, power: ir.Value) -> ir.Value:
        """What the codes are made of: the values times 2^-e, where the power is 2^e."""
        b, t = self.b, self.t
        negative = self.i32(arith.muli, power, -1, "negative")
        inverse = self.number(self.i32(arith.addi, negative, 254 << _FIELD, "inverse_bits"), "inverse")
        scaled = b.op(arith.mulf, value, self.each(inverse, "inverse_of_group"), name="values")
        comment(scaled.owner, "The values over it.")
        if numbers is None:
            return scaled
        # Subnormal numbers, as whole numbers, times 2^(-133 - e); below 2^-126, that makes nothing of them.
        inverse = self.i32(arith.maxsi, self.i32(arith.addi, negative, 121 << _FIELD, "small_bits"), 0, "small_bits")
        inverse = self.each(self.number(inverse, "small_inverse"), "small_inverse_of_group")
        small = b.op(arith.mulf, numbers, inverse, name="small")
        comment(small.owner, "Those of subnormal numbers, from their bits.")
        small = self.bits(small, "small_bits")
        sign = b.op(arith.andi, self.bits(value, "value_bits"), self.sign, name="sign")
        small = self.number(b.op(arith.ori, small, sign, name="signed_small"), "signed_small")
        is_small = b.cmpf("OLT", numbers, t.splat(_SUBNORMAL, numbers), "is_small")
        return b.select(is_small, small, scaled, "values")


def groups_of(
    b: Builder, mode: int, x: ir.Type, code: ir.Type, scale: ir.Type, rows: int, pitch: int, groups: int
) -> _Groups:
    """What makes codes and scales of `rows` rows of elements `x`, each with `groups` groups."""
    grouping = GROUPINGS[mode]
    if grouping.rule == "exact":
        return Divided(b, grouping, code, rows, pitch)
    return Scaled(b, grouping, x, code, scale, rows, pitch, groups)


def _as_f32(b: Builder, x: ir.Value) -> ir.Value:
    return b.op(arith.extf, tile_type(length_of(x), b.f32_type), x, name="values")
