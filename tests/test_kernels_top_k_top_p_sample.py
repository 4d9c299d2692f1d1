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


def test_a_nucleus_ends_in_one_place():
    """p within rounding of the mass above an edge between bands, which are of other cores where rows are shared: the running
    sum that ends there is another one, and only one of the two may decide."""
    vocabulary = 6144
    row = np.random.default_rng(8).normal(0, 1, vocabulary).astype(np.float32)
    sample = np.sort(row.reshape(64, -1)[:, :16], axis=None)[::-1]
    weights = np.exp(row.astype(np.float64) - row.max())
    near = [np.float32(weights[row >= sample[1024 * band // 4 - 1]].sum() / weights.sum()) for band in (1, 2, 3)]
    p = np.concatenate([np.int32(mass.view(np.int32)) + np.arange(-6, 6, dtype=np.int32) for mass in near]).view(np.float32)
    rows, k = np.repeat(row[None], len(p), 0), np.zeros(len(p), np.int32)
    alone = run(rows, k, p, is_need_sample_result=True)
    for start in range(0, len(p), 12):
        some = slice(start, start + 12)
        shared = run(rows[some], k[some], p[some], is_need_sample_result=True)
        np.testing.assert_array_equal(shared.logits_idx, alone.logits_idx[some])
        np.testing.assert_array_equal(shared.logits_sort_masked, alone.logits_sort_masked[some])


def test_parts_of_three_units():
    """A part of 3072 elements is no multiple of the 2048 maxima from which a long list takes its bound."""
    rows, k = np.random.default_rng(3).normal(0, 2, (24, 5001)).astype(np.float32), np.full(24, 1000, np.int32)
    result = run(rows, k, np.ones(24, np.float32), is_need_sample_result=True)
    np.testing.assert_array_equal(result.logits_idx[:, :1000], np.argsort(-rows, axis=1, kind="stable")[:, :1000])


def test_computed_logits():
    """Arithmetic around the operator: the lanes behind the row are padded by a ramp. The bits are those of the logits themselves."""
    logits = np.random.default_rng(6).normal(0, 2, (4, 5001)).astype(np.float32)
    k, p = np.array([50, 0, 0, 1000], np.int32), np.array([0.9, 0.9, 1.0, 1.0], np.float32)
    scale = np.array([0.5, 2, 4, 0.25], np.float32)
    sample = lambda x, s, k, p: ja.top_k_top_p_sample(x * s[:, None], k, p, is_need_sample_result=True)
    computed = ja.compile(sample, logits, scale, k, p)
    assert len(computed.kernels) == 1
    actual, expected = computed(logits, scale, k, p), run(logits * scale[:, None], k, p, is_need_sample_result=True)
    np.testing.assert_array_equal(actual.logits_idx, expected.logits_idx)
    np.testing.assert_array_equal(actual.logits_sort_masked, expected.logits_sort_masked)


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


def test_subnormal_logits_equal_zero():
    """So the lower index ranks first, whatever their bits say; what stays is copied with them."""
    logits = np.full((BATCH, VOCABULARY), -1.0, np.float32)
    logits[:, [3, 9, 20, 30]] = np.float32([2.0**-130, -(2.0**-128), 0.0, 2.0**-127])
    k, p = np.array([1, 2, 3, 0, 4], np.int32), np.array([1, 1, 1, 0, 0.5], np.float32)
    kwargs = dict(is_need_logits=True, is_need_sample_result=True)
    for result in (run(logits, k, p, None, np.zeros(BATCH, np.float32), **kwargs), ja.top_k_top_p_sample(logits, k, p, **kwargs)):
        assert [survivors(result, row) for row in range(BATCH)] == [[3], [3, 9], [3, 9, 20], [3], [3, 9]]
        kept = np.asarray(result.logits_top_kp_select)
        np.testing.assert_array_equal(kept[2, [3, 9, 20]].view(np.int32), logits[2, [3, 9, 20]].view(np.int32))


# -- rows of every kind and length ----------------------------------------------------------------------------------

KINDS = {
    "normal": lambda rng, v: rng.normal(0, 3, v),
    "flat": lambda rng, v: rng.normal(0, 0.01, v),
    "ties": lambda rng, v: rng.integers(-4, 5, v),
    "constant": lambda rng, v: np.full(v, 2.5),
    "rising": lambda rng, v: np.linspace(-8, 8, v),
    "falling": lambda rng, v: np.linspace(8, -8, v),
    "every 256th": lambda rng, v: rng.normal(0, 1, v) + 9.0 * (np.arange(v) % 256 == 0),
    "few finite": lambda rng, v: np.where(rng.random(v) < 60 / v, rng.normal(0, 2, v), -np.inf),
    "one finite": lambda rng, v: np.where(np.arange(v) == v // 2, 1.0, -np.inf),
    "no finite": lambda rng, v: np.full(v, -np.inf),
    "infinite": lambda rng, v: np.where(np.arange(v) % 37 == 5, np.inf, rng.normal(0, 1, v)),
    "NaN": lambda rng, v: np.where(np.arange(v) % 53 == 7, np.nan, rng.normal(0, 1, v)),
    "one NaN": lambda rng, v: np.where(np.arange(v) == v - 1, np.nan, rng.normal(0, 1, v)),
    "NaN alone": lambda rng, v: np.full(v, np.nan),
    "NaN and infinities": lambda rng, v: rng.choice([np.nan, np.inf, -np.inf], v),
    "all infinite": lambda rng, v: np.full(v, np.inf),
    "zeros of either sign": lambda rng, v: rng.choice([0.0, -0.0], v),
    "neighbours": lambda rng, v: rng.choice([1.0, 1.0078125], v),  # bfloat16 has nothing between them
    "huge": lambda rng, v: rng.choice([-3e38, 3e38], v),
    # What is taken for a sample misleads: it lacks the largest element, has all large ones, or none.
    "outlier": lambda rng, v: np.where(np.arange(v) == v // 64 * 30 + 24, 300.0, rng.normal(0, 1, v)),
    "sampled high": lambda rng, v: rng.normal(0, 1, v) + 20 * (np.arange(v) % max(1, v // 64) < 16),
    "sampled low": lambda rng, v: rng.normal(0, 1, v) - 20 * (np.arange(v) % max(1, v // 64) < 16),
}
MODES = (  # k, p, m
    (50, 0.9, 0.0), (1, 0.5, 0.0), (128, 1.0, 0.0), (129, 0.99, 0.0), (1000, 0.9, 0.0), (1024, 1.0, 0.01), (0, 0.9, 0.0),
    (-3, 0.3, 0.1), (1 << 30, 1.0, 0.3), (0, 0.0, 0.0), (5, -1.0, 0.0), (0, 2.0, 0.0), (0, 0.9, 1.5), (40, float("nan"), 1.0),
)  # fmt: skip


def assert_same_survivors(actual, expected, p, m):
    """The same rows of a distribution, but for what lies within rounding of p or of the bound of min-p."""
    probability = np.asarray(expected.logits_sort_masked, np.float64)
    for row in range(len(p)):
        indices = [np.asarray(r.logits_idx[row]) for r in (actual, expected)]
        numbers = [int((i >= 0).sum()) for i in indices]
        few = min(numbers)
        np.testing.assert_array_equal(indices[0][:few], indices[1][:few], f"row {row}")
        np.testing.assert_allclose(actual.logits_sort_masked[row, :few], probability[row, :few], rtol=2e-5, atol=1e-30)
        if len(set(numbers)) == 1:
            if expected.logits_top_kp_select is not None:
                np.testing.assert_array_equal(actual.logits_top_kp_select[row], expected.logits_top_kp_select[row], f"row {row}")
            continue
        longer = np.asarray((actual, expected)[int(np.argmax(numbers))].logits_sort_masked[row], np.float64)
        between = np.cumsum(longer)[few - 1 : max(numbers) - 1]
        by_mass = 0 < p[row] < 1 and np.all(np.abs(between - p[row]) < 2e-5)
        by_bound = 0 < m[row] < 1 and np.allclose(longer[few : max(numbers)], longer[0] * m[row], rtol=1e-5)
        assert by_mass or by_bound, f"row {row}: {numbers} survivors"


def every_kind(vocabulary, dtype, seed):
    """A row for every kind and, by turns, every mode."""
    rng = np.random.default_rng(seed)
    chosen = list(KINDS) if vocabulary < 1 << 19 else ["normal", "every 256th", "ties"]
    logits = np.stack([KINDS[kind](rng, vocabulary) for kind in chosen]).astype(np.float32).astype(dtype)
    modes = [MODES[(seed + i) % len(MODES)] for i in range(len(chosen))]
    k, p, m = (np.array(column) for column in zip(*modes))
    return logits, k.astype(np.int32), p.astype(np.float32).astype(dtype), m.astype(np.float32).astype(dtype)


@pytest.mark.long
@pytest.mark.parametrize(
    "vocabulary, is_logits, p",
    [
        (5000, True, 0.9), (5000, True, 1e-6), (5000, True, 0.9999), (20000, True, 0.9), (1025, False, 0.9),
        (20000, False, 0.5),
    ],
)  # fmt: skip
def test_a_nucleus_ends(vocabulary, is_logits, p):
    """In rows of every kind, and where a core has one of its own or shares it; the twin would end a loop that does not."""
    rng = np.random.default_rng(vocabulary)
    rows = [KINDS[kind](rng, vocabulary) for kind in KINDS]
    if not is_logits:
        rows = [np.abs(row) / max(1, np.abs(row[np.isfinite(row)]).sum()) for row in rows]
    logits = np.resize(np.stack(rows), (30, vocabulary)).astype(np.float32)
    k, p = np.zeros(30, np.int32), np.full(30, p, np.float32)
    static = dict(is_need_sample_result=True, input_is_logits=is_logits)
    expected = ja.top_k_top_p_sample(logits, k, p, **static)
    together = run(logits, k, p, **static)
    assert_same_survivors(together, expected, p, np.zeros(30))
    for row in (list(KINDS).index(kind) for kind in ("NaN", "infinite", "neighbours")):
        alone = run(logits[row : row + 1], k[:1], p[:1], **static)
        np.testing.assert_array_equal(alone.logits_idx[0], together.logits_idx[row])
        np.testing.assert_array_equal(alone.logits_sort_masked[0], together.logits_sort_masked[row])


@pytest.mark.long
@pytest.mark.parametrize("target", ["ascend910b", "ascend950"])
@pytest.mark.parametrize(
    "vocabulary, dtype",
    [(1, "float32"), (7, "float16"), (65, "bfloat16"), (1000, "float32"), (1025, "bfloat16"), (5001, "float16"),
     (20000, "float32"), (40000, "bfloat16"), (1 << 20, "float32")],
)  # fmt: skip
def test_every_kind_of_row(vocabulary, dtype, target):
    for seed in range(len(MODES) if vocabulary < 30000 else 3):
        logits, k, p, m = every_kind(vocabulary, FLOATS[dtype], seed)
        kwargs = dict(is_need_logits=True, is_need_sample_result=True)
        distribution = ja.top_k_top_p_sample(logits, k, p, None, m, **kwargs)
        assert_same_survivors(run(logits, k, p, None, m, target, **kwargs), distribution, p, m)
        q = np.random.default_rng(seed).exponential(1, logits.shape).astype(np.float32)
        chosen = run(logits, k, p, q, m, target).logits_select_idx
        for row, index in enumerate(np.asarray(chosen)):
            survivors = np.asarray(distribution.logits_idx[row])
            number = int((survivors >= 0).sum())
            scores = np.asarray(distribution.logits_sort_masked[row, :number], np.float64) / (q[row, :number] + 1e-8)
            place = survivors[:number].tolist().index(index)
            best = np.isnan(scores).any() and np.isnan(scores[:place]).sum() == 0 and np.isnan(scores[place])
            assert best or scores[place] >= np.nanmax(scores) * (1 - 1e-4), f"row {row}, mode {k[row], p[row], m[row]}"


def _scored(distribution, row, q, eps):
    """The index of the best score, by the kernel's own probabilities: the first NaN, or the first of the greatest."""
    number = int((np.asarray(distribution.logits_idx[row]) >= 0).sum())
    with np.errstate(all="ignore"):
        scores = np.asarray(distribution.logits_sort_masked[row, :number]) / (np.abs(q[row, :number]) + np.float32(eps))
    return int(distribution.logits_idx[row, np.argmax(scores)])


DIVISORS = {
    "exponential": lambda rng, shape: rng.exponential(1, shape),
    "ones": lambda rng, shape: np.ones(shape),
    "falling": lambda rng, shape: np.broadcast_to(np.linspace(9, 0.001, shape[1]) ** 4, shape),  # late ranks win
    "special": lambda rng, shape: rng.choice([0.0, -0.5, 1.0, 4.0, np.inf, np.nan], shape, p=[0.001, 0.3, 0.3, 0.397, 0.001, 0.001]),
}


@pytest.mark.long
@pytest.mark.parametrize(
    "vocabulary, dtype, target, has_m",
    [(13000, "float32", "ascend910b", False), (13000, "bfloat16", "ascend910b", True), (40000, "bfloat16", "ascend910b", False),
     (13000, "float16", "ascend950", True), (150000, "bfloat16", "ascend910b", False)],
)  # fmt: skip
def test_what_is_passed_over_has_not_the_best_score(vocabulary, dtype, target, has_m):
    """An index alone, for which most of the nucleus is not looked at, is that of the best score of the whole distribution;
    whether a core has a row of its own or shares it."""
    rng = np.random.default_rng(vocabulary)
    kinds = [kind for kind in KINDS if kind != "huge"][: 30 if vocabulary < 100000 else 9]
    logits = np.stack([KINDS[kind](rng, vocabulary) for kind in kinds]).astype(np.float32).astype(FLOATS[dtype])
    logits = np.resize(logits, (26, vocabulary))
    parameter = lambda values: np.resize(np.float32(values), 26).astype(FLOATS[dtype])
    k, p, m = np.zeros(26, np.int32), parameter([0.9, 0.5, 0.99]), parameter([0.0, 0.02]) if has_m else None
    distribution = run(logits, k, p, None, m, target, is_need_sample_result=True)
    for name, draw in DIVISORS.items():
        q = draw(rng, logits.shape).astype(np.float32)
        eps = 0.0 if name == "special" else 1e-8
        chosen = run(logits, k, p, q, m, target, eps=eps).logits_select_idx
        assert chosen.tolist() == [_scored(distribution, row, q, eps) for row in range(26)], name
        if name == "exponential" and vocabulary < 100000:
            few = slice(0, 26, 5)
            shared = run(logits[few], k[few], p[few], q[few], None if m is None else m[few], target, eps=eps)
            np.testing.assert_array_equal(shared.logits_select_idx, chosen[few])


@pytest.mark.long
def test_the_list_holds_more_than_is_sorted():
    """4300 elements reach the bound; those that come first in descending order come last in the row."""
    logits = np.zeros((25, 17000), np.float32)
    logits[:, np.arange(4300) * 17000 // 4300] = 1.0
    logits[:, -3:] = 2, 3, 4
    for rows in (1, 25):
        result = run(logits[:rows], np.full(rows, 600, np.int32), np.ones(rows, np.float32), is_need_sample_result=True)
        order = np.argsort(-logits[0], kind="stable")[:600].tolist()
        for row in range(rows):
            assert survivors(result, row) == order


def test_an_index_alone_of_long_rows():
    """Where a list has the nucleus or is too short, cores share rows, and most ranks are passed over: the best score of the
    nucleus, by a float64 oracle. Late ranks win where q falls."""
    rng, vocabulary = np.random.default_rng(9), 20000
    rows = [rng.normal(0, 3, vocabulary), rng.normal(0, 1, vocabulary), rng.integers(-3, 4, vocabulary), rng.normal(0, 3, vocabulary)]
    logits, k = np.stack(rows).astype(np.float32), np.zeros(4, np.int32)
    p = np.float32([0.9, 0.7, 0.8, 0.95])
    q = rng.exponential(1, logits.shape).astype(np.float32)
    q[3] *= np.linspace(1, 0.001, vocabulary) ** 4
    chosen = run(logits, k, p, q).logits_select_idx
    for row in range(4):
        order = np.argsort(-logits[row], kind="stable")
        weights = np.exp(logits[row, order].astype(np.float64))
        sums = np.cumsum(weights / weights.sum())
        number = int(np.argmax(sums >= p[row])) + 1
        assert abs(sums[number - 1] - p[row]) > 1e-7
        scores = weights[:number] / (q[row, :number] + 1e-8)
        place = order[:number].tolist().index(chosen[row])
        assert scores[place] >= scores.max() * (1 - 1e-5)


def test_q_is_read_for_survivors_only():
    rng = np.random.default_rng(7)
    logits, p = rng.normal(0, 2, (2, 5000)).astype(np.float32), np.ones(2, np.float32)
    q = rng.exponential(1, logits.shape).astype(np.float32)
    kernel = program("ascend910b", logits.shape, logits.dtype, True, False, ())
    few, many = (kernel.profile(logits, np.full(2, k, np.int32), p, q) for k in (10, 100))
    assert not few.findings and not many.findings
    assert many.gm_read_bytes - few.gm_read_bytes == 2 * 90 * 4
    told = 48 * 48 * 32  # every core tells every other whether its row is searched for a nucleus
    assert many.gm_read_bytes - told < logits.nbytes + q.nbytes / 2


def test_64_bit_indices():
    rng = np.random.default_rng(5)
    logits, k = rng.normal(0, 2, (2, 1500)).astype(np.float32), np.array([3, 1000], np.int32)
    with jax.enable_x64(True):
        result = run(logits, k, np.ones(2, np.float32), is_need_sample_result=True)
        assert result.logits_idx.dtype == np.int64
    order = np.argsort(-logits, axis=1, kind="stable")
    for row, number in enumerate(k):
        assert survivors(result, row) == order[row, :number].tolist()


@pytest.mark.long
@pytest.mark.parametrize("vocabulary", [13001, 17000])
def test_long_rows_that_are_computed(vocabulary):
    """The sum of weights goes over longer chunks than are computed at a time."""

    def scaled(logits, temperature, k, p, q):
        return ja.top_k_top_p_sample(logits / temperature[:, None], k, p, q).logits_select_idx

    rng = np.random.default_rng(5)
    logits, q = rng.normal(0, 3, (3, vocabulary)).astype(np.float32), rng.exponential(size=(3, vocabulary)).astype(np.float32)
    temperature, p = np.array([0.5, 1, 2], np.float32), np.array([0.9, 0.8, 1], np.float32)
    arguments = logits, temperature, np.array([50, 0, 0], np.int32), p, q
    compiled = ja.compile(scaled, *arguments)
    assert len(compiled.kernels) == 1
    np.testing.assert_array_equal(compiled(*arguments), jax.jit(scaled)(*arguments))
