"""The host program of a whole graph, against stand-ins: our operators give what the twin gave, the libraries compute."""

import subprocess

import jax
import jax.numpy as jnp
import numpy as np
import op_host
import pytest
from jascend.backends.ascend.codegen.op_host import operator_type
from jascend.backends.ascend.twin.toolchain import compiler

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


# An operator of ours: it insists on the inputs that the twin had, and gives what the twin gave.
_OPERATOR = """
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>
#include "aclnn_@kernel@.h"
#include "runtime.h"
static std::vector<const aclTensor *> g_@kernel@;
static std::vector<char> Bytes(const std::string &path)
{
    std::vector<char> bytes;
    std::FILE *file = std::fopen(path.c_str(), "rb");
    for (int c; file != nullptr && (c = std::fgetc(file)) != EOF;) {
        bytes.push_back(static_cast<char>(c));
    }
    if (file != nullptr) {
        std::fclose(file);
    }
    return bytes;
}
aclnnStatus aclnn@operator@GetWorkspaceSize(@parameters@, uint64_t *size, aclOpExecutor **executor)
{
    g_@kernel@ = {@tensors@};
    *size = 0;
    *executor = reinterpret_cast<aclOpExecutor *>(&g_@kernel@);
    return 0;
}
aclnnStatus aclnn@operator@(void *, uint64_t, aclOpExecutor *, aclrtStream)
{
    const char *files[] = {@files@};
    for (size_t i = 0; i < g_@kernel@.size(); ++i) {
        const std::vector<char> bytes = Bytes(files[i]);
        if (i >= @inputs@) {
            std::memcpy(g_@kernel@[i]->data, bytes.data(), bytes.size());
            continue;
        }
        for (size_t at = 0; at < bytes.size(); at += 4) {
            float wanted, given;
            std::memcpy(&wanted, &bytes[at], 4);
            std::memcpy(&given, static_cast<char *>(g_@kernel@[i]->data) + at, 4);
            if (std::memcmp(&wanted, &given, 4) != 0 && !(std::fabs(wanted - given) <= 1e-4F * (1 + std::fabs(wanted)))) {
                return 561001;
            }
        }
    }
    return 0;
}
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    directory = tmp_path_factory.mktemp("graph")
    program = ja.compile(graph, *arguments())
    assert [c.callee for c in program.library_calls].count("aclnnPermute") == 1  # the others are passed as they lie
    program.write(directory, arguments=arguments())
    build = directory / "build"
    build.mkdir()
    sources = []
    for kernel in program.kernels:
        operator, signature = operator_type(kernel.name), kernel.signature
        count = len(signature.inputs) + len(signature.outputs)
        parameters = ", ".join(f"const aclTensor *t{i}" for i in range(count))
        (build / f"aclnn_{kernel.name}.h").write_text(
            '#pragma once\n#include "aclnn/acl_meta.h"\n'
            f"aclnnStatus aclnn{operator}GetWorkspaceSize({parameters}, uint64_t *size, aclOpExecutor **executor);\n"
            f"aclnnStatus aclnn{operator}(void *, uint64_t, aclOpExecutor *, aclrtStream);\n"
        )
        files = [f'"data/{kernel.name}/{t.name}.bin"' for t in (*signature.inputs, *signature.outputs)]
        text = _OPERATOR
        for name, value in {
            "kernel": kernel.name, "operator": operator, "parameters": parameters, "files": ", ".join(files),
            "inputs": len(signature.inputs), "tensors": ", ".join(f"t{i}" for i in range(count)),
        }.items():  # fmt: skip
            text = text.replace(f"@{name}@", str(value))
        sources.append(build / f"{kernel.name}.cpp")
        sources[-1].write_text(text)
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
