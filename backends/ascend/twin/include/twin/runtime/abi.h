// The C interface of the runtime, for those who load it: Python through ctypes (library.py has the same structs), and
// the XLA FFI target (ffi/launch.cpp).
#pragma once
#include <cstdint>

namespace twin {

struct Array {
  void* data;
  uint64_t bytes;
  uint32_t writable, alias;  // alias: index of an earlier array that is the same memory, or its own
  uint32_t kind;             // below
  uint32_t members;          // kList: how many of the next arrays are the list's; kMember: which of them this is
};

// What a kernel's parameter is: an array; a value, passed as it is; a table whose last `members` words become the addresses
// of the arrays after it, which are no parameters themselves.
enum ArrayKind : uint32_t { kArray = 0, kValue, kList, kMember };

struct Options {
  uint64_t tilingKey, workspaceBytes, tilingBytes;
  const uint8_t* tiling;
  uint32_t blocks, check, autoSync, arch, ubBytes, physicalCores, trace;
  uint32_t direct;  // the entry takes an array of pointers, and the kernel neither workspace nor tiling (direct.h)
  double timeout;   // seconds; 0 for none
  double patience;  // seconds of processor time without a sign that a block will end (watch.h); 0 for the usual
};

// `jascend_twin_run`: runs a kernel's entry, the arrays in its order. The result is a report as JSON, to be freed with
// `jascend_twin_free`, or null where there is no memory for it.
using RunFunction = char* (*)(void* entry, const Array* arrays, uint32_t count, const Options* options);
using FreeFunction = void (*)(char* text);

}  // namespace twin
