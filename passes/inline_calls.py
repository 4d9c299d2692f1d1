"""Inlines every call of a function that is neither a kernel nor recursive.

JAX makes functions of what it has compiled before (`jnp.where`, a jitted function). Their ops carry no source line of
their own, so an inlined op is located at its call: a diagnostic then shows the user's line. Upstream's inliner needs an
extension of the `func` dialect that the Python bindings do not register.

Before:

    func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = call @twice(%x) : (tensor<4xf32>) -> tensor<4xf32>
      return %0 : tensor<4xf32>
    }
    func.func private @twice(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = arith.addf %x, %x : tensor<4xf32>
      return %0 : tensor<4xf32>
    }

After:

    func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = arith.addf %x, %x : tensor<4xf32>
      return %0 : tensor<4xf32>
    }

Private functions that nothing calls any more are removed.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from .diagnostics import PassFailure, emit_error
from .lower_to_tile import KERNEL
from .registry import register_pass


@register_pass("inline-calls")
@dataclass(frozen=True)
class InlineCalls:
    def run(self, module: ir.Operation, remarks) -> None:
        functions = {
            op.operation.attributes["sym_name"].value: op.operation
            for op in module.regions[0].blocks[0].operations
            if op.operation.name == "func.func" and len(op.operation.regions[0].blocks) == 1
        }
        inlinable = {name: op for name, op in functions.items() if KERNEL not in op.attributes}
        done: set[str] = set()
        for name in inlinable:
            _inline_into(name, inlinable, done, ())
        _remove_uncalled(module)


def _inline_into(name: str, functions: dict[str, ir.Operation], done: set[str], callers: tuple[str, ...]) -> None:
    """Inlines the calls in function `name`, those in its callees first."""
    if name in done:
        return
    for call in _calls(functions[name]):
        callee = call.attributes["callee"].value
        if callee not in functions:
            continue
        if callee == name or callee in callers:
            emit_error(call, f"'{callee}' calls itself: a recursive function cannot be inlined")
            raise PassFailure
        _inline_into(callee, functions, done, (*callers, name))
        _replace(call, functions[callee].regions[0].blocks[0])
    done.add(name)


def _calls(function: ir.Operation) -> list[ir.Operation]:
    found = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "func.call":
            found.append(op.operation)
        return ir.WalkResult.ADVANCE

    function.walk(visit)
    return found


def _remove_uncalled(module: ir.Operation) -> None:
    called = {call.attributes["callee"].value for call in _calls(module)}
    for view in list(module.regions[0].blocks[0].operations):
        op = view.operation
        private = "sym_visibility" in op.attributes and op.attributes["sym_visibility"].value == "private"
        if private and op.attributes["sym_name"].value not in called:
            op.erase()


def _replace(call: ir.Operation, body: ir.Block) -> None:
    """Puts a copy of a function's body in place of a call."""
    values = dict(zip(body.arguments, call.operands))
    *ops, terminator = [view.operation for view in body.operations]
    with ir.InsertionPoint(call):
        for op in ops:
            copy = op.clone()
            _adopt(copy.operation, values, call.location)
            values.update(zip(op.results, copy.operation.results))
    for result, value in zip(call.results, terminator.operands):
        result.replace_all_uses_with(values.get(value, value))
    call.erase()


def _adopt(op: ir.Operation, values: dict[ir.Value, ir.Value], caller: ir.Location) -> None:
    """Makes a copied op, and those inside it, use the caller's values and say where they were called."""
    for i, operand in enumerate(op.operands):
        if operand in values:
            op.operands[i] = values[operand]
    op.location = _called(op.location, caller)
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                _adopt(inner.operation, values, caller)


def _called(location: ir.Location, caller: ir.Location) -> ir.Location:
    """A location inside a callee, seen from its call. A name stays outermost, where it can be read back."""
    if location.is_a_name():
        return ir.Location.name(location.name_str, ir.Location.callsite(location.child_loc, [caller]))
    return ir.Location.callsite(location, [caller])
