"""`raise-sampling`: ways to write samplers. Logits have many equal values, so that a wrong rule for ties shows in every test."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from raising import FILTER, INF, KEY, LOGITS, NOISE, SAMPLE, B, V, arguments, at_least_kth, check, draws
from test_raise_filters import ascending_in_sorted_rows

import jascend as ja


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


# -- in programs ------------------------------------------------------------------------------------------------------


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
