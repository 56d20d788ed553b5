#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "planners/chooser.h"
#include "profile/profile.h"
#include "profile/setting.h"
#include "sim/simulate.h"

namespace espalier::profile {

/// One run under a profile.
struct ProfiledRun {
  const planners::Candidate* candidate = nullptr;
  sim::Protocol protocol = sim::Protocol::simple;
  const Setting* setting = nullptr;  ///< What it ran in; lives as long as the ProfiledRuns.
  sim::Report report;
  std::string why;  ///< One sentence: what else was there. Empty where nothing was chosen.
};

/// What a run gave and by which algorithm with which protocol: "nccl/ring/simple".
struct ProfiledSummary {
  std::string by;
  RunReport run;
};

/// Runs candidates over message sizes as a profile's software would: with the protocol that suits the size, its costs
/// laid on the network (Setting), and for "nccl" with the algorithm, protocol and chunk that NCCL would pick. Several
/// threads may ask at once.
class ProfiledRuns {
 public:
  struct Options {
    Profile profile;
    Picoseconds launch;
    std::optional<sim::Protocol> protocol;  ///< Only this one.
    std::int64_t element_size = 4;
    planners::FixedCut cut;
    sim::ModelKind model = sim::ModelKind::link;
    sim::Conditions conditions;
  };

  /// All must outlive the runs.
  ProfiledRuns(const Topology& topology, const planners::Candidates& candidates, const Options& options);
  ProfiledRuns(const ProfiledRuns&) = delete;
  ProfiledRuns& operator=(const ProfiledRuns&) = delete;

  /// "auto": the fastest of all candidates but NCCL's. "nccl": what NCCL would pick of its own. Else the candidate of
  /// that name. Errors: unsupported when there is none, or none that the profile has costs for.
  Result<ProfiledRun> run(const std::string& algorithm, Bytes size);

  /// One candidate's schedule at a size and cut, with the protocol that suits it. Requires: of the candidates.
  /// Errors: as `run`.
  Result<RunReport> evaluate(const Schedule& schedule, Bytes size, const Cut& cut);

 private:
  /// A candidate with a protocol, ready to run.
  struct Option {
    const planners::Candidate* candidate = nullptr;
    Shape shape = Shape::ring;
    sim::Protocol protocol = sim::Protocol::simple;
    const Way* way = nullptr;
    const Setting* setting = nullptr;
    std::optional<planners::ChunkModel> chunks;
    std::optional<sim::Simulator> simulator;
  };

  Result<std::vector<Option*>> options_of(const planners::Candidate& candidate);
  Result<const Setting*> find_setting(Shape shape, sim::Protocol protocol, const Way& way);
  Result<sim::Report> simulate(Option& option, Bytes size, const Cut& cut);
  Result<ProfiledRun> run_as_nccl(std::vector<Option*> options, Bytes size);
  Result<ProfiledRun> run_fastest(std::vector<Option*> options, Bytes size);

  const Topology& topology_;
  const planners::Candidates& candidates_;
  Options options_;
  std::size_t machines_ = 1;
  std::mutex mutex_;  ///< Of the two below; what they hold is not changed once it is made.
  std::map<std::pair<Shape, sim::Protocol>, std::unique_ptr<Setting>> settings_;
  std::map<std::pair<const planners::Candidate*, sim::Protocol>, Option> made_;
};

/// One schedule on one network at a size and cut, with the protocol that suits the size. Errors: unsupported when the
/// profile has no costs for it. Cost: that of making ready all protocols, beside the run.
Result<RunReport> run_once(const Topology& topology, const Schedule& schedule, Bytes size, const Cut& cut,
                           const ProfiledRuns::Options& options);

/// What NCCL's own schedules give on a network at a size: the run that its tuner would pick. Errors: those of planning;
/// unsupported where NCCL has nothing for the collective, or the profile no costs for it.
Result<ProfiledSummary> run_nccl(const Topology& topology, const Collective& collective, Bytes size,
                                 const ProfiledRuns::Options& options);

}  // namespace espalier::profile
