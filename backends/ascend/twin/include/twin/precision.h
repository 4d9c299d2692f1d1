// What only 950 has of elementwise arithmetic: Neg, and the precision that Exp, Ln, Sqrt, Rsqrt, Reciprocal and Div take as
// a template argument. The twin computes at the best of them whatever is asked for, and flushes denormals in all.
#pragma once
#include "twin/arith.h"

#if __NPU_ARCH__ == 3510
namespace AscendC {

enum class ExpAlgo { INTRINSIC = 0, PRECISION_1ULP_FTZ_TRUE, PRECISION_1ULP_FTZ_FALSE };
enum class LnAlgo { INTRINSIC = 0, PRECISION_1ULP_FTZ_TRUE, PRECISION_1ULP_FTZ_FALSE };
enum class ReciprocalAlgo { INTRINSIC = 0, PRECISION_1ULP_FTZ_TRUE, PRECISION_1ULP_FTZ_FALSE };
enum class SqrtAlgo {
  INTRINSIC = 0, FAST_INVERSE, PRECISION_1ULP_FTZ_TRUE, PRECISION_0ULP_FTZ_FALSE, PRECISION_1ULP_FTZ_FALSE
};
enum class RsqrtAlgo {
  INTRINSIC = 0, FAST_INVERSE, PRECISION_1ULP_FTZ_TRUE, PRECISION_0ULP_FTZ_FALSE, PRECISION_1ULP_FTZ_FALSE
};
enum class DivAlgo {
  INTRINSIC = 0, DIFF_COMPENSATION, PRECISION_1ULP_FTZ_TRUE, PRECISION_0ULP_FTZ_TRUE, PRECISION_0ULP_FTZ_FALSE,
  PRECISION_1ULP_FTZ_FALSE
};
struct ExpConfig { ExpAlgo algo = ExpAlgo::INTRINSIC; };
struct LnConfig { LnAlgo algo = LnAlgo::INTRINSIC; };
struct ReciprocalConfig { ReciprocalAlgo algo = ReciprocalAlgo::INTRINSIC; };
struct SqrtConfig { SqrtAlgo algo = SqrtAlgo::INTRINSIC; };
struct RsqrtConfig { RsqrtAlgo algo = RsqrtAlgo::INTRINSIC; };
struct DivConfig { DivAlgo algo = DivAlgo::INTRINSIC; };
inline constexpr ExpConfig DEFAULT_EXP_CONFIG = {};
inline constexpr LnConfig DEFAULT_LN_CONFIG = {};
inline constexpr ReciprocalConfig DEFAULT_RECIPROCAL_CONFIG = {};
inline constexpr SqrtConfig DEFAULT_SQRT_CONFIG = {};
inline constexpr RsqrtConfig DEFAULT_RSQRT_CONFIG = {};
inline constexpr DivConfig DEFAULT_DIV_CONFIG = {};

// The forms without a precision are in arith.h.
#define TWIN_PRECISE(Name)                                                                                             \
  template <typename T, const Name##Config& config>                                                                    \
  inline void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, const int32_t& count,                         \
                   twin::Site site = twin::Site::Here()) {                                                             \
    Name<T>(dst, src, count, site);                                                                                    \
  }                                                                                                                    \
  template <typename T, bool isSetMask, const Name##Config& config>                                                    \
  inline void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, uint64_t mask[], const twin::Repeat repeat,   \
                   const UnaryRepeatParams& params, twin::Site site = twin::Site::Here()) {                            \
    Name<T, isSetMask>(dst, src, mask, repeat, params, site);                                                          \
  }                                                                                                                    \
  template <typename T, bool isSetMask, const Name##Config& config>                                                    \
  inline void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src, uint64_t mask, const twin::Repeat repeat,     \
                   const UnaryRepeatParams& params, twin::Site site = twin::Site::Here()) {                            \
    Name<T, isSetMask>(dst, src, mask, repeat, params, site);                                                          \
  }
TWIN_PRECISE(Exp)
TWIN_PRECISE(Ln)
TWIN_PRECISE(Sqrt)
TWIN_PRECISE(Rsqrt)
TWIN_PRECISE(Reciprocal)
#undef TWIN_PRECISE

template <typename T, const DivConfig& config>
inline void Div(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1, const int32_t& count,
                twin::Site site = twin::Site::Here()) {
  Div<T>(dst, src0, src1, count, site);
}
template <typename T, bool isSetMask, const DivConfig& config>
inline void Div(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1, uint64_t mask[],
                const twin::Repeat repeat, const BinaryRepeatParams& params, twin::Site site = twin::Site::Here()) {
  Div<T, isSetMask>(dst, src0, src1, mask, repeat, params, site);
}
template <typename T, bool isSetMask, const DivConfig& config>
inline void Div(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1, uint64_t mask,
                const twin::Repeat repeat, const BinaryRepeatParams& params, twin::Site site = twin::Site::Here()) {
  Div<T, isSetMask>(dst, src0, src1, mask, repeat, params, site);
}

template <typename T>
inline void Neg(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint32_t count,
                twin::Site site = twin::Site::Here()) {
  TWIN_TYPES(Neg, TWIN_ABSOLUTE);
  twin::UnaryCount<twin::NegOp>("Neg", dst, src, int32_t(count), true, site);
}

}  // namespace AscendC
#endif
