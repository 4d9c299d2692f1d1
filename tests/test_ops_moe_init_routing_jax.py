"""MoE routing under JAX's transformations, and what it lowers to."""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
import routing_oracle as oracle
from jax import export
from processes import FOUR_DEVICES, run
from test_ops_moe_init_routing import check

import jascend as ja

F32 = np.float32
BF16 = ml_dtypes.bfloat16


def spec(*shape, dtype=jnp.float32):
    return jax.ShapeDtypeStruct(shape, dtype)


def operands(lead=(), tokens=5, slots=3, size=6, experts=4, seed=0):
    random = np.random.default_rng(seed)
    x = random.normal(size=(*lead, tokens, size)).astype(F32)
    return x, random.integers(-1, experts, (*lead, tokens, slots)).astype(np.int32)


FORMS = {
    "gather": dict(expert_num=4),
    "scatter": dict(expert_num=4, row_idx_type=1, active_expert_range=(1, 3), expert_tokens_num_type=2, active_num=7),
    "padded": dict(expert_num=4, drop_pad_mode=1, expert_capacity=2, quant_mode=1),
    "smoothed": dict(expert_num=4, quant_mode=1),
}


def function(form):
    keywords = FORMS[form]
    smooth = np.linspace(0.5, 2, 24, dtype=F32).reshape(4, 6) if form == "smoothed" else None
    return lambda x, expert_idx: ja.moe_init_routing(x, expert_idx, smooth, **keywords)


def stack(results, axis=0):
    return [None if r[0] is None else np.stack([np.asarray(a) for a in r], axis) for r in zip(*results)]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("axes", [(0, 0), (None, 0), (0, None), (1, 2)], ids=str)
def test_vmap_equals_stacking_single_calls(form, axes):
    f = function(form)
    single = operands()
    batched = [
        one if axis is None else np.moveaxis(operands(lead=(4,), seed=1)[i], 0, axis)
        for i, (one, axis) in enumerate(zip(single, axes))
    ]
    one = lambda i: f(*(x if axis is None else np.take(x, i, axis) for x, axis in zip(batched, axes)))
    check(jax.vmap(f, in_axes=axes)(*batched), stack([one(i) for i in range(4)]))


def test_vmap_over_scales_only():
    x, expert_idx = operands()
    smooth = np.random.default_rng(2).uniform(0.5, 2, (4, 6, 3)).astype(F32)  # along the last axis
    f = lambda x, e, s: ja.moe_init_routing(x, e, s, expert_num=4, quant_mode=1)
    got = jax.vmap(f, in_axes=(None, None, 2), out_axes=1)(x, expert_idx, smooth)
    check(got, stack([f(x, expert_idx, smooth[..., i]) for i in range(3)], axis=1))
    static = lambda s, o: ja.moe_init_routing(x, expert_idx, s, o, expert_num=4, quant_mode=0)
    scale, offset = np.array([[3], [9]], F32), np.array([[0], [-5]], F32)
    check(jax.vmap(static)(scale, offset), stack([static(scale[i], offset[i]) for i in range(2)]))


def test_nested_vmap():
    x, _ = operands(lead=(2,))
    _, expert_idx = operands(lead=(3,), seed=1)
    f = lambda x, e: ja.moe_init_routing(x.astype(BF16), e, expert_num=4, quant_mode=9)
    got = jax.vmap(jax.vmap(f, in_axes=(None, 0)), in_axes=(0, None))(x, expert_idx)
    check(got, stack([stack([f(x[i], expert_idx[j]) for j in range(3)]) for i in range(2)]))


@pytest.mark.parametrize("form", FORMS)
def test_vmap_leaves_one_operation_and_no_loop(form):
    x, expert_idx = operands(lead=(4,))
    f = jax.vmap(function(form))
    primitives = [equation.primitive.name for equation in jax.make_jaxpr(f)(x, expert_idx).eqns]
    assert primitives.count("moe_init_routing") == 1
    assert not {"scan", "while", "jit", "pjit"} & set(primitives)
    assert "stablehlo.while" not in jax.jit(f).lower(x, expert_idx).as_text()


def test_strided_inputs_equal_contiguous_ones():
    x, expert_idx = operands()
    wide = np.repeat(x, 2, axis=1)
    for a, b in ((np.asfortranarray(x), np.asfortranarray(expert_idx)), (wide[:, ::2], expert_idx[:, ::-1][:, ::-1])):
        check(ja.moe_init_routing(a, b, expert_num=4), ja.moe_init_routing(x, expert_idx, expert_num=4))
    transposed = jax.jit(lambda x, e: ja.moe_init_routing(x.T, e.T, expert_num=4))(
        jnp.asarray(x.T), jnp.asarray(expert_idx.T)
    )
    check(transposed, ja.moe_init_routing(x, expert_idx, expert_num=4))


def test_no_derivative_says_so():
    x, expert_idx = operands()
    rows = lambda x: ja.moe_init_routing(x, expert_idx, expert_num=4).expanded_x.sum()
    with pytest.raises(NotImplementedError, match="moe_init_routing is an inference operator.*stop_gradient"):
        jax.grad(rows)(x)
    assert jax.grad(lambda x: rows(jax.lax.stop_gradient(x)) + x.sum())(x).shape == x.shape


def test_runs_without_jit_and_with_donation():
    x, expert_idx = operands()
    expected = ja.moe_init_routing(x, expert_idx, expert_num=4)
    with jax.disable_jit():
        check(ja.moe_init_routing(x, expert_idx, expert_num=4), expected)
    index = lambda x, e: ja.moe_init_routing(x, e, expert_num=4).expanded_row_idx
    given = jnp.asarray(expert_idx.reshape(1, -1))
    got = jax.jit(lambda e: index(x, e.reshape(5, 3)).reshape(1, -1), donate_argnums=0)(given)
    assert given.is_deleted()
    np.testing.assert_array_equal(got[0], expected.expanded_row_idx)


@pytest.mark.parametrize("mode", [-1, 1, 3, 6, 9, 13])
def test_export_and_call_after_deserialization(mode):
    x, expert_idx = operands()
    f = lambda x, e: ja.moe_init_routing(x.astype(BF16), e, expert_num=4, quant_mode=mode)
    exported = export.export(jax.jit(f), platforms=("cpu",))(x, expert_idx)
    got = export.deserialize(exported.serialize()).call(x, expert_idx)
    assert type(got).__name__ == "MoeRouting"
    check(got, f(x, expert_idx))


@pytest.mark.parametrize("form", FORMS)
def test_symbolic_token_count(form):
    n, m = export.symbolic_shape("n, m")
    f = function(form)
    exported = export.export(jax.jit(f))(spec(n, 6), spec(n, 3, dtype=jnp.int32))
    for tokens in (2, 5, 11):
        x, expert_idx = operands(tokens=tokens)
        check(exported.call(x, expert_idx), f(x, expert_idx))
    mapped = export.export(jax.jit(jax.vmap(f)))(spec(m, n, 6), spec(m, n, 3, dtype=jnp.int32))
    x, expert_idx = operands(lead=(3,))
    check(mapped.call(x, expert_idx), stack([f(x[i], expert_idx[i]) for i in range(3)]))


def test_symbolic_slots_and_columns():
    n, k, h = export.symbolic_shape("n, k, 2*h")
    for mode in (-1, 3, 12):
        f = lambda x, e: ja.moe_init_routing(x, e, expert_num=4, quant_mode=mode)
        exported = export.export(jax.jit(f))(spec(n, h, dtype=jnp.bfloat16), spec(n, k, dtype=jnp.int32))
        x, expert_idx = operands(size=70, slots=2)
        check(exported.call(x.astype(BF16), expert_idx), f(x.astype(BF16), expert_idx))


def test_eval_shape():
    f = lambda x, e: ja.moe_init_routing(x, e, expert_num=8, quant_mode=9)
    got = jax.eval_shape(f, spec(5, 66, dtype=jnp.float16), spec(5, 3, dtype=jnp.int32))
    assert (got.expanded_x.shape, got.expanded_x.dtype) == ((15, 66), jnp.float4_e2m1fn)
    assert (got.expanded_scale.shape, got.expanded_scale.dtype) == ((15, 2, 2), jnp.float8_e8m0fnu)


def test_static_arguments_under_jit():
    x, expert_idx = operands()
    jitted = jax.jit(ja.moe_init_routing, static_argnames=("expert_num", "active_expert_range", "quant_mode"))
    got = jitted(x, expert_idx, expert_num=4, active_expert_range=(1, 3), quant_mode=1)
    check(got, oracle.route(x, expert_idx, expert_num=4, active_expert_range=(1, 3), quant_mode=1))


def test_with_64_bit_types():
    code = """
import numpy as np, jax, jax.numpy as jnp, jascend as ja
from jax import export
x = np.arange(12, dtype=np.float32).reshape(3, 4)
expert_idx = np.array([[2, -1], [0, 2], [5, 1]], np.int32)
for kind, counts in ((0, [1, 2, 4, 4]), (1, [1, 1, 2, 0]), (2, [[0, 1], [1, 1], [2, 2], [0, 0]])):
    f = lambda x, e: ja.moe_init_routing(x, e, expert_num=4, expert_tokens_num_type=kind)
    for got in (f(x, expert_idx), jax.jit(f)(x, expert_idx)):
        assert got.expert_tokens.dtype == jnp.int64 and got.expert_tokens.tolist() == counts
        assert got.expanded_row_idx.dtype == jnp.int32 and got.expanded_row_idx.tolist() == [2, -1, 0, 3, -1, 1]
    text = jax.jit(f).trace(x, expert_idx).lower(lowering_platforms=("ascend",)).as_text()
    assert "xi64>" in text.split("->")[-1] or "xi64>" in text
n, = export.symbolic_shape("n")
for extra in (dict(), dict(drop_pad_mode=1, expert_capacity=2), dict(quant_mode=1), dict(active_num=3)):
    f = lambda x, e: ja.moe_init_routing(x, e, expert_num=4, **extra)
    S = jax.ShapeDtypeStruct
    got = export.export(jax.jit(f))(S((n, 4), jnp.float32), S((n, 2), jnp.int32)).call(x, expert_idx)
    jax.tree.map(np.testing.assert_array_equal, tuple(got), tuple(f(x, expert_idx)))
for mode in (3, 6, 9, 12, 13):
    got = ja.moe_init_routing(x.astype(jnp.bfloat16), expert_idx, expert_num=4, quant_mode=mode)
    assert got.expanded_x.shape == (6, 4)
"""
    run(code, JAX_ENABLE_X64="1")


def test_sharded_tokens_give_the_global_result():
    code = """
import numpy as np, jax, jascend as ja
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
mesh = Mesh(np.array(jax.devices()), ("tokens",))
random = np.random.default_rng(0)
x = random.normal(size=(8, 16)).astype(np.float32)
expert_idx = random.integers(0, 5, (8, 3)).astype(np.int32)
f = lambda x, e: ja.moe_init_routing(x, e, expert_num=5, quant_mode=1)
expected = f(x, expert_idx)
put = lambda a: jax.device_put(a, NamedSharding(mesh, P("tokens", None)))
jax.tree.map(np.testing.assert_array_equal, jax.jit(f)(put(x), put(expert_idx)), expected)
local = jax.shard_map(f, mesh=mesh, in_specs=P("tokens"), out_specs=P("tokens"))(x, expert_idx)
parts = [f(x[i : i + 2], expert_idx[i : i + 2]) for i in range(0, 8, 2)]
np.testing.assert_array_equal(local.expanded_x, np.concatenate([part.expanded_x for part in parts]))
np.testing.assert_array_equal(local.expanded_row_idx, np.concatenate([part.expanded_row_idx for part in parts]))
"""
    run(code, **FOUR_DEVICES)


# -- the platform `ascend` ------------------------------------------------------------------------------------------


def ascend_op(f, *specs):
    text = jax.jit(f).trace(*specs).lower(lowering_platforms=("ascend",)).as_text()
    (line,) = [line.split("=", 1)[1].strip() for line in text.splitlines() if '"ascend.' in line]
    return line


def test_lowering():
    f = lambda x, e: ja.moe_init_routing(x, e, expert_num=16, quant_mode=3, active_expert_range=(1, 9))
    assert ascend_op(f, spec(6, 64, dtype=jnp.bfloat16), spec(6, 4, dtype=jnp.int32)) == (
        '"ascend.moe_init_routing"(%arg0, %arg1) {active_expert_range = array<i32: 1, 9>, active_num = -1 : i64, '
        "drop_pad_mode = 0 : i64, expert_capacity = -1 : i64, expert_num = 16 : i64, expert_tokens_num_flag = true, "
        "expert_tokens_num_type = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0>, quant_mode = 3 : i64, "
        "resultSegmentSizes = array<i32: 1, 1, 1, 1>, row_idx_type = 0 : i64} : (tensor<6x64xbf16>, tensor<6x4xi32>) "
        "-> (tensor<24x64xf8E4M3FN>, tensor<24xi32>, tensor<8xi32>, tensor<24x2xf8E8M0FNU>)"
    )


@pytest.mark.parametrize(
    "keywords, shapes, operands, results",
    [
        (dict(quant_mode=0), [(1,), (1,)], "1, 1, 1, 1", "1, 1, 1, 0"),
        (dict(quant_mode=1), [(4, 64)], "1, 1, 1, 0", "1, 1, 1, 1"),
        (dict(expert_tokens_num_flag=False), [(6,)], "1, 1, 1, 0", "1, 1, 0, 1"),
        (dict(expert_tokens_num_flag=False, target="ascend910b"), [], "1, 1, 0, 0", "1, 1, 0, 0"),
        (dict(), [(6,), (1,)], "1, 1, 1, 0", "1, 1, 1, 1"),  # an offset that nothing uses is left out
    ],
)
def test_absent_operands_and_results(keywords, shapes, operands, results):
    f = lambda x, e, *parameters: ja.moe_init_routing(x, e, *parameters, expert_num=4, **keywords)
    op = ascend_op(f, spec(6, 64), spec(6, 2, dtype=jnp.int32), *(spec(*shape) for shape in shapes))
    assert f"operandSegmentSizes = array<i32: {operands}>" in op
    assert f"resultSegmentSizes = array<i32: {results}>" in op
    assert ("target" in keywords) == ('target = "ascend910b"' in op)


def test_a_batch_of_routings_is_one_operation():
    f = jax.vmap(lambda x, e: ja.moe_init_routing(x, e, expert_num=4, quant_mode=13))
    op = ascend_op(f, spec(3, 6, 64), spec(3, 6, 2, dtype=jnp.int32))
    assert op.endswith("-> (tensor<3x12x64xi4>, tensor<3x12xi32>, tensor<3x4xi32>, tensor<3x12xf32>)")


def test_symbolic_token_count_lowers():
    (n,) = export.symbolic_shape("n")
    f = lambda x, e: ja.moe_init_routing(x, e, expert_num=4)
    op = ascend_op(f, spec(n, 64), spec(n, 2, dtype=jnp.int32))
    assert op.endswith("(tensor<?x64xf32>, tensor<?x2xi32>) -> (tensor<?x64xf32>, tensor<?xi32>, tensor<4xi32>)")
