#include <algorithm>

#include "tests/support/imported.h"

namespace espalier {
namespace {

using test::import_good;
using test::links;
using test::refusal;

TEST(AstraNetwork, BlocksPerDimension) {
  // NPUs count the first dimension fastest: a ring of 4, two of them under switches, two of those joined.
  const Topology topology = import_good({R"(# a comment
topology: [ Ring, Switch, FullyConnected ]
npus_count: [ 4, 2, 2 ]
bandwidth: [ 200.0, 100, 12.5 ]  # GB/s
latency: [ 50.0, 936.25, 2000 ]  # ns
)"})
                                .topology;
  EXPECT_EQ(topology.rank_count(), 16U);
  EXPECT_EQ(links(topology, "npu0", "npu1"), "1 x 200 GB/s dim1");
  EXPECT_EQ(links(topology, "npu7", "npu4"), "1 x 200 GB/s dim1");
  EXPECT_EQ(links(topology, "npu1", "switch1"), "1 x 100 GB/s dim2");
  EXPECT_EQ(links(topology, "npu5", "switch1"), "1 x 100 GB/s dim2");
  EXPECT_EQ(links(topology, "npu3", "npu11"), "1 x 12.5 GB/s dim3");
  EXPECT_EQ(topology.node_count(), 24U);  // 8 pairs along the second dimension
  EXPECT_EQ(
      topology.link(topology.links_between(topology.find_node("npu1"), topology.find_node("switch1"))[0]).latency.count,
      936'250);
}

TEST(AstraNetwork, RefusalsNameThePlace) {
  const auto with = [](const std::string& block, const std::string& count, const std::string& rate) {
    return "topology: [" + block + "]\nnpus_count: [" + count + "]\nbandwidth: [" + rate + "]\nlatency: [1]\n";
  };
  EXPECT_EQ(refusal(with("Torus", "4", "1")), "a:1:12: 'Torus' is no block of ASTRA-sim's");
  EXPECT_EQ(refusal(with("Ring", "-4", "1")), "a:2:14: '-4' is no number of NPUs");
  EXPECT_EQ(refusal(with("Ring", "4", "tbd")), "a:3:13: 'tbd' is no rate in GB/s");
  EXPECT_EQ(refusal(with("Ring", "4, 2", "1")), "a:2:13: 'npus_count' has no entry for each dimension");
  EXPECT_EQ(refusal(with("Ring, Ring", "60000, 60000", "1, 1")), "a:4:10: 'latency' has no entry for each dimension");
  EXPECT_EQ(refusal(with("FullyConnected", "60000", "1")), "a: more than 1000000 links");
  EXPECT_EQ(refusal("npus_count: [\n"), "a:2:1: this is not YAML: a comma or a ']' is missing before this");
}

TEST(Simai, ServersNvswitchesAndSwitches) {
  const Topology topology = import_good({"6 2 1 1 5 H100\n4 5\n0 4 1440Gbps 0.000025ms 0\n1 4 1440Gbps 0.000025ms 0\n"
                                         "0 5 400Gbps 0.0005ms 0\n2 5 400Gbps 0.0005ms 0\n3 5 400Gbps 0.0005ms 0\n"})
                                .topology;
  EXPECT_EQ(topology.rank_count(), 4U);
  EXPECT_EQ(links(topology, "server0.gpu1", "nvswitch0"), "1 x 180 GB/s nvlink");
  EXPECT_EQ(links(topology, "server1.gpu1", "switch0"), "1 x 50 GB/s net");
  const NodeId from = topology.find_node("server1.gpu1"), to = topology.find_node("switch0");
  EXPECT_EQ(topology.link(topology.links_between(from, to)[0]).latency.count, 500'000);
}

TEST(Simai, RefusalsNameThePlace) {
  EXPECT_EQ(refusal("6 2 1 9 5 H100\n4 5\n"), "a:1:1: the first line is not that of a SimAI topology");
  EXPECT_EQ(refusal("6 2 1 1 5 H100\n4 9\n"), "a:2:3: the second line does not name the switches");
  EXPECT_EQ(refusal("6 2 1 1 5 H100\n4 5\n0 7 1Gbps 1ms 0\n"), "a:3:3: '7' is not another node");
  EXPECT_EQ(refusal("6 2 1 1 5 H100\n4 5\n0 1 fast 1ms 0\n").substr(0, 6), "a:3:5:");
  EXPECT_EQ(refusal("6 2 1 1 5 H100\n4 5\n0 1\n"), "a:3:1: this is no cable");
}

/// Two packages; below the first a bridge with a GPU and a card, below the second a GPU; one NVSwitch.
const std::string lstopo = R"(<topology version="3.0"><object type="Machine" gp_index="1">
<object type="Package" gp_index="2"><object type="Bridge" bridge_type="0-1">
<object type="Bridge" pci_busid="0000:01:00.0" pci_link_speed="15.753846">
  <object type="PCIDev" gp_index="10" pci_busid="0000:02:00.0" pci_type="0302 [10de:1db8]" pci_link_speed="15.753846">
    <object type="OSDev" gp_index="20" name="nvml1"/></object>
  <object type="PCIDev" gp_index="11" pci_busid="0000:03:00.0" pci_type="0207 [15b3:1017]" pci_link_speed="15.753846">
    <object type="OSDev" gp_index="21" name="ib0"/><object type="OSDev" gp_index="22" name="mlx5_0"/></object>
</object></object></object>
<object type="Package" gp_index="3">
  <object type="PCIDev" gp_index="12" pci_busid="0000:04:00.0" pci_type="0302 [10de:1db8]" pci_link_speed="7.876923">
    <object type="OSDev" gp_index="23" name="nvml0"/></object>
  <object type="PCIDev" gp_index="13" pci_busid="0000:05:00.0" pci_type="0680 [10de:1ac2]" subtype="NVSwitch"/>
  <object type="PCIDev" gp_index="14" pci_busid="0000:06:00.0" pci_type="0300 [1a03:2000]"/></object>
</object>
<distances2hetero nbobjs="3" name="NVLinkBandwidth"><indexes>OSDev:20 PCIDev:13 </indexes>
<indexes>OSDev:23 </indexes>
<u64values>1000000 25000 0 25000 </u64values>
<u64values>0 50000 0 50000 1000000 </u64values></distances2hetero></topology>)";

TEST(Hwloc, HasTheTreeAndTheNvlinks) {
  const Topology topology = import_good({lstopo}).topology;
  EXPECT_EQ(topology.rank_count(), 2U);
  EXPECT_EQ(links(topology, "gpu1", "pcie0"), "1 x 15.753 GB/s pcie");
  EXPECT_EQ(links(topology, "mlx5_0", "pcie0"), "1 x 15.753 GB/s pcie");
  EXPECT_EQ(links(topology, "gpu0", "cpu1"), "1 x 7.876 GB/s pcie");
  EXPECT_EQ(links(topology, "gpu1", "nvswitch0"), "1 x 25 GB/s nvlink");
  EXPECT_EQ(links(topology, "nvswitch0", "gpu0"), "1 x 50 GB/s nvlink");
  EXPECT_EQ(links(topology, "cpu0", "cpu1"), "1 x 20 GB/s smp");
}

TEST(Hwloc, PairsOfGpusBehindSwitchesAreNoLinks) {
  // What hwloc-annotate's transitive closure adds.
  std::string text = lstopo;
  text.replace(text.find("0 25000 </u64values>"), 1, "150000");
  text.replace(text.find("<u64values>0 50000 0"), 12, "<u64values>0");
  text.replace(text.find(" 0 50000 1000000 "), 2, " 150000");
  const Topology topology = import_good({text}).topology;
  EXPECT_EQ(links(topology, "gpu0", "gpu1"), "");
  EXPECT_EQ(links(topology, "gpu1", "nvswitch0"), "1 x 25 GB/s nvlink");
}

TEST(Hwloc, GroupsThatNvlinkDoesNotJoinAreSaid) {
  std::string text = lstopo.substr(0, lstopo.find("<distances2hetero"));
  text.insert(text.rfind("</object>\n</object>"), R"(<object type="PCIDev" gp_index="15" subtype="NVSwitch"/>)");
  const std::string matrix =
      R"(<distances2hetero name="NVLinkBandwidth"><indexes>OSDev:20 PCIDev:13 OSDev:23 PCIDev:15</indexes>)";
  // Each GPU leads to a switch of its own.
  const ImportedTopology imported = import_good(
      {text + matrix + "<u64values>0 5 0 0 5 0 0 0 0 0 0 5 0 0 5 0</u64values></distances2hetero></topology>"});
  EXPECT_EQ(test::codes(imported), "I102 I101");
  EXPECT_EQ(refusal(text + matrix + "<u64values>0 5 0</u64values></distances2hetero></topology>").substr(0, 8),
            "a:15:2: ");
}

/// A package with GPUs of one model, each below a port of its own, at these rates in GB/s.
std::string idle_box(const std::vector<std::string>& rates) {
  std::string text = "<topology version=\"2.0\"><object type=\"Machine\"><object type=\"Package\" gp_index=\"1\">";
  for (std::size_t i = 0; i < rates.size(); ++i) {
    const std::string speed = " pci_link_speed=\"" + rates[i] + "\"", bus = std::to_string(i + 1);
    text += "<object type=\"Bridge\" bridge_type=\"1-1\" pci_busid=\"0000:1" + bus + ":00.0\"" + speed +
            "><object type=\"PCIDev\" gp_index=\"2" + bus + "\" pci_busid=\"0000:2" + bus +
            ":00.0\" pci_type=\"0302 [10de:1e04] [19da:2503] a1\"" + speed + "/></object>";
  }
  return text + "</object></object></topology>";
}

TEST(Hwloc, AnIdleGpusRateIsNotWhatItCan) {
  // 3.938 GB/s now, 15.753 while the other works: both can do that, and so can the ports above them.
  const ImportedTopology imported = import_good({idle_box({"3.938462", "15.753846"})});
  EXPECT_EQ(links(imported.topology, "gpu0", "cpu0"), "1 x 15.753 GB/s pcie");
  EXPECT_EQ(links(imported.topology, "gpu1", "cpu0"), "1 x 15.753 GB/s pcie");
  EXPECT_EQ(test::codes(imported), "I103");
  // A slot of eight lanes is not at rest; sixteen lanes of PCIe 2 are.
  const ImportedTopology narrow = import_good({idle_box({"7.876923", "15.753846", "8.000000"})});
  EXPECT_EQ(links(narrow.topology, "gpu0", "cpu0"), "1 x 7.876 GB/s pcie");
  EXPECT_EQ(links(narrow.topology, "gpu2", "cpu0"), "1 x 15.753 GB/s pcie");
  // All idle: no file has their rate.
  const ImportedTopology idle = import_good({idle_box({"3.938462", "4.000000"})}, {.preset = "v100-sxm"});
  EXPECT_EQ(links(idle.topology, "gpu0", "cpu0"), "1 x 15.75 GB/s pcie");
  EXPECT_EQ(test::codes(idle).substr(0, 4), "I103");
  EXPECT_EQ(links(import_good({idle_box({"15,753846"})}).topology, "gpu0", "cpu0"), "1 x 15.753 GB/s pcie");
}

TEST(Hwloc, ServersConsolesAreNoGpus) {
  // ES1000: AMD's, but a board management controller's.
  std::string text = idle_box({"15.753846", "15.753846"});
  const std::size_t at = text.find("pci_type=\"");
  ASSERT_NE(at, std::string::npos);
  const std::size_t begin = at + 10;
  text.replace(begin, text.find('"', begin) - begin, "0300 [1002:515e] [0014:0019] 02");
  EXPECT_EQ(import_good({text}).topology.rank_count(), 1U);
}

TEST(Hwloc, NothingToRunOnIsRefused) {
  EXPECT_EQ(refusal("<topology><object type=\"Machine\"/></topology>"), "a has neither GPUs nor hosts");
}

const std::string showtopo = R"(
============================ ROCm System Management Interface ============================
================================= Hops between two GPUs ==================================
       GPU0         GPU1         GPU2
GPU0   0            1            2
GPU1   1            0            1
GPU2   2            1            0
=============================== Link Type between two GPUs ===============================
       GPU0         GPU1         GPU2
GPU0   0            XGMI         XGMI
GPU1   XGMI         0            XGMI
GPU2   XGMI         XGMI         0
======================================= Numa Nodes =======================================
GPU[0]		: (Topology) Numa Node: 0
GPU[0]		: (Topology) Numa Affinity: 0
GPU[1]		: (Topology) Numa Node: 0
GPU[2]		: (Topology) Numa Node: 1
================================== End of ROCm SMI Log ===================================
)";

TEST(RocmTopology, LinksAreThoseOfOneHop) {
  const Topology topology = import_good({showtopo}, {.preset = "mi300x"}).topology;
  EXPECT_EQ(links(topology, "gpu0", "gpu1"), "1 x 64 GB/s xgmi");
  EXPECT_EQ(links(topology, "gpu0", "gpu2"), "");
  EXPECT_EQ(links(topology, "gpu1", "cpu0"), "1 x 63 GB/s pcie");
  EXPECT_EQ(links(topology, "gpu2", "cpu1"), "1 x 63 GB/s pcie");
  EXPECT_EQ(links(topology, "cpu0", "cpu1"), "1 x 20 GB/s smp");
}

TEST(RocmTopology, WeightsTellNeighboursWhereHopsDoNot) {
  // Drivers of MI250X count every xGMI path as one hop; 15 is the weight of one link. A ring of four.
  const std::string text = R"($ rocm-smi --showtopo
================================= Weight between two GPUs =================================
       GPU0         GPU1         GPU2         GPU3
GPU0   0            15           30           15
GPU1   15           0            15           30
GPU2   30           15           0            15
GPU3   15           30           15           0
================================== Hops between two GPUs ==================================
       GPU0         GPU1         GPU2         GPU3
GPU0   0            1            1            1
GPU1   1            0            1            1
GPU2   1            1            0            1
GPU3   1            1            1            0
================================ Link Type between two GPUs ===============================
       GPU0         GPU1         GPU2         GPU3
GPU0   0            XGMI         XGMI         XGMI
GPU1   XGMI         0            XGMI         XGMI
GPU2   XGMI         XGMI         0            XGMI
GPU3   XGMI         XGMI         XGMI         0
=================================== End of ROCm SMI Log ===================================
root@node:~#
)";
  const ImportedTopology imported = import_good({text}, {.preset = "mi250"});
  const Topology& topology = imported.topology;
  // A pair of GPUs may have several links, which nothing here tells.
  ASSERT_FALSE(imported.warnings.empty());
  EXPECT_NE(
      std::ranges::find(imported.warnings, "it does not say how many xGMI links a pair of GPUs has: one is counted",
                        &Diagnostic::message),
      imported.warnings.end());
  EXPECT_EQ(links(topology, "gpu0", "gpu1"), "1 x 50 GB/s xgmi");
  EXPECT_EQ(links(topology, "gpu0", "gpu3"), "1 x 50 GB/s xgmi");
  EXPECT_EQ(links(topology, "gpu0", "gpu2"), "");
  EXPECT_EQ(links(topology, "gpu1", "gpu3"), "");
  std::string labelled;
  for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) {
    labelled += "node-1: " + text.substr(at, text.find('\n', at) + 1 - at);
  }
  EXPECT_EQ(import_good({labelled}).topology.link_count(), topology.link_count());
}

TEST(RocmTopology, WhatWasCutIsNotRead) {
  EXPECT_EQ(links(import_good({[] {
                    std::string text;
                    for (std::size_t at = 0; at < showtopo.size();) {
                      const std::size_t end = showtopo.find('\n', at) + 1;
                      text += "[1,0]<stdout>:" + showtopo.substr(at, end - at);
                      at = end;
                    }
                    return text;
                  }()})
                      .topology,
                  "gpu2", "cpu1"),
            "1 x 15.75 GB/s pcie");
  // A terminal that turned within the last column; a row that is not there.
  std::string wrapped = showtopo, without_row = showtopo;
  const std::size_t last = wrapped.rfind("XGMI\nGPU1");
  wrapped.insert(last + 2, "\n");
  EXPECT_EQ(refusal(wrapped), "a:10:34: 'XG' does not belong here");
  const std::size_t row = without_row.rfind("GPU2   XGMI");
  without_row.erase(row, without_row.find('\n', row) + 1 - row);
  EXPECT_EQ(refusal(without_row), "a:1:1: there is no table of link types, or the tables are of unlike sizes");
}

TEST(RocmTopology, NumaNodesInEitherFormAreReadAndMissingOnesSaid) {
  const std::string tables =
      "===== Hops between two GPUs =====\n GPU0 GPU1\nGPU0 0 1\nGPU1 1 0\n"
      "===== Link Type between two GPUs =====\n GPU0 GPU1\nGPU0 0 XGMI\nGPU1 XGMI 0\n===== Numa Nodes =====\n";
  // Three GPUs that all are one hop apart: on an MI250 the third may be behind the second.
  const std::string three =
      "===== Hops between two GPUs =====\n GPU0 GPU1 GPU2\nGPU0 0 1 1\nGPU1 1 0 1\nGPU2 1 1 0\n"
      "===== Link Type between two GPUs =====\n GPU0 GPU1 GPU2\nGPU0 0 XGMI XGMI\nGPU1 XGMI 0 XGMI\nGPU2 XGMI XGMI "
      "0\n===== =====\nGPU[0] : (Topology) Numa Node: 0\nGPU[1] : (Topology) Numa Node: 0\nGPU[2] : (Topology) Numa "
      "Node: 0\n";
  EXPECT_EQ(import_good({three}).warnings.at(0).message,
            "it has no weights: all GPUs that xGMI joins count as neighbours");
  for (const std::string numa : {"GPU[0]\t\t: (Topology) Numa Node: 0\nGPU[1]\t\t: (Topology) Numa Node: 1\n",
                                 "GPU 0     : (Topology) Numa Node: 0\nGPU 1     : (Topology) Numa Node: 1\n"}) {
    const ImportedTopology imported = import_good({tables + numa});
    EXPECT_EQ(links(imported.topology, "gpu1", "cpu1"), "1 x 15.75 GB/s pcie") << numa;
    EXPECT_EQ(test::codes(imported), "I101 I101 I101");
  }
  const ImportedTopology without = import_good({tables});
  EXPECT_EQ(links(without.topology, "gpu1", "cpu0"), "1 x 15.75 GB/s pcie");
  EXPECT_EQ(test::codes(without), "I104 I101 I101");
}

/// A table of so many GPUs: the same in all cells.
std::string rocm_table(const std::string& title, int gpus, const std::string& cell) {
  std::string text = "===== " + title + " between two GPUs =====\n       ";
  for (int column = 0; column < gpus; ++column) text += "GPU" + std::to_string(column) + "         ";
  for (int row = 0; row < gpus; ++row) {
    text += "\nGPU" + std::to_string(row) + "   ";
    for (int column = 0; column < gpus; ++column) text += (row == column ? "0" : cell) + "            ";
  }
  return text + "\n\n";
}

TEST(RocmTopology, TypesOfLinksAloneAreRead) {
  // What sglang's check_env has under "AMD Topology:", of MI300X and of one GPU; of two as ROCm issue 1503 has it.
  const ImportedTopology eight = import_good({"AMD Topology: \n\n\n==== ROCm System Management Interface ====\n" +
                                              rocm_table("Link Type", 8, "XGMI") + "==== End of ROCm SMI Log ====\n"},
                                             {.preset = "mi300x"});
  EXPECT_EQ(links(eight.topology, "gpu0", "gpu7"), "1 x 64 GB/s xgmi");
  EXPECT_EQ(eight.warnings.at(0).message, "it has no weights: all GPUs that xGMI joins count as neighbours");
  EXPECT_EQ(import_good({rocm_table("Link Type", 1, "")}).topology.rank_count(), 1U);
  const Topology pair =
      import_good({"== Link Type between two GPUs ==\nGPU0 GPU1\nGPU0 0 PCIE\nGPU1 PCIE 0\n"}).topology;
  EXPECT_EQ(links(pair, "gpu0", "gpu1"), "");
  EXPECT_EQ(links(pair, "gpu1", "cpu0"), "1 x 15.75 GB/s pcie");
}

TEST(RocmTopology, TablesAsAToolOfRcclPrintsThem) {
  const std::string tables =
      "**Link Type between two GPUs**\n      GPU0        GPU1\nGPU0  X           XGMI\nGPU1  XGMI        X\n\n"
      "**Hops between two GPUs**\n      GPU0        GPU1\nGPU0  X           1\nGPU1  1           X\n\n"
      "**Weight between two GPUs**\n      GPU0        GPU1\nGPU0  X           15\nGPU1  15          X\n";
  EXPECT_EQ(links(import_good({tables}).topology, "gpu0", "gpu1"), "1 x 50 GB/s xgmi");
}

TEST(RocmTopology, TablesOfManyGpusAreReadToTheirEnd) {
  // A box of MI300X cut in parts of a die (CPX) is 64 GPUs: the types begin 80 KiB down.
  const std::string text =
      rocm_table("Weight", 64, "15") + rocm_table("Hops", 64, "1") + rocm_table("Link Type", 64, "XGMI");
  EXPECT_EQ(links(import_good({text}).topology, "gpu3", "gpu63"), "1 x 50 GB/s xgmi");
}

TEST(RocmTopology, RefusalsNameThePlace) {
  EXPECT_EQ(refusal("== Hops between two GPUs\n GPU0 GPU1\nGPU0 0\n"), "a:3:1: the row has 1 cell of 2");
  EXPECT_EQ(refusal("== Hops between two GPUs\n GPU0\nGPU0 0\n"),
            "a:1:1: there is no table of link types, or the tables are of unlike sizes");
}

TEST(Dot, NodesEdgesAndDefaults) {
  const std::string text = R"(// made for this test
strict graph "a machine" {
  rankdir=LR; node [host="box0"]; edge [latency="1 us", class=nvlink]
  subgraph cluster_0 { gpu0 -- gpu1 -- "gpu2" [bandwidth="25 GB/s"]; }
  gpu0:p -- nvswitch [label="100 Gbit/s"];  /* a port */
  hub [kind=switch]
  gpu2 -- hub [label="slow", bandwidth="1 GB/s"]
  gpu1 -- hub
})";
  const ImportedTopology imported = import_good({text});
  const Topology& topology = imported.topology;
  EXPECT_EQ(topology.rank_count(), 3U);
  EXPECT_EQ(links(topology, "box0.gpu0", "box0.gpu1"), "1 x 25 GB/s nvlink");
  EXPECT_EQ(links(topology, "box0.gpu2", "box0.gpu1"), "1 x 25 GB/s nvlink");
  EXPECT_EQ(links(topology, "box0.gpu0", "box0.nvswitch"), "1 x 12.5 GB/s nvlink");
  EXPECT_EQ(links(topology, "box0.gpu2", "box0.hub"), "1 x 1 GB/s nvlink");
  EXPECT_EQ(test::codes(imported), "I101");  // gpu1 -- hub
  EXPECT_EQ(links(import_good({"digraph { a -> b [bandwidth=\"2 GB/s\"]; b -> a [bandwidth=\"3 GB/s\"] }"}).topology,
                  "b", "a"),
            "1 x 3 GB/s link");
}

TEST(Dot, RefusalsNameThePlace) {
  EXPECT_EQ(refusal("graph {\n a -> b }"), "a:2:4: a graph has --, a digraph ->");
  EXPECT_EQ(refusal("graph { a -- b "), "a:1:16: a '}' is missing");
  EXPECT_EQ(refusal("graph { a -- a }"), "a:1:14: an edge leads from a node to itself");
  EXPECT_EQ(refusal("graph { a [kind=toaster] }"), "a:1:17: 'toaster' is no kind of node");
  EXPECT_EQ(refusal("graph { a -- b [bandwidth=fast] }").substr(0, 7), "a:1:27:");
  EXPECT_EQ(refusal("graph { a -- {b c} }"), "a:1:14: edges between subgraphs are not read");
  EXPECT_EQ(refusal("graph { \"a }"), "a:1:9: this text has no end");
  EXPECT_EQ(refusal("graph { a ! b }"), "a:1:11: this is not DOT: '!'");
  EXPECT_EQ(refusal("graph { a [kind"), "a:1:12: a ']' is missing");
}

/// Files of other tools that are no machines, cut to what they are known by, and what they are called.
TEST(Formats, WhatIsNoMachineIsNamed) {
  const std::vector<std::pair<std::string, std::string>> files = {
      {"<graphs version=\"1\"/>", "which rings and trees NCCL chose"},
      {"<algo name=\"x\"/>", "a schedule of MSCCL"},
      {R"({"gpus": [{"id": 0, "threadblocks": []}]})", "a plan of MSCCL++"},
      {"box:1:2 [0] NCCL INFO Channel 00/02 : 0 1\n", "a log of NCCL"},
      {"num_ranks 2\n\nrank 0 {\n", "a schedule in GOAL"},
      {R"({"espalier_schedule": 1})", "a plan"},
      {"# nThread 1 nGpus 8 minBytes 8 maxBytes 16\n", "what nccl-tests printed"},
      {"#      out-of-place\n#  time   algbw   busbw\n", "what nccl-tests printed"},
      {"# OSU MPI-CUDA Allreduce Latency Test v7.0\n", "what the OSU benchmarks printed"},
      {"# OSU NCCL Allreduce Latency Test v7.4\n", "what the OSU benchmarks printed"},
      {"#    Intel(R) MPI Benchmarks 2021.2, MPI-1 part\n", "what the Intel MPI Benchmarks printed"},
      {"ACCESS TABLE:\n 0000:0c:00.0\n", "what amd-smi topology printed"},
      {"HOPS TABLE:\n 0000:0c:00.0\n", "what amd-smi topology printed"},
      {"LINK METRIC TABLE:\n       bdf  bit_rate max_bandwidth link_type GPU0\n", "what amd-smi xgmi printed"},
      {"CA 'mlx5_0'\n\tCA type: MT4123\n\tPort 1:\n\t\tRate: 200\n\t\tPort GUID: 0x1\n", "what ibstat printed"},
      {"Infiniband device 'mlx5_0' port 1 status:\n\tlink_layer:      InfiniBand\n", "what ibstatus printed"},
      {"mlx5_0 port 1 ==> ib0 (Up)\n", "what ibdev2netdev printed"},
      {"hca_id:\tmlx5_0\n\tport:\t1\n\t\tport_lid:\t7\n", "what ibv_devinfo printed"},
      {" #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]\n", "what perftest printed"},
      {"[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]\n", "what p2pBandwidthLatencyTest printed"},
      {"nvbandwidth Version: v0.8\n", "what nvbandwidth printed"},
      {"[CUDA Bandwidth Test] - Starting...\n", "what CUDA's sample bandwidthTest printed"},
      {"GPU 0: NVIDIA H200 (UUID: GPU-1)\n", "what nvidia-smi -L printed"},
      {"Machine (16GB)\n  Socket L#0\n", "what lstopo drew"},
      {"switches:\n  S1:\n    switches:\n    - S2\nblocks:\n- switch: S2\n", "a model of topograph"},
      {R"([{"links": [{"compounded_links": []}]}])", "what NetQ knows of a network"},
      {"ENABLE_QCN 1\nFLOW_FILE flow.txt\n", "a configuration of ns-3 for SimAI"},
      {"Switch\t8 \"Switch1\"\n[1]\t\"Hca1\"[1]\n\nHca\t2 \"Hca1\"\n[1]\t\"Switch1\"[1]\n", "a network for ibsim"},
      {"RingName=r0 Nodes=node[1-4]\n", "Slurm's topology of rings"},
      {R"({"system": {"(Topology) Hops between DRM devices 0 and 1": "1"}})", "what rocm-smi printed as JSON"},
      {"Collective: Alltoall\n Count  Size   Time, us   Bandwidth, GB/s\n", "what ucc_perftest printed"},
      {R"([{"gpu": 0, "link_metrics": {"link_type": "XGMI", "links": []}}])", "what amd-smi xgmi printed"},
      {"gpu,gpu_0,gpu_1\n0000:03:00.0,SELF,PCIE\n", "what amd-smi topology printed as CSV"},
      {"ROCk module is loaded\nHSA System Attributes\n", "what rocminfo printed"},
      {"{ SW Ports:41 SystemGUID:b859 NodeGUID:b859 LID:0001 PN:01 } { CA Ports:01 } PHY=4x LOG=ACT SPD=50\n",
       "what ibdiagnet wrote"},
      {"# This database file was automatically generated by IBDIAG\n", "what ibdiagnet wrote"},
      {"LLDP neighbors:\nInterface:    eth0, via: LLDP\n", "what lldpctl printed"},
      {"|  NvLink Link Status  |\nGPUs:\n    gpuId 0:\n        U U U U\n", "what dcgmi printed"},
      {"| GPU ID: 0         | Topology Information    |\n", "what dcgmi printed"},
      {"==============NVSMI LOG==============\nAttached GPUs : 8\n", "what nvidia-smi -q printed"},
      {"gpu,link_accessibility_gpu_0,link_accessibility_gpu_1\n", "what amd-smi topology printed as CSV"},
      {R"({"topology-name": "Hierarchical", "topologies-per-dim": ["Ring"], "dimensions-count": 1})",
       "ASTRA-sim's network file of its first version"},
      {R"({"gpus": [{"id": 0, "inputChunks": 1, "threadblocks": []}]})", "a plan of MSCCL++'s older dialect"},
      {"| NVIDIA-SMI 580.82   Driver Version: 580.82 |\n", "what nvidia-smi printed"},
      {R"({"header": {"id": "0x1"}, "coll_perf": {}})", "a record of NCCL's inspector"},
      {R"({"schemaVersion": 1, "traceEvents": []})", "a trace of the PyTorch profiler"},
      {R"({"traceEvents": []})", "a timeline"},
      {R"({"version": "2.5", "pg_config": {}})", "a dump of PyTorch's flight recorder"},
      {R"({"logical-dims": ["8"]})", "ASTRA-sim's dimensions for ns-3"},
      {R"({"scheduling-policy": "FIFO", "all-reduce-implementation": ["ring"]})",
       "a system file of ASTRA-sim, which chooses among its algorithms"},
      {R"(<tree root="0" index="0">)", "trees of ForestColl"},
      {R"({"gpus_per_node": 16, "alpha": 0.7})", "a topology of TACCL"},
      {"# Format: collective_type,min_bytes,max_bytes\n", "a configuration of NCCL's tuner"},
      {"HYBRID_TRANSFORMER model_parallel_NPU_group: 8\n", "a workload of SimAI"},
      {std::string("\x0a\x0a\x05") + "0.0.4", "a Chakra trace"},
  };
  for (const auto& [text, what] : files) EXPECT_EQ(refusal(text), "a is " + what + ", not a machine");
  EXPECT_EQ(refusal("some prose"), "a looks like none of the formats that are read");
}

TEST(Hwloc, GpusWithoutAComputeDriverAreNumberedInOrder) {
  // What a hwloc without CUDA and NVML writes: PCI devices, and their files of the display driver. A management
  // controller's display adapter is no GPU; a GPU that a driver has numbered keeps its number.
  const auto device = [](const std::string& bus, const std::string& type, const std::string& inner) {
    return "<object type=\"PCIDev\" gp_index=\"" + bus + "\" pci_busid=\"0000:" + bus + ":00.0\" pci_type=\"" + type +
           " a1 00\" pci_link_speed=\"31.5\">" + inner + "</object>";
  };
  const Topology topology =
      import_good({"<topology version=\"2.0\"><object type=\"Machine\"><object type=\"Package\" gp_index=\"1\">" +
                   device("01", "0302 [10de:2330] [10de:16c1]", "<object type=\"OSDev\" name=\"renderD128\"/>") +
                   device("02", "0300 [1a03:2000] [1a03:2000]", "<object type=\"OSDev\" name=\"card0\"/>") +
                   device("03", "0380 [1002:74a1] [1002:74a1]", "") +
                   device("04", "0302 [10de:2330] [10de:16c1]", "<object type=\"OSDev\" name=\"nvml0\"/>") +
                   device("05", "1200 [1da3:1060] [1da3:0000]", "") + "</object></object></topology>"})
          .topology;
  EXPECT_EQ(topology.rank_count(), 4U);
  EXPECT_EQ(links(topology, "gpu0", "cpu0"), "1 x 31.5 GB/s pcie");
  EXPECT_EQ(links(topology, "gpu3", "cpu0"), "1 x 31.5 GB/s pcie");
}

}  // namespace
}  // namespace espalier
