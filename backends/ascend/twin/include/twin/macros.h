// Qualifiers of the Ascend C language, as a host compiler sees them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

#ifndef __NPU_ARCH__
#error "the twin needs the target: compile with jascend.backends.ascend.twin.build, or pass -D__NPU_ARCH__=2201"
#endif
#if __NPU_ARCH__ != 2201 && __NPU_ARCH__ != 3510
#error "the twin knows __NPU_ARCH__ 2201 (910B, 910_93) and 3510 (950)"
#endif

#define __global__ __attribute__((visibility("default")))
// A kernel's own code is calls and a little scalar arithmetic; generated, thousands of calls in one function, whose optimization
// would take most of a build. What the calls do is optimized apart.
#if defined(__clang__)
#define __aicore__
#else
#define __aicore__ __attribute__((optimize("O0")))
#endif
#define __vector__
#define __mix__(cube, vector)
#define __gm__
#define __ubuf__
#define __inout_pipe__(pipe)
#define __cube__
#define __schedmode__(mode)
#define __tiling_data_ptr__
#define GM_ADDR __gm__ uint8_t*

// A call's work is compiled once per type, not into every call site: kernels would take seconds longer to build.
#define TWIN_OUTLINE __attribute__((noinline))

// What the runtime exports and kernels import; everything else stays private to its shared object.
#define TWIN_API __attribute__((visibility("default")))

// Loops over operands carry no dependence between iterations: overlap that would is a finding, not a semantics.
#if defined(__clang__)
#define TWIN_IVDEP _Pragma("clang loop vectorize(assume_safety)")
#else
#define TWIN_IVDEP _Pragma("GCC ivdep")
#endif

// The build passes a name that depends on the headers' content: two versions of the twin in one process stay apart.
#ifndef TWIN_ABI
#define TWIN_ABI unversioned
#endif
