// Compare and Select. A mask holds one bit an element, the lowest bit first.
#pragma once
#include "twin/fill.h"

#if __NPU_ARCH__ == 3510
#define TWIN_COMPARABLE TWIN_NUMBERS
#define TWIN_SELECTABLE                                                                                                \
  int8_t, uint8_t, int16_t, uint16_t, half, bfloat16_t, int32_t, uint32_t, float, int64_t, uint64_t
#else
#define TWIN_COMPARABLE half, float, int32_t
#define TWIN_SELECTABLE half, float
#endif

namespace twin {
inline namespace TWIN_ABI {

using AscendC::CMPMODE;
using AscendC::SELMODE;

// 910B compares int32_t for equality only.
template <typename T>
inline void CheckMode(Call& call, CMPMODE mode) {
  if (__NPU_ARCH__ == 2201 && std::is_same<T, int32_t>::value && mode != CMPMODE::EQ)
    call.Problem(true, "unsupported", "Compare of int32_t on 910B takes CMPMODE::EQ only");
}

template <CMPMODE mode, typename C>
inline bool Holds(C a, C b) {
  switch (mode) {
    case CMPMODE::LT: return a < b;
    case CMPMODE::GT: return a > b;
    case CMPMODE::EQ: return a == b;
    case CMPMODE::LE: return a <= b;
    case CMPMODE::GE: return a >= b;
    default: return a != b;
  }
}

// Packs n comparisons; bits past n in the last byte are cleared. `step` is 0 for a scalar right side.
template <CMPMODE mode, uint32_t step, typename T>
inline void CompareRun(uint8_t* d, const T* a, const T* b, uint64_t n) {
  uint64_t i = 0;
  const Compute<T> scalar = Load(b[0]);
  for (; i + 8 <= n; i += 8) {
    uint32_t bits = 0;
    for (uint32_t j = 0; j < 8; ++j)
      bits |= uint32_t(Holds<mode>(Load(a[i + j]), step ? Load(b[i + j]) : scalar)) << j;
    d[i / 8] = uint8_t(bits);
  }
  if (i == n) return;
  uint32_t bits = 0;
  for (uint32_t j = 0; i + j < n; ++j)
    bits |= uint32_t(Holds<mode>(Load(a[i + j]), step ? Load(b[i + j]) : scalar)) << j;
  d[i / 8] = uint8_t(bits);
}

template <uint32_t step, typename T>
TWIN_OUTLINE void CompareMode(CMPMODE mode, uint8_t* d, const T* a, const T* b, uint64_t n) {
  switch (mode) {
    case CMPMODE::LT: return CompareRun<CMPMODE::LT, step>(d, a, b, n);
    case CMPMODE::GT: return CompareRun<CMPMODE::GT, step>(d, a, b, n);
    case CMPMODE::EQ: return CompareRun<CMPMODE::EQ, step>(d, a, b, n);
    case CMPMODE::LE: return CompareRun<CMPMODE::LE, step>(d, a, b, n);
    case CMPMODE::GE: return CompareRun<CMPMODE::GE, step>(d, a, b, n);
    case CMPMODE::NE: return CompareRun<CMPMODE::NE, step>(d, a, b, n);
  }
}

template <typename T, typename U>
inline void CheckCompare(Call& call, const Local<U>& dst, uint64_t count, CMPMODE mode) {
  CheckMode<T>(call, mode);
  if (count * sizeof(T) % 256)
    call.Problem(false, "compare-count", "%llu elements are %llu bytes, not a multiple of 256",
                 (unsigned long long)count, (unsigned long long)(count * sizeof(T)));
  View view = dst.View();
  call.Ub("dst", true, view.address, (count + 7) / 8, view.low, view.high, 32);
}

// The bits of a repeat are written while its elements are read.
template <typename T, typename U>
inline void CheckApart(Call& call, const char* name, const Local<U>& dst, const Local<T>& src, uint64_t count) {
  CheckDisjoint(call, name, dst.View().address, (count + 7) / 8, src.View().address, count * sizeof(T));
}

template <typename T, typename U>
TWIN_OUTLINE void CompareScalarCount(const char* api, const Local<U>& dst, const Local<T>& src, T scalar, CMPMODE mode,
                               uint32_t count, Site site) {
  Call call(api, PIPE_V, site);
  Touch(call, "src0", false, src, count);
  CheckCompare<T>(call, dst, count, mode);
  CheckApart(call, "src0", dst, src, count);
  if (call.Issue(RepeatsOf(uint64_t(count) * sizeof(T))))
    CompareMode<0>(mode, call.core.ub + dst.View().address, As<T>(call.core.ub + src.View().address), &scalar, count);
}

// Strided compare: repeat r writes 256 / sizeof(T) bits right after those of repeat r - 1; masked lanes keep theirs.
template <typename T, typename U, typename M>
TWIN_OUTLINE void CompareLanes(const char* api, const Local<U>& dst, const Local<T>& src0, const Local<T>* src1,
                               T scalar, CMPMODE mode, M mask, const Repeat& repeat,
                               const AscendC::BinaryRepeatParams& p, bool setMask, Site site) {
  Call call(api, PIPE_V, site);
  CheckMode<T>(call, mode);
  Lanes lanes = LanesOf(call, mask, repeat, 256 / sizeof(T), setMask);
  Walk a{src0.View().address, sizeof(T), p.src0BlkStride, p.src0RepStride};
  Touch(call, "src0", false, src0.View(), a, lanes);
  Walk b{0, sizeof(T), p.src1BlkStride, p.src1RepStride};
  if (src1) {
    b.base = src1->View().address;
    Touch(call, "src1", false, src1->View(), b, lanes);
  }
  View to = dst.View();
  uint32_t bytes = lanes.perRepeat / 8;
  call.Ub("dst", true, to.address, uint64_t(bytes) * lanes.repeats, to.low, to.high, 32);
  const Repeated written{to.address, bytes, bytes};
  CheckRepeats(call, "src0", lanes.repeats, written, RepeatedOf(a, lanes));
  if (src1) CheckRepeats(call, "src1", lanes.repeats, written, RepeatedOf(b, lanes));
  if (!call.Issue(lanes.repeats)) return;
  for (uint32_t r = 0; r < lanes.repeats; ++r)
    for (uint32_t lane = 0; lane < lanes.perRepeat; ++lane) {
      if (!lanes.Active(r, lane)) continue;
      uint8_t bit = 0;
      T right = scalar;
      if (src1) right = *As<T>(call.core.ub + b.At(r, lane));
      CompareMode<0>(mode, &bit, As<T>(call.core.ub + a.At(r, lane)), &right, 1);
      uint8_t& out = call.core.ub[to.address + r * bytes + lane / 8];
      out = uint8_t((out & ~(1u << (lane % 8))) | (uint32_t(bit) << (lane % 8)));
    }
}

// Picks a[i] where bit firstBit + i is 1, else b[i], or b[0] for a scalar.
template <bool scalar, typename T>
TWIN_OUTLINE void SelectRun(T* __restrict d, const uint8_t* mask, uint64_t firstBit, const T* a, const T* b,
                            uint64_t n) {
  uint64_t i = 0;
  for (; firstBit == 0 && i + 8 <= n; i += 8) {
    uint32_t bits = mask[i / 8];
    for (uint32_t j = 0; j < 8; ++j) d[i + j] = (bits >> j) & 1 ? a[i + j] : b[scalar ? 0 : i + j];
  }
  for (; i < n; ++i) {
    uint64_t bit = firstBit + i;
    d[i] = (mask[bit / 8] >> (bit % 8)) & 1 ? a[i] : b[scalar ? 0 : i];
  }
}
template <typename T>
inline void SelectRun(T* d, const uint8_t* mask, uint64_t firstBit, const T* a, const T* b, bool scalar, uint64_t n) {
  if (scalar) SelectRun<true>(d, mask, firstBit, a, b, n);
  else SelectRun<false>(d, mask, firstBit, a, b, n);
}

// Modes 1 and 2 of 910B use the last 8 KB of UB as scratch.
inline void ReserveForSelect(Call& call, SELMODE mode) {
  if (__NPU_ARCH__ == 2201 && mode != SELMODE::VSEL_CMPMASK_SPR) call.Scratch(call.core.ubBytes - 8192, 8192);
}

template <typename T, typename U>
TWIN_OUTLINE void SelectCount(const Local<T>& dst, const Local<U>& mask, const Local<T>& src0, const Local<T>* src1,
                        T scalar, SELMODE mode, uint32_t count, Site site) {
  Call call("Select", PIPE_V, site);
  if (src1 && mode == SELMODE::VSEL_TENSOR_SCALAR_MODE)
    call.Problem(true, "select-mode", "VSEL_TENSOR_SCALAR_MODE takes a scalar, and src1 is a tensor");
  if (!src1 && mode != SELMODE::VSEL_TENSOR_SCALAR_MODE)
    call.Problem(true, "select-mode", "with a scalar src1 the mode is VSEL_TENSOR_SCALAR_MODE");
  constexpr uint32_t perRepeat = 256 / sizeof(T);
  View m = mask.View();
  uint64_t bits = mode == SELMODE::VSEL_CMPMASK_SPR && count > perRepeat ? perRepeat : count;
  call.Ub("selMask", false, m.address, (bits + 7) / 8, m.low, m.high, 32);
  Touch(call, "src0", false, src0, count);
  if (src1) Touch(call, "src1", false, *src1, count);
  Touch(call, "dst", true, dst, count);
  uint64_t bytes = uint64_t(count) * sizeof(T);
  CheckDisjoint(call, "selMask", dst.View().address, bytes, m.address, (bits + 7) / 8);
  CheckOverlap(call, "src0", dst.View().address, bytes, src0.View().address, bytes);
  if (src1) CheckOverlap(call, "src1", dst.View().address, bytes, src1->View().address, bytes);
  ReserveForSelect(call, mode);
  if (!call.Issue(RepeatsOf(bytes))) return;
  uint8_t* ub = call.core.ub;
  T* d = As<T>(ub + dst.View().address);
  const T* a = As<T>(ub + src0.View().address);
  const T* b = src1 ? As<T>(ub + src1->View().address) : &scalar;
  if (mode != SELMODE::VSEL_CMPMASK_SPR) return SelectRun(d, ub + m.address, 0, a, b, !src1, count);
  for (uint32_t i = 0; i < count; i += perRepeat)  // mode 0: every repeat uses the same bits
    SelectRun(d + i, ub + m.address, 0, a + i, b + i, false, count - i < perRepeat ? count - i : perRepeat);
}

template <typename T, typename U, typename M>
TWIN_OUTLINE void SelectLanes(const Local<T>& dst, const Local<U>& selMask, const Local<T>& src0, const Local<T>* src1,
                        T scalar, SELMODE mode, M mask, const Repeat& repeat, const AscendC::BinaryRepeatParams& p,
                        Site site) {
  Call call("Select", PIPE_V, site);
  if ((src1 == nullptr) != (mode == SELMODE::VSEL_TENSOR_SCALAR_MODE))
    call.Problem(true, "select-mode", "VSEL_TENSOR_SCALAR_MODE and only it takes a scalar src1");
  Lanes lanes = LanesOf(call, mask, repeat, 256 / sizeof(T), true);
  bool same = mode == SELMODE::VSEL_CMPMASK_SPR;
  View m = selMask.View();
  call.Ub("selMask", false, m.address, uint64_t(lanes.perRepeat) / 8 * (same && lanes.repeats ? 1 : lanes.repeats),
          m.low, m.high, 32);
  Walk d{dst.View().address, sizeof(T), p.dstBlkStride, p.dstRepStride};
  Walk a{src0.View().address, sizeof(T), p.src0BlkStride, p.src0RepStride};
  Walk b{src1 ? src1->View().address : 0, sizeof(T), p.src1BlkStride, p.src1RepStride};
  Touch(call, "src0", false, src0.View(), a, lanes);
  if (src1) Touch(call, "src1", false, src1->View(), b, lanes);
  Touch(call, "dst", true, dst.View(), d, lanes);
  uint64_t bytes = lanes.perRepeat / 8;
  CheckRepeats(call, "selMask", lanes.repeats, RepeatedOf(d, lanes), {m.address, same ? 0 : bytes, bytes});
  ReserveForSelect(call, mode);
  if (!call.Issue(lanes.repeats)) return;
  uint8_t* ub = call.core.ub;
  ForRuns(lanes, 32 / sizeof(T), [&](uint32_t r, uint32_t lane, uint32_t n) {
    uint64_t bit = (same ? 0 : uint64_t(r) * lanes.perRepeat) + lane;
    const T* right = src1 ? As<T>(ub + b.At(r, lane)) : &scalar;
    SelectRun(As<T>(ub + d.At(r, lane)), ub + m.address, bit, As<T>(ub + a.At(r, lane)), right, !src1, n);
  });
}

}  // inline namespace
}  // namespace twin

#define TWIN_MASK_TYPE(Name) \
  static_assert(twin::OneOf<U, uint8_t, uint16_t, uint32_t, uint64_t>, #Name " takes its bits as an unsigned tensor")
#define TWIN_COMPARE_TYPE(Name)                                                                               \
  static_assert(twin::OneOf<U, uint8_t> || (__NPU_ARCH__ == 2201 && twin::OneOf<U, int8_t>),                    \
                #Name " writes its bits to a uint8_t tensor");                                                  \
  TWIN_TYPES(Name, TWIN_COMPARABLE)

namespace AscendC {

template <typename T, typename U>
TWIN_OUTLINE void Compare(const LocalTensor<U>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
                          CMPMODE mode, uint32_t count, twin::Site site = twin::Site::Here()) {
  TWIN_COMPARE_TYPE(Compare);
  twin::Call call("Compare", PIPE_V, site);
  twin::Touch(call, "src0", false, src0, count);
  twin::Touch(call, "src1", false, src1, count);
  twin::CheckCompare<T>(call, dst, count, mode);
  twin::CheckApart(call, "src0", dst, src0, count);
  twin::CheckApart(call, "src1", dst, src1, count);
  uint8_t* ub = call.core.ub;
  if (call.Issue(twin::RepeatsOf(uint64_t(count) * sizeof(T))))
    twin::CompareMode<1>(mode, ub + dst.View().address, twin::As<T>(ub + src0.View().address),
                         twin::As<T>(ub + src1.View().address), count);
}
template <typename T, typename U, bool isSetMask = true>
TWIN_OUTLINE void Compare(const LocalTensor<U>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
                          CMPMODE mode, const uint64_t mask[], const twin::Repeat repeat,
                          const BinaryRepeatParams& params, twin::Site site = twin::Site::Here()) {
  TWIN_COMPARE_TYPE(Compare);
  twin::CompareLanes("Compare", dst, src0, &src1, T{}, mode, mask, repeat, params, isSetMask, site);
}
template <typename T, typename U, bool isSetMask = true>
TWIN_OUTLINE void Compare(const LocalTensor<U>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
                          CMPMODE mode, const uint64_t mask, const twin::Repeat repeat,
                          const BinaryRepeatParams& params, twin::Site site = twin::Site::Here()) {
  TWIN_COMPARE_TYPE(Compare);
  twin::CompareLanes("Compare", dst, src0, &src1, T{}, mode, mask, repeat, params, isSetMask, site);
}

// Compares and CompareScalar are the newer and the older name of one API.
#define TWIN_COMPARE_SCALAR(Name)                                                                                     \
  template <typename T, typename U>                                                                                   \
  inline void Name(const LocalTensor<U>& dst, const LocalTensor<T>& src0, const T scalar, CMPMODE mode,               \
                   uint32_t count, twin::Site site = twin::Site::Here()) {                                            \
    TWIN_COMPARE_TYPE(Name);                                                                                          \
    twin::CompareScalarCount(#Name, dst, src0, scalar, mode, count, site);                                            \
  }                                                                                                                   \
  template <typename T, typename U, bool isSetMask = true>                                                            \
  inline void Name(const LocalTensor<U>& dst, const LocalTensor<T>& src0, const T scalar, CMPMODE mode,               \
                   const uint64_t mask[], const twin::Repeat repeat, const UnaryRepeatParams& p,                      \
                   twin::Site site = twin::Site::Here()) {                                                            \
    TWIN_COMPARE_TYPE(Name);                                                                                          \
    BinaryRepeatParams params(1, uint8_t(p.srcBlkStride), 1, 8, p.srcRepStride, 8);                                   \
    twin::CompareLanes(#Name, dst, src0, (const LocalTensor<T>*)nullptr, scalar, mode, mask, repeat, params,          \
                       isSetMask, site);                                                                              \
  }                                                                                                                   \
  template <typename T, typename U, bool isSetMask = true>                                                            \
  inline void Name(const LocalTensor<U>& dst, const LocalTensor<T>& src0, const T scalar, CMPMODE mode,               \
                   const uint64_t mask, const twin::Repeat repeat, const UnaryRepeatParams& p,                        \
                   twin::Site site = twin::Site::Here()) {                                                            \
    TWIN_COMPARE_TYPE(Name);                                                                                          \
    BinaryRepeatParams params(1, uint8_t(p.srcBlkStride), 1, 8, p.srcRepStride, 8);                                   \
    twin::CompareLanes(#Name, dst, src0, (const LocalTensor<T>*)nullptr, scalar, mode, mask, repeat, params,          \
                       isSetMask, site);                                                                              \
  }
TWIN_COMPARE_SCALAR(Compares)
TWIN_COMPARE_SCALAR(CompareScalar)
#undef TWIN_COMPARE_SCALAR

template <typename T, typename U>
inline void Select(const LocalTensor<T>& dst, const LocalTensor<U>& selMask, const LocalTensor<T>& src0, T src1,
                   SELMODE mode, uint32_t count, twin::Site site = twin::Site::Here()) {
  TWIN_MASK_TYPE(Select);
  TWIN_TYPES(Select, TWIN_SELECTABLE);
  twin::SelectCount(dst, selMask, src0, (const LocalTensor<T>*)nullptr, src1, mode, count, site);
}
template <typename T, typename U>
inline void Select(const LocalTensor<T>& dst, const LocalTensor<U>& selMask, const LocalTensor<T>& src0,
                   const LocalTensor<T>& src1, SELMODE mode, uint32_t count, twin::Site site = twin::Site::Here()) {
  TWIN_MASK_TYPE(Select);
  TWIN_TYPES(Select, TWIN_SELECTABLE);
  twin::SelectCount(dst, selMask, src0, &src1, T{}, mode, count, site);
}

#define TWIN_SELECT_LANES(MaskType, Right, pointer, scalar)                                                           \
  template <typename T, typename U>                                                                                   \
  inline void Select(const LocalTensor<T>& dst, const LocalTensor<U>& selMask, const LocalTensor<T>& src0, Right,     \
                     SELMODE mode, MaskType, const twin::Repeat repeat, const BinaryRepeatParams& params,             \
                     twin::Site site = twin::Site::Here()) {                                                          \
    TWIN_MASK_TYPE(Select);                                                                                           \
    TWIN_TYPES(Select, TWIN_SELECTABLE);                                                                              \
    twin::SelectLanes(dst, selMask, src0, pointer, scalar, mode, mask, repeat, params, site);                         \
  }
#define TWIN_NO_TENSOR ((const LocalTensor<T>*)nullptr)
TWIN_SELECT_LANES(uint64_t mask[], T src1, TWIN_NO_TENSOR, src1)
TWIN_SELECT_LANES(uint64_t mask, T src1, TWIN_NO_TENSOR, src1)
TWIN_SELECT_LANES(uint64_t mask[], const LocalTensor<T>& src1, &src1, T{})
TWIN_SELECT_LANES(uint64_t mask, const LocalTensor<T>& src1, &src1, T{})
#undef TWIN_SELECT_LANES
#undef TWIN_NO_TENSOR

}  // namespace AscendC

namespace twin {
inline namespace TWIN_ABI {

// One repeat compared into the core's mask register: a bit for each lane, 0 where the mask leaves a lane out.
template <typename T, typename M>
TWIN_OUTLINE void CompareToRegister(const Local<T>& src0, const Local<T>& src1, CMPMODE mode, M mask,
                                    const AscendC::BinaryRepeatParams& p, bool setMask, Site site) {
  static_assert(OneOf<T, half, float>, "Compare into the mask register takes half and float");
  Call call("Compare", PIPE_V, site);
  Lanes lanes = LanesOf(call, mask, Repeat(1), 256 / sizeof(T), setMask);
  Walk a{src0.View().address, sizeof(T), p.src0BlkStride, p.src0RepStride};
  Walk b{src1.View().address, sizeof(T), p.src1BlkStride, p.src1RepStride};
  Touch(call, "src0", false, src0.View(), a, lanes);
  Touch(call, "src1", false, src1.View(), b, lanes);
  if (!call.Issue(1)) return;
  std::memset(call.core.compareMask, 0, sizeof(call.core.compareMask));
  for (uint32_t lane = 0; lane < lanes.perRepeat; ++lane) {
    if (!lanes.Active(0, lane)) continue;
    uint8_t bit = 0;
    CompareMode<1>(mode, &bit, As<T>(call.core.ub + a.At(0, lane)), As<T>(call.core.ub + b.At(0, lane)), 1);
    call.core.compareMask[lane / 8] |= uint8_t(bit << lane % 8);
  }
}

}  // inline namespace
}  // namespace twin

namespace AscendC {

template <typename T, bool isSetMask = true>
inline void Compare(const LocalTensor<T>& src0, const LocalTensor<T>& src1, CMPMODE cmpMode, const uint64_t mask[],
                    const BinaryRepeatParams& repeatParams, twin::Site site = twin::Site::Here()) {
  twin::CompareToRegister(src0, src1, cmpMode, mask, repeatParams, isSetMask, site);
}
template <typename T, bool isSetMask = true>
inline void Compare(const LocalTensor<T>& src0, const LocalTensor<T>& src1, CMPMODE cmpMode, const uint64_t mask,
                    const BinaryRepeatParams& repeatParams, twin::Site site = twin::Site::Here()) {
  twin::CompareToRegister(src0, src1, cmpMode, mask, repeatParams, isSetMask, site);
}

// The mask register's 128 bits.
template <typename T>
inline void GetCmpMask(const LocalTensor<T>& dst, twin::Site site = twin::Site::Here()) {
  twin::Call call("GetCmpMask", PIPE_V, site);
  twin::View view = dst.View();
  call.Ub("dst", true, view.address, 16, view.low, view.high, 16);
  if (call.Issue(1)) std::memcpy(call.core.ub + view.address, call.core.compareMask, 16);
}

}  // namespace AscendC
