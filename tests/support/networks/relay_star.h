#pragma once

#include <string>

#include "base/check.h"
#include "schedule/trees/tree_schedule.h"
#include "tests/support/networks/fabrics.h"

/// Ranks around one switch that copies or adds, and schedules over it, for tests of relays.
namespace espalier::test {

/// Ranks g0, g1, ... and a switch s0 with a cable to each: link 2 r goes up from rank r, link 2 r + 1 down to it.
inline Topology computing_star(std::size_t ranks, bool multicast = true, bool reduction = true) {
  FabricMaker maker;
  std::vector<NodeId> nodes;
  for (std::size_t i = 0; i < ranks; ++i) nodes.push_back(maker.add_rank());
  Node node;
  node.id = "s0";
  node.kind = NodeKind::switch_node;
  node.is_rank = false;
  node.multicast = multicast;
  node.reduction = reduction;
  const NodeId hub = maker.add_node(node);
  for (const NodeId rank : nodes) maker.add_cable(rank, hub);
  return maker.build("star-" + std::to_string(ranks));
}

/// A tree whose root is the switch of a star, over all its ranks.
inline Arborescence hub_tree(const Topology& star, bool inwards) {
  const Rank hub(star.rank_count());
  Arborescence tree{hub, 1, {}};
  for (std::size_t r = 0; r < star.rank_count(); ++r) {
    tree.edges.push_back({hub, Rank(r), {LinkId(2 * r + (inwards ? 0 : 1))}});
  }
  return tree;
}

/// All ranks send up, the switch adds and sends the sum down to all: one slice, transfers 0 to N-1 up, N to 2N-1 down.
inline Schedule one_shot_all_reduce(const Topology& star) {
  Forest forest;
  forest.relays = {star.find_node("s0")};
  forest.in_trees = {hub_tree(star, true)};
  forest.out_trees = {hub_tree(star, false)};
  const auto collective = make_collective(CollectiveKind::all_reduce, star.rank_count(), std::nullopt);
  Result<Schedule> schedule = schedule_from_trees(*collective, star, "test", forest);
  ESPALIER_CHECK(schedule.has_value(), "trees over the switch give a schedule");
  return std::move(*schedule);
}

}  // namespace espalier::test
