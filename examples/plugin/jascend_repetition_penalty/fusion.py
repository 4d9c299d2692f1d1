"""`fold-repetition-penalty`: a penalty that only feeds another operator is elementwise work, computed where that one loads.

Before:

    %0 = "ascend.repetition_penalty"(%logits, %seen, %penalty) ...
    %1 = "ascend.apply_top_k_top_p"(%0, %p, %k) ...

After:

    %0 = linalg.generic ... ins(%logits, %seen, %penalty) { ... arith.select ... }
    %1 = "ascend.apply_top_k_top_p"(%0, %p, %k) ...
"""

from mlir import ir
from mlir.dialects import arith

from jascend.passes import elementwise, rewrite


@rewrite("ascend.repetition_penalty")
def fold_repetition_penalty(op, rewriter):
    users = [use.owner.operation.name for use in op.out.uses]
    if len(users) != 1 or not users[0].startswith("ascend.") or users[0] == "ascend.repetition_penalty":
        return "not folded: something else than one operator needs the penalized logits"
    operands = [(op.logits, (0, 1)), (op.seen, (0, 1)), (op.penalty, (0,))]
    rewriter.replace_op(op, elementwise(op.logits, operands, _penalized))


def _penalized(logit, seen, penalty):
    f32 = ir.F32Type.get()
    x = logit if logit.type == f32 else arith.extf(f32, logit)
    is_positive = arith.cmpf(arith.CmpFPredicate.OGT, x, arith.constant(f32, 0.0))
    changed = arith.select(is_positive, arith.divf(x, penalty), arith.mulf(x, penalty))
    result = arith.select(seen, changed, x)
    return result if logit.type == f32 else arith.truncf(logit.type, result)
