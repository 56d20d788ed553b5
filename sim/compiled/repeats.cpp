#include "sim/compiled/repeats.h"

#include <algorithm>
#include <vector>

#include "schedule/layout.h"

namespace espalier::sim {
bool can_repeat(const Schedule& schedule, const Topology& topology, const ScheduleRotation& rotation) {
  const std::vector<LinkId>& first_link = rotation.first_link;
  if (first_link.size() != topology.link_count()) return false;
  for (std::size_t i = 0; i < first_link.size(); ++i) {
    if (!are_alike(topology.link(LinkId(i)), topology.link(first_link[i]))) return false;
  }
  const auto adds_time = [](const Node& node) {
    return node.bandwidth.bytes_per_second != 0 || node.reduce_bandwidth.bytes_per_second != 0;
  };
  return !schedule.slices.empty() && std::ranges::none_of(topology.nodes(), adds_time);
}

Repeats make_repeats(const Schedule& schedule, const Topology& topology, const ScheduleRotation& rotation) {
  Repeats repeats{rotation.times, schedule, {}};
  const std::size_t slices_on = schedule.slices.size() / rotation.times;
  std::erase_if(repeats.part.transfers,
                [&](const Transfer& transfer) { return transfer.first_slice.index() >= slices_on; });
  for (std::size_t i = 0; i < topology.node_count(); ++i) repeats.places.nodes.emplace_back(i);
  repeats.places.links = rotation.first_link;
  return repeats;
}

std::optional<Repeats> find_repeats(const Schedule& schedule, const Topology& topology) {
  const auto rotation = find_rotation(schedule, topology, MoveOrder::same);
  if (!rotation || !can_repeat(schedule, topology, *rotation)) return std::nullopt;
  return make_repeats(schedule, topology, *rotation);
}

bool are_parts_alike(const Schedule& schedule, std::uint32_t times, Bytes size, std::int64_t element_size) {
  const auto layout = Layout::make(schedule, size, element_size);
  if (!layout) return false;
  const auto bytes = [&](std::size_t slice) { return layout->range(SliceId(slice), 1).length(); };
  const std::size_t slices_on = schedule.slices.size() / times;
  for (std::size_t slice = slices_on; slice < schedule.slices.size(); ++slice) {
    if (bytes(slice) != bytes(slice - slices_on)) return false;
  }
  return true;
}

}  // namespace espalier::sim
