// AscendQuant: half or float to int8_t, with one scale and offset for all elements, or one for each channel (column).
// Float data and scales become half first; the product and the sum round to half, then to the nearest even integer.
#pragma once
#include "twin/sort.h"

namespace AscendC {

#if __NPU_ARCH__ == 3510
struct AscendQuantConfig {
  constexpr AscendQuantConfig(uint32_t calcCount, uint32_t offsetCount, uint32_t scaleCount, uint32_t workLocalSize)
      : calcCount(calcCount), offsetCount(offsetCount), scaleCount(scaleCount), workLocalSize(workLocalSize) {}
  constexpr AscendQuantConfig(bool hasOffset, int32_t kDim = 1, RoundMode roundMode = RoundMode::CAST_RINT)
      : hasOffset(hasOffset), kDim(kDim), roundMode(roundMode) {}
  uint32_t calcCount = 0, offsetCount = 0, scaleCount = 0, workLocalSize = 0;
  bool hasOffset = false;
  int32_t kDim = 1;
  RoundMode roundMode = RoundMode::CAST_RINT;
};
inline constexpr AscendQuantConfig ASCEND_QUANT_DEFAULT_CFG = {0, 0, 0, 0};
#else
struct AscendQuantConfig {
  uint32_t calcCount = 0, offsetCount = 0, scaleCount = 0, workLocalSize = 0;
};
inline constexpr AscendQuantConfig ASCEND_QUANT_DEFAULT_CFG = {0, 0, 0, 0};
#endif

}  // namespace AscendC

namespace twin {
inline namespace TWIN_ABI {

template <typename T> inline half ToHalf(const T& value) { return half(float(Load(value))); }

// One parameter of the quantization: a scalar, or a tensor that repeats every `count` elements.
template <typename T>
struct QuantParameter {
  const Local<T>* tensor;
  uint32_t count;
  half scalar;
  half At(const uint8_t* ub, uint64_t i) const {
    return tensor ? ToHalf(As<T>(const_cast<uint8_t*>(ub) + tensor->View().address)[i % count]) : scalar;
  }
};

template <typename T>
TWIN_OUTLINE void QuantRun(const Local<int8_t>& dst, const Local<T>& src, const Local<uint8_t>* tmp,
                           const QuantParameter<T>& scale, const QuantParameter<T>& offset, uint32_t count, Site site) {
  static_assert(OneOf<T, half, float>, "AscendQuant takes half and float");
  Call call("AscendQuant", PIPE_V, site);
  for (const auto* p : {&scale, &offset})
    if (p->tensor && (p->count == 0 || p->count % 32 || count % p->count))
      call.Problem(true, "count",
                   "AscendQuant of %u elements with %u scales or offsets: a multiple of 32 that divides the elements",
                   count, p->count);
  if (scale.tensor && offset.tensor && scale.count != offset.count)
    call.Problem(true, "count", "AscendQuant with %u scales and %u offsets", scale.count, offset.count);
  Touch(call, "src", false, src, count);
  if (scale.tensor) Touch(call, "scale", false, *scale.tensor, scale.count);
  if (offset.tensor) Touch(call, "offset", false, *offset.tensor, offset.count);
  if (tmp) Touch(call, "sharedTmpBuffer", true, *tmp, tmp->GetSize());
  Touch(call, "dst", true, dst, count);
  call.width = sizeof(T);
  const uint64_t d = dst.View().address, a = src.View().address;
  if (tmp) CheckDisjoint(call, "sharedTmpBuffer", a, uint64_t(count) * sizeof(T), tmp->View().address, tmp->GetSize());
  if (!call.Issue((sizeof(T) == 4 ? 4 : 3) * RepeatsOf(uint64_t(count) * sizeof(T)))) return;
  uint8_t* ub = call.core.ub;
  for (uint64_t i = 0; i < count; ++i) {
    half x = ToHalf(As<T>(ub + a)[i]) * scale.At(ub, i) + offset.At(ub, i);
    As<int8_t>(ub + d)[i] = Saturate<int8_t>(RoundWhole(double(float(x)), AscendC::RoundMode::CAST_RINT));
  }
  if (tmp) call.Undefined(tmp->View().address, tmp->GetSize());
}

}  // inline namespace
}  // namespace twin

// The forms with and without a buffer for scratch, with counts and for whole tensors.
#define TWIN_COMMA ,
#define TWIN_QUANT_HEAD                                                                                               \
  template <typename T, bool isReuseSource = false, const AscendQuantConfig& config = ASCEND_QUANT_DEFAULT_CFG>       \
  inline void AscendQuant(const LocalTensor<int8_t>& dstTensor, const LocalTensor<T>& srcTensor
#define TWIN_QUANT(Scratch, scratch)                                                                                  \
  TWIN_QUANT_HEAD Scratch,                                                                                            \
      const float scale, const float offset, const uint32_t calCount,                                                 \
    twin::Site site = twin::Site::Here()) {                                                                           \
    twin::QuantRun<T>(dstTensor, srcTensor, scratch, {nullptr, 0, half(scale)}, {nullptr, 0, half(offset)},           \
        calCount, site);                                                                                              \
  }                                                                                                                   \
  TWIN_QUANT_HEAD Scratch,                                                                                            \
      const float scale, const float offset, twin::Site site = twin::Site::Here()) {                                  \
    twin::QuantRun<T>(dstTensor, srcTensor, scratch, {nullptr, 0, half(scale)}, {nullptr, 0, half(offset)},           \
      srcTensor.GetSize(), site);                                                                                     \
  }                                                                                                                   \
  TWIN_QUANT_HEAD Scratch,                                                                                            \
      const LocalTensor<T>& scaleTensor, const T offset,                                                              \
      const uint32_t scaleCount, const uint32_t calCount,                                                             \
    twin::Site site = twin::Site::Here()) {                                                                           \
    twin::QuantRun<T>(dstTensor, srcTensor, scratch, {&scaleTensor, scaleCount, half(0)},                             \
      {nullptr, 0, twin::ToHalf(offset)}, calCount, site);                                                            \
  }                                                                                                                   \
  TWIN_QUANT_HEAD Scratch,                                                                                            \
      const LocalTensor<T>& scaleTensor, const T offset,                                                              \
    twin::Site site = twin::Site::Here()) {                                                                           \
    twin::QuantRun<T>(dstTensor, srcTensor, scratch, {&scaleTensor, scaleTensor.GetSize(), half(0)},                  \
      {nullptr, 0, twin::ToHalf(offset)}, srcTensor.GetSize(), site);                                                 \
  }                                                                                                                   \
  TWIN_QUANT_HEAD Scratch,                                                                                            \
      const LocalTensor<T>& scaleTensor, const LocalTensor<T>& offsetTensor,                                          \
      const uint32_t scaleCount, const uint32_t offsetCount,                                                          \
      const uint32_t calCount, twin::Site site = twin::Site::Here()) {                                                \
    twin::QuantRun<T>(dstTensor, srcTensor, scratch, {&scaleTensor, scaleCount, half(0)},                             \
      {&offsetTensor, offsetCount, half(0)}, calCount, site);                                                         \
  }                                                                                                                   \
  TWIN_QUANT_HEAD Scratch,                                                                                            \
      const LocalTensor<T>& scaleTensor, const LocalTensor<T>& offsetTensor,                                          \
    twin::Site site = twin::Site::Here()) {                                                                           \
    twin::QuantRun<T>(dstTensor, srcTensor, scratch, {&scaleTensor, scaleTensor.GetSize(), half(0)},                  \
      {&offsetTensor, offsetTensor.GetSize(), half(0)}, srcTensor.GetSize(), site);                                   \
  }

namespace AscendC {
TWIN_QUANT(, (const LocalTensor<uint8_t>*)nullptr)
TWIN_QUANT(TWIN_COMMA const LocalTensor<uint8_t>& sharedTmpBuffer, &sharedTmpBuffer)
}  // namespace AscendC
#undef TWIN_QUANT
#undef TWIN_QUANT_HEAD
#undef TWIN_COMMA
