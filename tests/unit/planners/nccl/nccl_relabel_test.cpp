#include "planners/nccl/nccl_relabel.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/read_good.h"
#include "topology/without.h"

namespace espalier::planners {
namespace {

/// Two boxes of three GPUs, each with a NIC, on one switch or each on a rail of its own.
Topology two_boxes(bool has_rails) {
  std::string text = R"(
espalier: 1
name: two
nodes: [{id: "rail[0-2]", kind: switch}]
groups:
  - id: "box[0-1]"
    host: true
    nodes: [{id: "gpu[0-2]", kind: gpu}, {id: "nic[0-2]", kind: nic}, {id: nvswitch, kind: switch}]
    links:
      - {all: ["gpu[0-2]", nvswitch], class: nvlink, bandwidth: 300 GB/s, latency: 500 ns}
      - {between: [gpu0, nic0], class: pcie, bandwidth: 32 GB/s, latency: 300 ns}
      - {between: [gpu1, nic1], class: pcie, bandwidth: 32 GB/s, latency: 300 ns}
      - {between: [gpu2, nic2], class: pcie, bandwidth: 32 GB/s, latency: 300 ns}
links:
)";
  for (const char nic : {'0', '1', '2'}) {
    text += std::string("  - {all: [\"box[0-1].nic") + nic + "\", rail" + (has_rails ? nic : '0') +
            "], class: cable, bandwidth: 25 GB/s, latency: 600 ns}\n";
  }
  return espalier::test::read_good(text);
}

struct Ground {
  explicit Ground(const std::vector<std::string>& lost, bool has_rails = false)
      : topology(*without(two_boxes(has_rails), lost)),
        groups(group_domains(topology)),
        graph(topology, Bytes{1 << 18}, 4) {}

  [[nodiscard]] std::optional<std::vector<Rank>> places(const Neighbours& neighbours, bool both_ways) const {
    return RouteRelabelling(groups, graph).places(neighbours, both_ways);
  }

  Topology topology;
  RankGroups groups;
  LogicalGraph graph;
};

/// In at one rail of each box, out at another.
Neighbours ring() {
  return {{Rank(0), Rank(1)}, {Rank(1), Rank(2)}, {Rank(2), Rank(5)},
          {Rank(5), Rank(4)}, {Rank(4), Rank(3)}, {Rank(3), Rank(0)}};
}

TEST(NcclRelabel, NothingChangesWhereAllHaveRoutes) {
  const auto places = Ground({}).places(ring(), true);
  ASSERT_TRUE(places);
  EXPECT_TRUE(std::ranges::is_sorted(*places));
}

/// Ranks 2 and 5 lead to other machines; rank 1 does not, and any NIC reaches any other.
TEST(NcclRelabel, AGpuWithoutANicChangesPlacesWithOneThatHas) {
  const Ground ground({"box0.nic2"});
  const auto places = ground.places(ring(), false);
  ASSERT_TRUE(places);
  EXPECT_EQ(*places, (std::vector<Rank>{Rank(0), Rank(2), Rank(1), Rank(3), Rank(4), Rank(5)}));
}

/// Rank 0 alone has a NIC left, and its place is the one that the other machine sends to.
TEST(NcclRelabel, NothingWhereThatTakesAnotherWay) {
  EXPECT_FALSE(Ground({"box0.nic2", "box0.nic1"}).places(ring(), false));
}

/// The other box's NIC of the rail is reached by none here.
TEST(NcclRelabel, NothingWhereNoExchangeHelps) { EXPECT_FALSE(Ground({"box0.nic2"}, true).places(ring(), false)); }

}  // namespace
}  // namespace espalier::planners
