#pragma once

// Tested by: tests/unit/sim/critical_path/critical_path_test.cpp

#include <cstdint>
#include <vector>

#include "sim/core/history.h"
#include "sim/critical_path/critical_path.h"
#include "sim/fair/flow_trace.h"

namespace espalier::sim {

/// Up to where a chunk's way counts.
enum class Until : std::uint8_t {
  departed,  ///< It had left its sender, as those know that wait for it.
  left,      ///< Its sender is through with it; in the model fair one latency later.
  arrived,   ///< It was at its destination, and added.
};

/// Turns the ways of chunks into the steps of a critical path, latest first.
class PathSteps {
 public:
  explicit PathSteps(const History& history) : history_(history) {}

  /// Adds a chunk's way from its handing over to its end; says what it waited for before.
  Origin add(ChunkId chunk, Until until);

  /// When a chunk's way ended. Cost: O(steps of its path).
  [[nodiscard]] std::int64_t end_of(ChunkId chunk, Until until);

  /// The steps in the order of time, and their pieces.
  void finish(CriticalPath& path);

 private:
  void add_link_way(ChunkId chunk, const Path& path, std::size_t count, bool until_left);
  void add_link_step(ChunkId chunk, std::size_t index, std::int64_t begin, std::int64_t end);
  void add_hold(ChunkId chunk, const Path& path);
  void add_handling(ChunkId chunk, const ChunkTrace::Step& step, std::int64_t begin, std::int64_t overhead);
  void add_flow(ChunkId chunk, const Path& path, Until until);
  void divide(const CriticalStep& step, std::uint32_t probe, CriticalPath& path) const;
  [[nodiscard]] std::int64_t usual_time(ChunkId chunk, const ChunkTrace::Step& step, bool reduces) const;
  [[nodiscard]] bool is_fair() const { return history_.kind() == ModelKind::fair; }
  [[nodiscard]] const Path& path_of(ChunkId chunk) const {
    return history_.compiled().path(history_.compiled().schedule().transfers[chunk.transfer.index()]);
  }

  const History& history_;
  ChunkTrace trace_;
  FlowTrace flow_;
  std::vector<CriticalStep> steps_;
  std::vector<Probe> probes_;  // of each step; of no length where it did not wait
};

}  // namespace espalier::sim
