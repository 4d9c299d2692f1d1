// Copies of slices between GM and UB: of each dimension some stretches, a stride apart. The device's API does it by a
// copy for each row, and so does the twin.
#pragma once
#include "twin/copy.h"

namespace AscendC {

// From startIndex to endIndex, both in it: stretches of burstLen 32-byte blocks (of 1 beyond the first dimension), and
// `stride` elements between them. shapeValue is the dimension's length.
struct SliceInfo {
  SliceInfo() {}
  SliceInfo(const uint32_t start, const uint32_t end, const uint32_t stride, const uint32_t burst,
            const uint32_t shape = 0)
      : startIndex(start), endIndex(end), stride(stride), burstLen(burst), shapeValue(shape) {}
  uint32_t startIndex = 0, endIndex = ONE_BLK_SIZE - 1, stride = 0, burstLen = ONE_BLK_SIZE, shapeValue = 0;
};
constexpr uint32_t K_MAX_DIM = 8;

}  // namespace AscendC

namespace twin {
inline namespace TWIN_ABI {

// One side of such a copy.
struct Slices {
  uint32_t dimensions;
  uint64_t burst[AscendC::K_MAX_DIM], count[AscendC::K_MAX_DIM];  // elements a stretch, stretches
  const AscendC::SliceInfo* info;

  // False, with a finding, where the dimensions do not fit their stretches.
  bool Check(Call& call, const char* name, uint32_t width) {
    for (uint32_t k = 0; k < dimensions; ++k) {
      const AscendC::SliceInfo& s = info[k];
      burst[k] = k ? 1 : uint64_t(s.burstLen) * 32 / width;
      const uint64_t length = uint64_t(s.endIndex) - s.startIndex + 1, step = burst[k] + s.stride;
      count[k] = step ? (length + s.stride) / step : 0;
      if (k && s.burstLen != 1)
        call.Problem(true, "copy-limit", "%s[%u].burstLen is %u, beyond the first dimension it must be 1", name, k,
                     s.burstLen);
      else if (s.startIndex > s.endIndex || s.endIndex > s.shapeValue || count[k] == 0 ||
               count[k] * step != length + s.stride)
        call.Problem(true, "copy-limit",
                     "%s[%u] from %u to %u of %u does not hold whole stretches of %llu elements, %u apart", name, k,
                     s.startIndex, s.endIndex, s.shapeValue, (unsigned long long)burst[k], s.stride);
      else continue;
      return false;
    }
    return true;
  }

  // Where the first stretch of a row starts, in elements: index[k] counts the stretches of dimension k.
  uint64_t Row(const uint64_t* index) const {
    uint64_t at = info[0].startIndex, elements = 1;
    for (uint32_t k = 1; k < dimensions; ++k) {
      elements *= info[k - 1].shapeValue;
      at += (info[k].startIndex + index[k] * (1ull + info[k].stride)) * elements;
    }
    return at;
  }
};

// Calls copy (CopyIn or CopyOut) for each row.
template <typename F>
inline void CopySlices(pipe_t pipe, Site site, const View& dst, const View& src, const AscendC::SliceInfo* dstInfo,
                       const AscendC::SliceInfo* srcInfo, uint32_t dimensions, uint32_t width, F copy) {
  Slices to{dimensions, {}, {}, dstInfo}, from{dimensions, {}, {}, srcInfo};
  {
    Call call("DataCopy", pipe, site);
    bool sound = dimensions >= 1 && dimensions <= AscendC::K_MAX_DIM;
    if (!sound) call.Problem(true, "copy-limit", "dimValue is %u, it must be from 1 to 8", dimensions);
    sound = sound && to.Check(call, "dstSliceInfo", width) && from.Check(call, "srcSliceInfo", width);
    for (uint32_t k = 0; sound && k < dimensions; ++k)
      if (to.count[k] != from.count[k] || to.burst[k] != from.burst[k]) {
        call.Problem(true, "copy-limit", "dimension %u has %llu stretches of %llu elements in dst, %llu of %llu in src", k,
                     (unsigned long long)to.count[k], (unsigned long long)to.burst[k],
                     (unsigned long long)from.count[k], (unsigned long long)from.burst[k]);
        sound = false;
      }
    if (!sound) return;
  }
  const uint64_t bytes = from.burst[0] * width;
  const Pieces pieces{uint32_t(from.count[0]), bytes, bytes, int64_t(bytes + uint64_t(srcInfo[0].stride) * width),
                      int64_t(bytes + uint64_t(dstInfo[0].stride) * width)};
  uint64_t index[AscendC::K_MAX_DIM] = {};
  for (uint32_t k = 0; k < dimensions;) {
    Call call("DataCopy", pipe, site);
    View fromRow = src, toRow = dst;
    fromRow.address += from.Row(index) * width;
    toRow.address += to.Row(index) * width;
    copy(call, fromRow, toRow, pieces);
    for (k = 1; k < dimensions && ++index[k] == from.count[k]; ++k) index[k] = 0;
  }
}

}  // inline namespace
}  // namespace twin

namespace AscendC {

template <typename T>
TWIN_OUTLINE void DataCopy(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const SliceInfo dstSliceInfo[],
                           const SliceInfo srcSliceInfo[], const uint32_t dimValue = 1,
                           twin::Site site = twin::Site::Here()) {
  twin::CopySlices(PIPE_MTE2, site, dst.View(), src.View(), dstSliceInfo, srcSliceInfo, dimValue, sizeof(T),
                   twin::CopyIn);
}

template <typename T>
TWIN_OUTLINE void DataCopy(const GlobalTensor<T>& dst, const LocalTensor<T>& src, const SliceInfo dstSliceInfo[],
                           const SliceInfo srcSliceInfo[], const uint32_t dimValue = 1,
                           twin::Site site = twin::Site::Here()) {
  twin::CopySlices(PIPE_MTE3, site, dst.View(), src.View(), dstSliceInfo, srcSliceInfo, dimValue, sizeof(T),
                   twin::CopyOut);
}

}  // namespace AscendC
