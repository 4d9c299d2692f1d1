// Races between blocks, found when all have ended: accesses to the same bytes of GM that no meeting orders.
#pragma once
#include "twin/runtime/state.h"

namespace twin {
inline namespace TWIN_ABI {

struct BlockInterval {
  uint64_t begin, end;
  int block;
  const BlockAccess* access;
};

// The epoch in which an access is complete; at the least the one after it began.
inline uint32_t Until(const Launch& launch, const BlockAccess& access) {
  uint32_t until = std::min(access.until, launch.meeting.epoch + 1);
  if (access.flag >= 0) {
    const std::vector<uint32_t>& epochs = launch.meeting.flags[access.flag].epochs;
    if (access.nth < epochs.size()) until = std::min(until, epochs[access.nth]);
  }
  return std::max(until, access.epoch + 1);
}

// A finding about the bytes [begin, end) of an argument, as addresses, that two blocks touch: `here` in `block`, and
// `there`.
inline Finding Between(const char* kind, const Place& here, const Place& there, int block, const Argument& argument,
                       uint64_t begin, uint64_t end) {
  Finding finding;
  finding.kind = kind;
  finding.file = here.file;
  finding.line = here.line;
  finding.otherFile = there.file;
  finding.otherLine = there.line;
  finding.block = block;
  finding.buffer = Name(argument);
  finding.begin = begin - uint64_t(argument.base);
  finding.end = end - uint64_t(argument.base);
  return finding;
}

inline void FindBlockRaces(std::vector<State>& states, const Launch& launch, std::vector<Finding>& out) {
  for (size_t a = 0; a < launch.arguments.size(); ++a) {
    std::map<uint32_t, std::vector<BlockInterval>> epochs;
    bool anyWrite = false;
    for (size_t b = 0; b < states.size(); ++b)
      for (const BlockAccess& access : states[b].blockAccesses[a]) {
        anyWrite = anyWrite || access.write;
        for (uint32_t e = access.epoch, until = Until(launch, access); e < until; ++e)
          epochs[e].push_back({access.begin, access.end, int(b), &access});
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
              !(other->access->atomic && now.access->atomic) && (other->access->write || now.access->write) &&
              std::max(other->access->epoch, now.access->epoch) == epoch)  // the first that both are in
            hit = other;
        if (hit) {
          const Place& here = states[now.block].places[now.access->place];
          const Place& there = states[hit->block].places[hit->access->place];
          Finding finding = Between("block-race", here, there, now.block, launch.arguments[a],
                                    std::max(now.begin, hit->begin), std::min(now.end, hit->end));
          finding.message =
              Text("%s of block %d %s [%llu, %llu) of %s, which %s of block %d (line %d) %s, and no SyncAll is between",
                   here.api, now.block, now.access->write ? "writes" : "reads", (unsigned long long)finding.begin,
                   (unsigned long long)finding.end, finding.buffer.c_str(), there.api, hit->block, there.line,
                   hit->access->write ? "writes" : "reads");
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
      if (one.block == two.block || one.begin / 64 != two.begin / 64 || one.access->epoch != two.access->epoch)
        continue;
      const Place& here = states[two.block].places[two.access->place];
      const Place& there = states[one.block].places[one.access->place];
      const uint64_t line = two.begin / 64 * 64;
      Finding finding = Between("data-cache", here, there, two.block, launch.arguments[a], line, line + 64);
      finding.message = Text(
          "%s of block %d and %s of block %d (line %d) store to one 64-byte cache line [%llu, %llu) of %s: one "
          "overwrites the other's",
          here.api, two.block, there.api, one.block, there.line, (unsigned long long)finding.begin,
          (unsigned long long)finding.end, finding.buffer.c_str());
      out.push_back(std::move(finding));
    }
    for (size_t b = 0; b < states.size(); ++b)
      for (const BlockAccess& now : states[b].blockAccesses[a]) {
        uint64_t from = now.begin < 64 ? 0 : now.begin - 64;  // a store lies within one line
        auto it = std::lower_bound(stores.begin(), stores.end(), from,
                                   [](const Store& x, uint64_t at) { return x.begin < at; });
        for (; it != stores.end() && it->begin < now.end; ++it) {
          const BlockAccess& store = *it->access;
          bool left = store.cached || store.cleaned > now.epoch - 1;
          if (it->block == int(b) || now.write || store.epoch >= now.epoch || store.end <= now.begin || !left) continue;
          const Place& here = states[b].places[now.place];
          const Place& there = states[it->block].places[store.place];
          Finding finding = Between("data-cache", here, there, int(b), launch.arguments[a],
                                    std::max(now.begin, store.begin), std::min(now.end, store.end));
          finding.message = Text(
              "%s of block %d reads %s, and what %s of block %d (line %d) stored there is still in that block's "
              "data cache: call DataCacheCleanAndInvalid before the SyncAll",
              here.api, int(b), finding.buffer.c_str(), there.api, it->block, there.line);
          out.push_back(std::move(finding));
        }
      }
  }
}

// Bytes that another block wrote after a block's cache had read them, and that this block reads from there again: the
// scalar unit through its data cache, copies of several dimensions through theirs.
inline void FindStaleReads(const std::vector<State>& states, const Launch& launch, std::vector<Finding>& out) {
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
          const bool scalar = here.pipe == PIPE_S;
          Finding finding = Between("data-cache", here, there, int(b), launch.arguments[a],
                                    std::max(now.begin, write->begin), std::min(now.end, write->end));
          finding.message = Text("%s of block %d reads %s through the %s, whose contents are older than what %s of block "
                                 "%zu (line %d) wrote: call %s between",
                                 here.api, int(b), finding.buffer.c_str(),
                                 scalar ? "data cache" : "cache of copies of several dimensions", there.api, other,
                                 there.line, scalar ? "DataCacheCleanAndInvalid" : "NdDmaDci");
          out.push_back(std::move(finding));
          break;
        }
      }
}

}  // inline namespace
}  // namespace twin
