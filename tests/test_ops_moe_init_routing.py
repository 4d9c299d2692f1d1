"""MoE routing: expected values, the definition as an oracle, edge cases that users have met elsewhere."""

import functools

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
import routing_oracle as oracle
import vectors
from hypothesis import given, settings
from hypothesis import strategies as st

import jascend as ja
from jascend.dialect.rules import QUANTIZATIONS

F32 = np.float32
BF16 = ml_dtypes.bfloat16
CASES = vectors.moe_init_routing()
DTYPES = {"float32": F32, "float16": np.float16, "bfloat16": BF16, "int8": np.int8, "uint8": np.uint8} | {
    name: getattr(ml_dtypes, name) for name in ("float8_e4m3fn", "float8_e5m2", "float4_e2m1fn")
}
MODES = sorted(QUANTIZATIONS)


def as_bytes(x):
    """Bits to compare: -0 is not +0, and NaN equals itself. Integers as they are, whatever their width."""
    x = np.asarray(x)
    if x.dtype.name == "int4":
        return x.astype(np.int8)
    return x.astype(np.int64) if x.dtype.kind == "i" else x.view(f"uint{8 * x.dtype.itemsize}")


def check(got, expected):
    """A `MoeRouting` against four arrays, of which None says that there is none."""
    for name, a, b in zip(got._fields, got, expected, strict=True):
        assert (a is None) == (b is None), name
        if a is not None:
            assert a.shape == np.shape(b), name
            np.testing.assert_array_equal(as_bytes(a), as_bytes(b), err_msg=name)


# -- expected values ------------------------------------------------------------------------------------------------


def nibbles(x):
    x = np.asarray(x)
    return x.astype(np.int8).view(np.uint8) & 15 if x.dtype.name == "int4" else x


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.info["id"])
def test_vectors(case):
    """More strictly than their page asks: every result is equal, also where it allows a difference of one."""
    info, arrays = case
    operands = [arrays[name] for name in ("x", "expert_idx", "scale", "offset")]
    route = functools.partial(ja.moe_init_routing, **info["attrs"])
    got = jax.jit(route, compiler_options=vectors.QUICK)(*operands)
    for name, result in zip(got._fields, got):
        expected = arrays[name]
        assert (result is None) == (expected is None), name
        if expected is None:
            continue
        assert list(result.shape) == info["full_output_shapes"][name]
        defined, expected = len(expected), expected.reshape(-1, *result.shape[1:])  # stored flatter in some cases
        np.testing.assert_array_equal(as_bytes(nibbles(result)[:defined]), as_bytes(expected), err_msg=name)
        rest = as_bytes(nibbles(result)[defined:])
        np.testing.assert_array_equal(rest, np.full_like(rest, -1 if name == "expanded_row_idx" else 0), err_msg=name)


def test_vectors_hold_for_the_products_that_take_them():
    refused = {"ascend910b": "950-only", "ascend950": "a2a3-only"}
    for case in CASES:
        for target, tag in refused.items():
            info, arrays = case
            if target == "ascend950" and {"active_num", "flag_false"} & set(info["tags"]):
                continue
            operands = [arrays[name] for name in ("x", "expert_idx", "scale", "offset")]
            call = functools.partial(ja.moe_init_routing, *operands, **info["attrs"], target=target)
            if tag in info["tags"]:
                with pytest.raises(ja.errors.OperatorError):
                    jax.eval_shape(call)
            else:
                shape = jax.eval_shape(call).expanded_row_idx.shape
                assert list(shape) == info["full_output_shapes"]["expanded_row_idx"]


def test_vectors_cover_all_modes():
    assert len(CASES) == 76
    assert {case.info["attrs"]["quant_mode"] for case in CASES} == set(MODES)
    assert {case.info["attrs"]["drop_pad_mode"] for case in CASES} == {0, 1}


# -- the definition -------------------------------------------------------------------------------------------------


def values(random, shape, dtype):
    """Magnitudes of many binades, zeros of either sign among them, whole rows of zeros now and then."""
    if dtype in (np.int8, np.uint8):
        return random.integers(0, 256, shape, dtype=np.uint8).view(dtype)
    if dtype not in (F32, np.float16, BF16):
        return random.integers(0, 16 if dtype is ml_dtypes.float4_e2m1fn else 256, shape, dtype=np.uint8).view(dtype)
    x = random.normal(size=shape) * np.exp2(random.integers(-12, 8, (shape[0], 1)))
    x *= random.random(shape) > 0.1
    x *= (random.random((shape[0], 1)) > 0.15) * random.choice([-1, 1], shape)
    return x.astype(dtype)


@st.composite
def calls(draw, mode):
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    # Few shapes, since each is compiled.
    tokens, slots, size = draw(st.sampled_from([(1, 1, 2), (5, 3, 34), (7, 6, 260), (3, 9, 0)]))
    experts = draw(st.sampled_from([1, 4, 40]))
    keywords = dict(expert_num=experts, quant_mode=mode, expert_tokens_num_type=draw(st.integers(0, 2)))
    active = (0, experts)
    if mode in (-1, 0, 1) and draw(st.booleans()):
        keywords.update(drop_pad_mode=1, expert_capacity=draw(st.integers(1, tokens)), expert_tokens_num_type=1)
    else:
        active = draw(st.sampled_from([(0, experts), (experts // 3, experts), (experts // 4, experts // 4 + 1)]))
        limit = draw(st.sampled_from([-1, 0, 1, tokens * slots // 2, 10**6]))
        keywords.update(active_expert_range=active, row_idx_type=draw(st.integers(0, 1)), active_num=limit)
    dtypes = QUANTIZATIONS[mode].x[:4] if keywords.get("drop_pad_mode") else QUANTIZATIONS[mode].x
    dtype = DTYPES[draw(st.sampled_from(dtypes))]
    x = values(random, (tokens, size), dtype)
    expert_idx = random.integers(-2, experts + 2, (tokens, slots)).astype(np.int32)
    scale = offset = None
    with_scale = draw(st.booleans())
    if mode == -1 and with_scale and dtype is not np.uint8:
        scale = random.normal(size=tokens).astype(F32)
        if dtype in (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.float4_e2m1fn) and draw(st.booleans()):
            scale = random.integers(0, 255, (tokens, -(-size // 64), 2), dtype=np.uint8).view(ml_dtypes.float8_e8m0fnu)
    if mode in (0, 7):
        scale = np.array([2.0 ** draw(st.integers(-3, 9)) * 1.1], F32)
    if mode == 0:
        offset = np.array([draw(st.integers(-9, 9)) / 8], F32)
    if mode in (1, 13) and with_scale:
        rows = active[1] - active[0] if mode == 1 and draw(st.booleans()) else 1
        scale = random.uniform(0.1, 2, (rows, size)).astype(F32)
    return (x, expert_idx, scale, offset), keywords


@pytest.mark.parametrize("mode", MODES)
def test_equals_the_definition(mode):
    @settings(max_examples=12 if mode in (-1, 1) else 5, deadline=None, derandomize=True, database=None)
    @given(calls(mode))
    def run(call):
        operands, keywords = call
        check(ja.moe_init_routing(*operands, **keywords), oracle.route(*operands, **keywords))

    run()


# -- edges ----------------------------------------------------------------------------------------------------------


def small(tokens=3, slots=2, size=4, experts=4):
    x = np.arange(tokens * size, dtype=F32).reshape(tokens, size) + 1
    return x, np.random.default_rng(0).integers(0, experts, (tokens, slots)).astype(np.int32)


def test_the_example_of_the_documents():
    x = np.arange(6, dtype=F32).reshape(3, 2)
    expert_idx = np.array([[1, 2, 0, 3], [0, 2, 1, 3], [0, 1, 3, 2]], np.int32)
    got = ja.moe_init_routing(x, expert_idx, expert_num=256, active_expert_range=[0, 4], row_idx_type=1)
    order = [2, 4, 8, 0, 6, 9, 1, 5, 11, 3, 7, 10]
    check(got, (x[np.array(order) // 4], np.array(order), [3, 3, 3, 3], None))


def test_invalid_experts_leave_other_tokens_alone():
    x, _ = small()
    expert_idx = np.array([[2, -1], [0, 2], [5, 1]], np.int32)
    got = ja.moe_init_routing(x, expert_idx, expert_num=4)
    rows = np.concatenate([x[[1, 2, 0, 1]], np.zeros((2, 4), F32)])
    check(got, (rows, np.array([2, -1, 0, 3, -1, 1]), [1, 1, 2, 0], None))
    far = np.where(expert_idx < 0, -(2**31), np.where(expert_idx > 4, 2**31 - 1, expert_idx)).astype(np.int32)
    check(ja.moe_init_routing(x, far, expert_num=4), got)

    got = ja.moe_init_routing(x, np.array([[2, 0], [1, 3], [2, 1]], np.int32), expert_num=4, active_expert_range=(1, 3))
    check(got, (np.concatenate([x[[1, 2, 0, 2]], np.zeros((2, 4), F32)]), np.array([2, -1, 0, -1, 3, 1]), [2, 2], None))


@pytest.mark.parametrize("kind", [0, 1, 2])
def test_no_valid_pair(kind):
    x, expert_idx = small()
    keywords = dict(expert_num=9, active_expert_range=(6, 9), expert_tokens_num_type=kind)
    got = ja.moe_init_routing(x, expert_idx, np.ones(3, F32), **keywords)
    assert not np.asarray(got.expanded_x).any() and not np.asarray(got.expanded_scale).any()
    assert (np.asarray(got.expanded_row_idx) == -1).all() and not np.asarray(got.expert_tokens).any()
    for mode in (1, 3, 9, 13):
        got = ja.moe_init_routing(x.astype(BF16), expert_idx, quant_mode=mode, **keywords)
        assert not as_bytes(got.expanded_x).any() and not as_bytes(got.expanded_scale).any()


@pytest.mark.parametrize("shape", [(0, 2), (3, 0), (0, 0)])
@pytest.mark.parametrize("mode", [-1, 1, 3, 6, 9, 12, 13])
def test_nothing_to_route(shape, mode):
    x = np.zeros((shape[0], 6), BF16)
    expert_idx = np.zeros(shape, np.int32)
    call = lambda x, e: ja.moe_init_routing(x, e, expert_num=3, quant_mode=mode)
    mapped = jax.tree.map(lambda y: y[0], jax.vmap(call)(x[None], expert_idx[None]))
    for got in (call(x, expert_idx), jax.jit(call)(x, expert_idx), mapped):
        assert got.expanded_x.shape == (0, 6) and got.expanded_row_idx.shape == (0,)
        assert got.expert_tokens.tolist() == [0, 0, 0]
        assert got.expanded_scale is None or got.expanded_scale.shape[0] == 0
    pairs = ja.moe_init_routing(x, expert_idx, expert_num=3, expert_tokens_num_type=2).expert_tokens
    assert pairs.tolist() == [[0, 0]] * 3


def test_no_slots_with_capacity():
    x, expert_idx = np.ones((3, 4), F32), np.zeros((3, 0), np.int32)
    got = ja.moe_init_routing(x, expert_idx, expert_num=2, expert_capacity=3, drop_pad_mode=1)
    check(got, (np.zeros((2, 3, 4), F32), np.zeros(0), [0, 0], None))


def test_one_expert_takes_everything_in_order():
    x, expert_idx = small(tokens=50, slots=8)
    got = ja.moe_init_routing(x, np.full_like(expert_idx, 3), expert_num=4, row_idx_type=1)
    check(got, (np.repeat(x, 8, axis=0), np.arange(400), [0, 0, 0, 400], None))
    padded = ja.moe_init_routing(x, np.full_like(expert_idx, 3), expert_num=4, drop_pad_mode=1, expert_capacity=50)
    rows = np.zeros((4, 50, 4), F32)
    rows[3] = np.repeat(x, 8, axis=0)[:50]
    check(padded, (rows, np.where(np.arange(400) < 50, 150 + np.arange(400), -1), [0, 0, 0, 400], None))


def test_most_experts():
    x, _ = small(tokens=2)
    expert_idx = np.array([[10239, 2265], [4455, 0]], np.int32)
    got = ja.moe_init_routing(x, expert_idx, expert_num=10240, row_idx_type=1)
    assert got.expanded_row_idx.tolist() == [3, 1, 2, 0]
    assert np.flatnonzero(got.expert_tokens).tolist() == [0, 2265, 4455, 10239]
    keywords = dict(active_expert_range=(2265, 4456), expert_tokens_num_type=2)
    got = ja.moe_init_routing(x, expert_idx, expert_num=5120, **keywords)
    assert got.expert_tokens.shape == (5120, 2)
    assert got.expert_tokens[:3].tolist() == [[2265, 1], [4455, 1], [0, 0]]


def test_rows_are_copied_to_the_bit():
    """Negative zero, subnormals and payloads of NaN survive, also where rows behind the last one are filled in."""
    expert_idx = np.array([[1, 0], [0, -1]], np.int32)
    patterns = {
        F32: np.array([0x80000000, 1, 0x807FFFFF, 0x7FA00001, 0xFFC12345, 0x3F800000], np.uint32),
        np.float16: np.array([0x8000, 1, 0x83FF, 0x7D01, 0xFE45, 0x3C00], np.uint16),
        BF16: np.array([0x8000, 1, 0x807F, 0x7FA1, 0xFFC5, 0x3F80], np.uint16),
        ml_dtypes.float8_e4m3fn: np.array([0x80, 1, 0x87, 0x7F, 0xFF, 0x38], np.uint8),
    }
    for dtype, stored in patterns.items():
        x = np.stack([stored, stored[::-1]]).view(dtype)
        got = ja.moe_init_routing(x, expert_idx, expert_num=2)
        expected = np.stack([x[0], x[1], x[0], np.zeros_like(x[0])])
        np.testing.assert_array_equal(as_bytes(got.expanded_x), as_bytes(expected))


def test_scales_are_copied_to_the_bit():
    x, expert_idx = small()
    scale = np.array([0x80000000, 0x7FA00001, 0x00000001], np.uint32).view(F32)
    got = ja.moe_init_routing(x, expert_idx, scale, expert_num=4, row_idx_type=1)
    np.testing.assert_array_equal(as_bytes(got.expanded_scale), as_bytes(scale[np.asarray(got.expanded_row_idx) // 2]))


def test_smooth_scales_are_indexed_by_expert():
    """The same token quantizes differently for different experts, counted from the first active one."""
    x = np.array([[1, 2, 4]], F32)
    smooth = np.array([[1, 1, 1], [4, 1, 0.25]], F32)
    keywords = dict(expert_num=9, active_expert_range=(5, 7), quant_mode=1)
    got = ja.moe_init_routing(x, np.array([[6, 5]], np.int32), smooth, **keywords)
    np.testing.assert_array_equal(got.expanded_x, np.rint(x * smooth / (np.array([[4], [4]]) / 127)).astype(np.int8))
    np.testing.assert_array_equal(got.expanded_scale, np.full(2, F32(4) / F32(127)))


def test_zero_rows_have_finite_scales():
    x = np.array([[0, 0, 0], [1, -2, 127]], F32)
    expert_idx = np.array([[0], [0]], np.int32)
    got = ja.moe_init_routing(x, expert_idx, expert_num=1, quant_mode=1)
    check(got, ([[0, 0, 0], [1, -2, 127]], [0, 1], [2], np.array([0, 1], F32)))
    smoothed = ja.moe_init_routing(x, expert_idx, np.ones((1, 3), F32), expert_num=1, quant_mode=1)
    check(smoothed, got)
    wide = ja.moe_init_routing(np.full((1, 13), -3, F32), expert_idx[:1], expert_num=1, quant_mode=1)
    assert wide.expanded_x.tolist() == [[-127] * 13]
    np.testing.assert_allclose(wide.expanded_scale, [0.023622], rtol=1e-4)


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode >= 0])
def test_invalid_numbers_stay_in_their_row(mode):
    x = values(np.random.default_rng(1), (4, 130), BF16)
    expert_idx = np.array([[0], [1], [0], [1]], np.int32)
    parameters = [np.ones(1, F32)] * {0: 2, 7: 1}.get(mode, 0)
    call = lambda x: ja.moe_init_routing(x, expert_idx, *parameters, expert_num=2, quant_mode=mode)
    clean = call(x)
    bad = x.copy()
    bad[1, 3], bad[3, 7] = np.nan, np.inf
    got = call(bad)
    for a, b in zip(got, clean):
        if a is not None and len(a) == 4:
            np.testing.assert_array_equal(as_bytes(a)[:2], as_bytes(b)[:2])
    again = jax.jit(call)(bad)
    check(again, got)


@pytest.mark.parametrize("mode", [1, 3, 8, 12, 13])
def test_a_row_does_not_depend_on_the_tokens_around_it(mode):
    random = np.random.default_rng(2)
    x = values(random, (16, 3000), BF16)
    call = lambda x: ja.moe_init_routing(x, np.zeros((len(x), 1), np.int32), expert_num=1, quant_mode=mode)
    together = call(x)
    order = random.permutation(16)
    shuffled, alone, fused = call(x[order]), call(x[7:8]), jax.jit(lambda x: call(x * 1))(x)
    for name in ("expanded_x", "expanded_scale"):
        expected = as_bytes(getattr(together, name))
        np.testing.assert_array_equal(as_bytes(getattr(shuffled, name)), expected[order])
        np.testing.assert_array_equal(as_bytes(getattr(alone, name)), expected[7:8])
        np.testing.assert_array_equal(as_bytes(getattr(fused, name)), expected)


@pytest.mark.parametrize("mode", [0, 1, 3, 8, 12])
def test_quantization_uses_x_as_it_is_stored(mode):
    """XLA:CPU may keep a 16-bit intermediate at float32 precision."""
    random = np.random.default_rng(3)
    x, y = (values(random, (8, 200), BF16) for _ in range(2))
    expert_idx = np.arange(8, dtype=np.int32)[:, None]
    parameters = [np.full(1, 20, F32)] * 2 if mode == 0 else []
    call = lambda x: ja.moe_init_routing(x, expert_idx, *parameters, expert_num=8, quant_mode=mode)
    fused = jax.jit(lambda x, y: call(x * y + x))(x, y)
    check(fused, call(np.asarray(jax.jit(lambda x, y: x * y + x)(x, y))))


@pytest.mark.parametrize("rows", [56000, 300_000])
def test_large_shapes_are_exact(rows):
    spec = lambda *shape, dtype: jax.ShapeDtypeStruct(shape, dtype)
    got = jax.eval_shape(
        lambda x, e: ja.moe_init_routing(x, e, expert_num=256, quant_mode=12),
        spec(rows, 7168, dtype=jnp.bfloat16), spec(rows, 8, dtype=jnp.int32),
    )  # fmt: skip
    assert got.expanded_x.shape == (rows * 8, 7168) and got.expanded_scale.shape == (rows * 8, 28, 2)
    assert got.expanded_row_idx.shape == (rows * 8,) and got.expert_tokens.shape == (256,)


def test_indices_beyond_int32_are_refused():
    spec = lambda *shape, dtype=jnp.int32: jax.ShapeDtypeStruct(shape, dtype)
    call = lambda **keywords: lambda x, e: ja.moe_init_routing(x, e, **keywords)
    with pytest.raises(ja.errors.TilingError, match=r"expert_idx may have at most 2147483647 .* int32\[268435456,8\]"):
        jax.eval_shape(call(expert_num=8), spec(2**28, 2, dtype=jnp.int8), spec(2**28, 8))
    got = jax.eval_shape(call(expert_num=8), spec(2**28 - 1, 2, dtype=jnp.int8), spec(2**28 - 1, 8))
    assert got.expanded_x.shape[0] == 2**31 - 8
    with pytest.raises(ja.errors.TilingError, match="expert_capacity must be at most 209715 with 10240 experts"):
        keywords = dict(expert_num=10240, drop_pad_mode=1, expert_capacity=209716)
        jax.eval_shape(call(**keywords), spec(10**6, 2, dtype=jnp.int8), spec(10**6, 1))
