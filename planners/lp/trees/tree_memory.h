#pragma once

// Tested by: tests/unit/planners/lp/trees/tree_memory_test.cpp

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "planners/lp/column_generation.h"
#include "planners/lp/orbit_graph.h"
#include "planners/lp/trees/tree_oracle.h"
#include "schedule/trees/tree_schedule.h"
#include "topology/topology.h"

namespace espalier::planners {

/// Warm rounds of a program that begins with trees of a memory: what they lack is what the failure left.
inline constexpr std::uint32_t seeded_warm_rounds = 10;

/// Trees of earlier plans, for planning the same network again, or what is left of it when a part has failed: a program
/// that begins with them has less to find.
///
/// Nodes are known by their names. A tree that a failure does not touch is taken as it is; where it does, the ranks
/// that are cut off are joined again along the fewest links, and a tree that cannot be repaired is left out. What is
/// found with a memory depends on it, not what is proven.
class TreeMemory {
 public:
  /// Keeps the trees of a solution. Requires: a solution of the groups' program.
  void keep(const Topology& topology, std::shared_ptr<const OrbitGraph> orbits, const TreeGroups& groups,
            const ColumnSolution& solution);
  /// Keeps the trees that a schedule runs over (spanning_trees); nothing past 512 ranks. Requires: a schedule for this
  /// topology.
  void keep(const Topology& topology, const Schedule& schedule);

  /// Columns of the oracle's program, made of the trees that were kept last of those that fit: with the same roots and
  /// the same sharing. Empty where some group would have none. Cost: linear in the trees' edges, of each group at most
  /// 256 trees.
  [[nodiscard]] std::vector<Column> seeds(const Topology& topology, const OrbitGraph& orbits,
                                          const TreeOracle& oracle) const;

 private:
  void keep(const Topology& topology, bool inward, std::span<const Arborescence> trees);

  struct Entry {
    std::vector<std::string> node_names;  ///< By node.
    std::shared_ptr<const OrbitGraph> orbits;
    TreeGroups groups;
    std::vector<Column> columns;  ///< The most important first.
  };
  friend class TreeTransplant;

  std::vector<std::shared_ptr<const Entry>> entries_;  ///< Copies of a memory share them.
};

/// Groups and edges of trees that are known already, for columns of a program: of those whose root is the root of a
/// group. A program that begins with them has less to find. Requires: spanning trees on the graph's topology, in-trees
/// where groups are inward; a graph that is not mirrored.
std::vector<Column> columns_of(const ResourceGraph& graph, const TreeGroups& groups,
                               std::span<const Arborescence> trees);

}  // namespace espalier::planners
