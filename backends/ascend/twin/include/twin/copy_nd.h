// Copies of several dimensions from GM to UB (950): each dimension a loop with strides of its own on either side, and
// paddings of its own in UB. So one copy transposes, broadcasts, slices and pads.
//
// They read GM through a cache of the core's, which sees no later writes until NdDmaDci. Source: the API reference on
// DataCopy (NDDMA) and NdDmaDci.
#pragma once
#include "twin/copy.h"

#if __NPU_ARCH__ == 3510

namespace AscendC {

// How paddings are filled: with the nearest element of the dimension, or with a constant. The sizes are those of all
// dimensions, or unsetPad where each has its own.
struct NdDmaConfig {
  static constexpr uint16_t unsetPad = 0xffff;
  bool isNearestValueMode = false;
  uint16_t loopLpSize = unsetPad, loopRpSize = unsetPad;
  bool ascOptimize = false;  // reserved
};
inline constexpr NdDmaConfig kDefaultNdDmaConfig = {false, NdDmaConfig::unsetPad, NdDmaConfig::unsetPad, false};

// By dimension, the innermost first: strides in elements from start to start, elements without paddings, paddings.
template <uint8_t dim>
struct MultiCopyLoopInfo {
  static_assert(dim >= 1 && dim <= 5, "DataCopy of several dimensions takes 1 to 5");
  uint64_t loopSrcStride[dim] = {0};
  uint32_t loopDstStride[dim] = {0}, loopSize[dim] = {0};
  uint8_t loopLpSize[dim] = {0}, loopRpSize[dim] = {0};
};

template <typename T, uint8_t dim>
struct MultiCopyParams {
  MultiCopyLoopInfo<dim> loopInfo;
  T constantValue;
};

// The older names of the first two, the newer ones of the others.
using MultiCopyConfig = NdDmaConfig;
inline constexpr MultiCopyConfig kDefaultMultiCopyConfig = kDefaultNdDmaConfig;
template <uint8_t dim>
using NdDmaLoopInfo = MultiCopyLoopInfo<dim>;
template <typename T, uint8_t dim>
using NdDmaParams = MultiCopyParams<T, dim>;

}  // namespace AscendC

namespace twin {
inline namespace TWIN_ABI {

constexpr int kNdLoops = 5;

// The loops of such a copy, the innermost first; strides in bytes.
struct NdLoops {
  struct Loop {
    uint64_t from = 0, to = 0;
    uint32_t left = 0, size = 1, right = 0;
    uint32_t Extent() const { return left + size + right; }
  };
  Loop loops[kNdLoops];

  // Calls element(bytes from src on, bytes from dst on, whether it is none of a padding) for each element of dst. That
  // of a padding comes with the element nearest to it.
  template <typename F>
  void Each(F element) const {
    uint32_t index[kNdLoops] = {};
    for (int k = 0; k < kNdLoops;) {
      uint64_t from = 0, to = 0;
      bool inside = true;
      for (k = 0; k < kNdLoops; ++k) {
        const Loop& l = loops[k];
        const int64_t at = int64_t(index[k]) - l.left, nearest = std::clamp<int64_t>(at, 0, int64_t(l.size) - 1);
        inside = inside && at == nearest;
        from += uint64_t(nearest) * l.from;
        to += uint64_t(index[k]) * l.to;
      }
      element(from, to, inside);
      for (k = 0; k < kNdLoops && ++index[k] == loops[k].Extent(); ++k) index[k] = 0;
    }
  }

  // What is read: no paddings, and an element that is broadcast once.
  NdLoops Source() const {
    NdLoops source = *this;
    for (Loop& l : source.loops) {
      l.left = l.right = 0;
      if (l.from == 0) l.size = 1;
    }
    return source;
  }
};

// Whether the loops may write as they do: what one dimension spans lies between two steps of the next where their strides
// ascend, and no byte is written twice where they do not.
inline void CheckNdOverlap(Call& call, const NdLoops& nd, uint64_t hull, uint32_t width) {
  bool ascending = true, apart = true;
  uint64_t span = 0, before = 0;
  for (const NdLoops::Loop& l : nd.loops) {
    if (l.Extent() == 1) continue;
    ascending = ascending && l.to > before;
    apart = apart && l.to > span;
    before = l.to;
    span += (l.Extent() - 1) * l.to;
  }
  if (ascending && !apart)
    call.Problem(false, "overlap", "dst's strides ascend, and what an inner dimension spans reaches into an outer one's step");
  if (ascending) return;
  uint8_t* written = ScratchBytes(hull);
  std::memset(written, 0, hull);
  uint64_t twice = ~0ull;
  nd.Each([&](uint64_t, uint64_t to, bool) {
    if (written[to]++) twice = std::min(twice, to);
  });
  if (twice != ~0ull)
    call.Problem(false, "overlap", "element %llu of dst is written more than once", (unsigned long long)(twice / width));
}

// Checks the limits of a loop; false where it cannot be followed.
inline bool CheckNdLoop(Call& call, int k, uint64_t srcStride, uint32_t dstStride, uint32_t size) {
  if (size < 1 || size >> 20)
    call.Problem(true, "copy-limit", "loopSize[%d] is %u, it must be from 1 to 2^20 - 1", k, size);
  else if (srcStride >> 40)
    call.Problem(true, "copy-limit", "loopSrcStride[%d] is %llu, the limit is 2^40 - 1", k,
                 (unsigned long long)srcStride);
  else if (dstStride >> 20)
    call.Problem(true, "copy-limit", "loopDstStride[%d] is %u, the limit is 2^20 - 1", k, dstStride);
  else return true;
  return false;
}

// The copy itself, of elements of `width` bytes; `constant` fills up paddings, or null where the nearest element does.
TWIN_OUTLINE inline void NdCopy(Call& call, const View& to, const View& from, const NdLoops& nd, uint32_t width,
                                const void* constant) {
  uint64_t hull = width, elements = 1;
  for (const NdLoops::Loop& l : nd.loops) {
    hull += (l.Extent() - 1) * l.to;
    elements = std::min<uint64_t>(elements * l.Extent(), 1 << 20);
  }
  call.Gm("src", false, from.address, 0, 0, 0, from.low, from.high);
  if (hull > call.core.ubRoom) {
    call.Ub("dst", true, to.address, hull, to.low, to.high, 1);
    return (void)call.Issue();
  }
  if (elements * width > hull) {
    call.Problem(true, "overlap", "more elements than the %llu that dst's strides span",
                 (unsigned long long)(hull / width));
    return (void)call.Issue();
  }
  nd.Source().Each([&](uint64_t at, uint64_t, bool) { call.Extend(from.address + at, width); });
  call.Ub("dst", true, to.address, 0, to.low, to.high, 1);
  nd.Each([&](uint64_t, uint64_t at, bool) { call.Extend(to.address + at, width); });
  CheckNdOverlap(call, nd, hull, width);
  if (!call.Issue()) return;
  nd.Each([&](uint64_t fromAt, uint64_t toAt, bool inside) {
    const void* nearest = reinterpret_cast<const void*>(from.address + fromAt);
    std::memcpy(call.core.ub + to.address + toAt, inside || !constant ? nearest : constant, width);
  });
}

}  // inline namespace
}  // namespace twin

namespace AscendC {

template <typename T, uint8_t dim, const NdDmaConfig& config = kDefaultNdDmaConfig>
inline void DataCopy(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const MultiCopyParams<T, dim>& params,
                     twin::Site site = twin::Site::Here()) {
  constexpr bool ownLeft = config.loopLpSize == NdDmaConfig::unsetPad;
  constexpr bool ownRight = config.loopRpSize == NdDmaConfig::unsetPad;
  static_assert(config.loopLpSize <= 255 || ownLeft, "loopLpSize is at most 255");
  static_assert(config.loopRpSize <= 255 || ownRight, "loopRpSize is at most 255");
  static_assert(sizeof(T) < 8 || !config.isNearestValueMode, "64-bit types are padded with a constant only");
  static_assert(!std::is_same<T, int4b_t>::value, "DataCopy of several dimensions copies whole bytes");
  twin::Call call("DataCopy", PIPE_MTE2, site);
  call.throughNdCache = true;
  twin::NdLoops nd;
  bool sound = true;
  const MultiCopyLoopInfo<dim>& info = params.loopInfo;
  for (int k = 0; k < dim; ++k) {
    sound = twin::CheckNdLoop(call, k, info.loopSrcStride[k], info.loopDstStride[k], info.loopSize[k]) && sound;
    nd.loops[k] = {info.loopSrcStride[k] * sizeof(T), info.loopDstStride[k] * sizeof(T),
                   ownLeft ? info.loopLpSize[k] : config.loopLpSize, info.loopSize[k],
                   ownRight ? info.loopRpSize[k] : config.loopRpSize};
  }
  if (!sound) return (void)call.Issue();
  if constexpr (sizeof(T) == 8) {
    if (twin::BitCast<uint64_t>(params.constantValue) != 0)
      call.Problem(false, "copy-limit", "the padding value of a 64-bit type can only be 0");
  }
  twin::NdCopy(call, dst.View(), src.View(), nd, sizeof(T), config.isNearestValueMode ? nullptr : &params.constantValue);
}

// Forgets what the cache of these copies holds.
inline void NdDmaDci() { twin::ForgetNdCache(); }

}  // namespace AscendC
#endif
