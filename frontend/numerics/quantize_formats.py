"""Conversions to 8-bit and 4-bit floating point, on bits.

XLA's own conversions give NaN or infinity where these formats are meant to saturate, and flush what is subnormal in
float32. Here a value is its sign and its magnitude as float32 bits, so nothing is lost before the one rounding.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from jascend.numerics import bits


class Format(NamedTuple):
    """A binary floating-point format with a sign bit.

    Attributes:
        dtype: its name in `ml_dtypes`.
        mantissa: stored mantissa bits.
        bias: of the exponent.
        largest: the code of the largest finite value; greater ones become it.
        nan: the code of NaN, or None where the format has none.
        width: bits of a code.
    """

    dtype: str
    mantissa: int
    bias: int
    largest: int
    nan: int | None
    width: int = 8

    @property
    def largest_exponent(self):
        """Of the largest power of two: floor(log2(largest value))."""
        return (self.largest >> self.mantissa) - self.bias


E5M2 = Format("float8_e5m2", 2, 15, 0x7B, 0x7F)
E4M3FN = Format("float8_e4m3fn", 3, 7, 0x7E, 0x7F)
E2M1 = Format("float4_e2m1fn", 1, 1, 0x7, None, width=4)


def encode(magnitude, negative, form: Format):
    """The nearest code, ties to even; too large a value becomes the largest finite one.

    Args:
        magnitude: int32 [...], float32 bits without the sign. Subnormal ones count as zero.
        negative: bool [...].
        form: the format.

    Returns:
        uint8 [...], codes.
    """
    dropped = 23 - form.mantissa
    # Rounding a normal number: add just under half of the last place, a little more when the last bit is odd.
    odd = magnitude >> dropped & 1
    rebias = np.int32((127 - form.bias) << 23)
    normal = (magnitude - rebias + ((1 << (dropped - 1)) - 1) + odd) >> dropped
    # A subnormal one: a float32 addition that ends at the format's last place rounds the same way.
    least = 1 - form.bias
    aligned = np.float32(2.0 ** (least + dropped))
    subnormal = _bits(_float(magnitude) + aligned) - aligned.view(np.int32)
    code = jnp.where(magnitude < (least + 127) << 23, subnormal, jnp.minimum(normal, form.largest))
    if form.nan is not None:
        code = jnp.where(magnitude > 0x7F800000, form.nan, code)
    return (code | negative.astype(jnp.int32) << (form.width - 1)).astype(jnp.uint8)


def float32_bits(x):
    """The bits of `x` as float32, exactly: int32 [...] magnitude, bool [...] sign."""
    stored = bits.bits_of(x)
    if x.dtype == jnp.float32:
        return stored & 0x7FFFFFFF, stored < 0
    magnitude = stored & 0x7FFF
    negative = stored > 0x7FFF
    if x.dtype == jnp.bfloat16:
        return magnitude << 16, negative
    return _bits(bits.float32_of_keys(magnitude, x.dtype)), negative


def times_power_of_two(magnitude, exponent):
    """The float32 bits of `magnitude * 2^exponent`.

    Exact, but that a subnormal result counts as zero; a subnormal `magnitude` is taken as it is, although XLA:CPU would
    calculate with zero. `exponent` is int32, at most 127.
    """
    subnormal = magnitude < 0x00800000
    value = jnp.where(subnormal, magnitude.astype(jnp.float32) * np.float32(2.0**-23), _float(magnitude))
    exponent = jnp.where(subnormal, exponent - 126, exponent)
    return _bits(value * _float((jnp.maximum(exponent, -126) + 127) << 23)) & 0x7FFFFFFF


def divide(x, y):
    """x / y, rounded as IEEE says.

    XLA turns a division by a constant or a broadcast value into a multiplication with its reciprocal, which is off by
    one in the last place for some values. A divisor that is chosen for each element is neither. (Where x is NaN the
    choice does not matter.)
    """
    return x / jnp.where(jnp.isnan(x), x, y)


def rounded(x):
    """x, as float32 rounds it, whatever is done with it next.

    XLA:CPU may contract a multiplication and an addition into one operation with one rounding. An integer operation in
    between leaves no choice; this one changes nothing but one of the bit patterns of NaN.
    """
    return _float(jnp.minimum(_bits(x), np.int32(0x7FFFFFFE)))


def _float(x):
    return lax.bitcast_convert_type(x, jnp.float32)


def _bits(x):
    return lax.bitcast_convert_type(x, jnp.int32)
