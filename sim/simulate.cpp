#include "sim/simulate.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "base/format_units.h"
#include "schedule/chunking.h"
#include "schedule/relays.h"
#include "schedule/verify/verify.h"
#include "sim/contention_free/contention_free.h"
#include "sim/core/history.h"
#include "sim/core/workload.h"
#include "sim/fair/fair_model.h"
#include "sim/link/link_model.h"

namespace espalier::sim {
namespace {

Timeline name_timeline(const Schedule& schedule, const Topology& topology, Bytes size) {
  Timeline timeline;
  timeline.title = std::string(to_string(schedule.collective.kind)) + ", " + schedule.algorithm + ", " +
                   format_size(size) + " on " + topology.name();
  timeline.origin = "simulation";
  for (std::size_t i = 0; i < end_count(schedule); ++i) {
    timeline.rank_names.push_back(end_name(schedule, topology, Rank(i)));
  }
  for (std::size_t i = 0; i < topology.link_count(); ++i) timeline.link_names.push_back(topology.link_name(LinkId(i)));
  return timeline;
}

tl::unexpected<Error> never_ends(const CompiledSchedule& compiled, const Conditions& conditions,
                                 const Topology& topology) {
  std::vector<bool> used(topology.link_count(), false);
  for (const std::uint32_t resource : compiled.steps()) {
    if (resource < used.size()) used[resource] = true;
  }
  std::string names;
  for (const RateChange& change : conditions.changes) {
    if (change.rate_ppm != 0 || !used[change.link.index()]) continue;
    names += (names.empty() ? "" : ", ") + topology.link_name(change.link);
  }
  return fail(ErrorCode::infeasible, "the run never ends: it waits for what died (" + names + ")",
              "plan without it (--without), or let it come back");
}

/// How a run ends: it does, it is given up, or it waits for what died.
enum class Outcome : std::uint8_t { over, late, never };

/// A compiled schedule that is run alone through a model's event loop.
template <class AnyModel>
class AloneRun {
 public:
  AloneRun(const CompiledSchedule& compiled, const Network& network, const Options& options, Chunking chunking)
      : model_(network, options.conditions),
        run_(model_.add_checked(compiled, std::move(chunking), options.payload_ppm, options.ahead)) {}

  [[nodiscard]] AnyModel& model() { return model_; }
  [[nodiscard]] Result<void> record() { return model_.record(run_); }
  [[nodiscard]] std::unique_ptr<History> take_history() { return model_.take_history(run_); }

  /// It is given up once it is late.
  void set_deadline(Picoseconds deadline, Picoseconds launch) {
    if (deadline != no_deadline) model_.set_deadline(run_, deadline.count, launch.count);
  }

  Outcome run(std::int64_t launch, std::size_t ranks) {
    if (model_.is_late()) return Outcome::late;
    model_.enter_all(run_, launch);
    std::vector<RankEnd> ended;
    while (!model_.is_idle()) {
      model_.advance(ended);
      if (model_.is_late()) return Outcome::late;
    }
    return ended.size() == ranks ? Outcome::over : Outcome::never;
  }

 private:
  AnyModel model_;
  RunId run_;
};

/// The launch, then the path; who was waited for.
void describe_path(CriticalPath path, std::span<const Blame> blames, const Network& network, const Topology& topology,
                   Picoseconds launch, Report& report) {
  if (launch.count > 0) {
    const Rank first = path.root.is_none() ? Rank(0) : path.root;
    report.path_parts.push_back({PathUse::launch, {}, topology.node_of(first), launch});
  }
  report.path_parts.insert(report.path_parts.end(), path.parts.begin(), path.parts.end());
  report.window_waits = path.window_waits;
  report.critical_path = std::move(path.steps);
  std::map<std::tuple<std::uint32_t, Rank, Rank>, std::int64_t> sums;
  for (const Blame& part : blames) sums[{part.resource, part.src, part.dst}] += part.time;
  for (const auto& [key, time] : sums) {
    const auto& [resource, src, dst] = key;
    report.shared.push_back({network.link(resource), network.node(resource), src, dst, {time}});
  }
  std::ranges::stable_sort(report.shared, [](const SharedTime& a, const SharedTime& b) { return a.time > b.time; });
}

bool records(const Options& options) { return options.record_timeline || options.record_critical_path; }

Report empty_report(const Options& options) {
  Report report;
  report.size = options.size;
  report.element_size = options.element_size;
  report.chunk = options.chunk;
  report.ahead = options.ahead;
  return report;
}

/// Runs a compiled schedule alone, with what is to be recorded; nothing where it is late.
template <class AnyModel>
Result<std::optional<Report>> run_alone(const CompiledSchedule& compiled, const Network& network,
                                        const Topology& topology, const Options& options, Picoseconds deadline,
                                        const Workload& work, const Chunking& chunking) {
  AloneRun<AnyModel> alone(compiled, network, options, chunking);
  if (records(options)) {
    if (auto recorded = alone.record(); !recorded) return tl::unexpected(recorded.error());
  }
  alone.set_deadline(deadline, options.launch);
  const std::size_t ranks = compiled.schedule().collective.rank_count;
  switch (alone.run(options.launch.count, ranks)) {
    case Outcome::late: return std::nullopt;
    case Outcome::never: return never_ends(compiled, options.conditions, topology);
    case Outcome::over: break;
  }
  Report report = empty_report(options);
  const AnyModel& model = alone.model();
  ESPALIER_CHECK(model.events() == work.steps, "every chunk passes every step of its path once");
  report.elapsed = {std::max(model.elapsed(), options.launch.count)};
  report.events = model.events();
  report.links = model.links();
  if (!records(options)) return report;
  const auto history = alone.take_history();
  if (options.record_timeline) {
    report.timeline = name_timeline(compiled.schedule(), topology, options.size);
    report.timeline->spans = make_spans(*history);
  }
  if (!options.record_critical_path) return report;
  CriticalPath path = find_critical_path(*history);
  std::vector<Blame> blames;
  if (options.record_sharing && !path.probes.empty()) {
    AloneRun<AnyModel> again(compiled, network, options, chunking);
    again.model().probe(path.probes);
    again.run(options.launch.count, ranks);
    blames = again.model().blames();
    settle_waits(path, blames, network, is_disturbed(options.conditions));
  }
  describe_path(std::move(path), blames, network, topology, options.launch, report);
  return report;
}

}  // namespace

Result<void> check_options(const Options& options, const Topology& topology) {
  if (options.launch.count < 0 || options.launch.count > latest_entry) {
    return fail(ErrorCode::invalid_input, "the launch takes less than nothing or more than 26 days",
                "give the time from the call until the first byte can leave");
  }
  return check_conditions(options.conditions, topology);
}

Result<void> check_engines(const CopyEngines& engines) {
  if (engines.message.count < 0 || engines.message.count > latest_entry) {
    return fail(ErrorCode::invalid_input, "a message takes less than nothing or more than 26 days",
                "give the time that a rank's processor spends on one");
  }
  if (engines.per_rank <= max_copy_engines && engines.rate.bytes_per_second >= 0) return {};
  return fail(ErrorCode::invalid_input,
              "copy engines past " + std::to_string(max_copy_engines) + " or of negative rate",
              "give how many chunks a rank can send at once");
}

struct Simulator::Prepared {
  const Schedule& schedule;
  const Topology& topology;
  Network network;
  std::shared_ptr<const CompiledSchedule> compiled;
  CopyEngines engines;
};

Simulator::Simulator(std::unique_ptr<const Prepared> prepared) : prepared_(std::move(prepared)) {}
Simulator::Simulator(Simulator&&) noexcept = default;
Simulator& Simulator::operator=(Simulator&&) noexcept = default;
Simulator::~Simulator() = default;

Result<Simulator> Simulator::make(const Schedule& schedule, const Topology& topology, const CopyEngines& engines) {
  const std::string& name = schedule.algorithm;
  const auto verified = require_verified(schedule, topology, "the schedule" + (name.empty() ? "" : " by " + name));
  if (!verified) return tl::unexpected(verified.error());
  return make_unverified(schedule, topology, engines);
}

Result<Simulator> Simulator::make_unverified(const Schedule& schedule, const Topology& topology,
                                             const CopyEngines& engines, const Parts& places) {
  if (auto checked = check_engines(engines); !checked) return tl::unexpected(checked.error());
  Network network(topology, engines);
  auto compiled = CompiledSchedule::make_unverified(schedule, topology, network, places);
  if (!compiled) return tl::unexpected(compiled.error());
  auto shared = std::make_shared<const CompiledSchedule>(std::move(*compiled));
  return Simulator(std::unique_ptr<const Prepared>(
      new Prepared{schedule, topology, std::move(network), std::move(shared), engines}));
}

namespace {

/// Whether a schedule's routes pass the same resources and cost as much per message on two networks.
bool have_same_paths(const Topology& one, const Topology& other) {
  const auto is_same_link = [](const Link& a, const Link& b) {
    return a.tail == b.tail && a.head == b.head && a.overhead == b.overhead;
  };
  const auto is_same_node = [](const Node& a, const Node& b) {
    return a.is_rank == b.is_rank && a.host == b.host &&
           (a.bandwidth.bytes_per_second == 0) == (b.bandwidth.bytes_per_second == 0) &&
           (a.reduce_bandwidth.bytes_per_second == 0) == (b.reduce_bandwidth.bytes_per_second == 0);
  };
  return std::ranges::equal(one.links(), other.links(), is_same_link) &&
         std::ranges::equal(one.nodes(), other.nodes(), is_same_node);
}

/// Whether ranks have the same processors and engines, whatever these take.
bool have_same_ends(const CopyEngines& one, const CopyEngines& other) {
  return one.per_rank == other.per_rank && one.processors_per_host == other.processors_per_host &&
         (one.message.count == 0) == (other.message.count == 0);
}

}  // namespace

Result<Simulator> Simulator::on(const Topology& topology, const CopyEngines& engines) const {
  const Prepared& known = *prepared_;
  if (!have_same_paths(known.topology, topology) || !have_same_ends(known.engines, engines)) {
    return make_unverified(known.schedule, topology, engines);
  }
  if (auto checked = check_engines(engines); !checked) return tl::unexpected(checked.error());
  return Simulator(std::unique_ptr<const Prepared>(
      new Prepared{known.schedule, topology, Network(topology, engines), known.compiled, engines}));
}

Result<Report> Simulator::run(const Options& options) const {
  auto report = simulate(options, no_deadline);
  if (!report) return tl::unexpected(report.error());
  ESPALIER_CHECK(report->has_value(), "without a deadline nothing is late");
  return **std::move(report);
}

Result<std::optional<Report>> Simulator::run_until(const Options& options, Picoseconds deadline) const {
  ESPALIER_CHECK(!records(options), "what is recorded has no deadline");
  return simulate(options, deadline);
}

Result<std::optional<Report>> Simulator::simulate(const Options& options, Picoseconds deadline) const {
  const auto& [schedule, topology, network, shared, engines] = *prepared_;
  const CompiledSchedule& compiled = *shared;
  if (auto checked = check_options(options, topology); !checked) return tl::unexpected(checked.error());
  auto chunking = cut_into_chunks(
      schedule, {options.size, options.chunk, options.element_size, options.payload_ppm, options.ahead});
  if (!chunking) return tl::unexpected(chunking.error());
  const std::uint64_t max_steps = records(options) ? max_recorded_steps : max_chunk_steps;
  const auto work = check_workload(compiled, network, *chunking, options.payload_ppm, max_steps);
  if (!work) return tl::unexpected(work.error());
  if (auto fits = WorkLimit(options.conditions).add(*work); !fits) return tl::unexpected(fits.error());

  if (!records(options) && !compiled.shares_resources()) {
    const auto run = options.model == ModelKind::link ? run_contention_free : run_fair_contention_free;
    auto totals = run(compiled, *chunking, network, options.conditions, options.payload_ppm, options.launch.count);
    if (totals) {
      Report report = empty_report(options);
      report.elapsed = {std::max(totals->elapsed, options.launch.count)};
      report.events = totals->events;
      report.links = std::move(totals->links);
      return report;
    }
  }
  const auto run = options.model == ModelKind::fair ? run_alone<FairModel> : run_alone<LinkModel>;
  return run(compiled, network, topology, options, deadline, *work, *chunking);
}

Result<Report> simulate(const Schedule& schedule, const Topology& topology, const Options& options,
                        const CopyEngines& engines) {
  const auto simulator = Simulator::make(schedule, topology, engines);
  if (!simulator) return tl::unexpected(simulator.error());
  return simulator->run(options);
}

Result<Report> simulate_unverified(const Schedule& schedule, const Topology& topology, const Options& options,
                                   const CopyEngines& engines) {
  const auto simulator = Simulator::make_unverified(schedule, topology, engines);
  if (!simulator) return tl::unexpected(simulator.error());
  return simulator->run(options);
}

Result<std::optional<Report>> simulate_unverified_until(Picoseconds deadline, const Schedule& schedule,
                                                        const Topology& topology, const Options& options) {
  const auto simulator = Simulator::make_unverified(schedule, topology);
  if (!simulator) return tl::unexpected(simulator.error());
  return simulator->run_until(options, deadline);
}

}  // namespace espalier::sim
