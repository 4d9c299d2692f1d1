// Tiling structs: those of the high-level functions, and the older way for a kernel to define its own.
#pragma once
#include <cstdint>

namespace AscendC {
namespace tiling {

// What the host computes for SoftMax. Of all this the twin reads the shape.
struct SoftMaxTiling {
  uint32_t srcM = 0, srcK = 0, srcSize = 0;
  uint32_t outMaxM = 0, outMaxK = 0, outMaxSize = 0;
  uint32_t splitM = 0, splitK = 0, splitSize = 0;
  uint32_t reduceM = 0, reduceK = 0, reduceSize = 0;
  uint32_t rangeM = 0, tailM = 0, tailSplitSize = 0, tailReduceSize = 0;
};

// What the host computes for TopK: buffer sizes and offsets of the device's algorithm, of which the twin reads none.
struct TopkTiling {
  int32_t tmpLocalSize = 0, allDataSize = 0, innerDataSize = 0;
  uint32_t sortRepeat = 0;
  int32_t mrgSortRepeat = 0, kAlignFourBytes = 0, kAlignTwoBytes = 0, maskOffset = 0, maskVreducev2FourBytes = 0,
          maskVreducev2TwoBytes = 0, mrgSortSrc1offset = 0, mrgSortSrc2offset = 0, mrgSortSrc3offset = 0,
          mrgSortTwoQueueSrc1Offset = 0, mrgFourQueueTailPara1 = 0, mrgFourQueueTailPara2 = 0, srcIndexOffset = 0;
  uint32_t copyUbToUbBlockCount = 0;
  int32_t topkMrgSrc1MaskSizeOffset = 0, topkNSmallSrcIndexOffset = 0;
  uint32_t vreduceValMask0 = 0, vreduceValMask1 = 0, vreduceIdxMask0 = 0, vreduceIdxMask1 = 0;
  uint16_t vreducehalfValMask0 = 0, vreducehalfValMask1 = 0, vreducehalfValMask2 = 0, vreducehalfValMask3 = 0,
           vreducehalfValMask4 = 0, vreducehalfValMask5 = 0, vreducehalfValMask6 = 0, vreducehalfValMask7 = 0;
};

}  // namespace tiling
using namespace tiling;
}  // namespace AscendC

using namespace AscendC::tiling;

// Host code defines its structs there; the CANN build hands them to the kernel without a namespace.
namespace optiling {}
using namespace optiling;

// Fields stand as in a plain struct, and the struct takes a multiple of 8 bytes, as the host lays it out. A semicolon
// after each is usual, and may be missing.
#define BEGIN_TILING_DATA_DEF(Class) struct alignas(8) Class {
#define TILING_DATA_FIELD_DEF(type, name) type name;
#define TILING_DATA_FIELD_DEF_ARR(type, count, name) type name[count];
#define TILING_DATA_FIELD_DEF_STRUCT(Struct, name) Struct name;
#define END_TILING_DATA_DEF };
#define REGISTER_TILING_DATA_CLASS(Operator, Class) static_assert(sizeof(Class) % 8 == 0, "a tiling struct");
