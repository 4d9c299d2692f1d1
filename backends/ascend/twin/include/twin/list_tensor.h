// A list of tensors as one kernel argument: a table in GM of their shapes and addresses.
//
//     word 0                  bytes from here to the addresses
//     for each tensor         its number << 32 | dimensions, then the dimensions (64 bits each)
//     addresses               one a tensor
//
// Without shapes the table is: 24, count << 32, 0xffffffff, addresses. A launch makes one of a list of arrays.
#pragma once
#include "twin/tensor.h"

namespace AscendC {

class ListTensorDesc;

// What GetDesc finds out about one tensor. Its shape goes to memory that the kernel gives.
template <class T>
class TensorDesc {
 public:
  void SetShapeAddr(uint64_t* shapePtr) { shape_ = shapePtr; }
  uint64_t GetDim() { return dim_; }
  uint64_t GetIndex() { return index_; }
  uint64_t GetShape(uint32_t offset, twin::Site site = twin::Site::Here()) {
    if (offset < dim_ && shape_) return shape_[offset];
    twin::Report("list-tensor", site, "GetShape(%u) of a tensor of %llu dimensions", offset, (unsigned long long)dim_);
    return 0;
  }
  __gm__ T* GetDataPtr() { return data_; }
  GlobalTensor<T> GetDataObj() {
    GlobalTensor<T> tensor;
    tensor.SetGlobalBuffer(data_);
    return tensor;
  }

 private:
  friend class ListTensorDesc;
  uint64_t dim_ = 0, index_ = 0;
  uint64_t* shape_ = nullptr;
  T* data_ = nullptr;
};

class ListTensorDesc {
 public:
  ListTensorDesc() = default;
  ListTensorDesc(__gm__ void* data, uint32_t length = 0xffffffff, uint32_t shapeSize = 0xffffffff,
                 twin::Site site = twin::Site::Here()) {
    Init(data, length, shapeSize, site);
  }
  // `length` (bytes) and `shapeSize` (tensors) are checked where both are given.
  void Init(__gm__ void* data, uint32_t length = 0xffffffff, uint32_t shapeSize = 0xffffffff,
            twin::Site site = twin::Site::Here()) {
    const uint64_t* table = static_cast<const uint64_t*>(data);
    const uint64_t bytes = data ? twin::GmBytesFrom(uint64_t(data)) : 0;
    count_ = 0;
    if (bytes < 24 || table[0] % 8 || table[0] < 24 || table[0] > bytes)
      return twin::Report("list-tensor", site, "the argument is no list of tensors");
    dim_ = uint32_t(table[1]);
    words_ = dim_ ? 1 + dim_ : 2;
    shapes_ = table + 1;
    addresses_ = table + table[0] / 8;
    count_ = uint32_t(table[1] >> 32);
    if (count_ == 0) count_ = uint32_t(addresses_[-int64_t(words_)] >> 32) + 1;
    const uint64_t expected = dim_ ? 8 + uint64_t(count_) * words_ * 8 : 24;
    if (table[0] != expected || table[0] + uint64_t(count_) * 8 > bytes) {
      count_ = 0;
      return twin::Report("list-tensor", site, "the table of a list of tensors is not whole");
    }
    if (length != 0xffffffff && shapeSize != 0xffffffff && (shapeSize != count_ || length != table[0] + count_ * 8))
      twin::Report("list-tensor", site, "a list of %u tensors in %u bytes, and the table has %u in %llu", shapeSize, length,
                   count_, (unsigned long long)(table[0] + count_ * 8));
  }
  template <class T>
  void GetDesc(TensorDesc<T>& desc, uint32_t index, twin::Site site = twin::Site::Here()) {
    if (!Has(index, site)) return;
    if (!dim_ || !desc.shape_)
      return twin::Report("list-tensor", site, dim_ ? "GetDesc before SetShapeAddr" : "GetDesc of a list without shapes");
    desc.dim_ = dim_;
    desc.index_ = index;
    desc.data_ = GetDataPtr<T>(index, site);
    for (uint32_t i = 0; i < dim_; ++i) desc.shape_[i] = shapes_[uint64_t(index) * words_ + 1 + i];
  }
  template <class T>
  __gm__ T* GetDataPtr(uint32_t index, twin::Site site = twin::Site::Here()) {
    return Has(index, site) ? reinterpret_cast<T*>(addresses_[index]) : nullptr;
  }
  uint32_t GetSize() { return count_; }

 private:
  bool Has(uint32_t index, twin::Site site) const {
    if (index < count_) return true;
    twin::Report("list-tensor", site, "tensor %u of a list of %u", index, count_);
    return false;
  }
  const uint64_t *shapes_ = nullptr, *addresses_ = nullptr;
  uint32_t dim_ = 0, words_ = 0, count_ = 0;
};

}  // namespace AscendC
