"""What MoE routing refuses, with which status, and what it reports first when several things are wrong."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

import jascend as ja
from jascend.errors import ParamInvalid, ParamNullptr, TilingError, Unsupported

A2, A3, A5 = "ascend910b", "ascend910_93", "ascend950"


def spec(*shape, dtype="float32"):
    return jax.ShapeDtypeStruct(shape, jnp.dtype(dtype))


X, IDX = spec(6, 64), spec(6, 2, dtype="int32")
HALF = spec(6, 64, dtype="bfloat16")
FP8 = spec(6, 64, dtype="float8_e4m3fn")
E8M0 = "float8_e8m0fnu"
PAD = dict(drop_pad_mode=1, expert_capacity=2)


def evaluate(x=X, expert_idx=IDX, scale=None, offset=None, **keywords):
    """Shapes only: nothing is computed."""
    keywords = {"expert_num": 8, **keywords}
    arrays = [x, expert_idx, scale, offset]
    traced = [a for a in arrays if a is not None]

    def call(*values):
        values = iter(values)
        return ja.moe_init_routing(*(None if a is None else next(values) for a in arrays), **keywords)

    return jax.eval_shape(call, *traced)


# In the order in which they are found; each call has one fault.
FAULTS = [
    (
        dict(target="ascend310p"),
        Unsupported,
        r"target must be ascend910b, ascend910_93, ascend950 or None, but is 'ascend310p'",
    ),
    (dict(x=None), ParamNullptr, "x is required, but is None"),
    (dict(expert_idx=None), ParamNullptr, "expert_idx is required"),
    (dict(x=spec(6, 64, dtype="int32")), ParamInvalid, r"x must be float16 or .* or uint8, but is int32\[6,64\]"),
    (dict(expert_idx=spec(6, 2)), ParamInvalid, r"expert_idx must be int32, but is float32\[6,2\]"),
    (
        dict(scale=spec(6, dtype="float16")),
        ParamInvalid,
        r"scale must be float32 or float8_e8m0fnu, but is float16\[6\]",
    ),
    (dict(offset=spec(1, dtype="int32")), ParamInvalid, r"offset must be float32, but is int32\[1\]"),
    (dict(expert_num=0), TilingError, "expert_num must be from 1 to 10240, but is 0"),
    (dict(expert_num=10241), TilingError, "expert_num must be from 1 to 10240, but is 10241"),
    (
        dict(active_expert_range=(1,)),
        TilingError,
        r"active_expert_range must be \[first, last \+ 1\] or empty, but is \[1\]",
    ),
    (dict(active_expert_range=(1, 2, 3)), TilingError, r"active_expert_range .* but is \[1, 2, 3\]"),
    (dict(active_expert_range=(-1, 3)), TilingError, r"active_expert_range must be rising, .* but is \[-1, 3\]"),
    (dict(active_expert_range=(3, 3)), TilingError, r"active_expert_range must be rising, .* but is \[3, 3\]"),
    (dict(active_expert_range=(3, 10241)), TilingError, r"active_expert_range must be rising, .* at most 10240"),
    (dict(drop_pad_mode=2), TilingError, "drop_pad_mode must be 0 or 1, but is 2"),
    (dict(active_num=-2), TilingError, "active_num must be at least -1, but is -2"),
    (
        dict(drop_pad_mode=1, expert_capacity=7),
        TilingError,
        r"expert_capacity must be at most the number of rows \(6\), but is 7",
    ),
    (dict(expert_tokens_num_type=3), TilingError, "expert_tokens_num_type must be 0 or 1 or 2, but is 3"),
    (dict(quant_mode=10), TilingError, "quant_mode must be -1 to 9 or 11 to 17, but is 10"),
    (dict(quant_mode=18), TilingError, "quant_mode must be -1 to 9 or 11 to 17, but is 18"),
    (dict(row_idx_type=2), TilingError, "row_idx_type must be 0 or 1, but is 2"),
    (dict(row_idx_type=1, **PAD), TilingError, "row_idx_type must be 0 with drop_pad_mode 1, but is 1"),
    (dict(x=spec(6, 2, 64)), TilingError, r"x must have shape \[N, H\], but is float32\[6,2,64\] of rank 3"),
    (dict(expert_idx=spec(6, dtype="int32")), TilingError, r"expert_idx must have shape \[N, K\], but is int32\[6\]"),
    (dict(quant_mode=0, offset=spec(1)), TilingError, r"scale must have shape \[1\] with quant_mode 0, but is None"),
    (
        dict(quant_mode=0, scale=spec(6), offset=spec(1)),
        TilingError,
        r"scale must have shape \[1\] .* but is float32\[6\]",
    ),
    (dict(quant_mode=7, x=HALF), TilingError, r"scale must have shape \[1\] with quant_mode 7, but is None"),
    (
        dict(quant_mode=1, scale=spec(7, 64)),
        TilingError,
        r"scale must have shape \[8, 64\] \(active experts, H\) or \[1, 64\]",
    ),
    (
        dict(quant_mode=1, scale=spec(8, 64), active_expert_range=(0, 4)),
        TilingError,
        r"scale must have shape \[4, 64\]",
    ),
    (dict(quant_mode=13, scale=spec(8, 64)), TilingError, r"scale must have shape \[1, 64\] with quant_mode 13"),
    (
        dict(quant_mode=3, x=HALF, scale=spec(6)),
        TilingError,
        "scale must be None with quant_mode 3, which computes its own",
    ),
    (dict(scale=spec(5)), TilingError, r"scale must have shape \[6\], one element a row of x, .* but is float32\[5\]"),
    (dict(x=FP8, scale=spec(6, 2, 2, dtype=E8M0)), TilingError, r"scale must have shape float8_e8m0fnu\[6,1,2\] for x"),
    (dict(quant_mode=0, scale=spec(1)), TilingError, r"offset must have shape \[1\] with quant_mode 0, but is None"),
    (
        dict(quant_mode=0, scale=spec(1), offset=spec(2)),
        TilingError,
        r"offset must have shape \[1\] .* but is float32\[2\]",
    ),
    (
        dict(x=spec(6, 64, dtype="int8"), quant_mode=1),
        ParamInvalid,
        "x must be float16 or bfloat16 or float32 with quant_mode 1",
    ),
    (
        dict(x=spec(6, 64, dtype="float16"), quant_mode=13),
        ParamInvalid,
        "x must be float32 or bfloat16 with quant_mode 13",
    ),
    (dict(x=X, quant_mode=5), ParamInvalid, r"x must be float16 or bfloat16 with quant_mode 5, but is float32\[6,64\]"),
    (dict(x=FP8, quant_mode=0, scale=spec(1), offset=spec(1)), ParamInvalid, "x must be .* with quant_mode 0"),
    (dict(scale=spec(6, 1, 2, dtype=E8M0)), ParamInvalid, "scale must be float32 with quant_mode -1 and x float32"),
    (dict(x=spec(6, 64, dtype="uint8"), scale=spec(6)), ParamInvalid, "scale must be None for HiFloat8 x"),
    (dict(active_num=-2, **PAD), TilingError, "active_num must be at least -1"),
    (dict(drop_pad_mode=1), TilingError, "expert_capacity must be at least 1 with drop_pad_mode 1, but is -1"),
    (dict(active_expert_range=(1, 8), **PAD), TilingError, r"active_expert_range must be \[0, 8\], all experts"),
    (
        dict(expert_tokens_num_type=0, **PAD),
        TilingError,
        "expert_tokens_num_type must be 1 with drop_pad_mode 1, but is 0",
    ),
    (
        dict(active_expert_range=(1, 9)),
        TilingError,
        r"active_expert_range must end within expert_num 8, but is \[1, 9\]",
    ),
    (dict(expert_num=5121, expert_tokens_num_type=2), TilingError, "active_expert_range must end within 5120"),
    (dict(quant_mode=3, x=HALF, **PAD), TilingError, "quant_mode must be -1 or 0 or 1 with drop_pad_mode 1, but is 3"),
    (
        dict(x=spec(5, 64)),
        TilingError,
        r"expert_idx must have one row for each row of x float32\[5,64\], but is int32\[6,2\]",
    ),
    (dict(x=spec(6, 65, dtype="bfloat16"), quant_mode=9), TilingError, r"x must have an even number of columns"),
    (dict(x=spec(6, 65), quant_mode=13), TilingError, r"x must have an even number of columns .* float32\[6,65\]"),
    (dict(x=spec(6, 65, dtype="float4_e2m1fn")), TilingError, "x must have an even number of columns"),
    (dict(x=FP8, **PAD), ParamInvalid, "x must be .* with drop_pad_mode 1, but is float8_e4m3fn"),
]


@pytest.mark.parametrize("call, error, message", FAULTS, ids=range(len(FAULTS)))
def test_refused(call, error, message):
    with pytest.raises(error, match=rf"^moe_init_routing: {message}") as caught:
        evaluate(**call)
    assert type(caught.value) is error and isinstance(caught.value, ValueError)
    assert caught.value.code == {ParamNullptr: 161001, ParamInvalid: 161002, TilingError: 561002}.get(error)
    assert caught.value.operator == "moe_init_routing"


# Groups of faults in the order of the stages that find them; a call with one of each reports the first.
STAGES = [
    (dict(expert_idx=spec(6, 2)), "expert_idx must be int32"),
    (dict(expert_num=0), "expert_num"),
    (dict(active_expert_range=(3, 2)), "active_expert_range must be rising"),
    (dict(active_num=-2), "active_num"),
    (dict(expert_tokens_num_type=3), "expert_tokens_num_type"),
    (dict(row_idx_type=2), "row_idx_type"),
    (dict(x=spec(6)), "x must have shape"),
]


@pytest.mark.parametrize("first", range(len(STAGES)))
def test_the_first_fault_is_reported(first):
    call = {}
    for keywords, _ in reversed(STAGES[first:]):
        call.update(keywords)
    with pytest.raises(ja.errors.OperatorError, match=STAGES[first][1]):
        evaluate(**call)


@pytest.mark.parametrize(
    "target, call, error, message",
    [
        (A2, dict(quant_mode=3, x=HALF), TilingError, "quant_mode must be -1 or 0 or 1 on A2 and A3, but is 3"),
        (A3, dict(quant_mode=13), TilingError, "quant_mode must be -1 or 0 or 1 on A2 and A3, but is 13"),
        (
            A2,
            dict(x=FP8),
            ParamInvalid,
            r"x must be float16 or bfloat16 or float32 or int8, but is float8_e4m3fn\[6,64\]",
        ),
        (A2, dict(expert_idx=spec(6, 2)), ParamInvalid, "expert_idx must be int32"),
        (A2, dict(x=FP8, scale=spec(6, 1, 2, dtype=E8M0)), ParamInvalid, "x must be"),
        # On A2 the dtypes come last, on 950 first.
        (
            A2,
            dict(expert_idx=spec(6, 2), active_expert_range=(0, 9)),
            TilingError,
            "active_expert_range must end within",
        ),
        (A5, dict(expert_idx=spec(6, 2), active_expert_range=(0, 9)), ParamInvalid, "expert_idx must be int32"),
        (A5, dict(expert_tokens_num_flag=False), TilingError, "expert_tokens_num_flag must be True on ascend950"),
        (
            A5,
            dict(expert_tokens_num_type=2, expert_num=5121, active_expert_range=(0, 8)),
            TilingError,
            "expert_num must be at most 5120",
        ),
        (
            A5,
            dict(expert_tokens_num_type=0, **PAD),
            TilingError,
            "expert_tokens_num_type must be 1 with drop_pad_mode 1",
        ),
        (
            A5,
            dict(expert_tokens_num_type=2, expert_tokens_num_flag=False, **PAD),
            TilingError,
            "expert_tokens_num_type must be 1",
        ),
        (A5, dict(drop_pad_mode=1, expert_capacity=0), TilingError, "expert_capacity must be at least 1"),
        (
            A5,
            dict(quant_mode=1, **PAD),
            TilingError,
            "quant_mode must be -1 with drop_pad_mode 1 on ascend950, but is 1",
        ),
        (A5, dict(active_expert_range=(0, 7), **PAD), TilingError, r"active_expert_range must be \[0, 8\]"),
        (A5, dict(active_expert_range=(0, 9)), TilingError, "active_expert_range must end within expert_num 8"),
        (A5, dict(x=FP8, **PAD), ParamInvalid, "x must be .* with drop_pad_mode 1"),
        (A5, dict(x=spec(5, 64)), TilingError, "expert_idx must have one row"),
        (A5, dict(quant_mode=1, scale=spec(1, 64)), TilingError, r"scale must have shape \[8, 64\] .* on ascend950"),
        (A5, dict(x=spec(6, 65), quant_mode=13), TilingError, "x must have an even number of columns"),
        (
            A5,
            dict(active_num=5),
            TilingError,
            r"active_num must be -1, 0 or 12 \(rows x slots\) on ascend950, but is 5",
        ),
    ],
)
def test_limits_of_a_product(target, call, error, message):
    with pytest.raises(error, match=message):
        evaluate(target=target, **call)


@pytest.mark.parametrize(
    "call",
    [
        dict(target=A2, quant_mode=1, scale=spec(1, 64)),
        dict(target=A2, active_num=5),
        dict(target=A2, expert_tokens_num_flag=False),
        dict(target=A2, expert_tokens_num_flag=False, expert_tokens_num_type=2, **PAD),
        dict(target=A3, quant_mode=0, scale=spec(1), offset=spec(1), **PAD),
        dict(target=A5, active_num=12),
        dict(target=A5, active_num=0, quant_mode=3, x=HALF),
        dict(target=A5, x=spec(6, 64, dtype="uint8"), **PAD),
        dict(target=A5, x=FP8, scale=spec(6, 1, 2, dtype=E8M0)),
        dict(x=FP8, scale=spec(6)),
        dict(offset=spec(7)),  # ignored
        dict(active_expert_range=[]),
        dict(active_expert_range=np.array([2, 3])),
        dict(expert_num=np.int64(8)),
        dict(drop_pad_mode=1, expert_capacity=6),
        dict(quant_mode=1, scale=spec(1, 64), active_expert_range=(2, 3), target=A5),
    ],
)
def test_accepted(call):
    got = evaluate(**call)
    limited = call.get("active_num") == 5
    assert got.expanded_row_idx.shape == (12,)
    assert got.expanded_x.shape[0] == (8 if call.get("drop_pad_mode") else 5 if limited else 12)


def test_active_num_does_not_limit_on_950():
    assert evaluate(active_num=12, target=A5).expanded_x.shape == (12, 64)
    assert evaluate(active_num=100).expanded_x.shape == (12, 64)


def test_keywords_that_are_no_constants():
    x, expert_idx = np.ones((2, 4), np.float32), np.zeros((2, 1), np.int32)
    for name in ("expert_num", "active_num", "quant_mode", "row_idx_type", "expert_tokens_num_flag"):
        call = lambda value, name=name: ja.moe_init_routing(x, expert_idx, **{"expert_num": 8, name: value})
        with pytest.raises(ParamInvalid, match=f"{name} decides what is computed .* static_argnames"):
            jax.jit(call)(1)
    with pytest.raises(ParamInvalid, match="active_expert_range decides what is computed .* static_argnames"):
        jax.jit(lambda end: ja.moe_init_routing(x, expert_idx, expert_num=8, active_expert_range=(0, end)))(3)
    for value in (1.0, True, "1", None):
        with pytest.raises(ParamInvalid, match="expert_num must be an integer, but is"):
            ja.moe_init_routing(x, expert_idx, expert_num=value)
    with pytest.raises(ParamInvalid, match="expert_tokens_num_flag must be True or False, but is 1"):
        ja.moe_init_routing(x, expert_idx, expert_num=8, expert_tokens_num_flag=1)
    with pytest.raises(ParamInvalid, match="active_expert_range must be an integer, but is 1.5"):
        ja.moe_init_routing(x, expert_idx, expert_num=8, active_expert_range=(0, 1.5))
    with pytest.raises(TilingError, match=r"active_expert_range must be \[first, last \+ 1\] or empty, but is \[4\]"):
        ja.moe_init_routing(x, expert_idx, expert_num=8, active_expert_range=4)


def test_lists_and_scalars_are_no_arrays():
    with pytest.raises(ParamInvalid, match=r"expert_idx must be an array, but is \[\[0\]\] \(list\)"):
        ja.moe_init_routing(np.ones((1, 4), np.float32), [[0]], expert_num=8)


def test_sizes_known_only_at_run_time_pass():
    (n,) = export.symbolic_shape("n")
    x, expert_idx = spec(n, 64), spec(n, 2, dtype="int32")
    for keywords in (PAD, dict(active_num=5), dict(active_num=5, target=A5)):
        got = evaluate(x, expert_idx, **keywords)
        assert str(got.expanded_row_idx.shape[0]) == "2*n"
    with pytest.raises(TilingError, match=r"one row for each row of x float32\[n,64\], but is int32\[n \+ 1,2\]"):
        evaluate(x, spec(n + 1, 2, dtype="int32"))
