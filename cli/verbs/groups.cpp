#include "cli/verbs/groups.h"

#include <fmt/format.h>

#include "base/counted.h"
#include "cli/output/json_text.h"
#include "cli/output/output_file.h"
#include "cli/output/progress.h"
#include "cli/output/table.h"
#include "cli/reports/describe_bound.h"
#include "planners/bounds/bound.h"
#include "schedule/json/schedule_json.h"

namespace espalier::cli {
namespace {

/// Says aloud what the program leaves out.
void warn_of_switches(const Console& console, const Topology& topology) {
  for (const Node& node : topology.nodes()) {
    if (!node.multicast && !node.reduction) continue;
    return console.warn("for groups at once, switches that copy or add in the network are taken to forward only");
  }
}

std::optional<double> busbw_of(const Rational& time_per_byte, const Collective& collective) {
  const auto algbw = algbw_of(time_per_byte);
  return algbw ? std::optional(*algbw * to_double(collective.busbw_factor())) : std::nullopt;
}

nlohmann::ordered_json number_json(std::optional<double> number) {
  return number ? nlohmann::ordered_json(*number) : nlohmann::ordered_json(nullptr);
}

std::string head_text(const std::vector<planners::GroupWork>& works) {
  return fmt::format("# {}  {}  {} at once\n", works.front().topology.name(), to_string(works.front().collective.kind),
                     counted(works.size(), "group"));
}

nlohmann::ordered_json head_json(std::string_view schema, const std::vector<planners::GroupWork>& works,
                                 const Rational& time_per_byte) {
  return {{"schema", schema},
          {"topology", works.front().topology.name()},
          {"collective", to_string(works.front().collective.kind)},
          {"bound", {{"time_per_byte", to_string(time_per_byte)}, {"algbw", number_json(algbw_of(time_per_byte))}}}};
}

nlohmann::ordered_json group_json(const planners::GroupWork& work, const Rational& time_per_byte) {
  nlohmann::ordered_json ranks = nlohmann::ordered_json::array();
  for (std::size_t r = 0; r < work.topology.rank_count(); ++r) ranks.push_back(work.topology.rank_name(Rank(r)));
  return {{"ranks", ranks}, {"busbw", number_json(busbw_of(time_per_byte, work.collective))}};
}

/// The name of a group's file: its number in the place of every %g.
std::string file_of(std::string pattern, std::size_t group) {
  for (std::size_t at = pattern.find("%g"); at != std::string::npos; at = pattern.find("%g", at)) {
    const std::string number = std::to_string(group);
    pattern.replace(at, 2, number);
    at += number.size();
  }
  return pattern;
}

Result<void> write_plans(const Console& console, const std::vector<planners::GroupWork>& works,
                         const planners::JointPlan& plan, const std::string& pattern) {
  for (std::size_t i = 0; i < works.size(); ++i) {
    const std::string name = file_of(pattern, i);
    auto written = write_file(name, [&](std::ostream& stream) {
      return write_schedule(stream, plan.schedules[i], works[i].topology, WriteOptions{});
    });
    if (!written) return written;
    console.note(fmt::format("wrote {} ({}, verified)", name, counted(plan.schedules[i].transfers.size(), "transfer")));
  }
  return {};
}

std::string plan_text(const std::vector<planners::GroupWork>& works, const planners::JointPlan& plan) {
  Table table;
  table.add_column("group");
  table.add_column("ranks", "", Table::Align::left);
  table.add_column("busbw", "(GB/s)");
  table.add_column("transfers");
  for (std::size_t i = 0; i < works.size(); ++i) {
    table.add_row({std::to_string(i), ranks_text(works[i].topology),
                   gigabytes_per_second(busbw_of(plan.time_per_byte, works[i].collective)),
                   std::to_string(plan.schedules[i].transfers.size())});
  }
  const double of_bound =
      plan.time_per_byte == 0 ? 1 : to_double(Rational(plan.bound.time_per_byte / plan.time_per_byte));
  return head_text(works) + table.text() +
         fmt::format(
             "# together their fullest link takes {} s per byte of each group's message: {:.1f} % of the bound\n",
             to_string(plan.time_per_byte), 100 * of_bound);
}

nlohmann::ordered_json plan_json(const std::vector<planners::GroupWork>& works, const planners::JointPlan& plan) {
  auto document = head_json("espalier/group-plans/1", works, plan.bound.time_per_byte);
  document["time_per_byte"] = to_string(plan.time_per_byte);
  document["groups"] = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < works.size(); ++i) {
    document["groups"].push_back(group_json(works[i], plan.time_per_byte));
    document["groups"].back()["transfers"] = plan.schedules[i].transfers.size();
  }
  return document;
}

}  // namespace

ExitCode bound_of_groups(const Console& console, const Topology& topology, const GroupFlags& flags,
                         const CollectiveFlags& collective) {
  if (collective.name.empty()) {
    return console.refuse_usage({ErrorCode::invalid_input,
                                 "--groups, --groups-of and --groups-across need a COLLECTIVE", "such as all_gather"});
  }
  const auto works = flags.resolve(topology, collective);
  if (!works) return console.refuse_usage(works.error());
  warn_of_switches(console, topology);
  const auto bound = planners::bound_groups(*works);
  if (!bound) return console.refuse(bound.error());
  Table table;
  table.add_column("group");
  table.add_column("ranks", "", Table::Align::left);
  table.add_column("busbw", "(GB/s)");
  table.add_column("alone", "(GB/s)");
  auto document = head_json("espalier/group-bounds/1", *works, bound->time_per_byte);
  document["groups"] = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < works->size(); ++i) {
    const planners::GroupWork& work = (*works)[i];
    const auto alone = planners::compute_bound(work.topology, work.collective);
    if (!alone) return console.refuse(alone.error());
    const auto alone_busbw = busbw_of(alone->time_per_byte, work.collective);
    table.add_row({std::to_string(i), ranks_text(work.topology),
                   gigabytes_per_second(busbw_of(bound->time_per_byte, work.collective)),
                   gigabytes_per_second(alone_busbw)});
    document["groups"].push_back(group_json(work, bound->time_per_byte));
    document["groups"].back()["busbw_alone"] = number_json(alone_busbw);
  }
  const std::string text =
      head_text(*works) + table.text() +
      fmt::format("# algbw {} GB/s for every group, {} s per byte of its message\n",
                  gigabytes_per_second(algbw_of(bound->time_per_byte)), to_string(bound->time_per_byte));
  console.print(console.json ? json_text(document) : text);
  return ExitCode::ok;
}

ExitCode plan_of_groups(const Console& console, const Topology& topology, const GroupFlags& flags,
                        const CollectiveFlags& collective, const std::string& output) {
  const auto works = flags.resolve(topology, collective);
  if (!works) return console.refuse_usage(works.error());
  if (!output.empty() && output.find("%g") == std::string::npos) {
    return console.refuse_usage({ErrorCode::invalid_input, "-o: each group's plan is a file of its own",
                                 "put the group's number into the name, such as -o plan-%g.json"});
  }
  warn_of_switches(console, topology);
  const auto plan = [&] {
    const Progress progress(console, "planning the groups", 0);
    return planners::plan_groups(*works);
  }();
  if (!plan) return console.refuse(plan.error());
  console.print(console.json ? json_text(plan_json(*works, *plan)) : plan_text(*works, *plan));
  if (output.empty()) return ExitCode::ok;
  const auto written = write_plans(console, *works, *plan, output);
  return written ? ExitCode::ok : console.refuse(written.error());
}

}  // namespace espalier::cli
