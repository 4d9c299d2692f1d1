// Small helpers that kernels expect in namespace AscendC.
#pragma once
#include "twin/sync.h"

namespace AscendC {

template <typename A, typename B>
struct IsSameType : std::is_same<A, B> {};
template <bool condition, typename A, typename B>
struct Conditional : std::conditional<condition, A, B> {};

template <typename A, typename B>
constexpr auto DivCeil(A a, B b) -> decltype(a / b) { return (a + b - 1) / b; }
template <typename A, typename B>
constexpr auto AlignUp(A a, B b) -> decltype(a / b) { return (a + b - 1) / b * b; }
template <typename A, typename B>
constexpr auto AlignDown(A a, B b) -> decltype(a / b) { return a / b * b; }
template <typename A, typename B>
constexpr auto CeilDivision(A a, B b) -> decltype(a / b) { return b == 0 ? 0 : (a + b - 1) / b; }

// A float as half or as an integer, on the scalar unit.
template <typename T, typename U, RoundMode roundMode>
inline U ScalarCast(T valueIn) {
  static_assert(std::is_same<T, float>::value && twin::OneOf<U, half, int32_t>, "ScalarCast: float to half or int32_t");
  if constexpr (std::is_same<U, int32_t>::value) return twin::Saturate<int32_t>(twin::RoundWhole(valueIn, roundMode));
  else return twin::BitCast<half>(twin::FloatToHalf(valueIn, roundMode));
}

constexpr uint32_t F32_INF = 0x7f800000, F32_NEG_INF = 0xff800000, F32_NAN = 0x7fc00000;  // as bits

// The twin runs vector cores only.
enum : int { AIC = 1, AIV = 2 };

namespace Std {
template <typename T> constexpr T min(T a, T b) { return b < a ? b : a; }
template <typename T> constexpr T max(T a, T b) { return a < b ? b : a; }
template <typename A, typename B> inline constexpr bool is_same_v = std::is_same<A, B>::value;
template <typename A, typename B> using is_same = std::is_same<A, B>;
template <bool condition, typename A, typename B> using conditional_t = std::conditional_t<condition, A, B>;
template <bool condition, typename T = void> using enable_if = std::enable_if<condition, T>;
template <bool condition, typename T = void> using enable_if_t = std::enable_if_t<condition, T>;
}  // namespace Std

}  // namespace AscendC

inline constexpr int g_coreType = AscendC::AIV;
#define ASCEND_IS_AIV constexpr (true)
#define ASCEND_IS_AIC constexpr (false)

#define likely(condition) __builtin_expect(!!(condition), 1)
#define unlikely(condition) __builtin_expect(!!(condition), 0)
