#include "forecast/degrade.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>

#include "base/parallel.h"
#include "forecast/candidate_runs.h"
#include "forecast/entrants.h"
#include "planners/bounds/bound.h"
#include "planners/bounds/less_hardware.h"
#include "planners/bundled_network.h"
#include "planners/lp/all_reduce_program.h"
#include "planners/lp/trees/tree_memory.h"
#include "planners/ring/ring_walks.h"
#include "planners/symmetry/canonical_network.h"
#include "topology/reachable.h"
#include "topology/without.h"

namespace espalier::forecast {
namespace {

/// What NCCL gives under a profile.
struct NcclRun {
  std::optional<RunReport> run;  ///< Absent where it has nothing for the collective.
  std::string by;                ///< By which algorithm with which protocol: "nccl/ring/simple".
};

/// What planning a machine gave: all candidates that may have won, and the fastest of them at the first size.
struct PlannedChoice {
  planners::Candidates candidates;
  std::optional<planners::Choice> choice;            ///< None where only bounds are wanted.
  Result<NcclRun> nccl = NcclRun{std::nullopt, {}};  ///< Where it was asked for.
};

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

/// NCCL alone. Errors: those of plan and of runs.
Result<NcclRun> run_nccl(Question question) {
  question.algorithms = {"nccl"};
  const auto candidates = plan(question);
  if (!candidates) return tl::unexpected(candidates.error());
  CandidateRuns runs(*question.machine, *candidates, question.how);
  return run_nccl(runs, question.sizes.front());
}

/// Plans a question and chooses at its first size. Rings of many ranks, which take longest to write down, are not
/// planned where they cannot be chosen; what is chosen is the same. `with_nccl`: under a profile what NCCL would pick
/// is planned and run as well. Errors: those of plan, of all planners, and of runs.
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

/// Adds what NCCL gives. Errors: those of its runs.
Result<void> add_nccl(Result<NcclRun> nccl, Outlook& outlook) {
  if (!nccl) return tl::unexpected(nccl.error());
  outlook.nccl = std::move(nccl->run);
  outlook.nccl_by = std::move(nccl->by);
  return {};
}

Fastest fastest_of(const planners::Choice& choice) {
  return {choice.candidate->planner, choice.run, false, repairs_of(*choice.candidate) != nullptr};
}

/// All links that end when these parts fail.
std::vector<LinkId> failing_links(const Topology& topology, const Parts& parts) {
  std::vector<LinkId> links = parts.links;
  for (const NodeId node : parts.nodes) {
    links.insert(links.end(), topology.out_links(node).begin(), topology.out_links(node).end());
    links.insert(links.end(), topology.in_links(node).begin(), topology.in_links(node).end());
  }
  return links;
}

class Sweep {
 public:
  explicit Sweep(const Question& question) : question_(question), topology_(*question.machine), network_(topology_) {}

  Result<Outlook> look_at_healthy() {
    auto planned = plan_and_choose(question_, true);
    if (!planned) return tl::unexpected(planned.error());
    planned_ = std::move(*planned);
    healthy_ = {question_.collective, planned_.candidates.bound};
    keep_trees();
    if (auto added = add_nccl(planned_.nccl, healthy_); !added) return tl::unexpected(added.error());
    if (!planned_.choice) return healthy_;
    healthy_.fastest = fastest_of(*planned_.choice);
    for (const planners::Trial& trial : planned_.choice->trials) {
      if (trial.run) usage_.push_back({&trial, used_links(*trial.candidate, topology_)});
    }
    return healthy_;
  }

  /// `like`: what was found of a failure that leaves planners the same; null: none was.
  Result<Damage> look_at(const planners::Failure& failure, const Damage* like) const {
    Damage damage{failure, std::nullopt, {}, 1, 1};
    const auto rest = without(topology_, failure.parts, failure.name);
    if (!rest) {
      damage.broken = rest.error();
      return damage;
    }
    const planners::LostParts lost{topology_, failure.parts};
    Question on_rest = question_;
    on_rest.machine = &*rest;
    on_rest.collective = collective_on(*rest);
    on_rest.lost = &lost;
    // With the whole machine's trees bounds are found sooner; plans are those of the rest alone, as anyone asks for it.
    on_rest.known = question_.algorithms.empty() ? &known_ : nullptr;
    const bool is_known = like != nullptr && like->outlook && like->outlook->fastest;
    auto found = is_known ? look_at_like(*like->outlook->fastest, on_rest) : look_at_rest(failure, on_rest);
    if (!found) return tl::unexpected(found.error());
    Outlook outlook = *std::move(found);
    // NCCL may see what planners do not: a NIC without its cable is still one.
    if (is_known && healthy_.nccl) {
      if (auto added = add_nccl_of_rest(run_nccl(on_rest), outlook); !added) return tl::unexpected(added.error());
    }
    // Where one rank is left nothing has to move, and nothing is lost.
    const bool moves = outlook.bound.time_per_byte != 0;
    damage.bound_loss = moves ? loss(healthy_.bound_busbw().value_or(0), *outlook.bound_busbw()) : 0;
    damage.loss = moves ? loss(healthy_.busbw(), outlook.busbw()) : 0;
    damage.outlook = std::move(outlook);
    return damage;
  }

 private:
  struct Usage {
    const planners::Trial* trial;
    std::vector<bool> links;
  };

  static double loss(double healthy, double rest) { return healthy > 0 ? 1 - rest / healthy : 0; }

  /// The collective on what is left: the same root, all ranks that are left.
  [[nodiscard]] Collective collective_on(const Topology& rest) const {
    Collective collective = healthy_.collective;
    collective.rank_count = static_cast<std::uint32_t>(rest.rank_count());
    if (!collective.root.is_none()) {
      collective.root = rest.rank_of(rest.find_node(topology_.rank_name(collective.root)));
    }
    return collective;
  }

  /// The fastest of the healthy machine's schedules that go on as if nothing had happened.
  [[nodiscard]] const planners::Trial* find_untouched(const planners::Failure& failure) const {
    const bool rank_fails =
        std::ranges::any_of(failure.parts.nodes, [&](NodeId id) { return topology_.node(id).is_rank; });
    if (rank_fails) return nullptr;
    const std::vector<LinkId> failing = failing_links(topology_, failure.parts);
    for (const Usage& usage : usage_) {
      if (std::ranges::none_of(failing, [&](LinkId link) { return usage.links[link.index()]; })) return usage.trial;
    }
    return nullptr;
  }

  [[nodiscard]] Result<Outlook> look_at_rest(const planners::Failure& failure, const Question& on_rest) const {
    const planners::Trial* untouched = find_untouched(failure);
    if (untouched != nullptr && untouched->candidate == planned_.choice->candidate) {
      auto outlook = look_at_like({untouched->candidate->planner, *untouched->run, true, false}, on_rest);
      if (!outlook || !healthy_.nccl) return outlook;
      if (auto added = add_nccl_of_rest(run_nccl(on_rest), *outlook); !added) return tl::unexpected(added.error());
      return outlook;
    }
    auto planned = plan_and_choose(on_rest, healthy_.nccl.has_value());
    if (!planned) return tl::unexpected(planned.error());
    Outlook outlook{on_rest.collective, std::move(planned->candidates.bound)};
    if (auto added = add_nccl_of_rest(std::move(planned->nccl), outlook); !added) {
      return tl::unexpected(added.error());
    }
    if (!planned->choice) return outlook;
    outlook.fastest = fastest_of(*planned->choice);
    if (untouched != nullptr && untouched->run->elapsed <= planned->choice->run.elapsed) {
      outlook.fastest = Fastest{untouched->candidate->planner, *untouched->run, true, false};
    }
    return outlook;
  }

  /// What is left may have nothing for NCCL to run.
  static Result<void> add_nccl_of_rest(Result<NcclRun> nccl, Outlook& outlook) {
    if (!nccl && nccl.error().code == ErrorCode::infeasible) return {};
    return add_nccl(std::move(nccl), outlook);
  }

  /// Where the fastest is known, its bound alone is missing.
  [[nodiscard]] Result<Outlook> look_at_like(Fastest fastest, const Question& on_rest) const {
    auto bound = planners::compute_bound(*on_rest.machine, on_rest.collective, {{}, &known_});
    if (!bound) return tl::unexpected(bound.error());
    // No time of what is left is below the bound of all.
    if (on_rest.collective.rank_count == healthy_.collective.rank_count) {
      planners::keep_to_whole(*bound, healthy_.bound);
    }
    return Outlook{on_rest.collective, *std::move(bound), std::move(fastest)};
  }

  /// The healthy machine's trees are what bounds of the rest begin with.
  void keep_trees() {
    for (const planners::Candidate& candidate : planned_.candidates.made) {
      const bool has_trees = candidate.planner == "packing" || candidate.planner == "lp";
      if (has_trees && whole_schedule(candidate)) known_.keep(topology_, candidate.schedule);
    }
    const auto& program = planned_.candidates.solution;
    if (program == nullptr || !program->solution.attained) return;
    const planners::PlanningOrder order(network_, healthy_.collective);
    known_.keep(order.network().topology(), program->orbits, program->groups, program->solution);
  }

  const Question& question_;
  const Topology& topology_;
  const planners::BundledNetwork network_;
  Outlook healthy_;
  PlannedChoice planned_;
  std::vector<Usage> usage_;    ///< By trial, fastest first.
  planners::TreeMemory known_;  ///< The trees of the healthy machine.
};

/// What no rank can use any more when these parts fail, by link: they, and what leads nowhere then. Empty where ranks
/// are cut off.
std::vector<bool> useless_links(const Topology& topology, const planners::Failure& failure) {
  const auto rest = without(topology, failure.parts, failure.name);
  if (!rest) return {};
  const Parts left = what_is_left(topology, failure.parts);
  const std::vector<bool> is_dead_end = planners::find_dead_ends(*rest);
  std::vector<bool> is_useless(topology.link_count(), true);
  for (std::size_t i = 0; i < left.links.size(); ++i) {
    const Link& link = rest->link(LinkId(i));
    is_useless[left.links[i].index()] = is_dead_end[link.tail.index()] || is_dead_end[link.head.index()];
  }
  return is_useless;
}

/// By failure: the first one that leaves all planners the same, such as a NIC of whose two cables one fails; which may
/// be itself.
std::vector<std::size_t> find_like_rests(const Question& question, const std::vector<planners::Failure>& failures) {
  const Topology& topology = *question.machine;
  std::map<std::vector<bool>, std::size_t> known;
  std::vector<std::size_t> like;
  for (std::size_t i = 0; i < failures.size(); ++i) {
    const std::vector<NodeId>& nodes = failures[i].parts.nodes;
    const bool is_rank = std::ranges::any_of(nodes, [&](NodeId node) { return topology.node(node).is_rank; });
    std::vector<bool> useless =
        is_rank || question.collective.has_matrix() ? std::vector<bool>{} : useless_links(topology, failures[i]);
    like.push_back(useless.empty() ? i : known.try_emplace(std::move(useless), i).first->second);
  }
  return like;
}

}  // namespace

std::optional<double> Outlook::bound_busbw() const {
  if (bound.time_per_byte == 0) return std::nullopt;
  return to_double(collective.busbw_factor() / bound.time_per_byte);
}

double Outlook::busbw() const { return fastest ? fastest->run.busbw(collective) : bound_busbw().value_or(0); }

Result<Degradation> degrade(const Question& question, const DegradeOptions& options, const OnFailure& on_failure) {
  const bool has_matrix = question.collective.has_matrix();
  if (!has_matrix && !question.collective.shares.empty()) {
    return fail(ErrorCode::unsupported, "failures are compared for equal shards (no --shares)",
                "take parts away one by one with --without");
  }
  if (has_matrix && options.ranks) {
    return fail(ErrorCode::unsupported, "a traffic matrix is of all ranks: none of them can fail (--fail-ranks)",
                "leave --fail-ranks or --matrix out");
  }
  const std::vector<planners::Failure> failures =
      planners::single_failures(*question.machine, {options.ranks, question.collective.root, has_matrix});
  const auto tell = [&](const std::string& what, std::size_t done) {
    if (on_failure) on_failure(what, done, failures.size() + 1);
  };
  Sweep sweep(question);
  tell("the whole", 0);
  auto healthy = sweep.look_at_healthy();
  if (!healthy) return tl::unexpected(healthy.error());
  Degradation degradation{std::move(*healthy), {}};
  std::vector<std::optional<Result<Damage>>> damages(failures.size());
  std::mutex telling;
  std::size_t begun = 1;
  const std::vector<std::size_t> like = find_like_rests(question, failures);
  const auto look_at = [&](std::size_t i) {
    {
      const std::scoped_lock lock(telling);
      tell(failures[i].name, begun++);
    }
    const bool is_first = like[i] == i || !*damages[like[i]];
    damages[i] = sweep.look_at(failures[i], is_first ? nullptr : &**damages[like[i]]);
  };
  for (const bool takes_first : {true, false}) {
    std::vector<std::size_t> now;
    for (std::size_t i = 0; i < failures.size(); ++i) {
      if ((like[i] == i) == takes_first) now.push_back(i);
    }
    run_parallel(now.size(), options.threads, [&](std::size_t i) { look_at(now[i]); });
  }
  for (std::optional<Result<Damage>>& damage : damages) {
    if (!*damage) return tl::unexpected(damage->error());
    degradation.damages.push_back(std::move(**damage));
  }
  std::ranges::stable_sort(degradation.damages, [](const Damage& a, const Damage& b) {
    return std::tuple(-a.loss, -a.bound_loss) < std::tuple(-b.loss, -b.bound_loss);
  });
  return degradation;
}

}  // namespace espalier::forecast
