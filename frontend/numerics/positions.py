"""Where the true elements of a mask are, without a sort and without a prefix sum over the whole row."""

import jax.numpy as jnp
from jax import lax

_WORD = 32


def index(count, length):
    """int32 [count, length]: the position in the row of every element of its blocks."""
    block = lax.broadcasted_iota(jnp.int32, (count, length), 0)
    return block * jnp.int32(length) + lax.broadcasted_iota(jnp.int32, (count, length), 1)


def _take(x, at, axis):
    return jnp.take_along_axis(x, at, axis=axis, mode="promise_in_bounds")


def nth_true(mask, n):
    """The positions of given true elements of every row.

    Args:
        mask: bool [..., count, BLOCK], see `blocks.to_blocks`.
        n: int32 [..., N]: which ones, counted from 0.

    Returns:
        int32 [..., N]; anything where a row has fewer true elements.
    """
    *lead, count, length = mask.shape
    width = min(_WORD, length)
    words = mask.reshape(*lead, count * (length // width), width)
    through = jnp.cumsum(jnp.sum(words, axis=-1, dtype=jnp.int32), axis=-1)  # true ones up to the end of each word
    last = through.shape[-1] - 1
    steps = last.bit_length() if isinstance(last, int) else 31

    def advance(i, word):  # the first words, that many, have no more than n true elements
        step = lax.shift_left(jnp.int32(1), (steps - 1 - i).astype(jnp.int32))
        end = jnp.minimum(word + step - 1, last)
        skip = (word + step <= last) & (_take(through, end, axis=-1) <= n)
        return jnp.where(skip, word + step, word)

    word = lax.fori_loop(0, steps, advance, jnp.zeros_like(n))
    before = jnp.where(word > 0, _take(through, jnp.maximum(word - 1, 0), axis=-1), 0)
    inside = _take(words, word[..., None], axis=-2).astype(jnp.int32)
    place = jnp.sum(jnp.cumsum(inside, axis=-1) <= (n - before)[..., None], axis=-1, dtype=jnp.int32)
    return word * jnp.int32(width) + jnp.minimum(place, width - 1)
