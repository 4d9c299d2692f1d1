"""`raise-sampling`: ways to write filters and samplers, and code that only looks like one.

Logits have many equal values, so that a wrong rule for ties shows in every test."""

import inspect
import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from raising import check, raised, refused

import jascend as ja

INF = jnp.inf
B, V = 4, 64
FILTER, SAMPLE, NOISE, KEYS = "apply_top_k_top_p", "top_k_top_p_sample", "random_exponential", "random_key"


def logits_of(seed, shape=(B, V), dtype=np.float32):
    rng = np.random.default_rng(seed)
    return jnp.asarray(np.round(rng.normal(0, 2, shape) * 2) / 2 + 0.0, dtype)  # no -0.0, which top_k takes for less


LOGITS = logits_of(0)
K = jnp.array([3, 5, 1, 40], jnp.int32)
P = jnp.array([0.5, 0.9, 0.31, 0.999], jnp.float32)
KEY = jax.random.key(7)
ROWS = np.arange(B)[:, None]


def kth_of(logits, k):
    return lax.top_k(logits, k)[0][..., -1:]


def at_least_kth(logits, k=10):
    return jnp.where(logits < kth_of(logits, k), -INF, logits)


# -- filters --------------------------------------------------------------------------------------------------------


def top_k_by_last_of_top_k(logits):
    values, _ = lax.top_k(logits, 10)
    return jnp.where(logits < values[..., -1, None], -INF, logits)


def top_k_by_sorted(logits):
    kth = jnp.sort(logits, axis=-1)[:, -7]
    return jnp.where(logits >= kth[:, None], logits, -INF)


def top_k_by_smallest_of_largest(logits):
    return jnp.where(logits >= jnp.min(lax.top_k(logits, 5)[0], axis=-1, keepdims=True), logits, -INF)


def top_k_by_descending(logits):
    ordered = jnp.sort(logits, axis=-1, descending=True)
    mask = ordered[:, 4:5] > logits
    return lax.select(mask, jnp.full_like(logits, -INF), logits)


def top_k_of_each_row(logits, k):
    ordered = jnp.sort(logits, axis=-1)
    kth = jnp.take_along_axis(ordered, (V - k)[:, None], axis=-1)
    return jnp.where(logits < kth, -INF, logits)


def top_k_of_each_row_clipped(logits, k):
    k = jnp.clip(k, 1, V)
    kth = -jnp.sort(-logits, axis=-1)[jnp.arange(B), k - 1]
    return jnp.where(logits >= kth[:, None], logits, -INF)


def ascending_in_sorted_rows(logits, k, p):
    ordered, indices = jnp.sort(logits, axis=-1), jnp.argsort(logits, axis=-1)
    kth = jnp.take_along_axis(ordered, (V - k)[:, None], axis=-1)
    ordered = jnp.where(ordered < kth, -INF, ordered)
    sums = jnp.cumsum(jax.nn.softmax(ordered, axis=-1), axis=-1)
    removed = (sums <= 1 - p[:, None]).at[:, -1].set(False)
    ordered = jnp.where(removed, -INF, ordered)
    return jnp.zeros_like(logits).at[jnp.arange(B)[:, None], indices].set(ordered)


def ascending_taken_back(logits, p):
    order = jnp.argsort(logits, axis=-1)
    ordered = jnp.take_along_axis(logits, order, axis=-1)
    sums = jnp.cumsum(jax.nn.softmax(ordered, axis=-1), axis=-1)
    kept = (sums > 1.0 - p[:, None]) | (jnp.arange(V) == V - 1)
    kept = jnp.take_along_axis(kept, jnp.argsort(order, axis=-1), axis=-1)
    return jnp.where(kept, logits, -INF)


def descending_rolled(logits, p):
    logits = at_least_kth(logits, 20)
    order = jnp.argsort(logits, axis=-1)[:, ::-1]
    ordered = jnp.take_along_axis(logits, order, axis=-1)
    removed = jnp.cumsum(jax.nn.softmax(ordered, axis=-1), axis=-1) > p[:, None]
    removed = jnp.roll(removed, 1, axis=-1).at[:, 0].set(False)
    removed = jnp.zeros_like(removed).at[jnp.arange(B)[:, None], order].set(removed)
    return jnp.where(removed, -INF, logits)


def descending_sorted_back(logits):
    ordered, order = jnp.sort(logits)[:, ::-1], jnp.argsort(logits)[:, ::-1]
    removed = jnp.cumsum(jax.nn.softmax(ordered), axis=-1) > 0.9
    removed = jnp.concatenate((jnp.zeros_like(removed[:, :1]), removed), axis=-1)[:, :-1]
    _, removed = lax.sort_key_val(order, removed)
    return jnp.where(removed, -INF, logits)


def descending_shifted_in_place(logits):
    order = jnp.flip(jnp.argsort(logits, axis=-1), axis=-1)
    probabilities = jnp.take_along_axis(jax.nn.softmax(logits, axis=-1), order, axis=-1)
    removed = jnp.cumsum(probabilities, axis=-1) > 0.75
    removed = removed.at[..., 1:].set(removed[..., :-1])
    removed = removed.at[..., 0].set(False)
    removed = jnp.put_along_axis(jnp.zeros((B, V), bool), order, removed, axis=-1, inplace=False)
    return jnp.where(removed, -INF, logits)


def lower_index_first(logits, p):
    order = jnp.argsort(-logits, axis=-1)
    ordered = jnp.take_along_axis(logits, order, axis=-1)
    probabilities = jax.nn.softmax(ordered, axis=-1)
    kept = jnp.cumsum(probabilities, axis=-1) - probabilities < jnp.clip(p, 1e-6, 1.0)[:, None]
    kept = jnp.take_along_axis(kept, jnp.argsort(order, axis=-1), axis=-1)
    return jnp.where(kept, logits, -INF)


def lower_index_first_padded(logits):
    order = jnp.argsort(logits, axis=-1, descending=True)
    ordered = jnp.take_along_axis(logits, order, axis=-1)
    kept = jnp.cumsum(jax.nn.softmax(ordered, axis=-1), axis=-1) < 0.6
    kept = jnp.pad(kept[:, :-1], ((0, 0), (1, 0)), constant_values=True)
    ordered = jnp.where(kept, ordered, -INF)
    return jnp.full_like(logits, -INF).at[ROWS, order].set(ordered)


def largest_put_back(logits):
    values, indices = lax.top_k(logits, 9)
    return jnp.full_like(logits, -INF).at[jnp.arange(B)[:, None], indices].set(values)


def largest_by_mask(logits):
    _, indices = lax.top_k(logits, 9)
    mask = jnp.zeros(logits.shape, bool).at[jnp.arange(B)[:, None], indices].set(True)
    return jnp.where(mask, logits, -INF)


def largest_by_rank(logits):
    ranks = jnp.argsort(jnp.argsort(-logits, axis=-1), axis=-1)
    return jnp.where(ranks < 12, logits, -INF)


def min_p(logits):
    probabilities = jax.nn.softmax(logits, axis=-1)
    least = 0.1 * probabilities.max(axis=-1, keepdims=True)
    return jnp.where(probabilities < least, -INF, logits)


def min_p_of_each_row(logits, p):
    return jnp.where(logits >= logits.max(-1, keepdims=True) + jnp.log(jnp.clip(p, 0, 1))[:, None], logits, -INF)


def all_stages(logits, k, p):
    logits = top_k_of_each_row(logits, k)
    order = jnp.argsort(logits, axis=-1)
    sums = jnp.cumsum(jax.nn.softmax(jnp.take_along_axis(logits, order, axis=-1), axis=-1), axis=-1)
    removed = (sums <= 1 - p[:, None]).at[:, -1].set(False)
    logits = jnp.where(jnp.take_along_axis(removed, jnp.argsort(order), axis=-1), -INF, logits)
    return min_p(logits)


def both_masks_of_the_whole_row(logits, p):
    order = jnp.argsort(logits, axis=-1)
    sums = jnp.cumsum(jax.nn.softmax(jnp.take_along_axis(logits, order, axis=-1), axis=-1), axis=-1)
    in_nucleus = (sums > 1 - p[:, None]).at[:, -1].set(True)
    in_nucleus = jnp.take_along_axis(in_nucleus, jnp.argsort(order), axis=-1)
    return jnp.where((logits >= kth_of(logits, 6)) & in_nucleus, logits, -INF)


def one_row_at_a_time(logits, p):
    def filtered(row, p):
        order = jnp.argsort(row)
        sums = jnp.cumsum(jax.nn.softmax(row[order]))
        removed = (sums <= 1 - p).at[-1].set(False)
        return jnp.zeros_like(row).at[order].set(jnp.where(removed, -INF, row[order]))

    return jax.vmap(filtered)(logits, p)


def one_row(logits):
    return at_least_kth(logits[1])


def two_batch_dimensions(logits, p):
    logits = logits.reshape(2, B // 2, V)
    order = jnp.argsort(logits, axis=-1)
    ordered = jnp.take_along_axis(logits, order, axis=-1)
    sums = jnp.cumsum(jax.nn.softmax(ordered, axis=-1), axis=-1)
    removed = (sums <= 1 - p.reshape(2, B // 2)[..., None]).at[..., -1].set(False)
    removed = jnp.take_along_axis(removed, jnp.argsort(order, axis=-1), axis=-1)
    return jnp.where(removed, -INF, logits)


def probabilities_themselves(logits):
    probabilities = jax.nn.softmax(logits, axis=-1)
    values, order = lax.top_k(probabilities, V)
    kept = jnp.cumsum(values, axis=-1) - values < 0.8
    kept = jnp.take_along_axis(kept, jnp.argsort(order, axis=-1), axis=-1)
    return jnp.where(kept, probabilities, 0.0)


def upcast(logits, p):
    return ascending_taken_back(logits.astype(jnp.bfloat16).astype(jnp.float32), p)


def top_k_in_bfloat16(logits):
    return at_least_kth(logits.astype(jnp.bfloat16))


FILTERS = {
    top_k_by_last_of_top_k: [FILTER],
    top_k_by_sorted: [FILTER],
    top_k_by_smallest_of_largest: [FILTER],
    top_k_by_descending: [FILTER],
    top_k_of_each_row: [FILTER],
    top_k_of_each_row_clipped: [FILTER],
    ascending_in_sorted_rows: [FILTER],
    ascending_taken_back: [FILTER],
    descending_rolled: [FILTER],
    descending_sorted_back: [FILTER],
    descending_shifted_in_place: [FILTER],
    lower_index_first: [SAMPLE],
    lower_index_first_padded: [SAMPLE],
    largest_put_back: [SAMPLE],
    largest_by_mask: [SAMPLE],
    largest_by_rank: [SAMPLE],
    min_p: [SAMPLE],
    min_p_of_each_row: [SAMPLE],
    all_stages: [FILTER, SAMPLE],
    both_masks_of_the_whole_row: [FILTER, FILTER],
    one_row_at_a_time: [FILTER],
    one_row: [FILTER],
    two_batch_dimensions: [FILTER],
    probabilities_themselves: [SAMPLE],
    upcast: [FILTER],
    top_k_in_bfloat16: [FILTER],
}


def arguments(fn, seed=0):
    known = {"logits": logits_of(seed), "k": K, "p": P, "key": jax.random.fold_in(KEY, seed)}
    known["q"] = jnp.asarray(np.random.default_rng(seed).exponential(size=(B, V)), jnp.float32)
    return tuple(known[name] for name in inspect.signature(fn).parameters if name in known)


def draws(fn):
    return [arguments(fn, seed) for seed in range(1, 7)]


@pytest.mark.parametrize(("fn", "operators"), FILTERS.items(), ids=lambda value: getattr(value, "__name__", None))
def test_filters(fn, operators):
    check(fn, arguments(fn), operators, draws(fn))


def test_a_computed_k_out_of_range_means_the_same():
    k = jnp.array([0, V, V + 3, -2], jnp.int32)  # JAX counts a negative index from the end
    check(top_k_of_each_row, (LOGITS, k), [FILTER])


def test_p_at_its_ends():
    for p in ([0.0, 1.0, 1.5, 0.5], [1e-9, 0.25, -1.0, 2.0]):
        check(descending_rolled, (LOGITS, jnp.array(p, jnp.float32)), [FILTER])
        check(lower_index_first, (LOGITS, jnp.array(p, jnp.float32)), [SAMPLE])


def test_min_p_at_its_ends():
    check(min_p_of_each_row, (LOGITS, jnp.array([0.0, 1.0, 2.0, 0.05], jnp.float32)), [SAMPLE])


# -- samplers -------------------------------------------------------------------------------------------------------


def temperature_and_categorical(logits, key):
    return jax.random.categorical(key, logits / 0.7, axis=-1)


def filtered_categorical(logits, key):
    return jax.random.categorical(key, at_least_kth(logits / 0.7))


def log_softmax_categorical(logits, key):
    return jax.random.categorical(key, jax.nn.log_softmax(at_least_kth(logits)))


def log_of_softmax_categorical(logits, key):
    return jax.random.categorical(key, jnp.log(jax.nn.softmax(logits, axis=-1)))


def gumbel_by_name(logits, key):
    return jnp.argmax(logits + jax.random.gumbel(key, logits.shape), axis=-1)


def gumbel_by_hand(logits, key):
    u = jax.random.uniform(key, logits.shape, minval=1e-7, maxval=1.0)
    return jnp.argmax(at_least_kth(logits) - jnp.log(-jnp.log(u)), axis=-1)


def race_by_exponential(logits, key):
    noise = jax.random.exponential(key, logits.shape)
    return jnp.argmax(jax.nn.softmax(at_least_kth(logits), axis=-1) / noise, axis=-1)


def race_by_argument(logits, q):
    return jnp.argmax(jax.nn.softmax(logits, axis=-1) / (jnp.abs(q) + 1e-10), axis=-1)


def among_the_largest(logits, key):
    values, indices = lax.top_k(logits, 10)
    place = jax.random.categorical(key, values)
    return jnp.take_along_axis(indices, place[:, None], axis=-1)[:, 0]


def among_the_largest_by_race(logits, key):
    values, indices = lax.top_k(logits, 10)
    race = jax.nn.softmax(values, axis=-1) / jax.random.exponential(key, values.shape)
    return indices[jnp.arange(B), jnp.argmax(race, axis=-1)]


def in_sorted_rows(logits, p, key):
    ordered, indices = lax.top_k(logits, V)
    kept = jnp.cumsum(jax.nn.softmax(ordered, axis=-1), axis=-1) < p[:, None]
    kept = jnp.roll(kept, 1, axis=-1).at[:, 0].set(True)
    place = jax.random.categorical(key, jnp.where(kept, ordered, -INF))
    return jnp.take_along_axis(indices, place[:, None], axis=1)[:, 0]


def greedy(logits):
    return jnp.argmax(logits / 0.5, axis=-1)


def greedy_of_softmax(logits):
    return jnp.argmax(jax.nn.softmax(logits, axis=-1), axis=-1)


def one_row_drawn(logits, key):
    return jax.random.categorical(key, logits[0])


def log_of_probabilities_and_a_bit(logits, key):
    """A draw, but not from `logits`: the sum and the logarithm stay as they are."""
    return jax.random.categorical(key, jnp.log(jax.nn.softmax(logits, axis=-1) + 1e-10))


def draws_in_bfloat16(logits, key):
    """The scores stay as they are computed; the operator takes the largest."""
    return jax.random.categorical(key, logits.astype(jnp.bfloat16))


SAMPLERS = {
    temperature_and_categorical: [SAMPLE, NOISE],
    filtered_categorical: [FILTER, SAMPLE, NOISE],
    log_softmax_categorical: [FILTER, SAMPLE, NOISE],
    log_of_softmax_categorical: [SAMPLE, NOISE],
    gumbel_by_name: [SAMPLE, NOISE],
    gumbel_by_hand: [FILTER, SAMPLE, NOISE],
    race_by_exponential: [FILTER, SAMPLE, NOISE],
    race_by_argument: [SAMPLE],
    among_the_largest: [SAMPLE, NOISE],
    among_the_largest_by_race: [SAMPLE, NOISE],
    in_sorted_rows: [SAMPLE, NOISE],
    greedy: [SAMPLE],
    greedy_of_softmax: [SAMPLE],
    one_row_drawn: [SAMPLE, NOISE],
    log_of_probabilities_and_a_bit: [SAMPLE, NOISE],
}


@pytest.mark.parametrize(("fn", "operators"), SAMPLERS.items(), ids=lambda value: getattr(value, "__name__", None))
def test_samplers(fn, operators):
    check(fn, arguments(fn), operators, draws(fn))


def test_old_style_keys():
    check(temperature_and_categorical, (LOGITS, jax.random.PRNGKey(3)), [SAMPLE, NOISE])


def test_a_key_for_each_row():
    def fn(logits, key):
        return jax.vmap(jax.random.categorical)(key, at_least_kth(logits))

    check(fn, (LOGITS, jax.random.split(KEY, B)), [FILTER, SAMPLE, NOISE])
    check(fn, (LOGITS, jax.random.split(jax.random.PRNGKey(5), B)), [FILTER, SAMPLE, NOISE])


def test_a_filter_used_twice_is_computed_once():
    def fn(logits, key):
        kept = at_least_kth(logits)
        return jax.random.categorical(key, kept), kept

    check(fn, (LOGITS, KEY), [FILTER, SAMPLE, NOISE])


# -- random numbers -------------------------------------------------------------------------------------------------


def exponential(key):
    return jax.random.exponential(key, (3, 5, 1000))


def gumbel(key):
    return jax.random.gumbel(key, (1000,))


def gumbel_from(key, low):
    return -jnp.log(-jnp.log(jax.random.uniform(key, (3, 1000), minval=low)))


@pytest.mark.parametrize(("fn", "key"), [
    (exponential, KEY), (gumbel, jax.random.PRNGKey(2**32 - 1)), (lambda key: gumbel_from(key, 0.25), KEY),
])  # fmt: skip
def test_noise_is_that_of_jax(fn, key):
    """Of the same bits, and of the same uniform numbers."""
    check(fn, (key,), [NOISE], rtol=1e-6)


def test_noise_of_several_keys():
    keys = jax.random.split(KEY, 6).reshape(2, 3)
    check(lambda keys: jax.vmap(jax.vmap(lambda key: jax.random.gumbel(key, (20,))))(keys), (keys,), [NOISE], rtol=1e-6)


def rbg_key(logits):
    return jax.random.categorical(jax.random.key(0, impl="rbg"), logits)


def gumbel_of_high_resolution(logits, key):
    return jnp.argmax(logits + jax.random.gumbel(key, logits.shape, mode="high"), axis=-1)


def uniform_up_to_a_half(logits, key):
    return jnp.argmax(logits - jnp.log(-jnp.log(jax.random.uniform(key, logits.shape, maxval=0.5))), axis=-1)


def half_of_the_numbers(logits, key):
    u = jax.random.uniform(key, (2, *logits.shape), minval=1e-7)[0]
    return jnp.argmax(logits - jnp.log(-jnp.log(u)), axis=-1)


def a_key_for_several_rows(logits, key):
    noise = jax.vmap(lambda key: jax.random.gumbel(key, (2, V)))(jax.random.split(key, B // 2))
    return jnp.argmax(logits + noise.reshape(B, V), axis=-1)


NOISE_THAT_STAYS = {
    draws_in_bfloat16: "cast the logits to float32 first",
    rbg_key: "its key is key<rbg>",
    gumbel_of_high_resolution: "",
    uniform_up_to_a_half: "not those of jax.random.uniform(key, shape, minval=low)",
    half_of_the_numbers: "not those of jax.random.uniform(key, shape, minval=low)",
    a_key_for_several_rows: "each of its keys draws numbers of shape (2, 64)",
}


@pytest.mark.parametrize(("fn", "reason"), NOISE_THAT_STAYS.items(), ids=lambda value: getattr(value, "__name__", None))
def test_noise_that_stays(fn, reason):
    _, counts, remarks = raised(fn, *arguments(fn))
    missed = [remark.text for remark in remarks if remark.kind == "missed"]
    assert NOISE not in counts and bool(missed) == bool(reason) and (not reason or any(reason in text for text in missed))


def test_the_older_form_of_threefry_stays():
    with jax.threefry_partitionable(False):
        _, counts, remarks = raised(temperature_and_categorical, LOGITS, KEY)
    assert NOISE not in counts and any("jax_threefry_partitionable is off" in remark.text for remark in remarks)


# -- what is not raised ---------------------------------------------------------------------------------------------


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
        after, counts, remarks = raised(fn, *arguments(fn))
        assert reason in "\n".join(remark.text for remark in remarks if remark.kind == "missed")
        return
    text = refused(fn, *arguments(fn))
    assert reason in text and bool(reason) == bool(text)


def test_the_tie_rules_that_are_refused_do_differ():
    """What a value threshold keeps, the operator would not."""
    row = jnp.zeros((1, 8), jnp.float32)
    kept = cut_at_a_value(row, jnp.array([0.5], jnp.float32))
    assert jnp.isfinite(kept).all() and jnp.isfinite(ja.apply_top_k_top_p(row, p=0.5)).sum() == 4


def test_calls_are_seen_through():
    @jax.custom_vjp
    def kept(logits):
        return jax.checkpoint(jax.jit(at_least_kth))(logits)

    kept.defvjp(lambda logits: (kept(logits), None), lambda _, g: (g,))
    check(kept, (LOGITS,), [FILTER])
    soft = jax.custom_jvp(top_k_by_sorted)
    soft.defjvp(lambda primals, tangents: (soft(*primals), *tangents))
    check(soft, (LOGITS,), [FILTER])


def test_programs_with_effects_stay_as_they_are():
    def fn(logits):
        jax.debug.print("{}", logits[0, 0])
        return at_least_kth(logits)

    assert raised(fn, LOGITS)[0] is None


def test_deep_programs():
    def fn(logits):
        for _ in range(3000):
            logits = logits + 1.0
        return at_least_kth(logits)

    assert raised(fn, LOGITS)[1] == {FILTER: 1}


# -- in programs ----------------------------------------------------------------------------------------------------


def test_a_compiled_program_computes_the_same():
    program = ja.compile(descending_rolled, *arguments(descending_rolled))
    assert [kernel.name for kernel in program.kernels] == ["jascend_descending_rolled_apply_top_k_top_p"]
    for each in draws(descending_rolled)[:2]:
        np.testing.assert_array_equal(program(*each), jax.jit(descending_rolled)(*each))
    line = inspect.getsourcelines(descending_rolled)[1] + len(inspect.getsourcelines(descending_rolled)[0]) - 1
    assert f"test_raise_sampling.py:{line}:11: remark: raise-sampling: passed: top-k, top-p" in program.explain()


def test_what_is_not_raised_is_part_of_the_error():
    with pytest.raises(ja.errors.Unsupported, match="raise-sampling: missed: it keeps every copy of the logit"):
        ja.compile(lambda *given: jnp.cbrt(cut_at_a_value(*given)), *arguments(cut_at_a_value))


def test_the_example_of_the_documentation():
    page = Path(__file__).parent.parent / "docs" / "raising.md"
    (example,) = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    exec(compile(example, str(page), "exec"), {})


def test_forbidden():
    program = ja.compile(at_least_kth, LOGITS, forbid=["raise-sampling"])
    assert program.kernels[0].name == "jascend_at_least_kth_sort" and "raise-sampling" not in program.explain()
    with pytest.raises(ja.errors.Unsupported, match="raise-sampling, fuse-sampling, fuse-moe, fuse-elementwise, but has 'x'"):
        ja.compile(at_least_kth, LOGITS, forbid="x")


def whole_sampler(logits, k, p, q):
    """Temperature, top-k, top-p, softmax and an exponential race, as many write them."""
    filtered = ascending_in_sorted_rows(logits / 0.7, k, p)
    return jnp.argmax(jax.nn.softmax(filtered, axis=-1) / jnp.maximum(q, 1e-10), axis=-1)


def test_a_whole_sampler_is_one_kernel():
    check(whole_sampler, arguments(whole_sampler), [FILTER, SAMPLE], draws(whole_sampler))
    program = ja.compile(whole_sampler, *arguments(whole_sampler))
    assert [kernel.name for kernel in program.kernels] == ["jascend_whole_sampler_filter_sample"]
    for each in draws(whole_sampler)[:3]:
        np.testing.assert_array_equal(program(*each), jax.jit(whole_sampler)(*each))


@pytest.mark.parametrize("fn", [filtered_categorical, pytest.param(race_by_exponential, marks=pytest.mark.long)])
def test_a_sampler_with_a_key_is_one_kernel(fn):
    """Numbers are drawn for what the filter keeps, and never written."""
    program = ja.compile(fn, LOGITS, KEY)
    assert [kernel.name for kernel in program.kernels] == [f"jascend_{fn.__name__}_filter_sample"]
    assert program.profile(LOGITS, KEY).gm_write_bytes == 4 * B
    for seed in range(6):
        key = jax.random.key(seed)
        np.testing.assert_array_equal(program(LOGITS, key), jax.jit(fn)(LOGITS, key))


def test_a_draw_from_all_tokens_is_one_kernel():
    """Logits are read once, and numbers are not written."""
    program = ja.compile(gumbel_by_name, LOGITS, KEY)
    assert [kernel.name for kernel in program.kernels] == ["jascend_gumbel_by_name_filter_sample"]
    report = program.profile(LOGITS, KEY)
    assert report.gm_write_bytes == 4 * B and report.gm_read_bytes < LOGITS.nbytes + 64 * B
    np.testing.assert_array_equal(report.outputs, gumbel_by_name(LOGITS, KEY))


def split_and_draw(logits, key):
    key, own = jax.random.split(key)
    return filtered_categorical(logits, own), key


def a_key_for_each_row_of_a_step(logits, key):
    keys = jax.random.split(jax.random.fold_in(key, 3), B)
    return jax.vmap(jax.random.categorical)(keys, at_least_kth(logits))


MADE_KEYS = {
    split_and_draw: [FILTER, SAMPLE, NOISE, KEYS, KEYS],
    a_key_for_each_row_of_a_step: [FILTER, SAMPLE, NOISE, KEYS, KEYS],
}


@pytest.mark.parametrize(("fn", "operators"), MADE_KEYS.items(), ids=lambda value: getattr(value, "__name__", None))
def test_keys_made_of_keys(fn, operators):
    words = lambda logits, key: jax.tree.map(
        lambda x: jax.random.key_data(x) if jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key) else x, fn(logits, key)
    )
    check(words, (LOGITS, KEY if fn is split_and_draw else jax.random.PRNGKey(11)), operators)


def test_keys_of_several_keys():
    def fn(keys, steps):
        parts = jax.vmap(lambda key: jax.random.split(key, 3)[1])(keys)
        return [jax.random.key_data(each) for each in (parts, jax.vmap(jax.random.fold_in)(keys, steps), jax.random.split(keys[0]))]

    check(fn, (jax.random.split(KEY, 4), jnp.arange(-2, 2)), [KEYS] * 3)


def test_a_step_with_its_own_key():
    """Numbers are drawn with a key that is made of the argument's; the other one is returned."""
    program = ja.compile(split_and_draw, LOGITS, KEY)
    assert [kernel.name.rpartition("draw_")[2] for kernel in program.kernels] == ["random_key", "filter_sample", "random_key2"]
    key = expected = KEY
    for _ in range(3):
        (tokens, key), (wanted, expected) = program(LOGITS, key), split_and_draw(LOGITS, expected)
        np.testing.assert_array_equal(tokens, wanted)
        assert (jax.random.key_data(key) == jax.random.key_data(expected)).all()
    assert program.profile(LOGITS, KEY).gm_write_bytes == 4 * B + 2 * 8
