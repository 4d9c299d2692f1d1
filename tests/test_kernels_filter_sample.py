"""The operator that filters and samples at once: kernels on the twin, with the checker on, against its parts in JAX."""

import functools

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from mlir import ir

import jascend as ja
import jascend.dialect
from jascend.backends.ascend import twin
from jascend.backends.ascend.compile import compile_module
from jascend.backends.ascend.targets import TARGETS

FLOATS = {"float32": ("f32", np.float32), "float16": ("f16", np.float16), "bfloat16": ("bf16", ml_dtypes.bfloat16)}


def text(batch, vocabulary, element, has_p, has_k, eps, index):
    operands = {
        "x": f"tensor<{batch}x{vocabulary}x{element}>", "q": f"tensor<{batch}x{vocabulary}xf32>",
        "p": f"tensor<{batch}x{element}>" if has_p else None, "k": f"tensor<{batch}xi32>" if has_k else None,
    }  # fmt: skip
    operands = {name: type_ for name, type_ in operands.items() if type_}
    arguments = ", ".join(f"%{name}: {type_}" for name, type_ in operands.items())
    names, types = ", ".join(f"%{name}" for name in operands), ", ".join(operands.values())
    sizes = f"operandSegmentSizes = array<i32: 1, 1, {int(has_p)}, {int(has_k)}>"
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
    (directory / kernel.tiling_file).write_text(kernel.tiling_header)
    file = directory / "kernel.cpp"
    file.write_text(kernel.source)
    return kernel, twin.build(file, include_dirs=(directory,), target=target)


def run(directory, logits, q, p=None, k=None, eps="0.0", index="i32", target="ascend910b"):
    element = next(name for name, dtype in FLOATS.values() if dtype == logits.dtype)
    shape = (*logits.shape, element, p is not None, k is not None, eps, index)
    kernel, library = built(directory, target, *shape)
    chosen = np.full(len(logits), -1, {"i32": np.int32, "i64": np.int64}[index])
    arrays = [x for x in (logits, q, p, k, chosen) if x is not None]
    result = library.launch(
        kernel.name, arrays, tiling=kernel.tiling_bytes, blocks=kernel.blocks, workspace_bytes=kernel.workspace_bytes
    )
    assert not result.findings, result.describe()
    return chosen


def expected(logits, q, p=None, k=None, eps=0.0):
    """The parts, one after the other. Also by how much the best score leads."""
    kwargs = {name: value for name, value in (("p", p), ("k", k)) if value is not None}
    kept = np.asarray(ja.apply_top_k_top_p(jnp.asarray(logits), **kwargs)).astype(np.float64)
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


def test_top_p_alone_and_an_eps(directory):
    rng = np.random.default_rng(2)
    logits = rng.normal(0, 2, (2, 2500)).astype(np.float16)
    q = np.zeros(logits.shape, np.float32)
    q[:, ::2] = 1.0
    check(directory, logits, q, np.array([0.6, 0.95], np.float16), eps="0.5")


def test_q_of_what_goes_does_not_count(directory):
    """Where q is 0, a survivor wins, and only a survivor."""
    logits = np.array([[3.0, 3.0, 2.0, 1.0]], np.float32)
    q = np.array([[1.0, 0.5, 0.0, 0.0]], np.float32)
    assert run(directory, logits, q, k=np.array([2], np.int32)).tolist() == [1]
    assert run(directory, logits, q, k=np.array([3], np.int32)).tolist() == [2]


def test_parts_of_a_row_in_chunks_of_any_length():
    with jascend.dialect.make_context():
        module = ir.Module.parse(text(4, 128256, "f32", True, True, "0.0", "i32"))
        (kernel,) = compile_module(module, TARGETS["ascend910b"], name="t").kernels
    assert kernel.blocks == 48
