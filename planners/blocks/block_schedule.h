#pragma once

// Tested by: tests/unit/planners/bounds/flow_bound_test.cpp

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "schedule/schedule.h"
#include "topology/topology.h"

namespace espalier::planners {

/// Writes an all_to_all whose blocks go along paths of their own, each block in pieces: for planners that say which
/// path carries how much.
///
/// A step of all paths comes before the next one; within a step, transfers are rotated by the distance from sender to
/// receiver, so that not all begin at one rank. Neighbouring pieces that go from the same rank over the same route in
/// the same step are one transfer. Every transfer is a lane of its own: what comes later on one would wait.
class BlockSchedule {
 public:
  /// Every share of the collective is `units_per_share` units. Requires: a kind with blocks; both outlive it.
  BlockSchedule(const Collective& collective, const Topology& topology, std::string algorithm,
                std::int64_t units_per_share);

  /// The unit count that divides a share finely enough, to a part of 2^40 of all blocks; at least 1.
  static std::int64_t fine_units(const Collective& collective);

  [[nodiscard]] std::int64_t units_per_share() const { return units_per_share_; }

  /// One hop of a path, from rank to rank.
  RouteId add_hop(Rank from, Rank to, std::span<const LinkId> links) { return schedule_.add_route(from, to, links); }
  /// So many units of a block along these hops. Requires: units > 0; a path from the block's sender to its receiver.
  void add_piece(Rank from, Rank to, std::span<const RouteId> hops, std::int64_t units);

  /// Requires: pieces of all blocks between different ranks, each as many units as the block has.
  /// Errors: too_large past the limits of a schedule.
  Result<Schedule> finish() &&;

 private:
  struct Piece {
    std::uint32_t part = 0;
    std::uint32_t first_hop = 0;
    std::uint32_t hop_count = 0;
    std::int64_t units = 0;
  };
  struct Draft {
    Transfer transfer;
    std::uint32_t step = 0;
    std::uint32_t distance = 0;
  };
  void write_slices(std::vector<SliceId>& slice_of);
  [[nodiscard]] std::vector<Draft> draft_transfers(std::span<const SliceId> slice_of) const;

  Schedule schedule_;
  std::int64_t units_per_share_;
  std::vector<Piece> pieces_;
  std::vector<RouteId> hops_;
};

/// Divides units in proportion to weights, the remainders by the largest fractions: none gets more than one unit beside
/// its share, and what has no weight gets nothing. Requires: some weight above zero.
std::vector<std::int64_t> divide_units(std::int64_t units, std::span<const double> weights);

}  // namespace espalier::planners
