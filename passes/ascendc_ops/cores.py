"""What one core has to do with the others: its share of the rows, scratch memory, meetings."""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith

from jascend.dialect.ascendc import constant_index, element_bytes

from ..builder import name_of
from ..lowerings.site import ROWS_OF
from .lowering import Lowering, lowers

PARTS = "ascend.parts"  # how many cores work on the same rows
ALL_CORES = "ascend.all_cores"  # a launch takes all cores, however few rows there are
WORKSPACE = "ascend.workspace"  # bytes of scratch: of a launch, and for each core, and for each row


@lowers("tile.block_rows")
def block_rows(low: Lowering, op: ir.Operation) -> None:
    """Rows are dealt out evenly to groups of cores; the first groups take one of the rest each.

    The shares of the launch's own rows come with the tiling data; those of any other number are divided here."""
    b = low.b
    parts = op.opview.parts or 1
    core = low.fact("BlockIdx", "core")
    group, part = core, b.index(0)
    if parts > 1:
        group = b.op(arith.divsi, core, b.index(parts), name="group")
        part = b.op(arith.remsi, core, b.index(parts), name="part")
    if _is_launch(op, low, parts):
        share = _tiling(low, "rows_per_core" if parts == 1 else "rows_per_group")
        rest = _tiling(low, "extra_rows")
    else:
        groups = low.fact("BlockNum", "cores")
        if parts > 1:
            groups = b.op(arith.divsi, groups, b.index(parts), name="groups")
        share = b.op(arith.divsi, op.operands[0], groups, name="share")
        rest = b.op(arith.remsi, op.operands[0], groups, name="rest")
    before = b.op(arith.minsi, group, rest)
    first = b.op(arith.addi, b.op(arith.muli, group, share), before, name="first_row")
    extra = b.select(b.cmpi("slt", group, rest), b.index(1), b.index(0))
    last = b.op(arith.addi, b.op(arith.addi, first, share), extra, name="end_row")
    results = [first, last, part]
    if any(True for _ in op.results[3].uses):
        one_more = b.select(b.cmpi("sgt", rest, b.index(0)), b.index(1), b.index(0))
        results.append(b.op(arith.addi, share, one_more, name="rounds"))
    for old, new in zip(op.results, results):
        old.replace_all_uses_with(new)


def _is_launch(op: ir.Operation, low: Lowering, parts: int) -> bool:
    """Whether these are the rows, and the groups, that the launch is made for."""
    attributes = low.kernel.attributes
    if PARTS not in attributes:
        attributes[PARTS] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), parts)
    if _is_rows(op.operands[0], low.kernel) and attributes[PARTS].value == parts:
        return True
    attributes[ALL_CORES] = ir.UnitAttr.get()
    return False


def _is_rows(value: ir.Value, kernel: ir.Operation) -> bool:
    """Whether a value is the leading dimension of the argument whose rows are dealt out."""
    if isinstance(value.owner, ir.Block):
        return value.owner == kernel.regions[0].blocks[0]  # rows passed as such
    if value.owner.name != "memref.dim" or constant_index(value.owner.operands[1]) != 0:
        return False
    memory = value.owner.operands[0]
    return ROWS_OF not in kernel.attributes or memory.arg_number == kernel.attributes[ROWS_OF].value


def _tiling(low: Lowering, field: str) -> ir.Value:
    return low.fact("Tiling", field, field=field)


@lowers("memref.dim")
def rows(low: Lowering, op: ir.Operation) -> None:
    """The number of rows comes with the tiling data, where anything but `block_rows` uses it."""
    value = op.results[0]
    users = {use.owner.name for use in value.uses} - {"tile.block_rows"}
    if not users:
        return
    if not _is_rows(value, low.kernel):
        low.refuse(op, "only the rows that a launch deals out are known to its kernel, not other dynamic dimensions")
    field = _tiling(low, "rows")
    for use in list(value.uses):
        if use.owner.name != "tile.block_rows":
            use.owner.operands[use.operand_number] = field


@lowers("tile.core")
def core(low: Lowering, op: ir.Operation) -> None:
    low.kernel.attributes[ALL_CORES] = ir.UnitAttr.get()
    for result, name, called in zip(op.results, ("BlockIdx", "BlockNum"), ("core", "cores")):
        if any(True for _ in result.uses):
            result.replace_all_uses_with(low.fact(name, name_of(result) or called))


# -- workspace --------------------------------------------------------------------------------------------------------


@dataclass
class Scratch:
    """Bytes of scratch memory: some for the launch, some for each core, some for each row."""

    launch: int = 0
    core: int = 0
    row: int = 0

    def add(self, per: str, bytes_: int) -> None:
        setattr(self, per, getattr(self, per) + bytes_)


def _place_workspaces(low: Lowering) -> None:
    """Gives every workspace its place: first those of the launch, then those of cores, then those of rows."""
    found: dict[str, list[ir.Operation]] = {"launch": [], "core": [], "row": []}

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "tile.workspace":
            found[op.opview.per].append(op.operation)
        return ir.WalkResult.ADVANCE

    low.kernel.walk(visit)
    total = Scratch()
    for per, ops in found.items():
        for op in ops:
            low.places[op] = Scratch(total.launch, total.core, total.row)
            memory = ir.MemRefType(op.results[0].type)
            total.add(per, op.opview.elements * element_bytes(memory.element_type))
    low.kernel.attributes[WORKSPACE] = ir.DenseI64ArrayAttr.get([total.launch, total.core, total.row])


@lowers("tile.workspace")
def workspace(low: Lowering, op: ir.Operation) -> None:
    if op not in low.places:
        _place_workspaces(low)
    b, place = low.b, low.places[op]
    offset = b.index(place.launch) if place.launch or not (place.core or place.row) else None
    for bytes_, count in ((place.core, "cores"), (place.row, "rows")):
        if not bytes_:
            continue
        if count == "cores":
            number = low.fact("BlockNum", "cores")
        else:
            number = _tiling(low, "rows")
        part = b.op(arith.muli, number, b.index(bytes_))
        offset = part if offset is None else b.op(arith.addi, offset, part)
    memory = low.emit("Workspace", offset, results=[op.results[0].type], name_hint=op.opview.name)
    op.results[0].replace_all_uses_with(memory.memory)


@lowers("tile.sync_all")
def sync_all(low: Lowering, op: ir.Operation) -> None:
    low.emit("SyncAll")
