// Running a kernel: memory for its arguments, a thread a block, faults of its own C++, the result as JSON.
//
// Arguments are copied to memory of their own with unmapped space around each, so that a stray pointer faults instead
// of hitting a neighbour, and copied back where the kernel wrote. Block threads flush denormal floats to zero, inputs
// and results, as XLA:CPU does.
#pragma once
#include "twin/runtime/abi.h"
#include "twin/runtime/check.h"
#include "twin/runtime/meet.h"
#include "twin/runtime/races.h"
#include "twin/runtime/watch.h"
#if defined(__SSE__)
#include <xmmintrin.h>
#endif
#ifdef __linux__
#include <link.h>
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

  // What lies behind an argument up to the guard is accessible: what the kernel's own code writes there is found later.
  void Mark(const std::vector<Argument>& arguments) const {
    for (const Argument& a : arguments) std::memset(a.base + a.bytes, kUntouched, Pages(a.bytes) - a.bytes);
  }
  static void FindStrayWrites(const std::vector<Argument>& arguments, std::vector<Finding>& out) {
    for (const Argument& a : arguments) {
      if (a.constants) continue;
      uint64_t at = a.bytes, end = Pages(a.bytes);
      while (at < end && a.base[at] == kUntouched) ++at;
      while (end > at && a.base[end - 1] == kUntouched) --end;
      if (at == end) continue;
      Finding finding;
      finding.kind = "gm-out-of-bounds";
      finding.buffer = Name(a);
      finding.begin = at;
      finding.end = end;
      finding.message = Text("the kernel's own code, without a call of the API, writes within [%llu, %llu) of %s, which has "
                             "%llu bytes", (unsigned long long)at, (unsigned long long)end, finding.buffer.c_str(),
                             (unsigned long long)a.bytes);
      out.push_back(std::move(finding));
    }
  }

 private:
  static constexpr uint8_t kUntouched = 0xa5;
  static uint64_t Pages(uint64_t bytes) { return RoundUp(bytes ? bytes : 1, 1 << 16); }
  uint8_t* base_ = nullptr;
  uint64_t bytes_ = 0;
};

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

// Python's own handler would not raise KeyboardInterrupt before the call of the kernel returns.
inline struct sigaction previousInterrupt;
inline void OnInterrupt(int signal, siginfo_t* info, void* context) {
  interrupted = true;
  if (previousInterrupt.sa_flags & SA_SIGINFO) return previousInterrupt.sa_sigaction(signal, info, context);
  if (previousInterrupt.sa_handler != SIG_DFL) return previousInterrupt.sa_handler(signal);
  sigaction(signal, &previousInterrupt, nullptr);
  raise(signal);
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
    interrupted = false;
    sigaction(SIGINT, nullptr, &previousInterrupt);
    ignored_ = !(previousInterrupt.sa_flags & SA_SIGINFO) && previousInterrupt.sa_handler == SIG_IGN;
    if (ignored_) return;
    struct sigaction action = {};
    action.sa_sigaction = OnInterrupt;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | (previousInterrupt.sa_flags & SA_RESTART);
    sigaction(SIGINT, &action, nullptr);
  }
  ~SignalGuard() {
    std::lock_guard<std::mutex> lock(signalMutex);
    if (--signalUsers) return;
    for (int i = 0; i < kSignalCount; ++i) sigaction(kSignals[i], &previousActions[i], nullptr);
    if (!ignored_) sigaction(SIGINT, &previousInterrupt, nullptr);
  }

 private:
  inline static bool ignored_ = false;  // Ctrl-C is, as in the background of a shell
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
  out +=
      Text(",\"line\":%d,\"other_line\":%d,\"caller\":%d,\"block\":%d,\"begin\":%llu,\"end\":%llu,\"count\":%llu}", f.line,
           f.otherLine, f.caller, f.block, (unsigned long long)f.begin, (unsigned long long)f.end, (unsigned long long)f.count);
}

inline void WriteBlock(std::string& out, const State& s, int block) {
  out += Text(
      "{\"block\":%d,\"gm_read_bytes\":%llu,\"gm_write_bytes\":%llu,\"ub_bytes\":%u,\"flags\":%llu,\"barriers\":%llu,"
      "\"syncs\":%llu,\"pipes\":{",
      block, (unsigned long long)s.gmRead, (unsigned long long)s.gmWritten, s.ubHigh, (unsigned long long)s.flags,
      (unsigned long long)s.barriers, (unsigned long long)s.syncs);
  for (int p = 0, n = 0; p < kPipes; ++p) {
    if (!s.pipes[p].instructions) continue;
    out += Text("%s\"%s\":{\"instructions\":%llu,\"repeats\":%llu,\"bytes\":%llu,\"apis\":{", n++ ? "," : "",
                PipeName(p), (unsigned long long)s.pipes[p].instructions, (unsigned long long)s.pipes[p].repeats,
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
  if (!s.printed.empty()) {
    out += ",\"printed\":";
    Quote(out, s.printed);
  }
  if (s.tracing) {
    out += ",\"places\":[";
    for (size_t i = 0; i < s.places.size(); ++i) {
      const Place& place = s.places[i];
      out += i ? ",[" : "[";
      Quote(out, place.api ? place.api : "");
      out += ',';
      Quote(out, place.file ? place.file : "");
      out += Text(",%d,%d]", place.line, place.caller);
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

// 192 KB on 910B, of which the last 256 bytes are the framework's.
inline uint32_t UbRoom(uint32_t usable) { return uint32_t(RoundUp(usable, 4096)); }

inline void PrepareState(State& s, Launch& launch, uint32_t ubBytes, bool check, bool autoSync, bool trace) {
  s.launch = &launch;
  s.tracing = trace;
  s.autoSync = autoSync;
  s.gmWrites.resize(launch.arguments.size());
  s.blockAccesses.resize(launch.arguments.size());
  s.firstOpen.resize(launch.arguments.size());
  const size_t room = UbRoom(ubBytes), granules = room / kGranule + 1, history = RoundUp(granules * sizeof(Access), 64);
  s.ub = s.pages.Map(2 * room + 4 * history);
  std::memset(s.ub, 0xff, room);  // NaN, so that what is read unwritten shows
  s.valid = s.ub + room;
  uint8_t* next = s.valid + room;
  s.writes.Use(reinterpret_cast<Access*>(next), granules);
  for (int p : {int(PIPE_V), int(PIPE_MTE2), int(PIPE_MTE3)}) {
    s.reads[p].Use(reinterpret_cast<Access*>(next += history), granules);
    if (check) s.gmReads[p].resize(launch.arguments.size());
  }
}

inline void FinishBlock(Core& core, State& s) {
  if (!core.check) return;
  CheckEventsAtEnd(s);
  Site nowhere = Site::Here("", 0);
  if (!s.initialised && s.sequence[PIPE_V] + s.sequence[PIPE_MTE2] + s.sequence[PIPE_MTE3])
    Note(
        s, "not-initialised", nowhere,
        "the kernel has no TPipe and does not call InitSocState(): masks and atomics are as the last kernel left them");
  if (core.atomic != Atomic::kNone)
    Note(s, "atomic-left-on", nowhere, "the kernel ends without SetAtomicNone(): the next kernel's copies accumulate");
  for (const LoopMode& loops : core.loops)
    if (loops.inner != 1 || loops.outer != 1)
      Note(s, "loop-mode-left-on", nowhere, "the kernel ends without ResetLoopModePara: the next kernel's copies repeat");
  if (s.keysAsked && !s.keysTaken)
    Note(s, "tiling", nowhere, Text("no TILING_KEY_IS of the kernel holds for the tiling key %llu",
                                    (unsigned long long)core.tilingKey));
}

inline void RunBlock(void* entry, Core& core, State& s, Launch& launch, std::vector<Pointer> pointers,
                     bool direct) {
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
      Always(s, "timeout", site, launch.why + "; the last place it came to for the first time is this");
    else
      Always(s, "crash", site,
             Text("the kernel's own code stops with %s (signal %d), some time after this line",
                  signal == SIGFPE ? "an arithmetic fault, such as an integer division by zero"
                                   : "an access through a stray pointer, or the end of the stack", signal));
  } else {
    tls_escape = &escape;
    if (direct) reinterpret_cast<void (*)(Pointer*)>(entry)(pointers.data());
    else CallEntry<0>(entry, pointers.data(), pointers.size());
    tls_escape = nullptr;
    FinishBlock(core, s);
  }
  LeaveMeeting(launch);
  tls_core = nullptr;
  stack.ss_flags = SS_DISABLE;
  sigaltstack(&stack, nullptr);
  s.ended = true;
  std::lock_guard<std::mutex> lock(launch.doneMutex);
  ++launch.done;
  launch.doneChanged.notify_all();
}

// What a kernel's source defines as `const __gm__ T name[]`: the data of the shared object that `entry` is in.
inline Argument ConstantsOf(void* entry) {
  Argument constants;
  constants.constants = true;
  constants.writable = false;
#ifdef __linux__
  struct Search {
    uint64_t entry;
    Argument* found;
  } search{uint64_t(entry), &constants};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        Search& search = *static_cast<Search*>(data);
        uint64_t begin = ~0ull, end = 0;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& part = info->dlpi_phdr[i];
          if (part.p_type != PT_LOAD) continue;
          begin = std::min<uint64_t>(begin, info->dlpi_addr + part.p_vaddr);
          end = std::max<uint64_t>(end, info->dlpi_addr + part.p_vaddr + part.p_memsz);
        }
        if (search.entry < begin || search.entry >= end) return 0;
        search.found->base = reinterpret_cast<uint8_t*>(begin);
        search.found->bytes = end - begin;
        return 1;
      },
      &search);
#endif
  return constants;
}

inline std::string RunKernel(void* entry, const Array* arrays, uint32_t count, const Options& options) {
  Launch launch;
  launch.blocks = int(options.blocks);
  launch.arch = options.arch;
  launch.physicalCores = int(options.physicalCores);
  StartMeeting(launch);
  std::vector<uint32_t> slot(count);
  int parameter = -1;
  for (uint32_t i = 0; i < count; ++i) {
    parameter += arrays[i].kind != kMember;
    if (arrays[i].kind == kValue) continue;
    if (arrays[i].alias != i) {
      slot[i] = slot[arrays[i].alias];
      continue;
    }
    slot[i] = uint32_t(launch.arguments.size());
    Argument a;
    a.bytes = arrays[i].bytes;
    a.writable = arrays[i].writable != 0;
    a.index = parameter;
    if (arrays[i].kind == kMember) a.member = int(arrays[i].members);
    launch.arguments.push_back(std::move(a));
  }
  Argument workspace;
  workspace.bytes = options.workspaceBytes;
  workspace.workspace = true;
  workspace.written.reset(new uint8_t[options.workspaceBytes + 1]());
  launch.arguments.push_back(std::move(workspace));
  Argument tiling;  // for kernels that read the bytes themselves
  tiling.bytes = options.tilingBytes;
  tiling.index = parameter + 2;
  launch.arguments.push_back(std::move(tiling));

  Arena arena;
  launch.guard = 1ull << 30;
  while (!arena.Reserve(launch.arguments, launch.guard)) {
    launch.guard >>= 4;
    if (launch.guard < (1 << 16)) return "{\"error\":\"no memory for the arguments\"}";
  }
  launch.guard /= 2;
  if (options.check) arena.Mark(launch.arguments);
  for (uint32_t i = 0; i < count; ++i)
    if (arrays[i].alias == i && arrays[i].bytes && arrays[i].kind != kValue)
      std::memcpy(launch.arguments[slot[i]].base, arrays[i].data, arrays[i].bytes);
  for (uint32_t i = 0; i < count; ++i) {
    if (arrays[i].kind != kList) continue;
    const Argument& table = launch.arguments[slot[i]];
    for (uint32_t k = 0; k < arrays[i].members; ++k) {
      const uint64_t address = uint64_t(launch.arguments[slot[i + 1 + k]].base);
      std::memcpy(table.base + table.bytes - (arrays[i].members - k) * sizeof(address), &address, sizeof(address));
    }
  }
  Argument& work = launch.arguments[launch.arguments.size() - 2];
  if (work.bytes) std::memset(work.base, 0xff, work.bytes);
  if (options.tilingBytes) std::memcpy(launch.arguments.back().base, options.tiling, options.tilingBytes);

  std::vector<Pointer> pointers;
  for (uint32_t i = 0; i < count; ++i) {
    if (arrays[i].kind == kMember) continue;
    if (arrays[i].kind == kValue) pointers.push_back(static_cast<Pointer>(arrays[i].data));
    else pointers.push_back(arrays[i].data ? launch.arguments[slot[i]].base : nullptr);
  }
  if (!options.direct) {
    pointers.push_back(work.base);
    pointers.push_back(launch.arguments.back().base);
  }
  launch.arguments.push_back(ConstantsOf(entry));

  std::vector<State> states(options.blocks);
  std::vector<Core> cores(options.blocks);
  SignalGuard signals;
  std::vector<std::thread> threads;
  for (uint32_t b = 0; b < options.blocks; ++b) {
    PrepareState(states[b], launch, options.ubBytes, options.check != 0, options.autoSync != 0,
                 options.trace != 0);
    Core& core = cores[b];
    core.ubBytes = options.ubBytes;
    core.ubRoom = UbRoom(options.ubBytes);
    core.check = options.check != 0;
    core.block = int32_t(b);
    core.blocks = int32_t(options.blocks);
    core.tilingKey = options.tilingKey;
    core.tiling = options.tiling;
    core.tilingBytes = options.tilingBytes;
    core.state = &states[b];
  }
  for (uint32_t b = 0; b < options.blocks; ++b)
    threads.emplace_back([&, b] { RunBlock(entry, cores[b], states[b], launch, pointers, options.direct != 0); });
  Watch(launch, states, threads, options.timeout, options.patience > 0 ? options.patience : kPatience);
  for (std::thread& thread : threads) thread.join();

  std::vector<Finding> findings;
  for (State& s : states)
    for (Finding& f : s.findings) findings.push_back(std::move(f));
  FindFlagsLeft(launch, options.check != 0, findings);
  FindBlockRaces(states, launch, findings);
  FindStaleStores(states, launch, findings);
  FindStaleReads(states, launch, findings);
  if (options.check) Arena::FindStrayWrites(launch.arguments, findings);
  bool readOnlyWritten = false;
  for (const Finding& f : findings) readOnlyWritten = readOnlyWritten || f.kind == "read-only";
  for (uint32_t i = 0; i < count && !readOnlyWritten; ++i) {
    if (arrays[i].kind == kValue) continue;
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
