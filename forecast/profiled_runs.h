#pragma once

// Tested by: tests/unit/forecast/profiled_runs_test.cpp

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "forecast/entrants.h"
#include "forecast/known_runs.h"
#include "planners/chooser.h"
#include "profile/costed_network.h"
#include "profile/nccl_choices.h"
#include "profile/nccl_tuner.h"
#include "profile/profile.h"
#include "sim/simulate.h"

namespace espalier::forecast {

/// One run under a profile.
struct ProfiledRun {
  const planners::Candidate* candidate = nullptr;
  profile::Shape shape = profile::Shape::ring;  ///< Whose costs it has.
  sim::Protocol protocol = sim::Protocol::simple;
  const profile::CostedNetwork* setting = nullptr;  ///< What it ran in; lives as long as the ProfiledRuns.
  sim::Report report;
  std::string why;  ///< One sentence: what else was there. Empty where nothing was chosen.
};

/// Runs candidates over message sizes as a profile's software would: with the protocol that suits the size, its costs
/// laid on the network (profile::Setting), and for "nccl" with the algorithm, protocol and chunk that NCCL would pick.
/// Several threads may ask at once.
class ProfiledRuns : public planners::CandidateTimes {
 public:
  struct Options {
    profile::Profile profile;
    profile::Launch launch;
    std::optional<sim::Protocol> protocol;  ///< Only this one.
    std::int64_t element_size = 4;
    planners::FixedPacing pacing;
    sim::ModelKind model = sim::ModelKind::link;
    sim::Conditions conditions;
    std::shared_ptr<profile::KnownCommunicators> communicators = nullptr;  ///< Of other machines as well; may be null.
  };

  /// All must outlive the runs.
  ProfiledRuns(const Topology& topology, const planners::Candidates& candidates, const Options& options);
  /// "auto": the fastest of all candidates but NCCL's. "nccl": what NCCL would pick of its own. Else the candidate of
  /// that name. Errors: unsupported when there is none, or none that the profile has costs for.
  Result<ProfiledRun> run(const std::string& algorithm, Bytes size);

  /// A candidate in a setting that it ran in, cut so, at any size. Errors: those of the simulation; unsupported where
  /// it never ran in that.
  Result<sim::Report> run_in(const profile::CostedNetwork& setting, const planners::Candidate& candidate, Bytes size,
                             const Pacing& pacing);

  /// All but NCCL's own.
  [[nodiscard]] bool competes(const planners::Candidate& candidate) const override;
  /// Software adds to every hop, so that fewer of them may win whatever loads say.
  [[nodiscard]] bool may_gain(const planners::Candidate&, Bytes) const override { return true; }
  /// A network's links are no faster under a profile than they are.
  double floor(const planners::Candidate& candidate, Bytes size) override;
  Result<double> min_time(const planners::Candidate& candidate, Bytes size) override;
  double expected_time(const planners::Candidate& candidate, Bytes size) override;
  /// With the protocol that takes least.
  Result<void> run(planners::Trial& trial, Bytes size, const std::optional<Picoseconds>& best) override;

 private:
  /// A candidate with a protocol.
  struct Pair {
    const planners::Candidate* candidate = nullptr;
    profile::Shape shape = profile::Shape::ring;
    sim::Protocol protocol = sim::Protocol::simple;
    const profile::ProtocolCosts* way = nullptr;
  };
  /// The same, ready to run on so many channels.
  struct Option {
    Pair pair;
    std::uint32_t channels = 1;
    const profile::CostedNetwork* setting = nullptr;
    const planners::ChunkModel* chunks = nullptr;
    std::once_flag making;
    std::optional<Result<CandidateSimulator>> simulator;  ///< Made by whoever runs it first.
  };
  /// What is known of a candidate's chunks in a setting, whatever its launch takes. Made by whoever asks first.
  struct KnownChunks {
    std::once_flag making;
    std::optional<planners::ChunkModel> model;
  };
  /// How long the software that picks says that a pair takes.
  struct Pick {
    Pair pair;
    double seconds = 0;
  };

  [[nodiscard]] std::vector<Pair> pairs_of(const planners::Candidate& candidate) const;
  Result<Option*> make_ready(const Pair& pair, Bytes size);
  const Result<CandidateSimulator>& find_simulator(Option& option);
  Result<std::vector<Option*>> make_all_ready(const std::vector<Pair>& pairs, Bytes size);
  Result<const profile::CostedNetwork*> find_setting(const Pair& pair, std::uint32_t channels, std::uint32_t started);
  [[nodiscard]] sim::Options options_of(const Option& option, Bytes size, const Pacing& pacing) const;
  [[nodiscard]] planners::RunCosts costs_of(const Option& option, Bytes size) const;
  KnownRuns::SimulateUntil simulator_of(Option& option, Bytes size, const Pacing& pacing);
  Result<sim::Report> simulate(Option& option, Bytes size, const Pacing& pacing);
  Result<std::optional<RunReport>> evaluate(Option& option, Bytes size, const Pacing& pacing, Picoseconds deadline);
  Result<double> counted_load(const planners::Candidate& candidate);
  Result<double> load_of_trees();
  const profile::NcclChoices* choices_of(CollectiveKind kind);
  Result<double> tuner_seconds_of(const Pair& pair, Bytes size);
  Result<std::vector<Pick>> picks_of(const std::vector<Pair>& pairs, Bytes size);
  static std::string why_first(const std::vector<Pick>& picks);
  Result<ProfiledRun> run_as_nccl(const std::vector<Pair>& pairs, Bytes size);
  Result<std::optional<RunReport>> run_against(Option& option, Bytes size, const planners::RunCosts& costs,
                                               const std::optional<Picoseconds>& best);
  Result<ProfiledRun> run_fastest(const planners::Candidate& candidate, Bytes size);

  const Topology& topology_;
  const planners::Candidates& candidates_;
  Options options_;
  std::size_t machines_ = 1;  ///< What NVLink joins is one.
  std::size_t hosts_ = 1;
  std::uint32_t channels_ = 1;  ///< That the software opens here.
  KnownRuns runs_;
  /// Of all below; what they hold is not changed once it is made, without it where that takes long.
  std::mutex mutex_;
  std::map<std::tuple<profile::Shape, sim::Protocol, std::uint32_t, std::uint32_t, bool, const Topology*>,
           std::unique_ptr<profile::CostedNetwork>>
      settings_;
  std::map<std::tuple<const planners::Candidate*, profile::Shape, sim::Protocol, std::uint32_t, std::uint32_t>, Option>
      made_;
  std::map<std::tuple<const planners::Candidate*, profile::Shape, sim::Protocol, std::uint32_t>, KnownChunks> chunks_;
  /// Of the options that differ in channels alone the first that ran: the others share what it worked out.
  std::map<std::tuple<const planners::Candidate*, profile::Shape, sim::Protocol>, Option*> first_to_run_;
  /// By size: with what a candidate ran fastest, and how it was cut there.
  std::map<std::pair<const planners::Candidate*, std::int64_t>, std::pair<Option*, Pacing>> fastest_;
  std::optional<Topology> counted_;  ///< As NCCL's tuner counts its links.
  profile::TunerView view_;          ///< But for the collective; where `counted_` is.
  std::once_flag connecting_;
  std::optional<planners::NcclCommunicator> communicator_;  ///< Where NCCL's search is known; made by `connecting_`.
  std::map<CollectiveKind, profile::NcclChoices> choices_;
  std::map<const planners::Candidate*, double> loads_;
};

}  // namespace espalier::forecast
