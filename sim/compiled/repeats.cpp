#include "sim/compiled/repeats.h"

#include <algorithm>
#include <vector>

#include "schedule/layout.h"

namespace espalier::sim {
bool can_repeat(const Schedule& schedule, const Topology& topology, const ScheduleSymmetry& symmetry) {
  const std::vector<LinkId>& first_link = symmetry.first_link;
  if (first_link.size() != topology.link_count()) return false;
  for (std::size_t i = 0; i < first_link.size(); ++i) {
    if (!are_alike(topology.link(LinkId(i)), topology.link(first_link[i]))) return false;
  }
  const auto adds_time = [](const Node& node) {
    return node.bandwidth.bytes_per_second != 0 || node.reduce_bandwidth.bytes_per_second != 0;
  };
  return !schedule.slices.empty() && std::ranges::none_of(topology.nodes(), adds_time);
}

Repeats make_repeats(const Schedule& schedule, const Topology& topology, const ScheduleSymmetry& symmetry) {
  Repeats repeats{symmetry.times, schedule, {}};
  std::erase_if(repeats.part.transfers, [&](const Transfer& transfer) {
    return symmetry.first_slice[transfer.first_slice.index()] != transfer.first_slice;
  });
  for (std::size_t i = 0; i < topology.node_count(); ++i) repeats.places.nodes.emplace_back(i);
  for (std::size_t i = 0; i < topology.rank_count(); ++i) {
    repeats.places.nodes[topology.node_of(Rank(i)).index()] = topology.node_of(symmetry.first_rank[i]);
  }
  repeats.places.links = symmetry.first_link;
  return repeats;
}

bool are_parts_alike(const Schedule& schedule, const ScheduleSymmetry& symmetry, Bytes size,
                     std::int64_t element_size) {
  const auto layout = Layout::make(schedule, size, element_size);
  if (!layout) return false;
  const auto bytes = [&](SliceId slice) { return layout->range(slice, 1).length(); };
  for (std::size_t slice = 0; slice < schedule.slices.size(); ++slice) {
    if (bytes(SliceId(slice)) != bytes(symmetry.first_slice[slice])) return false;
  }
  return true;
}

}  // namespace espalier::sim
