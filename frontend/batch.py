"""Programs for any batch: `ja.compile(fn, jax.ShapeDtypeStruct((b, 4096), ...))` with `b` of `jax.export.symbolic_shape`.

JAX traces the function with the symbol, which shows that it means the same for any number of rows. What is compiled is the
function for `ROWS` rows, more than any product has cores: each kernel then takes its share of however many rows a launch
has, and the plan's shapes hold `ROWS` in the symbol's place. It is a number that no other dimension is a multiple of.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax

from jascend.errors import Unsupported

_NUMBERS = (4099, 4111, 4127, 4129, 4133, 4139, 4153, 4157)  # primes: each more than all cores of any product


@dataclass(frozen=True)
class Batch:
    """A symbolic number of rows: what it is called, and the number that is compiled in its place."""

    symbol: str
    rows: int

    def size(self, dim: int, rows: int) -> int:
        """A dimension of the compiled graph, for so many rows."""
        return dim // self.rows * rows if dim % self.rows == 0 else dim

    def shape(self, shape: tuple[int, ...], rows: int) -> tuple[int, ...]:
        return tuple(self.size(dim, rows) for dim in shape)

    def show(self, shape: tuple[int, ...]) -> str:
        """A shape with the symbol in it."""
        names = [self.symbol if dim == self.rows else str(dim) for dim in shape]
        return f"[{', '.join(names)}]"


def batch_of(args: tuple, kwargs: dict, names: tuple[str, ...]) -> Batch | None:
    """The symbol in the arguments' shapes, or None. Raises Unsupported where it is more than a leading dimension."""
    leaves = jax.tree.leaves((args, kwargs))
    symbols: dict[str, str] = {}
    sizes: set[int] = set()
    for name, leaf in zip(names, leaves):
        for position, dim in enumerate(jax.numpy.shape(leaf)):
            if not jax.export.is_symbolic_dim(dim):
                sizes.add(int(dim))
                continue
            if position > 0 or not str(dim).isidentifier():
                raise Unsupported("compile", name, f"may have one symbol, as its leading dimension, but is {leaf}")
            symbols.setdefault(str(dim), name)
    if len(symbols) > 1:
        found = ", ".join(f"{symbol} of {name}" for symbol, name in symbols.items())
        raise Unsupported("compile", None, f"a program has one symbolic dimension, the batch, but there are {found}")
    if not symbols:
        return None
    rows = next(number for number in _NUMBERS if all(size % number or not size for size in sizes))
    return Batch(next(iter(symbols)), rows)


def with_rows(tree: Any, rows: int) -> Any:
    """Arguments with a number in the symbol's place."""

    def concrete(leaf):
        shape = jax.numpy.shape(leaf)
        if not any(map(jax.export.is_symbolic_dim, shape)):
            return leaf
        return jax.ShapeDtypeStruct((rows, *shape[1:]), leaf.dtype)

    return jax.tree.map(concrete, tree)


def check(jaxpr: Any, batch: Batch) -> None:
    """Raises Unsupported where a traced function needs the batch as a number, or has other sizes that depend on it than its
    multiples."""
    multiple = re.compile(rf"(\d+\*)?{re.escape(batch.symbol)}")
    for equation in _equations(jaxpr):
        if equation.primitive.name == "dim_as_value":
            raise Unsupported("compile", None, f"the function computes with {batch.symbol}, its number of rows: for any "
                              "batch, a row's results must not depend on how many others there are")  # fmt: skip
        for variable in equation.outvars:
            for dim in getattr(variable.aval, "shape", ()):
                if jax.export.is_symbolic_dim(dim) and not multiple.fullmatch(str(dim)):
                    of = equation.primitive.name
                    raise Unsupported("compile", None, f"the result of {of} has a dimension of {dim}, no multiple of the batch")


def _equations(jaxpr: Any) -> Iterator[Any]:
    jaxpr = getattr(jaxpr, "jaxpr", jaxpr)
    for equation in jaxpr.eqns:
        yield equation
        for parameter in equation.params.values():
            for inner in parameter if isinstance(parameter, (list, tuple)) else [parameter]:
                if hasattr(inner, "eqns") or hasattr(inner, "jaxpr"):
                    yield from _equations(inner)
