#include "schedule/trees/tree_shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace espalier {

TreeShape::TreeShape(std::size_t rank_count)
    : parent_(rank_count), depth_(rank_count), height_(rank_count), place_(rank_count), first_(rank_count) {}

Result<void> TreeShape::read(const Arborescence& tree, const std::string& name) {
  const std::size_t rank_count = parent_.size();
  if (tree.root.index() >= rank_count) {
    return fail(ErrorCode::invalid_input, fmt::format("the root of {} is not one of the {} ranks", name, rank_count));
  }
  root_ = tree.root;
  std::ranges::fill(parent_, Rank());
  std::ranges::fill(height_, 0U);
  depth_[root_.index()] = 0;
  bool branches = false;
  for (std::size_t i = 0; i < tree.edges.size(); ++i) {
    const auto [parent, child] = std::pair(tree.edges[i].parent, tree.edges[i].child);
    if (parent.index() >= rank_count || child.index() >= rank_count) {
      return fail(ErrorCode::invalid_input,
                  fmt::format("edge {} of {} ends outside the {} ranks", i, name, rank_count));
    }
    if (reaches(child)) {
      return fail(ErrorCode::invalid_input, fmt::format("{} enters rank {} twice", name, child.value()));
    }
    if (!reaches(parent)) {
      return fail(
          ErrorCode::invalid_input,
          fmt::format("edge {} of {} starts at rank {}, which no edge before it enters", i, name, parent.value()),
          "list every edge after the one that enters its parent");
    }
    parent_[child.index()] = parent;
    depth_[child.index()] = depth_[parent.index()] + 1;
    place_[child.index()] = 0;
    branches = branches || height_[parent.index()] != 0;
    height_[parent.index()] = 1;
  }
  for (auto edge = tree.edges.rbegin(); edge != tree.edges.rend(); ++edge) {
    std::uint32_t& height = height_[edge->parent.index()];
    height = std::max(height, height_[edge->child.index()] + 1);
  }
  if (branches) find_places(tree);
  return {};
}

void TreeShape::find_places(const Arborescence& tree) {
  const auto rank_count = static_cast<std::uint32_t>(parent_.size());
  siblings_.clear();
  for (const TreeEdge& edge : tree.edges) siblings_.push_back(edge.child);
  const auto key = [&](Rank child) {
    const Rank parent = parent_[child.index()];
    const std::uint32_t distance = (child.value() + rank_count - parent.value()) % rank_count;
    return std::tuple(parent, ~height_[child.index()], distance);
  };
  std::ranges::sort(siblings_, [&](Rank a, Rank b) { return key(a) < key(b); });
  for (std::size_t i = siblings_.size(); i-- > 0;) first_[parent(siblings_[i]).index()] = static_cast<std::uint32_t>(i);
  order_.assign(1, root_);
  std::uint32_t level = 0;
  std::uint32_t place = 0;
  for (std::size_t done = 0; done < order_.size(); ++done) {
    const Rank rank = order_[done];
    if (depth(rank) != level) place = 0;
    level = depth(rank);
    place_[rank.index()] = place++;
    if (height(rank) == 0) continue;
    for (std::size_t i = first_[rank.index()]; i < siblings_.size() && parent(siblings_[i]) == rank; ++i) {
      order_.push_back(siblings_[i]);
    }
  }
}

std::uint32_t height_of(const Arborescence& tree, std::size_t rank_count) {
  std::vector<std::uint32_t> depth(rank_count, 0);
  std::uint32_t height = 0;
  for (const TreeEdge& edge : tree.edges) {
    depth[edge.child.index()] = depth[edge.parent.index()] + 1;
    height = std::max(height, depth[edge.child.index()]);
  }
  return height;
}

}  // namespace espalier
