#include "planners/packing/reduce/edge_coloring.h"

#include <algorithm>

#include "base/check.h"

namespace espalier::planners {

namespace {

constexpr std::uint32_t uncolored = UINT32_MAX;

/// Which edge has which colour at every vertex.
class EdgeColors {
 public:
  EdgeColors(std::span<const std::pair<std::uint32_t, std::uint32_t>> edges, std::uint32_t colors)
      : colors_(colors), color_(edges.size(), uncolored) {
    std::uint32_t left = 0;
    for (const auto& [tail, head] : edges) left = std::max(left, tail + 1);
    std::uint32_t vertices = left;
    for (const auto& [tail, head] : edges) {
      ends_.emplace_back(tail, left + head);
      vertices = std::max(vertices, left + head + 1);
    }
    edge_at_.assign(std::size_t{vertices} * colors, uncolored);
  }

  void paint(std::uint32_t edge) {
    const auto [tail, head] = ends_[edge];
    const std::uint32_t free_at_tail = free_color(tail);
    const std::uint32_t free_at_head = free_color(head);
    // The path of these two colours from the head cannot come to the tail: it would arrive with the tail's free colour.
    if (free_at_tail != free_at_head) swap_along(head, free_at_tail, free_at_head);
    set(edge, free_at_tail);
  }

  [[nodiscard]] std::vector<std::uint32_t> take() { return std::move(color_); }

 private:
  [[nodiscard]] std::uint32_t& at(std::uint32_t vertex, std::uint32_t color) {
    return edge_at_[std::size_t{vertex} * colors_ + color];
  }

  std::uint32_t free_color(std::uint32_t vertex) {
    std::uint32_t color = 0;
    while (color < colors_ && at(vertex, color) != uncolored) ++color;
    ESPALIER_CHECK(color < colors_, "a vertex has more edges than there are colours");
    return color;
  }

  void set(std::uint32_t edge, std::uint32_t color) {
    color_[edge] = color;
    at(ends_[edge].first, color) = edge;
    at(ends_[edge].second, color) = edge;
  }

  /// Swaps two colours along the path that leaves a vertex with the first one.
  void swap_along(std::uint32_t vertex, std::uint32_t first, std::uint32_t second) {
    std::vector<std::uint32_t> path;
    for (std::uint32_t color = first; at(vertex, color) != uncolored; color = color == first ? second : first) {
      path.push_back(at(vertex, color));
      const auto [tail, head] = ends_[path.back()];
      vertex = vertex == tail ? head : tail;
    }
    for (const std::uint32_t edge : path) {
      at(ends_[edge].first, color_[edge]) = uncolored;
      at(ends_[edge].second, color_[edge]) = uncolored;
    }
    for (const std::uint32_t edge : path) set(edge, color_[edge] == first ? second : first);
  }

  std::uint32_t colors_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> ends_;
  std::vector<std::uint32_t> color_;
  std::vector<std::uint32_t> edge_at_;  ///< By vertex and colour.
};

}  // namespace

std::vector<std::uint32_t> color_edges(std::span<const std::pair<std::uint32_t, std::uint32_t>> edges,
                                       std::uint32_t colors) {
  EdgeColors painted(edges, colors);
  for (std::uint32_t edge = 0; edge < edges.size(); ++edge) painted.paint(edge);
  return painted.take();
}

}  // namespace espalier::planners
