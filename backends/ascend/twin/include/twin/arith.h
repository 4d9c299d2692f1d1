// Elementwise arithmetic on the vector pipe.
//
// float follows IEEE 754 with denormal inputs and results flushed to zero, as XLA:CPU computes; half and bfloat16_t are
// computed in float and rounded to nearest even after each instruction. Exp and Ln are computed in double and rounded
// once; Rsqrt and Reciprocal too, where the device only approximates. Max and Min give NaN when an operand is NaN.
// Integers wrap around.
#pragma once
#include "twin/lanes.h"

namespace twin {
inline namespace TWIN_ABI {

template <typename C, bool = std::is_integral<C>::value> struct WrapOf { using type = C; };
template <typename C> struct WrapOf<C, true> { using type = std::make_unsigned_t<C>; };
template <typename C> using Wrap = typename WrapOf<C>::type;

struct AddOp { template <typename C> static C Of(C a, C b) { return C(Wrap<C>(a) + Wrap<C>(b)); } };
struct SubOp { template <typename C> static C Of(C a, C b) { return C(Wrap<C>(a) - Wrap<C>(b)); } };
struct MulOp { template <typename C> static C Of(C a, C b) { return C(uint64_t(Wrap<C>(a)) * uint64_t(Wrap<C>(b))); }
               static float Of(float a, float b) { return a * b; } };
struct DivOp { template <typename C> static C Of(C a, C b) {
    if constexpr (std::is_integral<C>::value)
      return b == 0 ? C(0) : C(b + 1) == 0 && std::is_signed<C>::value ? C(Wrap<C>(0) - Wrap<C>(a)) : C(a / b);
    else return a / b;
               } };
struct MaxOp { template <typename C> static C Of(C a, C b) { return (a > b || a != a) ? a : b; } };
struct MinOp { template <typename C> static C Of(C a, C b) { return (a < b || a != a) ? a : b; } };
struct AndOp { template <typename C> static C Of(C a, C b) { return C(a & b); } };
struct OrOp { template <typename C> static C Of(C a, C b) { return C(a | b); } };
struct ShiftLeftOp { template <typename C> static C Of(C a, C b) {
  return uint64_t(b) >= sizeof(C) * 8 ? C(0) : C(Wrap<C>(a) << b); } };
struct ShiftRightOp { template <typename C> static C Of(C a, C b) {  // arithmetic for signed types
  return uint64_t(b) >= sizeof(C) * 8 ? C(a < 0 ? -1 : 0) : C(a >> b); } };
struct LeakyReluOp { template <typename C> static C Of(C a, C b) { return a >= 0 ? a : C(a * b); } };

// e^x in double precision, then rounded: 2^n * e^r with |r| <= ln(2)/2 and the Taylor polynomial of degree 11.
inline float ExpFloat(float value) {
  double x = value;
  x = x < -150.0 ? -150.0 : x > 150.0 ? 150.0 : x;  // NaN stays
  const double magic = 6755399441055744.0;           // 1.5 * 2^52: adding it rounds to a whole number
  double shifted = x * 1.4426950408889634 + magic;
  double n = shifted - magic;
  double r = (x - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10;
  double p = 1.0 / 39916800.0;
  p = p * r + 1.0 / 3628800.0;
  p = p * r + 1.0 / 362880.0;
  p = p * r + 1.0 / 40320.0;
  p = p * r + 1.0 / 5040.0;
  p = p * r + 1.0 / 720.0;
  p = p * r + 1.0 / 120.0;
  p = p * r + 1.0 / 24.0;
  p = p * r + 1.0 / 6.0;
  p = p * r + 0.5;
  p = p * r + 1.0;
  p = p * r + 1.0;
  double scale = BitCast<double>((BitCast<uint64_t>(shifted) + 1023) << 52);
  return float(p * scale);
}

struct ExpOp { static float Of(float a) { return ExpFloat(a); } };
struct LnOp { static float Of(float a) { return float(std::log(double(a))); } };
struct SqrtOp { static float Of(float a) { return float(std::sqrt(a)); } };
struct RsqrtOp { static float Of(float a) { return float(1.0 / std::sqrt(double(a))); } };
struct ReciprocalOp { static float Of(float a) { return 1.0f / a; } };
struct AbsOp { template <typename C> static C Of(C a) { return a < 0 ? C(Wrap<C>(0) - Wrap<C>(a)) : a; }
               static float Of(float a) { return std::fabs(a); } };
struct ReluOp { template <typename C> static C Of(C a) { return a < 0 ? C(0) : a; } };
struct AddReluOp { template <typename C> static C Of(C a, C b) { return ReluOp::Of(AddOp::Of(a, b)); } };
struct SubReluOp { template <typename C> static C Of(C a, C b) { return ReluOp::Of(SubOp::Of(a, b)); } };
struct NotOp { template <typename C> static C Of(C a) { return C(~a); } };
struct NegOp { template <typename C> static C Of(C a) { return C(Wrap<C>(0) - Wrap<C>(a)); }
               static float Of(float a) { return -a; } };

template <typename Op, typename T>
TWIN_OUTLINE void Map(T* __restrict d, const T* a, uint64_t n) {
  TWIN_IVDEP
  for (uint64_t i = 0; i < n; ++i) Store(d[i], Op::Of(Load(a[i])));
}
template <typename Op, typename T, typename U>
TWIN_OUTLINE void Map(T* __restrict d, const T* a, const U* b, uint64_t n) {
  TWIN_IVDEP
  for (uint64_t i = 0; i < n; ++i) Store(d[i], Op::Of(Load(a[i]), Compute<T>(Load(b[i]))));
}
template <typename Op, typename T>
TWIN_OUTLINE void MapScalar(T* __restrict d, const T* a, T scalar, uint64_t n) {
  const Compute<T> s = Load(scalar);
  TWIN_IVDEP
  for (uint64_t i = 0; i < n; ++i) Store(d[i], Op::Of(Load(a[i]), s));
}

template <typename T> inline T* As(uint8_t* p) { return reinterpret_cast<T*>(p); }

template <typename T>
using Local = AscendC::LocalTensor<T>;

template <typename Op, typename T>
TWIN_OUTLINE void UnaryCount(const char* api, const Local<T>& dst, const Local<T>& src, int32_t count, bool setMask,
                             Site site) {
  Call call(api, PIPE_V, site);
  uint64_t n = CountOf(call, count, setMask), bytes = n * sizeof(T);
  uint64_t d = dst.View().address, a = src.View().address;
  Touch(call, "src", false, src, n);
  Touch(call, "dst", true, dst, n);
  CheckOverlap(call, "src", d, bytes, a, bytes);
  if (call.Issue(RepeatsOf(bytes))) Map<Op>(As<T>(call.core.ub + d), As<T>(call.core.ub + a), n);
}

template <typename Op, typename T, typename M>
TWIN_OUTLINE void UnaryLanes(const char* api, const Local<T>& dst, const Local<T>& src, M mask, const Repeat& repeat,
                       const AscendC::UnaryRepeatParams& p, bool setMask, Site site) {
  Call call(api, PIPE_V, site);
  Lanes lanes = LanesOf(call, mask, repeat, 256 / sizeof(T), setMask);
  Walk d{dst.View().address, sizeof(T), p.dstBlkStride, p.dstRepStride};
  Walk a{src.View().address, sizeof(T), p.srcBlkStride, p.srcRepStride};
  Touch(call, "src", false, src.View(), a, lanes);
  Touch(call, "dst", true, dst.View(), d, lanes);
  if (call.Issue(lanes.repeats))
    WalkLanes(call.core, lanes, d, a, [](uint8_t* x, uint8_t* y, uint64_t n) { Map<Op>(As<T>(x), As<T>(y), n); });
}

template <typename Op, typename T>
TWIN_OUTLINE void ScalarCount(const char* api, const Local<T>& dst, const Local<T>& src, T scalar, int32_t count,
                        bool setMask, Site site) {
  Call call(api, PIPE_V, site);
  uint64_t n = CountOf(call, count, setMask), bytes = n * sizeof(T);
  uint64_t d = dst.View().address, a = src.View().address;
  Touch(call, "src", false, src, n);
  Touch(call, "dst", true, dst, n);
  CheckOverlap(call, "src", d, bytes, a, bytes);
  if (call.Issue(RepeatsOf(bytes))) MapScalar<Op>(As<T>(call.core.ub + d), As<T>(call.core.ub + a), scalar, n);
}

template <typename Op, typename T, typename M>
TWIN_OUTLINE void ScalarLanes(const char* api, const Local<T>& dst, const Local<T>& src, T scalar, M mask,
                        const Repeat& repeat, const AscendC::UnaryRepeatParams& p, bool setMask, Site site) {
  Call call(api, PIPE_V, site);
  Lanes lanes = LanesOf(call, mask, repeat, 256 / sizeof(T), setMask);
  Walk d{dst.View().address, sizeof(T), p.dstBlkStride, p.dstRepStride};
  Walk a{src.View().address, sizeof(T), p.srcBlkStride, p.srcRepStride};
  Touch(call, "src", false, src.View(), a, lanes);
  Touch(call, "dst", true, dst.View(), d, lanes);
  if (call.Issue(lanes.repeats))
    WalkLanes(call.core, lanes, d, a,
              [=](uint8_t* x, uint8_t* y, uint64_t n) { MapScalar<Op>(As<T>(x), As<T>(y), scalar, n); });
}

// The second operand may have another type of the same size, as what integers are shifted by.
template <typename Op, typename T, typename U>
TWIN_OUTLINE void BinaryCount(const char* api, const Local<T>& dst, const Local<T>& src0, const Local<U>& src1,
                        int32_t count, bool setMask, Site site) {
  Call call(api, PIPE_V, site);
  uint64_t n = CountOf(call, count, setMask), bytes = n * sizeof(T);
  uint64_t d = dst.View().address, a = src0.View().address, b = src1.View().address;
  Touch(call, "src0", false, src0, n);
  Touch(call, "src1", false, src1, n);
  Touch(call, "dst", true, dst, n);
  CheckOverlap(call, "src0", d, bytes, a, bytes);
  CheckOverlap(call, "src1", d, bytes, b, bytes);
  uint8_t* ub = call.core.ub;
  if (call.Issue(RepeatsOf(bytes))) Map<Op>(As<T>(ub + d), As<T>(ub + a), As<U>(ub + b), n);
}

template <typename Op, typename T, typename M>
TWIN_OUTLINE void BinaryLanes(const char* api, const Local<T>& dst, const Local<T>& src0, const Local<T>& src1, M mask,
                        const Repeat& repeat, const AscendC::BinaryRepeatParams& p, bool setMask, Site site) {
  Call call(api, PIPE_V, site);
  Lanes lanes = LanesOf(call, mask, repeat, 256 / sizeof(T), setMask);
  Walk d{dst.View().address, sizeof(T), p.dstBlkStride, p.dstRepStride};
  Walk a{src0.View().address, sizeof(T), p.src0BlkStride, p.src0RepStride};
  Walk b{src1.View().address, sizeof(T), p.src1BlkStride, p.src1RepStride};
  Touch(call, "src0", false, src0.View(), a, lanes);
  Touch(call, "src1", false, src1.View(), b, lanes);
  Touch(call, "dst", true, dst.View(), d, lanes);
  if (call.Issue(lanes.repeats))
    WalkLanes(call.core, lanes, d, a, b, [](uint8_t* x, uint8_t* y, uint8_t* z, uint64_t n) {
      Map<Op>(As<T>(x), As<T>(y), As<T>(z), n);
    });
}

}  // inline namespace
}  // namespace twin

// The three forms of an API: `count` elements, a bit mask per repeat, the first `mask` lanes of each repeat.
#define TWIN_TYPES(Name, ...)                                                                                          \
  static_assert(twin::OneOf<T, __VA_ARGS__>, #Name " does not take this type: " #__VA_ARGS__)

#define TWIN_UNARY(Name, ...)                                                                                          \
  template <typename T, bool isSetMask = true>                                                                         \
  inline void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const int32_t& count,                         \
                   twin::Site site = twin::Site::Here()) {                                                             \
    TWIN_TYPES(Name, __VA_ARGS__);                                                                                     \
    twin::UnaryCount<twin::Name##Op>(#Name, dst, src, count, isSetMask, site);                                         \
  }                                                                                                                    \
  template <typename T, bool isSetMask = true>                                                                         \
  inline void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, uint64_t mask[], const twin::Repeat repeat,   \
                   const UnaryRepeatParams& params, twin::Site site = twin::Site::Here()) {                            \
    TWIN_TYPES(Name, __VA_ARGS__);                                                                                     \
    twin::UnaryLanes<twin::Name##Op>(#Name, dst, src, (const uint64_t*)mask, repeat, params, isSetMask, site);         \
  }                                                                                                                    \
  template <typename T, bool isSetMask = true>                                                                         \
  inline void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, uint64_t mask, const twin::Repeat repeat,     \
                   const UnaryRepeatParams& params, twin::Site site = twin::Site::Here()) {                            \
    TWIN_TYPES(Name, __VA_ARGS__);                                                                                     \
    twin::UnaryLanes<twin::Name##Op>(#Name, dst, src, mask, repeat, params, isSetMask, site);                          \
  }

#define TWIN_SCALAR(Name, Operation, ...)                                                                              \
  template <typename T, bool isSetMask = true>                                                                         \
  inline void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const T& scalar, const int32_t& count,        \
                   twin::Site site = twin::Site::Here()) {                                                             \
    TWIN_TYPES(Name, __VA_ARGS__);                                                                                     \
    twin::ScalarCount<twin::Operation>(#Name, dst, src, scalar, count, isSetMask, site);                               \
  }                                                                                                                    \
  template <typename T, bool isSetMask = true>                                                                         \
  inline void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const T& scalar, uint64_t mask[],             \
                   const twin::Repeat repeat, const UnaryRepeatParams& params,                                         \
                   twin::Site site = twin::Site::Here()) {                                                             \
    TWIN_TYPES(Name, __VA_ARGS__);                                                                                     \
    twin::ScalarLanes<twin::Operation>(#Name, dst, src, scalar, (const uint64_t*)mask, repeat, params, isSetMask,      \
                                       site);                                                                          \
  }                                                                                                                    \
  template <typename T, bool isSetMask = true>                                                                         \
  inline void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const T& scalar, uint64_t mask,               \
                   const twin::Repeat repeat, const UnaryRepeatParams& params,                                         \
                   twin::Site site = twin::Site::Here()) {                                                             \
    TWIN_TYPES(Name, __VA_ARGS__);                                                                                     \
    twin::ScalarLanes<twin::Operation>(#Name, dst, src, scalar, mask, repeat, params, isSetMask, site);                \
  }

#define TWIN_BINARY(Name, ...)                                                                                         \
  template <typename T, bool isSetMask = true>                                                                         \
  inline void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,                  \
                   const int32_t& count, twin::Site site = twin::Site::Here()) {                                       \
    TWIN_TYPES(Name, __VA_ARGS__);                                                                                     \
    twin::BinaryCount<twin::Name##Op>(#Name, dst, src0, src1, count, isSetMask, site);                                 \
  }                                                                                                                    \
  template <typename T, bool isSetMask = true>                                                                         \
  inline void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1, uint64_t mask[], \
                   const twin::Repeat repeat, const BinaryRepeatParams& params,                                        \
                   twin::Site site = twin::Site::Here()) {                                                             \
    TWIN_TYPES(Name, __VA_ARGS__);                                                                                     \
    twin::BinaryLanes<twin::Name##Op>(#Name, dst, src0, src1, (const uint64_t*)mask, repeat, params, isSetMask, site); \
  }                                                                                                                    \
  template <typename T, bool isSetMask = true>                                                                         \
  inline void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1, uint64_t mask,   \
                   const twin::Repeat repeat, const BinaryRepeatParams& params,                                        \
                   twin::Site site = twin::Site::Here()) {                                                             \
    TWIN_TYPES(Name, __VA_ARGS__);                                                                                     \
    twin::BinaryLanes<twin::Name##Op>(#Name, dst, src0, src1, mask, repeat, params, isSetMask, site);                  \
  }

#if __NPU_ARCH__ == 3510
#define TWIN_NUMBERS int8_t, uint8_t, int16_t, uint16_t, half, bfloat16_t, int32_t, uint32_t, float, int64_t, uint64_t
#define TWIN_DIVISIBLE int16_t, uint16_t, half, int32_t, uint32_t, float, int64_t, uint64_t
#define TWIN_BITS int8_t, uint8_t, int16_t, uint16_t, int32_t, uint32_t, int64_t, uint64_t
#define TWIN_SHIFTABLE TWIN_BITS
#define TWIN_ABSOLUTE int8_t, int16_t, half, int32_t, float, int64_t
#define TWIN_RELU half, int32_t, float, int64_t
#else
#define TWIN_NUMBERS int16_t, half, int32_t, float
#define TWIN_DIVISIBLE half, float
#define TWIN_BITS int16_t, uint16_t
#define TWIN_SHIFTABLE int16_t, uint16_t, int32_t, uint32_t
#define TWIN_ABSOLUTE half, float
#define TWIN_RELU half, int32_t, float
#endif

namespace AscendC {

TWIN_UNARY(Exp, half, float)
TWIN_UNARY(Ln, half, float)
TWIN_UNARY(Sqrt, half, float)
TWIN_UNARY(Rsqrt, half, float)
TWIN_UNARY(Reciprocal, half, float)
TWIN_UNARY(Abs, TWIN_ABSOLUTE)
TWIN_UNARY(Relu, TWIN_RELU)
TWIN_UNARY(Not, TWIN_BITS)

TWIN_BINARY(Add, TWIN_NUMBERS)
TWIN_BINARY(Sub, TWIN_NUMBERS)
TWIN_BINARY(Mul, TWIN_NUMBERS)
TWIN_BINARY(Max, TWIN_NUMBERS)
TWIN_BINARY(Min, TWIN_NUMBERS)
TWIN_BINARY(Div, TWIN_DIVISIBLE)
TWIN_BINARY(And, TWIN_BITS)
TWIN_BINARY(Or, TWIN_BITS)
TWIN_BINARY(AddRelu, int16_t, half, float)
TWIN_BINARY(SubRelu, int16_t, half, float)

TWIN_SCALAR(Adds, AddOp, TWIN_NUMBERS)
TWIN_SCALAR(Muls, MulOp, TWIN_NUMBERS)
TWIN_SCALAR(Maxs, MaxOp, TWIN_NUMBERS)
TWIN_SCALAR(Mins, MinOp, TWIN_NUMBERS)
TWIN_SCALAR(LeakyRelu, LeakyReluOp, half, float)
TWIN_SCALAR(ShiftLeft, ShiftLeftOp, TWIN_SHIFTABLE)
TWIN_SCALAR(ShiftRight, ShiftRightOp, TWIN_SHIFTABLE)

#if __NPU_ARCH__ == 3510
// Each element by as many bits as src1 says, which is signed and as wide.
#define TWIN_SHIFT(Name)                                                                                               \
  template <typename T, typename U>                                                                                    \
  inline void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<U>& src1,                  \
                   const int32_t& count, twin::Site site = twin::Site::Here()) {                                       \
    TWIN_TYPES(Name, TWIN_SHIFTABLE);                                                                                  \
    static_assert(std::is_signed<U>::value && twin::OneOf<U, TWIN_SHIFTABLE> && sizeof(U) == sizeof(T),                \
                  #Name " takes shifts of a signed type as wide as what it shifts");                                   \
    twin::BinaryCount<twin::Name##Op>(#Name, dst, src0, src1, count, true, site);                                      \
  }
TWIN_SHIFT(ShiftLeft)
TWIN_SHIFT(ShiftRight)
#undef TWIN_SHIFT
#endif

}  // namespace AscendC
