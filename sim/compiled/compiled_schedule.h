#pragma once

// Tested by: tests/unit/sim/fair/fair_model_test.cpp

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "schedule/dependencies.h"
#include "schedule/schedule.h"
#include "sim/compiled/lanes.h"
#include "sim/compiled/shared_waits.h"
#include "sim/core/network.h"
#include "topology/without.h"

namespace espalier::sim {

/// The resources that the chunks of a route pass, as a run of steps: the source's processor, copy engine and backplane,
/// then each link followed by the backplane of the node it reaches, then the destination's processor and reduction.
/// Nodes without a limit have no step.
struct Path {
  std::uint32_t begin = 0;
  std::uint32_t first_link = 0;  ///< The step whose end is the chunk's departure.
  std::uint32_t last_link = 0;
  std::uint32_t end = 0;         ///< Past the last step of a copy.
  std::uint32_t reduce_end = 0;  ///< Past the last step of a reduce; `end` when the destination reduces for free.
  std::int64_t overhead = 0;     ///< Per-message costs of all links, paid at the sender.

  [[nodiscard]] std::uint32_t end_of(const Transfer& transfer) const {
    return transfer.reduces != 0 ? reduce_end : end;
  }
  [[nodiscard]] std::uint32_t steps_of(const Transfer& transfer) const { return end_of(transfer) - begin; }
};

/// A schedule made ready to run on a network: what does not depend on the size, worked out once. Immutable, safe to
/// share between threads; any number of runs may use it at once.
class CompiledSchedule {
 public:
  /// The schedule must outlive the compiled schedule. `topology` is the one that the schedule was planned on: the
  /// network's; or one that differs from it in its ranks alone (a process group, topology/names/group.h); or a part of
  /// it (without.h), with `places` saying which nodes and links of the network its own are. Empty places: the same ids.
  /// Requires: a schedule that passes `verify` on this topology, which is not proven here.
  /// Errors: invalid_input when an id or route is not of this topology.
  /// Cost: as Dependencies; 16 bytes per transfer beside it, and 48 per lane.
  [[nodiscard]] static Result<CompiledSchedule> make_unverified(const Schedule& schedule, const Topology& topology,
                                                                const Network& network, const Parts& places = {});

  [[nodiscard]] const Schedule& schedule() const { return *schedule_; }
  [[nodiscard]] const Dependencies& dependencies() const { return dependencies_; }
  [[nodiscard]] const SharedWaits& shared_waits() const { return shared_waits_; }
  [[nodiscard]] const Lanes& lanes() const { return lanes_; }
  /// The lanes that begin or end at a rank, ascending. A lane between two ranks is in both lists.
  [[nodiscard]] std::span<const LaneIndex> lanes_of(Rank rank) const { return listed_lanes(rank.index()); }
  /// The lanes between two relays.
  [[nodiscard]] std::span<const LaneIndex> lanes_of_relays() const { return listed_lanes(rank_lanes_.size() - 2); }
  /// Whether some resource serves more than one lane: only then does the order matter in which chunks ask.
  [[nodiscard]] bool shares_resources() const { return !shares_.empty(); }
  /// Whether a lane passes a resource that another lane passes too.
  [[nodiscard]] bool shares(LaneIndex lane) const { return shares_resources() && shares_[lane] != 0; }
  /// The network's node that a rank or a relay is, or that stands for it.
  [[nodiscard]] NodeId place_of_end(Rank end) const { return places_of_ends_[end.index()]; }
  /// The lane that a route belongs to. Requires: a compiled schedule that does not share resources, a route in use.
  [[nodiscard]] LaneIndex lane_of(RouteId route) const { return lane_of_route_[route.index()]; }
  [[nodiscard]] const Path& path(const Transfer& transfer) const { return paths_[transfer.route.index()]; }
  [[nodiscard]] const std::vector<Path>& paths() const { return paths_; }  ///< By route id.
  /// Indices into the network's resources.
  [[nodiscard]] const std::vector<std::uint32_t>& steps() const { return steps_; }

 private:
  explicit CompiledSchedule(const Schedule& schedule)
      : schedule_(&schedule),
        dependencies_(schedule),
        shared_waits_(schedule, dependencies_),
        lanes_(make_lanes(schedule)) {}
  [[nodiscard]] std::span<const LaneIndex> listed_lanes(std::size_t list) const {
    return std::span(lanes_by_rank_).subspan(rank_lanes_[list], rank_lanes_[list + 1] - rank_lanes_[list]);
  }
  void sort_lanes_by_rank();
  void find_sharing(std::size_t resource_count);

  const Schedule* schedule_;
  Dependencies dependencies_;
  SharedWaits shared_waits_;
  Lanes lanes_;
  std::vector<std::uint32_t> rank_lanes_;  // by rank, then for relays: where its lanes begin in the next
  std::vector<LaneIndex> lanes_by_rank_;
  std::vector<NodeId> places_of_ends_;
  std::vector<Path> paths_;
  std::vector<std::uint32_t> steps_;
  std::vector<LaneIndex> lane_of_route_;  // empty when resources are shared
  std::vector<char> shares_;              // by lane: whether it passes a resource of another's; empty when none does
};

}  // namespace espalier::sim
