// LocalTensor and GlobalTensor: typed views of a core's unified buffer and of GM.
#pragma once
#include "twin/params.h"
#include "twin/scalar.h"

namespace AscendC {

template <typename T> class LocalTensor;

}  // namespace AscendC

namespace twin {
inline namespace TWIN_ABI {

template <typename T> inline constexpr uint64_t BytesOf(uint64_t count) { return count * sizeof(T); }
template <> inline constexpr uint64_t BytesOf<AscendC::int4b_t>(uint64_t count) { return (count + 1) / 2; }

// How the twin looks into a view; kernels have no use for it.
struct View {
  uint64_t address = 0;  // UB offset, or GM address
  uint64_t low = 0, high = 0;
};

// One element, as `tensor(index)` gives it: read where its value is asked for, written where it is assigned to.
template <typename Tensor>
class ElementAt {
 public:
  using T = typename Tensor::PrimType;
  ElementAt(const Tensor& tensor, uint64_t index, Site site) : tensor_(tensor), index_(index), site_(site) {}
  operator T() const { return tensor_.GetValue(Index(index_), site_); }
  template <typename U, typename = std::enable_if_t<std::is_arithmetic<U>::value && std::is_class<T>::value>>
  explicit operator U() const { return U(T(*this)); }
  ElementAt& operator=(T value) {
    tensor_.SetValue(Index(index_), value, site_);
    return *this;
  }
  ElementAt& operator=(const ElementAt& other) { return *this = T(other); }
  template <typename Other>
  ElementAt& operator=(const ElementAt<Other>& other) { return *this = T(typename Other::PrimType(other)); }
  template <typename U> ElementAt& operator+=(U value) { return *this = T(T(*this) + value); }
  template <typename U> ElementAt& operator-=(U value) { return *this = T(T(*this) - value); }
  template <typename U> ElementAt& operator*=(U value) { return *this = T(T(*this) * value); }
  template <typename U> ElementAt& operator/=(U value) { return *this = T(T(*this) / value); }

 private:
  using Index = std::conditional_t<std::is_same<Tensor, AscendC::LocalTensor<T>>::value, uint32_t, uint64_t>;
  Tensor tensor_;
  uint64_t index_;
  Site site_;
};

// The right side of an operator with the place where it stands: operators have no defaulted parameters.
template <typename T>
struct Located {
  Located(const AscendC::LocalTensor<T>& tensor, Site site = Site::Here()) : tensor(tensor), site(site) {}
  const AscendC::LocalTensor<T>& tensor;
  Site site;
};

// `a + b` and `a < b` of whole tensors: requests, which assigning to a tensor carries out (operators.h).
enum class TensorOp : uint8_t { kAdd, kSub, kMul, kDiv, kOr, kAnd, kLess, kGreater, kEqual, kLessEqual, kGreaterEqual,
                                kNotEqual };
template <typename T, TensorOp op>
struct Expression {
  const AscendC::LocalTensor<T>&src0, &src1;
  Site site;
};
constexpr bool IsComparison(TensorOp op) { return op >= TensorOp::kLess; }

}  // inline namespace
}  // namespace twin

namespace AscendC {

// A view of UB: `count` elements of T from a byte address. All VEC positions are the same memory.
template <typename T>
class LocalTensor {
 public:
  using PrimType = T;
  LocalTensor() = default;
  LocalTensor(TPosition position, uint32_t address, uint32_t count, twin::Site site = twin::Site::Here())
      : position_(position), address_(address), low_(address), high_(address + twin::BytesOf<T>(count)),
        count_(count) {
    twin::NewLocal(low_, high_, site);
  }

  LocalTensor operator[](const uint32_t offset) const {
    LocalTensor view = *this;
    view.address_ += uint32_t(twin::BytesOf<T>(offset));
    view.count_ = offset < count_ ? count_ - offset : 0;
    return view;
  }

  T GetValue(const uint32_t index, twin::Site site = twin::Site::Here()) const {
    static_assert(!std::is_same<T, int4b_t>::value, "an int4b_t tensor has no scalar access");
    twin::Call call("GetValue", PIPE_S, site);
    uint64_t at = address_ + uint64_t(index) * sizeof(T);
    call.Ub("src", false, at, sizeof(T), low_, high_, sizeof(T));
    T value{};
    if (call.Issue()) std::memcpy(&value, call.core.ub + at, sizeof(T));
    return value;
  }

  // The value converts to T, as on the device: SetValue(0, 1) on a float tensor is fine.
  template <typename U>
  void SetValue(const uint32_t index, const U value, twin::Site site = twin::Site::Here()) const {
    static_assert(std::is_convertible<U, T>::value, "the value does not convert to the tensor's type");
    twin::Call call("SetValue", PIPE_S, site);
    uint64_t at = address_ + uint64_t(index) * sizeof(T);
    call.Ub("dst", true, at, sizeof(T), low_, high_, sizeof(T));
    T converted = static_cast<T>(value);
    if (call.Issue()) std::memcpy(call.core.ub + at, &converted, sizeof(T));
  }

  template <typename U>
  LocalTensor<U> ReinterpretCast() const {
    LocalTensor<U> view;
    view.position_ = position_;
    view.address_ = address_;
    view.low_ = low_;
    view.high_ = high_;
    view.count_ = uint32_t(twin::BytesOf<T>(count_) / sizeof(U) * (std::is_same<U, int4b_t>::value ? 2 : 1));
    return view;
  }

  // The element, for reading and for writing.
  twin::ElementAt<LocalTensor> operator()(const uint32_t offset, twin::Site site = twin::Site::Here()) const {
    return {*this, offset, site};
  }

#define TWIN_TENSOR_OPERATOR(symbol, op)                                                                               \
  twin::Expression<T, twin::TensorOp::op> operator symbol(const twin::Located<T>& right) const {                       \
    return {*this, right.tensor, right.site};                                                                          \
  }
  TWIN_TENSOR_OPERATOR(+, kAdd)
  TWIN_TENSOR_OPERATOR(-, kSub)
  TWIN_TENSOR_OPERATOR(*, kMul)
  TWIN_TENSOR_OPERATOR(/, kDiv)
  TWIN_TENSOR_OPERATOR(|, kOr)
  TWIN_TENSOR_OPERATOR(&, kAnd)
  TWIN_TENSOR_OPERATOR(<, kLess)
  TWIN_TENSOR_OPERATOR(>, kGreater)
  TWIN_TENSOR_OPERATOR(==, kEqual)
  TWIN_TENSOR_OPERATOR(<=, kLessEqual)
  TWIN_TENSOR_OPERATOR(>=, kGreaterEqual)
  TWIN_TENSOR_OPERATOR(!=, kNotEqual)
#undef TWIN_TENSOR_OPERATOR
  template <twin::TensorOp op>
  void operator=(const twin::Expression<T, op>& right);
  template <typename U, twin::TensorOp op>
  std::enable_if_t<twin::IsComparison(op) && !std::is_same<U, T>::value> operator=(const twin::Expression<U, op>& right);

  uint32_t GetSize() const { return count_; }
  uint32_t GetLength() const { return uint32_t(twin::BytesOf<T>(count_)); }
  void SetSize(const uint32_t count) { count_ = count; }
  TPosition GetPosition() const { return position_; }
  uint64_t GetPhyAddr() const { return address_; }
  void SetAddrWithOffset(const LocalTensor<T>& from, uint32_t offset) { *this = from[offset]; }

  twin::View View() const { return {address_, low_, high_}; }
  // For the twin's allocators: a view of a buffer larger than the view.
  static LocalTensor In(TPosition position, uint32_t address, uint32_t count, uint32_t low, uint32_t high) {
    LocalTensor view;
    view.position_ = position;
    view.address_ = address;
    view.count_ = count;
    view.low_ = low;
    view.high_ = high;
    return view;
  }

 private:
  template <typename U> friend class LocalTensor;
  TPosition position_ = TPosition::VECCALC;
  uint32_t address_ = 0;
  uint64_t low_ = 0, high_ = 0;
  uint32_t count_ = 0;
};

enum class Hardware : uint8_t { GM, UB, L1, L0A, L0B, L0C, BIAS, FIXBUF, MAX };

// Hands out UB from its start on, 32 bytes at a time, without TPipe: it orders nothing.
template <Hardware hardware = Hardware::UB>
class LocalMemAllocator {
 public:
  static_assert(hardware == Hardware::UB, "the twin runs vector cores only: of local memory it has UB");
  template <TPosition position, class DataType>
  LocalTensor<DataType> Alloc(uint32_t tileSize, twin::Site site = twin::Site::Here()) {
    const uint32_t address = used_;
    used_ += uint32_t(twin::RoundUp(twin::BytesOf<DataType>(tileSize), 32));
    return LocalTensor<DataType>(position, address, tileSize, site);
  }
  template <class DataType>
  LocalTensor<DataType> Alloc(uint32_t tileSize, twin::Site site = twin::Site::Here()) {
    return Alloc<TPosition::VECCALC, DataType>(tileSize, site);
  }
  template <TPosition position, class DataType, uint32_t tileSize>
  LocalTensor<DataType> Alloc(twin::Site site = twin::Site::Here()) {
    return Alloc<position, DataType>(tileSize, site);
  }
  template <class DataType, uint32_t tileSize>
  LocalTensor<DataType> Alloc(twin::Site site = twin::Site::Here()) {
    return Alloc<TPosition::VECCALC, DataType>(tileSize, site);
  }
  uint32_t GetCurAddr() const { return used_; }

 private:
  uint32_t used_ = 0;
};

// A view of GM. With a size, accesses beyond it are findings even inside the kernel argument.
template <typename T>
class GlobalTensor {
 public:
  using PrimType = T;
  GlobalTensor() = default;
  void SetGlobalBuffer(__gm__ T* buffer, uint64_t count) {
    SetGlobalBuffer(buffer);
    high_ = uint64_t(buffer) + twin::BytesOf<T>(count);
    count_ = count;
  }
  void SetGlobalBuffer(__gm__ T* buffer) {
    buffer_ = buffer;
    low_ = uint64_t(buffer);
    high_ = ~0ull;
    count_ = 0;
  }

  GlobalTensor operator[](const uint64_t offset) const {
    GlobalTensor view = *this;
    view.buffer_ = reinterpret_cast<T*>(uint64_t(buffer_) + twin::BytesOf<T>(offset));
    view.count_ = offset < count_ ? count_ - offset : 0;
    return view;
  }

  T GetValue(const uint64_t index, twin::Site site = twin::Site::Here()) const {
    twin::Call call("GetValue", PIPE_S, site);
    uint64_t at = uint64_t(buffer_) + index * sizeof(T);
    call.Gm("src", false, at, 1, sizeof(T), 0, low_, high_);
    T value{};
    if (call.Issue()) std::memcpy(&value, reinterpret_cast<const void*>(at), sizeof(T));
    return value;
  }

  void SetValue(const uint64_t index, T value, twin::Site site = twin::Site::Here()) {
    twin::Call call("SetValue", PIPE_S, site);
    uint64_t at = uint64_t(buffer_) + index * sizeof(T);
    call.Gm("dst", true, at, 1, sizeof(T), 0, low_, high_);
    if (call.Issue()) std::memcpy(reinterpret_cast<void*>(at), &value, sizeof(T));
  }

  twin::ElementAt<GlobalTensor> operator()(const uint64_t offset, twin::Site site = twin::Site::Here()) const {
    return {*this, offset, site};
  }

  // A hint about the L2 cache, which the twin does not model: results do not depend on it.
  template <CacheRwMode mode = CacheRwMode::RW>
  void SetL2CacheHint(CacheMode) {}

  template <typename U>
  GlobalTensor<U> ReinterpretCast() const {
    GlobalTensor<U> view;
    view.buffer_ = reinterpret_cast<U*>(buffer_);
    view.low_ = low_;
    view.high_ = high_;
    view.count_ = twin::BytesOf<T>(count_) / sizeof(U);
    return view;
  }

  uint64_t GetSize() const { return count_; }
  const __gm__ T* GetPhyAddr() const { return buffer_; }
  __gm__ T* GetPhyAddr(const uint64_t offset) const { return buffer_ + offset; }
  twin::View View() const { return {uint64_t(buffer_), low_, high_}; }

 private:
  template <typename U> friend class GlobalTensor;
  T* buffer_ = nullptr;
  uint64_t low_ = 0, high_ = ~0ull, count_ = 0;
};

// The block's number and the launch's size; a vector-only kernel counts vector cores.
inline int64_t GetBlockIdx() { return twin::ThisCore().block; }
inline int64_t GetBlockNum() { return twin::ThisCore().blocks; }
inline int64_t GetSubBlockIdx() { return 0; }
inline int64_t GetSubBlockNum() { return 1; }

}  // namespace AscendC
