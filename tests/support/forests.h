#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "schedule/trees/tree_schedule.h"
#include "topology/topology.h"

/// Weighted trees for tests, random or of simple shapes.
namespace espalier::test {

/// A way from `src` to each rank that it reaches through forwarding nodes alone, with the fewest links; empty for `src`
/// itself and for ranks behind other ranks.
inline std::vector<std::vector<LinkId>> direct_routes(const Topology& topology, Rank src) {
  std::vector<LinkId> entered(topology.node_count());
  std::vector<NodeId> pending{topology.node_of(src)};
  for (std::size_t i = 0; i < pending.size(); ++i) {
    if (i > 0 && topology.node(pending[i]).is_rank) continue;
    for (const LinkId link : topology.out_links(pending[i])) {
      const NodeId head = topology.link(link).head;
      if (head == pending[0] || !entered[head.index()].is_none()) continue;
      entered[head.index()] = link;
      pending.push_back(head);
    }
  }
  std::vector<std::vector<LinkId>> routes(topology.rank_count());
  for (std::size_t r = 0; r < routes.size(); ++r) {
    NodeId at = topology.node_of(Rank(r));
    if (Rank(r) == src || entered[at.index()].is_none()) continue;
    while (at != pending[0]) {
      routes[r].push_back(entered[at.index()]);
      at = topology.link(entered[at.index()]).tail;
    }
    std::ranges::reverse(routes[r]);
  }
  return routes;
}

/// direct_routes of every rank: routes[src][dst].
class RouteTable {
 public:
  explicit RouteTable(const Topology& topology) {
    for (std::size_t r = 0; r < topology.rank_count(); ++r) routes_.push_back(direct_routes(topology, Rank(r)));
  }
  [[nodiscard]] const std::vector<LinkId>& between(Rank src, Rank dst) const {
    return routes_[src.index()][dst.index()];
  }
  [[nodiscard]] std::size_t rank_count() const { return routes_.size(); }

 private:
  std::vector<std::vector<std::vector<LinkId>>> routes_;
};

/// A spanning out-tree (or in-tree) of random shape. Requires: ranks that reach each other.
inline Arborescence random_tree(const RouteTable& routes, Rank root, bool inwards, Random& random) {
  Arborescence tree{root, 1, {}};
  std::vector<Rank> reached{root};
  std::vector<Rank> missing;
  for (std::size_t r = 0; r < routes.rank_count(); ++r) {
    if (Rank(r) != root) missing.emplace_back(r);
  }
  std::size_t attempts = 0;
  while (!missing.empty()) {
    ESPALIER_CHECK(++attempts < 1'000'000, "the ranks of a test's fabric reach each other");
    const Rank parent = reached[random.below(reached.size())];
    const std::size_t pick = random.below(missing.size());
    const std::vector<LinkId>& links =
        inwards ? routes.between(missing[pick], parent) : routes.between(parent, missing[pick]);
    if (links.empty()) continue;
    tree.edges.push_back({parent, missing[pick], links});
    reached.push_back(missing[pick]);
    missing.erase(missing.begin() + static_cast<std::ptrdiff_t>(pick));
  }
  return tree;
}

/// `total` cut into up to `most` positive weights.
inline std::vector<std::int64_t> random_weights(std::int64_t total, std::size_t most, Random& random) {
  std::vector<std::int64_t> weights;
  while (total > 0) {
    const bool last = weights.size() + 1 >= most;
    weights.push_back(last ? total : random.between(1, total));
    total -= weights.back();
  }
  return weights;
}

/// Random trees with random weights that fit the collective: up to three per root.
inline Forest random_forest(const Topology& topology, const Collective& collective, Random& random) {
  const RouteTable routes(topology);
  Forest forest;
  const auto grow = [&](Rank root, std::int64_t weight, bool inwards) {
    for (const std::int64_t share : random_weights(weight, 3, random)) {
      Arborescence tree = random_tree(routes, root, inwards, random);
      tree.weight = share;
      (inwards ? forest.in_trees : forest.out_trees).push_back(std::move(tree));
    }
  };
  const std::int64_t total = random.between(1, 12);
  const bool inwards = reduces(collective.kind) || collective.kind == CollectiveKind::gather;
  const bool outwards = !inwards || collective.kind == CollectiveKind::all_reduce;
  const std::size_t always = random.below(topology.rank_count());  // all_reduce leaves some ranks without trees.
  for (std::size_t r = 0; r < topology.rank_count(); ++r) {
    if (has_root(collective.kind) && Rank(r) != collective.root) continue;
    const bool free_roots = collective.kind == CollectiveKind::all_reduce;
    if (free_roots && r != always && random.below(3) == 0) continue;
    const std::int64_t weight = free_roots ? random.between(1, 12) : total;
    if (inwards) grow(Rank(r), weight, true);
    if (outwards) grow(Rank(r), weight, false);
  }
  return forest;
}

/// A checked schedule from a random forest for a random root.
inline Schedule random_schedule(const Topology& topology, CollectiveKind kind, Random& random) {
  const std::optional<Rank> root =
      has_root(kind) ? std::optional(Rank(random.below(topology.rank_count()))) : std::nullopt;
  const Result<Collective> collective = make_collective(kind, topology.rank_count(), root);
  ESPALIER_CHECK(collective.has_value(), "a root in range");
  Result<Schedule> schedule =
      schedule_from_trees(*collective, topology, "random", random_forest(topology, *collective, random));
  ESPALIER_CHECK(schedule.has_value(), "random trees give a schedule");
  return std::move(*schedule);
}

/// A path from `root` over the ranks in rising order, around the end: the tree of a ring.
inline Arborescence ring_tree(const RouteTable& routes, Rank root, bool inwards) {
  Arborescence tree{root, 1, {}};
  const std::size_t ranks = routes.rank_count();
  for (std::size_t step = 1; step < ranks; ++step) {
    // Data flows to rising ranks in both: the in-tree reaches its root last, from the rank below.
    const std::size_t child = inwards ? (root.index() + ranks - step) % ranks : (root.index() + step) % ranks;
    const std::size_t parent = inwards ? (child + 1) % ranks : (child + ranks - 1) % ranks;
    const auto& links = inwards ? routes.between(Rank(child), Rank(parent)) : routes.between(Rank(parent), Rank(child));
    tree.edges.push_back({Rank(parent), Rank(child), links});
  }
  return tree;
}

/// One-directional ring trees of every rank (or of the root), in or out as the collective needs them.
inline Forest ring_forest(const Topology& topology, const Collective& collective) {
  const RouteTable routes(topology);
  Forest forest;
  const bool inwards = reduces(collective.kind) || collective.kind == CollectiveKind::gather;
  const bool outwards = !inwards || collective.kind == CollectiveKind::all_reduce;
  for (std::size_t r = 0; r < topology.rank_count(); ++r) {
    if (has_root(collective.kind) && Rank(r) != collective.root) continue;
    if (inwards) forest.in_trees.push_back(ring_tree(routes, Rank(r), true));
    if (outwards) forest.out_trees.push_back(ring_tree(routes, Rank(r), false));
  }
  return forest;
}

/// The ring schedule of a collective. Requires: a topology with a direct route from each rank to the next.
inline Schedule ring_schedule(const Topology& topology, CollectiveKind kind, std::optional<Rank> root = std::nullopt) {
  const Result<Collective> collective = make_collective(kind, topology.rank_count(), root);
  ESPALIER_CHECK(collective.has_value(), "a root in range");
  Result<Schedule> schedule = schedule_from_trees(*collective, topology, "ring", ring_forest(topology, *collective));
  ESPALIER_CHECK(schedule.has_value(), "ring trees give a schedule");
  return std::move(*schedule);
}

}  // namespace espalier::test
