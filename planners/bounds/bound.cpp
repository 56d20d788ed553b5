#include "planners/bounds/bound.h"

#include <algorithm>

#include "base/check.h"
#include "planners/bounds/aggregation_bound.h"
#include "planners/bounds/all_reduce_bound.h"
#include "planners/bounds/bound_prices.h"
#include "planners/bounds/cut_bound.h"
#include "planners/bounds/flow_bound.h"
#include "planners/packing/find/program_trees.h"
#include "topology/bundles.h"

namespace espalier::planners {

namespace {

/// A rank that must not relay takes in what its switch forwards and gives nothing back, so the cut, which holds for
/// switches that copy as well, may be out of reach. Where switches only forward the tree program knows how far.
Result<PricedBound> tree_bound(const Topology& topology, const Collective& collective, const PlanContext& context) {
  auto cut = solve_cut(topology, collective);
  if (!cut) return tl::unexpected(cut.error());
  PricedBound by_cut{std::move(cut->bound), {}, {std::move(cut->cut), {}, {}}};
  const bool spans = collective.kind != CollectiveKind::gather && collective.kind != CollectiveKind::scatter;
  if (!spans || topology.rank_count() == 1) return by_cut;
  if (topology.first_not_relaying().is_none() || computes_in_network(topology)) return by_cut;
  const auto forwards = [](const Node& node) { return !node.is_rank; };
  if (std::ranges::none_of(topology.nodes(), forwards)) return by_cut;
  const Direction direction = reduces(collective.kind) ? Direction::reversed : Direction::forward;
  const auto program = program_rate(topology, direction, collective.root, collective.shares, context);
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
      program->prices,
      std::move(by_cut.solution)};
}

/// Of bundles' prices each strand has the part that it has of the bundle's rate.
std::vector<BoundPrice> prices_of_strands(const std::vector<BoundPrice>& prices, const Topology& topology,
                                          const Bundles& bundles) {
  std::vector<BoundPrice> all;
  for (const BoundPrice& price : prices) {
    if (price.link.is_none()) {
      all.push_back(price);
      continue;
    }
    double rate = 0;
    const auto rate_of = [&](LinkId link) {
      return static_cast<double>(topology.link(link).bandwidth().bytes_per_second);
    };
    const std::vector<LinkId>& strands = bundles.strands(price.link.index());
    for (const LinkId strand : strands) rate += rate_of(strand);
    for (const LinkId strand : strands) all.push_back({strand, {}, price.share * rate_of(strand) / rate});
  }
  return all;
}

Result<PricedBound> bound_of(const Topology& topology, const Collective& collective, const PlanContext& context) {
  switch (collective.kind) {
    case CollectiveKind::all_reduce:
      return all_reduce_bounds(topology, context).map([](const AllReduceBounds& bounds) {
        return PricedBound{bounds.best, bounds.prices, {nullptr, bounds.floors, bounds.program}};
      });
    case CollectiveKind::all_to_all: return all_to_all_bound(topology, context);
    case CollectiveKind::send_recv: return send_recv_bound(topology, context);
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_gather:
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
    case CollectiveKind::gather:
    case CollectiveKind::scatter: return tree_bound(topology, collective, context);
  }
  ESPALIER_CHECK(false, "a collective without a bound");
}

}  // namespace

Result<PricedBound> compute_priced_bound(const Topology& topology, const Collective& collective,
                                         const PlanContext& context) {
  const Bundles bundles(topology);
  auto priced = bound_of(bundles.any() ? bundled(topology, bundles) : topology, collective, context);
  if (!priced || priced->prices.empty()) return priced;
  if (bundles.any()) priced->prices = prices_of_strands(priced->prices, topology, bundles);
  priced->bound.what = binding_text(priced->prices, topology) + " limit " + priced->bound.what;
  return priced;
}

Result<Bound> compute_bound(const Topology& topology, const Collective& collective, const PlanContext& context) {
  return compute_priced_bound(topology, collective, context).map([](const PricedBound& priced) {
    return priced.bound;
  });
}

}  // namespace espalier::planners
