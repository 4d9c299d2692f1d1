// TopK: the k largest or smallest of each row with their indices, in order; ties keep the lower position, and NaN
// stands first either way.
#pragma once
#include <algorithm>
#include "twin/sort.h"
#include "twin/tiling_structs.h"

// Names of numbers that the published header of TopK leaves at global scope: kernels have come to use them.
namespace {
constexpr uint32_t TWO = 2, THREE = 3, FOUR = 4, FIVE = 5, SIX = 6, SEVEN = 7, EIGHT = 8, NINE = 9, TWELVE = 12;
constexpr uint32_t SIXTEEN = 16, THIRTY_TWO = 32, FORTYEIGHT = 48;
}  // namespace

namespace AscendC {

enum class TopKMode { TOPK_NORMAL, TOPK_NSMALL };
enum class TopKAlgo { RADIX_SELECT, MERGE_SORT };
enum class TopKOrder { UNSET, LARGEST, SMALLEST };

struct TopKConfig {
  TopKAlgo algo = TopKAlgo::MERGE_SORT;
  TopKOrder order = TopKOrder::UNSET;
  bool sorted = true;
};
inline constexpr TopKConfig defaultTopKConfig = {TopKAlgo::MERGE_SORT, TopKOrder::UNSET, true};

struct TopKInfo {
  int32_t outter = 1, inner = 0, n = 0;
};

}  // namespace AscendC

namespace twin {
inline namespace TWIN_ABI {

template <bool hasIndex, bool hasFinish, bool small, typename T>
TWIN_OUTLINE void TopKRun(const Local<T>& values, const Local<int32_t>& indices, const Local<T>& src,
                          const Local<int32_t>& srcIndex, const Local<bool>& finish, const Local<uint8_t>* tmp,
                          int32_t k, const AscendC::TopKInfo& info, bool largest, Site site) {
  Call call("TopK", PIPE_V, site);
  if (info.outter < 1 || info.inner % 32 || info.n < 1 || info.n > info.inner ||
      (small ? info.inner != 32 : info.inner > 4096))
    call.Problem(true, "count", "TopK of %d rows of %d in %d: a row takes a multiple of 32 elements, %s", info.outter,
                 info.n, info.inner, small ? "and 32 in small mode" : "at most 4096");
  if (k < 1 || k > info.n) call.Problem(true, "count", "TopK: k is %d, and a row has %d elements", k, info.n);
  const uint64_t rows = info.outter, inner = info.inner, n = rows * inner;
  const uint64_t stride = small ? k : RoundUp(k, 32 / sizeof(T)), indexStride = small ? k : RoundUp(k, 8);
  Touch(call, "srcLocal", false, src, n);
  if (hasIndex) Touch(call, "srcIndexLocal", false, srcIndex, small ? n : inner);
  if (hasFinish) Touch(call, "finishLocal", false, finish, rows);
  if (tmp) Touch(call, "tmpLocal", true, *tmp, tmp->GetSize());
  Touch(call, "dstValueLocal", true, values, rows * stride);
  Touch(call, "dstIndexLocal", true, indices, rows * indexStride);
  const uint64_t from = src.View().address, to = values.View().address, toIndex = indices.View().address;
  CheckDisjoint(call, "srcLocal", to, rows * stride * sizeof(T), from, n * sizeof(T));
  CheckDisjoint(call, "srcLocal", toIndex, rows * indexStride * 4, from, n * sizeof(T));
  if (hasIndex)
    CheckDisjoint(call, "srcIndexLocal", toIndex, rows * indexStride * 4, srcIndex.View().address,
                  (small ? n : inner) * 4);
  uint32_t levels = 1;  // of the full sort that the device does: runs of 32, then merges by four
  for (uint64_t runs = inner / 32; runs > 1; runs = (runs + 3) / 4) ++levels;
  if (!call.Issue(uint32_t(levels * n / 32))) return;
  if (tmp) call.Undefined(tmp->View().address, tmp->GetSize());
  uint8_t* ub = call.core.ub;
  uint32_t* order = reinterpret_cast<uint32_t*>(ScratchBytes(inner * 4));
  for (uint64_t r = 0; r < rows; ++r) {
    const T* row = As<T>(ub + from) + r * inner;
    for (uint32_t i = 0; i < inner; ++i) order[i] = i;
    std::stable_sort(order, order + inner, [&](uint32_t x, uint32_t y) {
      const auto a = Load(row[x]), b = Load(row[y]);
      if (a != a || b != b) return a != a && b == b;
      return largest ? a > b : a < b;
    });
    const bool ended = hasFinish && As<bool>(ub + finish.View().address)[r];
    const int32_t* names = As<int32_t>(ub + srcIndex.View().address) + (small ? r * inner : 0);
    T* out = As<T>(ub + to) + r * stride;
    int32_t* outIndex = As<int32_t>(ub + toIndex) + r * indexStride;
    std::memset(static_cast<void*>(out), 0xff, stride * sizeof(T));  // what fills the last block up is anything
    std::memset(outIndex, 0xff, indexStride * 4);
    for (int32_t i = 0; i < k; ++i) {
      out[i] = row[order[i]];
      outIndex[i] = ended ? info.n : hasIndex ? names[order[i]] : int32_t(order[i]);
    }
  }
}

// `algo` and `order` are of 950 only; radix selection takes every type there.
template <typename T, const AscendC::TopKConfig& config>
constexpr bool TopKTakes() {
#if __NPU_ARCH__ == 3510
  if (config.algo == AscendC::TopKAlgo::RADIX_SELECT)
    return OneOf<T, uint8_t, int8_t, uint16_t, int16_t, uint32_t, int32_t, bfloat16_t, half, float, uint64_t, int64_t>;
  return OneOf<T, half, float>;
#else
  return OneOf<T, half, float> && config.algo == AscendC::TopKAlgo::MERGE_SORT &&
         config.order == AscendC::TopKOrder::UNSET;
#endif
}
template <const AscendC::TopKConfig& config>
constexpr bool TopKLargest(bool isLargest) {
  return config.order == AscendC::TopKOrder::UNSET ? isLargest : config.order == AscendC::TopKOrder::LARGEST;
}

}  // inline namespace
}  // namespace twin

#define TWIN_TOPK(Scratch, scratch)                                                                                    \
  template <typename T, bool isInitIndex = false, bool isHasfinish = false, bool isReuseSrc = false,                   \
            enum TopKMode topkMode = TopKMode::TOPK_NORMAL, const TopKConfig& config = defaultTopKConfig>              \
  inline void TopK(const LocalTensor<T>& dstValueLocal, const LocalTensor<int32_t>& dstIndexLocal,                     \
                   const LocalTensor<T>& srcLocal, const LocalTensor<int32_t>& srcIndexLocal,                          \
                   const LocalTensor<bool>& finishLocal Scratch, const int32_t k, const TopkTiling&,                   \
                   const TopKInfo& topKInfo, const bool isLargest = true, twin::Site site = twin::Site::Here()) {      \
    static_assert(twin::TopKTakes<T, config>(), "TopK does not take this type with this configuration");               \
    static_assert(!isHasfinish || topkMode == TopKMode::TOPK_NORMAL, "TopK in small mode takes no finishLocal");       \
    twin::TopKRun<isInitIndex, isHasfinish, topkMode == TopKMode::TOPK_NSMALL>(                                        \
        dstValueLocal, dstIndexLocal, srcLocal, srcIndexLocal, finishLocal, scratch, k, topKInfo,                      \
        twin::TopKLargest<config>(isLargest), site);                                                                   \
  }
#define TWIN_COMMA ,

namespace AscendC {
TWIN_TOPK(, (const LocalTensor<uint8_t>*)nullptr)
TWIN_TOPK(TWIN_COMMA const LocalTensor<uint8_t>& tmpLocal, &tmpLocal)
}  // namespace AscendC
#undef TWIN_TOPK
#undef TWIN_COMMA
