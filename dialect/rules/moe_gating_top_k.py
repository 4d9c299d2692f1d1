"""Shape, dtype and attribute rule of the MoE gating operator.

The order of the checks is that of CANN's PyTorch layer, then that of the tiling for what is left. Wrong dtypes and an
empty `x` are ParamInvalid; what the tiling refuses is TilingError.
"""

from jascend.dialect.errors import ParamInvalid, TilingError
from jascend.dialect.rules.shaped import (
    FLOATS,
    INT32_MAX,
    Shaped,
    check_dtype,
    check_present,
    check_rank,
    check_target,
    same_size,
)

_OP = "moe_gating_top_k"
_INTEGERS = ("int32", "int64")
MAX_EXPERTS = 2048
_MAX_K_950 = 64


def moe_gating_top_k(
    x: Shaped | None,
    bias: Shaped | None = None,
    input_ids: Shaped | None = None,
    tid2eid: Shaped | None = None,
    additional_bias: Shaped | None = None,
    additional_token_mask: Shaped | None = None,
    *,
    k: int,
    k_group: int = 1,
    group_count: int = 1,
    group_select_mode: int = 0,
    renorm: int = 0,
    norm_type: int = 0,
    out_flag: bool = False,
    target: str | None = None,
) -> tuple[Shaped, Shaped, Shaped | None]:
    """The types of `y`, `expert_idx` and, with `out_flag`, `out`; None otherwise."""
    check_target(_OP, target)
    check_present(_OP, "x", x)
    tokens, experts = _tokens_and_experts(x)

    # The PyTorch layer.
    for name, value in (("k", k), ("k_group", k_group), ("group_count", group_count)):
        _check(value > 0, name, f"must be positive, but is {value}")
    per_group = experts // group_count
    _check(
        k <= per_group * k_group,
        "k",
        f"must be at most k_group * (experts / group_count) = {k_group} * {per_group}, but is {k}",
    )
    _check(k_group <= group_count, "k_group", f"must be at most group_count ({group_count}), but is {k_group}")
    _check(group_select_mode in (0, 1), "group_select_mode", f"must be 0 or 1, but is {group_select_mode}")
    _check(norm_type in (0, 1, 2), "norm_type", f"must be 0, 1 or 2, but is {norm_type}")
    _check(renorm == 0, "renorm", f"must be 0, but is {renorm}")
    _check_per_expert("bias", bias, experts)
    _check_per_expert("additional_bias", additional_bias, experts)
    if additional_token_mask is not None:
        check_dtype(_OP, "additional_token_mask", additional_token_mask, ("bool",))
        _check_per_token("additional_token_mask", additional_token_mask, tokens)
    for name, value in (("input_ids", input_ids), ("tid2eid", tid2eid)):
        _check(value is None or 0 not in value.shape, name, f"must not be empty, but is {value}")
    check_dtype(_OP, "x", x, FLOATS)

    # The tiling: dtypes, shapes, attributes.
    for name, value in (("bias", bias), ("additional_bias", additional_bias)):
        if value is not None and value.dtype != x.dtype:
            raise ParamInvalid(_OP, name, f"must have the dtype of x ({x.dtype}), but is {value}")
    for name, value in (("input_ids", input_ids), ("tid2eid", tid2eid)):
        if value is not None:
            check_dtype(_OP, name, value, _INTEGERS)
    check_rank(_OP, "x", x, 2, "[T, E]", TilingError)
    _check_hash_inputs(input_ids, tid2eid, tokens, k)
    _check(
        additional_token_mask is None or additional_bias is not None,
        "additional_bias",
        "is required with additional_token_mask, but is None",
    )
    _check(experts <= MAX_EXPERTS, "x", f"may have at most {MAX_EXPERTS} experts, but is {x}")
    if target == "ascend950":
        _check(k <= _MAX_K_950, "k", f"must be at most {_MAX_K_950} on {target}, but is {k}")
    elif target is not None and norm_type == 2:
        _check(group_count == 1, "group_count", f"must be 1 with norm_type 2 on {target}, but is {group_count}")
    _check(
        experts % group_count == 0,
        "group_count",
        f"must divide the number of experts ({experts}), but is {group_count}",
    )
    _check(
        group_select_mode == 0 or per_group >= 2,
        "group_select_mode",
        f"1 needs at least 2 experts a group, but there are {experts} experts in {group_count} groups",
    )
    if selects_groups(experts, k_group, group_count):
        padded = group_count * (-(-per_group // 32) * 32)
        _check(
            padded <= MAX_EXPERTS,
            "group_count",
            f"{group_count} groups of {per_group} experts, each padded to a multiple of 32, are {padded} experts: "
            f"at most {MAX_EXPERTS} are allowed",
        )
        _check(input_ids is None, "input_ids", f"excludes groups, but k_group is {k_group} of {group_count}")

    result = (tokens, k)
    return Shaped(result, x.dtype), Shaped(result, "int32"), Shaped(x.shape, "float32") if out_flag else None


def selects_groups(experts: int, k_group: int, group_count: int) -> bool:
    """Whether groups matter: not if there is one, if all are kept, or if each is a single expert."""
    return k_group < group_count < experts


def _tokens_and_experts(x: Shaped):
    """The number of rows, None if not known, and that of experts."""
    _check(len(x.shape) > 0, "x", f"must have shape [T, E], but is {x} of rank 0")
    if any(isinstance(size, int) and size == 0 for size in x.shape):
        raise ParamInvalid(_OP, "x", f"must not be empty, but is {x}")
    experts = x.shape[-1]
    _check(isinstance(experts, int), "x", f"must have a fixed number of experts, but is {x}")
    return x.shape[0] if len(x.shape) == 2 else None, experts


def _check(holds: bool, argument: str, message: str) -> None:
    if not holds:
        raise TilingError(_OP, argument, message)


def _check_per_expert(argument: str, value: Shaped | None, experts: int) -> None:
    if value is None:
        return
    check_rank(_OP, argument, value, 1, "[E]", TilingError)
    _check(
        same_size(value.shape[0], experts),
        argument,
        f"must have one element an expert, shape [{experts}], but is {value}",
    )


def _check_per_token(argument: str, value: Shaped, tokens) -> None:
    check_rank(_OP, argument, value, 1, "[T]", TilingError)
    _check(
        same_size(value.shape[0], tokens), argument, f"must have one element a token, shape [{tokens}], but is {value}"
    )


def _check_hash_inputs(input_ids: Shaped | None, tid2eid: Shaped | None, tokens, k: int) -> None:
    if input_ids is None and tid2eid is None:
        return
    _check(input_ids is not None, "input_ids", "is required with tid2eid, but is None")
    _check(tid2eid is not None, "tid2eid", "is required with input_ids, but is None")
    _check_per_token("input_ids", input_ids, tokens)
    check_rank(_OP, "tid2eid", tid2eid, 2, "[n, k]", TilingError)
    _check(same_size(tid2eid.shape[1], k), "tid2eid", f"must have k = {k} columns, but is {tid2eid}")
    ids = tid2eid.shape[0]
    _check(
        not isinstance(ids, int) or ids <= INT32_MAX, "tid2eid", f"may have at most {INT32_MAX} rows, but is {tid2eid}"
    )
