"""Thresholds of a row by bisection, instead of a sort.

The candidates are the integer keys of `bits.keys_of`, so bisection over them ends at an exact value after one pass per
key bit: 16 for float16 and bfloat16, 32 for float32. The number of passes is fixed and does not look at the data, which
keeps rows independent of each other. Ties *at* a threshold are not decided here, since operators differ in that.
"""

import jax.numpy as jnp
from jax import lax

from jascend.numerics import bits, blocks


def kth_largest(keys, k, dtype):
    """The k-th largest key of every row.

    Args:
        keys: int32 [..., count, BLOCK], from `keys_of` and `to_blocks`.
        k: int32 [...], at least 1 and at most the row's length.
        dtype: the dtype whose keys these are.
    """
    highest = bits.nan_key(dtype)

    def narrow(_, bounds):  # count(keys >= low) >= k, and every key above high has fewer
        low, high = bounds
        middle = (low | high) - ((low ^ high) >> 1)  # (low + high) / 2 rounded up, without overflow
        enough = blocks.count(keys >= middle[..., None, None]) >= k
        return jnp.where(enough, middle, low), jnp.where(enough, high, middle - 1)

    low, _ = lax.fori_loop(0, _key_bits(dtype), narrow, (jnp.full_like(k, -highest), jnp.full_like(k, highest)))
    return low


def mass_threshold(keys, weights, limit, top, dtype):
    """The least key at which the weight of all elements up to it exceeds `limit`, or `top` if none does.

    Args:
        keys: int32 [..., count, BLOCK].
        weights: float32 like `keys`, not negative.
        limit: float32 [...].
        top: int32 [...], the greatest key of the row.
        dtype: the dtype whose keys these are.
    """

    def narrow(_, bounds):  # weight(keys < low) <= limit, and high is the least known to exceed it
        low, high = bounds
        middle = (low & high) + ((low ^ high) >> 1)  # (low + high) / 2 rounded down, without overflow
        exceeds = blocks.total(jnp.where(keys <= middle[..., None, None], weights, 0.0)) > limit
        return jnp.where(exceeds, low, jnp.minimum(middle, high - 1) + 1), jnp.where(exceeds, middle, high)

    low = jnp.full_like(top, -bits.nan_key(dtype))
    _, high = lax.fori_loop(0, _key_bits(dtype), narrow, (low, top))
    return high


def _key_bits(dtype):
    return 32 if jnp.dtype(dtype).itemsize == 4 else 16
