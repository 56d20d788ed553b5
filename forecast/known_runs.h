#pragma once

// Tested by: tests/unit/forecast/profiled_runs_test.cpp

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>

#include "base/result.h"
#include "base/units.h"
#include "sim/simulate.h"

namespace espalier::forecast {

/// Runs that were simulated, each once. Safe to share between threads; two that ask for the same at once may both run
/// it.
class KnownRuns {
 public:
  struct Key {
    const void* simulated = nullptr;  ///< What runs, of which there is one.
    std::int64_t size = 0;
    std::int64_t chunk = 0;
    std::uint32_t ahead = 0;
    bool has_jitter = false;
    friend auto operator<=>(const Key&, const Key&) = default;
  };

  /// Simulates a run: nothing where it takes longer than the deadline.
  using SimulateUntil = std::function<Result<std::optional<sim::Report>>(Picoseconds deadline)>;

  /// Errors: those of `simulate`.
  Result<sim::Report> run(const Key& key, const SimulateUntil& simulate);

  /// Nothing where the run is known to take longer than the deadline. Errors: those of `simulate`.
  Result<std::optional<RunReport>> run_until(const Key& key, Picoseconds deadline, const SimulateUntil& simulate);

 private:
  /// The run, which stays where it is; null where it is known to take longer.
  Result<const sim::Report*> find(const Key& key, Picoseconds deadline, const SimulateUntil& simulate);

  std::mutex mutex_;
  std::map<Key, sim::Report> whole_;
  std::map<Key, Picoseconds> longer_;  ///< Of those that were given up: the latest deadline.
};

}  // namespace espalier::forecast
