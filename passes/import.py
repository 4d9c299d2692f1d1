"""Takes a module that came from JAX in: what is JAX's own bookkeeping goes, what cannot be compiled is reported.

The module has been lowered for the platform `ascend` and its StableHLO legalized to `linalg`, `arith`, `math` and
`tensor`; operators of ours are `ascend` ops. Every op that the compiler has no way with is an error at its line of
Python, all of them at once: StableHLO ops that legalization left, reductions and elementwise operations that kernels do
not compute.

Legalization computes without signs, and casts what is `ui32` in a signature. Those words are `i32` from here on: their
bits are the same, and operations that depend on the sign say so by themselves.

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
from .lowerings.access import VIEWS, unsupported_reason
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
        _drop_signs(module)
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
    return location.name_str.rpartition("/")[2].rstrip(":") if location.is_a_name() else op.name


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


_CAST = "builtin.unrealized_conversion_cast"


def _drop_signs(module: ir.Operation) -> None:
    """Makes `ui32` tensors `i32`, but for those that a constant holds, and removes the casts between the two."""
    casts: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        values = [*op.results] if op.name != "arith.constant" else []
        values += [argument for region in op.regions for block in region.blocks for argument in block.arguments]
        for value in values:
            value.set_type(_without_sign(value.type))
        if op.name == "func.func":
            signature = op.attributes["function_type"].value
            inputs, results = (
                [_without_sign(each) for each in types] for types in (signature.inputs, signature.results)
            )
            op.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, results))
        if _changes_no_bit(op):
            casts.append(op)
        return ir.WalkResult.ADVANCE

    with module.location:
        module.walk(visit, ir.WalkOrder.PRE_ORDER)
    for cast in casts:
        cast.results[0].replace_all_uses_with(cast.operands[0])
        cast.erase()


def _changes_no_bit(op: ir.Operation) -> bool:
    """Whether an op casts words to words, one or a tensor of them."""
    if op.name == "linalg.generic" and len(op.operands) == 2 and op.operands[0].type == op.results[0].type:
        first, *others = [view.operation for view in op.regions[0].blocks[0].operations]
        is_bitcast = (
            first.name == "arith.bitcast" and first.operands[0].type == first.results[0].type and len(others) == 1
        )
        return is_bitcast and all(
            a.value == op.attributes["indexing_maps"][0].value for a in op.attributes["indexing_maps"]
        )
    return op.name == _CAST and len(op.operands) == 1 == len(op.results) and op.operands[0].type == op.results[0].type


def _without_sign(type_: ir.Type) -> ir.Type:
    if not isinstance(type_, ir.RankedTensorType) or str(type_.element_type) != "ui32":
        return type_
    return ir.RankedTensorType.get(type_.shape, ir.IntegerType.get_signless(32))


def _drop_argument_attributes(function: ir.OpView) -> None:
    for name in ("arg_attrs", "res_attrs"):
        if name in function.operation.attributes:
            del function.operation.attributes[name]
