"""Gating: which error a wrong call gives, and that the first fault in CANN's order wins."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jascend as ja
from jascend.dialect import rules
from jascend.dialect.rules import Shaped

NULL, INVALID, TILING = ja.errors.ParamNullptr, ja.errors.ParamInvalid, ja.errors.TilingError
X = Shaped((4, 64), "float32")


def t(*shape, dtype="float32"):
    return Shaped(shape, dtype)


def i(*shape):
    return Shaped(shape, "int32")


# From the last fault to the first. A row changes the call of the row above it, so each call has the fault of its row
# and those of all rows above that can be had with it.
ORDER = [
    # The tiling's checks of attributes.
    (TILING, r"group_select_mode 1 needs at least 2 experts a group, but there are 64 experts in 64 groups",
     dict(group_count=64, k_group=3, k=3, group_select_mode=1)),
    (TILING, r"group_count must divide the number of experts \(64\), but is 7", dict(group_count=7)),
    (TILING, r"x may have at most 2048 experts, but is float32\[4,2050\]", dict(x=t(4, 2050))),
    # Shapes.
    (TILING, "additional_bias is required with additional_token_mask, but is None",
     dict(additional_token_mask=t(4, dtype="bool"))),
    (TILING, r"tid2eid must have k = 3 columns, but is int32\[9,4\]", dict(input_ids=i(4), tid2eid=i(9, 4))),
    (TILING, r"tid2eid must have shape \[n, k\], but is int32\[9\] of rank 1", dict(tid2eid=i(9))),
    (TILING, r"input_ids must have one element a token, shape \[4\], but is int32\[5\]", dict(input_ids=i(5))),
    (TILING, r"input_ids must have shape \[T\], but is int32\[4,1\]", dict(input_ids=i(4, 1))),
    (TILING, "tid2eid is required with input_ids, but is None", dict(tid2eid=None)),
    (TILING, "input_ids is required with tid2eid, but is None", dict(input_ids=None, tid2eid=i(9))),
    (TILING, r"x must have shape \[T, E\], but is float32\[4,4,2050\] of rank 3",
     dict(x=t(4, 4, 2050), additional_token_mask=None)),
    # Dtypes.
    (INVALID, r"tid2eid must be int32 or int64, but is int16\[9\]", dict(tid2eid=t(9, dtype="int16"))),
    (INVALID, r"input_ids must be int32 or int64, but is float32\[4\]", dict(input_ids=t(4))),
    (INVALID, r"additional_bias must have the dtype of x \(float32\), but is float16\[2050\]",
     dict(additional_bias=t(2050, dtype="float16"))),
    (INVALID, r"bias must have the dtype of x \(float32\), but is bfloat16\[2050\]",
     dict(bias=t(2050, dtype="bfloat16"))),
    # The PyTorch layer.
    (INVALID, r"x must be float32 or float16 or bfloat16, but is float64\[4,4,2050\]",
     dict(x=t(4, 4, 2050, dtype="float64"))),
    (TILING, r"tid2eid must not be empty, but is int16\[0\]", dict(tid2eid=t(0, dtype="int16"))),
    (TILING, r"input_ids must not be empty, but is float32\[0\]", dict(input_ids=t(0))),
    (TILING, r"additional_token_mask must have one element a token, shape \[4\], but is bool\[3\]",
     dict(x=t(4, 2050, dtype="float64"), additional_token_mask=t(3, dtype="bool"))),
    (TILING, r"additional_token_mask must have shape \[T\], but is bool\[3,1\]",
     dict(additional_token_mask=t(3, 1, dtype="bool"))),
    (INVALID, r"additional_token_mask must be bool, but is int8\[3,1\]",
     dict(additional_token_mask=t(3, 1, dtype="int8"))),
    (TILING, r"additional_bias must have one element an expert, shape \[2050\], but is float16\[64\]",
     dict(additional_bias=t(64, dtype="float16"))),
    (TILING, r"additional_bias must have shape \[E\], but is float16\[1,64\]",
     dict(additional_bias=t(1, 64, dtype="float16"))),
    (TILING, r"bias must have one element an expert, shape \[2050\], but is bfloat16\[0\]",
     dict(bias=t(0, dtype="bfloat16"))),
    (TILING, r"bias must have shape \[E\], but is bfloat16\[1,64\]", dict(bias=t(1, 64, dtype="bfloat16"))),
    (TILING, "renorm must be 0, but is 1", dict(renorm=1)),
    (TILING, "norm_type must be 0, 1 or 2, but is 3", dict(norm_type=3)),
    (TILING, "group_select_mode must be 0 or 1, but is -1", dict(group_select_mode=-1)),
    (TILING, r"k_group must be at most group_count \(7\), but is 8", dict(k_group=8)),
    (TILING, r"k must be at most k_group \* \(experts / group_count\) = 8 \* 292, but is 2337", dict(k=2337)),
    (TILING, "group_count must be positive, but is 0", dict(group_count=0)),
    (TILING, "k_group must be positive, but is 0", dict(k_group=0)),
    (TILING, "k must be positive, but is -1", dict(k=-1)),
    (TILING, r"x must have a fixed number of experts, but is float64\[4,\?\]", dict(x=t(4, None, dtype="float64"))),
    (INVALID, r"x must not be empty, but is float64\[0,2050\]", dict(x=t(0, 2050, dtype="float64"))),
    (TILING, r"x must have shape \[T, E\], but is float64\[\] of rank 0", dict(x=t(dtype="float64"))),
    (NULL, "x is required, but is None", dict(x=None)),
    (ja.errors.Unsupported, "target must be ascend910b, .* or None, but is 'ascend310p'", dict(target="ascend310p")),
]  # fmt: skip


@pytest.mark.parametrize("row", range(len(ORDER)), ids=lambda row: ORDER[row][1][:40])
def test_order(row):
    call = functools.reduce(lambda call, change: {**call, **change[2]}, ORDER[: row + 1], dict(x=X, k=3))
    error, text, _ = ORDER[row]
    with pytest.raises(error, match=f"^moe_gating_top_k: {text}") as raised:
        rules.moe_gating_top_k(**call)
    assert type(raised.value) is error


# What only shows where the group count is sound.
LIMITS = [
    ("group_count 40 groups of 51 experts, each padded to a multiple of 32, are 2560 experts: at most 2048 are allowed",
     dict(x=t(4, 2040), group_count=40, k_group=4)),
    ("input_ids excludes groups, but k_group is 2 of 4",
     dict(group_count=4, k_group=2, input_ids=i(4), tid2eid=i(9, 3))),
    ("tid2eid may have at most 2147483647 rows, but is", dict(input_ids=i(4), tid2eid=i(2**31, 3))),
    ("k must be at most k_group .* = 2 . 1, but is 3", dict(group_count=64, k_group=2)),
    ("k must be at most k_group .* = 1 . 64, but is 65", dict(k=65)),
    ("x may have at most 2048 experts", dict(x=t(4, 2049))),
    ("group_select_mode 1 needs at least 2 experts a group", dict(x=t(4, 1), k=1, group_select_mode=1)),
]  # fmt: skip


@pytest.mark.parametrize("text, change", LIMITS)
def test_limits(text, change):
    with pytest.raises(TILING, match=f"^moe_gating_top_k: {text}"):
        rules.moe_gating_top_k(**{**dict(x=X, k=3), **change})


ANY, A2_A3 = {None, *rules.TARGETS}, {"ascend910b", "ascend910_93"}


@pytest.mark.parametrize(
    "refused, text, change",
    [
        ({"ascend950"}, "k must be at most 64 on ascend950, but is 65", dict(x=t(4, 128), k=65)),
        (
            A2_A3,
            "group_count must be 1 with norm_type 2 on ascend910.*, but is 4",
            dict(norm_type=2, group_count=4, k_group=2),
        ),
        (A2_A3, "group_count must be 1 with norm_type 2", dict(norm_type=2, group_count=4, k_group=4)),
        (set(), None, dict(norm_type=2, k=64)),
        (set(), None, dict(norm_type=1, group_count=8, k_group=4, group_select_mode=1)),
    ],
)
def test_limits_of_targets(refused, text, change):
    for target in ANY:
        gate = functools.partial(rules.moe_gating_top_k, **{**dict(x=X, k=3), **change}, target=target)
        if target in refused:
            with pytest.raises(TILING, match=f"^moe_gating_top_k: {text}"):
                gate()
        else:
            assert gate()[1].dtype == "int32"


def test_order_on_950():
    with pytest.raises(TILING, match="k must be at most 64"):
        rules.moe_gating_top_k(X._replace(shape=(4, 130)), k=65, group_count=3, k_group=3, target="ascend950")


def test_largest_calls_that_pass():
    for change in (
        dict(x=t(4, 2048), k=2048),
        dict(x=t(4, 2048), k=512, group_count=64, k_group=16),
        dict(x=t(4, 2000), k=8, group_count=1000, k_group=1000),  # all groups are kept: no padding
        dict(x=t(4, 2048), k=8, group_count=2048, k_group=8),
        dict(x=t(1, 1), k=1),
    ):
        y, idx, out = rules.moe_gating_top_k(**change)
        assert y == t(change["x"].shape[0], change["k"]) and idx == i(*y.shape) and out is None


def test_results_of_the_rule():
    half = t(None, 64, dtype="float16")
    assert rules.moe_gating_top_k(half, k=3, out_flag=True) == (t(None, 3, dtype="float16"), i(None, 3), t(None, 64))
    assert rules.moe_gating_top_k(half, None, i(7), t(None, 3, dtype="int64"), k=3)[1] == i(None, 3)


@pytest.mark.parametrize(
    "error, text, change",
    [
        (INVALID, r"x must not be empty, but is float32\[0,8\]", dict(x=np.zeros((0, 8), np.float32))),
        (INVALID, "x must not be empty", dict(x=np.zeros((2, 0, 8), np.float32))),
        (INVALID, "x must not be empty", dict(x=np.zeros((2, 0), np.float32))),
        (TILING, r"x must have shape \[T, E\], but is float32\[8\] of rank 1", dict(x=np.zeros(8, np.float32))),
        (TILING, "x must have shape .* of rank 4", dict(x=np.zeros((1, 1, 1, 8), np.float32))),
        (NULL, "x is required", dict(x=None)),
        (INVALID, r"x must be an array, but is \[\[1.0\]\]", dict(x=[[1.0]])),
        (INVALID, r"bias must be an array, but is \[0, 1\]", dict(bias=[0, 1])),
        (INVALID, "k must be an integer, but is 2.0", dict(k=2.0)),
        (INVALID, "k must be an integer, but is True", dict(k=True)),
        (INVALID, "k_group must be an integer, but is None", dict(k_group=None)),
        (INVALID, "out_flag must be True or False, but is 1", dict(out_flag=1)),
        (INVALID, "eps must be a number, but is '1'", dict(eps="1")),
        (INVALID, "routed_scaling_factor must be a number", dict(routed_scaling_factor=np.ones(1))),
        (TILING, "renorm must be 0, but is 1", dict(renorm=1)),
        (TILING, "additional_token_mask must have shape", dict(additional_token_mask=np.ones((4, 1), bool))),
        (
            TILING,
            "additional_bias is required with additional_token_mask",
            dict(additional_token_mask=np.ones(4, bool)),
        ),
        (ja.errors.Unsupported, "target must be", dict(target="kirinx90")),
    ],
)
def test_public_calls(error, text, change):
    with pytest.raises(error, match=f"^moe_gating_top_k: {text}"):
        ja.moe_gating_top_k(**{**dict(x=np.zeros((4, 8), np.float32), k=2), **change})


def test_three_dimensions_of_which_the_mask_has_others():
    x, bias = np.zeros((2, 3, 8), np.float32), np.zeros(8, np.float32)
    with pytest.raises(TILING, match=r"additional_token_mask must have shape \[T\], but is bool\[3,2\]"):
        ja.moe_gating_top_k(x, 2, additional_bias=bias, additional_token_mask=np.ones((3, 2), bool))
    with pytest.raises(TILING, match=r"input_ids must have one element a token, shape \[6\], but is int32\[2\]"):
        ja.moe_gating_top_k(x, 2, input_ids=np.zeros(2, np.int32), tid2eid=np.zeros((5, 2), np.int32))


@pytest.mark.parametrize("name", ["k", "k_group", "norm_type", "out_flag", "eps", "routed_scaling_factor"])
def test_traced_parameters_name_the_remedy(name):
    gate = lambda value: ja.moe_gating_top_k(jnp.zeros((2, 8)), **{"k": 2, name: value})
    with pytest.raises(INVALID, match=f"{name} decides what is computed .* is traced .* static_argnames"):
        jax.jit(gate)(1)


def test_errors_inside_transformations_are_the_same():
    x, bias = jnp.zeros((3, 4, 8)), jnp.zeros((3, 7))
    with pytest.raises(TILING, match=r"bias must have one element an expert, shape \[8\], but is float32\[7\]"):
        jax.vmap(lambda x, b: ja.moe_gating_top_k(x, 2, bias=b))(x, bias)
    with pytest.raises(TILING, match="k must be at most"):
        jax.eval_shape(lambda x: ja.moe_gating_top_k(x, 9), jax.ShapeDtypeStruct((2**31, 8), jnp.float32))


def test_symbolic_sizes():
    b, c, e = jax.export.symbolic_shape("b, c, e")
    spec = jax.ShapeDtypeStruct
    gate = lambda x, ids: ja.moe_gating_top_k(x, 2, input_ids=ids, tid2eid=jnp.zeros((5, 2), jnp.int32))
    assert jax.eval_shape(gate, spec((b, 8), jnp.float32), spec((b,), jnp.int32)).y.shape == (b, 2)
    with pytest.raises(TILING, match=r"input_ids must have one element a token, shape \[b\], but is int32\[c\]"):
        jax.eval_shape(gate, spec((b, 8), jnp.float32), spec((c,), jnp.int32))
    with pytest.raises(TILING, match=r"x must have a fixed number of experts, but is float32\[4,e\]"):
        jax.eval_shape(lambda x: ja.moe_gating_top_k(x, 2), spec((4, e), jnp.float32))
