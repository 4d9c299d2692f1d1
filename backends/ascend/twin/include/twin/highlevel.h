// High-level functions, each a sequence of instructions on the device: CumSum, serial along the axis and accumulated in
// float, and Sigmoid.
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
TWIN_OUTLINE void CumSumRun(const Local<T>& dst, const Local<T>& lastRow, const Local<T>& src, const Local<uint8_t>* tmp,
                      const AscendC::CumSumInfo& info, Site site) {
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
  for (uint64_t i = 0; i < last; ++i) Store(l[i], config.isLastAxis ? sums[i * columns + columns - 1] : sums[n - columns + i]);
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

// 1 / (1 + e^-x), through Muls, Exp, Adds and Div. The scratch must not overlap source or destination.
template <typename T, bool isReuseSource = false>
TWIN_OUTLINE void Sigmoid(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint8_t>& sharedTmpBuffer,
                    const uint32_t count, twin::Site site = twin::Site::Here()) {
  TWIN_TYPES(Sigmoid, half, float);
  twin::Call call("Sigmoid", PIPE_V, site);
  uint64_t scratch = sharedTmpBuffer.GetSize(), bytes = uint64_t(count) * sizeof(T);
  uint64_t d = dst.View().address, a = src.View().address, t = sharedTmpBuffer.View().address;
  twin::Touch(call, "src", false, src, count);
  twin::Touch(call, "sharedTmpBuffer", true, sharedTmpBuffer, scratch);
  twin::Touch(call, "dst", true, dst, count);
  twin::CheckDisjoint(call, "src", d, bytes, a, bytes);
  twin::CheckDisjoint(call, "sharedTmpBuffer", d, bytes, t, scratch);
  twin::CheckDisjoint(call, "sharedTmpBuffer", a, bytes, t, scratch);
  if (!call.Issue(4 * twin::RepeatsOf(bytes))) return;
  call.Undefined(t, scratch);
  T* out = twin::As<T>(call.core.ub + d);
  const T* in = twin::As<T>(call.core.ub + a);
  for (uint32_t i = 0; i < count; ++i)
    twin::Store(out[i], 1.0f / (1.0f + twin::ExpFloat(-twin::Load(in[i]))));
}
template <typename T, bool isReuseSource = false>
TWIN_OUTLINE void Sigmoid(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint32_t count,
                    twin::Site site = twin::Site::Here()) {
  Sigmoid<T, isReuseSource>(dst, src, LocalTensor<uint8_t>(), count, site);
}

}  // namespace AscendC
