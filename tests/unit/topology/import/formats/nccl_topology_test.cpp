#include "tests/support/imported.h"

namespace espalier {
namespace {

using test::import_good;
using test::links;
using test::refusal;

/// Two sockets; a PCIe switch with two GPUs and a card of two ports below the first, one GPU below the second.
const std::string two_sockets = R"(<!-- made for this test -->
<system version="1">
  <cpu numaid="0" affinity="ffff" arch="x86_64" vendor="GenuineIntel">
    <pci busid="0000:10:00.0" class="0x060400" link_speed="16.0 GT/s PCIe" link_width="16">
      <pci busid="0000:11:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">
        <gpu dev="0" sm="80" rank="0"><nvlink target="0000:12:00.0" count="2" tclass="0x030200"/>
          <nvlink target="0000:21:00.0" count="1" tclass="0x030200"/></gpu>
      </pci>
      <pci busid="0000:12:00.0" class="0x030200" link_speed="16.0 GT/s" link_width="0">
        <gpu dev="1" sm="80" rank="1"><nvlink target="0000:11:00.0" count="2" tclass="0x030200"/></gpu>
      </pci>
      <pci busid="0000:13:00.0" class="0x020700" link_speed="16.0 GT/s PCIe" link_width="8">
        <nic><net name="mlx5_0" dev="0" speed="100000" port="1"/>
          <net name="mlx5_1" dev="1" speed="100000" port="2"/></nic>
      </pci>
    </pci>
    <nic><net name="docker0" dev="2" speed="10000"/><net name="eth0" dev="3" speed="10000"/></nic>
  </cpu>
  <cpu numaid="1" affinity="ffff0000" arch="x86_64" vendor="GenuineIntel">
    <pci busid="0000:21:00.0" class="0x030200" link_speed="8.0 GT/s PCIe" link_width="8">
      <gpu dev="2" sm="80" rank="2"><nvlink target="0000:11:00.0" count="1" tclass="0x030200"/></gpu>
    </pci>
    <nic><net name="eth0" dev="3" speed="10000"/></nic>
  </cpu>
</system>
)";

TEST(NcclTopology, SpeedsThatCannotBeAreNotUsed) {
  // Drivers of other networks write bit/s: 200 Tbit/s are no NIC's.
  std::string text = two_sockets;
  text.replace(text.find("\"100000\""), 8, "\"200000000\"");
  const ImportedTopology imported = import_good({text});
  EXPECT_EQ(links(imported.topology, "mlx5_0", "pcie1"), "1 x 15.75 GB/s pcie");
  EXPECT_EQ(test::codes(imported), "I103 I104 I101");
  EXPECT_EQ(imported.warnings.at(0).message, "'mlx5_0' has a speed of 200000000 Mbit/s");
}

TEST(NcclTopology, HasGpusLinksAndCards) {
  const ImportedTopology imported = import_good({two_sockets});
  const Topology& topology = imported.topology;
  EXPECT_EQ(topology.rank_count(), 3U);
  EXPECT_EQ(topology.rank_name(Rank(2)), "gpu2");
  // Compute capability 80 has 25 GB/s per NVLink; both ends list a cable, which is one link each way.
  EXPECT_EQ(links(topology, "gpu0", "gpu1"), "2 x 25 GB/s nvlink");
  EXPECT_EQ(links(topology, "gpu1", "gpu0"), "2 x 25 GB/s nvlink");
  EXPECT_EQ(links(topology, "gpu0", "gpu2"), "1 x 25 GB/s nvlink");
  // 16 lanes of 16 GT/s: 31.5 GB/s; a width of 0 means 16; 8 lanes of 8 GT/s: 7.875 GB/s.
  EXPECT_EQ(links(topology, "gpu0", "pcie0"), "1 x 31.5 GB/s pcie");
  EXPECT_EQ(links(topology, "gpu1", "pcie0"), "1 x 31.5 GB/s pcie");
  EXPECT_EQ(links(topology, "gpu2", "cpu1"), "1 x 7.875 GB/s pcie");
  // The two ports share the card's 8 lanes.
  EXPECT_EQ(links(topology, "pcie1", "pcie0"), "1 x 15.75 GB/s pcie");
  EXPECT_EQ(links(topology, "mlx5_0", "pcie1"), "1 x 15.75 GB/s pcie");
  EXPECT_EQ(links(topology, "mlx5_1", "pcie1"), "1 x 15.75 GB/s pcie");
  // A card in no slot is as fast as its port, and is there once; a bridge of the system is no card.
  EXPECT_EQ(links(topology, "eth0", "cpu0"), "1 x 1.25 GB/s pcie");
  EXPECT_EQ(links(topology, "eth0", "cpu1"), "");
  EXPECT_TRUE(topology.find_node("docker0").is_none());
  EXPECT_EQ(test::codes(imported), "I104 I101");  // docker0; the link between the sockets
}

TEST(NcclTopology, SwitchesActAsOneAndBundleTheirLinks) {
  const std::string text = R"(<system version="1"><cpu numaid="-1">
    <pci busid="0:1:0.0" class="0x030200"><gpu dev="1" sm="90">
      <nvlink target="0:9:0.0" count="5" tclass="0x068000"/>
      <nvlink target="0:a:0.0" count="4" tclass="0x068000"/></gpu></pci>
    <pci busid="0:2:0.0" class="0x030200"><gpu dev="0" sm="90">
      <nvlink target="fffffff:ff:ff.0" count="9" tclass="0x068000"/></gpu></pci>
  </cpu></system>)";
  const Topology topology = import_good({text}).topology;
  EXPECT_EQ(links(topology, "gpu1", "nvswitch"), "1 x 225 GB/s nvlink");
  EXPECT_EQ(links(topology, "nvswitch", "gpu0"), "1 x 225 GB/s nvlink");
  EXPECT_EQ(topology.rank_name(Rank(0)), "gpu0");  // by number, not by place
}

TEST(NcclTopology, VendorAndDeviceTellTheModelOfTheGpu) {
  const auto box = [](const std::string& device, const std::string& other) {
    std::string text = "<system version=\"1\"><cpu numaid=\"0\">";
    for (int dev = 0; dev < 2; ++dev) {
      text += "<pci busid=\"0:" + std::to_string(dev + 1) + R"(:0.0" class="0x030200" vendor="0x10de" device=")" +
              (dev == 0 ? device : other) + "\"><gpu dev=\"" + std::to_string(dev) +
              R"(" sm="90"><nvlink target="fffffff:ff:ff.0" count="18" tclass="0x068000"/></gpu></pci>)";
    }
    return import_good({text + "</cpu></system>"});
  };
  EXPECT_EQ(box("0x2330", "0x2330").gpu, "h100-sxm");
  EXPECT_EQ(box("0x2335", "0x2335").gpu, "h200");
  EXPECT_EQ(box("0x2335", "0x2335").profile, "nccl-hopper");
  EXPECT_EQ(box("0x2330", "0x2335").gpu, "");
  EXPECT_EQ(box("0xffff", "0xffff").gpu, "");
  EXPECT_EQ(box("0xffff", "0xffff").profile, "nccl-hopper");
}

TEST(NcclTopology, TellsHostsOfOneNvlinkDomainApart) {
  std::string text = "<system version=\"1\">";
  for (const char* hash : {"0xa", "0xb"}) {
    text += std::string("<cpu host_hash=\"") + hash + R"(" numaid="0"><pci busid="0:1:0.0" class="0x030200">
      <gpu dev="0" sm="103"><nvlink target="fffffff:ff:ff.0" count="18" tclass="0x068000"/>
      <c2c bw="44712" count="5"/></gpu>
      </pci></cpu>)";
  }
  const Topology topology = import_good({text + "</system>"}).topology;
  EXPECT_EQ(links(topology, "host0.gpu0", "nvswitch"), "1 x 900 GB/s nvlink");
  EXPECT_EQ(links(topology, "host1.gpu0", "nvswitch"), "1 x 900 GB/s nvlink");
  EXPECT_EQ(links(topology, "host1.gpu0", "host1.cpu0"), "1 x 15.75 GB/s pcie, 1 x 223.56 GB/s c2c");
  EXPECT_EQ(topology.node(topology.find_node("host1.gpu0")).host, "host1");
}

TEST(NcclTopology, ClassesAloneMakeGpusAndCards) {
  const Topology topology =
      import_good({R"(<system version="1"><cpu numaid="0"><pci busid="ffff:ff:01.0" class="0x060400">
    <pci busid="0001:00:00.0" class="0x030200" link_speed="16 GT/s" link_width="16"/>
    <pci busid="0101:00:00.0" class="0x020700" link_speed="16 GT/s" link_width="16"/>
    <pci busid="0002:00:00.0" class="0x030200" link_speed="16 GT/s" link_width="16"/></pci></cpu></system>)"})
          .topology;
  EXPECT_EQ(topology.rank_count(), 2U);
  EXPECT_EQ(links(topology, "gpu1", "pcie0"), "1 x 31.5 GB/s pcie");
  EXPECT_EQ(links(topology, "nic0", "pcie0"), "1 x 31.5 GB/s pcie");
}

TEST(NcclTopology, XgmiRatesFollowTheArchitecture) {
  const auto with = [](const std::string& gcn, const std::string& sm = "104") {
    const auto gpu = [&](const std::string& dev, const std::string& bus, const std::string& other) {
      return "<pci busid=\"" + bus + "\" class=\"0x120000\"><gpu dev=\"" + dev + "\" sm=\"" + sm + "\" gcn=\"" + gcn +
             "\"><xgmi target=\"" + other + "\" count=\"1\"/></gpu></pci>";
    };
    return "<system version=\"2\"><cpu numaid=\"0\">" + gpu("0", "0:1:0.0", "0:2:0.0") +
           gpu("1", "0:2:0.0", "0:1:0.0") + "</cpu></system>";
  };
  EXPECT_EQ(links(import_good({with("gfx942")}).topology, "gpu0", "gpu1"), "1 x 64 GB/s xgmi");
  EXPECT_EQ(links(import_good({with("gfx950")}).topology, "gpu0", "gpu1"), "1 x 76.8 GB/s xgmi");
  EXPECT_EQ(links(import_good({with("910")}).topology, "gpu0", "gpu1"), "1 x 50 GB/s xgmi");
  EXPECT_EQ(links(import_good({with("906")}).topology, "gpu0", "gpu1"), "1 x 46 GB/s xgmi");
  // RCCL writes 90 for MI250 and Hygon's cards, 94 for MI300X (rccl issue 1185): these are no H100.
  for (const auto& [gcn, profile] : {std::pair<std::string, std::string>{"gfx90a", ""}, {"21943", ""}}) {
    const ImportedTopology imported = import_good({with(gcn, "90")});
    EXPECT_EQ(links(imported.topology, "gpu0", "gpu1"), "1 x 50 GB/s xgmi") << gcn;
    EXPECT_EQ(imported.profile, profile) << gcn;
  }
  EXPECT_EQ(import_good({with("gfx942", "94")}).profile, "rccl-mi300x");
}

TEST(NcclTopology, OneSidedLinksAreSaid) {
  const ImportedTopology imported = import_good({R"(<system version="1"><cpu numaid="0">
    <pci busid="0:1:0.0"><gpu dev="0" sm="80"><nvlink target="0:2:0.0" count="3" tclass="0x030200"/></gpu></pci>
    <pci busid="0:2:0.0"><gpu dev="1" sm="80"><nvlink target="0:1:0.0" count="2" tclass="0x030200"/></gpu></pci>
  </cpu></system>)"});
  EXPECT_EQ(test::codes(imported), "I102 I101");
  EXPECT_EQ(imported.warnings[0].message, "gpu0 lists 3 links to gpu1, which lists 2 to it");
  EXPECT_EQ(links(imported.topology, "gpu0", "gpu1"), "3 x 25 GB/s nvlink");
  EXPECT_EQ(links(imported.topology, "gpu1", "gpu0"), "2 x 25 GB/s nvlink");
}

TEST(NcclTopology, BridgesOfVirtualMachinesAreNotBelieved) {
  const ImportedTopology imported = import_good({R"(<system version="1"><cpu numaid="0">
    <pci busid="0:1:0.0" class="0x060400" link_speed="2.5 GT/s PCIe" link_width="1">
      <pci busid="0:2:0.0" link_speed="32.0 GT/s PCIe" link_width="16"><gpu dev="0" sm="90"/></pci>
      <pci busid="0:3:0.0" link_speed="32.0 GT/s PCIe" link_width="16"><gpu dev="1" sm="90"/></pci></pci>
  </cpu></system>)"},
                                                {.preset = "h100-sxm"});
  EXPECT_EQ(test::codes(imported), "I103 I105");  // The preset has NVLinks, and the file none.
  EXPECT_EQ(links(imported.topology, "gpu0", "pcie0"), "1 x 63 GB/s pcie");
}

TEST(NcclTopology, RefusalsNameThePlace) {
  EXPECT_EQ(refusal("<system version=\"1\">\n <cpu numaid=\"x\"/></system>"),
            "a:2:3: <cpu>: numaid=\"x\" is not a whole number from -1 to 4096");
  EXPECT_EQ(refusal("<system version=\"3\"/>"), "a:1:2: <system>: version=\"3\" is not a whole number from 1 to 2");
  EXPECT_EQ(refusal("<system version=\"1\"><cpu numaid=\"0\"><pci busid=\"0:1:0.0\"/></cpu></system>"),
            "a: there is no GPU among its 1 PCI devices: they have neither a class nor a <gpu>");
  EXPECT_EQ(refusal("<system version=\"1\">\n<cpu"), "a:2:4: this is not XML: Error parsing start element tag");
  EXPECT_EQ(refusal(R"(<system><cpu><pci busid="0:1:0.0"><gpu>
<nvlink target="0:7:0.0"/></gpu></pci></cpu></system>)"),
            "a:2:2: <nvlink>: there is no device 0:7:0.0 in the file");
  EXPECT_EQ(
      refusal(R"(<system><cpu><pci busid="0:1:0.0"><gpu/></pci><pci busid="0:1:0.0"><gpu/></pci></cpu></system>)"),
      "a:1:48: <pci>: the GPU gpu1 at 0:1:0.0 is there twice");
}

TEST(NcclTopology, DepthIsLimited) {
  std::string text = "<system><cpu>", end = "</cpu></system>";
  for (int i = 0; i < 100; ++i) {
    text += "<pci>";
    end.insert(0, "</pci>");
  }
  EXPECT_EQ(refusal(text + end), "a: more than 50000 elements, or more than 64 inside each other");
}

}  // namespace
}  // namespace espalier
