// Positions of minima.
#pragma once

#include "aclnn/acl_meta.h"

extern "C" {

aclnnStatus aclnnArgMinGetWorkspaceSize(const aclTensor *self, int64_t dim, bool keepdim, aclTensor *out, uint64_t
    *workspaceSize, aclOpExecutor **executor);
aclnnStatus aclnnArgMin(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);

}  // extern "C"
