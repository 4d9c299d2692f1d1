// TransDataTo5HD: sixteen 32-byte blocks at addresses of their own, transposed into sixteen others. Of 16-bit elements a 16 x
// 16 matrix; of 32-bit ones 16 x 8, each row of the result in two blocks; of 8-bit ones one half of each block.
#pragma once
#include "twin/fill.h"

namespace AscendC {

constexpr int32_t NCHW_CONV_ADDR_LIST_SIZE = 16;

struct TransDataTo5HDParams {
  constexpr TransDataTo5HDParams() = default;
  constexpr TransDataTo5HDParams(const bool dstHigh, const bool srcHigh, const uint8_t repeats, const uint16_t dstRep,
                                 const uint16_t srcRep)
      : dstHighHalf(dstHigh), srcHighHalf(srcHigh), repeatTimes(repeats), dstRepStride(dstRep), srcRepStride(srcRep) {}
  bool dstHighHalf = false, srcHighHalf = false;
  uint8_t repeatTimes = 1;
  uint16_t dstRepStride = 0, srcRepStride = 0;
};

}  // namespace AscendC

namespace twin {
inline namespace TWIN_ABI {

#if __NPU_ARCH__ == 3510
#define TWIN_TRANSPOSABLE int8_t, uint8_t, int16_t, uint16_t, half, bfloat16_t, int32_t, uint32_t, float
#else
#define TWIN_TRANSPOSABLE int8_t, uint8_t, int16_t, uint16_t, half, int32_t, uint32_t, float
#endif

template <typename T>
TWIN_OUTLINE void TransposeBlocks(const View* dst, const View* src, const AscendC::TransDataTo5HDParams& p, Site site) {
  TWIN_TYPES(TransDataTo5HD, TWIN_TRANSPOSABLE);
  Call call("TransDataTo5HD", PIPE_V, site);
  call.width = sizeof(T);
  // A single repeat starts a stride further on; several start where the lists say.
  const uint32_t first = p.repeatTimes == 1 ? 1 : 0;
  auto touch = [&](const char* name, bool write, const View* list, uint32_t stride, uint64_t from, uint64_t bytes) {
    call.Ub(name, write, list[0].address, 0, 0, call.core.ubRoom, 1);
    for (int i = 0; i < 16; ++i) {
      if (list[i].address % 32)
        call.Problem(false, "misaligned", "%s %d starts at UB byte %llu, which is not a multiple of 32", name, i,
                     (unsigned long long)list[i].address);
      for (uint32_t r = 0; r < p.repeatTimes; ++r) {
        const uint64_t at = list[i].address + uint64_t(r + first) * stride * 32 + from;
        if (list[i].high && (at < list[i].low || at + bytes > list[i].high))
          call.Problem(false, "buffer-overflow", "%s %d at UB [%llu, %llu), outside its buffer [%llu, %llu)", name, i,
                       (unsigned long long)at, (unsigned long long)(at + bytes), (unsigned long long)list[i].low,
                       (unsigned long long)list[i].high);
        call.Extend(at, bytes);
      }
    }
  };
  constexpr uint64_t bytes = sizeof(T) == 1 ? 16 : 32;
  touch("src", false, src, p.srcRepStride, sizeof(T) == 1 && p.srcHighHalf ? 16 : 0, bytes);
  touch("dst", true, dst, p.dstRepStride, sizeof(T) == 1 && p.dstHighHalf ? 16 : 0, bytes);
  if (!call.Issue(2 * p.repeatTimes)) return;
  uint8_t* ub = call.core.ub;
  for (uint32_t r = 0; r < p.repeatTimes; ++r) {
    T in[16][32 / sizeof(T)];
    for (int j = 0; j < 16; ++j)
      std::memcpy(in[j], ub + src[j].address + uint64_t(r + first) * p.srcRepStride * 32, 32);
    for (uint32_t i = 0; i < 16; ++i) {
      T* out = As<T>(ub + dst[i].address + uint64_t(r + first) * p.dstRepStride * 32);
      if constexpr (sizeof(T) == 4)
        for (uint32_t j = 0; j < 8; ++j) out[j] = in[i % 2 * 8 + j][i / 2];
      else if constexpr (sizeof(T) == 2)
        for (uint32_t j = 0; j < 16; ++j) out[j] = in[j][i];
      else
        for (uint32_t j = 0; j < 16; ++j) out[(p.dstHighHalf ? 16 : 0) + j] = in[j][(p.srcHighHalf ? 16 : 0) + i];
    }
  }
}

}  // inline namespace
}  // namespace twin

namespace AscendC {

template <typename T>
inline void TransDataTo5HD(const LocalTensor<T> (&dstList)[NCHW_CONV_ADDR_LIST_SIZE],
                           const LocalTensor<T> (&srcList)[NCHW_CONV_ADDR_LIST_SIZE],
                           const TransDataTo5HDParams& nchwconvParams, twin::Site site = twin::Site::Here()) {
  twin::View dst[16], src[16];
  for (int i = 0; i < 16; ++i) dst[i] = dstList[i].View(), src[i] = srcList[i].View();
  twin::TransposeBlocks<T>(dst, src, nchwconvParams, site);
}
// Addresses, as GetPhyAddr gives them.
template <typename T>
inline void TransDataTo5HD(uint64_t dstList[NCHW_CONV_ADDR_LIST_SIZE], uint64_t srcList[NCHW_CONV_ADDR_LIST_SIZE],
                           const TransDataTo5HDParams& nchwconvParams, twin::Site site = twin::Site::Here()) {
  twin::View dst[16], src[16];
  for (int i = 0; i < 16; ++i) dst[i].address = dstList[i], src[i].address = srcList[i];
  twin::TransposeBlocks<T>(dst, src, nchwconvParams, site);
}
// The same, from UB: the scalar unit reads the lists.
template <typename T>
inline void TransDataTo5HD(const LocalTensor<uint64_t>& dstList, const LocalTensor<uint64_t>& srcList,
                           const TransDataTo5HDParams& nchwconvParams, twin::Site site = twin::Site::Here()) {
  uint64_t dst[NCHW_CONV_ADDR_LIST_SIZE], src[NCHW_CONV_ADDR_LIST_SIZE];
  for (uint32_t i = 0; i < NCHW_CONV_ADDR_LIST_SIZE; ++i)
    dst[i] = dstList.GetValue(i, site), src[i] = srcList.GetValue(i, site);
  TransDataTo5HD<T>(dst, src, nchwconvParams, site);
}

}  // namespace AscendC
