"""The errors that operator arguments raise: `ja.errors.ParamInvalid` and its siblings."""

from jascend.dialect.errors import OperatorError, ParamInvalid, ParamNullptr, TilingError, Unsupported

__all__ = ["OperatorError", "ParamInvalid", "ParamNullptr", "TilingError", "Unsupported"]
