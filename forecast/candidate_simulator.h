#pragma once

#include <memory>
#include <optional>

#include "planners/chooser.h"
#include "planners/symmetric/symmetric_plan.h"
#include "sim/repeating_simulator.h"
#include "sim/simulate.h"

namespace espalier::forecast {

/// Simulates one candidate, in whatever form its plan is there: stored, as rings to walk, or as one rank's part. What
/// was repaired after a failure is not simulated: its time is what its loads, its latencies and the first chunk's way
/// take. The topology and the candidate must outlive it. Safe to share between threads.
class CandidateSimulator {
 public:
  /// Errors: as sim::Simulator; unsupported where one rank's part stands for all and the topology is not alike there.
  static Result<CandidateSimulator> make(const planners::Candidate& candidate, const Topology& topology,
                                         const sim::CopyEngines& engines);

  /// Errors: as sim::Simulator; unsupported for what rings that are walked have not.
  [[nodiscard]] Result<sim::Report> run(const sim::Options& options) const;

  /// Nothing where it is certain that the run takes longer than the deadline.
  [[nodiscard]] Result<std::optional<sim::Report>> run_until(const sim::Options& options, Picoseconds deadline) const;

 private:
  CandidateSimulator(const planners::Candidate& candidate, const Topology& topology, const sim::CopyEngines& engines)
      : candidate_(&candidate), topology_(&topology), engines_(engines) {}
  [[nodiscard]] Result<sim::Options> options_of_part(const sim::Options& options) const;
  [[nodiscard]] sim::Report of_whole(sim::Report of_part, Bytes size) const;
  [[nodiscard]] Result<sim::Report> add_up(const sim::Options& options) const;

  const planners::Candidate* candidate_;
  const Topology* topology_;
  sim::CopyEngines engines_;
  std::unique_ptr<const planners::FoldedNetwork> folded_;  ///< Of a symmetric plan.
  std::optional<sim::Simulator> of_part_;                  ///< Then: of one rank's part.
  std::optional<sim::RepeatingSimulator> stored_;          ///< Of a stored schedule.
};

}  // namespace espalier::forecast
