// Slices replaced.
#pragma once

#include "aclnn/acl_meta.h"

extern "C" {

aclnnStatus aclnnIndexCopyGetWorkspaceSize(aclTensor *selfRef, int64_t dim, const aclTensor *index, const aclTensor
    *source, aclTensor *outRef, uint64_t *workspaceSize, aclOpExecutor **executor);
aclnnStatus aclnnIndexCopy(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);

}  // extern "C"
