#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "planners/lp/resource_graph.h"

namespace espalier {

/// An edge of a tree of ranks as a path over a graph's edges.
struct TreePath {
  std::uint32_t from = UINT32_MAX;   ///< A rank; none where it is gone.
  std::uint32_t to = UINT32_MAX;     ///< A rank; none where it is gone.
  std::vector<std::uint32_t> edges;  ///< TreeRepairer::none where one is gone.
};

/// Makes trees whole that lost some of their paths.
class TreeRepairer {
 public:
  static constexpr std::uint32_t none = UINT32_MAX;

  explicit TreeRepairer(const ResourceGraph& graph);

  /// A spanning tree of the graph's ranks that keeps the paths that are whole where it can: what is cut off is
  /// joined, at its top if possible, to a rank that is nearest, by a path through nodes that are not ranks. Nothing
  /// where there is no such path. The answer lists the paths' edges in the direction of the data, path after path.
  /// Requires: paths of a tree of `root`, no rank being the far end of two. Cost: the graph's edges per gap.
  [[nodiscard]] std::optional<std::vector<std::uint32_t>> repair(std::vector<TreePath> paths, std::uint32_t root,
                                                                 bool inward) const;

 private:
  class Repair;

  const ResourceGraph& graph_;
  std::vector<std::vector<std::uint32_t>> in_edges_;  ///< By node.
};

}  // namespace espalier
