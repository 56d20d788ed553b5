#include "planners/packing/improve/tree_exchange.h"

#include <algorithm>
#include <utility>

namespace espalier::planners {

namespace {

constexpr std::uint64_t max_tries_of_a_place = 20;

}  // namespace

TreeExchange::TreeExchange(const GrowingTrees& grown)
    : network_(grown.network()), room_(grown.room()), seen_(network_.vertex_count(), 0) {
  for (const ParentTree& tree : grown.trees()) trees_.emplace_back(tree);
}

std::vector<ParentTree> TreeExchange::trees() const {
  std::vector<ParentTree> trees;
  for (const ReparentedTree& tree : trees_) trees.push_back(tree.tree());
  return trees;
}

bool TreeExchange::reach(std::uint32_t max_depth, WorkBudget& budget) {
  max_depth_ = max_depth;
  excess_ = 0;
  for (const ReparentedTree& tree : trees_) excess_ += excess_of(tree.tree());
  const auto places = static_cast<std::uint64_t>(trees_.size() * network_.rank_count());
  moves_ = 0;
  for (std::uint64_t tries = 0; excess_ > 0 && !budget.is_spent(); ++tries) {
    if (moves_ == 0 && tries > max_tries_of_a_place * places) return false;  // nothing can move
    const std::uint64_t place = random_.below(places);
    const auto t = static_cast<std::uint32_t>(place / network_.rank_count());
    const auto rank = static_cast<std::uint32_t>(place % network_.rank_count());
    moved_ = 0;
    budget.spend(1);
    if (trees_[t].tree().depth[rank] == 0) continue;
    if (random_.below(2) == 0) {
      try_swap(t, rank);
    } else {
      reparent(trees_[t], rank, *this);
    }
    budget.spend(moved_);
  }
  return excess_ == 0;
}

std::int64_t TreeExchange::excess_of(const ParentTree& tree) const {
  std::int64_t excess = 0;
  for (const std::uint32_t depth : tree.depth) excess += std::max<std::int64_t>(0, std::int64_t{depth} - max_depth_);
  return excess;
}

std::int64_t TreeExchange::gain(const ReparentedTree& reparented, std::uint32_t rank, std::uint32_t parent) {
  const ParentTree& tree = reparented.tree();
  const std::int64_t shift = std::int64_t{tree.depth[parent]} + 1 - std::int64_t{tree.depth[rank]};
  if (shift == 0) return 0;
  std::int64_t change = 0;
  reparented.for_each_below(rank, [&](std::uint32_t moved) {
    ++moved_;
    const std::int64_t depth = tree.depth[moved];
    change += std::max<std::int64_t>(0, depth + shift - max_depth_) - std::max<std::int64_t>(0, depth - max_depth_);
  });
  return change;
}

bool TreeExchange::accepts(std::int64_t worse) {
  constexpr std::uint64_t rarely = 24;
  if (worse > 2 || (worse > 0 && random_.below(rarely) != 0)) return false;
  ++moves_;
  excess_ += worse;
  return true;
}

void TreeExchange::try_swap(std::uint32_t t, std::uint32_t rank) {
  const auto other = static_cast<std::uint32_t>(random_.below(trees_.size()));
  const ParentTree& first_tree = trees_[t].tree();
  const ParentTree& second_tree = trees_[other].tree();
  if (other == t || second_tree.weight != first_tree.weight) return;
  const std::uint32_t here = first_tree.parent[rank];
  const std::uint32_t there = second_tree.parent[rank];
  if (trees_[t].is_below(there, rank) || trees_[other].is_below(here, rank)) return;
  if (!accepts(gain(trees_[t], rank, there) + gain(trees_[other], rank, here))) return;
  TreeEntry first{there, second_tree.path[rank]};
  trees_[other].attach(rank, {here, first_tree.path[rank]});
  trees_[t].attach(rank, std::move(first));
}

void TreeExchange::use(const ParentTree& tree, const std::vector<std::uint32_t>& path, int sign) {
  for (const std::uint32_t a : path) room_[a] -= sign * tree.weight;
}

/// A walk against arcs with room, at random, to another rank.
std::optional<TreeEntry> TreeExchange::choose(const ReparentedTree& tree, std::uint32_t rank) {
  const std::int64_t weight = tree.tree().weight;
  TreeEntry entry;
  std::uint32_t vertex = network_.vertex_of(Rank(rank));
  ++stamp_;
  seen_[vertex] = stamp_;
  do {
    std::optional<std::uint32_t> chosen;
    std::uint64_t choices = 0;
    for (const std::uint32_t a : network_.arcs_to(vertex)) {
      if (room_[a] < weight || seen_[network_.arcs()[a].tail] == stamp_) continue;
      if (random_.below(++choices) == 0) chosen = a;
    }
    if (!chosen) return std::nullopt;
    entry.path.push_back(*chosen);
    vertex = network_.arcs()[*chosen].tail;
    seen_[vertex] = stamp_;
  } while (network_.rank_at(vertex).is_none());
  std::reverse(entry.path.begin(), entry.path.end());
  entry.parent = network_.rank_at(vertex).value();
  if (tree.is_below(entry.parent, rank) || !accepts(gain(tree, rank, entry.parent))) return std::nullopt;
  return entry;
}

}  // namespace espalier::planners
