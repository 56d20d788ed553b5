#include "tests/support/imported.h"

namespace espalier {
namespace {

using test::import_good;
using test::links;
using test::refusal;

const std::string fabric = R"(#
# Topology file: generated for this test
src/query_smp.c:195; noise of the tool

vendid=0x2c9
switchguid=0xa(a)
Switch  36 "S-000a"         # "MF0;leaf0:MQM8700/U1" enhanced port 0 lid 1 lmc 0
[1]     "H-0001"[1](11)         # "node01 mlx5_0" lid 4 4xHDR
[2]     "H-0002"[1](12)         # "node01 mlx5_1" lid 5 4xHDR
[3]     "H-0003"[1](13)         # "MT4123 ConnectX6 Mellanox Technologies" lid 6 4xEDR
[9]     "S-000b"[1]             # "spine" lid 2 4xNDR
[10]    "S-000b"[2]             # "spine" lid 2 4xNDR
[11]    "S-000a"[12]            # "MF0;leaf0:MQM8700/U1" lid 1 4xHDR

caguid=0x1
Ca      1 "H-0001"          # "node01 mlx5_0"
[1](11)     "S-000a"[1]         # lid 4 lmc 0 "MF0;leaf0:MQM8700/U1" lid 1 4xHDR
)";

TEST(Ibnetdiscover, JoinsHostsBySwitches) {
  const ImportedTopology imported = import_good({fabric});
  const Topology& topology = imported.topology;
  EXPECT_EQ(topology.rank_count(), 2U);  // node01 with two adapters, and one that only has a GUID
  EXPECT_EQ(links(topology, "node01.mlx5_0", "leaf0"), "1 x 25 GB/s net");  // 200 Gbit/s; both ends list it
  EXPECT_EQ(links(topology, "node01", "node01.mlx5_1"), "1 x 25 GB/s pcie");
  EXPECT_EQ(links(topology, "H-0003.nic", "leaf0"), "1 x 12.5 GB/s net");
  EXPECT_EQ(links(topology, "leaf0", "spine"), "2 x 50 GB/s net");
  EXPECT_EQ(test::codes(imported), "I104 I101");  // the cable from leaf0 to itself; how adapters are joined to hosts
}

/// The same fabric as iblinkinfo prints it, without the odd cable.
const std::string linked = R"(CA: node01 mlx5_0:
  0x0000000000000011      4    1[  ] ==( 4X  53.125 Gbps Active/  LinkUp)==>  1    1[  ] "MF0;leaf0:MQM8700/U1" ( )
CA: node01 mlx5_1:
  0x0000000000000012      5    1[  ] ==( 4X  53.125 Gbps Active/  LinkUp)==>  1    2[  ] "MF0;leaf0:MQM8700/U1" ( )
Switch: 0x000000000000000a MF0;leaf0:MQM8700/U1:
   1    1[  ] ==( 4X  53.125 Gbps Active/  LinkUp)==>  4    1[  ] "node01 mlx5_0" ( )
   1    2[  ] ==( 4X  53.125 Gbps Active/  LinkUp)==>  5    1[  ] "node01 mlx5_1" ( )
   1    3[  ] ==( 4X  25.78125 Gbps Active/  LinkUp)==>  6    1[  ] "node02 mlx5_0" ( Could be 53.125 Gbps)
   1    4[  ] ==(                Down/ Polling)==>  [  ] "" ( )
   1    9[  ] ==( 4X  106.25 Gbps Active/  LinkUp)==>  2    1[  ] "spine" ( )
   1   10[  ] ==( 4X  106.25 Gbps Active/  LinkUp)==>  2    2[  ] "spine" ( )
Switch: 0x000000000000000b spine:
   2    1[  ] ==( 4X  106.25 Gbps Active/  LinkUp)==>  1    9[  ] "MF0;leaf0:MQM8700/U1" ( )
   2    2[  ] ==( 4X  106.25 Gbps Active/  LinkUp)==>  1   10[  ] "MF0;leaf0:MQM8700/U1" ( )
)";

TEST(Iblinkinfo, HasTheFabricOfIbnetdiscover) {
  const ImportedTopology imported = import_good({linked});
  const Topology& topology = imported.topology;
  EXPECT_EQ(topology.rank_count(), 2U);
  EXPECT_EQ(links(topology, "node01.mlx5_0", "leaf0"), "1 x 25 GB/s net");  // both ends list it
  EXPECT_EQ(links(topology, "node01", "node01.mlx5_1"), "1 x 25 GB/s pcie");
  EXPECT_EQ(links(topology, "node02.mlx5_0", "leaf0"), "1 x 12.5 GB/s net");  // slower than it could be
  EXPECT_EQ(links(topology, "leaf0", "spine"), "2 x 50 GB/s net");
}

TEST(Iblinkinfo, LinesOfOneLineModeHaveBothEnds) {
  // As --line prints it: GUIDs and names on both sides, the own one filled up with blanks, and no blocks.
  const std::string near = "[  ] ==( 4X      25.78125 Gbps Active/  LinkUp)==>  ";
  const std::string text =
      "0x248a01 \"               node01 HCA-1\"    612    1" + near +
      "0xec0d01    496   20[  ] \"SwitchIB Mellanox\" ( )\n" + "0x248a02 \"               node02 HCA-1\"    532    1" +
      near + "0xec0d01    496   19[  ] \"SwitchIB Mellanox\" ( )\n" +
      "0xec0d01 \"SwitchIB Mellanox\"    496    9[  ] ==(                Down/ Polling)==>             [  ] \"\" ( "
      ")\n" +
      "0xec0d01 \"SwitchIB Mellanox\"    496   19" + near + "0x248a02    532    1[  ] \"node02 HCA-1\" ( )\n" +
      "0xec0d01 \"SwitchIB Mellanox\"    496   20" + near + "0x248a01    612    1[  ] \"node01 HCA-1\" ( )\n";
  const Topology topology = import_good({text}).topology;
  EXPECT_EQ(topology.rank_count(), 2U);
  EXPECT_EQ(topology.node_count(), 5U);
  EXPECT_EQ(links(topology, "node01.HCA-1", "S-496"), "1 x 12.5 GB/s net");
  EXPECT_EQ(links(topology, "S-496", "node02.HCA-1"), "1 x 12.5 GB/s net");
}

TEST(Iblinkinfo, ASwitchWithoutABlockIsKnownByItsPorts) {
  const std::string rate = "[  ] ==( 4X 10.0 Gbps (FDR10) Active/ LinkUp)==>  2   ";
  const Topology topology = import_good({"CA: node04 HCA-1:\n 0xf401  1 1" + rate + "9[  ] \"Infiniscale\" ( )\n" +
                                         "CA: node05 HCA-1:\n 0xf402 12 1" + rate + "7[  ] \"Infiniscale\" ( )\n"})
                                .topology;
  EXPECT_EQ(topology.rank_count(), 2U);
  EXPECT_EQ(links(topology, "node05.HCA-1", "Infiniscale"), "1 x 5 GB/s net");
}

TEST(Iblinkinfo, SaysWhereALineIsNoPort) {
  const std::string rate = "CA: a mlx5_0:\n 0x1 4 1[  ] ==( 4X 54.1 Gbps Active/ LinkUp)==> 1 1[  ] \"leaf\" ( )\n";
  EXPECT_NE(refusal({rate}).find(":2:"), std::string::npos) << refusal({rate});
  const std::string far = "CA: a mlx5_0:\n 0x1 4 1[  ] ==( 4X 53.125 Gbps Active/ LinkUp)==> 1 [  ] \"leaf\" ( )\n";
  EXPECT_NE(refusal({far}).find("is no port"), std::string::npos) << refusal({far});
  const std::string down = "CA: a mlx5_0:\n 0x1 4 1[  ] ==( Down/ Polling)==>  [  ] \"\" ( )\n";
  EXPECT_NE(refusal({down}).find("active"), std::string::npos) << refusal({down});
}

TEST(Iblinkinfo, APortThatWasCutIsSaidToBe) {
  const std::string last = "   2    2[  ] ==( 4X  106.25 Gbps Active/  LinkUp)==>  1   10[  ] \"MF0;leaf0:MQM8700/U1\"";
  const std::size_t begin = linked.find(last);
  for (const std::size_t kept : {std::size_t{13}, std::size_t{40}, last.size() - 9}) {
    const ImportedTopology imported = import_good({linked.substr(0, begin + kept)});
    EXPECT_NE(test::codes(imported).find("I104"), std::string::npos) << kept;
    EXPECT_EQ(links(imported.topology, "leaf0", "spine"), "2 x 50 GB/s net");
    EXPECT_EQ(refusal(linked.substr(0, begin + kept) + "\n").substr(0, 5), "a:14:") << kept;
  }
}

TEST(Ibnetdiscover, MachinesTakeTheirPlacesInIt) {
  const std::string machine = "\tGPU0\tNIC0\tNIC1\nGPU0\t X \tPIX\tPIX\nNIC Legend:\n NIC0: mlx5_1\n NIC1: mlx5_0\n";
  const Topology topology = import_good({machine, fabric}).topology;
  EXPECT_EQ(topology.rank_count(), 2U);
  EXPECT_EQ(topology.rank_name(Rank(0)), "node01.gpu0");
  EXPECT_EQ(links(topology, "node01.mlx5_0", "leaf0"), "1 x 25 GB/s net");
  EXPECT_EQ(links(topology, "node01.mlx5_1", "leaf0"), "1 x 25 GB/s net");
  // The adapter with no name is the first of its machine, at the rate that the fabric saw.
  EXPECT_EQ(links(topology, "H-0003.mlx5_1", "leaf0"), "1 x 12.5 GB/s net");
  EXPECT_EQ(links(topology, "H-0003.mlx5_0", "leaf0"), "");
}

TEST(Ibnetdiscover, FullPrintoutsHaveMoreBehindTheRate) {
  // `ibnetdiscover -f`: speed, width, virtual lanes in numbers.
  std::string full = fabric;
  for (const char* rate : {"4xHDR\n", "4xEDR\n", "4xNDR\n"}) {
    const std::string line_end(rate);
    const std::string longer = line_end.substr(0, 5) + " s=4 w=2 v=4 e=4\n";
    for (std::size_t at = full.find(line_end); at != std::string::npos; at = full.find(line_end, at + longer.size())) {
      full.replace(at, line_end.size(), longer);
    }
  }
  const Topology plain = import_good({fabric}).topology, read = import_good({full}).topology;
  EXPECT_EQ(links(read, "leaf0", "spine"), "2 x 50 GB/s net");
  EXPECT_EQ(links(read, "node01.mlx5_0", "leaf0"), links(plain, "node01.mlx5_0", "leaf0"));
  EXPECT_EQ(links(read, "H-0003.nic", "leaf0"), links(plain, "H-0003.nic", "leaf0"));
  EXPECT_EQ(read.links().size(), plain.links().size());
}

/// A text with something before each of its lines.
std::string labelled(const std::string& text, const std::string& label) {
  std::string all;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at) + 1;
    all += label + text.substr(at, end - at);
    at = end;
  }
  return all;
}

const std::vector<std::string> labels = {"node01: ", "0: ",     "[0] ", "[1,0]<stdout>:", "2026-01-02T03:04:05.678Z ",
                                         "> ",       "\x1b[0m", "    "};

TEST(Ibnetdiscover, LabelsBeforeItsLinesArePassedOver) {
  const Topology plain = import_good({fabric}).topology;
  for (const std::string& label : labels) {
    const Topology read = import_good({labelled(fabric, label)}).topology;
    EXPECT_EQ(read.links().size(), plain.links().size()) << label;
    EXPECT_EQ(links(read, "leaf0", "spine"), "2 x 50 GB/s net") << label;
  }
}

TEST(Slurm, LabelsBeforeItsLinesArePassedOverAndWhatIsTwiceCountsOnce) {
  const std::string conf =
      "# two leaves\nSwitchName=s0 Nodes=a,b\nSwitchName=s1 Nodes=c\nSwitchName=t Switches=s0,s1\n";
  const Topology plain = import_good({conf}).topology;
  for (const std::string& label : labels) {
    EXPECT_EQ(links(import_good({labelled(conf, label)}).topology, "s0", "t"), links(plain, "s0", "t")) << label;
  }
  EXPECT_EQ(links(import_good({conf + conf}).topology, "a", "s0"), links(plain, "a", "s0"));
  EXPECT_EQ(refusal(conf + "SwitchName=s0 Nodes=a,d\n"), "a:5:1: 's0' is there twice, with other nodes below it");
}

TEST(Ibnetdiscover, HostsOfOneNameAreNotOneHost) {
  // Two new machines that call themselves localhost: two hosts, and not one with twice the bandwidth.
  const std::string text = R"(switchguid=0xa(a)
Switch  36 "S-000a"         # "leaf0" enhanced port 0 lid 1 lmc 0
[1]     "H-0001"[1](11)         # "localhost HCA-1" lid 4 4xHDR
[2]     "H-0002"[1](12)         # "localhost HCA-1" lid 5 4xHDR

sysimgguid=0x1
caguid=0x1
Ca      1 "H-0001"          # "localhost HCA-1"
[1](11)     "S-000a"[1]         # lid 4 lmc 0 "leaf0" lid 1 4xHDR

sysimgguid=0x2
caguid=0x2
Ca      1 "H-0002"          # "localhost HCA-1"
[1](12)     "S-000a"[2]         # lid 5 lmc 0 "leaf0" lid 1 4xHDR
)";
  const ImportedTopology imported = import_good({text});
  EXPECT_EQ(imported.topology.rank_count(), 2U);
  EXPECT_EQ(links(imported.topology, "localhost.HCA-1", "leaf0"), "1 x 25 GB/s net");
  EXPECT_EQ(links(imported.topology, "H-0002.nic", "leaf0"), "1 x 25 GB/s net");
  EXPECT_EQ(imported.warnings.at(0).message, "several cards are called localhost HCA-1");
}

/// Two hosts; below the switch also an aggregation node, a router, a gateway in the switch's chassis, and one by its
/// name.
const std::string with_others = R"([root@head ~]# ibnetdiscover
vendid=0x2c9
devid=0xd2f0
sysimgguid=0xa
switchguid=0xa(a)
Switch  41 "S-000a"         # "MF0;leaf0:MQM8700/U1" enhanced port 0 lid 1 lmc 0
[1]     "H-0001"[1](11)         # "node01 mlx5_0" lid 4 4xHDR
[2]     "H-0002"[1](12)         # "gateway02 HCA-1" lid 5 4xHDR
[3]     "R-0003"[1]             # "ib-router" lid 6 4xHDR
[4]     "H-0004"[1](14)         # "Mellanox Skyway Gateway port" lid 7 4xHDR
[5]     "H-0005"[1](15)         # "Mezzanine port 5" lid 8 4xHDR
[41]    "H-0041"[1](41)         # "Mellanox Technologies Aggregation Node" lid 9 4xHDR

vendid=0x2c9
devid=0x1234
sysimgguid=0xa
caguid=0x5
Ca      1 "H-0005"          # "Mezzanine port 5"
[1](15)     "S-000a"[5]         # lid 8 lmc 0 "MF0;leaf0:MQM8700/U1" lid 1 4xHDR

rtguid=0x3
Rt      2 "R-0003"          # "ib-router"
[1](13)     "S-000a"[3]         # lid 6 lmc 0 "MF0;leaf0:MQM8700/U1" lid 1 4xHDR
)";

TEST(Ibnetdiscover, WhatIsNoHostIsLeftOutAndSaid) {
  const ImportedTopology imported = import_good({with_others});
  EXPECT_EQ(imported.topology.rank_count(), 2U);  // A host may be called gateway02.
  EXPECT_EQ(imported.topology.node_count(), 5U);  // Two hosts, their adapters, the switch.
  ASSERT_FALSE(imported.warnings.empty());
  EXPECT_EQ(imported.warnings[0].code, "I104");
  EXPECT_EQ(imported.warnings[0].message,
            "1 SHARP aggregation node, 1 router and 2 gateways are no hosts and were left out");
  ASSERT_EQ(imported.notes.size(), 1U);
  EXPECT_EQ(imported.notes[0].substr(0, 34), "leaf0 can copy and add in the netw");
  const std::string machine = "\tGPU0\tNIC0\nGPU0\t X \tPIX\nNIC Legend:\n NIC0: mlx5_0\n";
  EXPECT_EQ(import_good({machine, with_others}).topology.rank_count(), 2U);  // No machines where there is no host.
  const Topology adding = import_good({with_others}, {.in_network = true}).topology;
  EXPECT_TRUE(adding.node(adding.find_node("leaf0")).reduction);
}

TEST(Ibnetdiscover, AnAggregationNodeIsKnownByItsModelToo) {
  std::string renamed = with_others;
  const std::string name = "Mellanox Technologies Aggregation Node";
  renamed.replace(renamed.find(name), name.size(), "Quantum Mellanox Technologies");
  renamed +=
      "\nvendid=0x2c9\ndevid=0xcf09\nsysimgguid=0xb\ncaguid=0x41\nCa 1 \"H-0041\" # \"Quantum Mellanox "
      "Technologies\"\n";
  EXPECT_EQ(import_good({renamed}).topology.rank_count(), 2U);
}

TEST(Ibnetdiscover, HostsThatPerhapsRunNoRanksAreNamed) {
  // Two hosts with four adapters each, one with one adapter, and one that is called after what it does.
  std::string text =
      "# Topology file: generated for this test\nvendid=0x2c9\nswitchguid=0xa(a)\n"
      "Switch 36 \"S-000a\" # \"MF0;leaf0:MQM8700/U1\" enhanced port 0 lid 1 lmc 0\n";
  int port = 0;
  const auto add = [&](const std::string& host, int adapters) {
    for (int i = 0; i < adapters; ++i) {
      ++port;
      text += "[" + std::to_string(port) + "] \"H-" + std::to_string(1000 + port) + "\"[1](1) # \"" + host + " mlx5_" +
              std::to_string(i) + "\" lid 4 4xHDR\n";
    }
  };
  add("gpu01", 4);
  add("gpu02", 4);
  EXPECT_EQ(test::codes(import_good({text})), "I101");
  add("head", 1);
  add("ufm-a", 4);
  const ImportedTopology imported = import_good({text});
  EXPECT_EQ(imported.topology.rank_count(), 4U);
  ASSERT_EQ(test::codes(imported), "I107 I101");
  EXPECT_EQ(imported.warnings[0].message,
            "2 of 4 hosts perhaps run no ranks, by their adapters or names: head and ufm-a");
  EXPECT_NE(imported.warnings[0].help.find("--without head,ufm-a"), std::string::npos);
}

TEST(Ibnetdiscover, RefusalsNameThePlace) {
  EXPECT_EQ(refusal("caguid=1\n[1] \"S-000a\"[1] # \"x\" 4xHDR\n"),
            "a:2:1: '[1] \"S-000a\"[1] # \"x\" 4xHDR' is no port of a block");
  EXPECT_EQ(refusal("caguid=1\nCa 1 \"H-0001\" # \"n h1\"\n[1](1) \"S-000a\"[1] # lid 1 4xABC\n"),
            "a:3:28: '4xABC' is no rate of InfiniBand");
  EXPECT_EQ(refusal("switchguid=1\nSwitch 36\n"), "a:2:1: this block has no \"S-...\" or \"H-...\"");
  EXPECT_EQ(refusal("switchguid=1\n"), "a:1:1: there is no 'Switch' and no 'Ca'");
  // A port that is down: the tool sees its own adapter.
  EXPECT_EQ(refusal("caguid=0xb8\nCa\t1 \"H-b8\"\t# \"node01 HCA-1\"\n"),
            "a:1:1: no cable is in it: ibnetdiscover saw the adapter it ran on alone");
}

TEST(Slurm, TrunksAreAsWideAsWhatIsBelow) {
  const Topology topology = import_good({"# a comment\nSwitchName=s0 Nodes=dev[0-2]\nSwitchName=s1 "
                                         "Nodes=dev[3-4],login\nSwitchName=top Switches=s[0-1] LinkSpeed=7\n"},
                                        {.preset = "h100-sxm"})
                                .topology;
  EXPECT_EQ(topology.rank_count(), 6U);
  EXPECT_EQ(links(topology, "dev0", "s0"), "1 x 50 GB/s net");
  EXPECT_EQ(links(topology, "login", "s1"), "1 x 50 GB/s net");
  EXPECT_EQ(links(topology, "s0", "top"), "1 x 150 GB/s uplink");
}

TEST(Slurm, MachinesBringAllTheirCards) {
  const std::string machine = "\tGPU0\tNIC0\tNIC1\nGPU0\t X \tPIX\tPIX\n";
  const Topology topology =
      import_good({machine, "SwitchName=s0 Nodes=a,b\nSwitchName=s1 Nodes=c\nSwitchName=t Switches=s0,s1\n"}).topology;
  EXPECT_EQ(topology.rank_count(), 3U);
  EXPECT_EQ(links(topology, "b.NIC1", "s0"), "1 x 12.5 GB/s net");
  EXPECT_EQ(links(topology, "s0", "t"), "1 x 50 GB/s uplink");  // two machines with two cards of 12.5 GB/s
}

TEST(Slurm, BlocksMeetInASwitch) {
  const ImportedTopology imported =
      import_good({"BlockName=b1 Nodes=n[1-2]\nBlockName=b2 Nodes=n[3-4]\nBlockSizes=2\n"});
  EXPECT_EQ(links(imported.topology, "b1", "top"), "1 x 25 GB/s uplink");
  EXPECT_EQ(test::codes(imported), "I104 I106 I101 I101");  // NVLinks may join the hosts of a block.
}

TEST(Slurm, SpinesAboveTheSameLeavesNeedNothingAboveThem) {
  const ImportedTopology imported =
      import_good({"SwitchName=s0 Nodes=tux[0-1] LinkSpeed=900\nSwitchName=s1 Nodes=tux[2-3] LinkSpeed=900\n"
                   "SwitchName=s4 Switches=s[0-1] LinkSpeed=1800\nSwitchName=s5 Switches=s[0-1] LinkSpeed=1800\n"});
  EXPECT_EQ(imported.topology.node_count(), 8U);
  EXPECT_EQ(links(imported.topology, "s1", "s5"), "1 x 25 GB/s uplink");
  EXPECT_EQ(test::codes(imported), "I101 I101");
}

TEST(Slurm, WhatScontrolShowsIsTheSame) {
  const Topology written =
      import_good({"SwitchName=s0 Nodes=a,b\nSwitchName=s1 Nodes=c\nSwitchName=t Switches=s0,s1\n"}).topology;
  const Topology shown = import_good({"$ scontrol show topology\nSwitchName=s0 Level=0 LinkSpeed=1 Nodes=a,b\n"
                                      "SwitchName=s1 Level=0 LinkSpeed=1 Nodes=c\n"
                                      "SwitchName=t Level=1 LinkSpeed=1 Nodes=a,b,c Switches=s0,s1\n"})
                             .topology;
  EXPECT_EQ(shown.links().size(), written.links().size());
  EXPECT_EQ(links(shown, "s0", "t"), links(written, "s0", "t"));
  EXPECT_EQ(
      links(import_good({"BlockName=b1 BlockIndex=0 Nodes=n[1-2] BlockSize=2\nBlockName=b2 BlockIndex=1 "
                         "Nodes=n[3-4] BlockSize=2\nAggregatedBlock=b[1-2] BlockIndex=2 Nodes=n[1-4] BlockSize=4\n"})
                .topology,
            "n3", "b2"),
      "1 x 12.5 GB/s net");
}

TEST(Slurm, ABackslashJoinsTheNextLine) {
  const Topology topology =
      import_good(
          {"SwitchName=s0 Nodes=n[1-4],\\\nn[5-6]\nSwitchName=s1 \\\r\n  Nodes=n7\nSwitchName=top Switches=s[0-1]\\"})
          .topology;
  EXPECT_EQ(topology.rank_count(), 7U);
  EXPECT_EQ(links(topology, "n5", "s0").substr(0, 4), "1 x ");
  EXPECT_EQ(links(topology, "n7", "s1").substr(0, 4), "1 x ");
  EXPECT_EQ(links(topology, "s1", "top").substr(0, 4), "1 x ");
}

TEST(Slurm, YamlTakesTheDefault) {
  const std::string text = R"(
- topology: flat1
  flat: true
- topology: tree1
  cluster_default: true
  tree:
    switches:
    - {switch: root, children: "leaf[1-2]"}
    - {switch: leaf1, nodes: "n[01-02]"}
    - {switch: leaf2, nodes: "n[03-04]"}
)";
  EXPECT_EQ(links(import_good({text}).topology, "n03", "leaf2"), "1 x 12.5 GB/s net");
  EXPECT_EQ(refusal("- topology: a\n  flat: true\n"), "a:1:3: the topology has neither tree.switches nor block.blocks");
}

TEST(Slurm, RefusalsNameThePlace) {
  EXPECT_EQ(refusal("SwitchName=s0 Nodez=a\n"), "a:1:15: 'Nodez=a' is not read");
  EXPECT_EQ(refusal("\nSwitchName=s0 Nodes=a[1-\n"), "a:2:1: 'a[1-' is no hostlist");
  EXPECT_EQ(refusal("SwitchName=s0 Nodes=a[1-999999]\n"),
            "a:1:1: 'a[1-999999]' names nothing, or more than 100000 nodes");
  EXPECT_EQ(refusal("SwitchName=s0 Switches=s1\nSwitchName=s1 Switches=s0 Nodes=a\n"),
            "a: the switch s0 is below itself");
  EXPECT_EQ(refusal("SwitchName=s0\n"), "a names no nodes");
  // Pacing at the end of a line: s2 has a place in the tree and nothing below it.
  EXPECT_EQ(refusal("SwitchName=s0 Switches=s[1-2]\nSwitchName=s1 Nodes=a,b\n"),
            "a: 's2' is below a switch, and the file does not say what is below it");
}

}  // namespace
}  // namespace espalier
