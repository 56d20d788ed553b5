#pragma once

// Tested by: tests/unit/engine/executor/waiting_test.cpp

#include <cstdint>
#include <utility>

#include "engine/executor/rank_cores.h"

namespace espalier::engine {

/// How to wait for a peer. A spin notices at once but keeps a core from others; a yield is cheap while only ranks share
/// the core and costs a time slice while other programs compute; a sleep frees the core but has to be ended by a wake,
/// the slowest of all. So it depends on whether ranks share this core, and on what yields cost lately.
class Waiting {
 public:
  enum class Action : std::uint8_t { spin, yield, sleep };

  /// `is_oversubscribed`: this machine runs more ranks of the job than it has cores for them, which decides where
  /// `cores` knows no others. `knows_all`: `cores` knows every rank of the job, so that none is waited for by a kernel
  /// or a device that would need this core.
  explicit Waiting(bool is_oversubscribed, RankCores cores = {}, bool knows_all = false)
      : cores_(std::move(cores)), spins_long_(!is_oversubscribed && knows_all), shares_core_(is_oversubscribed) {}

  /// A call begins.
  void begin_call() {
    cores_.show();
    reset();
  }
  /// Something moved.
  void reset() {
    passes_ = 0;
    yields_ = 0;
  }

  /// Whether the wait has just begun, or is about to, and next() will only spin. Well below the time of a wake.
  [[nodiscard]] bool is_at_first_spins() const { return !shares_core_ && passes_ < first_spins; }

  /// Nothing moved: what to do before the next look; spins and yields are done already. `begun_ns` (a moment of now_ns)
  /// is when waiting began, or 0 while that is not worth a look at the clock.
  /// `yields`: whether to yield before it sleeps.
  Action next(bool yields = true);
  [[nodiscard]] std::int64_t begun_ns() const { return begun_ns_; }
  /// The moment after the latest yield: where ranks share cores, each reading of the clock is in everybody's way.
  [[nodiscard]] std::int64_t looked_ns() const { return looked_ns_; }

 private:
  static constexpr std::uint32_t first_spins = 16;
  static constexpr std::uint32_t min_backoff = 64;

  [[nodiscard]] bool may_yield();
  /// At the clock, and who is on this core.
  void look();
  Action yield();
  void note_slow_yield();

  RankCores cores_;
  bool spins_long_;  ///< There is a core for each rank.
  bool shares_core_;
  bool spins_ = true;  ///< Where it shares no core.
  std::uint32_t passes_ = 0;
  std::uint32_t yields_ = 0;
  std::uint32_t fast_yields_ = 0;             ///< Since one took long.
  std::uint32_t backoff_ = 0;                 ///< Waits that go without yields, because one took long.
  std::uint32_t next_backoff_ = min_backoff;  ///< Twice as many when it takes long again.
  std::int64_t begun_ns_ = 0;
  std::int64_t looked_ns_ = 0;
};

}  // namespace espalier::engine
