"""Fuses sampling operators.

`sort` followed by `apply_top_k_top_p_with_sorted` on its two results is, by the definition of the API, the filter on the
unsorted rows: `apply_top_k_top_p`, which needs no sort. The rewrite holds for an ascending sort only; the sort goes when
nothing else uses it.

Before:

    %values, %indices = "ascend.sort"(%x) {descending = false} : ...
    %0 = "ascend.apply_top_k_top_p_with_sorted"(%values, %indices, %p, %k) ...

After:

    %0 = "ascend.apply_top_k_top_p"(%x, %p, %k) ...
"""

from __future__ import annotations

from mlir import ir

from jascend.dialect import ASCEND

from .registry import rewrite


@rewrite("ascend.apply_top_k_top_p_with_sorted", pass_name="fuse-sampling")
def filter_without_sort(op, rewriter):
    """The filter on sorted rows becomes the filter on the rows that were sorted."""
    sort = op.sorted_value.owner
    if isinstance(sort, ir.Block) or sort.name != "ascend.sort" or sort.opview.descending:
        return True
    sort = sort.opview
    if op.sorted_value != sort.values or op.sorted_indices != sort.indices:
        return True
    fused = ASCEND.classes["ApplyTopKTopP"].build(sort.x, op.p, op.k, results=[op.out.type], target=op.target)
    rewriter.replace_op(op, fused)
