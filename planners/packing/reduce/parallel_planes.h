#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "planners/lp/resource_graph.h"

namespace espalier {

/// Planes of switches that join the same ranks at the same rates, as the switches of one machine often do: what goes
/// over one may be spread over all, and the planes together are one that is so much wider.
///
/// A plane is a set of switches that are joined without ranks, or one of several switches with the same neighbours, as
/// the NICs of one slot. Planes are matched switch by switch by the ranks that they serve; one in which two switches
/// serve the same ranks is alike to none.
class ParallelPlanes {
 public:
  /// Requires: a graph without backplanes.
  explicit ParallelPlanes(const ResourceGraph& graph);

  /// Planes that are alike, group by group, and of each its switches, in an order in which they stand for each other.
  using Groups = std::vector<std::vector<std::vector<std::uint32_t>>>;
  [[nodiscard]] const Groups& groups() const { return groups_; }
  /// How many times its own capacity an edge stands for: that of all its parallel ones, or 0 where another stands for
  /// it.
  [[nodiscard]] std::int64_t width(std::uint32_t edge) const { return width_[edge]; }
  /// How many like trees one tree becomes that is spread over all planes; 1 where no planes are alike.
  [[nodiscard]] std::size_t spreads() const { return spreads_; }
  /// A tree's edges in each of these.
  [[nodiscard]] std::vector<std::vector<std::uint32_t>> spread(std::span<const std::uint32_t> edges) const;

 private:
  /// Lets the first plane of a group stand for all.
  void join(const ResourceGraph& graph, const std::vector<std::vector<std::uint32_t>>& group,
            const std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t>& edge_of);

  Groups groups_;                                     ///< Of more than one plane.
  std::vector<std::int64_t> width_;                   ///< By edge.
  std::vector<std::vector<std::uint32_t>> parallel_;  ///< By edge: itself and its parallel ones.
  std::size_t spreads_ = 1;
};

}  // namespace espalier
