#include "planners/ring/ring.h"

#include <gtest/gtest.h>

#include "planners/ring/ring_forest.h"
#include "schedule/loads.h"
#include "schedule/verify/verify.h"
#include "tests/support/networks/real_machines.h"
#include "tests/support/ring_checks.h"
#include "topology/generate/generate.h"

namespace espalier::planners {
namespace {

using test::dgx1v_nvlinks;
using test::expect_sound;
using test::line_of;
using test::ring_of;
using test::star_of;

using test::giga;

/// So many rings with this rate in all, and no set can have more.
void expect_rings(const Topology& topology, std::size_t count, std::int64_t total) {
  SCOPED_TRACE(topology.name());
  const RingSet set = find_rings(topology);
  EXPECT_EQ(set.rings.size(), count);
  EXPECT_EQ(set.rate(), make_rational(total));
  EXPECT_TRUE(set.is_best);
  expect_sound(topology, set);
}

/// busbw of a plan whose fullest link is the only limit.
Rational busbw_of_rings(const Topology& topology, CollectiveKind kind) {
  const Collective collective = *make_collective(kind, topology.rank_count(), std::nullopt);
  const Result<Schedule> schedule = plan_ring(topology, collective);
  EXPECT_TRUE(schedule.has_value());
  EXPECT_TRUE(verify(*schedule, topology).ok());
  return collective.busbw_factor() / compute_loads(*schedule, topology).time_per_byte;
}

// Each GPU of a DGX-1V has six links of 22 GB/s. Three cycles in both directions use all of them: 6 x 22 = 132.
TEST(Ring, UsesEveryNvlinkOfADgx1v) {
  const Topology dgx = dgx1v_nvlinks(false);
  expect_rings(dgx, 6, 132 * giga);
  for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::all_gather,
                                    CollectiveKind::reduce_scatter, CollectiveKind::broadcast}) {
    EXPECT_EQ(busbw_of_rings(dgx, kind), make_rational(132 * giga));
  }
}

// Without the gpu0-gpu1 link these two have five links each. Two cycles in both directions would use four of them; five
// rings that are not each other's reverse use all: 5 x 22 = 110.
TEST(Ring, UsesAnOddNumberOfLinks) {
  const Topology dgx = dgx1v_nvlinks(true);
  expect_rings(dgx, 5, 110 * giga);
  EXPECT_EQ(busbw_of_rings(dgx, CollectiveKind::all_reduce), make_rational(110 * giga));
}

// The complete directed graph splits into n - 1 cycles unless n is 4 or 6 (T. Tillson, "A Hamiltonian decomposition of
// K2m*", J. Combinatorial Theory B 29, 1980).
TEST(Ring, SplitsMeshesIntoOneWayRings) {
  for (const std::int64_t ranks : {3, 5, 7, 8, 9, 10}) {
    expect_rings(*generate_fully_connected({.ranks = ranks}), static_cast<std::size_t>(ranks - 1),
                 25 * giga * (ranks - 1));
  }
}

// A circle of ranks is one cycle in both directions, N = 2 one exchange over the cable, a one-way circle one ring.
TEST(Ring, FollowsCircles) {
  expect_rings(ring_of(2), 1, 25 * giga);
  for (const std::size_t ranks : {3U, 4U, 7U, 16U, 17U, 64U}) expect_rings(ring_of(ranks), 2, 50 * giga);
  for (const std::int64_t ranks : {2, 3, 16, 64}) {
    expect_rings(*generate_ring({.ranks = ranks, .one_way = true}), 1, 25 * giga);
  }
}

// Behind one switch each GPU has one port of 25 GB/s each way: one ring fills all ports.
TEST(Ring, FillsTheMachinesPorts) {
  expect_rings(star_of(8), 1, 25 * giga);
  expect_rings(star_of(72), 1, 25 * giga);
}

// An a x b torus has degree 4 and two disjoint cycles, a 4x4x4 torus and a 6-cube have degree 6 and three.
TEST(Ring, SplitsRegularNetworksIntoCycles) {
  expect_rings(*generate_torus({.dims = {4, 4}}), 4, 100 * giga);
  expect_rings(*generate_torus({.dims = {8, 8}}), 4, 100 * giga);
  expect_rings(*generate_torus({.dims = {4, 4, 4}}), 6, 150 * giga);
  expect_rings(*generate_hypercube({.dimensions = 4}), 4, 100 * giga);
  expect_rings(*generate_hypercube({.dimensions = 6}), 6, 150 * giga);
  expect_rings(*generate_mesh({.dims = {8, 8}}), 2, 50 * giga);
  expect_rings(*generate_fully_connected({.ranks = 16}), 15, 375 * giga);
}

// Each box has one NIC of 50 GB/s per rail: eight rings cross it, one per rail, whether the number of boxes is even or
// odd and with rails that no spine joins.
TEST(Ring, CrossesBoxesRailByRail) {
  for (const std::int64_t boxes : {2, 3, 4, 7, 16}) {
    expect_rings(*generate_rail_boxes({.boxes = boxes}), 8, 400 * giga);
  }
  expect_rings(*generate_rail_boxes({.boxes = 2, .rails = 2}), 8, 400 * giga);
  expect_rings(*generate_rail_boxes({.boxes = 4, .spines = 4}), 8, 400 * giga);
}

// Uplinks of half the ports' rate: two rings of 12.5 GB/s over different spines fill the ports all the same.
TEST(Ring, SharesPortsWhenUplinksAreSlower) {
  expect_rings(*generate_leaf_spine({.leaves = 4, .ranks_per_leaf = 16, .spines = 8, .oversubscription = 4}), 2,
               25 * giga);
}

TEST(Ring, RefusesWithoutACycle) {
  const Topology line = line_of(4);
  EXPECT_TRUE(find_rings(line).rings.empty());
  EXPECT_TRUE(find_rings(line).is_best);
  const auto refused = plan_ring(line, *make_collective(CollectiveKind::all_reduce, 4, std::nullopt));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::unsupported);
  EXPECT_NE(refused.error().help.find("packing"), std::string::npos);
}

TEST(Ring, RefusesWhatIsNotForRings) {
  for (const CollectiveKind kind :
       {CollectiveKind::all_to_all, CollectiveKind::send_recv, CollectiveKind::gather, CollectiveKind::scatter}) {
    const auto refused = plan_ring(ring_of(4), *make_collective(kind, 4, std::nullopt));
    ASSERT_FALSE(refused.has_value());
    EXPECT_FALSE(refused.error().help.empty());
  }
}

// Two million transfers: 1024 ranks x 1024 shards x 2 rings are as many as are stored in parts, one rank more is not.
TEST(Ring, TellsToHowManyRingsShardsAreDealt) {
  const auto rings_of = [](const Topology& topology, CollectiveKind kind) {
    return rings_dealt_to(*plan_ring(
        topology,
        *make_collective(kind, topology.rank_count(), has_root(kind) ? std::optional(Rank(0)) : std::nullopt)));
  };
  EXPECT_EQ(rings_of(ring_of(1025), CollectiveKind::all_gather), 2U);
  EXPECT_EQ(rings_of(ring_of(1025), CollectiveKind::all_reduce), 2U);
  EXPECT_EQ(rings_of(*generate_torus({.dims = {27, 27}}), CollectiveKind::all_gather), 4U);
  EXPECT_EQ(rings_of(*generate_torus({.dims = {26, 26}}), CollectiveKind::all_gather), 1U);
  EXPECT_EQ(rings_of(ring_of(16), CollectiveKind::all_reduce), 1U);
  EXPECT_EQ(rings_of(*generate_ring({.ranks = 1025, .one_way = true}), CollectiveKind::all_gather), 1U);
  EXPECT_EQ(rings_of(ring_of(16), CollectiveKind::broadcast), 1U);
}

TEST(Residual, FindsTheShortestRouteWithRoom) {
  const Topology star = star_of(3);
  Residual residual(star);
  const std::optional<Path> there = residual.find_route(Rank(0), Rank(2), 25 * giga);
  ASSERT_TRUE(there.has_value());
  EXPECT_EQ(there->size(), 2U);
  residual.take(*there, 10 * giga);
  EXPECT_EQ(residual.room(*there), 15 * giga);
  EXPECT_FALSE(residual.find_route(Rank(0), Rank(1), 16 * giga).has_value());
  EXPECT_TRUE(residual.find_route(Rank(1), Rank(0), 25 * giga).has_value());
  residual.give_back(*there, 10 * giga);
  EXPECT_EQ(residual.reach(Rank(0), 25 * giga, 2).size(), 2U);
  EXPECT_TRUE(residual.reach(Rank(0), 25 * giga, 1).empty());
}

}  // namespace
}  // namespace espalier::planners
