// xGMI links between AMD's GPUs as the driver shows them: class/kfd. A link's weight is 15 per hop; its most MB/s are
// those of all cables between two GPUs, its least those of one. Source: Linux,
// drivers/gpu/drm/amd/amdkfd/kfd_crat.c, 6.x.

#include "topology/import/record_kfd.h"

#include <fmt/format.h>

#include <fstream>
#include <map>

#include "topology/import/lines.h"

namespace espalier {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t xgmi_type = 11, one_hop = 15;
constexpr std::size_t max_nodes = 1024;

/// Lines of a key and a number.
std::map<std::string, std::int64_t, std::less<>> read_properties(const fs::path& path) {
  std::map<std::string, std::int64_t, std::less<>> values;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::size_t blank = line.find(' ');
    if (blank == std::string::npos) continue;
    if (const auto number = whole_number(line.substr(blank + 1))) values[line.substr(0, blank)] = *number;
  }
  return values;
}

std::int64_t number_of(const std::map<std::string, std::int64_t, std::less<>>& values, std::string_view key) {
  const auto found = values.find(key);
  return found == values.end() ? 0 : found->second;
}

/// Names in a folder that are numbers, in their order.
std::map<std::int64_t, fs::path> numbered(const fs::path& folder) {
  std::map<std::int64_t, fs::path> places;
  std::error_code status;
  for (const auto& entry : fs::directory_iterator(folder, status)) {
    const auto number = whole_number(entry.path().filename().string());
    if (number && places.size() < max_nodes) places[*number] = entry.path();
  }
  return places;
}

}  // namespace

std::string record_kfd(const fs::path& sys) {
  const auto nodes = numbered(sys / "class/kfd/kfd/topology/nodes");
  std::map<std::int64_t, std::string> addresses;
  for (const auto& [number, place] : nodes) {
    const auto properties = read_properties(place / "properties");
    if (number_of(properties, "simd_count") == 0) continue;  // CPUs are nodes, too.
    // Bus, device and function, as PCI packs them.
    const std::int64_t location = number_of(properties, "location_id");
    addresses[number] = fmt::format("{:04x}:{:02x}:{:02x}.{:x}", number_of(properties, "domain"), location >> 8U & 0xff,
                                    location >> 3U & 0x1f, location & 7);
  }
  std::string text;
  for (const auto& [number, place] : nodes) {
    if (!addresses.contains(number)) continue;
    for (const auto& [link, folder] : numbered(place / "io_links")) {
      const auto properties = read_properties(folder / "properties");
      const auto other = addresses.find(number_of(properties, "node_to"));
      // Each link stands at both of its ends, and GPUs that are several hops apart are listed as well.
      if (other == addresses.end() || other->first <= number || number_of(properties, "type") != xgmi_type ||
          number_of(properties, "weight") > one_hop) {
        continue;
      }
      const std::int64_t most = number_of(properties, "max_bandwidth"), least = number_of(properties, "min_bandwidth");
      text += fmt::format("xgmi {} to={}", addresses[number], other->second);
      if (least > 0 && most >= least) text += fmt::format(" count={} rate={}", most / least, least);
      text += "\n";
    }
  }
  return text;
}

}  // namespace espalier
