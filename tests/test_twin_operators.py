"""What sources written for the operator packages need of the twin: optional arguments, tilings as the host declares
them, conventions of their build."""

import sys

import numpy as np
import pytest
from test_twin import PROLOGUE, build, cache, entry  # noqa: F401  (cache is a fixture)

from jascend.backends.ascend import twin
from jascend.backends.ascend.report import profile_launch

OPTIONAL = entry("optional", 2, """  InitSocState();
  GlobalTensor<float> y; y.SetGlobalBuffer((__gm__ float*)a1, 8);
  if (a0 == nullptr) { y.SetValue(0, 1.0f); return; }
  GlobalTensor<float> x; x.SetGlobalBuffer((__gm__ float*)a0, 8);
  y.SetValue(0, x.GetValue(0));""")
CARELESS = entry("careless", 2, """  InitSocState();
  GlobalTensor<float> x, y; x.SetGlobalBuffer((__gm__ float*)a0, 8); y.SetGlobalBuffer((__gm__ float*)a1, 8);
  y.SetValue(0, x.GetValue(0));""")


def test_an_argument_may_be_absent(tmp_path):
    lib = build(tmp_path, OPTIONAL + CARELESS)
    y, x = np.zeros(8, np.float32), np.full(8, 7, np.float32)
    run = lib.launch("optional", [None, y], blocks=1)
    assert run.findings == [] and y[0] == 1 and run.outputs[0] is None
    lib.launch("optional", [x, y], blocks=1)
    assert y[0] == 7
    assert profile_launch(lib, "optional", [None, y], blocks=1).roofline.compulsory_bytes == y.nbytes
    (finding,) = lib.launch("careless", [None, y], blocks=1).findings
    assert finding.kind == "gm-out-of-bounds" and "null" in finding.message


HOST_TILING = """#include "register/tilingdata_base.h"
namespace optiling {
BEGIN_TILING_DATA_DEF(HostTiling)
TILING_DATA_FIELD_DEF(uint32_t, count);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(Spelled, HostTiling)
}
"""
SPELLED = """struct Worker {
  uint32_t count;
  __aicore__ inline explicit Worker(const HostTiling* tiling) : count(tiling->count) {}
};
""" + entry("spelled", 1, """  InitSocState();
  GET_TILING_DATA(t, tiling);
  GlobalTensor<float> y; y.SetGlobalBuffer((__gm__ float*)a0, 8);
  y.SetValue(0, Worker(&t).count);""")


# With what belongs to the host: other headers, a class, a struct that another header declares.
HOST_ONLY = """#include "tiling/tiling_api.h"  // BEGIN_TILING_DATA_DEF stands below
#include "part.h"
""" + HOST_TILING.replace("TILING_DATA_FIELD_DEF(uint32_t, count);", """TILING_DATA_FIELD_DEF(uint32_t, count);
TILING_DATA_FIELD_DEF_STRUCT(Part, part)
TILING_DATA_FIELD_DEF_ARR(uint16_t, kParts, parts)
TILING_DATA_FIELD_DEF(float, last)""") + """namespace optiling {
struct CompileInfo { platform_ascendc::SocVersion version; };
}
"""
PART = """#include "register/tilingdata_base.h"
namespace optiling {
constexpr int kParts = 4;
BEGIN_TILING_DATA_DEF(Part)
TILING_DATA_FIELD_DEF(int64_t, rows);
END_TILING_DATA_DEF;
REGISTER_TILING_DATA_CLASS(PartOp, Part)
}
"""


@pytest.mark.parametrize("header", [HOST_TILING, HOST_ONLY], ids=["structs", "host"])
def test_the_hosts_tiling_has_no_namespace_in_the_kernel(tmp_path, header):
    (tmp_path / "part.h").write_text(PART)
    (tmp_path / "spelled_tiling.h").write_text(header)
    (tmp_path / "spelled.cpp").write_text(PROLOGUE + SPELLED)
    lib = twin.build(tmp_path / "spelled.cpp", includes=[tmp_path / "spelled_tiling.h"])
    y = np.zeros(8, np.float32)
    run = lib.launch("spelled", [y], tiling=np.array([5] + 7 * [0], np.uint32).tobytes(), blocks=1)
    assert run.findings == [] and y[0] == 5


LAST_BYTES = entry("last_bytes", 1, """  InitSocState();
  LocalTensor<float> t(TPosition::VECCALC, 196608 - 512, 128);
  Duplicate(t, 3.0f, 128);
  SetFlag<HardEvent::V_MTE3>(0); WaitFlag<HardEvent::V_MTE3>(0);
  GlobalTensor<float> y; y.SetGlobalBuffer((__gm__ float*)a0, 128);
  DataCopy(y, t, 128);
  PipeBarrier<PIPE_ALL>();""")


def test_the_frameworks_bytes_of_ub_are_there_but_not_the_kernels(tmp_path):
    y = np.zeros(128, np.float32)
    run = build(tmp_path, LAST_BYTES).launch("last_bytes", [y], blocks=1)
    assert {finding.kind for finding in run.findings} == {"ub-capacity"} and (y == 3).all()


VECTORS = entry("vectors", 1, """  InitSocState();
  LocalTensor<float> f(TPosition::VECCALC, 0, 64), g(TPosition::VECCALC, 256, 64);
  Duplicate(f, 1.0f, 64);
  Adds(g, f, 1.0f, 64);""")
# With --cce-auto-sync the scalar unit waits at GetValue for Adds, and so for what Adds reads; Muls it need not wait for.
WAITS = """  InitSocState();
  LocalTensor<float> f(TPosition::VECCALC, 0, 64), g(TPosition::VECCALC, 256, 64), h(TPosition::VECCALC, 512, 64);
  GlobalTensor<float> y; y.SetGlobalBuffer((__gm__ float*)a0, 64);
  Duplicate(f, 1.0f, 64);
  Adds(g, f, 1.0f, 64);
  float s = g.GetValue(0);
"""
COPY = "  DataCopy(f, y, 64);\n"
STORES = """  InitSocState();
  LocalTensor<float> f(TPosition::VECCALC, 0, 64);
  GlobalTensor<float> y; y.SetGlobalBuffer((__gm__ float*)a0, 64);
  y.SetValue(0, 1.0f);
  DataCacheCleanAndInvalid<float, CacheLine::SINGLE_CACHE_LINE, DcciDst::CACHELINE_OUT>(y);
  DataCopy(f, y, 64);
"""


def test_what_the_compiler_and_the_hardware_order(tmp_path):
    sources = VECTORS + entry("waits", 1, WAITS + COPY) + entry("late", 1, WAITS + "  Muls(h, f, s, 64);\n" + COPY)
    lib = build(tmp_path, sources + entry("stores", 1, STORES))
    y = np.zeros(64, np.float32)

    def kinds(name, **options):
        return [finding.kind for finding in lib.launch(name, [y], blocks=1, **options).findings]

    assert kinds("vectors") == ["missing-sync"] and kinds("vectors", auto_sync=True) == []
    assert kinds("waits", auto_sync=True) == [] and kinds("late", auto_sync=True) == ["missing-sync"]
    assert kinds("stores", auto_sync=True) == ["missing-sync"]  # not among the calls that the compiler follows
    on_950 = build(tmp_path, VECTORS, target="ascend950", name="on_950")
    assert on_950.launch("vectors", [y], blocks=1).findings == []


def test_the_api_by_parts(tmp_path):
    """A source may name parts of the API, and find the user's own header of such a name."""
    (tmp_path / "kernel_own_intf.h").write_text("#define OWN 3.0f\n")
    source = tmp_path / "parts.cpp"
    source.write_text('#include "basic_api/kernel_operator_set_intf.h"\n#include "kernel_operator_intf.h"\n'
                      '#include "adv_api/activation/softmax.h"\n#include "kernel_own_intf.h"\nusing namespace AscendC;\n'
                      + entry("parts", 1, """  InitSocState();
  GlobalTensor<float> y; y.SetGlobalBuffer((__gm__ float*)a0, 8); y.SetValue(0, OWN);"""))
    y = np.zeros(8, np.float32)
    twin.build(source).launch("parts", [y], blocks=1)
    assert y[0] == 3


CONSTANTS = "const __gm__ float table[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};\n"
READS_THEM = entry("reads_them", 1, """  InitSocState();
  GlobalTensor<float> y, c; y.SetGlobalBuffer((__gm__ float*)a0, 16);
  c.SetGlobalBuffer((__gm__ float*)table, 16);
  LocalTensor<float> f(TPosition::VECCALC, 0, 64);
  DataCopy(f, c[8], 8);
  SetFlag<HardEvent::MTE2_MTE3>(0); WaitFlag<HardEvent::MTE2_MTE3>(0);
  DataCopy(y, f, 8);
  y.SetValue(8, c.GetValue(2));""")
WRITES_THEM = entry("writes_them", 1, """  InitSocState();
  GlobalTensor<float> c; c.SetGlobalBuffer((__gm__ float*)table, 16);
  c.SetValue(0, 2.0f);""")


@pytest.mark.skipif(sys.platform != "linux", reason="looks through the loaded objects")
def test_constants_in_gm(tmp_path):
    lib = build(tmp_path, CONSTANTS + READS_THEM + WRITES_THEM)
    y = np.zeros(16, np.float32)
    run = lib.launch("reads_them", [y], blocks=1)
    assert run.findings == [] and list(y[:9]) == [*range(9, 17), 3]
    assert [f.kind for f in lib.launch("writes_them", [y], blocks=1).findings] == ["gm-out-of-bounds"]


LAUNCHED = """template <int n> __global__ __aicore__ void fill(GM_ADDR y) {}
void fill_do(uint32_t blocks, void* l2ctrl, void* stream, uint8_t* y) {
  fill<2><<<blocks, l2ctrl, stream>>>(y);
  nothing<<<1, nullptr, stream>>>();
}
""" + entry("launched", 1, """  InitSocState();
  GlobalTensor<float> y; y.SetGlobalBuffer((__gm__ float*)a0, 8); y.SetValue(9, float(1 << 2));""")


def test_a_source_that_launches_its_kernels(tmp_path):
    (tmp_path / "beside.h").write_text("__global__ __aicore__ void nothing() {}\n")
    lib = build(tmp_path, '#include "beside.h"\n' + LAUNCHED)
    (finding,) = lib.launch("launched", [np.zeros(8, np.float32)], blocks=1).findings
    lines = lib.source.read_text().splitlines()
    assert finding.kernel_file == str(lib.source) and "SetValue" in lines[finding.kernel_line - 1]


WITH_ITS_HOST = """#include <vector>
#include <iostream>
#include "acl/acl.h"
#include "files.h"
#include "beside.h"
/* int main() { */
namespace parts {
struct Scale { float by; __aicore__ inline float Of(float x) { return x * by; } };
static std::vector<double> Expected(int n) { std::vector<double> v(n); for (auto& x : v) { x = 1.0; } return v; }
template <typename T> __aicore__ inline void Put(GlobalTensor<T> y, T x) { y.SetValue(0, Scale{2}.Of(x)); }
constexpr uint32_t Two() { return 2; }
}  // namespace parts
""" + entry("with_host", 1, """  InitSocState();
  GlobalTensor<float> y; y.SetGlobalBuffer((__gm__ float*)a0, 8); parts::Put(y, 1.5f * parts::Two()); y.SetValue(8, 0.0f);""") + """
#define CHECK(x) if ((x) != 0) { return 1; }
int32_t main(int32_t argc, char* argv[]) {
  std::string s = "}"; char c = '{';
  CHECK(aclInit(nullptr));
  auto expected = parts::Expected(3);
  with_host<<<1, nullptr, nullptr>>>(nullptr, nullptr, nullptr);
  try { std::cout << Read(s.c_str()) << std::endl; } catch (...) { delete argv; }
  return 0;
}
"""


def test_a_source_with_the_host_that_launches_it(tmp_path):
    (tmp_path / "beside.h").write_text("__global__ __aicore__ void nothing() {}\n")
    (tmp_path / "files.h").write_text("#include <fstream>\nstd::string Read(const char* path) { return path; }\n")
    lib = build(tmp_path, WITH_ITS_HOST)
    y = np.zeros(8, np.float32)
    (finding,) = lib.launch("with_host", [y], blocks=1).findings
    assert y[0] == 6 and "parts::Put" in lib.source.read_text().splitlines()[finding.kernel_line - 1]
    device = WITH_ITS_HOST.replace("return x * by;", "std::vector<float> v(1); return x;")
    with pytest.raises(twin.CompileError, match="vector"):
        build(tmp_path, device, name="device")
    with pytest.raises(twin.CompileError, match="acl/acl.h"):  # all of it is the device's where nothing is launched
        build(tmp_path, WITH_ITS_HOST.replace("<<<1, nullptr, nullptr>>>", ""), name="nothing_launched")


CACHED = entry("cached", 1, """  InitSocState();
  GlobalTensor<float> y; y.SetGlobalBuffer((__gm__ float*)a0, 16);
  LocalTensor<float> f(TPosition::VECCALC, 0, 16);
  y.SetValue(0, 3.0f);
  CLEAN;
  SetFlag<HardEvent::S_MTE2>(0); WaitFlag<HardEvent::S_MTE2>(0);
  DataCopy(f, y, 8);
  SetFlag<HardEvent::MTE2_S>(0); WaitFlag<HardEvent::MTE2_S>(0);
  f.GetValue(0);""")


@pytest.mark.parametrize("clean", ["", "asc_dcci_entire_out()", "asc_dcci_single((__gm__ void*)a0)"])
def test_the_cache_through_the_c_api(tmp_path, clean):
    lib = build(tmp_path, '#include "c_api/asc_simd.h"\n' + CACHED.replace("CLEAN", clean), target="ascend950")
    findings = lib.launch("cached", [np.zeros(16, np.float32)], blocks=1).findings
    assert [finding.kind for finding in findings] == ([] if clean else ["data-cache"])
