// GatherMask (compaction by bits), Gather and Gatherb (by byte offsets), Scatter (950 only).
#pragma once
#include "twin/reduce.h"

namespace twin {
inline namespace TWIN_ABI {

// The constant patterns 1..7 as the bits of eight consecutive elements.
inline uint32_t PatternByte(uint8_t pattern) {
  static const uint8_t bytes[8] = {0, 0x55, 0xaa, 0x11, 0x22, 0x44, 0x88, 0xff};
  return bytes[pattern & 7];
}

// `bit(repeat, i)` says whether element i of a repeat is kept.
template <typename T, typename Bit>
TWIN_OUTLINE uint64_t Compact(Call& call, const Local<T>& dst, const Local<T>& src, bool counter, uint32_t mask,
                        const AscendC::GatherMaskParams& p, bool patternReadable, Bit bit) {
  constexpr uint32_t perRepeat = 256 / sizeof(T), perBlock = 32 / sizeof(T);
  uint32_t length = counter ? mask : perRepeat, repeats = p.repeatTimes;
  View from = src.View(), to = dst.View();
  Walk walk{from.address, sizeof(T), p.src0BlockStride, p.src0RepeatStride};
  call.Ub("src0", false, from.address, 0, from.low, from.high, 32);
  for (uint32_t r = 0; r < repeats; ++r) {
    if (p.src0BlockStride == 1) {
      call.Extend(walk.At(r, 0), uint64_t(length) * sizeof(T));
      continue;
    }
    for (uint32_t i = 0; i < length; i += perBlock)
      call.Extend(walk.At(r, i), (length - i < perBlock ? length - i : perBlock) * sizeof(T));
  }
  uint64_t kept = 0;
  if (patternReadable)
    for (uint32_t r = 0; r < repeats; ++r)
      for (uint32_t i = 0; i < length; ++i) kept += bit(r, i);
  call.Ub("dst", true, to.address, kept * sizeof(T), to.low, to.high, 32);
  if (to.address > from.address && to.address < from.address + uint64_t(length) * repeats * sizeof(T))
    call.Problem(false, "overlap", "dst starts within src0, behind its start: kept elements overwrite unread ones");
  if (!call.Issue(uint32_t((uint64_t(length) * repeats + perRepeat - 1) / perRepeat))) return 0;
  call.core.counterMode = false;
  uint8_t* ub = call.core.ub;
  T* d = As<T>(ub + to.address);
  for (uint32_t r = 0; r < repeats; ++r)
    for (uint32_t i = 0; i < length; ++i)
      if (bit(r, i)) *d++ = *As<T>(ub + walk.At(r, i));
  return kept;
}

// Gather with a mask: dst by repeats a stride apart, the offsets one after the other.
template <typename T, typename M>
TWIN_OUTLINE void GatherLanes(const Local<T>& dst, const Local<T>& src, const Local<uint32_t>& offsets, uint32_t base,
                              M mask, const Repeat& repeat, uint32_t dstRepStride, Site site) {
  Call call("Gather", PIPE_V, site);
  const Lanes lanes = LanesOf(call, mask, repeat, 256 / sizeof(T), true);
  const View from = src.View();
  const Walk at{offsets.View().address, 4, 1, 256 / sizeof(T) * 4 / 32};
  const Walk d{dst.View().address, sizeof(T), 1, dstRepStride};
  call.Ub("srcOffset", false, at.base, 0, offsets.View().low, offsets.View().high, 32);
  uint64_t end = d.base;
  ForRuns(lanes, lanes.perRepeat, [&](uint32_t r, uint32_t lane, uint32_t n) {
    call.Extend(at.At(r, lane), n * 4ull);
    end = d.At(r, lane + n - 1) + sizeof(T);
  });
  auto offset = [&](uint32_t r, uint32_t lane) {
    return call.InUb(at.At(r, lane), 4) ? base + *As<uint32_t>(call.core.ub + at.At(r, lane)) : 0;
  };
  call.Ub("src", false, from.address, 0, from.low, from.high, 32);
  bool aligned = true, apart = true;
  ForRuns(lanes, 1, [&](uint32_t r, uint32_t lane, uint32_t) {
    const uint64_t read = from.address + offset(r, lane);
    call.Extend(read, sizeof(T));
    aligned = aligned && offset(r, lane) % sizeof(T) == 0;
    apart = apart && (read >= end || d.base >= read + sizeof(T));
  });
  if (!aligned) call.Problem(true, "misaligned", "an offset is not a multiple of the element's %zu bytes", sizeof(T));
  Touch(call, "dst", true, dst.View(), d, lanes);
  if (!apart)
    call.Problem(false, "overlap", "Gather reads and writes UB at [%llu, %llu)", (unsigned long long)d.base,
                 (unsigned long long)end);
  if (call.Issue(lanes.repeats))
    ForRuns(lanes, 1, [&](uint32_t r, uint32_t lane, uint32_t) {
      std::memcpy(call.core.ub + d.At(r, lane), call.core.ub + from.address + offset(r, lane), sizeof(T));
    });
}

}  // inline namespace
}  // namespace twin

#if __NPU_ARCH__ == 3510
#define TWIN_GATHERABLE_BY_MASK int16_t, uint16_t, half, bfloat16_t, int32_t, uint32_t, float, int64_t, uint64_t
#define TWIN_COMPACTABLE int8_t, uint8_t, int16_t, uint16_t, half, bfloat16_t, int32_t, uint32_t, float
#define TWIN_GATHERABLE                                                                                                \
  int8_t, uint8_t, int16_t, uint16_t, half, bfloat16_t, int32_t, uint32_t, float, int64_t, uint64_t
#define TWIN_BLOCK_GATHERABLE TWIN_GATHERABLE
#else
#define TWIN_COMPACTABLE int16_t, uint16_t, half, bfloat16_t, int32_t, uint32_t, float
#define TWIN_GATHERABLE int16_t, uint16_t, half, bfloat16_t, int32_t, uint32_t, float
#define TWIN_BLOCK_GATHERABLE uint16_t, uint32_t
#define TWIN_GATHERABLE_BY_MASK TWIN_GATHERABLE
#endif

namespace AscendC {

// Packs the elements whose pattern bit is 1 and counts them. Counter mode: `mask` elements a repeat.
template <typename T, typename U, GatherMaskMode mode = defaultGatherMaskMode>
TWIN_OUTLINE void GatherMask(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<U>& src1Pattern,
                       const bool reduceMode, const uint32_t mask, const GatherMaskParams& params, uint64_t& rsvdCnt,
                       twin::Site site = twin::Site::Here()) {
  TWIN_TYPES(GatherMask, TWIN_COMPACTABLE);
  static_assert(sizeof(U) == sizeof(T) && std::is_unsigned<U>::value,
                "GatherMask takes its pattern as an unsigned tensor of the data's width");
  twin::Call call("GatherMask", PIPE_V, site);
  constexpr uint32_t perRepeat = 256 / sizeof(T);
  uint32_t length = reduceMode ? mask : perRepeat;
  if (reduceMode && mask == 0) call.Problem(true, "mask-limit", "mask is 0 in counter mode, the least is 1");
  twin::View pattern = src1Pattern.View();
  uint64_t step = params.src1RepeatStride * 32ull, bytes = (length + 7) / 8;
  call.UbPieces("src1Pattern", false, pattern.address, params.repeatTimes, bytes, int64_t(step), pattern.low,
                pattern.high, 32);
  bool readable = params.repeatTimes == 0 ||
                  call.InUb(pattern.address, (params.repeatTimes - 1) * step + bytes);
  const uint8_t* bits = call.core.ub + pattern.address;
  rsvdCnt = twin::Compact(call, dst, src0, reduceMode, mask, params, readable, [=](uint32_t r, uint32_t i) {
    return uint32_t(bits[r * step + i / 8] >> (i % 8)) & 1;
  });
}

template <typename T, GatherMaskMode mode = defaultGatherMaskMode>
TWIN_OUTLINE void GatherMask(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const uint8_t src1Pattern,
                       const bool reduceMode, const uint32_t mask, const GatherMaskParams& params, uint64_t& rsvdCnt,
                       twin::Site site = twin::Site::Here()) {
  TWIN_TYPES(GatherMask, TWIN_COMPACTABLE);
  twin::Call call("GatherMask", PIPE_V, site);
  if (reduceMode && mask == 0) call.Problem(true, "mask-limit", "mask is 0 in counter mode, the least is 1");
  if (src1Pattern < 1 || src1Pattern > 7)
    call.Problem(true, "pattern", "the constant pattern is %u, the range is 1 to 7", unsigned(src1Pattern));
  uint32_t byte = twin::PatternByte(src1Pattern);
  rsvdCnt = twin::Compact(call, dst, src0, reduceMode, mask, params, true,
                          [=](uint32_t, uint32_t i) { return (byte >> (i % 8)) & 1; });
}

// dst[i] = the element at byte srcBaseAddr + srcOffset[i] of src.
template <typename T>
TWIN_OUTLINE void Gather(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint32_t>& srcOffset,
                   const uint32_t srcBaseAddr, const uint32_t count, twin::Site site = twin::Site::Here()) {
  TWIN_TYPES(Gather, TWIN_GATHERABLE);
  twin::Call call("Gather", PIPE_V, site);
  twin::View from = src.View(), to = dst.View(), offsets = srcOffset.View();
  twin::Touch(call, "srcOffset", false, srcOffset, count);
  const uint32_t* offset = twin::As<uint32_t>(call.core.ub + offsets.address);
  bool readable = call.InUb(offsets.address, uint64_t(count) * 4);
  call.Ub("src", false, from.address, 0, from.low, from.high, 32);
  uint64_t last = from.address;
  for (uint32_t i = 0; readable && i < count; ++i) {
    uint64_t at = from.address + srcBaseAddr + offset[i];
    call.Extend(at, sizeof(T));
    if (at > last) last = at;
    if ((srcBaseAddr + offset[i]) % sizeof(T))
      call.Problem(true, "misaligned", "offset %u of element %u is not a multiple of the element's %zu bytes",
                   offset[i], i, sizeof(T));
  }
  twin::Touch(call, "dst", true, dst, count);
  if (to.address < last + sizeof(T) && from.address < to.address + uint64_t(count) * sizeof(T))
    call.Problem(false, "overlap", "Gather reads and writes UB at [%llu, %llu)", (unsigned long long)to.address,
                 (unsigned long long)(to.address + uint64_t(count) * sizeof(T)));
  if (!call.Issue(twin::RepeatsOf(uint64_t(count) * sizeof(T)))) return;
  T* d = twin::As<T>(call.core.ub + to.address);
  const uint8_t* base = call.core.ub + from.address + srcBaseAddr;
  for (uint32_t i = 0; i < count; ++i) std::memcpy(d + i, base + offset[i], sizeof(T));
}

template <typename T>
inline void Gather(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint32_t>& srcOffset,
                   const uint32_t srcBaseAddr, const uint64_t mask, const twin::Repeat repeat,
                   const uint16_t dstRepStride, twin::Site site = twin::Site::Here()) {
  TWIN_TYPES(Gather, TWIN_GATHERABLE_BY_MASK);
  twin::GatherLanes(dst, src, srcOffset, srcBaseAddr, mask, repeat, dstRepStride, site);
}
template <typename T>
inline void Gather(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint32_t>& srcOffset,
                   const uint32_t srcBaseAddr, const uint64_t mask[], const twin::Repeat repeat,
                   const uint16_t dstRepStride, twin::Site site = twin::Site::Here()) {
  TWIN_TYPES(Gather, TWIN_GATHERABLE_BY_MASK);
  twin::GatherLanes(dst, src, srcOffset, srcBaseAddr, mask, repeat, dstRepStride, site);
}

// Eight 32-byte blocks a repeat, each from its own byte offset.
template <typename T>
TWIN_OUTLINE void Gatherb(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint32_t>& offset,
                    const twin::Repeat repeat, const GatherRepeatParams& params,
                    twin::Site site = twin::Site::Here()) {
  TWIN_TYPES(Gatherb, TWIN_BLOCK_GATHERABLE);
  twin::Call call("Gatherb", PIPE_V, site);
  uint32_t repeats = twin::CheckRepeat(call, repeat);
  twin::View from = src.View(), to = dst.View(), offsets = offset.View();
  twin::Touch(call, "offset", false, offset, repeats * 8);
  const uint32_t* at = twin::As<uint32_t>(call.core.ub + offsets.address);
  bool readable = call.InUb(offsets.address, repeats * 32ull);
  uint32_t blockStride = params.dstBlkStride ? params.dstBlkStride : 1;
  call.Ub("src", false, from.address, 0, from.low, from.high, 32);
  for (uint32_t i = 0; readable && i < repeats * 8; ++i) {
    call.Extend(from.address + at[i], 32);
    if (at[i] % 32) call.Problem(true, "misaligned", "block offset %u is not a multiple of 32 bytes", at[i]);
  }
  call.Ub("dst", true, to.address, 0, to.low, to.high, 32);
  for (uint32_t i = 0; i < repeats * 8; ++i)
    call.Extend(to.address + (uint64_t(i / 8) * params.dstRepStride + i % 8 * blockStride) * 32, 32);
  if (!call.Issue(repeats)) return;
  for (uint32_t i = 0; i < repeats * 8; ++i)
    std::memcpy(call.core.ub + to.address + (uint64_t(i / 8) * params.dstRepStride + i % 8 * blockStride) * 32,
                call.core.ub + from.address + at[i], 32);
}

#if __NPU_ARCH__ == 3510
// The element at byte dstBaseAddr + dstOffset[i] of dst = src[i]. 910B has no such instruction.
template <typename T>
TWIN_OUTLINE void Scatter(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint32_t>& dstOffset,
                    const uint32_t dstBaseAddr, const uint32_t count, twin::Site site = twin::Site::Here()) {
  TWIN_TYPES(Scatter, TWIN_GATHERABLE);
  twin::Call call("Scatter", PIPE_V, site);
  twin::View to = dst.View(), offsets = dstOffset.View();
  twin::Touch(call, "src", false, src, count);
  twin::Touch(call, "dstOffset", false, dstOffset, count);
  const uint32_t* offset = twin::As<uint32_t>(call.core.ub + offsets.address);
  bool readable = call.InUb(offsets.address, uint64_t(count) * 4);
  call.Ub("dst", true, to.address, 0, to.low, to.high, 32);
  for (uint32_t i = 0; readable && i < count; ++i) {
    call.Extend(to.address + dstBaseAddr + offset[i], sizeof(T));
    if ((dstBaseAddr + offset[i]) % sizeof(T))
      call.Problem(true, "misaligned", "offset %u of element %u is not a multiple of the element's %zu bytes",
                   offset[i], i, sizeof(T));
  }
  if (!call.Issue(twin::RepeatsOf(uint64_t(count) * sizeof(T)))) return;
  const T* a = twin::As<T>(call.core.ub + src.View().address);
  uint8_t* base = call.core.ub + to.address + dstBaseAddr;
  for (uint32_t i = 0; i < count; ++i) std::memcpy(base + offset[i], a + i, sizeof(T));
}
#endif

}  // namespace AscendC
