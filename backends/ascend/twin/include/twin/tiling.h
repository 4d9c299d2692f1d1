// Tiling data, tiling keys and the macros that the CANN build generates. It compiles a kernel once a key; the twin
// compiles all keys at once, except where the key chooses the tiling struct.
#pragma once
#include "twin/sync.h"
#include "twin/tiling_structs.h"

// Of ge::DataType and ge::Format, for `#if ORIG_DTYPE_X == DT_FLOAT`.
#define DT_FLOAT 0
#define DT_FLOAT16 1
#define DT_INT8 2
#define DT_INT32 3
#define DT_UINT8 4
#define DT_INT16 6
#define DT_UINT16 7
#define DT_UINT32 8
#define DT_INT64 9
#define DT_UINT64 10
#define DT_DOUBLE 11
#define DT_BOOL 12
#define DT_BF16 27
#define DT_INT4 29
#define FORMAT_ND 2
#define FORMAT_FRACTAL_NZ 29

enum KernelMetaType {
  KERNEL_TYPE_AIV_ONLY, KERNEL_TYPE_AIC_ONLY, KERNEL_TYPE_MIX_AIV_1_0, KERNEL_TYPE_MIX_AIC_1_0, KERNEL_TYPE_MIX_AIC_1_1,
  KERNEL_TYPE_MIX_AIC_1_2, KERNEL_TYPE_AICORE, KERNEL_TYPE_VECTORCORE, KERNEL_TYPE_MIX_AICORE,
  KERNEL_TYPE_MIX_VECTOR_CORE, KERNEL_TYPE_MAX
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
  if (core.tiling)
    std::memcpy(static_cast<void*>(&to), core.tiling, core.tilingBytes < sizeof(S) ? core.tilingBytes : sizeof(S));
}
// What stands for `kernel<<<...>>>(...)` in host code beside a kernel (stand_ins.py).
template <typename... A>
inline auto HostLaunches(const A&...) {
  return [](const auto&...) {};
}
constexpr bool IsVectorKernel(KernelMetaType type) {
  return type == KERNEL_TYPE_AIV_ONLY || type == KERNEL_TYPE_MIX_AIV_1_0 || type == KERNEL_TYPE_VECTORCORE;
}
// Stands where a kernel declares its type, and notes that it is launched without the scheduler.
struct KernelTypeHere {
  explicit KernelTypeHere(bool vectorCoresOnly) { unscheduled = unscheduled || vectorCoresOnly; }
};
}  // inline namespace
}  // namespace twin

namespace AscendC {
// The launch gives a kernel the user's part of the workspace, as the operator package does.
inline __gm__ uint8_t* GetUserWorkspace(GM_ADDR workspace) { return workspace; }
inline void SetSysWorkspace(GM_ADDR) {}
}  // namespace AscendC

// The build says by TWIN_TILING_STRUCT which of several registered structs holds for the tiling key (registered.py).
#define REGISTER_TILING_DEFAULT(Struct) using TwinDefaultTiling [[maybe_unused]] = Struct
#define REGISTER_TILING_FOR_TILINGKEY(expression, Struct) static_assert(sizeof(Struct) > 0, expression)
#define REGISTER_NONE_TILING
#define GET_TILING_DATA_WITH_STRUCT(Struct, name, argument) \
  Struct name;                                              \
  twin::ReadTiling(name, argument, twin::Site::Here())
#ifdef TWIN_TILING_STRUCT
#define GET_TILING_DATA(name, argument) GET_TILING_DATA_WITH_STRUCT(TWIN_TILING_STRUCT, name, argument)
#else
#define GET_TILING_DATA(name, argument) GET_TILING_DATA_WITH_STRUCT(TwinDefaultTiling, name, argument)
#endif
#define GET_TILING_DATA_PTR_WITH_STRUCT(Struct, name, argument)           \
  GET_TILING_DATA_WITH_STRUCT(Struct, twin_tiling_at_##name, argument);   \
  const __gm__ Struct* name = &twin_tiling_at_##name
#define COPY_TILING_WITH_STRUCT(Struct, from, to)   \
  const Struct twin_tiling_of_##to = *(from);       \
  const Struct* to = &twin_tiling_of_##to
#define GET_TILING_DATA_MEMBER(Struct, member, name, argument)           \
  GET_TILING_DATA_WITH_STRUCT(Struct, twin_tiling_##name, argument);     \
  auto name = twin_tiling_##name.member
#define TILING_KEY_IS(key) twin::TilingKeyIs(key)
#define TWIN_NUMBERED(prefix, number) prefix##number
#define TWIN_KERNEL_TYPE(number, type, holds)                                                                          \
  static_assert(twin::IsVectorKernel(type), "the twin runs vector cores only");                                        \
  [[maybe_unused]] const twin::KernelTypeHere TWIN_NUMBERED(twin_kernel_type_, number)(                                \
      (holds) && (type) == KERNEL_TYPE_AIV_ONLY)
#define KERNEL_TASK_TYPE_DEFAULT(type) TWIN_KERNEL_TYPE(__COUNTER__, type, true)
#define KERNEL_TASK_TYPE(key, type) TWIN_KERNEL_TYPE(__COUNTER__, type, twin::ThisCore().tilingKey == (key))
