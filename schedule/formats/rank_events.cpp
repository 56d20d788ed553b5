#include "schedule/formats/rank_events.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "schedule/dependencies.h"
#include "schedule/formats/writers.h"
#include "schedule/layout.h"

namespace espalier {

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

}  // namespace espalier
