// Duplicate, index ramps, Brcb, Transpose.
#pragma once
#include "twin/cast.h"

#if __NPU_ARCH__ == 3510
#define TWIN_NARROW hifloat8_t, fp8_e4m3fn_t, fp8_e5m2_t, fp8_e8m0_t, fp4x2_e2m1_t, fp4x2_e1m2_t
#define TWIN_COPIED int16_t, uint16_t, half, bfloat16_t, int32_t, uint32_t, float, int64_t, uint64_t
#define TWIN_FILLABLE                                                                                                  \
  bool, int8_t, uint8_t, int16_t, uint16_t, half, bfloat16_t, int32_t, uint32_t, float, int64_t, uint64_t, hifloat8_t, \
      fp8_e4m3fn_t, fp8_e5m2_t, fp8_e8m0_t
#define TWIN_RAMPS int8_t, int16_t, half, int32_t, float, int64_t
#define TWIN_BROADCAST int8_t, uint8_t, int16_t, uint16_t, half, bfloat16_t, int32_t, uint32_t, float, int64_t, uint64_t
#else
#define TWIN_COPIED int16_t, uint16_t, half, bfloat16_t, int32_t, uint32_t, float
#define TWIN_FILLABLE int16_t, uint16_t, half, bfloat16_t, int32_t, uint32_t, float
#define TWIN_RAMPS int16_t, half, int32_t, float
#define TWIN_BROADCAST int16_t, uint16_t, half, bfloat16_t, int32_t, uint32_t, float
#endif

namespace twin {
inline namespace TWIN_ABI {

template <typename T, typename M>
TWIN_OUTLINE void DuplicateLanes(const Local<T>& dst, T value, M mask, const Repeat& repeat, uint32_t blockStride,
                           uint32_t repeatStride, bool setMask, Site site) {
  Call call("Duplicate", PIPE_V, site);
  Lanes lanes = LanesOf(call, mask, repeat, 256 / sizeof(T), setMask);
  Walk d{dst.View().address, sizeof(T), blockStride, repeatStride};
  Touch(call, "dst", true, dst.View(), d, lanes);
  if (!call.Issue(lanes.repeats)) return;
  WalkLanes(call.core, lanes, d, d, [=](uint8_t* x, uint8_t*, uint64_t n) {
    for (uint64_t i = 0; i < n; ++i) As<T>(x)[i] = value;
  });
}

template <typename T, typename M>
TWIN_OUTLINE void CopyLanes(const Local<T>& dst, const Local<T>& src, M mask, const Repeat& repeat,
                            const AscendC::CopyRepeatParams& params, bool setMask, Site site) {
  Call call("Copy", PIPE_V, site);
  const Lanes lanes = LanesOf(call, mask, repeat, 256 / sizeof(T), setMask);
  const Walk d{dst.View().address, sizeof(T), params.dstStride, params.dstRepeatSize};
  const Walk a{src.View().address, sizeof(T), params.srcStride, params.srcRepeatSize};
  Touch(call, "src", false, src.View(), a, lanes);
  Touch(call, "dst", true, dst.View(), d, lanes);
  if (call.Issue(lanes.repeats))
    WalkLanes(call.core, lanes, d, a, [](uint8_t* x, uint8_t* y, uint64_t n) { std::memmove(x, y, n * sizeof(T)); });
}

template <typename T, typename M>
TWIN_OUTLINE void IndexLanes(const Local<T>& dst, T first, M mask, const Repeat& repeat, uint32_t blockStride,
                       uint32_t repeatStride, Site site) {
  Call call("CreateVecIndex", PIPE_V, site);
  Lanes lanes = LanesOf(call, mask, repeat, 256 / sizeof(T), true);
  Walk d{dst.View().address, sizeof(T), blockStride, repeatStride};
  Touch(call, "dst", true, dst.View(), d, lanes);
  if (!call.Issue(lanes.repeats)) return;
  for (uint32_t r = 0; r < lanes.repeats; ++r)
    for (uint32_t lane = 0; lane < lanes.perRepeat; ++lane)
      if (lanes.Active(r, lane))
        Store(*As<T>(call.core.ub + d.At(r, lane)), Compute<T>(Load(first) + Compute<T>(r * lanes.perRepeat + lane)));
}

}  // inline namespace
}  // namespace twin

namespace AscendC {

template <typename T>
TWIN_OUTLINE void Duplicate(const LocalTensor<T>& dst, const T& value, const int32_t& count,
                      twin::Site site = twin::Site::Here()) {
  TWIN_TYPES(Duplicate, TWIN_FILLABLE);
  twin::Call call("Duplicate", PIPE_V, site);
  uint64_t n = twin::CountOf(call, count, true);
  twin::Touch(call, "dst", true, dst, n);
  if (!call.Issue(twin::RepeatsOf(n * sizeof(T)))) return;
  T* d = twin::As<T>(call.core.ub + dst.View().address);
  const T v = value;
  for (uint64_t i = 0; i < n; ++i) d[i] = v;
}
template <typename T, bool isSetMask = true>
TWIN_OUTLINE void Duplicate(const LocalTensor<T>& dst, const T& value, uint64_t mask[], const twin::Repeat repeat,
                      const uint16_t dstBlockStride, const uint8_t dstRepeatStride,
                      twin::Site site = twin::Site::Here()) {
  TWIN_TYPES(Duplicate, TWIN_FILLABLE);
  twin::DuplicateLanes(dst, value, (const uint64_t*)mask, repeat, dstBlockStride, dstRepeatStride, isSetMask, site);
}
template <typename T, bool isSetMask = true>
TWIN_OUTLINE void Duplicate(const LocalTensor<T>& dst, const T& value, uint64_t mask, const twin::Repeat repeat,
                      const uint16_t dstBlockStride, const uint8_t dstRepeatStride,
                      twin::Site site = twin::Site::Here()) {
  TWIN_TYPES(Duplicate, TWIN_FILLABLE);
  twin::DuplicateLanes(dst, value, mask, repeat, dstBlockStride, dstRepeatStride, isSetMask, site);
}

// first, first + 1, ... On 910B the device builds it as a serial chain of one Adds a repeat (see the report).
template <typename T>
TWIN_OUTLINE void CreateVecIndex(LocalTensor<T> dst, const T& first, uint32_t count,
                                 twin::Site site = twin::Site::Here()) {
  TWIN_TYPES(CreateVecIndex, TWIN_RAMPS);
  twin::Call call("CreateVecIndex", PIPE_V, site);
  twin::Touch(call, "dst", true, dst, count);
  if (!call.Issue(twin::RepeatsOf(count * sizeof(T)))) return;
  T* d = twin::As<T>(call.core.ub + dst.View().address);
  const auto start = twin::Load(first);
  for (uint32_t i = 0; i < count; ++i) twin::Store(d[i], twin::AddOp::Of(start, twin::Compute<T>(i)));
}
template <typename T>
TWIN_OUTLINE void CreateVecIndex(LocalTensor<T>& dst, const T& first, uint64_t mask[], const twin::Repeat repeat,
                           uint16_t dstBlkStride, uint8_t dstRepStride, twin::Site site = twin::Site::Here()) {
  TWIN_TYPES(CreateVecIndex, TWIN_RAMPS);
  twin::IndexLanes(dst, first, (const uint64_t*)mask, repeat, dstBlkStride, dstRepStride, site);
}
template <typename T>
TWIN_OUTLINE void CreateVecIndex(LocalTensor<T>& dst, const T& first, uint64_t mask, const twin::Repeat repeat,
                           uint16_t dstBlkStride, uint8_t dstRepStride, twin::Site site = twin::Site::Here()) {
  TWIN_TYPES(CreateVecIndex, TWIN_RAMPS);
  twin::IndexLanes(dst, first, mask, repeat, dstBlkStride, dstRepStride, site);
}

// first, first + diff, first + 2 diff, ...
template <typename T>
TWIN_OUTLINE void ArithProgression(const LocalTensor<T>& dst, const T first, const T diff, const int32_t count,
                             twin::Site site = twin::Site::Here()) {
  TWIN_TYPES(ArithProgression, int16_t, half, int32_t, float);
  twin::Call call("ArithProgression", PIPE_V, site);
  uint64_t n = twin::CountOf(call, count, true);
  twin::Touch(call, "dst", true, dst, n);
  if (!call.Issue(twin::RepeatsOf(n * sizeof(T)))) return;
  T* d = twin::As<T>(call.core.ub + dst.View().address);
  const auto start = twin::Load(first), step = twin::Load(diff);
  for (uint64_t i = 0; i < n; ++i)
    twin::Store(d[i], twin::AddOp::Of(start, twin::MulOp::Of(step, twin::Compute<T>(i))));
}
template <typename T>
inline void Arange(const LocalTensor<T>& dst, const T first, const T diff, const int32_t count,
                   twin::Site site = twin::Site::Here()) {
  ArithProgression(dst, first, diff, count, site);
}

// Each of 8 elements a repeat fills one 32-byte block of dst.
template <typename T>
TWIN_OUTLINE void Brcb(const LocalTensor<T>& dst, const LocalTensor<T>& src, const twin::Repeat repeat,
                 const BrcbRepeatParams& params, twin::Site site = twin::Site::Here()) {
  TWIN_TYPES(Brcb, TWIN_BROADCAST);
  twin::Call call("Brcb", PIPE_V, site);
  constexpr uint32_t perBlock = 32 / sizeof(T);
  uint32_t repeats = twin::CheckRepeat(call, repeat);
  twin::Touch(call, "src", false, src, repeats * 8);
  twin::Lanes lanes = twin::MaskLanes(8 * perBlock, 8 * perBlock, repeats);
  if (8 * perBlock > 128) lanes.total = uint64_t(repeats) * 8 * perBlock;
  twin::Walk d{dst.View().address, sizeof(T), params.dstBlkStride, params.dstRepStride};
  twin::Touch(call, "dst", true, dst.View(), d, lanes);
  constexpr uint64_t taken = 8 * sizeof(T);
  twin::CheckRepeats(call, "src", repeats, twin::RepeatedOf(d, lanes), {src.View().address, taken, taken});
  if (!call.Issue(repeats)) return;
  const T* a = twin::As<T>(call.core.ub + src.View().address);
  for (uint32_t r = 0; r < repeats; ++r)
    for (uint32_t b = 0; b < 8; ++b) {
      T* out = twin::As<T>(call.core.ub + d.At(r, b * perBlock));
      for (uint32_t i = 0; i < perBlock; ++i) out[i] = a[r * 8 + b];
    }
}

// A 16 x 16 matrix of 16-bit elements.
template <typename T>
TWIN_OUTLINE void Transpose(const LocalTensor<T>& dst, const LocalTensor<T>& src,
                            twin::Site site = twin::Site::Here()) {
  TWIN_TYPES(Transpose, int16_t, uint16_t, half);
  twin::Call call("Transpose", PIPE_V, site);
  twin::Touch(call, "src", false, src, 256);
  twin::Touch(call, "dst", true, dst, 256);
  twin::CheckOverlap(call, "src", dst.View().address, 512, src.View().address, 512);
  if (!call.Issue(2)) return;
  T copy[256];
  std::memcpy(copy, call.core.ub + src.View().address, sizeof(copy));
  T* d = twin::As<T>(call.core.ub + dst.View().address);
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 16; ++j) d[i * 16 + j] = copy[j * 16 + i];
}

// A masked copy within UB, block strides and repeat strides in 32-byte blocks.
template <typename T, bool isSetMask = true>
inline void Copy(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint64_t mask, const twin::Repeat repeat,
                 const CopyRepeatParams& params, twin::Site site = twin::Site::Here()) {
  TWIN_TYPES(Copy, TWIN_COPIED);
  twin::CopyLanes(dst, src, mask, repeat, params, isSetMask, site);
}
template <typename T, bool isSetMask = true>
inline void Copy(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint64_t mask[], const twin::Repeat repeat,
                 const CopyRepeatParams& params, twin::Site site = twin::Site::Here()) {
  TWIN_TYPES(Copy, TWIN_COPIED);
  twin::CopyLanes(dst, src, mask, repeat, params, isSetMask, site);
}
#if __NPU_ARCH__ == 3510
template <typename T, bool isSetMask = true>
TWIN_OUTLINE void Copy(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint32_t count,
                       twin::Site site = twin::Site::Here()) {
  TWIN_TYPES(Copy, TWIN_COPIED, TWIN_NARROW, int8_t, uint8_t);
  twin::Call call("Copy", PIPE_V, site);
  const uint64_t d = dst.View().address, a = src.View().address, bytes = uint64_t(count) * sizeof(T);
  twin::Touch(call, "src", false, src, count);
  twin::Touch(call, "dst", true, dst, count);
  twin::CheckOverlap(call, "src", d, bytes, a, bytes);
  if (call.Issue(twin::RepeatsOf(bytes))) std::memmove(call.core.ub + d, call.core.ub + a, bytes);
}
#endif

}  // namespace AscendC
