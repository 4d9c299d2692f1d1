"""Gating: what it lowers to, export, 64-bit mode, several devices."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export
from processes import FOUR_DEVICES, run

import jascend as ja

F32, I32 = jnp.float32, jnp.int32
SIGMOID = dict(k=3, norm_type=1)


def spec(*shape, dtype=F32):
    return jax.ShapeDtypeStruct(shape, dtype)


def ascend_text(function, *specs):
    return jax.jit(function).trace(*specs).lower(lowering_platforms=("ascend",)).as_text()


def ascend_ops(text):
    """The gatings; what moves data around them may be a library's."""
    return [line.split("=", 1)[1].strip() for line in text.splitlines() if '"ascend.moe_gating_top_k"' in line]


def test_attributes_and_operands():
    def gate(x, bias):
        return ja.moe_gating_top_k(
            x, 8, bias=bias, k_group=4, group_count=8, group_select_mode=1, norm_type=1, routed_scaling_factor=2.5,
            eps=1e-6, target="ascend910b",
        )  # fmt: skip

    text = ascend_text(gate, spec(4, 256), spec(256))
    assert ascend_ops(text) == [
        '"ascend.moe_gating_top_k"(%arg0, %arg1) {eps = 9.99999997E-7 : f32, group_count = 8 : i64, '
        "group_select_mode = 1 : i64, k = 8 : i64, k_group = 4 : i64, norm_type = 1 : i64, "
        "operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0>, out_flag = false, renorm = 0 : i64, "
        "resultSegmentSizes = array<i32: 1, 1, 0>, routed_scaling_factor = 2.500000e+00 : f32, "
        'target = "ascend910b"} : (tensor<4x256xf32>, tensor<256xf32>) -> (tensor<4x8xf32>, tensor<4x8xi32>)'
    ]
    assert "stablehlo" not in text


@pytest.mark.parametrize(
    "arguments, segments",
    [
        ((), "1, 0, 0, 0, 0, 0"),
        (("bias", "additional_bias", "additional_token_mask"), "1, 1, 0, 0, 1, 1"),
        (("bias", "additional_bias"), "1, 1, 0, 0, 0, 0"),  # no effect without a mask
        (("bias", "input_ids", "tid2eid"), "1, 0, 1, 1, 0, 0"),  # hash routing ignores biases
    ],
)
def test_operands_that_have_an_effect(arguments, segments):
    specs = dict(
        bias=spec(16), additional_bias=spec(16), additional_token_mask=spec(4, dtype=bool),
        input_ids=spec(4, dtype=I32), tid2eid=spec(9, 3, dtype=I32),
    )  # fmt: skip
    gate = lambda x, *values: ja.moe_gating_top_k(x, 3, out_flag=True, **dict(zip(arguments, values)))
    (op,) = ascend_ops(ascend_text(gate, spec(4, 16), *(specs[name] for name in arguments)))
    assert f"operandSegmentSizes = array<i32: {segments}>" in op and "resultSegmentSizes = array<i32: 1, 1, 1>" in op
    assert op.endswith("-> (tensor<4x3xf32>, tensor<4x3xi32>, tensor<4x16xf32>)")


def test_three_dimensions_and_vmap_fold_into_the_tokens():
    gate = lambda x, bias: ja.moe_gating_top_k(x, bias=bias, **SIGMOID)
    text = ascend_text(jax.vmap(jax.vmap(gate, in_axes=(0, None)), in_axes=(1, None)), spec(3, 5, 2, 7, 16), spec(16))
    (op,) = ascend_ops(text)
    assert op.endswith(": (tensor<210x16xf32>, tensor<16xf32>) -> (tensor<210x3xf32>, tensor<210x3xi32>)")
    assert "tensor<5x3x2x7x3xf32>" in text and "stablehlo.while" not in text


def test_batches_of_biases_are_an_operation_each():
    gate = lambda x, bias: ja.moe_gating_top_k(x, bias=bias, **SIGMOID)
    text = ascend_text(jax.vmap(jax.vmap(gate, in_axes=(0, None)), in_axes=(None, 0)), spec(5, 7, 16), spec(2, 16))
    ops = ascend_ops(text)
    assert len(ops) == 10 and all("(tensor<7x16xf32>, tensor<16xf32>)" in op for op in ops)
    assert "stablehlo.while" not in text
    (n,) = export.symbolic_shape("n")
    with pytest.raises(
        ja.errors.Unsupported, match="moe_gating_top_k: bias of its own for every entry .* unknown size"
    ):
        ascend_text(jax.vmap(gate), spec(n, 7, 16), spec(n, 16))


def test_symbolic_tokens():
    b, s = export.symbolic_shape("b, s")
    gate = lambda x, ids, table: ja.moe_gating_top_k(x, 3, input_ids=ids, tid2eid=table)
    text = ascend_text(gate, spec(b, s, 16), spec(b, s, dtype=I32), spec(9, 3, dtype=I32))
    (op,) = ascend_ops(text)
    assert op.endswith(": (tensor<?x16xf32>, tensor<?xi32>, tensor<9x3xi32>) -> (tensor<?x3xf32>, tensor<?x3xi32>)")
    text = ascend_text(jax.vmap(lambda x: ja.moe_gating_top_k(x, **SIGMOID)), spec(b, s, 16))
    assert ascend_ops(text)[0].endswith("-> (tensor<?x3xf32>, tensor<?x3xi32>)") and "tensor<?x?x3xf32>" in text


def test_locations_survive():
    lowered = jax.jit(lambda x: ja.moe_gating_top_k(x, 3)).trace(spec(4, 16)).lower(lowering_platforms=("ascend",))
    text = lowered.as_text(debug_info=True)
    assert re.search(r'"ascend\.moe_gating_top_k".* loc\(#loc\d+\)', text) and "_lowering.py" in text


def test_elsewhere_there_is_no_ascend_operation_and_no_sort():
    grouped = dict(SIGMOID, k_group=2, group_count=4, group_select_mode=1)
    text = jax.jit(lambda x: ja.moe_gating_top_k(x, **grouped)).lower(spec(4, 16)).as_text()
    assert "ascend" not in text and "stablehlo.sort" not in text and "custom_call" not in text
    both = jax.jit(lambda x: ja.moe_gating_top_k(x, 3)).trace(spec(4, 16)).lower(lowering_platforms=("cpu", "ascend"))
    assert "stablehlo.case" in both.as_text() and len(ascend_ops(both.as_text())) == 1


@pytest.mark.parametrize("rank", [2, 3])
def test_exported_with_symbolic_sizes(rank):
    random = np.random.default_rng(0)
    sizes = (7,) if rank == 2 else (2, 3)
    lead = export.symbolic_shape("b" if rank == 2 else "b, s")

    def gate(x, bias, mask):
        other = dict(additional_bias=-bias, additional_token_mask=mask)
        return ja.moe_gating_top_k(x, 6, bias=bias, norm_type=2, group_count=8, k_group=3, out_flag=True, **other)

    operands = random.normal(size=(*sizes, 40)).astype(np.float32), random.normal(size=40).astype(np.float32)
    mask = random.random(sizes) > 0.5
    exported = export.export(jax.jit(gate))(spec(*lead, 40), spec(40), spec(*lead, dtype=bool))
    got = export.deserialize(exported.serialize()).call(*operands, mask)
    assert type(got).__name__ == "MoeGating"
    jax.tree.map(np.testing.assert_array_equal, got, gate(*operands, mask))


def test_exported_without_out():
    exported = export.export(jax.jit(lambda x: ja.moe_gating_top_k(x, 2)))(spec(3, 8))
    got = export.deserialize(exported.serialize()).call(jnp.ones((3, 8)))
    assert got.out is None
    np.testing.assert_array_equal(got.expert_idx, [[0, 1]] * 3)


def test_with_64_bit_types():
    run(
        """
import numpy as np, jax, pytest, jascend as ja
assert jax.config.jax_enable_x64
random = np.random.default_rng(0)
x = random.normal(size=(5, 70)).astype(np.float32)
got = ja.moe_gating_top_k(x, 6, bias=x[0], norm_type=1, group_count=7, k_group=3, group_select_mode=1, out_flag=True)
assert [r.dtype for r in got] == [np.float32, np.int32, np.float32]
score = 1 / (1 + np.exp(-x.astype(float)))
biased = (score + x[0]).reshape(5, 7, 10)
best = np.argsort(-np.sort(biased, -1)[..., -2:].sum(-1), -1)[:, 3:]
np.put_along_axis(biased, best[..., None], -np.inf, 1)
ids = np.argsort(-biased.reshape(5, 70), -1)[:, :6]
np.testing.assert_array_equal(got.expert_idx, ids)
np.testing.assert_allclose(got.out, score, rtol=1e-6)
many = ja.moe_gating_top_k(x, 69)
np.testing.assert_array_equal(many.expert_idx, np.argsort(-x, -1)[:, :69])
rows, table = random.integers(0, 9, 5), random.integers(0, 70, (9, 4))
for rows_dtype in (np.int32, np.int64):
    for table_dtype in (np.int32, np.int64):
        got = ja.moe_gating_top_k(x, 4, input_ids=rows.astype(rows_dtype), tid2eid=table.astype(table_dtype))
        assert got.expert_idx.dtype == np.int32
        np.testing.assert_array_equal(got.expert_idx, table[rows])
table[:, 1], rows[2] = 2**32 + 3, 2**32  # would be valid in 32 bits
got = ja.moe_gating_top_k(x, 4, input_ids=rows, tid2eid=table)
np.testing.assert_array_equal(got.y[:, 1], np.zeros(5))
np.testing.assert_array_equal(got.expert_idx[2], [-1] * 4)
with pytest.raises(ja.errors.ParamInvalid, match="x must be float32 or float16 or bfloat16, but is float64"):
    ja.moe_gating_top_k(x.astype(float), 4)
gate = lambda x, rows, table: ja.moe_gating_top_k(x, 4, input_ids=rows, tid2eid=table)
text = jax.jit(gate).trace(x, rows, table).lower(lowering_platforms=("ascend",)).as_text()
assert "(tensor<5x70xf32>, tensor<5xi64>, tensor<9x4xi64>) -> (tensor<5x4xf32>, tensor<5x4xi32>)" in text
""",
        JAX_ENABLE_X64="1",
    )


def test_batches_over_several_devices_stay_local():
    run(
        """
import numpy as np, jax, jascend as ja, re
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
mesh = Mesh(np.array(jax.devices()), ("batch",))
assert mesh.size == 4
x = np.random.default_rng(0).normal(size=(8, 64)).astype(np.float32)
bias, ids, table = x[0], np.arange(8, dtype=np.int32), np.arange(48, dtype=np.int32).reshape(8, 6)
put = lambda a, *spec: jax.device_put(a, NamedSharding(mesh, P(*spec)))
gates = {
    "groups": (lambda x, b: ja.moe_gating_top_k(x, 6, bias=b, norm_type=1, group_count=8, k_group=4), (x, bias)),
    "softmax": (lambda x, b: ja.moe_gating_top_k(x, 6, bias=b, out_flag=True), (x, bias)),
    "hash": (lambda x, ids, table: ja.moe_gating_top_k(x, 6, input_ids=ids, tid2eid=table), (x, ids, table)),
}
for name, (gate, operands) in gates.items():
    specs = [P("batch", None), P("batch"), P()] if name == "hash" else [P("batch", None), P()]
    sharded = [put(a, *s) for a, s in zip(operands, specs)]
    compiled = jax.jit(gate).lower(*sharded).compile()
    assert not re.search("all-gather|all-reduce|all-to-all|collective-permute", compiled.as_text()), name
    jax.tree.map(np.testing.assert_array_equal, compiled(*sharded), gate(*operands))
    mapped = jax.shard_map(gate, mesh=mesh, in_specs=tuple(specs), out_specs=P("batch"))
    jax.tree.map(np.testing.assert_array_equal, mapped(*operands), gate(*operands))
by_column = put(x, None, "batch")
gate, operands = gates["groups"]
jax.tree.map(np.testing.assert_array_equal, jax.jit(gate)(by_column, bias), gate(*operands))
""",
        **FOUR_DEVICES,
    )
