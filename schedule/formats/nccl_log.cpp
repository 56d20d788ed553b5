#include "schedule/formats/nccl_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "topology/import/lines.h"

namespace espalier {
namespace {

constexpr std::string_view mark = "NCCL INFO ";
constexpr std::string_view head = "NCCL INFO Channel ";
constexpr std::size_t most_channels = 1024;

struct LogRing {
  std::int64_t channel = 0;
  std::vector<std::int64_t> ranks;
};

/// "00/32 : 0 1 2 3"; nothing for what else begins with "Channel", such as "00/0 : 2[2] -> 3[3] via P2P".
std::optional<LogRing> read_ring(std::string_view text) {
  LogRing ring;
  const std::vector<Word> words = TextLine{text, 1}.words();
  if (words.size() < 3 || words[1].text != ":") return std::nullopt;
  const std::size_t slash = words[0].text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const auto channel = whole_number(words[0].text.substr(0, slash));
  if (!channel) return std::nullopt;
  ring.channel = *channel;
  for (std::size_t i = 2; i < words.size(); ++i) {
    const auto rank = whole_number(words[i].text);
    if (!rank) return std::nullopt;
    ring.ranks.push_back(*rank);
  }
  return ring;
}

}  // namespace

bool is_nccl_log(std::string_view text) { return text.find(mark) != std::string_view::npos; }

Result<std::vector<std::vector<std::int64_t>>> read_nccl_log_rings(std::string_view text, const std::string& file,
                                                                   std::size_t ranks) {
  std::map<std::int64_t, std::vector<std::int64_t>> rings;
  std::map<std::size_t, std::size_t> others;  // by number of ranks
  for (const TextLine& line : lines_of(text)) {
    const std::size_t at = line.text.find(head);
    if (at == std::string_view::npos) continue;
    auto ring = read_ring(line.text.substr(at + head.size()));
    if (!ring) continue;
    const int column = static_cast<int>(at + head.size()) + 1;
    if (ring->ranks.size() != ranks) {
      ++others[ring->ranks.size()];
      continue;
    }
    std::vector<std::int64_t> sorted = ring->ranks;
    std::ranges::sort(sorted);
    for (std::size_t i = 0; i < sorted.size(); ++i) {
      if (sorted[i] == static_cast<std::int64_t>(i)) continue;
      return fail_at(file, line.number, column, "the ring does not pass each rank once",
                     "give the log as it was written");
    }
    const auto [known, is_new] = rings.emplace(ring->channel, ring->ranks);
    if (!is_new && known->second != ring->ranks) {
      return fail_at(file, line.number, column,
                     fmt::format("channel {} has another ring than above: of another communicator", ring->channel),
                     "give the part of the log that is about one communicator");
    }
    if (rings.size() > most_channels) return fail_at(file, line.number, column, "there are too many channels", "");
  }
  std::vector<std::vector<std::int64_t>> orders;
  for (auto& [channel, order] : rings) orders.push_back(std::move(order));
  if (!orders.empty()) return orders;
  std::string found;
  for (const auto& [count, lines] : others)
    found += fmt::format("{}{}", found.empty() ? "; it has rings of " : ", ", count);
  return fail(ErrorCode::invalid_input, fmt::format("{}: there is no ring of {} ranks in it{}", file, ranks, found),
              others.empty() ? "write the log with NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=INIT,GRAPH"
                             : "name the machine that it was written on, or choose its ranks with --ranks");
}

}  // namespace espalier
