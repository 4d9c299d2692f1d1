"""How an operator becomes tiles: the registry of lowerings.

    @lowering("ascend.sort", summary="Sorts every row.", refusal=refusal)
    def lower(op, site): ...

One operator a file; ours are in this folder.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mlir import ir

from jascend.backends.ascend.targets import Target

from ..registry import check_arguments, file_of
from .site import CANDIDATES, Candidate, Site


@dataclass(frozen=True)
class Lowering:
    """One operator's.

    Attributes:
      lower: builds the body of the kernel for an op at a site.
      summary: what the kernel does, in a sentence or two, for the head of its text.
      refusal: why no kernel is generated for an op on a target, or None if one is.
      fill: for a result of which a part may stay unwritten, what the program puts there (others: 0).
      candidates: sizes of tiles to try, the best first.
      from_memory: names of operands that the kernel does not compute, but loads.
      file: where it is written.
    """

    lower: Callable[[ir.OpView, Site], None]
    summary: str
    refusal: Callable[[ir.OpView, Target], str | None]
    fill: Mapping[str, int] = field(default_factory=dict)
    candidates: Sequence[Candidate] = CANDIDATES
    from_memory: Sequence[str] = ()
    file: str = ""


_lowerings: dict[str, Lowering] = {}


def lowering(
    op_name: str,
    *,
    summary: str,
    refusal: Callable[[ir.OpView, Target], str | None] | None = None,
    fill: Mapping[str, int] | None = None,
    candidates: Sequence[Candidate] = CANDIDATES,
    from_memory: Sequence[str] = (),
) -> Callable[[Callable], Callable]:
    """Function decorator: makes `lower(op, site)` the lowering of the operator `op_name`; see `Lowering`.

    Raises TypeError for functions that do not take two arguments, ValueError where the operator has a lowering."""

    def register(lower: Callable) -> Callable:
        check_arguments(lower, f"lowering of '{op_name}'", ("op", "site"))
        if refusal is not None:
            check_arguments(refusal, f"refusal of '{op_name}'", ("op", "target"))
        file = file_of(sys.modules[lower.__module__])
        known = _lowerings.get(op_name)
        if known is not None and known.file != file:
            raise ValueError(f"'{op_name}' already has a lowering, in {known.file}")
        _lowerings[op_name] = Lowering(
            lower, summary, refusal or _never, dict(fill or {}), tuple(candidates), tuple(from_memory), file
        )
        return lower

    return register


def _never(op: Any, target: Any) -> None:
    return None


def lowering_of(op_name: str) -> Lowering | None:
    return _lowerings.get(op_name)


def lowerings_of(file: str) -> list[str]:
    """The operators whose lowering is in a file."""
    return [name for name, each in _lowerings.items() if each.file == file]


def lowering_files() -> set[str]:
    return {each.file for each in _lowerings.values()}


def forget_lowerings(file: str) -> None:
    for name in lowerings_of(file):
        del _lowerings[name]
