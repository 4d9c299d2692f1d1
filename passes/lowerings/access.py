"""Which elements of its inputs an op's elements come from, of elementwise work, views, slices and concatenations of
rows.

A piece of a value is named by its access: for every dimension "row" (the row at hand), "col" (a run of columns) or None
(the first position, of a unit dimension the only one). A slice counts positions from its start on: "col+8" are the
columns from the eighth on, "+3" is the fourth position.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TypeVar

from mlir import ir

from . import bodies

Access = tuple[str | None, ...]

VIEWS = ("tensor.expand_shape", "tensor.collapse_shape", "tensor.cast")
SLICE = "tensor.extract_slice"
CONCATENATION = "tensor.concat"  # along the last axis
TAKEN_APART = (1, 2, 4, 8, 16, 32)  # elements from a column to the next: a word of a pattern is 32 lanes


def base_of(label: str | None) -> str | None:
    """What a label counts positions from."""
    return label and (label.partition("+")[0] or None)


def start_of(label: str | None) -> int:
    """How many positions on from there it starts."""
    return int((label or "").partition("+")[2] or 0)


def shifted(label: str | None, by: int) -> str | None:
    base, start = base_of(label), start_of(label) + by
    return f"{base or ''}+{start}" if start else base


def has_columns(access: Access) -> bool:
    return any(base_of(label) == "col" for label in access)


def columns_apart(shape: ir.RankedTensorType, access: Access) -> int:
    """How many elements on from a column of a piece the next one lies."""
    after = next((i + 1 for i in reversed(range(len(access))) if base_of(access[i]) == "col"), len(access))
    return math.prod(shape.shape[after:])


def unsupported_reason(op: ir.Operation) -> str | None:
    """Why `Producers` cannot compute an op; None if it can."""
    if op.name == "arith.constant":
        return None if constant_of(op) is not None else "a constant that is not one value throughout"
    if op.name in VIEWS:
        return _why_no_view(op)
    if op.name in ("tensor.empty", "linalg.fill"):
        return None
    if op.name == SLICE:
        return _why_no_slice(op)
    if op.name == CONCATENATION:
        along_rows = 0 < op.attributes["dim"].value == ir.RankedTensorType(op.results[0].type).rank - 1
        return None if along_rows else "a concatenation along other than the last axis"
    if op.name != "linalg.generic":
        return "kernels compute elementwise work and the operators of the dialect 'ascend'"
    if any("parallel" not in str(kind) for kind in op.attributes["iterator_types"]):
        return "a reduction"
    if len(op.results) != 1:
        return "more than one result"
    maps = [attribute.value for attribute in op.attributes["indexing_maps"]]
    if maps[-1] != ir.AffineMap.get_identity(maps[-1].n_dims):
        return "a result that is not in iteration order"
    for affine in maps[:-1]:
        for expression in affine.results:
            if not isinstance(expression, (ir.AffineDimExpr, ir.AffineConstantExpr)):
                return f"an access {affine} that is no plain broadcast"
        positions = [ir.AffineDimExpr(e).position for e in affine.results if isinstance(e, ir.AffineDimExpr)]
        if positions != sorted(set(positions)):
            return "a transposition"
    reasons = (bodies.refusal(view.operation) for view in op.regions[0].blocks[0].operations)
    return next((reason for reason in reasons if reason is not None), None)


def _why_no_view(op: ir.Operation) -> str | None:
    if op.name == "tensor.cast":
        return None
    before = ir.RankedTensorType(op.operands[0].type)
    after = ir.RankedTensorType(op.results[0].type)
    if _non_unit(before) == _non_unit(after) or _is_uniform(op.operands[0]):
        return None
    return "a reshape that moves elements between dimensions"


def _why_no_slice(op: ir.Operation) -> str | None:
    ranks = {ir.RankedTensorType(value.type).rank for value in (op.operands[0], op.results[0])}
    if len(op.operands) > 1 or len(ranks) > 1 or set(op.attributes["static_strides"]) - {1}:
        return "a slice of other than neighbouring elements, from a position that is known"
    return None


def _is_uniform(value: ir.Value) -> bool:
    """Whether all elements of a value are the same, so that any of them serves for any other."""

    def sources(each: ir.Value) -> Sequence[ir.Value]:
        return () if _is_one(each) or isinstance(each.owner, ir.Block) else inputs(each.owner)

    return all(_is_one(each) or _spreads(each.owner) for each in in_order(value, sources))


def _is_one(value: ir.Value) -> bool:
    return not isinstance(value.type, ir.RankedTensorType) or ir.RankedTensorType(value.type).rank == 0


def _spreads(op: ir.Block | ir.Operation) -> bool:
    """Whether an op's elements are all the same where those of its inputs are."""
    if isinstance(op, ir.Block) or positions_in(op):
        return False
    return op.name in VIEWS or unsupported_reason(op) is None and (op.name == "arith.constant" or bool(inputs(op)))


def _non_unit(shape: ir.RankedTensorType) -> list[int]:
    return [dim for dim in shape.shape if dim != 1]


def inputs(op: ir.Operation) -> list[ir.Value]:
    """The operands whose elements an op reads (not its shape operands)."""
    if op.name == "linalg.generic":
        return list(op.operands)[: len(op.operands) - 1]
    if op.name in (*VIEWS, SLICE, "linalg.fill"):
        return [op.operands[0]]
    return list(op.operands) if op.name == CONCATENATION else []


def captured(op: ir.Operation) -> list[ir.Value]:
    """The constants outside of an op that its body uses."""
    inner = [view.operation for region in op.regions for block in region.blocks for view in block.operations]
    used = dict.fromkeys(value for operation in inner for value in operation.operands)
    outside = [value for value in used if not isinstance(value.owner, ir.Block) and value.owner not in inner]
    return [value for value in outside if value.owner.name == "arith.constant"]


def positions_in(op: ir.Operation) -> list[int]:
    """The dimensions along which an op computes with the positions of its elements."""
    inner = [view.operation for region in op.regions for block in region.blocks for view in block.operations]
    return [operation.attributes["dim"].value for operation in inner if operation.name == "linalg.index"]


def constant_of(op: ir.Operation) -> float | int | None:
    """The one value of a constant, scalar or splat; None if it varies."""
    value = op.attributes["value"]
    if isinstance(value, (ir.FloatAttr, ir.IntegerAttr, ir.BoolAttr)):
        return value.value
    if isinstance(value, ir.DenseElementsAttr) and value.is_splat:
        return value.get_splat_value().value
    return None


T = TypeVar("T", bound=Hashable)


def in_order(start: T, sources: Callable[[T], Iterable[T]], seen: set[T] | None = None) -> Iterator[T]:
    """What something is computed from and it itself, each once and after its sources;
    but for what is `seen` already."""
    seen = set() if seen is None else seen
    if start in seen:
        return
    seen.add(start)
    waiting = [(start, iter(sources(start)))]
    while waiting:
        value, rest = waiting[-1]
        source = next((each for each in rest if each not in seen), None)
        if source is None:
            yield waiting.pop()[0]
        else:
            seen.add(source)
            waiting.append((source, iter(sources(source))))


def compares(value: ir.Value) -> bool:
    """Whether a comparison, or a boolean, goes into a value."""
    return any(
        map(_compares, in_order(value, lambda each: () if isinstance(each.owner, ir.Block) else inputs(each.owner)))
    )


def _compares(value: ir.Value) -> bool:
    if is_boolean(value) or isinstance(value.owner, ir.Block):
        return is_boolean(value)
    inner = (view.operation for region in value.owner.regions for block in region.blocks for view in block.operations)
    return any(map(bodies.compares, inner))


def accesses(op: ir.Operation, access: Access) -> list[tuple[ir.Value, Access]]:
    """Which pieces of an op's inputs give a piece of its result."""
    if op.name == "linalg.generic":
        pairs = []
        for operand, attribute in zip(inputs(op), op.attributes["indexing_maps"]):
            dims = []
            for expression in attribute.value.results:
                constant = isinstance(expression, ir.AffineConstantExpr)
                dims.append(None if constant else access[ir.AffineDimExpr(expression).position])
            pairs.append((operand, tuple(dims)))
        return pairs
    if op.name in VIEWS:
        source = op.operands[0]
        if _is_uniform(source):
            return [(source, (None,) * ir.RankedTensorType(source.type).rank)]
        return [(source, _access_of_source(op, access))]
    if op.name == "linalg.fill":
        return [(op.operands[0], ())]
    if op.name == SLICE:
        starts = op.attributes["static_offsets"]
        return [(op.operands[0], tuple(shifted(label, start) for label, start in zip(access, starts)))]
    if op.name == CONCATENATION:
        return [_part_of(op, access)]
    return []


def _part_of(op: ir.Operation, access: Access) -> tuple[ir.Value, Access]:
    """The piece of the tensor that a piece of a concatenation lies in: whose is its first column."""
    start = start_of(access[-1])
    for operand, first in zip(op.operands, starts_of_parts(op)):
        length = ir.RankedTensorType(operand.type).shape[-1]
        if start < first + length:
            break
    return operand, (*access[:-1], shifted(access[-1], -first))


def starts_of_parts(op: ir.Operation) -> list[int]:
    """The column that each operand of a concatenation starts at."""
    lengths = [ir.RankedTensorType(operand.type).shape[-1] for operand in op.operands]
    return [sum(lengths[:i]) for i in range(len(lengths))]


def _access_of_source(op: ir.Operation, access: Access) -> Access:
    """The piece of a view's source. Of the dimensions that a view makes one of or one into, one has more than one
    position, or the first of the rows stays the first."""
    shape = ir.RankedTensorType(op.operands[0].type).shape
    if op.name == "tensor.cast":
        return access
    groups = [[index.value for index in group] for group in op.attributes["reassociation"]]
    if op.name == "tensor.expand_shape":
        after = ir.RankedTensorType(op.results[0].type).shape
        return tuple(access[max(group, key=lambda d: after[d] != 1)] if group else None for group in groups)
    labels: list[str | None] = [None] * len(shape)
    for number, group in enumerate(groups):
        labels[max(group, key=lambda d: shape[d] != 1)] = access[number]
    return tuple(labels)


def is_boolean(value: ir.Value) -> bool:
    """Whether a value's elements are true or false."""
    shaped = isinstance(value.type, ir.RankedTensorType)
    return str(ir.RankedTensorType(value.type).element_type if shaped else value.type) == "i1"
