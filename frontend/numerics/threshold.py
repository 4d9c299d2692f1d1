"""Thresholds of a row by bisection, instead of a sort.

The candidates are the integer keys of `bits.keys_of`. A pass over the row tells on which side of a key the threshold
is; the passes end as soon as few enough elements are left between the two sides. So that they soon are, every other key
is halfway between *values* rather than between keys, of which half belong to numbers below 1. Which keys a row is asked
for depends on that row alone. Ties *at* a threshold are not decided here, since operators differ in that.
"""

import jax.numpy as jnp
from jax import lax

from jascend.numerics import bits, blocks, positions

#: So many elements are listed, and the rest of a search is among those.
LIST = blocks.BLOCK

#: Values are looked for at this distance of the heaviest one first: exp(-32) is too little to move a sum.
_REACH = 32


def bisect(holds, low, high):
    """The least integer in [low, high] for which `holds` is true, or `high` if there is none.

    Args:
        holds: from int32 [...] to bool [...], false up to some integer of each row and true from there on.
        low, high: int32 [...], with `low <= high`.
    """

    def narrow(bounds):
        low, high = bounds
        middle = _middle(low, high)
        found = holds(middle)
        return jnp.where(found | (low == high), low, middle + 1), jnp.where(found, middle, high)

    return lax.while_loop(lambda bounds: jnp.any(bounds[0] < bounds[1]), narrow, (low, high))[1]


def kth_largest(keys, k, dtype):
    """The k-th largest key of every row.

    Args:
        keys: int32 [..., L], from `keys_of` and `pad`.
        k: int32 [...], at most the row's length. Where it is 0 the result is some key.
        dtype: the dtype whose keys these are.
    """
    top = blocks.maximum(keys)
    above = lambda key: blocks.count(keys > key[..., None])
    fewer = lambda key, above: above < k
    exactly = lambda above_low, above_high: (k == 0) | (above_low == k)
    low, *_ = _narrow(_ends(above, top, dtype), above, fewer, exactly, top, dtype)
    return blocks.minimum(jnp.where(keys > low[..., None], keys, bits.nan_key(dtype)))


def mass_threshold(keys, weights, limit, top, heaviest, dtype):
    """The least key at which the weight of all elements up to it exceeds `limit`, or `top` if none does.

    Args:
        keys: int32 [..., L].
        weights: float32 like `keys`, not negative.
        limit: float32 [...]. Where it is negative the result is less than all keys, where it is NaN some key.
        top: int32 [...], at least the greatest key of the row.
        heaviest: int32 [...], the key of greatest weight: where to look first.
        dtype: the dtype whose keys these are.
    """
    # Rounded addition is monotonic in each operand, so a sum in a fixed order never falls when an element joins it.
    low, high, below = jnp.full_like(top, -bits.nan_key(dtype) - 1), top, jnp.zeros_like(limit)
    if not isinstance(keys.shape[-1], int) or keys.shape[-1] > LIST:
        low, high, below, keys, weights = _listed(keys, weights, limit, top, heaviest, dtype)
    exceeds = lambda key: below + blocks.total(jnp.where(keys <= key[..., None], weights, 0.0)) > limit
    return jnp.minimum(bisect(exceeds, low + 1, high), top)


def _listed(keys, weights, limit, top, heaviest, dtype):
    """The few elements among which a search for a mass ends.

    Returns:
        int32 [...] low, high: between them, `high` included, is the key looked for.
        float32 [...] below: the weight of all elements up to `low`.
        keys, weights: [..., LIST] of the elements between. Where there are more of them, all are equal to `high`.
    """
    few = lambda above_low, above_high: jnp.isnan(limit) | (above_low - above_high <= LIST)

    def narrow(ends, shift):
        part = keys if shift == 0 else (keys >> shift).astype(jnp.int16)
        of = lambda key: (key >> shift).astype(part.dtype)[..., None]
        above = lambda key: blocks.count(part > of(key))
        exceeds = lambda key, _: blocks.total(jnp.where(part <= of(key), weights, 0.0)) > limit
        return _narrow(ends or _ends(above, top, dtype, shift), above, exceeds, few, heaviest, dtype, shift)

    has_halves = jnp.dtype(dtype).itemsize == 4  # the upper ones suffice, most often, and are less to read
    low, high, above_low, above_high = narrow(narrow(None, 16) if has_halves else None, 0)

    place = lax.broadcasted_iota(jnp.int32, (*top.shape, LIST), top.ndim)
    index = positions.nth_true((keys > low[..., None]) & (keys <= high[..., None]), place)
    is_taken = place < (above_low - above_high)[..., None]
    below = blocks.total(jnp.where(keys <= low[..., None], weights, 0.0))
    return low, high, below, positions.take(keys, index), jnp.where(is_taken, positions.take(weights, index), 0.0)


def _ends(above, top, dtype, shift=0):
    """What `_narrow` starts from: everything."""
    low, high = jnp.full_like(top, -bits.nan_key(dtype) - 1) | _lowest(shift), top | _lowest(shift)
    return low, high, above(low), jnp.zeros_like(top)


def _narrow(ends, above, holds, settled, heaviest, dtype, shift=0):
    """Looks for the least key at which `holds` is true until every row is settled, or has one candidate left.

    Args:
        ends: int32 [...] low, high: between them, `high` included, is that key; and how many elements are above each.
        above: from a key to how many elements are greater.
        holds: `holds(key, above(key)) -> bool [...]`.
        settled: from how many elements are above the two ends to bool [...].
        shift: so many of the lowest bits of the keys asked for, and of the ends, are ones.

    Returns:
        The ends as they are then.
    """
    goes_on = lambda low, high, above_low, above_high: ~settled(above_low, above_high) & (low + (1 << shift) < high)

    def step(state):
        number, *ends = state
        low, high, above_low, above_high = ends
        middle = jnp.where(number % 2 == 0, _halfway(low, high, heaviest, dtype), _middle(low, high))
        middle = jnp.clip(middle | _lowest(shift), low, high - (1 << shift))
        above_middle = above(middle)
        found, moves = holds(middle, above_middle), goes_on(*ends)
        up, down = moves & ~found, moves & found
        return (
            number + 1,
            jnp.where(up, middle, low),
            jnp.where(down, middle, high),
            jnp.where(up, above_middle, above_low),
            jnp.where(down, above_middle, above_high),
        )

    _, *ends = lax.while_loop(lambda state: jnp.any(goes_on(*state[1:])), step, (jnp.int32(0), *ends))
    return ends


def _lowest(shift):
    return jnp.int32((1 << shift) - 1)


def _middle(low, high):
    """(low + high) / 2 rounded down, without overflow."""
    return (low & high) + ((low ^ high) >> 1)


def _halfway(low, high, heaviest, dtype):
    """The key halfway between two values, of which none counts as further than _REACH from the heaviest one."""
    finite = bits.infinity_key(dtype) - 1
    low, high, heaviest = (bits.float32_of_keys(jnp.clip(key, -finite, finite), dtype) for key in (low, high, heaviest))
    low, high = (jnp.clip(value, heaviest - _REACH, heaviest + _REACH) for value in (low, high))
    value = (0.5 * (low + high)).astype(dtype)  # in this order, there is no product that an addition could absorb
    return bits.keys_of(bits.bits_of(value), dtype)
