// half and bfloat16_t, and the conversions between number formats.
//
// Rounding follows the API reference's page on precision conversion: to nearest even, towards -inf, +inf or zero, half
// away from zero, and to odd. Float to a narrower float overflows to infinity (the default INF/NaN mode of 910B); float
// to integer and integer to narrower integer saturate; NaN becomes 0.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include "twin/macros.h"

namespace AscendC {
enum class RoundMode {
  CAST_NONE = 0,  // exact where it can be, else like CAST_RINT
  CAST_RINT, CAST_FLOOR, CAST_CEIL, CAST_ROUND, CAST_TRUNC, CAST_ODD,
#if __NPU_ARCH__ == 3510
  CAST_HYBRID  // to hifloat8_t: away from zero around 1, elsewhere by a threshold from the operand's own last bits
#endif
};
}

namespace twin {
inline namespace TWIN_ABI {

// Constant where the compiler can, for kernels with constants of type half.
#if defined(__has_builtin)
#if __has_builtin(__builtin_bit_cast)
#define TWIN_BIT_CAST
#endif
#endif
#ifdef TWIN_BIT_CAST
#define TWIN_CONSTEXPR constexpr
template <typename To, typename From>
constexpr To BitCast(const From& from) { return __builtin_bit_cast(To, from); }
#else
#define TWIN_CONSTEXPR
template <typename To, typename From>
inline To BitCast(const From& from) {
  static_assert(sizeof(To) == sizeof(From), "BitCast needs equal sizes");
  To to;
  std::memcpy(&to, &from, sizeof(To));
  return to;
}
#endif

// Branch-free, so that loops over these vectorise. Denormal halves are built by an integer conversion, because block
// threads flush denormal floats (see runtime/launch.h).
inline TWIN_CONSTEXPR float HalfToFloat(uint16_t h) {
  uint32_t sign = uint32_t(h & 0x8000) << 16, exponent = h & 0x7c00, mantissa = h & 0x3ff;
  uint32_t normal = (uint32_t(h & 0x7fff) << 13) + (112u << 23);
  uint32_t special = 0x7f800000u | (mantissa << 13);
  uint32_t small = BitCast<uint32_t>(float(int32_t(mantissa)) * 5.9604644775390625e-08f);  // 2^-24
  return BitCast<float>(sign | (exponent == 0 ? small : exponent == 0x7c00 ? special : normal));
}

inline TWIN_CONSTEXPR uint16_t FloatToHalf(float f) {  // to nearest even
  uint32_t bits = BitCast<uint32_t>(f), sign = (bits >> 16) & 0x8000, a = bits & 0x7fffffff;
  uint32_t normal = (a + 0xfff + ((a >> 13) & 1) - (112u << 23)) >> 13;
  uint32_t small = BitCast<uint32_t>(BitCast<float>(a) + 0.5f) - 0x3f000000u;  // 0.5f counts in steps of 2^-24
  uint32_t big = a > 0x7f800000u ? 0x7e00u : 0x7c00u;
  return uint16_t(sign | (a >= 0x477ff000u ? big : a < 0x38800000u ? small : normal));
}

inline TWIN_CONSTEXPR float BfloatToFloat(uint16_t b) { return BitCast<float>(uint32_t(b) << 16); }

inline TWIN_CONSTEXPR uint16_t FloatToBfloat(float f) {  // to nearest even
  uint32_t bits = BitCast<uint32_t>(f);
  uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  return uint16_t((bits & 0x7fffffff) > 0x7f800000u ? ((bits >> 16) | 0x40) : rounded);
}

// An 8-bit float of `exponentBits`, with the bias of IEEE 754 and denormals.
inline float SmallToFloat(uint8_t bits, int exponentBits) {
  const int mantissaBits = 7 - exponentBits, bias = (1 << (exponentBits - 1)) - 1;
  const int exponent = (bits & 0x7f) >> mantissaBits, mantissa = bits & ((1 << mantissaBits) - 1);
  float value;
  using Limits = std::numeric_limits<float>;
  if (exponentBits == 5 && exponent == 31) value = mantissa ? Limits::quiet_NaN() : Limits::infinity();
  else if (exponentBits == 4 && (bits & 0x7f) == 0x7f) value = Limits::quiet_NaN();
  else if (exponent == 0) value = std::ldexp(float(mantissa), 1 - bias - mantissaBits);
  else value = std::ldexp(float(mantissa | (1 << mantissaBits)), exponent - bias - mantissaBits);
  return bits & 0x80 ? -value : value;
}

// To nearest even; beyond the largest finite number it saturates, and NaN stays NaN.
inline uint8_t FloatToSmall(float f, int exponentBits) {
  const int mantissaBits = 7 - exponentBits, bias = (1 << (exponentBits - 1)) - 1;
  const uint8_t sign = std::signbit(f) ? 0x80 : 0, largest = exponentBits == 5 ? 0x7b : 0x7e;
  if (f != f) return sign | 0x7f;
  const double x = std::fabs(double(f));
  if (x == 0) return sign;
  if (x > 1e6) return sign | largest;
  int exponent = std::max(std::ilogb(x), 1 - bias);
  const int units = int(std::nearbyint(std::ldexp(x, mantissaBits - exponent)));  // of the last place
  // Adding, not joining: rounding up may carry into the exponent, and denormals have none.
  const int bits = ((exponent + bias - 1) << mantissaBits) + units;
  return sign | uint8_t(bits > largest ? largest : bits);
}

// `quotient` with `remainder` dropped from it (of `unit` in all), rounded as `mode` says.
inline uint32_t RoundMagnitude(uint32_t quotient, uint32_t remainder, uint32_t unit, bool negative,
                               AscendC::RoundMode mode) {
  using AscendC::RoundMode;
  uint32_t half = unit >> 1;
  switch (mode) {
    case RoundMode::CAST_FLOOR: return quotient + (negative && remainder != 0);
    case RoundMode::CAST_CEIL: return quotient + (!negative && remainder != 0);
    case RoundMode::CAST_ROUND: return quotient + (remainder >= half);
    case RoundMode::CAST_TRUNC: return quotient;
    case RoundMode::CAST_ODD: return quotient | uint32_t(remainder != 0);
    default: return quotient + (remainder > half || (remainder == half && (quotient & 1)));
  }
}

inline uint16_t FloatToHalf(float f, AscendC::RoundMode mode) {
  uint32_t bits = BitCast<uint32_t>(f), sign = (bits >> 16) & 0x8000, a = bits & 0x7fffffff;
  if (a >= 0x7f800000u) return uint16_t(sign | (a > 0x7f800000u ? 0x7e00 : 0x7c00));
  uint32_t exponent = a >> 23, q;
  if (exponent >= 113) {  // normal halves: drop 13 bits of the mantissa
    uint32_t shifted = a - (112u << 23);
    q = RoundMagnitude(shifted >> 13, shifted & 0x1fff, 0x2000, sign != 0, mode);
  } else if (exponent >= 95) {  // denormal halves, in steps of 2^-24; below, all bits are cut off
    uint32_t mantissa = (a & 0x7fffff) | 0x800000, drop = 126 - exponent;
    q = RoundMagnitude(mantissa >> drop, mantissa & ((1u << drop) - 1), 1u << drop, sign != 0, mode);
  } else {  // far below half of the least denormal
    q = RoundMagnitude(0, a != 0, 4, sign != 0, mode);
  }
  if (q > 0x7c00) q = 0x7c00;
  return uint16_t(sign | q);
}

inline uint16_t FloatToBfloat(float f, AscendC::RoundMode mode) {
  uint32_t bits = BitCast<uint32_t>(f), sign = (bits >> 16) & 0x8000, a = bits & 0x7fffffff;
  if (a >= 0x7f800000u) return uint16_t(sign | (a > 0x7f800000u ? 0x7fc0 : 0x7f80));
  return uint16_t(sign | RoundMagnitude(a >> 16, a & 0xffff, 0x10000, sign != 0, mode));
}

// A real number rounded to a whole one.
inline double RoundWhole(double x, AscendC::RoundMode mode) {
  using AscendC::RoundMode;
  switch (mode) {
    case RoundMode::CAST_FLOOR: return std::floor(x);
    case RoundMode::CAST_CEIL: return std::ceil(x);
    case RoundMode::CAST_ROUND: return std::round(x);
    case RoundMode::CAST_TRUNC: return std::trunc(x);
    default: return std::nearbyint(x);
  }
}

template <typename Int>
inline Int Saturate(double x) {
  using Limits = std::numeric_limits<Int>;
  if (x != x) return 0;
  if (x <= double(Limits::min())) return Limits::min();
  if (x >= double(Limits::max())) return Limits::max();
  return Int(x);
}

}  // inline namespace
}  // namespace twin

// The 16-bit IEEE float. Arithmetic rounds after each operation, as the device does.
struct half {
  uint16_t bits;
  half() = default;
  template <typename T, typename = std::enable_if_t<std::is_arithmetic<T>::value>>
  TWIN_CONSTEXPR half(T value) : bits(twin::FloatToHalf(float(value))) {}
  TWIN_CONSTEXPR operator float() const { return twin::HalfToFloat(bits); }
};

using float16_t = half;
using float32_t = float;

// Both operands must be half: mixed expressions go through float, as the usual conversions do on the device.
#define TWIN_HALF_OP(op)                                                                                               \
  template <typename A, typename B,                                                                                    \
            typename = std::enable_if_t<std::is_same<A, half>::value && std::is_same<B, half>::value>>                 \
  inline TWIN_CONSTEXPR half operator op(A a, B b) {                                                                   \
    return half(float(a) op float(b));                                                                                 \
  }
TWIN_HALF_OP(+)
TWIN_HALF_OP(-)
TWIN_HALF_OP(*)
TWIN_HALF_OP(/)
#undef TWIN_HALF_OP
inline half operator-(half a) {
  half result;
  result.bits = uint16_t(a.bits ^ 0x8000);
  return result;
}

// The upper half of a float. 910B has no arithmetic on it, scalar or vector: it is loaded, cast (ToFloat) and stored.
struct bfloat16_t {
  uint16_t bits;
  bfloat16_t() = default;
  template <typename T, typename = std::enable_if_t<std::is_arithmetic<T>::value>>
  TWIN_CONSTEXPR bfloat16_t(T value) : bits(twin::FloatToBfloat(float(value))) {}
#if __NPU_ARCH__ == 3510
  operator float() const { return twin::BfloatToFloat(bits); }
#endif
};

namespace AscendC {
inline float ToFloat(const bfloat16_t& value) { return twin::BfloatToFloat(value.bits); }
inline bfloat16_t ToBfloat16(const float& value) {
  bfloat16_t result;
  result.bits = twin::FloatToBfloat(value);
  return result;
}

// The narrow floats of 950; see narrow.h.
struct fp8_e4m3fn_t {
  uint8_t bits;
};
struct fp8_e5m2_t {
  uint8_t bits;
};
struct fp8_e8m0_t {  // a power of two, for scales
  uint8_t bits;
};
struct hifloat8_t {
  uint8_t bits;
};
// Two 4-bit floats share a byte, the lower index in the lower bits. Tensors count bytes, Cast counts numbers.
struct fp4x2_e2m1_t {
  uint8_t bits;
};
struct fp4x2_e1m2_t {
  uint8_t bits;
};

// Two 4-bit integers share a byte, the lower index in the lower bits; tensors of it count nibbles.
struct int4b_t {
  uint8_t bits;
};
}  // namespace AscendC

namespace twin {
inline namespace TWIN_ABI {
// The type in which an element is computed with.
template <typename T> struct ComputeOf { using type = T; };
template <> struct ComputeOf<half> { using type = float; };
template <> struct ComputeOf<bfloat16_t> { using type = float; };
template <typename T> using Compute = typename ComputeOf<T>::type;

template <typename T> inline Compute<T> Load(const T& value) { return value; }
template <> inline float Load(const half& value) { return HalfToFloat(value.bits); }
template <> inline float Load(const bfloat16_t& value) { return BfloatToFloat(value.bits); }
inline void Store(half& to, float value) { to.bits = FloatToHalf(value); }
inline void Store(bfloat16_t& to, float value) { to.bits = FloatToBfloat(value); }
template <typename T> inline void Store(T& to, T value) { to = value; }

template <typename T, typename... Allowed>
inline constexpr bool OneOf = (std::is_same<T, Allowed>::value || ...);
}  // inline namespace
}  // namespace twin
