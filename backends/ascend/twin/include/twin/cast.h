// Cast: every pair of formats the products have, with the round modes each pair allows.
#pragma once
#include "twin/arith.h"
#if __NPU_ARCH__ == 3510
#include "twin/narrow.h"
#endif

namespace twin {
inline namespace TWIN_ABI {

using AscendC::RoundMode;

template <typename T> inline constexpr bool IsFour = OneOf<T, AscendC::fp4x2_e2m1_t, AscendC::fp4x2_e1m2_t>;
// Two numbers a byte. Cast counts numbers.
template <typename T> inline constexpr bool Packed = IsFour<T> || std::is_same<T, AscendC::int4b_t>::value;
template <typename T> inline constexpr uint64_t CastBytes(uint64_t count) {
  return Packed<T> ? (count + 1) / 2 : count * sizeof(T);
}

// Which modes a pair takes, as bits 1 << mode; 0 for a pair that does not exist.
template <typename To, typename From>
constexpr uint32_t CastModes() {
  constexpr uint32_t none = 1, five = 2 | 4 | 8 | 16 | 32, odd = 64;
  using I4 = AscendC::int4b_t;
  if constexpr (std::is_same<From, float>::value) {
    if constexpr (std::is_same<To, half>::value) return none | five | odd;
    if constexpr (OneOf<To, bfloat16_t, int16_t, int32_t, int64_t, float>) return five;
  }
  if constexpr (std::is_same<From, half>::value) {
    if constexpr (std::is_same<To, float>::value) return none;
    if constexpr (OneOf<To, I4, int8_t, uint8_t>) return none | five;
    if constexpr (OneOf<To, int16_t, int32_t>) return five;
  }
  if constexpr (std::is_same<From, bfloat16_t>::value) {
    if constexpr (std::is_same<To, float>::value) return none;
    if constexpr (std::is_same<To, int32_t>::value) return five;
  }
  if constexpr (std::is_same<From, int16_t>::value) {
    if constexpr (std::is_same<To, half>::value) return none | five;
    if constexpr (std::is_same<To, float>::value) return none;
  }
  if constexpr (std::is_same<From, int32_t>::value) {
    if constexpr (std::is_same<To, float>::value) return none | five;
    if constexpr (OneOf<To, int16_t, int64_t>) return none;
    if constexpr (std::is_same<To, half>::value) return none | five | odd;  // with SetDeqScale; the mode is not used
  }
  if constexpr (std::is_same<From, int64_t>::value) {
    if constexpr (std::is_same<To, int32_t>::value) return none;
    if constexpr (std::is_same<To, float>::value) return five;
  }
  if constexpr (OneOf<From, int8_t, uint8_t, I4> && std::is_same<To, half>::value) return none;
#if __NPU_ARCH__ == 3510
  using AscendC::fp8_e4m3fn_t;
  using AscendC::fp8_e5m2_t;
  using AscendC::hifloat8_t;
  constexpr uint32_t hybrid = 16 | 128;
  if constexpr (OneOf<From, half, float> && std::is_same<To, hifloat8_t>::value) return hybrid;
  if constexpr (std::is_same<From, hifloat8_t>::value && OneOf<To, half, float>) return none;
  if constexpr (std::is_same<From, bfloat16_t>::value && IsFour<To>) return five;
  if constexpr (IsFour<From> && std::is_same<To, bfloat16_t>::value) return none;
  if constexpr (std::is_same<From, I4>::value && OneOf<To, int16_t, bfloat16_t>) return none;
  if constexpr (std::is_same<From, int16_t>::value && std::is_same<To, I4>::value) return none;
  if constexpr (std::is_same<From, float>::value && OneOf<To, fp8_e4m3fn_t, fp8_e5m2_t>) return 2;
  if constexpr (OneOf<From, fp8_e4m3fn_t, fp8_e5m2_t> && std::is_same<To, float>::value) return none;
  if constexpr (std::is_same<From, half>::value && std::is_same<To, bfloat16_t>::value) return five;
  if constexpr (std::is_same<From, bfloat16_t>::value && std::is_same<To, half>::value) return five;
  if constexpr (std::is_same<From, int8_t>::value && OneOf<To, int16_t, int32_t>) return none;
  if constexpr (std::is_same<From, uint8_t>::value && OneOf<To, uint16_t, uint32_t>) return none;
  if constexpr (std::is_same<From, int16_t>::value && OneOf<To, uint8_t, int32_t, uint32_t>) return none;
  if constexpr (std::is_same<From, uint16_t>::value && OneOf<To, uint8_t, uint32_t>) return none;
  if constexpr (std::is_same<From, int32_t>::value && OneOf<To, uint8_t, uint16_t>) return none;
  if constexpr (std::is_same<From, uint32_t>::value && OneOf<To, uint8_t, int16_t, uint16_t>) return none;
#endif
  return 0;
}

inline const char* ModeName(RoundMode mode) {
  static const char* const names[] = {"CAST_NONE", "CAST_RINT", "CAST_FLOOR", "CAST_CEIL", "CAST_ROUND", "CAST_TRUNC",
                                      "CAST_ODD", "CAST_HYBRID"};
  return names[int(mode)];
}

// Whole numbers: rounded in double (every source format is exact there, int64 apart, which has its own path).
template <RoundMode mode, typename To, typename From>
TWIN_OUTLINE void CastRun(To* __restrict d, const From* a, uint64_t n, float scale) {
  if constexpr (std::is_same<To, half>::value && std::is_same<From, int32_t>::value) {
    for (uint64_t i = 0; i < n; ++i) Store(d[i], float(double(a[i]) * scale));
  } else if constexpr (std::is_same<To, AscendC::fp8_e4m3fn_t>::value) {
    for (uint64_t i = 0; i < n; ++i) d[i].bits = FloatToSmall(a[i], 4);
  } else if constexpr (std::is_same<To, AscendC::fp8_e5m2_t>::value) {
    for (uint64_t i = 0; i < n; ++i) d[i].bits = FloatToSmall(a[i], 5);
  } else if constexpr (std::is_same<From, AscendC::fp8_e4m3fn_t>::value) {
    for (uint64_t i = 0; i < n; ++i) d[i] = SmallToFloat(a[i].bits, 4);
  } else if constexpr (std::is_same<From, AscendC::fp8_e5m2_t>::value) {
    for (uint64_t i = 0; i < n; ++i) d[i] = SmallToFloat(a[i].bits, 5);
  } else if constexpr (std::is_same<To, half>::value && std::is_same<From, bfloat16_t>::value) {
    for (uint64_t i = 0; i < n; ++i) d[i].bits = FloatToHalf(Load(a[i]), mode);
  } else if constexpr (std::is_same<To, half>::value && OneOf<From, float, int16_t>) {
    if constexpr (mode == RoundMode::CAST_NONE || mode == RoundMode::CAST_RINT) {
      TWIN_IVDEP
      for (uint64_t i = 0; i < n; ++i) d[i].bits = FloatToHalf(float(a[i]));
    } else {
      for (uint64_t i = 0; i < n; ++i) d[i].bits = FloatToHalf(float(a[i]), mode);
    }
  } else if constexpr (std::is_same<To, half>::value) {  // 8-bit integers are exact
    TWIN_IVDEP
    for (uint64_t i = 0; i < n; ++i) d[i].bits = FloatToHalf(float(a[i]));
  } else if constexpr (std::is_same<To, bfloat16_t>::value) {
    if constexpr (mode == RoundMode::CAST_RINT) {
      TWIN_IVDEP
      for (uint64_t i = 0; i < n; ++i) d[i].bits = FloatToBfloat(Load(a[i]));
    } else {
      for (uint64_t i = 0; i < n; ++i) d[i].bits = FloatToBfloat(Load(a[i]), mode);
    }
  } else if constexpr (std::is_same<To, float>::value && OneOf<From, half, bfloat16_t>) {
    TWIN_IVDEP
    for (uint64_t i = 0; i < n; ++i) d[i] = Load(a[i]);
  } else if constexpr (std::is_same<To, float>::value && std::is_same<From, float>::value) {
    for (uint64_t i = 0; i < n; ++i) d[i] = float(RoundWhole(a[i], mode));
  } else if constexpr (std::is_same<To, float>::value) {  // integers to float
    if constexpr (sizeof(From) <= 4 && (mode == RoundMode::CAST_NONE || mode == RoundMode::CAST_RINT)) {
      TWIN_IVDEP
      for (uint64_t i = 0; i < n; ++i) d[i] = float(a[i]);
    } else {
      for (uint64_t i = 0; i < n; ++i) {
        uint64_t magnitude = a[i] < 0 ? 0 - uint64_t(a[i]) : uint64_t(a[i]);
        int drop = 0;
        while (magnitude >> (24 + drop)) ++drop;
        uint64_t unit = 1ull << drop, q = magnitude >> drop, r = magnitude & (unit - 1);
        // RoundMagnitude wants 32 bits: only the halfway comparison matters, so scale the remainder to quarters.
        uint32_t quarters = r == 0 ? 0 : r * 2 < unit ? 1 : r * 2 == unit ? 2 : 3;
        double rounded = double(RoundMagnitude(uint32_t(q), quarters, 4, a[i] < 0, mode)) * double(unit);
        d[i] = float(a[i] < 0 ? -rounded : rounded);
      }
    }
  } else if constexpr (std::is_integral<From>::value) {  // between integers: saturate
    using Limits = std::numeric_limits<To>;
    for (uint64_t i = 0; i < n; ++i) {
      if constexpr (sizeof(To) == 8) d[i] = To(a[i]);
      else d[i] = To(std::min<int64_t>(std::max<int64_t>(a[i], Limits::min()), Limits::max()));
    }
  } else {  // floats to integers
    for (uint64_t i = 0; i < n; ++i) d[i] = Saturate<To>(RoundWhole(double(Load(a[i])), mode));
  }
}

// int4b_t: `lane` counts nibbles from the tensor's start.
inline int32_t LoadNibble(const uint8_t* p, uint64_t i) {
  int32_t nibble = (p[i / 2] >> (i % 2 * 4)) & 15;
  return nibble >= 8 ? nibble - 16 : nibble;
}
inline void StoreNibble(uint8_t* p, uint64_t i, int32_t value) {
  uint32_t shift = i % 2 * 4;
  p[i / 2] = uint8_t((p[i / 2] & ~(15u << shift)) | (uint32_t(value & 15) << shift));
}

template <RoundMode mode, typename From>
TWIN_OUTLINE void CastRun(AscendC::int4b_t* d, const From* a, uint64_t n, float) {
  for (uint64_t i = 0; i < n; ++i) {
    double x = RoundWhole(double(Load(a[i])), mode);
    StoreNibble(&d->bits, i, x != x ? 0 : x < -8 ? -8 : x > 7 ? 7 : int32_t(x));
  }
}
template <RoundMode mode, typename To>
TWIN_OUTLINE void CastRun(To* d, const AscendC::int4b_t* a, uint64_t n, float) {
  for (uint64_t i = 0; i < n; ++i) Store(d[i], Compute<To>(LoadNibble(&a->bits, i)));
}

#if __NPU_ARCH__ == 3510
template <RoundMode mode, typename From>
TWIN_OUTLINE void CastRun(AscendC::hifloat8_t* d, const From* a, uint64_t n, float) {
  constexpr bool hybrid = mode == RoundMode::CAST_HYBRID;
  for (uint64_t i = 0; i < n; ++i) d[i].bits = FloatToHifloat(Load(a[i]), hybrid, sizeof(From) == 4 ? 14 : 2);
}
template <RoundMode mode, typename To>
TWIN_OUTLINE void CastRun(To* d, const AscendC::hifloat8_t* a, uint64_t n, float) {
  for (uint64_t i = 0; i < n; ++i) Store(d[i], HifloatToFloat(a[i].bits));
}
template <RoundMode mode, typename To>
TWIN_OUTLINE std::enable_if_t<IsFour<To>> CastRun(To* d, const bfloat16_t* a, uint64_t n, float) {
  for (uint64_t i = 0; i < n; ++i) StoreNibble(&d->bits, i, FloatToFour<To>(Load(a[i]), mode));
}
template <RoundMode mode, typename From>
TWIN_OUTLINE std::enable_if_t<IsFour<From>> CastRun(bfloat16_t* d, const From* a, uint64_t n, float) {
  for (uint64_t i = 0; i < n; ++i) Store(d[i], FourToFloat<From>(uint8_t(LoadNibble(&a->bits, i) & 15)));
}
#endif

template <typename To, typename From>
TWIN_OUTLINE void CastMode(RoundMode mode, To* d, const From* a, uint64_t n, float scale) {
  constexpr uint32_t modes = CastModes<To, From>();
  switch (mode) {
    case RoundMode::CAST_NONE: if constexpr (modes & 1) CastRun<RoundMode::CAST_NONE>(d, a, n, scale); break;
    case RoundMode::CAST_RINT: if constexpr (modes & 2) CastRun<RoundMode::CAST_RINT>(d, a, n, scale); break;
    case RoundMode::CAST_FLOOR: if constexpr (modes & 4) CastRun<RoundMode::CAST_FLOOR>(d, a, n, scale); break;
    case RoundMode::CAST_CEIL: if constexpr (modes & 8) CastRun<RoundMode::CAST_CEIL>(d, a, n, scale); break;
    case RoundMode::CAST_ROUND: if constexpr (modes & 16) CastRun<RoundMode::CAST_ROUND>(d, a, n, scale); break;
    case RoundMode::CAST_TRUNC: if constexpr (modes & 32) CastRun<RoundMode::CAST_TRUNC>(d, a, n, scale); break;
    case RoundMode::CAST_ODD: if constexpr (modes & 64) CastRun<RoundMode::CAST_ODD>(d, a, n, scale); break;
#if __NPU_ARCH__ == 3510
    case RoundMode::CAST_HYBRID: if constexpr (modes & 128) CastRun<RoundMode::CAST_HYBRID>(d, a, n, scale); break;
#endif
  }
}

// Source and destination may overlap as long as no repeat reads what an earlier one wrote: narrowing in place, or
// widening from the end of the destination.
inline void CheckCastOverlap(Call& call, uint64_t dst, uint64_t to, uint64_t src, uint64_t from) {
  if (dst + to <= src || src + from <= dst) return;
  uint64_t wide = to > from ? to : from, repeats = (wide + 255) / 256;
  for (uint64_t r = 1; r < repeats; ++r) {
    uint64_t written = dst + 256 * r * to / wide, unread = src + 256 * r * from / wide;
    if (written > unread && dst < src + from) {
      call.Problem(false, "overlap", "dst [%llu, %llu) overwrites src [%llu, %llu) of UB before it is read",
                   (unsigned long long)dst, (unsigned long long)(dst + to), (unsigned long long)src,
                   (unsigned long long)(src + from));
      return;
    }
  }
}

template <typename T>
inline void TouchBytes(Call& call, const char* name, bool write, const Local<T>& tensor, uint64_t bytes) {
  View view = tensor.View();
  if (sizeof(T) > call.width) call.width = sizeof(T);
  call.Ub(name, write, view.address, bytes, view.low, view.high, 32);
}

template <typename To, typename From>
inline void CheckCast(Call& call, RoundMode mode) {
  if (!((CastModes<To, From>() >> uint32_t(mode)) & 1))
    call.Problem(true, "cast-mode", "%s is not a round mode of this pair of types", ModeName(mode));
  if (std::is_same<To, half>::value && std::is_same<From, int32_t>::value && !call.core.deqScaleSet)
    call.Problem(true, "cast-mode", "int32_t to half multiplies by the dequantization scale: call SetDeqScale first");
}

}  // inline namespace
}  // namespace twin

namespace AscendC {

template <typename T, typename U>
TWIN_OUTLINE void Cast(const LocalTensor<T>& dst, const LocalTensor<U>& src, const RoundMode& roundMode,
                 const uint32_t count, twin::Site site = twin::Site::Here()) {
  static_assert(twin::CastModes<T, U>() != 0, "Cast does not convert between these types");
  twin::Call call("Cast", PIPE_V, site);
  twin::CheckCast<T, U>(call, roundMode);
  uint64_t d = dst.View().address, a = src.View().address;
  uint64_t to = twin::CastBytes<T>(count), from = twin::CastBytes<U>(count);
  if ((twin::Packed<T> || twin::Packed<U>) && count % 2)
    call.Problem(true, "count", "count is %u, and two 4-bit numbers share a byte: it must be even", count);
  twin::TouchBytes(call, "src", false, src, from);
  twin::TouchBytes(call, "dst", true, dst, to);
  twin::CheckCastOverlap(call, d, to, a, from);
  if (!call.Issue(twin::RepeatsOf(to > from ? to : from))) return;
  const uint8_t* read = call.core.ub + a;
  if (d < a + from && a < d + to)  // a repeat reads all of its source before it writes
    read = static_cast<uint8_t*>(std::memcpy(twin::ScratchBytes(from), read, from));
  twin::CastMode(roundMode, twin::As<T>(call.core.ub + d), reinterpret_cast<const U*>(read), count, call.core.deqScale);
}

}  // namespace AscendC

namespace twin {
inline namespace TWIN_ABI {

// One operand of 4-bit numbers: blocks of 64 of them, against blocks of 16 on the other side. Pairs that share a byte go
// together.
template <typename T, typename U, typename M>
TWIN_OUTLINE void CastPairs(Call& call, const Local<T>& dst, const Local<U>& src, RoundMode mode, M mask,
                            const Repeat& repeat, const AscendC::UnaryRepeatParams& p, bool setMask) {
  Lanes lanes = LanesOf(call, mask, repeat, 128, setMask);
  auto at = [](bool packed, uint64_t base, uint32_t block, uint32_t rep, uint32_t r, uint32_t lane) {
    const uint32_t perBlock = packed ? 64 : 16;
    return base + (uint64_t(r) * rep + uint64_t(lane / perBlock) * block) * 32 +
           (packed ? lane % 64 / 2 : lane % 16 * 2);
  };
  auto to = [&](uint32_t r, uint32_t lane) {
    return at(Packed<T>, dst.View().address, p.dstBlkStride, p.dstRepStride, r, lane);
  };
  auto from = [&](uint32_t r, uint32_t lane) {
    return at(Packed<U>, src.View().address, p.srcBlkStride, p.srcRepStride, r, lane);
  };
  for (uint32_t lane = 0; lane < 128 && lanes.repeats; lane += 2)
    if (lanes.Active(0, lane) != lanes.Active(0, lane + 1)) {
      call.Problem(true, "mask-limit", "lanes %u and %u share a byte of 4-bit numbers: the mask takes both or neither",
                   lane, lane + 1);
      break;
    }
  TouchBytes(call, "src", false, src, 0);
  ForRuns(lanes, 16, [&](uint32_t r, uint32_t lane, uint32_t n) { call.Extend(from(r, lane), CastBytes<U>(n)); });
  TouchBytes(call, "dst", true, dst, 0);
  ForRuns(lanes, 16, [&](uint32_t r, uint32_t lane, uint32_t n) { call.Extend(to(r, lane), CastBytes<T>(n)); });
  if (!call.Issue(lanes.repeats)) return;
  uint8_t* ub = call.core.ub;
  ForRuns(lanes, 16, [&](uint32_t r, uint32_t lane, uint32_t n) {
    CastMode(mode, As<T>(ub + to(r, lane)), As<U>(ub + from(r, lane)), n, 0.0f);
  });
}

template <typename T, typename U, typename M>
TWIN_OUTLINE void CastLanes(const Local<T>& dst, const Local<U>& src, RoundMode mode, M mask, const Repeat& repeat,
                      const AscendC::UnaryRepeatParams& p, bool setMask, Site site) {
  static_assert(CastModes<T, U>() != 0, "Cast does not convert between these types");
  Call call("Cast", PIPE_V, site);
  CheckCast<T, U>(call, mode);
  if constexpr (Packed<T> || Packed<U>) return CastPairs(call, dst, src, mode, mask, repeat, p, setMask);
  constexpr uint32_t wide = sizeof(T) > sizeof(U) ? sizeof(T) : sizeof(U);
  Lanes lanes = LanesOf(call, mask, repeat, 256 / wide, setMask);
  Walk d{dst.View().address, sizeof(T), p.dstBlkStride, p.dstRepStride};
  Walk a{src.View().address, sizeof(U), p.srcBlkStride, p.srcRepStride};
  Touch(call, "src", false, src.View(), a, lanes);
  Touch(call, "dst", true, dst.View(), d, lanes);
  if (!call.Issue(lanes.repeats)) return;
  float scale = call.core.deqScale;
  WalkLanes(call.core, lanes, d, a,
            [=](uint8_t* x, uint8_t* y, uint64_t n) { CastMode(mode, As<T>(x), As<U>(y), n, scale); });
}

}  // inline namespace
}  // namespace twin

namespace AscendC {

template <typename T, typename U, bool isSetMask = true>
TWIN_OUTLINE void Cast(const LocalTensor<T>& dst, const LocalTensor<U>& src, const RoundMode& roundMode,
                 const uint64_t mask[], const twin::Repeat repeat, const UnaryRepeatParams& params,
                 twin::Site site = twin::Site::Here()) {
  twin::CastLanes(dst, src, roundMode, mask, repeat, params, isSetMask, site);
}
template <typename T, typename U, bool isSetMask = true>
TWIN_OUTLINE void Cast(const LocalTensor<T>& dst, const LocalTensor<U>& src, const RoundMode& roundMode,
                       const uint64_t mask, const twin::Repeat repeat, const UnaryRepeatParams& params,
                       twin::Site site = twin::Site::Here()) {
  twin::CastLanes(dst, src, roundMode, mask, repeat, params, isSetMask, site);
}

}  // namespace AscendC
