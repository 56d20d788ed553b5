// What `amd-smi topology --json` prints: a list of GPUs. Since ROCm 6.3 each has a list of links, one to each GPU, with
// link_type, num_hops and weight; before, a map of each of link_type, hops and weight, by gpu_0, gpu_1 and so on.
// Source: ROCm/amdsmi, CHANGELOG.md of ROCm 6.3.

#include <fmt/format.h>

#include <algorithm>

#include "topology/import/formats/amd_tables.h"
#include "topology/import/lines.h"
#include "topology/import/pci.h"
#include "topology/import/yaml_file.h"

namespace espalier {
namespace {

constexpr std::string_view whole_help = "give all that `amd-smi topology --json` prints";

std::string_view text_of(Value map, std::string_view key) {
  const Value value = map && map.is_map() ? map.find(key) : Value();
  return value && value.is_scalar() ? value.text() : std::string_view();
}

/// The JSON in a text: blanks stand for what is before it, so that places stay, and nothing for what is behind it.
std::string json_in(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  std::size_t begin = text.find('[');
  while (begin != std::string_view::npos) {
    const std::size_t next = text.find_first_not_of(blanks, begin + 1);
    if (next == std::string_view::npos || text[next] == '{') break;
    begin = text.find('[', begin + 1);
  }
  if (begin == std::string_view::npos) return std::string(text);
  std::string json(text);
  std::replace_if(
      json.begin(), json.begin() + static_cast<std::ptrdiff_t>(begin), [](char c) { return c != '\n'; }, ' ');
  std::int64_t depth = 0;
  bool is_text = false;
  for (std::size_t i = begin; i < json.size(); ++i) {
    if (json[i] == '"' && json[i - 1] != '\\') is_text = !is_text;
    if (is_text) continue;
    depth += json[i] == '[' ? 1 : json[i] == ']' ? -1 : 0;
    if (depth == 0) return json.substr(0, i + 1);
  }
  return json;
}

class AmdJson {
 public:
  explicit AmdJson(const YamlFile& yaml) : yaml_(yaml) {}

  Result<AmdTables> read() {
    const Value root = yaml_.root();
    for (std::size_t i = 0; root.is_list() && i < root.size(); ++i) {
      // Adapters stand behind the GPUs in what hosts of virtual machines print.
      if (!text_of(root.item(i), "gpu").empty()) gpus_.push_back(root.item(i));
    }
    if (gpus_.empty() || gpus_.size() > max_amd_gpus) {
      return yaml_.fail_at(root, "this is no list of at most 256 GPUs", std::string(whole_help));
    }
    for (AmdTables::Cells* table : {&tables_.types, &tables_.hops, &tables_.weights}) {
      table->assign(gpus_.size(), std::vector<std::string>(gpus_.size()));
    }
    for (std::size_t from = 0; from < gpus_.size(); ++from) {
      tables_.buses.push_back(normal_bus(text_of(gpus_[from], "bdf")));
      for (std::size_t to = 0; to < gpus_.size(); ++to) read_pair(from, to);
      for (std::size_t to = 0; to < gpus_.size(); ++to) {
        if (!tables_.types[from][to].empty()) continue;
        return yaml_.fail_at(gpus_[from],
                             fmt::format("there is no link_type from GPU {} to GPU {}", text_of(gpus_[from], "gpu"),
                                         text_of(gpus_[to], "gpu")),
                             std::string(whole_help));
      }
    }
    for (AmdTables::Cells* table : {&tables_.hops, &tables_.weights}) {
      if (std::ranges::any_of(*table, [](const auto& row) { return std::ranges::count(row, "") > 0; })) table->clear();
    }
    return std::move(tables_);
  }

 private:
  void read_pair(std::size_t from, std::size_t to) {
    const std::string_view gpu = text_of(gpus_[to], "gpu");
    const Value links = gpus_[from].find("links");
    if (links && links.is_list()) {
      for (std::size_t i = 0; i < links.size(); ++i) {
        const Value link = links.item(i);
        if (text_of(link, "gpu") == gpu) {
          return put(from, to, text_of(link, "link_type"), text_of(link, "num_hops"), text_of(link, "weight"));
        }
      }
      return;
    }
    const std::string key = fmt::format("gpu_{}", gpu);
    const auto cell = [&](const char* table) { return text_of(gpus_[from].find(table), key); };
    put(from, to, cell("link_type"), cell("hops"), cell("weight"));
  }

  void put(std::size_t from, std::size_t to, std::string_view type, std::string_view hops, std::string_view weight) {
    tables_.types[from][to] = type;
    tables_.hops[from][to] = hops;
    tables_.weights[from][to] = weight;
  }

  const YamlFile& yaml_;
  std::vector<Value> gpus_;
  AmdTables tables_;
};

}  // namespace

bool is_amd_smi_json(std::string_view text) {
  const auto has = [&](std::string_view part) { return text.find(part) != std::string_view::npos; };
  const bool has_pairs = has("\"links\"") || has("\"gpu_0\"");
  return has_pairs && has("\"link_type\"") && has("\"gpu\"") && !has("\"link_metrics\"");
}

Result<Draft> read_amd_smi_json(std::string_view text, const std::string& file) {
  std::string plain;
  for (const TextLine& line : lines_of(text)) plain += std::string(without_stream_tag(line.text)) + "\n";
  const auto yaml = YamlFile::parse(json_in(plain), file);
  if (!yaml) {
    Error error = yaml.error();
    error.help = whole_help;
    return tl::unexpected(error);
  }
  const auto tables = AmdJson(*yaml).read();
  if (!tables) return tl::unexpected(tables.error());
  return draft_of(*tables, text, file);
}

}  // namespace espalier
