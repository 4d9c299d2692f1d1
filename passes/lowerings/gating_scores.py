"""Scores of the experts of many rows at once, from their logits. Lanes of padding hold -inf, and their scores are 0."""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith, math

from ..builder import Builder, comment, up
from .ops import Ops

SOFTMAX, SIGMOID, SQRT_SOFTPLUS = 0, 1, 2
NEG_INF = float("-inf")
LOWEST = -3.4028234663852886e38  # the least finite float32
# log(1 + u) = 2s * (1 + z * (c0 + z * (c1 + ...))) with s = u / (2 + u) and z = s * s, to 1.6e-8 on [0, 1].
_LOG1P = (0.33333319425582886, 0.20003890991210938, 0.1411564201116562, 0.13441787660121918)


class Scores:
    """Builds them for rows of `row` lanes."""

    def __init__(self, b: Builder, row: int):
        self.b, self.t, self.row = b, Ops(b), row

    def of(self, norm_type: int, x: ir.Value) -> tuple[ir.Value, ir.Value | None]:
        """The scores of all lanes, 0 in padding; and,
        where NaN does not show in them, the mask of what was a number."""
        if norm_type == SOFTMAX:
            return self.softmax(x)
        return (self.sigmoid(x) if norm_type == SIGMOID else self.sqrt_softplus(x)), None

    def sigmoid(self, x: ir.Value) -> ir.Value:
        """1 / (1 + exp(-x)); what overflows becomes 0."""
        b, ones = self.b, self.t.splat(1.0, x, "ones")
        opposite = b.op(arith.negf, x, name="minus_x")
        comment(opposite.owner, "The scores: sigmoid.")
        exp = b.exp(opposite, "exp")
        return b.op(arith.divf, ones, b.op(arith.addf, exp, ones, name="one_plus_exp"), name="scores")

    def sqrt_softplus(self, x: ir.Value) -> ir.Value:
        """sqrt(max(x, 0) + log(1 + exp(-|x|))), the logarithm as a polynomial: it is to be exact near 0."""
        b = self.b

        def number(value):
            return self.t.splat(value, x)

        size = b.op(math.absf, x, name="size")
        comment(size.owner, "The scores: the square root of softplus.")
        u = b.exp(b.op(arith.negf, size, name="minus_size"), "u")
        s = b.op(arith.divf, u, b.op(arith.addf, u, number(2.0), name="two_plus_u"), name="s")
        z = b.op(arith.mulf, s, s, name="z")
        p = number(_LOG1P[-1])
        for coefficient in (*_LOG1P[-2::-1], 1.0):
            p = b.op(arith.addf, b.op(arith.mulf, z, p, name="p"), number(coefficient), name="p")
        log = b.op(arith.mulf, b.op(arith.addf, s, s, name="two_s"), p, name="log")
        positive = b.op(arith.maximumf, x, number(0.0), name="positive")
        return b.op(math.sqrt, b.op(arith.addf, positive, log, name="softplus"), name="scores")

    def softmax(self, x: ir.Value) -> tuple[ir.Value, ir.Value]:
        """NaN counts as -inf; +inf logits share the probability; a row of -inf scores 0."""
        b, t = self.b, self.t
        is_number = b.cmpf("OEQ", x, x, "is_number")
        comment(is_number.owner, "The scores: softmax.")
        x = b.select(is_number, x, t.splat(NEG_INF, x), "numbers")
        x = b.op(arith.minimumf, x, t.splat(-LOWEST, x), name="logits")
        maximum = self.of_row("max", x, NEG_INF, "maximum")
        maximum = b.op(arith.maximumf, maximum, t.splat(LOWEST, maximum), name="finite_maximum")
        below = b.op(arith.subf, x, t.broadcast(maximum, self.row, "maxima"), name="below")
        exp = b.exp(below, "exp")
        total = self.of_row("add", exp, 0.0, "total")
        total = b.op(arith.maximumf, total, t.splat(1.0, total), name="total")  # less only if all are 0
        return b.op(arith.divf, exp, t.broadcast(total, self.row, "totals"), name="scores"), is_number

    def of_row(self, kind: str, x: ir.Value, fill: float, name: str) -> ir.Value:
        """A reduction of every row, whose tree depends on the length of a row alone."""
        row = next(up(self.row, whole) for most, whole in ((64, 1), (512, 64), (1 << 16, 512)) if self.row <= most)
        return self.t.reduce(kind, self.t.spread(x, self.row, row, fill, f"{name}_of"), row, name)
