"""The filter's lowering, run by the interpreter: any split of a row, any chunk, against the fallback and each other."""

import functools

import ml_dtypes
import numpy as np
import pytest
from mlir import ir

import jascend as ja
import jascend.dialect
from jascend.passes.interpreter import run_kernel
from jascend.passes.pipeline import run_pipeline

DTYPES = {"bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32}
SPECIAL = [0.0, -0.0, 1.0, -1.0, 2.5, 2.5, -300.0, np.inf, -np.inf, np.nan]


def rows(rng, length):
    """Rows where candidates, lists and pivots have it hard."""
    spike = rng.normal(0, 1, length)
    spike[::256] += 20  # the large ones in one class of positions
    plateau = rng.normal(0, 1, length)
    plateau[length // 2 : length // 2 + 300] = 9  # ties of the k-th that no list holds
    strange = rng.normal(0, 1, length)
    strange[[7, 9, 11]] = np.nan, np.inf, np.nan
    many_nan = rng.normal(0, 1, length)
    many_nan[-140:] = np.nan
    return [
        rng.normal(0, 3, length), rng.integers(-3, 4, length), rng.choice(SPECIAL, length), np.full(length, 1.5),
        np.sort(rng.normal(0, 3, length)), -np.sort(rng.normal(0, 3, length)), spike, plateau, strange, many_nan,
        rng.normal(0, 1, length) - 1000, np.full(length, -np.inf),
    ]  # fmt: skip


@functools.cache
def lowered(count, length, element, has_p, has_k, parts):
    x, row = f"tensor<{count}x{length}x{element}>", f"tensor<{count}x{element}>"
    arguments = [("%x", x)] + [("%p", row)] * has_p + [("%k", f"tensor<{count}xi32>")] * has_k
    text = f"""
      func.func @filter({', '.join(f"{n}: {t}" for n, t in arguments)}) -> {x} attributes {{ascend.kernel}} {{
        %0 = "ascend.apply_top_k_top_p"({', '.join(n for n, _ in arguments)})
          {{operandSegmentSizes = array<i32: 1, {int(has_p)}, {int(has_k)}>}} : ({', '.join(t for _, t in arguments)}) -> {x}
        return %0 : {x}
      }}"""
    context = jascend.dialect.make_context()
    with context:
        return context, run_pipeline(ir.Module.parse(text), f"lower-to-tile{{parts={parts}}}")


def run(logits, p, k, parts):
    element = next(name for name, dtype in DTYPES.items() if logits.dtype == dtype)
    context, module = lowered(*logits.shape, element, p is not None, k is not None, parts)
    with context:
        (out,) = run_kernel(module, "filter", [x for x in (logits, p, k) if x is not None], 2 * parts)
    return out


def same(actual, expected):
    nan = np.isnan(expected.astype(np.float32))
    width = f"u{expected.dtype.itemsize}"
    np.testing.assert_array_equal(np.isnan(actual.astype(np.float32)), nan)
    np.testing.assert_array_equal(actual.view(width)[~nan], expected.view(width)[~nan])


@pytest.mark.parametrize(("element", "length", "splits"), [
    ("f32", 1025, (1,)),
    *(pytest.param(element, length, splits, marks=pytest.mark.long) for element, length, splits in [
        ("f32", 5000, (1, 3)), ("f32", 9001, (1, 2, 5)), ("f16", 1025, (1,)), ("f16", 5000, (1, 3)),
        ("f16", 9001, (1, 2, 5)), ("bf16", 1025, (1,)), ("bf16", 5000, (1, 3)), ("bf16", 9001, (1, 2, 5)),
    ]),
])  # fmt: skip
def test_small_k_over_any_split(element, length, splits):
    rng = np.random.default_rng(length)
    logits = np.stack(rows(rng, length)).astype(DTYPES[element])
    k = rng.choice([1, 2, 50, 127, 128], len(logits)).astype(np.int32)
    p = rng.choice([0, 0.5, 0.9, 1, 1.5, -0.5, np.nan], len(logits)).astype(np.float32).astype(logits.dtype)
    expected = np.asarray(ja.apply_top_k_top_p(logits, p, k))
    for parts in splits:
        same(run(logits, p, k, parts), expected)


@pytest.mark.parametrize("element", ["f32", *(pytest.param(e, marks=pytest.mark.long) for e in ("f16", "bf16"))])
@pytest.mark.parametrize(("has_p", "has_k"), [(True, False), (False, True), (True, True)], ids=["p", "k", "both"])
def test_any_k_by_search(element, has_p, has_k):
    """Rows long enough for a sample, lists longer than a tile."""
    length = 20001
    rng = np.random.default_rng(3)
    logits = np.stack(rows(rng, length)).astype(DTYPES[element])
    k = rng.choice([0, 129, 300, length // 3, length - 1, length, length + 5], len(logits)).astype(np.int32)
    p = rng.choice([0, 0.5, 0.9, 1, 1.5, -0.5, np.nan], len(logits)).astype(np.float32).astype(logits.dtype)
    given = {name: x for name, x, has in (("p", p, has_p), ("k", k, has_k)) if has}
    actual = run(logits, given.get("p"), given.get("k"), 1)
    same(actual, np.asarray(ja.apply_top_k_top_p(logits, **given)))
    if has_p and has_k:
        same(run(logits, p, k, 2), actual)
