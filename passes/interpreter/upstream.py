"""What `arith`, `math`, `tensor`, `memref` and `scf` mean on scalars and tiles."""

from __future__ import annotations

import numpy as np
from mlir import ir
from mlir.dialects import arith

from .core import FUNCTIONS, Core, NotInterpreted, dtype_of, element_of, flush, function, typed, unspecified


@function("arith.constant")
def _constant(_, op):
    attribute = op.attributes["value"]
    if isinstance(attribute, ir.DenseElementsAttr):
        shape = ir.RankedTensorType(op.results[0].type).shape
        return np.full(shape, attribute.get_splat_value().value, dtype_of(element_of(op)))
    return typed(op, attribute.value)


def _operand(x) -> np.ndarray:
    """As the vector unit reads it: denormal numbers are zero."""
    return flush(np.asarray(x, np.float32))


def _quotient(a, b):
    """Rounded towards zero, as the scalar unit does it."""
    if np.any(np.asarray(b) == 0):
        raise ValueError("division of an integer by 0")
    whole = np.abs(a) // np.abs(b)
    return np.where((np.asarray(a) < 0) != (np.asarray(b) < 0), -whole, whole)


def _remainder(a, b):
    return a - _quotient(a, b) * b


def _register_arithmetic() -> None:
    floats = {"addf": np.add, "subf": np.subtract, "mulf": np.multiply, "divf": np.divide}
    for name, ufunc in floats.items():
        FUNCTIONS[f"arith.{name}"] = lambda _, op, a, b, ufunc=ufunc: flush(ufunc(_operand(a), _operand(b)))
    integers = {
        "addi": np.add, "subi": np.subtract, "muli": np.multiply, "andi": np.bitwise_and, "ori": np.bitwise_or,
        "xori": np.bitwise_xor, "minsi": np.minimum, "maxsi": np.maximum, "shrsi": np.right_shift,
        "shli": np.left_shift, "divsi": _quotient, "remsi": _remainder,
    }  # fmt: skip
    for name, ufunc in integers.items():
        FUNCTIONS[f"arith.{name}"] = lambda _, op, a, b, ufunc=ufunc: typed(op, ufunc(a, b))
    unary = {
        "math.exp": np.exp, "math.log": np.log, "math.sqrt": np.sqrt, "math.absf": np.abs, "arith.negf": np.negative,
    }  # fmt: skip
    for name, ufunc in unary.items():
        FUNCTIONS[name] = lambda _, op, x, ufunc=ufunc: flush(ufunc(_operand(x)))
    for name, ufunc in {"arith.maximumf": np.maximum, "arith.minimumf": np.minimum}.items():
        FUNCTIONS[name] = lambda _, op, a, b, ufunc=ufunc: ufunc(a, b)
    for name, ufunc in {"roundeven": np.rint, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc}.items():
        FUNCTIONS[f"math.{name}"] = lambda _, op, x, ufunc=ufunc: ufunc(_operand(x))
    for name in ("arith.extf", "arith.truncf", "arith.sitofp", "arith.index_cast"):
        FUNCTIONS[name] = lambda _, op, x: typed(op, x)


_register_arithmetic()


@function("arith.fptosi")
def _fptosi(_, op, x):
    """Saturates, and takes NaN as 0."""
    limits = np.iinfo(dtype_of(element_of(op)))
    whole = np.clip(np.trunc(np.asarray(x, np.float64)), limits.min, limits.max)
    return typed(op, np.where(np.isnan(whole), 0, whole))


@function("math.round")
def _round(_, op, x):
    """Half away from zero."""
    return np.copysign(np.floor(np.abs(x) + np.float32(0.5), where=np.abs(x) < 2**23, out=np.abs(x)), x)


@function("arith.shrui")
def _shift_right_logical(_, op, a, b):
    unsigned = np.dtype(f"u{np.asarray(a).dtype.itemsize}")
    return typed(op, np.asarray(a).view(unsigned) >> np.asarray(b).astype(unsigned))


@function("arith.bitcast")
def _bitcast(_, op, x):
    return np.asarray(x).view(dtype_of(element_of(op)))


_COMPARISONS = {
    "EQ": np.equal, "GT": np.greater, "GE": np.greater_equal, "LT": np.less, "LE": np.less_equal, "NE": np.not_equal,
}  # fmt: skip


@function("arith.cmpf")
def _cmpf(_, op, a, b):
    predicate = arith.CmpFPredicate(op.attributes["predicate"].value).name
    if predicate[1:] not in _COMPARISONS:
        raise NotInterpreted(f"comparison '{predicate.lower()}'")
    a, b = _operand(a), _operand(b)
    unordered = np.isnan(a) | np.isnan(b)
    holds = _COMPARISONS[predicate[1:]](a, b)
    return holds | unordered if predicate[0] == "U" else holds & ~unordered


@function("arith.cmpi")
def _cmpi(_, op, a, b):
    predicate = arith.CmpIPredicate(op.attributes["predicate"].value).name.upper()
    name = predicate if predicate in ("EQ", "NE") else predicate[1:]
    if predicate[0] == "U":
        raise NotInterpreted(f"comparison '{predicate.lower()}'")
    return _COMPARISONS[name](a, b)


@function("arith.select")
def _select(_, op, condition, a, b):
    return np.where(condition, a, b)


@function("tensor.empty")
def _empty(_, op):
    tile = ir.RankedTensorType(op.results[0].type)
    return unspecified(tile.get_dim_size(0), dtype_of(tile.element_type))


@function("tensor.splat")
def _splat(_, op, scalar):
    return np.full(ir.RankedTensorType(op.results[0].type).shape, scalar)


@function("memref.dim")
def _dim(_, op, memory, i):
    return np.int64(memory.shape[int(i)])


@function("scf.for")
def _for(run: Core, op, first, last, step, *carried):
    values = list(carried)
    for i in range(int(first), int(last), int(step)):
        values = run.region(op.regions[0], [np.int64(i), *values])
    return tuple(values)


@function("scf.while")
def _while(run: Core, op, *carried):
    values = list(carried)
    while True:
        go_on, *values = run.region(op.regions[0], values)
        if not go_on:
            return tuple(values)
        values = run.region(op.regions[1], values)


@function("scf.if")
def _if(run: Core, op, condition):
    if condition:
        return tuple(run.region(op.regions[0]))
    return tuple(run.region(op.regions[1])) if len(op.regions[1].blocks) else ()
