"""What the lowerings of single ops share: the registry, and the state of one kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from mlir import ir

from jascend.backends.ascend.targets import Target
from jascend.dialect import ASCENDC
from jascend.dialect.elements import type_name

from ..builder import COMMENT, PART, PART_END, STAGE, STAGE_END, Builder, Stage, mark_part, name_at
from ..diagnostics import emit_error
from . import carried, turns


class Unsupported(Exception):
    """An op has no counterpart; the diagnostic has been emitted."""


LOWERINGS: dict[str, Callable[[Lowering, ir.Operation], None]] = {}


def lowers(*names: str) -> Callable:
    """Registers a function of (lowering, op) that writes an op on tiles as ops of `ascendc`."""

    def register(function: Callable) -> Callable:
        LOWERINGS.update(dict.fromkeys(names, function))
        return function

    return register


# Ops that take many instructions, and what the function is called that has them.
_PARTS = {
    "tile.sort": Stage("SortPairs", "Scores in descending order, each with its index."),
    "tile.cumsum": Stage("SumUp", "Running sums."),
    "tile.iota": Stage("FillRamp", "0, 1, 2, ..."),
    "tile.find_first": Stage("FindFirst", "The first lane under a mask; where there is none, how many lanes there are."),
}


class Lowering:
    """One kernel: which buffer or scalar stands for which tile.

    `b` builds at the op that is being lowered, under its location.
    """

    def __init__(self, target: Target):
        self.target = target
        self.made: list[ir.Operation] = []
        self.buffers: dict[ir.Value, ir.Value] = {}
        self.splats: dict[ir.Value, ir.Value] = {}
        self.halves: dict[ir.Value, ir.Value] = {}  # for a tile that is loaded ahead, the buffer of two of them
        self.blocks: dict[ir.Value, ir.Value] = {}  # for a broadcast, a 32-byte block for each element
        self.bodies: dict[ir.Value, ir.Block] = {}  # for a tile that a loop carries, its body
        self.inserted: set[ir.Value] = set()  # tiles that are made in their place in another one
        self.ramps: dict[tuple[ir.Block, int], ir.Value] = {}  # of i32, the first one of a length in a block
        self.places: dict[ir.Operation, object] = {}  # of the workspaces
        self.types: dict[tuple[int, ir.Type], ir.Type] = {}  # of buffers, by length and element
        self.facts: dict[tuple[str, ...], ir.Value] = {}  # of the launch, in the order in which the kernel reads them

    def function(self, kernel: ir.OpView) -> None:
        self.kernel, self.b = kernel.operation, Builder(kernel.location)
        self.ops(operations_of(kernel.regions[0].blocks[0]))

    def ops(self, ops: Iterable[ir.Operation], finish: Callable[[], None] | None = None) -> None:
        """Lowers the ops of a block in order, finishes, then removes what has become dead."""
        lowered: list[ir.Operation] = []
        for op in ops:
            if len(op.regions):
                with ir.InsertionPoint(op):
                    lowered += self.control(op)
            elif op.name.startswith(("tile.", "memref.dim")) or any(map(is_tile, op.results)):
                with ir.InsertionPoint(op):
                    self.operation(op)
                lowered.append(op)
        if finish is not None:
            finish()
        for op in reversed(lowered):
            if op.name != "memref.dim" or next(iter(op.results[0].uses), None) is None:
                op.erase()

    def control(self, op: ir.Operation) -> list[ir.Operation]:
        """Lowers a loop or branch; returns what is left of it if its results have tiles, for the caller to erase."""
        has_tiles = any(map(is_tile, op.results))
        left = [op] if has_tiles else []
        ahead = turns.loaded_ahead(op) if has_tiles else []
        if ahead:
            op = turns.take_turns(self, op, ahead)
            left += [op] if any(map(is_tile, op.results)) else []
        carried.lower(self, op)
        return left

    def operation(self, op: ir.Operation) -> None:
        self.b.location = op.location
        self.made = []
        lowering = LOWERINGS.get(op.name)
        if lowering is None:
            self.refuse(op, f"'{op.name}' on tiles has no counterpart in the Ascend C API")
        lowering(self, op)
        if not self.made:
            return
        shown = [made for made in self.made if made.name != "ascendc.local_tensor"]
        attributes = op.attributes
        if op.name in _PARTS and PART not in attributes and PART_END not in attributes and len(shown) > 2:
            mark_part(shown[0], shown[-1], _PARTS[op.name])
        for name in (COMMENT, STAGE, PART) if shown else ():
            if name in attributes:
                shown[0].attributes[name] = attributes[name]
        for name in (PART_END, STAGE_END):
            if name in attributes:
                self.made[-1].attributes[name] = attributes[name]

    # -- building blocks ----------------------------------------------------------------------------------------

    def refuse(self, op: ir.Operation, message: str) -> None:
        """Ends the lowering of the kernel with a diagnostic at `op`."""
        emit_error(op, message)
        raise Unsupported

    def emit(self, name: str, *operands, results=(), **attributes) -> ir.OpView:
        """An op of `ascendc` by its class name."""
        op = ASCENDC.classes[name].build(*operands, results=results, loc=self.b.loc(), **attributes)
        self.made.append(op.operation)
        return op

    def fact(self, name: str, result: str, **attributes: str) -> ir.Value:
        """What an op of `ascendc` says of the launch: read once, at the kernel's start."""
        key = (name, *attributes.values())
        if key not in self.facts:
            entry = self.kernel.regions[0].blocks[0]
            last = next(reversed(self.facts.values()), None)
            with ir.InsertionPoint.at_block_begin(entry) if last is None else ir.InsertionPoint.after(last.owner):
                cls = ASCENDC.classes[name]
                self.facts[key] = self.b.build(cls, results=[self.b.index_type], name=result, **attributes).value
        return self.facts[key]

    def buffer(self, length: int, element: ir.Type, hint: str) -> ir.Value:
        """A new buffer."""
        return self.emit("LocalTensor", results=[self.type_of(length, element)], name_hint=hint).buffer

    def type_of(self, length: int, element: ir.Type) -> ir.Type:
        """The type of a buffer."""
        known = self.types.get((length, element))
        if known is None:
            known = ir.MemRefType.get([length], element, memory_space=ir.StringAttr.get("ub"))
            self.types[length, element] = known
        return known

    def view(self, buffer: ir.Value, offset: int | ir.Value, length: int, element: ir.Type | None = None) -> ir.Value:
        """A part of a buffer, or its bytes as elements of another type; `offset` counts those of `buffer`."""
        whole = buffer.type
        memory = self.type_of(length, element or whole.element_type)
        if memory == whole and isinstance(offset, int) and offset == 0:
            return buffer
        start = self.b.index(offset) if isinstance(offset, int) else offset
        return self.b.build(ASCENDC.classes["View"], buffer, start, results=[memory]).value

    def result(self, op: ir.Operation, hint: str | None = None, number: int = 0) -> ir.Value:
        """The buffer of an op's tile. A mask is packed, one bit an element."""
        value = op.results[number]
        if value in self.buffers:  # of a tile that is loaded ahead, or goes straight to where it is carried
            return self.buffers[value]
        place = carried.place_in_slice(self, op, value)
        if place is not None:
            self.buffers[value] = place
            return place
        length, element = storage(value)
        hint = hint or name_at(op.location) or op.name.partition(".")[2]
        if turns.is_loaded_ahead(op, value):
            self.halves[value] = self.buffer(2 * length, element, hint)
            self.buffers[value] = self.view(self.halves[value], 0, length)
            return self.buffers[value]
        self.buffers[value] = self.buffer(length, element, hint)
        return self.buffers[value]

    def like(self, tile: ir.Value, hint: str) -> ir.Value:
        """A new buffer that a tile fits."""
        return self.buffer(*storage(tile), hint)

    def copy_of(self, buffer: ir.Value) -> ir.Value:
        """A new buffer with what is in this one."""
        copy = self.buffer(length_of(buffer), element_of(buffer), "kept_aside")
        self.emit("Copy", copy, buffer)
        return copy

    def of(self, value: ir.Value) -> ir.Value:
        """The buffer of a tile that an op reads."""
        return self.buffers[value]


def storage(tile: ir.Value) -> tuple[int, ir.Type]:
    """Elements of the buffer of a tile, and their type. A mask is packed, one bit an element."""
    type_ = tile.type
    length, element = type_.get_dim_size(0), type_.element_type
    if type_name(element) == "i1":
        return length // 8, ir.IntegerType.get_unsigned(8)
    return length, element


def operations_of(block: ir.Block) -> list[ir.Operation]:
    """As they are now: what is lowered changes the block."""
    return [op.operation for op in block.operations]


def is_tile(value: ir.Value) -> bool:
    return isinstance(value.type, ir.RankedTensorType)


def element_of(value: ir.Value) -> ir.Type:
    """Element type of a tile or buffer."""
    return value.type.element_type


def length_of(value: ir.Value) -> int:
    """Elements of a tile or buffer."""
    return value.type.get_dim_size(0)
