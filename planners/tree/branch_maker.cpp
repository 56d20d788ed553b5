#include "planners/tree/branch_maker.h"

#include <algorithm>

namespace espalier::planners {

BranchMaker::BranchMaker(const TreeDemand& demand) : graph_(demand.graph), loads_(demand.topology.link_count(), 0.0) {
  for (const Link& link : demand.topology.links()) {
    share_.push_back(1.0 / static_cast<double>(link.bandwidth().bytes_per_second));
  }
}

double BranchMaker::load_with(const Hop& hop) const {
  double load = 0;
  for (const LinkId link : hop.links) load = std::max(load, loads_[link.index()] + share_[link.index()]);
  return load;
}

const Hop* BranchMaker::choose_hop(Rank from, Rank to) const {
  const std::span<const Hop> hops = graph_.hops(from, to);
  if (route_ && !hops.empty()) return &hops[*route_ % hops.size()];
  const Hop* least = nullptr;
  double min_load = 0;
  for (const Hop& hop : hops) {
    const double load = load_with(hop);
    if (least != nullptr && load >= min_load) continue;
    least = &hop;
    min_load = load;
  }
  return least;
}

std::optional<BranchMaker::Choice> BranchMaker::choose(Rank a, Rank b) const {
  const Hop* there = choose_hop(a, b);
  const Hop* back = choose_hop(b, a);
  if (there == nullptr || back == nullptr) return std::nullopt;
  return Choice{there, back, std::max(load_with(*there), load_with(*back))};
}

void BranchMaker::count(const Hop& hop) {
  for (const LinkId link : hop.links) loads_[link.index()] += share_[link.index()];
}

const Path* BranchMaker::take_hop(Rank from, Rank to) {
  const Hop* const hop = choose_hop(from, to);
  if (hop == nullptr) return nullptr;
  count(*hop);
  return &hop->links;
}

void BranchMaker::take(SpanningTree& tree, Rank a, Rank b, const Choice& choice) {
  count(*choice.there);
  count(*choice.back);
  tree.branches.push_back({a, b, choice.there->links, choice.back->links});
}

bool BranchMaker::add(SpanningTree& tree, Rank a, Rank b) {
  const std::optional<Choice> choice = choose(a, b);
  if (choice) take(tree, a, b, *choice);
  return choice.has_value();
}

bool BranchMaker::grow(SpanningTree& tree, const std::vector<Rank>& ranks) {
  std::vector<Rank> inside{ranks.front()};  // In the order of joining, so nearer to the start first.
  std::vector<Rank> outside(ranks.begin() + 1, ranks.end());
  while (!outside.empty()) {
    std::optional<Choice> best;
    Rank from;
    std::size_t joining = 0;
    for (const Rank a : inside) {
      for (std::size_t i = 0; i < outside.size(); ++i) {
        const std::optional<Choice> choice = choose(a, outside[i]);
        if (!choice || (best && choice->load >= best->load)) continue;
        best = choice;
        from = a;
        joining = i;
      }
    }
    if (!best) return false;
    take(tree, from, outside[joining], *best);
    inside.push_back(outside[joining]);
    outside.erase(outside.begin() + static_cast<std::ptrdiff_t>(joining));
  }
  return true;
}

SpanningTrees grown_trees(const TreeDemand& demand, std::size_t count) {
  constexpr std::size_t max_ranks = 128;
  const std::vector<Rank> order = order_ranks(demand.groups);
  if (order.size() > max_ranks) return {};
  BranchMaker maker(demand);
  SpanningTrees trees;
  for (std::size_t i = 0; i < count; ++i) {
    const Rank start = demand.root.is_none() ? order[i * order.size() / count] : demand.root;
    std::vector<Rank> ranks = order;
    std::rotate(ranks.begin(), std::find(ranks.begin(), ranks.end(), start), ranks.end());
    SpanningTree tree;
    tree.centre = start;
    if (!maker.grow(tree, ranks)) return {};
    trees.push_back(std::move(tree));
  }
  return trees;
}

}  // namespace espalier::planners
