#pragma once

// Tested by: tests/unit/planners/damage/failures_test.cpp

#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "planners/symmetry/colored_graph.h"
#include "topology/cables.h"
#include "topology/topology.h"

namespace espalier::planners {

/// A network as a graph whose vertices have colors: one per node and cable, one per link of an uneven cable, and one
/// per host. Two networks whose graphs are the same but for the vertices' numbers differ in names and rails alone.
class NetworkGraph {
 public:
  /// `marks`: by rank, a number that tells ranks apart which are else alike; none: all are 0.
  NetworkGraph(const Topology& topology, std::span<const Cable> cables, std::span<const std::int64_t> marks);

  /// The network's nodes come first, then its cables, then the directions of uneven ones, then hosts.
  [[nodiscard]] ColoredGraph graph() const;

 private:
  using Color = std::tuple<int, std::string, std::int64_t, std::int64_t, std::int64_t>;

  static Color color_of(const Node& node, std::int64_t mark);
  static Color color_of(const Link& link, int what);
  std::uint32_t add_vertex(Color color);
  void add_cable(const Topology& topology, const Cable& cable);
  void add_directions(const Topology& topology);
  void add_hosts(const Topology& topology);
  void join(const Link& link, std::uint32_t vertex);

  std::vector<Color> colors_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> arcs_;
  std::vector<std::pair<std::uint32_t, Cable>> uneven_;
};

}  // namespace espalier::planners
