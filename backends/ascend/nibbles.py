"""Arrays of 4-bit elements. NumPy and JAX give each a byte; in a kernel's memory two share one, the first one low."""

from __future__ import annotations

import ml_dtypes
import numpy as np

_DTYPES = {np.dtype(ml_dtypes.int4), np.dtype(ml_dtypes.float4_e2m1fn)}


def share_bytes(dtype: np.dtype) -> bool:
    """Whether two elements of a dtype share a byte."""
    return np.dtype(dtype) in _DTYPES


def pack(array: np.ndarray) -> np.ndarray:
    """The bytes of an array of 4-bit elements, of any shape; half of the last one is 0 where they are odd in number."""
    codes = np.ascontiguousarray(array).reshape(-1).view(np.uint8) & 15
    codes = np.append(codes, np.zeros(codes.size % 2, np.uint8))
    return codes[0::2] | codes[1::2] << 4


def unpack(raw: np.ndarray, like: np.ndarray) -> np.ndarray:
    """The inverse, of the shape and dtype of `like`."""
    codes = np.stack([raw & 15, raw >> 4], axis=-1).reshape(-1)[: like.size].reshape(like.shape)
    if like.dtype == np.dtype(ml_dtypes.int4):
        return ((codes ^ 8).astype(np.int8) - 8).astype(like.dtype)
    return codes.view(like.dtype)
