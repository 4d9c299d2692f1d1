"""`jascend.sort`: stable sort along the last axis."""

import jax.numpy as jnp
from jax import lax

from jascend.dialect import rules
from jascend.extend import primitive
from jascend.numerics import bits
from jascend.ops import _arguments as arguments


def sort(x, *, descending: bool = False):
    """Sorts `x` along its last axis, and says where each value came from.

    Equal values keep increasing index, in both directions. -0.0 equals +0.0, as does what is subnormal in float32, and
    NaN is greater than +inf. The definition is that of aclnnSort with `stable` set, as aclnnApplyTopKTopP uses it.

    Args:
        x: [..., V] float32, float16 or bfloat16.
        descending: greatest value first.

    Returns:
        values: [..., V], dtype of `x`.
        indices: [..., V] int32, with `values[..., j] == x[..., indices[..., j]]`.

    Raises:
        jascend.errors.ParamNullptr: `x` is None.
        jascend.errors.ParamInvalid: `x` has another dtype, or no axis.
        jascend.errors.TilingError: rows too long for int32 indices.
    """
    x = arguments.array("sort", "x", x)
    rules.sort(arguments.shaped(x), descending=bool(descending))
    values, indices = sort_p.bind(x, descending=bool(descending))
    return values, indices


def _fallback(x, *, descending):
    keys = bits.keys_of(bits.bits_of(x), x.dtype)
    keys = -keys if descending else keys
    indices = lax.broadcasted_iota(jnp.int32, x.shape, x.ndim - 1)
    _, values, indices = lax.sort((keys, bits.bits_of(x), indices), dimension=-1, is_stable=True, num_keys=1)
    return bits.from_bits(values, x.dtype), indices


sort_p = primitive("sort", _fallback, rank=None)
