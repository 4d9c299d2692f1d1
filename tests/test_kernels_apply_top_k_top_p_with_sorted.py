"""The generated kernels of the filter on sorted rows, run on the twin with the checker on: against the vectors and the fallback."""

import functools

import jax
import ml_dtypes
import numpy as np
import pytest
import vectors
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_kernels_apply_top_k_top_p import FLOATS, assert_same, near_the_boundary, rows

import jascend as ja


@functools.cache
def program(batch, vocabulary, dtype, has_p, has_k, target):
    shape = functools.partial(jax.ShapeDtypeStruct, dtype=FLOATS[dtype])
    arguments = [shape((batch, vocabulary)), jax.ShapeDtypeStruct((batch, vocabulary), np.int32)]
    arguments += [shape((batch,))] * has_p + [jax.ShapeDtypeStruct((batch,), np.int32)] * has_k

    def filtered(values, indices, *others):
        others = list(others)
        p = others.pop(0) if has_p else None
        return ja.apply_top_k_top_p_with_sorted(values, indices, p, others[0] if has_k else None)

    return ja.compile(filtered, *arguments, target=target)


def run(logits, p=None, k=None, target="ascend910b"):
    """The filter on rows that come sorted; a call raises if the checker has findings."""
    values, indices = ja.sort(logits)
    compiled = program(*logits.shape, str(logits.dtype), p is not None, k is not None, target)
    assert [kernel.name.rsplit("_", 1)[1] for kernel in compiled.kernels] == ["sorted"]
    return np.asarray(compiled(values, indices, *(x for x in (p, k) if x is not None)))


def check(logits, p=None, k=None, target="ascend910b"):
    assert_same(run(logits, p, k, target), np.asarray(ja.apply_top_k_top_p(logits, p, k)))


@pytest.mark.long
@pytest.mark.parametrize("target", ["ascend910b", "ascend950"])
@pytest.mark.parametrize("case", vectors.apply_top_k_top_p(), ids=lambda case: case.id)
def test_vectors(case, target):
    a = case.arrays
    assert_same(run(a["logits"], a.get("p"), a.get("k"), target), a["out"])


@pytest.mark.parametrize("target", ["ascend910b", "ascend950"])
def test_both_ways_back_to_vocabulary_order(target):
    """A short end, whose elements are set one by one; a long one, packed and sorted; and ends that copies lengthen."""
    rng = np.random.default_rng(0)
    logits = rng.normal(0, 3, (4, 9001)).astype(ml_dtypes.bfloat16)
    logits[1] = rng.integers(-3, 4, 9001)
    p = np.array([0.9, 0.5, 0.99, 1.0], np.float32).astype(ml_dtypes.bfloat16)
    check(logits, p, np.array([50, 3000, 0, 9000], np.int32), target)


@pytest.mark.parametrize(("vocabulary", "dtype"), [(1, "float16"), (7, "float32"), (1500, "bfloat16")])
def test_rows_of_one_stretch(vocabulary, dtype):
    logits = np.random.default_rng(vocabulary).normal(0, 4, (3, vocabulary)).astype(FLOATS[dtype])
    check(logits, k=np.array([2, 0, vocabulary // 2], np.int32))


def test_any_permutation_of_equal_values():
    """What goes among equal values is decided by their places in the sorted row, whatever their positions are."""
    values = np.zeros((1, 8), np.float32)
    indices = np.array([[7, 0, 6, 1, 5, 2, 4, 3]], np.int32)
    compiled = ja.compile(lambda v, i: ja.apply_top_k_top_p_with_sorted(v, i, p=0.5), values, indices)
    kept = np.isfinite(np.asarray(compiled(values, indices)))
    assert kept[0].nonzero()[0].tolist() == [2, 3, 4, 5]


@pytest.mark.long
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(rows(), st.booleans())
def test_agrees_with_the_fallback(drawn, has_p):
    logits, p, k = drawn
    with np.errstate(all="ignore"):
        decided = ~near_the_boundary(logits, p, k) | np.isin(p.astype(np.float32), [0.0, 1.0, 0.5])
    actual = run(logits, p if has_p else None, k)
    expected = np.asarray(ja.apply_top_k_top_p(logits, p if has_p else None, k))
    assert_same(actual[decided], expected[decided])


@pytest.mark.long
def test_the_longest_rows():
    logits = np.random.default_rng(1).normal(0, 2, (1, 1 << 20)).astype(np.float16)
    check(logits, k=np.array([100], np.int32))
