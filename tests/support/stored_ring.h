#pragma once

#include <string>

#include "schedule/ring_walk.h"
#include "schedule/schedule.h"
#include "topology/topology.h"

namespace espalier::test {

/// The schedule that a ring walk stands for, stored: every step of every place in order.
inline Schedule store_ring(const RingWalk& walk, const Topology& topology) {
  Schedule schedule(walk.collective, topology.name(), "ring");
  const std::size_t places = walk.order.size();
  schedule.units = static_cast<std::int64_t>(places);
  const bool labelled = slices_have_rank(walk.collective.kind);
  for (std::size_t i = 0; i < places; ++i) {
    schedule.slices.push_back({static_cast<std::int64_t>(i), 1, labelled ? Rank(i) : Rank(), {}});
  }
  for (std::uint64_t step = 0; step < walk.steps(); ++step) {
    for (std::size_t place = 0; place < places; ++place) {
      const RouteId route = schedule.add_route(walk.order[place], walk.order[(place + 1) % places], walk.hops[place]);
      const SliceId slice(walk.order[walk.shard(step, place)].index());
      const Action action = step < walk.first_copying_step() ? Action::reduce : Action::copy;
      schedule.add_transfer(route, slice, 1, action, ChannelId(0));
    }
  }
  return schedule;
}

}  // namespace espalier::test
