// hwloc XML (lstopo of.xml): packages, the PCI tree with link speeds, and the matrix of NVLink bandwidths.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/disjoint_sets.h"
#include "topology/import/formats/readers.h"
#include "topology/import/lines.h"
#include "topology/import/pci.h"
#include "topology/import/xml_file.h"

namespace espalier {
namespace {

using pugi::xml_node;

constexpr std::int64_t fastest_nvlink = 10'000'000;  // MB/s of a matrix

class HwlocReader {
 public:
  HwlocReader(const XmlFile& xml, const std::string& file) : xml_(xml) { draft_.file = file; }

  Result<Draft> read() {
    if (std::string_view(xml_.root().name()) != "topology") {
      return xml_.fail_at(xml_.root(), "hwloc writes a <topology>", "name the format with --as");
    }
    for (const xml_node object : xml_.root().children("object")) {
      if (auto read = read_object(object, std::nullopt); !read) return tl::unexpected(read.error());
    }
    number_gpus();
    correct_idle_gpus();
    for (std::size_t i = 0; i < cpus_.size(); ++i) {
      for (std::size_t j = i + 1; j < cpus_.size(); ++j) {
        draft_.links.push_back({.tail = cpus_[i], .head = cpus_[j], .medium = Medium::smp});
      }
    }
    for (const xml_node matrix : xml_.root().children("distances2hetero")) {
      if (std::string_view(matrix.attribute("name").value()) != "NVLinkBandwidth") continue;
      if (auto read = read_matrix(matrix); !read) return tl::unexpected(read.error());
      warn_of_groups(matrix);
    }
    return std::move(draft_);
  }

 private:
  Result<void> read_object(xml_node object, std::optional<std::size_t> parent) {
    const std::string_view type = object.attribute("type").value();
    std::optional<std::size_t> own = parent;
    if (type == "Package" || type == "Socket") {  // hwloc 2 and 1
      own = draft_.add({.id = fmt::format("cpu{}", cpus_.size()), .kind = NodeKind::cpu});
      cpus_.push_back(*own);
      name_object(object, "Package", *own);
    } else if (type == "Bridge" && *object.attribute("pci_busid").value() != '\0') {
      own = add_device(object, parent, {.id = fmt::format("pcie{}", bridges_++), .kind = NodeKind::pcie});
    } else if (type == "PCIDev") {
      read_device(object, parent);
      return {};
    }
    for (const xml_node child : object.children("object")) {
      if (auto read = read_object(child, own); !read) return read;
    }
    return {};
  }

  /// GPUs, NICs and NVSwitches; all other devices carry no collectives.
  void read_device(xml_node device, std::optional<std::size_t> parent) {
    const std::string_view kind = device.attribute("pci_type").value();
    if (std::string_view(device.attribute("subtype").value()) == "NVSwitch") {
      name_object(device, "PCIDev",
                  draft_.add({.id = fmt::format("nvswitch{}", switches_++), .kind = NodeKind::switch_node}));
      return;
    }
    const bool is_display = kind.starts_with("03") || kind.starts_with("12");
    if (!is_display && !kind.starts_with("02")) return;
    const std::string driver_name = is_display ? gpu_name(device) : std::string();
    if (is_display && driver_name.empty() && (!computes(kind) || draws_a_console(pci_model(kind)))) return;
    DraftNode node{.id = is_display ? driver_name : nic_name(device),
                   .kind = is_display ? NodeKind::gpu : NodeKind::nic,
                   .is_rank = is_display};
    if (is_display) node.model = pci_model(kind);
    const std::size_t added = add_device(device, parent, std::move(node));
    if (is_display) gpu_kinds_[added] = kind.substr(0, kind.find(']'));
    name_object(device, "PCIDev", added);
    for (const xml_node child : device.children("object")) name_object(child, "OSDev", added);
  }

  /// "10de:20b5" of "0302 [10de:20b5] [10de:1533] a1".
  static std::string pci_model(std::string_view kind) {
    const std::size_t begin = kind.find('['), end = kind.find(']');
    return begin < end && end != std::string_view::npos ? std::string(kind.substr(begin + 1, end - begin - 1)) : "";
  }

  /// Whether a device that no compute driver names is a GPU nevertheless, as hwloc is often built without such drivers:
  /// 3D controllers and accelerators are, of display adapters those of NVIDIA and AMD. `kind`: "0302 [10de:20b5] ...".
  /// Source: PCI Code and ID Assignment (PCI-SIG), 1.4 and 1.19; pci.ids.
  static bool computes(std::string_view kind) {
    if (kind.starts_with("0302") || kind.starts_with("12")) return true;
    return kind.find("[10de:") != std::string_view::npos || kind.find("[1002:") != std::string_view::npos;
  }

  /// GPUs that no driver numbers get the free numbers, in the order of the file.
  void number_gpus() {
    std::set<std::string> taken;
    for (const DraftNode& node : draft_.nodes) taken.insert(node.id);
    int next = 0;
    for (DraftNode& node : draft_.nodes) {
      if (!node.id.empty()) continue;
      while (taken.contains(fmt::format("gpu{}", next))) ++next;
      node.id = fmt::format("gpu{}", next++);
    }
  }

  /// Whether a GPU's rate is one of a GPU at rest: of four lanes' worth or less, or sixteen lanes of PCIe 2. A slot
  /// that is narrower shows half a rate, or a quarter, of PCIe 3 and later.
  static bool is_at_rest(Bandwidth rate) {
    constexpr Bandwidth first{4'000'000'000}, second{8'000'000'000};  // Sixteen lanes of 2.5 and of 5 GT/s.
    return rate <= first || rate == second;
  }

  /// What hwloc has is the rate at the moment, which GPUs lower while they have nothing to do: the fastest of alike
  /// GPUs shows what all can, and where all are at rest none does.
  void correct_idle_gpus() {
    std::map<std::string, std::optional<Known<Bandwidth>>, std::less<>> fastest;
    for (const auto& [gpu, kind] : gpu_kinds_) {
      const auto& rate = rate_above(gpu);
      auto& best = fastest[kind];
      if (rate && !is_at_rest(rate->value) && (!best || rate->value > best->value)) best = rate;
    }
    std::vector<std::string> corrected, unknown;
    for (const auto& [gpu, kind] : gpu_kinds_) {
      const auto rate = rate_above(gpu);
      if (!rate || !is_at_rest(rate->value)) continue;
      const auto& best = fastest[kind];
      (best ? corrected : unknown).push_back(draft_.nodes[gpu].id);
      set_rate_of_slot(gpu, rate->value, best);
    }
    if (!corrected.empty()) {
      draft_.warn(import_codes::unbelievable, 0,
                  "the PCIe rate of " + listed(corrected) + " is one of idle GPUs, below that of the same model",
                  "the rate of the faster ones was taken");
    }
    if (!unknown.empty()) {
      draft_.warn(import_codes::unbelievable, 0, "the PCIe rate of " + listed(unknown) + " is one of idle GPUs",
                  "it is taken from the preset, or assumed; capture the file while the GPUs work");
    }
  }

  [[nodiscard]] const std::optional<Known<Bandwidth>>& rate_above(std::size_t node) const {
    return draft_.links[above_.at(node)].bandwidth;
  }

  /// Ports above a GPU show the rate of the same lanes, as long as nothing else is below them.
  void set_rate_of_slot(std::size_t node, Bandwidth shown, const std::optional<Known<Bandwidth>>& rate) {
    while (above_.contains(node)) {
      DraftLink& link = draft_.links[above_[node]];
      if (!link.bandwidth || link.bandwidth->value != shown) return;
      link.bandwidth = rate;
      node = link.head;
      const auto is_below = [&](const DraftLink& other) { return other.medium == Medium::pcie && other.head == node; };
      if (draft_.nodes[node].kind != NodeKind::pcie || std::ranges::count_if(draft_.links, is_below) > 1) return;
    }
  }

  /// The number that the driver gives it: nvml2, cuda2 and rsmi2 are gpu2.
  static std::string gpu_name(xml_node device) {
    for (const char* driver : {"nvml", "rsmi", "cuda", "hip", "ze"}) {
      for (const xml_node child : device.children("object")) {
        if (const auto number = number_behind(child.attribute("name").value(), driver))
          return fmt::format("gpu{}", *number);
      }
    }
    return {};
  }

  /// The name for RDMA (mlx5_0) where it has one, else that of its interface (eth0).
  std::string nic_name(xml_node device) {
    std::string name;
    for (const xml_node child : device.children("object")) {
      const std::string own = child.attribute("name").value();
      const bool is_rdma =
          own.find('_') != std::string::npos || std::string_view(child.attribute("subtype").value()) == "OpenFabrics";
      if (name.empty() || is_rdma) name = own;
    }
    return name.empty() ? fmt::format("nic{}", nics_++) : name;
  }

  /// Below its parent, or below the first CPU when the file hangs it on the machine as a whole.
  std::size_t add_device(xml_node device, std::optional<std::size_t> parent, DraftNode node) {
    node.bus = normal_bus(device.attribute("pci_busid").value());
    if (!parent) {
      if (cpus_.empty()) cpus_.push_back(draft_.add({.id = "cpu0", .kind = NodeKind::cpu}));
      parent = cpus_.front();
    }
    DraftLink link{.head = *parent, .medium = Medium::pcie};
    link.tail = draft_.add(std::move(node));
    const auto gigabytes = decimal_number(device.attribute("pci_link_speed").value());
    constexpr double most = 1000;
    if (gigabytes && *gigabytes > 0.001 && *gigabytes < most) {
      link.bandwidth = {{static_cast<std::int64_t>(*gigabytes * 1000) * 1'000'000},
                        Origin::captured,
                        draft_.file + ": pci_link_speed"};
    }
    above_[link.tail] = draft_.links.size();
    draft_.links.push_back(std::move(link));
    return draft_.links.back().tail;
  }

  void name_object(xml_node object, std::string_view type, std::size_t node) {
    objects_[fmt::format("{}:{}", type, object.attribute("gp_index").value())] = node;
  }

  /// Both ends list a pair; the larger of the two counts. The diagonal says nothing, and beside links to NVSwitches
  /// pairs of GPUs are those that a transitive closure (hwloc-annotate) added.
  Result<void> read_matrix(xml_node matrix) {
    std::string indexes, values;
    for (const xml_node part : matrix.children("indexes")) indexes += std::string(part.child_value()) + " ";
    for (const xml_node part : matrix.children("u64values")) values += std::string(part.child_value()) + " ";
    std::vector<std::optional<std::size_t>> nodes;
    for (const Word& word : TextLine{indexes, 0}.words()) {
      const auto known = objects_.find(word.text);
      nodes.push_back(known == objects_.end() ? std::nullopt : std::optional(known->second));
    }
    const std::string plain = one_line(values);
    const auto words = TextLine{plain, 0}.words();
    if (words.size() != nodes.size() * nodes.size()) {
      return xml_.fail_at(matrix, fmt::format("{} values for {} objects", words.size(), nodes.size()),
                          "check that the file is whole");
    }
    const bool has_switch = std::ranges::any_of(
        nodes, [this](const auto& node) { return node && draft_.nodes[*node].kind == NodeKind::switch_node; });
    const auto is_gpu = [this](const auto& node) { return node && draft_.nodes[*node].is_rank; };
    for (std::size_t a = 0; a < nodes.size(); ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        const auto one = whole_number(words[a * nodes.size() + b].text);
        const auto other = whole_number(words[b * nodes.size() + a].text);
        if (!one || !other || std::max(*one, *other) > fastest_nvlink) {
          return xml_.fail_at(matrix, "a value is no bandwidth in MB/s", "check that the file is whole");
        }
        const std::int64_t rate = std::max(*one, *other);
        if (rate == 0 || !nodes[a] || !nodes[b] || (has_switch && is_gpu(nodes[a]) && is_gpu(nodes[b]))) continue;
        draft_.links.push_back(
            {.tail = *nodes[b],
             .head = *nodes[a],
             .medium = Medium::nvlink,
             .bandwidth = Known<Bandwidth>{{rate * 1'000'000}, Origin::captured, draft_.file + ": NVLinkBandwidth"}});
      }
    }
    return {};
  }

  /// hwloc sees no NVLinks between NVSwitches, as those that join the two boards of a DGX-2.
  void warn_of_groups(xml_node matrix) {
    if (switches_ == 0) return;
    DisjointSets sets(draft_.nodes.size());
    std::set<std::size_t> linked;
    for (const DraftLink& link : draft_.links) {
      if (link.medium != Medium::nvlink) continue;
      sets.join(static_cast<std::uint32_t>(link.tail), static_cast<std::uint32_t>(link.head));
      linked.insert({link.tail, link.head});
    }
    std::set<std::uint32_t> groups;
    for (const std::size_t node : linked) groups.insert(sets.find(static_cast<std::uint32_t>(node)));
    if (groups.size() < 2) return;
    draft_.warn(import_codes::contradiction, xml_.line(matrix),
                fmt::format("NVLink joins the GPUs in {} groups only: links between NVSwitches are not in the file",
                            groups.size()),
                "add them to what is written, or import what `nvidia-smi topo -m` prints");
  }

  static std::string one_line(std::string text) {
    for (char& letter : text) letter = letter == '\n' || letter == '\r' ? ' ' : letter;
    return text;
  }

  const XmlFile& xml_;
  Draft draft_;
  std::vector<std::size_t> cpus_;
  std::map<std::size_t, std::size_t> above_;                 // By device: its link upwards.
  std::map<std::size_t, std::string> gpu_kinds_;             // By GPU: its class, vendor and model.
  std::map<std::string, std::size_t, std::less<>> objects_;  // by type and gp_index
  int bridges_ = 0, switches_ = 0, nics_ = 0;
};

}  // namespace

Result<Draft> read_hwloc(std::string_view text, const std::string& file) {
  const auto xml = XmlFile::parse(text, file);
  if (!xml) return tl::unexpected(xml.error());
  return HwlocReader(*xml, file).read();
}

}  // namespace espalier
