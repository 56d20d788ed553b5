// What `rocm-smi --showtopo` prints: tables of weights, hops and link types between GPUs, and the NUMA node of each.
// `--showtopotype` prints the types alone, as reports of inference servers have them.
// Lines of anything else around them are passed over. `amd-smi topology` prints the same tables with PCI addresses
// for names, and no NUMA nodes.

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/counted.h"
#include "topology/import/formats/gpu_names.h"
#include "topology/import/formats/readers.h"
#include "topology/import/lines.h"
#include "topology/import/presets.h"

namespace espalier {
namespace {

constexpr std::size_t max_rocm_gpus = 256;

class RocmReader {
 public:
  explicit RocmReader(const std::string& file) { draft_.file = file; }

  Result<Draft> read(std::string_view text) {
    for (const TextLine& line : lines_of(text)) {
      const auto words = words_of_tool(line);
      if (words.empty()) continue;
      if (is_title(words[0])) {
        table_ = line.text.find("Hops between") != std::string_view::npos        ? &hops_
                 : line.text.find("Link Type between") != std::string_view::npos ? &types_
                 : line.text.find("Weight between") != std::string_view::npos    ? &weights_
                                                                                 : nullptr;
        columns_.clear();
      } else if (words[0].text == "GPU" || words[0].text.starts_with("GPU[")) {
        read_numa_node(words);
      } else if (table_ != nullptr && number_behind(words[0].text, "GPU")) {
        if (auto read = read_row(line, words); !read) return tl::unexpected(read.error());
      }
    }
    const auto is_cut = [](const Cells& cells) { return !cells.empty() && cells.size() != cells.front().size(); };
    const auto is_unlike = [this](const Cells& cells) { return !cells.empty() && cells.size() != types_.size(); };
    if (types_.empty() || is_cut(types_) || is_unlike(hops_) || is_unlike(weights_)) {
      return fail_at(draft_.file, 1, 1, "there is no table of link types, or the tables are of unlike sizes",
                     "copy all that `rocm-smi --showtopo` prints");
    }
    find_lightest();
    build();
    name_gpus(amd_gpu_in(text));
    warn_of_counts();
    return std::move(draft_);
  }

 private:
  /// Of a table: rocm-smi underlines it, a tool of RCCL that prints the same tables writes it bold.
  static bool is_title(const Word& word) { return word.text.starts_with("==") || word.text.starts_with("**"); }

  /// The words from the first on that the tool printed: a launcher may have put a label before them.
  static std::vector<Word> words_of_tool(const TextLine& line) {
    auto words = TextLine{without_label(line.text), line.number}.words();
    const auto begins = [](const Word& word) {
      return is_title(word) || word.text == "GPU" || word.text.starts_with("GPU[") || number_behind(word.text, "GPU");
    };
    words.erase(words.begin(), std::ranges::find_if(words, begins));
    return words;
  }

  /// "GPU[0] : (Topology) Numa Node: 1"; on some pages "GPU 0 : ...".
  void read_numa_node(const std::vector<Word>& words) {
    if (words.size() < 4 || words[words.size() - 2].text != "Node:") return;
    const std::string_view label = words[0].text;
    const auto gpu = label == "GPU" ? whole_number(words[1].text) : whole_number(label.substr(4, label.find(']') - 4));
    const auto node = whole_number(words.back().text);
    if (gpu && node) numa_nodes_[*gpu] = *node;
  }

  /// The line of columns, "GPU0 GPU1 ...", or a row: "GPU0 0 XGMI ...".
  Result<void> read_row(const TextLine& line, const std::vector<Word>& words) {
    if (columns_.empty()) {
      if (words.size() > max_rocm_gpus)
        return fail_at(draft_.file, line.number, 1, "too many GPUs", "a machine has at most 256");
      for (const Word& word : words) {
        if (!number_behind(word.text, "GPU")) return fail_cell(line, word, "GPUs are named GPU0, GPU1 and so on");
        columns_.emplace_back(word.text);
      }
      return {};
    }
    const std::size_t row_number = table_->size();
    if (row_number < columns_.size() && words[0].text != columns_[row_number]) {
      return fail_cell(line, words[0], fmt::format("the row of {} is missing", columns_[row_number]));
    }
    if (words.size() != columns_.size() + 1) {
      return fail_at(draft_.file, line.number, 1,
                     fmt::format("the row has {} of {}", counted(words.size() - 1, "cell"), columns_.size()),
                     "copy the whole of what was printed");
    }
    for (const Word& word : words) {
      const bool is_type =
          word.text == "XGMI" || word.text == "PCIE" || word.text == "0" || word.text == "X" || word.text == "N/A";
      if (table_ == &types_ && &word != &words[0] && !is_type) {
        return fail_cell(line, word, "types of links are XGMI and PCIE");
      }
    }
    std::vector<std::string> row;
    for (std::size_t i = 1; i < words.size(); ++i) row.emplace_back(words[i].text);
    if (table_->size() == columns_.size())
      return fail_at(draft_.file, line.number, 1, "there are more rows than columns", "give one printout per file");
    table_->push_back(std::move(row));
    return {};
  }

  tl::unexpected<Error> fail_cell(const TextLine& line, const Word& word, const std::string& help) const {
    const auto at = static_cast<int>(word.text.data() - line.text.data()) + 1;
    return fail_at(draft_.file, line.number, at, cited(word.text) + " does not belong here", help);
  }

  /// Where xGMI joins all GPUs to all, there is a link a pair (MI300X); elsewhere pairs have one to four (MI250).
  void warn_of_counts() {
    std::size_t pairs = 0;
    for (const DraftLink& link : draft_.links) pairs += link.medium == Medium::xgmi ? 1 : 0;
    if (pairs == 0 || pairs == types_.size() * (types_.size() - 1) / 2) return;
    draft_.warn(import_codes::left_out, 0, "it does not say how many xGMI links a pair of GPUs has: one is counted",
                "dies of one MI250 have four, others up to two; `espalier topo detect` on the machine counts them");
  }

  /// Drivers call any path over xGMI one hop: then weights alone tell which of them pass other GPUs.
  void warn_of_hops() {
    bool has_xgmi = false, all_one = true;
    for (std::size_t a = 0; a < types_.size(); ++a) {
      for (std::size_t b = a + 1; b < types_.size(); ++b) {
        has_xgmi = has_xgmi || types_[a][b] == "XGMI";
        all_one = all_one && (types_[a][b] != "XGMI" || is_one_hop_of_xgmi(a, b));
      }
    }
    if (types_.size() < 3 || !weights_.empty() || !has_xgmi || !all_one) return;
    draft_.warn(import_codes::left_out, 0, "it has no weights: all GPUs that xGMI joins count as neighbours",
                "hops do not tell the links of MI250 apart; copy all that rocm-smi --showtopo prints");
  }

  void build() {
    warn_of_hops();
    if (types_.size() > 1 && numa_nodes_.size() < types_.size()) {
      draft_.warn(import_codes::left_out, 0,
                  numa_nodes_.empty() ? "it does not say next to which NUMA nodes the GPUs are"
                                      : "it does not say of all GPUs next to which NUMA node they are",
                  "node 0 was taken; copy the lines 'GPU[0] : (Topology) Numa Node: 0' of rocm-smi --showtopo as well");
    }
    std::map<std::int64_t, std::size_t> cpus;
    for (std::size_t i = 0; i < types_.size(); ++i) {
      draft_.add({.id = fmt::format("gpu{}", i), .is_rank = true});
    }
    for (std::size_t i = 0; i < types_.size(); ++i) {
      const auto numa = numa_nodes_.find(static_cast<std::int64_t>(i));
      const std::int64_t node = numa == numa_nodes_.end() ? 0 : numa->second;
      auto cpu = cpus.find(node);
      if (cpu == cpus.end()) {
        cpu = cpus.emplace(node, draft_.add({.id = fmt::format("cpu{}", node), .kind = NodeKind::cpu})).first;
        for (const auto& [other, place] : cpus) {
          if (other != node) draft_.links.push_back({.tail = place, .head = cpu->second, .medium = Medium::smp});
        }
      }
      draft_.links.push_back({.tail = i, .head = cpu->second, .medium = Medium::pcie});
    }
    for (std::size_t a = 0; a < types_.size(); ++a) {
      for (std::size_t b = a + 1; b < types_.size(); ++b) {
        if (are_neighbours(a, b)) draft_.links.push_back({.tail = a, .head = b, .medium = Medium::xgmi});
      }
    }
  }

  /// Reports name the model, of which the tables say nothing.
  void name_gpus(const std::string& model) {
    const GpuGeneration* const generation = find_generation(model);
    const Bandwidth rate = xgmi_rate_of(generation == nullptr ? std::string_view(model) : generation->code);
    for (DraftNode& node : draft_.nodes) {
      if (!node.is_rank) continue;
      node.model = model;
      if (rate.bytes_per_second > 0) node.link_rate = Known<Bandwidth>{rate, Origin::preset, model};
    }
  }

  [[nodiscard]] bool is_one_hop_of_xgmi(std::size_t a, std::size_t b) const {
    return types_[a][b] == "XGMI" && (hops_.empty() || hops_[a][b] == "1");
  }

  /// xGMI over other GPUs passes their own links. Drivers count it as one hop, too; its weight then is a multiple of
  /// that of one link (15).
  [[nodiscard]] bool are_neighbours(std::size_t a, std::size_t b) const {
    if (!is_one_hop_of_xgmi(a, b)) return false;
    const auto weight = weight_of(a, b);
    return !weight || *weight < 2 * lightest_;
  }

  [[nodiscard]] std::optional<std::int64_t> weight_of(std::size_t a, std::size_t b) const {
    return weights_.empty() ? std::nullopt : whole_number(weights_[a][b]);
  }

  void find_lightest() {
    for (std::size_t a = 0; a < types_.size(); ++a) {
      for (std::size_t b = a + 1; b < types_.size(); ++b) {
        if (const auto weight = weight_of(a, b); is_one_hop_of_xgmi(a, b) && weight && *weight > 0) {
          lightest_ = lightest_ == 0 ? *weight : std::min(lightest_, *weight);
        }
      }
    }
  }

  using Cells = std::vector<std::vector<std::string>>;
  Draft draft_;
  Cells hops_, types_, weights_;
  std::int64_t lightest_ = 0;  // Of xGMI links; 0: no weights are known.
  Cells* table_ = nullptr;
  std::vector<std::string> columns_;  // Of the table.
  std::map<std::int64_t, std::int64_t> numa_nodes_;
};

/// A table of amd-smi under the title that rocm-smi gives it; empty for other lines. Titles are capitals and a colon,
/// also those of `amd-smi xgmi` beside it, whose rows are of other things.
std::string_view title_of_rocm(std::string_view line) {
  constexpr std::string_view letters = " -ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  const std::size_t end = line.find_first_not_of(letters);
  const bool is_capitals = end != std::string_view::npos && line[end] == ':' &&
                           line.find_first_not_of(" \t\r", end + 1) == std::string_view::npos;
  if (!is_capitals && line.find(" TABLE:") == std::string_view::npos) return {};
  if (line.find("WEIGHT TABLE:") != std::string_view::npos) return "== Weight between two GPUs ==";
  if (line.find("HOPS TABLE:") != std::string_view::npos) return "== Hops between two GPUs ==";
  if (line.find("LINK TYPE TABLE:") != std::string_view::npos) return "== Link Type between two GPUs ==";
  return "== another table ==";
}

/// "0000:0c:00.0": domain, bus, device and function.
bool is_pci_address(std::string_view word) {
  constexpr std::string_view form = "0000:00:00.0";
  return word.size() == form.size() && std::ranges::equal(form, word, [](char like, char c) {
           const bool is_hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
           return like == '0' ? is_hex : c == like;
         });
}

/// What amd-smi printed as rocm-smi would have, line by line: GPUs in the order of the first table.
std::string as_rocm_tables(std::string_view text) {
  std::string rocm;
  std::map<std::string, std::size_t, std::less<>> gpus;
  for (const TextLine& line : lines_of(text)) {
    if (const std::string_view title = title_of_rocm(without_label(line.text)); !title.empty()) {
      rocm += title;
    } else {
      for (const Word& word : TextLine{without_label(line.text), line.number}.words()) {
        if (is_pci_address(word.text)) {
          rocm += fmt::format("GPU{} ", gpus.emplace(word.text, gpus.size()).first->second);
        } else {
          rocm += word.text == "SELF" ? std::string("0 ") : std::string(word.text) + " ";
        }
      }
    }
    rocm += '\n';
  }
  return rocm;
}

}  // namespace

Result<Draft> read_amd_smi_topology(std::string_view text, const std::string& file) {
  auto draft = RocmReader(file).read(as_rocm_tables(without_escapes(text)));
  if (!draft && draft.error().help.find("rocm-smi") != std::string::npos) {
    draft.error().help = "copy all that `amd-smi topology` prints";
  }
  return draft;
}

Result<Draft> read_rocm_topology(std::string_view text, const std::string& file) {
  return RocmReader(file).read(without_escapes(text));
}

}  // namespace espalier
