#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <tuple>
#include <vector>

#include "forecast/profiled_runs.h"
#include "planners/chooser.h"
#include "planners/ring/ring_walks.h"
#include "sim/contention_free/walk_ring.h"
#include "sim/simulate.h"
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
    std::optional<planners::WalkedRings> rings;  ///< Instead of a candidate, or beside it where all are chosen from.
    std::optional<Error> refusal;
    double seconds = 0;
  };
  /// A candidate ready to be simulated with some copy engines, made when it is first needed.
  struct Ready {
    std::once_flag once;
    std::optional<Result<sim::Simulator>> simulator;
  };
  /// What an algorithm runs at a size: "auto" chooses, and the cut is chosen for all.
  struct Taken {
    const planners::Candidate* candidate = nullptr;
    Cut cut;
  };
  /// It is decided once.
  struct Decision {
    std::once_flag once;
    std::optional<Result<Taken>> taken;
  };
  /// Algorithm, size, chunk or -1, model, protocol, copy engines.
  using DecisionKey = std::tuple<std::string, std::int64_t, std::int64_t, sim::ModelKind, std::string, std::uint32_t>;

  /// What runs under a profile share: chunk or -1, model, protocol, jitter, seed.
  using ProfiledKey = std::tuple<std::int64_t, sim::ModelKind, std::string, std::int32_t, std::uint64_t>;

  Result<void> try_open();
  Result<Figures> try_run(const Key& key);
  Result<Taken> find_taken(const Key& key, sim::ModelKind model);
  Result<Taken> decide(const Key& key, sim::ModelKind model);
  [[nodiscard]] Result<const planners::Candidate*> find_named(const std::string& algorithm) const;
  [[nodiscard]] std::optional<planners::WalkedRings> plan_walks() const;
  Result<sim::RingReport> walk(const planners::WalkedRings& rings, const Key& key) const;
  [[nodiscard]] sim::Circumstances circumstances_of(const Key& key, bool with_jitter) const;
  [[nodiscard]] sim::Options options_of(const Key& key, const Cut& cut) const;
  Result<const sim::Simulator*> find_simulator(const Taken& taken, const Key& key);
  Result<sim::Report> simulate(const Taken& taken, const Key& key, sim::ModelKind model);
  [[nodiscard]] bool has_profile() const { return spec_.machines[unit_.machine].costs != nullptr; }
  forecast::ProfiledRuns& find_profiled(const Key& key, sim::ModelKind model);
  Result<sim::Report> run_profiled(const Key& key, sim::ModelKind model, std::string& planner);
  [[nodiscard]] double planning_seconds(const std::string& algorithm) const;

  const Spec& spec_;
  const Unit& unit_;
  bool wants_auto_;
  std::optional<Error> trouble_;
  std::optional<Topology> topology_;
  Collective collective_;
  Bound bound_;
  std::vector<Planned> planned_;
  planners::Candidates candidates_;
  const planners::WalkedRings* rings_ = nullptr;  // what "ring" stands for, where it is walked
  std::map<std::pair<std::size_t, std::uint32_t>, std::unique_ptr<Ready>> ready_;  // by candidate and copy engines
  std::mutex mutex_;                                                               // of decisions_ and profiled_
  std::map<DecisionKey, std::unique_ptr<Decision>> decisions_;
  std::map<ProfiledKey, std::unique_ptr<forecast::ProfiledRuns>> profiled_;
};

}  // namespace espalier::sweep
