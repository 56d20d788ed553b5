#include "schedule/verify/verify.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/counted.h"
#include "cli/flags/inputs.h"
#include "cli/flags/modes.h"
#include "cli/output/json_text.h"
#include "cli/output/table.h"
#include "cli/reports/describe_bound.h"
#include "cli/verbs/commands.h"
#include "planners/bounds/bound.h"

namespace espalier::cli {
namespace {

struct VerifyFlags {
  std::string plan;
  std::string topology;
};

nlohmann::ordered_json breaches_json(const VerifyReport& report) {
  nlohmann::ordered_json breaches = nlohmann::ordered_json::array();
  for (const Breach& breach : report.breaches) {
    nlohmann::ordered_json entry = {
        {"rule", to_string(breach.rule)}, {"transfer", nullptr}, {"message", breach.message}};
    if (!breach.transfer.is_none()) entry["transfer"] = breach.transfer.index();
    breaches.push_back(entry);
  }
  return breaches;
}

Table breaches_table(const VerifyReport& report) {
  Table table;
  for (const char* title : {"rule", "transfer", "message"}) table.add_column(title, "", Table::Align::left);
  for (const Breach& breach : report.breaches) {
    table.add_row({std::string(to_string(breach.rule)),
                   breach.transfer.is_none() ? "" : std::to_string(breach.transfer.index()), breach.message});
  }
  return table;
}

std::string breaches_text(const VerifyReport& report) {
  std::string text;
  for (const Breach& breach : report.breaches) {
    const std::string where =
        breach.transfer.is_none() ? "schedule" : fmt::format("transfer {}", breach.transfer.index());
    text += fmt::format("{}  {}: {}\n", to_string(breach.rule), where, breach.message);
  }
  if (report.breach_count > report.breaches.size()) {
    text += fmt::format("... and {} more\n", report.breach_count - report.breaches.size());
  }
  return text;
}

/// What became of the bound that a plan carries.
struct BoundCheck {
  std::string status;  ///< "none", "exact", "holds", "false" or "not checked".
  std::string text;    ///< One sentence; empty where nothing is to be said.
};

/// Holds the plan's bound against that of the network: a higher throughput is right but is not the least limit known,
/// a lower one is not proven.
BoundCheck check_bound(const Input& input) {
  const Schedule& schedule = *input.schedule;
  if (!schedule.bound) return {"none", ""};
  if (input.network_is_implied) return {"not checked", "the plan carries no network"};
  if (schedule.algorithm == "groups") return {"not checked", "it is of several groups that share the links"};
  const auto bound = planners::compute_bound(input.topology, schedule.collective);
  if (!bound) return {"not checked", bound.error().message};
  const Rational& claimed = schedule.bound->time_per_byte;
  const auto rate = [](const Rational& time) { return gigabytes_per_second(algbw_of(time)); };
  if (claimed == bound->time_per_byte) return {"exact", ""};
  if (claimed < bound->time_per_byte) {
    return {"holds",
            fmt::format("algbw {} GB/s cannot be passed, nor can {} GB/s", rate(claimed), rate(bound->time_per_byte))};
  }
  return {"false", fmt::format("the plan says that algbw {} GB/s cannot be passed; of {} that is proven for {} GB/s",
                               rate(claimed), input.topology.name(), rate(bound->time_per_byte))};
}

std::string bound_text(const BoundCheck& check) {
  if (check.status == "exact") return "bound: checked\n";
  return check.text.empty() ? "" : fmt::format("bound {}: {}\n", check.status, check.text);
}

ExitCode run(const Console& console, const VerifyFlags& flags) {
  const auto input = load_input(console, TopologyFlags{.argument = flags.plan}, flags.topology);
  if (!input) return refuse(console, input.error());
  if (!input->schedule) {
    return console.refuse_usage({ErrorCode::invalid_input, flags.plan + " is a topology, not a plan",
                                 "espalier topo validate checks topologies; espalier plan ... -o makes plans"});
  }
  const Schedule& schedule = *input->schedule;
  if (input->network_is_implied) {
    console.warn("the plan carries no network: its routes were not checked against a machine (give --topology)");
  }
  const VerifyReport report = verify(schedule, input->topology);
  // What breaks the rules of structure may have no collective to bound.
  const BoundCheck bound = report.ok() ? check_bound(*input) : BoundCheck{"not checked", ""};
  const bool is_good = report.ok() && bound.status != "false";
  if (console.csv) {
    console.print_bytes(breaches_table(report).csv());
  } else if (console.json) {
    const nlohmann::ordered_json document = {{"schema", "espalier/verify/1"},
                                             {"collective", to_string(schedule.collective.kind)},
                                             {"ranks", schedule.collective.rank_count},
                                             {"transfers", schedule.transfers.size()},
                                             {"routes_checked", !input->network_is_implied},
                                             {"ok", is_good},
                                             {"breaches", report.breach_count},
                                             {"reported", breaches_json(report)},
                                             {"bound", bound.status},
                                             {"bound_note", bound.text}};
    console.print(json_text(document));
  } else if (report.ok()) {
    const std::size_t transfers = schedule.transfers.size();
    console.print(fmt::format("{}: {} of {}{}, {} {} its promise\n", is_good ? "ok" : "failed",
                              to_string(schedule.collective.kind), counted(schedule.collective.rank_count, "rank"),
                              schedule.algorithm.empty() ? "" : " (" + schedule.algorithm + ")",
                              counted(transfers, "transfer"), transfers == 1 ? "keeps" : "keep"));
    console.print(bound_text(bound));
  } else {
    console.print(breaches_text(report));
    console.print(fmt::format("failed: {} breach{}\n", report.breach_count, report.breach_count == 1 ? "" : "es"));
  }
  return is_good ? ExitCode::ok : ExitCode::check_failed;
}

}  // namespace

void add_verify_command(CLI::App& app, Session& session) {
  const auto flags = std::make_shared<VerifyFlags>();
  CLI::App* command =
      app.add_subcommand("verify", "Prove that a plan keeps its collective's promise, or list every breach");
  command->add_option("PLAN", flags->plan, "Plan file (JSON), or -")->required();
  command->add_option("-t,--topology", flags->topology, "Check its routes on this topology instead of the plan's own");
  add_csv_to(*command, session.console);
  command->footer(
      examples({"espalier plan dgx1v all_gather -o - | espalier verify -", "espalier verify plan.json",
                "espalier verify plan.json --topology repaired.yaml"}) +
      "\nThe rules S1, S2 and so on are those of docs/schedule.md. A bound that the plan carries is computed anew.");
  command->callback([flags, &session] { session.run = [flags, &session] { return run(session.console, *flags); }; });
}

}  // namespace espalier::cli
