// What a kernel's code shares with the runtime: the state of the core it runs on, and the description of one API call.
//
// Every API call makes a Call, says what it reads and writes, and asks Issue() whether to go on. Issue() checks the
// operands before anything is touched, orders the instruction after what it must wait for, and counts it.
#pragma once
#include "twin/macros.h"

enum pipe_t { PIPE_S = 0, PIPE_V, PIPE_M, PIPE_MTE1, PIPE_MTE2, PIPE_MTE3, PIPE_ALL };

namespace twin {
inline namespace TWIN_ABI {

// Where in the kernel's source a call stands. API functions take one as their last parameter, by default the call's
// own place; nothing converts to it, so that it never takes an argument meant for another parameter.
class Site {
 public:
  static constexpr Site Here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return Site(file, line);
  }
  const char* file;
  int line;

 private:
  constexpr Site(const char* file, int line) : file(file), line(line) {}
};

struct State;  // the runtime's own part of a core

enum class Atomic : uint8_t { kNone, kAdd, kMax, kMin };
enum class Element : uint8_t { kOther, kInt8, kInt16, kInt32, kHalf, kBfloat16, kFloat };

// Copies that SetLoopModePara (950) repeats: inner x outer times, at steps of bytes on either side.
struct LoopMode {
  uint32_t inner = 1, outer = 1;
  uint64_t innerFrom = 0, innerTo = 0, outerFrom = 0, outerTo = 0;
};

struct Core {
  uint8_t* ub = nullptr;  // the unified buffer; addresses in LocalTensor are offsets from here
  uint32_t ubBytes = 0, ubRoom = 0;  // what a kernel may use of UB, what there is
  bool check = true;
  int32_t block = 0, blocks = 1;
  uint64_t tilingKey = 0;
  uint64_t mask[2] = {~0ull, ~0ull};  // the mask register; in counter mode mask[0] counts elements
  bool counterMode = false;
  Atomic atomic = Atomic::kNone;
  Element atomicElement = Element::kOther;
  LoopMode loops[2];                 // of copies to GM, and from GM
  uint8_t compareMask[16] = {};  // what Compare without a destination gives
  float deqScale = 0;
  bool deqScaleSet = false;
  uint16_t mergeCounts[4] = {0, 0, 0, 0};  // what the last MrgSort consumed of each list
  void* tpipe = nullptr;                   // the TPipe alive, if any
  const uint8_t* tiling = nullptr;
  uint64_t tilingBytes = 0;
  State* state = nullptr;
};

TWIN_API Core& ThisCore();

enum class Space : uint8_t { kUb, kGm };

struct Operand {
  const char* name;
  Space space;
  bool write, atomic;
  uint32_t firstSpan, spans;
  uint64_t low, high;  // the buffer or GlobalTensor that the operand belongs to
};

// The lanes that take part: a mask per repeat, and in counter mode a total.
struct Lanes {
  uint64_t mask[2];
  uint32_t perRepeat;  // lanes in a full repeat
  uint32_t repeats;
  uint64_t total;      // 0: every repeat uses `mask`; else lanes in all, and `mask` is ignored

  bool Active(uint32_t repeat, uint32_t lane) const {
    if (total) return uint64_t(repeat) * perRepeat + lane < total;
    return (mask[lane >> 6] >> (lane & 63)) & 1;
  }
};

// The walk of one operand: element width and strides (in 32-byte blocks), or consecutive when repeatStride is as much.
struct Walk {
  uint64_t base;
  uint32_t width, blockStride, repeatStride;
  uint64_t At(uint32_t repeat, uint32_t lane) const {
    uint32_t perBlock = 32 / width;
    return base + uint64_t(repeat) * repeatStride * 32 + uint64_t(lane / perBlock) * blockStride * 32 +
           lane % perBlock * width;
  }
};

constexpr int kMaxOperands = 8;

class TWIN_API Call {
 public:
  Call(const char* api, pipe_t pipe, Site site);

  // `bytes` from UB address `begin`, of the buffer that spans [low, high).
  void Ub(const char* name, bool write, uint64_t begin, uint64_t bytes, uint64_t low, uint64_t high, uint32_t align);
  // The same for the active lanes of repeats: strides in 32-byte blocks, `width` bytes an element. What is written may
  // coincide with what was read, lane by lane; a repeat must not read what an earlier one wrote.
  void UbLanes(const char* name, bool write, uint64_t begin, uint32_t width, const Lanes& lanes, uint32_t blockStride,
               uint32_t repeatStride, uint64_t low, uint64_t high, uint32_t align);
  // `count` pieces of `bytes`, `stride` from start to start.
  void UbPieces(const char* name, bool write, uint64_t begin, uint32_t count, uint64_t bytes, int64_t stride,
                uint64_t low, uint64_t high, uint32_t align);
  void Gm(const char* name, bool write, uint64_t begin, uint32_t count, uint64_t bytes, int64_t stride, uint64_t low,
          uint64_t high);

  // UB that the API overwrites for its own use: data there is lost.
  void Scratch(uint64_t begin, uint64_t bytes);
  // A broken rule of the API: a finding of that kind. With `skip` the call is not performed.
  void Problem(bool skip, const char* kind, const char* format, ...) __attribute__((format(printf, 4, 5)));
  // True where the call may touch its operands. `repeats` counts what the vector unit does (256 bytes each).
  bool Issue(uint32_t repeats = 0);
  // After Issue: part of what the call wrote holds nothing useful (padding, scratch), or does after all.
  void Undefined(uint64_t begin, uint64_t bytes);
  void Defined(uint64_t begin, uint64_t bytes);
  // Adds a piece to the operand added last, where operands depend on data.
  void Extend(uint64_t begin, uint64_t bytes);
  // Whether UB has these bytes, for calls that must look at data before they know what they touch.
  bool InUb(uint64_t begin, uint64_t bytes) const { return begin + bytes <= core.ubRoom; }

  Core& core;
  const char* api;
  pipe_t pipe;
  Site site;
  uint32_t width = 0;  // bytes of the widest element, for the trace
  bool throughNdCache = false;  // reads GM as copies of several dimensions do

 private:
  Operand operands_[kMaxOperands];
  Walk walks_[kMaxOperands];  // of those of UbLanes, the others have no width
  int count_ = 0;
  bool skip_ = false;
  Operand& Add(const char* name, Space space, bool write, uint64_t low, uint64_t high);
  void CheckLanes(const Operand& source, const Walk& from, const Walk& to, const Lanes& lanes);
  friend struct Checker;
};

// A fault outside an instruction (queues, tiling, events). kind and text as in Call::Problem.
TWIN_API void NewLocal(uint64_t low, uint64_t high, Site site);  // a LocalTensor at static addresses
TWIN_API void Report(const char* kind, Site site, const char* format, ...) __attribute__((format(printf, 3, 4)));

// Synchronisation (see runtime/order.h).
TWIN_API void EventSet(pipe_t from, pipe_t to, int id, Site site);
TWIN_API void EventWait(pipe_t from, pipe_t to, int id, Site site);
TWIN_API int EventAlloc(pipe_t from, pipe_t to, Site site);    // takes a free id
TWIN_API int EventFetch(pipe_t from, pipe_t to, Site site);    // a free id, not taken
TWIN_API void EventRelease(pipe_t from, pipe_t to, int id, Site site);
TWIN_API void Barrier(pipe_t pipe, Site site);
TWIN_API void BlocksBarrier(int32_t blocks, Site site);        // SyncAll; blocks 0 is all of the launch
TWIN_API void CrossFlagSet(pipe_t pipe, int id, Site site);     // CrossCoreSetFlag and -WaitFlag, of all blocks
TWIN_API void CrossFlagWait(int id, Site site);
TWIN_API void KeepMergeCounts(const Call& call, const uint16_t counts[4]);  // what the MrgSort just issued used,
TWIN_API const uint16_t* MergeCounts(Site site);                            // and where the scalar unit reads it
TWIN_API void CleanCache(uint64_t address, bool entire);       // DataCacheCleanAndInvalid
TWIN_API void ForgetNdCache();                                 // NdDmaDci
TWIN_API void CalledFrom(int line);  // around a call of one of the source's own functions that is followed; 0 after it
TWIN_API void KernelInitialised();                             // InitSocState or a TPipe

// The order that a queue keeps between the pipes on its two ends, without event ids of the user's.
struct Stamp {
  uint32_t clock[6];
  uint32_t serial;  // pairs the two sides in a trace
  bool set;
};
TWIN_API void StampSet(Stamp& stamp, pipe_t from);
TWIN_API void StampWait(const Stamp& stamp, pipe_t to);

// Bytes from there to the end of the kernel argument that the pointer lies in; 0 in none.
TWIN_API uint64_t GmBytesFrom(uint64_t address);
TWIN_API void AtomicLock(bool lock);
TWIN_API uint8_t* ScratchBytes(uint64_t bytes);  // memory of this core's thread, valid until the next call
TWIN_API bool TilingKeyIs(uint64_t key);
TWIN_API void Print(const char* text);  // to the output of the run

inline uint64_t RoundUp(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

}  // inline namespace
}  // namespace twin
