// Kernels whose tiling key stands for template arguments declare the values here, for the CANN build to choose from.
// The twin runs what a source instantiates: `extern "C" __global__ void add_0(...) { add<0>(...); }`.
#pragma once

#define ASCENDC_TPL_ARGS_DECL(...) static_assert(true, "declares template arguments")
#define ASCENDC_TPL_SEL(...) static_assert(true, "selects template arguments")
