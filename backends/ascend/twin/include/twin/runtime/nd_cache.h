// The cache through which copies of several dimensions (950) read GM: a core's own, and it sees no write after the first
// read of a line, be it of the same block or of another, until NdDmaDci. Its lines count as 32 bytes here; the length is
// not documented, and longer ones would be out of date more often.
#pragma once
#include "twin/runtime/state.h"

namespace twin {
inline namespace TWIN_ABI {

constexpr uint64_t kNdLine = 32;

// Remembers an access of this block. Returns the first epoch from which a copy through the cache may still have bytes.
inline uint32_t TrackNdCache(State& s, const char* api, Site site, uint32_t place, const Argument& a, uint64_t begin,
                             uint64_t end, bool write, bool throughCache) {
  uint32_t since = kOpen;
  if (!throughCache && (!write || s.ndLines.empty())) return since;
  for (uint64_t line = begin / kNdLine; line * kNdLine < end; ++line) {
    const uint64_t low = std::max(begin, line * kNdLine), high = std::min(end, (line + 1) * kNdLine);
    auto it = s.ndLines.find(line);
    if (write) {
      if (it == s.ndLines.end()) continue;
      it->second.staleBegin = std::min(it->second.staleBegin, low);
      it->second.staleEnd = std::max(it->second.staleEnd, high);
      it->second.stalePlace = place;
      continue;
    }
    if (it == s.ndLines.end()) {
      s.ndLines.emplace(line, NdLine{s.epoch});
      continue;
    }
    since = std::min(since, it->second.epoch);
    if (low >= it->second.staleEnd || it->second.staleBegin >= high) continue;
    const Place& other = s.places[it->second.stalePlace];
    if (!AddFinding(s, "data-cache", site, other.line, other.file)) continue;
    Finding& finding = s.findings.back();
    finding.buffer = Name(a);
    finding.begin = low - uint64_t(a.base);
    finding.end = high - uint64_t(a.base);
    finding.message = Text("%s reads %s through the cache of copies of several dimensions, which is older than what %s "
                           "(line %d) wrote: call NdDmaDci before", api, finding.buffer.c_str(), other.api, other.line);
  }
  return since;
}

TWIN_API void ForgetNdCache() { tls_core->state->ndLines.clear(); }

// Bytes that another block wrote, in an epoch between a block's first and a later read of them through its cache.
inline void FindStaleNdReads(const std::vector<State>& states, const Launch& launch, std::vector<Finding>& out) {
  for (size_t a = 0; a < launch.arguments.size(); ++a)
    for (size_t b = 0; b < states.size(); ++b)
      for (const BlockAccess& now : states[b].blockAccesses[a]) {
        if (now.since >= now.epoch) continue;
        auto stale = [&](const BlockAccess& write) {
          return write.write && write.begin < now.end && now.begin < write.end && write.epoch >= now.since &&
                 write.epoch < now.epoch;
        };
        for (size_t other = 0; other < states.size(); ++other) {
          const std::vector<BlockAccess>& log = states[other].blockAccesses[a];
          auto write = other == b ? log.end() : std::find_if(log.begin(), log.end(), stale);
          if (write == log.end()) continue;
          const Place& here = states[b].places[now.place];
          const Place& there = states[other].places[write->place];
          Finding finding;
          finding.kind = "data-cache";
          finding.file = here.file;
          finding.line = here.line;
          finding.otherFile = there.file;
          finding.otherLine = there.line;
          finding.block = int(b);
          finding.buffer = Name(launch.arguments[a]);
          finding.begin = std::max(now.begin, write->begin) - uint64_t(launch.arguments[a].base);
          finding.end = std::min(now.end, write->end) - uint64_t(launch.arguments[a].base);
          finding.message = Text("%s of block %d reads %s through the cache of copies of several dimensions, which is "
                                 "older than what %s of block %zu (line %d) wrote: call NdDmaDci before",
                                 here.api, int(b), finding.buffer.c_str(), there.api, other, there.line);
          out.push_back(std::move(finding));
          break;
        }
      }
}

}  // inline namespace
}  // namespace twin
