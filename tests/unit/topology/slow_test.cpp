#include "topology/slow.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/networks/real_machines.h"
#include "topology/yaml/read_topology.h"
#include "topology/yaml/write_topology.h"

namespace espalier {
namespace {

using Texts = std::vector<std::string>;

std::int64_t rate_of(const Topology& topology, const std::string& link) {
  return topology.link(topology.find_link(link)).bandwidth().bytes_per_second;
}

Topology slowed(const Topology& topology, const Texts& texts) {
  auto slow = slow_down(topology, texts);
  EXPECT_TRUE(slow) << slow.error().message;
  return *std::move(slow);
}

Topology pcie_machine() {
  auto reading = read_topology_file(ESPALIER_SOURCE_DIR "/configs/rtx4090-pcie.yaml");
  return *std::move(reading.topology);
}

TEST(SlowDown, ACableBothWaysAndALinkOneWay) {
  const Topology machine = pcie_machine();  // PCIe links of 24 GB/s.
  const Topology cable = slowed(machine, {"gpu0-cpu0=0.25"});
  EXPECT_EQ(rate_of(cable, "gpu0>cpu0"), 6'000'000'000);  // 24 / 4.
  EXPECT_EQ(rate_of(cable, "cpu0>gpu0"), 6'000'000'000);
  EXPECT_EQ(rate_of(cable, "gpu1>cpu0"), 24'000'000'000);
  EXPECT_EQ(cable.name(), "rtx4090-pcie with gpu0-cpu0 at 25 %");
  const Topology link = slowed(machine, {"gpu0>cpu0=50%"});
  EXPECT_EQ(rate_of(link, "gpu0>cpu0"), 12'000'000'000);
  EXPECT_EQ(rate_of(link, "cpu0>gpu0"), 24'000'000'000);
}

TEST(SlowDown, AClassAndANodeWithItsBackplane) {
  const Topology machine = pcie_machine();
  const Topology sockets = slowed(machine, {"socket=0.5"});
  EXPECT_EQ(rate_of(sockets, "cpu0>cpu1"), 8'000'000'000);  // 16 / 2.
  EXPECT_EQ(rate_of(sockets, "gpu0>cpu0"), 24'000'000'000);
  const Topology node = slowed(machine, {"cpu0=0.5"});
  EXPECT_EQ(rate_of(node, "gpu0>cpu0"), 12'000'000'000);
  EXPECT_EQ(rate_of(node, "cpu1>cpu0"), 8'000'000'000);
  EXPECT_EQ(rate_of(node, "gpu4>cpu1"), 24'000'000'000);
  EXPECT_EQ(node.node(node.find_node("cpu0")).bandwidth.bytes_per_second, 115'200'000'000);  // 230.4 / 2.
  EXPECT_EQ(node.node(node.find_node("cpu1")).bandwidth.bytes_per_second, 230'400'000'000);
}

TEST(SlowDown, TheLastTextAboutALinkCounts) {
  const Topology topology = slowed(pcie_machine(), {"pcie4=0.5", "gpu3-cpu0=1"});
  EXPECT_EQ(rate_of(topology, "gpu3>cpu0"), 24'000'000'000);
  EXPECT_EQ(rate_of(topology, "gpu2>cpu0"), 12'000'000'000);
}

const Link& link_of(const Topology& topology, const std::string& name) {
  return topology.link(topology.find_link(name));
}

TEST(SlowDown, SoftwareReadsWhatAPartSaysOfItself) {
  const Topology machine = pcie_machine();
  const Topology slot = slowed(machine, {"gpu0-cpu0=0.25"});
  EXPECT_EQ(link_of(slot, "gpu0>cpu0").seen_rate().bytes_per_second, 24'000'000'000);
  EXPECT_EQ(link_of(slot, "gpu1>cpu0").reported.bytes_per_second, 0);
  EXPECT_TRUE(slot.is_altered());
  EXPECT_FALSE(slot.is_seen_altered());
  // Slower again, it still says the same.
  EXPECT_EQ(link_of(slowed(slot, {"gpu0-cpu0=0.5"}), "gpu0>cpu0").seen_rate().bytes_per_second, 24'000'000'000);
  EXPECT_EQ(seen_text(slot), seen_text(machine));
  const Topology seen = as_reported(slot);
  EXPECT_FALSE(seen.is_altered());
  EXPECT_TRUE(std::ranges::equal(seen.links(), machine.links()));
}

TEST(SlowDown, OfACableOfNvLinksThoseThatAreLeftAreCounted) {
  const Topology machine = *read_topology_file(ESPALIER_SOURCE_DIR "/configs/dgx-a100.yaml").topology;
  // A GPU's cable is twelve of 25 GB/s.
  const Topology half = slowed(machine, {"gpu0-nvswitch=0.5"});
  EXPECT_EQ(link_of(half, "gpu0>nvswitch").seen_rate().bytes_per_second, 150'000'000'000);
  EXPECT_TRUE(half.is_seen_altered());
  EXPECT_NE(seen_text(half), seen_text(machine));
  const Topology some = slowed(machine, {"gpu0-nvswitch=0.55"});  // 6.6 links.
  EXPECT_EQ(link_of(some, "gpu0>nvswitch").nominal.bytes_per_second, 165'000'000'000);
  EXPECT_EQ(link_of(some, "gpu0>nvswitch").seen_rate().bytes_per_second, 175'000'000'000);
  // One link is there or not.
  const Topology single = *read_topology_file(ESPALIER_SOURCE_DIR "/configs/dgx2.yaml").topology;
  const Topology slow = slowed(single, {"gpu1-board0.nvswitch4=0.5"});
  EXPECT_EQ(link_of(slow, "gpu1>board0.nvswitch4").seen_rate().bytes_per_second, 25'000'000'000);
  EXPECT_FALSE(slow.is_seen_altered());
}

TEST(SlowDown, IsWrittenAndReadBack) {
  const Topology topology = slowed(pcie_machine(), {"gpu0>cpu0=0.3"});
  const TopologyReading again = read_topology_text(write_topology(topology), "slow.yaml", ".", {});
  ASSERT_TRUE(again.topology);
  EXPECT_EQ(write_topology(*again.topology), write_topology(topology));
}

TEST(SlowDown, RefusesWhatIsNoPart) {
  const auto refused = [](const std::string& text) {
    const auto slow = slow_down(pcie_machine(), Texts{text});
    return slow ? std::string("accepted") : slow.error().message + "; " + slow.error().help;
  };
  EXPECT_EQ(refused("gpu0-cpu0=0"), "'gpu0-cpu0=0' leaves nothing of it; --without gpu0-cpu0 takes it away");
  EXPECT_EQ(refused("gpu0-cpu0=1.5"),
            "'gpu0-cpu0=1.5': '1.5' is more than the whole; a part is above 0 and at most 1, such as 0.25 or 25%");
  EXPECT_EQ(refused("gpu0-cpu0"), "'gpu0-cpu0' is not LINK=PART; write gpu0-gpu1=0.25 for a quarter of its rate");
  EXPECT_EQ(refused("gpo0=0.5"), "'gpo0' is not a node of rtx4090-pcie; did you mean 'gpu0'?");
  EXPECT_EQ(refused("pcie5=0.5"), "'pcie5' is not a node of rtx4090-pcie; did you mean 'pcie4'?");
}

}  // namespace
}  // namespace espalier
