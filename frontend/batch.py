"""Programs for any batch: `ja.compile(fn, jax.ShapeDtypeStruct((b, 4096), ...))` with `b` of
`jax.export.symbolic_shape`.

JAX traces the function with the symbol, which shows that it means the same for any number of rows. What is compiled is
the function for another number, more than any product has cores: each kernel then takes its share of however many rows
a launch has, and the plan's shapes hold that number in the symbol's place. No other dimension is a multiple of it. A
dimension of `min(8*b, 100)`, as a limit on the rows of a routing makes, is 100 in the plan.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import jax

from jascend.dialect.rules import Rows
from jascend.errors import Unsupported

_LEAST = 4099  # more than all cores of any product
_MOST = 2**31  # beyond what any symbol is for
_PLAIN_INDEX = ".at[i].get(mode='promise_in_bounds', wrap_negative_indices=False)"


@dataclass(frozen=True)
class Symbol:
    """A symbolic number of rows: what it is called, and the bounds of its constraints;
    0 and None where they say nothing."""

    name: str
    least: int
    most: int | None


@dataclass(frozen=True)
class Batch:
    """A symbolic number of rows, and the number that is compiled in its place; which leading dimensions stand for a
    limited number."""

    symbol: str
    rows: int
    least: int = 0
    most: int | None = None
    limited: dict[int, Rows] = field(default_factory=dict)

    def shape(self, shape: tuple[int, ...], rows: int) -> tuple[int, ...]:
        """A shape of the compiled graph, for so many rows."""
        return tuple(self._size(dim, rows, leads=i == 0) for i, dim in enumerate(shape))

    def _size(self, dim: int, rows: int, leads: bool) -> int:
        if leads and dim in self.limited:
            return self.limited[dim].at(rows)
        return dim // self.rows * rows if dim % self.rows == 0 else dim

    def in_cpp(self, shape: tuple[int, ...]) -> list[str]:
        """The dimensions of a shape of the compiled graph in C++, for `rows`."""
        return [self._in_cpp(dim, leads=i == 0) for i, dim in enumerate(shape)]

    def _in_cpp(self, dim: int, leads: bool) -> str:
        limit = self.limited.get(dim) if leads else None
        if limit is None and (not dim or dim % self.rows):
            return str(dim)
        times = limit.times if limit else dim // self.rows
        size = "rows" if times == 1 else f"{times} * rows"
        return f"({size} < {limit.most} ? {size} : {limit.most})" if limit else size

    def leads(self, shape: tuple[int, ...]) -> bool:
        """Whether the leading dimension of a shape of the compiled graph depends on the number of rows."""
        return bool(shape) and (shape[0] % self.rows == 0 or shape[0] in self.limited)

    def show(self, shape: tuple[int, ...]) -> str:
        """A shape with the symbol in it."""
        names = [self.symbol if dim == self.rows else str(dim) for dim in shape]
        return f"[{', '.join(names)}]"

    def check(self, program: str, argument: str, rows: int) -> None:
        """Raises ValueError for a number of rows that the symbol's constraints exclude."""
        if rows < self.least or self.most is not None and rows > self.most:
            allowed = f"{self.symbol} >= {self.least}" if self.least else ""
            allowed += (
                f"{' and ' if allowed and self.most else ''}{f'{self.symbol} <= {self.most}' if self.most else ''}"
            )
            raise ValueError(f"{program}: {argument} has {rows} rows, but was compiled for {allowed}")


def symbol_of(args: tuple, kwargs: dict, names: tuple[str, ...]) -> Symbol | None:
    """The symbol in the arguments' shapes, or None. Raises Unsupported where it is more than a leading dimension."""
    symbols: dict[str, tuple[str, Any]] = {}
    for name, leaf in zip(names, jax.tree.leaves((args, kwargs))):
        for position, dim in enumerate(jax.numpy.shape(leaf)):
            if not jax.export.is_symbolic_dim(dim):
                continue
            if position > 0 or not str(dim).isidentifier():
                raise Unsupported("compile", name, f"may have one symbol, as its leading dimension, but is {leaf}")
            symbols.setdefault(str(dim), (name, dim))
    if len(symbols) > 1:
        found = ", ".join(f"{symbol} of {name}" for symbol, (name, _) in symbols.items())
        raise Unsupported("compile", None, f"a program has one symbolic dimension, the batch, but there are {found}")
    for symbol, (_, dim) in symbols.items():
        least = _first(lambda rows: not _holds(lambda: dim >= rows)) - 1
        most = _first(lambda rows: _holds(lambda: dim <= rows))
        return Symbol(symbol, least if least > 1 else 0, most if most < _MOST else None)
    return None


def _first(holds: Callable[[int], bool]) -> int:
    """The first number from 1 on for which something holds that holds for all larger ones;
    `_MOST` where there is none."""
    low, high = 1, _MOST
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def _holds(comparison: Callable[[], bool]) -> bool:
    try:
        return bool(comparison())
    except jax.errors.InconclusiveDimensionOperation:
        return False


def batch_of(symbol: Symbol, jaxpr: Any) -> Batch:
    """What is compiled for a function that was traced with the symbol. Raises Unsupported where it needs the batch as a
    number, or has other sizes that depend on it than its multiples, and such with a limit."""
    name = re.escape(symbol.name)
    multiple = re.compile(rf"(?:(\d+)\*)?{name}")
    limited = re.compile(rf"min\((?:(\d+)\*)?{name}, (\d+)\)|min\((\d+), (?:(\d+)\*)?{name}\)")
    sizes: set[int] = set()
    leading: set[int] = set()
    limits: set[Rows] = set()
    for variable, of in _variables(jaxpr, symbol):
        for position, dim in enumerate(getattr(variable.aval, "shape", ())):
            if not jax.export.is_symbolic_dim(dim):
                sizes.add(int(dim))
                leading |= {int(dim)} if position == 0 else set()
            elif (found := limited.fullmatch(str(dim))) and position == 0:
                times, most, other_most, other_times = found.groups()
                limits.add(Rows(int(times or other_times or 1), int(most or other_most)))
            elif not multiple.fullmatch(str(dim)):
                raise Unsupported(
                    "compile", None, f"the result of {of} has a dimension of {dim}, no multiple of the batch"
                )
    for rows in limits:
        if rows.most in leading or sum(other.most == rows.most for other in limits) > 1:
            what = (
                f"a limit of {rows.most} rows, with {symbol.name} in place of their number, "
                "must not be another size too"
            )
            raise Unsupported("compile", None, what)
    first = max([_LEAST, symbol.least, *(rows.most // rows.times + 1 for rows in limits)])
    primes = filter(_is_prime, itertools.count(first))
    rows = next(number for number in primes if all(size % number or not size for size in sizes))
    return Batch(symbol.name, rows, symbol.least, symbol.most, {each.most: each for each in limits})


def _is_prime(number: int) -> bool:
    return all(number % divisor for divisor in range(2, int(number**0.5) + 1))


def _variables(jaxpr: Any, symbol: Symbol) -> Iterator[tuple[Any, str]]:
    """All variables of a traced function, with what they are the results of;
    raises Unsupported where it computes with the batch."""
    jaxpr = getattr(jaxpr, "jaxpr", jaxpr)
    for variable in (*jaxpr.invars, *jaxpr.constvars):
        yield variable, "the function's arguments"
    for equation in jaxpr.eqns:
        if equation.primitive.name == "dim_as_value":
            raise Unsupported("compile", None, f"the function computes with {symbol.name}, its number of rows: for any "
                              "batch, a row's results must not depend on how many others there are. Indexing does, "
                              f"where it counts from the end: `x{_PLAIN_INDEX}` does not")  # fmt: skip
        if _is_kept_inside(equation):
            raise Unsupported("compile", None, f"{equation.primitive.name} keeps positions among the rows of the batch "
                              f"inside, which takes their number: where all are inside, `x{_PLAIN_INDEX}`")  # fmt: skip
        for variable in equation.outvars:
            yield variable, equation.primitive.name
        for parameter in equation.params.values():
            for inner in parameter if isinstance(parameter, (list, tuple)) else [parameter]:
                if hasattr(inner, "eqns") or hasattr(inner, "jaxpr"):
                    yield from _variables(inner, symbol)


def _is_kept_inside(equation: Any) -> bool:
    """Whether an operation does something about positions that are not among the rows of a batch."""
    name, parameters = equation.primitive.name, equation.params
    shape = equation.invars[0].aval.shape if equation.invars else ()
    if name == "dynamic_slice":
        dims = [dim for dim, size in enumerate(parameters["slice_sizes"]) if size != shape[dim]]
    elif name == "dynamic_update_slice":
        dims = [dim for dim, size in enumerate(equation.invars[1].aval.shape) if size != shape[dim]]
    elif name == "gather" or name.startswith("scatter"):
        numbers = parameters["dimension_numbers"]
        dims = numbers.start_index_map if name == "gather" else numbers.scatter_dims_to_operand_dims
        mode = jax.lax.GatherScatterMode.from_any(parameters["mode"])
        dims = () if mode == jax.lax.GatherScatterMode.PROMISE_IN_BOUNDS else dims
    else:
        return False
    return any(jax.export.is_symbolic_dim(shape[dim]) for dim in dims)


def with_rows(tree: Any, rows: int) -> Any:
    """Arguments with a number in the symbol's place."""

    def concrete(leaf):
        shape = jax.numpy.shape(leaf)
        if not any(map(jax.export.is_symbolic_dim, shape)):
            return leaf
        return jax.ShapeDtypeStruct((rows, *shape[1:]), leaf.dtype)

    return jax.tree.map(concrete, tree)
