// The runtime's state of one core: findings, counts, what is known of each byte of UB, and the order of accesses.
#pragma once
#include <sys/mman.h>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csetjmp>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>
#include "twin/core.h"

namespace twin {
inline namespace TWIN_ABI {

constexpr int kPipes = 6;
constexpr int kEventIds = 8;
constexpr uint32_t kGranule = 32;  // UB accesses are remembered per 32 bytes

inline const char* PipeName(int pipe) {
  static const char* const names[] = {"S", "V", "M", "MTE1", "MTE2", "MTE3", "ALL"};
  return names[pipe];
}

struct Finding {
  std::string kind, message, file, buffer, otherFile;
  int line = 0, otherLine = 0, block = 0, caller = 0;
  uint64_t begin = 0, end = 0, count = 1;
};

// The clock of a pipe: how many instructions of each pipe are known to be complete.
struct Clock {
  uint32_t at[kPipes] = {};
  void Join(const Clock& other) {
    for (int p = 0; p < kPipes; ++p) at[p] = std::max(at[p], other.at[p]);
  }
};

// Where an instruction stands, kept once per (API, file, line, caller): where it is in a function of the source's own whose
// calls are followed, also the line of the call.
struct Place {
  const char* api;
  const char* file;
  int line;
  int pipe;
  int caller;
  uint64_t instructions = 0, repeats = 0;  // issued from here
};

// One remembered access to a granule of UB: bytes [begin, end) by instruction `sequence` of a pipe.
struct Access {
  uint32_t sequence = 0;  // 0: none
  uint32_t begin = 0, end = 0;
  uint32_t place = 0;
};

// The last accesses of one kind to each granule: the one that covered all of it, and beside it those that covered a part.
class History {
 public:
  void Use(Access* whole, size_t granules) {
    whole_ = whole;
    where_.resize(granules);
  }

  template <typename F>
  void Each(uint64_t granule, F f) const {
    if (whole_[granule].sequence) f(whole_[granule]);
    if (!where_[granule]) return;
    for (const Access& part : parts_[where_[granule] - 1]) f(part);
  }

  // What the access covers of the granule is forgotten: it was ordered after those there, or the lack of it is reported.
  void Remember(uint64_t granule, const Access& access) {
    const uint64_t low = granule * kGranule, high = low + kGranule;
    const bool whole = access.begin <= low && high <= access.end;
    if (!whole && !where_[granule]) {
      parts_.emplace_back();
      where_[granule] = uint32_t(parts_.size());
    }
    if (where_[granule]) {
      std::vector<Access>& parts = parts_[where_[granule] - 1];
      size_t kept = 0;
      for (const Access& part : parts) {
        const uint64_t begin = std::max<uint64_t>(part.begin, low), end = std::min<uint64_t>(part.end, high);
        if (access.begin > begin || end > access.end) parts[kept++] = part;
      }
      parts.resize(kept);
      if (!whole) parts.push_back(access);
    }
    if (whole) whole_[granule] = access;
  }

 private:
  Access* whole_ = nullptr;
  std::vector<std::vector<Access>> parts_;
  std::vector<uint32_t> where_;  // by granule: its parts' place in `parts_`, counted from 1; 0 where there were none
};

struct Event {
  bool set = false, taken = false;
  Clock clock;
  uint32_t serial = 0;
  Site site = Site::Here();
};

// An interval of GM with the instruction that touched it last.
struct GmAccess {
  uint64_t end;
  uint32_t sequence, place;
  bool atomic;
};
using GmIntervals = std::map<uint64_t, GmAccess>;

// How often all blocks of a launch have met (in SyncAll, or through a flag between cores) is the number of an epoch.
constexpr uint32_t kOpen = ~0u;
constexpr int kCrossFlags = 16;

// What a block did to an argument from one meeting to another, for races between blocks.
struct BlockAccess {
  uint64_t begin, end;
  uint32_t epoch, place, sequence;
  bool write, atomic;
  bool cached;           // a store of the scalar unit that is in its data cache only
  uint32_t cleaned = 0;  // the epoch in which it was written back
  uint32_t until = kOpen;  // the first epoch in which it is surely complete,
  int8_t flag = -1;        // or that of the meeting through this flag,
  uint32_t nth = 0;        // the nth time that this block sets it
  uint32_t since = kOpen;  // of a read through a cache: the first epoch in which that cache had read of the same lines
};

// A line of GM in a cache of the core's: 64 bytes in the scalar unit's, 32 in that of copies of several dimensions.
struct CacheLine {
  uint32_t place, epoch;    // the access that brought it in, and when
  uint64_t dirty = ~0ull;   // the lowest address that the scalar unit stored to; none
  uint32_t stalePlace = 0;  // what changed GM under it,
  uint64_t staleBegin = ~0ull, staleEnd = 0;  // and from where to where, of copies of several dimensions
};

struct Argument {
  uint8_t* base = nullptr;
  uint64_t bytes = 0;
  bool writable = true, workspace = false, constants = false;
  int index = 0, member = -1;  // the kernel's parameter; which of a list of tensors
  std::unique_ptr<uint8_t[]> written;  // of the workspace: 1 where something was stored
};

struct PipeCount {
  uint64_t instructions = 0, repeats = 0, bytes = 0;
};

// One step of a block, in program order, for a cost model. Python reads these bytes as TRACE_DTYPE (library.py).
enum class Step : uint8_t { kInstruction, kSet, kWait, kBarrier, kSyncAll };
struct TraceStep {
  Step step;
  uint8_t pipe, to;  // kSet and kWait: from `pipe` to `to`
  uint8_t width;
  uint32_t serial;   // kSet and kWait: the same number on both sides of one flag
  uint32_t place, repeats, pieces;
  uint32_t argument;       // of GM accesses: which kernel argument,
  uint64_t bytes, offset;  // how much, and where in it the first piece starts
  // Of vector instructions, what is written and the first two that are read, as far as each repeat touches all 256 bytes:
  uint32_t address[3];  // in UB; ~0: there is none
  uint16_t blockStride[3], repeatStride[3];  // in 32-byte blocks
};
static_assert(sizeof(TraceStep) == 64, "no padding");

struct Span {
  uint64_t begin, end;
};

struct Launch;

// Zeroed memory of which only what is touched costs anything: most kernels use a part of UB.
class Pages {
 public:
  ~Pages() {
    if (base_) munmap(base_, bytes_);
  }
  uint8_t* Map(size_t bytes) {
    void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON, -1, 0);
    if (p == MAP_FAILED) throw std::bad_alloc();
    base_ = p;
    bytes_ = bytes;
    return static_cast<uint8_t*>(p);
  }

 private:
  void* base_ = nullptr;
  size_t bytes_ = 0;
};

// The part of UB that an instruction last used as its scratch.
struct Overwritten {
  uint64_t begin = 0;
  std::vector<uint8_t> held;  // 1 where it held something the kernel had put there
  const char* api = "";
  int line = 0;
};

struct State {
  Launch* launch = nullptr;
  bool autoSync = false, initialised = false, usesEvents = false;
  int caller = 0, followed = 0;  // of calls that are followed: the line of the outermost, and how many are open
  Pages pages;
  uint8_t* ub = nullptr;
  uint8_t* valid = nullptr;  // 1 where UB holds something the kernel put there
  Overwritten overwritten;

  std::vector<Finding> findings;
  std::unordered_map<std::string, size_t> findingIndex;

  std::vector<Span> spans;  // of the call under way
  std::vector<uint8_t> scratch;

  std::vector<Place> places{Place{}};
  std::unordered_map<uint64_t, uint32_t> placeIndex;
  Clock clocks[kPipes];
  uint32_t mergeSequence = 0, mergePlace = 0;  // of the last MrgSort
  uint32_t sequence[kPipes] = {};
  // By granule of UB, reads for V, MTE2 and MTE3; the pipe of a write is its place's.
  History writes, reads[kPipes];
  Event events[kPipes][kPipes][kEventIds];
  std::vector<GmIntervals> gmWrites, gmReads[kPipes];  // by argument
  std::vector<std::vector<BlockAccess>> blockAccesses;  // by argument
  std::vector<size_t> firstOpen;                        // by argument: those before it have their end
  uint32_t flagsSet[kCrossFlags] = {};
  uint32_t epoch = 0;
  std::unordered_map<uint64_t, CacheLine> cache;  // by address / 64
  std::unordered_map<uint64_t, CacheLine> ndLines;  // by address / 32 (nd_cache.h)

  PipeCount pipes[kPipes];
  uint64_t gmRead = 0, gmWritten = 0, scalarAccesses = 0, barriers = 0, flags = 0, syncs = 0;
  uint32_t ubHigh = 0;
  bool tracing = false;
  uint32_t serials = 0;
  std::vector<TraceStep> trace;
  std::string printed;
  int keysAsked = 0, keysTaken = 0;
  std::atomic<bool> ended{false};
  std::atomic<uint64_t> calls{0}, copies{0};  // of the API; of it, to and from GM (see watch.h)
  Site firstKey = Site::Here();
};

// All blocks of a launch meet here (see meet.h).
struct Meeting {
  struct Flag {
    std::vector<uint32_t> set, taken;  // by block
    std::vector<uint32_t> epochs;      // the epoch that each meeting through it began
  };
  std::mutex mutex;
  std::condition_variable changed;
  int alive = 0, blocked = 0;  // blocks that run; those of them that wait for others
  int waiting = 0, target = 0;  // in SyncAll
  uint64_t generation = 0;
  uint32_t epoch = 0;
  Flag flags[kCrossFlags];
  std::vector<int> waitsFor;  // by block: the flag, or -1
};

struct Launch {
  std::vector<Argument> arguments;  // arrays, then the workspace, then the tiling
  std::mutex atomics;
  Meeting meeting;
  std::atomic<bool> expired{false};  // blocks still running give up at their next API call,
  std::string why;                   // for this reason
  std::mutex doneMutex;
  std::condition_variable doneChanged;
  int done = 0;
  int blocks = 1, physicalCores = 48;
  uint32_t arch = 2201;

  // The argument whose memory, or the guard space around it, holds the address; null for a pointer from elsewhere.
  Argument* Find(uint64_t address, uint64_t guard) {
    for (Argument& a : arguments) {
      uint64_t base = uint64_t(a.base), around = a.constants ? 0 : guard;
      if (address + around >= base && address < base + a.bytes + around) return &a;
    }
    return nullptr;
  }
  uint64_t guard = 0;
};

inline thread_local Core* tls_core = nullptr;
inline thread_local sigjmp_buf* tls_escape = nullptr;  // out of the kernel, while it runs
constexpr int kTimeout = 1000;                          // beside signal numbers

// One more call of the API.
inline void CountCall(State& s) {
  s.calls.store(s.calls.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

inline void GiveUpIfExpired(const Launch& launch) {
  if (launch.expired.load(std::memory_order_relaxed) && tls_escape) siglongjmp(*tls_escape, kTimeout);
}

inline std::string Name(const Argument& a) {
  if (a.constants) return "the kernel's constants";
  const std::string tensor = a.member < 0 ? "" : "tensor " + std::to_string(a.member) + " of ";
  return a.workspace ? "the workspace" : tensor + "GM argument " + std::to_string(a.index);
}

inline std::string Format(const char* format, va_list args) {
  char text[1024];
  vsnprintf(text, sizeof(text), format, args);
  return text;
}
inline std::string Text(const char* format, ...) __attribute__((format(printf, 1, 2)));
inline std::string Text(const char* format, ...) {
  va_list args;
  va_start(args, format);
  std::string text = Format(format, args);
  va_end(args);
  return text;
}

// Records a finding, or counts it with the one of the same kind at the same lines.
inline bool AddFinding(State& s, const char* kind, Site site, int otherLine, const char* otherFile) {
  std::string key =
      std::string(kind) + '|' + site.file + '|' + std::to_string(site.line) + '|' + std::to_string(otherLine) +
      '|' + std::to_string(s.caller);
  auto [it, fresh] = s.findingIndex.emplace(key, s.findings.size());
  if (!fresh) {
    ++s.findings[it->second].count;
    return false;
  }
  Finding finding;
  finding.kind = kind;
  finding.file = site.file;
  finding.line = site.line;
  finding.caller = s.caller;
  finding.otherLine = otherLine;
  finding.otherFile = otherFile ? otherFile : "";
  finding.block = tls_core->block;
  s.findings.push_back(std::move(finding));
  return true;
}

// With the checker on or off.
inline void Always(State& s, const char* kind, Site site, std::string message, std::string buffer = "",
                   uint64_t begin = 0, uint64_t end = 0) {
  if (!AddFinding(s, kind, site, 0, nullptr)) return;
  Finding& finding = s.findings.back();
  finding.message = std::move(message);
  finding.buffer = std::move(buffer);
  finding.begin = begin;
  finding.end = end;
}

inline void Note(State& s, const char* kind, Site site, std::string message, std::string buffer = "",
                 uint64_t begin = 0, uint64_t end = 0) {
  if (tls_core->check) Always(s, kind, site, std::move(message), std::move(buffer), begin, end);
}

inline uint32_t PlaceOf(State& s, const char* api, pipe_t pipe, Site site) {
  uint64_t key = (uint64_t(reinterpret_cast<uintptr_t>(site.file)) * 1000003u + uint64_t(site.line)) * 1000003u +
                 uint64_t(reinterpret_cast<uintptr_t>(api)) * 8 + uint64_t(pipe) +
                 uint64_t(s.caller) * 0x9e3779b97f4a7c15ull;
  auto [it, fresh] = s.placeIndex.emplace(key, uint32_t(s.places.size()));
  if (fresh) s.places.push_back(Place{api, site.file, site.line, pipe, s.caller, 0, 0});
  return it->second;
}

inline void Trace(State& s, Step step, int pipe, int to, uint32_t serial, const char* api, Site site) {
  if (!s.tracing) return;
  s.trace.push_back({step, uint8_t(pipe), uint8_t(to), 0, serial, PlaceOf(s, api, pipe_t(pipe), site), 0, 0, 0, 0, 0});
}

}  // inline namespace
}  // namespace twin
