#pragma once

#include <vector>

#include "base/random.h"
#include "tests/support/planner_cases.h"

namespace espalier::test {

struct RandomGraphOptions {
  std::size_t max_ranks = 6;
  std::size_t max_switches = 3;
  std::int64_t max_capacity = 20;
  bool balanced_switches = true;  ///< As much bandwidth into every switch as out of it.
};

/// A seeded random network on which every rank reaches every other: a cycle through all nodes in random order, then
/// random one-way links and two-way cables, parallel ones included.
inline PlainGraph random_graph(Random& random, const RandomGraphOptions& options) {
  PlainGraph graph;
  graph.ranks = static_cast<std::size_t>(random.between(2, static_cast<std::int64_t>(options.max_ranks)));
  graph.switches = random.below(options.max_switches + 1);
  const std::size_t nodes = graph.ranks + graph.switches;
  std::vector<std::size_t> order(nodes);
  for (std::size_t i = 0; i < nodes; ++i) order[i] = i;
  for (std::size_t i = nodes; i-- > 1;) std::swap(order[i], order[random.below(i + 1)]);
  // Closed walks keep every node balanced; links between ranks need not be.
  const auto add_walk = [&](const std::vector<std::size_t>& walk) {
    const std::int64_t capacity = random.between(1, options.max_capacity);
    for (std::size_t i = 0; i < walk.size(); ++i) {
      const std::int64_t own = options.balanced_switches ? capacity : random.between(1, options.max_capacity);
      graph.edges.push_back({walk[i], walk[(i + 1) % walk.size()], own});
    }
  };
  add_walk(order);
  for (std::uint64_t extra = random.below(2 * nodes); extra > 0; --extra) {
    const std::size_t a = random.below(nodes);
    const std::size_t b = random.below(nodes);
    if (a == b) continue;
    const std::size_t c = random.below(nodes);
    if (c != a && c != b && random.below(2) == 0) {
      add_walk({a, b, c});
    } else if (a < graph.ranks && b < graph.ranks && random.below(2) == 0) {
      graph.edges.push_back({a, b, random.between(1, options.max_capacity)});
    } else {
      add_walk({a, b});
    }
  }
  return graph;
}

}  // namespace espalier::test
