#include "engine/doctor/machine_facts.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <sstream>

#include "engine/doctor/pseudo_files.h"

namespace espalier::engine::doctor {
namespace {

/// "always [madvise] never" has chosen "madvise".
std::string chosen(const std::string& line) {
  const std::size_t begin = line.find('[');
  const std::size_t end = line.find(']', begin);
  return begin == std::string::npos || end == std::string::npos ? line : line.substr(begin + 1, end - begin - 1);
}

/// "0-3,7" are five.
std::int64_t count_of_ranges(const std::string& text) {
  std::int64_t count = 0;
  std::istringstream ranges(text);
  for (std::string range; std::getline(ranges, range, ',');) {
    std::int64_t first = 0;
    const char* last_letter = range.data() + range.size();
    const auto [end, error] = std::from_chars(range.data(), last_letter, first);
    if (error != std::errc()) continue;
    std::int64_t last = first;
    if (end != last_letter && *end == '-') std::from_chars(end + 1, last_letter, last);
    count += std::max<std::int64_t>(last - first + 1, 0);
  }
  return count;
}

std::int64_t kibibytes(const std::string& text, const std::string& key) {
  const std::string value = value_after(text, key);
  std::int64_t number = 0;
  std::from_chars(value.data(), value.data() + value.size(), number);
  return number * 1024;
}

std::optional<std::int64_t> last_number(const std::string& line) {
  std::istringstream words(line);
  std::optional<std::int64_t> last;
  for (std::int64_t number = 0; words >> number;) last = number;
  return last;
}

/// The limit of the control group this process is in, version 2 or 1, as far as its mount shows it.
std::optional<double> quota_of(const std::string& root) {
  const std::string groups = root + "/sys/fs/cgroup";
  std::istringstream unified(first_line_of(groups + "/cpu.max"));
  double quota = 0;
  double period = 0;
  if (unified >> quota >> period && period > 0) return quota / period;
  const auto old_quota = number_in(groups + "/cpu/cpu.cfs_quota_us");
  const auto old_period = number_in(groups + "/cpu/cpu.cfs_period_us");
  if (!old_quota || !old_period || *old_quota <= 0 || *old_period <= 0) return std::nullopt;
  return static_cast<double>(*old_quota) / static_cast<double>(*old_period);
}

void read_processors(const std::string& root, MachineFacts& facts) {
  const std::string text = read_pseudo_file(root + "/proc/cpuinfo");
  facts.processor_model = value_after(text, "model name");
  std::string flags = value_after(text, "flags");
  if (flags.empty()) flags = value_after(text, "Features");
  facts.architecture_flags = flags.empty() ? flags : " " + flags + " ";
  facts.online_processors = count_of_ranges(first_line_of(root + "/sys/devices/system/cpu/online"));
  facts.numa_nodes = count_of_ranges(first_line_of(root + "/sys/devices/system/node/online"));
  facts.processor_quota = quota_of(root);
}

void read_kernel(const std::string& root, MachineFacts& facts) {
  facts.kernel_release = first_line_of(root + "/proc/sys/kernel/osrelease");
  facts.clock_source = first_line_of(root + "/sys/devices/system/clocksource/clocksource0/current_clocksource");
  const std::string huge = root + "/sys/kernel/mm/transparent_hugepage/";
  facts.huge_pages = chosen(first_line_of(huge + "enabled"));
  facts.huge_pages_shared_memory = chosen(first_line_of(huge + "shmem_enabled"));
  facts.socket_send_limit = last_number(first_line_of(root + "/proc/sys/net/ipv4/tcp_wmem"));
  facts.socket_receive_limit = last_number(first_line_of(root + "/proc/sys/net/ipv4/tcp_rmem"));
}

void read_interfaces(const std::string& root, MachineFacts& facts) {
  const std::string folder = root + "/sys/class/net/";
  for (const std::string& name : entries_of(folder)) {
    const std::string path = folder + name + "/";
    if (!std::filesystem::is_directory(path)) continue;  // bonding_masters is a file.
    NetworkInterface interface;
    interface.name = name;
    interface.state = first_line_of(path + "operstate");
    interface.speed_mbit = number_in(path + "speed");
    if (interface.speed_mbit && *interface.speed_mbit <= 0) interface.speed_mbit.reset();
    interface.mtu = number_in(path + "mtu").value_or(0);
    constexpr std::int64_t loopback_type = 772;  // ARPHRD_LOOPBACK
    interface.is_loopback = number_in(path + "type") == loopback_type;
    interface.is_device = std::filesystem::exists(path + "device");
    facts.interfaces.push_back(std::move(interface));
  }
}

void read_verbs(const std::string& root, MachineFacts& facts) {
  const std::string folder = root + "/sys/class/infiniband/";
  for (const std::string& device : entries_of(folder)) {
    for (const std::string& port : entries_of(folder + device + "/ports")) {
      const std::string path = folder + device + "/ports/" + port + "/";
      VerbsPort found;
      found.device = device;
      std::from_chars(port.data(), port.data() + port.size(), found.port);
      const std::string state = first_line_of(path + "state");  // "4: ACTIVE"
      const std::size_t name = state.find_first_not_of(' ', state.find(':') + 1);
      found.state = name == std::string::npos ? state : state.substr(name);
      found.rate = first_line_of(path + "rate");
      found.link_layer = first_line_of(path + "link_layer");
      facts.verbs_ports.push_back(std::move(found));
    }
  }
  facts.has_verbs_character_devices = !entries_of(root + "/dev/infiniband", "uverbs").empty();
}

void read_nvidia(const std::string& root, MachineFacts& facts) {
  const std::string version = first_line_of(root + "/proc/driver/nvidia/version");
  // "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 ..."; the version is the word with dots.
  std::istringstream words(version);
  for (std::string word; words >> word && facts.nvidia_driver.empty();) {
    if (word.find_first_not_of("0123456789.") == std::string::npos) facts.nvidia_driver = word;
  }
  facts.has_open_nvidia_modules = version.find("Open Kernel Module") != std::string::npos;
  facts.has_nvidia_peermem = std::filesystem::exists(root + "/sys/module/nvidia_peermem");
  const std::string folder = root + "/proc/driver/nvidia/gpus/";
  for (const std::string& gpu : entries_of(folder)) {
    const std::string model = value_after(read_pseudo_file(folder + gpu + "/information"), "Model");
    facts.nvidia_gpus.push_back(model.empty() ? gpu : model);
  }
  for (const std::string& name : entries_of(root + "/dev", "nvidia")) {
    const std::string number = name.substr(std::string("nvidia").size());
    const bool is_gpu = !number.empty() && number.find_first_not_of("0123456789") == std::string::npos;
    facts.has_nvidia_character_devices |= is_gpu;
  }
}

}  // namespace

MachineFacts read_machine_facts(const std::string& root) {
  MachineFacts facts;
  read_processors(root, facts);
  const std::string memory = read_pseudo_file(root + "/proc/meminfo");
  facts.memory_total = kibibytes(memory, "MemTotal");
  facts.memory_available = kibibytes(memory, "MemAvailable");
  read_kernel(root, facts);
  read_interfaces(root, facts);
  read_verbs(root, facts);
  read_nvidia(root, facts);
  return facts;
}

}  // namespace espalier::engine::doctor
