"""`raise-sampling`: ways to write routers and the routing of tokens, and code that only looks like them.

Scores have equal values, so that a wrong rule for ties shows."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from raising import check, raised, stays

import jascend as ja

INF = jnp.inf
T, E, K, H, G = 16, 64, 4, 8, 8
GATING, ROUTING = "moe_gating_top_k", "moe_init_routing"


def arguments(seed):
    rng = np.random.default_rng(seed)
    x = jnp.asarray(np.round(rng.normal(0, 1, (T, E)) * 4) / 4, jnp.float32)
    bias = jnp.asarray(np.round(rng.normal(0, 0.1, E) * 4) / 4, jnp.float32)
    tokens = jnp.asarray(rng.normal(size=(T, H)), jnp.float32)
    return {"x": x, "bias": bias, "tokens": tokens, "ids": jnp.asarray(rng.integers(0, E, (T, K)), jnp.int32)}


def arguments_of(fn, seed=0):
    known = arguments(seed)
    return tuple(known[name] for name in fn.__code__.co_varnames[: fn.__code__.co_argcount])


# -- gating ---------------------------------------------------------------------------------------------------------


def softmax_top_k(x):
    return lax.top_k(jax.nn.softmax(x, axis=-1), K)


def softmax_by_argsort(x):
    scores = jax.nn.softmax(x, axis=-1)
    ids = jnp.argsort(-scores, axis=-1)[:, :K]
    return jnp.take_along_axis(scores, ids, axis=-1), ids


def softmax_renormalized(x):
    """The division stays as it is: the operator has none for a softmax."""
    weights, ids = lax.top_k(jax.nn.softmax(x, axis=-1), K)
    return weights / weights.sum(axis=-1, keepdims=True), ids


def sigmoid_with_bias(x, bias):
    scores = jax.nn.sigmoid(x)
    _, ids = lax.top_k(scores + bias, K)
    weights = jnp.take_along_axis(scores, ids, axis=-1)
    return weights / weights.sum(axis=-1, keepdims=True) * 2.5, ids


def sigmoid_written_out(x, bias):
    scores = 1 / (1 + jnp.exp(-x))
    ids = lax.top_k(bias[None] + scores, K)[1]
    weights = scores[jnp.arange(T)[:, None], ids]
    return weights / (jnp.sum(weights, axis=-1, keepdims=True) + 1e-20), ids


def square_root_of_softplus(x, bias):
    scores = jnp.sqrt(jax.nn.softplus(x))
    _, ids = lax.top_k(scores + bias, 6)
    weights = jnp.take_along_axis(scores, ids, axis=-1)
    return 1.5 * (weights / (weights.sum(-1, keepdims=True) + 1e-20)), ids


def groups_by_one_hot(x, bias):
    scores = jax.nn.sigmoid(x)
    biased = scores + bias
    of_groups = lax.top_k(biased.reshape(T, G, E // G), 2)[0].sum(axis=-1)
    _, best = lax.top_k(of_groups, 3)
    mask = jnp.repeat(jax.nn.one_hot(best, G).sum(axis=1), E // G, axis=-1)
    _, ids = lax.top_k(jnp.where(mask > 0, biased, -INF), K)
    weights = jnp.take_along_axis(scores, ids, axis=-1)
    return weights / (weights.sum(axis=-1, keepdims=True) + 1e-20) * 2.5, ids


def groups_by_scatter(x):
    scores = jax.nn.softmax(x, axis=-1)
    grouped = scores.reshape(T, G, E // G)
    _, best = lax.top_k(grouped.max(axis=-1), 3)
    mask = jnp.zeros((T, G), bool).at[jnp.arange(T)[:, None], best].set(True)
    masked = jnp.where(mask[..., None], grouped, -INF).reshape(T, E)
    _, ids = lax.top_k(masked, K)
    return jnp.take_along_axis(scores, ids, axis=-1), ids


def groups_left_out(x, bias):
    scores = jax.nn.sigmoid(x)
    biased = scores + bias
    best = jnp.argsort(-biased.reshape(T, G, E // G).max(axis=-1), axis=-1)[:, :3]
    mask = jnp.zeros((T, G)).at[jnp.arange(T)[:, None], best].set(1.0)
    left_out = jnp.broadcast_to((mask == 0)[:, :, None], (T, G, E // G)).reshape(T, E)
    _, ids = lax.top_k(jnp.where(left_out, -INF, biased), K)
    weights = jnp.take_along_axis(scores, ids, axis=-1)
    return weights / weights.sum(axis=-1, keepdims=True), ids


def ids_alone(x, bias):
    return lax.top_k(jax.nn.sigmoid(x) + bias, K)[1]


def sequences(x):
    return lax.top_k(jax.nn.softmax(x.reshape(2, T // 2, E), axis=-1), K)


def upcast(x):
    return lax.top_k(jax.nn.softmax(x.astype(jnp.bfloat16).astype(jnp.float32), axis=-1), K)


@pytest.mark.parametrize(
    "fn",
    [
        softmax_top_k, softmax_by_argsort, softmax_renormalized, sigmoid_with_bias, sigmoid_written_out,
        square_root_of_softplus, groups_by_one_hot, groups_by_scatter, groups_left_out, ids_alone, sequences, upcast,
    ],
    ids=lambda fn: fn.__name__,
)  # fmt: skip
def test_gating(fn):
    check(fn, arguments_of(fn), [GATING], [arguments_of(fn, seed) for seed in range(1, 4)], rtol=3e-6)


def test_a_compiled_router_computes_the_same():
    program = ja.compile(groups_by_one_hot, *arguments_of(groups_by_one_hot))
    assert len(program.kernels) == 1
    others = arguments_of(groups_by_one_hot, 5)
    for found, expected in zip(program(*others), jax.jit(groups_by_one_hot)(*others)):
        np.testing.assert_allclose(found, expected, rtol=1e-5)


# -- routing --------------------------------------------------------------------------------------------------------


def route_by_division(x, tokens):
    weights, ids = softmax_top_k(x)
    flat = ids.reshape(-1)
    order = jnp.argsort(flat)
    counts = jnp.bincount(flat, length=E)
    return weights, tokens[order // K], counts, jnp.argsort(order)


def route_repeated(x, tokens):
    weights, ids = softmax_top_k(x)
    flat = jnp.ravel(ids)
    order = jnp.argsort(flat, stable=True)
    counts = jax.nn.one_hot(flat, E, dtype=jnp.int32).sum(axis=0)
    return jnp.take(jnp.repeat(tokens, K, axis=0), order, axis=0), counts, order, weights


def route_without_counts(x, tokens, bias):
    weights, ids = sigmoid_with_bias(x, bias)
    order = jnp.argsort(ids.ravel())
    return tokens[order // K] * weights.ravel()[order][:, None]


def route_one_expert(x, tokens):
    ids = jnp.argmax(x, axis=-1).astype(jnp.int32)
    order = jnp.argsort(ids)
    return tokens[order], jnp.bincount(ids, length=E)


def route_clipped(ids, tokens):
    flat = jnp.clip(ids, 0, E - 1).reshape(-1)
    order = jnp.argsort(flat)
    return tokens[order // K], jnp.bincount(flat, length=E)


@pytest.mark.parametrize(
    ("fn", "operators"),
    [
        (route_by_division, [GATING, ROUTING]),
        (route_repeated, [GATING, ROUTING]),
        (route_without_counts, [GATING, ROUTING]),
        (route_one_expert, ["top_k_top_p_sample", ROUTING]),
        (route_clipped, [ROUTING]),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_routing(fn, operators):
    check(fn, arguments_of(fn), operators, [arguments_of(fn, seed) for seed in range(1, 4)], rtol=3e-6)


def test_rows_that_follow_from_counts_are_computed_after_them():
    def fn(ids, tokens):
        flat = jnp.clip(ids, 0, E - 1).reshape(-1)
        counts = jnp.bincount(flat, length=E)
        tokens = tokens * counts[:H].astype(jnp.float32)
        return tokens[jnp.argsort(flat) // K], counts

    after, counts, remarks = raised(fn, *arguments_of(fn))
    assert not counts and "follow from its results" in remarks[0].text
    for expected, found in zip(jax.jit(fn)(*arguments_of(fn)), after(*arguments_of(fn))):
        np.testing.assert_array_equal(found, expected)


# -- what is not raised ---------------------------------------------------------------------------------------------


def softmax_of_the_chosen(x):
    values, ids = lax.top_k(x, K)
    return jax.nn.softmax(values, axis=-1), ids


def sigmoid_as_it_is(x):
    weights, ids = lax.top_k(jax.nn.sigmoid(x), K)
    return weights * 2.0, ids


def sigmoid_returned(x):
    return lax.top_k(jax.nn.sigmoid(x), K)


def groups_filled_with_zero(x, bias):
    scores = jax.nn.sigmoid(x) + bias
    _, best = lax.top_k(scores.reshape(T, G, E // G).max(axis=-1), 3)
    mask = jnp.repeat(jax.nn.one_hot(best, G).sum(axis=1), E // G, axis=-1)
    return lax.top_k(jnp.where(mask > 0, scores, 0.0), K)[1]


def higher_ids_first(x):
    scores = jax.nn.softmax(x, axis=-1)
    ids = jnp.argsort(scores, axis=-1)[:, ::-1][:, :K]
    return jnp.take_along_axis(scores, ids, axis=-1), ids


def scores_in_bfloat16(x):
    return lax.top_k(jax.nn.softmax(x.astype(jnp.bfloat16), axis=-1), K)


def too_many_experts(x):
    return lax.top_k(jax.nn.softmax(jnp.tile(x, (1, 64)), axis=-1), K)


def softmax_over_tokens(x):
    return lax.top_k(jax.nn.softmax(x, axis=0), K)


def approximate(x):
    return lax.approx_max_k(jax.nn.softmax(x, axis=-1), K)


def bias_of_each_token(x):
    return lax.top_k(jax.nn.sigmoid(x) + x * 0.1, K)[1]


def clipped_sum(x):
    weights, ids = lax.top_k(jax.nn.sigmoid(x), K)
    return weights / jnp.maximum(weights.sum(axis=-1, keepdims=True), 1e-9), ids


def more_than_the_groups_have(x):
    scores = jax.nn.softmax(x, axis=-1)
    grouped = scores.reshape(T, 32, 2)
    _, best = lax.top_k(grouped.max(axis=-1), 1)
    mask = jnp.zeros((T, 32), bool).at[jnp.arange(T)[:, None], best].set(True)
    return lax.top_k(jnp.where(mask[..., None], grouped, -INF).reshape(T, E), K)[1]


GATING_MISSES = {
    softmax_of_the_chosen: "",
    sigmoid_as_it_is: "not divided by their sum",
    sigmoid_returned: "not divided by their sum",
    groups_filled_with_zero: "scores of other groups become 0, and of the operator -inf",
    higher_ids_first: "it chooses the higher id",
    scores_in_bfloat16: "computed in bfloat16",
    too_many_experts: "there are 4096 experts, and the operator takes 2048",
    softmax_over_tokens: "",
    approximate: "",
    bias_of_each_token: "",
    clipped_sum: "does not divide weights of a sigmoid by their sum, plus a number",
    more_than_the_groups_have: "k",
}


@pytest.mark.parametrize(("fn", "reason"), GATING_MISSES.items(), ids=lambda value: getattr(value, "__name__", None))
def test_no_gating(fn, reason):
    stays(fn, arguments_of(fn), reason)


def ids_of_anywhere(ids, tokens):
    return tokens[jnp.argsort(ids.reshape(-1)) // K]


def last_experts_first(ids, tokens):
    return tokens[jnp.argsort(-jnp.clip(ids, 0, E - 1).reshape(-1)) // K]


def unstable(ids, tokens):
    return tokens[jnp.argsort(jnp.clip(ids, 0, E - 1).reshape(-1), stable=False) // K]


def descending_pairs(ids, tokens):
    return tokens[jnp.argsort(jnp.clip(ids, 0, E - 1).reshape(-1))[::-1] // K]


def other_division(ids, tokens):
    return tokens[jnp.argsort(jnp.clip(ids, 0, E - 1).reshape(-1)) // (K + 1)]


def by_slot(ids, tokens):
    return tokens[jnp.argsort(jnp.clip(ids, 0, E - 1).reshape(-1)) % T]


def token_features(ids, tokens):
    return tokens.T[jnp.argsort(jnp.clip(ids, 0, E - 1).reshape(-1)) // K % H]


ROUTING_MISSES = {
    ids_of_anywhere: "its ids may be no experts",
    last_experts_first: "",
    unstable: "",
    descending_pairs: "",
    other_division: "",
    by_slot: "",
    token_features: "",
}


@pytest.mark.parametrize(("fn", "reason"), ROUTING_MISSES.items(), ids=lambda value: getattr(value, "__name__", None))
def test_no_routing(fn, reason):
    stays(fn, arguments_of(fn), reason)
