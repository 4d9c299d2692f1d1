"""Forms of the vector and copy APIs beside the usual ones: masks and repeats, lists in UB, slices; 950's own types."""

import numpy as np
import pytest
from test_twin import cache  # noqa: F401  (a fixture)
from twin_cases import Cases, check

CASES = Cases()
f32, f16, i16, u16, i32, i64, u32, u64 = (np.float32, np.float16, np.int16, np.uint16, np.int32, np.int64, np.uint32, np.uint64)
BOTH, ON_950 = ("ascend910b", "ascend950"), ("ascend950",)
rng = np.random.default_rng(3)
x = rng.normal(size=256).astype(f32)
blocks = x.reshape(-1, 8)
T = "tmp.ReinterpretCast<float>()"
ALL = "PipeBarrier<PIPE_ALL>();"


def case(name, body, inputs, expected, targets=BOTH, findings=(), before=None):
    for target in targets:
        CASES.case(name, body, list(inputs), np.asarray(expected), before, target=target, findings=list(findings))


# ---- reductions over repeats: three of 64 floats, 8 blocks apart, of which 10 are taken; then two that are 4 blocks apart ----
taken = np.stack([x[r * 64 : r * 64 + 10] for r in range(3)])
place = np.unravel_index(taken.argmax(), taken.shape)
both = [taken.max(), u32(place[0] * 64 + place[1]).view(f32)]
case("max_count", f"ReduceMax<float>(y, x0, {T}, 10, 3, 8);", [x], f32([taken.max()]))
case("max_index", f"ReduceMax<float>(y, x0, {T}, 10, 3, 8, true);", [x], f32(both))
case("min_bits", f"uint64_t mask[2] = {{5, 0}}; ReduceMin<float>(y, x0, {T}, mask, 4, 8);", [x],
     f32([x.reshape(4, 64)[:, [0, 2]].min()]))
case("max_stride", f"ReduceMax<float>(y, x0, {T}, 64, 2, 4);", [x], f32([x[:96].max()]))
halves = x[:256].astype(f16)
case("max_half", "ReduceMax<half>(y, x0, tmp.ReinterpretCast<half>(), 128, 2, 8);", [halves], [halves.max()])


def tree(v):
    while len(v) > 1:
        v = v[::2] + v[1::2]
    return v[0]


sums = [tree(np.pad(x[r * 64 : r * 64 + 10], (0, 54))) for r in range(3)]
case("sum_repeats", f"ReduceSum<float>(y, x0, {T}, 10, 3, 8);", [x], [tree(np.pad(f32(sums), (0, 61)))])
case("sum_bits", f"uint64_t mask[2] = {{5, 0}}; ReduceSum<float>(y, x0, {T}, mask, 1, 8);", [x], [x[0] + x[2]])
case("sum_none", f"ReduceSum<float>(y, x0, {T}, 64, 0, 8);", [x], f32([7]), before=f32([7]))
case("sum_scratch", f"ReduceSum<float>(y, x0, {T}, 64, 2, 8); {ALL} Adds(y, {T}, 0.0f, 1);", [x], f32([np.nan]),
     findings=["uninitialized-read"])
case("max_stride_limit", f"ReduceMax<float>(y, x0, {T}, 64, 1, 65536);", [x], f32([1]), before=f32([1]), findings=["stride-limit"])
ints = rng.integers(-1000, 1000, 64, i32)
case("sum_int", "ReduceSum<int32_t>(y, x0, tmp.ReinterpretCast<int32_t>(), 50);", [ints], [ints[:50].sum(dtype=i32)], ON_950)
case("sum_int_mask", "ReduceSum<int32_t>(y, x0, tmp.ReinterpretCast<int32_t>(), 20, 1, 8);", [ints], [ints[:20].sum(dtype=i32)], ON_950)
wide = ints.astype(i64) << 40
case("sum_long", "ReduceSum<int64_t>(y, x0, tmp.ReinterpretCast<int64_t>(), 64);", [wide], [wide.sum()], ON_950)
case("max_long", "ReduceMax<int64_t>(y, x0, tmp.ReinterpretCast<int64_t>(), 64, true);", [wide], [wide.max(), wide.argmax()], ON_950)
case("min_unsigned", "ReduceMin<uint64_t>(y, x0, tmp.ReinterpretCast<uint64_t>(), 64);", [wide.view(u64)], [wide.view(u64).min()], ON_950)
small = rng.integers(-(2**15), 2**15, 128).astype(i16)
case("sum_widened", "ReduceRepeat<ReduceType::SUM>(y, x0, 128, 1, 1, 1, 8);", [small], [small.sum(dtype=i32)], ON_950)
case("sum_widened_older", "WholeReduceSum<uint16_t>(y, x0, 100, 1, 1, 1, 8);", [small.view(u16)], [small.view(u16)[:100].sum(dtype=u32)], ON_950)
case("repeat_both_types", "ReduceRepeat<ReduceType::MAX, float, float>(y, x0, 64, 1, 1, 1, 8, ReduceOrder::ORDER_ONLY_VALUE);", [x], [x[:64].max()])
case("block_both_types", "ReduceDataBlock<ReduceType::MIN, float, float, true>(y, x0, 64, 1, 1, 1, 8);", [x], x[:64].reshape(8, 8).min(1))

# ---- gathers with a mask ----
offsets = rng.integers(0, 256, 128).astype(u32) * 4
zeros = np.zeros(160, f32)
rows = zeros.copy()
rows[:20], rows[80:100] = x[offsets[:20] // 4], x[offsets[64:84] // 4]
case("gather_count", "Duplicate(y, 0.0f, 160); " + ALL + "Gather(y, x0, x1, 0, 20, 2, 10);", [x, offsets], rows)
some = zeros.copy()
some[[0, 2]] = x[offsets[[0, 2]] // 4]
case("gather_bits", "Duplicate(y, 0.0f, 160); " + ALL + "uint64_t mask[2] = {5, 0}; Gather(y, x0, x1, 0, mask, 1, 8);", [x, offsets], some)
case("gather_base", "Gather(y, x0, x1, 16, 64, 1, 8);", [x, np.arange(64, dtype=u32) * 4], x[4:68])
case("gather_onto_itself", "Gather(x0, x0, x1, 0, 8, 1, 8); " + ALL + "Adds(y, x0, 0.0f, 8);", [x.copy(), offsets - offsets], np.repeat(x[:1], 8),
     findings=["overlap"])
case("gather_odd", "Gather(y, x0, x1, 0, 8, 1, 8);", [x, u32([0, 2, 4, 6, 8, 10, 12, 14])], np.zeros(8, f32), findings=["misaligned"])

# ---- copies in UB, and transposition by lists that are there ----
lanes = np.zeros(16, f32)
lanes[[0, 2]] = x[[0, 2]]
case("copy_bits", "Duplicate(y, 0.0f, 16); " + ALL + "uint64_t mask[2] = {5, 0}; Copy(y, x0, mask, 1, CopyRepeatParams(1, 1, 8, 8));", [x], lanes)
case("copy_elements", "Copy(y, x0, 13);", [x], x[:13], ON_950)
case("copy_long", "Copy(y, x0, 32, 2, CopyRepeatParams(1, 1, 8, 8));", [wide], wide, ON_950)
square = np.arange(256).astype(u16)
LISTS = """LocalTensor<uint64_t> d(TPosition::VECCALC, 163840, 16), s(TPosition::VECCALC, 163968, 16);
  for (int i = 0; i < 16; ++i) { d.SetValue(i, y[i * 16].GetPhyAddr()); s.SetValue(i, x0[i * 16].GetPhyAddr()); }
  TransDataTo5HD<uint16_t>(d, s, TransDataTo5HDParams());"""
case("transpose_lists", LISTS, [square], square.reshape(16, 16).T.ravel())

# ---- slices ----
image = np.arange(4 * 40 * 3, dtype=f32).reshape(3, 4, 40)
cut = image[::2, 1:3, [*range(4, 12), *range(16, 24)]]  # of 40 columns two stretches of 8, 4 apart
SLICES = ("SliceInfo from[] = {{4, 23, 4, 1, 40}, {1, 2, 0, 1, 4}, {0, 2, 1, 1, 3}}, "
          "to[] = {{0, 15, 0, 1, 16}, {0, 1, 0, 1, 2}, {0, 1, 0, 1, 2}};")
case("slice_in", SLICES + "DataCopy(y, gx0, to, from, 3);", [image], cut.ravel())
BACK = ALL + "DataCopyPad(y, gy, DataCopyExtParams{1, 1920, 0, 0, 0}, DataCopyPadExtParams<float>{false, 0, 0, 0.0f});"
put = np.full_like(image, -1)
put[::2, 1:3, [*range(4, 12), *range(16, 24)]] = image.ravel()[:64].reshape(2, 2, 16)
case("slice_out", SLICES + "DataCopy(gy, x0, from, to, 3);" + BACK, [image], put, before=np.full_like(image, -1))
case("slice_one", "SliceInfo from(8, 23, 0, 2, 40), to(0, 15, 0, 2, 16); DataCopy(y, gx0, &to, &from);", [image], image.ravel()[8:24])
NOTHING = np.zeros(8, f32)
for name, start, to in [("whole", "{4, 22, 4, 1, 40}", "{0, 15, 0, 1, 16}"), ("length", "{4, 47, 0, 1, 40}", "{0, 15, 0, 1, 16}"),
                        ("count", "{4, 23, 4, 1, 40}", "{0, 7, 0, 1, 16}"), ("burst", "{4, 19, 0, 2, 40}", "{0, 15, 0, 1, 16}")]:
    case(f"slice_{name}", f"SliceInfo from[] = {{{start}}}, to[] = {{{to}}}; DataCopy(y, gx0, to, from, 1);", [image], NOTHING,
         findings=["copy-limit"])
case("slice_beyond", "SliceInfo from[] = {{0, 7, 0, 1, 40}, {0, 12, 0, 1, 13}}, to[] = {{0, 7, 0, 1, 8}, {0, 12, 0, 1, 13}}; DataCopy(y, gx0, to, from, 2);",
     [image], np.pad(image.reshape(12, 40)[:, :8], ((0, 1), (0, 0))).ravel(), findings=["gm-out-of-bounds"])

# ---- 950's own ----
case("negative", "Neg(y, x0, 100);", [x], -x[:100], ON_950)
case("negative_int", "Neg(y, x0, 64);", [small[:64]], -small[:64], ON_950)
positive = np.abs(x) + f32(0.5)
case("precise_divide", "static constexpr DivConfig c{DivAlgo::PRECISION_0ULP_FTZ_TRUE}; Div<float, c>(y, x0, x1, 256);", [x, positive], x / positive, ON_950)
case("precise_root", "static constexpr SqrtConfig c{SqrtAlgo::PRECISION_0ULP_FTZ_FALSE}; Sqrt<float, true, c>(y, x0, 64, 1, UnaryRepeatParams());",
     [positive], np.sqrt(positive[:64]), ON_950)
case("precise_exp", "static constexpr ExpConfig c{ExpAlgo::PRECISION_1ULP_FTZ_TRUE}; Exp<float, c>(y, x0, 64);", [x],
     np.exp(x[:64].astype(np.float64)).astype(f32), ON_950)


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    return CASES.libraries(tmp_path_factory.mktemp("more_forms"))


@pytest.mark.parametrize("c", CASES, ids=CASES.ids())
def test_against_numpy(libraries, c):
    check(libraries(c.target), c)
