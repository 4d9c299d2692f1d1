"""Exact views of floating-point arrays, through their storage bits.

XLA:CPU may keep a value computed in float16 or bfloat16 at float32 precision until it is stored. A decision taken on
such a value differs from one taken on the stored value, and two uses of it may differ from each other. A bitcast to
integers forces the rounding, so everything here starts from the bits and never returns to the array. (Going back by a
bitcast would not do: XLA removes the pair.)
"""

import jax.numpy as jnp
import numpy as np
from jax import lax

#: Below the key of every value; what padding gets.
PADDING_KEY = np.int32(-(2**31))

_EXPONENT = {"float32": 0x7F800000, "bfloat16": 0x7F80, "float16": 0x7C00}
_LEAST = {"float32": 0x00800000, "bfloat16": 0x0080, "float16": 0}  # what is smaller is subnormal in float32
_MAGNITUDE = {"float32": 0x7FFFFFFF, "bfloat16": 0x7FFF, "float16": 0x7FFF}


def bits_of(x):
    """The storage bits of `x` as int32; 16-bit dtypes are zero-extended."""
    if x.dtype == jnp.float32:
        return lax.bitcast_convert_type(x, jnp.int32)
    return lax.bitcast_convert_type(x, jnp.uint16).astype(jnp.int32)


def from_bits(bits, dtype):
    """The inverse of `bits_of`."""
    if dtype == jnp.float32:
        return lax.bitcast_convert_type(bits, jnp.float32)
    return lax.bitcast_convert_type(bits.astype(jnp.uint16), dtype)


def bytes_of_nibbles(x):
    """Elements of 4 bits as their codes, a uint8 each."""
    return lax.bitcast_convert_type(x, jnp.uint4).astype(jnp.uint8)


def nibbles_of_bytes(codes, dtype):
    """The inverse of `bytes_of_nibbles`."""
    return lax.bitcast_convert_type(codes.astype(jnp.uint4), dtype)


def keys_of(bits, dtype):
    """int32 keys that order like the values: -inf least, -0.0 equal to +0.0, NaN of either sign equal and greatest.
    What is subnormal in float32 equals 0, as it does in XLA's arithmetic and in that of vector units."""
    name = jnp.dtype(dtype).name
    magnitude = bits & _MAGNITUDE[name]
    negative = bits != magnitude
    magnitude = jnp.where(magnitude < _LEAST[name], 0, magnitude)
    return jnp.where(magnitude > _EXPONENT[name], nan_key(dtype), jnp.where(negative, -magnitude, magnitude))


def nan_key(dtype):
    """The greatest key; also, negated, a lower bound of all keys."""
    return np.int32(_MAGNITUDE[jnp.dtype(dtype).name])


def infinity_key(dtype):
    """The key of +inf. Negated, that of -inf."""
    return np.int32(_EXPONENT[jnp.dtype(dtype).name])


def negative_infinity_bits(dtype):
    name = jnp.dtype(dtype).name
    return np.int32(_EXPONENT[name] - (2**31 if name == "float32" else -(2**15)))


def float32_of_keys(keys, dtype):
    """The value of each key as float32, exactly (for zero, +0.0)."""
    magnitude = jnp.abs(keys)
    if dtype == jnp.float32:
        value = lax.bitcast_convert_type(magnitude, jnp.float32)
    elif dtype == jnp.bfloat16:
        value = lax.bitcast_convert_type(magnitude << 16, jnp.float32)
    else:
        # A subnormal is its mantissa times 2^-24. A normal number has its exponent rebiased from 15 to 127, except
        # that all ones (infinity, NaN) stay all ones.
        rebias = jnp.where(magnitude >= 0x7C00, np.int32(224 << 23), np.int32(112 << 23))
        normal = lax.bitcast_convert_type((magnitude << 13) + rebias, jnp.float32)
        value = jnp.where(magnitude < 0x0400, magnitude.astype(jnp.float32) * np.float32(2.0**-24), normal)
    return jnp.where(keys < 0, -value, value)
