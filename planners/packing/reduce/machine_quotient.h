#pragma once

// Tested by: tests/unit/planners/packing/find/finders_test.cpp

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "planners/packing/reduce/root_network.h"

namespace espalier::planners {

/// The quotient of a network by its machines (rank_groups.h), for trees of one root over machines that are faster
/// inside than between them: in every machine the rank that a tree comes to hands it to all others at once. For fabrics
/// too large to see every rank of. A vertex of the problem's network is a node.
class MachineQuotient {
 public:
  /// Nothing where there are no machines, or more than 256, where a node has a backplane, where ranks must not relay,
  /// and where rates have too fine a common divisor. Requires: a problem of one root that outlives the quotient.
  static std::optional<MachineQuotient> make(const PackingProblem& problem);

  /// Between machines, at the rate of the problem's cut.
  [[nodiscard]] const RootNetwork& network() const { return between_; }
  /// Trees over machines as trees over ranks. Nothing where ranks of a machine do not reach each other by its switches,
  /// or links have no room for that.
  [[nodiscard]] std::optional<std::vector<Arborescence>> lift(std::span<const ParentTree> trees) const;

 private:
  friend class MachineLift;
  explicit MachineQuotient(const PackingProblem& problem, RootNetwork between)
      : network_(problem.network), root_(problem.root), between_(std::move(between)) {}

  const FlowNetwork& network_;
  Rank root_;
  RootNetwork between_;
  std::vector<std::uint32_t> machine_of_;            ///< By vertex: its machine, or a vertex of its own.
  std::vector<std::vector<std::uint32_t>> members_;  ///< By machine: its ranks.
  std::vector<std::uint32_t> arcs_between_;          ///< By arc of `between_`: which of the network's it is.
};

}  // namespace espalier::planners
