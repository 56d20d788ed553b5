#pragma once

// Tested by: tests/property/engine/rank_part_test.cpp

#include <cstdint>
#include <utility>
#include <vector>

#include "base/result.h"
#include "planners/symmetric/shift_chain.h"
#include "planners/symmetric/symmetric_plan.h"

namespace espalier::planners {

/// Writes images of a part's transfers into a schedule that has all slices of the whole.
class ImageWriter {
 public:
  /// The plan and the topology must outlive it. Errors: too_large where the whole has more slices, units or channels
  /// than a schedule may.
  static Result<ImageWriter> make(const SymmetricPlan& plan, const Topology& topology);

  /// The image of a transfer of the part under a shift, as the next one.
  void add(std::size_t transfer, std::uint32_t shift);

  [[nodiscard]] Schedule take() { return std::move(whole_); }

 private:
  ImageWriter(const SymmetricPlan& plan, const Topology& topology);

  const SymmetricPlan* plan_;
  std::vector<std::uint32_t> edge_of_;  // by link
  std::vector<Automorphism> shifts_;
  std::uint32_t channels_;
  Schedule whole_;
};

}  // namespace espalier::planners
