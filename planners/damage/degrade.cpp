#include "planners/damage/degrade.h"

#include <algorithm>
#include <mutex>
#include <tuple>

#include "base/parallel.h"
#include "planners/bounds/bound.h"
#include "planners/chooser.h"
#include "planners/lp/all_reduce_program.h"
#include "planners/lp/trees/tree_memory.h"
#include "planners/symmetric/repaired_plan.h"

namespace espalier::planners {
namespace {

/// What planning a machine gave: all candidates, and what `choose` made of them; nothing where only bounds are wanted.
struct Planned {
  Candidates candidates;
  std::optional<Choice> choice;
};

Result<Planned> plan_all(const Topology& topology, const Collective& collective, const DegradeOptions& options,
                         const ChooseOn& choose_on, const TreeMemory& known, const LostParts* lost = nullptr) {
  CandidateOptions how;
  how.may_be_unstored = options.may_be_unstored && !options.planners.empty();
  how.lost = lost;
  how.paths = options.paths;
  how.context.known = options.from_scratch ? nullptr : &known;
  auto candidates = make_candidates(topology, collective, options.planners, how);
  if (!candidates) return tl::unexpected(candidates.error());
  Planned planned{*std::move(candidates), std::nullopt};
  if (options.planners.empty()) return planned;
  if (planned.candidates.made.empty()) return tl::unexpected(planned.candidates.refused.front().error);
  auto choice = choose_on(topology, planned.candidates, options.size);
  if (!choice) return tl::unexpected(choice.error());
  planned.choice = *std::move(choice);
  return planned;
}

Fastest fastest_of(const Choice& choice) {
  return {choice.candidate->planner, choice.run, false, choice.candidate->repaired != nullptr};
}

/// The links that a candidate's routes go over.
std::vector<bool> used_links(const Candidate& candidate, const Topology& topology) {
  const Schedule& schedule = candidate.schedule;
  std::vector<bool> is_used(topology.link_count(), false);
  if (candidate.symmetric != nullptr) {
    const Loads loads = loads_of_whole(*candidate.symmetric, topology);
    for (std::size_t i = 0; i < is_used.size(); ++i) is_used[i] = loads.link_units[i] != 0;
  }
  for (const RingWalk& walk : candidate.walks) {
    for (const std::vector<LinkId>& hop : walk.hops) {
      for (const LinkId link : hop) is_used[link.index()] = true;
    }
  }
  for (std::size_t i = 0; i < schedule.route_count(); ++i) {
    for (const LinkId link : schedule.route(RouteId(i)).links) is_used[link.index()] = true;
  }
  return is_used;
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
  Sweep(const Topology& topology, const DegradeOptions& options, const ChooseOn& choose_on)
      : topology_(topology), options_(options), choose_on_(choose_on) {}

  Result<Outlook> look_at_healthy(const Collective& collective) {
    auto planned = plan_all(topology_, collective, options_, choose_on_, known_);
    if (!planned) return tl::unexpected(planned.error());
    planned_ = std::move(*planned);
    healthy_ = {collective, planned_.candidates.bound, std::nullopt};
    keep_trees();
    if (!planned_.choice) return healthy_;
    healthy_.fastest = fastest_of(*planned_.choice);
    for (const Trial& trial : planned_.choice->trials) {
      if (trial.run) usage_.push_back({&trial, used_links(*trial.candidate, topology_)});
    }
    return healthy_;
  }

  Result<Damage> look_at(const Failure& failure) const {
    Damage damage{failure, std::nullopt, {}, 1, 1};
    const auto rest = without(topology_, failure.parts, failure.name);
    if (!rest) {
      damage.broken = rest.error();
      return damage;
    }
    auto found = look_at_rest(failure, *rest, collective_on(*rest));
    if (!found) return tl::unexpected(found.error());
    Outlook outlook = *std::move(found);
    // Where one rank is left nothing has to move, and nothing is lost.
    const bool moves = outlook.bound.time_per_byte != 0;
    damage.bound_loss = moves ? loss(healthy_.bound_busbw().value_or(0), *outlook.bound_busbw()) : 0;
    damage.loss = moves ? loss(healthy_.busbw(), outlook.busbw()) : 0;
    damage.outlook = std::move(outlook);
    return damage;
  }

 private:
  struct Usage {
    const Trial* trial;
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
  [[nodiscard]] const Trial* find_untouched(const Failure& failure) const {
    const bool rank_fails =
        std::ranges::any_of(failure.parts.nodes, [&](NodeId id) { return topology_.node(id).is_rank; });
    if (rank_fails) return nullptr;
    const std::vector<LinkId> failing = failing_links(topology_, failure.parts);
    for (const Usage& usage : usage_) {
      if (std::ranges::none_of(failing, [&](LinkId link) { return usage.links[link.index()]; })) return usage.trial;
    }
    return nullptr;
  }

  Result<Outlook> look_at_rest(const Failure& failure, const Topology& rest, const Collective& collective) const {
    const Trial* untouched = find_untouched(failure);
    if (untouched != nullptr && untouched->candidate == planned_.choice->candidate) {
      auto bound = compute_bound(rest, collective, {{}, options_.from_scratch ? nullptr : &known_});
      if (!bound) return tl::unexpected(bound.error());
      return Outlook{collective, *std::move(bound),
                     Fastest{untouched->candidate->planner, *untouched->run, true, false}};
    }
    std::optional<LostParts> lost;
    if (options_.may_be_unstored) lost = LostParts{topology_, failure.parts};
    auto planned = plan_all(rest, collective, options_, choose_on_, known_, lost ? &*lost : nullptr);
    if (!planned) return tl::unexpected(planned.error());
    Outlook outlook{collective, std::move(planned->candidates.bound), std::nullopt};
    if (!planned->choice) return outlook;
    outlook.fastest = fastest_of(*planned->choice);
    if (untouched != nullptr && untouched->run->elapsed <= planned->choice->run.elapsed) {
      outlook.fastest = Fastest{untouched->candidate->planner, *untouched->run, true, false};
    }
    return outlook;
  }

  /// The healthy machine's trees are what plans of the rest begin with.
  void keep_trees() {
    for (const Candidate& candidate : planned_.candidates.made) {
      const bool has_trees = candidate.planner == "packing" || candidate.planner == "lp";
      if (candidate.is_stored() && has_trees) known_.keep(topology_, candidate.schedule);
    }
    const auto& program = planned_.candidates.solution;
    if (program == nullptr || !program->solution.attained) return;
    known_.keep(topology_, program->orbits, program->groups, program->solution);
  }

  const Topology& topology_;
  const DegradeOptions& options_;
  const ChooseOn& choose_on_;
  Outlook healthy_;
  Planned planned_;
  std::vector<Usage> usage_;  ///< By trial, fastest first.
  TreeMemory known_;          ///< The trees of the healthy machine.
};

}  // namespace

std::optional<double> Outlook::bound_busbw() const {
  if (bound.time_per_byte == 0) return std::nullopt;
  return to_double(collective.busbw_factor() / bound.time_per_byte);
}

double Outlook::busbw() const { return fastest ? fastest->run.busbw(collective) : bound_busbw().value_or(0); }

Result<Degradation> degrade(const Topology& topology, const Collective& collective, const DegradeOptions& options,
                            const ChooseOn& choose_on, const OnFailure& on_failure) {
  if (!collective.shares.empty()) {
    return fail(ErrorCode::unsupported, "failures are compared for equal shards (no --shares)",
                "take parts away one by one with --without");
  }
  const std::vector<Failure> failures = single_failures(topology, {options.ranks, collective.root});
  const auto tell = [&](const std::string& what, std::size_t done) {
    if (on_failure) on_failure(what, done, failures.size() + 1);
  };
  Sweep sweep(topology, options, choose_on);
  tell("the whole", 0);
  auto healthy = sweep.look_at_healthy(collective);
  if (!healthy) return tl::unexpected(healthy.error());
  Degradation degradation{std::move(*healthy), {}};
  std::vector<std::optional<Result<Damage>>> damages(failures.size());
  std::mutex telling;
  std::size_t begun = 1;
  run_parallel(failures.size(), options.threads, [&](std::size_t i) {
    {
      const std::scoped_lock lock(telling);
      tell(failures[i].name, begun++);
    }
    damages[i] = sweep.look_at(failures[i]);
  });
  for (std::optional<Result<Damage>>& damage : damages) {
    if (!*damage) return tl::unexpected(damage->error());
    degradation.damages.push_back(std::move(**damage));
  }
  std::ranges::stable_sort(degradation.damages, [](const Damage& a, const Damage& b) {
    return std::tuple(-a.loss, -a.bound_loss) < std::tuple(-b.loss, -b.bound_loss);
  });
  return degradation;
}

}  // namespace espalier::planners
