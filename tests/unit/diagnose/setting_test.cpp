#include "diagnose/setting.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "diagnose/fault_classes.h"
#include "tests/support/read_good.h"

namespace espalier::diagnose {
namespace {

/// Two hosts; in each a GPU and a NIC behind one PCIe switch below a processor.
const Topology& with_hosts() {
  static const Topology machine = test::read_good(R"(
espalier: 1
name: hosts
classes: {pcie4: {bandwidth: 32 GB/s, latency: 1 us}, hdr: {bandwidth: 25 GB/s, latency: 1 us}}
nodes: [{id: leaf, kind: switch}]
groups:
  - id: "box[0-1]"
    host: true
    nodes: [{id: gpu, kind: gpu}, {id: plx, kind: pcie}, {id: cpu, kind: cpu, rank: false}, {id: nic, kind: nic}]
    links:
      - {all: [[gpu, nic, cpu], plx], class: pcie4}
      - {all: [nic, leaf], class: hdr}
)");
  return machine;
}

std::int64_t rate_between(const Topology& machine, const char* from, const char* to) {
  const auto links = machine.links_between(machine.find_node(from), machine.find_node(to));
  return links.empty() ? 0 : machine.link(links.front()).bandwidth().bytes_per_second;
}

TEST(Setting, WithoutGpuDirectNicsHangOnTheProcessor) {
  const auto off = with_setting(with_hosts(), "GPUDirect off");
  ASSERT_TRUE(off) << off.error().message;
  EXPECT_EQ(rate_between(*off, "box0.nic", "box0.plx"), 0);
  EXPECT_EQ(rate_between(*off, "box0.nic", "box0.cpu"), 32'000'000'000);
  EXPECT_EQ(rate_between(*off, "box0.cpu", "box0.nic"), 32'000'000'000);
  // Up go what the GPU sends and what its NIC has received: half for either.
  EXPECT_EQ(rate_between(*off, "box0.plx", "box0.cpu"), 16'000'000'000);
  EXPECT_EQ(rate_between(*off, "box1.cpu", "box1.plx"), 16'000'000'000);
  EXPECT_EQ(rate_between(*off, "box0.gpu", "box0.plx"), 32'000'000'000);
  EXPECT_EQ(rate_between(*off, "box0.nic", "leaf"), 25'000'000'000);
}

TEST(Setting, WhereNoHostIsDescribedTheCableToTheNicCarriesBothLegs) {
  const Topology machine = test::read_good(R"(
espalier: 1
name: direct
classes: {pcie4: {bandwidth: 32 GB/s, latency: 1 us}, hdr: {bandwidth: 25 GB/s, latency: 1 us}}
nodes: [{id: leaf, kind: switch}, {id: "gpu[0-1]", kind: gpu}, {id: "nic[0-1]", kind: nic}]
links: [{zip: ["gpu[0-1]", "nic[0-1]"], class: pcie4}, {all: ["nic[0-1]", leaf], class: hdr}]
)");
  const auto off = with_setting(machine, "GPUDirect off");
  ASSERT_TRUE(off);
  EXPECT_EQ(rate_between(*off, "gpu1", "nic1"), 16'000'000'000);
  EXPECT_EQ(rate_between(*off, "nic1", "leaf"), 25'000'000'000);
  EXPECT_FALSE(with_setting(machine, "NVLS off")) << "it has none";
  EXPECT_FALSE(with_setting(machine, "NVLS"));
}

TEST(Setting, WithoutNvlsSwitchesBetweenGpusNeitherAddNorCopy) {
  const Topology machine = test::read_good(R"(
espalier: 1
name: nvls
classes: {nvlink4: {bandwidth: 450 GB/s, latency: 1 us}}
nodes: [{id: nvswitch, kind: switch, multicast: true, reduction: true}, {id: "gpu[0-3]", kind: gpu}]
links: [{all: ["gpu[0-3]", nvswitch], class: nvlink4}]
)");
  const auto off = with_setting(machine, "NVLS off");
  ASSERT_TRUE(off);
  EXPECT_FALSE(off->node(off->find_node("nvswitch")).reduction);
  EXPECT_FALSE(off->node(off->find_node("nvswitch")).multicast);
  EXPECT_FALSE(with_setting(machine, "GPUDirect off")) << "it has no NIC";
}

TEST(Setting, ChangesWhatNcclIsAskedToRun) {
  const auto asked = [](const char* collective, const char* setting, const char* algorithm = "nccl") {
    const Fault fault{Fault::Kind::setting, setting, 1, 0, true};
    const Question question = with_settings({"", collective, algorithm}, std::span(&fault, 1));
    return question.algorithm + (question.protocol.empty() ? "" : " " + question.protocol);
  };
  EXPECT_EQ(asked("all_to_all", "PXN off"), "nccl/p2p");
  EXPECT_EQ(asked("all_reduce", "PXN off"), "nccl");
  EXPECT_EQ(asked("all_reduce", "trees alone"), "nccl/tree");
  EXPECT_EQ(asked("all_gather", "trees alone"), "nccl");
  EXPECT_EQ(asked("all_gather", "rings alone"), "nccl/ring");
  EXPECT_EQ(asked("all_to_all", "rings alone"), "nccl");
  EXPECT_EQ(asked("all_reduce", "Simple alone"), "nccl simple");
  EXPECT_EQ(asked("all_reduce", "trees alone", "ring"), "ring") << "a run of ours";
}

TEST(Setting, EachIsKnownByItsName) {
  std::set<std::string_view> names;
  for (const Setting& setting : nccl_settings()) {
    EXPECT_TRUE(names.insert(setting.name).second);
    EXPECT_FALSE(setting.advice.empty());
    const Fault fault{Fault::Kind::setting, std::string(setting.name), 1, 0, true};
    EXPECT_EQ(describe(fault), setting.name);
    EXPECT_EQ(is_of_machine(fault), setting.name == "GPUDirect off" || setting.name == "NVLS off");
  }
}

}  // namespace
}  // namespace espalier::diagnose
