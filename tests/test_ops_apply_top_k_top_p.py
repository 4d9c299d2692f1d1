"""The filter, in both its forms: expected values, edge cases that users have met elsewhere, batching, determinism."""

import itertools

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
import vectors

import jascend as ja

INF = np.inf
CASES = vectors.apply_top_k_top_p()


def unsorted(logits, p=None, k=None):
    return ja.apply_top_k_top_p(logits, p, k)


def from_sorted(logits, p=None, k=None):
    return ja.apply_top_k_top_p_with_sorted(*ja.sort(logits), p, k)


def from_sorted_and_logits(logits, p=None, k=None):
    return ja.apply_top_k_top_p_with_sorted(*ja.sort(logits), p, k, logits)


FORMS = [unsorted, from_sorted]


def bits(x):
    x = np.asarray(x)
    return x.view(np.uint32 if x.dtype.itemsize == 4 else np.uint16)


def check(got, expected):
    """Exactly the expected values, -inf included, and equal NaNs; the sign of zero counts too."""
    expected = np.asarray(expected, np.asarray(got).dtype)
    np.testing.assert_array_equal(bits(got), bits(expected))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_vectors(case):
    arrays = case.arrays
    run = jax.jit(unsorted, compiler_options=vectors.QUICK)
    check(run(arrays["logits"], arrays.get("p"), arrays.get("k")), arrays["out"])


# Every case in the sorted form, alternately without and with the unsorted rows; in `make test` every other two of them.
@pytest.mark.parametrize(
    "case, form",
    [
        pytest.param(case, form, marks=[] if number % 4 < 2 else [pytest.mark.long], id=f"{case.id}-{form.__name__}")
        for number, (case, form) in enumerate(zip(CASES, itertools.cycle([from_sorted, from_sorted_and_logits])))
    ],
)
def test_vectors_sorted(case, form):
    arrays = case.arrays
    run = jax.jit(form, compiler_options=vectors.QUICK)
    check(run(arrays["logits"], arrays.get("p"), arrays.get("k")), arrays["out"])


def test_vectors_cover_all_modes_dtypes_and_edges():
    assert len(CASES) == 67
    assert {case.info["mode"] for case in CASES} == {"topk_topp", "topk", "topp"}
    assert {case.info["dtype"] for case in CASES} == set(vectors.DTYPES)
    assert not [case.id for case in CASES if case.info["contract"] == "out"]


@pytest.mark.parametrize("form", FORMS)
def test_top_k_off_in_one_row_leaves_the_others_alone(form):
    row = np.array([[0, 1, 2, 3], [3, 2, 1, 0]], np.float32)
    for off in (0, -1, 4, 9, -(2**31), 2**31 - 1):
        check(form(row, None, np.array([off, 2], np.int32)), [[0, 1, 2, 3], [3, 2, -INF, -INF]])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("batch", [1, 16])
def test_ties_at_the_kth_value_all_stay(form, batch):
    for row, k, expected in (
        ([1, 2, 2, 0], 1, [-INF, 2, 2, -INF]),
        ([3, 1, 1, 1, 0], 2, [3, 1, 1, 1, -INF]),
    ):
        logits = np.tile(np.array(row, np.float32), (batch, 1))
        check(form(logits, None, np.full(batch, k, np.int32)), np.tile(expected, (batch, 1)))


@pytest.mark.parametrize("form", FORMS)
def test_running_sum_exactly_on_the_threshold_is_removed(form):
    p = np.array([0.5, 0.75, 0.25], np.float32)
    check(
        form(np.zeros((3, 4), np.float32), p),
        [[-INF, -INF, 0, 0], [-INF, 0, 0, 0], [-INF, -INF, -INF, 0]],
    )
    check(form(np.zeros((1, 8), np.float32), np.array([0.7], np.float32)), [[-INF] * 2 + [0] * 6])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", vectors.DTYPES.values())
def test_p_of_zero_keeps_the_last_of_the_maxima(form, dtype):
    logits = np.array([[1, 3, 2, 0], [2, 2, 0, 0]], dtype)
    expected = [[-INF, 3, -INF, -INF], [-INF, 2, -INF, -INF]]
    check(form(logits, np.zeros(2, dtype)), expected)
    check(form(logits, np.array([-0.5, -INF], dtype)), expected)


@pytest.mark.parametrize("form", FORMS)
def test_p_above_one_or_nan_turns_top_p_off(form):
    logits = np.array([[1, 3, 2, -200]], np.float32)
    for p in (1.5, INF, np.nan):
        check(form(logits, np.array([p], np.float32)), logits)
        check(form(logits, np.array([p], np.float32), np.array([2], np.int32)), [[-INF, 3, 2, -INF]])
    check(form(logits, np.array([1], np.float32)), [[1, 3, 2, -INF]])  # exp(-203) underflows: its sum is 0 <= 1 - p


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", vectors.DTYPES.values())
def test_nan_row_passes_and_leaves_its_neighbours_alone(form, dtype):
    random = np.random.default_rng(0)
    good = random.normal(size=(3, 16)).astype(dtype)
    p, k = np.full(3, 0.5, dtype), np.full(3, 2, np.int32)
    clean = np.asarray(form(good, p, k))

    bad = good.copy()
    bad[1] = np.nan
    out = np.asarray(form(bad, p, k))
    check(out[[0, 2]], clean[[0, 2]])
    check(out[1], bad[1])  # the k-th value is NaN, so top-k is off; the sum is NaN, so top-p is off

    bad = good.copy()
    bad[1, 3] = -np.array(np.nan, dtype)  # the sign of a NaN does not matter
    out = np.asarray(form(bad, p, k))
    check(out[[0, 2]], clean[[0, 2]])
    best = np.argmax(np.where(np.isnan(bad[1]), -INF, bad[1].astype(np.float32)))
    kept = {3, int(best)}  # top-k counts NaN as the greatest
    check(out[1], [bad[1, i] if i in kept else -INF for i in range(16)])


@pytest.mark.parametrize("form", FORMS)
def test_infinite_maximum_turns_top_p_off_only(form):
    row = np.array([[0, INF, 1, -INF], [-INF] * 4, [0, 0, -INF, -INF]], np.float32)
    p, k = np.full(3, 0.01, np.float32), np.array([2, 2, 3], np.int32)
    check(form(row, p, k), [[-INF, INF, 1, -INF], [-INF] * 4, [-INF, 0, -INF, -INF]])


@pytest.mark.parametrize("form", FORMS)
def test_strided_inputs_equal_contiguous_ones(form):
    base = np.arange(16, dtype=np.float32).reshape(8, 2)
    wide = np.random.default_rng(1).normal(size=(2, 16)).astype(np.float32)
    p, k = np.array([0.8, 0.6], np.float32), np.array([3, 5], np.int32)
    for view in (base.T, wide[:, ::2]):
        expected = np.asarray(form(np.ascontiguousarray(view), p, k))
        check(form(view, p, k), expected)
        check(jax.jit(form)(view, p, k), expected)
    columns = jnp.asarray(np.stack([base, base[::-1]]))  # [2, 8, 2]: the vocabulary is axis 1
    rows = jax.vmap(lambda x: form(x.T, p, k))(columns)
    check(rows, np.stack([form(np.asarray(x).T.copy(), p, k) for x in columns]))


def test_long_rows_of_equal_values_are_cut_at_the_exact_position():
    size = 131072
    for dtype, p, removed in ((ml_dtypes.bfloat16, 0.9, 13312), (np.float32, 0.9, 13107)):
        out = np.asarray(ja.apply_top_k_top_p(np.zeros((1, size), dtype), np.array([p], dtype)))
        np.testing.assert_array_equal(np.isneginf(out[0].astype(np.float32)), np.arange(size) < removed)


@pytest.mark.parametrize("shape", [(0, 8), (3, 0), (0, 0)])
def test_empty(shape):
    logits, p, k = np.zeros(shape, np.float32), np.ones(shape[0], np.float32), np.ones(shape[0], np.int32)
    for form in FORMS:
        for run in (form, jax.jit(form)):
            out = run(logits, p, k)
            assert out.shape == shape and out.dtype == np.float32
        assert jax.vmap(form)(logits[None], p[None], k[None]).shape == (1, *shape)


def test_one_element_rows_pass_whatever_p_and_k_say():
    logits = np.array([[1], [-INF], [np.nan], [-0.0]], np.float32)
    for form in FORMS:
        check(form(logits, np.array([0, 0, 0, -1], np.float32), np.array([1, 0, 5, -2], np.int32)), logits)


def test_kept_values_are_copies_to_the_bit():
    """Negative zero, subnormals and NaN payloads survive."""
    payload = np.array([0x7FC12345, 0xFFC54321], np.uint32).view(np.float32)
    row = np.array([[-0.0, 1e-40, -1e-40, 0.0, *payload]], np.float32)
    for form in FORMS:
        check(form(row, np.ones(1, np.float32), np.zeros(1, np.int32)), row)
    half = np.array([[-0.0, 6e-8, -6e-8, 0.0]], np.float16)  # subnormal in float16
    check(ja.apply_top_k_top_p(half, None, np.array([2], np.int32)), [[-0.0, 6e-8, -INF, 0.0]])  # the zeros tie


def test_scalars_stand_for_every_row():
    logits = np.random.default_rng(2).normal(size=(3, 40)).astype(np.float32)
    p, k = np.full(3, 0.7, np.float32), np.full(3, 5, np.int32)
    expected = np.asarray(ja.apply_top_k_top_p(logits, p, k))
    for scalar_p, scalar_k in ((0.7, 5), (np.float32(0.7), np.int64(5)), (np.float64(0.7), np.uint8(5))):
        check(ja.apply_top_k_top_p(logits, scalar_p, scalar_k), expected)
        check(ja.apply_top_k_top_p_with_sorted(*ja.sort(logits), scalar_p, scalar_k), expected)
    check(jax.jit(ja.apply_top_k_top_p)(logits, 0.7, 5), expected)  # jit makes weakly typed scalars of them
    check(ja.apply_top_k_top_p(logits, 1, 5), ja.apply_top_k_top_p(logits, None, 5))
    low = logits.astype(ml_dtypes.bfloat16)
    check(ja.apply_top_k_top_p(low, 0.7), ja.apply_top_k_top_p(low, np.full(3, 0.7, ml_dtypes.bfloat16)))


@pytest.mark.parametrize(
    "dtype", [np.float32, *(pytest.param(dtype, marks=pytest.mark.long) for dtype in (np.float16, ml_dtypes.bfloat16))]
)
def test_a_row_does_not_depend_on_its_batch(dtype):
    """Alone, among 16, reordered; eager, jit and vmap: the same bits, with every running sum near a threshold."""
    random = np.random.default_rng(3)
    logits = (random.normal(size=(16, 3001)) * 3).astype(dtype)
    p = random.uniform(0.05, 0.999, 16).astype(dtype)
    k = random.choice([0, 1, 50, 1500, 3001], 16).astype(np.int32)
    together = np.asarray(ja.apply_top_k_top_p(logits, p, k))
    check(jax.jit(ja.apply_top_k_top_p)(logits, p, k), together)
    check(from_sorted(logits, p, k), together)
    order = random.permutation(16)
    check(ja.apply_top_k_top_p(logits[order], p[order], k[order]), together[order])
    alone = [ja.apply_top_k_top_p(logits[i : i + 1], p[i : i + 1], k[i : i + 1]) for i in range(16)]
    check(np.concatenate(alone), together)
    check(jax.vmap(ja.apply_top_k_top_p)(logits[:, None], p[:, None], k[:, None])[:, 0], together)


def test_probability_sums_do_not_depend_on_the_batch():
    """Rows of few distinct weights: a sum in another order would round differently and move the cut by a tie."""
    random = np.random.default_rng(4)
    logits = np.log(random.choice([0.1, 0.3, 0.7], (16, 2500))).astype(np.float32)
    p = random.uniform(0.1, 0.9, 16).astype(np.float32)
    together = np.asarray(ja.apply_top_k_top_p(logits, p))
    check(np.concatenate([ja.apply_top_k_top_p(logits[i : i + 1], p[i : i + 1]) for i in range(16)]), together)
    check(jax.jit(lambda x, p: ja.apply_top_k_top_p(x, p) * 1)(logits, p), together)


@pytest.mark.parametrize("dtype", [pytest.param(np.float16, marks=pytest.mark.long), ml_dtypes.bfloat16])
def test_decisions_use_logits_as_they_are_stored(dtype):
    """XLA:CPU may keep a 16-bit intermediate at float32 precision; ties that exist once rounded must still tie."""
    random = np.random.default_rng(5)
    x, y = (random.normal(size=(4, 500)).astype(dtype) for _ in range(2))
    scale = random.uniform(0.3, 0.9, 4).astype(dtype)
    k = np.full(4, 20, np.int32)
    for form in FORMS:
        fused = jax.jit(lambda x, y, s, k: form(x * s[:, None] + y, s * s, k))(x, y, scale, k)
        stored = jax.jit(lambda x, y, s: (x * s[:, None] + y, s * s))(x, y, scale)
        check(fused, form(*map(np.asarray, stored), k))


VMAPS = {
    "all": ((0, 0, 0), (4, 2, 24), (4, 2), (4, 2)),
    "logits only": ((0, None, None), (4, 2, 24), (2,), (2,)),
    "p only": ((None, 0, None), (2, 24), (4, 2), (2,)),
    "k only": ((None, None, 0), (2, 24), (2,), (4, 2)),
    "logits along axis 1": ((1, 0, None), (2, 4, 24), (4, 2), (2,)),
    "logits along the last axis": ((2, 1, -1), (2, 24, 4), (2, 4), (2, 4)),
}


def vmap_operands(shapes):
    random = np.random.default_rng(6)
    logits, p, k = shapes
    return (
        random.integers(-3, 4, logits).astype(np.float32),
        random.uniform(0.2, 0.9, p).astype(np.float32),
        random.integers(0, 26, k).astype(np.int32),
    )


@pytest.mark.parametrize("name", VMAPS)
@pytest.mark.parametrize("form", FORMS)
def test_vmap_equals_stacking_single_calls(name, form):
    axes, *shapes = VMAPS[name]
    operands = vmap_operands(shapes)

    def one(i):
        return form(*(x if axis is None else np.take(x, i, axis) for x, axis in zip(operands, axes)))

    check(jax.vmap(form, in_axes=axes)(*operands), np.stack([one(i) for i in range(4)]))
    check(jax.vmap(form, in_axes=axes, out_axes=1)(*operands), np.stack([one(i) for i in range(4)], axis=1))


def test_nested_vmap():
    logits, p, k = vmap_operands([(3, 4, 2, 24), (3, 2), (4, 2)])
    nested = jax.vmap(jax.vmap(ja.apply_top_k_top_p, in_axes=(0, None, 0)), in_axes=(0, 0, None))
    expected = [[ja.apply_top_k_top_p(logits[i, j], p[i], k[j]) for j in range(4)] for i in range(3)]
    check(nested(logits, p, k), np.array(expected))


@pytest.mark.parametrize("name", VMAPS)
def test_vmap_leaves_one_operation_and_no_loop(name):
    axes, *shapes = VMAPS[name]
    jaxpr = jax.make_jaxpr(jax.vmap(ja.apply_top_k_top_p, in_axes=axes))(*vmap_operands(shapes))
    primitives = [equation.primitive.name for equation in jaxpr.eqns]
    assert primitives.count("apply_top_k_top_p") == 1
    assert not {"scan", "while", "jit", "pjit"} & set(primitives)
    if name == "all":
        assert primitives == ["apply_top_k_top_p"]  # nothing to move, nothing to broadcast


def test_no_derivative_says_so():
    logits = jnp.ones((2, 8))
    with pytest.raises(NotImplementedError, match="apply_top_k_top_p is an inference operator.*stop_gradient"):
        jax.grad(lambda x: ja.apply_top_k_top_p(x, 0.5).sum())(logits)
    with pytest.raises(NotImplementedError, match="jascend.sort is an inference operator"):
        jax.jvp(ja.sort, (logits,), (logits,))
    # what the message advises works
    gradient = jax.grad(lambda x: (x + ja.apply_top_k_top_p(jax.lax.stop_gradient(x), 1.0)).sum())(logits)
    np.testing.assert_array_equal(gradient, np.ones((2, 8)))


def test_runs_without_jit():
    logits = np.array([[1, 2, 3]], np.float32)
    with jax.disable_jit():
        check(ja.apply_top_k_top_p(logits, None, 1), [[-INF, -INF, 3]])
