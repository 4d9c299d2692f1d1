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


def pad(x, padding):
    """[..., V] -> [..., L], a whole number of blocks, the tail filled with `padding`.

    Rows stay rows: functions here cut them into blocks themselves. XLA:CPU would write them out in both shapes.
    """
    *lead, size = x.shape
    length = block_length(size)
    missing = -(-size // length) * length - size  # so that a symbolic size, too, becomes a multiple of the length
    return lax.pad(x, jnp.asarray(padding, x.dtype), [(0, 0, 0)] * len(lead) + [(0, missing, 0)])


def cut(x):
    """[..., L] -> [..., count, BLOCK]."""
    *lead, size = x.shape
    length = block_length(size)
    return x.reshape(*lead, size // length, length)


def halve(x, join=lax.add):
    """Adds up the last axis, a power of two, by adding its halves until one element is left.

    Two levels in one expression: XLA:CPU makes one loop of each, and writing every level out costs twice the time.
    """
    while x.shape[-1] > 2:
        quarter = x.shape[-1] // 4
        a, b, c, d = (x[..., i * quarter : (i + 1) * quarter] for i in range(4))
        x = join(join(a, c), join(b, d))
    return join(x[..., 0], x[..., 1]) if x.shape[-1] == 2 else x[..., 0]


def total(x):
    """[..., L] -> [...]: the sum in the fixed order."""
    sums = halve(cut(x))
    add = lambda i, result: result + lax.dynamic_index_in_dim(sums, i, axis=-1, keepdims=False)
    return lax.fori_loop(0, sums.shape[-1], add, jnp.zeros(sums.shape[:-1], sums.dtype))


def maximum(x):
    """[..., L] -> [...]: the maximum (exact in any order, but by halves `x` need not be written out)."""
    return jnp.max(halve(cut(x), lax.max), axis=-1)


def minimum(x):
    """[..., L] -> [...]: the minimum, likewise."""
    return jnp.min(halve(cut(x), lax.min), axis=-1)


def count(mask):
    """[..., L] -> [...]: how many are true, as int32 (exact in any order)."""
    return jnp.sum(halve(cut(mask.astype(jnp.int32))), axis=-1, dtype=jnp.int32)
