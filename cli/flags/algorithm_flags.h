#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/output/console.h"
#include "planners/chooser.h"
#include "planners/packing/pruned_packing.h"

namespace espalier::cli {

/// Splits "ring,tree,auto" and checks each name; "all" stands for every planner. With `variants` packings of a height
/// and a number of trees may be named as results name them: "packing/h2t1". With `nccl` its algorithms may be named.
/// Errors: invalid_input, with the nearest name.
Result<std::vector<std::string>> parse_algorithms(const std::string& text, bool variants, bool nccl);
Result<std::vector<std::string>> parse_algorithms(const std::string& text, bool variants = false);

/// "nccl" or one of NCCL's algorithms, "nccl/ring": they need a profile (cli/jobs/chosen_profile.h).
bool is_nccl_algorithm(const std::string& name);

/// The planners that these algorithms need: those named, or all when "auto" is among them.
std::vector<planners::Planner> planners_for(const std::vector<std::string>& algorithms);

/// How candidates are planned.
struct PlanningOptions {
  planners::PackingLimits limits = {};          ///< Of packing.
  bool verbose = false;                         ///< Every round of every linear program is told on standard error.
  const planners::TreeMemory* known = nullptr;  ///< As in PlanContext.
  bool may_be_unstored = false;                 ///< As in CandidateOptions, as are those below.
  const planners::LostParts* lost = nullptr;
  planners::Paths paths = planners::Paths::any;
  std::optional<planners::Candidate> ring = std::nullopt;  ///< In the place of what the planner ring makes.
};

/// Plans with a progress bar, for messages of `least_size` and more. With "auto" variants of the packing take part,
/// unless it is limited, and those that are named; one that is not found is refused with those that are there.
Result<planners::Candidates> plan_candidates(const Console& console, const Topology& topology,
                                             const Collective& collective, const std::vector<std::string>& algorithms,
                                             Bytes least_size, const PlanningOptions& how = {});

/// For -a's help: "ring, tree, ...".
std::string planner_names();

/// For -a's help where all of them may be meant: "auto, all, ring, tree, ...".
std::string algorithm_names();

}  // namespace espalier::cli
