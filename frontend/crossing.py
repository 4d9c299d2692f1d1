"""From JAX to the upstream MLIR context: trace, raise, lower for `ascend`, legalize StableHLO, print, parse.

What plain code computes that an operator of ours computes too is raised to it on the jaxpr (see `jascend.raising`).
jaxlib's MLIR has the StableHLO passes but neither IRDL nor rewrite patterns; upstream's has those but no StableHLO. The
module crosses as text in generic form, with its locations, once jaxlib has turned StableHLO into `linalg` and friends.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxlib.mlir.dialects import stablehlo
from jaxlib.mlir.passmanager import PassManager
from mlir import ir

import jascend.dialect
import jascend.draws  # noqa: F401  its lowering rules, and those of jascend.libraries
import jascend.indexing  # noqa: F401  the same
import jascend.loops  # noqa: F401  the same
import jascend.sorting  # noqa: F401  the same
import jascend.spread  # noqa: F401  the same
from jascend import batch as batches
from jascend.dialect.errors import OperatorError
from jascend.constants import bind_constants
from jascend.keys import OfWords, words
from jascend.passes.builder import named
from jascend.passes.diagnostics import Position, Remark
from jascend.platform import PLATFORM, limits_of
from jascend.raising import RAISE_SAMPLING, raise_sampling

_LEGALIZE = "builtin.module(func.func(chlo-legalize-to-stablehlo),stablehlo-legalize-to-linalg)"


class Traced(NamedTuple):
    """A function of arrays, lowered for `ascend`.

    `text` is the module in MLIR's generic form. `arguments` and `results` are the flat types, `in_tree` and `out_tree`
    their structures; `names` says what each argument is called, for messages; `remarks` what was raised or not; `batch`
    which number stands for a symbolic one; `constants` what the module takes behind the arguments; `argument_keys` and
    `result_keys` the generators of typed keys, see `jascend.keys`."""

    name: str
    text: str
    arguments: tuple[jax.ShapeDtypeStruct, ...]
    results: tuple[jax.ShapeDtypeStruct, ...]
    in_tree: Any
    out_tree: Any
    names: tuple[str, ...]
    remarks: tuple[Remark, ...] = ()
    batch: batches.Batch | None = None
    constants: tuple[np.ndarray, ...] = ()
    argument_keys: tuple[str | None, ...] = ()
    result_keys: tuple[str | None, ...] = ()


@functools.cache
def _register_stablehlo_passes() -> None:
    stablehlo.register_stablehlo_passes()


def trace(fn, args: tuple, kwargs: dict, forbid: Collection[str] = (), target: str | None = None) -> Traced:
    """Lowers `fn` for the given arguments: arrays or `jax.ShapeDtypeStruct`s, in any pytree. Operators keep the limits
    of `target`."""
    _register_stablehlo_passes()
    names, in_tree = argument_names(fn, args, kwargs), jax.tree.structure((args, kwargs))
    plain = OfWords(fn, args, kwargs)
    args, kwargs = jax.tree.map(words, (args, kwargs))
    symbol, batch = batches.symbol_of(args, kwargs, names), None
    if symbol is not None:
        batch = batches.batch_of(symbol, jax.jit(plain, keep_unused=True).trace(*args, **kwargs).jaxpr)
        args, kwargs = batches.with_rows((args, kwargs), batch.rows)
    with _for_rows(batch), limits_of(target):
        traced, remarks = jax.jit(plain, keep_unused=True).trace(*args, **kwargs), ()
        if RAISE_SAMPLING not in forbid:
            traced, remarks = _raised(fn, traced, args, kwargs)
        arguments = tuple(jax.ShapeDtypeStruct(x.shape, x.dtype) for x in jax.tree.leaves(traced.in_avals))
        traced, constants = _bound(fn, traced, args, kwargs, batch)
        lowered = traced.lower(lowering_platforms=(PLATFORM,))
    module = lowered.compiler_ir("stablehlo")
    with module.context:
        PassManager.parse(_LEGALIZE).run(module.operation)
    text = module.operation.get_asm(enable_debug_info=True, print_generic_op_form=True)
    results, out_tree = jax.tree.flatten(lowered.out_info)
    return Traced(
        _name(fn),
        text,
        arguments,
        tuple(jax.ShapeDtypeStruct(x.shape, x.dtype) for x in results),
        in_tree,
        out_tree,
        names,
        remarks,
        batch,
        constants,
        plain.arguments,
        plain.results,
    )


@contextlib.contextmanager
def _for_rows(batch: batches.Batch | None) -> Iterator[None]:
    """Errors of operators say what stands in a symbol's place."""
    try:
        yield
    except OperatorError as error:
        if batch is not None:
            error.add_note(f"{batch.symbol} is {batch.rows} here; give it bounds with constraints of `symbolic_shape`")
        raise


def _raised(fn, traced, args: tuple, kwargs: dict) -> tuple[Any, tuple[Remark, ...]]:
    """The function with what is raised in it, traced again."""
    raised = raise_sampling(traced.jaxpr)
    if raised.function is not None:
        out_tree = jax.tree.structure(traced.out_info)

        @functools.wraps(fn)
        def call(*args, **kwargs):
            return jax.tree.unflatten(out_tree, raised.function(jax.tree.leaves((args, kwargs))))

        traced = jax.jit(call, keep_unused=True).trace(*args, **kwargs)
    return traced, tuple(
        Remark(RAISE_SAMPLING, kind, text, Position(file, line, column))
        for kind, text, file, line, column in raised.remarks
    )


def _bound(fn, traced, args: tuple, kwargs: dict, batch: batches.Batch | None) -> tuple[Any, tuple[np.ndarray, ...]]:
    """The function with what it does not compute from its arguments as further arguments, traced again."""
    bound = bind_constants(traced.jaxpr, None if batch is None else batch.rows)
    if bound is None:
        return traced, ()
    out_tree = jax.tree.structure(traced.out_info)

    @functools.wraps(fn)
    def call(given, constants):
        return jax.tree.unflatten(out_tree, bound.function(jax.tree.leaves(given), constants))

    return jax.jit(call, keep_unused=True).trace((args, kwargs), bound.constants), bound.constants


def _name(fn) -> str:
    return getattr(fn, "__name__", None) or type(fn).__name__


def argument_names(fn, args: tuple, kwargs: dict) -> tuple[str, ...]:
    """What each flat argument is called: the parameter, with its place in the pytree behind it."""
    paths, _ = jax.tree_util.tree_flatten_with_path((args, kwargs))
    try:
        parameters = list(inspect.signature(fn).parameters)
    except (TypeError, ValueError):
        parameters = []
    names = []
    for (which, first, *rest), _ in paths:
        if which.idx == 0:
            position = first.idx
            name = parameters[position] if position < len(parameters) else f"argument {position}"
        else:
            name = first.key
        names.append(name + jax.tree_util.keystr(tuple(rest)))
    return tuple(names)


def parse(traced: Traced) -> ir.Module:
    """The module in a fresh upstream context; what is not known there is kept, for the `import` pass to report."""
    context = jascend.dialect.make_context()
    context.allow_unregistered_dialects = True
    module = ir.Module.parse(traced.text, context)
    if traced.constants:
        names = (*traced.names, *(f"constant{i}" for i in range(len(traced.constants))))
        main = next(op for op in module.body.operations if op.operation.attributes["sym_name"].value == "main")
        with context:
            for argument, name in zip(main.regions[0].blocks[0].arguments, names, strict=True):
                argument.set_location(named(name, argument.location))
    return module
