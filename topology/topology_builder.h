#pragma once

// Tested by: tests/unit/topology/draw/topology_svg_test.cpp

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "topology/generate/generate.h"
#include "topology/topology.h"

namespace espalier {

/// Collects the nodes and links of a topology that is made by a program.
class TopologyBuilder {
 public:
  NodeId rank(std::string id, std::string host = {}, std::optional<std::int32_t> rail = {}) {
    return node({.id = std::move(id), .host = std::move(host), .rail = rail});
  }
  NodeId forwarder(NodeKind kind, std::string id, std::string host = {}, std::optional<std::int32_t> rail = {}) {
    return node({.id = std::move(id), .kind = kind, .is_rank = false, .host = std::move(host), .rail = rail});
  }
  NodeId node(Node node) {
    nodes_.push_back(std::move(node));
    return NodeId(nodes_.size() - 1);
  }

  void link(NodeId tail, NodeId head, const Wire& wire) {
    links_.push_back({tail, head, {.nominal = wire.bandwidth, .latency = wire.latency, .link_class = wire.link_class}});
  }
  void cable(NodeId a, NodeId b, const Wire& wire) {
    link(a, b, wire);
    link(b, a, wire);
  }

  Result<Topology> build(std::string name) && {
    return Topology::make(std::move(name), std::move(nodes_), std::move(links_));
  }

 private:
  std::vector<Node> nodes_;
  std::vector<Link> links_;
};

/// Refuses a count outside [low, high], naming the option.
Result<void> check_count(const char* option, std::int64_t value, std::int64_t low, std::int64_t high);

/// Refuses a rate that is not positive or a latency that is negative, naming the class of the wire.
Result<void> check_wire(const Wire& wire);

/// Refuses more nodes or links than the generators make.
Result<void> check_generated_size(__int128 nodes, __int128 links);

}  // namespace espalier
