"""The command `jascend`: what it prints, its exit codes, and what it says about mistakes."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

from jascend import cli, cli_arrays

# As the installed script does; and a shell's background jobs ignore Ctrl-C, which these must not.
SCRIPT = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from jascend.cli import main
sys.exit(main())
"""
PROGRAM = [sys.executable, "-c", SCRIPT]
FILTER = ["model.py:filtered", "--spec", "f32[4,300]", "--spec", "f32[4]:0.9", "--spec", "i32[4]:50"]
MODEL = """
import jax.numpy as jnp
import jascend as ja

LIMIT = 3

def filtered(logits, p, k):
    return ja.apply_top_k_top_p(logits * 2.0, p, k)

def only(logits, k):
    return ja.apply_top_k_top_p(logits, k=k)

def mistaken(logits):
    return logits + undefined_name

def unsupported(logits):
    return jnp.cbrt(logits)
"""
KERNEL = """
#include "kernel_operator.h"
#include "size.h"
using namespace AscendC;

struct Amount {
    float value;
};

extern "C" __global__ __aicore__ void add(GM_ADDR x, GM_ADDR out, GM_ADDR workspace, GM_ADDR tiling)
{
    REGISTER_TILING_DEFAULT(Amount);
    GET_TILING_DATA_WITH_STRUCT(Amount, amount, tiling);
    TPipe pipe;
    TBuf<TPosition::VECCALC> buffer;
    pipe.InitBuffer(buffer, kSize * sizeof(float));
    LocalTensor<float> values = buffer.Get<float>();
    GlobalTensor<float> source, result;
    source.SetGlobalBuffer((__gm__ float *)x, kSize);
    result.SetGlobalBuffer((__gm__ float *)out, kSize);
    DataCopy(values, source, kSize);
#if ORDERED
    SetFlag<HardEvent::MTE2_V>(0);
    WaitFlag<HardEvent::MTE2_V>(0);
#endif
    Adds(values, values, amount.value, kSize);
    SetFlag<HardEvent::V_MTE3>(0);
    WaitFlag<HardEvent::V_MTE3>(0);
    DataCopy(result, values, kSize);
}
"""
ADD = ["add.cpp", "--include", "include", "--array", "f32[1024]:random", "--array", "f32[1024]:empty"]


@pytest.fixture
def run(capfd, monkeypatch, tmp_path):
    """Runs `main` in this process, in a directory with a model and a kernel: (exit code, stdout, stderr)."""
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "add.cpp").write_text(KERNEL)
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "size.h").write_text("constexpr uint32_t kSize = 1024;\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))

    def call(*arguments: str) -> tuple[int, str, str]:
        status = cli.main(list(arguments))
        sys.modules.pop("model", None)
        return status, *capfd.readouterr()

    return call


@pytest.fixture
def start():
    """Starts the program in a process, which does not outlive the test."""
    processes = []

    def call(*arguments: str, **options) -> subprocess.Popen:
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        process = subprocess.Popen([*PROGRAM, *arguments], **(pipes | options))
        processes.append(process)
        return process

    yield call
    for process in processes:
        process.kill()


# -- compile, explain, report ---------------------------------------------------------------------------------------


def test_compile_writes_the_project(run, tmp_path):
    status, out, err = run("compile", *FILTER, "-o", "out")
    assert (status, err) == (0, "")
    assert "jascend_filtered_apply_top_k_top_p" in out and "logits, p, k, out" in out
    assert out.endswith("written to out\n")
    assert (tmp_path / "out" / "op_kernel" / "jascend_filtered_apply_top_k_top_p.cpp").is_file()


def test_compile_json(run, tmp_path):
    status, out, err = run("compile", *FILTER, "--target", "ascend950", "--json")
    assert (status, err) == (0, "")
    summary = json.loads(out)
    assert (summary["name"], summary["target"], summary["directory"]) == ("filtered", "ascend950", None)
    (kernel,) = summary["kernels"]
    assert kernel["blocks"] == 4
    assert kernel["parameters"][0] == {"name": "logits", "dtype": "float32"}
    assert not (tmp_path / "out").exists()


def test_a_module_by_name_from_the_current_directory(run):
    assert run("compile", "model:filtered", *FILTER[1:])[0] == 0


PLAIN = """
import jax.numpy as jnp
from jax import lax

def largest(logits):
    return jnp.where(logits < lax.top_k(logits, 10)[0][..., -1:], -jnp.inf, logits)
"""


def test_forbid(run, tmp_path):
    (tmp_path / "plain.py").write_text(PLAIN)
    arguments = ["explain", "plain.py:largest", "--spec", "f32[4,300]"]
    status, out, _ = run(*arguments)
    assert status == 0 and "plain.py:6:" in out and "raise-sampling: passed: top-k, as apply_top_k_top_p" in out
    status, out, _ = run(*arguments, "--forbid", "raise-sampling")
    assert status == 0 and "jascend_largest_sort: sort" in out and "apply_top_k_top_p" not in out
    status, _, err = run(*arguments, "--forbid", "raising")
    assert status == 1 and "among raise-sampling, fuse-sampling, fuse-moe, fuse-elementwise, but has 'raising'" in err


def test_explain(run):
    status, out, err = run("explain", *FILTER)
    assert (status, err) == (0, "")
    assert "apply_top_k_top_p, with mul computed inside" in out
    assert "return ja.apply_top_k_top_p(logits * 2.0, p, k)" in out
    status, out, _ = run("explain", *FILTER, "--json")
    (outlined,) = [r for r in json.loads(out)["remarks"] if r["pass"] == "outline-kernels"]
    assert (status, outlined["kind"], os.path.basename(outlined["file"]), outlined["line"]) == (
        0,
        "passed",
        "model.py",
        8,
    )


def test_explain_keeps_what_is_inside_of_kernels_to_itself(run):
    _, short, _ = run("explain", *FILTER)
    assert "pipeline-loads: passed: loops that load an iteration ahead: " in short
    assert "remove-dead-ops" not in short and " cycles beside " not in short
    _, whole, _ = run("explain", *FILTER, "--remarks")
    assert "remove-dead-ops: passed: removed 'arith." in whole and " cycles of work: loaded an iteration ahead" in whole
    told = [json.loads(run("explain", *FILTER, "--json", *more)[1])["remarks"] for more in ([], ["--remarks"])]
    assert [len(remarks) for remarks in told] == [text.count(": remark: ") for text in (short, whole)]


def test_explain_tells_of_operators_that_nobody_uses(run, tmp_path):
    (tmp_path / "idle.py").write_text(
        "import jascend as ja\n\ndef kept(x):\n    ja.sort(x + 1)\n    return ja.sort(x)\n"
    )
    _, out, _ = run("explain", "idle.py:kept", "--spec", "f32[4,300]", "--forbid", "raise-sampling")
    assert "idle.py:4:4: remark: remove-dead-ops: passed: removed 'ascend.sort', whose results are not used" in out


PLUGIN = """
from jascend.passes import rewrite

@rewrite("ascend.apply_top_k_top_p")
def keep_all(op, rewriter):
    if op.p is not None or op.logits.type.shape[1] != 1:
        return "rows are longer than one"
    rewriter.replace_op(op, [op.logits])
"""


def test_a_plugin_takes_part(run, tmp_path):
    (tmp_path / "mine.py").write_text(PLUGIN)
    status, out, _ = run("explain", *FILTER, "--plugin", "mine.py")
    assert status == 0 and "keep-all: missed: rows are longer than one" in out
    assert "keep-all" not in run("explain", *FILTER)[1]


def test_report(run, tmp_path):
    only = ["model.py:only", "--spec", "f32[4,1]", "--spec", "i32[4]:50"]
    status, out, err = run("report", *only, "--html", "r.html", "--perfetto", "r.json")
    assert (status, err) == (0, "")
    assert "only on ascend910b, as modelled" in out and "GM bytes read" in out
    assert (tmp_path / "r.html").is_file() and json.loads((tmp_path / "r.json").read_text())

    (tmp_path / "mine.py").write_text(PLUGIN.replace("keep_all", "keep_every"))  # one name is one file's in a process
    status, out, err = run("report", *only, "--plugin", "mine.py", "--compare", "baseline", "--json")
    report = json.loads(out)
    assert (status, err) == (0, "")
    assert (report["launches"], report["baseline"]["launches"]) == (0, 1)
    assert report["baseline"]["gm_write_bytes"] == 16
    assert "baseline" in run("report", *only, "--plugin", "mine.py", "--compare", "baseline")[1]


# -- twin -----------------------------------------------------------------------------------------------------------


def test_findings_are_exit_code_one(run):
    line = next(i for i, text in enumerate(KERNEL.splitlines(), start=1) if "Adds(" in text)
    status, out, err = run("twin", *ADD, "--tiling", "0000803f", "--define", "ORDERED=0")
    assert (status, err) == (1, "")
    assert f"add.cpp:{line}: missing-sync: Adds (V) reads UB [0, 4096)" in out
    assert out.endswith("1 finding\n")
    status, out, _ = run("twin", *ADD, "--tiling", "0000803f", "--define", "ORDERED=0", "--json")
    (finding,) = json.loads(out)["findings"]
    assert (status, finding["kind"], finding["kernel_line"]) == (1, "missing-sync", line)


def test_a_sound_kernel(run, tmp_path):
    (tmp_path / "one.bin").write_bytes(np.float32(1).tobytes())
    status, out, err = run("twin", *ADD, "--tiling", "one.bin", "--define", "ORDERED", "--entry", "add")
    assert (status, err) == (0, "")
    assert "GM: 4,096 bytes read, 4,096 written" in out
    assert out.endswith("no findings\n")


def test_what_a_kernel_prints_and_a_header_read_before_it(run, tmp_path):
    (tmp_path / "value.h").write_text("constexpr int kValue = 7;\n")
    (tmp_path / "tell.cpp").write_text(
        '#include "kernel_operator.h"\nextern "C" __global__ __aicore__ void tell(GM_ADDR workspace, GM_ADDR tiling)\n'
        '{\n    AscendC::printf("the value [%d]\\n", kValue);\n}\n'
    )
    status, out, err = run("twin", "tell.cpp", "--before", "value.h", "--blocks", "2")
    assert (status, err) == (0, "")
    assert out.count("the value [7]\n") == 2
    assert json.loads(run("twin", "tell.cpp", "--before", "value.h", "--json")[1])["printed"].endswith("the value [7]\n")
    assert run("twin", "tell.cpp", "--before", "no.h") == (2, "", "jascend: error: --before: no file 'no.h'\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("missing.cpp", "no kernel source 'missing.cpp'"),
        ("add.cpp --target ascend310p", "unknown target 'ascend310p': there are ascend910b, ascend910_93, ascend950"),
        ("add.cpp --array f32", "--array 'f32' is no array: write DTYPE[DIM,...]"),
        ("add.cpp --tiling xyz", "--tiling 'xyz' is neither a file nor bytes in hexadecimal"),
        ("add.cpp --define 1=2", "--define '1=2' is neither NAME nor NAME=VALUE"),
        ("add.cpp --include nowhere", "--include: no directory 'nowhere'"),
        ("include/size.h", "which kernel of include/size.h? Say --entry NAME: none was found in its text"),
        ("add.cpp --blocks many", "Invalid value for '--blocks'"),
        ("add.cpp --bloks 3", "No such option: --bloks"),
        ("", "Missing argument 'KERNEL.cpp'"),
    ],
)
def test_mistakes_with_kernels(run, words, message):
    status, out, err = run("twin", *words.split())
    assert (status, out) == (2, "")
    assert message in err
    assert "Traceback" not in err


def test_a_kernel_that_does_not_compile(run):
    status, out, err = run("twin", "add.cpp")  # without --include
    assert (status, out) == (1, "")
    assert err.startswith("jascend: error: ") and "size.h" in err
    assert "Traceback" not in err


def test_without_a_compiler(run, monkeypatch):
    monkeypatch.setenv("CXX", "there-is-no-such-compiler")
    status, _, err = run("twin", *ADD, "--define", "ORDERED")
    assert status == 1 and "apt-get install g++" in err


# -- mistakes -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("model.py", "'model.py' is not MODULE:FN: write for example model:next_token"),
        ("missing.py:f", "no such file 'missing.py'"),
        ("missing:f", "no module 'missing' in "),
        ("missing.part:f", "no module 'missing.part' in "),
        ("model.py:filterd", "model.py has no 'filterd'; did you mean filtered?"),
        ("model.py:quixotic", "model.py has no 'quixotic'; its functions are filtered, only, mistaken, unsupported"),
        ("model.py:LIMIT", "model.py:LIMIT is not a function but of type int"),
        ("model.py:filtered", "0 --spec for model.py:filtered(logits, p, k): missing a required argument: 'logits'"),
        (
            "model.py:mistaken --spec f32[2] --spec f32[2]",
            "2 --spec for model.py:mistaken(logits): too many positional",
        ),
        ("model.py:mistaken --spec g32[2]", "--spec 'g32[2]': unknown dtype 'g32'; did you mean u32? (there are f64, "),
        ("model.py:mistaken --spec i64[2]", "--spec 'i64[2]': JAX has 64-bit types only with JAX_ENABLE_X64=1"),
        ("model.py:mistaken --spec f32[b-1]", "dimension 'b-1' is neither a whole number nor a symbol"),
        ("model.py:mistaken --spec f32[mod]", "--spec 'f32[mod]': syntax error in symbolic shape"),
        ("model.py:mistaken --spec f32[b] --constraint b", "--constraint Constraint parsing error"),
        ("model.py:mistaken --spec f32[b] --constraint c<=9", "--constraint 'c<=9': no --spec has a symbol 'c'"),
        ("model.py:mistaken --spec f32[2] --target x", "unknown target 'x': there are ascend910b, "),
    ],
)
def test_mistakes_with_functions(run, words, message):
    status, out, err = run("compile", *words.split())
    assert (status, out) == (2, "")
    assert err.startswith("jascend: error: ") and message in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("model.py:mistaken --spec f32[2]", "NameError: name 'undefined_name' is not defined\n  "),
        ("model.py:unsupported --spec f32[2,8]", "unsupported operation 'cbrt'"),
        ("model.py:filtered --spec f32[2,8] --spec f32[3] --spec i32[2]", "apply_top_k_top_p: p "),
        (
            "model.py:only --spec f32[2,8] --spec i32[2] --plugin no.py",
            "cannot load plugin 'no.py': no such file",
        ),
        ("model.py:only --spec f32[b,8] --spec i32[c]", "one symbolic dimension, the batch, but there are b of logits, c of k"),
        ("model.py:only --spec f32[2,8] --spec i32[2] -o model.py", "cannot write to 'model.py': "),
    ],
)
def test_what_the_compiler_refuses(run, words, message):
    status, out, err = run("compile", *words.split())
    assert (status, out) == (1, "")
    assert message in err
    assert "Traceback" not in err


def test_any_batch(run, tmp_path):
    arguments = ["model.py:only", "--spec", "f32[b,1]", "--spec", "i32[b]", "--constraint", "b <= 900"]
    status, out, err = run("compile", *arguments, "-o", "op", "--json")
    assert (status, err) == (0, "")
    (kernel,) = json.loads(out)["kernels"]
    assert kernel["blocks"] == 48 and (tmp_path / "op" / "op_host" / f"{kernel['name']}.cpp").exists()
    status, _, err = run("report", *arguments[:5])
    assert status == 2 and "'f32[b,1]': contents need a number in the place of 'b'" in err


def test_the_line_of_a_mistake_is_shown(run, tmp_path):
    _, _, err = run("compile", "model.py:mistaken", "--spec", "f32[2]")
    assert err.endswith("model.py:14: return logits + undefined_name\n")
    _, _, err = run("compile", "model.py:only", "--spec", "f32[2,8]", "--spec", "f32[2]")
    assert "apply_top_k_top_p: k " in err and "model.py:11: return ja.apply_top_k_top_p(logits, k=k)\n" in err
    (tmp_path / "typo.py").write_text("def f(x:\n    return x\n")
    status, _, err = run("compile", "typo.py:f")
    assert status == 1 and "SyntaxError" in err and "typo.py:1: def f(x:" in err
    (tmp_path / "needs.py").write_text("\nimport no_such_module\n")
    status, _, err = run("compile", "needs:f")
    assert (
        status == 1 and "cannot import needs: ModuleNotFoundError" in err and "needs.py:2: import no_such_module" in err
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--cores 0", "Invalid value for '--cores'"),
    ],
)
def test_mistakes_with_reports(run, words, message):
    status, out, err = run("report", *FILTER, *words.split())
    assert (status, out) == (2, "")
    assert message in err


# -- arrays ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("i32[3]:7", [7, 7, 7]),
        ("f32[2]:-0.5", [-0.5, -0.5]),
        ("bf16[]:inf", float("inf")),
        ("float16[2]:ones", [1, 1]),
        ("u8[2, 2]:range", [[0, 1], [2, 3]]),
        ("i64[1]:9007199254740993", [9007199254740993]),
        ("u64[1]:18446744073709551615", [18446744073709551615]),
        ("bool[2]:zeros", [False, False]),
        ("i16[2]:empty", [-1, -1]),
        ("f32[0,4]", np.zeros((0, 4))),
    ],
)
def test_arrays(text, expected):
    spec = cli_arrays.parse(text)
    array = spec.array()
    assert (array.dtype, array.shape) == (spec.dtype, spec.shape)
    assert np.array_equal(array, np.asarray(expected, array.dtype))


def test_random_arrays_repeat():
    for text in ("f32[100]", "i32[100]:-3..5", "bf16[100]:0.25..0.5"):
        spec = cli_arrays.parse(text)
        np.testing.assert_array_equal(spec.array(1), spec.array(1))
        assert not np.array_equal(spec.array(1), spec.array(2))
    assert set(cli_arrays.parse("i32[100]:-3..5").array()) == set(range(-3, 6))
    values = cli_arrays.parse("f32[100]:0.25..0.5").array()
    assert values.min() >= 0.25 and values.max() <= 0.5


def test_arrays_from_files(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(3, dtype=np.int32))
    assert list(cli_arrays.parse(f"i32[3]:@{tmp_path}/x.npy").array()) == [0, 1, 2]
    with pytest.raises(cli_arrays.BadSpec, match=r"holds int32\[3\], not float32\[3\]"):
        cli_arrays.parse(f"f32[3]:@{tmp_path}/x.npy").array()
    with pytest.raises(cli_arrays.BadSpec, match="cannot read"):
        cli_arrays.parse("f32[3]:@no.npy").array()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("f32[2", "is no array"),
        ("f32[a b]", "dimension 'a b' is neither a whole number nor a symbol"),
        ("f32[2,]", "dimension '' is neither a whole number nor a symbol"),
        ("f32[-1]", "dimension '-1' is neither"),
        ("f32[2]:some", "unknown contents 'some'"),
        ("f32[2]:5..1", "5 is above 1"),
        ("u8[2]:256", "256 is not of type uint8"),
        ("i32[2]:0.5", "0.5 is not of type int32"),
        ("f32[9999999999999]", "larger than a terabyte"),
    ],
)
def test_bad_arrays(text, message):
    with pytest.raises(cli_arrays.BadSpec, match=message):
        cli_arrays.parse(text)


# -- doctor ---------------------------------------------------------------------------------------------------------


def test_doctor(run, monkeypatch, tmp_path):
    monkeypatch.delenv("ASCEND_HOME_PATH", raising=False)
    status, out, err = run("doctor", "--json")
    checks = {check["name"]: check for check in json.loads(out)}
    assert (status, err) == (0, "")
    assert {checks[name]["state"] for name in ("Python", "JAX", "MLIR bindings", "C++ compiler", "cache")} == {"fine"}
    assert checks["CANN"]["state"] == "missing" and "set_env.sh" in checks["CANN"]["remedy"]

    monkeypatch.setenv("CXX", "/no/such/compiler")
    monkeypatch.setenv("ASCEND_HOME_PATH", str(tmp_path / "nowhere"))
    monkeypatch.setitem(sys.modules, "mlir.rewrite", None)
    status, out, err = run("doctor")
    assert (status, err) == (1, "")
    assert "MLIR bindings: " in out and "pip install 'xtc-mlir-python-bindings" in out
    assert "/no/such/compiler" in out and "C++ compiler: install g++" in out
    assert "nowhere is no directory" in out


# -- the process ----------------------------------------------------------------------------------------------------


def test_help_and_twin_do_not_load_jax():
    script = textwrap.dedent("""
        import sys
        from jascend import cli
        assert cli.main(["--help"]) == 0
        assert cli.main(["twin", "missing.cpp"]) == 2
        print(sorted({"jax", "jaxlib", "mlir"} & set(sys.modules)), file=sys.stderr)
    """)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines() == ["jascend: error: no kernel source 'missing.cpp'", "[]"]
    for command in ("compile", "explain", "report", "twin", "doctor"):
        assert command in done.stdout


def test_version_and_no_arguments(run):
    status, out, err = run("--version")
    assert (status, err) == (0, "") and out.startswith("jascend 0.")
    status, out, err = run()
    assert status == 2 and "Commands" in out + err


def test_ctrl_c_while_python_works(start, tmp_path):
    (tmp_path / "wait.py").write_text("import time\nprint('waiting', flush=True)\ntime.sleep(60)\n")
    process = start("compile", "wait.py:f", cwd=tmp_path)
    assert process.stdout.readline() == "waiting\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "")


def test_ctrl_c_while_a_kernel_runs(start, tmp_path):
    (tmp_path / "spin.cpp").write_text(
        '#include "kernel_operator.h"\nextern "C" int mkdir(const char *, unsigned int);\n'
        'extern "C" __global__ __aicore__ void spin(GM_ADDR workspace, GM_ADDR tiling) {\n'
        '    mkdir("started", 0777);\n    for (volatile int i = 0;; ++i) {}\n}\n'
    )
    process = start("twin", "spin.cpp", cwd=tmp_path)
    limit = time.monotonic() + 120
    while not (tmp_path / "started").exists() and time.monotonic() < limit and process.poll() is None:
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "")


def test_reader_that_leaves_is_no_error(start):
    process = start("twin", "--help")
    process.stdout.close()
    assert process.wait(timeout=60) in (0, 1, 141)  # help is printed by typer, which has a code of its own
    assert process.stderr.read() == ""
    process = start("--version")
    process.stdout.close()
    assert process.wait(timeout=60) == 141
    assert process.stderr.read() == ""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_full_disk_and_closed_output_are_errors(start):
    with open("/dev/full", "w", encoding="utf-8") as full:
        process = start("--version", stdout=full)
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (1, "jascend: error: cannot write the output: No space left on device\n")
    command = shlex.join([sys.executable, "-m", "jascend.cli", "--version"]) + " >&-"
    closed = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=60, check=False)
    assert (closed.returncode, closed.stderr) == (1, "jascend: error: cannot write the output: Bad file descriptor\n")
