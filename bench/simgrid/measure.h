#pragma once

#include <functional>
#include <optional>

namespace espalier::bench {

/// What one simulation gave and cost.
struct Measured {
  double simulated_s = 0;
  double user_s = 0;   ///< CPU time in user mode, making the job included.
  double run_s = 0;    ///< CPU time of the simulation alone.
  double peak_mb = 0;  ///< Most memory resident.
};

/// A simulation's result, and the CPU time that it took without making the job.
struct Simulated {
  double simulated_s = 0;
  double run_s = 0;
};

/// CPU time of this process so far, in seconds.
double cpu_seconds();

/// Runs it in a process of its own: nothing of one measurement is left for the next, and SimGrid can be used more than
/// once. Nothing when that process fails.
std::optional<Measured> measure(const std::function<Simulated()>& simulate);

}  // namespace espalier::bench
