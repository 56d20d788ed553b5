#pragma once

// Tested by: tests/unit/forecast/size_curve_test.cpp

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "planners/chunking.h"
#include "profile/costed_network.h"
#include "schedule/chunking.h"
#include "sim/simulate.h"

namespace espalier::forecast {

/// A run at one size.
struct SizedRun {
  sim::Report report;
  const profile::CostedNetwork* setting = nullptr;  ///< Under a profile: what it ran in.
  std::string protocol;                             ///< Under a profile: with which.
};

/// Whether a size between two powers of two is worth four runs at these, for the sake of those that come after it:
/// where a run of whole transfers is quick.
bool is_for_curves(const planners::ChunkModel& chunks, Bytes size);

/// Times of one schedule at any size, for those who ask for many. How it is cut is searched for at powers of two alone.
/// Between two of them it is cut into as many chunks as at one or the other: with as many chunks its time is straight
/// in the size, but for who is served first. So each of both ways is run at both ends, and of the two straight lines
/// the lower one is the time. Between two powers it never falls, whatever searches found. What is asked does not depend
/// on what was asked before. Safe to share between threads.
class SizeCurve {
 public:
  /// The fastest run at a size.
  using Search = std::function<Result<SizedRun>(Bytes size)>;
  /// The run at a size that is cut so, under a profile in the setting of another run.
  using Repeat = std::function<Result<sim::Report>(const SizedRun& like, Bytes size, const Pacing& pacing)>;

  SizeCurve(Search search, Repeat repeat) : search_(std::move(search)), repeat_(std::move(repeat)) {}

  /// Its report says how it would be cut at that size. A size without a power of two above it that can be run, or that
  /// is no number of elements, is searched itself. Errors: those of the search. Cost: of a new pair of powers two
  /// searches and two runs; else next to nothing.
  Result<SizedRun> at(Bytes size);

 private:
  using Known = std::shared_ptr<const SizedRun>;
  /// One way to cut, at both ends.
  struct Line {
    Known from;
    Known to;
  };
  struct Span {
    std::vector<Line> lines;
  };

  Result<Known> find(Bytes size);
  Result<std::shared_ptr<const Span>> find_span(Bytes below);
  Result<Span> make_span(Bytes below);

  Search search_;
  Repeat repeat_;
  std::mutex mutex_;  ///< Of the two below, not of what they hold.
  std::map<std::int64_t, Known> found_;
  std::map<std::int64_t, std::shared_ptr<const Span>> spans_;
};

}  // namespace espalier::forecast
