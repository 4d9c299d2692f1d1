"""Thresholds of a row by bisection, instead of a sort.

The candidates are the integer keys of `bits.keys_of`, so bisection over them ends at an exact value after one pass per
key bit: 16 for float16 and bfloat16, 32 for float32. The number of passes is fixed and does not look at the data, which
keeps rows independent of each other. Ties *at* a threshold are not decided here, since operators differ in that.
"""

import jax.numpy as jnp
from jax import lax

from jascend.numerics import bits, blocks


def bisect(holds, low, high, steps):
    """The least integer in [low, high] for which `holds` is true, or `high` if there is none.

    Args:
        holds: from int32 [...] to bool [...], false up to some integer of each row and true from there on.
        low, high: int32 [...], with `low <= high`.
        steps: at least log2 of the number of candidates, rounded up.
    """

    def narrow(_, bounds):
        low, high = bounds
        middle = (low & high) + ((low ^ high) >> 1)  # (low + high) / 2 rounded down, without overflow
        found = holds(middle)
        return jnp.where(found | (low == high), low, middle + 1), jnp.where(found, middle, high)

    return lax.fori_loop(0, steps, narrow, (low, high))[1]


def kth_largest(keys, k, dtype):
    """The k-th largest key of every row.

    Args:
        keys: int32 [..., count, BLOCK], from `keys_of` and `to_blocks`.
        k: int32 [...], at least 1 and at most the row's length.
        dtype: the dtype whose keys these are.
    """
    highest = bits.nan_key(dtype)
    fewer = lambda key: blocks.count(keys > key[..., None, None]) < k
    return bisect(fewer, jnp.full_like(k, -highest), jnp.full_like(k, highest), _key_bits(dtype))


def mass_threshold(keys, weights, limit, top, dtype):
    """The least key at which the weight of all elements up to it exceeds `limit`, or `top` if none does.

    Args:
        keys: int32 [..., count, BLOCK].
        weights: float32 like `keys`, not negative.
        limit: float32 [...].
        top: int32 [...], the greatest key of the row.
        dtype: the dtype whose keys these are.
    """
    # Rounded addition is monotonic in each operand, so a sum in a fixed order never falls when an element joins it.
    exceeds = lambda key: blocks.total(jnp.where(keys <= key[..., None, None], weights, 0.0)) > limit
    return bisect(exceeds, jnp.full_like(top, -bits.nan_key(dtype)), top, _key_bits(dtype))


def _key_bits(dtype):
    return 32 if jnp.dtype(dtype).itemsize == 4 else 16
