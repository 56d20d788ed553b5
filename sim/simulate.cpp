#include "sim/simulate.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/format_units.h"
#include "schedule/chunking.h"
#include "schedule/dependencies.h"
#include "schedule/relays.h"
#include "sim/history.h"
#include "sim/lanes.h"
#include "sim/link_model.h"
#include "sim/network.h"
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

Result<Chunking> check_options(const Schedule& schedule, const Options& options) {
  auto layout = Layout::make(schedule, options.size, options.element_size);
  if (!layout) return tl::unexpected(layout.error());
  if (options.chunk.count < options.element_size) {
    return fail(ErrorCode::invalid_input,
                "a chunk of " + std::to_string(options.chunk.count) + " bytes is smaller than an element of " +
                    std::to_string(options.element_size),
                "use chunks of at least one element");
  }
  // A count past 32 bits is past the limit of steps too, and stays so when it is cut off here.
  constexpr std::int64_t most = std::numeric_limits<std::uint32_t>::max();
  const std::int64_t count = std::min(chunk_count(schedule, *layout, options.chunk), most);
  return Chunking(std::move(*layout), count);
}

}  // namespace

struct Simulator::Prepared {
  const Schedule& schedule;
  const Topology& topology;
  Network network;
  Lanes lanes;
  Dependencies dependencies;
};

Simulator::Simulator(std::unique_ptr<const Prepared> prepared) : prepared_(std::move(prepared)) {}
Simulator::Simulator(Simulator&&) noexcept = default;
Simulator& Simulator::operator=(Simulator&&) noexcept = default;
Simulator::~Simulator() = default;

Result<Simulator> Simulator::make(const Schedule& schedule, const Topology& topology) {
  if (auto checked = check_transfers(schedule); !checked) return tl::unexpected(checked.error());
  auto network = Network::make(schedule, topology);
  if (!network) return tl::unexpected(network.error());
  return Simulator(std::unique_ptr<const Prepared>(
      new Prepared{schedule, topology, std::move(*network), make_lanes(schedule), Dependencies(schedule)}));
}

Result<Report> Simulator::run(const Options& options) const {
  const Schedule& schedule = prepared_->schedule;
  const Topology& topology = prepared_->topology;
  const auto chunking = check_options(schedule, options);
  if (!chunking) return tl::unexpected(chunking.error());
  Network network = prepared_->network;
  const bool records = options.record_timeline || options.record_critical_path;
  const auto steps = check_workload(schedule, *chunking, network, records ? max_recorded_steps : max_chunk_steps);
  if (!steps) return tl::unexpected(steps.error());

  const auto history = records ? std::make_unique<History>(schedule, *chunking, network) : nullptr;
  LinkModel model(schedule, *chunking, prepared_->dependencies, prepared_->lanes, network, history.get());
  model.run();
  ESPALIER_CHECK(model.events() == *steps, "every chunk passes every step of its path once");

  Report report;
  report.size = options.size;
  report.chunk = options.chunk;
  report.elapsed = {model.elapsed()};
  report.events = model.events();
  report.links.reserve(topology.link_count());
  for (std::size_t i = 0; i < topology.link_count(); ++i) {
    report.links.push_back({network.resources[i].bytes, {network.resources[i].busy}});
  }
  if (options.record_timeline) {
    report.timeline = name_timeline(schedule, topology, options.size);
    report.timeline->spans = make_spans(schedule, *chunking, network, *history);
  }
  if (options.record_critical_path) {
    report.critical_path = find_critical_path(schedule, *chunking, network, *history);
  }
  return report;
}

Result<Report> simulate(const Schedule& schedule, const Topology& topology, const Options& options) {
  const auto simulator = Simulator::make(schedule, topology);
  if (!simulator) return tl::unexpected(simulator.error());
  return simulator->run(options);
}

}  // namespace espalier::sim
