// Ends kernels that would never end.
//
// What a sound kernel does not do, whatever its size: spend seconds of processor time in C++ of its own, without a call
// of the API; work for long on UB without a copy to or from GM; make hundreds of millions of calls, which would take
// the device minutes. The clock is that of the block's thread, so that a busy machine makes no difference.
#pragma once
#include "twin/runtime/state.h"
#if defined(__APPLE__)
#include <mach/mach.h>
#include <pthread.h>
#else
#include <ctime>
#include <pthread.h>
#endif

namespace twin {
inline namespace TWIN_ABI {

constexpr double kPatience = 20;            // seconds without a call; four times that without a copy
constexpr uint64_t kMostCalls = 1ull << 28;

// Processor time of a thread, in seconds.
inline double CpuSeconds(std::thread& thread) {
#if defined(__APPLE__)
  thread_basic_info info;
  mach_msg_type_number_t size = THREAD_BASIC_INFO_COUNT;
  if (thread_info(pthread_mach_thread_np(thread.native_handle()), THREAD_BASIC_INFO, thread_info_t(&info), &size) != 0)
    return 0;
  return double(info.user_time.seconds) + double(info.user_time.microseconds) * 1e-6;
#else
  clockid_t clock;
  timespec time;
  if (pthread_getcpuclockid(thread.native_handle(), &clock) != 0 || clock_gettime(clock, &time) != 0) return 0;
  return double(time.tv_sec) + double(time.tv_nsec) * 1e-9;
#endif
}

inline std::atomic<bool> interrupted{false};  // by Ctrl-C, while a kernel runs

// The last time that a block was seen to get on.
struct Progress {
  uint64_t calls = 0, copies = 0;
  double atCall = 0, atCopy = 0;

  // Why the block will not end, or "".
  std::string Look(const State& s, double cpu, double patience) {
    uint64_t nowCalls = s.calls.load(std::memory_order_relaxed), nowCopies = s.copies.load(std::memory_order_relaxed);
    if (nowCalls != calls) atCall = cpu;
    if (nowCopies != copies) atCopy = cpu;
    calls = nowCalls;
    copies = nowCopies;
    if (cpu - atCall > patience)
      return Text("the kernel does not end: %.3g seconds of its own code without a call of the API", cpu - atCall);
    if (cpu - atCopy > 4 * patience)
      return Text("the kernel does not end: %.3g seconds of calls without a copy to or from GM", cpu - atCopy);
    if (calls > kMostCalls)
      return Text("the kernel does not end: more than %llu calls", (unsigned long long)kMostCalls);
    return "";
  }
};

// Waits for the blocks. Those that take longer than `seconds` (0: any time), are interrupted or do not get on are ended: at their next
// API call, or by a signal if they make none.
inline void Watch(Launch& launch, std::vector<State>& states, std::vector<std::thread>& threads, double seconds,
                  double patience) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  auto finished = [&] { return launch.done == launch.blocks; };
  auto limit = [](double s) { return std::chrono::duration<double>(s); };
  std::vector<Progress> progress(threads.size());
  std::unique_lock<std::mutex> lock(launch.doneMutex);
  std::string why;
  while (why.empty()) {
    double left = seconds > 0 ? seconds - std::chrono::duration<double>(Clock::now() - start).count() : 1;
    if (interrupted) {
      why = "the run was interrupted";
    } else if (left <= 0) {
      why = "the kernel does not end in the time given";
    } else {
      if (launch.doneChanged.wait_for(lock, limit(std::min(left, std::min(0.2, patience / 4))), finished)) return;
      for (size_t b = 0; b < threads.size() && why.empty(); ++b)
        if (!states[b].ended) why = progress[b].Look(states[b], CpuSeconds(threads[b]), patience);
    }
  }
  {
    std::lock_guard<std::mutex> meeting(launch.meeting.mutex);
    launch.why = why;
    launch.expired = true;
  }
  launch.meeting.changed.notify_all();
  while (!launch.doneChanged.wait_for(lock, limit(1.0), finished))
    for (size_t b = 0; b < threads.size(); ++b)
      if (!states[b].ended) pthread_kill(threads[b].native_handle(), SIGUSR2);
}

}  // inline namespace
}  // namespace twin
