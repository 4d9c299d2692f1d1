"""CANN's toolkit, where it is installed: builds written projects with its compiler, and runs their callers on a device.

The toolkit's `set_env.sh` sets `ASCEND_HOME_PATH`. What is missing of it is found before anything is built, and all of
it is said at once. Nothing here has been run against a toolkit or a device: tests use stand-ins for its programs.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

HOME = "ASCEND_HOME_PATH"

_MODULES = (
    "compiler/tikcpp/ascendc_kernel_cmake", "tools/tikcpp/ascendc_kernel_cmake", "ASCConfig.cmake", "lib64/cmake",
)  # fmt: skip
_COMPILERS = (
    "compiler/ccec_compiler/bin/bisheng", "compiler/ccec_compiler/bin/ccec", "ccec_compiler/bin/bisheng",
    "ccec_compiler/bin/ccec", "bin/bisheng", "bin/ccec",
)  # fmt: skip
_RUNTIME = ("include/acl/acl.h", "lib64/libascendcl.so")


class ToolkitNotFound(RuntimeError):
    """There is no complete toolkit; the text lists each missing piece, and what to do about it."""


class BuildFailed(RuntimeError):
    """A command of a build or a run failed; the text has the command and the end of what it said."""


def home(environment: Mapping[str, str] | None = None, *, runtime: bool = False) -> Path:
    """Where the toolkit is. Raises ToolkitNotFound where something is missing that a build needs, or with `runtime`,
    that callers need."""
    environment = os.environ if environment is None else environment
    missing = []
    path = environment.get(HOME)
    if not path:
        missing.append(f"{HOME} is not set: install CANN's toolkit and source its set_env.sh")
    elif not Path(path).is_dir():
        missing.append(f"{HOME} is '{path}', which is no directory: source the set_env.sh of an installed toolkit")
    else:
        missing += _missing_in(Path(path), runtime, environment.get("PATH"))
    if shutil.which("cmake", path=environment.get("PATH")) is None:
        missing.append("cmake is not on the PATH: install CMake 3.16 or later")
    if missing:
        raise ToolkitNotFound("\n".join(["no complete CANN toolkit:", *(f"  {piece}" for piece in missing)]))
    return Path(path)


def _missing_in(path: Path, runtime: bool, programs: str | None) -> list[str]:
    missing = []
    if not any((path / name).exists() for name in _MODULES):
        missing.append(
            f"no CMake modules for operator projects in '{path}' ({_MODULES[0]}): install a toolkit with them"
        )
    on_path = any(shutil.which(name, path=programs) for name in ("bisheng", "ccec"))
    if not on_path and not any((path / name).exists() for name in _COMPILERS):
        missing.append(f"no compiler in '{path}' ({_COMPILERS[0]} or ccec): install the toolkit, not only the runtime")
    if runtime:
        missing += [f"no '{path / name}': install the runtime" for name in _RUNTIME if not (path / name).exists()]
    return missing


def build(project: Path, *, soc: str, jobs: int = 4) -> Path:
    """Builds a custom operator project with the toolkit's compiler.

    Returns: the package, `build_out/custom_opp_<os>_<architecture>.run`.
    Raises: ToolkitNotFound, BuildFailed.
    """
    home()
    _run(["./build.sh", f"-DASCEND_COMPUTE_UNIT={soc}"], project, {"JOBS": str(jobs)})
    packages = sorted(project.glob("build_out/custom_opp_*.run"))
    if not packages:
        raise BuildFailed(f"the build made no package: there is no {project}/build_out/custom_opp_*.run")
    return packages[0]


def install(project: Path, package: Path) -> Path:
    """Installs a package beside its project, each build in a place of its own:
    what a process has loaded stays as it is.

    Returns: the directory of its operators. Raises BuildFailed."""
    installed = project / "installed" / hashlib.sha256(package.read_bytes()).hexdigest()[:12]
    vendor = installed / "vendors" / "jascend"
    if not vendor.is_dir():
        try:
            _run([str(package), "--quiet", f"--install-path={installed}"], project)
        except BuildFailed:
            shutil.rmtree(installed, ignore_errors=True)  # what is there in part is not installed
            raise
    return vendor


def run_callers(project: Path, package: Path) -> list[str]:
    """Installs a package beside its project, builds the callers in `test/`, and runs each on the device.

    Returns: the names of the callers, each of which found what it expected.
    Raises: ToolkitNotFound, BuildFailed: also where a result is not what is expected.
    """
    home(runtime=True)
    tests, vendor = project / "test", install(project, package)
    operators = vendor / "op_api"
    _run(["cmake", "-S", ".", "-B", "build", f"-Dpackage={operators}"], tests)
    _run(["cmake", "--build", "build"], tests)
    libraries = os.pathsep.join([str(operators / "lib"), os.environ.get("LD_LIBRARY_PATH", "")])
    environment = {"LD_LIBRARY_PATH": libraries, "ASCEND_CUSTOM_OPP_PATH": str(vendor)}
    callers = sorted((tests / "build").glob("test_*"))
    for caller in callers:
        _run([str(caller)], tests, environment)
    return [caller.name for caller in callers]


def _run(command: Sequence[str], directory: Path, extra: Mapping[str, str] | None = None) -> None:
    done = subprocess.run(
        command, cwd=directory, env={**os.environ, **(extra or {})}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, errors="replace",
    )  # fmt: skip
    if done.returncode != 0:
        said = "\n".join(done.stdout.splitlines()[-40:])
        raise BuildFailed(f"{' '.join(command)} in {directory} ended with {done.returncode}:\n{said}")
