#pragma once

#include <cstdint>
#include <optional>

#include "schedule/rotation/rotation.h"
#include "schedule/schedule.h"
#include "sim/compiled/compiled_schedule.h"
#include "topology/topology.h"

namespace espalier::sim {

/// A part of a schedule that stands for all of it: what happens to the first slices. All the rest is the same, so many
/// ranks on, at the same times.
struct Repeats {
  std::uint32_t times = 1;  ///< How often the part happens.
  Schedule part;            ///< The same slices and routes, and the transfers of the first slices.
  Parts places;             ///< For every link the one that stands for all that it is alike with.
};

/// The smallest part that stands for all, in the model `link` without rounds ahead, copy engines and messages that cost
/// time, and where slices that stand for each other have equal bytes (are_parts_alike); nothing where there is none.
///
/// It is proven, not guessed. Call sigma what takes the i-th transfer of a slice to the i-th transfer of the slice one
/// part on. Then (1) and (2) of ScheduleRotation (schedule/rotation/rotation.h) hold; (3) every slice has channels of
/// its own, so lanes and dependencies are those of slices, and sigma takes these to each other; (4) the transfers that
/// pass a link come in the order of their originals in the part. So sigma takes the run to itself (docs/simulator.md
/// knows nothing else of a transfer), and the part on the links that stand for all does what the whole does on these.
///
/// Requires: a schedule that passes `verify` on this topology. Cost: O(links on the transfers' routes) for each
/// number of parts that divides the ranks, mostly less.
[[nodiscard]] std::optional<Repeats> find_repeats(const Schedule& schedule, const Topology& topology);

/// The same by a rotation in the same order that is known already, perhaps of the schedule on a network with other
/// rates and latencies: whether links are alike on this one and nothing but links takes time; and, requiring
/// that, the part.
[[nodiscard]] bool can_repeat(const Schedule& schedule, const Topology& topology, const ScheduleRotation& rotation);
[[nodiscard]] Repeats make_repeats(const Schedule& schedule, const Topology& topology,
                                   const ScheduleRotation& rotation);

/// Whether every slice has as many bytes at this size as the one a part on, where there are so many parts.
[[nodiscard]] bool are_parts_alike(const Schedule& schedule, std::uint32_t times, Bytes size,
                                   std::int64_t element_size);

}  // namespace espalier::sim
