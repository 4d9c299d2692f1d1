"""`jascend twin`: any Ascend C source, compiled, run and checked on the host."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.table import Table

from jascend import cli_arrays
from jascend.backends.ascend import twin
from jascend.cli_terminal import Problem, check_target, console, run_kernels, usage, working

_ENTRY = re.compile(r"__global__[^;{}()]*\bvoid\s+(\w+)\s*\(")
_COMMENTS = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


def run(
    kernel: Path,
    entry: str | None,
    arrays: Sequence[str],
    tiling: str | None,
    defines: Sequence[str],
    include_dirs: Sequence[Path],
    headers: Sequence[Path],
    target: str,
    **options,
) -> twin.Run:
    """Builds a source and launches a kernel of it; `options` as of `Library.launch`. Raises Problem."""
    check_target(target)
    if not kernel.is_file():
        raise usage(f"no kernel source '{kernel}'")
    for directory in include_dirs:
        if not directory.is_dir():
            raise usage(f"--include: no directory '{directory}'")
    for header in headers:
        if not header.is_file():
            raise usage(f"--before: no file '{header}'")
    try:
        values = [cli_arrays.parse(text).array(seed) for seed, text in enumerate(arrays)]
    except cli_arrays.BadSpec as error:
        raise usage(f"--array {error}") from None
    data = None if tiling is None else _tiling(tiling)
    name = entry or _only_entry(kernel)
    definitions = dict(map(_definition, defines))
    try:
        with working(f"compiling {kernel}"):
            library = twin.build(kernel, include_dirs, definitions, target, headers)
        return run_kernels(f"running {name}", library.launch, name, values, tiling=data, **options)
    except (twin.CompilerNotFound, twin.CompileError, MemoryError) as error:
        raise Problem(str(error)) from error
    except ValueError as error:
        raise usage(str(error)) from error


def _only_entry(kernel: Path) -> str:
    names = _ENTRY.findall(_COMMENTS.sub(" ", kernel.read_text(encoding="utf-8", errors="replace")))
    if len(names) != 1:
        found = f"it has {', '.join(names)}" if names else "none was found in its text"
        raise usage(f"which kernel of {kernel}? Say --entry NAME: {found}")
    return names[0]


def _tiling(text: str) -> bytes:
    """The bytes in a file of that name, or those that the text spells in hexadecimal."""
    path = Path(text)
    try:
        if path.is_file():
            return path.read_bytes()
        return bytes.fromhex(text.removeprefix("0x"))
    except (OSError, ValueError):
        raise usage(f"--tiling '{text}' is neither a file nor bytes in hexadecimal, such as 0a000000") from None


def _definition(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    if not re.fullmatch(r"[A-Za-z_]\w*", name):
        raise usage(f"--define '{text}' is neither NAME nor NAME=VALUE")
    return name, value


def data(run: twin.Run) -> dict:
    findings = [asdict(finding) for finding in run.findings]
    return {"findings": findings, "printed": run.printed, "report": run.report}


def show(run: twin.Run) -> None:
    """What the kernel printed, a table of what each pipe did, and the findings."""
    total, blocks = run.report["total"], run.report["blocks"]
    table = Table("pipe", title=f"{len(blocks)} block{'s' * (len(blocks) != 1)}", title_justify="left")
    for column in ("instructions", "repeats", "bytes"):
        table.add_column(column, justify="right")
    for pipe in total["instructions"]:
        counts = [block["pipes"].get(pipe, {}) for block in blocks]
        cells = (sum(count.get(key, 0) for count in counts) for key in ("instructions", "repeats", "bytes"))
        table.add_row(pipe, *(f"{cell:,}" if cell else "" for cell in cells))
    out = console()
    out.print(run.printed, markup=False, end="")
    out.print(table)
    out.print(f"GM: {total['gm_read_bytes']:,} bytes read, {total['gm_write_bytes']:,} written", markup=False)
    for finding in run.findings:
        out.print(str(finding), markup=False)
    out.print(_findings(len(run.findings)), markup=False)


def _findings(count: int) -> str:
    return f"{count or 'no'} finding{'s' * (count != 1)}"
