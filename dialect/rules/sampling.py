"""Shape and dtype rules of the sampling operators.

Each function takes the operands in the operator's order and returns the type of its results, or raises. The order of
the checks is that of the CANN sources, so that a call with several faults reports the same one.
"""

from jascend.dialect.errors import ParamInvalid, ParamNullptr, TilingError
from jascend.dialect.rules.shaped import (
    FLOATS,
    Shaped,
    check_dtype,
    check_index_range,
    check_present,
    check_rank,
    check_target,
    same_shape,
    same_size,
)

DRAWS = ("exponential", "gumbel")
COUNTS = ("array", "row")


def sort(x: Shaped | None, *, descending: bool = False) -> tuple[Shaped, Shaped]:
    """Values like `x`, and int32 indices of the same shape."""
    check_present("sort", "x", x)
    check_dtype("sort", "x", x, FLOATS)
    if len(x.shape) == 0:
        raise ParamInvalid("sort", "x", f"must have at least one axis, but is {x}")
    check_index_range("sort", "x", x)
    return x, Shaped(x.shape, "int32")


def apply_top_k_top_p(
    logits: Shaped | None, p: Shaped | None = None, k: Shaped | None = None, *, target: str | None = None
) -> Shaped:
    """The checks of aclnnApplyTopKTopPGetWorkspaceSize, in its order: null, dtypes, ranks, sizes."""
    op = "apply_top_k_top_p"
    check_target(op, target)
    check_present(op, "logits", logits)
    if p is None and k is None:
        raise ParamNullptr(op, "p and k", "are both None: at least one is required")
    return _filtered(op, logits, p, k)


def _filtered(op: str, logits: Shaped, p: Shaped | None, k: Shaped | None) -> Shaped:
    """The dtypes, ranks and sizes of the filter's operands."""
    check_dtype(op, "logits", logits, FLOATS)
    if p is not None:
        check_dtype(op, "p", p, FLOATS)
    if k is not None:
        check_dtype(op, "k", k, ("int32",))
    _check_p_dtype(op, p, "logits", logits)

    check_rank(op, "logits", logits, 2, "[B, V]")
    batch = logits.shape[0]
    if p is not None:
        check_rank(op, "p", p, 1, "[B]")
    if k is not None:
        check_rank(op, "k", k, 1, "[B]")
    _check_batch(op, "p", p, batch, ParamInvalid)
    _check_batch(op, "k", k, batch, ParamInvalid)
    check_index_range(op, "logits", logits)
    return logits


def filter_sample(
    logits: Shaped | None,
    q: Shaped | None,
    p: Shaped | None = None,
    k: Shaped | None = None,
    key: Shaped | None = None,
    *,
    draw: str | None = None,
    low: float | None = None,
    counts: str | None = None,
    index_dtype: str = "int64",
    target: str | None = None,
) -> Shaped:
    """The checks of the filter, then those of `q`, or of what is drawn in its place; an index a row. Rows that are
    drawn from as they are need a key."""
    op = "filter_sample"
    if q is None and key is None:
        raise ParamNullptr(op, "q and key", "are both None: one is required")
    if p is None and k is None and key is not None:
        check_target(op, target)
        check_present(op, "logits", logits)
        rows = _filtered(op, logits, p, k)
    else:
        rows = apply_top_k_top_p(logits, p, k, target=target)
    if q is not None:
        check_dtype(op, "q", q, ("float32",))
        if not same_shape(q.shape, rows.shape):
            raise ParamInvalid(op, "q", f"must be shaped like logits {rows}, but is {q}")
    for argument, value in (("draw", draw), ("low", low), ("counts", counts)):
        if (value is None) != (key is None):
            raise ParamInvalid(op, argument, f"must be there with a key, and only with one, but is {value}")
    if key is not None:
        if q is not None:
            raise ParamInvalid(op, "key", f"must be None where there is q, but is {key}")
        check_key(op, key, rows.shape[0])
        check_draw(op, draw, low, counts)
    return Shaped(rows.shape[:1], index_dtype)


def random_exponential(key: Shaped | None, *, length: int, draw: str, low: float, counts: str) -> Shaped:
    """Rows of `length` numbers, one for each row of the keys."""
    op = "random_exponential"
    check_present(op, "key", key)
    check_key(op, key, None)
    check_draw(op, draw, low, counts)
    if length < 1:
        raise ParamInvalid(op, "length", f"must be at least 1, but is {length}")
    result = Shaped((key.shape[0], length), "float32")
    check_index_range(op, "length", result)
    return result


def random_key(key: Shaped | None, count: Shaped | None) -> Shaped:
    """A key for each key and number."""
    op = "random_key"
    check_present(op, "key", key)
    check_present(op, "count", count)
    check_key(op, key, None)
    check_dtype(op, "count", count, ("int32",))
    check_rank(op, "count", count, 1, "[B]")
    _check_batch(op, "count", count, key.shape[0], ParamInvalid)
    return key


def check_draw(op: str, draw: str, low: float, counts: str) -> None:
    """What numbers are drawn, and by which counters."""
    for argument, value, values in (("draw", draw, DRAWS), ("counts", counts, COUNTS)):
        if value not in values:
            raise ParamInvalid(op, argument, f"must be {' or '.join(map(repr, values))}, but is {value!r}")
    if not 0 <= low < 1 or (draw == "exponential" and low):
        allowed = "0" if draw == "exponential" else "at least 0 and below 1"
        raise ParamInvalid(op, "low", f"must be {allowed} for {draw!r}, but is {low}")


def check_key(op: str, key: Shaped, batch) -> None:
    """Two words for each row; `batch` is their number, if it is known from elsewhere."""
    check_dtype(op, "key", key, ("int32",))
    check_rank(op, "key", key, 2, "[B, 2]")
    if not same_size(key.shape[1], 2) or (batch is not None and not same_size(key.shape[0], batch)):
        raise ParamInvalid(op, "key", f"must have two words for each row, shape [{batch or 'B'}, 2], but is {key}")


def apply_top_k_top_p_with_sorted(
    sorted_value: Shaped | None,
    sorted_indices: Shaped | None,
    p: Shaped | None = None,
    k: Shaped | None = None,
    logits: Shaped | None = None,
    *,
    target: str | None = None,
) -> Shaped:
    """The checks of the graph operator: what its definition requires, then its tiling in its order.

    One check is ours and comes last: CANN's tiling only asks that `logits` has an axis, and reads out of bounds when
    it is not shaped like `sorted_value`.
    """
    op = "apply_top_k_top_p_with_sorted"
    check_target(op, target)
    check_present(op, "sorted_value", sorted_value)
    check_present(op, "sorted_indices", sorted_indices)

    check_dtype(op, "sorted_value", sorted_value, FLOATS)
    check_dtype(op, "sorted_indices", sorted_indices, ("int32",))
    _check_p_dtype(op, p, "sorted_value", sorted_value)
    if k is not None:
        check_dtype(op, "k", k, ("int32",))
    if logits is not None and logits.dtype != sorted_value.dtype:
        raise ParamInvalid(op, "logits", f"must have the dtype of sorted_value ({sorted_value.dtype}), but is {logits}")

    check_rank(op, "sorted_value", sorted_value, 2, "[B, V]", TilingError)
    check_rank(op, "sorted_indices", sorted_indices, 2, "[B, V]", TilingError)
    if not same_shape(sorted_indices.shape, sorted_value.shape):
        raise TilingError(
            op, "sorted_indices", f"must be shaped like sorted_value {sorted_value}, but is {sorted_indices}"
        )
    batch = sorted_value.shape[0]
    for argument, value in (("p", p), ("k", k)):
        if value is not None:
            check_rank(op, argument, value, 1, "[B]", TilingError)
            _check_batch(op, argument, value, batch, TilingError)
    if p is None and k is None:
        raise TilingError(op, "p and k", "are both None: at least one is required")
    check_index_range(op, "sorted_value", sorted_value)
    if logits is not None and not same_shape(logits.shape, sorted_value.shape):
        raise TilingError(op, "logits", f"must be shaped like sorted_value {sorted_value}, but is {logits}")
    return sorted_value


def _check_p_dtype(op: str, p: Shaped | None, like: str, value: Shaped) -> None:
    if p is not None and p.dtype != value.dtype:
        raise ParamInvalid(
            op, "p", f"must have the dtype of {like} ({value.dtype}), but is {p}; cast it with p.astype({like}.dtype)"
        )


def _check_batch(op: str, argument: str, value: Shaped | None, batch, error) -> None:
    if value is not None and not same_size(value.shape[0], batch):
        raise error(op, argument, f"must have one element a row, shape [{batch}], but is {value}")
