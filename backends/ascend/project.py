"""Generated files on disk: the project that a user takes away, and what the twin compiles."""

from __future__ import annotations

import functools
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from . import twin
from .codegen import aclnn, cmake, direct, graph, op_host
from .codegen.op_host import operator_type
from .codegen.template import fill
from .compile import Kernel
from .files import cache_directory, write_whole
from .plan import Plan, TensorType
from .signature import Tensor
from .targets import Target

KINDS = ("custom_op", "direct")

_MSOPGEN_TYPES = {
    "float32": "float", "float16": "float16", "bfloat16": "bfloat16", "int8": "int8",
    "uint8": "uint8", "int16": "int16", "int32": "int32", "int64": "int64", "bool": "bool",
    "int4": "int4", "float4_e2m1fn": "float4_e2m1",
    "float8_e4m3fn": "float8_e4m3fn", "float8_e5m2": "float8_e5m2", "float8_e8m0fnu": "float8_e8m0",
}  # fmt: skip

# Inputs and outputs of one call of a kernel, by its name.
Data = Mapping[str, tuple[Sequence[np.ndarray], Sequence[np.ndarray]]]


@dataclass(frozen=True)
class Graph:
    """How kernels and library calls make up the program, and one run of it: arguments and results. The last arguments
    are the program's own `constants`. With `any_rows`, shapes have a number in place of the rows."""

    plan: Plan
    arguments: Sequence[TensorType]
    data: tuple[Sequence[np.ndarray], Sequence[np.ndarray]] | None
    constants: Sequence[np.ndarray] = ()
    any_rows: graph.RowsInCpp | None = None


def for_toolkit(kernel: Kernel, target: Target, soc: str) -> Kernel:
    """A kernel as toolkits take it that call the product so: older ones know the older names of APIs only."""
    source = kernel.source
    for older, newer in target.newer_names.items() if soc != target.socs[0] else ():
        source = re.sub(rf"\b{newer}\(", f"{older}(", source)
    return replace(kernel, source=source)


def write(
    directory: Path,
    kernels: Sequence[Kernel],
    stages: Mapping[str, str],
    target: Target,
    explanation: str,
    *,
    soc: str,
    data: Data,
    whole: Graph,
) -> Path:
    """Writes a custom operator project: `op_host/`, `op_kernel/`, the build, callers in `test/`, a prototype for
    msopgen an operator, `ir/` (the IR after each stage) and a README. The same program gives the same bytes."""
    calls = _calls(kernels)
    files: dict[str, str | bytes] = {}
    for kernel in kernels:
        files[f"op_kernel/{kernel.name}.cpp"] = kernel.source
        files[f"op_kernel/{kernel.tiling_file}"] = kernel.tiling_header
        files[f"op_host/{kernel.name}.cpp"] = op_host.emit(
            kernel.name, kernel.signature, kernel.shape, soc=soc, cores_wait=kernel.cores_wait
        )
        files[f"{operator_type(kernel.name)}.json"] = _prototype(kernel)
    files |= cmake.files([kernel.name for kernel in kernels], soc) | aclnn.files(calls)
    files[graph.PATH] = graph.emit(whole.plan, whole.arguments, {c.kernel: c for c in calls}, whole.any_rows)
    data_files = _data(calls, data)
    data_files |= graph.data(dict(enumerate(whole.constants, start=len(whole.arguments) - len(whole.constants))), ())
    if whole.data and len(data) == len(calls):  # else a kernel had no rows, and was not launched
        data_files |= graph.data(dict(enumerate(whole.data[0])), whole.data[1])
    files |= {f"test/{path}": content for path, content in data_files.items()} | _ir(stages)
    files["README.md"] = _readme(kernels, target.name, soc, explanation)
    _write_files(directory, files)
    return directory


def write_direct(
    directory: Path,
    kernels: Sequence[Kernel],
    stages: Mapping[str, str],
    target: Target,
    explanation: str,
    *,
    data: Data,
) -> Path:
    """Writes a light project: a program a kernel, which launches it with `<<<>>>`. Bytes are the same each time."""
    calls = _calls(kernels)
    programs = [(call, kernel.source, kernel.shape) for call, kernel in zip(calls, kernels)]
    files: dict[str, str | bytes] = {**direct.files(programs, target.npu_arch), **_data(calls, data), **_ir(stages)}
    files["README.md"] = fill(
        direct.README, target=target.name, explanation=_indented(explanation),
        kernels="\n".join(f"    ./build/{call.kernel}" for call in calls),
    )  # fmt: skip
    _write_files(directory, files)
    return directory


def _calls(kernels: Sequence[Kernel]) -> list[aclnn.Call]:
    return [aclnn.Call(kernel.name, kernel.signature, kernel.fill) for kernel in kernels]


def _data(calls: Sequence[aclnn.Call], data: Data) -> dict[str, bytes]:
    return {
        path: content for c in calls if c.kernel in data for path, content in aclnn.data(c, *data[c.kernel]).items()
    }


def _indented(explanation: str) -> str:
    return "\n".join(f"    {line}".rstrip() for line in explanation.splitlines())


def _ir(stages: Mapping[str, str]) -> dict[str, str]:
    return {f"ir/{number}_{stage}.mlir": text for number, (stage, text) in enumerate(stages.items(), start=1)}


_LISTED = ".jascend"  # in a project: the names of its files, for the one that is written over it
_BUILD = "CMakeLists.txt"


def _write_files(directory: Path, files: Mapping[str, str | bytes]) -> None:
    """Writes a project in place of one that may be there, of which nothing stays. While it is not whole there is no
    CMakeLists.txt: what an interruption leaves is not built."""
    earlier = _listed(directory)
    (directory / _BUILD).unlink(missing_ok=True)
    directory.mkdir(parents=True, exist_ok=True)
    write_whole(directory / _LISTED, _lines({*earlier, *files}))
    for name in sorted(earlier - files.keys()):
        (directory / name).unlink(missing_ok=True)
    for name, content in sorted(files.items(), key=lambda item: item[0] == _BUILD):
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, content, mode=0o755 if path.suffix == ".sh" else 0o644)
    write_whole(directory / _LISTED, _lines(files))


def _lines(names: Iterable[str]) -> str:
    return "".join(f"{name}\n" for name in sorted(names))


def _listed(directory: Path) -> set[str]:
    """The files of the project that is in a directory; of what leads out of it, nothing."""
    try:
        names = (directory / _LISTED).read_text().splitlines()
    except (FileNotFoundError, NotADirectoryError):
        return set()
    return {name for name in names if name and not Path(name).is_absolute() and ".." not in Path(name).parts}


def _prototype(kernel: Kernel) -> str:
    """The operator as msopgen takes it."""

    def description(tensor: Tensor) -> dict:
        return {"name": tensor.name, "param_type": "required", "format": ["ND"], "type": [_MSOPGEN_TYPES[tensor.dtype]]}

    operator = {
        "op": operator_type(kernel.name),
        "input_desc": [description(tensor) for tensor in kernel.signature.inputs],
        "output_desc": [description(tensor) for tensor in kernel.signature.outputs],
    }
    return json.dumps([operator], indent=2) + "\n"


def _readme(kernels: Sequence[Kernel], target: str, soc: str, explanation: str) -> str:
    return fill(
        _README, target=target, soc=soc,
        kernels="\n".join(_row(kernel) for kernel in kernels),
        explanation=_indented(explanation),
    )  # fmt: skip


def _row(kernel: Kernel) -> str:
    """A kernel in the README's table."""
    fields = ", ".join(f"{name} = {value}" for name, value in kernel.tiling.items())
    rows = "any" if kernel.signature.any_rows else str(kernel.signature.rows)
    name = f"`{operator_type(kernel.name)}` | `op_kernel/{kernel.name}.cpp`"
    return f"| {name} | {rows} | {kernel.blocks} | {fields} | {kernel.workspace_bytes} B |"


_README = """\
# Operators in Ascend C

A package of custom operators for @target@, written by jascend. Its kernels have run on jascend's host twin, and its
host code against stand-ins for CANN's headers; neither has run on a device.

| operator | kernel | rows | cores | tiling data | workspace |
|---|---|---|---|---|---|
@kernels@

Cores, tiling data and workspace are those of the launch that was compiled; `op_host/` computes them for each call, from
its rows and the vector cores that there are.

- `op_host/`: each operator's definition, tiling, and inference of shapes and dtypes
- `op_kernel/`: the kernels
- `CMakeLists.txt`, `CMakePresets.json`, `build.sh`: the build of the package; it needs CANN
- `test/`: a program an operator that calls it through aclnn and compares, and one for the whole graph; see
  `test/README.md`
- `*.json`: prototypes, from which `msopgen gen -i <file> -c ai_core-@soc@ -lan cpp -out <directory>` makes a project
  for a toolkit that this one does not suit
- `ir/`: the IR after each stage of the compiler

Where CANN is installed and its `set_env.sh` sourced:

    ./build.sh
    ./build_out/custom_opp_*.run

What the compiler decided:

@explanation@
"""


# The small functions that a kernel's text brings along: a finding in one is about the line that calls it.
_HELPER = re.compile(r"^__aicore__ inline void (\w+)\(", re.MULTILINE)


@functools.lru_cache(maxsize=256)
def _built(name: str, source: str, tiling_file: str, tiling_header: str, target: str):
    key = hashlib.sha256("\0".join((name, source, tiling_header)).encode()).hexdigest()[:24]
    directory = cache_directory() / "kernels" / key
    directory.mkdir(parents=True, exist_ok=True)
    write_whole(directory / tiling_file, tiling_header)
    write_whole(directory / f"{name}.cpp", source)
    return twin.build(
        directory / f"{name}.cpp", include_dirs=(directory,), target=target, follow=_HELPER.findall(source)
    )


def build_for_twin(kernel: Kernel, target: str):
    """The kernel as a library of the twin. Raises `twin.CompilerNotFound` where there is no C++ compiler."""
    return _built(kernel.name, kernel.source, kernel.tiling_file, kernel.tiling_header, target)
