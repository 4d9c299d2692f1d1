"""Shape, dtype and attribute rule of MoE gating and routing as one operator: both rules, one after the other."""

from collections.abc import Mapping
from typing import Any

from jascend.dialect.rules.moe_gating_top_k import moe_gating_top_k
from jascend.dialect.rules.moe_init_routing import moe_init_routing
from jascend.dialect.rules.shaped import Shaped


def moe_gating_routing(
    logits: Shaped | None,
    x: Shaped | None,
    *operands: Shaped | None,
    gating: Mapping[str, Any],
    routing: Mapping[str, Any],
    target: str | None = None,
) -> tuple[Shaped, Shaped, Shaped | None, Shaped, Shaped, Shaped | None, Shaped | None]:
    """The types of gating's results, then of those of a routing of `x` by its `expert_idx`; None for what there is not.

    `operands` are those that gating takes beside `logits`, then scale and offset; `gating` and `routing` are the keyword
    arguments of the two rules. Errors are those of the two operators, and named after them."""
    *of_gating, scale, offset = operands
    chosen = moe_gating_top_k(logits, *of_gating, **gating, target=target)
    return *chosen, *moe_init_routing(x, chosen[1], scale, offset, **routing, target=target)
