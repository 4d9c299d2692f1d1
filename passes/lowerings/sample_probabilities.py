"""Probabilities of a row's elements: softmax over the row, or the values themselves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith

from ..builder import Stage
from .candidates import maximum_of
from .meeting import Meeting
from .ops import Ops
from .row_chunks import NEG_INF, Chunk, RowChunks, length_of, with_slice
from .sample_units import UnitFacts

_UNIT = 512  # elements of one sum of weights
MASS_CHUNK = 16 * _UNIT
_SAMPLED = 1024  # elements to take the reference of weights from
_RUN = 16  # neighbours among them


@dataclass(frozen=True)
class Mass:
    """What the elements of a row weigh (f32).

    Attributes:
      reference: the number that weights are relative to, exp(x - reference): near the largest element. Not of
        probabilities.
      total: the sum of all weights; NaN where an element is NaN or infinite, or none is finite. 1 of probabilities.
      maximum: the largest element; None if the operator has no min-p. Of probabilities it is NaN if one of them is.
    """

    reference: ir.Value
    total: ir.Value
    maximum: ir.Value | None


class Probabilities:
    """Builds them for the rows of one kernel. `chunks(length)` gives the row at hand in chunks; `is_short` says that it
    is one chunk of `chunk` elements."""

    def __init__(self, t: Ops, chunks, chunk: int, vocabulary: int, is_short: bool, is_logits: bool, has_min_p: bool):
        self.t, self.b, self.chunks, self.chunk = t, t.b, chunks, chunk
        self.vocabulary, self.is_short, self.is_logits, self.has_min_p = vocabulary, is_short, is_logits, has_min_p

    def of(self, x: ir.Value, row: Mass) -> ir.Value:
        if not self.is_logits:
            return x
        return self.b.op(
            arith.divf, self.weights(x, row.reference), self.b.splat(row.total, length_of(x)), name="probability"
        )

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
        near = near or (lambda: t.reduced("max", self.chunks(MASS_CHUNK).sample(_SAMPLED // _RUN, _RUN), "near"))
        reference = self._reference(near)
        return self._mass(reference, self._units(reference, f"What the row has, in units of {_UNIT}."))

    def unit_facts(self, meeting: Meeting) -> UnitFacts:
        return UnitFacts(self.t, meeting, -(-self.vocabulary // _UNIT))

    def give_mass(self, part: RowChunks, near: ir.Value, shared: UnitFacts) -> None:
        """What the mass needs of this core's part of a row, for all cores that share the row."""
        t = self.t

        def body(chunk: Chunk):
            number = t.unit_of(t.plus(chunk.count, self.b.index(_UNIT - 1)), _UNIT)
            for which, facts in enumerate(self._unit_facts(chunk.x, self._reference(lambda: near))):
                shared.give(which, facts, t.unit_of(chunk.column, _UNIT), number)
            return []

        part.each([], body, f"What this part has, in units of {_UNIT}.")

    def shared_mass(self, near: ir.Value, shared: UnitFacts) -> Mass:
        """The mass of a row, from what the cores that share it gave: the same bits."""
        pads = [pad for _, _, pad in self._kinds()]
        facts = [shared.take(which, self._lanes_of_units(), pad) for which, pad in enumerate(pads)]
        return self._mass(self._reference(lambda: near), facts)

    def _reference(self, near: Callable[[], ir.Value]) -> ir.Value | None:
        t, b = self.t, self.b
        if not self.is_logits:
            return None
        near = near()
        is_finite = t.both(b.cmpf("OGT", near, b.f32(NEG_INF)), b.cmpf("OLT", near, b.f32(float("inf"))))
        return b.select(is_finite, near, b.f32(0.0), "reference")

    def _mass(self, reference: ir.Value | None, facts: list[ir.Value]) -> Mass:
        """The mass by what its units have; of logits once more, if `reference` is too far from the largest of them."""
        t, b = self.t, self.b
        found = [t.reduced(kind, fact, name) for (name, kind, _), fact in zip(self._kinds(), facts)]
        if not self.is_logits:
            maximum = self._or_nan(*found)
            return Mass(maximum, b.f32(1.0), maximum)
        mass, *maximum = found

        def again():
            largest = maximum[0] if maximum else maximum_of(t, self.chunks(MASS_CHUNK))
            sums = self._units(largest, Stage("SumUnitsAgain", "Once more, relative to the maximum."))[0]
            return [largest, t.reduced("add", sums, "mass")]

        is_usable = t.both(b.cmpf("OGT", mass, b.f32(0.0)), b.cmpf("OLT", mass, b.f32(float("inf"))), "is_usable")
        reference, mass = b.if_(
            is_usable, ["reference", "mass"], lambda: [reference, mass], again, types=[b.f32_type] * 2,
            about=Stage("KeepMass", "Is the largest element near enough to those of the sample?", "SumAgain"),
        )  # fmt: skip
        return Mass(reference, mass, maximum[0] if maximum else None)

    # -- units of a row -----------------------------------------------------------------------------------------

    def _kinds(self) -> list[tuple[str, str, float]]:
        """What is told of a unit: name, reduction, and what is neutral to that."""
        if not self.is_logits:
            return [("maximum", "max", NEG_INF), ("nans", "max", 0.0)]
        return [("mass", "add", 0.0)] + ([("maximum", "max", NEG_INF)] if self.has_min_p else [])

    def _unit_facts(self, x: ir.Value, reference: ir.Value | None) -> list[ir.Value]:
        if not self.is_logits:
            return [self._of_units("max", facts, "unit_facts") for facts in self._numbers(x)]
        facts = [self._of_units("add", self.weights(x, reference), "unit_sums")]
        return facts + ([self._of_units("max", x, "unit_maxima")] if self.has_min_p else [])

    def _units(self, reference: ir.Value | None, about: str) -> list[ir.Value]:
        """What is told of all units of a row, in tiles."""
        t, b = self.t, self.b

        def body(chunk: Chunk, *so_far):
            unit = t.unit_of(chunk.column, _UNIT)
            facts = self._unit_facts(chunk.x, reference)
            return [with_slice(b, tile, fact, unit, "facts") for tile, fact in zip(so_far, facts)]

        carried = [(name, t.filled(pad, self._lanes_of_units(), name)) for name, _, pad in self._kinds()]
        return self.chunks(MASS_CHUNK).each(carried, body, about)

    def _lanes_of_units(self) -> int:
        return max(64, 1 << (-(-self.vocabulary // _UNIT) - 1).bit_length())

    def _of_units(self, kind: str, x: ir.Value, name: str) -> ir.Value:
        """Of each unit of `_UNIT` elements, by eights: the cheapest reduction of many of them."""
        for _ in range(_UNIT.bit_length() // 3):
            x = self.t.reduce(kind, x, 8, name)
        return x

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
