"""950's own copies from GM to UB: those of several dimensions, and the compact mode of DataCopyPad."""

import numpy as np
import pytest
from test_twin import cache, entry  # noqa: F401  (cache is a fixture)
from twin_cases import CTYPES, Cases, check

CASES = Cases()
i32, u8, i64, f16 = np.int32, np.uint8, np.int64, np.float16
data = np.arange(1, 601, dtype=i32)


def case(name, body, expected, inputs=(data,), findings=(), dtype=i32, before=None):
    CASES.case(name, body, list(inputs), np.asarray(expected, dtype), before, target="ascend950", findings=list(findings))


# ---- several dimensions ----


def braces(values):
    return "{" + ", ".join(str(v) for v in values) + "}"


def nd(source, target, size, left=None, right=None, value="0", config="", dtype=i32, dims=None):
    """The C++ of such a copy from gx0 to y; of the dimensions the innermost comes first."""
    dims, t = dims or len(size), CTYPES[np.dtype(dtype)]
    loops = ", ".join(braces(v) for v in (source, target, size, left or [0] * dims, right or [0] * dims))
    arguments = f"<{t}, {dims}, config>" if config else ""
    return (f"NdDmaLoopInfo<{dims}> info{{{loops}}}; NdDmaParams<{t}, {dims}> params{{info, {t}({value})}}; "
            + (f"static constexpr NdDmaConfig config = {config}; " if config else "")
            + f"NdDmaDci(); DataCopy{arguments}(y, gx0, params);")


matrix = data[:40].reshape(4, 10)
PADS = ((1, 2), (3, 5))  # above and below, left and right
inner, outer = [1, 10], [1, 18]
sizes, lefts, rights = [10, 4], [3, 1], [5, 2]
case("nd_pad", nd(inner, outer, sizes, lefts, rights, value="-7"), np.pad(matrix, PADS, constant_values=-7))
case("nd_nearest", nd(inner, outer, sizes, lefts, rights, config="{true}"), np.pad(matrix, PADS, mode="edge"))
case("nd_pad_alike", nd(inner, [1, 14], sizes, [9, 9], [9, 9], config="{false, 2, 2, false}"), np.pad(matrix, 2))
case("nd_pad_left_alike", nd(inner, [1, 13], sizes, [9, 9], [1, 0], config="{false, 2, NdDmaConfig::unsetPad}"),
     np.pad(matrix, ((2, 0), (2, 1))))
case("nd_transpose", nd(inner, [4, 1], sizes), matrix.T)
case("nd_broadcast", nd([1, 0], [1, 10], [10, 3]), np.tile(data[:10], (3, 1)))
case("nd_repeat", nd([0, 1], [1, 3], [3, 10]), np.repeat(data[:10], 3))
case("nd_slice", nd(inner, [1, 5], [5, 3]), matrix[:3, :5])
case("nd_step", nd([2, 20], [1, 5], [5, 2]), matrix[::2, ::2])
cube = data[:60].reshape(3, 4, 5)
case("nd_permute", nd([1, 5, 20], [12, 3, 1], [5, 4, 3]), cube.transpose(2, 1, 0))
five = data[:72].reshape(2, 3, 2, 3, 2)
case("nd_five", nd([1, 2, 6, 12, 36], [1, 12, 36, 2, 6], [2, 3, 2, 3, 2]), five.transpose(2, 3, 0, 1, 4))
case("nd_one", nd([3], [1], [7], [1], [2], value="5"), [5, *data[:21:3], 5, 5])
case("nd_gap", nd([1, 10], [1, 12], [10, 2]), [*data[:10], -1, -1, *data[10:20]], before=np.full(22, -1))
bytes_, words = data[:24].astype(u8).reshape(3, 8), data[:24].astype(i64).reshape(3, 8)
halves = data[:24].astype(f16).reshape(3, 8)
PAD8 = dict(left=[1, 0], right=[0, 1])
for values, t in [(bytes_, u8), (halves, f16), (words, i64)]:
    case(f"nd_{np.dtype(t)}", nd([1, 8], [1, 9], [8, 3], value="0", dtype=t, **PAD8), np.pad(values, ((0, 1), (1, 0))),
         inputs=[values], dtype=t)
case("nd_older_names", "MultiCopyLoopInfo<1> info; info.loopSrcStride[0] = 1; info.loopDstStride[0] = 1; info.loopSize[0] = 9; "
     "MultiCopyParams<int32_t, 1> params = {info}; DataCopy<int32_t, 1, kDefaultMultiCopyConfig>(y, gx0, params);", data[:9])
case("nd_loop_mode", "SetLoopModePara(LoopModeParams(2, 1, 64, 64, 0, 0), DataCopyMVType::OUT_TO_UB); " + nd([1], [1], [8])
     + "ResetLoopModePara(DataCopyMVType::OUT_TO_UB);", [*data[:8], *[0] * 16])  # which only other copies follow
blank = np.zeros(8, i32)
case("nd_none", nd([1, 1], [1, 8], [8, 0]), blank, findings=["copy-limit"])
case("nd_stride_in_gm", nd([1, 1 << 40], [1, 8], [8, 1]), blank, findings=["copy-limit"])
case("nd_stride_in_ub", nd([1, 8], [1, 1 << 20], [8, 1]), blank, findings=["copy-limit"])
case("nd_pad_64", nd([1], [1], [7], [1], value="3", dtype=i64), [3, *range(1, 8)], inputs=[words], dtype=i64,
     findings=["copy-limit"])
case("nd_beyond_gm", nd([1, 100], [1, 8], [8, 7]), blank, findings=["gm-out-of-bounds"])
case("nd_beyond_ub", nd([1, 8], [1, 1 << 16], [8, 2]), blank, findings=["ub-out-of-bounds"])
case("nd_endless", nd([1, 0, 0], [1, 8, 1 << 19], [8, 1 << 19, 1 << 19]), blank, findings=["ub-out-of-bounds"])
case("nd_onto_itself", nd([1, 8], [1, 0], [8, 2]), blank, findings=["overlap"])
case("nd_interleaved", nd([1, 4], [2, 3], [4, 2]), [1, 0, 2, 5, 3, 6, 4, 7, 0, 8], findings=["overlap"])
case("nd_twice", nd([1, 2], [4, 2], [2, 3]), [1, 0, 3, 0, 5, 0, 4, 0, 6], findings=["overlap"])
STALE = nd([1], [1], [8]) + """
  SetFlag<HardEvent::MTE2_V>(0); WaitFlag<HardEvent::MTE2_V>(0); Adds(y, y, 100, 8);
  SetFlag<HardEvent::V_MTE3>(0); WaitFlag<HardEvent::V_MTE3>(0); DataCopy(gx0, y, 8); PipeBarrier<PIPE_ALL>(); """
for name, before, second, findings in [("nd_stale", "", "gx0", ["data-cache"]), ("nd_fresh", "NdDmaDci(); ", "gx0", []),
                                       ("nd_beside", "", "gx0[16]", [])]:
    again = STALE + before + f"DataCopy(y, {second}, params);"
    case(name, again, data[16:24] if "16" in second else data[:8] + 100, inputs=[data.copy()], findings=findings)

# ---- compact ----

COMPACT = "DataCopyPad<{0}, PaddingMode::Compact>(y, gx0, DataCopyExtParams{1}, DataCopyPadExtParams<{0}>{2});"
rows = data[:60].reshape(3, 20)[:, :6]  # 72 bytes, in UB 96


def compact(params, pad, dtype="int32_t"):
    return COMPACT.format(dtype, braces(params), braces(pad))


case("compact_value", compact((3, 24, 56, 0, 0), ("true", 0, 0, -7)), [*rows.ravel(), *[-7] * 6, 0, 0], before=np.zeros(26))
case("compact_first", compact((3, 24, 56, 0, 0), ("false", 0, 0, 0)), [*rows.ravel(), *[41] * 6])
case("compact_ignores", compact((2, 16, 0, 3, 0), ("true", 2, 200, 9)), [*range(1, 9), 0], before=np.zeros(9))
case("compact_older", "DataCopyPad<int32_t, PaddingMode::Compact>(y, gx0, DataCopyParams{2, 12, 4, 7}, DataCopyPadParams{true, 0, 0, 5});",
     [1, 2, 3, 5, 6, 7, 5, 5])
case("compact_again", compact((3, 12, -12, 0, 0), ("true", 0, 0, 0)), [1, 2, 3] * 3 + [0] * 7)
case("compact_loops", "SetLoopModePara(LoopModeParams(2, 1, 200, 64, 0, 0), DataCopyMVType::OUT_TO_UB); "
     + compact((2, 20, 12, 0, 0), ("true", 0, 0, 0)) + "ResetLoopModePara(DataCopyMVType::OUT_TO_UB);",
     [*range(1, 6), *range(9, 14), *[0] * 6, *range(51, 56), *range(59, 64), *[0] * 6])
case("compact_set_value", "SetPadValue(int32_t(3)); " + compact((3, 24, 56, 0, 0), ("false", 0, 0, 0)) + "PipeBarrier<PIPE_ALL>(); Adds(y, y, 0, 18);",
     rows.ravel())
case("compact_unknown", "SetPadValue(int32_t(3)); " + compact((3, 24, 56, 0, 0), ("false", 0, 0, 0)) + "PipeBarrier<PIPE_ALL>(); Adds(y, y, 0, 20);",
     [*rows.ravel(), -1, -1], findings=["uninitialized-read"])
BACK = ("PipeBarrier<PIPE_ALL>(); DataCopyPad(y, gy, DataCopyExtParams{1, 80, 0, 0, 0}, DataCopyPadExtParams<int32_t>{false, 0, 0, 0});")
case("compact_out", "DataCopyPad<int32_t, PaddingMode::Compact>(gy, x0, DataCopyExtParams{3, 12, 5, 12, 0});" + BACK,
     [1, 2, 3, 0, 0, 0, 4, 5, 6, 0, 0, 0, 7, 8, 9, *[0] * 5])
case("compact_out_older", "DataCopyPad<int32_t, PaddingMode::Compact>(gy, x0, DataCopyParams{2, 4, 0, 0});" + BACK, [1, 2, *[0] * 18])
case("normal_out", "DataCopyPad<int32_t, PaddingMode::Normal>(gy, x0, DataCopyExtParams{2, 12, 0, 0, 0});" + BACK,
     [1, 2, 3, 9, 10, 11, *[0] * 14])
case("stride_before", compact((2, 12, -13, 0, 0), ("false", 0, 0, 0)), [0], findings=["copy-limit", "gm-out-of-bounds"])
case("stride_in_ub", "DataCopyPad(y, gx0, DataCopyExtParams{1, 12, 0, 65536, 0}, DataCopyPadExtParams<int32_t>{false, 0, 0, 0});",
     [1, 2, 3, 1], findings=["copy-limit"])
case("stride_out", "DataCopyPad(gy, x0, DataCopyExtParams{1, 12, 0, -4, 0});" + BACK, [1, 2, 3, *[0] * 17], findings=["copy-limit"])


NEIGHBOUR = """
  InitSocState();
  GlobalTensor<int32_t> g; g.SetGlobalBuffer((__gm__ int32_t*)a0, 64);
  LocalTensor<int32_t> mine(TPosition::VECCALC, 0, 8), other(TPosition::VECCALC, 32, 8);
  NdDmaLoopInfo<1> info{{1}, {1}, {8}, {0}, {0}}; NdDmaParams<int32_t, 1> params{info, 0};
  const int32_t next = (GetBlockIdx() + 1) % GetBlockNum() * 8;
  DataCopy(other, g[next], params); SyncAll();
  Duplicate(mine, int32_t(GetBlockIdx() + 1), 8); SetFlag<HardEvent::V_MTE3>(0); WaitFlag<HardEvent::V_MTE3>(0);
  DataCopy(g[GetBlockIdx() * 8], mine, 8); SyncAll();
"""
ENDS = {"stale": "DataCopy(other, g[next], params);", "fresh": "NdDmaDci(); DataCopy(other, g[next], params);",
        "unread": "DataCopy(other, g[(GetBlockIdx() + 2) % GetBlockNum() * 8], params);", "aside": "DataCopy(other, g[next], 8);"}


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    return CASES.libraries(tmp_path_factory.mktemp("copy950"), "".join(entry(n, 1, NEIGHBOUR + end) for n, end in ENDS.items()))


@pytest.mark.parametrize("c", CASES, ids=CASES.ids())
def test_against_numpy(libraries, c):
    check(libraries(c.target), c)


def test_what_another_block_wrote_is_not_in_the_cache(libraries):
    library = libraries("ascend950")
    for name in ENDS:
        run = library.launch(name, [np.zeros(64, i32)], blocks=4)
        assert [f.kind for f in run.findings] == (["data-cache"] if name == "stale" else []), run.describe()
    (finding,) = library.launch("stale", [np.zeros(64, i32)], blocks=4).findings
    assert "call NdDmaDci between" in finding.message and finding.count == 4 and finding.other_line


def test_bytes_and_pieces_are_those_of_gm(libraries):
    """A broadcast element is read once; contiguous elements are one piece, wherever they go."""
    for name, pieces, size in [("nd_broadcast", 1, 40), ("nd_repeat", 1, 40), ("nd_slice", 3, 60), ("nd_pad", 1, 160),
                               ("nd_transpose", 1, 160), ("nd_step", 10, 40), ("compact_again", 3, 36)]:
        (c,) = [c for c in CASES if c.name == name]
        steps = libraries("ascend950").launch(name, [*c.inputs, np.zeros_like(c.expected)], blocks=1, trace=True).trace[0].steps
        copy = steps[steps["bytes"] > 0][2]  # the two before fill x0 and y
        assert (copy["pieces"], copy["bytes"]) == (pieces, size), name
