#include <gtest/gtest.h>

#include "base/check.h"
#include "planners/ring/ring.h"
#include "planners/tree/tree.h"
#include "schedule/loads.h"
#include "schedule/verify/verify.h"
#include "tests/support/files/shipped_machine.h"
#include "tests/support/planner_cases.h"
#include "tests/support/ring_checks.h"
#include "topology/reachable.h"
#include "topology/routes.h"
#include "topology/yaml/read_topology.h"

namespace espalier::planners {
namespace {

/// On every network of the collection the set is as fast as a cut or the linear program over all cycles allows.
TEST(RingCases, NoSetIsFaster) {
  int with_rings = 0;
  for (const test::PlannerCase& known : test::read_planner_cases(32)) {
    SCOPED_TRACE(known.name);
    const Topology topology = test::make_topology(known.graph);
    if (find_unreachable(topology) || topology.rank_count() < 2) continue;
    const RingSet set = find_rings(topology);
    test::expect_sound(topology, set);
    EXPECT_TRUE(set.is_best);
    with_rings += set.rings.empty() ? 0 : 1;
  }
  EXPECT_GT(with_rings, 60);
}

/// Boxes too many for the linear program: rings of two of them are drawn out over all.
TEST(RingCases, NoSetIsFasterOverManyBoxes) {
  for (const test::PlannerCase& known : test::read_planner_cases(128)) {
    if (known.name != "fc_mi250_x8" && known.name != "h100_x8" && known.name != "dgx2_flat_x8") continue;
    SCOPED_TRACE(known.name);
    const Topology topology = test::make_topology(known.graph);
    const RingSet set = find_rings(topology);
    test::expect_sound(topology, set);
    EXPECT_TRUE(set.is_best);
  }
}

/// What NCCL's search can find at most, in GB/s of busbw. A channel has a speed from a table (github.com/NVIDIA/nccl,
/// src/graph/search.cc: 20 or 30 below a V100's and an A100's NVLink rates, 50 for an H100's, 24 and 48 below the rates
/// of NICs). In a box its trees are chains, whose inner ranks receive all data once on the way up and once on the way
/// down: half of a port's rate. Of boxes joined by double binary trees, inner ones receive everything twice, unless
/// there are only two. Then busbw = 2(N-1)/N algbw.
struct NcclFigures {
  const char* name;
  int ring;
  Rational tree;
};

const NcclFigures all_figures[] = {
    {"dgx1v-nvlink", 6 * 20, Rational(3 * 20 * 14, 8)},  // six rings, three chains of channels at 20
    {"dgx1v-degraded", 5 * 20, Rational(3 * 20 * 14, 8)},
    {"dgx2", 5 * 30, Rational(75 * 30, 16)},
    {"dgx-a100", 10 * 30, Rational(150 * 14, 8)},
    {"dgx-a100-x2", 8 * 24, Rational(150 * 30, 16)},  // the chains in the boxes are slower than 192 between them
    {"dgx-a100-x16", 8 * 24, Rational(8 * 12 * 254, 128)},
    {"dgx-h100", 9 * 50, Rational(225 * 14, 8)},
    {"dgx-h100-x4", 8 * 48, Rational(8 * 24 * 62, 32)},
};

class DgxMachine : public ::testing::TestWithParam<NcclFigures> {};

TEST_P(DgxMachine, IsPlannedNoSlowerThanByNccl) {
  constexpr std::int64_t giga = 1'000'000'000;
  const Topology topology = test::shipped_machine(GetParam().name);
  const RingSet set = find_rings(topology);
  test::expect_sound(topology, set);
  EXPECT_TRUE(set.is_best);
  EXPECT_GE(set.rate(), make_rational(GetParam().ring * giga));
  const Collective collective = *make_collective(CollectiveKind::all_reduce, topology.rank_count(), std::nullopt);
  const auto trees = plan_tree(topology, collective);
  ASSERT_TRUE(trees);
  ASSERT_TRUE(verify(*trees, topology).ok());
  EXPECT_GE(collective.busbw_factor() / compute_loads(*trees, topology).time_per_byte, GetParam().tree * giga);
}

INSTANTIATE_TEST_SUITE_P(Machines, DgxMachine, ::testing::ValuesIn(all_figures), [](const auto& machine) {
  std::string name = machine.param.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

struct KnownRings {
  const char* name;
  std::size_t rings;
  std::int64_t total_gb;
};

/// Derived by hand from the machines' files: what leaves the narrowest part of each machine.
TEST(KnownRings, OfShippedMachines) {
  const KnownRings all[] = {
      {"dgx1v-nvlink", 6, 132},                       // six links of 22 GB/s per GPU
      {"dgx1v-degraded", 5, 110}, {"dgx1v", 7, 138},  // and 6 GB/s between the sockets: what joins the halves
      {"dgx2", 6, 150},                               // six planes of switches
      {"mi250", 6, 300},                              // a package of two dies has six links of 50 GB/s to the others
      {"mi250-x2", 16, 256},                          // 16 dies with 16 GB/s each to the other box
      {"mi300x", 7, 448},                             // seven links of 64 GB/s, none of the rings another's reverse
      {"rtx4090-pcie", 1, 16},                        // 16 GB/s between the sockets
      {"aws-p4d-x2", 4, 50},                          // four NICs of 12.5 GB/s
      {"aws-p5-x2", 32, 384},                         // 32 NICs in slots of 12 GB/s
      {"dgx-a100-x2", 8, 200},                        // eight NICs of 25 GB/s
      {"dgx-a100-x16", 8, 200},                       //
      {"dgx-h100-x4", 8, 400},                        // eight NICs of 50 GB/s
      {"torus-4x4x4", 6, 300},                        // six links of 50 GB/s
      {"gb200-nvl72", 1, 900},                        // one port of 900 GB/s
  };
  for (const KnownRings& known : all) {
    SCOPED_TRACE(known.name);
    const RingSet set = find_rings(test::shipped_machine(known.name));
    EXPECT_EQ(set.rings.size(), known.rings);
    EXPECT_EQ(set.rate(), make_rational(known.total_gb * 1'000'000'000));
    EXPECT_TRUE(set.is_best);
  }
}

}  // namespace
}  // namespace espalier::planners
