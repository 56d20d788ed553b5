#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
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

}  // namespace espalier::test
