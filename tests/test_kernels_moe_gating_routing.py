"""Gating and routing in one kernel, on the twin with the checker on: bit for bit the two kernels that it replaces."""

import functools

import jax
import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import jascend as ja

F32, BF16 = np.float32, ml_dtypes.bfloat16
DEEPSEEK = dict(norm_type=1, group_count=8, k_group=4, group_select_mode=1, routed_scaling_factor=2.5)
INT8 = dict(quant_mode=1)


@functools.cache
def programs(shapes, k, gating, routing, experts_used, target):
    """The program with the two fused, and the one with them apart."""
    names = [name for name, *_ in shapes]
    specs = [jax.ShapeDtypeStruct(shape, dtype) for _, shape, dtype in shapes]

    def moe(*given):
        given = dict(zip(names, given))
        x, scale, offset = (given.pop(name, None) for name in ("x", "scale", "offset"))
        gate = ja.moe_gating_top_k(given.pop("logits"), k, **given, **dict(gating))
        routed = ja.moe_init_routing(x, gate.expert_idx, scale, offset, **dict(routing))
        return gate.y, gate.out, gate.expert_idx if experts_used else None, routed

    fused, apart = (ja.compile(moe, *specs, target=target, forbid=forbid) for forbid in ((), "fuse-moe"))
    assert [kernel.name for kernel in fused.kernels] == ["jascend_moe_moe_gating_routing"]
    assert len(apart.kernels) == 2
    return fused, apart


def both(arrays, k, gating, routing, experts_used=True, target="ascend910b"):
    shapes = tuple((name, value.shape, np.dtype(value.dtype)) for name, value in arrays.items())
    return programs(shapes, k, tuple(sorted(gating.items())), tuple(sorted(routing.items())), experts_used, target)


def check(arrays, k, gating, routing, cores=(None,), **kwargs):
    fused, apart = both(arrays, k, gating, routing, **kwargs)
    expected = jax.tree.leaves(apart(*arrays.values()))
    for number in cores:
        report = fused.profile(*arrays.values(), cores=number)
        assert not [finding for kernel in report.kernels for finding in kernel.findings]
        actual = jax.tree.leaves(report.outputs)
        assert len(actual) == len(expected)
        for a, e in zip(actual, expected):
            a, e = np.asarray(a), np.asarray(e)
            assert (a.shape, a.dtype) == (e.shape, e.dtype)
            np.testing.assert_array_equal(a.view(np.uint8), e.view(np.uint8))


def operands(tokens, experts, size, dtype=F32, logits=F32, bias=True, seed=0):
    rng = np.random.default_rng(seed)
    arrays = {"logits": np.round(rng.normal(0, 2, (tokens, experts)), 1).astype(logits)}  # ties too
    arrays["x"] = rng.normal(0, 3, (tokens, size)).astype(dtype)
    if bias:
        arrays["bias"] = (rng.normal(size=experts) / 4).astype(logits)
    return arrays


# -- the ways of a kernel ---------------------------------------------------------------------------------------------


PADDED = dict(drop_pad_mode=1, expert_capacity=2)


@pytest.mark.parametrize(
    ("tokens", "more"), [pytest.param(1, {}, marks=pytest.mark.long), (7, PADDED)], ids=["one", "cores_without_tokens"]
)
def test_few_tokens(tokens, more):
    """Every core gates all of them, and nobody waits. Padding is shared among all cores, with tokens or without."""
    arrays, routing = operands(tokens, 64, 40, BF16), dict(expert_num=64, **INT8, **more)
    check(arrays, 8, DEEPSEEK, routing, cores=(1, None))
    assert "SyncAll" not in both(arrays, 8, DEEPSEEK, routing)[0].kernels[0].source


@pytest.mark.long
def test_cores_without_tokens_meet_the_others():
    check(operands(20, 8, 16, BF16), 2, dict(norm_type=0), dict(expert_num=8, **PADDED), cores=(3, None))


@pytest.mark.long
@pytest.mark.parametrize("target", ["ascend910b", "ascend950"])
def test_one_block_a_core(target):
    check(operands(50, 64, 40, BF16), 8, DEEPSEEK, dict(expert_num=64, **INT8), target=target)


@pytest.mark.long
def test_any_number_of_cores_gives_the_same():
    """With few cores each has many blocks; three experts a token are no whole blocks of lanes."""
    routing = dict(expert_num=40, active_expert_range=(3, 31), row_idx_type=1, expert_tokens_num_type=2, active_num=50)
    check(operands(70, 40, 24), 3, dict(norm_type=0), routing, cores=(1, 7, 40, None))


@pytest.mark.long
def test_padded_rows_of_hash_routing_with_all_scores():
    arrays = operands(40, 33, 16, np.float16, np.float16, bias=False)
    rng = np.random.default_rng(1)
    arrays["input_ids"] = rng.integers(0, 100, 40).astype(np.int32)
    arrays["tid2eid"] = rng.integers(0, 33, (100, 6)).astype(np.int32)
    arrays["scale"] = rng.uniform(1, 2, 40).astype(F32)
    routing = dict(expert_num=33, drop_pad_mode=1, expert_capacity=5)
    check(arrays, 6, dict(norm_type=2, out_flag=True), routing, cores=(5, None), experts_used=False)


@pytest.mark.long
@pytest.mark.parametrize("tokens", [3, 60])
def test_static_codes_of_masked_tokens(tokens):
    arrays = operands(tokens, 20, 24, bias=False)
    rng = np.random.default_rng(2)
    arrays["additional_bias"] = rng.normal(size=20).astype(F32)
    arrays["additional_token_mask"] = rng.random(tokens) < 0.5
    arrays["scale"], arrays["offset"] = np.array([9.0], F32), np.array([-3.0], F32)
    check(arrays, 2, dict(norm_type=1), dict(expert_num=20, quant_mode=0, expert_tokens_num_type=0))


@pytest.mark.long
@pytest.mark.parametrize("tokens", [9, 130])
def test_many_experts(tokens):
    """More than one table of counts; a scale an expert."""
    arrays = operands(tokens, 1600, 40, BF16) | {"scale": np.random.default_rng(3).uniform(1, 2, (1600, 40)).astype(F32)}
    check(arrays, 12, dict(norm_type=1), dict(expert_num=1600, **INT8), cores=(3, None))


@pytest.mark.long
def test_the_largest():
    """2048 experts in 32 groups, k of 33, rows in parts."""
    gating = dict(norm_type=1, group_count=32, k_group=5)
    check(operands(60, 2048, 9000, BF16), 33, gating, dict(expert_num=2048, **INT8), cores=(40, None))


# -- what comes before ------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_logits_are_computed_inside():
    """A bias of the router, a cast and a temperature before the gating cost no launch."""
    arrays = operands(20, 32, 16)

    def moe(logits, router_bias, x):
        logits = (logits.astype(F32) + router_bias) / 0.7
        gate = ja.moe_gating_top_k(logits, 4, norm_type=1)
        return gate.y, ja.moe_init_routing(x, gate.expert_idx, expert_num=32, **INT8)

    given = arrays["logits"].astype(BF16), arrays["bias"], arrays["x"]
    fused, apart = (ja.compile(moe, *given, forbid=forbid) for forbid in ((), "fuse-moe"))
    assert (len(fused.kernels), len(apart.kernels)) == (1, 2)
    for a, e in zip(jax.tree.leaves(fused(*given)), jax.tree.leaves(apart(*given)), strict=True):
        np.testing.assert_array_equal(np.asarray(a).view(np.uint8), np.asarray(e).view(np.uint8))


# -- whatever ---------------------------------------------------------------------------------------------------------


@st.composite
def cases(draw):
    tokens, experts = draw(st.integers(1, 60)), draw(st.sampled_from([8, 24, 64]))
    groups = draw(st.sampled_from([1, 2, 4]))
    kept = draw(st.integers(1, groups))
    k = draw(st.integers(1, min(9, experts // groups * kept)))
    gating = dict(norm_type=draw(st.integers(0, 2)), group_count=groups, k_group=kept)
    if gating["norm_type"] == 2:
        gating = dict(norm_type=2)
    routing = dict(expert_num=experts, quant_mode=draw(st.sampled_from([-1, 1])), row_idx_type=draw(st.integers(0, 1)))
    if not routing["row_idx_type"] and draw(st.booleans()):
        routing |= dict(drop_pad_mode=1, expert_capacity=draw(st.integers(1, tokens)))
    else:
        routing |= dict(expert_tokens_num_type=draw(st.integers(0, 2)), active_num=draw(st.sampled_from([-1, 5, 100])))
    arrays = operands(tokens, experts, draw(st.sampled_from([16, 33])), BF16, seed=draw(st.integers(0, 99)))
    return arrays, k, gating, routing, draw(st.sampled_from([None, 2, 5]))


@pytest.mark.long
@given(cases())
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
def test_drawn_cases(case):
    arrays, k, gating, routing, cores = case
    check(arrays, k, gating, routing, cores=(cores,), experts_used=bool(k % 2))
