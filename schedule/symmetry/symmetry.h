#pragma once

// Tested by: tests/differential/machines/repeats_test.cpp

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "schedule/schedule.h"
#include "topology/topology.h"

namespace espalier {

/// Maps that take a schedule to itself: what happens to some slices happens to all others, between other ranks.
///
/// (1) Each map takes ranks to ranks and slices to slices, one to one, and each transfer of a slice to one of its
/// image, with the same action, between the images of its ranks. (2) It takes links to like links, one to one. (3) The
/// maps together join ranks, slices and the links that transfers pass into orbits, all of the same size.
struct ScheduleSymmetry {
  std::uint32_t times = 1;                 ///< How often a part, the transfers that stand for themselves, happens.
  std::vector<Rank> first_rank;            ///< By rank: the one that stands for its orbit.
  std::vector<SliceId> first_slice;        ///< By slice, the same.
  std::vector<LinkId> first_link;          ///< By link, the same; itself where no transfer passes it.
  std::vector<TransferId> first_transfer;  ///< By transfer: the one of the part that it is an image of.
};

/// Whether links take the same time for everything.
[[nodiscard]] bool are_alike(const Link& one, const Link& other);

/// Whether a slice's transfers have to come in the same order as those of its images.
enum class MoveOrder : std::uint8_t {
  same,  ///< They do, and those that pass a link come in the order of the part's, no two being images of the same.
  any,  ///< They may come in any order where slices are spread along trees: no rank gets a slice twice, or sends on two
        ///< sums of it.
};

/// By rank, to which another it may go.
using RankMap = std::vector<Rank>;

/// The symmetry of many parts that was found; nothing where there is none, or some transfer moves several slices, or
/// some lane, a channel from one rank to another, carries two. Looked for are maps that take the first slice's
/// transfers to those of another slice one after the other, maps that take each rank to the one that is so many on, and
/// these. Requires: ids in range (rule S1); maps one to one. Cost: O(links on the transfers' routes) for each map that
/// is looked at; of those that are none, mostly less.
std::optional<ScheduleSymmetry> find_symmetry(const Schedule& schedule, const Topology& topology, MoveOrder order,
                                              std::span<const RankMap> likely = {});

/// A schedule with fewer transfers is as quickly run as its symmetry is found.
inline constexpr std::size_t min_symmetric_transfers = 10'000;

/// Puts the images of one transfer next to each other in the program, so that a symmetry in any order becomes one in
/// the same order, of which a simulation needs but one part (sim/compiled/repeats.h). The order of what happens to a
/// slice is that of the part; slices do not touch each other. An all_reduce's slices are put part by part, so that
/// images have as many elements where these divide by the parts. Nothing changes in schedules that have no symmetry.
/// Requires: a schedule that passes `verify`, which it does afterwards, too.
void put_images_together(Schedule& schedule, const Topology& topology, std::span<const RankMap> likely = {});

}  // namespace espalier
