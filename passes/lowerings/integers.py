"""Division of int32 on tiles, exact, though hardware divides floats only.

The quotient of the operands as float32 misses the true one by a few hundred at most; what is left is divided once more,
after which one step in either direction is enough. Additions and products wrap around, as XLA's do. Division by 0, and
of the least number by -1, are up to who asks.
"""

from __future__ import annotations

from typing import NamedTuple

from mlir import ir
from mlir.dialects import arith

from ..builder import Builder, tile_type


class Divided(NamedTuple):
    """Rounded towards 0, and what is left, with the sign of the dividend."""

    quotient: ir.Value
    remainder: ir.Value


def divide(b: Builder, x: ir.Value, y: ir.Value) -> Divided:
    """Two tiles of i32."""
    lanes = ir.RankedTensorType(x.type).get_dim_size(0)
    floats, ints = tile_type(lanes, b.f32_type), x.type

    def float_of(tile: ir.Value, name: str) -> ir.Value:
        return b.op(arith.sitofp, floats, tile, name=name)

    def is_negative(tile: ir.Value, name: str) -> ir.Value:
        return b.cmpf("OLT", float_of(tile, name), b.splat(b.f32(0.0), lanes), name)

    def chosen(mask: ir.Value, tile: ir.Value, other: ir.Value, name: str) -> ir.Value:
        picked = b.select(mask, *(b.op(arith.bitcast, floats, each) for each in (tile, other)), name)
        return b.op(arith.bitcast, ints, picked)

    def minus_product(left: ir.Value, part: ir.Value) -> ir.Value:
        return b.op(arith.subi, left, b.op(arith.muli, part, y, name="product"), name="left")

    divisor = float_of(y, "divisor")
    quotient, left = None, x
    for _ in range(2):
        part = b.op(
            arith.fptosi, ints, b.op(arith.divf, float_of(left, "dividend"), divisor, name="ratio"), name="part"
        )
        quotient = part if quotient is None else b.op(arith.addi, quotient, part, name="quotient")
        left = minus_product(left, part)
    negative = is_negative(x, "negative")
    step = chosen(
        b.op(arith.xori, negative, is_negative(y, "negative_divisor"), name="signs_differ"),
        *(b.splat(b.i32(number), lanes) for number in (-1, 1)), "step",
    )  # fmt: skip
    zeros = b.splat(b.i32(0), lanes)

    def has_sign(tile: ir.Value) -> ir.Value:
        """Whether a tile, where it is not 0, has the sign of the dividend; where it is, it has."""
        differs = b.op(arith.xori, negative, is_negative(tile, "sign"), name="sign_differs")
        return b.op(arith.ori, _opposite(b, differs), b.cmpi("eq", tile, zeros, "is_zero"), name="has_sign")

    back = chosen(has_sign(left), zeros, step, "back")
    quotient = b.op(arith.subi, quotient, back, name="quotient")
    left = b.op(arith.addi, left, b.op(arith.muli, back, y, name="product"), name="left")
    some_left = _opposite(b, b.cmpi("eq", left, zeros, "nothing_left"))
    enough = b.op(arith.andi, has_sign(minus_product(left, step)), some_left, name="enough_left")
    further = chosen(enough, step, zeros, "further")
    return Divided(b.op(arith.addi, quotient, further, name="quotient"), minus_product(left, further))


def _opposite(b: Builder, mask: ir.Value) -> ir.Value:
    true = b.constant(ir.IntegerType.get_signless(1), True)
    return b.op(arith.xori, mask, b.splat(true, ir.RankedTensorType(mask.type).get_dim_size(0)))


INTEGER_FUNCTIONS = {
    "arith.divsi": lambda b, x, y: divide(b, x, y).quotient,
    "arith.remsi": lambda b, x, y: divide(b, x, y).remainder,
}
