#include "schedule/formats/rank_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "schedule/dependencies.h"
#include "schedule/formats/writers.h"
#include "schedule/layout.h"

namespace espalier {
namespace {

/// Whether a channel has several transfers between two ranks.
bool has_queued_sends(const Schedule& schedule) {
  std::set<std::tuple<Rank, Rank, ChannelId>> seen;
  return std::ranges::any_of(schedule.transfers, [&](const Transfer& transfer) {
    return !seen.emplace(schedule.src(transfer), schedule.dst(transfer), transfer.channel()).second;
  });
}

}  // namespace

Result<std::vector<std::vector<RankEvent>>> rank_events(const Schedule& schedule, const Topology& topology,
                                                        std::string_view format, const ExportOptions& options) {
  if (auto refused = refuse_relays(schedule, topology, format); !refused) return tl::unexpected(refused.error());
  const auto layout = Layout::make(schedule, options.size, options.element_size);
  if (!layout) return tl::unexpected(layout.error());
  const Dependencies dependencies(schedule);
  std::vector<std::vector<RankEvent>> ranks(schedule.collective.rank_count);
  struct Places {
    std::uint32_t send = 0;
    std::uint32_t receive = 0;
  };
  std::vector<Places> places;
  std::map<std::tuple<Rank, Rank, ChannelId>, std::uint32_t> last_sends;
  for (std::size_t i = 0; i < schedule.transfers.size(); ++i) {
    const Transfer& transfer = schedule.transfers[i];
    const Rank src = schedule.src(transfer), dst = schedule.dst(transfer);
    const std::int64_t bytes = layout->range(transfer).length();
    RankEvent send{.is_send = true, .peer = dst, .bytes = bytes, .tag = static_cast<std::uint32_t>(i)};
    RankEvent receive{.peer = src, .bytes = bytes, .tag = static_cast<std::uint32_t>(i)};
    for (const Dependency& dependency : dependencies.of(TransferId(i))) {
      const Transfer& earlier = schedule.transfers[dependency.transfer().index()];
      const Places& at = places[dependency.transfer().index()];
      if (dependency.wait() == Wait::departure) {
        receive.after.push_back(at.send);  // It replaces what the earlier one reads at its source, which is here.
      } else if (schedule.dst(earlier) == src) {
        send.after.push_back(at.receive);
      } else {
        receive.after.push_back(at.receive);
      }
    }
    const auto own = static_cast<std::uint32_t>(ranks[src.index()].size());
    const auto [last, is_first] = last_sends.emplace(std::tuple{src, dst, transfer.channel()}, own);
    if (!is_first) send.previous = std::exchange(last->second, own);
    places.push_back({own, static_cast<std::uint32_t>(ranks[dst.index()].size())});
    ranks[src.index()].push_back(std::move(send));
    ranks[dst.index()].push_back(std::move(receive));
  }
  return ranks;
}

std::vector<std::string> lost_by_events(const Schedule& schedule, std::string_view format, bool has_order) {
  std::vector<std::string> lost = {
      fmt::format("{} does not say over which links a message goes: what runs it chooses", format),
      fmt::format("messages of {} are whole transfers: none begins before all that it passes on has arrived, where "
                  "chunks begin earlier",
                  format)};
  if (!has_order && has_queued_sends(schedule)) {
    lost.push_back(
        fmt::format("{} does not say in which order messages of a channel go: they may share a link", format));
  }
  return lost;
}

}  // namespace espalier
