"""Which error a wrong call gives: class, CANN status, text; and that the first fault in CANN's order wins."""

import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jascend as ja
from jascend.dialect import rules
from jascend.dialect.rules import Shaped

NULL, INVALID, TILING = ja.errors.ParamNullptr, ja.errors.ParamInvalid, ja.errors.TilingError
LOGITS, P, K = Shaped((4, 8), "float32"), Shaped((4,), "float32"), Shaped((4,), "int32")
INDICES = Shaped((4, 8), "int32")


def f(*shape, dtype="float32"):
    return Shaped(shape, dtype)


def i(*shape):
    return Shaped(shape, "int32")


# Each row has the fault it names and every fault of the rows below it that can be had at the same time.
API_ORDER = [
    (NULL, "logits is required", (None, None, None)),
    (NULL, "p and k are both None", (f(4, dtype="int32"), None, None)),
    (INVALID, "logits must be float32 or float16 or bfloat16, but is int32", (i(4), i(3, 1), f(3, 1))),
    (INVALID, "p must be float32 or float16 or bfloat16, but is int32", (f(4), i(3, 1), f(3, 1))),
    (INVALID, "k must be int32, but is float32", (f(4), f(3, 1, dtype="float16"), f(3, 1))),
    (INVALID, r"p must have the dtype of logits \(float32\), but is float16\[3,1\].*p.astype\(logits.dtype\)",
     (f(4), f(3, 1, dtype="float16"), i(3, 1))),
    (INVALID, r"logits must have shape \[B, V\], but is float32\[4\] of rank 1", (f(4), f(3, 1), i(3, 1))),
    (INVALID, r"p must have shape \[B\], but is float32\[3,1\]", (f(4, 2**31), f(3, 1), i(3, 1))),
    (INVALID, r"k must have shape \[B\], but is int32\[3,1\]", (f(4, 2**31), f(3), i(3, 1))),
    (INVALID, r"p must have one element a row, shape \[4\], but is float32\[3\]", (f(4, 2**31), f(3), i(5))),
    (INVALID, r"k must have one element a row, shape \[4\], but is int32\[5\]", (f(4, 2**31), f(4), i(5))),
    (TILING, "logits may have at most 2147483647 elements a row", (f(4, 2**31), f(4), i(4))),
]  # fmt: skip


@pytest.mark.parametrize("error, text, operands", API_ORDER)
def test_api_order(error, text, operands):
    with pytest.raises(error, match=f"apply_top_k_top_p: {text}"):
        rules.apply_top_k_top_p(*operands)


GRAPH_ORDER = [
    (NULL, "sorted_value is required", (None, None, i(3, 1), f(3, 1), i(2))),
    (NULL, "sorted_indices is required", (i(4), None, i(3, 1), f(3, 1), i(2))),
    (INVALID, "sorted_value must be float32", (i(4), f(4, 7), i(3, 1), f(3, 1), i(2))),
    (INVALID, "sorted_indices must be int32", (f(4), f(3), i(3, 1), f(3, 1), i(2))),
    (INVALID, r"p must have the dtype of sorted_value \(float32\)", (f(4), i(3), i(3, 1), f(3, 1), i(2))),
    (INVALID, "k must be int32, but is float32", (f(4), i(3), f(3, 1), f(3, 1), i(2))),
    (INVALID, "logits must have the dtype of sorted_value", (f(4), i(3), f(3, 1), i(3, 1), i(2))),
    (TILING, r"sorted_value must have shape \[B, V\]", (f(4), i(3), f(3, 1), i(3, 1), f(2))),
    (TILING, r"sorted_indices must have shape \[B, V\]", (f(4, 8), i(3), f(3, 1), i(3, 1), f(2))),
    (TILING, r"sorted_indices must be shaped like sorted_value", (f(4, 8), i(4, 9), f(3, 1), i(3, 1), f(2))),
    (TILING, r"p must have shape \[B\]", (f(4, 8), i(4, 8), f(3, 1), i(3, 1), f(2))),
    (TILING, r"p must have one element a row", (f(4, 8), i(4, 8), f(3), i(3, 1), f(2))),
    (TILING, r"k must have shape \[B\]", (f(4, 8), i(4, 8), f(4), i(3, 1), f(2))),
    (TILING, r"k must have one element a row", (f(4, 8), i(4, 8), f(4), i(3), f(2))),
    (TILING, "p and k are both None", (f(4, 8), i(4, 8), None, None, f(2))),
    (TILING, r"logits must be shaped like sorted_value float32\[4,8\], but is float32\[2\]",
     (f(4, 8), i(4, 8), f(4), i(4), f(2))),
]  # fmt: skip


@pytest.mark.parametrize("error, text, operands", GRAPH_ORDER)
def test_graph_operator_order(error, text, operands):
    with pytest.raises(error, match=f"apply_top_k_top_p_with_sorted: {text}"):
        rules.apply_top_k_top_p_with_sorted(*operands)


@pytest.mark.parametrize(
    "error, text, x",
    [
        (NULL, "x is required", None),
        (INVALID, "x must be float32", i(3)),
        (INVALID, "x must have at least one axis", f()),
        (TILING, "x may have at most 2147483647 elements a row", f(1, 2**31)),
    ],
)
def test_sort(error, text, x):
    with pytest.raises(error, match=f"sort: {text}"):
        rules.sort(x)


def test_results_of_the_rules():
    assert rules.sort(f(2, 5, dtype="float16")) == (f(2, 5, dtype="float16"), i(2, 5))
    assert rules.apply_top_k_top_p(LOGITS, P, K) == LOGITS
    assert rules.apply_top_k_top_p(LOGITS, None, K) == rules.apply_top_k_top_p(LOGITS, P, None) == LOGITS
    assert rules.apply_top_k_top_p_with_sorted(LOGITS, INDICES, P, None, LOGITS) == LOGITS
    assert rules.apply_top_k_top_p(f(1, 2**31 - 1), f(1)) == f(1, 2**31 - 1)


def test_an_unknown_size_fits_every_size():
    assert rules.apply_top_k_top_p(f(None, 8), f(4), i(None)) == f(None, 8)
    assert rules.apply_top_k_top_p_with_sorted(f(4, None), i(None, 8), f(None), None, f(4, 8)) == f(4, None)
    assert str(f(None, 8)) == "float32[?,8]"
    assert not rules.same_shape((None,), (None, None))


@pytest.mark.parametrize("target", rules.TARGETS)
def test_targets(target):
    assert rules.apply_top_k_top_p(LOGITS, P, K, target=target) == LOGITS
    assert rules.apply_top_k_top_p_with_sorted(LOGITS, INDICES, P, K, target=target) == LOGITS


@pytest.mark.parametrize("target", ["ascend310p", "kirinx90", "kirin9030", "ascend910"])
def test_other_products_are_refused_by_name(target):
    with pytest.raises(ja.errors.Unsupported, match=f"target must be ascend910b, .* but is '{target}'"):
        ja.apply_top_k_top_p(jnp.zeros((1, 2)), 0.5, target=target)


@pytest.mark.parametrize(
    "error, code, builtin", [(NULL, 161001, TypeError), (INVALID, 161002, ValueError), (TILING, 561002, ValueError)]
)
def test_status_codes(error, code, builtin):
    raised = error("sort", "x", "is wrong")
    assert raised.code == error.code == code
    assert isinstance(raised, builtin) and isinstance(raised, ValueError)
    assert (raised.operator, raised.argument, str(raised)) == ("sort", "x", "sort: x is wrong")
    copy = pickle.loads(pickle.dumps(raised))
    assert (type(copy), copy.operator, copy.argument, str(copy)) == (error, "sort", "x", "sort: x is wrong")


def test_public_calls_raise_what_the_rules_do():
    logits, p, k = jnp.zeros((4, 8)), jnp.zeros(4), jnp.zeros(4, jnp.int32)
    values, indices = ja.sort(logits)
    for error, call in (
        (NULL, lambda: ja.apply_top_k_top_p(None, 0.5)),
        (NULL, lambda: ja.apply_top_k_top_p(logits)),
        (NULL, lambda: ja.sort(None)),
        (NULL, lambda: ja.apply_top_k_top_p_with_sorted(values, None, p)),
        (TILING, lambda: ja.apply_top_k_top_p_with_sorted(values, indices)),
        (TILING, lambda: ja.apply_top_k_top_p_with_sorted(values, indices[:, :7], p)),
        (INVALID, lambda: ja.apply_top_k_top_p(logits[0], 0.5)),
        (INVALID, lambda: ja.apply_top_k_top_p(logits[None], 0.5)),
        (INVALID, lambda: ja.apply_top_k_top_p(logits.astype(jnp.int32), 0.5)),
        (INVALID, lambda: ja.apply_top_k_top_p(logits.astype(jnp.bfloat16), p)),
        (INVALID, lambda: ja.apply_top_k_top_p(logits, p[:3], k)),
        (INVALID, lambda: ja.apply_top_k_top_p(logits, p, k.astype(jnp.int16))),
        (INVALID, lambda: ja.apply_top_k_top_p(logits, p, p)),
        (INVALID, lambda: ja.apply_top_k_top_p(logits, jnp.float32(0.5))),  # an array, though of rank 0
        (INVALID, lambda: jax.jit(ja.apply_top_k_top_p)(logits, p[:, None])),
        (INVALID, lambda: jax.vmap(ja.apply_top_k_top_p)(logits, p)),
    ):
        with pytest.raises(error):
            call()


@pytest.mark.parametrize(
    "p, k, text",
    [
        (None, 50.0, "k must be int32, but is float64"),
        (None, np.float32(50), "k must be int32, but is float32"),
        (None, 2**31, "k must fit int32, but is 2147483648"),
        (None, True, "k must be a number or an array, but is True"),
        (None, [1, 2], r"k must be an array, but is \[1, 2\] \(list\)"),
        ("0.5", None, r"p must be an array, but is '0.5' \(str\)"),
    ],
)
def test_scalars_of_the_wrong_kind(p, k, text):
    with pytest.raises(INVALID, match=text):
        ja.apply_top_k_top_p(jnp.zeros((2, 4)), p, k)


def test_weak_scalars_under_jit_keep_their_kind():
    with pytest.raises(INVALID, match="k must be int32, but is float32"):
        jax.jit(ja.apply_top_k_top_p)(jnp.zeros((2, 4)), 0.5, 50.0)


def test_sizes_are_checked_without_memory_for_them():
    spec = jax.ShapeDtypeStruct
    huge = spec((1, 2**31), jnp.float32)
    with pytest.raises(TILING, match="at most 2147483647 elements a row"):
        jax.eval_shape(lambda x: ja.apply_top_k_top_p(x, 0.5), huge)
    with pytest.raises(TILING, match="at most 2147483647 elements a row"):
        jax.eval_shape(ja.sort, huge)
    many = spec((2**20, 152064), jnp.bfloat16)  # far beyond 2^31 elements, with rows that are fine
    assert jax.eval_shape(lambda x: ja.apply_top_k_top_p(x, 0.5, 3), many) == many


def test_symbolic_sizes_must_be_provably_equal():
    b, c = jax.export.symbolic_shape("b, c")
    logits = jax.ShapeDtypeStruct((b, 8), jnp.float32)
    assert jax.eval_shape(ja.apply_top_k_top_p, logits, jax.ShapeDtypeStruct((b,), jnp.float32)).shape == (b, 8)
    with pytest.raises(INVALID, match=r"p must have one element a row, shape \[b\], but is float32\[c\]"):
        jax.eval_shape(ja.apply_top_k_top_p, logits, jax.ShapeDtypeStruct((c,), jnp.float32))
