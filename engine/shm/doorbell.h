#pragma once

// Tested by: tests/unit/engine/shm/doorbell_test.cpp

#include <atomic>
#include <chrono>
#include <cstdint>

namespace espalier::engine {

/// Wakes a sleeping process; lies in shared memory. Who changed something that a process may be asleep for rings after
/// the change; who wants to sleep announces it, looks once more, and sleeps.
class Doorbell {
 public:
  /// Cost: a fence and a load while nobody sleeps.
  void ring();

  /// Returns what `sleep` needs; what changes from now on cuts the sleep short.
  std::uint32_t announce();
  /// Sleeps until somebody rings, or the time is up. Spurious returns happen.
  void sleep(std::uint32_t announced, std::chrono::nanoseconds longest);
  /// Ends what `announce` began.
  void withdraw() { sleepers_.fetch_sub(1, std::memory_order_relaxed); }

 private:
  std::atomic<std::uint32_t> rings_ = 0;
  std::atomic<std::uint32_t> sleepers_ = 0;
};

}  // namespace espalier::engine
