#include "engine/doctor/checkup.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/format_units.h"

namespace espalier::engine::doctor {
namespace {

constexpr std::int64_t gibibyte = std::int64_t{1} << 30;
constexpr std::int64_t mebibyte = std::int64_t{1} << 20;

std::string size_text(std::int64_t bytes) { return format_rounded_size(Bytes{bytes}); }

std::string limit_text(const std::optional<std::uint64_t>& limit) {
  return limit ? std::to_string(*limit) : "unlimited";
}

Check warn_if(bool is_bad, Check check, std::string hint) {
  if (!is_bad) return check;
  check.state = CheckState::warn;
  check.hint = std::move(hint);
  return check;
}

Check missing_if(bool is_missing, Check check, std::string hint) {
  if (!is_missing) return check;
  check.state = CheckState::missing;
  check.hint = std::move(hint);
  return check;
}

Check check_processors(const MachineFacts& facts, const Probes& probes) {
  Check check{"processors", CheckState::ok, false, {}, {}};
  check.found = fmt::format("{} of {} allowed", probes.allowed_processors, facts.online_processors);
  if (facts.numa_nodes > 1) check.found += fmt::format(", {} NUMA nodes", facts.numa_nodes);
  if (facts.processor_quota) check.found += fmt::format(", quota {:.2g}", *facts.processor_quota);
  if (!facts.processor_model.empty()) check.found += ", " + facts.processor_model;
  if (facts.processor_quota && *facts.processor_quota < static_cast<double>(probes.allowed_processors)) {
    return warn_if(true, std::move(check), "the control group's quota stops ranks that spin: raise it (docker --cpus)");
  }
  return warn_if(probes.allowed_processors < 2, std::move(check),
                 "ranks take turns on one processor: allow more (taskset, cpuset)");
}

Check check_vectors(const MachineFacts& facts) {
  const auto has = [&](const char* flag) {
    return facts.architecture_flags.find(fmt::format(" {} ", flag)) != std::string::npos;
  };
  Check check{"vector units", CheckState::ok, false, {}, {}};
  std::vector<std::string> units;
  for (const char* flag : {"avx2", "f16c", "avx512f", "avx512bw", "avx512_bf16", "avx512_fp16", "asimd", "sve"}) {
    if (has(flag)) units.emplace_back(flag);
  }
  check.found = units.empty() ? "none that reductions use" : fmt::format("{}", fmt::join(units, " "));
  return warn_if(!has("avx2") && !has("asimd"), std::move(check),
                 "reductions run in portable code: on x86 AVX2 makes them several times faster");
}

Check check_memory(const MachineFacts& facts) {
  return warn_if(facts.memory_available < gibibyte,
                 {"memory",
                  CheckState::ok,
                  false,
                  fmt::format("{} free of {}", size_text(facts.memory_available), size_text(facts.memory_total)),
                  {}},
                 "less than 1 GiB is free: each rank holds its buffers and staging");
}

void check_shared_memory(const Probes& probes, std::vector<Check>& checks) {
  if (!probes.shared_memory_size) {
    checks.push_back({"/dev/shm", CheckState::missing, false, "not mounted",
                      "mount -t tmpfs tmpfs /dev/shm; the engine's own memory comes from memfd"});
  } else {
    checks.push_back(warn_if(
        probes.shared_memory_free < gibibyte,
        {"/dev/shm",
         CheckState::ok,
         false,
         fmt::format("{} free of {}", size_text(probes.shared_memory_free), size_text(*probes.shared_memory_size)),
         {}},
        "small for buffers shared by name: docker run --shm-size=8g, or mount -o remount,size=50% /dev/shm"));
  }
  checks.push_back(
      missing_if(!probes.has_memfd, {"memfd", CheckState::ok, true, probes.has_memfd ? "works" : "refused", {}},
                 "shared memory needs memfd_create: a kernel from 3.17, and a seccomp filter that allows it"));
}

void check_limits(const MachineFacts& facts, const Probes& probes, std::vector<Check>& checks) {
  constexpr std::uint64_t comfortable_files = 4096;
  constexpr std::uint64_t fewest_files = 64;
  const Limit& files = probes.open_files;
  Check open_files{"open files",
                   CheckState::ok,
                   true,
                   fmt::format("{} (at most {})", limit_text(files.soft), limit_text(files.hard)),
                   {}};
  const std::string raise = "ulimit -n 65536; each pair of ranks takes some descriptors";
  if (files.soft && *files.soft < fewest_files) {
    checks.push_back(missing_if(true, std::move(open_files), raise));
  } else {
    checks.push_back(warn_if(files.soft && *files.soft < comfortable_files, std::move(open_files), raise));
  }
  const Limit& locked = probes.locked_memory;
  const std::string text = locked.soft
                               ? size_text(static_cast<std::int64_t>(std::min<std::uint64_t>(*locked.soft, INT64_MAX)))
                               : "unlimited";
  checks.push_back(warn_if(locked.soft.has_value() && !facts.verbs_ports.empty(),
                           {"locked memory", CheckState::ok, false, text, {}},
                           "verbs registers whole buffers: ulimit -l unlimited (or /etc/security/limits.conf)"));
}

void check_kernel(const MachineFacts& facts, const Probes& probes, std::vector<Check>& checks) {
  checks.push_back({"kernel", CheckState::ok, false, facts.kernel_release, {}});
  checks.push_back(missing_if(!probes.has_futex,
                              {"futex", CheckState::ok, true, probes.has_futex ? "works" : "refused", {}},
                              "waiting between processes needs futex(2): allow it in the seccomp filter"));
  checks.push_back(warn_if(!probes.has_pidfd,
                           {"pidfd", CheckState::ok, false, probes.has_pidfd ? "works" : "refused", {}},
                           "deaths are noticed by sockets alone: a kernel from 5.3 has pidfd_open"));
  checks.push_back(
      warn_if(!probes.has_peer_reads,
              {"cross-memory attach", CheckState::ok, false, probes.has_peer_reads ? "works" : "refused", {}},
              "private buffers are staged: sysctl kernel.yama.ptrace_scope=0, docker run --cap-add=SYS_PTRACE"));
  const bool is_slow_clock = facts.clock_source == "hpet" || facts.clock_source == "acpi_pm" ||
                             facts.clock_source == "jiffies" || facts.clock_source == "refined-jiffies";
  checks.push_back(
      warn_if(is_slow_clock,
              {"clock source", CheckState::ok, false, facts.clock_source.empty() ? "unknown" : facts.clock_source, {}},
              "each timestamp costs about a microsecond: boot with clocksource=tsc where the TSC is stable"));
  const std::string huge = facts.huge_pages.empty() ? "not in this kernel" : facts.huge_pages;
  checks.push_back(warn_if(facts.huge_pages.empty() || facts.huge_pages == "never",
                           {"huge pages",
                            CheckState::ok,
                            false,
                            facts.huge_pages_shared_memory.empty()
                                ? huge
                                : fmt::format("{}, shared memory {}", huge, facts.huge_pages_shared_memory),
                            {}},
                           "large buffers cost more page faults: echo madvise > "
                           "/sys/kernel/mm/transparent_hugepage/enabled"));
}

void check_lab(const Probes& probes, std::vector<Check>& checks) {
  const auto add = [&](const char* name, bool is_there, const char* found, const char* absent, const char* hint) {
    checks.push_back(missing_if(!is_there, {name, CheckState::ok, false, is_there ? found : absent, {}}, hint));
  };
  add("network namespaces", probes.has_network_namespaces, "can be made", "refused",
      "the lab needs them: run as root, or sysctl user.max_user_namespaces=10000 "
      "(and kernel.apparmor_restrict_unprivileged_userns=0)");
  add("ip, tc", probes.has_ip && probes.has_tc, "found", "not on the PATH", "the lab needs them: apt install iproute2");
  const bool can_try = probes.has_network_namespaces && probes.has_ip && probes.has_tc;
  const char* absent = can_try ? "refused" : "cannot be tried";
  add("veth", probes.has_veth, "works", absent, "the lab needs it: modprobe veth, or a kernel with CONFIG_VETH");
  add("tbf", probes.has_tbf, "works", absent,
      "the lab shapes links with it: modprobe sch_tbf, or a kernel with CONFIG_NET_SCH_TBF");
  add("netem", probes.has_netem, "works", absent,
      "without it the lab's links have no extra latency: modprobe sch_netem, or CONFIG_NET_SCH_NETEM");
}

Check check_interface(const NetworkInterface& interface) {
  Check check{"nic " + interface.name, CheckState::ok, interface.is_loopback, {}, {}};
  std::vector<std::string> words{interface.state.empty() ? "unknown" : interface.state};
  if (interface.speed_mbit)
    words.push_back(fmt::format("{:g} Gbit/s", static_cast<double>(*interface.speed_mbit) / 1e3));
  words.push_back(fmt::format("MTU {}", interface.mtu));
  for (const std::string& address : interface.addresses) words.push_back(address);
  check.found = fmt::format("{}", fmt::join(words, ", "));
  if (interface.is_loopback) {
    return missing_if(interface.addresses.empty(), std::move(check), "local ranks meet over it: ip link set lo up");
  }
  if (interface.state == "down") {
    return warn_if(true, std::move(check),
                   fmt::format("no link: check the cable, or ip link set {} up", interface.name));
  }
  if (interface.addresses.empty()) {
    return warn_if(true, std::move(check), fmt::format("no address: ip address add ... dev {}", interface.name));
  }
  constexpr std::int64_t fast_mbit = 25000;
  constexpr std::int64_t jumbo_mtu = 9000;
  return warn_if(
      interface.speed_mbit.value_or(0) >= fast_mbit && interface.mtu < jumbo_mtu, std::move(check),
      fmt::format("small frames cost this speed much processor time: ip link set {} mtu 9000", interface.name));
}

void check_network(const MachineFacts& facts, const Probes& probes, std::vector<Check>& checks) {
  bool has_loopback = false;
  bool reaches_others = false;
  for (NetworkInterface interface : facts.interfaces) {
    const auto found = probes.addresses.find(interface.name);
    if (found != probes.addresses.end()) interface.addresses = found->second;
    // Bridges, tunnels and the like that carry no address carry no ranks either.
    if (!interface.is_loopback && !interface.is_device && interface.addresses.empty()) continue;
    has_loopback |= interface.is_loopback;
    reaches_others |= !interface.is_loopback && !interface.addresses.empty() && interface.state != "down";
    checks.push_back(check_interface(interface));
  }
  if (!has_loopback) {
    checks.push_back({"nic lo", CheckState::missing, true, "not there", "local ranks meet over it: ip link set lo up"});
  }
  if (!reaches_others) {
    checks.push_back({"other machines", CheckState::warn, false, "no interface with an address leads there",
                      "only ranks of this machine can meet; give an interface an address"});
  }
  constexpr std::int64_t roomy = 4 * mebibyte;
  if (!facts.socket_send_limit || !facts.socket_receive_limit) return;
  checks.push_back(warn_if(
      std::min(*facts.socket_send_limit, *facts.socket_receive_limit) < roomy,
      {"tcp buffers",
       CheckState::ok,
       false,
       fmt::format("up to {} out, {} in", size_text(*facts.socket_send_limit), size_text(*facts.socket_receive_limit)),
       {}},
      "fast or long links stay half empty: sysctl net.ipv4.tcp_wmem='4096 65536 16777216' "
      "net.ipv4.tcp_rmem='4096 131072 16777216'"));
}

void check_verbs(const MachineFacts& facts, std::vector<Check>& checks) {
  if (facts.verbs_ports.empty()) {
    checks.push_back({"verbs", CheckState::missing, false, "no device",
                      "ranks use shared memory and tcp; an RDMA NIC needs its driver (rdma-core), and without one "
                      "rdma link add rxe0 type rxe netdev eth0 emulates it"});
    return;
  }
  for (const VerbsPort& port : facts.verbs_ports) {
    Check check{fmt::format("verbs {}/{}", port.device, port.port),
                CheckState::ok,
                false,
                fmt::format("{}, {}, {}", port.state, port.rate, port.link_layer),
                {}};
    checks.push_back(warn_if(port.state != "ACTIVE", std::move(check), "the port has no link: check cable and switch"));
  }
  if (!facts.has_verbs_character_devices) {
    checks.push_back({"verbs access", CheckState::missing, false, "no /dev/infiniband/uverbs*",
                      "modprobe ib_uverbs; in a container, docker run --device=/dev/infiniband"});
  }
}

void check_cuda(const MachineFacts& facts, std::vector<Check>& checks) {
  if (facts.nvidia_driver.empty() && !facts.has_nvidia_character_devices) {
    checks.push_back({"cuda", CheckState::missing, false, "no NVIDIA driver",
                      "ranks use host memory; a GPU needs the driver (apt install nvidia-driver)"});
    return;
  }
  checks.push_back(
      {"cuda driver", CheckState::ok, false, facts.nvidia_driver.empty() ? "unknown" : facts.nvidia_driver, {}});
  for (std::size_t i = 0; i < facts.nvidia_gpus.size(); ++i) {
    checks.push_back({fmt::format("gpu {}", i), CheckState::ok, false, facts.nvidia_gpus[i], {}});
  }
  if (!facts.has_nvidia_character_devices) {
    checks.push_back({"cuda access", CheckState::missing, false, "no /dev/nvidia0",
                      "nvidia-modprobe -u -c=0; in a container, docker run --gpus all"});
  }
}

/// Why no adapter here can reach GPU memory as a dma-buf; empty: one can.
std::string why_no_dma_buf(const MachineFacts& facts, const Probes& probes) {
  if (facts.nvidia_driver.empty()) return "no GPU";
  if (!facts.has_open_nvidia_modules) return "the NVIDIA driver is not the open one";
  if (probes.takes_dma_buf.empty()) return "no adapter could be asked";
  std::string refusing;
  for (const auto& [device, takes] : probes.takes_dma_buf) {
    if (takes) return {};
    refusing += (refusing.empty() ? "" : ", ") + device;
  }
  return "the driver of " + refusing + " takes none";
}

void check_gpu_memory(const MachineFacts& facts, const Probes& probes, std::vector<Check>& checks) {
  if (facts.verbs_ports.empty()) return;
  const std::string why_not = why_no_dma_buf(facts, probes);
  Check check{"verbs gpu memory", CheckState::ok, false, "by dma-buf", {}};
  if (!why_not.empty()) {
    check.found = fmt::format(
        "{}; dma-buf would not: {}",
        facts.has_nvidia_peermem ? "by nvidia_peermem" : "through pinned memory; nvidia_peermem is not loaded",
        why_not);
  }
  checks.push_back(warn_if(!facts.nvidia_driver.empty() && !why_not.empty() && !facts.has_nvidia_peermem,
                           std::move(check),
                           "each byte is copied to pinned memory and from it: modprobe nvidia_peermem, or install the "
                           "driver's open kernel modules"));
}

}  // namespace

std::string_view to_string(CheckState state) {
  switch (state) {
    case CheckState::ok: return "ok";
    case CheckState::warn: return "warn";
    case CheckState::missing: return "missing";
  }
  return "";
}

std::vector<Check> check_machine(const MachineFacts& facts, const Probes& probes) {
  std::vector<Check> checks;
  checks.push_back(check_processors(facts, probes));
  checks.push_back(check_vectors(facts));
  checks.push_back(check_memory(facts));
  check_shared_memory(probes, checks);
  check_limits(facts, probes, checks);
  check_kernel(facts, probes, checks);
  check_network(facts, probes, checks);
  check_lab(probes, checks);
  check_verbs(facts, checks);
  check_cuda(facts, checks);
  check_gpu_memory(facts, probes, checks);
  return checks;
}

bool can_run_engine(const std::vector<Check>& checks) {
  return std::ranges::none_of(checks,
                              [](const Check& check) { return check.is_needed && check.state == CheckState::missing; });
}

}  // namespace espalier::engine::doctor
