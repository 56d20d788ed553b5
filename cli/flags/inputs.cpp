#include "cli/flags/inputs.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

#include "base/format_units.h"
#include "cli/flags/missing_file.h"
#include "schedule/json/schedule_json.h"
#include "topology/analysis/symmetry.h"
#include "topology/names/group.h"
#include "topology/slow.h"
#include "topology/without.h"

namespace espalier::cli {
namespace {

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
  const auto shipped = std::filesystem::path(shipped_folder()) / (argument + ".yaml");
  return std::filesystem::exists(shipped, status) ? shipped.string() : argument;
}

/// Errors: unavailable when the file of a topology or plan is not there, with the machine or file that was meant.
Result<void> check_exists(const std::string& path) {
  std::error_code status;
  if (path == "-" || std::filesystem::exists(path, status)) return {};
  Error missing = missing_file(path, shipped_machines());
  if (std::ranges::count(shipped_names("scenarios"), path) > 0) {
    missing.help = fmt::format("that is a scenario: --scenario {}", path);
  }
  return tl::unexpected(std::move(missing));
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

/// Whether an input can be read only once: standard input, or a pipe such as that of `<(...)`.
bool is_stream(const std::string& path) {
  std::error_code status;
  return path == "-" || !std::filesystem::is_regular_file(path, status);
}

/// Reads text that came from `path`; includes are read from beside it, of a stream from here.
Result<TopologyReading> read_text(const std::string& text, const std::string& path, const TopologyFlags& flags) {
  const auto parameters = split_parameters(flags.parameters);
  if (!parameters) return tl::unexpected(parameters.error());
  const bool is_read = is_stream(path);
  const auto base = is_read ? std::filesystem::path(".") : std::filesystem::path(path).parent_path();
  // A shipped machine is shown by the name that a checkout has for it, wherever it is installed.
  const std::string shown = path == flags.argument ? path : "configs/" + flags.argument + ".yaml";
  const std::string name = path == "-" ? "<stdin>" : shown;
  TopologyReading reading =
      is_read ? read_topology_text(text, name, base, *parameters) : read_topology_file(path, *parameters);
  find_profile_beside(reading, base.empty() ? "." : base.string());
  add_findings(reading, name, flags.strict);
  if (auto restricted = restrict_ranks(reading, flags.ranks); !restricted) return tl::unexpected(restricted.error());
  return reading;
}

/// What a flag names is not there: wrong usage. That nothing can run on what it leaves is not.
tl::unexpected<InputFailure> bad_damage(const char* flag, Error error) {
  const bool is_usage = error.code == ErrorCode::invalid_input;
  if (is_usage) error.message = std::string(flag) + ": " + error.message;
  return tl::unexpected(InputFailure{std::move(error), false, is_usage});
}

struct Accepted {
  TopologyReading reading;
  std::shared_ptr<const planners::LostParts> lost;
};

/// Requires: names that are there.
std::shared_ptr<const planners::LostParts> lost_of(const Topology& whole, const TopologyFlags& flags) {
  if (flags.without.empty() || !flags.slow.empty() || whole.rank_count() < planners::min_symmetric_ranks) return {};
  Parts gone;
  for (const std::string& name : flags.without) {
    const Result<Parts> parts = find_parts(whole, name);
    gone.nodes.insert(gone.nodes.end(), parts->nodes.begin(), parts->nodes.end());
    gone.links.insert(gone.links.end(), parts->links.begin(), parts->links.end());
  }
  return std::make_shared<const planners::LostParts>(planners::LostParts{whole, std::move(gone)});
}

tl::expected<Accepted, InputFailure> accept(const Console& console, const TopologyFlags& flags,
                                            Result<TopologyReading> reading) {
  if (!reading) return failed(reading.error());
  console.show(reading->diagnostics);
  if (!reading->topology || has_errors(reading->diagnostics)) {
    return tl::unexpected(InputFailure{Error{ErrorCode::invalid_input, "the topology has errors", ""}, true, false});
  }
  auto rest = without(*reading->topology, flags.without);
  if (!rest) return bad_damage("--without", rest.error());
  auto slowed = slow_down(*rest, flags.slow);
  if (!slowed) return bad_damage("--slow", slowed.error());
  auto lost = lost_of(*reading->topology, flags);
  reading->topology = std::move(*slowed);
  return Accepted{std::move(*reading), std::move(lost)};
}

/// Which flag of a topology a plan has no use for, or nothing.
std::optional<Error> find_idle_flag(const TopologyFlags& flags, const std::string& plan_topology) {
  if (!flags.ranks.empty()) {
    return Error{ErrorCode::invalid_input, "--ranks: a plan names its ranks itself", "leave --ranks out"};
  }
  const auto given = flags.first_given();
  if (!given || !plan_topology.empty()) return std::nullopt;
  return Error{ErrorCode::invalid_input,
               *given + " changes a topology, and " + flags.argument + " is a plan with its own network",
               "name the topology with --topology, or plan anew"};
}

tl::expected<Input, InputFailure> read_plan_text(const Console& console, std::string_view text, const std::string& path,
                                                 const TopologyFlags& flags, const std::string& plan_topology) {
  std::optional<Topology> topology;
  std::string profile;
  if (!plan_topology.empty()) {
    TopologyFlags of_topology = flags;
    of_topology.argument = plan_topology;
    auto loaded = load_machine(console, of_topology);
    if (!loaded) return tl::unexpected(loaded.error());
    topology = std::move(loaded->topology);
    profile = std::move(loaded->profile);
  }
  auto plan = read_plan(text, path == "-" ? "<stdin>" : path, topology ? &*topology : nullptr);
  if (!plan) return failed(plan.error());
  console.show(plan->warnings);
  if (plan->of_rank) {
    return failed({ErrorCode::unsupported, fmt::format("{} is the part of rank {} alone", path, plan->of_rank->value()),
                   "a whole plan can be verified, simulated and run: write it without --rank"});
  }
  const bool implied = !topology && !plan->network_was_given;
  return Input{std::move(plan->topology), std::move(plan->schedule), implied, std::move(plan->warnings), {},
               std::move(profile)};
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
      if (!std::filesystem::exists(path, status)) return tl::unexpected(missing_file(path));
      return fail(ErrorCode::unavailable, "cannot read " + path, "check who may read it");
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

bool is_shipped_machine(const std::string& name) {
  return name != "-" && name.find('/') == std::string::npos && resolve_path(name) != name;
}

std::vector<std::string> shipped_machines() { return shipped_names(""); }

void TopologyFlags::add_to(CLI::App& command, const std::string& name, bool required) {
  command.add_option(name, argument, "YAML file, - or shipped machine")->required(required);
  command.add_option("-p,--parameter", parameters, "Set a parameter of a compact file; may be repeated")
      ->option_text("NAME=VALUE")
      ->allow_extra_args(false);
  command.add_option("--ranks", ranks, "Only these nodes are ranks, all others forward: gpu[0-3],box1.gpu[*]")
      ->option_text("NODES");
  command.add_flag("--strict", strict, "Warnings, such as a GPU with fewer links than its peers, are errors");
}

void TopologyFlags::add_damage_to(CLI::App& command) {
  command
      .add_option("--without", without,
                  "Take a node (gpu0), a cable (gpu0-gpu1, or gpu0-gpu3#1 of several), a link (gpu0>gpu1), a host or a "
                  "class of links (nvlink2) away, or several by ranges (box[0-3].nic0); may be repeated")
      ->option_text("LINK|NODE")
      ->allow_extra_args(false);
  command
      .add_option("--slow", slow,
                  "Leave the same only a part of its rate, such as gpu0-gpu1=0.25 or nvlink2=50%; may be repeated")
      ->option_text("LINK|NODE=PART")
      ->allow_extra_args(false);
}

std::optional<std::string> TopologyFlags::first_given() const {
  if (!parameters.empty()) return "-p";
  if (!ranks.empty()) return "--ranks";
  if (strict) return "--strict";
  if (!without.empty()) return "--without";
  if (!slow.empty()) return "--slow";
  return std::nullopt;
}

Result<TopologyReading> read_with_findings(const Console& console, const TopologyFlags& flags) {
  const std::string path = resolve_path(flags.argument);
  if (auto found = check_exists(path); !found) return tl::unexpected(found.error());
  const auto text = is_stream(path) ? read_whole(console, path) : Result<std::string>(std::string());
  if (!text) return tl::unexpected(text.error());
  return read_text(*text, path, flags);
}

tl::expected<Machine, InputFailure> load_machine(const Console& console, const TopologyFlags& flags) {
  auto accepted = accept(console, flags, read_with_findings(console, flags));
  if (!accepted) return tl::unexpected(accepted.error());
  return Machine{std::move(*accepted->reading.topology), std::move(accepted->reading.profile),
                 std::move(accepted->lost), std::move(accepted->reading.gpu)};
}

tl::expected<Topology, InputFailure> load_topology(const Console& console, const TopologyFlags& flags) {
  auto machine = load_machine(console, flags);
  if (!machine) return tl::unexpected(machine.error());
  return std::move(machine->topology);
}

tl::expected<Input, InputFailure> load_input(const Console& console, const TopologyFlags& flags,
                                             const std::string& plan_topology) {
  const std::string path = resolve_path(flags.argument);
  if (auto found = check_exists(path); !found) return failed(found.error());
  const auto text = read_whole(console, path);
  if (!text) return failed(text.error());
  if (looks_like_plan(*text)) {
    if (const auto wrong = find_idle_flag(flags, plan_topology)) {
      return tl::unexpected(InputFailure{*wrong, false, true});
    }
    return read_plan_text(console, *text, path, flags, plan_topology);
  }
  if (!plan_topology.empty()) {
    return tl::unexpected(InputFailure{
        {ErrorCode::invalid_input, "--topology is for a plan, and " + flags.argument + " is a topology itself",
         "leave --topology out"},
        false,
        true});
  }
  auto accepted = accept(console, flags, read_text(*text, path, flags));
  if (!accepted) return tl::unexpected(accepted.error());
  TopologyReading& reading = accepted->reading;
  return Input{std::move(*reading.topology),
               std::nullopt,
               false,
               std::move(reading.diagnostics),
               std::move(reading.provenance),
               std::move(reading.profile),
               std::move(accepted->lost),
               std::move(reading.gpu)};
}

ExitCode refuse(const Console& console, const InputFailure& failure) {
  if (failure.shown) return ExitCode::check_failed;
  return failure.is_usage ? console.refuse_usage(failure.error) : console.refuse(failure.error);
}

}  // namespace espalier::cli
