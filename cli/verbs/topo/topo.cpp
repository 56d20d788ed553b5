#include "cli/verbs/topo/topo.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/counted.h"
#include "cli/flags/inputs.h"
#include "cli/flags/modes.h"
#include "cli/output/json_text.h"
#include "cli/output/output_file.h"
#include "cli/output/picture_file.h"
#include "cli/output/table.h"
#include "cli/reports/provenance_output.h"
#include "topology/analysis/describe.h"
#include "topology/analysis/symmetry.h"
#include "topology/draw/topology_svg.h"
#include "topology/yaml/write_topology.h"

namespace espalier::cli {
namespace {

struct TopoFlags {
  TopologyFlags topology;
  std::string output = "-";
  bool list = false;
  bool provenance = false;
  PictureFlags picture;
};

nlohmann::ordered_json diagnostics_json(const std::vector<Diagnostic>& diagnostics) {
  nlohmann::ordered_json entries = nlohmann::ordered_json::array();
  for (const Diagnostic& diagnostic : diagnostics) {
    entries.push_back({{"severity", diagnostic.severity == Severity::error ? "error" : "warning"},
                       {"code", diagnostic.code},
                       {"file", diagnostic.place.file},
                       {"line", diagnostic.place.line},
                       {"column", diagnostic.place.column},
                       {"message", diagnostic.message},
                       {"help", diagnostic.help}});
  }
  return entries;
}

nlohmann::ordered_json topology_json(const Topology& topology, const std::vector<Diagnostic>& diagnostics) {
  return {{"schema", "espalier/topology/1"}, {"name", topology.name()},
          {"ranks", topology.rank_count()},  {"nodes", topology.node_count()},
          {"links", topology.link_count()},  {"diagnostics", diagnostics_json(diagnostics)}};
}

ExitCode list_machines(const Console& console) {
  const std::vector<std::string> machines = shipped_machines();
  if (console.json) {
    const nlohmann::ordered_json document = {{"schema", "espalier/machines/1"}, {"machines", machines}};
    console.print(json_text(document));
    return ExitCode::ok;
  }
  for (const std::string& machine : machines) console.print(machine + "\n");
  return ExitCode::ok;
}

ExitCode show_provenance(const Console& console, const TopoFlags& flags) {
  const auto reading = read_with_findings(console, flags.topology);
  if (!reading) return console.refuse(reading.error());
  if (!reading->topology || has_errors(reading->diagnostics)) {
    console.show(reading->diagnostics);
    return ExitCode::check_failed;
  }
  if (console.csv) {
    console.print_bytes(provenance_table(*reading->topology, reading->provenance).csv());
    return ExitCode::ok;
  }
  console.print(console.json ? json_text(provenance_json(*reading->topology, reading->provenance))
                             : provenance_text(*reading->topology, reading->provenance));
  return ExitCode::ok;
}

/// A row per link.
Table links_table(const Topology& topology) {
  Table table;
  for (const char* title : {"link", "from", "to", "class"}) table.add_column(title, "", Table::Align::left);
  table.add_column("bandwidth", "(GB/s)");
  table.add_column("latency", "(us)");
  for (std::size_t i = 0; i < topology.link_count(); ++i) {
    const Link& link = topology.link(LinkId(i));
    table.add_row({topology.link_name(LinkId(i)), topology.node(link.tail).id, topology.node(link.head).id,
                   link.link_class, fmt::format("{}", static_cast<double>(link.bandwidth().bytes_per_second) / 1e9),
                   fmt::format("{}", link.latency.seconds() * 1e6)});
  }
  return table;
}

ExitCode draw(const Console& console, const Topology& topology, const PictureFlags& picture) {
  if (console.json) {
    return console.refuse_usage({ErrorCode::invalid_input,
                                 "--json does not apply to --svg and --png: a picture is no document", "leave it out"});
  }
  if (picture.svg == "-" && picture.png == "-") {
    return console.refuse_usage({ErrorCode::invalid_input, "--svg - and --png - would both write to standard output",
                                 "write one of them to a file"});
  }
  const auto written = picture.write(console, topology_svg(topology));
  return written ? ExitCode::ok : console.refuse(written.error());
}

ExitCode show(const Console& console, const TopoFlags& flags) {
  if (flags.list) {
    if (flags.topology.argument.empty() && !flags.topology.first_given()) return list_machines(console);
    const std::string name = flags.topology.argument.empty() ? *flags.topology.first_given() : "TOPOLOGY";
    return console.refuse_usage({ErrorCode::invalid_input,
                                 name + " does not apply to --list: it lists all shipped machines",
                                 fmt::format("leave {} or --list out", name)});
  }
  if (flags.topology.argument.empty()) {
    return console.refuse_usage({ErrorCode::invalid_input, "topo show needs a TOPOLOGY", "or use --list"});
  }
  if (flags.provenance) return show_provenance(console, flags);
  const auto topology = load_topology(console, flags.topology);
  if (!topology) return refuse(console, topology.error());
  if (flags.picture.are_given()) return draw(console, *topology, flags.picture);
  if (console.csv) {
    console.print_bytes(links_table(*topology).csv());
  } else if (console.json) {
    console.print(json_text(topology_json(*topology, find_asymmetry(*topology))));
  } else {
    console.print(describe_topology(*topology));
  }
  return ExitCode::ok;
}

ExitCode validate(const Console& console, const TopoFlags& flags) {
  const auto findings = read_with_findings(console, flags.topology);
  if (!findings) return console.refuse(findings.error());
  const TopologyReading& reading = *findings;
  const bool ok = reading.topology && !has_errors(reading.diagnostics);
  console.show(reading.diagnostics);
  if (console.json) {
    nlohmann::ordered_json document = {{"schema", "espalier/topology/1"}, {"ok", ok}};
    if (reading.topology) document.update(topology_json(*reading.topology, reading.diagnostics));
    document["diagnostics"] = diagnostics_json(reading.diagnostics);
    console.print(json_text(document));
  } else if (ok) {
    console.print(
        fmt::format("ok: {}, {}, {}, {}\n", reading.topology->name(), counted(reading.topology->rank_count(), "rank"),
                    counted(reading.topology->node_count(), "node"), counted(reading.topology->link_count(), "link")));
  }
  return ok ? ExitCode::ok : ExitCode::check_failed;
}

ExitCode expand(const Console& console, const TopoFlags& flags) {
  const auto machine = load_machine(console, flags.topology);
  if (!machine) return refuse(console, machine.error());
  const auto written = write_file(flags.output, [&](std::ostream& stream) -> Result<void> {
    stream << (console.json ? write_topology_json(machine->topology, {}, machine->profile, machine->gpu) + "\n"
                            : write_topology(machine->topology, {}, machine->profile, machine->gpu));
    return {};
  });
  return written ? ExitCode::ok : console.refuse(written.error());
}

using TopoAction = ExitCode (*)(const Console&, const TopoFlags&);

CLI::App* add_action(CLI::App& topo, Session& session, const std::shared_ptr<TopoFlags>& flags, const std::string& name,
                     const std::string& what, TopoAction action) {
  CLI::App* command = topo.add_subcommand(name, what);
  command->callback([flags, action, &session] {
    session.run = [flags, action, &session] { return action(session.console, *flags); };
  });
  return command;
}

}  // namespace

void add_topo_command(CLI::App& app, Session& session) {
  const auto flags = std::make_shared<TopoFlags>();
  CLI::App* topo = app.add_subcommand("topo", "Show, check, expand, damage, generate and import topologies");
  topo->require_subcommand(1);
  topo->footer(examples({"espalier topo show dgx1v", "espalier topo gen torus --dims 4x4 -o torus.yaml",
                         "espalier topo degrade dgx1v-nvlink all_reduce"}));

  CLI::App* show_command =
      add_action(*topo, session, flags, "show", "Nodes, link classes, GPU-to-GPU matrix, bisection, warnings", show);
  flags->topology.add_to(*show_command, "TOPOLOGY", false);
  flags->topology.add_damage_to(*show_command);
  CLI::Option* list = show_command->add_flag("--list", flags->list, "List the shipped machines");
  CLI::Option* provenance = show_command->add_flag("--provenance", flags->provenance,
                                                   "Where the values came from: measured, captured, preset or assumed");
  flags->picture.add_to(*show_command, "it");
  add_csv_to(*show_command, session.console);
  for (const char* picture : {"--svg", "--png"}) {
    show_command->get_option(picture)->excludes(list, provenance, show_command->get_option("--csv"));
  }
  list->excludes(show_command->get_option("--csv"));
  provenance->excludes(list);
  for (const char* damage : {"--ranks", "--without", "--slow"}) provenance->excludes(show_command->get_option(damage));
  show_command->footer(examples({"espalier topo show dgx1v", "espalier topo show dgx1v --without gpu0-gpu1",
                                 "espalier topo show dgx1v --slow gpu0-gpu1=0.25", "espalier topo show --list",
                                 "espalier topo show dgx1v --csv > links.csv",
                                 "espalier topo show dgx1v --svg dgx1v.svg --png dgx1v.png"}));

  CLI::App* validate_command = add_action(*topo, session, flags, "validate", "Check a topology file", validate);
  flags->topology.add_to(*validate_command);
  validate_command->footer(
      examples({"espalier topo gen torus | espalier topo validate -", "espalier topo validate cluster.yaml",
                "espalier topo validate --strict cluster.yaml"}));

  CLI::App* expand_command =
      add_action(*topo, session, flags, "expand", "Write the plain form: every node, every link", expand);
  flags->topology.add_to(*expand_command);
  flags->topology.add_damage_to(*expand_command);
  expand_command->add_option("-o,--output", flags->output, "Write to this file (- is standard output)")
      ->option_text("FILE");
  expand_command->footer(examples({"espalier topo expand dgx-h100-x4 -o plain.yaml",
                                   "espalier topo expand dgx-h100-x4 --without box0.nic3 -o damaged.yaml"}));

  add_topo_degrade_command(*topo, session);
  add_topo_gen_command(*topo, session);
  add_topo_import_command(*topo, session);
  add_topo_detect_command(*topo, session);
}

}  // namespace espalier::cli
