#pragma once

// Tested by: tests/unit/experts/routing_test.cpp

#include <cstddef>
#include <cstdint>
#include <vector>

namespace espalier::experts {

/// How often each expert is among a token's: chances from 0 to 1 that add up to the experts of a token.
using Popularity = std::vector<double>;

/// Experts stand in an order drawn by `seed`; the k-th is as popular as k^-exponent, but in no more than every token.
/// Requires: 1 <= top_k <= experts; an exponent from 0 to 10.
Popularity zipf_popularity(std::size_t experts, std::size_t top_k, double exponent, std::uint64_t seed);

/// The rank of each expert; every rank has as many.
using Placement = std::vector<std::uint32_t>;

/// Expert e is on rank e / (experts / ranks). Requires: experts a multiple of ranks.
Placement place_in_order(std::size_t experts, std::size_t ranks);

/// A placement whose busiest rank has as little as was found: from the one that is given, and from experts handed out
/// in the order of their popularity to the rank that has least, by swaps of two experts between the busiest rank and
/// another for as long as one helps. Cost: O(experts^2 / ranks) for each swap, and no more than `experts` swaps.
/// Requires: a placement of as many experts on every rank.
Placement search_placement(const Popularity& popularity, const Placement& given, std::size_t ranks);

/// What a rank sends, and what a rank computes. Every rank's tokens are routed alike, so all ranks send the same.
struct Routed {
  std::vector<double> sent;  ///< By receiving rank: copies of a token that go to it, in the mean.
  std::vector<double> load;  ///< By rank: tokens that its experts take, over the mean of balanced routing.
  double dropped = 0;        ///< Of all copies, the part that found its expert full.

  /// The busiest rank's load, over balanced routing.
  [[nodiscard]] double busiest() const;
};

/// What an expert takes at most, over the mean of balanced routing; 0: as much as comes.
struct Routing {
  double capacity = 0;
  bool deduplicated = false;  ///< A token goes once to a rank, whatever number of its experts is there.
};

/// Requires: a placement of `popularity`'s experts on so many ranks, as many on each.
Routed route(const Popularity& popularity, const Placement& placement, std::size_t ranks, const Routing& how);

}  // namespace espalier::experts
