#include "planners/packing/find/shallow_tree_search.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <numeric>
#include <span>
#include <utility>

#include "planners/packing/find/shallow_trees.h"
#include "planners/packing/improve/tree_exchange.h"

namespace espalier::planners {

namespace {

constexpr std::size_t max_tried_again = 64;  // ranks
/// With parallel links, trees may be wider than links, but together they are no more than so many times the narrowest.
constexpr std::int64_t max_shallow_units = 48;
constexpr std::array<std::size_t, max_shallow_trees> tree_counts = {16, 8, 15, 14, 12, 10, 6, 4,
                                                                    9,  7, 13, 11, 5,  3,  2, 1};
/// Arcs that searches may pass as trees grow: for every two ranks, for every rank and arc, at least and at most.
constexpr std::int64_t growth_work = 5000;
constexpr std::int64_t growth_work_of_arc = 400;
constexpr std::int64_t min_growth_work = 1'000'000;
constexpr std::int64_t max_growth_work = 200'000'000;
/// Past so many ranks more trees take too long.
constexpr std::size_t many_ranks = 256;
constexpr std::size_t max_trees_of_many = 8;
/// Ranks that exchanges may move, for every rank: of one set of trees to one height, and in all.
constexpr std::int64_t exchange_work = 6000;
constexpr std::int64_t all_exchange_work = 12'000;

std::int64_t growth_work_of(const FlowNetwork& network) {
  const auto ranks = static_cast<std::int64_t>(network.rank_count());
  const auto arcs = static_cast<std::int64_t>(network.arcs().size());
  const std::int64_t work = ranks * std::max(growth_work * ranks, growth_work_of_arc * arcs);
  return std::clamp(work, min_growth_work, max_growth_work);
}

/// How many hops from rank to rank the farthest rank is from the root.
std::uint32_t farthest_rank(const FlowNetwork& network, Rank root) {
  std::vector<std::uint32_t> hops(network.vertex_count(), UINT32_MAX);
  hops[network.vertex_of(root)] = 0;
  for (bool changed = true; changed;) {
    changed = false;
    for (const FlowArc& arc : network.arcs()) {
      if (arc.capacity == 0 || hops[arc.tail] == UINT32_MAX) continue;
      const std::uint32_t reached = hops[arc.tail] + (network.rank_at(arc.head).is_none() ? 0 : 1);
      if (reached >= hops[arc.head]) continue;
      hops[arc.head] = reached;
      changed = true;
    }
  }
  std::uint32_t farthest = 0;
  for (const std::uint32_t vertex : network.rank_vertices()) farthest = std::max(farthest, hops[vertex]);
  return farthest;
}

/// A sum in so many parts.
std::vector<std::int64_t> nearly_equal(std::int64_t sum, std::size_t count) {
  const auto up_to = [&](std::size_t i) {
    return static_cast<std::int64_t>(static_cast<__int128>(sum) * static_cast<std::int64_t>(i) /
                                     static_cast<std::int64_t>(count));
  };
  std::vector<std::int64_t> parts;
  for (std::size_t i = 0; i < count; ++i) parts.push_back(up_to(i + 1) - up_to(i));
  return parts;
}

}  // namespace

ShallowTreeSearch::ShallowTreeSearch(const RootNetwork& network, std::int64_t searches)
    : network_(network),
      ranks_(network.network.rank_count()),
      growth_(growth_work_of(network.network) / searches),
      exchanges_(all_exchange_work * static_cast<std::int64_t>(ranks_) / searches),
      common_(network.rate),
      min_distance_(farthest_rank(network.network, network.root)) {
  for (const FlowArc& arc : network.network.arcs()) common_ = std::gcd(common_, arc.capacity);
}

bool ShallowTreeSearch::grow() {
  if (network_.rate == 0) return false;
  const std::uint64_t seeds = ranks_ > max_tried_again ? 1 : 3;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    for (const bool level_by_level : {false, true}) {
      for (const std::size_t count : tree_counts) {
        if (ranks_ > many_ranks && count > max_trees_of_many) continue;
        if (!growth_.is_spent() && can_improve(count)) try_growth(count, {level_by_level, false, seed});
      }
    }
  }
  if (!network_.parallel.empty() && found_.empty()) try_units();
  return !found_.empty();
}

bool ShallowTreeSearch::can_improve(std::size_t count) const {
  if (found_.empty()) return true;
  const Candidate& best = found_.front();
  const std::uint32_t least = std::max(min_distance_, min_tree_depth(network_, count));
  return least < best.depth || (least == best.depth && count < best.trees.size());
}

void ShallowTreeSearch::try_growth(std::size_t count, const GrowthOrder& order) {
  const auto parts = static_cast<std::int64_t>(count);
  if (grow_in(whole_trees(parts), std::vector<std::int64_t>(count, 1), order)) return;
  const std::int64_t units = network_.rate / common_;
  if (units < parts || !network_.parallel.empty()) return;
  std::vector<std::int64_t> room;
  for (const FlowArc& arc : network_.network.arcs()) room.push_back(arc.capacity / common_);
  const std::vector<std::int64_t> weights = nearly_equal(units, count);
  grow_in(room, weights, order);
  if (ranks_ > max_tried_again) return;
  GrowthOrder early = order;
  early.splits_early = true;
  grow_in(std::move(room), weights, early);
}

std::vector<std::int64_t> ShallowTreeSearch::whole_trees(std::int64_t units) const {
  std::vector<std::int64_t> room;
  for (const FlowArc& arc : network_.network.arcs()) {
    const std::int64_t links = network_.parallel.empty() ? 1 : network_.parallel[room.size()];
    room.push_back(links *
                   static_cast<std::int64_t>(static_cast<__int128>(arc.capacity / links) * units / network_.rate));
  }
  return room;
}

void ShallowTreeSearch::try_units() {
  for (std::int64_t units = max_shallow_trees + 1; units <= max_shallow_units && found_.empty() && !growth_.is_spent();
       ++units) {
    bool is_possible = true;
    for (const bool level_by_level : {false, true}) {
      for (const std::size_t count : tree_counts) {
        if (!is_possible || growth_.is_spent() || !can_improve(count)) continue;
        is_possible = grow_in(whole_trees(units), nearly_equal(units, count), {level_by_level, false, 0});
      }
    }
  }
}

bool ShallowTreeSearch::grow_in(std::vector<std::int64_t> room, std::span<const std::int64_t> weights,
                                const GrowthOrder& order) {
  auto trees = std::make_unique<GrowingTrees>(network_.network, std::move(room), network_.root, weights, growth_);
  if (!trees->is_possible()) return false;
  if (!planners::grow(*trees, max_shallow_trees, order, growth_)) return true;
  Candidate candidate{std::move(trees), {}, 0};
  candidate.trees = candidate.grown->trees();
  candidate.depth = depth_of(*candidate.grown);
  const auto same = std::ranges::find_if(
      found_, [&](const Candidate& other) { return other.trees.size() == candidate.trees.size(); });
  if (same == found_.end()) {
    found_.push_back(std::move(candidate));
  } else if (candidate.depth < same->depth) {
    *same = std::move(candidate);
  }
  sort_found();
  return true;
}

void ShallowTreeSearch::sort_found() {
  std::ranges::stable_sort(found_, [](const Candidate& a, const Candidate& b) { return a.beats(b); });
}

void ShallowTreeSearch::exchange() {
  const auto ranks = static_cast<std::int64_t>(ranks_);
  std::int64_t left = exchanges_;
  std::size_t best = 0;
  for (std::size_t i = 0; i < found_.size() && left > 0; ++i) {
    Candidate& candidate = found_[i];
    const std::uint32_t least = std::max(min_distance_, min_tree_depth(network_, candidate.trees.size()));
    TreeExchange moves(*candidate.grown);
    while (left > 0) {
      const bool is_as_good = i == best || candidate.trees.size() > found_[best].trees.size();
      const std::uint32_t goal = found_[best].depth - (is_as_good ? 1 : 0);
      if (goal < least) break;
      WorkBudget budget(exchange_work * ranks);
      const bool reached = moves.reach(goal, budget);
      left -= exchange_work * ranks - budget.left();
      if (!reached) break;
      candidate.trees = moves.trees();
      candidate.depth = goal;
      best = i;
    }
  }
  sort_found();
}

std::uint32_t min_tree_depth(const RootNetwork& network, std::size_t max_trees) {
  std::vector<std::int64_t> out(network.network.vertex_count(), 0);
  for (const FlowArc& arc : network.network.arcs()) out[arc.tail] += arc.capacity;
  const auto rate = static_cast<double>(network.rate);
  const std::uint32_t root = network.network.vertex_of(network.root);
  std::int64_t max_out = 0;
  for (const std::uint32_t vertex : network.network.rank_vertices()) {
    if (vertex != root) max_out = std::max(max_out, out[vertex]);
  }
  double level = static_cast<double>(out[root]) / rate;
  double reached = level;
  const double fan_out = std::max(1.0, static_cast<double>(max_out) / rate * static_cast<double>(max_trees));
  std::uint32_t depth = 1;
  for (; std::ceil(reached) < static_cast<double>(network.network.rank_count() - 1); ++depth) {
    level *= fan_out;
    reached += level;
  }
  return depth;
}

}  // namespace espalier::planners
