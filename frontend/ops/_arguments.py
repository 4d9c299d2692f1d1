"""From what a caller passes to the operands of a primitive.

Rules see types before anything is converted, so that the first error a call gives is the one the operator's page lists
first, whatever mixture of arrays and scalars it was made with.
"""

import jax
import jax.numpy as jnp
import numpy as np

from jascend.dialect.errors import ParamInvalid
from jascend.dialect.rules import Shaped


def array(operator, argument, value):
    """A JAX array or None. NumPy arrays are taken as JAX takes them; lists and scalars are refused."""
    if value is None or isinstance(value, jax.Array):
        return value
    if isinstance(value, np.ndarray) or hasattr(value, "__jax_array__"):
        return jnp.asarray(value)
    raise ParamInvalid(operator, argument, f"must be an array, but is {value!r} ({type(value).__name__})")


def shaped(value):
    return None if value is None else Shaped(tuple(value.shape), value.dtype.name)


def row_parameter(operator, argument, value):
    """An array of one element a row, or a scalar for all rows: `Scalar`, JAX array, or None."""
    if isinstance(value, (bool, np.bool_)):
        raise ParamInvalid(operator, argument, f"must be a number or an array, but is {value!r}")
    if isinstance(value, (int, float, np.number)):
        return Scalar(operator, argument, value)
    value = array(operator, argument, value)
    # What `jit` makes of a Python scalar argument.
    if value is not None and value.ndim == 0 and value.weak_type:
        return Scalar(operator, argument, value)
    return value


class Scalar:
    """A number that stands for one element a row."""

    def __init__(self, operator, argument, value):
        self.operator, self.argument, self.value = operator, argument, value

    def shaped(self, rows: Shaped | None, dtype: str) -> Shaped:
        """The type it is broadcast to. A number of the wrong kind keeps its own dtype, for the rule to refuse."""
        integral = isinstance(self.value, (int, np.integer)) or (
            isinstance(self.value, jax.Array) and jnp.issubdtype(self.value.dtype, jnp.integer)
        )
        if dtype == "int32" and not integral:
            dtype = getattr(self.value, "dtype", np.dtype(float)).name
        return Shaped(rows.shape[:1] if rows is not None and rows.shape else (None,), dtype)

    def broadcast(self, batch, dtype):
        if dtype == "int32" and not isinstance(self.value, jax.Array) and not -(2**31) <= self.value < 2**31:
            raise ParamInvalid(self.operator, self.argument, f"must fit int32, but is {self.value}")
        return jnp.broadcast_to(jnp.asarray(self.value).astype(dtype), (batch,))


def parameter_shaped(value, rows, dtype):
    return value.shaped(rows, dtype) if isinstance(value, Scalar) else shaped(value)


def parameter_operand(value, batch, dtype):
    return value.broadcast(batch, dtype) if isinstance(value, Scalar) else value


def static_int(operator, argument, value, low=-(2**63), high=2**63 - 1):
    """A Python int within [low, high] that is known when the call is traced."""
    _check_static(operator, argument, value)
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise ParamInvalid(operator, argument, f"must be an integer, but is {value!r} ({type(value).__name__})")
    if not low <= value <= high:
        raise ParamInvalid(operator, argument, f"must be from {low} to {high}, but is {value}")
    return int(value)


def static_float(operator, argument, value):
    """A Python float that is known when the call is traced."""
    _check_static(operator, argument, value)
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise ParamInvalid(operator, argument, f"must be a number, but is {value!r} ({type(value).__name__})")
    return float(value)


def static_bool(operator, argument, value):
    """A Python bool that is known when the call is traced."""
    _check_static(operator, argument, value)
    if not isinstance(value, (bool, np.bool_)):
        raise ParamInvalid(operator, argument, f"must be True or False, but is {value!r} ({type(value).__name__})")
    return bool(value)


def _check_static(operator, argument, value):
    if isinstance(value, jax.core.Tracer):
        raise ParamInvalid(
            operator,
            argument,
            f"decides what is computed and must be a Python value, but is traced ({value.aval}); "
            f"list it in static_argnames of jax.jit, or bind it with functools.partial",
        )
