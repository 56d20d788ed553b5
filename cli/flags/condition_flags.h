#pragma once

// Tested by: tests/unit/cli/flags_test.cpp

#include <CLI/CLI.hpp>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "sim/simulate.h"

namespace espalier::cli {

/// --protocol, --payload, --launch, --copy-engines, --per-message, --jitter and --seed: what a run has that its
/// topology does not say. The values are those of a scenario's `endpoints` and `jitter` (docs/scenarios.md).
struct ConditionFlags {
  std::string protocol;
  std::string payload;
  std::string launch;
  std::string copy_engines;
  std::string per_message;
  std::string jitter;
  std::optional<std::uint64_t> seed;

  /// Adds all to a verb; `seed_help` says what the seed is of.
  void add_to(CLI::App& command, const std::string& seed_help);

  /// Whether any but --seed was given.
  [[nodiscard]] bool any() const;

  /// Errors: invalid_input, naming the flag; also for a seed without jitter.
  [[nodiscard]] Result<sim::Circumstances> resolve() const;
};

/// Its options for a Mode (modes.h).
inline constexpr std::array<std::string_view, 7> condition_options = {
    "--protocol", "--payload", "--launch", "--copy-engines", "--per-message", "--jitter", "--seed"};

/// "  payload 50 %  launch 6.6 us  copy engines 2  per message 1 us": what ranks and protocols add, for headers,
/// `between` before each; empty when nothing.
std::string endpoints_text(const sim::Endpoints& endpoints, std::string_view between = "  ");
/// As endpoints_text, and "  jitter 2 %  seed 7" behind it.
std::string circumstances_text(const sim::Circumstances& circumstances, std::string_view between = "  ");

/// {payload, launch, copy_engines, per_message, jitter, seed}; null when a run is as its topology says.
nlohmann::ordered_json circumstances_json(const sim::Circumstances& circumstances);

}  // namespace espalier::cli
