#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "planners/program/tree_oracle.h"
#include "schedule/tree_schedule.h"
#include "topology/flow_network.h"
#include "topology/topology.h"

namespace espalier {

/// The linear program over spanning trees of equal total weight from every rank, or from one root, on the orbits of the
/// network's symmetry. Throughputs are per root, in bytes per second / `unit()`.
class TreeProgram {
 public:
  /// Nothing where there is too little symmetry for the network's size; with one root none is used. `direction` as for
  /// a packing; the topology must outlive the program. Requires: every rank reaches every other; two ranks or more.
  static std::optional<TreeProgram> make(const Topology& topology, Direction direction, Rank root, Symmetry symmetry);

  /// How far the farthest rank is from any root: no trees are all lower.
  [[nodiscard]] std::uint32_t least_height() const { return oracle(0).least_height(); }
  [[nodiscard]] const BigInteger& unit() const { return orbits_->graph.unit; }

  /// The best packing, low trees preferred; with `most_height` a good one of no higher trees (0: any).
  /// Requires: most_height is 0 or at least least_height().
  [[nodiscard]] PatternSolution solve(std::uint32_t most_height = 0) const;
  /// A good packing with at most so many of a solution's patterns per root.
  [[nodiscard]] std::optional<PatternSolution> with_few_trees(const PatternSolution& solution,
                                                              std::uint32_t most) const;
  /// A good packing of `count` trees of equal weight per root, of a solution's patterns. Requires: count > 0.
  [[nodiscard]] std::optional<PatternSolution> with_equal_trees(const PatternSolution& solution,
                                                                std::uint32_t count) const;

  /// The trees of all roots. Requires: an attained solution of this program.
  [[nodiscard]] std::vector<Arborescence> trees(const PatternSolution& solution) const;

 private:
  TreeProgram(const Topology& topology, std::unique_ptr<const OrbitGraph> orbits, TreeGroups groups)
      : topology_(&topology), orbits_(std::move(orbits)), groups_(std::move(groups)) {}
  [[nodiscard]] TreeOracle oracle(std::uint32_t most_height) const { return {*orbits_, groups_, most_height}; }

  const Topology* topology_;
  std::unique_ptr<const OrbitGraph> orbits_;
  TreeGroups groups_;
};

/// The trees of the best packing from every rank, where the program is solved exactly.
std::optional<std::vector<Arborescence>> program_trees(const Topology& topology, Direction direction,
                                                       Symmetry symmetry);

}  // namespace espalier
