#include <gtest/gtest.h>

#include "planners/nccl/search/nccl_communicator.h"
#include "planners/nccl/search/processor.h"
#include "tests/support/read_good.h"

namespace espalier::planners {
namespace {

/// Boxes of eight GPUs on an NVSwitch, each with a NIC beside it, as DGX A100; `keys` are the switch's.
std::string boxes(const std::string& which, const std::string& keys = "") {
  return R"(
espalier: 1
name: boxes
classes:
  nvlink: {bandwidth: 300 GB/s, latency: 350 ns}
  pcie: {bandwidth: 31.5 GB/s, latency: 250 ns}
  net: {bandwidth: 25 GB/s, latency: 600 ns}
nodes: [{id: fabric, kind: switch}]
groups:
  - id: ")" +
         which + R"("
    host: true
    nodes: [{id: "gpu[0-7]", kind: gpu}, {id: nvswitch, kind: switch)" +
         keys + R"(}, {id: "nic[0-7]", kind: nic}]
    links:
      - {all: ["gpu[0-7]", nvswitch], class: nvlink}
      - {zip: ["gpu[0-7]", "nic[0-7]"], class: pcie}
      - {all: ["nic[0-7]", fabric], class: net}
)";
}

constexpr NcclEra ampere{2030, 80, 0.8};
constexpr NcclEra hopper{2030, 90, 0.824};

std::vector<std::size_t> numbers(const std::vector<Rank>& ranks) {
  std::vector<std::size_t> found;
  for (const Rank rank : ranks) found.push_back(rank.index());
  return found;
}

TEST(NcclSearch, OneBoxHasTheSameRingOnAllChannels) {
  const auto found = make_communicator(test::read_good(boxes("box[0-0]")), ampere);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->ring.channels, 12);
  EXPECT_EQ(found->ring.inside, 20);
  EXPECT_EQ(found->channels, 24U);
  ASSERT_EQ(found->rings.size(), 1U);
  EXPECT_EQ(numbers(found->rings.front().order), (std::vector<std::size_t>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(found->nvls_channels, 0U);
}

TEST(NcclSearch, RingsOverTwoBoxesLeaveByOneNicEach) {
  const auto found = make_communicator(test::read_good(boxes("box[0-1]")), ampere);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->ring.channels, 8);
  EXPECT_EQ(found->ring.outside, 24);  // PCIe of the fourth generation is a little slower than the NIC.
  EXPECT_EQ(found->tree.inside, 30);
  EXPECT_EQ(found->tree_pattern, GraphPattern::balanced_tree);
  EXPECT_EQ(found->channels, 16U);
  ASSERT_EQ(found->rings.size(), 8U);
  EXPECT_EQ(numbers(found->rings[1].order),
            (std::vector<std::size_t>{0, 7, 6, 5, 4, 3, 2, 9, 8, 15, 14, 13, 12, 11, 10, 1}));
  EXPECT_EQ(found->rings[1].channels, (std::vector<std::uint32_t>{1, 9}));
}

TEST(NcclSearch, SwitchesThatAddHaveChannelsOfTheirOwnFromHopperOn) {
  const Topology machine = test::read_good(boxes("box[0-0]", ", multicast: true, reduction: true"));
  const auto found = make_communicator(machine, hopper);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->nvls.channels, 8);
  EXPECT_EQ(found->nvls.inside, 24);  // 247.2 GB/s for eight parts and its own.
  EXPECT_EQ(found->nvls_channels, 16U);
  EXPECT_EQ(make_communicator(machine, ampere)->nvls_channels, 0U);
}

TEST(NcclSearch, WhatNoMachineHoldsIsNotGuessed) {
  const Topology ring = test::read_good(R"(
espalier: 1
nodes: [{id: "host[0-2]", kind: cpu}]
links: [{all: ["host[0-2]"], bandwidth: 10 GB/s, latency: 1 us}]
)");
  EXPECT_FALSE(make_communicator(ring, ampere));
}

TEST(NcclSearch, ProcessorsAreKnownByMakerAndModel) {
  EXPECT_EQ(parse_processor("intel-6-143").between, 22);
  EXPECT_EQ(parse_processor("intel-6-79").between, 6);
  EXPECT_EQ(parse_processor("amd-25-17").maker, ProcessorMaker::amd);
  EXPECT_FALSE(parse_processor("").is_known);
  EXPECT_EQ(usual_processor(80).maker, ProcessorMaker::amd);
}

}  // namespace
}  // namespace espalier::planners
