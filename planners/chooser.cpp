#include "planners/chooser.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <mutex>
#include <queue>

#include "base/check.h"
#include "base/format_units.h"
#include "base/parallel.h"
#include "planners/bounds/bound.h"
#include "planners/bounds/less_hardware.h"
#include "planners/lp/all_reduce_program.h"
#include "planners/packing/pruned_packing.h"
#include "planners/rank_limit.h"
#include "planners/symmetric/large_candidates.h"
#include "planners/symmetric/symmetric_plan.h"
#include "planners/symmetry/canonical_network.h"
#include "schedule/verify/verify.h"
#include "topology/reachable.h"

namespace espalier::planners {
namespace {

/// Where latency is a smaller part of the time, no packing is lower for a gain.
constexpr double min_latency = 0.01;

bool is_variant(const Candidate& candidate) { return candidate.planner.starts_with("packing/"); }

bool needs_variants(const ChunkModel& packing, Bytes size) {
  return packing.latency() > min_latency * packing.load_time(size);
}

double bound_time(const Candidates& candidates, Bytes size) {
  return to_double(candidates.bound.time_per_byte) * static_cast<double>(size.count);
}

/// Whether loads leave nothing to gain.
bool is_at_bound(const ChunkModel& chunks, const Bound& bound) {
  constexpr Bytes any{1};
  return chunks.load_time(any) <= good_enough * to_double(bound.time_per_byte);
}

/// Whether this candidate's loads leave lp nothing to gain: packing's, balance's, and pairwise's where lp takes long.
bool makes_lp_needless(const Candidate& candidate, const Bound& bound) {
  constexpr std::uint32_t many_ranks = 512;
  constexpr std::uint32_t many_of_matrix = 64;  // without symmetry
  const Collective& collective = candidate.schedule.collective;
  const bool is_many = collective.rank_count > (collective.has_matrix() ? many_of_matrix : many_ranks);
  const bool is_rival =
      candidate.planner == "packing" || candidate.planner == "balance" || (candidate.planner == "pairwise" && is_many);
  return is_rival && is_at_bound(candidate.chunks, bound);
}

bool is_needless(const Candidates& candidates, std::string_view planner) {
  return planner == "lp" && std::ranges::any_of(candidates.made, [&](const Candidate& candidate) {
           return makes_lp_needless(candidate, candidates.bound);
         });
}

/// The least time of a candidate may be off by this factor: shares of units are rounded to whole elements.
double rounding(const Candidate& candidate, Bytes size) {
  constexpr double largest_element = 16;
  const double rounded = largest_element * static_cast<double>(candidate.schedule.slices.size());
  return 1 + std::min(0.25, rounded / std::max(1.0, static_cast<double>(size.count)));
}

/// Why a candidate need not run beside the best so far, if so.
std::optional<NoRun> find_reason(const Candidates& candidates, const CandidateTimes& times, const Trial& trial,
                                 Bytes size, const std::optional<Picoseconds>& best) {
  if (!best) return std::nullopt;
  const Candidate& candidate = *trial.candidate;
  if (trial.min_time > rounding(candidate, size) * best->seconds()) return NoRun::cannot_win;
  if (best->seconds() <= good_enough * bound_time(candidates, size)) return NoRun::is_near_bound;
  if (!times.may_gain(candidate, size)) return NoRun::gains_little;
  return std::nullopt;
}

/// A trial that is still to come; those expected to be quickest come first, and last who hardly gains.
struct Prospect {
  bool gains_little = false;
  double seconds = 0;  ///< Of one that was looked at what it is expected to take, of others their floor.
  bool is_known = false;
  std::size_t place = 0;

  friend auto operator<=>(const Prospect&, const Prospect&) = default;
};

/// Runs the candidates that may still win. What is known of one is worked out when its turn comes, for that takes long
/// where schedules are large.
Result<void> run_trials(const Candidates& candidates, std::vector<Trial>& trials, Bytes size, CandidateTimes& times) {
  std::priority_queue<Prospect, std::vector<Prospect>, std::greater<>> prospects;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    prospects.push({!times.may_gain(*trials[i].candidate, size), trials[i].min_time, false, i});
  }
  std::optional<Picoseconds> best;
  std::optional<Error> refused;
  const auto refuse = [&](Trial& trial, const Error& error) {
    if (!refused) refused = error;
    trial.run = tl::unexpected(NoRun::unsupported);
  };
  while (!prospects.empty()) {
    Prospect next = prospects.top();
    prospects.pop();
    Trial& trial = trials[next.place];
    if (const auto reason = find_reason(candidates, times, trial, size, best)) {
      trial.run = tl::unexpected(*reason);
      continue;
    }
    if (!next.is_known) {
      const auto least = times.min_time(*trial.candidate, size);
      if (!least && least.error().code != ErrorCode::unsupported) return tl::unexpected(least.error());
      if (!least) {
        refuse(trial, least.error());
        continue;
      }
      trial.min_time = *least;
      next.seconds = times.expected_time(*trial.candidate, size);
      next.is_known = true;
      prospects.push(next);
      continue;
    }
    auto ran = times.run(trial, size, best);
    if (!ran && ran.error().code != ErrorCode::unsupported) return ran;
    if (!ran) refuse(trial, ran.error());
    if (trial.run && (!best || trial.run->elapsed < *best)) best = trial.run->elapsed;
  }
  if (!best && refused) return tl::unexpected(*refused);
  ESPALIER_CHECK(best.has_value(), "what is not refused runs, or another did");
  return {};
}

/// What a candidate takes when there is next to nothing to move.
double latency_of(const Trial& trial) { return trial.candidate->chunks.min_time(Bytes{1}); }

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

/// Why the best is taken where the second, and so all others, did not run.
std::string explain_unrun(const Trial& best, const Trial& second, double bound) {
  const double seconds = best.run->elapsed.seconds();
  if (bound > 0 && seconds <= good_enough * bound) {
    const double percent = 100 * std::max(0.0, 1 - bound / seconds);
    return fmt::format("{}: within {:.1f} % of the bound", best.candidate->planner, std::max(0.1, percent));
  }
  const double factor = seconds > 0 ? second.min_time / seconds : 1.0;
  switch (second.run.error()) {
    case NoRun::cannot_win:
      return fmt::format("{}: {} needs at least {:.2f}x its time", best.candidate->planner, second.candidate->planner,
                         factor);
    case NoRun::given_up:
      return fmt::format("{}: {} was given up at {:.2f}x its time", best.candidate->planner, second.candidate->planner,
                         factor);
    case NoRun::gains_little:
      return fmt::format("{}: loads leave {} under 1 % to gain", best.candidate->planner, second.candidate->planner);
    case NoRun::is_near_bound:
    case NoRun::unsupported: break;
  }
  return fmt::format("{}: no other can be simulated here", best.candidate->planner);
}

std::string explain(const std::vector<Trial>& trials, double bound) {
  const Trial& best = trials.front();
  if (trials.size() == 1) return best.candidate->planner + " is the only candidate";
  const Trial& second = trials[1];
  const double seconds = best.run->elapsed.seconds();
  if (!second.run) return explain_unrun(best, second, bound);
  if (second.run->elapsed == best.run->elapsed) {
    const bool is_quicker = latency_of(best) < latency_of(second);
    return fmt::format("{}: as fast as {}, and {}", best.candidate->planner, second.candidate->planner,
                       is_quicker ? "quicker at small sizes" : "simpler");
  }
  const double factor = seconds > 0 ? second.run->elapsed.seconds() / seconds : 1.0;
  return fmt::format("{}: {:.2f}x faster than {}", best.candidate->planner, factor, second.candidate->planner);
}

/// Whether planners begin while the bound is still computed: that of an all_reduce may take seconds, and what has none
/// is seen before.
bool may_plan_beside_bound(const Topology& topology, const Collective& collective, const CandidateOptions& options) {
  constexpr std::uint32_t many_ranks = 256;
  return collective.kind == CollectiveKind::all_reduce && collective.rank_count >= many_ranks && options.threads > 1 &&
         !find_unreachable(topology);
}

/// Whether the program of an all_reduce's trees, where the bound of a large network does without it, is solved once for
/// all planners that would solve it.
bool shares_program(std::span<const Planner> planners, const Collective& collective) {
  constexpr std::uint32_t many_ranks = 64;
  return collective.kind == CollectiveKind::all_reduce && collective.rank_count > many_ranks &&
         std::ranges::find(planners, "packing", &Planner::name) != planners.end();
}

std::shared_ptr<const ScheduleSymmetry> find_large_symmetry(const Schedule& schedule, const BundledNetwork& network) {
  if (schedule.transfers.size() < min_symmetric_transfers || schedule.collective.has_matrix()) return nullptr;
  const std::vector<RankMap> likely = likely_rank_maps(network, schedule);
  auto symmetry = find_symmetry(schedule, network.topology(), MoveOrder::same, likely);
  return symmetry ? std::make_shared<const ScheduleSymmetry>(*std::move(symmetry)) : nullptr;
}

void add_variants(std::vector<Candidate>& made, const BundledNetwork& network, const Schedule& packing,
                  unsigned threads) {
  const Topology& topology = network.topology();
  for (PackingPoint& point : pareto_packings(network, packing, threads)) {
    const VerifyReport report = verify(point.schedule, topology, 1);
    ESPALIER_CHECK(report.ok(), "a pruned packing keeps its promise");
    point.schedule.bound = packing.bound;
    std::string name = fmt::format("packing/h{}t{}", point.shape.height, point.shape.trees_per_root);
    point.schedule.algorithm = name;
    const ChunkModel chunks(point.schedule, topology);
    made.push_back({std::move(name), std::move(point.schedule), chunks});
    made.back().is_verified = true;
  }
}

}  // namespace

const Collective& Candidate::collective() const {
  return symmetric != nullptr ? symmetric->collective : schedule.collective;
}

std::uint64_t Candidate::transfer_count() const {
  if (symmetric != nullptr) return symmetric->transfer_count();
  if (walks.empty()) return schedule.transfers.size();
  return walks.size() * walks.front().steps() * schedule.collective.rank_count;
}

Result<void> require_verified(const Candidate& candidate, const Topology& topology) {
  if (candidate.is_verified || !candidate.is_stored()) return {};
  return espalier::require_verified(candidate.schedule, topology, "the schedule by " + candidate.planner);
}

const Candidate* Candidates::find(std::string_view planner) const {
  const auto found = std::ranges::find(made, planner, &Candidate::planner);
  return found == made.end() ? nullptr : &*found;
}

bool may_win(const Candidates& candidates, const Candidate& candidate, Bytes size) {
  if (!is_variant(candidate)) return !is_needless(candidates, candidate.planner);
  const Candidate* packing = candidates.find("packing");
  return packing == nullptr || needs_variants(packing->chunks, size);
}

Result<std::vector<Candidate>> make_candidates_by(const Planner& planner, const BundledNetwork& network,
                                                  const Collective& collective, const Bound& bound,
                                                  const CandidateOptions& options) {
  auto schedule = plan_unbounded(network, collective, planner, options.context);
  if (!schedule) return tl::unexpected(schedule.error());
  schedule->bound = bound;
  std::vector<Candidate> made;
  const ChunkModel chunks(*schedule, network.topology());
  const bool has_variants = options.for_choice && planner.name == "packing";
  if (has_variants && needs_variants(chunks, options.min_size)) add_variants(made, network, *schedule, options.threads);
  auto symmetry = find_large_symmetry(*schedule, network);
  made.push_back(
      {std::string(planner.name), std::move(*schedule), chunks, {}, nullptr, nullptr, std::move(symmetry), true});
  return made;
}

Result<Candidates> make_candidates(const BundledNetwork& network, const Collective& collective,
                                   std::span<const Planner> planners, const CandidateOptions& options,
                                   const std::function<void(std::string_view)>& on_start) {
  const bool is_large = options.may_be_unstored && collective.rank_count >= min_symmetric_ranks;
  std::optional<BundledNetwork> of_software;
  if (options.paths == Paths::software) of_software.emplace(network.topology(), options.paths);
  const BundledNetwork& planned_on = of_software ? *of_software : network;
  if (is_large && planned_on.has_every_path()) {
    auto large = make_large_candidates(network, collective, planners, options, on_start);
    if (large) return *std::move(large);
  }
  if (auto fits = check_rank_limit(collective); !fits) return tl::unexpected(fits.error());
  CandidateOptions with_solution = options;
  Candidates candidates;
  const auto find_bound = [&]() -> Result<void> {
    auto priced = compute_priced_bound(network, options.lost, collective, options.context);
    if (!priced) return tl::unexpected(priced.error());
    if (planned_on.has_every_path()) with_solution.context.solution = priced->solution;
    if (shares_program(planners, collective) && with_solution.context.solution == nullptr) {
      const PlanningOrder order(planned_on, collective);
      const PlanningProblem& problem = order.network().problem();
      if (!find_unreachable(problem.topology())) {
        with_solution.context.solution = solve_all_reduce(problem, options.context);
      }
    }
    candidates.bound = std::move(priced->bound);
    candidates.solution = std::move(priced->solution);
    return {};
  };
  std::vector<std::optional<Result<std::vector<Candidate>>>> made(planners.size());
  std::mutex starting;
  const auto make = [&](std::size_t i) {
    if (on_start) {
      const std::scoped_lock lock(starting);
      on_start(planners[i].name);
    }
    if (is_large && planners[i].name == "ring") {
      if (auto walked = make_walked_ring(network.topology(), collective, {})) {
        std::vector<Candidate> rings;
        rings.push_back(*std::move(walked));
        made[i] = std::move(rings);
        return;
      }
    }
    const CandidateOptions& known = planners[i].uses_context ? with_solution : options;
    made[i] = make_candidates_by(planners[i], planned_on, collective, {}, known);
  };
  const auto take = [&](std::size_t i) {
    if (!made[i]) return;
    if (!*made[i]) return candidates.refused.push_back({std::string(planners[i].name), made[i]->error()});
    for (Candidate& candidate : **made[i]) {
      candidate.schedule.bound = candidates.bound;
      candidates.made.push_back(std::move(candidate));
    }
  };
  // What may turn out to be needless comes when the others are there.
  const auto may_wait = [&](std::size_t i) {
    return options.for_choice && planners[i].name == "lp" &&
           std::ranges::find(options.named, planners[i].name) == options.named.end();
  };
  std::vector<std::size_t> first, last, behind_bound;
  const bool is_beside = may_plan_beside_bound(network.topology(), collective, options);
  for (std::size_t i = 0; i < planners.size(); ++i) {
    (may_wait(i) ? last : is_beside && planners[i].uses_context ? behind_bound : first).push_back(i);
  }
  Result<void> bounded;
  const auto bound_and_make = [&] {
    bounded = find_bound();
    for (const std::size_t i : behind_bound) {
      if (bounded) make(i);
    }
  };
  if (!is_beside) bound_and_make();
  if (!bounded) return tl::unexpected(bounded.error());
  const std::size_t before = is_beside ? 1 : 0;
  run_parallel(before + first.size(), options.threads,
               [&](std::size_t i) { i < before ? bound_and_make() : make(first[i - before]); });
  if (!bounded) return tl::unexpected(bounded.error());
  const bool needs_last = std::ranges::none_of(made, [&](const auto& result) {
    return result && *result && makes_lp_needless((*result)->back(), candidates.bound);
  });
  for (const std::size_t i : last) {
    if (needs_last) make(i);
  }
  for (std::size_t i = 0; i < planners.size(); ++i) take(i);
  return candidates;
}

std::string_view describe(NoRun reason) {
  switch (reason) {
    case NoRun::cannot_win: return "not run: it cannot win";
    case NoRun::is_near_bound: return "not run: at most 0.5 % to gain";
    case NoRun::gains_little: return "not run: loads leave it under 1 % to gain";
    case NoRun::given_up: return "given up: over twice the time";
    case NoRun::unsupported: return "not run: not simulated here";
  }
  return "";
}

double RunCosts::min_time(Bytes size) const {
  return fixed.launch.seconds() + std::max(chunks->latency(), chunks->load_time(size) / fixed.payload);
}

double RunCosts::pipelined_time(Bytes size) const {
  return fixed.launch.seconds() + chunks->latency() + chunks->load_time(size) / fixed.payload;
}

double LinkTimes::floor(const Candidate& candidate, Bytes size) { return costs_of(candidate, size).min_time(size); }

Result<void> LinkTimes::run(Trial& trial, Bytes size, const std::optional<Picoseconds>& best) {
  const Candidate& candidate = *trial.candidate;
  const RunCosts known = costs_of(candidate, size);
  const auto evaluate_pacing = [&](const Pacing& pacing, Picoseconds deadline) {
    return evaluate(candidate, size, pacing, deadline);
  };
  const FixedPacing own = fixed_pacing(candidate.schedule, size, known.fixed);
  Result<std::optional<RunReport>> found;
  if (!best) {
    found = find_best_pacing(*known.chunks, size, own, evaluate_pacing);
  } else if (known.pipelined_time(size) >= best->seconds()) {
    // Hardly a cut makes up for loads and latencies that take longer than the best so far.
    found = evaluate_pacing(first_pacing(*known.chunks, size, own), latest_beside(*best));
  } else {
    found = find_best_pacing_beside(*best, *known.chunks, size, own, evaluate_pacing);
  }
  if (!found) return tl::unexpected(found.error());
  if (*found) {
    trial.run = **std::move(found);
  } else {
    trial.run = tl::unexpected(NoRun::given_up);
    trial.min_time = std::max(trial.min_time, latest_beside(*best).seconds());
  }
  return {};
}

Result<Choice> choose(const Candidates& candidates, Bytes size, CandidateTimes& times) {
  std::vector<Trial> trials;
  for (const Candidate& candidate : candidates.made) {
    if (!times.competes(candidate)) continue;
    trials.push_back({&candidate, tl::unexpected(NoRun::unsupported), times.floor(candidate, size)});
  }
  ESPALIER_CHECK(!trials.empty(), "choosing needs a candidate");
  if (auto ran = run_trials(candidates, trials, size, times); !ran) return tl::unexpected(ran.error());
  std::ranges::stable_sort(trials, [](const Trial& a, const Trial& b) {
    if (a.run.has_value() != b.run.has_value()) return a.run.has_value();
    if (a.run) return a.run->elapsed < b.run->elapsed;
    return a.min_time < b.min_time;
  });
  settle_tie(trials);
  Choice choice;
  choice.candidate = trials.front().candidate;
  choice.run = *trials.front().run;
  choice.why = explain(trials, bound_time(candidates, size));
  choice.trials = std::move(trials);
  return choice;
}

}  // namespace espalier::planners
