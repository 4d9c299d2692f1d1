// Events, barriers, atomics mode, mask register: what the scalar unit tells the other pipes.
#pragma once
#include "twin/tensor.h"

namespace twin {
inline namespace TWIN_ABI {

struct EventEnds {
  pipe_t from, to;
};

constexpr EventEnds EndsOf(AscendC::HardEvent event) {
  using AscendC::HardEvent;
  switch (event) {
    case HardEvent::MTE2_MTE1: return {PIPE_MTE2, PIPE_MTE1};
    case HardEvent::MTE1_MTE2: return {PIPE_MTE1, PIPE_MTE2};
    case HardEvent::MTE1_M: return {PIPE_MTE1, PIPE_M};
    case HardEvent::M_MTE1: return {PIPE_M, PIPE_MTE1};
    case HardEvent::MTE2_V: return {PIPE_MTE2, PIPE_V};
    case HardEvent::V_MTE2: return {PIPE_V, PIPE_MTE2};
    case HardEvent::MTE3_V: return {PIPE_MTE3, PIPE_V};
    case HardEvent::V_MTE3: return {PIPE_V, PIPE_MTE3};
    case HardEvent::M_V: return {PIPE_M, PIPE_V};
    case HardEvent::V_M: return {PIPE_V, PIPE_M};
    case HardEvent::V_V: return {PIPE_V, PIPE_V};
    case HardEvent::MTE3_MTE1: return {PIPE_MTE3, PIPE_MTE1};
    case HardEvent::MTE1_MTE3: return {PIPE_MTE1, PIPE_MTE3};
    case HardEvent::MTE1_V: return {PIPE_MTE1, PIPE_V};
    case HardEvent::MTE2_M: return {PIPE_MTE2, PIPE_M};
    case HardEvent::M_MTE2: return {PIPE_M, PIPE_MTE2};
    case HardEvent::V_MTE1: return {PIPE_V, PIPE_MTE1};
    case HardEvent::MTE3_MTE2: return {PIPE_MTE3, PIPE_MTE2};
    case HardEvent::MTE2_MTE3: return {PIPE_MTE2, PIPE_MTE3};
    case HardEvent::S_V: return {PIPE_S, PIPE_V};
    case HardEvent::V_S: return {PIPE_V, PIPE_S};
    case HardEvent::S_MTE2: return {PIPE_S, PIPE_MTE2};
    case HardEvent::MTE2_S: return {PIPE_MTE2, PIPE_S};
    case HardEvent::S_MTE3: return {PIPE_S, PIPE_MTE3};
    case HardEvent::MTE3_S: return {PIPE_MTE3, PIPE_S};
    default: return {PIPE_ALL, PIPE_ALL};
  }
}

template <typename T> inline constexpr Element ElementOf() {
  if constexpr (std::is_same<T, int8_t>::value) return Element::kInt8;
  else if constexpr (std::is_same<T, int16_t>::value) return Element::kInt16;
  else if constexpr (std::is_same<T, int32_t>::value) return Element::kInt32;
  else if constexpr (std::is_same<T, half>::value) return Element::kHalf;
  else if constexpr (std::is_same<T, bfloat16_t>::value) return Element::kBfloat16;
  else if constexpr (std::is_same<T, float>::value) return Element::kFloat;
  else return Element::kOther;
}

// Whether the kernel says that it is one of vector cores without the scheduler that blocks meet through: KERNEL_TYPE_AIV_ONLY,
// or `__vector__` where it is launched directly.
inline thread_local bool unscheduled = false;

inline void CheckScheduled(const char* api, Site site) {
  if (unscheduled)
    Report("block-sync", site, "%s in a kernel of vector cores only, for which the scheduler that blocks meet through is "
           "off: it needs KERNEL_TYPE_MIX_AIV_1_0, or __mix__(0, 1) where it is launched directly", api);
}

template <typename T>
inline void SetAtomic(Atomic atomic) {
  static_assert(OneOf<T, int8_t, int16_t, int32_t, half, bfloat16_t, float>,
                "atomics take int8_t, int16_t, int32_t, half, bfloat16_t and float");
  Core& core = ThisCore();
  core.atomic = atomic;
  core.atomicElement = ElementOf<T>();
}

}  // inline namespace
}  // namespace twin

namespace AscendC {

using event_t = int32_t;

template <HardEvent event>
inline void SetFlag(int32_t id, twin::Site site = twin::Site::Here()) {
  static_assert(event != HardEvent::MAX, "not an event");
  twin::EventSet(twin::EndsOf(event).from, twin::EndsOf(event).to, id, site);
}

template <HardEvent event>
inline void WaitFlag(int32_t id, twin::Site site = twin::Site::Here()) {
  static_assert(event != HardEvent::MAX, "not an event");
  twin::EventWait(twin::EndsOf(event).from, twin::EndsOf(event).to, id, site);
}

template <pipe_t pipe>
inline void PipeBarrier(twin::Site site = twin::Site::Here()) {
  static_assert(pipe != PIPE_S, "the scalar unit needs no barrier with itself");
  twin::Barrier(pipe, site);
}

// The registers of a kernel without TPipe start from known values.
inline void InitSocState() {
  twin::Core& core = twin::ThisCore();
  core.atomic = twin::Atomic::kNone;
  core.mask[0] = core.mask[1] = ~0ull;
  core.counterMode = false;
  twin::KernelInitialised();
}

template <typename T> inline void SetAtomicAdd() { twin::SetAtomic<T>(twin::Atomic::kAdd); }
template <typename T> inline void SetAtomicMax() { twin::SetAtomic<T>(twin::Atomic::kMax); }
template <typename T> inline void SetAtomicMin() { twin::SetAtomic<T>(twin::Atomic::kMin); }
// Of what is being accumulated already. After it a copy accumulates only where SetAtomicAdd, -Max or -Min is on.
template <typename T> inline void SetAtomicType() { twin::SetAtomic<T>(twin::ThisCore().atomic); }
inline void SetAtomicNone() { twin::ThisCore().atomic = twin::Atomic::kNone; }
inline void DisableDmaAtomic() { SetAtomicNone(); }  // the newer name

inline void SetMaskCount() { twin::ThisCore().counterMode = true; }
inline void SetMaskNorm() { twin::ThisCore().counterMode = false; }
inline void ResetMask() { twin::ThisCore().mask[0] = twin::ThisCore().mask[1] = ~0ull; }

template <typename T, MaskMode mode = MaskMode::NORMAL>
inline void SetVectorMask(const uint64_t high, const uint64_t low) {
  twin::ThisCore().mask[0] = low;
  twin::ThisCore().mask[1] = high;
}

// In normal mode the first `count` lanes of a repeat; in counter mode `count` elements in all.
template <typename T, MaskMode mode = MaskMode::NORMAL>
inline void SetVectorMask(int32_t count) {
  twin::Core& core = twin::ThisCore();
  if (mode == MaskMode::COUNTER) {
    core.mask[0] = uint64_t(count);
    core.mask[1] = 0;
  } else {
    core.mask[0] = count >= 64 ? ~0ull : (1ull << count) - 1;
    core.mask[1] = count >= 128 ? ~0ull : count > 64 ? (1ull << (count - 64)) - 1 : 0;
  }
}

inline void SetDeqScale(half scale) {
  twin::ThisCore().deqScale = float(scale);
  twin::ThisCore().deqScaleSet = true;
}

#if __NPU_ARCH__ == 3510
// Which pipe's work the blocks wait for, and which pipe waits. In the twin all pipes wait.
struct SyncAllConfig {
  pipe_t triggerPipe;
  pipe_t waitPipe;
};
inline constexpr SyncAllConfig DEFAULT_SYNC_ALL_CONFIG = {PIPE_ALL, PIPE_ALL};
#endif

// All blocks meet, and what they wrote to GM before is visible after.
#if __NPU_ARCH__ == 3510
template <bool isAIVOnly = true, const SyncAllConfig& config = DEFAULT_SYNC_ALL_CONFIG>
#else
template <bool isAIVOnly = true>
#endif
inline void SyncAll(twin::Site site = twin::Site::Here()) {
  static_assert(isAIVOnly, "the twin runs vector cores only");
  twin::CheckScheduled("SyncAll", site);
#if __NPU_ARCH__ == 3510
  static_assert(config.triggerPipe != PIPE_S && config.waitPipe != PIPE_M, "SyncAll has no such pipe");
  if constexpr (config.triggerPipe != PIPE_ALL) {  // through one of the flags that SyncAll has for itself
    twin::CrossFlagSet(config.triggerPipe, 14, site);
    twin::CrossFlagWait(14, site);
    return;
  }
#endif
  twin::Barrier(PIPE_ALL, site);
  twin::BlocksBarrier(0, site);
}

// The same through flags in GM: `gmWorkspace` zeroed before the first use, 32 bytes a block, and as much UB.
template <bool isAIVOnly = true>
inline void SyncAll(const GlobalTensor<int32_t>& gmWorkspace, const LocalTensor<int32_t>& ubWorkspace,
                    const int32_t usedCores = 0, twin::Site site = twin::Site::Here()) {
  static_assert(isAIVOnly, "the twin runs vector cores only");
  twin::Barrier(PIPE_ALL, site);
  twin::Call call("SyncAll", PIPE_S, site);
  uint64_t bytes = uint64_t(usedCores ? usedCores : call.core.blocks) * 32;
  twin::View gm = gmWorkspace.View(), ub = ubWorkspace.View();
  call.Gm("gmWorkspace", false, gm.address, 1, bytes, 0, gm.low, gm.high);
  call.Ub("ubWorkspace", true, ub.address, bytes, ub.low, ub.high, 32);
  if (usedCores > call.core.blocks || usedCores < 0)
    call.Problem(true, "block-sync", "usedCores is %d, the launch has %d blocks", usedCores, call.core.blocks);
  else if (usedCores && call.core.block >= usedCores)
    call.Problem(true, "block-sync", "block %d calls SyncAll of the first %d", call.core.block, usedCores);
  if (!call.Issue()) return;
  const uint8_t* flags = reinterpret_cast<const uint8_t*>(gm.address);  // the twin keeps its own: these stay as they are
  for (uint64_t i = 0; i < bytes; ++i)
    if (flags[i]) {
      call.Problem(false, "block-sync", "gmWorkspace is not zero (byte %llu is %u): the blocks take it for their flags",
                   (unsigned long long)i, flags[i]);
      break;
    }
  call.Undefined(ub.address, bytes);
  twin::BlocksBarrier(usedCores, site);
}

}  // namespace AscendC

// The modes of CrossCoreSetFlag: what each joins. Blocks of the twin are vector cores, alone on their AI core.
#define TWIN_CROSS_MODE(Name)                                                                                          \
  static_assert(modeId != 1, #Name ": mode 1 joins the two vector cores of one AI core, in kernels of type "           \
                             "KERNEL_TYPE_MIX_AIC_1_2; the twin runs vector cores only: mode 0 joins all of them");    \
  static_assert(modeId != 2, #Name ": mode 2 joins a cube core and its vector cores; the twin runs vector cores only: "\
                             "mode 0 joins all of them");                                                              \
  static_assert(modeId != 4 || __NPU_ARCH__ == 3510, #Name ": mode 4 is on 950 only; 910B has 0, 1 and 2");            \
  static_assert(modeId != 4 || __NPU_ARCH__ != 3510, #Name ": mode 4 joins a cube core and one of its vector cores; "  \
                             "the twin runs vector cores only: mode 0 joins all of them");                             \
  static_assert(modeId <= 2 || modeId == 4, #Name ": the modes are 0, 1, 2 and, on 950, 4")

namespace AscendC {

// A flag between vector cores (mode 0): when all blocks have set it, one wait for it on each goes on.
template <uint8_t modeId, pipe_t pipe>
inline void CrossCoreSetFlag(uint16_t flagId, twin::Site site = twin::Site::Here()) {
  TWIN_CROSS_MODE(CrossCoreSetFlag);
  static_assert(pipe != PIPE_S && pipe != PIPE_ALL, "CrossCoreSetFlag takes neither PIPE_S nor PIPE_ALL");
  twin::CheckScheduled("CrossCoreSetFlag", site);
  twin::CrossFlagSet(pipe, flagId & 15, site);
}
template <uint8_t modeId = 0, pipe_t pipe = PIPE_S>
inline void CrossCoreWaitFlag(uint16_t flagId, twin::Site site = twin::Site::Here()) {
  TWIN_CROSS_MODE(CrossCoreWaitFlag);
  static_assert(pipe != PIPE_ALL, "CrossCoreWaitFlag does not take PIPE_ALL");
  twin::CheckScheduled("CrossCoreWaitFlag", site);
  twin::CrossFlagWait(flagId & 15, site);
}
#undef TWIN_CROSS_MODE

// Writes the 64-byte line of the scalar unit's data cache that holds the tensor's start (or all lines) back to GM, and
// forgets it. The twin's scalar accesses go straight to GM; the checker remembers what the cache would hold.
template <typename T, CacheLine entireType, DcciDst dcciDst>
inline void DataCacheCleanAndInvalid(const GlobalTensor<T>& dst) {
  static_assert(dcciDst != DcciDst::CACHELINE_UB, "the twin has no cached access to UB");
  twin::CleanCache(dst.View().address, entireType == CacheLine::ENTIRE_DATA_CACHE);
}
template <typename T, CacheLine entireType>
inline void DataCacheCleanAndInvalid(const GlobalTensor<T>& dst) {
  twin::CleanCache(dst.View().address, entireType == CacheLine::ENTIRE_DATA_CACHE);
}

}  // namespace AscendC
