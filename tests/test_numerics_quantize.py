"""Narrow formats, code by code; quantizers where users have been let down elsewhere; ranks."""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
import routing_oracle as oracle

from jascend.numerics import hifloat8, quantize, ranks
from jascend.numerics.quantize_formats import (
    E2M1,
    E4M3FN,
    E5M2,
    divide,
    encode,
    float32_bits,
    rounded,
    times_power_of_two,
)

F32 = np.float32
HALF = np.arange(2**16, dtype=np.uint16)
FORMATS = {E5M2: ml_dtypes.float8_e5m2, E4M3FN: ml_dtypes.float8_e4m3fn, E2M1: ml_dtypes.float4_e2m1fn}
ALL_FORMATS = pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.dtype)


# -- HiFloat8 -------------------------------------------------------------------------------------------------------


def test_hifloat8_decodes_all_codes():
    got = np.asarray(jax.jit(hifloat8.decode)(np.arange(256, dtype=np.uint8)))
    np.testing.assert_array_equal(got, oracle.hifloat8_table().astype(F32))
    assert got.dtype == F32 and not np.signbit(got[0])
    for code, value in ((0x08, 1), (0x6E, 32768), (0x6F, np.inf), (0xEF, -np.inf), (0x01, 2.0**-22), (0x07, 2.0**-16)):
        assert got[code] == value
    for code, value in ((0x7E, 2.0**-15), (0x7F, 1.5 * 2.0**-15), (0x10, 2), (0x18, 0.5), (0x20, 4), (0x60, 256)):
        assert got[code] == value
    assert np.isnan(got[0x80])


def test_hifloat8_encodes_every_value_as_its_code():
    codes = np.arange(256, dtype=np.uint8)
    np.testing.assert_array_equal(jax.jit(hifloat8.encode)(hifloat8.decode(codes)), codes)


def test_hifloat8_rounds_to_nearest_and_ties_away_from_zero():
    values = np.sort(np.where(np.arange(128) == 0x6F, 49152.0, oracle.hifloat8_table()[:128])).astype(F32)
    middle = ((values[1:] + values[:-1]) / 2).astype(F32)
    near = np.concatenate([middle, np.nextafter(middle, F32(0)), np.nextafter(middle, F32(np.inf)), values])
    upper = np.asarray(hifloat8.encode(values[1:]))
    lower = np.asarray(hifloat8.encode(values[:-1]))
    np.testing.assert_array_equal(hifloat8.encode(middle), upper)
    np.testing.assert_array_equal(hifloat8.encode(np.nextafter(middle, F32(0))), lower)
    np.testing.assert_array_equal(hifloat8.encode(-near), oracle.hifloat8(-near))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_hifloat8_of_every_half_precision_number(dtype):
    with np.errstate(invalid="ignore"):  # signaling NaN
        x = HALF.view(dtype).astype(F32)
        np.testing.assert_array_equal(jax.jit(hifloat8.encode)(x), oracle.hifloat8(x))


def test_hifloat8_limits():
    for value, code in (
        (40960, 0x6F), (np.nextafter(F32(40960), F32(0)), 0x6E), (3e38, 0x6F), (np.inf, 0x6F), (-np.inf, 0xEF),
        (2.0**-23, 1), (np.nextafter(F32(2.0**-23), F32(0)), 0), (-(2.0**-24), 0), (-0.0, 0), (np.nan, 0x80),
        (-np.nan, 0x80), (1e-45, 0),
    ):  # fmt: skip
        assert int(hifloat8.encode(jnp.float32(value))) == code, value


# -- FP8, FP4 -------------------------------------------------------------------------------------------------------


def encoded(x, form):
    return np.asarray(jax.jit(lambda x: encode(*float32_bits(x), form))(x))


@ALL_FORMATS
def test_every_code_is_encoded_as_itself(form):
    codes = np.arange(2**form.width, dtype=np.uint8)
    values = codes.view(FORMATS[form]).astype(F32)
    finite = np.isfinite(values)
    np.testing.assert_array_equal(encoded(values, form)[finite], codes[finite])


@ALL_FORMATS
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_every_half_precision_number_is_rounded_to_even_and_saturates(form, dtype):
    x = HALF.view(dtype).astype(F32)
    largest = float(np.uint8(form.largest).view(FORMATS[form]))
    number = ~np.isnan(x)
    expected = np.clip(np.nan_to_num(x), -largest, largest).astype(FORMATS[form]).view(np.uint8)
    np.testing.assert_array_equal(encoded(x, form)[number], expected[number])
    if form.nan is not None:
        assert np.isnan(encoded(x, form)[~number].view(FORMATS[form])).all()


@ALL_FORMATS
def test_ties_and_their_neighbours(form):
    values = np.unique(np.arange(2**form.width, dtype=np.uint8).view(FORMATS[form]).astype(F32))
    values = values[np.isfinite(values)]
    middle = (values[1:] + values[:-1]) / 2
    x = np.concatenate([middle, np.nextafter(middle, F32(np.inf)), np.nextafter(middle, F32(-np.inf))])
    np.testing.assert_array_equal(encoded(x, form), x.astype(FORMATS[form]).view(np.uint8))


@ALL_FORMATS
def test_saturation(form):
    """XLA's conversion gives NaN or infinity for these."""
    largest = float(np.uint8(form.largest).view(FORMATS[form]))
    x = np.array([largest * 1.05, largest * 2, 1e30, np.inf], F32)
    assert set(encoded(x, form)) == {form.largest}
    assert set(encoded(-x, form)) == {form.largest | 1 << (form.width - 1)}


def test_subnormal_bfloat16_is_scaled_exactly():
    """XLA:CPU would take these for zero."""
    x = np.arange(1, 0x100, dtype=np.uint16).view(ml_dtypes.bfloat16)
    got = jax.jit(lambda x: times_power_of_two(float32_bits(x)[0], np.int32(126)))(x)
    np.testing.assert_array_equal(np.asarray(got).view(F32), np.ldexp(x.astype(np.float64), 126).astype(F32))


# -- arithmetic that XLA would do otherwise -------------------------------------------------------------------------


def numbers(size, seed=0):
    random = np.random.default_rng(seed)
    return (random.normal(size=size) * np.exp(random.normal(size=size) * 5)).astype(F32)


def test_division_is_ieee():
    x = numbers((500, 400))
    row = np.abs(numbers((500, 1), 1))
    assert (np.asarray(jax.jit(lambda x, y: x / y)(x, row)) != x / row).any(), "then divide() is no longer needed"
    np.testing.assert_array_equal(jax.jit(divide)(x, row), x / row)
    for constant in (F32(127), F32(448), F32(57344)):
        np.testing.assert_array_equal(jax.jit(lambda x, c=constant: divide(x, c))(x), x / constant)


def test_product_and_sum_round_twice():
    x, y, z = numbers(100_000), numbers(100_000, 1), numbers(100_000, 2)
    np.testing.assert_array_equal(jax.jit(lambda x, y, z: rounded(x * y) + z)(x, y, z), x * y + z)


# -- quantizers -----------------------------------------------------------------------------------------------------


def test_zero_rows_have_scale_zero_and_padding_changes_no_maximum():
    codes, scales = quantize.dynamic_int8(np.array([[0, 0, 0], [1, -2, 127]], F32))
    np.testing.assert_array_equal(codes, [[0, 0, 0], [1, -2, 127]])
    np.testing.assert_array_equal(scales, [0, 1])
    codes, scales = quantize.dynamic_int8(np.full((1, 13), -3, F32))
    np.testing.assert_array_equal(codes, [[-127] * 13])
    np.testing.assert_allclose(scales, [0.023622], rtol=1e-4)


@pytest.mark.parametrize("quantizer", [quantize.dynamic_int8, quantize.dynamic_int4, quantize.hifloat8_dynamic])
def test_scales_too_small_for_float32_are_zero(quantizer):
    x = np.array([[1e-38, -1e-39, 0], [2e-45, 0, 0], [1, 0.5, -1]], F32)
    codes, scales = jax.jit(quantizer)(x)
    assert not np.asarray(codes)[:2].any() and np.asarray(scales)[:2].tolist() == [0, 0]
    assert np.asarray(codes)[2].any() and scales[2] > 0


def test_static_int8_rounds_to_even_and_saturates():
    x = np.array([[0.25, 0.75, 1.25, -0.25, 1e9, -1e9, 63, np.nan]], F32)
    got = quantize.static_int8(x, np.array([2], F32), np.array([1], F32))
    assert got.tolist() == [[2, 2, 4, 0, 127, -128, 127, 0]]


@pytest.mark.parametrize("form", [E5M2, E4M3FN], ids=lambda form: form.dtype)
def test_mx_float8_scale_goes_up_where_the_mantissa_passes_1_75(form):
    largest = float(np.uint8(form.largest).view(FORMATS[form]))
    x = np.zeros((3, 32), F32)
    x[:, 0] = [largest, largest * (1 + 1 / 128), largest / 2]
    codes, scales = quantize.mx_float8(x.astype(ml_dtypes.bfloat16), form)
    assert scales[:, 0].tolist() == [127, 128, 126]
    assert codes[:, 0].tolist() == [form.largest, encoded(np.array([largest / 2], F32), form)[0], form.largest]
    assert not np.asarray(scales)[:, 1].any()  # the count of blocks is made even


@pytest.mark.parametrize("form", [E5M2, E4M3FN], ids=lambda form: form.dtype)
def test_mx_float8_of_zero_tiny_and_invalid_blocks(form):
    x = np.zeros((5, 32), ml_dtypes.bfloat16)
    x[1, 3] = 1e-39
    x[2, :2] = np.inf, 1
    x[3, :2] = np.nan, 1
    x[4, :2] = -0.0, 1e-6
    codes, scales = map(np.asarray, quantize.mx_float8(x, form))
    assert scales[:4, 0].tolist() == [0, 1, 255, 255]
    tiny = np.ldexp(x[1, 3:4].astype(np.float64), 126).astype(F32)
    assert not codes[[0, 2, 3]].any() and codes[1, 3] == encoded(tiny, form)
    assert codes[4, 0] == 0x80
    floored, raised = map(np.asarray, quantize.mx_float8(x, form, floor=True))
    assert raised[[0, 1, 4], 0].tolist() == [113 - form.largest_exponent] * 3 and not floored[:2].any()


def test_mx_float4_saturates_and_keeps_the_sign_of_zero():
    x = np.zeros((2, 34), np.float16)
    x[0, :5] = 7.5, -6, 5, -0.0, 0.25
    codes, scales = quantize.mx_float4(x)
    assert codes[0, :5].tolist() == [7, 15, 6, 8, 0]
    assert np.asarray(scales).tolist() == [[[127, 0]], [[0, 0]]]


@pytest.mark.parametrize("form", [E5M2, E4M3FN], ids=lambda form: form.dtype)
def test_group_and_block_scales(form):
    largest = float(np.uint8(form.largest).view(FORMATS[form]))
    x = np.zeros((2, 300), ml_dtypes.bfloat16)
    x[0, 0], x[0, 128], x[0, 299] = largest, largest * 1.25, 3
    codes, scales = quantize.group_float8(x, form)
    least = 2.0 ** np.ceil(np.log2(3 / largest))
    assert scales.tolist() == [[1, 2, least], [0, 0, 0]]
    assert codes[0, 0] == form.largest and not np.asarray(codes)[1].any()
    codes, scales = quantize.block_float8(x, form)
    assert scales.tolist() == [[[1, 1.25], [F32(3) / F32(largest), 0]], [[0, 0], [0, 0]]]
    assert np.asarray(codes)[0, [0, 128, 299]].tolist() == [form.largest] * 3
    _, scales = quantize.group_float8(x, form, floor=True)
    assert scales[1].tolist() == [2.0 ** np.ceil(np.log2(F32(1e-4) / largest))] * 3


# -- ranks ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size, groups", [(1, 1), (1000, 7), (4096, 10241), (1 << 19, 10241), (0, 3)])
def test_stable_order(size, groups):
    """The last but one does not fit 32 bits and goes the other way."""
    group = np.random.default_rng(0).integers(0, groups, size).astype(np.int32)
    order = jax.jit(ranks.stable_order, static_argnums=1)(group, groups)
    assert order.dtype == np.int32
    np.testing.assert_array_equal(order, np.argsort(group, kind="stable"))
    np.testing.assert_array_equal(np.asarray(ranks.inverse(order))[order], np.arange(size))


def test_key_of_32_bits_is_unsigned():
    group = np.full(1 << 17, 32767, np.int32)
    group[::2] = 0
    np.testing.assert_array_equal(ranks.stable_order(group, 32768), np.argsort(group, kind="stable"))


def test_histogram_of_a_batch():
    group = np.random.default_rng(0).integers(0, 6, (2, 3, 50)).astype(np.int32)
    got = ranks.histogram(group, 5)  # group 5 is not counted
    expected = [[np.bincount(row, minlength=6)[:5] for row in rows] for rows in group]
    np.testing.assert_array_equal(got, expected)
