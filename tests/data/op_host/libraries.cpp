// Operators of CANN's libraries for tests of host programs: float32, what the calls of a test need and nothing else.
#include <functional>

#include "aclnnop/aclnn_cast.h"
#include "aclnnop/aclnn_cumprod.h"
#include "aclnnop/aclnn_grouped_matmul_v5.h"
#include "aclnnop/aclnn_index_select.h"
#include "aclnnop/aclnn_matmul.h"
#include "aclnnop/aclnn_permute.h"
#include "runtime.h"

namespace {

std::function<void()> g_work;

aclnnStatus Prepared(std::function<void()> work, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    g_work = std::move(work);
    *workspaceSize = 32;
    *executor = reinterpret_cast<aclOpExecutor *>(&g_work);
    return 0;
}

aclnnStatus Started(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream)
{
    if (workspace == nullptr || workspaceSize != 32 || executor != reinterpret_cast<aclOpExecutor *>(&g_work) ||
        stream == nullptr) {
        return 561000;
    }
    g_work();
    return 0;
}

const aclnnStatus kInvalid = 161002;

bool IsFloat(const aclTensor *tensor, size_t rank) { return tensor->dtype == ACL_FLOAT && tensor->dims.size() == rank; }

// out[rows of `first` to `last`] = x times the matrix at `weight`.
void Multiply(const aclTensor *x, const float *weight, int64_t down, int64_t right, const aclTensor *out, int64_t first,
              int64_t last)
{
    const float *a = static_cast<const float *>(x->data);
    float *to = static_cast<float *>(out->data);
    for (int64_t i = first; i < last; ++i) {
        for (int64_t j = 0; j < out->dims[1]; ++j) {
            float sum = 0;
            for (int64_t k = 0; k < x->dims[1]; ++k) {
                sum += a[i * x->strides[0] + k * x->strides[1]] * weight[k * down + j * right];
            }
            to[i * out->dims[1] + j] = sum;
        }
    }
}

}  // namespace

extern "C" {

aclnnStatus aclnnMatmulGetWorkspaceSize(const aclTensor *self, const aclTensor *mat2, aclTensor *out, int8_t cubeMathType,
                                        uint64_t *workspaceSize, aclOpExecutor **executor)
{
    if (!IsFloat(self, 2) || !IsFloat(mat2, 2) || self->dims[1] != mat2->dims[0] || cubeMathType != 0 ||
        out->dims != std::vector<int64_t>{self->dims[0], mat2->dims[1]}) {
        return kInvalid;
    }
    const auto work = [=] {
        Multiply(self, static_cast<const float *>(mat2->data), mat2->strides[0], mat2->strides[1], out, 0, out->dims[0]);
    };
    return Prepared(work, workspaceSize, executor);
}
aclnnStatus aclnnMatmul(void *workspace, uint64_t size, aclOpExecutor *executor, aclrtStream stream)
{
    return Started(workspace, size, executor, stream);
}

aclnnStatus aclnnIndexSelectGetWorkspaceSize(const aclTensor *self, int64_t dim, const aclTensor *index, aclTensor *out,
                                             uint64_t *workspaceSize, aclOpExecutor **executor)
{
    if (!IsFloat(self, 2) || dim != 0 || index->dtype != ACL_INT32 || index->dims.size() != 1 ||
        out->dims != std::vector<int64_t>{index->dims[0], self->dims[1]}) {
        return kInvalid;
    }
    const auto work = [=] {
        for (int64_t i = 0; i < out->dims[0] * out->dims[1]; ++i) {
            const int32_t row = static_cast<const int32_t *>(index->data)[i / out->dims[1]];
            static_cast<float *>(out->data)[i] = static_cast<const float *>(self->data)[row * self->dims[1] + i % out->dims[1]];
        }
    };
    return Prepared(work, workspaceSize, executor);
}
aclnnStatus aclnnIndexSelect(void *workspace, uint64_t size, aclOpExecutor *executor, aclrtStream stream)
{
    return Started(workspace, size, executor, stream);
}

aclnnStatus aclnnPermuteGetWorkspaceSize(const aclTensor *self, const aclIntArray *dims, aclTensor *out,
                                         uint64_t *workspaceSize, aclOpExecutor **executor)
{
    if (!IsFloat(self, 2) || dims->values != std::vector<int64_t>{1, 0} ||
        out->dims != std::vector<int64_t>{self->dims[1], self->dims[0]}) {
        return kInvalid;
    }
    const auto work = [=] {
        for (int64_t i = 0; i < self->dims[0] * self->dims[1]; ++i) {
            const int64_t row = i / self->dims[1], column = i % self->dims[1];
            static_cast<float *>(out->data)[column * self->dims[0] + row] = static_cast<const float *>(self->data)[i];
        }
    };
    return Prepared(work, workspaceSize, executor);
}
aclnnStatus aclnnPermute(void *workspace, uint64_t size, aclOpExecutor *executor, aclrtStream stream)
{
    return Started(workspace, size, executor, stream);
}

aclnnStatus aclnnCumprodGetWorkspaceSize(const aclTensor *input, const aclScalar *dim, const aclDataType dtype,
                                         aclTensor *out, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    if (!IsFloat(input, 2) || dim->value != 1 || dtype != ACL_FLOAT || out->dims != input->dims) {
        return kInvalid;
    }
    const auto work = [=] {
        for (int64_t i = 0; i < input->dims[0] * input->dims[1]; ++i) {
            float *to = static_cast<float *>(out->data) + i;
            *to = static_cast<const float *>(input->data)[i] * (i % input->dims[1] == 0 ? 1.0F : to[-1]);
        }
    };
    return Prepared(work, workspaceSize, executor);
}
aclnnStatus aclnnCumprod(void *workspace, uint64_t size, aclOpExecutor *executor, aclrtStream stream)
{
    return Started(workspace, size, executor, stream);
}

aclnnStatus aclnnCastGetWorkspaceSize(const aclTensor *self, const aclDataType dtype, aclTensor *out,
                                      uint64_t *workspaceSize, aclOpExecutor **executor)
{
    if (self->dtype != ACL_INT32 || dtype != ACL_INT64 || out->dtype != ACL_INT64 || self->dims != out->dims ||
        self->dims.size() != 1) {
        return kInvalid;
    }
    const auto work = [=] {
        for (int64_t i = 0; i < self->dims[0]; ++i) {
            static_cast<int64_t *>(out->data)[i] = static_cast<const int32_t *>(self->data)[i];
        }
    };
    return Prepared(work, workspaceSize, executor);
}
aclnnStatus aclnnCast(void *workspace, uint64_t size, aclOpExecutor *executor, aclrtStream stream)
{
    return Started(workspace, size, executor, stream);
}

aclnnStatus aclnnGroupedMatmulV5GetWorkspaceSize(
    const aclTensorList *x, const aclTensorList *weight, const aclTensorList *bias, const aclTensorList *scale,
    const aclTensorList *offset, const aclTensorList *antiquantScale, const aclTensorList *antiquantOffset,
    const aclTensorList *perTokenScale, const aclTensor *groupList, const aclTensorList *activationInput,
    const aclTensorList *activationQuantScale, const aclTensorList *activationQuantOffset, int64_t splitItem,
    int64_t groupType, int64_t groupListType, int64_t actType, aclIntArray *tuningConfig, aclTensorList *out,
    aclTensorList *activationFeatureOut, aclTensorList *dynQuantScaleOut, uint64_t *workspaceSize, aclOpExecutor **executor)
{
    const aclTensorList *const absent[] = {bias, scale, offset, antiquantScale, antiquantOffset, perTokenScale,
        activationInput, activationQuantScale, activationQuantOffset, activationFeatureOut, dynQuantScaleOut};
    for (const aclTensorList *list : absent) {
        if (list != nullptr || tuningConfig != nullptr) {
            return kInvalid;
        }
    }
    const aclTensor *a = x->tensors[0], *b = weight->tensors[0], *c = out->tensors[0];
    if (!IsFloat(a, 2) || !IsFloat(b, 3) || !IsFloat(c, 2) || groupList->dtype != ACL_INT64 || splitItem != 3 ||
        groupType != 0 || groupListType != 1 || actType != 0 || b->dims[0] != groupList->dims[0] ||
        a->dims[1] != b->dims[1] || c->dims != std::vector<int64_t>{a->dims[0], b->dims[2]}) {
        return kInvalid;
    }
    // The lists may be gone by the second phase; the tensors' memory is not.
    const aclTensor rows = *a, matrices = *b, result = *c;
    const auto work = [=] {
        int64_t first = 0;
        for (int64_t group = 0; group < matrices.dims[0]; ++group) {
            const int64_t last = first + static_cast<const int64_t *>(groupList->data)[group];
            const float *matrix = static_cast<const float *>(matrices.data) + group * matrices.strides[0];
            Multiply(&rows, matrix, matrices.strides[1], matrices.strides[2], &result, first, last);
            first = last;
        }
    };
    return Prepared(work, workspaceSize, executor);
}
aclnnStatus aclnnGroupedMatmulV5(void *workspace, uint64_t size, aclOpExecutor *executor, aclrtStream stream)
{
    return Started(workspace, size, executor, stream);
}

}  // extern "C"
