// The compare register set by hand, and the forms of Select that read it. What it holds depends on the mode: the bits
// themselves (0), the scalar (1), or where in UB the bits are (2). These forms take the lanes from the mask register.
#pragma once
#include "twin/select.h"

namespace twin {
inline namespace TWIN_ABI {

// 16 bytes of the core's compare register, as a value.
template <typename T>
inline T CompareRegister(const Core& core) {
  T value;
  std::memcpy(&value, core.compareMask, sizeof(T));
  return value;
}

template <typename T>
TWIN_OUTLINE void SelectRegister(const Local<T>& dst, const View* selMask, const Local<T>& src0, const Local<T>* src1,
                                 SELMODE mode, const Repeat& repeat, const AscendC::BinaryRepeatParams& p, Site site) {
  Call call("Select", PIPE_V, site);
  Lanes lanes = LanesOf(call, uint64_t(0), repeat, 256 / sizeof(T), false);
  if (!call.core.counterMode) lanes.repeats = CheckRepeat(call, repeat);
  const bool same = mode == SELMODE::VSEL_CMPMASK_SPR;
  // In mode 2 a wrong address is a finding of bounds, like any other operand's.
  View bits{CompareRegister<uint32_t>(call.core), 0, call.core.ubBytes};
  if (selMask) bits = *selMask;
  if (!same)
    call.Ub("selMask", false, bits.address, uint64_t(lanes.perRepeat) / 8 * lanes.repeats, bits.low, bits.high, 32);
  Walk d{dst.View().address, sizeof(T), p.dstBlkStride, p.dstRepStride};
  Walk a{src0.View().address, sizeof(T), p.src0BlkStride, p.src0RepStride};
  Walk b{src1 ? src1->View().address : 0, sizeof(T), p.src1BlkStride, p.src1RepStride};
  Touch(call, "src0", false, src0.View(), a, lanes);
  if (src1) Touch(call, "src1", false, src1->View(), b, lanes);
  Touch(call, "dst", true, dst.View(), d, lanes);
  if (!call.Issue(lanes.repeats)) return;
  uint8_t* ub = call.core.ub;
  const uint8_t* mask = same ? call.core.compareMask : ub + bits.address;
  const T scalar = CompareRegister<T>(call.core);
  ForRuns(lanes, 32 / sizeof(T), [&](uint32_t r, uint32_t lane, uint32_t n) {
    const uint64_t bit = (same ? 0 : uint64_t(r) * lanes.perRepeat) + lane;
    const T* right = src1 ? As<T>(ub + b.At(r, lane)) : &scalar;
    SelectRun(As<T>(ub + d.At(r, lane)), mask, bit, As<T>(ub + a.At(r, lane)), right, !src1, n);
  });
}

}  // inline namespace
}  // namespace twin

namespace AscendC {

template <typename T>
inline void SetCmpMask(const LocalTensor<T>& src, twin::Site site = twin::Site::Here()) {
  twin::Call call("SetCmpMask", PIPE_V, site);
  twin::View view = src.View();
  call.Ub("src", false, view.address, 16, view.low, view.high, 16);
  if (call.Issue(1)) std::memcpy(call.core.compareMask, call.core.ub + view.address, 16);
}

template <typename T, SELMODE selMode>
inline void Select(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1,
                   const twin::Repeat repeatTime, const BinaryRepeatParams& repeatParams,
                   twin::Site site = twin::Site::Here()) {
  TWIN_TYPES(Select, TWIN_SELECTABLE);
  static_assert(selMode != SELMODE::VSEL_TENSOR_SCALAR_MODE,
                "Select of two tensors by the compare register has modes 0 and 2; mode 1 is Select(dst, selMask, src0, ...)");
  twin::SelectRegister(dst, nullptr, src0, &src1, selMode, repeatTime, repeatParams, site);
}
template <typename T, typename U>
inline void Select(const LocalTensor<T>& dst, const LocalTensor<U>& selMask, const LocalTensor<T>& src0,
                   const twin::Repeat repeatTime, const BinaryRepeatParams& repeatParams,
                   twin::Site site = twin::Site::Here()) {
  TWIN_MASK_TYPE(Select);
  TWIN_TYPES(Select, TWIN_SELECTABLE);
  const twin::View bits = selMask.View();
  twin::SelectRegister(dst, &bits, src0, (const LocalTensor<T>*)nullptr, SELMODE::VSEL_TENSOR_SCALAR_MODE, repeatTime,
                       repeatParams, site);
}

}  // namespace AscendC
