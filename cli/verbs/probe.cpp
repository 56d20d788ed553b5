#include <fmt/format.h>

#include <array>
#include <memory>
#include <string_view>

#include "cli/flags/modes.h"
#include "cli/output/json_text.h"
#include "cli/ranks/probe_output.h"
#include "cli/ranks/probe_rank.h"
#include "cli/ranks/start_ranks.h"
#include "cli/verbs/commands.h"
#include "engine/rendezvous/environment.h"
#include "probe/probe_plan.h"

namespace espalier::cli {
namespace {

constexpr std::array<std::string_view, 6> what_is_sent = {"MACHINE", "--size",       "--transfers",
                                                          "--limit", "--max-rounds", "--max-time"};
constexpr std::array<std::string_view, 7> machine_options = {"MACHINE",   "--parameter", "--ranks",  "--strict",
                                                             "--without", "--slow",      "--dry-run"};

/// What a dry run has no use for.
std::optional<Error> find_idle_in_dry_run(const ProbeFlags& flags, const CLI::App& command) {
  if (!flags.dry_run) return std::nullopt;
  return find_idle_option(command, {"--dry-run", "it sends nothing",
                                    join_options({machine_options, what_is_sent, csv_option}), "leave --dry-run out"});
}

/// What shapes connections that this transport does not make.
std::optional<Error> find_idle_connection(const ProbeFlags& flags, const CLI::App& command) {
  const bool takes_verbs = flags.transport == "verbs" || flags.transport == "shm+verbs";
  if (flags.transport == "shm" && was_given(command, "--sockets")) {
    return Error{ErrorCode::invalid_input, "--sockets is of TCP, and --transport is shm",
                 "leave --sockets out, or write --transport tcp"};
  }
  for (const std::string_view option : verbs_options) {
    if (takes_verbs || !was_given(command, std::string(option))) continue;
    return Error{ErrorCode::invalid_input, fmt::format("{} is of RDMA, and --transport is {}", option, flags.transport),
                 fmt::format("leave {} out, or write --transport shm+verbs or verbs", option)};
  }
  return std::nullopt;
}

ExitCode show_plan(const Console& console, const ProbeFlags& flags, const ProbeOrder& order, const Topology& topology,
                   const probe::ProbePlan& plan) {
  const ProbeForecast forecast{&topology,        &plan,         order.size, flags.transfers, order.limit,
                               flags.max_rounds, flags.max_time};
  if (console.csv) {
    console.print_bytes(planned_table(forecast).csv());
  } else {
    console.print(console.json ? json_text(planned_json(forecast)) : planned_text(forecast));
  }
  return ExitCode::ok;
}

ExitCode run(const Console& console, const CLI::App& command, const ProbeFlags& flags) {
  if (const auto idle = find_idle_in_dry_run(flags, command)) return console.refuse_usage(*idle);
  if (const auto idle = find_idle_connection(flags, command)) return console.refuse_usage(*idle);
  const auto order = resolve_probe(flags);
  if (!order) return console.refuse_usage(order.error());
  const engine::launch::LaunchFlags launch_flags{flags.rank, flags.world, flags.rendezvous};
  const auto launch = engine::launch::detect_launch(engine::rendezvous::process_environment(), launch_flags);
  if (!launch) return console.refuse_usage(launch.error());
  if (flags.machine.argument == "-" && !flags.dry_run) {
    return console.refuse_usage({ErrorCode::invalid_input,
                                 "probe cannot read standard input: every rank reads the file",
                                 "write the topology to a file"});
  }
  Console own = console;
  own.quiet = console.quiet || (launch->is_launched() && launch->rank != 0);
  const auto input = load_input(own, flags.machine);
  if (!input) return refuse(own, input.error());
  if (input->schedule) {
    return own.refuse_usage({ErrorCode::invalid_input, "probe measures a machine, and this is a plan",
                             "name the topology that the plan is for"});
  }
  constexpr std::size_t min_ranks = 2;
  if (input->topology.rank_count() < min_ranks) {
    return own.refuse({ErrorCode::invalid_input, "probe measures pairs of ranks, and the machine has one rank",
                       "choose a machine with two ranks or more"});
  }
  if (!launch->is_launched() && !flags.dry_run) {
    return start_ranks(console, static_cast<std::uint32_t>(input->topology.rank_count()), flags.max_local_ranks,
                       flags.timeout);
  }
  probe::ProbePlan plan(input->topology, {flags.max_rounds});
  if (flags.dry_run) return show_plan(own, flags, *order, input->topology, plan);
  return probe_rank(own, flags, *order, *launch, *input, plan);
}

void add_what_is_sent(CLI::App& command, ProbeFlags& flags) {
  command.add_option("-s,--size", flags.size, "Bytes of a transfer")->option_text("SIZE (16M)");
  command.add_option("-n,--transfers", flags.transfers, "Measured transfers of a pair, after one that is not")
      ->option_text("COUNT (5)");
  command.add_option("--limit", flags.limit, "The most that a pair sends on average, in bursts of one transfer")
      ->option_text("RATE");
  command.add_option("--max-rounds", flags.max_rounds, "Rounds in all")->option_text("COUNT (64)");
  command.add_option("--max-time", flags.max_time, "Begin no round after so many seconds")->option_text("SECONDS (60)");
  command.add_flag("--dry-run", flags.dry_run, "Say which pairs would send how much, and send nothing");
  command.add_option("-o,--output", flags.output, "Write the machine with measured rates there (- is standard output)")
      ->option_text("FILE");
}

void add_ranks_and_transports(CLI::App& command, ProbeFlags& flags) {
  command.add_option("--device", flags.device, "host, or cuda-ranks: buffers in GPU memory, each rank on a GPU")
      ->option_text("NAME (host)");
  command.add_option("--transport", flags.transport, "auto, shm, tcp, shm+verbs or verbs")->option_text("NAME (auto)");
  command.add_option("--sockets", flags.sockets, "TCP connections, or queue pairs of verbs, per pair of ranks")
      ->option_text("COUNT (1)");
  command.add_option("--timeout", flags.timeout, "Seconds without progress after which it fails")
      ->option_text("SECONDS (30)");
  flags.verbs.add_to(command);
  command
      .add_option("--max-local-ranks", flags.max_local_ranks,
                  "Start at most so many ranks here (default: what processes, descriptors and memory allow)")
      ->option_text("COUNT");
  command.add_option("--rank", flags.rank, "Join as this rank instead of starting ranks here")->option_text("R");
  command.add_option("--world", flags.world, "The number of ranks")->option_text("N");
  command.add_option("--rendezvous", flags.rendezvous, "Where the ranks meet: rank 0 listens there")
      ->option_text("HOST:PORT");
  command.add_option("--secret-file", flags.secret_file, "The job's secret (default: ESPALIER_SECRET[_FILE])")
      ->option_text("FILE");
}

}  // namespace

void add_probe_command(CLI::App& app, Session& session) {
  const auto flags = std::make_shared<ProbeFlags>();
  CLI::App* command =
      app.add_subcommand("probe", "Measure a machine's links between its ranks, and name those that are slow");
  flags->machine.add_to(*command, "MACHINE");
  flags->machine.add_damage_to(*command);
  add_what_is_sent(*command, *flags);
  add_ranks_and_transports(*command, *flags);
  add_csv_to(*command, session.console);
  command->footer(
      examples({"espalier probe dgx-h100-x4 --dry-run", "espalier probe one-host -o measured.yaml",
                "mpirun -n 64 espalier probe cluster.yaml --transport verbs --limit '500 MB/s'",
                "srun espalier probe cluster.yaml --json > probe.json"}) +
      "\nPairs of ranks send to each other in rounds, no rank in two pairs at once (docs/probe.md). Without "
      "a launcher,\nall ranks of the machine are started here.");
  command->callback([flags, command, &session] {
    session.run = [flags, command, &session] { return run(session.console, *command, *flags); };
  });
}

}  // namespace espalier::cli
