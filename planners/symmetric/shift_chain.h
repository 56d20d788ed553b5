#pragma once

// Tested by: tests/property/engine/rank_part_test.cpp

#include <cstdint>
#include <vector>

#include "planners/lp/column_generation.h"
#include "planners/lp/orbit_graph.h"

namespace espalier::planners {

// Spanning trees of a network whose symmetry takes each rank to each other by exactly one automorphism, its shift. A
// shift is named by the rank that it takes rank 0 to, so ranks add and subtract like the shifts do.
//
// Where like edges cost the same, the cheapest arborescence is the greedy one: always take the cheapest edge that joins
// what is not joined yet. All its images together join every set that is closed under the shifts so far (a subgroup)
// with its images, so the tree is known by the chain of subgroups that the edges make, each by the shift that made it.
// (J. Edmonds, "Optimum branchings", 1967, contracts cycles; under the symmetry all cycles are cosets of a subgroup,
// and all edges into them become cheaper by the same.)

/// Adds and subtracts shifts. Requires: an orbit graph with one orbit of ranks whose group has one element per rank; it
/// must outlive this.
class Shifts {
 public:
  explicit Shifts(const OrbitGraph& orbits);

  [[nodiscard]] const OrbitGraph& orbits() const { return *orbits_; }
  [[nodiscard]] std::uint32_t count() const { return orbits_->graph.rank_count(); }
  [[nodiscard]] Automorphism by(std::uint32_t shift) const {
    return orbits_->automorphisms.at(orbits_->automorphism_to[shift]);
  }
  [[nodiscard]] std::uint32_t sum(std::uint32_t a, std::uint32_t b) const { return orbits_->rank_image(by(b), a); }
  [[nodiscard]] std::uint32_t minus(std::uint32_t a) const { return minus_[a]; }

 private:
  const OrbitGraph* orbits_;
  std::vector<std::uint32_t> minus_;
};

/// Shifts that make a subgroup, one after the other.
class ShiftChain {
 public:
  explicit ShiftChain(const Shifts& shifts);

  /// Joins all cosets that the shift takes to each other: of how many one is made. 1, when it was in the subgroup.
  std::uint32_t add(std::uint32_t shift);
  [[nodiscard]] bool contains(std::uint32_t shift) const { return is_in_[shift] != 0; }
  [[nodiscard]] const std::vector<std::uint32_t>& subgroup() const { return subgroup_; }
  [[nodiscard]] bool is_whole() const { return subgroup_.size() == is_in_.size(); }

 private:
  const Shifts& shifts_;
  std::vector<std::uint32_t> subgroup_ = {0};
  std::vector<char> is_in_;
};

/// Columns of the all_gather's program on such a network: trees of rank 0 that stand for all their images. A column's
/// edges are the paths from rank 0 to each shift of its chain.
class ShiftOracle final : public PricingOracle {
 public:
  explicit ShiftOracle(const Shifts& shifts) : shifts_(shifts) {}

  [[nodiscard]] MasterProgram program() const;
  [[nodiscard]] PricedColumns<double> cheapest(std::span<const double> prices) const override;
  [[nodiscard]] PricedColumns<BigInteger> cheapest(std::span<const BigInteger> prices) const override;

 private:
  const Shifts& shifts_;
};

}  // namespace espalier::planners
