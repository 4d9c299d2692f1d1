"""The vector unit: elementwise ops, reductions, ramps; and one element to the scalar unit."""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith

from jascend.dialect.ascendc import element_bytes_of
from jascend.dialect.elements import element_name, type_name

from ..builder import name_of
from .lanes import strided
from .lowering import Lowering, element_of, is_tile, length_of, lowers

_BLOCK = 32  # bytes
_REPEAT = 256  # bytes
_LANES = 64  # float32 elements in one repeat
_MOST = 255  # repeats of an instruction

_COMPARE = {
    "OEQ": ("EQ", False), "OGT": ("GT", False), "OGE": ("GE", False), "OLT": ("LT", False), "OLE": ("LE", False),
    "UNE": ("NE", False), "UGT": ("LE", True), "UGE": ("LT", True), "ULT": ("GE", True), "ULE": ("GT", True),
}  # fmt: skip
_BINARY = {
    "arith.addf": "Add", "arith.subf": "Sub", "arith.mulf": "Mul", "arith.divf": "Div",
    "arith.maximumf": "Max", "arith.minimumf": "Min",
    "arith.addi": "Add", "arith.subi": "Sub", "arith.muli": "Mul", "arith.maxsi": "Max", "arith.minsi": "Min",
}  # fmt: skip
_WITH_SCALAR = {"Add": "Adds", "Mul": "Muls", "Max": "Maxs", "Min": "Mins"}
SHIFTS = ("arith.shli", "arith.shrsi", "arith.shrui")
_SECOND = ("arith.cmpf", "arith.cmpi", "arith.subf", "arith.subi", *SHIFTS)  # whose second operand may be a scalar
_SCALARS = ("f32", "i32", "i16")  # element types of scalar forms
_BYTES = ("i8", "ui8")
_UNARY = {"math.exp": "Exp", "math.log": "Ln", "math.sqrt": "Sqrt", "math.absf": "Abs"}
_CASTS = {
    "arith.extf": "CAST_NONE", "arith.truncf": "CAST_RINT", "arith.sitofp": "CAST_RINT", "arith.fptosi": "CAST_TRUNC",
    "math.roundeven": "CAST_RINT", "math.floor": "CAST_FLOOR", "math.ceil": "CAST_CEIL", "math.round": "CAST_ROUND",
    "math.trunc": "CAST_TRUNC",
}  # fmt: skip


# -- splats -----------------------------------------------------------------------------------------------------------


@lowers("tensor.splat")
def splat(low: Lowering, op: ir.Operation) -> None:
    _splat(low, op, op.operands[0])


@lowers("arith.constant")
def constant(low: Lowering, op: ir.Operation) -> None:
    value = op.attributes["value"]
    if not isinstance(value, ir.DenseElementsAttr) or not value.is_splat:
        low.refuse(op, "a constant tile has one value for all elements")
    _splat(low, op, low.b.constant(element_of(op.results[0]), value.get_splat_value()))


@lowers("tensor.empty")
def empty(low: Lowering, op: ir.Operation) -> None:
    """A buffer for slices that will be inserted."""
    low.result(op)


def _splat(low: Lowering, op: ir.Operation, scalar: ir.Value) -> None:
    """A buffer only where a user has no form that takes a scalar."""
    value = op.results[0]
    low.splats[value] = scalar
    element = element_name(value)
    users = [use.owner.operation for use in value.uses if not _takes_scalar(use.owner, use.operand_number, element)]
    if not users:
        return
    if element == "i1":
        low.refuse(users[0], f"'{users[0].name}' with a mask that is the same in all lanes is not lowered")
    result = low.result(op, name_of(value) or _constant_name(scalar))
    if element in _BYTES:  # filled four at a time
        if _constant_name(scalar) != "zeros":
            low.refuse(op, f"a tile of {element_of(value)} is filled with zeros only")
        result, scalar = low.view(result, 0, length_of(result) // 4, low.b.i32_type), low.b.i32(0)
    low.emit("Duplicate", result, scalar)


def _constant_name(scalar: ir.Value) -> str:
    owner = scalar.owner
    if not isinstance(owner, ir.Block) and owner.name == "arith.constant":
        value = owner.attributes["value"].value
        return {0.0: "zeros", 1.0: "ones", float("-inf"): "neg_infs"}.get(value, "constants")
    return name_of(scalar) or "constants"


def _is_splat(value: ir.Value) -> bool:
    owner = value.owner
    return not isinstance(owner, ir.Block) and owner.name in ("tensor.splat", "arith.constant")


def _takes_scalar(user: ir.Operation, position: int, element: str) -> bool:
    """Whether an op has a form that takes this operand, of such elements, as a scalar. The other operand must be a tile
    of its own."""
    user = user.operation
    name, operands = user.name, user.operands
    if name == "arith.xori":
        return all_ones(operands[position]) and not all_ones(operands[1 - position])
    if name in _SECOND:
        return position == 1 and element in _SCALARS
    if name == "arith.select":
        return position == 2 and element == "f32"
    if element not in _SCALARS:
        return False
    if name == "arith.divf":
        return _divides_a_splat(user, position)
    return _BINARY.get(name) in _WITH_SCALAR and (position == 1 or not _is_splat(operands[1]))


def all_ones(value: ir.Value) -> bool:
    """Whether all bits of a tile are known to be set."""
    if not _is_splat(value):
        return False
    owner = value.owner.operation
    if owner.name == "tensor.splat":
        owner = owner.operands[0].owner
        if isinstance(owner, ir.Block) or owner.name != "arith.constant":
            return False
        scalar = owner.attributes["value"]
    else:
        constant = owner.attributes["value"]
        if not constant.is_splat:
            return False
        scalar = constant.get_splat_value()
    return isinstance(scalar, ir.IntegerAttr | ir.BoolAttr) and (scalar.value is True or scalar.value == -1)


# -- elementwise ------------------------------------------------------------------------------------------------------


@lowers(*_BINARY)
def binary(low: Lowering, op: ir.Operation) -> None:
    api = _BINARY[op.name]
    if strided(low, op, api):
        return
    a, b = op.operands
    if a in low.splats and b not in low.splats and api in _WITH_SCALAR:
        a, b = b, a  # these commute
    if api == "Div" and _divides_a_splat(op, 0):
        _divide_a_splat(low, op)
        return
    element = element_of(b)
    if b not in low.splats or (api not in _WITH_SCALAR and api != "Sub") or type_name(element) not in _SCALARS:
        low.emit(api, low.result(op), low.of(a), low.of(b))
        return
    scalar = low.splats[b]
    if api == "Sub":
        is_integer = isinstance(element, ir.IntegerType)
        scalar = low.b.op(arith.subi, low.b.constant(element, 0), scalar) if is_integer else low.b.op(arith.negf, scalar)
        api = "Add"
    low.emit(_WITH_SCALAR[api], low.result(op), low.of(a), scalar)


def _divides_a_splat(user: ir.Operation, position: int) -> bool:
    return user.name == "arith.divf" and position == 0 and _is_splat(user.operands[0]) and not _is_splat(user.operands[1])


def _divide_a_splat(low: Lowering, op: ir.Operation) -> None:
    """The instruction reads the same 32 bytes of dividends again and again."""
    dividend, x = op.operands
    dst, x = low.result(op), low.of(x)
    block = low.buffer(_BLOCK // 4, low.b.f32_type, _constant_name(low.splats[dividend]))
    low.emit("Duplicate", block, low.splats[dividend])
    whole, rest = divmod(length_of(dst), _LANES)
    pieces = [(_LANES, i, min(_MOST, whole - i)) for i in range(0, whole, _MOST)] + [(rest, whole, 1)] * (rest > 0)
    for mask, first, repeat in pieces:
        lanes = (repeat - 1) * _LANES + mask
        low.emit(
            "DivStrided", low.view(dst, first * _LANES, lanes), block, low.view(x, first * _LANES, lanes),
            mask=mask, repeat=repeat, strides=(1, 0, 1, 8, 0, 8),
        )  # fmt: skip


@lowers(*_UNARY)
def unary(low: Lowering, op: ir.Operation) -> None:
    low.emit(_UNARY[op.name], low.result(op), low.of(op.operands[0]))


@lowers("arith.negf")
def negate(low: Lowering, op: ir.Operation) -> None:
    low.emit("Muls", low.result(op), low.of(op.operands[0]), low.b.f32(-1.0))


@lowers(*_CASTS)
def cast(low: Lowering, op: ir.Operation) -> None:
    x = low.of(op.operands[0])
    exact = op.name == "arith.sitofp" and element_name(x) in ("i16", "i8")
    low.emit("Cast", low.result(op), x, round_mode="CAST_NONE" if exact else _CASTS[op.name])


@lowers("arith.cmpf")
def compare(low: Lowering, op: ir.Operation) -> None:
    a, b = op.operands
    predicate = arith.CmpFPredicate(op.attributes["predicate"].value).name
    if predicate not in _COMPARE:
        low.refuse(op, f"comparison '{predicate.lower()}' on tiles has no counterpart in the Ascend C API")
    mode, inverted = _COMPARE[predicate]
    dst = low.result(op)
    raw = low.buffer(length_of(dst), element_of(dst), "opposite") if inverted else dst
    if b in low.splats:
        low.emit("CompareScalar", raw, low.of(a), low.splats[b], mode=mode)
    else:
        low.emit("Compare", raw, low.of(a), low.of(b), mode=mode)
    if inverted:
        low.emit("BitwiseNot", dst, raw)


@lowers("arith.select")
def select(low: Lowering, op: ir.Operation) -> None:
    mask, a, b = op.operands
    if not is_tile(mask):
        low.refuse(op, "'arith.select' of whole tiles by one condition is not lowered: use 'scf.if'")
    if b in low.splats and element_name(b) == "f32":
        low.emit("SelectScalar", low.result(op), low.of(mask), low.of(a), low.splats[b])
    else:
        low.emit("Select", low.result(op), low.of(mask), low.of(a), low.of(b))


# -- others -----------------------------------------------------------------------------------------------------------


@lowers("tile.iota")
def iota(low: Lowering, op: ir.Operation) -> None:
    ramp = low.result(op)
    write_ramp(low, ramp)
    if element_name(ramp) == "i32":
        low.ramps.setdefault((op.block, length_of(ramp)), ramp)


def write_ramp(low: Lowering, dst: ir.Value) -> None:
    """0, 1, 2, ... One repeat by the API, which on 910B is a serial chain beyond it; then what is there, moved up."""
    length, element = length_of(dst), element_of(dst)
    done = min(length, _REPEAT // element_bytes_of(dst))
    low.emit("CreateVecIndex", low.view(dst, 0, done))
    while done < length:
        step = min(done, length - done)
        by = low.b.constant(element, done)
        low.emit("Adds", low.view(dst, done, step), low.view(dst, 0, step), by)
        done += step


@lowers("tile.reduce")
def reduce(low: Lowering, op: ir.Operation) -> None:
    """Eight to one by 32-byte blocks until at most 64 elements a group are left, then one reduction a group; groups of
    eight are blocks themselves."""
    view = op.opview
    kind = {"add": "Sum", "max": "Max", "min": "Min"}[view.kind]
    hint = {"Sum": "partial_sums", "Max": "partial_maxima", "Min": "partial_minima"}[kind]
    current, group = low.of(view.x), view.group
    length = length_of(view.x)
    groups = length // group
    while group > _LANES:
        if group % 8 or length % _LANES:
            low.refuse(op, f"a reduction of groups of {view.group} is no tree of eights down to {_LANES}")
        partial = low.buffer(length // 8, low.b.f32_type, hint)
        _block_reduce(low, kind, partial, current)
        current, length, group = partial, length // 8, group // 8
    result = low.result(op)
    if group == 8 and length % _LANES == 0:
        _block_reduce(low, kind, result, current)
        return
    stride = max(1, group * 4 // _BLOCK)
    for first, repeat in _repeats(groups):
        low.emit(
            f"WholeReduce{kind}", low.view(result, first, repeat), low.view(current, first * group, repeat * group),
            mask=group, repeat=repeat, src_rep_stride=stride,
        )  # fmt: skip


def _block_reduce(low: Lowering, kind: str, result: ir.Value, x: ir.Value) -> None:
    for first, repeat in _repeats(length_of(x) // _LANES):
        blocks = low.view(result, first * _LANES // 8, repeat * _LANES // 8)
        low.emit(f"BlockReduce{kind}", blocks, low.view(x, first * _LANES, repeat * _LANES), repeat=repeat)


def _repeats(count: int) -> list[tuple[int, int]]:
    """First repeats and how many, such that each instruction has as many as it can, and its results start a block."""
    if count <= _MOST:
        return [(0, count)]
    most = _MOST // 8 * 8
    return [(first, min(most, count - first)) for first in range(0, count, most)]


@lowers("tile.extract")
def extract(low: Lowering, op: ir.Operation) -> None:
    scalar = low.emit("GetValue", low.of(op.operands[0]), op.operands[1], results=[op.results[0].type])
    scalar.operation.location = op.location
    op.results[0].replace_all_uses_with(scalar.scalar)
