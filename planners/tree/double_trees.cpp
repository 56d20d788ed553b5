#include <algorithm>
#include <set>

#include "planners/tree/branch_maker.h"
#include "planners/tree/two_tree.h"

namespace espalier::planners {

namespace {

/// The places of a machine's ranks that have a port to the next machine which no earlier one has: the rails' leaders.
std::vector<std::size_t> find_leaders(const TreeDemand& demand) {
  const std::vector<Rank>& here = demand.groups.groups[0];
  const std::vector<Rank>& there = demand.groups.groups[1];
  const Topology& topology = demand.topology;
  std::set<LinkId> taken;
  std::vector<std::size_t> leaders;
  for (std::size_t i = 0; i < here.size(); ++i) {
    for (const Hop& hop : demand.graph.hops(here[i], there[i % there.size()])) {
      const auto rate = [&](LinkId link) { return topology.link(link).bandwidth().bytes_per_second; };
      const LinkId slowest = *std::ranges::min_element(hop.links, {}, rate);
      std::vector<LinkId> narrow;
      std::ranges::copy_if(hop.links, std::back_inserter(narrow), [&](LinkId l) { return rate(l) == rate(slowest); });
      if (std::ranges::any_of(narrow, [&](LinkId link) { return taken.contains(link); })) continue;
      taken.insert(narrow.begin(), narrow.end());
      leaders.push_back(i);
      break;
    }
  }
  return leaders;
}

/// The ranks of a machine with `first` in front, the others in a circle behind it.
std::vector<Rank> circle_from(const std::vector<Rank>& ranks, std::size_t first) {
  std::vector<Rank> circle(ranks.begin(), ranks.end());
  std::rotate(circle.begin(), circle.begin() + static_cast<std::ptrdiff_t>(first), circle.end());
  return circle;
}

bool fill_machine(BranchMaker& maker, SpanningTree& tree, const std::vector<Rank>& circle, Inside inside, bool second) {
  if (inside == Inside::grown) return maker.grow(tree, circle);
  const TwoTree binary = make_two_tree(circle.size());
  for (std::size_t i = 1; i < circle.size(); ++i) {
    std::size_t parent = 0;
    if (inside == Inside::chain) parent = i - 1;
    if (inside == Inside::binary) parent = second ? binary.second[i] : binary.first[i];
    if (!maker.add(tree, circle[parent], circle[i])) return false;
  }
  return true;
}

std::size_t place_of(const std::vector<Rank>& ranks, Rank rank) {
  return static_cast<std::size_t>(std::find(ranks.begin(), ranks.end(), rank) - ranks.begin());
}

/// The tree of one rail: a binary tree over the machines' leaders, and every machine filled from its leader. The root's
/// machine is the source of the tree over machines, and the root hands each leader its part.
bool make_rail_tree(const TreeDemand& demand, BranchMaker& maker, std::size_t rail, std::size_t leader, Inside inside,
                    bool second, SpanningTree& tree) {
  const auto& groups = demand.groups.groups;
  const std::size_t count = groups.size();
  const std::size_t source = demand.root.is_none() ? rail % count : demand.groups.group_of[demand.root.index()];
  const TwoTree machines = make_two_tree(count);
  for (std::size_t place = 0; place < count; ++place) {
    const std::vector<Rank>& ranks = groups[(source + place) % count];
    const std::size_t local = leader % ranks.size();
    // A star around the root would send everything from it to every neighbour; through the leaders it sends each part
    // once.
    const bool from_root = place == 0 && !demand.root.is_none() && inside != Inside::star;
    const std::size_t first = from_root ? place_of(ranks, demand.root) : local;
    if (place == 0) tree.centre = ranks[first];
    if (!fill_machine(maker, tree, circle_from(ranks, first), inside, second)) return false;
    if (place == 0) continue;
    const std::vector<Rank>& above = groups[(source + (second ? machines.second : machines.first)[place]) % count];
    if (!maker.add(tree, above[leader % above.size()], ranks[local])) return false;
  }
  return true;
}

/// How many links a rank has into the network: each can carry a pair of trees.
std::size_t port_count(const TreeDemand& demand) {
  std::size_t ports = SIZE_MAX;
  for (std::size_t i = 0; i < demand.topology.rank_count(); ++i) {
    std::set<LinkId> first_links;
    for (const Hop& hop : demand.graph.hops(Rank(i))) first_links.insert(hop.links.front());
    ports = std::min(ports, first_links.size());
  }
  return ports;
}

}  // namespace

SpanningTrees rank_trees(const TreeDemand& demand, bool keeps_routes) {
  const std::vector<Rank> order = order_ranks(demand.groups);
  const std::size_t n = order.size();
  const std::size_t pairs = std::max<std::size_t>(1, std::min<std::size_t>(port_count(demand), n));
  BranchMaker maker(demand);
  SpanningTrees trees;
  for (std::size_t pair = 0; pair < pairs; ++pair) {
    if (keeps_routes) maker.keep_to_route(pair);
    std::vector<Rank> circle = circle_from(order, demand.root.is_none() ? pair * n / pairs : 0);
    if (!demand.root.is_none()) {
      circle = circle_from(order, place_of(order, demand.root));
      std::rotate(circle.begin() + 1, circle.begin() + 1 + static_cast<std::ptrdiff_t>(pair * (n - 1) / pairs),
                  circle.end());
    }
    for (const bool second : {false, true}) {
      SpanningTree tree;
      tree.centre = circle.front();
      if (!fill_machine(maker, tree, circle, Inside::binary, second)) return {};
      trees.push_back(std::move(tree));
    }
  }
  return trees;
}

SpanningTrees double_trees(const TreeDemand& demand, Inside inside) {
  if (!demand.groups.two_levels()) return {};
  const std::vector<std::size_t> leaders = find_leaders(demand);
  BranchMaker maker(demand);
  SpanningTrees trees;
  for (std::size_t rail = 0; rail < leaders.size(); ++rail) {
    for (const bool second : {false, true}) {
      SpanningTree tree;
      if (!make_rail_tree(demand, maker, rail, leaders[rail], inside, second, tree)) return {};
      trees.push_back(std::move(tree));
    }
  }
  return trees;
}

}  // namespace espalier::planners
