#include "planners/packing/packing.h"

#include <fmt/format.h>

#include "planners/packing/tree_packing.h"
#include "schedule/tree_schedule.h"
#include "topology/flow_network.h"

namespace espalier {
namespace {

using Trees = Result<std::vector<Arborescence>>;

/// Out-trees (forward) or in-trees (reversed) for a collective: of its root, or of every rank.
Trees trees_of(const Topology& topology, const Collective& collective, Direction direction) {
  const FlowNetwork network(topology, direction);
  return has_root(collective.kind) ? pack_one_root(network, collective.root) : pack_all_roots(network);
}

Result<Forest> forest_of(const Topology& topology, const Collective& collective) {
  Forest forest;
  const bool needs_in = reduces(collective.kind) || collective.kind == CollectiveKind::gather;
  const bool needs_out = !needs_in || collective.kind == CollectiveKind::all_reduce;
  if (needs_in) {
    Trees trees = trees_of(topology, collective, Direction::reversed);
    if (!trees) return tl::unexpected(trees.error());
    forest.in_trees = *std::move(trees);
  }
  if (needs_out) {
    Trees trees = trees_of(topology, collective, Direction::forward);
    if (!trees) return tl::unexpected(trees.error());
    forest.out_trees = *std::move(trees);
  }
  return forest;
}

}  // namespace

Result<Schedule> plan_packing(const Topology& topology, const Collective& collective) {
  if (collective.kind == CollectiveKind::all_to_all || collective.kind == CollectiveKind::send_recv) {
    return fail(ErrorCode::unsupported,
                fmt::format("packing plans no {}: its parts travel between pairs", to_string(collective.kind)),
                "use the planner pairwise");
  }
  if (const auto unreachable = find_unreachable(topology)) {
    return fail(ErrorCode::infeasible,
                fmt::format("rank {} cannot reach rank {}", topology.rank_name(unreachable->from),
                            topology.rank_name(unreachable->to)),
                "add a link, or leave one of them out of the ranks");
  }
  Forest forest;
  if (topology.rank_count() > 1) {
    Result<Forest> packed = forest_of(topology, collective);
    if (!packed) return tl::unexpected(packed.error());
    forest = *std::move(packed);
  }
  return schedule_from_trees(collective, topology, "packing", forest);
}

}  // namespace espalier
