"""Probabilities of a row's elements: softmax over the row, or the values themselves."""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith

from jascend.dialect import TILE

from .ops import Ops
from .row_chunks import NEG_INF, Chunk, length_of, with_slice

_UNIT = 1024  # elements of one sum of weights
_MASS_CHUNK = 8 * _UNIT
_LOWEST = -3.0e38  # stands for the maximum of a unit that has none


class Probabilities:
    """Builds them for the rows of one kernel. `chunks(length)` gives the row at hand in chunks; `is_short` says that it is
    one chunk of `chunk` elements."""

    def __init__(self, t: Ops, chunks, chunk: int, vocabulary: int, is_short: bool, is_logits: bool):
        self.t, self.b, self.chunks, self.chunk = t, t.b, chunks, chunk
        self.vocabulary, self.is_short, self.is_logits = vocabulary, is_short, is_logits

    def of(self, x: ir.Value, maximum: ir.Value, mass: ir.Value) -> ir.Value:
        if not self.is_logits:
            return x
        return self.b.op(arith.divf, self.weights(x, maximum), self.b.splat(mass, length_of(x)), name="probability")

    def weights(self, values: ir.Value, maximum: ir.Value) -> ir.Value:
        b = self.b
        shift = b.op(arith.negf, maximum, name="minus_maximum")
        return b.exp(b.op(arith.addf, values, b.splat(shift, length_of(values)), name="shifted"), "weights")

    def least(self, m: ir.Value | None, maximum: ir.Value, mass: ir.Value) -> ir.Value | None:
        """The least probability that min-p leaves."""
        t, b = self.t, self.b
        if m is None:
            return None
        most = maximum
        if self.is_logits:
            most = t.extract(b.op(arith.divf, t.filled(1.0, 8, "one"), b.splat(mass, 8), name="most"), t.zero, "most")
        return b.op(arith.mulf, most, m, name="bound")

    def mass(self) -> tuple[ir.Value, ir.Value]:
        """The maximum of a row, and the sum of its weights; of probabilities the maximum only, NaN if one is."""
        t, b = self.t, self.b
        if self.is_short:
            x = self.whole().x
            if not self.is_logits:
                numbers, nans = self._numbers(x)
                return self._or_nan(t.reduced("max", numbers, "maximum"), t.reduced("max", nans, "nans")), b.f32(1.0)
            maximum = t.reduced("max", x, "maximum")
            return maximum, t.reduced("add", self.weights(x, maximum), "mass")
        chunks = self.chunks(_MASS_CHUNK)
        units = max(64, 1 << (-(-self.vocabulary // _UNIT) - 1).bit_length())

        if not self.is_logits:

            def maxima_of(chunk: Chunk, maxima, nans):
                numbers, are_nan = self._numbers(chunk.x)
                unit = t.unit_of(chunk.column, _UNIT)
                highest = t.reduce("max", numbers, _UNIT, "unit_maxima")
                found = t.reduce("max", are_nan, _UNIT, "unit_nans")
                return [with_slice(b, maxima, highest, unit, "maxima"), with_slice(b, nans, found, unit, "nans")]

            carried = [("maxima", t.filled(NEG_INF, units)), ("nans", t.filled(0.0, units))]
            maxima, nans = chunks.each(carried, maxima_of, "The largest probability.")
            return self._or_nan(t.reduced("max", maxima, "maximum"), t.reduced("max", nans, "nans")), b.f32(1.0)

        def body(chunk: Chunk, maxima, sums):
            unit = t.unit_of(chunk.column, _UNIT)
            highest = t.reduce("max", chunk.x, _UNIT, "unit_maxima")
            highest = b.op(arith.maximumf, highest, t.filled(_LOWEST, length_of(highest)), name="unit_maxima")
            shift = b.op(arith.negf, highest, name="shift")
            shift = b.build(TILE.classes["Broadcast"], shift, results=[chunk.x.type], width=_UNIT, name="shifts").value
            weights = b.exp(b.op(arith.addf, chunk.x, shift, name="shifted"), "weights")
            mass = t.reduce("add", weights, _UNIT, "unit_sums")
            return [with_slice(b, maxima, highest, unit, "maxima"), with_slice(b, sums, mass, unit, "sums")]

        carried = [("maxima", t.filled(_LOWEST, units)), ("sums", t.filled(0.0, units))]
        maxima, sums = chunks.each(carried, body, "Weights in blocks of 1024, each relative to its own maximum.")
        maximum = t.reduced("max", maxima, "maximum")
        scales = self.weights(maxima, maximum)
        return maximum, t.reduced("add", b.op(arith.mulf, sums, scales, name="scaled_sums"), "mass")

    def _numbers(self, x: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Probabilities, with -inf in the place of NaN; and 1 where there is NaN, else 0."""
        t, b = self.t, self.b
        is_number = b.cmpf("OEQ", x, x, "is_number")
        nans = b.select(is_number, t.filled(0.0, length_of(x)), t.filled(1.0, length_of(x), "ones"), "nans")
        return t.where(is_number, x, NEG_INF, "numbers"), nans

    def _or_nan(self, maximum: ir.Value, nans: ir.Value) -> ir.Value:
        b = self.b
        return b.select(b.cmpf("OGT", nans, b.f32(0.0)), b.f32(float("nan")), maximum, "maximum")

    def may_have_nans(self, maximum: ir.Value, mass: ir.Value) -> ir.Value:
        """Whether a row of that maximum and mass can have NaN in it (i1)."""
        told = mass if self.is_logits else maximum
        return self.b.cmpf("UNE", told, told, "may_have_nans")

    def whole(self) -> Chunk:
        """A row of one chunk."""
        return self.chunks(self.chunk).at(self.t.zero, self.b.index(self.vocabulary))
