"""Takes a module that came from JAX in: what is JAX's own bookkeeping goes, what cannot be compiled is reported.

The module has been lowered for the platform `ascend` and its StableHLO legalized to `linalg`, `arith`, `math` and
`tensor`; operators of ours are `ascend` ops. Every op that the compiler has no way with is an error at its line of Python,
all of them at once: StableHLO ops that legalization left, reductions and elementwise operations that kernels do not compute.

Before:

    module @jit_next_token attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
      func.func public @main(%arg0: tensor<8x7xf32>) -> (tensor<8x7xf32> {jax.result_info = "result"}) { ... }
    }

After:

    module @jit_next_token {
      func.func public @main(%arg0: tensor<8x7xf32>) -> tensor<8x7xf32> { ... }
    }
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from .diagnostics import PassFailure, emit_error, resolve
from .lowerings.producers import VIEWS, unsupported_reason
from .lowerings.reductions import is_reduction, reduction_of
from .registry import register_pass

_FOREIGN_ATTRIBUTES = ("mhlo.", "jax.", "sdy.", "stablehlo.")
REASON = "ascend.reason"  # of an op that a lowering rule left for this pass to report
_TRANSPARENT = ("func.func", "func.call", "func.return", "builtin.module", "linalg.yield")


@register_pass("import")
@dataclass(frozen=True)
class Import:
    def run(self, module: ir.Operation, remarks) -> None:
        _drop_foreign_attributes(module)
        problems: list[tuple[ir.Operation, str]] = []
        for function in module.regions[0].blocks[0].operations:
            if function.operation.name != "func.func":
                problems.append((function.operation, "no function"))
                continue
            _drop_argument_attributes(function)
            for block in function.regions[0].blocks:
                problems += _unsupported(block)
        # What legalization made several ops of is one to the user.
        last = {(label(op), str(resolve(op.location))): (op, reason) for op, reason in problems}
        for op, reason in last.values():
            emit_error(op, f"unsupported operation '{label(op)}': {reason}")
        if problems:
            raise PassFailure


def label(op: ir.Operation) -> str:
    """What the user wrote, as far as it is known: the JAX primitive that JAX put into the location, else the op."""
    location = op.location
    return location.name_str.rpartition("/")[2] if location.is_a_name() else op.name


def _unsupported(block: ir.Block) -> list[tuple[ir.Operation, str]]:
    found = []
    for view in block.operations:
        op = view.operation
        if op.name in (*_TRANSPARENT, *VIEWS) or op.name.startswith("ascend."):
            continue
        reason = reduction_of(op) if is_reduction(op) else unsupported_reason(op)
        if REASON in op.attributes:
            reason = op.attributes[REASON].value
        if isinstance(reason, str):
            found.append((op, reason))
    return found


def _drop_foreign_attributes(op: ir.Operation) -> None:
    for name in list(op.attributes):
        if name.startswith(_FOREIGN_ATTRIBUTES):
            del op.attributes[name]


def _drop_argument_attributes(function: ir.OpView) -> None:
    for name in ("arg_attrs", "res_attrs"):
        if name in function.operation.attributes:
            del function.operation.attributes[name]
