// Dimensions from end to start.
#pragma once

#include "aclnn/acl_meta.h"

extern "C" {

aclnnStatus aclnnFlipGetWorkspaceSize(const aclTensor *self, const aclIntArray *dims, aclTensor *out, uint64_t
    *workspaceSize, aclOpExecutor **executor);
aclnnStatus aclnnFlip(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);

}  // extern "C"
