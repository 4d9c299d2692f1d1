"""What the sampler lowers to, exported programs, 64-bit mode, several devices."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export
from processes import FOUR_DEVICES, run

import jascend as ja


def spec(*shape, dtype=jnp.float32):
    return jax.ShapeDtypeStruct(shape, dtype)


def specs(batch, size, dtype=jnp.float32):
    return spec(*batch, size, dtype=dtype), spec(*batch, dtype=jnp.int32), spec(*batch, dtype=dtype)


def ascend_text(function, *specs):
    return jax.jit(function).trace(*specs).lower(lowering_platforms=("ascend",)).as_text()


def ascend_ops(text):
    return [line.split("=", 1)[1].strip() for line in text.splitlines() if '"ascend.' in line]


def test_operation():
    text = ascend_text(ja.top_k_top_p_sample, *specs((4,), 9), spec(4, 9))
    assert "stablehlo" not in text
    assert ascend_ops(text) == [
        '"ascend.top_k_top_p_sample"(%arg0, %arg1, %arg2, %arg3) {eps = 9.99999993E-9 : f32, input_is_logits = true, '
        "is_need_logits = false, is_need_sample_result = false, ks_max = 1024 : i64, "
        "operandSegmentSizes = array<i32: 1, 1, 1, 1, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0>, "
        "top_k_guess = 32 : i64} "
        ": (tensor<4x9xf32>, tensor<4xi32>, tensor<4xf32>, tensor<4x9xf32>) -> tensor<4xi32>"
    ]


def test_attributes_and_all_results():
    def function(x, k, p, m):
        asked = dict(is_need_logits=True, is_need_sample_result=True, target="ascend950")
        static = dict(eps=0.5, top_k_guess=-3, ks_max=10, input_is_logits=False)
        return ja.top_k_top_p_sample(x, k, p, None, m, **static, **asked)

    (op,) = ascend_ops(ascend_text(function, *specs((4,), 9, jnp.bfloat16), spec(4, dtype=jnp.bfloat16)))
    for part in (
        "eps = 5.000000e-01 : f32", "is_need_logits = true", "top_k_guess = -3 : i64", "ks_max = 10 : i64",
        "input_is_logits = false", "is_need_sample_result = true", 'target = "ascend950"',
        "operandSegmentSizes = array<i32: 1, 1, 1, 0, 1>", "resultSegmentSizes = array<i32: 0, 1, 1, 1>",
        "-> (tensor<4x9xf32>, tensor<4x9xi32>, tensor<4x9xf32>)",
    ):  # fmt: skip
        assert part in op


def test_the_operation_is_one_that_our_dialect_accepts():
    from mlir import ir

    import jascend.dialect

    with jascend.dialect.make_context():
        for keywords in ({}, {"is_need_logits": True}, {"is_need_sample_result": True}):
            run = lambda *operands: tuple(x for x in ja.top_k_top_p_sample(*operands, **keywords) if x is not None)
            module = ir.Module.parse(ascend_text(run, *specs((4,), 9)))
            assert jascend.dialect.verify(module.operation)


def test_vmap_folds_into_the_batch():
    function = jax.vmap(jax.vmap(ja.top_k_top_p_sample, in_axes=(0, None, 0)), in_axes=(0, 0, None))
    text = ascend_text(function, spec(3, 5, 2, 9), spec(3, 2, dtype=jnp.int32), spec(5, 2))
    (op,) = ascend_ops(text)
    assert op.endswith(": (tensor<30x9xf32>, tensor<30xi32>, tensor<30xf32>) -> tensor<30xi32>")
    assert "(tensor<30xi32>) -> tensor<3x5x2xi32>" in text and "stablehlo.while" not in text


def test_symbolic_batch():
    b, n = export.symbolic_shape("b, n")
    text = ascend_text(ja.top_k_top_p_sample, *specs((b,), 9), spec(b, 9))
    (op,) = ascend_ops(text)
    assert op.endswith("(tensor<?x9xf32>, tensor<?xi32>, tensor<?xf32>, tensor<?x9xf32>) -> tensor<?xi32>")
    text = ascend_text(jax.vmap(ja.top_k_top_p_sample), *specs((n, b), 9))
    assert ascend_ops(text)[0].endswith("-> tensor<?xi32>") and "tensor<?x?xi32>" in text


@pytest.mark.parametrize("sizes, name", [pytest.param((3, 40), "b, 40", marks=pytest.mark.long), ((2, 300), "b, v")])
def test_exported_with_symbolic_sizes(sizes, name):
    batch, size = sizes
    b, v = export.symbolic_shape(name)
    random = np.random.default_rng(0)
    logits = random.normal(size=sizes).astype(np.float32)
    k, p = np.array([0, 9, 3][:batch], np.int32), np.array([0.9, 0.5, 1.0][:batch], np.float32)
    q = random.exponential(size=sizes).astype(np.float32)
    for form, operands in (
        (lambda x, k, p, q: ja.top_k_top_p_sample(x, k, p, q, is_need_logits=True), (logits, k, p, q)),
        (lambda x, k, p: ja.top_k_top_p_sample(x, k, p, is_need_sample_result=True), (logits, k, p)),
    ):
        types = (*specs((b,), v), spec(b, v))[: len(operands)]
        exported = export.deserialize(export.export(jax.jit(form))(*types).serialize())
        result = exported.call(*operands)
        assert type(result).__name__ == "TopKTopPSample"  # the tuple itself is serialized
        for got, expected in zip(result, jax.jit(form)(*operands)):
            np.testing.assert_array_equal(got, expected)


@pytest.mark.long
def test_with_64_bit_types():
    run(
        """
import numpy as np, jax, pytest, jascend as ja
assert jax.config.jax_enable_x64
random = np.random.default_rng(0)
x, q = random.normal(size=(3, 2100)).astype(np.float32), random.exponential(size=(3, 2100)).astype(np.float32)
k, p, m = np.array([0, 9, 500], np.int32), np.array([.8, 1, .5], np.float32), np.array([0, .2, 0], np.float32)
order = np.argsort(-x, kind="stable")
result = ja.top_k_top_p_sample(x, k, p, None, m, is_need_sample_result=True, is_need_logits=True)
assert result.logits_idx.dtype == np.int64
assert result.logits_sort_masked.dtype == result.logits_top_kp_select.dtype == np.float32
number = (result.logits_idx >= 0).sum(axis=1)
assert number[0] > 500 > number[2] > number[1] > 0
for row in range(3):
    np.testing.assert_array_equal(result.logits_idx[row][:number[row]], order[row][:number[row]])
chosen = ja.top_k_top_p_sample(x, k, p, q, m).logits_select_idx
assert chosen.dtype == np.int64
scores = np.where(result.logits_idx >= 0, result.logits_sort_masked / (q + np.float32(1e-8)), -1)
np.testing.assert_array_equal(chosen, np.asarray(result.logits_idx)[range(3), np.argmax(scores, axis=1)])
np.testing.assert_array_equal(ja.top_k_top_p_sample(x, 9, 0.8).logits_select_idx, x.argmax(axis=1))
with pytest.raises(ja.errors.ParamInvalid, match="top_k must be int32, but is int64"):
    ja.top_k_top_p_sample(x, k.astype(np.int64), p)
with pytest.raises(ja.errors.ParamInvalid, match="q must be float32, but is float64"):
    ja.top_k_top_p_sample(x, k, p, q.astype(np.float64))
text = jax.jit(ja.top_k_top_p_sample).trace(x, k, p).lower(lowering_platforms=("ascend",)).as_text()
assert "tensor<3xf32>) -> tensor<3xi64>" in text
""",
        JAX_ENABLE_X64="1",
    )


@pytest.mark.long
def test_batches_over_several_devices_stay_local():
    """No row leaves its device. (What is reduced over devices is one bit: whether any row needs the longer way.)"""
    run(
        """
import functools, re, numpy as np, jax, jascend as ja
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P
mesh = Mesh(np.array(jax.devices()).reshape(2, 2), ("batch", "more"))
random = np.random.default_rng(0)
x, q = random.normal(size=(8, 2100)).astype(np.float32), random.exponential(size=(8, 2100)).astype(np.float32)
k, p = np.array([50, 0] * 4, np.int32), np.full(8, .8, np.float32)
put = lambda a, *spec, mesh=mesh: jax.device_put(a, NamedSharding(mesh, P(*spec)))
rows = ("batch", "more")
index = functools.partial(ja.top_k_top_p_sample, is_need_logits=True)
listed = functools.partial(ja.top_k_top_p_sample, is_need_sample_result=True)
same = lambda got, expected: jax.tree.map(np.testing.assert_array_equal, got, expected)
for form, operands, axes in ((index, (x, k, p, q), rows), (listed, (x, k, p), "batch")):
    sharded = [put(a, axes) for a in operands]
    compiled = jax.jit(form).lower(*sharded).compile()
    assert not re.search("all-gather|all-to-all|collective-permute", compiled.as_text())
    assert not [line for line in compiled.as_text().splitlines() if "all-reduce(" in line and "2100" in line]
    same(compiled(*sharded), form(*operands))
stacked = [a.reshape(2, 4, *a.shape[1:]) for a in (x, k, p, q)]
sharded = [put(a, *rows) for a in stacked]
compiled = jax.jit(jax.vmap(index)).lower(*sharded).compile()
assert not re.search("all-gather|all-to-all|collective-permute", compiled.as_text())
same(compiled(*sharded), jax.vmap(index)(*stacked))
mapped = jax.shard_map(index, mesh=mesh, in_specs=(P(rows),) * 4, out_specs=P(rows))
same(jax.jit(mapped)(x, k, p, q), index(x, k, p, q))
alike = functools.partial(jax.shard_map, mesh=mesh, in_specs=(P(), P(), P(), P(rows)))
drawn = alike(lambda *operands: index(*operands).logits_select_idx, out_specs=P(rows))(x[:2], k[:2], p[:2], q)
same(drawn, index(np.tile(x[:2], (4, 1)), np.tile(k[:2], 4), np.tile(p[:2], 4), q).logits_select_idx)
try:  # draws differ between devices: to call them one result is an error
    alike(lambda *operands: index(*operands).logits_select_idx, out_specs=P())(x[:2], k[:2], p[:2], q)
except ValueError as error:
    assert "replicat" in str(error)
else:
    raise AssertionError("shard_map took a result that varies for one that does not")
same(jax.jit(index)(put(x, None, "batch"), k, p, put(q, None, "more")), index(x, k, p, q))  # correct, if not local
explicit = jax.make_mesh((4,), ("batch",), axis_types=(AxisType.Explicit,))
with jax.set_mesh(explicit):
    result = jax.jit(index)(*(put(a, "batch", mesh=explicit) for a in (x, k, p, q)))
assert result.logits_select_idx.sharding.spec == P("batch")
assert result.logits_top_kp_select.sharding.spec == P("batch", None)
same(jax.tree.map(np.asarray, result), index(x, k, p, q))
""",
        **FOUR_DEVICES,
    )
