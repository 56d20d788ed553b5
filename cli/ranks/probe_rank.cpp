#include "cli/ranks/probe_rank.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <ostream>
#include <tuple>
#include <utility>

#include "base/counted.h"
#include "base/parse_units.h"
#include "cli/jobs/run_on_gpus.h"
#include "cli/output/json_text.h"
#include "cli/output/output_file.h"
#include "cli/ranks/probe_output.h"
#include "engine/launch/join_options.h"
#include "engine/launch/shared_secret.h"
#include "engine/measure/measure_pairs.h"
#include "engine/rendezvous/environment.h"
#include "engine/verbs/rail_devices.h"
#include "probe/measured_topology.h"
#include "topology/yaml/write_topology.h"

namespace espalier::cli {
namespace {

Result<JobOptions> probe_job(const Console& console, const ProbeFlags& flags, const ProbeOrder& order,
                             const engine::launch::LaunchInfo& launch, const Topology& topology,
                             const std::string& secret) {
  JobOptions options;
  options.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(flags.timeout * 1000));
  options.rendezvous = engine::launch::join_options(launch, secret, options.timeout);
  options.rendezvous.on_notice = [&console](const std::string& text) { console.note(text); };
  options.transport = order.transport;
  options.sockets_per_peer = std::max(1U, flags.sockets);
  options.verbs = order.verbs;
  engine::set_rails(options.verbs, topology);
  options.agreed = {
      {"MACHINE", fmt::format("{} with {} and {}", topology.name(), counted(topology.node_count(), "node"),
                              counted(topology.link_count(), "link"))},
      {"-s", std::to_string(order.size.count)},
      {"-n", std::to_string(flags.transfers)},
      {"--limit", std::to_string(order.limit)},
      {"--max-rounds", std::to_string(flags.max_rounds)},
      {"--max-time", fmt::format("{}", flags.max_time)},
      {"--transport", std::string(to_string(order.transport))},
      {"--device", flags.device}};
  return options;
}

probe::FlowResult result_of(const engine::PairTimes& times, Bytes size) {
  std::vector<double> sorted = times.seconds;
  std::ranges::sort(sorted);
  const auto bytes = static_cast<double>(size.count);
  return {bytes / sorted[sorted.size() / 2], bytes / sorted.back(), bytes / sorted.front(), times.latency};
}

/// All rounds. Errors: those of the calls.
Result<ProbeRun> measure_rounds(engine::PairMeter& meter, const ProbeFlags& flags, const ProbeOrder& order,
                                probe::ProbePlan& plan) {
  ProbeRun run;
  while (const auto round = plan.next()) {
    if (run.elapsed > flags.max_time) {
      run.is_cut_short = true;
      return run;
    }
    std::vector<engine::RankPair> pairs;
    for (const std::uint32_t index : *round) {
      const probe::PairPath& path = plan.paths()[index];
      pairs.push_back({path.from.value(), path.to.value()});
    }
    const auto measured = meter.measure(pairs);
    if (!measured) return tl::unexpected(measured.error());
    std::vector<probe::FlowResult> results;
    for (const engine::PairTimes& times : measured->pairs) {
      results.push_back(result_of(times, order.size));
      run.bytes += static_cast<std::int64_t>(times.seconds.size() + 1) * order.size.count;
    }
    run.elapsed = measured->elapsed;
    plan.note(results);
  }
  return run;
}

ExitCode show(const Console& console, const ProbeFlags& flags, const Input& input, const probe::ProbePlan& plan,
              const ProbeRun& run) {
  const ProbeReport report{&input.topology, &plan, &run};
  if (console.csv) {
    console.print_bytes(pairs_table(report).csv());
  } else {
    console.print(console.json ? json_text(probe_json(report)) : probe_text(report));
  }
  if (flags.output.empty()) return ExitCode::ok;
  const auto measured = probe::measured_topology(input.topology, plan.hops(), plan.paths(), plan.findings());
  if (!measured) return console.refuse(measured.error());
  std::vector<ProvenanceRow> rows = measured->provenance;
  rows.insert(rows.end(), input.provenance.begin(), input.provenance.end());
  const auto written = write_file(flags.output, [&](std::ostream& stream) -> Result<void> {
    stream << write_topology(measured->topology, rows, input.profile, input.gpu);
    return {};
  });
  return written ? ExitCode::ok : console.refuse(written.error());
}

Result<std::unique_ptr<engine::Device>> open_device(const engine::launch::LaunchInfo& launch, const ProbeFlags& flags) {
  if (flags.device == "host") return nullptr;
  RunFlags of_run;
  of_run.device = flags.device;
  return open_gpu_of_rank(launch, of_run);
}

}  // namespace

Result<ProbeOrder> resolve_probe(const ProbeFlags& flags) {
  ProbeOrder order;
  const auto size = parse_size(flags.size);
  if (!size) return fail(size.error().code, "-s: " + size.error().message, size.error().help);
  constexpr std::int64_t max_size = std::int64_t{1} << 32U;
  if (size->count < 1 || size->count > max_size) {
    return fail(ErrorCode::invalid_input, "-s: a transfer has 1 byte to 4 GiB", "such as -s 16M");
  }
  order.size = *size;
  if (!flags.limit.empty()) {
    const auto limit = parse_bandwidth(flags.limit);
    if (!limit) return fail(limit.error().code, "--limit: " + limit.error().message, limit.error().help);
    order.limit = limit->bytes_per_second;
    if (static_cast<double>(order.size.count) / static_cast<double>(order.limit) > flags.timeout / 2) {
      return fail(ErrorCode::invalid_input,
                  fmt::format("--limit: a pair would wait {:.0f} s between transfers, and --timeout is {:g} s",
                              static_cast<double>(order.size.count) / static_cast<double>(order.limit), flags.timeout),
                  "take a smaller -s, a higher --limit or a longer --timeout");
    }
  }
  if (flags.transfers < 1 || flags.transfers > 1000) {
    return fail(ErrorCode::invalid_input, "-n: 1 to 1,000 transfers of a pair", "such as -n 5");
  }
  if (flags.max_rounds < 1 || flags.max_rounds > 10'000) {
    return fail(ErrorCode::invalid_input, "--max-rounds: 1 to 10,000", "such as --max-rounds 64");
  }
  if (!(flags.max_time > 0 && flags.max_time < 1e6)) {
    return fail(ErrorCode::invalid_input, "--max-time: seconds between 0 and 1,000,000");
  }
  if (!(flags.timeout > 0 && flags.timeout < 1e6)) {
    return fail(ErrorCode::invalid_input, "--timeout: seconds between 0 and 1,000,000");
  }
  if (flags.device != "host" && flags.device != "cuda-ranks") {
    return fail(ErrorCode::invalid_input, fmt::format("--device {}: neither host nor cuda-ranks", flags.device));
  }
  const auto transport = parse_transport(flags.transport);
  if (!transport) return tl::unexpected(transport.error());
  order.transport = *transport;
  auto verbs = flags.verbs.resolve();
  if (!verbs) return tl::unexpected(verbs.error());
  order.verbs = std::move(*verbs);
  return order;
}

ExitCode probe_rank(const Console& console, const ProbeFlags& flags, const ProbeOrder& order,
                    const engine::launch::LaunchInfo& launch, const Input& input, probe::ProbePlan& plan) {
  const Topology& topology = input.topology;
  if (launch.world != topology.rank_count()) {
    return console.refuse({ErrorCode::invalid_input,
                           fmt::format("the job has {}, {} has {}", counted(launch.world, "rank"), topology.name(),
                                       topology.rank_count()),
                           "start as many processes as the machine has ranks, or choose ranks with --ranks"});
  }
  auto gpu = open_device(launch, flags);
  if (!gpu) {
    std::ignore = console.refuse(gpu.error());
    return ExitCode::missing_capability;
  }
  const auto secret = engine::launch::secret_of(launch, engine::rendezvous::process_environment(), flags.secret_file);
  if (!secret) return console.refuse(secret.error());
  auto options = probe_job(console, flags, order, launch, topology, secret->text);
  if (!options) return console.refuse(options.error());
  if (*gpu) {
    const auto device = std::make_shared<std::unique_ptr<engine::Device>>(std::move(*gpu));
    options->make_device = [device] { return std::move(*device); };
  }
  const ScheduleSource none = [](const Collective&, Bytes) -> Result<SourcedSchedule> {
    return fail(ErrorCode::unsupported, "probe runs no collectives");
  };
  auto communicator = Communicator::join(std::move(*options), none);
  if (launch.rank == 0 && !secret->path.empty()) unlink(secret->path.c_str());
  if (!communicator) return console.refuse(communicator.error());

  engine::PairOptions pairs;
  pairs.bytes = order.size.count;
  pairs.transfers = flags.transfers;
  pairs.max_rate = static_cast<double>(order.limit);
  pairs.space = flags.device == "host" ? engine::MemorySpace::host : engine::MemorySpace::device;
  auto meter = engine::PairMeter::make(**communicator, pairs);
  if (!meter) return console.refuse(meter.error());
  auto run = measure_rounds(**meter, flags, order, plan);
  if (!run) {
    (*communicator)->abort(run.error().message);
    return console.refuse(run.error());
  }
  run->size = order.size;
  run->transfers = flags.transfers;
  run->transports = (*communicator)->transports();
  const ExitCode code = launch.rank == 0 ? show(console, flags, input, plan, *run) : ExitCode::ok;
  std::vector<std::uint32_t> all;
  for (std::uint32_t rank = 0; rank < launch.world; ++rank) all.push_back(rank);
  constexpr std::chrono::seconds farewell{30};
  if (auto met = (*communicator)->control().barrier("probe/end", all, farewell); !met)
    return console.refuse(met.error());
  return code;
}

}  // namespace espalier::cli
