#pragma once

// Tested by: tests/differential/machines/walked_rings_test.cpp

#include <span>
#include <vector>

#include "base/result.h"
#include "schedule/collective.h"
#include "schedule/schedule.h"
#include "topology/topology.h"

namespace espalier {

/// A ring collective that is walked instead of stored: 16,384 ranks would make 537 million transfers. In every step
/// each place of the order sends one shard to the place after it, every shard on a channel of its own; places and steps
/// count from 0, shard p is that of the rank at place p, and numbers go round:
///
///   all_gather      N - 1 steps that copy; in step s place r sends shard r - s
///   reduce_scatter  N - 1 steps that add; in step s place r sends shard r - s - 1
///   all_reduce      N - 1 steps that add and N - 1 that copy; in step s place r sends shard r - s - 1
///
/// Of several rings that carry a buffer together each has a slice of every shard; the program goes step by step, in a
/// step ring by ring, and in a ring shard by shard. That is what `plan_ring` stores.
///
/// Source: P. Patarasuk, X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations",
/// JPDC 69(2), 2009.
struct RingWalk {
  Collective collective;                  ///< all_reduce, reduce_scatter or all_gather with equal shards.
  std::vector<Rank> order;                ///< Every rank once.
  std::vector<std::vector<LinkId>> hops;  ///< hops[r] leads from order[r] to the next one, the last back to the first.
  std::int64_t weight = 1;   ///< Of several rings that carry a buffer together: its part of the sum of all weights.
  std::uint32_t piece = 0;   ///< Of a ring over parallel links, whose pieces are walks one behind the other: which one.
  std::uint32_t pieces = 1;  ///< In the program a piece of a shard is followed by the shard's next piece.

  [[nodiscard]] std::uint64_t steps() const;
  /// The shard that a place sends in a step.
  [[nodiscard]] std::size_t shard(std::uint64_t step, std::size_t place) const {
    const std::uint64_t back = (step + (collective.kind == CollectiveKind::all_gather ? 0 : 1)) % order.size();
    return (place + order.size() - back) % order.size();
  }
  /// The steps before this one add; those from it on copy.
  [[nodiscard]] std::uint64_t first_copying_step() const;
};

/// A schedule with the slices of rings and of each the transfers of one step, ring by ring and place by place: what
/// layouts, loads of a step, chunks and paths are taken from. Requires: checked walks of one collective.
Schedule make_outline(std::span<const RingWalk> walks, const Topology& topology);

/// Proves that walking the ring keeps the collective's promise: the order holds every rank once and every hop is a path
/// of the topology from a rank to the next that passes no node twice and no other rank. (That the steps add up is the
/// argument above, checked against `verify` on stored rings in the tests.)
/// Errors: invalid_input, naming the place; unsupported for other collectives and for unequal shards.
Result<void> check_ring_walk(const RingWalk& walk, const Topology& topology);

}  // namespace espalier
