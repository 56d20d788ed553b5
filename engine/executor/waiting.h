#pragma once

#include <cstdint>

namespace espalier::engine {

/// How to wait for a peer. A spin notices at once but keeps a core from others; a yield is cheap while only ranks share
/// the cores and costs a time slice while other programs compute; a sleep frees the core but has to be ended by a wake,
/// the slowest of all. So it depends on how many ranks share the cores, and on what yields cost lately.
class Waiting {
 public:
  enum class Action : std::uint8_t { spin, yield, sleep };

  /// `is_oversubscribed`: this machine runs more ranks of the job than it has cores for them.
  explicit Waiting(bool is_oversubscribed) : is_oversubscribed_(is_oversubscribed) {}

  /// Something moved.
  void reset() {
    passes_ = 0;
    yields_ = 0;
  }

  /// Whether the wait has just begun, or is about to, and next() will only spin. Well below the time of a wake.
  [[nodiscard]] bool is_at_first_spins() const { return !is_oversubscribed_ && passes_ < first_spins; }

  /// Nothing moved: what to do before the next look; spins and yields are done already. `begun_ns` (a moment of now_ns)
  /// is when waiting began, or 0 while that is not worth a look at the clock.
  /// `yields`: whether to yield before it sleeps.
  Action next(bool yields = true);
  [[nodiscard]] std::int64_t begun_ns() const { return begun_ns_; }
  /// The moment after the latest yield: where ranks share cores, each reading of the clock is in everybody's way.
  [[nodiscard]] std::int64_t looked_ns() const { return looked_ns_; }

 private:
  static constexpr std::uint32_t first_spins = 16;

  bool is_oversubscribed_;
  bool spins_ = true;
  std::uint32_t passes_ = 0;
  std::uint32_t yields_ = 0;
  std::uint32_t backoff_ = 0;  ///< Waits that go without yields, because one took long.
  std::int64_t begun_ns_ = 0;
  std::int64_t looked_ns_ = 0;
};

}  // namespace espalier::engine
