"""The generated sampling kernels, run on the twin with the checker on: against the vectors, the fallback, themselves."""

import functools

import jax
import ml_dtypes
import numpy as np
import pytest
import vectors
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_ops_top_k_top_p_sample import assert_is_vector, survivors

import jascend as ja

FLOATS = {"float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
CASES = vectors.top_k_top_p_sample()


@functools.cache
def program(target, shape, dtype, has_q, has_m, static):
    """One shape; a call raises if the checker has findings."""
    batch, array = shape[0], jax.ShapeDtypeStruct
    arguments = [array(shape, dtype), array((batch,), np.int32), array((batch,), dtype)]
    arguments += [array(shape, np.float32)] if has_q else []
    arguments += [array((batch,), dtype)] if has_m else []

    def sample(logits, top_k, top_p, *others):
        others = iter(others)
        q, m = next(others) if has_q else None, next(others) if has_m else None
        return ja.top_k_top_p_sample(logits, top_k, top_p, q, m, **dict(static))

    return ja.compile(sample, *arguments, target=target)


def run(logits, k, p, q=None, m=None, target="ascend910b", **static):
    kernel = program(target, logits.shape, logits.dtype, q is not None, m is not None, tuple(sorted(static.items())))
    return kernel(logits, k, p, *(x for x in (q, m) if x is not None))


# -- expected values ------------------------------------------------------------------------------------------------

# Mixed rows with every result, min-p in order of index, probabilities, V of 1 and of more than a chunk, a wide nucleus.
SHORT = ("c007", "c021", "c036", "c037", "c039", "c051", "c058", "c061")


def check_vector(case, target):
    a = case.arrays
    result = run(a["logits"], a["top_k"], a["top_p"], a.get("q"), a.get("min_ps"), target, **case.info["attrs"])
    assert_is_vector(result, a)


@pytest.mark.parametrize("case", [case for case in CASES if case.id.startswith(SHORT)], ids=lambda case: case.id)
def test_vectors(case):
    check_vector(case, "ascend910b")


@pytest.mark.parametrize("case", [case for case in CASES if case.id.startswith(("c036", "c058"))], ids=lambda case: case.id)
def test_vectors_on_950(case):
    check_vector(case, "ascend950")


@pytest.mark.long
@pytest.mark.parametrize("target", ["ascend910b", "ascend950"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_all_vectors(case, target):
    check_vector(case, target)


# -- the mapping, and the fallback ----------------------------------------------------------------------------------


def test_a_row_does_not_depend_on_its_batch():
    """Alone, over several cores, and among so many rows that each has one core: the same bits, for a list, a nucleus wider
    than a batch, and a row as it is."""
    rng = np.random.default_rng(4)
    rows = rng.normal(0, 1, (30, 5000)).astype(np.float32)
    k, p = np.full(30, 40, np.int32), np.full(30, 0.9, np.float32)
    k[10:], p[20:] = 0, 1.0
    together = run(rows, k, p, is_need_sample_result=True)
    for row in (0, 15, 29):
        alone = run(rows[row : row + 1], k[row : row + 1], p[row : row + 1], is_need_sample_result=True)
        for a, b in zip(alone[2:], together[2:]):
            np.testing.assert_array_equal(np.asarray(a)[0], np.asarray(b)[row])


BATCH, VOCABULARY = 5, 64


@st.composite
def batches(draw):
    """Rows with many ties, every kind of k, p and m."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    spread = draw(st.sampled_from([1, 3, 20]))
    logits = rng.integers(-spread, spread + 1, (BATCH, VOCABULARY)).astype(np.float32)
    choose = lambda values: np.array(draw(st.lists(st.sampled_from(values), min_size=BATCH, max_size=BATCH)))
    k = choose([-1, 0, 1, 2, 31, 63, 64, 65]).astype(np.int32)
    p = choose([-0.5, 0.0, 0.3, 0.55, 0.9, 0.999, 1.0, float("nan")]).astype(np.float32)
    m = choose([-1.0, 0.0, 0.013, 0.21, 1.0, 2.0]).astype(np.float32)
    return logits, k, p, m


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(batches())
def test_agrees_with_the_fallback(drawn):
    logits, k, p, m = drawn
    kwargs = dict(is_need_logits=True, is_need_sample_result=True)
    actual = run(logits, k, p, None, m, **kwargs)
    expected = ja.top_k_top_p_sample(logits, k, p, None, m, **kwargs)
    for row in range(BATCH):
        sums = np.cumsum(np.asarray(expected.logits_sort_masked)[row], dtype=np.float64)
        if np.any(np.abs(sums - p[row]) < 1e-5):
            continue  # the order of a sum may decide
        np.testing.assert_array_equal(actual.logits_idx[row], expected.logits_idx[row])
        np.testing.assert_array_equal(actual.logits_top_kp_select[row], expected.logits_top_kp_select[row])
        np.testing.assert_allclose(actual.logits_sort_masked[row], expected.logits_sort_masked[row], rtol=1e-5)


def test_64_bit_indices():
    rng = np.random.default_rng(5)
    logits, k = rng.normal(0, 2, (2, 1500)).astype(np.float32), np.array([3, 1000], np.int32)
    with jax.enable_x64(True):
        result = run(logits, k, np.ones(2, np.float32), is_need_sample_result=True)
        assert result.logits_idx.dtype == np.int64
    order = np.argsort(-logits, axis=1, kind="stable")
    for row, number in enumerate(k):
        assert survivors(result, row) == order[row, :number].tolist()
