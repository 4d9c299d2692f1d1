"""The light project: a program a kernel in one `.asc` file that launches it with `<<<>>>`.

The kernel is the same text, but for what a package's build provides: the tiling data is an argument, passed by value,
not read by the macros of a package; the entry says in its qualifiers that it runs on vector cores, and that they wait
for each other where they do. Sources: the Ascend C guide's pages on qualifiers (`__vector__`, `__mix__(0, 1)`,
`__schedmode__(1)`), on SyncAll, and its samples of `.asc` files.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from . import aclnn, tiling
from .template import fill

#: `--npu-arch` by `__NPU_ARCH__`.
_ARCHITECTURES = {2201: "dav-2201", 3510: "dav-3510"}


def files(kernels: Sequence[tuple[aclnn.Call, str, tiling.Shape]], npu_arch: int) -> dict[str, str]:
    """The programs of these kernels with their build, by path. With each call go its kernel's source, and how a launch
    follows from rows."""
    programs = {f"{call.kernel}.asc": emit(call, source, shape) for call, source, shape in kernels}
    programs |= {tiling.file_name(call.kernel): shape.header(call.kernel) for call, _, shape in kernels}
    names = "\n".join(f"    {call.kernel}" for call, *_ in kernels)
    return programs | {
        "harness.h": _harness(),
        "CMakeLists.txt": fill(_CMAKE, kernels=names, architecture=_ARCHITECTURES[npu_arch]),
    }


def _harness() -> str:
    """The callers' harness without aclnn: no tensors, device memory only."""
    start = aclnn.HARNESS.index("// A tensor on the device.")
    end = aclnn.HARNESS.index("inline std::vector<uint8_t> ReadFile")
    harness = aclnn.HARNESS[:start] + _DEVICE_ARRAY + aclnn.HARNESS[end:].replace("@graph@", "")
    return harness.replace('#include "aclnn/acl_meta.h"\n', "").replace("acl or aclnn", "acl")


def kernel_text(source: str, kernel: str, cores_wait: bool) -> str:
    """A kernel's source for a direct launch."""
    struct = tiling.struct_name(kernel)
    entry = re.compile(rf'extern "C" __global__ __aicore__ void {kernel}\(.*?GM_ADDR tiling\)', re.DOTALL)
    (head,) = entry.findall(source)
    qualifiers = "__schedmode__(1) __global__ __mix__(0, 1)" if cores_wait else "__global__ __vector__"
    direct = head.replace('extern "C" __global__ __aicore__', qualifiers).replace(
        "GM_ADDR tiling)", f"{struct} tilingData)"
    )
    text = source.replace(head, direct)
    macros = r"    (?:KERNEL_TASK_TYPE_DEFAULT|REGISTER_TILING_DEFAULT|GET_TILING_DATA_WITH_STRUCT)\(.*\);\n"
    # A direct launch has no memory of the system's in front of the workspace.
    return re.sub(r"GetUserWorkspace\((\w+)\)", r"\1", re.sub(macros, "", text))


def emit(call: aclnn.Call, source: str, shape: tiling.Shape) -> str:
    """The `.asc` file: the kernel, and a program that runs it and compares."""
    signature, kernel = call.signature, call.kernel
    cores_wait = "SyncAll();" in source
    launch, core, row = shape.scratch
    fields = "\n".join(
        f"    data.{tiling.camel(name)} = static_cast<uint32_t>({_FIELDS[name]});" for name in shape.fields
    )
    program = fill(
        _PROGRAM, kernel=kernel, struct=tiling.struct_name(kernel), rows=signature.rows, parts=shape.parts,
        **call.tables,
        groups="most" if shape.all_cores else "std::max<int64_t>(1, std::min(rows, most))",
        fields=fields, launch_bytes=launch, core_bytes=core, row_bytes=row,
        arguments=",\n        ".join(f"static_cast<uint8_t *>({argument})" for argument in call.arguments),
    )  # fmt: skip
    return f"{kernel_text(source, kernel, cores_wait)}\n{program}"


_FIELDS = {
    "rows_per_core": "rows / groups",
    "rows_per_group": "rows / groups",
    "extra_rows": "rows % groups",
    "rows": "rows",
}

_DEVICE_ARRAY = """\
// An array on the device.
class Array {
public:
    explicit Array(const std::vector<uint8_t> &bytes) : size_(bytes.size()), memory_(bytes.size())
    {
        if (size_ > 0) {
            Check(aclrtMemcpy(memory_.get(), size_, bytes.data(), size_, ACL_MEMCPY_HOST_TO_DEVICE), "aclrtMemcpy");
        }
    }
    void *get() const { return memory_.get(); }
    std::vector<uint8_t> Read() const
    {
        std::vector<uint8_t> bytes(size_);
        if (size_ > 0) {
            Check(aclrtMemcpy(bytes.data(), size_, memory_.get(), size_, ACL_MEMCPY_DEVICE_TO_HOST), "aclrtMemcpy");
        }
        return bytes;
    }

private:
    size_t size_;
    Memory memory_;
};

"""

MARK = "// -- on the host: runs the kernel on the data in data/, and compares. Usage: ./<program> [device] --"

_PROGRAM = (
    f"{MARK}\n"
    + """
#include <algorithm>

#include "harness.h"
#include "tiling/platform/platform_ascendc.h"

"""
    + aclnn.TENSORS
    + """\
    std::vector<std::unique_ptr<harness::Array>> inputs, outputs;
    for (const harness::Description &input : inputDescriptions) {
        const std::vector<uint8_t> bytes = harness::ReadFile(directory + input.name + ".bin", input.Bytes());
        inputs.push_back(std::make_unique<harness::Array>(bytes));
    }
    for (const harness::Description &output : outputDescriptions) {
        outputs.push_back(std::make_unique<harness::Array>(output.Filled()));
    }

    const auto *platform = platform_ascendc::PlatformAscendCManager::GetInstance();
    constexpr int64_t rows = @rows@, parts = @parts@;  // as many cores work on the same rows
    const int64_t most = platform == nullptr ? 0 : platform->GetCoreNumAiv() / parts;
    if (most == 0) {
        std::fprintf(stderr, "there are fewer vector cores than the kernel needs\\n");
        return 2;
    }
    const int64_t groups = @groups@;
    const int64_t blocks = groups * parts;
    @struct@ data = {};
@fields@
    const int64_t scratch = INT64_C(@launch_bytes@) + INT64_C(@core_bytes@) * blocks + INT64_C(@row_bytes@) * rows;
    const harness::Memory workspace(static_cast<size_t>(scratch));

    @kernel@<<<static_cast<uint32_t>(blocks), nullptr, session.stream()>>>(
        @arguments@,
        static_cast<uint8_t *>(workspace.get()), data);
    harness::Check(aclrtSynchronizeStream(session.stream()), "aclrtSynchronizeStream");

"""
    + aclnn.COMPARISON
    + """\
    std::printf("@kernel@: %s\\n", same ? "pass" : "FAIL");
    return same ? 0 : 1;
}
"""
)

_CMAKE = """\
# Programs that launch kernels with <<<>>>: `cmake -S . -B build && cmake --build build`, then ./build/<kernel>.
cmake_minimum_required(VERSION 3.16)

set(CMAKE_ASC_ARCHITECTURES "@architecture@" CACHE STRING "the product's architecture: dav-2201 or dav-3510")
find_package(ASC QUIET HINTS
    "$ENV{ASCEND_HOME_PATH}/compiler/tikcpp/ascendc_kernel_cmake"
    "$ENV{ASCEND_HOME_PATH}/tools/tikcpp/ascendc_kernel_cmake"
    "$ENV{ASCEND_HOME_PATH}")
if(NOT ASC_FOUND)
    message(FATAL_ERROR "CANN is missing: '$ENV{ASCEND_HOME_PATH}' has no CMake modules for the language ASC "
        "(find_package(ASC)). Install the toolkit and source its set_env.sh, which sets ASCEND_HOME_PATH.")
endif()
project(jascend_kernels LANGUAGES ASC CXX)

set(kernels
@kernels@
)
foreach(kernel ${kernels})
    add_executable(${kernel} ${kernel}.asc)
    target_compile_options(${kernel} PRIVATE $<$<COMPILE_LANGUAGE:ASC>:--npu-arch=${CMAKE_ASC_ARCHITECTURES}>)
    target_link_libraries(${kernel} PRIVATE tiling_api register platform m dl)
endforeach()
"""

README = """\
# Kernels in Ascend C

Kernels for @target@, written by jascend, each with a program that launches it with `<<<>>>` and compares. The kernels
have run on jascend's host twin, the programs against stand-ins for CANN's headers; neither has run on a device.

Where CANN is installed and its `set_env.sh` sourced:

    cmake -S . -B build && cmake --build build
@kernels@

`data/` holds the tensors of a call a kernel, as the device has them: inputs, and outputs as the host twin gave them.
`program.write(directory, project="direct", arguments=...)` writes it; without arguments there is none. `ir/` has the IR
after each stage of the compiler. What the compiler decided:

@explanation@
"""
