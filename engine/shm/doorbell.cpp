#include "engine/shm/doorbell.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace espalier::engine {

void Doorbell::ring() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_relaxed) == 0) return;
  rings_.fetch_add(1, std::memory_order_release);
  syscall(SYS_futex, &rings_, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

std::uint32_t Doorbell::announce() {
  sleepers_.fetch_add(1, std::memory_order_relaxed);
  // Pairs with the fence of `ring`: either `ring` sees the sleeper, or the sleeper's next look sees the change.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return rings_.load(std::memory_order_acquire);  // Before that look.
}

void Doorbell::sleep(std::uint32_t announced, std::chrono::nanoseconds longest) {
  const timespec limit{static_cast<time_t>(longest.count() / 1'000'000'000),
                       static_cast<long>(longest.count() % 1'000'000'000)};
  syscall(SYS_futex, &rings_, FUTEX_WAIT, announced, &limit, nullptr, 0);
}

}  // namespace espalier::engine
