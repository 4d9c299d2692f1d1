"""What the instructions of a kernel touch: bytes of the unified buffer, or global memory.

A buffer operand is a chain of views (`ascendc.view`, each at an offset) down to an `ascendc.local_tensor` or to global
memory. A constant offset gives a sub-range, an unknown one all of the viewed buffer; an op that declares how many bytes
it touches narrows the range further.

Double buffering uses one buffer of two halves that take turns: the offset is `slot * length`, where `slot` is carried
by a loop and is 1 minus itself in the next iteration. In one iteration the halves `slot` and `1 - slot` are apart; from
one iteration to the next they change places. `Access.turn` says which half an access means.
"""

from __future__ import annotations

from typing import NamedTuple

from mlir import ir
from mlir.dialects import arith

from jascend.dialect import ASCENDC
from jascend.dialect.ascendc import constant_index, element_bits

VIEW = "ascendc.view"
_SLT = int(arith.CmpIPredicate.slt)


class Turn(NamedTuple):
    """The half of a buffer that an iteration of a loop uses: 0 for the carried slot, 1 for the other one."""

    loop: ir.Operation
    half: int
    first: int  # the slot of the first iteration
    bytes: int  # of one half


class Access(NamedTuple):
    """Bytes that an instruction touches, counted from the start of `root`; global memory counts as one byte."""

    root: ir.Value
    start: int
    end: int
    writes: bool
    turn: Turn | None = None  # then start and end are those in the first half
    known: bool = True  # otherwise the bytes are somewhere between start and end
    operand: str = ""
    pieces: tuple[tuple[int, int], ...] = ()  # of a strided op, what it touches between start and end, from start on
    in_global_memory: bool = False
    address: int | None = None  # of `root` in the unified buffer, once it has one

    @property
    def span(self) -> tuple[int, int]:
        """The bytes over all turns."""
        return self.start, self.end + (self.turn.bytes if self.turn else 0)

    @property
    def ranges(self) -> list[tuple[int, int]]:
        """The same, without the gaps of a strided op."""
        if self.turn or not self.known or not self.pieces:
            return [self.span]
        return [(self.start + start, self.start + end) for start, end in self.pieces]


class Place(NamedTuple):
    """Where a buffer lies, in the terms of `Access`."""

    root: ir.Value
    start: int
    end: int
    turn: Turn | None = None
    known: bool = True
    in_global_memory: bool = False
    address: int | None = None


class Sizes(dict[ir.Type, tuple[int, int]]):
    """The bytes of buffers and the bits of their elements, by type: of very many buffers few types are different."""

    def __missing__(self, type_: ir.Type) -> tuple[int, int]:
        bits = element_bits(type_.element_type)
        found = self[type_] = type_.get_dim_size(0) * bits // 8, bits
        return found


class Accesses:
    """What the ops of a kernel touch. Where a buffer lies is looked up once, for all that touch it."""

    def __init__(self):
        self._places: dict[ir.Value, Place] = {}
        self._sizes = Sizes()
        self._offsets: dict[ir.Value, int | None] = {}  # of views, where they are constant
        self._turns: dict[tuple[ir.Value, int, int], Turn | None] = {}  # of views at an offset of buffers of one size

    def of(self, op: ir.OpView) -> list[Access]:
        """What an op of `ascendc` touches, operand by operand."""
        found = []
        for operand, value in op.definition.given(op.operation):
            if not operand.role:
                continue
            root, start, end, turn, known, in_global_memory, address = self.place(value)
            pieces = operand.touched(op) if operand.touched and known and not in_global_memory else ()
            if pieces:
                end = start + pieces[-1][1]
            shown = tuple(pieces) if len(pieces) > 1 else ()
            writes = operand.role != "in"
            found.append(Access(root, start, end, writes, turn, known, operand.name, shown, in_global_memory, address))
            if operand.role == "inout":
                found.append(found[-1]._replace(writes=False))
        return found

    def place(self, value: ir.Value) -> Place:
        """Where a buffer, or what a view is of, lies."""
        place = self._places.get(value)
        if place is None:
            place = self._places[value] = self._look_up(value)
        return place

    def _look_up(self, value: ir.Value) -> Place:
        owner = value.owner
        name = "" if isinstance(owner, ir.Block) else owner.name
        if name == "memref.cast":
            return self.place(owner.operands[0])
        if name == "ascendc.local_tensor":
            return Place(value, 0, self._sizes[value.type][0], address=owner.offset)
        if name != VIEW:
            return Place(value, 0, 1, in_global_memory=True)
        operands = owner.operands
        buffer, at = operands[0], operands[1]
        viewed = self.place(buffer)
        if viewed.in_global_memory or not viewed.known:
            return viewed
        size, (viewed_size, bits) = self._sizes[value.type][0], self._sizes[buffer.type]
        offset = self._offset(at)
        if offset is not None:
            start = viewed.start + offset * bits // 8
            return viewed._replace(start=start, end=start + size)
        key = at, viewed_size, bits
        if key not in self._turns:
            self._turns[key] = _turn(*key)
        turn = self._turns[key]
        if turn is None:  # anywhere in what it is a view of
            return viewed._replace(known=False)
        if viewed.turn is not None:
            return viewed._replace(end=viewed.end + viewed.turn.bytes, turn=None, known=False)
        return viewed._replace(end=viewed.start + size, turn=turn)

    def _offset(self, value: ir.Value) -> int | None:
        if value not in self._offsets:
            self._offsets[value] = constant_index(value)
        return self._offsets[value]


def may_coincide(op: ir.Operation, operand: str) -> bool:
    """Whether the buffer that an op writes may be, exactly, that of an operand:
    each repeat writes what it alone reads."""
    definition = ASCENDC.by_name[op.name]
    if operand not in definition.in_place:
        return False
    if "strides" not in op.attributes:
        return True
    strides = op.opview.strides
    half, position = len(strides) // 2, [o.name for o in definition.operands].index(operand)
    return (strides[0], strides[half]) == (strides[position], strides[half + position])


def root_of(value: ir.Value) -> ir.Value:
    """The buffer or global memory that a value is a view of."""
    while not isinstance(owner := value.owner, ir.Block) and owner.name in (VIEW, "memref.cast"):
        value = owner.operands[0]
    return value


def _turn(offset: ir.Value, size: int, bits: int) -> Turn | None:
    """The turn of a view at `slot * length`, where the viewed buffer, of `size` bytes, has two times `length`
    elements."""
    owner = offset.owner
    if isinstance(owner, ir.Block) or owner.name != "arith.muli":
        return None
    slot, length = owner.operands
    elements = constant_index(length)
    if elements is None or elements * 2 * bits // 8 != size:
        return None
    found = _slot(slot)
    return found and Turn(*found, elements * bits // 8)


def _slot(value: ir.Value) -> tuple[ir.Operation, int, int] | None:
    """The loop whose iterations alternate an index between 0 and 1, whether this is the carried one or its opposite,
    and what it is at first."""
    opposite = _one_minus(value)
    if opposite is not None:
        found = _slot(opposite)
        return found and (found[0], 1 - found[1], found[2])
    block = value.owner
    if not isinstance(block, ir.Block) or value.arg_number == 0 or block.owner.operation.name != "scf.for":
        return None
    loop = block.owner.operation
    yielded = block.operations[len(block.operations) - 1].operation.operands[value.arg_number - 1]
    first = constant_index(loop.operands[2 + value.arg_number])
    before = _one_minus(yielded)
    return (loop, 0, first) if first in (0, 1) and before is not None and before == value else None


def _one_minus(value: ir.Value) -> ir.Value | None:
    """x, where the value is 1 - x."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "arith.subi" or constant_index(owner.operands[0]) != 1:
        return None
    return owner.operands[1]


def copies_nothing_at_last(op: ir.Operation, loop: ir.Operation) -> bool:
    """Whether a copy's count is `select(i + step < end, count, 0)`: nothing in the last iteration of the loop."""
    a, b = _copies_if_less(op) or (None, None)
    if a is None or isinstance(a.owner, ir.Block) or a.owner.name != "arith.addi":
        return False
    induction, step = a.owner.operands
    of_loop = induction == loop.regions[0].blocks[0].arguments[0]
    return of_loop and is_same(step, loop.operands[2]) and is_same(b, loop.operands[1])


def copies_nothing_without(op: ir.Operation, loop: ir.Operation) -> bool:
    """Whether the count of a copy in the block of a loop is `select(first < end, count, 0)`: nothing where the loop has
    no iteration."""
    compared = _copies_if_less(op) if op.block == loop.block else None
    return compared is not None and all(map(is_same, compared, list(loop.operands)[:2]))


def _copies_if_less(op: ir.Operation) -> tuple[ir.Value, ir.Value] | None:
    """a and b where the count of a copy into the unified buffer is `select(a < b, count, 0)`."""
    if op.name not in ("ascendc.copy_in", "ascendc.copy_in_rows"):
        return None
    count = op.operands[len(op.operands) - 1].owner
    if isinstance(count, ir.Block) or count.name != "arith.select" or constant_index(count.operands[2]) != 0:
        return None
    less = count.operands[0].owner
    if isinstance(less, ir.Block) or less.name != "arith.cmpi" or less.attributes["predicate"].value != _SLT:
        return None
    return less.operands[0], less.operands[1]


def is_same(a: ir.Value, b: ir.Value) -> bool:
    """Whether two indices are one value, or one number."""
    return a == b or (known := constant_index(a)) is not None and known == constant_index(b)
