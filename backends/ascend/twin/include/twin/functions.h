// Elementwise functions of the high-level API, with or without a buffer for scratch. Each is a sequence of instructions
// on the device, which approximates; here they are computed in double and rounded once.
#pragma once
#include "twin/highlevel.h"

// `x` is the argument, a double.
#define TWIN_FUNCTION(Name, steps, value)                                                                              \
  namespace twin {                                                                                                     \
  inline namespace TWIN_ABI {                                                                                          \
  struct Name##Function { static float Of(float a) { const double x = a; return float(value); } };                     \
  }                                                                                                                    \
  }                                                                                                                    \
  namespace AscendC {                                                                                                  \
  template <typename T, bool isReuseSource = false>                                                                    \
  inline void Name(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor,                                   \
                   const LocalTensor<uint8_t>& sharedTmpBuffer, const uint32_t calCount,                               \
                   twin::Site site = twin::Site::Here()) {                                                             \
    twin::Elementwise<twin::Name##Function>(#Name, steps, true, dstTensor, srcTensor, &sharedTmpBuffer, calCount,      \
                                            site);                                                                     \
  }                                                                                                                    \
  template <typename T, bool isReuseSource = false>                                                                    \
  inline void Name(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor, const uint32_t calCount,          \
                   twin::Site site = twin::Site::Here()) {                                                             \
    twin::Elementwise<twin::Name##Function>(#Name, steps, true, dstTensor, srcTensor,                                  \
                                            (const LocalTensor<uint8_t>*)nullptr, calCount, site);                     \
  }                                                                                                                    \
  }

TWIN_FUNCTION(Floor, 2, std::floor(x))
TWIN_FUNCTION(Ceil, 2, std::ceil(x))
TWIN_FUNCTION(Trunc, 2, std::trunc(x))
TWIN_FUNCTION(Frac, 3, x - std::trunc(x))
TWIN_FUNCTION(Sign, 6, x != x ? x : double((x > 0) - (x < 0)))
TWIN_FUNCTION(Log, 1, std::log(x))
TWIN_FUNCTION(Log2, 2, std::log2(x))
TWIN_FUNCTION(Log10, 2, std::log10(x))
TWIN_FUNCTION(Tanh, 8, std::tanh(x))
TWIN_FUNCTION(Sinh, 8, std::sinh(x))
TWIN_FUNCTION(Cosh, 8, std::cosh(x))
TWIN_FUNCTION(Sin, 24, std::sin(x))
TWIN_FUNCTION(Cos, 24, std::cos(x))
TWIN_FUNCTION(Tan, 32, std::tan(x))
TWIN_FUNCTION(Asin, 24, std::asin(x))
TWIN_FUNCTION(Acos, 24, std::acos(x))
TWIN_FUNCTION(Atan, 40, std::atan(x))
TWIN_FUNCTION(Asinh, 12, std::asinh(x))
TWIN_FUNCTION(Acosh, 8, std::acosh(x))
TWIN_FUNCTION(Atanh, 8, std::atanh(x))
TWIN_FUNCTION(Erf, 24, std::erf(x))
TWIN_FUNCTION(Erfc, 32, std::erfc(x))
TWIN_FUNCTION(Silu, 5, x / (1.0 + std::exp(-x)))
#undef TWIN_FUNCTION

namespace twin {
inline namespace TWIN_ABI {
// x * Phi(x) by the approximation that the API page gives, with tanh.
struct GeluFunction {
  static float Of(float a) {
    const double x = a;
    return float(x / (1.0 + std::exp(-1.5957691216057308 * (x + 0.044715 * x * x * x))));
  }
};
}  // inline namespace
}  // namespace twin

namespace AscendC {
template <typename T, bool highPrecision = false, bool highPerformance = false>
inline void Gelu(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal,
                 const LocalTensor<uint8_t>& sharedTmpBuffer, const uint32_t dataSize,
                 twin::Site site = twin::Site::Here()) {
  twin::Elementwise<twin::GeluFunction>("Gelu", 8, true, dstLocal, srcLocal, &sharedTmpBuffer, dataSize, site);
}
template <typename T, bool highPrecision = false, bool highPerformance = false>
inline void Gelu(const LocalTensor<T>& dstLocal, const LocalTensor<T>& srcLocal, const uint32_t dataSize,
                 twin::Site site = twin::Site::Here()) {
  twin::Elementwise<twin::GeluFunction>("Gelu", 8, true, dstLocal, srcLocal, (const LocalTensor<uint8_t>*)nullptr,
                                        dataSize, site);
}
}  // namespace AscendC
