#include "planners/tree/spanning_tree.h"

#include <algorithm>

#include "base/check.h"

namespace espalier::planners {

namespace {

/// The branches at each rank, by rank. A relay's number may be any behind the ranks'.
std::vector<std::vector<std::uint32_t>> branches_at(const SpanningTree& tree) {
  std::size_t numbers = 1;
  for (const Branch& branch : tree.branches) {
    numbers = std::max({numbers, branch.a.index() + 1, branch.b.index() + 1});
  }
  std::vector<std::vector<std::uint32_t>> at(numbers);
  for (std::uint32_t i = 0; i < tree.branches.size(); ++i) {
    at[tree.branches[i].a.index()].push_back(i);
    at[tree.branches[i].b.index()].push_back(i);
  }
  return at;
}

/// Distances in branches from a rank, and the ranks in the order of these distances.
struct BreadthFirst {
  std::vector<Rank> order;
  std::vector<std::uint32_t> depth;
  std::vector<Rank> parent;
};

BreadthFirst sweep_from(const SpanningTree& tree, Rank root) {
  const auto at = branches_at(tree);
  BreadthFirst sweep{{root}, std::vector<std::uint32_t>(at.size(), 0), std::vector<Rank>(at.size())};
  for (std::size_t next = 0; next < sweep.order.size(); ++next) {
    const Rank rank = sweep.order[next];
    for (const std::uint32_t index : at[rank.index()]) {
      const Branch& branch = tree.branches[index];
      const Rank other = branch.a == rank ? branch.b : branch.a;
      if (other == sweep.parent[rank.index()]) continue;
      sweep.parent[other.index()] = rank;
      sweep.depth[other.index()] = sweep.depth[rank.index()] + 1;
      sweep.order.push_back(other);
    }
  }
  ESPALIER_CHECK(sweep.order.size() == tree.branches.size() + 1, "a spanning tree reaches every rank once");
  return sweep;
}

}  // namespace

Arborescence orient(const SpanningTree& tree, Rank root, bool outwards) {
  const auto at = branches_at(tree);
  Arborescence oriented;
  oriented.root = root;
  oriented.weight = tree.weight;
  std::vector<bool> reached(at.size(), false);
  reached[root.index()] = true;
  std::vector<Rank> order{root};
  for (std::size_t next = 0; next < order.size(); ++next) {
    const Rank parent = order[next];
    for (const std::uint32_t index : at[parent.index()]) {
      const Branch& branch = tree.branches[index];
      const Rank child = branch.a == parent ? branch.b : branch.a;
      if (reached[child.index()]) continue;
      reached[child.index()] = true;
      order.push_back(child);
      oriented.edges.push_back({parent, child, outwards == (branch.a == parent) ? branch.there : branch.back});
    }
  }
  return oriented;
}

std::uint32_t height(const SpanningTree& tree, Rank root) {
  const BreadthFirst sweep = sweep_from(tree, root);
  return sweep.depth[sweep.order.back().index()];
}

Rank find_centre(const SpanningTree& tree) {
  const Rank one_end = sweep_from(tree, Rank(0)).order.back();
  const BreadthFirst across = sweep_from(tree, one_end);
  Rank centre = across.order.back();
  for (std::uint32_t steps = across.depth[centre.index()] / 2; steps > 0; --steps) {
    centre = across.parent[centre.index()];
  }
  return centre;
}

double fullest_link(const Topology& topology, const SpanningTrees& trees, Rank root) {
  std::vector<double> loads(topology.link_count(), 0);
  double weights = 0;
  for (const SpanningTree& tree : trees) {
    const auto weight = static_cast<double>(tree.weight);
    weights += weight;
    for (const bool outwards : {true, false}) {
      if (!outwards && !root.is_none()) continue;
      for (const TreeEdge& edge : orient(tree, root.is_none() ? tree.centre : root, outwards).edges) {
        for (const LinkId link : edge.links) loads[link.index()] += weight;
      }
    }
  }
  double fullest = 0;
  for (std::size_t i = 0; i < loads.size(); ++i) {
    const auto rate = static_cast<double>(topology.link(LinkId(i)).bandwidth().bytes_per_second);
    fullest = std::max(fullest, loads[i] / weights / rate);
  }
  return fullest;
}

}  // namespace espalier::planners
