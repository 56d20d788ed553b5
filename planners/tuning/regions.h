#pragma once

// Tested by: tests/unit/planners/tuning_test.cpp

#include <functional>
#include <span>
#include <vector>

#include "planners/chooser.h"

namespace espalier::planners {

/// What was found at one size: the candidate that is taken there, and all others.
struct TunedSize {
  Bytes size;
  Choice choice;                     ///< The fastest at this size, with the trials of all.
  const Candidate* taken = nullptr;  ///< The best of those that are as good as the fastest in all of its region.

  /// The run of the candidate taken.
  [[nodiscard]] const RunReport& run() const;
};

/// How far the candidate taken at a size is ahead of the best other one.
struct Margin {
  const Candidate* second = nullptr;  ///< Nothing when there is no other candidate.
  double factor = 1;                  ///< The second's time over that of the one taken; 1 where it is as good.
  bool at_least = false;              ///< The second was not run: the factor is that of its least possible time.
};
Margin margin_of(const TunedSize& point);

/// Neighbouring sizes at which one candidate is taken.
struct Region {
  const Candidate* taken = nullptr;
  std::vector<TunedSize> sizes;  ///< All that were looked at, smallest first; never empty.
};

struct RegionOptions {
  double tolerance = 0.01;   ///< Whoever is at most this part slower than the fastest is as good.
  double resolution = 1.03;  ///< Borders are narrowed down to this ratio of sizes.
  std::int64_t element_size = 4;
  unsigned threads = 1;  ///< So many sizes at once; what is found does not depend on it.
};

/// The regions of message sizes from the smallest to the largest of `sizes`. Where the winner changes between two
/// sizes, the sizes between them are bisected, so that winners that hold for less than one step are found where they
/// are met. Requires: at least one candidate; sizes that rise, each a multiple of an element; with several threads
/// `times` and an `on_size` that may be called by all of them. `on_size` is told each size before it is looked at.
/// Errors: those of `times`.
Result<std::vector<Region>> find_regions(const Candidates& candidates, std::span<const Bytes> sizes,
                                         const RegionOptions& options, CandidateTimes& times,
                                         const std::function<void(Bytes)>& on_size = {});

}  // namespace espalier::planners
