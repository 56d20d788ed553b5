// What `nvidia-smi topo -m` prints: how every two devices reach each other. The rows say nothing of rates.

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "base/disjoint_sets.h"
#include "topology/import/formats/gpu_names.h"
#include "topology/import/formats/nvidia_table.h"
#include "topology/import/formats/readers.h"
#include "topology/import/lines.h"

namespace espalier {
namespace {

/// The machine that a matrix implies.
class MatrixMachine {
 public:
  MatrixMachine(const MatrixTable& table, const std::string& file) : table_(table) { draft_.file = file; }

  Draft build() {
    add_devices();
    warn_of_one_node();
    warn_of_rows();
    add_tree();
    add_nvlinks();
    return std::move(draft_);
  }

 private:
  void add_devices() {
    for (const MatrixDevice& device : table_.devices) {
      DraftNode node{
          .id = device.label, .kind = device.is_gpu ? NodeKind::gpu : NodeKind::nic, .is_rank = device.is_gpu};
      if (device.is_gpu) {
        node.id = "gpu" + device.label.substr(3);
      } else if (const auto name = table_.nic_names.find(device.label); name != table_.nic_names.end()) {
        node.id = name->second;
      }
      draft_.add(std::move(node));
    }
  }

  /// Devices that the matrix parts although their CPUs and NUMA nodes are the same, as on boards that show no NUMA
  /// nodes to PCIe: what the system schedules by counts.
  void warn_of_one_node() {
    std::vector<std::string> pairs;
    for (std::size_t a = 0; a < table_.devices.size(); ++a) {
      for (std::size_t b = a + 1; b < table_.devices.size(); ++b) {
        const bool is_parted = table_.cells[a][b].distance == sockets;
        if (is_parted && table_.devices[a].shares_cpu_with(table_.devices[b])) {
          pairs.push_back(draft_.nodes[a].id + "-" + draft_.nodes[b].id);
        }
      }
    }
    if (pairs.empty()) return;
    draft_.warn(import_codes::contradiction, 0,
                listed(pairs) + (pairs.size() == 1 ? " is" : " are") +
                    " SYS in the matrix, and next to the same CPUs and NUMA node",
                "devices of one NUMA node were put below one CPU; `lstopo of.xml` tells more");
  }

  /// What other rows say of a GPU is not next to which CPU it is.
  void warn_of_rows() {
    std::vector<std::string> missing;
    for (std::size_t i = 0; i < table_.devices.size(); ++i) {
      if (table_.devices[i].is_gpu && table_.devices[i].line == 0) missing.push_back(draft_.nodes[i].id);
    }
    if (missing.empty()) return;
    draft_.warn(import_codes::left_out, 0,
                listed(missing) + (missing.size() == 1 ? " has no row: its CPU is" : " have no rows: their CPUs are") +
                    " not known",
                "copy the whole of what was printed");
  }

  /// Pairs joined by NVLink do not say how far their slots are apart; the CPUs next to them do.
  [[nodiscard]] int distance(std::size_t a, std::size_t b) const {
    const MatrixCell& cell = table_.cells[a][b];
    const MatrixDevice& one = table_.devices[a];
    const MatrixDevice& other = table_.devices[b];
    if (cell.distance == sockets && one.shares_cpu_with(other)) return numa_node;
    if (cell.distance != unknown) return cell.distance;
    if (!cell.is_given) return sockets;
    return one.cpu_affinity == other.cpu_affinity ? numa_node : sockets;
  }

  /// For each device, the first one of those that are within a distance of it, directly or through others.
  [[nodiscard]] std::vector<std::size_t> cluster(int within) const {
    DisjointSets sets(table_.devices.size());
    for (std::size_t a = 0; a < table_.devices.size(); ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        if (distance(a, b) <= within) sets.join(static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(b));
      }
    }
    std::vector<std::size_t> first(table_.devices.size());
    for (std::size_t i = 0; i < table_.devices.size(); ++i) first[i] = sets.find(static_cast<std::uint32_t>(i));
    return first;
  }

  /// Devices under PCIe switches, those under larger ones, those under CPUs, and the CPUs joined with each other.
  void add_tree() {
    std::vector<std::size_t> top(table_.devices.size());  // The node that stands for a device one level further up.
    std::iota(top.begin(), top.end(), std::size_t{0});
    int bridges = 0;
    for (const int level : {one_bridge, several_bridges}) {
      const auto first = cluster(level);
      for (std::size_t i = 0; i < table_.devices.size(); ++i) {
        if (first[i] != i) continue;
        std::vector<std::size_t> below;
        for (std::size_t j = i; j < table_.devices.size(); ++j) {
          if (first[j] == i && std::ranges::find(below, top[j]) == below.end()) below.push_back(top[j]);
        }
        if (below.size() < 2) continue;
        const std::size_t bridge = draft_.add({.id = fmt::format("pcie{}", bridges++), .kind = NodeKind::pcie});
        for (const std::size_t node : below)
          draft_.links.push_back({.tail = node, .head = bridge, .medium = Medium::pcie});
        for (std::size_t j = i; j < table_.devices.size(); ++j) {
          if (first[j] == i) top[j] = bridge;
        }
      }
    }
    add_cpus(top);
  }

  void add_cpus(const std::vector<std::size_t>& top) {
    const auto first = cluster(numa_node);
    std::vector<std::size_t> cpus;
    for (std::size_t i = 0; i < table_.devices.size(); ++i) {
      if (first[i] != i) continue;
      DraftNode cpu{.id = fmt::format("cpu{}", cpus.size()), .kind = NodeKind::cpu};
      const std::size_t node = draft_.add(std::move(cpu));
      std::vector<std::size_t> below;
      for (std::size_t j = i; j < table_.devices.size(); ++j) {
        if (first[j] != i || std::ranges::find(below, top[j]) != below.end()) continue;
        below.push_back(top[j]);
        draft_.links.push_back({.tail = top[j], .head = node, .medium = Medium::pcie});
      }
      for (const std::size_t other : cpus) {
        draft_.links.push_back({.tail = other, .head = node, .medium = Medium::smp});
      }
      cpus.push_back(node);
    }
  }

  /// Whether all GPUs reach each other over as many NVLinks as no board joins that many GPUs by: eight (A800, H800
  /// behind NVSwitches), or three GPUs by six (a part of a DGX-2). Boards of four GPUs have three, four or six.
  [[nodiscard]] bool is_part_of_switched() const {
    std::size_t gpus = 0;
    std::set<std::int64_t> counts;
    for (std::size_t a = 0; a < table_.devices.size(); ++a) {
      if (!table_.devices[a].is_gpu) continue;
      ++gpus;
      for (std::size_t b = 0; b < a; ++b) {
        if (table_.devices[b].is_gpu) counts.insert(table_.cells[a][b].nvlinks);
      }
    }
    return gpus > 2 && counts.size() == 1 && (*counts.begin() == 8 || (*counts.begin() == 6 && gpus == 3));
  }

  void add_nvlinks() {
    std::vector<std::int64_t> most(table_.devices.size(), 0);
    bool is_switched = is_part_of_switched();
    for (std::size_t a = 0; a < table_.devices.size(); ++a) {
      std::int64_t sum = 0;
      for (const MatrixCell& cell : table_.cells[a]) {
        sum += cell.nvlinks;
        most[a] = std::max(most[a], cell.nvlinks);
      }
      is_switched = is_switched || sum > max_nvlinks;
    }
    if (is_switched) {
      // GPUs whose memory is a NUMA node sit beside Grace CPUs, on trays whose NVSwitches are in the rack.
      const bool is_tray = std::ranges::any_of(table_.devices, &MatrixDevice::is_numa_node);
      const std::size_t hub = draft_.add({.id = "nvswitch", .kind = NodeKind::switch_node, .joins_hosts = is_tray});
      for (std::size_t a = 0; a < table_.devices.size(); ++a) {
        if (most[a] > 0) draft_.links.push_back({.tail = a, .head = hub, .medium = Medium::nvlink, .count = most[a]});
      }
      return;
    }
    for (std::size_t a = 0; a < table_.devices.size(); ++a) {
      for (std::size_t b = a + 1; b < table_.devices.size(); ++b) {
        const std::int64_t count = table_.cells[a][b].nvlinks;
        if (count > 0) draft_.links.push_back({.tail = a, .head = b, .medium = Medium::nvlink, .count = count});
      }
    }
  }

  const MatrixTable& table_;
  Draft draft_;
};

}  // namespace

Result<Draft> read_nvidia_matrix(std::string_view text, const std::string& file) {
  const std::string plain = without_escapes(text);
  const auto table = read_matrix_table(plain, file);
  if (!table) return tl::unexpected(table.error());
  Draft machine = MatrixMachine(*table, file).build();
  name_gpus(machine, gpu_names_in(plain));
  if (text.find("topo -mp") != std::string_view::npos && !machine.has(Medium::nvlink)) {
    machine.warn(import_codes::left_out, 0, "nvidia-smi topo -mp leaves NVLinks out",
                 "import what `nvidia-smi topo -m` prints, unless there are none");
  }
  return machine;
}

}  // namespace espalier
