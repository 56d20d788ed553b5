#pragma once

// Tested by: tests/unit/scenario/workload/averaging_test.cpp

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "topology/topology.h"

namespace espalier::scenario {

/// Which ranks of a group are neighbours in gossip.
enum class MixingGraph : std::uint8_t {
  network,      ///< Those that a path joins which passes through no other rank, in both directions.
  ring,         ///< Rank i and rank i + 1, counted within the group.
  exponential,  ///< Rank i and rank i + 2^k for every 2^k below the number of ranks.
};

/// The most ranks of a group that gossips: its eigenvalues are found densely.
inline constexpr std::size_t max_mixing_ranks = 1024;

/// Decentralised averaging x <- W x of a group: each rank sends its vector to its neighbours and averages with theirs,
/// with Metropolis weights, 1 / (1 + the larger number of neighbours) for each pair. Source: L. Xiao, S. Boyd, "Fast
/// linear iterations for distributed averaging", 2004.
struct Mixing {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;  ///< Neighbours i < j within the group, ascending.
  std::uint32_t degree = 0;                                    ///< The most neighbours of a rank.
  /// 1 - the second largest absolute eigenvalue of W: a round leaves at most 1 - gap of the distance to the mean.
  double spectral_gap = 1;

  /// Rounds until at most this part of the distance to the mean is left, whatever the vectors are. Requires: 0 < part
  /// < 1.
  [[nodiscard]] std::int64_t rounds_to(double part) const;
};

/// Requires: ascending ranks. Errors: infeasible when the group falls into parts; too_large past `max_mixing_ranks`.
/// Cost: O(ranks^3).
Result<Mixing> make_mixing(const Topology& topology, std::span<const Rank> ranks, MixingGraph graph);

}  // namespace espalier::scenario
