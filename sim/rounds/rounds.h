#pragma once

#include <cstdint>
#include <vector>

#include "schedule/chunking.h"
#include "sim/compiled/compiled_schedule.h"

namespace espalier::sim {

/// The round of every chunk, and how many rounds a source may be ahead of itself (docs/simulator.md, "Rounds"): what
/// keeps the lanes of one source in step where they share links with others.
class Rounds {
 public:
  /// No rounds: nobody waits for any.
  Rounds() = default;
  /// `ahead`: 0 is no limit. Cost: O(transfers + dependencies).
  Rounds(const CompiledSchedule& compiled, const Chunking& chunking, std::uint32_t ahead);

  /// Whether anybody may have to wait: resources are shared, and the window is shorter than the run.
  [[nodiscard]] bool are_on() const { return ahead_ != 0; }
  /// Requires: rounds that are on.
  [[nodiscard]] std::uint32_t round(ChunkId chunk) const { return first_[chunk.transfer.index()] + chunk.chunk; }
  /// A source hands over no chunk whose round is more than this above the lowest of those it still has to hand over.
  [[nodiscard]] std::uint32_t ahead() const { return ahead_; }

 private:
  std::vector<std::uint32_t> first_;  // by transfer: the round of its first chunk
  std::uint32_t ahead_ = 0;
};

}  // namespace espalier::sim
