"""Random bits of `jax.random` as elementwise work: Threefry of a counter an element, with the words of the key.

What `raise-sampling` finds to be drawn for a sampler is drawn inside its kernel; this is for all other numbers.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jax import lax
from jax.extend.random import threefry2x32_p
from jax.interpreters import mlir

from jascend.libraries import NoLibraryOperator, primitive_behind, register_rule

_BITS = 32


def _bits(ctx, keys, *, bit_width: int, shape: tuple[int, ...]):
    (key,) = ctx.avals_in
    if str(key.dtype) != "key<fry>":
        raise NoLibraryOperator(f"random bits of {key.dtype}; kernels draw with threefry2x32 keys")
    if not jax.config.jax_threefry_partitionable:
        raise NoLibraryOperator("jax_threefry_partitionable is off, and kernels draw numbers as if it were on")
    if bit_width != _BITS:
        raise NoLibraryOperator(
            f"random numbers of {bit_width} bits; kernels draw those of {_BITS}: draw float32, and cast"
        )
    if math.prod(shape) >> _BITS:
        raise NoLibraryOperator(f"random numbers of shape {list(shape)}; kernels count them with {_BITS} bits")

    def drawn(keys):
        words = jax.random.key_data(keys)
        spread = (*key.shape, *[1] * len(shape))
        first, second = (lax.index_in_dim(words, i, -1, keepdims=False).reshape(spread) for i in range(2))
        counter = jnp.zeros(shape, jnp.uint32)
        for dim, size in enumerate(shape):
            counter = counter * jnp.uint32(size) + lax.broadcasted_iota(jnp.int32, shape, dim).astype(jnp.uint32)
        whole = (*key.shape, *shape)
        operands = (first, second, jnp.zeros((), jnp.uint32), counter)
        return lax.bitwise_xor(*threefry2x32_p.bind(*(jnp.broadcast_to(x, whole) for x in operands)))

    return mlir.lower_fun(drawn, multiple_results=False)(ctx, keys)


register_rule(primitive_behind(jax.random.bits, ((), jax.random.key(0).dtype)), _bits)
