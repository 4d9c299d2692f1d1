"""The sampler: expected values, edge cases that users have met elsewhere, batching, determinism."""

import functools

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
import vectors

import jascend as ja

INF = np.inf
CASES = vectors.top_k_top_p_sample()
sample = ja.top_k_top_p_sample


@functools.cache
def jitted(is_quick=False, **static):
    """One compiled function for all calls of a shape with these keywords."""
    return jax.jit(functools.partial(sample, **static), compiler_options=vectors.QUICK if is_quick else None)


quick = functools.partial(jitted, True)


def call(logits, k, p, q=None, m=None, **static):
    return jitted(**static)(logits, k, p, q, m)


def bits(x):
    x = np.asarray(x)
    return x.view(f"uint{8 * x.dtype.itemsize}")


def check_same(got, expected):
    """Two results agree to the bit."""
    for name, a, b in zip(type(got)._fields, got, expected):
        assert (a is None) == (b is None), name
        if a is not None:
            np.testing.assert_array_equal(bits(a), bits(np.asarray(b)), err_msg=name)


def survivors(result, row):
    """The indices in `logits_idx` before its tail, which must be -1."""
    indices = np.asarray(result.logits_idx)[row]
    number = int(np.sum(indices >= 0))
    assert (indices[number:] == -1).all()
    return indices[:number].tolist()


def distribution(row, k=0, p=1.0, m=0.0, dtype=np.float32, **static):
    """Indices and probabilities of what survives in one row."""
    k, p, m = np.array([k], np.int32), np.array([p], dtype), np.array([m], dtype)
    result = quick(is_need_sample_result=True, **static)(np.array([row], dtype), k, p, None, m)
    indices = survivors(result, 0)
    return indices, np.asarray(result.logits_sort_masked)[0, : len(indices)].tolist()


def assert_is_vector(result, arrays):
    """What is written of a vector: indices and logits exactly, probabilities nearly, tails as the operator says."""
    for name, value in zip(result._fields, result):
        assert (value is None) == (name not in arrays), name
    if result.logits_select_idx is not None:
        np.testing.assert_array_equal(result.logits_select_idx, arrays["logits_select_idx"])
    if result.logits_top_kp_select is not None:
        np.testing.assert_array_equal(result.logits_top_kp_select, arrays["logits_top_kp_select"])
    if result.logits_idx is not None:
        for row, number in enumerate(arrays["valid_count"]):
            assert survivors(result, row) == arrays["logits_idx"][row, :number].tolist()
            masked, expected = np.asarray(result.logits_sort_masked)[row], arrays["logits_sort_masked"][row]
            np.testing.assert_allclose(masked[:number], expected[:number], rtol=1e-4, atol=1e-7)
            assert not masked[number:].any()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_vectors(case):
    arrays = case.arrays
    operands = (arrays.get(name) for name in ("logits", "top_k", "top_p", "q", "min_ps"))
    assert_is_vector(quick(**case.info["attrs"])(*operands), arrays)


def test_vectors_cover_all_outputs_dtypes_and_edges():
    assert len(CASES) == 90
    assert {case.info["dtype"] for case in CASES} == set(vectors.DTYPES)
    assert not [case.id for case in CASES if case.info["contract"] == "out"]
    asked = {(case.info["attrs"]["is_need_logits"], case.info["attrs"]["is_need_sample_result"]) for case in CASES}
    assert asked == {(False, False), (False, True), (True, False), (True, True)}


def test_exactly_k_stay_the_lowest_indices_of_a_tie():
    """Unlike the filter, which keeps every copy of the k-th value."""
    assert distribution([1, 2, 2, 0], k=1) == ([1], [1.0])
    assert distribution([3, 1, 1, 1, 0], k=2)[0] == [0, 1]
    assert distribution([0] * 6, k=3)[0] == [0, 1, 2]
    assert distribution([-0.0, 0.0, -0.0, 1], k=3)[0] == [3, 0, 1]  # zeros of either sign are equal
    tile = np.tile(np.array([3, 1, 1, 1, 0], np.float32), (16, 1))
    result = call(tile, np.full(16, 2, np.int32), np.ones(16, np.float32), is_need_sample_result=True)
    assert [survivors(result, row) for row in range(16)] == [[0, 1]] * 16


def test_top_k_off_in_one_row_leaves_the_others_alone():
    rows = np.array([[0, 1, 2, 3], [3, 2, 1, 0]], np.float32)
    for off in (0, -1, 5, 9, -(2**31), 2**31 - 1):
        result = call(rows, np.array([off, 2], np.int32), np.ones(2, np.float32), is_need_logits=True)
        np.testing.assert_array_equal(result.logits_top_kp_select, [[0, 1, 2, 3], [3, 2, -INF, -INF]])
        np.testing.assert_array_equal(result.logits_select_idx, [3, 0])


def test_top_k_of_all_sorts():
    assert distribution([1, 3, 2], k=3)[0] == [1, 2, 0]
    assert distribution([1, 3, 2], k=4)[0] == [0, 1, 2]


def test_ks_max_is_rounded_up_to_a_multiple_of_8_and_capped():
    row = np.arange(20)
    for ks_max, limit in ((1, 8), (9, 16), (2000, 20)):
        for k in (limit, limit + 1):
            number = k if k <= limit else 20
            assert len(distribution(row, k=k, ks_max=ks_max)[0]) == number
    long = np.zeros(1100)
    assert len(distribution(long, k=1024, ks_max=5000)[0]) == 1024
    assert len(distribution(long, k=1025, ks_max=5000)[0]) == 1100


def test_running_sum_exactly_on_the_threshold_is_reached():
    for p, kept in ((0.25, 1), (0.5, 2), (0.75, 3)):
        assert distribution([0, 0, 0, 0], p=p) == (list(range(kept)), [0.25] * kept)
    assert distribution([0] * 8, p=0.7)[0] == list(range(6))
    assert distribution([0] * 8, k=4, p=0.5) == ([0, 1], [0.25, 0.25])


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_p_of_zero_or_less_keeps_the_first_maximum(dtype):
    for p in (0.0, -0.0, -0.5, -INF):
        for k in (0, 3):
            assert distribution([1, 3, 3, 0], k, p, dtype=dtype) == ([1], [1.0])
            assert distribution([0.25, 0.5, 0.5, 0], k, p, dtype=dtype, input_is_logits=False) == ([1], [0.5])


def test_p_of_one_or_more_or_nan_turns_top_p_off():
    for p in (1.0, 1.5, INF, np.nan):
        assert distribution([1, 3, 2, -200], p=p)[0] == [0, 1, 2, 3]  # in order of index, even what underflows
        assert distribution([1, 3, 2, -200], k=2, p=p)[0] == [1, 2]


def test_probabilities_that_never_reach_p_all_stay():
    assert distribution([0.125, 0.25, 0.125], p=0.75, input_is_logits=False) == ([1, 0, 2], [0.25, 0.125, 0.125])


def test_min_p():
    half = [0.25, 0.5, 0.125, 0.5]
    probabilities = functools.partial(distribution, half, input_is_logits=False)
    assert probabilities(m=0.5) == ([0, 1, 3], [0.25, 0.5, 0.5])  # equal to the threshold stays; in order of index
    assert probabilities(k=4, m=0.5) == ([1, 3, 0], [0.5, 0.5, 0.25])
    assert probabilities(p=0.75, m=1.0) == ([1], [0.5])
    for m in (1.0, 2.0, INF):
        assert probabilities(m=m) == ([1], [0.5])
    for m in (0.0, -1.0, np.nan):
        assert probabilities(m=m)[0] == [0, 1, 2, 3]
    assert distribution([-1, -2, -3], m=0.5, input_is_logits=False)[0] == [0]  # the threshold exceeds the maximum


def test_q_is_taken_by_position_and_by_absolute_value():
    row = np.array([[0.0, 1.0, 3.0, 2.0]], np.float32)
    choose = lambda q, k=0, p=1.0, m=None, **static: int(
        call(row, np.array([k], np.int32), np.array([p], np.float32), np.array([q], np.float32), m, **static)[0][0]
    )
    assert choose([1, 1, 1, 1]) == 2
    assert choose([1e-9, 1, 1, 1]) == 0  # nothing on: position is index
    assert choose([1, 1e-9, 1, 1], k=3) == 3  # sorted: 2, 3, 1
    assert choose([1, -1e-9, 1, 1], k=3) == 3
    assert choose([1, 1, 1, 1e-9], k=3) == 2  # behind the survivors nothing is chosen
    assert choose([1, 1e-9, 1, 1], m=np.array([0.3], np.float32)) == 3  # compacted: 2, 3
    assert choose([0, 0, 1, 1], k=2) == 2 and choose([0, 0, 1, 1], k=2, eps=0.0) == 2  # x/0 is a tie of infinities
    assert choose([5, 0, 1, 1], k=2, eps=1e6) == 2


def test_top_k_guess_never_matters():
    random = np.random.default_rng(1)
    logits, k, p = random.normal(size=(3, 50)).astype(np.float32), np.zeros(3, np.int32), np.full(3, 0.8, np.float32)
    expected = call(logits, k, p, is_need_sample_result=True)
    for guess in (-(2**31), 0, 2**31 - 1):
        check_same(call(logits, k, p, is_need_sample_result=True, top_k_guess=guess), expected)


@pytest.mark.parametrize("is_logits", [True, False])
@pytest.mark.parametrize("dtype", vectors.DTYPES.values())
def test_what_survives_in_place(dtype, is_logits):
    """Exact copies, negative zero and subnormals included; the default elsewhere."""
    tiny = 6e-8 if dtype == np.float16 else 1e-40
    row = np.array([[0.25, -0.0, tiny, 0.5, 0.0]], dtype)
    static = dict(is_need_logits=True, input_is_logits=is_logits)
    result = call(row, np.array([0], np.int32), np.ones(1, dtype), **static)
    np.testing.assert_array_equal(bits(result.logits_top_kp_select), bits(row.astype(np.float32)))
    result = call(row, np.array([1], np.int32), np.ones(1, dtype), **static)
    other = -INF if is_logits else 0
    np.testing.assert_array_equal(result.logits_top_kp_select, [[other, other, other, 0.5, other]])
    assert result.logits_top_kp_select.dtype == np.float32 and result.logits_select_idx.tolist() == [3]


def test_minus_infinity_ranks_last():
    row = [-INF, 1, -INF, 2]
    assert distribution(row, k=4)[0] == [3, 1, 0, 2]
    assert distribution(row, k=4)[1][2:] == [0, 0]
    assert distribution(row, p=0.99)[0] == [3, 1]


@pytest.mark.parametrize("dtype", [np.float32, pytest.param(ml_dtypes.bfloat16, marks=pytest.mark.long)])
def test_undefined_rows_choose_a_valid_index_and_leave_their_neighbours_alone(dtype):
    random = np.random.default_rng(0)
    good = random.normal(size=(3, 40)).astype(dtype)
    seventh = np.arange(40) == 7
    bads = [(np.full(40, np.nan), 0), (np.full(40, -INF), 0)]  # the row, and the first of its largest
    bads += [(np.where(seventh, np.nan, 1), 7), (np.where(seventh, INF, 1), 7)]
    q, m = np.ones((3, 40), np.float32), np.full(3, 0.1, dtype)
    for k, p in ((0, 1.0), (2, 0.5), (0, 0.5), (3, 0.0)):
        operands = np.full(3, k, np.int32), np.full(3, p, dtype)
        for use_q in (None, q):
            clean = call(good, *operands, use_q, m, is_need_logits=True)
            for bad, first in bads:
                rows = good.copy()
                rows[1] = bad
                result = call(rows, *operands, use_q, m, is_need_logits=True)
                for got, expected in zip(result[:2], clean[:2]):
                    np.testing.assert_array_equal(np.asarray(got)[[0, 2]], np.asarray(expected)[[0, 2]])
                assert 0 <= result.logits_select_idx[1] < 40
                assert result.logits_select_idx[1] == (first if k or p < 1 else 0)
                kept = np.asarray(result.logits_top_kp_select)[1]
                number = 1 if p <= 0 else k or 40  # neither top-p nor min-p removes anything
                if not np.isneginf(bad).any():
                    assert np.sum(~np.isneginf(kept)) == number


def test_nan_in_q_is_chosen_within_the_survivors():
    q = np.array([[1, np.nan, 1, np.nan]], np.float32)
    row = np.array([[0, 1, 3, 2]], np.float32)
    assert call(row, np.array([3], np.int32), np.ones(1, np.float32), q).logits_select_idx.tolist() == [3]
    assert call(row, np.array([1], np.int32), np.ones(1, np.float32), q).logits_select_idx.tolist() == [2]


def test_one_element_rows():
    for k, p, m in ((1, 0.5, 0.5), (0, 0.0, 0.0), (5, 1.0, 1.0)):
        assert distribution([3.5], k, p, m) == ([0], [1.0])
    ones = np.ones((2, 1), np.float32)
    result = call(ones, np.ones(2, np.int32), ones[:, 0], 0 * ones)
    assert result.logits_select_idx.tolist() == [0, 0]


def test_long_rows_of_equal_values_are_cut_at_the_exact_position():
    """131072 probabilities of 2^-17: a sum kept in bfloat16 would stop growing."""
    size = 131072
    for dtype, p, kept in ((ml_dtypes.bfloat16, 0.9, 117760), (np.float32, 0.5, 65536)):
        result = call(np.zeros((1, size), dtype), np.zeros(1, np.int32), np.array([p], dtype), is_need_logits=True)
        np.testing.assert_array_equal(np.isneginf(result.logits_top_kp_select[0]), np.arange(size) >= kept)


def test_strided_inputs_equal_contiguous_ones():
    base = np.arange(16, dtype=np.float32).reshape(8, 2)
    wide = np.random.default_rng(1).normal(size=(2, 16)).astype(np.float32)
    k, p, q = np.array([3, 0], np.int32), np.array([0.8, 0.6], np.float32), np.abs(wide[:, 1::2])
    for view in (base.T, wide[:, ::2]):
        expected = call(np.ascontiguousarray(view), k, p, np.ascontiguousarray(q), is_need_logits=True)
        check_same(call(view, k, p, q, is_need_logits=True), expected)
        check_same(sample(view, k, p, q, is_need_logits=True), expected)
    columns = jnp.asarray(np.stack([base, base[::-1]]))  # [2, 8, 2]: the vocabulary is axis 1
    rows = jax.vmap(lambda x: sample(x.T, k, p, is_need_logits=True))(columns)
    for i in range(2):
        single = call(np.asarray(columns)[i].T.copy(), k, p, is_need_logits=True)
        check_same(jax.tree.map(lambda x: x[i], rows), single)


def test_eager_and_jit_agree():
    *operands, q, m = batch_of(np.float32, 100)
    for want in ({"is_need_logits": True}, {"is_need_sample_result": True}):
        given = *operands, None if "is_need_sample_result" in want else q, m
        check_same(sample(*given, **want), call(*given, **want))


def test_scalars_stand_for_every_row():
    logits = np.random.default_rng(2).normal(size=(3, 40)).astype(ml_dtypes.bfloat16)
    full = lambda value, dtype: np.full(3, value, dtype)
    k, p, m = full(5, np.int32), full(0.7, logits.dtype), full(0.1, logits.dtype)
    expected = sample(logits, k, p, None, m, is_need_logits=True)
    check_same(sample(logits, 5, 0.7, None, 0.1, is_need_logits=True), expected)
    check_same(sample(logits, np.int64(5), np.float64(0.7), None, np.float32(0.1), is_need_logits=True), expected)
    check_same(jax.jit(lambda x, k, p, m: sample(x, k, p, None, m, is_need_logits=True))(logits, 5, 0.7, 0.1), expected)


def batch_of(dtype, size, rows=12):
    """Rows in all modes at once, and the keywords of a call that needs every kind of result."""
    random = np.random.default_rng(3)
    logits = (random.normal(size=(rows, size)) * 3).astype(dtype)
    k = random.choice([0, 1, 50, size, 2000], rows).astype(np.int32)
    p = random.choice([0.3, 0.9, 0.999, 1.0, 0.0], rows).astype(dtype)
    m = random.choice([0.0, 0.01, 0.3, 1.0], rows, p=[0.4, 0.3, 0.2, 0.1]).astype(dtype)
    return logits, k, p, random.exponential(size=(rows, size)).astype(np.float32), m


@pytest.mark.parametrize(
    "dtype, size, want",
    [
        (np.float32, 3001, "index"),
        (ml_dtypes.bfloat16, 300, "distribution"),
        pytest.param(ml_dtypes.bfloat16, 3001, "distribution", marks=pytest.mark.long),
        pytest.param(np.float16, 300, "index", marks=pytest.mark.long),
    ],
)
def test_a_row_does_not_depend_on_its_batch(dtype, size, want):
    """Alone, among 12, reordered, under vmap: the same bits."""
    logits, k, p, q, m = batch_of(dtype, size)
    operands = (logits, k, p, q if want == "index" else None, m)
    static = dict(is_need_logits=True, is_need_sample_result=want == "distribution")
    together = call(*operands, **static)
    at = lambda rows: [None if x is None else x[rows] for x in operands]
    order = np.random.default_rng(4).permutation(len(logits))
    check_same(call(*at(order), **static), jax.tree.map(lambda x: x[order], together))
    alone = [call(*at(slice(i, i + 1)), **static) for i in range(len(logits))]
    check_same(jax.tree.map(lambda *rows: np.concatenate(rows), *alone), together)
    mapped = jax.vmap(jitted(**static))(*(None if x is None else x[:, None] for x in operands))
    check_same(jax.tree.map(lambda x: x[:, 0], mapped), together)


def test_probability_sums_do_not_depend_on_the_batch():
    """Rows of few distinct weights: a sum in another order would round differently and move the cut by a tie."""
    random = np.random.default_rng(5)
    logits = np.log(random.choice([0.1, 0.3, 0.7], (12, 2500))).astype(np.float32)
    k, p = np.zeros(12, np.int32), random.uniform(0.1, 0.9, 12).astype(np.float32)
    together = call(logits, k, p, is_need_logits=True)
    alone = [call(logits[i : i + 1], k[i : i + 1], p[i : i + 1], is_need_logits=True) for i in range(12)]
    check_same(jax.tree.map(lambda *rows: np.concatenate(rows), *alone), together)


@pytest.mark.parametrize("dtype", [pytest.param(np.float16, marks=pytest.mark.long), ml_dtypes.bfloat16])
def test_decisions_use_logits_as_they_are_stored(dtype):
    """XLA:CPU may keep a 16-bit intermediate at float32 precision; ties that exist once rounded must still tie."""
    random = np.random.default_rng(6)
    x, y = (random.normal(size=(4, 500)).astype(dtype) for _ in range(2))
    scale, k = random.uniform(0.3, 0.9, 4).astype(dtype), np.array([20, 20, 0, 0], np.int32)
    run = functools.partial(sample, is_need_logits=True, is_need_sample_result=True)
    fused = jax.jit(lambda x, y, s: run(x * s[:, None] + y, k, s * s, None, s * s * s))(x, y, scale)
    stored = jax.jit(lambda x, y, s: (x * s[:, None] + y, s * s, s * s * s))(x, y, scale)
    logits, p, m = map(np.asarray, stored)
    check_same(fused, run(logits, k, p, None, m))


VMAPS = {
    "all": ((0, 0, 0, 0, 0), (4, 2, 24), (4, 2), (4, 2), (4, 2, 24), (4, 2)),
    "logits only": ((0, None, None, None, None), (4, 2, 24), (2,), (2,), (2, 24), (2,)),
    "k only": ((None, 0, None, None, None), (2, 24), (4, 2), (2,), (2, 24), (2,)),
    "p and min-p": ((None, None, 1, None, 0), (2, 24), (2,), (2, 4), (2, 24), (4, 2)),
    "q along the last axis": ((1, None, None, 2, None), (2, 4, 24), (2,), (2,), (2, 24, 4), (2,)),
}


def vmap_operands(logits, k, p, q, m):
    random = np.random.default_rng(7)
    return (
        random.integers(-3, 4, logits).astype(np.float32),
        random.integers(0, 26, k).astype(np.int32),
        random.uniform(0.2, 1.1, p).astype(np.float32),
        random.exponential(size=q).astype(np.float32),
        random.uniform(-0.1, 0.3, m).astype(np.float32),
    )


@pytest.mark.parametrize("name", VMAPS)
def test_vmap_equals_stacking_single_calls(name):
    axes, *shapes = VMAPS[name]
    operands = vmap_operands(*shapes)
    function = jitted(is_need_logits=True)
    singles = [function(*(x if a is None else np.take(x, i, a) for x, a in zip(operands, axes))) for i in range(4)]
    expected = jax.tree.map(lambda *xs: np.stack(xs), *singles)
    check_same(jax.vmap(function, in_axes=axes)(*operands), expected)
    second = jax.vmap(function, in_axes=axes, out_axes=1)(*operands)
    check_same(second, jax.tree.map(lambda x: np.moveaxis(x, 0, 1), expected))


def test_nested_vmap():
    logits, k, p, *_ = vmap_operands((3, 4, 2, 24), (4, 2), (3, 2), (1,), (1,))
    function = jitted(is_need_sample_result=True)
    nested = jax.vmap(jax.vmap(function, in_axes=(0, 0, None)), in_axes=(0, None, 0))(logits, k, p)
    for i in range(3):
        for j in range(4):
            check_same(jax.tree.map(lambda x: x[i, j], nested), function(logits[i, j], k[j], p[i]))


@pytest.mark.parametrize("name", VMAPS)
def test_vmap_leaves_one_operation_and_no_loop(name):
    axes, *shapes = VMAPS[name]
    jaxpr = jax.make_jaxpr(jax.vmap(sample, in_axes=axes))(*vmap_operands(*shapes))
    primitives = [equation.primitive.name for equation in jaxpr.eqns]
    assert primitives.count("top_k_top_p_sample") == 1
    assert not {"scan", "while", "jit", "pjit"} & set(primitives)
    if name == "all":
        assert primitives == ["top_k_top_p_sample"]  # nothing to move, nothing to broadcast


def test_vmap_over_nothing():
    result = jax.vmap(jitted(is_need_logits=True))(*vmap_operands((0, 2, 24), (0, 2), (0, 2), (0, 2, 24), (0, 2)))
    assert result.logits_select_idx.shape == (0, 2) and result.logits_top_kp_select.shape == (0, 2, 24)


def test_no_derivative_says_so():
    logits = jnp.ones((2, 8))
    run = lambda x: sample(x, 3, 0.5, is_need_logits=True).logits_top_kp_select.sum()
    with pytest.raises(NotImplementedError, match="top_k_top_p_sample is an inference operator.*stop_gradient"):
        jax.grad(run)(logits)
    np.testing.assert_array_equal(jax.grad(lambda x: run(jax.lax.stop_gradient(x)) + x.sum())(logits), np.ones((2, 8)))


def test_runs_without_jit():
    with jax.disable_jit():
        assert sample(np.array([[1, 2, 3]], np.float32), 1, 1.0).logits_select_idx.tolist() == [2]


def test_donated_operands():
    logits, k, p, q, m = batch_of(np.float32, 100)
    expected = call(logits, k, p, q, m, is_need_logits=True)
    donated = jax.jit(functools.partial(sample, is_need_logits=True), donate_argnums=0)
    given = jnp.asarray(logits)
    check_same(donated(given, k, p, q, m), expected)
    assert given.is_deleted()


def test_eval_shape():
    spec = jax.ShapeDtypeStruct
    operands = spec((4, 9), jnp.bfloat16), spec((4,), jnp.int32), spec((4,), jnp.bfloat16)

    def shapes(**static):
        results = jax.eval_shape(functools.partial(sample, **static), *operands)
        return [x and (x.shape, x.dtype.name) for x in results]

    assert shapes() == [((4,), "int32"), None, None, None]
    assert shapes(is_need_logits=True) == [((4,), "int32"), ((4, 9), "float32"), None, None]
    assert shapes(is_need_sample_result=True) == [None, None, ((4, 9), "int32"), ((4, 9), "float32")]
    assert shapes(is_need_logits=True, is_need_sample_result=True)[1:] == [
        ((4, 9), "float32"),
        ((4, 9), "int32"),
        ((4, 9), "float32"),
    ]
