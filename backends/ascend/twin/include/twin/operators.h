// Whole tensors in expressions: `c = a + b;` computes as many elements as c has, and `bits = a < b;` compares as many as a
// has. An expression is assigned to a tensor at once; the device has no other use for it either.
#pragma once
#include "twin/select.h"

namespace AscendC {

template <typename T>
template <twin::TensorOp op>
inline void LocalTensor<T>::operator=(const twin::Expression<T, op>& right) {
  using twin::TensorOp;
  static_assert(!twin::IsComparison(op), "a comparison of tensors is assigned to a uint8_t tensor");
  const int32_t count = int32_t(GetSize());
  if constexpr (op == TensorOp::kAdd) Add(*this, right.src0, right.src1, count, right.site);
  else if constexpr (op == TensorOp::kSub) Sub(*this, right.src0, right.src1, count, right.site);
  else if constexpr (op == TensorOp::kMul) Mul(*this, right.src0, right.src1, count, right.site);
  else if constexpr (op == TensorOp::kDiv) Div(*this, right.src0, right.src1, count, right.site);
  else if constexpr (op == TensorOp::kOr) Or(*this, right.src0, right.src1, count, right.site);
  else if constexpr (op == TensorOp::kAnd) And(*this, right.src0, right.src1, count, right.site);
}

template <typename T>
template <typename U, twin::TensorOp op>
inline std::enable_if_t<twin::IsComparison(op) && !std::is_same<U, T>::value> LocalTensor<T>::operator=(
    const twin::Expression<U, op>& right) {
  constexpr CMPMODE modes[] = {CMPMODE::LT, CMPMODE::GT, CMPMODE::EQ, CMPMODE::LE, CMPMODE::GE, CMPMODE::NE};
  constexpr CMPMODE mode = modes[int(op) - int(twin::TensorOp::kLess)];
  Compare(*this, right.src0, right.src1, mode, right.src0.GetSize(), right.site);
}

}  // namespace AscendC
