"""The twin's Python interface: building, caching, launching, reporting."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from jascend.backends.ascend import twin
from jascend.backends.ascend.twin import toolchain

PROLOGUE = '#include "kernel_operator.h"\nusing namespace AscendC;\n'


def entry(name: str, arguments: int, body: str) -> str:
    """A kernel of `arguments` arrays a0, a1, ... with that body."""
    pointers = "".join(f"GM_ADDR a{i}, " for i in range(arguments))
    return f'extern "C" __global__ __aicore__ void {name}({pointers}GM_ADDR workspace, GM_ADDR tiling) {{\n{body}\n}}\n'


def build(directory: Path, text: str, target: str = "ascend910b", name: str = "kernel") -> twin.Library:
    source = directory / f"{name}.cpp"
    source.write_text(PROLOGUE + text)
    return twin.build(source, target=target)


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory):
    """One cache for all workers of a test run, away from the user's."""
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent
    before = os.environ.get("JASCEND_CACHE_DIR")
    os.environ["JASCEND_CACHE_DIR"] = str(base / "twin-cache")
    yield base / "twin-cache"
    if before is None:
        del os.environ["JASCEND_CACHE_DIR"]
    else:
        os.environ["JASCEND_CACHE_DIR"] = before


ROW_SUM = entry("double_rows", 2, """
  InitSocState();
  struct Tiling { uint32_t columns; float factor; };
  GET_TILING_DATA_WITH_STRUCT(Tiling, t, tiling);
  GlobalTensor<float> x, y;
  x.SetGlobalBuffer((__gm__ float*)a0 + GetBlockIdx() * t.columns, t.columns);
  y.SetGlobalBuffer((__gm__ float*)a1 + GetBlockIdx() * t.columns, t.columns);
  LocalTensor<float> row(TPosition::VECCALC, 0, 1024);
  DataCopyPad(row, x, DataCopyExtParams{1, uint32_t(t.columns * 4), 0, 0, 0}, DataCopyPadExtParams<float>{false, 0, 0, 0.0f});
  SetFlag<HardEvent::MTE2_V>(0);
  WaitFlag<HardEvent::MTE2_V>(0);
  Muls(row, row, t.factor, t.columns);
  SetFlag<HardEvent::V_MTE3>(0);
  WaitFlag<HardEvent::V_MTE3>(0);
  DataCopyPad(y, row, DataCopyExtParams{1, uint32_t(t.columns * 4), 0, 0, 0});
  PipeBarrier<PIPE_ALL>();""")
COPY_BYTES = entry("copy_bytes", 2, """
  InitSocState();
  GlobalTensor<uint8_t> x, y;
  x.SetGlobalBuffer((__gm__ uint8_t*)a0, 64);
  y.SetGlobalBuffer((__gm__ uint8_t*)a1, 64);
  LocalTensor<uint8_t> row(TPosition::VECCALC, 0, 64);
  DataCopy(row, x, 64);
  SetFlag<HardEvent::MTE2_MTE3>(0);
  WaitFlag<HardEvent::MTE2_MTE3>(0);
  DataCopy(y, row, 64);""")
KEYED = entry("keyed", 1, """
  InitSocState();
  GlobalTensor<int32_t> y;
  y.SetGlobalBuffer((__gm__ int32_t*)a0, 4);
  if (TILING_KEY_IS(1)) { y.SetValue(0, 11); }
  else if (TILING_KEY_IS(2000000)) { y.SetValue(0, 22); }""")
CRASH = entry("crash", 1, "  InitSocState();\n  *(volatile int*)(a0 + (1ull << 28)) = 1;") + entry(
    "overflow", 1, "  InitSocState();\n  volatile char big[64 << 20];\n  for (size_t i = 0; i < sizeof(big); i += 4096) big[i] = 1;") + entry(
    "divide", 1, "  InitSocState();\n  volatile int zero = 0;\n  *(volatile int*)a0 = 123456 / zero;")

HANG = entry("hang", 1, """  InitSocState();
  volatile bool on = true;
  if (GetBlockIdx() == 0) { while (on) { PipeBarrier<PIPE_V>(); } }
  if (GetBlockIdx() == 1) { while (on) {} }
  SyncAll();""")


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return build(tmp_path_factory.mktemp("basic"), ROW_SUM + COPY_BYTES + KEYED + CRASH + HANG)


def double_rows(library, x, y, **options):
    tiling = np.uint32(x.shape[1]).tobytes() + np.float32(2).tobytes()
    return library.launch("double_rows", [x, y], tiling=tiling, blocks=x.shape[0], **options)


def test_blocks_write_their_rows_in_place(library):
    x = np.arange(7 * 100, dtype=np.float32).reshape(7, 100)
    y = np.zeros_like(x)
    run = double_rows(library, x, y)
    np.testing.assert_array_equal(y, 2 * x)
    assert run.findings == [] and run.outputs[1] is y


def test_report_counts_instructions_and_bytes(library):
    x = np.ones((3, 100), np.float32)
    run = double_rows(library, x, np.zeros_like(x))
    total, block = run.report["total"], run.report["blocks"][2]
    assert (total["gm_read_bytes"], total["gm_write_bytes"]) == (1200, 1200)
    assert total["instructions"] == {"V": 3, "MTE2": 3, "MTE3": 3} and total["copies"] == 6
    assert block["pipes"]["V"]["apis"] == {"Muls": {"instructions": 1, "repeats": 2}}  # 100 floats: two repeats
    assert block["ub_bytes"] == 416  # 400 bytes land in 13 blocks of 32


def test_without_checking_results_are_the_same(library):
    x = np.random.default_rng(0).normal(size=(2, 64)).astype(np.float32)
    y = np.zeros_like(x)
    assert double_rows(library, x, y, check=False).findings == []
    np.testing.assert_array_equal(y, 2 * x)


@pytest.mark.parametrize("check", [True, False])
def test_out_of_range_write_is_held_back(library, check):
    memory = np.zeros((4, 100), np.float32)
    x, y = np.ones((3, 100), np.float32), memory[:2]
    run = double_rows(library, x, y, check=check)
    np.testing.assert_array_equal(memory, [[2] * 100, [2] * 100, [0] * 100, [0] * 100])
    assert [f.kind for f in run.findings] == (["gm-out-of-bounds"] if check else [])
    if check:
        (finding,) = run.findings
        assert "writes [800, 1200) of GM argument 1, which has 800 bytes" in finding.message
        assert (finding.block, finding.buffer, finding.byte_range) == (2, "GM argument 1", (800, 1200))
        assert finding.kernel_file.endswith("kernel.cpp")
        assert "DataCopyPad(y, row" in Path(finding.kernel_file).read_text().splitlines()[finding.kernel_line - 1]


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, np.int8])
def test_any_plain_dtype_goes_in_and_out(library, dtype):
    x = np.arange(64 // np.dtype(dtype).itemsize).astype(dtype)
    y = np.zeros_like(x)
    assert not library.launch("copy_bytes", [x, y], blocks=1).findings
    assert x.tobytes() == y.tobytes()


def test_same_array_twice_is_one_memory(library):
    x = np.ones((2, 64), np.float32)
    double_rows(library, x, x)
    np.testing.assert_array_equal(x, 2)


def test_tiling_keys_choose_a_branch(library):
    y = np.zeros(4, np.int32)
    library.launch("keyed", [y], tiling_key=2000000, blocks=1)
    assert y[0] == 22
    run = library.launch("keyed", [y], tiling_key=5, blocks=1)
    assert [f.kind for f in run.findings] == ["tiling"] and "key 5" in run.findings[0].message


def test_short_tiling_is_found(library):
    x = np.ones((1, 8), np.float32)
    run = library.launch("double_rows", [x, x.copy()], tiling=np.uint32(8).tobytes(), blocks=1)
    assert [f.kind for f in run.findings] == ["tiling"]


@pytest.mark.parametrize("name, word", [("crash", "stray pointer"), ("divide", "division"), ("overflow", "stack")])
def test_a_crashing_kernel_is_a_finding(library, name, word):
    run = library.launch(name, [np.zeros(4, np.int32)], blocks=2)
    assert [(f.kind, f.count) for f in run.findings] == [("crash", 2)] and word in run.findings[0].message


def test_a_kernel_that_does_not_end_is_a_finding(library):
    run = library.launch("hang", [np.zeros(4, np.int32)], blocks=4, timeout=0.2)
    assert sum(f.count for f in run.findings if f.kind == "timeout") == 4


def test_ctrl_c_ends_a_kernel_that_does_not_end(library):
    code = f"""
import os, signal, threading
import numpy as np
from jascend.backends.ascend import twin
library = twin.build({str(library.source)!r})
threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    library.launch("hang", [np.zeros(4, np.int32)], blocks=4)
except KeyboardInterrupt:
    y = np.zeros(4, np.int32)
    assert library.launch("keyed", [y], tiling_key=1, blocks=1).findings == [] and y[0] == 11
    print("interrupted")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "interrupted\n", done.stderr


def test_trace_is_the_program_in_order(library):
    x = np.ones((2, 100), np.float32)
    run = double_rows(library, x, np.zeros_like(x), trace=True)
    assert double_rows(library, x, np.zeros_like(x)).trace is None
    steps, places = run.trace[1].steps, run.trace[1].places
    told = [(twin.STEPS[s["step"]], twin.PIPES[s["pipe"]], places[s["place"]][0]) for s in steps]
    assert told == [("instruction", "MTE2", "DataCopyPad"), ("set", "MTE2", "SetFlag"), ("wait", "MTE2", "WaitFlag"),
                    ("instruction", "V", "Muls"), ("set", "V", "SetFlag"), ("wait", "V", "WaitFlag"),
                    ("instruction", "MTE3", "DataCopyPad"), ("barrier", "ALL", "PipeBarrier")]
    assert (steps["bytes"][0], steps["pieces"][0], steps["repeats"][3], steps["width"][3]) == (400, 1, 2, 4)
    assert steps["serial"][1] == steps["serial"][2] != steps["serial"][4] == steps["serial"][5]
    source = library.source.read_text().splitlines()
    assert "Muls(row" in source[places[steps["place"][3]][2] - 1]


@pytest.mark.parametrize("arrays, word", [
    ([np.zeros((4, 4), np.float32)[:, :2], np.zeros(8, np.float32)], "not C-contiguous"),
    ([np.zeros(8, np.float32)], "2 arrays, not 1"),
    ([1.0, np.zeros(8, np.float32)], "is a float"),
    ([np.array([None]), np.zeros(8, np.float32)], "Python objects"),
])
def test_arrays_that_do_not_fit(library, arrays, word):
    with pytest.raises(ValueError, match=word):
        library.launch("copy_bytes", arrays)


def test_overlapping_arrays_are_refused(library):
    x = np.zeros(100, np.uint8)
    with pytest.raises(ValueError, match="arguments 0 and 1 overlap"):
        library.launch("copy_bytes", [x[:64], x[32:96]])


def test_read_only_array_can_be_an_input_only(library):
    x, y = np.ones(64, np.uint8), np.zeros(64, np.uint8)
    x.flags.writeable = False
    library.launch("copy_bytes", [x, y], blocks=1)
    assert y.all()
    with pytest.raises(ValueError, match=r"kernel.cpp:\d+: DataCopy writes .* of GM argument 1, which is a read-only array"):
        library.launch("copy_bytes", [y, x], blocks=1)


def test_unknown_names(library, tmp_path):
    with pytest.raises(ValueError, match="has no kernel 'nothing'"):
        library.launch("nothing", [])
    with pytest.raises(ValueError, match="unknown target 'ascend310p'.*ascend910b"):
        twin.build(library.source, target="ascend310p")
    with pytest.raises(FileNotFoundError, match="absent.cpp"):
        twin.build(tmp_path / "absent.cpp")
    with pytest.raises(ValueError, match="blocks is 0"):
        library.launch("keyed", [np.zeros(4, np.int32)], blocks=0)


def test_cache_keys_on_content(tmp_path, cache):
    header = tmp_path / "inc" / "value.h"
    header.parent.mkdir()
    header.write_text("#define VALUE 3\n")
    source = tmp_path / "constant.cpp"
    source.write_text(PROLOGUE + '#include "value.h"\n' + entry("constant", 1, """
      GlobalTensor<int32_t> y; y.SetGlobalBuffer((__gm__ int32_t*)a0, 1); InitSocState(); y.SetValue(0, VALUE + PLUS);"""))

    def value(**defines):
        y = np.zeros(1, np.int32)
        library = twin.build(source, include_dirs=[header.parent], defines=defines)
        library.launch("constant", [y], blocks=1)
        return int(y[0]), library.path

    first, path = value(PLUS=0)
    assert (first, path.parent.parent) == (3, cache) and value(PLUS=0)[1] == path
    assert value(PLUS=10)[0] == 13
    header.write_text("#define VALUE 4\n")
    assert value(PLUS=0)[0] == 4
    header.write_text("#define VALUE 3\n")
    before = path.stat().st_mtime_ns
    assert value(PLUS=0) == (3, path) and path.stat().st_mtime_ns == before


def test_concurrent_builds_agree(tmp_path):
    source = tmp_path / "same.cpp"
    source.write_text(PROLOGUE + entry("same", 1, ""))
    with ThreadPoolExecutor(3) as pool:
        paths = list(pool.map(lambda _: twin.build(source).path, range(3)))
    assert len(set(paths)) == 1 and not list(paths[0].parent.glob(".same*"))


@pytest.mark.skipif("g++" not in toolchain.compiler()[0], reason="only g++ keeps what it has read of the headers")
def test_headers_are_read_once(library, tmp_path, cache, monkeypatch):
    """From the second kernel on; never where something may come before them; and an unusable copy does no harm."""
    commands = []
    run = toolchain._run
    monkeypatch.setattr(toolchain, "_run", lambda command, what: commands.append(" ".join(command)) or run(command, what))

    def last(text, name, **options):
        source = tmp_path / f"{name}.cpp"
        source.write_text(text + entry("plain", 0, f"  // {tmp_path}"))
        twin.build(source, **options)
        return commands[-1]

    assert "-include " + str(cache / "twin/api-") in last(PROLOGUE, "kernel")
    assert "-include twin/scalar.h" in last("#define MINE 1\n" + PROLOGUE, "defined")
    assert "-include twin/scalar.h" in last(PROLOGUE, "options", defines={"MINE": "1"})
    (tmp_path / "kernel_operator.h").write_text('#include "twin/macros.h"\n#include "twin/core.h"\n')
    assert "-include twin/scalar.h" in last('#include "kernel_operator.h"\n', "another")
    (tmp_path / "kernel_operator.h").unlink()
    broken = tmp_path / "broken.h"
    broken.write_text('#error "not this one"\n')
    monkeypatch.setattr(toolchain, "_precompiled", lambda options: broken)
    assert "-include twin/scalar.h" in last("// Again.\n" + PROLOGUE, "again")


def test_compile_error_shows_the_compilers_text(tmp_path):
    with pytest.raises(twin.CompileError, match=r"kernel.cpp:4:.*error.*NoSuchThing"):
        build(tmp_path, entry("broken", 0, "  NoSuchThing();"))


def test_no_compiler_says_what_to_install(library):
    code = f"""
from jascend.backends.ascend import twin
try:
    twin.build({str(library.source)!r})
except twin.CompilerNotFound as e:
    assert isinstance(e, RuntimeError)
    print(e)
"""
    env = {**os.environ, "PATH": "", "CXX": ""}
    text = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True).stdout
    for word in ("g++", "clang++", "apt-get install g++", "dnf install gcc-c++", "xcode-select --install", "CXX"):
        assert word in text
    named = subprocess.run([sys.executable, "-c", code], env={**env, "CXX": "no-such-cc"}, capture_output=True, text=True)
    assert "CXX='no-such-cc'" in named.stdout


def test_no_header_is_long():
    for path in toolchain.INCLUDE.rglob("*.h"):
        assert len(path.read_text().splitlines()) <= 600, path
