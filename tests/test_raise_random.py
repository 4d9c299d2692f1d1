"""`raise-sampling`: numbers of `jax.random` and keys that are made of others, drawn by kernels; and those that stay."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from raising import FILTER, KEY, KEYS, LOGITS, NOISE, SAMPLE, B, V, arguments, at_least_kth, check, raised

import jascend as ja


def draws_in_bfloat16(logits, key):
    """The scores stay as they are computed; the operator takes the largest."""
    return jax.random.categorical(key, logits.astype(jnp.bfloat16))


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
        _, counts, remarks = raised(lambda logits, key: jax.random.categorical(key, logits), LOGITS, KEY)
    assert NOISE not in counts and any("jax_threefry_partitionable is off" in remark.text for remark in remarks)


# -- keys made of keys --------------------------------------------------------------------------------------------------


def split_and_draw(logits, key):
    key, own = jax.random.split(key)
    return jax.random.categorical(own, at_least_kth(logits)), key


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
