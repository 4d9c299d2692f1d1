"""The build of a custom operator project: CMake files, presets and build script.

The functions `npu_op_*` come with CANN (`find_package(ASC)`); what they take is in the Ascend C guide's page on
the CMake functions of operator projects. A configuration without CANN stops with a message that says what is missing.
"""

from __future__ import annotations

from collections.abc import Sequence

from .op_host import operator_type
from .template import fill


def files(kernels: Sequence[str], soc: str) -> dict[str, str]:
    """The build files of a project with these kernels, by path."""
    sources = "\n".join(f"    ${{CMAKE_CURRENT_SOURCE_DIR}}/{kernel}.cpp" for kernel in kernels)
    entries = "\n".join(fill(_KERNEL, operator=operator_type(kernel), kernel=kernel) for kernel in kernels)
    return {
        "CMakeLists.txt": fill(_TOP, soc=soc),
        "CMakePresets.json": fill(_PRESETS, soc=soc),
        "build.sh": _BUILD,
        "op_host/CMakeLists.txt": fill(_OP_HOST, sources=sources),
        "op_kernel/CMakeLists.txt": fill(_OP_KERNEL, kernels=entries),
    }


_TOP = """\
# An operator package for CANN: `./build.sh`, or `cmake --preset default` and `cmake --build --preset default`.
cmake_minimum_required(VERSION 3.16)
project(jascend_operators LANGUAGES CXX)

set(ASCEND_COMPUTE_UNIT "@soc@" CACHE STRING "the product, as the toolkit at hand spells it")
set(vendor_name "jascend" CACHE STRING "the directory under vendors/ that the package is installed to")
set(ASCEND_CANN_PACKAGE_PATH "$ENV{ASCEND_HOME_PATH}" CACHE PATH "where CANN is installed")

if(NOT IS_DIRECTORY "${ASCEND_CANN_PACKAGE_PATH}")
    message(FATAL_ERROR "CANN is missing: '${ASCEND_CANN_PACKAGE_PATH}' is no directory. Install the toolkit and "
        "source its set_env.sh, which sets ASCEND_HOME_PATH, or pass -DASCEND_CANN_PACKAGE_PATH=<directory>.")
endif()
find_package(ASC QUIET HINTS
    "${ASCEND_CANN_PACKAGE_PATH}/compiler/tikcpp/ascendc_kernel_cmake"
    "${ASCEND_CANN_PACKAGE_PATH}/tools/tikcpp/ascendc_kernel_cmake"
    "${ASCEND_CANN_PACKAGE_PATH}")
if(NOT COMMAND npu_op_package)
    message(FATAL_ERROR "The CANN in '${ASCEND_CANN_PACKAGE_PATH}' has no CMake modules for operator projects "
        "(find_package(ASC)): install a toolkit that has them. With an older one, make a project from the "
        "prototypes (*.json) with msopgen, and copy op_host/*.cpp and op_kernel/ over it.")
endif()

set(package_name ${vendor_name})
npu_op_package(${package_name}
    TYPE RUN
    CONFIG
        ENABLE_SOURCE_PACKAGE True
        ENABLE_BINARY_PACKAGE True
        INSTALL_PATH ${CMAKE_BINARY_DIR}/
)

add_subdirectory(op_host)
add_subdirectory(op_kernel)
"""

_OP_HOST = """\
set(operator_sources
@sources@
)

# Reads the definitions and writes the aclnn interfaces and the graph prototypes.
npu_op_code_gen(
    SRC ${operator_sources}
    PACKAGE ${package_name}
    OUT_DIR ${ASCEND_AUTOGEN_PATH}
)

file(GLOB aclnn_sources ${ASCEND_AUTOGEN_PATH}/aclnn_*.cpp)
set_source_files_properties(${aclnn_sources} PROPERTIES GENERATED TRUE)
npu_op_library(cust_opapi ACLNN ${aclnn_sources})

file(GLOB prototype_sources ${ASCEND_AUTOGEN_PATH}/op_proto.cc)
set_source_files_properties(${prototype_sources} PROPERTIES GENERATED TRUE)
npu_op_library(cust_op_proto GRAPH ${operator_sources} ${prototype_sources})

npu_op_library(cust_optiling TILING ${operator_sources})

foreach(library cust_opapi cust_op_proto cust_optiling)
    target_compile_options(${library} PRIVATE -fvisibility=hidden)
endforeach()
npu_op_package_add(${package_name} LIBRARY cust_optiling cust_opapi cust_op_proto)
"""

_OP_KERNEL = """\
@kernels@

npu_op_kernel_library(ascendc_kernels
    SRC_BASE ${CMAKE_CURRENT_SOURCE_DIR}/
    TILING_LIBRARY cust_optiling
)
npu_op_package_add(${package_name} LIBRARY ascendc_kernels)
"""

_KERNEL = """\
npu_op_kernel_sources(ascendc_kernels
    OP_TYPE @operator@
    KERNEL_DIR ./
    KERNEL_FILE @kernel@.cpp
)"""

_PRESETS = """\
{
    "version": 2,
    "cmakeMinimumRequired": {"major": 3, "minor": 20, "patch": 0},
    "configurePresets": [
        {
            "name": "default",
            "generator": "Unix Makefiles",
            "binaryDir": "${sourceDir}/build_out",
            "cacheVariables": {
                "CMAKE_BUILD_TYPE": "Release",
                "ASCEND_COMPUTE_UNIT": "@soc@",
                "vendor_name": "jascend"
            }
        }
    ],
    "buildPresets": [{"name": "default", "configurePreset": "default", "targets": ["binary", "package"]}]
}
"""

_BUILD = """\
#!/usr/bin/env bash
# Builds the operator package, build_out/custom_opp_<os>_<architecture>.run. Arguments go to CMake, for example
# -DASCEND_COMPUTE_UNIT=<product> or -Dvendor_name=<name>.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")"

if ! command -v cmake > /dev/null; then
    echo "build.sh: CMake 3.16 or later is missing" >&2
    exit 1
fi
cmake -S . -B build_out -DCMAKE_BUILD_TYPE=Release "$@"
cmake --build build_out --target binary package --parallel "${JOBS:-4}"
echo "build.sh: install the package with ./build_out/custom_opp_*.run, then see test/README.md"
"""
