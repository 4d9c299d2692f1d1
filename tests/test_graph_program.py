"""The host program of a whole graph, against stand-ins: our operators give what the twin gave, the libraries compute."""

import subprocess

import jax
import jax.numpy as jnp
import numpy as np
import op_host
import pytest
from jascend.backends.ascend.codegen import aclnn
from jascend.backends.ascend.codegen import graph as emitter
from jascend.backends.ascend.plan import LibraryCall, Plan, TensorType
from jascend.backends.ascend.twin.toolchain import compiler
from jascend.dialect.libraries import LIBRARY
from jascend.dialect.rules import Shaped
from operators_of_ours import operators_of_ours

import jascend as ja


def graph(ids, table, norm, weights, experts, sizes):
    x = table[ids]
    x = x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True)) * norm
    wide = jax.nn.silu(x @ weights[1].T)
    rows = jax.lax.ragged_dot(wide, experts.swapaxes(1, 2), sizes)
    return rows, rows.reshape(2, -1), x.T, jnp.cumprod(table, 1)


def arguments():
    rng = np.random.default_rng(0)
    shapes = ((30, 24), (24,), (2, 40, 24), (3, 16, 40))
    floats = [rng.normal(size=shape).astype(np.float32) for shape in shapes]
    return np.array([3, 29, 0, 7, 7, 1], np.int32), *floats, np.array([2, 0, 3], np.int32)


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    directory = tmp_path_factory.mktemp("graph")
    program = ja.compile(graph, *arguments())
    assert [c.callee for c in program.library_calls].count("aclnnPermute") == 1  # the others are passed as they lie
    program.write(directory, arguments=arguments())
    return built(program, directory)


def built(program, directory):
    build = directory / "build"
    build.mkdir()
    sources = operators_of_ours(program, build, directory / "test/data")
    includes = ["-I", str(op_host.DATA / "include"), "-I", str(op_host.DATA), "-I", str(build)]
    sources += [op_host.DATA / "runtime.cpp", op_host.DATA / "libraries.cpp", directory / "test/graph.cpp"]
    command = [*compiler(), *op_host.WARNINGS, "-Wno-unused-parameter", *includes, "-o", str(build / "graph")]
    done = subprocess.run([*command, *map(str, sources)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return directory


def run(project, *told):
    return subprocess.run([str(project / "build/graph"), *told], cwd=project / "test", capture_output=True, text=True)


def test_the_graph_passes(project):
    """Every operator had the inputs that the twin had; all that was made has been given back."""
    done = run(project)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert done.stdout.splitlines() == [f"output{i}: same" for i in range(4)] + ["graph of 6 arguments: pass"]


def test_a_stacked_weight_is_passed_as_it_lies(project):
    text = (project / "test/graph.cpp").read_text()
    assert "A part of it, in place." in text and text.count('"aclnnJascend') == 3  # places, norm, activation


def test_one_program_serves_any_batch(tmp_path):
    """It is told the rows; else they are those of the data that it was written with. Of the rows 20 are kept at most."""

    def layer(x, ids, weight):
        routed = ja.moe_init_routing(x, ids, expert_num=4, active_num=20)
        return routed.expanded_x @ weight, routed.expanded_row_idx

    rng = np.random.default_rng(1)
    x, weight = (rng.normal(size=shape).astype(np.float32) for shape in ((12, 8), (8, 5)))
    ids = rng.integers(0, 4, (12, 2)).astype(np.int32)
    (rows,) = jax.export.symbolic_shape("rows")
    specs = (jax.ShapeDtypeStruct((rows, *a.shape[1:]), a.dtype) for a in (x, ids))
    program = ja.compile(layer, *specs, jax.ShapeDtypeStruct(weight.shape, weight.dtype))
    directory = program.write(tmp_path, arguments=(x[:4], ids[:4], weight))
    text = (directory / "test/graph.cpp").read_text()
    assert "rows = argc > 2 ? static_cast<int64_t>(std::atoll(argv[2])) : 4;" in text
    assert "{(2 * rows < 20 ? 2 * rows : 20), 8}" in text and "{2 * rows}" in text
    built(program, directory)
    done = run(directory)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    program.write(directory, arguments=(x, ids, weight))
    assert run(directory, "0", "4").returncode == 2
    done = run(directory, "0", "12")
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert done.stdout.splitlines()[-1] == "graph of 3 arguments: pass"


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


BYTES = Shaped((4, 8), "int8")
WIDE = Shaped((4, 8), "float32")
LIST = Shaped((5,), "int32")
# Operands of each operator of the libraries, and its dimensions.
CALLS = {
    "aclnnMatmul": ([WIDE, Shaped((8, 3), "float32")], ()),
    "aclnnBatchMatMul": ([Shaped((2, 4, 8), "bfloat16"), Shaped((2, 8, 3), "bfloat16")], ()),
    "aclnnGroupedMatmulV5": ([WIDE, Shaped((5, 8, 3), "float32"), LIST], ()),
    "aclnnIndexSelect": ([WIDE, LIST], (1,)),
    "aclnnIndexCopy": ([WIDE, LIST, Shaped((4, 5), "float32")], (1,)),
    "aclnnScatterAdd": ([WIDE, Shaped((4, 5), "int32"), Shaped((4, 5), "float32")], (1,)),
    "aclnnSliceV2": ([WIDE], (1, 2, 7, 3)),
    "aclnnCat": ([WIDE, WIDE, WIDE], (0,)),
    "aclnnQuantMatmulV5": ([BYTES, Shaped((8, 3), "int8"), Shaped((1,), "float32")], ()),
    "aclnnFmodTensor": ([WIDE, WIDE], ()),
    "aclnnPermute": ([WIDE], (1, 0)),
    "aclnnFlip": ([WIDE], (0, 1)),
    **{name: ([WIDE], (1,)) for name in ("aclnnArgMax", "aclnnArgMin", "aclnnCumsum", "aclnnCumprod", "aclnnProdDim")},
    **{name: ([WIDE], (0, 1)) for name in ("aclnnReduceSum", "aclnnAmax", "aclnnAmin")},
}  # fmt: skip


def test_every_call_of_the_libraries_compiles(tmp_path):
    """As the program writes it, against the declarations that its page documents."""
    assert CALLS.keys() == LIBRARY.keys()
    arguments, steps = [], []
    number = sum(len(operands) for operands, _ in CALLS.values())
    for result, (name, (operands, dims)) in enumerate(CALLS.items(), start=number):
        types = [TensorType(x.shape, x.dtype) for x in operands]
        made = LIBRARY[name].result(operands, dims)
        places = range(len(arguments), len(arguments) + len(types))
        arguments += types
        steps.append(LibraryCall(name, tuple(places), result, tuple(types), TensorType(made.shape, made.dtype), dims))
    text = emitter.emit(Plan(number, tuple(steps), tuple(step.result for step in steps)), arguments, {})
    assert all(f"{name}GetWorkspaceSize(" in text and f'aclnnop/{LIBRARY[name].header}"' in text for name in CALLS)
    (tmp_path / "graph.cpp").write_text(text)
    (tmp_path / "harness.h").write_text(aclnn.files([])["test/harness.h"])
    command = [*compiler(), *op_host.WARNINGS, "-fsyntax-only", "-I", str(op_host.DATA / "include"), str(tmp_path / "graph.cpp")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
