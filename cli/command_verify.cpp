#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/counted.h"
#include "cli/commands.h"
#include "cli/inputs.h"
#include "cli/json_text.h"
#include "schedule/verify.h"

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
  if (console.json) {
    const nlohmann::ordered_json document = {{"schema", "espalier/verify/1"},
                                             {"collective", to_string(schedule.collective.kind)},
                                             {"ranks", schedule.collective.rank_count},
                                             {"transfers", schedule.transfers.size()},
                                             {"routes_checked", !input->network_is_implied},
                                             {"ok", report.ok()},
                                             {"breaches", report.breach_count},
                                             {"reported", breaches_json(report)}};
    console.print(json_text(document));
  } else if (report.ok()) {
    const std::size_t transfers = schedule.transfers.size();
    console.print(fmt::format("ok: {} of {}{}, {} {} its promise\n", to_string(schedule.collective.kind),
                              counted(schedule.collective.rank_count, "rank"),
                              schedule.algorithm.empty() ? "" : " (" + schedule.algorithm + ")",
                              counted(transfers, "transfer"), transfers == 1 ? "keeps" : "keep"));
  } else {
    console.print(breaches_text(report));
    console.print(fmt::format("failed: {} breach{}\n", report.breach_count, report.breach_count == 1 ? "" : "es"));
  }
  return report.ok() ? ExitCode::ok : ExitCode::check_failed;
}

}  // namespace

void add_verify_command(CLI::App& app, Session& session) {
  const auto flags = std::make_shared<VerifyFlags>();
  CLI::App* command =
      app.add_subcommand("verify", "Prove that a plan keeps its collective's promise, or list every breach");
  command->add_option("PLAN", flags->plan, "Plan file (JSON), or -")->required();
  command->add_option("-t,--topology", flags->topology, "Check its routes on this topology instead of the plan's own");
  command->footer(examples({"espalier plan dgx1v all_gather -o - | espalier verify -", "espalier verify plan.json",
                            "espalier verify plan.json --topology repaired.yaml"}) +
                  "\nThe rules S1, S2, ... are those of docs/schedule.md.");
  command->callback([flags, &session] { session.run = [flags, &session] { return run(session.console, *flags); }; });
}

}  // namespace espalier::cli
