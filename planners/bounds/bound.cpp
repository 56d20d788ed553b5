#include "planners/bounds/bound.h"

#include <fmt/format.h>

#include <utility>

#include "base/check.h"
#include "planners/bounds/aggregation_bound.h"
#include "planners/bounds/all_reduce_bound.h"
#include "planners/bounds/bound_prices.h"
#include "planners/bounds/cut_bound.h"
#include "planners/bounds/flow_bound.h"
#include "planners/bounds/less_hardware.h"
#include "planners/bundled_network.h"
#include "planners/packing/find/tree_program.h"
#include "planners/packing/problem.h"
#include "planners/symmetric/repaired_plan.h"
#include "planners/symmetric/symmetric_plan.h"
#include "planners/symmetry/canonical_network.h"

namespace espalier::planners {

namespace {

/// The cut holds for switches that copy as well. Where they only forward and are not balanced, or where what enters and
/// what leaves a rank shares a backplane, it may be out of reach; the tree program knows how far.
Result<PricedBound> tree_bound(const PlanningProblem& problem, const Collective& collective,
                               const PlanContext& context) {
  const Topology& topology = problem.topology();
  auto cut = cut_bound(problem, collective);
  if (!cut) return tl::unexpected(cut.error());
  PricedBound by_cut{*std::move(cut), {}};
  const bool spans = collective.kind != CollectiveKind::gather && collective.kind != CollectiveKind::scatter;
  if (!spans || topology.rank_count() == 1 || trees_reach_cuts(problem)) return by_cut;
  const Direction direction = cut_direction(collective.kind);
  const PackingProblem packing = make_problem(problem, direction, collective.root, collective.shares, context);
  if (trims_to_cut(packing)) return by_cut;
  const auto program = program_rate(problem, direction, collective.root, collective.shares, context);
  const auto floor = [&](const char* why) {
    by_cut.bound = as_floor(std::move(by_cut.bound), why);
    return by_cut;
  };
  const bool computes = computes_in_network(topology);
  if (!program && !computes) return floor("the network is past the size up to which the best trees are computed");
  const std::int64_t parts = collective.root.is_none() ? collective.share_sum() : 1;
  const bool pacing_is_less = program && 1 / (program->rate * parts) > by_cut.bound.time_per_byte;
  if (computes && (!program || pacing_is_less)) return floor("switches that copy or add may or may not reach it");
  if (pacing_is_less) {
    const char* what = program->attained ? "the best trees, by exact prices" : "any trees, by prices";
    by_cut = {{1 / (program->rate * parts), {}, what}, program->prices};
  }
  if (!program->attained) return floor("the optimum was not found");
  return by_cut;
}

/// Where nobody may send a sum on, an all_reduce is an all_gather of all inputs: N S bytes.
Result<PricedBound> exchange_bound(const PlanningProblem& problem, const Collective& collective,
                                   const PlanContext& context) {
  const Collective gathering{CollectiveKind::all_gather, collective.rank_count, Rank()};
  auto priced = tree_bound(problem, gathering, context);
  if (!priced) return priced;
  priced->bound.time_per_byte = priced->bound.time_per_byte * std::int64_t{collective.rank_count};
  priced->bound.what =
      fmt::format("as an all_gather of {} inputs, since nobody may send a sum on: ", collective.rank_count) +
      priced->bound.what;
  return priced;
}

Result<PricedBound> bound_of(const PlanningProblem& problem, const Collective& collective, const PlanContext& context) {
  switch (collective.kind) {
    case CollectiveKind::all_reduce:
      if (!check_somebody_adds(problem.topology())) return exchange_bound(problem, collective, context);
      return all_reduce_bounds(problem, context).map([](const AllReduceBounds& bounds) {
        return PricedBound{bounds.best, bounds.prices, bounds.program};
      });
    case CollectiveKind::all_to_all:
      return collective.has_matrix() ? matrix_bound(problem, collective, context) : all_to_all_bound(problem, context);
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

Result<PricedBound> compute_priced_bound(const BundledNetwork& network, const Collective& collective,
                                         const PlanContext& context) {
  const bool has_parallel_links = &network.problem().topology() != &network.topology();
  if (collective.rank_count >= min_symmetric_ranks && has_symmetric_plan(collective) && !has_parallel_links) {
    auto symmetric = symmetric_bound(network.topology(), collective, context);
    if (symmetric || symmetric.error().code != ErrorCode::unsupported) return symmetric;
  }
  const PlanningOrder order(network, collective);
  auto priced = bound_of(order.network().problem(), order.collective(), context);
  if (!priced) return priced;
  priced->bound = order.restore(std::move(priced->bound));
  if (priced->prices.empty()) return priced;
  priced->prices = order.restore(order.network().lift(std::move(priced->prices)));
  priced->bound.what = binding_text(priced->prices, network.topology()) + " limit " + priced->bound.what;
  return priced;
}

Result<Bound> compute_bound(const Topology& topology, const Collective& collective, const PlanContext& context) {
  return compute_priced_bound(topology, collective, context).map([](const PricedBound& priced) {
    return priced.bound;
  });
}

void keep_to_whole(Bound& rest, const Bound& whole) {
  if (!rest.is_floor || whole.time_per_byte <= rest.time_per_byte) return;
  rest = Bound{whole.time_per_byte, {}, "the whole machine's, of which this is a part: " + whole.what};
  rest = as_floor(std::move(rest), "what is left may take longer");
}

Result<PricedBound> compute_priced_bound(const BundledNetwork& rest, const LostParts* lost,
                                         const Collective& collective, const PlanContext& context) {
  auto priced = compute_priced_bound(rest, collective, context);
  if (!priced || !priced->bound.is_floor) return priced;
  if (lost == nullptr || lost->whole.rank_count() != collective.rank_count) return priced;
  const auto whole = compute_priced_bound(lost->whole, collective, context);
  if (!whole || whole->bound.time_per_byte <= priced->bound.time_per_byte) return priced;
  priced->prices.clear();
  keep_to_whole(priced->bound, whole->bound);
  return priced;
}

}  // namespace espalier::planners
