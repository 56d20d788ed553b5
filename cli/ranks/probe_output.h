#pragma once

// Tested by: tests/options/options_test.py

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/output/table.h"
#include "engine/communicator/transport_choice.h"
#include "probe/probe_plan.h"

namespace espalier::cli {

/// What was sent, beside what a plan's findings say.
struct ProbeRun {
  Bytes size;  ///< Of a transfer.
  std::uint32_t transfers = 0;
  std::int64_t bytes = 0;
  double elapsed = 0;         ///< Seconds.
  bool is_cut_short = false;  ///< --max-time ended it.
  std::vector<PeerTransport> transports;
};

struct ProbeReport {
  const Topology* topology = nullptr;
  const probe::ProbePlan* plan = nullptr;
  const ProbeRun* run = nullptr;
};

/// Every pair that was measured, a row each.
Table pairs_table(const ProbeReport& report);
std::string probe_text(const ProbeReport& report);
/// "espalier/probe/1" (docs/probe.md).
nlohmann::ordered_json probe_json(const ProbeReport& report);

/// What a probe will send, at most.
struct ProbeForecast {
  const Topology* topology = nullptr;
  const probe::ProbePlan* plan = nullptr;
  Bytes size;
  std::uint32_t transfers = 0;
  std::int64_t limit = 0;
  std::uint32_t max_rounds = 0;
  double max_time = 0;
};

/// The pairs of the rounds that are run whatever they give.
Table planned_table(const ProbeForecast& forecast);
std::string planned_text(const ProbeForecast& forecast);
/// "espalier/probe-plan/1" (docs/probe.md).
nlohmann::ordered_json planned_json(const ProbeForecast& forecast);

}  // namespace espalier::cli
