#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/rational.h"
#include "topology/topology.h"

namespace espalier::test {

/// A network as plain numbers: ranks 0 .. ranks-1 ("r0", ...), then switches ("s0", ...).
struct PlainGraph {
  struct Edge {
    std::size_t tail = 0;
    std::size_t head = 0;
    std::int64_t capacity = 0;
  };
  std::size_t ranks = 0;
  std::size_t switches = 0;
  std::vector<Edge> edges;
};

/// Bytes per second in a unit of capacity.
inline constexpr std::int64_t unit = 1'000'000'000;

/// The topology of a plain graph whose capacity unit is `unit_rate` bytes per second; all latencies are 1 us.
inline Topology make_topology(const PlainGraph& graph, std::int64_t unit_rate = unit,
                              const std::string& name = "test") {
  std::vector<Node> nodes(graph.ranks + graph.switches);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const bool is_rank = i < graph.ranks;
    nodes[i].id = is_rank ? "r" + std::to_string(i) : "s" + std::to_string(i - graph.ranks);
    nodes[i].kind = is_rank ? NodeKind::gpu : NodeKind::switch_node;
    nodes[i].is_rank = is_rank;
  }
  std::vector<Link> links(graph.edges.size());
  for (std::size_t i = 0; i < links.size(); ++i) {
    links[i].tail = NodeId(graph.edges[i].tail);
    links[i].head = NodeId(graph.edges[i].head);
    links[i].nominal = {graph.edges[i].capacity * unit_rate};
    links[i].latency = {1'000'000};
  }
  auto topology = Topology::make(name, std::move(nodes), std::move(links));
  EXPECT_TRUE(topology) << topology.error().message;
  return *std::move(topology);
}

/// One network of tests/data/planner_cases.json with its optima (tests/data/README.md).
struct PlannerCase {
  std::string name;
  PlainGraph graph;
  std::map<std::string, Rational> optimum;  ///< all_gather, reduce_scatter, all_reduce, all_to_all, ...
  std::map<std::string, std::vector<std::int64_t>> rate_of_root;  ///< broadcast, reduce.
  std::map<std::uint32_t, Rational> equal_trees;                  ///< By number of trees, where it is known.

  [[nodiscard]] std::optional<Rational> find(const std::string& key) const {
    const auto found = optimum.find(key);
    return found == optimum.end() ? std::nullopt : std::optional(found->second);
  }
};

inline std::vector<PlannerCase> read_planner_cases(std::size_t max_ranks = 1'000'000) {
  std::ifstream file(std::string(ESPALIER_SOURCE_DIR) + "/tests/data/planner_cases.json");
  const auto document = nlohmann::json::parse(file);
  std::vector<PlannerCase> cases;
  for (const auto& entry : document.at("cases")) {
    PlannerCase read;
    read.name = entry.at("name");
    read.graph.ranks = entry.at("ranks");
    read.graph.switches = entry.at("switches");
    if (read.graph.ranks > max_ranks) continue;
    for (const auto& edge : entry.at("edges")) read.graph.edges.push_back({edge[0], edge[1], edge[2]});
    for (const auto& [key, value] : entry.at("optimum").items()) {
      if (key == "broadcast" || key == "reduce") {
        read.rate_of_root[key] = value.get<std::vector<std::int64_t>>();
      } else {
        read.optimum[key] = make_rational(value[0], value[1]);
      }
    }
    if (entry.contains("equal_trees")) {
      for (const auto& [count, value] : entry.at("equal_trees").items()) {
        read.equal_trees[static_cast<std::uint32_t>(std::stoul(count))] = make_rational(value[0], value[1]);
      }
    }
    cases.push_back(std::move(read));
  }
  return cases;
}

}  // namespace espalier::test
