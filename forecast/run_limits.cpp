#include "forecast/run_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "base/format_units.h"
#include "base/parallel.h"
#include "sim/critical_path/single_changes.h"

namespace espalier::forecast {
namespace {

/// A run under change: each experiment starts from the one that was simulated.
class Experiments {
 public:
  /// All but `options` and `engines` must outlive it.
  Experiments(const planners::Candidate& candidate, const CandidateSimulator& simulator, const Topology& topology,
              const sim::Options& options, const sim::CopyEngines& engines, CandidateRuns* known)
      : candidate_(candidate),
        simulator_(simulator),
        topology_(topology),
        options_(options),
        engines_(engines),
        known_(known) {
    options_.record_critical_path = options_.record_sharing = false;
  }

  void change_topology(const sim::SingleChange& change) {
    add(std::string(to_string(change.kind)), change.what, [this, change]() -> Found {
      const auto changed = change.apply(topology_);
      if (!changed) return tl::unexpected(changed.error());
      return simulate(*changed, options_, engines_);
    });
  }

  template <class Change>
  void change_options(const char* kind, std::string what, const Change& change) {
    sim::Options changed = options_;
    change(changed);
    add(kind, std::move(what), [this, changed] { return simulate(topology_, changed, engines_); });
  }

  void change_engines(const sim::CopyEngines& engines, std::string what) {
    add("engines", std::move(what), [this, engines] { return simulate(topology_, options_, engines); });
  }

  void change_chunk(Bytes chunk, Bytes before) {
    if (chunk.count < options_.element_size || chunk == before) return;
    add("chunk", fmt::format("chunks of {} instead of {}", format_size(chunk), format_size(before)),
        [this, chunk]() -> Found {
          if (known_ != nullptr) {
            return known_->evaluate(candidate_, options_.size, {chunk, options_.ahead}, no_deadline);
          }
          sim::Options changed = options_;
          changed.chunk = chunk;
          return simulate(topology_, changed, engines_);
        });
  }

  void change_algorithm(const planners::Candidate& other) {
    add("algorithm", fmt::format("the schedule of {}", other.planner), [this, &other]() -> Found {
      std::optional<Result<CandidateSimulator>> simulator;
      if (known_ == nullptr) simulator = CandidateSimulator::make(other, topology_, engines_);
      if (simulator && !*simulator) return tl::unexpected(simulator->error());
      return planners::find_best_pacing(other.chunks, options_.size, {},
                                        [&](const Pacing& pacing, Picoseconds deadline) -> Found {
                                          if (known_ != nullptr)
                                            return known_->evaluate(other, options_.size, pacing, deadline);
                                          sim::Options changed = options_;
                                          changed.set(pacing);
                                          return (*simulator)->run_until(changed, deadline);
                                        });
    });
  }

  /// Makes all experiments, so many at once. Those that cannot be made are left out; fastest first.
  [[nodiscard]] std::vector<Improvement> run(unsigned threads) const {
    std::vector<std::optional<Found>> found(experiments_.size());
    run_parallel(found.size(), threads, [&](std::size_t i) { found[i] = experiments_[i].run(); });
    std::vector<Improvement> improvements;
    for (std::size_t i = 0; i < found.size(); ++i) {
      const Found& report = *found[i];
      if (!report || !*report) continue;
      improvements.push_back({experiments_[i].what, experiments_[i].kind, (*report)->elapsed, (*report)->chunk});
    }
    std::ranges::stable_sort(improvements, {}, &Improvement::elapsed);
    return improvements;
  }

 private:
  /// What an experiment found: a run, or nothing where that was given up.
  using Found = Result<std::optional<RunReport>>;
  struct Experiment {
    std::string kind;
    std::string what;
    std::function<Found()> run;
  };

  [[nodiscard]] Found simulate(const Topology& topology, const sim::Options& options,
                               const sim::CopyEngines& engines) const {
    const auto changed = simulator_.on(topology, engines);
    if (!changed) return tl::unexpected(changed.error());
    return changed->run(options);
  }
  void add(std::string kind, std::string what, std::function<Found()> run) {
    experiments_.push_back({std::move(kind), std::move(what), std::move(run)});
  }

  const planners::Candidate& candidate_;
  const CandidateSimulator& simulator_;
  const Topology& topology_;
  sim::Options options_;
  sim::CopyEngines engines_;
  CandidateRuns* known_;  ///< May be null.
  std::vector<Experiment> experiments_;
};

void try_circumstances(Experiments& experiments, const sim::Options& options, const sim::CopyEngines& engines) {
  if (options.launch.count > 0) {
    experiments.change_options("launch", "no launch cost", [](sim::Options& changed) { changed.launch = {}; });
  }
  if (options.ahead > 0) {
    experiments.change_options("rounds", "senders any number of rounds ahead",
                               [](sim::Options& changed) { changed.ahead = 0; });
  }
  if (options.conditions.jitter_ppm > 0) {
    experiments.change_options("conditions", "no jitter",
                               [](sim::Options& changed) { changed.conditions.jitter_ppm = 0; });
  }
  if (!options.conditions.changes.empty()) {
    experiments.change_options("conditions", "all links at their rates all the time",
                               [](sim::Options& changed) { changed.conditions.changes.clear(); });
  }
  if (engines.per_rank == 0) return;
  sim::CopyEngines more = engines;
  more.per_rank = std::min(2 * engines.per_rank, sim::max_copy_engines);
  experiments.change_engines(more, fmt::format("{} copy engines instead of {}", more.per_rank, engines.per_rank));
}

}  // namespace

Result<RunLimits> find_run_limits(const planners::Candidate& candidate, const Topology& topology, sim::Options options,
                                  std::span<const planners::Candidate> others, const sim::CopyEngines& engines,
                                  unsigned threads, CandidateRuns* known) {
  const auto simulator = CandidateSimulator::make(candidate, topology, engines);
  if (!simulator) return tl::unexpected(simulator.error());
  options.record_timeline = false;
  options.record_critical_path = options.record_sharing = true;
  auto report = simulator->run(options);
  if (!report) return tl::unexpected(report.error());
  RunLimits limits;
  limits.report = std::move(*report);
  limits.model = options.model;
  sim::PathTimes times(topology);
  for (const sim::PathPart& part : limits.report.path_parts) times.add(part);
  limits.path = times.shares();
  constexpr double nearly_always = 0.9;
  if (limits.report.elapsed.count == 0) return limits;
  // Under a profile a repaired plan runs on the machine before, and reports the links that are left.
  if (limits.report.links.size() == topology.link_count()) {
    limits.full = sim::busiest_links(limits.report, topology, topology.link_count());
  }
  const LinkId busiest = limits.full.empty() ? LinkId() : limits.full.front().link;
  std::erase_if(limits.full, [](const sim::LinkShare& link) { return link.share <= nearly_always; });
  if (limits.path.empty()) return limits;
  Experiments experiments(candidate, *simulator, topology, options, engines, known);
  for (const sim::SingleChange& change : sim::suggest_changes(limits.path, busiest, topology)) {
    experiments.change_topology(change);
  }
  try_circumstances(experiments, options, engines);
  for (const std::int64_t factor : {4, 2}) {
    experiments.change_chunk({options.chunk.count / factor / options.element_size * options.element_size},
                             options.chunk);
    experiments.change_chunk({options.chunk.count * factor}, options.chunk);
  }
  for (const planners::Candidate& other : others) {
    // What needs longer at the least cannot help.
    if (&other == &candidate || other.chunks.min_time(options.size) > limits.report.elapsed.seconds()) continue;
    experiments.change_algorithm(other);
  }
  limits.improvements = experiments.run(threads);
  return limits;
}

}  // namespace espalier::forecast
