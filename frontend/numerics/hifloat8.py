"""HiFloat8, the 8-bit format of tapered precision, as uint8 bit patterns.

After the sign a prefix says how many bits the exponent has, so numbers around 1 get three mantissa bits and those at
the ends of the range one:

    prefix   exponents          mantissa bits
    11       +-8 .. +-15        1
    10       +-4 .. +-7         2
    01       +-2, +-3           3
    001      +-1                3
    0001     0                  3
    0000     none: 2^(m - 23) for m = 1..7, zero for m = 0

An exponent is stored as its sign (1 for negative) and its magnitude without the leading 1. 0x80 is NaN, so there is no
negative zero, and what would be +-1.5 * 2^15 is infinity.
"""

import jax.numpy as jnp
import numpy as np
from jax import lax

NAN, INFINITY, LARGEST = 0x80, 0x6F, 32768.0


def encode(x):
    """float32 [...] -> uint8 [...]: the nearest number, ties away from zero; infinity from 40960, zero below 2^-23."""
    bits = lax.bitcast_convert_type(x, jnp.int32)
    magnitude = bits & 0x7FFFFFFF
    exponent = (magnitude >> 23) - 127
    width = _mantissa_bits(exponent)
    # Half a unit of the last place is the top bit of what is cut off. A carry out of the mantissa leaves it zero, which
    # the next binade has too, however short its mantissa.
    rounded = magnitude + (np.int32(0x400000) >> width)
    exponent, mantissa = (rounded >> 23) - 127, (rounded >> 20) & 7
    code = _assemble(exponent, mantissa)
    code = jnp.where(magnitude >= _bits_of(1.25 * 2.0**15), INFINITY, code)
    code = jnp.where(magnitude < _bits_of(2.0**-22), jnp.where(magnitude < _bits_of(2.0**-23), 0, 1), code)
    code = jnp.where((bits < 0) & (code > 0), code | 0x80, code)
    return jnp.where(magnitude > 0x7F800000, NAN, code).astype(jnp.uint8)


def decode(codes):
    """uint8 [...] -> float32 [...], exactly."""
    return jnp.asarray(TABLE)[codes.astype(jnp.int32)]


def _bits_of(value):
    return np.float32(value).view(np.int32)


def _mantissa_bits(exponent):
    size = jnp.abs(exponent)
    normal = 3 - (size >= 4).astype(jnp.int32) - (size >= 8).astype(jnp.int32)
    return jnp.where(exponent < -15, 0, normal)


def _assemble(exponent, mantissa):
    """The code of a positive number whose mantissa is three bits, of which only the format's are set."""
    size = jnp.abs(exponent)
    negative = (exponent < 0).astype(jnp.int32)
    four = 0x60 | negative << 4 | (size & 7) << 1 | mantissa >> 2
    three = 0x40 | negative << 4 | (size & 3) << 2 | mantissa >> 1
    two = 0x20 | negative << 4 | (size & 1) << 3 | mantissa
    one = 0x10 | negative << 3 | mantissa
    code = jnp.where(size >= 8, four, jnp.where(size >= 4, three, jnp.where(size >= 2, two, one)))
    code = jnp.where(size == 0, 0x08 | mantissa, code)
    return jnp.where(exponent < -15, exponent + 23, code)


def _decode_one(code):
    """By the definition of the format, a field at a time."""
    sign, rest = (-1.0 if code & 0x80 else 1.0), f"{code & 0x7F:07b}"
    if code & 0x7F == INFINITY:
        return sign * np.inf
    if rest.startswith("0000"):
        m = int(rest[4:], 2)
        return sign * 2.0 ** (m - 23) if m else np.nan if code == NAN else 0.0
    widths = {"11": 4, "10": 3, "01": 2, "001": 1, "0001": 0}
    prefix, width = next(item for item in widths.items() if rest.startswith(item[0]))
    field, mantissa = rest[len(prefix) : len(prefix) + width], rest[len(prefix) + width :]
    exponent = int("1" + field[1:], 2) * (-1 if field[0] == "1" else 1) if field else 0
    return sign * 2.0**exponent * (1 + int(mantissa, 2) / 2 ** len(mantissa))


#: The value of every code.
TABLE = np.array([_decode_one(code) for code in range(256)], np.float32)
