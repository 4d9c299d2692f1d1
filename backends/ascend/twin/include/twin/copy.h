// Copies between GM and UB (PIPE_MTE2 in, PIPE_MTE3 out) and within UB (PIPE_V).
#pragma once
#include "twin/sync.h"

namespace twin {
inline namespace TWIN_ABI {

template <typename T>
inline void Combine(T* to, const T* from, uint64_t n, Atomic atomic) {
  for (uint64_t i = 0; i < n; ++i) {
    T old, value;
    std::memcpy(&old, to + i, sizeof(T));
    std::memcpy(&value, from + i, sizeof(T));
    Compute<T> a = Load(old), b = Load(value);
    Compute<T> result = atomic == Atomic::kAdd ? Compute<T>(a + b)
                        : atomic == Atomic::kMax ? (a > b ? a : b) : (a < b ? a : b);
    Store(old, result);
    std::memcpy(to + i, &old, sizeof(T));
  }
}

// One piece of a copy to GM, with the atomic mode that holds.
inline void PutGm(uint64_t to, const uint8_t* from, uint64_t bytes, const Core& core) {
  void* target = reinterpret_cast<void*>(to);
  if (core.atomic == Atomic::kNone) {
    std::memcpy(target, from, bytes);
    return;
  }
  AtomicLock(true);
  switch (core.atomicElement) {
    case Element::kInt8:
      Combine(static_cast<int8_t*>(target), reinterpret_cast<const int8_t*>(from), bytes, core.atomic);
      break;
    case Element::kInt16:
      Combine(static_cast<int16_t*>(target), reinterpret_cast<const int16_t*>(from), bytes / 2, core.atomic);
      break;
    case Element::kInt32:
      Combine(static_cast<int32_t*>(target), reinterpret_cast<const int32_t*>(from), bytes / 4, core.atomic);
      break;
    case Element::kHalf:
      Combine(static_cast<half*>(target), reinterpret_cast<const half*>(from), bytes / 2, core.atomic);
      break;
    case Element::kBfloat16:
      Combine(static_cast<bfloat16_t*>(target), reinterpret_cast<const bfloat16_t*>(from), bytes / 2, core.atomic);
      break;
    case Element::kFloat:
      Combine(static_cast<float*>(target), reinterpret_cast<const float*>(from), bytes / 4, core.atomic);
      break;
    default: break;
  }
  AtomicLock(false);
}

// What SetPadValue set on this block's thread.
struct PadValue {
  uint64_t bits = 0;
  bool set = false;
};
inline thread_local PadValue padValue;

constexpr int kToGm = 0, kFromGm = 1;

inline LoopMode LoopsOf(const Core& core, int direction) {
#if __NPU_ARCH__ == 3510
  return core.loops[direction];
#else
  return {};
#endif
}

// Calls copy(bytes from src on, bytes from dst on) for each of the copies that are one instruction.
template <typename F>
inline void EachCopy(const LoopMode& loops, F copy) {
  for (uint64_t k = 0; k < loops.outer; ++k)
    for (uint64_t i = 0; i < loops.inner; ++i)
      copy(k * loops.outerFrom + i * loops.innerFrom, k * loops.outerTo + i * loops.innerTo);
}

// One copy's pieces: how many, the bytes of each that are read and written, and from start to start of them.
struct Pieces {
  uint32_t count;
  uint64_t read, write;
  int64_t fromStep, toStep;
};

// Names the operands of a copy between GM and UB with all its pieces.
inline void Touch(Call& call, int direction, const View& from, const View& to, const Pieces& p) {
  const LoopMode loops = LoopsOf(call.core, direction);
  const bool in = direction == kFromGm;
  if (in) call.Gm("src", false, from.address, 0, 0, 0, from.low, from.high);
  else call.Ub("src", false, from.address, 0, from.low, from.high, 32);
  EachCopy(loops, [&](uint64_t at, uint64_t) {
    for (uint32_t i = 0; i < p.count; ++i) call.Extend(from.address + at + uint64_t(int64_t(i) * p.fromStep), p.read);
  });
  if (in) call.Ub("dst", true, to.address, 0, to.low, to.high, 32);
  else call.Gm("dst", true, to.address, 0, 0, 0, to.low, to.high);
  EachCopy(loops, [&](uint64_t, uint64_t at) {
    for (uint32_t i = 0; i < p.count; ++i) call.Extend(to.address + at + uint64_t(int64_t(i) * p.toStep), p.write);
  });
}

inline void CopyIn(Call& call, const View& from, const View& to, const Pieces& p) {
  Touch(call, kFromGm, from, to, p);
  if (!call.Issue()) return;
  EachCopy(LoopsOf(call.core, kFromGm), [&](uint64_t fromAt, uint64_t toAt) {
    for (uint32_t i = 0; i < p.count; ++i)
      std::memcpy(call.core.ub + to.address + toAt + uint64_t(int64_t(i) * p.toStep),
                  reinterpret_cast<const void*>(from.address + fromAt + uint64_t(int64_t(i) * p.fromStep)), p.read);
  });
}

inline void CopyOut(Call& call, const View& from, const View& to, const Pieces& p) {
  Touch(call, kToGm, from, to, p);
  if (!call.Issue()) return;
  EachCopy(LoopsOf(call.core, kToGm), [&](uint64_t fromAt, uint64_t toAt) {
    for (uint32_t i = 0; i < p.count; ++i)
      PutGm(to.address + toAt + uint64_t(int64_t(i) * p.toStep),
            call.core.ub + from.address + fromAt + uint64_t(int64_t(i) * p.fromStep), p.write, call.core);
  });
}

template <typename T>
inline void CheckWholeBlocks(Call& call, uint64_t count) {
  uint64_t bytes = BytesOf<T>(count);
  if (bytes % 32)
    call.Problem(false, "copy-size",
                 "DataCopy of %llu elements is %llu bytes, not a multiple of 32; the last %llu bytes are not copied",
                 (unsigned long long)count, (unsigned long long)bytes, (unsigned long long)(bytes % 32));
}

inline void CheckBlockCount(Call& call, uint32_t blocks) {
  if (blocks > 4095) call.Problem(false, "copy-limit", "blockCount is %u, the limit is 4095", blocks);
}

// Strides in the units of DataCopyExtParams: bytes in GM, 32-byte blocks in UB. In compact mode that of UB says nothing.
template <typename T>
inline void CheckPadLimits(Call& call, const AscendC::DataCopyExtParams& params, bool in, bool compact) {
  CheckBlockCount(call, params.blockCount);
  if (params.blockLen > 2097151)
    call.Problem(false, "copy-limit", "blockLen is %u bytes, the limit is 2097151", params.blockLen);
  if (params.blockLen % sizeof(T))
    call.Problem(false, "copy-limit", "blockLen is %u bytes, not a multiple of the element's %zu", params.blockLen,
                 sizeof(T));
#if __NPU_ARCH__ == 3510
  const int64_t gm = in ? params.srcStride : params.dstStride, ub = in ? params.dstStride : params.srcStride;
  const int64_t least = in ? -int64_t(params.blockLen) : 0;
  if (gm < least || gm >= 1ll << 40)
    call.Problem(false, "copy-limit", "%s is %lld bytes in GM, it must be from %lld to 2^40 - 1",
                 in ? "srcStride" : "dstStride", (long long)gm, (long long)least);
  if (!compact && (ub < 0 || ub > 65535))
    call.Problem(false, "copy-limit", "%s is %lld blocks in UB, it must be from 0 to 65535",
                 in ? "dstStride" : "srcStride", (long long)ub);
#endif
}

template <typename T, bool compact>
TWIN_OUTLINE void PadIn(const AscendC::LocalTensor<T>& dst, const AscendC::GlobalTensor<T>& src,
                        const AscendC::DataCopyExtParams& params, const AscendC::DataCopyPadExtParams<T>& pad,
                        Site site) {
  Call call("DataCopyPad", PIPE_MTE2, site);
  if (params.blockCount == 0 || params.blockLen == 0) return;
  const View to = dst.View(), from = src.View();
  const uint64_t left = compact ? 0 : pad.leftPadding * sizeof(T), right = compact ? 0 : pad.rightPadding * sizeof(T);
  const uint64_t row = compact ? params.blockLen : RoundUp(left + params.blockLen + right, 32);
  const uint64_t whole = uint64_t(params.blockCount) * params.blockLen;  // of compact blocks
  const int64_t fromStep = int64_t(params.blockLen) + int64_t(params.srcStride);
  const int64_t toStep = int64_t(row) + (compact ? 0 : int64_t(params.dstStride) * 32);
  CheckPadLimits<T>(call, params, true, compact);
  if (left > 32 || right > 32)
    call.Problem(true, "copy-limit", "paddings are %llu and %llu bytes, the limit is 32", (unsigned long long)left,
                 (unsigned long long)right);
  if constexpr (sizeof(T) == 8) {
    if (pad.isPad && BitCast<uint64_t>(pad.paddingValue) != 0)
      call.Problem(false, "copy-limit", "the padding value of a 64-bit type can only be 0");
  }
  const LoopMode loops = LoopsOf(call.core, kFromGm);
  Touch(call, kFromGm, from, to, {params.blockCount, params.blockLen, row, fromStep, toStep});
  if (compact)
    EachCopy(loops, [&](uint64_t, uint64_t at) { call.Extend(to.address + at + whole, RoundUp(whole, 32) - whole); });
  if (!call.Issue()) return;
  const bool padded = left + right != 0;
  // No page says what fills up a compact copy without isPad where SetPadValue was called.
  const bool undefined = !pad.isPad && (compact ? padValue.set : padded && !padValue.set);
  auto fillUp = [&](uint64_t at, uint64_t bytes, const uint8_t* block) {
    if (undefined) return call.Undefined(at, bytes);
    T fill = pad.paddingValue;
    if (!pad.isPad) std::memcpy(&fill, padded ? reinterpret_cast<const uint8_t*>(&padValue.bits) : block, sizeof(T));
    for (uint64_t b = 0; b + sizeof(T) <= bytes; b += sizeof(T)) std::memcpy(call.core.ub + at + b, &fill, sizeof(T));
  };
  EachCopy(loops, [&](uint64_t fromAt, uint64_t toAt) {
    for (uint32_t i = 0; i < params.blockCount; ++i) {
      const uint64_t at = to.address + toAt + uint64_t(int64_t(i) * toStep), end = at + left + params.blockLen;
      const uint8_t* in = reinterpret_cast<const uint8_t*>(from.address + fromAt + uint64_t(int64_t(i) * fromStep));
      std::memcpy(call.core.ub + at + left, in, params.blockLen);
      fillUp(at, left, in);
      if (!compact) fillUp(end, row - left - params.blockLen, in);
      else if (i + 1 == params.blockCount) fillUp(end, RoundUp(whole, 32) - whole, in);
    }
  });
}

template <typename T, bool compact>
TWIN_OUTLINE void PadOut(const AscendC::GlobalTensor<T>& dst, const AscendC::LocalTensor<T>& src,
                         const AscendC::DataCopyExtParams& params, Site site) {
  Call call("DataCopyPad", PIPE_MTE3, site);
  if (params.blockCount == 0 || params.blockLen == 0) return;
  CheckPadLimits<T>(call, params, false, compact);
  const int64_t step = compact ? params.blockLen : RoundUp(params.blockLen, 32) + int64_t(params.srcStride) * 32;
  CopyOut(call, src.View(), dst.View(),
          {params.blockCount, params.blockLen, params.blockLen, step,
           int64_t(params.blockLen) + int64_t(params.dstStride)});
}

}  // inline namespace
}  // namespace twin

namespace AscendC {

// GM to UB. count * sizeof(T) is a multiple of 32; what is over is not copied.
template <typename T>
TWIN_OUTLINE void DataCopy(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const uint32_t count,
                     twin::Site site = twin::Site::Here()) {
  twin::Call call("DataCopy", PIPE_MTE2, site);
  uint64_t bytes = twin::BytesOf<T>(count) / 32 * 32;
  twin::CheckWholeBlocks<T>(call, count);
  twin::CopyIn(call, src.View(), dst.View(), {1, bytes, bytes, 0, 0});
}

template <typename T>
TWIN_OUTLINE void DataCopy(const GlobalTensor<T>& dst, const LocalTensor<T>& src, const uint32_t count,
                     twin::Site site = twin::Site::Here()) {
  twin::Call call("DataCopy", PIPE_MTE3, site);
  uint64_t bytes = twin::BytesOf<T>(count) / 32 * 32;
  twin::CheckWholeBlocks<T>(call, count);
  twin::CopyOut(call, src.View(), dst.View(), {1, bytes, bytes, 0, 0});
}

// Within UB, on the vector pipe.
template <typename T>
TWIN_OUTLINE void DataCopy(const LocalTensor<T>& dst, const LocalTensor<T>& src, const uint32_t count,
                     twin::Site site = twin::Site::Here()) {
  twin::Call call("DataCopy", PIPE_V, site);
  uint64_t bytes = twin::BytesOf<T>(count) / 32 * 32;
  twin::View to = dst.View(), from = src.View();
  twin::CheckWholeBlocks<T>(call, count);
  call.Ub("src", false, from.address, bytes, from.low, from.high, 32);
  call.Ub("dst", true, to.address, bytes, to.low, to.high, 32);
  if (from.address < to.address && to.address < from.address + bytes)
    call.Problem(false, "overlap", "dst starts %llu bytes into src: blocks are overwritten before they are read",
                 (unsigned long long)(to.address - from.address));
  if (call.Issue(uint32_t((bytes + 255) / 256)))
    std::memmove(call.core.ub + to.address, call.core.ub + from.address, bytes);
}

template <typename T>
TWIN_OUTLINE void DataCopy(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const DataCopyParams& params,
                     twin::Site site = twin::Site::Here()) {
  twin::Call call("DataCopy", PIPE_MTE2, site);
  const uint64_t bytes = params.blockLen * 32ull;
  twin::CheckBlockCount(call, params.blockCount);
  twin::CopyIn(call, src.View(), dst.View(),
               {params.blockCount, bytes, bytes, int64_t(bytes) + params.srcStride * 32ll,
                int64_t(bytes) + params.dstStride * 32ll});
}

template <typename T>
TWIN_OUTLINE void DataCopy(const GlobalTensor<T>& dst, const LocalTensor<T>& src, const DataCopyParams& params,
                     twin::Site site = twin::Site::Here()) {
  twin::Call call("DataCopy", PIPE_MTE3, site);
  const uint64_t bytes = params.blockLen * 32ull;
  twin::CheckBlockCount(call, params.blockCount);
  twin::CopyOut(call, src.View(), dst.View(),
                {params.blockCount, bytes, bytes, int64_t(bytes) + params.srcStride * 32ll,
                 int64_t(bytes) + params.dstStride * 32ll});
}

template <typename T>
TWIN_OUTLINE void DataCopy(const LocalTensor<T>& dst, const LocalTensor<T>& src, const DataCopyParams& params,
                     twin::Site site = twin::Site::Here()) {
  twin::Call call("DataCopy", PIPE_V, site);
  twin::View to = dst.View(), from = src.View();
  uint64_t bytes = params.blockLen * 32ull, fromStep = bytes + params.srcStride * 32ull;
  uint64_t toStep = bytes + params.dstStride * 32ull;
  twin::CheckBlockCount(call, params.blockCount);
  call.UbPieces("src", false, from.address, params.blockCount, bytes, int64_t(fromStep), from.low, from.high, 32);
  call.UbPieces("dst", true, to.address, params.blockCount, bytes, int64_t(toStep), to.low, to.high, 32);
  if (!call.Issue(uint32_t((bytes * params.blockCount + 255) / 256))) return;
  for (uint32_t i = 0; i < params.blockCount; ++i)
    std::memmove(call.core.ub + to.address + i * toStep, call.core.ub + from.address + i * fromStep, bytes);
}

// The value that DataCopyPad fills up with where isPad is false and padding is asked for.
template <typename T, TPosition pos = TPosition::MAX>
inline void SetPadValue(T paddingValue) {
  static_assert(pos == TPosition::VECIN || pos == TPosition::VECOUT || pos == TPosition::MAX,
                "SetPadValue is for copies to VECIN and VECOUT");
  static_assert(twin::OneOf<T, int8_t, uint8_t, int16_t, uint16_t, half, bfloat16_t, int32_t, uint32_t, float, int64_t,
                            uint64_t> || (__NPU_ARCH__ == 3510 && std::is_same<T, bool>::value),
                "SetPadValue takes the type that DataCopyPad copies");
  twin::padValue.bits = 0;
  std::memcpy(&twin::padValue.bits, &paddingValue, sizeof(T));
  twin::padValue.set = true;
}

#if __NPU_ARCH__ == 3510
#define TWIN_PAD_TEMPLATE template <typename T, PaddingMode mode = PaddingMode::Normal>
#define TWIN_COMPACT (mode == PaddingMode::Compact)
#else
#define TWIN_PAD_TEMPLATE template <typename T>
#define TWIN_COMPACT false
#endif

// GM to UB by the byte. Each block lands on a 32-byte boundary of UB, preceded and followed by the padding asked for
// and filled up to 32 bytes; in compact mode (950) the blocks follow each other, and what fills up is behind the last
// of them only. What fills up is the padding value with isPad; without, the block's first element, if no padding is
// asked for, and otherwise what SetPadValue set, or undefined bytes.
TWIN_PAD_TEMPLATE
inline void DataCopyPad(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const DataCopyExtParams& params,
                        const DataCopyPadExtParams<T>& pad, twin::Site site = twin::Site::Here()) {
  twin::PadIn<T, TWIN_COMPACT>(dst, src, params, pad, site);
}

// UB to GM by the byte: exactly blockLen bytes of each block, which starts on 32 bytes of UB, or in compact mode where
// the one before it ends.
TWIN_PAD_TEMPLATE
inline void DataCopyPad(const GlobalTensor<T>& dst, const LocalTensor<T>& src, const DataCopyExtParams& params,
                        twin::Site site = twin::Site::Here()) {
  twin::PadOut<T, TWIN_COMPACT>(dst, src, params, site);
}

// The older parameter structs, with byte lengths: strides of the GM side are bytes, of the UB side 32-byte blocks.
TWIN_PAD_TEMPLATE
inline void DataCopyPad(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const DataCopyParams& params,
                        const DataCopyPadParams& pad, twin::Site site = twin::Site::Here()) {
  T value{};
  std::memcpy(&value, &pad.paddingValue, sizeof(T));
  twin::PadIn<T, TWIN_COMPACT>(
      dst, src, DataCopyExtParams(params.blockCount, params.blockLen, params.srcStride, params.dstStride, 0),
      DataCopyPadExtParams<T>(pad.isPad, pad.leftPadding, pad.rightPadding, value), site);
}

TWIN_PAD_TEMPLATE
inline void DataCopyPad(const GlobalTensor<T>& dst, const LocalTensor<T>& src, const DataCopyParams& params,
                        twin::Site site = twin::Site::Here()) {
  twin::PadOut<T, TWIN_COMPACT>(
      dst, src, DataCopyExtParams(params.blockCount, params.blockLen, params.srcStride, params.dstStride, 0), site);
}
#undef TWIN_PAD_TEMPLATE
#undef TWIN_COMPACT

#if __NPU_ARCH__ == 3510
// Copies of that direction repeat from here to ResetLoopModePara.
inline void SetLoopModePara(const LoopModeParams& loopParams, DataCopyMVType type,
                            twin::Site site = twin::Site::Here()) {
  const LoopModeParams& p = loopParams;
  const bool out = type == DataCopyMVType::UB_TO_OUT;
  if (p.loop1Size >> 21 || p.loop2Size >> 21)
    twin::Report("copy-limit", site, "SetLoopModePara: loops of %u and %u, the limit is 2097151", p.loop1Size,
                 p.loop2Size);
  for (uint64_t stride : {p.loop1SrcStride, p.loop1DstStride, p.loop2SrcStride, p.loop2DstStride})
    if (stride >> 40)
      twin::Report("copy-limit", site, "SetLoopModePara: a stride of %llu bytes in GM, the limit is 2^40 - 1",
                   (unsigned long long)stride);
  for (uint64_t stride : {out ? p.loop1SrcStride : p.loop1DstStride, out ? p.loop2SrcStride : p.loop2DstStride})
    if (stride >> 21 || stride % 32)
      twin::Report("copy-limit", site, "SetLoopModePara: a stride of %llu bytes in UB, a multiple of 32 below 2^21",
                   (unsigned long long)stride);
  twin::ThisCore().loops[out ? twin::kToGm : twin::kFromGm] = {p.loop1Size,      p.loop2Size,      p.loop1SrcStride,
                                                                p.loop1DstStride, p.loop2SrcStride, p.loop2DstStride};
}
inline void ResetLoopModePara(DataCopyMVType type) {
  twin::ThisCore().loops[type == DataCopyMVType::UB_TO_OUT ? twin::kToGm : twin::kFromGm] = {};
}
#endif

// Sets `count` elements of GM. The device goes through UB and MTE3; no UB of the kernel's is used here.
template <typename T>
TWIN_OUTLINE void InitGlobalMemory(GlobalTensor<T>& gm, const uint64_t count, const T value,
                             twin::Site site = twin::Site::Here()) {
  static_assert(twin::OneOf<T, int16_t, uint16_t, half, int32_t, uint32_t, float>,
                "InitGlobalMemory takes 16-bit and 32-bit types other than bfloat16_t");
  twin::Call call("InitGlobalMemory", PIPE_MTE3, site);
  twin::View to = gm.View();
  call.Gm("gm", true, to.address, 1, count * sizeof(T), 0, to.low, to.high);
  if (!call.Issue()) return;
  for (uint64_t i = 0; i < count; ++i)
    std::memcpy(reinterpret_cast<void*>(to.address + i * sizeof(T)), &value, sizeof(T));
}

template <typename T>
inline void Fill(GlobalTensor<T>& gm, const uint64_t count, const T value, twin::Site site = twin::Site::Here()) {
  InitGlobalMemory(gm, count, value, site);
}

// The older name.
template <typename T>
inline void InitOutput(GlobalTensor<T> gm, uint32_t size, T value = 0, twin::Site site = twin::Site::Here()) {
  InitGlobalMemory(gm, size, value, site);
}

}  // namespace AscendC
