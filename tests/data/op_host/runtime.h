// What stands behind the handles of aclnn/acl_meta.h.
#pragma once

#include <vector>

#include "aclnn/acl_meta.h"

struct aclTensor {
    std::vector<int64_t> dims;
    std::vector<int64_t> strides;
    aclDataType dtype;
    void *data;
};
struct aclTensorList {
    std::vector<const aclTensor *> tensors;
};
struct aclIntArray {
    std::vector<int64_t> values;
};
struct aclScalar {
    int32_t value;
};
