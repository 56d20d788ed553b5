#include "cli/flags/condition_flags.h"

#include <fmt/format.h>

#include "base/format_units.h"
#include "base/parse_units.h"
#include "cli/flags/flag_values.h"
#include "sim/limits.h"

namespace espalier::cli {
namespace {

tl::unexpected<Error> bad_flag(const char* flag, const Error& error) {
  return fail(error.code, std::string(flag) + ": " + error.message, error.help);
}

Result<sim::Endpoints> resolve_endpoints(const ConditionFlags& flags) {
  sim::Endpoints endpoints;
  if (!flags.protocol.empty()) {
    const auto protocol = sim::parse_protocol(flags.protocol);
    if (!protocol) return bad_flag("--protocol", protocol.error());
    endpoints = sim::preset(*protocol);
  }
  if (!flags.payload.empty()) {
    const auto payload = sim::parse_payload(flags.payload);
    if (!payload) return bad_flag("--payload", payload.error());
    endpoints.payload_ppm = *payload;
  }
  if (!flags.launch.empty()) {
    const auto launch = parse_latency(flags.launch);
    if (!launch) return bad_flag("--launch", launch.error());
    if (launch->count > sim::latest_entry) {
      return fail(ErrorCode::too_large, "--launch: '" + flags.launch + "' is past 26 days", "such as --launch 8.4us");
    }
    endpoints.launch = *launch;
  }
  if (!flags.per_message.empty()) {
    const auto message = parse_latency(flags.per_message);
    if (!message) return bad_flag("--per-message", message.error());
    if (message->count > sim::latest_entry) {
      return fail(ErrorCode::too_large, "--per-message: '" + flags.per_message + "' is past 26 days",
                  "such as --per-message 2us");
    }
    endpoints.message = *message;
  }
  if (flags.copy_engines.empty()) return endpoints;
  const auto engines = sim::parse_copy_engines(flags.copy_engines);
  if (!engines) return bad_flag("--copy-engines", engines.error());
  endpoints.copy_engines = *engines;
  return endpoints;
}

}  // namespace

void ConditionFlags::add_to(CLI::App& command, const std::string& seed_help) {
  const std::string group = "Circumstances (docs/simulator.md, Endpoints and Disturbances)";
  const auto add = [&](const char* flag, auto& value, const std::string& help, const char* shown) {
    command.add_option(flag, value, help)->option_text(shown)->group(group);
  };
  add("--protocol", protocol, "Payload and launch as NCCL's protocols have them", "none|simple|ll|ll128 (none)");
  add("--payload", payload, "Payload per byte on the wire, instead of the protocol's: 93.75%, 0.5", "PART");
  add("--launch", launch, "Fixed cost before a rank takes part, instead of the protocol's", "TIME");
  add("--copy-engines", copy_engines, "How many chunks a rank sends at once; 0: as its links carry", "N (0)");
  add("--per-message", per_message,
      "What each chunk keeps the processor of its sender and then of its receiver busy, for all their lanes",
      "TIME (0)");
  add("--jitter", jitter, "Every service of a chunk takes up to this much longer: 2%, 0.02", "PART (0)");
  add("--seed", seed, seed_help, "N (0)");
}

bool ConditionFlags::any() const {
  return !protocol.empty() || !payload.empty() || !launch.empty() || !copy_engines.empty() || !per_message.empty() ||
         !jitter.empty();
}

Result<sim::Circumstances> ConditionFlags::resolve() const {
  const auto endpoints = resolve_endpoints(*this);
  if (!endpoints) return tl::unexpected(endpoints.error());
  sim::Circumstances circumstances{*endpoints, {}};
  if (!jitter.empty()) {
    const auto part = parse_part_ppm("--jitter", jitter);
    if (!part) return tl::unexpected(part.error());
    circumstances.conditions.jitter_ppm = *part;
  }
  if (seed && jitter.empty()) {
    return fail(ErrorCode::invalid_input, "--seed goes with --jitter or --scenario", "such as --jitter 2% --seed 7");
  }
  circumstances.conditions.seed = seed.value_or(0);
  return circumstances;
}

std::string endpoints_text(const sim::Endpoints& endpoints, std::string_view between) {
  std::string text;
  constexpr double ppm_per_percent = 1e4;
  if (endpoints.payload_ppm != sim::whole_ppm) {
    text += fmt::format("{}payload {:.4g} %", between, endpoints.payload_ppm / ppm_per_percent);
  }
  if (endpoints.launch.count > 0) text += fmt::format("{}launch {}", between, format_latency(endpoints.launch));
  if (endpoints.copy_engines > 0) text += fmt::format("{}copy engines {}", between, endpoints.copy_engines);
  if (endpoints.message.count > 0) text += fmt::format("{}per message {}", between, format_latency(endpoints.message));
  return text;
}

std::string circumstances_text(const sim::Circumstances& circumstances, std::string_view between) {
  constexpr double ppm_per_percent = 1e4;
  std::string text = endpoints_text(circumstances.endpoints, between);
  const sim::Conditions& conditions = circumstances.conditions;
  if (conditions.jitter_ppm == 0) return text;
  return text + fmt::format("{}jitter {:.6g} %{}seed {}", between, conditions.jitter_ppm / ppm_per_percent, between,
                            conditions.seed);
}

nlohmann::ordered_json circumstances_json(const sim::Circumstances& circumstances) {
  if (circumstances.are_plain()) return nullptr;
  constexpr double million = 1e6;
  return {{"payload", circumstances.endpoints.payload_ppm / million},
          {"launch", circumstances.endpoints.launch.seconds()},
          {"copy_engines", circumstances.endpoints.copy_engines},
          {"per_message", circumstances.endpoints.message.seconds()},
          {"jitter", circumstances.conditions.jitter_ppm / million},
          {"seed", circumstances.conditions.seed}};
}

}  // namespace espalier::cli
