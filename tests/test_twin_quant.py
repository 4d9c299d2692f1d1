"""AscendQuant of 950: every destination, one scale, one a channel, one a token, one a group."""

import ml_dtypes
import numpy as np
import pytest
from test_twin import cache  # noqa: F401  (a fixture)
from test_twin_formats import E2M1, packed, to_four
from twin_cases import CTYPES, Cases, check

from jascend.numerics import hifloat8

f32, f16, bf16 = np.float32, np.float16, ml_dtypes.bfloat16
rng = np.random.default_rng(13)
CASES = Cases()
A5 = {"target": "ascend950"}
TO = {
    "int8_t": lambda x, mode="RINT": np.clip({"RINT": np.rint, "FLOOR": np.floor, "CEIL": np.ceil, "TRUNC": np.trunc}[mode](x),
                                             -128, 127).astype(np.int8),
    "fp8_e4m3fn_t": lambda x: np.clip(x, -448, 448).astype(ml_dtypes.float8_e4m3fn),
    "fp8_e5m2_t": lambda x: np.clip(x, -57344, 57344).astype(ml_dtypes.float8_e5m2),
    "hifloat8_t": lambda x: np.asarray(hifloat8.encode(np.asarray(x, f32))),
}  # fmt: skip


def case(name, body, to, inputs, expected, **kw):
    """`{d}` is the destination, `{t}` its type and the source's."""
    d = "y.ReinterpretCast<hifloat8_t>()" if to == "hifloat8_t" else "y"
    CASES.case(name, body.format(d=d, t=f"{to}, {CTYPES[inputs[0].dtype]}", s=CTYPES[inputs[0].dtype]), inputs, expected, **A5, **kw)


def computed(x, scale, offset, to):
    """As the device does: half, or float for fp8."""
    kind = f32 if to.startswith("fp8") else f16
    x, scale, offset = (np.asarray(v).astype(f32).astype(kind) for v in (x, scale, offset))
    return TO[to]((x * scale + offset).astype(f32))


rows = rng.normal(size=(4, 64)) * 20
scales, offsets = rng.random(64) + 0.5, rng.normal(size=64)
for to in TO:
    for dtype in (f32, f16, bf16):
        x, s, o = (v.astype(dtype) for v in (rows, scales, offsets))
        name = f"{to}_{CTYPES[np.dtype(dtype)]}"
        case(f"tensor_{name}", "AscendQuant<{t}>({d}, x0, tmp, 1.25f, -0.5f, 256);", to, [x], computed(x, 1.25, -0.5, to))
        case(f"channel_{name}", "AscendQuant<{t}>({d}, x0, x1, x2, 64, 64, 256);", to, [x, s, o], computed(x, s, o, to))
        case(f"scales_{name}", "AscendQuant<{t}>({d}, x0, tmp, x1, {s}(0.5f), 64, 256);", to, [x, s], computed(x, s, 0.5, to))
case("whole", "x0.SetSize(256); x1.SetSize(64); x2.SetSize(64); AscendQuant<{t}>({d}, x0, x1, x2);", "fp8_e5m2_t",
     [rows.astype(f32), scales.astype(f32), offsets.astype(f32)], computed(rows, scales, offsets, "fp8_e5m2_t"))

GROUPS = """static constexpr AscendQuantConfig c{{{{{offset}, {k}, RoundMode::CAST_{mode}}}}};
  static constexpr AscendQuantPolicy p = AscendQuantPolicy::{policy};
  AscendQuant<{{t}}, {scale}, false, c, p>({{d}}, x0, {offsets}, AscendQuantParam{{{{4, 64, 256, 32}}}});"""


def grouped(name, to, policy, k, mode="RINT", x=rows.astype(f32), scale_type=f32, offset=True, as_scalar=False, **kw):
    shape = {("PER_TOKEN", 1): (4, 1), ("PER_GROUP", 1): (4, 2), ("PER_GROUP", 0): (1, 64)}[policy, k]
    s, o = (rng.random(shape) + 0.5).astype(scale_type), rng.normal(size=shape).astype(scale_type)
    spread = {"PER_TOKEN": lambda v: v, "PER_GROUP": lambda v: np.repeat(v, 32, 1) if k else v}[policy]
    y = x.astype(f32) * spread(s).astype(f32)
    if offset:
        y = y + (f32(1.5) if as_scalar else spread(o).astype(f32))
    if to.startswith("fp4"):
        expected = packed(to_four(y.ravel().astype(bf16), E2M1, mode))
    else:
        expected = TO[to](y, mode) if mode != "RINT" and to == "int8_t" else TO[to](y)
    argument = f"x1, {CTYPES[np.dtype(scale_type)]}(1.5f)" if as_scalar else "x1, x2"
    body = GROUPS.format(offset=str(offset).lower(), k=k, mode=mode, policy=policy, scale=CTYPES[np.dtype(scale_type)],
                         offsets=argument)
    if to.startswith("fp4"):
        body = body.replace("{d}", f"y.ReinterpretCast<{to}>()")
    case(name, body, to, [x, s, o], expected, **kw)


for to in TO:
    grouped(f"token_{to}", to, "PER_TOKEN", 1)
    grouped(f"columns_{to}", to, "PER_GROUP", 1, x=rows.astype(f16), scale_type=f16)
    grouped(f"rows_{to}", to, "PER_GROUP", 0, x=rows.astype(bf16))
for mode in ("FLOOR", "CEIL", "TRUNC"):
    grouped(f"token_{mode}", "int8_t", "PER_TOKEN", 1, mode)
grouped("token_no_offset", "fp8_e4m3fn_t", "PER_TOKEN", 1, offset=False)
grouped("token_scalar_offset", "int8_t", "PER_TOKEN", 1, as_scalar=True)
for mode in ("RINT", "FLOOR", "ROUND"):
    grouped(f"fp4_{mode}", "fp4x2_e2m1_t", "PER_GROUP", 1, mode, x=(rows / 8).astype(f16), offset=False)
# limits
zeros = np.zeros(32, np.int8)
CASES.case("channels", "AscendQuant<int8_t, float>(y, x0, x1, 1.0f, 48, 96);", [rows.astype(f32), scales.astype(f32)], zeros,
           findings=["count"], **A5)
LIMIT = """static constexpr AscendQuantConfig c{{false, 1}}; static constexpr AscendQuantPolicy p = AscendQuantPolicy::PER_GROUP;
  AscendQuant<int8_t, float, float, false, c, p>(y, x0, x1, 0.0f, AscendQuantParam{{{}}});"""
for name, parameters in [("group", "4, 64, 256, 48"), ("row", "4, 60, 240, 32"), ("rows", "2, 64, 256, 32"), ("part", "4, 64, 96, 32")]:
    CASES.case(f"limit_{name}", LIMIT.format(parameters), [rows.astype(f32), scales.astype(f32)], zeros, findings=["count"], **A5)


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    return CASES.libraries(tmp_path_factory.mktemp("quant"))


@pytest.mark.parametrize("c", CASES, ids=CASES.ids())
def test_against_numpy(libraries, c):
    check(libraries(c.target), c)
