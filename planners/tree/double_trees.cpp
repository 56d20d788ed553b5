#include <algorithm>
#include <functional>
#include <limits>
#include <set>

#include "planners/tree/branch_maker.h"
#include "planners/tree/two_tree.h"

namespace espalier::planners {

namespace {

/// A pair of trees over machines: the rank by which it enters each of them, and how fast its narrowest port is.
struct Rail {
  std::vector<Rank> leaders;  ///< By machine.
  std::int64_t rate = 0;
};

/// The ports of rails: the narrowest links on the ways between the machines' leaders, each of one rail only.
class Ports {
 public:
  explicit Ports(const TreeDemand& demand) : demand_(demand) {}

  /// The rate of a way whose ports no rail has, which this one then gets; 0 where there is none.
  std::int64_t take(Rank from, Rank to, std::set<LinkId>& ports) const {
    const Topology& topology = demand_.topology;
    const auto rate = [&](LinkId link) { return topology.link(link).bandwidth().bytes_per_second; };
    for (const Hop& hop : demand_.graph.hops(from, to)) {
      const std::int64_t least = rate(*std::ranges::min_element(hop.links, {}, rate));
      std::vector<LinkId> narrow;
      std::ranges::copy_if(hop.links, std::back_inserter(narrow), [&](LinkId link) { return rate(link) == least; });
      if (std::ranges::any_of(narrow, [&](LinkId link) { return taken_.contains(link); })) continue;
      ports.insert(narrow.begin(), narrow.end());
      return least;
    }
    return 0;
  }

  void keep(const std::set<LinkId>& ports) { taken_.insert(ports.begin(), ports.end()); }

 private:
  const TreeDemand& demand_;
  std::set<LinkId> taken_;
};

/// The rails on which every machine has a port of its own to the next one, all led by ranks at the same place. Of rails
/// with unlike rates those that carry most together, when each carries as much as the slowest of them: a dead or slow
/// port takes its rail from all machines, as in NCCL.
std::vector<Rail> find_rails(const TreeDemand& demand) {
  const auto& groups = demand.groups.groups;
  Ports ports(demand);
  std::vector<Rail> rails;
  for (std::size_t place = 0; place < groups.front().size(); ++place) {
    Rail rail{{}, std::numeric_limits<std::int64_t>::max()};
    for (const std::vector<Rank>& ranks : groups) rail.leaders.push_back(ranks[place % ranks.size()]);
    std::set<LinkId> of_rail;
    for (std::size_t i = 0; i < groups.size() && rail.rate > 0; ++i) {
      const Rank next = rail.leaders[(i + 1) % groups.size()];
      rail.rate = std::min(rail.rate, ports.take(rail.leaders[i], next, of_rail));
    }
    if (rail.rate == 0) continue;
    ports.keep(of_rail);
    rails.push_back(std::move(rail));
  }
  std::vector<std::int64_t> rates;
  for (const Rail& rail : rails) rates.push_back(rail.rate);
  std::ranges::sort(rates, std::greater<>());
  std::int64_t best = 0, least = 0;
  for (std::size_t i = 0; i < rates.size(); ++i) {
    const std::int64_t together = rates[i] * static_cast<std::int64_t>(i + 1);
    if (together <= best) continue;
    best = together;
    least = rates[i];
  }
  std::erase_if(rails, [&](const Rail& rail) { return rail.rate < least; });
  return rails;
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

/// The machine where the trees of a rail begin, unless a root says so: another one for each rail. Where there are more
/// machines than rails, they are spread evenly, if they divide: turning all of them by that many then takes the trees
/// of each rail to those of the next, and those of the last to the first's.
std::size_t source_of_rail(std::size_t number, std::size_t rails, std::size_t machines) {
  return machines > rails && machines % rails == 0 ? number * (machines / rails) : number % machines;
}

/// The tree of one rail: a binary tree over the machines' leaders, and every machine filled from its leader. The root's
/// machine is the source of the tree over machines, and the root hands each leader its part.
bool make_rail_tree(const TreeDemand& demand, BranchMaker& maker, const Rail& rail, std::size_t begin, Inside inside,
                    bool second, SpanningTree& tree) {
  const auto& groups = demand.groups.groups;
  const std::size_t count = groups.size();
  const std::size_t source = demand.root.is_none() ? begin : demand.groups.group_of[demand.root.index()];
  const TwoTree machines = make_two_tree(count);
  for (std::size_t place = 0; place < count; ++place) {
    const std::size_t machine = (source + place) % count;
    const std::vector<Rank>& ranks = groups[machine];
    const Rank leader = rail.leaders[machine];
    // A star around the root would send everything from it to every neighbour; through the leaders it sends each part
    // once.
    const bool from_root = place == 0 && !demand.root.is_none() && inside != Inside::star;
    const Rank first = from_root ? demand.root : leader;
    if (place == 0) tree.centre = first;
    if (!fill_machine(maker, tree, circle_from(ranks, place_of(ranks, first)), inside, second)) return false;
    if (place == 0) continue;
    const std::size_t above = (source + (second ? machines.second : machines.first)[place]) % count;
    if (!maker.add(tree, rail.leaders[above], leader)) return false;
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
  const std::vector<Rail> rails = find_rails(demand);
  BranchMaker maker(demand);
  SpanningTrees trees;
  for (std::size_t number = 0; number < rails.size(); ++number) {
    const std::size_t begin = source_of_rail(number, rails.size(), demand.groups.groups.size());
    for (const bool second : {false, true}) {
      SpanningTree tree;
      if (!make_rail_tree(demand, maker, rails[number], begin, inside, second, tree)) return {};
      trees.push_back(std::move(tree));
    }
  }
  return trees;
}

}  // namespace espalier::planners
