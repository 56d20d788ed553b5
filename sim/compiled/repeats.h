#pragma once

// Tested by: tests/differential/machines/repeats_test.cpp

#include <cstdint>

#include "schedule/schedule.h"
#include "schedule/symmetry/symmetry.h"
#include "sim/compiled/compiled_schedule.h"
#include "topology/topology.h"

namespace espalier::sim {

/// A part of a schedule that stands for all of it: what happens to the slices that stand for others. All the rest is
/// the same between other ranks, at the same times.
struct Repeats {
  std::uint32_t times = 1;  ///< How often the part happens.
  Schedule part;            ///< The same slices and routes, and the transfers of the slices that stand for others.
  Parts places;             ///< For every link, and every rank's node, the one that stands for it.
};

/// Whether a part stands for all on this network, by a symmetry in the same order that is known, perhaps of the
/// schedule on a network with other rates and latencies: in the model `link` without copy engines and messages that
/// cost time, and where slices that stand for each other have equal bytes (are_parts_alike).
///
/// It is proven, not guessed. Every map of the symmetry (schedule/symmetry/symmetry.h) takes the schedule to itself,
/// and here links to links that are alike; nothing but links takes time. Every slice has lanes of its own, so lanes
/// and dependencies are those of slices, and rounds follow from them: maps take these to each other. The transfers that
/// pass a link come in the order of those that stand for them, no two of one, and so do those that ask it at one
/// moment. So the maps take the run to itself: docs/simulator.md knows nothing else of a transfer. All orbits have one
/// size; so a link, and the window of a rank, serves one image of each transfer that passes its orbit, and the part on
/// the links and ranks that stand for all does what the whole does on these.
[[nodiscard]] bool can_repeat(const Schedule& schedule, const Topology& topology, const ScheduleSymmetry& symmetry);
/// The part. Requires: can_repeat.
[[nodiscard]] Repeats make_repeats(const Schedule& schedule, const Topology& topology,
                                   const ScheduleSymmetry& symmetry);

/// Whether every slice has as many bytes at this size as the one that stands for it.
[[nodiscard]] bool are_parts_alike(const Schedule& schedule, const ScheduleSymmetry& symmetry, Bytes size,
                                   std::int64_t element_size);

}  // namespace espalier::sim
