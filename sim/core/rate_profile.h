#pragma once

// Tested by: tests/unit/sim/link/link_model_test.cpp

#include <cstdint>
#include <span>
#include <vector>

#include "sim/conditions.h"

namespace espalier::sim {

/// A link's rate over time: parts of its bandwidth, each from one moment to the next.
class RateProfile {
 public:
  /// Changes of one link in any order; of several at one moment the last one counts.
  explicit RateProfile(std::vector<RateChange> changes);

  /// When work that takes `busy` at the full rate is done, begun at `begin`, rounded up; `never` when it will not be
  /// done before max_simulated_time. Requires: both in [0, max_simulated_time].
  [[nodiscard]] std::int64_t finish(std::int64_t begin, std::int64_t busy) const;

  /// The part of the bandwidth at a moment, in millionths.
  [[nodiscard]] std::int32_t rate_at(std::int64_t time) const;

 private:
  struct Piece {
    std::int64_t begin;
    std::int32_t rate_ppm;
  };
  [[nodiscard]] std::size_t piece_at(std::int64_t time) const;

  std::vector<Piece> pieces_;  // the first begins at 0
};

/// The profiles of the links that change.
struct RateProfiles {
  static constexpr std::uint32_t none = 0;
  std::vector<std::uint32_t> of_link;  ///< By link: its profile's index plus one, or `none`.
  std::vector<RateProfile> profiles;

  RateProfiles(std::span<const RateChange> changes, std::size_t link_count);
};

}  // namespace espalier::sim
