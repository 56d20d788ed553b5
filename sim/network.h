#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "topology/topology.h"

namespace espalier::sim {

/// What serves chunks: a link, a node's backplane, or the reduction at a rank or switch.
struct Resource {
  std::int64_t bytes_per_second = 1;
  std::int64_t latency = 0;  ///< In picoseconds.
};

/// The resources of a topology, flat: links by id, then backplanes and reductions. Immutable.
class Network {
 public:
  static constexpr std::uint32_t absent = std::numeric_limits<std::uint32_t>::max();

  explicit Network(const Topology& topology);

  [[nodiscard]] const std::vector<Resource>& resources() const { return resources_; }
  [[nodiscard]] std::uint32_t link_count() const { return link_count_; }
  [[nodiscard]] std::size_t node_count() const { return backplanes_.size(); }

  /// The resource of a node, or `absent` where the node has no limit.
  [[nodiscard]] std::uint32_t backplane(NodeId node) const { return backplanes_[node.index()]; }
  [[nodiscard]] std::uint32_t reduction(NodeId node) const { return reductions_[node.index()]; }

  /// The link that a resource is; none for a backplane or a reduction.
  [[nodiscard]] LinkId link(std::uint32_t resource) const {
    return resource < link_count_ ? LinkId(resource) : LinkId();
  }
  /// The node whose backplane or reduction a resource is; none for a link.
  [[nodiscard]] NodeId node(std::uint32_t resource) const {
    return resource < link_count_ ? NodeId() : nodes_[resource - link_count_];
  }

 private:
  std::uint32_t add_resource(NodeId node, Bandwidth rate);

  std::uint32_t link_count_ = 0;
  std::vector<Resource> resources_;
  std::vector<NodeId> nodes_;              // of the resources that are not links
  std::vector<std::uint32_t> backplanes_;  // by node: its resource, or `absent`
  std::vector<std::uint32_t> reductions_;  // by node: its resource, or `absent`
};

}  // namespace espalier::sim
