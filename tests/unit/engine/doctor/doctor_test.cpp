#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "cli/reports/doctor_output.h"
#include "engine/doctor/checkup.h"

namespace espalier::engine::doctor {
namespace {

/// A folder that looks like a machine's root.
class FakeRoot : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "espalier-root-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) const {
    const std::filesystem::path whole = root_ + path;
    std::filesystem::create_directories(whole.parent_path());
    std::ofstream(whole) << text;
  }

  /// A server with an RDMA NIC and two GPUs.
  void build_server() const {
    write("/proc/cpuinfo",
          "processor\t: 0\nmodel name\t: Big Chip 9000\nflags\t\t: fpu sse2 avx2 f16c avx512f\n\nprocessor\t: 1\n"
          "model name\t: Big Chip 9000\nflags\t\t: fpu\n");
    write("/sys/devices/system/cpu/online", "0-63,128-191\n");
    write("/sys/devices/system/node/online", "0-1\n");
    write("/sys/fs/cgroup/cpu.max", "max 100000\n");
    write("/proc/meminfo", "MemTotal:       527937536 kB\nMemFree:        1 kB\nMemAvailable:   419430400 kB\n");
    write("/proc/sys/kernel/osrelease", "6.1.0-25-amd64\n");
    write("/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n");
    write("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
    write("/sys/kernel/mm/transparent_hugepage/shmem_enabled", "always within_size advise [never] deny force\n");
    write("/proc/sys/net/ipv4/tcp_wmem", "4096\t65536\t16777216\n");
    write("/proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t16777216\n");
    write_interface("lo", "unknown", "", "65536", "772", false);
    write_interface("eth0", "up", "100000", "1500", "1", true);
    write_interface("eth1", "down", "-1", "9000", "1", true);
    write_interface("docker0", "down", "", "1500", "1", false);
    write("/sys/class/net/bonding_masters", "\n");
    write("/sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
    write("/sys/class/infiniband/mlx5_0/ports/1/rate", "100 Gb/sec (4X EDR)\n");
    write("/sys/class/infiniband/mlx5_0/ports/1/link_layer", "InfiniBand\n");
    write("/dev/infiniband/uverbs0", "");
    write("/proc/driver/nvidia/version",
          "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023\nGCC version:\n");
    write("/proc/driver/nvidia/gpus/0000:07:00.0/information", "Model: \t\t NVIDIA A100-SXM4-40GB\nIRQ: 1\n");
    write("/proc/driver/nvidia/gpus/0000:0f:00.0/information", "Model: \t\t NVIDIA A100-SXM4-40GB\n");
    write("/dev/nvidia0", "");
    write("/dev/nvidiactl", "");
  }

  void write_interface(const std::string& name, const std::string& state, const std::string& speed,
                       const std::string& mtu, const std::string& type, bool is_device) const {
    const std::string folder = "/sys/class/net/" + name + "/";
    write(folder + "operstate", state + "\n");
    if (!speed.empty()) write(folder + "speed", speed + "\n");
    write(folder + "mtu", mtu + "\n");
    write(folder + "type", type + "\n");
    if (is_device) write(folder + "device/vendor", "0x15b3\n");
  }

  std::string root_;
};

/// Probes that all went well.
Probes good_probes() {
  Probes probes;
  probes.allowed_processors = 128;
  probes.open_files = {65536, 1048576};
  probes.shared_memory_size = std::int64_t{256} << 30;
  probes.shared_memory_free = std::int64_t{255} << 30;
  probes.has_futex = probes.has_memfd = probes.has_pidfd = probes.has_peer_reads = true;
  probes.has_network_namespaces = probes.has_ip = probes.has_tc = true;
  probes.has_veth = probes.has_tbf = probes.has_netem = true;
  probes.addresses = {{"lo", {"127.0.0.1", "::1"}}, {"eth0", {"10.0.0.1"}}};
  return probes;
}

const Check* find(const std::vector<Check>& checks, const std::string& name) {
  const auto at = std::ranges::find(checks, name, &Check::name);
  return at == checks.end() ? nullptr : &*at;
}

CheckState state_of(const std::vector<Check>& checks, const std::string& name) {
  const Check* check = find(checks, name);
  EXPECT_NE(check, nullptr) << name;
  return check == nullptr ? CheckState::missing : check->state;
}

TEST_F(FakeRoot, AServerIsReadWhole) {
  build_server();
  const MachineFacts facts = read_machine_facts(root_);
  EXPECT_EQ(facts.processor_model, "Big Chip 9000");
  EXPECT_EQ(facts.online_processors, 128);
  EXPECT_EQ(facts.numa_nodes, 2);
  EXPECT_FALSE(facts.processor_quota);
  EXPECT_EQ(facts.memory_available, std::int64_t{400} << 30);
  EXPECT_EQ(facts.huge_pages, "madvise");
  EXPECT_EQ(facts.socket_send_limit, 16777216);
  ASSERT_EQ(facts.interfaces.size(), 4U);  // By name: docker0, eth0, eth1, lo.
  EXPECT_EQ(facts.interfaces[1].speed_mbit, 100000);
  EXPECT_FALSE(facts.interfaces[2].speed_mbit);
  EXPECT_TRUE(facts.interfaces[3].is_loopback);
  ASSERT_EQ(facts.verbs_ports.size(), 1U);
  EXPECT_EQ(facts.verbs_ports[0].state, "ACTIVE");
  EXPECT_EQ(facts.nvidia_driver, "535.104.05");
  EXPECT_EQ(facts.nvidia_gpus.size(), 2U);
  EXPECT_TRUE(facts.has_nvidia_character_devices);
}

TEST_F(FakeRoot, AServerIsJudgedAndPrinted) {
  build_server();
  const std::string text = cli::doctor_text(check_machine(read_machine_facts(root_), good_probes()));
  EXPECT_EQ(text,
            "# check                state  found\n"
            "  processors           ok     128 of 128 allowed, 2 NUMA nodes, Big Chip 9000\n"
            "  vector units         ok     avx2 f16c avx512f\n"
            "  memory               ok     400.0 GiB free of 503.5 GiB\n"
            "  /dev/shm             ok     255.0 GiB free of 256.0 GiB\n"
            "  memfd                ok     works\n"
            "  open files           ok     65536 (at most 1048576)\n"
            "  locked memory        ok     unlimited\n"
            "  kernel               ok     6.1.0-25-amd64\n"
            "  futex                ok     works\n"
            "  pidfd                ok     works\n"
            "  cross-memory attach  ok     works\n"
            "  clock source         ok     tsc\n"
            "  huge pages           ok     madvise, shared memory never\n"
            "  nic eth0             warn   up, 100 Gbit/s, MTU 1500, 10.0.0.1\n"
            "                              -> small frames cost this speed much processor time: ip link set eth0 mtu "
            "9000\n"
            "  nic eth1             warn   down, MTU 9000\n"
            "                              -> no link: check the cable, or ip link set eth1 up\n"
            "  nic lo               ok     unknown, MTU 65536, 127.0.0.1, ::1\n"
            "  tcp buffers          ok     up to 16.0 MiB out, 16.0 MiB in\n"
            "  network namespaces   ok     can be made\n"
            "  ip, tc               ok     found\n"
            "  veth                 ok     works\n"
            "  tbf                  ok     works\n"
            "  netem                ok     works\n"
            "  verbs mlx5_0/1       ok     ACTIVE, 100 Gb/sec (4X EDR), InfiniBand\n"
            "  cuda driver          ok     535.104.05\n"
            "  gpu 0                ok     NVIDIA A100-SXM4-40GB\n"
            "  gpu 1                ok     NVIDIA A100-SXM4-40GB\n"
            "  verbs gpu memory     warn   through pinned memory; nvidia_peermem is not loaded; dma-buf would not: the "
            "NVIDIA driver is not the open one\n"
            "                              -> each byte is copied to pinned memory and from it: modprobe "
            "nvidia_peermem, or install the driver's open kernel modules\n"
            "the engine runs here: 24 ok, 3 warn, 0 missing\n");
}

TEST_F(FakeRoot, AnEmptyRootIsJudgedWithoutHarm) {
  const auto checks = check_machine(read_machine_facts(root_), Probes{});
  EXPECT_FALSE(can_run_engine(checks));
  for (const Check& check : checks) EXPECT_EQ(check.state == CheckState::ok, check.hint.empty()) << check.name;
  const auto document = cli::doctor_json(checks);
  EXPECT_EQ(document["schema"], "espalier/doctor/1");
  EXPECT_EQ(document["engine_runs"], false);
  EXPECT_EQ(document["checks"].size(), checks.size());
}

TEST_F(FakeRoot, WhatTheEngineNeedsDecides) {
  build_server();
  const MachineFacts facts = read_machine_facts(root_);
  EXPECT_TRUE(can_run_engine(check_machine(facts, good_probes())));
  const auto with = [&](const std::function<void(Probes&)>& change) {
    Probes probes = good_probes();
    change(probes);
    return check_machine(facts, probes);
  };
  EXPECT_FALSE(can_run_engine(with([](Probes& probes) { probes.has_futex = false; })));
  EXPECT_FALSE(can_run_engine(with([](Probes& probes) { probes.has_memfd = false; })));
  EXPECT_FALSE(can_run_engine(with([](Probes& probes) { probes.open_files.soft = 16; })));
  EXPECT_FALSE(can_run_engine(with([](Probes& probes) { probes.addresses.erase("lo"); })));
  const auto poor = with([](Probes& probes) {
    probes.has_peer_reads = probes.has_pidfd = probes.has_network_namespaces = probes.has_netem = false;
    probes.shared_memory_free = std::int64_t{64} << 20;
    probes.open_files.soft = 1024;
    probes.locked_memory.soft = 65536;
    probes.allowed_processors = 1;
    probes.addresses.erase("eth0");
  });
  EXPECT_TRUE(can_run_engine(poor));
  for (const char* name : {"processors", "/dev/shm", "open files", "locked memory", "pidfd", "cross-memory attach",
                           "nic eth0", "other machines"}) {
    EXPECT_EQ(state_of(poor, name), CheckState::warn) << name;
  }
  for (const char* name : {"network namespaces", "netem"}) EXPECT_EQ(state_of(poor, name), CheckState::missing) << name;
}

TEST_F(FakeRoot, ContainersAreSeenThrough) {
  build_server();
  write("/sys/fs/cgroup/cpu.max", "150000 100000\n");
  std::filesystem::remove_all(root_ + "/dev");
  const auto checks = check_machine(read_machine_facts(root_), good_probes());
  EXPECT_EQ(state_of(checks, "processors"), CheckState::warn);
  EXPECT_NE(find(checks, "processors")->found.find("quota 1.5"), std::string::npos);
  EXPECT_EQ(state_of(checks, "verbs access"), CheckState::missing);
  EXPECT_EQ(state_of(checks, "cuda access"), CheckState::missing);
}

TEST_F(FakeRoot, OldMachinesAndOtherOnes) {
  build_server();
  write("/proc/cpuinfo", "processor\t: 0\nFeatures\t: fp asimd evtstrm sve\n");
  write("/sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n");
  write("/sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n");
  write("/sys/class/infiniband/mlx5_0/ports/1/state", "1: DOWN\n");
  const auto checks = check_machine(read_machine_facts(root_), good_probes());
  EXPECT_EQ(find(checks, "vector units")->found, "asimd sve");
  EXPECT_EQ(state_of(checks, "vector units"), CheckState::ok);
  EXPECT_EQ(state_of(checks, "clock source"), CheckState::warn);
  EXPECT_EQ(state_of(checks, "huge pages"), CheckState::warn);
  EXPECT_EQ(state_of(checks, "verbs mlx5_0/1"), CheckState::warn);
}

TEST_F(FakeRoot, TheWayToGpuMemoryIsNamed) {
  build_server();
  Probes probes = good_probes();
  const auto found = [&] { return find(check_machine(read_machine_facts(root_), probes), "verbs gpu memory")->found; };
  write("/proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.15  Release\n");
  EXPECT_NE(found().find("no adapter could be asked"), std::string::npos) << found();
  probes.takes_dma_buf = {{"rxe0", false}, {"rxe1", false}};
  EXPECT_NE(found().find("the driver of rxe0, rxe1 takes none"), std::string::npos) << found();
  probes.takes_dma_buf["mlx5_0"] = true;
  write("/sys/module/nvidia_peermem/refcnt", "0\n");
  EXPECT_EQ(found(), "by dma-buf");
  std::filesystem::remove_all(root_ + "/proc/driver/nvidia");
  EXPECT_EQ(found(), "by nvidia_peermem; dma-buf would not: no GPU");
  std::filesystem::remove_all(root_ + "/sys/class/infiniband");
  EXPECT_EQ(find(check_machine(read_machine_facts(root_), probes), "verbs gpu memory"), nullptr);
}

TEST(Probing, ThisMachineHasWhatTheTestsThemselvesUse) {
  const Probes probes = probe_machine();
  EXPECT_GE(probes.allowed_processors, 1);
  EXPECT_TRUE(probes.has_futex);
  EXPECT_TRUE(probes.addresses.contains("lo"));
  EXPECT_LE(probes.has_tbf, probes.has_network_namespaces);
}

}  // namespace
}  // namespace espalier::engine::doctor
