"""Whether a pipeline changed what kernels compute: each is interpreted before and after, on the same generated arrays.

All of a kernel's arguments are arrays of global memory or scalars, and all arrays are compared afterwards, bit for bit
but for the payloads of NaN. The generated values have many ties and some NaN, infinities and denormal numbers. Shapes
are those of the kernel's launch, with 3 rows if that will do. Where the module has none, a leading dimension that is
not known is 3 rows; where the kernel has arguments of type index, these and every unknown dimension are a length with a
tail.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from mlir import ir

from .builder import name_of
from .diagnostics import Diagnostic, resolve
from .interpreter import NotInterpreted, cores, dtype_of
from .interpreter.core import Core
from .lower_to_tile import KERNEL, LAUNCH
from .lowerings.site import ROWS_OF

_ROWS = 3
_LENGTH = 9000 + 17
_CORES = 2
_FAILURES = (IndexError, ValueError, RuntimeError)  # of a kernel that is wrong, or is given what it is not meant for
_SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40)


def differences(before: ir.Module, after: ir.Module, seed: int = 0) -> list[Diagnostic]:
    """An error for each kernel that computes something else, and a warning for each that could not be compared."""
    others = _kernels(after)
    launched = _launched(before)
    found = []
    for name, kernel in _kernels(before).items():
        position = resolve(kernel.location)

        def say(severity: str, message: str) -> None:
            found.append(Diagnostic(severity, f"'{name}' {message}", position))

        if name not in others:
            say("warning", "is not compared: the pipeline leaves no kernel of that name")
            continue
        try:
            old, given = _run_somehow(kernel, seed, launched.get(name))
        except (NotInterpreted, *_FAILURES) as error:
            say("warning", f"is not compared: {error}")
            continue
        try:
            new = _run(others[name], seed, given)
        except NotInterpreted as error:
            say("warning", f"is not compared: {error}")
            continue
        except _FAILURES as error:
            say("error", f"fails after the pipeline: {error} (seed {seed})")
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


@dataclass(frozen=True)
class _Given:
    """What a kernel's arguments are: the leading dimension of each, how many rows are dealt out, to how many cores, and
    how long any other unknown dimension is."""

    leading: tuple[int, ...]
    rows: int
    cores: int
    unknown: int


def _launched(module: ir.Module) -> dict[str, tuple[int, ...]]:
    """The leading dimensions of the arguments of each kernel that the module launches."""
    found: dict[str, tuple[int, ...]] = {}

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "func.call" and LAUNCH in op.attributes:
            found[op.opview.callee.value] = tuple(map(_leading, op.operands))
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return found


def _leading(argument: ir.Value) -> int:
    """Of an argument of a launch: the buffer behind the cast that hides it."""
    if not isinstance(argument.owner, ir.Block) and argument.owner.name == "memref.cast":
        argument = argument.owner.operands[0]
    shape = ir.ShapedType(argument.type).shape
    return shape[0] if shape and shape[0] >= 0 else _ROWS


def _attempts(kernel: ir.Operation, launched: tuple[int, ...] | None) -> Iterator[_Given]:
    """What to give a kernel, the least first."""
    arguments = list(kernel.regions[0].blocks[0].arguments)
    number = kernel.attributes[ROWS_OF].value if ROWS_OF in kernel.attributes else 0
    together = _group(kernel)
    if launched is not None:
        rows = launched[number]
        few = tuple(min(n, _ROWS) if n == rows else n for n in launched)
        for leading in dict.fromkeys((few, launched)):
            yield _Given(leading, leading[number], together, _ROWS)
        return
    if not any(isinstance(argument.type, ir.IndexType) for argument in arguments):
        yield _Given((_ROWS,) * len(arguments), _ROWS, together, _ROWS)
    yield _Given((_LENGTH,) * len(arguments), _LENGTH, together, _LENGTH)


def _group(kernel: ir.Operation) -> int:
    """How many cores to run: two, or all that share a row."""
    found = [_CORES]

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "tile.block_rows":
            found.append(op.opview.parts or 1)
        return ir.WalkResult.ADVANCE

    kernel.walk(visit)
    return max(found)


def _run_somehow(kernel: ir.Operation, seed: int, launched: tuple[int, ...] | None) -> tuple[list[np.ndarray], _Given]:
    """The values of all arguments after a run, and what they were; the first attempt that is not too short."""
    *attempts, last = _attempts(kernel, launched)
    for given in attempts:
        try:
            return _run(kernel, seed, given), given
        except IndexError:
            pass
    return _run(kernel, seed, last), last


def _run(kernel: ir.Operation, seed: int, given: _Given) -> list[np.ndarray]:
    block = kernel.regions[0].blocks[0]
    # What one argument draws does not change the others.
    random = np.random.default_rng(seed).spawn(len(block.arguments))
    drawn = zip(block.arguments, given.leading, random, strict=True)
    values = [_generate(argument.type, leading, given.unknown, own) for argument, leading, own in drawn]
    scratch = cores.workspaces(kernel, given.rows, given.cores)
    runs = [Core(dict(zip(block.arguments, values)), core, given.cores, scratch) for core in range(given.cores)]
    cores.run_together(runs, lambda core: core.block(block))
    return values


def _generate(type_: ir.Type, leading: int, unknown: int, random: np.random.Generator) -> np.ndarray:
    if isinstance(type_, ir.IndexType):
        return np.int64(unknown)
    if not isinstance(type_, ir.MemRefType):
        return _values((), dtype_of(type_), random)[()]
    sizes = [leading if i == 0 else unknown for i in range(type_.rank)]
    shape = [size if type_.is_dynamic_dim(i) else type_.get_dim_size(i) for i, size in enumerate(sizes)]
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
