#include "planners/bounds/bound.h"

#include <algorithm>

#include "base/check.h"
#include "planners/bounds/aggregation_bound.h"
#include "planners/bounds/all_reduce_bound.h"
#include "planners/bounds/bound_prices.h"
#include "planners/bounds/cut_bound.h"
#include "planners/bounds/flow_bound.h"
#include "planners/packing/find/tree_program.h"
#include "planners/parallel_links.h"
#include "planners/symmetric/symmetric_plan.h"

namespace espalier::planners {

namespace {

/// A rank that must not relay takes in what its switch forwards and gives nothing back, so the cut, which holds for
/// switches that copy as well, may be out of reach. Where switches only forward the tree program knows how far.
Result<PricedBound> tree_bound(const PlanningProblem& problem, const Collective& collective,
                               const PlanContext& context) {
  const Topology& topology = problem.topology();
  auto cut = cut_bound(problem, collective);
  if (!cut) return tl::unexpected(cut.error());
  PricedBound by_cut{*std::move(cut), {}};
  const bool spans = collective.kind != CollectiveKind::gather && collective.kind != CollectiveKind::scatter;
  if (!spans || topology.rank_count() == 1) return by_cut;
  if (topology.first_not_relaying().is_none() || computes_in_network(topology)) return by_cut;
  const auto forwards = [](const Node& node) { return !node.is_rank; };
  if (std::ranges::none_of(topology.nodes(), forwards)) return by_cut;
  const Direction direction = cut_direction(collective.kind);
  const auto program = program_rate(problem, direction, collective.root, collective.shares, context);
  if (!program) {
    by_cut.bound.what += " (a floor: the network is past the size up to which trees around them are computed)";
    return by_cut;
  }
  const std::int64_t parts = collective.root.is_none() ? collective.share_sum() : 1;
  const Rational time = 1 / (program->rate * parts);
  if (time <= by_cut.bound.time_per_byte) return by_cut;
  return PricedBound{
      {time,
       {},
       program->attained
           ? "the best trees in which ranks that must not relay are leaves, by exact prices"
           : "any trees in which ranks that must not relay are leaves, by prices (a floor: the optimum was not found)"},
      program->prices};
}

Result<PricedBound> bound_of(const PlanningProblem& problem, const Collective& collective, const PlanContext& context) {
  switch (collective.kind) {
    case CollectiveKind::all_reduce:
      return all_reduce_bounds(problem, context).map([](const AllReduceBounds& bounds) {
        return PricedBound{bounds.best, bounds.prices, bounds.program};
      });
    case CollectiveKind::all_to_all: return all_to_all_bound(problem, context);
    case CollectiveKind::send_recv: return send_recv_bound(problem, context);
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_gather:
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
    case CollectiveKind::gather:
    case CollectiveKind::scatter: return tree_bound(problem, collective, context);
  }
  ESPALIER_CHECK(false, "a collective without a bound");
}

}  // namespace

Result<PricedBound> compute_priced_bound(const ParallelLinks& network, const Collective& collective,
                                         const PlanContext& context) {
  const bool has_parallel_links = &network.problem().topology() != &network.topology();
  if (collective.rank_count >= least_symmetric_ranks && has_symmetric_plan(collective) && !has_parallel_links) {
    auto symmetric = symmetric_bound(network.topology(), collective, context);
    if (symmetric || symmetric.error().code != ErrorCode::unsupported) return symmetric;
  }
  auto priced = bound_of(network.problem(), collective, context);
  if (!priced || priced->prices.empty()) return priced;
  priced->prices = network.lift(std::move(priced->prices));
  priced->bound.what = binding_text(priced->prices, network.topology()) + " limit " + priced->bound.what;
  return priced;
}

Result<Bound> compute_bound(const Topology& topology, const Collective& collective, const PlanContext& context) {
  return compute_priced_bound(topology, collective, context).map([](const PricedBound& priced) {
    return priced.bound;
  });
}

}  // namespace espalier::planners
