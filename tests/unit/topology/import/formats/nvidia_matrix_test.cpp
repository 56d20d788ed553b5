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

TEST(NvidiaMatrix, OneNumaNodeIsOneCpuWhateverTheMatrixSays) {
  // Boards that show PCIe no NUMA nodes part all devices; the system has gpu0 and gpu1 on node 0, gpu2 on node 1.
  const std::string text =
      "\tGPU0\tGPU1\tGPU2\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
      "GPU0\t X \tSYS\tSYS\t0-15,64-79\t0\t\tN/A\n"
      "GPU1\tSYS\t X \tSYS\t0-15,64-79\t0\t\tN/A\n"
      "GPU2\tSYS\tSYS\t X \t16-31,80-95\t1\t\tN/A\n";
  const ImportedTopology imported = import_good({text});
  EXPECT_EQ(imported.topology.node_count(), 5U);  // three GPUs, two CPUs
  EXPECT_EQ(links(imported.topology, "gpu0", "cpu0"), "1 x 15.75 GB/s pcie");
  EXPECT_EQ(links(imported.topology, "gpu1", "cpu0"), "1 x 15.75 GB/s pcie");
  EXPECT_EQ(links(imported.topology, "gpu2", "cpu1"), "1 x 15.75 GB/s pcie");
  ASSERT_FALSE(imported.warnings.empty());
  EXPECT_EQ(imported.warnings[0].message, "gpu0-gpu1 is SYS in the matrix, and next to the same CPUs and NUMA node");
  // Without a NUMA node the matrix stands: virtual machines show all CPUs for every GPU.
  EXPECT_EQ(import_good({"\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tSYS\t0-9\tN/A\nGPU1\tSYS\t X "
                         "\t0-9\tN/A\n"})
                .topology.node_count(),
            4U);
}

/// The box as launchers, terminals and shells leave it: each gives the same machine.
TEST(NvidiaMatrix, WhatStandsAroundTheMatrixIsPassedOver) {
  const Topology plain = import_good({box}).topology;
  const auto with_label = [](const std::string& label, const std::string& end) {
    std::string text;
    for (std::size_t at = 0; at < box.size();) {
      const std::size_t newline = box.find('\n', at);
      text += label + box.substr(at, newline - at) + end;
      at = newline + 1;
    }
    return text;
  };
  std::string in_web = box;
  for (std::size_t at = in_web.find(' '); at != std::string::npos; at = in_web.find(' ', at + 2)) {
    in_web.replace(at, 1, "\xc2\xa0");
  }
  for (const std::string& text :
       {"$ nvidia-smi topo -m\n" + box + "\nroot@node0:~# \n", box + "[user@gpu-01 ~]$ exit\n", with_label("", "\r\n"),
        with_label("[0] ", "\n"), with_label("[1,0]<stdout>:", "\n"), with_label("node01: ", "\n"),
        with_label("2026-01-02T03:04:05.678Z ", "\n"), with_label("(Worker pid=7, ip=10.0.0.1) ", "\n"), in_web,
        "\xef\xbb\xbf" + box, box + box, box + "\tGPU0\tGPU1\nGPU0\tX\tOK\nGPU1\tOK\tX\n",
        "+-----+\n| NVIDIA-SMI 580.1 |\n+-----+\n" + box}) {
    EXPECT_EQ(import_good({text}).topology.links().size(), plain.links().size()) << text.substr(0, 80);
    EXPECT_EQ(import_good({text}).topology.nodes().size(), plain.nodes().size()) << text.substr(0, 80);
  }
}

TEST(NvidiaMatrix, ReportsHaveItAnywhere) {
  // vLLM's collect_env and other reports of an environment: packages for pages, then the matrix, then variables.
  std::string packages = "Collecting environment information...\nGPU 0: NVIDIA A100\nGPU 1: NVIDIA A100\n";
  for (int i = 0; i < 400; ++i) packages += "[pip3] a-package-" + std::to_string(i) + "==1.2.3\n";
  const Topology plain = import_good({box}).topology;
  const std::string report = packages + "GPU Topology:\n  " + box + "\nVLLM_CONFIGURE_LOGGING=0\n";
  EXPECT_EQ(import_good({report}).topology.links().size(), plain.links().size());
  // Behind a log of NCCL that is no machine by itself, and with the rates of NVLinks another page down.
  std::string log;
  for (int i = 0; i < 200; ++i) log += "node0:77:77 [0] NCCL INFO Channel 00/24 : 0 1 2 3 and what else it says\n";
  EXPECT_EQ(links(import_good({log + box}).topology, "gpu0", "gpu1"), "2 x 25 GB/s nvlink");
  const std::string rates =
      "GPU 0: Tesla V100-SXM2\n\t Link 0: 20.0 GB/s\n\t Link 1: 20.0 GB/s\n"
      "GPU 1: Tesla V100-SXM2\n\t Link 0: 20.0 GB/s\n\t Link 1: 20.0 GB/s\n";
  EXPECT_EQ(links(import_good({report + packages + rates}).topology, "gpu0", "gpu1"), "2 x 20 GB/s nvlink");
  EXPECT_EQ(refusal(packages), "a looks like none of the formats that are read");
}

TEST(NvidiaMatrix, BlanksMayStandOnEitherSideOfTheCells) {
  const Topology topology = import_good({"\tGPU0\tGPU1\nGPU0\t X\t NV4\nGPU1\t NV4\t X\n"}).topology;
  EXPECT_EQ(links(topology, "gpu0", "gpu1"), "4 x 25 GB/s nvlink");
}

TEST(NvidiaMatrix, ThePcieTableAddsToTheOther) {
  // `topo -m` hides behind NV2 what `topo -mp` shows: both GPUs below one switch.
  const std::string with = "\tGPU0\tGPU1\nGPU0\t X \tNV2\nGPU1\tNV2\t X \n";
  const std::string pcie = "\tGPU0\tGPU1\nGPU0\t X \tPIX\nGPU1\tPIX\t X \n";
  const Topology topology = import_good({with + "\nLegend:\n\n$ nvidia-smi topo -mp\n" + pcie}).topology;
  EXPECT_EQ(links(topology, "gpu0", "pcie0"), "1 x 15.75 GB/s pcie");
  EXPECT_EQ(links(topology, "gpu0", "gpu1"), "2 x 25 GB/s nvlink");
}

TEST(NvidiaMatrix, ThePcieTableAloneIsSaidToHaveNoNvlinks) {
  const std::string pcie = "$ nvidia-smi topo -mp\n\tGPU0\tGPU1\nGPU0\t X \tPIX\nGPU1\tPIX\t X \n";
  EXPECT_EQ(import_good({pcie}).warnings.at(0).message, "nvidia-smi topo -mp leaves NVLinks out");
  EXPECT_EQ(test::codes(import_good({"\tGPU0\tGPU1\nGPU0\t X \tNV2\nGPU1\tNV2\t X \n" + pcie})), "I101 I101");
}

TEST(NvidiaMatrix, CellsThatGrewTogetherAreReadApart) {
  // Wide tables lose a tab where the terminal turns: always behind the same column.
  std::string grown = box;
  for (const auto& [apart, together] : {std::pair<std::string, std::string>{"SYS\tPIX", "SYSPIX"},
                                        {"SYS\tNODE", "SYSNODE"},
                                        {"PHB\tSYS\t16", "PHBSYS16"},
                                        {" X \tSYS\t16", " XSYS\t16"},
                                        {"GPU3\tNIC0\tCPU", "GPU3NIC0CPU"}}) {
    const std::size_t at = grown.find(apart);
    ASSERT_NE(at, std::string::npos) << apart;
    grown.replace(at, apart.size(), together);
  }
  const Topology plain = import_good({box}).topology, read = import_good({grown}).topology;
  EXPECT_EQ(read.nodes().size(), plain.nodes().size());
  for (const char* gpu : {"gpu0", "gpu1", "gpu2", "gpu3", "mlx5_3"}) {
    for (const char* to : {"gpu0", "gpu1", "pcie0", "cpu0", "cpu1"}) {
      EXPECT_EQ(links(read, gpu, to), links(plain, gpu, to)) << gpu << " " << to;
    }
  }
  // NV1 and 8-15, or NV18 and -15: such a word is refused.
  EXPECT_EQ(refusal("\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV18-15\n"),
            "a:2:10: 'NV18-15' is not how GPU0 reaches GPU1");
}

TEST(NvidiaMatrix, PartsOfSwitchedMachinesAreNoMeshes) {
  const auto alike = [](int gpus, const std::string& cell) {
    std::string text;
    for (int column = 0; column < gpus; ++column) text += "\tGPU" + std::to_string(column);
    for (int row = 0; row < gpus; ++row) {
      text += "\nGPU" + std::to_string(row);
      for (int column = 0; column < gpus; ++column) text += "\t" + (row == column ? "X" : cell);
    }
    return text + "\n";
  };
  // Three GPUs of an A800 or H800 have eight links each, not sixteen; three of a DGX-2 six, not twelve.
  EXPECT_EQ(links(import_good({alike(3, "NV8")}).topology, "gpu0", "nvswitch"), "1 x 200 GB/s nvlink");
  EXPECT_EQ(links(import_good({alike(3, "NV6")}).topology, "gpu0", "nvswitch"), "1 x 150 GB/s nvlink");
  // Boards of four join all pairs: 12 links of an A100, 18 of an H100. A V100 has six: a DGX-2's part is behind its
  // switches.
  EXPECT_EQ(links(import_good({alike(4, "NV4")}).topology, "gpu0", "gpu3"), "4 x 25 GB/s nvlink");
  EXPECT_EQ(links(import_good({alike(4, "NV6")}, {.preset = "h100-sxm"}).topology, "gpu0", "gpu3"),
            "6 x 25 GB/s nvlink");
  const ImportedTopology part = import_good({alike(4, "NV6")}, {.preset = "v100-sxm"});
  EXPECT_EQ(links(part.topology, "gpu0", "nvswitch"), "1 x 150 GB/s nvlink");
  EXPECT_EQ(links(part.topology, "gpu0", "gpu3"), "");
}

TEST(NvidiaMatrix, AGpuWithoutARowIsSaid) {
  // Its NVLinks are in the other rows, its CPU is not.
  const std::string text = "\tGPU0\tGPU1\tGPU2\tCPU Affinity\nGPU0\t X \tNV12\tNV12\t0-7\nGPU2\tNV12\tNV12\t X \t0-7\n";
  const ImportedTopology imported = import_good({text});
  EXPECT_EQ(links(imported.topology, "gpu1", "nvswitch"), "1 x 300 GB/s nvlink");
  EXPECT_EQ(imported.warnings.at(0).message, "gpu1 has no row: its CPU is not known");
}

TEST(NvidiaMatrix, TwoMachinesInOneFileAreRefused) {
  const std::string one = "\tGPU0\tGPU1\nGPU0\t X \tNV2\nGPU1\tNV2\t X \n";
  const std::string other = "\tGPU0\tGPU1\nGPU0\t X \tNV4\nGPU1\tNV4\t X \n";
  EXPECT_EQ(refusal(one + other), "a:5:10: how GPU0 reaches GPU1 differs from line 2");
  EXPECT_EQ(refusal(one + "\tGPU0\tGPU1\tGPU2\n"),
            "a:4:12: another table begins here, with GPU2, which the one before has not");
}

TEST(NvidiaMatrix, RefusalsNameThePlace) {
  EXPECT_EQ(refusal("\tGPU0\tGPU1\tNIC0\nGPU0\t X \tNV1\tPIXNODE\n"), "a:2:17: the row has more than 3 cells");
  EXPECT_EQ(refusal("\tGPU0\tGPU1\tNIC0\nGPU0\t X \tNV1\tPIXNOD\n"), "a:2:14: 'PIXNOD' is not how GPU0 reaches NIC0");
  EXPECT_EQ(refusal("\tGPU0\tGPU1\nGPU0\t X \n"), "a:2:9: the row has 1 cell of 2");
  EXPECT_EQ(refusal("\tGPU0\tGPU1\nGPU0\tNV1\t X \n"), "a:2:6: 'NV1' is not how GPU0 reaches GPU0");
  EXPECT_EQ(refusal("\tGPU0\tGPU1\nGPU0\t X \tPIX\nGPU1\tSYS\t X \n"),
            "a:3:1: how GPU1 reaches GPU0 differs from the way back in line 2");
  EXPECT_EQ(refusal("\tGPU0\tGPU1\tGPU2\nGPU0\t X \tPIX\tPIX\n"), "a:1:1: neither GPU1 nor GPU2 has a row");
  EXPECT_EQ(refusal("\tGPU0\tGPU1\nGPU0\t X \tOK\n"),
            "a:2:10: this table says which GPUs may reach each other, not by what");
  EXPECT_EQ(refusal("\tGPU0\tGPU1\n GPU0\tX\tTNS\n GPU1\tDR\tX\n"),
            "a:2:9: this table says which GPUs may reach each other, not by what");
  EXPECT_EQ(refusal("GPU0  X  NV1\nGPU1 NV1  X\n"), "a:1:1: there is no line of column names (GPU0 GPU1 ...)");
  EXPECT_EQ(refusal("\tGPU0\tGPU0\nGPU0\t X \tX\n"), "a:1:7: 'GPU0' is there twice, or there are too many columns");
}

}  // namespace
}  // namespace espalier
