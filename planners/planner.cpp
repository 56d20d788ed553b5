#include "planners/planner.h"

#include <array>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/suggest.h"
#include "planners/blocks/balance.h"
#include "planners/bounds/bound.h"
#include "planners/bounds/cut_bound.h"
#include "planners/classic/classic.h"
#include "planners/innetwork/innetwork.h"
#include "planners/lp/lp.h"
#include "planners/packing/packing.h"
#include "planners/rank_limit.h"
#include "planners/ring/ring.h"
#include "planners/symmetry/canonical_network.h"
#include "planners/tree/tree.h"
#include "schedule/ecmp.h"
#include "schedule/symmetry/symmetry.h"
#include "schedule/verify/verify.h"
#include "topology/reachable.h"

namespace espalier::planners {

namespace {

const std::array planners = {
    Planner{"ring", "edge-disjoint rings through all ranks, as NCCL's channels", without_context(plan_ring)},
    Planner{"tree", "double binary trees over machines and rails, disjoint trees along direct links",
            without_context(plan_tree)},
    Planner{"packing", "spanning trees packed at the best possible throughput", plan_packing, true},
    Planner{"lp", "the linear program's optimum: trees with free roots, best routes of distinct blocks", plan_lp, true},
    Planner{"balance", "blocks of a traffic matrix spread over all NICs of their boxes, whatever rank they are of",
            without_context([](const PlanningProblem& problem, const Collective& collective) {
              return plan_balance(problem, collective);
            }),
            false, false, true},
    Planner{"innetwork", "trees over switches that copy (multicast) and add (reduction) in the network",
            without_context(plan_innetwork)},
    Planner{"flat", "shortest-path trees: the fewest steps that the network allows", without_context(plan_flat)},
    Planner{"oneshot", "every input straight to every rank, which adds them up: one step",
            without_context(plan_oneshot)},
    Planner{"star", "all to one rank and back: the fewest messages", without_context(plan_star)},
    Planner{"binomial", "binomial trees over the ranks in machine order", without_context(plan_binomial)},
    Planner{"recursive", "recursive halving and doubling, odd ranks folded", without_context(plan_recursive)},
    Planner{"bruck", "Bruck's exchange: ceil(log2 N) steps for any number of ranks", without_context(plan_bruck)},
    Planner{"pairwise", "every block to its destination, spread over routes and relays",
            without_context(plan_pairwise)},
};

/// In large schedules, so that a part of them stands for all when they are simulated.
void put_like_transfers_together(Schedule& schedule, const BundledNetwork& network) {
  if (schedule.transfers.size() < min_symmetric_transfers) return;
  put_images_together(schedule, network.topology(), likely_rank_maps(network, schedule));
}

}  // namespace

std::span<const Planner> all_planners() { return planners; }

Result<Planner> find_planner(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Planner& planner : all_planners()) {
    if (planner.name == name) return planner;
    names.push_back(planner.name);
  }
  return fail(ErrorCode::invalid_input, "there is no planner '" + std::string(name) + "'", suggest(name, names));
}

std::vector<RankMap> likely_rank_maps(const BundledNetwork& network, const Schedule& schedule) {
  constexpr std::size_t max_searched = 256;  // ranks; of more the search for automorphisms takes long
  constexpr std::size_t max_of_blocks = 1024;
  const bool is_of_blocks = schedule.collective.kind == CollectiveKind::all_to_all;
  const bool is_searched = schedule.transfers.size() >= min_symmetric_transfers && !schedule.collective.has_matrix() &&
                           schedule.collective.rank_count <= (is_of_blocks ? max_of_blocks : max_searched);
  return is_searched ? network.problem().automorphic_ranks() : std::vector<RankMap>();
}

Result<Schedule> plan_unbounded(const BundledNetwork& actual, const Collective& collective, const Planner& planner,
                                const PlanContext& context) {
  const BundledNetwork& network = planner.goes_by_reports ? actual.as_reported() : actual;
  const Topology& topology = network.topology();
  if (auto fits = check_rank_limit(collective); !fits) return tl::unexpected(fits.error());
  if (const auto cut_off = find_unreachable(topology)) {
    return fail(ErrorCode::infeasible, describe_unreachable(topology, *cut_off),
                "add the missing links, or mark nodes that take no part with rank: false");
  }
  // Routes that are given are those of the network as it is numbered, which no canonical order then changes.
  const PlanningOrder order(network, collective, planner.is_canonical && !context.routes, planner.goes_by_reports);
  const BundledNetwork& ordered = order.network();
  auto schedule = planner.plan(ordered.problem(), order.collective(), context);
  if (!schedule) return schedule;
  schedule = order.restore(spread_flows(ordered.lift(*std::move(schedule)), ordered.topology()));
  put_like_transfers_together(*schedule, actual);
  const VerifyReport report = verify(*schedule, topology, 1);
  // Breaches come in the order of the rules: all others hold then.
  if (!report.ok() && report.breaches.front().rule == Rule::S9) {
    if (collective.kind == CollectiveKind::all_reduce) {
      if (auto summed = check_somebody_adds(topology); !summed) return tl::unexpected(summed.error());
    }
    return fail(ErrorCode::unsupported,
                std::string(planner.name) +
                    " does not plan around ranks that must not relay: " + report.breaches.front().message,
                "use packing, lp or flat");
  }
  const std::string breach = report.ok() ? "" : std::string(planner.name) + ": " + report.breaches.front().message;
  ESPALIER_CHECK(report.ok(), breach.c_str());
  return schedule;
}

Result<Schedule> plan(const BundledNetwork& network, const Collective& collective, const Planner& planner,
                      const PlanContext& context) {
  auto priced = compute_priced_bound(network, collective, context);
  if (!priced) return tl::unexpected(priced.error());
  PlanContext with_solution = context;
  with_solution.solution = std::move(priced->solution);
  auto schedule = plan_unbounded(network, collective, planner, with_solution);
  if (schedule) schedule->bound = std::move(priced->bound);
  return schedule;
}

}  // namespace espalier::planners
