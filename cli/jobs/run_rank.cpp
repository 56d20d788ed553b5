#include "cli/jobs/run_rank.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "base/counted.h"
#include "base/format_units.h"
#include "base/parse_units.h"
#include "cli/flags/address_file.h"
#include "cli/flags/algorithm_flags.h"
#include "cli/flags/inputs.h"
#include "cli/jobs/run_on_gpus.h"
#include "cli/jobs/run_task.h"
#include "cli/output/json_text.h"
#include "cli/reports/run_output.h"
#include "engine/launch/join_options.h"
#include "engine/launch/shared_secret.h"
#include "engine/rendezvous/environment.h"
#include "forecast/sources/advisor.h"
#include "planners/bounds/bound.h"
#include "schedule/verify/verify.h"

namespace espalier::cli {
namespace {

Result<std::vector<engine::RouteAddress>> load_addresses(const Console& console, const std::string& path) {
  if (path.empty()) return std::vector<engine::RouteAddress>();
  const auto text = read_whole(console, path);
  if (!text) return tl::unexpected(text.error());
  return read_addresses(*text, path);
}

/// What ranks that were started one by one may have been told differently: calls would not fit together.
std::vector<engine::Setting> settings_of(const RunFlags& flags, const RunTask& task) {
  const std::vector<Bytes>& sizes = task.sizes;
  return {{"COLLECTIVE", std::string(to_string(task.collective.kind))},
          {"-r", has_root(task.collective.kind) ? std::to_string(task.collective.root.value()) : "none"},
          {"--shares", flags.collective.shares.empty() ? "equal" : flags.collective.shares},
          {"-a", flags.algorithm},
          {"-d", std::string(to_string(task.type))},
          {"-o", std::string(to_string(task.operation))},
          {"sizes", sizes.empty() ? "none"
                                  : fmt::format("{}, {} ... {} ({} of them)", sizes.front().count,
                                                sizes[std::min<std::size_t>(1, sizes.size() - 1)].count,
                                                sizes.back().count, sizes.size())},
          {"-n", std::to_string(flags.iterations)},
          {"-w", std::to_string(flags.warmups)},
          {"-c", std::to_string(flags.check)},
          {"--ahead", task.ahead ? std::to_string(*task.ahead) : "auto"},
          {"--chunk", task.chunk ? std::to_string(task.chunk->count) : "auto"},
          {"--buffers", flags.buffers},
          {"--device", flags.device},
          {"--transport", std::string(to_string(task.transport))},
          {"--profile", task.profile ? task.profile->shown : "ideal"},
          {"--trace", flags.trace.file.empty() ? "not given" : "given"}};
}

Result<JobOptions> job_options(const Console& console, const RunFlags& flags, const engine::launch::LaunchInfo& launch,
                               const RunTask& task, const Topology& topology, const std::string& secret) {
  JobOptions options;
  options.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(flags.timeout * 1000));
  options.rendezvous = engine::launch::join_options(launch, secret, options.timeout);
  options.rendezvous.on_notice = [&console](const std::string& text) { console.note(text); };
  auto routes = load_addresses(console, flags.addresses);
  if (!routes) return tl::unexpected(routes.error());
  options.routes = std::move(*routes);
  options.transport = options.routes.empty() ? task.transport : TransportChoice::tcp;
  options.checksum = flags.checksum;
  options.sockets_per_peer = std::max(1U, flags.sockets);
  auto verbs = flags.verbs.resolve();
  if (!verbs) return tl::unexpected(verbs.error());
  options.verbs = std::move(*verbs);
  engine::set_rails(options.verbs, topology);
  options.agreed = settings_of(flags, task);
  return options;
}

/// Errors: unsupported where no kernel of this rank makes copies.
Result<void> check_bulk_copies(const RunFlags& flags, const Communicator& communicator) {
  const auto& peers = communicator.transports();
  if (!flags.bulk_copies || std::ranges::any_of(peers, &PeerTransport::carries_out_calls)) return {};
  const auto other = std::ranges::find_if(peers, [&](const auto& peer) { return peer.peer != communicator.rank(); });
  return fail(ErrorCode::unsupported,
              fmt::format("--bulk-copies: no kernel makes the copies of rank {} ({})", communicator.rank(),
                          other == peers.end() ? "it is alone" : other->reason),
              "leave --bulk-copies out");
}

class RankRun {
 public:
  RankRun(const Console& console, const RunFlags& flags, const RunTask& task, const Topology& topology,
          Communicator& communicator)
      : console_(console), flags_(flags), task_(task), communicator_(communicator) {
    output_.topology = topology.name();
    output_.collective = task.collective;
    output_.type = task.type;
    output_.operation = task.operation;
    if (const auto bound = planners::compute_bound(topology, task.collective)) output_.bound = bound->time_per_byte;
    for (std::size_t rank = 0; rank < topology.rank_count(); ++rank) {
      output_.rank_names.push_back(topology.rank_name(Rank(rank)));
    }
    output_.transports = communicator.transports();
    output_.options.iterations = std::max(1U, flags.iterations);
    output_.options.warmups = flags.warmups;
    output_.options.checks = flags.check != 0;
    output_.options.registers_buffers = flags.buffers == "registered";
    output_.options.space = flags.device == "host" ? engine::MemorySpace::host : engine::MemorySpace::device;
  }

  Result<void> run() {
    print(run_header(output_));
    for (const Bytes size : task_.sizes) {
      if (auto done = run_size(size); !done) return done;
    }
    print(run_footer(output_));
    if (is_first() && console_.json) console_.print(json_text(run_json(output_)));
    if (is_first() && console_.csv) console_.print_bytes(run_table(output_).csv());
    return flags_.trace.file.empty() ? Result<void>() : write_trace();
  }

  [[nodiscard]] bool is_right() const { return output_.wrong() == 0; }

 private:
  [[nodiscard]] bool is_first() const { return communicator_.rank() == 0; }
  void print(const std::string& text) const {
    if (is_first() && !console_.json && !console_.csv) console_.print(text);
  }

  Result<void> run_size(Bytes size) {
    const engine::DataCase data = data_of(task_, size);
    RunResult result{data, size, "", {}, {}};
    const auto scheduled = communicator_.schedule_of(
        {data.kind, nullptr, nullptr, data.count, data.type, data.operation, data.root, data.shares});
    if (!scheduled) return tl::unexpected(scheduled.error());
    result.algorithm = scheduled->schedule->algorithm;
    result.pacing = {scheduled->chunk, scheduled->ahead};
    const bool is_traced = !flags_.trace.file.empty() && size == task_.sizes.back();
    if (is_traced) kept_.emplace();
    const auto measured = engine::measure(communicator_, data, output_.options, is_traced ? &*kept_ : nullptr);
    if (!measured) return tl::unexpected(measured.error());
    result.measurement = *measured;
    print(run_row(output_, result));
    output_.results.push_back(std::move(result));
    return {};
  }

  /// As the simulator names its own, so that the two find each other.
  [[nodiscard]] std::string trace_title() const {
    return fmt::format("{}, {}, {} on {}", to_string(task_.collective.kind), output_.results.back().algorithm,
                       format_size(task_.sizes.back()), output_.topology);
  }

  /// "run.slowest.json" beside "run.json".
  static std::string file_of_slowest(const std::string& file) {
    const std::filesystem::path path(file);
    return (path.parent_path() / path.stem()).string() + ".slowest" + path.extension().string();
  }

  [[nodiscard]] Result<void> write_timeline(const TraceFlags& trace, Timeline& timeline) const {
    const auto written = write_trace_file(console_, trace, timeline);
    if (written) return {};
    return fail(written.error().code, trace.file + ": " + written.error().message, written.error().help);
  }

  Result<void> write_trace() {
    auto recorded = engine::record_run(communicator_, data_of(task_, task_.sizes.back()), output_.options, *kept_,
                                       trace_title(), output_.rank_names);
    if (!recorded) return tl::unexpected(recorded.error());
    if (!is_first()) return {};
    if (auto written = write_timeline(flags_.trace, recorded->timeline); !written) return written;
    std::string files = flags_.trace.file;
    std::error_code ignored;
    if (!recorded->slowest.spans.empty() && std::filesystem::is_regular_file(flags_.trace.file, ignored)) {
      TraceFlags of_slowest = flags_.trace;
      of_slowest.file = file_of_slowest(flags_.trace.file);
      if (auto written = write_timeline(of_slowest, recorded->slowest); !written) return written;
      files = fmt::format("{} (the median iteration) and {} (the slowest)", files, of_slowest.file);
    }
    // Calls differ by more than recording costs, so that the recorded one may as well be the faster one.
    const double cost = recorded->recorded_time / recorded->plain_time - 1;
    console_.note(fmt::format(
        "trace: {}, for ui.perfetto.dev; clocks agree to {:.2f} us; {} ({:.1f} us with it, {:.1f} us without)", files,
        recorded->clock_error * 1e6,
        cost > 0 ? fmt::format("recording took {:.1f} % more", 100 * cost) : "recording took no time that shows",
        recorded->recorded_time * 1e6, recorded->plain_time * 1e6));
    return {};
  }

  const Console& console_;
  const RunFlags& flags_;
  const RunTask& task_;
  Communicator& communicator_;
  RunOutput output_;
  std::optional<engine::KeptIterations> kept_;  ///< Of the largest size, where its trace was asked for.
};

}  // namespace

ExitCode run_rank(const Console& console, const RunFlags& flags, const engine::launch::LaunchInfo& launch,
                  Input& input) {
  const auto task = resolve_run(flags, input);
  if (!task) return console.refuse_usage(task.error());
  if (launch.world != task->collective.rank_count) {
    return console.refuse({ErrorCode::invalid_input,
                           fmt::format("the job has {}, {} has {}", counted(launch.world, "rank"),
                                       input.topology.name(), task->collective.rank_count),
                           "start as many processes as the topology has ranks, or choose ranks with --ranks"});
  }
  if (input.schedule) {
    const auto verified = require_verified(*input.schedule, input.topology, flags.input.argument);
    if (!verified) return console.refuse(verified.error());
  }
  std::unique_ptr<engine::Device> gpu;
  if (flags.device == "cuda-ranks" || flags.device == "cuda-ranks-copies") {
    auto opened = open_gpu_of_rank(launch, flags);
    if (!opened) {
      std::ignore = console.refuse(opened.error());
      return ExitCode::missing_capability;
    }
    gpu = std::move(*opened);
  }
  const auto secret = engine::launch::secret_of(launch, engine::rendezvous::process_environment(), flags.secret_file);
  if (!secret) return console.refuse(secret.error());
  auto options = job_options(console, flags, launch, *task, input.topology, secret->text);
  if (!options) return console.refuse(options.error());
  if (gpu) {
    const auto device = std::make_shared<std::unique_ptr<engine::Device>>(std::move(gpu));
    options->make_device = [device] { return std::move(*device); };
  }
  const Topology topology = input.topology;
  auto communicator = Communicator::join(
      std::move(*options), source_for(flags, *task, launch.is_one_machine || launch.is_local_job(), input));
  // All have it by now, or the job has failed.
  if (launch.rank == 0 && !secret->path.empty()) unlink(secret->path.c_str());
  if (!communicator) return console.refuse(communicator.error());
  if (auto used = check_bulk_copies(flags, **communicator); !used) {
    (*communicator)->abort(used.error().message);
    return console.refuse(used.error());
  }
  RankRun run(console, flags, *task, topology, **communicator);
  if (auto done = run.run(); !done) {
    (*communicator)->abort(done.error().message);  // The others wait for this rank.
    return console.refuse(done.error());
  }
  // Nobody leaves while another still measures.
  if (auto met = (*communicator)->barrier(); !met) return console.refuse(met.error());
  return run.is_right() ? ExitCode::ok : ExitCode::check_failed;
}

}  // namespace espalier::cli
