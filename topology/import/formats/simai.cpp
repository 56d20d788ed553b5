// Topologies of SimAI: a line of counts, a line of switch ids, then a line per cable.

#include <fmt/format.h>

#include "base/parse_units.h"
#include "topology/import/formats/readers.h"
#include "topology/import/lines.h"

namespace espalier {
namespace {

constexpr std::int64_t max_simai_nodes = 100'000;

class SimaiReader {
 public:
  explicit SimaiReader(const std::string& file) { draft_.file = file; }

  Result<Draft> read(std::string_view text) {
    const auto lines = lines_of(text);
    if (auto read = lines.empty() ? bad_header(1) : read_header(lines[0]); !read) return tl::unexpected(read.error());
    if (auto read = lines.size() < 2 ? bad_switches(2, 1) : read_switches(lines[1]); !read) {
      return tl::unexpected(read.error());
    }
    std::int64_t links = 0;
    for (std::size_t i = 2; i < lines.size(); ++i) {
      const auto words = lines[i].words();
      if (words.empty()) continue;
      if (auto read = read_link(lines[i], words); !read) return tl::unexpected(read.error());
      ++links;
    }
    if (links != links_) {
      draft_.warn(import_codes::contradiction, 1,
                  fmt::format("the first line says {} links, and {} follow", links_, links),
                  "the file may have been cut short");
    }
    return std::move(draft_);
  }

 private:
  Result<void> bad_header(int line) const {
    return fail_at(
        draft_.file, line, 1, "the first line is not that of a SimAI topology",
        "it is: nodes, GPUs per server, NVSwitches, other switches, links, GPU type; ns-3 files of three counts "
        "are not read");
  }
  Result<void> bad_switches(int line, int column) const {
    return fail_at(draft_.file, line, column, "the second line does not name the switches",
                   fmt::format("it has the numbers of {} switches, each below {}", nvswitches_ + switches_, nodes_));
  }

  /// nodes gpus_per_server nvswitches switches links gpu_type
  Result<void> read_header(const TextLine& line) {
    const auto words = line.words();
    std::vector<std::int64_t> counts;
    for (const Word& word : words) {
      const auto count = whole_number(word.text);
      if (count) counts.push_back(*count);
    }
    if (words.size() != 6 || counts.size() != 5) return bad_header(line.number);
    nodes_ = counts[0];
    nvswitches_ = counts[2];
    switches_ = counts[3];
    links_ = counts[4];
    if (nodes_ > max_simai_nodes || nvswitches_ > nodes_ || switches_ > nodes_ - nvswitches_ || counts[1] < 1) {
      return bad_header(line.number);
    }
    per_server_ = counts[1];
    return {};
  }

  /// NVSwitches first, then all others; all other numbers are GPUs.
  Result<void> read_switches(const TextLine& line) {
    std::vector<int> kind(static_cast<std::size_t>(nodes_), 0);  // 0: GPU
    std::int64_t named = 0;
    for (const Word& word : line.words()) {
      const auto id = whole_number(word.text);
      if (!id || *id >= nodes_ || kind[static_cast<std::size_t>(*id)] != 0 || named == nvswitches_ + switches_) {
        return bad_switches(line.number, word.column);
      }
      kind[static_cast<std::size_t>(*id)] = named++ < nvswitches_ ? 1 : 2;
    }
    if (named != nvswitches_ + switches_) return bad_switches(line.number, 1);
    std::int64_t gpu = 0, nvswitch = 0, other = 0;
    for (const int what : kind) {
      if (what == 0) {
        const std::string host = fmt::format("server{}", gpu / per_server_);
        draft_.add({.id = fmt::format("gpu{}", gpu % per_server_), .is_rank = true, .host = host});
        ++gpu;
      } else if (what == 1) {
        draft_.add({.id = fmt::format("nvswitch{}", nvswitch++), .kind = NodeKind::switch_node});
      } else {
        draft_.add({.id = fmt::format("switch{}", other++), .kind = NodeKind::switch_node});
      }
    }
    is_nvswitch_.assign(kind.size(), false);
    for (std::size_t i = 0; i < kind.size(); ++i) is_nvswitch_[i] = kind[i] == 1;
    return {};
  }

  /// src dst 400Gbps 0.0005ms error_rate
  Result<void> read_link(const TextLine& line, const std::vector<Word>& words) {
    if (words.size() < 4) {
      return fail_at(draft_.file, line.number, words[0].column, "this is no cable",
                     "cables are: from, to, rate, latency, error rate: 0 16 400Gbps 0.0005ms 0");
    }
    std::array<std::size_t, 2> ends{};
    for (std::size_t i = 0; i < 2; ++i) {
      const auto id = whole_number(words[i].text);
      if (!id || *id >= nodes_ || (i == 1 && static_cast<std::size_t>(*id) == ends[0])) {
        return fail_at(draft_.file, line.number, words[i].column, cited(words[i].text) + " is not another node",
                       fmt::format("nodes are numbered from 0 to {}", nodes_ - 1));
      }
      ends[i] = static_cast<std::size_t>(*id);
    }
    const auto rate = parse_bandwidth(words[2].text);
    if (!rate) return fail_at(draft_.file, line.number, words[2].column, rate.error().message, rate.error().help);
    const auto latency = parse_latency(words[3].text);
    if (!latency)
      return fail_at(draft_.file, line.number, words[3].column, latency.error().message, latency.error().help);
    const bool is_nvlink = is_nvswitch_[ends[0]] || is_nvswitch_[ends[1]];
    draft_.links.push_back({.tail = ends[0],
                            .head = ends[1],
                            .medium = is_nvlink ? Medium::nvlink : Medium::net,
                            .bandwidth = Known<Bandwidth>{*rate, Origin::captured, draft_.file},
                            .latency = Known<Picoseconds>{*latency, Origin::captured, draft_.file}});
    return {};
  }

  Draft draft_;
  std::int64_t nodes_ = 0, per_server_ = 1, nvswitches_ = 0, switches_ = 0, links_ = 0;
  std::vector<bool> is_nvswitch_;
};

}  // namespace

Result<Draft> read_simai(std::string_view text, const std::string& file) { return SimaiReader(file).read(text); }

}  // namespace espalier
