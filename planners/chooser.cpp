#include "planners/chooser.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/check.h"
#include "base/format_units.h"
#include "planners/bounds/bound.h"
#include "planners/packing/pruned_packing.h"
#include "schedule/verify/verify.h"

namespace espalier::planners {
namespace {

// Shares of units are rounded to whole elements, so the least time of a small message can be off by a little.
constexpr double certain_loss = 1.25;

/// Runs the candidates that may still win, those with the smallest least time first.
Result<void> run_trials(std::vector<Trial>& trials, Bytes size, const Evaluate& evaluate, const FixedCut& fixed) {
  std::vector<Trial*> order;
  for (Trial& trial : trials) order.push_back(&trial);
  std::ranges::stable_sort(order, {}, [](const Trial* trial) { return trial->least_time; });
  double best = 0;
  for (Trial* trial : order) {
    if (best > 0 && trial->least_time > certain_loss * best) continue;
    const Candidate& candidate = *trial->candidate;
    auto run = find_best_cut(candidate.chunks, size, fixed,
                             [&](const Cut& cut) { return evaluate(candidate.schedule, size, cut); });
    if (!run) return tl::unexpected(run.error());
    trial->run = std::move(*run);
    const double seconds = trial->run->elapsed.seconds();
    if (best == 0 || seconds < best) best = seconds;
  }
  return {};
}

/// What a candidate takes when there is next to nothing to move.
double latency_of(const Trial& trial) { return trial.candidate->chunks.least_time(Bytes{1}); }

/// Puts the best of those that are as fast as the first at the front: who waits less often, as no model counts all that
/// a wait costs.
/// Requires: those that ran come first, fastest first.
void settle_tie(std::vector<Trial>& trials) {
  const Picoseconds fastest = trials.front().run->elapsed;
  const auto is_slower = [&](const Trial& trial) { return !trial.run || trial.run->elapsed > fastest; };
  const auto end = std::ranges::find_if(trials, is_slower);
  std::stable_sort(trials.begin(), end, [](const Trial& a, const Trial& b) {
    return std::pair(latency_of(a), a.candidate) < std::pair(latency_of(b), b.candidate);
  });
}

std::string explain(const std::vector<Trial>& trials) {
  const Trial& best = trials.front();
  if (trials.size() == 1) return best.candidate->planner + " is the only candidate";
  const Trial& second = trials[1];
  const double seconds = best.run->elapsed.seconds();
  if (!second.run) {
    const double factor = seconds > 0 ? second.least_time / seconds : 1.0;
    return fmt::format("{}: {} needs at least {:.2f}x its time", best.candidate->planner, second.candidate->planner,
                       factor);
  }
  if (second.run->elapsed == best.run->elapsed) {
    const bool is_quicker = latency_of(best) < latency_of(second);
    return fmt::format("{}: as fast as {}, and {}", best.candidate->planner, second.candidate->planner,
                       is_quicker ? "quicker at small sizes" : "simpler");
  }
  const double factor = seconds > 0 ? second.run->elapsed.seconds() / seconds : 1.0;
  return fmt::format("{}: {:.2f}x faster than {}", best.candidate->planner, factor, second.candidate->planner);
}

void add_variants(std::vector<Candidate>& made, const ParallelLinks& network, const Schedule& packing) {
  const Topology& topology = network.topology();
  for (PackingPoint& point : pareto_packings(network, packing)) {
    const VerifyReport report = verify(point.schedule, topology, 1);
    ESPALIER_CHECK(report.ok(), "a pruned packing keeps its promise");
    point.schedule.bound = packing.bound;
    std::string name = fmt::format("packing/h{}t{}", point.shape.height, point.shape.trees_per_root);
    point.schedule.algorithm = name;
    const ChunkModel chunks(point.schedule, topology);
    made.push_back({std::move(name), std::move(point.schedule), chunks});
  }
}

}  // namespace

const Candidate* Candidates::find(std::string_view planner) const {
  const auto found = std::ranges::find(made, planner, &Candidate::planner);
  return found == made.end() ? nullptr : &*found;
}

Result<std::vector<Candidate>> make_candidates_by(const Planner& planner, const ParallelLinks& network,
                                                  const Collective& collective, const Bound& bound, bool variants,
                                                  const PlanContext& context) {
  auto schedule = plan_unbounded(network, collective, planner, context);
  if (!schedule) return tl::unexpected(schedule.error());
  schedule->bound = bound;
  std::vector<Candidate> made;
  if (variants && planner.name == "packing") add_variants(made, network, *schedule);
  ChunkModel chunks(*schedule, network.topology());
  made.push_back({std::string(planner.name), std::move(*schedule), chunks});
  return made;
}

Result<Candidates> make_candidates(const ParallelLinks& network, const Collective& collective,
                                   std::span<const Planner> planners,
                                   const std::function<void(std::string_view)>& on_start, bool variants,
                                   const PlanContext& context) {
  auto priced = compute_priced_bound(network, collective, context);
  if (!priced) return tl::unexpected(priced.error());
  PlanContext with_solution = context;
  with_solution.solution = priced->solution;
  Candidates candidates{{}, {}, std::move(priced->bound), std::move(priced->solution)};
  for (const Planner& planner : planners) {
    if (on_start) on_start(planner.name);
    auto made = make_candidates_by(planner, network, collective, candidates.bound, variants, with_solution);
    if (!made) {
      candidates.refused.push_back({std::string(planner.name), made.error()});
      continue;
    }
    std::ranges::move(*made, std::back_inserter(candidates.made));
  }
  return candidates;
}

Result<Choice> choose(const Candidates& candidates, Bytes size, const Evaluate& evaluate, const FixedCut& fixed) {
  ESPALIER_CHECK(!candidates.made.empty(), "choosing needs a candidate");
  std::vector<Trial> trials;
  for (const Candidate& candidate : candidates.made) {
    trials.push_back({&candidate, std::nullopt, candidate.chunks.least_time(size)});
  }
  if (auto ran = run_trials(trials, size, evaluate, fixed); !ran) return tl::unexpected(ran.error());
  std::ranges::stable_sort(trials, [](const Trial& a, const Trial& b) {
    if (a.run.has_value() != b.run.has_value()) return a.run.has_value();
    if (a.run) return a.run->elapsed < b.run->elapsed;
    return a.least_time < b.least_time;
  });
  settle_tie(trials);
  Choice choice;
  choice.candidate = trials.front().candidate;
  choice.run = *trials.front().run;
  choice.why = explain(trials);
  choice.trials = std::move(trials);
  return choice;
}

}  // namespace espalier::planners
