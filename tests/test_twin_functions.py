"""Power, scalars on either side (950), operators on tensors, the compare register, the padding value: see twin_cases."""

import ml_dtypes
import numpy as np
import pytest
from test_twin import cache  # noqa: F401  (a fixture)
from twin_cases import Cases, check

f32, f16, bf16 = np.float32, np.float16, ml_dtypes.bfloat16
rng = np.random.default_rng(5)
CASES = Cases()
case = CASES.case
A5 = {"target": "ascend950"}
N = 200
a, b = (rng.normal(size=N).astype(f32) for _ in range(2))
ah = a.astype(f16)
i16, j16 = (rng.integers(-999, 999, N).astype(np.int16) for _ in range(2))


def bits_of(mask):
    return np.packbits(np.asarray(mask, bool), bitorder="little")


# ---- Power ----


def power(x, y, dtype=f32):
    with np.errstate(all="ignore"):
        exact = np.power(np.asarray(x, np.float64), np.asarray(y, np.float64))
        return exact.astype(f32).astype(dtype)


base, exponent = np.abs(a) + f32(0.1), b * 3
case("Power", f"Power<float>(y, x0, x1, tmp, {N});", [base, exponent], power(base, exponent))
case("Power_base", f"Power<float>(y, 2.5f, x0, {N});", [exponent], power(2.5, exponent))
case("Power_exponent", f"Power(y, x0, 0.5f, tmp, {N});", [base], power(base, 0.5))
case("Power_half", f"Power(y, x0, x1, {N});", [base.astype(f16), exponent.astype(f16)],
     power(base.astype(f16), exponent.astype(f16), f16))
edges = np.array([0, 1, -1, -2, -2, np.inf, -8, 0], f32), np.array([0, np.nan, 3, 0.5, 2, -1, 1 / 3, -2], f32)
case("Power_edges", "Power<float>(y, x0, x1, 8);", list(edges), power(*edges))
whole = rng.integers(-9, 9, 64).astype(np.int32)
exponents = rng.integers(0, 20, 64).astype(np.int32)
wrapped = np.array([(int(x) ** int(e) + 2**31) % 2**32 - 2**31 for x, e in zip(whole, exponents)]).astype(np.int32)
case("Power_i32", "Power(y, x0, x1, 64);", [whole, exponents], wrapped)
case("Power_negative", "Power(y, x0, -3, tmp, 4);", [np.array([1, -1, 2, -5], np.int32)], np.array([1, -1, 0, 0], np.int32))
small = rng.integers(0, 200, 64).astype(np.uint8)
case("Power_u8", "Power(y, x0, uint8_t(3), 64);", [small], ((small.astype(np.int64) ** 3) % 256).astype(np.uint8), **A5)
case("Power_whole", "x0.SetSize(8); Power<float>(y, x0, 2.0f);", [base[:8]], power(base[:8], 2))
case("Power_overlap", "Power<float>(y, y, 1.0f, 8);", [], np.zeros(8, f32), findings=["overlap"])

# ---- scalars on either side ----

for name, f in {"Adds": np.add, "Subs": np.subtract, "Muls": np.multiply, "Divs": np.divide, "Maxs": np.maximum}.items():
    case(f"{name}_left", f"{name}(y, 1.5f, x0, {N});", [a], f(f32(1.5), a), **A5)
    case(f"{name}_right", f"{name}(y, x0, 1.5f, {N});", [a], f(a, f32(1.5)), **A5)
case("Divs_point", f"Divs(y, x0, x1[8], {N});", [a, b], a / b[8], **A5)
case("Divs_first", f"static constexpr BinaryConfig c = {{0}}; Divs<BinaryDefaultType, true, c>(y, x0[8], x1, {N});", [a, b],
     a[8] / b, **A5)
case("Divs_i64", "Divs(y, x0, int64_t(7), 32);", [np.arange(-90, 70, 5, dtype=np.int64)],
     np.trunc(np.arange(-90, 70, 5) / 7).astype(np.int64), **A5)
case("Subs_lanes", "Subs(y, half(1.0f), x0, 100, 1, {1, 1, 8, 8});", [ah], np.where(np.arange(128) < 100, f16(1) - ah[:128], f16(0)), **A5)
case("Ands", f"Ands(y, x0, int16_t(0x55), {N});", [i16], i16 & np.int16(0x55), **A5)
case("Ors_mask", "uint64_t m[2] = {0xff, 0}; Ors(y, int16_t(0x55), x0, m, 1, {1, 1, 8, 8});", [i16],
     np.where(np.arange(128) < 8, i16[:128] | np.int16(0x55), 0).astype(np.int16), **A5)
case("Muls_plain", f"Muls<float>(y, x0, 2.0f, {N});", [a], a * 2, **A5)
case("Divs_into_itself", "Divs(x0, x1, x0[0], 64); PipeBarrier<PIPE_V>(); Divs(y, x0, 1.0f, 8);", [a, b], (b / a[0])[:8],
     findings=["overlap"], **A5)

# ---- operators ----

ALL = "x0.SetSize(200); x1.SetSize(200); y.SetSize(200); "
for name, symbol, f in [("add", "+", np.add), ("sub", "-", np.subtract), ("mul", "*", np.multiply), ("div", "/", np.divide)]:
    case(f"operator_{name}", f"{ALL}y = x0 {symbol} x1;", [a, b], f(a, b))
case("operator_and", ALL + "y = x0 & x1;", [i16, j16], i16 & j16)
case("operator_or", ALL + "y = x0 | x1;", [i16, j16], i16 | j16)
p, q = np.round(rng.normal(size=(2, 128)) * 2).astype(f32)
for name, symbol, f in [("lt", "<", np.less), ("gt", ">", np.greater), ("eq", "==", np.equal), ("le", "<=", np.less_equal),
                        ("ge", ">=", np.greater_equal), ("ne", "!=", np.not_equal)]:
    case(f"operator_{name}", f"x0.SetSize(128); y = x0 {symbol} x1;", [p, q], bits_of(f(p, q)))
case("operator_part", "LocalTensor<float> part = y[8]; part.SetSize(8); part = x0[16] + x1;", [a, b],
     np.concatenate([np.zeros(8, f32), a[16:24] + b[:8]]))
case("operator_element", "y(0) = x0(3); y(1) = 2.5f; y(2) = y(1) + 1.0f; y(1) += 1.0f; y(3) = y(0); float v = y(1); y(4) = v * 2;", [a],
     np.array([a[3], 3.5, 3.5, a[3], 7], f32))
case("operator_gm", "gx0(1) = 5.0f; y(0) = gx0(1); y(1) = gx0(2);", [a.copy()], np.array([5, a[2]], f32))
case("operator_half", "y(0) = half(1.5f); y(1) = half(float(y(0)) * 2);", [], np.array([1.5, 3], f16))

# ---- the compare register ----

chosen = rng.random(256) < 0.5
packed = bits_of(chosen)
x, z = (rng.normal(size=256).astype(f32) for _ in range(2))
REPEATS = "4, {1, 1, 1, 8, 8, 8}); ResetMask();"
case("SetCmpMask_0", "SetCmpMask(x1); PipeBarrier<PIPE_V>(); SetVectorMask<float>(64); "
     f"Select<float, SELMODE::VSEL_CMPMASK_SPR>(y, x0, x2, {REPEATS}", [x, packed, z], np.where(np.tile(chosen[:64], 4), x, z))
case("SetCmpMask_masked", "SetCmpMask(x1); PipeBarrier<PIPE_V>(); SetVectorMask<float>(20); "
     f"Select<float, SELMODE::VSEL_CMPMASK_SPR>(y, x0, x2, {REPEATS}", [x, packed, z],
     np.where(np.arange(256) % 64 < 20, np.where(np.tile(chosen[:64], 4), x, z), 0).astype(f32))
ADDRESS = """LocalTensor<uint32_t> at = tmp.ReinterpretCast<uint32_t>(); SetVectorMask<uint32_t>(32);
  Duplicate<uint32_t, false>(at, uint32_t(x1.GetPhyAddr()), MASK_PLACEHOLDER, 1, 1, 8); PipeBarrier<PIPE_V>();
  SetCmpMask<int64_t>(at.ReinterpretCast<int64_t>()); PipeBarrier<PIPE_V>(); SetVectorMask<float>(64); """
case("SetCmpMask_2", f"{ADDRESS} Select<float, SELMODE::VSEL_TENSOR_TENSOR_MODE>(y, x0, x2, {REPEATS}", [x, packed, z],
     np.where(chosen, x, z))
case("SetCmpMask_1", """LocalTensor<float> s = tmp.ReinterpretCast<float>(); Duplicate(s, 7.5f, 8); PipeBarrier<PIPE_V>();
  SetCmpMask(s); PipeBarrier<PIPE_V>(); SetVectorMask<float>(64); Select(y, x1, x0, """ + REPEATS, [x, packed],
     np.where(chosen, x, f32(7.5)))
case("Compare_then_Select", "uint64_t all = 64; Compare(x0, x1, CMPMODE::LT, all, {1, 1, 1, 8, 8, 8}); PipeBarrier<PIPE_V>(); "
     "SetVectorMask<float>(64); Select<float, SELMODE::VSEL_CMPMASK_SPR>(y, x0, x1, 1, {1, 1, 1, 8, 8, 8}); ResetMask();",
     [x[:64], z[:64]], np.minimum(x[:64], z[:64]))
case("SetCmpMask_back", "SetCmpMask(x0); PipeBarrier<PIPE_V>(); GetCmpMask(y);", [packed[:16]], packed[:16])
case("SetCmpMask_align", "SetCmpMask(x0[8]); PipeBarrier<PIPE_V>(); GetCmpMask(y);", [packed], packed[8:24], findings=["misaligned"])
case("SetCmpMask_nowhere", f"""LocalTensor<uint32_t> at = tmp.ReinterpretCast<uint32_t>(); Duplicate(at, 196608u, 8);
  PipeBarrier<PIPE_V>(); SetCmpMask(at); PipeBarrier<PIPE_V>(); SetVectorMask<float>(64);
  Select<float, SELMODE::VSEL_TENSOR_TENSOR_MODE>(y, x0, x0, {REPEATS}""", [x], np.zeros(8, f32), findings=["ub-out-of-bounds"])

# ---- what a reduction leaves to the scalar unit ----

flat = rng.normal(size=256).astype(f32)
SYNC = "SetFlag<HardEvent::V_S>(0); WaitFlag<HardEvent::V_S>(0); "
where = flat.argmax()
case("MaxMinSpr", f"WholeReduceMax<float>(tmp.ReinterpretCast<float>(), x0, 64, 4, 1, 1, 8); {SYNC} float v, i; "
     "GetReduceRepeatMaxMinSpr(v, i); y.SetValue(0, v); y.SetValue(1, float(*reinterpret_cast<uint32_t*>(&i))); "
     "GetReduceMaxMinCount(v); y.SetValue(2, v);", [flat], np.array([flat.max(), where, flat.max()], f32))
case("MinSpr_half", f"ReduceMin(tmp.ReinterpretCast<half>(), x0, tmp[4096].ReinterpretCast<half>(), 256); {SYNC} half v; "
     "GetReduceRepeatMaxMinSpr<half>(v); y.SetValue(0, v);", [flat.astype(f16)], flat.astype(f16).min(keepdims=True))
case("SumSpr", f"ReduceSum(tmp.ReinterpretCast<float>(), x0, tmp[4096].ReinterpretCast<float>(), 256); {SYNC} "
     "y.SetValue(0, GetReduceRepeatSumSpr<float>()); y.SetValue(1, GetAccVal<float>());", [np.arange(256, dtype=f32)],
     np.array([32640, 32640], f32))

# ---- blocks transposed ----

LIST = """LocalTensor<{t}> to[16], from[16]; for (int i = 0; i < 16; ++i) {{ from[i] = x0[i * {step}]; to[i] = y[i * {step}]; }}
  TransDataTo5HD<{t}>(to, from, TransDataTo5HDParams({high}, {high}, 1, 0, 0));"""
square = rng.integers(0, 1000, (16, 16)).astype(np.int16)
case("TransDataTo5HD_16", LIST.format(t="int16_t", step=16, high="false"), [square], square.T)
tall = rng.normal(size=(16, 8)).astype(f32)
case("TransDataTo5HD_32", LIST.format(t="float", step=8, high="false"), [tall], tall.T)
halves8 = rng.integers(-99, 99, (16, 32)).astype(np.int8)
case("TransDataTo5HD_8", LIST.format(t="int8_t", step=32, high="true"), [halves8],
     np.concatenate([np.zeros((16, 16), np.int8), halves8[:, 16:].T], 1))
many = rng.integers(0, 1000, (16, 48)).astype(np.uint16)  # three matrices side by side
case("TransDataTo5HD_repeats", """uint64_t to[16], from[16];
  for (int i = 0; i < 16; ++i) { from[i] = x0[i * 48].GetPhyAddr(); to[i] = y[i * 16].GetPhyAddr(); }
  TransDataTo5HD<uint16_t>(to, from, TransDataTo5HDParams(false, false, 3, 16, 1));""", [many],
     np.concatenate([many[:, 16 * k : 16 * k + 16].T for k in range(3)]))
case("TransDataTo5HD_align", LIST.format(t="int16_t", step=16, high="false").replace("from[i] = x0[i * 16]", "from[i] = x0[i * 16 + (i == 3)]"),
     [np.pad(square.ravel(), (0, 16))], np.concatenate([square[:3], square.ravel()[49:65][None], square[4:]]).T, findings=["misaligned"])
case("TransDataTo5HD_bounds", LIST.format(t="int16_t", step=16, high="false").replace("1, 0, 0", "1, 2000, 0"), [square],
     np.zeros(16, np.int16), findings=["buffer-overflow"])

# ---- the padding value ----

row = np.arange(1, 21, dtype=f16)
PAD = """SetPadValue({value}); DataCopyPad(y, gx0, DataCopyExtParams{{1, {bytes}, 0, 0, 0}},
  DataCopyPadExtParams<{type}>{{false, {left}, {right}, {type}(0)}});"""
case("SetPadValue", PAD.format(value="half(1.5f)", bytes=40, type="half", left=0, right=12), [row],
     np.concatenate([row, np.full(12, 1.5, f16)]))
case("SetPadValue_left", PAD.format(value="-1.0f", bytes=20, type="float", left=2, right=0), [np.arange(5, dtype=f32)],
     np.array([-1, -1, 0, 1, 2, 3, 4, -1], f32))
case("SetPadValue_none", PAD.format(value="-1.0f", bytes=20, type="float", left=0, right=0), [np.arange(3, 8, dtype=f32)],
     np.array([3, 4, 5, 6, 7, 3, 3, 3], f32))  # no padding asked for: the first element


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    return CASES.libraries(tmp_path_factory.mktemp("functions"))


@pytest.mark.parametrize("c", CASES, ids=CASES.ids())
def test_against_numpy(libraries, c):
    check(libraries(c.target), c)
