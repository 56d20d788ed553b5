#include "topology/import/formats/gpu_names.h"

#include <algorithm>
#include <set>
#include <vector>

#include "topology/import/lines.h"
#include "topology/import/presets.h"

namespace espalier {
namespace {

constexpr std::size_t longest_gpu_name = 80;

/// The words as one text, up to the first that begins with one of the ends.
std::string name_of(const std::vector<Word>& words, std::size_t first, std::initializer_list<std::string_view> ends) {
  std::string name;
  for (std::size_t i = first; i < words.size(); ++i) {
    const std::string_view word = words[i].text;
    if (std::ranges::any_of(ends, [&](std::string_view end) { return word.starts_with(end); })) break;
    const bool is_last = word.ends_with(',');
    name += (name.empty() ? "" : " ") + std::string(is_last ? word.substr(0, word.size() - 1) : word);
    if (is_last || name.size() > longest_gpu_name) break;
  }
  return name;
}

/// "0" and "0,1,2,3" as numbers; nothing for any other text.
std::vector<std::int64_t> numbers_in(std::string_view list) {
  std::vector<std::int64_t> numbers;
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    const auto number = whole_number(list.substr(0, comma));
    if (!number) return {};
    numbers.push_back(*number);
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return numbers;
}

class NameReader {
 public:
  std::map<std::int64_t, std::string> read(std::string_view text) {
    for (const TextLine& line : lines_of(text)) read_line(TextLine{without_label(line.text), line.number}.words());
    for (const std::int64_t number : contradicted_) names_.erase(number);
    return std::move(names_);
  }

 private:
  void read_line(const std::vector<Word>& words) {
    for (std::size_t i = 0; i + 2 < words.size(); ++i) {
      const std::string_view word = words[i].text, next = words[i + 1].text;
      if ((word == "GPU" || word == "Device") && next.ends_with(':')) {
        for (const std::int64_t gpu : numbers_in(next.substr(0, next.size() - 1))) {
          add(gpu, name_of(words, i + 2, {"(UUID", "("}));
        }
        return;
      }
      if (word == "Device:" && next.ends_with(',')) {
        if (const auto gpu = whole_number(next.substr(0, next.size() - 1)))
          add(*gpu, name_of(words, i + 2, {"pciBus"}));
        return;
      }
      // Of nccl-tests "[0x07]", later "[0000:07:00]"; processes of several hosts count their devices alike.
      if (word == "device" && words[i + 2].text.starts_with('[')) {
        if (const auto gpu = whole_number(next)) add(*gpu, name_of(words, i + 3, {}));
        return;
      }
      const bool is_table = i == 0 && word == "|" && words[2].text.size() > 2;
      if (is_table) {
        if (const auto gpu = whole_number(next)) add(*gpu, name_of(words, 2, {"On", "Off", "|"}));
        return;
      }
    }
  }

  /// Whether it is the other name or the beginning of it: nvidia-smi's table ends long ones in "...".
  static bool is_cut_of(std::string_view cut, std::string_view whole) {
    return cut == whole || (cut.ends_with("...") && whole.starts_with(cut.substr(0, cut.size() - 3)));
  }

  /// Only what a generation is known of: other lines have such a form, too.
  void add(std::int64_t gpu, const std::string& name) {
    if (find_generation(name) == nullptr) return;
    const auto [known, is_new] = names_.emplace(gpu, name);
    if (is_new || is_cut_of(name, known->second)) return;
    if (!is_cut_of(known->second, name)) contradicted_.insert(gpu);
    known->second = name;
  }

  std::map<std::int64_t, std::string> names_;
  std::set<std::int64_t> contradicted_;
};

}  // namespace

std::map<std::int64_t, std::string> gpu_names_in(std::string_view text) { return NameReader().read(text); }

std::string amd_gpu_in(std::string_view text) {
  constexpr std::string_view sign = " (gfx";
  std::set<std::string> models;
  for (const TextLine& line : lines_of(text)) {
    const std::size_t at = line.text.find(sign);
    if (at == std::string_view::npos) continue;
    std::string_view name = line.text.substr(0, at);
    name.remove_prefix(std::min(name.find("AMD "), name.size()));
    const std::string_view code = line.text.substr(at + 2);
    models.emplace(find_generation(name) != nullptr ? name : code.substr(0, code.find_first_of(":)")));
  }
  return models.size() == 1 ? *models.begin() : std::string();
}

void name_gpus(Draft& draft, const std::map<std::int64_t, std::string>& names) {
  for (DraftNode& node : draft.nodes) {
    const auto number = node.is_rank ? number_behind(node.id, "gpu") : std::nullopt;
    const auto name = number ? names.find(*number) : names.end();
    if (name == names.end() || !node.model.empty()) continue;
    node.model = name->second;
    const GpuGeneration* const generation = find_generation(node.model);
    const Bandwidth rate = generation == nullptr ? Bandwidth{} : nvlink_rate_of(*generation);
    if (rate.bytes_per_second > 0) node.link_rate = Known<Bandwidth>{rate, Origin::preset, node.model};
  }
}

}  // namespace espalier
