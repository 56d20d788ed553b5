#include "forecast/question.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "forecast/walked_ring.h"
#include "planners/nccl/nccl.h"
#include "planners/nccl/search/nccl_box.h"
#include "profile/nccl_choices.h"

namespace espalier::forecast {
namespace {

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

/// Leaves the candidates that were asked for, and refuses variants of the packing that are not among them.
void keep_named(planners::Candidates& candidates, const std::vector<std::string>& algorithms) {
  std::vector<std::string> there;
  for (const planners::Candidate& candidate : candidates.made) {
    if (is_packing_variant(candidate.planner)) there.push_back(candidate.planner);
  }
  for (const std::string& name : algorithms) {
    if (!is_packing_variant(name) || candidates.find(name) != nullptr) continue;
    const std::string help = there.empty() ? "use packing, whose trees may be limited in depth and number"
                                           : fmt::format("there are {}", fmt::join(there, ", "));
    candidates.refused.push_back(
        {name, {ErrorCode::unsupported, "no packing called " + name + " is worth having here", help}});
  }
  std::erase_if(candidates.made, [&](const planners::Candidate& candidate) {
    const bool is_of_nccl = contains(algorithms, "nccl") && is_nccl_algorithm(candidate.planner);
    return !is_of_nccl && !contains(algorithms, candidate.planner);
  });
}

/// How many planners at once: where every pair of many ranks has a block of its own, each takes gigabytes.
unsigned threads_for(const Question& question) {
  constexpr std::uint32_t many_ranks = 256;
  const Collective& collective = question.collective;
  return slices_have_destination(collective.kind) && collective.rank_count > many_ranks ? 1 : question.threads;
}

/// Makes packing keep to the limits, which live as long as the planners.
Result<void> limit_packing(std::vector<planners::Planner>& planners, const Question& question) {
  const auto packing = std::ranges::find(planners, "packing", &planners::Planner::name);
  if (packing == planners.end() || std::ranges::any_of(question.algorithms, is_packing_variant)) {
    return fail(ErrorCode::unsupported, "k, max-trees, max-depth and gap limit packing, which is not asked for",
                "add packing to the algorithms, or leave them out");
  }
  packing->plan = [&limits = question.packing](const planners::PlanningProblem& problem, const Collective& collective,
                                               const planners::PlanContext& context) {
    return planners::plan_pruned_packing(problem, collective, limits, context);
  };
  return {};
}

/// From which size on variants of the packing are wanted. Software adds to every hop, so that under a profile shallow
/// trees may win at any size.
Bytes smallest_of(const Question& question, bool names_variants) {
  const bool is_any = question.how.profile != nullptr || names_variants || question.sizes.empty();
  return is_any ? Bytes{} : std::ranges::min(question.sizes);
}

/// The ring that is walked in the place of a stored one; its planner then has nothing to do.
std::optional<planners::Candidate> take_walked_ring(std::vector<planners::Planner>& planners,
                                                    const Question& question) {
  const auto ring = std::ranges::find(planners, "ring", &planners::Planner::name);
  if (question.forms != PlanForms::any || question.packing.any() || ring == planners.end()) return std::nullopt;
  auto walked = find_walked_ring(*question.machine, question.collective, question.sizes, question.how);
  if (walked) planners.erase(ring);
  return walked;
}

}  // namespace

sim::Options RunOptions::at(Bytes size, const Pacing& pacing_of_run, const profile::CostedNetwork* setting) const {
  sim::Options options;
  options.size = size;
  options.set(pacing_of_run);
  options.element_size = element_size;
  options.model = model;
  options.set({endpoints(setting), circumstances.conditions});
  if (setting != nullptr) options.launch = setting->launch_with({std::min(pacing_of_run.chunk.count, size.count)});
  return options;
}

bool is_nccl_algorithm(std::string_view name) { return name == "nccl" || name.starts_with("nccl/"); }

bool is_packing_variant(std::string_view name) { return name.starts_with("packing/"); }

std::vector<planners::Planner> planners_for(const std::vector<std::string>& algorithms, const Collective& collective) {
  std::vector<planners::Planner> planners;
  const bool needs_all = contains(algorithms, "auto");
  const bool names_variants = std::ranges::any_of(algorithms, is_packing_variant);
  for (const planners::Planner& planner : planners::all_planners()) {
    const bool is_of_variants = planner.name == "packing" && names_variants;
    const bool is_of_auto = needs_all && planner.suits(collective);
    if (is_of_auto || is_of_variants || contains(algorithms, planner.name)) planners.push_back(planner);
  }
  for (const planners::Planner& planner : planners::nccl_planners()) {
    if (contains(algorithms, "nccl") || contains(algorithms, planner.name)) planners.push_back(planner);
  }
  return planners;
}

Result<planners::Candidates> plan(const Question& question, const PlanListener& listener) {
  const bool is_limited = question.packing.any();
  const bool is_auto = contains(question.algorithms, "auto");
  const bool names_variants = std::ranges::any_of(question.algorithms, is_packing_variant);
  std::vector<planners::Planner> planners = planners_for(question.algorithms, question.collective);
  std::erase_if(planners, [&](const planners::Planner& planner) {
    return contains(question.left_out, planner.name) && !contains(question.algorithms, planner.name);
  });
  if (is_limited) {
    if (auto limited = limit_packing(planners, question); !limited) return tl::unexpected(limited.error());
  }
  auto ring = take_walked_ring(planners, question);
  planners::CandidateOptions options;
  options.for_choice = !is_limited && (is_auto || names_variants);
  options.min_size = smallest_of(question, names_variants);
  options.named = question.algorithms;
  options.may_be_unstored = question.forms != PlanForms::schedules && !is_limited;
  options.lost = question.lost;
  options.paths = question.paths.value_or(paths_of(question.how.profile));
  options.context.known = question.known;
  options.context.on_round = listener.on_round;
  std::optional<planners::NcclEra> era;
  if (question.how.profile != nullptr && question.how.profile->profile.tuner) {
    era = profile::era_of(*question.how.profile->profile.tuner);
    options.context.nccl = &*era;
  }
  options.threads = threads_for(question);
  auto candidates =
      planners::make_candidates(*question.machine, question.collective, planners, options, listener.on_start);
  if (!candidates) return candidates;
  if (ring) {
    ring->schedule.bound = candidates->bound;
    candidates->made.insert(candidates->made.begin(), *std::move(ring));
  }
  if (!is_auto && options.for_choice) keep_named(*candidates, question.algorithms);
  if (!is_limited || candidates->find("packing") != nullptr) return candidates;
  const auto refusal = std::ranges::find(candidates->refused, "packing", &planners::Refusal::planner);
  if (refusal == candidates->refused.end()) return candidates;
  return fail(refusal->error.code, "no packing within k, max-trees, max-depth and gap: " + refusal->error.message,
              refusal->error.help);
}

}  // namespace espalier::forecast
