"""The generated gating kernels, run on the twin with the checker on: against the vectors, the fallback, themselves."""

import functools

import gating_oracle
import jax
import jax.numpy as jnp
import ml_dtypes
import mutations
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_ops_moe_gating_top_k import ACCEPTED, compare

import jascend as ja
from jascend.backends.ascend.codegen import tiling

TARGETS = ("ascend910b", "ascend950")
DEEPSEEK = dict(k=8, norm_type=1, group_count=8, k_group=4, group_select_mode=1, routed_scaling_factor=2.5)


@functools.cache
def program(target, static, **arrays):
    """One shape; a call raises if the checker has findings."""
    operands = {name: jax.ShapeDtypeStruct(*spec) for name, spec in arrays.items()}

    def gate(x, **others):
        return ja.moe_gating_top_k(x, **others, **dict(static))

    return ja.compile(gate, **operands, target=target)


def run(arrays, target="ascend910b", **static):
    specs = {name: (value.shape, value.dtype) for name, value in arrays.items()}
    return program(target, tuple(sorted(static.items())), **specs)(**arrays)


# -- expected values ------------------------------------------------------------------------------------------------

# Every norm, both modes of groups, padded groups, hash routing with each width of ids, a mask, ties, large logits.
SHORT = ("012", "024", "026", "040", "041", "052", "057", "061", "066")


def check_vector(case, target):
    arrays = {name: case.arrays[name] for name in case.info["inputs"] if case.arrays[name] is not None}
    with jax.enable_x64(any(a.dtype == np.int64 for a in arrays.values())):
        compare(case, run(arrays, target, **case.info["attrs"]), case.info["attrs"]["out_flag"])


@pytest.mark.parametrize("case", [c for c in ACCEPTED if c.info["id"].startswith(SHORT)], ids=lambda case: case.info["id"])
def test_vectors(case):
    check_vector(case, "ascend910b")


@pytest.mark.parametrize("case", [c for c in ACCEPTED if c.info["id"].startswith(("041", "052"))], ids=lambda c: c.info["id"])
def test_vectors_on_950(case):
    check_vector(case, "ascend950")


@pytest.mark.long
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", ACCEPTED, ids=lambda case: case.info["id"])
def test_all_vectors(case, target):
    check_vector(case, target)


# -- against the fallback -------------------------------------------------------------------------------------------


def keys(arrays, norm_type):
    """What experts are ordered by, in float64."""
    x = np.asarray(arrays["x"]).astype(np.float32)
    scores = np.stack([gating_oracle.scores(row, norm_type) for row in x])
    bias = np.broadcast_to(np.float64(arrays["bias"].astype(np.float32)) if "bias" in arrays else 0.0, scores.shape)
    if "additional_token_mask" in arrays:
        other = arrays["additional_bias"].astype(np.float64)
        bias = np.where(arrays["additional_token_mask"][:, None], other, bias)
    with np.errstate(invalid="ignore"):
        biased = scores + bias
    return np.where(np.isnan(x) | np.isnan(biased), -np.inf, biased)


def assert_agrees(arrays, target="ascend910b", **static):
    """The same ids but where two scores are so close that their rounding decides, and the same weights."""
    got, expected = run(arrays, target, **static), ja.moe_gating_top_k(**arrays, **static)
    ids, expected_ids = np.asarray(got.expert_idx), np.asarray(expected.expert_idx)
    same = (ids == expected_ids).all(axis=1)
    if not same.all():
        assert "tid2eid" not in arrays
        by_key = keys(arrays, static["norm_type"])
        mine, other = (np.take_along_axis(by_key, i, axis=1)[~same] for i in (ids, expected_ids))
        np.testing.assert_allclose(mine, other, rtol=3e-6, atol=3e-7)
        assert all(len(set(row)) == len(row) for row in ids)
    rtol = 2e-5 if arrays["x"].dtype == np.float32 else 1e-2
    y, expected_y = (np.asarray(r.y).astype(np.float32)[same] for r in (got, expected))
    np.testing.assert_allclose(y, expected_y, rtol=rtol, atol=1e-7)
    if static.get("out_flag"):
        np.testing.assert_allclose(got.out, expected.out, rtol=2e-5, atol=1e-7)


_SPECIAL = [0.0, -0.0, 1.0, -1.0, 300.0, -300.0, np.inf, -np.inf, np.nan]
_KINDS = {
    "normal": lambda rng, shape: rng.normal(0, 3, shape),
    "ties": lambda rng, shape: rng.integers(-2, 3, shape).astype(float),
    "special": lambda rng, shape: np.where(rng.random(shape) < 0.3, rng.choice(_SPECIAL, shape), rng.normal(0, 2, shape)),
    "same": lambda rng, shape: np.full(shape, rng.choice(_SPECIAL)),
}
# Many layouts: rows alone or by two, one list or many, groups that fill their lanes and others, all of the experts.
CASES = {
    "one expert": (1, dict(k=1, norm_type=1), ("bias",), np.float32),
    "few of a long row": (333, dict(k=5, norm_type=0, out_flag=True), (), np.float16),
    "many of a row": (200, dict(k=150, norm_type=2), ("bias",), np.float32),
    "groups in two lists": (240, dict(k=7, norm_type=1, group_count=5, k_group=2), ("bias", "other"), np.float32),
    "small groups": (66, dict(k=9, norm_type=0, group_count=33, k_group=30, group_select_mode=1), (), ml_dtypes.bfloat16),
}


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    name=st.sampled_from(list(CASES)), kinds=st.lists(st.sampled_from(list(_KINDS)), min_size=5, max_size=5),
    bias=st.sampled_from(["normal", "special"]), seed=st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_agrees_with_the_fallback(name, kinds, bias, seed):
    experts, static, given_, dtype = CASES[name]
    rng = np.random.default_rng(seed)
    arrays = {"x": np.stack([_KINDS[kind](rng, experts) for kind in kinds]).astype(dtype)}
    if "bias" in given_:
        arrays["bias"] = _KINDS[bias](rng, experts).astype(dtype)
    if "other" in given_:
        arrays["additional_bias"] = _KINDS["normal"](rng, experts).astype(dtype)
        arrays["additional_token_mask"] = rng.random(5) < 0.5
    assert_agrees(arrays, **static)


@pytest.mark.parametrize(("tokens", "n"), [(70, 3000), (3, 40)], ids=["a table in memory", "a table that stays"])
def test_hash_routing(tokens, n):
    """Ids outside the table give -1, experts that there are none of weigh nothing."""
    rng = np.random.default_rng(n)
    arrays = {
        "x": rng.normal(size=(tokens, 100)).astype(np.float32),
        "input_ids": rng.integers(-2, n + 2, tokens).astype(np.int32),
        "tid2eid": np.where(rng.random((n, 6)) < 0.1, -(2**31), rng.integers(0, 101, (n, 6))).astype(np.int32),
    }
    assert_agrees(arrays, k=6, norm_type=1)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(60))
def test_any_shape_agrees_with_the_fallback(seed):
    rng = np.random.default_rng(seed)
    experts = int(rng.choice([1, 2, 31, 32, 33, 64, 96, 100, 160, 256, 384, 512, 544, 777, 1024, 2000, 2048]))
    groups = int(rng.choice([g for g in range(1, experts + 1) if experts % g == 0])) if rng.random() < 0.6 else 1
    size = experts // groups
    if groups * -(-size // 32) * 32 > 2048:  # padded, they are more than the operator takes
        groups, size = 1, experts
    kept = int(rng.integers(1, groups + 1))
    most = kept * size
    k = int(rng.choice([1, min(6, most), min(8, most), min(64, most), most, rng.integers(1, most + 1)]))
    norm_type = int(rng.integers(3))
    target = "ascend950" if (norm_type == 2 and groups > 1) or seed % 3 == 0 else "ascend910b"
    static = dict(
        k=min(k, 64) if target == "ascend950" else k, norm_type=norm_type, group_count=groups, k_group=kept,
        group_select_mode=int(size > 1 and rng.integers(2)), out_flag=bool(rng.integers(2)),
    )  # fmt: skip
    dtype = (np.float32, np.float16, ml_dtypes.bfloat16)[seed % 3 and int(rng.integers(3))]
    tokens = int(rng.choice([1, 2, 5, 60, 150]))
    arrays = {"x": _KINDS[rng.choice(list(_KINDS))](rng, (tokens, experts)).astype(dtype)}
    if rng.random() < 0.6:
        arrays["bias"] = rng.normal(size=experts).astype(dtype)
    if rng.random() < 0.3:
        arrays["additional_bias"] = rng.normal(size=experts).astype(dtype)
        arrays["additional_token_mask"] = rng.random(tokens) < 0.5
    assert_agrees(arrays, target, **static)


# -- a row alone ----------------------------------------------------------------------------------------------------


def test_a_row_does_not_depend_on_its_batch_or_on_the_cores():
    """Alone, among 130 rows in batches of 4, and on fewer cores in more batches, the last of them short."""
    rng = np.random.default_rng(7)
    arrays = {"x": rng.normal(size=(130, 256)).astype(np.float32), "bias": rng.normal(size=256).astype(np.float32)}
    together = run(arrays, **DEEPSEEK)
    specs = {name: (value.shape, value.dtype) for name, value in arrays.items()}
    report = program("ascend910b", tuple(sorted(DEEPSEEK.items())), **specs).profile(**arrays, cores=7)
    assert not report.kernels[0].findings
    alone = [run({**arrays, "x": arrays["x"][row : row + 1]}, **DEEPSEEK) for row in (0, 64, 129)]
    for name in ("y", "expert_idx"):
        expected = np.asarray(getattr(together, name))
        np.testing.assert_array_equal(np.asarray(getattr(report.outputs, name)), expected)
        for row, result in zip((0, 64, 129), alone):
            np.testing.assert_array_equal(np.asarray(getattr(result, name))[0], expected[row])


# -- around it ------------------------------------------------------------------------------------------------------


def router(x, temperature, scale, bias):
    logits = jnp.maximum(x.astype(jnp.float32) * scale / temperature[:, None], -30.0)
    return ja.moe_gating_top_k(logits, bias=bias + 0.25, **DEEPSEEK)


def test_producers_are_computed_inside():
    """A cast, a factor by expert, a divisor by token, a bound, a bias: values that bfloat16 and float32 are exact on."""
    rng = np.random.default_rng(3)
    x = (rng.integers(-64, 64, (5, 96)) / 16).astype(ml_dtypes.bfloat16)
    temperature = np.array([1, 2, 0.5, 4, 1], np.float32)
    scale, bias = (rng.integers(1, 8, 96) / 4).astype(np.float32), (rng.integers(-8, 8, 96) / 8).astype(np.float32)
    compiled = ja.compile(router, x, temperature, scale, bias)
    assert len(compiled.kernels) == 1
    got, expected = compiled(x, temperature, scale, bias), jax.jit(router)(x, temperature, scale, bias)
    np.testing.assert_array_equal(got.expert_idx, expected.expert_idx)
    np.testing.assert_allclose(got.y, expected.y, rtol=2e-5)


def test_ids_are_computed_by_a_kernel_of_their_own():
    def layer(x, ids, table):
        return ja.moe_gating_top_k(x, 2, input_ids=ids + 1, tid2eid=table, norm_type=2)

    x = np.random.default_rng(10).normal(size=(4, 8)).astype(np.float32)
    ids, table = np.arange(4, dtype=np.int32), np.arange(10, dtype=np.int32).reshape(5, 2) % 8
    program = ja.compile(layer, x, ids, table)
    assert len(program.kernels) == 2
    np.testing.assert_array_equal(program(x, ids, table).expert_idx, table[ids + 1])


@pytest.mark.long
def test_inside_jit():
    rng = np.random.default_rng(9)
    x = rng.normal(size=(6, 64)).astype(ml_dtypes.bfloat16)

    def layer(x):
        gate = ja.moe_gating_top_k(x, 4, norm_type=1, out_flag=True)
        return gate.y.astype(jnp.float32).sum(-1), gate.expert_idx, gate.out

    expected = jax.jit(layer)(x)
    with ja.lowering("twin"):
        got = jax.jit(layer)(x)
    np.testing.assert_array_equal(got[1], expected[1])
    for i, rtol in ((0, 1e-2), (2, 2e-5)):
        np.testing.assert_allclose(got[i], expected[i], rtol=rtol)


# -- broken on purpose ----------------------------------------------------------------------------------------------


def test_every_fault_is_found(tmp_path):
    """Three batches on one core, the last one short; and a first batch that is short, which is padded before the loop.
    One row has three equal groups."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(100, 96)).astype(ml_dtypes.bfloat16)
    bias = np.tile(rng.normal(size=32).astype(ml_dtypes.bfloat16), 3)
    x[1] = np.tile(x[1, :32], 3)
    static = dict(k=4, norm_type=1, group_count=3, k_group=2, group_select_mode=1, out_flag=True)
    specs = {"x": (x.shape, x.dtype), "bias": (bias.shape, bias.dtype)}
    kernel = program("ascend910b", tuple(sorted(static.items())), **specs).kernels[0]

    def launch(rows):  # of so many rows and no more, so that what is read or written behind them is out of bounds
        like = np.zeros((rows, 4), x.dtype), np.zeros((rows, 4), np.int32), np.zeros((rows, 96), np.float32)
        return mutations.Launch(tiling.pack(kernel.shape.data(rows, 1)), (x[:rows], bias), like)

    subject = mutations.Subject(
        kernel.name, kernel.source, kernel.tiling_file, kernel.tiling_header, (launch(9), launch(2))
    )
    laboratory = mutations.Laboratory(subject, tmp_path)
    assert not laboratory.findings
    unnoticed = [str(mutant) for mutant in laboratory.mutants[::2] if not laboratory.is_found(mutant)]
    assert not unnoticed, "\n".join(unnoticed)
