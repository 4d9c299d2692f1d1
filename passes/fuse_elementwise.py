"""Computes elementwise work in the kernels of the operators that take it, where they load.

`cluster-rows` gives rows that operators take from memory a kernel of their own. Where nothing but operators needs them,
and their kernels can compute them, the operators read what the rows are computed from: there is a launch less, and
nothing of them goes through global memory. An operator that reads its rows several times computes them as often;
whether that pays is a matter of the model of cost, for all that take the rows at once.

Before:

    %s = linalg.generic {... arith.addf ...} ins(%x, %bias) ...
    %rows = "ascend.row_wise"(%s) : (tensor<8x512xf32>) -> tensor<8x512xf32>
    %0 = "ascend.apply_top_k_top_p"(%rows, %p, %k) ...

After:

    %s = linalg.generic {... arith.addf ...} ins(%x, %bias) ...
    %0 = "ascend.apply_top_k_top_p"(%s, %p, %k) ...
"""

from __future__ import annotations

from mlir import ir

from jascend.dialect import ASCEND

from .cluster_rows import LIBRARY_CALL, ROW_WISE, computed, outside, produced
from .lower_to_tile import taken_from_memory
from .rewriting import rewrite


@rewrite("ascend.row_wise", pass_name="fuse-elementwise", by_cost=True)
def compute_where_it_is_loaded(op, rewriter):
    """What only operators take is computed by their kernels."""
    source = op.x.owner
    if isinstance(source, ir.Block) or not produced(source) or _needed_in_memory(op.out):
        return True
    if any(computed(value.owner) for value in outside(op.x)):
        return True
    rewriter.replace_op(op, op.x)
    rewriter.remark("computed where it is loaded")
    return None


def _needed_in_memory(value: ir.Value) -> bool:
    """Whether something takes a value that cannot compute it."""
    return any(_takes_from_memory(use.owner.operation, value) for use in value.uses)


def _takes_from_memory(op: ir.Operation, value: ir.Value) -> bool:
    if op.name in ASCEND.by_name:
        return op.name in (LIBRARY_CALL, *ROW_WISE) or taken_from_memory(op.opview, value)
    return not produced(op) or any(map(_needed_in_memory, op.results))
