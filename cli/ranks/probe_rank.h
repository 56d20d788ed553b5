#pragma once

// Tested by: tests/options/options_test.py

#include <cstdint>
#include <optional>
#include <string>

#include "cli/flags/inputs.h"
#include "cli/jobs/verbs_flags.h"
#include "cli/output/console.h"
#include "engine/communicator/transport_choice.h"
#include "engine/launch/detect_launch.h"
#include "probe/probe_plan.h"

namespace espalier::cli {

/// The flags of `probe`.
struct ProbeFlags {
  TopologyFlags machine;
  std::string size = "16M";
  std::uint32_t transfers = 5;
  std::string limit;
  std::uint32_t max_rounds = 64;
  double max_time = 60;
  bool dry_run = false;
  std::string output;
  std::string device = "host";
  std::string transport = "auto";
  std::uint32_t sockets = 1;
  double timeout = 30;
  VerbsFlags verbs;
  std::string secret_file;
  std::optional<std::uint32_t> max_local_ranks;
  std::optional<std::uint32_t> rank;
  std::optional<std::uint32_t> world;
  std::optional<std::string> rendezvous;
};

/// What the flags ask for.
struct ProbeOrder {
  Bytes size;
  std::int64_t limit = 0;  ///< Bytes per second of a pair; 0: none.
  TransportChoice transport = TransportChoice::automatic;
  engine::VerbsOptions verbs;
};

/// Errors: invalid_input, naming the flag.
Result<ProbeOrder> resolve_probe(const ProbeFlags& flags);

/// What a process does as one rank: measures round after round; rank 0 prints, and writes the machine as measured.
ExitCode probe_rank(const Console& console, const ProbeFlags& flags, const ProbeOrder& order,
                    const engine::launch::LaunchInfo& launch, const Input& input, probe::ProbePlan& plan);

}  // namespace espalier::cli
