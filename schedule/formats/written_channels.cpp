#include "schedule/formats/written_channels.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/format_units.h"

namespace espalier {
namespace {

/// A channel of a sender and receiver, on the route of its first transfer there.
struct WrittenLane {
  std::uint32_t channel = 0;
  RouteId route;
  std::uint32_t number = 0;
};

void number_lanes(const Schedule& schedule, std::vector<WrittenLane>& lanes, std::uint32_t most) {
  const auto links = [&](RouteId route) {
    const auto found = schedule.route(route).links;
    return std::vector<LinkId>(found.begin(), found.end());
  };
  std::map<std::vector<LinkId>, std::uint32_t> lanes_of_route;
  for (const WrittenLane& lane : lanes) lanes_of_route.emplace(links(lane.route), 0);
  const auto routes = static_cast<std::uint32_t>(lanes_of_route.size());
  const std::uint32_t room = std::max(1U, most / routes);
  std::vector<bool> is_taken(most, false);
  std::vector<WrittenLane*> without_room;
  for (WrittenLane& lane : lanes) {
    const auto place = lanes_of_route.find(links(lane.route));
    const auto route = static_cast<std::uint32_t>(std::distance(lanes_of_route.begin(), place));
    lane.number = (place->second % room * routes + route) % most;
    if (place->second++ >= room || is_taken[lane.number]) without_room.push_back(&lane);
    is_taken[lane.number] = true;
  }
  // Numbers of other routes that these leave free.
  std::uint32_t free = 0;
  for (WrittenLane* const lane : without_room) {
    while (free < most && is_taken[free]) ++free;
    if (free == most) return;
    lane->number = free;
    is_taken[free] = true;
  }
}

}  // namespace

WrittenChannels number_channels(const Schedule& schedule, std::uint32_t most) {
  using Pair = std::pair<Rank, Rank>;
  const auto pair_of = [&](const Transfer& transfer) { return Pair(schedule.src(transfer), schedule.dst(transfer)); };
  std::map<Pair, std::vector<WrittenLane>> lanes;
  for (const Transfer& transfer : schedule.transfers) {
    std::vector<WrittenLane>& of_pair = lanes[pair_of(transfer)];
    if (std::ranges::find(of_pair, transfer.channel_value, &WrittenLane::channel) == of_pair.end()) {
      of_pair.push_back({transfer.channel_value, transfer.route});
    }
  }
  WrittenChannels written{{}, 0, most};
  for (auto& [pair, of_pair] : lanes) {
    written.max_lanes = std::max(written.max_lanes, static_cast<std::uint32_t>(of_pair.size()));
    number_lanes(schedule, of_pair, most);
    std::ranges::sort(of_pair, {}, &WrittenLane::channel);
  }
  written.numbers.reserve(schedule.transfers.size());
  for (const Transfer& transfer : schedule.transfers) {
    const auto& of_pair = lanes.at(pair_of(transfer));
    written.numbers.push_back(
        std::ranges::lower_bound(of_pair, transfer.channel_value, {}, &WrittenLane::channel)->number);
  }
  return written;
}

std::vector<std::string> lost_by(const Schedule& schedule, std::string_view format) {
  std::vector<std::string> lost = {
      fmt::format("{} does not say over which links a transfer goes: its readers choose", format)};
  if (schedule.pacing) {
    lost.push_back(fmt::format("{} does not say that chunks are {}: what runs it cuts as it does", format,
                               format_size(schedule.pacing->chunk)));
  }
  return lost;
}

std::vector<std::string> lost_by(const Schedule& schedule, const WrittenChannels& channels, std::string_view format) {
  std::vector<std::string> lost = lost_by(schedule, format);
  if (channels.are_folded()) {
    lost.insert(lost.begin() + 1,
                fmt::format("of up to {} channels between two ranks {} are left: transfers that went beside each other "
                            "follow each other",
                            channels.max_lanes, channels.most));
  }
  return lost;
}

}  // namespace espalier
