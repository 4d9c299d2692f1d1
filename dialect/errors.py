"""The errors that operator arguments raise, with the CANN status each one corresponds to.

A rule checks in the order of its operator's CANN page, so the first thing wrong here is the first thing wrong there.
"""


class OperatorError(ValueError):
    """An operator call that cannot be carried out.

    Attributes:
        operator: the operator's name, as in `jascend.<operator>`.
        argument: the argument at fault, or None.
        code: the CANN status (`aclnnStatus`), or None where CANN has none.
    """

    code: int | None = None

    def __init__(self, operator: str, argument: str | None, message: str):
        self.operator = operator
        self.argument = argument
        where = f"{operator}: {argument}" if argument else f"{operator}:"
        super().__init__(f"{where} {message}")

    def __reduce__(self):  # the text holds the prefix already, so unpickling must not go through __init__
        return _restore, (type(self), self.args, self.operator, self.argument)


def _restore(cls, args, operator, argument):
    error = cls.__new__(cls, *args)
    error.operator, error.argument = operator, argument
    return error


class ParamNullptr(OperatorError, TypeError):
    """A required argument is missing (ACLNN_ERR_PARAM_NULLPTR)."""

    code = 161001


class ParamInvalid(OperatorError):
    """An argument has the wrong dtype, rank or size (ACLNN_ERR_PARAM_INVALID)."""

    code = 161002


class TilingError(OperatorError):
    """The shapes are ones that the operator's tiling refuses (ACLNN_ERR_INNER_TILING_ERROR)."""

    code = 561002


class Unsupported(OperatorError, NotImplementedError):
    """The call is well formed, but this target, or this project, does not do it."""
