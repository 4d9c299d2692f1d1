"""Shape, dtype and attribute rule of MoE gating and routing as one operator: both rules, one after the other."""

from collections.abc import Sequence

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
    *,
    k: int,
    k_group: int = 1,
    group_count: int = 1,
    group_select_mode: int = 0,
    renorm: int = 0,
    norm_type: int = 0,
    out_flag: bool = False,
    expert_num: int,
    active_num: int = -1,
    expert_capacity: int = -1,
    drop_pad_mode: int = 0,
    expert_tokens_num_type: int = 1,
    expert_tokens_num_flag: bool = True,
    quant_mode: int = -1,
    active_expert_range: Sequence[int] = (),
    row_idx_type: int = 0,
    index_dtype: str = "int64",
    target: str | None = None,
) -> tuple[Shaped, Shaped, Shaped | None, Shaped, Shaped, Shaped | None, Shaped | None]:
    """The types of gating's results, then of those of a routing of `x` by its `expert_idx`; None for what there is not.

    Errors are those of the two operators, and named after them."""
    chosen = moe_gating_top_k(
        logits, bias, input_ids, tid2eid, additional_bias, additional_token_mask, k=k, k_group=k_group,
        group_count=group_count, group_select_mode=group_select_mode, renorm=renorm, norm_type=norm_type,
        out_flag=out_flag, target=target,
    )  # fmt: skip
    routed = moe_init_routing(
        x, chosen[1], scale, offset, expert_num=expert_num, active_num=active_num, expert_capacity=expert_capacity,
        drop_pad_mode=drop_pad_mode, expert_tokens_num_type=expert_tokens_num_type,
        expert_tokens_num_flag=expert_tokens_num_flag, quant_mode=quant_mode, active_expert_range=active_expert_range,
        row_idx_type=row_idx_type, index_dtype=index_dtype, target=target,
    )  # fmt: skip
    return *chosen, *routed
