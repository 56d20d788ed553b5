#include "engine/executor/waiting.h"

#include <sched.h>

#include <algorithm>
#include <utility>

#include "engine/executor/clock.h"
#include "engine/executor/pause.h"

namespace espalier::engine {
namespace {

/// About what it takes to wake a core of a virtual machine: a wait takes at most twice as long as the better way.
constexpr std::int64_t short_spin_ns = 50'000;
/// Longer than the time slice for which another program may take a peer's core: who sleeps meanwhile leaves a core that
/// the scheduler gives to the peer, and finds itself on one with it.
constexpr std::int64_t long_spin_ns = 10'000'000;
constexpr std::uint32_t passes_per_look = 16;  ///< At clock and cores.
constexpr std::uint32_t max_yields = 64;
/// Longer than ranks compute between two waits for each other, and less than a time slice: another program had it.
constexpr std::int64_t slow_yield_ns = 300'000;
constexpr std::uint32_t max_backoff = 4096;
/// A program that computes and is as important as ranks takes its slice nearly every time that it can have it; one that
/// is nice does once in a hundred, and costs less than sleeps do.
constexpr std::uint32_t rare_yields = 16;

}  // namespace

Waiting::Action Waiting::next(bool yields) {
  if (passes_ == 0) {
    begun_ns_ = 0;
    spins_ = true;
  }
  ++passes_;
  const bool has_spun = !shares_core_ && spins_;
  if (has_spun ? passes_ % passes_per_look == 0 : yields_ == 0 || yields_ == max_yields) look();
  if (!shares_core_ && spins_) {
    if (passes_ >= first_spins) pause();  // It may last longer than the flag takes from core to core.
    return Action::spin;
  }
  return yields && may_yield() ? yield() : Action::sleep;
}

bool Waiting::may_yield() {
  if (!shares_core_ && cores_.knows_others()) return false;  // To whom?
  if (yields_ > 0) return yields_ < max_yields;
  if (backoff_ == 0) return true;
  --backoff_;
  yields_ = max_yields;  // Counted once a wait.
  return false;
}

Waiting::Action Waiting::yield() {
  const std::int64_t before = looked_ns_;
  ++yields_;
  sched_yield();
  look();
  ++fast_yields_;
  if (looked_ns_ - before > slow_yield_ns) note_slow_yield();
  return Action::yield;
}

void Waiting::note_slow_yield() {
  const bool is_rare = std::exchange(fast_yields_, 0) > rare_yields;
  if (is_rare) {
    next_backoff_ = min_backoff;
    return;
  }
  backoff_ = next_backoff_;
  next_backoff_ = std::min(2 * next_backoff_, max_backoff);
  yields_ = max_yields;  // Of this wait.
}

void Waiting::look() {
  looked_ns_ = now_ns();
  if (begun_ns_ == 0) begun_ns_ = looked_ns_;
  spins_ = looked_ns_ - begun_ns_ < (spins_long_ ? long_spin_ns : short_spin_ns);
  if (cores_.knows_others()) shares_core_ = cores_.shares_core();
}

}  // namespace espalier::engine
