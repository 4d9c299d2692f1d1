"""What a kernel of elementwise work and row reductions can leave in memory."""

from jascend.dialect.errors import ParamInvalid
from jascend.dialect.rules.shaped import FLOATS, Shaped, check_dtype, same_size


def row_wise(x: Shaped) -> Shaped:
    """The value itself: [B, ...] of floats, int32, int8 or booleans."""
    _check("row_wise", "x", x)
    return x


def row_wise_pair(x: Shaped, other: Shaped) -> list[Shaped]:
    """Both values: [B, ...] of one shape, each as for `row_wise`."""
    _check("row_wise_pair", "x", x)
    _check("row_wise_pair", "other", other)
    if len(other.shape) != len(x.shape) or not all(map(same_size, x.shape, other.shape)):
        raise ParamInvalid("row_wise_pair", "other", f"must have the shape of {x}, but is {other}")
    return [x, other]


def _check(operator: str, name: str, x: Shaped) -> None:
    check_dtype(operator, name, x, (*FLOATS, "int32", "int8", "bool"))
    if not x.shape:
        raise ParamInvalid(operator, name, f"must have at least one axis, but is {x}")
