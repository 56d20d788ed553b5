#include "advisor/run_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/format_units.h"
#include "sim/critical_path/single_changes.h"

namespace espalier::advisor {
namespace {

/// A run under change: starts each time from the one that was simulated.
class Experiments {
 public:
  Experiments(const Schedule& schedule, const Topology& topology, const sim::Options& options,
              const sim::CopyEngines& engines)
      : schedule_(schedule), topology_(topology), options_(options), engines_(engines) {
    options_.record_critical_path = options_.record_sharing = false;
  }

  void change_topology(const sim::SingleChange& change) {
    const auto changed = change.apply(topology_);
    if (changed) add(to_string(change.kind), change.what, sim::simulate(schedule_, *changed, options_, engines_));
  }

  template <class Change>
  void change_options(const char* kind, const std::string& what, const Change& change) {
    sim::Options changed = options_;
    change(changed);
    add(kind, what, sim::simulate(schedule_, topology_, changed, engines_));
  }

  void change_engines(const sim::CopyEngines& engines, const std::string& what) {
    add("engines", what, sim::simulate(schedule_, topology_, options_, engines));
  }

  void change_chunk(Bytes chunk, Bytes before) {
    if (chunk.count < options_.element_size || chunk == before) return;
    change_options("chunk", fmt::format("chunks of {} instead of {}", format_size(chunk), format_size(before)),
                   [&](sim::Options& changed) { changed.chunk = chunk; });
  }

  void change_algorithm(const planners::Candidate& candidate) {
    const auto simulator = sim::Simulator::make(candidate.schedule, topology_, engines_);
    if (!simulator) return;
    std::optional<sim::Report> best;
    const auto run = [&](const Cut& cut) -> Result<RunReport> {
      sim::Options changed = options_;
      changed.set(cut);
      auto report = simulator->run(changed);
      if (!report) return tl::unexpected(report.error());
      if (!best || report->elapsed < best->elapsed) best = *report;
      return static_cast<const RunReport&>(*report);
    };
    if (!planners::find_best_cut(candidate.chunks, options_.size, {}, run) || !best) return;
    add("algorithm", fmt::format("the schedule of {}", candidate.planner), std::move(*best));
  }

  std::vector<Improvement> take() && {
    std::ranges::stable_sort(improvements_, {}, &Improvement::elapsed);
    return std::move(improvements_);
  }

 private:
  void add(std::string_view kind, std::string change, const Result<sim::Report>& report) {
    if (!report) return;
    improvements_.push_back({std::move(change), std::string(kind), report->elapsed, report->chunk});
  }

  const Schedule& schedule_;
  const Topology& topology_;
  sim::Options options_;
  sim::CopyEngines engines_;
  std::vector<Improvement> improvements_;
};

void try_circumstances(Experiments& experiments, const sim::Options& options, const sim::CopyEngines& engines) {
  if (options.launch.count > 0) {
    experiments.change_options("launch", "no launch cost", [](sim::Options& changed) { changed.launch = {}; });
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

Result<RunLimits> find_run_limits(const Schedule& schedule, const Topology& topology, sim::Options options,
                                  std::span<const planners::Candidate> others, const sim::CopyEngines& engines) {
  options.record_timeline = false;
  options.record_critical_path = options.record_sharing = true;
  auto report = sim::simulate(schedule, topology, options, engines);
  if (!report) return tl::unexpected(report.error());
  RunLimits limits;
  limits.report = std::move(*report);
  limits.model = options.model;
  sim::PathTimes times(topology);
  for (const sim::PathPart& part : limits.report.path_parts) times.add(part);
  limits.path = times.shares();
  constexpr double nearly_always = 0.9;
  if (limits.report.elapsed.count == 0) return limits;
  limits.full = sim::busiest_links(limits.report, topology, topology.link_count());
  const LinkId busiest = limits.full.empty() ? LinkId() : limits.full.front().link;
  std::erase_if(limits.full, [](const sim::LinkShare& link) { return link.share <= nearly_always; });
  Experiments experiments(schedule, topology, options, engines);
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
    if (&other.schedule == &schedule || other.chunks.least_time(options.size) > limits.report.elapsed.seconds())
      continue;
    experiments.change_algorithm(other);
  }
  limits.improvements = std::move(experiments).take();
  return limits;
}

}  // namespace espalier::advisor
