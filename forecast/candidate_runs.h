#pragma once

// Tested by: tests/unit/forecast/profiled_runs_test.cpp

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "forecast/entrants.h"
#include "forecast/known_runs.h"
#include "forecast/profiled_runs.h"
#include "forecast/question.h"
#include "planners/chooser.h"
#include "sim/simulate.h"

namespace espalier::forecast {

/// What a run takes where switches choose its paths (ECMP).
struct EcmpTimes {
  double expected = 0;  ///< Seconds; the mean over the seeds.
  Picoseconds worst;
  std::uint64_t worst_seed = 0;
};

/// What one algorithm gave at one size.
struct CandidateRun {
  Bytes size;
  std::string algorithm;                           ///< As asked for: a planner, or "auto".
  const planners::Candidate* candidate = nullptr;  ///< What ran; for "auto", what it chose.
  sim::Report report;
  std::string why;                                  ///< For "auto": why it chose.
  const profile::CostedNetwork* setting = nullptr;  ///< Under a profile: what it ran in.
  std::string protocol;                             ///< Under a profile: with which.
  std::optional<EcmpTimes> ecmp = {};               ///< Where paths were drawn (forecast/ecmp_runs.h).

  /// Whose schedule ran.
  [[nodiscard]] const std::string& planner() const { return candidate->planner; }
  /// Whose schedule ran, and with which protocol where a profile chose one: "packing", "nccl/ring/ll128".
  [[nodiscard]] std::string by() const { return protocol.empty() ? planner() : planner() + "/" + protocol; }
  [[nodiscard]] std::uint64_t transfers() const { return candidate->transfer_count(); }
};

/// Where the fastest algorithm changes.
struct Crossover {
  std::string from;
  std::string to;
  Bytes size;
};

/// Simulates candidates over message sizes, each (schedule, size, pacing) once. Several threads may ask at once.
class CandidateRuns {
 public:
  CandidateRuns(const Topology& topology, const planners::Candidates& candidates, RunOptions options);
  CandidateRuns(const CandidateRuns&) = delete;
  CandidateRuns& operator=(const CandidateRuns&) = delete;

  /// One algorithm at one size; "auto" chooses among all candidates, without knowing the jitter that is to come.
  /// Requires: a candidate of that name, or at least one candidate for "auto".
  Result<CandidateRun> run(const std::string& algorithm, Bytes size) {
    return run(algorithm, size, options_.circumstances.conditions);
  }
  /// The same with jitter and a seed of its own: what was chosen stays chosen. Under a profile the options' count.
  Result<CandidateRun> run(const std::string& algorithm, Bytes size, const sim::Conditions& conditions);

  /// What ran under a profile, in the same setting, at another size and pacing. Requires: a profile.
  Result<sim::Report> run_in(const profile::CostedNetwork& setting, const planners::Candidate& candidate, Bytes size,
                             const Pacing& pacing) {
    return profiled().run_in(setting, candidate, size, pacing);
  }

  /// What functions that choose ask; without the jitter that is to come. Lives as long as these runs.
  planners::CandidateTimes& times();
  /// The fastest at a size, with the trials of all; where only NCCL's own schedules are there, what NCCL would pick.
  Result<planners::Choice> choose(Bytes size);

  /// One candidate at one size and pacing on links alone, without jitter; nothing where it takes longer than the
  /// deadline.
  Result<std::optional<RunReport>> evaluate(const planners::Candidate& candidate, Bytes size, const Pacing& pacing,
                                            Picoseconds deadline);

  /// The size from which on `to` is faster than `from`, to about five per cent, between two sizes where that changes.
  /// Where runs are dear (planners/pacing_search.h), after one look, as if times grew evenly from there on.
  Result<Crossover> find_crossover(const std::string& from, const std::string& to, Bytes below, Bytes above);

 private:
  /// Candidates as these runs cut and run them on links alone.
  class OfLinks : public planners::LinkTimes {
   public:
    explicit OfLinks(CandidateRuns& runs) : LinkTimes(*runs.candidates_), runs_(runs) {}
    Result<std::optional<RunReport>> evaluate(const planners::Candidate& candidate, Bytes size, const Pacing& pacing,
                                              Picoseconds deadline) override {
      return runs_.evaluate(candidate, size, pacing, deadline);
    }
    [[nodiscard]] planners::FixedPacing fixed(const planners::Candidate& candidate, Bytes size) const override {
      return runs_.fixed_for(candidate, size);
    }

   private:
    CandidateRuns& runs_;
  };
  /// What two algorithms take at a size, in seconds.
  struct Pair {
    double from = 0;
    double to = 0;

    [[nodiscard]] double gap() const { return to - from; }
  };
  Result<Pair> run_both(const std::string& from, const std::string& to, Bytes size);
  Result<Crossover> find_dear_crossover(const std::string& from, const std::string& to, Bytes below, Bytes above);
  ProfiledRuns& profiled();
  Result<CandidateRun> run_profiled(const std::string& algorithm, Bytes size);
  Result<planners::Choice> choose_as_nccl(Bytes size);
  const Result<CandidateSimulator>& find_simulator(const planners::Candidate& candidate);
  /// A run as KnownRuns asks for it.
  struct Run {
    KnownRuns::Key key;
    KnownRuns::SimulateUntil simulate;
  };
  Run run_of(const planners::Candidate& candidate, Bytes size, const Pacing& pacing, const sim::Conditions& conditions);
  /// Those of the options without jitter.
  [[nodiscard]] sim::Conditions steady() const;
  Result<sim::Report> simulate(const planners::Candidate& candidate, Bytes size, const Pacing& pacing,
                               const sim::Conditions& conditions);
  [[nodiscard]] planners::FixedPacing fixed_for(const planners::Candidate& candidate, Bytes size) const;
  /// How a candidate runs fastest at a size on links alone, without knowing the jitter that is to come.
  Result<Pacing> find_pacing(const planners::Candidate& candidate, Bytes size);

  const Topology* topology_;
  const planners::Candidates* candidates_;
  RunOptions options_;
  /// Made by whoever needs it first.
  struct KnownSimulator {
    std::once_flag once;
    std::optional<Result<CandidateSimulator>> made;
  };
  KnownRuns runs_;
  OfLinks link_times_;
  std::mutex mutex_;  ///< Of the two below, not of what they hold.
  std::unique_ptr<ProfiledRuns> profiled_;
  std::map<const planners::Candidate*, KnownSimulator> simulators_;
};

}  // namespace espalier::forecast
