"""Operators of your own, as JAX primitives: what the operators of jascend are made with.

One file has the operator: its definition (`jascend.dialect.define`), its primitive (`primitive`, here) and its kernel
(`jascend.passes.lowering`). docs/extending.md builds one.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import batching
from jax.sharding import PartitionSpec

from jascend.dialect import ASCEND
from jascend.dialect.rules import Shaped
from jascend.ops._primitive import eager, leading_dimensions, not_differentiable, register_fallback, varying
from jascend.platform import register_ascend_lowering

__all__ = ["primitive"]


def primitive(name: str, fallback: Callable, *, rank: int | None = 2) -> Primitive:
    """The JAX primitive of the operator `ascend.<name>`, which `jascend.dialect` has with a rule.

    Shapes and dtypes of results are what the rule says. It runs wherever JAX runs, by `fallback`; eagerly too, with the
    bits it has under `jit`. `vmap` adds leading dimensions. It has no derivative.

    Args:
      name: of an operator whose operands and results are all required.
      fallback: `fallback(*operands, **attributes)` in terms of JAX: the result, or a list where there are several.
      rank: of the operator's first operand; None where it takes any, all its operands with the same leading dimensions.

    Returns: a primitive. `bind(*operands, **attributes)` takes every attribute that the rule takes.
    Raises: ValueError for an operator that is not defined, has no rule, or has optional operands or results."""
    op = ASCEND.by_name.get(f"ascend.{name}")
    if op is None or op.rule is None:
        raise ValueError(
            f"'ascend.{name}' {'has no rule' if op else 'is not defined'}: jascend.dialect.define it, with a rule"
        )
    if op.segmented or op.results_segmented:
        raise ValueError(f"'ascend.{name}' has optional operands or results: its primitive is to be written out")
    several = len(op.results) != 1

    def abstract_eval(*avals, **attributes):
        extra = 0 if rank is None else len(avals[0].shape) - rank
        lead = avals[0].shape[:extra]
        shaped = [Shaped(aval.shape[extra:], aval.dtype.name) for aval in avals]
        results = op.rule(*shaped, **attributes)
        results = [results] if isinstance(results, Shaped) else results
        axes = varying(*avals)
        kinds = [((*lead, *each.shape), jnp.dtype(each.dtype)) for each in results]
        made = [_like(avals[0], shape, dtype, axes) for shape, dtype in kinds]
        return made if several else made[0]

    def computed(*operands, **attributes):
        run = lambda *operands: fallback(*operands, **attributes)
        for _ in range(0 if rank is None else operands[0].ndim - rank):
            run = jax.vmap(run)
        return run(*operands)

    made = Primitive(name)
    made.multiple_results = several
    made.def_impl(eager(made))
    made.def_abstract_eval(abstract_eval)
    not_differentiable(made)
    batching.primitive_batchers[made] = leading_dimensions(made)
    register_fallback(made, computed)
    register_ascend_lowering(made, lambda **attributes: (attributes, None), rank=rank)
    return made


def _like(aval, shape, dtype, axes):
    """The aval of a result; one of another shape than the first operand's is sharded like its leading dimensions."""
    if shape == aval.shape:
        return aval.update(dtype=dtype, weak_type=False, manual_axis_type=axes)
    spec = aval.sharding.spec
    kept = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(shape, aval.shape)))
    sharding = aval.sharding.update(spec=PartitionSpec(*spec[:kept], *[None] * (len(shape) - kept)))
    return aval.update(shape=shape, dtype=dtype, weak_type=False, manual_axis_type=axes, sharding=sharding)
