#include "bench/lemon_arborescence.h"

#include <lemon/min_cost_arborescence.h>
#include <lemon/smart_graph.h>

namespace espalier::bench {

struct LemonArborescence::Graph {
  lemon::SmartDigraph digraph;
  lemon::SmartDigraph::ArcMap<std::int64_t> price{digraph};
};

LemonArborescence::LemonArborescence(const std::vector<std::int64_t>& prices, std::uint32_t vertices)
    : graph_(std::make_unique<Graph>()) {
  lemon::SmartDigraph& digraph = graph_->digraph;
  for (std::uint32_t i = 0; i < vertices; ++i) digraph.addNode();
  const auto node = [&](std::uint32_t index) { return lemon::SmartDigraph::nodeFromId(static_cast<int>(index)); };
  for (std::uint32_t tail = 0; tail < vertices; ++tail) {
    for (std::uint32_t head = 0; head < vertices; ++head) {
      if (tail == head) continue;
      const auto arc = digraph.addArc(node(tail), node(head));
      graph_->price[arc] = prices[std::size_t{tail} * vertices + head];
    }
  }
}

LemonArborescence::~LemonArborescence() = default;

std::int64_t LemonArborescence::find() {
  lemon::MinCostArborescence<lemon::SmartDigraph, lemon::SmartDigraph::ArcMap<std::int64_t>> search(graph_->digraph,
                                                                                                    graph_->price);
  search.run(lemon::SmartDigraph::nodeFromId(0));
  return search.arborescenceCost();
}

}  // namespace espalier::bench
