#include "planners/bound.h"

#include <algorithm>

#include "base/check.h"
#include "planners/all_reduce_bound.h"
#include "planners/camp_bound.h"
#include "planners/cut_bound.h"
#include "planners/flow_bound.h"
#include "planners/packing/program_trees.h"

namespace espalier {

namespace {

/// A rank that must not relay takes in what its switch forwards and gives nothing back, so the cut, which holds for
/// switches that copy as well, may be out of reach. Where switches only forward the tree program knows how far.
Result<Bound> tree_bound(const Topology& topology, const Collective& collective, const PlanContext& context) {
  auto bound = cut_bound(topology, collective);
  const bool spans = collective.kind != CollectiveKind::gather && collective.kind != CollectiveKind::scatter;
  if (!bound || !spans || topology.rank_count() == 1) return bound;
  if (topology.first_not_relaying().is_none() || computes_in_network(topology)) return bound;
  const auto forwards = [](const Node& node) { return !node.is_rank; };
  if (std::ranges::none_of(topology.nodes(), forwards)) return bound;
  const Direction direction = reduces(collective.kind) ? Direction::reversed : Direction::forward;
  const auto program = program_rate(topology, direction, collective.root, collective.shares, context);
  if (!program) {
    bound->what += " (a floor: the network is past the size up to which trees around them are computed)";
    return bound;
  }
  const std::int64_t parts = collective.root.is_none() ? collective.share_sum() : 1;
  const Rational time = 1 / (program->rate * parts);
  if (time <= bound->time_per_byte) return bound;
  return Bound{time,
               {},
               program->attained ? "the best trees in which ranks that must not relay are leaves: a linear program, "
                                   "solved exactly"
                                 : "a floor: prices of links that no trees in which ranks that must not relay are "
                                   "leaves can undercut"};
}

}  // namespace

Result<Bound> compute_bound(const Topology& topology, const Collective& collective, const PlanContext& context) {
  switch (collective.kind) {
    case CollectiveKind::all_reduce:
      return all_reduce_bounds(topology, context).map([](const AllReduceBounds& bounds) { return bounds.best; });
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

}  // namespace espalier
