"""`jascend compile`, `explain` and `report`: finding the function, compiling it, and showing what came of it."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import inspect
import linecache
import os
import re
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import jax
import numpy as np
from rich.table import Table

import jascend.backends
import jascend.dialect
import jascend.passes
from jascend import cli_arrays
from jascend.backends.ascend import twin
from jascend.cli_terminal import Problem, check_target, console, run_kernels, usage, working
from jascend.compiler import Program
from jascend.compiler import compile as compile_function
from jascend.errors import OperatorError
from jascend.passes import PluginError
from jascend.passes.diagnostics import Position, users_line

# -- the function ---------------------------------------------------------------------------------------------------


def load(name: str) -> Callable:
    """The function that MODULE:FN names. Raises Problem."""
    module_name, colon, path = name.rpartition(":")
    if not (module_name and colon and path):
        raise usage(f"'{name}' is not MODULE:FN: write for example model:next_token or models/model.py:next_token")
    is_file = module_name.endswith(".py") or os.sep in module_name
    module = _module_of_file(module_name) if is_file else _module(module_name)
    value = module
    for part in path.split("."):
        if not hasattr(value, part):
            raise usage(f"{module_name} has no '{path}'{_offer(part, value)}")
        value = getattr(value, part)
    if not callable(value):
        raise usage(f"{name} is not a function but of type {type(value).__name__}")
    return value


def _module_of_file(name: str):
    path = Path(name).resolve()
    if not path.is_file():
        raise usage(f"no such file '{name}'")
    _import_from(path.parent)  # as `python FILE` does
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise usage(f"'{name}' is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise Problem(f"cannot import {name}: {_told(error, str(path))}") from error
    return module


def _module(name: str):
    _import_from(Path.cwd())  # as `python -m` does
    try:
        return importlib.import_module(name)
    except Exception as error:
        missing = getattr(error, "name", None) if isinstance(error, ModuleNotFoundError) else None
        if missing and (name == missing or name.startswith(f"{missing}.")):
            hint = f": is it {name}.py?" if Path(f"{name}.py").exists() else f" in {Path.cwd()} or on the Python path"
            raise usage(f"no module '{name}'{hint}") from None
        raise Problem(f"cannot import {name}: {_told(error)}") from error


def _import_from(directory: Path) -> None:
    if str(directory) not in sys.path:
        sys.path.insert(0, str(directory))


def _offer(word: str, value) -> str:
    """What there is instead of an attribute that is not there."""
    known = [name for name, member in vars(value).items() if callable(member) and not name.startswith("_")]
    near = difflib.get_close_matches(word, known, n=1)
    own = [
        name for name in known if getattr(getattr(value, name), "__module__", None) == getattr(value, "__name__", "")
    ]
    if near:
        return f"; did you mean {near[0]}?"
    return f"; its functions are {', '.join(own)}" if own else ""


def _told(error: BaseException, file: str = "") -> str:
    """An exception of the user's code: what, and at which of their lines."""
    if isinstance(error, SyntaxError):
        return f"{type(error).__name__}: {error.msg}\n  {error.filename}:{error.lineno}: {(error.text or '').strip()}"
    return f"{type(error).__name__}: {error}{_place(error, file)}"


def _place(error: BaseException, file: str = "") -> str:
    """The user's line at which an exception came up, in `file` if it is on the way."""
    frames = _user_frames(error)
    own = [frame for frame in frames if frame.filename == file] or frames
    if not own:
        return ""
    position = users_line(Position(frame.filename, frame.lineno) for frame in reversed(own))
    return f"\n  {position.file}:{position.line}: {linecache.getline(position.file, position.line).strip()}"


def _user_frames(error: BaseException) -> list[traceback.FrameSummary]:
    """The frames of an exception that are neither ours nor of installed packages nor of Python."""
    # Our four folders are apart in an editable install.
    packages = (jascend, jascend.dialect, jascend.passes, jascend.backends, jax)
    ours = [os.path.join(directory, "") for package in packages for directory in package.__path__]
    not_users = (*ours, sysconfig.get_path("purelib"), sysconfig.get_path("stdlib"), "<")
    return [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(not_users)]


# -- compiling ------------------------------------------------------------------------------------------------------


_NAME = re.compile(r"[A-Za-z_]\w*")
_OF_CONSTRAINTS = {"mod", "floordiv", "max", "min"}  # what JAX computes with in a constraint


def compiled(
    function: str,
    specs: Iterable[str] | None,
    target: str,
    plugins: Iterable[str] | None,
    forbid: Iterable[str] | None = None,
    force: Iterable[str] | None = None,
    constraints: Iterable[str] | None = None,
    *,
    all_plugins: bool = True,
) -> tuple[Program, list[cli_arrays.ArraySpec]]:
    """The compiled program and its arguments, whose symbols `constraints` bound. Without `all_plugins`, those of
    installed packages count only if they are among `plugins`. Raises Problem."""
    check_target(target)
    arguments = _arguments(specs or ())
    with working(f"importing {function}"):
        fn = load(function)
    _check_count(fn, function, arguments)
    structs = _structs(arguments, tuple(constraints or ()))
    try:
        with working(f"compiling {function} for {target}"):
            chosen = (*(() if all_plugins else (None,)), *(plugins or ()))
            program = compile_function(
                fn, *structs, target=target, plugins=chosen, forbid=tuple(forbid or ()), force=tuple(force or ())
            )
            return program, arguments
    except PluginError as error:
        raise Problem(str(error)) from error
    except OperatorError as error:
        place = "" if "\n" in str(error) else _place(error)  # diagnostics of passes show their lines
        raise Problem(f"{error}{place}") from error
    except Exception as error:
        if not _user_frames(error):
            raise  # a fault of ours, which deserves its traceback
        raise Problem(f"{function} cannot be traced: {_told(error)}") from error


def _arguments(texts: Iterable[str]) -> list[cli_arrays.ArraySpec]:
    try:
        specs = [cli_arrays.parse(text) for text in texts]
    except cli_arrays.BadSpec as error:
        raise usage(f"--spec {error}") from None
    for spec in specs:
        if jax.dtypes.canonicalize_dtype(spec.dtype) != spec.dtype:
            raise usage(f"--spec '{spec.text}': JAX has 64-bit types only with JAX_ENABLE_X64=1 in the environment")
    return specs


def _structs(arguments: Sequence[cli_arrays.ArraySpec], constraints: Sequence[str]) -> list[jax.ShapeDtypeStruct]:
    """The arguments' types. A symbol that several have is the same one."""
    try:
        scope = jax.export.SymbolicScope(constraints)
    except ValueError as error:
        raise usage(f"--constraint {error}") from None
    symbols = {name for argument in arguments for name in _NAME.findall(" ".join(map(str, argument.shape)))}
    for text in constraints:
        if unknown := set(_NAME.findall(text)) - symbols - _OF_CONSTRAINTS:
            raise usage(f"--constraint '{text}': no --spec has a symbol '{min(unknown)}'")
    structs = []
    for argument in arguments:
        try:
            shape = jax.export.symbolic_shape(", ".join(map(str, argument.shape)), scope=scope)
        except ValueError as error:
            raise usage(f"--spec '{argument.text}': {error}") from None
        structs.append(jax.ShapeDtypeStruct(shape, argument.dtype))
    return structs


def _check_count(fn: Callable, name: str, arguments: Sequence) -> None:
    try:
        signature = inspect.signature(fn)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*arguments)
    except TypeError as error:
        raise usage(f"{len(arguments)} --spec for {name}{signature}: {error}") from None


def write(program: Program, output: Path | None) -> None:
    if output is None:
        return
    try:
        program.write(output)
    except OSError as error:
        raise Problem(f"cannot write to '{output}': {error.strerror}") from error


def summary(program: Program, output: Path | None) -> dict:
    return {
        "name": program.name,
        "target": program.target,
        "kernels": [
            {
                "name": kernel.name,
                "parameters": [{"name": p.name, "dtype": p.dtype} for p in kernel.parameters],
                "blocks": kernel.blocks,
                "tiling": kernel.tiling,
                "source_lines": kernel.source.count("\n"),
            }
            for kernel in program.kernels
        ],
        "library_calls": [call.callee for call in program.library_calls],
        "directory": None if output is None else str(output),
    }


def print_summary(program: Program, output: Path | None) -> None:
    table = Table(
        "kernel", "parameters", "cores", "lines", title=f"{program.name} for {program.target}", title_justify="left"
    )
    for kernel in program.kernels:
        parameters = ", ".join(parameter.name for parameter in kernel.parameters)
        table.add_row(kernel.name, parameters, str(kernel.blocks), str(kernel.source.count("\n")))
    console().print(table)
    if program.library_calls:
        console().print(f"library calls: {', '.join(call.callee for call in program.library_calls)}", markup=False)
    console().print(f"written to {output}" if output else "nothing written: -o DIR writes the project", markup=False)


def remarks(program: Program, details: bool) -> list[dict]:
    """What the passes decided, as plain data."""
    return [
        {
            "pass": remark.pass_name,
            "kind": remark.kind,
            "text": remark.text,
            "file": remark.position.file,
            "line": remark.position.line,
            "column": remark.position.column,
        }
        for remark in program.remarks
        if details or not remark.detail
    ]


# -- reports --------------------------------------------------------------------------------------------------------


def profiled(program: Program, arguments: Sequence[cli_arrays.ArraySpec], cores: int | None):
    """The report of a run with the arguments' contents. Raises Problem."""
    try:
        arrays = [argument.array(seed) for seed, argument in enumerate(arguments)]
        return run_kernels(f"running {program.name} on the twin", program.profile, *arrays, cores=cores)
    except cli_arrays.BadSpec as error:
        raise usage(f"--spec {error}") from None
    except (twin.CompilerNotFound, twin.CompileError) as error:
        raise Problem(str(error)) from error


def write_report(report, html: Path | None, perfetto: Path | None) -> None:
    for path, text in ((html, report.to_html), (perfetto, report.to_perfetto)):
        if path is None:
            continue
        try:
            path.write_text(text(), encoding="utf-8")
        except OSError as error:
            raise Problem(f"cannot write '{path}': {error.strerror}") from error


def report_data(report, baseline=None) -> dict:
    if baseline is None:
        return report.data
    speedup = baseline.microseconds / report.microseconds if report.microseconds else None
    return {**report.data, "baseline": baseline.data, "speedup": speedup}


_ROWS: tuple[tuple[str, str, Callable], ...] = (
    ("time", "us", lambda r: r.microseconds),
    ("of it, launching", "us", lambda r: r.launch_microseconds),
    ("roofline", "us", lambda r: r.roofline_microseconds),
    ("time / roofline", "", lambda r: r.roofline_ratio),
    ("cycles", "", lambda r: r.cycles),
    ("launches", "", lambda r: r.launches),
    ("GM bytes read", "", lambda r: r.gm_read_bytes),
    ("GM bytes written", "", lambda r: r.gm_write_bytes),
)


def print_report(report, baseline=None, *, label: str | None = None) -> None:
    """A table of the report, beside the baseline where there is one, called `label`, and the findings."""
    table = Table(title=f"{report.name} on {report.target}, as modelled", title_justify="left")
    table.add_column("")
    for column in ("program",) if baseline is None else ("program", label, f"program / {label}"):
        table.add_column(column, justify="right")

    def row(label: str, unit: str, of: Callable) -> None:
        values = [of(each) for each in (report, baseline) if each is not None]
        cells = [f"{_short(value)} {unit}".rstrip() for value in values]
        if baseline is not None:
            cells.append(f"{values[0] / values[1]:.2f}" if values[1] else "")
        table.add_row(label, *cells)

    for label, unit, of in _ROWS:
        row(label, unit, of)
    pipes = dict.fromkeys(pipe for each in (report, baseline) if each is not None for pipe in each.pipes)
    for pipe in pipes:
        row(f"{pipe} busy", "%", lambda r, pipe=pipe: 100 * r.pipes.get(pipe, 0.0))
    out = console()
    out.print(table)
    for name, each in (("", report), (f"{label}: ", baseline)):
        for finding in each.findings if each is not None else ():
            out.print(f"{name}{finding}", markup=False)


def _short(value: float) -> str:
    if isinstance(value, (int, np.integer)) or value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.2f}" if value >= 1 else f"{value:.3g}"
