"""Random rows against a float64 NumPy oracle, with ties, infinities and NaN, for both forms of the filter."""

import functools

import jax
import numpy as np
import pytest
import vectors
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import jascend as ja

BAND = 1e-5
BATCH = 4


def oracle(row, p, k):
    """The result in float64, and which elements rounding of the sums may decide either way."""
    size = len(row)
    x = row.astype(np.float64)
    order = np.argsort(x, kind="stable")  # NaN last, zeros equal
    s = x[order]
    kept = np.ones(size, bool)
    if k is not None and 1 <= k < size:
        kept &= ~(s < s[size - k])
    unsure = np.zeros(size, bool)
    if p is not None:
        with np.errstate(all="ignore"):
            e = np.where(kept, np.exp(s - s[-1]), 0.0)
            c = np.cumsum(e / e.sum())
        cut = np.float64(np.float32(1) - np.float32(p))
        last = np.arange(size) == size - 1
        unsure = kept & ~last & (np.abs(c - cut) <= BAND)
        kept &= ~(c <= cut) | last
    back = np.argsort(order)
    return np.where(kept[back], row, np.array(-np.inf, row.dtype)), unsure[back]


def plain(logits, p, k):
    return ja.apply_top_k_top_p(logits, p, k)


def with_sort(logits, p, k):
    return ja.apply_top_k_top_p_with_sorted(*ja.sort(logits), p, k)


@functools.cache
def both_forms():
    return jax.jit(lambda *operands: (plain(*operands), with_sort(*operands)), compiler_options=vectors.QUICK)


SPECIAL = [0.0, -0.0, 1.0, 1.0, 2.0, -np.inf, 30.0]
EXTREME = [*SPECIAL, np.inf, np.nan, -200.0]


@st.composite
def rows(draw, size):
    """One row: normal logits, few distinct values, or special ones."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from(["normal", "wide", "integers", "special", "extreme", "equal"]))
    return {
        "normal": lambda: random.normal(size=size),
        "wide": lambda: random.normal(size=size) * 20,
        "integers": lambda: random.integers(-3, 4, size),
        "special": lambda: random.choice(SPECIAL, size),
        "extreme": lambda: random.choice(EXTREME, size),
        "equal": lambda: np.full(size, random.normal()),
    }[kind]()


@st.composite
def calls(draw, size):
    logits = np.stack([draw(rows(size)) for _ in range(BATCH)])
    p = st.one_of(st.floats(0, 1), st.sampled_from([0, 0.5, 1, 1.5, -0.5, np.nan]))
    p = draw(st.lists(p, min_size=BATCH, max_size=BATCH))
    edges = st.sampled_from([0, 1, 2, -1, size - 1, size, size + 1, 2**31 - 1, -(2**31)])
    k = draw(st.lists(st.one_of(st.integers(0, size), edges), min_size=BATCH, max_size=BATCH))
    return logits, np.array(p), np.array(k, np.int32)


@pytest.mark.parametrize("dtype", vectors.DTYPES)
@pytest.mark.parametrize("size", [1, 6, 33, 1100])
def test_equals_the_oracle(size, dtype):
    decided = 0

    @settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(calls(size))
    def run(call):
        nonlocal decided
        logits, p, k = call
        logits, p = logits.astype(vectors.DTYPES[dtype]), p.astype(vectors.DTYPES[dtype])
        direct, sorted_form = map(np.asarray, both_forms()(logits, p, k))
        width = np.uint32 if dtype == "float32" else np.uint16
        np.testing.assert_array_equal(direct.view(width), sorted_form.view(width))
        for row in range(BATCH):
            expected, unsure = oracle(logits[row], p[row], k[row])
            got = direct[row].view(width)
            sure = got == expected.view(width)
            either = (got == logits[row].view(width)) | np.isneginf(direct[row].astype(np.float32))
            wrong = np.flatnonzero(~np.where(unsure, either, sure))
            assert not wrong.size, (wrong, logits[row], p[row], k[row], direct[row], expected)
            decided += int((~unsure).sum())

    run()
    assert decided > 100 * size
