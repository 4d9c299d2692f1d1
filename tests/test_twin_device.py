"""What the twin adds to running a kernel: device code only, lines of Python, registered tilings, output, flags between
blocks, and kernels that never end."""

import re
import subprocess
import sys

import numpy as np
import pytest
from test_twin import PROLOGUE, build, cache, entry  # noqa: F401  (cache is a fixture)

from jascend.backends.ascend import twin
from jascend.backends.ascend.twin import device_code, library, registered

# ---- host-only C++ ----

HOST_ONLY = [
    ("double x = 1.0;", "double"),
    ("float x = float(double(2));", "double"),
    ("std::vector<int> v;", "std::vector"),
    ("auto x = std::exp(1.0f);", "std::exp.*Exp"),
    ("int* p = new int[4];", "new"),
    ("delete p;", "delete"),
    ("void* p = malloc(4);", "malloc"),
    ("throw 1;", "throw"),
    ("try { f(); } catch (...) {}", "try"),
    ("std::cout << 1;", "std::cout.*printf"),
    ("struct S { virtual void f(); };", "virtual"),
    ("auto& t = typeid(int);", "typeid"),
]
DEVICE = [
    "S(const S&) = delete;", "if (std::is_same<T, double>::value) {}", "std::conditional_t<true, int, float> x;",
    "std::uint32_t n = std::numeric_limits<int32_t>::max();", "static_assert(std::is_integral_v<std::size_t>);",
    'const char* s = "double x = new int; // throw";', "pool.free(x); pool->malloc(1); Memory::free(y);",
    "char c = '\\'';", "using FP64 = double;", "int newer = retry + doubled;", 'auto s = R"(std::vector<double> v)";',
    "constexpr float f = 1.0;",
]


def found(text: str) -> list[str]:
    return device_code.problems(f'# 1 "k.cpp"\n{text}\n', lambda path: path == "k.cpp")


@pytest.mark.parametrize("text, says", HOST_ONLY)
def test_host_only_code_is_refused(text, says):
    (problem, *_) = found(text)
    assert re.match(f"k.cpp:1: error: .*{says}", problem)


@pytest.mark.parametrize("text", DEVICE)
def test_device_code_is_not(text):
    assert found(text) == []


def test_lines_are_those_of_the_users_files():
    text = """# 1 "k.cpp"
int a;
# 1 "h.h" 1
double h;
# 3 "k.cpp" 2

double b;
# 1 "/usr/include/vector" 1 3
double c;
"""
    problems = device_code.problems(text, lambda path: path in ("k.cpp", "h.h"))
    assert [problem.split(": ")[0] for problem in problems] == ["h.h:1", "k.cpp:4"]


def test_a_build_refuses_host_code_where_it_stands(tmp_path):
    (tmp_path / "inner.h").write_text("#pragma once\n#define REAL double\n#if 0\ndouble unused;\n#endif\n"
                                      "inline float half_of(float x) { return x / 2; }\n")
    (tmp_path / "k.cpp").write_text('#include <iostream>\n#include <type_traits>\n#include "inner.h"\n' + PROLOGUE
                                    + entry("k", 0, "  /* double */ REAL x = half_of(3);\n  std::cout << x;"))
    with pytest.raises(twin.CompileError) as error:
        twin.build(tmp_path / "k.cpp")
    lines = str(error.value).splitlines()[1:]
    assert [line.split(": error: ")[0] for line in lines] == [f"{tmp_path}/k.cpp:{n}" for n in (1, 7, 8)]
    assert "use float" in lines[1] and "AscendC::printf" in lines[2]


# ---- lines of Python ----

MARKED = """  InitSocState();
  LocalTensor<float> f(TPosition::VECCALC, 0, 64);
  // demo.py:12
  // Rows of the filter.
  Duplicate(f[4], 1.0f, 8);
  // other/model.py:30
  if (GetBlockIdx() == 0) {
    Adds(f[1], f[8], 1.0f, 8);
  }"""

# ---- tilings ----

OLD_TILING = """#include "register/tilingdata_base.h"
namespace optiling {
BEGIN_TILING_DATA_DEF(Inner)
TILING_DATA_FIELD_DEF(uint8_t, kind);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(InnerOp, Inner)
BEGIN_TILING_DATA_DEF(OldTiling)
TILING_DATA_FIELD_DEF(uint32_t, count);
TILING_DATA_FIELD_DEF(uint64_t, wide);
TILING_DATA_FIELD_DEF_ARR(uint16_t, 3, parts);
TILING_DATA_FIELD_DEF_STRUCT(Inner, inner);
END_TILING_DATA_DEF;
BEGIN_TILING_DATA_DEF(OldTilingSeven)
TILING_DATA_FIELD_DEF(float, count);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(OldWay, OldTiling)
REGISTER_TILING_DATA_CLASS(OldWay_7, OldTilingSeven)
}
"""
OLD_WAY = entry("old_way", 1, """  InitSocState();
  GET_TILING_DATA(t, tiling);
  GlobalTensor<float> y; y.SetGlobalBuffer((__gm__ float*)a0, 8);
  y.SetValue(0, t.count); y.SetValue(1, sizeof(t));""")
BY_KEY = """struct Few { uint32_t n; };
struct Many { uint64_t n, m; };
""" + entry("by_key", 1, """  InitSocState();
  REGISTER_TILING_DEFAULT(Few);
  REGISTER_TILING_FOR_TILINGKEY("TILING_KEY_VAR == 3", Many);
  GlobalTensor<DTYPE_Y> y; y.SetGlobalBuffer((__gm__ DTYPE_Y*)a0, 8);
  GET_TILING_DATA(t, tiling);
#if ORIG_DTYPE_Y == DT_FLOAT
  y.SetValue(0, sizeof(t)); y.SetValue(1, t.n);
#endif""")


def test_tilings_of_the_old_kind(tmp_path):
    (tmp_path / "old_way_tiling.h").write_text(OLD_TILING)
    (tmp_path / "old_way.cpp").write_text(PROLOGUE + OLD_WAY)
    lib = twin.build(tmp_path / "old_way.cpp", includes=[tmp_path / "old_way_tiling.h"])
    y = np.zeros(8, np.float32)
    run = lib.launch("old_way", [y], tiling=np.array([5, 0], np.uint32).tobytes() + bytes(24), blocks=1)
    assert run.findings == [] and list(y[:2]) == [5, 32]
    lib.launch("old_way", [y], tiling=np.array([2.5, 0], np.float32).tobytes(), tiling_key=7, blocks=1)
    assert list(y[:2]) == [2.5, 8]


def test_the_key_chooses_the_struct(tmp_path):
    (tmp_path / "by_key.cpp").write_text(PROLOGUE + BY_KEY)
    lib = twin.build(tmp_path / "by_key.cpp", defines={"DTYPE_Y": "float"})
    for key, size in [(0, 4), (3, 16), (4, 4)]:
        y = np.zeros(8, np.float32)
        lib.launch("by_key", [y], tiling=np.array([9, 0], np.uint64).tobytes(), tiling_key=key, blocks=1)
        assert list(y[:2]) == [size, 9]


@pytest.mark.parametrize("expression, holds", [
    ("TILING_KEY_VAR == 11", True), ("(TILING_KEY_VAR >= 12) && (TILING_KEY_VAR <= 15)", False),
    ("TILING_KEY_VAR & 0x2", True), ("!(TILING_KEY_VAR != 11UL) || 0", True), ("(TILING_KEY_VAR >> 1) % 5 == 0", True),
    ("-TILING_KEY_VAR + ~0 > 0", False),
])
def test_tiling_conditions(expression, holds):
    assert registered.holds(expression, 11) is holds


def test_a_tiling_condition_is_not_code():
    with pytest.raises(ValueError, match="cannot be read"):
        registered.holds("TILING_KEY_VAR ==", 0)
    with pytest.raises(ValueError, match="is not one of integers"):
        registered.holds("__import__('os')", 0)


# ---- output, flags, ends ----

PRINTS = """  InitSocState();
  GlobalTensor<half> x; x.SetGlobalBuffer((__gm__ half*)a0, 6);
  LocalTensor<int32_t> u(TPosition::VECCALC, 64, 8);
  CreateVecIndex(u, -2, 8);
  AscendC::printf("block %d of %s: %f %x\\n", int(GetBlockIdx()), "all", half(1.5f), 255u);
  if (GetBlockIdx()) return;
  PRINTF("two\\nlines");
  DumpTensor(u, 3, 4);
  uint32_t shape[] = {2, 2, 2};
  DumpTensor(x, 4, 6, ShapeInfo(3, shape));
  DumpTensor(u, 5, 1 << 30);"""
HEAD = """  InitSocState();
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIV_1_0);
  GlobalTensor<float> y; y.SetGlobalBuffer((__gm__ float*)a0, 1024);
  LocalTensor<float> f(TPosition::VECCALC, 0, 64), g(TPosition::VECCALC, 4096, 1024);
  int64_t me = GetBlockIdx(), all = GetBlockNum();
  Duplicate(f, float(me), 64); SetFlag<HardEvent::V_MTE3>(0); WaitFlag<HardEvent::V_MTE3>(0);
"""
NEXT = "DataCopy(g, y[(me + 1) % all * 16], 16);"
SET, WAIT = "CrossCoreSetFlag<0, PIPE_MTE3>(2); ", "CrossCoreWaitFlag(2); "
FLAGS = {
    # each block writes its part, and reads the next block's
    "flag_good": "DataCopy(y[me * 16], f, 16); " + SET + WAIT + NEXT,
    "flag_no_wait": "DataCopy(y[me * 16], f, 16); " + SET + NEXT,
    "flag_early": SET + "DataCopy(y[me * 16], f, 16); " + WAIT + NEXT,
    "flag_other_pipe": "DataCopy(y[me * 16], f, 16); CrossCoreSetFlag<0, PIPE_MTE2>(2); " + WAIT + NEXT,
    "flag_ordered_pipe": "DataCopy(y[me * 16], f, 16); SetFlag<HardEvent::MTE3_V>(0); WaitFlag<HardEvent::MTE3_V>(0); "
                         "CrossCoreSetFlag<0, PIPE_V>(2); " + WAIT + NEXT,
    # written again while the others may still read it
    "flag_reuse": "DataCopy(y[me * 16], f, 16); " + SET + WAIT + NEXT
                  + " PipeBarrier<PIPE_ALL>(); DataCopy(y[me * 16], f, 16);",
    "flag_twice": "DataCopy(y[me * 16], f, 16); " + SET + WAIT + NEXT + " CrossCoreSetFlag<0, PIPE_MTE2>(3); "
                  "CrossCoreWaitFlag(3); PipeBarrier<PIPE_ALL>(); DataCopy(y[me * 16], f, 16);",
    "flag_missing": "if (me) { " + SET + "} " + WAIT,
    "flag_left": SET,
    "flag_and_sync": "SyncAll(); CrossCoreSetFlag<0, PIPE_MTE3>(12); CrossCoreWaitFlag(12);",
    "flag_many": "for (int i = 0; i < 40; ++i) { " + SET + WAIT + "}",
    "flag_overflow": "for (int i = 0; i < 16; ++i) { " + SET + "} SyncAll(); "
                     "for (int i = 0; i < 16; ++i) { " + WAIT + "}",
    # a subset of the blocks meets; the other one goes on writing
    "sync_subset": """LocalTensor<int32_t> ub(TPosition::VECCALC, 32768, 64);
      GlobalTensor<int32_t> gm; gm.SetGlobalBuffer((__gm__ int32_t*)a0, 1024);
      if (me < 2) SyncAll(gm, ub, 2); if (me) DataCopy(y[512], f, 16);""",
}
ENDLESS = {
    "no_calls": "volatile bool on = true; while (on) {}",
    "no_copies": "volatile bool on = true; while (on) { Adds(f, f, 1.0f, 8); PipeBarrier<PIPE_V>(); }",
    "no_release": "volatile bool on = true; if (me == 0) { while (on) {} } SyncAll();",
}
STREAM = """
  const uint32_t columns = 151936, tile = 8192;
  GlobalTensor<float> x; x.SetGlobalBuffer((__gm__ float*)a0 + GetBlockIdx() * columns, columns);
  GlobalTensor<float> z; z.SetGlobalBuffer((__gm__ float*)a1 + GetBlockIdx() * columns, columns);
  LocalTensor<float> row(TPosition::VECCALC, 0, 8192);
  InitSocState();
  for (uint32_t at = 0; at < columns; at += tile) {
    const uint32_t n = columns - at < tile ? columns - at : tile;
    DataCopy(row, x[at], n); PipeBarrier<PIPE_ALL>();
    Adds(row, row, 1.0f, n); PipeBarrier<PIPE_ALL>();
    for (uint32_t i = 0; i < n; i += 64) DataCopyPad(z[at + i], row[i], DataCopyExtParams{1, 256, 0, 0, 0});
    PipeBarrier<PIPE_ALL>();
  }"""
WORKS = "for (int i = 0; i < 3000; ++i) { DataCopy(y[me * 16], f, 16); PipeBarrier<PIPE_ALL>(); } SyncAll();"


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    text = entry("marked", 0, MARKED) + entry("prints", 1, PRINTS)
    text += entry("works", 1, HEAD + WORKS) + entry("stream", 2, STREAM)
    for name, body in (FLAGS | ENDLESS).items():
        text += entry(name, 1, HEAD + "  " + body + "\n  PipeBarrier<PIPE_ALL>();")
    return build(tmp_path_factory.mktemp("device"), text)


def test_findings_name_the_line_of_python(kernels):
    one, two = kernels.launch("marked", [], blocks=1).findings[:2]
    assert (one.kind, one.python, two.python) == ("misaligned", "demo.py:12", "other/model.py:30")
    assert re.search(r"kernel\.cpp:\d+ \(demo\.py:12\): misaligned", str(one))


def test_a_finding_without_a_mark_names_none(kernels):
    findings = kernels.launch("flag_left", [np.zeros(1024, np.float32)], blocks=2).findings
    assert findings[0].python == ""


def test_output_is_text_of_the_run(kernels):
    run = kernels.launch("prints", [np.arange(6).astype(np.float16)], blocks=2)
    assert run.findings == [] and "printed" not in run.report["blocks"][0]
    lines = run.printed.splitlines()
    assert lines[:7] == ["[AIV Block 0/2] " + text for text in (
        "block 0 of all: 1.500000 ff", "two", "lines",
        "DumpTensor: desc=3, addr=0x40, data_type=int32, position=UB, dump_size=4", "[-2, -1, 0, 1]", lines[5][16:],
        "[[[0.000000, 1.000000],")]
    assert lines[-1] == "[AIV Block 1/2] block 1 of all: 1.500000 ff" and "[4.000000, 5.000000]," in lines[8]
    assert lines[9] == "[AIV Block 0/2] [-, -]]]" and len(run.printed) < 100_000


def flags(kernels, name, blocks=4):
    run = kernels.launch(name, [np.zeros(1024, np.float32)], blocks=blocks)
    return {f.kind for f in run.findings}, run


@pytest.mark.parametrize("name", ["flag_good", "flag_ordered_pipe", "flag_twice", "flag_many"])
def test_flags_between_blocks_order_them(kernels, name):
    kinds, run = flags(kernels, name)
    assert kinds == set(), run.describe()


@pytest.mark.parametrize("name, kind, says", [
    ("flag_no_wait", "block-race", "of block"), ("flag_early", "block-race", "of block"),
    ("flag_other_pipe", "block-race", "of block"), ("flag_reuse", "block-race", "writes"),
    ("flag_missing", "block-sync", r"CrossCoreWaitFlag\(2\) waits for ever|a block ended"),
    ("flag_left", "event-unwaited", "CrossCoreSetFlag"), ("flag_and_sync", "event-id", "flags 11 to 14"),
    ("flag_overflow", "block-sync", "ends at 15"), ("sync_subset", "block-race", "writes")])
def test_flags_that_do_not(kernels, name, kind, says):
    kinds, run = flags(kernels, name, 3 if name == "sync_subset" else 4)
    assert kind in kinds and kinds <= {kind, "event-unwaited"}, run.describe()
    assert any(re.search(says, f.message) for f in run.findings if f.kind == kind), run.describe()


@pytest.mark.parametrize("name, says", [("no_calls", "without a call of the API"), ("no_copies", "without a copy"),
                                        ("no_release", "without a call")])
def test_an_endless_kernel_is_a_finding_without_a_timeout(kernels, monkeypatch, name, says):
    monkeypatch.setattr(library, "PATIENCE", 0.1)
    run = kernels.launch(name, [np.zeros(1024, np.float32)], blocks=2)
    timeouts = [f for f in run.findings if f.kind == "timeout"]
    assert sum(f.count for f in timeouts) == 2 and all(says in f.message for f in timeouts), run.describe()


def test_a_kernel_that_copies_on_is_left_alone(kernels, monkeypatch):
    monkeypatch.setattr(library, "PATIENCE", 0.02)  # seconds; a call takes microseconds, and the whole far longer
    assert flags(kernels, "works", 2)[0] == set()


def test_a_large_vocabulary_is_little_work(kernels):
    """[8, 151936] floats, every check on: as many calls as the kernel makes, and memory in proportion to the arrays."""
    code = f"""
import numpy as np, resource
from jascend.backends.ascend import twin
kernels = twin.build({str(kernels.source)!r})
x = np.ones((8, 151936), np.float32)
y = np.zeros_like(x)
kernels.launch("stream", [x[:1], y[:1]], blocks=1)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
run = kernels.launch("stream", [x, y], blocks=8)
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
assert run.findings == [] and (y == 2).all(), run.describe()
total = run.report["total"]
print(grown // 1024, total["gm_read_bytes"], total["gm_write_bytes"], total["instructions"])
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    grown, read, written, instructions = out.split(maxsplit=3)
    assert int(read) == int(written) == 8 * 151936 * 4
    assert instructions.strip() == str({"V": 8 * 19, "MTE2": 8 * 19, "MTE3": 8 * 151936 // 64})
    assert int(grown) < 40  # MB; the arrays take 10, and a core's state 1 or 2


def test_the_process_survives(kernels, tmp_path):
    """Crashes, deadlocks and endless loops, one after the other and on threads, and Python goes on."""
    code = f"""
import numpy as np
from concurrent.futures import ThreadPoolExecutor
from jascend.backends.ascend import twin
from jascend.backends.ascend.twin import library
library.PATIENCE = 0.1
kernels = twin.build({str(kernels.source)!r})
names = ["no_calls", "flag_missing", "no_release", "flag_good"] * 2
with ThreadPoolExecutor(4) as pool:
    runs = list(pool.map(lambda name: kernels.launch(name, [np.zeros(1024, np.float32)], blocks=4), names))
print([bool(run.findings) for run in runs])
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == str([True, True, True, False] * 2)
