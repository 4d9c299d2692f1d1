"""Gating against a float64 NumPy oracle on random calls, with ties, infinities and NaN."""

import functools

import gating_oracle as oracle
import jax
import numpy as np
import pytest
import vectors
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import jascend as ja

TOKENS = 4
#: Scores closer than this, and not equal, may be in either order.
BAND = 2e-6
RTOL = {"float32": 3e-6, "float16": 1e-3, "bfloat16": 8e-3}
ATOL = {"float32": 1e-12, "float16": 1e-7, "bfloat16": 1e-12}

# Shapes and static parameters: a program each.
PLANS = [
    dict(experts=1, k=1),
    dict(experts=8, k=8, norm_type=1, routed_scaling_factor=-2.0, eps=0.5),
    dict(experts=33, k=5, norm_type=2, routed_scaling_factor=1.5),
    dict(experts=64, k=6, norm_type=1, k_group=4, group_count=8, group_select_mode=1, routed_scaling_factor=2.5),
    dict(experts=36, k=9, norm_type=0, k_group=2, group_count=6),
    dict(experts=30, k=20, norm_type=2, k_group=4, group_count=6, group_select_mode=1),
    dict(experts=24, k=4, norm_type=1, k_group=2, group_count=12, group_select_mode=1),
    dict(experts=300, k=140, norm_type=0, routed_scaling_factor=6.0),
]


@functools.cache
def program(plan):
    static = {name: value for name, value in PLANS[plan].items() if name != "experts"}

    def gate(x, bias, other, mask):
        plain = ja.moe_gating_top_k(x, **static, out_flag=True)
        biased = ja.moe_gating_top_k(x, **static, bias=bias, additional_bias=other, additional_token_mask=mask)
        return plain, biased

    return jax.jit(gate, compiler_options=vectors.QUICK)


SPECIAL = [0.0, -0.0, 1.0, 1.0, 2.0, -np.inf, 30.0, np.nan, -200.0]


@st.composite
def rows(draw, size):
    """Normal logits, few distinct values, or special ones."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from(["normal", "wide", "integers", "special", "equal"]))
    return {
        "normal": lambda: random.normal(size=size),
        "wide": lambda: random.normal(size=size) * 15,
        "integers": lambda: random.integers(-3, 4, size) / 2,
        "special": lambda: random.choice(SPECIAL, size),
        "equal": lambda: np.full(size, random.normal()),
    }[kind]()


@st.composite
def calls(draw, size):
    x = np.stack([draw(rows(size)) for _ in range(TOKENS)])
    biases = [np.nan_to_num(draw(rows(size)), nan=0.5, neginf=-np.inf) for _ in range(2)]
    return x, *biases, np.array(draw(st.lists(st.booleans(), min_size=TOKENS, max_size=TOKENS)))


def check_row(row, got, bias, *, experts, k, norm_type=0, k_group=1, group_count=1, group_select_mode=0, eps=1e-20,
              routed_scaling_factor=1.0, dtype):  # fmt: skip
    """Whether the ids were decided by more than rounding; fails if anything is wrong."""
    y, ids = got
    n = oracle.scores(row, norm_type)
    expected, margin = oracle.choose(row, n, bias, k, k_group, group_count, group_select_mode)
    decided = margin > BAND
    if decided:
        np.testing.assert_array_equal(ids, expected)
    assert len(set(ids.tolist())) == k and 0 <= ids.min() and ids.max() < experts
    wanted = oracle.weights(n, ids, norm_type, eps, routed_scaling_factor)
    np.testing.assert_allclose(y.astype(np.float64), wanted, rtol=RTOL[dtype], atol=ATOL[dtype])
    return decided


@pytest.mark.parametrize(
    "plan, dtype", [(i, list(vectors.DTYPES)[i % 3]) for i in range(len(PLANS))] + [(3, "bfloat16")]
)
def test_equals_the_oracle(plan, dtype):
    total = decided = 0

    @settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(calls(PLANS[plan]["experts"]))
    def run(call):
        nonlocal total, decided
        x, bias, other = (v.astype(vectors.DTYPES[dtype]) for v in call[:3])
        mask = call[3]
        plain, biased = jax.tree.map(np.asarray, program(plan)(x, bias, other, mask))
        for i, row in enumerate(x):
            norm_type = PLANS[plan].get("norm_type", 0)
            np.testing.assert_allclose(plain.out[i], oracle.scores(row, norm_type), rtol=3e-6, atol=1e-30)
            for result, used in ((plain, None), (biased, other if mask[i] else bias)):
                decided += check_row(row, (result.y[i], result.expert_idx[i]), used, **PLANS[plan], dtype=dtype)
                total += 1

    run()
    assert total >= 300 and decided > total / 4


def test_scores_equal_by_rounding_are_taken_in_order():
    """sigmoid(30) + 0.5 is 6e-14 below 1.5, and in float32 equal to it."""
    row = np.array([-200, 30, -np.inf, -np.inf, -np.inf, -200], np.float32)
    bias = np.array([0, 0.5, 1.5, 1.5, 1.5, 0], np.float32)
    chosen, margin = oracle.choose(row, oracle.scores(row, 1), bias, 1, 1, 1, 0)
    assert chosen == [2] and margin < BAND
    _, ids, *_ = ja.moe_gating_top_k(row[None], 2, bias=bias, norm_type=1)
    assert ids.tolist() == [[1, 2]]
