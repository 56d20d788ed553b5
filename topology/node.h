#pragma once

// Tested by: tests/unit/topology/boost_graph_test.cpp

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/units.h"

namespace espalier {

enum class NodeKind : std::uint8_t { gpu, cpu, nic, switch_node, pcie };

/// "gpu", "cpu", "nic", "switch", "pcie".
std::string_view to_string(NodeKind kind);

/// A vertex of the network. Only ranks hold data; all other nodes forward.
struct Node {
  std::string id;  ///< Unique in its topology; see node_id.h for what may be in it.
  NodeKind kind = NodeKind::gpu;
  bool is_rank = true;         ///< Holds data and takes part in collectives; only gpu and cpu nodes may.
  bool relay = true;           ///< A rank that may send on what other ranks brought; means nothing on other nodes.
  Bandwidth bandwidth;         ///< Backplane that all traffic through the node shares; zero: not limited.
  Bandwidth reduce_bandwidth;  ///< Bytes per second that this rank or switch reduces; zero: not limited.
  bool multicast = false;      ///< A switch that copies in the network.
  bool reduction = false;      ///< A switch that reduces in the network.
  std::string host;            ///< The machine it sits in; empty when not given.
  std::optional<std::int32_t> rail;  ///< Which rail of the fabric it belongs to.
  std::string model;                 ///< Of a processor: maker, family and model, such as "amd-25-17"; may be empty.

  /// A rank that sends nothing but what it brought itself.
  [[nodiscard]] bool must_not_relay() const { return is_rank && !relay; }
  friend auto operator<=>(const Node&, const Node&) = default;
};

}  // namespace espalier
