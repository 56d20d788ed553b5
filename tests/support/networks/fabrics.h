#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "topology/topology.h"

/// Small networks for tests, made by hand. All ranks are called g0, g1, ...; all switches s0, s1, ...
namespace espalier::test {

/// Bytes per second in a GB/s.
inline constexpr std::int64_t giga = 1'000'000'000;

inline constexpr Bandwidth fabric_rate{25'000'000'000};  ///< 25 GB/s.
inline constexpr Picoseconds fabric_latency{1'000'000};  ///< 1 us.

/// Collects nodes and links; `build` checks them as Topology::make does and expects them to be right.
class FabricMaker {
 public:
  NodeId add_rank(std::string id = {}) {
    Node node;
    node.id = id.empty() ? "g" + std::to_string(rank_count_) : std::move(id);
    ++rank_count_;
    return add_node(std::move(node));
  }

  NodeId add_switch(std::string id = {}) {
    Node node;
    node.id = id.empty() ? "s" + std::to_string(nodes_.size() - rank_count_) : std::move(id);
    node.kind = NodeKind::switch_node;
    node.is_rank = false;
    return add_node(std::move(node));
  }

  NodeId add_node(Node node) {
    nodes_.push_back(std::move(node));
    return NodeId(nodes_.size() - 1);
  }

  LinkId add_link(NodeId tail, NodeId head, Bandwidth rate = fabric_rate, Picoseconds latency = fabric_latency) {
    Link link;
    link.tail = tail;
    link.head = head;
    link.nominal = rate;
    link.latency = latency;
    links_.push_back(std::move(link));
    return LinkId(links_.size() - 1);
  }

  /// Two links, one in each direction.
  void add_cable(NodeId a, NodeId b, Bandwidth rate = fabric_rate, Picoseconds latency = fabric_latency) {
    add_link(a, b, rate, latency);
    add_link(b, a, rate, latency);
  }

  Topology build(std::string name) {
    Result<Topology> made = Topology::make(std::move(name), std::move(nodes_), std::move(links_));
    ESPALIER_CHECK(made.has_value(), "a test's fabric is a topology");
    return std::move(*made);
  }

 private:
  std::vector<Node> nodes_;
  std::vector<Link> links_;
  std::size_t rank_count_ = 0;
};

namespace detail {

inline std::vector<NodeId> add_ranks(FabricMaker& maker, std::size_t count) {
  std::vector<NodeId> ranks;
  for (std::size_t i = 0; i < count; ++i) ranks.push_back(maker.add_rank());
  return ranks;
}

}  // namespace detail

/// A cycle of ranks with a cable between neighbours. Two ranks get one cable; one rank gets none.
inline Topology ring_of(std::size_t ranks, Bandwidth rate = fabric_rate, Picoseconds latency = fabric_latency) {
  FabricMaker maker;
  const std::vector<NodeId> nodes = detail::add_ranks(maker, ranks);
  const std::size_t cables = ranks == 2 ? 1 : ranks;
  for (std::size_t i = 0; ranks > 1 && i < cables; ++i)
    maker.add_cable(nodes[i], nodes[(i + 1) % ranks], rate, latency);
  return maker.build("ring-" + std::to_string(ranks));
}

/// A path of ranks with a cable between neighbours.
inline Topology line_of(std::size_t ranks, Bandwidth rate = fabric_rate, Picoseconds latency = fabric_latency) {
  FabricMaker maker;
  const std::vector<NodeId> nodes = detail::add_ranks(maker, ranks);
  for (std::size_t i = 0; i + 1 < ranks; ++i) maker.add_cable(nodes[i], nodes[i + 1], rate, latency);
  return maker.build("line-" + std::to_string(ranks));
}

/// Ranks around one switch.
inline Topology star_of(std::size_t ranks, Bandwidth rate = fabric_rate, Picoseconds latency = fabric_latency) {
  FabricMaker maker;
  const std::vector<NodeId> nodes = detail::add_ranks(maker, ranks);
  const NodeId hub = maker.add_switch();
  for (const NodeId node : nodes) maker.add_cable(node, hub, rate, latency);
  return maker.build("star-" + std::to_string(ranks));
}

/// A cable between every two ranks.
inline Topology mesh_of(std::size_t ranks, Bandwidth rate = fabric_rate, Picoseconds latency = fabric_latency) {
  FabricMaker maker;
  const std::vector<NodeId> nodes = detail::add_ranks(maker, ranks);
  for (std::size_t a = 0; a < ranks; ++a) {
    for (std::size_t b = a + 1; b < ranks; ++b) maker.add_cable(nodes[a], nodes[b], rate, latency);
  }
  return maker.build("mesh-" + std::to_string(ranks));
}

/// Ranks and switches on a random spanning tree of cables, plus `extra` random cables with rates of 1 to 8 GB/s; some
/// of them run in parallel to others. Every node reaches every other.
inline Topology random_fabric(std::size_t ranks, std::size_t switches, std::size_t extra, Random& random) {
  FabricMaker maker;
  std::vector<NodeId> nodes = detail::add_ranks(maker, ranks);
  for (std::size_t i = 0; i < switches; ++i) nodes.push_back(maker.add_switch());
  for (std::size_t i = nodes.size(); i > 1; --i) std::swap(nodes[i - 1], nodes[random.below(i)]);
  const auto random_rate = [&] { return Bandwidth{random.between(1, 8) * 1'000'000'000}; };
  for (std::size_t i = 1; i < nodes.size(); ++i) maker.add_cable(nodes[random.below(i)], nodes[i], random_rate());
  for (std::size_t i = 0; nodes.size() > 1 && i < extra; ++i) {
    const std::size_t a = random.below(nodes.size());
    const std::size_t b = (a + 1 + random.below(nodes.size() - 1)) % nodes.size();
    maker.add_cable(nodes[a], nodes[b], random_rate());
  }
  return maker.build("random");
}

}  // namespace espalier::test
