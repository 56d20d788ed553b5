#include "schedule/schedule_shape.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

namespace espalier {

ScheduleShape measure_shape(const Schedule& schedule) {
  ScheduleShape shape;
  std::unordered_map<std::uint64_t, std::uint32_t> depth;  // by channel, action and rank
  std::unordered_map<std::uint64_t, Rank> root;            // by channel and action
  using Edges = std::vector<std::uint64_t>;                // source and destination
  std::unordered_map<std::uint64_t, Edges> edges;          // by channel and action
  const auto key = [](const Transfer& transfer, std::uint64_t rank) {
    return (std::uint64_t{transfer.channel_value} << 33U) | (rank << 1U) | transfer.reduces;
  };
  for (const Transfer& transfer : schedule.transfers) {
    const auto found = depth.find(key(transfer, schedule.src(transfer).index()));
    const bool begins = found == depth.end() || transfer.reads_input != 0;
    const std::uint32_t reached = (begins ? 0 : found->second) + 1;
    std::uint32_t& at = depth[key(transfer, schedule.dst(transfer).index())];
    at = std::max(at, reached);
    shape.height = std::max(shape.height, reached);
    edges[key(transfer, 0)].push_back(std::uint64_t{schedule.src(transfer).value()} << 32U |
                                      schedule.dst(transfer).value());
    // Data leaves the root first, and reaches it last.
    Rank& end = root.try_emplace(key(transfer, 0), schedule.src(transfer)).first->second;
    if (transfer.reduces != 0) end = schedule.dst(transfer);
  }
  shape.trees = static_cast<std::uint32_t>(root.size());
  std::map<std::uint64_t, std::set<Edges>> trees_of;  // by root and action
  std::map<std::uint64_t, std::uint32_t> ways_of;     // the same
  for (auto& [channel, joined] : edges) {
    std::sort(joined.begin(), joined.end());
    joined.erase(std::unique(joined.begin(), joined.end()), joined.end());
    const std::uint64_t end = (std::uint64_t{root.at(channel).index()} << 1U) | (channel & 1U);
    std::set<Edges>& trees = trees_of[end];
    trees.insert(std::move(joined));
    shape.routed_trees_per_root = std::max(shape.routed_trees_per_root, ++ways_of[end]);
    shape.trees_per_root = std::max(shape.trees_per_root, static_cast<std::uint32_t>(trees.size()));
  }
  return shape;
}

}  // namespace espalier
