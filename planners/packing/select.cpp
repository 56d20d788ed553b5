#include "planners/packing/select.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "base/rational.h"
#include "schedule/trees/tree_shape.h"

namespace espalier::planners {

namespace {

/// What packings are compared by, the most important first; less is better.
struct Merit {
  Rational load;                 ///< load_of.
  std::size_t routed_trees = 0;  ///< Of the root with most, past enough_routed_trees.
  std::uint32_t depth = 0;
  std::size_t trees = 0;  ///< Between ranks, of the root with most.

  friend bool operator<(const Merit& a, const Merit& b) {
    if (a.load != b.load) return a.load < b.load;
    return std::tie(a.routed_trees, a.depth, a.trees) < std::tie(b.routed_trees, b.depth, b.trees);
  }
};

std::size_t max_trees(const std::vector<Arborescence>& trees) {
  std::map<Rank, std::set<std::vector<std::pair<Rank, Rank>>>> different;
  std::size_t most = 0;
  for (const Arborescence& tree : trees) {
    std::vector<std::pair<Rank, Rank>> edges;
    for (const TreeEdge& edge : tree.edges) edges.emplace_back(edge.parent, edge.child);
    std::sort(edges.begin(), edges.end());
    auto& known = different[tree.root];
    known.insert(std::move(edges));
    most = std::max(most, known.size());
  }
  return most;
}

Merit merit_of(const Topology& topology, const std::vector<Arborescence>& trees) {
  Merit merit{load_of(topology, trees), std::max(max_routed_trees(trees), enough_routed_trees), 0, max_trees(trees)};
  for (const Arborescence& tree : trees) merit.depth = std::max(merit.depth, height_of(tree, topology.rank_count()));
  return merit;
}

}  // namespace

Rational load_of(const Topology& topology, const std::vector<Arborescence>& trees) {
  std::vector<__int128> of_link(topology.link_count(), 0);
  std::vector<__int128> of_node(topology.node_count(), 0);
  __int128 sum = 0;
  for (const Arborescence& tree : trees) {
    sum += tree.weight;
    for (const TreeEdge& edge : tree.edges) {
      if (!edge.links.empty()) of_node[topology.link(edge.links.front()).tail.index()] += tree.weight;
      for (const LinkId link : edge.links) {
        of_link[link.index()] += tree.weight;
        of_node[topology.link(link).head.index()] += tree.weight;
      }
    }
  }
  Rational busiest = 0;
  const auto note = [&](__int128 load, Bandwidth rate) {
    if (load == 0 || rate.bytes_per_second == 0) return;  // a node without a backplane has rate 0
    busiest = std::max(busiest, Rational(BigInteger(load), rate.bytes_per_second));
  };
  for (std::size_t i = 0; i < of_link.size(); ++i) note(of_link[i], topology.link(LinkId(i)).bandwidth());
  for (std::size_t i = 0; i < of_node.size(); ++i) note(of_node[i], topology.node(NodeId(i)).bandwidth);
  return busiest / Rational(BigInteger(sum));
}

std::size_t max_routed_trees(const std::vector<Arborescence>& trees) {
  std::map<Rank, std::size_t> count;
  std::size_t most = 0;
  for (const Arborescence& tree : trees) most = std::max(most, ++count[tree.root]);
  return most;
}

void select_better(const Topology& topology, std::optional<std::vector<Arborescence>>& best,
                   std::vector<Arborescence> found) {
  if (!best || merit_of(topology, found) < merit_of(topology, *best)) best = std::move(found);
}

}  // namespace espalier::planners
