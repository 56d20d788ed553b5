#pragma once

// Tested by: tests/options/options_test.py

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "cli/jobs/stop.h"
#include "cli/measured/load_response.h"
#include "compare/read/measurements.h"
#include "diagnose/question.h"
#include "forecast/candidate_runs.h"
#include "profile/nccl_choices.h"

namespace espalier::cli {

/// The series of a table: one for each collective and algorithm, sizes ascending, sizes that were measured several
/// times by their median. `ranks` is of the whole table; `algorithm` what ran where rows do not say.
/// Errors: as sizes_by_collective.
OrStop<std::vector<diagnose::Evidence>> evidence_of(const compare::Measurements& table, const Topology& tested,
                                                    const std::string& ranks, const std::string& algorithm);

/// Predicts what a diagnosis asks for: what was planned on the healthy machine, chosen and cut as there, runs on the
/// one with faults; faults that the software knows and settings are planned around. Several threads may ask at once.
class DiagnosisRuns {
 public:
  DiagnosisRuns(const Topology& machine, std::shared_ptr<const forecast::Software> software)
      : machine_(machine), software_(std::move(software)) {}

  /// What is planned so far, under software that starts calls in another way.
  [[nodiscard]] std::unique_ptr<DiagnosisRuns> with_launch(std::shared_ptr<const forecast::Software> software) const;

  [[nodiscard]] const std::shared_ptr<const forecast::Software>& software() const { return software_; }

  /// As diagnose::Predict.
  Result<std::vector<double>> predict(const diagnose::Question& asked, std::span<const diagnose::Fault> faults,
                                      std::span<const Bytes> sizes);

  /// About the same for slow parts that the software does not know of, by what runs put on links, without simulating
  /// the damaged machine. Errors: unsupported for plans that are not stored, and other faults.
  Result<std::vector<double>> estimate(const diagnose::Question& question, std::span<const diagnose::Fault> faults,
                                       std::span<const Bytes> sizes);

  /// Seconds per byte that no schedule is below on the healthy machine; 0 where none can be said, or where something
  /// else was asked of this question before.
  double bound_per_byte(const diagnose::Question& question);

 private:
  /// What may run on the healthy machine, however calls start.
  struct Planned {
    Topology machine;
    Collective collective;
    planners::Candidates candidates;
  };
  /// One question on the healthy machine.
  struct Healthy {
    std::shared_ptr<const Planned> planned;
    std::unique_ptr<forecast::CandidateRuns> runs;
    std::map<std::int64_t, forecast::CandidateRun> of_size;
    std::map<std::pair<const planners::Candidate*, const profile::CostedNetwork*>, LoadResponse> responses;
  };
  /// What ran and how it was cut: what runs alike on a machine with faults that nobody knew.
  struct AsBefore {
    std::string planner;
    std::string protocol;
    std::int64_t chunk = 0;
    std::int64_t ahead = 0;

    friend auto operator<=>(const AsBefore&, const AsBefore&) = default;
  };

  Result<Planned> plan_healthy(const diagnose::Question& question, bool with_bound) const;
  /// With a bound only where one is asked for first: it may take longer than all else.
  Result<Healthy*> healthy(const diagnose::Question& question, bool with_bound = false);
  Result<const forecast::CandidateRun*> healthy_run(Healthy& of, const std::string& algorithm, Bytes size);
  const LoadResponse& response_of(Healthy& of, const forecast::CandidateRun& run);
  Result<std::vector<double>> run_as_before(Healthy& of, const diagnose::Question& question, const Topology& faulty,
                                            std::span<const Bytes> sizes);
  /// What is planned on such a machine, once for all that look alike to software that reads links.
  Result<std::shared_ptr<const planners::Candidates>> plan_around(const Healthy& of, const diagnose::Question& question,
                                                                  const Topology& faulty);
  Result<std::vector<double>> run_planned_around(const Healthy& of, const diagnose::Question& question,
                                                 const Topology& faulty, std::span<const Bytes> sizes);
  Result<std::vector<double>> run_healthy(Healthy& of, const diagnose::Question& question,
                                          std::span<const Bytes> sizes);
  Result<planners::Candidates> plan(const Topology& on, const Collective& collective, const std::string& algorithm,
                                    unsigned threads) const;
  Result<planners::Candidates> plan_again(const Topology& on, const Collective& collective,
                                          const std::string& algorithm) const;

  std::mutex mutex_;  ///< Of what is kept.
  const Topology& machine_;
  std::shared_ptr<const forecast::Software> software_;
  std::map<diagnose::Question, std::shared_ptr<const Planned>> planned_;
  std::map<diagnose::Question, std::unique_ptr<Healthy>> healthy_;
  std::shared_ptr<profile::KnownCommunicators> communicators_ = std::make_shared<profile::KnownCommunicators>();
  /// By what software sees of the machine.
  std::map<std::pair<diagnose::Question, std::string>, std::shared_ptr<const planners::Candidates>> planned_around_;
};

}  // namespace espalier::cli
