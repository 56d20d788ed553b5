#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace espalier::test {

/// The names of this machine's RDMA devices, sorted.
inline std::vector<std::string> rdma_devices() {
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator("/sys/class/infiniband", none)) {
    names.push_back(entry.path().filename());
  }
  std::ranges::sort(names);
  return names;
}

/// By port 1 of a device of rdma_rxe, since it was made.
inline std::uint64_t sent_packets(const std::string& device) {
  std::uint64_t packets = 0;
  std::ifstream("/sys/class/infiniband/" + device + "/ports/1/hw_counters/sent_pkts") >> packets;
  return packets;
}

/// What the kernel itself has on a device of rdma_rxe, for management.
inline constexpr std::string_view objects_of_the_kernel = "pd 1 cq 1 qp 1 cm_id 0 mr 0 ctx 0 srq 0";

/// What `rdma resource` shows on a device: how many of each kind of object.
inline std::string rdma_objects(const std::string& device) {
  std::string shown;
  std::array<char, 256> text{};
  FILE* const output = popen(("rdma resource show " + device).c_str(), "r");
  while (output != nullptr && std::fgets(text.data(), text.size(), output) != nullptr) shown += text.data();
  if (output != nullptr) pclose(output);
  const std::string name = device + ": ";
  const std::size_t begin = shown.find(name);
  if (begin == std::string::npos) return shown;
  const std::size_t end = shown.find_last_not_of(" \n");
  return shown.substr(begin + name.size(), end + 1 - begin - name.size());
}

}  // namespace espalier::test
