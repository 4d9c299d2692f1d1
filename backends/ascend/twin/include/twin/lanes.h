// How a vector instruction walks its operands: `count` consecutive elements, or lanes picked by a mask in repeats that
// read and write 32-byte blocks at strides.
#pragma once
#include "twin/copy.h"

namespace twin {
inline namespace TWIN_ABI {

inline Lanes MaskLanes(uint64_t count, uint32_t perRepeat, uint32_t repeats) {
  Lanes lanes{{0, 0}, perRepeat, repeats, 0};
  lanes.mask[0] = count >= 64 ? ~0ull : (1ull << count) - 1;
  lanes.mask[1] = count >= 128 ? ~0ull : count > 64 ? (1ull << (count - 64)) - 1 : 0;
  return lanes;
}

inline uint32_t CheckRepeat(Call& call, const Repeat& repeat) {
  if (repeat.value < 0 || repeat.value > 255) {
    call.Problem(true, "repeat-limit", "repeat is %lld, the limit is 255", (long long)repeat.value);
    return 0;
  }
  return uint32_t(repeat.value);
}

// The lanes of a strided call: from the mask argument, or (setMask false) from the mask register as the kernel left it.
inline Lanes LanesOf(Call& call, uint64_t mask, const Repeat& repeat, uint32_t perRepeat, bool setMask) {
  uint32_t repeats = CheckRepeat(call, repeat);
  if (setMask) {
    if (mask > perRepeat)
      call.Problem(true, "mask-limit", "mask is %llu, a repeat has %u elements", (unsigned long long)mask, perRepeat);
    return MaskLanes(mask, perRepeat, repeats);
  }
  const Core& core = call.core;
  if (!core.counterMode) return Lanes{{core.mask[0], core.mask[1]}, perRepeat, repeats, 0};
  return Lanes{{0, 0}, perRepeat, uint32_t((core.mask[0] + perRepeat - 1) / perRepeat), core.mask[0]};
}

inline Lanes LanesOf(Call& call, const uint64_t* mask, const Repeat& repeat, uint32_t perRepeat, bool setMask) {
  if (!setMask) return LanesOf(call, uint64_t(0), repeat, perRepeat, false);
  Lanes lanes{{mask[0], perRepeat > 64 ? mask[1] : 0}, perRepeat, CheckRepeat(call, repeat), 0};
  return lanes;
}

// Calls f(repeat, lane, n) for runs of n active lanes, none of which crosses a multiple of `unit` lanes.
template <typename F>
inline void ForRuns(const Lanes& lanes, uint32_t unit, F f) {
  for (uint32_t r = 0; r < lanes.repeats; ++r) {
    for (uint32_t start = 0; start < lanes.perRepeat; start += unit) {
      uint32_t end = start + unit < lanes.perRepeat ? start + unit : lanes.perRepeat;
      for (uint32_t lane = start; lane < end;) {
        if (!lanes.Active(r, lane)) {
          ++lane;
          continue;
        }
        uint32_t n = 1;
        while (lane + n < end && lanes.Active(r, lane + n)) ++n;
        f(r, lane, n);
        lane += n;
      }
    }
  }
}

// Whether consecutive lanes are consecutive in memory over all repeats, so that one run covers the instruction.
inline bool Dense(const Lanes& lanes, const Walk& walk) {
  uint32_t blocks = lanes.perRepeat * walk.width / 32;
  return walk.blockStride == 1 && (lanes.repeats <= 1 || walk.repeatStride == blocks);
}
inline bool Full(const Lanes& lanes) {
  if (lanes.total) return true;
  uint64_t low = lanes.perRepeat >= 64 ? ~0ull : (1ull << lanes.perRepeat) - 1;
  bool upper = lanes.perRepeat <= 64 || lanes.mask[1] == ~0ull;
  return (lanes.mask[0] & low) == low && upper;
}
inline uint64_t TotalLanes(const Lanes& lanes) {
  return lanes.total ? lanes.total : uint64_t(lanes.repeats) * lanes.perRepeat;
}

// Runs `f(pointers..., n)` over all active lanes of one, two or three operands (destination first).
template <typename F>
inline void WalkLanes(const Core& core, const Lanes& lanes, const Walk& d, const Walk& a, F f) {
  uint8_t* ub = core.ub;
  if (Full(lanes) && Dense(lanes, d) && Dense(lanes, a)) return f(ub + d.base, ub + a.base, TotalLanes(lanes));
  uint32_t unit = 32 / (d.width > a.width ? d.width : a.width);
  ForRuns(lanes, unit, [&](uint32_t r, uint32_t lane, uint32_t n) { f(ub + d.At(r, lane), ub + a.At(r, lane), n); });
}

template <typename F>
inline void WalkLanes(const Core& core, const Lanes& lanes, const Walk& d, const Walk& a, const Walk& b, F f) {
  uint8_t* ub = core.ub;
  if (Full(lanes) && Dense(lanes, d) && Dense(lanes, a) && Dense(lanes, b))
    return f(ub + d.base, ub + a.base, ub + b.base, TotalLanes(lanes));
  uint32_t unit = 32 / (d.width > a.width ? d.width : a.width);
  ForRuns(lanes, unit, [&](uint32_t r, uint32_t lane, uint32_t n) {
    f(ub + d.At(r, lane), ub + a.At(r, lane), ub + b.At(r, lane), n);
  });
}

// Adds an operand walked this way to the call.
inline void Touch(Call& call, const char* name, bool write, const View& view, const Walk& walk, const Lanes& lanes) {
  if (walk.width > call.width) call.width = walk.width;
  call.UbLanes(name, write, walk.base, walk.width, lanes, walk.blockStride, walk.repeatStride, view.low, view.high, 32);
}
template <typename T>
inline void Touch(Call& call, const char* name, bool write, const AscendC::LocalTensor<T>& tensor, uint64_t count) {
  View view = tensor.View();
  if (sizeof(T) > call.width) call.width = sizeof(T);
  call.Ub(name, write, view.address, BytesOf<T>(count), view.low, view.high, 32);
}

inline uint32_t RepeatsOf(uint64_t bytes) { return uint32_t((bytes + 255) / 256); }

// Elements of a count form. With setMask false the count comes from the mask register in counter mode.
inline uint64_t CountOf(Call& call, int64_t count, bool setMask) {
  if (!setMask) {
    if (!call.core.counterMode) {
      call.Problem(true, "mask-limit", "isSetMask=false on a count form needs counter mode (SetMaskCount)");
      return 0;
    }
    return call.core.mask[0];
  }
  if (count < 0) {
    call.Problem(true, "count", "count is %lld", (long long)count);
    return 0;
  }
  return uint64_t(count);
}

inline void CheckDisjoint(Call& call, const char* name, uint64_t dst, uint64_t dstBytes, uint64_t src, uint64_t bytes) {
  if (dst < src + bytes && src < dst + dstBytes)
    call.Problem(false, "overlap", "dst [%llu, %llu) and %s [%llu, %llu) of UB overlap", (unsigned long long)dst,
                 (unsigned long long)(dst + dstBytes), name, (unsigned long long)src,
                 (unsigned long long)(src + bytes));
}

// The bytes that each repeat of an instruction touches: from `base` on, `step` from one repeat to the next.
struct Repeated {
  uint64_t base, step, bytes;
  uint64_t At(uint64_t repeat) const { return base + repeat * step; }
};

inline Repeated RepeatedOf(const Walk& walk, const Lanes& lanes) {
  uint32_t last = lanes.perRepeat;
  while (last && !lanes.total && !lanes.Active(0, last - 1)) --last;
  return {walk.base, walk.repeatStride * 32ull, last ? walk.At(0, last - 1) + walk.width - walk.base : 0};
}

// A result that is shorter than what it is made from may lie in its place, as long as no repeat reads what an earlier
// one wrote.
inline void CheckRepeats(Call& call, const char* name, uint32_t repeats, const Repeated& dst, const Repeated& src) {
  if (!repeats || !dst.bytes || !src.bytes) return;
  if (dst.At(repeats - 1) + dst.bytes <= src.base || src.At(repeats - 1) + src.bytes <= dst.base) return;
  for (uint32_t r = 0; r < repeats; ++r)
    for (uint32_t later = r + 1; later < repeats; ++later)
      if (dst.At(r) < src.At(later) + src.bytes && src.At(later) < dst.At(r) + dst.bytes)
        return call.Problem(false, "overlap", "repeat %u reads %s at UB [%llu, %llu), which repeat %u wrote", later,
                            name, (unsigned long long)src.At(later),
                            (unsigned long long)(src.At(later) + src.bytes), r);
}

// In-place is allowed where source and destination coincide; a partial overlap feeds results back into the operands.
inline void CheckOverlap(Call& call, const char* name, uint64_t dst, uint64_t dstBytes, uint64_t src,
                         uint64_t srcBytes) {
  if (dst != src && dst < src + srcBytes && src < dst + dstBytes)
    call.Problem(false, "overlap", "dst [%llu, %llu) and %s [%llu, %llu) of UB overlap without coinciding",
                 (unsigned long long)dst, (unsigned long long)(dst + dstBytes), name, (unsigned long long)src,
                 (unsigned long long)(src + srcBytes));
}

}  // inline namespace
}  // namespace twin
