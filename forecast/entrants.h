#pragma once

// Tested by: tests/property/cli/large_plans_test.cpp

#include <memory>
#include <optional>

#include "base/result.h"
#include "planners/chooser.h"
#include "planners/symmetric/folded_network.h"
#include "planners/symmetric/repaired_plan.h"
#include "schedule/loads.h"
#include "sim/repeating_simulator.h"
#include "sim/simulate.h"

// What can be done with a candidate, in whichever form its plan is there: stored as a schedule, as rings to walk, as
// one rank's part that stands for all, or as that with what was repaired after a failure. Nobody but planners, who make
// these forms, and this file looks which one it is.

namespace espalier::forecast {

/// Simulates one candidate. What was repaired after a failure is not simulated, but estimated: the plan of the machine
/// before is, and what the repair adds to its fullest link and to its longest chain of latencies is added. The topology
/// and the candidate must outlive it. Safe to share between threads.
class CandidateSimulator {
 public:
  /// Errors: as planners::require_verified and sim::Simulator; unsupported where one rank's part stands for all and the
  /// topology is not alike there. The topology of a repaired plan is that of the machine before, or its own.
  static Result<CandidateSimulator> make(const planners::Candidate& candidate, const Topology& topology,
                                         const sim::CopyEngines& engines);

  /// The same candidate on a network that differs in rates and latencies alone, as sim::Simulator::on.
  [[nodiscard]] Result<CandidateSimulator> on(const Topology& topology, const sim::CopyEngines& engines) const;

  /// Errors: as sim::Simulator; unsupported for what rings that are walked have not.
  [[nodiscard]] Result<sim::Report> run(const sim::Options& options) const;

  /// Nothing where it is certain that the run takes longer than the deadline.
  [[nodiscard]] Result<std::optional<sim::Report>> run_until(const sim::Options& options, Picoseconds deadline) const;

  /// Of how many like parts such a run simulates one; 1: all.
  [[nodiscard]] std::uint32_t parts(const sim::Options& options) const { return stored_ ? stored_->parts(options) : 1; }

 private:
  CandidateSimulator(const planners::Candidate& candidate, const Topology& topology, const sim::CopyEngines& engines)
      : candidate_(&candidate), topology_(&topology), engines_(engines) {}
  [[nodiscard]] Result<sim::Options> options_of_part(const sim::Options& options) const;
  [[nodiscard]] sim::Report of_whole(sim::Report of_part, const sim::Options& options) const;
  void repair(sim::Report& report, const sim::Options& options) const;

  const planners::Candidate* candidate_;
  const Topology* topology_;
  sim::CopyEngines engines_;
  std::shared_ptr<const planners::FoldedNetwork> folded_;  ///< Of a symmetric plan.
  std::optional<sim::Simulator> of_part_;                  ///< Then: of one rank's part.
  double more_per_byte_ = 0;                               ///< Seconds that a repair adds to the fullest link.
  std::optional<sim::RepeatingSimulator> stored_;          ///< Of a stored schedule.
};

/// A given schedule as the only candidate, called by its algorithm or "plan". Errors: those of the bound.
Result<planners::Candidates> only_candidate(Schedule schedule, const Topology& topology);

/// What its runs begin with: of a repaired plan the machine before, where the topology is not that already.
[[nodiscard]] const Topology& network_of(const planners::Candidate& candidate, const Topology& topology);

/// Whether rings are walked in its place.
[[nodiscard]] bool is_walked(const planners::Candidate& candidate);

/// What was repaired of it after a failure, so that its times are not simulated; null: nothing.
[[nodiscard]] const planners::RepairedPlan* repairs_of(const planners::Candidate& candidate);

/// What says how it moves bytes: its schedule, or one rank's part in the units of the whole. Lives as long as the
/// candidate.
[[nodiscard]] std::shared_ptr<const Schedule> described_schedule(const planners::Candidate& candidate);

/// What its links carry, in the units of described_schedule, by the ids of the topology that it is planned for.
[[nodiscard]] Loads loads_of(const planners::Candidate& candidate, const Topology& topology);

/// What its fullest link takes for each byte of the message, on that network or one that differs in rates alone.
[[nodiscard]] Rational seconds_per_byte_of(const planners::Candidate& candidate, const Topology& topology);

/// The choice of its chunks on such a network.
[[nodiscard]] planners::ChunkModel chunk_model_of(const planners::Candidate& candidate, const Topology& topology);

/// The links that its routes go over.
[[nodiscard]] std::vector<bool> used_links(const planners::Candidate& candidate, const Topology& topology);

/// Rings that are walked as their planner stores them, where they can be stored; else the candidate itself. Lives as
/// long as the candidate. Errors: those of the planner.
Result<std::shared_ptr<const planners::Candidate>> stored_form(const planners::Candidate& candidate,
                                                               const Topology& topology);

/// All of it as a schedule, to be written or executed. Errors: too_large where that is not stored.
Result<const Schedule*> whole_schedule(const planners::Candidate& candidate);

/// The transfers of one rank. Errors: unsupported for rings that are walked and for what was repaired; too_large past
/// the limits of schedule.h.
Result<Schedule> part_of_rank(const planners::Candidate& candidate, const Topology& topology, Rank rank);

}  // namespace espalier::forecast
