// What `nvidia-smi nvlink -s` prints (rate of each NVLink of each GPU) and `nvidia-smi nvlink -R` (what it leads to):
// values for a machine that another file describes, as neither says which GPU a link of a switch serves. Lines of
// anything else around them are passed over.

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "topology/import/formats/readers.h"
#include "topology/import/inactive_links.h"
#include "topology/import/lines.h"
#include "topology/import/nvml/nvlink_payload.h"

namespace espalier {
namespace {

class NvidiaLinksReader {
 public:
  explicit NvidiaLinksReader(const std::string& file) {
    draft_.file = file;
    draft_.scope = Draft::Scope::details;
  }

  Result<Draft> read(std::string_view text) {
    for (const TextLine& line : lines_of(text)) {
      const auto words = TextLine{without_label(line.text), line.number}.words();
      // Labels of launchers may stand before what nvidia-smi printed.
      for (std::size_t i = 0; i + 1 < words.size(); ++i) {
        const auto number = number_before_colon(words[i + 1].text);
        if (!number || (words[i].text != "GPU" && words[i].text != "Link")) continue;
        if (words[i].text == "GPU") {
          begin_gpu(*number, {words.begin() + static_cast<int>(i) + 2, words.end()});
        } else if (auto read = read_link(line, *number, {words.begin() + static_cast<int>(i) + 2, words.end()});
                   !read) {
          return tl::unexpected(read.error());
        }
        break;
      }
    }
    if (draft_.nodes.empty()) {
      return fail_at(draft_.file, 1, 1, "there is no line 'GPU 0: ...'", "copy all that `nvidia-smi nvlink -s` prints");
    }
    add_counts();
    return std::move(draft_);
  }

 private:
  static std::optional<std::int64_t> number_before_colon(std::string_view text) {
    if (!text.ends_with(':')) return std::nullopt;
    return whole_number(text.substr(0, text.size() - 1));
  }

  /// "GPU 0: NVIDIA H200 (UUID: ...)"; what is printed with -s and -R is of one GPU.
  void begin_gpu(std::int64_t number, const std::vector<Word>& name) {
    DraftNode gpu{.id = fmt::format("gpu{}", number), .is_rank = true};
    for (const Word& word : name) {
      if (word.text.starts_with("(UUID")) break;
      gpu.model += (gpu.model.empty() ? "" : " ") + std::string(word.text);
    }
    const auto known = draft_.find(gpu);
    gpu_ = known ? *known : draft_.add(gpu);
    is_up_.resize(draft_.nodes.size());
  }

  /// "Link 0: 26.562 GB/s", "Link 0: <inactive>" or "Link 0: Remote Device 00000000:C5:00.0: Link 46"
  Result<void> read_link(const TextLine& line, std::int64_t number, const std::vector<Word>& words) {
    if (draft_.nodes.empty() || words.empty()) {
      return fail_at(draft_.file, line.number, 1, cited(line.text) + " is no line of nvidia-smi nvlink",
                     "lines are 'GPU 0: NAME' and below it 'Link 0: 26.562 GB/s'");
    }
    DraftNode& gpu = draft_.nodes[gpu_];
    const bool is_up = words[0].text != "<inactive>";
    const auto [known, is_new] = is_up_[gpu_].emplace(number, is_up);
    if (!is_new && known->second != is_up) {
      return fail_at(draft_.file, line.number, 1,
                     fmt::format("link {} of {} is there twice, up and down", number, gpu.id),
                     "give one printout per file");
    }
    if (!is_up || words[0].text == "Remote") return {};
    const auto rate = decimal_number(words[0].text);
    constexpr double most = 10'000;
    if (!rate || words.size() < 2 || words[1].text != "GB/s" || !(*rate > 0.001 && *rate < most)) {
      return fail_at(draft_.file, line.number, words[0].column, cited(words[0].text) + " is no rate in GB/s",
                     "write it as 26.562 GB/s");
    }
    const Known<Bandwidth> payload{nvlink_payload(*rate), Origin::captured, draft_.file + ": less its line coding"};
    if (!gpu.link_rate || payload.value < gpu.link_rate->value) gpu.link_rate = payload;
    return {};
  }

  void add_counts() {
    InactiveLinks inactive;
    for (std::size_t i = 0; i < draft_.nodes.size(); ++i) {
      DraftNode& gpu = draft_.nodes[i];
      const auto up = std::ranges::count_if(is_up_[i], [](const auto& link) { return link.second; });
      gpu.links_up = Known<std::int64_t>{up, Origin::captured, draft_.file};
      std::vector<std::int64_t> down;
      for (const auto& [number, link_is_up] : is_up_[i]) {
        if (!link_is_up) down.push_back(number);
      }
      inactive.add(gpu.id, static_cast<std::size_t>(up), std::move(down));
    }
    inactive.warn(draft_);
  }

  Draft draft_;
  std::size_t gpu_ = 0;                              // The last one that was named.
  std::vector<std::map<std::int64_t, bool>> is_up_;  // By GPU and the number of the link.
};

}  // namespace

Result<Draft> read_nvidia_links(std::string_view text, const std::string& file) {
  return NvidiaLinksReader(file).read(without_escapes(text));
}

}  // namespace espalier
