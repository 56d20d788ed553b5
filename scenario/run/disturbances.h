#pragma once

// Tested by: tests/unit/scenario/run/run_job_test.cpp

#include <cstdint>
#include <optional>
#include <vector>

#include "base/id.h"
#include "base/units.h"
#include "sim/conditions.h"

namespace espalier::scenario {

/// A rank that is slower than the others, or late.
struct Straggler {
  Rank rank;
  std::int64_t compute_ppm = 1'000'000;  ///< How long its compute takes, in millionths of what it should.
  Picoseconds start;                     ///< It begins that much later.
};

/// Traffic of others: pairs of ranks, drawn by the seed, that send flows at random moments, the gaps between them
/// exponentially distributed, until the job is over.
struct Background {
  std::uint32_t pairs = 0;    ///< How many pairs send.
  Bytes size;                 ///< Of one flow.
  std::int32_t load_ppm = 0;  ///< The part of its route's slowest link that each pair uses in the mean.
  std::vector<Rank> ranks;    ///< Among which pairs are drawn; empty: all.
};

/// What is not as it should be.
struct Disturbances {
  std::vector<Straggler> stragglers;
  std::vector<Background> background;
  std::int32_t compute_jitter_ppm = 0;   ///< Each compute takes up to this much longer, evenly distributed.
  sim::Conditions conditions;            ///< Jitter of hops, and links that slow or die.
  std::optional<Picoseconds> detection;  ///< With it, calls are planned anew that long after a link dies.
  std::uint64_t seed = 0;                ///< Of compute jitter and background; hops have theirs in `conditions`.
};

/// A link that dies, or is alive again, is noticed.
struct Notice {
  std::int64_t time = 0;
  LinkId link;
  bool is_dead = false;
};

/// When deaths are noticed, in order of time and link: `detection` after the link died, unless it is alive by then, and
/// `detection` after it is alive again, where its death was noticed.
std::vector<Notice> find_notices(const sim::Conditions& conditions, Picoseconds detection);

}  // namespace espalier::scenario
