#include "diagnose/fault_classes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/read_good.h"
#include "topology/names/group.h"

namespace espalier::diagnose {
namespace {

/// Two boxes of two GPUs, each GPU with a NIC of its own.
Topology two_boxes() {
  return test::read_good(R"(
espalier: 1
name: two-boxes
classes:
  nvlink: {bandwidth: 100 GB/s, latency: 300 ns}
  bus: {bandwidth: 20 GB/s, latency: 200 ns}
  cable: {bandwidth: 10 GB/s, latency: 600 ns}
nodes: [{id: leaf, kind: switch}]
groups:
  - id: "box[0-1]"
    host: true
    nodes: [{id: "gpu[0-1]", kind: gpu}, {id: "nic[0-1]", kind: nic}]
    links:
      - {between: [gpu0, gpu1], class: nvlink}
      - {zip: ["gpu[0-1]", "nic[0-1]"], class: bus}
      - {all: ["nic[0-1]", leaf], class: cable}
)");
}

const FaultClass* class_with(const std::vector<FaultClass>& classes, const std::string& part) {
  const auto found = std::ranges::find_if(
      classes, [&](const FaultClass& each) { return std::ranges::find(each.parts, part) != each.parts.end(); });
  return found == classes.end() ? nullptr : &*found;
}

TEST(FaultClasses, HoldEveryPartOnce) {
  const std::vector<Topology> tested = {two_boxes()};
  std::vector<std::string> all;
  for (const FaultClass& each : find_fault_classes(tested)) all.insert(all.end(), each.parts.begin(), each.parts.end());
  // 9 nodes, 2 + 4 + 4 cables, 2 hosts, 2 rails; the classes of links are nvlink, bus and cable, each of more than one
  // cable.
  EXPECT_EQ(all.size(), 9U + 10U + 2U + 2U + 3U);
  std::ranges::sort(all);
  EXPECT_EQ(std::ranges::adjacent_find(all), all.end());
}

TEST(FaultClasses, PutTogetherWhatASymmetryMakesTheSame) {
  const std::vector<Topology> tested = {two_boxes()};
  const std::vector<FaultClass> classes = find_fault_classes(tested);
  ASSERT_NE(class_with(classes, "box0.nic0"), nullptr);
  EXPECT_EQ(class_with(classes, "box0.nic0")->parts.size(), 4U);
  EXPECT_EQ(class_with(classes, "box0.nic0")->what, "nic");
  EXPECT_EQ(class_with(classes, "box0")->parts, (std::vector<std::string>{"box0", "box1"}));
  EXPECT_EQ(class_with(classes, "box[0-1].nic1")->parts, (std::vector<std::string>{"box[0-1].nic0", "box[0-1].nic1"}));
  EXPECT_EQ(class_with(classes, "box[0-1].nic1")->what, "rail");
  EXPECT_EQ(class_with(classes, "leaf")->parts.size(), 1U);
}

TEST(FaultClasses, WhatIsARankOfAnyTestIsNeverGone) {
  const Topology machine = two_boxes();
  std::vector<Topology> tested;
  for (const char* ranks : {"box0.gpu[0-1]", "box1.gpu[0-1]"}) {
    tested.push_back(with_ranks(machine, find_rank_nodes(machine, ranks).value()).value());
  }
  const std::vector<FaultClass> classes = find_fault_classes(tested);
  EXPECT_FALSE(class_with(classes, "box0.gpu0")->may_be_gone);
  EXPECT_FALSE(class_with(classes, "box1.gpu0")->may_be_gone);
  EXPECT_TRUE(class_with(classes, "box1.nic0")->may_be_gone);
}

TEST(FaultClasses, ATestOfSomeRanksPartsThem) {
  const Topology machine = two_boxes();
  const auto one_box = with_ranks(machine, *find_rank_nodes(machine, "box0.gpu[0-1]"));
  ASSERT_TRUE(one_box);
  const std::vector<Topology> tested = {machine, *one_box};
  const std::vector<FaultClass> classes = find_fault_classes(tested);
  EXPECT_EQ(class_with(classes, "box0.nic0"), class_with(classes, "box0.nic1"));
  EXPECT_NE(class_with(classes, "box0.nic0"), class_with(classes, "box1.nic0"));
}

TEST(FaultClasses, RanksAndWholeHostsAreNeverGone) {
  const std::vector<Topology> tested = {two_boxes()};
  const std::vector<FaultClass> classes = find_fault_classes(tested);
  EXPECT_FALSE(class_with(classes, "box0.gpu0")->may_be_gone);
  EXPECT_FALSE(class_with(classes, "box1")->may_be_gone);
  EXPECT_TRUE(class_with(classes, "box0.nic0")->may_be_gone);
}

}  // namespace
}  // namespace espalier::diagnose
