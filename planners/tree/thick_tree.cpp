#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <vector>

#include "planners/tree/spanning_tree.h"

namespace espalier::planners {
namespace {

constexpr std::size_t max_ranks_of_one_tree = 1024;

/// Bytes per second that leave a rank, or enter it, whichever are fewer.
std::int64_t capacity_of(const Topology& topology, Rank rank) {
  const NodeId node = topology.node_of(rank);
  const auto sum = [&](const auto& links) {
    return std::accumulate(links.begin(), links.end(), std::int64_t{0}, [&](std::int64_t so_far, LinkId link) {
      return so_far + topology.link(link).bandwidth().bytes_per_second;
    });
  };
  return std::min(sum(topology.out_links(node)), sum(topology.in_links(node)));
}

/// Where a tree begins, and whether ranks that have room for one neighbour alone come last.
struct Growth {
  Rank root;
  bool leaves_last = true;
};

/// Grows a tree of one rate from a rank, breadth first, along routes that have room for it both ways.
class ThickTree {
 public:
  ThickTree(const Topology& topology, const Growth& growth, std::int64_t rate)
      : topology_(topology),
        leaves_last_(growth.leaves_last),
        rate_(rate),
        room_(topology),
        tree_{growth.root, 1, {}},
        is_spanned_(topology.rank_count()) {
    add(growth.root);
  }

  std::optional<SpanningTree> run() {
    for (const bool takes_leaves : {!leaves_last_, true}) {
      for (std::size_t i = 0; i < members_.size() && members_.size() < is_spanned_.size(); ++i) {
        attach_to(members_[i], takes_leaves);
      }
    }
    if (members_.size() < is_spanned_.size()) return std::nullopt;
    tree_.centre = find_centre(tree_);
    return std::move(tree_);
  }

 private:
  void add(Rank rank) {
    is_spanned_[rank.index()] = true;
    members_.push_back(rank);
  }

  void attach_to(Rank above, bool takes_leaves) {
    for (const Residual::Reached& near : room_.reach(above, rate_, std::numeric_limits<std::uint32_t>::max())) {
      if (is_spanned_[near.rank.index()]) continue;
      if (!takes_leaves && capacity_of(topology_, near.rank) < 2 * rate_) continue;
      auto there = room_.find_route(above, near.rank, rate_);
      if (!there) continue;
      room_.take(*there, rate_);
      auto back = room_.find_route(near.rank, above, rate_);
      if (!back) {
        room_.give_back(*there, rate_);
        continue;
      }
      room_.take(*back, rate_);
      tree_.branches.push_back({above, near.rank, *std::move(there), *std::move(back)});
      add(near.rank);
    }
  }

  const Topology& topology_;
  bool leaves_last_;
  std::int64_t rate_;
  Residual room_;
  SpanningTree tree_;
  std::vector<Rank> members_;  ///< In the order in which they came.
  std::vector<bool> is_spanned_;
};

/// What is tried: from the root that is given, else from where a tree has most room to grow, and from elsewhere.
std::vector<Growth> all_growths(const TreeDemand& demand) {
  std::vector<Rank> roots = {demand.root};
  if (demand.root.is_none()) {
    const std::size_t ranks = demand.topology.rank_count();
    Rank widest(0);
    for (std::size_t rank = 1; rank < ranks; ++rank) {
      if (capacity_of(demand.topology, Rank(rank)) > capacity_of(demand.topology, widest)) widest = Rank(rank);
    }
    roots = {widest, Rank(0), Rank(ranks / 3)};
  }
  std::vector<Growth> growths;
  for (const Rank root : roots) {
    for (const bool leaves_last : {true, false}) growths.push_back({root, leaves_last});
  }
  return growths;
}

}  // namespace

SpanningTrees thick_tree(const TreeDemand& demand, double min_rate) {
  constexpr int steps = 8;
  const Topology& topology = demand.topology;
  if (topology.rank_count() > max_ranks_of_one_tree || !topology.first_not_relaying().is_none()) return {};
  const std::vector<Growth> growths = all_growths(demand);
  const auto grow = [&](double rate) -> std::optional<SpanningTree> {
    for (const Growth& growth : growths) {
      if (auto tree = ThickTree(topology, growth, static_cast<std::int64_t>(rate)).run()) return tree;
    }
    return std::nullopt;
  };
  double low = std::max(1.0, min_rate);
  std::optional<SpanningTree> best = grow(low);
  if (!best) return {};
  double high = static_cast<double>(capacity_of(topology, growths.front().root)) + 1;
  for (int step = 0; step < steps && low < high; ++step) {
    const double middle = (low + high) / 2;
    if (auto thicker = grow(middle)) {
      best = std::move(thicker);
      low = middle;
    } else {
      high = middle;
    }
  }
  return {*std::move(best)};
}

}  // namespace espalier::planners
