"""Generated files on disk: the project that a user takes away, and what the twin compiles."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from . import twin
from .codegen import op_host
from .codegen.op_host import operator_type
from .codegen.tiling import camel
from .compile import Kernel
from .plan import Launch

_MSOPGEN_TYPES = {
    "float32": "float", "float16": "float16", "bfloat16": "bfloat16", "int32": "int32", "int64": "int64", "bool": "bool",
}  # fmt: skip


def write(
    directory: Path,
    kernels: Sequence[Kernel],
    launches: Mapping[str, Launch],
    stages: Mapping[str, str],
    target: str,
    explanation: str,
) -> Path:
    """Writes `op_kernel/` (sources and tiling headers), a prototype for msopgen an operator, `ir/` (the IR after each
    stage) and a README. The same program gives the same bytes."""
    files: dict[str, str] = {}
    for kernel in kernels:
        files[f"op_kernel/{kernel.name}.cpp"] = kernel.source
        files[f"op_kernel/{kernel.tiling_file}"] = kernel.tiling_header
        files[f"op_host/{kernel.name}.cpp"] = op_host.emit(
            kernel.name, kernel.signature, kernel.shape, soc=target, cores_wait=kernel.cores_wait
        )
        files[f"{operator_type(kernel.name)}.json"] = _prototype(kernel, launches[kernel.name])
    for number, (stage, text) in enumerate(stages.items(), start=1):
        files[f"ir/{number}_{stage}.mlir"] = text
    files["README.md"] = _readme(kernels, target, explanation)
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        _replace(path, text)
    return directory


def _prototype(kernel: Kernel, launch: Launch) -> str:
    """The operator as msopgen takes it."""

    def tensor(name: str, dtype: str) -> dict:
        return {"name": name, "param_type": "required", "format": ["ND"], "type": [_MSOPGEN_TYPES[dtype]]}

    names = [parameter.name for parameter in kernel.parameters]
    dtypes = [parameter.dtype for parameter in kernel.parameters]
    inputs = len(names) - len(launch.results)
    operator = {
        "op": operator_type(kernel.name),
        "input_desc": [tensor(n, d) for n, d in zip(names[:inputs], dtypes[:inputs])],
        "output_desc": [tensor(n, d) for n, d in zip(names[inputs:], dtypes[inputs:])],
    }
    return json.dumps([operator], indent=2) + "\n"


def _readme(kernels: Sequence[Kernel], target: str, explanation: str) -> str:
    soc = {"ascend910b": "ascend910b", "ascend910_93": "ascend910_93", "ascend950": "ascend950"}[target]
    lines = [
        "# Generated Ascend C",
        "",
        f"Kernels for {target}, written by jascend. They have run on jascend's host twin, not on a device.",
        "",
        "| kernel | cores of the compiled launch | tiling data of it | workspace |",
        "|---|---|---|---|",
    ]
    for kernel in kernels:
        fields = ", ".join(f"{name} = {value}" for name, value in kernel.tiling.items())
        lines.append(f"| `op_kernel/{kernel.name}.cpp` | {kernel.blocks} | {fields} | {kernel.workspace_bytes} B |")
    lines += ["", "To make a complete operator project of one where CANN is installed:", ""]
    for kernel in kernels:
        name = operator_type(kernel.name)
        lines.append(f"    msopgen gen -i {name}.json -c ai_core-{soc} -lan cpp -out {kernel.name}")
    lines += [
        "",
        "then copy `op_kernel/` over the generated one. What the host's tiling function sets, for `rows` rows and as many",
        "vector cores as there are:",
        "",
        *(line for kernel in kernels for line in _host_notes(kernel)),
        "",
        "`ir/` has the IR after each stage of the compiler. What the compiler decided:",
        "",
        *(f"    {line}" for line in explanation.splitlines()),
        "",
    ]
    return "\n".join(lines)


def _host_notes(kernel: Kernel) -> list[str]:
    """What a launch of a kernel needs, for who writes its tiling function."""
    shape = kernel.shape
    share, extra, *rows = map(camel, shape.fields)
    groups = "cores" if shape.parts == 1 else f"cores / {shape.parts}"
    dealt = groups if shape.all_cores else f"min(rows, {groups})"
    notes = [
        f"- `{kernel.name}`: `groups = {dealt}`, block dimension `groups" + (f" * {shape.parts}`" if shape.parts > 1 else "`"),
        f"  tiling data `{share} = rows / groups`, `{extra} = rows % groups`" + (", `rows`" if rows else ""),
    ]
    launch, core, row = shape.scratch
    if launch or core or row:
        terms = [str(launch)] * bool(launch) + [f"{core} * block dimension"] * bool(core) + [f"{row} * rows"] * bool(row)
        notes.append(f"  workspace `{' + '.join(terms)}` bytes beside the system's own")
    if "SyncAll();" in kernel.source:
        notes.append("  `SetScheduleMode(1)`, because its cores wait for each other; no more blocks than vector cores")
    return notes


def _replace(path: Path, text: str) -> None:
    """Writes a file in one step: a reader, or another process that writes it too, never sees half of it."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def cache_directory() -> Path:
    """Where generated sources and the twin's binaries are kept: `JASCEND_CACHE_DIR`, or `~/.cache/jascend`."""
    return Path(os.environ.get("JASCEND_CACHE_DIR") or Path.home() / ".cache" / "jascend")


# The small functions that a kernel's text brings along: a finding in one is about the line that calls it.
_HELPER = re.compile(r"^__aicore__ inline void (\w+)\(", re.MULTILINE)


@functools.lru_cache(maxsize=256)
def _built(name: str, source: str, tiling_file: str, tiling_header: str, target: str):
    key = hashlib.sha256("\0".join((name, source, tiling_header)).encode()).hexdigest()[:24]
    directory = cache_directory() / "kernels" / key
    directory.mkdir(parents=True, exist_ok=True)
    _replace(directory / tiling_file, tiling_header)
    _replace(directory / f"{name}.cpp", source)
    return twin.build(directory / f"{name}.cpp", include_dirs=(directory,), target=target, follow=_HELPER.findall(source))


def build_for_twin(kernel: Kernel, target: str):
    """The kernel as a library of the twin. Raises `twin.CompilerNotFound` where there is no C++ compiler."""
    return _built(kernel.name, kernel.source, kernel.tiling_file, kernel.tiling_header, target)
