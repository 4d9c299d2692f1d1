"""Callers of the built operators: a program an operator that runs it through aclnn and compares with what is expected.

aclnn calls an operator in two phases: `aclnn<Type>GetWorkspaceSize` checks the arguments and says how much scratch
memory the call needs, `aclnn<Type>` starts it. The headers of both are written by CANN when it builds the package.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .. import nibbles
from ..plan import TensorType
from ..signature import Signature, Tensor
from .op_host import DTYPES, operator_type
from .template import fill


@dataclass(frozen=True)
class Call:
    """A kernel to call: its name, its tensors, and what each output holds where the kernel does not write."""

    kernel: str
    signature: Signature
    fill: tuple[int, ...]

    @property
    def tables(self) -> dict[str, str]:
        """The tensors of a call, for `TENSORS`."""
        inputs, outputs, rows = self.signature.inputs, self.signature.outputs, self.signature.rows
        return {
            "inputs": "\n".join(tensor_line(tensor, rows) for tensor in inputs),
            "outputs": "\n".join(tensor_line(tensor, rows, filled) for tensor, filled in zip(outputs, self.fill)),
        }

    @property
    def arguments(self) -> list[str]:
        """What the programs call the addresses of a call's tensors."""
        counts = {"inputs": len(self.signature.inputs), "outputs": len(self.signature.outputs)}
        return [f"{name}[{i}]->get()" for name, count in counts.items() for i in range(count)]


def files(calls: Sequence[Call]) -> dict[str, str]:
    """The callers of these kernels with their build, by path."""
    programs = {f"test/{call.kernel}.cpp": _program(call) for call in calls}
    names = "\n".join(f"    {call.kernel}" for call in calls)
    return programs | {
        "test/harness.h": fill(HARNESS, graph=_GRAPH),
        "test/CMakeLists.txt": fill(_CMAKE, kernels=names),
        "test/README.md": fill(_README, kernels="\n".join(f"    ./build/test_{call.kernel}" for call in calls)),
    }


def data(call: Call, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> dict[str, bytes]:
    """One call's tensors as files, by path: the inputs, and the outputs that are expected."""
    tensors = (*call.signature.inputs, *call.signature.outputs)
    return {f"data/{call.kernel}/{t.name}.bin": memory(array) for t, array in zip(tensors, (*inputs, *outputs))}


def memory(array: np.ndarray) -> bytes:
    """An array as the device has it: elements of 4 bits in pairs, the first one low."""
    return (nibbles.pack(array) if nibbles.share_bytes(array.dtype) else np.ascontiguousarray(array)).tobytes()


def _program(call: Call) -> str:
    operator = operator_type(call.kernel)
    return fill(_PROGRAM, operator=operator, kernel=call.kernel, arguments=", ".join(call.arguments), **call.tables)


def tensor_line(tensor: Tensor, rows: int, filled: int | None = None) -> str:
    """A tensor in the table of a caller; an output with the bytes of an element that the kernel leaves as it is."""
    dims = ", ".join(map(str, tensor.shape(rows)))
    values: Mapping[str, object] = {"name": tensor.name, "dims": dims, "dtype": DTYPES[tensor.dtype]}
    if filled is None:
        return fill('        {"@name@", {@dims@}, ACL_@dtype@, {}},', **values)
    element = memory(TensorType((1,), tensor.dtype).filled(filled))
    return fill('        {"@name@", {@dims@}, ACL_@dtype@, {@bytes@}},', bytes=", ".join(map(str, element)), **values)


# Of a caller through aclnn and of a direct launch: what the tensors are, and whether the outputs are what is expected.
TENSORS = """\
int main(int argc, char **argv)
{
    const harness::Session session(argc, argv);
    const std::string directory = "data/@kernel@/";
    const std::vector<harness::Description> inputDescriptions = {
@inputs@
    };
    const std::vector<harness::Description> outputDescriptions = {
@outputs@
    };
"""
COMPARISON = """\
    bool same = true;
    for (size_t i = 0; i < outputs.size(); ++i) {
        const harness::Description &output = outputDescriptions[i];
        const std::vector<uint8_t> expected = harness::ReadFile(directory + output.name + ".bin", output.Bytes());
        same &= harness::Compare(output, outputs[i]->Read(), expected);
    }
"""

_PROGRAM = (
    """\
// Runs operator @operator@ on the data in data/@kernel@ and compares. Usage: test_@kernel@ [device]

#include "aclnn_@kernel@.h"
#include "harness.h"

"""
    + TENSORS
    + """\
    std::vector<std::unique_ptr<harness::Tensor>> inputs, outputs;
    for (const harness::Description &input : inputDescriptions) {
        const std::vector<uint8_t> bytes = harness::ReadFile(directory + input.name + ".bin", input.Bytes());
        inputs.push_back(std::make_unique<harness::Tensor>(input, bytes));
    }
    for (const harness::Description &output : outputDescriptions) {
        outputs.push_back(std::make_unique<harness::Tensor>(output, output.Filled()));
    }

    harness::Run(session, "aclnn@operator@", [&](uint64_t *size, aclOpExecutor **executor) {
        return aclnn@operator@GetWorkspaceSize(@arguments@, size, executor);
    }, aclnn@operator@);

"""
    + COMPARISON
    + """\
    std::printf("@operator@: %s\\n", same ? "pass" : "FAIL");
    return same ? 0 : 1;
}
"""
)

HARNESS = """\
// What the callers share: device memory, tensors, files, comparison.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "acl/acl.h"
#include "aclnn/acl_meta.h"

namespace harness {

// Ends the program if a call of acl or aclnn failed.
inline void Check(int32_t status, const char *call)
{
    if (status != 0) {
        const char *why = aclGetRecentErrMsg();
        std::fprintf(stderr, "%s failed with %d: %s\\n", call, static_cast<int>(status), why == nullptr ? "" : why);
        std::exit(2);
    }
}

// The device, with a stream of its own.
class Session {
public:
    Session(int argc, char **argv) : device_(argc > 1 ? std::atoi(argv[1]) : 0)
    {
        Check(aclInit(nullptr), "aclInit");
        Check(aclrtSetDevice(device_), "aclrtSetDevice");
        Check(aclrtCreateStream(&stream_), "aclrtCreateStream");
    }
    Session(const Session &) = delete;
    Session &operator=(const Session &) = delete;
    ~Session()
    {
        aclrtDestroyStream(stream_);
        aclrtResetDevice(device_);
        aclFinalize();
    }
    aclrtStream stream() const { return stream_; }

private:
    int32_t device_;
    aclrtStream stream_ = nullptr;
};

// Memory on the device; none for 0 bytes.
class Memory {
public:
    explicit Memory(size_t bytes)
    {
        if (bytes > 0) {
            Check(aclrtMalloc(&address_, bytes, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
        }
    }
    Memory(const Memory &) = delete;
    Memory &operator=(const Memory &) = delete;
    ~Memory()
    {
        if (address_ != nullptr) {
            aclrtFree(address_);
        }
    }
    void *get() const { return address_; }

private:
    void *address_ = nullptr;
};

struct Description {
    std::string name;
    std::vector<int64_t> dims;
    aclDataType dtype;
    std::vector<uint8_t> fill;  // an element of an output before the call

    size_t Elements() const
    {
        size_t count = 1;
        for (const int64_t dim : dims) {
            count *= static_cast<size_t>(dim);
        }
        return count;
    }
    bool IsHalfByte() const { return dtype == ACL_INT4 || dtype == ACL_FLOAT4_E2M1; }
    size_t ElementBytes() const
    {
        switch (dtype) {
            case ACL_INT64:
                return 8;
            case ACL_FLOAT:
            case ACL_INT32:
                return 4;
            case ACL_FLOAT16:
            case ACL_BF16:
            case ACL_INT16:
                return 2;
            default:
                return 1;
        }
    }
    size_t Bytes() const { return IsHalfByte() ? (Elements() + 1) / 2 : Elements() * ElementBytes(); }
    std::vector<uint8_t> Filled() const
    {
        std::vector<uint8_t> bytes(Bytes());
        for (size_t i = 0; i < bytes.size(); ++i) {
            bytes[i] = fill[i % fill.size()];
        }
        return bytes;
    }
};

// A tensor on the device.
class Tensor {
public:
    Tensor(const Description &description, const std::vector<uint8_t> &bytes)
        : description_(description), memory_(std::make_shared<Memory>(bytes.size()))
    {
        const size_t size = bytes.size();
        if (size > 0) {
            Check(aclrtMemcpy(memory_->get(), size, bytes.data(), size, ACL_MEMCPY_HOST_TO_DEVICE), "aclrtMemcpy");
        }
        tensor_ = Create();
    }
    // The elements of another, from one on, in another shape.
    Tensor(const Tensor &other, const Description &description, size_t first = 0)
        : description_(description), memory_(other.memory_), offset_(other.offset_ + BytesOf(description, first)),
          tensor_(Create())
    {
    }
    Tensor(const Tensor &) = delete;
    Tensor &operator=(const Tensor &) = delete;
    ~Tensor() { aclDestroyTensor(tensor_); }
    aclTensor *get() const { return tensor_; }
    // The same memory with the last two dimensions the other way round.
    Tensor Transposed() const { return Tensor(*this, !isTransposed_); }
    // Another handle of the same tensor.
    aclTensor *Create() const
    {
        const std::vector<int64_t> &stored = description_.dims;
        std::vector<int64_t> dims = stored, strides(stored.size(), 1);
        for (size_t i = stored.size(); i > 1; --i) {
            strides[i - 2] = strides[i - 1] * stored[i - 1];
        }
        if (isTransposed_) {
            std::swap(dims[dims.size() - 1], dims[dims.size() - 2]);
            std::swap(strides[dims.size() - 1], strides[dims.size() - 2]);
        }
        aclTensor *tensor = aclCreateTensor(dims.data(), dims.size(), description_.dtype, strides.data(), 0,
                                            ACL_FORMAT_ND, stored.data(), stored.size(), Data());
        Check(tensor == nullptr ? -1 : 0, "aclCreateTensor");
        return tensor;
    }
    std::vector<uint8_t> Read() const
    {
        const size_t size = description_.Bytes();
        std::vector<uint8_t> bytes(size);
        if (size > 0) {
            Check(aclrtMemcpy(bytes.data(), size, Data(), size, ACL_MEMCPY_DEVICE_TO_HOST), "aclrtMemcpy");
        }
        return bytes;
    }

private:
    void *Data() const { return static_cast<uint8_t *>(memory_->get()) + offset_; }
    static size_t BytesOf(const Description &description, size_t elements)
    {
        return description.IsHalfByte() ? elements / 2 : elements * description.ElementBytes();
    }
    Tensor(const Tensor &other, bool isTransposed)
        : description_(other.description_), memory_(other.memory_), offset_(other.offset_), isTransposed_(isTransposed),
          tensor_(Create())
    {
    }

    Description description_;
    std::shared_ptr<Memory> memory_;
    size_t offset_ = 0;  // bytes
    bool isTransposed_ = false;
    aclTensor *tensor_ = nullptr;
};

// A list of one tensor, of which it has a handle of its own: it is destroyed with the list.
class TensorList {
public:
    template <typename... Tensors>
    explicit TensorList(const Tensors &...given)
    {
        const aclTensor *const tensors[] = {given.Create()...};
        list_ = aclCreateTensorList(tensors, sizeof...(given));
        Check(list_ == nullptr ? -1 : 0, "aclCreateTensorList");
    }
    TensorList(const TensorList &) = delete;
    TensorList &operator=(const TensorList &) = delete;
    ~TensorList() { aclDestroyTensorList(list_); }
    aclTensorList *get() const { return list_; }

private:
    aclTensorList *list_ = nullptr;
};

class IntArray {
public:
    explicit IntArray(const std::vector<int64_t> &values) : array_(aclCreateIntArray(values.data(), values.size()))
    {
        Check(array_ == nullptr ? -1 : 0, "aclCreateIntArray");
    }
    IntArray(const IntArray &) = delete;
    IntArray &operator=(const IntArray &) = delete;
    ~IntArray() { aclDestroyIntArray(array_); }
    const aclIntArray *get() const { return array_; }

private:
    aclIntArray *array_;
};

class Scalar {
public:
    explicit Scalar(int32_t value) : scalar_(aclCreateScalar(&value, ACL_INT32))
    {
        Check(scalar_ == nullptr ? -1 : 0, "aclCreateScalar");
    }
    Scalar(const Scalar &) = delete;
    Scalar &operator=(const Scalar &) = delete;
    ~Scalar() { aclDestroyScalar(scalar_); }
    const aclScalar *get() const { return scalar_; }

private:
    aclScalar *scalar_;
};

// The two phases of a call: the first checks the arguments and says how much scratch memory the call needs, the second
// starts it.
template <typename First, typename Second>
void Run(const Session &session, const char *name, First first, Second second)
{
    uint64_t workspaceSize = 0;
    aclOpExecutor *executor = nullptr;
    Check(first(&workspaceSize, &executor), (std::string(name) + "GetWorkspaceSize").c_str());
    const Memory workspace(workspaceSize);
    Check(second(workspace.get(), workspaceSize, executor, session.stream()), name);
    Check(aclrtSynchronizeStream(session.stream()), "aclrtSynchronizeStream");
}


inline std::vector<uint8_t> ReadFile(const std::string &path, size_t size)
{
    std::ifstream file(path, std::ios::binary);
    std::vector<uint8_t> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    if (!file || bytes.size() != size) {
        std::fprintf(stderr, "%s: %zu bytes are needed, %zu are there\\n", path.c_str(), size, bytes.size());
        std::exit(2);
    }
    return bytes;
}

// An element of a float dtype, as a float.
inline float ToFloat(const uint8_t *bytes, aclDataType dtype)
{
    uint32_t bits = 0;
    if (dtype == ACL_FLOAT) {
        std::memcpy(&bits, bytes, 4);
    } else if (dtype == ACL_BF16) {
        bits = static_cast<uint32_t>(bytes[0] | bytes[1] << 8) << 16;
    } else {  // ACL_FLOAT16
        const uint32_t half = static_cast<uint32_t>(bytes[0] | bytes[1] << 8);
        const uint32_t exponent = half >> 10 & 31, fraction = half & 1023;
        if (exponent == 0) {
            const float value = std::ldexp(static_cast<float>(fraction), -24);
            return half >> 15 ? -value : value;
        }
        bits = (half >> 15) << 31 | (exponent == 31 ? 255U : exponent + 112) << 23 | fraction << 13;
    }
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
}

// Whether an output is what is expected: to the bit, but for the last places of floats. `places` times as many of them
// may differ where several operators have rounded.
inline bool Compare(const Description &output, const std::vector<uint8_t> &actual, const std::vector<uint8_t> &expected,
                    float places = 1.0F)
{
    const bool isFloat = output.dtype == ACL_FLOAT || output.dtype == ACL_FLOAT16 || output.dtype == ACL_BF16;
    const float place = output.dtype == ACL_FLOAT ? 1e-5F : output.dtype == ACL_FLOAT16 ? 2e-3F : 1.6e-2F;
    const float tolerance = place * places;
    const size_t width = output.IsHalfByte() ? 1 : output.ElementBytes();
    size_t different = 0, first = 0;
    for (size_t i = 0; i < expected.size() / width; ++i) {
        const uint8_t *a = &actual[i * width], *e = &expected[i * width];
        bool same = std::memcmp(a, e, width) == 0;
        if (!same && isFloat) {
            const float x = ToFloat(a, output.dtype), y = ToFloat(e, output.dtype);
            same = (std::isnan(x) && std::isnan(y)) || x == y ||
                   (std::isfinite(x) && std::isfinite(y) &&
                    std::fabs(x - y) <= tolerance * std::fmax(std::fabs(y), 1e-6F));
        }
        if (!same) {
            first = different == 0 ? i : first;
            ++different;
        }
    }
    if (different > 0) {
        const size_t all = expected.size() / width;
        std::printf("%s: %zu of %zu differ, the first at %zu\\n", output.name.c_str(), different, all, first);
    } else {
        std::printf("%s: same\\n", output.name.c_str());
    }
    return different == 0;
}
@graph@
}  // namespace harness
"""

_GRAPH = """
// A tensor with the contents of a file, or as it is before a call.
inline Tensor Load(const std::string &directory, const Description &description)
{
    return Tensor(description, ReadFile(directory + description.name + ".bin", description.Bytes()));
}
inline Tensor Make(const Description &description) { return Tensor(description, description.Filled()); }

// Whether what a graph has computed is what a file holds. Matrix products and what follows them round differently.
inline bool CompareWith(const std::string &directory, const Description &output, const Tensor &tensor)
{
    const std::vector<uint8_t> expected = ReadFile(directory + output.name + ".bin", output.Bytes());
    return Compare(output, tensor.Read(), expected, 64.0F);
}
"""

_CMAKE = """\
# Callers of the operators, after the package has been built and installed.
cmake_minimum_required(VERSION 3.16)
project(jascend_operator_tests LANGUAGES CXX)

set(CMAKE_CXX_STANDARD 17)
set(vendor_name "jascend" CACHE STRING "the vendor that the package was built for")
set(cann "$ENV{ASCEND_HOME_PATH}")
if(NOT EXISTS "${cann}/include/acl/acl.h")
    message(FATAL_ERROR "CANN is missing: there is no '${cann}/include/acl/acl.h'. Install the toolkit and source "
        "its set_env.sh, which sets ASCEND_HOME_PATH.")
endif()
set(package "$ENV{ASCEND_OPP_PATH}/vendors/${vendor_name}/op_api" CACHE PATH "op_api of the installed package")
if(NOT IS_DIRECTORY "${package}/include")
    message(FATAL_ERROR "The operators are missing: there is no '${package}/include'. Run ../build.sh and install "
        "the package, or pass -Dpackage=<path>/vendors/${vendor_name}/op_api.")
endif()

set(kernels
@kernels@
)
foreach(kernel ${kernels})
    add_executable(test_${kernel} ${kernel}.cpp)
    target_include_directories(test_${kernel} PRIVATE "${cann}/include" "${package}/include")
    target_link_directories(test_${kernel} PRIVATE "${cann}/lib64" "${package}/lib")
    target_link_libraries(test_${kernel} PRIVATE cust_opapi nnopbase ascendcl)
endforeach()

# The whole graph; it calls operators of CANN's libraries too.
if(EXISTS "${CMAKE_CURRENT_SOURCE_DIR}/graph.cpp")
    add_executable(test_graph graph.cpp)
    target_include_directories(test_graph PRIVATE "${cann}/include" "${package}/include")
    target_link_directories(test_graph PRIVATE "${cann}/lib64" "${package}/lib")
    set(opapi "opapi" CACHE STRING "the libraries of CANN's operators, as the toolkit at hand names them")
    target_link_libraries(test_graph PRIVATE cust_opapi ${opapi} nnopbase ascendcl)
endif()
"""

_README = """\
# Callers

A program an operator: it runs the operator on the tensors in `data/` and compares. Build and install the package first
(`../build.sh`, `../build_out/custom_opp_*.run`), then, in this directory:

    cmake -S . -B build && cmake --build build
@kernels@

`./build/test_graph` runs the whole graph in their place: all operators in order, those of CANN's libraries between them,
on the data in `data/graph`.

`data/` holds one call's tensors an operator, as the device has them: inputs, and outputs as jascend's host twin gave
them. `program.write(directory, arguments=...)` writes it; without arguments there is none.
"""
