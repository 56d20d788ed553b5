#include "schedule/schedule_shape.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace espalier {

ScheduleShape measure_shape(const Schedule& schedule) {
  ScheduleShape shape;
  std::unordered_map<std::uint64_t, std::uint32_t> depth;  // by channel, action and rank
  std::unordered_map<std::uint32_t, std::unordered_set<std::uint32_t>> channels_of;
  std::unordered_set<std::uint32_t> channels;
  const auto key = [&](const Transfer& transfer, Rank rank) {
    return (std::uint64_t{transfer.channel_value} << 33U) | (std::uint64_t{rank.index()} << 1U) | transfer.reduces;
  };
  for (const Transfer& transfer : schedule.transfers) {
    const auto found = depth.find(key(transfer, schedule.src(transfer)));
    const std::uint32_t reached = (found == depth.end() ? 0 : found->second) + 1;
    std::uint32_t& at = depth[key(transfer, schedule.dst(transfer))];
    at = std::max(at, reached);
    shape.height = std::max(shape.height, reached);
    channels.insert(transfer.channel_value);
    const Rank rank = schedule.slices[transfer.first_slice.index()].rank;
    if (!rank.is_none()) channels_of[static_cast<std::uint32_t>(rank.index())].insert(transfer.channel_value);
  }
  shape.trees = static_cast<std::uint32_t>(channels.size());
  shape.trees_per_root = channels_of.empty() ? shape.trees : 0;
  for (const auto& [rank, used] : channels_of) {
    shape.trees_per_root = std::max(shape.trees_per_root, static_cast<std::uint32_t>(used.size()));
  }
  return shape;
}

}  // namespace espalier
