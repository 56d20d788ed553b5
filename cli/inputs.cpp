#include "cli/inputs.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

#include "base/format_units.h"
#include "schedule/schedule_json.h"
#include "topology/group.h"
#include "topology/symmetry.h"
#include "topology/without.h"

namespace espalier::cli {
namespace {

/// The folder of the shipped machines: beside the build folder of a checkout, or in the installation.
std::filesystem::path shipped_folder() {
  std::error_code status;
  const auto binary = std::filesystem::read_symlink("/proc/self/exe", status).parent_path();
  for (const char* relative : {"../share/espalier/configs", "../../configs", "../configs"}) {
    auto folder = (binary / relative).lexically_normal();
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

/// The file that an argument names: itself, or the shipped machine of that name.
std::string resolve_path(const std::string& argument) {
  std::error_code status;
  if (argument == "-" || argument.find('/') != std::string::npos || std::filesystem::exists(argument, status)) {
    return argument;
  }
  const auto shipped = shipped_folder() / (argument + ".yaml");
  return std::filesystem::exists(shipped, status) ? shipped.string() : argument;
}

tl::unexpected<InputFailure> failed(Error error) { return tl::unexpected(InputFailure{std::move(error)}); }

Result<TopologyParameters> split_parameters(const std::vector<std::string>& texts) {
  TopologyParameters parameters;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    if (equals == 0 || equals == std::string::npos) {
      return fail(ErrorCode::invalid_input, "-p: '" + text + "' is not NAME=VALUE", "write -p boxes=16");
    }
    parameters.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return parameters;
}

/// Adds what the asymmetry check finds, and makes warnings errors when asked to.
void add_findings(TopologyReading& reading, const std::string& file, bool strict) {
  if (reading.topology) {
    for (Diagnostic& warning : find_asymmetry(*reading.topology)) {
      warning.place.file = file;
      reading.diagnostics.push_back(std::move(warning));
    }
  }
  if (!strict) return;
  for (Diagnostic& diagnostic : reading.diagnostics) diagnostic.severity = Severity::error;
}

/// Leaves only the nodes of --ranks as ranks.
Result<void> restrict_ranks(TopologyReading& reading, const std::string& list) {
  if (list.empty() || !reading.topology) return {};
  const auto nodes = find_rank_nodes(*reading.topology, list);
  auto restricted = nodes ? with_ranks(*reading.topology, *nodes) : tl::unexpected(nodes.error());
  if (!restricted) {
    return fail(restricted.error().code, "--ranks: " + restricted.error().message, restricted.error().help);
  }
  reading.topology = *std::move(restricted);
  return {};
}

/// Reads text that came from `path`; includes are read from beside it.
Result<TopologyReading> read_text(const std::string& text, const std::string& path, const TopologyFlags& flags) {
  const auto parameters = split_parameters(flags.parameters);
  if (!parameters) return tl::unexpected(parameters.error());
  const bool is_stream = path == "-";
  const auto base = is_stream ? std::filesystem::path(".") : std::filesystem::path(path).parent_path();
  // A shipped machine is shown by the name that a checkout has for it, wherever it is installed.
  const std::string shown = path == flags.argument ? path : "configs/" + flags.argument + ".yaml";
  const std::string name = is_stream ? "<stdin>" : shown;
  TopologyReading reading =
      is_stream ? read_topology_text(text, name, base, *parameters) : read_topology_file(path, *parameters);
  add_findings(reading, name, flags.strict);
  if (auto restricted = restrict_ranks(reading, flags.ranks); !restricted) return tl::unexpected(restricted.error());
  return reading;
}

tl::expected<Topology, InputFailure> accept(const Console& console, const TopologyFlags& flags,
                                            Result<TopologyReading> reading) {
  if (!reading) return failed(reading.error());
  console.show(reading->diagnostics);
  if (!reading->topology || has_errors(reading->diagnostics)) {
    return tl::unexpected(InputFailure{Error{ErrorCode::invalid_input, "the topology has errors", ""}, true, false});
  }
  if (flags.without.empty()) return std::move(*reading->topology);
  auto rest = without(*reading->topology, flags.without);
  if (!rest) {
    const bool is_usage = rest.error().code == ErrorCode::invalid_input;
    if (is_usage) rest.error().message = "--without: " + rest.error().message;
    return tl::unexpected(InputFailure{rest.error(), false, is_usage});
  }
  return std::move(*rest);
}

tl::expected<Input, InputFailure> read_plan_text(const Console& console, std::string_view text, const std::string& path,
                                                 const std::string& plan_topology) {
  std::optional<Topology> topology;
  if (!plan_topology.empty()) {
    auto loaded = load_topology(console, TopologyFlags{plan_topology, {}, false, {}});
    if (!loaded) return tl::unexpected(loaded.error());
    topology = std::move(*loaded);
  }
  auto plan = read_plan(text, path == "-" ? "<stdin>" : path, topology ? &*topology : nullptr);
  if (!plan) return failed(plan.error());
  console.show(plan->warnings);
  const bool implied = !topology && !plan->network_was_given;
  return Input{std::move(plan->topology), std::move(plan->schedule), implied};
}

}  // namespace

Result<std::string> read_whole(const Console& console, const std::string& path) {
  std::ifstream file;
  std::error_code status;
  if (path != "-") {
    if (std::filesystem::is_directory(path, status))
      return fail(ErrorCode::unavailable, path + " is a folder, not a file");
    file.open(path, std::ios::binary);
    if (!file) {
      return fail(ErrorCode::unavailable, "cannot read " + path,
                  "check the path, or name a shipped machine (espalier topo show --list)");
    }
  }
  std::istream& stream = path == "-" ? std::cin : file;
  const std::string shown = path == "-" ? "standard input" : path;
  const auto most = static_cast<std::size_t>(console.max_input.count);
  std::string text;
  if (std::filesystem::is_regular_file(path, status)) text.reserve(std::min(std::filesystem::file_size(path), most));
  std::string block(std::size_t{1} << 20, '\0');
  while (stream.read(block.data(), static_cast<std::streamsize>(block.size())) || stream.gcount() > 0) {
    text.append(block, 0, static_cast<std::size_t>(stream.gcount()));
    if (text.size() > most) {
      return fail(ErrorCode::too_large, shown + " is larger than " + format_size(console.max_input),
                  "raise the limit with --max-input if the file is meant to be as large");
    }
  }
  if (stream.bad()) return fail(ErrorCode::unavailable, "cannot read " + shown + " to its end");
  return text;
}

ShippedFile find_shipped(const std::string& argument, const std::string& folder) {
  std::error_code status;
  if (argument.find('/') != std::string::npos || std::filesystem::exists(argument, status)) return {argument, argument};
  const auto shipped = shipped_folder() / folder / (argument + ".yaml");
  if (!std::filesystem::exists(shipped, status)) return {argument, argument};
  return {shipped.string(), "configs/" + folder + "/" + argument + ".yaml"};
}

bool is_shipped_machine(const std::string& name) {
  return name != "-" && name.find('/') == std::string::npos && resolve_path(name) != name;
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

void TopologyFlags::add_to(CLI::App& command, const std::string& name, bool required) {
  command.add_option(name, argument, "YAML file, - or shipped machine")->required(required);
  command.add_option("-p,--parameter", parameters, "Set a parameter of a compact file; may be repeated")
      ->option_text("NAME=VALUE")
      ->allow_extra_args(false);
  command.add_option("--ranks", ranks, "Only these nodes are ranks, all others forward: gpu[0-3],box1.gpu[*]")
      ->option_text("NODES");
  command.add_flag("--strict", strict, "Warnings, such as a GPU with fewer links than its peers, are errors");
}

void TopologyFlags::add_without_to(CLI::App& command) {
  command
      .add_option(
          "--without", without,
          "Take a node (gpu0), a cable (gpu0-gpu1, or gpu0-gpu3#1 of several) or a link (gpu0>gpu1) away; may be "
          "repeated")
      ->option_text("LINK|NODE")
      ->allow_extra_args(false);
}

Result<TopologyReading> read_with_findings(const Console& console, const TopologyFlags& flags) {
  const std::string path = resolve_path(flags.argument);
  const auto text = path == "-" ? read_whole(console, path) : Result<std::string>(std::string());
  if (!text) return tl::unexpected(text.error());
  return read_text(*text, path, flags);
}

tl::expected<Topology, InputFailure> load_topology(const Console& console, const TopologyFlags& flags) {
  return accept(console, flags, read_with_findings(console, flags));
}

tl::expected<Input, InputFailure> load_input(const Console& console, const TopologyFlags& flags,
                                             const std::string& plan_topology) {
  const std::string path = resolve_path(flags.argument);
  const auto text = read_whole(console, path);
  if (!text) return failed(text.error());
  if (looks_like_plan(*text) && !flags.without.empty()) {
    return failed({ErrorCode::unsupported,
                   "--without takes parts from a topology, and " + flags.argument + " is a plan",
                   "plan anew: espalier plan TOPOLOGY COLLECTIVE --without " + flags.without.front()});
  }
  if (looks_like_plan(*text)) {
    if (flags.ranks.empty()) return read_plan_text(console, *text, path, plan_topology);
    return failed({ErrorCode::invalid_input, "--ranks: a plan names its ranks itself", "leave --ranks out"});
  }
  auto topology = accept(console, flags, read_text(*text, path, flags));
  if (!topology) return tl::unexpected(topology.error());
  return Input{std::move(*topology), std::nullopt, false};
}

ExitCode refuse(const Console& console, const InputFailure& failure) {
  if (failure.shown) return ExitCode::check_failed;
  return failure.is_usage ? console.refuse_usage(failure.error) : console.refuse(failure.error);
}

}  // namespace espalier::cli
