#pragma once

// Tested by: tests/options/options_test.py

#include <optional>
#include <string>
#include <vector>

#include "cli/flags/collective_flags.h"
#include "cli/flags/inputs.h"
#include "cli/flags/sizes.h"
#include "cli/jobs/chosen_profile.h"
#include "cli/jobs/verbs_flags.h"
#include "cli/output/console.h"
#include "cli/output/trace_file.h"
#include "engine/launch/detect_launch.h"

namespace espalier::cli {

/// The flags of `run`.
struct RunFlags {
  TopologyFlags input;
  CollectiveFlags collective;
  SizeFlags sizes;
  bool names_size = false;  ///< The command line names sizes; else those of a traffic matrix in bytes count.
  std::string plan_topology;
  std::string algorithm = "auto";
  std::string operation = "sum";
  std::string chunk;
  std::string ahead;
  std::uint32_t iterations = 20;
  std::uint32_t warmups = 5;
  int check = 1;
  std::string device = "host";
  bool bulk_copies = false;
  std::string buffers = "registered";
  std::string transport = "auto";
  ProfileFlags profile;  ///< What auto chooses by; its own name empty: by transport and machine.
  double timeout = 30;
  bool checksum = false;
  std::uint32_t sockets = 1;
  VerbsFlags verbs;
  std::string addresses;  ///< A file with an address pair per route.
  TraceFlags trace;
  std::string secret_file;
  std::optional<std::uint32_t> max_local_ranks;
  std::optional<std::uint32_t> rank;
  std::optional<std::uint32_t> world;
  std::optional<std::string> rendezvous;
};

/// Whether the flags make sense for this input, for what can be told before there are ranks.
/// Errors: invalid_input, naming the flag; the caller reports it as wrong usage.
Result<void> check_run(const RunFlags& flags, const Input& input);

/// What a process does as one rank of the job: joins, measures all sizes; rank 0 prints. Requires: check_run passed.
ExitCode run_rank(const Console& console, const RunFlags& flags, const engine::launch::LaunchInfo& launch,
                  Input& input);

}  // namespace espalier::cli
