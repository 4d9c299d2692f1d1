"""What the operators of a graph cost, by a model that is quick enough to decide by: whether a fusion pays.

    launch + rounds x (bytes of one core / bandwidth of one core + vector cycles / clock) + a meeting of the cores

A core that has several rows goes about them one after the other; where there are fewer rows than cores, some operators split a
row. Bytes are those that a kernel reads of a row, computed operands counted by what they are computed from, and those that it
writes. How often a row is read, and the cycles, follow from the kernels as the twin models them (`benchmarks/fusion.py`).
Copies and vector work are added up where kernels overlap little of them; where a kernel goes about a row in one pass, loading
ahead, the longer of the two counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from mlir import ir

from jascend.backends.ascend.targets import costs
from jascend.backends.ascend.targets import target as target_of

from .lowerings.apply_top_k_top_p import SHORT_ROW
from .lowerings.producers import inputs, unsupported_reason, width_of

_ROWS = 64  # where the number is not known
_MOST_PARTS, _LEAST_PART = 16, 2048  # of a row that is split, as `lowerings.site`
_MEETING = 2e-6  # seconds
_LANES = 64


@dataclass(frozen=True)
class _Work:
    """Of one operator: how often a row is read, vector cycles for 64 elements and for a row, whether rows are split, and
    whether copies go on beside the vector work."""

    reads: float = 1.0
    cycles: float = 8.0
    of_row: float = 2_000.0
    splits: bool = False
    overlaps: bool = False


_WORK = {
    "ascend.apply_top_k_top_p": _Work(3, 36, 5_000, True),
    "ascend.apply_top_k_top_p_with_sorted": _Work(3, 36, 5_000),
    "ascend.filter_sample": _Work(1.1, 18, 18_000, True, overlaps=True),
    "ascend.random_exponential": _Work(0, 340, 2_000, True),
    "ascend.random_key": _Work(1, 0, 6_000),
    "ascend.sort": _Work(6, 300, 5_000, True),
    "ascend.top_k_top_p_sample": _Work(3, 36, 2_000, True),
}
_DRAWING = 6_000  # cycles of a row whose survivors' numbers are drawn: one list of them
_WORK_ON_SHORT_ROWS = {"ascend.filter_sample": _Work(1, 36, 5_000)}  # sorted whole, as the filter's


def microseconds(module: ir.Module, target: str) -> float:
    """The modelled time of all operators of a graph that something needs, each a kernel."""
    total = 0.0

    def add(op: ir.Operation) -> ir.WalkResult:
        nonlocal total
        if op.name.startswith("ascend.") and any(True for result in op.results for _ in result.uses):
            total += _seconds(op, target)
        return ir.WalkResult.ADVANCE

    with module.context:
        module.operation.walk(add)
    return total * 1e6


def _seconds(op: ir.Operation, target: str) -> float:
    facts, cores = costs(target), target_of(target).vector_cores
    rows_of = op.results[0] if op.name == "ascend.random_exponential" else op.operands[0]
    shape = ir.RankedTensorType(rows_of.type)
    sizes = [_ROWS if shape.is_dynamic_dim(i) else shape.get_dim_size(i) for i in range(shape.rank)]
    rows, length = math.prod(sizes[:-1]), sizes[-1] if sizes else 1
    work = _WORK.get(op.name, _Work())
    if length <= SHORT_ROW:
        work = _WORK_ON_SHORT_ROWS.get(op.name, work)
    parts = 1
    if work.splits and rows:
        parts = min(_MOST_PARTS, cores // rows, -(-length // _LEAST_PART))
    parts = parts if parts >= 2 else 1
    active = max(1, min(cores, rows * parts))
    written = sum(_bytes_of_row(result, rows) for result in op.results)
    moved = (work.reads * _read(rows_of, length) * length + written) / parts
    bandwidth = min(facts.read, facts.total / active)
    of_row = work.of_row + (_DRAWING if op.name == "ascend.filter_sample" and "draw" in op.attributes else 0)
    copies, vector = moved / bandwidth, length / parts / _LANES * work.cycles / facts.clock
    one = (max(copies, vector) if work.overlaps else copies + vector) + of_row / facts.clock
    return facts.launch + -(-rows * parts // cores) * one + (_MEETING if parts > 1 else 0.0)


def _bytes_of_row(value: ir.Value, rows: int) -> float:
    shape = ir.RankedTensorType(value.type)
    sizes = [_ROWS if shape.is_dynamic_dim(i) else shape.get_dim_size(i) for i in range(shape.rank)]
    return math.prod(sizes) * width_of(shape.element_type) / max(rows, 1)


def _read(value: ir.Value, length: int) -> int:
    """Bytes in memory for each element of a row: of all that a computed value is computed from."""
    found: dict[ir.Value, int] = {}

    def visit(value: ir.Value) -> None:
        owner = value.owner
        if isinstance(owner, ir.Block) or unsupported_reason(owner) is not None:
            if isinstance(value.type, ir.RankedTensorType):
                shape = ir.RankedTensorType(value.type)
                if shape.rank and shape.shape[-1] == length:
                    found[value] = width_of(shape.element_type)
            return
        for operand in inputs(owner):
            visit(operand)

    visit(value)
    return sum(found.values())
