#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "base/format_units.h"
#include "scenario/report/job_path.h"
#include "sim/critical_path/single_changes.h"

namespace espalier::scenario {
namespace {

/// A job under change: every change starts from what was run.
class Experiments {
 public:
  Experiments(const Job& job, const Topology& topology, const Disturbances& disturbances, const RunSettings& settings)
      : job_(job), topology_(topology), disturbances_(disturbances), settings_(settings) {
    settings_.compare_with_alone = false;
  }

  void change_topology(const sim::SingleChange& change) {
    auto changed = change.apply(topology_);
    if (!changed) return;
    add(change.what,
        [this, changed = *std::move(changed)] { return run_job(job_, changed, disturbances_, settings_); });
  }

  /// Requires: the job outlives the experiments.
  void change_job(const std::string& what, const Job& changed) {
    add(what, [this, &changed] { return run_job(changed, topology_, disturbances_, settings_); });
  }

  template <class Change>
  void change_disturbances(const std::string& what, const Change& change) {
    Disturbances changed = disturbances_;
    change(changed);
    add(what, [this, changed] { return run_job(job_, topology_, changed, settings_); });
  }

  template <class Change>
  void change_settings(const std::string& what, const Change& change) {
    RunSettings changed = settings_;
    change(changed);
    add(what, [this, changed] { return run_job(job_, topology_, disturbances_, changed); });
  }

  /// Makes them all; those that cannot be made are left out. Fastest first.
  [[nodiscard]] std::vector<JobImprovement> run(const OnChange& on_change) const {
    std::vector<JobImprovement> improvements;
    for (const auto& [change, run] : experiments_) {
      if (on_change) on_change(change, experiments_.size());
      if (const auto report = run()) improvements.push_back({change, report->elapsed});
    }
    std::ranges::stable_sort(improvements, {}, &JobImprovement::elapsed);
    return improvements;
  }

 private:
  void add(const std::string& change, std::function<Result<JobReport>()> run) {
    experiments_.emplace_back(change, std::move(run));
  }

  const Job& job_;
  const Topology& topology_;
  const Disturbances& disturbances_;
  RunSettings settings_;
  std::vector<std::pair<std::string, std::function<Result<JobReport>()>>> experiments_;
};

/// Every rank computes in half of its time, those that are slow for other reasons too.
void halve_compute(Disturbances& disturbances, std::size_t ranks) {
  constexpr std::int64_t half = 500'000;
  std::vector<Straggler> all;
  for (std::size_t i = 0; i < ranks; ++i) all.push_back({.rank = Rank(i), .compute_ppm = half, .start = {}});
  for (const Straggler& straggler : disturbances.stragglers) {
    all[straggler.rank.index()] = straggler;
    all[straggler.rank.index()].compute_ppm = std::max<std::int64_t>(straggler.compute_ppm / 2, 1);
  }
  disturbances.stragglers = std::move(all);
}

void try_without_disturbances(Experiments& experiments, const Disturbances& disturbances) {
  if (!disturbances.stragglers.empty()) {
    experiments.change_disturbances("no stragglers", [](Disturbances& changed) { changed.stragglers.clear(); });
  }
  if (!disturbances.background.empty()) {
    experiments.change_disturbances("no background traffic", [](Disturbances& changed) { changed.background.clear(); });
  }
  if (disturbances.conditions.jitter_ppm > 0 || disturbances.compute_jitter_ppm > 0) {
    experiments.change_disturbances(
        "no jitter", [](Disturbances& changed) { changed.conditions.jitter_ppm = changed.compute_jitter_ppm = 0; });
  }
  if (!disturbances.conditions.changes.empty()) {
    experiments.change_disturbances("all links at their rates all the time",
                                    [](Disturbances& changed) { changed.conditions.changes.clear(); });
  }
}

/// Steps of the path, with those inside calls.
std::size_t count_steps(const JobPath& path) {
  std::size_t count = 0;
  for (const JobStep& step : path.steps) count += step.use == JobUse::call ? path.calls.at(step.part).steps.size() : 1;
  return count;
}

void try_chunks(Experiments& experiments, Bytes chunk) {
  if (chunk.count == 0) return;
  for (const Bytes other : {Bytes{chunk.count / 2}, Bytes{chunk.count * 2}}) {
    if (other.count == 0 || other > max_message_size) continue;
    experiments.change_settings(fmt::format("chunks of {} instead of {}", format_size(other), format_size(chunk)),
                                [&](RunSettings& changed) { changed.chunk = other; });
  }
}

}  // namespace

Result<JobLimits> find_job_limits(const Job& job, const Topology& topology, const Disturbances& disturbances,
                                  const RunSettings& settings, const OnChange& on_change,
                                  std::span<const std::pair<std::string, Job>> others) {
  RunSettings own = settings;
  own.compare_with_alone = true;
  auto explained = explain_job(job, topology, disturbances, own);
  if (!explained) return tl::unexpected(explained.error());
  JobLimits limits;
  limits.report = std::move(explained->report);
  limits.steps = count_steps(explained->path);
  limits.path = divide_job_path(job, topology, explained->path);
  limits.waits = explained->path.waits;
  constexpr double nearly_always = 0.9;
  limits.full = busiest_links(limits.report, topology.link_count());
  const LinkId busiest = limits.full.empty() ? LinkId() : limits.full.front().link;
  std::erase_if(limits.full, [](const LinkBusy& link) { return link.share <= nearly_always; });
  own.chunk = limits.report.chunk;  // so that one thing changes at a time
  Experiments experiments(job, topology, disturbances, own);
  sim::PathTimes times(topology);
  for (const auto& [part, path] : explained->path.calls) {
    for (const sim::PathPart& piece : path.parts) times.add(piece);
  }
  for (const sim::SingleChange& change : sim::suggest_changes(times.shares(), busiest, topology)) {
    experiments.change_topology(change);
  }
  if (std::ranges::any_of(limits.path, [](const JobShare& share) { return share.use == JobUse::compute; })) {
    experiments.change_disturbances("computing twice as fast",
                                    [&](Disturbances& changed) { halve_compute(changed, topology.rank_count()); });
  }
  if (settings.endpoints.launch.count > 0) {
    experiments.change_settings("no launch cost", [](RunSettings& changed) { changed.endpoints.launch = {}; });
  }
  try_chunks(experiments, limits.report.chunk);
  try_without_disturbances(experiments, disturbances);
  for (const auto& [what, other] : others) experiments.change_job(what, other);
  limits.improvements = experiments.run(on_change);
  return limits;
}

}  // namespace espalier::scenario
