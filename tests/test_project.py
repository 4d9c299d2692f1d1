"""Written projects: the build configures, the aclnn callers run, names from anywhere do no harm, equal bytes."""

import difflib
import json
import os
import re
import shutil
import subprocess
import sys

import jax
import ml_dtypes
import numpy as np
import op_host
import pytest
from jascend.backends.ascend import project as project_files
from jascend.backends.ascend.codegen import aclnn, direct, tiling
from jascend.backends.ascend.codegen.op_host import operator_type
from jascend.backends.ascend.codegen.template import fill
from jascend.backends.ascend.signature import Signature, Tensor
from jascend.dialect import rules
from jascend.backends.ascend.twin.toolchain import compiler

import jascend as ja

CANN = op_host.DATA / "cann"  # stand-ins for CANN's CMake modules
needs_cmake = pytest.mark.skipif(shutil.which("cmake") is None, reason="cmake is not installed")


def shape(*dims, dtype=np.float32):
    return jax.ShapeDtypeStruct(dims, dtype)


def both(logits, k, x, bias):
    return ja.apply_top_k_top_p(logits, k=k), ja.moe_gating_top_k(x, 4, bias=bias, norm_type=1)


SPECS = (shape(4, 300), shape(4, dtype=np.int32), shape(8, 64), shape(64))


def arrays():
    rng = np.random.default_rng(1)
    floats = [rng.normal(size=spec.shape).astype(np.float32) for spec in (SPECS[0], *SPECS[2:])]
    return floats[0], np.array([5, 0, 300, 7], np.int32), *floats[1:]


@pytest.fixture(scope="module")
def program():
    return ja.compile(both, *SPECS)


@pytest.fixture(scope="module")
def project(program, tmp_path_factory):
    return program.write(tmp_path_factory.mktemp("project"), arguments=arrays())


def files(directory):
    return {str(p.relative_to(directory)): p.read_bytes() for p in sorted(directory.rglob("*")) if p.is_file()}


def test_a_project_has_all_its_parts(program, project):
    names = [kernel.name for kernel in program.kernels]
    assert len(names) == 2
    per_kernel = ["op_host/{}.cpp", "op_kernel/{}.cpp", "op_kernel/{}_tiling.h", "test/{}.cpp"]
    expected = {path.format(name) for name in names for path in per_kernel} | {
        f"{operator_type(name)}.json" for name in names
    }
    expected |= {".jascend", "CMakeLists.txt", "CMakePresets.json", "build.sh", "README.md", "op_host/CMakeLists.txt"}
    expected |= {"op_kernel/CMakeLists.txt", "test/CMakeLists.txt", "test/README.md", "test/harness.h", "test/graph.cpp"}
    expected |= {f"test/data/graph/argument{i}.bin" for i in range(4)}
    expected |= {f"test/data/graph/output{i}.bin" for i in range(3)}
    expected |= {f"test/data/{names[0]}/{tensor}.bin" for tensor in ("logits", "k", "out")}
    expected |= {f"test/data/{names[1]}/{tensor}.bin" for tensor in ("x", "bias", "y", "expertIdx")}
    assert {name for name in files(project) if not name.startswith("ir/")} == expected
    assert os.access(project / "build.sh", os.X_OK)
    assert "@" not in (project / "README.md").read_text()


def test_the_same_program_gives_the_same_bytes(program, project, tmp_path):
    assert files(program.write(tmp_path / "again", arguments=arrays())) == files(project)


def test_a_project_over_another_one(program, project, tmp_path, monkeypatch):
    """Nothing stays of the earlier one but what is not its own; what an interruption leaves is not built."""
    other = ja.compile(lambda x: jax.nn.softmax(x), shape(4, 64))
    other.write(tmp_path, arguments=(np.ones((4, 64), np.float32),))
    (tmp_path / "notes.txt").write_text("mine")

    def full(path, content, mode=0o644, write=project_files.write_whole):
        if path.name.endswith(".json"):
            raise OSError(28, "No space left on device")
        write(path, content, mode)

    with monkeypatch.context() as patched, pytest.raises(OSError, match="No space left"):
        patched.setattr(project_files, "write_whole", full)
        program.write(tmp_path, arguments=arrays())
    assert not (tmp_path / "CMakeLists.txt").exists()
    program.write(tmp_path, arguments=arrays())
    assert files(tmp_path) == files(project) | {"notes.txt": b"mine"}
    (tmp_path / ".jascend").write_text("../outside\n/absolute\n")
    assert program.write(tmp_path, arguments=arrays()) and files(tmp_path).keys() == {*files(project), "notes.txt"}


@pytest.mark.parametrize(("soc", "spelled"), [(None, "ascend950"), ("ascend910_95", "ascend910_95")])
def test_names_that_toolkits_give_a_product(tmp_path, soc, spelled):
    program = ja.compile(
        lambda x, k: ja.apply_top_k_top_p(x, k=k), shape(4, 300), shape(4, dtype=np.int32), target="ascend950"
    )
    written = files(program.write(tmp_path, soc=soc))
    presets = json.loads(written["CMakePresets.json"])
    assert presets["configurePresets"][0]["cacheVariables"]["ASCEND_COMPUTE_UNIT"] == spelled
    assert f'.AddConfig("{spelled}")' in written["op_host/jascend_lambda_apply_top_k_top_p.cpp"].decode()
    kernel = written["op_kernel/jascend_lambda_apply_top_k_top_p.cpp"].decode()
    name, other = ("Compares(", "CompareScalar(") if soc is None else ("CompareScalar(", "Compares(")  # since 9.0
    assert name in kernel and other not in kernel


# -- the build --------------------------------------------------------------------------------------------------------


def configure(source, build, *options, **environment):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ASCEND")}
    command = ["cmake", "-S", str(source), "-B", str(build), *options]
    return subprocess.run(command, capture_output=True, text=True, env={**kept, **environment})


@needs_cmake
def test_cmake_says_what_is_missing(project, tmp_path):
    done = configure(project, tmp_path / "a")
    assert done.returncode != 0 and "CANN is missing: '' is no directory" in done.stderr
    (tmp_path / "old").mkdir()
    done = configure(project, tmp_path / "b", ASCEND_HOME_PATH=str(tmp_path / "old"))
    assert done.returncode != 0 and "has no CMake modules for operator projects" in " ".join(done.stderr.split())
    done = configure(project / "test", tmp_path / "c")
    assert done.returncode != 0 and "CANN is missing" in done.stderr
    (tmp_path / "cann" / "include" / "acl").mkdir(parents=True)
    (tmp_path / "cann" / "include" / "acl" / "acl.h").touch()
    done = configure(project / "test", tmp_path / "d", ASCEND_HOME_PATH=str(tmp_path / "cann"))
    assert done.returncode != 0 and "The operators are missing" in done.stderr


@needs_cmake
def test_cmake_configures_with_cann_s_modules(program, project, tmp_path):
    done = configure(project, tmp_path / "build", "-DASCEND_COMPUTE_UNIT=ascend910_93", ASCEND_HOME_PATH=str(CANN))
    assert done.returncode == 0, done.stderr
    assert "package jascend for ascend910_93" in done.stdout
    for kernel in program.kernels:
        sources = f"OP_TYPE;{operator_type(kernel.name)};KERNEL_DIR;./;KERNEL_FILE;{kernel.name}.cpp"
        assert f"call: npu_op_kernel_sources {sources}" in done.stdout


@needs_cmake
def test_presets_and_build_script(project, tmp_path):
    copy = shutil.copytree(project, tmp_path / "a name with spaces")
    done = subprocess.run(
        ["cmake", "--preset", "default", f"-DASCEND_CANN_PACKAGE_PATH={CANN}"], cwd=copy, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    shutil.rmtree(copy / "build_out")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ASCEND")}
    done = subprocess.run([str(copy / "build.sh")], capture_output=True, text=True, env=environment)
    assert done.returncode != 0 and "CANN is missing" in done.stderr


# -- callers ----------------------------------------------------------------------------------------------------------

_FAKE = """
#include <cstdio>
#include <vector>
#include "aclnn_@kernel@.h"
extern "C" void *TestData(const aclTensor *tensor);
static std::vector<const aclTensor *> g_outputs;
aclnnStatus aclnn@operator@GetWorkspaceSize(@parameters@, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    g_outputs = {@outputs@};
    *workspaceSize = @workspace@;
    *executor = reinterpret_cast<aclOpExecutor *>(&g_outputs);
    return @status@;
}
aclnnStatus aclnn@operator@(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream)
{
    if ((workspace == nullptr) != (workspaceSize == 0) || executor == nullptr || stream == nullptr) {
        return 561000;
    }
    const char *files[] = {@files@};
    for (size_t i = 0; i < g_outputs.size(); ++i) {
        std::FILE *file = std::fopen(files[i], "rb");
        char *to = static_cast<char *>(TestData(g_outputs[i]));
        for (int c; (c = std::fgetc(file)) != EOF;) {
            *to++ = static_cast<char>(c);
        }
        std::fclose(file);
    }
    return 0;
}
"""


def run_caller(project, kernel, build, *, outputs=None, workspace=64, status=0, arguments=()):
    """Builds and runs a kernel's caller. The operator, in place of CANN's build of it, copies files to its outputs."""
    signature, operator = kernel.signature, operator_type(kernel.name)
    parameters = ", ".join(f"const aclTensor *t{i}" for i in range(len(kernel.parameters)))
    tail = "uint64_t *workspaceSize, aclOpExecutor **executor"
    build.mkdir()
    (build / f"aclnn_{kernel.name}.h").write_text(
        '#pragma once\n#include "aclnn/acl_meta.h"\n'
        f"aclnnStatus aclnn{operator}GetWorkspaceSize({parameters}, {tail});\n"
        f"aclnnStatus aclnn{operator}(void *, uint64_t, aclOpExecutor *, aclrtStream);\n"
    )
    given = range(len(signature.inputs), len(kernel.parameters))
    paths = outputs or [project / f"test/data/{kernel.name}/{tensor.name}.bin" for tensor in signature.outputs]
    values = {
        "kernel": kernel.name,
        "operator": operator,
        "parameters": parameters,
        "workspace": workspace,
        "status": status,
    }
    outputs = ", ".join(f"t{i}" for i in given)
    quoted = ", ".join(f'"{path}"' for path in paths)
    (build / "fake.cpp").write_text(fill(_FAKE, outputs=outputs, files=quoted, **values))
    sources = [project / "test" / f"{kernel.name}.cpp", op_host.DATA / "runtime.cpp", build / "fake.cpp"]
    warnings = [flag for flag in op_host.WARNINGS if flag != "-Wextra"] + ["-Wextra", "-Wno-unused-parameter"]
    command = [
        *compiler(),
        *warnings,
        "-I",
        str(op_host.DATA / "include"),
        "-I",
        str(build),
        "-o",
        str(build / "caller"),
    ]
    done = subprocess.run([*command, *map(str, sources)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return subprocess.run([str(build / "caller"), *arguments], cwd=project / "test", capture_output=True, text=True)


def test_callers_pass_on_the_expected_outputs(program, project, tmp_path):
    for number, kernel in enumerate(program.kernels):
        done = run_caller(project, kernel, tmp_path / str(number), workspace=64 * number)
        assert (done.returncode, done.stderr) == (0, "")
        assert f"{operator_type(kernel.name)}: pass" in done.stdout


def test_callers_notice_what_differs(program, project, tmp_path):
    kernel = program.kernels[1]
    y, ids = (project / f"test/data/{kernel.name}/{tensor.name}.bin" for tensor in kernel.signature.outputs)
    wrong = np.fromfile(ids, np.int32)
    wrong[3] += 1
    wrong.tofile(tmp_path / "ids.bin")
    close = np.fromfile(y, np.float32) * np.float32(1 + 1e-6)
    close.tofile(tmp_path / "y.bin")
    done = run_caller(project, kernel, tmp_path / "build", outputs=[tmp_path / "y.bin", tmp_path / "ids.bin"])
    assert done.returncode == 1
    assert done.stdout.splitlines()[:2] == ["y: same", "expertIdx: 1 of 32 differ, the first at 3"]


def test_callers_report_failures(program, project, tmp_path):
    kernel = program.kernels[0]
    done = run_caller(project, kernel, tmp_path / "a", status=161002)
    assert done.returncode == 2 and "GetWorkspaceSize failed with 161002" in done.stderr
    done = subprocess.run([str(tmp_path / "a" / "caller"), "7"], cwd=project / "test", capture_output=True, text=True)
    assert done.returncode == 2 and "aclrtSetDevice failed with 107001" in done.stderr
    done = subprocess.run([str(tmp_path / "a" / "caller")], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2 and "logits.bin: 4800 bytes are needed, 0 are there" in done.stderr


@pytest.mark.parametrize("dtype", op_host.DTYPES)
def test_tensors_of_every_dtype_in_a_caller(dtype):
    array = np.arange(5).astype(np.dtype(getattr(ml_dtypes, dtype, dtype)))
    line = aclnn.tensor_line(Tensor("x", dtype, (5,)), 1, 0)
    assert line.startswith('        {"x", {5}, ACL_') and line.endswith("}},")
    bits = 4 if dtype in ("int4", "float4_e2m1fn") else 8 * array.itemsize
    assert len(aclnn.memory(array)) == -(-5 * bits // 8)


def test_four_bit_elements_lie_in_pairs_the_first_one_low():
    assert aclnn.memory(np.array([1, -1, 7], ml_dtypes.int4)) == bytes([0xF1, 0x07])


# -- the light project ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def light(program, tmp_path_factory):
    return program.write(tmp_path_factory.mktemp("light"), project="direct", arguments=arrays())


def test_a_light_project_has_all_its_parts(program, light):
    names = [kernel.name for kernel in program.kernels]
    expected = {f"{name}{end}" for name in names for end in (".asc", "_tiling.h")} | {
        ".jascend",
        "CMakeLists.txt",
        "README.md",
        "harness.h",
    }
    expected |= {f"data/{names[0]}/{tensor}.bin" for tensor in ("logits", "k", "out")}
    expected |= {f"data/{names[1]}/{tensor}.bin" for tensor in ("x", "bias", "y", "expertIdx")}
    assert {name for name in files(light) if not name.startswith("ir/")} == expected
    assert "aclnn" not in (light / "harness.h").read_text()


@pytest.mark.parametrize("cores_wait", [False, True])
def test_kernels_for_a_direct_launch(cores_wait):
    """The text is the same, but for the entry, the tiling data by value, and the workspace, all the kernel's."""
    arguments = (shape(1, 128256), shape(1, dtype=np.int32)) if cores_wait else SPECS[:2]
    (kernel,) = ja.compile(lambda x, k: ja.apply_top_k_top_p(x, k=k), *arguments).kernels
    assert kernel.cores_wait == cores_wait
    text = direct.kernel_text(kernel.source, kernel.name, cores_wait)
    changed = list(difflib.unified_diff(kernel.source.splitlines(), text.splitlines(), lineterm="", n=0))
    gone = [line[1:].strip() for line in changed if line.startswith("-") and line not in ("-{", "--- ")]
    come = [line[1:].strip() for line in changed if line.startswith("+") and line not in ("+{", "+++ ")]
    name, struct = kernel.name, tiling.struct_name(kernel.name)
    scratch, own = ([line for line in lines if "SetGlobalBuffer" in line] for lines in (gone, come))
    assert own == [line.replace("GetUserWorkspace(workspace)", "workspace") for line in scratch]
    assert bool(scratch) == cores_wait
    gone, come = ([line for line in lines if "SetGlobalBuffer" not in line] for lines in (gone, come))
    assert come == [
        f"{'__schedmode__(1) __global__ __mix__(0, 1)' if cores_wait else '__global__ __vector__'} void {name}(",
        f"GM_ADDR x, GM_ADDR k, GM_ADDR out, GM_ADDR workspace, {struct} tilingData)",
    ]
    assert gone[:2] == [
        f'extern "C" __global__ __aicore__ void {name}(',
        "GM_ADDR x, GM_ADDR k, GM_ADDR out, GM_ADDR workspace, GM_ADDR tiling)",
    ]
    macros = [line.partition("(")[0] for line in gone[2:5]]
    assert macros == ["KERNEL_TASK_TYPE_DEFAULT", "REGISTER_TILING_DEFAULT", "GET_TILING_DATA_WITH_STRUCT"]
    assert len(gone) == 5


_LAUNCHED = """
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>
#include "@kernel@_tiling.h"
#define GM_ADDR uint8_t *
static uint32_t g_blocks;
static void Launch(uint32_t blocks, void *, void *) { g_blocks = blocks; }
static void @kernel@(@parameters@, uint8_t *, const @struct@ &data)
{
    uint32_t fields[sizeof(data) / 4];
    std::memcpy(fields, &data, sizeof(data));
    std::printf("%u", g_blocks);
    for (const uint32_t field : fields) {
        std::printf(" %u", field);
    }
    std::printf("\\n");
    uint8_t *outputs[] = {@outputs@};
    const char *files[] = {@files@};
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); ++i) {
        std::ifstream file(files[i], std::ios::binary);
        const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
        std::memcpy(outputs[i], bytes.data(), bytes.size());
    }
}
"""


def test_programs_with_a_direct_launch(program, light, tmp_path):
    """What follows the kernel, compiled with a function of C++ in its place, which copies the expected outputs."""
    for kernel in program.kernels:
        signature, inputs = kernel.signature, len(kernel.signature.inputs)
        parameters = ", ".join(f"uint8_t *t{i}" for i in range(len(kernel.parameters)))
        stub = fill(
            _LAUNCHED, kernel=kernel.name, struct=tiling.struct_name(kernel.name), parameters=parameters,
            outputs=", ".join(f"t{i}" for i in range(inputs, len(kernel.parameters))),
            files=", ".join(f'"data/{kernel.name}/{tensor.name}.bin"' for tensor in signature.outputs),
        )  # fmt: skip
        host = (light / f"{kernel.name}.asc").read_text().partition(direct.MARK)[2]
        host, launches = re.subn(
            rf"{kernel.name}<<<(.*), (.*), (.*)>>>\(", rf"Launch(\1, \2, \3);\n    {kernel.name}(", host
        )
        assert launches == 1
        source = tmp_path / f"{kernel.name}.cpp"
        source.write_text(stub + host)
        command = [
            *compiler(),
            *op_host.WARNINGS,
            "-Wno-unused-parameter",
            "-I",
            str(op_host.DATA / "include"),
            "-I",
            str(light),
        ]
        command += ["-o", str(tmp_path / kernel.name), str(source), str(op_host.DATA / "runtime.cpp")]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        done = subprocess.run([str(tmp_path / kernel.name)], cwd=light, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        launched = " ".join(
            map(str, (kernel.blocks, *kernel.tiling.values()))
        )  # the product has 48 cores, as the stand-in
        assert done.stdout.splitlines()[0] == launched
        assert done.stdout.splitlines()[-1] == f"{kernel.name}: pass"


@needs_cmake
def test_cmake_of_a_light_project_says_what_is_missing(light, tmp_path):
    done = configure(light, tmp_path / "build")
    assert done.returncode != 0 and "CANN is missing" in done.stderr


# -- names from anywhere ----------------------------------------------------------------------------------------------

_HOSTILE = "end\\\n#error injected\n"


def test_hostile_names(tmp_path):
    """A file, a function and arguments whose names would end a comment, a string or a statement."""
    path = f"/tmp/{_HOSTILE}; rm -rf ${{HOME}}\"')/* @kernel@.py"
    names = {"path": path}
    text = "def f(Executor, workspace_size):\n  return ja.apply_top_k_top_p(Executor / 2, k=workspace_size)"
    exec(compile(text, path, "exec"), {"ja": ja}, names)
    function = names["f"]
    function.__name__ = f'x"; system("true"); //{_HOSTILE}'
    program = ja.compile(function, shape(4, 300), shape(4, dtype=np.int32))
    (kernel,) = program.kernels
    written = program.write(tmp_path / "project")
    assert kernel.name.isidentifier() and operator_type(kernel.name).startswith("Jascend")
    for name, content in files(written).items():
        if not name.startswith(("ir/", "README")):
            assert not any(line.startswith(b"#error") for line in content.splitlines()), name
            assert b"rm -rf" not in content or name.startswith("op_kernel/"), name  # in a comment
    host = op_host.Host(written / "op_host" / f"{kernel.name}.cpp", tmp_path / "host.so")
    assert [line.split()[0] for line in host.definition()[1:3]] == ["executorTensor", "workspaceSizeTensor"]
    x, k = np.ones((4, 300), np.float32), np.array([1, 2, 3, 4], np.int32)
    np.testing.assert_array_equal(program(x, k), x / 2)  # its text compiles


def test_templates_say_what_is_missing():
    with pytest.raises(KeyError, match="place"):
        fill("@a@", a=1, b=2)
    with pytest.raises(KeyError):
        fill("@a@ @b@", a=1)
    assert fill("@a@ ${b} {c} 100% a@b.c", a="@b@") == "@b@ ${b} {c} 100% a@b.c"


def test_a_call_without_rows_leaves_no_data(tmp_path):
    program = ja.compile(lambda x, k: ja.apply_top_k_top_p(x, k=k), shape(0, 300), shape(0, dtype=np.int32))
    written = files(program.write(tmp_path, arguments=(np.zeros((0, 300), np.float32), np.zeros(0, np.int32))))
    assert not any(name.startswith("test/data") for name in written)


def test_signatures_of_fixed_kernels_say_so():
    signature = Signature((Tensor("x", "float32", (4, 8)),), (), 4)
    assert not signature.any_rows
    assert Tensor("x", "float32", (rules.Rows(), 8)).shape(3) == (3, 8)


_WRITES = """
import sys
import jax, jax.numpy as jnp, numpy as np
import jascend as ja

def head(x, weight, table, k):
    scale = jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6)
    return ja.apply_top_k_top_p((x * scale * weight) @ table.T, k=k), x + weight

shapes = ((4, 40), (40,), (100, 40))
specs = [jax.ShapeDtypeStruct(shape, np.float32) for shape in shapes] + [jax.ShapeDtypeStruct((4,), np.int32)]
program = ja.compile(head, *specs)
program.write(sys.argv[1] + "/custom_op")
program.write(sys.argv[1] + "/direct", project="direct")
"""


def test_equal_bytes_from_any_process(tmp_path):
    """Not only from the same one: no order of a set or of addresses gets into a file."""
    (tmp_path / "head.py").write_text(_WRITES)
    for seed in ("0", "1"):
        own = {"PYTHONHASHSEED": seed, "JASCEND_CACHE_DIR": str(tmp_path / f"cache{seed}")}
        command = [sys.executable, str(tmp_path / "head.py"), str(tmp_path / seed)]
        subprocess.run(command, env={**os.environ, **own}, check=True)
    first, second = files(tmp_path / "0"), files(tmp_path / "1")
    assert len(first) > 20 and first == second
