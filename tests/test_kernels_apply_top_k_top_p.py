"""The generated filter kernels, run on the twin with the checker on: against the vectors, the fallback, themselves."""

import functools
import itertools

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
import vectors
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import jascend as ja

FLOATS = {"float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}


@functools.cache
def program(batch, vocabulary, dtype, has_p, has_k, target="ascend910b"):
    """The filter for one shape; a call raises if the checker has findings."""
    shape = functools.partial(jax.ShapeDtypeStruct, dtype=FLOATS[dtype])
    kwargs = {}
    if has_p:
        kwargs["p"] = shape((batch,))
    if has_k:
        kwargs["k"] = jax.ShapeDtypeStruct((batch,), np.int32)
    return ja.compile(ja.apply_top_k_top_p, shape((batch, vocabulary)), **kwargs, target=target)


def run(logits, p=None, k=None, target="ascend910b"):
    kwargs = {name: value for name, value in (("p", p), ("k", k)) if value is not None}
    kernel = program(*logits.shape, str(logits.dtype), p is not None, k is not None, target)
    return np.asarray(kernel(logits, **kwargs))


def bits(x):
    return np.ascontiguousarray(x).view({2: np.uint16, 4: np.uint32}[x.dtype.itemsize])


def assert_same(actual, expected):
    """Bit for bit, NaN payloads aside."""
    nan = np.isnan(expected.astype(np.float32))
    np.testing.assert_array_equal(np.isnan(actual.astype(np.float32)), nan)
    np.testing.assert_array_equal(bits(actual)[~nan], bits(expected)[~nan])


def sample_of(cases, every):
    """All cases, those but every so many of them left to `make test-long`: each is a kernel of its own to build."""
    return [pytest.param(c, id=c.id, marks=() if i % every == 0 else pytest.mark.long) for i, c in enumerate(cases)]


@pytest.mark.parametrize("case", sample_of(vectors.apply_top_k_top_p(), 5))
def test_vectors(case):
    a = case.arrays
    assert_same(run(a["logits"], a.get("p"), a.get("k")), a["out"])


@pytest.mark.long
@pytest.mark.parametrize("case", vectors.apply_top_k_top_p(), ids=lambda case: case.id)
def test_vectors_on_950(case):
    a = case.arrays
    assert_same(run(a["logits"], a.get("p"), a.get("k"), "ascend950"), a["out"])


@pytest.mark.parametrize(
    ("vocabulary", "dtype"),
    [
        pytest.param(vocabulary, dtype, marks=[] if quick == dtype else [pytest.mark.long])
        for vocabulary, quick in ((1, "float32"), (7, "float16"), (50257, "bfloat16"))
        for dtype in FLOATS
    ],
)
def test_odd_vocabularies(vocabulary, dtype):
    rng = np.random.default_rng(vocabulary)
    logits = rng.normal(0, 4, (3, vocabulary)).astype(FLOATS[dtype])
    p = np.array([0.9, 0.5, 1.0], np.float32).astype(FLOATS[dtype])
    k = np.array([50, 0, vocabulary // 2], np.int32)
    assert_same(run(logits, p, k), np.asarray(ja.apply_top_k_top_p(logits, p, k)))


@pytest.mark.parametrize(
    "modes",
    [
        pytest.param((True, True), id="both"),
        pytest.param((True, False), id="p", marks=pytest.mark.long),
        pytest.param((False, True), id="k", marks=pytest.mark.long),
    ],
)
@pytest.mark.parametrize(
    ("vocabulary", "dtype"),
    [
        (128256, "bfloat16"),
        pytest.param(151936, "float32", marks=pytest.mark.long),
        pytest.param(151936, "float16", marks=pytest.mark.long),
    ],
)
def test_rows_larger_than_the_unified_buffer(vocabulary, dtype, modes):
    rng = np.random.default_rng(1)
    logits = rng.normal(0, 3, (2, vocabulary)).astype(FLOATS[dtype])
    p = np.array([0.9, 0.97], np.float32).astype(FLOATS[dtype]) if modes[0] else None
    k = np.array([50, vocabulary // 3], np.int32) if modes[1] else None
    kwargs = {name: value for name, value in (("p", p), ("k", k)) if value is not None}
    assert_same(run(logits, p, k), np.asarray(ja.apply_top_k_top_p(logits, **kwargs)))


def test_rows_that_cores_search_together():
    """Where the sample misleads, is far below the row, or says nothing; copies of one value; masks; NaN."""
    rng = np.random.default_rng(4)
    logits = rng.normal(0, 1, (8, 9001))
    logits[1] -= 1000
    logits[2] = np.where(np.arange(9001) % 140 > 16, logits[2], -50)  # the sample sees only what is small
    logits[3] = np.where(rng.random(9001) < 0.01, logits[3], -np.inf)
    logits[4] = rng.integers(-1, 2, 9001)
    logits[5] = 2.5
    logits[6, ::900] = np.nan
    logits[7, 4000] = 300
    logits = logits.astype(np.float32)
    p = np.array([0.9, 0.9, 0.5, 0.99, 0.9, 0.6, 0.9, 0.5], np.float32)
    k = np.array([3000, 9001, 5000, 4000, 3000, 1000, 200, 0], np.int32)
    for arguments in ({"p": p, "k": k}, {"p": p}):
        assert_same(run(logits, **arguments), np.asarray(ja.apply_top_k_top_p(logits, **arguments)))


_SPECIAL = [0.0, -0.0, 1.0, -1.0, 2.5, 2.5, 2.5, -300.0, float("inf"), float("-inf"), float("nan")]
_BATCH = 5


@st.composite
def rows(draw):
    """Rows where it is hard: many ties, infinities, NaN, every kind of p and k."""
    dtype = draw(st.sampled_from(list(FLOATS)))
    vocabulary = draw(st.sampled_from([3, 64, 1030]))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    kinds = draw(st.lists(st.sampled_from(["normal", "ties", "special", "same"]), min_size=_BATCH, max_size=_BATCH))
    make = {
        "normal": lambda: rng.normal(0, 5, vocabulary),
        "ties": lambda: rng.integers(-3, 4, vocabulary).astype(float),
        "special": lambda: rng.choice(_SPECIAL, vocabulary),
        "same": lambda: np.full(vocabulary, rng.choice(_SPECIAL)),
    }
    logits = np.stack([make[kind]() for kind in kinds]).astype(FLOATS[dtype])
    p = draw(st.lists(st.sampled_from([0.0, 0.3, 0.5, 0.9, 1.0, 1.5, -0.5, float("nan")]), min_size=_BATCH, max_size=_BATCH))
    ks = [-1, 0, 1, 2, vocabulary // 2, vocabulary - 1, vocabulary, vocabulary + 5]
    k = draw(st.lists(st.sampled_from(ks), min_size=_BATCH, max_size=_BATCH))
    return logits, np.array(p, np.float32).astype(FLOATS[dtype]), np.array(k, np.int32)


def near_the_boundary(logits, p, k):
    """Rows in which a running probability is within 1e-5 of 1 - p: there the order of a sum may decide."""
    close = []
    for row, row_p, row_k in zip(logits.astype(np.float64), p.astype(np.float64), k):
        s = np.sort(row)
        threshold = s[len(s) - row_k] if 1 <= row_k < len(s) else -np.inf
        e = np.where(s < threshold, 0.0, np.exp(s - s[-1]))
        c = np.cumsum(e) / e.sum()
        with np.errstate(invalid="ignore"):
            close.append(bool(np.any(np.abs(c[:-1] - (1 - np.float64(np.float32(row_p)))) < 1e-5)))
    return np.array(close)


def check_drawn(drawn, target="ascend910b"):
    logits, p, k = drawn
    with np.errstate(all="ignore"):
        decided = ~near_the_boundary(logits, p, k) | np.isin(p.astype(np.float32), [0.0, 1.0, 0.5])
    actual, expected = run(logits, p, k, target), np.asarray(ja.apply_top_k_top_p(logits, p, k))
    assert_same(actual[decided], expected[decided])


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(rows())
def test_agrees_with_the_fallback(drawn):
    check_drawn(drawn)


@pytest.mark.long
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(rows())
def test_agrees_with_the_fallback_on_950(drawn):
    check_drawn(drawn, "ascend950")


@pytest.mark.long
@pytest.mark.parametrize(("dtype", "target"), [("float32", "ascend910b"), ("bfloat16", "ascend950")])
def test_the_longest_rows(dtype, target):
    """A small k, one that is searched for, and none; rows of copies."""
    rng = np.random.default_rng(20)
    logits = rng.normal(0, 3, (4, 1 << 20))
    logits[3] = rng.integers(-2, 3, 1 << 20)
    p = np.array([0.9, 0.99, 0.8, 0.5], np.float32).astype(FLOATS[dtype])
    k = np.array([50, 100_000, 0, 128], np.int32)
    logits = logits.astype(FLOATS[dtype])
    assert_same(run(logits, p, k, target), np.asarray(ja.apply_top_k_top_p(logits, p, k)))


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_row_does_not_depend_on_its_batch(dtype):
    """Alone, in the middle of 60 rows (more rows than cores, so cores differ in their share), and last."""
    rng = np.random.default_rng(7)
    logits = rng.normal(0, 2, (60, 1030)).astype(FLOATS[dtype])
    p = np.full(60, 0.93, np.float32).astype(FLOATS[dtype])
    k = np.full(60, 400, np.int32)
    together = run(logits, p, k)
    for row in (0, 31, 59):
        alone = run(logits[row : row + 1], p[row : row + 1], k[row : row + 1])
        assert_same(alone[0], together[row])


def test_the_empty_batch_launches_nothing():
    out = run(np.zeros((0, 64), np.float32), k=np.zeros((0,), np.int32))
    assert out.shape == (0, 64)
    assert out.dtype == np.float32


def sampler(logits, temperature, bias, p, k):
    scaled = (logits + bias) / temperature[:, None]
    return ja.apply_top_k_top_p(jnp.maximum(scaled, -50.0), p, k)


@pytest.mark.parametrize(
    ("dtype", "vocabulary"),
    [
        pytest.param(dtype, vocabulary, marks=[] if (dtype, vocabulary) == ("bfloat16", 4096) else [pytest.mark.long])
        for dtype, vocabulary in itertools.product(FLOATS, (4096, 5000))
    ],
)
def test_producers_are_computed_inside(dtype, vocabulary):
    """A bias by column, a temperature by row, a clamp by a constant: all in one kernel. XLA keeps the intermediate values
    of a chain of 16-bit operations in float32, the kernel rounds each: 16-bit values that it is exact on make both agree."""
    rng = np.random.default_rng(3)
    t = FLOATS[dtype]
    logits = (rng.integers(-64, 64, (4, vocabulary)) / 4).astype(t)
    bias = (rng.integers(-8, 8, vocabulary) / 4).astype(t)
    arguments = (logits, np.array([1, 2, 0.5, 4], np.float32).astype(t), bias, np.full(4, 0.9, np.float32).astype(t))
    arguments += (np.array([5, 100, 0, vocabulary], np.int32),)
    compiled = ja.compile(sampler, *arguments)
    assert len(compiled.kernels) == 1
    assert [parameter.name for parameter in compiled.kernels[0].parameters] == [
        "logits", "bias", "temperature", "p", "k", "out",
    ]  # fmt: skip
    assert_same(np.asarray(compiled(*arguments)), np.asarray(jax.jit(sampler)(*arguments)))


def test_scalar_parameters_and_vmap():
    """Scalars broadcast inside the kernel; the dimension that vmap adds is folded into the rows of one launch."""
    rng = np.random.default_rng(5)
    logits = rng.normal(0, 3, (3, 4, 500)).astype(np.float32)

    def two(x):
        return jax.vmap(lambda rows: ja.apply_top_k_top_p(rows, 0.8, 40))(x)

    compiled = ja.compile(two, logits)
    assert len(compiled.kernels) == 1
    assert_same(np.asarray(compiled(logits)), np.asarray(jax.jit(two)(logits)))


def test_sort_and_sorted_filter_become_one_kernel():
    rng = np.random.default_rng(6)
    logits = rng.integers(0, 9, (4, 300)).astype(np.float32)
    k = np.array([1, 20, 0, 299], np.int32)

    def sorted_form(x, k):
        values, indices = ja.sort(x)
        return ja.apply_top_k_top_p_with_sorted(values, indices, p=0.75, k=k)

    compiled = ja.compile(sorted_form, logits, k)
    assert [kernel.name for kernel in compiled.kernels] == ["jascend_sorted_form_apply_top_k_top_p"]
    assert_same(np.asarray(compiled(logits, k)), np.asarray(jax.jit(sorted_form)(logits, k)))


@pytest.mark.parametrize("target", ["ascend910_93", "ascend950"])
def test_other_targets(target):
    rng = np.random.default_rng(8)
    logits = rng.normal(0, 3, (3, 9000)).astype(ml_dtypes.bfloat16)
    k = np.array([3, 900, 0], np.int32)
    compiled = ja.compile(lambda x, k: ja.apply_top_k_top_p(x, 0.9, k), logits, k, target=target)
    assert target in compiled.kernels[0].source
    assert_same(np.asarray(compiled(logits, k)), np.asarray(ja.apply_top_k_top_p(logits, 0.9, k)))
