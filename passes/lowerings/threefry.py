"""Threefry-2x32 on tiles, and numbers drawn with it as `jax.random` draws them.

A number is a function of a key, two words, and of where it stands in the array that is drawn, a counter of 64 bits. So
a kernel draws those that it needs, wherever they stand, and never the array. The cipher is that of Salmon, Moraes, Dror
and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (2011), with 20 rounds: additions that wrap around, rotations
and exclusive ors.
The words of the counter are its upper and its lower half, and the bits drawn are the exclusive or of the two words that
come
out: the form that JAX calls partitionable.

A uniform number has the upper 23 bits for a mantissa. What a race needs is `-log` of one, an exponential number; `-log`
of that is a Gumbel number, negated. Near 1 the logarithm is small, and instructions say little of its relative error,
where the greatest scores come from: there it is a sum of powers of what is missing to 1, which is exact.
"""

from __future__ import annotations

import numpy as np
from mlir import ir
from mlir.dialects import arith, math

from ..builder import Stage, f32_bits, tile_type
from .ops import Ops
from .producers import Producers
from .row_chunks import length_of

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))  # of the rounds of a group, by turns
_GROUPS = 5
_PARITY = 0x1BD11BDA  # third word of the key: the exclusive or of the others and of this
_WORD = 32  # bits
_MANTISSA = 23  # bits of float32
_NEAR = 1 / 16  # from 1: where powers take the place of the logarithm, with an error of 1.6e-7
_TERMS = 5


_KEY = ("row", "col")
_WORDS = 8  # of a tile that holds a key, one block


def key_of(t: Ops, producers: Producers, key: ir.Value) -> ir.Value:
    """The two words of the key of the row at hand, in a tile."""
    producers.tile = _WORDS
    producers.prepare([(key, _KEY)])
    return producers.piece(key, _KEY, t.zero, t.b.index(2), 0.0)


class Threefry:
    """The cipher with one key after the other."""

    def __init__(self, t: Ops):
        self.t, self.b = t, t.b

    def enter_key(self, key: ir.Value) -> None:
        """Starts with a key, two words in a tile."""
        t, b = self.t, self.b
        first, second = (t.extract(key, b.index(i), f"key_{i}") for i in range(2))
        parity = b.op(arith.xori, b.op(arith.xori, first, second), b.i32(_PARITY), name="key_2")
        self.key = [first, second, parity]

    def of_low(self, low: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Both words that counters become whose upper word is 0 (i32)."""
        t, b = self.t, self.b
        first, second, _ = self.key
        return self.rounds(t.splat(first, low, "word_0"), b.op(arith.addi, low, t.splat(second, low), name="word_1"))

    def rounds(self, x: ir.Value, y: ir.Value) -> list[ir.Value]:
        """Both words after all rounds, of words to which the key has been added."""
        t, b = self.t, self.b
        one, groups, rounds = b.index(1), b.index(_GROUPS), b.index(len(_ROTATIONS[0]))
        tables = [b.i32(sum(by << 8 * i for i, by in enumerate(rotations))) for rotations in _ROTATIONS]

        def one_round(number, table, x, y):
            shift = t.i32_of(self.t.times(number, 8))
            by = b.op(arith.andi, b.op(arith.shrsi, table, shift), b.i32(_WORD - 1), name="rotation")
            rest = b.op(arith.subi, b.i32(_WORD), by, name="rest")
            x = b.op(arith.addi, x, y, name="word_0")
            left = b.op(arith.shli, y, t.splat(by, y), name="left")
            right = b.op(arith.shrui, y, t.splat(rest, y), name="right")
            return x, b.op(arith.xori, b.op(arith.ori, left, right, name="rotated"), x, name="word_1")

        def group(number, a, k, c, table, other, x, y):
            x, y = b.for_(
                t.zero, rounds, one, [("word_0", x), ("word_1", y)], lambda i, x, y: one_round(i, table, x, y),
                induction="round", runs=True,
            )  # fmt: skip
            x = b.op(arith.addi, x, t.splat(k, x), name="word_0")
            injected = t.i32_of(t.plus(t.plus(t.index_of(c), number), one), "injected")
            y = b.op(arith.addi, y, t.splat(injected, y), name="word_1")
            return [k, c, a, other, table, x, y]

        carried = zip(("key_a", "key_b", "key_c", "rotations", "other_rotations"), (*self.key, *tables))
        return b.for_(
            t.zero, groups, one, [*carried, ("word_0", x), ("word_1", y)], group, induction="group", runs=True,
            about=Stage(
                "MixRounds",
                "Threefry: 5 groups of 4 rounds. A byte each: rotations by 13, 15, 26, 6, or by 17, 29, 16, 24.",
            ),
        )[-2:]  # fmt: skip


class Draws(Threefry):
    """The numbers of one row of `length` after the other, as the attributes of an op (`ascend.random_exponential`)
    say."""

    def __init__(self, t: Ops, op, length: int):
        super().__init__(t)
        self.length = length
        self.of_array, self.of_rest, self.low = op.counts == "array", op.draw == "exponential", op.low

    def enter_row(self, key: ir.Value, row: ir.Value) -> None:
        """Starts a row: its key, and its counter on the scalar unit."""
        t, b = self.t, self.b
        self.enter_key(key)
        self.start = None
        if self.of_array:
            self.start = t.times(row, self.length, "first_counter")
            self.start_low = t.i32_of(b.op(arith.andi, self.start, b.index((1 << _WORD) - 1)), "first_counter_low")

    def numbers(self, places: ir.Value) -> ir.Value:
        """The exponential numbers at places of the row (i32)."""
        t, b = self.t, self.b
        bits = self.bits(places)
        with b.stage("Uniform numbers: the upper bits are the mantissa of a number from 1 to 2."):
            number = self._from_one_to_two(bits)
            uniform = b.op(arith.subf, number, t.splat(1.0, number), name="uniform")
            scale = float(np.float32(1) - np.float32(self.low))
            if scale != 1:
                uniform = b.op(arith.mulf, uniform, t.splat(scale, uniform), name="uniform")
            if self.low:
                uniform = b.op(arith.addf, uniform, t.splat(self.low, uniform), name="uniform")
                uniform = b.op(arith.maximumf, uniform, t.splat(self.low, uniform), name="uniform")
        with b.stage("Exponential numbers: the logarithm, near 1 by powers."):
            negated = b.op(arith.negf, uniform, name="negated")
            rest = b.op(arith.addf, negated, t.splat(1.0, uniform), name="rest")  # exact
            return self.minus_log(rest, uniform) if self.of_rest else self.minus_log(uniform, rest)

    def _from_one_to_two(self, bits: ir.Value) -> ir.Value:
        t, b = self.t, self.b
        mantissa = b.op(arith.shrui, bits, t.splat(_WORD - _MANTISSA, bits), name="mantissa")
        ones = b.op(arith.addi, mantissa, t.splat(f32_bits(1.0), mantissa), name="one_to_two")
        return b.op(arith.bitcast, tile_type(length_of(bits), b.f32_type), ones)

    def minus_log(self, x: ir.Value, missing: ir.Value) -> ir.Value:
        """-log(x) of numbers from 0 to 1, with `missing = 1 - x`."""
        t, b = self.t, self.b
        series = t.splat(1 / _TERMS, x)
        for power in reversed(range(1, _TERMS)):
            product = b.op(arith.mulf, missing, series, name="powers")
            series = b.op(arith.addf, product, t.splat(1 / power, x), name="powers")
        series = b.op(arith.mulf, missing, series, name="powers")
        far = b.op(arith.negf, b.op(math.log, x, name="log"), name="minus_log")
        return b.select(t.compare("OLT", missing, b.f32(_NEAR), "is_near"), series, far, "exponential")

    def bits(self, places: ir.Value) -> ir.Value:
        """The 32 bits at places of the row (i32)."""
        b = self.b
        if self.start is None:
            x, y = self.of_low(places)
        else:
            with b.stage(Stage("SetCounters", "Counters of the places.")):
                x, y = self._counters(places)
            x, y = self.rounds(x, y)
        return b.op(arith.xori, x, y, name="bits")

    def _counters(self, places: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Both words of the counters, with the key added to them."""
        t, b = self.t, self.b
        first, second, _ = self.key
        low = b.op(arith.addi, places, t.splat(self.start_low, places), name="counter_low")
        high = b.op(arith.shrsi, self.start, b.index(_WORD), name="counter_high")
        # Only where the row starts in the upper half of what a word holds can there be a carry, where the sum has left
        # it.
        half = b.op(arith.andi, b.op(arith.shrsi, self.start, b.index(_WORD - 1)), b.index(1), name="in_upper_half")
        left = b.op(arith.shrui, low, t.splat(_WORD - 1, low), name="is_upper")
        minus = b.op(arith.subi, b.i32(0), t.i32_of(half))
        word = t.i32_of(t.plus(t.plus(high, half), t.index_of(first)), "high_with_carry")
        kept = b.op(arith.muli, left, t.splat(minus, left), name="no_carry")
        return (
            b.op(arith.addi, kept, t.splat(word, kept), name="word_0"),
            b.op(arith.addi, low, t.splat(second, low), name="word_1"),
        )
