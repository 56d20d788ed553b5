#include "planners/packing/few_root_trees.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "planners/lp/tree_balance.h"
#include "planners/lp/tree_images.h"
#include "planners/lp/tree_patterns.h"
#include "topology/analysis/max_flow.h"

namespace espalier {

namespace {

constexpr std::size_t most_ranks = 80;
constexpr std::size_t most_trees = 32;
constexpr std::size_t most_equal_trees = 10;
constexpr std::int64_t most_balanced_ranks = 3200;  // of all trees that are balanced
constexpr int most_equal_rounds = 6;
constexpr std::size_t wanted_trees = 8;  ///< And what ranks pass on to, where height is chosen.
/// All that is carried is below this, in units so fine that most parts of it are whole.
constexpr std::int64_t most_capacity = std::int64_t{1} << 60U;
constexpr std::int64_t fine_units = 720'720;  // of 1 to 16, the least common multiple

bool is_balanced(const Topology& topology) {
  for (std::size_t v = 0; v < topology.node_count(); ++v) {
    const Node& node = topology.node(NodeId(v));
    if (node.bandwidth.bytes_per_second != 0) return false;
    if (node.is_rank) continue;
    __int128 surplus = 0;
    for (const LinkId link : topology.in_links(NodeId(v))) surplus += topology.link(link).bandwidth().bytes_per_second;
    for (const LinkId link : topology.out_links(NodeId(v))) surplus -= topology.link(link).bandwidth().bytes_per_second;
    if (surplus != 0) return false;
  }
  return true;
}

class RootPacker {
 public:
  RootPacker(const OrbitGraph& orbits, const TreeGroups& groups, std::vector<std::int64_t> room)
      : orbits_(orbits),
        groups_(groups),
        root_(orbits.graph.rank_nodes[groups.groups.front().root]),
        room_(std::move(room)),
        flow_(orbits.graph.node_ranks.size()),
        tries_left_(most_balanced_ranks / std::int64_t{orbits.graph.rank_count()}) {
    const bool inward = groups.groups.front().inward;
    for (std::size_t e = 0; e < room_.size(); ++e) {
      const ResourceGraph::Edge& edge = orbits.graph.edges[e];
      ends_.emplace_back(inward ? edge.head : edge.tail, inward ? edge.tail : edge.head);
      if (ends_.back().first != root_ && orbits.graph.is_dead_end[ends_.back().first]) room_[e] = 0;  // nothing leaves
      flow_.add_arc(ends_.back().first, ends_.back().second, room_[e]);
    }
    left_ = smallest_cut(room_, most_capacity).capacity;
    whole_ = left_;
  }

  [[nodiscard]] std::int64_t whole() const { return whole_; }

  /// `count` trees of equal weight, or nothing: what each edge has room for is rounded down to whole trees, and copies
  /// of known trees are changed until no edge has too many. Edges that stay too full get dearer from round to round.
  std::optional<std::vector<std::pair<Pattern, std::int64_t>>> equal(std::span<const Pattern> starts, std::size_t count,
                                                                     std::uint32_t most_height) {
    const auto trees = static_cast<std::int64_t>(count);
    std::vector<std::int64_t> fitting;
    for (const std::int64_t value : room_) {
      fitting.push_back(static_cast<std::int64_t>(static_cast<__int128>(value) * trees / whole_));
    }
    if (smallest_cut(fitting, trees).capacity < trees) return std::nullopt;
    const std::vector<double> room(fitting.begin(), fitting.end());
    std::vector<BigInteger> prices(room_.size(), 0);
    std::vector<Pattern> patterns;
    for (std::size_t i = 0; i < count; ++i) patterns.push_back(starts[i % starts.size()]);
    for (int round = 0; round < most_equal_rounds; ++round) {
      patterns = TreeBalancer(orbits_, groups_, prices).balanced(std::move(patterns), room, most_height, Fill::full);
      std::vector<std::int64_t> left = fitting;
      for (const Pattern& pattern : patterns) {
        for (const Entry entry : pattern.loads) left[entry.index] -= entry.value;
      }
      if (std::ranges::all_of(left, [](std::int64_t rest) { return rest >= 0; })) {
        std::vector<std::pair<Pattern, std::int64_t>> packed;
        for (Pattern& pattern : patterns) packed.emplace_back(std::move(pattern), 1);
        return packed;
      }
      for (std::size_t e = 0; e < left.size(); ++e) prices[e] += std::max<std::int64_t>(0, -left[e]);
    }
    return std::nullopt;
  }

  /// Trees and what each carries, `most` of them at most, that leave no more than `most_left` of all that the root has
  /// to carry; nothing when more are needed.
  std::optional<std::vector<std::pair<Pattern, std::int64_t>>> pack(std::span<const Pattern> starts, std::size_t most,
                                                                    std::uint32_t most_height, std::int64_t most_left) {
    std::vector<std::pair<Pattern, std::int64_t>> packed;
    while (left_ > most_left) {
      if (packed.size() == most) return std::nullopt;
      std::pair<Pattern, std::int64_t> best;
      const auto parts = static_cast<std::int64_t>(std::max(wanted_trees, packed.size() + 1) - packed.size());
      for (const Fill fill : {Fill::even, Fill::full}) {
        for (const Pattern* start : roomiest(starts)) {
          if (best.second * parts >= left_) break;
          auto found = best_tree(*start, most_height, fill, parts);
          if (found.second > best.second) best = std::move(found);
        }
      }
      if (best.second == 0 || tries_left_ <= 0) return std::nullopt;
      for (const Entry entry : best.first.loads) room_[entry.index] -= best.second * entry.value;
      left_ -= best.second;
      packed.push_back(std::move(best));
    }
    return packed;
  }

 private:
  struct Cut {
    std::int64_t capacity = 0;
    std::vector<bool> inside;
  };

  /// The smallest cut between the root and a rank if it is below `limit`.
  Cut smallest_cut(const std::vector<std::int64_t>& capacities, std::int64_t limit) {
    for (std::uint32_t e = 0; e < capacities.size(); ++e) flow_.set_capacity(e, capacities[e]);
    Cut smallest{limit, {}};
    const std::size_t first = likeliest_;
    for (std::size_t tried = 0; tried < orbits_.graph.rank_nodes.size(); ++tried) {
      const std::size_t rank = (first + tried) % orbits_.graph.rank_nodes.size();
      const std::uint32_t sink = orbits_.graph.rank_nodes[rank];
      if (sink == root_) continue;
      const std::int64_t flow = flow_.run(root_, sink, smallest.capacity);
      if (flow >= smallest.capacity) continue;
      smallest = {flow, flow_.source_side(std::span(&root_, 1))};
      likeliest_ = rank;
    }
    return smallest;
  }

  /// Those of the trees that there is most room for.
  [[nodiscard]] std::vector<const Pattern*> roomiest(std::span<const Pattern> starts) const {
    constexpr std::size_t most_starts = 8;
    std::vector<std::pair<std::int64_t, const Pattern*>> by_full;  // how many of its edges are full
    for (const Pattern& start : starts) {
      std::int64_t full = 0;
      for (const Entry entry : start.loads) full += room_[entry.index] == 0 ? entry.value : 0;
      by_full.emplace_back(full, &start);
    }
    std::stable_sort(by_full.begin(), by_full.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    by_full.resize(std::min(most_starts, by_full.size()));
    std::vector<const Pattern*> some;
    for (const auto& [full, start] : by_full) some.push_back(start);
    return some;
  }

  /// A tree that may carry one of `parts` parts of what is left, with the cuts that kept it small made dear as long as
  /// that helps.
  std::pair<Pattern, std::int64_t> best_tree(const Pattern& start, std::uint32_t most_height, Fill fill,
                                             std::int64_t parts) {
    constexpr int most_tries = 6;
    std::vector<double> room;
    for (const std::int64_t value : room_) {
      const double part = static_cast<double>(value) / static_cast<double>(left_);
      room.push_back(fill == Fill::even ? part : std::floor(part * static_cast<double>(parts)));
    }
    std::erase_if(cuts_, [&](const std::vector<std::uint32_t>& cut) {
      std::int64_t capacity = 0;
      for (const std::uint32_t e : cut) capacity += room_[e];
      return capacity > left_;
    });
    std::pair<Pattern, std::int64_t> best{start, 0};
    for (int attempt = 0; attempt < most_tries && tries_left_ > 0; ++attempt, --tries_left_) {
      const Pattern tree = TreeBalancer(orbits_, groups_, prices()).balanced({start}, room, most_height, fill).front();
      std::vector<bool> binding;
      const std::int64_t amount = amount_of(tree, binding);
      if (amount > best.second) best = {tree, amount};
      if (binding.empty()) break;
      std::vector<std::uint32_t>& cut = cuts_.emplace_back();
      for (std::uint32_t e = 0; e < ends_.size(); ++e) {
        if (binding[ends_[e].first] && !binding[ends_[e].second]) cut.push_back(e);
      }
    }
    return best;
  }

  /// Of edges: how many of the cuts they cross, and very much for those that are full.
  [[nodiscard]] std::vector<BigInteger> prices() const {
    constexpr int full = 1000;
    std::vector<BigInteger> prices;
    for (const std::int64_t value : room_) prices.emplace_back(value == 0 ? full : 0);
    for (const std::vector<std::uint32_t>& cut : cuts_) {
      for (const std::uint32_t e : cut) ++prices[e];
    }
    return prices;
  }

  /// The most that the tree can carry so that the rest can be completed; `binding` is the cut that says so, empty where
  /// the tree's own edges do.
  std::int64_t amount_of(const Pattern& tree, std::vector<bool>& binding) {
    std::vector<std::int64_t> uses(room_.size(), 0);
    std::int64_t amount = left_;
    for (const Entry entry : tree.loads) {
      uses[entry.index] = entry.value;
      amount = std::min(amount, room_[entry.index] / entry.value);
    }
    while (amount > 0) {
      std::vector<std::int64_t> rest = room_;
      for (std::size_t e = 0; e < rest.size(); ++e) rest[e] -= amount * uses[e];
      Cut cut = smallest_cut(rest, left_ - amount);
      if (cut.inside.empty()) return amount;
      std::int64_t crossings = 0;
      std::int64_t capacity = 0;
      for (std::size_t e = 0; e < ends_.size(); ++e) {
        if (!cut.inside[ends_[e].first] || cut.inside[ends_[e].second]) continue;
        crossings += uses[e];
        capacity += room_[e];
      }
      amount = (capacity - left_) / (crossings - 1);
      binding = std::move(cut.inside);
    }
    return 0;
  }

  const OrbitGraph& orbits_;
  const TreeGroups& groups_;
  std::uint32_t root_;
  std::vector<std::int64_t> room_;                             ///< By edge.
  std::vector<std::vector<std::uint32_t>> cuts_;               ///< That trees had to keep to: the edges across them.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> ends_;  ///< By edge, in the direction away from the root.
  MaxFlow<std::int64_t> flow_;
  std::int64_t left_ = 0;
  std::int64_t whole_ = 0;
  std::int64_t tries_left_;    ///< Trees that may still be balanced.
  std::size_t likeliest_ = 0;  ///< The rank behind the last cut, tried first.
};

/// The capacities in units as fine as fit.
std::optional<std::vector<std::int64_t>> fine_capacities(const ResourceGraph& graph) {
  BigInteger sum = 0;
  for (const BigInteger& capacity : graph.capacity) sum += capacity;
  if (sum * fine_units * most_trees >= most_capacity) return std::nullopt;
  std::vector<std::int64_t> fine;
  for (const BigInteger& capacity : graph.capacity) {
    fine.push_back(BigInteger(capacity * fine_units).convert_to<std::int64_t>());
  }
  return fine;
}

}  // namespace

std::optional<std::vector<Arborescence>> few_root_trees(const Topology& topology, Direction direction, Rank root,
                                                        const std::vector<Arborescence>& trees, const Rational& gap) {
  if (topology.rank_count() > most_ranks || !is_balanced(topology)) return std::nullopt;
  const OrbitGraph orbits = make_orbit_graph(topology, false, Symmetry::none);
  auto capacities = fine_capacities(orbits.graph);
  if (!capacities) return std::nullopt;
  const bool inward = direction == Direction::reversed;
  const TreeOracle oracle(orbits, single_root_group(root.value(), inward));
  std::vector<Pattern> given = patterns_of(orbits, oracle.groups(), trees);
  std::stable_sort(given.begin(), given.end(), [](const Pattern& a, const Pattern& b) { return a.height < b.height; });
  std::uint32_t height = oracle.least_height();
  for (std::size_t reached = 1; reached + 1 < topology.rank_count(); reached = reached * wanted_trees + 1) ++height;

  RootPacker packer(orbits, oracle.groups(), *std::move(capacities));
  const Rational left = packer.whole() * gap / (1 + gap);
  const auto most_left = BigInteger(numerator(left) / denominator(left)).convert_to<std::int64_t>();
  const std::size_t most = std::min(most_trees, trees.size() - 1);
  std::optional<std::vector<std::pair<Pattern, std::int64_t>>> packed;
  for (std::size_t count = wanted_trees; gap != 0 && !packed && count <= std::min(most, most_equal_trees); ++count) {
    packed = packer.equal(given, count, height);
  }
  Rational rate = make_rational(packer.whole(), fine_units);
  if (!packed) {
    packed = packer.pack(given, most, height, most_left);
    if (!packed) return std::nullopt;
    rate = 0;
    for (const auto& [pattern, amount] : *packed) rate += make_rational(amount, fine_units);
  }
  std::int64_t sum = 0;
  for (const auto& [pattern, amount] : *packed) sum += amount;
  std::vector<ProgramTree> images;
  for (const auto& [pattern, amount] : *packed) {
    images.push_back({root.value(), inward, make_rational(amount, sum), pattern.edges, {}});
  }
  Forest forest = whole_forest(topology, orbits.graph, images, 1 / (rate * orbits.graph.unit));
  std::vector<Arborescence>& few = inward ? forest.in_trees : forest.out_trees;
  return few.size() < trees.size() ? std::optional(std::move(few)) : std::nullopt;  // parallel links may split trees
}

}  // namespace espalier
