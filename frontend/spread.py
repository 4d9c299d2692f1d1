"""Elementwise primitives that take a scalar beside tensors, and those whose numbers a library computes.

Legalization to `linalg` takes operands of one shape: a scalar is spread over the others' first. What is left of a
division of floats, which no instruction gives, is CANN's to compute.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
from jax import lax
from jax.interpreters import mlir
from jaxlib.mlir.dialects import stablehlo

from jascend.libraries import call, register_rule


def _spread(ctx, operands: Sequence) -> list:
    """Operands with scalars in the shape of the result."""
    shape = ctx.avals_out[0].shape
    types = [mlir.aval_to_ir_type(ctx.module_context, aval.update(shape=shape)) for aval in ctx.avals_in]
    return [
        x if aval.shape == shape else stablehlo.broadcast_in_dim(type_, x, mlir.dense_int_array([]))
        for x, aval, type_ in zip(operands, ctx.avals_in, types)
    ]


def _select(ctx, which, *cases):
    if len(cases) > 2 or ctx.avals_in[0].dtype != jnp.bool_:
        return mlir.lower_fun(_of_many, multiple_results=False)(ctx, which, *cases)
    which, *cases = _spread(ctx, (which, *cases))
    return [stablehlo.select(which, *reversed(cases)) if len(cases) > 1 else cases[0]]


def _of_many(which, *cases):
    """The first case, the second for 1, and so on."""
    which = which.astype(jnp.int32)
    chosen = cases[-1]
    for number in reversed(range(len(cases) - 1)):
        chosen = lax.select_n(which > number, cases[number], chosen)
    return chosen


def _rem(ctx, x, y):
    if jnp.issubdtype(ctx.avals_out[0].dtype, jnp.floating):
        return mlir.lower_fun(_rem_of_floats, multiple_results=False)(ctx, x, y)
    return [stablehlo.remainder(*_spread(ctx, (x, y)))]


def _rem_of_floats(x, y):
    return call("aclnnFmodTensor", *jnp.broadcast_arrays(x, y))


register_rule(lax.select_n_p, _select)
register_rule(lax.rem_p, _rem)
