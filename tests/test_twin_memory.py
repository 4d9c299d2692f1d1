"""Copies between GM and UB, workspace, atomics, blocks that meet, TPipe, and the high-level functions."""

import numpy as np
import pytest
from test_twin import build, cache, entry  # noqa: F401  (cache is a fixture)

f32 = np.float32
HEAD = """  InitSocState();
  GlobalTensor<float> x, y, w;
  x.SetGlobalBuffer((__gm__ float*)a0, 1024);
  y.SetGlobalBuffer((__gm__ float*)a1, 1024);
  w.SetGlobalBuffer((__gm__ float*)workspace, 1024);
  LocalTensor<float> f(TPosition::VECCALC, 0, 1024), g(TPosition::VECCALC, 4096, 1024);
  LocalTensor<uint8_t> tmp(TPosition::VECCALC, 8192, 16384);
"""
ALL = " PipeBarrier<PIPE_ALL>(); "
OUT = ALL + "DataCopy(y, f, 1024); PipeBarrier<PIPE_ALL>();"
ZERO = "Duplicate(f, 0.0f, 1024);" + ALL
BODIES = {
    # five columns of each of four rows, padded to eight with -1 on the right
    "pad_value": ZERO + "DataCopyPad(f, x, DataCopyExtParams{4, 20, 12, 0, 0}, DataCopyPadExtParams<float>{true, 0, 3, -1.0f});" + OUT,
    "pad_both": ZERO + "DataCopyPad(f, x, DataCopyExtParams{2, 16, 0, 1, 0}, DataCopyPadExtParams<float>{true, 2, 2, 9.0f});" + OUT,
    # no padding asked for: the block's first element fills it up
    "pad_first": ZERO + "DataCopyPad(f, x[3], DataCopyExtParams{1, 20, 0, 0, 0}, DataCopyPadExtParams<float>{false, 0, 0, 0.0f});" + OUT,
    "pad_old": ZERO + "DataCopyPad(f, x, DataCopyParams{2, 8, 8, 0}, DataCopyPadParams{true, 0, 6, 0});" + OUT,
    "out_strided": "DataCopy(f, x, 1024);" + ALL + "DataCopyPad(y, f, DataCopyExtParams{3, 12, 1, 8, 0}); PipeBarrier<PIPE_ALL>();",
    "copy_strided": ZERO + "DataCopy(f, x, DataCopyParams{3, 2, 1, 2});" + ALL + "DataCopy(y, f, DataCopyParams{3, 2, 2, 1}); PipeBarrier<PIPE_ALL>();",
    "odd_address": ZERO + "DataCopyPad(f, x[1], DataCopyExtParams{1, 4, 0, 0, 0}, DataCopyPadExtParams<float>{true, 0, 7, 0.0f});" + ALL
                   + "DataCopyPad(y[5], f, DataCopyExtParams{1, 4, 0, 0, 0}); PipeBarrier<PIPE_ALL>();",
    "workspace": "DataCopy(f, x, 64);" + ALL + "DataCopy(w, f, 64);" + ALL + "DataCopy(g, w, 64);" + ALL + "DataCopy(y, g, 64);",
    "fill": "InitGlobalMemory(y, 100, 2.5f);",
    "fill_older": "InitOutput(y, 100, 2.5f); PipeBarrier<PIPE_ALL>(); InitOutput<float>(y[8], 8);",
    "scalar": "for (int i = 0; i < 8; ++i) y.SetValue(7 - i, x.GetValue(i)); DataCacheCleanAndInvalid<float, CacheLine::SINGLE_CACHE_LINE, DcciDst::CACHELINE_OUT>(y);",
    "raw": "((__gm__ float*)a1)[3] = ((__gm__ float*)a0)[4];",
    "tiling": "y.SetValue(0, ((__gm__ float*)tiling)[1]);",
    # every block adds its rank to all of y
    "atomic_add": "Duplicate(f, 1.0f * (GetBlockIdx() + 1), 1024); SetFlag<HardEvent::V_MTE3>(0); WaitFlag<HardEvent::V_MTE3>(0);"
                  " SetAtomicAdd<float>(); DataCopy(y, f, 1024); SetAtomicNone(); PipeBarrier<PIPE_ALL>();",
    "atomic_max": "Duplicate(f, 1.0f * (GetBlockIdx() + 1), 1024); SetFlag<HardEvent::V_MTE3>(0); WaitFlag<HardEvent::V_MTE3>(0);"
                  " SetAtomicMax<float>(); DataCopy(y, f, 1024); SetAtomicNone(); PipeBarrier<PIPE_ALL>();",
    # each block publishes its number, and all sum up what all published, twice over
    "sync_all": """for (int round = 0; round < 2; ++round) {
      Duplicate(f, float(GetBlockIdx() + round), 8); SetFlag<HardEvent::V_MTE3>(0); WaitFlag<HardEvent::V_MTE3>(0);
      DataCopy(w[GetBlockIdx() * 8], f, 8); SyncAll();
      DataCopy(g, w, uint32_t(GetBlockNum() * 8)); SetFlag<HardEvent::MTE2_S>(0); WaitFlag<HardEvent::MTE2_S>(0);
      float sum = 0; for (int b = 0; b < GetBlockNum(); ++b) sum += g.GetValue(b * 8);
      SyncAll();
      y.SetValue(GetBlockIdx() * 16, sum); }""",
    "sync_soft": """GlobalTensor<int32_t> gm; gm.SetGlobalBuffer((__gm__ int32_t*)a2, 64);
      LocalTensor<int32_t> ub(TPosition::VECCALC, 32768, 64);
      y.SetValue(GetBlockIdx() * 16, float(GetBlockIdx()));
      DataCacheCleanAndInvalid<float, CacheLine::SINGLE_CACHE_LINE, DcciDst::CACHELINE_OUT>(y[GetBlockIdx() * 16]);
      SyncAll(gm, ub);
      float sum = 0; for (int b = 0; b < GetBlockNum(); ++b) sum += y.GetValue(b * 16);
      y.SetValue(512 + GetBlockIdx() * 16, sum);""",
    "cumsum": "DataCopy(f, x, 1024);" + ALL + """static constexpr CumSumConfig config{true, false, true, CumSumAlgorithm::CUMSUM_ALGORITHM_LINEBYLINE};
      LocalTensor<float> last(TPosition::VECCALC, 40960, 16); CumSum<float, config>(g, last, f, tmp, CumSumInfo{2, 512});""" + ALL
              + "DataCopy(y, g, 1024);",
    "cumsum_first": "DataCopy(f, x, 1024);" + ALL + """static constexpr CumSumConfig config{false, false, false, CumSumAlgorithm::CUMSUM_ALGORITHM_LINEBYLINE};
      LocalTensor<float> last; CumSum<float, config>(g, last, f, CumSumInfo{16, 64});""" + ALL + "DataCopy(y, g, 1024);",
    "sigmoid": "DataCopy(f, x, 1024);" + ALL + "Sigmoid(g, f, tmp, 1024);" + ALL + "DataCopy(y, g, 1024);",
}
PIPE = """
  GlobalTensor<float> x, y;
  x.SetGlobalBuffer((__gm__ float*)a0, 1024);
  y.SetGlobalBuffer((__gm__ float*)a1, 1024);
  TPipe pipe;
  { TQueBind<TPosition::VECIN, TPosition::VECOUT, 1> through; pipe.InitBuffer(through, 2, 1024);
    for (int i = 0; i < 4; ++i) {
      auto t = through.AllocTensor<float>(); DataCopy(t, x[i * 256], 256); through.EnQue(t);
      t = through.DeQue<float>(); DataCopy(y[i * 256], t, 256); through.FreeTensor(t); } }
  pipe.Reset();
  TBuf<TPosition::VECCALC> buf; pipe.InitBuffer(buf, 188160);
  LocalTensor<float> f = buf.Get<float>(); LocalTensor<float> g = buf.GetWithOffset<float>(64, 4096);
  y.SetValue(0, f.GetSize()); y.SetValue(1, g.GetSize()); y.SetValue(2, f[40].GetSize()); y.SetValue(3, g.GetPhyAddr());
  y.SetValue(4, f.ReinterpretCast<half>().GetSize()); y.SetValue(5, GetTPipePtr() == &pipe);
"""
OLD = """
  InitSocState();
  GlobalTensor<int32_t> gm; gm.SetGlobalBuffer((__gm__ int32_t*)a0, 8); gm.SetL2CacheHint(CacheMode::CACHE_MODE_DISABLE);
  gm.SetValue(0, GetBlockNum()); gm.SetValue(1, gm.GetSize()); gm.SetValue(2, gm[3].GetSize());
  gm.SetValue(3, sizeof(half) * 10 + sizeof(bfloat16_t)); gm.SetValue(4, __NPU_ARCH__);
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    text = "".join(entry(name, 3 if name == "sync_soft" else 2, HEAD + "  " + body) for name, body in BODIES.items())
    return build(tmp_path_factory.mktemp("memory"), text + entry("pipe", 2, PIPE) + entry("facts", 1, OLD))


X = np.arange(1024, dtype=f32)


def run(library, name, blocks=1, x=X, more=(), **options):
    y = np.zeros(1024, f32)
    result = library.launch(name, [x, y, *more], workspace_bytes=4096, blocks=blocks, **options)
    assert result.findings == [], result.describe()
    return y


def test_padding(library):
    rows = np.pad(X[:32].reshape(4, 8)[:, :5], ((0, 0), (0, 3)), constant_values=-1)
    np.testing.assert_array_equal(run(library, "pad_value")[:40], np.append(rows, np.zeros(8)))
    np.testing.assert_array_equal(run(library, "pad_both")[:24], [9, 9, 0, 1, 2, 3, 9, 9] + [0] * 8 + [9, 9, 4, 5, 6, 7, 9, 9])
    np.testing.assert_array_equal(run(library, "pad_first")[:9], [3, 4, 5, 6, 7, 3, 3, 3, 0])
    np.testing.assert_array_equal(run(library, "pad_old")[:16], [0, 1] + [0] * 6 + [4, 5] + [0] * 6)


def test_strides(library):
    y = run(library, "out_strided")  # 3 floats of each second 32-byte block, 8 bytes apart in GM
    np.testing.assert_array_equal(y[:15], [0, 1, 2, 0, 0, 16, 17, 18, 0, 0, 32, 33, 34, 0, 0])
    y = run(library, "copy_strided").reshape(-1, 8)
    np.testing.assert_array_equal(y[:9, 0], [0, 8, 0, 24, 32, 0, 48, 56, 0])
    assert run(library, "odd_address")[5] == 1


def test_workspace_and_scalar_access(library):
    np.testing.assert_array_equal(run(library, "workspace")[:64], X[:64])
    np.testing.assert_array_equal(run(library, "fill")[:101], [2.5] * 100 + [0])
    np.testing.assert_array_equal(run(library, "fill_older")[:101], [2.5] * 8 + [0] * 8 + [2.5] * 84 + [0])
    np.testing.assert_array_equal(run(library, "scalar")[:8], X[7::-1])
    assert run(library, "raw")[3] == 4
    assert run(library, "tiling", tiling=np.array([1, 6.5], f32).tobytes())[0] == 6.5


def test_atomics_add_up_over_blocks(library):
    np.testing.assert_array_equal(run(library, "atomic_add", blocks=5), 15)
    np.testing.assert_array_equal(run(library, "atomic_max", blocks=5), 5)


def test_blocks_meet(library):
    np.testing.assert_array_equal(run(library, "sync_all", blocks=12)[:192:16], sum(range(12)) + 12)
    y = run(library, "sync_soft", blocks=6, more=[np.zeros(64, np.int32)])
    np.testing.assert_array_equal(y[512:608:16], 15)


def test_more_blocks_than_cores_cannot_meet(library):
    result = library.launch("sync_all", [X, np.zeros(1024, f32)], workspace_bytes=4096, blocks=50)
    assert [f.kind for f in result.findings] == ["block-sync"] * 2 and "50 blocks on 48 vector cores" in result.findings[0].message


def test_high_level(library):
    np.testing.assert_array_equal(run(library, "cumsum").reshape(2, 512), np.cumsum(X.reshape(2, 512), 1, dtype=f32))
    np.testing.assert_array_equal(run(library, "cumsum_first").reshape(16, 64), np.cumsum(X.reshape(16, 64), 0, dtype=f32))
    x = np.linspace(-20, 20, 1024, dtype=f32)
    np.testing.assert_allclose(run(library, "sigmoid", x=x), 1 / (1 + np.exp(-x.astype(np.float64))), rtol=3e-7)


def test_pipe(library):
    y = run(library, "pipe")
    np.testing.assert_array_equal(y[6:], X[6:])
    np.testing.assert_array_equal(y[:6], [47040, 64, 47000, 4096, 94080, 1])


def test_facts(library):
    values = np.zeros(8, np.int32)
    library.launch("facts", [values], blocks=3)
    np.testing.assert_array_equal(values[:5], [3, 8, 5, 22, 2201])
