"""Functions of float32 that hardware has no instruction for, on tiles: what bodies of elementwise work call.

Each is computed from the instructions that there are, to two units in the last place where those are exact, or as far
as is said here; the coefficients are least maximal errors over the intervals that they serve, in double precision. NaN
stays NaN.
"""

from __future__ import annotations

import math as numbers
from collections.abc import Callable, Sequence

from mlir import ir
from mlir.dialects import arith, math

from ..builder import Builder, tile_type

# Polynomials, the lowest power first. Of x * x, what x * (1 + x * x * ...) takes:
_TANH = (-0.3333328366279602, 0.13331490755081177, -0.05374349653720856, 0.020650578662753105, -0.005717036779969931)
_SIN = (
    -0.1666666716337204,
    0.008333330042660236,
    -0.00019840768072754145,
    2.7520081857801415e-06,
    -2.3794349601757858e-08,
)
# Of x, what x + x * x * ... takes:
_EXPM1 = (
    0.5000000596046448, 0.1666666865348816, 0.04166531562805176, 0.008333072997629642, 0.00139974569901824,
    0.00019992896704934537,
)  # fmt: skip

# Pi as a sum of numbers with six bits each, whose products with numbers up to 2^17 and halves are exact, and what is
# left.
_PI = (3.125, 0.01611328125, 0.0004730224609375, 6.318092346191406e-06, 3.166496753692627e-08, 1.2154188766544394e-10)
_FARTHEST = 1.65  # from a multiple of pi, a little more than half of it for the rounding of the multiple


class _Work:
    """Arithmetic on tiles of one length, with a number for a tile where it is the same in all lanes."""

    def __init__(self, b: Builder, x: ir.Value):
        self.b, self.lanes = b, ir.RankedTensorType(x.type).get_dim_size(0)

    def tile(self, x: ir.Value | float) -> ir.Value:
        return x if isinstance(x, ir.Value) else self.b.splat(self.b.f32(x), self.lanes)

    def op(self, function: Callable, *operands: ir.Value | float, name: str | None = None) -> ir.Value:
        return self.b.op(function, *map(self.tile, operands), name=name)

    def add(self, x, y, name: str | None = None) -> ir.Value:
        return self.op(arith.addf, x, y, name=name)

    def sub(self, x, y, name: str | None = None) -> ir.Value:
        return self.op(arith.subf, x, y, name=name)

    def mul(self, x, y, name: str | None = None) -> ir.Value:
        return self.op(arith.mulf, x, y, name=name)

    def below(self, x: ir.Value, bound: float, name: str) -> ir.Value:
        return self.b.cmpf("OLT", x, self.tile(bound), name)

    def choose(self, mask: ir.Value, x, y, name: str) -> ir.Value:
        return self.b.select(mask, self.tile(x), self.tile(y), name)

    def keeping_zeros(self, x: ir.Value, result: ir.Value, name: str) -> ir.Value:
        """The result of an odd function: that of 0 is 0 with the same sign, which sums lose."""
        return self.choose(self.b.cmpf("OEQ", x, self.tile(0.0), "is_zero"), x, result, name)

    def polynomial(self, coefficients: Sequence[float], x: ir.Value) -> ir.Value:
        *lower, highest = coefficients
        value = self.add(self.mul(x, highest), lower.pop(), "series")
        while lower:
            value = self.add(self.mul(value, x), lower.pop(), "series")
        return value


def tanh(b: Builder, x: ir.Value) -> ir.Value:
    """1 - 2 / (e^2|x| + 1) with the sign of x; near 0, where little would be left of that, a polynomial."""
    w = _Work(b, x)
    square, magnitude = w.mul(x, x, "square"), w.op(math.absf, x, name="magnitude")
    near = w.add(x, w.mul(w.mul(square, x), w.polynomial(_TANH, square)), "near_zero")
    power = w.op(math.exp, w.mul(magnitude, 2.0), name="power")
    far = w.sub(1.0, w.op(arith.divf, 2.0, w.add(power, 1.0)), "far_from_zero")
    far = w.choose(w.below(x, 0.0, "is_negative"), w.op(arith.negf, far), far, "far_from_zero")
    return w.keeping_zeros(x, w.choose(w.below(magnitude, 0.625, "is_near"), near, far, "tanh"), "tanh")


def sin(b: Builder, x: ir.Value) -> ir.Value:
    """Within 2e-7 for |x| up to 400 000; from there on what is left of the angle is lost bit by bit."""
    w = _Work(b, x)
    half_turns = w.op(math.roundeven, w.mul(x, 1 / numbers.pi), name="half_turns")
    sine = w.mul(_sine_of_rest(w, x, half_turns), w.sub(1.0, _twice_if_odd(w, half_turns)), "sin")
    return w.keeping_zeros(x, sine, "sin")


def cos(b: Builder, x: ir.Value) -> ir.Value:
    """As `sin`, a quarter turn on: half turns are counted from -1/2 on."""
    w = _Work(b, x)
    half_turns = w.op(math.roundeven, w.sub(w.mul(x, 1 / numbers.pi), 0.5), name="half_turns")
    rest = _sine_of_rest(w, x, w.add(half_turns, 0.5, "and_a_half"))
    return w.mul(rest, w.sub(_twice_if_odd(w, half_turns), 1.0), "cos")


def tan(b: Builder, x: ir.Value) -> ir.Value:
    """As `sin` and `cos`: within a few units in the last place, but near the poles."""
    return _Work(b, x).op(arith.divf, sin(b, x), cos(b, x), name="tan")


def _sine_of_rest(w: _Work, x: ir.Value, half_turns: ir.Value) -> ir.Value:
    rest = x
    for part in _PI:
        rest = w.sub(rest, w.mul(half_turns, part), "angle")
    rest = w.op(arith.minimumf, w.op(arith.maximumf, rest, -_FARTHEST), _FARTHEST, name="angle")
    square = w.mul(rest, rest, "square")
    return w.add(rest, w.mul(w.mul(square, rest), w.polynomial(_SIN, square)), "sine_of_angle")


def _twice_if_odd(w: _Work, whole: ir.Value) -> ir.Value:
    """2 for an odd number, else 0."""
    even = w.mul(w.op(math.floor, w.mul(whole, 0.5)), 2.0, "even")
    return w.mul(w.sub(whole, even), 2.0, "is_odd")


def expm1(b: Builder, x: ir.Value) -> ir.Value:
    """e^x - 1; near 0 a polynomial."""
    w = _Work(b, x)
    near = w.add(x, w.mul(w.mul(x, x), w.polynomial(_EXPM1, x)), "near_zero")
    far = w.sub(w.op(math.exp, x, name="power"), 1.0, "far_from_zero")
    near_or_far = w.choose(w.below(w.op(math.absf, x, name="magnitude"), 0.5, "is_near"), near, far, "expm1")
    return w.keeping_zeros(x, near_or_far, "expm1")


def log1p(b: Builder, x: ir.Value) -> ir.Value:
    """log(1 + x), times what was lost of x when 1 was added; to five units in the last place."""
    w = _Work(b, x)
    above = w.add(x, 1.0, "above_one")
    log = w.op(math.log, above, name="log")
    kept = w.sub(above, 1.0, "kept")
    ratio = w.op(arith.divf, x, kept, name="ratio")
    corrected = w.choose(b.cmpf("OEQ", kept, w.tile(0.0), "is_lost"), x, w.mul(log, ratio), "corrected")
    finite = w.below(x, 3.0e38, "is_finite")
    return w.choose(finite, corrected, log, "log1p")


def copysign(b: Builder, x: ir.Value, sign: ir.Value) -> ir.Value:
    """|x| with the sign bit of another: also that of -0."""
    w = _Work(b, x)
    bits = b.op(arith.bitcast, tile_type(w.lanes, b.i32_type), sign, name="bits")
    positive = b.op(arith.maxsi, bits, b.splat(b.i32(0), w.lanes), name="positive")
    magnitude = w.op(math.absf, x, name="magnitude")
    return w.choose(b.cmpi("eq", positive, bits, "is_positive"), magnitude, w.op(arith.negf, magnitude), "signed")


def power(b: Builder, x: ir.Value, y: ir.Value) -> ir.Value:
    """e^(y log |x|), with the sign of x where y is odd: to about |y log x| + 2 units in the last place. Numbers below 0
    have whole powers only; x^0 and 1^y are 1, whatever the other is."""
    w = _Work(b, x)
    magnitude = w.op(math.absf, x, name="magnitude")
    exponent = w.mul(w.op(math.log, magnitude, name="log"), y, "exponent")
    result = w.op(math.exp, exponent, name="power")
    result = w.choose(b.cmpf("OEQ", magnitude, w.tile(1.0), "is_one"), 1.0, result, "power")

    def is_whole(tile: ir.Value, name: str) -> ir.Value:
        return b.cmpf("OEQ", tile, w.op(math.trunc, tile, name="whole"), name)

    sign = copysign(b, w.tile(1.0), x)
    sign = w.choose(is_whole(w.mul(y, 0.5, "half"), "is_even"), 1.0, sign, "sign")
    finite_below = b.op(
        arith.andi, w.below(x, 0.0, "is_negative"), b.cmpf("OGT", x, w.tile(float("-inf")), "is_finite")
    )
    result = w.mul(
        result, w.choose(is_whole(y, "is_whole"), sign, w.choose(finite_below, float("nan"), 1.0, "sign"), "sign")
    )
    for of_one, value in ((y, 0.0), (x, 1.0)):
        result = w.choose(b.cmpf("OEQ", of_one, w.tile(value), "is_known"), 1.0, result, "power")
    return result


FUNCTIONS: dict[str, Callable[..., ir.Value]] = {
    "math.tanh": tanh, "math.sin": sin, "math.cos": cos, "math.tan": tan, "math.expm1": expm1, "math.log1p": log1p,
    "math.copysign": copysign, "math.powf": power,
}  # fmt: skip
