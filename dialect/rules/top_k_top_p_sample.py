"""Shape and dtype rule of `top_k_top_p_sample`."""

from jascend.dialect.errors import ParamInvalid, TilingError
from jascend.dialect.rules.shaped import (
    FLOATS,
    Shaped,
    check_dtype,
    check_present,
    check_rank,
    check_target,
    same_size,
)

#: The longest row that CANN's tiling accepts.
MAX_VOCABULARY = 2**20

_OP = "top_k_top_p_sample"


def top_k_top_p_sample(
    logits: Shaped | None,
    top_k: Shaped | None,
    top_p: Shaped | None,
    q: Shaped | None = None,
    min_ps: Shaped | None = None,
    *,
    ks_max: int = 1024,
    is_need_logits: bool = False,
    is_need_sample_result: bool = False,
    index_dtype: str = "int64",
    target: str | None = None,
) -> tuple[Shaped | None, Shaped | None, Shaped | None, Shaped | None]:
    """The checks of aclnnTopKTopPSampleV2: null, dtypes, then those of its tiling in their order.

    Sizes that do not fit are found by the tiling, but have the code of an invalid parameter, as CANN's page lists it;
    ranks have the tiling's. Empty tensors are refused, which CANN forbids but does not check.
    """
    check_target(_OP, target)
    for argument, value in (("logits", logits), ("top_k", top_k), ("top_p", top_p)):
        check_present(_OP, argument, value)

    check_dtype(_OP, "logits", logits, FLOATS)
    check_dtype(_OP, "top_k", top_k, ("int32",))
    _check_same_dtype("top_p", top_p, logits)
    if q is not None:
        check_dtype(_OP, "q", q, ("float32",))
    _check_same_dtype("min_ps", min_ps, logits)
    if ks_max < 1:
        raise ParamInvalid(_OP, "ks_max", f"must be at least 1, but is {ks_max}")

    check_rank(_OP, "logits", logits, 2, "[B, V]", TilingError)
    batch, size = logits.shape
    if isinstance(batch, int) and batch == 0 or isinstance(size, int) and size == 0:
        raise ParamInvalid(_OP, "logits", f"must not be empty, but is {logits}")
    if isinstance(size, int) and size > MAX_VOCABULARY:
        raise TilingError(_OP, "logits", f"may have at most {MAX_VOCABULARY} elements a row, but is {logits}")
    check_rank(_OP, "top_k", top_k, 1, "[B]", TilingError)
    check_rank(_OP, "top_p", top_p, 1, "[B]", TilingError)
    _check_batch("top_k", top_k, batch)
    _check_batch("top_p", top_p, batch)
    if q is not None:
        if is_need_sample_result:
            raise TilingError(_OP, "q", f"must be None where is_need_sample_result is set, but is {q}")
        check_rank(_OP, "q", q, 2, "[B, V]", TilingError)
        if not (same_size(q.shape[0], batch) and same_size(q.shape[1], size)):
            raise ParamInvalid(_OP, "q", f"must be shaped like logits {logits}, but is {q}")
    if min_ps is not None:
        check_rank(_OP, "min_ps", min_ps, 1, "[B]", TilingError)
        _check_batch("min_ps", min_ps, batch)

    rows = logits.shape
    return (
        None if is_need_sample_result else Shaped((batch,), index_dtype),
        Shaped(rows, "float32") if is_need_logits else None,
        Shaped(rows, index_dtype) if is_need_sample_result else None,
        Shaped(rows, "float32") if is_need_sample_result else None,
    )


def _check_same_dtype(argument: str, value: Shaped | None, logits: Shaped) -> None:
    if value is not None and value.dtype != logits.dtype:
        message = f"must have the dtype of logits ({logits.dtype}), but is {value}"
        raise ParamInvalid(_OP, argument, f"{message}; cast it with {argument}.astype(logits.dtype)")


def _check_batch(argument: str, value: Shaped, batch) -> None:
    if not same_size(value.shape[0], batch):
        raise ParamInvalid(_OP, argument, f"must have one element a row, shape [{batch}], but is {value}")
