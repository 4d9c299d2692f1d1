// Blocks that wait for each other: SyncAll, and flags between cores. When all that still run wait, nobody will come: a
// finding, and all go on.
//
// A flag between cores (mode 0) counts meetings: the nth is when every block has set it n times, and each wait uses one
// up. What a block issued to the flag's pipe before, and what that pipe knew to be complete, is complete then. Source:
// the API reference on CrossCoreSetFlag.
#pragma once
#include "twin/runtime/order.h"

namespace twin {
inline namespace TWIN_ABI {

inline void StartMeeting(Launch& launch) {
  Meeting& m = launch.meeting;
  m.alive = launch.blocks;
  m.waitsFor.assign(launch.blocks, -1);
  for (Meeting::Flag& flag : m.flags) {
    flag.set.assign(launch.blocks, 0);
    flag.taken.assign(launch.blocks, 0);
  }
}

inline void ReleaseAll(Meeting& m) {
  m.waiting = m.blocked = 0;
  ++m.generation;
  std::fill(m.waitsFor.begin(), m.waitsFor.end(), -1);
  m.changed.notify_all();
}

// Everything that this block did before is complete in the epoch.
inline void CloseAccesses(State& s, uint32_t epoch) {
  for (size_t a = 0; a < s.blockAccesses.size(); ++a) {
    std::vector<BlockAccess>& log = s.blockAccesses[a];
    for (size_t& i = s.firstOpen[a]; i < log.size(); ++i) log[i].until = std::min(log[i].until, epoch);
  }
}

TWIN_API void BlocksBarrier(int32_t blocks, Site site) {
  State& s = *tls_core->state;
  Launch& launch = *s.launch;
  Meeting& m = launch.meeting;
  ++s.syncs;
  CountCall(s);
  Trace(s, Step::kSyncAll, PIPE_ALL, PIPE_ALL, 0, "SyncAll", site);
  if (launch.blocks > launch.physicalCores)
    Note(s, "block-sync", site, Text("SyncAll with %d blocks on %d vector cores; the device waits for ever",
                                     launch.blocks, launch.physicalCores));
  {
    std::unique_lock<std::mutex> lock(m.mutex);
    m.target = blocks ? blocks : launch.blocks;
    uint64_t generation = m.generation;
    if (++m.waiting == m.target) {
      m.blocked -= m.waiting - 1;
      m.waiting = 0;
      ++m.generation;
      ++m.epoch;
      m.changed.notify_all();
    } else if (++m.blocked == m.alive) {
      Note(s, "block-sync", site, Text("SyncAll waits for %d blocks, and only %d reach it", m.target, m.waiting));
      ++m.epoch;
      ReleaseAll(m);
    } else {
      m.changed.wait(lock, [&] { return m.generation != generation || launch.expired; });
    }
    s.epoch = m.epoch;
  }
  GiveUpIfExpired(launch);
  CloseAccesses(s, s.epoch);
}

inline void LeaveMeeting(Launch& launch) {
  Meeting& m = launch.meeting;
  std::lock_guard<std::mutex> lock(m.mutex);
  --m.alive;
  if (!m.blocked || m.blocked != m.alive) return;
  Note(*tls_core->state, "block-sync", Site::Here("", 0),
       Text("a block ended while %d others wait in SyncAll or for a flag; the device waits for ever", m.blocked));
  ++m.epoch;
  ReleaseAll(m);
}

TWIN_API void CrossFlagSet(pipe_t pipe, int id, Site site) {
  State& s = *tls_core->state;
  Launch& launch = *s.launch;
  Meeting& m = launch.meeting;
  CountCall(s);
  GiveUpIfExpired(launch);
  if (id >= 11 && id <= 14 && s.syncs)
    Note(s, "event-id", site, Text("CrossCoreSetFlag(%d) beside SyncAll, which uses the flags 11 to 14", id));
  const Clock clock = Snapshot(s, pipe);
  for (size_t a = 0; a < s.blockAccesses.size(); ++a) {
    std::vector<BlockAccess>& log = s.blockAccesses[a];
    while (s.firstOpen[a] < log.size() && log[s.firstOpen[a]].flag >= 0) ++s.firstOpen[a];
    for (size_t i = s.firstOpen[a]; i < log.size(); ++i) {
      int from = s.places[log[i].place].pipe;
      if (log[i].flag < 0 && (from == PIPE_S || log[i].sequence <= clock.at[from])) {
        log[i].flag = int8_t(id);
        log[i].nth = s.flagsSet[id];
      }
    }
  }
  ++s.flagsSet[id];
  std::lock_guard<std::mutex> lock(m.mutex);
  Meeting::Flag& flag = m.flags[id];
  ++flag.set[tls_core->block];
  if (*std::min_element(flag.set.begin(), flag.set.end()) == flag.epochs.size()) return;
  flag.epochs.push_back(++m.epoch);
  for (size_t b = 0; b < flag.taken.size(); ++b) {
    if (flag.epochs.size() - flag.taken[b] > 15)
      Note(s, "block-sync", site,
           Text("flag %d is set 16 times without a wait on block %zu: its counter ends at 15", id, b));
    if (m.waitsFor[b] != id) continue;
    m.waitsFor[b] = -1;
    --m.blocked;
  }
  m.changed.notify_all();
}

TWIN_API void CrossFlagWait(int id, Site site) {
  State& s = *tls_core->state;
  Launch& launch = *s.launch;
  Meeting& m = launch.meeting;
  CountCall(s);
  Trace(s, Step::kSyncAll, PIPE_ALL, PIPE_ALL, 0, "CrossCoreWaitFlag", site);
  if (launch.blocks > launch.physicalCores)
    Note(s, "block-sync", site, Text("CrossCoreWaitFlag with %d blocks on %d vector cores; the device waits for ever",
                                     launch.blocks, launch.physicalCores));
  {
    std::unique_lock<std::mutex> lock(m.mutex);
    Meeting::Flag& flag = m.flags[id];
    uint32_t& taken = flag.taken[tls_core->block];
    if (taken == flag.epochs.size()) {
      m.waitsFor[tls_core->block] = id;
      if (++m.blocked == m.alive) {
        Note(s, "block-sync", site, Text("CrossCoreWaitFlag(%d) waits for ever: not all blocks set the flag", id));
        ReleaseAll(m);
      }
      m.changed.wait(lock, [&] { return m.waitsFor[tls_core->block] < 0 || launch.expired; });
    }
    if (taken < flag.epochs.size()) s.epoch = std::max(s.epoch, flag.epochs[taken++]);
  }
  GiveUpIfExpired(launch);
}

// Flags that are still up, or half set, when the kernel ends.
inline void FindFlagsLeft(const Launch& launch, bool check, std::vector<Finding>& out) {
  if (!check || launch.expired) return;
  for (int id = 0; id < kCrossFlags; ++id) {
    const Meeting::Flag& flag = launch.meeting.flags[id];
    for (int b = 0; b < launch.blocks; ++b) {
      if (flag.set[b] == flag.epochs.size() && flag.taken[b] == flag.epochs.size()) continue;
      Finding finding;
      finding.kind = "event-unwaited";
      finding.block = b;
      finding.message = Text(
          "CrossCoreSetFlag(%d) was called %u times on block %d, %zu times on all blocks, and waited "
          "for %u times: the flag is still up when the next kernel starts",
          id, flag.set[b], b, flag.epochs.size(), flag.taken[b]);
      out.push_back(std::move(finding));
      break;
    }
  }
}

}  // inline namespace
}  // namespace twin
