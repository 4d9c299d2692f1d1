"""The primitives of `ascend.random_exponential`, exponential numbers drawn as `jax.random` draws them, and of
`ascend.random_key`, keys made as it makes them.

They have no public functions: users draw with `jax.random`, and `raise-sampling` finds what they draw. Numbers of
filtered rows are drawn inside the kernel that filters (`fuse-sampling`), and never written.
"""

import jax
import jax.numpy as jnp
from jax import lax
from jax.interpreters import batching

from jascend.extend import primitive


def _fallback(key, *, length, draw, low, counts):
    keys = jax.random.wrap_key_data(lax.bitcast_convert_type(key, jnp.uint32), impl="threefry2x32")
    if counts == "row":
        uniform = jax.vmap(lambda key: jax.random.uniform(key, (length,), minval=low))(keys)
    else:
        uniform = jax.random.uniform(keys[0], (len(key), length), minval=low)
    return -jnp.log(uniform) if draw == "gumbel" else -jnp.log1p(-uniform)


def _batch(operands, axes, **params):
    raise NotImplementedError(
        "jascend's random numbers are drawn for a whole array: vmap the function before jascend.compile raises it"
    )


random_exponential_p = primitive("random_exponential", _fallback)
batching.primitive_batchers[random_exponential_p] = _batch  # a counter that goes on from row to row counts all rows


def _fallback_of_key(key, count):
    keys = jax.random.wrap_key_data(lax.bitcast_convert_type(key, jnp.uint32), impl="threefry2x32")
    children = jax.vmap(jax.random.fold_in)(keys, lax.bitcast_convert_type(count, jnp.uint32))
    return lax.bitcast_convert_type(jax.random.key_data(children), jnp.int32)


random_key_p = primitive("random_key", _fallback_of_key)
