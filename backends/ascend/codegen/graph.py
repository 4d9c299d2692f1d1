"""The host program that runs a whole graph: our operators and the libraries', one after another, through aclnn.

Values stay on the device from one call to the next; a reshape is another tensor on the same memory, and so are a part
of neighbouring elements and a matrix that the libraries are to take transposed. What the libraries want as int64 is
cast on the device. The program of a graph for any number of rows takes the number as an argument.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from jascend.dialect.libraries import LIBRARY

from ..plan import Launch, LibraryCall, Part, Plan, Reshape, TensorType
from .aclnn import Call, memory
from .op_host import DTYPES, operator_type
from .template import fill

PATH = "test/graph.cpp"
_WIDTH = 120


@dataclass(frozen=True)
class RowsInCpp:
    """Of a graph for any number of rows: the dimensions of a shape as C++, in terms of `rows`; and how many there are
    where the program is not told."""

    dims: Callable[[tuple[int, ...]], Sequence[str]]
    rows: int


def emit(
    plan: Plan, arguments: Sequence[TensorType], calls: Mapping[str, Call], any_rows: RowsInCpp | None = None
) -> str:
    """The program of a graph; `calls` are its kernels by name."""
    program = _Program(plan, list(arguments), calls, any_rows)
    headers = [f'#include "aclnn_{step.kernel}.h"' for step in plan.steps if isinstance(step, Launch)]
    libraries = dict.fromkeys(f'#include "aclnnop/{header}"' for header in program.headers)
    return fill(
        _TEXT, headers="\n".join(["", *dict.fromkeys(headers), *libraries]), steps="\n".join(program.lines),
        arguments=len(arguments), outputs="\n".join(program.comparisons), usage=" [rows]" if any_rows else "",
        rows=fill(_ROWS, rows=any_rows.rows) if any_rows else "",
    )  # fmt: skip


def data(arguments: Mapping[int, np.ndarray], outputs: Sequence[np.ndarray]) -> dict[str, bytes]:
    """Tensors as files, by path: arguments by number, and what the outputs of a run were."""
    named = [(f"argument{i}", x) for i, x in arguments.items()] + [(f"output{i}", x) for i, x in enumerate(outputs)]
    return {f"data/graph/{name}.bin": memory(array) for name, array in named}


class _Program:
    """The statements of a graph's program."""

    def __init__(self, plan: Plan, arguments: list[TensorType], calls: Mapping[str, Call], any_rows: RowsInCpp | None):
        self.lines: list[str] = ["    // The arguments."]
        self.headers: list[str] = []
        self.types: dict[int, TensorType] = dict(enumerate(arguments))
        self.calls, self.dims = calls, any_rows.dims if any_rows else _numbers
        self.names = 0
        for i, type_ in self.types.items():
            described = self._described(f"argument{i}", type_)
            self.lines.append(f"    const harness::Tensor value{i} = harness::Load(directory, {described});")
        for number, step in enumerate(plan.steps, start=1):
            getattr(self, f"_{type(step).__name__.lower()}")(number, step)
        self.comparisons = [
            f"    same &= harness::CompareWith(directory, {self._described(f'output{i}', self.types[value])}, "
            f"value{value});"
            for i, value in enumerate(plan.outputs)
        ]

    def _reshape(self, number: int, step: Reshape) -> None:
        self.types[step.result] = step.type
        view = f"value{step.operand}, {self._described(f'value{step.result}', step.type)}"
        self.lines += ["", f"    // {number}. The same elements in another shape."]
        self.lines.append(f"    const harness::Tensor value{step.result}({view});")

    def _part(self, number: int, step: Part) -> None:
        self.types[step.result] = step.type
        view = f"value{step.operand}, {self._described(f'value{step.result}', step.type)}, {step.first}"
        self.lines += ["", f"    // {number}. A part of it, in place."]
        self.lines.append(f"    const harness::Tensor value{step.result}({view});")

    def _launch(self, number: int, step: Launch) -> None:
        operator, fills = operator_type(step.kernel), self.calls[step.kernel].fill
        self.lines += ["", f"    // {number}. {operator}"]
        for result, type_, filled in zip(step.results, step.types, fills):
            self._made(result, type_, filled)
        tensors = [f"value{i}.get()" for i in (*step.operands, *step.results)]
        self._two_phases(f"aclnn{operator}", tensors)

    def _librarycall(self, number: int, step: LibraryCall) -> None:
        operator = LIBRARY[step.callee]
        self.headers.append(operator.header)
        self.lines += ["", f"    // {number}. {step.callee}: {operator.summary}"]
        flags = step.transposed or (0,) * len(step.operands)
        names = [f"value{i}" for i in step.operands]
        for i, (type_, turned) in enumerate(zip(step.operand_types, flags)):
            if turned:
                names[i] = self._declared(f"harness::Tensor {{}} = {names[i]}.Transposed()")
            if i == operator.index and type_.dtype != "int64":
                names[i] = self._cast(names[i], type_)
        self._made(step.result, step.type, 0)
        told = names, f"value{step.result}", step.dims, step.type.dtype
        parameters = [self._parameter(token, *told) for token in operator.parameters]
        self._two_phases(step.callee, parameters)

    def _made(self, value: int, type_: TensorType, filled: int) -> None:
        self.types[value] = type_
        described = self._described(f"value{value}", type_, filled)
        self.lines.append(f"    const harness::Tensor value{value} = harness::Make({described});")

    def _declared(self, statement: str) -> str:
        """A constant of a new name."""
        self.names += 1
        name = f"passed{self.names}"
        self.lines.append(f"    const {statement.format(name)};")
        return name

    def _cast(self, name: str, type_: TensorType) -> str:
        wide = TensorType(type_.shape, "int64")
        cast = self._declared(
            f"harness::Tensor {{}} = harness::Make({self._described('sizes', wide, 0, escaped=True)})"
        )
        self.headers.append("aclnn_cast.h")
        self._two_phases("aclnnCast", [f"{name}.get()", "ACL_INT64", f"{cast}.get()"])
        return cast

    def _parameter(self, token: str, names: Sequence[str], result: str, dims: Sequence[int], dtype: str) -> str:
        if token == "dtype":
            return f"ACL_{DTYPES[dtype]}"
        if token == "[x]":
            return self._declared(f"harness::TensorList {{}}({', '.join(names)})") + ".get()"
        if token.startswith("{"):
            return self._declared(f"harness::IntArray {{}}({{{{{dims[int(token[1:-1])]}}}}})") + ".get()"
        if token == "dim":
            return f"static_cast<int64_t>({dims[0]})"
        if token == "scalar":
            return self._declared(f"harness::Scalar {{}}({dims[0]})") + ".get()"
        if token == "dims":
            return self._declared(f"harness::IntArray {{}}({{{{{', '.join(map(str, dims))}}}}})") + ".get()"
        tensors = {f"x{i}": name for i, name in enumerate(names)} | {"out": result}
        if token in tensors:
            return f"{tensors[token]}.get()"
        if token.strip("[]") in tensors:
            return self._declared(f"harness::TensorList {{}}({tensors[token.strip('[]')]})") + ".get()"
        return token

    def _described(self, name: str, type_: TensorType, filled: int | None = None, escaped: bool = False) -> str:
        """A tensor as `harness::Description`; `escaped` for use in a format."""
        dims = ", ".join(self.dims(type_.shape))
        fills = "" if filled is None else ", ".join(map(str, memory(TensorType((1,), type_.dtype).filled(filled))))
        text = f'{{"{name}", {{{dims}}}, ACL_{DTYPES[type_.dtype]}, {{{fills}}}}}'
        return text.replace("{", "{{").replace("}", "}}") if escaped else text

    def _two_phases(self, name: str, parameters: Sequence[str]) -> None:
        self.lines += [
            f'    harness::Run(session, "{name}", [&](uint64_t *size, aclOpExecutor **executor) {{',
            *_wrapped(f"        return {name}GetWorkspaceSize(", [*parameters, "size", "executor"]),
            f"    }}, {name});",
        ]


def _wrapped(start: str, parameters: Sequence[str]) -> list[str]:
    """The lines of a call."""
    lines = [start + parameters[0]]
    for parameter in parameters[1:]:
        if len(lines[-1]) + len(parameter) + 4 <= _WIDTH:
            lines[-1] += f", {parameter}"
        else:
            lines[-1] += ","
            lines.append(f"            {parameter}")
    lines[-1] += ");"
    return lines


def _numbers(shape: tuple[int, ...]) -> list[str]:
    return list(map(str, shape))


_ROWS = """\
    const int64_t rows = argc > 2 ? static_cast<int64_t>(std::atoll(argv[2])) : @rows@;  // those of the data
"""

_TEXT = """\
// Runs the whole graph on the data in data/graph and compares: its operators and CANN's, in order, with all values in
// between on the device. Usage: test_graph [device]@usage@
@headers@
#include "harness.h"

int main(int argc, char **argv)
{
    const harness::Session session(argc, argv);
    const std::string directory = "data/graph/";
@rows@
@steps@

    bool same = true;
@outputs@
    std::printf("graph of @arguments@ arguments: %s\\n", same ? "pass" : "FAIL");
    return same ? 0 : 1;
}
"""
