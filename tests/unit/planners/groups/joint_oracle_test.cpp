#include "planners/groups/joint_oracle.h"

#include <gtest/gtest.h>

#include "tests/support/networks/fabrics.h"

namespace espalier::planners {
namespace {

// On a line of three every tree is forced. Whatever the prices, the pair of an end rank is two hops out and two back,
// that of the middle one and one.
TEST(TreePairOracle, PairsAreAsHighAsBothTrees) {
  const Topology line = test::line_of(3);
  const OrbitGraph orbits = make_orbit_graph(line, false, Symmetry::none);
  const TreePairOracle oracle(orbits);
  const std::vector<double> prices(orbits.resources.count(), 1.0);
  const PricedColumns<double> priced = oracle.cheapest(prices);
  ASSERT_EQ(priced.columns.size(), 1U);
  const Column& pair = priced.columns.front();
  EXPECT_TRUE(pair.height == 2 || pair.height == 4) << pair.height;
  EXPECT_EQ(pair.min_height, pair.height);
  EXPECT_EQ(pair.excess(), 0);
}

}  // namespace
}  // namespace espalier::planners
