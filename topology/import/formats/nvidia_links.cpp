// What `nvidia-smi nvlink -s` prints (rate of each NVLink of each GPU) and `nvidia-smi nvlink -R` (what it leads to):
// values for a machine that another file describes, as neither says which GPU a link of a switch serves.

#include <fmt/format.h>

#include <charconv>

#include "topology/import/formats/readers.h"
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
      const auto words = line.words();
      if (words.empty()) continue;
      const auto read = words[0].text == "GPU" ? read_gpu(line, words) : read_link(line, words);
      if (!read) return tl::unexpected(read.error());
    }
    if (draft_.nodes.empty()) {
      return fail_at(draft_.file, 1, 1, "there is no line 'GPU 0: ...'", "copy all that `nvidia-smi nvlink -s` prints");
    }
    return std::move(draft_);
  }

 private:
  /// "GPU 0: NVIDIA H200 (UUID: ...)"
  Result<void> read_gpu(const TextLine& line, const std::vector<Word>& words) {
    const auto number = words.size() > 1 && words[1].text.ends_with(':')
                            ? whole_number(words[1].text.substr(0, words[1].text.size() - 1))
                            : std::nullopt;
    if (!number)
      return fail_at(draft_.file, line.number, 1, "this names no GPU", "lines are 'GPU 0: NAME (UUID: ...)'");
    const DraftNode gpu{.id = fmt::format("gpu{}", *number),
                        .is_rank = true,
                        .links_up = Known<std::int64_t>{0, Origin::captured, draft_.file}};
    if (draft_.find(gpu)) {
      return fail_at(draft_.file, line.number, 1, gpu.id + " is there twice", "give one printout per file");
    }
    draft_.add(gpu);
    return {};
  }

  /// "Link 0: 26.562 GB/s", "Link 0: <inactive>" or "Link 0: Remote Device 00000000:C5:00.0: Link 46"
  Result<void> read_link(const TextLine& line, const std::vector<Word>& words) {
    if (words.size() < 3 || words[0].text != "Link" || draft_.nodes.empty()) {
      return fail_at(draft_.file, line.number, words[0].column, cited(line.text) + " is no line of nvidia-smi nvlink",
                     "lines are 'GPU 0: NAME' and below it 'Link 0: 26.562 GB/s'");
    }
    DraftNode& gpu = draft_.nodes.back();
    if (words[2].text == "<inactive>") {
      draft_.warn(import_codes::contradiction, line.number, fmt::format("an NVLink of {} is inactive", gpu.id),
                  "check the GPU; `nvidia-smi nvlink -e` shows its errors");
      return {};
    }
    ++gpu.links_up->value;
    if (words[2].text == "Remote") return {};
    double rate = 0;
    const auto parsed = std::from_chars(words[2].text.data(), words[2].text.data() + words[2].text.size(), rate);
    constexpr double most = 10'000;
    if (parsed.ec != std::errc() || words.size() < 4 || words[3].text != "GB/s" || !(rate > 0.001 && rate < most)) {
      return fail_at(draft_.file, line.number, words[2].column, cited(words[2].text) + " is no rate in GB/s",
                     "write it as 26.562 GB/s");
    }
    const Known<Bandwidth> known{nvlink_payload(rate), Origin::captured, draft_.file + ": less its line coding"};
    if (!gpu.link_rate || known.value < gpu.link_rate->value) gpu.link_rate = known;
    return {};
  }

  Draft draft_;
};

}  // namespace

Result<Draft> read_nvidia_links(std::string_view text, const std::string& file) {
  return NvidiaLinksReader(file).read(without_escapes(text));
}

}  // namespace espalier
