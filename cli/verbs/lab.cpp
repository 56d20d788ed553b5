#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <thread>

#include "base/parse_units.h"
#include "cli/flags/algorithm_flags.h"
#include "cli/flags/collective_flags.h"
#include "cli/flags/inputs.h"
#include "cli/flags/modes.h"
#include "cli/flags/sizes.h"
#include "cli/jobs/lab_job.h"
#include "cli/jobs/plan_shown.h"
#include "cli/jobs/stop.h"
#include "cli/output/json_text.h"
#include "cli/output/output_file.h"
#include "cli/output/progress.h"
#include "cli/reports/lab_output.h"
#include "cli/verbs/commands.h"
#include "lab/namespaces/clean_up.h"
#include "lab/network.h"
#include "lab/rate_budget.h"
#include "lab/requirements.h"
#include "schedule/timeline/chrome_trace.h"
#include "sim/simulate.h"

namespace espalier::cli {
namespace {

struct LabFlags {
  TopologyFlags input;
  CollectiveFlags collective;
  std::string algorithms = "ring,tree,packing";
  SizeFlags sizes{.begin = "1M", .end = "16M", .factor = "4", .step = {}, .single = {}, .type = "float"};
  std::string chunk;
  std::string ahead;
  std::string scale = "auto";
  std::string calibrate_from;
  std::string trace;
  LabRunOptions run;
  int check = 1;
  bool keep = false;
  bool clean = false;
};

/// What the flags ask for, checked before anything is built.
struct Order {
  ElementType type = ElementType::float32;
  std::vector<Bytes> sizes;
  std::vector<Bytes> calibration_sizes;
  std::optional<Bytes> chunk;
  std::optional<std::uint32_t> ahead;
  std::vector<std::string> algorithms;
  std::optional<Rational> scale;
};

OrStop<Order> read_order(const LabFlags& flags) {
  Order order;
  const auto type = parse_element_type(flags.sizes.type);
  if (!type) return usage(type.error());
  order.type = *type;
  const auto sizes = parse_sizes(flags.sizes, *type);
  if (!sizes) return usage(sizes.error());
  order.sizes = *sizes;
  std::istringstream names(flags.calibrate_from);
  for (std::string name; std::getline(names, name, ',');) {
    const auto size = parse_size(name);
    if (!size) return usage({size.error().code, "--calibrate-from: " + size.error().message, size.error().help});
    order.calibration_sizes.push_back({size->count / size_of(*type) * size_of(*type)});
  }
  for (const auto* list : {&order.sizes, &order.calibration_sizes}) {
    if (std::ranges::any_of(*list, [](Bytes size) { return size.count == 0; })) {
      return usage({ErrorCode::invalid_input, "a lab measures sizes of at least one element", "begin above 0"});
    }
  }
  if (!flags.chunk.empty()) {
    const auto chunk = parse_size(flags.chunk);
    if (!chunk) return usage({chunk.error().code, "--chunk: " + chunk.error().message, chunk.error().help});
    if (chunk->count < size_of(*type)) {
      return usage({ErrorCode::invalid_input, "--chunk: a chunk holds at least one element", ""});
    }
    order.chunk = *chunk;
  }
  const auto ahead = parse_ahead(flags.ahead);
  if (!ahead) return usage(ahead.error());
  order.ahead = *ahead;
  const auto algorithms = parse_algorithms(flags.algorithms, true);
  if (!algorithms) return usage(algorithms.error());
  order.algorithms = *algorithms;
  std::erase(order.algorithms, "auto");
  if (order.algorithms.empty()) {
    return usage({ErrorCode::invalid_input, "-a: auto chooses by simulation, and a lab compares",
                  "name the algorithms, such as -a ring,packing, or -a all"});
  }
  if (flags.scale != "auto") {
    const auto scale = lab::parse_scale(flags.scale);
    if (!scale) return usage(scale.error());
    order.scale = *scale;
  }
  return order;
}

/// All that stays the same while sizes are run.
struct Bench {
  const LabFlags* flags;
  const Order* order;
  const Topology* network;  ///< What is simulated: the scaled topology, calibrated or not.
  const planners::Candidates* candidates;
  std::map<std::string, LabJob> jobs;
};

/// The planner's choice is for links alone, and without latency it is the smallest there is. Messages cost a process
/// some tens of microseconds each, so they are not smaller than 64 KiB, and for large sizes up to 256 KiB.
Bytes choose_chunk(const planners::Candidate& candidate, Bytes size) {
  constexpr std::int64_t messages = 128;
  const std::int64_t least = std::clamp(size.count / messages, std::int64_t{64} << 10U, std::int64_t{256} << 10U);
  return std::max(candidate.chunks.choose(size), Bytes{least});
}

Result<sim::Report> simulate_one(const Bench& bench, const Topology& network, const std::string& algorithm, Bytes size,
                                 bool with_timeline = false) {
  const planners::Candidate& candidate = *bench.candidates->find(algorithm);
  const auto simulator = sim::Simulator::make_unverified(candidate.schedule, network);
  if (!simulator) return tl::unexpected(simulator.error());
  sim::Options options;
  options.size = size;
  options.element_size = size_of(bench.order->type);
  const planners::FixedPacing fixed{bench.order->chunk.value_or(choose_chunk(candidate, size)), bench.order->ahead};
  const auto evaluate = [&](const Pacing& pacing, Picoseconds deadline) {
    options.set(pacing);
    return simulator->run_until(options, deadline);
  };
  const auto best = planners::find_best_pacing(candidate.chunks, size, fixed, evaluate);
  if (!best) return tl::unexpected(best.error());
  options.set({best->chunk, best->ahead});
  options.record_timeline = with_timeline;
  return simulator->run(options);
}

/// Simulates and measures one algorithm at one size.
Result<LabResult> run_one(const Bench& bench, const std::string& algorithm, Bytes size, const std::string& trace = {}) {
  const auto simulated = simulate_one(bench, *bench.network, algorithm, size);
  if (!simulated) return tl::unexpected(simulated.error());
  LabResult result{size, algorithm, {simulated->chunk, simulated->ahead}, simulated->elapsed.seconds(), {}};
  const auto measured = bench.jobs.at(algorithm).run(size, result.pacing, bench.flags->run, trace);
  if (!measured) {
    return fail(measured.error().code,
                fmt::format("{} at {} bytes: {}", algorithm, size.count, measured.error().message),
                measured.error().help);
  }
  result.measured = *measured;
  return result;
}

Result<LabCalibration> calibrate(const Console& console, const Bench& bench,
                                 const std::vector<std::string>& algorithms) {
  // 100 us: well above rounding, well below what changes the order of chunks.
  LabCalibration delay;
  delay.latency = {100'000'000};
  const auto delayed = calibrated(*bench.network, delay);
  if (!delayed) return tl::unexpected(delayed.error());
  std::vector<CalibrationPoint> points;
  Progress progress(console, "calibrating", bench.order->calibration_sizes.size() * algorithms.size());
  for (const Bytes size : bench.order->calibration_sizes) {
    for (const std::string& algorithm : algorithms) {
      progress.step(fmt::format("{} {} B", algorithm, size.count));
      const auto result = run_one(bench, algorithm, size);
      if (!result) return tl::unexpected(result.error());
      const auto slower = simulate_one(bench, *delayed, algorithm, size);
      if (!slower) return tl::unexpected(slower.error());
      points.push_back({result->measured.time, result->simulated,
                        (slower->elapsed.seconds() - result->simulated) / delay.latency.seconds()});
    }
  }
  LabCalibration calibration = fit_calibration(points);
  calibration.sizes = bench.order->calibration_sizes;
  return calibration;
}

std::string trace_file(const std::string& prefix, const std::string& algorithm, const char* kind) {
  return fmt::format("{}{}-{}.json", prefix, algorithm, kind);
}

Result<void> write_simulated_trace(const Bench& bench, const std::string& algorithm, Bytes size) {
  const auto report = simulate_one(bench, *bench.network, algorithm, size, true);
  if (!report) return tl::unexpected(report.error());
  return write_file(trace_file(bench.flags->trace, algorithm, "simulated"),
                    [&](std::ostream& stream) { return write_chrome_trace(stream, *report->timeline); });
}

Result<void> measure(const Console& console, const Bench& bench, LabReport& report) {
  Progress progress(console, "measuring", report.sizes.size() * report.algorithms.size());
  for (const Bytes size : report.sizes) {
    for (const std::string& algorithm : report.algorithms) {
      progress.step(fmt::format("{} {} B", algorithm, size.count));
      const bool traced = !bench.flags->trace.empty() && size == report.sizes.back();
      auto result =
          run_one(bench, algorithm, size, traced ? trace_file(bench.flags->trace, algorithm, "measured") : "");
      if (!result) return tl::unexpected(result.error());
      report.results.push_back(std::move(*result));
      if (!traced) continue;
      if (auto written = write_simulated_trace(bench, algorithm, size); !written) return written;
    }
  }
  return {};
}

/// Plans, builds the network, runs and shows. Gives the exit code: data that are wrong are a failed check.
OrStop<ExitCode> run_lab(const Console& console, const LabFlags& flags, const Order& order, const Topology& topology,
                         const Collective& collective, bool delays_packets) {
  const Rational factor = order.scale.value_or(lab::choose_scale(topology, std::thread::hardware_concurrency()));
  const auto scaled = lab::scale_topology(topology, factor, delays_packets);
  if (!scaled) return stop(scaled.error());
  auto candidates = plan_shown(console, {.machine = &scaled->topology,
                                         .collective = collective,
                                         .algorithms = order.algorithms,
                                         .sizes = order.sizes,
                                         .forms = forecast::PlanForms::schedules});
  if (!candidates) return stop(candidates.error());
  LabReport report{&topology,           &*scaled, collective,  std::string(to_string(order.type)),
                   size_of(order.type), {},       order.sizes, {},
                   candidates->refused, {}};
  std::erase_if(report.refused, [&](const planners::Refusal& refusal) {
    return std::ranges::find(order.algorithms, refusal.planner) == order.algorithms.end();
  });
  auto network = lab::LabNetwork::make(scaled->topology);
  if (!network) return stop(network.error());
  Bench bench{&flags, &order, &scaled->topology, &*candidates, {}};
  for (const std::string& name : order.algorithms) {
    const planners::Candidate* candidate = candidates->find(name);
    if (candidate == nullptr) continue;
    auto job = LabJob::make(*network, *candidate, scaled->topology);
    if (!job) {
      report.refused.push_back({name, job.error()});
      continue;
    }
    report.algorithms.push_back(name);
    bench.jobs.emplace(name, std::move(*job));
  }
  if (report.algorithms.empty()) return stop(report.refused.front().error);
  std::optional<Topology> fitted;
  if (!order.calibration_sizes.empty()) {
    auto calibration = calibrate(console, bench, report.algorithms);
    if (!calibration) return stop(calibration.error());
    auto network_as_measured = calibrated(scaled->topology, *calibration);
    if (!network_as_measured) return stop(network_as_measured.error());
    report.calibration = std::move(*calibration);
    fitted = std::move(*network_as_measured);
    bench.network = &*fitted;
  }
  if (const auto measured = measure(console, bench, report); !measured) return stop(measured.error());
  if (console.csv) {
    console.print_bytes(lab_table(report).csv());
  } else {
    console.print(console.json ? json_text(lab_json(report)) : lab_text(report));
  }
  if (flags.keep) {
    console.note(
        fmt::format("kept: {}-n0 and so on (ip netns exec); espalier lab --clean removes them", network->prefix()));
    network->keep();
  } else if (const auto closed = network->close(); !closed) {
    return stop(closed.error());
  }
  return report.wrong() == 0 ? ExitCode::ok : ExitCode::check_failed;
}

OrStop<ExitCode> clean(const Console& console) {
  const auto cleaned = lab::clean_leftovers();
  if (!cleaned) return stop(cleaned.error());
  if (console.json) {
    const nlohmann::ordered_json document = {{"schema", "espalier/lab-clean/1"}, {"removed", *cleaned}};
    console.print(json_text(document));
    return ExitCode::ok;
  }
  for (const std::string& prefix : *cleaned) console.note("removed " + prefix);
  if (cleaned->empty()) console.note("nothing was left");
  return ExitCode::ok;
}

/// Removes leftovers; all options but --clean are of measuring.
ExitCode run_clean(const Console& console, const CLI::App& command) {
  const Mode mode{"--clean", "it removes what other labs left and does nothing else", {"--clean"}, {}};
  if (const auto idle = find_idle_option(command, mode)) return console.refuse_usage(*idle);
  const auto cleaned = clean(console);
  return cleaned ? *cleaned : console.refuse(cleaned.error().error);
}

ExitCode run(const Console& console, const CLI::App& command, LabFlags& flags) {
  const auto show = [&](const OrStop<ExitCode>& done) {
    if (done) return *done;
    return done.error().is_usage ? console.refuse_usage(done.error().error) : console.refuse(done.error().error);
  };
  if (flags.clean) return run_clean(console, command);
  if (flags.input.argument.empty() || flags.collective.name.empty()) {
    return console.refuse_usage({ErrorCode::invalid_input, "lab needs a TOPOLOGY and a COLLECTIVE",
                                 "such as espalier lab lab-mixed all_reduce, or --clean"});
  }
  auto order = read_order(flags);
  if (!order) return show(tl::unexpected(order.error()));
  const auto topology = load_topology(console, flags.input);
  if (!topology) return refuse(console, topology.error());
  const auto sized = flags.collective.resolve_sized(*topology);
  if (!sized) return console.refuse_usage(sized.error());
  if (sized->size && !names_size(command)) order->sizes = {whole_elements(*sized->size, order->type)};
  flags.run.type = flags.sizes.type;
  flags.run.check = flags.check != 0;
  // Only now, so that a wrong file or flag is told on every machine.
  const auto gained = lab::gain_rights();
  const auto support = gained ? lab::require_support() : tl::unexpected(gained.error());
  if (!support) {
    static_cast<void>(console.refuse(support.error()));
    return ExitCode::missing_capability;
  }
  return show(run_lab(console, flags, *order, *topology, sized->collective, support->delays_packets));
}

void add_run_flags(CLI::App& command, LabFlags& flags) {
  command.add_option("-n,--iters", flags.run.iterations, "Measured calls per size")
      ->check(CLI::Range(1U, 1'000'000U))
      ->capture_default_str()
      ->option_text("N (5)");
  command.add_option("-w,--warmup_iters", flags.run.warmup, "Calls before them that do not count")
      ->check(CLI::Range(0U, 1'000'000U))
      ->option_text("N (1)");
  command.add_option("-c,--check", flags.check, "Compare the data with what they must be")->option_text("0|1 (1)");
  command.add_option("--timeout", flags.run.timeout_s, "How long a rank waits for anything, in seconds")
      ->check(CLI::Range(1U, 86'400U))
      ->option_text("SECONDS (60)");
  command.add_option("--chunk", flags.chunk, "Largest chunk; chosen per schedule and size when absent")
      ->option_text("SIZE");
  command
      .add_option(
          "--ahead", flags.ahead,
          "Rounds that a sender may be ahead of itself, 0 for any number; chosen per schedule and size when absent")
      ->option_text("N");
  command
      .add_option("--scale", flags.scale, "Factor on all rates, such as 0.01 or 1/128; auto: what this machine carries")
      ->option_text("FACTOR (auto)");
  command
      .add_option("--calibrate-from", flags.calibrate_from,
                  "Measure these sizes first, and simulate the others with what the links did there")
      ->option_text("SIZES");
  command
      .add_option("--trace", flags.trace,
                  "Write the timelines of the last size: PREFIXring-simulated.json, PREFIXring-measured.json, ...")
      ->option_text("PREFIX");
  command.add_flag("--keep", flags.keep, "Leave the network standing for looking around");
  command.add_flag("--clean", flags.clean, "Remove what labs have left whose process is gone, and do nothing else");
}

}  // namespace

void add_lab_command(CLI::App& app, Session& session) {
  const auto flags = std::make_shared<LabFlags>();
  CLI::App* command = app.add_subcommand(
      "lab", "Measure plans for real on a shaped copy of the network in this machine, beside their simulation");
  flags->input.add_to(*command, "TOPOLOGY", false);
  flags->input.add_damage_to(*command);
  flags->collective.add_to(*command, false);
  command->add_option("-a,--algorithm", flags->algorithms, "Comma-separated: all, " + planner_names())
      ->option_text("NAMES (ring,tree,packing)");
  flags->sizes.add_to(*command);
  add_run_flags(*command, *flags);
  add_csv_to(*command, session.console);
  command->footer(
      examples({"espalier lab lab-mixed all_reduce", "espalier lab lab-mixed all_gather -b 4M -e 64M -f 2 -n 10",
                "espalier lab cluster.yaml all_reduce -a ring,packing --scale 1/200 -s 16M",
                "espalier lab lab-mixed all_reduce --calibrate-from 2M,8M -b 1M -e 32M",
                "espalier lab lab-mixed broadcast --trace traces/", "espalier lab --clean"}) +
      "\nNodes become network namespaces, cables become virtual ones, shaped to their rates times the scale; each "
      "rank is a\nprocess in its namespace, and every route of a plan takes its own links (docs/lab.md). Needs root "
      "or user namespaces,\niproute2, and the kernel's veth and tbf; exit code 3 says what is missing.");
  command->callback([flags, command, &session] {
    session.run = [flags, command, &session] { return run(session.console, *command, *flags); };
  });
}

}  // namespace espalier::cli
