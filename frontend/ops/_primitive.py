"""What the primitives of all operators have in common: eager evaluation, batching, and no derivative."""

import functools

import jax
import jax.numpy as jnp
from jax.interpreters import ad, mlir
from jax.sharding import ManualAxisType

from jascend import twin_lowering
from jascend.dialect.rules import Shaped


def eager(primitive):
    """Evaluates a primitive outside `jit` through its one compiled computation, so that both agree bit for bit."""

    @functools.cache
    def compiled(params):
        return jax.jit(functools.partial(primitive.bind, **dict(params)))

    def evaluate(*operands, **params):
        with jax.disable_jit(False):  # under disable_jit, the jitted function would call back into this one
            return compiled(tuple(sorted(params.items())))(*operands)

    return evaluate


def leading_dimensions(primitive):
    """Batching rule of a primitive that takes any leading dimensions, the same ones on every operand."""

    def batch(operands, axes, **params):
        size = next(x.shape[axis] for x, axis in zip(operands, axes) if axis is not None)
        operands = [
            jnp.broadcast_to(x, (size, *x.shape)) if axis is None else jnp.moveaxis(x, axis, 0)
            for x, axis in zip(operands, axes)
        ]
        results = primitive.bind(*operands, **params)
        return results, [0] * len(results) if primitive.multiple_results else 0

    return batch


def optional(operands, *present):
    """The operands that a call may leave out, None where it did."""
    operands = iter(operands)
    return [next(operands) if has else None for has in present]


def not_differentiable(primitive):
    """Makes differentiation say what it met, instead of that a rule is missing."""

    def refuse(*_, **__):
        raise NotImplementedError(
            f"jascend.{primitive.name} is an inference operator and has no derivative; "
            "apply jax.lax.stop_gradient to its floating-point inputs"
        )

    ad.primitive_jvps[primitive] = refuse
    ad.primitive_transposes[primitive] = refuse


def register_fallback(primitive, fallback):
    """Lowers a primitive to plain JAX operations on every platform that has no rule of its own (see `twin_lowering` for
    the one exception).

    Under `shard_map` avals say over which mesh axes a value varies, and loops insist that all they carry agree. Here
    the program is per device already, so the fallback is traced without those annotations.
    """
    lower = mlir.lower_fun(fallback, multiple_results=primitive.multiple_results)

    def rule(ctx, *operands, **params):
        plain = [jax.core.ShapedArray(aval.shape, aval.dtype) for aval in ctx.avals_in]
        return lower(ctx.replace(avals_in=plain), *operands, **params)

    mlir.register_lowering(primitive, twin_lowering.rule_of(primitive, rule))


def without_leading(aval, rank):
    """The aval's last `rank` axes, as the operator's rule sees them."""
    return Shaped(aval.shape[len(aval.shape) - rank :], aval.dtype.name)


def varying(*avals):
    """What an enclosing `shard_map` has to know of a result: it varies over every axis over which an operand does."""
    return ManualAxisType(varying=frozenset().union(*(aval.manual_axis_type.varying for aval in avals)))
