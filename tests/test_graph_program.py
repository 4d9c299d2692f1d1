"""The host program of a whole graph, against stand-ins: our operators give what the twin gave, the libraries compute."""

import subprocess

import jax
import jax.numpy as jnp
import numpy as np
import op_host
import pytest
from jascend.backends.ascend.twin.toolchain import compiler
from operators_of_ours import operators_of_ours

import jascend as ja


def graph(ids, table, norm, weight, experts, sizes):
    x = table[ids]
    x = x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True)) * norm
    wide = jax.nn.silu(x @ weight.T)
    rows = jax.lax.ragged_dot(wide, experts.swapaxes(1, 2), sizes)
    return rows, rows.reshape(2, -1), x.T


def arguments():
    rng = np.random.default_rng(0)
    shapes = ((30, 24), (24,), (40, 24), (3, 16, 40))
    floats = [rng.normal(size=shape).astype(np.float32) for shape in shapes]
    return np.array([3, 29, 0, 7, 7, 1], np.int32), *floats, np.array([2, 0, 3], np.int32)


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    directory = tmp_path_factory.mktemp("graph")
    program = ja.compile(graph, *arguments())
    assert [c.callee for c in program.library_calls].count("aclnnPermute") == 1  # the others are passed as they lie
    program.write(directory, arguments=arguments())
    build = directory / "build"
    build.mkdir()
    sources = operators_of_ours(program, build, directory / "test/data")
    includes = ["-I", str(op_host.DATA / "include"), "-I", str(op_host.DATA), "-I", str(build)]
    sources += [op_host.DATA / "runtime.cpp", op_host.DATA / "libraries.cpp", directory / "test/graph.cpp"]
    command = [*compiler(), *op_host.WARNINGS, "-Wno-unused-parameter", *includes, "-o", str(build / "graph")]
    done = subprocess.run([*command, *map(str, sources)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return directory


def run(project):
    return subprocess.run([str(project / "build/graph")], cwd=project / "test", capture_output=True, text=True)


def test_the_graph_passes(project):
    """Every operator had the inputs that the twin had; all that was made has been given back."""
    done = run(project)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert done.stdout.splitlines() == ["output0: same", "output1: same", "output2: same", "graph of 6 arguments: pass"]


def test_it_notices_what_differs(project):
    path = project / "test/data/graph/output1.bin"
    original = path.read_bytes()
    wrong = np.frombuffer(original, np.float32).copy()
    wrong[5] += 1
    path.write_bytes(wrong.tobytes())
    try:
        done = run(project)
        assert done.returncode == 1 and "output1: 1 of 96 differ, the first at 5" in done.stdout
    finally:
        path.write_bytes(original)


def test_it_says_which_call_failed(project):
    path = project / "test/data/graph/argument1.bin"
    original = path.read_bytes()
    path.write_bytes(original[::-1])
    try:
        done = run(project)
        assert done.returncode == 2 and "aclnnJascendGraphRowWise" in done.stderr and "failed with 561001" in done.stderr
    finally:
        path.write_bytes(original)


def test_lines_are_short(project):
    assert max(map(len, (project / "test/graph.cpp").read_text().splitlines())) <= 125
