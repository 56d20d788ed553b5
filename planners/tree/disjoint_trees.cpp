#include <algorithm>
#include <functional>
#include <map>
#include <numeric>

#include "planners/tree/edge_forests.h"
#include "planners/tree/spanning_tree.h"

namespace espalier::planners {

namespace {

/// Two links between ranks that carry one tree's data up and down.
struct Cable {
  Rank a;
  Rank b;
  LinkId there;
  LinkId back;
  std::int64_t rate = 0;  ///< Of the slower direction.
};

std::vector<Cable> cables_between_ranks(const Topology& topology) {
  std::map<std::pair<Rank, Rank>, std::vector<LinkId>> links;
  for (std::size_t i = 0; i < topology.link_count(); ++i) {
    const Link& link = topology.link(LinkId(i));
    const Rank tail = topology.rank_of(link.tail);
    const Rank head = topology.rank_of(link.head);
    if (!tail.is_none() && !head.is_none()) links[{tail, head}].emplace_back(i);
  }
  std::vector<Cable> cables;
  for (const auto& [ends, there] : links) {
    const auto back = links.find({ends.second, ends.first});
    if (ends.second < ends.first || back == links.end()) continue;
    for (std::size_t i = 0; i < std::min(there.size(), back->second.size()); ++i) {
      const std::int64_t rate = std::min(topology.link(there[i]).bandwidth().bytes_per_second,
                                         topology.link(back->second[i]).bandwidth().bytes_per_second);
      cables.push_back({ends.first, ends.second, there[i], back->second[i], rate});
    }
  }
  return cables;
}

/// The trees of one rate: each cable can be in as many of them as it has room for.
class SameRate {
 public:
  SameRate(const TreeDemand& demand, const std::vector<Cable>& cables, std::int64_t rate)
      : demand_(demand), cables_(cables) {
    for (std::uint32_t i = 0; i < cables.size(); ++i) {
      for (std::int64_t unit = 0; unit < std::min<std::int64_t>(cables[i].rate / rate, max_trees); ++unit) {
        edges_.push_back({cables[i].a.value(), cables[i].b.value()});
        cable_of_.push_back(i);
      }
    }
  }

  /// The most trees that fit, if there are more than `enough`.
  SpanningTrees run(std::size_t enough) const {
    const std::size_t n = demand_.topology.rank_count();
    std::size_t most = std::min({std::size_t{max_trees}, edges_.size() / (n - 1), fewest_at_a_rank()});
    for (; most > enough; --most) {
      std::vector<std::uint32_t> roots;
      for (std::size_t i = 0; i < most; ++i) {
        roots.push_back(demand_.root.is_none() ? static_cast<std::uint32_t>(i * n / most) : demand_.root.value());
      }
      const auto split = split_into_trees(n, edges_, roots);
      if (!split.empty()) return to_trees(split);
    }
    return {};
  }

 private:
  static constexpr std::int64_t max_trees = 16;

  [[nodiscard]] std::size_t fewest_at_a_rank() const {
    std::vector<std::size_t> degrees(demand_.topology.rank_count(), 0);
    for (const PlainEdge& edge : edges_) {
      ++degrees[edge.a];
      ++degrees[edge.b];
    }
    return *std::ranges::min_element(degrees);
  }

  [[nodiscard]] SpanningTrees to_trees(const std::vector<std::vector<std::uint32_t>>& split) const {
    SpanningTrees trees;
    for (const std::vector<std::uint32_t>& edges : split) {
      SpanningTree tree;
      for (const std::uint32_t edge : edges) {
        const Cable& cable = cables_[cable_of_[edge]];
        tree.branches.push_back({cable.a, cable.b, {cable.there}, {cable.back}});
      }
      tree.centre = demand_.root.is_none() ? find_centre(tree) : demand_.root;
      trees.push_back(std::move(tree));
    }
    return trees;
  }

  const TreeDemand& demand_;
  const std::vector<Cable>& cables_;
  std::vector<PlainEdge> edges_;
  std::vector<std::uint32_t> cable_of_;  ///< By edge.
};

}  // namespace

SpanningTrees disjoint_trees(const TreeDemand& demand) {
  constexpr std::size_t max_ranks = 512;
  if (demand.topology.rank_count() > max_ranks) return {};
  const std::vector<Cable> cables = cables_between_ranks(demand.topology);
  std::vector<std::int64_t> rates;
  for (const Cable& cable : cables) rates.push_back(cable.rate);
  std::sort(rates.begin(), rates.end(), std::greater<>());
  rates.erase(std::unique(rates.begin(), rates.end()), rates.end());
  SpanningTrees best;
  std::int64_t best_total = 0;
  for (const std::int64_t rate : rates) {
    SpanningTrees trees = SameRate(demand, cables, rate).run(static_cast<std::size_t>(best_total / rate));
    if (trees.empty()) continue;
    best_total = rate * static_cast<std::int64_t>(trees.size());
    best = std::move(trees);
  }
  return best;
}

}  // namespace espalier::planners
