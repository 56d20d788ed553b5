#pragma once

// Tested by: tests/unit/planners/groups/joint_oracle_test.cpp

#include <cstdint>
#include <memory>
#include <vector>

#include "planners/lp/trees/tree_oracle.h"

namespace espalier::planners {

/// The columns of several oracles over the same resources as those of one: the groups of the first oracle, then those
/// of the second, and so on. What each throughput unit takes is multiplied by the oracle's factor.
class JointOracle final : public PricingOracle {
 public:
  /// Requires: an oracle with `group_count` groups that each make up a family of their own.
  void add(std::unique_ptr<PricingOracle> oracle, std::uint32_t group_count, std::int64_t factor);

  [[nodiscard]] std::uint32_t group_count() const { return group_count_; }
  [[nodiscard]] PricedColumns<double> cheapest(std::span<const double> prices) const override;
  [[nodiscard]] PricedColumns<BigInteger> cheapest(std::span<const BigInteger> prices) const override;
  [[nodiscard]] PricedColumns<double> shallow(std::span<const double> prices, double weight) const override;

 private:
  struct Member {
    std::unique_ptr<PricingOracle> oracle;
    std::uint32_t first_group = 0;
    std::int64_t factor = 1;
  };

  std::vector<Member> members_;
  std::uint32_t group_count_ = 0;
};

/// One group whose columns are an out-tree and an in-tree of the same root: all_reduce. `edges` has the out-tree's
/// paths, then the in-tree's.
class TreePairOracle final : public PricingOracle {
 public:
  /// Requires: as TreeOracle; a graph that is not mirrored.
  explicit TreePairOracle(const OrbitGraph& orbits) : trees_(orbits, all_reduce_groups(orbits)) {}

  [[nodiscard]] PricedColumns<double> cheapest(std::span<const double> prices) const override;
  [[nodiscard]] PricedColumns<BigInteger> cheapest(std::span<const BigInteger> prices) const override;
  [[nodiscard]] PricedColumns<double> shallow(std::span<const double> prices, double weight) const override;

 private:
  TreeOracle trees_;
};

}  // namespace espalier::planners
