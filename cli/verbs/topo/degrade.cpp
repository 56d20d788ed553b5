#include "forecast/degrade.h"

#include <optional>

#include "base/parallel.h"
#include "cli/flags/algorithm_flags.h"
#include "cli/flags/collective_flags.h"
#include "cli/flags/flag_values.h"
#include "cli/flags/inputs.h"
#include "cli/flags/modes.h"
#include "cli/flags/sizes.h"
#include "cli/jobs/chosen_profile.h"
#include "cli/output/json_text.h"
#include "cli/output/progress.h"
#include "cli/reports/degrade_output.h"
#include "cli/verbs/topo/topo.h"

namespace espalier::cli {
namespace {

struct DegradeFlags {
  TopologyFlags topology;
  CollectiveFlags collective{"all_reduce", {}};
  std::string size = "64M";
  std::string algorithms = "auto";
  bool ranks = false;
  bool bound_only = false;
  ProfileFlags profile;
};

Mode mode_of(const DegradeFlags& flags) {
  constexpr std::array<std::string_view, 7> own = {"--fail-ranks", "--bound-only",   "--size", "--algorithm",
                                                   "--profile",    "--nccl-version", "--paths"};
  if (!flags.bound_only)
    return {"a plan per failure", "", join_options({topology_options, collective_options, own, csv_option}), {}};
  return {"--bound-only",
          "nothing is planned or simulated",
          join_options({topology_options, collective_options, std::span(own).first(2), csv_option}),
          {}};
}

ExitCode run(const Console& console, const CLI::App& command, const DegradeFlags& flags) {
  if (const auto idle = find_idle_option(command, mode_of(flags))) return console.refuse_usage(*idle);
  const auto machine = load_machine(console, flags.topology);
  if (!machine) return refuse(console, machine.error());
  const Topology* const topology = &machine->topology;
  const auto sized = flags.collective.resolve_sized(*topology);
  if (!sized) return console.refuse_usage(sized.error());
  const auto algorithms = parse_algorithms(flags.algorithms);
  if (!algorithms) return console.refuse_usage(algorithms.error());
  auto size = parse_message_size(flags.size);
  if (!size) return console.refuse_usage(size.error());
  if (sized->size && !was_given(command, "--size")) size = whole_elements(*sized->size, usual_type);
  const auto chosen = flags.profile.resolve({}, flags.bound_only ? std::string() : machine->profile);
  if (!chosen) return console.refuse_usage(chosen.error());
  const forecast::Question question{.machine = topology,
                                    .collective = sized->collective,
                                    .algorithms = flags.bound_only ? std::vector<std::string>() : *algorithms,
                                    .sizes = {*size},
                                    .how = {.profile = *chosen},
                                    .forms = forecast::PlanForms::parts};
  std::optional<Progress> progress(std::in_place, console, "failing", 0);
  const auto degradation = forecast::degrade(question, {.ranks = flags.ranks, .threads = usable_threads()},
                                             [&](const std::string& what, std::size_t, std::size_t total) {
                                               progress->expect(total);
                                               progress->step(what);
                                             });
  if (!degradation) return console.refuse(degradation.error());
  progress.reset();
  const std::string profile = *chosen ? (*chosen)->shown : std::string();
  if (console.csv) {
    console.print_bytes(degradation_table(*degradation).csv());
  } else {
    console.print(console.json ? json_text(degradation_json(*degradation, *topology, *size, profile))
                               : degradation_text(*degradation, *topology, *size, profile));
  }
  return ExitCode::ok;
}

}  // namespace

void add_topo_degrade_command(CLI::App& topo, Session& session) {
  const auto flags = std::make_shared<DegradeFlags>();
  CLI::App* command = topo.add_subcommand("degrade", "What each single failure costs: bound, best schedule, loss");
  flags->topology.add_to(*command);
  flags->topology.add_damage_to(*command);
  flags->collective.add_to(*command, false);
  command
      ->add_option("-s,--size", flags->size,
                   "The message size to plan and simulate for: 8, 64K, 1M or 1G (powers of two), 1MB (a million bytes)")
      ->option_text("SIZE (64M)");
  command
      ->add_option("-a,--algorithm", flags->algorithms, "Comma-separated; the fastest is taken: " + algorithm_names())
      ->option_text("NAMES (auto)");
  flags->profile.add_to(*command);
  command->add_flag("--fail-ranks", flags->ranks, "Ranks fail too, each leaving the others to go on without it");
  command->add_flag("--bound-only", flags->bound_only, "Bounds, without planning: quick on large machines");
  add_csv_to(*command, session.console);
  command->footer(
      examples({"espalier topo degrade dgx1v-nvlink all_reduce",
                "espalier topo degrade cluster.yaml -s 1G --fail-ranks",
                "espalier topo degrade dgx-h100-x4 all_gather --bound-only",
                "espalier topo degrade dgx1v-nvlink all_reduce --profile nccl-volta -s 256M"}) +
      "\nCOLLECTIVE is all_reduce when left out. Failures that a symmetry of the machine makes the same are\n"
      "shown once; count says how many they are.");
  command->callback([flags, command, &session] {
    session.run = [flags, command, &session] { return run(session.console, *command, *flags); };
  });
}

}  // namespace espalier::cli
