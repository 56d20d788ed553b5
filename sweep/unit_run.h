#pragma once

// Tested by: tests/unit/sweep/run_sweep_test.cpp

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <tuple>
#include <vector>

#include "forecast/candidate_runs.h"
#include "planners/chooser.h"
#include "sweep/spec.h"

namespace espalier::sweep {

/// A unit at work, in four steps: `open`, then `plan` for every planner, then `seal`, then `run` for every key. Within
/// a step calls may come from several threads at once.
class UnitRun {
 public:
  UnitRun(const Spec& spec, const Unit& unit);

  /// The network that is left, and the bound.
  void open();
  /// How many planners there are; none when the unit has nothing to run on.
  [[nodiscard]] std::size_t planner_count() const { return planned_.size(); }
  void plan(std::size_t planner);
  void seal();
  /// What one key gives. Deterministic, wall clock aside.
  [[nodiscard]] Row run(const Key& key);

 private:
  struct Planned {
    planners::Planner planner;
    std::vector<planners::Candidate> candidates;
    std::optional<Error> refusal;
    double seconds = 0;
  };
  /// What keys have in common whose runs share what they simulate: chunk or -1, model, protocol, copy engines; under a
  /// profile jitter and seed, too.
  using RunsKey = std::tuple<std::int64_t, sim::ModelKind, std::string, std::uint32_t, std::int32_t, std::uint64_t>;

  Result<void> try_open();
  Result<void> plan_large();
  Result<Figures> try_run(const Key& key);
  void add_range(const Key& key, Figures& figures) const;
  Result<forecast::CandidateRun> run_candidate(const Key& key);
  [[nodiscard]] Result<const planners::Candidate*> find_named(const std::string& algorithm) const;
  [[nodiscard]] std::optional<planners::Candidate> plan_walked_ring() const;
  [[nodiscard]] RunsKey runs_key(const Key& key) const;
  [[nodiscard]] forecast::RunOptions options_of(const Key& key) const;
  [[nodiscard]] bool has_profile() const { return spec_.machines[unit_.machine].costs != nullptr; }
  [[nodiscard]] double planning_seconds(const std::string& algorithm) const;

  const Spec& spec_;
  const Unit& unit_;
  bool wants_auto_;
  std::optional<Error> trouble_;
  std::optional<Topology> topology_;
  Collective collective_;
  Bound bound_;
  std::size_t domains_ = 1;  // machines, as errors of predictions are told apart
  std::vector<Planned> planned_;
  planners::Candidates candidates_;
  double seconds_of_all_ = 0;  // that planning took where all is planned at once
  std::mutex mutex_;           // of the runs, not of what they hold
  std::map<RunsKey, forecast::CandidateRuns> runs_;
};

}  // namespace espalier::sweep
