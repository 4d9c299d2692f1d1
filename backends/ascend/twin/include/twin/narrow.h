// The 4-bit and 8-bit floats of 950 that Cast makes and reads.
//
// hifloat8_t is the format of tapered precision that frontend/numerics/hifloat8.py defines: a prefix says how many bits
// the exponent has, so that what is left for the mantissa falls from three to one away from 1. fp4x2_e2m1_t has the
// magnitudes 0, 0.5, 1, 1.5, 2, 3, 4, 6, fp4x2_e1m2_t those from 0 to 1.75 in quarters; both saturate and take NaN as
// 0.
#pragma once
#include "twin/scalar.h"

namespace twin {
inline namespace TWIN_ABI {

inline float HifloatToFloat(uint8_t code) {
  using Limits = std::numeric_limits<float>;
  const uint32_t rest = code & 0x7f;
  if (code == 0x80) return Limits::quiet_NaN();
  float value;
  if (rest == 0x6f) {
    value = Limits::infinity();
  } else if (rest < 8) {
    value = rest ? std::ldexp(1.0f, int(rest) - 23) : 0.0f;
  } else {
    const int width = rest >= 0x60 ? 4 : rest >= 0x40 ? 3 : rest >= 0x20 ? 2 : rest >= 0x10 ? 1 : 0;  // of the exponent
    const int mantissaBits = width == 4 ? 1 : width == 3 ? 2 : 3;
    const uint32_t mantissa = rest & ((1u << mantissaBits) - 1), field = (rest >> mantissaBits) & ((1u << width) - 1);
    const uint32_t top = width ? 1u << (width - 1) : 0;  // the sign's place, which in the magnitude is a leading 1
    const int size = width ? int((field & ~top) | top) : 0;
    value = std::ldexp(float((1u << mantissaBits) + mantissa), (field & top ? -size : size) - mantissaBits);
  }
  return code & 0x80 ? -value : value;
}

// The bits that a magnitude of that exponent keeps.
inline int HifloatMantissa(int exponent) {
  const int size = exponent < 0 ? -exponent : exponent;
  return exponent < -15 ? 0 : size >= 8 ? 1 : size >= 4 ? 2 : 3;
}

// Ties away from zero; infinity from 40960 on. CAST_HYBRID rounds up outside of 2^-3 to 2^4 where the bits that are cut
// off reach a threshold, the last bits of the operand: `cut` of them, 14 for float and 2 for half, aligned as float.
inline uint8_t FloatToHifloat(float f, bool hybrid, int cut) {
  const uint32_t bits = BitCast<uint32_t>(f), magnitude = bits & 0x7fffffff;
  const uint8_t sign = bits >> 31 ? 0x80 : 0;
  if (magnitude > 0x7f800000u) return 0x80;
  int exponent = int(magnitude >> 23) - 127;
  if (magnitude == 0 || exponent < -23) return 0;
  if (exponent > 15) return sign | 0x6f;
  const int kept = HifloatMantissa(exponent);
  bool up = exponent == -23 || ((magnitude >> (22 - kept)) & 1);
  if (hybrid && (exponent < -3 || exponent > 3)) {
    // half: its last bit and a 1 below it are the threshold
    const uint32_t threshold = cut == 14 ? magnitude & 0x3fff : ((magnitude >> 13) & 1) << 1 | 1;
    const uint32_t fraction = (magnitude & 0x7fffff) | (exponent == -23 ? 0x800000u : 0u);
    const int top = exponent == -23 ? 24 : 23 - kept;  // the first bit that is cut off is bit top - 1
    const uint32_t part = (fraction >> (top - cut)) & ((1u << cut) - 1);
    up = part && part >= threshold;  // what needs no rounding stays
  }
  uint32_t whole = (magnitude >> (23 - kept)) + (exponent == -23 ? 0 : up);
  if (exponent == -23) return up ? sign | 1 : 0;
  exponent = int(whole >> kept) - 127;
  const uint32_t mantissa = (whole << (3 - kept)) & 7;  // three bits; a carry leaves none
  if (exponent > 15 || (exponent == 15 && mantissa)) return sign | 0x6f;
  if (exponent < -15) return uint8_t(sign | uint32_t(exponent + 23));
  const uint32_t size = uint32_t(exponent < 0 ? -exponent : exponent), minus = exponent < 0;
  if (size >= 8) return uint8_t(sign | 0x60 | minus << 4 | (size & 7) << 1 | mantissa >> 2);
  if (size >= 4) return uint8_t(sign | 0x40 | minus << 4 | (size & 3) << 2 | mantissa >> 1);
  if (size >= 2) return uint8_t(sign | 0x20 | minus << 4 | (size & 1) << 3 | mantissa);
  if (size == 1) return uint8_t(sign | 0x10 | minus << 3 | mantissa);
  return uint8_t(sign | 0x08 | mantissa);
}

// The magnitudes of the 4-bit floats, in quarters.
template <typename T> inline const int (&QuartersOf())[8] {
  static const int e2m1[8] = {0, 2, 4, 6, 8, 12, 16, 24}, e1m2[8] = {0, 1, 2, 3, 4, 5, 6, 7};
  return std::is_same<T, AscendC::fp4x2_e2m1_t>::value ? e2m1 : e1m2;
}

template <typename T>
inline float FourToFloat(uint8_t code) {
  const float value = float(QuartersOf<T>()[code & 7]) * 0.25f;
  return code & 8 ? -value : value;
}

template <typename T>
inline uint8_t FloatToFour(float f, AscendC::RoundMode mode) {
  using AscendC::RoundMode;
  const int(&table)[8] = QuartersOf<T>();
  const bool negative = std::signbit(f);
  const double x = std::fabs(double(f)) * 4;
  const uint8_t sign = negative ? 8 : 0;
  if (x != x) return 0;
  if (x >= table[7]) return sign | 7;
  uint32_t low = 0;
  while (table[low + 1] <= x) ++low;
  const double below = x - table[low], gap = table[low + 1] - table[low];
  bool up = false;
  switch (mode) {
    case RoundMode::CAST_FLOOR: up = negative && below > 0; break;
    case RoundMode::CAST_CEIL: up = !negative && below > 0; break;
    case RoundMode::CAST_TRUNC: break;
    case RoundMode::CAST_ROUND: up = 2 * below >= gap; break;
    default: up = 2 * below > gap || (2 * below == gap && (low & 1));
  }
  return uint8_t(sign | (low + up));
}

}  // inline namespace
}  // namespace twin
