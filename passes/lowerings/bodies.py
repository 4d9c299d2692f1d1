"""The scalar operations of elementwise work, on tiles: which of them kernels compute, and how.

Floats are computed in float32 whatever their dtype, and rounded to the dtype after every operation, as XLA does on a
CPU; integers in int32; booleans are masks. Only a last cast makes int8, or what is written of a boolean.
"""

from __future__ import annotations

from collections.abc import Callable

from mlir import ir
from mlir.dialects import arith, math

from jascend.dialect import TILE

from ..builder import Builder, tile_type
from .functions import FUNCTIONS
from .integers import INTEGER_FUNCTIONS

ROUNDED = ("bf16", "f16")
_FLOATS = ("f32", *ROUNDED)
_COMPUTED = (*_FLOATS, "i32", "i1")
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
    "math.roundeven": math.roundeven,
    "math.round": math.round,
    "math.floor": math.floor,
    "math.ceil": math.ceil,
    "math.trunc": math.trunc,
}
_INT_OPS = {
    "arith.addi": arith.addi,
    "arith.subi": arith.subi,
    "arith.muli": arith.muli,
    "arith.maxsi": arith.maxsi,
    "arith.minsi": arith.minsi,
}
_BIT_OPS = {"arith.andi": arith.andi, "arith.ori": arith.ori, "arith.xori": arith.xori}
_SHIFTS = {"arith.shli": arith.shli, "arith.shrsi": arith.shrsi, "arith.shrui": arith.shrui}
_CASTS = {
    "arith.extf": (_FLOATS, _FLOATS), "arith.truncf": (_FLOATS, _FLOATS), "arith.sitofp": (("i32", "i8"), _FLOATS),
    "arith.fptosi": (_FLOATS, ("i32", "i8")), "arith.uitofp": (("i1",), _FLOATS), "arith.extui": (("i1",), ("i32",
    "i8")),
    "arith.extsi": (("i8",), ("i32",)), "arith.trunci": (("i32",), ("i8",)),
}  # fmt: skip
_OTHERS = (
    "math.rsqrt", "arith.bitcast", "arith.constant", "linalg.index", "arith.index_cast", "arith.cmpf", "arith.cmpi",
    "arith.select", "linalg.yield",
)  # fmt: skip
_ALL = frozenset((*_FLOAT_OPS, *FUNCTIONS, *_INT_OPS, *INTEGER_FUNCTIONS, *_BIT_OPS, *_SHIFTS, *_CASTS, *_OTHERS))
# Comparisons of floats that hardware makes as such, and those that are one or the other of two.
_ORDERS = ("OEQ", "OGT", "OGE", "OLT", "OLE", "UNE", "UGT", "UGE", "ULT", "ULE")
_BY_TWO = {"ONE": ("OLT", "OGT")}
# Of i32, hardware compares for equality only: a < b where the larger of the two is not a. (swapped, of which,
# predicate)
_OF_MASKS = ("eq", "ne")
_BY_MAXIMUM = {"slt": (0, "ne"), "sge": (0, "eq"), "sgt": (1, "ne"), "sle": (1, "eq")}
_LEAST = -(1 << 31)
_POWERS = (16, 8, 4, 2, 1)  # that shifts of a word are made of


def compares(op: ir.Operation) -> bool:
    """Whether an op of a body compares on tiles, which takes 256 bytes at least."""
    by_element = op.name in _SHIFTS and not _is_number(op.operands[1])
    return by_element or op.name in ("arith.cmpf", "arith.cmpi", *FUNCTIONS, *INTEGER_FUNCTIONS)


def refusal(op: ir.Operation) -> str | None:
    """Why an op cannot stand in the body of elementwise work; None if it can."""
    if op.name not in _ALL:
        return f"kernels do not compute '{op.name}'"
    if op.name == "linalg.yield":
        return None
    if op.name == "linalg.index":
        casts = all(use.owner.name == "arith.index_cast" for use in op.results[0].uses)
        return None if casts else "kernels compute with positions as int32 only"
    operands, results = ([str(value.type) for value in values] for values in (op.operands, op.results))
    if op.name == "arith.index_cast":
        return None if results == ["i32"] else f"positions as {results[0]}; kernels compute with int32"
    if op.name in _CASTS:
        sources, targets = _CASTS[op.name]
        return (
            None if operands[0] in sources and results[0] in targets else f"a cast from {operands[0]} to {results[0]}"
        )
    if op.name in _BIT_OPS:
        return None if results[0] in ("i1", "i32") else f"kernels do not compute '{op.name}' of {results[0]}"
    if op.name == "arith.cmpi" and operands[0] == "i1" and _predicate(op) in _OF_MASKS:
        return None
    if op.name == "arith.bitcast":
        other = next((kind for kind in (*operands, *results) if kind not in ("f32", "i32")), None)
        return None if other is None else f"bits of {other} as another type"
    wrong = next((kind for kind in (*operands, *results) if kind not in _COMPUTED), None)
    if wrong is None and op.name in (*_INT_OPS, *INTEGER_FUNCTIONS, *_SHIFTS, "arith.cmpi"):
        wrong = next((kind for kind in operands if kind != "i32"), None)
    return None if wrong is None else f"kernels do not compute '{op.name}' of {wrong}"


def _is_number(value: ir.Value) -> bool:
    return not isinstance(value.owner, ir.Block) and value.owner.name == "arith.constant"


def apply(b: Builder, op: ir.Operation, operands: list[ir.Value]) -> ir.Value:
    """One op of a body on tiles: float32, int32, or masks."""
    element = op.results[0].type
    name = _name_of_operation(op)
    if op.name in _FLOAT_OPS:
        return rounded(b, _FLOAT_OPS[op.name](*operands, loc=b.loc(name)), element, name)
    if op.name in FUNCTIONS:
        return rounded(b, FUNCTIONS[op.name](b, *operands), element, name)
    if op.name == "math.rsqrt":
        root = math.sqrt(*operands, loc=b.loc("root"))
        return rounded(b, b.op(arith.divf, b.splat(b.f32(1.0), _lanes(root)), root, name=name), element, name)
    if op.name in _SHIFTS and not _is_number(op.operands[1]):
        return _shifted(b, _SHIFTS[op.name], *operands, name)
    if op.name in (*_INT_OPS, *_BIT_OPS, *_SHIFTS):
        return (_INT_OPS | _BIT_OPS | _SHIFTS)[op.name](*operands, loc=b.loc(name))
    if op.name in INTEGER_FUNCTIONS:
        return INTEGER_FUNCTIONS[op.name](b, *operands)
    if op.name == "arith.bitcast":
        tile = tile_type(_lanes(operands[0]), element)
        return operands[0] if operands[0].type == tile else b.op(arith.bitcast, tile, operands[0], name=name)
    if op.name == "arith.extf":
        return operands[0]
    if op.name == "arith.truncf":
        return rounded(b, operands[0], element, name)
    if op.name == "arith.sitofp":
        return rounded(b, float_of_int(b, operands[0], name), element, name)
    if op.name == "arith.fptosi" and str(element) == "i8":
        return byte_of_float(b, b.op(math.trunc, operands[0], name="whole"))
    if op.name == "arith.trunci":  # the lower byte with its sign
        upper = b.op(arith.shli, operands[0], b.splat(b.i32(24), _lanes(operands[0])), name="lower_byte")
        lower = b.op(arith.shrsi, upper, b.splat(b.i32(24), _lanes(upper)), name="lower_byte")
        return byte_of_float(b, float_of_int(b, lower, name))
    if op.name == "arith.extsi":
        number = float_of_int(b, operands[0], name)
        return b.op(arith.fptosi, tile_type(_lanes(number), b.i32_type), number, name=name)
    if op.name == "arith.fptosi":
        return b.op(arith.fptosi, tile_type(_lanes(operands[0]), b.i32_type), operands[0], name=name)
    if op.name == "arith.uitofp":
        return one_or_zero(b, operands[0], name)
    if op.name == "arith.extui" and str(element) == "i8":
        return byte_of_mask(b, operands[0])
    if op.name == "arith.extui":
        ones = one_or_zero(b, operands[0], name)
        return b.op(arith.fptosi, tile_type(_lanes(ones), b.i32_type), ones, name=name)
    if op.name == "arith.cmpf":
        return _compared_floats(b, arith.CmpFPredicate(op.attributes["predicate"].value).name, *operands, name)
    if op.name == "arith.cmpi" and str(op.operands[0].type) == "i1":
        differs = b.op(arith.xori, *operands, name=name)
        return differs if _predicate(op) == "ne" else _opposite(b, differs, name)
    if op.name == "arith.cmpi":
        return _compared(b, _predicate(op), *operands, name)
    return _selected(b, *operands, name)


def byte_of_float(b: Builder, x: ir.Value) -> ir.Value:
    """Whole numbers as int8."""
    return b.build(
        TILE.classes["Quantize"], x, results=[tile_type(_lanes(x), ir.IntegerType.get_signless(8))], name="narrow"
    ).value


def byte_of_mask(b: Builder, mask: ir.Value) -> ir.Value:
    """A mask as it lies in memory: a byte an element, 1 where it holds."""
    return byte_of_float(b, one_or_zero(b, mask, "one_or_zero"))


def rounded(b: Builder, tile: ir.Value, element: ir.Type, name: str | None) -> ir.Value:
    """A float32 tile rounded to the values of a narrower dtype."""
    if str(element) not in ROUNDED:
        return tile
    narrow = b.op(arith.truncf, tile_type(_lanes(tile), element), tile, name=f"{name}_{element}")
    return b.op(arith.extf, tile_type(_lanes(tile), b.f32_type), narrow, name=name)


def one_or_zero(b: Builder, mask: ir.Value, name: str | None) -> ir.Value:
    """A mask as float32: 1 where it holds."""
    ones = b.splat(b.f32(1.0), _lanes(mask), "ones")
    return b.select(mask, ones, b.splat(b.f32(0.0), _lanes(mask)), name)


def float_of_int(b: Builder, x: ir.Value, name: str | None) -> ir.Value:
    """Int32 or int8 as float32."""
    lanes = _lanes(x)
    if (
        str(ir.ShapedType(x.type).element_type) == "i8"
    ):  # there is no cast of 8 bits but to float16, where they are exact
        x = b.op(arith.sitofp, tile_type(lanes, ir.F16Type.get()), x, name=f"{name}_f16")
        return b.op(arith.extf, tile_type(lanes, b.f32_type), x, name=name)
    return b.op(arith.sitofp, tile_type(lanes, b.f32_type), x, name=name)


def _opposite(b: Builder, mask: ir.Value, name: str) -> ir.Value:
    true = b.constant(ir.IntegerType.get_signless(1), True)
    return b.op(arith.xori, mask, b.splat(true, _lanes(mask)), name=name)


def _compared_floats(b: Builder, predicate: str, x: ir.Value, y: ir.Value, name: str) -> ir.Value:
    if predicate in ("ORD", "UNO"):  # what is no number is not equal to itself
        of_each, both = ("OEQ", arith.andi) if predicate == "ORD" else ("UNE", arith.ori)
        first = b.cmpf(of_each, x, x, name)
        return first if x == y else b.op(both, first, b.cmpf(of_each, y, y), name=name)
    if predicate == "UEQ":
        return _opposite(b, _compared_floats(b, "ONE", x, y, name), name)
    if predicate not in _BY_TWO:
        return b.cmpf(predicate, x, y, name)
    first, second = _BY_TWO[predicate]
    return b.op(arith.ori, b.cmpf(first, x, y), b.cmpf(second, x, y), name=name)


def _compared(b: Builder, predicate: str, x: ir.Value, y: ir.Value, name: str) -> ir.Value:
    if predicate.startswith("u"):  # the order without a sign is that of numbers moved down by half of what there is
        least = b.splat(b.i32(_LEAST), _lanes(x))
        x, y = (b.op(arith.addi, each, least, name="moved_down") for each in (x, y))
        predicate = f"s{predicate[1:]}"
    if predicate in _BY_MAXIMUM:
        which, predicate = _BY_MAXIMUM[predicate]
        own = (x, y)[which]
        x, y = b.op(arith.maxsi, x, y, name="larger"), own
    return b.cmpi(predicate, x, y, name)


def _selected(b: Builder, mask: ir.Value, x: ir.Value, y: ir.Value, name: str) -> ir.Value:
    if str(ir.ShapedType(x.type).element_type) == "i1":
        first = b.op(arith.andi, mask, x, name=name)
        return b.op(arith.ori, first, b.op(arith.andi, _opposite(b, mask, "others"), y, name=name), name=name)
    if str(ir.ShapedType(x.type).element_type) != "i32":
        return b.select(mask, x, y, name)
    floats, ints = tile_type(_lanes(x), b.f32_type), x.type  # bits are selected as they are
    chosen = b.select(mask, *(b.op(arith.bitcast, floats, tile) for tile in (x, y)), name)
    return b.op(arith.bitcast, ints, chosen, name=name)


def _shifted(b: Builder, shift: Callable, x: ir.Value, amount: ir.Value, name: str) -> ir.Value:
    """Each element by an amount of its own, from 0 to 31, though vector units shift all alike: by the powers of two
    that the amount is the sum of."""
    zeros = b.splat(b.i32(0), _lanes(x))
    for power in _POWERS:
        by = b.splat(b.i32(power), _lanes(x))
        stays = b.cmpi("eq", b.op(arith.andi, amount, by, name="part"), zeros, "stays")
        x = _selected(b, stays, x, b.op(shift, x, by, name=name), name)
    return x


def _predicate(op: ir.Operation) -> str:
    return arith.CmpIPredicate(op.attributes["predicate"].value).name


def _lanes(tile: ir.Value) -> int:
    return ir.RankedTensorType(tile.type).get_dim_size(0)


def _name_of_operation(op: ir.Operation) -> str:
    return {
        "addf": "sum", "subf": "difference", "mulf": "scaled", "divf": "scaled", "cmpf": "mask", "cmpi": "mask",
        "select": "chosen", "sitofp": "float", "fptosi": "whole", "uitofp": "as_float", "extui": "as_int",
    }.get(op.name.partition(".")[2], op.name.partition(".")[2])  # fmt: skip
