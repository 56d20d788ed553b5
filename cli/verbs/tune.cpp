#include <fmt/format.h>

#include <algorithm>

#include "base/format_units.h"
#include "base/parallel.h"
#include "cli/flags/algorithm_flags.h"
#include "cli/flags/collective_flags.h"
#include "cli/flags/flag_values.h"
#include "cli/flags/inputs.h"
#include "cli/flags/modes.h"
#include "cli/flags/sizes.h"
#include "cli/jobs/chosen_profile.h"
#include "cli/jobs/plan_shown.h"
#include "cli/output/json_text.h"
#include "cli/output/output_file.h"
#include "cli/output/progress.h"
#include "cli/reports/nccl_tuner_output.h"
#include "cli/reports/tune_output.h"
#include "cli/verbs/commands.h"
#include "forecast/candidate_runs.h"

namespace espalier::cli {
namespace {

struct TuneFlags {
  TopologyFlags topology;
  CollectiveFlags collective;
  std::string algorithms = "auto";
  std::string tolerance = "1%";
  std::string nccl_tuner;  ///< A file for NCCL's tuner.
  SizeFlags sizes;
  ProfileFlags profile;
};

ExitCode tune(const Console& console, const Topology& topology, const Collective& collective,
              planners::Candidates candidates, const std::vector<Bytes>& sizes, const planners::RegionOptions& options,
              ElementType type, const std::string& nccl_tuner, const std::shared_ptr<const forecast::Software>& profile,
              const std::string& version, const std::string& gpu) {
  forecast::CandidateRuns runs(topology, candidates, {size_of(type), {}, sim::ModelKind::link, {}, profile});
  auto regions = [&] {
    Progress progress(console, "tuning", 2 * sizes.size());
    return planners::find_regions(candidates, sizes, options, runs.times(),
                                  [&](Bytes size) { progress.step(format_rounded_size(size)); });
  }();
  if (!regions) return console.refuse(regions.error());
  auto errors = find_errors(topology, collective, sizes, profile.get(), version, gpu);
  if (!errors) return console.refuse(errors.error());
  const Tuning tuning{&topology,
                      collective,
                      candidates.bound,
                      std::string(to_string(type)),
                      std::move(*regions),
                      candidates.refused,
                      profile ? profile->shown : std::string(),
                      *std::move(errors)};
  if (console.csv) {
    console.print_bytes(tuning_table(tuning, true).csv());
  } else {
    console.print(console.json ? json_text(tuning_json(tuning)) : tuning_text(tuning));
  }
  if (nccl_tuner.empty()) return ExitCode::ok;
  const auto written = write_file(nccl_tuner, [&](std::ostream& stream) -> Result<void> {
    stream << nccl_tuner_csv(tuning);
    return {};
  });
  return written ? ExitCode::ok : console.refuse(written.error());
}

ExitCode run(const Console& console, const TuneFlags& flags) {
  const auto machine = load_machine(console, flags.topology);
  if (!machine) return refuse(console, machine.error());
  const Topology* const topology = &machine->topology;
  const auto collective = flags.collective.resolve(*topology);
  if (!collective) return console.refuse_usage(collective.error());
  if (!flags.nccl_tuner.empty()) {
    if (auto known = check_nccl_tuner(collective->kind); !known) return console.refuse_usage(known.error());
  }
  const auto algorithms = parse_algorithms(flags.algorithms, true);
  if (!algorithms) return console.refuse_usage(algorithms.error());
  if (const auto nccl = std::ranges::find_if(*algorithms, forecast::is_nccl_algorithm); nccl != algorithms->end()) {
    return console.refuse_usage({ErrorCode::invalid_input, "-a: " + *nccl + " does not compete here",
                                 "espalier simulate --profile shows it beside auto"});
  }
  const auto type = parse_element_type(flags.sizes.type);
  if (!type) return console.refuse_usage(type.error());
  const auto sizes = parse_sizes(flags.sizes, *type);
  if (!sizes) return console.refuse_usage(sizes.error());
  const auto tolerance = parse_part("--tolerance", flags.tolerance);
  if (!tolerance) return console.refuse_usage(tolerance.error());
  const auto profile = flags.profile.resolve({}, machine->profile);
  if (!profile) return console.refuse_usage(profile.error());
  planners::RegionOptions options;
  options.tolerance = to_double(*tolerance);
  options.element_size = size_of(*type);
  options.threads = usable_threads();
  auto candidates = plan_shown(console, {.machine = topology,
                                         .collective = *collective,
                                         .algorithms = *algorithms,
                                         .sizes = *sizes,
                                         .how = {.profile = *profile},
                                         .forms = forecast::PlanForms::parts,
                                         .lost = machine->lost.get()});
  if (!candidates) return console.refuse(candidates.error());
  if (candidates->made.empty()) return console.refuse(candidates->refused.front().error);
  // With auto, planners that do not make the collective are no news.
  std::erase_if(candidates->refused, [&](const planners::Refusal& refusal) {
    return flags.algorithms.find(refusal.planner) == std::string::npos;
  });
  return tune(console, *topology, *collective, std::move(*candidates), *sizes, options, *type, flags.nccl_tuner,
              *profile, flags.profile.version, machine->gpu);
}

}  // namespace

void add_tune_command(CLI::App& app, Session& session) {
  const auto flags = std::make_shared<TuneFlags>();
  CLI::App* command =
      app.add_subcommand("tune", "Which planner wins from which size to which, by how much, and what NCCL has like it");
  flags->topology.add_to(*command);
  flags->topology.add_damage_to(*command);
  flags->collective.add_to(*command, true);
  command->add_option("-a,--algorithm", flags->algorithms, "Comma-separated, those that compete: " + algorithm_names())
      ->option_text("NAMES (auto)");
  command
      ->add_option("-b,--minbytes", flags->sizes.begin,
                   "Smallest size: 8, 64K, 1M or 1G (powers of two, as are 1Mi and 1MiB), 1MB (a million bytes)")
      ->option_text("SIZE (1K)");
  command->add_option("-e,--maxbytes", flags->sizes.end, "Largest size")->option_text("SIZE (1G)");
  command->add_option("-f,--stepfactor", flags->sizes.factor, "Factor between sizes that are tried first")
      ->option_text("FACTOR (2)");
  command->add_option("-d,--datatype", flags->sizes.type, "Element type: int8, half, bfloat16, float, double, ...")
      ->option_text("TYPE (float)");
  command
      ->add_option("--tolerance", flags->tolerance,
                   "A planner is as good as the fastest while it is at most this much slower")
      ->option_text("PERCENT (1%)");
  flags->profile.add_to(*command);
  command->add_option("--nccl-tuner", flags->nccl_tuner, "Write a configuration for NCCL's example tuner to this file")
      ->option_text("FILE");
  add_csv_to(*command, session.console);
  command->footer(
      examples({"espalier tune dgx1v all_reduce", "espalier tune dgx1v all_reduce -e 64M --nccl-tuner nccl_tuner.conf",
                "espalier tune cluster.yaml all_gather -b 1K -e 4G -f 4",
                "espalier tune dgx-a100 all_reduce --profile nccl-ampere",
                "espalier tune dgx1v all_reduce --without gpu0-gpu1 --tolerance 0%"}) +
      "\nSizes double, and are bisected where the winner changes. A region's winner is as good as the fastest at\n"
      "all of its sizes, and the best of those. ahead is the second's time over the winner's, the least and the\n"
      "most in the region; 1.00 where the second is as good. NCCL names what NCCL_ALGO has most like the winner.");
  command->callback([flags, &session] { session.run = [flags, &session] { return run(session.console, *flags); }; });
}

}  // namespace espalier::cli
