"""The quantizers of MoE routing: rows of values to narrow codes and their scales.

All take [..., N, H] and treat every row alike, whatever the rows around it: scales are maxima, which no order of
evaluation changes. float16 and bfloat16 become float32 exactly, and what follows is float32 with IEEE rounding, save
that a scale which is subnormal in float32 counts as 0. Rows, blocks and groups whose scale is 0 get codes of 0. Blocks
and groups run along H; the last one may be short.

4-bit codes come one a byte; HiFloat8 and the scales of MX formats (E8M0) come as uint8. Infinities and NaN are outside
the contract; they give codes that depend on nothing but their block.
"""

import jax.numpy as jnp
import numpy as np
from jax import lax

from jascend.numerics import hifloat8
from jascend.numerics.quantize_formats import (
    E2M1,
    Format,
    divide,
    encode,
    float32_bits,
    rounded,
    times_power_of_two,
)

#: What modes with a floor raise the maximum of a block to, as float32 bits; MX formats look at the upper half, rounded.
_FLOOR = np.float32(1e-4).view(np.int32)
_FLOOR_BFLOAT16 = np.int32(0x38D2)


def static_int8(x, scale, offset):
    """round(x * scale + offset) as int8, saturated; `scale` and `offset` are [..., 1]."""
    value = rounded(_float32(x) * scale[..., None]) + offset[..., None]
    return _integers(value, -128, 127)


def dynamic_int8(x, smooth=None):
    """v / (max|v| / 127) with v = x or x * smooth, as int8; scales float32 [..., N]."""
    value = _smoothed(x, smooth)
    scale = _normal(divide(_largest(_bits(value) & 0x7FFFFFFF), np.float32(127)))
    quotient = divide(value, scale)
    return _integers(jnp.where(scale == 0, 0.0, quotient), -128, 127), scale[..., 0]


def dynamic_int4(x, smooth=None):
    """v times the reciprocal of max|v| * (1 / 7), as int8 in -7..7; scales float32 [..., N]."""
    value = _smoothed(x, smooth)
    scale = _normal(_largest(_bits(value) & 0x7FFFFFFF) * np.float32(1 / 7))
    product = value * divide(jnp.ones_like(scale), scale)
    return _integers(jnp.where(scale == 0, 0.0, product), -8, 7), scale[..., 0]


def mx_float8(x, form: Format, *, floor=False):
    """Blocks of 32 with a power of two each, rounded up to fit; E8M0 codes [..., N, blocks made even]."""
    magnitude, negative = _cut(x, 32)
    top = jnp.max(magnitude, axis=-1, keepdims=True) >> 16  # as bfloat16
    if floor:
        top = jnp.maximum(top, _FLOOR_BFLOAT16)
    exponent, mantissa = top >> 7, top & 0x7F
    code = jnp.where(exponent <= form.largest_exponent, 1, exponent - form.largest_exponent + (mantissa > 0x60))
    invalid = exponent == 0xFF
    code = jnp.where(top == 0, 0, jnp.where(invalid, 0xFF, code))
    codes = encode(times_power_of_two(magnitude, 127 - code), negative, form)
    return _joined(jnp.where((top == 0) | invalid, 0, codes), x), _padded(code[..., 0].astype(jnp.uint8), 2)


def mx_float4(x):
    """Blocks of 32 with a power of two each, rounded down: 7 may become 6; E8M0 codes [..., N, C, 2]."""
    magnitude, negative = _cut(x, 32)
    code = jnp.maximum((jnp.max(magnitude, axis=-1, keepdims=True) >> 23) - E2M1.largest_exponent, 0)
    codes = encode(times_power_of_two(magnitude, 127 - code), negative, E2M1)
    return _joined(codes, x), _pairs(code[..., 0].astype(jnp.uint8))


def group_float8(x, form: Format, *, floor=False):
    """Groups of 128 with a power of two each, rounded up so that the group fits; scales float32 [..., N, groups]."""
    magnitude, negative = _cut(x, 128)
    top = jnp.max(magnitude, axis=-1, keepdims=True)
    if floor:
        top = jnp.maximum(top, _FLOOR)
    up = (top & 0x7FFFFF) > 0x600000
    code = jnp.maximum((top >> 23) - form.largest_exponent + up, 1)
    codes = encode(times_power_of_two(magnitude, 127 - code), negative, form)
    scale = jnp.where(top == 0, 0.0, lax.bitcast_convert_type(code << 23, jnp.float32))
    return _joined(jnp.where(top == 0, 0, codes), x), scale[..., 0]


def block_float8(x, form: Format):
    """Blocks of 128 divided by their maximum over the largest value; scales float32 [..., N, C, 2]."""
    largest = (1 + (form.largest & (1 << form.mantissa) - 1) / (1 << form.mantissa)) * 2.0**form.largest_exponent
    magnitude, negative = _cut(x, 128)
    scale = _normal(divide(_largest(magnitude), np.float32(largest)))
    quotient = divide(lax.bitcast_convert_type(magnitude, jnp.float32), scale)
    codes = encode(_bits(quotient) & 0x7FFFFFFF, negative, form)
    return _joined(jnp.where(scale == 0, 0, codes), x), _pairs(scale[..., 0])


def hifloat8_cast(x):
    """The nearest HiFloat8 numbers."""
    return hifloat8.encode(_float32(x))


def hifloat8_static(x, scale):
    """x * scale, saturated to the largest finite number; `scale` is [..., 1]."""
    return hifloat8.encode(_saturated(_float32(x) * scale[..., None]))


def hifloat8_dynamic(x):
    """x / (max|x| / 32768); scales float32 [..., N]."""
    value = _float32(x)
    scale = _normal(_largest(_bits(value) & 0x7FFFFFFF) * np.float32(1 / hifloat8.LARGEST))
    codes = hifloat8.encode(_saturated(divide(value, scale)))
    return jnp.where(scale == 0, jnp.uint8(0), codes), scale[..., 0]


def _float32(x):
    magnitude, negative = float32_bits(x)
    return lax.bitcast_convert_type(magnitude | negative.astype(jnp.int32) << 31, jnp.float32)


def _bits(x):
    return lax.bitcast_convert_type(x, jnp.int32)


def _smoothed(x, smooth):
    return _float32(x) if smooth is None else _float32(x) * smooth


def _largest(magnitude):
    """[..., H] float32 bits of non-negative numbers -> [..., 1] float32, 0 where H is 0."""
    return lax.bitcast_convert_type(jnp.max(magnitude, axis=-1, keepdims=True, initial=0), jnp.float32)


def _normal(scale):
    """Zero for what float32 cannot hold as a normal number."""
    return jnp.where(scale < np.float32(2.0**-126), 0.0, scale)


def _integers(value, low, high):
    value = jnp.clip(lax.round(value, lax.RoundingMethod.TO_NEAREST_EVEN), low, high)
    return jnp.where(jnp.isnan(value), 0.0, value).astype(jnp.int8)


def _saturated(value):
    return jnp.clip(value, -hifloat8.LARGEST, hifloat8.LARGEST)


def _cut(x, length):
    """[..., H] -> magnitude and sign [..., ceil(H / length), length], the tail filled with zeros."""
    magnitude, negative = float32_bits(x)
    cut = lambda x: _padded(x, length).reshape(*x.shape[:-1], -(-x.shape[-1] // length), length)
    return cut(magnitude), cut(negative)


def _joined(codes, x):
    """The inverse of `_cut`."""
    *lead, count, length = codes.shape
    return lax.slice_in_dim(codes.reshape(*lead, count * length), 0, x.shape[-1], axis=-1)


def _padded(x, multiple):
    missing = -x.shape[-1] % multiple
    return lax.pad(x, jnp.zeros((), x.dtype), [(0, 0, 0)] * (x.ndim - 1) + [(0, missing, 0)])


def _pairs(scales):
    """[..., blocks] -> [..., ceil(blocks / 2), 2], a zero added to an odd count."""
    scales = _padded(scales, 2)
    return scales.reshape(*scales.shape[:-1], -(-scales.shape[-1] // 2), 2)
