"""Sort of 950 with a SortConfig: values, positions, indices of one's own, both algorithms and directions, its limits."""

import ml_dtypes
import numpy as np
import pytest
from test_twin import cache  # noqa: F401  (a fixture)
from twin_cases import CTYPES, Cases, check

from jascend.backends.ascend.report.instructions import unknown_apis
from jascend.backends.ascend.targets import costs

f32, f16, bf16 = np.float32, np.float16, ml_dtypes.bfloat16
rng = np.random.default_rng(17)
CASES = Cases()
N = 160
# `y` holds the indices, then the values.
BODY = """static constexpr SortConfig c = {{SortType::{algorithm}_SORT, {descend}}}; static_assert(c.isDescend == {descend}, "");
  LocalTensor<{u}> index = y.ReinterpretCast<{u}>(); LocalTensor<{t}> values = y[{n} * sizeof({u})].ReinterpretCast<{t}>();
  Sort<{types}, {reuse}, c>({outputs}, {inputs}, {n});"""


def case(name, x, order, algorithm="RADIX", descend=False, index=None, tmp=True, reuse=False, **kw):
    """Values and indices, the positions if None, are `x` and `index` in that order."""
    n, u = len(x), np.dtype(np.uint32) if index is None else index.dtype
    inputs = ["x0", *([] if index is None else ["x1"]), *(["tmp"] if tmp else [])]
    t = CTYPES[x.dtype]
    body = BODY.format(algorithm=algorithm, descend=str(descend).lower(), u=CTYPES[u], t=t, n=n, reuse=str(reuse).lower(),
                       types=t if index is None else f"{t}, {CTYPES[u]}", outputs="values, index", inputs=", ".join(inputs))
    names = np.arange(n, dtype=np.uint32) if index is None else index
    expected = np.concatenate([names[order].view(np.uint8), x[order].view(np.uint8)])
    CASES.case(name, body, [x] if index is None else [x, index], expected, target="ascend950", **kw)


def keys(x):
    """What NumPy sorts as `x`, exactly and in integers that can be negated."""
    x = np.asarray(x)
    return x.astype(np.float64) if x.dtype.kind in "fV" else x.astype(object)


def stable(x, descend):
    return np.argsort(-keys(x) if descend else keys(x), kind="stable")


def few(dtype):
    """Few distinct values, so that many are equal; the extremes among them."""
    dtype = np.dtype(dtype)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return rng.choice(np.array([limits.min, limits.max, 0, 1, 3, 77, limits.max // 2], dtype), N)
    return rng.choice(np.array([-np.inf, -300, -1.5, -2.0**-14, 1, 1.5, 300, np.inf], f32).astype(dtype), N)


for dtype in (np.int8, np.uint8, np.int16, np.uint16, f16, bf16, np.int32, np.uint32, f32, np.int64, np.uint64):
    for descend in (False, True):
        values = few(dtype)
        way = "down" if descend else "up"
        case(f"radix_{CTYPES[values.dtype]}_{way}", values, stable(values, descend), descend=descend)
for dtype in (np.int32, np.uint32, np.int64, np.uint64):
    values = few(f16)
    case(f"radix_named_{CTYPES[np.dtype(dtype)]}", values, stable(values, True), descend=True, index=rng.permutation(N).astype(dtype))
for dtype in (f16, f32):
    for descend in (False, True):
        values, way = few(dtype), "down" if descend else "up"
        named = rng.permutation(N).astype(np.uint32)
        case(f"merge_{CTYPES[values.dtype]}_{way}", values, stable(values, descend), "MERGE", descend)
        case(f"merge_named_{CTYPES[values.dtype]}_{way}", values, stable(values, descend), "MERGE", descend, named, tmp=False)
values = few(f32)
case("radix_no_scratch", values, stable(values, False), tmp=False)
case("radix_reuse", values, stable(values, False), index=np.arange(N, dtype=np.int64), reuse=True)
case("radix_named_no_scratch", values, stable(values, True), descend=True, index=np.arange(N, dtype=np.int32), tmp=False)
odd = rng.normal(size=45).astype(f32)
special = np.array([0.0, np.nan, -0.0, 1, -np.inf, np.copysign(np.nan, -1), np.inf, 0.0], f32)
case("radix_special", special, np.array([5, 4, 2, 0, 7, 3, 6, 1]))  # by bits: both NaNs outermost, -0 before +0
case("radix_special_down", special, np.array([1, 6, 3, 0, 7, 2, 4, 5]), descend=True)
padded = np.concatenate([special, np.full(24, 2, f32)])
case("merge_special", padded, np.r_[1, 5, 4, 0, 2, 7, 3, 8:32, 6], "MERGE")  # NaN first, zeros equal
case("merge_special_down", padded, np.r_[1, 5, 6, 8:32, 3, 0, 2, 7, 4], "MERGE", True)


def values_only(name, body, x, expected, findings=()):
    CASES.case(name, body, [x], expected, target="ascend950", findings=list(findings))


up = np.sort(odd)
DOWN = "static constexpr SortConfig c = {SortType::RADIX_SORT, true}; "
values_only("plain", "Sort(y, x0, tmp, 45);", odd, up)
values_only("plain_no_scratch", "Sort(y, x0, 45);", odd, up)
values_only("alone_down", DOWN + "Sort<float, false, c>(y, x0, tmp, 45);", odd, up[::-1])
MERGE = "static constexpr SortConfig c = {SortType::MERGE_SORT, false}; "
row = rng.normal(size=96).astype(f32)
values_only("alone_merge", MERGE + "Sort<float, false, c>(y, x0, tmp, 96);", row, np.sort(row))

# limits
values_only("none", "Sort(y, x0, tmp, 0);", odd, np.zeros(45, f32), ["count"])
values_only("merge_part", MERGE + "Sort<float, false, c>(y, x0, tmp, 40);", odd, np.zeros(45, f32), ["count"])
values_only("size", "x0.SetSize(45); Sort(y, x0, tmp, 45);", odd, up, ["count"])
values_only("beyond", "x0.SetSize(40); Sort(y, x0, tmp, 45);", odd, up, ["count"])
values_only("merge_room", MERGE + "y.SetSize(184); Sort<float, false, c>(y, x0, tmp, 96);", row, np.sort(row), ["count"])
values_only("overlap", "Sort(x0, x0, tmp, 45);", odd, np.zeros(45, f32), ["overlap"])
values_only("overlap_scratch", "LocalTensor<float> part = tmp.ReinterpretCast<float>(); Sort(part, x0, tmp, 45);", odd, np.zeros(45, f32), ["overlap"])
# 64 elements: 512 bytes, and 7 bytes, the value's 4 and the index's 4 each
LENT = "LocalTensor<uint8_t> lent = tmp[0]; lent.SetSize({}); LocalTensor<uint32_t> at = tmp[16384].ReinterpretCast<uint32_t>(); "
for size, findings in [(1472, []), (1440, ["count"])]:
    values_only(f"scratch_{size}", LENT.format(size) + "Sort(y, at, x0, lent, 45);", odd, up, findings)
SPOILT = "PipeBarrier<PIPE_V>(); Adds(y, x0, 0.0f, 8);"
nan = np.frombuffer(b"\xff" * 32, f32)
for name, text, findings in [("reuse", "Sort<float, true>(v, x0, tmp, 96);", ["uninitialized-read"]),
                             ("merge", MERGE + "Sort<float, false, c>(v, x0, tmp, 96);", ["uninitialized-read"]),
                             ("not", "Sort<float>(v, x0, tmp, 96);", [])]:
    values_only(f"spoilt_{name}", f"LocalTensor<float> v = tmp[16384].ReinterpretCast<float>(); {text} {SPOILT}", row,
                nan if findings else row[:8], findings)


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    return CASES.libraries(tmp_path_factory.mktemp("sort950"))


@pytest.mark.parametrize("c", CASES, ids=CASES.ids())
def test_against_numpy(libraries, c):
    check(libraries(c.target), c)


@pytest.mark.parametrize("name", ["plain", "alone_merge"])
def test_the_cost_model_knows_both_algorithms(libraries, name):
    run = libraries("ascend950").launch(name, [row, np.zeros_like(row)], blocks=1, trace=True)
    assert unknown_apis(run.trace, costs("ascend950")) == []
