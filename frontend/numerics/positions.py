"""Where the true elements of a mask are, without a sort and without a prefix sum over the whole row."""

import jax.numpy as jnp
from jax import lax

from jascend.numerics import blocks

_WORD = 32


def index(x):
    """int32 like `x`: the position in its row of every element."""
    return lax.broadcasted_iota(jnp.int32, x.shape, x.ndim - 1)


def nth_true(mask, n):
    """The positions of given true elements of every row.

    The row is packed into words of 32 bits. The word is found by bisection over how many bits are set up to each, and
    the bit in the word by halving it.

    Args:
        mask: bool [..., L], see `blocks.pad`.
        n: int32 [..., N]: which ones, counted from 0.

    Returns:
        int32 [..., N]; any position where a row has fewer true elements.
    """
    *lead, length = mask.shape
    width = min(_WORD, blocks.block_length(length))
    bit = lax.shift_left(jnp.uint32(1), lax.iota(jnp.uint32, width))
    words = jnp.where(mask.reshape(*lead, length // width, width), bit, jnp.uint32(0))
    words = jnp.sum(words, axis=-1, dtype=jnp.uint32)
    through = jnp.cumsum(_bits_set(words), axis=-1)  # true ones up to the end of each word
    last = through.shape[-1] - 1
    steps = last.bit_length() if isinstance(last, int) else 31

    def advance(i, word):  # the first words, that many, have no more than n true elements
        step = lax.shift_left(jnp.int32(1), (steps - 1 - i).astype(jnp.int32))
        end = jnp.minimum(word + step - 1, last)
        skip = (word + step <= last) & (take(through, end) <= n)
        return jnp.where(skip, word + step, word)

    word = lax.fori_loop(0, steps, advance, jnp.zeros_like(n))
    before = jnp.where(word > 0, take(through, jnp.maximum(word - 1, 0)), 0)
    return word * jnp.int32(width) + _nth_bit(take(words, word), n - before, width)


def _nth_bit(word, n, width):
    """The place of the n-th set bit, counted from the lowest, in words of `width` bits."""
    place = jnp.zeros_like(n)
    while width > 1:
        width //= 2
        lower = _bits_set(word & jnp.uint32((1 << width) - 1))
        skip = lower <= n
        word, n = jnp.where(skip, word >> width, word), jnp.where(skip, n - lower, n)
        place += jnp.where(skip, jnp.int32(width), 0)
    return place


def _bits_set(words):
    return lax.population_count(words).astype(jnp.int32)


def take(x, index):
    """[..., L], int32 [..., N] -> [..., N]: the elements at positions that exist."""
    return jnp.take_along_axis(x, index, axis=-1, mode="promise_in_bounds")
