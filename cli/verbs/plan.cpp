#include <fmt/format.h>

#include <algorithm>

#include "base/counted.h"
#include "base/format_units.h"
#include "base/parallel.h"
#include "cli/flags/algorithm_flags.h"
#include "cli/flags/collective_flags.h"
#include "cli/flags/flag_values.h"
#include "cli/flags/inputs.h"
#include "cli/flags/modes.h"
#include "cli/flags/packing_flags.h"
#include "cli/flags/sizes.h"
#include "cli/jobs/chosen_profile.h"
#include "cli/jobs/plan_shown.h"
#include "cli/measured/error_ranges.h"
#include "cli/output/describe_repaired.h"
#include "cli/output/json_text.h"
#include "cli/output/output_file.h"
#include "cli/output/progress.h"
#include "cli/output/table.h"
#include "cli/reports/describe_bound.h"
#include "cli/verbs/commands.h"
#include "cli/verbs/groups.h"
#include "forecast/candidate_runs.h"
#include "planners/lp/trees/tree_memory.h"
#include "schedule/json/schedule_json.h"

namespace espalier::cli {
namespace {

struct PlanFlags {
  TopologyFlags topology;
  CollectiveFlags collective;
  GroupFlags groups;
  std::string algorithms = "auto";
  PackingFlags packing;
  std::string size = "64M";
  ProfileFlags profile;
  std::string output;
  std::optional<std::uint32_t> rank;  ///< Whose part alone is written.
  std::string from;                   ///< A plan whose trees planning begins with.
  bool verbose = false;
};

std::string share(const RunReport& run, const Rational& bound, const Collective& collective) {
  return fmt::format("{:.1f}", 100 * run.of_bound(bound, collective));
}

/// `errors`: with columns of what is known of them; null: without.
Table choice_table(const planners::Choice& choice, const CallErrors* errors) {
  const Collective& collective = choice.candidate->collective();
  const Bound& bound = *choice.candidate->schedule.bound;
  Table table;
  table.add_column("algorithm", "", Table::Align::left);
  table.add_column("time", "(us)");
  table.add_column("algbw", "(GB/s)");
  table.add_column("busbw", "(GB/s)");
  table.add_column("of bound", "(%)");
  table.add_column("transfers");
  table.add_column("chunk", "(B)");
  table.add_column("", "", Table::Align::left);
  const bool has_ranges = errors != nullptr && !errors->by_size.empty();
  if (has_ranges) add_range_columns(table);
  for (const planners::Trial& trial : choice.trials) {
    const std::string transfers = std::to_string(trial.candidate->transfer_count());
    if (!trial.run) {
      table.add_row({trial.candidate->planner, fmt::format("> {:.2f}", trial.min_time * 1e6), "", "", "", transfers, "",
                     std::string(planners::describe(trial.run.error()))});
      continue;
    }
    std::vector<std::string> cells = {trial.candidate->planner,
                                      fmt::format("{:.2f}", static_cast<double>(trial.run->elapsed.count) / 1e6),
                                      gigabytes_per_second(trial.run->algbw()),
                                      gigabytes_per_second(trial.run->busbw(collective)),
                                      share(*trial.run, bound.time_per_byte, collective),
                                      transfers,
                                      std::to_string(trial.run->chunk.count),
                                      trial.candidate == choice.candidate ? "<- chosen" : ""};
    if (has_ranges) add_range_cells(cells, errors->at(0, trial.candidate->planner), trial.run->elapsed.seconds());
    table.add_row(std::move(cells));
  }
  return table;
}

std::string choice_text(const planners::Choice& choice, const planners::Candidates& candidates,
                        const Topology& topology, Bytes size, const std::string& profile, const CallErrors& errors) {
  const Collective& collective = choice.candidate->collective();
  const Bound& bound = *choice.candidate->schedule.bound;
  std::string text = fmt::format("# {}  {}  {}  {}{}{}\n", topology.name(), to_string(collective.kind),
                                 counted(collective.rank_count, "rank"), format_size(size), shares_text(collective),
                                 profile.empty() ? "" : "  profile " + profile);
  text += choice_table(choice, nullptr).text();
  text += repaired_text(*choice.candidate);
  for (const planners::Refusal& refusal : candidates.refused)
    text += fmt::format("# no {}: {}\n", refusal.planner, refusal.error.message);
  const auto algbw = algbw_of(bound.time_per_byte);
  if (algbw) {
    text +=
        fmt::format("# bound: busbw {} GB/s{}{}\n", gigabytes_per_second(*algbw * to_double(collective.busbw_factor())),
                    floor_mark(bound), bound.cut.empty() ? "" : ", by the cut " + cut_text(bound, topology, 6));
  }
  const std::string chosen = choice.candidate->planner;
  text += errors_text(errors, std::span(&chosen, 1));
  return text + "# " + choice.why + "\n";
}

nlohmann::ordered_json choice_json(const planners::Choice& choice, const planners::Candidates& candidates,
                                   const Topology& topology, Bytes size, const std::string& profile,
                                   const CallErrors& errors) {
  const Collective& collective = choice.candidate->collective();
  const Bound& bound = *choice.candidate->schedule.bound;
  nlohmann::ordered_json document = {{"schema", "espalier/plan/1"},
                                     {"topology", topology.name()},
                                     {"collective", to_string(collective.kind)},
                                     {"ranks", collective.rank_count},
                                     {"size", size.count},
                                     {"chosen", choice.candidate->planner},
                                     {"why", choice.why}};
  if (!profile.empty()) document["profile"] = profile;
  add_shares(document, collective);
  document["candidates"] = nlohmann::ordered_json::array();
  for (const planners::Trial& trial : choice.trials) {
    nlohmann::ordered_json entry = {{"algorithm", trial.candidate->planner},
                                    {"transfers", trial.candidate->transfer_count()},
                                    {"least_time", trial.min_time}};
    if (trial.run) {
      entry["time"] = trial.run->elapsed.seconds();
      entry["algbw"] = trial.run->algbw();
      entry["busbw"] = trial.run->busbw(collective);
      entry["of_bound"] = trial.run->of_bound(bound.time_per_byte, collective);
      entry["chunk"] = trial.run->chunk.count;
      entry["ahead"] = trial.run->ahead;
      if (!errors.by_size.empty()) {
        entry["range"] = range_json(errors.at(0, trial.candidate->planner), trial.run->elapsed.seconds());
      }
    } else {
      entry["no_run"] = planners::describe(trial.run.error());
    }
    if (auto repaired = repaired_json(*trial.candidate)) entry["repaired"] = *std::move(repaired);
    document["candidates"].push_back(entry);
  }
  document["refused"] = nlohmann::ordered_json::array();
  for (const planners::Refusal& refusal : candidates.refused) {
    document["refused"].push_back({{"algorithm", refusal.planner}, {"reason", refusal.error.message}});
  }
  document["bound"] = bound_json(bound, collective, topology);
  return document;
}

ExitCode write_part(const Console& console, const PlanFlags& flags, const planners::Candidate& candidate,
                    const Topology& topology) {
  const Rank rank(*flags.rank);
  const auto part = forecast::part_of_rank(candidate, topology, rank);
  if (!part) return console.refuse(part.error());
  const auto written = write_file(flags.output, [&](std::ostream& stream) {
    return write_schedule(stream, *part, topology,
                          WriteOptions{.embed_network = candidate.is_stored(), .of_rank = rank});
  });
  if (!written) return console.refuse(written.error());
  if (flags.output != "-") {
    console.note(fmt::format("wrote {} ({} of rank {}, verified as part of the whole)", flags.output,
                             counted(part->transfers.size(), "transfer"), *flags.rank));
  }
  return ExitCode::ok;
}

ExitCode write_plan(const Console& console, const PlanFlags& flags, const planners::Candidate& candidate,
                    const Topology& topology) {
  if (flags.rank) return write_part(console, flags, candidate, topology);
  const auto schedule = forecast::whole_schedule(candidate);
  if (!schedule) return console.refuse(schedule.error());
  const auto written = write_file(
      flags.output, [&](std::ostream& stream) { return write_schedule(stream, **schedule, topology, WriteOptions{}); });
  if (!written) return console.refuse(written.error());
  if (flags.output != "-")
    console.note(
        fmt::format("wrote {} ({}, verified)", flags.output, counted((*schedule)->transfers.size(), "transfer")));
  return ExitCode::ok;
}

/// The trees of a plan that was made before; none where none is named.
tl::expected<planners::TreeMemory, InputFailure> known_trees(const Console& console, const std::string& plan) {
  planners::TreeMemory memory;
  if (plan.empty()) return memory;
  TopologyFlags file;
  file.argument = plan;
  const auto input = load_input(console, file);
  if (!input) return tl::unexpected(input.error());
  if (!input->schedule) {
    return tl::unexpected(InputFailure{
        {ErrorCode::invalid_input, "--from: " + plan + " is no plan", "name a plan that plan -o wrote"}, false, true});
  }
  memory.keep(input->topology, *input->schedule);
  return memory;
}

Mode mode_of(const PlanFlags& flags) {
  constexpr std::array<std::string_view, 9> own = {"--output",  "--algorithm",    "--size",  "--from", "--verbose",
                                                   "--profile", "--nccl-version", "--paths", "--rank"};
  if (flags.groups.any()) {
    return {"groups",
            "they are planned together by one linear program, for large messages",
            join_options({topology_options, collective_options, group_options, std::span(own).first(1)}),
            {}};
  }
  return {"one collective",
          "it is for groups",
          join_options({topology_options, collective_options, packing_options, own, csv_option}),
          {}};
}

ExitCode run(const Console& console, const CLI::App& command, const PlanFlags& flags) {
  if (const auto idle = find_idle_option(command, mode_of(flags))) return console.refuse_usage(*idle);
  const auto machine = load_machine(console, flags.topology);
  if (!machine) return refuse(console, machine.error());
  const Topology* const topology = &machine->topology;
  if (flags.groups.any()) return plan_of_groups(console, *topology, flags.groups, flags.collective, flags.output);
  const auto sized = flags.collective.resolve_sized(*topology);
  if (!sized) return console.refuse_usage(sized.error());
  const Collective* const collective = &sized->collective;
  if (flags.rank && flags.output.empty()) {
    return console.refuse_usage(
        {ErrorCode::invalid_input, "--rank says what is written, and nothing is", "name a file with -o"});
  }
  if (flags.rank && *flags.rank >= topology->rank_count()) {
    return console.refuse_usage({ErrorCode::invalid_input,
                                 fmt::format("--rank: there is no rank {} of {}", *flags.rank, topology->rank_count()),
                                 "ranks are numbered from 0 in the machine's order"});
  }
  const auto algorithms = parse_algorithms(flags.algorithms, true);
  if (!algorithms) return console.refuse_usage(algorithms.error());
  const auto limits = flags.packing.resolve();
  if (!limits) return console.refuse_usage(limits.error());
  auto size = parse_message_size(flags.size);
  if (!size) return console.refuse_usage(size.error());
  if (sized->size && !names_size(command)) size = whole_elements(*sized->size, ElementType::float32);
  const auto profile = flags.profile.resolve({}, machine->profile);
  if (!profile) return console.refuse_usage(profile.error());
  const auto known = known_trees(console, flags.from);
  if (!known) return refuse(console, known.error());
  planners::FixedPacing nothing_fixed;
  nothing_fixed.threads = usable_threads();
  const forecast::Question question{.machine = topology,
                                    .collective = *collective,
                                    .algorithms = *algorithms,
                                    .sizes = {*size},
                                    .how = {.pacing = nothing_fixed, .profile = *profile},
                                    .forms = forecast::PlanForms::parts,
                                    .lost = machine->lost.get(),
                                    .packing = *limits,
                                    .known = &*known};
  auto candidates = plan_shown(console, question, flags.verbose);
  if (!candidates) return console.refuse(candidates.error());
  if (candidates->made.empty()) return console.refuse(candidates->refused.front().error);
  forecast::CandidateRuns runs(*topology, *candidates, question.how);
  const std::string shown = *profile ? (*profile)->shown : std::string();
  const auto choice = [&] {
    const Progress progress(console, "simulating what was planned", 0);
    return runs.choose(*size);
  }();
  if (!choice) return console.refuse(choice.error());
  const auto errors =
      find_errors(*topology, *collective, question.sizes, profile->get(), flags.profile.version, machine->gpu);
  if (!errors) return console.refuse(errors.error());
  planners::Candidate& chosen = candidates->made[static_cast<std::size_t>(choice->candidate - candidates->made.data())];
  chosen.schedule.pacing = SizedPacing{*size, choice->run.chunk, choice->run.ahead};
  if (flags.output == "-" && console.csv) {
    return console.refuse_usage(
        {ErrorCode::invalid_input, "--csv and -o - would both write to standard output", "write the plan to a file"});
  }
  if (flags.output == "-") return write_plan(console, flags, *choice->candidate, *topology);
  if (console.csv) {
    console.print_bytes(choice_table(*choice, &*errors).csv());
  } else {
    console.print(console.json ? json_text(choice_json(*choice, *candidates, *topology, *size, shown, *errors))
                               : choice_text(*choice, *candidates, *topology, *size, shown, *errors));
  }
  return flags.output.empty() ? ExitCode::ok : write_plan(console, flags, *choice->candidate, *topology);
}

}  // namespace

void add_plan_command(CLI::App& app, Session& session) {
  const auto flags = std::make_shared<PlanFlags>();
  CLI::App* command = app.add_subcommand("plan", "Plan a collective, say why, and write the plan");
  flags->topology.add_to(*command);
  flags->topology.add_damage_to(*command);
  flags->collective.add_to(*command, true);
  flags->groups.add_to(*command);
  command
      ->add_option("-a,--algorithm", flags->algorithms, "Comma-separated; the fastest is taken: " + algorithm_names())
      ->option_text("NAMES (auto)");
  command
      ->add_option("-s,--size", flags->size,
                   "The message size to be fast at: 8, 64K, 1M or 1G (powers of two), 1MB (a million bytes)")
      ->option_text("SIZE (64M)");
  flags->profile.add_to(*command);
  flags->packing.add_to(*command);
  command->add_option("-o,--output", flags->output, "Write the plan to this file (- is standard output)")
      ->option_text("FILE");
  command->add_option("--rank", flags->rank, "Write the transfers of this rank alone; of plans of any number of ranks")
      ->option_text("R");
  command
      ->add_option("--from", flags->from,
                   "A plan of the machine as it was: its trees are what planning begins with, which is quicker")
      ->option_text("PLAN");
  command->add_flag("-v,--verbose", flags->verbose,
                    "Tell every round of every linear program: columns, what they reach, its limit, the gap");
  add_csv_to(*command, session.console);
  command->footer(examples({"espalier plan dgx1v-degraded all_gather -s 256M -o plan.json",
                            "espalier plan dgx1v all_reduce --without gpu0-gpu1",
                            "espalier plan cluster.yaml broadcast -r 3 -a packing -o -",
                            "espalier plan mi250-x2 all_gather -a packing --max-depth 4 --gap 1%",
                            "espalier plan dgx1v all_gather -a packing --without gpu0-gpu1 --from plan.json -v",
                            "espalier plan dgx-a100-x2 all_reduce -s 64K",
                            "espalier plan dgx-a100-x2 all_reduce -s 64M --rank 3 -o part3.json",
                            "espalier plan dgx-h100 all_reduce -s 1M --profile nccl-hopper"}));
  command->callback([flags, command, &session] {
    session.run = [flags, command, &session] { return run(session.console, *command, *flags); };
  });
}

}  // namespace espalier::cli
