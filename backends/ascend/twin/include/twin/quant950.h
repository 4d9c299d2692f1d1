// AscendQuant on 950: other destinations than int8_t, scales by token or by group, and the older forms for them too.
//
// For int8_t and hifloat8_t with one scale or one a channel everything is half, as in quant.h; for fp8 it is float. By token
// and by group it is float for every type, and 4-bit floats go through bfloat16_t.
#pragma once
#include "twin/quant.h"

#if __NPU_ARCH__ == 3510

namespace AscendC {

enum class AscendQuantPolicy : int32_t {
  PER_TENSOR, PER_CHANNEL, PER_TOKEN, PER_GROUP, PER_CHANNEL_PER_GROUP, PER_TOKEN_PER_GROUP
};
struct AscendQuantParam {
  uint32_t m;
  uint32_t n;
  uint32_t calCount;
  uint32_t groupSize = 0;
};

}  // namespace AscendC

namespace twin {
inline namespace TWIN_ABI {

template <typename To> inline constexpr bool IsFp8 = OneOf<To, AscendC::fp8_e4m3fn_t, AscendC::fp8_e5m2_t>;

// One result, number `i` of dst.
template <typename To>
inline void StoreQuantized(To* d, uint64_t i, float x, RoundMode mode) {
  if constexpr (std::is_same<To, int8_t>::value) d[i] = Saturate<int8_t>(RoundWhole(x, mode));
  else if constexpr (std::is_same<To, AscendC::hifloat8_t>::value)
    d[i].bits = FloatToHifloat(x, mode == RoundMode::CAST_HYBRID, 14);
  else if constexpr (std::is_same<To, AscendC::fp8_e4m3fn_t>::value) d[i].bits = FloatToSmall(x, 4);
  else if constexpr (std::is_same<To, AscendC::fp8_e5m2_t>::value) d[i].bits = FloatToSmall(x, 5);
  else StoreNibble(&d->bits, i, FloatToFour<To>(BfloatToFloat(FloatToBfloat(x)), mode));
}

// The round modes that a destination takes, the first of them by default.
template <typename To>
constexpr bool QuantRounds(RoundMode mode) {
  if constexpr (std::is_same<To, AscendC::hifloat8_t>::value)
    return mode == RoundMode::CAST_ROUND || mode == RoundMode::CAST_HYBRID;
  else if constexpr (IsFp8<To>) return mode == RoundMode::CAST_RINT;
  else return mode >= RoundMode::CAST_RINT && mode <= RoundMode::CAST_TRUNC;
}

// A parameter as one value, or a tensor that repeats every `count` elements.
template <typename T>
struct ChannelParameter {
  const Local<T>* tensor;
  uint32_t count;
  float scalar;
  float At(uint8_t* ub, uint64_t i) const {
    return tensor ? float(Load(As<T>(ub + tensor->View().address)[i % count])) : scalar;
  }
};

template <typename To, typename T>
TWIN_OUTLINE void QuantTo(const Local<To>& dst, const Local<T>& src, const Local<uint8_t>* tmp,
                          const ChannelParameter<T>& scale, const ChannelParameter<T>& offset, uint32_t count,
                          Site site) {
  static_assert(OneOf<T, half, bfloat16_t, float>, "AscendQuant takes half, bfloat16_t and float");
  static_assert(OneOf<To, int8_t, AscendC::hifloat8_t> || IsFp8<To>,
                "AscendQuant with one scale or one a channel gives int8_t, fp8_e4m3fn_t, fp8_e5m2_t or hifloat8_t");
  Call call("AscendQuant", PIPE_V, site);
  for (const auto* p : {&scale, &offset})
    if (p->tensor && (p->count == 0 || p->count % 32 || count % p->count))
      call.Problem(true, "count",
                   "AscendQuant of %u elements with %u scales or offsets: a multiple of 32 that divides the elements",
                   count, p->count);
  Touch(call, "src", false, src, count);
  if (scale.tensor) Touch(call, "scale", false, *scale.tensor, scale.count);
  if (offset.tensor) Touch(call, "offset", false, *offset.tensor, offset.count);
  if (tmp) Touch(call, "sharedTmpBuffer", true, *tmp, tmp->GetSize());
  Touch(call, "dst", true, dst, count);
  call.width = sizeof(T);
  const uint64_t d = dst.View().address, a = src.View().address;
  if (!call.Issue((sizeof(T) == 4 ? 4 : 3) * RepeatsOf(uint64_t(count) * sizeof(T)))) return;
  uint8_t* ub = call.core.ub;
  const RoundMode mode = std::is_same<To, AscendC::hifloat8_t>::value ? RoundMode::CAST_ROUND : RoundMode::CAST_RINT;
  for (uint64_t i = 0; i < count; ++i) {
    const float x = float(Load(As<T>(ub + a)[i]));
    float y = x * scale.At(ub, i) + offset.At(ub, i);
    if (!IsFp8<To>) y = float(half(x) * half(scale.At(ub, i)) + half(offset.At(ub, i)));
    StoreQuantized(As<To>(ub + d), i, y, mode);
  }
  if (tmp) call.Undefined(tmp->View().address, tmp->GetSize());
}

// By token (a row of m x n) or by group of rows or columns: dst = src * scale + offset in float.
template <const AscendC::AscendQuantConfig& config, const AscendC::AscendQuantPolicy& policy, typename To, typename T,
          typename S>
TWIN_OUTLINE void QuantGroups(const Local<To>& dst, const Local<T>& src, const Local<S>& scale,
                              const Local<S>* offsets, S offset, const AscendC::AscendQuantParam& p, Site site) {
  using AscendC::AscendQuantPolicy;
  static_assert(policy == AscendQuantPolicy::PER_TOKEN || policy == AscendQuantPolicy::PER_GROUP,
                "AscendQuant has the policies PER_TOKEN and PER_GROUP");
  static_assert(OneOf<T, half, bfloat16_t, float> && (OneOf<S, T, float>),
                "AscendQuant takes half, bfloat16_t and float, with scales of that type or float");
  static_assert(OneOf<To, int8_t, AscendC::hifloat8_t> || IsFp8<To> ||
                    (IsFour<To> && policy == AscendQuantPolicy::PER_GROUP && !std::is_same<T, float>::value),
                "AscendQuant gives int8_t, fp8, hifloat8_t, and by groups of half or bfloat16_t also 4-bit floats");
  static_assert(config.kDim == 0 || config.kDim == 1, "kDim is 0 (groups of rows) or 1 (groups of columns)");
  constexpr bool hif8 = std::is_same<To, AscendC::hifloat8_t>::value;
  // CAST_RINT is what the default configuration says; hifloat8_t takes it as its own default.
  constexpr RoundMode mode = hif8 && config.roundMode == RoundMode::CAST_RINT ? RoundMode::CAST_ROUND : config.roundMode;
  static_assert(QuantRounds<To>(mode), "this round mode is not one of the destination's");
  constexpr bool token = policy == AscendQuantPolicy::PER_TOKEN;
  Call call("AscendQuant", PIPE_V, site);
  if (p.n == 0 || p.n * sizeof(T) % 32 || p.calCount % p.n || uint64_t(p.m) * p.n < p.calCount)
    call.Problem(true, "count", "AscendQuant of %u elements in %u rows of %u: whole rows, each a multiple of 32 bytes",
                 p.calCount, p.m, p.n);
  if (!token && (p.groupSize == 0 || p.groupSize % 32))
    call.Problem(true, "count", "AscendQuant in groups of %u: a multiple of 32", p.groupSize);
  const uint32_t columns = p.n ? p.n : 1, rows = p.calCount / columns, size = p.groupSize ? p.groupSize : 1;
  const uint32_t across = config.kDim == 1 ? (columns + size - 1) / size : columns;
  const uint64_t scales = token ? rows : config.kDim == 1 ? uint64_t(rows) * across
                                                          : uint64_t((rows + size - 1) / size) * columns;
  constexpr bool shifted = config.hasOffset && !IsFour<To>;
  Touch(call, "src", false, src, p.calCount);
  Touch(call, "scale", false, scale, scales);
  if (shifted && offsets) Touch(call, "offset", false, *offsets, scales);
  TouchBytes(call, "dst", true, dst, CastBytes<To>(p.calCount));
  call.width = sizeof(T);
  if (!call.Issue(4 * RepeatsOf(uint64_t(p.calCount) * sizeof(T)))) return;
  uint8_t* ub = call.core.ub;
  const T* a = As<T>(ub + src.View().address);
  const S* s = As<S>(ub + scale.View().address);
  const S* o = shifted && offsets ? As<S>(ub + offsets->View().address) : nullptr;
  for (uint32_t r = 0; r < rows; ++r)
    for (uint32_t c = 0; c < columns; ++c) {
      const uint64_t i = uint64_t(r) * columns + c;
      const uint64_t k = token ? r : config.kDim == 1 ? uint64_t(r) * across + c / size : uint64_t(r / size) * columns + c;
      float x = float(Load(a[i])) * float(Load(s[k]));
      if (shifted) x = x + float(Load(o ? o[k] : offset));
      StoreQuantized(As<To>(ub + dst.View().address), i, x, mode);
    }
}

}  // inline namespace
}  // namespace twin

// The forms of quant.h with the destination's type first.
#define TWIN_SCRATCH_none
#define TWIN_SCRATCH_OF_none (const LocalTensor<uint8_t>*)nullptr
#define TWIN_SCRATCH_shared , const LocalTensor<uint8_t>& sharedTmpBuffer
#define TWIN_SCRATCH_OF_shared &sharedTmpBuffer
#define TWIN_SITE twin::Site site = twin::Site::Here()
#define TWIN_QUANT_TO(scratch, ...)                                                                                    \
  template <typename dstT, typename srcT, bool isReuseSource = false>                                                  \
  inline void AscendQuant(const LocalTensor<dstT>& dstTensor,                                                          \
                          const LocalTensor<srcT>& srcTensor TWIN_SCRATCH_##scratch, __VA_ARGS__, TWIN_SITE)
#define TWIN_ONE(value) {nullptr, 0, float(twin::Load(value))}
#define TWIN_MANY(tensor, count) {&tensor, count, 0.0f}
#define TWIN_QUANT_FORMS(scratch)                                                                                      \
  TWIN_QUANT_TO(scratch, const float scale, const float offset, const uint32_t calCount) {                             \
    twin::QuantTo<dstT, srcT>(dstTensor, srcTensor, TWIN_SCRATCH_OF_##scratch, TWIN_ONE(scale), TWIN_ONE(offset),      \
                              calCount, site);                                                                         \
  }                                                                                                                    \
  TWIN_QUANT_TO(scratch, const float scale, const float offset) {                                                      \
    twin::QuantTo<dstT, srcT>(dstTensor, srcTensor, TWIN_SCRATCH_OF_##scratch, TWIN_ONE(scale), TWIN_ONE(offset),      \
                              srcTensor.GetSize(), site);                                                              \
  }                                                                                                                    \
  TWIN_QUANT_TO(scratch, const LocalTensor<srcT>& scaleTensor, const srcT offset, const uint32_t scaleCount,           \
                const uint32_t calCount) {                                                                             \
    twin::QuantTo<dstT, srcT>(dstTensor, srcTensor, TWIN_SCRATCH_OF_##scratch, TWIN_MANY(scaleTensor, scaleCount),     \
                              TWIN_ONE(offset), calCount, site);                                                       \
  }                                                                                                                    \
  TWIN_QUANT_TO(scratch, const LocalTensor<srcT>& scaleTensor, const srcT offset) {                                    \
    twin::QuantTo<dstT, srcT>(dstTensor, srcTensor, TWIN_SCRATCH_OF_##scratch,                                         \
                              TWIN_MANY(scaleTensor, scaleTensor.GetSize()), TWIN_ONE(offset), srcTensor.GetSize(),    \
                              site);                                                                                   \
  }                                                                                                                    \
  TWIN_QUANT_TO(scratch, const LocalTensor<srcT>& scaleTensor, const LocalTensor<srcT>& offsetTensor,                  \
                const uint32_t scaleCount, const uint32_t offsetCount, const uint32_t calCount) {                      \
    twin::QuantTo<dstT, srcT>(dstTensor, srcTensor, TWIN_SCRATCH_OF_##scratch, TWIN_MANY(scaleTensor, scaleCount),     \
                              TWIN_MANY(offsetTensor, offsetCount), calCount, site);                                   \
  }                                                                                                                    \
  TWIN_QUANT_TO(scratch, const LocalTensor<srcT>& scaleTensor, const LocalTensor<srcT>& offsetTensor) {                \
    twin::QuantTo<dstT, srcT>(dstTensor, srcTensor, TWIN_SCRATCH_OF_##scratch,                                         \
                              TWIN_MANY(scaleTensor, scaleTensor.GetSize()),                                           \
                              TWIN_MANY(offsetTensor, offsetTensor.GetSize()), srcTensor.GetSize(), site);             \
  }                                                                                                                    \
  template <typename dstT, typename srcT, typename scaleT, bool isReuseSource = false,                                 \
            const AscendQuantConfig& config, const AscendQuantPolicy& policy>                                          \
  inline void AscendQuant(const LocalTensor<dstT>& dstTensor, const LocalTensor<srcT>& srcTensor                       \
                          TWIN_SCRATCH_##scratch, const LocalTensor<scaleT>& scaleTensor,                              \
                          const LocalTensor<scaleT>& offsetTensor, const AscendQuantParam& para, TWIN_SITE) {          \
    twin::QuantGroups<config, policy>(dstTensor, srcTensor, scaleTensor, &offsetTensor, scaleT(), para, site);         \
  }                                                                                                                    \
  template <typename dstT, typename srcT, typename scaleT, bool isReuseSource = false,                                 \
            const AscendQuantConfig& config, const AscendQuantPolicy& policy>                                          \
  inline void AscendQuant(const LocalTensor<dstT>& dstTensor, const LocalTensor<srcT>& srcTensor                       \
                          TWIN_SCRATCH_##scratch, const LocalTensor<scaleT>& scaleTensor, const scaleT offset,         \
                          const AscendQuantParam& para, TWIN_SITE) {                                                   \
    twin::QuantGroups<config, policy>(dstTensor, srcTensor, scaleTensor, (const LocalTensor<scaleT>*)nullptr, offset,  \
                                      para, site);                                                                     \
  }

namespace AscendC {
TWIN_QUANT_FORMS(none)
TWIN_QUANT_FORMS(shared)
}  // namespace AscendC
#undef TWIN_QUANT_FORMS
#undef TWIN_ONE
#undef TWIN_MANY
#undef TWIN_QUANT_TO
#undef TWIN_SITE
#undef TWIN_SCRATCH_none
#undef TWIN_SCRATCH_OF_none
#undef TWIN_SCRATCH_shared
#undef TWIN_SCRATCH_OF_shared

#endif
