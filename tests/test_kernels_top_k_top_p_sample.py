"""The generated sampling kernels, run on the twin with the checker on: against the vectors, the fallback, themselves."""

import functools

import jax
import ml_dtypes
import numpy as np
import pytest
import vectors
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_ops_top_k_top_p_sample import survivors

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
    for name, value in zip(result._fields, result):
        assert (value is None) == (name not in a), name
    if result.logits_select_idx is not None:
        np.testing.assert_array_equal(result.logits_select_idx, a["logits_select_idx"])
    if result.logits_top_kp_select is not None:
        np.testing.assert_array_equal(result.logits_top_kp_select, a["logits_top_kp_select"])
    if result.logits_idx is not None:
        for row, number in enumerate(a["valid_count"]):
            assert survivors(result, row) == a["logits_idx"][row, :number].tolist()
            masked, expected = np.asarray(result.logits_sort_masked)[row], a["logits_sort_masked"][row]
            np.testing.assert_allclose(masked[:number], expected[:number], rtol=1e-4, atol=1e-7)
            assert not masked[number:].any()


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
