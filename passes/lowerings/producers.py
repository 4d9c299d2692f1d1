"""Elementwise producers of a kernel's operands, computed on tiles.

An operator's operand is often the result of elementwise work (`logits / temperature[:, None]`). `Producers` computes
one piece of such a value inside the kernel, at the place where the piece is needed: it walks the value's definition
(`linalg.generic`, broadcasts, casts, constants, kernel arguments) and builds the same arithmetic on tiles.

A piece is named by its access: for every dimension of the value "row" (the row at hand), "col" (a run of columns) or
None (the first position, of a unit dimension the only one). A slice counts positions from its start on: "col+8" are the
columns from the eighth on, "+3" is the fourth position. Pieces without columns do not change inside a row: they are
computed once a row, on a tile of one 32-byte block, and spread by a splat.

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

Access = tuple[str | None, ...]

_BLOCK_BYTES = 32
_ROW_LANES = 8  # of what is the same throughout a row: one block of float32
_COMPARED_LANES = 64  # a comparison covers 256 bytes at least
VIEWS = ("tensor.expand_shape", "tensor.collapse_shape", "tensor.cast")
SLICE = "tensor.extract_slice"
CONCATENATION = "tensor.concat"  # along the last axis


def base_of(label: str | None) -> str | None:
    """What a label counts positions from."""
    return label and (label.partition("+")[0] or None)


def start_of(label: str | None) -> int:
    """How many positions on from there it starts."""
    return int((label or "").partition("+")[2] or 0)


def shifted(label: str | None, by: int) -> str | None:
    base, start = base_of(label), start_of(label) + by
    return f"{base or ''}+{start}" if start else base


def has_columns(access: Access) -> bool:
    return any(base_of(label) == "col" for label in access)


class Unsupported(Exception):
    """A producer cannot be computed on tiles; the diagnostics have been emitted."""


def unsupported_reason(op: ir.Operation) -> str | None:
    """Why `Producers` cannot compute an op; None if it can."""
    if op.name == "arith.constant":
        return None if constant_of(op) is not None else "a constant that is not one value throughout"
    if op.name in VIEWS:
        return _why_no_view(op)
    if op.name in ("tensor.empty", "linalg.fill"):
        return None
    if op.name == SLICE:
        return _why_no_slice(op)
    if op.name == CONCATENATION:
        along_rows = 0 < op.attributes["dim"].value == ir.RankedTensorType(op.results[0].type).rank - 1
        return None if along_rows else "a concatenation along other than the last axis"
    if op.name != "linalg.generic":
        return "kernels compute elementwise work and the operators of the dialect 'ascend'"
    if any("parallel" not in str(kind) for kind in op.attributes["iterator_types"]):
        return "a reduction"
    if len(op.results) != 1:
        return "more than one result"
    maps = [attribute.value for attribute in op.attributes["indexing_maps"]]
    if maps[-1] != ir.AffineMap.get_identity(maps[-1].n_dims):
        return "a result that is not in iteration order"
    for affine in maps[:-1]:
        for expression in affine.results:
            if not isinstance(expression, (ir.AffineDimExpr, ir.AffineConstantExpr)):
                return f"an access {affine} that is no plain broadcast"
        positions = [ir.AffineDimExpr(e).position for e in affine.results if isinstance(e, ir.AffineDimExpr)]
        if positions != sorted(set(positions)):
            return "a transposition"
    reasons = (bodies.refusal(view.operation) for view in op.regions[0].blocks[0].operations)
    return next((reason for reason in reasons if reason is not None), None)


def _why_no_view(op: ir.Operation) -> str | None:
    if op.name == "tensor.cast":
        return None
    before = ir.RankedTensorType(op.operands[0].type)
    after = ir.RankedTensorType(op.results[0].type)
    if _non_unit(before) == _non_unit(after) or _is_uniform(op.operands[0]):
        return None
    return "a reshape that moves elements between dimensions"


def _why_no_slice(op: ir.Operation) -> str | None:
    ranks = {ir.RankedTensorType(value.type).rank for value in (op.operands[0], op.results[0])}
    if len(op.operands) > 1 or len(ranks) > 1 or set(op.attributes["static_strides"]) - {1}:
        return "a slice of other than neighbouring elements, from a position that is known"
    return None


def _is_uniform(value: ir.Value) -> bool:
    """Whether all elements of a value are the same, so that any of them serves for any other."""
    if not isinstance(value.type, ir.RankedTensorType) or ir.RankedTensorType(value.type).rank == 0:
        return True
    owner = value.owner
    if isinstance(owner, ir.Block) or unsupported_reason(owner) is not None:
        return False
    return owner.name == "arith.constant" or all(map(_is_uniform, inputs(owner)))


def _non_unit(shape: ir.RankedTensorType) -> list[int]:
    return [dim for dim in shape.shape if dim != 1]


def inputs(op: ir.Operation) -> list[ir.Value]:
    """The operands whose elements an op reads (not its shape operands)."""
    if op.name == "linalg.generic":
        return list(op.operands)[: len(op.operands) - 1]
    if op.name in (*VIEWS, SLICE, "linalg.fill"):
        return [op.operands[0]]
    return list(op.operands) if op.name == CONCATENATION else []


def captured(op: ir.Operation) -> list[ir.Value]:
    """The constants outside of an op that its body uses."""
    inner = [view.operation for region in op.regions for block in region.blocks for view in block.operations]
    used = dict.fromkeys(value for operation in inner for value in operation.operands)
    outside = [value for value in used if not isinstance(value.owner, ir.Block) and value.owner not in inner]
    return [value for value in outside if value.owner.name == "arith.constant"]


def positions_in(op: ir.Operation) -> list[int]:
    """The dimensions along which an op computes with the positions of its elements."""
    inner = [view.operation for region in op.regions for block in region.blocks for view in block.operations]
    return [operation.attributes["dim"].value for operation in inner if operation.name == "linalg.index"]


def width_of(element: ir.Type) -> int:
    """Bytes of an element in a tile."""
    return {"bf16": 2, "f16": 2, "i8": 1, "i1": 1}.get(str(element), 4)


def constant_of(op: ir.Operation) -> float | int | None:
    """The one value of a constant, scalar or splat; None if it varies."""
    value = op.attributes["value"]
    if isinstance(value, (ir.FloatAttr, ir.IntegerAttr, ir.BoolAttr)):
        return value.value
    if isinstance(value, ir.DenseElementsAttr) and value.is_splat:
        return value.get_splat_value().value
    return None


def compares(value: ir.Value) -> bool:
    """Whether a comparison, or a boolean, goes into a value."""
    if is_boolean(value):
        return True
    owner = value.owner
    if isinstance(owner, ir.Block):
        return False
    inner = (view.operation for region in owner.regions for block in region.blocks for view in block.operations)
    return any(map(bodies.compares, inner)) or any(map(compares, inputs(owner)))


class Producers:
    """Computes pieces of the values of one kernel function.

    `buffers` gives the global memory of each function argument by number. `enter_row` must be called at the start of a
    row, with the insertion point there, before any `piece`. `piece_lanes` is the most that is to be computed at once, None
    for no limit: who asks for longer pieces of computed values goes about them in parts."""

    def __init__(self, builder: Builder, buffers: Sequence[ir.Value], tile: int, piece_lanes: int | None = None):
        self.piece_lanes = piece_lanes
        self.b = builder
        self.buffers = buffers
        self.tile = tile
        self.row: ir.Value | None = None
        self.known: dict[tuple[ir.Value, Access], ir.Value] = {}  # tiles of pieces that were computed elsewhere
        self.row_lanes = _ROW_LANES
        self.outer: dict[str, ir.Value] = {}  # positions in dimensions between the rows and the columns, by label
        self._runs: tuple[int, int, int] | None = None
        self._places: tuple[ir.Value, Sequence[ir.Value]] | None = None
        self._row_tiles: dict[tuple[ir.Value, Access], ir.Value] = {}
        self._scalars: dict[tuple[ir.Value, Access], ir.Value] = {}
        self._splats: dict[tuple[ir.Value, Access], ir.Value] = {}

    # -- the public face ----------------------------------------------------------------------------------------

    def enter_row(
        self, row: ir.Value, chunked: Sequence[tuple[ir.Value, Access]], scalars: Sequence[ir.Value | None] = ()
    ) -> None:
        """Starts a row: computes what the given pieces need once a row, at the insertion point. `scalars` are values of which
        `row_scalar` will be asked: all are loaded before the scalar unit waits for the first."""
        self.row = row
        self._row_tiles.clear()
        self._scalars.clear()
        of_row = [(value, ("row",)) for value in scalars if value is not None]
        for value, access in (*of_row, *(found for piece in chunked for found in self._of_row(*piece))):
            self.row_tile(value, access)
        self.prepare(chunked)

    def prepare(self, chunked: Sequence[tuple[ir.Value, Access]]) -> None:
        """Makes the tiles that the given pieces, of `tile` elements, need throughout the row, at the insertion point. Called
        again in front of a loop whose pieces have another length."""
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
        """A run of columns of a value as a tile: float32, int32, or a mask. `pad` fills the lanes from `count` on of what
        is loaded from global memory; None: there are none. `done` holds what has been computed for the same columns of the
        same row."""
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
        """Within, a piece is not one run of columns but the elements at several, each in the first lane of a block of 8, loaded
        without one waiting for another. The columns are `places`; the int32 tile `columns` holds them too."""
        self._places = (columns, places)
        yield
        self._places = None

    # -- pieces that are the same throughout a row --------------------------------------------------------------

    def _of_row(self, value: ir.Value, access: Access) -> Iterator[tuple[ir.Value, Access]]:
        """What a piece needs that is the same throughout a row, but for constants."""
        owner = value.owner
        is_argument = isinstance(owner, ir.Block)
        if not has_columns(access):
            if is_argument or owner.name != "arith.constant":
                yield value, access
        elif not is_argument and (value, access) not in self.known:
            for operand, operand_access in accesses(owner, access):
                yield from self._of_row(operand, operand_access)

    def _prepare(self, value: ir.Value, access: Access) -> None:
        if not has_columns(access):
            self._splat(value, access)
            return
        owner = value.owner
        if isinstance(owner, ir.Block) or (value, access) in self.known:
            return
        for operand, operand_access in accesses(owner, access):
            self._prepare(operand, operand_access)
        if owner.name == "linalg.generic":
            constants = (view.operation for view in owner.regions[0].blocks[0].operations)
            own = [op.results[0] for op in constants if op.name == "arith.constant"]
            for constant in (*own, *captured(owner)):
                self._splat(constant, ())
            if any(base_of(access[dim]) == "col" for dim in positions_in(owner)):
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
        return self.b.build(TILE.classes["Extract"], number, self.b.index(0), results=[self.b.f32_type], name=name).scalar

    # -- the walk -----------------------------------------------------------------------------------------------

    def _compute(self, value, access: Access, column, count, pad: float | None, done: dict) -> ir.Value:
        if column is not None and not has_columns(access):
            return self._splat(value, access)
        key = (value, access)
        if key in self.known:
            return self.known[key]
        if key not in done:
            done[key] = self._compute_anew(value, access, column, count, pad, done)
        return done[key]

    def _compute_anew(self, value, access: Access, column, count, pad: float | None, done: dict) -> ir.Value:
        owner = value.owner
        if isinstance(owner, ir.Block):
            return self._load(value, access, column, count, pad)
        if owner.name == "arith.constant":
            return self._constant_tile(owner, self._length(column))
        reason = unsupported_reason(owner)
        if reason is not None:
            emit_error(owner, f"'{owner.name}' cannot be computed inside a kernel: {reason}")
            raise Unsupported
        inputs = [self._compute(v, a, column, count, pad, done) for v, a in accesses(owner, access)]
        if owner.name != "linalg.generic":
            return inputs[0]
        return self._body(owner, inputs, access, column)

    def _length(self, column: ir.Value | None) -> int:
        return self.tile if column is not None else self.row_lanes

    def _load(self, argument: ir.Value, access: Access, column, count, pad: float | None) -> ir.Value:
        raw = self._load_raw(argument, access, column, count, pad)
        with self.b.at(argument.location):
            if column is None and ir.RankedTensorType(raw.type).get_dim_size(0) > self.row_lanes:
                raw = self._head(raw)
            return self._widen(raw, self._name(argument), is_boolean(argument), column is not None)

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

    def _load_each(self, argument: ir.Value, access: Access, element: ir.Type, pad: float | None, name: str | None) -> ir.Value:
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
        for dim in reversed(range(shape.rank)):
            position = self._plus_start(self.position_of(access[dim], column), access[dim])
            if position is not None:
                term = position if stride == 1 else b.op(arith.muli, position, b.index(stride))
                is_first = offset is None or constant_index(offset) == 0
                offset = term if is_first else b.op(arith.addi, term, offset, name=name)
            if dim:
                stride *= shape.get_dim_size(dim)
        return b.index(0) if offset is None else offset

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
            places = b.build(TILE.classes["Broadcast"], self._places[0], results=types, width=_ROW_LANES, name="places").value
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


def accesses(op: ir.Operation, access: Access) -> list[tuple[ir.Value, Access]]:
    """Which pieces of an op's inputs give a piece of its result."""
    if op.name == "linalg.generic":
        pairs = []
        for operand, attribute in zip(inputs(op), op.attributes["indexing_maps"]):
            dims = []
            for expression in attribute.value.results:
                constant = isinstance(expression, ir.AffineConstantExpr)
                dims.append(None if constant else access[ir.AffineDimExpr(expression).position])
            pairs.append((operand, tuple(dims)))
        return pairs
    if op.name in VIEWS:
        source = op.operands[0]
        if _is_uniform(source):
            return [(source, (None,) * ir.RankedTensorType(source.type).rank)]
        return [(source, _access_of_source(op, access))]
    if op.name == "linalg.fill":
        return [(op.operands[0], ())]
    if op.name == SLICE:
        starts = op.attributes["static_offsets"]
        return [(op.operands[0], tuple(shifted(label, start) for label, start in zip(access, starts)))]
    if op.name == CONCATENATION:
        return [_part_of(op, access)]
    return []


def _part_of(op: ir.Operation, access: Access) -> tuple[ir.Value, Access]:
    """The piece of the tensor that a piece of a concatenation lies in: whose is its first column."""
    start = start_of(access[-1])
    for operand, first in zip(op.operands, starts_of_parts(op)):
        length = ir.RankedTensorType(operand.type).shape[-1]
        if start < first + length:
            break
    return operand, (*access[:-1], shifted(access[-1], -first))


def starts_of_parts(op: ir.Operation) -> list[int]:
    """The column that each operand of a concatenation starts at."""
    lengths = [ir.RankedTensorType(operand.type).shape[-1] for operand in op.operands]
    return [sum(lengths[:i]) for i in range(len(lengths))]


def _access_of_source(op: ir.Operation, access: Access) -> Access:
    """The piece of a view's source. Of the dimensions that a view makes one of or one into, one has more than one position,
    or the first of the rows stays the first."""
    shape = ir.RankedTensorType(op.operands[0].type).shape
    if op.name == "tensor.cast":
        return access
    groups = [[index.value for index in group] for group in op.attributes["reassociation"]]
    if op.name == "tensor.expand_shape":
        after = ir.RankedTensorType(op.results[0].type).shape
        return tuple(access[max(group, key=lambda d: after[d] != 1)] if group else None for group in groups)
    labels: list[str | None] = [None] * len(shape)
    for number, group in enumerate(groups):
        labels[max(group, key=lambda d: shape[d] != 1)] = access[number]
    return tuple(labels)


def is_boolean(value: ir.Value) -> bool:
    """Whether a value's elements are true or false."""
    shaped = isinstance(value.type, ir.RankedTensorType)
    return str(ir.RankedTensorType(value.type).element_type if shaped else value.type) == "i1"
