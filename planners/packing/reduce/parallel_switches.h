#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "topology/topology.h"

namespace espalier::planners {

/// Parallel switches: switches that join the same nodes at the same rates and latencies, as those of one machine often
/// do, or planes of several switches that join the same ranks alike. What goes over one may go over any other: these
/// are its lanes.
///
/// A plane is a set of switches that are joined without ranks. Planes are matched switch by switch by the ranks that
/// they serve; one in which two switches serve the same ranks is alike to none, and so is one with a backplane or with
/// two links between the same nodes. No neighbours of parallel switches are parallel to others.
class ParallelSwitches {
 public:
  explicit ParallelSwitches(const Topology& topology);

  /// Whether no link has a second lane.
  [[nodiscard]] bool empty() const { return group_count_ == 0; }
  [[nodiscard]] std::uint32_t group_count() const { return group_count_; }
  /// The group of parallel switches that a node is in; `no_group` for most.
  [[nodiscard]] std::uint32_t group_of(NodeId node) const { return group_of_[node.index()]; }
  /// How many lanes what goes over this link may take; 1 for a link that no other stands for.
  [[nodiscard]] std::size_t lanes(LinkId link) const { return has_lanes(link) ? parallel(link).size() : 1; }
  /// The link that stands for this one in a lane: the same for all lanes of one neighbour and direction.
  [[nodiscard]] LinkId in_lane(LinkId link, std::size_t lane) const {
    return has_lanes(link) ? parallel(link)[lane] : link;
  }

  static constexpr std::uint32_t no_group = UINT32_MAX;

 private:
  using Plane = std::vector<NodeId>;
  /// Makes groups of those planes that are alike.
  void join(const Topology& topology, const std::vector<Plane>& planes);
  [[nodiscard]] bool has_lanes(LinkId link) const { return lanes_of_[link.index()] != no_group; }
  [[nodiscard]] const std::vector<LinkId>& parallel(LinkId link) const { return lanes_[lanes_of_[link.index()]]; }

  std::uint32_t group_count_ = 0;
  std::vector<std::uint32_t> group_of_;     ///< By node.
  std::vector<bool> is_taken_;              ///< By node: in a group, or beside a switch that is.
  std::vector<std::uint32_t> lanes_of_;     ///< By link: place in `lanes_`, or `no_group`.
  std::vector<std::vector<LinkId>> lanes_;  ///< Links that stand for each other, by lane.
};

}  // namespace espalier::planners
