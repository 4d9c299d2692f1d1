"""The operator that filters and samples at once: kernels on the twin, with the checker on, against its parts in JAX."""

import functools
import pathlib
import re
import tempfile

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mlir import ir

import jascend as ja
import jascend.dialect
from jascend.backends.ascend import twin
from jascend.backends.ascend.compile import compile_module
from jascend.backends.ascend.targets import TARGETS
from jascend.passes.interpreter import run_kernel
from jascend.passes.pipeline import run_pipeline

FLOATS = {"float32": ("f32", np.float32), "float16": ("f16", np.float16), "bfloat16": ("bf16", ml_dtypes.bfloat16)}


def text(batch, vocabulary, element, has_p, has_k, eps, index, drawn=None):
    operands = {
        "x": f"tensor<{batch}x{vocabulary}x{element}>", "q": None if drawn else f"tensor<{batch}x{vocabulary}xf32>",
        "p": f"tensor<{batch}x{element}>" if has_p else None, "k": f"tensor<{batch}xi32>" if has_k else None,
        "key": f"tensor<{batch}x2xi32>" if drawn else None,
    }  # fmt: skip
    operands = {name: type_ for name, type_ in operands.items() if type_}
    arguments = ", ".join(f"%{name}: {type_}" for name, type_ in operands.items())
    names, types = ", ".join(f"%{name}" for name in operands), ", ".join(operands.values())
    how = 'draw = "{}", low = {} : f32, counts = "{}", '.format(*drawn) if drawn else ""
    sizes = f"{how}operandSegmentSizes = array<i32: 1, {int(not drawn)}, {int(has_p)}, {int(has_k)}, {int(bool(drawn))}>"
    result = f"tensor<{batch}x{index}>"
    return f"""
    func.func public @main({arguments}) -> {result} {{
      %index = "ascend.filter_sample"({names}) {{eps = {eps} : f32, {sizes}}} : ({types}) -> {result}
      return %index : {result}
    }}"""


@functools.cache
def built(directory, target, *shape):
    with jascend.dialect.make_context():
        kernel = compile_module(ir.Module.parse(text(*shape)), TARGETS[target], name="t").kernels[0]
    directory = pathlib.Path(tempfile.mkdtemp(dir=directory))
    (directory / kernel.tiling_file).write_text(kernel.tiling_header)
    file = directory / "kernel.cpp"
    file.write_text(kernel.source)
    return kernel, twin.build(file, include_dirs=(directory,), target=target)


def run(directory, logits, q, p=None, k=None, eps="0.0", index="i32", target="ascend910b", key=None, drawn=None):
    element = next(name for name, dtype in FLOATS.values() if dtype == logits.dtype)
    shape = (*logits.shape, element, p is not None, k is not None, eps, index, drawn)
    kernel, library = built(directory, target, *shape)
    chosen = np.full(len(logits), -1, {"i32": np.int32, "i64": np.int64}[index])
    arrays = [x for x in (logits, q if key is None else None, p, k, key, chosen) if x is not None]
    result = library.launch(
        kernel.name, arrays, tiling=kernel.tiling_bytes, blocks=kernel.blocks, workspace_bytes=kernel.workspace_bytes
    )
    assert not result.findings, result.describe()
    return chosen


def expected(logits, q, p=None, k=None, eps=0.0):
    """The parts, one after the other. Also by how much the best score leads."""
    kwargs = {name: value for name, value in (("p", p), ("k", k)) if value is not None}
    kept = np.asarray(ja.apply_top_k_top_p(jnp.asarray(logits), **kwargs) if kwargs else logits).astype(np.float64)
    weights = np.exp(kept - kept.max(axis=1, keepdims=True))
    scores = weights / weights.sum(axis=1, keepdims=True) / (q.astype(np.float64) + eps)
    ranked = np.sort(scores, axis=1)
    return scores.argmax(axis=1), ranked[:, -1] / np.maximum(ranked[:, -2:-1].max(axis=1, initial=1e-300), 1e-300)


def check(directory, logits, q, p=None, k=None, **kwargs):
    indices, lead = expected(logits, q, p, k, float(kwargs.get("eps", 0)))
    decided = lead > 1 + 1e-5
    assert decided.mean() > 0.8
    chosen = run(directory, logits, q, p, k, **kwargs)
    np.testing.assert_array_equal(chosen[decided], indices[decided])


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return tmp_path_factory.mktemp("filter_sample")


@pytest.mark.parametrize("target", ["ascend910b", "ascend950"])
def test_short_rows(directory, target):
    rng = np.random.default_rng(0)
    logits = rng.integers(-4, 5, (6, 100)).astype(np.float32)  # ties in every cut
    p = np.array([0.9, 0.5, 1.0, 0.3, 0.0, 0.7], np.float32)
    check(directory, logits, rng.exponential(1, logits.shape).astype(np.float32), p, np.array([10, 0, 1, 99, 50, 7], np.int32), target=target)


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_rows_of_many_chunks(directory, dtype):
    rng = np.random.default_rng(1)
    logits = rng.normal(0, 3, (2, 9001)).astype(FLOATS[dtype][1])
    p = np.array([0.9, 0.8], np.float32).astype(logits.dtype)
    q = rng.exponential(1, logits.shape).astype(np.float32)
    check(directory, logits, q, p, np.array([50, 4000], np.int32), index="i64")


@pytest.mark.long
def test_chunks_longer_than_what_a_filter_writes_at_a_time(directory):
    rng = np.random.default_rng(11)
    logits = (np.round(rng.normal(0, 3, (8, 128256)) * 4) / 4).astype(np.float32)  # ties in every cut
    p, k = np.linspace(0.3, 1, 8, dtype=np.float32), np.array([0, 5, 128, 129, 3000, 60000, 0, 1], np.int32)
    check(directory, logits, rng.exponential(1, logits.shape).astype(np.float32), p, k)


@pytest.mark.parametrize("shape", [(8, 128256), (16, 128256)])
def test_parts_of_long_rows_are_lowered(directory, shape):
    """Parts that do not stay in the unified buffer, in chunks longer than those of a filter that writes."""
    with jascend.dialect.make_context():
        module = ir.Module.parse(text(*shape, "f32", True, True, "0.0", "i32"))
        told = compile_module(module, TARGETS["ascend910b"], name="t").remarks.records
    (chunk,) = [int(found[1]) for remark in told if (found := re.search(r"in chunks of (\d+);", remark.text))]
    assert chunk > 6144


def test_top_p_alone_and_an_eps(directory):
    rng = np.random.default_rng(2)
    logits = rng.normal(0, 2, (2, 2500)).astype(np.float16)
    q = np.zeros(logits.shape, np.float32)
    q[:, ::2] = 1.0
    check(directory, logits, q, np.array([0.6, 0.95], np.float16), eps="0.5")


@pytest.mark.parametrize("length", [4, 1100])
def test_q_of_what_goes_never_counts(directory, length):
    """0 / 0 would be NaN, the greatest score; beside what stays it is."""
    logits = np.full((5, length), -np.inf, np.float32)
    logits[:, :4] = 2.0, 1.0, 3.0, 3.0
    q = np.ones_like(logits)
    q[:, :4] = [[0, 0, 1, 0.5], [np.nan, 0, 0.5, 1], [0, 0, np.inf, np.inf], [0, 0, 1, np.nan], [1, 1, 1, 0]]
    assert run(directory, logits, q, k=np.full(5, 2, np.int32)).tolist() == [3, 2, 2, 3, 3]


@pytest.mark.long
@pytest.mark.parametrize("rows", [20, 25], ids=["two cores a row", "a core a row"])
def test_rows_that_are_computed(rows):
    """Long enough for a bound by a sample; few tokens allowed in some of them, many copies in another."""
    def sampler(logits, bias, allowed, temperature, p, k, q):
        x = jnp.where(allowed, (logits + bias) / temperature[:, None], -jnp.inf)
        return x, ja.top_k_top_p_sample(ja.apply_top_k_top_p(x, p, k), 1 << 20, 1.0, q, eps=0.0).logits_select_idx

    rng = np.random.default_rng(rows)
    logits = rng.normal(0, 3, (rows, 20000)).astype(np.float32)
    allowed = rng.random(logits.shape) < np.where(np.arange(rows) % 4 == 1, 0.001, 0.9)[:, None]
    logits[3] = np.round(logits[3])
    k = np.array([50, 50, 100, 40, 1] * (rows // 5), np.int32)
    p, q = rng.uniform(0.3, 1, rows).astype(np.float32), rng.exponential(1, logits.shape).astype(np.float32)
    bias = rng.integers(-1, 2, 20000).astype(np.float32)
    arguments = (logits, bias, allowed, np.tile(np.float32([1, 0.5, 2, 1, 4]), rows // 5), p, k, q)
    program = ja.compile(lambda *a: sampler(*a)[1], *arguments, force="fuse-sampling")
    assert len(program.kernels) == 1
    indices, lead = expected(np.asarray(jax.jit(sampler)(*arguments)[0]), q, p, k)
    decided = lead > 1 + 1e-5
    assert decided.mean() > 0.8
    np.testing.assert_array_equal(np.asarray(program(*arguments))[decided], indices[decided])


def test_q_that_is_computed():
    """Of several dtypes, and of positions: for survivors of any number, and for those that the list has no room for."""
    def sampler(logits, k, bits, usable):
        x = ja.apply_top_k_top_p(logits, None, k)
        places = jnp.arange(logits.shape[1], dtype=jnp.float32)
        q = jnp.where(usable & (bits > 0.25), bits.astype(jnp.float32) * (1 + places), 1e30)
        return ja.top_k_top_p_sample(x, 1 << 20, 1.0, q, eps=0.0).logits_select_idx

    rng = np.random.default_rng(13)
    logits = rng.normal(0, 1, (6, 1300)).astype(np.float32)
    logits[4], logits[5, ::20] = np.round(logits[4]), 9.0  # 65 copies of the greatest
    k = np.array([1, 8, 9, 128, 50, 49], np.int32)
    bits, usable = rng.exponential(1, logits.shape).astype(ml_dtypes.bfloat16), rng.random(logits.shape) < 0.7
    program = ja.compile(sampler, logits, k, bits, usable, force=("fuse-sampling", "fuse-elementwise"))
    assert len(program.kernels) == 1
    q = np.where(usable & (bits > 0.25), bits.astype(np.float64) * (1 + np.arange(1300)), 1e30)
    indices, lead = expected(logits, q, k=k)
    assert lead.min() > 1 + 1e-5
    np.testing.assert_array_equal(np.asarray(program(logits, k, bits, usable)), indices)


def test_a_row_with_fewer_tokens_than_k_is_read_once():
    def sampler(logits, k, q):
        x = ja.apply_top_k_top_p(logits, None, k)
        return ja.top_k_top_p_sample(x, 1 << 20, 1.0, q, eps=0.0).logits_select_idx

    logits = np.full((25, 20000), -np.inf, np.float32)  # a core a row
    logits[:, 3::1000] = np.arange(20)
    arguments = (logits, np.resize(np.array([50, 128], np.int32), 25), np.ones_like(logits))
    program = ja.compile(sampler, *arguments, force="fuse-sampling")
    assert np.asarray(program(*arguments)).tolist() == [19003] * 25
    assert program.profile(*arguments).gm_read_bytes < 1.5 * logits.nbytes


def test_parts_of_a_row_in_chunks_of_any_length():
    with jascend.dialect.make_context():
        module = ir.Module.parse(text(4, 128256, "f32", True, True, "0.0", "i32"))
        (kernel,) = compile_module(module, TARGETS["ascend910b"], name="t").kernels
    assert kernel.blocks == 48


# -- rows, p, k and q of every special kind -------------------------------------------------------------------------


def row_kinds(rng, v):
    """The first element is one that filters remove."""
    normal = np.r_[-9.0, rng.normal(0, 3, v - 1)]
    place = np.arange(v)
    return {
        "normal": normal,
        "ties": np.r_[-4, rng.integers(-3, 4, v - 1)],
        "one NaN": np.where(place == v // 2, np.nan, normal),
        "NaN": np.where(place % 9 == 7, np.nan, normal),
        "infinite": np.where(place % 37 == 5, np.inf, normal),
        "infinite and NaN": np.where(place % 37 == 5, np.inf, np.where(place == 3, np.nan, normal)),
        "few finite": np.where(place % 40 == 8, normal, -np.inf),
        "no finite": np.full(v, -np.inf),
        "far apart": np.where(place == v - 2, 500.0, normal),  # all others have no probability
    }


def q_kinds(rng, v):
    q, place = rng.exponential(1, v), np.arange(v)
    return {
        "drawn": q,
        "some 0": np.where(place % 17 == 4, 0.0, q),
        "one 0 of what goes": np.where(place == 0, 0.0, q),
        "all 0": np.zeros(v),
        "NaN": np.where(place % 29 == 11, np.nan, q),
        "0 before NaN": np.where(place % 29 == 11, np.nan, np.where(place % 3 == 1, 0.0, q)),
        "infinite": np.full(v, np.inf),
        "finite where nothing stays": np.where(place == 0, 1.0, np.inf),
    }


EDGES = [(0.9, 5), (0.0, 0), (1.0, 1), (np.nan, 3), (-0.5, 0), (1.5, 2), (0.5, 1 << 30), (0.7, -1), (0.3, 40)]


def special(v):
    """Every kind of row beside every kind of q, p and k by turns."""
    rng = np.random.default_rng(v)
    pairs = [(x, q) for x in row_kinds(rng, v).values() for q in q_kinds(rng, v).values()]
    p, k = zip(*(EDGES[i % len(EDGES)] for i in range(len(pairs))))
    logits, q = (np.stack(rows).astype(np.float32) for rows in zip(*pairs))
    return logits, q, np.array(p, np.float32), np.array(k, np.int32)


def parts_in_jax(logits, q, p, k, eps=0.0):
    """The parts as one writes them, in float32."""
    return np.asarray(jnp.argmax(jax.nn.softmax(ja.apply_top_k_top_p(logits, p, k), axis=-1) / (q + np.float32(eps)), axis=-1))


def in_jax(logits, q, p, k, eps=0.0):
    """The same among what the filter leaves; index 0 where there are no probabilities."""
    kept = ja.apply_top_k_top_p(logits, p, k)
    probabilities = jax.nn.softmax(kept, axis=-1)
    takes_part = (kept > -np.inf) | jnp.isnan(probabilities)
    return np.asarray(jnp.argmax(jnp.where(takes_part, probabilities / (q + np.float32(eps)), -1.0), axis=-1))


@pytest.mark.parametrize(("length", "eps", "rows", "target"), [
    (64, "0.0", slice(None), "ascend910b"), (64, "0.5", slice(None), "ascend950"),
    pytest.param(2100, "0.0", slice(0, 8), "ascend950", id="cores share rows"),
    pytest.param(1100, "0.0", slice(None), "ascend910b", marks=pytest.mark.long),
    pytest.param(5000, "0.0", slice(8, 40, 5), "ascend910b", marks=pytest.mark.long),
])  # fmt: skip
def test_special_values(directory, length, eps, rows, target):
    logits, q, p, k = (np.ascontiguousarray(x[rows]) for x in special(length))
    chosen = run(directory, logits, q, p, k, eps=eps, target=target)
    np.testing.assert_array_equal(chosen, in_jax(logits, q, p, k, float(eps)))


@functools.cache
def on_tiles(parts, *shape):
    context = jascend.dialect.make_context()
    with context:
        kernel = text(*shape).replace("public @main", "@sample").replace("{\n", "attributes {ascend.kernel} {\n", 1)
        return context, run_pipeline(ir.Module.parse(kernel), f"lower-to-tile{{parts={parts}}}")


@pytest.mark.parametrize(("length", "parts"), [
    (64, 1), (1100, 1), (2100, 2), pytest.param(5000, 3, marks=pytest.mark.long),
])  # fmt: skip
def test_special_values_on_tiles(length, parts):
    logits, q, p, k = special(length)
    context, module = on_tiles(parts, *logits.shape, "f32", True, True, "0.0", "i32")
    with context:
        (chosen,) = run_kernel(module, "sample", [logits, q, p, k], 2 * parts)
    np.testing.assert_array_equal(chosen, in_jax(logits, q, p, k))


def test_the_program_that_is_fused_chooses_the_same():
    """As two kernels, unless a q of 0, NaN or infinity makes something that goes the greatest of all."""
    def program(logits, q, p, k):
        rows = ja.apply_top_k_top_p(logits, p, k)
        return jnp.argmax(jax.nn.softmax(rows, axis=-1) / jnp.abs(q), axis=-1)

    arguments = special(64)
    fused, apart = (ja.compile(program, *arguments, **{which: "fuse-sampling"}) for which in ("force", "forbid"))
    assert [len(fused.kernels), len(apart.kernels)] == [1, 2]
    assert "takes q + eps for positive and finite" in fused.explain()
    np.testing.assert_array_equal(fused(*arguments), in_jax(*arguments))
    np.testing.assert_array_equal(apart(*arguments), parts_in_jax(*arguments))
    plain = np.all((arguments[1] > 0) & np.isfinite(arguments[1]), axis=1)
    assert plain.sum() >= 9
    np.testing.assert_array_equal(in_jax(*arguments)[plain], parts_in_jax(*arguments)[plain])


# -- drawn rows -----------------------------------------------------------------------------------------------------

ROWS = 6
VARIANTS = {  # length, p, k, how it is built: one kernel each
    "p and k": (96, True, True, None), "p": (96, True, False, None), "k": (96, False, True, None),
    "several cores": (2100, True, True, None), "bias": (96, True, True, "bias"), "key": (96, True, True, "key"),
}  # fmt: skip


@functools.cache
def with_bias(length):
    array = lambda shape, dtype=np.float32: jax.ShapeDtypeStruct(shape, dtype)
    rows, row = array((ROWS, length)), array((ROWS,))

    def sampler(logits, bias, p, k, q):
        return ja.top_k_top_p_sample(ja.apply_top_k_top_p(logits + bias, p, k), 1 << 20, 1.0, q, eps=0.0).logits_select_idx

    program = ja.compile(sampler, rows, array((length,)), row, array((ROWS,), np.int32), rows, force="fuse-sampling")
    assert len(program.kernels) == 1
    return program


@st.composite
def batches(draw):
    length, has_p, has_k, how = VARIANTS[draw(st.sampled_from(sorted(VARIANTS)))]
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    spread = draw(st.sampled_from([1, 3, 20]))
    logits = rng.integers(-spread, spread + 1, (ROWS, length)).astype(np.float32)
    logits[rng.random(logits.shape) < draw(st.sampled_from([0.0, 0.5, 0.97]))] = -np.inf
    logits[:, 7] = 0.0
    choose = lambda values: np.array(draw(st.lists(st.sampled_from(values), min_size=ROWS, max_size=ROWS)))
    p = choose([-0.5, 0.0, 0.31, 0.57, 0.93, 0.9993, 1.0, 2.0, np.nan]).astype(np.float32) if has_p else None
    k = choose([-1, 0, 1, 2, 31, 95, 96, 129, 2000]).astype(np.int32) if has_k else None
    return logits, p, k, how, seed


def is_decided(logits, p, k):
    """Whether the order of a sum cannot change what the filter keeps, for each row."""
    kept = np.asarray(ja.apply_top_k_top_p(logits, k=k) if k is not None else logits, np.float64)
    weights = np.sort(np.exp(kept - kept.max(axis=1, keepdims=True)), axis=1)
    sums = np.cumsum(weights / weights.sum(axis=1, keepdims=True), axis=1)
    return np.full(ROWS, True) if p is None else ~np.any(np.abs(sums - (1 - p[:, None])) < 1e-5, axis=1)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(drawn=batches())
def test_agrees_with_the_fallback(directory, drawn):
    """Rows with ties in every cut and with few tokens allowed, whatever of p and k there is; logits that are computed; numbers
    that the kernel draws."""
    logits, p, k, how, seed = drawn
    rng = np.random.default_rng(seed)
    q = rng.exponential(1, logits.shape).astype(np.float32)
    if how == "bias":
        bias = rng.integers(-1, 2, logits.shape[1]).astype(np.float32)
        chosen = np.asarray(with_bias(logits.shape[1])(logits, bias, p, k, q))
        logits = logits + bias
    elif how == "key":
        key = jax.random.key(seed)
        q = -np.log(np.asarray(jax.random.uniform(key, logits.shape, minval=GUMBEL[1])).astype(np.float64))
        words = np.broadcast_to(np.asarray(jax.random.key_data(key)).view(np.int32), (ROWS, 2)).copy()
        chosen = run(directory, logits, q, p, k, key=words, drawn=(*GUMBEL, "array"))
    else:
        chosen = run(directory, logits, q, p, k)
    indices, lead = expected(logits, q, p, k)
    decided = (lead > 1 + 1e-5) & is_decided(logits, p, k)
    np.testing.assert_array_equal(chosen[decided], indices[decided])


# -- with a key in the place of q -------------------------------------------------------------------------------------

GUMBEL = ("gumbel", float(np.finfo(np.float32).tiny))


def check_drawn(directory, logits, seeds, p=None, k=None, draw=GUMBEL, counts="array", **kwargs):
    """Against the q that jax draws with the same keys."""
    shape = logits.shape
    for seed in seeds:
        key = jax.random.key(seed)
        keys = jax.random.split(key, len(logits)) if counts == "row" else key
        uniform = lambda key: jax.random.uniform(key, shape[1:] if counts == "row" else shape, minval=draw[1])
        u = np.asarray((jax.vmap(uniform) if counts == "row" else uniform)(keys)).astype(np.float64)
        words = np.asarray(jax.random.key_data(keys)).view(np.int32)
        q = -np.log(u) if draw[0] == "gumbel" else -np.log1p(-u)
        check(directory, logits, q, p, k, key=np.broadcast_to(words, (len(logits), 2)).copy(), drawn=(*draw, counts), **kwargs)


@pytest.mark.parametrize(("target", "drawn"), [
    ("ascend910b", (GUMBEL, "array")), ("ascend950", (("exponential", 0.0), "row")),
])  # fmt: skip
def test_numbers_drawn_for_short_rows(directory, target, drawn):
    logits = np.random.default_rng(20).normal(0, 2, (5, 100)).astype(np.float32)
    p, k = np.array([0.9, 1.0, 0.5, 0.99, 0.3], np.float32), np.array([10, 0, 99, 50, 7], np.int32)
    check_drawn(directory, logits, range(6), p, k, *drawn, target=target)


def test_numbers_drawn_for_parts_of_rows(directory):
    logits = np.random.default_rng(21).normal(0, 2, (3, 5000)).astype(FLOATS["bfloat16"][1])
    check_drawn(directory, logits, range(4), k=np.array([50, 0, 3000], np.int32), draw=("exponential", 0.0))


def test_numbers_drawn_on_tiles():
    """A core a row: for the list of a small k; for the lists of survivors, of which one row has several."""
    logits = np.random.default_rng(22).normal(0, 1, (4, 3000)).astype(np.float32)
    p, k = np.full(4, 0.97, np.float32), np.array([20, 2000, 5, 0], np.int32)
    context, module = on_tiles(1, *logits.shape, "f32", True, True, "0.0", "i32", (*GUMBEL, "array"))
    for seed in range(3):
        key = jax.random.key(seed)
        words = np.broadcast_to(np.asarray(jax.random.key_data(key)).view(np.int32), (4, 2)).copy()
        q = -np.log(np.asarray(jax.random.uniform(key, logits.shape, minval=GUMBEL[1])).astype(np.float64))
        indices, lead = expected(logits, q, p, k)
        with context:
            (chosen,) = run_kernel(module, "sample", [logits, p, k, words], 2)
        np.testing.assert_array_equal(chosen[lead > 1 + 1e-5], indices[lead > 1 + 1e-5])


@pytest.mark.long
def test_numbers_drawn_for_whole_rows(directory):
    logits = np.random.default_rng(22).normal(0, 1, (25, 3000)).astype(np.float32)
    k = np.where(np.arange(25) % 3, 20, 2000).astype(np.int32)
    check_drawn(directory, logits, range(2), np.full(25, 0.97, np.float32), k, counts="row")


@pytest.mark.long
def test_numbers_drawn_with_top_p_alone(directory):
    logits = np.random.default_rng(23).normal(0, 3, (25, 3000)).astype(np.float32)
    check_drawn(directory, logits, range(2), np.linspace(0.1, 1, 25).astype(np.float32), target="ascend950")


# -- with a key, and no filter ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "shape", "dtype", "draw", "counts"),
    [
        ("ascend910b", (5, 700), "float32", GUMBEL, "array"),
        ("ascend950", (3, 5003), "bfloat16", ("exponential", 0.0), "row"),
        pytest.param("ascend910b", (50, 5003), "float16", GUMBEL, "row", marks=pytest.mark.long),
    ],
)
def test_numbers_drawn_for_all(directory, target, shape, dtype, draw, counts):
    """A core a row, and cores that share one, of which some have none."""
    logits = np.random.default_rng(24).normal(0, 2, shape).astype(FLOATS[dtype][1])
    check_drawn(directory, logits, range(6), draw=draw, counts=counts, target=target)


@pytest.mark.parametrize("length", [700, 5003])
def test_rows_without_probabilities_give_the_first_index(directory, length):
    logits = np.full((5, length), -np.inf, np.float32)
    logits[0, -1], logits[1], logits[2, 3], logits[4, 1:] = 2.0, -np.inf, np.nan, np.inf
    logits[3, [4, -2]] = 1.0, -1e30
    key = np.broadcast_to(np.array([3, 7], np.int32), (5, 2)).copy()
    found = run(directory, logits, None, key=key, drawn=(*GUMBEL, "array"))
    assert found.tolist() == [length - 1, 0, 0, 4, 0]
