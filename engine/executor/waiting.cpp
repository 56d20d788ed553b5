#include "engine/executor/waiting.h"

#include <sched.h>

#include "engine/executor/clock.h"

namespace espalier::engine {
namespace {

constexpr std::uint32_t crowded_spins = 8;
constexpr std::uint32_t free_spins = 2000;  ///< About 30 us with a pass over a few streams each.
constexpr std::uint32_t most_yields = 64;
constexpr std::int64_t slow_yield_ns = 300'000;
constexpr std::uint32_t wary_waits = 64;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

Waiting::Action Waiting::next() {
  if (passes_ == 0) begun_ns_ = now_ns();
  ++passes_;
  if (passes_ <= (is_crowded_ ? crowded_spins : free_spins)) {
    pause();
    return Action::spin;
  }
  if (wary_ == 0 && yields_ < most_yields) {
    ++yields_;
    const std::int64_t before = now_ns();
    sched_yield();
    if (now_ns() - before > slow_yield_ns) wary_ = wary_waits;
    return Action::yield;
  }
  if (wary_ > 0 && passes_ <= (is_crowded_ ? crowded_spins : free_spins) + 1) --wary_;
  return Action::sleep;
}

}  // namespace espalier::engine
