"""Each API of the twin against NumPy: see twin_cases."""

import ml_dtypes
import numpy as np
import pytest
from test_twin import cache  # noqa: F401  (a fixture)
from twin_cases import CTYPES, Cases, check

f32, f16, bf16 = np.float32, np.float16, ml_dtypes.bfloat16
rng = np.random.default_rng(7)
errors = np.seterr(all="ignore")  # infinities are among the cases
CASES = Cases()
case = CASES.case


def normal(n, dtype=f32):
    return rng.normal(size=n).astype(dtype)


def bits_of(mask):  # packed, lowest bit first
    return np.packbits(np.asarray(mask, bool), bitorder="little")


def tree_sum(x):  # ((0+1)+(2+3))+..., in x's own precision
    x = np.asarray(x)
    while x.shape[-1] > 1:
        x = x[..., ::2] + x[..., 1::2]
    return x[..., 0]


# ---- elementwise ----

N = 200
a, b = normal(N), normal(N)
ah, bh = normal(N, f16), normal(N, f16)
ai, bi = rng.integers(-99, 99, N).astype(np.int32), rng.integers(1, 99, N).astype(np.int32)
for name, f in {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide, "Max": np.maximum,
                "Min": np.minimum}.items():
    case(f"{name}_f32", f"{name}(y, x0, x1, {N});", [a, b], f(a, b))
    case(f"{name}_f16", f"{name}(y, x0, x1, {N});", [ah, bh], f(ah, bh))
    if name != "Div":
        case(f"{name}_i32", f"{name}(y, x0, x1, {N});", [ai, bi], f(ai, bi))
for name, f in {"Adds": np.add, "Muls": np.multiply, "Maxs": np.maximum, "Mins": np.minimum}.items():
    case(f"{name}_f32", f"{name}(y, x0, 1.5f, {N});", [a], f(a, f32(1.5)))
    case(f"{name}_f16", f"{name}(y, x0, half(1.5f), {N});", [ah], f(ah, f16(1.5)))
    case(f"{name}_i32", f"{name}(y, x0, 7, {N});", [ai], f(ai, 7))
wide = np.concatenate([np.linspace(-110, 95, 3000), [np.inf, -np.inf, np.nan, 0, -0.0]]).astype(f32)
exact = np.exp(wide.astype(np.float64)).astype(f32)
case("Exp_f32", f"Exp(y, x0, {wide.size});", [wide], np.where(np.abs(exact) < np.finfo(f32).tiny, 0, exact))
case("Exp_f16", f"Exp(y, x0, {N});", [ah], np.exp(ah.astype(np.float64)).astype(f32).astype(f16))
positive = np.abs(normal(N)) + f32(0.01)
case("Ln_f32", f"Ln(y, x0, {N});", [positive], np.log(positive.astype(np.float64)).astype(f32))
case("Ln_edges", "Ln(y, x0, 4);", [np.array([0, -1, np.inf, 1e-45], f32)], np.array([-np.inf, np.nan, np.inf, -np.inf], f32))
case("Sqrt_f32", f"Sqrt(y, x0, {N});", [positive], np.sqrt(positive))
case("Rsqrt_f32", f"Rsqrt(y, x0, {N});", [positive], (1 / np.sqrt(positive.astype(np.float64))).astype(f32))
case("Reciprocal_f32", f"Reciprocal(y, x0, {N});", [positive], 1 / positive)
case("Abs_f32", f"Abs(y, x0, {N});", [a], np.abs(a))
case("Relu_i32", f"Relu(y, x0, {N});", [ai], np.maximum(ai, 0))
case("Relu_f16", f"Relu(y, x0, {N});", [ah], np.maximum(ah, 0))
case("LeakyRelu_f32", f"LeakyRelu(y, x0, 0.1f, {N});", [a], np.where(a >= 0, a, a * f32(0.1)))
case("flush_denormals", "Muls(y, x0, 1e-30f, 3);", [np.array([1e-10, -1e-12, 1e-5], f32)],
     np.array([0, -0.0, f32(1e-5) * f32(1e-30)], f32))
case("Max_nan", "Max(y, x0, x1, 3);", [np.array([np.nan, 1, -np.inf], f32), np.array([2, np.nan, 3], f32)], np.array([np.nan, np.nan, 3], f32))
case("half_overflow", "Muls(y, x0, half(2.0f), 2);", [np.array([60000, -60000], f16)], np.array([np.inf, -np.inf], f16))
u16a, u16b = rng.integers(0, 65536, N).astype(np.uint16), rng.integers(0, 65536, N).astype(np.uint16)
case("And_u16", f"And(y, x0, x1, {N});", [u16a, u16b], u16a & u16b)
case("Or_u16", f"Or(y, x0, x1, {N});", [u16a, u16b], u16a | u16b)
case("Not_u16", f"Not(y, x0, {N});", [u16a], ~u16a)
case("ShiftLeft_i32", f"ShiftLeft(y, x0, 3, {N});", [ai], ai << 3)
case("ShiftRight_i32", f"ShiftRight(y, x0, 2, {N});", [ai], ai >> 2)
case("ShiftRight_u32", f"ShiftRight(y, x0, uint32_t(4), {N});", [ai.view(np.uint32)], ai.view(np.uint32) >> 4)
case("Axpy_f32", f"Axpy(y, x0, 1.5f, {N});", [a], (a.astype(np.float64) * 1.5 + b).astype(f32), before=b)
wide, narrow = normal(128), normal(128, f16)
once = (narrow.astype(np.float64) * 1.5 + wide).astype(f32)
case("Axpy_mixed", "Axpy(y, x0, half(1.5f), 128);", [narrow], once, before=wide)
case("Axpy_mixed_lanes", "Axpy(y, x0, half(1.5f), 64, 2, {1, 1, 8, 4});", [narrow], once, before=wide)
case("Axpy_bits", "uint64_t mask[2] = {0xff, 0}; Axpy(y, x0, 1.5f, mask, 2, {1, 1, 8, 8});", [a[:128]],
     np.where(np.arange(128) % 64 < 8, (a[:128].astype(np.float64) * 1.5 + b[:128]).astype(f32), b[:128]), before=b[:128])
case("MulAddDst_mixed_lanes", "MulAddDst(y, x0, x0, 64, 2, {1, 1, 1, 8, 4, 4});", [narrow],
     (narrow.astype(np.float64) ** 2 + wide).astype(f32), before=wide)
case("MulAddDst_bits", "const uint64_t mask[2] = {1, 0}; MulAddDst(y, x0, x0, mask, 2, {1, 1, 1, 8, 8, 8});", [a[:128]],
     np.where(np.arange(128) % 64 == 0, (a[:128].astype(np.float64) ** 2 + b[:128]).astype(f32), b[:128]), before=b[:128])
case("FusedMulAdd_f32", f"FusedMulAdd(y, x0, x1, {N});", [a, a[::-1]], (a.astype(np.float64) * b + a[::-1]).astype(f32), before=b)
case("FusedMulAdd_lanes", "FusedMulAdd(y, x0, x0, 64, 3, {1, 1, 1, 8, 8, 8});", [a[:192]],
     (a[:192].astype(np.float64) * b[:192] + a[:192]).astype(f32), before=b[:192])
fused = np.maximum((a.astype(np.float64) * b + a[::-1]).astype(f32), 0)
case("FusedMulAddRelu_f32", f"FusedMulAddRelu(y, x0, x1, {N});", [a, a[::-1]], fused, before=b)
for name, f in {"AddRelu": np.add, "SubRelu": np.subtract}.items():
    for lhs, rhs in ((a, b), (ah, bh), (ai.astype(np.int16), bi.astype(np.int16))):
        case(f"{name}_{lhs.dtype}", f"{name}(y, x0, x1, {N});", [lhs, rhs], np.maximum(f(lhs, rhs), 0))
case("MulAddDst_f32", f"MulAddDst(y, x0, x0, {N});", [a], (a.astype(np.float64) ** 2 + b).astype(f32), before=b)

# masks and strides: repeats of 8 blocks; dst skips a block each time, src1 repeats one block
x = normal(256)
before = normal(256)
half_mask = np.tile(np.arange(64) < 20, 4)
case("Add_masked", "Add(y, x0, x0, 20, 4, BinaryRepeatParams{1, 1, 1, 8, 8, 8});", [x], np.where(half_mask, x + x, before), before=before)
odd = np.tile(np.arange(64) % 2 == 1, 4)
case("Muls_bits", "uint64_t m[2] = {0xaaaaaaaaaaaaaaaaull, 0}; Muls(y, x0, 2.0f, m, 4, UnaryRepeatParams{1, 1, 8, 8});", [x],
     np.where(odd, 2 * x, before), before=before)
case("Add_broadcast_block", "Add(y, x0, x1, 64, 4, BinaryRepeatParams{1, 1, 0, 8, 8, 0});", [x, x[:8].copy()], x + np.tile(x[:8], 32))
strided = np.zeros(256, f32)
strided.reshape(16, 2, 8)[:, 0] = x[:128].reshape(16, 8)
case("Adds_block_stride", "Adds(y, x0, 0.0f, 64, 2, UnaryRepeatParams{2, 1, 16, 8});", [x], strided)
case("Exp_mask_register", "SetMaskCount(); SetVectorMask<float, MaskMode::COUNTER>(100); "
     "Muls<float, false>(y, x0, 2.0f, 1, 1, UnaryRepeatParams{1, 1, 8, 8}); SetMaskNorm(); ResetMask();", [x],
     np.where(np.arange(256) < 100, 2 * x, before), before=before)
full = normal(256, f16)
case("half_mask_70", "Adds(y, x0, half(1), 70, 2, UnaryRepeatParams{1, 1, 8, 8});", [full],
     np.where(np.arange(256) % 128 < 70, full + f16(1), f16(0)))

# ---- Cast ----

edge = np.array([0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 2.4, -2.4, 2.6, -2.6, 1e10, -1e10, 300, -300, 127.5, np.nan, np.inf, -np.inf, 0, 7], f32)
modes = {"RINT": np.rint, "FLOOR": np.floor, "CEIL": np.ceil, "TRUNC": np.trunc,
         "ROUND": lambda v: np.copysign(np.floor(np.abs(v) + 0.5), v)}


def saturate(v, dtype):
    info = np.iinfo(dtype)
    v = np.nan_to_num(np.asarray(v, np.float64), nan=0.0)
    clipped = np.clip(v, float(info.min), float(info.max))
    return np.array([int(c) if abs(c) < 2**62 else (info.max if c > 0 else info.min) for c in clipped]).clip(info.min, info.max).astype(dtype)


for mode, f in modes.items():
    for dtype in (np.int16, np.int32, np.int64):
        case(f"Cast_f32_{CTYPES[np.dtype(dtype)]}_{mode}", f"Cast(y, x0, RoundMode::CAST_{mode}, {edge.size});", [edge],
             saturate(f(edge), dtype))
    for dtype in (np.int8, np.uint8):
        case(f"Cast_f16_{CTYPES[np.dtype(dtype)]}_{mode}", f"Cast(y, x0, RoundMode::CAST_{mode}, {edge.size});",
             [edge.astype(f16)], saturate(f(edge.astype(f16).astype(f32)), dtype))
    case(f"Cast_f32_f32_{mode}", f"Cast(y, x0, RoundMode::CAST_{mode}, {edge.size});", [edge], f(edge).astype(f32))
    case(f"Cast_bf16_i32_{mode}", f"Cast(y, x0, RoundMode::CAST_{mode}, {edge.size});", [edge.astype(bf16)],
         saturate(f(edge.astype(bf16).astype(f32)), np.int32))


def to_half(v, mode):
    """Rounds by picking the neighbour: the halves around each value, from the definition of the mode."""
    near = v.astype(f16)
    out = near.copy()
    for i, value in enumerate(v):
        n = f16(near[i])
        if not np.isfinite(value) or f32(n) == value:
            continue
        low = n if f32(n) < value else np.nextafter(n, f16(-np.inf))
        high = np.nextafter(low, f16(np.inf))
        toward_zero, away = (low, high) if value > 0 else (high, low)
        if mode == "ODD":
            out[i] = low if np.array(low).view(np.uint16) & 1 else high
        elif mode == "ROUND":
            middle = (f32(low) + f32(high)) / 2
            out[i] = away if abs(value) >= abs(middle) else toward_zero
        else:
            out[i] = {"FLOOR": low, "CEIL": high, "TRUNC": toward_zero}[mode]
    return out


fine = np.concatenate([normal(60) * 10, normal(20) * 1e-5, normal(20) * 1e-7, [1 + 2**-11, 1 + 3 * 2**-11, 2.0**-25, -2.0**-25, 65519, 1e-9, -1e-9]]).astype(f32)
for mode in ("FLOOR", "CEIL", "TRUNC", "ROUND", "ODD"):
    case(f"Cast_f32_f16_{mode}", f"Cast(y, x0, RoundMode::CAST_{mode}, {fine.size});", [fine], to_half(fine, mode))
for mode in ("RINT", "NONE"):
    more = np.concatenate([fine, edge, [65504, 65519.9, 65520, -70000]]).astype(f32)
    case(f"Cast_f32_f16_{mode}", f"Cast(y, x0, RoundMode::CAST_{mode}, {more.size});", [more], more.astype(f16))
case("Cast_f32_bf16", f"Cast(y, x0, RoundMode::CAST_RINT, {fine.size});", [fine], fine.astype(bf16))
truncated = (fine.view(np.uint32) >> 16).astype(np.uint16).view(bf16)
case("Cast_f32_bf16_TRUNC", f"Cast(y, x0, RoundMode::CAST_TRUNC, {fine.size});", [fine], truncated)
every = np.arange(0, 65536, 11).astype(np.uint16)
case("Cast_f16_f32", f"Cast(y, x0, RoundMode::CAST_NONE, {every.size});", [every.view(f16)], every.view(f16).astype(f32))
case("Cast_bf16_f32", f"Cast(y, x0, RoundMode::CAST_NONE, {every.size});", [every.view(bf16)], every.view(bf16).astype(f32))
big = np.array([2**31 - 1, -(2**31), 2**24 + 1, 2**24 + 3, -(2**24) - 1, 5, 40000, -40000], np.int32)
case("Cast_i32_f32", "Cast(y, x0, RoundMode::CAST_NONE, 8);", [big], big.astype(f32))
case("Cast_i32_f32_FLOOR", "Cast(y, x0, RoundMode::CAST_FLOOR, 8);", [big], np.array([2147483520, -2147483648, 2**24, 2**24 + 2, -(2**24) - 2, 5, 40000, -40000], f32))
case("Cast_i32_i16", "Cast(y, x0, RoundMode::CAST_NONE, 8);", [big], np.clip(big, -32768, 32767).astype(np.int16))
case("Cast_i32_i64", "Cast(y, x0, RoundMode::CAST_NONE, 8);", [big], big.astype(np.int64))
long = np.array([2**40, -(2**40), 2**60 + 1, -5], np.int64)
case("Cast_i64_i32", "Cast(y, x0, RoundMode::CAST_NONE, 4);", [long], np.clip(long, -(2**31), 2**31 - 1).astype(np.int32))
case("Cast_i64_f32", "Cast(y, x0, RoundMode::CAST_RINT, 4);", [long], long.astype(f32))
bytes8 = np.arange(-128, 128).astype(np.int8)
case("Cast_i8_f16", "Cast(y, x0, RoundMode::CAST_NONE, 256);", [bytes8], bytes8.astype(f16))
case("Cast_u8_f16", "Cast(y, x0, RoundMode::CAST_NONE, 256);", [bytes8.view(np.uint8)], bytes8.view(np.uint8).astype(f16))
case("Cast_i16_f16", "Cast(y, x0, RoundMode::CAST_RINT, 3);", [np.array([2049, 2051, -32768], np.int16)], np.array([2048, 2052, -32768], f16))
case("Cast_i32_f16_deq", "SetDeqScale(half(0.5f)); Cast(y, x0, RoundMode::CAST_NONE, 4);", [np.array([4, 5, -6, 0], np.int32)], np.array([2, 2.5, -3, 0], f16))
case("Cast_f16_i4", "Cast(y.ReinterpretCast<int4b_t>(), x0, RoundMode::CAST_RINT, 6);", [np.array([1, -1, 9, -9, 2.5, 3.5], f16)],
     np.array([0xF1, 0x87, 0x42], np.uint8))
case("Cast_i4_f16", "Cast(y, x0.ReinterpretCast<int4b_t>(), RoundMode::CAST_NONE, 6);", [np.array([0xF1, 0x87, 0x42], np.uint8)],
     np.array([1, -1, 7, -8, 2, 4], f16))
case("Cast_masked", "Cast(y, x0, RoundMode::CAST_NONE, 10, 2, UnaryRepeatParams{1, 1, 8, 4});", [ah[:128].copy()],
     np.where(np.arange(128) % 64 < 10, ah[:128].astype(f32), 0).astype(f32))
case("Cast_widen_in_place", "DataCopy(y[64].ReinterpretCast<half>(), x0, 128); PipeBarrier<PIPE_V>(); "
     "Cast(y, y[64].ReinterpretCast<half>(), RoundMode::CAST_NONE, 128);", [ah[:128].copy()], ah[:128].astype(f32))
case("Cast_widen_where_it_lies", "DataCopy(y.ReinterpretCast<half>(), x0, 64); PipeBarrier<PIPE_V>(); "
     "Cast(y, y.ReinterpretCast<half>(), RoundMode::CAST_NONE, 64);", [ah[:64].copy()], ah[:64].astype(f32))  # one repeat

# ---- fills ----

case("Duplicate_f32", f"Duplicate(y, 2.5f, {N});", [], np.full(N, 2.5, f32))
case("Duplicate_masked", "Duplicate(y, 3, 5, 2, 1, 8);", [], np.where(np.arange(128) % 64 < 5, 3, 0).astype(np.int32))
case("CreateVecIndex_i32", f"CreateVecIndex(y, 10, {N}u);", [], np.arange(10, 10 + N).astype(np.int32))
case("CreateVecIndex_f32", f"CreateVecIndex<float>(y, 0.0f, {N}u);", [], np.arange(N).astype(f32))
case("CreateVecIndex_f16", "CreateVecIndex(y, half(5.0f), 100u);", [], np.arange(5, 105).astype(f16))
case("ArithProgression", "ArithProgression<float>(y, 1.0f, 0.5f, 50);", [], (1 + 0.5 * np.arange(50)).astype(f32))
case("Arange", "Arange<int32_t>(y, 3, -2, 50);", [], (3 - 2 * np.arange(50)).astype(np.int32))
case("Brcb_f32", "Brcb(y, x0, 2, {1, 8});", [x[:16].copy()], np.repeat(x[:16], 8))
case("Brcb_f16", "Brcb(y, x0, 1, {1, 8});", [ah[:8].copy()], np.repeat(ah[:8], 16))
grid = rng.integers(0, 65536, (16, 16)).astype(np.uint16)
case("Transpose", "Transpose(y, x0);", [grid], grid.T)
case("Copy_masked", "Copy(y, x0, 20, 2, CopyRepeatParams{1, 1, 8, 8});", [x[:128].copy()], np.where(np.arange(128) % 64 < 20, x[:128], 0).astype(f32))
case("DataCopy_UB", "DataCopy(y, x0, 128);", [x[:128].copy()], x[:128])
case("DataCopy_UB_strided", "DataCopy(y, x0, DataCopyParams{4, 1, 1, 2});", [x[:64].copy()],
     np.concatenate([np.concatenate([x[16 * i:16 * i + 8], np.zeros(16, f32)]) for i in range(4)])[:80])

# ---- compare, select ----

C = 256
p, q = normal(C), normal(C)
p[:10] = q[:10]
p[20], q[30] = np.nan, np.nan
comparisons = {"LT": np.less, "GT": np.greater, "EQ": np.equal, "LE": np.less_equal, "GE": np.greater_equal, "NE": np.not_equal}
for mode, f in comparisons.items():
    case(f"Compare_{mode}", f"Compare(y, x0, x1, CMPMODE::{mode}, {C});", [p, q], bits_of(f(p, q)))
    case(f"CompareScalar_{mode}", f"CompareScalar(y, x0, 0.25f, CMPMODE::{mode}, {C});", [p], bits_of(f(p, f32(0.25))))
case("Compares_f16", "Compares(y, x0, half(0.25f), CMPMODE::GT, 128);", [ah[:128].copy()], bits_of(ah[:128] > f16(0.25)))
case("Compare_i32_EQ", "Compare(y, x0, x1, CMPMODE::EQ, 128);", [ai[:128].copy(), bi[:128].copy()], bits_of(ai[:128] == bi[:128]))
case("Compare_masked", "Compare(y, x0, x1, CMPMODE::GT, 64, 4, BinaryRepeatParams{1, 1, 1, 8, 8, 8});", [p, q], bits_of(p > q))
chosen = rng.random(C) < 0.5
packed = bits_of(chosen)
case("Select_scalar", f"Select(y, x1, x0, -1.0f, SELMODE::VSEL_TENSOR_SCALAR_MODE, {C});", [p, packed], np.where(chosen, p, f32(-1)))
case("Select_tensor", f"Select(y, x1, x0, x2, SELMODE::VSEL_TENSOR_TENSOR_MODE, {C});", [p, packed, q], np.where(chosen, p, q))
case("Select_u32_mask", f"Select(y, x1, x0, x2, SELMODE::VSEL_TENSOR_TENSOR_MODE, {C});", [p, packed.view(np.uint32), q], np.where(chosen, p, q))
case("Select_same_bits", f"Select(y, x1, x0, x2, SELMODE::VSEL_CMPMASK_SPR, {C});", [p, packed, q], np.where(np.tile(chosen[:64], 4), p, q))
case("Select_f16", "Select(y, x1, x0, half(0), SELMODE::VSEL_TENSOR_SCALAR_MODE, 100);", [ah[:100].copy(), packed], np.where(chosen[:100], ah[:100], f16(0)))
case("Select_masked", "uint64_t m = 20; Select(y, x1, x0, x2, SELMODE::VSEL_TENSOR_TENSOR_MODE, m, 4, BinaryRepeatParams{1, 1, 1, 8, 8, 8});",
     [p, packed, q], np.where(half_mask, np.where(chosen, p, q), 0).astype(f32))

# ---- reductions ----

rows = normal((4, 64))
rows[1, 7] = rows[1, 40] = 9
flat = rows.ravel()
case("WholeReduceSum", "WholeReduceSum<float>(y, x0, 64, 4, 1, 1, 8);", [flat], tree_sum(rows))
case("WholeReduceSum_mask", "WholeReduceSum<float>(y, x0, 20, 4, 2, 1, 8);", [flat],
     np.stack([tree_sum(np.where(np.arange(64) < 20, rows, 0)), np.zeros(4)], 1).astype(f32))
best = np.empty((4, 2), f32)
best[:, 0], best[:, 1] = rows.max(1), rows.argmax(1).astype(np.uint32).view(f32)
case("WholeReduceMax", "WholeReduceMax<float>(y, x0, 64, 4, 1, 1, 8);", [flat], best)
case("WholeReduceMax_order", "WholeReduceMax<float>(y, x0, 64, 4, 1, 1, 8, ReduceOrder::ORDER_INDEX_VALUE);", [flat], best[:, ::-1])
case("WholeReduceMax_value", "WholeReduceMax<float>(y, x0, 64, 4, 1, 1, 8, ReduceOrder::ORDER_ONLY_VALUE);", [flat], rows.max(1))
case("WholeReduceMax_index", "WholeReduceMax<float>(y.ReinterpretCast<float>(), x0, 64, 4, 1, 1, 8, ReduceOrder::ORDER_ONLY_INDEX);", [flat], rows.argmax(1).astype(np.uint32))
case("WholeReduceMin_value", "WholeReduceMin<float>(y, x0, 64, 4, 1, 1, 8, ReduceOrder::ORDER_ONLY_VALUE);", [flat], rows.min(1))
halves = normal((2, 128), f16)
case("WholeReduceSum_f16", "WholeReduceSum<half>(y, x0, 128, 2, 1, 1, 8);", [halves], tree_sum(halves))
case("BlockReduceSum", "BlockReduceSum<float>(y, x0, 4, 64, 1, 1, 8);", [flat], tree_sum(flat.reshape(32, 8)))
case("BlockReduceMax", "BlockReduceMax<float>(y, x0, 4, 64, 1, 1, 8);", [flat], flat.reshape(32, 8).max(1))
case("BlockReduceMin_partial", "BlockReduceMin<float>(y, x0, 1, 20, 1, 1, 8);", [flat],
     np.array([flat[:8].min(), flat[8:16].min(), flat[16:20].min(), 5, 5, 5, 5, 5], f32), before=np.full(8, 5, f32))
case("PairReduceSum", "PairReduceSum<float>(y, x0, 2, 64, 1, 1, 8);", [flat[:128].copy()], flat[:128:2] + flat[1:128:2])
case("ReduceRepeat", "ReduceRepeat<ReduceType::SUM>(y, x0, 64, 4, 1, 1, 8);", [flat], tree_sum(rows))
case("ReduceDataBlock", "ReduceDataBlock<ReduceType::MAX>(y, x0, 64, 4, 1, 1, 8);", [flat], flat.reshape(32, 8).max(1))
case("ReducePairElem", "ReducePairElem<ReduceType::SUM>(y, x0, 64, 2, 1, 1, 8);", [flat[:128].copy()], flat[:128:2] + flat[1:128:2])
line = normal(1000)
line[123] = line[800] = 7
case("ReduceMax_index", "ReduceMax(y, x0, tmp.ReinterpretCast<float>(), 1000, true);", [line],
     np.array([7, np.array(123, np.uint32).view(f32)], f32))
case("ReduceMin", "ReduceMin(y, x0, tmp.ReinterpretCast<float>(), 1000);", [line], line.min(keepdims=True))
padded = np.zeros(1024, f32)
padded[:1000] = line
partial = tree_sum(padded.reshape(16, 64))
total = partial[0]
for s in partial[1:]:
    total = total + s
case("ReduceSum", "ReduceSum(y, x0, tmp.ReinterpretCast<float>(), 1000);", [line], total[None])

# ---- gather, compaction ----

values = normal(C)
case("GatherMask_pattern", f"uint64_t kept; GatherMask(y, x0, x1, true, {C}, GatherMaskParams{{1, 1, 0, 0}}, kept); "
     "PipeBarrier<PIPE_ALL>(); y.SetValue(255, kept);", [values, packed.view(np.uint32)],
     np.concatenate([values[chosen], np.zeros(255 - chosen.sum()), [chosen.sum()]]).astype(f32))
case("GatherMask_even", "uint64_t kept; GatherMask(y, x0, 1, false, 0, GatherMaskParams{1, 2, 8, 0}, kept);", [values[:128].copy()], values[:128:2])
case("GatherMask_third", "uint64_t kept; GatherMask(y, x0, 5, true, 30, GatherMaskParams{1, 2, 8, 0}, kept);", [values[:128].copy()],
     np.concatenate([values[2:30:4], values[66:94:4]]))
case("GatherMask_u16", "uint64_t kept; GatherMask(y, x0, x1, true, 70, GatherMaskParams{1, 2, 8, 0}, kept);", [u16a[:198].copy(), packed.view(np.uint16)],
     np.concatenate([u16a[:70][chosen[:70]], u16a[128:198][chosen[:70]]]))
case("GatherMask_in_place", f"uint64_t kept; DataCopy(y, x0, {C}); PipeBarrier<PIPE_V>(); GatherMask(y, y, x1, true, {C}, {{1, 1, 0, 0}}, kept);",
     [values, packed.view(np.uint32)], values[chosen])
offsets = rng.permutation(C).astype(np.uint32)
case("Gather_f32", f"Gather(y, x0, x1, 0, {C});", [values, offsets * 4], values[offsets])
case("Gather_base_u16", "Gather(y, x0, x1, 16, 50);", [u16a, (offsets[:50] % 90).astype(np.uint32) * 2], u16a[offsets[:50] % 90 + 8])
blocks = rng.permutation(16).astype(np.uint32)
case("Gatherb", "Gatherb(y, x0, x1, 2, {1, 8});", [values[:128].view(np.uint32).copy(), blocks * 32], values[:128].reshape(16, 8)[blocks].ravel().view(np.uint32))

# ---- sorting ----


def pairs(scores, index):
    """Descending, stable, as 8-byte pairs."""
    order = np.argsort(-scores.astype(f32), kind="stable")
    out = np.zeros((scores.size, 2), np.uint32)
    s = scores[order]
    out[:, 0] = s.view(np.uint32) if s.dtype == f32 else s.view(np.uint16)
    out[:, 1] = index[order]
    return out


scores = np.round(normal(128) * 4).astype(f32)  # many ties
index = np.arange(1000, 1128).astype(np.uint32)
runs = np.concatenate([pairs(scores[i:i + 32], index[i:i + 32]) for i in range(0, 128, 32)])
case("Sort32_f32", "Sort32<float>(y.ReinterpretCast<float>(), x0, x1, 4);", [scores, index], runs)
case("Sort32_f16", "Sort32<half>(y.ReinterpretCast<half>(), x0, x1, 4);", [scores.astype(f16), index],
     np.concatenate([pairs(scores.astype(f16)[i:i + 32], index[i:i + 32]) for i in range(0, 128, 32)]))
MERGE = """uint16_t len[4] = {32, 32, 32, 32};
  MrgSort<float>(y.ReinterpretCast<float>(), MrgSortSrcList<float>(x0, x0[64], x0[128], x0[192]), MrgSort4Info(len, %s, %s, 1));"""
case("MrgSort_4", MERGE % ("false", "15"), [runs.view(f32)], pairs(scores, index))
case("MrgSort_2", MERGE % ("false", "3"), [runs.view(f32)], pairs(scores[:64], index[:64]))


def suspended(lists):
    """Merges until one list is used up."""
    heads, out = [0] * len(lists), []
    while all(h < len(l) for h, l in zip(heads, lists)):
        i = max(range(len(lists)), key=lambda k: (lists[k][heads[k]][0], -k))
        out.append(i)
        heads[i] += 1
    return out, heads


lists = [[(s,) for s in runs[i:i + 32, 0].copy().view(f32)] for i in range(0, 128, 32)]
order, taken = suspended(lists)
heads, stopped = [0] * 4, []
for i in order:
    stopped.append(runs[32 * i + heads[i]])
    heads[i] += 1
case("MrgSort_suspend", MERGE % ("true", "15"), [runs.view(f32)], np.array(stopped))
case("MrgSort_counts", MERGE.replace("y.Rein", "tmp.Rein") % ("true", "15") + """
  SetFlag<HardEvent::V_S>(1); WaitFlag<HardEvent::V_S>(1); uint16_t c[4]; GetMrgSortResult(c[0], c[1], c[2], c[3]); for (int i = 0; i < 4; ++i) y.SetValue(i, c[i]);""",
     [runs.view(f32)], np.array(taken, np.int32))
two = np.concatenate([runs.view(f32).reshape(-1), runs[::1].view(f32).reshape(-1)])
case("MrgSort_repeat", MERGE.replace(", 1));", ", 2));") % ("false", "15"), [two], np.concatenate([pairs(scores, index)] * 2))
case("MrgSort_old_form", """uint16_t len[4] = {32, 32, 32, 32}; uint32_t sorted[4];
  MrgSort<float, false>(y.ReinterpretCast<float>(), MrgSortSrcList<float>(x0, x0[64], x0[128], x0[192]), len, sorted, 15, 1);""",
     [runs.view(f32)], pairs(scores, index))
case("Sort_full", """LocalTensor<float> concat, t = tmp.ReinterpretCast<float>(); Concat(concat, x0, t, 8);
  Sort<float, true>(y.ReinterpretCast<float>(), concat, x1, t, 4);""", [scores, index], pairs(scores, index))
case("Extract_values", "Extract(y, tmp.ReinterpretCast<uint32_t>(), x0, 4);", [runs.view(f32)], runs[:, 0].copy().view(f32))
case("Extract_indices", "Extract(tmp.ReinterpretCast<float>(), y, x0, 4);", [runs.view(f32)], runs[:, 1])
case("GetSortLen", "y.SetValue(0, GetSortLen<float>(100)); y.SetValue(1, GetSortOffset<half>(100));", [], np.array([200, 400], np.int32))

compared = bits_of(np.where(np.arange(64) < 40, a[:64] < b[:64], False))
case("Compare_register", "Compare(x0, x1, CMPMODE::LT, 40, {1, 1, 1, 8, 8, 8}); PipeBarrier<PIPE_V>(); GetCmpMask(y);",
     [a[:64], b[:64]], np.append(compared, np.zeros(8, np.uint8)))

# ---- high-level functions ----


def softmax(x, valid=None, sums=f32):
    """Rows of x, and their (sum, maximum), each filling 32 bytes."""
    wide = x.astype(f32)
    highest = wide[:, :valid].max(1, keepdims=True)
    powers = np.exp((wide - highest).astype(np.float64)).astype(f32)
    total = powers[:, :valid].astype(np.float64).sum(1, keepdims=True).astype(f32)
    return (powers / total).astype(x.dtype), [np.repeat(v.astype(sums), 32 // np.dtype(sums).itemsize, 1) for v in (total, highest)]


SOFTMAX = """SoftMaxTiling t; t.srcM = 6; t.srcK = 128;
  LocalTensor<{sums}> sum(TPosition::VECCALC, 73728, 96), max(TPosition::VECCALC, 74752, 96);
  LocalTensor<{type}> out(TPosition::VECCALC, 81920, 1024);
  {call}; PipeBarrier<PIPE_V>(); {result}"""
logits = normal((6, 128)) * 5
for dtype, sums in [(f32, f32), (f16, f16), (f16, f32)]:
    kind, types = f"{np.dtype(dtype).name}_{np.dtype(sums).name}", {"type": CTYPES[np.dtype(dtype)], "sums": CTYPES[np.dtype(sums)]}
    soft, (total, highest) = softmax(logits.astype(dtype), sums=sums)
    call = "SoftMax<{type}>({to}, sum, max, x0, tmp, t, SoftMaxShapeInfo{{6, 128, 6, 128}})"
    for what, to, result, expected in [("row", "y", "", soft), ("sum", "out", "DataCopy(y, sum, {n});", total),
                                       ("max", "out", "DataCopy(y, max, {n});", highest)]:
        text = SOFTMAX.format(**types, call=call.format(**types, to=to), result=result.format(n=expected.size))
        case(f"SoftMax_{what}_{kind}", text, [logits.astype(dtype)], expected)
case("SoftMax_forms", SOFTMAX.format(type="float", sums="float", call="SoftMax<float>(out, x0, t); PipeBarrier<PIPE_V>(); "
     "SoftMax<float, false, false>(out, out, tmp, t); PipeBarrier<PIPE_V>(); SoftMax<float, false, false, false>(out, sum, max, out, t)",
     result="DataCopy(y, out, 768);"), [logits], softmax(softmax(softmax(logits)[0])[0])[0])
case("SoftMax_padded", "SoftMaxTiling t; SoftMax<float>(y, x0, tmp, t, {6, 128, 6, 100});", [logits], softmax(logits, 100)[0])

TOPK = """LocalTensor<int32_t> index(TPosition::VECCALC, 81920, 1024), names(TPosition::VECCALC, 86016, 1024);
  LocalTensor<float> value(TPosition::VECCALC, 90112, 1024); LocalTensor<bool> ended(TPosition::VECCALC, 94208, 32);
  CreateVecIndex(names, 100, 128); Duplicate(ended.ReinterpretCast<uint16_t>(), uint16_t(0x0100), 1); PipeBarrier<PIPE_ALL>();
  TopkTiling t;"""
tied = np.round(normal((2, 64)) * 3) / 3
tied[1, 7] = np.nan
ranks = np.argsort(-tied, 1, kind="stable")
ranks[1] = np.r_[7, ranks[1][ranks[1] != 7]]
best = np.take_along_axis(tied, ranks[:, :8], 1)
case("TopK_values", TOPK + "TopK<float>(y, index, x0, names, ended, tmp, 8, t, TopKInfo{2, 64, 64});", [tied], best)
case("TopK_indices", TOPK + "TopK<float, true>(value, y, x0, names, ended, tmp, 8, t, TopKInfo{2, 64, 64});", [tied],
     (ranks[:, :8] + 100).astype(np.int32))
case("TopK_finished", TOPK + "TopK<float, false, true>(value, y, x0, names, ended, 8, t, TopKInfo{2, 64, 60});", [tied],
     np.stack([ranks[0, :8], [60] * 8]).astype(np.int32))
lowest = np.argsort(tied[:1], 1, kind="stable")[:, :8].astype(np.int32)
case("TopK_smallest", TOPK + "TopK<float>(value, y, x0, names, ended, tmp, 8, t, TopKInfo{1, 64, 64}, false);", [tied[:1]], lowest)
case("TopK_small_mode", TOPK + """TopK<half, true, false, false, TopKMode::TOPK_NSMALL>(value.ReinterpretCast<half>(), y, x0,
  names, ended, tmp, 3, t, TopKInfo{4, 32, 32});""", [tied[:1].repeat(2, 0).reshape(4, 32).astype(f16)],
     np.argsort(-tied[:1].repeat(2, 0).reshape(4, 32), 1, kind="stable")[:, :3].astype(np.int32) + np.arange(4, dtype=np.int32)[:, None] * 32 + 100)


def quantized(x, scale, offset):
    return np.clip(np.rint(x.astype(f16) * f16(scale) + f16(offset)), -128, 127).astype(np.int8)


coarse, scales, offsets8 = normal(256) * 60, normal(64), normal(64)
case("AscendQuant_scalar", "AscendQuant<float>(y, x0, tmp, 1.3f, 2.5f, 256);", [coarse], quantized(coarse, 1.3, 2.5))
case("AscendQuant_half", "AscendQuant(y, x0[0], 0.7f, -1.0f, 256);", [coarse.astype(f16)], quantized(coarse, 0.7, -1))
case("AscendQuant_channels", "AscendQuant<float>(y, x0, tmp, x1, x2, 64, 64, 256);", [coarse, scales, offsets8],
     quantized(coarse, np.tile(scales, 4).astype(f16), np.tile(offsets8, 4).astype(f16)))
case("AscendQuant_scales", "AscendQuant(y, x0, x1, 1.5f, 64, 256);", [coarse, scales], quantized(coarse, np.tile(scales, 4).astype(f16), 1.5))
halves = np.arange(-8, 8, 0.25, dtype=f32)
case("Round", "Round(y, x0, tmp, 64);", [halves], np.rint(halves))
case("Round_half", "Round<half>(y, x0, 64);", [halves.astype(f16)], np.rint(halves).astype(f16))
case("Rint", "Rint(y, x0, tmp, 64); PipeBarrier<PIPE_V>(); Rint<DEFAULT_RINT_CONFIG, float>(y, x0, 64);", [halves], np.rint(halves), target="ascend950")
counted = np.arange(64, dtype=np.int32)[::-1].copy()
case("TopK_radix", """LocalTensor<int32_t> index(TPosition::VECCALC, 81920, 64), names; LocalTensor<bool> ended; TopkTiling t;
  static constexpr TopKConfig config{TopKAlgo::RADIX_SELECT, TopKOrder::SMALLEST, true};
  TopK<int32_t, false, false, false, TopKMode::TOPK_NORMAL, config>(y, index, x0, names, ended, tmp, 8, t, TopKInfo{1, 64, 64});""",
     [counted], counted[::-1][:8], target="ascend950")

# ---- scalars ----

case("half_scalar", "half s = half(1.5f) * half(3.0f) + half(0.1f); y.SetValue(0, s); y.SetValue(1, half(0.1f)); y.SetValue(2, -s);", [],
     np.array([f16(f16(4.5) + f16(0.1)), f16(0.1), -f16(f16(4.5) + f16(0.1))], f16))
case("scalar_cast", """half h = ScalarCast<float, half, RoundMode::CAST_FLOOR>(1.0009f);
  y.SetValue(0, ScalarCast<float, int32_t, RoundMode::CAST_RINT>(2.5f)); y.SetValue(1, unlikely(h == half(1.0f)) ? 1 : 0);""", [],
     np.array([2, 1], np.int32))
case("bfloat_scalar", "y.SetValue(0, ToFloat(ToBfloat16(1.01f)));", [], np.array([bf16(1.01)], f32))

# ---- 950 only ----

case("Scatter", f"Scatter(y, x0, x1, 0, {C});", [values, offsets * 4], values[np.argsort(offsets)], target="ascend950")
bb = normal(N, bf16)
case("Add_bf16", f"Add(y, x0, x0, {N});", [bb], bb + bb, target="ascend950")
case("Compare_i32_LT", "Compare(y, x0, x1, CMPMODE::LT, 128);", [ai[:128].copy(), bi[:128].copy()], bits_of(ai[:128] < bi[:128]), target="ascend950")
by = (bi % 31).astype(np.int32)
case("ShiftLeft_tensor", f"ShiftLeft(y, x0, x1, {N});", [ai, by], ai << by, target="ascend950")
case("ShiftRight_tensor", f"ShiftRight(y, x0, x1, {N});", [ai, by], ai >> by, target="ascend950")
case("ShiftRight_unsigned", f"ShiftRight(y, x0, x1, {N});", [ai.view(np.uint32), by], ai.view(np.uint32) >> by.view(np.uint32),
     target="ascend950")
case("And_i32", f"And(y, x0, x1, {N});", [ai, bi], ai & bi, target="ascend950")
case("Div_i32", f"Div(y, x0, x1, {N});", [ai, bi], np.trunc(ai / bi).astype(np.int32), target="ascend950")
case("ReduceSum_tree", "ReduceSum(y, x0, tmp.ReinterpretCast<float>(), 1000);", [line], tree_sum(np.concatenate([partial, np.zeros(48, f32)]))[None], target="ascend950")

small = np.concatenate([normal(120) * 100, np.array([0, -0.0, 2.0**-9, 2.0**-10, 3 * 2.0**-10, 447, 448, 2.0**-7], f32)]).astype(f32)
for dtype in (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2):
    largest, name = ml_dtypes.finfo(dtype).max, CTYPES[np.dtype(dtype)]
    case(f"Cast_f32_{name}", "Cast(y, x0, RoundMode::CAST_RINT, 128);", [small], np.clip(small, -f32(largest), f32(largest)).astype(dtype), target="ascend950")
    every = np.arange(256, dtype=np.uint8).view(dtype)
    every = np.where(np.isnan(every.astype(f32)), dtype(1), every).astype(dtype)
    case(f"Cast_{name}_f32", "Cast(y, x0, RoundMode::CAST_NONE, 256);", [every], every.astype(f32), target="ascend950")
case("Cast_f16_bf16", "Cast(y, x0, RoundMode::CAST_RINT, 128);", [small.astype(f16)], small.astype(f16).astype(bf16), target="ascend950")
case("Cast_bf16_f16", "Cast(y, x0, RoundMode::CAST_RINT, 128);", [small.astype(bf16)], small.astype(bf16).astype(f16), target="ascend950")
for source, to in [(np.int8, np.int32), (np.uint8, np.uint32), (np.int16, np.uint8), (np.uint32, np.int16), (np.int32, np.uint16)]:
    limits, there = np.iinfo(source), np.iinfo(to)
    whole = rng.integers(limits.min, limits.max, 128, endpoint=True, dtype=source)
    case(f"Cast_{CTYPES[np.dtype(source)]}_{CTYPES[np.dtype(to)]}", "Cast(y, x0, RoundMode::CAST_NONE, 128);", [whole],
         np.clip(whole.astype(np.int64), there.min, there.max).astype(to), target="ascend950")

np.seterr(**errors)


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    return CASES.libraries(tmp_path_factory.mktemp("ops"))


@pytest.mark.parametrize("c", CASES, ids=CASES.ids())
def test_against_numpy(libraries, c):
    check(libraries(c.target), c)


def test_names_are_distinct():
    assert len({(c.name, c.target) for c in CASES}) == len(CASES)
