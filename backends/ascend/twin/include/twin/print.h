// What a kernel prints: `run.printed` in Python, each line after the block that printed it.
#pragma once
#include <cstdarg>
#include <cstdio>
#include "twin/tensor.h"

namespace AscendC {

struct ShapeInfo {
  ShapeInfo() = default;
  ShapeInfo(const uint8_t dimensions, const uint32_t extents[]) : shapeDim(dimensions) {
    for (int i = 0; i < dimensions && i < 8; ++i) shape[i] = extents[i];
  }
  uint8_t shapeDim = 0;
  uint32_t shape[8] = {};
};

}  // namespace AscendC

namespace twin {
inline namespace TWIN_ABI {

constexpr size_t kMostOfOneCall = 30 * 1024;  // bytes; the device drops what is longer

template <typename T>
inline auto Printable(const T& value) {
  if constexpr (OneOf<T, half, bfloat16_t>) return double(Load(value));
  else return value;
}
inline const char* Printable(const char* text) { return text; }
template <typename Tensor>
inline auto Printable(const ElementAt<Tensor>& element) { return Printable(typename Tensor::PrimType(element)); }

template <typename T> inline const char* NameOf() {
  if constexpr (std::is_same<T, half>::value) return "float16";
  else if constexpr (std::is_same<T, bfloat16_t>::value) return "bfloat16";
  else if constexpr (std::is_same<T, float>::value) return "float32";
  else if constexpr (std::is_same<T, bool>::value) return "bool";
  else {
    static const char* const names[] = {"int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"};
    return names[(sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 2 : sizeof(T) == 4 ? 4 : 6) + !std::is_signed<T>::value];
  }
}

inline void Dumped(char*& to, char* end, const char* format, ...) __attribute__((format(printf, 3, 4)));
inline void Dumped(char*& to, char* end, const char* format, ...) {
  va_list args;
  va_start(args, format);
  int n = vsnprintf(to, size_t(end - to), format, args);
  va_end(args);
  to = n < end - to ? to + n : end - 1;
}

// `count` elements in rows of the innermost extent, in as many brackets as there are extents.
template <typename T>
TWIN_OUTLINE void Dump(const T* data, uint32_t count, const char* position, unsigned long long address, uint32_t desc,
                       const AscendC::ShapeInfo& shape) {
  static thread_local char text[kMostOfOneCall];
  char *to = text, *end = text + sizeof(text);
  Dumped(to, end, "DumpTensor: desc=%u, addr=0x%llx, data_type=%s, position=%s, dump_size=%u\n", desc, address,
         NameOf<T>(), position, count);
  AscendC::ShapeInfo s = shape;
  if (!s.shapeDim) s.shape[0] = count, s.shapeDim = 1;
  uint64_t total = 1;
  for (int i = 0; i < s.shapeDim; ++i) total *= s.shape[i];
  for (uint64_t i = 0; i < total; ++i) {
    uint64_t block = 1;
    for (int axis = s.shapeDim - 1; axis >= 0; --axis) {
      block *= s.shape[axis];
      if (i % block == 0) Dumped(to, end, "[");
    }
    if (i >= count) Dumped(to, end, "-");
    else if constexpr (OneOf<T, half, bfloat16_t, float>) Dumped(to, end, "%f", double(Load(data[i])));
    else Dumped(to, end, std::is_signed<T>::value ? "%lld" : "%llu", (long long)data[i]);
    int closed = 0;
    block = 1;
    for (int axis = s.shapeDim - 1; axis >= 0; --axis) {
      block *= s.shape[axis];
      if ((i + 1) % block == 0) Dumped(to, end, "]"), ++closed;
    }
    if (i + 1 < total) Dumped(to, end, closed ? ",\n" : ", ");
  }
  Print(text);
}

}  // inline namespace
}  // namespace twin

namespace AscendC {

template <class... Args>
inline void printf(const __gm__ char* fmt, Args&&... args) {
  static thread_local char text[twin::kMostOfOneCall];
  if constexpr (sizeof...(Args) == 0) std::snprintf(text, sizeof(text), "%s", fmt);
  else std::snprintf(text, sizeof(text), fmt, twin::Printable(args)...);
  twin::Print(text);
}

// The tensor's contents now. What is under way on other pipes is not waited for, and the checker does not look at it.
template <typename T>
inline void DumpTensor(const LocalTensor<T>& tensor, uint32_t desc, uint32_t dumpSize,
                       const ShapeInfo& shapeInfo = {}) {
  const twin::Core& core = twin::ThisCore();
  const uint64_t at = tensor.View().address, room = at < core.ubBytes ? (core.ubBytes - at) / sizeof(T) : 0;
  const uint32_t count = dumpSize < room ? dumpSize : uint32_t(room);
  twin::Dump(reinterpret_cast<const T*>(core.ub + at), count, "UB", at, desc, shapeInfo);
}
template <typename T>
inline void DumpTensor(const GlobalTensor<T>& tensor, uint32_t desc, uint32_t dumpSize,
                       const ShapeInfo& shapeInfo = {}) {
  const uint64_t at = tensor.View().address, room = twin::GmBytesFrom(at) / sizeof(T);
  const uint32_t count = dumpSize < room ? dumpSize : uint32_t(room);
  twin::Dump(reinterpret_cast<const T*>(at), count, "GM", at, desc, shapeInfo);
}

}  // namespace AscendC

#define PRINTF(...) AscendC::printf(__VA_ARGS__)

// Assertions are findings, and the kernel goes on: on the device they end it.
#define ASSERT(condition) \
  do { if (!(condition)) twin::Report("assert", twin::Site::Here(), "%s does not hold", #condition); } while (false)
#define ascendc_assert(condition, ...) ASSERT(condition)
#define ASCENDC_ASSERT(condition, action) ASSERT(condition)
enum class LogLevel { KERNEL_ERROR, KERNEL_WARN, KERNEL_INFO, KERNEL_DEBUG };
#define KERNEL_LOG(level, ...) ((void)LogLevel::level, AscendC::printf(__VA_ARGS__))
