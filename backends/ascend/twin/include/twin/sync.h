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

// All blocks meet, and what they wrote to GM before is visible after.
template <bool isAIVOnly = true>
inline void SyncAll(twin::Site site = twin::Site::Here()) {
  static_assert(isAIVOnly, "the twin runs vector cores only");
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
  if (call.Issue()) twin::BlocksBarrier(usedCores, site);
}

// A flag between vector cores (mode 0): when all blocks have set it, one wait for it on each goes on.
template <uint8_t modeId, pipe_t pipe>
inline void CrossCoreSetFlag(uint16_t flagId, twin::Site site = twin::Site::Here()) {
  static_assert(modeId == 0, "the twin runs vector cores only: of CrossCoreSetFlag it has mode 0, all vector cores");
  static_assert(pipe != PIPE_S && pipe != PIPE_ALL, "CrossCoreSetFlag takes neither PIPE_S nor PIPE_ALL");
  twin::CrossFlagSet(pipe, flagId & 15, site);
}
template <uint8_t modeId = 0, pipe_t pipe = PIPE_S>
inline void CrossCoreWaitFlag(uint16_t flagId, twin::Site site = twin::Site::Here()) {
  static_assert(modeId == 0, "the twin runs vector cores only: of CrossCoreWaitFlag it has mode 0, all vector cores");
  static_assert(pipe != PIPE_ALL, "CrossCoreWaitFlag does not take PIPE_ALL");
  twin::CrossFlagWait(flagId & 15, site);
}

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
