"""Loops with a known number of steps, one step after another, and branches, all of them; how often a `while_loop` goes
round, only data says.

A program is a list of launches and calls, which the host starts without looking at what they compute. A `scan` of
layers, or a `fori_loop` with fixed bounds, becomes its steps. Of a `cond` or a `switch` every branch is computed, and
its results are selected, as `vmap` of one does.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jax.extend.core import jaxpr_as_fun
from jax.interpreters import mlir

from jascend.libraries import NoLibraryOperator, register, register_rule

_MOST_STEPS = 64


def _scan_rule(ctx, *operands, jaxpr, length: int, reverse: bool, **_):
    """How many operands are constants, carried and rows, JAX says in other ways from version to version;
    shapes tell."""
    if not 0 < length <= _MOST_STEPS:
        raise NoLibraryOperator(f"a loop of {length} steps; loops of 1 to {_MOST_STEPS} are unrolled")
    rows = sum(given.ndim > own.ndim for given, own in zip(ctx.avals_in, jaxpr.in_avals))
    carried = sum(given.ndim == own.ndim for given, own in zip(ctx.avals_out, jaxpr.out_avals))
    step = jaxpr_as_fun(jaxpr)

    def unrolled(*operands):
        first = len(operands) - rows
        constants, state, xs = operands[: first - carried], operands[first - carried : first], operands[first:]
        outputs: list[list[jax.Array]] = []
        for i in reversed(range(length)) if reverse else range(length):
            results = step(*constants, *state, *(lax.index_in_dim(x, i, 0, keepdims=False) for x in xs))
            state = results[:carried]
            outputs.append(results[carried:])
        stacks = zip(*(outputs[::-1] if reverse else outputs))
        return [*state, *(lax.concatenate([y[None] for y in ys], 0) for ys in stacks)]

    return mlir.lower_fun(unrolled, multiple_results=True)(ctx, *operands)


def _while(*_, **__):
    raise NoLibraryOperator("a loop whose number of steps only the data says: a program is a fixed list of launches. "
                            "Call a program for one step in a Python loop, or give `lax.fori_loop` fixed "
                            "bounds")  # fmt: skip


def _cond(index, *operands, branches, **_):
    results = zip(*(jaxpr_as_fun(branch)(*operands) for branch in branches))
    index = index if index.dtype == jnp.bool_ else jnp.clip(index, 0, len(branches) - 1)
    return [lax.select_n(index, *cases) for cases in results]


register_rule(lax.scan_p, _scan_rule)
register(lax.while_p, _while, multiple_results=True)
register(lax.cond_p, _cond, multiple_results=True)
