// Tiling data and tiling keys. The CANN build generates these macros per key; the twin compiles all keys at once, so a
// struct that depends on the key must be named (GET_TILING_DATA_WITH_STRUCT).
#pragma once
#include "twin/sync.h"

enum KernelMetaType {
  KERNEL_TYPE_AIV_ONLY, KERNEL_TYPE_AIC_ONLY, KERNEL_TYPE_MIX_AIV_1_0, KERNEL_TYPE_MIX_AIC_1_0, KERNEL_TYPE_MIX_AIC_1_1,
  KERNEL_TYPE_MIX_AIC_1_2, KERNEL_TYPE_AICORE, KERNEL_TYPE_VECTORCORE, KERNEL_TYPE_MIX_AICORE,
  KERNEL_TYPE_MIX_VECTOR_CORE
};

namespace twin {
inline namespace TWIN_ABI {
template <typename S>
inline void ReadTiling(S& to, const void*, Site site) {
  static_assert(std::is_trivially_copyable<S>::value, "a tiling struct is plain data");
  const Core& core = ThisCore();
  std::memset(static_cast<void*>(&to), 0, sizeof(S));
  if (core.tilingBytes < sizeof(S))
    Report("tiling", site, "the kernel reads %zu bytes of tiling data, the launch gave %llu", sizeof(S),
           (unsigned long long)core.tilingBytes);
  if (core.tiling) std::memcpy(static_cast<void*>(&to), core.tiling, core.tilingBytes < sizeof(S) ? core.tilingBytes : sizeof(S));
}
constexpr bool IsVectorKernel(KernelMetaType type) {
  return type == KERNEL_TYPE_AIV_ONLY || type == KERNEL_TYPE_MIX_AIV_1_0 || type == KERNEL_TYPE_VECTORCORE;
}
}  // inline namespace
}  // namespace twin

namespace AscendC {
// The launch gives a kernel the user's part of the workspace, as the operator package does.
inline __gm__ uint8_t* GetUserWorkspace(GM_ADDR workspace) { return workspace; }
inline void SetSysWorkspace(GM_ADDR) {}
}  // namespace AscendC

#define REGISTER_TILING_DEFAULT(Struct) using TwinDefaultTiling [[maybe_unused]] = Struct
#define REGISTER_TILING_FOR_TILINGKEY(expression, Struct) static_assert(sizeof(Struct) > 0, expression)
#define GET_TILING_DATA_WITH_STRUCT(Struct, name, argument) \
  Struct name;                                              \
  twin::ReadTiling(name, argument, twin::Site::Here())
#define GET_TILING_DATA(name, argument) GET_TILING_DATA_WITH_STRUCT(TwinDefaultTiling, name, argument)
#define GET_TILING_DATA_MEMBER(Struct, member, name, argument)           \
  GET_TILING_DATA_WITH_STRUCT(Struct, twin_tiling_##name, argument);     \
  auto name = twin_tiling_##name.member
#define TILING_KEY_IS(key) twin::TilingKeyIs(key)
#define KERNEL_TASK_TYPE_DEFAULT(type) static_assert(twin::IsVectorKernel(type), "the twin runs vector cores only")
#define KERNEL_TASK_TYPE(key, type) static_assert(twin::IsVectorKernel(type), "the twin runs vector cores only")
