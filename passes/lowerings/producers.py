"""Elementwise producers of a kernel's operands, computed on tiles.

An operator's operand is often the result of elementwise work (`logits / temperature[:, None]`). `Producers` computes
one piece of such a value inside the kernel, at the place where the piece is needed: it walks the value's definition
(`linalg.generic`, broadcasts, casts, constants, kernel arguments) and builds the same arithmetic on tiles.

A piece is named by its access (`access.py`). Pieces without columns do not change inside a row: they are computed once
a row, on a tile of one 32-byte block, and spread by a splat.

Which scalar operations there are, and how they are computed, is said in `bodies.py`. The caller's structure is passed
through unchanged: what cannot be computed here is reported at its own location, every such op once.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from mlir import ir
from mlir.dialects import arith, tensor

from jascend.dialect import TILE
from jascend.dialect.ascendc import constant_index

from ..builder import Builder, name_of, tile_type, up
from ..diagnostics import emit_error
from . import bodies
from .access import (
    SLICE, TAKEN_APART, VIEWS, Access, accesses, base_of, captured, columns_apart, compares, constant_of, has_columns,
    in_order,
    inputs, is_boolean, positions_in, start_of, unsupported_reason,
)  # fmt: skip

_BLOCK_BYTES = 32
_ROW_LANES = 8  # of what is the same throughout a row: one block of float32
_COMPARED_LANES = 64  # a comparison covers 256 bytes at least


class Unsupported(Exception):
    """A producer cannot be computed on tiles; the diagnostics have been emitted."""


def width_of(element: ir.Type) -> int:
    """Bytes of an element in a tile."""
    return {"bf16": 2, "f16": 2, "i8": 1, "i1": 1}.get(str(element), 4)


class Producers:
    """Computes pieces of the values of one kernel function.

    `buffers` gives the global memory of each function argument by number. `enter_row` must be called at the start of a
    row, with the insertion point there, before any `piece`. `piece_lanes` is the most that is to be computed at once,
    None for no limit: who asks for longer pieces of computed values goes about them in parts."""

    def __init__(self, builder: Builder, buffers: Sequence[ir.Value], tile: int, piece_lanes: int | None = None):
        self.piece_lanes = piece_lanes
        self.b = builder
        self.buffers = buffers
        self.tile = tile
        self.row: ir.Value | None = None
        self.known: dict[tuple[ir.Value, Access], ir.Value] = {}  # tiles of pieces that were computed elsewhere
        self.row_lanes = _ROW_LANES
        self.outer: dict[str, ir.Value] = {}  # positions in dimensions between the rows and the columns, by label
        self._position: tuple[ir.Value, dict[str, int]] | None = None
        self._runs: tuple[int, int, int] | None = None
        self._places: tuple[ir.Value, Sequence[ir.Value]] | None = None
        self._row_tiles: dict[tuple[ir.Value, Access], ir.Value] = {}
        self._scalars: dict[tuple[ir.Value, Access], ir.Value] = {}
        self._splats: dict[tuple[ir.Value, Access], ir.Value] = {}

    # -- the public face ----------------------------------------------------------------------------------------

    def enter_row(
        self, row: ir.Value, chunked: Sequence[tuple[ir.Value, Access]], scalars: Sequence[ir.Value | None] = ()
    ) -> None:
        """Starts a row: computes what the given pieces need once a row, at the insertion point. `scalars` are values of
        which `row_scalar` will be asked: all are loaded before the scalar unit waits for the first."""
        self.row = row
        self._row_tiles.clear()
        self._scalars.clear()
        of_row = [(value, ("row",)) for value in scalars if value is not None]
        for value, access in (*of_row, *(found for piece in chunked for found in self._of_row(*piece))):
            self.row_tile(value, access)
        self.prepare(chunked)

    def enter_position(self, position: ir.Value, labels: Access, shape: Sequence[int]) -> None:
        """Says which row it is, of those of all positions in the dimensions of `shape` before the columns: where a
        piece has all of them, that number is where it lies."""
        self._position = (
            position,
            {label: size for label, size in zip(labels, shape) if label not in (None, "col") and size != 1},
        )

    @property
    def place(self) -> ir.Value:
        """The number of the row at hand, among those of all positions."""
        return self.row if self._position is None else self._position[0]

    def prepare(self, chunked: Sequence[tuple[ir.Value, Access]]) -> None:
        """Makes the tiles that the given pieces, of `tile` elements, need throughout the row, at the insertion point.
        Called again in front of a loop whose pieces have another length."""
        self._splats.clear()
        for value, access in chunked:
            self._prepare(value, access)

    def row_scalar(self, value: ir.Value, access: Access, name: str) -> ir.Value:
        """A value that is one scalar a row, on the scalar unit: f32 for floats, i32 for integers."""
        tile = self.row_tile(value, access)
        element = ir.ShapedType(tile.type).element_type
        return self.b.build(TILE.classes["Extract"], tile, self.b.index(0), results=[element], name=name).scalar

    def is_load(self, value: ir.Value) -> bool:
        """Whether a value is an argument as it is: no arithmetic, so padding survives."""
        while not isinstance(value.owner, ir.Block) and value.owner.name in VIEWS:
            value = value.owner.operands[0]
        return isinstance(value.owner, ir.Block)

    def piece(
        self,
        value: ir.Value,
        access: Access,
        column: ir.Value,
        count: ir.Value,
        pad: float | None,
        done: dict | None = None,
    ) -> ir.Value:
        """A run of columns of a value as a tile: float32, int32, or a mask. `pad` fills the lanes from `count` on of
        what is loaded from global memory; None: there are none. `done` holds what has been computed for the same
        columns of the same row."""
        return self._compute(value, access, column, count, pad, {} if done is None else done)

    def raw_piece(self, value: ir.Value, access: Access, column: ir.Value, count: ir.Value, pad: float) -> ir.Value:
        """The same of an argument as it is (`is_load`), in its own dtype."""
        while not isinstance(value.owner, ir.Block):
            ((value, access),) = accesses(value.owner, access)
        return self._load_raw(value, access, column, count, pad)

    @contextlib.contextmanager
    def strided(self, runs: int, length: int, pitch: int):
        """Within, a piece is not one run of columns but several, `pitch` columns from one to the next."""
        self._runs = (runs, length, pitch)
        yield
        self._runs = None

    @contextlib.contextmanager
    def scattered(self, columns: ir.Value, places: Sequence[ir.Value]):
        """Within, a piece is not one run of columns but the elements at several, each in the first lane of a block of
        8, loaded without one waiting for another. The columns are `places`; the int32 tile `columns` holds them too."""
        self._places = (columns, places)
        yield
        self._places = None

    # -- pieces that are the same throughout a row --------------------------------------------------------------

    def _needed(self, value: ir.Value, access: Access) -> Iterator[tuple[ir.Value, Access]]:
        """What a piece is computed from, each after what it needs: down to what is known, or the same throughout a
        row."""

        def sources(piece: tuple[ir.Value, Access]) -> Sequence[tuple[ir.Value, Access]]:
            given = not has_columns(piece[1]) or isinstance(piece[0].owner, ir.Block) or piece in self.known
            return () if given else accesses(piece[0].owner, piece[1])

        return in_order((value, access), sources)

    def _of_row(self, value: ir.Value, access: Access) -> Iterator[tuple[ir.Value, Access]]:
        """What a piece needs that is the same throughout a row, but for constants."""
        for each, its_access in self._needed(value, access):
            is_constant = not isinstance(each.owner, ir.Block) and each.owner.name == "arith.constant"
            if not has_columns(its_access) and not is_constant:
                yield each, its_access

    def _prepare(self, value: ir.Value, access: Access) -> None:
        for each, its_access in self._needed(value, access):
            owner = each.owner
            if not has_columns(its_access):
                self._splat(each, its_access)
            elif (
                not isinstance(owner, ir.Block)
                and (each, its_access) not in self.known
                and owner.name == "linalg.generic"
            ):
                constants = (view.operation for view in owner.regions[0].blocks[0].operations)
                own = [op.results[0] for op in constants if op.name == "arith.constant"]
                for constant in (*own, *captured(owner)):
                    self._splat(constant, ())
                if any(base_of(its_access[dim]) == "col" for dim in positions_in(owner)):
                    self._ramp()

    def row_tile(self, value: ir.Value, access: Access) -> ir.Value:
        """A value that is one a row, in the first lane of a tile."""
        key = (value, access)
        if key not in self._row_tiles:
            if self.row_lanes < _COMPARED_LANES and compares(value):
                self.row_lanes = _COMPARED_LANES
                self._row_tiles.clear()
            self._row_tiles[key] = self._compute(value, access, None, None, 0.0, {})
        return self._row_tiles[key]

    def _splat(self, value: ir.Value, access: Access) -> ir.Value:
        key = (value, access)
        if key not in self._splats:
            owner = value.owner
            if not isinstance(owner, ir.Block) and owner.name == "arith.constant":
                self._splats[key] = self._constant_tile(owner, self.tile)
                return self._splats[key]
            name = self._name(value)
            if key not in self._scalars:
                self._scalars[key] = self._scalar_of_row(value, access, f"row_{name}")
            self._splats[key] = self.b.splat(self._scalars[key], self.tile, f"{name}_tile")
            if is_boolean(value):
                self._splats[key] = self._holds(self._splats[key], name)
        return self._splats[key]

    def _holds(self, number: ir.Value, name: str | None) -> ir.Value:
        """A mask of what is not 0."""
        lanes = ir.RankedTensorType(number.type).get_dim_size(0)
        return self.b.cmpf("UNE", number, self.b.splat(self.b.f32(0.0), lanes), f"{name}_holds")

    def _without_gaps(self, numbers: ir.Value, name: str | None) -> ir.Value:
        """Runs, or elements at places, close together: as they were loaded, each begins on 32 bytes of its dtype."""
        if self._places is None and self._runs is None:
            return numbers
        groups, count = self._runs[:2] if self._places is None else (len(self._places[1]), _ROW_LANES)
        group = ir.RankedTensorType(numbers.type).get_dim_size(0) // groups
        if group == count:
            return numbers
        take, types = TILE.classes["Take"], [tile_type(groups * count, self.b.f32_type)]
        return self.b.build(take, numbers, results=types, group=group, start=0, count=count, name=name).value

    def _constant_tile(self, op: ir.Operation, lanes: int) -> ir.Value:
        tile = self.b.splat(self._scalar_constant(op), lanes)
        return self._holds(tile, "condition") if is_boolean(op.results[0]) else tile

    def _scalar_of_row(self, value: ir.Value, access: Access, name: str) -> ir.Value:
        """As `row_scalar`; of a boolean, 1 or 0."""
        if not is_boolean(value):
            return self.row_scalar(value, access, name)
        number = bodies.one_or_zero(self.b, self.row_tile(value, access), name)
        return self.b.build(
            TILE.classes["Extract"], number, self.b.index(0), results=[self.b.f32_type], name=name
        ).scalar

    # -- the walk -----------------------------------------------------------------------------------------------

    def _compute(self, value, access: Access, column, count, pad: float | None, done: dict) -> ir.Value:
        def is_there(piece: tuple[ir.Value, Access]) -> bool:
            return self._is_of_row(piece[1], column) or piece in self.known or piece in done

        def sources(piece: tuple[ir.Value, Access]) -> Sequence[tuple[ir.Value, Access]]:
            owner = piece[0].owner
            if isinstance(owner, ir.Block) or is_there(piece):
                return ()
            reason = unsupported_reason(owner)
            if reason is not None:
                emit_error(owner, f"'{owner.name}' cannot be computed inside a kernel: {reason}")
                raise Unsupported
            return accesses(owner, piece[1])

        for piece in in_order((value, access), sources):
            if not is_there(piece):
                done[piece] = self._compute_anew(*piece, column, count, pad, done)
        return self._computed(value, access, column, done)

    def _computed(self, value, access: Access, column, done: dict) -> ir.Value:
        if self._is_of_row(access, column):
            return self._splat(value, access)
        return self.known[value, access] if (value, access) in self.known else done[value, access]

    def _is_of_row(self, access: Access, column) -> bool:
        """Whether a piece, beside others of columns, is the same throughout the row."""
        return column is not None and not has_columns(access)

    def _compute_anew(self, value, access: Access, column, count, pad: float | None, done: dict) -> ir.Value:
        owner = value.owner
        if isinstance(owner, ir.Block):
            return self._load(value, access, column, count, pad)
        if owner.name == "arith.constant":
            return self._constant_tile(owner, self._length(column))
        inputs = [self._computed(v, a, column, done) for v, a in accesses(owner, access)]
        return inputs[0] if owner.name != "linalg.generic" else self._body(owner, inputs, access, column)

    def _length(self, column: ir.Value | None) -> int:
        return self.tile if column is not None else self.row_lanes

    def _load(self, argument: ir.Value, access: Access, column, count, pad: float | None) -> ir.Value:
        gap = columns_apart(ir.RankedTensorType(argument.type), access)
        if column is not None and gap > 1:
            return self._load_apart(argument, access, column, count, pad, gap)
        raw = self._load_raw(argument, access, column, count, pad)
        with self.b.at(argument.location):
            if column is None and ir.RankedTensorType(raw.type).get_dim_size(0) > self.row_lanes:
                raw = self._head(raw)
            return self._widen(raw, self._name(argument), is_boolean(argument), column is not None)

    def _load_apart(self, argument: ir.Value, access: Access, column, count, pad: float | None, gap: int) -> ir.Value:
        """Columns with other elements between them: these are loaded too, and left out."""
        b, name, element = self.b, self._name(argument), ir.ShapedType(argument.type).element_type
        if gap not in TAKEN_APART or self._places is not None or self._runs is not None:
            emit_error(
                argument.owner.owner,
                f"columns {gap} elements apart cannot be loaded: kernels take one of {TAKEN_APART}",
            )
            raise Unsupported
        *_, last = (i for i, label in enumerate(access) if base_of(label) == "col")
        starts = [start_of(label) for label in access[last + 1 :]]
        within = 0
        for start, size in zip(starts, ir.RankedTensorType(argument.type).shape[last + 1 :]):
            within = within * size + start
        whole = (*access[: last + 1], *[None] * len(starts))
        with self.b.at(argument.location):
            offset = self.offset(ir.RankedTensorType(argument.type), whole, column, f"{name}_offset")
            held = ir.IntegerType.get_signless(8) if is_boolean(argument) else element
            raw = b.build(
                TILE.classes["Load"], self.buffers[argument.arg_number], offset,
                b.op(arith.muli, count, b.index(gap), name=f"{name}_count"), results=[tile_type(self.tile * gap, held)],
                pad=None if pad is None else ir.FloatAttr.get(b.f32_type, pad), name=name,
            ).value  # fmt: skip
            narrow = str(held) == "i8"
            wide = bodies.float_of_int(b, raw, name) if narrow else self._widen(raw, name)
            types = [tile_type(self.tile, ir.RankedTensorType(wide.type).element_type)]
            taken = b.build(
                TILE.classes["Take"], wide, results=types, group=gap, start=within, count=1, name=name
            ).value
            if is_boolean(argument):
                return self._holds(taken, name)
            return bodies.byte_of_float(b, taken) if narrow else taken

    def _head(self, tile: ir.Value) -> ir.Value:
        element = ir.ShapedType(tile.type).element_type
        return tensor.extract_slice(
            tile_type(self.row_lanes, element), tile, [], [], [], [0], [self.row_lanes], [1], loc=self.b.loc()
        )

    def _load_raw(self, argument: ir.Value, access: Access, column, count, pad: float | None) -> ir.Value:
        b = self.b
        element = ir.ShapedType(argument.type).element_type
        if is_boolean(argument):
            element = ir.IntegerType.get_signless(8)
        length = self.tile if column is not None else max(self.row_lanes, _BLOCK_BYTES // width_of(element))
        name = self._name(argument)
        with b.at(argument.location):
            offset = self.offset(ir.RankedTensorType(argument.type), access, column, f"{name}_offset")
            result = name if width_of(element) == 4 else f"{name}_raw"
            if column is not None and self._places is not None:
                return self._load_each(argument, access, element, pad, result)
            if column is not None and self._runs is not None:
                runs, run, pitch = self._runs
                lanes = up(run, _BLOCK_BYTES // width_of(element))
                return b.build(
                    TILE.classes["LoadRows"], self.buffers[argument.arg_number], offset, b.index(runs),
                    results=[tile_type(length // run * lanes, element)], row_length=run, gm_pitch=pitch, pitch=lanes,
                    name=result,
                ).value  # fmt: skip
            return b.build(
                TILE.classes["Load"],
                self.buffers[argument.arg_number],
                offset,
                count if column is not None else b.index(1),
                results=[tile_type(length, element)],
                pad=None if pad is None else ir.FloatAttr.get(b.f32_type, pad),
                name=result,
            ).value

    def _load_each(
        self, argument: ir.Value, access: Access, element: ir.Type, pad: float | None, name: str | None
    ) -> ir.Value:
        """The elements at several columns, each in a block of 32 bytes."""
        b, (_, columns) = self.b, self._places
        lanes = _BLOCK_BYTES // width_of(element)
        tile = tensor.empty([lanes * len(columns)], element, loc=b.loc(name))
        for n, column in enumerate(columns):
            offset = self.offset(ir.RankedTensorType(argument.type), access, column, f"{name}_offset")
            block = b.build(
                TILE.classes["Load"], self.buffers[argument.arg_number], offset, b.index(1), name=name,
                results=[tile_type(lanes, element)], pad=None if pad is None else ir.FloatAttr.get(b.f32_type, pad),
            ).value  # fmt: skip
            tile = tensor.insert_slice(block, tile, [], [], [], [n * lanes], [lanes], [1], loc=b.loc(name))
        return tile

    def offset(self, shape: ir.RankedTensorType, access: Access, column: ir.Value | None, name: str) -> ir.Value:
        """The flat element offset of a piece's first element."""
        b = self.b
        offset = None
        stride = 1
        rows = self._dims_of_position(shape, access)
        for dim in reversed(range(shape.rank)):
            position = self._plus_start(self.position_of(access[dim], column), access[dim])
            if dim in rows:
                position = self._position[0] if dim == max(rows) else None
            if position is not None:
                term = position if stride == 1 else b.op(arith.muli, position, b.index(stride))
                is_first = offset is None or constant_index(offset) == 0
                offset = term if is_first else b.op(arith.addi, term, offset, name=name)
            if dim:
                stride *= shape.get_dim_size(dim)
        return b.index(0) if offset is None else offset

    def _dims_of_position(self, shape: ir.RankedTensorType, access: Access) -> list[int]:
        """The dimensions of a piece that the number of the row at hand counts through, if it has all of them, and
        whole."""
        if self._position is None:
            return []
        dims = [
            dim
            for dim, label in enumerate(access)
            if label is not None and base_of(label) != "col" and shape.shape[dim] != 1
        ]
        return dims if {access[dim]: shape.shape[dim] for dim in dims} == self._position[1] else []

    def _widen(self, tile: ir.Value, name: str | None, boolean: bool = False, in_runs: bool = False) -> ir.Value:
        b, lanes = self.b, ir.RankedTensorType(tile.type).get_dim_size(0)
        if boolean:
            number = bodies.float_of_int(b, tile, name)
            return self._holds(self._without_gaps(number, name) if in_runs else number, name)
        if str(ir.ShapedType(tile.type).element_type) not in bodies.ROUNDED:
            return tile
        wide = b.op(arith.extf, tile_type(lanes, b.f32_type), tile, name=name)
        return self._without_gaps(wide, name) if in_runs else wide

    def _scalar_constant(self, op: ir.Operation) -> ir.Value:
        """A constant on the scalar unit; of a boolean, 1 or 0."""
        constant = constant_of(op)
        if isinstance(constant, (float, bool)):
            return self.b.f32(constant)
        return self.b.i32(constant)

    def _name(self, value: ir.Value) -> str:
        """The user's name for a value; a broadcast or a view is called like what it shows."""
        while not isinstance(value.owner, ir.Block) and _shows_input(value.owner):
            value = inputs(value.owner)[0]
        name = name_of(value)
        if name is not None and name.isidentifier():
            return name
        if isinstance(value.owner, ir.Block):
            return f"arg{value.arg_number}"
        return "value"

    def _ramp(self) -> ir.Value:
        """0, 1, 2, ... in a tile."""
        key = ("ramp", self.tile)
        if key not in self._splats:
            types = [tile_type(self.tile, self.b.i32_type)]
            self._splats[key] = self.b.build(TILE.classes["Iota"], results=types, name="ramp").value
        return self._splats[key]

    def _positions(self, label: str | None, column) -> ir.Value:
        """Where along a dimension the elements of a piece are, int32."""
        b, of_columns = self.b, base_of(label) == "col"
        if of_columns and self._places is not None:
            types = [tile_type(self.tile, b.i32_type)]
            places = b.build(
                TILE.classes["Broadcast"], self._places[0], results=types, width=_ROW_LANES, name="places"
            ).value
            start = b.splat(b.i32(start_of(label)), self.tile)
            return b.op(arith.addi, places, start, name="positions") if start_of(label) else places
        position = self._plus_start(self.position_of(label, column), label)
        first = b.i32(0) if position is None else b.op(arith.index_cast, b.i32_type, position)
        lanes = b.splat(first, self._length(column), "position")
        return b.op(arith.addi, self._ramp(), lanes, name="positions") if of_columns else lanes

    def position_of(self, label: str | None, column: ir.Value | None) -> ir.Value | None:
        return {"row": self.row, "col": column, None: None, **self.outer}[base_of(label)]

    def _plus_start(self, position: ir.Value | None, label: str | None) -> ir.Value | None:
        if not start_of(label):
            return position
        start = self.b.index(start_of(label))
        return start if position is None else self.b.op(arith.addi, position, start)

    def _body(self, generic: ir.Operation, inputs: list[ir.Value], access: Access, column) -> ir.Value:
        """The scalar body of a generic op, on tiles."""
        b = self.b
        block = generic.regions[0].blocks[0]
        values: dict[ir.Value, ir.Value] = dict(zip(block.arguments, inputs))
        for view in block.operations:
            op = view.operation
            operands = [values[v] if v in values else self._outer(v, column) for v in op.operands]
            if op.name == "linalg.yield":
                return operands[0]
            if op.name == "arith.constant":
                values[op.results[0]] = self._outer(op.results[0], column)
                continue
            if op.name == "linalg.index":
                with b.at(op.location):
                    values[op.results[0]] = self._positions(access[op.attributes["dim"].value], column)
                continue
            if op.name == "arith.index_cast":
                values[op.results[0]] = operands[0]
                continue
            with b.at(op.location):
                values[op.results[0]] = bodies.apply(b, op, operands)
        raise AssertionError("a generic op without a yield does not verify")

    def _outer(self, value: ir.Value, column) -> ir.Value:
        """A value that a body takes from outside: a constant."""
        if column is not None:
            return self._splat(value, ())
        return self._constant_tile(value.owner, self._length(column))


def _shows_input(op: ir.Operation) -> bool:
    """Whether an op's elements are those of its one input."""
    if op.name in (*VIEWS, SLICE):
        return True
    return op.name == "linalg.generic" and len(op.regions[0].blocks[0].operations) == 1 and len(inputs(op)) == 1
