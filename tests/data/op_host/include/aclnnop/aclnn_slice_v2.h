// Every so many positions.
#pragma once

#include "aclnn/acl_meta.h"

extern "C" {

aclnnStatus aclnnSliceV2GetWorkspaceSize(const aclTensor *self, const aclIntArray *starts, const aclIntArray *ends,
    const aclIntArray *axes, const aclIntArray *steps, aclTensor *out, uint64_t *workspaceSize, aclOpExecutor
    **executor);
aclnnStatus aclnnSliceV2(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);

}  // extern "C"
