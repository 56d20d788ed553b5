#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "cli/flags/algorithm_flags.h"
#include "cli/flags/modes.h"
#include "cli/jobs/run_on_gpus.h"
#include "cli/jobs/run_rank.h"
#include "cli/ranks/start_ranks.h"
#include "cli/verbs/commands.h"
#include "engine/rendezvous/environment.h"

namespace espalier::cli {
namespace {

Mode mode_of(const Input& input) {
  constexpr std::array<std::string_view, 22> how = {
      "--ahead",       "--op",        "--iters",   "--warmup_iters", "--check",       "--chunk",
      "--buffers",     "--transport", "--sockets", "--checksum",     "--timeout",     "--trace",
      "--trace-every", "--rank",      "--world",   "--rendezvous",   "--secret-file", "--max-local-ranks",
      "--addresses",   "--profile",   "--device",  "--bulk-copies"};
  constexpr std::array<std::string_view, 1> planned = {"--algorithm"};
  if (!input.schedule) {
    return {"a topology",
            "it is for a plan",
            join_options({topology_options, collective_options, size_options, how, verbs_options, planned, csv_option}),
            {}};
  }
  constexpr std::array<std::string_view, 2> of_plan = {"COLLECTIVE", "--topology"};
  return {"a plan",
          "its collective, root and shares are what they are",
          join_options({topology_options, size_options, how, verbs_options, of_plan, csv_option}),
          {}};
}

/// What was given and means nothing beside the other values, or nothing.
std::optional<Error> find_idle_value(const RunFlags& flags, const CLI::App& command, const Input& input) {
  const auto kind = input.schedule ? Result<CollectiveKind>(input.schedule->collective.kind)
                                   : parse_collective(flags.collective.name);
  if (input.schedule) {
    if (auto other = flags.collective.find_contradiction(input.schedule->collective)) return other;
  }
  if (kind && !reduces(*kind) && was_given(command, "--op")) {
    return Error{ErrorCode::invalid_input, fmt::format("--op: {} reduces nothing", to_string(*kind)), "leave --op out"};
  }
  std::vector<std::string_view> idle;  // of what shapes connections
  const bool takes_verbs = flags.transport == "verbs" || flags.transport == "shm+verbs";
  if (flags.transport == "shm") idle = {"--sockets", "--checksum", "--addresses"};
  if (takes_verbs) idle = {"--checksum", "--addresses"};  // every packet of RDMA has a CRC
  for (const std::string_view option : idle) {
    if (!was_given(command, std::string(option))) continue;
    return Error{ErrorCode::invalid_input, fmt::format("{} is of TCP, and --transport is {}", option, flags.transport),
                 fmt::format("leave {} out, or write --transport tcp", option)};
  }
  for (const std::string_view option : verbs_options) {
    if (takes_verbs || !was_given(command, std::string(option))) continue;
    return Error{ErrorCode::invalid_input, fmt::format("{} is of RDMA, and --transport is {}", option, flags.transport),
                 fmt::format("leave {} out, or write --transport shm+verbs or verbs", option)};
  }
  return std::nullopt;
}

/// Options without a meaning on GPUs: `--buffers` chooses host memory; where all ranks are in this process, options of
/// ranks in processes of their own do nothing.
std::optional<Error> find_idle_on_gpus(const RunFlags& flags, const CLI::App& command) {
  if (flags.bulk_copies && flags.device != "cuda" && flags.device != "cuda-ranks") {
    return Error{ErrorCode::invalid_input,
                 fmt::format("--bulk-copies is of --device cuda and cuda-ranks, and this is {}", flags.device),
                 "leave it out, or write --device cuda"};
  }
  if (flags.device == "host") return std::nullopt;
  if (flags.device == "cuda-ranks" || flags.device == "cuda-ranks-copies") {
    if (!was_given(command, "--buffers")) return std::nullopt;
    return Error{ErrorCode::invalid_input,
                 "--buffers chooses host memory, and the buffers of --device cuda-ranks are in GPU memory",
                 "leave --buffers or --device cuda-ranks out"};
  }
  if (flags.device != "cuda" && flags.device != "cuda-copies") {
    return Error{
        ErrorCode::invalid_input,
        fmt::format("--device {}: not one of host, cuda, cuda-copies, cuda-ranks, cuda-ranks-copies", flags.device),
        ""};
  }
  std::vector<std::string_view> idle = {"--ahead",    "--buffers",    "--transport",       "--sockets",
                                        "--checksum", "--addresses",  "--max-local-ranks", "--rank",
                                        "--world",    "--rendezvous", "--secret-file"};
  idle.insert(idle.end(), verbs_options.begin(), verbs_options.end());
  for (const std::string_view option : idle) {
    if (!was_given(command, std::string(option))) continue;
    return Error{ErrorCode::invalid_input,
                 fmt::format("{} is of ranks in processes of their own, and --device cuda has all in one", option),
                 fmt::format("leave {} or --device cuda out", option)};
  }
  return std::nullopt;
}

ExitCode run(const Console& console, const CLI::App& command, const RunFlags& flags) {
  if (const auto idle = find_idle_on_gpus(flags, command)) return console.refuse_usage(*idle);
  engine::launch::LaunchFlags launch_flags{flags.rank, flags.world, flags.rendezvous};
  const auto launch = engine::launch::detect_launch(engine::rendezvous::process_environment(), launch_flags);
  if (!launch) return console.refuse_usage(launch.error());
  if (flags.buffers != "registered" && flags.buffers != "private") {
    return console.refuse_usage({ErrorCode::invalid_input, "--buffers: neither registered nor private", ""});
  }
  if (!(flags.timeout > 0 && flags.timeout < 1e6)) {
    return console.refuse_usage({ErrorCode::invalid_input, "--timeout: seconds between 0 and 1,000,000", ""});
  }
  if (flags.input.argument == "-") {
    return console.refuse_usage({ErrorCode::invalid_input, "run cannot read standard input: every rank reads the file",
                                 "write the topology or plan to a file"});
  }
  Console own = console;
  own.quiet = console.quiet || (launch->is_launched() && launch->rank != 0);
  auto input = load_input(own, flags.input, flags.plan_topology);
  if (!input) return refuse(own, input.error());
  if (const auto idle = find_idle_option(command, mode_of(*input))) return own.refuse_usage(*idle);
  if (const auto idle = find_idle_value(flags, command, *input)) return own.refuse_usage(*idle);
  if (!input->schedule && flags.collective.name.empty()) {
    return console.refuse_usage({ErrorCode::invalid_input, "run needs a COLLECTIVE for a topology",
                                 "such as espalier run " + flags.input.argument + " all_reduce"});
  }
  if (const auto checked = check_run(flags, *input); !checked) return own.refuse_usage(checked.error());
  if (flags.device == "cuda" || flags.device == "cuda-copies") {
    if (!launch->is_launched()) return run_on_gpus(own, flags, *input);
    return own.refuse({ErrorCode::unsupported,
                       "--device cuda runs all ranks in one process, and a launcher started this",
                       "start one process without a launcher, or write --device cuda-ranks"});
  }
  if (!launch->is_launched()) {
    return start_ranks(console, static_cast<std::uint32_t>(input->topology.rank_count()), flags.max_local_ranks,
                       flags.timeout);
  }
  return run_rank(own, flags, *launch, *input);
}

}  // namespace

void add_run_command(CLI::App& app, Session& session) {
  const auto flags = std::make_shared<RunFlags>();
  flags->sizes.end = "64M";
  CLI::App* command = app.add_subcommand("run", "Run a schedule for real, check its data, and measure it");
  flags->input.add_to(*command, "TOPOLOGY|PLAN");
  flags->input.add_damage_to(*command);
  flags->collective.add_to(*command, false);
  command->add_option("-a,--algorithm", flags->algorithm, "One of auto, " + planner_names())
      ->option_text("NAME (auto)");
  flags->sizes.add_to(*command);
  command->add_option("-o,--op", flags->operation, "sum, prod, min, max or avg")->option_text("OP (sum)");
  command->add_option("-n,--iters", flags->iterations, "Measured iterations")->option_text("COUNT (20)");
  command->add_option("-w,--warmup_iters", flags->warmups, "Iterations before those")->option_text("COUNT (5)");
  command->add_option("-c,--check", flags->check, "Check every element: 1 or 0")->option_text("0|1 (1)");
  command->add_option("--chunk", flags->chunk, "Largest chunk; chosen per transport and size when absent")
      ->option_text("SIZE");
  command->add_option("--ahead", flags->ahead, "Rounds that a sender may be ahead of itself, 0 for any number")
      ->option_text("N");
  command
      ->add_option(
          "--device", flags->device,
          "host, or cuda: all ranks in this process, on the GPUs that it sees; cuda-copies: there by copies "
          "of the host's; cuda-ranks: each rank in a process of its own, on a GPU; cuda-ranks-copies: those by "
          "copies")
      ->option_text("NAME (host)");
  command->add_flag(
      "--bulk-copies", flags->bulk_copies,
      "With --device cuda or cuda-ranks: kernels make large copies through shared memory (TMA, sm_90 and later)");
  command->add_option("--buffers", flags->buffers, "registered: ranks of a machine reach them directly; or private")
      ->option_text("KIND (registered)");
  command->add_option("--transport", flags->transport, "auto, shm, tcp, shm+verbs or verbs")
      ->option_text("NAME (auto)");
  command
      ->add_option("--profile", flags->profile.name,
                   "What software adds to links, for what auto chooses by: a YAML file or a shipped profile "
                   "(docs/profiles.md)")
      ->option_text("NAME|FILE (of transport or machine)");
  command->add_option("--sockets", flags->sockets, "TCP connections, or queue pairs of verbs, per pair of ranks")
      ->option_text("COUNT (1)");
  command->add_flag("--checksum", flags->checksum, "Check a CRC32C of every chunk on TCP");
  command->add_option("--timeout", flags->timeout, "Seconds without progress after which a run fails")
      ->option_text("SECONDS (30)");
  flags->verbs.add_to(*command);
  flags->trace.add_to(*command, "the largest size's median iteration, and beside it of its slowest one,");
  command->add_option("-t,--topology", flags->plan_topology, "Take this topology instead of the plan's own")
      ->option_text("FILE");
  command
      ->add_option("--max-local-ranks", flags->max_local_ranks,
                   "Start at most so many ranks here (default: what processes, descriptors and memory allow)")
      ->option_text("COUNT");
  command->add_option("--rank", flags->rank, "Join as this rank instead of starting ranks here")->option_text("R");
  command->add_option("--world", flags->world, "The number of ranks")->option_text("N");
  command->add_option("--rendezvous", flags->rendezvous, "Where the ranks meet: rank 0 listens there")
      ->option_text("HOST:PORT");
  command->add_option("--secret-file", flags->secret_file, "The job's secret (default: ESPALIER_SECRET[_FILE])")
      ->option_text("FILE");
  command->add_option("--addresses", flags->addresses, "Addresses that each route binds and connects to (JSON)")
      ->option_text("FILE");
  add_csv_to(*command, session.console);
  command->footer(
      examples({"espalier run one-host all_reduce -b 1K -e 64M -f 4",
                "espalier run one-host all_gather -p ranks=8 --transport tcp",
                "espalier run plan.json -s 16M --trace run.json", "espalier run one-host all_reduce --csv > run.csv",
                "mpirun -n 8 espalier run dgx1v all_reduce",
                "espalier run cluster.yaml all_reduce --rank 3 --world 16 --rendezvous node0:29500"}) +
      "\nWithout a launcher, all ranks of the topology are started on this machine. Data is checked; exit 1 "
      "when any is wrong.");
  command->callback([flags, command, &session] {
    session.run = [flags, command, &session] {
      flags->names_size = names_size(*command);
      return run(session.console, *command, *flags);
    };
  });
}

}  // namespace espalier::cli
