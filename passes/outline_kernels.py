"""Cuts a graph into kernels: each operator with the elementwise work that feeds it becomes a function and a launch.

A kernel is a `func.func` with the attribute `ascend.kernel`; its launch is a `func.call` with the attribute
`ascend.launch`, so that upstream verifies it against the kernel and keeps track of the symbol. Elementwise producers
are copied into every kernel that needs them: inside, they cost a pass over data that is there anyway; outside, they
would cost a launch and a trip through global memory. Reshapes between launches stay outside: they move nothing.

What is left outside kernels and is neither a launch, a reshape nor a part in place cannot run;
each such op is an error at its line.

Before:

    func.func public @main(%x: tensor<8x7xf32>, %t: tensor<8xf32>, %k: tensor<8xi32>) -> tensor<8x7xf32> {
      %s = linalg.generic ... { arith.divf } ...
      %0 = "ascend.apply_top_k_top_p"(%s, %k) ...
      return %0
    }

After:

    func.func public @main(%x: tensor<8x7xf32>, %t: tensor<8xf32>, %k: tensor<8xi32>) -> tensor<8x7xf32> {
      %0 = call @jascend_apply_top_k_top_p(%x, %t, %k) {ascend.launch} : ...
      return %0
    }
    func.func private @jascend_apply_top_k_top_p(%x: ..., %t: ..., %k: ...) -> ...
        attributes {ascend.kernel, no_inline} {
      ...
    }
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import func

from .builder import name_of, named
from .cluster_rows import LIBRARY_CALL, ROW_WISE, computed, is_plain_part, is_plain_view, produced
from .diagnostics import PassFailure, emit_error
from .lower_to_tile import KERNEL, LAUNCH, supported
from .lowerings.access import VIEWS, captured, in_order
from .registry import option, register_pass

_label = importlib.import_module(".import", __package__).label


@register_pass("outline-kernels")
@dataclass(frozen=True)
class OutlineKernels:
    prefix: str = option("jascend", "what kernel names begin with")

    def run(self, module: ir.Operation, remarks) -> None:
        functions = [op for op in module.regions[0].blocks[0].operations if op.operation.name == "func.func"]
        taken = {function.operation.attributes["sym_name"].value for function in functions}
        failed = False
        for function in functions:
            if KERNEL in function.operation.attributes or not len(function.regions[0].blocks):
                continue
            for op in [view.operation for view in function.regions[0].blocks[0].operations]:
                if not op.name.startswith("ascend."):
                    continue
                if op.name == LIBRARY_CALL:
                    remarks.add(op, "passed", f"{op.attributes['callee'].value}: a call of CANN's library")
                    continue
                if supported(op.name):
                    name = _fresh(f"{self.prefix}_{op.name.partition('.')[2]}", taken)
                    _outline(module, function, op, name, remarks)
                else:
                    emit_error(
                        op, f"unsupported operation '{op.name.partition('.')[2]}': no kernel is generated for it"
                    )
                    failed = True
            _erase_dead(function.regions[0].blocks[0])
            failed |= _report_left(function)
        if failed:
            raise PassFailure


def _fresh(name: str, taken: set[str]) -> str:
    candidate, number = name, 2
    while candidate in taken:
        candidate, number = f"{name}{number}", number + 1  # no underscore: CANN derives names from `...TopP1`
    taken.add(candidate)
    return candidate


def _outline(module: ir.Operation, function: ir.OpView, op: ir.Operation, name: str, remarks) -> None:
    cluster, leaves = _cluster(op)
    types = [value.type for value in leaves]
    with ir.InsertionPoint(module.regions[0].blocks[0]), op.location:
        kernel = func.FuncOp(name, (types, [result.type for result in op.results]), visibility="private")
        kernel.attributes[KERNEL] = ir.UnitAttr.get()
        kernel.attributes["no_inline"] = ir.UnitAttr.get()
        block = kernel.add_entry_block()
        for argument, leaf, label in zip(block.arguments, leaves, _names(leaves)):
            argument.set_location(named(label, _place(leaf, cluster)))
        mapping = dict(zip(leaves, block.arguments))
        with ir.InsertionPoint(block):
            for inner in cluster:
                copy = inner.clone()
                _remap(copy, mapping)
                mapping.update(zip(inner.results, copy.results))
            func.ReturnOp([mapping[result] for result in op.results])
    with ir.InsertionPoint(op), op.location:
        call = func.CallOp([result.type for result in op.results], name, leaves)
        call.attributes[LAUNCH] = ir.UnitAttr.get()
    producers = [_label(inner) for inner in cluster if inner.name == "linalg.generic"]
    fused = f"with {', '.join(dict.fromkeys(producers))} computed inside" if producers else "nothing to compute inside"
    remarks.add(op, "passed", f"{name}: {op.name.partition('.')[2]}, {fused}")
    for result, replacement in zip(op.results, call.results):
        result.replace_all_uses_with(replacement)
    op.erase()


def _cluster(op: ir.Operation) -> tuple[list[ir.Operation], list[ir.Value]]:
    """The ops that move into the kernel, in order, and the values that come from outside."""
    inside = computed if op.name in ROW_WISE else produced

    def is_leaf(value: ir.Value) -> bool:
        return isinstance(value.owner, ir.Block) or not inside(value.owner)

    def sources(value: ir.Value) -> list[ir.Value]:
        return [] if is_leaf(value) else [*value.owner.operands, *captured(value.owner)]

    seen: set[ir.Value] = set()
    values = [value for operand in op.operands for value in in_order(operand, sources, seen)]
    members = dict.fromkeys(value.owner for value in values if not is_leaf(value))
    return [*members, op], [value for value in values if is_leaf(value)]


def _place(leaf: ir.Value, cluster: list[ir.Operation]) -> ir.Location:
    """Where a kernel's operand comes from; of an argument of the graph, which has no line, where it is used first."""
    if not isinstance(leaf.owner, ir.Block):
        return leaf.owner.location
    return next(op.location for op in cluster if leaf in (*op.operands, *captured(op)))


def _names(leaves: list[ir.Value]) -> list[str]:
    """A name for each argument: the user's where it is one, else a number."""
    names = []
    for i, leaf in enumerate(leaves):
        name = name_of(leaf) if isinstance(leaf.owner, ir.Block) else None
        name = (name or "").rpartition(".")[2].strip("[]'\"")
        names.append(name if name.isidentifier() and name not in names else f"arg{i}")
    return names


def _remap(op: ir.Operation, mapping: dict[ir.Value, ir.Value]) -> None:
    """Makes a copied op, and those inside it, use the kernel's values."""
    for i, operand in enumerate(op.operands):
        if operand in mapping:
            op.operands[i] = mapping[operand]
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                _remap(inner.operation, mapping)


def _erase_dead(block: ir.Block) -> None:
    for op in reversed([view.operation for view in block.operations]):
        removable = not op.name.startswith("func.") and (computed(op) or is_plain_view(op))
        if removable and not any(True for result in op.results for _ in result.uses):
            op.erase()


def _report_left(function: ir.OpView) -> bool:
    """Reports what no kernel computes."""
    left = False
    for view in function.regions[0].blocks[0].operations:
        op = view.operation
        in_place = op.name in VIEWS or is_plain_part(op)
        runs = op.name == "func.return" or in_place or LAUNCH in op.attributes or op.name.startswith("ascend.")
        if not runs and not _only_feeds_computation(op):
            emit_error(
                op, f"unsupported operation '{_label(op)}': its result is needed outside the kernels of the operators"
            )
            left = True
    return left


def _only_feeds_computation(op: ir.Operation) -> bool:
    """A constant or a shape that an op uses which is reported itself."""
    if op.name not in ("arith.constant", "tensor.empty"):
        return False
    return all(use.owner.name != "func.return" for use in op.results[0].uses)
