"""Calls of a program on a device: its package and the libraries through acl, with stand-ins that keep memory apart.

The stand-in of an operator of ours insists on the inputs that the twin had and gives what the twin gave; those of the
libraries compute; that of the runtime refuses memory that is no device memory and aborts where something is not given back.
"""

import os
import subprocess

import jax
import numpy as np
import op_host
import pytest
from jascend.backends.ascend import device, toolkit
from jascend.backends.ascend.twin.toolchain import compiler
from operators_of_ours import operators_of_ours
from test_graph_program import arguments, graph

import jascend as ja

INCLUDES = ["-I", str(op_host.DATA / "include"), "-I", str(op_host.DATA)]


def library(path, *sources, includes=()):
    path.parent.mkdir(parents=True, exist_ok=True)
    command = [*compiler(), "-shared", "-fPIC", *INCLUDES, *includes, "-o", str(path), *map(str, sources)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def operators(program, project, path, status=561001):
    """The library of a package, and the package, which installs it."""
    build = project / "stand_ins"
    build.mkdir(exist_ok=True)
    sources = operators_of_ours(program, build, project / "test/data", status)
    library(path, *sources, includes=["-I", str(build)])
    package = project / "build_out/custom_opp_linux_x86_64.run"
    package.parent.mkdir(exist_ok=True)
    package.write_text(
        '#!/bin/sh\nto="${2#--install-path=}/vendors/jascend/op_api/lib"\n'
        f'mkdir -p "$to" && cp "{path}" "$to/libcust_opapi.so"\n'
    )
    package.chmod(0o755)
    return package


@pytest.fixture(scope="module")
def cann(tmp_path_factory):
    home = tmp_path_factory.mktemp("a toolkit")
    for piece in ("compiler/tikcpp/ascendc_kernel_cmake/x", "compiler/ccec_compiler/bin/ccec", "include/acl/acl.h"):
        (home / piece).parent.mkdir(parents=True, exist_ok=True)
        (home / piece).touch()
    library(home / "lib64/libascendcl.so", op_host.DATA / "runtime.cpp")
    library(home / "lib64/libopapi.so", op_host.DATA / "libraries.cpp")
    (home / "empty.cpp").touch()
    library(home / "lib64/libnnopbase.so", home / "empty.cpp")
    return home


@pytest.fixture(scope="module")
def built(cann, tmp_path_factory):
    project = tmp_path_factory.mktemp("a project")
    program = ja.compile(graph, *arguments())
    program.write(project, arguments=arguments())
    return program, operators(program, project, project / "stand_ins/libcust_opapi.so")


@pytest.fixture(autouse=True)
def environment(cann, monkeypatch):
    monkeypatch.setenv(toolkit.HOME, str(cann))
    monkeypatch.setenv("ASCEND_CUSTOM_OPP_PATH", "/elsewhere")


def test_calls_run_on_the_device(built):
    program, package = built
    assert program.device == "twin"
    program.load(package)
    try:
        assert program.device == "npu:0"
        vendor, elsewhere = os.environ["ASCEND_CUSTOM_OPP_PATH"].split(":")
        assert elsewhere == "/elsewhere" and vendor.startswith(f"{package.parent.parent}/installed/")
        for _ in range(2):
            for actual, expected in zip(program(*arguments()), jax.jit(graph)(*arguments()), strict=True):
                assert (actual.shape, actual.dtype) == (expected.shape, expected.dtype)
                np.testing.assert_allclose(actual, expected, rtol=2e-5, atol=2e-5)
        wrong = arguments()
        wrong[1][:] = 7
        with pytest.raises(device.DeviceError, match=r"aclnnJascendGraphRowWise\w* failed with 561001"):
            program(*wrong)
        program(*arguments())  # after a failure as before
        with pytest.raises(ValueError, match="ids must be int32"):
            program(*[np.zeros(3)] * len(wrong))
    finally:
        program.unload()
    assert program.device == "twin"


def test_what_is_missing_is_said(built, cann, tmp_path, monkeypatch):
    program, package = built
    monkeypatch.setenv("STAND_IN_DEVICES", "0")
    assert device.device_count(cann) == 0
    with pytest.raises(device.DeviceError, match="there is no device 0: the runtime finds 0"):
        program.load(package)
    monkeypatch.setenv("STAND_IN_DEVICES", "2")
    with pytest.raises(device.DeviceError, match="there is no device 2: the runtime finds 2"):
        program.load(package, device=2)
    monkeypatch.delenv("STAND_IN_DEVICES")
    empty = tmp_path / "project/build_out/custom_opp_linux_x86_64.run"
    empty.parent.mkdir(parents=True)
    empty.write_text("#!/bin/sh\n")
    empty.chmod(0o755)
    with pytest.raises(device.DeviceError, match="libcust_opapi.so': the package was not installed"):
        program.load(empty)
    empty.write_text("#!/bin/sh\necho no room\nexit 4\n")
    with pytest.raises(toolkit.BuildFailed, match=r"(?s)ended with 4:\nno room"):
        program.load(empty)
    monkeypatch.delenv(toolkit.HOME)
    with pytest.raises(toolkit.ToolkitNotFound, match="ASCEND_HOME_PATH is not set"):
        program.load(package)
    (tmp_path / "bare/lib64").mkdir(parents=True)
    (tmp_path / "bare/lib64/libascendcl.so").write_text("no library")
    assert device.device_count(tmp_path / "bare") == 0
    with pytest.raises(device.DeviceError, match="libascendcl.so of CANN's runtime cannot be loaded: .*; source the set_env.sh"):
        device.Device(tmp_path / "bare", None)
    assert program.device == "twin"


def test_a_function_that_is_not_there(built):
    """A package of another program."""
    _, package = built
    other = ja.compile(lambda x: x * 2, np.ones((3, 40), np.float32))
    other.load(package)
    try:
        with pytest.raises(device.DeviceError, match=r"no function 'aclnnJascend\w+GetWorkspaceSize' in .*libcust_opapi.so"):
            other(np.ones((3, 40), np.float32))
    finally:
        other.unload()


def test_programs_share_a_device(built):
    """One that gives it back leaves it to the other."""
    program, package = built
    other = ja.compile(graph, *arguments())
    program.load(package)
    other.load(package)
    program.unload()
    try:
        expected = jax.jit(graph)(*arguments())
        np.testing.assert_allclose(other(*arguments())[0], expected[0], rtol=2e-5, atol=2e-5)
    finally:
        other.unload()


def test_a_build_loads_where_there_is_a_device(built, tmp_path, monkeypatch):
    program, package = built
    monkeypatch.setattr(toolkit, "build", lambda project, *, soc, jobs: package)
    monkeypatch.setattr(toolkit.shutil, "which", lambda *_, **__: "/a/cmake")
    monkeypatch.setenv("STAND_IN_DEVICES", "0")
    assert program.build(tmp_path / "project") == package and program.device == "twin"
    monkeypatch.delenv("STAND_IN_DEVICES")
    program.build(tmp_path / "project")
    assert program.device == "npu:0"
    program.unload()


def test_types_in_memory(cann):
    """What goes to the device comes back, also of elements that share bytes."""
    arrays = [
        np.arange(5, dtype=np.int8), np.array(True), np.zeros((0, 3), np.float16),
        np.arange(6, dtype=np.float32).reshape(2, 3).astype(jax.numpy.bfloat16), np.arange(7).astype(jax.numpy.int4),
    ]  # fmt: skip
    board = device.Device(cann, None)
    try:
        plan = device.Plan(len(arrays), (), tuple(range(len(arrays))))
        for actual, expected in zip(board.run(plan, arrays, {}, lambda _: False), arrays, strict=True):
            assert (actual.shape, actual.dtype) == (expected.shape, expected.dtype)
            np.testing.assert_array_equal(actual.astype(np.float32), expected.astype(np.float32))
    finally:
        board.close()
    with pytest.raises(device.DeviceError, match="has been given back"):
        board.run(plan, arrays, {}, lambda _: False)
