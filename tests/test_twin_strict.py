"""What the device compiler refuses must not compile against the twin either.

One source holds all snippets, one a function; the compiler goes on after an error, so one run says which of them it
refuses. The allowed siblings are compiled the same way and must give no error at all.
"""

import re

import pytest
from test_twin import PROLOGUE, cache  # noqa: F401  (the fixture)

from jascend.backends.ascend import twin

VARIABLES = """
LocalTensor<float> f, g; LocalTensor<half> h, k; LocalTensor<bfloat16_t> b, c; LocalTensor<int8_t> i8;
LocalTensor<int16_t> i16; LocalTensor<uint16_t> u16; LocalTensor<int32_t> i32, j32; LocalTensor<uint32_t> u32;
LocalTensor<int64_t> i64, j64; LocalTensor<uint8_t> m; LocalTensor<double> d; LocalTensor<int4b_t> i4;
GlobalTensor<float> gf; GlobalTensor<half> gh; GlobalTensor<int64_t> g64; uint32_t n = 64; uint64_t kept; half hs; bfloat16_t bs;
uint16_t lens[4] = {32, 32, 32, 32};
"""

# (what is refused, what is allowed), on 910B
REFUSED_ON_910B = [
    ("Duplicate(f, 0, n);", "Duplicate(f, 0.0f, n);"),
    ("Duplicate(i32, 0.0f, n);", "Duplicate(i32, 0, n);"),
    ("Duplicate(i8, int8_t(0), n);", "Duplicate(i16, int16_t(0), n);"),
    ("Duplicate(i64, int64_t(0), n);", "Duplicate(b, ToBfloat16(0.0f), n);"),
    ("Muls(f, g, 2, n);", "Muls(f, g, 2.0f, n);"),
    ("Adds(f, g, 2.0, n);", "Adds(f, g, 2.0f, n);"),
    ("Adds(h, k, 2.0f, n);", "Adds(h, k, half(2.0f), n);"),
    ("Adds(b, c, bs, n);", "Adds(i16, i16, int16_t(1), n);"),
    ("Maxs(i32, j32, 0u, n);", "Maxs(i32, j32, 0, n);"),
    ("Axpy(h, f, 1.0f, 64);", "Axpy(f, h, half(1.0f), 64);"),
    ("MulAddDst(i32, i32, j32, 64);", "MulAddDst(f, h, k, 64);"),
    ("FusedMulAdd(f, h, k, 64);", "FusedMulAdd(f, g, f, 64);"),
    ("AddRelu(i32, i32, j32, 64);", "AddRelu(i16, i16, i16, 64);"),
    ("ShiftRight(i32, j32, i32, 64);", "ShiftRight(i32, j32, 3, 64);"),
    ("Power(f, g, 2, n);", "Power(f, g, 2.0f, n);"),
    ("Power(i16, i16, i16);", "Power(i32, j32, i32, m);"),
    ("Power(f, g, h);", "Power<float>(f, 2.0f, g);"),
    ("Divs(f, g, 2.0f, n);", "Muls(f, g, 0.5f, n);"),
    ("Subs(f, g, 2.0f, n);", "Adds(f, g, -2.0f, n);"),
    ("Adds(f, 2.0f, g, n);", "f = f - g;"),
    ("Muls(f, g, f[0], n);", "f[32] = f * g;"),
    ("f = f - h;", "h = h - k;"),
    ("f = f + g * f;", "m = f < g;"),
    ("f += g;", "f(0) += 1.0f;"),
    ("f = f < g;", "m = h >= k;"),
    ("f = -g;", "gf(1) = f(1);"),
    ("f(0) = h;", "f(0) = h(0);"),
    ("i16 = i16 / i16;", "i32 = i32 * j32;"),
    ("SetPadValue<float, TPosition::VECCALC>(1.0f);", "SetPadValue<float, TPosition::VECIN>(1.0f);"),
    ("SetPadValue(i4);", "SetPadValue(half(1.0f));"),
    ("Select<float, SELMODE::VSEL_TENSOR_SCALAR_MODE>(f, g, f, 1, {1, 1, 1, 8, 8, 8});", "Select<float, SELMODE::VSEL_CMPMASK_SPR>(f, g, f, 1, {1, 1, 1, 8, 8, 8});"),
    ("Select<int32_t, SELMODE::VSEL_CMPMASK_SPR>(i32, j32, i32, 1, {1, 1, 1, 8, 8, 8});", "Select(f, u32, g, 1, {1, 1, 1, 8, 8, 8});"),
    ("SetCmpMask(1);", "SetCmpMask<float>(f);"),
    ("CrossCoreSetFlag<2, PIPE_MTE3>(0);", "CrossCoreSetFlag<0, PIPE_MTE3>(0);"),
    ("CrossCoreSetFlag<0, PIPE_S>(0);", "CrossCoreWaitFlag(0);"),
    ("Rint(f, g, m, n);", "Round(f, g, m, n);"),
    ("AscendQuant<float>(i8, h, m, 1.0f, 0.0f, n);", "AscendQuant<half>(i8, h, m, 1.0f, 0.0f, n);"),
    ("LocalTensor<fp8_e4m3fn_t> e; AscendQuant<fp8_e4m3fn_t, float>(e, f, 1.0f, 0.0f, n);", "AscendQuant(i8, h, 1.0f, 0.0f);"),
    ("SoftMax<half>(h, f, k, h, m, SoftMaxTiling(), {1, 64, 1, 64});", "SoftMax<half>(h, f, g, h, m, SoftMaxTiling(), {1, 64, 1, 64});"),
    ("LocalTensor<fp8_e4m3fn_t> e; Cast(e, f, RoundMode::CAST_RINT, n);", "LocalTensor<fp8_e4m3fn_t> e; e = e[32];"),
    ("Add(f, g, h, n);", "Add(f, g, f, n);"),
    ("Add(b, b, c, n);", "Add(h, h, k, n);"),
    ("Add(i64, i64, j64, n);", "Add(i32, i32, j32, n);"),
    ("Add(u32, u32, u32, n);", "Sub(i32, i32, j32, n);"),
    ("Div(i32, i32, j32, n);", "Div(f, f, g, n);"),
    ("Exp(i32, j32, n);", "Exp(h, k, n);"),
    ("Exp(f, h, n);", "Exp(f, g, n);"),
    ("Ln(b, b, n);", "Ln(f, g, n);"),
    ("Abs(i32, i32, n);", "Abs(h, h, n);"),
    ("Relu(i16, i16, n);", "Relu(i32, i32, n);"),
    ("Exp(f, g, 64, 1, BinaryRepeatParams{1, 1, 1, 8, 8, 8});", "Exp(f, g, 64, 1, UnaryRepeatParams{1, 1, 8, 8});"),
    ("Add(f, g, f, 64, 1, UnaryRepeatParams{1, 1, 8, 8});", "Add(f, g, f, 64, 1, BinaryRepeatParams{1, 1, 1, 8, 8, 8});"),
    ("Add(f, g, f, 64, 1, {1, 1, 8, 8});", "Add(f, g, f, 64, 1, {1, 1, 1, 8, 8, 8});"),
    ("And(i32, i32, j32, n);", "And(u16, u16, u16, n);"),
    ("Or(f, f, g, n);", "Or(i16, i16, i16, n);"),
    ("Not(u32, u32, n);", "Not(u16, u16, n);"),
    ("ShiftLeft(f, g, 1.0f, n);", "ShiftLeft(i32, j32, 1, n);"),
    ("ShiftRight(u32, u32, 1, n);", "ShiftRight(u32, u32, 1u, n);"),
    ("CreateVecIndex(u32, 0u, n);", "CreateVecIndex(i32, 0, n);"),
    ("CreateVecIndex(f, 0, n);", "CreateVecIndex<float>(f, 0, n);"),
    ("ArithProgression(f, 0.0f, 1, 64);", "ArithProgression<float>(f, 0, 1, 64);"),
    ("Compare(f, f, g, CMPMODE::GT, n);", "Compare(m, f, g, CMPMODE::GT, n);"),
    ("Compare(m, i16, i16, CMPMODE::EQ, n);", "Compare(m, i32, j32, CMPMODE::EQ, n);"),
    ("CompareScalar(m, f, 0, CMPMODE::GT, n);", "CompareScalar(m, f, 0.0f, CMPMODE::GT, n);"),
    ("Compares(m, h, 0.0f, CMPMODE::GT, n);", "Compares(m, h, half(0), CMPMODE::GT, n);"),
    ("Select(i32, m, i32, j32, SELMODE::VSEL_TENSOR_TENSOR_MODE, n);", "Select(h, u16, h, k, SELMODE::VSEL_TENSOR_TENSOR_MODE, n);"),
    ("Select(f, m, g, 0, SELMODE::VSEL_TENSOR_SCALAR_MODE, n);", "Select(f, u32, g, 0.0f, SELMODE::VSEL_TENSOR_SCALAR_MODE, n);"),
    ("Select(f, i32, g, 0.0f, SELMODE::VSEL_TENSOR_SCALAR_MODE, n);", "Select(f, m, g, f, SELMODE::VSEL_CMPMASK_SPR, n);"),
    ("Cast(i8, f, RoundMode::CAST_RINT, n);", "Cast(i8, h, RoundMode::CAST_RINT, n);"),
    ("LocalTensor<hifloat8_t> e; Cast(e, f, RoundMode::CAST_ROUND, n);", "LocalTensor<hifloat8_t> e; e = e[32];"),
    ("Cast(h, h, RoundMode::CAST_HYBRID, n);", "Cast(i4, h, RoundMode::CAST_ODD, 64, 1, {1, 1, 2, 8});"),
    ("Cast(i4, i16, RoundMode::CAST_NONE, n);", "Cast(h, i4, RoundMode::CAST_NONE, 64, 1, {1, 1, 8, 2});"),
    ("Cast(b, h, RoundMode::CAST_RINT, n);", "Cast(b, f, RoundMode::CAST_RINT, n);"),
    ("Cast(f, u32, RoundMode::CAST_NONE, n);", "Cast(f, i32, RoundMode::CAST_NONE, n);"),
    ("Cast(i16, i64, RoundMode::CAST_NONE, n);", "Cast(i32, i64, RoundMode::CAST_NONE, n);"),
    ("Cast(f, i8, RoundMode::CAST_NONE, n);", "Cast(h, i8, RoundMode::CAST_NONE, n);"),
    ("Cast(f, h, n);", "Cast(f, h, RoundMode::CAST_NONE, n);"),
    ("Cast(d, f, RoundMode::CAST_NONE, n);", "Cast(i4, h, RoundMode::CAST_RINT, n);"),
    ("ReduceSum<int32_t>(i32, i32, j32, 64);", "ReduceSum<float>(f, g, f, 64);"),
    ("ReduceMax(i32, i32, j32, 64);", "ReduceMax(h, k, h, 64, true);"),
    ("ReduceMax(f, g, 64);", "ReduceMin(f, g, f, 64);"),
    ("WholeReduceSum<int32_t>(i32, i32, 64, 1, 1, 1, 8);", "WholeReduceSum<float>(f, g, 64, 1, 1, 1, 8);"),
    ("WholeReduceSum<float>(f, g, 64, 1, 1, 1, 8, ReduceOrder::ORDER_ONLY_VALUE);", "WholeReduceMax<float>(f, g, 64, 1, 1, 1, 8, ReduceOrder::ORDER_ONLY_VALUE);"),
    ("BlockReduceMax<int32_t>(i32, i32, 1, 64, 1, 1, 8);", "BlockReduceMax<half>(h, k, 1, 128, 1, 1, 8);"),
    ("ReducePairElem<ReduceType::MAX>(f, g, 64, 1, 1, 1, 8);", "ReducePairElem<ReduceType::SUM>(f, g, 64, 1, 1, 1, 8);"),
    ("Gather(f, g, i32, 0, n);", "Gather(f, g, u32, 0, n);"),
    ("Gather(f, h, u32, 0, n);", "Gather(b, c, u32, 0, n);"),
    ("Gather(i8, i8, u32, 0, n);", "Gather(i16, i16, u32, 0, n);"),
    ("Gatherb(f, g, u32, 1, {1, 8});", "Gatherb(u32, u32, u32, 1, {1, 8});"),
    ("Scatter(f, g, u32, 0, n);", "Brcb(f, g, 1, {1, 8});"),
    ("GatherMask(f, g, u16, true, n, {1, 1, 0, 0}, kept);", "GatherMask(f, g, u32, true, n, {1, 1, 0, 0}, kept);"),
    ("GatherMask(f, g, i32, true, n, {1, 1, 0, 0}, kept);", "GatherMask(h, k, u16, true, n, {1, 1, 0, 0}, kept);"),
    ("GatherMask(f, g, u32, true, n, {1, 1, 0, 0}, n);", "GatherMask(f, g, 1, false, 0, {1, 1, 8, 0}, kept);"),
    ("Sort32<int32_t>(i32, j32, u32, 1);", "Sort32<float>(f, g, u32, 1);"),
    ("Sort32<float>(f, g, i32, 1);", "Sort32(h, k, u32, 1);"),
    ("SetLoopModePara(LoopModeParams(), DataCopyMVType::OUT_TO_UB);", "DataCopy(f, gf, n);"),
    ("Sort(f, u32, g, n);", "Sort<float, true>(f, g, u32, f, 1);"),
    ("SortConfig s{SortType::RADIX_SORT, true};", "Sort<half, false>(h, k, u32, h, 1);"),
    ("MrgSort<int32_t>(i32, MrgSortSrcList<int32_t>(i32, i32, i32, i32), MrgSort4Info(lens, false, 15, 1));", "MrgSort<float>(f, MrgSortSrcList<float>(g, g, g, g), MrgSort4Info(lens, false, 15, 1));"),
    ("Extract(f, i32, g, 1);", "Extract(f, u32, g, 1);"),
    ("Transpose(f, g);", "Transpose(u16, u16);"),
    ("DataCopyPad(f, gf, DataCopyExtParams{1, 4, 0, 0}, DataCopyPadExtParams<float>{false, 0, 0, 0});", "DataCopyPad(f, gf, DataCopyExtParams{1, 4, 0, 0, 0}, DataCopyPadExtParams<float>{false, 0, 0, 0});"),
    ("DataCopyPad(f, gf, DataCopyExtParams{1, 4, 0, 0, 0}, DataCopyPadExtParams<half>{false, 0, 0, 0});", "DataCopyPad(h, gh, {1, 4, 0, 0, 0}, {false, 0, 0, half(0)});"),
    ("DataCopyPad(f, gf, DataCopyExtParams{1, 4, 0, 0, 0}, DataCopyPadParams{false, 0, 0, 0});", "DataCopyPad(f, gf, DataCopyParams{1, 4, 0, 0}, DataCopyPadParams{false, 0, 0, 0});"),
    ("DataCopyPad(f, gf, DataCopyParams{1, 4, 0, 0}, DataCopyPadExtParams<float>{false, 0, 0, 0});", "DataCopyPad(gf, f, DataCopyParams{1, 4, 0, 0});"),
    ("DataCopyPad(f, gh, DataCopyExtParams{1, 4, 0, 0, 0}, DataCopyPadExtParams<float>{false, 0, 0, 0});", "DataCopyPad(gf, f, DataCopyExtParams{1, 4, 0, 0, 0});"),
    ("DataCopyPad<float, PaddingMode::Compact>(f, gf, DataCopyExtParams{1, 4, 0, 0, 0}, DataCopyPadExtParams<float>{});", "DataCopyPad<float>(f, gf, DataCopyExtParams{1, 4, 0, 0, 0}, DataCopyPadExtParams<float>{});"),
    ("DataCopy(f, gh, 64);", "DataCopy(f, gf, 64);"),
    ("DataCopy(f, gf, NdDmaParams<float, 1>{});", "DataCopy(f, gf, DataCopyParams{});"),
    ("DataCopy(gf, f, DataCopyExtParams{1, 4, 0, 0, 0});", "DataCopy(gf, f, DataCopyParams{1, 4, 0, 0});"),
    ("bs = bs + bs;", "float s = ToFloat(bs) + ToFloat(bs);"),
    ("__bf16 z = hs;", "LocalTensor<__bf16> z = b; static_assert(std::is_same_v<bfloat16_t, __bf16>);"),
    ("ReduceSum<int32_t>(i32, i32, i32, 64, 1, 8);", "ReduceSum<float>(f, g, f, 64, 1, 8);"),
    ("ReduceMax<float>(f, g, f, 64, 1, 8, 1, true);", "ReduceMax<float>(f, g, f, 64, 1, 8, true);"),
    ("ReduceRepeat<ReduceType::SUM>(f, h, 64, 1, 1, 1, 8);", "ReduceRepeat<ReduceType::SUM, float, float>(f, g, 64, 1, 1, 1, 8);"),
    ("Copy(f, g, n);", "uint64_t w[2] = {1, 0}; Copy(f, g, w, 1, CopyRepeatParams());"),
    ("Exp<float, DEFAULT_EXP_CONFIG>(f, g, n);", "Exp<float, true>(f, g, 64, 1, UnaryRepeatParams());"),
    ("Neg(f, g, n);", "Gather(f, g, u32, 0, 64, 1, 8);"),
    ("SliceInfo w[1]; DataCopy(f, gh, w, w);", "SliceInfo w[1]; DataCopy(f, gf, w, w); DataCopy(gf, f, w, w, 1);"),
    ("float s = bs;", "bs = 0; bs = ToBfloat16(1.0f);"),
    ("hs = f;", "hs = hs + half(1.0f) * hs;"),
    ("PipeBarrier<PIPE_S>();", "PipeBarrier<PIPE_V>();"),
    ("SetFlag(0);", "SetFlag<HardEvent::V_S>(0);"),
    ("SetAtomicAdd<double>();", "SetAtomicAdd<float>();"),
    ("SyncAll<false>();", "SyncAll();"),
    ("SyncAll(gf, f);", "DataCacheCleanAndInvalid<float, CacheLine::SINGLE_CACHE_LINE, DcciDst::CACHELINE_OUT>(gf);"),
    ("KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);", "KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);"),
    ("GET_TILING_DATA(t, (uint8_t*)nullptr);", "REGISTER_TILING_DEFAULT(MrgSort4Info); GET_TILING_DATA(t, (uint8_t*)nullptr);"),
    ("TQue<TPosition::VECIN, 0> q; q.AllocTensor<float>();", "TQue<TPosition::VECIN, 1> q; q.AllocTensor<float>();"),
    ("m = f.ReinterpretCast<float>();", "m = f.ReinterpretCast<uint8_t>();"),
    ("f.GetValue(0) = 1;", "f.SetValue(0, 1);"),
    ("LocalTensor<float> t(0, 64);", "LocalTensor<float> t(TPosition::VECCALC, 0, 64);"),
]

# What 950 has and 910B has not; and what neither has.
ALLOWED_ON_950 = ["Add(b, b, c, n);", "Add(i64, i64, j64, n);", "Div(i32, i32, j32, n);", "And(i32, i32, j32, n);",
                  "Scatter(f, g, u32, 0, n);", "Duplicate(i8, int8_t(0), n);", "Compare(m, i16, i16, CMPMODE::LT, n);",
                  "LocalTensor<hifloat8_t> e; Cast(e, f, RoundMode::CAST_HYBRID, n);", "Cast(b, i4, RoundMode::CAST_NONE, n);",
                  "LocalTensor<fp4x2_e2m1_t> e; Cast(e, b, RoundMode::CAST_RINT, 64, 1, {1, 1, 8, 8});",
                  "LocalTensor<fp8_e4m3fn_t> e; AscendQuant<fp8_e4m3fn_t, float>(e, f, m, 1.0f, 0.0f, n);",
                  "Divs(f, 2.0f, g, n);", "Subs(i64, j64, int64_t(1), n);", "Adds(f, g, f[0], n);", "Power(b, c, b);",
                  "Power(m, m, uint8_t(2), n);", "Select<int32_t, SELMODE::VSEL_CMPMASK_SPR>(i32, j32, i32, 1, {1, 1, 1, 8, 8, 8});",
                  "DataCopyPad<float, PaddingMode::Compact>(gf, f, DataCopyExtParams{1, 4, 0, 0, 0});",
                  "DataCopy(f, gf, NdDmaParams<float, 5>{});", "NdDmaDci();", "ReduceSum<int32_t>(i32, i32, j32, 64);",
                  "WholeReduceSum<int16_t>(i32, i16, 64, 1, 1, 1, 8);", "Exp<float, DEFAULT_EXP_CONFIG>(f, g, n);", "Neg(i8, i8, n);",
                  "static constexpr MultiCopyConfig w{true}; DataCopy<half, 2, w>(h, gh, MultiCopyParams<half, 2>{});",
                  "bs = bs + bs;", "ResetLoopModePara(DataCopyMVType::UB_TO_OUT);", "Sort(f, g, n);", "Sort<float, uint32_t>(f, u32, g, u32, m, n);",
                  "static constexpr SortConfig s{SortType::MERGE_SORT, true}; Sort<half, false, s>(h, u32, k, m, n);",
                  "DataCopyPad(f, gf, DataCopyExtParams{1, 4, -4, 0, 0}, DataCopyPadExtParams<float>{false, 0, 0, 0});"]
REFUSED_ON_950 = ["LocalTensor<hifloat8_t> e; Cast(e, b, RoundMode::CAST_ROUND, n);", "Cast(i8, f, RoundMode::CAST_RINT, n);",
                  "LocalTensor<fp4x2_e2m1_t> e; Cast(e, f, RoundMode::CAST_RINT, n);",
                  "LocalTensor<fp4x2_e2m1_t> e; AscendQuant<fp4x2_e2m1_t, half>(e, h, 1.0f, 0.0f, n);",
                  "AscendQuant<int4b_t, half>(i4, h, 1.0f, 0.0f, n);", "AscendQuant<int8_t, int32_t>(i8, i32, 1.0f, 0.0f, n);",
                  "static constexpr AscendQuantConfig q{false, 1, RoundMode::CAST_CEIL}; LocalTensor<fp8_e5m2_t> e; "
                  "static constexpr AscendQuantPolicy w = AscendQuantPolicy::PER_TOKEN; "
                  "AscendQuant<fp8_e5m2_t, float, float, false, q, w>(e, f, g, 1.0f, AscendQuantParam{1, 64, 64, 0});",
                  "DataCopy(f, gf, NdDmaParams<float, 6>{});", "DataCopy(f, gf, NdDmaParams<half, 1>{});",
                  "DataCopy(f, h, NdDmaParams<float, 1>{});", "DataCopy(gf, f, NdDmaParams<float, 1>{});",
                  "static constexpr NdDmaConfig w{true}; DataCopy<int64_t, 1, w>(i64, g64, NdDmaParams<int64_t, 1>{});",
                  "static constexpr NdDmaConfig w{false, 256, 0}; DataCopy<float, 1, w>(f, gf, NdDmaParams<float, 1>{});",
                  "DataCopyPad<float, PaddingMode::Compact>(f, gf, DataCopyExtParams{1, 4, 0, 0, 0}, DataCopyPadExtParams<half>{});",
                  "Divs(f, g, 2, n);", "Divs(i32, j32, 2, n);", "Divs(f, 1.0f, 2.0f, n);", "Ands(i32, j32, 2, n);",
                  "Divs(i64, i64, int64_t(2), 32, 1, {1, 1, 8, 8});",
                  "Duplicate(f, 0, n);", "Muls(f, g, 2, n);", "Gather(f, g, i32, 0, n);", "Sort32<float>(f, g, i32, 1);",
                  "ReduceSum<int16_t>(i16, i16, i16, 64);", "ReduceSum<int64_t>(i64, i64, j64, 8, 1, 8);", "Neg(f, g, 64, 1, UnaryRepeatParams());", "Exp(i32, j32, n);", "Sort(f, i32, g, n);", "Sort(f[8], g, n);",
                  "static constexpr SortConfig s{SortType::MERGE_SORT, true}; Sort<int32_t, false, s>(i32, j32, n);",
                  "static constexpr SortConfig s{SortType::MERGE_SORT, true}; Sort<float, int32_t, false, s>(f, i32, g, j32, n);",
                  "Sort<float, int16_t>(f, i16, g, i16, n);"]


def refused(tmp_path, snippets, target):
    """The snippets with an error in the compiler's output."""
    text = PROLOGUE
    lines = {}
    for i, snippet in enumerate(snippets):
        text += f"inline void snippet{i}() {{\n{VARIABLES.strip()}\n{snippet}\n}}\n"
        lines[text.count("\n") - 1] = snippet
    source = tmp_path / "snippets.cpp"
    source.write_text(text)
    try:
        twin.build(source, target=target)
    except twin.CompileError as error:
        hits = {int(line) for line in re.findall(r"snippets\.cpp:(\d+):", str(error))}
        assert "error:" in str(error)
        return {lines[line] for line in hits if line in lines}
    return set()


@pytest.fixture(scope="module")
def refused_on_910b(tmp_path_factory):
    return refused(tmp_path_factory.mktemp("bad"), [bad for bad, _ in REFUSED_ON_910B], "ascend910b")


def test_910b_refuses(refused_on_910b):
    assert {bad for bad, _ in REFUSED_ON_910B} - refused_on_910b == set()


def test_910b_allows(tmp_path):
    assert refused(tmp_path, [good for _, good in REFUSED_ON_910B], "ascend910b") == set()


def test_950_allows(tmp_path):
    assert refused(tmp_path, ALLOWED_ON_950, "ascend950") == set()


def test_950_refuses(tmp_path):
    assert set(REFUSED_ON_950) - refused(tmp_path, REFUSED_ON_950, "ascend950") == set()
