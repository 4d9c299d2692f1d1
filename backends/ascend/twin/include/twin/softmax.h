// SoftMax over the rows of a matrix in UB: exp(x - max) / sum, with the row's maximum and sum. Computed in float, the
// sum in double and rounded once; the device adds in an order of its own.
#pragma once
#include "twin/sort.h"
#include "twin/tiling_structs.h"

namespace AscendC {

enum class SoftmaxMode { SOFTMAX_NORMAL = 0, SOFTMAX_OUTPUT_WITHOUT_BRC = 1 };

struct SoftmaxConfig {
  bool isCheckTiling = true;
  uint32_t oriSrcM = 0, oriSrcK = 0;
  SoftmaxMode mode = SoftmaxMode::SOFTMAX_NORMAL;
};
inline constexpr SoftmaxConfig SOFTMAX_DEFAULT_CFG = {true, 0, 0, SoftmaxMode::SOFTMAX_NORMAL};

struct SoftMaxShapeInfo {
  SoftMaxShapeInfo() = default;
  SoftMaxShapeInfo(const uint32_t m, const uint32_t k, const uint32_t originalM, const uint32_t originalK)
      : srcM(m), srcK(k), oriSrcM(originalM), oriSrcK(originalK) {}
  uint32_t srcM = 0, srcK = 0, oriSrcM = 0, oriSrcK = 0;
};

}  // namespace AscendC

namespace twin {
inline namespace TWIN_ABI {

// One row of `columns`, of which `valid` decide; the rest becomes what the same formula gives.
template <typename T>
inline void SoftMaxRow(T* d, const T* a, uint32_t columns, uint32_t valid, float& highest, float& sum) {
  highest = Load(a[0]);
  for (uint32_t c = 1; c < valid; ++c) highest = MaxOp::Of(Load(a[c]), highest);
  float* powers = reinterpret_cast<float*>(ScratchBytes(uint64_t(columns) * sizeof(float)));
  double total = 0;
  for (uint32_t c = 0; c < columns; ++c) powers[c] = ExpFloat(Load(a[c]) - highest);
  for (uint32_t c = 0; c < valid; ++c) total += powers[c];
  sum = float(total);
  for (uint32_t c = 0; c < columns; ++c) Store(d[c], powers[c] / sum);
}

// sumTensor and maxTensor may be null; S is their type.
template <typename T, typename S>
TWIN_OUTLINE void SoftMaxRun(const Local<T>& dst, const Local<S>* sums, const Local<S>* maxima, const Local<T>& src,
                             const Local<uint8_t>* tmp, const AscendC::SoftMaxTiling& tiling,
                             const AscendC::SoftMaxShapeInfo& shape, Site site) {
  static_assert(OneOf<T, half, float>, "SoftMax takes half and float");
  Call call("SoftMax", PIPE_V, site);
  uint32_t rows = shape.srcM ? shape.srcM : tiling.srcM, columns = shape.srcK ? shape.srcK : tiling.srcK;
  uint32_t validRows = shape.oriSrcM ? shape.oriSrcM : rows, valid = shape.oriSrcK ? shape.oriSrcK : columns;
  if (!rows || !columns || columns * sizeof(T) % 32 || validRows > rows || valid > columns)
    call.Problem(true, "count",
                 "SoftMax of %u x %u in %u x %u: the shape comes from SoftMaxShapeInfo or the tiling, and a row "
                 "is a multiple of 32 bytes",
                 validRows, valid, rows, columns);
  const uint64_t row = uint64_t(columns) * sizeof(T), bytes = rows * row, perRow = 32 / sizeof(S);
  View to = dst.View(), from = src.View();
  call.width = sizeof(T);
  call.UbPieces("src", false, from.address, validRows, uint64_t(valid) * sizeof(T), int64_t(row), from.low, from.high,
                32);
  if (tmp) Touch(call, "sharedTmpBuffer", true, *tmp, tmp->GetSize());
  Touch(call, "dst", true, dst, uint64_t(rows) * columns);
  if (sums) Touch(call, "sumTensor", true, *sums, rows * perRow);
  if (maxima) Touch(call, "maxTensor", true, *maxima, rows * perRow);
  CheckOverlap(call, "src", to.address, bytes, from.address, bytes);
  if (tmp) {
    CheckDisjoint(call, "sharedTmpBuffer", to.address, bytes, tmp->View().address, tmp->GetSize());
    CheckDisjoint(call, "sharedTmpBuffer", from.address, bytes, tmp->View().address, tmp->GetSize());
  }
  if (!call.Issue(6 * RepeatsOf(bytes))) return;
  if (tmp) call.Undefined(tmp->View().address, tmp->GetSize());
  uint8_t* ub = call.core.ub;
  for (uint32_t r = 0; r < rows; ++r) {
    float highest, sum;
    SoftMaxRow(As<T>(ub + to.address + r * row), As<T>(ub + from.address + r * row), columns, valid, highest, sum);
    for (uint64_t i = 0; i < perRow; ++i) {
      if (sums) Store(As<S>(ub + sums->View().address)[r * perRow + i], sum);
      if (maxima) Store(As<S>(ub + maxima->View().address)[r * perRow + i], highest);
    }
  }
}

}  // inline namespace
}  // namespace twin

namespace AscendC {

// sum and max: half with half data, or float.
template <typename T, bool isReuseSource = false, bool isBasicBlock = false, bool isDataFormatNZ = false,
          const SoftmaxConfig& config = SOFTMAX_DEFAULT_CFG, typename S>
inline void SoftMax(const LocalTensor<T>& dstTensor, const LocalTensor<S>& sumTensor, const LocalTensor<S>& maxTensor,
                    const LocalTensor<T>& srcTensor, const LocalTensor<uint8_t>& sharedTmpBuffer,
                    const SoftMaxTiling& tiling, const SoftMaxShapeInfo& softmaxShapeInfo = {},
                    twin::Site site = twin::Site::Here()) {
  static_assert(!isDataFormatNZ, "the twin has SoftMax in ND format");
  static_assert(std::is_same<S, T>::value || std::is_same<S, float>::value,
                "sum and max are of the data's type or float");
  twin::SoftMaxRun(dstTensor, &sumTensor, &maxTensor, srcTensor, &sharedTmpBuffer, tiling, softmaxShapeInfo, site);
}
template <typename T, bool isReuseSource = false, bool isBasicBlock = false, bool isDataFormatNZ = false,
          const SoftmaxConfig& config = SOFTMAX_DEFAULT_CFG, typename S>
inline void SoftMax(const LocalTensor<T>& dstTensor, const LocalTensor<S>& sumTensor, const LocalTensor<S>& maxTensor,
                    const LocalTensor<T>& srcTensor, const SoftMaxTiling& tiling,
                    const SoftMaxShapeInfo& softmaxShapeInfo = {}, twin::Site site = twin::Site::Here()) {
  static_assert(!isDataFormatNZ, "the twin has SoftMax in ND format");
  static_assert(std::is_same<S, T>::value || std::is_same<S, float>::value,
                "sum and max are of the data's type or float");
  twin::SoftMaxRun(dstTensor, &sumTensor, &maxTensor, srcTensor, (const LocalTensor<uint8_t>*)nullptr, tiling,
                   softmaxShapeInfo, site);
}
template <typename T, bool isReuseSource = false, bool isBasicBlock = false,
          const SoftmaxConfig& config = SOFTMAX_DEFAULT_CFG>
inline void SoftMax(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor,
                    const LocalTensor<uint8_t>& sharedTmpBuffer, const SoftMaxTiling& tiling,
                    const SoftMaxShapeInfo& softmaxShapeInfo = {}, twin::Site site = twin::Site::Here()) {
  twin::SoftMaxRun<T, T>(dstTensor, nullptr, nullptr, srcTensor, &sharedTmpBuffer, tiling, softmaxShapeInfo, site);
}
template <typename T, bool isReuseSource = false, bool isBasicBlock = false,
          const SoftmaxConfig& config = SOFTMAX_DEFAULT_CFG>
inline void SoftMax(const LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor, const SoftMaxTiling& tiling,
                    const SoftMaxShapeInfo& softmaxShapeInfo = {}, twin::Site site = twin::Site::Here()) {
  twin::SoftMaxRun<T, T>(dstTensor, nullptr, nullptr, srcTensor, nullptr, tiling, softmaxShapeInfo, site);
}

}  // namespace AscendC
