// What `rocm-smi --showtopo` prints: tables of weights, hops and link types between GPUs, and the NUMA node of each.
// `--showtopotype` prints the types alone, as reports of inference servers have them.
// Lines of anything else around them are passed over. `amd-smi topology` prints the same tables with PCI addresses
// for names, and no NUMA nodes.

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/counted.h"
#include "topology/import/formats/amd_tables.h"
#include "topology/import/formats/readers.h"
#include "topology/import/lines.h"

namespace espalier {
namespace {

class RocmReader {
 public:
  explicit RocmReader(const std::string& file) : file_(file) {}

  Result<Draft> read(std::string_view text) {
    for (const TextLine& line : lines_of(text)) {
      const auto words = words_of_tool(line);
      if (words.empty()) continue;
      if (is_title(words[0])) {
        table_ = line.text.find("Hops between") != std::string_view::npos        ? &tables_.hops
                 : line.text.find("Link Type between") != std::string_view::npos ? &tables_.types
                 : line.text.find("Weight between") != std::string_view::npos    ? &tables_.weights
                                                                                 : nullptr;
        columns_.clear();
      } else if (words[0].text == "GPU" || words[0].text.starts_with("GPU[")) {
        read_numa_node(words);
      } else if (table_ != nullptr && number_behind(words[0].text, "GPU")) {
        if (auto read = read_row(line, words); !read) return tl::unexpected(read.error());
      }
    }
    if (!tables_.are_whole()) {
      return fail_at(file_, 1, 1, "there is no table of link types, or the tables are of unlike sizes",
                     "copy all that `rocm-smi --showtopo` prints");
    }
    return draft_of(tables_, text, file_);
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
    if (gpu && node) tables_.numa_nodes[*gpu] = *node;
  }

  /// The line of columns, "GPU0 GPU1 ...", or a row: "GPU0 0 XGMI ...".
  Result<void> read_row(const TextLine& line, const std::vector<Word>& words) {
    if (columns_.empty()) {
      if (words.size() > max_amd_gpus)
        return fail_at(file_, line.number, 1, "too many GPUs", "a machine has at most 256");
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
      return fail_at(file_, line.number, 1,
                     fmt::format("the row has {} of {}", counted(words.size() - 1, "cell"), columns_.size()),
                     "copy the whole of what was printed");
    }
    for (const Word& word : words) {
      const bool is_type = word.text == "XGMI" || word.text == "PCIE" || word.text == "0" || word.text == "X" ||
                           word.text == "N/A" || word.text == "UNKNOWN";
      if (table_ == &tables_.types && &word != &words[0] && !is_type) {
        return fail_cell(line, word, "types of links are XGMI and PCIE");
      }
    }
    std::vector<std::string> row;
    for (std::size_t i = 1; i < words.size(); ++i) row.emplace_back(words[i].text);
    if (table_->size() == columns_.size())
      return fail_at(file_, line.number, 1, "there are more rows than columns", "give one printout per file");
    table_->push_back(std::move(row));
    return {};
  }

  tl::unexpected<Error> fail_cell(const TextLine& line, const Word& word, const std::string& help) const {
    const auto at = static_cast<int>(word.text.data() - line.text.data()) + 1;
    return fail_at(file_, line.number, at, cited(word.text) + " does not belong here", help);
  }

  AmdTables tables_;
  AmdTables::Cells* table_ = nullptr;
  const std::string& file_;
  std::vector<std::string> columns_;  // Of the table.
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
  if (is_amd_smi_json(text)) return read_amd_smi_json(text, file);
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
