#pragma once

// Tested by: tests/unit/engine/executor/rank_cores_test.cpp

#include <atomic>
#include <cstdint>
#include <vector>

namespace espalier::engine {

/// Which cores the ranks of one machine run on, each as it says itself. Schedulers take ranks that wait now and then
/// for light work and put several on one core while another has none; every call then costs switches between them,
/// which take many times what a flag does from core to core. Ranks that see each other on one core part, once, and the
/// scheduler goes on from there: nobody is tied to a core.
class RankCores {
 public:
  /// A core's number and 1; 0 while it is not known. In memory that the ranks share.
  using Shown = std::atomic<std::uint32_t>;

  /// Of a rank that shows its core to nobody.
  RankCores() = default;
  /// Where this rank and the others show theirs; all outlive this.
  RankCores(Shown& own, std::vector<const Shown*> others);

  /// Whether there are other ranks whose cores are known.
  [[nodiscard]] bool knows_others() const { return !others_.empty(); }
  /// Shows on which core this thread runs. Cost: some ns.
  void show();
  /// Whether another rank runs on the same core. Where some core that this thread may use has two ranks fewer, it goes
  /// there first.
  bool shares_core();
  /// How often this rank went to another core.
  [[nodiscard]] std::uint32_t moves() const { return moves_; }

 private:
  /// Whether another rank shows this one's core.
  [[nodiscard]] bool is_shared() const;
  /// Another core and 1, of those that this thread may use and that have two ranks fewer, with the fewest; 0: none.
  [[nodiscard]] std::uint32_t find_emptier() const;
  void go_to(std::uint32_t core);

  Shown* own_ = nullptr;
  std::vector<const Shown*> others_;
  std::uint32_t shown_ = 0;        ///< What `own_` says.
  std::int64_t next_look_ns_ = 0;  ///< For another core, not before: a scheduler that undoes moves shall not cost much.
  std::uint32_t moves_ = 0;
};

}  // namespace espalier::engine
