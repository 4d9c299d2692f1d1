"""`raise-sampling`: code that only looks like a filter or a sampler, each with the reason why it stays."""

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from raising import INF, P, B, V, arguments, kth_of, raised, stays
from test_raise_filters import ascending_taken_back

import jascend as ja


def cut_at_a_value(logits, p):
    ordered = jnp.sort(logits, axis=-1)[:, ::-1]
    sums = jnp.cumsum(jax.nn.softmax(ordered, axis=-1), axis=-1)
    cutoff = jnp.take_along_axis(ordered, jnp.sum(sums < p[:, None], axis=-1, keepdims=True), axis=-1)
    return jnp.where(logits < cutoff, -INF, logits)


def cut_at_the_least_kept(logits):
    ordered = jnp.sort(logits, axis=-1)[:, ::-1]
    probabilities = jax.nn.softmax(ordered, axis=-1)
    kept = jnp.cumsum(probabilities, axis=-1) - probabilities < 0.9
    return jnp.where(logits < jnp.min(jnp.where(kept, ordered, INF), axis=-1, keepdims=True), -INF, logits)


def removes_the_token_that_reaches_p(logits):
    order = jnp.argsort(logits, axis=-1)[:, ::-1]
    kept = jnp.cumsum(jax.nn.softmax(jnp.take_along_axis(logits, order, axis=-1), axis=-1), axis=-1) <= 0.9
    kept = kept.at[:, 0].set(True)
    return jnp.where(jnp.take_along_axis(kept, jnp.argsort(order), axis=-1), logits, -INF)


def fills_with_a_large_number(logits):
    return jnp.where(logits < kth_of(logits, 10), -1e10, logits)


def fills_with_the_least_number(logits):
    return jnp.where(logits < kth_of(logits, 10), jnp.finfo(jnp.float32).min, logits)


def removes_the_kth_too(logits):
    return jnp.where(logits > kth_of(logits, 10), logits, -INF)


def sorts_probabilities(logits):
    probabilities = jax.nn.softmax(logits, axis=-1)
    order = jnp.argsort(probabilities, axis=-1)
    sums = jnp.cumsum(jnp.take_along_axis(probabilities, order, axis=-1), axis=-1)
    kept = (sums > 0.1).at[:, -1].set(True)
    return jnp.where(jnp.take_along_axis(kept, jnp.argsort(order), axis=-1), logits, -INF)


def probabilities_in_bfloat16(logits):
    return ascending_taken_back(logits.astype(jnp.bfloat16), P.astype(jnp.bfloat16))


def largest_of_higher_index(logits):
    indices = jnp.argsort(logits, axis=-1)[:, ::-1][:, :9]
    mask = jnp.zeros(logits.shape, bool).at[jnp.arange(B)[:, None], indices].set(True)
    return jnp.where(mask, logits, -INF)


def more_than_the_operator_sorts(logits):
    logits = jnp.tile(logits, (1, 32))
    values, indices = lax.top_k(logits, 1500)
    return jnp.full_like(logits, -INF).at[jnp.arange(B)[:, None], indices].set(values)


def computed_number_of_ranks(logits, k):
    ranks = jnp.argsort(jnp.argsort(-logits, axis=-1), axis=-1)
    return jnp.where(ranks < k[:, None], logits, -INF)


def p_of_any_sign(logits, p):
    order = jnp.argsort(-logits, axis=-1)
    probabilities = jax.nn.softmax(jnp.take_along_axis(logits, order, axis=-1), axis=-1)
    kept = jnp.cumsum(probabilities, axis=-1) - probabilities < p[:, None]
    return jnp.where(jnp.take_along_axis(kept, jnp.argsort(order), axis=-1), logits, -INF)


def min_p_of_any_size(logits, p):
    probabilities = jax.nn.softmax(logits, axis=-1)
    return jnp.where(probabilities >= p[:, None] * probabilities.max(-1, keepdims=True), logits, -INF)


def keeps_the_tail(logits):
    order = jnp.argsort(logits, axis=-1)
    sums = jnp.cumsum(jax.nn.softmax(jnp.take_along_axis(logits, order, axis=-1), axis=-1), axis=-1)
    return jnp.where(jnp.take_along_axis(sums < 0.5, jnp.argsort(order), axis=-1), logits, -INF)


def always_keeps_the_least(logits):
    order = jnp.argsort(logits, axis=-1)
    sums = jnp.cumsum(jax.nn.softmax(jnp.take_along_axis(logits, order, axis=-1), axis=-1), axis=-1)
    kept = (sums > 0.5).at[:, 0].set(True)
    return jnp.where(jnp.take_along_axis(kept, jnp.argsort(order), axis=-1), logits, -INF)


def removes_the_best(logits):
    order = jnp.argsort(logits, axis=-1)[:, ::-1]
    removed = jnp.cumsum(jax.nn.softmax(jnp.take_along_axis(logits, order, axis=-1), axis=-1), axis=-1) > 0.9
    removed = jnp.concatenate((jnp.ones_like(removed[:, :1]), removed[:, :-1]), axis=-1)
    return jnp.where(jnp.take_along_axis(removed, jnp.argsort(order), axis=-1), -INF, logits)


def nucleus_at_another_temperature(logits):
    order = jnp.argsort(logits, axis=-1)
    sums = jnp.cumsum(jax.nn.softmax(jnp.take_along_axis(logits, order, axis=-1) / 2, axis=-1), axis=-1)
    kept = (sums > 0.1).at[:, -1].set(True)
    return jnp.where(jnp.take_along_axis(kept, jnp.argsort(order), axis=-1), logits, -INF)


def sums_over_the_batch(logits):
    order = jnp.argsort(logits, axis=-1)
    sums = jnp.cumsum(jax.nn.softmax(jnp.take_along_axis(logits, order, axis=-1), axis=-1), axis=0)
    kept = (sums > 0.1).at[:, -1].set(True)
    return jnp.where(jnp.take_along_axis(kept, jnp.argsort(order), axis=-1), logits, -INF)


def mask_left_in_sorted_order(logits):
    sums = jnp.cumsum(jax.nn.softmax(jnp.sort(logits, axis=-1), axis=-1), axis=-1)
    return jnp.where((sums > 0.1).at[:, -1].set(True), logits, -INF)


def limit_for_each_token(logits):
    order = jnp.argsort(logits, axis=-1)
    sums = jnp.cumsum(jax.nn.softmax(jnp.take_along_axis(logits, order, axis=-1), axis=-1), axis=-1)
    kept = (sums > 1 - jnp.linspace(0.5, 0.9, V)).at[:, -1].set(True)
    return jnp.where(jnp.take_along_axis(kept, jnp.argsort(order), axis=-1), logits, -INF)


def kth_of_other_logits(logits):
    return jnp.where(logits < kth_of(logits * 2, 10), -INF, logits)


def kth_along_the_batch(logits):
    return jnp.where(logits < jnp.sort(logits, axis=0)[-2], -INF, logits)


def q_of_any_sign(logits, q):
    return jnp.argmax(jax.nn.softmax(logits, axis=-1) / q, axis=-1)


def noise_that_is_no_gumbel(logits, key):
    return jnp.argmax(jax.nn.softmax(logits, axis=-1) / jnp.exp(jax.random.normal(key, logits.shape)), axis=0)


def draws_by_rank_of_higher_index(logits, key):
    order = jnp.argsort(logits, axis=-1)[:, ::-1]
    ordered = jnp.take_along_axis(logits, order, axis=-1)
    probabilities = jax.nn.softmax(ordered, axis=-1)
    ordered = jnp.where(jnp.cumsum(probabilities, axis=-1) - probabilities < 0.9, ordered, -INF)
    return jnp.take_along_axis(order, jax.random.categorical(key, ordered)[:, None], axis=-1)[:, 0]


def draws_by_rank_among_all(logits, key):
    ordered, order = lax.top_k(logits, V)
    return jnp.take_along_axis(order, jax.random.categorical(key, ordered)[:, None], axis=-1)[:, 0]


def approximate(logits):
    return jnp.where(logits < lax.approx_max_k(logits, 10)[0][..., -1:], -INF, logits)


def mask_of_tokens(logits):
    return jnp.where(jnp.arange(V) < 10, logits, -INF)


NEAR_MISSES = {
    cut_at_a_value: "keeps every copy of the logit at which the nucleus ends",
    cut_at_the_least_kept: "keeps every copy of the logit at which the nucleus ends",
    removes_the_token_that_reaches_p: "removes the token whose probability reaches p",
    fills_with_a_large_number: "what it removes becomes -1e+10, and of the operators -inf",
    fills_with_the_least_number: "what it removes becomes -3.40282e+38",
    removes_the_kth_too: "removes the k-th largest logit too",
    sorts_probabilities: "sorts by probability",
    probabilities_in_bfloat16: "computed in bfloat16, those of the operator in float32",
    largest_of_higher_index: "of equal logits those of higher index",
    more_than_the_operator_sorts: "a k known to be 1 to 1024, not for 1500",
    computed_number_of_ranks: "a k known to be 1 to 1024, not for one computed",
    p_of_any_sign: "p may be 0 or less",
    min_p_of_any_size: "clip it to 0 and 1",
    keeps_the_tail: "keeps the tail",
    always_keeps_the_least: "always keeps the least likely token",
    removes_the_best: "no filter of a form that is known here",
    nucleus_at_another_temperature: "no filter of a form that is known here",
    sums_over_the_batch: "no filter of a form that is known here",
    mask_left_in_sorted_order: "no filter of a form that is known here",
    limit_for_each_token: "its limit is not 1 - p, one a row",
    kth_of_other_logits: "no filter of a form that is known here",
    kth_along_the_batch: "no filter of a form that is known here",
    q_of_any_sign: "divide by jnp.abs(q)",
    noise_that_is_no_gumbel: "",
    draws_by_rank_of_higher_index: "equal logits by decreasing index",
    draws_by_rank_among_all: "draws by rank among all tokens",
    approximate: "",
    mask_of_tokens: "",
}


@pytest.mark.parametrize(("fn", "reason"), NEAR_MISSES.items(), ids=lambda value: getattr(value, "__name__", None))
def test_near_misses(fn, reason):
    if fn in (draws_by_rank_of_higher_index, draws_by_rank_among_all):
        _, _, remarks = raised(fn, *arguments(fn))
        assert reason in "\n".join(remark.text for remark in remarks if remark.kind == "missed")
        return
    stays(fn, arguments(fn), reason)


def test_the_tie_rules_that_are_refused_do_differ():
    """What a value threshold keeps, the operator would not."""
    row = jnp.zeros((1, 8), jnp.float32)
    kept = cut_at_a_value(row, jnp.array([0.5], jnp.float32))
    assert jnp.isfinite(kept).all() and jnp.isfinite(ja.apply_top_k_top_p(row, p=0.5)).sum() == 4


def test_what_is_not_raised_is_part_of_the_error():
    with pytest.raises(ja.errors.Unsupported, match="raise-sampling: missed: it keeps every copy of the logit"):
        ja.compile(lambda *given: jnp.cbrt(cut_at_a_value(*given)), *arguments(cut_at_a_value))
