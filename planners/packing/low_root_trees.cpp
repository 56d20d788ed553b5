#include "planners/packing/low_root_trees.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <utility>

#include "planners/packing/growing_trees.h"
#include "planners/packing/low_trees.h"
#include "planners/packing/tree_exchange.h"
#include "planners/packing/twin_planes.h"
#include "planners/program/program_forest.h"
#include "planners/program/resource_graph.h"
#include "topology/max_flow.h"

namespace espalier {

namespace {

constexpr std::size_t most_low_ranks = 256;
constexpr std::size_t most_low_trees = 16;
constexpr std::int64_t most_capacity = std::int64_t{1} << 56U;
constexpr std::int64_t growth_work = 5000;     ///< Arcs that searches may pass as trees grow, for every two ranks.
constexpr std::int64_t least_growth_work = 3'000'000;
constexpr std::int64_t most_growth_work = 300'000'000;
constexpr std::int64_t exchange_work = 6000;     ///< Ranks that exchanges move, for every rank, of one set of trees and height.
constexpr std::int64_t all_exchange_work = 14'000;  ///< And in all.

/// Complete trees.
struct Candidate {
  std::unique_ptr<GrowingTrees> grown;    ///< What they were before exchanges.
  std::vector<GrowingTrees::Tree> trees;
  std::uint32_t height = 0;

  /// Whether it is lower, or as low with fewer trees.
  [[nodiscard]] bool beats(const Candidate& other) const {
    return height != other.height ? height < other.height : trees.size() < other.trees.size();
  }
};

/// Trees of one root, in capacities of any unit.
class LowTreeSearch {
 public:
  LowTreeSearch(const ResourceGraph& graph, std::vector<GrowingTrees::Arc> arcs, std::uint32_t root)
      : graph_(graph), arcs_(std::move(arcs)), root_(root), growth_(std::clamp(growth_work * graph.rank_count() * graph.rank_count(), least_growth_work, most_growth_work)) {
    MaxFlow<std::int64_t> flow(graph.node_ranks.size());
    for (const GrowingTrees::Arc& arc : arcs_) flow.add_arc(arc.tail, arc.head, arc.room);
    rate_ = most_capacity;
    for (std::uint32_t rank = 0; rank < graph.rank_count(); ++rank) {
      if (rank != root) rate_ = std::min(rate_, flow.run(graph.rank_nodes[root], graph.rank_nodes[rank], rate_));
    }
    common_ = rate_;
    for (const GrowingTrees::Arc& arc : arcs_) common_ = std::gcd(common_, arc.room);
    measure_fan_out();
  }

  [[nodiscard]] std::int64_t rate() const { return rate_; }

  /// The lowest trees met.
  std::optional<Candidate> run() {
    if (rate_ == 0) return std::nullopt;
    for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{2}}) {
      if (seed > 0 && graph_.rank_count() > most_tried_again) break;
      for (const bool level_by_level : {false, true}) {
        for (const std::size_t count : counts) {
          if (growth_.is_spent()) break;
          if (can_improve(count)) try_growth(count, {level_by_level, false, seed});
        }
      }
    }
    lower();
    if (found_.empty()) return std::nullopt;
    return std::move(found_.front());
  }

 private:
  static constexpr std::array<std::size_t, most_low_trees> counts = {16, 8, 15, 14, 12, 10, 6, 4,
                                                                      9,  7, 13, 11, 5,  3,  2, 1};
  static constexpr std::size_t most_tried_again = 64;

  /// How many times the rate the root sends at most, and any other rank.
  void measure_fan_out() {
    std::vector<std::int64_t> out(graph_.rank_count(), 0);
    for (const GrowingTrees::Arc& arc : arcs_) {
      if (graph_.node_ranks[arc.tail] != ResourceGraph::no_rank) out[graph_.node_ranks[arc.tail]] += arc.room;
    }
    const auto rate = static_cast<double>(rate_);
    root_fan_out_ = static_cast<double>(out[root_]) / rate;
    out[root_] = 0;
    fan_out_ = static_cast<double>(std::ranges::max(out)) / rate;
  }

  /// No `count` trees are all lower: of trees of equal weight the mean one has so many ranks at the root, and each hands
  /// on to so many; unequal weights reach fewer (docs/packing.md).
  [[nodiscard]] std::uint32_t least_height(std::size_t count) const {
    double reached = root_fan_out_;
    double level = root_fan_out_;
    std::uint32_t height = 1;
    for (; std::ceil(reached) < static_cast<double>(graph_.rank_count() - 1); ++height) {
      level *= std::max(1.0, fan_out_ * static_cast<double>(count));
      reached += level;
    }
    return height;
  }

  [[nodiscard]] bool can_improve(std::size_t count) const {
    if (found_.empty()) return true;
    const Candidate& best = found_.front();
    const std::uint32_t least = least_height(count);
    return least < best.height || (least == best.height && count < best.trees.size());
  }

  void try_growth(std::size_t count, const GrowthOrder& order) {
    std::vector<GrowingTrees::Arc> arcs = arcs_;
    for (GrowingTrees::Arc& arc : arcs) {
      arc.room = static_cast<std::int64_t>(static_cast<__int128>(arc.room) * static_cast<std::int64_t>(count) / rate_);
    }
    std::vector<std::int64_t> weights(count, 1);
    if (grow_in(std::move(arcs), weights, order)) return;
    const std::int64_t units = rate_ / common_;
    const auto parts = static_cast<std::int64_t>(count);
    if (units < parts) return;
    arcs = arcs_;
    for (GrowingTrees::Arc& arc : arcs) arc.room /= common_;
    for (std::size_t i = 0; i < count; ++i) {
      const auto place = static_cast<std::int64_t>(i);
      weights[i] = static_cast<std::int64_t>(static_cast<__int128>(units) * (place + 1) / parts) -
                   static_cast<std::int64_t>(static_cast<__int128>(units) * place / parts);
    }
    grow_in(arcs, weights, order);
    if (graph_.rank_count() > most_tried_again) return;
    GrowthOrder early = order;
    early.splits_early = true;
    grow_in(std::move(arcs), weights, early);
  }

  /// False where no trees of these weights exist.
  bool grow_in(std::vector<GrowingTrees::Arc> arcs, std::span<const std::int64_t> weights, const GrowthOrder& order) {
    auto trees = std::make_unique<GrowingTrees>(graph_.node_ranks.size(), std::move(arcs), graph_.rank_nodes, root_,
                                                weights, growth_);
    if (!trees->is_possible()) return false;
    if (!grow(*trees, most_low_trees, order, growth_)) return true;
    Candidate candidate{std::move(trees), {}, 0};
    candidate.trees = candidate.grown->trees();
    candidate.height = height_of(*candidate.grown);
    const auto same = std::ranges::find_if(found_, [&](const Candidate& other) {
      return other.trees.size() == candidate.trees.size();
    });
    if (same != found_.end()) {
      if (candidate.height < same->height) *same = std::move(candidate);
    } else {
      found_.push_back(std::move(candidate));
    }
    sort_found();
    return true;
  }

  void sort_found() {
    std::ranges::stable_sort(found_, [](const Candidate& a, const Candidate& b) { return a.beats(b); });
  }

  /// Lowers the best trees by exchanges until they are better than the best of all.
  void lower() {
    const std::int64_t ranks = graph_.rank_count();
    std::int64_t left = all_exchange_work * ranks;
    std::size_t best = 0;
    for (std::size_t i = 0; i < found_.size() && left > 0; ++i) {
      Candidate& candidate = found_[i];
      TreeExchange exchange(*candidate.grown);
      while (left > 0) {
        const bool is_as_good = i == best || candidate.trees.size() > found_[best].trees.size();
        const std::uint32_t goal = found_[best].height - (is_as_good ? 1 : 0);
        if (goal < std::max(least_distance(), least_height(candidate.trees.size()))) break;
        WorkBudget budget(exchange_work * ranks);
        const bool reached = exchange.reach(goal, budget);
        left -= exchange_work * ranks - budget.left();
        if (!reached) break;
        candidate.trees = exchange.trees();
        candidate.height = goal;
        best = i;
      }
    }
    sort_found();
  }

  /// How many trees' edges the farthest rank is from the root.
  [[nodiscard]] std::uint32_t least_distance() const {
    std::vector<std::uint32_t> hops(graph_.node_ranks.size(), UINT32_MAX);
    hops[graph_.rank_nodes[root_]] = 0;
    for (bool changed = true; changed;) {
      changed = false;
      for (const GrowingTrees::Arc& arc : arcs_) {
        if (arc.room == 0 || hops[arc.tail] == UINT32_MAX) continue;
        const std::uint32_t reached =
            hops[arc.tail] + (graph_.node_ranks[arc.head] == ResourceGraph::no_rank ? 0 : 1);
        if (reached >= hops[arc.head]) continue;
        hops[arc.head] = reached;
        changed = true;
      }
    }
    std::uint32_t farthest = 0;
    for (const std::uint32_t node : graph_.rank_nodes) farthest = std::max(farthest, hops[node]);
    return farthest;
  }

  const ResourceGraph& graph_;
  std::vector<GrowingTrees::Arc> arcs_;
  std::uint32_t root_;
  WorkBudget growth_;
  std::int64_t rate_ = 0;
  std::int64_t common_ = 1;
  double root_fan_out_ = 1;
  double fan_out_ = 1;
  std::vector<Candidate> found_;  ///< The best of each number of trees, the best of all first.
};

/// How wide every edge is taken: as it is, or with its twins.
std::vector<std::int64_t> widths_of(const ResourceGraph& graph, const TwinPlanes* planes) {
  std::vector<std::int64_t> widths(graph.edges.size(), 1);
  for (std::uint32_t e = 0; planes != nullptr && e < widths.size(); ++e) widths[e] = planes->width(e);
  return widths;
}

/// The edges as arcs away from the root, without what leaves ranks that must not relay; nothing where numbers are too
/// large.
std::optional<std::vector<GrowingTrees::Arc>> arcs_of(const ResourceGraph& graph, std::span<const std::int64_t> widths,
                                                      bool inward, std::uint32_t root) {
  BigInteger sum = 0;
  std::vector<GrowingTrees::Arc> arcs;
  for (std::uint32_t e = 0; e < graph.edges.size(); ++e) {
    const ResourceGraph::Edge& edge = graph.edges[e];
    const BigInteger room = graph.capacity[edge.resources.front()] * widths[e];
    sum += room;
    if (sum >= most_capacity) return std::nullopt;
    GrowingTrees::Arc& arc = arcs.emplace_back();
    arc.tail = inward ? edge.head : edge.tail;
    arc.head = inward ? edge.tail : edge.head;
    const bool is_root = arc.tail == graph.rank_nodes[root];
    if (is_root || !graph.is_dead_end[arc.tail]) arc.room = room.convert_to<std::int64_t>();
    if (arc.head == graph.rank_nodes[root]) arc.room = 0;
  }
  return arcs;
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

}  // namespace

std::optional<std::vector<Arborescence>> low_root_trees(const Topology& topology, Direction direction, Rank root) {
  if (topology.rank_count() > most_low_ranks) return std::nullopt;
  const bool has_backplane =
      std::ranges::any_of(topology.nodes(), [](const Node& node) { return node.bandwidth.bytes_per_second != 0; });
  if (has_backplane) return std::nullopt;
  const ResourceGraph graph = make_resource_graph(topology, false);
  const TwinPlanes planes(graph);
  const bool inward = direction == Direction::reversed;
  std::optional<Candidate> best;
  bool is_spread = false;
  std::int64_t rate = 0;
  for (const bool joined : {false, true}) {
    if (joined && planes.spreads() == 1) break;
    auto arcs = arcs_of(graph, widths_of(graph, joined ? &planes : nullptr), inward, root.value());
    if (!arcs) return std::nullopt;
    LowTreeSearch search(graph, *std::move(arcs), root.value());
    rate = search.rate();
    auto found = search.run();
    if (!found || (best && found->height >= best->height)) continue;
    best = std::move(found);
    is_spread = joined;
  }
  if (!best) return std::nullopt;
  std::int64_t sum = 0;
  for (const GrowingTrees::Tree& tree : best->trees) sum += tree.weight;
  const auto parts = static_cast<std::int64_t>(is_spread ? planes.spreads() : 1);
  std::vector<ProgramTree> images;
  for (const GrowingTrees::Tree& tree : best->trees) {
    const Rational share = make_rational(tree.weight, sum) / parts;
    std::vector<std::uint32_t> edges = edges_of(tree, inward);
    if (!is_spread) {
      images.push_back({root.value(), inward, share, std::move(edges), {}});
      continue;
    }
    for (std::vector<std::uint32_t>& image : planes.spread(edges)) {
      images.push_back({root.value(), inward, share, std::move(image), {}});
    }
  }
  Forest forest = whole_forest(topology, graph, images, 1 / (Rational(rate) * graph.unit));
  return inward ? std::move(forest.in_trees) : std::move(forest.out_trees);
}

}  // namespace espalier
