"""Fuses sampling operators.

`sort` followed by `apply_top_k_top_p_with_sorted` on its two results is, by the definition of the API, the filter on
the unsorted rows: `apply_top_k_top_p`, which needs no sort. The rewrite holds for an ascending sort only; the sort goes
when nothing else uses it.

Before:

    %values, %indices = "ascend.sort"(%x) {descending = false} : ...
    %0 = "ascend.apply_top_k_top_p_with_sorted"(%values, %indices, %p, %k) ...

After:

    %0 = "ascend.apply_top_k_top_p"(%x, %p, %k) ...

`top_k_top_p_sample` with all its stages off draws from the rows as they are, and takes `q` by index. So after the
filter it is `filter_sample`, which reads the logits once and writes an index a row; rows may be widened between the
two, for the one operator computes in float32. With a stage on it has other rules for ties than the filter, and takes
`q` by rank: then the two stay. Filtered rows that something else needs are written anyway, and stay too. Of `q` the one
operator takes the absolute value, and the other takes it as it is. A `q` that is drawn for nothing else
(`random_exponential`) is drawn inside, for the elements that the filter keeps, and is never written; where no filter is
before the draw, for all elements.

`filter_sample` draws among what the filter keeps. So does the composition where `q + eps` is a positive, finite number:
with a `q + eps` of 0 or NaN the probability 0 of what was removed becomes NaN, which the argmax takes, and with an
infinite one beside all that is kept every quotient is 0. Then the rewrite changes what is drawn, for the better; its
remark says so.

Before:

    %rows = "ascend.apply_top_k_top_p"(%x, %p, %k) ...
    %index = "ascend.top_k_top_p_sample"(%rows, %zero, %one, %q) {eps = 0.0 : f32, ...} ...

After:

    %abs = linalg.generic ... { math.absf } ...
    %index = "ascend.filter_sample"(%x, %abs, %p, %k) {eps = 0.0 : f32, ...} ...
"""

from __future__ import annotations

from mlir import ir
from mlir.dialects import math

from jascend.dialect import ASCEND

from .elementwise import elementwise, number_of
from .lowerings.access import VIEWS
from .rewriting import rewrite


@rewrite("ascend.apply_top_k_top_p_with_sorted", pass_name="fuse-sampling", by_cost=True)
def filter_without_sort(op, rewriter):
    """The filter on sorted rows becomes the filter on the rows that were sorted, which may be there as `logits`."""
    if op.logits is not None:
        rewriter.replace_op(op, _filter(op, op.logits))
        return None
    sort = op.sorted_value.owner
    if isinstance(sort, ir.Block) or sort.name != "ascend.sort" or sort.opview.descending:
        return True
    sort = sort.opview
    if op.sorted_value != sort.values or op.sorted_indices != sort.indices:
        return True
    rewriter.replace_op(op, _filter(op, sort.x))
    return None


def _filter(op, logits: ir.Value) -> ir.OpView:
    return ASCEND.classes["ApplyTopKTopP"].build(logits, op.p, op.k, results=[op.out.type], target=op.target)


@rewrite("ascend.top_k_top_p_sample", pass_name="fuse-sampling", by_cost=True)
def sample_what_is_filtered(op, rewriter):
    """A draw from filtered rows, also from such that are widened, filters them itself."""
    rows = _narrow(op.logits)
    filtered = rows.owner
    if isinstance(filtered, ir.Block) or filtered.name != "ascend.apply_top_k_top_p":
        return True
    reason = _why_not_plain(op)
    if reason is not None:
        return f"not fused with the filter before it: {reason}"
    if any(sum(1 for _ in value.uses) > 1 for value in (op.logits, rows)):
        return "not fused with the filter before it: something else needs the filtered rows too"
    filtered = filtered.opview
    target = op.target or filtered.target
    if filtered.target not in (None, target):
        return f"not fused with the filter before it: it is for {op.target}, and the filter for {filtered.target}"
    drawn = _drawn(op.q)
    if drawn is None:
        q, key, how = elementwise(op.q, [(op.q, (0, 1))], math.absf), None, {}
    else:
        q, key, how = None, drawn.key, _how(drawn)
    fused = ASCEND.classes["FilterSample"].build(
        filtered.logits, q, filtered.p, filtered.k, key,
        results=[op.logits_select_idx.type], eps=op.eps, target=target, **how,
    )  # fmt: skip
    rewriter.replace_op(op, fused)
    rewriter.remark(
        "takes q + eps for positive and finite: what the filter removes is never drawn, where 0 / 0 = NaN would draw "
        "it, and its q is not read"
    )


@rewrite("ascend.top_k_top_p_sample", benefit=0, pass_name="fuse-sampling", by_cost=True)
def draw_beside_rows(op, rewriter):
    """A draw from rows as they are draws its numbers itself, if nothing else needs them."""
    drawn = _drawn(op.q) if op.q is not None else None
    if drawn is None or _why_not_plain(op) is not None:
        return True
    fused = ASCEND.classes["FilterSample"].build(
        op.logits, None, None, None, drawn.key,
        results=[op.logits_select_idx.type], eps=op.eps, target=op.target, **_how(drawn),
    )  # fmt: skip
    rewriter.replace_op(op, fused)
    rewriter.remark(
        "compares logits less the logarithm of q, for every element: equal scores but for a relative 1e-5 may swap"
    )


def _how(drawn) -> dict[str, str | float]:
    """How numbers are drawn."""
    return {"draw": drawn.draw, "low": drawn.low, "counts": drawn.counts}


def _drawn(q: ir.Value) -> ir.OpView | None:
    """What draws the numbers, in rows like those of `q`, if they serve nothing else."""
    value = q
    while True:
        owner = value.owner
        if isinstance(owner, ir.Block) or sum(1 for _ in value.uses) != 1:
            return None
        if owner.name == "ascend.random_exponential":
            return owner.opview if value.type == q.type else None
        if owner.name not in VIEWS:
            return None
        value = owner.operands[0]


def _narrow(value: ir.Value) -> ir.Value:
    """What a value is widened from, which changes nothing of it; else itself."""
    op = value.owner
    if isinstance(op, ir.Block) or op.name != "linalg.generic" or len(op.operands) != 2:
        return value
    source, body = op.operands[0], [view.operation for view in op.regions[0].blocks[0].operations]
    is_cast = [inner.name for inner in body] == ["arith.extf", "linalg.yield"] and source.type.shape == value.type.shape
    return source if is_cast else value


def _why_not_plain(op) -> str | None:
    """Why `top_k_top_p_sample` is more than a draw from rows as they are."""
    if op.q is None or op.is_need_logits or op.is_need_sample_result:
        return "it does not only draw"
    if not op.input_is_logits:
        return "it takes probabilities"
    if op.min_ps is not None:
        return "it has a min-p"
    if not op.eps >= 0:
        return "its eps is negative"
    k, p = number_of(op.top_k), number_of(op.top_p)
    if k is None or 0 < k <= ir.RankedTensorType(op.logits.type).get_dim_size(1):
        return "its top-k may be on, and treats equal values in another way"
    if p is None or p < 1:
        return "its top-p may be on, and treats equal values in another way"
    return None
