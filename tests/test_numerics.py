"""The parts of the fallbacks: keys of every 16-bit pattern, sums in the stated order, threshold searches."""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from jascend.numerics import bits, blocks, threshold

HALVES = [np.float16, ml_dtypes.bfloat16]


def all_values(dtype):
    return np.arange(2**16, dtype=np.uint16).view(dtype)


def some_floats():
    random = np.random.default_rng(0)
    special = np.array([0, -0.0, 1, -1, np.inf, -np.inf, np.nan, -np.nan, 3e38, -3e38, 1e-45, -1e-45], np.float32)
    return np.concatenate([special, random.integers(0, 2**32, 4000, dtype=np.uint32).view(np.float32)])


def flushed(values):
    """As float32, with 0 for what is subnormal in that."""
    wide = values.astype(np.float32)
    return np.where(np.abs(wide) < np.float32(2.0**-126), np.float32(0), wide)


@pytest.mark.parametrize("dtype", [*HALVES, np.float32])
def test_keys_order_like_values(dtype):
    values = some_floats() if dtype == np.float32 else all_values(dtype)
    keys = np.asarray(bits.keys_of(bits.bits_of(values), values.dtype), np.int64)
    with np.errstate(invalid="ignore"):  # NumPy remarks on signalling NaNs
        wide = flushed(values).astype(np.float64)
    nan = np.isnan(wide)
    assert (keys[nan] == bits.nan_key(values.dtype)).all()
    assert (keys[wide == np.inf] == bits.infinity_key(values.dtype)).all()
    assert (keys[wide == -np.inf] == -int(bits.infinity_key(values.dtype))).all()
    assert keys[~nan].max() < bits.nan_key(values.dtype) and keys.min() > -int(bits.nan_key(values.dtype))
    order = np.argsort(wide[~nan])
    np.testing.assert_array_equal(np.sign(np.diff(wide[~nan][order])) > 0, np.diff(keys[~nan][order]) > 0)
    assert (np.diff(keys[~nan][order]) >= 0).all()


@pytest.mark.parametrize("dtype", [*HALVES, np.float32])
def test_values_of_keys_are_exact(dtype):
    values = some_floats() if dtype == np.float32 else all_values(dtype)
    got = bits.float32_of_keys(bits.keys_of(bits.bits_of(values), dtype), dtype)
    np.testing.assert_array_equal(np.asarray(got), flushed(values))
    back = bits.from_bits(bits.bits_of(values), dtype)
    assert back.dtype == dtype and np.asarray(back).tobytes() == values.tobytes()


def test_bits_of_minus_infinity():
    for dtype in (*HALVES, np.float32):
        got = bits.from_bits(jnp.full(1, bits.negative_infinity_bits(dtype)), dtype)
        assert got[0] == -np.inf and got.dtype == dtype


def in_order(row):
    """The stated sum, written out: blocks of 1024 by halves, then from the first block to the last."""
    row = np.pad(row, (0, -len(row) % 1024))
    sums = []
    for block in row.reshape(-1, 1024):
        while len(block) > 1:
            block = block[: len(block) // 2] + block[len(block) // 2 :]
        sums.append(block[0])
    result = np.float32(0)
    for value in sums:
        result = np.float32(result + value)
    return result


@pytest.mark.parametrize("size", [1, 2, 100, 1000, 1024, 1025, 5000, 300_000])
def test_sums_are_in_the_stated_order(size):
    rows = np.random.default_rng(size).lognormal(0, 3, (3, size)).astype(np.float32)
    got = jax.jit(lambda x: blocks.total(blocks.pad(x, 0)))(rows)
    np.testing.assert_array_equal(got, [in_order(row) for row in rows])


@pytest.mark.parametrize("size", [1, 7, 64, 65, 1024, 2500])
def test_rows_of_whole_blocks(size):
    rows = np.random.default_rng(0).integers(0, 9, (2, size)).astype(np.int32)
    padded = blocks.pad(rows, 4)
    assert padded.shape[-1] == {1: 1, 7: 8, 64: 64, 65: 128, 1024: 1024, 2500: 3072}[size]
    np.testing.assert_array_equal(padded[:, :size], rows)
    assert (np.asarray(padded)[:, size:] == 4).all()
    np.testing.assert_array_equal(blocks.cut(padded).reshape(2, -1), padded)
    np.testing.assert_array_equal(blocks.count(padded == 3), (rows == 3).sum(-1))
    np.testing.assert_array_equal(blocks.maximum(blocks.pad(rows, -1)), rows.max(-1))
    np.testing.assert_array_equal(blocks.minimum(blocks.pad(rows, 9)), rows.min(-1))


@pytest.mark.parametrize("dtype", [*HALVES, np.float32])
def test_kth_largest_equals_sorting(dtype):
    random = np.random.default_rng(1)
    rows = random.choice([*random.normal(size=50), 0.0, -0.0, np.inf, -np.inf], (200, 37)).astype(dtype)
    k = random.integers(1, 38, 200).astype(np.int32)
    keys = bits.keys_of(bits.bits_of(rows), dtype)
    got = threshold.kth_largest(blocks.pad(keys, bits.PADDING_KEY), jnp.asarray(k), dtype)
    expected = np.take_along_axis(np.sort(keys, -1), (37 - k)[:, None], -1)[:, 0]
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("dtype", [*HALVES, np.float32])
def test_mass_threshold_equals_a_running_sum(dtype):
    random = np.random.default_rng(2)
    rows = random.integers(-9, 10, (200, 37)).astype(dtype)
    weights = random.integers(0, 5, (200, 37)).astype(np.float32)  # sums are exact
    limit = random.integers(-1, 90, 200).astype(np.float32)
    keys = blocks.pad(bits.keys_of(bits.bits_of(rows), dtype), bits.PADDING_KEY)
    top = blocks.maximum(keys)
    got = threshold.mass_threshold(keys, blocks.pad(weights, 0), limit, top, top, dtype)
    for row in range(200):
        if limit[row] < 0:
            assert got[row] < -bits.infinity_key(dtype)  # even no weight at all exceeds it
            continue
        reach = [v for v in np.unique(rows[row]) if weights[row][rows[row] <= v].sum() > limit[row]]
        value = min(reach) if reach else rows[row].max()
        assert bits.float32_of_keys(got[row], dtype) == np.float32(value)


@pytest.mark.parametrize("dtype", [*HALVES, np.float32])
def test_thresholds_of_long_rows(dtype):
    """Rows that settle after different numbers of passes, some with more equal elements than are ever listed."""
    random = np.random.default_rng(3)
    normal = random.normal(size=(8, 9000))
    rows = normal * np.array([3, 1, 0.01, 1e-6, 100, 1, 1, 1])[:, None]
    rows[1] += 1000
    rows[4, ::3] = -3e4
    rows[5] = random.choice([1.0, 1.5, -2.0], 9000)
    rows[6] = 0.25
    rows[7] = np.abs(normal[7]) ** 9 / 1e9
    rows = rows.astype(dtype)
    keys = bits.keys_of(bits.bits_of(rows), dtype)
    order = np.argsort(np.asarray(keys), axis=-1, kind="stable")
    ordered = np.take_along_axis(np.asarray(keys), order, -1)
    weights = random.integers(0, 5, rows.shape).astype(np.float32)  # sums are exact
    running = np.cumsum(np.take_along_axis(weights, order, -1), axis=-1)
    padded, padded_weights = blocks.pad(keys, bits.PADDING_KEY), blocks.pad(weights, 0)
    top = blocks.maximum(padded)
    for share in (0.003, 0.5, 0.97):
        k = np.full(8, int(9000 * share), np.int32)
        kth = jax.jit(lambda keys, k: threshold.kth_largest(keys, k, dtype))(padded, k)
        np.testing.assert_array_equal(kth, ordered[:, 9000 - k[0]])
        limit = (share * running[:, -1]).astype(np.float32)
        search = jax.jit(lambda *operands: threshold.mass_threshold(*operands, dtype))
        operands = padded, padded_weights, limit, top, top
        expected = [row[np.argmax(sums > bound)] for row, sums, bound in zip(ordered, running, limit)]
        np.testing.assert_array_equal(search(*operands), expected)


@pytest.mark.parametrize("low, high", [(-(2**31), 2**31 - 1), (0, 0), (-1, 4), (2**31 - 3, 2**31 - 1)])
def test_bisect_ends_at_the_least_that_holds(low, high):
    wanted = np.unique(np.clip([low, low + 1, -7, 0, 3, 12345, high - 1, high], low, high)).astype(np.int32)
    full = lambda value: jnp.full(len(wanted), value, jnp.int32)
    got = threshold.bisect(lambda x: x >= wanted, full(low), full(high))
    np.testing.assert_array_equal(got, wanted)
    none = threshold.bisect(lambda x: jnp.zeros(x.shape, bool), full(low), full(high))
    np.testing.assert_array_equal(none, full(high))
