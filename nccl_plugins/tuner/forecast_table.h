#pragma once

// Tested by: tests/unit/nccl_plugins/tuner/tuner_test.cpp

#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "forecast/candidate_runs.h"
#include "forecast/software.h"
#include "schedule/collective.h"
#include "topology/topology.h"

namespace espalier::nccl_plugins::tuner {

/// NCCL's numbers of algorithms and protocols, by place.
inline constexpr std::array algorithm_names = {
    "nccl/tree", "nccl/ring", "nccl/collnet_direct", "nccl/collnet_chain", "nccl/nvls", "nccl/nvls_tree", "nccl/pat"};
inline constexpr std::array protocol_names = {"ll", "ll128", "simple"};

/// What one algorithm with one protocol is forecast to take.
struct Forecast {
  std::size_t algorithm = 0;
  std::size_t protocol = 0;
  double seconds = 0;
};

/// What the forecast says of NCCL's algorithms on a machine, worked out when it is first asked for a collective and a
/// power of two of bytes. Any threads. The same file and question have the same answer in every process.
class ForecastTable {
 public:
  /// `profile`: a profile's file; empty for the one that the machine names, beside its file or in `profiles`.
  /// Errors: invalid_input, unavailable, naming the file.
  static Result<std::shared_ptr<ForecastTable>> load(const std::string& machine, const std::string& profile,
                                                     const std::string& profiles);
  [[nodiscard]] const Topology& machine() const { return machine_; }
  [[nodiscard]] std::size_t host_count() const;

  /// The fastest first; none for what the forecast does not know.
  const std::vector<Forecast>& rank(CollectiveKind kind, std::size_t bytes);

 private:
  ForecastTable(Topology machine, forecast::Software software)
      : machine_(std::move(machine)), software_(std::move(software)) {}
  struct Planned {
    planners::Candidates candidates;
    std::vector<std::unique_ptr<forecast::CandidateRuns>> runs;  ///< By protocol.
  };
  Planned* plan(CollectiveKind kind);

  Topology machine_;
  forecast::Software software_;
  std::mutex mutex_;
  std::map<CollectiveKind, std::unique_ptr<Planned>> planned_;
  std::map<std::pair<CollectiveKind, unsigned>, std::vector<Forecast>> known_;
};

}  // namespace espalier::nccl_plugins::tuner
