#include "tests/support/imported.h"

namespace espalier {
namespace {

using test::import_good;
using test::links;
using test::refusal;

/// Two sockets with two GPUs each; NIC0 shares a switch with GPU0, GPU2 and GPU3 share a host bridge.
const std::string box =
    "\t\x1b[4mGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n"
    "GPU0\t X \tNV2\tSYS\tSYS\tPIX\t0-15\t0\t\tN/A\n"
    "GPU1\tNV2\t X \tSYS\tSYS\tNODE\t0-15\t0\t\tN/A\n"
    "GPU2\tSYS\tSYS\t X \tPHB\tSYS\t16-31\t1\t\tN/A\n"
    "GPU3\tSYS\tSYS\tPHB\t X \tSYS\t16-31\t1\t\tN/A\n"
    "NIC0\tPIX\tNODE\tSYS\tSYS\t X \t\t\t\t\n"
    "\nLegend:\n\n  X    = Self\n\nNIC Legend:\n\n  NIC0: mlx5_3\n";

TEST(NvidiaMatrix, BecomesATreeWithNvlinks) {
  const Topology topology = import_good({box}, {.preset = "a100-sxm"}).topology;
  EXPECT_EQ(topology.rank_count(), 4U);
  EXPECT_EQ(links(topology, "gpu0", "gpu1"), "2 x 25 GB/s nvlink");
  EXPECT_EQ(links(topology, "gpu0", "pcie0"), "1 x 31.5 GB/s pcie");
  EXPECT_EQ(links(topology, "mlx5_3", "pcie0"), "1 x 31.5 GB/s pcie");
  EXPECT_EQ(links(topology, "pcie0", "cpu0"), "1 x 31.5 GB/s pcie");
  EXPECT_EQ(links(topology, "gpu1", "cpu0"), "1 x 31.5 GB/s pcie");
  EXPECT_EQ(links(topology, "gpu2", "cpu1"), "1 x 31.5 GB/s pcie");
  EXPECT_EQ(links(topology, "gpu3", "cpu1"), "1 x 31.5 GB/s pcie");
  EXPECT_EQ(links(topology, "cpu0", "cpu1"), "1 x 20 GB/s smp");
  EXPECT_EQ(topology.node_count(), 8U);
}

TEST(NvidiaMatrix, MoreNvlinksThanAGpuHasAreThoseOfASwitch) {
  std::string text = "\tGPU0\tGPU1\tGPU2\tCPU Affinity\n";
  for (int row = 0; row < 3; ++row) {
    text += "GPU" + std::to_string(row);
    for (int column = 0; column < 3; ++column) text += row == column ? "\tX" : "\tNV12";
    text += "\t0-7\n";
  }
  // 2 x 12 links are more than the 18 that a GPU has at most: 12 of each GPU lead to a switch.
  const Topology topology = import_good({text}, {.preset = "a100-sxm"}).topology;
  EXPECT_EQ(links(topology, "gpu2", "nvswitch"), "1 x 300 GB/s nvlink");
  EXPECT_EQ(links(topology, "gpu0", "gpu1"), "");
}

TEST(NvidiaMatrix, RowsOfNicsMayBeMissing) {
  const Topology topology = import_good({"GPU0 GPU1 mlx5_0 mlx5_1\nGPU0 X PIX PIX SYS\nGPU1 PIX X PIX SYS\n"}).topology;
  EXPECT_EQ(links(topology, "mlx5_0", "pcie0"), "1 x 15.75 GB/s pcie");
  EXPECT_EQ(links(topology, "mlx5_1", "cpu1"), "1 x 15.75 GB/s pcie");
}

TEST(NvidiaMatrix, RefusalsNameThePlace) {
  EXPECT_EQ(refusal("\tGPU0\tGPU1\tNIC0\nGPU0\t X \tNV1\tPIXNODE\n"), "a:2:14: 'PIXNODE' is not how GPU0 reaches NIC0");
  EXPECT_EQ(refusal("\tGPU0\tGPU1\nGPU0\t X \n"), "a:2:9: the row has 1 cells of 2");
  EXPECT_EQ(refusal("\tGPU0\tGPU1\nGPU0\tNV1\t X \n"), "a:2:6: 'NV1' is not how GPU0 reaches GPU0");
  EXPECT_EQ(refusal("\tGPU0\tGPU1\nGPU0\t X \tPIX\nGPU1\tSYS\t X \n"),
            "a:3:1: how GPU1 reaches GPU0 differs from the way back in line 2");
  EXPECT_EQ(refusal("\tGPU0\tGPU1\tGPU2\nGPU0\t X \tPIX\tPIX\n"), "a:1:1: neither GPU1 nor GPU2 has a row");
  EXPECT_EQ(refusal("\tGPU0\tGPU1\nGPU0\t X \tOK\n"),
            "a:2:10: this table says which GPUs may reach each other, not by what");
  EXPECT_EQ(refusal("GPU0  X  NV1\nGPU1 NV1  X\n"), "a:1:1: there is no line of column names (GPU0 GPU1 ...)");
  EXPECT_EQ(refusal("\tGPU0\tGPU0\nGPU0\t X \tX\n"), "a:1:7: 'GPU0' is there twice, or there are too many columns");
}

}  // namespace
}  // namespace espalier
