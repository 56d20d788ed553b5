#pragma once

// Tested by: tests/fuzz/fuzz_sweep_spec.cpp

#include <CLI/CLI.hpp>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/output/console.h"
#include "espalier/machine.h"
#include "espalier/shipped.h"
#include "planners/symmetric/repaired_plan.h"
#include "schedule/schedule.h"
#include "topology/yaml/read_topology.h"

namespace espalier::cli {

/// A TOPOLOGY argument with the flags that go with it.
struct TopologyFlags {
  std::string argument;
  std::vector<std::string> parameters;  ///< NAME=VALUE, for the parameters of a compact file.
  bool strict = false;                  ///< Warnings are errors.
  std::vector<std::string> without;     ///< Nodes and links that are taken away (topology/without.h).
  std::vector<std::string> slow;        ///< PARTS=PART: links at a part of their rates (topology/slow.h).
  std::string ranks;                    ///< Nodes and ranges that are the only ranks; empty: those of the file.

  /// Adds all to a verb; `name` is the argument's name in help.
  void add_to(CLI::App& command, const std::string& name = "TOPOLOGY", bool required = true);
  /// Adds --without and --slow.
  void add_damage_to(CLI::App& command);

  /// The first of the flags beside the argument that was given, or nothing.
  [[nodiscard]] std::optional<std::string> first_given() const;
};

/// All of them for a Mode (modes.h): TOPOLOGY, what it is read with, and the damage.
inline constexpr std::array<std::string_view, 7> topology_options = {
    "TOPOLOGY", "TOPOLOGY|PLAN", "--parameter", "--ranks", "--strict", "--without", "--slow"};

/// What a TOPOLOGY|PLAN argument named.
struct Input {
  Topology topology;
  std::optional<Schedule> schedule;            ///< Present when the argument was a plan.
  bool network_is_implied = false;             ///< The plan carried no network: rates are unknown.
  std::vector<Diagnostic> findings = {};       ///< What was found about the argument, shown already.
  std::vector<ProvenanceRow> provenance = {};  ///< What a topology says of where its values came from.
  std::string profile = {};                    ///< Of the machine, as Machine::profile; empty for a plan's own network.
  std::shared_ptr<const planners::LostParts> lost = {};  ///< As Machine::lost.
  std::string gpu = {};                                  ///< As Machine::gpu.
};

/// A machine as its file describes it.
struct Machine {
  Topology topology;
  std::string
      profile;  ///< Whose costs predictions add there (docs/profiles.md): a shipped name or a path; may be empty.
  /// What --without took from a machine whose plans are not stored (min_symmetric_ranks); null: nothing.
  std::shared_ptr<const planners::LostParts> lost = {};
  std::string gpu = {};  ///< What every rank computes on (compute/gpu.h); empty: not said.
};

/// Why an argument could not be used. The diagnostics have been shown already when `shown` is true.
struct InputFailure {
  Error error;
  bool shown = false;
  bool is_usage = false;  ///< A flag was wrong, not the file.
};

/// The whole of a file, or of standard input ("-").
/// Errors: unavailable when it cannot be read; too_large past `max_input`.
Result<std::string> read_whole(const Console& console, const std::string& path);

/// Reads a topology (a YAML file, "-" for standard input, or the name of a shipped machine such as dgx1v) and looks for
/// asymmetry. Errors: what breaks the format's rules is in the diagnostics; invalid_input for malformed parameters.
Result<TopologyReading> read_with_findings(const Console& console, const TopologyFlags& flags);

/// As `read_with_findings`; shows the diagnostics, fails when one is an error, takes away what --without names and
/// slows down what --slow does.
tl::expected<Machine, InputFailure> load_machine(const Console& console, const TopologyFlags& flags);

/// The topology alone of `load_machine`.
tl::expected<Topology, InputFailure> load_topology(const Console& console, const TopologyFlags& flags);

/// Reads a topology or a plan: a file that begins with '{' and has "espalier_schedule" is a plan.
/// `plan_topology`, when not empty, replaces the network that a plan carries, and the flags are of it; a plan that
/// brings its own network has no use for them.
tl::expected<Input, InputFailure> load_input(const Console& console, const TopologyFlags& flags,
                                             const std::string& plan_topology = {});

/// The exit code of a failure, shown now unless it has been.
ExitCode refuse(const Console& console, const InputFailure& failure);

/// Whether the name is that of a machine that ships with the command, and of no file here.
bool is_shipped_machine(const std::string& name);
/// Names of the machines that ship with the command, sorted.
std::vector<std::string> shipped_machines();

}  // namespace espalier::cli
