// NCCL topology XML: what NCCL_TOPO_DUMP_FILE writes and NCCL_TOPO_FILE reads. Elements and attributes: NCCL's
// src/graph/xml.cc and topo.cc; RCCL writes version 2 and xgmi in place of nvlink.

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "topology/import/formats/readers.h"
#include "topology/import/lines.h"
#include "topology/import/pci.h"
#include "topology/import/presets.h"
#include "topology/import/xml_file.h"

namespace espalier {
namespace {

using pugi::xml_node;

constexpr std::string_view hidden_switch = "fffffff:ff:ff.0";  // A virtual machine does not see which NVSwitch it is.

bool is_virtual_interface(std::string_view name) {
  constexpr std::array prefixes = {"docker", "veth", "br-", "virbr", "lo", "tailscale"};
  return std::ranges::any_of(prefixes, [&](std::string_view prefix) { return name.starts_with(prefix); });
}

class NcclTopologyReader {
 public:
  NcclTopologyReader(const XmlFile& xml, const std::string& file) : xml_(xml) { draft_.file = file; }

  Result<Draft> read() {
    const xml_node system = xml_.root();
    if (std::string_view(system.name()) != "system") {
      return xml_.fail_at(system, "a NCCL topology is a <system>", "name the format with --as");
    }
    const auto version = xml_.integer(system, "version", 1, 1, 2);
    if (!version) return tl::unexpected(version.error());
    for (const xml_node cpu : system.children("cpu")) hosts_.emplace(cpu.attribute("host_hash").value(), "");
    name_hosts(system);
    for (const xml_node cpu : system.children("cpu")) {
      if (auto read = read_cpu(cpu); !read) return tl::unexpected(read.error());
    }
    if (gpus_.empty()) return no_gpus(system);
    for (const auto& [gpu, element] : gpus_) {
      if (auto read = read_gpu_links(gpu, element); !read) return tl::unexpected(read.error());
    }
    if (virtual_bridges_ > 0) {
      draft_.warn(
          import_codes::unbelievable, first_virtual_bridge_,
          fmt::format("{} PCIe bridges show one lane of PCIe 1, as those of virtual machines do", virtual_bridges_),
          "their rates are taken from the preset, or assumed");
    }
    if (!virtual_.empty()) {
      draft_.warn(import_codes::left_out, first_virtual_,
                  listed(virtual_) + (virtual_.size() == 1 ? " is no network card" : " are no network cards"),
                  virtual_.size() == 1 ? "it was left out" : "they were left out");
    }
    mark_racks();
    keep_odd_cards();
    join_sockets();
    compare_directions();
    return std::move(draft_);
  }

 private:
  /// Hosts are numbered in the order of the file; a single one has no name.
  void name_hosts(xml_node system) {
    if (hosts_.size() < 2) return;
    std::size_t next = 0;
    for (const xml_node cpu : system.children("cpu")) {
      std::string& name = hosts_[cpu.attribute("host_hash").value()];
      if (name.empty()) name = fmt::format("host{}", next++);
    }
  }

  tl::unexpected<Error> no_gpus(xml_node system) const {
    const auto devices = system.select_nodes(".//pci").size();
    return fail(ErrorCode::infeasible,
                fmt::format("{}: there is no GPU among its {} PCI devices: they have neither a class nor a <gpu>",
                            draft_.file, devices),
                "such files only place devices; import what `nvidia-smi topo -m` prints instead");
  }

  /// "intel-6-143" of an x86 processor, "arm" or "power" of others; empty where the file does not say.
  static std::string processor_model(xml_node cpu) {
    const std::string_view arch = cpu.attribute("arch").value(), vendor = cpu.attribute("vendor").value();
    if (arch == "arm64") return "arm";
    if (arch == "ppc64") return "power";
    const std::string maker = vendor == "GenuineIntel" ? "intel" : vendor == "AuthenticAMD" ? "amd" : "";
    const int family = cpu.attribute("familyid").as_int(-1), model = cpu.attribute("modelid").as_int(-1);
    return maker.empty() || family < 0 || model < 0 ? maker : fmt::format("{}-{}-{}", maker, family, model);
  }

  Result<void> read_cpu(xml_node element) {
    const std::string& host = hosts_[element.attribute("host_hash").value()];
    const auto numa = xml_.integer(element, "numaid", -1, -1, 4096);
    if (!numa) return tl::unexpected(numa.error());
    const std::size_t order = cpus_[host].size();
    DraftNode cpu{.id = fmt::format("cpu{}", *numa < 0 ? static_cast<std::int64_t>(order) : *numa),
                  .kind = NodeKind::cpu,
                  .host = host};
    cpu.model = processor_model(element);
    if (draft_.find(cpu)) cpu.id = fmt::format("cpu{}.{}", *numa, order);
    const std::size_t node = draft_.add(cpu);
    cpus_[host].push_back(node);
    for (const xml_node child : element.children()) {
      const std::string_view name = child.name();
      if (name == "pci") {
        if (auto read = read_pci(child, node); !read) return read;
      } else if (name == "nic") {
        if (auto read = read_nic(child, node, "", std::nullopt); !read) return read;
      }
    }
    return {};
  }

  Result<void> read_pci(xml_node element, std::size_t parent) {
    const std::string_view kind = element.attribute("class").value();
    const bool is_bridge = element.child("pci") || kind.starts_with("0x0604");
    const auto rate = read_rate(element, is_bridge);
    if (!rate) return tl::unexpected(rate.error());
    const std::string bus = normal_bus(element.attribute("busid").value());
    if (is_bridge) {
      const std::size_t bridge = add_below(
          parent, {.id = fmt::format("pcie{}", bridges_[host_of(parent)]++), .kind = NodeKind::pcie, .bus = bus},
          *rate);
      for (const xml_node child : element.children("pci")) {
        if (auto read = read_pci(child, bridge); !read) return read;
      }
      return {};
    }
    if (element.child("gpu") || kind.starts_with("0x03") || kind.starts_with("0x12")) {
      return read_gpu(element, parent, bus, *rate);
    }
    if (element.child("nic")) {
      for (const xml_node nic : element.children("nic")) {
        if (auto read = read_nic(nic, parent, bus, *rate); !read) return read;
      }
    } else if (kind.starts_with("0x02")) {
      add_below(parent, {.id = fmt::format("nic{}", nics_[host_of(parent)]++), .kind = NodeKind::nic, .bus = bus},
                *rate);
    }
    return {};
  }

  Result<std::optional<Known<Bandwidth>>> read_rate(xml_node element, bool is_bridge) {
    const auto width = xml_.integer(element, "link_width", 16, 0, 32);
    if (!width) return tl::unexpected(width.error());
    const auto rate = pcie_rate(element.attribute("link_speed").value(), *width);
    if (!rate) return std::nullopt;
    if (is_bridge && *width == 1 && rate->bytes_per_second <= 250'000'000) {
      if (virtual_bridges_++ == 0) first_virtual_bridge_ = xml_.line(element);
      return std::nullopt;
    }
    return Known<Bandwidth>{*rate, Origin::captured, draft_.file + ": link_speed x link_width"};
  }

  /// "10de:2330" of vendor="0x10de" device="0x2330"; empty where they are not there.
  static std::string pci_id(xml_node pci) {
    std::string_view vendor = pci.attribute("vendor").value(), device = pci.attribute("device").value();
    if (!vendor.starts_with("0x") || !device.starts_with("0x")) return {};
    return fmt::format("{}:{}", vendor.substr(2), device.substr(2));
  }

  Result<void> read_gpu(xml_node pci, std::size_t parent, const std::string& bus,
                        const std::optional<Known<Bandwidth>>& rate) {
    const xml_node element = pci.child("gpu");
    const std::string& host = host_of(parent);
    const auto number = xml_.integer(element, "dev", next_gpu_[host], 0, 65'535);
    if (!number) return tl::unexpected(number.error());
    DraftNode gpu{.id = fmt::format("gpu{}", *number), .is_rank = true, .host = host, .bus = bus};
    std::string architecture = element.attribute("gcn").value();
    if (whole_number(architecture)) architecture = architecture == "910" ? "gfx90a" : "gfx" + architecture;
    // RCCL has both, and its sm is no compute capability: 90 of MI250, or the number of compute units.
    const std::string sm = architecture.empty() ? element.attribute("sm").value() : "";
    gpu.model = sm.empty() ? architecture : sm;
    // Vendor and device tell more than the compute capability, where they are known.
    const std::string id = pci_id(pci);
    if (find_generation(id) != nullptr && !find_gpu_model(id).empty()) gpu.model = id;
    if (const Bandwidth nvlink = nvlink_rate_of(sm); nvlink.bytes_per_second > 0) {
      gpu.link_rate = {nvlink, Origin::preset, "compute capability " + sm};
    } else if (const Bandwidth xgmi = xgmi_rate_of(architecture); xgmi.bytes_per_second > 0) {
      gpu.link_rate = {xgmi, Origin::preset, architecture};
    }
    for (const DraftNode& other : draft_.nodes) {
      if (other.host == host && (other.id == gpu.id || other.bus == bus)) {
        return xml_.fail_at(pci, fmt::format("the GPU {} at {} is there twice", gpu.id, bus), "remove one of them");
      }
    }
    next_gpu_[host] = *number + 1;
    gpus_.emplace_back(add_below(parent, std::move(gpu), rate), element);
    return {};
  }

  /// "guid-0x1f-port-1"; kept where it is not a NIC's own (keep_odd_cards).
  static std::string card_of(xml_node net) {
    const std::string_view guid = net.attribute("guid").value();
    return guid.empty() ? std::string() : fmt::format("guid-{}-port-{}", guid, net.attribute("port").as_int(0));
  }

  /// GUIDs say nothing where every NIC has one of its own, but where NCCL cannot read them: without 0x.
  void keep_odd_cards() {
    std::map<std::pair<std::string, std::string>, int> cards;
    for (const DraftNode& node : draft_.nodes) {
      if (node.kind == NodeKind::nic) ++cards[{node.host, node.model}];
    }
    for (DraftNode& node : draft_.nodes) {
      if (node.kind != NodeKind::nic || cards[{node.host, node.model}] > 1) continue;
      if (node.model.starts_with("guid-0x")) node.model.clear();
    }
  }

  /// Every port of a card is a NIC; the ports share the card's slot.
  Result<void> read_nic(xml_node nic, std::size_t parent, const std::string& bus,
                        const std::optional<Known<Bandwidth>>& rate) {
    std::size_t above = parent;
    std::optional<Known<Bandwidth>> own = rate;
    const auto ports = nic.children("net");
    if (std::distance(ports.begin(), ports.end()) > 1) {
      above = add_below(
          parent, {.id = fmt::format("pcie{}", bridges_[host_of(parent)]++), .kind = NodeKind::pcie, .bus = bus}, rate);
    }
    for (const xml_node net : ports) {
      const std::string name = net.attribute("name").value();
      if (is_virtual_interface(name)) {
        if (virtual_.empty()) first_virtual_ = xml_.line(net);
        if (std::ranges::find(virtual_, name) == virtual_.end()) virtual_.push_back(name);
        continue;
      }
      constexpr std::int64_t fastest = 100'000'000;  // Mbit/s.
      auto speed = xml_.integer(net, "speed", 0, -1, std::numeric_limits<std::int32_t>::max());
      if (!speed) return tl::unexpected(speed.error());
      if (*speed > fastest) {
        draft_.warn(import_codes::unbelievable, xml_.line(net),
                    fmt::format("{} has a speed of {} Mbit/s", cited(name), *speed), "it was not used");
        *speed = 0;
      }
      DraftNode port{.id = name.empty() ? fmt::format("nic{}", nics_[host_of(parent)]++) : name, .kind = NodeKind::nic};
      if (above == parent) port.bus = bus;
      port.model = card_of(net);
      if (*speed > 0) port.port = {{*speed * 125'000}, Origin::captured, draft_.file + ": speed"};
      if (bus.empty()) own = port.port;  // In no slot: nothing else limits it.
      DraftNode same = port;
      same.host = host_of(parent);
      if (draft_.find(same)) continue;  // NCCL repeats a socket's card below every CPU.
      add_below(above, std::move(port), own);
    }
    return {};
  }

  Result<void> read_gpu_links(std::size_t gpu, xml_node element) {
    for (const auto& [name, medium] : {std::pair{"nvlink", Medium::nvlink}, std::pair{"xgmi", Medium::xgmi}}) {
      for (const xml_node link : element.children(name)) {
        const auto count = xml_.integer(link, "count", 1, 1, 64);
        if (!count) return tl::unexpected(count.error());
        const std::string bus = normal_bus(link.attribute("target").value());
        const std::string_view kind = link.attribute("tclass").value();
        if (bus == draft_.nodes[gpu].bus) {
          draft_.warn(import_codes::contradiction, xml_.line(link),
                      fmt::format("{} of {} lead to itself", name, draft_.nodes[gpu].id), "they were left out");
          continue;
        }
        const auto target = find_target(gpu, bus, kind);
        if (!target && kind.starts_with("0x03")) {
          draft_.warn(import_codes::left_out, xml_.line(link),
                      fmt::format("{} of {} lead to {}, which is not in the file", name, draft_.nodes[gpu].id, bus),
                      "they were left out; a file of some of a machine's GPUs has no others");
          continue;
        }
        if (!target) {
          return xml_.fail_at(link, fmt::format("there is no device {} in the file", bus),
                              "check that the file is whole");
        }
        add_gpu_link({.tail = gpu, .head = *target, .medium = medium, .count = *count, .one_way = is_gpu(*target)});
      }
    }
    for (const xml_node link : element.children("c2c")) {
      const auto rate = xml_.integer(link, "bw", 0, 0, 10'000'000);  // MB/s of each
      const auto count = xml_.integer(link, "count", 1, 1, 64);
      if (!rate || !count) return tl::unexpected((rate ? count : rate).error());
      DraftLink to_cpu{.tail = gpu, .head = cpu_above(gpu), .medium = Medium::c2c};
      if (*rate > 0) to_cpu.bandwidth = {{*rate * *count * 1'000'000}, Origin::captured, draft_.file + ": c2c bw"};
      draft_.links.push_back(std::move(to_cpu));
    }
    return {};
  }

  /// NVSwitches of GPUs beside Grace CPUs are in the rack, and serve its other trays as well.
  void mark_racks() {
    if (hosts_.size() > 1 || !draft_.has(Medium::c2c)) return;
    for (DraftNode& node : draft_.nodes) node.joins_hosts = node.kind == NodeKind::switch_node;
  }

  /// Links that a file lists one by one, or to several NVSwitches, are counted together.
  void add_gpu_link(const DraftLink& link) {
    for (DraftLink& known : draft_.links) {
      if (known.tail != link.tail || known.head != link.head || known.medium != link.medium) continue;
      known.count += link.count;
      return;
    }
    draft_.links.push_back(link);
  }

  /// The end of an NVLink: all NVSwitches are one node, as NCCL has it; of no host when several hosts share them.
  std::optional<std::size_t> find_target(std::size_t gpu, const std::string& bus, std::string_view kind) {
    if (bus == hidden_switch || kind.starts_with("0x0680")) {
      if (kind == "0x068001") return cpu_above(gpu);
      const DraftNode node{.id = "nvswitch",
                           .kind = NodeKind::switch_node,
                           .host = bus == hidden_switch && hosts_.size() > 1 ? "" : draft_.nodes[gpu].host};
      const auto known = draft_.find(node);
      return known ? *known : draft_.add(node);
    }
    if (kind.starts_with("0x0604")) return cpu_above(gpu);  // POWER: NVLink into the CPU.
    for (std::size_t i = 0; i < draft_.nodes.size(); ++i) {
      if (draft_.nodes[i].bus == bus && draft_.nodes[i].host == draft_.nodes[gpu].host) return i;
    }
    return std::nullopt;
  }

  /// Two GPUs list each other; each direction is a link of its own, and they should be equally many.
  void compare_directions() {
    std::map<std::pair<std::size_t, std::size_t>, std::int64_t> counts;
    for (const DraftLink& link : draft_.links) {
      if (link.one_way) counts[{link.tail, link.head}] += link.count;
    }
    for (const auto& [ends, count] : counts) {
      const auto back = counts.find({ends.second, ends.first});
      const std::int64_t others = back == counts.end() ? 0 : back->second;
      if (count > others) {
        const std::string& tail = draft_.nodes[ends.first].id;
        const std::string& head = draft_.nodes[ends.second].id;
        draft_.warn(import_codes::contradiction, xml_.line(xml_.root()),
                    fmt::format("{} lists {} links to {}, which lists {} to it", tail, count, head, others),
                    "a link may be down on one side; check both GPUs");
      }
    }
    pair_up();
  }

  /// Opposite one-way links that are alike become duplex ones.
  void pair_up() {
    std::map<std::pair<std::size_t, std::size_t>, std::size_t> seen;
    std::set<std::size_t> gone;
    for (std::size_t i = 0; i < draft_.links.size(); ++i) {
      DraftLink& link = draft_.links[i];
      if (!link.one_way) continue;
      const auto back = seen.find({link.head, link.tail});
      if (back != seen.end() && draft_.links[back->second].count == link.count) {
        draft_.links[back->second].one_way = false;
        gone.insert(i);
        seen.erase(back);
      } else {
        seen[{link.tail, link.head}] = i;
      }
    }
    std::vector<DraftLink> kept;
    for (std::size_t i = 0; i < draft_.links.size(); ++i) {
      if (!gone.contains(i)) kept.push_back(std::move(draft_.links[i]));
    }
    draft_.links = std::move(kept);
  }

  void join_sockets() {
    for (const auto& [host, cpus] : cpus_) {
      for (std::size_t i = 0; i < cpus.size(); ++i) {
        for (std::size_t j = i + 1; j < cpus.size(); ++j) {
          draft_.links.push_back({.tail = cpus[i], .head = cpus[j], .medium = Medium::smp});
        }
      }
    }
  }

  std::size_t add_below(std::size_t parent, DraftNode node, const std::optional<Known<Bandwidth>>& rate) {
    node.host = host_of(parent);
    const std::size_t added = draft_.add(std::move(node));
    above_[added] = parent;
    draft_.links.push_back({.tail = added, .head = parent, .medium = Medium::pcie, .bandwidth = rate});
    return added;
  }

  [[nodiscard]] const std::string& host_of(std::size_t node) const { return draft_.nodes[node].host; }
  [[nodiscard]] bool is_gpu(std::size_t node) const { return draft_.nodes[node].is_rank; }
  [[nodiscard]] std::size_t cpu_above(std::size_t node) const {
    while (draft_.nodes[node].kind != NodeKind::cpu) node = above_.at(node);
    return node;
  }

  const XmlFile& xml_;
  Draft draft_;
  std::map<std::string, std::string> hosts_;  // host_hash -> name
  std::map<std::string, std::vector<std::size_t>> cpus_;
  std::map<std::string, std::int64_t> next_gpu_;
  std::map<std::string, int> bridges_, nics_;
  std::map<std::size_t, std::size_t> above_;
  int virtual_bridges_ = 0;
  int first_virtual_bridge_ = 0;
  std::vector<std::string> virtual_;  // Interfaces that are no cards.
  int first_virtual_ = 0;
  std::vector<std::pair<std::size_t, xml_node>> gpus_;
};

}  // namespace

Result<Draft> read_nccl_topology(std::string_view text, const std::string& file) {
  const auto xml = XmlFile::parse(text, file);
  if (!xml) return tl::unexpected(xml.error());
  return NcclTopologyReader(*xml, file).read();
}

}  // namespace espalier
