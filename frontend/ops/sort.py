"""`jascend.sort`: stable sort along the last axis."""

import jax.numpy as jnp
from jax import lax
from jax.extend.core import Primitive
from jax.interpreters import batching

from jascend.dialect import rules
from jascend.numerics import bits
from jascend.ops import _arguments as arguments
from jascend.ops._primitive import eager, leading_dimensions, not_differentiable, register_fallback
from jascend.platform import register_ascend_lowering


def sort(x, *, descending: bool = False):
    """Sorts `x` along its last axis, and says where each value came from.

    Equal values keep increasing index, in both directions. -0.0 equals +0.0, and NaN is greater than +inf. The
    definition is that of aclnnSort with `stable` set, as aclnnApplyTopKTopP uses it.

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


def _abstract_eval(x, *, descending):
    _, indices = rules.sort(rules.Shaped(x.shape, x.dtype.name), descending=descending)
    return x.update(weak_type=False), x.update(dtype=jnp.dtype(indices.dtype), weak_type=False)


def _fallback(x, *, descending):
    keys = bits.keys_of(bits.bits_of(x), x.dtype)
    keys = -keys if descending else keys
    indices = lax.broadcasted_iota(jnp.int32, x.shape, x.ndim - 1)
    _, values, indices = lax.sort((keys, bits.bits_of(x), indices), dimension=-1, is_stable=True, num_keys=1)
    return bits.from_bits(values, x.dtype), indices


def _ascend(*, descending):
    return {"descending": descending}, None


sort_p = Primitive("sort")
sort_p.multiple_results = True
sort_p.def_impl(eager(sort_p))
sort_p.def_abstract_eval(_abstract_eval)
not_differentiable(sort_p)
batching.primitive_batchers[sort_p] = leading_dimensions(sort_p)
register_fallback(sort_p, _fallback)
register_ascend_lowering(sort_p, _ascend, rank=None)
