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
      s.ndLines.emplace(line, CacheLine{place, s.epoch});
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
                           "(line %d) wrote: call NdDmaDci between", api, finding.buffer.c_str(), other.api, other.line);
  }
  return since;
}

TWIN_API void ForgetNdCache() { tls_core->state->ndLines.clear(); }

}  // inline namespace
}  // namespace twin
