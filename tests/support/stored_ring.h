#pragma once

#include <span>
#include <vector>

#include "schedule/schedule.h"
#include "schedule/trees/ring_walk.h"
#include "topology/topology.h"

namespace espalier::test {

/// The schedule that ring walks stand for, stored: every step of every ring, shard by shard.
inline Schedule store_rings(std::span<const RingWalk> walks, const Topology& topology) {
  Schedule schedule = make_outline(walks, topology);
  schedule.transfers.clear();
  const std::size_t places = walks.front().order.size();
  for (std::uint64_t step = 0; step < walks.front().steps(); ++step) {
    for (std::size_t ring = 0; ring < walks.size(); ++ring) {
      const RingWalk& walk = walks[ring];
      std::vector<std::size_t> place_of(places);
      for (std::size_t place = 0; place < places; ++place) place_of[walk.shard(step, place)] = place;
      for (std::size_t shard = 0; shard < places; ++shard) {
        const std::size_t place = place_of[shard];
        const RouteId route = schedule.add_route(walk.order[place], walk.order[(place + 1) % places], walk.hops[place]);
        const SliceId slice(walks.size() * walk.order[shard].index() + ring);
        const Action action = step < walk.first_copying_step() ? Action::reduce : Action::copy;
        schedule.add_transfer(route, slice, 1, action, ChannelId(ring * places + shard));
      }
    }
  }
  return schedule;
}

inline Schedule store_ring(const RingWalk& walk, const Topology& topology) { return store_rings({&walk, 1}, topology); }

}  // namespace espalier::test
