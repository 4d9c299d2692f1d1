// The enums and parameter structs of the basic API. Field order and types are the interface: people brace-initialise.
#pragma once
#include "twin/core.h"

namespace AscendC {

enum class TPosition : uint8_t {
  GM, A1, A2, B1, B2, C1, C2, CO1, CO2, VECIN, VECOUT, VECCALC, LCM, SPM, SHM, TSCM, C2PIPE2GM, C2PIPE2LOCAL, MAX
};
using QuePosition = TPosition;

enum class HardEvent : uint8_t {
  MTE2_MTE1, MTE1_MTE2, MTE1_M, M_MTE1, MTE2_V, V_MTE2, MTE3_V, V_MTE3, M_V, V_M, V_V, MTE3_MTE1, MTE1_MTE3, MTE1_V,
  MTE2_M, M_MTE2, V_MTE1, MTE3_MTE2, MTE2_MTE3, S_V, V_S, S_MTE2, MTE2_S, S_MTE3, MTE3_S, MAX
};

// The names that kernels with events of their own use for the ids.
constexpr int32_t EVENT_ID0 = 0, EVENT_ID1 = 1, EVENT_ID2 = 2, EVENT_ID3 = 3;
constexpr int32_t EVENT_ID4 = 4, EVENT_ID5 = 5, EVENT_ID6 = 6, EVENT_ID7 = 7;

enum class CMPMODE : uint8_t { LT = 0, GT, EQ, LE, GE, NE };
enum class SELMODE : uint8_t { VSEL_CMPMASK_SPR = 0, VSEL_TENSOR_SCALAR_MODE, VSEL_TENSOR_TENSOR_MODE };
enum class ReduceOrder : uint8_t { ORDER_VALUE_INDEX = 0, ORDER_INDEX_VALUE, ORDER_ONLY_VALUE, ORDER_ONLY_INDEX };
enum class ReduceType : uint8_t { MAX = 0, MIN, SUM };
enum class MaskMode : uint8_t { NORMAL = 0, COUNTER };
enum class CacheMode : uint8_t { CACHE_MODE_DISABLE = 0, CACHE_MODE_NORMAL = 1, CACHE_MODE_LAST = 2,
                                 CACHE_MODE_PERSISTENT = 4 };
enum class CacheRwMode : uint8_t { READ = 1, WRITE = 2, RW = 3 };
enum class CacheLine : uint64_t { SINGLE_CACHE_LINE = 0, ENTIRE_DATA_CACHE };
enum class DcciDst : uint64_t { CACHELINE_ALL = 0, CACHELINE_UB, CACHELINE_OUT, CACHELINE_ATOMIC };
enum class GatherMaskMode : uint8_t { VERSION_V1 = 0, VERSION_V2 };
constexpr GatherMaskMode defaultGatherMaskMode = GatherMaskMode::VERSION_V1;

using TEventID = int8_t;

constexpr int32_t DEFAULT_BLK_NUM = 8;
constexpr int32_t DEFAULT_BLK_STRIDE = 1;
constexpr uint8_t DEFAULT_REPEAT_STRIDE = 8;
constexpr int32_t ONE_BLK_SIZE = 32;
constexpr int32_t ONE_REPEAT_BYTE_SIZE = 256;
constexpr uint64_t MASK_PLACEHOLDER = 0;
constexpr uint64_t FULL_MASK = 0xffffffffffffffffull;
constexpr int32_t MAX_REPEAT_TIMES = 255;

struct BinaryRepeatParams {
  BinaryRepeatParams() {}
  BinaryRepeatParams(const uint8_t dstBlk, const uint8_t src0Blk, const uint8_t src1Blk, const uint8_t dstRep,
                     const uint8_t src0Rep, const uint8_t src1Rep)
      : dstBlkStride(dstBlk), src0BlkStride(src0Blk), src1BlkStride(src1Blk), dstRepStride(dstRep),
        src0RepStride(src0Rep), src1RepStride(src1Rep) {}
  uint8_t dstBlkStride = 1, src0BlkStride = 1, src1BlkStride = 1;
  uint8_t dstRepStride = 8, src0RepStride = 8, src1RepStride = 8;
};

struct UnaryRepeatParams {
  UnaryRepeatParams() {}
  UnaryRepeatParams(const uint16_t dstBlk, const uint16_t srcBlk, const uint8_t dstRep, const uint8_t srcRep)
      : dstBlkStride(dstBlk), srcBlkStride(srcBlk), dstRepStride(dstRep), srcRepStride(srcRep) {}
  uint16_t dstBlkStride = 1, srcBlkStride = 1;
  uint8_t dstRepStride = 8, srcRepStride = 8;
};

struct CopyRepeatParams {
  CopyRepeatParams() {}
  CopyRepeatParams(const uint16_t dstStride, const uint16_t srcStride, const uint16_t dstRepeat,
                   const uint16_t srcRepeat)
      : dstStride(dstStride), srcStride(srcStride), dstRepeatSize(dstRepeat), srcRepeatSize(srcRepeat) {}
  uint16_t dstStride = 1, srcStride = 1, dstRepeatSize = 8, srcRepeatSize = 8;
};

// Lengths and gaps in 32-byte blocks; a gap runs from the end of one block to the start of the next.
struct DataCopyParams {
  DataCopyParams() {}
  DataCopyParams(const uint16_t count, const uint16_t len, const uint16_t srcStride, const uint16_t dstStride)
      : blockCount(count), blockLen(len), srcStride(srcStride), dstStride(dstStride) {}
  uint16_t blockCount = 1, blockLen = 0, srcStride = 0, dstStride = 0;
};

// blockLen in bytes; the stride on the GM side in bytes, on the UB side in 32-byte blocks.
struct DataCopyExtParams {
#if __NPU_ARCH__ == 3510
  using Stride = int64_t;
#else
  using Stride = uint32_t;
#endif
  DataCopyExtParams() {}
  DataCopyExtParams(const uint16_t count, const uint32_t len, const Stride srcStride, const Stride dstStride,
                    const uint32_t rsv)
      : blockCount(count), blockLen(len), srcStride(srcStride), dstStride(dstStride), rsv(rsv) {}
  uint16_t blockCount = 1;
  uint32_t blockLen = 0;
  Stride srcStride = 0, dstStride = 0;
  uint32_t rsv = 0;
};

template <typename T>
struct DataCopyPadExtParams {
  DataCopyPadExtParams() : paddingValue() {}
  DataCopyPadExtParams(const bool isPad, const uint8_t left, const uint8_t right, const T value)
      : isPad(isPad), leftPadding(left), rightPadding(right), paddingValue(value) {}
  bool isPad = false;
  uint8_t leftPadding = 0, rightPadding = 0;
  T paddingValue;
};

struct DataCopyPadParams {
  DataCopyPadParams() {}
  DataCopyPadParams(const bool isPad, const uint8_t left, const uint8_t right, const uint64_t value)
      : isPad(isPad), leftPadding(left), rightPadding(right), paddingValue(value) {}
  bool isPad = false;
  uint8_t leftPadding = 0, rightPadding = 0;
  uint64_t paddingValue = 0;
};

#if __NPU_ARCH__ == 3510
enum class PaddingMode : uint8_t { Normal = 0, Compact };
enum class DataCopyMVType : uint8_t { UB_TO_OUT = 0, OUT_TO_UB = 1 };

// Two loops around a copy, loop1 the inner one; strides in bytes, from start to start.
struct LoopModeParams {
  LoopModeParams() {}
  LoopModeParams(const uint32_t loop1Size, const uint32_t loop2Size, const uint64_t loop1Src, const uint64_t loop1Dst,
                 const uint64_t loop2Src, const uint64_t loop2Dst)
      : loop1Size(loop1Size), loop2Size(loop2Size), loop1SrcStride(loop1Src), loop1DstStride(loop1Dst),
        loop2SrcStride(loop2Src), loop2DstStride(loop2Dst) {}
  uint32_t loop1Size = 0, loop2Size = 0;
  uint64_t loop1SrcStride = 0, loop1DstStride = 0, loop2SrcStride = 0, loop2DstStride = 0;
};
#endif

struct GatherMaskParams {
  GatherMaskParams() {}
  GatherMaskParams(const uint8_t src0Block, const uint16_t repeats, const uint16_t src0Repeat,
                   const uint8_t src1Repeat)
      : src0BlockStride(src0Block), repeatTimes(repeats), src0RepeatStride(src0Repeat), src1RepeatStride(src1Repeat) {}
  uint8_t src0BlockStride = 1;
  uint16_t repeatTimes = 1;
  uint16_t src0RepeatStride = 8;
  uint8_t src1RepeatStride = 8;
};

struct BrcbRepeatParams {
  BrcbRepeatParams() {}
  BrcbRepeatParams(const uint16_t dstBlk, const uint16_t dstRep) : dstBlkStride(dstBlk), dstRepStride(dstRep) {}
  uint16_t dstBlkStride = 1, dstRepStride = 8;
};

struct GatherRepeatParams {
  GatherRepeatParams() {}
  GatherRepeatParams(const uint8_t dstBlk, const uint8_t dstRep) : dstBlkStride(dstBlk), dstRepStride(dstRep) {}
  uint8_t dstBlkStride = 1, dstRepStride = 8;
};

struct MrgSort4Info {
  MrgSort4Info() {}
  MrgSort4Info(const uint16_t lengths[4], const bool suspend, const uint16_t valid, const uint16_t repeat)
      : ifExhaustedSuspension(suspend), validBit(valid), repeatTimes(repeat) {
    for (int i = 0; i < 4; ++i) elementLengths[i] = lengths[i];
  }
  uint16_t elementLengths[4] = {0, 0, 0, 0};
  bool ifExhaustedSuspension = false;
  uint16_t validBit = 0;
  uint16_t repeatTimes = 1;
};

}  // namespace AscendC

namespace twin {
inline namespace TWIN_ABI {

// A repeat count as the API takes it: 8 bits wide on the device, so a larger one is a finding, not a truncation.
class Repeat {
 public:
  template <typename T, typename = std::enable_if_t<std::is_integral<T>::value>>
  Repeat(T value) : value(int64_t(value)) {}
  int64_t value;
};

}  // inline namespace
}  // namespace twin
