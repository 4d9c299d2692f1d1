"""What the operators of a graph cost, by a model that is quick enough to decide by: whether a fusion pays.

    launch + once + rounds x (row + copies + vector work)

A core that has several rows goes about them one after the other, in `rounds`; where there are fewer rows than cores,
some operators split a row. Copies are the bytes of a row that operands take, `reads` times, and those that are written,
over the bandwidth of a core. Vector work is `element` cycles for 64 elements, and `computed` for 64 scalar operations
that are computed where they are loaded. Where a kernel loads ahead, the longer of the two counts (`overlaps`).

The figures of each kind of kernel are in `cost_figures.json`. They are fitted to what the twin models for a grid of
graphs; `benchmarks/cost_figures.py` measures the grid and writes the file, and says how far the estimates are from the
twin.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from mlir import ir

from jascend.backends.ascend.targets import costs
from jascend.backends.ascend.targets import target as target_of

from .cluster_rows import LIBRARY_CALL, computed, produced
from .elementwise import number_of
from .lowerings.apply_top_k_top_p import SHORT_ROW
from .lowerings.access import captured
from .lowerings.producers import width_of
from .lowerings.site import parts_of_row

FIGURES_FILE = Path(__file__).parent / "cost_figures.json"
_ROWS = 64  # where the number is not known
_LANES = 64
# rows of at most SHORT_ROW elements
_SORTED_WHOLE = ("apply_top_k_top_p", "filter_sample", "sort", "top_k_top_p_sample")
# where cores are left over
_SPLIT = ("apply_top_k_top_p", "filter_sample", "random_exponential", "sort", "top_k_top_p_sample")
_READ_IN_PART = {"ascend.filter_sample": ("q",)}  # where it is needed only: no matter

Resolve = Callable[[ir.Value], ir.Value]  # the value that stands for a value


@dataclass(frozen=True)
class Figures:
    """What the time of one kind of kernel is made of;
    `once` in microseconds, `row`, `element` and `computed` in cycles."""

    once: float = 0.0
    row: float = 2_000.0
    element: float = 8.0
    computed: float = 2.0
    reads: float = 1.0
    overlaps: bool = False


@dataclass(frozen=True)
class Work:
    """What one operator has to do: its kind, rows and their length, cores that share a row; bytes of a row that
    operands take and results give; scalar operations for an element that its operands are computed by."""

    kind: str
    rows: int
    length: int
    parts: int
    read: float
    written: float
    computed: float

    def microseconds(self, target: str, figures: Figures | None = None) -> float:
        """The modelled time on a product; `figures` instead of those in the file."""
        facts, cores = costs(target), target_of(target).vector_cores
        figures = figures or figures_of(target_of(target).npu_arch).get(self.kind, Figures())
        pieces = max(1, self.rows * self.parts)
        bandwidth = min(facts.read, facts.total / min(cores, pieces))
        copies = (figures.reads * self.read + self.written) / self.parts / bandwidth
        cycles = (figures.element + figures.computed * self.computed) * self.length / self.parts / _LANES
        vector = cycles / facts.clock
        piece = max(copies, vector) if figures.overlaps else copies + vector
        launch = facts.launch + facts.tiling_copy + figures.once * 1e-6
        return (launch + -(-pieces // cores) * (figures.row / facts.clock + piece)) * 1e6


@functools.cache
def figures_of(npu_arch: int) -> dict[str, Figures]:
    """The figures in the file, by kind."""
    kinds = json.loads(FIGURES_FILE.read_text())["figures"][str(npu_arch)]
    return {kind: Figures(**figures) for kind, figures in kinds.items()}


def _itself(value: ir.Value) -> ir.Value:
    return value


# -- graphs ---------------------------------------------------------------------------------------------------------


def compared(
    op: ir.OpView, replaced: Mapping[ir.Value, ir.Value | None], target: str, any_rows: int = 0
) -> tuple[float, float]:
    """The modelled microseconds of what changes in the graph around an op where values are replaced by others, and of
    what is there now: operators of only one of the two graphs, or that take other operands in it. `any_rows` as of
    `work_of`."""
    function = op.operation
    while function.parent is not None and function.parent.name != "builtin.module":
        function = function.parent
    block = function.regions[0].blocks[0]

    def times(resolve: Resolve) -> dict[ir.Operation, float]:
        return {
            each: work_of(each, target, resolve, any_rows).microseconds(target) for each in _operators(block, resolve)
        }

    after, before = times(lambda value: replaced.get(value) or value), times(_itself)
    changed = [each for each in {**after, **before} if after.get(each) != before.get(each)]
    return tuple(sum(graph.get(each, 0.0) for each in changed) for graph in (after, before))


def _operators(block: ir.Block, resolve: Resolve) -> Iterator[ir.Operation]:
    """The operators that what a block returns is computed by."""
    last = block.operations[len(block.operations) - 1].operation
    waiting, seen = [last], {last}
    while waiting:
        op = waiting.pop()
        if op.name.startswith("ascend.") and op.name != LIBRARY_CALL:
            yield op
        for value in (*op.operands, *captured(op)):
            owner = resolve(value).owner
            if not isinstance(owner, ir.Block) and owner.operation not in seen:
                seen.add(owner.operation)
                waiting.append(owner.operation)


def work_of(op: ir.Operation, target: str, resolve: Resolve = _itself, any_rows: int = 0) -> Work:
    """What an operator has to do; `resolve` gives for a value the one that stands for it, and `any_rows` is the number
    that stands for rows of which nobody knows how many there are: they count as some."""
    shapes = [
        ir.RankedTensorType(value.type) for value in _rows_first(op) if isinstance(value.type, ir.RankedTensorType)
    ]
    sizes = _sizes(shapes[0]) if shapes else []
    rows, length = math.prod(sizes[:-1]), sizes[-1] if sizes else 1
    kind, parts = _kind(op, length), 1
    if op.name.partition(".")[2] in _SPLIT and "as it is" not in kind:  # no core helps with a row that nothing sorts
        parts = parts_of_row(shapes[0], target_of(target).vector_cores)
        kind += " split" * (parts > 1)
    leaves, computations = _sources(op, length, resolve)
    written = sum(_bytes(result.type) for result in op.results) / max(rows, 1)
    read = sum(_bytes_of_row(leaf, rows, length) for leaf in leaves)
    if any_rows and rows and rows % any_rows == 0:
        rows = rows // any_rows * _ROWS
    return Work(kind, rows, length, parts, read, written, computations)


def _rows_first(op: ir.Operation) -> list[ir.Value]:
    """Operands and results, the rows that are dealt out to the cores first."""
    values = [*op.operands, *op.results]
    return values[::-1] if op.name == "ascend.random_exponential" else values


def _kind(op: ir.Operation, length: int) -> str:
    """Operators by what their kernels do: those of one kind have the same figures."""
    words = [op.name.partition(".")[2]]
    if op.name == "ascend.filter_sample" and "draw" in op.attributes:
        words.append("drawing" if op.opview.p is not None or op.opview.k is not None else "drawing for all")
    if "quant_mode" in op.attributes and op.attributes["quant_mode"].value >= 0:
        words.append("quantized")
    if op.name == "ascend.top_k_top_p_sample" and op.opview.min_ps is None and _is_off(op.opview, length):
        words.append("as it is")
    if words[0] in _SORTED_WHOLE and length <= SHORT_ROW:
        words.append("short")
    return " ".join(words)


def _is_off(sample: ir.OpView, length: int) -> bool:
    """Whether a row is known to be drawn from as it is."""
    k, p = number_of(sample.top_k), number_of(sample.top_p)
    return k is not None and not 0 < k <= length and p is not None and p >= 1


def _sources(op: ir.Operation, length: int, resolve: Resolve) -> tuple[list[ir.Value], float]:
    """What is in memory of what an operator's operands are computed from,
    and by how many scalar operations an element."""
    inside = computed if op.name == "ascend.row_wise" else produced
    in_part = [value for name in _READ_IN_PART.get(op.name, ()) if (value := getattr(op.opview, name)) is not None]
    waiting = [resolve(operand) for operand in op.operands if operand not in in_part]
    found, computations = {}, 0.0
    while waiting:
        value = waiting.pop()
        if value in found or not isinstance(value.type, ir.RankedTensorType):
            continue
        owner = value.owner
        found[value] = isinstance(owner, ir.Block) or not inside(owner)
        if not found[value]:
            if owner.name == "linalg.generic" and length in _sizes(ir.RankedTensorType(owner.operands[0].type))[-1:]:
                computations += len(owner.regions[0].blocks[0].operations) - 1
            waiting += [resolve(operand) for operand in (*owner.operands, *captured(owner))]
    return [value for value, in_memory in found.items() if in_memory], computations


def _sizes(shape: ir.RankedTensorType) -> list[int]:
    return [_ROWS if shape.is_dynamic_dim(i) else shape.get_dim_size(i) for i in range(shape.rank)]


def _bytes(type_: ir.Type) -> int:
    shape = ir.RankedTensorType(type_)
    return math.prod(_sizes(shape)) * width_of(shape.element_type)


def _bytes_of_row(value: ir.Value, rows: int, length: int) -> float:
    """Of a value in memory; one row for all is read for each."""
    sizes = _sizes(ir.RankedTensorType(value.type))
    return _bytes(value.type) / (1 if sizes == [length] else max(rows, 1))

