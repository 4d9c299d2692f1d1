// The C API: of it, what kernels written with the C++ API use, the calls on the data cache.
#pragma once
#include "kernel_operator.h"

inline void asc_dcci_single(__gm__ void* dst) { twin::CleanCache(reinterpret_cast<uint64_t>(dst), false); }
inline void asc_dcci_entire_all() { twin::CleanCache(0, true); }
inline void asc_dcci_entire_out() { twin::CleanCache(0, true); }
inline void asc_dcci_entire_ub() {}
inline void asc_dcci_entire_atomic() { twin::CleanCache(0, true); }
