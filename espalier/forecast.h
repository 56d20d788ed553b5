#pragma once

// Tested by: tests/unit/espalier/forecast_test.cpp

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "espalier/machine.h"
#include "schedule/bound.h"
#include "schedule/schedule.h"

namespace espalier {

/// What a forecast is of, beside a machine and a collective.
struct ForecastOptions {
  /// Planners ("ring", "packing", "packing/h2t3", ...), under a profile NCCL's ("nccl", "nccl/ring"), or "auto": all
  /// planners, of which the fastest runs.
  std::vector<std::string> algorithms = {"auto"};
  std::string profile = {};       ///< Instead of the machine's: a shipped one or a file; "ideal": links alone.
  std::optional<Rank> root = {};  ///< Of collectives that have one; else rank 0.
  std::vector<std::int64_t> shares =
      {};                         ///< Unequal shards, or an all_to_all's matrix row by row (schedule/collective.h).
  std::int64_t element_size = 4;  ///< Bytes.
  unsigned threads = 1;           ///< Planners at once.
};

/// What one algorithm takes at one message size.
struct Prediction {
  Bytes size;             ///< Message size S.
  std::string algorithm;  ///< What ran, with its protocol under a profile: "packing", "nccl/ring/ll128".
  double seconds = 0;
  double algbw = 0;     ///< Bytes per second.
  double busbw = 0;     ///< Bytes per second, as nccl-tests counts it.
  double of_bound = 0;  ///< The part of the bound's throughput; at most 1.
  Bytes chunk;          ///< The largest chunk.
};

/// Plans a collective on a machine once, and says what it takes at any size: the numbers of `espalier simulate`. Every
/// plan passed `verify`. Several threads may ask at once.
///
///     const Machine machine = value(read_machine("dgx-h100-x4"));
///     const Forecast forecast = value(Forecast::make(machine, "all_reduce"));
///     const Prediction best = value(forecast.best(64_MiB));
class Forecast {
 public:
  /// Errors: invalid_input for names that are none; infeasible where ranks cannot reach each other; unsupported where
  /// no algorithm plans this, with the first reason.
  static Result<Forecast> make(Machine machine, const std::string& collective, const ForecastOptions& options = {});
  Forecast(Forecast&&) noexcept;
  Forecast& operator=(Forecast&&) noexcept;
  ~Forecast();

  /// The fastest of the algorithms. Requires: a size from 0 to max_message_size.
  [[nodiscard]] Result<Prediction> best(Bytes size) const;
  /// One of the algorithms. Errors: invalid_input where it is none of them; unsupported where it does not run so.
  [[nodiscard]] Result<Prediction> predict(const std::string& algorithm, Bytes size) const;

  /// The algorithms that have a plan.
  [[nodiscard]] const std::vector<std::string>& algorithms() const;
  /// What no schedule can beat, with its proof.
  [[nodiscard]] const Bound& bound() const;
  /// The bound as bus bandwidth, bytes per second; 0 where nothing moves.
  [[nodiscard]] double busbw_limit() const;

  /// The schedule of the fastest at a size, with the chunk and window that it ran with, to be written or run. Plans
  /// anew where a large machine was planned by one rank's part. Errors: as best; unsupported for NCCL's own.
  [[nodiscard]] Result<Schedule> plan(Bytes size) const;

  [[nodiscard]] const Topology& topology() const;
  [[nodiscard]] const Collective& collective() const;

 private:
  struct State;
  explicit Forecast(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace espalier
