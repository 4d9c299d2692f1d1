"""Runs kernels of the `tile` dialect on NumPy arrays: the meaning of level 2, without a compiler.

    outputs = run_kernel(module, "filter", [logits, k], cores=3)

Every tile op and the upstream ops that kernels are made of have one small function each. Floats are computed in float32
with denormal results flushed to zero, integers wrap, a reduction is a balanced tree over neighbours; so a kernel gives
the same bits here as its Ascend C text on the twin. Whatever has no function raises `NotInterpreted`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import ml_dtypes
import numpy as np
from mlir import ir
from mlir.dialects import arith

_DTYPES = {
    "f32": np.dtype(np.float32),
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "i32": np.dtype(np.int32),
    "i1": np.dtype(np.bool_),
    "index": np.dtype(np.int64),
}
_SMALLEST_NORMAL = np.finfo(np.float32).tiny


class NotInterpreted(Exception):
    """An op that the interpreter has no function for."""


def dtype_of(element: ir.Type) -> np.dtype:
    """The NumPy dtype of a scalar or element type."""
    try:
        return _DTYPES[str(element)]
    except KeyError:
        raise NotInterpreted(f"no values of type {element}") from None


def run_kernel(module: ir.Module, name: str, inputs: Sequence[np.ndarray], cores: int = 1) -> list[np.ndarray]:
    """Runs a kernel lowered to tiles, one core after the other.

    Args:
      module: holds the kernel, a function over memrefs in memory space "gm".
      name: the kernel's.
      inputs: arrays for its leading arguments; the leading dimension of the others is that of the first.
      cores: among how many the rows are shared.

    Returns: the arrays of the other arguments, as the kernel left them. Bytes that it did not write are 0xFF.
    """
    kernel = next(op for op in module.body.operations if op.operation.attributes["sym_name"].value == name)
    block = kernel.regions[0].blocks[0]
    arrays = [np.ascontiguousarray(x) for x in inputs]
    rows = arrays[0].shape[0]
    outputs = []
    for argument in list(block.arguments)[len(arrays) :]:
        memory = ir.MemRefType(argument.type)
        shape = [rows if memory.is_dynamic_dim(i) else memory.get_dim_size(i) for i in range(memory.rank)]
        output = np.empty(shape, dtype_of(memory.element_type))
        output.view(np.uint8).fill(0xFF)
        outputs.append(output)
    for core in range(cores):
        _Interpreter(dict(zip(block.arguments, arrays + outputs)), core, cores).block(block)
    return outputs


class _Interpreter:
    """One core: the value of every SSA value so far."""

    def __init__(self, values: dict[ir.Value, object], core: int, cores: int):
        self.values, self.core, self.cores = values, core, cores

    def block(self, block: ir.Block) -> list:
        """Runs a block; returns the operands of its terminator."""
        for view in block.operations:
            op = view.operation
            operands = [self.values[value] for value in op.operands]
            if op.name in ("scf.yield", "scf.condition", "func.return"):
                return operands
            function = _FUNCTIONS.get(op.name)
            if function is None:
                raise NotInterpreted(f"'{op.name}'")
            with np.errstate(all="ignore"):
                results = function(self, op, *operands)
            results = results if isinstance(results, tuple) else (results,)
            self.values.update(zip(op.results, results))
        return []

    def region(self, region: ir.Region, arguments: Sequence = ()) -> list:
        block = region.blocks[0]
        self.values.update(zip(block.arguments, arguments))
        return self.block(block)


_FUNCTIONS: dict[str, Callable] = {}


def _function(*names: str) -> Callable:
    def register(function: Callable) -> Callable:
        _FUNCTIONS.update(dict.fromkeys(names, function))
        return function

    return register


def _flush(x: np.ndarray) -> np.ndarray:
    """Denormal float32 results are zero, with their sign."""
    return np.where(np.abs(x) < _SMALLEST_NORMAL, np.copysign(np.float32(0), x), x).astype(np.float32)


def _element(op: ir.Operation) -> ir.Type:
    type_ = op.results[0].type
    return ir.ShapedType(type_).element_type if isinstance(type_, ir.ShapedType) else type_


def _typed(op: ir.Operation, value) -> np.ndarray:
    """A result in the dtype of the op's result."""
    return np.asarray(value).astype(dtype_of(_element(op)))


# -- upstream ---------------------------------------------------------------------------------------------------------


@_function("arith.constant")
def _constant(_, op):
    attribute = op.attributes["value"]
    if isinstance(attribute, ir.DenseElementsAttr):
        shape = ir.RankedTensorType(op.results[0].type).shape
        return np.full(shape, attribute.get_splat_value().value, dtype_of(_element(op)))
    return _typed(op, attribute.value)


def _register_arithmetic() -> None:
    floats = {"addf": np.add, "subf": np.subtract, "mulf": np.multiply, "divf": np.divide}
    for name, ufunc in floats.items():
        _FUNCTIONS[f"arith.{name}"] = lambda _, op, a, b, ufunc=ufunc: _flush(ufunc(a, b, dtype=np.float32))
    integers = {
        "addi": np.add, "subi": np.subtract, "muli": np.multiply, "andi": np.bitwise_and, "ori": np.bitwise_or,
        "xori": np.bitwise_xor, "minsi": np.minimum, "maxsi": np.maximum, "shrsi": np.right_shift, "shli": np.left_shift,
    }  # fmt: skip
    for name, ufunc in integers.items():
        _FUNCTIONS[f"arith.{name}"] = lambda _, op, a, b, ufunc=ufunc: _typed(op, ufunc(a, b))
    unary = {"math.exp": np.exp, "math.log": np.log, "math.sqrt": np.sqrt, "math.absf": np.abs, "arith.negf": np.negative}
    for name, ufunc in unary.items():
        _FUNCTIONS[name] = lambda _, op, x, ufunc=ufunc: _flush(ufunc(x, dtype=np.float32))
    for name, ufunc in {"arith.maximumf": np.maximum, "arith.minimumf": np.minimum}.items():
        _FUNCTIONS[name] = lambda _, op, a, b, ufunc=ufunc: ufunc(a, b)
    for name in ("arith.extf", "arith.truncf", "arith.sitofp", "arith.index_cast"):
        _FUNCTIONS[name] = lambda _, op, x: _typed(op, x)


_register_arithmetic()


@_function("arith.fptosi")
def _fptosi(_, op, x):
    return _typed(op, np.trunc(x))


@_function("arith.bitcast")
def _bitcast(_, op, x):
    return np.asarray(x).view(dtype_of(_element(op)))


_COMPARISONS = {"EQ": np.equal, "GT": np.greater, "GE": np.greater_equal, "LT": np.less, "LE": np.less_equal, "NE": np.not_equal}


@_function("arith.cmpf")
def _cmpf(_, op, a, b):
    predicate = arith.CmpFPredicate(op.attributes["predicate"].value).name
    if predicate[1:] not in _COMPARISONS:
        raise NotInterpreted(f"comparison '{predicate.lower()}'")
    unordered = np.isnan(a) | np.isnan(b)
    holds = _COMPARISONS[predicate[1:]](a, b)
    return holds | unordered if predicate[0] == "U" else holds & ~unordered


@_function("arith.cmpi")
def _cmpi(_, op, a, b):
    predicate = arith.CmpIPredicate(op.attributes["predicate"].value).name.upper()
    name = predicate if predicate in ("EQ", "NE") else predicate[1:]
    if predicate[0] == "U":
        raise NotInterpreted(f"comparison '{predicate.lower()}'")
    return _COMPARISONS[name](a, b)


@_function("arith.select")
def _select(_, op, condition, a, b):
    return np.where(condition, a, b)


@_function("tensor.splat")
def _splat(_, op, scalar):
    return np.full(ir.RankedTensorType(op.results[0].type).shape, scalar)


@_function("memref.dim")
def _dim(_, op, memory, i):
    return np.int64(memory.shape[int(i)])


@_function("scf.for")
def _for(run: _Interpreter, op, first, last, step, *carried):
    values = list(carried)
    for i in range(int(first), int(last), int(step)):
        values = run.region(op.regions[0], [np.int64(i), *values])
    return tuple(values)


@_function("scf.while")
def _while(run: _Interpreter, op, *carried):
    values = list(carried)
    while True:
        go_on, *values = run.region(op.regions[0], values)
        if not go_on:
            return tuple(values)
        values = run.region(op.regions[1], values)


@_function("scf.if")
def _if(run: _Interpreter, op, condition):
    if condition:
        return tuple(run.region(op.regions[0]))
    return tuple(run.region(op.regions[1])) if len(op.regions[1].blocks) else ()


# -- tiles ------------------------------------------------------------------------------------------------------------


@_function("tile.block_rows")
def _block_rows(run: _Interpreter, op, rows):
    share, rest = divmod(int(rows), run.cores)
    first = run.core * share + min(run.core, rest)
    return np.int64(first), np.int64(first + share + (run.core < rest))


@_function("tile.load")
def _load(_, op, memory, offset, count):
    tile = ir.RankedTensorType(op.results[0].type)
    length, view = tile.get_dim_size(0), op.opview
    flat = memory.reshape(-1)
    offset, count = int(offset), int(count)
    if not 0 <= count <= length or offset < 0 or offset + count > flat.size:
        raise IndexError(f"tile.load of {count} elements from {offset}: the memory has {flat.size}, the tile {length}")
    # Lanes that are not padded are unspecified: a value that shows if anything depends on it.
    fill = view.pad if view.pad is not None else (np.nan if isinstance(tile.element_type, ir.FloatType) else -0x55555556)
    value = np.full(length, fill, dtype_of(tile.element_type))
    value[:count] = flat[offset : offset + count]
    return value


@_function("tile.store")
def _store(_, op, value, memory, offset, count):
    flat = memory.reshape(-1)
    offset, count = int(offset), int(count)
    if not 0 <= count <= value.size or offset < 0 or offset + count > flat.size:
        raise IndexError(f"tile.store of {count} elements to {offset}: the memory has {flat.size}, the tile {value.size}")
    flat[offset : offset + count] = value[:count]
    return ()


@_function("tile.reduce")
def _reduce(_, op, x):
    view = op.opview
    groups = x.reshape(-1, view.group)
    if view.kind == "max":
        return groups.max(axis=1)
    while groups.shape[1] > 1:  # neighbours first: the tree of eights of the hardware is this one
        if groups.shape[1] % 2:
            raise NotInterpreted(f"a sum over groups of {view.group}, which is no power of two")
        groups = _flush(groups[:, ::2] + groups[:, 1::2])
    return groups[:, 0]


@_function("tile.extract")
def _extract(_, op, x, position):
    if not 0 <= position < x.size:
        raise IndexError(f"tile.extract of element {position}: the tile has {x.size}")
    return x[int(position)]


@_function("tile.iota")
def _iota(_, op):
    tile = ir.RankedTensorType(op.results[0].type)
    return np.arange(tile.get_dim_size(0)).astype(dtype_of(tile.element_type))


@_function("tile.compress")
def _compress(_, op, x, mask):
    packed = np.full_like(x, np.nan if x.dtype.kind == "f" else -1)
    kept = x[mask]
    packed[: kept.size] = kept
    return packed, np.int64(kept.size)
