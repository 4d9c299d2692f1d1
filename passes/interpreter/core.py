"""One core of a run, and the registry of what ops mean."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import ml_dtypes
import numpy as np
from mlir import ir

_DTYPES = {
    "f32": np.dtype(np.float32),
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
    "i16": np.dtype(np.int16),
    "i8": np.dtype(np.int8),
    "ui8": np.dtype(np.uint8),
    "i4": np.dtype(ml_dtypes.int4),
    "f8E4M3FN": np.dtype(ml_dtypes.float8_e4m3fn),
    "f8E5M2": np.dtype(ml_dtypes.float8_e5m2),
    "f8E8M0FNU": np.dtype(ml_dtypes.float8_e8m0fnu),
    "f4E2M1FN": np.dtype(ml_dtypes.float4_e2m1fn),
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


class Core:
    """One core: the value of every SSA value so far."""

    def __init__(
        self, values: dict[ir.Value, object], core: int, cores: int, workspaces: dict[ir.Operation, np.ndarray]
    ):
        self.values, self.core, self.cores, self.workspaces = values, core, cores, workspaces

    def block(self, block: ir.Block) -> list:
        """Runs a block; returns the operands of its terminator."""
        for view in block.operations:
            op = view.operation
            operands = [self.values[value] for value in op.operands]
            if op.name in ("scf.yield", "scf.condition", "func.return"):
                return operands
            meaning = FUNCTIONS.get(op.name)
            if meaning is None:
                raise NotInterpreted(f"'{op.name}'")
            with np.errstate(all="ignore"):
                results = meaning(self, op, *operands)
            results = results if isinstance(results, tuple) else (results,)
            self.values.update(zip(op.results, results))
        return []

    def region(self, region: ir.Region, arguments: Sequence = ()) -> list:
        block = region.blocks[0]
        self.values.update(zip(block.arguments, arguments))
        return self.block(block)


FUNCTIONS: dict[str, Callable] = {}


def function(*names: str) -> Callable:
    def register(meaning: Callable) -> Callable:
        FUNCTIONS.update(dict.fromkeys(names, meaning))
        return meaning

    return register


def flush(x: np.ndarray) -> np.ndarray:
    """Denormal float32 results are zero, with their sign."""
    return np.where(np.abs(x) < _SMALLEST_NORMAL, np.copysign(np.float32(0), x), x).astype(np.float32)


def element_of(op: ir.Operation) -> ir.Type:
    type_ = op.results[0].type
    return ir.ShapedType(type_).element_type if isinstance(type_, ir.ShapedType) else type_


def unspecified(size: int, dtype: np.dtype) -> np.ndarray:
    """Values that show if anything depends on them: NaN, or a strange integer."""
    byte = b"\xaa" if dtype.kind in "iu" else b"\xff"
    return np.frombuffer(byte * (size * dtype.itemsize), dtype).copy()


def typed(op: ir.Operation, value) -> np.ndarray:
    """A result in the dtype of the op's result."""
    return np.asarray(value).astype(dtype_of(element_of(op)))
