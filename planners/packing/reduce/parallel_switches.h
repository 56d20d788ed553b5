#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "topology/topology.h"

namespace espalier {

/// Switches that join the same nodes at the same rates, as those of one machine often do, each by one link to and from
/// every neighbour or by several that are equal. What goes over one may go over any other, or over the other links of
/// the same one: these are its lanes. Planes of several switches are parallel too where they join the same ranks alike
/// (parallel_planes.h).
///
/// No neighbours of parallel are parallel of others. Nodes with backplanes are alike to none.
class ParallelSwitches {
 public:
  explicit ParallelSwitches(const Topology& topology);

  /// Whether no link has a second lane.
  [[nodiscard]] bool empty() const { return group_count_ == 0; }
  [[nodiscard]] std::uint32_t group_count() const { return group_count_; }
  /// The parallel that a node is one of; `no_group` for most.
  [[nodiscard]] std::uint32_t group_of(NodeId node) const { return group_of_[node.index()]; }
  /// How many lanes what goes over this link may take; 1 for a link that no sibling has.
  [[nodiscard]] std::size_t lanes(LinkId link) const {
    return lanes_of_[link.index()] == nullptr ? 1 : parallel(link).size();
  }
  /// The link that stands for this one in a lane: the same for all lanes of one neighbour and direction.
  [[nodiscard]] LinkId in_lane(LinkId link, std::size_t lane) const {
    return lanes_of_[link.index()] == nullptr ? link : parallel(link)[lane];
  }

  static constexpr std::uint32_t no_group = UINT32_MAX;

 private:
  /// Makes parallel of single switches, and of planes of several.
  void join_switches(const Topology& topology);
  void join_planes(const Topology& topology);
  [[nodiscard]] const std::vector<LinkId>& parallel(LinkId link) const { return *lanes_of_[link.index()]; }

  std::uint32_t group_count_ = 0;
  std::vector<std::uint32_t> group_of_;                               ///< By node.
  std::vector<std::shared_ptr<const std::vector<LinkId>>> lanes_of_;  ///< By link.
};

}  // namespace espalier
