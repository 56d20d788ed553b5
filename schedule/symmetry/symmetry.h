#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "schedule/schedule.h"
#include "topology/topology.h"

namespace espalier {

/// What happens to the first slices happens to all others, as many ranks on: a schedule that a map sigma takes to
/// itself.
///
/// (1) sigma takes every slice to the one `slice count / times` on, and each of its transfers to one of that slice:
/// with the same action, between the ranks that are `rank count / times` on. (2) It takes link to like link, one to
/// one, and no link comes back to itself before all `times` parts are through.
struct ScheduleRotation {
  std::uint32_t times = 1;            ///< How often the part, the transfers of the first slices, happens.
  std::vector<LinkId> first_link;     ///< By link: the one that stands for all that sigma takes to each other.
  std::vector<TransferId> originals;  ///< By transfer: the one of the part that it is an image of.
};

/// Whether links take the same time for everything.
[[nodiscard]] bool are_alike(const Link& one, const Link& other);

/// Whether a slice's transfers have to come in the same order in every part.
enum class MoveOrder : std::uint8_t {
  same,  ///< They do, and those that pass a link come in the order of their originals, no two of one original.
  any,   ///< They come in any order. Found along trees only: no rank gets a slice twice, or sends on two sums of it.
};

/// The rotation of the most parts; nothing where there is none, or some transfer moves several slices, or some channel
/// carries two. Requires: ids in range (rule S1). Cost: O(links on the transfers' routes) for each number of parts that
/// divides the ranks, mostly less.
std::optional<ScheduleRotation> find_rotation(const Schedule& schedule, const Topology& topology, MoveOrder order);

/// A schedule with fewer transfers is as quickly run as a rotation is found.
inline constexpr std::size_t least_rotated_transfers = 500'000;

/// Puts the images of one transfer next to each other in the program, so that a rotation in any order becomes one in
/// the same order, of which a simulation needs but one part (sim/compiled/repeats.h). The order of what happens to a
/// slice is that of the first part; slices do not touch each other. Nothing changes in schedules that have no rotation,
/// or one in the same order. Requires: a schedule that passes `verify`, which it does afterwards, too.
void put_images_together(Schedule& schedule, const Topology& topology);

}  // namespace espalier
