"""What plugins may do to the IR in ways that would end the process, found before it does.

A handle to an op, a value or a block is good while the pass runs that got it: passes that come later erase what it points
to, and the bindings do not know. Every handle holds a reference to its context. So where a plugin's function has returned
and there are more references than before, to that or to the op it was called with, what the plugin can reach is searched for
handles.
"""

from __future__ import annotations

import functools
import gc
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from mlir import ir

from .registry import is_ours

_BASE = ir.Operation.__mro__[1]  # what `Operation` and `OpView` have in common; the bindings do not name it
_HANDLES = (_BASE, ir.Value, ir.Block, ir.Region)
_MOST = 100_000  # objects to look at


class KeptHandle(Exception):
    """A plugin keeps a handle into the IR. The text says where; the line that raises this says nothing."""


@contextmanager
def guarded(owner: Any, context: ir.Context, given: Any = None) -> Iterator[None]:
    """A block in which `owner` works, a function or an object. Where it is a plugin's, ops that are used cannot be erased,
    and KeptHandle is raised if it keeps handles that it got in the block, or `given`, the op that it is called with."""
    module = sys.modules.get(getattr(owner, "__module__", None))
    if module is None or is_ours(getattr(module, "__file__", None) or ""):
        yield
        return
    references = lambda: sys.getrefcount(context) + sys.getrefcount(given)
    before = references()
    with _safe_erase():
        yield
    if references() <= before:
        return
    gc.collect()
    if references() <= before:
        return
    name = _name_of_kept(owner, module, context)
    if name is not None:
        raise KeptHandle(
            f"'{name}' keeps an operation, value, block or region of the IR. They are gone when the function has returned: "
            "find them anew, or keep names and attributes"
        )


def _name_of_kept(owner: Any, module: types.ModuleType, context: ir.Context) -> str | None:
    """What, of all that the plugin names, leads to a handle."""
    reachable = {**vars(module), getattr(owner, "__name__", type(owner).__name__): owner}
    seen: set[int] = {id(vars(module))}
    for name, value in reachable.items():
        if _holds_handle(value, module, context, seen):
            return name
    return None


def _holds_handle(value: Any, module: types.ModuleType, context: ir.Context, seen: set[int]) -> bool:
    waiting = [value]
    while waiting and len(seen) < _MOST:
        value = waiting.pop()
        if id(value) in seen or not _is_of(value, module):
            continue
        seen.add(id(value))
        if isinstance(value, _HANDLES):
            # Neither asks the op, which may be gone.
            if not isinstance(value, (_BASE, ir.Value)) or value.context is context:
                return True
            continue
        waiting += gc.get_referents(value)
    return False


def _is_of(value: Any, module: types.ModuleType) -> bool:
    """Whether to look into a value: not into other modules and what they define."""
    if isinstance(value, (types.ModuleType, ir.Context, ir.Module, types.FrameType)):
        return False
    if isinstance(value, (type, types.FunctionType)):
        return value.__module__ == module.__name__
    return True


@contextmanager
def _safe_erase() -> Iterator[None]:
    """In the block, erasing an op that is still used is an exception; MLIR would end the process."""
    erase: Callable = _BASE.erase

    @functools.wraps(erase)
    def checked(self):
        if any(True for result in self.operation.results for _ in result.uses):
            raise ValueError(f"'{self.operation.name}' cannot be erased: its results are still used")
        erase(self)

    _BASE.erase = checked
    try:
        yield
    finally:
        _BASE.erase = erase
