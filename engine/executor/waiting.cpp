#include "engine/executor/waiting.h"

#include <sched.h>

#include "engine/executor/clock.h"

namespace espalier::engine {
namespace {

constexpr std::int64_t free_spin_ns = 30'000;
constexpr std::uint32_t passes_per_look = 16;  ///< At the clock.
constexpr std::uint32_t most_yields = 64;
constexpr std::int64_t slow_yield_ns = 300'000;
constexpr std::uint32_t backoff_waits = 64;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

Waiting::Action Waiting::next(bool yields) {
  if (passes_ == 0) {
    begun_ns_ = 0;
    spins_ = !is_oversubscribed_;
  }
  ++passes_;
  if (spins_ && passes_ % passes_per_look == 0) {
    const std::int64_t now = now_ns();
    if (begun_ns_ == 0) begun_ns_ = now;
    spins_ = now - begun_ns_ < free_spin_ns;
  }
  if (spins_) {
    if (passes_ >= first_spins) pause();  // It may last longer than the flag takes from core to core.
    return Action::spin;
  }
  if (yields_ == 0) looked_ns_ = now_ns();
  const std::int64_t before = looked_ns_;
  if (begun_ns_ == 0) begun_ns_ = before;
  if (!yields) return Action::sleep;
  if (backoff_ == 0 && yields_ < most_yields) {
    ++yields_;
    sched_yield();
    looked_ns_ = now_ns();
    if (looked_ns_ - before > slow_yield_ns) backoff_ = backoff_waits;
    return Action::yield;
  }
  if (backoff_ > 0 && yields_ == 0) {
    --backoff_;
    yields_ = most_yields;  // Counted once a wait.
  }
  return Action::sleep;
}

}  // namespace espalier::engine
