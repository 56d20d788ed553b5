#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/console.h"
#include "schedule/schedule.h"
#include "topology/topology.h"

namespace espalier::cli {

/// What a TOPOLOGY|PLAN argument named.
struct Input {
  Topology topology;
  std::optional<Schedule> schedule;  ///< Present when the argument was a plan.
  bool network_is_implied = false;   ///< The plan carried no network: rates are unknown.
};

/// Why an argument could not be used. The diagnostics have been shown already when `shown` is true.
struct InputFailure {
  Error error;
  bool shown = false;
};

/// Reads a topology (a YAML file, "-" for standard input, or the name of a shipped machine such as dgx1v).
/// Diagnostics go to the console. `strict` makes warnings errors.
tl::expected<Topology, InputFailure> load_topology(const Console& console, const std::string& argument,
                                                   bool strict = false);

/// Reads a topology or a plan: a file that begins with '{' and has "espalier_schedule" is a plan.
/// `topology_argument`, when not empty, replaces the network that a plan carries.
tl::expected<Input, InputFailure> load_input(const Console& console, const std::string& argument,
                                             const std::string& topology_argument = {});

/// The exit code of a failure, shown now unless it has been.
ExitCode refuse(const Console& console, const InputFailure& failure);

/// Names of the machines that ship with the command, sorted.
std::vector<std::string> shipped_machines();

/// The file that an argument names: itself, or the shipped machine of that name.
std::string resolve_path(const std::string& argument);

/// The whole of a file or of standard input ("-").
/// Errors: unavailable when it cannot be read; too_large past `limit` bytes.
Result<std::string> read_whole(const std::string& path, std::size_t limit);

}  // namespace espalier::cli
