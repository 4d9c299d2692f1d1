// The runtime behind acl/acl.h and aclnn/acl_meta.h, in host memory: what device memory may not be used for aborts.
#include <cstdlib>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "runtime.h"

namespace {

int g_open = 0;  // what has been made and not yet been given back
bool g_isSet = false, g_finalized = false;
std::map<void *, size_t> g_memory;

int Count(int change)
{
    g_open += change;
    return ACL_SUCCESS;
}

// Whether all was given back, by a program that ends as it should.
struct AtEnd {
    ~AtEnd()
    {
        if (g_finalized && (g_open != 0 || !g_memory.empty())) {
            std::_Exit(77);
        }
    }
} g_atEnd;

bool IsInside(const void *address, size_t size)
{
    const auto after = g_memory.upper_bound(const_cast<void *>(address));
    if (after == g_memory.begin()) {
        return false;
    }
    const auto &[start, room] = *std::prev(after);
    const size_t offset = static_cast<size_t>(static_cast<const char *>(address) - static_cast<const char *>(start));
    return offset + size <= room;
}

}  // namespace

extern "C" {

aclError aclInit(const char *) { return Count(1); }
aclError aclFinalize()
{
    g_finalized = true;
    return Count(-1);
}
aclError aclrtGetDeviceCount(uint32_t *count)
{
    const char *devices = std::getenv("STAND_IN_DEVICES");
    *count = devices == nullptr ? 1 : static_cast<uint32_t>(std::atoi(devices));
    return ACL_SUCCESS;
}
aclError aclrtSetDevice(int32_t device)
{
    Count(g_isSet ? 0 : 1);  // setting it again changes nothing
    g_isSet = true;
    return device == 0 ? ACL_SUCCESS : 107001;
}
aclError aclrtResetDevice(int32_t)
{
    Count(g_isSet ? -1 : 0);
    g_isSet = false;
    return ACL_SUCCESS;
}
aclError aclrtCreateStream(aclrtStream *stream)
{
    *stream = &g_open;
    return Count(1);
}
aclError aclrtDestroyStream(aclrtStream) { return Count(-1); }
aclError aclrtSynchronizeStream(aclrtStream stream) { return stream == &g_open ? ACL_SUCCESS : 107003; }
aclError aclrtMalloc(void **address, size_t size, aclrtMemMallocPolicy)
{
    *address = std::malloc(size);
    g_memory[*address] = size;
    return size == 0 ? 100000 : ACL_SUCCESS;
}
aclError aclrtFree(void *address)
{
    std::free(address);
    return g_memory.erase(address) == 1 ? ACL_SUCCESS : 100000;
}
aclError aclrtMemcpy(void *to, size_t room, const void *from, size_t size, aclrtMemcpyKind kind)
{
    if (size > room || !IsInside(kind == ACL_MEMCPY_HOST_TO_DEVICE ? to : from, size)) {
        return 100000;
    }
    std::memcpy(to, from, size);
    return ACL_SUCCESS;
}
const char *aclGetRecentErrMsg() { return nullptr; }

aclTensor *aclCreateTensor(const int64_t *dims, uint64_t rank, aclDataType dtype, const int64_t *strides, int64_t offset,
                           aclFormat format, const int64_t *storageDims, uint64_t storageRank, void *data)
{
    // In memory the dimensions lie one in the other; a view may have the last two the other way round.
    std::vector<int64_t> view(dims, dims + rank), steps(strides, strides + rank);
    if (rank >= 2 && steps[rank - 1] != 1) {
        std::swap(view[rank - 1], view[rank - 2]);
        std::swap(steps[rank - 1], steps[rank - 2]);
    }
    int64_t stride = 1;
    for (uint64_t i = rank; i > 0; --i) {
        if (steps[i - 1] != stride || view[i - 1] != storageDims[i - 1]) {
            return nullptr;
        }
        stride *= view[i - 1];
    }
    if (offset != 0 || format != ACL_FORMAT_ND || storageRank != rank || !IsInside(data, 0)) {
        return nullptr;
    }
    Count(1);
    return new aclTensor{std::vector<int64_t>(dims, dims + rank), std::vector<int64_t>(strides, strides + rank), dtype, data};
}
aclnnStatus aclDestroyTensor(const aclTensor *tensor)
{
    delete tensor;
    return Count(-1);
}

aclTensorList *aclCreateTensorList(const aclTensor *const *value, uint64_t size)
{
    Count(1);
    return new aclTensorList{std::vector<const aclTensor *>(value, value + size)};
}
aclnnStatus aclDestroyTensorList(const aclTensorList *list)
{
    for (const aclTensor *tensor : list->tensors) {
        aclDestroyTensor(tensor);
    }
    delete list;
    return Count(-1);
}
aclIntArray *aclCreateIntArray(const int64_t *value, uint64_t size)
{
    Count(1);
    return new aclIntArray{std::vector<int64_t>(value, value + size)};
}
aclnnStatus aclDestroyIntArray(const aclIntArray *array)
{
    delete array;
    return Count(-1);
}

aclScalar *aclCreateScalar(void *value, aclDataType dataType)
{
    if (dataType != ACL_INT32) {
        return nullptr;
    }
    Count(1);
    return new aclScalar{*static_cast<const int32_t *>(value)};
}
aclnnStatus aclDestroyScalar(const aclScalar *scalar)
{
    delete scalar;
    return Count(-1);
}

// For the operators that a test makes up: the memory of a tensor.
void *TestData(const aclTensor *tensor) { return tensor->data; }

}  // extern "C"
