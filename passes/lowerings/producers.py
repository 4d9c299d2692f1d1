"""Elementwise producers of a kernel's operands, computed on tiles.

An operator's operand is often the result of elementwise work (`logits / temperature[:, None]`). `Producers` computes
one piece of such a value inside the kernel, at the place where the piece is needed: it walks the value's definition
(`linalg.generic`, broadcasts, casts, constants, kernel arguments) and builds the same arithmetic on tiles.

A piece is named by its access: for every dimension of the value "row" (the row at hand), "col" (a run of columns) or
None (the only position of a unit dimension). Pieces without "col" do not change inside a row: they are computed once a
row, on a tile of one 32-byte block, and spread by a splat.

Floats are computed in float32 whatever their dtype, and rounded to the dtype after every operation, as XLA does on a
CPU; integers in int32. The caller's structure is passed through unchanged: what cannot be computed here is reported at
its own location, every such op once.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from mlir import ir
from mlir.dialects import arith, math

from jascend.dialect import TILE

from ..builder import Builder, name_of, tile_type
from ..diagnostics import emit_error

Access = tuple[str | None, ...]

_BLOCK_BYTES = 32
_ROUNDED = ("bf16", "f16")
_FLOAT_OPS = {
    "arith.addf": arith.addf,
    "arith.subf": arith.subf,
    "arith.mulf": arith.mulf,
    "arith.divf": arith.divf,
    "arith.maximumf": arith.maximumf,
    "arith.minimumf": arith.minimumf,
    "arith.negf": arith.negf,
    "math.exp": math.exp,
    "math.log": math.log,
    "math.sqrt": math.sqrt,
    "math.absf": math.absf,
}
_INT_OPS = {
    "arith.addi": arith.addi,
    "arith.subi": arith.subi,
    "arith.muli": arith.muli,
    "arith.maxsi": arith.maxsi,
    "arith.minsi": arith.minsi,
}
_CASTS = ("arith.extf", "arith.truncf", "arith.sitofp")
_BODY_OPS = frozenset((*_FLOAT_OPS, *_INT_OPS, *_CASTS, "arith.constant", "arith.cmpf", "arith.select", "linalg.yield"))
VIEWS = ("tensor.expand_shape", "tensor.collapse_shape", "tensor.cast")


class Unsupported(Exception):
    """A producer cannot be computed on tiles; the diagnostics have been emitted."""


def unsupported_reason(op: ir.Operation) -> str | None:
    """Why `Producers` cannot compute an op; None if it can."""
    if op.name == "arith.constant":
        return None if _constant(op) is not None else "a constant that is not one value throughout"
    if op.name in VIEWS:
        return _why_no_view(op)
    if op.name in ("tensor.empty", "linalg.fill"):
        return None
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
    for inner in op.regions[0].blocks[0].operations:
        if inner.operation.name not in _BODY_OPS:
            return f"kernels do not compute '{inner.operation.name}'"
        if inner.operation.name in ("arith.sitofp", "arith.extf", "arith.truncf") and not _cast_fits(inner.operation):
            return f"a cast from {inner.operands[0].type} to {inner.results[0].type}"
    return None


def _cast_fits(op: ir.Operation) -> bool:
    kinds = {str(op.operands[0].type), str(op.results[0].type)}
    return kinds <= {"f32", "bf16", "f16", "i32"}


def _why_no_view(op: ir.Operation) -> str | None:
    if op.name == "tensor.cast":
        return None
    before = ir.RankedTensorType(op.operands[0].type)
    after = ir.RankedTensorType(op.results[0].type)
    if _non_unit(before) == _non_unit(after) or _is_uniform(op.operands[0]):
        return None
    return "a reshape that moves elements between dimensions"


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
    if op.name in VIEWS or op.name == "linalg.fill":
        return [op.operands[0]]
    return []


def _constant(op: ir.Operation) -> float | int | None:
    """The one value of a constant, scalar or splat; None if it varies."""
    value = op.attributes["value"]
    if isinstance(value, (ir.FloatAttr, ir.IntegerAttr)):
        return value.value
    if isinstance(value, ir.DenseElementsAttr) and value.is_splat:
        return value.get_splat_value().value
    return None


class Producers:
    """Computes pieces of the values of one kernel function.

    `buffers` gives the global memory of each function argument by number. `enter_row` must be called at the start of a
    row, with the insertion point there, before any `piece`."""

    def __init__(self, builder: Builder, buffers: Sequence[ir.Value], tile: int):
        self.b = builder
        self.buffers = buffers
        self.tile = tile
        self.row: ir.Value | None = None
        self._runs: tuple[int, int, int] | None = None
        self._row_tiles: dict[tuple[ir.Value, Access], ir.Value] = {}
        self._scalars: dict[tuple[ir.Value, Access], ir.Value] = {}
        self._splats: dict[tuple[ir.Value, Access], ir.Value] = {}

    # -- the public face ----------------------------------------------------------------------------------------

    def enter_row(self, row: ir.Value, chunked: Sequence[tuple[ir.Value, Access]]) -> None:
        """Starts a row: computes what the given pieces need once a row, at the insertion point."""
        self.row = row
        self._row_tiles.clear()
        self._scalars.clear()
        self.prepare(chunked)

    def prepare(self, chunked: Sequence[tuple[ir.Value, Access]]) -> None:
        """Makes the tiles that the given pieces, of `tile` elements, need throughout the row, at the insertion point. Called
        again in front of a loop whose pieces have another length."""
        self._splats.clear()
        for value, access in chunked:
            self._prepare(value, access)

    def row_scalar(self, value: ir.Value, access: Access, name: str) -> ir.Value:
        """A value that is one scalar a row, on the scalar unit: f32 for floats, i32 for integers."""
        tile = self._row_tile(value, access)
        element = ir.ShapedType(tile.type).element_type
        return self.b.build(TILE.classes["Extract"], tile, self.b.index(0), results=[element], name=name).scalar

    def is_load(self, value: ir.Value) -> bool:
        """Whether a value is an argument as it is: no arithmetic, so padding survives."""
        while not isinstance(value.owner, ir.Block) and value.owner.name in VIEWS:
            value = value.owner.operands[0]
        return isinstance(value.owner, ir.Block)

    def piece(self, value: ir.Value, access: Access, column: ir.Value, count: ir.Value, pad: float) -> ir.Value:
        """A run of columns of a value as a tile: float32, or int32. `pad` fills the lanes from `count` on of what is
        loaded from global memory."""
        return self._compute(value, access, column, count, pad, {})

    def raw_piece(self, value: ir.Value, access: Access, column: ir.Value, count: ir.Value, pad: float) -> ir.Value:
        """The same of an argument as it is (`is_load`), in its own dtype."""
        while not isinstance(value.owner, ir.Block):
            ((value, access),) = _accesses(value.owner, access)
        return self._load_raw(value, access, column, count, pad)

    @contextlib.contextmanager
    def strided(self, runs: int, length: int, pitch: int):
        """Within, a piece is not one run of columns but several, `pitch` columns from one to the next."""
        self._runs = (runs, length, pitch)
        yield
        self._runs = None

    # -- pieces that are the same throughout a row --------------------------------------------------------------

    def _prepare(self, value: ir.Value, access: Access) -> None:
        if "col" not in access:
            self._splat(value, access)
            return
        owner = value.owner
        if isinstance(owner, ir.Block):
            return
        for operand, operand_access in _accesses(owner, access):
            self._prepare(operand, operand_access)
        if owner.name == "linalg.generic":
            for inner in owner.regions[0].blocks[0].operations:
                if inner.operation.name == "arith.constant":
                    self._splat(inner.results[0], ())

    def _row_tile(self, value: ir.Value, access: Access) -> ir.Value:
        key = (value, access)
        if key not in self._row_tiles:
            self._row_tiles[key] = self._compute(value, access, None, None, 0.0, {})
        return self._row_tiles[key]

    def _splat(self, value: ir.Value, access: Access) -> ir.Value:
        key = (value, access)
        if key not in self._splats:
            owner = value.owner
            if not isinstance(owner, ir.Block) and owner.name == "arith.constant":
                scalar = self._scalar_constant(owner)
                name = None
            else:
                name = self._name(value)
                if key not in self._scalars:
                    self._scalars[key] = self.row_scalar(value, access, f"row_{name}")
                scalar = self._scalars[key]
            self._splats[key] = self.b.splat(scalar, self.tile, f"{name}_tile" if name else None)
        return self._splats[key]

    # -- the walk -----------------------------------------------------------------------------------------------

    def _compute(self, value, access: Access, column, count, pad: float, done: dict) -> ir.Value:
        if column is not None and "col" not in access:
            return self._splat(value, access)
        key = (value, access)
        if key not in done:
            done[key] = self._compute_anew(value, access, column, count, pad, done)
        return done[key]

    def _compute_anew(self, value, access: Access, column, count, pad: float, done: dict) -> ir.Value:
        owner = value.owner
        if isinstance(owner, ir.Block):
            return self._load(value, access, column, count, pad)
        if owner.name == "arith.constant":
            return self.b.splat(self._scalar_constant(owner), self._length(column))
        reason = unsupported_reason(owner)
        if reason is not None:
            emit_error(owner, f"'{owner.name}' cannot be computed inside a kernel: {reason}")
            raise Unsupported
        inputs = [self._compute(v, a, column, count, pad, done) for v, a in _accesses(owner, access)]
        if owner.name != "linalg.generic":
            return inputs[0]
        return self._body(owner, inputs, column)

    def _length(self, column: ir.Value | None) -> int:
        return self.tile if column is not None else _BLOCK_BYTES // 4

    def _load(self, argument: ir.Value, access: Access, column, count, pad: float) -> ir.Value:
        raw = self._load_raw(argument, access, column, count, pad)
        with _at(self.b, argument.location):
            return self._widen(raw, self._name(argument))

    def _load_raw(self, argument: ir.Value, access: Access, column, count, pad: float) -> ir.Value:
        b = self.b
        element = ir.ShapedType(argument.type).element_type
        width = 2 if str(element) in _ROUNDED else 4
        length = self.tile if column is not None else _BLOCK_BYTES // width
        name = self._name(argument)
        with _at(b, argument.location):
            offset = self._offset(ir.RankedTensorType(argument.type), access, column, f"{name}_offset")
            result = f"{name}_raw" if width == 2 else name
            if column is not None and self._runs is not None:
                runs, run, pitch = self._runs
                return b.build(
                    TILE.classes["LoadRows"], self.buffers[argument.arg_number], offset, b.index(runs),
                    results=[tile_type(length, element)], row_length=run, gm_pitch=pitch, pitch=run, name=result,
                ).value  # fmt: skip
            return b.build(
                TILE.classes["Load"],
                self.buffers[argument.arg_number],
                offset,
                count if column is not None else b.index(1),
                results=[tile_type(length, element)],
                pad=ir.FloatAttr.get(b.f32_type, pad),
                name=result,
            ).value

    def _offset(self, shape: ir.RankedTensorType, access: Access, column: ir.Value | None, name: str) -> ir.Value:
        """The flat element offset of a piece's first element."""
        b = self.b
        offset = None
        stride = 1
        for dim in reversed(range(shape.rank)):
            position = {"row": self.row, "col": column, None: None}[access[dim]]
            if position is not None:
                term = position if stride == 1 else b.op(arith.muli, position, b.index(stride))
                offset = term if offset is None else b.op(arith.addi, term, offset, name=name)
            if dim:
                stride *= shape.get_dim_size(dim)
        return b.index(0) if offset is None else offset

    def _widen(self, tile: ir.Value, name: str | None) -> ir.Value:
        element = str(ir.ShapedType(tile.type).element_type)
        if element not in _ROUNDED:
            return tile
        wide = tile_type(ir.RankedTensorType(tile.type).get_dim_size(0), self.b.f32_type)
        return self.b.op(arith.extf, wide, tile, name=name)

    def _round(self, tile: ir.Value, element: ir.Type, name: str | None) -> ir.Value:
        """A float32 tile rounded to the values of a narrower dtype."""
        if str(element) not in _ROUNDED:
            return tile
        narrow = tile_type(ir.RankedTensorType(tile.type).get_dim_size(0), element)
        return self._widen(self.b.op(arith.truncf, narrow, tile, name=f"{name}_{element}"), name)

    def _scalar_constant(self, op: ir.Operation) -> ir.Value:
        constant = _constant(op)
        if isinstance(constant, float):
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

    def _body(self, generic: ir.Operation, inputs: list[ir.Value], column) -> ir.Value:
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
            with _at(b, op.location):
                values[op.results[0]] = self._apply(op, operands)
        raise AssertionError("a generic op without a yield does not verify")

    def _outer(self, value: ir.Value, column) -> ir.Value:
        """A value that a body takes from outside: a constant."""
        if column is not None:
            return self._splat(value, ())
        return self.b.splat(self._scalar_constant(value.owner), self._length(column))

    def _apply(self, op: ir.Operation, operands: list[ir.Value]) -> ir.Value:
        b = self.b
        element = op.results[0].type
        name = _operation_name(op)
        if op.name in _FLOAT_OPS:
            return self._round(_FLOAT_OPS[op.name](*operands, loc=b.loc(name)), element, name)
        if op.name in _INT_OPS:
            return _INT_OPS[op.name](*operands, loc=b.loc(name))
        if op.name == "arith.extf":
            return operands[0]
        if op.name == "arith.truncf":
            return self._round(operands[0], element, name)
        if op.name == "arith.sitofp":
            length = ir.RankedTensorType(operands[0].type).get_dim_size(0)
            return self._round(b.op(arith.sitofp, tile_type(length, b.f32_type), operands[0], name=name), element, name)
        if op.name == "arith.cmpf":
            return arith.cmpf(op.attributes["predicate"], *operands, loc=b.loc(name))
        return b.select(*operands, name=name)


def _shows_input(op: ir.Operation) -> bool:
    """Whether an op's elements are those of its one input."""
    if op.name in VIEWS:
        return True
    return op.name == "linalg.generic" and len(op.regions[0].blocks[0].operations) == 1 and len(inputs(op)) == 1


def _operation_name(op: ir.Operation) -> str:
    return {"addf": "sum", "subf": "difference", "mulf": "scaled", "divf": "scaled", "cmpf": "mask"}.get(
        op.name.partition(".")[2], op.name.partition(".")[2]
    )


def _accesses(op: ir.Operation, access: Access) -> list[tuple[ir.Value, Access]]:
    """Which pieces of an op's inputs give a piece of its result."""
    if op.name == "linalg.generic":
        pairs = []
        for operand, attribute in zip(inputs(op), op.attributes["indexing_maps"]):
            dims = []
            for expression in attribute.value.results:
                constant = isinstance(expression, ir.AffineConstantExpr)
                dims.append(None if constant else access[ir.AffineDimExpr(expression).position])
            pairs.append((operand, _drop_unit(operand, tuple(dims))))
        return pairs
    if op.name in VIEWS:
        source = op.operands[0]
        if _is_uniform(source):
            return [(source, (None,) * ir.RankedTensorType(source.type).rank)]
        kept = iter([a for a, dim in zip(access, ir.RankedTensorType(op.results[0].type).shape) if dim != 1])
        shape = ir.RankedTensorType(source.type).shape
        return [(source, tuple(None if dim == 1 else next(kept) for dim in shape))]
    if op.name == "linalg.fill":
        return [(op.operands[0], ())]
    return []


def _drop_unit(value: ir.Value, access: Access) -> Access:
    """A unit dimension has one position, whatever the iteration does."""
    if not isinstance(value.type, ir.RankedTensorType):
        return access
    return tuple(None if dim == 1 else a for a, dim in zip(access, ir.RankedTensorType(value.type).shape))


class _at:
    """The builder's location for a while: that of the op whose work is being built."""

    def __init__(self, builder: Builder, location: ir.Location):
        self.builder, self.location = builder, location

    def __enter__(self):
        self.outer = self.builder.location
        self.builder.location = self.location

    def __exit__(self, *_):
        self.builder.location = self.outer
