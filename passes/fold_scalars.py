"""Moves work on scalars that are known out of `linalg`, where upstream's `canonicalize` folds it.

JAX leaves arithmetic on literals to XLA: `jnp.var` compares its number of elements with 0 and selects by the result. As
a `linalg.generic` of no dimensions nothing folds it.

Before:

    %c = arith.constant dense<8.0> : tensor<f32>
    %0 = linalg.generic {indexing_maps = [affine_map<() -> ()>, affine_map<() -> ()>], iterator_types = []}
        ins(%c : tensor<f32>) outs(%empty : tensor<i1>) {
    ^bb0(%in: f32, %out: i1):
      %1 = arith.cmpf ogt, %in, %zero : f32
      linalg.yield %1 : i1
    } -> tensor<i1>

After:

    %c = arith.constant dense<8.0> : tensor<f32>
    %in = tensor.extract %c[] : tensor<f32>
    %1 = arith.cmpf ogt, %in, %zero : f32
    %0 = tensor.from_elements %1 : tensor<i1>

Integer operations guard against operands that they have no result for, as a division by 0: where such an operand is a
number, it moves into the body, so that the guards fold.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, tensor

from .lowerings.access import VIEWS, constant_of, inputs
from .registry import register_pass


@register_pass("fold-scalars")
@dataclass(frozen=True)
class FoldScalars:
    def run(self, module: ir.Operation, remarks) -> None:
        for function in module.regions[0].blocks[0].operations:
            for region in function.operation.regions:
                for block in region.blocks:
                    _fold(block)


def _fold(block: ir.Block) -> None:
    known: set[ir.Value] = set()
    for view in list(block.operations):
        op = view.operation
        if op.name == "arith.constant":
            known.update(op.results)
        elif _is_scalar_work(op) and all(value in known for value in inputs(op)):
            known.add(_unpacked(op))
        elif op.name == "linalg.generic":
            _move_numbers_in(op)


def _is_scalar_work(op: ir.Operation) -> bool:
    if op.name != "linalg.generic" or len(op.attributes["iterator_types"]) or len(op.results) != 1:
        return False
    body = [view.operation for view in op.regions[0].blocks[0].operations]
    return all(inner.name.startswith(("arith.", "math.", "linalg.yield")) for inner in body)


def _unpacked(op: ir.Operation) -> ir.Value:
    body = op.regions[0].blocks[0]
    with ir.InsertionPoint(op), op.location:
        values = {argument: tensor.extract(value, []) for argument, value in zip(body.arguments, inputs(op))}
        *work, terminator = [view.operation for view in body.operations]
        for inner in work:
            copy = inner.clone().operation
            for i, operand in enumerate(copy.operands):
                copy.operands[i] = values.get(operand, operand)
            values.update(zip(inner.results, copy.results))
        (result,) = terminator.operands
        whole = tensor.from_elements(op.results[0].type, [values.get(result, result)])
    op.results[0].replace_all_uses_with(whole)
    op.erase()
    return whole


_GUARDED = ("arith.divsi", "arith.remsi", "arith.shli", "arith.shrsi", "arith.shrui")


def _move_numbers_in(op: ir.Operation) -> None:
    block = op.regions[0].blocks[0]
    if not any(view.operation.name in _GUARDED for view in block.operations):
        return
    for argument, value in zip(block.arguments, inputs(op)):
        number = _number(value)
        if number is not None and str(argument.type) == "i32":
            with ir.InsertionPoint(op), op.location:
                argument.replace_all_uses_with(arith.constant(argument.type, number))


def _number(value: ir.Value) -> int | None:
    """The one number that all elements of a value are known to be."""
    while not isinstance(value.owner, ir.Block) and (value.owner.name in VIEWS or _broadcasts(value.owner)):
        value = value.owner.operands[0]
    is_constant = not isinstance(value.owner, ir.Block) and value.owner.name == "arith.constant"
    return constant_of(value.owner) if is_constant else None


def _broadcasts(op: ir.Operation) -> bool:
    return op.name == "linalg.generic" and len(inputs(op)) == 1 and len(op.regions[0].blocks[0].operations) == 1
