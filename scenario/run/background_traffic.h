#pragma once

// Tested by: tests/unit/scenario/run/run_job_test.cpp

#include <cstdint>
#include <vector>

#include "base/random.h"
#include "base/result.h"
#include "scenario/run/disturbances.h"
#include "scenario/run/plans.h"
#include "scenario/run/timers.h"
#include "sim/model.h"

namespace espalier::scenario {

/// Sends the background's flows. Pairs are drawn once; each sends at moments of its own, whether or not earlier flows
/// have arrived.
class BackgroundTraffic {
 public:
  /// All must outlive it.
  BackgroundTraffic(const Topology& topology, const Disturbances& disturbances, Plans& plans, sim::Model& model,
                    std::int32_t payload_ppm);

  /// Draws pairs and sets their first timers. Errors: those of the planners.
  Result<void> start(Timers& timers);

  /// A pair sends and sets its next timer. Errors: too_large when flows pile up; those of the planners and the model.
  Result<sim::RunId> send(std::uint32_t pair, std::int64_t time, Timers& timers);

  /// One end of a flow is through.
  void end_reached() { ++ends_; }

  [[nodiscard]] std::uint64_t flows() const { return flows_; }

  /// Most flows that may be under way.
  static constexpr std::uint64_t max_under_way = 100'000;

 private:
  struct Pair {
    Rank src;
    Rank dst;
    Bytes size;
    double mean_gap = 0;  ///< In picoseconds.
  };
  void set_timer(std::uint32_t pair, std::int64_t time, Timers& timers);

  const Topology& topology_;
  const Disturbances& disturbances_;
  Plans& plans_;
  sim::Model& model_;
  std::int32_t payload_ppm_;
  Random random_;
  std::vector<Pair> pairs_;
  std::uint64_t flows_ = 0;
  std::uint64_t ends_ = 0;
};

}  // namespace espalier::scenario
