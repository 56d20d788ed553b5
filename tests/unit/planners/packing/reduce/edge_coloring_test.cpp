#include "planners/packing/reduce/edge_coloring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/edge_coloring.hpp>
#include <map>
#include <set>

#include "base/random.h"

namespace espalier::planners {
namespace {

using Edges = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

std::uint32_t highest_degree(const Edges& edges) {
  std::map<std::uint32_t, std::uint32_t> left, right;
  std::uint32_t highest = 0;
  for (const auto& [tail, head] : edges) highest = std::max({highest, ++left[tail], ++right[head]});
  return highest;
}

Edges random_edges(Random& random) {
  const auto left = static_cast<std::uint32_t>(random.between(1, 12));
  const auto right = static_cast<std::uint32_t>(random.between(1, 12));
  Edges edges;
  for (std::int64_t i = random.between(0, 80); i > 0; --i) edges.emplace_back(random.below(left), random.below(right));
  return edges;
}

TEST(EdgeColoring, AsManyColorsAsTheHighestDegree) {
  Random random(5);
  for (int round = 0; round < 200; ++round) {
    const Edges edges = random_edges(random);
    const std::uint32_t colors = highest_degree(edges);
    const std::vector<std::uint32_t> color = color_edges(edges, colors);
    std::set<std::pair<std::uint32_t, std::uint32_t>> at_left, at_right;
    for (std::size_t i = 0; i < edges.size(); ++i) {
      EXPECT_LT(color[i], colors);
      EXPECT_TRUE(at_left.emplace(edges[i].first, color[i]).second);
      EXPECT_TRUE(at_right.emplace(edges[i].second, color[i]).second);
    }
  }
}

/// Boost's algorithm (Misra and Gries) takes as many colours as the highest degree or one more: never fewer than ours.
TEST(EdgeColoring, NoMoreColorsThanBoost) {
  using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS, boost::no_property,
                                      boost::property<boost::edge_color_t, std::size_t>>;
  Random random(6);
  for (int round = 0; round < 200; ++round) {
    Edges edges = random_edges(random);
    std::ranges::sort(edges);  // Boost's knows no parallel edges.
    edges.erase(std::ranges::unique(edges).begin(), edges.end());
    if (edges.empty()) continue;
    Graph graph(24);
    for (const auto& [tail, head] : edges) add_edge(tail, 12 + head, graph);
    const std::size_t theirs = boost::edge_coloring(graph, get(boost::edge_color, graph));
    const std::vector<std::uint32_t> color = color_edges(edges, highest_degree(edges));
    const std::size_t ours = std::set<std::uint32_t>(color.begin(), color.end()).size();
    EXPECT_EQ(ours, highest_degree(edges));
    EXPECT_LE(ours, theirs);
    EXPECT_LE(theirs, ours + 1);
  }
}

}  // namespace
}  // namespace espalier::planners
