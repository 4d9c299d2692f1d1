"""Removes ops whose results nobody uses and merges ops that compute the same value.

Operations registered through IRDL carry no traits, so upstream's `cse` and `canonicalize` take every op of ours for one
with side effects and keep it. This pass knows from the dialects' definitions which `ascend` and `tile` ops only compute
their results. It treats the pure upstream dialects the same way: a chain `arith` → `tile` → `arith` can then be
merged and removed in one run, also where it sits in loops and branches that have no other effect.

Before:

    %a = tile.iota : tensor<64xi32>
    %b = tile.iota : tensor<64xi32>
    %c = arith.addi %a, %b : tensor<64xi32>
    %d = arith.muli %c, %c : tensor<64xi32>        // unused
    return %c : tensor<64xi32>

After:

    %a = tile.iota : tensor<64xi32>
    %c = arith.addi %a, %a : tensor<64xi32>
    return %c : tensor<64xi32>

An op is merged into an earlier one with the same name, operands, attributes and result types, in the same block or in
one around it, so that the earlier one dominates every use; blocks side by side are left alone. An op that reads memory
(one with a memref operand, as `tile.load`) is merged only within its block, and only if nothing between the two may
have written. Functions are separate: a value never moves from one to another.

A branch loses those of its results that nobody uses, and with them what computes them, and an `else` that does nothing;
what else it does stays.

Before:

    %x, %y = scf.if %c -> (f32, f32) {
      tile.store %t, ...
      scf.yield %a, %b : f32, f32
    } else {
      scf.yield %z, %z : f32, f32
    }
    return %y

After:

    %y = scf.if %c -> (f32) {
      tile.store %t, ...
      scf.yield %b : f32
    } else {
      scf.yield %z : f32
    }
    return %y
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from jascend.dialect import has_side_effects
from mlir import ir
from mlir.dialects import scf

from .builder import named
from .diagnostics import Remarks, resolve
from .registry import option, register_pass

_OUR_DIALECTS = {"ascend", "tile"}
_PURE_DIALECTS = {"arith", "math", "complex", "index", "tensor"}
_PURE_OPS = {"affine.apply", "affine.min", "affine.max", "linalg.index", "linalg.yield", "scf.yield"}
# Without effects if what they contain has none, and if they work on values rather than on memory.
_REGION_OPS = {"scf.for", "scf.if", "scf.index_switch"}
_REGION_DIALECTS = {"linalg", "tensor"}

Key = tuple
Scope = dict[Key, ir.Operation]


@register_pass("remove-dead-ops")
@dataclass(frozen=True)
class RemoveDeadOps:
    merge: bool = option(True, "merge ops that compute the same; tiles then live longer")

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        for block in _blocks(module) if self.merge else ():
            _merge_in_block(block, [], remarks)
        _remove_in(module, remarks)


def _dialect(op: ir.Operation) -> str:
    return op.name.partition(".")[0]


def _blocks(op: ir.Operation) -> Iterator[ir.Block]:
    return (block for region in op.regions for block in region)


def _operations(block: ir.Block) -> list[ir.Operation]:
    """A snapshot, so that ops can be erased while it is gone through."""
    return [op.operation for op in block.operations]


def _tell(op: ir.Operation, text: str, remarks: Remarks) -> None:
    """Who wrote the graph knows its operators; all other ops are a matter of the compiler's own."""
    remarks.add(op, "passed", text, detail=_dialect(op) != "ascend")


def _touches_memory(op: ir.Operation) -> bool:
    return any(isinstance(operand.type, (ir.MemRefType, ir.UnrankedMemRefType)) for operand in op.operands)


def _is_pure(op: ir.Operation) -> bool:
    """Whether the op, with all that it contains, does nothing but compute its results."""
    name, dialect = op.name, _dialect(op)
    if dialect in _OUR_DIALECTS:
        return has_side_effects(name) is False and not len(op.regions)
    if name in _REGION_OPS or (dialect in _REGION_DIALECTS and len(op.regions)):
        contents = (inner.operation for block in _blocks(op) for inner in block.operations)
        return not _touches_memory(op) and all(map(_is_pure, contents))
    return name in _PURE_OPS or dialect in _PURE_DIALECTS


# -- merging --------------------------------------------------------------------------------------------------------


def _merge_in_block(block: ir.Block, around: list[Scope], remarks: Remarks) -> None:
    """Merges ops of a block with earlier ones of it or of the blocks around it, innermost last in `around`."""
    here: Scope = {}
    read: Scope = {}  # ops that read memory, as long as nothing may have written
    for op in _operations(block):
        if len(op.regions):
            # Only ops known to see the values around them: others may be isolated, as functions are.
            scopes = [*around, here] if op.name in _REGION_OPS or _dialect(op) in _REGION_DIALECTS else []
            for inner in _blocks(op):
                _merge_in_block(inner, scopes, remarks)
        if not _is_pure(op):
            read.clear()
        elif len(op.results) and not len(op.regions):
            scopes = [read] if _touches_memory(op) else [*around, here]
            _merge_or_enter(op, scopes, remarks)


def _merge_or_enter(op: ir.Operation, scopes: list[Scope], remarks: Remarks) -> None:
    key = _key(op)
    earlier = next((scope[key] for scope in scopes if key in scope), None)
    if earlier is None:
        scopes[-1][key] = op
        return
    _tell(op, f"merged '{op.name}' with the same op at {resolve(earlier.location)}", remarks)
    for result, same in zip(op.results, earlier.results, strict=True):
        result.replace_all_uses_with(same)
    op.erase()


def _key(op: ir.Operation) -> Key:
    attributes = frozenset((name, op.attributes[name]) for name in op.attributes)
    return op.name, tuple(op.operands), attributes, tuple(result.type for result in op.results)


# -- removing -------------------------------------------------------------------------------------------------------


def _remove_in(op: ir.Operation, remarks: Remarks) -> bool:
    """Removes dead ops below `op`, users before what they use; whether there were any."""
    removed = False
    for region in op.regions:
        blocks = list(region)
        # Several blocks may be listed in an order in which a use comes before what it uses.
        while any([_remove_in_block(block, remarks) for block in reversed(blocks)]):
            removed = True
            if len(blocks) == 1:
                break
    return removed


def _remove_in_block(block: ir.Block, remarks: Remarks) -> bool:
    removed = False
    for op in reversed(_operations(block)):
        if _is_dead(op):
            _tell(op, f"removed '{op.name}', whose results are not used", remarks)
            op.erase()
            removed = True
        elif len(op.regions):
            if op.name == "scf.if" and any(map(_is_unused, op.results)):
                op = _reduced(op)
                removed = True
            removed |= _remove_in(op, remarks)
            if op.name == "scf.if" and _has_idle_else(op):
                _reduced(op)
                removed = True
    return removed


def _is_unused(value: ir.Value) -> bool:
    return next(iter(value.uses), None) is None


def _is_dead(op: ir.Operation) -> bool:
    if not all(map(_is_unused, op.results)):
        return False
    # A pure op without results is the terminator of its block, unless it is a loop or branch that does nothing.
    return (len(op.results) > 0 or op.name in _REGION_OPS) and _is_pure(op)


def _has_idle_else(op: ir.Operation) -> bool:
    return not len(op.results) and any(len(_operations(block)) == 1 for block in op.regions[1])


def _reduced(op: ir.Operation) -> ir.Operation:
    """Replaces a branch by one without the results that are unused; and without an `else` that does nothing."""
    kept = [i for i, result in enumerate(op.results) if not _is_unused(result)]
    attributes = {name: op.attributes[name] for name in op.attributes}
    location = op.location
    names = location.name_str.split(",") if location.is_a_name() else []
    if len(names) == len(op.results):
        location = named(",".join(names[i] for i in kept) or None, location)
    with ir.InsertionPoint(op):
        new = ir.Operation.create(
            op.name, [op.results[i].type for i in kept], list(op.operands), attributes, regions=2, loc=location
        )
    blocks = [op.regions[0].blocks[0], *([] if _has_idle_else(op) else op.regions[1])]
    for block, region in zip(blocks, new.regions):
        *_, last = _operations(block)
        with ir.InsertionPoint(last):
            scf.yield_([last.operands[i] for i in kept], loc=last.location)
        last.erase()
        block.append_to(region)
    for i, result in zip(kept, new.results, strict=True):
        op.results[i].replace_all_uses_with(result)
    op.erase()
    return new
