"""How a compiled graph runs: launches, library calls, reshapes and parts in order,
as plain data that outlives the IR."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import ml_dtypes
import numpy as np
from mlir import ir

from jascend.dialect.ascend import shaped


@dataclass(frozen=True)
class TensorType:
    shape: tuple[int, ...]
    dtype: str

    def at(self, sized: Callable[[tuple[int, ...]], tuple[int, ...]]) -> TensorType:
        """The type with the shape that `sized` makes of its own."""
        return replace(self, shape=sized(self.shape))

    def filled(self, fill: int) -> np.ndarray:
        """A tensor before a kernel writes to it, each element `fill`; 0 is the bytes 0, also where that is no zero."""
        dtype = np.dtype(getattr(ml_dtypes, self.dtype, self.dtype))
        return np.full(self.shape, fill, dtype) if fill else np.zeros(self.shape, dtype)


@dataclass(frozen=True)
class Launch:
    """Runs a kernel: values by number, the results new ones."""

    kernel: str
    operands: tuple[int, ...]
    results: tuple[int, ...]
    operand_types: tuple[TensorType, ...]
    types: tuple[TensorType, ...]  # of the results

    def rows(self, parameter: int) -> int:
        """The leading dimension of a parameter: operands come first, then results."""
        return (*self.operand_types, *self.types)[parameter].shape[0]


@dataclass(frozen=True)
class LibraryCall:
    """Calls an operator of CANN's libraries; `dims` and `transposed` as of `ascend.library_call`."""

    callee: str
    operands: tuple[int, ...]
    result: int
    operand_types: tuple[TensorType, ...]
    type: TensorType
    dims: tuple[int, ...] = ()
    transposed: tuple[int, ...] = ()


@dataclass(frozen=True)
class Reshape:
    """The same elements in another shape."""

    operand: int
    result: int
    type: TensorType


@dataclass(frozen=True)
class Part:
    """Neighbouring elements of a value, from the one at `starts` on."""

    operand: int
    result: int
    operand_type: TensorType
    type: TensorType
    starts: tuple[int, ...]

    @property
    def first(self) -> int:
        """The number of that element."""
        shape = self.operand_type.shape
        return sum(start * math.prod(shape[dim + 1 :]) for dim, start in enumerate(self.starts))


@dataclass(frozen=True)
class Plan:
    """Values 0 to `arguments` - 1 are the arguments of the program."""

    arguments: int
    steps: tuple[Launch | LibraryCall | Reshape | Part, ...]
    outputs: tuple[int, ...]

    def at(self, sized: Callable[[tuple[int, ...]], tuple[int, ...]]) -> Plan:
        """The same steps on tensors of the shapes that `sized` makes of theirs."""

        def types(many: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
            return tuple(type_.at(sized) for type_ in many)

        def step_at(step: Launch | LibraryCall | Reshape | Part) -> Launch | LibraryCall | Reshape | Part:
            if isinstance(step, Launch):
                return replace(step, operand_types=types(step.operand_types), types=types(step.types))
            if isinstance(step, LibraryCall):
                return replace(step, operand_types=types(step.operand_types), type=step.type.at(sized))
            if isinstance(step, Part):
                return replace(step, operand_type=step.operand_type.at(sized), type=step.type.at(sized))
            return replace(step, type=step.type.at(sized))

        return replace(self, steps=tuple(map(step_at, self.steps)))

    def run(
        self,
        arguments: Sequence[Any],
        launch: Callable[[Launch, list], Sequence[Any]],
        library: Callable[[LibraryCall, list], Any] | None = None,
    ) -> list:
        """The outputs for these arguments, arrays of any kind; `launch(step, operands)` gives a kernel's results,
        `library(step, operands)` that of a library call."""
        values = dict(enumerate(arguments))
        for step in self.steps:
            if isinstance(step, Launch):
                values.update(zip(step.results, launch(step, [values[i] for i in step.operands])))
            elif isinstance(step, LibraryCall):
                values[step.result] = library(step, [values[i] for i in step.operands])
            elif isinstance(step, Part):
                elements = values[step.operand].reshape(-1)[step.first :]
                values[step.result] = elements[: math.prod(step.type.shape)].reshape(step.type.shape)
            else:
                values[step.result] = values[step.operand].reshape(step.type.shape)
        return [values[i] for i in self.outputs]


def plan_of(main: ir.OpView) -> Plan:
    """The plan of an outlined `main`, which holds launches, library calls, reshapes, parts in place and the return."""
    block = main.regions[0].blocks[0]
    numbers: dict[ir.Value, int] = {argument: i for i, argument in enumerate(block.arguments)}

    def number(value: ir.Value) -> int:
        return numbers.setdefault(value, len(numbers))

    steps: list[Launch | LibraryCall | Reshape | Part] = []
    for view in block.operations:
        op = view.operation
        if op.name == "func.return":
            return Plan(len(block.arguments), tuple(steps), tuple(number(v) for v in op.operands))
        operands = tuple(number(v) for v in op.operands)
        results = tuple(number(v) for v in op.results)
        types = tuple(_tensor_type(v.type) for v in op.results)
        if op.name == "func.call":
            operand_types = tuple(_tensor_type(v.type) for v in op.operands)
            steps.append(Launch(op.opview.callee.value, operands, results, operand_types, types))
        elif op.name == "ascend.library_call":
            operand_types = tuple(_tensor_type(v.type) for v in op.operands)
            call = op.opview
            told = call.dims or (), call.transposed or ()
            steps.append(LibraryCall(call.callee, operands, results[0], operand_types, types[0], *told))
        elif op.name == "tensor.extract_slice":
            starts = tuple(op.attributes["static_offsets"])
            steps.append(Part(operands[0], results[0], _tensor_type(op.operands[0].type), types[0], starts))
        else:
            steps.append(Reshape(operands[0], results[0], types[0]))
    raise ValueError("main has no return")


def _tensor_type(type_: ir.Type) -> TensorType:
    tensor = shaped(type_)
    return TensorType(tensor.shape, tensor.dtype)
