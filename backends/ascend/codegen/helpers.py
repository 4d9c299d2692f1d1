"""Small functions that a kernel's text brings along, for what the API says at length."""

from __future__ import annotations

_COPY_IN = """\
// One burst from global memory to the unified buffer.
template <typename T>
__aicore__ inline void CopyIn(const LocalTensor<T> &dst, const GlobalTensor<T> &src, uint32_t count)
{
    const uint32_t bytes = count * static_cast<uint32_t>(sizeof(T));
    DataCopyPad(dst, src, DataCopyExtParams{1, bytes, 0, 0, 0}, DataCopyPadExtParams<T>{false, 0, 0, 0});
}
"""
_COPY_IN_PADDED = """\
// The same, with the last 32-byte block filled up.
template <typename T>
__aicore__ inline void CopyInPadded(const LocalTensor<T> &dst, const GlobalTensor<T> &src, uint32_t count, T pad)
{
    const uint32_t bytes = count * static_cast<uint32_t>(sizeof(T));
    const uint8_t fill = static_cast<uint8_t>((32 - bytes % 32) % 32 / sizeof(T));
    DataCopyPad(dst, src, DataCopyExtParams{1, bytes, 0, 0, 0}, DataCopyPadExtParams<T>{true, 0, fill, pad});
}
"""
_COPY_OUT = """\
// One burst from the unified buffer to global memory, exact to the byte.
template <typename T>
__aicore__ inline void CopyOut(const GlobalTensor<T> &dst, const LocalTensor<T> &src, uint32_t count)
{
    const uint32_t bytes = count * static_cast<uint32_t>(sizeof(T));
    DataCopyPad(dst, src, DataCopyExtParams{1, bytes, 0, 0, 0});
}
"""
_FLOAT_OF_BITS = """\
__aicore__ inline float FloatOfBits(int32_t bits)
{
    return *reinterpret_cast<float *>(&bits);
}
"""
_BITS_OF_FLOAT = """\
__aicore__ inline int32_t BitsOfFloat(float value)
{
    return *reinterpret_cast<int32_t *>(&value);
}
"""
_SMALLER = """\
__aicore__ inline int64_t Smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}
"""
_HELPERS = {
    "CopyIn(": _COPY_IN,
    "CopyInPadded(": _COPY_IN_PADDED,
    "CopyOut(": _COPY_OUT,
    "FloatOfBits(": _FLOAT_OF_BITS,
    "BitsOfFloat(": _BITS_OF_FLOAT,
    "Smaller(": _SMALLER,
}


def helpers(text: str) -> list[str]:
    """The helpers that a kernel's text calls."""
    return [line for call, helper in _HELPERS.items() if call in text for line in helper.split("\n")]
