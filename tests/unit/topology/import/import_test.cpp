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

// Two GPUs and two NICs as nvidia-smi prints them: behind switches of PCIe, and behind processors of Grace.
const std::string behind_switches =
    "\tGPU0\tGPU1\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\n"
    "GPU0\t X \tNV18\tPXB\tNODE\t0-55\t0\nGPU1\tNV18\t X \tNODE\tPXB\t0-55\t0\n"
    "NIC0\tPXB\tNODE\t X \tNODE\nNIC1\tNODE\tPXB\tNODE\t X \n";
const std::string behind_grace =
    "\tGPU0\tGPU1\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
    "GPU0\t X \tNV18\tNODE\tSYS\t0-71\t0,2-9\t2\nGPU1\tNV18\t X \tSYS\tNODE\t72-143\t1,18-25\t18\n"
    "NIC0\tNODE\tSYS\t X \tSYS\nNIC1\tSYS\tNODE\tSYS\t X \n";

TEST(Import, PresetsGiveTheRatesOfTheirMachines) {
  // Data sheets, one way: PCIe 5 63, PCIe 6 121; 400 and 800 Gbit/s a NIC; C2C 450 GB/s.
  struct Expected {
    const std::string& file;
    std::string preset, to_gpu, to_nic, net;
  };
  for (const Expected& each : {Expected{behind_switches, "b200-sxm", "63 GB/s pcie", "63 GB/s pcie", "50 GB/s"},
                               Expected{behind_switches, "b300-sxm", "121 GB/s pcie", "121 GB/s pcie", "100 GB/s"},
                               Expected{behind_grace, "gb200", "450 GB/s c2c", "63 GB/s pcie", "50 GB/s"},
                               Expected{behind_grace, "gb300", "450 GB/s c2c", "121 GB/s pcie", "100 GB/s"}}) {
    SCOPED_TRACE(each.preset);
    const ImportedTopology imported = import_good({each.file}, {.preset = each.preset, .boxes = 2});
    EXPECT_EQ(imported.profile, "nccl-blackwell");
    EXPECT_EQ(imported.gpu, each.preset.substr(0, each.preset.find('-')));
    EXPECT_EQ(provenance_of(imported, "net", "bandwidth"), each.net + " preset " + each.preset);
    const bool is_grace = &each.file == &behind_grace;
    const std::string above = is_grace ? "box0.cpu0" : "box0.pcie0";
    EXPECT_EQ(links(imported.topology, "box0.gpu0", above), "1 x " + each.to_gpu);
    EXPECT_EQ(links(imported.topology, "box0.NIC0", above), "1 x " + each.to_nic);
  }
}

TEST(Import, LinksThatAreDownAreSaid) {
  const ImportedTopology imported = import_good({matrix, rates});
  EXPECT_EQ(test::codes(imported).substr(0, 9), "I102 I102");
  EXPECT_EQ(imported.warnings[0].message, "NVLink 1 of gpu1 is inactive");
  EXPECT_EQ(imported.warnings[1].message, "gpu1 has 2 NVLinks here, and 1 are up in b");
}

TEST(Import, APasteOfBothPrintoutsIsOneMachine) {
  // Tables of nvidia-smi one behind the other in one file, and what the shell printed between them.
  for (const std::string& text :
       {matrix + "$ nvidia-smi nvlink -s\n" + rates, rates + "\n$ nvidia-smi topo -m\n" + matrix}) {
    const ImportedTopology imported = import_good({text});
    EXPECT_EQ(links(imported.topology, "gpu0", "gpu1"), "2 x 25 GB/s nvlink");
    EXPECT_EQ(provenance_of(imported, "nvlink", "bandwidth"), "25 GB/s captured a: less its line coding");
    EXPECT_EQ(test::codes(imported).substr(0, 9), "I102 I102");
    EXPECT_EQ(imported.profile, "nccl-hopper");
  }
}

/// `count` GPUs with links 0 to 5, where `down` are inactive.
std::string links_of_gpus(int count, const std::vector<int>& down, const std::string& rate = "26.562 GB/s") {
  std::string text;
  for (int gpu = 0; gpu < count; ++gpu) {
    text += "GPU " + std::to_string(gpu) + ": NVIDIA H100 NVL (UUID: GPU-" + std::to_string(gpu) + ")\n";
    for (int link = 0; link < 6; ++link) {
      const bool is_up = std::ranges::find(down, link) == down.end();
      text += "\t Link " + std::to_string(link) + ": " + (is_up ? rate : "<inactive>") + "\n";
    }
  }
  return text;
}

TEST(Import, ALastLineThatIsCutIsLeftOut) {
  // Of a matrix the other half has what its last row had; without it a machine is told from the rest.
  const std::string whole = "\tGPU0\tGPU1\tGPU2\nGPU0\tX\tNV4\tNV4\nGPU1\tNV4\tX\tNV4\nGPU2\tNV4\tNV4\tX\n";
  for (const std::size_t kept : {whole.size() - 3, whole.size() - 5, whole.size() - 8}) {
    const ImportedTopology imported = import_good({whole.substr(0, kept)});
    EXPECT_EQ(links(imported.topology, "gpu2", "gpu1"), "4 x 25 GB/s nvlink");
    EXPECT_EQ(imported.warnings[0].message, "the last line is cut");
  }
  EXPECT_EQ(refusal(whole.substr(0, whole.size() - 3) + "\n"), "a:4:13: the row has 2 cells of 3");
  EXPECT_EQ(refusal(whole.substr(0, 25)), "a:2:8: 'NV' is not how GPU0 reaches GPU1");  // What is left does not do.
}

TEST(Import, InactiveLinksThatAreAlikeAreOneWarning) {
  const std::string pair = "\tGPU0\tGPU1\nGPU0\t X \tNV4\nGPU1\tNV4\t X \n";
  const ImportedTopology imported = import_good({pair, links_of_gpus(2, {2, 5})});
  EXPECT_EQ(test::codes(imported), "I102 I101");
  EXPECT_EQ(imported.warnings[0].message, "NVLinks 2, 5 of each of gpu0 and gpu1 are inactive");
}

TEST(Import, AGpuOffTheFabricIsSaidAndTheOthersAreRead) {
  // What nvidia-smi prints below a GPU that is off the fabric, and a prompt before all.
  const std::string three = "\tGPU0\tGPU1\tGPU2\nGPU0\t X \tNV6\tSYS\nGPU1\tNV6\t X \tSYS\nGPU2\tSYS\tSYS\t X \n";
  const std::string text =
      "$ nvidia-smi nvlink -s\n" + links_of_gpus(2, {}) +
      "GPU 2: NVIDIA H100 (UUID: GPU-2)\nNVML: Unable to retrieve NVLink information as all links are "
      "inActive\n";
  const ImportedTopology imported = import_good({three, text});
  EXPECT_EQ(links(imported.topology, "gpu0", "gpu1"), "6 x 25 GB/s nvlink");
  EXPECT_EQ(imported.warnings[0].message, "no NVLink of gpu2 is up");
}

TEST(Import, LinksAreReadBehindLabelsAndInOtherLocales) {
  const std::string pair = "\tGPU0\tGPU1\nGPU0\t X \tNV6\nGPU1\tNV6\t X \n";
  const std::string plain = links_of_gpus(2, {});
  const std::string comma = links_of_gpus(2, {}, "26,562 GB/s");
  std::string labelled;
  for (std::size_t at = 0; at < plain.size(); at = plain.find('\n', at) + 1) {
    labelled += "[1,0]<stdout>:" + plain.substr(at, plain.find('\n', at) + 1 - at);
  }
  std::string remote = plain;  // -s and -R of the same GPUs count a link once.
  for (int gpu = 0; gpu < 2; ++gpu) {
    remote += "GPU " + std::to_string(gpu) + ": NVIDIA H100 NVL (UUID: GPU-0)\n";
    for (int link = 0; link < 6; ++link)
      remote += "\t Link " + std::to_string(link) + ": Remote Device 00000000:C5:00.0: Link 4\n";
  }
  for (const std::string& text : {plain, comma, labelled, remote}) {
    const ImportedTopology imported = import_good({pair, text});
    EXPECT_EQ(provenance_of(imported, "nvlink", "bandwidth"), "25 GB/s captured b: less its line coding");
    EXPECT_EQ(test::codes(imported), "I101");  // Of PCIe: all links are up.
  }
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

/// A compute tray of four GPUs beside Grace CPUs, whose NVSwitches are in the rack.
const std::string tray =
    "\tGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
    "GPU0\t X \tNV18\tNV18\tNV18\tNODE\tSYS\t0-71\t0,2-9\t2\n"
    "GPU1\tNV18\t X \tNV18\tNV18\tNODE\tSYS\t0-71\t0,2-9\t10\n"
    "GPU2\tNV18\tNV18\t X \tNV18\tSYS\tNODE\t72-143\t1,18-25\t18\n"
    "GPU3\tNV18\tNV18\tNV18\t X \tSYS\tNODE\t72-143\t1,18-25\t26\n"
    "NIC0\tNODE\tNODE\tSYS\tSYS\t X \tSYS\nNIC1\tSYS\tSYS\tNODE\tNODE\tSYS\t X \n";

TEST(NvlinkDomain, TraysOfARackShareItsSwitches) {
  for (const std::string preset : {"gb200", ""}) {
    const Topology topology = import_good({tray}, {.preset = preset, .boxes = 18}).topology;
    EXPECT_EQ(topology.rank_count(), 72U);
    // 18 links of 50 GB/s with the preset, of 25 GB/s without.
    const std::string rate = preset.empty() ? "450" : "900";
    EXPECT_EQ(links(topology, "box0.gpu0", "nvswitch"), "1 x " + rate + " GB/s nvlink");
    EXPECT_EQ(links(topology, "box17.gpu3", "nvswitch"), "1 x " + rate + " GB/s nvlink");
    EXPECT_EQ(topology.node(topology.find_node("nvswitch")).host, "");
  }
}

TEST(NvlinkDomain, RacksHaveOneEach) {
  const ImportedTopology imported = import_good({tray}, {.preset = "gb300", .boxes = 36});
  EXPECT_EQ(links(imported.topology, "box17.gpu0", "rack0.nvswitch"), "1 x 900 GB/s nvlink");
  EXPECT_EQ(links(imported.topology, "box18.gpu0", "rack1.nvswitch"), "1 x 900 GB/s nvlink");
  EXPECT_EQ(test::codes(imported),
            "I106 I101");  // Which trays share a rack, and the rate between sockets, are assumed.
}

TEST(NvlinkDomain, ABlockOfSlurmIsOne) {
  const std::string blocks = "BlockName=b1 Nodes=n[1-4]\nBlockName=b2 Nodes=n[5-8]\nBlockSizes=4\n";
  const Topology topology = import_good({tray, blocks}, {.preset = "gb200"}).topology;
  EXPECT_EQ(topology.rank_count(), 32U);
  EXPECT_EQ(links(topology, "n1.gpu0", "b1.nvswitch"), "1 x 900 GB/s nvlink");
  EXPECT_EQ(links(topology, "n4.gpu0", "b1.nvswitch"), "1 x 900 GB/s nvlink");
  EXPECT_EQ(links(topology, "n5.gpu0", "b2.nvswitch"), "1 x 900 GB/s nvlink");
}

TEST(NvlinkDomain, TheModelTellsARackToo) {
  std::string box = "\tGPU0\tGPU1\tGPU2\tNIC0\n", models;
  for (int gpu = 0; gpu < 3; ++gpu) {
    box += "GPU" + std::to_string(gpu);
    for (int other = 0; other < 3; ++other) box += gpu == other ? "\tX" : "\tNV18";
    box += "\tPIX\n";
  }
  for (const auto& [model, is_rack] : {std::pair{"NVIDIA GB200", true}, std::pair{"NVIDIA B200", false}}) {
    models = "GPU 0: " + std::string(model) + " (UUID: GPU-0)\n\t Link 0: 53.125 GB/s\n";
    const Topology topology = import_good({box, models}, {.boxes = 2}).topology;
    EXPECT_EQ(topology.find_node("nvswitch").is_none(), !is_rack) << model;
    EXPECT_EQ(topology.find_node("box1.nvswitch").is_none(), is_rack) << model;
  }
}

TEST(NvlinkDomain, BoxesOfEightStayApart) {
  std::string text = "\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n";
  text += "GPU0\t X \tNV18\tPIX\t0-9\t0\tN/A\nGPU1\tNV18\t X \tPIX\t0-9\t0\tN/A\nNIC0\tPIX\tPIX\t X \n";
  const Topology topology = import_good({text}, {.preset = "b200-sxm", .boxes = 2}).topology;
  EXPECT_EQ(links(topology, "box0.gpu0", "box0.gpu1"), "18 x 50 GB/s nvlink");
  EXPECT_TRUE(topology.find_node("nvswitch").is_none());
}

/// gpu0 with NIC0 and NIC1; NIC2 is SYS to it.
const std::string three_nics =
    "\tGPU0\tNIC0\tNIC1\tNIC2\nGPU0\t X \tPIX\tPIX\tSYS\nNIC2\tSYS\tSYS\tSYS\t X \n"
    "NIC Legend:\n NIC0: mlx5_1\n NIC1: mlx5_2\n NIC2: mlx5_0\n";

TEST(Nics, OneThatIsFarFromAllGpusIsNamed) {
  const ImportedTopology imported = import_good({three_nics}, {.boxes = 2});
  ASSERT_FALSE(imported.warnings.empty());
  EXPECT_EQ(imported.warnings[0].code, "I107");
  EXPECT_EQ(imported.warnings[0].message, "mlx5_0 is SYS to all GPUs: perhaps of another network");
  EXPECT_NE(imported.warnings[0].help.find("--nics mlx5_1,mlx5_2"), std::string::npos);
  EXPECT_EQ(links(imported.topology, "box0.mlx5_0", "fabric"), "1 x 12.5 GB/s net");
}

TEST(Nics, TheFlagLeavesTheOthersOut) {
  const ImportedTopology imported = import_good({three_nics}, {.boxes = 2, .nics = "mlx5_[1-2]"});
  EXPECT_TRUE(imported.topology.find_node("box0.mlx5_0").is_none());
  EXPECT_EQ(links(imported.topology, "box1.mlx5_2", "fabric"), "1 x 12.5 GB/s net");
  EXPECT_EQ(test::codes(imported).find("I107"), std::string::npos);
  EXPECT_EQ(refusal(three_nics, {.nics = "mlx5_9"}), "--nics: a has no NIC 'mlx5_9'");
  EXPECT_EQ(refusal(three_nics, {.nics = "mlx5_[1-"}), "--nics: 'mlx5_[1-' is no list of names");
  EXPECT_EQ(refusal("SwitchName=s0 Nodes=a,b\n", {.nics = "mlx5_0"}),
            "--nics is of a machine, and the file describes a fabric alone");
}

TEST(Import, NamesTheProfileAndWhatSwitchesCanDo) {
  std::string box = "\tGPU0\tGPU1\tGPU2\n";
  for (const std::string row : {"GPU0\tX\tNV12\tNV12\n", "GPU1\tNV12\tX\tNV12\n", "GPU2\tNV12\tNV12\tX\n"}) box += row;
  const auto reduces = [](const ImportedTopology& imported) {
    const Node& node = imported.topology.node(imported.topology.find_node("nvswitch"));
    return node.reduction && node.multicast;
  };
  const ImportedTopology ampere = import_good({box}, {.preset = "a100-sxm", .in_network = true});
  EXPECT_EQ(ampere.profile, "nccl-ampere");
  EXPECT_FALSE(reduces(ampere));  // NVSwitches of A100 do not add.
  EXPECT_TRUE(ampere.notes.empty());
  const ImportedTopology hopper = import_good({box}, {.preset = "h100-sxm"});
  EXPECT_EQ(hopper.profile, "nccl-hopper");
  EXPECT_FALSE(reduces(hopper));
  ASSERT_EQ(hopper.notes.size(), 1U);
  EXPECT_EQ(hopper.notes[0].substr(0, 45), "nvswitch can copy and add in the network, whi");
  EXPECT_TRUE(reduces(import_good({box}, {.preset = "h100-sxm", .in_network = true})));
  EXPECT_EQ(import_good({nccl, matrix}).profile, "nccl-hopper");  // sm="90"
  EXPECT_EQ(import_good({matrix}).profile, "");
  for (const std::string_view preset : preset_names()) {
    const std::string profile = import_good({box}, {.preset = std::string(preset)}).profile;
    EXPECT_EQ(profile.empty(), preset == "mi250") << preset;  // None is shipped for MI250.
  }
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
