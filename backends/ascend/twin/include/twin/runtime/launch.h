// Running a kernel: memory for its arguments, a thread a block, races between blocks, the result as JSON.
//
// Arguments are copied to memory of their own with unmapped space around each, so that a stray pointer faults instead
// of hitting a neighbour, and copied back where the kernel wrote. Block threads flush denormal floats to zero, inputs
// and results, as XLA:CPU does.
#pragma once
#include "twin/runtime/abi.h"
#include "twin/runtime/check.h"
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace twin {
inline namespace TWIN_ABI {

inline void FlushDenormals() {
#if defined(__SSE__)
  _mm_setcsr(_mm_getcsr() | 0x8040);  // flush to zero, denormals are zero
#elif defined(__aarch64__)
  uint64_t control;
  asm volatile("mrs %0, fpcr" : "=r"(control));
  asm volatile("msr fpcr, %0" : : "r"(control | (1ull << 24)));
#else
#error "the twin needs a way to flush denormals on this processor"
#endif
}

// ---- memory ----

// One reservation for all arguments: guard, argument, guard, argument, ..., guard; only arguments are accessible.
class Arena {
 public:
  ~Arena() {
    if (base_) munmap(base_, bytes_);
  }
  bool Reserve(std::vector<Argument>& arguments, uint64_t guard) {
    bytes_ = guard;
    for (Argument& a : arguments) bytes_ += Pages(a.bytes) + guard;
    void* p = mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANON | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return false;
    base_ = static_cast<uint8_t*>(p);
    uint8_t* at = base_ + guard;
    for (Argument& a : arguments) {
      a.base = at;
      if (mprotect(at, Pages(a.bytes), PROT_READ | PROT_WRITE) != 0) return false;
      at += Pages(a.bytes) + guard;
    }
    return true;
  }

 private:
  static uint64_t Pages(uint64_t bytes) { return RoundUp(bytes ? bytes : 1, 1 << 16); }
  uint8_t* base_ = nullptr;
  uint64_t bytes_ = 0;
};

// ---- blocks meeting ----

inline void Meet(Launch& launch, int32_t blocks, Site site) {
  Meeting& m = launch.meeting;
  std::unique_lock<std::mutex> lock(m.mutex);
  m.target = blocks ? blocks : launch.blocks;
  uint64_t generation = m.generation;
  ++m.waiting;
  bool deserted = m.waiting == m.alive && m.waiting < m.target;  // the others have ended
  if (deserted)
    Note(*tls_core->state, "block-sync", site, Text("SyncAll waits for %d blocks, and only %d reach it", m.target, m.waiting));
  if (deserted || m.waiting == m.target) {
    m.waiting = 0;
    ++m.generation;
    m.arrived.notify_all();
    return;
  }
  m.arrived.wait(lock, [&] { return m.generation != generation || launch.expired; });
}

TWIN_API void BlocksBarrier(int32_t blocks, Site site) {
  State& s = *tls_core->state;
  Launch& launch = *s.launch;
  ++s.syncs;
  Trace(s, Step::kSyncAll, PIPE_ALL, PIPE_ALL, 0, "SyncAll", site);
  if (launch.blocks > launch.physicalCores)
    Note(s, "block-sync", site, Text("SyncAll with %d blocks on %d vector cores; the device waits for ever", launch.blocks,
                                     launch.physicalCores));
  Meet(launch, blocks, site);
  GiveUpIfExpired(launch);
  ++s.epoch;
}

inline void LeaveMeeting(Launch& launch) {
  Meeting& m = launch.meeting;
  std::lock_guard<std::mutex> lock(m.mutex);
  --m.alive;
  if (m.waiting && m.waiting == m.alive && m.waiting < m.target) {
    Note(*tls_core->state, "block-sync", Site::Here("", 0),
         Text("a block ended while %d others wait in SyncAll; the device waits for ever", m.waiting));
    m.waiting = 0;
    ++m.generation;
    m.arrived.notify_all();
  }
}

// ---- faults of the kernel's own C++ ----

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGUSR2};  // the last ends a block that calls no API
constexpr int kSignalCount = 5;
constexpr size_t kSignalStack = 1 << 16;
inline struct sigaction previousActions[kSignalCount];
inline thread_local bool tls_worker = false;

inline void OnSignal(int signal, siginfo_t* info, void* context) {
  if (tls_escape) siglongjmp(*tls_escape, signal);
  if (signal == SIGUSR2 && tls_worker) return;  // for a block that has just ended
  for (int i = 0; i < kSignalCount; ++i) {
    if (kSignals[i] != signal) continue;
    struct sigaction& old = previousActions[i];
    if (old.sa_flags & SA_SIGINFO) return old.sa_sigaction(signal, info, context);
    if (old.sa_handler != SIG_DFL && old.sa_handler != SIG_IGN) return old.sa_handler(signal);
    sigaction(signal, &old, nullptr);  // as it was: returning raises it again
  }
}

inline std::mutex signalMutex;
inline int signalUsers = 0;

struct SignalGuard {
  SignalGuard() {
    std::lock_guard<std::mutex> lock(signalMutex);
    if (signalUsers++) return;
    for (int i = 0; i < kSignalCount; ++i) {
      struct sigaction action = {};
      action.sa_sigaction = OnSignal;
      action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
      sigaction(kSignals[i], &action, &previousActions[i]);
    }
  }
  ~SignalGuard() {
    std::lock_guard<std::mutex> lock(signalMutex);
    if (--signalUsers) return;
    for (int i = 0; i < kSignalCount; ++i) sigaction(kSignals[i], &previousActions[i], nullptr);
  }
};

// ---- calling the entry ----

using Pointer = uint8_t*;
constexpr size_t kMaxArguments = 64;

template <size_t... I>
inline void CallWith(void* entry, Pointer* a, std::index_sequence<I...>) {
  reinterpret_cast<void (*)(decltype((void)I, Pointer())...)>(entry)(a[I]...);
}
template <size_t N>
inline void CallEntry(void* entry, Pointer* a, size_t n) {
  if (n == N) return CallWith(entry, a, std::make_index_sequence<N>());
  if constexpr (N < kMaxArguments) CallEntry<N + 1>(entry, a, n);
}

// ---- races between blocks ----

struct BlockInterval {
  uint64_t begin, end;
  int block;
  const BlockAccess* access;
};

inline void FindBlockRaces(std::vector<State>& states, const Launch& launch, std::vector<Finding>& out) {
  for (size_t a = 0; a < launch.arguments.size(); ++a) {
    std::map<uint32_t, std::vector<BlockInterval>> epochs;
    bool anyWrite = false;
    for (size_t b = 0; b < states.size(); ++b)
      for (const BlockAccess& access : states[b].blockAccesses[a]) {
        anyWrite = anyWrite || access.write;
        epochs[access.epoch].push_back({access.begin, access.end, int(b), &access});
      }
    if (!anyWrite || states.size() < 2) continue;
    for (auto& [epoch, intervals] : epochs) {
      std::sort(intervals.begin(), intervals.end(), [](const auto& x, const auto& y) { return x.begin < y.begin; });
      // Sweep with the furthest-reaching write and the furthest-reaching access of any kind seen so far.
      const BlockInterval* reach[2][2] = {};  // [write only][best, best of another block]
      for (const BlockInterval& now : intervals) {
        const BlockInterval* hit = nullptr;
        for (const BlockInterval* other : reach[now.access->write ? 0 : 1])
          if (other && other->block != now.block && other->end > now.begin &&
              !(other->access->atomic && now.access->atomic) && (other->access->write || now.access->write))
            hit = other;
        if (hit) {
          const Place& here = states[now.block].places[now.access->place];
          const Place& there = states[hit->block].places[hit->access->place];
          uint64_t base = uint64_t(launch.arguments[a].base);
          Finding finding;
          finding.kind = "block-race";
          finding.file = here.file;
          finding.line = here.line;
          finding.otherFile = there.file;
          finding.otherLine = there.line;
          finding.block = now.block;
          finding.buffer = Name(launch.arguments[a]);
          finding.begin = std::max(now.begin, hit->begin) - base;
          finding.end = std::min(now.end, hit->end) - base;
          finding.message = Text("%s of block %d %s [%llu, %llu) of %s, which %s of block %d (line %d) %s, and no SyncAll is between",
                                 here.api, now.block, now.access->write ? "writes" : "reads",
                                 (unsigned long long)finding.begin, (unsigned long long)finding.end, finding.buffer.c_str(),
                                 there.api, hit->block, there.line, hit->access->write ? "writes" : "reads");
          out.push_back(std::move(finding));
        }
        for (int writeOnly = 0; writeOnly < 2; ++writeOnly) {
          if (writeOnly && !now.access->write) continue;
          const BlockInterval*& best = reach[writeOnly][0];
          const BlockInterval*& second = reach[writeOnly][1];
          if (!best || now.end > best->end) {
            if (best && best->block != now.block) second = best;
            best = &now;
          } else if (now.block != best->block && (!second || now.end > second->end)) {
            second = &now;
          }
        }
      }
    }
  }
}

// Bytes that the scalar unit of one block stored and left in its cache, touched by another block after a SyncAll.
inline void FindStaleStores(std::vector<State>& states, const Launch& launch, std::vector<Finding>& out) {
  struct Store {
    uint64_t begin;
    int block;
    const BlockAccess* access;
  };
  for (size_t a = 0; a < launch.arguments.size(); ++a) {
    std::vector<Store> stores;
    for (size_t b = 0; b < states.size(); ++b)
      for (const BlockAccess& access : states[b].blockAccesses[a])
        if (access.cached || access.cleaned) stores.push_back({access.begin, int(b), &access});
    if (stores.empty()) continue;
    std::sort(stores.begin(), stores.end(), [](const Store& x, const Store& y) { return x.begin < y.begin; });
    // Two blocks that store to one line write the whole line back, each over the other's part.
    for (size_t k = 1; k < stores.size(); ++k) {
      const Store &one = stores[k - 1], &two = stores[k];
      if (one.block == two.block || one.begin / 64 != two.begin / 64 || one.access->epoch != two.access->epoch) continue;
      const Place& here = states[two.block].places[two.access->place];
      const Place& there = states[one.block].places[one.access->place];
      Finding finding;
      finding.kind = "data-cache";
      finding.file = here.file;
      finding.line = here.line;
      finding.otherFile = there.file;
      finding.otherLine = there.line;
      finding.block = two.block;
      finding.buffer = Name(launch.arguments[a]);
      finding.begin = two.begin / 64 * 64 - uint64_t(launch.arguments[a].base);
      finding.end = finding.begin + 64;
      finding.message = Text("%s of block %d and %s of block %d (line %d) store to one 64-byte cache line [%llu, %llu) of %s: one "
                             "overwrites the other's", here.api, two.block, there.api, one.block, there.line,
                             (unsigned long long)finding.begin, (unsigned long long)finding.end, finding.buffer.c_str());
      out.push_back(std::move(finding));
    }
    for (size_t b = 0; b < states.size(); ++b)
      for (const BlockAccess& now : states[b].blockAccesses[a]) {
        uint64_t from = now.begin < 64 ? 0 : now.begin - 64;  // a store lies within one line
        auto it = std::lower_bound(stores.begin(), stores.end(), from, [](const Store& x, uint64_t at) { return x.begin < at; });
        for (; it != stores.end() && it->begin < now.end; ++it) {
          const BlockAccess& store = *it->access;
          bool left = store.cached || store.cleaned > now.epoch - 1;
          if (it->block == int(b) || now.write || store.epoch >= now.epoch || store.end <= now.begin || !left) continue;
          const Place& here = states[b].places[now.place];
          const Place& there = states[it->block].places[store.place];
          Finding finding;
          finding.kind = "data-cache";
          finding.file = here.file;
          finding.line = here.line;
          finding.otherFile = there.file;
          finding.otherLine = there.line;
          finding.block = int(b);
          finding.buffer = Name(launch.arguments[a]);
          finding.begin = std::max(now.begin, store.begin) - uint64_t(launch.arguments[a].base);
          finding.end = std::min(now.end, store.end) - uint64_t(launch.arguments[a].base);
          finding.message = Text("%s of block %d reads %s, and what %s of block %d (line %d) stored there is still in that block's "
                                 "data cache: call DataCacheCleanAndInvalid before the SyncAll", here.api, int(b),
                                 finding.buffer.c_str(), there.api, it->block, there.line);
          out.push_back(std::move(finding));
        }
      }
  }
}

// ---- JSON ----

inline void Quote(std::string& out, const std::string& text) {
  out += '"';
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\', out += c;
    else if (static_cast<unsigned char>(c) < 0x20) out += Text("\\u%04x", c);
    else out += c;
  }
  out += '"';
}

inline void WriteFinding(std::string& out, const Finding& f) {
  out += "{\"kind\":";
  Quote(out, f.kind);
  out += ",\"message\":";
  Quote(out, f.message);
  out += ",\"file\":";
  Quote(out, f.file);
  out += ",\"other_file\":";
  Quote(out, f.otherFile);
  out += ",\"buffer\":";
  Quote(out, f.buffer);
  out += Text(",\"line\":%d,\"other_line\":%d,\"block\":%d,\"begin\":%llu,\"end\":%llu,\"count\":%llu}", f.line, f.otherLine,
              f.block, (unsigned long long)f.begin, (unsigned long long)f.end, (unsigned long long)f.count);
}

inline void WriteBlock(std::string& out, const State& s, int block) {
  out += Text("{\"block\":%d,\"gm_read_bytes\":%llu,\"gm_write_bytes\":%llu,\"ub_bytes\":%u,\"flags\":%llu,\"barriers\":%llu,"
              "\"syncs\":%llu,\"pipes\":{", block, (unsigned long long)s.gmRead, (unsigned long long)s.gmWritten, s.ubHigh,
              (unsigned long long)s.flags, (unsigned long long)s.barriers, (unsigned long long)s.syncs);
  for (int p = 0, n = 0; p < kPipes; ++p) {
    if (!s.pipes[p].instructions) continue;
    out += Text("%s\"%s\":{\"instructions\":%llu,\"repeats\":%llu,\"bytes\":%llu,\"apis\":{", n++ ? "," : "", PipeName(p),
                (unsigned long long)s.pipes[p].instructions, (unsigned long long)s.pipes[p].repeats,
                (unsigned long long)s.pipes[p].bytes);
    std::map<std::string, std::pair<uint64_t, uint64_t>> apis;
    for (const Place& place : s.places) {
      if (place.pipe != p || !place.instructions) continue;
      apis[place.api].first += place.instructions;
      apis[place.api].second += place.repeats;
    }
    int k = 0;
    for (const auto& [api, count] : apis)
      out += Text("%s\"%s\":{\"instructions\":%llu,\"repeats\":%llu}", k++ ? "," : "", api.c_str(),
                  (unsigned long long)count.first, (unsigned long long)count.second);
    out += "}}";
  }
  out += "}";
  if (s.tracing) {
    out += ",\"places\":[";
    for (size_t i = 0; i < s.places.size(); ++i) {
      const Place& place = s.places[i];
      out += i ? ",[" : "[";
      Quote(out, place.api ? place.api : "");
      out += ',';
      Quote(out, place.file ? place.file : "");
      out += Text(",%d]", place.line);
    }
    out += "],\"trace\":\"";  // the steps' bytes in hexadecimal
    const uint8_t* bytes = reinterpret_cast<const uint8_t*>(s.trace.data());
    out.reserve(out.size() + s.trace.size() * sizeof(TraceStep) * 2 + 16);
    for (size_t i = 0; i < s.trace.size() * sizeof(TraceStep); ++i) {
      out += "0123456789abcdef"[bytes[i] >> 4];
      out += "0123456789abcdef"[bytes[i] & 15];
    }
    out += '"';
  }
  out += "}";
}

// ---- the launch ----

inline void PrepareState(State& s, Launch& launch, uint32_t ubBytes, bool check, bool autoSync, bool trace) {
  s.launch = &launch;
  s.tracing = trace;
  s.autoSync = autoSync;
  s.gmWrites.resize(launch.arguments.size());
  s.blockAccesses.resize(launch.arguments.size());
  size_t room = RoundUp(ubBytes, 4096), history = RoundUp((ubBytes / kGranule + 1) * sizeof(Access), 64);
  s.ub = s.pages.Map(2 * room + 4 * history);
  std::memset(s.ub, 0xff, ubBytes);  // NaN, so that what is read unwritten shows
  s.valid = s.ub + room;
  uint8_t* next = s.valid + room;
  s.writes = reinterpret_cast<Access*>(next);
  for (int p : {int(PIPE_V), int(PIPE_MTE2), int(PIPE_MTE3)}) {
    s.reads[p] = reinterpret_cast<Access*>(next += history);
    if (check) s.gmReads[p].resize(launch.arguments.size());
  }
}

inline void FinishBlock(Core& core, State& s) {
  if (!core.check) return;
  CheckEventsAtEnd(s);
  Site nowhere = Site::Here("", 0);
  if (!s.initialised && s.sequence[PIPE_V] + s.sequence[PIPE_MTE2] + s.sequence[PIPE_MTE3])
    Note(s, "not-initialised", nowhere,
         "the kernel has no TPipe and does not call InitSocState(): masks and atomics are as the last kernel left them");
  if (core.atomic != Atomic::kNone)
    Note(s, "atomic-left-on", nowhere, "the kernel ends without SetAtomicNone(): the next kernel's copies accumulate");
  if (s.keysAsked && !s.keysTaken)
    Note(s, "tiling", nowhere, Text("no TILING_KEY_IS of the kernel holds for the tiling key %llu",
                                    (unsigned long long)core.tilingKey));
}

inline void RunBlock(void* entry, Core& core, State& s, Launch& launch, std::vector<Pointer> pointers) {
  tls_worker = true;
  std::unique_ptr<uint8_t[]> reserve(new uint8_t[kSignalStack]);  // for a kernel that runs out of stack
  stack_t stack = {};
  stack.ss_sp = reserve.get();
  stack.ss_size = kSignalStack;
  sigaltstack(&stack, nullptr);
  tls_core = &core;
  FlushDenormals();
  core.ub = s.ub;
  sigjmp_buf escape;
  if (int signal = sigsetjmp(escape, 1)) {
    tls_escape = nullptr;
    const Place& last = s.places.back();
    Site site = Site::Here(last.file ? last.file : "", last.line);
    if (signal == kTimeout || signal == SIGUSR2)
      Always(s, "timeout", site, "the kernel does not end in the time given; the last place it came to for the first time is this");
    else
      Always(s, "crash", site,
             Text("the kernel's own code stops with %s (signal %d), some time after this line",
                  signal == SIGFPE ? "an arithmetic fault, such as an integer division by zero"
                                   : "an access through a stray pointer, or the end of the stack", signal));
  } else {
    tls_escape = &escape;
    CallEntry<0>(entry, pointers.data(), pointers.size());
    tls_escape = nullptr;
    FinishBlock(core, s);
  }
  LeaveMeeting(launch);
  tls_core = nullptr;
  stack.ss_flags = SS_DISABLE;
  sigaltstack(&stack, nullptr);
  std::lock_guard<std::mutex> lock(launch.doneMutex);
  ++launch.done;
  launch.doneChanged.notify_all();
}

// Ends blocks that take longer than `seconds`: at their next API call, or by a signal if they make none.
inline void Watch(Launch& launch, std::vector<std::thread>& threads, double seconds) {
  auto finished = [&] { return launch.done == launch.blocks; };
  auto limit = [](double s) { return std::chrono::duration<double>(s); };
  std::unique_lock<std::mutex> lock(launch.doneMutex);
  if (launch.doneChanged.wait_for(lock, limit(seconds), finished)) return;
  launch.expired = true;
  launch.meeting.arrived.notify_all();
  while (!launch.doneChanged.wait_for(lock, limit(1.0), finished))
    for (std::thread& thread : threads) pthread_kill(thread.native_handle(), SIGUSR2);
}

inline std::string RunKernel(void* entry, const Array* arrays, uint32_t count, const Options& options) {
  Launch launch;
  launch.blocks = int(options.blocks);
  launch.arch = options.arch;
  launch.physicalCores = int(options.physicalCores);
  launch.meeting.alive = launch.blocks;
  std::vector<uint32_t> slot(count);
  for (uint32_t i = 0; i < count; ++i) {
    if (arrays[i].alias != i) {
      slot[i] = slot[arrays[i].alias];
      continue;
    }
    slot[i] = uint32_t(launch.arguments.size());
    Argument a;
    a.bytes = arrays[i].bytes;
    a.writable = arrays[i].writable != 0;
    a.index = int(i);
    launch.arguments.push_back(std::move(a));
  }
  Argument workspace;
  workspace.bytes = options.workspaceBytes;
  workspace.workspace = true;
  workspace.written.reset(new uint8_t[options.workspaceBytes + 1]());
  launch.arguments.push_back(std::move(workspace));
  Argument tiling;  // for kernels that read the bytes themselves
  tiling.bytes = options.tilingBytes;
  tiling.index = int(count) + 1;
  launch.arguments.push_back(std::move(tiling));

  Arena arena;
  launch.guard = 1ull << 30;
  while (!arena.Reserve(launch.arguments, launch.guard)) {
    launch.guard >>= 4;
    if (launch.guard < (1 << 16)) return "{\"error\":\"no memory for the arguments\"}";
  }
  launch.guard /= 2;
  for (uint32_t i = 0; i < count; ++i)
    if (arrays[i].alias == i && arrays[i].bytes) std::memcpy(launch.arguments[slot[i]].base, arrays[i].data, arrays[i].bytes);
  Argument& work = launch.arguments[launch.arguments.size() - 2];
  if (work.bytes) std::memset(work.base, 0xff, work.bytes);
  if (options.tilingBytes) std::memcpy(launch.arguments.back().base, options.tiling, options.tilingBytes);

  std::vector<Pointer> pointers;
  for (uint32_t i = 0; i < count; ++i) pointers.push_back(launch.arguments[slot[i]].base);
  pointers.push_back(work.base);
  pointers.push_back(launch.arguments.back().base);

  std::vector<State> states(options.blocks);
  std::vector<Core> cores(options.blocks);
  SignalGuard signals;
  std::vector<std::thread> threads;
  for (uint32_t b = 0; b < options.blocks; ++b) {
    PrepareState(states[b], launch, options.ubBytes, options.check != 0, options.autoSync != 0,
                 options.trace != 0);
    Core& core = cores[b];
    core.ubBytes = options.ubBytes;
    core.check = options.check != 0;
    core.block = int32_t(b);
    core.blocks = int32_t(options.blocks);
    core.tilingKey = options.tilingKey;
    core.tiling = options.tiling;
    core.tilingBytes = options.tilingBytes;
    core.state = &states[b];
  }
  for (uint32_t b = 0; b < options.blocks; ++b)
    threads.emplace_back([&, b] { RunBlock(entry, cores[b], states[b], launch, pointers); });
  if (options.timeout > 0) Watch(launch, threads, options.timeout);
  for (std::thread& thread : threads) thread.join();

  std::vector<Finding> findings;
  for (State& s : states)
    for (Finding& f : s.findings) findings.push_back(std::move(f));
  FindBlockRaces(states, launch, findings);
  FindStaleStores(states, launch, findings);
  bool readOnlyWritten = false;
  for (const Finding& f : findings) readOnlyWritten = readOnlyWritten || f.kind == "read-only";
  for (uint32_t i = 0; i < count && !readOnlyWritten; ++i) {
    const Argument& a = launch.arguments[slot[i]];
    if (arrays[i].alias == i && a.writable && a.bytes) std::memcpy(arrays[i].data, a.base, a.bytes);
  }

  std::string out = "{\"findings\":[";
  for (size_t i = 0; i < findings.size(); ++i) {
    if (i) out += ',';
    WriteFinding(out, findings[i]);
  }
  out += "],\"blocks\":[";
  for (size_t b = 0; b < states.size(); ++b) {
    if (b) out += ',';
    WriteBlock(out, states[b], int(b));
  }
  out += "]}";
  return out;
}

}  // inline namespace
}  // namespace twin

// The C interface: see abi.h.
extern "C" TWIN_API char* jascend_twin_run(void* entry, const twin::Array* arrays, uint32_t count,
                                           const twin::Options* options) {
  std::string text;
  try {
    text = twin::RunKernel(entry, arrays, count, *options);
  } catch (const std::exception& e) {
    text = "{\"error\":";
    twin::Quote(text, e.what());
    text += "}";
  }
  char* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy) std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}
extern "C" TWIN_API void jascend_twin_free(char* text) { std::free(text); }
