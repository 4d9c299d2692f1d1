"""What plugins may do to the IR in ways that would end the process, found before it does.

A handle to an op, a value or a block is good while the pass runs that got it: passes that come later erase what it
points to, and the bindings do not know. Every handle holds a reference to its context. So where a plugin's function has
returned and there are more references than before, to that or to the op it was called with, what the plugin can reach
is searched for handles.
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
# Beside those, lists of them, iterators and places between them, which refer to them as well.
_LISTS = ("OperationList", "OperationIterator", "RegionSequence", "RegionIterator", "BlockList", "BlockIterator",
          "BlockArgumentList", "OpOperandList", "OpResultList", "OpAttributeMap", "OpOperandIterator",
          "OpOperand")  # fmt: skip
_PLACES = tuple(getattr(ir, name) for name in (*_LISTS, "InsertionPoint") if hasattr(ir, name))
_HANDLES = (_BASE, ir.Value, ir.Block, ir.Region, *_PLACES)
_MOST = 100_000  # objects to look at


class KeptHandle(Exception):
    """A plugin keeps a handle into the IR. The text says where; the line that raises this says nothing."""


@contextmanager
def guarded(owner: Any, context: ir.Context, given: Any = None, *, erases: bool = True) -> Iterator[None]:
    """A block in which `owner` works, a function or an object. Where it is a plugin's, what would end the process is an
    exception (`_checks`), and KeptHandle is raised if it keeps handles that it got in the block, or `given`, the op
    that it is called with. Without `erases`, a driver knows of ops what only it may erase."""
    module = sys.modules.get(getattr(owner, "__module__", None))
    if module is None or is_ours(getattr(module, "__file__", None) or ""):
        yield
        return
    references = lambda: sys.getrefcount(context) + sys.getrefcount(given)
    before = references()
    with _checked(_checks(context, given, erases)):
        yield
    if references() <= before:
        return
    gc.collect()
    if references() <= before:
        return
    name = _name_of_kept(owner, module, context)
    if name is not None:
        raise KeptHandle(
            f"'{name}' keeps an operation, value, block or region of the IR. They are gone when the function has "
            "returned: find them anew, or keep names and attributes"
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


# -- what MLIR does not survive ----------------------------------------------------------------------------------------


def _checks(context: ir.Context, given: Any, erases: bool) -> Iterator[tuple[type, str, Callable[..., None]]]:
    """Methods of the bindings with what holds for their arguments, or raises ValueError."""

    def erase(op: ir.Operation) -> None:
        if any(True for result in op.operation.results for _ in result.uses):
            raise ValueError(f"'{op.operation.name}' cannot be erased: its results are still used")
        around = given
        while around is not None:
            if op.operation == around.operation:
                raise ValueError(
                    f"'{op.operation.name}' cannot be erased: it is, or has in it, what the function is called with"
                )
            around = around.operation.parent
        if not erases:
            raise ValueError(f"'{op.operation.name}' cannot be erased at once: ask the rewriter, `erase_op`")

    def detach(op: ir.Operation) -> None:
        # It would go when Python lets go of it: with what uses it still there, or after its context.
        raise ValueError(f"'{op.operation.name}' cannot be detached: move it, `move_before`, or clone it")

    def same(thing: Any) -> None:
        if thing is not None and thing.context is not context:
            raise ValueError(f"{type(thing).__name__} of another context: build it in the context of the IR")

    def create(name: str, *rest: Any, **more: Any) -> None:
        known = context.allow_unregistered_dialects or context.is_registered_operation(name)
        if not known:
            raise ValueError(f"no operation is called '{name}'")

    def erase_argument(block: ir.Block, number: int) -> None:
        if next(iter(block.arguments[number].uses), None) is not None:
            raise ValueError(f"argument {number} of a block cannot be erased: it is still used")

    yield _BASE, "erase", erase
    yield _BASE, "detach_from_parent", detach
    yield _BASE, "clone", lambda op, *place, **place_by_name: same(op.operation)
    yield ir.Operation, "create", create
    yield ir.Block, "erase_argument", erase_argument
    yield ir.Block, "append", lambda block, op: same(op.operation)
    yield ir.InsertionPoint, "insert", lambda point, op: same(op.operation)
    yield ir.OpOperandList, "__setitem__", lambda operands, place, value: same(value)
    yield ir.OpAttributeMap, "__setitem__", lambda attributes, place, attribute: same(attribute)


@contextmanager
def _checked(checks: Iterator[tuple[type, str, Callable[..., None]]]) -> Iterator[None]:
    """In the block, the methods check their arguments first."""
    replaced = []

    def replace(owner: type, name: str, check: Callable[..., None]) -> None:
        plain = getattr(owner, name)

        @functools.wraps(plain)
        def method(*args, **kwargs):
            check(*args, **kwargs)
            return plain(*args, **kwargs)

        replaced.append((owner, name, vars(owner).get(name)))
        setattr(owner, name, staticmethod(method) if isinstance(vars(owner).get(name), staticmethod) else method)

    for owner, name, check in checks:
        replace(owner, name, check)
    try:
        yield
    finally:
        for owner, name, own in replaced:
            setattr(owner, name, own)
