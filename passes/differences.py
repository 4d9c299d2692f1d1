"""Whether a pipeline changed what kernels compute: each is interpreted before and after, on the same generated arrays.

All of a kernel's arguments are arrays of global memory or scalars, and all arrays are compared afterwards, bit for bit
but for the payloads of NaN. The generated values have many ties and some NaN, infinities and denormal numbers. A
leading dimension that is not known is 3 rows; where the kernel has arguments of type index, these and every unknown
dimension are a length with a tail.
"""

from __future__ import annotations

import numpy as np
from mlir import ir

from .builder import name_of
from .diagnostics import Diagnostic, resolve
from .interpreter import NotInterpreted, cores, dtype_of
from .interpreter.core import Core
from .lower_to_tile import KERNEL

_ROWS = 3
_LENGTH = 9000 + 17
_CORES = 2
_SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40)


def differences(before: ir.Module, after: ir.Module, seed: int = 0) -> list[Diagnostic]:
    """An error for each kernel that computes something else, and a warning for each that could not be compared."""
    others = _kernels(after)
    found = []
    for name, kernel in _kernels(before).items():
        position = resolve(kernel.location)

        def say(severity: str, message: str) -> None:
            found.append(Diagnostic(severity, f"'{name}' {message}", position))

        if name not in others:
            say("warning", "is not compared: the pipeline leaves no kernel of that name")
            continue
        try:
            old, unknown = _run_somehow(kernel, seed)
            new = _run(others[name], seed, unknown)
        except (NotInterpreted, IndexError) as error:
            say("warning", f"is not compared: {error}")
            continue
        for number, argument in enumerate(kernel.regions[0].blocks[0].arguments):
            difference = _first_difference(old[number], new[number])
            if difference is not None:
                what = name_of(argument) or f"argument {number}"
                say("error", f"computes something else after the pipeline: {what} {difference} (seed {seed})")
    return found


def _kernels(module: ir.Module) -> dict[str, ir.Operation]:
    """The kernels over global memory."""
    return {
        op.operation.attributes["sym_name"].value: op.operation
        for op in module.body.operations
        if KERNEL in op.operation.attributes
        and not any(isinstance(a.type, ir.RankedTensorType) for a in op.regions[0].blocks[0].arguments)
    }


def _run_somehow(kernel: ir.Operation, seed: int) -> tuple[list[np.ndarray], int]:
    """The values of all arguments after a run, and how long an unknown dimension was."""
    if not any(isinstance(argument.type, ir.IndexType) for argument in kernel.regions[0].blocks[0].arguments):
        try:
            return _run(kernel, seed, _ROWS), _ROWS
        except IndexError:
            pass
    return _run(kernel, seed, _LENGTH), _LENGTH


def _run(kernel: ir.Operation, seed: int, unknown: int) -> list[np.ndarray]:
    block = kernel.regions[0].blocks[0]
    # What one argument draws does not change the others.
    random = np.random.default_rng(seed).spawn(len(block.arguments))
    values = [_generate(argument.type, unknown, own) for argument, own in zip(block.arguments, random)]
    scratch = cores.workspaces(kernel, _ROWS, _CORES)
    runs = [Core(dict(zip(block.arguments, values)), core, _CORES, scratch) for core in range(_CORES)]
    cores.run_together(runs, lambda core: core.block(block))
    return values


def _generate(type_: ir.Type, unknown: int, random: np.random.Generator) -> np.ndarray:
    if isinstance(type_, ir.IndexType):
        return np.int64(unknown)
    if not isinstance(type_, ir.MemRefType):
        return _values((), dtype_of(type_), random)[()]
    shape = [unknown if type_.is_dynamic_dim(i) else type_.get_dim_size(i) for i in range(type_.rank)]
    return _values(shape, dtype_of(type_.element_type), random)


def _values(shape, dtype: np.dtype, random: np.random.Generator) -> np.ndarray:
    if dtype.kind in "iub":
        return random.integers(0, 2 if dtype.kind == "b" else 8, shape).astype(dtype)
    ties = np.round(random.normal(0, 4, shape) * 4) / 4
    special = random.choice(_SPECIAL, shape)
    return np.where(random.random(shape) < 0.02, special, ties).astype(dtype)


def _first_difference(old: np.ndarray, new: np.ndarray) -> str | None:
    if np.shape(old) != np.shape(new):
        return f"has shape {list(np.shape(old))} before, {list(np.shape(new))} after"
    same = _bits(old) == _bits(new)
    if np.asarray(old).dtype.kind not in "iub":
        same |= np.isnan(np.asarray(old, np.float32)) & np.isnan(np.asarray(new, np.float32))
    if same.all():
        return None
    place = tuple(int(i) for i in np.argwhere(~same)[0])
    return f"differs in {(~same).sum()} elements, first at {list(place)}: {old[place]} before, {new[place]} after"


def _bits(x: np.ndarray) -> np.ndarray:
    x = np.ascontiguousarray(x)
    return x.view(f"u{x.dtype.itemsize}")
