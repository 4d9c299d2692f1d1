// The C interface of the runtime, for those who load it: Python through ctypes (library.py has the same structs), and
// the XLA FFI target (ffi/launch.cpp).
#pragma once
#include <cstdint>

namespace twin {

struct Array {
  void* data;
  uint64_t bytes;
  uint32_t writable, alias;  // alias: index of an earlier array that is the same memory, or its own
};

struct Options {
  uint64_t tilingKey, workspaceBytes, tilingBytes;
  const uint8_t* tiling;
  uint32_t blocks, check, autoSync, arch, ubBytes, physicalCores, trace;
  double timeout;   // seconds; 0 for none
  double patience;  // seconds of processor time without a sign that a block will end (watch.h); 0 for the usual
};

// `jascend_twin_run`: runs a kernel's entry, the arrays in its order. The result is a report as JSON, to be freed with
// `jascend_twin_free`, or null where there is no memory for it.
using RunFunction = char* (*)(void* entry, const Array* arrays, uint32_t count, const Options* options);
using FreeFunction = void (*)(char* text);

}  // namespace twin
