// Sort of 950 with a SortConfig: values and indices in tensors of their own, ascending or descending, equal keys in the
// order they came in.
//
// RADIX_SORT orders by bits: -0 before +0, and NaN beyond infinity on the side of its sign. MERGE_SORT is Sort32 and
// MrgSort, on negated scores when ascending: zeros are equal, and NaN stands first either way.
#pragma once
#include <algorithm>
#include "twin/sort.h"

#if __NPU_ARCH__ == 3510

namespace AscendC {

enum class SortType { RADIX_SORT, MERGE_SORT };
struct SortConfig {
  SortType type = SortType::RADIX_SORT;
  bool isDescend = false;
};
constexpr SortConfig DEFAULT_SORT_CONFIG = {SortType::RADIX_SORT, false};

}  // namespace AscendC

namespace twin {
inline namespace TWIN_ABI {

// The value's bits as a number that grows with the value, or falls with it.
template <bool descend, typename T>
inline uint64_t RadixKey(const T& value) {
  constexpr uint64_t sign = 1ull << (8 * sizeof(T) - 1), all = sign | (sign - 1);
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  if (OneOf<T, half, bfloat16_t, float>) bits ^= bits & sign ? all : sign;
  else if (OneOf<T, int8_t, int16_t, int32_t, int64_t>) bits ^= sign;
  return descend ? bits ^ all : bits;
}

// Bytes of scratch that the radix sort of n elements takes: GetSortMaxMinTmpSize of the host.
inline uint64_t RadixScratch(uint64_t n, uint64_t width, uint64_t srcIndexWidth, bool hasIndex, bool reuse) {
  n = RoundUp(n, 32);
  if (width == 1) return 512 + n * (hasIndex && !srcIndexWidth ? 5 : 7);
  const uint64_t index = srcIndexWidth ? (reuse ? 0 : srcIndexWidth) : hasIndex ? 4 : 0;
  return 512 + n * (7 + (reuse ? 0 : width) + index);
}

// Either index may be absent (nullptr), and the scratch, which then comes from what is left of UB.
template <typename T, typename U, bool reuse, const AscendC::SortConfig& config>
TWIN_OUTLINE void SortWith(const Local<T>& dst, const Local<U>* dstIndex, const Local<T>& src,
                           const Local<U>* srcIndex, const Local<uint8_t>* tmp, uint32_t n, Site site) {
  constexpr bool merge = config.type == AscendC::SortType::MERGE_SORT, descend = config.isDescend;
  static_assert(!merge || OneOf<T, half, float>, "Sort by MERGE_SORT takes half and float");
  static_assert(!merge || std::is_same<U, uint32_t>::value, "Sort by MERGE_SORT takes uint32_t indices");
  static_assert(OneOf<T, int8_t, uint8_t, int16_t, uint16_t, half, bfloat16_t, int32_t, uint32_t, float, int64_t,
                      uint64_t>, "Sort by RADIX_SORT takes integers, half, bfloat16_t and float");
  static_assert(OneOf<U, int32_t, uint32_t, int64_t, uint64_t>, "Sort takes 32-bit and 64-bit integers as indices");
  Call call(merge ? "Sort<MERGE_SORT>" : "Sort<RADIX_SORT>", PIPE_V, site);
  if (n == 0) call.Problem(true, "count", "of no elements");
  if (merge && (n % 32 || n > 255 * 32))
    call.Problem(true, "count", "of %u elements by merging: a multiple of 32, at most 8160", n);

  struct Piece {
    const char* name;
    uint64_t begin, bytes;
  } pieces[5];
  int count = 0;
  auto touch = [&](const char* name, bool write, const auto& tensor, uint64_t elements) {
    using Element = typename std::decay_t<decltype(tensor)>::PrimType;
    if (tensor.GetSize() * sizeof(Element) % 32)
      call.Problem(false, "count", "%s has %u elements, not a multiple of 32 bytes", name, unsigned(tensor.GetSize()));
    if (tensor.GetSize() < elements)
      call.Problem(false, "count", "%s has %u elements and takes %llu", name, unsigned(tensor.GetSize()),
                   (unsigned long long)elements);
    const Piece piece{name, tensor.View().address, elements * sizeof(Element)};
    for (int i = 0; i < count; ++i)
      if (piece.begin < pieces[i].begin + pieces[i].bytes && pieces[i].begin < piece.begin + piece.bytes)
        call.Problem(false, "overlap", "%s and %s overlap at UB byte %llu", name, pieces[i].name,
                     (unsigned long long)std::max(piece.begin, pieces[i].begin));
    pieces[count++] = piece;
    Touch(call, name, write, tensor, elements);
  };
  // Merging ascending negates the source where it lies; with isReuseSource any sort may use the sources as scratch.
  constexpr bool spoils = reuse || (merge && !descend);
  const uint64_t room = merge ? n * 8ull / sizeof(T) : n;  // merging has its pairs in dst
  touch("srcTensor", false, src, n);
  if (srcIndex) touch("srcIndexTensor", false, *srcIndex, n);
  if (spoils) Touch(call, "srcTensor", true, src, n);
  if (reuse && srcIndex) Touch(call, "srcIndexTensor", true, *srcIndex, n);
  const uint64_t scratch =
      merge ? n * 8ull : RadixScratch(n, sizeof(T), srcIndex ? sizeof(U) : 0, dstIndex != nullptr, reuse);
  if (tmp) touch("sharedTmpBuffer", true, *tmp, scratch);
  touch("dstTensor", true, dst, room);
  if (dstIndex) touch("dstIndexTensor", true, *dstIndex, n);
  call.width = sizeof(T);
  if (!call.Issue(merge ? n / 32 : uint32_t((n + 255) / 256 * sizeof(T)))) return;

  uint8_t* ub = call.core.ub;
  const T* from = As<T>(ub + src.View().address);
  uint32_t* order = reinterpret_cast<uint32_t*>(ScratchBytes(n * 4ull));
  for (uint32_t i = 0; i < n; ++i) order[i] = i;
  std::stable_sort(order, order + n, [&](uint32_t x, uint32_t y) {
    if constexpr (merge) {
      const float a = float(Load(from[x])), b = float(Load(from[y]));
      return descend ? Before(a, b) : Before(-a, -b);
    } else {
      return RadixKey<descend>(from[x]) < RadixKey<descend>(from[y]);
    }
  });
  T* to = As<T>(ub + dst.View().address);
  for (uint32_t i = 0; i < n; ++i) to[i] = from[order[i]];
  if (dstIndex) {
    const U* names = srcIndex ? As<U>(ub + srcIndex->View().address) : nullptr;
    U* index = As<U>(ub + dstIndex->View().address);
    for (uint32_t i = 0; i < n; ++i) index[i] = names ? names[order[i]] : U(order[i]);
  }
  call.Undefined(dst.View().address + n * sizeof(T), (room - n) * sizeof(T));
  if (tmp) call.Undefined(tmp->View().address, scratch);
  if (spoils) call.Undefined(src.View().address, n * sizeof(T));
  if (reuse && srcIndex) call.Undefined(srcIndex->View().address, n * sizeof(U));
}

}  // inline namespace
}  // namespace twin

namespace AscendC {

// Values and the indices that come with them.
template <typename T, typename U, bool isReuseSource = false, const SortConfig& config = DEFAULT_SORT_CONFIG>
inline void Sort(LocalTensor<T>& dstTensor, LocalTensor<U>& dstIndexTensor, const LocalTensor<T>& srcTensor,
                 const LocalTensor<U>& srcIndexTensor, const LocalTensor<uint8_t>& sharedTmpBuffer,
                 const uint32_t calCount, twin::Site site = twin::Site::Here()) {
  twin::SortWith<T, U, isReuseSource, config>(dstTensor, &dstIndexTensor, srcTensor, &srcIndexTensor,
                                              &sharedTmpBuffer, calCount, site);
}
template <typename T, typename U, bool isReuseSource = false, const SortConfig& config = DEFAULT_SORT_CONFIG>
inline void Sort(const LocalTensor<T>& dstTensor, const LocalTensor<U>& dstIndexTensor,
                 const LocalTensor<T>& srcTensor, const LocalTensor<U>& srcIndexTensor, const uint32_t calCount,
                 twin::Site site = twin::Site::Here()) {
  twin::SortWith<T, U, isReuseSource, config>(dstTensor, &dstIndexTensor, srcTensor, &srcIndexTensor, nullptr,
                                              calCount, site);
}

// Values and their positions.
template <typename T, bool isReuseSource = false, const SortConfig& config = DEFAULT_SORT_CONFIG>
inline void Sort(LocalTensor<T>& dstTensor, LocalTensor<uint32_t>& dstIndexTensor, const LocalTensor<T>& srcTensor,
                 const LocalTensor<uint8_t>& sharedTmpBuffer, const uint32_t calCount,
                 twin::Site site = twin::Site::Here()) {
  twin::SortWith<T, uint32_t, isReuseSource, config>(dstTensor, &dstIndexTensor, srcTensor, nullptr,
                                                     &sharedTmpBuffer, calCount, site);
}
template <typename T, bool isReuseSource = false, const SortConfig& config = DEFAULT_SORT_CONFIG>
inline void Sort(LocalTensor<T>& dstTensor, LocalTensor<uint32_t>& dstIndexTensor, const LocalTensor<T>& srcTensor,
                 const uint32_t calCount, twin::Site site = twin::Site::Here()) {
  twin::SortWith<T, uint32_t, isReuseSource, config>(dstTensor, &dstIndexTensor, srcTensor, nullptr, nullptr,
                                                     calCount, site);
}

// Values alone.
template <typename T, bool isReuseSource = false, const SortConfig& config = DEFAULT_SORT_CONFIG>
inline void Sort(LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor,
                 const LocalTensor<uint8_t>& sharedTmpBuffer, const uint32_t calCount,
                 twin::Site site = twin::Site::Here()) {
  twin::SortWith<T, uint32_t, isReuseSource, config>(dstTensor, nullptr, srcTensor, nullptr, &sharedTmpBuffer,
                                                     calCount, site);
}
template <typename T, bool isReuseSource = false, const SortConfig& config = DEFAULT_SORT_CONFIG>
inline void Sort(LocalTensor<T>& dstTensor, const LocalTensor<T>& srcTensor, const uint32_t calCount,
                 twin::Site site = twin::Site::Here()) {
  twin::SortWith<T, uint32_t, isReuseSource, config>(dstTensor, nullptr, srcTensor, nullptr, nullptr, calCount, site);
}

}  // namespace AscendC

#endif
