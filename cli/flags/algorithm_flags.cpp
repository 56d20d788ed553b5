#include "cli/flags/algorithm_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "base/parallel.h"
#include "base/suggest.h"
#include "cli/output/progress.h"
#include "cli/reports/describe_bound.h"
#include "planners/nccl/nccl.h"

namespace espalier::cli {

namespace {

/// "all_gather round 12: 24 columns, algbw 131.95 of at most 132.00 GB/s, gap 0.038 %".
std::string round_text(const planners::ProgramRound& round) {
  return fmt::format("{} round {}: {} columns, algbw {} of at most {} GB/s, gap {:.3f} %", round.program, round.round,
                     round.columns, gigabytes_per_second(round.reached), gigabytes_per_second(round.limit),
                     100 * std::max(0.0, round.gap()));
}

/// "packing/h2t1".
bool is_packing_variant(const std::string& name) { return name.starts_with("packing/"); }

/// Leaves the candidates that were asked for, and refuses variants of the packing that are not among them.
void keep_named(planners::Candidates& candidates, const std::vector<std::string>& algorithms) {
  std::vector<std::string> there;
  for (const planners::Candidate& candidate : candidates.made) {
    if (is_packing_variant(candidate.planner)) there.push_back(candidate.planner);
  }
  for (const std::string& name : algorithms) {
    if (!is_packing_variant(name) || candidates.find(name) != nullptr) continue;
    const std::string help = there.empty() ? "use packing; --max-depth and --max-trees limit its trees"
                                           : fmt::format("there are {}", fmt::join(there, ", "));
    candidates.refused.push_back(
        {name, {ErrorCode::unsupported, "no packing called " + name + " is worth having here", help}});
  }
  std::erase_if(candidates.made, [&](const planners::Candidate& candidate) {
    return std::ranges::find(algorithms, candidate.planner) == algorithms.end();
  });
}

/// How many planners at once: where every pair of many ranks has a block of its own, each takes gigabytes.
unsigned threads_for(const Collective& collective) {
  constexpr std::uint32_t many_ranks = 256;
  return slices_have_destination(collective.kind) && collective.rank_count > many_ranks ? 1 : usable_threads();
}

}  // namespace

bool is_nccl_algorithm(const std::string& name) { return name == "nccl" || name.starts_with("nccl/"); }

Result<std::vector<std::string>> parse_algorithms(const std::string& text, bool variants) {
  return parse_algorithms(text, variants, variants);
}

Result<std::vector<std::string>> parse_algorithms(const std::string& text, bool variants, bool nccl) {
  std::vector<std::string> algorithms;
  const auto add = [&](const std::string& name) {
    if (std::ranges::find(algorithms, name) == algorithms.end()) algorithms.push_back(name);
  };
  std::istringstream names(text);
  for (std::string name; std::getline(names, name, ',');) {
    if (name == "all") {
      for (const planners::Planner& planner : planners::all_planners()) add(std::string(planner.name));
      continue;
    }
    if (is_nccl_algorithm(name)) {
      const auto known = [&](const planners::Planner& planner) { return planner.name == name; };
      if (!nccl || (name != "nccl" && std::ranges::none_of(planners::nccl_planners(), known))) {
        return fail(ErrorCode::invalid_input, "-a: " + name + " is not planned here",
                    "simulate --profile takes nccl and nccl/ with ring, tree, nvls, nvls_tree, collnet_direct, "
                    "collnet_chain, pat, pxn or p2p");
      }
    } else if (is_packing_variant(name)) {
      if (!variants) {
        return fail(ErrorCode::invalid_input, "-a: " + name + " is a variant of packing, which is not planned here",
                    "write packing, or plan it with: espalier plan ... -a " + name);
      }
    } else if (const auto planner = planners::find_planner(name); !planner && name != "auto") {
      return fail(planner.error().code, "-a: " + planner.error().message, planner.error().help + "; also auto and all");
    }
    add(name);
  }
  if (algorithms.empty()) return fail(ErrorCode::invalid_input, "-a names no algorithm", "write -a auto");
  return algorithms;
}

std::vector<planners::Planner> planners_for(const std::vector<std::string>& algorithms) {
  std::vector<planners::Planner> planners;
  const bool needs_all = std::ranges::find(algorithms, "auto") != algorithms.end();
  for (const planners::Planner& planner : planners::all_planners()) {
    const auto needs = [&](const std::string& name) {
      return name == planner.name || (planner.name == "packing" && is_packing_variant(name));
    };
    if (needs_all || std::ranges::any_of(algorithms, needs)) planners.push_back(planner);
  }
  for (const planners::Planner& planner : planners::nccl_planners()) {
    const auto needs = [&](const std::string& name) { return name == "nccl" || name == planner.name; };
    if (std::ranges::any_of(algorithms, needs)) planners.push_back(planner);
  }
  return planners;
}

Result<planners::Candidates> plan_candidates(const Console& console, const Topology& topology,
                                             const Collective& collective, const std::vector<std::string>& algorithms,
                                             Bytes least_size, const PlanningOptions& how) {
  const planners::PackingLimits& limits = how.limits;
  std::vector<planners::Planner> planners = planners_for(algorithms);
  if (limits.any() && std::ranges::find(planners, "packing", &planners::Planner::name) == planners.end()) {
    return fail(ErrorCode::unsupported,
                "--max-trees, --max-depth, --k and --gap shape the trees of packing, which -a does not name",
                "add packing to -a, or leave them out");
  }
  for (planners::Planner& planner : planners) {
    if (planner.name != "packing" || !limits.any()) continue;
    planner.plan = [&limits](const planners::PlanningProblem& problem, const Collective& asked,
                             const planners::PlanContext& told) {
      return planners::plan_pruned_packing(problem, asked, limits, told);
    };
  }
  if (how.ring) std::erase_if(planners, [](const planners::Planner& planner) { return planner.name == "ring"; });
  const bool is_auto = std::ranges::find(algorithms, "auto") != algorithms.end();
  const bool names_variants = std::ranges::any_of(algorithms, is_packing_variant);
  planners::CandidateOptions options;
  options.for_choice = !limits.any() && (is_auto || names_variants);
  options.least_size = names_variants ? Bytes{} : least_size;
  options.named = algorithms;
  options.may_be_unstored = how.may_be_unstored && !limits.any();
  options.lost = how.lost;
  options.paths = how.paths;
  options.context.known = how.known;
  options.threads = threads_for(collective);
  Progress progress(console, "planning", planners.size());
  options.context.on_round = [&](const planners::ProgramRound& round) {
    progress.describe("packing, " + round_text(round));
    if (how.verbose) console.note(round_text(round));
  };
  auto candidates = planners::make_candidates(topology, collective, planners, options, [&](std::string_view name) {
    if (how.verbose) console.note(fmt::format("planner {}", name));
    progress.step(std::string(name));
  });
  if (candidates && how.ring) {
    candidates->made.insert(candidates->made.begin(), *how.ring);
    candidates->made.front().schedule.bound = candidates->bound;
  }
  if (candidates && !is_auto && options.for_choice) keep_named(*candidates, algorithms);
  if (!candidates || !limits.any() || candidates->find("packing") != nullptr) return candidates;
  const auto refusal = std::ranges::find(candidates->refused, "packing", &planners::Refusal::planner);
  if (refusal == candidates->refused.end()) return candidates;
  return fail(refusal->error.code,
              "no packing within --max-trees, --max-depth, --k and --gap: " + refusal->error.message,
              refusal->error.help);
}

std::string planner_names() {
  std::string names;
  for (const planners::Planner& planner : planners::all_planners())
    names += (names.empty() ? "" : ", ") + std::string(planner.name);
  return names;
}

std::string algorithm_names() { return "auto, all, " + planner_names(); }

}  // namespace espalier::cli
