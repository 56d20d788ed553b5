#pragma once

// Tested by: tests/unit/planners/packing/reduce/deal_planes_test.cpp

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "schedule/trees/tree_schedule.h"
#include "topology/topology.h"

namespace espalier::planners {

/// The quotient of a network by its parallel switches: switches that join the same nodes at the same rates and
/// latencies, as those of one machine often do, or planes of several switches that join the same ranks alike. What goes
/// over one may go over any other: these are its planes.
///
/// A plane is a set of switches that are joined without ranks. Planes are matched switch by switch by the ranks that
/// they serve; one in which two switches serve the same ranks is alike to none, and so is one with a backplane or with
/// two links between the same nodes. No neighbours of parallel switches are parallel to others.
class ParallelSwitches {
 public:
  /// Requires: a topology that outlives this.
  explicit ParallelSwitches(const Topology& topology);

  /// Whether no link has a second plane.
  [[nodiscard]] bool empty() const { return group_count_ == 0; }
  [[nodiscard]] std::uint32_t group_count() const { return group_count_; }
  /// The group of parallel switches that a node is in; `no_group` for most.
  [[nodiscard]] std::uint32_t group_of(NodeId node) const { return group_of_[node.index()]; }
  /// How many planes what goes over this link may take; 1 for a link that no other stands for.
  [[nodiscard]] std::size_t planes(LinkId link) const { return has_parallel(link) ? parallel(link).size() : 1; }
  /// The link that stands for this one in a plane: the same for all planes of one neighbour and direction.
  [[nodiscard]] LinkId in_plane(LinkId link, std::size_t plane) const {
    return has_parallel(link) ? parallel(link)[plane] : link;
  }
  /// Trees that are wider than links, spread over the planes: each edge that passes parallel switches takes one plane,
  /// so that every link carries no more than its capacity. Trees are cut into like ones of `unit` weight each, or,
  /// where so much does not fit on any link, into few layers (even_layers.h) of all trees.
  ///
  /// What passes parallel switches is an edge between the neighbours where it comes in and where it leaves. As many
  /// colours as planes are enough for all of them where no neighbour has more than its planes hold (edge_coloring.h).
  /// `capacities` by link, in the unit of the trees' weights; `unit` divides all weights. Nothing where the trees do
  /// not fit so, or are too many. Requires: trees over one plane or another, within the capacities of all planes
  /// together. Cost: edges of all trees x (neighbours + planes).
  [[nodiscard]] std::optional<std::vector<Arborescence>> lift(std::span<const std::int64_t> capacities,
                                                              std::span<const Arborescence> trees,
                                                              std::int64_t unit) const;

  static constexpr std::uint32_t no_group = UINT32_MAX;

 private:
  using Plane = std::vector<NodeId>;
  /// Makes groups of those planes that are alike.
  void join(const std::vector<Plane>& planes);
  [[nodiscard]] bool has_parallel(LinkId link) const { return set_of_[link.index()] != no_group; }
  [[nodiscard]] const std::vector<LinkId>& parallel(LinkId link) const { return parallel_[set_of_[link.index()]]; }

  const Topology& topology_;
  std::uint32_t group_count_ = 0;
  std::vector<std::uint32_t> group_of_;        ///< By node.
  std::vector<bool> is_taken_;                 ///< By node: in a group, or beside a switch that is.
  std::vector<std::uint32_t> set_of_;          ///< By link: place in `parallel_`, or `no_group`.
  std::vector<std::vector<LinkId>> parallel_;  ///< Links that stand for each other, by plane.
};

}  // namespace espalier::planners
