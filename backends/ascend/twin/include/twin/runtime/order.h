// Which instructions are ordered: vector clocks over the pipes of one core.
//
// The scalar unit issues instructions in program order; each pipe then runs its own in order of issue, but one may
// start before the one ahead of it has finished. An instruction knows of another's completion through a flag (SetFlag
// follows everything issued to its pipe before), a barrier, or because the scalar unit knew when it issued. What the
// scalar unit itself wrote to memory is known to another pipe only through a flag: a store may still be under way at
// issue.
//
// Two accesses to the same bytes, one of them a write, must be ordered; a read by the scalar unit is complete before
// anything later is issued. That GatherMask gives the scalar unit a count orders nothing, as far as is documented.
// Source: the API reference on in-core synchronisation; spec/ascendc.md 2.4.
#pragma once
#include "twin/runtime/nd_cache.h"

namespace twin {
inline namespace TWIN_ABI {

// What an instruction issued to `pipe` now may rely on.
inline Clock& ClockAtIssue(State& s, int pipe) {
  Clock& clock = s.clocks[pipe];
  // Of its own stores the scalar unit's clock has those that a flag told it of, not those that it has only issued.
  if (pipe != PIPE_S) clock.Join(s.clocks[PIPE_S]);
  return clock;
}

// A snapshot for a flag: everything issued to `pipe` so far will be complete.
inline Clock Snapshot(State& s, int pipe) {
  Clock clock = ClockAtIssue(s, pipe);
  clock.at[pipe] = s.sequence[pipe];
  return clock;
}

inline void BarrierOn(State& s, int pipe) {
  if (pipe != PIPE_ALL) {
    s.clocks[pipe].at[pipe] = s.sequence[pipe];
    return;
  }
  for (Clock& clock : s.clocks)
    for (int p = 0; p < kPipes; ++p) clock.at[p] = s.sequence[p];
  for (GmIntervals& map : s.gmWrites) map.clear();  // all older accesses are ordered now
  for (auto& maps : s.gmReads)
    for (GmIntervals& map : maps) map.clear();
}

inline void ReportRace(State& s, const char* api, Site site, int pipe, bool write, uint32_t otherPlace, bool otherWrite,
                       const std::string& where, uint64_t begin, uint64_t end) {
  const Place& other = s.places[otherPlace];
  if (!AddFinding(s, "missing-sync", site, other.line, other.file)) return;
  std::string remedy = pipe == other.pipe ? Text("PipeBarrier<PIPE_%s>() between them", PipeName(pipe))
                                          : Text("SetFlag/WaitFlag<HardEvent::%s_%s> between them",
                                                 PipeName(other.pipe), PipeName(pipe));
  Finding& finding = s.findings.back();
  finding.message = Text("%s (%s) %s %s [%llu, %llu), which %s (%s, line %d) %s, and nothing orders the two: %s", api,
                         PipeName(pipe), write ? "writes" : "reads", where.c_str(), (unsigned long long)begin,
                         (unsigned long long)end, other.api, PipeName(other.pipe), other.line,
                         otherWrite ? "writes" : "reads", remedy.c_str());
  finding.buffer = where;
  finding.begin = begin;
  finding.end = end;
}

struct Instruction {
  const char* api;
  int pipe;
  Site site;
  uint32_t sequence, place;
  const Clock* clock;
  bool throughNdCache;
};

inline bool Ordered(const Instruction& i, int pipe, uint32_t sequence, bool otherWrite) {
  if (sequence == i.sequence && pipe == i.pipe) return true;  // the instruction itself
  if (pipe == PIPE_S && (!otherWrite || i.pipe == PIPE_S)) return true;
  return sequence <= i.clock->at[pipe];
}

// Ordered by the program, by the hardware or by the compiler. Vector instructions wait for each other on 950; with
// --cce-auto-sync the compiler orders them on 910B, and on both what the scalar unit reads and writes, except what it
// stores to GM. Source: the API reference on in-core synchronisation.
inline bool Safe(State& s, const Instruction& i, int pipe, uint32_t sequence, bool write, bool otherWrite, bool gm) {
  if (Ordered(i, pipe, sequence, otherWrite)) return true;
  if (pipe == PIPE_V && i.pipe == PIPE_V) return s.autoSync || s.launch->arch == 3510;
  if (!s.autoSync || (pipe == PIPE_S) == (i.pipe == PIPE_S)) return false;
  if (gm && (pipe == PIPE_S ? otherWrite : write)) return false;
  uint32_t& known = s.clocks[i.pipe].at[pipe];  // by the flag that the compiler adds
  known = std::max(known, sequence);
  return true;
}

// Checks an access to UB against those before it. One report for each earlier place, not each granule.
inline void OrderUb(State& s, const Instruction& i, uint64_t begin, uint64_t end, bool write) {
  uint32_t reportedWrite = 0, reportedRead = 0;
  for (uint64_t g = begin / kGranule; g * kGranule < end; ++g) {
    s.writes.Each(g, [&](const Access& last) {
      if (last.begin >= end || begin >= last.end || last.place == reportedWrite ||
          Safe(s, i, s.places[last.place].pipe, last.sequence, write, true, false))
        return;
      reportedWrite = last.place;
      ReportRace(s, i.api, i.site, i.pipe, write, last.place, true, "UB", std::max<uint64_t>(begin, last.begin),
                 std::min<uint64_t>(end, last.end));
    });
    if (!write) continue;
    for (int p : {int(PIPE_V), int(PIPE_MTE3), int(PIPE_MTE2)})
      s.reads[p].Each(g, [&](const Access& read) {
        if (read.begin >= end || begin >= read.end || read.place == reportedRead ||
            Safe(s, i, p, read.sequence, true, false, false))
          return;
        reportedRead = read.place;
        ReportRace(s, i.api, i.site, i.pipe, true, read.place, false, "UB", std::max<uint64_t>(begin, read.begin),
                   std::min<uint64_t>(end, read.end));
      });
  }
}

// Remembers it, once all of an instruction's accesses are checked: in place it would hide what read there before.
inline void RememberUb(State& s, const Instruction& i, uint64_t begin, uint64_t end, bool write) {
  if (!write && i.pipe == PIPE_S) return;  // complete before anything later is issued
  History& known = write ? s.writes : s.reads[i.pipe];
  for (uint64_t g = begin / kGranule; g * kGranule < end; ++g)
    known.Remember(g, {i.sequence, uint32_t(begin), uint32_t(end), i.place});
}

// Replaces what the map knew of [begin, end).
inline void Remember(GmIntervals& map, uint64_t begin, uint64_t end, const GmAccess& access) {
  auto it = map.upper_bound(begin);
  if (it != map.begin()) {
    auto before = std::prev(it);
    if (before->second.end > begin) {
      GmAccess rest = before->second;
      if (before->first == begin) map.erase(before);
      else before->second.end = begin;
      if (rest.end > end) map.emplace(end, rest);
    }
  }
  it = map.lower_bound(begin);
  while (it != map.end() && it->first < end) {
    GmAccess rest = it->second;
    it = map.erase(it);
    if (rest.end > end) {
      map.emplace(end, rest);
      break;
    }
  }
  GmAccess fresh = access;
  fresh.end = end;
  map.emplace(begin, fresh);
}

inline void CheckGm(State& s, const Instruction& i, const GmIntervals& map, const Argument& a, uint64_t begin,
                    uint64_t end, bool write, bool otherWrite, bool atomic) {
  auto it = map.upper_bound(begin);
  if (it != map.begin()) --it;
  for (; it != map.end() && it->first < end; ++it) {
    if (it->second.end <= begin) continue;
    if (atomic && it->second.atomic) continue;
    if (Safe(s, i, s.places[it->second.place].pipe, it->second.sequence, write, otherWrite, true)) continue;
    uint64_t base = uint64_t(a.base);
    ReportRace(s, i.api, i.site, i.pipe, write, it->second.place, otherWrite, Name(a),
               std::max(begin, it->first) - base, std::min(end, it->second.end) - base);
  }
}

// The scalar unit reaches GM through a cache that copies do not see. Sources: the API reference on
// DataCacheCleanAndInvalid; spec/ascendc.md 2.4.
// Returns the first epoch from which a read of the scalar unit may still have bytes.
inline uint32_t TrackCache(State& s, const Instruction& i, const Argument& a, uint64_t begin, uint64_t end, bool write) {
  uint32_t since = kOpen;
  if (i.pipe != PIPE_S && s.cache.empty()) return since;
  for (uint64_t line = begin / 64; line * 64 < end; ++line) {
    auto it = s.cache.find(line);
    if (i.pipe == PIPE_S) {
      if (it == s.cache.end()) {
        s.cache.emplace(line, CacheLine{i.place, s.epoch, write ? begin : ~0ull, 0});
        continue;
      }
      if (!write) since = std::min(since, it->second.epoch);
      if (it->second.stalePlace && !write &&
          AddFinding(s, "data-cache", i.site, s.places[it->second.stalePlace].line, nullptr)) {
        const Place& other = s.places[it->second.stalePlace];
        s.findings.back().message =
            Text("%s reads %s through the data cache, whose line is older than what %s (line %d) wrote: call "
                 "DataCacheCleanAndInvalid between", i.api, Name(a).c_str(), other.api, other.line);
        s.findings.back().otherFile = other.file;
      }
      if (write) {
        it->second.dirty = std::min(it->second.dirty, begin);
        it->second.place = i.place;
      }
      continue;
    }
    if (it == s.cache.end()) continue;
    if (write) {
      it->second.stalePlace = i.place;
    } else if (it->second.dirty != ~0ull &&
               AddFinding(s, "data-cache", i.site, s.places[it->second.place].line, nullptr)) {
      const Place& other = s.places[it->second.place];
      s.findings.back().message = Text(
          "%s reads %s, and what %s (line %d) stored there is still in the data cache: call "
          "DataCacheCleanAndInvalid between",
          i.api, Name(a).c_str(), other.api, other.line);
      s.findings.back().otherFile = other.file;
    }
  }
  return since;
}

TWIN_API void CleanCache(uint64_t address, bool entire) {
  State& s = *tls_core->state;
  uint64_t end = RoundUp(address + 1, 64);  // from an address within a line only the rest of the line is written back
  for (auto& log : s.blockAccesses)
    for (BlockAccess& access : log)
      if (access.cached && (entire || (access.begin < end && address <= access.begin))) {
        access.cached = false;
        access.cleaned = s.epoch;
      }
  if (entire) return s.cache.clear();
  auto line = s.cache.find(address / 64);
  if (line != s.cache.end() && address <= line->second.dirty) s.cache.erase(line);
}

inline void OrderGm(State& s, const Instruction& i, size_t argument, uint64_t begin, uint64_t end, bool write,
                    bool atomic) {
  const Argument& a = s.launch->arguments[argument];
  CheckGm(s, i, s.gmWrites[argument], a, begin, end, write, true, atomic);
  GmAccess access{end, i.sequence, i.place, atomic};
  if (write) {
    for (int p : {int(PIPE_MTE2), int(PIPE_MTE3)})
      CheckGm(s, i, s.gmReads[p][argument], a, begin, end, true, false, false);
    Remember(s.gmWrites[argument], begin, end, access);
  } else if (i.pipe != PIPE_S) {
    Remember(s.gmReads[i.pipe][argument], begin, end, access);
  }
  const uint32_t since = std::min(TrackCache(s, i, a, begin, end, write),
                                  TrackNdCache(s, i.api, i.site, i.place, a, begin, end, write, i.throughNdCache));
  // For races between blocks, adjacent accesses of one place are one.
  auto& log = s.blockAccesses[argument];
  if (!log.empty()) {
    BlockAccess& last = log.back();
    bool sameLine = !last.cached || begin % 64;  // stores through the cache are cleaned by the line
    if (last.write == write && last.atomic == atomic && last.epoch == s.epoch && last.until == kOpen && last.flag < 0 &&
        last.place == i.place && last.end == begin && sameLine && !last.cleaned && last.since == since) {
      last.end = end;
      last.sequence = i.sequence;
      return;
    }
  }
  log.push_back({begin, end, s.epoch, i.place, i.sequence, write, atomic, write && i.pipe == PIPE_S});
  log.back().since = since;
}

// ---- events ----

inline bool CheckEventId(State& s, const char* what, pipe_t from, pipe_t to, int id, Site site) {
  if (from >= kPipes || to >= kPipes || id < 0 || id >= kEventIds) {
    Note(s, "event-id", site, Text("%s<%s_%s>(%d): event ids are 0 to 7", what, PipeName(from), PipeName(to), id));
    return false;
  }
  if (id >= 6)
    Note(s, "event-id", site,
         Text("%s<%s_%s>(%d): ids 6 and 7 are reserved for the framework", what, PipeName(from), PipeName(to), id));
  return true;
}

TWIN_API void EventSet(pipe_t from, pipe_t to, int id, Site site) {
  State& s = *tls_core->state;
  CountCall(s);
  ++s.flags;
  if (!CheckEventId(s, "SetFlag", from, to, id, site)) return;
  Event& event = s.events[from][to][id];
  if (event.set)
    Note(s, "event-set-twice", site,
         Text("SetFlag<%s_%s>(%d) again before the wait for the one of line %d; the device hangs", PipeName(from),
              PipeName(to), id, event.site.line));
  event.set = true;
  event.site = site;
  event.clock = Snapshot(s, from);
  event.serial = ++s.serials;
  Trace(s, Step::kSet, from, to, event.serial, "SetFlag", site);
}

TWIN_API void EventWait(pipe_t from, pipe_t to, int id, Site site) {
  State& s = *tls_core->state;
  CountCall(s);
  GiveUpIfExpired(*s.launch);
  ++s.flags;
  if (!CheckEventId(s, "WaitFlag", from, to, id, site)) return;
  Event& event = s.events[from][to][id];
  if (!event.set) {
    Note(s, "event-wait-unset", site,
         Text("WaitFlag<%s_%s>(%d) with no SetFlag before it; the device waits for ever", PipeName(from), PipeName(to),
              id));
    return;
  }
  event.set = false;
  Trace(s, Step::kWait, from, to, event.serial, "WaitFlag", site);
  ClockAtIssue(s, to).Join(event.clock);
}

TWIN_API int EventFetch(pipe_t from, pipe_t to, Site site) {
  State& s = *tls_core->state;
  for (int id = 0; id < 6; ++id)
    if (!s.events[from][to][id].taken) return id;
  Note(s, "event-id", site, Text("all event ids of %s_%s are taken", PipeName(from), PipeName(to)));
  return 0;
}

TWIN_API int EventAlloc(pipe_t from, pipe_t to, Site site) {
  int id = EventFetch(from, to, site);
  tls_core->state->events[from][to][id].taken = true;
  return id;
}

TWIN_API void EventRelease(pipe_t from, pipe_t to, int id, Site site) {
  State& s = *tls_core->state;
  if (!CheckEventId(s, "ReleaseEventID", from, to, id, site)) return;
  if (!s.events[from][to][id].taken)
    Note(s, "event-id", site,
         Text("ReleaseEventID<%s_%s>(%d) of an id that is not allocated", PipeName(from), PipeName(to), id));
  s.events[from][to][id].taken = false;
}

TWIN_API void Barrier(pipe_t pipe, Site site) {
  State& s = *tls_core->state;
  CountCall(s);
  GiveUpIfExpired(*s.launch);
  ++s.barriers;
  Trace(s, Step::kBarrier, pipe, pipe, 0, "PipeBarrier", site);
  BarrierOn(s, pipe);
}

TWIN_API void StampSet(Stamp& stamp, pipe_t from) {
  Clock clock = Snapshot(*tls_core->state, from);
  std::memcpy(stamp.clock, clock.at, sizeof(stamp.clock));
  stamp.set = true;
  stamp.serial = ++tls_core->state->serials;
  Trace(*tls_core->state, Step::kSet, from, from, stamp.serial, "queue", Site::Here("", 0));
}

TWIN_API void StampWait(const Stamp& stamp, pipe_t to) {
  if (!stamp.set) return;
  Trace(*tls_core->state, Step::kWait, to, to, stamp.serial, "queue", Site::Here("", 0));
  Clock clock;
  std::memcpy(clock.at, stamp.clock, sizeof(stamp.clock));
  ClockAtIssue(*tls_core->state, to).Join(clock);
}

inline void CheckEventsAtEnd(State& s) {
  for (int from = 0; from < kPipes; ++from)
    for (int to = 0; to < kPipes; ++to)
      for (int id = 0; id < kEventIds; ++id)
        if (s.events[from][to][id].set)
          Note(s, "event-unwaited", s.events[from][to][id].site,
               Text("SetFlag<%s_%s>(%d) is never waited for: the flag is still up when the next kernel starts",
                    PipeName(from), PipeName(to), id));
}

}  // inline namespace
}  // namespace twin
