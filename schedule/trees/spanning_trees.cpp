#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "schedule/trees/tree_schedule.h"

namespace espalier {

namespace {

/// The edges of a channel's copies, or of its reductions, in an order in which parents come first; one per rank.
class ChannelTree {
 public:
  explicit ChannelTree(std::size_t rank_count) : place_(rank_count, none) {}

  void add(const Route& route, bool inward) {
    const Rank child = inward ? route.src : route.dst;
    const Rank parent = inward ? route.dst : route.src;
    if (child.index() >= place_.size() || parent.index() >= place_.size()) {
      is_tree_ = false;  // a relay
    } else if (place_[child.index()] == none) {
      place_[child.index()] = edges_.size();
      edges_.push_back({parent, child, {route.links.begin(), route.links.end()}});
    } else {
      // Another slice along the same path is nothing new; another path is no tree.
      const TreeEdge& first = edges_[place_[child.index()]];
      if (first.parent != parent || !std::ranges::equal(first.links, route.links)) is_tree_ = false;
    }
  }

  /// Adds the tree, if it is one that spans.
  void give_to(std::vector<Arborescence>& trees, bool inward) && {
    if (!is_tree_ || edges_.size() + 1 != place_.size()) return;
    if (inward) std::ranges::reverse(edges_);  // leaves send first
    const auto root = std::ranges::find(place_, none) - place_.begin();
    std::vector<bool> is_joined(place_.size(), false);
    is_joined[static_cast<std::size_t>(root)] = true;
    for (const TreeEdge& edge : edges_) {
      if (!is_joined[edge.parent.index()]) return;
      is_joined[edge.child.index()] = true;
    }
    trees.push_back({Rank(static_cast<std::size_t>(root)), 1, std::move(edges_)});
  }

 private:
  static constexpr std::size_t none = SIZE_MAX;
  std::vector<std::size_t> place_;  ///< By rank: of the edge to its parent.
  std::vector<TreeEdge> edges_;
  bool is_tree_ = true;
};

}  // namespace

Forest spanning_trees(const Schedule& schedule) {
  std::map<std::pair<std::uint32_t, bool>, ChannelTree> channels;
  for (const Transfer& transfer : schedule.transfers) {
    const bool inward = transfer.reduces != 0;
    channels.try_emplace({transfer.channel_value, inward}, schedule.collective.rank_count)
        .first->second.add(schedule.route(transfer.route), inward);
  }
  Forest forest;
  for (auto& [key, channel] : channels) {
    std::move(channel).give_to(key.second ? forest.in_trees : forest.out_trees, key.second);
  }
  return forest;
}

}  // namespace espalier
