// What is left of divisions.
#pragma once

#include "aclnn/acl_meta.h"

extern "C" {

aclnnStatus aclnnFmodTensorGetWorkspaceSize(const aclTensor *self, const aclTensor *other, aclTensor *out, uint64_t
    *workspaceSize, aclOpExecutor **executor);
aclnnStatus aclnnFmodTensor(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);

}  // extern "C"
