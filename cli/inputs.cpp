#include "cli/inputs.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

#include "schedule/schedule_json.h"
#include "topology/read_topology.h"

namespace espalier::cli {
namespace {

constexpr std::size_t largest_plan_bytes = std::size_t{8} << 30;

/// The folder of the shipped machines: beside the build folder of a checkout, or in the installation.
std::filesystem::path shipped_folder() {
  std::error_code status;
  const auto binary = std::filesystem::read_symlink("/proc/self/exe", status).parent_path();
  for (const char* relative : {"../share/espalier/configs", "../../configs", "../configs"}) {
    const auto folder = (binary / relative).lexically_normal();
    if (std::filesystem::exists(folder / "espalier.schema.json", status)) return folder;
  }
  return {};
}

/// Whether a file's first bytes look like a plan: an object with the version key of the schedule's JSON form.
bool looks_like_plan(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || text[first] != '{') return false;
  const bool names_topology = text.find("\"espalier\"") < text.find("\"espalier_schedule\"");
  return !names_topology && text.find("\"espalier_schedule\"") != std::string_view::npos;
}

tl::unexpected<InputFailure> failed(Error error) { return tl::unexpected(InputFailure{std::move(error), false}); }

tl::expected<Topology, InputFailure> accept(const Console& console, TopologyReading reading, bool strict) {
  if (strict) {
    for (Diagnostic& diagnostic : reading.diagnostics) diagnostic.severity = Severity::error;
  }
  console.show(reading.diagnostics);
  if (!reading.topology || has_errors(reading.diagnostics)) {
    return tl::unexpected(InputFailure{Error{ErrorCode::invalid_input, "the topology has errors", ""}, true});
  }
  return std::move(*reading.topology);
}

tl::expected<Input, InputFailure> read_plan_text(const Console& console, std::string_view text, const std::string& path,
                                                 const std::string& topology_argument) {
  std::optional<Topology> topology;
  if (!topology_argument.empty()) {
    auto loaded = load_topology(console, topology_argument);
    if (!loaded) return tl::unexpected(loaded.error());
    topology = std::move(*loaded);
  }
  auto plan = read_plan(text, path, topology ? &*topology : nullptr);
  if (!plan) return failed(plan.error());
  console.show(plan->warnings);
  const bool implied = !topology && !plan->network_was_given;
  return Input{std::move(plan->topology), std::move(plan->schedule), implied};
}

}  // namespace

Result<std::string> read_whole(const std::string& path, std::size_t limit) {
  std::ifstream file;
  std::error_code status;
  if (path != "-") {
    if (std::filesystem::is_directory(path, status))
      return fail(ErrorCode::unavailable, path + " is a folder, not a file");
    file.open(path, std::ios::binary);
    if (!file) return fail(ErrorCode::unavailable, "cannot read " + path, "check the path, or name a shipped machine");
  }
  std::istream& stream = path == "-" ? std::cin : file;
  std::string text;
  std::string block(std::size_t{1} << 20, '\0');
  while (stream.read(block.data(), static_cast<std::streamsize>(block.size())) || stream.gcount() > 0) {
    text.append(block, 0, static_cast<std::size_t>(stream.gcount()));
    if (text.size() > limit)
      return fail(ErrorCode::too_large, path + " is larger than " + std::to_string(limit) + " bytes");
  }
  return text;
}

std::vector<std::string> shipped_machines() {
  std::vector<std::string> names;
  std::error_code status;
  for (const auto& entry : std::filesystem::directory_iterator(shipped_folder(), status)) {
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem());
  }
  std::ranges::sort(names);
  return names;
}

std::string resolve_path(const std::string& argument) {
  std::error_code status;
  if (argument == "-" || argument.find('/') != std::string::npos || std::filesystem::exists(argument, status)) {
    return argument;
  }
  const auto shipped = shipped_folder() / (argument + ".yaml");
  return std::filesystem::exists(shipped, status) ? shipped.string() : argument;
}

tl::expected<Topology, InputFailure> load_topology(const Console& console, const std::string& argument, bool strict) {
  const std::string path = resolve_path(argument);
  if (path != "-") return accept(console, read_topology_file(path), strict);
  auto text = read_whole(path, max_topology_bytes);
  if (!text) return failed(text.error());
  return accept(console, read_topology_text(*text, "<stdin>"), strict);
}

tl::expected<Input, InputFailure> load_input(const Console& console, const std::string& argument,
                                             const std::string& topology_argument) {
  const std::string path = resolve_path(argument);
  auto text = read_whole(path, largest_plan_bytes);
  if (!text) return failed(text.error());
  const std::string name = path == "-" ? "<stdin>" : path;
  if (looks_like_plan(*text)) return read_plan_text(console, *text, name, topology_argument);
  const auto topology_reading = path == "-" ? read_topology_text(*text, name) : read_topology_file(path);
  auto topology = accept(console, topology_reading, false);
  if (!topology) return tl::unexpected(topology.error());
  return Input{std::move(*topology), std::nullopt, false};
}

ExitCode refuse(const Console& console, const InputFailure& failure) {
  return failure.shown ? ExitCode::check_failed : console.refuse(failure.error);
}

}  // namespace espalier::cli
