// Calling a kernel that is launched directly (`kernel<<<blocks, nullptr, stream>>>(arguments...)`): its parameters are
// pointers to GM and values, which the launch gives as an array of pointers. Read after the kernel's source.
#pragma once
#include "twin/sync.h"

namespace twin {
inline namespace TWIN_ABI {

// How Python sees a parameter: 'p' a pointer, else a value: 'i', 'u', 'b' (bool), 'f', 'h' (half), 'B' (bfloat16_t) or
// 's', any other struct.
template <typename P>
constexpr char KindOf() {
  if (std::is_pointer<P>::value) return 'p';
  if (std::is_same<P, bool>::value) return 'b';
  if (std::is_same<P, half>::value) return 'h';
  if (std::is_same<P, bfloat16_t>::value) return 'B';
  if (std::is_floating_point<P>::value) return 'f';
  if (std::is_integral<P>::value) return std::is_signed<P>::value ? 'i' : 'u';
  return 's';
}

template <typename... P>
struct DirectKernel {
  static_assert(((std::is_pointer<P>::value || std::is_trivially_copyable<P>::value) && ...),
                "a kernel takes pointers to GM, numbers and plain structs");
  static constexpr uint32_t count = sizeof...(P);

  static void Describe(char* kinds, uint32_t* bytes) {
    const char k[] = {KindOf<P>()..., 0};
    const uint32_t b[] = {uint32_t(sizeof(P))..., 0};
    std::memcpy(kinds, k, count);
    std::memcpy(bytes, b, count * sizeof(uint32_t));
  }
  template <size_t... I>
  static void Call(void (*kernel)(P...), uint8_t** arguments, std::index_sequence<I...>) {
    kernel(Take<P>(arguments[I])...);
  }

 private:
  template <typename T>
  static T Take(uint8_t* argument) {
    if constexpr (std::is_pointer<T>::value) return reinterpret_cast<T>(argument);
    else {
      T value;
      std::memcpy(static_cast<void*>(&value), argument, sizeof(T));
      return value;
    }
  }
};
template <typename... P>
DirectKernel<P...> DirectKernelOf(void (*)(P...)) { return {}; }

}  // inline namespace
}  // namespace twin

// What Python looks for in the object: how many parameters, which, and the call. `vectorOnly`: declared __vector__, so
// that blocks cannot meet.
#define TWIN_DIRECT(kernel, vectorOnly)                                                                                \
  namespace {                                                                                                          \
  using TwinDirect = decltype(twin::DirectKernelOf(&kernel));                                                          \
  }                                                                                                                    \
  extern "C" TWIN_API uint32_t twin_direct_count() { return TwinDirect::count; }                                       \
  extern "C" TWIN_API void twin_direct_describe(char* kinds, uint32_t* bytes) { TwinDirect::Describe(kinds, bytes); }  \
  extern "C" TWIN_API void twin_direct_call(uint8_t** arguments) {                                                     \
    twin::unscheduled = vectorOnly;                                                                                    \
    TwinDirect::Call(&kernel, arguments, std::make_index_sequence<TwinDirect::count>());                               \
  }
