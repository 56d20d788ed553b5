#pragma once

// Tested by: tests/unit/probe/probe_plan_test.cpp

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "topology/topology.h"

namespace espalier::probe {

/// All links from one node to another, which traffic between the two shares; or a node's backplane (tail = head).
struct Hop {
  NodeId tail;
  NodeId head;
  double rate = 0;            ///< Bytes per second, as described.
  std::vector<LinkId> links;  ///< None of a backplane.
};

/// The hops of a topology, numbered.
class Hops {
 public:
  explicit Hops(const Topology& topology);
  [[nodiscard]] std::size_t count() const { return hops_.size(); }
  [[nodiscard]] const Hop& operator[](std::size_t hop) const { return hops_[hop]; }
  [[nodiscard]] std::uint32_t of(LinkId link) const { return of_link_[link.index()]; }
  /// The backplane of a node, or none.
  static constexpr std::uint32_t none = UINT32_MAX;
  [[nodiscard]] std::uint32_t backplane_of(NodeId node) const { return of_node_[node.index()]; }

 private:
  std::vector<Hop> hops_;
  std::vector<std::uint32_t> of_link_, of_node_;
};

/// How much of what one rank sends another crosses a hop.
struct HopShare {
  std::uint32_t hop = 0;
  double part = 0;
};

/// One rank sending to another, over all ways that are like the best one (the same classes of links and kinds of nodes
/// in the same order): traffic spreads over parallel switches and NICs in proportion to their rates.
struct PairPath {
  Rank from, to;
  std::vector<HopShare> shares;
  double rate = 0;     ///< Bytes per second with nothing else on the network, as described.
  double latency = 0;  ///< Seconds, of the best way.
  std::string kind;    ///< Pairs of one kind should measure the same: "pcie5 > ndr > ndr > pcie5, 50 GB/s".
};

/// Pairs worth measuring: all of a small machine; of a large one those within a host, and from every rank those to
/// ranks whose number, or host, is a power of two further, and some others. Deterministic.
/// Cost: O(ranks) searches for routes, and O(links of its ways) for each pair.
std::vector<PairPath> find_pair_paths(const Topology& topology, const Hops& hops);

}  // namespace espalier::probe
