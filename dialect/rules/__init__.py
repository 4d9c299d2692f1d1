"""The shape and dtype rule of every operator: one function each, used by JAX and by the MLIR verifier alike."""

from jascend.dialect.rules.moe_gating_routing import moe_gating_routing
from jascend.dialect.rules.moe_gating_top_k import moe_gating_top_k, selects_groups
from jascend.dialect.rules.moe_init_routing import QUANTIZATIONS, moe_init_routing
from jascend.dialect.rules.row_wise import row_wise, row_wise_pair
from jascend.dialect.rules.sampling import (
    COUNTS,
    DRAWS,
    apply_top_k_top_p,
    apply_top_k_top_p_with_sorted,
    filter_sample,
    random_exponential,
    random_key,
    sort,
)
from jascend.dialect.rules.shaped import TARGETS, Rows, Shaped, check_target, same_shape, same_size
from jascend.dialect.rules.top_k_top_p_sample import MAX_VOCABULARY, top_k_top_p_sample

__all__ = [
    "COUNTS",
    "DRAWS",
    "MAX_VOCABULARY",
    "QUANTIZATIONS",
    "TARGETS",
    "Rows",
    "Shaped",
    "apply_top_k_top_p",
    "apply_top_k_top_p_with_sorted",
    "check_target",
    "filter_sample",
    "moe_gating_routing",
    "moe_gating_top_k",
    "moe_init_routing",
    "random_exponential",
    "random_key",
    "row_wise",
    "row_wise_pair",
    "same_shape",
    "same_size",
    "selects_groups",
    "sort",
    "top_k_top_p_sample",
]
