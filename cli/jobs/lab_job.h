#pragma once

// Tested by: tests/options/options_test.py

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "lab/memory_file.h"
#include "lab/network.h"
#include "planners/chooser.h"

namespace espalier::cli {

/// How ranks are to run in a lab, whatever the plan.
struct LabRunOptions {
  std::string program = "/proc/self/exe";  ///< What is started for each rank, as `program run PLAN --rank ...`.
  std::string type = "float";
  std::uint32_t iterations = 5;
  std::uint32_t warmup = 1;
  bool check = true;             ///< Data are compared with what the collective promises.
  std::uint32_t timeout_s = 60;  ///< How long a rank waits for anything.
};

/// One measured run.
struct LabMeasurement {
  double time = 0;  ///< Seconds of a call, out of place, of the slowest rank: the median of the iterations.
  std::optional<std::int64_t> wrong;  ///< Elements that were not what they should be; nothing when none was compared.
};

/// A plan that is ready to be run in a lab: its routes are in the network, its files in memory.
class LabJob {
 public:
  /// Errors: those of LabNetwork::add_routes.
  [[nodiscard]] static Result<LabJob> make(lab::LabNetwork& network, const planners::Candidate& candidate,
                                           const Topology& scaled);

  /// Starts all ranks, each in its namespace, waits for them and reads what rank 0 prints.
  /// `trace`, when not empty, is the file that gets the timeline.
  /// Errors: unavailable when a rank fails, with its last words; the others are ended then.
  Result<LabMeasurement> run(Bytes size, const Pacing& pacing, const LabRunOptions& options,
                             const std::string& trace) const;

 private:
  LabJob(const lab::LabNetwork& network, std::size_t ranks, lab::MemoryFile plan, lab::MemoryFile addresses)
      : network_(&network), ranks_(ranks), plan_(std::move(plan)), addresses_(std::move(addresses)) {}

  const lab::LabNetwork* network_;
  std::size_t ranks_;
  lab::MemoryFile plan_;
  lab::MemoryFile addresses_;
};

}  // namespace espalier::cli
