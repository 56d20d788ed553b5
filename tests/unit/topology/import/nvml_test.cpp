// What NVIDIA's management library says, by a fake one (tests/support/fake_nvml), beside sysfs and other tools' files.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/support/imported.h"
#include "topology/import/nvml/nvml_library.h"
#include "topology/import/nvml/record_nvml.h"

namespace espalier {
namespace {

using test::codes;
using test::import_good;
using test::links;
using test::refusal;

Result<std::string> record(const char* machine) {
  setenv("FAKE_NVML", machine, 1);
  auto recorded = record_nvml(ESPALIER_FAKE_NVML);
  unsetenv("FAKE_NVML");
  return recorded;
}

/// The GPUs of the fake machine "switched" as sysfs shows them, one in a narrow slot, and an adapter.
constexpr const char* sysfs_of_switched =
    "sysfs 1\nnuma 0\nnuma 1\n"
    "pci 0000:18:00.0 class=030200 vendor=10de numa=0 speed=32.0 width=16\n"
    "pci 0000:81:00.0 class=030200 vendor=10de numa=1 speed=32.0 width=8\n"
    "pci 0000:19:00.0 class=020700 vendor=15b3 numa=0 speed=32.0 width=16\n"
    "infiniband mlx5_0 pci=0000:19:00.0 rate=400\n";

TEST(Nvml, HasTheLinksThatSysfsLacks) {
  const auto text = record("switched");
  ASSERT_TRUE(text) << text.error().message;
  const ImportedTopology imported = import_good({sysfs_of_switched, *text});
  const Topology& topology = imported.topology;
  // 26.562 GB/s on the wire are 25 of payload, 18 times; the switches are one hub.
  EXPECT_EQ(links(topology, "gpu0", "nvswitch"), "1 x 450 GB/s nvlink");
  EXPECT_EQ(links(topology, "gpu1", "nvswitch"), "1 x 450 GB/s nvlink");
  // Places on PCIe are sysfs's: the library only knows what the GPU could do.
  EXPECT_EQ(links(topology, "gpu1", "cpu1"), "1 x 31.5 GB/s pcie");
  EXPECT_EQ(topology.node_count(), 6U);
  for (const ProvenanceRow& row : imported.provenance) {
    if (row.link_class != "nvlink" || row.key != "bandwidth") continue;
    EXPECT_EQ(row.origin, Origin::captured);
    EXPECT_EQ(row.source, "b: less its line coding x 18 links");
  }
}

TEST(Nvml, StandsAlone) {
  const auto text = record("direct");
  ASSERT_TRUE(text) << text.error().message;
  const ImportedTopology imported = import_good({*text});
  const Topology& topology = imported.topology;
  EXPECT_EQ(links(topology, "gpu0", "gpu1"), "2 x 25 GB/s nvlink");
  EXPECT_EQ(links(topology, "gpu0", "gpu3"), "2 x 25 GB/s nvlink");
  // Link 5 of GPU 3 is down, and leads to GPU 2, whose end is up.
  EXPECT_EQ(links(topology, "gpu2", "gpu3"), "1 x 25 GB/s nvlink");
  EXPECT_NE(codes(imported).find("I102"), std::string::npos) << codes(imported);
  // GPUs 0 and 1 are below one switch, 2 and 3 below another, on another socket. Sixteen lanes of PCIe 3: 15.75 GB/s.
  EXPECT_EQ(links(topology, "gpu0", "switch0"), "1 x 15.75 GB/s pcie");
  EXPECT_EQ(links(topology, "gpu1", "switch0"), "1 x 15.75 GB/s pcie");
  EXPECT_EQ(links(topology, "gpu3", "switch1"), "1 x 15.75 GB/s pcie");
  EXPECT_EQ(links(topology, "switch0", "cpu0"), "1 x 15.75 GB/s pcie");
  EXPECT_EQ(links(topology, "switch1", "cpu1"), "1 x 15.75 GB/s pcie");
}

/// Captured values are better than a preset's, which are better than assumed ones.
TEST(Nvml, APresetFillsInWhatItDoesNotKnow) {
  const auto old = record("old");
  ASSERT_TRUE(old) << old.error().message;
  const auto origin_of = [](const ImportedTopology& imported) {
    for (const ProvenanceRow& row : imported.provenance) {
      if (row.link_class == "nvlink" && row.key == "bandwidth") return row.origin;
    }
    return Origin::measured;
  };
  const ImportedTopology assumed = import_good({*old});
  EXPECT_EQ(origin_of(assumed), Origin::assumed);
  EXPECT_NE(codes(assumed).find("I101"), std::string::npos);
  EXPECT_EQ(origin_of(import_good({*old}, {.preset = "a100-sxm"})), Origin::preset);
  EXPECT_EQ(origin_of(import_good({*record("direct")}, {.preset = "a100-sxm"})), Origin::captured);
}

TEST(Nvml, SaysWhyItIsNotThere) {
  const auto missing = record_nvml("libnvidia-ml-of-nobody.so.1");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::unavailable);
  EXPECT_NE(missing.error().message.find("no NVML: libnvidia-ml-of-nobody.so.1"), std::string::npos);
  const auto broken = record("broken");
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().message, "NVML does not start: nvmlInit gives 9");
  const auto other = record_nvml("libc.so.6");
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().message, "the NVML libc.so.6 has no nvmlInit_v2");
}

TEST(Nvml, AMachineWithoutGpusIsNoMachine) {
  const auto none = record("none");
  ASSERT_TRUE(none) << none.error().message;
  EXPECT_EQ(*none, "nvml 1\n");
  EXPECT_EQ(refusal(*none), "a: it names no GPU");
}

TEST(Nvml, RefusesWhatIsNoSuchLine) {
  const std::string good = "nvml 1\ngpu 0 bus=0000:18:00.0\n";
  for (const auto& [line, message] : std::vector<std::pair<std::string, std::string>>{
           {"gpu 2 bus=0000:19:00.0", "a:3:5: GPU 1 was due"},
           {"gpu 1", "a:3:5: the GPU has no bus="},
           {"gpu", "a:3:1: a line has a kind and the number of a GPU"},
           {"disk 1 x=y", "a:3:1: 'disk' is neither gpu, nvlink nor path"},
           {"nvlink 7 link=0", "a:3:8: '7' is no GPU of a line before"},
           {"nvlink 0 down", "a:3:10: 'down' is not key=value"},
           {"nvlink 0 to=switch rate=fast", "a:3:20: 'fast' is no rate in MB/s"},
           {"nvlink 0 to=switch rate=99999999999", "a:3:20: '99999999999' is no rate in MB/s"},
           {"path 0 1 level=node", "a:3:8: '1' is no GPU of a line before"},
           {"path 0 0 level=close", "a:3:1: the path has no level= that is known"}}) {
    EXPECT_EQ(refusal(good + line + "\n"), message) << line;
  }
}

}  // namespace
}  // namespace espalier
