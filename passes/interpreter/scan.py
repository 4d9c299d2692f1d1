"""What prefix sums and narrow formats mean."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from .core import dtype_of, element_of, flush, function


def _tree(x: np.ndarray) -> np.ndarray:
    while x.shape[-1] > 1:
        x = flush(x[..., ::2] + x[..., 1::2])
    return x[..., 0]


@function("tile.cumsum")
def _cumsum(_, op, x):
    blocks = x.reshape(-1, op.opview.group // 8, 8)
    inside = np.stack([_tree(np.where(np.arange(8) <= k, blocks, np.float32(0))) for k in range(8)], axis=-1)
    before = np.concatenate([np.zeros_like(inside[:, :1, 7]), inside[:, :-1, 7]], axis=1)
    step = 1
    while step < before.shape[1]:
        before = np.concatenate([before[:, :step], flush(before[:, step:] + before[:, :-step])], axis=1)
        step *= 2
    return flush(inside + before[..., None]).reshape(-1)


@function("tile.quantize")
def _quantize(_, op, x):
    element = element_of(op)
    if str(element) == "f8E8M0FNU":
        return _exponents(x).astype(np.uint8).view(dtype_of(element))
    return _QUANTIZERS[str(element)](x.astype(np.float32)).astype(dtype_of(element))


def _integers(low: int, high: int):
    return lambda x: np.where(np.isnan(x), 0, np.clip(np.rint(x), low, high)).astype(np.int8)


def _saturated(dtype):
    limit = np.float32(ml_dtypes.finfo(dtype).max)
    return lambda x: np.clip(x, -limit, limit).astype(dtype)


def _hifloat8(x: np.ndarray) -> np.ndarray:
    magnitude = np.abs(x)
    codes = _HIFLOAT8_CODES[np.searchsorted(_HIFLOAT8_BOUNDS, magnitude, side="right")]
    codes = codes | np.where((x < 0) & (codes > 0), 0x80, 0)
    return np.where(np.isnan(x), 0x80, codes).astype(np.uint8)


def _hifloat8_numbers() -> list[tuple[float, int]]:
    """Every positive number with its code, by the definition of the format;
    infinity as the number that would be there."""
    numbers = [(0.0, 0), *((2.0 ** (m - 23), m) for m in range(1, 8))]
    for prefix, prefix_bits, size in (("11", 2, 4), ("10", 2, 3), ("01", 2, 2), ("001", 3, 1), ("0001", 4, 0)):
        mantissa_bits = 7 - prefix_bits - size
        for code in range(1 << (size + mantissa_bits)):
            field, mantissa = code >> mantissa_bits, code & ((1 << mantissa_bits) - 1)
            top = 1 << (size - 1) if size else 0
            exponent = (field | top) * (-1 if field & top else 1)
            value = 2.0**exponent * (1 + mantissa / (1 << mantissa_bits))
            numbers.append((value, int(prefix, 2) << (size + mantissa_bits) | code))
    return sorted(numbers)


_NUMBERS = _hifloat8_numbers()
_HIFLOAT8_CODES = np.array([code for _, code in _NUMBERS], np.int64)
_VALUES = np.array([value for value, _ in _NUMBERS])
_HIFLOAT8_BOUNDS = ((_VALUES[1:] + _VALUES[:-1]) / 2).astype(np.float32)  # what lies on one goes up

def _exponents(x: np.ndarray) -> np.ndarray:
    """The exponent field, which is the code."""
    return (x.view(np.int32) << 1).view(np.uint32) >> 24


_QUANTIZERS = {
    "i8": _integers(-128, 127),
    "i4": _integers(-8, 7),
    "f8E4M3FN": _saturated(ml_dtypes.float8_e4m3fn),
    "f8E5M2": _saturated(ml_dtypes.float8_e5m2),
    "f4E2M1FN": _saturated(ml_dtypes.float4_e2m1fn),
    "ui8": _hifloat8,
}
