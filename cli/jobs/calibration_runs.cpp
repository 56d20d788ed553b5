#include "cli/jobs/calibration_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "base/counted.h"
#include "base/element.h"
#include "base/format_units.h"
#include "base/parallel.h"
#include "cli/flags/algorithm_flags.h"
#include "cli/flags/collective_flags.h"
#include "cli/jobs/plan_shown.h"
#include "compare/compare_results.h"
#include "schedule/by_algorithm.h"
#include "schedule/layout.h"
#include "sim/simulate.h"

namespace espalier::cli {
namespace {

constexpr std::int64_t default_element_size = 4;

/// What was planned for one collective, with the chunk sizes that `simulate` would choose.
struct Planned {
  std::shared_ptr<const Schedule> schedule;
  std::shared_ptr<const planners::ChunkModel> chunks;
};

/// nccl-tests has names of its own for a few types; all that matters here is their size.
std::int64_t element_size_of(const std::string& type) {
  if (type.starts_with("fp8") || type.starts_with("f8")) return 1;
  const auto known = parse_element_type(type);
  return known ? size_of(*known) : default_element_size;
}

class RunPlanner {
 public:
  RunPlanner(const Console& console, const Topology& topology, const CalibrationHints& hints)
      : console_(console), topology_(topology), hints_(hints) {}

  Result<void> add(const compare::Measurements& file, const Timeline* timeline) {
    for (const compare::Measurement& row : file.rows) {
      const std::string place = row.line > 0 ? fmt::format("{}:{}", file.file, row.line) : file.file;
      if (row.wrong.value_or(0) != 0) {
        runs_.notes.push_back(place + ": left out, its data was wrong");
        continue;
      }
      if (row.size < hints_.smallest || row.size > hints_.largest || row.size.count == 0 || row.seconds <= 0) {
        ++out_of_range_;
        continue;
      }
      if (auto added = add_row(file, row, place, timeline); !added) return added;
    }
    return {};
  }

  CalibrationRuns take() {
    if (out_of_range_ > 0) {
      runs_.notes.push_back(
          fmt::format("left out: {} without bytes or outside -b and -e", counted(out_of_range_, "run")));
    }
    return std::move(runs_);
  }

 private:
  Result<void> add_row(const compare::Measurements& file, const compare::Measurement& row, const std::string& place,
                       const Timeline* timeline) {
    if (!compare::may_be_of(row, topology_.rank_count()) && timeline == nullptr) {
      return fail(ErrorCode::invalid_input,
                  fmt::format("{}: a run of {} ranks, and {} has {}", place, compare::describe_ranks(row),
                              topology_.name(), topology_.rank_count()),
                  "give the topology that it ran on; --ranks chooses some of its nodes");
    }
    const auto planned = find_plan(file, row, place);
    if (!planned) return tl::unexpected(planned.error());
    CalibrationRun run{{}, planned->schedule, row.size, row.chunk, element_size_of(row.type), row.seconds};
    run.size = {row.size.count / run.element_size * run.element_size};
    if (run.size.count == 0) return {};
    if (timeline != nullptr) run.chunk = chunk_of(*timeline, run);
    if (run.chunk.count == 0) run.chunk = hints_.chunk.value_or(usual_chunk(*planned->chunks, run.size));
    run.chunk = std::max(run.chunk, Bytes{run.element_size});
    run.label = fmt::format("{}{}, {} ({})", to_string(run.schedule->collective.kind),
                            by_algorithm(run.schedule->algorithm), format_size(row.size), place);
    runs_.runs.push_back(std::move(run));
    return {};
  }

  /// What the loads suggest, unless that makes so many chunks that hundreds of simulations take minutes.
  [[nodiscard]] static Bytes usual_chunk(const planners::ChunkModel& chunks, Bytes size) {
    constexpr double max_chunk_hops = 250'000;
    return std::max(chunks.choose(size), chunks.smallest_within(size, max_chunk_hops));
  }

  /// The chunk that cuts the longest transfer into as many pieces as the timeline shows.
  [[nodiscard]] static Bytes chunk_of(const Timeline& timeline, const CalibrationRun& run) {
    std::int64_t count = 1;
    for (const Span& span : timeline.spans) count = std::max(count, std::int64_t{span.chunk} + 1);
    const auto layout = Layout::make(*run.schedule, run.size, run.element_size);
    if (!layout) return {};
    std::int64_t longest = 0;
    for (const Transfer& transfer : run.schedule->transfers) {
      longest = std::max(longest, layout->range(transfer).length());
    }
    const std::int64_t bytes = (longest + count - 1) / count;
    return {(bytes + run.element_size - 1) / run.element_size * run.element_size};
  }

  Result<Planned> find_plan(const compare::Measurements& file, const compare::Measurement& row,
                            const std::string& place) {
    if (hints_.plan) return plan_of_all(row, place);
    std::string algorithm = row.algorithm == "auto" && !row.planner.empty() ? row.planner : row.algorithm;
    if (algorithm.empty()) algorithm = hints_.algorithm;
    if (algorithm.empty()) {
      return fail(ErrorCode::invalid_input, place + ": the file does not say which algorithm ran",
                  "name it with -a ring, or give the plan that ran with --plan");
    }
    if (row.collective.empty()) {
      return fail(ErrorCode::invalid_input, place + ": the file does not say which collective ran",
                  "name it with --collective");
    }
    const auto key = std::tuple(row.collective, row.root, fmt::format("{}", fmt::join(file.shares, ",")), algorithm);
    if (const auto known = planned_.find(key); known != planned_.end()) return known->second;
    auto planned = plan(CollectiveFlags{row.collective, row.root, ""}, file.shares, algorithm, place);
    if (planned) planned_.emplace(key, *planned);
    return planned;
  }

  Result<Planned> plan(CollectiveFlags flags, const std::vector<std::int64_t>& shares, const std::string& algorithm,
                       const std::string& place) {
    const auto within = [&](const Error& error) {
      return tl::unexpected(Error{error.code, place + ": " + error.message, error.help});
    };
    const auto kind = parse_collective(flags.name);
    if (!kind) return within(kind.error());
    if (!has_root(*kind)) flags.root.clear();
    auto collective = flags.resolve(topology_);
    if (collective && !shares.empty()) {
      const auto root = has_root(*kind) ? std::optional(collective->root) : std::nullopt;
      collective = make_collective(*kind, topology_.rank_count(), root, shares);
    }
    if (!collective) return within(collective.error());
    // A file may name what `auto` took: a variant of the packing, say "packing/h2t3".
    if (algorithm != "auto" && !algorithm.starts_with("packing/")) {
      if (const auto known = planners::find_planner(algorithm); !known) return within(known.error());
    }
    auto candidates = plan_shown(console_, {.machine = &topology_,
                                            .collective = *collective,
                                            .algorithms = {algorithm},
                                            .forms = forecast::PlanForms::schedules});
    if (!candidates) return within(candidates.error());
    for (planners::Candidate& candidate : candidates->made) {
      if (candidate.planner != algorithm) continue;
      return Planned{std::make_shared<const Schedule>(std::move(candidate.schedule)),
                     std::make_shared<const planners::ChunkModel>(candidate.chunks)};
    }
    if (!candidates->refused.empty() && algorithm != "auto") return within(candidates->refused.front().error);
    return fail(ErrorCode::invalid_input,
                fmt::format("{}: no plan of {} is called '{}' on this topology", place, flags.name, algorithm),
                "give the plan that ran with --plan");
  }

  Result<Planned> plan_of_all(const compare::Measurement& row, const std::string& place) {
    const Schedule& plan = *hints_.plan;
    if (!row.collective.empty() && row.collective != to_string(plan.collective.kind)) {
      return fail(ErrorCode::invalid_input,
                  fmt::format("{}: a run of {}, and the plan is one of {}", place, row.collective,
                              to_string(plan.collective.kind)),
                  "give only runs of the plan, or leave --plan out");
    }
    if (!given_.schedule) {
      given_.schedule = std::make_shared<const Schedule>(plan);
      given_.chunks = std::make_shared<const planners::ChunkModel>(plan, topology_);
    }
    return given_;
  }

  const Console& console_;
  const Topology& topology_;
  const CalibrationHints& hints_;
  std::map<std::tuple<std::string, std::string, std::string, std::string>, Planned> planned_;
  Planned given_;
  CalibrationRuns runs_;
  std::size_t out_of_range_ = 0;
};

}  // namespace

std::vector<double> CalibrationRuns::seconds() const {
  std::vector<double> times;
  for (const CalibrationRun& run : runs) times.push_back(run.seconds);
  return times;
}

bool CalibrationRuns::reduces() const {
  return std::ranges::any_of(
      runs, [](const CalibrationRun& run) { return espalier::reduces(run.schedule->collective.kind); });
}

Result<CalibrationRuns> plan_runs(const Console& console, const Topology& topology,
                                  const std::vector<std::pair<std::string, compare::RunFile>>& files,
                                  const CalibrationHints& hints) {
  RunPlanner planner(console, topology, hints);
  for (const auto& [path, file] : files) {
    const auto* timeline = std::get_if<Timeline>(&file);
    const auto rows = timeline == nullptr ? Result<compare::Measurements>(std::get<compare::Measurements>(file))
                                          : compare::measurements_of(*timeline, path);
    if (!rows) return tl::unexpected(rows.error());
    if (auto added = planner.add(*rows, timeline); !added) return tl::unexpected(added.error());
  }
  CalibrationRuns runs = planner.take();
  if (runs.runs.empty()) return fail(ErrorCode::invalid_input, "there is no run to calibrate from", "widen -b and -e");
  return runs;
}

namespace {

/// The simulators of all schedules, made ready once: each call only lays its numbers on them.
class RunSimulators {
 public:
  explicit RunSimulators(const CalibrationRuns& runs) : runs_(runs) {}

  Result<std::vector<double>> times(const Topology& topology, std::span<const std::size_t> which) {
    std::map<Key, std::size_t> index;
    std::vector<const CalibrationRun*> distinct;
    for (const std::size_t at : which) {
      const CalibrationRun& run = runs_.runs[at];
      if (index.try_emplace(key_of(run), distinct.size()).second) distinct.push_back(&run);
    }
    std::map<const Schedule*, sim::Simulator> simulators;
    for (const CalibrationRun* run : distinct) {
      if (auto made = add_simulator(*run->schedule, topology, simulators); !made) return tl::unexpected(made.error());
    }
    std::vector<Result<double>> seconds(distinct.size(), 0.0);
    run_parallel(distinct.size(), usable_threads(), [&](std::size_t i) {
      const std::size_t at = distinct.size() - 1 - i;  // Large messages are mostly last, and take longest.
      seconds[at] = simulate(simulators.at(distinct[at]->schedule.get()), *distinct[at]);
    });
    std::vector<double> times;
    for (const std::size_t at : which) {
      const Result<double>& time = seconds[index.at(key_of(runs_.runs[at]))];
      if (!time) return tl::unexpected(time.error());
      times.push_back(*time);
    }
    return times;
  }

 private:
  using Key = std::tuple<const Schedule*, std::int64_t, std::int64_t, std::int64_t>;
  static Key key_of(const CalibrationRun& run) {
    return {run.schedule.get(), run.size.count, run.chunk.count, run.element_size};
  }

  Result<void> add_simulator(const Schedule& schedule, const Topology& topology,
                             std::map<const Schedule*, sim::Simulator>& simulators) {
    if (simulators.contains(&schedule)) return {};
    auto ready = ready_.find(&schedule);
    if (ready == ready_.end()) {
      const auto own = std::make_shared<const Topology>(topology);
      auto made = sim::Simulator::make_unverified(schedule, *own);
      if (!made) return tl::unexpected(made.error());
      ready = ready_.emplace(&schedule, std::pair(own, std::move(*made))).first;
    }
    auto on = ready->second.second.on(topology);
    if (!on) return tl::unexpected(on.error());
    simulators.emplace(&schedule, std::move(*on));
    return {};
  }

  static Result<double> simulate(const sim::Simulator& simulator, const CalibrationRun& run) {
    sim::Options options;
    options.size = run.size;
    options.chunk = run.chunk;
    options.element_size = run.element_size;
    const auto report = simulator.run(options);
    if (!report) return tl::unexpected(report.error());
    return report->elapsed.seconds();
  }

  const CalibrationRuns& runs_;
  std::map<const Schedule*, std::pair<std::shared_ptr<const Topology>, sim::Simulator>> ready_;
};

}  // namespace

compare::PredictTimes simulated_times(const CalibrationRuns& runs) {
  return
      [simulators = std::make_shared<RunSimulators>(runs)](
          const Topology& topology, std::span<const std::size_t> which) { return simulators->times(topology, which); };
}

}  // namespace espalier::cli
