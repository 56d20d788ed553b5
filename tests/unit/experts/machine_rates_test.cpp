#include "experts/machine_rates.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace espalier::experts {
namespace {

constexpr std::int64_t giga = 1'000'000'000;

/// Boxes of two GPUs on a switch of 10 GB/s, each GPU with a NIC of 2 GB/s behind PCIe of 4 GB/s, NICs on one leaf.
Topology two_boxes(bool has_nics) {
  std::vector<Node> nodes;
  std::vector<Link> links;
  const auto add = [&](const std::string& id, NodeKind kind) {
    nodes.push_back({.id = id, .kind = kind, .is_rank = kind == NodeKind::gpu});
    return nodes.size() - 1;
  };
  const auto join = [&](std::size_t a, std::size_t b, std::int64_t rate, std::int64_t ns) {
    for (const auto& [tail, head] : {std::pair(a, b), std::pair(b, a)}) {
      links.push_back({NodeId(tail), NodeId(head), {.nominal = {rate * giga}, .latency = {ns * 1000}}});
    }
  };
  const std::size_t leaf = add("leaf", NodeKind::switch_node);
  for (const std::string box : {"a", "b"}) {
    const std::size_t middle = add(box + ".switch", NodeKind::switch_node);
    for (const std::string number : {"0", "1"}) {
      const std::size_t gpu = add(box + ".gpu" + number, NodeKind::gpu);
      join(gpu, middle, 10, 300);
      if (!has_nics) continue;
      const std::size_t nic = add(box + ".nic" + number, NodeKind::nic);
      join(gpu, nic, 4, 100);
      join(nic, leaf, 2, 100);
    }
    if (!has_nics) join(middle, leaf, 3, 100);
  }
  return *Topology::make("two", std::move(nodes), std::move(links));
}

TEST(MachineRates, BoxesArePartsJoinedByNics) {
  const auto rates = find_rates(two_boxes(true), 0);
  ASSERT_TRUE(rates);
  EXPECT_EQ(rates->ranks, 4U);
  EXPECT_EQ(rates->boxes, 2U);
  EXPECT_EQ(rates->ranks_per_box(), 2U);
  EXPECT_DOUBLE_EQ(rates->link_rate, 10e9);
  EXPECT_DOUBLE_EQ(rates->nic_rate, 2e9);
  EXPECT_NEAR(rates->link_latency, 600e-9, 1e-15);
}

TEST(MachineRates, FewerRanksFillBoxesOneAfterTheOther) {
  const auto rates = find_rates(two_boxes(true), 2);
  ASSERT_TRUE(rates);
  EXPECT_EQ(rates->boxes, 1U);
  EXPECT_DOUBLE_EQ(rates->nic_rate, 0);
}

TEST(MachineRates, WithoutNicsAllRanksAreInOneBox) {
  const auto rates = find_rates(two_boxes(false), 0);
  ASSERT_TRUE(rates);
  EXPECT_EQ(rates->boxes, 1U);
}

TEST(MachineRates, RefusesBoxesThatAreNotAlike) {
  const auto unequal = find_rates(two_boxes(true), 3);
  ASSERT_FALSE(unequal);
  EXPECT_EQ(unequal.error().message, "3 ranks do not fill boxes of two alike");
  const auto more = find_rates(two_boxes(true), 5);
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().message, "two has 4 ranks, not 5");
}

}  // namespace
}  // namespace espalier::experts
