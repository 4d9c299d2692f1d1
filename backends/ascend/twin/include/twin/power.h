// Power: base^exponent for tensors, or one of them a scalar. Computed in double and rounded once, as the other
// high-level functions; integers by repeated multiplication, which wraps around.
#pragma once
#include "twin/highlevel.h"

namespace AscendC {

enum class PowerAlgo { INTRINSIC = 0, DOUBLE_FLOAT_TECH };
struct PowerConfig {
  PowerAlgo algo = PowerAlgo::INTRINSIC;
};
inline constexpr PowerConfig defaultPowerConfig = {PowerAlgo::INTRINSIC};

}  // namespace AscendC

#if __NPU_ARCH__ == 3510
#define TWIN_POWERS int8_t, uint8_t, int16_t, uint16_t, int32_t, uint32_t, half, bfloat16_t, float
#else
#define TWIN_POWERS int32_t, half, float
#endif

namespace twin {
inline namespace TWIN_ABI {

template <typename C>
inline C PowerOf(C base, C exponent) {
  if constexpr (std::is_integral<C>::value) {
    if (std::is_signed<C>::value && exponent < 0)  // 1, -1, and what truncates to 0; 0 has no such power
      return base == 1 ? C(1) : C(base + 1) == 0 ? (exponent % 2 ? base : C(1)) : C(0);
    uint64_t result = 1, square = uint64_t(int64_t(base));
    for (uint64_t e = uint64_t(exponent); e; e >>= 1, square *= square)
      if (e & 1) result *= square;
    return C(result);
  } else {
    return C(std::pow(double(base), double(exponent)));
  }
}

template <typename T>
struct PowerOperand {
  const Local<T>* tensor;  // or null, and `scalar` holds for all
  T scalar;
};

template <typename T>
TWIN_OUTLINE void PowerRun(const Local<T>& dst, const PowerOperand<T>& base, const PowerOperand<T>& exponent,
                           const Local<uint8_t>* tmp, uint32_t count, Site site) {
  Call call("Power", PIPE_V, site);
  const uint64_t bytes = uint64_t(count) * sizeof(T), d = dst.View().address, scratch = tmp ? tmp->GetSize() : 0;
  const uint64_t t = tmp ? tmp->View().address : 0;
  const PowerOperand<T>* operands[] = {&base, &exponent};
  const char* names[] = {"src0Tensor", "src1Tensor"};
  for (int k = 0; k < 2; ++k) {
    if (!operands[k]->tensor) continue;
    const uint64_t a = operands[k]->tensor->View().address;
    Touch(call, names[k], false, *operands[k]->tensor, count);
    CheckDisjoint(call, names[k], d, bytes, a, bytes);
    CheckDisjoint(call, "sharedTmpBuffer", a, bytes, t, scratch);
  }
  if (tmp) Touch(call, "sharedTmpBuffer", true, *tmp, scratch);
  Touch(call, "dst", true, dst, count);
  CheckDisjoint(call, "sharedTmpBuffer", d, bytes, t, scratch);
  if (!call.Issue((std::is_integral<T>::value ? 60 : 40) * RepeatsOf(bytes))) return;
  call.Undefined(t, scratch);
  uint8_t* ub = call.core.ub;
  const T* a = base.tensor ? As<T>(ub + base.tensor->View().address) : &base.scalar;
  const T* b = exponent.tensor ? As<T>(ub + exponent.tensor->View().address) : &exponent.scalar;
  for (uint32_t i = 0; i < count; ++i)
    Store(As<T>(ub + d)[i], PowerOf(Load(a[base.tensor ? i : 0]), Load(b[exponent.tensor ? i : 0])));
}

}  // inline namespace
}  // namespace twin

// Each with and without a buffer for scratch and a count; without one, all of the source.
#define TWIN_SCRATCH_none
#define TWIN_SCRATCH_OF_none (const LocalTensor<uint8_t>*)nullptr
#define TWIN_SCRATCH_shared , const LocalTensor<uint8_t>& sharedTmpBuffer
#define TWIN_SCRATCH_OF_shared &sharedTmpBuffer
#define TWIN_POWER(Left, left, Right, right, scratch, size)                                                           \
  template <typename T, bool isReuseSource = false, const PowerConfig& config = defaultPowerConfig>                   \
  inline void Power(const LocalTensor<T>& dstTensor, Left, Right TWIN_SCRATCH_##scratch, uint32_t calCount,           \
                    twin::Site site = twin::Site::Here()) {                                                           \
    TWIN_TYPES(Power, TWIN_POWERS);                                                                                   \
    twin::PowerRun<T>(dstTensor, left, right, TWIN_SCRATCH_OF_##scratch, calCount, site);                             \
  }                                                                                                                   \
  template <typename T, bool isReuseSource = false, const PowerConfig& config = defaultPowerConfig>                   \
  inline void Power(const LocalTensor<T>& dstTensor, Left, Right TWIN_SCRATCH_##scratch,                              \
                    twin::Site site = twin::Site::Here()) {                                                           \
    TWIN_TYPES(Power, TWIN_POWERS);                                                                                   \
    twin::PowerRun<T>(dstTensor, left, right, TWIN_SCRATCH_OF_##scratch, size.GetSize(), site);                       \
  }
#define TWIN_POWERS_OF(scratch)                                                                                       \
  TWIN_POWER(const LocalTensor<T>& src0, (twin::PowerOperand<T>{&src0, T()}), const LocalTensor<T>& src1,             \
             (twin::PowerOperand<T>{&src1, T()}), scratch, src0)                                                      \
  TWIN_POWER(const LocalTensor<T>& src0, (twin::PowerOperand<T>{&src0, T()}), const T& src1,                          \
             (twin::PowerOperand<T>{nullptr, src1}), scratch, src0)                                                   \
  TWIN_POWER(const T& src0, (twin::PowerOperand<T>{nullptr, src0}), const LocalTensor<T>& src1,                       \
             (twin::PowerOperand<T>{&src1, T()}), scratch, src1)

namespace AscendC {
TWIN_POWERS_OF(none)
TWIN_POWERS_OF(shared)
}  // namespace AscendC
#undef TWIN_POWERS_OF
#undef TWIN_POWER
#undef TWIN_SCRATCH_none
#undef TWIN_SCRATCH_OF_none
#undef TWIN_SCRATCH_shared
#undef TWIN_SCRATCH_OF_shared
#undef TWIN_POWERS
