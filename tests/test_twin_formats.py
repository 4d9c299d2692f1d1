"""The twin's casts to and from 4-bit and 8-bit formats, against their definitions."""

import ml_dtypes
import numpy as np
import pytest
from test_twin import cache  # noqa: F401  (a fixture)
from twin_cases import Cases, check

from jascend.numerics import hifloat8

f32, f16, bf16 = np.float32, np.float16, ml_dtypes.bfloat16
rng = np.random.default_rng(11)
CASES = Cases()
case = CASES.case
A5 = {"target": "ascend950"}


def bits(x, low, high):
    """The bits [high : low] of integers."""
    return (x >> low) & ((1 << (high - low + 1)) - 1)


def nearest(x, hybrid=False, half=False):
    """HiFloat8 codes by the rules of the conversion: the table's two neighbours, and which of them is taken."""
    values = hifloat8.TABLE[:128].astype(np.float64)
    values[0x6F] = 1.5 * 2.0**15  # what infinity stands in the place of
    order = np.argsort(values)
    sorted_values = values[order]
    out = np.zeros(x.size, np.uint8)
    for i, value in enumerate(x):
        raw = int(np.abs(value).astype(f32).view(np.int32)) & 0x7FFFFFFF
        a = abs(float(value))
        if np.isnan(value):
            out[i] = 0x80
            continue
        if a >= 2.0**16:
            code = 0x6F
        elif a < 2.0**-23:
            code = 0
        else:
            low = np.searchsorted(sorted_values, a, side="right") - 1
            if low == 127:
                out[i] = 0x6F | (0x80 if value < 0 else 0)
                continue
            below, above = sorted_values[low], sorted_values[low + 1]
            exponent = (raw >> 23) - 127
            up = a - below >= above - a
            if hybrid and abs(exponent) > 3:
                kept = 0 if exponent < -15 else 1 if abs(exponent) >= 8 else 2
                mantissa = (raw & 0x7FFFFF) | (1 << 23 if exponent == -23 else 0)
                top = 23 if exponent == -23 else 22 - kept  # the first bit cut off
                width = 2 if half else 14
                threshold = 2 * bits(raw, 13, 13) + 1 if half else bits(raw, 0, 13)
                up = a != below and bits(mantissa, top - width + 1, top) >= threshold
            if exponent < -15 and not hybrid:
                up = a >= 1.5 * below if exponent > -23 else True
            code = order[low + 1] if up else order[low]
        out[i] = code | (0x80 if np.signbit(value) and code else 0)
    return out


wide = np.concatenate([
    rng.normal(size=300), rng.normal(size=100) * 100, np.ldexp(1 + rng.random(400), rng.integers(-26, 17, 400)),
    hifloat8.TABLE[:112], [np.inf, -np.inf, np.nan, 0, -0.0, 40959, 40960, -40960, 36864, 2.0**-22, 1.4 * 2.0**-22],
]).astype(f32)  # fmt: skip
wide = wide[: wide.size // 2 * 2]
with np.errstate(over="ignore"):
    narrow = wide.astype(f16)
narrow = np.where(np.abs(narrow.astype(f32)) < 2.0**-14, f16(0.3), narrow)  # half's denormals: the rules do not say
E8 = "y.ReinterpretCast<hifloat8_t>(), "
case("hif8", f"Cast({E8}x0, RoundMode::CAST_ROUND, {wide.size});", [wide], np.asarray(hifloat8.encode(wide)), **A5)
case("hif8_half", f"Cast({E8}x0, RoundMode::CAST_ROUND, {wide.size});", [narrow], np.asarray(hifloat8.encode(narrow.astype(f32))), **A5)
case("hif8_hybrid", f"Cast({E8}x0, RoundMode::CAST_HYBRID, {wide.size});", [wide], nearest(wide, True), **A5)
case("hif8_hybrid_half", f"Cast({E8}x0, RoundMode::CAST_HYBRID, {wide.size});", [narrow], nearest(narrow, True, True), **A5)
codes = np.arange(256, dtype=np.uint8)
X8 = "x0.ReinterpretCast<hifloat8_t>(), RoundMode::CAST_NONE"
case("hif8_f32", f"Cast(y, {X8}, 256);", [codes], hifloat8.TABLE, **A5)
case("hif8_f16", f"Cast(y, {X8}, 256);", [codes], hifloat8.TABLE.astype(f16), **A5)
case("hif8_lanes", f"Cast({E8}x0, RoundMode::CAST_ROUND, 64, 4, {{1, 1, 2, 8}});", [wide[:256]],
     np.asarray(hifloat8.encode(wide[:256])), **A5)

# 4-bit floats: two a byte, the first in the lower half
E2M1, E1M2 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6]), np.arange(8) / 4
four = np.concatenate([rng.normal(size=180) * 2, [0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5, 7, -0.25, -5, np.inf, -np.inf,
                                                  0.125, 0.375, -0.625, 0.875, 1.125, -1.375, 1.625, np.nan]]).astype(bf16)


def packed(nibbles):
    return (nibbles[::2] | nibbles[1::2] << 4).astype(np.uint8)


def to_four(x, table, mode):
    out = []
    for v in x.astype(np.float64):
        a = abs(v)
        if np.isnan(v):
            out.append(0)
            continue
        if a >= table[-1]:
            code = 7
        else:
            low = np.searchsorted(table, a, side="right") - 1
            gap, rest = table[low + 1] - table[low], a - table[low]
            up = {"FLOOR": v < 0 and rest > 0, "CEIL": v > 0 and rest > 0, "TRUNC": False, "ROUND": 2 * rest >= gap,
                  "RINT": 2 * rest > gap or (2 * rest == gap and low % 2 == 1)}[mode]
            code = low + up
        out.append(code | (8 if np.signbit(v) else 0))
    return np.array(out)


for name, table in [("fp4x2_e2m1_t", E2M1), ("fp4x2_e1m2_t", E1M2)]:
    for mode in ("RINT", "FLOOR", "CEIL", "ROUND", "TRUNC"):
        case(f"{name}_{mode}", f"Cast(y.ReinterpretCast<{name}>(), x0, RoundMode::CAST_{mode}, {four.size});", [four],
             packed(to_four(four, table, mode)), **A5)
    every = np.arange(16)
    case(f"{name}_bf16", f"Cast(y, x0.ReinterpretCast<{name}>(), RoundMode::CAST_NONE, 16);", [packed(every)],
         (np.where(every < 8, 1, -1) * table[every % 8]).astype(bf16), **A5)
finite = four[np.isfinite(four.astype(f32))]
assert np.array_equal(to_four(finite, E2M1, "RINT") & 15,
                      np.clip(finite.astype(f32), -6, 6).astype(ml_dtypes.float4_e2m1fn).view(np.uint8) & 15)

# int4b_t, also by lanes: blocks of 64 numbers against blocks of 16 halves
small = (rng.normal(size=256) * 6).astype(f16)
clipped = np.clip(np.rint(small.astype(f32)), -8, 7).astype(np.int32)
I4 = "y.ReinterpretCast<int4b_t>(), "
case("int4_lanes", f"Cast({I4}x0, RoundMode::CAST_RINT, 128, 2, {{1, 1, 2, 8}});", [small], packed(clipped & 15))
case("int4_mask", f"Cast({I4}x0, RoundMode::CAST_RINT, 6, 2, {{1, 1, 2, 8}});", [small],
     packed(np.where(np.arange(256) % 128 < 6, clipped & 15, 0)))
case("int4_bits", f"uint64_t m[2] = {{0xf0, 0x3}}; Cast({I4}x0, RoundMode::CAST_RINT, m, 2, {{1, 1, 2, 8}});", [small],
     packed(np.where(np.isin(np.arange(256) % 128, [4, 5, 6, 7, 64, 65]), clipped & 15, 0)))
spread = np.zeros((4, 64), np.uint8)  # each repeat's two blocks of 32 bytes, a block apart
spread[:, :32] = packed(clipped & 15).reshape(4, 32)
case("int4_stride", f"Cast({I4}x0, RoundMode::CAST_RINT, 128, 2, {{2, 1, 4, 8}});", [small], spread.ravel()[:224])
case("int4_back", "Cast(y, x0.ReinterpretCast<int4b_t>(), RoundMode::CAST_NONE, 128, 2, {1, 1, 8, 2});", [packed(clipped & 15)],
     clipped.astype(f16))
case("int4_i16", "Cast(y, x0.ReinterpretCast<int4b_t>(), RoundMode::CAST_NONE, 256);", [packed(clipped & 15)],
     clipped.astype(np.int16), **A5)
case("int4_bf16", "Cast(y, x0.ReinterpretCast<int4b_t>(), RoundMode::CAST_NONE, 256);", [packed(clipped & 15)],
     clipped.astype(bf16), **A5)
whole = (small * 3).astype(np.int16)
case("i16_int4", f"Cast({I4}x0, RoundMode::CAST_NONE, 256);", [whole], packed(np.clip(whole, -8, 7).astype(np.int32) & 15), **A5)
# what the API does not take
nothing = np.zeros(32, np.uint8)
case("int4_odd", f"Cast({I4}x0, RoundMode::CAST_RINT, 7);", [small], nothing, findings=["count"])
case("int4_split", f"uint64_t m[2] = {{0x7, 0}}; Cast({I4}x0, RoundMode::CAST_RINT, m, 1, {{1, 1, 2, 8}});", [small], nothing,
     findings=["mask-limit"])
case("hif8_mode", f"Cast({E8}x0, RoundMode::CAST_RINT, 32);", [wide[:32]], nothing, findings=["cast-mode"], **A5)
case("fp4_odd", "Cast(y.ReinterpretCast<fp4x2_e2m1_t>(), x0, RoundMode::CAST_RINT, 5);", [four[:32]], nothing, findings=["count"], **A5)


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    return CASES.libraries(tmp_path_factory.mktemp("formats"))


@pytest.mark.parametrize("c", CASES, ids=CASES.ids())
def test_against_the_definition(libraries, c):
    check(libraries(c.target), c)
