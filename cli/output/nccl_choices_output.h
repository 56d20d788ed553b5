#pragma once

// Tested by: tests/options/options_test.py

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/output/table.h"
#include "planners/nccl/search/nccl_communicator.h"
#include "profile/nccl_choices.h"

namespace espalier::cli {

/// Sizes with one choice, and what comes second at the first of them.
struct ChoiceRun {
  Bytes from, to;
  profile::NcclChoice choice;
  std::optional<profile::NcclChoice> second;
};

/// What NCCL takes for a collective.
struct CollectiveChoices {
  CollectiveKind collective = CollectiveKind::all_reduce;
  std::vector<profile::NcclWay> ways;
  std::vector<ChoiceRun> runs;
};

/// What `nccl` shows.
struct NcclAnswer {
  std::string topology, profile, version, type;
  planners::NcclCommunicator communicator;
  std::vector<CollectiveChoices> collectives;
  bool network_adds = false;  ///< Switches between machines copy and add: CollNet, which is not among the choices.
};

Table nccl_table(const NcclAnswer& answer);
std::string nccl_text(const NcclAnswer& answer);
nlohmann::ordered_json nccl_json(const NcclAnswer& answer);

}  // namespace espalier::cli
