"""Short rows of an `ascend.row_wise`, many in one instruction.

Rows of up to 1024 elements lie in a tile one after another, each in the next power of two of lanes: as many lanes as
the row would have alone, so that its sums are the same bits. What is one value a row is a tile of one lane a row,
computed on those, and spread over the row where its elements need it. What is the same for all rows is repeated once a
core.
"""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith

from jascend.dialect import TILE

from ..builder import tile_type, up
from . import bodies
from .access import Access, base_of, has_columns, is_boolean, positions_in
from .producers import Producers
from .reductions import is_reduction

LONGEST = 1024
_SHORTEST = 17  # shorter rows have fewer lanes alone than a row of bytes that starts at a block
_LEAST_ROWS = 8  # a block of float32
_NEUTRAL = {"add": -0.0, "max": float("-inf"), "min": float("inf")}


def length_of_rows(work) -> int | None:
    """How long the rows of a kernel (`row_wise.RowWise`) are that can have many in a tile; None where it cannot."""
    lengths = {step.reduction.length for step in work.steps}
    if "col" in work.labels:
        lengths.update(length for _, length in work.segments)
    if len(lengths) != 1:
        return None
    (length,) = lengths
    if not _SHORTEST <= length <= LONGEST or work.producers.row_lanes * _pitch(length) > _LEAST_ROWS * LONGEST:
        return None
    rows = {label: size for label, size in zip(work.labels, work.shape) if label not in (None, "col") and size != 1}
    return length if all(_is_plain(value, access, length, rows) for value, access in work.pieces) else None


def _pitch(length: int) -> int:
    """Lanes of a row in a tile."""
    return max(32, 1 << (length - 1).bit_length())


def _is_plain(value: ir.Value, access: Access, length: int, rows: dict[str, int]) -> bool:
    """Whether a piece is of all rows and whole ones, of one value each, or of one row for all."""
    if any(label is not None and label != base_of(label) for label in access):
        return False
    owner = value.owner
    if not isinstance(owner, ir.Block):
        return not positions_in(owner) and not (is_reduction(owner) and has_columns(access))
    sizes = [(label, size) for label, size in zip(access, ir.RankedTensorType(value.type).shape) if size != 1]
    own, columns = [each for each in sizes if each[0] != "col"], [each for each in sizes if each[0] == "col"]
    return (own == list(rows.items()) and not columns) or (
        own in (list(rows.items()), []) and columns == [("col", length)]
    )


def _by_row(access: Access) -> bool:
    """Whether a piece is another one in another row."""
    return any(label not in (None, "col") for label in access)


class RowBatches(Producers):
    """Computes batches of `most` rows of `length` elements."""

    def __init__(self, producers: Producers, length: int, most: int):
        self.length, self.most, self.pitch = length, most, _pitch(length)
        super().__init__(producers.b, producers.buffers, most * self.pitch)
        self.row_lanes = most
        self.rows: ir.Value | None = None  # of the batch

    def enter_batch(self, row: ir.Value, rows: ir.Value) -> None:
        self.rows = rows
        self._splats.clear()
        self.enter_row(row, [])

    def whole(self, value: ir.Value, access: Access, done: dict) -> ir.Value:
        """All elements of the batch, `pitch` lanes a row."""
        return self.piece(value, access, self.b.index(0), self.b.index(self.length), 0.0, done)

    def spread(self, tile: ir.Value, name: str | None) -> ir.Value:
        """One lane a row over all of the row."""
        types = [tile_type(self.tile, ir.RankedTensorType(tile.type).element_type)]
        return self.b.build(TILE.classes["Broadcast"], tile, results=types, width=self.pitch, name=name).value

    def repeated(self, argument: ir.Value, access: Access) -> ir.Value:
        """What is one row for all, at the insertion point."""
        name, element = self._name(argument), self._element(argument)
        raw = self.b.build(
            TILE.classes["Load"], self.buffers[argument.arg_number], self.b.index(0), self.b.index(self.length),
            results=[tile_type(self.pitch, element)], pad=ir.FloatAttr.get(self.b.f32_type, 0.0), name=name,
        ).value  # fmt: skip
        number = bodies.float_of_int(self.b, raw, name) if is_boolean(argument) else self._widen(raw, name)
        types = [tile_type(self.tile, ir.RankedTensorType(number.type).element_type)]
        rows = self.b.build(TILE.classes["Repeat"], number, results=types, group=self.pitch, name=f"{name}_rows").value
        return self._holds(rows, name) if is_boolean(argument) else rows

    def store(self, tile: ir.Value, target: ir.Value) -> None:
        lanes = ir.RankedTensorType(tile.type).get_dim_size(0)
        if lanes == self.most:
            self.b.build(TILE.classes["Store"], tile, target, self.row, self.rows, once=True)
        elif self.pitch == self.length:
            self.b.build(TILE.classes["Store"], tile, target, *self._run("out"), once=True)
        else:
            self.b.build(
                TILE.classes["StoreRows"], tile, target, self._run("out")[0], self.rows, row_length=self.length,
                gm_pitch=self.length, pitch=self.pitch, once=True,
            )  # fmt: skip

    # -- where it differs ---------------------------------------------------------------------------------------

    def _splat(self, value: ir.Value, access: Access) -> ir.Value:
        if not _by_row(access):
            return super()._splat(value, access)
        key = (value, access)
        if key not in self._splats:
            name, tile = self._name(value), self.row_tile(value, access)
            if is_boolean(value):
                self._splats[key] = self._holds(
                    self.spread(bodies.one_or_zero(self.b, tile, name), f"{name}_rows"), name
                )
            else:
                self._splats[key] = self.spread(tile, f"{name}_rows")
        return self._splats[key]

    def _load_raw(self, argument: ir.Value, access: Access, column, count, pad: float | None) -> ir.Value:
        b, name, element = self.b, self._name(argument), self._element(argument)
        memory, zero = self.buffers[argument.arg_number], ir.FloatAttr.get(self.b.f32_type, 0.0)
        if column is None:
            types = [tile_type(max(self.row_lanes, 32 if str(element) == "i8" else 16), element)]
            return b.build(TILE.classes["Load"], memory, self.row, self.rows, results=types, pad=zero, name=name).value
        types = [tile_type(self.tile, element)]
        if self.pitch == self.length:
            return b.build(TILE.classes["Load"], memory, *self._run(name), results=types, pad=zero, name=name).value
        return b.build(
            TILE.classes["LoadRows"], memory, self._run(name)[0], self.rows, results=types, row_length=self.length,
            gm_pitch=self.length, pitch=self.pitch, pad=zero, name=name,
        ).value  # fmt: skip

    def _run(self, name: str) -> tuple[ir.Value, ir.Value]:
        """Where the batch starts in memory, and how many elements it has."""
        return tuple(self.b.op(arith.muli, x, self.b.index(self.length), name=f"{name}_{what}")
                     for x, what in ((self.row, "offset"), (self.rows, "elements")))  # fmt: skip

    def _element(self, argument: ir.Value) -> ir.Type:
        return ir.IntegerType.get_signless(8) if is_boolean(argument) else ir.ShapedType(argument.type).element_type


def build(work, share, length: int) -> None:
    """The rows of this core's `share`, of a kernel (`row_wise.RowWise`)."""
    b, t, rows, cores = work.b, work.t, work.positions, work.site.target.vector_cores
    pitch = _pitch(length)
    most = max(_LEAST_ROWS, work.site.tile // 2 // pitch)
    if rows is not None:
        most = min(most, up(max(1, -(-rows // cores)), _LEAST_ROWS))
    if work.producers.row_lanes > _LEAST_ROWS:  # something is compared once a row
        most = up(most, work.producers.row_lanes)
    producers = RowBatches(work.producers, length, most)
    work.site.remarks.append(f"rows of {length}, {most} at a time")
    inside = None
    if pitch != length:
        ramp = t.repeat(t.ramp(pitch, b.f32_type, "ramp"), most, "columns")
        inside = b.cmpf("OLT", ramp, b.splat(b.f32(length), producers.tile), "inside")
    for value, access in work.pieces:
        if isinstance(value.owner, ir.Block) and "col" in access and not _by_row(access):
            producers.known[value, access] = producers.repeated(value, access)

    def batch(row):
        for step in work.steps:
            producers.known.pop((step.value, step.access), None)
        producers.enter_batch(row, t.smaller(t.minus(share.last, row), b.index(most), "batch_rows"))
        done: dict = {}
        for step in sorted(work.steps, key=lambda step: step.level):
            x = producers.whole(step.reduction.source, (*step.access, "col"), done)
            if inside is not None:
                x = t.where(inside, x, _NEUTRAL[step.reduction.kind], "masked")
            reduced = t.reduce(step.reduction.kind, x, pitch, step.word)
            element = ir.RankedTensorType(step.value.type).element_type
            producers.known[step.value, step.access] = bodies.rounded(b, reduced, element, step.word)
        for each in work.written:
            along = "col" in work.labels
            tile = (
                producers.whole(each.value, work.labels, done) if along else producers.row_tile(each.value, work.labels)
            )
            producers.store(work.narrow(tile, each), each.memory)
        return []

    b.for_(share.first, share.last, b.index(most), [], batch, induction="row", about="Batches of this core's rows.")
