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
_COPY_IN_ROWS = """\
// Rows from global memory, `gmPitch` elements apart there and `pitch` apart in the unified buffer.
template <typename T>
__aicore__ inline void CopyInRows(const LocalTensor<T> &dst, const GlobalTensor<T> &src, uint16_t rows,
                                  uint32_t rowLength, uint32_t gmPitch, uint32_t pitch)
{
    constexpr uint32_t size = static_cast<uint32_t>(sizeof(T));
    const uint32_t bytes = rowLength * size;
    const uint32_t gap = (pitch * size - (bytes + 31) / 32 * 32) / 32;
    DataCopyPad(dst, src, DataCopyExtParams{rows, bytes, (gmPitch - rowLength) * size, gap, 0},
                DataCopyPadExtParams<T>{false, 0, 0, 0});
}
"""
_COPY_IN_ROWS_PADDED = """\
// The same, with the last 32-byte block of each row filled up.
template <typename T>
__aicore__ inline void CopyInRowsPadded(const LocalTensor<T> &dst, const GlobalTensor<T> &src, uint16_t rows,
                                        uint32_t rowLength, uint32_t gmPitch, uint32_t pitch, T pad)
{
    constexpr uint32_t size = static_cast<uint32_t>(sizeof(T));
    const uint32_t bytes = rowLength * size;
    const uint32_t whole = (bytes + 31) / 32 * 32;
    DataCopyPad(dst, src, DataCopyExtParams{rows, bytes, (gmPitch - rowLength) * size, (pitch * size - whole) / 32, 0},
                DataCopyPadExtParams<T>{true, 0, static_cast<uint8_t>((whole - bytes) / size), pad});
}
"""
_COPY_OUT_ROWS = """\
// Rows to global memory, `gmPitch` elements apart there and `pitch` apart in the unified buffer.
template <typename T>
__aicore__ inline void CopyOutRows(const GlobalTensor<T> &dst, const LocalTensor<T> &src, uint16_t rows,
                                   uint32_t rowLength, uint32_t gmPitch, uint32_t pitch)
{
    constexpr uint32_t size = static_cast<uint32_t>(sizeof(T));
    const uint32_t bytes = rowLength * size;
    const uint32_t gap = (pitch * size - (bytes + 31) / 32 * 32) / 32;
    DataCopyPad(dst, src, DataCopyExtParams{rows, bytes, gap, (gmPitch - rowLength) * size, 0});
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
_MERGE_LISTS = """\
// Lists of `run` pairs that follow each other become one list: 2, 3 or 4 of them for `valid` 3, 7 or 15.
__aicore__ inline void MergeLists(
    const LocalTensor<float> &dst, const LocalTensor<float> &src, uint16_t run, uint16_t valid, uint16_t repeat)
{
    const uint32_t lanes = 2 * static_cast<uint32_t>(run);
    const uint16_t lengths[4] = {run, run, run, run};
    const MrgSortSrcList<float> lists(
        src, src[lanes], valid > 3 ? src[2 * lanes] : src, valid > 7 ? src[3 * lanes] : src);
    MrgSort<float>(dst, lists, MrgSort4Info(lengths, false, valid, repeat));
}
"""
_MERGE_TOGETHER = """\
// Lists of `n0`, `n1`, ... pairs become one list: 2, 3 or 4 of them for `valid` 3, 7 or 15.
__aicore__ inline void MergeTogether(const LocalTensor<float> &dst, const MrgSortSrcList<float> &lists, uint16_t n0,
    uint16_t n1, uint16_t n2, uint16_t n3, uint16_t valid)
{
    const uint16_t lengths[4] = {n0, n1, n2, n3};
    MrgSort<float>(dst, lists, MrgSort4Info(lengths, false, valid, 1));
}
"""
_GATHER_BY_PATTERN = """\
// One element of two (patterns 1 and 2) or of four (3 to 6).
template <typename T>
__aicore__ inline void GatherByPattern(
    const LocalTensor<T> &dst, const LocalTensor<T> &src, uint8_t pattern, uint32_t count)
{
    uint64_t kept = 0;
    GatherMask(dst, src, pattern, true, count, GatherMaskParams{1, 1, 8, 8}, kept);
}
"""
_SUM_FIRST = """\
// Of every block of 8 elements, the sum of the first `lanes`.
__aicore__ inline void SumFirst(
    const LocalTensor<float> &dst, const LocalTensor<float> &src, uint32_t lanes, int32_t repeat)
{
    const uint64_t mask[2] = {((1ull << lanes) - 1) * 0x0101010101010101ull, 0};
    BlockReduceSum<float>(dst, src, repeat, mask, 1, 1, 8);
}
"""
_ADD_LANE = """\
// Adds one element of every block of 8, and leaves the others.
__aicore__ inline void AddLane(const LocalTensor<float> &dst, const LocalTensor<float> &src0,
    const LocalTensor<float> &src1, uint32_t lane, uint8_t repeat)
{
    uint64_t mask[2] = {0x0101010101010101ull << lane, 0};
    Add(dst, src0, src1, mask, repeat, BinaryRepeatParams{1, 1, 1, 8, 8, 8});
}
"""
_HELPERS = {
    "MergeLists(": _MERGE_LISTS,
    "MergeTogether(": _MERGE_TOGETHER,
    "GatherByPattern(": _GATHER_BY_PATTERN,
    "SumFirst(": _SUM_FIRST,
    "AddLane(": _ADD_LANE,
    "CopyIn(": _COPY_IN,
    "CopyInPadded(": _COPY_IN_PADDED,
    "CopyOut(": _COPY_OUT,
    "CopyInRows(": _COPY_IN_ROWS,
    "CopyInRowsPadded(": _COPY_IN_ROWS_PADDED,
    "CopyOutRows(": _COPY_OUT_ROWS,
    "FloatOfBits(": _FLOAT_OF_BITS,
    "BitsOfFloat(": _BITS_OF_FLOAT,
    "Smaller(": _SMALLER,
}


def helpers(text: str) -> list[str]:
    """The helpers that a kernel's text calls."""
    return [line for call, helper in _HELPERS.items() if call in text for line in helper.split("\n")]
