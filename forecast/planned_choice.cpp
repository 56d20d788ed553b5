#include "forecast/planned_choice.h"

#include <algorithm>
#include <utility>

#include "forecast/candidate_runs.h"
#include "planners/bundled_network.h"
#include "planners/ring/ring_walks.h"
#include "planners/symmetry/canonical_network.h"
#include "topology/reachable.h"

namespace espalier::forecast {
namespace {

/// Rings whose latencies take so many times what their loads do are left out at first.
constexpr double too_slow = 3;
/// Those that need at least so many times what is chosen never run beside it: it is expected to take at most twice its
/// time, so that it runs before.
constexpr double never_run = 2;

bool names_nccl(const Question& question) { return std::ranges::any_of(question.algorithms, is_nccl_algorithm); }

/// Whether rings are planned because all planners are, and take long to be.
bool may_leave_rings(const Question& question) {
  const std::vector<std::string>& names = question.algorithms;
  const bool is_asked_for = std::ranges::find(names, "ring") != names.end();
  const bool is_auto = std::ranges::find(names, "auto") != names.end();
  const std::uint32_t ranks = question.collective.rank_count;
  return is_auto && !is_asked_for && !question.how.pacing.chunk && !question.how.pacing.ahead &&
         planners::goes_round_rings(question.collective.kind) && ranks >= planners::min_walked_ranks &&
         ranks < planners::max_stored_ranks;
}

/// Seconds that no run of the rings that would be planned is below; 0 where that is not known, or they may be quick.
double floor_of_slow_rings(const Question& question) {
  const planners::BundledNetwork network(*question.machine, question.paths.value_or(paths_of(question.how.profile)));
  const planners::PlanningOrder order(network, question.collective);
  const Topology& planned_on = order.network().planned_on();
  if (find_unreachable(planned_on)) return 0;
  const auto rings = planners::plan_ring_walks(planned_on, order.collective());
  if (!rings) return 0;
  const Bytes size = question.sizes.front();
  const double floor = rings->chunks.min_time(size);
  return floor >= too_slow * rings->chunks.load_time(size) ? floor : 0;
}

/// Whether rings that need at least `floor` seconds would not have run beside what was chosen without them.
bool stay_behind(double floor, const planners::Choice& choice, CandidateRuns& runs) {
  const Bytes size = choice.run.size;
  return runs.times().may_gain(*choice.candidate, size) && floor >= never_run * choice.run.elapsed.seconds();
}

Result<NcclRun> run_nccl(CandidateRuns& runs, Bytes size) {
  const auto ran = runs.run("nccl", size);
  if (ran) return NcclRun{static_cast<const RunReport&>(ran->report), ran->by()};
  if (ran.error().code == ErrorCode::unsupported) return NcclRun{};
  return tl::unexpected(ran.error());
}

/// Without rings where these need at least `floor` seconds, if that is more than 0: nothing where they may have been
/// chosen.
Result<std::optional<PlannedChoice>> choose_beside_rings(const Question& question, bool with_nccl, double floor) {
  Question asked = question;
  const bool is_bound_only = question.algorithms.empty();
  const bool is_shared = with_nccl && question.how.profile != nullptr && !is_bound_only && !names_nccl(question);
  if (is_shared) asked.algorithms.emplace_back("nccl");
  if (floor > 0) asked.left_out.emplace_back("ring");
  auto candidates = plan(asked);
  if (!candidates) return tl::unexpected(candidates.error());
  PlannedChoice planned{*std::move(candidates), std::nullopt, {}};
  if (is_bound_only) return planned;
  const planners::Candidates& all = planned.candidates;
  const auto is_own = [&](const auto& each) { return !is_shared || !is_nccl_algorithm(each.planner); };
  if (std::ranges::none_of(all.made, is_own)) {
    if (floor > 0) return std::nullopt;
    return tl::unexpected(std::ranges::find_if(all.refused, is_own)->error);
  }
  CandidateRuns runs(*question.machine, all, question.how);
  auto choice = runs.choose(question.sizes.front());
  if (floor > 0 && (!choice || !stay_behind(floor, *choice, runs))) return std::nullopt;
  if (!choice) return tl::unexpected(choice.error());
  planned.choice = *std::move(choice);
  if (is_shared) planned.nccl = run_nccl(runs, question.sizes.front());
  return planned;
}

}  // namespace

Result<NcclRun> run_nccl(Question question) {
  question.algorithms = {"nccl"};
  const auto candidates = plan(question);
  if (!candidates) return tl::unexpected(candidates.error());
  CandidateRuns runs(*question.machine, *candidates, question.how);
  return run_nccl(runs, question.sizes.front());
}

Result<PlannedChoice> plan_and_choose(const Question& question, bool with_nccl) {
  const double floor = may_leave_rings(question) ? floor_of_slow_rings(question) : 0;
  if (floor > 0) {
    auto planned = choose_beside_rings(question, with_nccl, floor);
    if (!planned) return tl::unexpected(planned.error());
    if (*planned) return **std::move(planned);
  }
  auto planned = choose_beside_rings(question, with_nccl, 0);
  if (!planned) return tl::unexpected(planned.error());
  return **std::move(planned);
}

}  // namespace espalier::forecast
