"""Elementary functions whose result depends on the argument alone.

The exponential and logarithm of XLA:CPU may differ in the last bit between the vectorized body of a loop and its
remainder, so that an element's result depends on where it stands, and equal elements need not compare equal. Here they
are polynomials made of single operations that round alike everywhere.

One trap is left: a compiler may contract a multiplication and an addition into one fused operation, in one loop and not
in another. So every product that is added to something is either exact or goes through `rounded`.
"""

import jax.numpy as jnp
import numpy as np
from jax import lax

# ln(2) in two parts of at most 16 bits, so that their products with small integers are exact.
_LN2_HIGH = np.float32(22713 / 2**15)
_LN2_LOW = np.float32(1.4285906217992306e-06)
_LN2 = np.float32(0.6931471805599453)
_LOG2E = np.float32(1.4426950408889634)

# exp(-r) = 1 - r * (c0 - r * (c1 - ...)) on [0, ln 2], to 1.1e-8; log1p is 2s * (1 + z * (c0 + z * (c1 + ...))) with
# s = u / (2 + u) and z = s * s on [0, 1/9], to 1.6e-8: both minimax.
_EXP = (1.0, 0.49999916553497314, 0.16665229201316833, 0.04157642275094986, 0.008074462413787842, 0.0010372726246714592)
_LOG = (0.33333319425582886, 0.20003890991210938, 0.1411564201116562, 0.13441787660121918)


def rounded(product):
    """A product that is not negative, as float32 rounds it; 0 for a negative one.

    The integer operation keeps the compiler from contracting the multiplication with what follows.
    """
    return lax.bitcast_convert_type(jnp.maximum(lax.bitcast_convert_type(product, jnp.int32), 0), jnp.float32)


def exp_negative(t):
    """exp(-t) for float32 t >= 0, to 2e-7 relative; below the least normal number, 0."""
    t = jnp.minimum(t, np.float32(100))
    exponent = (t * _LOG2E).astype(jnp.int32)
    n = exponent.astype(jnp.float32)
    r = (t - n * _LN2_HIGH) - n * _LN2_LOW
    above = r < 0  # the quotient was rounded up to an integer
    exponent, r = jnp.where(above, exponent - 1, exponent), jnp.where(above, r + _LN2, r)
    p = jnp.full_like(r, _EXP[-1])
    for coefficient in (*_EXP[-2::-1], 1.0):
        p = np.float32(coefficient) - rounded(r * p)
    power = lax.bitcast_convert_type((127 - exponent) << 23, jnp.float32)  # 2^-n
    return jnp.where(exponent < 126, p * power, 0)


def log1p(u):
    """log(1 + u) for float32 0 <= u <= 1, to 2.5e-7 relative."""
    s = u / (np.float32(2) + u)
    z = s * s
    p = jnp.full_like(z, _LOG[-1])
    for coefficient in (*_LOG[-2::-1], 1.0):
        p = np.float32(coefficient) + rounded(z * p)
    # Of the smallest arguments, half would be subnormal.
    return jnp.where(u < np.float32(2.0**-25), u, rounded(np.float32(2) * s * p))
