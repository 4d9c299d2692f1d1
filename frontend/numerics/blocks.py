"""Sums whose order is fixed, so that a row's result does not depend on the rows around it.

`jnp.sum`, `cumsum` and `softmax` let XLA choose the order of additions by shape. Here a row is cut into blocks of
BLOCK consecutive positions; a block is added up by halving (element i with element i + half), and the block sums are
added from the first to the last. Only elementwise additions are used, which no compiler may reorder.
"""

import jax.numpy as jnp
from jax import lax

BLOCK = 1024


def block_length(size) -> int:
    """BLOCK, or for a shorter row the next power of two: the rest of the block would be zeros, which change no sum."""
    if not isinstance(size, int) or size >= BLOCK:
        return BLOCK
    return 1 << (size - 1).bit_length()


def to_blocks(x, padding):
    """[..., V] -> [..., ceil(V / BLOCK), BLOCK], the tail filled with `padding`."""
    *lead, size = x.shape
    length = block_length(size)
    count = -(-size // length)
    missing = count * length - size
    x = lax.pad(x, jnp.asarray(padding, x.dtype), [(0, 0, 0)] * len(lead) + [(0, missing, 0)])
    return x.reshape(*lead, count, length)


def from_blocks(x, size):
    """The inverse of `to_blocks`, for rows of `size` elements."""
    *lead, count, length = x.shape
    return lax.slice_in_dim(x.reshape(*lead, count * length), 0, size, axis=-1)


def halve(x):
    """Adds up the last axis, a power of two, by adding its halves until one element is left.

    Two levels in one expression: XLA:CPU makes one loop of each, and writing every level out costs twice the time.
    """
    while x.shape[-1] > 2:
        quarter = x.shape[-1] // 4
        a, b, c, d = (x[..., i * quarter : (i + 1) * quarter] for i in range(4))
        x = (a + c) + (b + d)
    return x[..., 0] + x[..., 1] if x.shape[-1] == 2 else x[..., 0]


def total(x):
    """[..., count, BLOCK] -> [...]: the sum in the fixed order."""
    sums = halve(x)
    add = lambda i, result: result + lax.dynamic_index_in_dim(sums, i, axis=-1, keepdims=False)
    return lax.fori_loop(0, sums.shape[-1], add, jnp.zeros(sums.shape[:-1], sums.dtype))


def maximum(x):
    """[..., count, BLOCK] -> [...]: the maximum (exact in any order)."""
    return jnp.max(x, axis=(-2, -1))


def count(mask):
    """[..., count, BLOCK] -> [...]: how many are true, as int32 (exact in any order)."""
    return jnp.sum(halve(mask.astype(jnp.int32)), axis=-1, dtype=jnp.int32)
