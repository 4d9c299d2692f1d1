// The contexts that tiling and inference get. A member that only the tests use is `test`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <vector>

#include "graph/types.h"

namespace fe {
class PlatFormInfos {
public:
    uint32_t testVectorCores = 0;
};
}  // namespace fe

namespace gert {

struct Shape {
    static constexpr size_t kMaxDimNum = 25;

    Shape() = default;
    size_t GetDimNum() const { return dimNum_; }
    void SetDimNum(const size_t dimNum)
    {
        if (dimNum > kMaxDimNum) {
            std::abort();
        }
        dimNum_ = dimNum;
    }
    int64_t GetDim(const size_t idx) const
    {
        if (idx >= dimNum_) {
            std::abort();
        }
        return dims_[idx];
    }
    void SetDim(size_t idx, const int64_t value)
    {
        if (idx >= dimNum_) {
            std::abort();
        }
        dims_[idx] = value;
    }

private:
    size_t dimNum_ = 0;
    int64_t dims_[kMaxDimNum] = {};
};

class StorageShape {
public:
    explicit StorageShape(const Shape &shape) : shape_(shape) {}
    const Shape &GetStorageShape() const { return shape_; }
    const Shape &GetOriginShape() const { return shape_; }

private:
    Shape shape_;
};

class TilingContext {
public:
    const StorageShape *GetInputShape(const size_t index) const { return At(testInputs, index); }
    const StorageShape *GetOutputShape(const size_t index) const { return At(testOutputs, index); }
    fe::PlatFormInfos *GetPlatformInfo() const { return const_cast<fe::PlatFormInfos *>(&testPlatform); }
    template <typename T>
    T *GetTilingData()
    {
        static_assert(std::is_standard_layout<T>::value && std::is_trivially_copyable<T>::value, "plain data");
        if (sizeof(T) > testCapacity) {
            return nullptr;
        }
        testData.assign(sizeof(T), 0xEE);
        return reinterpret_cast<T *>(testData.data());
    }
    size_t *GetWorkspaceSizes(const size_t count)
    {
        testWorkspaces.assign(count, 0xEEEE);
        return testWorkspaces.data();
    }
    ge::graphStatus SetBlockDim(const uint32_t blockDim)
    {
        testBlockDim = blockDim;
        return ge::GRAPH_SUCCESS;
    }
    ge::graphStatus SetScheduleMode(const uint32_t mode)
    {
        testScheduleMode = mode;
        return ge::GRAPH_SUCCESS;
    }

    std::vector<StorageShape> testInputs, testOutputs;
    fe::PlatFormInfos testPlatform;
    size_t testCapacity = 2048;
    std::vector<uint8_t> testData;
    std::vector<size_t> testWorkspaces;
    uint32_t testBlockDim = 0, testScheduleMode = 0;

private:
    static const StorageShape *At(const std::vector<StorageShape> &shapes, size_t index)
    {
        return index < shapes.size() ? &shapes[index] : nullptr;
    }
};

class InferShapeContext {
public:
    const Shape *GetInputShape(const size_t index) const { return index < testInputs.size() ? &testInputs[index] : nullptr; }
    Shape *GetOutputShape(const size_t index) { return index < testOutputs.size() ? &testOutputs[index] : nullptr; }

    std::vector<Shape> testInputs, testOutputs;
};

class InferDataTypeContext {
public:
    ge::DataType GetInputDataType(const size_t index) const
    {
        return index < testInputs.size() ? testInputs[index] : ge::DT_UNDEFINED;
    }
    ge::graphStatus SetOutputDataType(const size_t index, const ge::DataType dtype)
    {
        if (index >= testOutputs.size()) {
            return ge::GRAPH_FAILED;
        }
        testOutputs[index] = dtype;
        return ge::GRAPH_SUCCESS;
    }

    std::vector<ge::DataType> testInputs, testOutputs;
};

}  // namespace gert
