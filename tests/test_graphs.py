"""Whole graphs: library calls between our kernels, on the host in the libraries' place; the examples; what is refused."""

import importlib.util
import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from graphs import on_tiles
from jascend.backends.ascend.report import estimate
from jascend.dialect.libraries import LIBRARY

import jascend as ja

EXAMPLES = Path(__file__).parent.parent / "examples"
F32, BF16 = jnp.float32, jnp.bfloat16


def example(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def shape(*dims, dtype=F32):
    return jax.ShapeDtypeStruct(dims, dtype)


def values(spec):
    rng = np.random.default_rng(spec.size)
    if jnp.issubdtype(spec.dtype, jnp.floating):
        return jnp.asarray(rng.normal(size=spec.shape), spec.dtype)
    return jnp.asarray(rng.integers(0, 3, spec.shape), spec.dtype)


INT = jnp.int32
CALLS = {
    "dense": (lambda x, w: x @ w, [shape(4, 8), shape(8, 6)], ["aclnnMatmul"]),
    "dense_more_rows": (lambda x, w: x @ w, [shape(2, 3, 8), shape(8, 6)], ["aclnnMatmul"]),
    "transposed": (lambda x, w: jnp.einsum("bh,vh->bv", x, w), [shape(4, 8), shape(6, 8)], ["aclnnMatmul"]),
    "transposed_before": (lambda x, w: x @ w.T, [shape(4, 8), shape(6, 8)], ["aclnnMatmul"]),
    "transposed_both": (lambda x, w: x.T @ w.T, [shape(8, 4), shape(6, 8)], ["aclnnMatmul"]),
    "batch": (lambda w, x: jnp.einsum("tk,tkh->th", w, x), [shape(5, 2), shape(5, 2, 8)], ["aclnnBatchMatMul"]),
    "heads": (
        lambda q, k: jnp.einsum("bqhd,bkhd->bhqk", q, k), [shape(2, 3, 4, 8), shape(2, 5, 4, 8)],
        ["aclnnPermute", "aclnnPermute", "aclnnBatchMatMul"],
    ),
    "groups_transposed": (
        lambda x, w, n: jax.lax.ragged_dot(x, w.swapaxes(1, 2), n), [shape(9, 8), shape(3, 4, 8), shape(3, dtype=INT)],
        ["aclnnGroupedMatmulV5"],
    ),
    "groups_of_bytes": (
        lambda x, w, n: jax.lax.ragged_dot(x, w, n, preferred_element_type=INT),
        [shape(9, 8, dtype=jnp.int8), shape(3, 8, 4, dtype=jnp.int8), shape(3, dtype=INT)], ["aclnnGroupedMatmulV5"],
    ),
    "rows": (lambda x, i: x[i], [shape(7, 8, dtype=BF16), shape(2, 3, dtype=INT)], ["aclnnIndexSelect"]),
    "columns": (lambda x, i: jnp.take(x, i, axis=1, mode="clip"), [shape(4, 5), shape(6, dtype=INT)], ["aclnnIndexSelect"]),
    "swapped": (lambda x: jnp.transpose(x, (1, 2, 0)), [shape(4, 5, 2)], ["aclnnPermute"]),
    "largest": (lambda x: jnp.argmax(x, 0), [shape(4, 5)], ["aclnnArgMax"]),
    "smallest": (lambda x: jnp.argmin(x, -1), [shape(4, 5)], ["aclnnArgMin"]),
    "sums": (lambda x: (x.sum(0), x.mean((0, 1)), x.max(1), x.min((1, 2))), [shape(4, 5, 6)],
             ["aclnnReduceSum", "aclnnReduceSum", "aclnnAmax", "aclnnAmin"]),
    "whole_sums": (lambda x: (x.sum(-1), x.max(0), x.min(), x.astype(F32).sum(0)), [shape(4, 5, dtype=INT)],
                   ["aclnnReduceSum", "aclnnAmax", "aclnnAmin", "aclnnReduceSum"]),
    "running_sums": (lambda x, n: (jnp.cumsum(x, 1), jax.lax.cumsum(n, 0, reverse=True)), [shape(4, 5), shape(6, 2, dtype=INT)],
                     ["aclnnCumsum", "aclnnFlip", "aclnnCumsum", "aclnnFlip"]),
    "more_rows": (lambda x, y: jnp.concatenate([x, y, x, y], 0), [shape(4, 5), shape(1, 5)], ["aclnnCat", "aclnnCat"]),
    "side_by_side": (lambda x, y: jnp.concatenate([x, y], 1), [shape(4, 5), shape(4, 2)], ["aclnnCat"]),
    "stacked": (lambda x, y: jnp.stack([x, y], 1), [shape(4, 5), shape(4, 5)], ["aclnnCat"]),
    "padded": (lambda x: jnp.pad(x, ((1, 2), (0, 0)), constant_values=7), [shape(4, 5)], ["aclnnCat"]),
    "every_other": (lambda x: (x[:, 1::2], x[::3, 2:5:2]), [shape(7, 9)], ["aclnnSliceV2"] * 3),
    "backwards": (lambda x: x[:, ::-1], [shape(4, 5)], ["aclnnFlip"]),
    "one_each": (lambda x, i: jnp.take_along_axis(x, i[:, None], 1)[:, 0], [shape(4, 5), shape(4, dtype=INT)], ["aclnnIndexSelect"]),
    "last_token": (lambda x, i: jnp.take_along_axis(x, i[:, None, None], 1), [shape(4, 5, 6), shape(4, dtype=INT)],
                   ["aclnnIndexSelect"]),
    "slots": (lambda x, i, y: x.at[i].set(y, mode="promise_in_bounds"),
              [shape(9, 2, 4), jax.ShapeDtypeStruct((1,), INT), shape(1, 2, 4)], ["aclnnIndexCopy"]),
    "update": (lambda x, y, i: jax.lax.dynamic_update_slice(x, y, (0, i[0], 0)),
               [shape(2, 9, 4), shape(2, 3, 4), shape(1, dtype=INT)], ["aclnnIndexCopy"]),
    "window": (lambda x, i: jax.lax.dynamic_slice(x, (0, i[0]), (2, 4)), [shape(2, 9), shape(1, dtype=INT)],
               ["aclnnIndexSelect"]),
    "products": (lambda x, n: (jnp.prod(x, 1), n.prod(), jnp.cumprod(x, 1), jax.lax.cumprod(n, 0, reverse=True)),
                 [shape(4, 5), shape(6, 2, dtype=INT)],
                 ["aclnnProdDim"] * 3 + ["aclnnCumprod", "aclnnFlip", "aclnnCumprod", "aclnnFlip"]),
    "added": (lambda x, i, y: x.at[i].add(y), [shape(9, 4), shape(5, dtype=INT), shape(5, 4)], ["aclnnScatterAdd"]),
    "counted": (lambda n: jax.vmap(lambda row: jnp.bincount(row, length=4))(n), [shape(3, 7, dtype=INT)], ["aclnnScatterAdd"]),
    "products_of_bytes": (lambda x, w: jnp.einsum("bmk,bnk->bmn", x, w, preferred_element_type=INT),
                          [shape(3, 4, 8, dtype=jnp.int8), shape(3, 6, 8, dtype=jnp.int8)],
                          ["aclnnQuantMatmulV5"]),
    "remainders": (lambda x, y: (jax.lax.rem(x, y), x % 0.75), [shape(4, 5), shape(4, 5)], ["aclnnFmodTensor"] * 2),
    "first_that_holds": (lambda x, n: (jnp.argmax(x > 0, 0), jnp.argmin(n, 1)), [shape(4, 5), shape(4, 5, dtype=INT)],
                         ["aclnnArgMax", "aclnnArgMin"]),
    "some_and_all": (lambda x: ((x > 1).any(-1), (x > 0).all(0), (x > 9).any()), [shape(4, 5)], ["aclnnAmin", "aclnnAmax"]),
    "product_of_bytes": (lambda x, w: jax.lax.dot(x, w, preferred_element_type=INT),
                         [shape(4, 8, dtype=jnp.int8), shape(8, 6, dtype=jnp.int8)], ["aclnnQuantMatmulV5"]),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_library_calls(name):
    function, specs, expected = CALLS[name]
    arguments = [values(spec) for spec in specs]
    program = ja.compile(function, *arguments)
    assert [call.callee for call in program.library_calls] == expected
    references = jax.tree.leaves(jax.jit(function)(*arguments))
    for actual, reference in zip(on_tiles(program, *arguments), references, strict=True):
        assert (actual.shape, actual.dtype) == (reference.shape, reference.dtype)
        np.testing.assert_allclose(actual.astype(np.float32), np.asarray(reference, np.float32), rtol=1e-6, atol=1e-6)


def test_every_operator_of_the_libraries_is_called():
    assert {call for _, _, calls in CALLS.values() for call in calls} == set(LIBRARY)


def test_rows_out_of_bounds_are_filled():
    x, index = values(shape(4, 8)), jnp.array([0, 3, 4, -1, -5], INT)

    def take(x, i):
        return jnp.take(x, i, axis=0), jnp.take(x, i, axis=0, mode="clip")

    for actual, expected in zip(on_tiles(ja.compile(take, x, index), x, index), jax.jit(take)(x, index), strict=True):
        np.testing.assert_array_equal(actual, expected)


def test_a_product_wider_than_its_operands():
    """The libraries' results may be float32: nothing is widened before."""
    x, w = values(shape(4, 64, dtype=BF16)), values(shape(64, 6, dtype=BF16))

    def product(x, w):
        return jnp.dot(x, w, preferred_element_type=F32)

    program = ja.compile(product, x, w)
    assert not program.kernels and [call.type.dtype for call in program.library_calls] == ["float32"]
    (actual,) = on_tiles(program, x, w)
    np.testing.assert_allclose(actual, jax.jit(product)(x, w), rtol=1e-5, atol=1e-5)
    with pytest.raises(ja.errors.Unsupported, match="a product of float32 as float16"):
        ja.compile(lambda x, w: jnp.dot(x, w, preferred_element_type=jnp.float16), shape(4, 8), shape(8, 6))


def test_a_graph_without_kernels_of_ours_runs():
    x, w = values(shape(4, 8)), values(shape(8, 6))
    program = ja.compile(lambda x, w: x @ w, x, w)
    np.testing.assert_allclose(program(x, w), x @ w, rtol=1e-6)
    assert program.kernels == () and "aclnnMatmul: a call of CANN's library" in program.explain()
    report = program.profile(x, w)
    assert report.launches == 1 and report.microseconds == report.library_microseconds > 4
    (call,) = report.library_calls
    assert (call.flops, call.read_bytes, call.write_bytes) == (2 * 4 * 8 * 6, 4 * (4 * 8 + 8 * 6), 4 * 4 * 6)
    assert report.roofline.seconds == pytest.approx(call.seconds) and "an estimate" in str(report)
    assert json.loads(report.to_json())["library_calls"][0]["name"] == "aclnnMatmul"
    assert "aclnnMatmul" in report.to_html()


def test_a_large_product_is_bound_by_its_operations():
    specs = [shape(4096, 4096, dtype=BF16), shape(4096, 4096, dtype=BF16)]
    program = ja.compile(lambda x, w: x @ w, *specs)
    (call,) = program.library_calls
    found = estimate(call, "ascend910b")
    # 24 cube cores of 8192 operations a cycle at 1.85 GHz: 364 Top/s.
    assert found.seconds - found.launch_seconds == pytest.approx(2 * 4096**3 / 363.7e12, rel=1e-3)


def test_everything_unsupported_is_listed():
    def several(x, n):
        a = jax.lax.dot(n, n.T, preferred_element_type=INT)
        b = x.at[n[0]].max(1.0), x.astype(jnp.uint32).at[n[0]].set(1), jnp.cbrt(x)
        return a, b, jnp.sort(n.astype(jnp.int16)), jax.lax.ragged_dot(x, x[None].astype(BF16), n[:1, 0])

    with pytest.raises(ja.errors.Unsupported) as caught:
        ja.compile(several, shape(8, 8), shape(8, 8, dtype=INT))
    text = str(caught.value)
    assert "unsupported operation 'dot_general': a product of int32 and int32" in text
    assert "unsupported operation 'scatter-max': the libraries replace slices and add to them, no more" in text
    assert "a scatter of uint32 that leaves out what is out of bounds" in text and "mode='promise_in_bounds'" in text
    assert "unsupported operation 'cbrt': kernels do not compute 'math.cbrt'" in text
    assert "unsupported operation 'ragged_dot_general': a ragged product of float32 and bfloat16" in text
    assert "unsupported operation 'sort': a sort of int16" in text


def test_running_results_that_no_library_has():
    """By doubling; of products on 950, whose libraries have none. However long the rows are, kernels stay short."""

    def running(x, n):
        return jax.lax.cummax(x, 1), jax.lax.cummin(x, 0, reverse=True), jax.lax.cummax(n, 1), jax.lax.cumlogsumexp(x, 1)

    x, n = values(shape(4, 37)), values(shape(4, 6, dtype=INT))
    for function, target in ((running, "ascend910b"), (lambda x, n: (jnp.cumprod(x, 1), jnp.cumprod(n, 1)), "ascend950")):
        program = ja.compile(function, x, n, target=target)
        assert "aclnnCumprod" not in [call.callee for call in program.library_calls]
        for actual, expected in zip(on_tiles(program, x, n), jax.tree.leaves(jax.jit(function)(x, n)), strict=True):
            np.testing.assert_allclose(actual, expected, rtol=2e-6, atol=1e-6)
    long = ja.compile(lambda x: jax.lax.cummax(x, 1), shape(4, 1000))
    assert max(len(kernel.source.splitlines()) for kernel in long.kernels) < 1000


def test_positions_of_a_gather_are_computed_as_rows():
    """[B, N, 1, 1] has N columns, though the last dimension has one."""
    x, i = values(shape(4, 300)), values(shape(4, 300, dtype=INT))
    program = ja.compile(lambda x, i: jnp.take_along_axis(x, i, 1), x, i)
    report = program.profile(x, i)
    assert report.microseconds < 40
    np.testing.assert_array_equal(report.outputs, jnp.take_along_axis(x, i, 1))


def test_a_decode_head():
    head = example("decode_head")
    arguments = head.arguments(3, 96, 300)
    program = ja.compile(head.next_token, *arguments)
    names = [kernel.name.removeprefix("jascend_next_token_") for kernel in program.kernels]
    assert names == ["row_wise", "top_k_top_p_sample"] and [c.callee for c in program.library_calls] == ["aclnnMatmul"]
    (actual,) = on_tiles(program, *arguments)
    np.testing.assert_array_equal(actual, jax.jit(head.next_token)(*arguments))


def test_a_layer_of_experts():
    moe = example("moe_layer")
    x, weights = moe.arguments(20, 64, 64, 64)
    (tokens,) = jax.export.symbolic_shape("tokens")
    program = ja.compile(moe.moe_layer, jax.ShapeDtypeStruct((tokens, 64), x.dtype), weights)
    assert [call.callee for call in program.library_calls].count("aclnnGroupedMatmulV5") == 3
    for count in (4, 20):
        (actual,) = on_tiles(program, x[:count], weights)
        expected = np.asarray(jax.jit(moe.moe_layer)(x[:count], weights), np.float32)
        np.testing.assert_allclose(actual.astype(np.float32), expected, atol=0.02 * np.abs(expected).max())


@pytest.mark.long
@pytest.mark.parametrize("target", ["ascend910b", "ascend950"])
@pytest.mark.parametrize(("name", "sizes"), [("decode_head", (4, 256, 1000)), ("moe_layer", (6, 128, 64, 64))])
def test_the_examples_on_the_twin(name, sizes, target):
    module = example(name)
    arguments = module.arguments(*sizes)
    function = module.next_token if name == "decode_head" else module.moe_layer
    program = ja.compile(function, *arguments, target=target)
    actual, expected = (np.asarray(run(*arguments), np.float32) for run in (program, jax.jit(function)))
    np.testing.assert_allclose(actual, expected, atol=0.02 * np.abs(expected).max() if name == "moe_layer" else 0)
    report = program.profile(*arguments)
    assert not report.findings and report.launches == len(program.kernels) + len(program.library_calls)
