"""`raise-sampling`: dynamic quantization around a routing, as people write it, and code that only looks like it."""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import lax
from raising import raised

import jascend as ja
from jascend.platform import limits_of

T, E, K, H = 12, 6, 2, 32
F32 = jnp.float32


def arguments(dtype=ml_dtypes.bfloat16):
    rng = np.random.default_rng(0)
    x = rng.normal(0, 3, (T, H)).astype(dtype)
    x[3] = 0
    x[4] = 1 / 64  # every quotient is 127
    ids = rng.integers(0, E, (T, K)).astype(np.int32)
    return x, ids, rng.uniform(0.5, 2, H).astype(np.float32)


def route(x, ids, **more):
    return ja.moe_init_routing(x, ids, expert_num=E, **more)


# -- after the routing ------------------------------------------------------------------------------------------------


def written_out(x, ids, smooth):
    routed = route(x, ids)
    rows = routed.expanded_x.astype(F32)
    scale = jnp.max(jnp.abs(rows), axis=-1, keepdims=True) / 127.0
    codes = jnp.clip(jnp.round(rows / scale), -128, 127).astype(jnp.int8)
    return codes, scale[:, 0], routed.expanded_row_idx, routed.expert_tokens


def rows_of_zeros_guarded(x, ids, smooth):
    """What is put in the place of 0 is only divided by."""
    routed = route(x, ids, row_idx_type=1, expert_tokens_num_flag=False)
    largest = jnp.abs(routed.expanded_x).max(axis=-1).astype(F32)
    scale = largest / 127
    codes = jnp.rint(routed.expanded_x.astype(F32) / jnp.where(scale == 0, 1.0, scale)[:, None])
    return lax.clamp(-127.0, codes, 127.0).astype(jnp.int8), scale, routed.expanded_row_idx


def in_a_function(x, ids, smooth):
    @jax.jit
    def quantize(rows):
        rows = rows.astype(F32)
        scale = jnp.abs(rows).max(-1, keepdims=True) / 127
        return jnp.round(rows / scale).astype(jnp.int8), scale

    routed = route(x, ids)
    return (*quantize(routed.expanded_x), routed.expert_tokens)


def smoothed(x, ids, smooth):
    routed = route(x, ids, active_expert_range=(1, 5))
    rows = routed.expanded_x.astype(F32) * smooth
    scale = jnp.max(jnp.abs(rows), axis=1, keepdims=True) / 127.0
    return jnp.clip(jnp.round(rows / scale), -127, 127).astype(jnp.int8), scale.reshape(-1), routed.expanded_row_idx


def padded(x, ids, smooth):
    rows = route(x, ids, drop_pad_mode=1, expert_capacity=3).expanded_x.astype(F32)
    scale = jnp.max(jnp.abs(rows), axis=-1) / 127.0
    return jnp.round(rows / scale[..., None]).astype(jnp.int8), scale


def routed_by_argsort(x, ids, smooth):
    ids = jnp.clip(ids, 0, E - 1)
    order = jnp.argsort(ids.reshape(-1))
    rows = x[order // K].astype(F32) * smooth
    scale = jnp.max(jnp.abs(rows), axis=-1, keepdims=True) / 127.0
    codes = jnp.round(rows / scale).astype(jnp.int8)
    return codes, scale[:, 0], jnp.argsort(order), jnp.bincount(ids.reshape(-1), length=E)


# -- before it --------------------------------------------------------------------------------------------------------


def tokens_first(x, ids, smooth):
    rows = x.astype(F32)
    scale = jnp.max(jnp.abs(rows), axis=-1, keepdims=True) / 127.0
    codes = jnp.clip(jnp.round(rows / scale), -128, 127).astype(jnp.int8)
    return route(codes, ids, scale=scale[:, 0])


def smoothed_tokens_first(x, ids, smooth):
    rows = x.astype(F32) * smooth[None, :]
    scale = jnp.abs(rows).max(axis=-1) / 127
    return route(jnp.round(rows / scale[:, None]).astype(jnp.int8), ids, scale=scale, active_num=7)


def without_scales(x, ids, smooth):
    scale = jnp.abs(x.astype(F32)).max(axis=-1, keepdims=True) / 127
    return route(jnp.round(x.astype(F32) / jnp.where(scale > 0, scale, 1)).astype(jnp.int8), ids)


FORMS = [
    written_out, rows_of_zeros_guarded, in_a_function, smoothed, padded, routed_by_argsort,
    tokens_first, smoothed_tokens_first, without_scales,
]  # fmt: skip


def plainly(fn, args):
    """The same as it stands, an operation at a time: XLA divides by multiplying where it fuses."""
    with jax.disable_jit():
        return jax.tree.leaves(fn(*args))


@pytest.mark.parametrize(
    "dtype", [ml_dtypes.bfloat16, pytest.param(np.float32, marks=pytest.mark.long)], ids=["bfloat16", "float32"]
)
@pytest.mark.parametrize("fn", FORMS, ids=lambda fn: fn.__name__)
def test_quantized(fn, dtype):
    """Bit for bit."""
    args = arguments(dtype)
    after, counts, remarks = raised(fn, *args)
    assert counts == {"moe_init_routing": 1} and {remark.kind for remark in remarks} == {"passed"}, remarks
    jaxpr = str(jax.make_jaxpr(lambda *args: after(*args))(*args))
    assert "quant_mode=1" in jaxpr and "round" not in jaxpr
    for expected, found in zip(plainly(fn, args), after(*args), strict=True):
        assert expected.dtype == found.dtype
        np.testing.assert_array_equal(np.asarray(found), np.asarray(expected))


# -- what is not ------------------------------------------------------------------------------------------------------


def divided(rows, scale):
    return jnp.round(rows / scale)


def quantizer(scale=lambda largest: largest / 127, codes=divided, dtype=F32):
    def fn(x, ids, smooth):
        rows = route(x, ids).expanded_x.astype(dtype)
        of_rows = scale(jnp.max(jnp.abs(rows), axis=-1, keepdims=True))
        return codes(rows, of_rows).astype(jnp.int8), of_rows

    return fn


def other_scales(x, ids, smooth):
    rows = x.astype(F32)
    scale = jnp.max(jnp.abs(rows), axis=-1, keepdims=True) / 127.0
    return route(jnp.round(rows / scale).astype(jnp.int8), ids, scale=scale[:, 0] * 2)


def guarded_scales(x, ids, smooth):
    rows = x.astype(F32)
    scale = jnp.max(jnp.abs(rows), axis=-1) / 127.0
    scale = jnp.where(scale == 0, 1.0, scale)
    return route(jnp.round(rows / scale[:, None]).astype(jnp.int8), ids, scale=scale)


def with_scales_already(x, ids, smooth):
    routed = route(x, ids, scale=jnp.ones(T))
    rows = routed.expanded_x.astype(F32)
    scale = jnp.max(jnp.abs(rows), axis=-1, keepdims=True) / 127.0
    return jnp.round(rows / scale).astype(jnp.int8), routed.expanded_scale


def away_from_zero(rows, scale):
    return lax.round(rows / scale, lax.RoundingMethod.AWAY_FROM_ZERO)


MISSES = {
    "halves away from zero": (quantizer(codes=away_from_zero), "rounds halves away from zero"),
    "cut off": (quantizer(codes=lambda rows, scale: rows / scale), "does not round"),
    "reciprocal of the scale": (
        quantizer(codes=lambda rows, scale: jnp.round(rows * (1 / scale))), "multiplies by the reciprocal"
    ),
    "127 over the largest": (
        quantizer(scale=lambda largest: 127 / largest, codes=lambda rows, scale: jnp.round(rows * scale)),
        "multiplies by the reciprocal",
    ),
    "product with 1 / 127": (quantizer(scale=lambda largest: largest * (1 / 127)), "a product with 1 / 127"),
    "in bfloat16": (quantizer(dtype=jnp.bfloat16), "divides in bfloat16"),
    "a least scale": (quantizer(scale=lambda largest: jnp.maximum(largest / 127, 1e-8)), "at least 1e-08"),
    "a least magnitude": (quantizer(scale=lambda largest: jnp.maximum(largest, 1e-5) / 127), "at least 1e-05"),
    "a scale for zeros": (
        quantizer(scale=lambda largest: jnp.where(largest == 0, 1.0, largest / 127)), "another scale for rows of zeros"
    ),
    "a magnitude for zeros": (
        quantizer(scale=lambda largest: jnp.where(largest == 0, 1.0, largest) / 127), "another scale for rows of zeros"
    ),
    "codes of 7 bits": (quantizer(scale=lambda largest: largest / 63), ""),
    "one scale for all": (quantizer(scale=lambda largest: largest.max() / 127), ""),
    "tokens with scales for zeros": (guarded_scales, "another scale for rows of zeros"),
    "tokens with other scales": (other_scales, "not those that it divides by"),
    "scales already": (with_scales_already, "has scales already"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISSES)
def test_not_quantized(name):
    fn, reason = MISSES[name]
    after, counts, remarks = raised(fn, *arguments())
    text = "\n".join(remark.text for remark in remarks if remark.kind == "missed")
    assert after is None and reason in text and bool(reason) == bool(text)


@pytest.mark.parametrize(
    ("fn", "reason"), [(smoothed, "(active experts, H) on ascend950"), (padded, "drop_pad_mode 1 on ascend950")]
)
def test_what_a_product_does_not_have_stays(fn, reason):
    with limits_of("ascend950"):
        _, counts, remarks = raised(fn, *arguments())
        _, others, _ = raised(written_out, *arguments())
    assert counts["moe_init_routing"] == others["moe_init_routing"] == 1
    (remark,) = remarks
    assert remark.kind == "missed" and reason in remark.text


# -- compiled ---------------------------------------------------------------------------------------------------------


def test_a_router_in_plain_code_is_one_kernel():
    def moe(x, bias, logits):
        scores = jax.nn.sigmoid(logits.astype(F32))
        _, ids = lax.top_k(scores + bias, K)
        weights = jnp.take_along_axis(scores, ids, axis=-1)
        order = jnp.argsort(ids.reshape(-1))
        rows = x[order // K].astype(F32)
        scale = jnp.abs(rows).max(-1, keepdims=True) / 127
        codes = jnp.round(rows / scale).astype(jnp.int8)
        counts = jnp.bincount(ids.reshape(-1), length=E)
        return weights / weights.sum(-1, keepdims=True) * 2.5, codes, scale[:, 0], jnp.argsort(order), counts

    x, _, _ = arguments()
    rng = np.random.default_rng(1)
    given = x, rng.normal(size=E).astype(np.float32), rng.normal(size=(T, E)).astype(ml_dtypes.bfloat16)
    program = ja.compile(moe, *given)
    assert [kernel.name for kernel in program.kernels] == ["jascend_moe_moe_gating_routing"]
    explained = program.explain()
    assert "rows routed with dynamic quantization" in explained and "rewrote 'ascend.moe_init_routing'" in explained
    weights, codes, scale, index, counts = map(np.asarray, program(*given))
    wanted_weights, _, _, wanted_index, wanted_counts = map(np.asarray, jax.jit(moe)(*given))
    np.testing.assert_allclose(weights, wanted_weights, rtol=1e-5)
    np.testing.assert_array_equal(index, wanted_index)
    np.testing.assert_array_equal(counts, wanted_counts)
    rows = np.repeat(x.astype(np.float32), K, axis=0)[np.argsort(index)]
    largest = np.abs(rows).max(axis=1)
    np.testing.assert_array_equal(scale, largest / np.float32(127))
    divisor = np.where(largest == 0, np.float32(1), largest / np.float32(127))
    np.testing.assert_array_equal(codes, np.rint(rows / divisor[:, None]).astype(np.int8))
