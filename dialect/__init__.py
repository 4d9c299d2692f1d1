"""The dialects of jascend, and MLIR contexts that know them.

Each dialect is one module with one `Dialect` record; nothing here imports JAX.
"""

from __future__ import annotations

from collections.abc import Collection

from mlir import ir
from mlir._mlir_libs import _mlir as _bindings
from mlir.dialects import irdl as _irdl

from .ascend import ASCEND, define
from .ascendc import ASCENDC
from .definition import Attribute, Dialect, Op, Operand, Result, VerifyError
from .rules import Shaped
from .tile import TILE

__all__ = [
    "ASCEND", "ASCENDC", "DIALECTS", "TILE", "Attribute", "Dialect", "Op", "Operand", "Result", "Shaped", "VerifyError",
    "define", "has_side_effects", "irdl_text", "make_context", "verify",
]  # fmt: skip

DIALECTS: dict[str, Dialect] = {dialect.name: dialect for dialect in (ASCEND, TILE, ASCENDC)}

# The bindings look op classes up in a module named after the dialect, below one of these packages.
_bindings.globals.append_dialect_search_prefix(__name__)


def make_context() -> ir.Context:
    """A fresh MLIR context in which all dialects of jascend are registered. Single-threaded: our passes are Python."""
    context = ir.Context()
    context.enable_multithreading(False)
    with context, ir.Location.unknown():
        for dialect in DIALECTS.values():
            dialect.classes  # registers the op classes, once a process
            _irdl.load_dialects(ir.Module.parse(dialect.irdl()))
    return context


def irdl_text(name: str) -> str:
    """The IRDL definition of one of our dialects."""
    return DIALECTS[name].irdl()


def has_side_effects(op_name: str) -> bool | None:
    """Whether an op of ours does more than compute its results; None for an op that is not ours."""
    dialect = DIALECTS.get(op_name.partition(".")[0])
    return None if dialect is None else dialect.has_side_effects(op_name)


def verify(operation: ir.Operation, names: Collection[str] | None = None) -> bool:
    """Checks every op of ours below `operation`, which MLIR has verified, against its definition, beyond what IRDL
    checks; `names` are those of the ops to check, None for all.

    Emits an MLIR error diagnostic at each op that fails; True when all hold."""
    ok, advance = True, ir.WalkResult.ADVANCE
    verified: set[tuple] = set()

    def visit(op: ir.Operation) -> ir.WalkResult:
        nonlocal ok
        name = op.name
        dialect = DIALECTS.get(name.partition(".")[0])
        if dialect is not None and (names is None or name in names):
            ok &= dialect.verify_op(op, verified)
        return advance

    if names is None or names:
        operation.operation.walk(visit)
    return ok
