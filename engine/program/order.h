#pragma once

// Tested by: tests/property/engine/rank_program_test.cpp

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "schedule/chunking.h"
#include "schedule/dependencies.h"
#include "schedule/schedule.h"

namespace espalier::engine {

/// The most chunks that a call is cut into, over all ranks.
inline constexpr std::uint64_t max_chunks = 100'000'000;

/// What each transfer waits for, and a level for each chunk of each transfer: one more than the levels of all that it
/// waits for, and of the chunk before it. Every rank runs the chunks of a stream by level, so that pipelines advance
/// together, and no rank ever waits for something that waits for it: all orders are parts of one.
///
/// Reductions into one place are carried out in program order, so that the same schedule gives the same bits. Those
/// that could start together get the same level and can be one pass over memory.
class ChunkOrder {
 public:
  /// Requires: rules S1 and S2. Errors: too_large past `max_chunks`.
  static Result<ChunkOrder> make(const Schedule& schedule, const Chunking& chunking);

  [[nodiscard]] std::uint32_t level(TransferId transfer, std::uint32_t chunk) const {
    return levels_[first_[transfer.index()] + chunk];
  }
  [[nodiscard]] std::uint32_t chunk_count(TransferId transfer) const {
    return static_cast<std::uint32_t>(first_[transfer.index() + 1] - first_[transfer.index()]);
  }

  [[nodiscard]] std::span<const Dependency> waits(TransferId transfer) const { return dependencies_.of(transfer); }
  /// The reductions just before a reduction into some of the same slices at the same rank, each once.
  [[nodiscard]] std::span<const TransferId> joined(TransferId transfer) const {
    return std::span(joined_).subspan(first_joined_[transfer.index()],
                                      first_joined_[transfer.index() + 1] - first_joined_[transfer.index()]);
  }

 private:
  explicit ChunkOrder(const Schedule& schedule) : dependencies_(schedule) {}
  void find_joined(const Schedule& schedule);
  void find_levels(const Schedule& schedule, const Chunking& chunking);

  Dependencies dependencies_;
  std::vector<std::uint64_t> first_;  ///< Transfers + 1: where the levels of a transfer begin.
  std::vector<std::uint32_t> levels_;
  std::vector<std::uint64_t> first_joined_;
  std::vector<TransferId> joined_;
};

}  // namespace espalier::engine
