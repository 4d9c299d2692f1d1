"""Lowers kernel functions from tensors to tiles: chooses the algorithm and writes it out for one core.

A kernel is a `func.func` with the attribute `ascend.kernel` whose body is one operator of the `ascend` dialect and the
elementwise producers of its operands. Its tensors become global memory (memrefs in memory space "gm", the leading
dimension dynamic, results as further arguments); the body becomes loops over this core's rows and over chunks of a row
that fit in the unified buffer, with the producers computed where their elements are loaded. A call of the kernel passes
buffers.

Before:

    func.func @filter(%x: tensor<8x50257xf32>, %k: tensor<8xi32>) -> tensor<8x50257xf32> attributes {ascend.kernel} {
      %0 = "ascend.apply_top_k_top_p"(%x, %k) {operandSegmentSizes = array<i32: 1, 0, 1>} : ...
      return %0 : tensor<8x50257xf32>
    }

After:

    func.func @filter(%x: memref<?x50257xf32, "gm">, %k: memref<?xi32, "gm">, %out: memref<?x50257xf32, "gm">)
        attributes {ascend.kernel} {
      %rows = memref.dim %x, %c0 : memref<?x50257xf32, "gm">
      %first, %last, %part, %rounds = "tile.block_rows"(%rows) : (index) -> (index, index, index, index)
      scf.for %row = %first to %last step %c1 {
        ... "tile.load"(%x, %offset, %count) {pad = 0xFF800000 : f32} : ... -> tensor<4096xf32>
      }
    }

One file an operator in `passes/lowerings/`, each registered there with `lowering`, as those of plugins are.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir
from mlir.dialects import bufferization, func, memref

from jascend.backends.ascend.targets import TARGETS, Target
from jascend.dialect import ASCEND

from .builder import Builder, name_of, named
from .diagnostics import PassFailure, emit_error, emit_exception
from .handles import guarded

# Imported for what they register, see `lowerings.lowering`.
from .lowerings import (  # noqa: F401
    apply_top_k_top_p,
    apply_top_k_top_p_with_sorted,
    filter_sample,
    moe_gating_routing,
    moe_gating_top_k,
    moe_init_routing,
    random_exponential,
    random_key,
    row_wise,
    sort,
    top_k_top_p_sample,
)
from .lowerings.lowering import Lowering, lowering_of
from .lowerings.producers import Producers, Unsupported
from .lowerings.site import CANDIDATES, Candidate, Site
from .registry import is_ours, option, plugin_of, register_pass

KERNEL = "ascend.kernel"
LAUNCH = "ascend.launch"
SUMMARY = "ascend.summary"  # what a kernel does, for the head of its text
FILL = "ascend.fill"  # what the kernel leaves unwritten of each result holds this
SINGLE_BUFFERS = "ascend.single_buffers"  # there is no room for loading ahead



def supported(op_name: str) -> bool:
    """Whether an operator has a lowering to tiles."""
    return lowering_of(op_name) is not None


def taken_from_memory(op: ir.OpView, value: ir.Value) -> bool:
    """Whether an operator's kernel has to find an operand in memory, and cannot compute it from others."""
    lowering = lowering_of(op.operation.name)
    names = () if lowering is None else lowering.from_memory
    taken = [operand for name in names if (operand := getattr(op, name)) is not None]
    return value in taken


def candidates(kernel: ir.Operation) -> tuple[Candidate, ...]:
    """The sizes of tiles to try for a kernel, the best first."""
    ops = kernel.regions[0].blocks[0].operations
    lowering = next((found for op in ops if (found := lowering_of(op.operation.name)) is not None), None)
    return CANDIDATES if lowering is None else lowering.candidates


@register_pass("lower-to-tile")
@dataclass(frozen=True)
class LowerToTile:
    target: str = option("ascend910b", "the product that the kernels are for")
    candidate: int = option(0, "which of the lowering's sizes to take, the best first; its last one where it has fewer")
    tile: int = option(0, "elements of a row handled at a time, a multiple of 1024; 0: those of the candidate")
    parts: int = option(0, "cores that share a row, where an operator can split one; 0: as its lowering sees fit")
    any_rows: int = option(0, "the number that stands for any number of rows; 0: all are as they are")
    most_rows: int = option(0, "how many these are at most; 0: no bound")

    def run(self, module: ir.Operation, remarks) -> None:
        if self.tile < 0 or self.tile % 1024:
            emit_error(module, f"option 'tile' of lower-to-tile must be a positive multiple of 1024, got {self.tile}")
            raise PassFailure
        if self.target not in TARGETS:
            emit_error(
                module, f"option 'target' of lower-to-tile must be one of {', '.join(TARGETS)}, got '{self.target}'"
            )
            raise PassFailure
        body = module.regions[0].blocks[0]
        kernels = [op for op in body.operations if KERNEL in op.operation.attributes]
        failed = False
        for kernel in kernels:
            if _is_lowered(kernel):
                continue
            name = kernel.name.value
            with module.location:
                try:
                    _lower_kernel(kernel, TARGETS[self.target], self, remarks)
                except Unsupported:
                    failed = True
                    continue
                pass_buffers(module, name)
        if failed:
            raise PassFailure


def _is_lowered(kernel: func.FuncOp) -> bool:
    return not kernel.type.results


def global_memory(tensor: ir.Type) -> ir.MemRefType:
    """Where a kernel finds a tensor: global memory, the number of rows known at launch only."""
    tensor = ir.RankedTensorType(tensor)
    shape = list(tensor.shape)
    if shape:
        shape[0] = ir.ShapedType.get_dynamic_size()
    return ir.MemRefType.get(shape, tensor.element_type, memory_space=ir.StringAttr.get("gm"))


def _operator(kernel: func.FuncOp, target: Target) -> ir.OpView:
    """The one operator of a kernel, checked."""
    found = [op for op in kernel.entry_block.operations if op.operation.name.startswith("ascend.")]
    if len(found) != 1 or not supported(found[0].operation.name):
        names = ", ".join(op.operation.name for op in found) or "none"
        emit_error(kernel, f"a kernel holds exactly one operator with a lowering to tiles, this one has: {names}")
        raise Unsupported
    op = found[0]
    returned = list(kernel.entry_block.operations)[-1].operation.operands
    if list(returned) != list(op.operation.results):
        emit_error(op, "a kernel returns the results of its operator, in order, and nothing else")
        raise Unsupported
    refusal = lowering_of(op.operation.name).refusal(op, target)
    if refusal is not None:
        emit_error(op, f"'{op.operation.name}' {refusal}")
        raise Unsupported
    return op


def _results(op: ir.OpView) -> dict[str, ir.Value]:
    """The results that an operator has, by name."""
    names = [result.name for result in ASCEND.by_name[op.operation.name].results]
    return {name: value for name in names if (value := getattr(op, name)) is not None}


def _lower_kernel(kernel: func.FuncOp, target: Target, options: LowerToTile, remarks) -> None:
    op = _operator(kernel, target)
    lowering = lowering_of(op.operation.name)
    sizes = candidates(kernel.operation)
    candidate = sizes[min(options.candidate, len(sizes) - 1)]
    tile = options.tile or candidate.tile
    inputs = list(kernel.entry_block.arguments)
    results = _results(op)
    types = [global_memory(value.type) for value in (*inputs, *results.values())]

    replaced = ("function_type", "arg_attrs", "res_attrs")
    attributes = {name: kernel.attributes[name] for name in kernel.attributes if name not in replaced}
    with ir.InsertionPoint(kernel):
        lowered = func.FuncOp(kernel.name.value, (types, []), loc=op.location)
        for name, attribute in attributes.items():
            lowered.attributes[name] = attribute
        lowered.attributes[SUMMARY] = ir.StringAttr.get(lowering.summary)
        lowered.attributes[FILL] = ir.DenseI64ArrayAttr.get([lowering.fill.get(name, 0) for name in results])
        if not candidate.load_ahead:
            lowered.attributes[SINGLE_BUFFERS] = ir.UnitAttr.get()
        block = lowered.add_entry_block([value.location for value in inputs] + [op.location] * len(results))
        names = [name_of(value) or f"arg{i}" for i, value in enumerate(inputs)]
        for argument, name in zip(block.arguments, [*names, *results]):
            argument.set_location(named(name, argument.location))
        try:
            with ir.InsertionPoint(block):
                b = Builder(op.location)
                producers = Producers(b, block.arguments, tile, candidate.piece)
                outputs = dict(zip(results, list(block.arguments)[len(inputs) :]))
                site = Site(
                    b, producers, outputs, target, tile, candidate,
                    options.parts or None, options.any_rows, options.most_rows,
                )  # fmt: skip
                _build(lowering, op, site)
                func.ReturnOp([], loc=op.location)
        except Unsupported:
            lowered.erase()
            raise
    for remark in site.remarks:
        remarks.add(op, "passed", f"{op.operation.name}: {remark}")
    kernel.erase()


def _build(lowering: Lowering, op: ir.OpView, site: Site) -> None:
    """The body of the kernel. A mistake in a plugin's lowering is the plugin's, not this pass's."""
    try:
        with guarded(lowering.lower, op.context, op):
            lowering.lower(op, site)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # `sys.exit` too
        if is_ours(lowering.file) or isinstance(error, Unsupported):
            raise
        what = f"the lowering of '{op.operation.name}'{plugin_of(lowering.file)} failed"
        emit_exception(op.location, error, what, lowering.file)
        raise Unsupported from error


def pass_buffers(module: ir.Operation, kernel: str) -> None:
    """Makes every call of a lowered kernel pass global memory."""
    calls: list[func.CallOp] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if KERNEL in op.attributes:  # no kernel calls another
            return ir.WalkResult.SKIP
        if op.name == "func.call" and LAUNCH in op.attributes and op.opview.callee.value == kernel:
            calls.append(op.opview)
        return ir.WalkResult.ADVANCE

    module.walk(visit, ir.WalkOrder.PRE_ORDER)
    for call in calls:
        with ir.InsertionPoint(call), call.location:
            buffers = [_buffer(value) for value in call.operands]
            outputs = [memref.alloc(_static_memory(result.type), [], []) for result in call.results]
            arguments = [_dynamic(buffer) for buffer in (*buffers, *outputs)]
            launch = func.CallOp([], kernel, arguments)
            launch.attributes[LAUNCH] = ir.UnitAttr.get()
            for result, output in zip(call.results, outputs):
                result.replace_all_uses_with(bufferization.to_tensor(result.type, output, restrict=True))
            call.erase()


def _static_memory(tensor: ir.Type) -> ir.MemRefType:
    tensor = ir.RankedTensorType(tensor)
    return ir.MemRefType.get(tensor.shape, tensor.element_type, memory_space=ir.StringAttr.get("gm"))


def _buffer(value: ir.Value) -> ir.Value:
    return bufferization.to_buffer(_static_memory(value.type), value, read_only=True)


def _dynamic(buffer: ir.Value) -> ir.Value:
    shape = ir.MemRefType(buffer.type)
    dynamic = list(shape.shape)
    if dynamic:
        dynamic[0] = ir.ShapedType.get_dynamic_size()
    target = ir.MemRefType.get(dynamic, shape.element_type, memory_space=shape.memory_space)
    return buffer if target == shape else memref.cast(target, buffer)
