#include "planners/packing/find/shallow_root_trees.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <tuple>
#include <utility>

#include "planners/lp/resource_graph.h"
#include "planners/lp/trees/program_forest.h"
#include "planners/packing/find/shallow_tree_search.h"
#include "planners/packing/reduce/deal_lanes.h"
#include "planners/packing/reduce/parallel_switches.h"

namespace espalier {

namespace {

constexpr std::size_t most_low_ranks = 512;
constexpr std::int64_t most_low_capacity = std::int64_t{1} << 56U;

/// How wide every edge is taken; by edge, 0 where another stands for it.
using Widths = std::vector<std::int64_t>;

/// Every edge with its parallel ones, of which there are `lanes` then.
Widths widths_of(const ResourceGraph& graph, const ParallelSwitches& parallel, std::vector<std::int64_t>& lanes) {
  Widths widths;
  for (const ResourceGraph::Edge& edge : graph.edges) {
    const LinkId link = edge.links.front();
    const bool stands = parallel.in_lane(link, 0) == link;
    lanes.push_back(static_cast<std::int64_t>(parallel.lanes(link)));
    widths.push_back(stands ? std::max<std::int64_t>(1, lanes.back() / static_cast<std::int64_t>(edge.links.size()))
                            : 0);
  }
  return widths;
}

/// The network without what leaves ranks that must not relay; nothing where numbers are too large.
std::optional<RootNetwork> root_network_of(const ResourceGraph& graph, std::span<const std::int64_t> widths,
                                           bool inward, std::uint32_t root) {
  BigInteger sum = 0;
  RootNetwork network{graph.node_ranks.size(), {}, graph.rank_nodes, root, 0};
  for (std::uint32_t e = 0; e < graph.edges.size(); ++e) {
    const ResourceGraph::Edge& edge = graph.edges[e];
    const BigInteger room = graph.capacity[edge.resources.front()] * widths[e];
    sum += room;
    if (sum >= most_low_capacity) return std::nullopt;
    GrowingTrees::Arc& arc = network.arcs.emplace_back();
    arc.tail = inward ? edge.head : edge.tail;
    arc.head = inward ? edge.tail : edge.head;
    const bool is_root = arc.tail == graph.rank_nodes[root];
    if (is_root || !graph.is_dead_end[arc.tail]) arc.room = room.convert_to<std::int64_t>();
    if (arc.head == graph.rank_nodes[root]) arc.room = 0;
  }
  network.rate = root_rate(network);
  return network;
}

/// A tree's paths in the direction of the data.
std::vector<std::uint32_t> edges_of(const GrowingTrees::Tree& tree, bool inward) {
  std::vector<std::uint32_t> edges;
  for (const std::uint32_t rank : tree.members) {
    const std::vector<std::uint32_t>& path = tree.path[rank];
    inward ? edges.insert(edges.end(), path.rbegin(), path.rend())
           : edges.insert(edges.end(), path.begin(), path.end());
  }
  return edges;
}

/// Trees over links, and what counts among packings: at most 16 ways, then how high and how many they are.
struct FoundTrees {
  std::vector<Arborescence> trees;
  std::uint32_t height = 0;

  [[nodiscard]] bool beats(const FoundTrees& other) const {
    const auto key = [](const FoundTrees& found) {
      return std::tuple(std::max(found.trees.size(), LowTreeSearch::most_trees), found.height, found.trees.size());
    };
    return key(*this) < key(other);
  }
};

/// Searches on one topology's graph.
class RootSearch {
 public:
  RootSearch(const Topology& topology, bool inward, Rank root)
      : topology_(topology),
        inward_(inward),
        root_(root),
        graph_(make_resource_graph(topology, false)),
        parallel_(topology) {}

  std::optional<FoundTrees> run() const {
    std::optional<FoundTrees> best = over_edges();
    if (parallel_.empty()) return best;
    std::optional<FoundTrees> wide = over_lanes();
    return wide && (!best || wide->beats(*best)) ? std::move(wide) : std::move(best);
  }

 private:
  [[nodiscard]] std::int64_t searches() const { return parallel_.empty() ? 1 : 2; }

  /// Every plane for itself.
  [[nodiscard]] std::optional<FoundTrees> over_edges() const {
    const auto network = root_network_of(graph_, Widths(graph_.edges.size(), 1), inward_, root_.value());
    if (!network) return std::nullopt;
    const auto found = LowTreeSearch(*network, searches()).run();
    if (!found) return std::nullopt;
    std::vector<ProgramTree> images;
    for (const GrowingTrees::Tree& tree : found->trees)
      images.push_back(image(tree, edges_of(tree, inward_), sum_of(*found)));
    return finished(images, network->rate, found->height);
  }

  /// Wide trees, dealt out to lanes.
  [[nodiscard]] std::optional<FoundTrees> over_lanes() const {
    std::vector<std::int64_t> lanes;
    auto network = root_network_of(graph_, widths_of(graph_, parallel_, lanes), inward_, root_.value());
    if (!network) return std::nullopt;
    network->lanes = std::move(lanes);
    const auto found = LowTreeSearch(*network, searches()).run();
    if (!found) return std::nullopt;
    const std::int64_t units = sum_of(*found);
    std::vector<Arborescence> wide;
    for (const GrowingTrees::Tree& tree : found->trees) {
      auto& [root, weight, edges] = wide.emplace_back(root_, tree.weight * network->rate);
      std::vector<std::uint32_t> downwards = tree.members;  // exchanges may have put one below a later one
      std::ranges::stable_sort(downwards, [&](auto a, auto b) { return tree.depth[a] < tree.depth[b]; });
      for (const std::uint32_t rank : downwards) {
        if (Rank(rank) == root) continue;
        TreeEdge& edge = edges.emplace_back(Rank(tree.parent[rank]), Rank(rank));
        for (const std::uint32_t e : tree.path[rank]) {
          const LinkId link = graph_.edges[e].links.front();
          if (graph_.edges[e].links.size() > 1 && parallel_.lanes(link) == 1) return std::nullopt;
          edge.links.push_back(link);
        }
        if (inward_) std::ranges::reverse(edge.links);
      }
    }
    std::vector<std::int64_t> capacities;
    for (const Link& link : topology_.links()) {
      const BigInteger whole = BigInteger(link.bandwidth().bytes_per_second) / graph_.unit * units;
      if (whole > most_low_capacity * LowTreeSearch::most_units) return std::nullopt;
      capacities.push_back(whole.convert_to<std::int64_t>());
    }
    auto dealt = deal_lanes(topology_, parallel_, capacities, wide, network->rate);
    if (!dealt) return std::nullopt;
    return FoundTrees{*std::move(dealt), found->height};
  }

  static std::int64_t sum_of(const LowTreeSearch::Candidate& found) {
    std::int64_t sum = 0;
    for (const GrowingTrees::Tree& tree : found.trees) sum += tree.weight;
    return sum;
  }

  [[nodiscard]] ProgramTree image(const GrowingTrees::Tree& tree, std::vector<std::uint32_t> edges,
                                  std::int64_t sum) const {
    return {root_.value(), inward_, make_rational(tree.weight, sum), std::move(edges), {}};
  }

  [[nodiscard]] FoundTrees finished(const std::vector<ProgramTree>& images, std::int64_t rate,
                                    std::uint32_t height) const {
    Forest forest = whole_forest(topology_, graph_, images, 1 / (Rational(rate) * graph_.unit));
    return {inward_ ? std::move(forest.in_trees) : std::move(forest.out_trees), height};
  }

  const Topology& topology_;
  bool inward_;
  Rank root_;
  ResourceGraph graph_;
  ParallelSwitches parallel_;
};

}  // namespace

std::optional<std::vector<Arborescence>> low_root_trees(const Topology& topology, Direction direction, Rank root) {
  if (topology.rank_count() > most_low_ranks) return std::nullopt;
  const bool has_backplane =
      std::ranges::any_of(topology.nodes(), [](const Node& node) { return node.bandwidth.bytes_per_second != 0; });
  if (has_backplane) return std::nullopt;
  auto found = RootSearch(topology, direction == Direction::reversed, root).run();
  return found ? std::optional(std::move(found->trees)) : std::nullopt;
}

}  // namespace espalier
