"""Gives what is computed between operators, and is needed in memory, a kernel of its own: `ascend.row_wise`.

Elementwise work that only feeds an operator is computed inside that operator's kernel, where its data is anyway. What
is left needs a place in memory: what the program returns, what a library call takes, and rows that an operator takes
but can only be computed from whole rows, as a softmax. With `operands`, all rows that an operator takes and that are
computed get one; `fuse-elementwise` then decides which of them the operators compute themselves. Each such value
becomes the operand of an `ascend.row_wise`, and what uses it reads its result.

Tensors that are set side by side along their rows become a part of the work around them, where there is some: a kernel
then computes one part of its rows after another.

Where a value is needed that others are computed from, as the sum before a norm that is returned beside it, one kernel
gives both: `ascend.row_wise_pair`. So it is where later work would else compute a value of several tensors again, as
the sums along a stack of layers: from there on it is read.

What a library call takes of a tensor in memory, a weight of many that are stacked, is in memory itself where its
elements are neighbours: it stays a slice, which moves nothing.

A value that has to be there before the rows that use it, because it is computed along another axis than theirs or is
one for all of them, is a cluster of its own too.

Before:

    %s = linalg.generic {... arith.addf ...} ins(%x, %r) ...
    %0 = "ascend.library_call"(%s, %w) {callee = "aclnnMatmul"} ...

After:

    %s = linalg.generic {... arith.addf ...} ins(%x, %r) ...
    %1 = "ascend.row_wise"(%s) : (tensor<8x64xf32>) -> tensor<8x64xf32>
    %0 = "ascend.library_call"(%1, %w) {callee = "aclnnMatmul"} ...
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from jascend.dialect import ASCEND
from jascend.dialect.ascendc import element_bits
from mlir import ir
from mlir.dialects import tensor

from .diagnostics import PassFailure, emit_error
from .lower_to_tile import KERNEL, LAUNCH, taken_from_memory
from .lowerings.access import (
    CONCATENATION, SLICE, TAKEN_APART, VIEWS, base_of, columns_apart, has_columns, in_order, inputs, positions_in,
    unsupported_reason,
)  # fmt: skip
from .lowerings.reductions import is_reduction, reduction_of
from .lowerings.row_wise import Access, labels_of, pieces, sources
from .registry import option, register_pass

LIBRARY_CALL = "ascend.library_call"
ROW_WISE = ("ascend.row_wise", "ascend.row_wise_pair")
_BLOCK_BYTES = 32
_MOST_JOINS = 2  # concatenations of concatenations in one kernel: each makes more runs of columns of its own
_WRITTEN = ("f32", "f16", "bf16", "i32", "i8", "i1")


@register_pass("cluster-rows")
@dataclass(frozen=True)
class ClusterRows:
    operands: bool = option(False, "rows that operators take go through memory too")

    def run(self, module: ir.Operation, remarks) -> None:
        failed = False
        for function in module.regions[0].blocks[0].operations:
            op = function.operation
            if op.name != "func.func" or KERNEL in op.attributes or not len(op.regions[0].blocks):
                continue
            block = op.regions[0].blocks[0]
            _join_concatenations(block)
            needed = _Needed(block, self.operands)
            for value in needed.values:
                failed |= not needed.write(value)
        if failed:
            raise PassFailure


def _join_concatenations(block: ir.Block) -> None:
    """Makes concatenations of rows part of the work before or after them, where there is some:
    else a library does it."""
    for op in [view.operation for view in block.operations if _concatenates_rows(view.operation)]:
        around = [value.owner for value in op.operands] + [use.owner.operation for use in op.results[0].uses]
        if any(isinstance(other, ir.Operation | ir.OpView) and _is_work(other.operation) for other in around):
            with ir.InsertionPoint(op), op.location:
                joined = tensor.ConcatOp(op.results[0].type, op.attributes["dims"][0], list(op.operands))
            op.results[0].replace_all_uses_with(joined.result)
            op.erase()


def _concatenates_rows(op: ir.Operation) -> bool:
    if op.name != LIBRARY_CALL or op.attributes["callee"].value != "aclnnCat":
        return False
    (dim,) = op.attributes["dims"]
    return 0 < dim == ir.RankedTensorType(op.results[0].type).rank - 1


def _is_work(op: ir.Operation) -> bool:
    return op.name in ("linalg.generic", SLICE, CONCATENATION)


def computed(op: ir.Operation) -> bool:
    """Whether kernels of rows compute an op."""
    if is_reduction(op):
        return not isinstance(reduction_of(op), str)
    return unsupported_reason(op) is None and not is_plain_view(op)


def produced(op: ir.Operation) -> bool:
    """Whether an op is elementwise work that an operator's kernel computes where it takes the result: that of a batch
    of rows lies there in ways of its own, which slices and positions would have to follow."""
    return op.name not in (SLICE, CONCATENATION) and not positions_in(op) and not is_reduction(op) and computed(op)


def is_plain_view(op: ir.Operation) -> bool:
    """A reshape of something that is in memory anyway."""
    return op.name in VIEWS and _in_memory_anyway(op.operands[0])


def is_plain_part(op: ir.Operation) -> bool:
    """A slice of neighbouring elements of something that is in memory anyway, from a block of 32 bytes on."""
    if op.name != SLICE or unsupported_reason(op) is not None or not _in_memory_anyway(op.operands[0]):
        return False
    whole, part = (ir.RankedTensorType(value.type) for value in (op.operands[0], op.results[0]))
    if not whole.has_static_shape:
        return False
    last = max((dim for dim in range(whole.rank) if whole.shape[dim] != part.shape[dim]), default=0)
    starts = op.attributes["static_offsets"]
    first = sum(start * math.prod(whole.shape[dim + 1 :]) for dim, start in enumerate(starts))
    bits = {"i1": 8}.get(str(whole.element_type)) or element_bits(whole.element_type)
    return math.prod(part.shape[:last]) == 1 and first * bits % (8 * _BLOCK_BYTES) == 0


def _in_memory_anyway(value: ir.Value) -> bool:
    owner = value.owner
    return isinstance(owner, ir.Block) or owner.name.startswith(("ascend.", "func.")) or is_plain_view(owner)


class _Needed:
    """The values of a block that have to be in memory, each after those it is computed from; and who gets a kernel with
    whom. With `operands`, rows that operators take and nobody else are among them, each alone."""

    def __init__(self, block: ir.Block, operands: bool):
        self.places = {result: i for i, view in enumerate(block.operations) for result in view.operation.results}
        self.values: dict[ir.Value, None] = {}  # in order
        self.takers: dict[ir.Value, list[ir.Operation]] = {}  # the ops that read a value from memory
        self.bound: set[ir.Value] = set()  # values that others have to find there
        self.alone: set[ir.Value] = set()
        self.done: set[ir.Value] = set()
        self.promised: dict[ir.Value, ir.Value] = {}  # by later ones: what their kernel is to write, too
        ops = [view.operation for view in block.operations]
        for op in ops:
            if op.name in ("func.return", LIBRARY_CALL) or LAUNCH in op.attributes:
                for operand in op.operands:
                    self.need(operand, op, part_serves=op.name == LIBRARY_CALL)
        for op in [op for op in ops if op.name in ASCEND.by_name and op.name != LIBRARY_CALL]:
            for operand in op.operands:
                whole = taken_from_memory(op.opview, operand) or operand in self.values
                for value in [operand] if whole else outside(operand):
                    self.need(value, op)
                if operands and operand not in self.values and _are_rows_of_operators(operand):
                    self.alone.add(operand)
                    self.values[operand] = None
        self.values = dict.fromkeys(sorted(self.values, key=self.places.__getitem__))

    def need(self, value: ir.Value, taker: ir.Operation | None, part_serves: bool = False) -> None:
        while not isinstance(value.owner, ir.Block) and value.owner.name in VIEWS:
            value = value.owner.operands[0]  # a reshape of what is in memory moves nothing
        if isinstance(value.owner, ir.Block) or not computed(value.owner):
            return
        if part_serves and is_plain_part(value.owner):
            return
        if taker is None:
            self.bound.add(value)
        else:
            self.takers.setdefault(value, []).append(taker)
        self.alone.discard(value)
        if value in self.values:
            return
        for other in _before(value, labels_of(value, computed), value):
            self.need(other, None)
        self.values[value] = None

    def write(self, value: ir.Value) -> bool:
        """Puts a value into memory, alone or in a pair; whether that is possible."""
        if value in self.done:
            return True
        if value in self.alone:
            return _in_memory(value)
        other = self.promised.get(value)
        if other is None:
            behind = itertools.dropwhile(lambda each: each != value, self.values)
            rest = [each for each in itertools.islice(behind, 1, None) if each not in self.promised]
            found = (each for fits in (_computes_along, _goes_beside) for each in rest if self.pairs(value, each, fits))
            later = next(found, None)
            if later is not None:
                self.promised[later] = value
                return True
            other = self.partner(value)
        self.done |= {value, other}
        return _in_memory(value) if other is None else self.write_pair(value, other)

    def write_pair(self, value: ir.Value, other: ir.Value) -> bool:
        """Puts a value and one that it is computed from into memory, the latter for what comes behind;
        whether that is possible."""
        owner, types = value.owner, [value.type, other.type]
        if str(ir.RankedTensorType(value.type).element_type) not in _WRITTEN:
            return _in_memory(value)
        users = [(use.owner, use.operand_number) for use in value.uses]
        behind = [
            (use.owner, use.operand_number)
            for use in other.uses
            if self.place(use.owner.operation) > self.places[value]
        ]
        with ir.InsertionPoint.after(owner), owner.location:
            pair = ASCEND.classes["RowWisePair"].build(value, other, results=types)
        for found, result in ((users, pair.out), (behind, pair.other_out)):
            for user, number in found:
                user.operands[number] = result
        return True

    def pairs(self, value: ir.Value, later: ir.Value, fits: Callable[[ir.Value, ir.Value], bool]) -> bool:
        """Whether the kernel of a later value can write an earlier one: the two fit, and nothing reads it before."""
        if value in self.done or later in self.done or value in self.bound or {value, later} & self.alone:
            return False
        views = [use.owner.operation for use in value.uses if use.owner.name in VIEWS]
        uses = views if fits is _computes_along else [use.owner.operation for use in value.uses]
        in_time = all(self.place(op) > self.places[later] for op in (*self.takers[value], *uses))
        return in_time and fits(later, value)

    def place(self, op: ir.Operation) -> float:
        """Where in the block an op is; one that has been added is nowhere."""
        return self.places.get(op.results[0], -1) if len(op.results) else float("inf")

    def partner(self, value: ir.Value) -> ir.Value | None:
        """What the kernel of a value computes on the way and is to write as well: another that is needed, or one that
        later work is computed from, of two tensors in memory or more."""
        on_the_way = [piece for piece, _ in pieces(value, labels_of(value, computed), computed)][::-1]
        promised = set(self.promised.values())
        free = [
            each for each in on_the_way if each in self.takers and each not in self.promised and each not in promised
        ]
        needed = (each for each in free if self.pairs(each, value, _computes_along))
        shared = (
            each for each in on_the_way
            if each not in self.values
            and any(self.place(use.owner.operation) > self.places[value] for use in each.uses)
            and _computes_along(value, each) and len(_tensors_of(each)) > 1
        )  # fmt: skip
        return next(needed, None) or next(shared, None)


def _computes_along(value: ir.Value, other: ir.Value) -> bool:
    """Whether the rows of another value of the same shape are there, whole, where those of a value are computed."""
    labels = labels_of(value, computed)
    if value == other or isinstance(other.owner, ir.Block) or not computed(other.owner) or not has_columns(labels):
        return False
    shapes = [ir.RankedTensorType(each.type) for each in (value, other)]
    if (
        shapes[0].shape != shapes[1].shape
        or str(shapes[1].element_type) not in _WRITTEN
        or labels_of(other, computed) != labels
    ):
        return False
    found = list(pieces(value, labels, computed))
    return (other, labels) in found and not any(
        piece.owner.name == CONCATENATION for piece, _ in found if not _is_argument(piece)
    )


def _goes_beside(value: ir.Value, other: ir.Value) -> bool:
    """Whether the kernel of a value can compute another as well, of the same rows, that has nothing to do with it."""
    labels, shapes = labels_of(value, computed), [ir.RankedTensorType(each.type) for each in (value, other)]
    written = all(str(shape.element_type) in _WRITTEN for shape in shapes)
    if shapes[0].shape != shapes[1].shape or not written or labels_of(other, computed) != labels:
        return False
    both = (piece for each in (value, other) for piece, _ in pieces(each, labels, computed))
    owners = [piece.owner for piece in both if not _is_argument(piece)]
    lengths = {reduction_of(owner).length for owner in owners if computed(owner) and is_reduction(owner)}
    lengths |= {shapes[0].shape[labels.index("col")]} if has_columns(labels) else set()
    return len(lengths) == 1 and not any(owner.name == CONCATENATION for owner in owners)


def _tensors_of(value: ir.Value) -> set[ir.Value]:
    """What a value is computed from that is in memory and has its shape."""
    labels = labels_of(value, computed)
    found = (piece for piece, access in pieces(value, labels, computed) if access == labels)
    return {piece for piece in found if _is_argument(piece) or not computed(piece.owner)}


def _is_argument(value: ir.Value) -> bool:
    return isinstance(value.owner, ir.Block)


def _are_rows_of_operators(value: ir.Value) -> bool:
    """Whether a value is computed from arrays, is rows of several elements, can go through memory,
    and only operators take it."""
    shape = ir.RankedTensorType(value.type)
    if shape.rank < 2 or shape.shape[-1] < 2 or str(shape.element_type) not in _WRITTEN:
        return False
    takers = {use.owner.operation.name for use in value.uses}
    only_operators = takers <= set(ASCEND.by_name) - {LIBRARY_CALL, *ROW_WISE}
    return only_operators and not isinstance(value.owner, ir.Block) and produced(value.owner) and _has_array(value)


def _has_array(value: ir.Value) -> bool:
    return any(isinstance(each.owner, ir.Block) or not produced(each.owner) for each in _along(value))


def _along(value: ir.Value) -> Iterator[ir.Value]:
    """What an operator's kernel computes along with a value, and what it takes for that."""

    def sources(each: ir.Value) -> list[ir.Value]:
        return [] if isinstance(each.owner, ir.Block) or not produced(each.owner) else inputs(each.owner)

    return in_order(value, sources)


def _before(value: ir.Value, access: Access, root: ir.Value) -> Iterator[ir.Value]:
    """What cannot be computed along with the rows of `root`, of what a piece of it is computed from."""

    def stops(value: ir.Value, access: Access, reduced: bool, joins: int) -> bool:
        """Whether a piece has to be in memory; `reduced`: a reduction goes over it; `joins`: how many concatenations it
        is a part of."""
        owner = value.owner
        if not computed(owner):
            return True
        if is_reduction(owner) and value != root:
            return has_columns(access) or not any(access)
        if owner.name == SLICE and value != root and has_columns(access):
            ((source, of_source),) = sources(owner, access)
            return columns_apart(ir.RankedTensorType(source.type), of_source) not in TAKEN_APART
        if owner.name != CONCATENATION or base_of(access[-1]) is None:
            return False
        return reduced or base_of(access[-1]) != "col" or joins >= _MOST_JOINS

    def needs(piece: tuple[ir.Value, Access, bool, int]) -> list[tuple[ir.Value, Access, bool, int]]:
        value, access, reduced, joins = piece
        owner = value.owner
        if isinstance(owner, ir.Block) or stops(*piece):
            return []
        if owner.name == CONCATENATION and base_of(access[-1]) is not None:
            return [(operand, (*access[:-1], "col"), False, joins + 1) for operand in owner.operands]
        return [(*each, reduced or is_reduction(owner), joins) for each in sources(owner, access)]

    found = (piece for piece in in_order((value, access, False, 0), needs) if not isinstance(piece[0].owner, ir.Block))
    return (piece[0] for piece in found if stops(*piece))


def outside(value: ir.Value) -> Iterator[ir.Value]:
    """What an operator's kernel cannot compute, of what an operand is computed from."""
    return (each for each in _along(value) if not isinstance(each.owner, ir.Block) and not produced(each.owner))


def _in_memory(value: ir.Value) -> bool:
    """Puts a value into memory; whether that is possible."""
    owner, shape = value.owner, ir.RankedTensorType(value.type)
    if str(shape.element_type) not in _WRITTEN:
        emit_error(owner, f"kernels write floats, int32, int8 and booleans to memory, not {shape.element_type}")
        return False
    users = [(use.owner, use.operand_number) for use in value.uses]
    with ir.InsertionPoint.after(owner), owner.location:
        if shape.rank:
            result = ASCEND.classes["RowWise"].build(value, results=[shape]).out
        else:
            one = ir.RankedTensorType.get([1], shape.element_type)
            expanded = tensor.expand_shape(one, value, [], [], [1])
            result = ASCEND.classes["RowWise"].build(expanded, results=[one]).out
            result = tensor.collapse_shape(shape, result, [])
    for user, number in users:
        user.operands[number] = result
    return True
