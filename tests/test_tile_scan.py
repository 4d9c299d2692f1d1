"""Prefix sums and narrow formats: the interpreter against NumPy, and the generated code against the interpreter."""

import ml_dtypes
import numpy as np
import pytest
from test_tile_sorting import kernel, load, store
from tile_kernels import agree, interpreted, source

from jascend.passes.pipeline import PipelineError


def scanning(count, group):
    tile = f"tensor<{count}xf32>"
    return kernel(
        load("x", count, "f32")
        + f'%v = "tile.cumsum"(%x) {{group = {group} : i64}} : ({tile}) -> {tile}'
        + store("v", count, "f32"),
        x_gm=f"{count}xf32", v_out=f"{count}xf32",
    )  # fmt: skip


def by_hand(x, group):
    return np.cumsum(x.reshape(-1, group).astype(np.float64), axis=1).reshape(-1)


@pytest.mark.parametrize(("count", "group"), [(64, 8), (64, 64), (192, 24), (1024, 1024), (2048, 64), (4096, 1024)])
def test_the_meaning_of_cumsum(count, group):
    x = np.random.default_rng(group).uniform(0, 1, count).astype(np.float32)
    (v,) = interpreted(scanning(count, group), [x])
    np.testing.assert_allclose(v, by_hand(x, group), rtol=1e-6)
    whole = np.random.default_rng(0).integers(-1000, 1000, count).astype(np.float32)
    (v,) = interpreted(scanning(count, group), [whole])
    np.testing.assert_array_equal(v, by_hand(whole, group))


def test_a_group_s_sums_do_not_depend_on_the_others():
    x = np.random.default_rng(1).normal(size=4096).astype(np.float32)
    (alone,) = interpreted(scanning(1024, 1024), [x[2048:3072].copy()])
    (together,) = interpreted(scanning(4096, 1024), [x])
    np.testing.assert_array_equal(alone, together[2048:3072])


@pytest.mark.parametrize(("count", "group"), [(128, 8), (192, 64), (1024, 64), (2048, 1024), (2048, 2048), (4160, 2080)])
def test_cumsum(count, group):
    x = np.random.default_rng(count).normal(size=count).astype(np.float32)
    x[count // 2 + 3] = np.inf
    x[count - 2] = np.nan
    agree(scanning(count, group), [x], targets=("ascend910b", "ascend950") if count == 1024 else ("ascend910b",))


N = 256
NARROW = {
    "i8": np.int8, "i4": ml_dtypes.int4, "f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E5M2": ml_dtypes.float8_e5m2,
    "f4E2M1FN": ml_dtypes.float4_e2m1fn, "ui8": np.uint8, "f8E8M0FNU": ml_dtypes.float8_e8m0fnu,
}  # fmt: skip


def quantizing(*elements, of="f32"):
    body, signature = load("x", N, of), {"x_gm": f"{N}x{of}"}
    for number, element in enumerate(elements):
        body += f'%v{number} = "tile.quantize"(%x) : (tensor<{N}x{of}>) -> tensor<{N}x{element}>'
        body += store(f"v{number}", N, element)
        signature[f"v{number}_out"] = f"{N}x{element}"
    return kernel(body, **signature)


def values(limit, seed=0):
    """Halves and quarters, which are ties, numbers beside them, large ones, and zeros of both signs."""
    rng = np.random.default_rng(seed)
    ties = rng.integers(-8 * limit, 8 * limit, N // 2) / 4
    x = np.concatenate([ties, rng.normal(0, limit / 2, N // 2)]).astype(np.float32)
    x[:8] = np.nextafter(x[:8], 0)
    x[8:16] = np.nextafter(x[8:16], np.float32(np.inf))
    x[16:24] = [0, -0.0, 0.5, -0.5, 1e9, -1e9, np.inf, -np.inf]
    return x


def nearest(x, grid):
    """The nearest of a sorted list of numbers, the even one in the middle between two."""
    grid = np.asarray(grid, np.float64)
    above = np.clip(np.searchsorted(grid, x), 1, len(grid) - 1)
    low, high = grid[above - 1], grid[above]
    pick = np.where(x - low < high - x, above - 1, above)
    pick = np.where(x - low == high - x, np.where(above % 2 == 0, above, above - 1), pick)
    return grid[pick]


@pytest.mark.parametrize("limit", [6, 100, 30000])
def test_the_meaning_of_quantize(limit):
    x = values(limit)
    i8, i4, e4m3, e5m2, e2m1, hifloat8, e8m0 = interpreted(quantizing(*NARROW), [x])
    some = np.isfinite(x) & (x != 0)
    exponent = np.maximum(np.floor(np.log2(np.abs(x[some].astype(np.float64)))), -127)
    np.testing.assert_array_equal(e8m0[some].astype(np.float64), 2.0**exponent)
    np.testing.assert_array_equal(e8m0.view(np.uint8)[x == 0], 0)
    np.testing.assert_array_equal(i8, np.clip(np.rint(x), -128, 127))
    np.testing.assert_array_equal(i4.astype(np.int8), np.clip(np.rint(x), -8, 7))
    for found, dtype in ((e4m3, ml_dtypes.float8_e4m3fn), (e5m2, ml_dtypes.float8_e5m2)):
        codes = np.arange(256, dtype=np.uint8).view(dtype)[:128].astype(np.float64)
        numbers = codes[np.isfinite(codes)]
        np.testing.assert_array_equal(found.astype(np.float64), np.sign(x) * nearest(np.abs(x), numbers))
    np.testing.assert_array_equal(e2m1.astype(np.float64), np.sign(x) * nearest(np.abs(x), [0, 0.5, 1, 1.5, 2, 3, 4, 6]))
    from jascend.numerics import hifloat8 as reference

    np.testing.assert_array_equal(hifloat8, np.asarray(reference.encode(x)))


@pytest.mark.parametrize("limit", [6, 100])
def test_integers_on_every_product(limit):
    """Small numbers of all magnitudes too."""
    x = values(limit)
    x[30] = np.nan
    x[64:96] = np.ldexp(np.float32(-1.25), np.arange(-40, -8))
    i8, i4 = agree(quantizing("i8", "i4"), [x])
    assert i8[30] == 0 and i4[30].astype(np.int8) == 0


def test_four_bit_floats_on_every_product():
    """Numbers beside a tie are no ties, although bfloat16 would take them for some."""
    x = values(6)
    x[32:40] = np.nextafter(np.float32([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5, -5]), np.float32([0, 9, 0, 9, 9, 0, 0, -9]))
    agree(quantizing("f4E2M1FN"), [x])
    agree(quantizing("f4E2M1FN", of="bf16"), [values(6).astype(ml_dtypes.bfloat16)])


def test_exponents_on_every_product():
    x = values(6)
    x[24:30] = [2.0**-126, 2.0**-127, 1e38, -1e-38, 3, -3]
    agree(quantizing("f8E8M0FNU"), [x])


def test_eight_bit_floats():
    x = values(400)
    x[30] = np.nan
    agree(quantizing("f8E4M3FN", "f8E5M2", "ui8"), [x], targets=["ascend950"])


@pytest.mark.parametrize(("element", "name"), [("f8E4M3FN", "f8E4M3FN"), ("f8E5M2", "f8E5M2"), ("ui8", "HiFloat8")])
def test_eight_bit_floats_are_refused_where_there_are_none(element, name):
    with pytest.raises(PipelineError, match=f"ascend910b has no conversion from f32 to {name}"):
        source(quantizing(element), "ascend910b")
