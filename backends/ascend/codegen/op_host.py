"""The host side of an operator, in C++: its definition, its tiling, and the inference of shapes and dtypes.

The tiling is `tiling.Shape` once more: the same fields from the same formulas, for as many vector cores as the platform
says it has. What a wrong argument returns follows the operator's rule: `GRAPH_PARAM_INVALID` for what aclnn calls
ACLNN_ERR_PARAM_INVALID, `GRAPH_FAILED` for what tiling refuses.

Interfaces: `register/op_def.h`, `exe_graph/runtime/{tiling,infer_shape,infer_datatype}_context.h` of the public metadef
repository, `tiling/platform/platform_ascendc.h` of the public Ascend C repository.
"""

from __future__ import annotations

import re

from jascend.dialect.rules import Rows

from ..signature import Signature, Tensor
from . import tiling
from .template import fill

#: `ge::DataType` by NumPy name, without its prefix; `aclDataType` has the same names. HiFloat8 travels as uint8.
DTYPES = {
    "float32": "FLOAT", "float16": "FLOAT16", "bfloat16": "BF16", "bool": "BOOL", "int8": "INT8", "uint8": "UINT8",
    "int16": "INT16", "int32": "INT32", "int64": "INT64", "int4": "INT4", "float4_e2m1fn": "FLOAT4_E2M1",
    "float8_e4m3fn": "FLOAT8_E4M3FN", "float8_e5m2": "FLOAT8_E5M2", "float8_e8m0fnu": "FLOAT8_E8M0",
}  # fmt: skip


def operator_type(kernel: str) -> str:
    """The operator's type for CANN: `Jascend...`, never one of CANN's own."""
    return "".join(part[:1].upper() + part[1:] for part in kernel.split("_"))


def entry_name(operator: str) -> str:
    """The kernel that CANN's build looks for, by its rules: an underscore before a capital that begins a word."""
    word = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", operator)
    return word.lower()


def emit(kernel: str, signature: Signature, shape: tiling.Shape, *, soc: str, cores_wait: bool) -> str:
    """The C++ source. `cores_wait`: whether the kernel's cores wait for each other; then all must run at once."""
    launch, core, row = shape.scratch
    values = {
        "operator": operator_type(kernel), "kernel": kernel, "soc": soc, "struct": tiling.struct_name(kernel),
        "inputs": _table(signature.inputs), "outputs": _table(signature.outputs),
        "rows": _ANY_ROWS if signature.any_rows else fill(_FIXED_ROWS, rows=signature.rows),
        "bounds": _bounds(signature),
        "parts": shape.parts, "launch_bytes": launch, "core_bytes": core, "row_bytes": row,
        "about": "\n".join(f"// {line}" for line in shape.about.splitlines()),
        "groups": "most" if shape.all_cores else "std::max<int64_t>(1, std::min(rows, most))",
        "fields": "\n".join(f"    data->{tiling.camel(name)} = {_FIELDS[name]};" for name in shape.fields),
        "schedule": _SCHEDULE if cores_wait else "",
        "definition": "\n".join(
            fill(_PARAMETER, kind=kind, name=tensor.name, dtype=DTYPES[tensor.dtype], more=more)
            for kind, tensors, more in (("Input", signature.inputs, _CONTIGUOUS), ("Output", signature.outputs, ""))
            for tensor in tensors
        ),
    }  # fmt: skip
    return fill(_SOURCE, **values)


_PARAMETER = """\
        this->@kind@("@name@")
            .ParamType(REQUIRED)
            .DataType({ge::DT_@dtype@})
            .Format({ge::FORMAT_ND})
            .UnknownShapeFormat({ge::FORMAT_ND})@more@;"""
_CONTIGUOUS = "\n            .AutoContiguous()"

_FIELDS = {
    "rows_per_core": "static_cast<uint32_t>(rows / groups)",
    "rows_per_group": "static_cast<uint32_t>(rows / groups)",
    "extra_rows": "static_cast<uint32_t>(rows % groups)",
    "rows": "static_cast<uint32_t>(rows)",
}

_CODES = {161002: "kParamInvalid", 561002: "kTilingError"}


def _bounds(signature: Signature) -> str:
    """The checks of the number of rows."""
    checks = [(f"rows != kUnknown && rows < {bound.rows}", bound.code, bound.too_few) for bound in signature.least]
    if signature.most is not None:
        checks.append((f"rows > {signature.most.rows}", signature.most.code, signature.most.too_many))
    return "".join(fill(_BOUND, holds=holds, code=_CODES[code], problem=problem) for holds, code, problem in checks)


def _dim(dim: int | Rows) -> str:
    if not isinstance(dim, Rows):
        return f"{{{dim}}}"
    return f"{{0, {dim.times}}}" if dim.most is None else f"{{{dim.most}, {dim.times}}}"


def _table(tensors: tuple[Tensor, ...]) -> str:
    lines = []
    for tensor in tensors:
        dims = ", ".join(map(_dim, tensor.dims))
        codes = ", ".join(_CODES[code] for code in vars(tensor.codes).values())
        lines.append(
            f'    {{"{tensor.name}", ge::DT_{DTYPES[tensor.dtype]}, {len(tensor.dims)}, {{{dims}}}, {codes}}},'
        )
    return "\n".join(lines)


_ANY_ROWS = """\
// The number of rows, from the first input that has one; kUnknown before it is known.
int64_t RowsOf(const gert::Shape *const *shapes)
{
    for (size_t i = 0; i < kInputCount; ++i) {
        if (kInputs[i].rank > 0 && kInputs[i].dims[0].times == 1 && shapes[i]->GetDim(0) != kUnknownRank) {
            return shapes[i]->GetDim(0);
        }
    }
    return kUnknown;
}
"""

_FIXED_ROWS = """\
// The kernel serves the number of rows that it was compiled for.
int64_t RowsOf(const gert::Shape *const *)
{
    return @rows@;
}
"""

_BOUND = """
    if (@holds@) {
        return Refuse(@code@, kInputs[0].name, "@problem@");
    }"""

_SCHEDULE = """
    // The cores wait for each other, so that all have to run at the same time.
    if (context->SetScheduleMode(1) != ge::GRAPH_SUCCESS) {
        return ge::GRAPH_FAILED;
    }"""

_SOURCE = """\
// Operator @operator@: definition, tiling, inference of shapes and dtypes. Generated by jascend for @soc@.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>

#include "../op_kernel/@kernel@_tiling.h"
#include "register/op_def_registry.h"
#include "tiling/platform/platform_ascendc.h"

namespace {

constexpr int64_t kUnknown = -1;      // a dimension that is not known yet
constexpr int64_t kUnknownRank = -2;  // a shape of which nothing is known yet

// aclnnStatus
constexpr int32_t kParamInvalid = 161002;
constexpr int32_t kTilingError = 561002;

// A dimension of a fixed size; or one of so many times as there are rows, but of `size` at most, where that is not 0.
struct Dim {
    int64_t size;
    int64_t times = 0;

    int64_t At(int64_t rows) const
    {
        if (times == 0) {
            return size;
        }
        if (rows == kUnknown) {
            return kUnknown;
        }
        return size == 0 ? times * rows : std::min(times * rows, size);
    }
};

struct Tensor {
    const char *name;
    ge::DataType dtype;
    size_t rank;
    Dim dims[8];
    // What it is if one of these is wrong.
    int32_t dtypeCode, rankCode, sizeCode, rowsCode;
};

constexpr Tensor kInputs[] = {
@inputs@
};
constexpr Tensor kOutputs[] = {
@outputs@
};
constexpr size_t kInputCount = sizeof(kInputs) / sizeof(kInputs[0]);
constexpr size_t kOutputCount = sizeof(kOutputs) / sizeof(kOutputs[0]);

ge::graphStatus Refuse(int32_t code, const char *name, const char *problem)
{
    std::fprintf(stderr, "@operator@: %s %s (%d)\\n", name, problem, static_cast<int>(code));
    return code == kParamInvalid ? ge::GRAPH_PARAM_INVALID : ge::GRAPH_FAILED;
}

bool RankFits(const Tensor &tensor, const gert::Shape &shape)
{
    const bool unknown = shape.GetDimNum() == 1 && shape.GetDim(0) == kUnknownRank;
    const bool scalar = tensor.rank == 0 && shape.GetDimNum() == 1 && shape.GetDim(0) == 1;
    return unknown || scalar || shape.GetDimNum() == tensor.rank;
}

// Whether the dimensions are those the kernel was compiled for, and the rows these; what is unknown fits.
ge::graphStatus CheckSizes(const Tensor &tensor, const gert::Shape &shape, int64_t rows)
{
    if (shape.GetDimNum() == 1 && shape.GetDim(0) == kUnknownRank) {
        return ge::GRAPH_SUCCESS;
    }
    for (size_t i = 0; i < tensor.rank; ++i) {
        const bool isRows = tensor.dims[i].times != 0;
        const int64_t expected = tensor.dims[i].At(rows);
        const int64_t size = shape.GetDim(i);
        if (size == expected || size == kUnknown || expected == kUnknown) {
            continue;
        }
        return isRows ? Refuse(tensor.rowsCode, tensor.name, "has not the rows that follow from the first input with rows")
                      : Refuse(tensor.sizeCode, tensor.name, "has a size that the kernel was not compiled for");
    }
    return ge::GRAPH_SUCCESS;
}

@rows@
ge::graphStatus CheckInputs(const gert::Shape *const *shapes, int64_t &rows)
{
    for (size_t i = 0; i < kInputCount; ++i) {
        if (shapes[i] == nullptr) {
            return ge::GRAPH_FAILED;
        }
        if (!RankFits(kInputs[i], *shapes[i])) {
            return Refuse(kInputs[i].rankCode, kInputs[i].name, "has a wrong rank");
        }
    }
    rows = RowsOf(shapes);@bounds@
    for (size_t i = 0; i < kInputCount; ++i) {
        const ge::graphStatus status = CheckSizes(kInputs[i], *shapes[i], rows);
        if (status != ge::GRAPH_SUCCESS) {
            return status;
        }
    }
    return ge::GRAPH_SUCCESS;
}

}  // namespace

namespace optiling {

constexpr int64_t kParts = @parts@;  // cores that work on the same rows

@about@
static ge::graphStatus TilingFunc(gert::TilingContext *context)
{
    const gert::Shape *shapes[kInputCount];
    for (size_t i = 0; i < kInputCount; ++i) {
        const gert::StorageShape *shape = context->GetInputShape(i);
        shapes[i] = shape == nullptr ? nullptr : &shape->GetStorageShape();
    }
    int64_t rows = 0;
    const ge::graphStatus checked = CheckInputs(shapes, rows);
    if (checked != ge::GRAPH_SUCCESS) {
        return checked;
    }
    for (size_t i = 0; i < kOutputCount; ++i) {
        const gert::StorageShape *shape = context->GetOutputShape(i);
        if (shape == nullptr) {
            return ge::GRAPH_FAILED;
        }
        if (!RankFits(kOutputs[i], shape->GetStorageShape())) {
            return Refuse(kTilingError, kOutputs[i].name, "has a wrong rank");
        }
        const ge::graphStatus status = CheckSizes(kOutputs[i], shape->GetStorageShape(), rows);
        if (status != ge::GRAPH_SUCCESS) {
            return status;
        }
    }
    if (rows < 0 || rows > INT32_MAX) {
        return Refuse(kTilingError, kInputs[0].name, "has a number of rows that is not known or beyond int32");
    }

    const platform_ascendc::PlatformAscendC platform(context->GetPlatformInfo());
    const int64_t cores = platform.GetCoreNumAiv();
    if (cores < kParts) {
        return Refuse(kTilingError, kInputs[0].name, "needs more vector cores a row than there are");
    }
    const int64_t most = cores / kParts;
    const int64_t groups = @groups@;
    const int64_t blocks = groups * kParts;

    @struct@ *data = context->GetTilingData<@struct@>();
    size_t *workspace = context->GetWorkspaceSizes(1);
    if (data == nullptr || workspace == nullptr) {
        return ge::GRAPH_FAILED;
    }
@fields@
    const int64_t scratch = INT64_C(@launch_bytes@) + INT64_C(@core_bytes@) * blocks + INT64_C(@row_bytes@) * rows;
    workspace[0] = static_cast<size_t>(scratch) + platform.GetLibApiWorkSpaceSize();@schedule@
    return context->SetBlockDim(static_cast<uint32_t>(blocks));
}

}  // namespace optiling

namespace ge {

static graphStatus InferShape(gert::InferShapeContext *context)
{
    const gert::Shape *shapes[kInputCount];
    for (size_t i = 0; i < kInputCount; ++i) {
        shapes[i] = context->GetInputShape(i);
    }
    int64_t rows = kUnknown;
    const graphStatus checked = CheckInputs(shapes, rows);
    if (checked != GRAPH_SUCCESS) {
        return checked;
    }
    for (size_t i = 0; i < kOutputCount; ++i) {
        gert::Shape *shape = context->GetOutputShape(i);
        if (shape == nullptr) {
            return GRAPH_FAILED;
        }
        shape->SetDimNum(kOutputs[i].rank);
        for (size_t j = 0; j < kOutputs[i].rank; ++j) {
            shape->SetDim(j, kOutputs[i].dims[j].At(rows));
        }
    }
    return GRAPH_SUCCESS;
}

static graphStatus InferDataType(gert::InferDataTypeContext *context)
{
    for (size_t i = 0; i < kInputCount; ++i) {
        if (context->GetInputDataType(i) != kInputs[i].dtype) {
            return Refuse(kInputs[i].dtypeCode, kInputs[i].name, "has another dtype than the kernel was compiled for");
        }
    }
    for (size_t i = 0; i < kOutputCount; ++i) {
        if (context->SetOutputDataType(i, kOutputs[i].dtype) != GRAPH_SUCCESS) {
            return GRAPH_FAILED;
        }
    }
    return GRAPH_SUCCESS;
}

}  // namespace ge

namespace ops {

class @operator@ : public OpDef {
public:
    explicit @operator@(const char *name) : OpDef(name)
    {
@definition@

        this->SetInferShape(ge::InferShape).SetInferDataType(ge::InferDataType);
        this->AICore().SetTiling(optiling::TilingFunc).AddConfig("@soc@");
    }
};

OP_ADD(@operator@);

}  // namespace ops
"""
