// What `nvidia-smi topo -m` prints: how every two devices reach each other. The rows say nothing of rates.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>

#include "base/disjoint_sets.h"
#include "topology/import/formats/readers.h"
#include "topology/import/lines.h"

namespace espalier {
namespace {

/// How far two devices are apart, as the legend orders it.
enum Distance : int { unknown = 0, one_bridge = 1, several_bridges = 2, host_bridge = 3, numa_node = 4, sockets = 5 };

/// A GPU has at most 18 NVLinks: more than that in a row are the same links counted for each GPU behind a switch.
constexpr std::int64_t most_nvlinks = 18;
constexpr std::size_t most_devices = 256;

struct Cell {
  int distance = unknown;
  std::int64_t nvlinks = 0;
  bool is_self = false;
  bool is_given = false;
};

std::optional<Cell> parse_cell(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, int>, 7> names = {{{"PIX", one_bridge},
                                                                      {"PXB", several_bridges},
                                                                      {"PHB", host_bridge},
                                                                      {"NODE", numa_node},
                                                                      {"SYS", sockets},
                                                                      {"SOC", sockets},
                                                                      {"PSB", one_bridge}}};
  Cell cell{.is_given = true};
  if (text == "X") {
    cell.is_self = true;
    return cell;
  }
  if (const auto count = number_behind(text, "NV")) {
    if (*count < 1 || *count > most_nvlinks) return std::nullopt;
    cell.nvlinks = *count;
    return cell;
  }
  for (const auto& [name, distance] : names) {
    if (text == name) {
      cell.distance = distance;
      return cell;
    }
  }
  return std::nullopt;
}

struct MatrixDevice {
  std::string label;
  bool is_gpu = false;
  int line = 0;          // Of its row; 0: it has none.
  std::string affinity;  // Of the CPUs next to it.
};

class MatrixReader {
 public:
  explicit MatrixReader(const std::string& file) { draft_.file = file; }

  Result<Draft> read(std::string_view text) {
    const auto lines = lines_of(text);
    const auto header = std::ranges::find_if(lines, [](const TextLine& line) { return is_header(line); });
    if (header == lines.end()) {
      return fail_at(draft_.file, 1, 1, "there is no line of column names (GPU0 GPU1 ...)",
                     "copy all that `nvidia-smi topo -m` prints, from its first line on");
    }
    if (auto read = read_header(*header); !read) return tl::unexpected(read.error());
    for (auto line = header + 1; line != lines.end(); ++line) {
      const auto words = line->words();
      if (words.empty()) continue;
      if (words.front().text == "Legend:" || words.back().text == "Legend:") break;
      if (auto read = read_row(*line, words); !read) return tl::unexpected(read.error());
    }
    read_nic_names(lines);
    if (auto complete = complete_cells(); !complete) return tl::unexpected(complete.error());
    add_devices();
    add_tree();
    add_nvlinks();
    return std::move(draft_);
  }

 private:
  static bool is_header(const TextLine& line) {
    const auto words = line.words();
    return words.size() >= 1 && words[0].text == "GPU0" && (words.size() == 1 || !parse_cell(words[1].text));
  }

  Result<void> read_header(const TextLine& line) {
    for (const Word& word : line.words()) {
      if (word.text == "CPU" || word.text == "NUMA") break;
      if (std::ranges::any_of(devices_, [&](const MatrixDevice& known) { return known.label == word.text; }) ||
          devices_.size() == most_devices) {
        return fail_at(draft_.file, line.number, word.column,
                       cited(word.text) + " is there twice, or there are too many columns",
                       fmt::format("a machine has at most {} devices, each with a name of its own", most_devices));
      }
      devices_.push_back({.label = std::string(word.text), .is_gpu = number_behind(word.text, "GPU").has_value()});
    }
    cells_.assign(devices_.size(), std::vector<Cell>(devices_.size()));
    return {};
  }

  Result<void> read_row(const TextLine& line, const std::vector<Word>& words) {
    const auto device =
        std::ranges::find_if(devices_, [&](const MatrixDevice& known) { return known.label == words[0].text; });
    if (device == devices_.end()) {
      return fail_at(draft_.file, line.number, words[0].column, cited(words[0].text) + " has a row and no column",
                     "copy the whole of what was printed");
    }
    if (device->line > 0) {
      return fail_at(draft_.file, line.number, words[0].column,
                     fmt::format("{} has a row in line {} already", device->label, device->line), "remove one of them");
    }
    device->line = line.number;
    const auto row = static_cast<std::size_t>(device - devices_.begin());
    for (std::size_t column = 0; column < devices_.size(); ++column) {
      if (column + 1 >= words.size()) {
        return fail_at(draft_.file, line.number, static_cast<int>(line.text.size()) + 1,
                       fmt::format("the row has {} cells of {}", column, devices_.size()),
                       "cells may have grown together when it was copied");
      }
      const Word& word = words[column + 1];
      if (word.text == "OK" || word.text == "NS" || word.text == "CNS" || word.text == "GNS") {
        return fail_at(draft_.file, line.number, word.column,
                       "this table says which GPUs may reach each other, not by what",
                       "import what `nvidia-smi topo -m` prints");
      }
      const auto cell = parse_cell(word.text);
      if (!cell || cell->is_self != (row == column)) {
        return fail_at(
            draft_.file, line.number, word.column,
            fmt::format("{} is not how {} reaches {}", cited(word.text), device->label, devices_[column].label),
            "cells are X (itself), NV#, PIX, PXB, PHB, NODE and SYS; some may have grown together when it was "
            "copied");
      }
      cells_[row][column] = *cell;
    }
    read_affinity(*device, words);
    return {};
  }

  /// The first of the columns behind the matrix, CPU Affinity.
  void read_affinity(MatrixDevice& device, const std::vector<Word>& words) {
    const std::size_t first = devices_.size() + 1;
    if (first < words.size() && words[first].text.find_first_not_of("0123456789,-") == std::string_view::npos) {
      device.affinity = words[first].text;
    }
  }

  /// "NIC0: mlx5_0" of the NIC legend: other tools know the card by that name.
  void read_nic_names(const std::vector<TextLine>& lines) {
    for (const TextLine& line : lines) {
      const auto words = line.words();
      if (words.size() != 2 || !words[0].text.ends_with(':')) continue;
      const std::string_view label = words[0].text.substr(0, words[0].text.size() - 1);
      if (number_behind(label, "NIC")) names_[std::string(label)] = words[1].text;
    }
  }

  /// Every pair of GPUs is in a row; both of its cells say the same.
  Result<void> complete_cells() {
    for (std::size_t a = 0; a < devices_.size(); ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        Cell& one = cells_[a][b];
        Cell& other = cells_[b][a];
        if (!one.is_given && !other.is_given) {
          if (!devices_[a].is_gpu || !devices_[b].is_gpu) continue;
          return fail_at(draft_.file, 1, 1,
                         fmt::format("neither {} nor {} has a row", devices_[b].label, devices_[a].label),
                         "copy the whole of what was printed");
        }
        if (!one.is_given) one = other;
        if (!other.is_given) other = one;
        if (one.distance != other.distance || one.nvlinks != other.nvlinks) {
          return fail_at(draft_.file, devices_[a].line, 1,
                         fmt::format("how {} reaches {} differs from the way back in line {}", devices_[a].label,
                                     devices_[b].label, devices_[b].line),
                         "the two cells of a pair are alike; a column may have been lost when it was copied");
        }
      }
    }
    return {};
  }

  void add_devices() {
    for (const MatrixDevice& device : devices_) {
      DraftNode node{
          .id = device.label, .kind = device.is_gpu ? NodeKind::gpu : NodeKind::nic, .is_rank = device.is_gpu};
      if (device.is_gpu) {
        node.id = "gpu" + device.label.substr(3);
      } else if (const auto name = names_.find(device.label); name != names_.end()) {
        node.id = name->second;
      }
      draft_.add(std::move(node));
    }
  }

  /// Pairs joined by NVLink do not say how far their slots are apart; the CPUs next to them do.
  [[nodiscard]] int distance(std::size_t a, std::size_t b) const {
    if (cells_[a][b].distance != unknown) return cells_[a][b].distance;
    if (!cells_[a][b].is_given) return sockets;
    return devices_[a].affinity == devices_[b].affinity ? numa_node : sockets;
  }

  /// For each device, the first one of those that are within a distance of it, directly or through others.
  [[nodiscard]] std::vector<std::size_t> cluster(int within) const {
    DisjointSets sets(devices_.size());
    for (std::size_t a = 0; a < devices_.size(); ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        if (distance(a, b) <= within) sets.join(static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(b));
      }
    }
    std::vector<std::size_t> first(devices_.size());
    for (std::size_t i = 0; i < devices_.size(); ++i) first[i] = sets.find(static_cast<std::uint32_t>(i));
    return first;
  }

  /// Devices under PCIe switches, those under larger ones, those under CPUs, and the CPUs joined with each other.
  void add_tree() {
    std::vector<std::size_t> top(devices_.size());  // The node that stands for a device one level further up.
    std::iota(top.begin(), top.end(), std::size_t{0});
    int bridges = 0;
    for (const int level : {one_bridge, several_bridges}) {
      const auto first = cluster(level);
      for (std::size_t i = 0; i < devices_.size(); ++i) {
        if (first[i] != i) continue;
        std::vector<std::size_t> below;
        for (std::size_t j = i; j < devices_.size(); ++j) {
          if (first[j] == i && std::ranges::find(below, top[j]) == below.end()) below.push_back(top[j]);
        }
        if (below.size() < 2) continue;
        const std::size_t bridge = draft_.add({.id = fmt::format("pcie{}", bridges++), .kind = NodeKind::pcie});
        for (const std::size_t node : below)
          draft_.links.push_back({.tail = node, .head = bridge, .medium = Medium::pcie});
        for (std::size_t j = i; j < devices_.size(); ++j) {
          if (first[j] == i) top[j] = bridge;
        }
      }
    }
    add_cpus(top);
  }

  void add_cpus(const std::vector<std::size_t>& top) {
    const auto first = cluster(numa_node);
    std::vector<std::size_t> cpus;
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      if (first[i] != i) continue;
      DraftNode cpu{.id = fmt::format("cpu{}", cpus.size()), .kind = NodeKind::cpu};
      const std::size_t node = draft_.add(std::move(cpu));
      std::vector<std::size_t> below;
      for (std::size_t j = i; j < devices_.size(); ++j) {
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

  void add_nvlinks() {
    std::vector<std::int64_t> most(devices_.size(), 0);
    bool is_switched = false;
    for (std::size_t a = 0; a < devices_.size(); ++a) {
      std::int64_t sum = 0;
      for (const Cell& cell : cells_[a]) {
        sum += cell.nvlinks;
        most[a] = std::max(most[a], cell.nvlinks);
      }
      is_switched = is_switched || sum > most_nvlinks;
    }
    if (is_switched) {
      const std::size_t hub = draft_.add({.id = "nvswitch", .kind = NodeKind::switch_node});
      for (std::size_t a = 0; a < devices_.size(); ++a) {
        if (most[a] > 0) draft_.links.push_back({.tail = a, .head = hub, .medium = Medium::nvlink, .count = most[a]});
      }
      return;
    }
    for (std::size_t a = 0; a < devices_.size(); ++a) {
      for (std::size_t b = a + 1; b < devices_.size(); ++b) {
        const std::int64_t count = cells_[a][b].nvlinks;
        if (count > 0) draft_.links.push_back({.tail = a, .head = b, .medium = Medium::nvlink, .count = count});
      }
    }
  }

  Draft draft_;
  std::vector<MatrixDevice> devices_;
  std::vector<std::vector<Cell>> cells_;
  std::map<std::string, std::string> names_;
};

}  // namespace

Result<Draft> read_nvidia_matrix(std::string_view text, const std::string& file) {
  return MatrixReader(file).read(without_escapes(text));
}

}  // namespace espalier
