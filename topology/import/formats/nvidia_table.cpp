#include "topology/import/formats/nvidia_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/counted.h"
#include "topology/import/lines.h"

namespace espalier {
namespace {

constexpr std::size_t max_devices = 256;
constexpr std::size_t max_label_words = 8;  // Of a launcher or a log, before a row.

constexpr std::array<std::pair<std::string_view, int>, 7> distance_names = {{{"PIX", one_bridge},
                                                                             {"PXB", several_bridges},
                                                                             {"PHB", host_bridge},
                                                                             {"NODE", numa_node},
                                                                             {"SYS", sockets},
                                                                             {"SOC", sockets},
                                                                             {"PSB", one_bridge}}};

std::optional<MatrixCell> parse_cell(std::string_view text) {
  MatrixCell cell{.is_given = true};
  if (text == "X") {
    cell.is_self = true;
    return cell;
  }
  if (const auto count = number_behind(text, "NV")) {
    if (*count < 1 || *count > max_nvlinks) return std::nullopt;
    cell.nvlinks = *count;
    return cell;
  }
  for (const auto& [name, distance] : distance_names) {
    if (text == name) {
      cell.distance = distance;
      return cell;
    }
  }
  return std::nullopt;
}

bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }

/// The length of the cell that a text begins with; zero when it begins with none.
std::size_t cell_length(std::string_view text) {
  if (text.starts_with('X')) return 1;
  for (const auto& [name, distance] : distance_names) {
    if (text.starts_with(name)) return name.size();
  }
  std::size_t length = 2;
  while (length < text.size() && is_digit(text[length])) ++length;
  return text.starts_with("NV") && length > 2 ? length : 0;
}

/// The cells of a word that lost the tabs between them, as wide tables do in terminals: "NODEPIX" as NODE and PIX,
/// "SYS0-55" as SYS and what stands behind the cells. The word itself where it is anything else.
void append_cells(Word word, std::vector<Word>& cells) {
  std::vector<Word> parts;
  for (std::string_view rest = word.text; !rest.empty();) {
    const std::size_t length = cell_length(rest);
    const int column = word.column + static_cast<int>(word.text.size() - rest.size());
    // Digits may also be those of NV1 and what follows it.
    const bool is_behind = !parts.empty() && is_digit(rest[0]) && !parts.back().text.starts_with("NV");
    if (length == 0 && !is_behind) {
      cells.push_back(word);
      return;
    }
    parts.push_back({length == 0 ? rest : rest.substr(0, length), column});
    rest.remove_prefix(parts.back().text.size());
  }
  cells.insert(cells.end(), parts.begin(), parts.end());
}

/// The columns of a heading, of which some may have grown together: "NIC12NIC13", "NIC3CPU".
void append_headings(Word word, std::vector<Word>& headings) {
  std::size_t begin = 0;
  for (std::size_t at = 1; at < word.text.size(); ++at) {
    const std::string_view rest = word.text.substr(at);
    const bool begins = is_digit(word.text[at - 1]) && (rest.starts_with("GPU") || rest.starts_with("NIC") ||
                                                        rest.starts_with("mlx5_") || rest == "CPU" || rest == "NUMA");
    if (!begins) continue;
    headings.push_back({word.text.substr(begin, at - begin), word.column + static_cast<int>(begin)});
    begin = at;
  }
  headings.push_back({word.text.substr(begin), word.column + static_cast<int>(begin)});
}

/// A cell of `nvidia-smi topo -p2p`, whose table says who may reach whom, not by what.
bool is_permission(std::string_view text) {
  constexpr std::array<std::string_view, 7> names = {"OK", "NS", "CNS", "GNS", "TNS", "DR", "U"};
  return std::ranges::find(names, text) != names.end();
}

/// Adds what another cell of the same pair says; false when the two contradict each other.
bool merge_cell(MatrixCell& to, const MatrixCell& from) {
  if (!to.is_given) {
    to = from;
    return true;
  }
  const bool is_other = to.is_self != from.is_self ||
                        (to.nvlinks > 0 && from.nvlinks > 0 && to.nvlinks != from.nvlinks) ||
                        (to.distance != unknown && from.distance != unknown && to.distance != from.distance);
  to.nvlinks = std::max(to.nvlinks, from.nvlinks);
  to.distance = std::max(to.distance, from.distance);
  return !is_other;
}

class TableReader {
 public:
  explicit TableReader(const std::string& file) : file_(file) {}

  Result<MatrixTable> read(std::string_view text) {
    for (const TextLine& line : lines_of(text)) {
      const std::string_view rest = without_label(line.text);
      auto words = TextLine{rest, line.number}.words();
      for (Word& word : words) word.column += static_cast<int>(line.text.size() - rest.size());
      if (words.empty()) continue;
      read_nic_name(words);
      std::vector<Word> headings, cells;
      for (const Word& word : words) {
        append_headings(word, headings);
        append_cells(word, cells);
      }
      if (const std::size_t header = find_header(headings); header < headings.size()) {
        if (auto read = read_header(line, headings, header); !read) return tl::unexpected(read.error());
      } else if (!columns_.empty()) {
        if (auto read = read_row(line, cells); !read) return tl::unexpected(read.error());
      }
    }
    if (table_.devices.empty()) {
      return fail_at(file_, 1, 1, "there is no line of column names (GPU0 GPU1 ...)",
                     "copy all that `nvidia-smi topo -m` prints, from its first line on");
    }
    if (permission_ && std::ranges::none_of(table_.devices, [](const MatrixDevice& each) { return each.line > 0; })) {
      return tl::unexpected(*permission_);
    }
    if (auto complete = complete_cells(); !complete) return tl::unexpected(complete.error());
    return std::move(table_);
  }

 private:
  /// The first column name of a line that has nothing but such, from a GPU on. As many as there are words when it is
  /// none.
  static std::size_t find_header(const std::vector<Word>& words) {
    std::size_t first = 0;
    while (first < words.size() && !number_behind(words[first].text, "GPU")) ++first;
    const bool is_lone_word = first > 0 && first + 1 == words.size();
    if (first > max_label_words || is_lone_word) return words.size();
    for (std::size_t i = first; i < words.size(); ++i) {
      if (words[i].text == "CPU" || words[i].text == "NUMA") break;
      if (parse_cell(words[i].text) || !is_column(words[i].text)) return words.size();
    }
    return first;
  }

  /// A device as columns name it: GPU0, NIC0, mlx5_0, bnxt_re0.
  static bool is_column(std::string_view text) {
    return text.find_first_of("0123456789") != std::string_view::npos &&
           text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") ==
               std::string_view::npos;
  }

  Result<void> read_header(const TextLine& line, const std::vector<Word>& words, std::size_t first) {
    columns_.clear();
    properties_.clear();
    const bool is_first = table_.devices.empty();
    for (std::size_t i = first; i < words.size(); ++i) {
      const Word& word = words[i];
      if (word.text == "CPU" || word.text == "NUMA") {
        read_properties(words, i);
        break;
      }
      const auto known = find_device(word.text);
      const bool is_twice = known && std::ranges::find(columns_, *known) != columns_.end();
      if (is_twice || columns_.size() == max_devices) {
        return fail_at(file_, line.number, word.column,
                       cited(word.text) + " is there twice, or there are too many columns",
                       fmt::format("a machine has at most {} devices, each with a name of its own", max_devices));
      }
      if (!known && !is_first) {
        return fail_at(file_, line.number, word.column,
                       fmt::format("another table begins here, with {}, which the one before has not", word.text),
                       "give a file for each machine");
      }
      columns_.push_back(known.value_or(table_.devices.size()));
      if (!known) {
        table_.devices.push_back(
            {.label = std::string(word.text), .is_gpu = number_behind(word.text, "GPU").has_value()});
      }
    }
    if (is_first) table_.cells.assign(table_.devices.size(), std::vector<MatrixCell>(table_.devices.size()));
    return {};
  }

  /// "CPU Affinity", "NUMA Affinity" and "GPU NUMA ID": what stands behind the cells of a row.
  void read_properties(const std::vector<Word>& words, std::size_t first) {
    for (std::size_t i = first; i + 1 < words.size(); ++i) {
      const std::string_view word = words[i].text, next = words[i + 1].text;
      if (word == "CPU" && next == "Affinity") properties_.push_back(&MatrixDevice::cpu_affinity);
      if (word == "NUMA" && next == "Affinity") properties_.push_back(&MatrixDevice::numa_affinity);
      if (word == "GPU" && next == "NUMA") properties_.push_back(nullptr);
    }
  }

  [[nodiscard]] std::optional<std::size_t> find_device(std::string_view label) const {
    const auto found = std::ranges::find(table_.devices, label, &MatrixDevice::label);
    if (found == table_.devices.end()) return std::nullopt;
    return static_cast<std::size_t>(found - table_.devices.begin());
  }

  /// Reads a row; passes over a line that is none: what a shell, a log or another tool printed.
  Result<void> read_row(const TextLine& line, const std::vector<Word>& words) {
    for (std::size_t i = 0; i < std::min(words.size(), max_label_words); ++i) {
      const auto device = find_device(words[i].text);
      const bool has_cell = i + 1 < words.size() && (parse_cell(words[i + 1].text) || is_permission(words[i + 1].text));
      const bool is_broken = i == 0 && device && table_.devices[*device].line == 0;
      if (device && (has_cell || is_broken))
        return read_cells(line, {words.begin() + static_cast<int>(i), words.end()});
    }
    if (words.size() > 2 && parse_cell(words[1].text) && parse_cell(words[2].text)) {
      return fail_at(file_, line.number, words[0].column, cited(words[0].text) + " has a row and no column",
                     "copy the whole of what was printed");
    }
    return {};
  }

  Result<void> read_cells(const TextLine& line, const std::vector<Word>& words) {
    const std::size_t row = *find_device(words[0].text);
    MatrixDevice& device = table_.devices[row];
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const std::size_t column = columns_[i];
      if (i + 1 >= words.size()) {
        return fail_at(file_, line.number, static_cast<int>(line.text.size()) + 1,
                       fmt::format("the row has {} of {}", counted(i, "cell"), columns_.size()),
                       "copy the whole of what was printed");
      }
      const Word& word = words[i + 1];
      if (is_permission(word.text)) {
        const auto refused =
            fail_at(file_, line.number, word.column, "this table says which GPUs may reach each other, not by what",
                    "import what `nvidia-smi topo -m` prints");
        if (!permission_) permission_ = refused.value();
        return {};
      }
      const auto cell = parse_cell(word.text);
      if (!cell || cell->is_self != (row == column)) {
        return fail_at(
            file_, line.number, word.column,
            fmt::format("{} is not how {} reaches {}", cited(word.text), device.label, table_.devices[column].label),
            "cells are X (itself), NV#, PIX, PXB, PHB, NODE and SYS; some may have been lost when it was copied");
      }
      if (!merge_cell(table_.cells[row][column], *cell)) {
        return fail_at(file_, line.number, word.column,
                       fmt::format("how {} reaches {} differs from line {}", device.label, table_.devices[column].label,
                                   device.line),
                       "give a file for each machine");
      }
    }
    if (const std::size_t end = columns_.size() + 1; end < words.size() && parse_cell(words[end].text)) {
      return fail_at(file_, line.number, words[end].column,
                     fmt::format("the row has more than {}", counted(columns_.size(), "cell")),
                     "a column name may have been lost when it was copied");
    }
    device.line = line.number;
    read_affinities(device, words);
    return {};
  }

  void read_affinities(MatrixDevice& device, const std::vector<Word>& words) const {
    const std::size_t first = columns_.size() + 1;
    const auto is_list = [](std::string_view text) {
      return text.find_first_not_of("0123456789,-") == std::string_view::npos;
    };
    if (words.size() != first + properties_.size()) {
      // Headings that were lost, or something behind the row: the first is that of CPUs.
      if (first < words.size() && is_list(words[first].text)) device.cpu_affinity = words[first].text;
      return;
    }
    for (std::size_t i = 0; i < properties_.size(); ++i) {
      const std::string_view text = words[first + i].text;
      if (!is_list(text)) continue;  // N/A
      if (properties_[i] == nullptr) {
        device.is_numa_node = true;
      } else {
        device.*properties_[i] = text;
      }
    }
  }

  /// "NIC0: mlx5_0" of the NIC legend: other tools know the card by that name.
  void read_nic_name(const std::vector<Word>& words) {
    if (words.size() < 2 || !words[words.size() - 2].text.ends_with(':')) return;
    std::string_view label = words[words.size() - 2].text;
    label.remove_suffix(1);
    if (number_behind(label, "NIC")) table_.nic_names[std::string(label)] = words.back().text;
  }

  /// Every pair of GPUs is in a row; both of its cells say the same.
  Result<void> complete_cells() {
    auto& devices = table_.devices;
    for (std::size_t a = 0; a < devices.size(); ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        MatrixCell& one = table_.cells[a][b];
        MatrixCell& other = table_.cells[b][a];
        if (!one.is_given && !other.is_given) {
          if (!devices[a].is_gpu || !devices[b].is_gpu) continue;
          return fail_at(file_, 1, 1, fmt::format("neither {} nor {} has a row", devices[b].label, devices[a].label),
                         "copy the whole of what was printed");
        }
        if (!one.is_given) one = other;
        if (!other.is_given) other = one;
        if (one.distance != other.distance || one.nvlinks != other.nvlinks) {
          return fail_at(file_, devices[a].line, 1,
                         fmt::format("how {} reaches {} differs from the way back in line {}", devices[a].label,
                                     devices[b].label, devices[b].line),
                         "the two cells of a pair are alike; a column may have been lost when it was copied");
        }
      }
    }
    return {};
  }

  const std::string& file_;
  MatrixTable table_;
  std::vector<std::size_t> columns_;                     // Devices of the header above, in its order.
  std::vector<std::string MatrixDevice::*> properties_;  // Null: the NUMA node that a GPU's memory is.
  std::optional<Error> permission_;
};

}  // namespace

Result<MatrixTable> read_matrix_table(std::string_view text, const std::string& file) {
  return TableReader(file).read(text);
}

}  // namespace espalier
