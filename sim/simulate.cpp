#include "sim/simulate.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/format_units.h"
#include "schedule/chunking.h"
#include "schedule/relays.h"
#include "sim/fair_history.h"
#include "sim/fair_model.h"
#include "sim/fair_sharing.h"
#include "sim/history.h"
#include "sim/link_model.h"
#include "sim/unshared.h"
#include "sim/workload.h"

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

tl::unexpected<Error> never_ends(const Program& program, const Conditions& conditions, const Topology& topology) {
  std::vector<bool> used(topology.link_count(), false);
  for (const std::uint32_t resource : program.steps()) {
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

/// Runs a program alone through a model's event loop. False when it never ends.
template <class AnyModel>
bool run_alone(const Program& program, const Network& network, const Options& options, std::uint64_t steps,
               Chunking chunking, History* history, Report& report) {
  AnyModel model(network, options.conditions);
  const RunId run = model.add_checked(program, std::move(chunking), options.payload_ppm, history);
  const std::uint32_t ranks = program.schedule().collective.rank_count;
  model.enter_all(run, options.launch.count);
  std::vector<RankEnd> ended;
  while (model.next_time() != never) model.advance(ended);
  if (ended.size() != ranks) return false;
  ESPALIER_CHECK(model.events() == steps, "every chunk passes every step of its path once");
  report.elapsed = {std::max(model.elapsed(), options.launch.count)};
  report.events = model.events();
  report.links = model.links();
  return true;
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
  if (engines.per_rank <= max_copy_engines && engines.rate.bytes_per_second >= 0) return {};
  return fail(ErrorCode::invalid_input,
              "copy engines past " + std::to_string(max_copy_engines) + " or of negative rate",
              "give how many chunks a rank can send at once");
}

struct Simulator::Prepared {
  const Schedule& schedule;
  const Topology& topology;
  Network network;
  Program program;
};

Simulator::Simulator(std::unique_ptr<const Prepared> prepared) : prepared_(std::move(prepared)) {}
Simulator::Simulator(Simulator&&) noexcept = default;
Simulator& Simulator::operator=(Simulator&&) noexcept = default;
Simulator::~Simulator() = default;

Result<Simulator> Simulator::make(const Schedule& schedule, const Topology& topology, const CopyEngines& engines) {
  if (auto checked = check_engines(engines); !checked) return tl::unexpected(checked.error());
  Network network(topology, engines);
  auto program = Program::make(schedule, topology, network);
  if (!program) return tl::unexpected(program.error());
  return Simulator(
      std::unique_ptr<const Prepared>(new Prepared{schedule, topology, std::move(network), std::move(*program)}));
}

Result<Report> Simulator::run(const Options& options) const {
  const auto& [schedule, topology, network, program] = *prepared_;
  if (auto checked = check_options(options, topology); !checked) return tl::unexpected(checked.error());
  auto chunking = cut_into_chunks(schedule, {options.size, options.chunk, options.element_size, options.payload_ppm});
  if (!chunking) return tl::unexpected(chunking.error());
  const bool records = options.record_timeline || options.record_critical_path;
  const auto work =
      check_workload(program, network, *chunking, options.payload_ppm, records ? max_recorded_steps : max_chunk_steps);
  if (!work) return tl::unexpected(work.error());
  if (auto fits = WorkLimit(options.conditions).add(*work); !fits) return tl::unexpected(fits.error());

  Report report;
  report.size = options.size;
  report.chunk = options.chunk;
  if (!records && !program.shares_resources()) {
    const auto run = options.model == ModelKind::link ? run_unshared : run_fair_unshared;
    auto totals = run(program, *chunking, network, options.conditions, options.payload_ppm, options.launch.count);
    if (totals) {
      report.elapsed = {std::max(totals->elapsed, options.launch.count)};
      report.events = totals->events;
      report.links = std::move(totals->links);
      return report;
    }
  }
  const auto history = records ? std::make_unique<History>(program, *chunking, network) : nullptr;
  const bool is_fair = options.model == ModelKind::fair;
  const bool ends =
      is_fair ? run_alone<FairModel>(program, network, options, work->steps, *chunking, history.get(), report)
              : run_alone<LinkModel>(program, network, options, work->steps, *chunking, history.get(), report);
  if (!ends) return never_ends(program, options.conditions, topology);
  if (options.record_timeline) {
    report.timeline = name_timeline(schedule, topology, options.size);
    report.timeline->spans = is_fair ? make_fair_spans(program, *chunking, network, *history)
                                     : make_spans(program, *chunking, network, *history);
  }
  if (options.record_critical_path) {
    report.critical_path = is_fair ? find_fair_critical_path(program, *chunking, network, *history, options.payload_ppm)
                                   : find_critical_path(program, *chunking, network, *history);
    if (is_fair && options.record_sharing) {
      report.shared =
          find_shared_times(program, *chunking, network, options.conditions, *history, report.critical_path);
    }
  }
  return report;
}

Result<Report> simulate(const Schedule& schedule, const Topology& topology, const Options& options,
                        const CopyEngines& engines) {
  const auto simulator = Simulator::make(schedule, topology, engines);
  if (!simulator) return tl::unexpected(simulator.error());
  return simulator->run(options);
}

}  // namespace espalier::sim
