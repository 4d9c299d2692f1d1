// ReduceMax, ReduceMin and ReduceSum over repeats with a mask and a stride, unlike their forms by count in reduce.h: as
// many repeats as int32_t holds, and a sum whose repeats are added by tree on 910B too.
#pragma once
#include "twin/reduce.h"

namespace twin {
inline namespace TWIN_ABI {

// The lanes of `repeats` repeats, more of them than one instruction takes.
inline Lanes ManyLanes(Call& call, uint64_t mask, int32_t repeats, uint32_t perRepeat) {
  Lanes lanes = LanesOf(call, mask, 1, perRepeat, true);
  lanes.repeats = uint32_t(std::max(repeats, 0));
  return lanes;
}
inline Lanes ManyLanes(Call& call, const uint64_t mask[], int32_t repeats, uint32_t perRepeat) {
  Lanes lanes = LanesOf(call, mask, 1, perRepeat, true);
  lanes.repeats = uint32_t(std::max(repeats, 0));
  return lanes;
}

// Names the operands of such a call; false where there is nothing to do.
template <typename T, typename M>
inline bool MaskedOperands(Call& call, const Local<T>& dst, const Local<T>& src, const Local<T>& tmp, M mask,
                           int32_t repeat, int32_t srcRepStride, uint64_t scratchBytes, uint64_t results, Lanes& lanes,
                           Walk& walk) {
  if (repeat < 0) call.Problem(true, "repeat-limit", "repeatTime is %d", repeat);
  if (srcRepStride < 0 || srcRepStride > 65535)
    call.Problem(true, "stride-limit", "srcRepStride is %d, the limits are 0 and 65535", srcRepStride);
  lanes = ManyLanes(call, mask, repeat, 256 / sizeof(T));
  walk = {src.View().address, sizeof(T), 1, uint32_t(srcRepStride)};
  const View scratch = tmp.View(), to = dst.View();
  Touch(call, "src", false, src.View(), walk, lanes);
  call.Ub("sharedTmpBuffer", true, scratch.address, scratchBytes, scratch.low, scratch.high, 32);
  call.Ub("dst", true, to.address, results, to.low, to.high, uint32_t(results));
  return call.Issue(lanes.repeats) && lanes.repeats;
}

template <bool max, typename T, typename M>
TWIN_OUTLINE void ReduceMaskedExtreme(const char* api, const Local<T>& dst, const Local<T>& src, const Local<T>& tmp, M mask,
                                      int32_t repeat, int32_t srcRepStride, bool calIndex, Site site) {
  Call call(api, PIPE_V, site);
  if (repeat == 0) return;
  constexpr uint32_t perRepeat = 256 / sizeof(T);
  const uint64_t scratchBytes =
      __NPU_ARCH__ == 3510 ? 0 : ReduceScratch<T>(uint64_t(std::max(repeat, 0)) * perRepeat, calIndex);
  const uint64_t results = (calIndex ? 2 : 1) * sizeof(T);
  Lanes lanes{};
  Walk walk{};
  if (!MaskedOperands(call, dst, src, tmp, mask, repeat, srcRepStride, scratchBytes, results, lanes, walk)) return;
  T best{};
  uint64_t index = ~0ull;
  for (uint32_t r = 0; r < lanes.repeats; ++r)
    for (uint32_t lane = 0; lane < perRepeat; ++lane) {
      if (!lanes.Active(r, lane)) continue;
      const T value = *As<T>(call.core.ub + walk.At(r, lane));
      if (index != ~0ull && !Beats<max>(Load(value), Load(best))) continue;
      best = value;
      index = uint64_t(r) * perRepeat + lane;
    }
  call.Undefined(tmp.View().address, scratchBytes);
  const uint64_t to = dst.View().address;
  if (index == ~0ull) return call.Undefined(to, results);
  call.Defined(to, results);
  std::memcpy(call.core.ub + to, &best, sizeof(T));
  reduceRegisters.extreme = BitsOf(best);
  if (calIndex) std::memcpy(call.core.ub + to + sizeof(T), &index, sizeof(T));
}

template <typename T, typename M>
TWIN_OUTLINE void ReduceMaskedSum(const Local<T>& dst, const Local<T>& src, const Local<T>& tmp, M mask, int32_t repeat,
                                  int32_t srcRepStride, Site site) {
  Call call("ReduceSum", PIPE_V, site);
  if (repeat == 0) return;
  constexpr uint32_t perRepeat = 256 / sizeof(T);
  const uint64_t scratchBytes = RoundUp(uint64_t(std::max(repeat, 0)) * sizeof(T), 32);
  Lanes lanes{};
  Walk walk{};
  if (!MaskedOperands(call, dst, src, tmp, mask, repeat, srcRepStride, scratchBytes, sizeof(T), lanes, walk)) return;
  auto* sums = reinterpret_cast<Compute<T>*>(ScratchBytes(lanes.repeats * sizeof(Compute<T>)));
  for (uint32_t r = 0; r < lanes.repeats; ++r) {
    Compute<T> values[perRepeat] = {};
    for (uint32_t lane = 0; lane < perRepeat; ++lane)
      if (lanes.Active(r, lane)) values[lane] = Load(*As<T>(call.core.ub + walk.At(r, lane)));
    sums[r] = TreeSum<T>(values, perRepeat);
  }
  const uint64_t to = dst.View().address;
  call.Undefined(tmp.View().address, scratchBytes);
  call.Defined(to, sizeof(T));
  Store(*As<T>(call.core.ub + to), SumOfRepeats<T>(sums, lanes.repeats));
  reduceRegisters.sum = BitsOf(*As<T>(call.core.ub + to));
}

}  // inline namespace
}  // namespace twin

namespace AscendC {

// The mask as a count of lanes or as bits.
#define TWIN_MASKED(MaskParameter, maskValue)                                                                         \
  template <typename T>                                                                                               \
  inline void ReduceMax(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<T>& sharedTmpBuffer,  \
                        MaskParameter, const int32_t repeatTime, const int32_t srcRepStride, bool calIndex = 0,       \
                        twin::Site site = twin::Site::Here()) {                                                       \
    TWIN_TYPES(ReduceMax, TWIN_WHOLE_EXTREMES);                                                                       \
    twin::ReduceMaskedExtreme<true>("ReduceMax", dst, src, sharedTmpBuffer, maskValue, repeatTime, srcRepStride,      \
                                    calIndex, site);                                                                  \
  }                                                                                                                   \
  template <typename T>                                                                                               \
  inline void ReduceMin(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<T>& sharedTmpBuffer,  \
                        MaskParameter, const int32_t repeatTime, const int32_t srcRepStride, bool calIndex = 0,       \
                        twin::Site site = twin::Site::Here()) {                                                       \
    TWIN_TYPES(ReduceMin, TWIN_WHOLE_EXTREMES);                                                                       \
    twin::ReduceMaskedExtreme<false>("ReduceMin", dst, src, sharedTmpBuffer, maskValue, repeatTime, srcRepStride,     \
                                     calIndex, site);                                                                 \
  }                                                                                                                   \
  template <typename T>                                                                                               \
  inline void ReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<T>& sharedTmpBuffer,  \
                        MaskParameter, const int32_t repeatTime, const int32_t srcRepStride,                          \
                        twin::Site site = twin::Site::Here()) {                                                       \
    TWIN_TYPES(ReduceSum, TWIN_MASKED_SUMS);                                                                          \
    twin::ReduceMaskedSum(dst, src, sharedTmpBuffer, maskValue, repeatTime, srcRepStride, site);                      \
  }
TWIN_MASKED(const int32_t mask, uint64_t(mask))
TWIN_MASKED(const uint64_t mask[], mask)
#undef TWIN_MASKED

}  // namespace AscendC
