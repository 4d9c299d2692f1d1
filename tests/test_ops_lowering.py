"""What the operators lower to: `ascend` operations on the platform `ascend`, plain StableHLO elsewhere."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

import jascend as ja

F32, I32 = jnp.float32, jnp.int32


def spec(*shape, dtype=F32):
    return jax.ShapeDtypeStruct(shape, dtype)


def ascend_text(function, *specs):
    return jax.jit(function).trace(*specs).lower(lowering_platforms=("ascend",)).as_text()


def ascend_ops(text):
    return [line.split("=", 1)[1].strip() for line in text.splitlines() if '"ascend.' in line]


def test_filter():
    text = ascend_text(ja.apply_top_k_top_p, spec(4, 100), spec(4), spec(4, dtype=I32))
    assert ascend_ops(text) == [
        '"ascend.apply_top_k_top_p"(%arg0, %arg1, %arg2) {operandSegmentSizes = array<i32: 1, 1, 1>} '
        ": (tensor<4x100xf32>, tensor<4xf32>, tensor<4xi32>) -> tensor<4x100xf32>"
    ]
    assert "stablehlo" not in text


@pytest.mark.parametrize(
    "function, specs, segments",
    [
        (lambda x, p: ja.apply_top_k_top_p(x, p), (spec(4, 9), spec(4)), "1, 1, 0"),
        (lambda x, k: ja.apply_top_k_top_p(x, None, k), (spec(4, 9), spec(4, dtype=I32)), "1, 0, 1"),
        (
            lambda x, k: ja.apply_top_k_top_p_with_sorted(*ja.sort(x), k=k),
            (spec(4, 9), spec(4, dtype=I32)),
            "1, 1, 0, 1, 0",
        ),
        (lambda x: ja.apply_top_k_top_p_with_sorted(*ja.sort(x), 0.5, 3, x), (spec(4, 9),), "1, 1, 1, 1, 1"),
        (lambda x: ja.apply_top_k_top_p_with_sorted(*ja.sort(x), 0.5, None, x), (spec(4, 9),), "1, 1, 1, 0, 1"),
    ],
)
def test_absent_operands(function, specs, segments):
    text = ascend_text(function, *specs)
    assert f"operandSegmentSizes = array<i32: {segments}>" in text
    assert len(re.findall(r'"ascend\.apply_top_k_top_p\w*"\(', text)) == 1


def test_sort_and_the_sorted_filter():
    def function(x, p, k):
        values, indices = ja.sort(x)
        return ja.apply_top_k_top_p_with_sorted(values, indices, p, k, x, target="ascend910b")

    text = ascend_text(function, spec(4, 9, dtype=jnp.bfloat16), spec(4, dtype=jnp.bfloat16), spec(4, dtype=I32))
    sort, filtered = ascend_ops(text)
    assert sort.startswith('"ascend.sort"(%arg0) {descending = false} : (tensor<4x9xbf16>)')
    assert sort.endswith("-> (tensor<4x9xbf16>, tensor<4x9xi32>)")
    assert filtered.startswith('"ascend.apply_top_k_top_p_with_sorted"(%0#0, %0#1, %arg1, %arg2, %arg0) {')
    assert 'target = "ascend910b"' in filtered


def test_sort_takes_any_rank():
    text = ascend_text(lambda x: ja.sort(x, descending=True), spec(2, 3, 4))
    assert ascend_ops(text) == [
        '"ascend.sort"(%arg0) {descending = true} : (tensor<2x3x4xf32>) -> (tensor<2x3x4xf32>, tensor<2x3x4xi32>)'
    ]


def test_vmap_folds_into_the_batch():
    function = jax.vmap(jax.vmap(ja.apply_top_k_top_p, in_axes=(0, None, None)), in_axes=(0, 0, None))
    text = ascend_text(function, spec(3, 5, 2, 9), spec(3, 2), spec(2, dtype=I32))
    (op,) = ascend_ops(text)
    assert op.endswith(": (tensor<30x9xf32>, tensor<30xf32>, tensor<30xi32>) -> tensor<30x9xf32>")
    assert re.search(r"stablehlo\.reshape %\d+ : \(tensor<30x9xf32>\) -> tensor<3x5x2x9xf32>", text)
    assert "stablehlo.while" not in text


def test_symbolic_sizes():
    b, n, v = export.symbolic_shape("b, n, v")
    text = ascend_text(ja.apply_top_k_top_p, spec(b, 9), spec(b), spec(b, dtype=I32))
    assert ascend_ops(text)[0].endswith(": (tensor<?x9xf32>, tensor<?xf32>, tensor<?xi32>) -> tensor<?x9xf32>")
    text = ascend_text(lambda x: ja.apply_top_k_top_p_with_sorted(*ja.sort(x), 0.5, 3), spec(b, v))
    assert len(ascend_ops(text)) == 2 and "tensor<?x?xf32>" in text
    text = ascend_text(jax.vmap(ja.apply_top_k_top_p), spec(n, b, 9), spec(n, b), spec(n, b, dtype=I32))
    assert ascend_ops(text)[0].endswith("-> tensor<?x9xf32>") and "tensor<?x?x9xf32>" in text


def test_locations_survive():
    traced = jax.jit(ja.apply_top_k_top_p).trace(spec(4, 9), spec(4))
    text = traced.lower(lowering_platforms=("ascend",)).as_text(debug_info=True)
    assert re.search(r'"ascend\.apply_top_k_top_p".* loc\(#loc\d+\)', text)
    assert "test_ops_lowering.py" in text


def test_several_platforms_at_once():
    traced = jax.jit(ja.apply_top_k_top_p).trace(spec(4, 9), spec(4))
    text = traced.lower(lowering_platforms=("cpu", "ascend")).as_text()
    assert "stablehlo.case" in text and len(ascend_ops(text)) == 1


def test_elsewhere_there_is_no_ascend_operation_and_no_sort():
    text = jax.jit(ja.apply_top_k_top_p).lower(spec(4, 9), spec(4), spec(4, dtype=I32)).as_text()
    assert "ascend" not in text and "stablehlo.sort" not in text and "custom_call" not in text


@pytest.mark.parametrize("sizes, name", [((3, 40), "b, 40"), pytest.param((2, 1500), "b, v", marks=pytest.mark.long)])
def test_exported_with_symbolic_sizes(sizes, name):
    batch, size = sizes
    b, v = export.symbolic_shape(name)
    random = np.random.default_rng(0)
    operands = (
        random.normal(size=sizes).astype(np.float32),
        random.uniform(0.3, 0.9, batch).astype(np.float32),
        random.integers(0, size, batch).astype(np.int32),
    )
    exported = export.export(jax.jit(ja.apply_top_k_top_p))(spec(b, v), spec(b), spec(b, dtype=I32))
    exported = export.deserialize(exported.serialize())
    np.testing.assert_array_equal(exported.call(*operands), ja.apply_top_k_top_p(*operands))


def test_the_platform_does_not_disturb_cpu_users(recwarn):
    assert jax.default_backend() == "cpu"
    assert {device.platform for device in jax.devices()} == {"cpu"}
    with pytest.raises(RuntimeError, match="ascend"):
        jax.devices("ascend")
    assert not recwarn.list
