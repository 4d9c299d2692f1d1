"""`program.build` and what runs the callers, with stand-ins for CANN's programs that record their calls."""

import hashlib
import os

import jax
import numpy as np
import pytest
from jascend.backends.ascend import toolkit

import jascend as ja

_CMAKE = """#!/bin/sh
echo "cmake $* in $(pwd)" >> "$RECORD"
case "$*" in
  *--target*) [ -n "$NO_PACKAGE" ] || { printf '#!/bin/sh\\necho "package $*" >> "$RECORD"\\n' > build_out/custom_opp_linux_x86_64.run
    chmod +x build_out/custom_opp_linux_x86_64.run; } ;;
  *build_out*) [ -z "$BROKEN" ] || { echo "error: ccec says no"; exit 3; }; mkdir -p build_out ;;
  *-S*) mkdir -p build ;;
  *--build*) printf '#!/bin/sh\\necho "caller $LD_LIBRARY_PATH" >> "$RECORD"\\nexit %s\\n' "${DIFFERS:-0}" > build/test_one; chmod +x build/test_one ;;
esac
"""


@pytest.fixture(scope="module")
def program():
    return ja.compile(lambda x: x * 2, jax.ShapeDtypeStruct((4, 8), np.float32))


@pytest.fixture
def cann(tmp_path, monkeypatch):
    """A toolkit in which every piece is there, and a cmake that records its calls."""
    home, programs = tmp_path / "cann", tmp_path / "bin"
    pieces = ("compiler/tikcpp/ascendc_kernel_cmake/x", "compiler/ccec_compiler/bin/ccec", *toolkit._RUNTIME)
    for path in (home / piece for piece in pieces):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    programs.mkdir()
    (programs / "cmake").write_text(_CMAKE)
    (programs / "cmake").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("RECORD", str(tmp_path / "record"))
    monkeypatch.setenv(toolkit.HOME, str(home))
    return home


def test_a_build_and_its_callers(program, cann, tmp_path):
    package = program.build(tmp_path / "project", jobs=2)
    assert package == tmp_path / "project/build_out/custom_opp_linux_x86_64.run"
    assert toolkit.run_callers(tmp_path / "project", package) == ["test_one"]
    project = tmp_path / "project"
    installed = project / "installed" / hashlib.sha256(package.read_bytes()).hexdigest()[:12]
    operators = installed / "vendors/jascend/op_api"
    assert (tmp_path / "record").read_text().splitlines() == [
        f"cmake -S . -B build_out -DCMAKE_BUILD_TYPE=Release -DASCEND_COMPUTE_UNIT=ascend910b in {project}",
        f"cmake --build build_out --target binary package --parallel 2 in {project}",
        f"package --quiet --install-path={installed}",
        f"cmake -S . -B build -Dpackage={operators} in {project}/test",
        f"cmake --build build in {project}/test",
        f"caller {operators}/lib:{os.environ.get('LD_LIBRARY_PATH', '')}",
    ]


def test_what_goes_wrong_is_said(program, cann, tmp_path, monkeypatch):
    monkeypatch.setenv("BROKEN", "1")
    with pytest.raises(toolkit.BuildFailed, match=r"(?s)build.sh .* ended with 3:\nerror: ccec says no"):
        program.build(tmp_path / "a")
    monkeypatch.delenv("BROKEN")
    monkeypatch.setenv("NO_PACKAGE", "1")
    with pytest.raises(toolkit.BuildFailed, match="the build made no package"):
        program.build(tmp_path / "b")
    monkeypatch.delenv("NO_PACKAGE")
    monkeypatch.setenv("DIFFERS", "1")
    with pytest.raises(toolkit.BuildFailed, match="test_one in .* ended with 1"):
        toolkit.run_callers(tmp_path / "c", program.build(tmp_path / "c"))


def test_without_a_toolkit(program, tmp_path, monkeypatch):
    monkeypatch.delenv(toolkit.HOME, raising=False)
    with pytest.raises(toolkit.ToolkitNotFound, match="ASCEND_HOME_PATH is not set: install CANN's toolkit and source its"):
        program.build(tmp_path / "project")
    assert not (tmp_path / "project").exists()
    monkeypatch.setenv(toolkit.HOME, str(tmp_path / "gone"))
    with pytest.raises(toolkit.ToolkitNotFound, match="gone', which is no directory"):
        program.build(tmp_path / "project")


def test_every_missing_piece_is_listed(program, cann, tmp_path, monkeypatch):
    (tmp_path / "bare").mkdir()
    monkeypatch.setenv(toolkit.HOME, str(tmp_path / "bare"))
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    with pytest.raises(toolkit.ToolkitNotFound) as caught:
        program.build(tmp_path / "project")
    modules, compiler, cmake = str(caught.value).splitlines()[1:]
    assert "no CMake modules for operator projects" in modules and "no compiler in" in compiler and "cmake is not" in cmake
    with pytest.raises(toolkit.ToolkitNotFound, match="libascendcl.so': install the runtime"):
        toolkit.home(runtime=True)


def test_another_name_of_the_product(cann, tmp_path):
    program = ja.compile(lambda x: x * 2, jax.ShapeDtypeStruct((4, 8), np.float32), target="ascend950")
    program.build(tmp_path / "project", soc="ascend910_95")
    assert "-DASCEND_COMPUTE_UNIT=ascend910_95" in (tmp_path / "record").read_text()
