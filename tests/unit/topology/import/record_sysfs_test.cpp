#include "topology/import/record_sysfs.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "tests/support/imported.h"

namespace espalier {
namespace {

using test::import_good;
using test::links;
using test::refusal;
namespace fs = std::filesystem;

/// A faked sysfs: two sockets, a GPU and a NIC below a PCIe switch at one, a GPU in a narrow slot at the other.
class RecordSysfs : public testing::Test {
 protected:
  RecordSysfs() : root_(fs::path(testing::TempDir()) / fmt::format("espalier_sysfs_{}", ::getpid())) {
    fs::remove_all(root_);
    write("devices/system/node/node0/cpulist", "0-15");
    write("devices/system/node/node1/cpulist", "16-31");
    write("devices/system/node/node2/cpulist", "");
    const std::string port = "devices/pci0000:15/0000:15:01.0";
    const std::string upstream = port + "/0000:16:00.0";
    add(port, "0x060400", "0x8086", 0, 16);
    add(upstream, "0x060400", "0x1000", 0, 16);
    add(upstream + "/0000:17:00.0", "0x060400", "0x1000", 0, 16);
    add(upstream + "/0000:17:00.0/0000:18:00.0", "0x030200", "0x10de", 0, 16);
    add(upstream + "/0000:17:01.0", "0x060400", "0x1000", 0, 16);
    const std::string nic = upstream + "/0000:17:01.0/0000:19:00.0";
    add(nic, "0x020700", "0x15b3", 0, 16);
    add(upstream + "/0000:17:01.0/0000:19:00.1", "0x020700", "0x15b3", 0, 16);
    fs::create_symlink("../0000:19:00.0", sys() / (upstream + "/0000:17:01.0/0000:19:00.1/physfn"));
    add("devices/pci0000:80/0000:80:01.0", "0x060400", "0x8086", 1, 16);
    add("devices/pci0000:80/0000:80:01.0/0000:81:00.0", "0x030200", "0x10de", 1, 8);
    add("devices/pci0000:00/0000:00:02.0", "0x030000", "0x1a03", 0, 1);  // a server's display
    adapter("infiniband/mlx5_0", nic);
    write("class/infiniband/mlx5_0/ports/1/rate", "400 Gb/sec (4X NDR)");
    adapter("net/ib0", nic);
    write("class/net/ib0/speed", "400000");
    write("class/net/lo/speed", "");
  }
  ~RecordSysfs() override { fs::remove_all(root_); }

  [[nodiscard]] fs::path sys() const { return root_ / "sys"; }

  void write(const fs::path& path, const std::string& text) const {
    fs::create_directories((sys() / path).parent_path());
    std::ofstream(sys() / path) << text << '\n';
  }

  void add(const fs::path& device, const std::string& device_class, const std::string& vendor, int numa, int width) {
    write(device / "class", device_class);
    write(device / "vendor", vendor);
    write(device / "numa_node", std::to_string(numa));
    write(device / "max_link_speed", "32.0 GT/s PCIe");
    write(device / "current_link_speed", "2.5 GT/s PCIe");  // at rest
    write(device / "current_link_width", std::to_string(width));
    fs::create_directories(sys() / "bus/pci/devices");
    fs::create_directory_symlink(sys() / device, sys() / "bus/pci/devices" / device.filename());
  }

  void adapter(const std::string& name, const fs::path& device) const {
    fs::create_directories(sys() / "class" / name);
    fs::create_directory_symlink(sys() / device, sys() / "class" / name / "device");
  }

  fs::path root_;
};

TEST_F(RecordSysfs, NamesTheProfileOfItsGpus) {
  for (const auto& device : fs::directory_iterator(sys() / "bus/pci/devices")) {
    std::ofstream(device.path() / "device") << "0x2330\n";
  }
  const auto text = record_sysfs(root_);
  ASSERT_TRUE(text);
  EXPECT_NE(text->find(" class=030200 vendor=10de device=2330 "), std::string::npos) << *text;
  EXPECT_EQ(import_good({*text}).profile, "nccl-hopper");  // 10de:2330 is H100
}

TEST_F(RecordSysfs, BecomesTheMachine) {
  const auto text = record_sysfs(root_);
  ASSERT_TRUE(text) << text.error().message;
  const ImportedTopology imported = import_good({*text});
  const Topology& topology = imported.topology;
  EXPECT_EQ(topology.rank_count(), 2U);
  // Two GPUs, a NIC, a switch, two CPUs: ports that only hand on are gone.
  EXPECT_EQ(topology.node_count(), 6U);
  // Sixteen lanes of PCIe 5 carry 63 GB/s, eight of them half of that, whatever the speed at rest.
  EXPECT_EQ(links(topology, "gpu0", "pcie2"), "1 x 63 GB/s pcie");
  EXPECT_EQ(links(topology, "mlx5_0", "pcie2"), "1 x 63 GB/s pcie");
  EXPECT_EQ(links(topology, "pcie2", "cpu0"), "1 x 63 GB/s pcie");
  EXPECT_EQ(links(topology, "gpu1", "cpu1"), "1 x 31.5 GB/s pcie");
  EXPECT_EQ(links(topology, "cpu0", "cpu1"), "1 x 20 GB/s smp");
}

TEST_F(RecordSysfs, TheAdapterHasTheRateOfItsPort) {
  // 400 Gb/s are 50 GB/s.
  const Topology topology = import_good({*record_sysfs(root_)}, {.boxes = 2}).topology;
  EXPECT_EQ(links(topology, "box0.mlx5_0", "fabric"), "1 x 50 GB/s net");
}

TEST_F(RecordSysfs, TheActivePortOfAnAdapterCounts) {
  write("class/infiniband/mlx5_0/ports/1/state", "1: DOWN");
  write("class/infiniband/mlx5_0/ports/2/rate", "100 Gb/sec (4X EDR)");
  write("class/infiniband/mlx5_0/ports/2/state", "4: ACTIVE");
  const auto text = record_sysfs(root_);
  EXPECT_NE(text->find("infiniband mlx5_0 pci=0000:19:00.0 port=2 state=active rate=100\n"), std::string::npos)
      << *text;
  EXPECT_EQ(test::codes(import_good({*text})).find("I102"), std::string::npos);
  write("class/infiniband/mlx5_0/ports/2/state", "1: DOWN");
  const ImportedTopology imported = import_good({*record_sysfs(root_)});
  ASSERT_NE(test::codes(imported).find("I102"), std::string::npos);
  EXPECT_EQ(imported.warnings.front().message, "port '1' of 'mlx5_0' is 'down'");
}

TEST_F(RecordSysfs, TwoActivePortsAreTwoNicsInOneSlot) {
  write("class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE");
  write("class/infiniband/mlx5_0/ports/2/state", "4: ACTIVE");
  write("class/infiniband/mlx5_0/ports/2/rate", "200 Gb/sec (4X HDR)");
  const auto text = record_sysfs(root_);
  ASSERT_TRUE(text) << text.error().message;
  const Topology topology = import_good({*text}, {.boxes = 2}).topology;
  // Both rates, of 400 and 200 Gb/s, lead to the fabric; both ports share sixteen lanes of PCIe 5.
  EXPECT_EQ(links(topology, "box0.mlx5_0.p1", "fabric"), "1 x 50 GB/s net");
  EXPECT_EQ(links(topology, "box0.mlx5_0.p2", "fabric"), "1 x 25 GB/s net");
  const NodeId first = topology.find_node("box0.mlx5_0.p1");
  ASSERT_FALSE(topology.out_links(first).empty());
  const Link& to_slot = topology.links()[topology.out_links(first)[0].index()];
  const std::string slot = topology.nodes()[to_slot.head.index()].id;
  EXPECT_EQ(links(topology, "box0.mlx5_0.p2", slot), "1 x 63 GB/s pcie");
  EXPECT_EQ(links(topology, slot, "box0.pcie2"), "1 x 63 GB/s pcie");
}

TEST_F(RecordSysfs, ASecondNameOfAnAdapterIsNoSecondPort) {
  // RDMA in software on the adapter's network interface.
  adapter("infiniband/rxe0", "devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:01.0/0000:19:00.0");
  for (const std::string name : {"mlx5_0", "rxe0"}) {
    write("class/infiniband/" + name + "/ports/1/state", "4: ACTIVE");
    write("class/infiniband/" + name + "/ports/1/rate", "400 Gb/sec (4X NDR)");
  }
  const Topology topology = import_good({*record_sysfs(root_)}, {.boxes = 2}).topology;
  EXPECT_EQ(links(topology, "box0.mlx5_0", "fabric"), "1 x 50 GB/s net");
  EXPECT_EQ(links(topology, "box0.mlx5_0", "box0.pcie2"), "1 x 63 GB/s pcie");
}

TEST_F(RecordSysfs, NvlinksComeFromAnotherFile) {
  const std::string matrix = "\tGPU0\tGPU1\nGPU0\t X \tNV4\nGPU1\tNV4\t X \n";
  const Topology topology = import_good({*record_sysfs(root_), matrix}, {.preset = "a100-sxm"}).topology;
  EXPECT_EQ(links(topology, "gpu0", "gpu1"), "4 x 25 GB/s nvlink");
  EXPECT_EQ(links(topology, "gpu1", "cpu1"), "1 x 31.5 GB/s pcie");
}

/// Three GPUs of AMD as its driver lists them: two cables between the first two, one between the others, two hops
/// between the first and the last, and a CPU.
TEST_F(RecordSysfs, XgmiLinksOfOneHop) {
  const std::string nodes = "class/kfd/kfd/topology/nodes/";
  write(nodes + "0/properties", "cpu_cores_count 16\nsimd_count 0");
  write(nodes + "0/io_links/0/properties", "type 11\nnode_from 0\nnode_to 1\nweight 15");
  for (int gpu = 1; gpu <= 3; ++gpu) {
    const std::string bus = "devices/pci0000:c0/0000:c" + std::to_string(gpu) + ":00.0";
    add(bus, "0x120000", "0x1002", 1, 16);
    // 0xc1 is 193: bus, device and function are packed into one number.
    write(nodes + std::to_string(gpu) + "/properties",
          "simd_count 440\ndomain 0\nlocation_id " + std::to_string((192 + gpu) * 256));
  }
  const auto link = [&](int from, int number, int to, int weight, int most) {
    write(nodes + std::to_string(from) + "/io_links/" + std::to_string(number) + "/properties",
          "type 11\nnode_from " + std::to_string(from) + "\nnode_to " + std::to_string(to) + "\nweight " +
              std::to_string(weight) + "\nmin_bandwidth " + std::to_string(most == 0 ? 0 : 50'000) +
              "\nmax_bandwidth " + std::to_string(most));
  };
  link(1, 0, 0, 15, 50'000);
  link(1, 1, 2, 15, 100'000);
  link(1, 2, 3, 30, 0);
  link(2, 0, 1, 15, 100'000);
  link(2, 1, 3, 15, 50'000);
  link(3, 0, 2, 15, 50'000);
  const auto text = record_sysfs(root_);
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_NE(text->find("\nxgmi 0000:c1:00.0 to=0000:c2:00.0 count=2 rate=50000\n"), std::string::npos) << *text;
  const Topology topology = import_good({*text}).topology;
  // gpu0 and gpu1 are those of NVIDIA, on lower addresses.
  EXPECT_EQ(links(topology, "gpu2", "gpu3"), "2 x 50 GB/s xgmi");
  EXPECT_EQ(links(topology, "gpu3", "gpu4"), "1 x 50 GB/s xgmi");
  EXPECT_EQ(links(topology, "gpu2", "gpu4"), "");
}

TEST(Sysfs, CpusAreTheRanksWithoutGpus) {
  EXPECT_EQ(import_good({"sysfs 1\nnuma 0\nnuma 1\n"}).topology.rank_count(), 2U);
  EXPECT_EQ(refusal("sysfs 1\nnuma 0\n"), "a: the machine has no GPU, and one NUMA node");
}

TEST(Sysfs, RefusalsNameThePlace) {
  EXPECT_EQ(refusal("sysfs 1\nnuma x\n"), "a:2:6: 'x' is no NUMA node");
  EXPECT_EQ(refusal("sysfs 1\npci 1:0.0 class\n"), "a:2:11: 'class' is not key=value");
  EXPECT_EQ(refusal("sysfs 1\npci 1:0.0 parent=2:0.0 class=060400\n"), "a:2:11: '2:0.0' is on no line before");
  EXPECT_EQ(refusal("sysfs 1\nusb 1\n"), "a:2:1: 'usb' is neither numa, pci, xgmi, infiniband nor net");
  const std::string gpus = "sysfs 1\npci 1:0.0 class=120000 vendor=1002\npci 2:0.0 class=120000 vendor=1002\n";
  EXPECT_EQ(refusal(gpus + "xgmi 1:0.0 to=3:0.0\n"), "a:4:12: an xGMI link joins two GPUs of lines before");
  EXPECT_EQ(refusal(gpus + "xgmi 1:0.0 to=2:0.0 count=0\n"), "a:4:21: '0' is no number of cables");
  EXPECT_EQ(refusal(gpus + "xgmi 1:0.0 to=2:0.0 rate=fast\n"), "a:4:21: 'fast' is no rate in MB/s");
  const std::string nic = "sysfs 1\npci 1:0.0 class=020000 vendor=15b3\ninfiniband mlx4_0 pci=1:0.0 port=1 rate=40\n";
  EXPECT_EQ(refusal(nic + "infiniband mlx4_0 pci=1:0.0 port=1\n"), "a:4:29: '1' is there twice");
  EXPECT_EQ(refusal(nic + "infiniband mlx4_0 pci=1:0.0 port=0\n"), "a:4:29: '0' is no port");
  EXPECT_EQ(refusal("sysfs 1\nnuma\n"), "a:2:1: a line has a kind and a name");
}

TEST(Sysfs, ThereHasToBeOne) {
  const auto text = record_sysfs("/nowhere");
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().message, "there is no sysfs in /nowhere/sys");
}

TEST(RecordsGpus, OfNvidiaAndAmd) {
  EXPECT_TRUE(records_gpus("sysfs 1\nnuma 0\npci 0000:01:00.0 class=030200 vendor=10de\n"));
  EXPECT_TRUE(records_gpus("sysfs 1\npci 0000:01:00.0 class=120000 vendor=1002 parent=0000:00:01.0\n"));
  EXPECT_FALSE(records_gpus("sysfs 1\npci 0000:01:00.0 class=030000 vendor=1a03\n"));  // A management controller.
  EXPECT_FALSE(records_gpus("sysfs 1\npci 0000:01:00.0 class=020000 vendor=10de\n"));
  EXPECT_FALSE(records_gpus(""));
}

}  // namespace
}  // namespace espalier
