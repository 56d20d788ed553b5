#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planners/packing/split/capacity_graph.h"
#include "planners/packing/split/even_split.h"

namespace espalier {

/// Which neighbours of a switch should send to each other through it, and which have a better way.
enum class Dealing : std::uint8_t {
  across_by_place,  ///< Equal places in groups that no faster edges connect: a rail from box to box.
  across,           ///< All pairs from different groups.
  all_pairs,        ///< All pairs of different neighbours.
};

/// Finds the groups that edges faster than a switch's own connect.
class NeighbourGroups {
 public:
  /// Remembers the edges of the graph as it is before any switch is split.
  explicit NeighbourGroups(const CapacityGraph& graph);

  /// The two sides of a switch for a way of dealing.
  struct Sides {
    SwitchSide in, out;
  };
  [[nodiscard]] Sides sides(const CapacityGraph& graph, const SwitchEdges& edges, Dealing dealing) const;

 private:
  /// For every vertex, one that stands for its group.
  [[nodiscard]] std::vector<std::uint32_t> connected_faster_than(std::int64_t capacity) const;

  struct OriginalEdge {
    std::uint32_t tail, head;
    std::int64_t capacity;
  };
  std::vector<OriginalEdge> edges_;
  std::vector<std::uint32_t> singles_;  ///< Every vertex by itself.
};

}  // namespace espalier
