"""Random rows against a float64 NumPy oracle that follows the operator's page step by step, list by list."""

import functools
from typing import NamedTuple

import jax
import numpy as np
import pytest
import vectors
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import jascend as ja

BAND = 1e-5
BATCH = 4


class Expected(NamedTuple):
    """A row's survivors in order, their probabilities, the position chosen; and whether rounding decides none of it."""

    indices: np.ndarray
    probabilities: np.ndarray
    choice: int
    certain: bool


def oracle(x, k, p, m, q, *, ks_max, is_logits, eps=1e-8):
    size, certain = len(x), True
    use_k = 1 <= k <= min(size, -(-ks_max // 8) * 8, 1024)
    indices = np.arange(size)
    if use_k or p < 1 or m >= 1:
        indices = np.array(sorted(range(size), key=lambda i: (-x[i], i)))
    if use_k:
        indices = indices[:k]
    listed = x[indices].astype(np.float64)
    if is_logits:
        listed = np.exp(listed - listed.max())
        listed /= listed.sum()
    if p <= 0:
        indices, listed = indices[:1], np.ones(1) if is_logits else listed[:1]
    elif p < 1:
        reached = np.cumsum(listed)
        certain &= not (np.abs(reached - p) < BAND).any()
        number = int(np.argmax(reached >= p)) + 1 if (reached >= p).any() else len(listed)
        indices, listed = indices[:number], listed[:number]
    if m >= 1:
        best = int(np.argmax(listed))
        indices, listed = indices[[best]], listed[[best]]
    elif m > 0:
        most = listed.max()
        certain &= not (np.abs(listed - most * m) < BAND * most).any()
        keep = listed >= most * m
        indices, listed = indices[keep], listed[keep]
    scores = listed if q is None else listed / (np.abs(q[: len(listed)].astype(np.float64)) + eps)
    choice = int(np.argmax(scores))
    # Without q, equal logits have equal probabilities and the first is chosen; other near ties may go either way.
    near = np.abs(scores - scores[choice]) <= 4 * BAND * scores[choice]
    certain &= near.sum() == 1 or q is None and (x[indices][near] == x[indices[choice]]).all()
    return Expected(indices, listed, choice, bool(certain))


@functools.cache
def functions(ks_max, is_logits):
    """Every result of a call, through its three forms in one compiled function."""
    keywords = dict(ks_max=ks_max, input_is_logits=is_logits)

    def run(logits, k, p, m, q):
        asked = dict(is_need_logits=True, is_need_sample_result=True)
        listed = ja.top_k_top_p_sample(logits, k, p, None, m, **asked, **keywords)
        largest = ja.top_k_top_p_sample(logits, k, p, None, m, **keywords).logits_select_idx
        drawn = ja.top_k_top_p_sample(logits, k, p, q, m, **keywords).logits_select_idx
        return *listed[1:], largest, drawn

    return jax.jit(run, compiler_options=vectors.QUICK)


@st.composite
def rows(draw, size, is_logits):
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from(["normal", "wide", "integers", "holes", "equal"]))
    x = {
        "normal": lambda: random.normal(size=size),
        "wide": lambda: random.normal(size=size) * 8,
        "integers": lambda: random.integers(-3, 4, size) * 1.0,
        "holes": lambda: np.where(random.random(size) < 0.3, -np.inf, random.integers(-2, 3, size)),
        "equal": lambda: np.full(size, random.normal()),
    }[kind]()
    if is_logits:
        assume(np.isfinite(x).any())
        return x
    weights = np.exp(np.where(np.isfinite(x), np.clip(x, -5, 5), -50))
    return weights / weights.sum()


@st.composite
def calls(draw, size, is_logits):
    each = lambda strategy: draw(st.lists(strategy, min_size=BATCH, max_size=BATCH))
    edges = [0, 1, 2, -1, 8, 9, 16, 17, size - 1, size, size + 1, 2**31 - 1, -(2**31)]
    return (
        np.stack(each(rows(size, is_logits))),
        np.array(each(st.one_of(st.integers(0, min(size, 20)), st.sampled_from(edges))), np.int32),
        np.array(each(st.one_of(st.floats(0.01, 0.99), st.sampled_from([0.0, 1.0, 1.5, -0.5, np.nan])))),
        np.array(each(st.one_of(st.floats(0.001, 0.5), st.sampled_from([0.0, 0.0, 1.0, -1.0, 3.0])))),
        np.random.default_rng(draw(st.integers(0, 2**32 - 1))).exponential(size=(BATCH, size)).astype(np.float32),
    )


@pytest.mark.parametrize(
    "size, dtype, ks_max, is_logits",
    [
        (1, "float32", 1024, True),
        (7, "float16", 1024, True),
        (33, "float32", 1024, True),
        (33, "bfloat16", 10, False),
        (40, "float32", 9, False),
        (2100, "bfloat16", 1024, True),
        (2100, "float32", 1024, True),
    ],
)
def test_equals_the_oracle(size, dtype, ks_max, is_logits):
    decided = 0

    @settings(max_examples=50, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(calls(size, is_logits))
    def run(call):
        nonlocal decided
        logits, k, p, m, q = call
        logits, p, m = (x.astype(vectors.DTYPES[dtype]) for x in (logits, p, m))
        results = functions(ks_max, is_logits)(logits, k, p, m, q)
        in_place, indices, probabilities, largest, drawn = map(np.asarray, results)
        for row in range(BATCH):
            x = logits[row].astype(np.float32)
            operands = x, k[row], np.float64(p[row]), np.float64(m[row])
            expected = oracle(*operands, None, ks_max=ks_max, is_logits=is_logits)
            with_q = oracle(*operands, q[row], ks_max=ks_max, is_logits=is_logits)
            number = int(np.sum(indices[row] >= 0))
            kept = indices[row, :number]
            # What holds whatever rounding does: the results agree with each other.
            assert number >= 1 and len(set(kept.tolist())) == number
            assert (indices[row, number:] == -1).all() and not probabilities[row, number:].any()
            default = -np.inf if is_logits else 0
            np.testing.assert_array_equal(in_place[row], np.where(np.isin(np.arange(size), kept), x, default))
            assert largest[row] in kept and drawn[row] in kept
            if expected.certain:
                np.testing.assert_array_equal(kept, expected.indices)
                np.testing.assert_allclose(probabilities[row, :number], expected.probabilities, rtol=2e-5, atol=1e-30)
                assert largest[row] == expected.indices[expected.choice]
                decided += 1
            if with_q.certain:
                assert drawn[row] == with_q.indices[with_q.choice]

    run()
    assert decided > 100
