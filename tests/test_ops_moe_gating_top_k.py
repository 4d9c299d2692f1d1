"""Gating: expected values, edge cases that users have met elsewhere, batching, determinism."""

import functools

import gating_oracle
import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
import vectors

import jascend as ja

CASES = gating_oracle.cases()
ACCEPTED = [case for case in CASES if not case.info["attrs"]["renorm"]]
DTYPES = [np.float32, np.float16, ml_dtypes.bfloat16]
GROUPED = dict(k=8, norm_type=1, group_count=8, k_group=4, group_select_mode=1, routed_scaling_factor=2.5)


def random(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def same(got, expected):
    """The same results to the bit."""
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        assert np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes()


def call(case, **changes):
    arrays = {name: case.arrays[name] for name in case.info["inputs"]}
    gate = functools.partial(ja.moe_gating_top_k, **{**case.info["attrs"], **changes})
    return jax.jit(lambda x, rest: gate(x, **rest), compiler_options=vectors.QUICK)(arrays.pop("x"), arrays)


# -- expected values ------------------------------------------------------------------------------------------------


def compare(case, result, out_asked):
    for name, rule in case.info["compare"].items():
        got, want = getattr(result, name), case.arrays[name]
        if name == "out" and not out_asked:
            assert got is None
            continue
        assert (got.shape, got.dtype) == (want.shape, want.dtype)
        if rule == "exact":
            np.testing.assert_array_equal(got, want)
        else:
            got, want = (np.asarray(v).astype(np.float32) for v in (got, want))
            assert (np.abs(got - want) <= rule["atol"] + rule["rtol"] * np.abs(want)).all()


@pytest.mark.parametrize("case", ACCEPTED, ids=lambda case: case.info["id"])
def test_vectors(case):
    compare(case, call(case), case.info["attrs"]["out_flag"])


def test_vectors_cover_every_mode():
    attrs = [case.info["attrs"] for case in ACCEPTED]
    assert len(ACCEPTED) == 70 and len(CASES) == 71
    assert {case.info["dtype"] for case in ACCEPTED} == {"float32", "float16", "bfloat16"}
    for name, values in {"norm_type": {0, 1, 2}, "group_select_mode": {0, 1}, "out_flag": {False, True}}.items():
        assert {a[name] for a in attrs} == values
    given = [frozenset(name for name, d in case.info["inputs"].items() if d) for case in ACCEPTED]
    assert {"x", "input_ids", "tid2eid"} in given and {"x", "bias", "additional_bias", "additional_token_mask"} in given


@pytest.mark.parametrize("case", ACCEPTED[::23], ids=lambda case: case.info["id"])
def test_out_does_not_change_the_rest(case):
    asked, not_asked = call(case, out_flag=True), call(case, out_flag=False)
    compare(case, asked, True)
    assert not_asked.out is None
    same(asked[:2], not_asked[:2])


# -- bug reports ----------------------------------------------------------------------------------------------------


def test_negative_scores_stay_above_dropped_groups():
    x = np.array([[-1, -2, -3, -4, 1, 0.5, 0, -0.5]], np.float32)
    bias = np.full(8, -5, np.float32)
    for mode in (0, 1):
        got = ja.moe_gating_top_k(x, 3, bias=bias, norm_type=1, group_count=2, k_group=1, group_select_mode=mode)
        np.testing.assert_array_equal(got.expert_idx, [[4, 5, 6]])
        np.testing.assert_allclose(got.y, [[0.3944168, 0.3358259, 0.2697573]], rtol=1e-5)


@pytest.mark.parametrize("norm_type, dtype", list(enumerate(DTYPES)))
@pytest.mark.parametrize("groups", [{}, dict(group_count=4, k_group=3, group_select_mode=1)])
def test_nan_logits_rank_last_and_score_nothing(norm_type, dtype, groups):
    gate = functools.partial(ja.moe_gating_top_k, k=8, norm_type=norm_type, out_flag=True, **groups)
    bias = random(16, seed=1, dtype=dtype)
    clean = random(4, 16, dtype=dtype)
    for nan in (np.nan, -np.array(np.nan, dtype)):
        x = clean.copy()
        x[1], x[2, 5] = nan, nan
        got, expected = (jax.tree.map(np.asarray, gate(rows, bias=bias)) for rows in (x, clean))
        same([r[[0, 3]] for r in got], [r[[0, 3]] for r in expected])
        np.testing.assert_array_equal(got.expert_idx[1], range(8))  # all equal
        np.testing.assert_array_equal(got.y[1], np.zeros(8, dtype))
        assert 5 not in got.expert_idx[2] and np.isfinite(got.y.astype(np.float32)).all()
        masked = clean.copy()
        masked[2, 5] = -np.inf  # what the others score beside it
        same(got.out[2], gate(masked, bias=bias).out[2])

    x[3, 1:] = nan  # fewer numbers than are to be chosen
    ids = np.asarray(gate(x, bias=bias).expert_idx[3])
    assert ids[0] == 0 and len(set(ids)) == 8


def test_nan_biases_rank_last():
    bias = np.zeros(6, np.float32)
    bias[[1, 4]] = np.nan, -np.nan
    got = ja.moe_gating_top_k(np.arange(6, dtype=np.float32)[None], 6, bias=bias, norm_type=1)
    np.testing.assert_array_equal(got.expert_idx, [[5, 3, 2, 0, 1, 4]])
    assert np.isfinite(got.y).all() and got.y[0, 4] > 0  # weights know nothing of biases


@pytest.mark.parametrize("dtype", DTYPES)
def test_no_division_by_zero_when_all_scores_underflow(dtype):
    bias = np.arange(1, 9, dtype=np.float32).astype(dtype)
    for norm_type in (1, 2):
        got = ja.moe_gating_top_k(np.full((1, 8), -220, dtype), 2, bias=bias, norm_type=norm_type, eps=1e-20)
        np.testing.assert_array_equal(got.expert_idx, [[7, 6]])
        np.testing.assert_array_equal(got.y, np.zeros((1, 2), dtype))


def test_strided_inputs_equal_contiguous_ones():
    base, wide = random(8, 6), random(6, 16)
    bias = random(32, seed=2)[::4]
    for view in (base.T, wide[:, ::2]):
        expected = ja.moe_gating_top_k(view.copy(), 3, bias=bias.copy(), norm_type=1)
        same(ja.moe_gating_top_k(view, 3, bias=bias, norm_type=1), expected)
        same(
            jax.jit(lambda x, b: ja.moe_gating_top_k(x.T, 3, bias=b[::4], norm_type=1))(view.T, bias.repeat(4)),
            expected,
        )


# -- scores and weights ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm_type", [0, 1, 2])
def test_infinite_and_extreme_logits(norm_type):
    x = np.array(
        [[-np.inf, 0, 1, -np.inf], [-np.inf] * 4, [3e38, -3e38, 100, -80], [1e-40, 0, -0.0, -1e-40]], np.float32
    )
    got = ja.moe_gating_top_k(x, 4, norm_type=norm_type, out_flag=True)
    expected = np.stack([gating_oracle.scores(row, norm_type) for row in x])
    np.testing.assert_allclose(got.out, expected, rtol=1e-6, atol=1e-37)
    np.testing.assert_array_equal(got.expert_idx[0], [2, 1, 0, 3])
    np.testing.assert_array_equal(got.expert_idx[1], [0, 1, 2, 3])
    np.testing.assert_array_equal(got.y[1], np.zeros(4))
    assert np.isfinite(got.y[:2]).all()


def test_infinite_logits_share_a_softmax():
    got = ja.moe_gating_top_k(np.array([[1, np.inf, -np.inf, np.inf]], np.float32), 3, out_flag=True)
    np.testing.assert_array_equal(got.out, [[0, 0.5, 0, 0.5]])
    np.testing.assert_array_equal(got.expert_idx, [[1, 3, 0]])


@pytest.mark.parametrize("norm_type", [0, 1, 2])
def test_scores_are_accurate_over_the_whole_range(norm_type):
    x = np.concatenate([np.linspace(-85, 100, 32 * 1024), random(32 * 1024) * 5]).astype(np.float32).reshape(-1, 64)
    out = ja.moe_gating_top_k(x, 1, norm_type=norm_type, out_flag=True).out
    # In a softmax, the difference to the maximum is rounded.
    rtol = 3e-6 if norm_type == 0 else 5e-7
    np.testing.assert_allclose(out, [gating_oracle.scores(row, norm_type) for row in x], rtol=rtol)


def test_softmax_weights_are_not_normalized_again():
    x = random(5, 12)
    for k in (3, 12):
        total = np.asarray(ja.moe_gating_top_k(x, k).y).sum(-1)
        assert np.allclose(total, 1, rtol=1e-6) if k == 12 else (total < 1).all()
    for norm_type in (1, 2):
        total = np.asarray(ja.moe_gating_top_k(x, 3, norm_type=norm_type, routed_scaling_factor=2.5).y).sum(-1)
        np.testing.assert_allclose(total, 2.5, rtol=1e-6)


def test_a_large_eps_shrinks_weights():
    x = random(5, 12)
    small, large = (ja.moe_gating_top_k(x, 3, norm_type=1, eps=eps, out_flag=True) for eps in (1e-20, 1.0))
    total = np.take_along_axis(np.asarray(small.out), np.asarray(small.expert_idx), -1).sum(-1, keepdims=True)
    np.testing.assert_allclose(large.y, small.y * total / (total + 1), rtol=1e-6)


def test_bias_chooses_and_does_not_weigh():
    x, bias = random(6, 16), random(16, seed=3) * 3
    got = ja.moe_gating_top_k(x, 4, bias=bias, out_flag=True)
    same(got.out, ja.moe_gating_top_k(x, 4, out_flag=True).out)
    same(got.y, np.take_along_axis(np.asarray(got.out), np.asarray(got.expert_idx), -1))
    assert (np.diff(got.y, axis=-1) > 0).any()  # not in descending order


@pytest.mark.parametrize("with_bias", [False, True])
def test_masked_rows_use_the_additional_bias_instead(with_bias):
    x, bias, other = random(6, 16), random(16, seed=4), random(16, seed=5)
    bias = bias if with_bias else None
    mask = np.array([True, False, False, True, True, False])
    gate = functools.partial(ja.moe_gating_top_k, x, 4, norm_type=1)
    got = gate(bias=bias, additional_bias=other, additional_token_mask=mask)
    plain, masked = gate(bias=bias), gate(bias=other)
    same(got[:2], [np.where(mask[:, None], m, p) for m, p in zip(masked[:2], plain[:2])])
    same(gate(bias=bias, additional_bias=other), plain)  # no effect without a mask


# -- ties, groups, sizes --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm_type", [0, 1, 2])
@pytest.mark.parametrize("experts", [7, 70, 2048])
def test_equal_logits_choose_the_lowest_ids(norm_type, experts):
    k = min(experts, 12)
    for value in (0.3, -7.1, 11.7):
        got = ja.moe_gating_top_k(np.full((3, experts), value, np.float32), k, norm_type=norm_type, out_flag=True)
        np.testing.assert_array_equal(got.expert_idx, [range(k)] * 3)
        assert len(np.unique(got.out)) == 1


@pytest.mark.parametrize("mode", [0, 1])
def test_equal_groups_keep_the_lowest_numbers(mode):
    x = np.tile(np.array([3, 1, 2, 0], np.float32), (1, 4))
    x[0, 9] = 2  # a second largest that is larger: only mode 1 sees it
    got = ja.moe_gating_top_k(x, 4, norm_type=1, group_count=4, k_group=2, group_select_mode=mode)
    np.testing.assert_array_equal(got.expert_idx, [[0, 4, 2, 6]])
    x[0, 13] = 2.5
    got = ja.moe_gating_top_k(x, 4, norm_type=1, group_count=4, k_group=2, group_select_mode=mode)
    np.testing.assert_array_equal(got.expert_idx, [[0, 4, 2, 6] if mode == 0 else [0, 12, 13, 2]])


def test_two_equal_largest_count_twice():
    x = np.array([[3, 3, 0, 0, 5, 0, 0, 0, 3, 2, 2, 2]], np.float32) / 8
    got = ja.moe_gating_top_k(x, 2, norm_type=1, group_count=3, k_group=1, group_select_mode=1)
    np.testing.assert_array_equal(got.expert_idx, [[0, 1]])


def test_a_kept_group_gives_even_its_worst_before_a_dropped_one():
    """All of the kept groups are wanted, NaN and biases of -inf among them."""
    x = np.array([[9, np.nan, 1, 1, 8, -np.inf, 1, 1]], np.float32)
    bias = np.array([0, 0, 0, 0, 0, 0, 0, -np.inf], np.float32)
    got = ja.moe_gating_top_k(x, 4, bias=bias, norm_type=1, group_count=4, k_group=2)
    np.testing.assert_array_equal(got.expert_idx, [[0, 4, 5, 1]])


def test_groups_that_do_not_matter():
    x = random(5, 32)
    plain = ja.moe_gating_top_k(x, 6, norm_type=1)
    same(ja.moe_gating_top_k(x, 6, norm_type=1, group_count=8, k_group=8, group_select_mode=1), plain)
    same(ja.moe_gating_top_k(x, 6, norm_type=1, group_count=32, k_group=7), plain)  # an expert a group


@pytest.mark.parametrize("k", [1, 33, 300])
def test_every_k_continues_the_shorter_one(k):
    x = random(3, 300).round(1)  # with ties
    got = np.asarray(ja.moe_gating_top_k(x, k, norm_type=1).expert_idx)
    np.testing.assert_array_equal(got, np.argsort(-x, axis=-1, kind="stable")[:, :k])


def test_choice_spans_groups():
    x = random(4, 64)
    got = np.asarray(ja.moe_gating_top_k(x, 12, norm_type=1, group_count=16, k_group=5).expert_idx)
    best = np.argsort(-x.reshape(4, 16, 4).max(-1), axis=-1, kind="stable")[:, :5]
    for ids, kept, row in zip(got, best, x):
        inside = [e for e in np.argsort(-row, kind="stable") if e // 4 in kept]
        np.testing.assert_array_equal(ids, inside[:12])


def test_one_expert():
    for norm_type in (0, 1, 2):
        got = ja.moe_gating_top_k(np.array([[3], [-4]], np.float32), 1, norm_type=norm_type, routed_scaling_factor=1.5)
        np.testing.assert_array_equal(got.expert_idx, [[0], [0]])
        np.testing.assert_allclose(got.y, [[1.5], [1.5]], rtol=1e-6)


# -- hash routing ---------------------------------------------------------------------------------------------------


def hashed(tokens=5, rows=9, experts=16, k=3):
    draw = np.random.default_rng(6)
    return (
        random(tokens, experts),
        draw.integers(0, rows, tokens).astype(np.int32),
        draw.integers(0, experts, (rows, k)).astype(np.int32),
    )


def test_hash_routing_takes_ids_as_they_stand():
    x, ids, table = hashed()
    table[ids[0]] = 7  # repeats are fine
    got = ja.moe_gating_top_k(x, 3, input_ids=ids, tid2eid=table, out_flag=True)
    np.testing.assert_array_equal(got.expert_idx, table[ids])
    same(got.y, np.take_along_axis(np.asarray(got.out), table[ids], -1))
    ignored = dict(bias=random(16), additional_bias=random(16), additional_token_mask=np.ones(5, bool))
    same(ja.moe_gating_top_k(x, 3, input_ids=ids, tid2eid=table, out_flag=True, **ignored), got)
    kept = dict(group_count=4, k_group=4, group_select_mode=1)  # groups that do not matter are no groups
    same(ja.moe_gating_top_k(x, 3, input_ids=ids, tid2eid=table, out_flag=True, **kept), got)


def test_ids_outside_the_tables_have_no_weight_and_touch_no_other():
    x, ids, table = hashed()
    expected = ja.moe_gating_top_k(x, 3, norm_type=1, input_ids=ids, tid2eid=table)
    wrong = ids.copy()
    wrong[1], wrong[3] = -1, 9
    got = ja.moe_gating_top_k(x, 3, norm_type=1, input_ids=wrong, tid2eid=table)
    same([r[::2] for r in got[:2]], [r[::2] for r in expected[:2]])
    np.testing.assert_array_equal(got.expert_idx[1::2], np.full((2, 3), -1))
    np.testing.assert_array_equal(got.y[1::2], np.zeros((2, 3)))
    table = table.copy()
    table[:, 1] = [16, -5, 2**31 - 1, -(2**31), 16, 16, 16, 16, 16]
    got = ja.moe_gating_top_k(x, 3, norm_type=1, input_ids=ids, tid2eid=table)
    np.testing.assert_array_equal(got.expert_idx, table[ids])
    np.testing.assert_array_equal(got.y[:, 1], np.zeros(5))
    np.testing.assert_allclose(np.asarray(got.y).sum(-1), np.ones(5), rtol=1e-6)


# -- shapes ---------------------------------------------------------------------------------------------------------


def test_three_dimensions():
    x = random(2, 3, 16)
    mask = np.array([[True, False, True], [False, False, True]])
    gate = functools.partial(
        ja.moe_gating_top_k, k=4, bias=random(16, seed=1), additional_bias=random(16, seed=2), out_flag=True
    )
    flat = gate(x.reshape(6, 16), additional_token_mask=mask.reshape(6))
    expected = jax.tree.map(lambda r: np.asarray(r).reshape(2, 3, -1), flat)
    same(gate(x, additional_token_mask=mask), expected)
    same(gate(x, additional_token_mask=mask.reshape(6)), expected)
    _, ids, table = hashed(6)
    flat = ja.moe_gating_top_k(x.reshape(6, 16), 3, input_ids=ids, tid2eid=table)
    for given in (ids, ids.reshape(2, 3)):
        got = ja.moe_gating_top_k(x, 3, input_ids=given, tid2eid=table)
        same(got[:2], [np.asarray(r).reshape(2, 3, 3) for r in flat[:2]])


# -- batches --------------------------------------------------------------------------------------------------------

PLANS = {
    "softmax": dict(k=6),
    "sigmoid": dict(k=6, norm_type=1, routed_scaling_factor=2.827),
    "sqrt softplus": dict(k=6, norm_type=2, routed_scaling_factor=1.5),
    "grouped": dict(GROUPED, k=6),
    "many": dict(k=150, norm_type=2),
}


@pytest.mark.parametrize("plan, dtype", list(zip(PLANS, [*DTYPES, np.float32, ml_dtypes.bfloat16], strict=True)))
def test_a_row_does_not_depend_on_its_batch(plan, dtype):
    """Alone, in batches of any size, reordered; eager, jit and vmap."""
    x, bias = random(40, 168, dtype=dtype) * 3, random(168, seed=1, dtype=dtype)
    x = x.astype(dtype)
    gate = functools.partial(ja.moe_gating_top_k, out_flag=True, **PLANS[plan])
    together = jax.tree.map(np.asarray, gate(x, bias=bias))
    same(jax.jit(gate)(x, bias=bias), together)
    order = np.random.default_rng(7).permutation(40)
    same(gate(x[order], bias=bias), [r[order] for r in together])
    for size in (1, 13):
        parts = [gate(x[i : i + size], bias=bias) for i in range(0, 39, size)]
        same([np.concatenate(rs) for rs in zip(*parts)], [r[:39] for r in together])
    mapped = jax.vmap(lambda row: gate(row[None], bias=bias))(x)
    same([r[:, 0] for r in mapped], together)


@pytest.mark.parametrize(
    "plan, experts", [("softmax", 7), ("softmax", 1500), ("sigmoid", 5), ("sigmoid", 100), ("sqrt softplus", 100)]
)
def test_scores_do_not_depend_on_place_or_surroundings(plan, experts):
    """The vectorized body of a loop and its remainder round alike, also where other operations are fused in."""
    x, y = random(9, experts) * 4, random(9, experts, seed=1)
    gate = lambda x, b: ja.moe_gating_top_k(x, bias=b, out_flag=True, **{**PLANS[plan], "k": 5})
    product, bias = jax.jit(lambda x, y: (x * y, x[0] * y[0]))(x, y)
    expected = gate(np.asarray(product), np.asarray(bias))
    same(jax.jit(lambda x, y: gate(x * y, x[0] * y[0]))(x, y), expected)
    if plan != "softmax":
        shifted = np.roll(np.asarray(product), 3, axis=-1)
        same(np.roll(np.asarray(gate(shifted, np.asarray(bias)).out), -3, axis=-1), expected.out)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_decisions_use_logits_as_they_are_stored(dtype):
    """XLA:CPU may keep a 16-bit intermediate at float32 precision; ties that exist once rounded must still tie."""
    x, y = random(4, 200, dtype=dtype), random(4, 200, seed=1, dtype=dtype)
    gate = lambda x, b: ja.moe_gating_top_k(x, 50, bias=b, norm_type=1)
    fused = jax.jit(lambda x, y: gate(x * y, x[0] * y[1]))(x, y)
    stored = jax.jit(lambda x, y: (x * y, x[0] * y[1]))(x, y)
    same(fused, gate(*map(np.asarray, stored)))


AXES = {  # of x, bias, additional_bias, mask
    "all": (0, 0, 0, 0),
    "x": (0, None, None, None),
    "x along axis 1": (1, None, None, None),
    "x along the last axis": (-1, None, None, 1),
    "bias": (None, 0, None, None),
    "additional bias along axis 1": (None, None, 1, None),
    "mask": (None, None, None, 0),
    "x and bias": (2, 1, None, None),
}


def gate_masked(x, bias, other, mask):
    return ja.moe_gating_top_k(x, 3, bias=bias, additional_bias=other, additional_token_mask=mask, out_flag=True, **FEW)


FEW = dict(norm_type=1, group_count=4, k_group=2)


def masked_operands(axes, size=3, tokens=5, experts=16):
    operands = [
        random(tokens, experts), random(experts, seed=1), random(experts, seed=2), random(tokens, seed=3) > 0,
    ]  # fmt: skip
    for i, axis in enumerate(axes):
        if axis is not None:
            copies = [np.roll(operands[i], j, axis=-1) for j in range(size)]
            operands[i] = np.stack(copies, axis)
    return operands


@pytest.mark.parametrize("name", AXES)
def test_vmap_equals_stacking_single_calls(name):
    axes = AXES[name]
    operands = masked_operands(axes)
    one = lambda i: gate_masked(*(x if axis is None else np.take(x, i, axis) for x, axis in zip(operands, axes)))
    singles = [one(i) for i in range(3)]
    got = jax.vmap(gate_masked, in_axes=axes, out_axes=1)(*operands)
    same(got, [np.stack(rs, axis=1) for rs in zip(*singles)])


@pytest.mark.parametrize("name", AXES)
def test_vmap_leaves_one_operation_and_no_loop(name):
    operands = masked_operands(AXES[name])
    jaxpr = jax.make_jaxpr(jax.vmap(gate_masked, in_axes=AXES[name]))(*operands)
    primitives = [equation.primitive.name for equation in jaxpr.eqns]
    assert primitives.count("moe_gating_top_k") == 1
    assert not {"scan", "while", "jit", "pjit"} & set(primitives)


@pytest.mark.parametrize("axes", [(0, None, None), (None, 0, None), (None, None, 0), (1, 0, 2), (0, 0, None)])
def test_vmap_of_hash_routing(axes):
    x, ids, table = hashed()
    operands = [x, ids, table]
    for i, axis in enumerate(axes):
        if axis is not None:
            operands[i] = np.stack([np.roll(operands[i], j, axis=0) for j in range(4)], axis)
    gate = lambda x, ids, table: ja.moe_gating_top_k(x, 3, input_ids=ids, tid2eid=table, norm_type=1)
    singles = [gate(*(v if a is None else np.take(v, i, a) for v, a in zip(operands, axes))) for i in range(4)]
    same(jax.vmap(gate, in_axes=axes)(*operands), [np.stack(rs) for rs in zip(*(s[:2] for s in singles))])


@pytest.mark.parametrize(
    "inner, outer", [((0, None), (None, 0)), ((None, 0), (0, None)), ((None, 0), (0, 0)), ((0, 0), (0, 0))]
)
def test_nested_vmap(inner, outer):
    operands = [random(5, 16), random(16, seed=1)]
    for axes in (inner, outer):
        operands = [v if a is None else np.stack([v, -v, v + 1]) for v, a in zip(operands, axes)]
    gate = lambda x, bias: ja.moe_gating_top_k(x, 3, bias=bias, **FEW)
    pick = lambda vs, axes, i: [v if a is None else v[i] for v, a in zip(vs, axes)]
    singles = [[gate(*pick(pick(operands, outer, i), inner, j)) for j in range(3)] for i in range(3)]
    got = jax.vmap(jax.vmap(gate, in_axes=inner), in_axes=outer)(*operands)
    for name in ("y", "expert_idx"):
        same(getattr(got, name), np.array([[getattr(s, name) for s in row] for row in singles]))


def test_vmap_over_nothing():
    got = jax.vmap(lambda x: ja.moe_gating_top_k(x, 3, out_flag=True, **FEW))(np.zeros((0, 5, 16), np.float32))
    assert [r.shape for r in got] == [(0, 5, 3), (0, 5, 3), (0, 5, 16)]


# -- JAX ------------------------------------------------------------------------------------------------------------


def test_results_are_a_pytree_of_what_was_asked_for():
    got = jax.jit(lambda x: ja.moe_gating_top_k(x, 2))(random(3, 8))
    assert type(got).__name__ == "MoeGating" and got._fields == ("y", "expert_idx", "out")
    assert got.out is None and len(jax.tree.leaves(got)) == 2


def test_eval_shape_allocates_nothing():
    rows = jax.ShapeDtypeStruct((2**34, 256), jnp.bfloat16)
    got = jax.eval_shape(lambda x: ja.moe_gating_top_k(x, 8, out_flag=True), rows)
    assert [(r.shape, r.dtype) for r in got] == [
        ((2**34, 8), jnp.bfloat16), ((2**34, 8), jnp.int32), ((2**34, 256), jnp.float32),
    ]  # fmt: skip


def test_donation():
    x = jnp.asarray(random(4, 16))
    expected = ja.moe_gating_top_k(np.asarray(x), 16, norm_type=1)
    same(jax.jit(lambda x: ja.moe_gating_top_k(x, 16, norm_type=1), donate_argnums=0)(x), expected)
    assert x.is_deleted()


def test_no_derivative_says_so():
    x = random(2, 8)
    with pytest.raises(NotImplementedError, match="moe_gating_top_k is an inference operator.*stop_gradient"):
        jax.grad(lambda x: ja.moe_gating_top_k(x, 2).y.sum())(x)
    with pytest.raises(NotImplementedError, match="moe_gating_top_k is an inference operator"):
        jax.jvp(lambda b: ja.moe_gating_top_k(x, 2, bias=b), (x[0],), (x[0],))


def test_runs_without_jit():
    expected = ja.moe_gating_top_k(random(2, 8), 2, norm_type=2)
    with jax.disable_jit():
        same(ja.moe_gating_top_k(random(2, 8), 2, norm_type=2), expected)


def test_integers_of_numpy_are_static_too():
    x = random(2, 8)
    same(ja.moe_gating_top_k(x, np.int64(3), k_group=np.int32(1), eps=np.float32(1e-20)), ja.moe_gating_top_k(x, 3))
    same(jax.jit(ja.moe_gating_top_k, static_argnames="k")(x, k=3), ja.moe_gating_top_k(x, 3))
