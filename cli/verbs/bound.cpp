#include "planners/bounds/bound.h"

#include <fmt/format.h>

#include "base/counted.h"
#include "cli/flags/collective_flags.h"
#include "cli/flags/inputs.h"
#include "cli/flags/modes.h"
#include "cli/output/json_text.h"
#include "cli/output/table.h"
#include "cli/reports/describe_bound.h"
#include "cli/verbs/commands.h"
#include "cli/verbs/groups.h"
#include "planners/bounds/less_hardware.h"

namespace espalier::cli {
namespace {

struct BoundFlags {
  TopologyFlags topology;
  CollectiveFlags collective;
  GroupFlags groups;
};

std::string exact_time(const Rational& time_per_byte) { return time_per_byte == 0 ? "0" : to_string(time_per_byte); }

void print_one(const Console& console, const Bound& bound, const Collective& collective, const Topology& topology) {
  const double factor = to_double(collective.busbw_factor());
  const auto algbw = algbw_of(bound.time_per_byte);
  console.print(fmt::format("# {}  {}  {}{}\n", topology.name(), to_string(collective.kind),
                            counted(collective.rank_count, "rank"), shares_text(collective)));
  console.print(fmt::format("algbw  {} GB/s{}\n", gigabytes_per_second(algbw), floor_mark(bound)));
  console.print(fmt::format("busbw  {} GB/s{}\n",
                            gigabytes_per_second(algbw ? std::optional(*algbw * factor) : std::nullopt),
                            floor_mark(bound)));
  console.print(fmt::format("time   {} s per byte of the message\n", exact_time(bound.time_per_byte)));
  if (!bound.cut.empty()) console.print(fmt::format("cut    {}\n", cut_text(bound, topology)));
  if (!bound.what.empty()) console.print(fmt::format("why    {}\n", bound.what));
}

ExitCode run_one(const Console& console, const Machine& machine, const CollectiveFlags& flags) {
  const Topology& topology = machine.topology;
  const auto collective = flags.resolve(topology);
  if (!collective) return console.refuse_usage(collective.error());
  const auto priced = planners::compute_priced_bound(topology, machine.lost.get(), *collective);
  if (!priced) return console.refuse(priced.error());
  if (!console.json) {
    print_one(console, priced->bound, *collective, topology);
    return ExitCode::ok;
  }
  nlohmann::ordered_json document;
  document["schema"] = "espalier/bound/1";
  document["topology"] = topology.name();
  document["collective"] = to_string(collective->kind);
  document["ranks"] = collective->rank_count;
  if (!collective->root.is_none()) document["root"] = topology.rank_name(collective->root);
  add_shares(document, *collective);
  document["bound"] = bound_json(*priced, *collective, topology);
  console.print(json_text(document));
  return ExitCode::ok;
}

ExitCode run_all(const Console& console, const Machine& machine) {
  const Topology& topology = machine.topology;
  Table table;
  table.add_column("collective", "", Table::Align::left);
  table.add_column("algbw", "(GB/s)");
  table.add_column("busbw", "(GB/s)");
  table.add_column("why", "", Table::Align::left);
  nlohmann::ordered_json bounds = nlohmann::ordered_json::array();
  for (const CollectiveKind kind : all_collective_kinds) {
    const auto collective = make_collective(kind, topology.rank_count(), std::nullopt);
    if (!collective) return console.refuse(collective.error());
    const auto priced = planners::compute_priced_bound(topology, machine.lost.get(), *collective);
    if (!priced) return console.refuse(priced.error());
    const auto algbw = algbw_of(priced->bound.time_per_byte);
    const double factor = to_double(collective->busbw_factor());
    table.add_row({std::string(to_string(kind)), gigabytes_per_second(algbw),
                   gigabytes_per_second(algbw ? std::optional(*algbw * factor) : std::nullopt), priced->bound.what});
    bounds.push_back({{"collective", to_string(kind)}, {"bound", bound_json(*priced, *collective, topology)}});
  }
  if (console.json) {
    const nlohmann::ordered_json document = {{"schema", "espalier/bounds/1"},
                                             {"topology", topology.name()},
                                             {"ranks", topology.rank_count()},
                                             {"bounds", bounds}};
    console.print(json_text(document));
  } else if (console.csv) {
    console.print_bytes(table.csv());
  } else {
    console.print(fmt::format("# {}  {}\n", topology.name(), counted(topology.rank_count(), "rank")) + table.text());
  }
  return ExitCode::ok;
}

Mode mode_of(const BoundFlags& flags) {
  if (flags.groups.any()) {
    return {"groups",
            "each has what COLLECTIVE says",
            join_options({topology_options, collective_options, group_options}),
            {}};
  }
  if (!flags.collective.name.empty()) {
    return {"one collective", "it is for groups", join_options({topology_options, collective_options}), {}};
  }
  return {"all collectives at once", "they do not have it in common", join_options({topology_options, csv_option}),
          "name a COLLECTIVE, such as all_gather"};
}

ExitCode run(const Console& console, const CLI::App& command, const BoundFlags& flags) {
  if (const auto idle = find_idle_option(command, mode_of(flags))) return console.refuse_usage(*idle);
  const auto machine = load_machine(console, flags.topology);
  if (!machine) return refuse(console, machine.error());
  if (flags.groups.any()) return bound_of_groups(console, machine->topology, flags.groups, flags.collective);
  return flags.collective.name.empty() ? run_all(console, *machine) : run_one(console, *machine, flags.collective);
}

}  // namespace

void add_bound_command(CLI::App& app, Session& session) {
  const auto flags = std::make_shared<BoundFlags>();
  CLI::App* command =
      app.add_subcommand("bound", "The throughput that no schedule can beat, and the cut that proves it");
  flags->topology.add_to(*command);
  flags->topology.add_damage_to(*command);
  flags->collective.add_to(*command, false);
  flags->groups.add_to(*command);
  add_csv_to(*command, session.console);
  command->footer(examples({"espalier bound dgx1v all_gather", "espalier bound cluster.yaml broadcast -r 3 --json",
                            "espalier bound dgx1v all_gather --without gpu0-gpu3#1",
                            "espalier bound dgx-a100-x2          # all collectives"}));
  command->callback([flags, command, &session] {
    session.run = [flags, command, &session] { return run(session.console, *command, *flags); };
  });
}

}  // namespace espalier::cli
