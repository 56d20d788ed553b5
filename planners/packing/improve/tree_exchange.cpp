#include "planners/packing/improve/tree_exchange.h"

#include <algorithm>
#include <utility>

namespace espalier {

namespace {

constexpr std::uint64_t most_tries_of_a_place = 20;

}  // namespace

TreeExchange::TreeExchange(const GrowingTrees& grown)
    : grown_(grown), trees_(grown.trees()), in_(grown.vertex_count()), seen_(grown.vertex_count(), 0) {
  for (std::uint32_t a = 0; a < grown.arcs().size(); ++a) {
    room_.push_back(grown.arcs()[a].room);
    in_[grown.arcs()[a].head].push_back(a);
  }
  for (const GrowingTrees::Tree& tree : trees_) {
    auto& children = children_.emplace_back(grown.rank_count());
    for (const std::uint32_t rank : tree.members) {
      if (tree.depth[rank] > 0) children[tree.parent[rank]].push_back(rank);
    }
  }
}

bool TreeExchange::reach(std::uint32_t most_height, WorkBudget& budget) {
  most_height_ = most_height;
  excess_ = 0;
  for (const GrowingTrees::Tree& tree : trees_) excess_ += excess_of(tree);
  const auto places = static_cast<std::uint64_t>(trees_.size() * grown_.rank_count());
  moves_ = 0;
  for (std::uint64_t tries = 0; excess_ > 0 && !budget.is_spent(); ++tries) {
    if (moves_ == 0 && tries > most_tries_of_a_place * places) return false;  // nothing can move
    const std::uint64_t place = random_.below(places);
    const auto t = static_cast<std::uint32_t>(place / grown_.rank_count());
    const auto rank = static_cast<std::uint32_t>(place % grown_.rank_count());
    moved_ = 0;
    budget.spend(1);
    if (trees_[t].depth[rank] == 0) continue;
    if (random_.below(2) == 0) {
      try_swap(t, rank);
    } else {
      try_attach(t, rank);
    }
    budget.spend(moved_);
  }
  return excess_ == 0;
}

std::int64_t TreeExchange::excess_of(const GrowingTrees::Tree& tree) const {
  std::int64_t excess = 0;
  for (const std::uint32_t depth : tree.depth) excess += std::max<std::int64_t>(0, std::int64_t{depth} - most_height_);
  return excess;
}

bool TreeExchange::is_below(const GrowingTrees::Tree& tree, std::uint32_t rank, std::uint32_t top) const {
  while (tree.depth[rank] > tree.depth[top]) rank = tree.parent[rank];
  return rank == top;
}

std::int64_t TreeExchange::gain(std::uint32_t t, std::uint32_t rank, std::uint32_t parent) {
  const GrowingTrees::Tree& tree = trees_[t];
  const std::int64_t shift = std::int64_t{tree.depth[parent]} + 1 - std::int64_t{tree.depth[rank]};
  if (shift == 0) return 0;
  std::int64_t change = 0;
  std::vector<std::uint32_t> open = {rank};
  while (!open.empty()) {
    const std::uint32_t moved = open.back();
    open.pop_back();
    ++moved_;
    const std::int64_t depth = tree.depth[moved];
    change += std::max<std::int64_t>(0, depth + shift - most_height_) - std::max<std::int64_t>(0, depth - most_height_);
    open.insert(open.end(), children_[t][moved].begin(), children_[t][moved].end());
  }
  return change;
}

bool TreeExchange::accepts(std::int64_t worse) {
  constexpr std::uint64_t rarely = 24;
  if (worse <= 0) return true;
  return worse <= 2 && random_.below(rarely) == 0;
}

void TreeExchange::attach(std::uint32_t t, std::uint32_t rank, Entry entry) {
  ++moves_;
  GrowingTrees::Tree& tree = trees_[t];
  std::erase(children_[t][tree.parent[rank]], rank);
  children_[t][entry.parent].push_back(rank);
  tree.parent[rank] = entry.parent;
  tree.path[rank] = std::move(entry.path);
  std::vector<std::uint32_t> open = {rank};
  while (!open.empty()) {
    const std::uint32_t moved = open.back();
    open.pop_back();
    tree.depth[moved] = tree.depth[tree.parent[moved]] + 1;
    open.insert(open.end(), children_[t][moved].begin(), children_[t][moved].end());
  }
}

void TreeExchange::try_swap(std::uint32_t t, std::uint32_t rank) {
  const auto other = static_cast<std::uint32_t>(random_.below(trees_.size()));
  if (other == t || trees_[other].weight != trees_[t].weight) return;
  const std::uint32_t here = trees_[t].parent[rank];
  const std::uint32_t there = trees_[other].parent[rank];
  if (is_below(trees_[t], there, rank) || is_below(trees_[other], here, rank)) return;
  const std::int64_t worse = gain(t, rank, there) + gain(other, rank, here);
  if (!accepts(worse)) return;
  Entry first{there, trees_[other].path[rank]};
  Entry second{here, trees_[t].path[rank]};
  attach(t, rank, std::move(first));
  attach(other, rank, std::move(second));
  excess_ += worse;
}

void TreeExchange::try_attach(std::uint32_t t, std::uint32_t rank) {
  const std::int64_t weight = trees_[t].weight;
  for (const std::uint32_t a : trees_[t].path[rank]) room_[a] += weight;
  // A walk against arcs with room, at random, to another rank.
  Entry entry;
  std::uint32_t vertex = grown_.vertex_of(rank);
  ++stamp_;
  seen_[vertex] = stamp_;
  while (true) {
    std::uint32_t chosen = GrowingTrees::outside;
    std::uint64_t choices = 0;
    for (const std::uint32_t a : in_[vertex]) {
      if (room_[a] < weight || seen_[grown_.arcs()[a].tail] == stamp_) continue;
      if (random_.below(++choices) == 0) chosen = a;
    }
    if (chosen == GrowingTrees::outside) break;
    entry.path.push_back(chosen);
    vertex = grown_.arcs()[chosen].tail;
    seen_[vertex] = stamp_;
    if (grown_.rank_at(vertex) != GrowingTrees::outside) break;
  }
  std::reverse(entry.path.begin(), entry.path.end());
  entry.parent = grown_.rank_at(vertex);
  const bool arrived = entry.parent != GrowingTrees::outside && !entry.path.empty();
  if (arrived && !is_below(trees_[t], entry.parent, rank)) {
    const std::int64_t worse = gain(t, rank, entry.parent);
    if (accepts(worse)) {
      attach(t, rank, std::move(entry));
      excess_ += worse;
    }
  }
  for (const std::uint32_t a : trees_[t].path[rank]) room_[a] -= weight;
}

}  // namespace espalier
