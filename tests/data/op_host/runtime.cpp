// The runtime behind acl/acl.h and aclnn/acl_meta.h, in host memory: what device memory may not be used for aborts.
#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

#include "aclnn/acl_meta.h"

struct aclTensor {
    std::vector<int64_t> dims;
    aclDataType dtype;
    void *data;
};

namespace {

int g_open = 0;  // what has been made and not yet been given back
bool g_finalized = false;
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
    const auto found = g_memory.find(const_cast<void *>(address));
    return found != g_memory.end() && size <= found->second;
}

}  // namespace

extern "C" {

aclError aclInit(const char *) { return Count(1); }
aclError aclFinalize()
{
    g_finalized = true;
    return Count(-1);
}
aclError aclrtSetDevice(int32_t device) { return device == 0 ? Count(1) : 107001; }
aclError aclrtResetDevice(int32_t) { return Count(-1); }
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
    int64_t stride = 1;
    for (uint64_t i = rank; i > 0; --i) {
        if (strides[i - 1] != stride || dims[i - 1] != storageDims[i - 1]) {
            return nullptr;
        }
        stride *= dims[i - 1];
    }
    if (offset != 0 || format != ACL_FORMAT_ND || storageRank != rank || !IsInside(data, 0)) {
        return nullptr;
    }
    Count(1);
    return new aclTensor{std::vector<int64_t>(dims, dims + rank), dtype, data};
}
aclnnStatus aclDestroyTensor(const aclTensor *tensor)
{
    delete tensor;
    return Count(-1);
}

// For the operators that a test makes up: the memory of a tensor.
void *TestData(const aclTensor *tensor) { return tensor->data; }

}  // extern "C"
