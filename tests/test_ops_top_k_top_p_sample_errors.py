"""Which error a wrong call of the sampler gives: class, CANN status, text, and that the first fault in order wins."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jascend as ja
from jascend.dialect import rules
from jascend.dialect.rules import Shaped

NULL, INVALID, TILING = ja.errors.ParamNullptr, ja.errors.ParamInvalid, ja.errors.TilingError


def f(*shape, dtype="float32"):
    return Shaped(shape, dtype)


def i(*shape):
    return Shaped(shape, "int32")


def h(*shape):
    return f(*shape, dtype="float16")


# Each row has the fault it names and every fault of the rows below it that can be had at the same time.
ORDER = [
    (NULL, "logits is required", (None, None, None, i(4), i(3, 1)), {}),
    (NULL, "top_k is required", (i(4), None, None, i(4), i(3, 1)), {}),
    (NULL, "top_p is required", (i(4), f(3, 1), None, i(4), i(3, 1)), {}),
    (INVALID, "logits must be float32 or float16 or bfloat16, but is int32",
     (i(4), f(3, 1), h(3, 1), i(4), h(3, 1)), {}),
    (INVALID, "top_k must be int32, but is float32", (f(4), f(3, 1), h(3, 1), i(4), h(3, 1)), {}),
    (INVALID, r"top_p must have the dtype of logits \(float32\), but is float16\[3,1\].*top_p.astype\(",
     (f(4), i(3, 1), h(3, 1), i(4), h(3, 1)), {}),
    (INVALID, "q must be float32, but is int32", (f(4), i(3, 1), f(3, 1), i(4), h(3, 1)), {}),
    (INVALID, "min_ps must have the dtype of logits", (f(4), i(3, 1), f(3, 1), f(4), h(3, 1)), dict(ks_max=0)),
    (INVALID, "ks_max must be at least 1, but is 0", (f(4), i(3, 1), f(3, 1), f(4), f(3, 1)), dict(ks_max=0)),
    (TILING, r"logits must have shape \[B, V\], but is float32\[4\] of rank 1",
     (f(4), i(3, 1), f(3, 1), f(4), f(3, 1)), {}),
    (TILING, r"logits must have shape \[B, V\], but is float32\[4,8,2\]",
     (f(4, 8, 2), i(3, 1), f(3, 1), f(4), f(3, 1)), {}),
    (INVALID, r"logits must not be empty, but is float32\[0,2097152\]",
     (f(0, 2**21), i(3, 1), f(3, 1), f(4), f(3, 1)), {}),
    (INVALID, r"logits must not be empty, but is float32\[4,0\]", (f(4, 0), i(3, 1), f(3, 1), f(4), f(3, 1)), {}),
    (TILING, "logits may have at most 1048576 elements a row", (f(4, 2**20 + 1), i(3, 1), f(3, 1), f(4), f(3, 1)), {}),
    (TILING, r"top_k must have shape \[B\], but is int32\[3,1\]", (f(4, 8), i(3, 1), f(3, 1), f(4), f(3, 1)), {}),
    (TILING, r"top_p must have shape \[B\], but is float32\[3,1\]", (f(4, 8), i(3), f(3, 1), f(4), f(3, 1)), {}),
    (INVALID, r"top_k must have one element a row, shape \[4\], but is int32\[3\]",
     (f(4, 8), i(3), f(3), f(4), f(3, 1)), {}),
    (INVALID, r"top_p must have one element a row, shape \[4\]", (f(4, 8), i(4), f(3), f(4), f(3, 1)), {}),
    (TILING, "q must be None where is_need_sample_result is set", (f(4, 8), i(4), f(4), f(4), f(3, 1)),
     dict(is_need_sample_result=True)),
    (TILING, r"q must have shape \[B, V\], but is float32\[4\] of rank 1", (f(4, 8), i(4), f(4), f(4), f(3, 1)), {}),
    (INVALID, r"q must be shaped like logits float32\[4,8\], but is float32\[4,9\]",
     (f(4, 8), i(4), f(4), f(4, 9), f(3, 1)), {}),
    (TILING, r"min_ps must have shape \[B\], but is float32\[3,1\]", (f(4, 8), i(4), f(4), f(4, 8), f(3, 1)), {}),
    (INVALID, r"min_ps must have one element a row, shape \[4\]", (f(4, 8), i(4), f(4), f(4, 8), f(3)), {}),
]  # fmt: skip


@pytest.mark.parametrize("error, text, operands, attributes", ORDER)
def test_order(error, text, operands, attributes):
    with pytest.raises(error, match=f"top_k_top_p_sample: {text}") as caught:
        rules.top_k_top_p_sample(*operands, **attributes)
    assert type(caught.value) is error
    assert error.code == {NULL: 161001, INVALID: 161002, TILING: 561002}[error]
    assert isinstance(caught.value, TypeError if error is NULL else ValueError)


LOGITS, HALF, K, P = jnp.ones((4, 8)), jnp.ones((4, 8), jnp.bfloat16), jnp.ones(4, jnp.int32), jnp.ones(4)


@pytest.mark.parametrize(
    "error, text, call",
    [
        (NULL, "logits is required", lambda sample: sample(None, K, P)),
        (NULL, "top_k is required", lambda sample: sample(LOGITS, None, None)),
        (NULL, "top_p is required", lambda sample: sample(LOGITS, K, None)),
        (INVALID, "logits must be an array, but is", lambda sample: sample([[1.0]], K, P)),
        (INVALID, "top_k must be int32, but is float", lambda sample: sample(LOGITS, 1.5, P)),
        (INVALID, "top_k must be a number or an array, but is True", lambda sample: sample(LOGITS, True, P)),
        (INVALID, "top_k must fit int32, but is 4294967296", lambda sample: sample(LOGITS, 2**32, P)),
        (INVALID, "top_p must have the dtype of logits", lambda sample: sample(HALF, K, P)),
        (INVALID, "q must be an array, but is 1.0", lambda sample: sample(LOGITS, K, P, 1.0)),
        (INVALID, "q must be float32, but is bfloat16", lambda sample: sample(LOGITS, K, P, HALF)),
        (INVALID, "min_ps must have one element a row", lambda sample: sample(LOGITS, K, P, None, P[:2])),
        (TILING, r"min_ps must have shape \[B\]", lambda sample: sample(LOGITS, K, P, None, P[:, None])),
        (TILING, "q must be None", lambda sample: sample(LOGITS, K, P, LOGITS, is_need_sample_result=True)),
        (INVALID, "logits must not be empty", lambda sample: sample(LOGITS[:0], K[:0], P[:0])),
        (INVALID, "logits must not be empty", lambda sample: sample(LOGITS[:, :0], 1, 0.5)),
        (INVALID, "ks_max must be at least 1", lambda sample: sample(LOGITS, K, P, ks_max=0)),
        (INVALID, "ks_max must be an integer, but is 8.0", lambda sample: sample(LOGITS, K, P, ks_max=8.0)),
        (INVALID, "top_k_guess must be an integer, but is None", lambda sample: sample(LOGITS, K, P, top_k_guess=None)),
        (INVALID, "eps must be a number, but is '1'", lambda sample: sample(LOGITS, K, P, eps="1")),
        (INVALID, "is_need_logits must be True or False, but is 1",
         lambda sample: sample(LOGITS, K, P, is_need_logits=1)),
        (INVALID, "input_is_logits must be True or False", lambda sample: sample(LOGITS, K, P, input_is_logits=None)),
        (ja.errors.Unsupported, "target must be ascend910b, ascend910_93, ascend950 or None, but is 'ascend310p'",
         lambda sample: sample(None, K, P, target="ascend310p")),
    ],
)  # fmt: skip
def test_calls(error, text, call):
    with pytest.raises(error, match=f"top_k_top_p_sample: {text}"):
        call(ja.top_k_top_p_sample)
    with pytest.raises(error, match=f"top_k_top_p_sample: {text}"):
        jax.jit(lambda: call(ja.top_k_top_p_sample))()


@pytest.mark.parametrize(
    "name, value",
    [("ks_max", 8), ("top_k_guess", 8), ("eps", 0.5), ("is_need_logits", True), ("input_is_logits", False)],
)
def test_a_traced_keyword_names_static_argnames(name, value):
    with pytest.raises(INVALID, match=f"{name} decides what is computed.*static_argnames of jax.jit"):
        jax.jit(ja.top_k_top_p_sample)(LOGITS, K, P, **{name: value})
    shapes = jax.eval_shape(functools.partial(ja.top_k_top_p_sample, **{name: value}), LOGITS, K, P)
    assert shapes.logits_select_idx.shape == (4,)


@pytest.mark.parametrize("target", [None, *rules.TARGETS])
def test_every_target_takes_all_dtypes(target):
    for dtype in ("float32", "float16", "bfloat16"):
        shapes = jax.eval_shape(
            functools.partial(ja.top_k_top_p_sample, target=target), LOGITS.astype(dtype), K, P.astype(dtype), LOGITS
        )
        assert shapes.logits_select_idx.shape == (4,)


def test_the_longest_rows_are_refused_without_being_made():
    evaluate = lambda size: jax.eval_shape(
        lambda x: ja.top_k_top_p_sample(x, 5, 0.5), jax.ShapeDtypeStruct((2, size), jnp.float32)
    )
    assert evaluate(2**20).logits_select_idx.shape == (2,)
    for size in (2**20 + 1, 2**31, 2**40):
        with pytest.raises(TILING, match="at most 1048576 elements a row"):
            evaluate(size)


def test_under_vmap_the_rule_sees_one_call():
    with pytest.raises(INVALID, match=r"top_k must have one element a row, shape \[2\], but is int32\[3\]"):
        jax.vmap(ja.top_k_top_p_sample)(jnp.ones((5, 2, 8)), jnp.ones((5, 3), jnp.int32), jnp.ones((5, 2)))


def test_values_known_at_run_time_only_are_not_errors():
    wild = np.array([-7, 0, 9, 2**31 - 1], np.int32)
    result = ja.top_k_top_p_sample(LOGITS, wild, np.array([-1, 2, np.nan, 0.5], np.float32))
    assert ((result.logits_select_idx >= 0) & (result.logits_select_idx < 8)).all()
