#include <algorithm>

#include "tests/support/imported.h"
#include "topology/import/known_files.h"
#include "topology/yaml/read_topology.h"
#include "topology/yaml/write_topology.h"

namespace espalier {
namespace {

using test::import_good;
using test::links;
using test::refusal;

const std::string matrix =
    "\tGPU0\tGPU1\tNIC0\tCPU Affinity\n"
    "GPU0\t X \tNV2\tPIX\t0-7\n"
    "GPU1\tNV2\t X \tPIX\t0-7\n"
    "NIC Legend:\n  NIC0: mlx5_0\n";
const std::string nccl = R"(<system version="1"><cpu numaid="0"><pci busid="0:1:0.0" class="0x060400">
  <pci busid="0:2:0.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16"><gpu dev="0" sm="90"/></pci>
  <pci busid="0:3:0.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16"><gpu dev="1" sm="90"/></pci>
  <pci busid="0:4:0.0" class="0x020000" link_speed="16.0 GT/s PCIe" link_width="8">
    <nic><net name="mlx5_0" dev="0" speed="100000"/></nic></pci></pci></cpu></system>)";
const std::string rates =
    "GPU 0: NVIDIA H100 (UUID: GPU-0)\n\t Link 0: 26.562 GB/s\n\t Link 1: 26.562 GB/s\n"
    "GPU 1: NVIDIA H100 (UUID: GPU-1)\n\t Link 0: 26.562 GB/s\n\t Link 1: <inactive>\n";

std::string provenance_of(const ImportedTopology& imported, std::string_view link_class, std::string_view key) {
  std::string text;
  for (const ProvenanceRow& row : imported.provenance) {
    if (row.link_class != link_class || row.key != key) continue;
    text += (text.empty() ? "" : "; ") + row.value + " " + std::string(to_string(row.origin)) + " " + row.source;
  }
  return text;
}

TEST(Import, MergesFilesOfOneMachine) {
  // The slots of the one, the NVLinks of the other; the cards are one by their name.
  const ImportedTopology imported = import_good({nccl, matrix});
  EXPECT_EQ(imported.topology.node_count(), 5U);
  EXPECT_EQ(links(imported.topology, "gpu0", "gpu1"), "2 x 25 GB/s nvlink");
  EXPECT_EQ(links(imported.topology, "gpu0", "pcie0"), "1 x 63 GB/s pcie");
  EXPECT_EQ(links(imported.topology, "mlx5_0", "pcie0"), "1 x 15.75 GB/s pcie");
  // In the other order the tree of the matrix, with what the NCCL file knows of its links.
  EXPECT_EQ(links(import_good({matrix, nccl}).topology, "gpu0", "pcie0"), "1 x 63 GB/s pcie");
}

TEST(Import, BetterOriginsWin) {
  EXPECT_EQ(provenance_of(import_good({matrix}), "nvlink", "bandwidth"), "25 GB/s assumed no file has it");
  EXPECT_EQ(provenance_of(import_good({matrix}, {.preset = "b200-sxm"}), "nvlink", "bandwidth"),
            "50 GB/s preset b200-sxm");
  EXPECT_EQ(provenance_of(import_good({matrix, nccl}), "nvlink", "bandwidth"), "25 GB/s preset compute capability 90");
  EXPECT_EQ(provenance_of(import_good({matrix, rates}, {.preset = "b200-sxm"}), "nvlink", "bandwidth"),
            "25 GB/s captured b: less its line coding");
  EXPECT_EQ(provenance_of(import_good({matrix}), "nvlink", "latency"), "700 ns assumed no file has it");
}

TEST(Import, LinksThatAreDownAreSaid) {
  const ImportedTopology imported = import_good({matrix, rates});
  EXPECT_EQ(test::codes(imported).substr(0, 9), "I102 I102");
  EXPECT_EQ(imported.warnings[0].message, "an NVLink of gpu1 is inactive");
  EXPECT_EQ(imported.warnings[1].message, "gpu1 has 2 NVLinks here, and 1 are up in b");
}

TEST(Import, CopiesAreJoinedByTheirCards) {
  const Topology topology = import_good({nccl, matrix}, {.boxes = 3}).topology;
  EXPECT_EQ(topology.rank_count(), 6U);
  EXPECT_EQ(topology.rank_name(Rank(5)), "box2.gpu1");
  EXPECT_EQ(topology.node(topology.find_node("box2.gpu1")).host, "box2");
  EXPECT_EQ(links(topology, "box1.mlx5_0", "fabric"), "1 x 12.5 GB/s net");  // 100 Gbit/s
  EXPECT_EQ(links(topology, "box1.gpu0", "box1.gpu1"), "2 x 25 GB/s nvlink");
  EXPECT_EQ(links(topology, "box0.gpu0", "box1.gpu0"), "");
}

TEST(Import, WhatIsWrittenIsReadBackWithItsProvenance) {
  const ImportedTopology imported = import_good({nccl, matrix, rates}, {.boxes = 2, .name = "two $boxes"});
  const std::string text = write_topology(imported.topology, imported.provenance);
  const TopologyReading again = read_topology_text(text, "again");
  ASSERT_TRUE(again.topology.has_value());
  EXPECT_EQ(again.provenance, imported.provenance);
  EXPECT_EQ(write_topology(*again.topology, again.provenance), text);
  const TopologyReading json = read_topology_text(write_topology_json(imported.topology, imported.provenance), "json");
  EXPECT_EQ(json.provenance, imported.provenance);
}

TEST(Import, NamesAreWrittenSoThatTheyCanBeRead) {
  // A host whose name is no UTF-8, a node with a blank, a class with a colon.
  const ImportedTopology imported =
      import_good({"graph { node [host=\"\xA8 x\"]; \"gpu 0\" -- \"gpu>1\" [class=\"a: b\", bandwidth=\"1 GB/s\"] }"},
                  {.name = "n\x01"});
  EXPECT_EQ(imported.topology.rank_name(Rank(0)), "__x.gpu_0");
  EXPECT_EQ(links(imported.topology, "__x.gpu_0", "__x.gpu_1"), "1 x 1 GB/s a__b");
  EXPECT_TRUE(read_topology_text(write_topology(imported.topology, imported.provenance), "again").topology.has_value());
}

TEST(Import, RefusesWhatMakesNoMachine) {
  EXPECT_EQ(refusal(rates), "a has values for a machine that no other file describes");
  EXPECT_EQ(refusal("hello"), "a looks like none of the formats that are read");
  EXPECT_EQ(refusal(matrix, {.as = "nvidia-topology"}), "there is no format 'nvidia-topology'");
  EXPECT_EQ(refusal(matrix, {.preset = "h100"}), "there is no preset 'h100'");
  EXPECT_EQ(refusal(matrix, {.boxes = 0}), "0 copies of a machine");
  EXPECT_EQ(refusal("\tGPU0\tGPU1\nGPU0\t X \tNV1\nGPU1\tNV1\t X \n", {.boxes = 2}),
            "a has no NIC by which machines could be joined");
}

TEST(Import, EveryFormatHasANameOfItsOwn) {
  std::vector<std::string_view> names;
  for (const ImportFormat& format : import_formats()) names.push_back(format.name);
  std::ranges::sort(names);
  EXPECT_EQ(std::ranges::adjacent_find(names), names.end());
}

TEST(KnownFiles, ChakraTracesByTheirMetadata) {
  using namespace std::string_literals;
  const auto what = [](const std::string& text) {
    const auto known = recognise_file(text);
    return known ? std::string(known->what) : std::string();
  };
  // A version first, or attributes, in metadata of up to 2^28 bytes; what an attribute holds means nothing.
  EXPECT_EQ(what("\x07\x0a\x05"s + "0.0.4H"), "a Chakra trace");
  EXPECT_EQ(what("\xda\xd0\x01\x12\x1d\x0a\x06"s + "schema\xea\x01<algo name=\"a\">"), "a Chakra trace");
  EXPECT_EQ(what("<algo name=\"a\"><gpu/></algo>"), "a schedule of MSCCL");
  EXPECT_EQ(what("\x07\x12\x05\x0a\x09zzz"s), "");
  EXPECT_EQ(what("\x7f\x10\0\0\0\0\0\0\x02"s), "a compiled schedule in GOAL");
  EXPECT_EQ(what("\x7f\x10\0\0\0"s), "");
}

}  // namespace
}  // namespace espalier
