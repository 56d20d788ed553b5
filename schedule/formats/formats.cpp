#include "schedule/formats/formats.h"

#include <fmt/format.h>

#include <array>

#include "base/suggest.h"
#include "schedule/formats/nccl_log.h"
#include "schedule/formats/writers.h"

namespace espalier {
namespace {

constexpr std::array format_table = {
    ScheduleFormat{"msccl", "MSCCL XML, of the dialects msccl, rccl and astra", false, true},
    ScheduleFormat{"mscclpp", "a plan of MSCCL++, JSON", false, true},
    ScheduleFormat{"chakra", "Chakra traces of sends and receives, a file per rank", true, false, true},
    ScheduleFormat{"astra-sim", "the same as a collective of ASTRA-sim, with a system file", true, false, true},
    ScheduleFormat{"goal", "GOAL, for LogGOPSim and ATLAHS", true},
    ScheduleFormat{"nccl-graph", "NCCL graph XML: the orders of rings on one machine, for NCCL_GRAPH_FILE"},
    ScheduleFormat{"csv", "a row per transfer"},
    ScheduleFormat{"dot", "who sends how much to whom, for graphviz"},
    ScheduleFormat{"svg", "the network, its lines by how full the plan makes them"},
};

Result<std::vector<ExportedFile>> one_file(Result<std::string> text) {
  if (!text) return tl::unexpected(text.error());
  return std::vector<ExportedFile>{{"", *std::move(text)}};
}
Result<std::vector<ExportedFile>> one_file(Result<ExportedFile> file) {
  if (!file) return tl::unexpected(file.error());
  return std::vector<ExportedFile>{*std::move(file)};
}

}  // namespace

std::span<const ScheduleFormat> schedule_formats() { return format_table; }

std::string_view to_string(ScheduleForm source) {
  switch (source) {
    case ScheduleForm::msccl: return "msccl";
    case ScheduleForm::mscclpp: return "mscclpp";
    case ScheduleForm::nccl_graph: return "nccl-graph";
    case ScheduleForm::nccl_log: return "nccl-log";
  }
  return {};
}

std::span<const ScheduleForm> schedule_forms() {
  static constexpr std::array all = {ScheduleForm::msccl, ScheduleForm::mscclpp, ScheduleForm::nccl_graph,
                                     ScheduleForm::nccl_log};
  return all;
}

std::optional<ScheduleForm> recognise_schedule(std::string_view text) {
  const auto has = [&](std::string_view part) { return text.find(part) != std::string_view::npos; };
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // A byte order mark.
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return std::nullopt;
  if (text[first] == '{') return has("\"threadblocks\"") ? std::optional(ScheduleForm::mscclpp) : std::nullopt;
  if (text[first] == '<') {
    if (has("<graphs")) return ScheduleForm::nccl_graph;
    return has("<algo") ? std::optional(ScheduleForm::msccl) : std::nullopt;
  }
  return is_nccl_log(text) ? std::optional(ScheduleForm::nccl_log) : std::nullopt;
}

Result<void> refuse_relays(const Schedule& schedule, const Topology& topology, std::string_view format) {
  if (schedule.relays.empty()) return {};
  return fail(ErrorCode::unsupported,
              fmt::format("{} has no switches that copy or add, and the plan uses {}", format,
                          topology.node(schedule.relays.front()).id),
              "plan with another algorithm than innetwork");
}

Result<void> refuse_inputs(const Schedule& schedule, std::string_view format) {
  if (!schedule.reads_inputs()) return {};
  return fail(ErrorCode::unsupported,
              fmt::format("{} cannot say that a rank sends what it brought after adding to it (reduce_input)", format),
              "plan with another algorithm than oneshot, or export to msccl");
}

Result<std::vector<ExportedFile>> export_schedule(const Schedule& schedule, const Topology& topology,
                                                  std::string_view format, const ExportOptions& options) {
  std::vector<std::string_view> names;
  for (const ScheduleFormat& known : format_table) names.push_back(known.name);
  if (format == "csv") return one_file(write_schedule_csv(schedule, topology));
  if (format == "dot") return one_file(write_schedule_dot(schedule, topology));
  if (format == "svg") return one_file(write_schedule_svg(schedule, topology));
  if (format == "msccl") return one_file(write_msccl(schedule, topology, options));
  if (format == "mscclpp") return one_file(write_mscclpp(schedule, topology));
  if (format == "nccl-graph") return one_file(write_nccl_graph(schedule, topology));
  if (format == "goal") return one_file(write_goal(schedule, topology, options));
  if (format == "chakra") return write_chakra(schedule, topology, options);
  if (format == "astra-sim") return write_astra_sim(schedule, topology, options);
  return fail(ErrorCode::invalid_input, fmt::format("there is no format '{}'", format.substr(0, 60)),
              suggest(format, names));
}

}  // namespace espalier
