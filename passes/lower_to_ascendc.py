"""Lowers kernels from tiles to the Ascend C API: every tile becomes a named buffer, every op one or a few API calls.

A splat that only feeds operations with a scalar form (`Adds`, `CompareScalar`, `Select` against a scalar) never becomes
a buffer. Unordered comparisons, which the API lacks, are the ordered opposite with its mask inverted. A group reduction
is a fixed tree: eight to one by 32-byte blocks until at most 64 elements a group are left, then one reduction a group.
A load whose tile is not filled to the end gets its padding first, by a fill under a condition.

Before:

    %e = math.exp %x : tensor<4096xf32>
    %s = "tile.reduce"(%e) {kind = "add", group = 4096 : i64} : (tensor<4096xf32>) -> tensor<1xf32>
    %v = "tile.extract"(%s, %c0) : (tensor<1xf32>, index) -> f32

After:

    %e = "ascendc.local_tensor"() {name_hint = "weights"} : () -> memref<4096xf32, "ub">
    "ascendc.exp"(%e, %x) : (memref<4096xf32, "ub">, memref<4096xf32, "ub">) -> ()
    ... "ascendc.block_reduce_sum" twice, "ascendc.whole_reduce_sum" ...
    %v = "ascendc.get_value"(%s, %c0) : (memref<1xf32, "ub">, index) -> f32

Scalars and control flow stay as they are. Buffers have no address yet (`allocate-ub`), and nothing orders the pipes
(`insert-sync`).
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith

from jascend.dialect import ASCENDC

from .builder import COMMENT, Builder, name_of
from .diagnostics import PassFailure, emit_error
from .lower_to_tile import KERNEL
from .registry import register_pass

_BLOCK = 32  # bytes
_LANES = 64  # float32 elements in one repeat

_COMPARE = {
    "OEQ": ("EQ", False), "OGT": ("GT", False), "OGE": ("GE", False), "OLT": ("LT", False), "OLE": ("LE", False),
    "UNE": ("NE", False), "UGT": ("LE", True), "UGE": ("LT", True), "ULT": ("GE", True), "ULE": ("GT", True),
}  # fmt: skip
_BINARY = {
    "arith.addf": "Add", "arith.subf": "Sub", "arith.mulf": "Mul", "arith.divf": "Div",
    "arith.maximumf": "Max", "arith.minimumf": "Min",
    "arith.addi": "Add", "arith.subi": "Sub", "arith.muli": "Mul", "arith.maxsi": "Max", "arith.minsi": "Min",
}  # fmt: skip
_WITH_SCALAR = {"Add": "Adds", "Mul": "Muls", "Max": "Maxs", "Min": "Mins"}
_UNARY = {"math.exp": "Exp", "math.log": "Ln", "math.sqrt": "Sqrt", "math.absf": "Abs"}
_CASTS = {"arith.extf": "CAST_NONE", "arith.truncf": "CAST_RINT", "arith.sitofp": "CAST_RINT"}


class Unsupported(Exception):
    """An op has no counterpart; the diagnostic has been emitted."""


@register_pass("lower-to-ascendc")
@dataclass(frozen=True)
class LowerToAscendc:
    def run(self, module: ir.Operation, remarks) -> None:
        failed = False
        for op in module.regions[0].blocks[0].operations:
            if KERNEL not in op.operation.attributes:
                continue
            with module.location:
                try:
                    _Lowering().function(op)
                except Unsupported:
                    failed = True
        if failed:
            raise PassFailure


def _is_tile(value: ir.Value) -> bool:
    return isinstance(value.type, ir.RankedTensorType)


class _Lowering:
    """One kernel: which buffer or scalar stands for which tile."""

    def __init__(self):
        self.buffers: dict[ir.Value, ir.Value] = {}
        self.splats: dict[ir.Value, ir.Value] = {}

    def function(self, kernel: ir.OpView) -> None:
        self.block(kernel.regions[0].blocks[0])

    def block(self, block: ir.Block) -> None:
        """Lowers the ops of a block in order, then removes what has become dead."""
        ops = [op.operation for op in block.operations]
        for op in ops:
            with ir.InsertionPoint(op):
                self.operation(op)
        for op in reversed(ops):
            if self.is_replaced(op):
                op.erase()

    def is_replaced(self, op: ir.Operation) -> bool:
        dead_size = op.name == "memref.dim" and not any(True for _ in op.results[0].uses)
        return dead_size or op.name.startswith("tile.") or any(map(_is_tile, op.results))

    def operation(self, op: ir.Operation) -> None:
        if any(len(region.blocks) for region in op.regions):
            if any(map(_is_tile, op.results)):
                emit_error(op, f"'{op.name}' carries a tile from one iteration or branch on; only scalars can be")
                raise Unsupported
            for region in op.regions:
                for block in region.blocks:
                    self.block(block)
            return
        if op.name.startswith("tile.") or any(map(_is_tile, op.results)):
            self.b = Builder(op.location)
            self.made: list[ir.Operation] = []
            handler = getattr(self, "_" + op.name.replace(".", "_"), None) or self.elementwise
            handler(op)
            if COMMENT in op.attributes:
                first = self.made[0] if self.made else op
                first.attributes[COMMENT] = op.attributes[COMMENT]

    # -- building blocks ----------------------------------------------------------------------------------------

    def emit(self, name: str, *operands, results=(), **attributes) -> ir.OpView:
        op = self.b.build(ASCENDC.classes[name], *operands, results=results, **attributes)
        self.made.append(op.operation)
        return op

    def buffer(self, length: int, element: ir.Type, hint: str) -> ir.Value:
        memory = ir.MemRefType.get([length], element, memory_space=ir.StringAttr.get("ub"))
        return self.emit("LocalTensor", results=[memory], name_hint=hint).buffer

    def result(self, op: ir.Operation, hint: str | None = None) -> ir.Value:
        """The buffer of an op's tile. A mask is packed, one bit an element."""
        value = op.results[0]
        shape = ir.RankedTensorType(value.type)
        length, element = shape.get_dim_size(0), shape.element_type
        hint = hint or name_of(value) or op.name.partition(".")[2]
        if str(element) == "i1":
            length, element = length // 8, ir.IntegerType.get_unsigned(8)
        self.buffers[value] = self.buffer(length, element, hint)
        return self.buffers[value]

    def of(self, value: ir.Value) -> ir.Value:
        return self.buffers[value]

    # -- splats -------------------------------------------------------------------------------------------------

    def _tensor_splat(self, op: ir.Operation) -> None:
        value = op.results[0]
        self.splats[value] = op.operands[0]
        if any(not _takes_scalar(use.owner, use.operand_number) for use in value.uses):
            self.emit("Duplicate", self.result(op, name_of(value) or _constant_name(op.operands[0])), op.operands[0])

    # -- memory -------------------------------------------------------------------------------------------------

    def _tile_load(self, op: ir.Operation) -> None:
        load = op.opview
        shape = ir.RankedTensorType(load.value.type)
        length, element = shape.get_dim_size(0), shape.element_type
        width = 2 if str(element) in ("bf16", "f16") else 4
        dst = self.result(op)
        full = _constant_index(load.count) == length
        pad = load.pad
        if pad is not None and not full and length * width > _BLOCK:
            self.fill_if_short(dst, load.count, length, element, pad)
        padding = None if full or pad is None else ir.FloatAttr.get(self.b.f32_type, pad)
        self.emit("CopyIn", dst, load.source, load.offset, load.count, pad=padding)

    def fill_if_short(self, dst: ir.Value, count: ir.Value, length: int, element: ir.Type, pad: float) -> None:
        short = self.b.cmpi("slt", count, self.b.index(length))
        attribute = (
            ir.FloatAttr.get(element, pad) if isinstance(element, ir.FloatType) else ir.IntegerAttr.get(element, int(pad))
        )

        def fill():
            self.emit("Duplicate", dst, arith.constant(element, attribute, loc=self.b.loc()))
            return []

        self.b.if_(short, [], fill, about="Padding, for the lanes that the copy leaves alone.")

    def _tile_store(self, op: ir.Operation) -> None:
        store = op.opview
        self.emit("CopyOut", store.target, self.of(store.value), store.offset, store.count)

    def _tile_block_rows(self, op: ir.Operation) -> None:
        """Rows are dealt out evenly; the first cores take one of the rest each."""
        b = self.b
        index = [b.index_type]
        core = b.build(ASCENDC.classes["BlockIdx"], results=index, name="core").value
        share = b.build(ASCENDC.classes["Tiling"], results=index, field="rows_per_core", name="rows_per_core").value
        rest = b.build(ASCENDC.classes["Tiling"], results=index, field="extra_rows", name="extra_rows").value
        before = b.op(arith.minsi, core, rest)
        first = b.op(arith.addi, b.op(arith.muli, core, share), before, name="first_row")
        extra = b.select(b.cmpi("slt", core, rest), b.index(1), b.index(0))
        last = b.op(arith.addi, b.op(arith.addi, first, share), extra, name="end_row")
        op.results[0].replace_all_uses_with(first)
        op.results[1].replace_all_uses_with(last)

    # -- vector ops ---------------------------------------------------------------------------------------------

    def _tile_iota(self, op: ir.Operation) -> None:
        self.emit("CreateVecIndex", self.result(op))

    def _tile_reduce(self, op: ir.Operation) -> None:
        reduce = op.opview
        kind = {"add": "Sum", "max": "Max"}[reduce.kind]
        hint = {"Sum": "partial_sums", "Max": "partial_maxima"}[kind]
        current, group = self.of(reduce.x), reduce.group
        length = ir.RankedTensorType(reduce.x.type).get_dim_size(0)
        groups = length // group
        while group > _LANES:
            if group % 8 or length % _LANES:
                emit_error(op, f"a reduction of groups of {reduce.group} is no tree of eights down to {_LANES}")
                raise Unsupported
            partial = self.buffer(length // 8, self.b.f32_type, hint)
            self.emit(f"BlockReduce{kind}", partial, current, repeat=length // _LANES)
            current, length, group = partial, length // 8, group // 8
        result = self.result(op)
        self.emit(
            f"WholeReduce{kind}", result, current, mask=group, repeat=groups, src_rep_stride=max(1, group * 4 // _BLOCK)
        )

    def _tile_extract(self, op: ir.Operation) -> None:
        scalar = self.emit("GetValue", self.of(op.operands[0]), op.operands[1], results=[op.results[0].type])
        scalar.operation.location = op.location
        op.results[0].replace_all_uses_with(scalar.scalar)

    def _tile_compress(self, op: ir.Operation) -> None:
        x, mask = op.operands
        index = [self.b.index_type]
        packed = self.emit("GatherMask", self.result(op), self.of(x), self.of(mask), results=index)
        op.results[1].replace_all_uses_with(packed.kept)

    def elementwise(self, op: ir.Operation) -> None:
        if op.name in _BINARY:
            self.binary(op, _BINARY[op.name])
        elif op.name in _UNARY:
            self.emit(_UNARY[op.name], self.result(op), self.of(op.operands[0]))
        elif op.name == "arith.negf":
            self.emit("Muls", self.result(op), self.of(op.operands[0]), self.b.f32(-1.0))
        elif op.name in _CASTS:
            self.emit("Cast", self.result(op), self.of(op.operands[0]), round_mode=_CASTS[op.name])
        elif op.name == "arith.cmpf":
            self.compare(op)
        elif op.name == "arith.select":
            self.select(op)
        else:
            emit_error(op, f"'{op.name}' on tiles has no counterpart in the Ascend C API")
            raise Unsupported

    def binary(self, op: ir.Operation, api: str) -> None:
        a, b = op.operands
        if a in self.splats and b not in self.splats and api in _WITH_SCALAR:
            a, b = b, a  # these commute
        if b not in self.splats or (api not in _WITH_SCALAR and api != "Sub") or str(_element(b)) not in ("f32", "i32"):
            self.emit(api, self.result(op), self.of(a), self.of(b))
            return
        scalar = self.splats[b]
        if api == "Sub":
            api, scalar = "Add", self.b.op(arith.negf, scalar)
        self.emit(_WITH_SCALAR[api], self.result(op), self.of(a), scalar)

    def compare(self, op: ir.Operation) -> None:
        a, b = op.operands
        predicate = arith.CmpFPredicate(op.attributes["predicate"].value).name
        if predicate not in _COMPARE:
            emit_error(op, f"comparison '{predicate.lower()}' on tiles has no counterpart in the Ascend C API")
            raise Unsupported
        mode, inverted = _COMPARE[predicate]
        dst = self.result(op)
        raw = self.buffer(ir.MemRefType(dst.type).get_dim_size(0), _element(dst), "opposite") if inverted else dst
        if b in self.splats:
            self.emit("CompareScalar", raw, self.of(a), self.splats[b], mode=mode)
        else:
            self.emit("Compare", raw, self.of(a), self.of(b), mode=mode)
        if inverted:
            self.emit("BitwiseNot", dst, raw)

    def select(self, op: ir.Operation) -> None:
        mask, a, b = op.operands
        if b in self.splats:
            self.emit("SelectScalar", self.result(op), self.of(mask), self.of(a), self.splats[b])
        else:
            self.emit("Select", self.result(op), self.of(mask), self.of(a), self.of(b))


def _element(value: ir.Value) -> ir.Type:
    return ir.ShapedType(value.type).element_type


def _constant_index(value: ir.Value) -> int | None:
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "arith.constant":
        return None
    return owner.attributes["value"].value


def _constant_name(scalar: ir.Value) -> str:
    owner = scalar.owner
    if not isinstance(owner, ir.Block) and owner.name == "arith.constant":
        value = owner.attributes["value"].value
        return {0.0: "zeros", 1.0: "ones", float("-inf"): "neg_infs"}.get(value, "constants")
    return name_of(scalar) or "constants"


def _takes_scalar(user: ir.Operation, position: int) -> bool:
    """Whether an op has a form that takes this operand as a scalar. The other operand must be a tile of its own."""
    user = user.operation
    operands = list(user.operands)

    def is_splat(value: ir.Value) -> bool:
        return not isinstance(value.owner, ir.Block) and value.owner.name == "tensor.splat"

    if user.name == "arith.select":
        return position == 2
    if user.name == "arith.cmpf":
        return position == 1
    api = _BINARY.get(user.name)
    if api == "Sub" and user.name == "arith.subf":
        return position == 1
    if api in _WITH_SCALAR:
        return position == 1 or not is_splat(operands[1])
    return False
