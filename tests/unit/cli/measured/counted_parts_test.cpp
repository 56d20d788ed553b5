#include "cli/measured/counted_parts.h"

#include <gtest/gtest.h>

#include <array>

#include "tests/support/read_good.h"

namespace espalier::cli {
namespace {

const Topology& two_boxes() {
  static const Topology machine = test::read_good(R"(
espalier: 1
name: two
classes:
  nvlink3: {bandwidth: 300 GB/s, latency: 1 us}
  pcie4: {bandwidth: 30 GB/s, latency: 1 us}
  hdr: {bandwidth: 25 GB/s, latency: 1 us}
nodes: [{id: leaf, kind: switch}]
groups:
  - id: "box[0-1]"
    host: true
    nodes: [{id: "gpu[0-1]", kind: gpu}, {id: nvswitch, kind: switch}, {id: "nic[0-1]", kind: nic}]
    links:
      - {all: ["gpu[0-1]", nvswitch], class: nvlink3}
      - {zip: ["gpu[0-1]", "nic[0-1]"], class: pcie4}
      - {all: ["nic[0-1]", leaf], class: hdr}
)");
  return machine;
}

std::vector<CountedPart> parts_of(const compare::PortTrouble& trouble, const std::string& at) {
  auto found = find_counted_parts(two_boxes(), std::span(&trouble, 1), at, "f");
  EXPECT_TRUE(found);
  return found ? std::move(found)->parts : std::vector<CountedPart>();
}

TEST(CountedParts, ALinkOfAGpuIsAnyOfItsFabricCables) {
  const compare::PortTrouble trouble{1, "", 4, false, "link 4: 9 CRC Errors", 1};
  const auto found = parts_of(trouble, "box1");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0], (CountedPart{"box1.gpu1-box1.nvswitch", "link 4: 9 CRC Errors", 30}));
  EXPECT_FALSE(find_counted_parts(two_boxes(), std::span(&trouble, 1), "", "f")) << "which host?";
}

TEST(CountedParts, NamesOfDevices) {
  for (const char* device : {"box1 mlx5_1", "box1/mlx5_1", "box1 HCA-2", "box1.nic1"}) {
    const auto found = parts_of({{}, device, 1, true, "port 1: down", 1}, "");
    ASSERT_EQ(found.size(), 2U) << device;
    EXPECT_EQ(found[0], (CountedPart{"box1.nic1", "port 1: down", 100}));
    EXPECT_EQ(found[1].part, "box1.nic1-leaf");
  }
  EXPECT_EQ(parts_of({{}, "leaf", 7, false, "port 7: 3 SymbolErrorCounter", 1}, "").front().part, "leaf");
  EXPECT_TRUE(parts_of({{}, "elsewhere mlx5_0", 1, false, "", 1}, "").empty());
}

TEST(CountedParts, DevicesThatTheMachineDoesNotHaveAreNamedOnce) {
  const compare::PortTrouble gpu{9999, "", 0, false, "link 0: 7 CRC Errors", 1};
  const compare::PortTrouble leaf{{}, "leaf-3", 1, true, "port 1: down", 2};
  const compare::PortTrouble known{0, "", 0, false, "link 0: 8 CRC Errors", 3};
  const auto found = find_counted_parts(two_boxes(), std::array{gpu, gpu, leaf, known}, "box0", "f");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->unknown, (std::vector<std::string>{"GPU 9999", "leaf-3"}));
  EXPECT_EQ(found->parts.size(), 1U);
}

TEST(CountedParts, APortWithoutANameIsWhatTheArgumentSays) {
  const compare::PortTrouble trouble{{}, "", 1, false, "port 1: 41 SymbolErrorCounter", 1};
  EXPECT_EQ(parts_of(trouble, "box0.nic0").front().part, "box0.nic0");
  EXPECT_FALSE(find_counted_parts(two_boxes(), std::span(&trouble, 1), "", "f"));
  EXPECT_FALSE(find_counted_parts(two_boxes(), std::span(&trouble, 1), "box9", "f"));
}

TEST(CountedParts, AreClassesOfTheirOwn) {
  std::vector<diagnose::FaultClass> classes = {{{"a", "b", "c"}, "nic", true}, {{"d"}, "switch", false}};
  set_apart(classes, std::array{CountedPart{"b", "bad", 30}, CountedPart{"d", "worse", 100}, CountedPart{"x", "", 2}});
  ASSERT_EQ(classes.size(), 3U);
  EXPECT_EQ(classes[0].parts, (std::vector<std::string>{"a", "c"}));
  EXPECT_EQ(classes[0].likelier, 1);
  EXPECT_EQ(classes[1].likelier, 100);
  EXPECT_EQ(classes[2].parts, std::vector<std::string>{"b"});
  EXPECT_EQ(classes[2].counters, "bad");
}

}  // namespace
}  // namespace espalier::cli
