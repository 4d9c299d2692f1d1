// Reductions. Sums follow the documented binary tree: ((0+1)+(2+3))+((4+5)+(6+7)) within a block, the same again over
// the blocks of a repeat; lanes that the mask leaves out count as 0. ReduceSum adds the sums of the repeats in order on
// 910B, and again by tree on 950. half sums round at every addition. Max and Min keep the lowest index among equals;
// a NaN beats every number.
#pragma once
#include "twin/select.h"

namespace twin {
inline namespace TWIN_ABI {

using AscendC::ReduceOrder;

template <typename T> inline Compute<T> Rounded(Compute<T> x) {
  if constexpr (std::is_same<T, half>::value) return HalfToFloat(FloatToHalf(x));
  return x;
}

// Sums v[0..n), n a power of two; v is overwritten. Integers wrap around.
template <typename T>
inline Compute<T> TreeSum(Compute<T>* v, uint32_t n) {
  for (; n > 1; n /= 2)
    for (uint32_t i = 0; i < n / 2; ++i) v[i] = Rounded<T>(AddOp::Of(v[2 * i], v[2 * i + 1]));
  return v[0];
}

// The sums of the repeats, added by tree as well: a repeat's worth at a time. They are overwritten.
template <typename T>
inline Compute<T> SumOfRepeats(Compute<T>* sums, uint64_t repeats) {
  constexpr uint32_t perRepeat = 256 / sizeof(T);
  for (uint64_t left = repeats; left > 1;) {
    const uint64_t next = (left + perRepeat - 1) / perRepeat;
    for (uint64_t r = 0; r < next; ++r) {
      Compute<T> values[perRepeat];
      for (uint32_t i = 0; i < perRepeat; ++i) values[i] = r * perRepeat + i < left ? sums[r * perRepeat + i] : Compute<T>(0);
      sums[r] = TreeSum<T>(values, perRepeat);
    }
    left = next;
  }
  return sums[0];
}

template <bool max, typename C>
inline bool Beats(C a, C b) {
  return max ? (a > b || (a != a && b == b)) : (a < b || (a != a && b == b));
}

enum class Reduction { kSum, kMax, kMin };

// What the last reduction of this block gave, as bits: the scalar unit reads it without a look at UB.
struct ReduceRegisters {
  uint64_t extreme = 0, index = 0, sum = 0;
};
inline thread_local ReduceRegisters reduceRegisters;
template <typename T>
inline uint64_t BitsOf(const T& value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return bits;
}

// One instruction that reduces groups of lanes of each repeat: a whole repeat, a block or a pair.
struct Groups {
  uint32_t lanes;      // lanes a group
  uint64_t dstStride;  // bytes from one repeat's results to the next's
  uint32_t result;     // bytes a result
  uint32_t align;      // of dst, in bytes
};

template <Reduction reduction, typename D, typename T, typename M>
TWIN_OUTLINE void ReduceGroups(const char* api, const Local<D>& dst, const Local<T>& src, M mask, int32_t repeat,
                         const Groups& groups, int32_t srcBlkStride, int32_t srcRepStride, ReduceOrder order,
                         bool setMask, Site site) {
  Call call(api, PIPE_V, site);
  constexpr uint32_t perRepeat = 256 / sizeof(T);
  if (srcBlkStride < 0 || srcRepStride < 0 || srcBlkStride > 65535 || srcRepStride > 65535)
    call.Problem(true, "stride-limit", "strides are %d and %d, the limits are 0 and 65535", srcBlkStride, srcRepStride);
  Lanes lanes = LanesOf(call, mask, repeat, perRepeat, setMask);
  View to = dst.View();
  Walk a{src.View().address, sizeof(T), uint32_t(srcBlkStride), uint32_t(srcRepStride)};
  Touch(call, "src", false, src.View(), a, lanes);
  // What a group with no active lane gives: on 910B nothing, on 950 the neutral value.
  constexpr bool fills = __NPU_ARCH__ == 3510;
  bool whole = groups.lanes == perRepeat;
  call.Ub("dst", true, to.address, 0, to.low, to.high, groups.align);
  for (uint32_t r = 0; r < lanes.repeats; ++r)
    for (uint32_t g = 0; g < perRepeat / groups.lanes; ++g) {
      bool any = fills && !whole;
      for (uint32_t i = 0; i < groups.lanes && !any; ++i) any = lanes.Active(r, g * groups.lanes + i);
      if (any) call.Extend(to.address + r * groups.dstStride + g * groups.result, groups.result);
    }
  CheckRepeats(call, "src", lanes.repeats, {to.address, groups.dstStride, perRepeat / groups.lanes * groups.result},
               RepeatedOf(a, lanes));
  if (!call.Issue(lanes.repeats)) return;
  uint8_t* ub = call.core.ub;
  T overall{};
  uint64_t place = ~0ull;  // of the best of all repeats
  for (uint32_t r = 0; r < lanes.repeats; ++r)
    for (uint32_t g = 0; g < perRepeat / groups.lanes; ++g) {
      uint8_t* out = ub + to.address + r * groups.dstStride + g * groups.result;
      bool any = false;
      if constexpr (reduction == Reduction::kSum) {
        Compute<D> values[perRepeat] = {};
        for (uint32_t i = 0; i < groups.lanes; ++i) {
          uint32_t lane = g * groups.lanes + i;
          if (!lanes.Active(r, lane)) continue;
          values[i] = Compute<D>(Load(*As<T>(ub + a.At(r, lane))));
          any = true;
        }
        if (any || (fills && !whole)) Store(*As<D>(out), TreeSum<D>(values, groups.lanes));
      } else {
        constexpr bool max = reduction == Reduction::kMax;
        T best{};
        uint32_t index = 0;
        for (uint32_t i = 0; i < groups.lanes; ++i) {
          uint32_t lane = g * groups.lanes + i;
          if (!lanes.Active(r, lane)) continue;
          T value = *As<T>(ub + a.At(r, lane));
          if (!any || Beats<max>(Load(value), Load(best))) {
            best = value;
            index = lane;
          }
          any = true;
        }
        if (!any && fills && !whole) {
          if constexpr (OneOf<T, half, float>) Store(best, max ? -INFINITY : INFINITY);
          any = true;
        }
        if (!any) continue;
        if (place == ~0ull || Beats<max>(Load(best), Load(overall))) {
          overall = best;
          place = uint64_t(r) * perRepeat + index;
        }
        using Index = std::conditional_t<sizeof(T) == 2, uint16_t, uint32_t>;
        Index narrow = Index(index);
        bool indexFirst = order == ReduceOrder::ORDER_INDEX_VALUE;
        if (order == ReduceOrder::ORDER_ONLY_INDEX) {
          std::memcpy(out, &index, 4);
        } else {
          std::memcpy(out + (indexFirst ? sizeof(T) : 0), &best, sizeof(T));
          if (order != ReduceOrder::ORDER_ONLY_VALUE)
            std::memcpy(out + (indexFirst ? 0 : sizeof(T)), &narrow, sizeof(T));
        }
      }
    }
  if (whole && place != ~0ull) {
    reduceRegisters.extreme = BitsOf(overall);
    reduceRegisters.index = place;
  }
}

template <Reduction reduction, typename D, typename T, typename M>
inline void ReduceWhole(const char* api, const Local<D>& dst, const Local<T>& src, M mask, int32_t repeat,
                        int32_t dstRepStride, int32_t srcBlkStride, int32_t srcRepStride, ReduceOrder order,
                        bool setMask, Site site) {
  uint32_t bytes = sizeof(D);
  if (reduction != Reduction::kSum) {
    if (order == ReduceOrder::ORDER_VALUE_INDEX || order == ReduceOrder::ORDER_INDEX_VALUE) bytes = 2 * sizeof(T);
    if (order == ReduceOrder::ORDER_ONLY_INDEX) bytes = 4;
  }
  Groups groups{uint32_t(256 / sizeof(T)), uint64_t(uint32_t(dstRepStride)) * bytes, bytes, bytes};
  ReduceGroups<reduction>(api, dst, src, mask, repeat, groups, srcBlkStride, srcRepStride, order, setMask, site);
}

template <Reduction reduction, typename T, typename M>
inline void ReduceBlocks(const char* api, const Local<T>& dst, const Local<T>& src, M mask, int32_t repeat,
                         int32_t dstRepStride, int32_t srcBlkStride, int32_t srcRepStride, bool setMask, Site site) {
  constexpr uint32_t align = 8 * sizeof(T);
  Groups groups{uint32_t(32 / sizeof(T)), uint64_t(uint32_t(dstRepStride)) * align, uint32_t(sizeof(T)), align};
  ReduceGroups<reduction>(api, dst, src, mask, repeat, groups, srcBlkStride, srcRepStride,
                          ReduceOrder::ORDER_ONLY_VALUE, setMask, site);
}

template <typename T, typename M>
inline void ReducePairs(const char* api, const Local<T>& dst, const Local<T>& src, M mask, int32_t repeat,
                        int32_t dstRepStride, int32_t srcBlkStride, int32_t srcRepStride, bool setMask, Site site) {
  Groups groups{2, uint64_t(uint32_t(dstRepStride)) * 128, uint32_t(sizeof(T)), 32};
  ReduceGroups<Reduction::kSum>(api, dst, src, mask, repeat, groups, srcBlkStride, srcRepStride,
                                ReduceOrder::ORDER_ONLY_VALUE, setMask, site);
}

// Bytes of scratch that ReduceMax and ReduceMin need on 910B: each round leaves a value and an index a repeat; with an
// index every round's results are kept.
template <typename T>
inline uint64_t ReduceScratch(uint64_t count, bool index) {
  constexpr uint64_t perRepeat = 256 / sizeof(T), perBlock = 32 / sizeof(T);
  uint64_t produced = (count + perRepeat - 1) / perRepeat * 2, total = RoundUp(produced, perBlock);
  while (index && produced > 2) {
    produced = (produced + perRepeat - 1) / perRepeat * 2;
    total += RoundUp(produced, perBlock);
  }
  return total * sizeof(T);
}

template <bool max, typename T>
TWIN_OUTLINE void ReduceExtreme(const char* api, const Local<T>& dst, const Local<T>& src, const Local<T>& tmp,
                          int32_t count, bool calIndex, Site site) {
  Call call(api, PIPE_V, site);
  uint64_t n = CountOf(call, count, true);
  if (n == 0) return;
  if (calIndex && sizeof(T) == 2 && n > 65536)
    call.Problem(false, "count", "an index of half tops out at 65535, and count is %d", count);
  View to = dst.View(), scratch = tmp.View();
  uint64_t scratchBytes = __NPU_ARCH__ == 3510 ? 0 : ReduceScratch<T>(n, calIndex);
  uint64_t results = (calIndex ? 2 : 1) * sizeof(T);
  Touch(call, "src", false, src, n);
  call.Ub("sharedTmpBuffer", true, scratch.address, scratchBytes, scratch.low, scratch.high, 32);
  call.Ub("dst", true, to.address, results, to.low, to.high, uint32_t(results));
  if (!call.Issue(RepeatsOf(n * sizeof(T)))) return;
  const T* a = As<T>(call.core.ub + src.View().address);
  T best = a[0];
  uint64_t index = 0;
  for (uint64_t i = 1; i < n; ++i)
    if (Beats<max>(Load(a[i]), Load(best))) {
      best = a[i];
      index = i;
    }
  call.Undefined(scratch.address, scratchBytes);
  call.Defined(to.address, results);
  std::memcpy(call.core.ub + to.address, &best, sizeof(T));
  reduceRegisters.extreme = BitsOf(best);
  if (calIndex) {
    std::memcpy(call.core.ub + to.address + sizeof(T), &index, sizeof(T));
  }
}

}  // inline namespace
}  // namespace twin

#if __NPU_ARCH__ == 3510
#define TWIN_WHOLE_EXTREMES int16_t, uint16_t, half, int32_t, uint32_t, float
#define TWIN_EXTREMES TWIN_WHOLE_EXTREMES, int64_t, uint64_t
#define TWIN_MASKED_SUMS half, float, int32_t, uint32_t
#define TWIN_SUMS TWIN_MASKED_SUMS, int64_t, uint64_t
#else
#define TWIN_WHOLE_EXTREMES half, float
#define TWIN_EXTREMES half, float
#define TWIN_MASKED_SUMS half, float
#define TWIN_SUMS half, float
#endif

namespace twin {
inline namespace TWIN_ABI {
// Whether a repeat of U sums up to a T: 950 widens 16-bit integers.
template <typename T, typename U>
inline constexpr bool SumsInto =
    (std::is_same<T, U>::value && OneOf<T, half, float>) ||
    (__NPU_ARCH__ == 3510 && ((std::is_same<T, int32_t>::value && OneOf<U, int16_t, int32_t>) ||
                              (std::is_same<T, uint32_t>::value && OneOf<U, uint16_t, uint32_t>)));
}  // inline namespace
}  // namespace twin

namespace AscendC {

template <typename T>
inline void ReduceMax(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<T>& sharedTmpBuffer,
                      const int32_t count, bool calIndex = 0, twin::Site site = twin::Site::Here()) {
  TWIN_TYPES(ReduceMax, TWIN_EXTREMES);
  twin::ReduceExtreme<true>("ReduceMax", dst, src, sharedTmpBuffer, count, calIndex, site);
}
template <typename T>
inline void ReduceMin(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<T>& sharedTmpBuffer,
                      const int32_t count, bool calIndex = 0, twin::Site site = twin::Site::Here()) {
  TWIN_TYPES(ReduceMin, TWIN_EXTREMES);
  twin::ReduceExtreme<false>("ReduceMin", dst, src, sharedTmpBuffer, count, calIndex, site);
}

template <typename T, bool isSetMask = true>
TWIN_OUTLINE void ReduceSum(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<T>& sharedTmpBuffer,
                      const int32_t count, twin::Site site = twin::Site::Here()) {
  TWIN_TYPES(ReduceSum, TWIN_SUMS);
  twin::Call call("ReduceSum", PIPE_V, site);
  uint64_t n = twin::CountOf(call, count, isSetMask);
  if (n == 0) return;
  constexpr uint32_t perRepeat = 256 / sizeof(T);
  twin::View to = dst.View(), scratch = sharedTmpBuffer.View();
  twin::Touch(call, "src", false, src, n);
  // 910B does not touch the scratch of this form; 950 puts the sums of the repeats there.
  uint64_t scratchBytes = __NPU_ARCH__ == 3510 ? twin::RoundUp((n + perRepeat - 1) / perRepeat * sizeof(T), 32) : 0;
  call.Ub("sharedTmpBuffer", true, scratch.address, scratchBytes, scratch.low, scratch.high, 32);
  call.Ub("dst", true, to.address, sizeof(T), to.low, to.high, sizeof(T));
  if (!call.Issue(twin::RepeatsOf(n * sizeof(T)))) return;
  const T* a = twin::As<T>(call.core.ub + src.View().address);
  using C = twin::Compute<T>;
  C values[perRepeat], total = 0;
  uint64_t repeats = (n + perRepeat - 1) / perRepeat;
  C* sums = reinterpret_cast<C*>(twin::ScratchBytes(repeats * sizeof(C)));
  for (uint64_t r = 0; r < repeats; ++r) {
    for (uint32_t i = 0; i < perRepeat; ++i) {
      uint64_t at = r * perRepeat + i;
      values[i] = at < n ? twin::Load(a[at]) : C(0);
    }
    sums[r] = twin::TreeSum<T>(values, perRepeat);
    total = r == 0 ? sums[0] : twin::Rounded<T>(twin::AddOp::Of(total, sums[r]));
  }
  if (__NPU_ARCH__ == 3510) total = twin::SumOfRepeats<T>(sums, repeats);
  call.Undefined(scratch.address, scratchBytes);
  call.Defined(to.address, sizeof(T));
  twin::Store(*twin::As<T>(call.core.ub + to.address), total);
  twin::reduceRegisters.sum = twin::BitsOf(*twin::As<T>(call.core.ub + to.address));
}

// The repeat's mask as a count of lanes or as bits.
#define TWIN_REDUCE_MASKS(Define) Define(const int32_t mask, uint64_t(mask)) Define(const uint64_t mask[], mask)

#define TWIN_WHOLE_EXTREME(Name, reduction, MaskParameter, maskValue)                                                 \
  template <typename T, bool isSetMask = true>                                                                        \
  inline void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, MaskParameter, const int32_t repeat,         \
                   const int32_t dstRepStride, const int32_t srcBlkStride, const int32_t srcRepStride,                \
                   ReduceOrder order = ReduceOrder::ORDER_VALUE_INDEX, twin::Site site = twin::Site::Here()) {        \
    TWIN_TYPES(Name, TWIN_WHOLE_EXTREMES);                                                                            \
    twin::ReduceWhole<twin::Reduction::reduction>(#Name, dst, src, maskValue, repeat, dstRepStride, srcBlkStride,     \
                                                  srcRepStride, order, isSetMask, site);                              \
  }
#if __NPU_ARCH__ == 3510
#define TWIN_WHOLE_SUM_TEMPLATE template <typename T, bool isSetMask = true, typename U = T>
#else
#define TWIN_WHOLE_SUM_TEMPLATE template <typename T, bool isSetMask = true, typename U = T, \
                                          typename = std::enable_if_t<std::is_same<T, U>::value>>
#endif
#define TWIN_WHOLE_SUM(MaskParameter, maskValue)                                                                      \
  TWIN_WHOLE_SUM_TEMPLATE                                                                                             \
  inline void WholeReduceSum(const LocalTensor<U>& dst, const LocalTensor<T>& src, MaskParameter,                     \
                             const int32_t repeat, const int32_t dstRepStride, const int32_t srcBlkStride,            \
                             const int32_t srcRepStride, twin::Site site = twin::Site::Here()) {                      \
    static_assert(twin::SumsInto<U, T>, "WholeReduceSum does not take these types");                                  \
    twin::ReduceWhole<twin::Reduction::kSum>("WholeReduceSum", dst, src, maskValue, repeat, dstRepStride,             \
                                             srcBlkStride, srcRepStride, ReduceOrder::ORDER_ONLY_VALUE, isSetMask,    \
                                             site);                                                                   \
  }
#define TWIN_WHOLE(MaskParameter, maskValue)                                                                          \
  TWIN_WHOLE_EXTREME(WholeReduceMax, kMax, MaskParameter, maskValue)                                                  \
  TWIN_WHOLE_EXTREME(WholeReduceMin, kMin, MaskParameter, maskValue)                                                  \
  TWIN_WHOLE_SUM(MaskParameter, maskValue)
TWIN_REDUCE_MASKS(TWIN_WHOLE)

// BlockReduce* and PairReduceSum take the repeat before the mask.
#define TWIN_GROUPED(Name, function, MaskParameter, maskValue)                                                        \
  template <typename T, bool isSetMask = true>                                                                        \
  inline void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const int32_t repeat, MaskParameter,         \
                   const int32_t dstRepStride, const int32_t srcBlkStride, const int32_t srcRepStride,                \
                   twin::Site site = twin::Site::Here()) {                                                            \
    TWIN_TYPES(Name, half, float);                                                                                    \
    twin::function(#Name, dst, src, maskValue, repeat, dstRepStride, srcBlkStride, srcRepStride, isSetMask, site);    \
  }
#define TWIN_BLOCKS(MaskParameter, maskValue)                                                                         \
  TWIN_GROUPED(BlockReduceMax, ReduceBlocks<twin::Reduction::kMax>, MaskParameter, maskValue)                         \
  TWIN_GROUPED(BlockReduceMin, ReduceBlocks<twin::Reduction::kMin>, MaskParameter, maskValue)                         \
  TWIN_GROUPED(BlockReduceSum, ReduceBlocks<twin::Reduction::kSum>, MaskParameter, maskValue)                         \
  TWIN_GROUPED(PairReduceSum, ReducePairs, MaskParameter, maskValue)
TWIN_REDUCE_MASKS(TWIN_BLOCKS)

// The newer names: the operation is a template argument, and the mask comes first throughout.
#define TWIN_NEW_NAMES(MaskParameter, maskValue)                                                                      \
  template <ReduceType type, typename T, typename U, bool isSetMask = true>                                           \
  inline void ReduceRepeat(const LocalTensor<T>& dst, const LocalTensor<U>& src, MaskParameter, const int32_t repeat, \
                           const int32_t dstRepStride, const int32_t srcBlkStride, const int32_t srcRepStride,        \
                           ReduceOrder order = ReduceOrder::ORDER_VALUE_INDEX,                                        \
                           twin::Site site = twin::Site::Here()) {                                                    \
    static_assert(type == ReduceType::SUM                                                                             \
                      ? twin::SumsInto<T, U>                                                                          \
                      : twin::OneOf<T, TWIN_WHOLE_EXTREMES> && std::is_same<T, U>::value,                             \
                  "ReduceRepeat does not take these types");                                                          \
    twin::ReduceWhole<twin::ReductionOf<type>()>("ReduceRepeat", dst, src, maskValue, repeat, dstRepStride,           \
                                                 srcBlkStride, srcRepStride, order, isSetMask, site);                 \
  }                                                                                                                   \
  template <ReduceType type, typename T, typename U, bool isSetMask = true>                                           \
  inline void ReduceDataBlock(const LocalTensor<T>& dst, const LocalTensor<U>& src, MaskParameter,                    \
                              const int32_t repeat, const int32_t dstRepStride, const int32_t srcBlkStride,           \
                              const int32_t srcRepStride, twin::Site site = twin::Site::Here()) {                     \
    TWIN_TYPES(ReduceDataBlock, half, float);                                                                         \
    static_assert(std::is_same<T, U>::value, "ReduceDataBlock takes dst and src of one type");                        \
    twin::ReduceBlocks<twin::ReductionOf<type>()>("ReduceDataBlock", dst, src, maskValue, repeat, dstRepStride,       \
                                                  srcBlkStride, srcRepStride, isSetMask, site);                       \
  }                                                                                                                   \
  template <ReduceType type, typename T, typename U, bool isSetMask = true>                                           \
  inline void ReducePairElem(const LocalTensor<T>& dst, const LocalTensor<U>& src, MaskParameter,                     \
                             const int32_t repeat, const int32_t dstRepStride, const int32_t srcBlkStride,            \
                             const int32_t srcRepStride, twin::Site site = twin::Site::Here()) {                      \
    TWIN_TYPES(ReducePairElem, half, float);                                                                          \
    static_assert(std::is_same<T, U>::value, "ReducePairElem takes dst and src of one type");                         \
    static_assert(type == ReduceType::SUM, "ReducePairElem sums, and nothing else");                                  \
    twin::ReducePairs("ReducePairElem", dst, src, maskValue, repeat, dstRepStride, srcBlkStride, srcRepStride,        \
                      isSetMask, site);                                                                               \
  }

}  // namespace AscendC

namespace twin {
inline namespace TWIN_ABI {
template <AscendC::ReduceType type>
constexpr Reduction ReductionOf() {
  return type == AscendC::ReduceType::SUM ? Reduction::kSum
         : type == AscendC::ReduceType::MAX ? Reduction::kMax : Reduction::kMin;
}
}  // inline namespace
}  // namespace twin

namespace AscendC {
TWIN_REDUCE_MASKS(TWIN_NEW_NAMES)
#undef TWIN_NEW_NAMES
#undef TWIN_BLOCKS
#undef TWIN_GROUPED
#undef TWIN_WHOLE
#undef TWIN_WHOLE_SUM
#undef TWIN_WHOLE_SUM_TEMPLATE
#undef TWIN_WHOLE_EXTREME
#undef TWIN_REDUCE_MASKS
}  // namespace AscendC

namespace AscendC {

// What the last WholeReduceMax or -Min gave over all its repeats, or the last ReduceMax or -Min; what the last ReduceSum gave.
// The older names are GetReduceMaxMinCount and GetAccVal.
#define TWIN_REDUCE_REGISTERS(Extreme, Sum)                                                                           \
  template <typename T>                                                                                               \
  inline void Extreme(T& maxMinValue, twin::Site site = twin::Site::Here()) {                                         \
    TWIN_TYPES(Extreme, half, float);                                                                                 \
    twin::Call call(#Extreme, PIPE_S, site);                                                                          \
    if (call.Issue()) std::memcpy(&maxMinValue, &twin::reduceRegisters.extreme, sizeof(T));                           \
  }                                                                                                                   \
  template <typename T>                                                                                               \
  inline T Sum(twin::Site site = twin::Site::Here()) {                                                                \
    TWIN_TYPES(Sum, half, float);                                                                                     \
    twin::Call call(#Sum, PIPE_S, site);                                                                              \
    T value{};                                                                                                        \
    if (call.Issue()) std::memcpy(&value, &twin::reduceRegisters.sum, sizeof(T));                                     \
    return value;                                                                                                     \
  }
TWIN_REDUCE_REGISTERS(GetReduceRepeatMaxMinSpr, GetReduceRepeatSumSpr)
TWIN_REDUCE_REGISTERS(GetReduceMaxMinCount, GetAccVal)
#undef TWIN_REDUCE_REGISTERS

#if __NPU_ARCH__ == 2201
// Also where that was: the index as bits of T, right after WholeReduceMax and -Min only.
template <typename T>
inline void GetReduceRepeatMaxMinSpr(T& maxMinValue, T& maxMinIndex, twin::Site site = twin::Site::Here()) {
  GetReduceRepeatMaxMinSpr(maxMinValue, site);
  std::memcpy(&maxMinIndex, &twin::reduceRegisters.index, sizeof(T));
}
template <typename T>
inline void GetReduceMaxMinCount(T& maxMinValue, T& maxMinIndex, twin::Site site = twin::Site::Here()) {
  GetReduceRepeatMaxMinSpr(maxMinValue, maxMinIndex, site);
}
#endif

}  // namespace AscendC
