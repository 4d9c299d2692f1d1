"""What a kernel of elementwise work and row reductions can leave in memory."""

from jascend.dialect.errors import ParamInvalid
from jascend.dialect.rules.shaped import FLOATS, Shaped, check_dtype


def row_wise(x: Shaped) -> Shaped:
    """The value itself: [B, ...] of floats, int32, int8 or booleans."""
    check_dtype("row_wise", "x", x, (*FLOATS, "int32", "int8", "bool"))
    if not x.shape:
        raise ParamInvalid("row_wise", "x", f"must have at least one axis, but is {x}")
    return x
