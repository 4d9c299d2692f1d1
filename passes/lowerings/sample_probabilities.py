"""Probabilities of a row's elements: softmax over the row, or the values themselves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith

from .candidates import maximum_of
from .ops import Ops
from .row_chunks import NEG_INF, Chunk, length_of, with_slice

_UNIT = 1024  # elements of one sum of weights
_MASS_CHUNK = 8 * _UNIT
_SAMPLED = 1024  # elements to take the reference of weights from
_RUN = 16  # neighbours among them


@dataclass(frozen=True)
class Mass:
    """What the elements of a row weigh (f32).

    Attributes:
      reference: the number that weights are relative to, exp(x - reference): near the largest element. Not of probabilities.
      total: the sum of all weights; NaN where an element is NaN or infinite, or none is finite. 1 of probabilities.
      maximum: the largest element; None if the operator has no min-p. Of probabilities it is NaN if one of them is.
    """

    reference: ir.Value
    total: ir.Value
    maximum: ir.Value | None


class Probabilities:
    """Builds them for the rows of one kernel. `chunks(length)` gives the row at hand in chunks; `is_short` says that it is
    one chunk of `chunk` elements."""

    def __init__(self, t: Ops, chunks, chunk: int, vocabulary: int, is_short: bool, is_logits: bool, has_min_p: bool):
        self.t, self.b, self.chunks, self.chunk = t, t.b, chunks, chunk
        self.vocabulary, self.is_short, self.is_logits, self.has_min_p = vocabulary, is_short, is_logits, has_min_p

    def of(self, x: ir.Value, row: Mass) -> ir.Value:
        if not self.is_logits:
            return x
        return self.b.op(arith.divf, self.weights(x, row.reference), self.b.splat(row.total, length_of(x)), name="probability")

    def weights(self, values: ir.Value, reference: ir.Value) -> ir.Value:
        b = self.b
        shift = b.op(arith.negf, reference, name="minus_reference")
        return b.exp(b.op(arith.addf, values, b.splat(shift, length_of(values)), name="shifted"), "weights")

    def least(self, m: ir.Value, row: Mass) -> ir.Value:
        """The least probability that min-p leaves."""
        t, b = self.t, self.b
        most = row.maximum
        if self.is_logits:
            most = t.extract(self.of(b.splat(most, 8, "most"), row), t.zero, "most")
        return b.op(arith.mulf, most, m, name="bound")

    def mass(self, near: Callable[[], ir.Value] | None = None) -> Mass:
        """The mass of a row. `near` builds one of its larger elements (f32); None takes the largest of a sample."""
        t, b = self.t, self.b
        if self.is_short:
            x = self.whole().x
            if not self.is_logits:
                numbers, nans = self._numbers(x)
                maximum = self._or_nan(t.reduced("max", numbers, "maximum"), t.reduced("max", nans, "nans"))
                return Mass(maximum, b.f32(1.0), maximum)
            maximum = t.reduced("max", x, "maximum")
            return Mass(maximum, t.reduced("add", self.weights(x, maximum), "mass"), maximum)
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
            maximum = self._or_nan(t.reduced("max", maxima, "maximum"), t.reduced("max", nans, "nans"))
            return Mass(maximum, b.f32(1.0), maximum)

        def weighed(reference: ir.Value, about: str) -> list[ir.Value]:
            def body(chunk: Chunk, sums, *maxima):
                unit = t.unit_of(chunk.column, _UNIT)
                mass = t.reduce("add", self.weights(chunk.x, reference), _UNIT, "unit_sums")
                sums = with_slice(b, sums, mass, unit, "sums")
                if not self.has_min_p:
                    return [sums]
                highest = t.reduce("max", chunk.x, _UNIT, "unit_maxima")
                return [sums, with_slice(b, *maxima, highest, unit, "maxima")]

            carried = [("sums", t.filled(0.0, units))]
            if self.has_min_p:
                carried.append(("maxima", t.filled(NEG_INF, units)))
            sums, *maxima = chunks.each(carried, body, about)
            return [t.reduced("add", sums, "mass"), *(t.reduced("max", x, "maximum") for x in maxima)]

        near = near() if near else t.reduced("max", chunks.sample(_SAMPLED // _RUN, _RUN), "near")
        is_finite = t.both(b.cmpf("OGT", near, b.f32(NEG_INF)), b.cmpf("OLT", near, b.f32(float("inf"))))
        reference = b.select(is_finite, near, b.f32(0.0), "reference")
        mass, *maximum = weighed(reference, "Weights, in blocks of 1024.")

        def again():
            largest = maximum[0] if maximum else maximum_of(t, chunks)
            mass, *_ = weighed(largest, "Once more, relative to the maximum.")
            return [largest, mass]

        is_usable = t.both(b.cmpf("OGT", mass, b.f32(0.0)), b.cmpf("OLT", mass, b.f32(float("inf"))), "is_usable")
        reference, mass = b.if_(
            is_usable, ["reference", "mass"], lambda: [reference, mass], again, types=[b.f32_type] * 2,
            about="Is the largest element near enough to those of the sample?",
        )  # fmt: skip
        return Mass(reference, mass, maximum[0] if maximum else None)

    def _numbers(self, x: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Probabilities, with -inf in the place of NaN; and 1 where there is NaN, else 0."""
        t, b = self.t, self.b
        is_number = b.cmpf("OEQ", x, x, "is_number")
        nans = b.select(is_number, t.filled(0.0, length_of(x)), t.filled(1.0, length_of(x), "ones"), "nans")
        return t.where(is_number, x, NEG_INF, "numbers"), nans

    def _or_nan(self, maximum: ir.Value, nans: ir.Value) -> ir.Value:
        b = self.b
        return b.select(b.cmpf("OGT", nans, b.f32(0.0)), b.f32(float("nan")), maximum, "maximum")

    def may_have_nans(self, row: Mass) -> ir.Value:
        """Whether a row can have NaN in it (i1)."""
        told = row.total if self.is_logits else row.maximum
        return self.b.cmpf("UNE", told, told, "may_have_nans")

    def whole(self) -> Chunk:
        """A row of one chunk."""
        return self.chunks(self.chunk).at(self.t.zero, self.b.index(self.vocabulary))
