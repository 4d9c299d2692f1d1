"""Fuses the gating and the routing of a mixture of experts.

`moe_init_routing` by the experts that `moe_gating_top_k` chose becomes `moe_gating_routing`: one launch, in which each
core routes the tokens that it has gated, and knows their experts before anybody else. What else needs the weights, the
scores or the experts gets them from there. Operands of the routing that come after the gating go before it; one that
depends on the gating keeps the two apart.

Before:

    %y, %ids = "ascend.moe_gating_top_k"(%logits, %bias) {k = 8 : i64, ...} ...
    %rows, %index, %counts, %scale = "ascend.moe_init_routing"(%x, %ids) {quant_mode = 1 : i64, ...} ...

After:

    %y, %rows, %index, %counts, %scale = "ascend.moe_gating_routing"(%logits, %x, %bias) {
      k = 8 : i64, quant_mode = 1 : i64, ...
    } ...
"""

from __future__ import annotations

from mlir import ir

from jascend.dialect import ASCEND

from .rewriting import rewrite

_GATING, _ROUTING = (ASCEND.by_name[f"ascend.{name}"] for name in ("moe_gating_top_k", "moe_init_routing"))


@rewrite("ascend.moe_init_routing", pass_name="fuse-moe", by_cost=True)
def route_what_is_gated(op, rewriter):
    """A routing by experts that a gating chose chooses them itself."""
    gating = op.expert_idx.owner
    if isinstance(gating, ir.Block) or gating.name != "ascend.moe_gating_top_k":
        return True
    gating = gating.opview
    reason = _why_apart(gating, op)
    if reason is not None:
        return f"not fused with the gating before it: {reason}"
    both = ir.Location.fused([op.location, gating.location])  # the second for what the gating computes
    with ir.InsertionPoint(gating.operation), both:
        fused = _both(gating, op)
    for earlier in _needed(op, gating):
        rewriter.move_op_before(earlier, fused)
    for replaced, definition in ((op, _ROUTING), (gating, _GATING)):
        rewriter.replace_op(replaced, _results(fused, replaced, definition))
    return None


def _why_apart(gating, routing) -> str | None:
    if gating.operation.block != routing.operation.block:
        return "they are in different blocks"
    if gating.target is not None and routing.target is not None and gating.target != routing.target:
        return f"it is for {routing.target}, and the gating for {gating.target}"
    if _needed(routing, gating) is None:
        return "what it copies depends on what the gating gives"
    return None


def _needed(routing, gating) -> list[ir.Operation] | None:
    """The ops between the two that the routing's other operands come from, in order; None if the gating is among what
    they come from."""
    block, found = gating.operation.block, set()
    between = [op.operation for op in block.operations]
    between = between[between.index(gating.operation) : between.index(routing.operation)]
    waiting = [value for value in (routing.x, routing.scale, routing.offset) if value is not None]
    while waiting:
        op = waiting.pop().owner
        if isinstance(op, ir.Block) or op not in between or op in found:
            continue
        if op == gating.operation:
            return None
        found.add(op)
        waiting += op.operands
    return [op for op in between if op in found]


def _both(gating, routing) -> ir.OpView:
    operands = {"logits": gating.x}
    operands.update((operand.name, getattr(gating, operand.name)) for operand in _GATING.operands[1:])
    operands.update((name, getattr(routing, name)) for name in ("x", "scale", "offset"))
    fused = ASCEND.by_name["ascend.moe_gating_routing"]
    ids_elsewhere = sum(1 for _ in gating.expert_idx.uses) > 1
    values = {result.name: getattr(gating, result.name) for result in _GATING.results}
    values["expert_idx"] = gating.expert_idx if ids_elsewhere else None
    values.update((result.name, getattr(routing, result.name)) for result in _ROUTING.results)
    attributes = {a.name: getattr(op, a.name) for op in (gating, routing) for a in op.definition.attributes}
    return ASCEND.classes["MoeGatingRouting"].build(
        *(operands[operand.name] for operand in fused.operands),
        results=[value and value.type for value in (values[result.name] for result in fused.results)],
        **attributes | {"target": routing.target or gating.target},
    )


def _results(fused, replaced, definition) -> list[ir.Value | None]:
    """What of a fused op stands for each result of an op; None for the ids, if only the routing needs them."""
    names = [result.name for result in definition.results]
    return [getattr(fused, name) for name in names if getattr(replaced, name) is not None]
