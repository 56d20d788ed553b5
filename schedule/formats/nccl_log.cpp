#include "schedule/formats/nccl_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "topology/import/lines.h"

namespace espalier {
namespace {

constexpr std::string_view mark = "NCCL INFO ";
constexpr std::string_view channel_head = " INFO Channel ";
constexpr std::string_view ring_head = " INFO Ring ";  // Until NCCL 2.2 "INFO" stands without "NCCL".
constexpr std::size_t max_log_channels = 1024;
/// Where lines of rings are cut: until 2021, and since.
constexpr std::array<std::size_t, 2> cut_lengths = {20, 28};

/// "00/32", or "00" of NCCL 2.4.
std::optional<std::int64_t> read_channel(std::string_view word) { return whole_number(word.substr(0, word.find('/'))); }

struct LogRing {
  std::int64_t channel = 0;
  std::size_t channels = 0;  ///< Of the communicator; 0: not said.
  std::vector<std::int64_t> ranks;
};

/// "00/32 : 0 1 2 3"; nothing for what else begins with "Channel" or "Ring", such as "00/0 : 2[2] -> 3[3] via P2P".
std::optional<LogRing> read_ring(std::string_view text) {
  LogRing ring;
  const std::vector<Word> words = TextLine{text, 1}.words();
  if (words.size() < 3 || words[1].text != ":") return std::nullopt;
  const auto channel = read_channel(words[0].text);
  if (!channel) return std::nullopt;
  ring.channel = *channel;
  if (const std::size_t slash = words[0].text.find('/'); slash != std::string_view::npos) {
    ring.channels = static_cast<std::size_t>(whole_number(words[0].text.substr(slash + 1)).value_or(0));
  }
  for (std::size_t i = 2; i < words.size(); ++i) {
    const auto rank = whole_number(words[i].text);
    if (!rank) return std::nullopt;
    ring.ranks.push_back(*rank);
  }
  return ring;
}

/// "00 : 31 -> 0 -> 1", which rank 0 says of its neighbours; or "00 : 0[c0] -> 1[d0] via P2P/IPC", a connection of the
/// ring or a tree: "Ring" until NCCL 2.7, "Channel" since, from 2.12 on as "00/0".
struct LogNeighbours {
  std::int64_t channel = 0;
  std::vector<std::int64_t> ranks;           ///< Two or three in a row.
  std::optional<std::int64_t> communicator;  ///< Its number of ranks, which RCCL adds.
  bool is_of_receiver = false;               ///< Of a connection: said by the rank that it leads to.
};

std::optional<LogNeighbours> read_neighbours(std::string_view text) {
  const std::vector<Word> words = TextLine{text, 1}.words();
  LogNeighbours found;
  const auto channel = words.size() < 5 || words[1].text != ":" ? std::nullopt : read_channel(words[0].text);
  if (!channel) return std::nullopt;
  const std::size_t slash = words[0].text.find('/');
  const bool is_of_messages = slash != std::string_view::npos && words[0].text.substr(slash) != "/0";
  if (is_of_messages) return std::nullopt;  // A connection of send and receive.
  found.channel = *channel;
  for (std::size_t i = 2; i < words.size(); i += 2) {
    const auto rank = whole_number(words[i].text.substr(0, words[i].text.find('[')));
    if (!rank) return std::nullopt;
    found.ranks.push_back(*rank);
    if (i + 1 >= words.size() || words[i + 1].text != "->") break;
  }
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i].text == "nRanks") found.communicator = whole_number(words[i + 1].text);
    found.is_of_receiver = found.is_of_receiver || words[i].text == "[receive]";
  }
  return found.ranks.size() == 2 || found.ranks.size() == 3 ? std::optional(found) : std::nullopt;
}

/// What a log says of one channel of a communicator.
struct ChannelLog {
  std::vector<std::int64_t> whole;            ///< The ring, where a line has it whole.
  std::map<std::int64_t, std::int64_t> next;  ///< By rank, the one behind it.
  /// By rank, the first that it was connected to, and the first that was connected to it: rings come before trees.
  std::map<std::int64_t, std::int64_t> connected, connected_from;
  bool is_listed = false;         ///< In a line that was cut.
  std::optional<Error> conflict;  ///< Of what two lines say of one rank.
};

class RingLog {
 public:
  RingLog(const std::string& file, std::size_t ranks) : file_(file), ranks_(ranks) {}

  Result<NcclLogRings> read(std::string_view text) {
    for (const TextLine& line : lines_of(text)) {
      if (auto read = read_line(line); !read) return tl::unexpected(read.error());
      if (channels_.size() > max_log_channels) return fail_at(file_, line.number, 1, "there are too many channels", "");
    }
    NcclLogRings rings{.channels = declared_};
    for (const auto& [number, channel] : channels_) {
      if (!channel.whole.empty()) rings.orders.push_back(channel.whole);
    }
    if (!rings.orders.empty()) return rings;
    auto pieced = piece_together();
    if (!pieced) return tl::unexpected(pieced.error());
    rings.orders = *std::move(pieced);
    return rings;
  }

 private:
  Result<void> read_line(const TextLine& line) {
    if (const std::size_t at = line.text.find(channel_head); at != std::string_view::npos) {
      return read_ring_at(line, at + channel_head.size());
    }
    if (const std::size_t at = line.text.find(ring_head); at != std::string_view::npos) {
      return read_ring_at(line, at + ring_head.size());
    }
    constexpr std::string_view rest_head = "Ring ";  // Of a line that another process wrote into.
    if (line.text.starts_with(rest_head)) return read_ring_at(line, rest_head.size());
    return {};
  }

  /// A whole ring, of channels and until NCCL 2.3 of rings, or neighbours in one.
  Result<void> read_ring_at(const TextLine& line, std::size_t begin) {
    const std::string_view rest = line.text.substr(begin);
    const int column = static_cast<int>(begin) + 1;
    if (const auto ring = read_ring(rest)) return add_ring(*ring, line.number, column);
    const auto found = read_neighbours(rest);
    return found ? add_neighbours(*found, line.number, column) : Result<void>();
  }

  Result<void> add_ring(const LogRing& ring, int line, int column) {
    const std::size_t count = ring.ranks.size();
    const bool is_cut = count < ranks_ && std::ranges::find(cut_lengths, count) != cut_lengths.end();
    const bool is_of_more =
        is_cut && !std::ranges::all_of(ring.ranks, [&](std::int64_t rank) { return is_rank(rank); });
    if ((count != ranks_ && !is_cut) || is_of_more) {
      ++others_[count];
      return {};
    }
    std::vector<std::int64_t> sorted = ring.ranks;
    std::ranges::sort(sorted);
    const bool is_good = std::ranges::adjacent_find(sorted) == sorted.end() && is_rank(sorted.back());
    if (!is_good) {
      return fail_at(file_, line, column, "the ring does not pass each rank once", "give the log as it was written");
    }
    ChannelLog& channel = channels_[ring.channel];
    declared_ = std::max(declared_, ring.channels);
    if (is_cut) {
      is_cut_ = channel.is_listed = true;
      for (std::size_t i = 0; i + 1 < count; ++i) {
        add_next(ring.channel, ring.ranks[i], ring.ranks[i + 1], line, column);
      }
      return {};
    }
    if (channel.whole.empty()) channel.whole = ring.ranks;
    return channel.whole == ring.ranks ? Result<void>() : fail_other(ring.channel, line, column);
  }

  Result<void> add_neighbours(const LogNeighbours& found, int line, int column) {
    if (found.communicator && *found.communicator != static_cast<std::int64_t>(ranks_)) return {};
    largest_rank_ = std::max(largest_rank_, std::ranges::max(found.ranks));
    if (!std::ranges::all_of(found.ranks, [&](std::int64_t rank) { return is_rank(rank); })) return {};
    if (found.ranks.size() == 2) {
      // What ranks say of each other is in no order.
      ChannelLog& channel = channels_[found.channel];
      found.is_of_receiver ? channel.connected_from.emplace(found.ranks[1], found.ranks[0])
                           : channel.connected.emplace(found.ranks[0], found.ranks[1]);
      return {};
    }
    for (std::size_t i = 0; i + 1 < found.ranks.size(); ++i) {
      add_next(found.channel, found.ranks[i], found.ranks[i + 1], line, column);
    }
    return {};
  }

  void add_next(std::int64_t number, std::int64_t rank, std::int64_t next, int line, int column) {
    ChannelLog& channel = channels_[number];
    const auto [known, is_new] = channel.next.emplace(rank, next);
    if (!is_new && known->second != next && !channel.conflict) {
      channel.conflict = fail_other(number, line, column).value();
    }
  }

  /// The rings of a log that has none whole.
  Result<std::vector<std::vector<std::int64_t>>> piece_together() {
    if (!is_rank(largest_rank_)) return fail_none();  // Nothing tells its pieces from those of fewer ranks.
    std::vector<std::vector<std::int64_t>> orders;
    for (const auto& [number, channel] : channels_) {
      if (is_cut_ && !channel.is_listed) continue;  // Of a communicator with more channels.
      if (channel.conflict) return tl::unexpected(*channel.conflict);
      auto order = order_of(channel);
      if (order.empty()) return is_cut_ ? fail_cut() : fail_none();
      orders.push_back(std::move(order));
    }
    if (orders.empty()) return fail_none();
    return orders;
  }

  [[nodiscard]] bool is_rank(std::int64_t rank) const { return rank < static_cast<std::int64_t>(ranks_); }

  /// The ring from rank 0 on, pieced together; empty where a part of it is missing. One missing pair follows.
  [[nodiscard]] std::vector<std::int64_t> order_of(const ChannelLog& channel) const {
    std::map<std::int64_t, std::int64_t> next = channel.next;
    if (next.size() + 1 < ranks_) next.insert(channel.connected.begin(), channel.connected.end());
    std::vector<bool> is_next(ranks_, false), is_passed(ranks_, false);
    for (const auto& [rank, behind] : next) is_next[static_cast<std::size_t>(behind)] = true;
    for (const auto& [rank, before] : channel.connected_from) {
      if (!is_next[static_cast<std::size_t>(rank)] && next.emplace(before, rank).second) {
        is_next[static_cast<std::size_t>(rank)] = true;
      }
    }
    std::vector<std::int64_t> order;
    // Where one pair is missing, the ring begins behind it.
    const auto first = std::ranges::find(is_next, false);
    std::int64_t rank = first == is_next.end() ? 0 : first - is_next.begin();
    while (order.size() < ranks_ && !is_passed[static_cast<std::size_t>(rank)]) {
      is_passed[static_cast<std::size_t>(rank)] = true;
      order.push_back(rank);
      const auto behind = next.find(rank);
      if (behind == next.end()) break;
      rank = behind->second;
    }
    const bool is_closed = next.size() + 1 == ranks_ || rank == order.front();
    if (order.size() != ranks_ || !is_closed) return {};
    std::ranges::rotate(order, std::ranges::find(order, 0));
    return order;
  }

  [[nodiscard]] tl::unexpected<Error> fail_other(std::int64_t channel, int line, int column) const {
    return fail_at(file_, line, column,
                   fmt::format("channel {} has another ring than above: of another communicator", channel),
                   "give the part of the log that is about one communicator");
  }

  [[nodiscard]] tl::unexpected<Error> fail_cut() const {
    std::size_t known = ranks_;
    for (const auto& [number, channel] : channels_) {
      if (channel.is_listed) known = std::min(known, channel.next.size());
    }
    return fail(ErrorCode::invalid_input,
                fmt::format("{}: NCCL cut the lines of its rings, and what {} of {} ranks say of their neighbours "
                            "(Ring 00 : 31 -> 0 -> 1) is missing",
                            file_, ranks_ - known, ranks_),
                "give the logs of all ranks in one file, written with NCCL_DEBUG=INFO and "
                "NCCL_DEBUG_SUBSYS=INIT,GRAPH");
  }

  [[nodiscard]] tl::unexpected<Error> fail_none() const {
    std::string found;
    for (const auto& [count, lines] : others_) {
      found += fmt::format("{}{}", found.empty() ? "; it has rings of " : ", ", count);
    }
    if (!is_rank(largest_rank_)) found += fmt::format("; it has ranks up to {}", largest_rank_);
    return fail(ErrorCode::invalid_input, fmt::format("{}: there is no ring of {} ranks in it{}", file_, ranks_, found),
                found.empty() ? "write the log with NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=INIT,GRAPH"
                              : "name the machine that it was written on, or choose its ranks with --ranks");
  }

  const std::string& file_;
  std::size_t ranks_;
  std::map<std::int64_t, ChannelLog> channels_;
  std::map<std::size_t, std::size_t> others_;  // Lines of other communicators, by number of ranks.
  std::int64_t largest_rank_ = 0;              // In what ranks say of their neighbours.
  std::size_t declared_ = 0;                   // Channels of the communicator.
  bool is_cut_ = false;
};

}  // namespace

bool is_nccl_log(std::string_view text) {
  constexpr std::string_view old_ring = "] INFO Ring 0";
  return text.find(mark) != std::string_view::npos || text.find(old_ring) != std::string_view::npos;
}

Result<NcclLogRings> read_nccl_log_rings(std::string_view text, const std::string& file, std::size_t ranks) {
  return RingLog(file, ranks).read(text);
}

}  // namespace espalier
