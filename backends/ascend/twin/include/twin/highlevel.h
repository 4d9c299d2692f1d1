// High-level functions, each a sequence of instructions on the device: CumSum, serial along the axis and accumulated in
// float; Sigmoid; Round and Rint.
#pragma once
#include "twin/sort.h"

namespace AscendC {

enum class CumSumAlgorithm { CUMSUM_ALGORITHM_LINEBYLINE = 0, CUMSUM_ALGORITHM_SKLANSKY = 1 };

struct CumSumConfig {
  bool isLastAxis{true};
  bool isReuseSource{false};  // reserved by the API: no effect
  bool outputLastRow{false};
  CumSumAlgorithm algorithm{CumSumAlgorithm::CUMSUM_ALGORITHM_LINEBYLINE};
};
inline constexpr CumSumConfig defaultCumSumConfig = {};

struct CumSumInfo {
  uint32_t outter{0};
  uint32_t inner{0};
};

}  // namespace AscendC

namespace twin {
inline namespace TWIN_ABI {

template <const AscendC::CumSumConfig& config, typename T>
TWIN_OUTLINE void CumSumRun(const Local<T>& dst, const Local<T>& lastRow, const Local<T>& src,
                            const Local<uint8_t>* tmp, const AscendC::CumSumInfo& info, Site site) {
  TWIN_TYPES(CumSum, half, float);
  static_assert(config.algorithm == AscendC::CumSumAlgorithm::CUMSUM_ALGORITHM_LINEBYLINE,
                "the twin has the line-by-line algorithm of CumSum only");
  Call call("CumSum", PIPE_V, site);
  uint64_t rows = info.outter, columns = info.inner, n = rows * columns;
  if (rows == 0 || columns == 0 || columns * sizeof(T) % 32)
    call.Problem(true, "count", "CumSum of %llu x %llu: both are at least 1, and a row is a multiple of 32 bytes",
                 (unsigned long long)rows, (unsigned long long)columns);
  uint64_t last = config.outputLastRow ? (config.isLastAxis ? rows : columns) : 0;
  Touch(call, "src", false, src, n);
  uint64_t scratch = tmp ? tmp->GetSize() : 0;
  if (tmp) Touch(call, "sharedTmpBuffer", true, *tmp, scratch);
  Touch(call, "dst", true, dst, n);
  if (last) Touch(call, "lastRow", true, lastRow, last);
  // The last axis is a chain of one dependent addition a column.
  if (!call.Issue(uint32_t(config.isLastAxis ? columns : rows * RepeatsOf(columns * sizeof(T))))) return;
  uint8_t* ub = call.core.ub;
  const T* a = As<T>(ub + src.View().address);
  T* d = As<T>(ub + dst.View().address);
  float* sums = reinterpret_cast<float*>(ScratchBytes(n * sizeof(float)));
  for (uint64_t r = 0; r < rows; ++r)
    for (uint64_t c = 0; c < columns; ++c) {
      uint64_t at = r * columns + c;
      bool first = config.isLastAxis ? c == 0 : r == 0;
      sums[at] = first ? Load(a[at]) : sums[at - (config.isLastAxis ? 1 : columns)] + Load(a[at]);
    }
  if (tmp) call.Undefined(tmp->View().address, scratch);
  for (uint64_t i = 0; i < n; ++i) Store(d[i], sums[i]);
  T* l = As<T>(ub + lastRow.View().address);
  for (uint64_t i = 0; i < last; ++i)
    Store(l[i], config.isLastAxis ? sums[i * columns + columns - 1] : sums[n - columns + i]);
}

}  // inline namespace
}  // namespace twin

namespace AscendC {

template <typename T, const CumSumConfig& config = defaultCumSumConfig>
inline void CumSum(LocalTensor<T>& dstTensor, LocalTensor<T>& lastRowTensor, const LocalTensor<T>& srcTensor,
                   LocalTensor<uint8_t>& sharedTmpBuffer, const CumSumInfo& cumSumInfo,
                   twin::Site site = twin::Site::Here()) {
  twin::CumSumRun<config>(dstTensor, lastRowTensor, srcTensor, &sharedTmpBuffer, cumSumInfo, site);
}
// Scratch from the end of UB, which the framework finds; the twin needs none.
template <typename T, const CumSumConfig& config = defaultCumSumConfig>
inline void CumSum(LocalTensor<T>& dstTensor, LocalTensor<T>& lastRowTensor, const LocalTensor<T>& srcTensor,
                   const CumSumInfo& cumSumInfo, twin::Site site = twin::Site::Here()) {
  twin::CumSumRun<config>(dstTensor, lastRowTensor, srcTensor, (const LocalTensor<uint8_t>*)nullptr, cumSumInfo, site);
}

}  // namespace AscendC

namespace twin {
inline namespace TWIN_ABI {

struct SigmoidOp { static float Of(float a) { return 1.0f / (1.0f + ExpFloat(-a)); } };
struct RoundOp { static float Of(float a) { return float(RoundWhole(a, AscendC::RoundMode::CAST_RINT)); } };

// An elementwise function of `steps` instructions with a buffer for scratch (or none), which must not overlap the
// others.
template <typename Op, typename T>
TWIN_OUTLINE void Elementwise(const char* api, uint32_t steps, bool inPlace, const Local<T>& dst, const Local<T>& src,
                              const Local<uint8_t>* tmp, uint32_t count, Site site) {
  static_assert(OneOf<T, half, float>, "this function takes half and float");
  Call call(api, PIPE_V, site);
  uint64_t scratch = tmp ? tmp->GetSize() : 0, bytes = uint64_t(count) * sizeof(T);
  uint64_t d = dst.View().address, a = src.View().address, t = tmp ? tmp->View().address : 0;
  Touch(call, "src", false, src, count);
  if (tmp) Touch(call, "sharedTmpBuffer", true, *tmp, scratch);
  Touch(call, "dst", true, dst, count);
  if (inPlace) CheckOverlap(call, "src", d, bytes, a, bytes);
  else CheckDisjoint(call, "src", d, bytes, a, bytes);
  CheckDisjoint(call, "sharedTmpBuffer", d, bytes, t, scratch);
  CheckDisjoint(call, "sharedTmpBuffer", a, bytes, t, scratch);
  if (!call.Issue(steps * RepeatsOf(bytes))) return;
  call.Undefined(t, scratch);
  Map<Op>(As<T>(call.core.ub + d), As<T>(call.core.ub + a), count);
}

}  // inline namespace
}  // namespace twin

namespace AscendC {

// 1 / (1 + e^-x), through Muls, Exp, Adds and Div.
template <typename T, bool isReuseSource = false>
inline void Sigmoid(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint8_t>& sharedTmpBuffer,
                    const uint32_t count, twin::Site site = twin::Site::Here()) {
  twin::Elementwise<twin::SigmoidOp>("Sigmoid", 4, false, dst, src, &sharedTmpBuffer, count, site);
}
template <typename T, bool isReuseSource = false>
inline void Sigmoid(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint32_t count,
                    twin::Site site = twin::Site::Here()) {
  twin::Elementwise<twin::SigmoidOp>("Sigmoid", 4, false, dst, src, (const LocalTensor<uint8_t>*)nullptr, count, site);
}

// To the nearest whole number, halves to the even one.
template <typename T, bool isReuseSource = false>
inline void Round(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor,
                  const LocalTensor<uint8_t>& sharedTmpBuffer, const uint32_t calCount,
                  twin::Site site = twin::Site::Here()) {
  twin::Elementwise<twin::RoundOp>("Round", 2, true, dstTensor, srcTensor, &sharedTmpBuffer, calCount, site);
}
template <typename T, bool isReuseSource = false>
inline void Round(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor, const uint32_t calCount,
                  twin::Site site = twin::Site::Here()) {
  twin::Elementwise<twin::RoundOp>("Round", 2, true, dstTensor, srcTensor, (const LocalTensor<uint8_t>*)nullptr,
                                   calCount, site);
}

#if __NPU_ARCH__ == 3510
// The same under the name that 950 has for it.
struct RintConfig {
  bool isReuseSource;
};
inline constexpr RintConfig DEFAULT_RINT_CONFIG = {false};
template <const RintConfig& config = DEFAULT_RINT_CONFIG, typename T>
inline void Rint(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint8_t>& sharedTmpBuffer,
                 const uint32_t count, twin::Site site = twin::Site::Here()) {
  twin::Elementwise<twin::RoundOp>("Rint", 2, false, dst, src, &sharedTmpBuffer, count, site);
}
template <const RintConfig& config = DEFAULT_RINT_CONFIG, typename T>
inline void Rint(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint32_t count,
                 twin::Site site = twin::Site::Here()) {
  twin::Elementwise<twin::RoundOp>("Rint", 2, false, dst, src, (const LocalTensor<uint8_t>*)nullptr, count, site);
}
#endif

}  // namespace AscendC
