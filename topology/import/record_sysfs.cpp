#include "topology/import/record_sysfs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <map>
#include <vector>

#include "topology/import/lines.h"
#include "topology/import/pci.h"
#include "topology/import/record_kfd.h"

namespace espalier {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t max_pci_devices = 10'000;

/// The first line of a small file; empty where it cannot be read.
std::string first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string first_word(const fs::path& path) {
  const std::string line = first_line(path);
  return line.substr(0, line.find(' '));
}

/// Names in a folder, sorted; none where there is no such folder.
std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code status;
  for (const auto& entry : fs::directory_iterator(folder, status)) names.push_back(entry.path().filename());
  std::ranges::sort(names);
  return names;
}

/// "0000:17:00.0": domain, bus, device and function.
bool is_address(const std::string& name) {
  return name.size() >= 12 && std::ranges::count(name, ':') == 2 && name[name.size() - 2] == '.';
}

/// " key=value", or nothing for a value that is not a number.
std::string number_field(const char* key, const std::string& value) {
  const bool is_number = !value.empty() && value.find_first_not_of("0123456789.") == std::string::npos;
  return is_number ? fmt::format(" {}={}", key, value) : "";
}

/// The kinds of devices that carry collectives or lead to what does, by the first two digits of their class.
bool matters(const std::string& device_class) {
  return device_class.starts_with("02") || device_class.starts_with("03") || device_class.starts_with("12") ||
         device_class.starts_with("0604");
}

/// "0x030200" as "030200".
std::string hexadecimal(const fs::path& path) {
  const std::string text = first_word(path);
  return text.starts_with("0x") ? text.substr(2) : text;
}

/// Devices with those above them first.
std::string record_pci(const fs::path& sys) {
  std::map<std::pair<std::size_t, std::string>, std::string> lines;  // by depth and address
  for (const std::string& address : names_in(sys / "bus/pci/devices")) {
    std::error_code status;
    const fs::path device = fs::canonical(sys / "bus/pci/devices" / address, status);
    const std::string device_class = hexadecimal(device / "class");
    // A virtual function is a part of a device that is there already.
    if (status || !is_address(address) || !matters(device_class) || fs::exists(device / "physfn", status)) continue;
    std::size_t depth = 0;
    for (const fs::path& part : device) depth += is_address(part.string()) ? 1U : 0U;
    std::string line = "pci " + normal_bus(address);
    const std::string parent = device.parent_path().filename();
    if (is_address(parent)) line += " parent=" + normal_bus(parent);
    line += fmt::format(" class={} vendor={}", device_class, hexadecimal(device / "vendor"));
    if (const std::string model = hexadecimal(device / "device"); !model.empty()) line += " device=" + model;
    line += number_field("numa", first_word(device / "numa_node"));
    // The speed at rest is not the speed at work; a width does not change.
    line += number_field("speed", first_word(device / "max_link_speed"));
    line += number_field("width", first_word(device / "current_link_width"));
    lines[{depth, normal_bus(address)}] = line + "\n";
  }
  std::string text;
  for (const auto& [place, line] : lines) text += line;
  return text;
}

/// Adapters of one of the folders of sys/class, with the PCI device that they are of: a line for each of what
/// `fields_of` says of one.
std::string record_adapters(const fs::path& sys, const std::string& kind, const auto& fields_of) {
  std::string text;
  for (const std::string& name : names_in(sys / "class" / kind)) {
    std::error_code status;
    const fs::path adapter = sys / "class" / kind / name;
    const std::string device = fs::canonical(adapter / "device", status).filename();
    if (status || !is_address(device)) continue;
    for (const std::string& fields : fields_of(adapter)) {
      text += fmt::format("{} {} pci={}{}\n", kind, name, normal_bus(device), fields);
    }
  }
  return text;
}

/// Gb/s of payload. "40 Gb/sec (4X QDR)" counts its line code.
std::string port_fields(const fs::path& port) {
  std::string fields = fmt::format(" port={}", port.filename().string());
  const std::string state = first_line(port / "state");  // "4: ACTIVE"
  if (const std::size_t blank = state.find(' '); blank != std::string::npos) {
    std::string word = state.substr(blank + 1);
    std::ranges::transform(word, word.begin(),
                           [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
    fields += " state=" + word.substr(0, word.find(' '));
  }
  const std::string line = first_line(port / "rate");
  const auto rate = whole_number(line.substr(0, line.find_first_of(". ")));
  if (!rate) return fields;
  const bool has_8b10b = line.find("SDR") != std::string::npos || line.find("DDR") != std::string::npos ||
                         line.find("QDR") != std::string::npos;
  return fields + fmt::format(" rate={}", has_8b10b ? *rate * 8 / 10 : *rate);
}

/// Its ports that are active, or else its first one.
std::vector<std::string> infiniband_fields(const fs::path& adapter) {
  const auto ports = names_in(adapter / "ports");
  if (ports.empty()) return {""};
  std::vector<std::string> fields;
  for (const std::string& port : ports) {
    const bool is_active = first_line(adapter / "ports" / port / "state").find("ACTIVE") != std::string::npos;
    if (is_active) fields.push_back(port_fields(adapter / "ports" / port));
  }
  if (fields.empty()) fields.push_back(port_fields(adapter / "ports" / ports.front()));
  return fields;
}

/// Gb/s; the file has Mb/s, and -1 where no cable is.
std::vector<std::string> ethernet_fields(const fs::path& adapter) {
  const auto rate = whole_number(first_word(adapter / "speed"));
  return {rate ? fmt::format(" rate={}", *rate / 1000) : ""};
}

}  // namespace

Result<std::string> record_sysfs(const fs::path& root) {
  const fs::path sys = root / "sys";
  std::error_code status;
  if (!fs::is_directory(sys / "devices", status)) {
    return fail(ErrorCode::unavailable, "there is no sysfs in " + sys.string(), "name the folder that holds sys/");
  }
  std::string text = "sysfs 1\n";
  for (const std::string& name : names_in(sys / "devices/system/node")) {
    const auto number = number_behind(name, "node");
    // Nodes without CPUs are memory.
    if (number && !first_line(sys / "devices/system/node" / name / "cpulist").empty()) {
      text += fmt::format("numa {}\n", *number);
    }
  }
  if (names_in(sys / "bus/pci/devices").size() > max_pci_devices) {
    return fail(ErrorCode::too_large, fmt::format("more than {} PCI devices", max_pci_devices),
                "no machine has as many");
  }
  text += record_pci(sys);
  text += record_kfd(sys);
  text += record_adapters(sys, "infiniband", infiniband_fields);
  text += record_adapters(sys, "net", ethernet_fields);
  return text;
}

bool records_gpus(std::string_view record) {
  for (const TextLine& line : lines_of(record)) {
    const auto has = [&](std::string_view part) { return line.text.find(part) != std::string_view::npos; };
    const bool is_display = has(" class=03") || has(" class=12");
    if (line.text.starts_with("pci ") && is_display && (has(" vendor=10de") || has(" vendor=1002"))) return true;
  }
  return false;
}

}  // namespace espalier
