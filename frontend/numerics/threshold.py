"""Thresholds of a row by bisection, instead of a sort.

The candidates are the integer keys of `bits.keys_of`, so bisection over them ends at an exact value after one pass per
key bit: 16 for float16 and bfloat16, 32 for float32. A mass in long float32 rows is searched for by the upper half of the
keys first. The few elements that have it are listed, and the lower half is found among those; a row with more than a list
holds takes all 32 passes. Which of the two applies to a row depends on that row alone. (For counts, whose passes are much
cheaper, the list costs more than it saves.) Ties *at* a threshold are not decided here, since operators differ in that.
"""

import jax.numpy as jnp
from jax import lax

from jascend.numerics import bits, blocks, positions

LIST = 2048  # elements that share the upper half of their keys
_HALF = 16  # bits


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

    def among_all():
        exceeds = lambda key: blocks.total(jnp.where(keys <= key[..., None, None], weights, 0.0)) > limit
        return bisect(exceeds, jnp.full_like(top, -bits.nan_key(dtype)), top, _key_bits(dtype))

    if not _has_halves(keys, dtype):
        return among_all()
    upper = _upper(keys)
    up_to = lambda half: blocks.total(jnp.where(upper <= half.astype(jnp.int16)[..., None, None], weights, 0.0))
    half = bisect(lambda half: up_to(half) > limit, jnp.full_like(top, -bits.nan_key(dtype) >> _HALF), top >> _HALF, _HALF)
    below = up_to(half - 1)
    listed, fits = _listed(keys, upper, half)
    values = jnp.take_along_axis(_flat(keys), listed, axis=-1, mode="promise_in_bounds")
    of_list = jnp.take_along_axis(_flat(weights), listed, axis=-1, mode="promise_in_bounds")
    of_list = jnp.where(_in_list(upper, half), of_list, 0.0)
    joined = lambda key: blocks.total(jnp.where(values <= key[..., None], of_list, 0.0)[..., None, :])
    first, last = half << _HALF, jnp.minimum((half << _HALF) | 0xFFFF, top)
    found = bisect(lambda key: below + joined(key) > limit, first, last, _HALF)
    return jnp.where(fits, found, lax.cond(jnp.all(fits), lambda: found, among_all))


def _has_halves(keys, dtype):
    """Whether a search by halves is possible, and pays."""
    *_, count, length = keys.shape
    return jnp.dtype(dtype).itemsize == 4 and isinstance(count, int) and count * length >= 8 * LIST


def _upper(keys):
    return (keys >> _HALF).astype(jnp.int16)


def _flat(x):
    *lead, count, length = x.shape
    return x.reshape(*lead, count * length)


def _place(half):
    return lax.broadcasted_iota(jnp.int32, (*half.shape, LIST), half.ndim)


def _listed(keys, upper, half):
    """Where the elements with that upper half are, int32 [..., LIST], and whether the list holds all of them."""
    shared = upper == half.astype(jnp.int16)[..., None, None]
    last = keys.shape[-2] * keys.shape[-1] - 1
    return jnp.minimum(positions.nth_true(shared, _place(half)), last), blocks.count(shared) <= LIST


def _in_list(upper, half):
    """bool [..., LIST]: the places of the list that are taken."""
    return _place(half) < blocks.count(upper == half.astype(jnp.int16)[..., None, None])[..., None]


def _key_bits(dtype):
    return 32 if jnp.dtype(dtype).itemsize == 4 else 16
