// What happens between an API call's description and its execution: bounds, alignment, contents, order, counts.
#pragma once
#include "twin/runtime/order.h"

namespace twin {
inline namespace TWIN_ABI {

constexpr size_t kMostPrinted = 1 << 20;  // bytes a block

TWIN_API Core& ThisCore() { return *tls_core; }

Call::Call(const char* api, pipe_t pipe, Site site) : core(*tls_core), api(api), pipe(pipe), site(site) {
  core.state->spans.clear();
}

Operand& Call::Add(const char* name, Space space, bool write, uint64_t low, uint64_t high) {
  if (count_ == kMaxOperands) std::abort();  // no API has as many
  Operand& operand = operands_[count_++];
  operand = Operand{name, space, write, false, uint32_t(core.state->spans.size()), 0, low, high};
  walks_[count_ - 1].width = 0;
  return operand;
}

void Call::Extend(uint64_t begin, uint64_t bytes) {
  if (bytes == 0) return;
  std::vector<Span>& spans = core.state->spans;
  Operand& operand = operands_[count_ - 1];
  if (operand.spans && spans.back().end == begin) {
    spans.back().end = begin + bytes;
    return;
  }
  spans.push_back({begin, begin + bytes});
  ++operand.spans;
}

void Call::Ub(const char* name, bool write, uint64_t begin, uint64_t bytes, uint64_t low, uint64_t high,
              uint32_t align) {
  Add(name, Space::kUb, write, low, high);
  if (align > 1 && begin % align)
    Problem(false, "misaligned", "%s starts at UB byte %llu, which is not a multiple of %u", name,
            (unsigned long long)begin, align);
  Extend(begin, bytes);
}

void Call::UbPieces(const char* name, bool write, uint64_t begin, uint32_t count, uint64_t bytes, int64_t stride,
                    uint64_t low, uint64_t high, uint32_t align) {
  Ub(name, write, begin, 0, low, high, align);
  for (uint32_t i = 0; i < count; ++i) Extend(begin + uint64_t(int64_t(i) * stride), bytes);
}

void Call::UbLanes(const char* name, bool write, uint64_t begin, uint32_t width, const Lanes& lanes,
                   uint32_t blockStride, uint32_t repeatStride, uint64_t low, uint64_t high, uint32_t align) {
  Ub(name, write, begin, 0, low, high, align);
  const Walk walk{begin, width, blockStride, repeatStride};
  uint32_t perBlock = 32 / width;
  for (uint32_t r = 0; r < lanes.repeats; ++r)
    for (uint32_t lane = 0; lane < lanes.perRepeat;) {
      if (!lanes.Active(r, lane)) {
        ++lane;
        continue;
      }
      uint32_t end = std::min(lanes.perRepeat, (lane / perBlock + 1) * perBlock), n = 1;
      while (lane + n < end && lanes.Active(r, lane + n)) ++n;
      Extend(walk.At(r, lane), uint64_t(n) * width);
      lane += n;
    }
  walks_[count_ - 1] = walk;
  for (int k = 0; write && core.check && k + 1 < count_; ++k)
    if (walks_[k].width && !operands_[k].write) CheckLanes(operands_[k], walks_[k], walk, lanes);
}

// Sound where the two walks are the same, as then each lane is written where it alone is read.
void Call::CheckLanes(const Operand& source, const Walk& from, const Walk& to, const Lanes& lanes) {
  bool inStep = from.width == to.width && from.blockStride == to.blockStride;
  if (from.base == to.base && inStep && (lanes.repeats <= 1 || from.repeatStride == to.repeatStride)) return;
  const std::vector<Span>& spans = core.state->spans;
  auto hull = [&](const Operand& o) {
    Span all{~0ull, 0};
    for (uint32_t i = o.firstSpan; i < o.firstSpan + o.spans; ++i)
      all = {std::min(all.begin, spans[i].begin), std::max(all.end, spans[i].end)};
    return all;
  };
  const Span read = hull(source), write = hull(operands_[count_ - 1]);
  if (read.begin >= write.end || write.begin >= read.end) return;
  std::vector<uint16_t> reader(write.end - write.begin), writer(write.end - write.begin);  // repeats, from 1
  for (uint32_t r = 0; r < lanes.repeats; ++r) {
    for (uint32_t lane = 0; lane < lanes.perRepeat; ++lane) {
      if (!lanes.Active(r, lane)) continue;
      for (uint64_t at = from.At(r, lane), end = at + from.width; at < end; ++at) {
        if (at < write.begin || at >= write.end) continue;
        if (writer[at - write.begin])
          return Problem(false, "overlap", "repeat %u reads %s at UB byte %llu, which repeat %u wrote", r, source.name,
                         (unsigned long long)at, writer[at - write.begin] - 1u);
        reader[at - write.begin] = uint16_t(r + 1);
      }
    }
    for (uint32_t lane = 0; lane < lanes.perRepeat; ++lane) {
      if (!lanes.Active(r, lane)) continue;
      for (uint64_t at = to.At(r, lane), end = at + to.width; at < end; ++at) {
        bool read = reader[at - write.begin] == r + 1 && from.width == to.width && to.At(r, lane) != from.At(r, lane);
        if (read)
          return Problem(false, "overlap", "repeat %u reads %s at UB byte %llu, and writes another lane there", r,
                         source.name, (unsigned long long)at);
        writer[at - write.begin] = uint16_t(r + 1);
      }
    }
  }
}

void Call::Gm(const char* name, bool write, uint64_t begin, uint32_t count, uint64_t bytes, int64_t stride,
              uint64_t low, uint64_t high) {
  Operand& operand = Add(name, Space::kGm, write, low, high);
  operand.atomic = write && pipe == PIPE_MTE3 && core.atomic != Atomic::kNone;
  for (uint32_t i = 0; i < count; ++i) Extend(begin + uint64_t(int64_t(i) * stride), bytes);
}

void Call::Problem(bool skip, const char* kind, const char* format, ...) {
  skip_ = skip_ || skip;
  if (!core.check) return;
  va_list args;
  va_start(args, format);
  Note(*core.state, kind, site, std::string(api) + ": " + Format(format, args));
  va_end(args);
}

// What the kernel kept there is gone; it is a fault only where something reads it (UbContents).
void Call::Scratch(uint64_t begin, uint64_t bytes) {
  if (!core.check) return;
  Overwritten& over = core.state->overwritten;
  over.held.resize(bytes);
  for (uint64_t i = 0; i < bytes; ++i) over.held[i] |= core.state->valid[begin + i];
  over.begin = begin;
  over.api = api;
  over.line = site.line;
  Undefined(begin, bytes);
}

void Call::Undefined(uint64_t begin, uint64_t bytes) {
  std::memset(core.ub + begin, 0xff, bytes);
  std::memset(core.state->valid + begin, 0, bytes);
}

void Call::Defined(uint64_t begin, uint64_t bytes) { std::memset(core.state->valid + begin, 1, bytes); }

// The checks of one call. Findings are recorded; false where the call must not touch memory.
struct Checker {
  Call& call;
  State& s;

  unsigned long long U(uint64_t v) const { return v; }

  bool UbBounds(const Operand& o, const Span& span) {
    if (span.end > call.core.ubRoom || span.begin > span.end) {
      if (call.core.check)
        Note(s, "ub-out-of-bounds", call.site,
             Text("%s %s %s UB [%llu, %llu), and UB has %u bytes", call.api, o.write ? "writes" : "reads", o.name,
                  U(span.begin), U(span.end), call.core.ubBytes), "UB", span.begin, span.end);
      return false;
    }
    if (call.core.check && span.end > call.core.ubBytes)
      Note(s, "ub-capacity", call.site,
           Text("%s %s %s UB [%llu, %llu), of which a kernel may use %u bytes: the last %u are the framework's",
                call.api, o.write ? "writes" : "reads", o.name, U(span.begin), U(span.end), call.core.ubBytes,
                call.core.ubRoom - call.core.ubBytes), "UB", span.begin, span.end);
    if (call.core.check && (span.begin < o.low || span.end > o.high)) {
      std::string buffer = o.high == 0 ? std::string("a tensor that was never given memory")
                                       : Text("its buffer [%llu, %llu)", U(o.low), U(o.high));
      Note(s, "buffer-overflow", call.site,
           Text("%s %s %s at UB [%llu, %llu), outside %s", call.api, o.write ? "writes" : "reads", o.name,
                U(span.begin), U(span.end), buffer.c_str()), "UB", span.begin, span.end);
    }
    return true;
  }

  bool GmBounds(const Operand& o, const Span& span, Argument*& argument) {
    const char* verb = o.write ? "writes" : "reads";
    argument = s.launch->Find(span.begin, s.launch->guard);
    if (!argument) {
      if (call.core.check)
        Note(s, "gm-out-of-bounds", call.site,
             Text("%s %s GM through a pointer that %s", call.api, verb,
                  span.begin < 4096 ? "is null, as that of an argument which the launch leaves out"
                                               : "comes from no kernel argument"), "GM");
      return false;
    }
    if (argument->constants && o.write) {
      if (call.core.check)
        Note(s, "gm-out-of-bounds", call.site, Text("%s writes the kernel's constants", call.api), "GM");
      return false;
    }
    uint64_t base = uint64_t(argument->base);
    long long begin = (long long)(span.begin - base), end = (long long)(span.end - base);
    if (begin < 0 || uint64_t(end) > argument->bytes || span.end < span.begin) {
      if (call.core.check)
        Note(s, "gm-out-of-bounds", call.site,
             Text("%s %s [%lld, %lld) of %s, which has %llu bytes", call.api, verb, begin, end, Name(*argument).c_str(),
                  U(argument->bytes)), Name(*argument), span.begin - base, span.end - base);
      return false;
    }
    if (o.write && !argument->writable) {
      Always(s, "read-only", call.site,
             Text("%s writes [%lld, %lld) of %s, which is a read-only array", call.api, begin, end,
                  Name(*argument).c_str()),
             Name(*argument), span.begin - base, span.end - base);
      return false;
    }
    if (call.core.check && (span.begin < o.low || span.end > o.high))
      Note(s, "global-tensor-bounds", call.site,
           Text("%s %s [%lld, %lld) of %s, outside its GlobalTensor [%lld, %lld)", call.api, verb, begin, end,
                Name(*argument).c_str(), (long long)(o.low - base), (long long)(o.high - base)),
           Name(*argument), span.begin - base, span.end - base);
    return true;
  }

  void UbContents(const Operand& o, const Span& span) {
    uint8_t* valid = s.valid + span.begin;
    const void* hole = std::memchr(valid, 0, span.end - span.begin);
    if (!hole) return;
    uint64_t at = span.begin + uint64_t(static_cast<const uint8_t*>(hole) - valid);
    uint64_t end = at;
    while (end < span.end && !s.valid[end]) ++end;
    const Overwritten& over = s.overwritten;
    if (at - over.begin < over.held.size() && over.held[at - over.begin])
      Note(s, "reserved-ub", call.site,
           Text("%s reads %s at UB [%llu, %llu), and %s (line %d) used [%llu, %llu) as scratch since it was written",
                call.api, o.name, U(span.begin), U(span.end), over.api, over.line, U(over.begin),
                U(over.begin + over.held.size())),
           "UB", at, end);
    else
      Note(s, "uninitialized-read", call.site,
           Text("%s reads %s at UB [%llu, %llu), and nothing was written to [%llu, %llu)", call.api, o.name,
                U(span.begin), U(span.end), U(at), U(end)),
           "UB", at, end);
    std::memset(valid, 1, span.end - span.begin);  // said once, not again by everything computed from it
  }

  void WorkspaceContents(const Operand& o, const Span& span, const Argument& a) {
    uint64_t begin = span.begin - uint64_t(a.base), n = span.end - span.begin;
    uint8_t* written = a.written.get() + begin;
    const void* hole = std::memchr(written, 0, n);
    if (!hole) return;
    uint64_t at = begin + uint64_t(static_cast<const uint8_t*>(hole) - written);
    Note(s, "uninitialized-read", call.site,
         Text("%s reads %s at [%llu, %llu) of the workspace, and nothing was written to byte %llu", call.api, o.name,
              U(begin), U(begin + n), U(at)), "the workspace", begin, begin + n);
    std::memset(written, 1, n);
  }

  bool Run(uint32_t repeats) {
    CountCall(s);
    GiveUpIfExpired(*s.launch);
    bool ok = !call.skip_;
    bool check = call.core.check;
    Argument* argument = nullptr;
    for (int k = 0; k < call.count_; ++k) {
      const Operand& o = call.operands_[k];
      for (uint32_t i = o.firstSpan; i < o.firstSpan + o.spans; ++i) {
        const Span span = s.spans[i];
        bool inside = o.space == Space::kUb ? UbBounds(o, span) : GmBounds(o, span, argument);
        ok = ok && inside;
        if (!inside) break;  // the rest of a strided operand is as wrong
      }
    }
    if (!ok) {
      // Left undone. What it would have written counts as written, or every later call would complain.
      for (int k = 0; k < call.count_; ++k) {
        const Operand& o = call.operands_[k];
        if (!o.write || o.space != Space::kUb) continue;
        for (uint32_t i = o.firstSpan; i < o.firstSpan + o.spans; ++i) {
          uint64_t end = std::min<uint64_t>(s.spans[i].end, call.core.ubRoom);
          if (s.spans[i].begin < end) std::memset(s.valid + s.spans[i].begin, 1, end - s.spans[i].begin);
        }
      }
      return false;
    }
    uint32_t place = PlaceOf(s, call.api, call.pipe, call.site);
    Count(place, repeats);
    Instruction instruction{
        call.api, call.pipe, call.site, ++s.sequence[call.pipe], place, &ClockAtIssue(s, call.pipe), call.throughNdCache};
    for (int pass = 0; pass < 2; ++pass)  // all reads before any write
      for (int k = 0; k < call.count_; ++k) {
        const Operand& o = call.operands_[k];
        if (o.write != (pass == 1)) continue;
        for (uint32_t i = o.firstSpan; i < o.firstSpan + o.spans; ++i) Access(o, s.spans[i], instruction, check);
      }
    for (int k = 0; check && k < call.count_; ++k) {
      const Operand& o = call.operands_[k];
      for (uint32_t i = o.firstSpan; o.space == Space::kUb && i < o.firstSpan + o.spans; ++i)
        RememberUb(s, instruction, s.spans[i].begin, s.spans[i].end, o.write);
    }
    return true;
  }

  void Access(const Operand& o, const Span& span, const Instruction& instruction, bool check) {
    if (o.space == Space::kUb) {
      s.ubHigh = std::max(s.ubHigh, uint32_t(span.end));
      if (!check) return;
      if (o.write) std::memset(s.valid + span.begin, 1, span.end - span.begin);
      else UbContents(o, span);
      OrderUb(s, instruction, span.begin, span.end, o.write);
      return;
    }
    Argument* argument = s.launch->Find(span.begin, s.launch->guard);
    uint64_t n = span.end - span.begin;
    (o.write ? s.gmWritten : s.gmRead) += n;
    if (instruction.pipe != PIPE_S)
      s.copies.store(s.copies.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    if (!check) return;
    if (argument->workspace) {
      if (!o.write || o.atomic) WorkspaceContents(o, span, *argument);
      if (o.write) std::memset(argument->written.get() + (span.begin - uint64_t(argument->base)), 1, n);
    }
    OrderGm(s, instruction, size_t(argument - s.launch->arguments.data()), span.begin, span.end, o.write, o.atomic);
  }

  // Operands that are narrower than the widest one (masks, one side of a cast) have another pattern of access.
  void TraceOperands(TraceStep& step) const {
    auto bytes = [&](const Operand& o) {
      uint64_t sum = 0;
      for (uint32_t i = o.firstSpan; i < o.firstSpan + o.spans; ++i) sum += s.spans[i].end - s.spans[i].begin;
      return sum;
    };
    uint64_t widest = 0;
    for (int k = 0; k < call.count_; ++k) widest = std::max(widest, bytes(call.operands_[k]));
    int reads = 0;
    for (int k = 0; k < call.count_; ++k) {
      const Operand& o = call.operands_[k];
      const Walk& walk = call.walks_[k];
      if (o.space != Space::kUb || !o.spans || (!walk.width && bytes(o) != widest)) continue;
      int slot = o.write ? 0 : ++reads;
      if (slot > 2 || (o.write && step.address[0] != ~0u)) continue;
      step.address[slot] = uint32_t(walk.width ? walk.base : s.spans[o.firstSpan].begin);
      step.blockStride[slot] = uint16_t(walk.width ? walk.blockStride : 1);
      step.repeatStride[slot] = uint16_t(walk.width ? walk.repeatStride : 8);
    }
  }

  void Count(uint32_t place, uint32_t repeats) {
    PipeCount& pipe = s.pipes[call.pipe];
    ++pipe.instructions;
    pipe.repeats += repeats;
    if (call.pipe == PIPE_MTE2 || call.pipe == PIPE_MTE3)
      for (int k = 0; k < call.count_; ++k) {
        const Operand& o = call.operands_[k];
        if (o.space != Space::kGm) continue;
        for (uint32_t i = o.firstSpan; i < o.firstSpan + o.spans; ++i) pipe.bytes += s.spans[i].end - s.spans[i].begin;
      }
    ++s.places[place].instructions;
    s.places[place].repeats += repeats;
    if (!s.tracing) return;
    TraceStep step{Step::kInstruction, uint8_t(call.pipe), 0, uint8_t(call.width), 0, place, repeats, 0, 0, 0, 0,
                   {~0u, ~0u, ~0u}, {}, {}};
    if (call.pipe == PIPE_V) TraceOperands(step);
    for (int k = 0; k < call.count_; ++k) {
      const Operand& o = call.operands_[k];
      if (o.space != Space::kGm) continue;
      if (o.spans && !step.pieces) {
        const uint64_t begin = s.spans[o.firstSpan].begin;
        const Argument* argument = s.launch->Find(begin, s.launch->guard);
        step.argument = uint32_t(argument - s.launch->arguments.data());
        step.offset = begin - uint64_t(argument->base);
      }
      step.pieces += o.spans;
      for (uint32_t i = o.firstSpan; i < o.firstSpan + o.spans; ++i) step.bytes += s.spans[i].end - s.spans[i].begin;
    }
    s.trace.push_back(step);
  }
};

bool Call::Issue(uint32_t repeats) { return Checker{*this, *core.state}.Run(repeats); }

TWIN_API void KeepMergeCounts(const Call& call, const uint16_t counts[4]) {
  State& s = *call.core.state;
  std::copy(counts, counts + 4, call.core.mergeCounts);
  s.mergeSequence = s.sequence[PIPE_V];
  s.mergePlace = PlaceOf(s, call.api, call.pipe, call.site);
}

TWIN_API const uint16_t* MergeCounts(Site site) {
  State& s = *tls_core->state;
  const Place& merge = s.places[s.mergePlace];
  bool ordered = s.clocks[PIPE_S].at[PIPE_V] >= s.mergeSequence || s.autoSync;
  if (!ordered && tls_core->check && AddFinding(s, "missing-sync", site, merge.line, merge.file))
    s.findings.back().message =
        Text("GetMrgSortResult reads the counts of %s (V, line %d), and nothing orders the two: "
             "SetFlag/WaitFlag<HardEvent::V_S> between them", merge.api, merge.line);
  return tls_core->mergeCounts;
}

TWIN_API void Report(const char* kind, Site site, const char* format, ...) {
  if (!tls_core->check) return;
  va_list args;
  va_start(args, format);
  Note(*tls_core->state, kind, site, Format(format, args));
  va_end(args);
}

TWIN_API void NewLocal(uint64_t, uint64_t high, Site site) {
  if (!tls_core->check || high <= tls_core->ubBytes) return;
  Note(*tls_core->state, "ub-capacity", site,
       Text("a LocalTensor ends at UB byte %llu, and UB has %u", (unsigned long long)high, tls_core->ubBytes), "UB");
}

TWIN_API void CalledFrom(int line) {
  State& s = *tls_core->state;
  s.followed += line ? 1 : -1;
  if (s.followed == (line ? 1 : 0)) s.caller = line;
}
TWIN_API void KernelInitialised() { tls_core->state->initialised = true; }

TWIN_API void AtomicLock(bool lock) {
  std::mutex& mutex = tls_core->state->launch->atomics;
  lock ? mutex.lock() : mutex.unlock();
}

TWIN_API uint8_t* ScratchBytes(uint64_t bytes) {
  std::vector<uint8_t>& scratch = tls_core->state->scratch;
  if (scratch.size() < bytes) scratch.resize(bytes);
  return scratch.data();
}

TWIN_API uint64_t GmBytesFrom(uint64_t address) {
  const Argument* a = tls_core->state->launch->Find(address, 0);
  return a ? uint64_t(a->base) + a->bytes - address : 0;
}

// A block's output: whole lines, each after the block that printed it, and no more of it than anybody reads.
TWIN_API void Print(const char* text) {
  State& s = *tls_core->state;
  CountCall(s);
  GiveUpIfExpired(*s.launch);
  if (s.printed.size() > kMostPrinted) return;
  std::string from = Text("[AIV Block %d/%d] ", tls_core->block, tls_core->blocks);
  for (const char* at = text; *at;) {
    const char* end = std::strchr(at, '\n');
    s.printed += from;
    s.printed.append(at, end ? size_t(end - at) : std::strlen(at));
    s.printed += '\n';
    at = end ? end + 1 : at + std::strlen(at);
  }
  if (s.printed.size() > kMostPrinted) s.printed += from + "(no more than this is kept)\n";
}

TWIN_API bool TilingKeyIs(uint64_t key) {
  State& s = *tls_core->state;
  ++s.keysAsked;
  bool taken = tls_core->tilingKey == key;
  s.keysTaken += taken;
  return taken;
}

}  // inline namespace
}  // namespace twin
