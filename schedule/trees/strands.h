#pragma once

// Tested by: tests/unit/schedule/trees/strands_test.cpp

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "schedule/schedule.h"
#include "topology/bundles.h"
#include "topology/topology.h"

namespace espalier {

/// Where the data of a bundle is cut so that each of its strands gets its part: strands lie side by side over [0, D) in
/// the ratio of their rates. D is the same for all bundles and so small that parts are whole numbers of it; where no
/// such D is small enough, they are rounded.
class StrandCuts {
 public:
  /// The most that D is ever: bundles of a dozen unlike rates are parted exactly below it.
  static constexpr std::int64_t largest_whole = std::int64_t{1} << 40;

  /// `largest` is the most that D may be.
  StrandCuts(const Topology& topology, const Bundles& bundles, std::int64_t largest);

  [[nodiscard]] std::int64_t whole() const { return whole_; }  ///< D.
  /// Where a bundle's strands meet: ascending, inside (0, D).
  [[nodiscard]] const std::vector<std::int64_t>& cuts(LinkId bundle) const { return cuts_[bundle.index()]; }
  /// The cuts of all bundles on a route, each once.
  [[nodiscard]] std::vector<std::int64_t> cuts(std::span<const LinkId> route) const;
  /// The strand of each bundle on a route at a place in [0, D).
  [[nodiscard]] std::vector<LinkId> at(std::span<const LinkId> route, std::int64_t place) const;

 private:
  const Bundles& bundles_;
  std::int64_t whole_ = 1;
  std::vector<std::vector<std::int64_t>> cuts_;  ///< By bundle.
};

/// A schedule for the bundled network made one for the network itself: what goes over a bundle is spread over its
/// strands in the ratio of their rates, so that together they are as fast as one link of the sum.
///
/// Slices that runs join pass their bundles together: they are cut where any of the strands meet, and all transfers
/// with them. Each piece goes its whole path on a channel of its own, over one strand of every bundle, and is handed on
/// as soon as the whole would be. Runs over several parts go part by part on paths (gather, scatter, all_to_all,
/// send_recv; unless messages have overheads), else they are cut by themselves, where their own route's strands meet.
/// Where pieces would be too many (64 of a slice, 2^24 transfers) slices are cut into fewer equal ones, and strands are
/// taken in turn. Requires: a schedule whose structure is right on `bundled(topology, bundles)`. Cost: transfers x
/// pieces, and slices x log slices.
Schedule deal_strands(const Schedule& planned, const Topology& topology, const Bundles& bundles);

}  // namespace espalier
