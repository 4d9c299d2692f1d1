"""The stable order of elements that belong to few groups.

A sort moves as much as its keys are wide. Group and position together fit 32 bits in every case that occurs in
practice, and then one sort of plain integers does: the position in the low bits makes it stable and is the result.
"""

import jax
import jax.numpy as jnp
from jax import lax


def stable_order(group, groups: int):
    """int32 [..., L], each in [0, groups) -> int32 [..., L]: the positions, by group, then by position."""
    size = group.shape[-1]
    position = lax.broadcasted_iota(jnp.int32, group.shape, group.ndim - 1)
    width = max(size - 1, 0).bit_length() if isinstance(size, int) else 32
    if groups << width > 2**32:
        return lax.sort((group, position), is_stable=True, num_keys=1)[1]
    key = group.astype(jnp.uint32) << width | position.astype(jnp.uint32)
    return (lax.sort(key, is_stable=False) & jnp.uint32((1 << width) - 1)).astype(jnp.int32)


def inverse(order):
    """int32 [..., L], permutations of 0..L-1 -> int32 [..., L]: where each index stands."""

    def row(order):
        places = lax.iota(jnp.int32, order.shape[0])
        return jnp.zeros_like(order).at[order].set(places, mode="promise_in_bounds", unique_indices=True)

    return rows(row, order)


def histogram(group, groups: int):
    """int32 [..., L] -> int32 [..., groups]: how many elements each group has; id `groups` is not counted."""
    return rows(lambda group: jnp.zeros(groups, jnp.int32).at[group].add(1, mode="drop"), group)


def rows(function, *operands):
    """`function` of vectors, over all leading axes."""
    for _ in operands[0].shape[:-1]:
        function = jax.vmap(function)
    return function(*operands)
