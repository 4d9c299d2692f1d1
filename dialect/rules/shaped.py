"""What a shape rule sees of a value, and the checks that rules are made of.

A rule states once what an operator accepts. JAX's abstract evaluation and the MLIR verifier both call it, so it knows
neither of them: values come as `Shaped`, problems leave as `jascend.dialect.errors`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from jascend.dialect.errors import OperatorError, ParamInvalid, ParamNullptr, TilingError, Unsupported

FLOATS = ("float32", "float16", "bfloat16")
TARGETS = ("ascend910b", "ascend910_93", "ascend950")
INT32_MAX = 2**31 - 1


class Shaped(NamedTuple):
    """The type of a tensor.

    A dimension is an int, None (MLIR's `?`), `Rows`, or a symbolic dimension of JAX. The dtype is its NumPy name.
    """

    shape: tuple[Any, ...]
    dtype: str

    def __str__(self):
        return f"{self.dtype}[{','.join('?' if size is None else str(size) for size in self.shape)}]"


@dataclass(frozen=True)
class Rows:
    """A dimension that follows from how many rows there are: `times` as many, but not more than `most`."""

    times: int = 1
    most: int | None = None

    def __mul__(self, times: int) -> Rows:
        return Rows(self.times * times, self.most and self.most * times)

    def at(self, rows: int) -> int:
        size = self.times * rows
        return size if self.most is None else min(size, self.most)

    @staticmethod
    def smaller(a: Rows | int, b: Rows | int) -> Rows | int:
        """The smaller of two dimensions, of which at most one is `Rows`."""
        if isinstance(b, Rows):
            a, b = b, a
        return Rows(a.times, b if a.most is None else min(a.most, b)) if isinstance(a, Rows) else min(a, b)

    def __str__(self):
        size = "rows" if self.times == 1 else f"{self.times} * rows"
        return size if self.most is None else f"min({size}, {self.most})"


def same_size(a: Any, b: Any) -> bool:
    """Whether two dimensions can be the same size: `?` fits all, symbolic ones must be provably equal, as in JAX."""
    return a is None or b is None or bool(a == b)


def same_shape(a: Sequence[Any], b: Sequence[Any]) -> bool:
    return len(a) == len(b) and all(map(same_size, a, b))


def check_present(operator: str, argument: str, value: Shaped | None) -> None:
    if value is None:
        raise ParamNullptr(operator, argument, "is required, but is None")


def check_dtype(operator: str, argument: str, value: Shaped, allowed: Sequence[str]) -> None:
    if value.dtype not in allowed:
        raise ParamInvalid(operator, argument, f"must be {' or '.join(allowed)}, but is {value}")


def check_rank(
    operator: str, argument: str, value: Shaped, rank: int, layout: str, error: type[OperatorError] = ParamInvalid
) -> None:
    if len(value.shape) != rank:
        raise error(operator, argument, f"must have shape {layout}, but is {value} of rank {len(value.shape)}")


def check_index_range(operator: str, argument: str, value: Shaped) -> None:
    """Indices along the last axis are int32."""
    size = value.shape[-1]
    if isinstance(size, int) and size > INT32_MAX:
        raise TilingError(
            operator, argument, f"may have at most {INT32_MAX} elements a row (int32 indices), but is {value}"
        )


def check_target(operator: str, target: str | None, targets: Sequence[str] = TARGETS) -> None:
    """None stands for what any of the targets accepts."""
    if target is not None and target not in targets:
        raise Unsupported(operator, "target", f"must be {', '.join(targets)} or None, but is {target!r}")
