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

TEST(Ibnetdiscover, RefusalsNameThePlace) {
  EXPECT_EQ(refusal("caguid=1\n[1] \"S-000a\"[1] # \"x\" 4xHDR\n"),
            "a:2:1: '[1] \"S-000a\"[1] # \"x\" 4xHDR' is no port of a block");
  EXPECT_EQ(refusal("caguid=1\nCa 1 \"H-0001\" # \"n h1\"\n[1](1) \"S-000a\"[1] # lid 1 4xABC\n"),
            "a:3:28: '4xABC' is no rate of InfiniBand");
  EXPECT_EQ(refusal("switchguid=1\nSwitch 36\n"), "a:2:1: this block has no \"S-...\" or \"H-...\"");
  EXPECT_EQ(refusal("switchguid=1\n"), "a:1:1: there is no 'Switch' and no 'Ca'");
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
  EXPECT_EQ(test::codes(imported), "I104 I101 I101");
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
}

}  // namespace
}  // namespace espalier
