"""Shape, dtype and attribute rule of MoE gating and routing as one operator: both rules, one after the other."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from jascend.dialect.rules.moe_gating_top_k import moe_gating_top_k
from jascend.dialect.rules.moe_init_routing import moe_init_routing
from jascend.dialect.rules.shaped import Shaped


def moe_gating_routing(
    logits: Shaped | None,
    x: Shaped | None,
    bias: Shaped | None = None,
    input_ids: Shaped | None = None,
    tid2eid: Shaped | None = None,
    additional_bias: Shaped | None = None,
    additional_token_mask: Shaped | None = None,
    scale: Shaped | None = None,
    offset: Shaped | None = None,
    **attributes: Any,
) -> tuple[Shaped, Shaped, Shaped | None, Shaped, Shaped, Shaped | None, Shaped | None]:
    """The types of gating's results, then of those of a routing of `x` by its `expert_idx`; None for what there is not.

    `attributes` are the keyword arguments of the two rules, `target` that of both; what neither knows concerns no type.
    Errors are those of the two operators, and named after them."""
    masks = bias, input_ids, tid2eid, additional_bias, additional_token_mask
    chosen = moe_gating_top_k(logits, *masks, **_known(moe_gating_top_k, attributes))
    return *chosen, *moe_init_routing(x, chosen[1], scale, offset, **_known(moe_init_routing, attributes))


def _known(rule: Callable, attributes: Mapping[str, Any]) -> dict[str, Any]:
    known = inspect.signature(rule).parameters
    return {name: value for name, value in attributes.items() if name in known}
