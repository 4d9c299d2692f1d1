// Multiplication and addition in one instruction, with one rounding. MulAddDst and Axpy take half sources with a float
// destination too.
#pragma once
#include "twin/arith.h"

namespace twin {
inline namespace TWIN_ABI {

// Of operands a and b and the destination's contents d.
struct MulAddDstOp { static double Of(double a, double b, double d) { return a * b + d; } };
struct FusedMulAddOp { static double Of(double a, double b, double d) { return a * d + b; } };
struct FusedMulAddReluOp {
  static double Of(double a, double b, double d) { return ReluOp::Of(FusedMulAddOp::Of(a, b, d)); }
};

template <typename Op, typename T, typename U>
TWIN_OUTLINE void Accumulate(T* d, const U* a, const U* b, uint64_t n) {
  TWIN_IVDEP
  for (uint64_t i = 0; i < n; ++i) Store(d[i], float(Op::Of(Load(a[i]), Load(b[i]), Load(d[i]))));
}
template <typename T, typename U>
TWIN_OUTLINE void AccumulateScalar(T* d, const U* a, double scalar, uint64_t n) {
  TWIN_IVDEP
  for (uint64_t i = 0; i < n; ++i) Store(d[i], float(MulAddDstOp::Of(Load(a[i]), scalar, Load(d[i]))));
}

template <typename T, typename U>
inline constexpr bool Accumulates = (std::is_same<T, U>::value && OneOf<T, half, float>) ||
                                    (std::is_same<T, float>::value && std::is_same<U, half>::value);

template <typename T, typename U>
inline constexpr bool Fuses = std::is_same<T, U>::value && OneOf<T, half, float>;

// The lanes of a repeat are counted in the wider type.
template <typename T, typename U> inline constexpr uint32_t kWider = sizeof(T) > sizeof(U) ? sizeof(T) : sizeof(U);

template <typename Op, typename T, typename U>
TWIN_OUTLINE void AccumulateCount(const char* api, const Local<T>& dst, const Local<U>& src0, const Local<U>& src1,
                                  int32_t count, Site site) {
  Call call(api, PIPE_V, site);
  uint64_t n = CountOf(call, count, true);
  uint64_t d = dst.View().address, a = src0.View().address, b = src1.View().address;
  Touch(call, "src0", false, src0, n);
  Touch(call, "src1", false, src1, n);
  Touch(call, "dst", false, dst, n);
  Touch(call, "dst", true, dst, n);
  CheckOverlap(call, "src0", d, n * sizeof(T), a, n * sizeof(U));
  CheckOverlap(call, "src1", d, n * sizeof(T), b, n * sizeof(U));
  uint8_t* ub = call.core.ub;
  if (call.Issue(RepeatsOf(n * kWider<T, U>))) Accumulate<Op>(As<T>(ub + d), As<U>(ub + a), As<U>(ub + b), n);
}

template <typename Op, typename T, typename U, typename M>
TWIN_OUTLINE void AccumulateLanes(const char* api, const Local<T>& dst, const Local<U>& src0, const Local<U>& src1,
                                  M mask, const Repeat& repeat, const AscendC::BinaryRepeatParams& p, bool setMask,
                                  Site site) {
  Call call(api, PIPE_V, site);
  Lanes lanes = LanesOf(call, mask, repeat, 256 / kWider<T, U>, setMask);
  Walk d{dst.View().address, sizeof(T), p.dstBlkStride, p.dstRepStride};
  Walk a{src0.View().address, sizeof(U), p.src0BlkStride, p.src0RepStride};
  Walk b{src1.View().address, sizeof(U), p.src1BlkStride, p.src1RepStride};
  Touch(call, "src0", false, src0.View(), a, lanes);
  Touch(call, "src1", false, src1.View(), b, lanes);
  Touch(call, "dst", false, dst.View(), d, lanes);
  Touch(call, "dst", true, dst.View(), d, lanes);
  if (call.Issue(lanes.repeats))
    WalkLanes(call.core, lanes, d, a, b, [](uint8_t* x, uint8_t* y, uint8_t* z, uint64_t n) {
      Accumulate<Op>(As<T>(x), As<U>(y), As<U>(z), n);
    });
}

template <typename T, typename U, typename M>
TWIN_OUTLINE void AxpyLanes(const Local<T>& dst, const Local<U>& src, U scalar, M mask, const Repeat& repeat,
                            const AscendC::UnaryRepeatParams& p, bool setMask, Site site) {
  Call call("Axpy", PIPE_V, site);
  Lanes lanes = LanesOf(call, mask, repeat, 256 / kWider<T, U>, setMask);
  Walk d{dst.View().address, sizeof(T), p.dstBlkStride, p.dstRepStride};
  Walk a{src.View().address, sizeof(U), p.srcBlkStride, p.srcRepStride};
  Touch(call, "src", false, src.View(), a, lanes);
  Touch(call, "dst", false, dst.View(), d, lanes);
  Touch(call, "dst", true, dst.View(), d, lanes);
  const double s = Load(scalar);
  if (call.Issue(lanes.repeats))
    WalkLanes(call.core, lanes, d, a,
              [=](uint8_t* x, uint8_t* y, uint64_t n) { AccumulateScalar(As<T>(x), As<U>(y), s, n); });
}

}  // inline namespace
}  // namespace twin

// In its three forms: `count` elements, a bit mask per repeat, the first `mask` lanes of each repeat.
#define TWIN_ACCUMULATE(Name, Mask, Allowed, allowed)                                                                  \
  template <typename T, typename U>                                                                                    \
  inline void Name(const LocalTensor<T>& dst, const LocalTensor<U>& src0, const LocalTensor<U>& src1,                  \
                   const int32_t& count, twin::Site site = twin::Site::Here()) {                                       \
    static_assert(twin::Allowed<T, U>, #Name " takes " allowed);                                                       \
    twin::AccumulateCount<twin::Name##Op>(#Name, dst, src0, src1, count, site);                                        \
  }                                                                                                                    \
  template <typename T, typename U, bool isSetMask = true>                                                             \
  inline void Name(const LocalTensor<T>& dst, const LocalTensor<U>& src0, const LocalTensor<U>& src1,                  \
                   Mask mask[], const twin::Repeat repeat, const BinaryRepeatParams& params,                           \
                   twin::Site site = twin::Site::Here()) {                                                             \
    static_assert(twin::Allowed<T, U>, #Name " takes " allowed);                                                       \
    twin::AccumulateLanes<twin::Name##Op>(#Name, dst, src0, src1, (const uint64_t*)mask, repeat, params, isSetMask,    \
                                          site);                                                                       \
  }                                                                                                                    \
  template <typename T, typename U, bool isSetMask = true>                                                             \
  inline void Name(const LocalTensor<T>& dst, const LocalTensor<U>& src0, const LocalTensor<U>& src1,                  \
                   const uint64_t mask, const twin::Repeat repeat, const BinaryRepeatParams& params,                   \
                   twin::Site site = twin::Site::Here()) {                                                             \
    static_assert(twin::Allowed<T, U>, #Name " takes " allowed);                                                       \
    twin::AccumulateLanes<twin::Name##Op>(#Name, dst, src0, src1, mask, repeat, params, isSetMask, site);              \
  }

namespace AscendC {

// dst += src0 * src1
TWIN_ACCUMULATE(MulAddDst, const uint64_t, Accumulates, "half, float, and half sources with a float destination")
// dst = src0 * dst + src1, and the greater of that and 0
TWIN_ACCUMULATE(FusedMulAdd, uint64_t, Fuses, "half and float, one type for all")
TWIN_ACCUMULATE(FusedMulAddRelu, uint64_t, Fuses, "half and float, one type for all")
#undef TWIN_ACCUMULATE

// dst += src * scalar.
template <typename T, typename U>
TWIN_OUTLINE void Axpy(const LocalTensor<T>& dst, const LocalTensor<U>& src, const U& scalarValue, const int32_t& count,
                       twin::Site site = twin::Site::Here()) {
  static_assert(twin::Accumulates<T, U>, "Axpy takes half, float, and a half source with a float destination");
  twin::Call call("Axpy", PIPE_V, site);
  uint64_t n = twin::CountOf(call, count, true), d = dst.View().address, a = src.View().address;
  twin::Touch(call, "src", false, src, n);
  twin::Touch(call, "dst", false, dst, n);
  twin::Touch(call, "dst", true, dst, n);
  twin::CheckOverlap(call, "src", d, n * sizeof(T), a, n * sizeof(U));
  if (call.Issue(twin::RepeatsOf(n * twin::kWider<T, U>)))
    twin::AccumulateScalar(twin::As<T>(call.core.ub + d), twin::As<U>(call.core.ub + a), twin::Load(scalarValue), n);
}
template <typename T, typename U, bool isSetMask = true>
inline void Axpy(const LocalTensor<T>& dst, const LocalTensor<U>& src, const U& scalarValue, uint64_t mask[],
                 const twin::Repeat repeat, const UnaryRepeatParams& params, twin::Site site = twin::Site::Here()) {
  static_assert(twin::Accumulates<T, U>, "Axpy takes half, float, and a half source with a float destination");
  twin::AxpyLanes(dst, src, scalarValue, (const uint64_t*)mask, repeat, params, isSetMask, site);
}
template <typename T, typename U, bool isSetMask = true>
inline void Axpy(const LocalTensor<T>& dst, const LocalTensor<U>& src, const U& scalarValue, uint64_t mask,
                 const twin::Repeat repeat, const UnaryRepeatParams& params, twin::Site site = twin::Site::Here()) {
  static_assert(twin::Accumulates<T, U>, "Axpy takes half, float, and a half source with a float destination");
  twin::AxpyLanes(dst, src, scalarValue, mask, repeat, params, isSetMask, site);
}

}  // namespace AscendC
