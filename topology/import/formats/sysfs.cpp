// What record_sysfs writes: a line per NUMA node, PCI device and adapter.

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "topology/import/formats/readers.h"
#include "topology/import/lines.h"
#include "topology/import/pci.h"

namespace espalier {
namespace {

constexpr std::string_view nvidia = "10de";
constexpr std::string_view amd = "1002";

class SysfsReader {
 public:
  explicit SysfsReader(const std::string& file) { draft_.file = file; }

  Result<Draft> read(std::string_view text) {
    for (const TextLine& line : lines_of(text)) {
      if (line.number == 1 || line.words().empty()) continue;
      if (auto read = read_line(line); !read) return tl::unexpected(read.error());
    }
    name_devices();
    split_ports();
    join_cpus();
    if (gpus_.empty() && cpus_.size() < 2) {
      return fail(ErrorCode::infeasible, draft_.file + ": the machine has no GPU, and one NUMA node",
                  "espalier run one-host runs ranks on its CPUs");
    }
    if (gpus_.empty()) {
      for (const auto& [number, cpu] : cpus_) draft_.nodes[cpu].is_rank = true;
    }
    return std::move(draft_);
  }

 private:
  /// What a PCI device says of the link above it, which is as slow as the slower end.
  struct Device {
    std::size_t node = 0;
    std::optional<Bandwidth> rate;
    bool is_adapter = false;
  };
  using Fields = std::map<std::string_view, Word, std::less<>>;

  Result<void> read_line(const TextLine& line) {
    const auto words = line.words();
    const std::string_view kind = words[0].text;
    if (words.size() < 2) return refuse(line, words[0], "a line has a kind and a name");
    Fields fields;
    for (std::size_t i = 2; i < words.size(); ++i) {
      const std::size_t equals = words[i].text.find('=');
      if (equals == std::string_view::npos) return refuse(line, words[i], cited(words[i].text) + " is not key=value");
      fields[words[i].text.substr(0, equals)] = {words[i].text.substr(equals + 1), words[i].column};
    }
    if (kind == "numa") return read_numa(line, words[1]);
    if (kind == "pci") return read_device(line, words[1], fields);
    if (kind == "xgmi") return read_xgmi(line, words[1], fields);
    if (kind == "infiniband" || kind == "net") return read_adapter(line, words[1], fields);
    return refuse(line, words[0], cited(kind) + " is neither numa, pci, xgmi, infiniband nor net");
  }

  tl::unexpected<Error> refuse(const TextLine& line, const Word& word, const std::string& message) const {
    return fail_at(draft_.file, line.number, word.column, message, "espalier topo detect --record writes such files");
  }

  Result<void> read_numa(const TextLine& line, const Word& word) {
    const auto number = whole_number(word.text);
    if (!number || *number > 4096) return refuse(line, word, cited(word.text) + " is no NUMA node");
    cpu(*number);
    return {};
  }

  std::size_t cpu(std::int64_t number) {
    const auto known = cpus_.find(number);
    if (known != cpus_.end()) return known->second;
    return cpus_[number] = draft_.add({.id = fmt::format("cpu{}", number), .kind = NodeKind::cpu});
  }

  Result<void> read_device(const TextLine& line, const Word& address, const Fields& fields) {
    const std::string bus = normal_bus(address.text);
    if (devices_.contains(bus)) return refuse(line, address, cited(address.text) + " is there twice");
    const std::string_view device_class = text_of(fields, "class"), vendor = text_of(fields, "vendor");
    std::int64_t numa = 0;
    if (const auto field = fields.find("numa"); field != fields.end()) {
      const auto number = whole_number(field->second.text);
      if (!number || *number > 4096) return refuse(line, field->second, cited(field->second.text) + " is no NUMA node");
      numa = *number;
    }
    const bool is_bridge = device_class.starts_with("0604");
    const bool is_nic = device_class.starts_with("02");
    const std::string model =
        fields.contains("device") ? fmt::format("{}:{}", vendor, text_of(fields, "device")) : std::string();
    const bool is_display = device_class.starts_with("03") || device_class.starts_with("12");
    const bool is_gpu = is_display && (vendor == nvidia || vendor == amd) && !draws_a_console(model);
    if (!is_bridge && !is_nic && !is_gpu) return {};
    Device device{.rate = rate_of(fields), .is_adapter = is_nic};
    std::size_t above = 0;
    std::optional<Bandwidth> rate = device.rate;
    if (const auto parent = fields.find("parent"); parent != fields.end()) {
      const auto known = devices_.find(normal_bus(parent->second.text));
      if (known == devices_.end()) {
        return refuse(line, parent->second, cited(parent->second.text) + " is on no line before");
      }
      above = known->second.node;
      if (known->second.rate && (!rate || *known->second.rate < *rate)) rate = known->second.rate;
    } else {
      above = cpu(numa);
    }
    DraftNode node{.id = is_bridge ? fmt::format("pcie{}", bridges_++) : "",
                   .kind = is_gpu      ? NodeKind::gpu
                           : is_bridge ? NodeKind::pcie
                                       : NodeKind::nic,
                   .is_rank = is_gpu,
                   .bus = bus};
    if (is_gpu) node.model = model;
    device.node = draft_.add(std::move(node));
    if (is_gpu) gpus_[bus] = device.node;
    if (is_nic) nics_[bus] = device.node;
    DraftLink link{.tail = device.node, .head = above, .medium = Medium::pcie};
    if (rate) link.bandwidth = {*rate, Origin::captured, draft_.file + ": max_link_speed, current_link_width"};
    draft_.links.push_back(std::move(link));
    devices_[bus] = device;
    return {};
  }

  /// "xgmi ADDRESS to=ADDRESS count=N rate=MB/s": cables between two GPUs, and the rate of each.
  Result<void> read_xgmi(const TextLine& line, const Word& address, const Fields& fields) {
    const auto end = fields.find("to");
    const Word& other = end == fields.end() ? address : end->second;
    const auto one = gpus_.find(normal_bus(address.text)), two = gpus_.find(normal_bus(other.text));
    if (one == gpus_.end() || two == gpus_.end() || one == two) {
      return refuse(line, other, "an xGMI link joins two GPUs of lines before");
    }
    DraftLink link{.tail = one->second, .head = two->second, .medium = Medium::xgmi};
    constexpr std::int64_t max_cables = 64, max_rate = 1'000'000'000;
    if (const auto count = fields.find("count"); count != fields.end()) {
      const auto number = whole_number(count->second.text);
      if (!number || *number < 1 || *number > max_cables) {
        return refuse(line, count->second, cited(count->second.text) + " is no number of cables");
      }
      link.count = *number;
    }
    if (const auto rate = fields.find("rate"); rate != fields.end()) {
      const auto number = whole_number(rate->second.text);
      if (!number || *number < 1 || *number > max_rate) {
        return refuse(line, rate->second, cited(rate->second.text) + " is no rate in MB/s");
      }
      link.bandwidth = {{*number * 1'000'000}, Origin::captured, draft_.file + ": min_bandwidth of its driver"};
    }
    draft_.links.push_back(std::move(link));
    return {};
  }

  static std::string_view text_of(const Fields& fields, std::string_view key) {
    const auto field = fields.find(key);
    return field == fields.end() ? std::string_view() : field->second.text;
  }

  /// Nothing where virtual machines hide it: one lane of PCIe 1 carries no GPU.
  static std::optional<Bandwidth> rate_of(const Fields& fields) {
    const auto width = whole_number(text_of(fields, "width"));
    if (!width || *width == 0) return std::nullopt;
    const auto rate = pcie_rate(text_of(fields, "speed"), *width);
    return rate == pcie_rate("2.5", 1) ? std::nullopt : rate;
  }

  /// RDMA names come first: they are what NCCL and nvidia-smi call an adapter.
  Result<void> read_adapter(const TextLine& line, const Word& name, const Fields& fields) {
    const auto device = devices_.find(normal_bus(text_of(fields, "pci")));
    if (device == devices_.end() || !device->second.is_adapter) return {};
    DraftNode& node = draft_.nodes[device->second.node];
    names_.try_emplace(device->second.node, name.text);
    if (const std::string_view state = text_of(fields, "state"); !state.empty() && state != "active") {
      draft_.warn(import_codes::contradiction, line.number,
                  fmt::format("port {} of {} is {}", cited(text_of(fields, "port")), cited(name.text), cited(state)),
                  "check its cable and `rdma link`; the topology has the adapter as if it were up");
    }
    std::optional<Known<Bandwidth>> rate;
    if (const auto field = fields.find("rate"); field != fields.end()) {
      const auto gigabits = whole_number(field->second.text);
      if (!gigabits || *gigabits > 100'000)
        return refuse(line, field->second, cited(field->second.text) + " is no rate in Gb/s");
      if (*gigabits > 0) rate = {{*gigabits * 125'000'000}, Origin::captured, draft_.file + ": rate of its port"};
    }
    if (const auto port = fields.find("port"); port != fields.end()) {
      const auto number = whole_number(port->second.text);
      if (!number || *number < 1 || *number > 255) {
        return refuse(line, port->second, cited(port->second.text) + " is no port");
      }
      // An adapter may have a second name, as of RDMA in software beside its own: the ports are the same.
      const bool is_first_name = names_[device->second.node] == name.text;
      if (is_first_name && !ports_[device->second.node].try_emplace(*number, rate).second) {
        return refuse(line, port->second, cited(port->second.text) + " is there twice");
      }
    }
    if (!node.port) node.port = rate;
    return {};
  }

  /// An adapter of several ports: each is a NIC, NAME.p1 and so on, and they share its slot.
  void split_ports() {
    for (const auto& [node, ports] : ports_) {
      if (ports.size() < 2) continue;
      const std::string name = draft_.nodes[node].id;
      const auto slot = std::ranges::find(draft_.links, node, &DraftLink::tail)->bandwidth;
      draft_.nodes[node].id = fmt::format("pcie{}", bridges_++);
      draft_.nodes[node].kind = NodeKind::pcie;
      draft_.nodes[node].port.reset();
      for (const auto& [number, rate] : ports) {
        const std::size_t nic =
            draft_.add({.id = fmt::format("{}.p{}", name, number), .kind = NodeKind::nic, .port = rate});
        draft_.links.push_back({.tail = nic, .head = node, .medium = Medium::pcie, .bandwidth = slot});
      }
    }
  }

  /// In the order of their addresses, as the drivers number them.
  void name_devices() {
    int number = 0;
    for (const auto& [bus, node] : gpus_) draft_.nodes[node].id = fmt::format("gpu{}", number++);
    number = 0;
    for (const auto& [bus, node] : nics_) draft_.nodes[node].id = fmt::format("nic{}", number++);
    for (const auto& [node, name] : names_) draft_.nodes[node].id = name;
  }

  void join_cpus() {
    for (auto one = cpus_.begin(); one != cpus_.end(); ++one) {
      for (auto other = std::next(one); other != cpus_.end(); ++other) {
        draft_.links.push_back({.tail = one->second, .head = other->second, .medium = Medium::smp});
      }
    }
  }

  Draft draft_;
  std::map<std::int64_t, std::size_t> cpus_;                                              // by NUMA node
  std::map<std::string, Device> devices_;                                                 // by address
  std::map<std::size_t, std::string> names_;                                              // of adapters, by node
  std::map<std::string, std::size_t> gpus_, nics_;                                        // by address
  std::map<std::size_t, std::map<std::int64_t, std::optional<Known<Bandwidth>>>> ports_;  // rates, by node and number
  int bridges_ = 0;
};

}  // namespace

Result<Draft> read_sysfs(std::string_view text, const std::string& file) { return SysfsReader(file).read(text); }

}  // namespace espalier
